package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// behind has an endpoint stand behind others.
func behind(parents ...store.Endpoint) func(*store.Endpoint) {
	return func(e *store.Endpoint) {
		for _, p := range parents {
			e.DependsOn = append(e.DependsOn, p.ID)
		}
	}
}

// untold is a rule by which incidents open without a word.
func untold(s store.Situation) []store.Turn {
	turns := opens(s)
	for i := range turns {
		turns[i].Notices, turns[i].Tells = nil, ""
	}
	return turns
}

// flaps is one by which they come and go from the beginning.
func flaps(s store.Situation) []store.Turn {
	turns := opens(s)
	for i := range turns {
		turns[i].Incident.Flapping = true
	}
	return turns
}

func testDelivery(t *testing.T, fresh func(t testing.TB) Database) {
	by := ruled(opens)

	t.Run("all that is due about one incident for one channel is one delivery, settled as one", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := newEndpoint(t, s, "Weather", to(ops))
		id := recordBy(t, s, by, checkAt(e, start, probe.Down), checkAt(e, minutes(1), probe.Degraded))[0].Opened
		act(t, s, id, store.Act{Kind: store.ActComment, At: minutes(2), Text: "looking"})
		d := wantLeased(t, s, minutes(40), 1)[0]
		wantKinds(t, d, store.NoticeOpened, store.NoticeReminder, store.NoticeUpdated, store.NoticeUpdated)
		if d.Entry == nil || d.Entry.Kind != store.EntryComment {
			t.Errorf("entry %+v, want that of the last that names one", d.Entry)
		}
		settleAll(t, s, d, store.Settlement{At: minutes(40), Sent: true, Ref: "C1/1"})
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait, want all of them sent", n)
		}
		page, err := s.Attempts(t.Context(), store.AttemptFilter{})
		if err != nil || len(page.Items) != 1 || page.Items[0].NoticeID != d.Notice.ID {
			t.Errorf("attempts %+v, %v, want one line for all", page.Items, err)
		}
	})

	t.Run("what was put off to be told along with others goes with the next, and never after the end", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		recordBy(t, s, by, checkAt(e, start, probe.Down))
		settleAll(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true})
		recordBy(t, s, by, checkAt(e, minutes(2), probe.Degraded)) // to be told at minute 7
		wantLeased(t, s, minutes(3), 0)
		recordBy(t, s, by, checkAt(e, minutes(4), probe.Up))
		wantKinds(t, wantLeased(t, s, minutes(5), 1)[0], store.NoticeUpdated, store.NoticeResolved)
	})

	t.Run("notices that come while a delivery is under way wait for it", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		recordBy(t, s, by, checkAt(e, start, probe.Down))
		d := wantLeased(t, s, minutes(1), 1)[0]
		recordBy(t, s, by, checkAt(e, minutes(1), probe.Up))
		wantLeased(t, s, minutes(1).Add(30*time.Second), 0)
		settleAll(t, s, d, store.Settlement{At: minutes(1), Sent: true})
		wantKinds(t, wantLeased(t, s, minutes(2), 1)[0], store.NoticeResolved)
	})

	t.Run("a channel is in one pair of hands at a time", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		a, b := newEndpoint(t, s, "a", to(ops)), newEndpoint(t, s, "b", to(ops, dev))
		record(t, s, checkAt(a, start, probe.Down))
		first := wantLeased(t, s, minutes(1), 1)[0]
		record(t, s, checkAt(b, minutes(1), probe.Down))
		other := func(at time.Time, want ...string) []store.Delivery {
			t.Helper()
			got, err := s.LeaseNotices(t.Context(), "other", at, lease, 10)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, d := range got {
				names = append(names, d.Channel.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(names, want); diff != "" {
				t.Errorf("the other gets (-got +want):\n%s", diff)
			}
			return got
		}
		soon := minutes(1).Add(30 * time.Second)
		other(soon, "dev")
		mine := wantLeased(t, s, soon, 1)[0] // who has it already gets more
		if mine.Channel.Name != "ops" || mine.Endpoint.Name != "b" {
			t.Errorf("delivery %+v, want that of b to ops", mine)
		}
		settleAll(t, s, first, store.Settlement{At: soon, Sent: true})
		other(soon)
		settleAll(t, s, mine, store.Settlement{At: soon, RetryAt: minutes(2), Error: "429"})
		other(minutes(2), "ops")
	})

	t.Run("a lease that ran out leaves the channel to others", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		wantLeased(t, s, minutes(1), 1)
		got, err := s.LeaseNotices(t.Context(), "other", minutes(1).Add(lease), lease, 10)
		if err != nil || len(got) != 1 {
			t.Errorf("LeaseNotices = %+v, %v, want it", got, err)
		}
	})

	t.Run("a limit counts deliveries", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		for _, name := range []string{"a", "b", "c"} {
			e := newEndpoint(t, s, name, to(ops))
			recordBy(t, s, by, checkAt(e, start, probe.Down), checkAt(e, minutes(1), probe.Up))
		}
		got, err := s.LeaseNotices(t.Context(), me, minutes(2), lease, 2)
		if err != nil || len(got) != 2 || len(got[0].Later) != 1 || len(got[1].Later) != 1 {
			t.Errorf("LeaseNotices = %+v, %v, want two deliveries of two notices", got, err)
		}
		wantLeased(t, s, minutes(2), 1)
	})

	t.Run("an endpoint that stands behind one that is down waits, and is named there", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		gateway := newEndpoint(t, s, "Gateway", to(ops), func(e *store.Endpoint) { e.Public = true })
		a := newEndpoint(t, s, "b child", to(dev), behind(gateway))
		b := newEndpoint(t, s, "A child", to(dev), behind(gateway), func(e *store.Endpoint) { e.Public = true })
		newEndpoint(t, s, "well", to(dev), behind(gateway))
		public := subscribe(t, s, "a@example.com", func(u *store.Subscription) { u.All, u.Endpoints = false, []string{gateway.ID} })
		recordBy(t, s, by, checkAt(gateway, start, probe.Down), checkAt(a, minutes(1), probe.Down), checkAt(b, minutes(1), probe.Down))
		for _, d := range wantLeased(t, s, minutes(2), 2) {
			want := []string{"A child", "b child"}
			if d.Channel.ID == public.ID {
				want = want[:1] // what is not public is not shown
			}
			if diff := cmp.Diff(d.Dependents, want); diff != "" || d.Endpoint.Name != "Gateway" || !d.BehindUntil.IsZero() {
				t.Errorf("dependents for %s (-got +want):\n%s", d.Channel.Name, diff)
			}
			settleAll(t, s, d, store.Settlement{At: minutes(2), Sent: true})
		}
		recordBy(t, s, by, checkAt(b, minutes(3), probe.Up)) // its end waits along
		got := wantLeased(t, s, minutes(40), 1)[0]
		wantKinds(t, got, store.NoticeReminder)
		if diff := cmp.Diff(got.Dependents, []string{"b child"}); diff != "" {
			t.Errorf("dependents of the reminder (-got +want):\n%s", diff)
		}
		settleAll(t, s, got, store.Settlement{At: minutes(40), Sent: true})
		recordBy(t, s, by, checkAt(gateway, minutes(50), probe.Up))
		kinds := map[string]int{}
		for _, d := range leaseAll(t, s, minutes(51)) {
			kinds[d.Endpoint.Name+"/"+string(d.Notice.Kind)] += 1 + len(d.Later)
			if d.Endpoint.ID == gateway.ID {
				if d.Dependents != nil || !d.BehindUntil.IsZero() {
					t.Errorf("delivery of the end %+v, want nobody waiting", d)
				}
			} else if !d.BehindUntil.Equal(minutes(50)) {
				t.Errorf("%s stood behind another until %v, want minute 50", d.Endpoint.Name, d.BehindUntil)
			}
		}
		// The public subscriber and ops hear of the end; the reminder of b child, due as well, comes along with its opening.
		want := map[string]int{"Gateway/resolved": 2, "b child/opened": 2, "A child/opened": 2}
		if diff := cmp.Diff(kinds, want); diff != "" {
			t.Errorf("notices after the end (-got +want):\n%s", diff)
		}
	})

	t.Run("many that wait hide nobody who need not", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		gateway := newEndpoint(t, s, "Gateway", to(dev))
		recordBy(t, s, by, checkAt(gateway, start, probe.Down))
		settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true})
		var checks []store.Check
		for i := range 110 {
			checks = append(checks, checkAt(newEndpoint(t, s, fmt.Sprint("Child ", i), to(ops), behind(gateway)), minutes(1), probe.Down))
		}
		checks = append(checks, checkAt(newEndpoint(t, s, "Weather", to(ops)), minutes(2), probe.Down))
		recordBy(t, s, by, checks...)
		got, err := s.LeaseNotices(t.Context(), me, minutes(3), lease, 1)
		if err != nil || len(got) != 1 || got[0].Endpoint.Name != "Weather" {
			t.Errorf("LeaseNotices = %+v, %v, want the opening of Weather", got, err)
		}
	})

	t.Run("what was told before its parent went down goes on being told", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		gateway := newEndpoint(t, s, "Gateway", to(newChannel(t, s, "dev")))
		child := newEndpoint(t, s, "Child", to(ops), behind(gateway))
		recordBy(t, s, by, checkAt(child, start, probe.Down))
		settleAll(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true})
		recordBy(t, s, by, checkAt(gateway, minutes(2), probe.Down), checkAt(child, minutes(3), probe.Up))
		var d store.Delivery
		for _, d = range wantLeased(t, s, minutes(4), 2) {
			if d.Endpoint.ID == child.ID {
				break
			}
		}
		wantKinds(t, d, store.NoticeResolved)
		if !d.BehindUntil.Equal(minutes(4)) {
			t.Errorf("stands behind one that is down until %v, want the time of the lease", d.BehindUntil)
		}
	})

	t.Run("what is degraded holds nobody up", func(t *testing.T) {
		s := fresh(t).open(t)
		gateway := newEndpoint(t, s, "Gateway", to(newChannel(t, s, "dev")))
		child := newEndpoint(t, s, "Child", to(newChannel(t, s, "ops")), behind(gateway))
		recordBy(t, s, by, checkAt(gateway, start, probe.Down), checkAt(child, start, probe.Down))
		settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true}) // of the gateway
		recordBy(t, s, by, checkAt(gateway, minutes(2), probe.Degraded))
		var d store.Delivery
		for _, d = range wantLeased(t, s, minutes(10), 2) { // the gateway hears of the change
			if d.Endpoint.ID == child.ID {
				break
			}
		}
		if want := minutes(2).Add(80 * time.Millisecond); !d.BehindUntil.Equal(want) || d.Notice.Kind != store.NoticeOpened {
			t.Errorf("delivery %+v, want the opening, behind until %v", d, want)
		}
	})

	for name, test := range map[string]struct {
		rule  store.Judge
		heard func(t *testing.T, s store.Store, gateway store.Endpoint) // who hears of the gateway
	}{
		"has no channels": {by, func(*testing.T, store.Store, store.Endpoint) {}},
		"is told to subscribers only": {by, func(t *testing.T, s store.Store, gateway store.Endpoint) {
			subscribe(t, s, "a@example.com", func(u *store.Subscription) { u.All, u.Endpoints = false, []string{gateway.ID} })
		}},
		"does not tell this severity": {ruled(untold), func(t *testing.T, s store.Store, gateway store.Endpoint) {
			edit(t, s, gateway, to(newChannel(t, s, "dev")))
		}},
		"comes and goes": {ruled(flaps), func(t *testing.T, s store.Store, gateway store.Endpoint) {
			edit(t, s, gateway, to(newChannel(t, s, "dev")))
		}},
		"has a channel that is broken": {by, func(t *testing.T, s store.Store, gateway store.Endpoint) {
			dev := newChannel(t, s, "dev")
			record(t, s, checkAt(newEndpoint(t, s, "Other", to(dev)), minutes(-5), probe.Down))
			settle(t, s, wantLeased(t, s, minutes(-4), 1)[0], store.Settlement{At: minutes(-4), Permanent: true, Error: "gone"})
			edit(t, s, gateway, to(dev))
		}},
	} {
		t.Run("nobody waits for a parent that "+name, func(t *testing.T) {
			s := fresh(t).open(t)
			gateway := newEndpoint(t, s, "Gateway", func(e *store.Endpoint) { e.Public = true })
			child := newEndpoint(t, s, "Child", to(newChannel(t, s, "ops")), behind(gateway))
			test.heard(t, s, gateway)
			recordBy(t, s, test.rule, checkAt(gateway, start, probe.Down))
			recordBy(t, s, by, checkAt(child, start, probe.Down))
			var told []store.Delivery
			for _, d := range leaseAll(t, s, minutes(1)) {
				if d.Dependents != nil {
					t.Errorf("delivery %+v names those behind it, want none", d)
				}
				if d.Endpoint.ID == child.ID {
					told = append(told, d)
				}
			}
			if len(told) != 1 || told[0].Notice.Kind != store.NoticeOpened || !told[0].BehindUntil.IsZero() {
				t.Errorf("deliveries of the child %+v, want its opening, behind nothing", told)
			}
		})
	}

	t.Run("passed is over and logged, and no channel is broken", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := newEndpoint(t, s, "Weather", to(ops))
		record(t, s, checkAt(e, start, probe.Down))
		settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Passed: true, Error: "nobody has to hear"})
		wantLeased(t, s, minutes(60), 0)
		wantBroken(t, s, ops.ID, "")
		page, err := s.Attempts(t.Context(), store.AttemptFilter{ChannelID: ops.ID})
		if err != nil || len(page.Items) != 1 || page.Items[0].Outcome != store.OutcomePassed || page.Items[0].Error != "nobody has to hear" {
			t.Errorf("attempts %+v, %v, want that it passed", page.Items, err)
		}
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait", n)
		}
	})

	t.Run("deferred is no attempt", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		settle(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), RetryAt: minutes(9), Deferred: true})
		wantLeased(t, s, minutes(8), 0)
		if d := wantLeased(t, s, minutes(9), 1)[0]; d.Notice.Attempts != 0 || !d.Notice.DueAt.Equal(minutes(9)) {
			t.Errorf("notice %+v, want it due then and never tried", d.Notice)
		}
		if page, err := s.Attempts(t.Context(), store.AttemptFilter{}); err != nil || len(page.Items) != 0 {
			t.Errorf("attempts %+v, %v, want none", page.Items, err)
		}
	})

	t.Run("what fails for good fails with all that went along", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := newEndpoint(t, s, "Weather", to(ops))
		record(t, s, checkAt(e, start, probe.Down), checkAt(e, minutes(1), probe.Up))
		settleAll(t, s, wantLeased(t, s, minutes(2), 1)[0], store.Settlement{At: minutes(2), Permanent: true, Error: "gone"})
		wantBroken(t, s, ops.ID, "gone")
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait, want none", n)
		}
	})

	t.Run("deliveries of one lease and channel may be settled as one", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		record(t, s, checkAt(newEndpoint(t, s, "a", to(ops)), start, probe.Down), checkAt(newEndpoint(t, s, "b", to(ops)), start, probe.Down))
		got := wantLeased(t, s, minutes(1), 2)
		settle(t, s, got[0], store.Settlement{At: minutes(1), Sent: true, Later: []string{got[1].Notice.ID}})
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait, want none", n)
		}
		for _, d := range got { // each incident says that it was told
			entries, err := s.Timeline(t.Context(), d.Incident.ID)
			sent := func(e store.Entry) bool { return e.Kind == store.EntrySent && e.NoticeID == d.Notice.ID }
			if err != nil || !slices.ContainsFunc(entries, sent) {
				t.Errorf("timeline %+v, %v, want it to say that notice %s was sent", entries, err, d.Notice.ID)
			}
		}
	})

	t.Run("the next reminder follows the one that was sent, while somebody may need it", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		id := record(t, s, checkAt(e, start, probe.Down))[0].Opened
		sent := func(at, next time.Time) {
			t.Helper()
			settleAll(t, s, wantLeased(t, s, at, 1)[0], store.Settlement{At: at, Sent: true, Next: next})
		}
		sent(minutes(1), minutes(30))
		wantLeased(t, s, minutes(29), 0)
		act(t, s, id, store.Act{Kind: store.ActSnooze, At: minutes(29), Until: minutes(200)})
		sent(minutes(29), minutes(60)) // word of the snooze: a reminder waits already
		if n := pending(t, s); n != 1 {
			t.Fatalf("%d notices wait, want one reminder", n)
		}
		d := wantLeased(t, s, minutes(200), 1)[0]
		wantKinds(t, d, store.NoticeReminder)
		if d.Entry != nil || d.Notice.IncidentID != id {
			t.Errorf("delivery %+v, want one of no entry", d)
		}
		settleAll(t, s, d, store.Settlement{At: minutes(200), Sent: true, Next: minutes(230)})
		act(t, s, id, store.Act{Kind: store.ActAcknowledge, At: minutes(201)})
		sent(minutes(202), minutes(260)) // nobody needs to be reminded
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait after it was acknowledged, want none", n)
		}
	})

	t.Run("a reminder asked for during a snooze waits for its end, and one asked for after the end is none", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		id := record(t, s, checkAt(e, start, probe.Down))[0].Opened
		act(t, s, id, store.Act{Kind: store.ActSnooze, At: minutes(1), Until: minutes(100)})
		settleAll(t, s, wantLeased(t, s, minutes(2), 1)[0], store.Settlement{At: minutes(2), Sent: true, Next: minutes(30)})
		wantLeased(t, s, minutes(99), 0)
		d := wantLeased(t, s, minutes(100), 1)[0]
		record(t, s, checkAt(e, minutes(100), probe.Up)) // takes back what is under way
		end := store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: minutes(101), Sent: true, Next: minutes(130)}
		if err := s.SettleNotice(t.Context(), end); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("SettleNotice: %v", err)
		}
		wantKinds(t, wantLeased(t, s, minutes(200), 1)[0], store.NoticeResolved)
	})

	t.Run("what goes along with a reminder that was taken back is settled all the same", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		id := recordBy(t, s, by, checkAt(e, start, probe.Down))[0].Opened
		settleAll(t, s, wantLeased(t, s, minutes(1), 1)[0], store.Settlement{At: minutes(1), Sent: true})
		act(t, s, id, store.Act{Kind: store.ActComment, At: minutes(2), Text: "looking"})
		d := wantLeased(t, s, minutes(31), 1)[0]
		wantKinds(t, d, store.NoticeReminder, store.NoticeUpdated)
		act(t, s, id, store.Act{Kind: store.ActAcknowledge, At: minutes(31)})
		settleAll(t, s, d, store.Settlement{At: minutes(31), Sent: true})
		got := wantLeased(t, s, minutes(32), 1)[0]
		wantKinds(t, got, store.NoticeUpdated)
		if got.Entry == nil || got.Entry.Kind != store.EntryAcknowledged {
			t.Errorf("delivery %+v, want the one about the acknowledgement alone", got)
		}
	})

	t.Run("what was sent, passed or failed is sent once more on demand", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := newEndpoint(t, s, "Weather", to(ops))
		record(t, s, checkAt(e, start, probe.Down))
		d := wantLeased(t, s, minutes(1), 1)[0]
		wantConflict(t, s.Resend(t.Context(), d.Notice.ID, minutes(1)), "notice")
		for i, end := range []store.Settlement{{Sent: true, Ref: "C1/1"}, {Passed: true}, {Permanent: true, Error: "gone"}} {
			end.At = minutes(2 * i)
			settle(t, s, d, end)
			if err := s.Resend(t.Context(), d.Notice.ID, minutes(2*i+1)); err != nil {
				t.Fatalf("Resend: %v", err)
			}
			if end.Permanent {
				break
			}
			wantLeased(t, s, minutes(2*i), 0)
			d = wantLeased(t, s, minutes(2*i+1), 1)[0]
			if d.Notice.Attempts != i+1 || d.Ref != "" || !d.Notice.CreatedAt.Equal(minutes(2*i+1)) {
				t.Errorf("delivery %+v, want another message after %d attempts, as old as when it was asked for", d, i+1)
			}
		}
		wantLeased(t, s, minutes(60), 0) // the channel is broken
		for _, none := range []string{"", "ntc_none", "\x00"} {
			wantNotFound(t, "Resend", s.Resend(t.Context(), none, minutes(1)))
		}
	})

	t.Run("the log of deliveries, newest first, in pages, by channel and incident", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		e := newEndpoint(t, s, "Weather", to(ops, dev), notified)
		record(t, s, promise(e, -3, "modern", tools("x")), promise(e, -2, "modern", tools("y")), promise(e, -1, "modern", tools("y")))
		id := record(t, s, checkAt(e, start, probe.Down))[0].Opened
		for _, d := range wantLeased(t, s, minutes(1), 4) {
			settle(t, s, d, store.Settlement{At: minutes(1), RetryAt: minutes(2), Error: "503", Took: 1500 * time.Microsecond})
		}
		for _, d := range wantLeased(t, s, minutes(2), 4) {
			settle(t, s, d, store.Settlement{At: minutes(2), Sent: true})
		}
		list := func(f store.AttemptFilter) (all []store.Attempt) {
			t.Helper()
			walk(t, func(a store.Attempt) string { all = append(all, a); return a.NoticeID }, func(cursor string) (store.Page[store.Attempt], error) {
				f.Cursor = cursor
				return s.Attempts(t.Context(), f)
			})
			return all
		}
		all := list(store.AttemptFilter{})
		if len(all) != 8 || !slices.IsSortedFunc(all, func(a, b store.Attempt) int { return b.At.Compare(a.At) }) {
			t.Errorf("%d attempts %+v, want 8, newest first", len(all), all)
		}
		for _, limit := range []int{1, 3, 8} {
			if diff := cmp.Diff(list(store.AttemptFilter{Limit: limit}), all); diff != "" {
				t.Errorf("pages of %d (-got +want):\n%s", limit, diff)
			}
		}
		of := list(store.AttemptFilter{ChannelID: ops.ID, IncidentID: id})
		want := []store.Attempt{
			{ChannelID: ops.ID, Kind: store.NoticeOpened, IncidentID: id, Slug: e.Slug, Name: "Weather", Number: 2, At: minutes(2), Outcome: store.OutcomeSent},
			{
				ChannelID: ops.ID, Kind: store.NoticeOpened, IncidentID: id, Slug: e.Slug, Name: "Weather", Number: 1, At: minutes(1),
				Outcome: store.OutcomeRetry, Error: "503", Took: 1500 * time.Microsecond,
			},
		}
		if len(of) == 2 {
			want[0].NoticeID, want[1].NoticeID = of[0].NoticeID, of[0].NoticeID
		}
		if diff := cmp.Diff(of, want); diff != "" {
			t.Errorf("attempts of one channel and incident (-got +want):\n%s", diff)
		}
		contracts := 0
		for _, a := range all {
			if a.Kind == store.NoticeContract && a.IncidentID == "" && a.Slug == e.Slug {
				contracts++
			}
		}
		if contracts != 4 {
			t.Errorf("%d attempts of the contract's notices name the endpoint, want 4", contracts)
		}
		for _, cursor := range append(badCursors(), store.TimeCursor("attempts", start, "x"), store.TimeCursor("attempts", start, "x/y")) {
			if _, err := s.Attempts(t.Context(), store.AttemptFilter{Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("Attempts with cursor %q: error %v, want ErrBadCursor", cursor, err)
			}
		}
	})
}
