package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// headStore answers with the same heads always, and counts how often.
type headStore struct {
	heads []probe.Head
	err   error

	mu    sync.Mutex
	asked []string // chains
}

func (s *headStore) Heads(_ context.Context, chain string, _ time.Time) ([]probe.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, chain)
	return s.heads, s.err
}

func node(chain string) probe.Target {
	return probe.Target{Kind: probe.KindEVM, Memory: probe.Memory{Head: &probe.Head{Chain: chain}}}
}

func TestAProbeIsHandedTheHeadsOfOthers(t *testing.T) {
	db := &headStore{heads: []probe.Head{{Endpoint: "a", Height: 7}, {Endpoint: "b", Height: 8}}}
	h := &headCache{store: db, log: slog.New(slog.DiscardHandler)}
	if diff := cmp.Diff(h.peers(t.Context(), "a", node("1")), []probe.Head{{Endpoint: "b", Height: 8}}); diff != "" {
		t.Errorf("peers of a (-got +want):\n%s", diff)
	}
	if got := h.peers(t.Context(), "", node("1")); len(got) != 2 {
		t.Errorf("peers of a target that is no endpoint: %v, want both", got)
	}
}

func TestAThousandNodesOfOneChainAskTheDatabaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &headStore{}
		h := &headCache{store: db, log: slog.New(slog.DiscardHandler)}
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { h.peers(t.Context(), "", node("1")) })
		}
		wg.Wait()
		if len(db.asked) != 1 {
			t.Errorf("%d questions, want one", len(db.asked))
		}
		time.Sleep(headsFresh)
		h.peers(t.Context(), "", node("1"))
		if len(db.asked) != 2 {
			t.Errorf("%d questions a second later, want a second one", len(db.asked))
		}
	})
}

func TestWhatIsNoChainCostsNoQuestion(t *testing.T) {
	db := &headStore{err: errors.New("away")}
	h := &headCache{store: db, log: slog.New(slog.DiscardHandler)}
	for _, target := range []probe.Target{
		{Kind: probe.KindMCP}, {Kind: probe.KindAuto}, {Kind: probe.KindEVM}, {Kind: probe.KindEVM, Memory: probe.Memory{Head: &probe.Head{}}},
	} {
		if got := h.peers(t.Context(), "", target); got != nil {
			t.Errorf("peers of %+v: %v, want none", target, got)
		}
	}
	if len(db.asked) != 0 {
		t.Errorf("%d questions, want none", len(db.asked))
	}
	byName := probe.Target{Kind: probe.KindEVM, Options: probe.Options{Chain: probe.Chain{ID: "1"}}}
	if got := h.peers(t.Context(), "", byName); got != nil || len(db.asked) != 1 || db.asked[0] != store.ChainKey(probe.KindEVM, "1") {
		t.Errorf("peers while the database is away: %v after %v, want none", got, db.asked)
	}
}
