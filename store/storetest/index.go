package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testIndex(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("a line says how an endpoint stands by its latest check", func(t *testing.T) {
		s := fresh(t).open(t)
		auto := newEndpoint(t, s, "beta", func(e *store.Endpoint) { e.Tags = []string{"prod", "eu"} })
		waiting := newEndpoint(t, s, "Alpha", func(e *store.Endpoint) { e.Kind = probe.KindEVM })
		paused := newEndpoint(t, s, "gamma", func(e *store.Endpoint) { e.Paused = true })
		fast, slow := checkFrom("ams", auto, minutes(2), probe.Up), checkFrom("fra", auto, minutes(1), probe.Up)
		fast.Result.Duration, slow.Result.Duration = 1500*time.Microsecond, time.Second
		record(t, s, slow)
		record(t, s, fast)
		lines, err := s.Index(t.Context(), store.EndpointFilter{Limit: 1}, true)
		if err != nil {
			t.Fatalf("Index: %v", err)
		}
		if len(lines) != 3 || !lines[1].Since.Equal(minutes(1)) {
			t.Fatalf("Index = %+v, want three lines, the second since the first good check", lines)
		}
		for i := range lines {
			lines[i].Since = time.Time{}
		}
		want := []store.Line{
			{ID: waiting.ID, Kind: probe.KindEVM, Status: store.StatusPending},
			{ID: auto.ID, Kind: probe.KindMCP, Status: store.StatusUp, Tags: []string{"prod", "eu"}, CheckedAt: minutes(2), Latency: 1500 * time.Microsecond},
			{ID: paused.ID, Kind: probe.KindAuto, Status: store.StatusPaused},
		}
		if diff := cmp.Diff(lines, want); diff != "" {
			t.Errorf("Index with checks (-got +want):\n%s", diff)
		}
		for i := range want {
			want[i].Kind, want[i].CheckedAt, want[i].Latency = "", time.Time{}, 0
		}
		lines, err = s.Index(t.Context(), store.EndpointFilter{}, false)
		for i := range lines {
			lines[i].Since = time.Time{}
		}
		if diff := cmp.Diff(lines, want); diff != "" || err != nil {
			t.Errorf("Index: %v (-got +want):\n%s", err, diff)
		}
	})

	t.Run("a filter selects by what was found out and from where", func(t *testing.T) {
		s := fresh(t).open(t)
		auto := newEndpoint(t, s, "auto")
		newEndpoint(t, s, "evm", func(e *store.Endpoint) { e.Kind = probe.KindEVM })
		mcp := newEndpoint(t, s, "mcp", func(e *store.Endpoint) { e.Kind = probe.KindMCP })
		record(t, s, checkFrom("ams", auto, start, probe.Up), checkFrom("fra", mcp, start, probe.Down))
		for name, test := range map[string]struct {
			f    store.EndpointFilter
			want []string
		}{
			"everything":         {store.EndpointFilter{}, []string{"auto", "evm", "mcp"}},
			"a kind":             {store.EndpointFilter{Kind: probe.KindMCP}, []string{"auto", "mcp"}},
			"as registered":      {store.EndpointFilter{Kind: probe.KindAuto}, []string{"auto"}},
			"another kind":       {store.EndpointFilter{Kind: probe.KindEVM}, []string{"evm"}},
			"a location":         {store.EndpointFilter{Location: "ams"}, []string{"auto"}},
			"a kind, a location": {store.EndpointFilter{Kind: probe.KindMCP, Location: "fra"}, []string{"mcp"}},
			"nowhere":            {store.EndpointFilter{Location: "\x00"}, nil},
			"a status":           {store.EndpointFilter{Status: store.StatusDown}, []string{"mcp"}},
		} {
			page, err := s.Endpoints(t.Context(), test.f)
			if err != nil {
				t.Fatalf("%s: Endpoints: %v", name, err)
			}
			var got, ids, indexed []string
			for _, o := range page.Items {
				got, ids = append(got, o.Name), append(ids, o.ID)
			}
			for _, checks := range []bool{false, true} {
				lines, err := s.Index(t.Context(), test.f, checks)
				if err != nil {
					t.Fatalf("%s: Index: %v", name, err)
				}
				indexed = nil
				for _, l := range lines {
					indexed = append(indexed, l.ID)
				}
				if !slices.Equal(got, test.want) || !slices.Equal(indexed, ids) {
					t.Errorf("%s: Endpoints = %q, Index = %q, want %q", name, got, indexed, test.want)
				}
			}
		}
	})
}

func testManyRollups(t *testing.T, fresh func(t testing.TB) Database) {
	s := fresh(t).open(t)
	a, b, other := newEndpoint(t, s, "A"), newEndpoint(t, s, "B"), newEndpoint(t, s, "Other")
	for hour := range 3 {
		at := start.Add(time.Duration(hour) * time.Hour)
		record(t, s, checkFrom("fra", a, at, probe.Up), checkFrom("ams", a, at, probe.Down), checkAt(b, at, probe.Degraded), checkAt(other, at, probe.Up))
	}
	for _, grain := range []store.Grain{store.Hourly, store.Daily} {
		from := grain.Begin(start.Add(time.Hour))
		var want []store.Rollup
		for _, e := range []store.Endpoint{a, b} {
			want = append(want, uptime(t, s, e, grain, from, from.AddDate(0, 0, 2))...)
		}
		want, err := store.MergeRollups(grain, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Rollups(t.Context(), []string{b.ID, a.ID, b.ID, "ep_none\x00"}, grain, from)
		if err != nil {
			t.Fatalf("Rollups: %v", err)
		}
		if diff := cmp.Diff(sumsOf(got), sumsOf(want)); diff != "" || len(got) == 0 {
			t.Errorf("grain %v: Rollups differ from what Uptime says of each (-got +want):\n%s", grain, diff)
		}
		for i := range got {
			if got, want := got[i].Latencies.Quantiles("", 0.5), want[i].Latencies.Quantiles("", 0.5); !slices.Equal(got, want) {
				t.Errorf("grain %v: latencies %v, want %v", grain, got, want)
			}
		}
	}
	if got, err := s.Rollups(t.Context(), nil, store.Hourly, time.Time{}); err != nil || len(got) != 0 {
		t.Errorf("of no endpoints: %v, %v", got, err)
	}
}

func testLocations(t *testing.T, fresh func(t testing.TB) Database) {
	s := fresh(t).open(t)
	if got, err := s.Locations(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("before the first check: %v, %v", got, err)
	}
	a, b := newEndpoint(t, s, "A"), newEndpoint(t, s, "B")
	lately := store.Stamp(time.Now().Add(-time.Minute))
	late := checkFrom("fra", a, lately, probe.Up)
	late.Result.StartedAt = lately.Add(700 * time.Millisecond)
	record(t, s, late, checkFrom("fra", b, lately, probe.Up), checkFrom("ams", a, minutes(0), probe.Up))
	got, err := s.Locations(t.Context())
	if err != nil {
		t.Fatalf("Locations: %v", err)
	}
	want := []store.Location{
		{Name: "ams", Endpoints: 1, CheckedAt: minutes(0)},
		{Name: "fra", Endpoints: 2, Recent: 2, CheckedAt: late.Result.StartedAt, Lag: 700 * time.Millisecond},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("Locations (-got +want):\n%s", diff)
	}
}
