package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// newPage keeps a status page that shows what has a tag.
func newPage(t testing.TB, s store.Store, slug, tag string) store.StatusPage {
	t.Helper()
	p, err := s.CreateStatusPage(t.Context(), store.StatusPage{
		Slug: slug, Name: slug, Logo: Logo(t), Sections: []store.PageSection{{Tags: []string{tag}}},
	})
	if err != nil {
		t.Fatalf("CreateStatusPage(%q): %v", slug, err)
	}
	return p
}

// onPage makes a subscription one of a status page.
func onPage(p store.StatusPage) func(*store.Subscription) {
	return func(u *store.Subscription) { u.PageID = p.ID }
}

func tagged(tags ...string) func(*store.Endpoint) {
	return func(e *store.Endpoint) { e.Tags = tags }
}

func testPageSubscriptions(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("an address is subscribed once on each page, and stays on it", func(t *testing.T) {
		s := fresh(t).open(t)
		a, b := newPage(t, s, "a", "a"), newPage(t, s, "b", "b")
		plain := subscribe(t, s, "a@example.com")
		on := subscribe(t, s, "a@example.com", onPage(a))
		subscribe(t, s, "a@example.com", onPage(b))
		_, err := s.CreateSubscription(t.Context(), subscriptionTo("A@example.com", onPage(a)))
		wantConflict(t, err, "address")
		_, err = s.CreateSubscription(t.Context(), subscriptionTo("b@example.com", func(u *store.Subscription) { u.PageID = "page_none" }))
		wantNotFound(t, "CreateSubscription on no page", err)
		got, err := s.UpdateSubscription(t.Context(), on.ID, func(u *store.Subscription) error {
			u.PageID, u.Tags = b.ID, []string{"a"}
			return nil
		})
		if err != nil || got.PageID != a.ID || on.PageID != a.ID {
			t.Errorf("UpdateSubscription = page %q, %v, want that of before", got.PageID, err)
		}
		if again, err := s.Subscription(t.Context(), on.ID); !cmp.Equal(again, got) || err != nil {
			t.Errorf("Subscription (-got +want):\n%s%v", cmp.Diff(again, got), err)
		}
		for page, want := range map[string]string{"": plain.ID, a.ID: on.ID} {
			found, err := s.Subscriptions(t.Context(), store.SubscriptionFilter{PageID: &page, Address: "a@example.com"})
			if err != nil || len(found.Items) != 1 || found.Items[0].ID != want {
				t.Errorf("Subscriptions of page %q = %v, %v, want %s alone", page, found.Items, err, want)
			}
		}
	})

	t.Run("who subscribed on a page hears of what it shows at that moment, public or not, and of nothing else", func(t *testing.T) {
		s := fresh(t).open(t)
		page := newPage(t, s, "acme", "acme")
		subscribe(t, s, "all@example.com", onPage(page))
		private := newEndpoint(t, s, "Private", tagged("acme", "eu")) // added after they subscribed
		public := newEndpoint(t, s, "Public", func(e *store.Endpoint) { e.Public = true })
		subscribe(t, s, "one@example.com", onPage(page), func(u *store.Subscription) { u.All, u.Endpoints = false, []string{private.ID} })
		subscribe(t, s, "other@example.com", onPage(page), func(u *store.Subscription) { u.All, u.Endpoints = false, []string{public.ID} })
		subscribe(t, s, "tag@example.com", onPage(page), func(u *store.Subscription) { u.All, u.Tags = false, []string{"eu"} })
		subscribe(t, s, "builtin@example.com")
		heard := func() map[string]store.NoticeKind {
			t.Helper()
			kinds := map[string]store.NoticeKind{}
			for _, d := range leaseAll(t, s, minutes(60)) {
				kinds[d.Channel.Settings["to"]] = d.Notice.Kind
				var slug string
				if d.Page != nil {
					slug = d.Page.Slug
				}
				if of := map[bool]string{true: "acme"}[d.Subscription.PageID != ""]; slug != of {
					t.Errorf("delivery to %s with page %q, want %q", d.Channel.Name, slug, of)
				}
				settle(t, s, d, store.Settlement{At: minutes(60), Sent: true})
			}
			return kinds
		}
		record(t, s, checkAt(private, start, probe.Down))
		want := map[string]store.NoticeKind{"all@example.com": "opened", "one@example.com": "opened", "tag@example.com": "opened"}
		if diff := cmp.Diff(heard(), want); diff != "" {
			t.Errorf("of what is on the page hear (-got +want):\n%s", diff)
		}
		record(t, s, checkAt(public, start, probe.Down))
		if diff := cmp.Diff(heard(), map[string]store.NoticeKind{"builtin@example.com": "opened"}); diff != "" {
			t.Errorf("of what is not hear (-got +want):\n%s", diff)
		}
		announce := func(endpoints ...string) {
			t.Helper()
			i := store.Incident{Kind: store.IncidentManual, Title: "It is slow", Severity: store.StatusDown, Endpoints: endpoints, StartedAt: start}
			if _, _, err := s.Raise(t.Context(), i, "Ada", "We look into it.", nil); err != nil {
				t.Fatal(err)
			}
		}
		announce()
		if diff := cmp.Diff(heard(), map[string]store.NoticeKind{"builtin@example.com": "opened"}); diff != "" {
			t.Errorf("of what is announced of nothing hear (-got +want):\n%s", diff)
		}
		announce(private.ID)
		if diff := cmp.Diff(heard(), want); diff != "" {
			t.Errorf("of what is announced of what is on the page hear (-got +want):\n%s", diff)
		}
	})

	t.Run("who stands behind an endpoint is named to those alone whose page shows it", func(t *testing.T) {
		s := fresh(t).open(t)
		page := newPage(t, s, "acme", "acme")
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		gateway := newEndpoint(t, s, "Gateway", to(ops), tagged("acme"))
		shown := newEndpoint(t, s, "Shown", to(dev), tagged("acme"), behind(gateway))
		hidden := newEndpoint(t, s, "Hidden", to(dev), behind(gateway), func(e *store.Endpoint) { e.Public = true })
		u := subscribe(t, s, "a@example.com", onPage(page), func(u *store.Subscription) { u.All, u.Endpoints = false, []string{gateway.ID} })
		recordBy(t, s, ruled(opens), checkAt(gateway, start, probe.Down), checkAt(shown, minutes(1), probe.Down), checkAt(hidden, minutes(1), probe.Down))
		for _, d := range wantLeased(t, s, minutes(2), 2) {
			want := []string{"Hidden", "Shown"}
			if d.Channel.ID == u.ID {
				want = want[1:]
			}
			if diff := cmp.Diff(d.Dependents, want); diff != "" {
				t.Errorf("dependents for %s (-got +want):\n%s", d.Channel.Name, diff)
			}
		}
	})

	t.Run("a page that goes takes its subscriptions along, and what waits for them", func(t *testing.T) {
		s := fresh(t).open(t)
		page, stays := newPage(t, s, "acme", "acme"), newPage(t, s, "other", "acme")
		e := newEndpoint(t, s, "Weather", tagged("acme"))
		u := subscribe(t, s, "a@example.com", onPage(page))
		kept := subscribe(t, s, "a@example.com", onPage(stays))
		record(t, s, checkAt(e, start, probe.Down))
		if n := pending(t, s); n != 2 {
			t.Fatalf("%d notices wait, want two", n)
		}
		if err := s.DeleteStatusPage(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		_, err := s.Subscription(t.Context(), u.ID)
		wantNotFound(t, "Subscription", err)
		if d := wantLeased(t, s, minutes(1), 1)[0]; d.Channel.ID != kept.ID || d.Page == nil || d.Page.ID != stays.ID || d.Page.Logo != nil {
			t.Errorf("delivery to %s of page %+v, want the one that stays, without its logo", d.Channel.ID, d.Page)
		}
	})
}
