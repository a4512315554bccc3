package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// ruled is judge with a rule for incidents.
func ruled(course func(store.Situation) []store.Turn) store.Judge {
	j := judge
	j.Course = course
	return j
}

// recordBy keeps checks as one group, judged otherwise than usual.
func recordBy(t testing.TB, s store.Store, j store.Judge, checks ...store.Check) []store.Outcome {
	t.Helper()
	outcomes, err := s.Record(t.Context(), checks, j)
	if err != nil {
		t.Fatalf("Record: %v", err)
	}
	return outcomes
}

// tellings returns one notice for each channel of an endpoint.
func tellings(s store.Situation, kind store.NoticeKind, due time.Duration) []store.Notice {
	notices := store.NoticesOf(store.Incident{}, kind, s.Standing.Endpoint.Channels, s.Check.Ended())
	for i := range notices {
		notices[i].DueAt = notices[i].DueAt.Add(due)
	}
	return notices
}

// opens is a rule that opens an incident with a reminder in half an hour, and changes, ends or reopens the one that is open as the
// verdict says: degraded changes it, up ends it.
func opens(s store.Situation) []store.Turn {
	at, open := s.Check.Ended(), s.Standing.Open
	switch {
	case open == nil && s.Check.Result.Verdict == probe.Down:
		i := store.OpenIncident(s)
		i.Told = nil
		turn := store.Turn{
			Incident: i, Opens: true, Entries: []store.Entry{{At: at, Kind: store.EntryOpened, Severity: i.Severity, Cause: &i.Cause}},
			Notices: append(tellings(s, store.NoticeOpened, 0), tellings(s, store.NoticeReminder, 30*time.Minute)...),
			Tells:   store.NoticeOpened, Told: true,
		}
		if hushed := s.Before.Hushed; hushed != nil {
			turn.Incident.ID, turn.Opens, turn.Reopens = hushed.IncidentID, false, true
			turn.Entries[0].Kind = store.EntryReopened
		}
		return []store.Turn{turn}
	case open != nil && s.Check.Result.Verdict == probe.Degraded:
		i := *open
		i.Severity, i.Cause, i.SeenFrom = store.StatusDegraded, *s.Check.Result.Failure, []string{"fra", "nyc"}
		return []store.Turn{{
			Incident: i, Entries: []store.Entry{{At: at, Kind: store.EntrySeverity, Severity: i.Severity, Cause: &i.Cause}},
			Notices: tellings(s, store.NoticeUpdated, 5*time.Minute), Tells: store.NoticeUpdated, Told: true,
		}}
	case open != nil && s.Check.Result.Verdict == probe.Up:
		i := *store.Resolve(*open, at, s.Standing.State.Since, store.ResolutionRecovered)
		return []store.Turn{{
			Incident: i, Entries: []store.Entry{{At: at, Kind: store.EntryResolved}},
			Notices: tellings(s, store.NoticeResolved, 0), Tells: store.NoticeResolved, Told: true, Withdraw: true,
		}}
	}
	return nil
}

func testTurns(t *testing.T, fresh func(t testing.TB) Database) {
	by := ruled(opens)

	t.Run("an incident goes through its course, and the rule does not touch what people did", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		id := recordBy(t, s, by, checkAt(e, start, probe.Down))[0].Opened
		act(t, s, id, store.Act{Kind: store.ActAcknowledge, At: minutes(1)})
		act(t, s, id, store.Act{Kind: store.ActSnooze, At: minutes(1), Until: minutes(60)})
		worse := checkAt(e, minutes(2), probe.Degraded)
		worse.Result.Failure = &probe.Failure{Step: "initialize", Class: probe.ClassSlow, Message: "9 s"}
		recordBy(t, s, by, worse)
		acknowledged, snoozed := minutes(1), minutes(60)
		want := store.Incident{
			ID: id, Kind: store.IncidentEndpoint, Subject: e.ID, EndpointID: e.ID, Slug: e.Slug, Name: e.Name,
			Severity: store.StatusDegraded, Worst: store.StatusDown, StartedAt: start, OpenedAt: start.Add(80 * time.Millisecond),
			Cause: *worse.Result.Failure, CheckID: checkAt(e, start, probe.Down).ID, SeenFrom: []string{"fra", "nyc"},
			AcknowledgedAt: &acknowledged, AcknowledgedBy: "ops", SnoozedUntil: &snoozed,
		}
		if diff := cmp.Diff(incident(t, s, id), want); diff != "" {
			t.Errorf("changed incident (-got +want):\n%s", diff)
		}
		if out := recordBy(t, s, by, checkAt(e, minutes(3), probe.Up))[0]; out.Resolved != id {
			t.Errorf("outcome %+v, want it to resolve %s", out, id)
		}
		if i := incident(t, s, id); i.ResolvedAt == nil || i.Resolution != store.ResolutionRecovered || i.AcknowledgedBy != "ops" {
			t.Errorf("incident %+v, want it recovered and what was done about it still there", i)
		}
	})

	t.Run("several turns of one incident in one group are kept in order", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		out := recordBy(t, s, by,
			checkAt(e, start, probe.Down), checkAt(e, minutes(1), probe.Degraded), checkAt(e, minutes(2), probe.Up), checkAt(e, minutes(3), probe.Down))
		if diff := cmp.Diff(kindsOf(timeline(t, s, out[0].Opened)), []store.EntryKind{"opened", "severity", "resolved"}); diff != "" {
			t.Errorf("timeline of the first (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(kindsOf(timeline(t, s, out[3].Opened)), []store.EntryKind{"opened"}); diff != "" {
			t.Errorf("timeline of the second (-got +want):\n%s", diff)
		}
		if open := incident(t, s, out[3].Opened); open.ResolvedAt != nil {
			t.Errorf("second incident %+v, want it open", open)
		}
	})

	t.Run("reminders are kept ahead and taken back with the end", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		recordBy(t, s, by, checkAt(e, start, probe.Down))
		if n := pending(t, s); n != 2 {
			t.Fatalf("%d notices wait, want the opening and a reminder", n)
		}
		settleAll(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true})
		wantLeased(t, s, minutes(29), 0)
		recordBy(t, s, by, checkAt(e, minutes(29), probe.Up))
		d := wantLeased(t, s, minutes(60), 1)[0]
		wantKinds(t, d, store.NoticeResolved)
		if d.Entry == nil || d.Entry.Kind != store.EntryResolved {
			t.Errorf("entry %+v, want the end", d.Entry)
		}
	})

	t.Run("an incident of the usual rule takes reminders back as well when it ends", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		recordBy(t, s, by, checkAt(e, start, probe.Down))
		record(t, s, checkAt(e, minutes(1), probe.Up))
		wantKinds(t, wantLeased(t, s, minutes(60), 1)[0], store.NoticeOpened, store.NoticeResolved)
	})

	t.Run("what was declared over is open again when it is worse, and told again", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		id := recordBy(t, s, by, checkAt(e, start, probe.Down))[0].Opened
		act(t, s, id, store.Act{Kind: store.ActResolve, At: minutes(1)})
		settleAll(t, s, wantLeased(t, s, minutes(2), 1)[0], store.Settlement{At: minutes(2), Sent: true, Ref: "C1/1"})
		recordBy(t, s, by, checkAt(e, minutes(3), probe.Down))
		i := incident(t, s, id)
		if i.ResolvedAt != nil || i.Resolution != "" {
			t.Errorf("incident %+v, want it open again", i)
		}
		wantKinds(t, wantLeased(t, s, minutes(4), 1)[0], store.NoticeOpened)
		if diff := cmp.Diff(kindsOf(timeline(t, s, id)), []store.EntryKind{"opened", "resolved", "sent", "reopened"}); diff != "" {
			t.Errorf("timeline (-got +want):\n%s", diff)
		}
	})

	t.Run("the rule sees who was told, other incidents, and what is remembered of changes", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev, late := newChannel(t, s, "ops"), newChannel(t, s, "dev"), newChannel(t, s, "late")
		e := newEndpoint(t, s, "Weather", to(ops, dev), func(e *store.Endpoint) {
			e.Alerting = store.Alerting{RemindEvery: time.Hour, Escalation: []store.EscalationStep{{After: time.Minute, Channels: []string{late.ID}}}}
		})
		subscribe(t, s, "a@example.com")
		recordBy(t, s, by, checkAt(e, start, probe.Up), checkAt(e, minutes(1), probe.Down))
		_, _, err := s.Raise(t.Context(), store.Incident{
			Kind: store.IncidentObjective, Subject: store.SubjectOfObjective(e.ID, "fast"), EndpointID: e.ID, Severity: store.StatusDegraded,
			StartedAt: minutes(1),
		}, "", "", []string{dev.ID})
		if err != nil {
			t.Fatal(err)
		}
		var seen store.Situation
		recordBy(t, s, ruled(func(s store.Situation) []store.Turn { seen = s; return nil }), checkAt(e, minutes(2), probe.Down))
		if seen.Standing.Open == nil || len(seen.Standing.Others) != 1 {
			t.Fatalf("standing %+v, want its own incident and another one", seen.Standing)
		}
		told := map[string][]string{"own": seen.Standing.Open.Told, "objective": seen.Standing.Others[0].Told}
		if diff := cmp.Diff(told, map[string][]string{"own": {ops.ID, dev.ID}, "objective": {dev.ID}}, anyOrder); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(seen.Before.Flips, []time.Time{minutes(1).Add(80 * time.Millisecond)}); diff != "" {
			t.Errorf("changes (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(seen.Standing.Endpoint.Alerting, e.Alerting); diff != "" || seen.Before.Hushed != nil {
			t.Errorf("alerting (-got +want):\n%s, hushed %+v", diff, seen.Before.Hushed)
		}
		act(t, s, seen.Standing.Open.ID, store.Act{Kind: store.ActResolve, At: minutes(3)})
		recordBy(t, s, ruled(func(s store.Situation) []store.Turn { seen = s; return nil }), checkAt(e, minutes(4), probe.Down))
		want := &store.Hushed{IncidentID: latest(t, s, e), Severity: store.StatusDown}
		if diff := cmp.Diff(seen.Before.Hushed, want); diff != "" || seen.Standing.Open != nil {
			t.Errorf("hushed (-got +want):\n%s, open %+v", diff, seen.Standing.Open)
		}
		recordBy(t, s, by, checkAt(e, minutes(5), probe.Up))
		recordBy(t, s, ruled(func(s store.Situation) []store.Turn { seen = s; return nil }), checkAt(e, minutes(6), probe.Up))
		if seen.Before.Hushed != nil || len(seen.Before.Flips) != 2 {
			t.Errorf("once it is up: %+v, want nothing hushed and two changes", seen.Before)
		}
	})

	t.Run("an escalation that was sent counts as told", func(t *testing.T) {
		s := fresh(t).open(t)
		late := newChannel(t, s, "late")
		e := newEndpoint(t, s, "Weather")
		escalates := ruled(func(s store.Situation) []store.Turn {
			turns := opens(s)
			if len(turns) > 0 && turns[0].Opens {
				turns[0].Notices = store.NoticesOf(store.Incident{}, store.NoticeEscalation, []string{late.ID}, s.Check.Ended())
			}
			return turns
		})
		recordBy(t, s, escalates, checkAt(e, start, probe.Down))
		told := func() (told []string) {
			see := ruled(func(s store.Situation) []store.Turn { told = s.Standing.Open.Told; return nil })
			recordBy(t, s, see, checkAt(e, minutes(1+len(allChecks(t, s, e))), probe.Down))
			return told
		}
		if got := told(); len(got) != 0 {
			t.Errorf("told %v before it was sent, want nobody", got)
		}
		settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true, Ref: "C1/2"})
		if got := told(); len(got) != 1 || got[0] != late.ID {
			t.Errorf("told %v, want late", got)
		}
		act(t, s, latest(t, s, e), store.Act{Kind: store.ActResolve, At: minutes(10)})
		if d := wantLeased(t, s, minutes(11), 1)[0]; d.Notice.Kind != store.NoticeResolved || d.Ref != "C1/2" {
			t.Errorf("delivery %+v, want the end with the message to update", d)
		}
	})

	t.Run("under maintenance nothing opens, and checks count apart", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		maintained := by
		maintained.Maintained = func(id string, at time.Time) bool { return id == e.ID && !at.Before(minutes(1)) }
		recordBy(t, s, maintained, checkAt(e, start, probe.Up), checkAt(e, minutes(1), probe.Down))
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait, want none", n)
		}
		page, err := s.Incidents(t.Context(), store.IncidentFilter{})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("incidents %+v, %v, want none", page.Items, err)
		}
		wantCounts(t, s, []string{e.ID}, store.Hourly, start.Add(-time.Hour), map[string]store.Counts{e.ID: {Up: 1, Maintenance: 1}})
		recordBy(t, s, maintained, checkAt(e, minutes(120), probe.Down)) // the hour before is over
		wantCounts(t, s, []string{e.ID}, store.Hourly, start.Add(-time.Hour), map[string]store.Counts{e.ID: {Up: 1, Maintenance: 2}})
		wantCounts(t, s, []string{e.ID}, store.Daily, store.DayOf(start), map[string]store.Counts{e.ID: {Up: 1, Maintenance: 2}})
		hours := sumsOf(uptime(t, s, e, store.Hourly, start.Add(-time.Hour), minutes(180)))
		if len(hours) != 2 || hours[0].Counts != (store.Counts{Up: 1, Maintenance: 1}) {
			t.Errorf("hours %+v, want the first with one of each", hours)
		}
		var marked []bool
		for _, c := range allChecks(t, s, e) {
			marked = append(marked, c.Maintenance)
		}
		if diff := cmp.Diff(marked, []bool{true, true, false}); diff != "" {
			t.Errorf("checks under maintenance (-got +want):\n%s", diff)
		}
	})
}

var anyOrder = cmpopts.SortSlices(func(a, b string) bool { return a < b })

// latest returns the id of the latest incident about an endpoint itself.
func latest(t testing.TB, s store.Store, e store.Endpoint) string {
	t.Helper()
	page, err := s.Incidents(t.Context(), store.IncidentFilter{EndpointID: e.ID, Kinds: []store.IncidentKind{store.IncidentEndpoint}})
	if err != nil || len(page.Items) == 0 {
		t.Fatalf("Incidents = %+v, %v, want one", page, err)
	}
	return page.Items[0].ID
}
