package storetest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testHeads(t *testing.T, fresh func(t testing.TB) Database) {
	ethereum := store.ChainKey(probe.KindEVM, "1")

	t.Run("a memory comes back to the next probe, and its head to those of its peers", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Node")
		since := minutes(-9)
		memory := probe.Memory{
			Head: &probe.Head{
				Chain: "1", Height: math.MaxUint64, Hash: "0xabc", Parent: "0xabb", Time: start.Add(-3 * time.Second), Asked: start,
				Seen: start.Add(40 * time.Millisecond), Since: minutes(-1),
			},
			Block: probe.BlockPace{Average: 12 * time.Second, Samples: 7},
			Since: &since,
			Over:  2,
		}
		record(t, s, headCheck(e, start, memory))
		o := overview(t, s, e.Slug)
		if diff := cmp.Diff(o.Target(o.State).Memory, memory); diff != "" {
			t.Errorf("memory of the next target (-got +want):\n%s", diff)
		}
		want := *memory.Head
		want.Endpoint = "Node"
		if diff := cmp.Diff(heads(t, s, ethereum, start), []probe.Head{want}); diff != "" {
			t.Errorf("heads (-got +want):\n%s", diff)
		}
	})

	t.Run("heads are those of one chain that are fresh, newest first, and none of a paused endpoint", func(t *testing.T) {
		s := fresh(t).open(t)
		for i, c := range []struct {
			name, chain string
			seen        int
		}{{"old", "1", -10}, {"late", "1", 0}, {"later", "1", 1}, {"other", "5", 2}, {"paused", "1", 2}, {"nameless", "", 2}} {
			e := newEndpoint(t, s, c.name)
			record(t, s, headCheck(e, minutes(c.seen), probe.Memory{Head: &probe.Head{Chain: c.chain, Height: uint64(i), Seen: minutes(c.seen)}}))
			if c.name == "paused" {
				pause(t, s, e)
			}
		}
		var got []string
		for _, h := range heads(t, s, ethereum, minutes(-1)) {
			got = append(got, h.Endpoint)
		}
		if diff := cmp.Diff(got, []string{"later", "late"}); diff != "" {
			t.Errorf("heads (-got +want):\n%s", diff)
		}
		if got := heads(t, s, store.ChainKey(probe.KindJSONRPC, "1"), minutes(-1)); len(got) != 0 {
			t.Errorf("heads of a chain of another family: %v, want none", got)
		}
		if got := heads(t, s, "\x00", minutes(-1)); len(got) != 0 {
			t.Errorf("heads of a chain that cannot be: %v, want none", got)
		}
	})

	t.Run("an endpoint that is asked elsewhere has no head", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Node")
		record(t, s, headCheck(e, start, probe.Memory{Head: &probe.Head{Chain: "1", Height: 7, Seen: start}}))
		edit(t, s, e, func(e *store.Endpoint) { e.URL = "https://elsewhere.example" })
		if got := heads(t, s, ethereum, minutes(-1)); len(got) != 0 {
			t.Errorf("heads %v, want none", got)
		}
		if m := overview(t, s, e.Slug).State.Memory; !cmp.Equal(m, probe.Memory{}) {
			t.Errorf("memory %+v, want none", m)
		}
	})

	t.Run("no more heads are compared than can be", func(t *testing.T) {
		s := fresh(t).open(t)
		var checks []store.Check
		for i := range store.MaxHeads + 3 {
			e := newEndpoint(t, s, fmt.Sprintf("node %d", i))
			checks = append(checks, headCheck(e, start, probe.Memory{Head: &probe.Head{Chain: "1", Height: 1, Seen: start}}))
		}
		record(t, s, checks...)
		if got := heads(t, s, ethereum, minutes(-1)); len(got) != store.MaxHeads {
			t.Errorf("%d heads, want %d", len(got), store.MaxHeads)
		}
	})

	t.Run("a hostile head keeps no check from being kept", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Node")
		far := time.Date(123456, 1, 1, 0, 0, 0, 0, time.UTC)
		for i, head := range []probe.Head{
			{Chain: "a\x00b", Hash: "\xff\x00", Parent: strings.Repeat("x", 1<<20), Seen: start},
			{Chain: strings.Repeat("1", 1<<20), Height: math.MaxUint64, Seen: far, Time: far, Asked: far, Since: far},
			{Chain: "1", Seen: time.Time{}.Add(-time.Hour)},
		} {
			c := headCheck(e, minutes(i), probe.Memory{Head: &head, Since: &far})
			c.Result.Facts.HeadTime, c.Result.Facts.HeadHash = &far, "\x00"
			record(t, s, c)
		}
		if n := len(allChecks(t, s, e)); n != 3 {
			t.Errorf("%d checks are kept, want 3", n)
		}
	})
}

// headCheck returns a check of a chain node.
func headCheck(e store.Endpoint, at time.Time, m probe.Memory) store.Check {
	c := checkAt(e, at, probe.Up)
	c.Result.Kind, c.Result.Memory = probe.KindEVM, m
	return c
}

func heads(t testing.TB, s store.Store, chain string, since time.Time) []probe.Head {
	t.Helper()
	found, err := s.Heads(t.Context(), chain, since)
	if err != nil {
		t.Fatalf("Heads(%q): %v", chain, err)
	}
	return found
}
