package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var start = time.Date(2026, 11, 21, 8, 20, 0, 0, time.UTC)

func minutes(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// believe is a judge that believes each check at once.
func believe(_ store.Endpoint, s store.State, c store.Check) store.State {
	s.Status, s.Since, s.Failure = store.Status(c.Result.Verdict), c.Result.StartedAt, c.Result.Failure
	return s
}

func seen(minute int, verdict probe.Verdict) store.Check {
	r := probe.Result{StartedAt: minutes(minute), Duration: time.Second, Kind: probe.KindMCP, Verdict: verdict}
	if verdict == probe.Down {
		r.Failure = &probe.Failure{Step: "initialize", Class: probe.ClassTimeout, Message: "no first byte"}
	}
	return store.NewCheck("ep_a", "default", r.StartedAt, r)
}

// fields returns the fields of an Invalid, nil when err is nil.
func fields(err error) []string {
	invalid, _ := errors.AsType[store.Invalid](err)
	var names []string
	for _, p := range invalid.Problems {
		names = append(names, p.Field)
	}
	return names
}

func TestAdvanceOpensAnIncidentWhenTheStatusBecomesDown(t *testing.T) {
	e := store.Endpoint{ID: "ep_a", Channels: []string{"ch_b", "ch_a", "ch_b"}}
	c := seen(5, probe.Down)
	a := store.Advance(e, store.State{Status: store.StatusUp}, nil, c, believe)
	if a.Open == nil || a.Resolve != nil {
		t.Fatalf("Advance = %+v, want an incident opened", a)
	}
	want := store.Incident{
		ID: a.Open.ID, EndpointID: "ep_a", Severity: store.StatusDown,
		StartedAt: minutes(5), OpenedAt: minutes(5).Add(time.Second), Cause: *c.Result.Failure,
		Told: e.Channels,
	}
	if diff := cmp.Diff(*a.Open, want); diff != "" {
		t.Errorf("incident (-got +want):\n%s", diff)
	}
	var told []string
	for _, n := range a.Notices {
		told = append(told, n.ChannelID)
		if n.Kind != store.NoticeOpened || n.IncidentID != a.Open.ID || !n.DueAt.Equal(a.Open.OpenedAt) {
			t.Errorf("notice %+v, want the opening of %s, due at once", n, a.Open.ID)
		}
	}
	if diff := cmp.Diff(told, []string{"ch_a", "ch_b"}); diff != "" {
		t.Errorf("channels told (-got +want):\n%s", diff)
	}
}

func TestAdvanceResolvesAnIncidentByWhatProvesRecovery(t *testing.T) {
	open := store.Incident{ID: "inc_a", StartedAt: start}
	down := store.State{Status: store.StatusDown}
	for verdict, want := range map[probe.Verdict]bool{
		probe.Up: true, probe.Degraded: true, probe.Gated: true, probe.Unknown: false, probe.Down: false,
	} {
		a := store.Advance(store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}}, down, &open, seen(5, verdict), believe)
		if got := a.Resolve != nil; got != want || a.Open != nil || len(a.Notices) > 0 != want {
			t.Errorf("%s during an outage: %+v, want it resolved: %v", verdict, a, want)
		}
		if a.Resolve != nil && (a.Resolve.ResolvedAt == nil || !a.Resolve.ResolvedAt.Equal(minutes(5)) || a.Resolve.Resolution != store.ResolutionRecovered) {
			t.Errorf("%s: %+v, want it recovered when the check started", verdict, a.Resolve)
		}
	}
	if open.ResolvedAt != nil {
		t.Error("Advance changed the incident it was given")
	}
	pending := func(_ store.Endpoint, s store.State, _ store.Check) store.State {
		s.Status = store.StatusPending
		return s
	}
	if a := store.Advance(store.Endpoint{}, store.State{}, &open, seen(5, probe.Down), pending); a.Resolve != nil {
		t.Error("a pending status resolved an incident: nothing was proved")
	}
}

func TestAdvanceNotesWhatFollowsFromTheCheckAlone(t *testing.T) {
	low, high := uint64(10), uint64(11)
	prev := store.State{LastCheckID: "chk_prev", LastCheckAt: minutes(5), Kind: probe.KindEVM, Era: probe.EraLegacy, Height: &high, HeightSince: start}
	c := seen(6, probe.Up)
	c.Result.Kind, c.Result.Facts.Height = probe.KindAuto, &low
	got := store.Advance(store.Endpoint{}, prev, nil, c, believe).State
	if got.LastCheckID != c.ID || !got.LastCheckAt.Equal(minutes(6)) {
		t.Errorf("last check %s at %v, want this one", got.LastCheckID, got.LastCheckAt)
	}
	if got.Kind != probe.KindEVM || got.Era != probe.EraLegacy || *got.Height != 11 || !got.HeightSince.Equal(start) {
		t.Errorf("state %+v, want what was known better kept", got)
	}
	late := seen(4, probe.Up)
	if got := store.Advance(store.Endpoint{}, prev, nil, late, believe).State; got.LastCheckID != "chk_prev" {
		t.Errorf("last check %s, want the one that started last", got.LastCheckID)
	}
}

func TestAdvanceJudgesNoPausedEndpoint(t *testing.T) {
	never := func(store.Endpoint, store.State, store.Check) store.State { panic("judged") }
	// The incident of before was resolved by the pause, the status is still what it was.
	prev := store.State{Status: store.StatusDown, Since: start}
	c := seen(5, probe.Down)
	a := store.Advance(store.Endpoint{Paused: true, Channels: []string{"ch_a"}}, prev, nil, c, never)
	if a.Open != nil || a.Resolve != nil || len(a.Notices) != 0 {
		t.Errorf("Advance = %+v, want nothing but a state", a)
	}
	if a.State.Status != store.StatusDown || a.State.LastCheckID != c.ID {
		t.Errorf("state %+v, want the status as it was and the last check noted", a.State)
	}
}

func TestResolveNeverEndsBeforeTheBeginning(t *testing.T) {
	i := store.Incident{StartedAt: minutes(10)}
	for name, test := range map[string]struct{ at, recovered, want time.Time }{
		"recovered":               {minutes(13), minutes(12), minutes(12)},
		"paused":                  {minutes(13), time.Time{}, minutes(13)},
		"since before the outage": {minutes(13), minutes(9), minutes(13)},
		"a clock that went back":  {minutes(8), minutes(7), minutes(10)},
	} {
		if got := store.Resolve(i, test.at, test.recovered, store.ResolutionRecovered); !got.ResolvedAt.Equal(test.want) {
			t.Errorf("%s: resolved at %v, want %v", name, got.ResolvedAt, test.want)
		}
	}
}

func TestAmend(t *testing.T) {
	height := uint64(7)
	down := store.State{
		Status: store.StatusDown, Since: start, Failure: &probe.Failure{}, Down: store.Streak{Count: 3}, Streak: store.Streak{Count: 1},
		LastCheckID: "chk_a", LastCheckAt: start, Kind: probe.KindEVM, Era: probe.EraModern, Height: &height, HeightSince: start,
	}
	before := store.Endpoint{ID: "ep_a", Kind: probe.KindAuto, URL: "https://a", Channels: []string{"ch_a"}}
	paused := before
	paused.Paused = true
	renamed := before
	renamed.Name, renamed.Headers = "b", []probe.Header{{Name: "A"}}
	moved := before
	moved.URL = "https://b"
	open := &store.Incident{ID: "inc_a", StartedAt: start}

	kept := store.State{Status: store.StatusPending, Since: minutes(1), LastCheckID: "chk_a", LastCheckAt: start}
	resumed := kept
	resumed.Kind, resumed.Era, resumed.Height, resumed.HeightSince = down.Kind, down.Era, down.Height, down.HeightSince
	for name, test := range map[string]struct {
		before, after store.Endpoint
		state         store.State
		resolved      bool
	}{
		"renamed":          {before, renamed, down, false},
		"paused":           {before, paused, down, true},
		"still paused":     {paused, paused, down, false},
		"resumed":          {paused, before, resumed, false},
		"moved":            {before, moved, kept, false},
		"moved and paused": {before, store.Endpoint{ID: "ep_a", URL: "https://b", Paused: true, Channels: []string{"ch_a"}}, kept, true},
	} {
		a := store.Amend(test.before, test.after, down, open, minutes(1))
		if diff := cmp.Diff(a.State, test.state); diff != "" {
			t.Errorf("%s: state (-got +want):\n%s", name, diff)
		}
		if got := a.Resolve != nil; got != test.resolved || len(a.Notices) > 0 != test.resolved {
			t.Errorf("%s: %+v, want the incident resolved: %v", name, a, test.resolved)
		}
	}
}

// promised returns a check that found a tool list with this hash.
func promised(minute int, hash string) store.Check {
	c := seen(minute, probe.Up)
	c.Result.Contract = &probe.Contract{Key: "modern", Hash: hash, Tools: []byte("[]")}
	return c
}

func TestAdvanceBelievesAChangedToolListWhenTwoChecksInARowSawIt(t *testing.T) {
	e := store.Endpoint{ID: "ep_a", Channels: []string{"ch_a", "ch_a"}, ContractNotices: true}
	s := store.State{Status: store.StatusUp}
	for i, step := range []struct {
		hash    string
		added   bool // a contract is to be kept
		noticed int
	}{
		{"a", true, 0}, {"a", false, 0}, {"b", false, 0}, {"a", false, 0}, {"b", false, 0}, {"c", false, 0}, {"c", true, 1}, {"c", false, 0},
	} {
		a := store.Advance(e, s, nil, promised(i, step.hash), believe)
		if (a.Contract != nil) != step.added || len(a.Notices) != step.noticed || a.Open != nil {
			t.Errorf("check %d with %s: contract %+v, %d notices, want one: %v, and %d", i, step.hash, a.Contract, len(a.Notices), step.added, step.noticed)
		}
		s = a.State
	}
	if late := store.Advance(e, s, nil, promised(0, "z"), believe); late.State.Suspect != nil {
		t.Error("a late check casts suspicion")
	}
	e.Paused = true
	if a := store.Advance(e, s, nil, promised(20, "z"), believe); a.Contract != nil || a.State.Suspect != nil {
		t.Error("a paused endpoint's tool list is judged")
	}
}

// A list that is another one at every check could hide a change for ever.
func TestAdvanceBelievesAToolListThatNeverComesTwice(t *testing.T) {
	e := store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}, ContractNotices: true}
	s := store.Advance(e, store.State{Status: store.StatusUp}, nil, promised(0, "a"), believe).State
	var believed []int
	for minute := 1; minute <= 10; minute++ {
		a := store.Advance(e, s, nil, promised(minute, fmt.Sprint("nonce", minute)), believe)
		if a.Contract != nil {
			believed = append(believed, minute)
			a.Contract.Compare(nil)
			if !strings.HasPrefix(a.Contract.Event.Title, "At every check another list.") {
				t.Errorf("title %q", a.Contract.Event.Title)
			}
		}
		s = a.State
	}
	if diff := cmp.Diff([]int{5, 10}, believed); diff != "" {
		t.Errorf("believed at (-want +got):\n%s", diff)
	}
}

// Changes beyond the fifth in an hour are kept on the timeline and told to nobody.
func TestAdvanceDoesNotFloodChannelsWithToolLists(t *testing.T) {
	e := store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}, ContractNotices: true}
	s := store.State{Status: store.StatusUp}
	changes, notices := 0, 0
	for minute := range 60 {
		a := store.Advance(e, s, nil, promised(minute, fmt.Sprint(minute/2)), believe)
		if a.Contract != nil && a.Contract.Event != nil {
			changes++
		}
		notices += len(a.Notices)
		s = a.State
	}
	if changes != 29 || notices != 5 {
		t.Errorf("%d notices of %d changes, want 5 of 29", notices, changes)
	}
	for _, minute := range []int{70, 71} {
		s = store.Advance(e, s, nil, promised(minute, "later"), believe).State
	}
	if s.ContractTold.Count != 1 {
		t.Errorf("%d notices in the next hour, want 1", s.ContractTold.Count)
	}
}

func TestAdvanceDoesNotChangeTheStateItWasGiven(t *testing.T) {
	e := store.Endpoint{ID: "ep_a"}
	first := store.Advance(e, store.State{}, nil, promised(0, "a"), believe).State
	seen := first.Contracts[0].Seen
	store.Advance(e, first, nil, promised(1, "a"), believe)
	if !first.Contracts[0].Seen.Equal(seen) {
		t.Error("the state before knows of a check after it")
	}
}

func TestOnlyWhatIsAskedElsewhereStartsAgain(t *testing.T) {
	up := store.State{Status: store.StatusUp, Memory: probe.Memory{Head: &probe.Head{Height: 7}}}
	before := store.Endpoint{Kind: probe.KindJSONRPC, URL: "https://a.example"}
	for name, c := range map[string]struct {
		change func(*store.Endpoint)
		again  bool
	}{
		"URL":         {func(e *store.Endpoint) { e.URL += "/b" }, true},
		"command":     {func(e *store.Endpoint) { e.Command = &probe.Command{Args: []string{"x"}} }, true},
		"batch":       {func(e *store.Endpoint) { e.Options.Batch = []probe.Call{{Method: "x"}} }, true},
		"subscribe":   {func(e *store.Endpoint) { e.Options.Subscribe = true }, true},
		"expectation": {func(e *store.Endpoint) { e.Options.Expect.Type = "string" }, false},
		"certificate": {func(e *store.Endpoint) { e.Options.TLS.Insecure = true }, false},
		"notices":     {func(e *store.Endpoint) { e.ContractNotices = true }, false},
	} {
		after := before
		c.change(&after)
		a := store.Amend(before, after, up, nil, start)
		if again := a.State.Status == store.StatusPending && a.State.Memory.Head == nil; again != c.again {
			t.Errorf("a changed %s starts again: %v, want %v", name, again, c.again)
		}
	}
}
