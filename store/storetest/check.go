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

func testChecks(t *testing.T, fresh func(t testing.TB) Database) {
	list := func(t *testing.T, s store.Store, f store.CheckFilter) []string {
		t.Helper()
		return walk(t, func(c store.Check) string { return c.ID }, func(cursor string) (store.Page[store.Check], error) {
			f.Cursor = cursor
			return s.Checks(t.Context(), f)
		})
	}

	t.Run("newest first, in pages of any size, also where times are equal", func(t *testing.T) {
		s := fresh(t).open(t)
		e, other := newEndpoint(t, s, "Weather"), newEndpoint(t, s, "Other")
		var want []string
		for i := range 9 {
			c := checkAt(e, minutes(i/3), probe.Up) // three of each time
			c.ScheduledAt = minutes(i)
			record(t, s, c)
			want = append(want, c.ID)
		}
		record(t, s, checkAt(other, start, probe.Up))
		slices.Reverse(want) // ids sort by the time they were made
		for _, limit := range []int{0, 1, 2, 4, 9, 10, 100_000} {
			if diff := cmp.Diff(list(t, s, store.CheckFilter{EndpointID: e.ID, Limit: limit}), want); diff != "" {
				t.Errorf("pages of %d (-got +want):\n%s", limit, diff)
			}
		}
	})

	t.Run("filters", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		var ids []string
		for i, verdict := range []probe.Verdict{probe.Up, probe.Down, probe.Up, probe.Gated} {
			c := checkAt(e, minutes(i), verdict)
			record(t, s, c)
			ids = append(ids, c.ID)
		}
		for name, test := range map[string]struct {
			filter store.CheckFilter
			want   []string
		}{
			"since is included": {store.CheckFilter{EndpointID: e.ID, Since: minutes(2)}, []string{ids[3], ids[2]}},
			"until is not":      {store.CheckFilter{EndpointID: e.ID, Until: minutes(2)}, []string{ids[1], ids[0]}},
			"verdict":           {store.CheckFilter{EndpointID: e.ID, Verdict: probe.Up}, []string{ids[2], ids[0]}},
			"no such verdict":   {store.CheckFilter{EndpointID: e.ID, Verdict: "\x00"}, nil},
			"all of them at once": {
				store.CheckFilter{EndpointID: e.ID, Since: minutes(1), Until: minutes(3), Verdict: probe.Up, Limit: 1}, []string{ids[2]},
			},
			"no such endpoint": {store.CheckFilter{EndpointID: "ep_none\x00"}, nil},
		} {
			if diff := cmp.Diff(list(t, s, test.filter), test.want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", name, diff)
			}
		}
	})

	t.Run("a cursor of somebody else's is refused", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, cursor := range badCursors() {
			if _, err := s.Checks(t.Context(), store.CheckFilter{EndpointID: "x", Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("Checks with cursor %q: error %v, want ErrBadCursor", cursor, err)
			}
		}
	})

	t.Run("what is not there is not found", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, id := range []string{"", "chk_none", "\x00"} {
			_, err := s.Check(t.Context(), id)
			wantNotFound(t, "Check", err)
		}
	})

	t.Run("pruning takes the oldest first and leaves uptime alone", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		for i := range 6 {
			record(t, s, checkAt(e, minutes(i), probe.Up))
		}
		prune := func(before time.Time, limit, want int) {
			t.Helper()
			if n, err := s.Prune(t.Context(), before, limit); err != nil || n != want {
				t.Errorf("Prune(%v, %d) = %d, %v, want %d", before, limit, n, err, want)
			}
		}
		prune(start, 100, 0)
		prune(minutes(4), 0, 0)
		prune(minutes(4), 3, 3)
		left := allChecks(t, s, e)
		if len(left) != 3 || !left[2].Result.StartedAt.Equal(minutes(3)) {
			t.Errorf("%d checks left, want those of the last three minutes", len(left))
		}
		prune(minutes(4), 3, 1)
		prune(minutes(100), 100, 2)
		o := overview(t, s, e.Slug)
		if o.LastCheck != nil || o.State.LastCheckID == "" || o.State.Status != store.StatusUp {
			t.Errorf("overview %+v, want the state as it was and no last check", o)
		}
		counts, err := s.Counts(t.Context(), start.Add(-time.Hour))
		if err != nil || counts[e.ID].Up != 6 {
			t.Errorf("counts %+v, %v, want 6 up", counts, err)
		}
		hours, err := s.Uptime(t.Context(), e.ID, start.Add(-time.Hour), minutes(60))
		if err != nil || len(hours) != 1 || hours[0].Latencies.Quantiles("", 0.5) == nil {
			t.Errorf("uptime %+v, %v, want its hour with latencies", hours, err)
		}
	})

	t.Run("steps can be asked for in SQL", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, fullCheck(e), checkAt(e, minutes(1), probe.Up)) // the second has no steps
		type step struct {
			Endpoint, Step string
			Latency        float64
			HTTPStatus     int
			Class          string
			Code           int64
		}
		rows, err := db.SQL(t).QueryContext(t.Context(), `
			SELECT endpoint, step, latency, http_status, class, code
			FROM check_steps
			WHERE started_at IS NOT NULL
			ORDER BY started_at, position`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close() //nolint:errcheck // rows.Err says what matters
		var got []step
		for rows.Next() {
			var r step
			if err := rows.Scan(&r.Endpoint, &r.Step, &r.Latency, &r.HTTPStatus, &r.Class, &r.Code); err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		want := []step{
			{"weather", "initialize", 31.000001, 200, "", 0},
			{"weather", "tools/list", 50, 200, "rpc_error", -32603},
		}
		if diff := cmp.Diff(got, want); diff != "" || rows.Err() != nil {
			t.Errorf("check_steps (-got +want):\n%s%v", diff, rows.Err())
		}
	})
}

func testUptime(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("checks add up by hour and location", func(t *testing.T) {
		s := fresh(t).open(t)
		e, other := newEndpoint(t, s, "Weather"), newEndpoint(t, s, "Other")
		hour := store.HourOf(start)
		at := func(after time.Duration, location string, verdict probe.Verdict, latency time.Duration) store.Check {
			c := checkAt(e, hour.Add(after), verdict)
			c.Location, c.Result.Duration = location, latency
			c.Result.Steps = []probe.Step{{Name: "initialize", Latency: latency / 2}}
			return c
		}
		record(t, s, at(0, "b", probe.Up, 100*time.Millisecond), at(time.Minute, "b", probe.Down, time.Second))
		record(t, s, at(time.Hour-time.Microsecond, "b", probe.Degraded, 300*time.Millisecond), checkAt(other, start, probe.Up))
		record(t, s, at(2*time.Minute, "a", probe.Gated, time.Second), at(time.Hour, "b", probe.Unknown, time.Second))

		hours, err := s.Uptime(t.Context(), e.ID, hour, hour.Add(2*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		type row struct {
			Endpoint, Location string
			Hour               time.Time
			Counts             store.Counts
		}
		var got []row
		for _, h := range hours {
			got = append(got, row{h.EndpointID, h.Location, h.Begin, h.Counts})
		}
		want := []row{
			{e.ID, "a", hour, store.Counts{Gated: 1}},
			{e.ID, "b", hour, store.Counts{Up: 1, Degraded: 1, Down: 1}},
			{e.ID, "b", hour.Add(time.Hour), store.Counts{Unknown: 1}},
		}
		if diff := cmp.Diff(got, want); diff != "" {
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
			if got, err := s.Uptime(t.Context(), e.ID, test.from, test.to); err != nil || len(got) != test.want {
				t.Errorf("%s: %d hours, %v, want %d", name, len(got), err, test.want)
			}
		}

		counts, err := s.Counts(t.Context(), hour)
		wantCounts := map[string]store.Counts{e.ID: {Up: 1, Degraded: 1, Down: 1, Gated: 1, Unknown: 1}, other.ID: {Up: 1}}
		if diff := cmp.Diff(counts, wantCounts); diff != "" || err != nil {
			t.Errorf("Counts (-got +want):\n%s%v", diff, err)
		}
		counts, err = s.Counts(t.Context(), hour.Add(time.Hour))
		if diff := cmp.Diff(counts, map[string]store.Counts{e.ID: {Unknown: 1}}); diff != "" || err != nil {
			t.Errorf("Counts of the second hour (-got +want):\n%s%v", diff, err)
		}
	})

	t.Run("nothing measured is nothing", func(t *testing.T) {
		s := fresh(t).open(t)
		hours, err := s.Uptime(t.Context(), "ep_none\x00", start, minutes(60))
		if err != nil || len(hours) != 0 {
			t.Errorf("Uptime = %v, %v, want nothing", hours, err)
		}
		counts, err := s.Counts(t.Context(), time.Time{})
		if err != nil || counts == nil || len(counts) != 0 {
			t.Errorf("Counts = %v, %v, want an empty map", counts, err)
		}
	})
}

// near allows for the accuracy of a sketch.
func near(got, want float64) bool { return got > 0.98*want && got < 1.02*want }
