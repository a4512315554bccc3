package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// days returns start and so many days.
func days(n int) time.Time { return start.AddDate(0, 0, n) }

func testTend(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("checks go by whole days with their transcripts, and leave states and uptime alone", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather")
		var kept []store.Check
		for day := range 3 {
			for minute := range 2 {
				c := spoken(e, days(day).Add(time.Duration(minute)*time.Minute), probe.Degraded, "words")
				record(t, s, c)
				kept = append(kept, c)
			}
		}
		if n := tend(t, s, days(0), time.Time{}); n != 0 {
			t.Errorf("Tend let go of %d with a bound in the middle of the first day, want none", n)
		}
		if n := tend(t, s, days(1).Add(30*time.Second), time.Time{}); n == 0 {
			t.Error("Tend says that nothing went")
		}
		left := allChecks(t, s, e)
		if len(left) != 4 || left[3].ID != kept[2].ID {
			t.Errorf("%d checks left, want those of two days", len(left))
		}
		for i, c := range kept {
			_, err := s.Check(t.Context(), c.ID)
			if i < 2 {
				wantNotFound(t, "Check", err)
			} else if err != nil || said(t, s, c) == nil {
				t.Errorf("check %d: %v, want it with its transcript", i, err)
			}
		}
		if n := count(t, db, "transcripts"); n != 4 {
			t.Errorf("%d transcripts are left, want 4", n)
		}
		if n := tend(t, s, days(1).Add(30*time.Second), time.Time{}); n != 0 {
			t.Errorf("Tend once more let go of %d, want none", n)
		}
		tend(t, s, days(30), time.Time{})
		o := overview(t, s, e.Slug)
		if o.LastCheck != nil || o.State.LastCheckID != kept[5].ID || o.State.Status != store.StatusDegraded {
			t.Errorf("overview %+v, want the state as it was and no last check", o)
		}
		wantCounts(t, s, []string{e.ID}, store.Hourly, days(-1), map[string]store.Counts{e.ID: {Degraded: 6}})
		if got := uptime(t, s, e, store.Hourly, days(-1), days(10)); len(got) != 3 || got[0].Latencies.Quantiles("", 0.5) == nil {
			t.Errorf("uptime %+v, want three hours with latencies", sumsOf(got))
		}
	})

	t.Run("hours are kept for 400 days and days for ever", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		old, bound := days(-460), start.Add(-store.HoursKept)
		within := store.HourOf(bound).Add(time.Hour)
		for _, at := range []time.Time{old, old.Add(time.Hour), within, within.Add(time.Hour), start} {
			record(t, s, checkAt(e, at, probe.Up))
		}
		tend(t, s, days(-30), bound)
		hours := sumsOf(uptime(t, s, e, store.Hourly, days(-500), days(1)))
		want := []sum{
			{e.ID, "default", within, store.Counts{Up: 1}},
			{e.ID, "default", within.Add(time.Hour), store.Counts{Up: 1}},
			{e.ID, "default", store.HourOf(start), store.Counts{Up: 1}},
		}
		if diff := cmp.Diff(hours, want); diff != "" {
			t.Errorf("hours (-got +want):\n%s", diff)
		}
		sum := 0
		for _, d := range uptime(t, s, e, store.Daily, days(-500), days(1)) {
			sum += d.Counts.Up
		}
		if sum != 5 {
			t.Errorf("days add up to %d checks, want all 5", sum)
		}
		if left := allChecks(t, s, e); len(left) != 1 {
			t.Errorf("%d checks are left, want the last one", len(left))
		}
	})

	t.Run("a check of a day that was let go of is kept when it comes late", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkAt(e, days(0), probe.Up), checkAt(e, days(3), probe.Up))
		tend(t, s, days(2), days(2))
		late := checkAt(e, days(0).Add(time.Minute), probe.Up)
		record(t, s, late)
		if c, err := s.Check(t.Context(), late.ID); err != nil || !c.ScheduledAt.Equal(late.ScheduledAt) {
			t.Errorf("Check = %+v, %v, want the late one", c, err)
		}
		wantCounts(t, s, []string{e.ID}, store.Daily, days(-1), map[string]store.Counts{e.ID: {Up: 3}})
	})

	t.Run("an empty database is tended", func(t *testing.T) {
		s := fresh(t).open(t)
		if n := tend(t, s, days(-30), days(-400)); n != 0 {
			t.Errorf("Tend let go of %d, want nothing", n)
		}
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkAt(e, days(0), probe.Up), checkAt(e, days(7), probe.Up))
	})
}

// tend lets go of checks and hours that are older than these times, and returns how much went.
func tend(t testing.TB, s store.Store, checks, hours time.Time) int {
	t.Helper()
	n, err := s.Tend(t.Context(), store.Retention{Now: days(60), Checks: checks, Hours: hours})
	if err != nil {
		t.Fatalf("Tend: %v", err)
	}
	return n
}
