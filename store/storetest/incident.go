package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testIncidents(t *testing.T, fresh func(t testing.TB) Database) {
	list := func(t *testing.T, s store.Store, f store.IncidentFilter) []string {
		t.Helper()
		return walk(t, func(i store.Incident) string { return i.ID }, func(cursor string) (store.Page[store.Incident], error) {
			f.Cursor = cursor
			return s.Incidents(t.Context(), f)
		})
	}

	t.Run("newest first, in pages of any size, also where times are equal", func(t *testing.T) {
		s := fresh(t).open(t)
		var want []string
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			e := newEndpoint(t, s, name)
			opened := record(t, s, checkAt(e, minutes(i/2), probe.Down))[0].Opened
			want = append([]string{opened}, want...)
		}
		for _, limit := range []int{0, 1, 2, 5, 6} {
			if diff := cmp.Diff(list(t, s, store.IncidentFilter{Limit: limit}), want); diff != "" {
				t.Errorf("pages of %d (-got +want):\n%s", limit, diff)
			}
		}
	})

	t.Run("filters", func(t *testing.T) {
		s := fresh(t).open(t)
		public := newEndpoint(t, s, "Public", func(e *store.Endpoint) { e.Public = true })
		private := newEndpoint(t, s, "Private")
		old := record(t, s, checkAt(public, start, probe.Down), checkAt(public, minutes(2), probe.Up))[0].Opened
		open := record(t, s, checkAt(private, minutes(3), probe.Down))[0].Opened
		recent := record(t, s, checkAt(public, minutes(5), probe.Down), checkAt(public, minutes(6), probe.Up))[0].Opened
		for name, test := range map[string]struct {
			filter store.IncidentFilter
			want   []string
		}{
			"open":                          {store.IncidentFilter{Status: store.IncidentOpen}, []string{open}},
			"resolved":                      {store.IncidentFilter{Status: store.IncidentResolved}, []string{recent, old}},
			"endpoint":                      {store.IncidentFilter{EndpointID: public.ID}, []string{recent, old}},
			"several endpoints":             {store.IncidentFilter{EndpointIDs: []string{private.ID, public.ID, "ep_none"}, Since: minutes(3)}, []string{recent, open}},
			"of none of several":            {store.IncidentFilter{EndpointIDs: []string{}}, nil},
			"no such endpoint":              {store.IncidentFilter{EndpointID: "\x00"}, nil},
			"public only":                   {store.IncidentFilter{PublicOnly: true}, []string{recent, old}},
			"open then, or started since":   {store.IncidentFilter{Since: minutes(1)}, []string{recent, open, old}},
			"resolved before":               {store.IncidentFilter{Since: minutes(3)}, []string{recent, open}},
			"still open":                    {store.IncidentFilter{Since: minutes(60)}, []string{open}},
			"since its very beginning":      {store.IncidentFilter{Since: minutes(5), PublicOnly: true}, []string{recent}},
			"all of them at once, in pages": {store.IncidentFilter{EndpointID: public.ID, Status: store.IncidentResolved, PublicOnly: true, Since: start, Limit: 1}, []string{recent, old}},
		} {
			if diff := cmp.Diff(list(t, s, test.filter), test.want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", name, diff)
			}
		}
	})

	t.Run("a cursor of somebody else's is refused", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, cursor := range badCursors() {
			if _, err := s.Incidents(t.Context(), store.IncidentFilter{Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("Incidents with cursor %q: error %v, want ErrBadCursor", cursor, err)
			}
		}
	})

	t.Run("what is not there is not found", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, id := range []string{"", "inc_none", "\x00"} {
			_, err := s.Incident(t.Context(), id)
			wantNotFound(t, "Incident", err)
		}
	})

	t.Run("the schema allows one open incident per subject", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkAt(e, start, probe.Down))
		const second = `
			INSERT INTO incidents (id, kind, subject, endpoint_id, title, severity, worst, started_at, opened_at, resolved_at, resolution,
			    cause_step, cause_class, cause_code, cause_message, check_id, seen_from, flapping)
			SELECT 'inc_second', kind, subject, endpoint_id, title, severity, worst, started_at, opened_at, resolved_at, resolution,
			    cause_step, cause_class, cause_code, cause_message, check_id, seen_from, flapping
			FROM incidents`
		if _, err := db.SQL(t).ExecContext(t.Context(), second); err == nil {
			t.Error("a second open incident was accepted")
		}
		record(t, s, checkAt(e, minutes(1), probe.Up))
		if _, err := db.SQL(t).ExecContext(t.Context(), second); err != nil {
			t.Errorf("a second resolved incident: %v", err)
		}
	})

	t.Run("a clock that was set back does not end an outage before it began", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		ahead := time.Now().Add(24 * time.Hour)
		opened := record(t, s, checkAt(e, ahead, probe.Down))[0].Opened
		pause(t, s, e)
		if i := incident(t, s, opened); i.ResolvedAt == nil || i.ResolvedAt.Before(i.StartedAt) {
			t.Errorf("incident = %+v, want it resolved no sooner than it started", i)
		}
	})
}
