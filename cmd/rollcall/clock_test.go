package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// leaping is a schedule and a recorder on a wall clock that is set by hand, with a database whose clock is right, and one
// endpoint.
type leaping struct {
	*testing.T
	store    *sqlite.DB
	endpoint store.Endpoint
	ahead    atomic.Int64
	down     atomic.Bool
	probes   atomic.Int64
}

func (l *leaping) now() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

func (l *leaping) probe(context.Context, probe.Target) probe.Result {
	l.probes.Add(1)
	r := probe.Result{Kind: probe.KindJSONRPC, StartedAt: l.now(), Verdict: probe.Up, Duration: time.Millisecond}
	if l.down.Load() {
		r.Verdict, r.Failure = probe.Down, &probe.Failure{Step: "ping", Class: probe.ClassTimeout}
	}
	return r
}

func TestAClockThatLeapsAndComesBackKeepsChecksAndMovesStatuses(t *testing.T) {
	for name, by := range map[string]time.Duration{
		"an hour ahead":         time.Hour,
		"over midnight":         13 * time.Hour,
		"years ahead":           30 * 365 * 24 * time.Hour,
		"within the slack":      45 * time.Second,
		"just beyond the slack": 61 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := startLeaping(t)
				l.await(store.StatusUp)
				l.ahead.Store(int64(by))
				time.Sleep(2 * time.Minute)
				l.await(store.StatusUp)
				l.down.Store(true)
				l.await(store.StatusDown)
				l.ahead.Store(0)
				time.Sleep(time.Minute) // clocks of machines may differ by as much: until then a check may pass for a late one
				l.down.Store(false)
				l.await(store.StatusUp)
				l.down.Store(true)
				l.await(store.StatusDown)
				l.wantAllKept()
			})
		})
	}
}

func startLeaping(t *testing.T) *leaping {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "rollcall.db"), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	l := &leaping{T: t, store: db}
	l.endpoint, err = db.CreateEndpoint(t.Context(), store.Endpoint{
		URL: "https://node.example/", Kind: probe.KindJSONRPC, Schedule: "@every 10s", Request: store.Request{Method: "ping"},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	recorder := store.NewRecorder(store.RecorderConfig{Store: db, Judge: alerts.Rules(scheduler.Period), Log: log})
	s := scheduler.New(scheduler.Config{
		Location: "here", Concurrency: 10, Probe: l.probe, Record: recorder.Record, Log: log, Now: l.now,
	})
	if err := s.Set(l.endpoint, store.State{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	recording, stopRecording := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan struct{}, 2)
	go func() { _ = s.Run(ctx); stopRecording(); stopped <- struct{}{} }()
	go func() { _ = recorder.Run(recording); stopped <- struct{}{} }()
	t.Cleanup(func() {
		stop()
		<-stopped
		<-stopped
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// await waits until the endpoint has a status, for four of its periods.
func (l *leaping) await(want store.Status) {
	l.Helper()
	var o store.Overview
	for range 40 {
		time.Sleep(time.Second)
		var err error
		if o, err = l.store.Endpoint(l.Context(), l.endpoint.Slug); err != nil {
			l.Fatal(err)
		}
		if o.Status() == want {
			return
		}
	}
	l.Fatalf("status is %s, want it to become %s: %+v", o.Status(), want, o.Places)
}

// wantAllKept makes sure that each probe is a check that is kept, and that the roll-ups count each of them once.
func (l *leaping) wantAllKept() {
	l.Helper()
	page, err := l.store.Checks(l.Context(), store.CheckFilter{EndpointID: l.endpoint.ID, Limit: store.MaxLimit})
	if err != nil {
		l.Fatal(err)
	}
	if got, want := len(page.Items), int(l.probes.Load()); got != want {
		l.Errorf("%d checks are kept of %d", got, want)
	}
	counts, err := l.store.Counts(l.Context(), []string{l.endpoint.ID}, store.Hourly, time.Now().Add(-1000*24*time.Hour))
	if err != nil {
		l.Fatal(err)
	}
	if got, want := counts[l.endpoint.ID].Total(), int(l.probes.Load()); got != want {
		l.Errorf("%d checks are counted of %d", got, want)
	}
}
