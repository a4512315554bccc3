package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testAnnouncements(t *testing.T, fresh func(t testing.TB) Database) {
	offline := store.Event{
		At: start, Kind: store.EventLocationOffline, Severity: "warning", Title: "fra has lost its network", Data: []byte(`{"location":"fra"}`),
	}

	t.Run("each channel that an endpoint names hears of it once, and no endpoint is told of", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		newChannel(t, s, "nobody's")
		a := newEndpoint(t, s, "a", to(ops, dev))
		newEndpoint(t, s, "b", to(ops))
		told, err := s.Announce(t.Context(), offline)
		if err != nil || told != 2 || pending(t, s) != 2 {
			t.Fatalf("Announce = %d, %v, %d notices wait, want two of each", told, err, pending(t, s))
		}
		heard := map[string]bool{}
		for _, d := range leaseAll(t, s, minutes(1)) {
			heard[d.Channel.Name] = true
			if d.Event == nil || d.Notice.Kind != store.NoticeService || d.Notice.EventID != d.Event.ID || d.Notice.IncidentID != "" || d.LeaseID == "" {
				t.Fatalf("delivery %+v, want one of an event of this service", d)
			}
			want := offline
			want.ID = d.Event.ID
			if diff := cmp.Diff(*d.Event, want, sameJSON); diff != "" || want.ID == "" {
				t.Errorf("event (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(d.Endpoint, store.Endpoint{}); diff != "" {
				t.Errorf("endpoint (-got +want):\n%s", diff)
			}
			if d.Channel.Secrets["webhook_url"] == "" || !d.Notice.DueAt.Equal(start) {
				t.Errorf("delivery %+v, want it due at once, with the secrets of its channel", d)
			}
			settle(t, s, d, store.Settlement{At: minutes(1), Sent: true})
		}
		if diff := cmp.Diff(heard, map[string]bool{"ops": true, "dev": true}); diff != "" {
			t.Errorf("heard by (-got +want):\n%s", diff)
		}
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait after they were sent", n)
		}
		if got := events(t, s, a); len(got) != 0 {
			t.Errorf("events of an endpoint: %+v, want none", got)
		}
	})

	t.Run("it is handed out with notices of incidents and contracts, in the order in which they fell due", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")), notified)
		record(t, s, promise(e, -3, "modern", tools("x")), promise(e, -2, "modern", tools("y")), promise(e, -1, "modern", tools("y")))
		if _, err := s.Announce(t.Context(), offline); err != nil {
			t.Fatal(err)
		}
		record(t, s, checkAt(e, minutes(3), probe.Down))
		var kinds []store.NoticeKind
		for _, d := range leaseAll(t, s, minutes(5)) {
			kinds = append(kinds, d.Notice.Kind)
		}
		if diff := cmp.Diff(kinds, []store.NoticeKind{store.NoticeContract, store.NoticeService, store.NoticeOpened}); diff != "" {
			t.Errorf("kinds (-got +want):\n%s", diff)
		}
	})

	t.Run("nobody to tell is no mistake, and the next one is told all the same", func(t *testing.T) {
		s := fresh(t).open(t)
		if told, err := s.Announce(t.Context(), offline); err != nil || told != 0 {
			t.Errorf("Announce = %d, %v, want nobody told", told, err)
		}
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		online := offline
		online.Kind, online.At = store.EventLocationOnline, minutes(1)
		if told, err := s.Announce(t.Context(), online); err != nil || told != 1 {
			t.Errorf("Announce = %d, %v, want one told", told, err)
		}
		if err := s.DeleteEndpoint(t.Context(), e.Slug); err != nil {
			t.Fatal(err)
		}
		if n := pending(t, s); n != 1 {
			t.Errorf("%d notices wait after an endpoint went, want that of the service", n)
		}
	})

	t.Run("what several instances notice is said once", func(t *testing.T) {
		s := fresh(t).open(t)
		newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		online, elsewhere := offline, offline
		online.Kind, elsewhere.Title = store.EventLocationOnline, "nyc has lost its network"
		for i, step := range []struct {
			event store.Event
			after time.Duration
			told  int
		}{
			{offline, 0, 1},
			{offline, 0, 0},
			{offline, store.AnnouncedOnce - time.Second, 0},
			{online, time.Second, 1},
			{elsewhere, time.Second, 1},
			{offline, store.AnnouncedOnce, 1},
		} {
			ev := step.event
			ev.At = start.Add(step.after)
			if told, err := s.Announce(t.Context(), ev); err != nil || told != step.told {
				t.Errorf("Announce %d = %d, %v, want %d", i+1, told, err, step.told)
			}
		}
		if n := pending(t, s); n != 4 {
			t.Errorf("%d notices wait, want 4", n)
		}
	})

	t.Run("events about this service do not pile up", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		if _, err := s.Announce(t.Context(), offline); err != nil {
			t.Fatal(err)
		}
		_, err := db.SQL(t).ExecContext(t.Context(), fmt.Sprintf(`
			WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
			INSERT INTO events (id, endpoint_id, at, kind, severity, title, data)
			SELECT 'evt_' || n, endpoint_id, at, kind, severity, title, data
			FROM events, numbers`, store.MaxEvents+3))
		if err != nil {
			t.Fatal(err)
		}
		later := offline
		later.At = minutes(10)
		if _, err := s.Announce(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, "events"); n != store.MaxEvents {
			t.Errorf("%d events are kept, want %d", n, store.MaxEvents)
		}
	})

	t.Run("an event of an endpoint is not announced", func(t *testing.T) {
		s := fresh(t).open(t)
		wrong := offline
		wrong.EndpointID = "ep_x"
		_, err := s.Announce(t.Context(), wrong)
		wantInvalid(t, err, "endpoint")
	})
}

// sameJSON has cmp compare JSON by what it says: a database may set it in another way.
var sameJSON = cmp.Comparer(func(a, b json.RawMessage) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
})
