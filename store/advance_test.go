package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var start = time.Date(2026, 11, 21, 8, 20, 0, 0, time.UTC)

func minutes(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// believe is a judge that believes each check at once. An endpoint is down when as many places are as its quorum says, and
// otherwise up.
var believe = store.Judge{
	Check: func(_ store.Endpoint, s store.State, c store.Check) store.State {
		s.Status, s.Since, s.Failure = store.Status(c.Result.Verdict), c.Result.StartedAt, c.Result.Failure
		return s
	},
	Vote: func(e store.Endpoint, s store.State, places []store.Place, at time.Time) store.State {
		down := 0
		for _, p := range places {
			if p.State.Status == store.StatusDown {
				down++
			}
		}
		status := store.StatusUp
		if down >= e.Quorum {
			status = store.StatusDown
		}
		if s.Status != status {
			s.Status, s.Since = status, at
		}
		return s
	},
}

// now is what the clock says while checks are judged: later than all of them.
var now = minutes(600)

// at returns where an endpoint with one place stands.
func at(e store.Endpoint, s store.State) *store.Standing {
	return &store.Standing{
		Endpoint: e, State: store.State{Status: s.Status, Since: s.Since, Failure: s.Failure},
		Places: []store.Place{{EndpointID: e.ID, Location: "default", State: s}},
	}
}

// advance returns what a check does to an endpoint with one place, and the state of that place afterwards.
func advance(e store.Endpoint, s store.State, open *store.Incident, c store.Check) (store.Advanced, store.State) {
	standing := at(e, s)
	standing.Open = open
	a := store.Advance(standing, c, believe, now)
	return a, standing.Places[0].State
}

// opened and ended return the incident that the turns open, or end; nil when they do not.
func opened(turns []store.Turn) *store.Incident {
	for _, t := range turns {
		if t.Opens {
			return &t.Incident
		}
	}
	return nil
}

func ended(turns []store.Turn) *store.Incident {
	for _, t := range turns {
		if t.Incident.ResolvedAt != nil {
			return &t.Incident
		}
	}
	return nil
}

// noticed returns the notices of all turns.
func noticed(turns []store.Turn) (all []store.Notice) {
	for _, t := range turns {
		all = append(all, t.Notices...)
	}
	return all
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
	a, _ := advance(e, store.State{Status: store.StatusUp}, nil, c)
	got := opened(a.Turns)
	if got == nil || len(a.Turns) != 1 {
		t.Fatalf("Advance = %+v, want an incident opened", a)
	}
	want := store.Incident{
		ID: got.ID, Kind: store.IncidentEndpoint, Subject: "ep_a", EndpointID: "ep_a", Severity: store.StatusDown, Worst: store.StatusDown,
		StartedAt: minutes(5), OpenedAt: minutes(5).Add(time.Second), Cause: *c.Result.Failure, CheckID: c.ID, SeenFrom: []string{"default"},
		Told: e.Channels,
	}
	if diff := cmp.Diff(*got, want); diff != "" {
		t.Errorf("incident (-got +want):\n%s", diff)
	}
	turn := a.Turns[0]
	entry := store.Entry{ID: turn.Entries[0].ID, IncidentID: got.ID, At: got.OpenedAt, Kind: store.EntryOpened, Severity: store.StatusDown, Cause: c.Result.Failure}
	if diff := cmp.Diff(turn.Entries, []store.Entry{entry}); diff != "" || entry.ID == "" {
		t.Errorf("entries (-got +want):\n%s", diff)
	}
	if turn.EndpointID != "ep_a" || !turn.At.Equal(got.OpenedAt) || turn.Tells != store.NoticeOpened || !turn.Told {
		t.Errorf("turn %+v, want whose it is, when, and that it is told", turn)
	}
	var told []string
	for _, n := range turn.Notices {
		told = append(told, n.ChannelID)
		if n.Kind != store.NoticeOpened || n.IncidentID != got.ID || n.EntryID != entry.ID || n.ID == "" || !n.DueAt.Equal(got.OpenedAt) {
			t.Errorf("notice %+v, want the opening of %s, due at once", n, got.ID)
		}
	}
	if diff := cmp.Diff(told, []string{"ch_a", "ch_b"}); diff != "" {
		t.Errorf("channels told (-got +want):\n%s", diff)
	}
}

func TestAdvanceResolvesAnIncidentByWhatProvesRecovery(t *testing.T) {
	open := store.Incident{ID: "inc_a", Kind: store.IncidentEndpoint, StartedAt: start}
	down := store.State{Status: store.StatusDown}
	for verdict, want := range map[probe.Verdict]bool{
		probe.Up: true, probe.Degraded: true, probe.Gated: true, probe.Unknown: false, probe.Down: false,
	} {
		a, _ := advance(store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}}, down, &open, seen(5, verdict))
		over := ended(a.Turns)
		if got := over != nil; got != want || opened(a.Turns) != nil || len(noticed(a.Turns)) > 0 != want {
			t.Errorf("%s during an outage: %+v, want it resolved: %v", verdict, a, want)
		}
		if over != nil && (!over.ResolvedAt.Equal(minutes(5)) || over.Resolution != store.ResolutionRecovered) {
			t.Errorf("%s: %+v, want it recovered when the check started", verdict, over)
		}
	}
	if open.ResolvedAt != nil {
		t.Error("Advance changed the incident it was given")
	}
	pending := store.Judge{Check: func(_ store.Endpoint, s store.State, _ store.Check) store.State {
		s.Status = store.StatusPending
		return s
	}}
	standing := at(store.Endpoint{}, store.State{})
	standing.Open = &open
	if a := store.Advance(standing, seen(5, probe.Down), pending, now); len(a.Turns) != 0 {
		t.Error("a pending status resolved an incident: nothing was proved")
	}
}

func TestAdvanceNotesWhatFollowsFromTheCheckAlone(t *testing.T) {
	low, high := uint64(10), uint64(11)
	prev := store.State{LastCheckID: "chk_prev", LastCheckAt: minutes(5), Kind: probe.KindEVM, Era: probe.EraLegacy, Height: &high, HeightSince: start}
	c := seen(6, probe.Up)
	c.Result.Kind, c.Result.Facts.Height = probe.KindAuto, &low
	_, got := advance(store.Endpoint{}, prev, nil, c)
	if got.LastCheckID != c.ID || !got.LastCheckAt.Equal(minutes(6)) || got.LastVerdict != probe.Up || got.LastDuration != time.Second {
		t.Errorf("last check %s at %v, %s in %v, want this one", got.LastCheckID, got.LastCheckAt, got.LastVerdict, got.LastDuration)
	}
	if got.Kind != probe.KindEVM || got.Era != probe.EraLegacy || *got.Height != 11 || !got.HeightSince.Equal(start) {
		t.Errorf("state %+v, want what was known better kept", got)
	}
	late := seen(4, probe.Up)
	if _, got := advance(store.Endpoint{}, prev, nil, late); got.LastCheckID != "chk_prev" {
		t.Errorf("last check %s, want the one that started last", got.LastCheckID)
	}
}

func TestAdvanceJudgesNoPausedEndpoint(t *testing.T) {
	never := store.Judge{
		Check: func(store.Endpoint, store.State, store.Check) store.State { panic("judged") },
		Vote:  func(store.Endpoint, store.State, []store.Place, time.Time) store.State { panic("counted votes") },
	}
	// The incident of before was resolved by the pause, the status is still what it was.
	prev := store.State{Status: store.StatusDown, Since: start}
	c := seen(5, probe.Down)
	standing := at(store.Endpoint{Paused: true, Channels: []string{"ch_a"}}, prev)
	a := store.Advance(standing, c, never, now)
	if len(a.Turns) != 0 || len(a.Notices) != 0 {
		t.Errorf("Advance = %+v, want nothing but a state", a)
	}
	if got := standing.Places[0].State; got.Status != store.StatusDown || got.LastCheckID != c.ID {
		t.Errorf("state %+v, want the status as it was and the last check noted", got)
	}
	if diff := cmp.Diff(standing.State, prev); diff != "" {
		t.Errorf("state of the endpoint (-got +want):\n%s", diff)
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
		standing := at(test.before, down)
		standing.Places = append(standing.Places, store.Place{EndpointID: "ep_a", Location: "elsewhere", State: down})
		standing.Open = open
		a := store.Amend(standing, test.after, minutes(1))
		for _, p := range standing.Places {
			if diff := cmp.Diff(p.State, test.state); diff != "" {
				t.Errorf("%s: state at %s (-got +want):\n%s", name, p.Location, diff)
			}
		}
		whole := store.State{Status: test.state.Status, Since: test.state.Since, Failure: test.state.Failure}
		if diff := cmp.Diff(standing.State, whole); diff != "" {
			t.Errorf("%s: state of the endpoint (-got +want):\n%s", name, diff)
		}
		if diff := cmp.Diff(standing.Endpoint, test.after); diff != "" {
			t.Errorf("%s: endpoint (-got +want):\n%s", name, diff)
		}
		if got := ended(a.Turns) != nil; got != test.resolved || len(noticed(a.Turns)) > 0 != test.resolved {
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
		a, next := advance(e, s, nil, promised(i, step.hash))
		if (a.Contract != nil) != step.added || len(a.Notices) != step.noticed || len(a.Turns) != 0 {
			t.Errorf("check %d with %s: contract %+v, %d notices, want one: %v, and %d", i, step.hash, a.Contract, len(a.Notices), step.added, step.noticed)
		}
		s = next
	}
	if _, late := advance(e, s, nil, promised(0, "z")); late.Suspect != nil {
		t.Error("a late check casts suspicion")
	}
	e.Paused = true
	if a, next := advance(e, s, nil, promised(20, "z")); a.Contract != nil || next.Suspect != nil {
		t.Error("a paused endpoint's tool list is judged")
	}
}

// A list that is another one at every check could hide a change for ever.
func TestAdvanceBelievesAToolListThatNeverComesTwice(t *testing.T) {
	e := store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}, ContractNotices: true}
	_, s := advance(e, store.State{Status: store.StatusUp}, nil, promised(0, "a"))
	var believed []int
	for minute := 1; minute <= 10; minute++ {
		a, next := advance(e, s, nil, promised(minute, fmt.Sprint("nonce", minute)))
		if a.Contract != nil {
			believed = append(believed, minute)
			a.Contract.Compare(nil)
			if !strings.HasPrefix(a.Contract.Event.Title, "At every check another list.") {
				t.Errorf("title %q", a.Contract.Event.Title)
			}
		}
		s = next
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
		a, next := advance(e, s, nil, promised(minute, fmt.Sprint(minute/2)))
		if a.Contract != nil && a.Contract.Event != nil {
			changes++
		}
		notices += len(a.Notices)
		s = next
	}
	if changes != 29 || notices != 5 {
		t.Errorf("%d notices of %d changes, want 5 of 29", notices, changes)
	}
	for _, minute := range []int{70, 71} {
		_, s = advance(e, s, nil, promised(minute, "later"))
	}
	if s.ContractTold.Count != 1 {
		t.Errorf("%d notices in the next hour, want 1", s.ContractTold.Count)
	}
}

func TestAdvanceDoesNotChangeTheStateItWasGiven(t *testing.T) {
	e := store.Endpoint{ID: "ep_a"}
	_, first := advance(e, store.State{}, nil, promised(0, "a"))
	seen := first.Contracts[0].Seen
	advance(e, first, nil, promised(1, "a"))
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
		standing := at(before, up)
		store.Amend(standing, after, start)
		got := standing.Places[0].State
		if again := got.Status == store.StatusPending && got.Memory.Head == nil; again != c.again {
			t.Errorf("a changed %s starts again: %v, want %v", name, again, c.again)
		}
	}
}

// from returns a check of another place.
func from(location string, minute int, verdict probe.Verdict) store.Check {
	return store.NewCheck("ep_a", location, minutes(minute), seen(minute, verdict).Result)
}

func TestAdvanceCountsTheVotesOfPlaces(t *testing.T) {
	standing := &store.Standing{Endpoint: store.Endpoint{ID: "ep_a", Quorum: 2, Channels: []string{"ch_a"}}}
	for i, step := range []struct {
		check              store.Check
		status             store.Status
		opens, resolves    bool
		places             int
		atPlace            store.Status
		whatIsTrueOfItThen string
	}{
		{from("b", 0, probe.Down), store.StatusDown, true, false, 1, store.StatusDown, "a lone place is believed, whatever the quorum"},
		{from("a", 1, probe.Up), store.StatusUp, false, true, 2, store.StatusUp, "with another one it is not enough"},
		{from("c", 2, probe.Up), store.StatusUp, false, false, 3, store.StatusUp, "still one of three"},
		{from("c", 3, probe.Down), store.StatusDown, true, false, 3, store.StatusDown, "two of three are"},
		{from("a", 4, probe.Down), store.StatusDown, false, false, 3, store.StatusDown, "all are down"},
		{from("a", 5, probe.Up), store.StatusDown, false, false, 3, store.StatusUp, "two are still down"},
		{from("b", 6, probe.Up), store.StatusUp, false, true, 3, store.StatusUp, "one is left"},
	} {
		a := store.Advance(standing, step.check, believe, now)
		if open := opened(a.Turns); open != nil {
			standing.Open = open
		}
		if ended(a.Turns) != nil {
			standing.Open = nil
		}
		place := standing.Places[slices.IndexFunc(standing.Places, func(p store.Place) bool { return p.Location == step.check.Location })]
		if standing.State.Status != step.status || (opened(a.Turns) != nil) != step.opens || (ended(a.Turns) != nil) != step.resolves ||
			len(standing.Places) != step.places || place.State.Status != step.atPlace || place.EndpointID != "ep_a" {
			t.Errorf("step %d, %s: %+v, %+v", i+1, step.whatIsTrueOfItThen, standing, a)
		}
		if s := standing.State; s.LastCheckID != "" || !s.LastCheckAt.IsZero() {
			t.Errorf("step %d: the endpoint's own state is %+v, want its status alone", i+1, s)
		}
	}
	if !slices.IsSortedFunc(standing.Places, func(a, b store.Place) int { return strings.Compare(a.Location, b.Location) }) {
		t.Errorf("places %+v, want them by location", standing.Places)
	}
}

func TestAPlaceThatAnEndpointIsNotProbedFromHasNoSay(t *testing.T) {
	standing := &store.Standing{
		Endpoint: store.Endpoint{ID: "ep_a", Locations: []string{"a"}, Quorum: 1},
		State:    store.State{Status: store.StatusDown},
		Places: []store.Place{
			{EndpointID: "ep_a", Location: "a", State: store.State{Status: store.StatusUp}},
			{EndpointID: "ep_a", Location: "left", State: store.State{Status: store.StatusDown}},
		},
	}
	store.Advance(standing, from("a", 1, probe.Up), believe, now)
	if standing.State.Status != store.StatusUp || len(standing.Places) != 2 {
		t.Errorf("standing %+v, want it up, with the other place as it was", standing)
	}
	store.Advance(standing, from("left", 2, probe.Down), believe, now)
	if standing.State.Status != store.StatusUp || standing.Places[1].State.LastCheckAt.IsZero() {
		t.Errorf("standing %+v, want it up, and the check noted where it was made", standing)
	}
}

// A clock that was ahead and is put right must not stop judging until it is as late again.
func TestAClockThatIsSetBackDoesNotMakeEveryCheckALateOne(t *testing.T) {
	for name, test := range map[string]struct {
		clock   time.Time
		believe bool
	}{
		"an hour back":            {minutes(0), true},
		"as far as clocks differ": {minutes(59), false},
		"a check that is late":    {minutes(60), false},
	} {
		prev := store.State{LastCheckID: "chk_prev", LastCheckAt: minutes(60)}
		standing := at(store.Endpoint{ID: "ep_a"}, prev)
		store.Advance(standing, seen(0, probe.Up), believe, test.clock)
		if got := standing.Places[0].State.LastCheckAt.Equal(minutes(0)); got != test.believe {
			t.Errorf("%s: the check is taken for the latest: %v, want %v", name, got, test.believe)
		}
	}
}

// Places that see different replicas of a server would take its list for one that changes all the time.
func TestOnePlaceSpeaksForTheToolList(t *testing.T) {
	standing := &store.Standing{Endpoint: store.Endpoint{ID: "ep_a"}}
	say := func(location string, minute int, hash string) bool {
		c := store.NewCheck("ep_a", location, minutes(minute), promised(minute, hash).Result)
		return store.Advance(standing, c, believe, now).Contract != nil
	}
	for i, step := range []struct {
		location string
		minute   int
		hash     string
		kept     bool
	}{
		{"b", 0, "one", true},  // the only one there is
		{"a", 1, "two", false}, // the first by name, and what b has seen was another
		{"a", 2, "two", true},
		{"b", 3, "three", false}, // a has been here
		{"b", 4, "three", false},
		{"b", 59, "three", false},
		{"b", 63, "two", false},   // an hour later a is gone, and b goes on from what it saw
		{"b", 64, "three", false}, // this is the first time
		{"b", 65, "three", true},
	} {
		if got := say(step.location, step.minute, step.hash); got != step.kept {
			t.Errorf("step %d, from %s: a contract is kept: %v, want %v", i+1, step.location, got, step.kept)
		}
	}
}

func TestMergedTakesTheStatusOfAllAndTheRestOfTheLatest(t *testing.T) {
	whole := store.State{Status: store.StatusDown, Since: start, Failure: &probe.Failure{Step: "vote"}}
	if diff := cmp.Diff(store.Merged(whole, nil), whole); diff != "" {
		t.Errorf("without a place (-got +want):\n%s", diff)
	}
	places := []store.Place{
		{Location: "a", State: store.State{Status: store.StatusUp, LastCheckID: "chk_a", LastCheckAt: minutes(1), Era: probe.EraLegacy}},
		{Location: "b", State: store.State{Status: store.StatusDown, LastCheckID: "chk_b", LastCheckAt: minutes(2), Era: probe.EraModern}},
		{Location: "c", State: store.State{Status: store.StatusUp, LastCheckID: "chk_c", LastCheckAt: minutes(2)}},
	}
	want := whole
	want.LastCheckID, want.LastCheckAt, want.Era = "chk_b", minutes(2), probe.EraModern
	if diff := cmp.Diff(store.Merged(whole, places), want); diff != "" {
		t.Errorf("of three places (-got +want):\n%s", diff)
	}
}
