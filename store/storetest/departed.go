package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testDepartedEndpoints(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("an endpoint that goes leaves maintenances and subscriptions, which never come to be about all", func(t *testing.T) {
		s := fresh(t).open(t)
		gone, stays := newEndpoint(t, s, "Gone"), newEndpoint(t, s, "Stays", func(e *store.Endpoint) { e.Public, e.Tags = true, []string{"prod"} })
		plan := func(title string, edit func(*store.Maintenance)) store.Maintenance {
			t.Helper()
			m := store.Maintenance{Title: title, StartsAt: start, EndsAt: minutes(60)}
			edit(&m)
			kept, err := s.CreateMaintenance(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			return kept
		}
		some := func(edit func(*store.Subscription)) func(*store.Subscription) {
			return func(u *store.Subscription) { u.All = false; edit(u) }
		}
		plans := []store.Maintenance{
			plan("one", func(m *store.Maintenance) { m.Endpoints = []string{gone.ID} }),
			plan("both", func(m *store.Maintenance) { m.Endpoints = []string{stays.ID, gone.ID, "ep_other"} }),
			plan("tag", func(m *store.Maintenance) { m.Endpoints, m.Tags = []string{gone.ID}, []string{"prod"} }),
			plan("all", func(m *store.Maintenance) { m.All = true }),
		}
		subs := []store.Subscription{
			subscribe(t, s, "one@example.com", some(func(u *store.Subscription) { u.Endpoints = []string{gone.ID} })),
			subscribe(t, s, "both@example.com", some(func(u *store.Subscription) { u.Endpoints = []string{gone.ID, stays.ID} })),
			subscribe(t, s, "tag@example.com", some(func(u *store.Subscription) { u.Endpoints, u.Tags = []string{gone.ID}, []string{"prod"} })),
			subscribe(t, s, "all@example.com"),
			subscribe(t, s, "waits@example.com", asked("secret"), some(func(u *store.Subscription) { u.Endpoints = []string{gone.ID} })),
		}
		if err := s.DeleteEndpoint(t.Context(), gone.Slug); err != nil {
			t.Fatal(err)
		}
		plans[0].Endpoints, plans[1].Endpoints, plans[2].Endpoints = nil, []string{stays.ID, "ep_other"}, nil
		for _, want := range plans {
			got, err := s.Maintenance(t.Context(), want.ID)
			if diff := cmp.Diff(got, want); diff != "" || err != nil {
				t.Errorf("maintenance %q (-got +want):\n%s%v", want.Title, diff, err)
			}
		}
		subs[0].Endpoints, subs[1].Endpoints, subs[2].Endpoints, subs[4].Endpoints = nil, []string{stays.ID}, nil, nil
		for _, want := range subs {
			got, err := s.Subscription(t.Context(), want.ID)
			if diff := cmp.Diff(got, want); diff != "" || err != nil {
				t.Errorf("subscription of %s (-got +want):\n%s%v", want.Address(), diff, err)
			}
		}
		for i, want := range []bool{false, true, true, true} {
			if plans[i].Covers(stays) != want || subs[i].Wants(stays, store.StatusDown) != want || subs[i].Wants(store.Endpoint{}, store.StatusDown) != (i == 3) {
				t.Errorf("%q and %s do not cover what is left as they did", plans[i].Title, subs[i].Address())
			}
		}

		// What covers nothing can be confirmed, edited in other respects, and be about something again; but not be made so.
		if _, err := s.ConfirmSubscription(t.Context(), subs[4].ID, store.HashSecret("secret"), store.DefaultSubscriptionCaps); err != nil {
			t.Errorf("ConfirmSubscription: %v", err)
		}
		rename := func(u *store.Subscription) error { u.Channel.Settings["to"] = "new@example.com"; return nil }
		if got, err := s.UpdateSubscription(t.Context(), subs[0].ID, rename); err != nil || got.All {
			t.Errorf("UpdateSubscription = %+v, %v", got, err)
		}
		_, err := s.UpdateSubscription(t.Context(), subs[1].ID, func(u *store.Subscription) error { u.Endpoints = nil; return nil })
		wantInvalid(t, err, "endpoints")

		record(t, s, checkAt(stays, start, probe.Down))
		heard := map[string]bool{}
		for _, d := range leaseAll(t, s, minutes(1)) {
			heard[d.Channel.Settings["to"]] = true
		}
		if diff := cmp.Diff(heard, map[string]bool{"both@example.com": true, "tag@example.com": true, "all@example.com": true}); diff != "" {
			t.Errorf("who hears of what is left (-got +want):\n%s", diff)
		}
	})

	t.Run("those that depend on an endpoint are found by it", func(t *testing.T) {
		s := fresh(t).open(t)
		parent, other := newEndpoint(t, s, "Parent"), newEndpoint(t, s, "Other")
		newEndpoint(t, s, "B", behind(other, parent))
		newEndpoint(t, s, "A", behind(parent))
		newEndpoint(t, s, "C", behind(other))
		for id, want := range map[string][]string{parent.ID: {"A", "B"}, other.ID: {"B", "C"}, "ep_none": nil} {
			page, err := s.Endpoints(t.Context(), store.EndpointFilter{Behind: id})
			var names []string
			for _, o := range page.Items {
				names = append(names, o.Name)
			}
			if diff := cmp.Diff(names, want); diff != "" || err != nil {
				t.Errorf("behind %s (-got +want):\n%s%v", id, diff, err)
			}
		}
		page, err := s.Endpoints(t.Context(), store.EndpointFilter{Behind: parent.ID, Limit: 1})
		if err != nil || len(page.Items) != 1 || page.Next == "" {
			t.Errorf("a page of one = %+v, %v", page, err)
		}
	})
}
