package storetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testUptime(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("checks add up by hour and location", func(t *testing.T) {
		s := fresh(t).open(t)
		e, other := newEndpoint(t, s, "Weather"), newEndpoint(t, s, "Other")
		hour := store.HourOf(start)
		at := func(after time.Duration, location string, verdict probe.Verdict, latency time.Duration) store.Check {
			c := checkFrom(location, e, hour.Add(after), verdict)
			c.Result.Duration = latency
			c.Result.Steps = []probe.Step{{Name: "initialize", Latency: latency / 2}}
			return c
		}
		record(t, s, at(0, "b", probe.Up, 100*time.Millisecond), at(time.Minute, "b", probe.Down, time.Second))
		record(t, s, at(time.Hour-time.Microsecond, "b", probe.Degraded, 300*time.Millisecond), checkAt(other, start, probe.Up))
		record(t, s, at(2*time.Minute, "a", probe.Gated, time.Second), at(time.Hour, "b", probe.Unknown, time.Second))

		hours := uptime(t, s, e, store.Hourly, hour, hour.Add(2*time.Hour))
		want := []sum{
			{e.ID, "a", hour, store.Counts{Gated: 1}},
			{e.ID, "b", hour, store.Counts{Up: 1, Degraded: 1, Down: 1}},
			{e.ID, "b", hour.Add(time.Hour), store.Counts{Unknown: 1}},
		}
		if diff := cmp.Diff(sumsOf(hours), want); diff != "" {
			t.Fatalf("Uptime (-got +want):\n%s", diff)
		}
		for step, want := range map[string][]float64{"": {100, 300}, "initialize": {50, 150}} {
			got := hours[1].Latencies.Quantiles(step, 0, 1)
			if len(got) != 2 || !near(got[0], want[0]) || !near(got[1], want[1]) {
				t.Errorf("latencies of step %q = %v, want near %v", step, got, want)
			}
		}
		if got := hours[0].Latencies.Quantiles("", 0.5); got != nil {
			t.Errorf("latencies of gated checks = %v, want none", got)
		}

		for name, test := range map[string]struct {
			from, to time.Time
			want     int
		}{
			"from is included":                 {hour, hour.Add(time.Hour), 2},
			"to is not":                        {hour.Add(time.Hour), hour.Add(time.Hour), 0},
			"an hour that began before is not": {hour.Add(time.Second), hour.Add(2 * time.Hour), 1},
		} {
			if got := uptime(t, s, e, store.Hourly, test.from, test.to); len(got) != test.want {
				t.Errorf("%s: %d hours, want %d", name, len(got), test.want)
			}
		}

		ids := []string{e.ID, other.ID}
		wantCounts(t, s, ids, store.Hourly, hour, map[string]store.Counts{
			e.ID: {Up: 1, Degraded: 1, Down: 1, Gated: 1, Unknown: 1}, other.ID: {Up: 1},
		})
		wantCounts(t, s, ids, store.Hourly, hour.Add(time.Hour), map[string]store.Counts{e.ID: {Unknown: 1}})

		for _, from := range []time.Time{hour, hour.Add(time.Second), store.DayOf(hour)} {
			for _, grain := range []store.Grain{store.Hourly, store.Daily} {
				wantLatencies(t, s, append(ids, "ep_none\x00"), grain, from)
			}
		}
	})

	t.Run("nothing measured is nothing", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, grain := range []store.Grain{store.Hourly, store.Daily} {
			if got, err := s.Uptime(t.Context(), "ep_none\x00", grain, start, minutes(60)); err != nil || len(got) != 0 {
				t.Errorf("Uptime = %v, %v, want nothing", got, err)
			}
			for _, ids := range [][]string{nil, {}, {"ep_none\x00", ""}} {
				wantCounts(t, s, ids, grain, time.Time{}, map[string]store.Counts{})
				wantLatencies(t, s, ids, grain, start)
			}
		}
	})
}

// wantLatencies fails the test unless Latencies says of each endpoint what its roll-ups add up to.
func wantLatencies(t *testing.T, s store.Store, ids []string, grain store.Grain, from time.Time) {
	t.Helper()
	merged, err := s.Latencies(t.Context(), ids, grain, from)
	if err != nil {
		t.Fatalf("Latencies: %v", err)
	}
	for _, id := range ids {
		rollups, err := s.Uptime(t.Context(), id, grain, from, from.AddDate(1, 0, 0))
		if err != nil {
			t.Fatalf("Uptime: %v", err)
		}
		var sum store.Rollup
		for _, r := range rollups {
			if err := sum.Merge(r); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []string{"", "initialize"} {
			got, want := merged[id].Quantiles(step, 0, 0.5, 1), sum.Latencies.Quantiles(step, 0, 0.5, 1)
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("Latencies of %q, step %q, since %s (-got +want):\n%s", id, step, from, diff)
			}
		}
	}
}

func testRollups(t *testing.T, fresh func(t testing.TB) Database) {
	hour, day := store.HourOf(start), store.DayOf(start)
	failed := func(e store.Endpoint, at time.Time, class probe.Class) store.Check {
		c := checkAt(e, at, probe.Down)
		c.Result.Failure.Class = class
		return c
	}

	t.Run("the running hour counts in its hour and in its day", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkAt(e, start, probe.Up), checkAt(e, minutes(1), probe.Down))
		for grain, begin := range map[store.Grain]time.Time{store.Hourly: hour, store.Daily: day} {
			got := sumsOf(uptime(t, s, e, grain, begin, begin.Add(time.Second)))
			if diff := cmp.Diff(got, []sum{{e.ID, "default", begin, store.Counts{Up: 1, Down: 1}}}); diff != "" {
				t.Errorf("Uptime (-got +want):\n%s", diff)
			}
			wantCounts(t, s, []string{e.ID}, grain, begin, map[string]store.Counts{e.ID: {Up: 1, Down: 1}})
			wantCounts(t, s, []string{e.ID}, grain, begin.Add(time.Second), map[string]store.Counts{})
			if got := uptime(t, s, e, grain, begin.Add(time.Second), begin.AddDate(0, 0, 1)); len(got) != 0 {
				t.Errorf("Uptime of what began before = %+v, want none", sumsOf(got))
			}
		}
	})

	t.Run("hours that are over stay, and add up to days with the one that runs", func(t *testing.T) {
		s := fresh(t).open(t)
		e, other := newEndpoint(t, s, "Weather"), newEndpoint(t, s, "Other")
		for i, at := range []time.Time{start, minutes(60), minutes(61), minutes(300), days(1), days(1).Add(time.Hour), days(5)} {
			c := checkAt(e, at, probe.Up)
			c.Result.Duration = time.Duration(i+1) * 100 * time.Millisecond
			record(t, s, c, checkAt(other, at, probe.Gated))
		}
		hours := sumsOf(uptime(t, s, e, store.Hourly, day, days(10)))
		wantHours := []sum{
			{e.ID, "default", hour, store.Counts{Up: 1}},
			{e.ID, "default", hour.Add(time.Hour), store.Counts{Up: 2}},
			{e.ID, "default", hour.Add(5 * time.Hour), store.Counts{Up: 1}},
			{e.ID, "default", hour.AddDate(0, 0, 1), store.Counts{Up: 1}},
			{e.ID, "default", hour.AddDate(0, 0, 1).Add(time.Hour), store.Counts{Up: 1}},
			{e.ID, "default", hour.AddDate(0, 0, 5), store.Counts{Up: 1}},
		}
		if diff := cmp.Diff(hours, wantHours); diff != "" {
			t.Errorf("hours (-got +want):\n%s", diff)
		}
		got := uptime(t, s, e, store.Daily, day, days(10))
		wantDays := []sum{
			{e.ID, "default", day, store.Counts{Up: 4}},
			{e.ID, "default", day.AddDate(0, 0, 1), store.Counts{Up: 2}},
			{e.ID, "default", day.AddDate(0, 0, 5), store.Counts{Up: 1}},
		}
		if diff := cmp.Diff(sumsOf(got), wantDays); diff != "" {
			t.Fatalf("days (-got +want):\n%s", diff)
		}
		if q := got[0].Latencies.Quantiles("", 0, 1); len(q) != 2 || !near(q[0], 100) || !near(q[1], 400) {
			t.Errorf("latencies of the first day from %v ms, want from 100 to 400", q)
		}
		wantCounts(t, s, []string{e.ID, e.ID, "ep_none"}, store.Daily, day, map[string]store.Counts{e.ID: {Up: 7}})
		wantCounts(t, s, []string{other.ID}, store.Daily, day.AddDate(0, 0, 1), map[string]store.Counts{other.ID: {Gated: 3}})
		wantCounts(t, s, []string{e.ID, other.ID}, store.Daily, start, map[string]store.Counts{e.ID: {Up: 3}, other.ID: {Gated: 3}})
		wantCounts(t, s, []string{e.ID, other.ID}, store.Hourly, minutes(60), map[string]store.Counts{e.ID: {Up: 4}, other.ID: {Gated: 4}})
	})

	t.Run("a late check counts when it was made", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkAt(e, start, probe.Up))
		record(t, s, checkAt(e, days(1), probe.Up))
		record(t, s, checkAt(e, minutes(1), probe.Down), checkAt(e, minutes(90), probe.Up), checkAt(e, days(1).Add(time.Second), probe.Up))
		record(t, s, failed(e, minutes(2), probe.ClassTimeout), checkAt(e, days(-1), probe.Unknown))
		for _, s := range []store.Store{s, db.open(t)} {
			hours := sumsOf(uptime(t, s, e, store.Hourly, days(-2), days(2)))
			wantHours := []sum{
				{e.ID, "default", hour.AddDate(0, 0, -1), store.Counts{Unknown: 1}},
				{e.ID, "default", hour, store.Counts{Up: 1, Down: 2}},
				{e.ID, "default", hour.Add(time.Hour), store.Counts{Up: 1}},
				{e.ID, "default", hour.AddDate(0, 0, 1), store.Counts{Up: 2}},
			}
			if diff := cmp.Diff(hours, wantHours); diff != "" {
				t.Errorf("hours (-got +want):\n%s", diff)
			}
			days := sumsOf(uptime(t, s, e, store.Daily, days(-2), days(2)))
			wantDays := []sum{
				{e.ID, "default", day.AddDate(0, 0, -1), store.Counts{Unknown: 1}},
				{e.ID, "default", day, store.Counts{Up: 2, Down: 2}},
				{e.ID, "default", day.AddDate(0, 0, 1), store.Counts{Up: 2}},
			}
			if diff := cmp.Diff(days, wantDays); diff != "" {
				t.Errorf("days (-got +want):\n%s", diff)
			}
		}
	})

	t.Run("an hour goes on after a restart", func(t *testing.T) {
		db := fresh(t)
		var e store.Endpoint
		for i, at := range []time.Time{start, minutes(1), minutes(60), minutes(2), minutes(61), minutes(120)} {
			s, err := db.Open(t, Sealer(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				e = newEndpoint(t, s, "Weather")
			}
			c := checkAt(e, at, probe.Up)
			c.Result.Duration = time.Duration(i+1) * 100 * time.Millisecond
			record(t, s, c)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := db.open(t)
		got := uptime(t, s, e, store.Hourly, hour, minutes(200))
		want := []sum{
			{e.ID, "default", hour, store.Counts{Up: 3}},
			{e.ID, "default", hour.Add(time.Hour), store.Counts{Up: 2}},
			{e.ID, "default", hour.Add(2 * time.Hour), store.Counts{Up: 1}},
		}
		if diff := cmp.Diff(sumsOf(got), want); diff != "" {
			t.Fatalf("hours (-got +want):\n%s", diff)
		}
		if q := got[0].Latencies.Quantiles("", 0, 1); len(q) != 2 || !near(q[0], 100) || !near(q[1], 400) {
			t.Errorf("latencies of the first hour from %v ms, want from 100 to 400", q)
		}
		wantCounts(t, s, []string{e.ID}, store.Daily, day, map[string]store.Counts{e.ID: {Up: 6}})
	})

	t.Run("checks that failed are counted by class", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, failed(e, start, probe.ClassTimeout), failed(e, minutes(1), probe.ClassDNS), checkAt(e, minutes(2), probe.Up))
		record(t, s, failed(e, minutes(60), probe.ClassTimeout))
		record(t, s, failed(e, minutes(3), probe.ClassTimeout)) // late
		hours := uptime(t, s, e, store.Hourly, hour, minutes(120))
		days := uptime(t, s, e, store.Daily, day, minutes(120))
		if len(hours) != 2 || len(days) != 1 {
			t.Fatalf("%d hours and %d days, want 2 and 1", len(hours), len(days))
		}
		for name, c := range map[string]struct{ got, want map[probe.Class]int }{
			"hour that is over": {hours[0].Classes, map[probe.Class]int{probe.ClassTimeout: 2, probe.ClassDNS: 1}},
			"running hour":      {hours[1].Classes, map[probe.Class]int{probe.ClassTimeout: 1}},
			"day":               {days[0].Classes, map[probe.Class]int{probe.ClassTimeout: 3, probe.ClassDNS: 1}},
		} {
			if diff := cmp.Diff(c.got, c.want); diff != "" {
				t.Errorf("classes of the %s (-got +want):\n%s", name, diff)
			}
		}
	})

	t.Run("locations add up apart, by time and then by name", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		for i, location := range []string{"b", "a", "b", "c", "a"} {
			record(t, s, checkFrom(location, e, minutes(i*30), probe.Up))
		}
		want := []sum{
			{e.ID, "a", hour, store.Counts{Up: 1}},
			{e.ID, "b", hour, store.Counts{Up: 1}},
			{e.ID, "b", hour.Add(time.Hour), store.Counts{Up: 1}},
			{e.ID, "c", hour.Add(time.Hour), store.Counts{Up: 1}},
			{e.ID, "a", hour.Add(2 * time.Hour), store.Counts{Up: 1}},
		}
		if diff := cmp.Diff(sumsOf(uptime(t, s, e, store.Hourly, hour, minutes(200))), want); diff != "" {
			t.Errorf("hours (-got +want):\n%s", diff)
		}
		want = []sum{
			{e.ID, "a", day, store.Counts{Up: 2}}, {e.ID, "b", day, store.Counts{Up: 2}}, {e.ID, "c", day, store.Counts{Up: 1}},
		}
		if diff := cmp.Diff(sumsOf(uptime(t, s, e, store.Daily, day, minutes(200))), want); diff != "" {
			t.Errorf("days (-got +want):\n%s", diff)
		}
		wantCounts(t, s, []string{e.ID}, store.Daily, day, map[string]store.Counts{e.ID: {Up: 5}})
	})

	t.Run("checks that were kept already count once, whatever hour they belong to", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		group := []store.Check{checkAt(e, start, probe.Up), checkAt(e, minutes(60), probe.Down), checkAt(e, minutes(1), probe.Up)}
		record(t, s, group...)
		for _, again := range [][]store.Check{group, group[:1], {group[2], group[2], group[1]}} {
			out, err := s.Record(t.Context(), again, judge)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range out {
				if o.Kept || o.Slug != e.Slug || o.State.Status == "" {
					t.Errorf("outcome %d = %+v, want it passed over with the state as it is", i, o)
				}
			}
		}
		want := []sum{
			{e.ID, "default", hour, store.Counts{Up: 2}}, {e.ID, "default", hour.Add(time.Hour), store.Counts{Down: 1}},
		}
		if diff := cmp.Diff(sumsOf(uptime(t, s, e, store.Hourly, hour, minutes(200))), want); diff != "" {
			t.Errorf("hours (-got +want):\n%s", diff)
		}
		wantCounts(t, s, []string{e.ID}, store.Daily, day, map[string]store.Counts{e.ID: {Up: 2, Down: 1}})
	})
}

// sum is a roll-up without its latencies.
type sum struct {
	Endpoint, Location string
	Begin              time.Time
	Counts             store.Counts
}

func sumsOf(rollups []store.Rollup) []sum {
	var sums []sum
	for _, r := range rollups {
		sums = append(sums, sum{r.EndpointID, r.Location, r.Begin, r.Counts})
	}
	return sums
}

func uptime(t testing.TB, s store.Store, e store.Endpoint, grain store.Grain, from, to time.Time) []store.Rollup {
	t.Helper()
	got, err := s.Uptime(t.Context(), e.ID, grain, from, to)
	if err != nil {
		t.Fatalf("Uptime: %v", err)
	}
	return got
}

func wantCounts(t testing.TB, s store.Store, ids []string, grain store.Grain, from time.Time, want map[string]store.Counts) {
	t.Helper()
	got, err := s.Counts(t.Context(), ids, grain, from)
	if diff := cmp.Diff(got, want); diff != "" || err != nil {
		t.Errorf("Counts of %d endpoints since %v (-got +want):\n%s%v", len(ids), from, diff, err)
	}
}

// near allows for the accuracy of a sketch.
func near(got, want float64) bool { return got > 0.98*want && got < 1.02*want }

// sameLatencies has cmp compare latencies by what they would be kept as.
var sameLatencies = cmp.Comparer(func(a, b store.Latencies) bool {
	left, errLeft := a.MarshalBinary()
	right, errRight := b.MarshalBinary()
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
})
