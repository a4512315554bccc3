package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func TestAnActIsCheckedAsAWhole(t *testing.T) {
	for name, test := range map[string]struct {
		act    store.Act
		fields []string
	}{
		"acknowledge":           {store.Act{Kind: store.ActAcknowledge, Author: "ops"}, nil},
		"nothing":               {store.Act{}, []string{"act", "author"}},
		"no comment":            {store.Act{Kind: store.ActComment, Author: "ops", Text: " \n"}, []string{"text"}},
		"a long comment":        {store.Act{Kind: store.ActComment, Author: "ops", Text: strings.Repeat("ä", 4001)}, []string{"text"}},
		"as long as may be":     {store.Act{Kind: store.ActComment, Author: "ops", Text: strings.Repeat("ä", 4000)}, nil},
		"a snooze without end":  {store.Act{Kind: store.ActSnooze, Author: "ops", At: start}, []string{"until"}},
		"a snooze that is over": {store.Act{Kind: store.ActSnooze, Author: "ops", At: start, Until: start}, []string{"until"}},
		"a month":               {store.Act{Kind: store.ActSnooze, Author: "ops", At: start, Until: start.AddDate(0, 0, 30)}, nil},
		"more than a month":     {store.Act{Kind: store.ActSnooze, Author: "ops", At: start, Until: start.AddDate(0, 0, 31)}, []string{"until"}},
	} {
		if diff := cmp.Diff(fields(test.act.Validate()), test.fields); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestWhatAnActMakesOfAnIncident(t *testing.T) {
	over, long := minutes(3), minutes(1)
	open := store.Incident{ID: "inc_a", StartedAt: start}
	handled := open
	handled.AcknowledgedAt, handled.AcknowledgedBy, handled.SnoozedUntil = &long, "eve", &long
	resolved := handled
	resolved.ResolvedAt, resolved.Resolution = &over, store.ResolutionRecovered
	at, until := minutes(5), minutes(65)
	with := func(i store.Incident, edit func(*store.Incident)) store.Incident { edit(&i); return i }
	for name, test := range map[string]struct {
		before store.Incident
		act    store.Act
		want   store.Acted // with what of Entry differs
	}{
		"acknowledge": {open, store.Act{Kind: store.ActAcknowledge}, store.Acted{
			Incident: with(open, func(i *store.Incident) { i.AcknowledgedAt, i.AcknowledgedBy = &at, "ops" }),
			Entry:    store.Entry{Kind: store.EntryAcknowledged}, Kind: store.NoticeUpdated, Withdraw: true,
		}},
		"snooze": {open, store.Act{Kind: store.ActSnooze, Until: until}, store.Acted{
			Incident: with(open, func(i *store.Incident) { i.SnoozedUntil = &until }),
			Entry:    store.Entry{Kind: store.EntrySnoozed, Text: "until 2026-11-21 09:25 UTC"}, Kind: store.NoticeUpdated, Defer: until,
		}},
		"comment": {open, store.Act{Kind: store.ActComment, Text: "a\x00b", Public: true}, store.Acted{
			Incident: open, Entry: store.Entry{Kind: store.EntryComment, Text: "a\uFFFDb", Public: true}, Kind: store.NoticeUpdated,
		}},
		"comment on what is over": {resolved, store.Act{Kind: store.ActComment, Text: "it was DNS"}, store.Acted{
			Incident: resolved, Entry: store.Entry{Kind: store.EntryComment, Text: "it was DNS"}, Kind: store.NoticeUpdated,
		}},
		"resolve": {handled, store.Act{Kind: store.ActResolve}, store.Acted{
			Incident: with(handled, func(i *store.Incident) { i.ResolvedAt, i.Resolution = &at, store.ResolutionManual }),
			Entry:    store.Entry{Kind: store.EntryResolved}, Kind: store.NoticeResolved, Withdraw: true,
		}},
		"reopen": {resolved, store.Act{Kind: store.ActReopen}, store.Acted{
			Incident: open, Entry: store.Entry{Kind: store.EntryReopened}, Kind: store.NoticeUpdated,
		}},
	} {
		test.act.Author, test.act.At = "ops", at.Add(7)
		got, err := test.before.Take(test.act)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		test.want.Entry.ID, test.want.Entry.IncidentID, test.want.Entry.At, test.want.Entry.Author = got.Entry.ID, "inc_a", at, "ops"
		if diff := cmp.Diff(got, test.want); diff != "" || got.Entry.ID == "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	for _, kind := range []store.ActKind{store.ActAcknowledge, store.ActSnooze, store.ActResolve} {
		if _, err := resolved.Take(store.Act{Kind: kind}); !isConflict(err) {
			t.Errorf("%s of what is over: error %v, want a conflict", kind, err)
		}
	}
	for kind, ends := range map[store.IncidentKind]bool{
		store.IncidentExpiring: true, store.IncidentObjective: true, store.IncidentChain: true,
		store.IncidentEndpoint: false, store.IncidentLocation: false, store.IncidentManual: false,
	} {
		before, after := with(open, func(i *store.Incident) { i.Kind = kind }), with(resolved, func(i *store.Incident) { i.Kind = kind })
		_, err := before.Take(store.Act{Kind: store.ActResolve, At: at})
		_, again := after.Take(store.Act{Kind: store.ActReopen, At: at})
		if isConflict(err) != ends || isConflict(again) != ends {
			t.Errorf("of kind %s: resolve %v, reopen %v, want a conflict: %v", kind, err, again, ends)
		}
	}
	if _, err := open.Take(store.Act{Kind: store.ActReopen}); !isConflict(err) {
		t.Errorf("reopening what is open: error %v, want a conflict", err)
	}
	if resolved.ResolvedAt != &over || handled.AcknowledgedBy != "eve" {
		t.Error("Take changed the incident it was given")
	}
}

func isConflict(err error) bool {
	conflict, ok := errors.AsType[store.Conflict](err)
	return ok && conflict.Field == "act"
}

func TestASnoozeEnds(t *testing.T) {
	until := minutes(5)
	i := store.Incident{SnoozedUntil: &until}
	if !i.Snoozed(minutes(4)) || i.Snoozed(minutes(5)) || (store.Incident{}).Snoozed(start) {
		t.Error("an incident is snoozed until then, and not longer")
	}
}

func TestSomeSeveritiesAreGraverThanOthers(t *testing.T) {
	order := []store.Status{store.StatusDown, store.StatusGated, store.StatusUnknown, store.StatusDegraded, store.StatusUp}
	for i, a := range order {
		for k, b := range order {
			if got := store.Graver(a, b); got != (i < k) {
				t.Errorf("%s is graver than %s: %v", a, b, got)
			}
		}
	}
	if store.Graver(store.StatusPaused, store.StatusUp) {
		t.Error("what is no severity is graver than another")
	}
}

func TestAnIncidentThatIsRaised(t *testing.T) {
	i, entry, err := store.EnrollIncident(store.Incident{Kind: store.IncidentManual, Title: "Slow", Severity: store.StatusDegraded}, "Ada\x00", "We know.", start.Add(9))
	if err != nil {
		t.Fatal(err)
	}
	if i.Subject != "manual/"+i.ID || i.Worst != store.StatusDegraded || i.StartedAt != start || i.OpenedAt != start {
		t.Errorf("incident %+v, want a subject of its own, and that it begins at once", i)
	}
	want := store.Entry{ID: entry.ID, IncidentID: i.ID, At: start, Kind: store.EntryOpened, Author: "Ada\uFFFD", Text: "We know.", Public: true, Severity: store.StatusDegraded}
	if diff := cmp.Diff(entry, want); diff != "" {
		t.Errorf("entry (-got +want):\n%s", diff)
	}
	_, _, err = store.EnrollIncident(store.Incident{Kind: store.IncidentLocation}, "", strings.Repeat("x", 4001), time.Now())
	if diff := cmp.Diff(fields(err), []string{"severity", "subject", "text"}); diff != "" {
		t.Errorf("what is wrong (-got +want):\n%s", diff)
	}
}
