package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func TestAStateRemembersItsChangesOfTheLastHour(t *testing.T) {
	standing := at(store.Endpoint{ID: "ep_a"}, store.State{Status: store.StatusUp})
	step := func(minute int, verdict probe.Verdict) {
		store.Advance(standing, seen(minute, verdict), believe, now)
	}
	after := func(minutesOf ...int) []time.Time {
		var times []time.Time
		for _, m := range minutesOf {
			times = append(times, minutes(m).Add(time.Second))
		}
		return times
	}
	for _, s := range []struct {
		minute  int
		verdict probe.Verdict
		want    []time.Time
		why     string
	}{
		{0, probe.Up, nil, "nothing changed"},
		{1, probe.Down, after(1), "well to not well"},
		{2, probe.Degraded, after(1), "from bad to bad"},
		{3, probe.Unknown, after(1), "what proves nothing changes nothing"},
		{4, probe.Gated, after(1), "nor does what comes after it"},
		{5, probe.Up, after(1, 5), "and back"},
		{61, probe.Up, after(1, 5), "an hour is not over yet"},
		{62, probe.Up, after(5), "the first is forgotten"},
		{63, probe.Down, after(5, 63), "and another one comes"},
		{200, probe.Down, nil, "all are forgotten"},
	} {
		step(s.minute, s.verdict)
		if diff := cmp.Diff(standing.State.Flips, s.want, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("minute %d, %s (-got +want):\n%s", s.minute, s.why, diff)
		}
	}
	for i := range 60 {
		step(210+i, []probe.Verdict{probe.Up, probe.Down}[i%2])
	}
	if n := len(standing.State.Flips); n != 20 || !standing.State.Flips[19].Equal(minutes(269).Add(time.Second)) {
		t.Errorf("%d changes are remembered, want the last 20", n)
	}
}

func TestWhatWasDeclaredOverIsForgottenWhenItIsUpOrWorse(t *testing.T) {
	hushed := &store.Hushed{IncidentID: "inc_a", Severity: store.StatusGated}
	for verdict, kept := range map[probe.Verdict]bool{
		probe.Up: false, probe.Down: false, probe.Gated: true, probe.Degraded: true, probe.Unknown: true,
	} {
		standing := at(store.Endpoint{ID: "ep_a"}, store.State{Status: store.StatusGated})
		standing.State.Hushed = hushed
		var before *store.Hushed
		judge := believe
		judge.Course = func(s store.Situation) []store.Turn { before = s.Before.Hushed; return nil }
		store.Advance(standing, seen(1, verdict), judge, now)
		if got := standing.State.Hushed != nil; got != kept || before != hushed {
			t.Errorf("%s: it is remembered: %v, want %v, and the rule sees what it was: %+v", verdict, got, kept, before)
		}
	}
}

// chainTurn is a turn about the chain of two endpoints, as the rule makes it.
func chainTurn(entries ...store.EntryKind) store.Turn {
	t := store.Turn{
		EndpointID: "ep_b", At: minutes(5),
		Incident: store.Incident{ID: "inc_mine", Kind: store.IncidentChain, Subject: "chain/evm 1", Severity: store.StatusDegraded},
		Tells:    store.NoticeOpened, Told: true,
		Notices: []store.Notice{
			{ID: "ntc_1", IncidentID: "inc_mine", ChannelID: "ch_told", Kind: store.NoticeOpened},
			{ID: "ntc_2", IncidentID: "inc_mine", ChannelID: "ch_other", Kind: store.NoticeOpened},
		},
	}
	for _, kind := range entries {
		t.Entries = append(t.Entries, store.Entry{ID: "ent_1", IncidentID: "inc_mine", Kind: kind, At: minutes(5), Severity: store.StatusDegraded})
	}
	return t
}

func TestWhoJoinsASharedIncidentIsInTheOneThatIsOpen(t *testing.T) {
	shared := store.Incident{ID: "inc_open", Kind: store.IncidentChain, Subject: "chain/evm 1", Severity: store.StatusDown, Told: []string{"ch_told"}}
	given := chainTurn(store.EntryOpened)
	got := given.Joined(shared, "node b")
	want := given
	want.Incident = shared
	want.Entries = []store.Entry{{ID: "ent_1", IncidentID: "inc_open", Kind: store.EntryJoined, At: minutes(5), Text: "node b"}}
	want.Notices = []store.Notice{{ID: "ntc_2", IncidentID: "inc_open", ChannelID: "ch_other", Kind: store.NoticeOpened}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("Joined (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(given, chainTurn(store.EntryOpened)); diff != "" {
		t.Errorf("Joined changed the turn it was given (-got +want):\n%s", diff)
	}
}

func TestWithTheLastThatLeavesASharedIncidentIsOver(t *testing.T) {
	shared := store.Incident{ID: "inc_open", Kind: store.IncidentChain, StartedAt: start}
	end := minutes(4)
	leaving := chainTurn(store.EntryLeft)
	leaving.Incident.ResolvedAt, leaving.Incident.Resolution, leaving.Withdraw = &end, store.ResolutionPaused, true

	stays := leaving.Left(shared, "node b", false)
	if stays.Incident.ResolvedAt != nil || stays.Notices != nil || stays.Tells != "" || stays.Withdraw || stays.Entries[0].Text != "node b" {
		t.Errorf("with others in it: %+v, want nothing but a line", stays)
	}
	over := leaving.Left(shared, "node b", true)
	if over.Incident.ID != "inc_open" || over.Incident.ResolvedAt == nil || !over.Incident.ResolvedAt.Equal(end) || over.Incident.Resolution != store.ResolutionPaused {
		t.Errorf("with the last: %+v, want it over", over.Incident)
	}
	var kinds []store.EntryKind
	for _, e := range over.Entries {
		kinds = append(kinds, e.Kind)
		if e.IncidentID != "inc_open" || e.ID == "" {
			t.Errorf("entry %+v, want it of the shared one", e)
		}
	}
	if diff := cmp.Diff(kinds, []store.EntryKind{"left", "resolved"}); diff != "" || len(over.Notices) != 2 {
		t.Errorf("%d notices, entries (-got +want):\n%s", len(over.Notices), diff)
	}
	said := chainTurn(store.EntryLeft, store.EntryResolved)
	if got := said.Left(shared, "", true); len(got.Entries) != 2 || !got.Incident.ResolvedAt.Equal(minutes(5)) {
		t.Errorf("what says its end: %+v, want no other line, and the end of the check", got)
	}
	if got := said.Left(shared, "", false); got.Entries[1].Kind != store.EntryLeft {
		t.Errorf("what says its end too early: %+v", got.Entries)
	}
}

func TestPausingAnEndpointEndsWhatNobodyWouldEnd(t *testing.T) {
	standing := at(store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}}, store.State{Status: store.StatusDown})
	standing.Open = &store.Incident{ID: "inc_own", Kind: store.IncidentEndpoint, StartedAt: start}
	standing.Others = []store.Incident{
		{ID: "inc_expiring", Kind: store.IncidentExpiring, StartedAt: start},
		{ID: "inc_objective", Kind: store.IncidentObjective, StartedAt: start},
		{ID: "inc_chain", Kind: store.IncidentChain, StartedAt: start, Told: []string{"ch_b"}},
	}
	a := store.Amend(standing, store.Endpoint{ID: "ep_a", Channels: []string{"ch_a"}, Paused: true}, minutes(9))
	type turn struct {
		ID     string
		Leaves bool
		To     string
	}
	var got []turn
	for _, t2 := range a.Turns {
		if t2.Incident.ResolvedAt == nil || t2.Incident.Resolution != store.ResolutionPaused || !t2.Withdraw || t2.Tells != store.NoticeResolved ||
			t2.EndpointID != "ep_a" || len(t2.Notices) != 1 || t2.Notices[0].EntryID == "" || t2.Notices[0].EntryID != t2.Entries[0].ID {
			t.Errorf("turn %+v, want one that ends it and says so", t2)
			continue
		}
		got = append(got, turn{t2.Incident.ID, t2.Leaves, t2.Notices[0].ChannelID})
	}
	if diff := cmp.Diff(got, []turn{{"inc_own", false, "ch_a"}, {"inc_expiring", false, "ch_a"}, {"inc_chain", true, "ch_b"}}); diff != "" {
		t.Errorf("turns (-got +want):\n%s", diff)
	}
}

func TestUnderMaintenanceNothingOpensAndNothingIsTold(t *testing.T) {
	turns := func(opens, reopens bool, kind store.NoticeKind, entries ...store.Entry) []store.Turn {
		i := store.Incident{ID: "inc_a", Kind: store.IncidentEndpoint}
		return []store.Turn{{
			Incident: i, Opens: opens, Reopens: reopens, Entries: entries, Tells: kind,
			Notices: []store.Notice{{ChannelID: "ch_a", Kind: kind}},
		}}
	}
	line := store.Entry{Kind: store.EntrySeverity}
	for name, test := range map[string]struct {
		turns         []store.Turn
		left, notices int
		tells         store.NoticeKind
	}{
		"an opening":             {turns(true, false, store.NoticeOpened, line), 0, 0, ""},
		"a reopening":            {turns(false, true, store.NoticeOpened, line), 0, 0, ""},
		"a change":               {turns(false, false, store.NoticeUpdated, line), 1, 0, ""},
		"a change without words": {turns(false, false, store.NoticeUpdated), 0, 0, ""},
		"an end":                 {turns(false, false, store.NoticeResolved, line), 1, 1, store.NoticeResolved},
	} {
		judge := believe
		judge.Course = func(store.Situation) []store.Turn { return test.turns }
		judge.Maintained = func(id string, at time.Time) bool { return id == "ep_a" && at.Equal(minutes(1)) }
		a := store.Advance(at(store.Endpoint{ID: "ep_a"}, store.State{Status: store.StatusUp}), seen(1, probe.Down), judge, now)
		if len(a.Turns) != test.left || len(noticed(a.Turns)) != test.notices || len(a.Turns) > 0 && a.Turns[0].Tells != test.tells {
			t.Errorf("%s: %+v", name, a.Turns)
		}
	}
}

func TestAMaintainedCheckCountsInNoOtherWay(t *testing.T) {
	judge := believe
	judge.Maintained = func(_ string, at time.Time) bool { return at.Equal(minutes(1)) || at.Equal(minutes(41)) }
	l := store.Ledger{Standings: map[string]*store.Standing{"ep_a": at(store.Endpoint{ID: "ep_a"}, store.State{Status: store.StatusUp})}, Now: now}
	e := l.Enter([]store.Check{seen(0, probe.Up), seen(1, probe.Down), seen(41, probe.Down)}, judge)
	if want := (store.Counts{Up: 1, Maintenance: 1}); len(e.Hours) != 1 || e.Hours[0].Counts != want || e.Hours[0].Classes != nil {
		t.Errorf("hours that are over %+v, want %+v", e.Hours, want)
	}
	if want := (store.Counts{Maintenance: 1}); e.Places[0].Hour.Counts != want {
		t.Errorf("running hour %+v, want %+v", e.Places[0].Hour.Counts, want)
	}
	if e.Checks[0].Maintenance || !e.Checks[1].Maintenance || !e.Checks[2].Maintenance {
		t.Errorf("checks %+v, want two marked", e.Checks)
	}
}
