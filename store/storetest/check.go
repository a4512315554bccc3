package storetest

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
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
			c := checkFrom([]string{"a", "b", "c"}[i%3], e, minutes(i/3), probe.Up) // three of each time
			c.Result.StartedAt = minutes(9 - i)                                     // which does not count
			record(t, s, c)
			want = append(want, c.ID)
		}
		record(t, s, checkAt(other, start, probe.Up))
		all := list(t, s, store.CheckFilter{EndpointID: e.ID})
		for i := range all { // checks of one time come in any order
			of := slices.Index(want, all[i])
			if of < 0 || of/3 != 2-i/3 {
				t.Errorf("check %d of the list is the one numbered %d, want the newest first", i, of)
			}
		}
		want = all
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

	t.Run("a check is found by its id, which follows from its slot", func(t *testing.T) {
		s := fresh(t).open(t)
		e, other := newEndpoint(t, s, "Weather"), newEndpoint(t, s, "Other")
		here, there := checkFrom("here", e, start, probe.Up), checkFrom("there", e, start, probe.Degraded)
		here.Transcript = spoken(e, start, probe.Up, "here").Transcript
		there.Transcript = spoken(e, start, probe.Degraded, "there").Transcript
		record(t, s, here, there, checkFrom("here", other, minutes(1), probe.Up))
		for _, c := range []store.Check{here, there} {
			if c.ID != store.CheckID(e.ID, c.Location, start) {
				t.Errorf("id %q, want the one of its slot", c.ID)
			}
			got, err := s.Check(t.Context(), c.ID)
			if err != nil || got.ID != c.ID || got.Location != c.Location || got.Result.Verdict != c.Result.Verdict {
				t.Errorf("Check(%q) = %+v, %v, want the one from %s", c.ID, got, err, c.Location)
			}
			if words := said(t, s, c); len(words) != 2 || words[0].Body != c.Location {
				t.Errorf("transcript %+v, want that from %s", words, c.Location)
			}
		}
		for _, id := range []string{
			store.CheckID(e.ID, "elsewhere", start),
			store.CheckID(e.ID, "here", minutes(1)),
			store.CheckID(other.ID, "here", start),
			store.CheckID("ep_none", "here", start),
			store.CheckID(e.ID, "here", time.UnixMicro(math.MinInt64)),
			store.CheckID(e.ID, "here", time.UnixMicro(math.MaxInt64)),
			store.CheckID("ep_\x00", "here", start), store.CheckID("ep_\xff", "here", start),
			here.ID + "0", here.ID[1:], here.ID[:len(here.ID)-1], strings.ToUpper(here.ID), here.ID + "\x00",
			"chk_", "chk__", "chk_x_" + strings.Repeat("z", 24), strings.Repeat("chk_", 100_000), "'; DROP TABLE checks; --",
		} {
			_, err := s.Check(t.Context(), id)
			wantNotFound(t, "Check of "+strconv.QuoteToASCII(id[:min(len(id), 100)]), err)
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
			{"weather", "initialize", 31.001, 200, "", 0},
			{"weather", "tools/list", 50, 200, "rpc_error", -32603},
		}
		if diff := cmp.Diff(got, want); diff != "" || rows.Err() != nil {
			t.Errorf("check_steps (-got +want):\n%s%v", diff, rows.Err())
		}
	})
}
