package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestDemoBeginsWithAPastOfIncidentsAndReleases(t *testing.T) {
	db, d := demoStore(t), openDemo(t)
	s := &service{store: db, demo: d, cfg: config{location: "here"}, log: slog.New(slog.DiscardHandler)}
	if err := s.registerDemo(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	open := map[string]bool{}
	resolved, releases := 0, 0
	for _, place := range demoPlaces {
		o, err := db.Endpoint(t.Context(), place.slug)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(o.Name, "Demo: ") {
			t.Errorf("%s is called %q, want its name to say that it is a demo", o.Slug, o.Name)
		}
		for grain, want := range map[store.Grain]int{store.Daily: 89, store.Hourly: 23} { // what has just begun has none yet
			from := now.Add(-demoPast)
			if grain == store.Hourly {
				from = now.Add(-24 * time.Hour)
			}
			got, err := db.Uptime(t.Context(), o.ID, grain, from, now)
			if err != nil || len(got) < want {
				t.Errorf("%s: %d roll-ups of grain %v: %v; want %d", o.Slug, len(got), grain, err, want)
			}
		}
		incidents, err := db.Incidents(t.Context(), store.IncidentFilter{EndpointID: o.ID, Limit: store.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range incidents.Items {
			if i.ResolvedAt == nil {
				open[o.Slug] = true
				continue
			}
			resolved++
			if lasted := i.ResolvedAt.Sub(i.StartedAt); lasted > 12*time.Hour || lasted < time.Minute {
				t.Errorf("%s: an incident from %v lasted for %v", o.Slug, i.StartedAt, lasted)
			}
		}
		events, err := db.Events(t.Context(), store.EventFilter{EndpointID: o.ID})
		if err != nil {
			t.Fatal(err)
		}
		releases += len(events.Items)
	}
	if !open["demo-mcp-failing"] || !open["demo-mcp-hanging"] || !open["demo-chain-frozen"] || len(open) != 3 || resolved < 20 || releases < 3 {
		t.Errorf("%d incidents are over, open are %v, %d events; want 20, three, and 3 changes of tools", resolved, open, releases)
	}
}

func TestDemoInventsNothingBesideOthersEndpoints(t *testing.T) {
	db, d := demoStore(t), openDemo(t)
	own := store.NewEndpoint()
	own.URL = "https://mcp.example.com/mcp"
	if _, err := db.CreateEndpoint(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	s := &service{store: db, demo: d, cfg: config{location: "here"}, log: slog.New(slog.DiscardHandler)}
	for range 2 { // nor when it is started again
		if err := s.registerDemo(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, place := range demoPlaces {
		o, err := db.Endpoint(t.Context(), place.slug)
		if err != nil {
			t.Fatal(err)
		}
		if o.State.Status != store.StatusPending || o.LastCheck != nil {
			t.Errorf("%s is %s with the check %v, want nothing to be known of it", o.Slug, o.State.Status, o.LastCheck)
		}
	}
}

func TestDemoServerComesAndGoesWithinEachRound(t *testing.T) {
	for since, want := range map[time.Duration]bool{
		0: false, demoCalm: true, demoCalm + demoTrouble - 1: true, demoCalm + demoTrouble: false,
		demoRound - 1: false, demoRound: false, 3*demoRound + demoCalm: true,
	} {
		if got := troubledAt(since); got != want {
			t.Errorf("after %v: in trouble is %t, want %t", since, got, want)
		}
	}
	if perHour := 2 * int(time.Hour/demoRound); perHour >= 20 {
		t.Errorf("%d changes in an hour: it would be taken for a flapping one", perHour)
	}
}

func TestDemoToolsChangeByTurns(t *testing.T) {
	d := openDemo(t)
	ask := d.probeWith(&probe.Prober{})
	seen := map[string]bool{}
	for _, path := range demoReleases() {
		r := ask(t.Context(), probe.Target{Kind: probe.KindMCP, URL: "http://" + d.addr + path, Timeout: 5 * time.Second})
		if r.Contract == nil {
			t.Fatalf("%s: %s, %+v", path, r.Verdict, r.Failure)
		}
		seen[r.Contract.Hash] = true
	}
	if len(seen) != demoLists {
		t.Errorf("got %d lists of tools, want %d", len(seen), demoLists)
	}
}

func BenchmarkDemoPast(b *testing.B) {
	d, err := startDemo(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for b.Loop() {
		s := &service{store: demoStore(b), demo: d, cfg: config{location: "here"}, log: slog.New(slog.DiscardHandler)}
		if err := s.registerDemo(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func demoStore(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), storetest.MigratedSQLite(t, sqlite.Migrate), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
