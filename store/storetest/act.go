package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// act does something about an incident, as ops unless a says otherwise.
func act(t testing.TB, s store.Store, id string, a store.Act) store.Incident {
	t.Helper()
	if a.Author == "" {
		a.Author = "ops"
	}
	i, err := s.Act(t.Context(), id, a)
	if err != nil {
		t.Fatalf("Act(%+v): %v", a, err)
	}
	return i
}

func timeline(t testing.TB, s store.Store, id string) []store.Entry {
	t.Helper()
	entries, err := s.Timeline(t.Context(), id)
	if err != nil {
		t.Fatalf("Timeline(%q): %v", id, err)
	}
	return entries
}

func kindsOf(entries []store.Entry) []store.EntryKind {
	var kinds []store.EntryKind
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func testActs(t *testing.T, fresh func(t testing.TB) Database) {
	// begun returns a store with an incident whose opening was sent.
	begun := func(t *testing.T) (store.Store, store.Endpoint, string) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		id := recordBy(t, s, ruled(opens), checkAt(e, start, probe.Down))[0].Opened
		settleAll(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true, Ref: "C1/1"})
		return s, e, id
	}

	t.Run("who acknowledges is known, those who were told hear it, and reminders stop", func(t *testing.T) {
		s, _, id := begun(t)
		at := minutes(2)
		got := act(t, s, id, store.Act{Kind: store.ActAcknowledge, At: at.Add(7), Author: "Ada\x00", Text: "on it"})
		if got.AcknowledgedAt == nil || !got.AcknowledgedAt.Equal(at) || got.AcknowledgedBy != "Ada\uFFFD" || got.ResolvedAt != nil {
			t.Errorf("Act = %+v, want it acknowledged by Ada", got)
		}
		if diff := cmp.Diff(incident(t, s, id), got); diff != "" {
			t.Errorf("Incident (-got +returned):\n%s", diff)
		}
		d := wantLeased(t, s, minutes(60), 1)[0]
		wantKinds(t, d, store.NoticeUpdated)
		want := &store.Entry{ID: d.Notice.EntryID, IncidentID: id, At: at, Kind: store.EntryAcknowledged, Author: "Ada\uFFFD", Text: "on it"}
		if diff := cmp.Diff(d.Entry, want); diff != "" || d.Ref != "C1/1" {
			t.Errorf("entry (-got +want):\n%s, ref %q", diff, d.Ref)
		}
	})

	t.Run("a snooze puts reminders off", func(t *testing.T) {
		s, _, id := begun(t)
		got := act(t, s, id, store.Act{Kind: store.ActSnooze, At: minutes(2), Until: minutes(90)})
		if got.SnoozedUntil == nil || !got.SnoozedUntil.Equal(minutes(90)) {
			t.Errorf("Act = %+v, want it snoozed", got)
		}
		d := wantLeased(t, s, minutes(89), 1)[0]
		wantKinds(t, d, store.NoticeUpdated)
		settleAll(t, s, d, store.Settlement{At: minutes(89), Sent: true})
		wantKinds(t, wantLeased(t, s, minutes(90), 1)[0], store.NoticeReminder)
	})

	t.Run("a shorter snooze brings no reminder forward", func(t *testing.T) {
		s, _, id := begun(t)
		act(t, s, id, store.Act{Kind: store.ActSnooze, At: minutes(2), Until: minutes(5)})
		settleAll(t, s, wantLeased(t, s, minutes(6), 1)[0], store.Settlement{At: minutes(6), Sent: true})
		wantLeased(t, s, minutes(29), 0)
	})

	t.Run("what is resolved by hand is over, told, and stays so while the endpoint is down", func(t *testing.T) {
		s, e, id := begun(t)
		got := act(t, s, id, store.Act{Kind: store.ActResolve, At: minutes(2), Text: "known"})
		if got.ResolvedAt == nil || !got.ResolvedAt.Equal(minutes(2)) || got.Resolution != store.ResolutionManual {
			t.Errorf("Act = %+v, want it resolved by hand", got)
		}
		wantKinds(t, wantLeased(t, s, minutes(60), 1)[0], store.NoticeResolved)
		for _, a := range []store.ActKind{store.ActAcknowledge, store.ActResolve} {
			_, err := s.Act(t.Context(), id, store.Act{Kind: a, Author: "ops", At: minutes(3)})
			wantConflict(t, err, "act")
		}
		comment := act(t, s, id, store.Act{Kind: store.ActComment, At: minutes(3), Text: "it was DNS"})
		if comment.ResolvedAt == nil {
			t.Error("a comment opened it again")
		}
		got = act(t, s, id, store.Act{Kind: store.ActReopen, At: minutes(4)})
		if got.ResolvedAt != nil || got.Resolution != "" || got.AcknowledgedAt != nil {
			t.Errorf("Act = %+v, want it open", got)
		}
		var seen store.Situation
		recordBy(t, s, ruled(func(s store.Situation) []store.Turn { seen = s; return nil }), checkAt(e, minutes(5), probe.Down))
		if seen.Before.Hushed != nil || seen.Standing.Open == nil || seen.Standing.Open.ID != id {
			t.Errorf("standing %+v, want the incident open and nothing hushed", seen.Standing)
		}
		_, err := s.Act(t.Context(), id, store.Act{Kind: store.ActReopen, Author: "ops", At: minutes(5)})
		wantConflict(t, err, "act")
	})

	t.Run("what is open again reminds and escalates as what opens, and who heard that it was over hears it", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev, late := newChannel(t, s, "ops"), newChannel(t, s, "dev"), newChannel(t, s, "late")
		e := newEndpoint(t, s, "Weather", to(ops), func(e *store.Endpoint) {
			e.Public, e.Alerting.RemindEvery = true, 20*time.Minute
			e.Alerting.Escalation = []store.EscalationStep{{After: 10 * time.Minute, Channels: []string{ops.ID, late.ID}}}
		})
		subscribe(t, s, "a@example.com", func(u *store.Subscription) { u.Channel.Name = "sub" })
		subscribe(t, s, "b@example.com", func(u *store.Subscription) {
			u.Channel.Name, u.Severities = "other", []store.Status{store.StatusGated}
		})
		id := recordBy(t, s, ruled(opens), checkAt(e, start, probe.Down))[0].Opened
		act(t, s, id, store.Act{Kind: store.ActResolve, At: minutes(2)})
		for _, d := range wantLeased(t, s, minutes(3), 2) {
			settleAll(t, s, d, store.Settlement{At: minutes(3), Sent: true})
		}
		edit(t, s, e, to(dev)) // who has not heard of it
		act(t, s, id, store.Act{Kind: store.ActReopen, At: minutes(4)})
		told := func(at time.Time) map[string]store.NoticeKind {
			t.Helper()
			got := map[string]store.NoticeKind{}
			for _, d := range leaseAll(t, s, at) {
				got[d.Channel.Name] = d.Notice.Kind
				if d.Notice.Kind.Ahead() == (d.Entry != nil) {
					t.Errorf("delivery %+v, want the entry of what was done alone", d)
				}
				settleAll(t, s, d, store.Settlement{At: at, Sent: true})
			}
			return got
		}
		for _, want := range []struct {
			minute int
			told   map[string]store.NoticeKind
		}{
			{5, map[string]store.NoticeKind{"ops": store.NoticeUpdated, "sub": store.NoticeOpened}},
			{13, map[string]store.NoticeKind{}},
			{14, map[string]store.NoticeKind{"late": store.NoticeEscalation}},
			{23, map[string]store.NoticeKind{}},
			{24, map[string]store.NoticeKind{"ops": store.NoticeReminder}},
		} {
			if diff := cmp.Diff(told(minutes(want.minute)), want.told); diff != "" {
				t.Errorf("told at minute %d (-got +want):\n%s", want.minute, diff)
			}
		}
	})

	t.Run("an endpoint that is up has nothing to hush", func(t *testing.T) {
		s, e, id := begun(t)
		recordBy(t, s, ruled(func(store.Situation) []store.Turn { return nil }), checkAt(e, minutes(2), probe.Up))
		act(t, s, id, store.Act{Kind: store.ActResolve, At: minutes(3)})
		if out := recordBy(t, s, ruled(opens), checkAt(e, minutes(4), probe.Down)); out[0].Opened == "" || out[0].Opened == id {
			t.Errorf("outcome %+v, want another incident", out[0])
		}
	})

	t.Run("a reopened incident gives way to another one that is open", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		out := record(t, s, checkAt(e, start, probe.Down), checkAt(e, minutes(1), probe.Up), checkAt(e, minutes(2), probe.Down))
		_, err := s.Act(t.Context(), out[0].Opened, store.Act{Kind: store.ActReopen, Author: "ops", At: minutes(3)})
		wantConflict(t, err, "act")
		if i := incident(t, s, out[0].Opened); i.ResolvedAt == nil || len(timeline(t, s, i.ID)) != 2 {
			t.Errorf("incident %+v, want nothing changed", i)
		}
	})

	t.Run("what makes no sense is refused", func(t *testing.T) {
		s, _, id := begun(t)
		_, err := s.Act(t.Context(), id, store.Act{Kind: "shout", At: minutes(2), Author: "ops"})
		wantInvalid(t, err, "act")
		_, err = s.Act(t.Context(), id, store.Act{Kind: store.ActComment, At: minutes(2)})
		wantInvalid(t, err, "text", "author")
		for _, none := range []string{"", "inc_none", "\x00"} {
			_, err = s.Act(t.Context(), none, store.Act{Kind: store.ActComment, Text: "x", At: minutes(2), Author: "ops"})
			wantNotFound(t, "Act", err)
			_, err = s.Timeline(t.Context(), none)
			wantNotFound(t, "Timeline", err)
		}
	})

	t.Run("pausing ends it, with a line that says so", func(t *testing.T) {
		s, e, id := begun(t)
		pause(t, s, e)
		if i := incident(t, s, id); i.Resolution != store.ResolutionPaused {
			t.Errorf("incident %+v, want it ended by the pause", i)
		}
		entries := timeline(t, s, id)
		if last := entries[len(entries)-1]; last.Kind != store.EntryResolved || last.Text != "the endpoint was paused" {
			t.Errorf("last entry %+v, want that it was paused", last)
		}
		wantKinds(t, wantLeased(t, s, time.Now().Add(time.Hour), 1)[0], store.NoticeResolved)
	})
}

func testTimeline(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("everything that happened, oldest first", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := newEndpoint(t, s, "Weather", to(ops))
		subscribe(t, s, "a@example.com")
		by := ruled(opens)
		recordBy(t, s, by, promise(e, -1, "modern", tools("x")))
		id := recordBy(t, s, by, checkAt(e, start, probe.Down))[0].Opened
		for _, d := range leaseAll(t, s, minutes(1)) {
			end := store.Settlement{At: minutes(1), RetryAt: minutes(2), Error: "503", Took: 30 * time.Millisecond}
			if d.Subscription != nil {
				end = store.Settlement{At: minutes(1), Sent: true}
			}
			settle(t, s, d, end)
		}
		settle(t, s, wantLeased(t, s, minutes(2), 1)[0], store.Settlement{At: minutes(2), Sent: true})
		act(t, s, id, store.Act{Kind: store.ActComment, At: minutes(3), Text: "looking", Public: true})
		changed := func(minute int) store.Check {
			c := promise(e, minute, "modern", tools("y"))
			c.Result.Verdict = probe.Down
			return c
		}
		recordBy(t, s, by, changed(4), changed(5))
		recordBy(t, s, by, checkAt(e, minutes(6), probe.Up))
		got := timeline(t, s, id)
		want := []store.Entry{
			{Kind: store.EntryOpened, At: start.Add(80 * time.Millisecond), Severity: store.StatusDown, Cause: checkAt(e, start, probe.Down).Result.Failure},
			{Kind: store.EntryFailed, At: minutes(1), Text: "503", NoticeKind: string(store.NoticeOpened), ChannelID: ops.ID, ChannelName: "ops"},
			{Kind: store.EntrySent, At: minutes(2), NoticeKind: string(store.NoticeOpened), ChannelID: ops.ID, ChannelName: "ops"},
			{Kind: store.EntryComment, At: minutes(3), Author: "ops", Text: "looking", Public: true},
			{Kind: store.EntryContract, At: minutes(4)},
			{Kind: store.EntryResolved, At: minutes(6).Add(80 * time.Millisecond)},
		}
		for i := range got {
			if got[i].ID == "" || got[i].IncidentID != id {
				t.Errorf("entry %+v, want it named and of its incident", got[i])
			}
			if i < len(want) {
				want[i].ID, want[i].IncidentID, want[i].NoticeID = got[i].ID, id, got[i].NoticeID
				if want[i].Kind == store.EntryContract {
					want[i].Text, want[i].At = got[i].Text, got[i].At
				}
			}
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("timeline (-got +want):\n%s", diff)
		}
		if got[1].NoticeID == "" || got[1].NoticeID != got[2].NoticeID || got[4].Text == "" {
			t.Errorf("timeline %+v, want the notice named and the change in words", got)
		}
	})
}

func testRaise(t *testing.T, fresh func(t testing.TB) Database) {
	offline := store.Incident{Kind: store.IncidentLocation, Subject: store.SubjectOfLocation("fra"), Title: "fra is offline", Severity: store.StatusUnknown, StartedAt: start}

	t.Run("one of a subject is open at a time, and those who are told hear its end", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		newEndpoint(t, s, "Weather", to(ops))
		subscribe(t, s, "a@example.com")
		i, opened, err := s.Raise(t.Context(), offline, "", "fra has lost its network\x00", []string{ops.ID, "ch_none"})
		if err != nil || !opened {
			t.Fatalf("Raise = %v, %v, want it opened", opened, err)
		}
		want := offline
		want.ID, want.Worst, want.OpenedAt = i.ID, store.StatusUnknown, start
		if diff := cmp.Diff(i, want); diff != "" || i.ID == "" {
			t.Errorf("incident (-got +want):\n%s", diff)
		}
		again, opened, err := s.Raise(t.Context(), offline, "", "again", []string{ops.ID})
		if diff := cmp.Diff(again, i); diff != "" || opened || err != nil {
			t.Errorf("Raise once more = %v, %v (-got +want):\n%s", opened, err, diff)
		}
		d := wantLeased(t, s, minutes(1), 1)[0]
		wantKinds(t, d, store.NoticeOpened)
		if d.Entry == nil || d.Entry.Text != "fra has lost its network\uFFFD" || d.Endpoint.ID != "" {
			t.Errorf("delivery %+v, want one of no endpoint, with what was said", d)
		}
		settle(t, s, d, store.Settlement{At: minutes(1), Sent: true})
		if log, err := s.Attempts(t.Context(), store.AttemptFilter{ChannelID: ops.ID}); err != nil || len(log.Items) != 1 || log.Items[0].Title != "fra is offline" || log.Items[0].Name != "" {
			t.Errorf("attempts %+v, %v, want one with the title of the incident", log.Items, err)
		}
		over, err := s.Clear(t.Context(), offline.Subject, minutes(5), store.ResolutionRecovered, "back")
		if err != nil || over.ResolvedAt == nil || !over.ResolvedAt.Equal(minutes(5)) || over.Resolution != store.ResolutionRecovered {
			t.Errorf("Clear = %+v, %v, want it over", over, err)
		}
		wantKinds(t, wantLeased(t, s, minutes(6), 1)[0], store.NoticeResolved)
		_, err = s.Clear(t.Context(), offline.Subject, minutes(6), store.ResolutionRecovered, "")
		wantNotFound(t, "Clear", err)
		if entries := timeline(t, s, i.ID); entries[len(entries)-1].Text != "back" {
			t.Errorf("timeline %+v, want it to end with what was said", entries)
		}
		if _, opened, err := s.Raise(t.Context(), offline, "", "", nil); err != nil || !opened {
			t.Errorf("Raise after its end = %v, %v, want another one", opened, err)
		}
	})

	t.Run("a manual incident is public, has endpoints, and is told to those who have subscribed to them", func(t *testing.T) {
		s := fresh(t).open(t)
		public := func(e *store.Endpoint) { e.Public = true }
		a, b, private := newEndpoint(t, s, "a", public), newEndpoint(t, s, "b", public), newEndpoint(t, s, "c")
		all := subscribe(t, s, "all@example.com")
		only := subscribe(t, s, "b@example.com", func(u *store.Subscription) { u.All, u.Endpoints = false, []string{b.ID} })
		subscribe(t, s, "other@example.com", func(u *store.Subscription) { u.All, u.Endpoints = false, []string{"ep_other"} })
		manual := store.Incident{Kind: store.IncidentManual, Title: "Slow today", Severity: store.StatusDegraded, Endpoints: []string{a.ID, b.ID}}
		i, opened, err := s.Raise(t.Context(), manual, "Ada", "We look into it.", nil)
		if err != nil || !opened || !i.Public || i.Subject == "" || i.StartedAt.IsZero() {
			t.Fatalf("Raise = %+v, %v, %v, want a public one", i, opened, err)
		}
		if diff := cmp.Diff(i.Endpoints, []string{a.ID, b.ID}); diff != "" {
			t.Errorf("endpoints (-got +want):\n%s", diff)
		}
		if e := timeline(t, s, i.ID)[0]; e.Author != "Ada" || e.Text != "We look into it." || !e.Public || e.Severity != store.StatusDegraded {
			t.Errorf("entry %+v, want what Ada said", e)
		}
		heard := map[string]bool{}
		for _, d := range wantLeased(t, s, time.Now().Add(time.Hour), 2) {
			heard[d.Channel.ID] = true
		}
		if diff := cmp.Diff(heard, map[string]bool{all.ID: true, only.ID: true}); diff != "" {
			t.Errorf("heard by (-got +want):\n%s", diff)
		}
		inside := store.Incident{Kind: store.IncidentManual, Title: "Inside", Severity: store.StatusDown, Endpoints: []string{private.ID}}
		if i, _, err := s.Raise(t.Context(), inside, "Ada", "Nobody else's business.", nil); err != nil || i.Public {
			t.Fatalf("Raise = %+v, %v, want one that is not public", i, err)
		}
		wantLeased(t, s, time.Now().Add(time.Hour), 0) // what is about private endpoints alone is told to no stranger
		two, opened, err := s.Raise(t.Context(), store.Incident{Kind: store.IncidentManual, Title: "About nothing", Severity: store.StatusDown}, "Ada", "", nil)
		if err != nil || !opened || two.Subject == i.Subject || two.Endpoints != nil {
			t.Errorf("another one = %+v, %v, %v, want it beside the first", two, opened, err)
		}
		page, err := s.Incidents(t.Context(), store.IncidentFilter{EndpointID: b.ID, PublicOnly: true})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != i.ID {
			t.Errorf("incidents of b = %+v, %v, want the first", page.Items, err)
		}
		page, err = s.Incidents(t.Context(), store.IncidentFilter{Subject: two.Subject, Kinds: []store.IncidentKind{store.IncidentManual}})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != two.ID {
			t.Errorf("incidents of a subject = %+v, %v, want the second", page.Items, err)
		}
	})

	t.Run("what was announced of endpoints does not come to be for everybody when they go", func(t *testing.T) {
		s := fresh(t).open(t)
		public := func(e *store.Endpoint) { e.Public = true }
		hidden, other, shown := newEndpoint(t, s, "hidden"), newEndpoint(t, s, "other"), newEndpoint(t, s, "shown", public)
		everybody := subscribe(t, s, "all@example.com")
		announce := func(title string, about ...string) store.Incident {
			t.Helper()
			i := store.Incident{Kind: store.IncidentManual, Title: title, Severity: store.StatusDown, Endpoints: about, StartedAt: start}
			i, _, err := s.Raise(t.Context(), i, "Ada", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		nothing, private, two := announce("Nothing"), announce("Private", hidden.ID), announce("Two", hidden.ID, other.ID)
		mixed, open := announce("Mixed", hidden.ID, shown.ID), announce("Open", shown.ID)
		want := func(when string, titles ...string) {
			t.Helper()
			page, err := s.Incidents(t.Context(), store.IncidentFilter{PublicOnly: true})
			var got []string
			for _, i := range page.Items {
				got = append(got, i.Title)
			}
			slices.Sort(got)
			if diff := cmp.Diff(got, titles); diff != "" || err != nil {
				t.Errorf("public %s (-got +want):\n%s%v", when, diff, err)
			}
			for _, i := range []store.Incident{nothing, private, two, mixed, open} {
				if i = incident(t, s, i.ID); i.Public != slices.Contains(titles, i.Title) {
					t.Errorf("%s: %q is public: %v", when, i.Title, i.Public)
				}
			}
		}
		want("at first", "Mixed", "Nothing", "Open")
		told := map[string]bool{}
		for _, d := range leaseAll(t, s, time.Now().Add(time.Hour)) {
			told[d.Incident.Title] = d.Channel.ID == everybody.ID
			settle(t, s, d, store.Settlement{At: time.Now(), Sent: true})
		}
		if diff := cmp.Diff(told, map[string]bool{"Mixed": true, "Nothing": true, "Open": true}); diff != "" {
			t.Errorf("told of the beginning (-got +want):\n%s", diff)
		}
		for _, e := range []store.Endpoint{hidden, shown} {
			if err := s.DeleteEndpoint(t.Context(), e.Slug); err != nil {
				t.Fatal(err)
			}
		}
		want("when the endpoints are gone", "Nothing")
		if got := incident(t, s, private.ID); got.Endpoints != nil || !got.NamesEndpoints {
			t.Errorf("incident %+v, want one that is still about endpoints, of which none is left", got)
		}

		// Whoever heard of the beginning hears of the end, and of nothing in between.
		for _, i := range []store.Incident{nothing, private, two, mixed, open} {
			for _, act := range []store.Act{
				{Kind: store.ActComment, Author: "Ada", Text: "Soon.", Public: true, At: time.Now()},
				{Kind: store.ActResolve, Author: "Ada", Text: "Over.", Public: true, At: time.Now()},
			} {
				if _, err := s.Act(t.Context(), i.ID, act); err != nil {
					t.Fatal(err)
				}
			}
		}
		kinds := map[string][]store.NoticeKind{}
		for _, d := range leaseAll(t, s, time.Now().Add(time.Hour)) {
			for _, n := range append([]store.Notice{d.Notice}, d.Later...) {
				kinds[d.Incident.Title] = append(kinds[d.Incident.Title], n.Kind)
			}
		}
		over := []store.NoticeKind{store.NoticeResolved}
		if diff := cmp.Diff(kinds, map[string][]store.NoticeKind{
			"Mixed": over, "Open": over, "Nothing": {store.NoticeUpdated, store.NoticeResolved},
		}); diff != "" {
			t.Errorf("told of the end (-got +want):\n%s", diff)
		}
	})

	t.Run("what is wrong is refused", func(t *testing.T) {
		s := fresh(t).open(t)
		_, _, err := s.Raise(t.Context(), store.Incident{Kind: store.IncidentManual, Severity: "bad"}, "Ada", "", nil)
		wantInvalid(t, err, "severity", "title")
		_, _, err = s.Raise(t.Context(), store.Incident{Kind: store.IncidentObjective, Severity: store.StatusDown}, "", "", nil)
		wantInvalid(t, err, "subject")
		_, _, err = s.Raise(t.Context(), store.Incident{
			Kind: store.IncidentObjective, Subject: "ep_none/objective/x", EndpointID: "ep_none", Severity: store.StatusDown,
		}, "", "", nil)
		wantInvalid(t, err, "endpoint")
		_, _, err = s.Raise(t.Context(), store.Incident{
			Kind: store.IncidentManual, Title: "x", Endpoints: []string{"ep_none"}, Severity: store.StatusDown,
		}, "", "", nil)
		wantInvalid(t, err, "endpoints[0]")
		if n := pending(t, s); n != 0 || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%d notices wait, want none", n)
		}
	})

	t.Run("an endpoint that goes in the middle of an outage: who heard of that hears that it is over", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		e := newEndpoint(t, s, "Weather", to(ops), func(e *store.Endpoint) { e.Public = true })
		subscribe(t, s, "a@example.com", func(u *store.Subscription) { u.All, u.Endpoints = false, []string{e.ID} })
		quiet := newEndpoint(t, s, "Quiet", to(dev))
		out := recordBy(t, s, ruled(opens), checkAt(e, start, probe.Down), checkAt(quiet, start, probe.Down))
		for _, d := range wantLeased(t, s, minutes(1), 3) {
			end := store.Settlement{At: minutes(1), Sent: true, Ref: "C1/1"}
			if d.Channel.ID == dev.ID { // which nobody has heard
				end = store.Settlement{At: minutes(1), RetryAt: minutes(2), Deferred: true}
			}
			settle(t, s, d, end)
		}
		for _, slug := range []string{e.Slug, quiet.Slug} {
			if err := s.DeleteEndpoint(t.Context(), slug); err != nil {
				t.Fatal(err)
			}
		}
		i := incident(t, s, out[0].Opened)
		if i.Resolution != store.ResolutionRemoved || i.EndpointID != "" || i.Title != "Weather" || i.Public {
			t.Errorf("incident %+v, want one that ended with the endpoint, and its name", i)
		}
		for _, d := range wantLeased(t, s, time.Now().Add(time.Hour), 2) {
			wantKinds(t, d, store.NoticeResolved)
			if d.Incident.ID != i.ID || d.Ref != "C1/1" || d.Endpoint.ID != "" || d.Entry == nil || d.Entry.Text != "the endpoint was removed" {
				t.Errorf("delivery %+v, want the end of what was told", d)
			}
			settle(t, s, d, store.Settlement{At: time.Now(), Sent: true})
		}
		_, err := s.Incident(t.Context(), out[1].Opened)
		wantNotFound(t, "Incident of which nobody heard", err)
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait, want none", n)
		}
		newEndpoint(t, s, "Weather") // its name is free again
	})

	t.Run("an incident of which nobody heard goes with its endpoint", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		id := record(t, s, checkAt(e, start, probe.Down))[0].Opened
		if err := s.DeleteEndpoint(t.Context(), e.Slug); err != nil {
			t.Fatal(err)
		}
		_, err := s.Incident(t.Context(), id)
		wantNotFound(t, "Incident", err)
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait, want none", n)
		}
	})
}
