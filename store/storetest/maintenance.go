package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testMaintenance(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("one comes back as it was given, changes and goes", func(t *testing.T) {
		s := fresh(t).open(t)
		for name, given := range map[string]store.Maintenance{
			"once": {
				Title: "Move \"süd\"", Text: "New racks.", StartsAt: start, EndsAt: minutes(60), Endpoints: []string{"ep_1", "ep_2"},
				Tags: []string{"prod"}, Public: true, Author: "Ada",
			},
			"again and again": {
				Title: "Backups", StartsAt: start, Schedule: "CRON_TZ=Europe/Berlin 0 3 * * 0", Duration: 90 * time.Minute, All: true, Author: "Ada",
			},
		} {
			kept, err := s.CreateMaintenance(t.Context(), given)
			if err != nil {
				t.Fatal(err)
			}
			want := given
			want.ID, want.CreatedAt, want.UpdatedAt = kept.ID, kept.CreatedAt, kept.CreatedAt
			if diff := cmp.Diff(kept, want); diff != "" || kept.ID == "" || kept.CreatedAt.IsZero() {
				t.Errorf("%s: CreateMaintenance (-got +want):\n%s", name, diff)
			}
			got, err := s.Maintenance(t.Context(), kept.ID)
			if diff := cmp.Diff(got, want); diff != "" || err != nil {
				t.Errorf("%s: Maintenance (-got +want):\n%s%v", name, diff, err)
			}
			changed, err := s.UpdateMaintenance(t.Context(), kept.ID, func(m *store.Maintenance) error {
				m.ID, m.CreatedAt, m.Title, m.All, m.Tags = "mnt_other", start, "Later", false, []string{"dev"}
				return nil
			})
			want.Title, want.All, want.Tags, want.UpdatedAt = "Later", false, []string{"dev"}, changed.UpdatedAt
			if diff := cmp.Diff(changed, want); diff != "" || err != nil {
				t.Errorf("%s: UpdateMaintenance (-got +want):\n%s%v", name, diff, err)
			}
			if got, err := s.Maintenance(t.Context(), kept.ID); !cmp.Equal(got, want) || err != nil {
				t.Errorf("%s: Maintenance after the edit = %+v, %v", name, got, err)
			}
			if err := s.DeleteMaintenance(t.Context(), kept.ID); err != nil {
				t.Fatal(err)
			}
			_, err = s.Maintenance(t.Context(), kept.ID)
			wantNotFound(t, "Maintenance", err)
		}
	})

	t.Run("those that are not over, by when they start", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, m := range []store.Maintenance{
			{Title: "for ever", StartsAt: minutes(30), Schedule: "0 3 * * *", Duration: time.Hour, All: true},
			{Title: "over", StartsAt: start, EndsAt: minutes(10), All: true},
			{Title: "soon", StartsAt: minutes(20), EndsAt: minutes(25), All: true},
		} {
			if _, err := s.CreateMaintenance(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct {
			after time.Time
			want  []string
		}{
			{time.Time{}, []string{"over", "soon", "for ever"}},
			{minutes(9), []string{"over", "soon", "for ever"}},
			{minutes(10), []string{"soon", "for ever"}},
			{minutes(1000), []string{"for ever"}},
		} {
			found, err := s.Maintenances(t.Context(), test.after)
			var titles []string
			for _, m := range found {
				titles = append(titles, m.Title)
			}
			if diff := cmp.Diff(titles, test.want); diff != "" || err != nil {
				t.Errorf("after %v (-got +want):\n%s%v", test.after, diff, err)
			}
		}
	})

	t.Run("what is not there is not found, and hostile text is kept as far as text goes", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, id := range []string{"", "mnt_none", "\x00"} {
			_, err := s.Maintenance(t.Context(), id)
			wantNotFound(t, "Maintenance", err)
			_, err = s.UpdateMaintenance(t.Context(), id, func(*store.Maintenance) error { return nil })
			wantNotFound(t, "UpdateMaintenance", err)
			wantNotFound(t, "DeleteMaintenance", s.DeleteMaintenance(t.Context(), id))
		}
		kept, err := s.CreateMaintenance(t.Context(), store.Maintenance{Title: "a\x00b", Text: "\xff", StartsAt: start, EndsAt: minutes(1), All: true})
		if err != nil || kept.Title != "a\uFFFDb" || kept.Text != "\uFFFD" {
			t.Errorf("CreateMaintenance = %+v, %v, want text", kept, err)
		}
	})
}

func testTally(t *testing.T, fresh func(t testing.TB) Database) {
	s := fresh(t).open(t)
	e, other := newEndpoint(t, s, "Weather"), newEndpoint(t, s, "Other")
	at := func(minute int, verdict probe.Verdict, took time.Duration) store.Check {
		c := checkAt(e, minutes(minute), verdict)
		c.Result.Duration = took
		return c
	}
	maintained := judge
	maintained.Maintained = func(_ string, at time.Time) bool { return at.Equal(minutes(8)) }
	recordBy(t, s, maintained,
		at(0, probe.Up, time.Millisecond), at(1, probe.Up, 99*time.Millisecond), at(2, probe.Degraded, 100*time.Millisecond),
		at(3, probe.Degraded, time.Millisecond), at(4, probe.Down, time.Millisecond), at(5, probe.Gated, time.Millisecond),
		at(6, probe.Unknown, time.Millisecond), checkFrom("elsewhere", e, minutes(7), probe.Up), at(8, probe.Down, time.Millisecond),
		checkAt(other, minutes(3), probe.Up))
	late := store.NewCheck(e.ID, "default", minutes(9), at(12, probe.Up, time.Second).Result) // due at 9, made at 12
	record(t, s, late)
	for _, test := range []struct {
		since time.Time
		under time.Duration
		want  store.Tally
	}{
		{start.Add(-time.Hour), 100 * time.Millisecond, store.Tally{Counts: store.Counts{Up: 4, Degraded: 2, Down: 1, Gated: 1, Unknown: 1}, Under: 4}},
		{start, 0, store.Tally{Counts: store.Counts{Up: 4, Degraded: 2, Down: 1, Gated: 1, Unknown: 1}}},
		{minutes(1), 100 * time.Millisecond, store.Tally{Counts: store.Counts{Up: 3, Degraded: 2, Down: 1, Gated: 1, Unknown: 1}, Under: 3}},
		{minutes(10), 2 * time.Second, store.Tally{Counts: store.Counts{Up: 1}, Under: 1}},
		{minutes(13), time.Second, store.Tally{}},
	} {
		got, err := s.Tally(t.Context(), e.ID, test.since, test.under)
		if diff := cmp.Diff(got, test.want); diff != "" || err != nil {
			t.Errorf("since %v, under %v (-got +want):\n%s%v", test.since, test.under, diff, err)
		}
	}
	if got, err := s.Tally(t.Context(), "ep_none", start, time.Second); err != nil || got != (store.Tally{}) {
		t.Errorf("Tally of nothing = %+v, %v", got, err)
	}
}
