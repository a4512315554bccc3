package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// chained is a rule by which whatever is down is in the incident of one chain, and leaves it when it is up.
func chained(s store.Situation) []store.Turn {
	at := s.Check.Ended()
	i := slices.IndexFunc(s.Standing.Others, func(i store.Incident) bool { return i.Kind == store.IncidentChain })
	switch {
	case i < 0 && s.Check.Result.Verdict == probe.Down:
		in := store.OpenIncident(s)
		in.Kind, in.Subject, in.EndpointID, in.Title, in.SeenFrom = store.IncidentChain, store.SubjectOfChain("evm 1"), "", "Ethereum", nil
		return []store.Turn{{
			Incident: in, Opens: true, Entries: []store.Entry{{At: at, Kind: store.EntryOpened, Severity: in.Severity, Cause: &in.Cause}},
			Notices: tellings(s, store.NoticeOpened, 0), Tells: store.NoticeOpened, Told: true,
		}}
	case i >= 0 && s.Check.Result.Verdict == probe.Degraded:
		in := s.Standing.Others[i]
		in.Severity = store.StatusDegraded
		return []store.Turn{{
			Incident: in, Entries: []store.Entry{{At: at, Kind: store.EntrySeverity, Severity: in.Severity}},
			Notices: store.NoticesOf(in, store.NoticeUpdated, nil, at), Tells: store.NoticeUpdated, Told: true,
		}}
	case i >= 0 && s.Check.Result.Verdict == probe.Up:
		in := *store.Resolve(s.Standing.Others[i], at, s.Standing.State.Since, store.ResolutionRecovered)
		return []store.Turn{{
			Incident: in, Leaves: true, Withdraw: true, Entries: []store.Entry{{At: at, Kind: store.EntryLeft}},
			Notices: store.NoticesOf(in, store.NoticeResolved, nil, at), Tells: store.NoticeResolved, Told: true,
		}}
	}
	return nil
}

func testShared(t *testing.T, fresh func(t testing.TB) Database) {
	by := ruled(chained)
	// only returns the one incident that there is.
	only := func(t *testing.T, s store.Store) store.Incident {
		t.Helper()
		page, err := s.Incidents(t.Context(), store.IncidentFilter{Kinds: []store.IncidentKind{store.IncidentChain}})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("incidents %+v, %v, want one", page.Items, err)
		}
		return page.Items[0]
	}
	told := func(t *testing.T, s store.Store, at time.Time) map[string]store.NoticeKind {
		t.Helper()
		got := map[string]store.NoticeKind{}
		for _, d := range leaseAll(t, s, at) {
			got[d.Channel.Name] = d.Notice.Kind
			if d.Incident.Title != "Ethereum" || d.Endpoint.ID != "" {
				t.Errorf("delivery %+v, want one of the chain", d)
			}
			settleAll(t, s, d, store.Settlement{At: at, Sent: true})
		}
		return got
	}

	for _, grouped := range []bool{true, false} {
		name := "endpoints of one group"
		if !grouped {
			name = "endpoints of groups apart"
		}
		t.Run(name+" share one incident: each joins and leaves, and with the last it ends", func(t *testing.T) {
			s := fresh(t).open(t)
			ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
			a := newEndpoint(t, s, "a", to(ops), func(e *store.Endpoint) { e.Public = true })
			b, c := newEndpoint(t, s, "b", to(ops, dev)), newEndpoint(t, s, "c", to(dev))
			subscribe(t, s, "sub@example.com", func(u *store.Subscription) { u.Channel.Name = "sub" })
			down := []store.Check{checkAt(a, start, probe.Down), checkAt(b, minutes(1), probe.Down), checkAt(c, minutes(2), probe.Down)}
			if grouped {
				recordBy(t, s, by, down...)
			} else {
				for _, c := range down {
					recordBy(t, s, by, c)
				}
			}
			i := only(t, s)
			if diff := cmp.Diff(i.Endpoints, []string{a.ID, b.ID, c.ID}); diff != "" || i.EndpointID != "" || i.ResolvedAt != nil {
				t.Errorf("incident %+v, endpoints (-got +want):\n%s", i, diff)
			}
			if diff := cmp.Diff(told(t, s, minutes(3)), map[string]store.NoticeKind{"ops": "opened", "dev": "opened", "sub": "opened"}); diff != "" {
				t.Errorf("told (-got +want):\n%s", diff)
			}
			recordBy(t, s, by, checkAt(a, minutes(4), probe.Up), checkAt(a, minutes(5), probe.Down), checkAt(c, minutes(6), probe.Up))
			if diff := cmp.Diff(only(t, s).Endpoints, []string{a.ID, b.ID}); diff != "" {
				t.Errorf("endpoints after some left and one came back (-got +want):\n%s", diff)
			}
			if got := told(t, s, minutes(7)); len(got) != 0 {
				t.Errorf("told %v while some are left, want nothing", got)
			}
			recordBy(t, s, by, checkAt(b, minutes(8), probe.Degraded))
			if i := only(t, s); i.Severity != store.StatusDegraded || i.Worst != store.StatusDown {
				t.Errorf("incident %+v, want it less severe", i)
			}
			// The subscriber may hear of public endpoints alone, and a is one.
			if diff := cmp.Diff(told(t, s, minutes(9)), map[string]store.NoticeKind{"ops": "updated", "dev": "updated", "sub": "updated"}); diff != "" {
				t.Errorf("told of the change (-got +want):\n%s", diff)
			}
			recordBy(t, s, by, checkAt(a, minutes(10), probe.Up), checkAt(b, minutes(11), probe.Up))
			i = only(t, s)
			if i.ResolvedAt == nil || !i.ResolvedAt.Equal(minutes(11)) || i.Resolution != store.ResolutionRecovered {
				t.Errorf("incident %+v, want it over with the last", i)
			}
			if diff := cmp.Diff(i.Endpoints, []string{a.ID, b.ID, c.ID}); diff != "" {
				t.Errorf("endpoints of what is over (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(told(t, s, minutes(12)), map[string]store.NoticeKind{"ops": "resolved", "dev": "resolved", "sub": "resolved"}); diff != "" {
				t.Errorf("told of the end (-got +want):\n%s", diff)
			}
			entries := slices.DeleteFunc(timeline(t, s, i.ID), func(e store.Entry) bool { return e.Kind == store.EntrySent })
			var lines []string
			for _, e := range entries {
				lines = append(lines, string(e.Kind)+" "+e.Text)
			}
			want := []string{"opened ", "joined b", "joined c", "left a", "joined a", "left c", "severity ", "left a", "left b", "resolved "}
			if diff := cmp.Diff(lines, want); diff != "" {
				t.Errorf("timeline (-got +want):\n%s", diff)
			}
			for _, e := range []store.Endpoint{a, c} {
				page, err := s.Incidents(t.Context(), store.IncidentFilter{EndpointID: e.ID})
				if err != nil || len(page.Items) != 1 {
					t.Errorf("incidents of %s = %+v, %v, want the one that it was in", e.Name, page.Items, err)
				}
			}
			recordBy(t, s, by, checkAt(a, minutes(20), probe.Down))
			page, err := s.Incidents(t.Context(), store.IncidentFilter{Status: store.IncidentOpen})
			if err != nil || len(page.Items) != 1 || page.Items[0].ID == i.ID {
				t.Errorf("open incidents %+v, %v, want another one", page.Items, err)
			}
		})
	}

	t.Run("an endpoint that is paused or goes leaves, and with the last it ends", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		a, b := newEndpoint(t, s, "a", to(ops)), newEndpoint(t, s, "b")
		recordBy(t, s, by, checkAt(a, start, probe.Down), checkAt(b, minutes(1), probe.Down))
		told(t, s, minutes(2))
		pause(t, s, a)
		if i := only(t, s); i.ResolvedAt != nil || !slices.Equal(i.Endpoints, []string{b.ID}) {
			t.Errorf("incident %+v, want b left in it", i)
		}
		if err := s.DeleteEndpoint(t.Context(), b.Slug); err != nil {
			t.Fatal(err)
		}
		if i := only(t, s); i.ResolvedAt == nil || !slices.Equal(i.Endpoints, []string{a.ID}) {
			t.Errorf("incident %+v, want it over", i)
		}
		if diff := cmp.Diff(told(t, s, time.Now().Add(time.Hour)), map[string]store.NoticeKind{"ops": "resolved"}); diff != "" {
			t.Errorf("told of the end (-got +want):\n%s", diff)
		}
	})

	t.Run("it is public while a public endpoint is in it, and when one was", func(t *testing.T) {
		s := fresh(t).open(t)
		a := newEndpoint(t, s, "a", func(e *store.Endpoint) { e.Public = true })
		b := newEndpoint(t, s, "b")
		shown := func(when string, want bool) {
			t.Helper()
			page, err := s.Incidents(t.Context(), store.IncidentFilter{PublicOnly: true})
			if err != nil || len(page.Items) == 1 != want {
				t.Errorf("%s: public incidents %+v, %v, want it: %v", when, page.Items, err, want)
			}
			if i := only(t, s); i.Public != want {
				t.Errorf("%s: incident %+v, want it public: %v", when, i, want)
			}
		}
		recordBy(t, s, by, checkAt(b, start, probe.Down))
		shown("of b alone", false)
		recordBy(t, s, by, checkAt(a, minutes(1), probe.Down))
		shown("of both", true)
		recordBy(t, s, by, checkAt(a, minutes(2), probe.Up))
		shown("when a has left", false)
		recordBy(t, s, by, checkAt(b, minutes(3), probe.Up))
		shown("when it is over", true)
		edit(t, s, a, func(e *store.Endpoint) { e.Public = false })
		shown("when none is public any more", false)
	})

	t.Run("nobody declares over what ends by itself, nor opens it again", func(t *testing.T) {
		s := fresh(t).open(t)
		a := newEndpoint(t, s, "a", to(newChannel(t, s, "ops")))
		recordBy(t, s, by, checkAt(a, start, probe.Down))
		id := only(t, s).ID
		_, err := s.Act(t.Context(), id, store.Act{Kind: store.ActResolve, At: minutes(1), Author: "ops"})
		wantConflict(t, err, "act")
		if i := act(t, s, id, store.Act{Kind: store.ActAcknowledge, At: minutes(1)}); i.ResolvedAt != nil || i.AcknowledgedAt == nil {
			t.Errorf("incident %+v, want it open and acknowledged", i)
		}
		recordBy(t, s, by, checkAt(a, minutes(2), probe.Up))
		_, err = s.Act(t.Context(), id, store.Act{Kind: store.ActReopen, At: minutes(3), Author: "ops"})
		wantConflict(t, err, "act")
	})

	t.Run("what somebody declared over nobody leaves", func(t *testing.T) {
		s := fresh(t).open(t)
		a := newEndpoint(t, s, "a", to(newChannel(t, s, "ops")))
		recordBy(t, s, by, checkAt(a, start, probe.Down))
		i := only(t, s)
		if _, err := s.Clear(t.Context(), i.Subject, minutes(1), store.ResolutionManual, ""); err != nil {
			t.Fatal(err)
		}
		recordBy(t, s, by, checkAt(a, minutes(2), probe.Up))
		if n := len(timeline(t, s, i.ID)); n != 2 {
			t.Errorf("%d lines, want those of the beginning and the end", n)
		}
		if got := only(t, s); got.Resolution != store.ResolutionManual {
			t.Errorf("incident %+v, want it ended by hand", got)
		}
	})
}
