package main

import (
	"context"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

func TestDemoEndpointsCanBeRegistered(t *testing.T) {
	for _, e := range openDemo(t).endpoints() {
		if err := e.Validate(scheduler.Period); err != nil {
			t.Errorf("%s: %v", e.Slug, err)
		}
	}
}

func TestDemoShowsHealthyAndBrokenEndpoints(t *testing.T) {
	type sight struct {
		Verdict probe.Verdict
		Step    string
		Class   probe.Class
		Code    int
		Era     probe.Era
		Tools   int
		ChainID string
	}
	want := map[string]sight{
		"demo-mcp-modern":      {Verdict: probe.Up, Era: probe.EraModern, Tools: 3},
		"demo-mcp-legacy":      {Verdict: probe.Up, Era: probe.EraLegacy, Tools: 3},
		"demo-mcp-failing":     {Verdict: probe.Down, Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Era: probe.EraLegacy},
		"demo-mcp-hanging":     {Verdict: probe.Down, Step: "initialize", Class: probe.ClassTimeout},
		"demo-mcp-flaky":       {Verdict: probe.Up, Era: probe.EraModern, Tools: 3}, // it begins well
		"demo-mcp-changing":    {Verdict: probe.Up, Era: probe.EraModern, Tools: 3},
		"demo-chain-advancing": {Verdict: probe.Up, ChainID: "424242"},
		"demo-chain-frozen":    {Verdict: probe.Degraded, Step: "eth_getBlockByNumber", Class: probe.ClassHeadLagging, ChainID: "424242"},
	}
	d := openDemo(t)
	ask := d.probeWith(&probe.Prober{Version: "test"})
	endpoints := d.endpoints()
	if len(endpoints) != len(want) {
		t.Errorf("got %d endpoints, want %d", len(endpoints), len(want))
	}
	for _, e := range endpoints {
		t.Run(e.Slug, func(t *testing.T) {
			t.Parallel()
			target := e.Target(store.State{})
			target.Timeout = time.Second // the one that hangs uses up all of it
			r := ask(t.Context(), target)
			got := sight{Verdict: r.Verdict, Era: r.Era, ChainID: r.Facts.ChainID}
			if r.Failure != nil {
				got.Step, got.Class, got.Code = r.Failure.Step, r.Failure.Class, r.Failure.Code
			}
			if r.Facts.Tools != nil {
				got.Tools = *r.Facts.Tools
			}
			if e.Slug == "demo-mcp-changing" && got.Tools == 4 {
				got.Tools = 3 // or one more, by turns
			}
			if got != want[e.Slug] {
				t.Errorf("got %+v, want %+v; steps %+v", got, want[e.Slug], r.Steps)
			}
		})
	}
	t.Run("only the demo's own address is open", func(t *testing.T) {
		other := openDemo(t).endpoints()[0].Target(store.State{})
		if got := ask(t.Context(), other); got.Failure == nil || got.Failure.Class != probe.ClassEgressBlocked {
			t.Errorf("another port on loopback: got %s, %+v, want %s", got.Verdict, got.Failure, probe.ClassEgressBlocked)
		}
	})
}

func TestDemoChainAdvances(t *testing.T) {
	d := openDemo(t)
	height := func(slug string) uint64 {
		for _, e := range d.endpoints() {
			if e.Slug == slug {
				r := d.probeWith(&probe.Prober{})(context.Background(), e.Target(store.State{}))
				if r.Facts.Height == nil {
					t.Fatalf("%s: no height: %+v", slug, r.Failure)
				}
				return *r.Facts.Height
			}
		}
		t.Fatalf("no endpoint %s", slug)
		return 0
	}
	first := height("demo-chain-advancing")
	want := uint64(time.Now().Unix()) / 2
	if first > want || first+1 < want {
		t.Errorf("got height %d, want one block each 2 s of the clock: %d", first, want)
	}
	if a, b := height("demo-chain-frozen"), height("demo-chain-frozen"); a != b {
		t.Errorf("the frozen chain went from %d to %d", a, b)
	}
}

func openDemo(t *testing.T) *demo {
	t.Helper()
	d, err := startDemo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}
