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
	open := &store.Incident{ID: "inc_before", Kind: store.IncidentEndpoint, EndpointID: "ep_a", StartedAt: start}
	ledger := store.Ledger{
		Standings: map[string]*store.Standing{
			"ep_a": {
				Endpoint: store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}},
				State:    store.State{Status: store.StatusDown, Since: start},
				Places:   []store.Place{{EndpointID: "ep_a", Location: "default", State: store.State{Status: store.StatusDown, Since: start}}},
				Open:     open,
			},
		},
		Kept: map[store.Slot]bool{seen(0, probe.Down).Slot(): true},
		Now:  now,
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
	type turn struct {
		Before, Opens, Over bool
	}
	var turns []turn
	for _, t := range e.Turns {
		turns = append(turns, turn{t.Incident.ID == "inc_before", t.Opens, t.Incident.ResolvedAt != nil})
	}
	if diff := cmp.Diff(turns, []turn{{Before: true, Over: true}, {Opens: true}, {Over: true}, {Opens: true}}); diff != "" {
		t.Errorf("turns (-got +want):\n%s", diff)
	}
	if e.Turns[1].Incident.ID != e.Turns[2].Incident.ID || e.Turns[3].Incident.ID == e.Turns[1].Incident.ID {
		t.Errorf("turns %+v, want the one that was opened resolved again, and another one", e.Turns)
	}
	var kinds []store.NoticeKind
	for _, n := range noticed(e.Turns) {
		kinds = append(kinds, n.Kind)
	}
	if diff := cmp.Diff(kinds, []store.NoticeKind{"resolved", "opened", "resolved", "opened"}); diff != "" {
		t.Errorf("notices (-got +want):\n%s", diff)
	}
	if len(e.Places) != 1 || e.Places[0].State.Status != store.StatusDown || e.Places[0].State.LastCheckID != group[6].ID {
		t.Errorf("places %+v, want the one after the last check", e.Places)
	}
	if len(e.States) != 1 || e.States[0].State.Status != store.StatusDown || !e.States[0].State.Since.Equal(minutes(4)) {
		t.Errorf("states %+v, want the one after the last check", e.States)
	}
	if want := (store.Counts{Up: 2, Down: 2}); e.Places[0].Hour.Counts != want || len(e.Hours) != 0 {
		t.Errorf("running hour %+v and %d that are over, want %+v and none", e.Places[0].Hour, len(e.Hours), want)
	}
	if n := len(e.Checks); n != 4 {
		t.Errorf("%d checks are to be kept, want 4", n)
	}
	if e.Outcomes[0].State.Status != store.StatusDown {
		t.Errorf("outcome of a check kept before %+v, want the state as it stands", e.Outcomes[0])
	}
}

// entered has a ledger with one place of ep_a enter checks; clock is what the writer's clock says.
func entered(p store.Place, clock time.Time, checks ...store.Check) store.Entries {
	standing := at(store.Endpoint{ID: "ep_a"}, p.State)
	standing.Places[0].Hour = p.Hour
	l := store.Ledger{Standings: map[string]*store.Standing{"ep_a": standing}, Now: clock}
	return l.Enter(checks, believe)
}

// hourAt returns a roll-up of so many good checks.
func hourAt(begin time.Time, up int) store.Rollup {
	return store.Rollup{EndpointID: "ep_a", Location: "default", Begin: begin, Counts: store.Counts{Up: up}}
}

func TestLedgerEndsAnHourWithTheFirstCheckOfAnother(t *testing.T) {
	eight, nine := store.HourOf(start), store.HourOf(start).Add(time.Hour)
	type hour struct {
		Begin  time.Time
		Counts store.Counts
	}
	for name, test := range map[string]struct {
		running store.Rollup
		clock   time.Time
		checks  []store.Check
		over    []hour
		runs    hour
	}{
		"the first check": {
			store.Rollup{}, now, []store.Check{seen(0, probe.Up)},
			nil, hour{eight, store.Counts{Up: 1}},
		},
		"another one of the hour": {
			hourAt(eight, 5), now, []store.Check{seen(0, probe.Down)},
			nil, hour{eight, store.Counts{Up: 5, Down: 1}},
		},
		"the first of the next hour": {
			hourAt(eight, 5), now, []store.Check{seen(39, probe.Up), seen(40, probe.Down)},
			[]hour{{eight, store.Counts{Up: 6}}}, hour{nine, store.Counts{Down: 1}},
		},
		"hours without checks in between": {
			hourAt(eight, 5), now, []store.Check{seen(400, probe.Up)},
			[]hour{{eight, store.Counts{Up: 5}}}, hour{eight.Add(7 * time.Hour), store.Counts{Up: 1}},
		},
		"a late one counts where it belongs": {
			hourAt(nine, 5), now, []store.Check{seen(0, probe.Up), seen(41, probe.Up), seen(1, probe.Down)},
			[]hour{{eight, store.Counts{Up: 1}}, {eight, store.Counts{Down: 1}}}, hour{nine, store.Counts{Up: 6}},
		},
		"after the clock was set back, hours go on from there": {
			hourAt(nine.Add(2*time.Hour), 5), minutes(1), []store.Check{seen(0, probe.Up), seen(1, probe.Up)},
			[]hour{{nine.Add(2 * time.Hour), store.Counts{Up: 5}}}, hour{eight, store.Counts{Up: 2}},
		},
		"the clock of another instance that is a little ahead is no clock set back": {
			hourAt(nine, 5), nine.Add(-time.Second), []store.Check{seen(39, probe.Up)},
			[]hour{{eight, store.Counts{Up: 1}}}, hour{nine, store.Counts{Up: 5}},
		},
	} {
		e := entered(store.Place{Hour: test.running}, test.clock, test.checks...)
		var over []hour
		for _, h := range e.Hours {
			if h.EndpointID != "ep_a" || h.Location != "default" {
				t.Errorf("%s: an hour of %q at %q", name, h.EndpointID, h.Location)
			}
			over = append(over, hour{h.Begin, h.Counts})
		}
		if diff := cmp.Diff(over, test.over); diff != "" {
			t.Errorf("%s: hours that are over (-got +want):\n%s", name, diff)
		}
		if diff := cmp.Diff(hour{e.Places[0].Hour.Begin, e.Places[0].Hour.Counts}, test.runs); diff != "" {
			t.Errorf("%s: running hour (-got +want):\n%s", name, diff)
		}
	}
}

func TestLedgerKeepsThePlacesOfAnEndpointApart(t *testing.T) {
	l := store.Ledger{Standings: map[string]*store.Standing{"ep_a": {Endpoint: store.Endpoint{ID: "ep_a", Quorum: 2}}}, Now: now}
	e := l.Enter([]store.Check{from("b", 0, probe.Up), from("a", 0, probe.Down), from("b", 1, probe.Down), from("a", 0, probe.Up)}, believe)
	var kept []bool
	for _, o := range e.Outcomes {
		kept = append(kept, o.Kept)
	}
	if diff := cmp.Diff(kept, []bool{true, true, true, false}); diff != "" {
		t.Errorf("kept (-got +want):\n%s", diff)
	}
	if e.Outcomes[1].State.Status != store.StatusDown || e.Outcomes[1].Opened != "" || e.Outcomes[2].Opened == "" {
		t.Errorf("outcomes %+v, want the state of the place, and an incident with the second that is down", e.Outcomes)
	}
	type place struct {
		Location string
		Counts   store.Counts
	}
	var places []place
	for _, p := range e.Places {
		places = append(places, place{p.Location, p.Hour.Counts})
	}
	if diff := cmp.Diff(places, []place{{"a", store.Counts{Down: 1}}, {"b", store.Counts{Up: 1, Down: 1}}}); diff != "" {
		t.Errorf("places (-got +want):\n%s", diff)
	}
}

func TestLedgerLeavesAStateAloneThatDoesNotChange(t *testing.T) {
	e := entered(store.Place{State: store.State{Status: store.StatusUp, Since: start}}, now, seen(0, probe.Up))
	if len(e.Places) != 1 || len(e.States) != 0 {
		t.Errorf("%d places and states %+v are to be written, want one and none", len(e.Places), e.States)
	}
}

func TestLedgerPassesOverChecksWhoseLeaseWasTaken(t *testing.T) {
	lost, held, free := seen(0, probe.Down), seen(1, probe.Up), seen(2, probe.Up)
	lost.Epoch, held.Epoch = 3, 4
	if _, ok := free.Fence(); ok {
		t.Error("a check without an epoch needs a lease")
	}
	fence, ok := lost.Fence()
	if want := (store.Fence{Location: "default", Shard: store.ShardOf("ep_a"), Epoch: 3}); !ok || fence != want {
		t.Errorf("Fence = %+v, %v, want %+v", fence, ok, want)
	}
	l := store.Ledger{
		Standings: map[string]*store.Standing{"ep_a": at(store.Endpoint{ID: "ep_a"}, store.State{Status: store.StatusUp})},
		Lost:      map[store.Fence]bool{fence: true},
		Now:       now,
	}
	e := l.Enter([]store.Check{lost, held, free}, believe)
	for i, want := range []store.Outcome{{Lost: true}, {Kept: true}, {Kept: true}} {
		if got := e.Outcomes[i]; got.Lost != want.Lost || got.Kept != want.Kept || got.State.Status != store.StatusUp {
			t.Errorf("outcome %d = %+v, want lost %v, kept %v, up", i+1, got, want.Lost, want.Kept)
		}
	}
	if len(e.Checks) != 2 || len(e.Turns) != 0 || e.Places[0].Hour.Counts.Total() != 2 {
		t.Errorf("entries %+v, want nothing of the check that lost its lease", e)
	}
}

func TestLedgerWritesNothingOfChecksThatAreKept(t *testing.T) {
	kept := seen(0, probe.Down)
	l := store.Ledger{
		Standings: map[string]*store.Standing{"ep_a": at(store.Endpoint{ID: "ep_a"}, store.State{Status: store.StatusUp})},
		Kept:      map[store.Slot]bool{kept.Slot(): true},
		Now:       now,
	}
	e := l.Enter([]store.Check{kept, kept}, believe)
	if len(e.Checks)+len(e.Places)+len(e.States)+len(e.Hours) != 0 || e.Outcomes[1].Kept {
		t.Errorf("entries %+v, want none", e)
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
