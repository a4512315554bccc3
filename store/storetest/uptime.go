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
	})

	t.Run("nothing measured is nothing", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, grain := range []store.Grain{store.Hourly, store.Daily} {
			if got, err := s.Uptime(t.Context(), "ep_none\x00", grain, start, minutes(60)); err != nil || len(got) != 0 {
				t.Errorf("Uptime = %v, %v, want nothing", got, err)
			}
			for _, ids := range [][]string{nil, {}, {"ep_none\x00", ""}} {
				wantCounts(t, s, ids, grain, time.Time{}, map[string]store.Counts{})
			}
		}
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
