package store_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func TestLedgerEntersAGroupInOrder(t *testing.T) {
	open := &store.Incident{ID: "inc_before", EndpointID: "ep_a", StartedAt: start}
	ledger := store.Ledger{
		Standings: map[string]*store.Standing{
			"ep_a": {
				Endpoint: store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}},
				State:    store.State{Status: store.StatusDown, Since: start},
				Open:     open,
			},
		},
		Kept: map[store.Slot]bool{seen(0, probe.Down).Slot(): true},
	}
	gone := seen(1, probe.Up)
	gone.EndpointID = "ep_gone"
	group := []store.Check{
		seen(0, probe.Down), // kept before
		gone,
		seen(1, probe.Up),
		seen(1, probe.Down), // the slot of the one before
		seen(2, probe.Down),
		seen(3, probe.Up),
		seen(4, probe.Down),
	}
	e := ledger.Enter(group, believe)

	var kept []bool
	for _, o := range e.Outcomes {
		kept = append(kept, o.Kept)
	}
	if diff := cmp.Diff(kept, []bool{false, false, true, false, true, true, true}); diff != "" {
		t.Errorf("kept (-got +want):\n%s", diff)
	}
	if len(e.Resolved) != 1 || e.Resolved[0].ID != "inc_before" || e.Resolved[0].ResolvedAt == nil {
		t.Errorf("resolved %+v, want the incident from before", e.Resolved)
	}
	if len(e.Opened) != 2 || e.Opened[0].ResolvedAt == nil || e.Opened[1].ResolvedAt != nil {
		t.Errorf("opened %+v, want one that was resolved again and one that is open", e.Opened)
	}
	var kinds []store.NoticeKind
	for _, n := range e.Notices {
		kinds = append(kinds, n.Kind)
	}
	if diff := cmp.Diff(kinds, []store.NoticeKind{"resolved", "opened", "resolved", "opened"}); diff != "" {
		t.Errorf("notices (-got +want):\n%s", diff)
	}
	if len(e.States) != 1 || e.States[0].State.Status != store.StatusDown || e.States[0].State.LastCheckID != group[6].ID {
		t.Errorf("states %+v, want the one after the last check", e.States)
	}
	if want := (store.Counts{Up: 2, Down: 2}); len(e.Hours) != 1 || e.Hours[0].Counts != want {
		t.Errorf("hours %+v, want one with %+v", e.Hours, want)
	}
	if e.Outcomes[0].State.Status != store.StatusDown {
		t.Errorf("outcome of a check kept before %+v, want the state as it stands", e.Outcomes[0])
	}
}

func TestTidyChecksLeavesTheCallersAlone(t *testing.T) {
	c := seen(0, probe.Down)
	c.Result.StartedAt = start.Add(1500).In(time.FixedZone("east", 3600))
	c.Result.Failure.Message = "a\x00b"
	c.Result.Steps = []probe.Step{{Name: "a\x00b"}}
	c.Result.Warnings = []probe.Warning{{Message: "\xff"}}
	c.Result.Facts.SupportedVersions = []string{"\x00"}
	tidy, err := store.TidyChecks([]store.Check{c})
	if err != nil {
		t.Fatal(err)
	}
	r := tidy[0].Result
	if r.Failure.Message != "a\uFFFDb" || r.Steps[0].Name != "a\uFFFDb" || r.Warnings[0].Message != "\uFFFD" ||
		r.Facts.SupportedVersions[0] != "\uFFFD" || r.StartedAt != start.Add(time.Microsecond) {
		t.Errorf("tidy result %+v", r)
	}
	if c.Result.Failure.Message != "a\x00b" || c.Result.Steps[0].Name != "a\x00b" || c.Result.Facts.SupportedVersions[0] != "\x00" {
		t.Error("TidyChecks changed the checks it was given")
	}
}

func FuzzStepsComeBack(f *testing.F) {
	f.Add("initialize", "Internal error", int64(1), int64(2), 200, -32603)
	f.Add("\xff\x00", "</script>\u2028", int64(math.MaxInt32), int64(0), 0, math.MinInt64)
	f.Fuzz(func(t *testing.T, name, message string, begin, latency int64, status, code int) {
		const longest = int64(100 * 24 * time.Hour)
		r := probe.Result{Verdict: probe.Up, Steps: []probe.Step{{
			Name: name, Message: message, Start: time.Duration(begin % longest), Latency: time.Duration(latency % longest),
			HTTPStatus: status, Code: code, Phases: probe.Phases{DNS: time.Duration(latency % longest)},
		}}}
		tidy, err := store.TidyChecks([]store.Check{{Result: r}})
		if err != nil {
			t.Fatal(err)
		}
		steps, warnings, facts, err := store.EncodeResult(tidy[0].Result)
		if err != nil {
			t.Fatal(err)
		}
		var got probe.Result
		if err := store.DecodeResult(&got, steps, warnings, facts); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got.Steps, tidy[0].Result.Steps); diff != "" {
			t.Errorf("steps (-got +want):\n%s", diff)
		}
	})
}

func TestCountsAndUptime(t *testing.T) {
	var c store.Counts
	if _, ok := c.Uptime(); ok {
		t.Error("nothing measured has an uptime")
	}
	for _, verdict := range []probe.Verdict{probe.Up, probe.Up, probe.Degraded, probe.Down, probe.Gated, probe.Unknown} {
		c.Add(verdict)
	}
	if percent, ok := c.Uptime(); !ok || percent != 75 {
		t.Errorf("uptime of %+v = %v, %v, want 75 per cent", c, percent, ok)
	}
	if sum := c.Plus(c); sum.Total() != 12 {
		t.Errorf("%+v has %d checks, want 12", sum, sum.Total())
	}
}

func TestLatenciesMergeAndComeBack(t *testing.T) {
	var all, even, odd store.Latencies
	for ms := 1; ms <= 1000; ms++ {
		r := probe.Result{
			Verdict: probe.Up, Duration: time.Duration(ms) * time.Millisecond,
			Steps: []probe.Step{
				{Name: "initialize", Latency: time.Duration(ms) * time.Millisecond / 10},
				{Name: "failed", Latency: time.Second, Class: probe.ClassTimeout},
			},
		}
		all.Add(r)
		half := []*store.Latencies{&even, &odd}[ms%2]
		half.Add(r)
	}
	all.Add(probe.Result{Verdict: probe.Down, Duration: time.Hour}) // says nothing about speed

	data, err := even.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var merged store.Latencies
	if err := merged.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if err := merged.Merge(odd); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]store.Latencies{"added up": all, "merged": merged} {
		if steps := l.Steps(); !slices.Equal(steps, []string{"initialize"}) {
			t.Errorf("%s: steps %v, want initialize", name, steps)
		}
		for step, scale := range map[string]float64{"": 1, "initialize": 0.1} {
			got := l.Quantiles(step, 0.5, 0.9, 0.99)
			for i, want := range []float64{500 * scale, 900 * scale, 990 * scale} {
				if len(got) != 3 || math.Abs(got[i]-want) > 0.011*want {
					t.Errorf("%s: quantiles of step %q = %v, want near %v at %d", name, step, got, want, i)
				}
			}
		}
	}
	var none store.Latencies
	if got := none.Quantiles("", 0.5); got != nil {
		t.Errorf("quantiles of nothing = %v, want nil", got)
	}
	if err := none.UnmarshalBinary(nil); err != nil {
		t.Errorf("UnmarshalBinary of nothing: %v", err)
	}
}

func TestAHostileListOfStepsDoesNotGrowAnHour(t *testing.T) {
	var l store.Latencies
	for i := range 1000 {
		l.Add(probe.Result{Verdict: probe.Up, Steps: []probe.Step{{Name: store.Numbered("step", i+2)}}})
	}
	if n := len(l.Steps()); n > 24 {
		t.Errorf("%d steps are measured, want a bound", n)
	}
}

func FuzzLatenciesUnmarshal(f *testing.F) {
	var l store.Latencies
	l.Add(probe.Result{Verdict: probe.Up, Duration: time.Second})
	data, err := l.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"":"AAAA"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l store.Latencies
		if err := l.UnmarshalBinary(data); err != nil {
			return
		}
		if _, err := l.MarshalBinary(); err != nil {
			t.Errorf("what could be read cannot be written: %v", err)
		}
	})
}
