package storetest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

const (
	lease = time.Minute
	me    = "me" // who leases
)

func testNotices(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("a delivery holds all that a message needs", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := newEndpoint(t, s, "Weather", to(ops), func(e *store.Endpoint) { e.Public = true })
		out := record(t, s, checkAt(e, start, probe.Down))
		got := leaseAll(t, s, minutes(1))
		if len(got) != 1 {
			t.Fatalf("%d deliveries, want 1", len(got))
		}
		d := got[0]
		opened := start.Add(80 * time.Millisecond)
		want := store.Delivery{
			Notice: store.Notice{
				ID: d.Notice.ID, IncidentID: out[0].Opened, EntryID: timeline(t, s, out[0].Opened)[0].ID, ChannelID: ops.ID,
				Kind: store.NoticeOpened, CreatedAt: opened, DueAt: opened,
			},
			LeaseID:  d.LeaseID,
			Incident: incident(t, s, out[0].Opened),
			Entry:    &timeline(t, s, out[0].Opened)[0],
			Endpoint: e,
			Channel:  ops,
		}
		if diff := cmp.Diff(d, want); diff != "" {
			t.Errorf("delivery (-got +want):\n%s", diff)
		}
		if d.Notice.ID == "" || d.LeaseID == "" {
			t.Errorf("notice %q, lease %q: want both named", d.Notice.ID, d.LeaseID)
		}
	})

	t.Run("what is not due is not handed out", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		wantLeased(t, s, start, 0)
		if got, err := s.LeaseNotices(t.Context(), me, minutes(1), lease, 0); err != nil || len(got) != 0 {
			t.Errorf("LeaseNotices of none = %v, %v", got, err)
		}
		wantLeased(t, s, minutes(1), 1)
	})

	t.Run("a lease keeps others away until it runs out", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		first := wantLeased(t, s, minutes(1), 1)[0]
		wantLeased(t, s, minutes(1).Add(lease-time.Second), 0)
		second := wantLeased(t, s, minutes(1).Add(lease), 1)[0]
		if second.Notice.ID != first.Notice.ID || second.LeaseID == first.LeaseID {
			t.Errorf("second lease %+v, want another lease of the same notice", second)
		}
		settled := store.Settlement{NoticeID: first.Notice.ID, LeaseID: first.LeaseID, At: minutes(3), Sent: true}
		wantNotFound(t, "SettleNotice with the lease that ran out", s.SettleNotice(t.Context(), settled))
		settled.LeaseID = second.LeaseID
		if err := s.SettleNotice(t.Context(), settled); err != nil {
			t.Errorf("SettleNotice: %v", err)
		}
		wantNotFound(t, "SettleNotice once more", s.SettleNotice(t.Context(), settled))
		wantLeased(t, s, minutes(60), 0)
	})

	t.Run("a lease that ran out can be settled while nobody else has it", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		d := wantLeased(t, s, minutes(1), 1)[0]
		settle(t, s, d, store.Settlement{At: minutes(30), Sent: true})
		wantLeased(t, s, minutes(60), 0)
	})

	t.Run("a resolution never overtakes its opening", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		// The clock goes back in between: order must not hang on it.
		record(t, s, checkAt(e, minutes(10), probe.Down))
		pause(t, s, e)
		now := time.Now().Add(time.Hour)
		both := wantLeased(t, s, now, 1)[0]
		wantKinds(t, both, store.NoticeOpened, store.NoticeResolved)
		wantLeased(t, s, now, 0)
		settleAll(t, s, both, store.Settlement{At: now, RetryAt: now.Add(time.Hour), Error: "try later"})
		wantLeased(t, s, now, 0)
		both = wantLeased(t, s, now.Add(time.Hour), 1)[0]
		wantKinds(t, both, store.NoticeOpened, store.NoticeResolved)
		if both.Notice.Attempts != 1 || both.Later[0].Attempts != 1 {
			t.Errorf("again %+v, want both after one attempt", both)
		}
		// One that knows how to send the first alone leaves the other due.
		settle(t, s, both, store.Settlement{At: now, Sent: true, Ref: "C1/1700.1"})
		resolution := wantLeased(t, s, now.Add(2*time.Hour), 1)[0]
		if resolution.Notice.Kind != store.NoticeResolved || resolution.Ref != "C1/1700.1" || resolution.Incident.ResolvedAt == nil {
			t.Errorf("then %+v, want the resolution with the message to update", resolution)
		}
	})

	t.Run("a resolution waits while its opening is retried", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), RetryAt: minutes(10), Error: "503"})
		record(t, s, checkAt(e, minutes(2), probe.Up))
		wantLeased(t, s, minutes(9), 0)
		wantKinds(t, wantLeased(t, s, minutes(10), 1)[0], store.NoticeOpened, store.NoticeResolved)
	})

	t.Run("who heard that it began hears that it ended, and so does who came to it meanwhile", func(t *testing.T) {
		for _, end := range []string{"recovered", "paused"} {
			s := fresh(t).open(t)
			first, second := newChannel(t, s, "first"), newChannel(t, s, "second")
			e := newEndpoint(t, s, "Weather", to(first))
			record(t, s, checkAt(e, start, probe.Down))
			settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true, Ref: "C1/1700.1"})
			_, err := s.UpdateEndpoint(t.Context(), e.Slug, func(e *store.Endpoint) error {
				e.Channels = []string{second.ID}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if end == "paused" {
				pause(t, s, e)
			} else {
				record(t, s, checkAt(e, minutes(2), probe.Up))
			}
			refs := map[string]string{}
			for _, d := range wantLeased(t, s, time.Now().Add(time.Hour), 2) {
				if d.Notice.Kind != store.NoticeResolved {
					t.Errorf("%s: %s is told %q", end, d.Channel.Name, d.Notice.Kind)
				}
				refs[d.Channel.Name] = d.Ref
			}
			if diff := cmp.Diff(refs, map[string]string{"first": "C1/1700.1", "second": ""}); diff != "" {
				t.Errorf("%s: told, with the message to update (-got +want):\n%s", end, diff)
			}
		}
	})

	t.Run("a channel that is slow delays no other", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "slow"), newChannel(t, s, "fast")))
		record(t, s, checkAt(e, start, probe.Down))
		for _, d := range wantLeased(t, s, minutes(1), 2) {
			if d.Channel.Name == "fast" {
				settle(t, s, d, store.Settlement{At: minutes(1), Sent: true})
			}
		}
		record(t, s, checkAt(e, minutes(1), probe.Up))
		got := wantLeased(t, s, minutes(1).Add(time.Second), 1)[0]
		if got.Channel.Name != "fast" || got.Notice.Kind != store.NoticeResolved {
			t.Errorf("next is %s for %s, want the resolution for fast", got.Notice.Kind, got.Channel.Name)
		}
	})

	t.Run("what failed for good breaks the channel until it is changed", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		a, b := newEndpoint(t, s, "a", to(ops)), newEndpoint(t, s, "b", to(ops))
		record(t, s, checkAt(a, start, probe.Down))
		d := wantLeased(t, s, minutes(1), 1)[0]
		settle(t, s, d, store.Settlement{At: minutes(1), Permanent: true, Error: "no_service\x00"})
		broken, err := s.Channel(t.Context(), ops.ID)
		if err != nil || broken.Broken != "no_service\uFFFD" || broken.BrokenAt == nil || !broken.BrokenAt.Equal(minutes(1)) {
			t.Errorf("channel = %+v, %v, want it broken with the reason", broken, err)
		}
		record(t, s, checkAt(b, minutes(2), probe.Down))
		wantLeased(t, s, minutes(60), 0)
		if n := pending(t, s); n != 1 {
			t.Errorf("%d notices wait, want that of b", n)
		}
		fixed, err := s.UpdateChannel(t.Context(), ops.ID, func(c *store.Channel) error {
			c.Secrets["webhook_url"] = "https://hooks.example/fixed"
			return nil
		})
		if err != nil || fixed.Broken != "" || fixed.BrokenAt != nil {
			t.Errorf("UpdateChannel = %+v, %v, want it whole again", fixed, err)
		}
		if d := wantLeased(t, s, minutes(60), 1)[0]; d.Endpoint.Name != "b" || d.Channel.Secrets["webhook_url"] != "https://hooks.example/fixed" {
			t.Errorf("delivery %+v, want that of b to the changed channel", d)
		}
	})

	t.Run("a settlement says one thing", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, bad := range []store.Settlement{{}, {Sent: true, Permanent: true}, {Sent: true, RetryAt: start}} {
			wantInvalid(t, s.SettleNotice(t.Context(), bad), "settlement")
		}
		for _, id := range []string{"ntc_none", "\x00"} {
			wantNotFound(t, "SettleNotice", s.SettleNotice(t.Context(), store.Settlement{NoticeID: id, LeaseID: id, Sent: true}))
		}
	})

	t.Run("every attempt is logged", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), RetryAt: minutes(2), Error: "503"})
		settle(t, s, wantLeased(t, s, minutes(2), 1)[0], store.Settlement{At: minutes(2), Sent: true})
		rows, err := db.SQL(t).QueryContext(t.Context(), `SELECT attempt, outcome, error FROM notice_attempts ORDER BY attempt`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close() //nolint:errcheck // rows.Err says what matters
		type attempt struct {
			N              int
			Outcome, Error string
		}
		var got []attempt
		for rows.Next() {
			var a attempt
			if err := rows.Scan(&a.N, &a.Outcome, &a.Error); err != nil {
				t.Fatal(err)
			}
			got = append(got, a)
		}
		if diff := cmp.Diff(got, []attempt{{1, "retry", "503"}, {2, "sent", ""}}); diff != "" || rows.Err() != nil {
			t.Errorf("attempts (-got +want):\n%s%v", diff, rows.Err())
		}
	})

	t.Run("callers at once never get the same notice, and all are handed out", func(t *testing.T) {
		s := fresh(t).open(t)
		var channels []store.Channel
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			channels = append(channels, newChannel(t, s, name))
		}
		var checks []store.Check
		for _, name := range []string{"v", "w", "x", "y", "z"} {
			checks = append(checks, checkAt(newEndpoint(t, s, name, to(channels...)), start, probe.Down))
		}
		record(t, s, checks...)
		var mu sync.Mutex
		var ids []string
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for {
					got, err := s.LeaseNotices(t.Context(), me, minutes(1), lease, 3)
					if err != nil {
						t.Errorf("LeaseNotices: %v", err)
						return
					}
					mu.Lock()
					for _, d := range got {
						ids = append(ids, d.Notice.ID)
					}
					done := len(ids) >= 25
					mu.Unlock()
					if done {
						return
					}
				}
			})
		}
		wg.Wait()
		slices.Sort(ids)
		if distinct := len(slices.Compact(slices.Clone(ids))); len(ids) != 25 || distinct != 25 {
			t.Errorf("%d notices handed out, %d of them distinct, want 25", len(ids), distinct)
		}
	})

	t.Run("a channel that goes takes its waiting notices along", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		e := newEndpoint(t, s, "Weather", to(ops, dev))
		record(t, s, checkAt(e, start, probe.Down))
		if err := s.DeleteChannel(t.Context(), ops.ID); err != nil {
			t.Fatal(err)
		}
		if got := overview(t, s, e.Slug).Channels; !slices.Equal(got, []string{dev.ID}) {
			t.Errorf("channels %v, want dev only", got)
		}
		if d := wantLeased(t, s, minutes(1), 1)[0]; d.Channel.Name != "dev" {
			t.Errorf("delivery to %s, want dev", d.Channel.Name)
		}
		out := record(t, s, checkAt(e, minutes(1), probe.Up))
		if out[0].Resolved == "" || pending(t, s) != 2 {
			t.Errorf("outcome %+v and %d waiting, want opening and resolution for dev", out[0], pending(t, s))
		}
	})
}

// leaseAll leases everything that is due at now.
func leaseAll(t testing.TB, s store.Store, now time.Time) []store.Delivery {
	t.Helper()
	got, err := s.LeaseNotices(t.Context(), me, now, lease, 100)
	if err != nil {
		t.Fatalf("LeaseNotices: %v", err)
	}
	return got
}

func wantLeased(t testing.TB, s store.Store, now time.Time, n int) []store.Delivery {
	t.Helper()
	got := leaseAll(t, s, now)
	if len(got) != n {
		var kinds []string
		for _, d := range got {
			kinds = append(kinds, string(d.Notice.Kind)+" for "+d.Channel.Name)
		}
		t.Fatalf("%d deliveries (%s), want %d", len(got), strings.Join(kinds, ", "), n)
	}
	return got
}

// wantKinds tests what the notices of a delivery tell.
func wantKinds(t testing.TB, d store.Delivery, want ...store.NoticeKind) {
	t.Helper()
	kinds := []store.NoticeKind{d.Notice.Kind}
	for _, n := range d.Later {
		kinds = append(kinds, n.Kind)
	}
	if diff := cmp.Diff(kinds, want); diff != "" {
		t.Errorf("kinds of the delivery for %s (-got +want):\n%s", d.Channel.Name, diff)
	}
}

// settleAll ends the lease of d, with all of its notices, as end says.
func settleAll(t testing.TB, s store.Store, d store.Delivery, end store.Settlement) {
	t.Helper()
	for _, n := range d.Later {
		end.Later = append(end.Later, n.ID)
	}
	settle(t, s, d, end)
}

// settle ends the lease of the first notice of d as end says.
func settle(t testing.TB, s store.Store, d store.Delivery, end store.Settlement) {
	t.Helper()
	end.NoticeID, end.LeaseID = d.Notice.ID, d.LeaseID
	if err := s.SettleNotice(t.Context(), end); err != nil {
		t.Fatalf("SettleNotice(%+v): %v", end, err)
	}
}
