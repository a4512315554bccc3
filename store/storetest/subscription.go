package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// subscribe keeps a confirmed subscription of the public to everything, as edited.
func subscribe(t testing.TB, s store.Store, address string, edits ...func(*store.Subscription)) store.Subscription {
	t.Helper()
	kept, err := s.CreateSubscription(t.Context(), subscriptionTo(address, edits...))
	if err != nil {
		t.Fatalf("CreateSubscription(%q): %v", address, err)
	}
	return kept
}

func subscriptionTo(address string, edits ...func(*store.Subscription)) store.Subscription {
	confirmed := minutes(-60)
	u := store.Subscription{
		All: true, ConfirmedAt: &confirmed,
		Channel: store.Channel{Name: address, Type: store.ChannelEmail, Settings: map[string]string{"to": address}},
	}
	for _, edit := range edits {
		edit(&u)
	}
	return u
}

// member makes a subscription one of a member of the team.
func member(u store.User) func(*store.Subscription) {
	return func(s *store.Subscription) { s.UserID = u.ID }
}

func newUser(t testing.TB, s store.Store) store.User {
	t.Helper()
	putSetupToken(t, s, []byte("setup"))
	u, err := s.CreateFirstUser(t.Context(), []byte("setup"), store.User{Name: "Ada", PasswordHash: "x", Role: store.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func testSubscriptions(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("one comes back as it was given, by its id and by its tokens", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		given := subscriptionTo("Ada@Example.com", member(ada), func(u *store.Subscription) {
			u.All, u.Endpoints, u.Tags, u.Severities = false, []string{"ep_1", "ep_2"}, []string{"prod"}, []store.Status{store.StatusDown}
			u.Quiet = &store.Quiet{From: "22:00", To: "07:00", Zone: "Europe/Berlin"}
			u.ConfirmHash, u.ManageHash = store.HashSecret("confirm"), store.HashSecret("manage")
		})
		kept, err := s.CreateSubscription(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		want := given
		want.ID, want.CreatedAt = kept.ID, kept.CreatedAt
		want.Channel.ID, want.Channel.CreatedAt, want.Channel.UpdatedAt = kept.ID, kept.CreatedAt, kept.CreatedAt
		if diff := cmp.Diff(kept, want); diff != "" || kept.ID == "" || kept.CreatedAt.IsZero() {
			t.Errorf("CreateSubscription (-got +want):\n%s", diff)
		}
		got, err := s.Subscription(t.Context(), kept.ID)
		if diff := cmp.Diff(got, want); diff != "" || err != nil {
			t.Errorf("Subscription (-got +want):\n%s%v", diff, err)
		}
		for _, token := range []string{"confirm", "manage"} {
			got, err := s.SubscriptionByToken(t.Context(), store.HashSecret(token))
			if diff := cmp.Diff(got, want); diff != "" || err != nil {
				t.Errorf("SubscriptionByToken of %s (-got +want):\n%s%v", token, diff, err)
			}
		}
		for _, hash := range [][]byte{nil, {}, store.HashSecret("other")} {
			_, err := s.SubscriptionByToken(t.Context(), hash)
			wantNotFound(t, "SubscriptionByToken", err)
		}
	})

	t.Run("the team's lists do not see their channels, and nobody may name them", func(t *testing.T) {
		s := fresh(t).open(t)
		u := subscribe(t, s, "a@example.com")
		channels, err := s.Channels(t.Context())
		if err != nil || len(channels) != 0 {
			t.Errorf("Channels = %v, %v, want none", channels, err)
		}
		_, err = s.Channel(t.Context(), u.ID)
		wantNotFound(t, "Channel", err)
		_, err = s.UpdateChannel(t.Context(), u.ID, func(*store.Channel) error { return nil })
		wantNotFound(t, "UpdateChannel", err)
		wantNotFound(t, "DeleteChannel", s.DeleteChannel(t.Context(), u.ID))
		e := store.NewEndpoint()
		e.Name, e.URL, e.Channels = "Weather", "https://a.example", []string{u.ID}
		_, err = s.CreateEndpoint(t.Context(), e)
		wantInvalid(t, err, "channels[0]")
		newChannel(t, s, "a@example.com") // the name is free
		wantNotFound(t, "DeleteSubscription", s.DeleteSubscription(t.Context(), newChannel(t, s, "ops").ID))
	})

	t.Run("an address is subscribed once by the public and once by each member", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		first := subscribe(t, s, "a@example.com")
		other := subscribe(t, s, "b@example.com")
		subscribe(t, s, "a@example.com", member(ada))
		_, err := s.CreateSubscription(t.Context(), subscriptionTo("A@example.COM"))
		wantConflict(t, err, "address")
		_, err = s.CreateSubscription(t.Context(), subscriptionTo("a@example.com", member(ada)))
		wantConflict(t, err, "address")
		_, err = s.UpdateSubscription(t.Context(), other.ID, func(u *store.Subscription) error {
			u.Channel.Settings["to"] = "A@example.com"
			return nil
		})
		wantConflict(t, err, "address")
		hook := func(u *store.Subscription) {
			u.Channel = store.Channel{Name: "hook", Type: store.ChannelWebhook, Secrets: map[string]string{"webhook_url": "https://a.example/S3cret"}}
		}
		subscribe(t, s, "", hook)
		_, err = s.CreateSubscription(t.Context(), subscriptionTo("", hook))
		wantConflict(t, err, "address")
		if err := s.DeleteSubscription(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
		subscribe(t, s, "a@example.com")
		_, err = s.CreateSubscription(t.Context(), subscriptionTo("c@example.com", func(u *store.Subscription) { u.UserID = "usr_none" }))
		wantNotFound(t, "CreateSubscription of nobody", err)
	})

	t.Run("an edit changes what it may, and mends a channel that it changes", func(t *testing.T) {
		s := fresh(t).open(t)
		u := subscribe(t, s, "a@example.com")
		breakChannel(t, s, u)
		edit := func(change func(*store.Subscription)) store.Subscription {
			t.Helper()
			got, err := s.UpdateSubscription(t.Context(), u.ID, func(u *store.Subscription) error { change(u); return nil })
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.Subscription(t.Context(), u.ID)
			if diff := cmp.Diff(again, got); diff != "" || err != nil {
				t.Errorf("Subscription (-got +returned):\n%s%v", diff, err)
			}
			return got
		}
		confirmed := minutes(1)
		got := edit(func(u *store.Subscription) {
			u.ID, u.CreatedAt, u.Tags, u.All, u.ConfirmedAt, u.ManageHash = "sub_x", start, []string{"prod"}, false, &confirmed, []byte("m")
		})
		if got.ID != u.ID || !got.CreatedAt.Equal(u.CreatedAt) || got.Tags[0] != "prod" || !got.ConfirmedAt.Equal(confirmed) || got.Channel.Broken == "" {
			t.Errorf("UpdateSubscription = %+v, want what may be changed, and the channel as broken as it was", got)
		}
		if got := edit(func(u *store.Subscription) { u.Channel.Settings["to"] = "b@example.com" }); got.Channel.Broken != "" || got.Channel.Settings["to"] != "b@example.com" {
			t.Errorf("UpdateSubscription = %+v, want another address that is not broken", got)
		}
		_, err := s.UpdateSubscription(t.Context(), u.ID, func(u *store.Subscription) error { u.Tags = nil; return nil })
		wantInvalid(t, err, "endpoints")
		for _, none := range []string{"", "sub_none", "\x00"} {
			_, err := s.Subscription(t.Context(), none)
			wantNotFound(t, "Subscription", err)
			_, err = s.UpdateSubscription(t.Context(), none, func(*store.Subscription) error { return nil })
			wantNotFound(t, "UpdateSubscription", err)
			wantNotFound(t, "DeleteSubscription", s.DeleteSubscription(t.Context(), none))
		}
	})

	t.Run("newest first, in pages, by who and where", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		var want []string
		for _, address := range []string{"a@example.com", "b@example.com", "c@example.com"} {
			want = append([]string{subscribe(t, s, address).ID}, want...)
		}
		mine := subscribe(t, s, "a@example.com", member(ada)).ID
		list := func(f store.SubscriptionFilter) []string {
			t.Helper()
			return walk(t, func(u store.Subscription) string { return u.ID }, func(cursor string) (store.Page[store.Subscription], error) {
				f.Cursor = cursor
				return s.Subscriptions(t.Context(), f)
			})
		}
		for name, test := range map[string]struct {
			filter store.SubscriptionFilter
			want   []string
		}{
			"all":     {store.SubscriptionFilter{Limit: 2}, append([]string{mine}, want...)},
			"public":  {store.SubscriptionFilter{PublicOnly: true, Limit: 1}, want},
			"member":  {store.SubscriptionFilter{UserID: ada.ID}, []string{mine}},
			"address": {store.SubscriptionFilter{Address: "A@Example.com"}, []string{mine, want[2]}},
			"later":   {store.SubscriptionFilter{Since: time.Now().Add(time.Hour)}, nil},
		} {
			if diff := cmp.Diff(list(test.filter), test.want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", name, diff)
			}
		}
		for _, cursor := range badCursors() {
			if _, err := s.Subscriptions(t.Context(), store.SubscriptionFilter{Cursor: cursor}); err == nil {
				t.Errorf("cursor %q was taken", cursor)
			}
		}
	})

	t.Run("those never confirmed go, and hear nothing until they are", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Public = true })
		never := subscribe(t, s, "a@example.com", func(u *store.Subscription) { u.ConfirmedAt = nil })
		kept := subscribe(t, s, "b@example.com")
		record(t, s, checkAt(e, start, probe.Down))
		if d := wantLeased(t, s, minutes(1), 1)[0]; d.Channel.ID != kept.ID {
			t.Errorf("delivery to %s, want the confirmed one", d.Channel.Name)
		}
		if n, err := s.PruneSubscriptions(t.Context(), time.Now().Add(-time.Hour)); err != nil || n != 0 {
			t.Errorf("PruneSubscriptions of long ago = %d, %v, want none", n, err)
		}
		if n, err := s.PruneSubscriptions(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 1 {
			t.Errorf("PruneSubscriptions = %d, %v, want one", n, err)
		}
		_, err := s.Subscription(t.Context(), never.ID)
		wantNotFound(t, "Subscription", err)
		if _, err := s.Subscription(t.Context(), kept.ID); err != nil {
			t.Errorf("the confirmed one: %v", err)
		}
	})

	t.Run("who wants to hear of an outage does, in public words of public endpoints", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		public := newEndpoint(t, s, "Public", func(e *store.Endpoint) { e.Public, e.Tags = true, []string{"prod"} })
		private := newEndpoint(t, s, "Private", func(e *store.Endpoint) { e.Tags = []string{"prod"} })
		some := func(edit func(*store.Subscription)) func(*store.Subscription) {
			return func(u *store.Subscription) { u.All = false; edit(u) }
		}
		subscribe(t, s, "all@example.com")
		subscribe(t, s, "tag@example.com", some(func(u *store.Subscription) { u.Tags = []string{"prod"} }))
		subscribe(t, s, "other@example.com", some(func(u *store.Subscription) { u.Tags = []string{"dev"} }))
		subscribe(t, s, "one@example.com", some(func(u *store.Subscription) { u.Endpoints = []string{private.ID} }))
		subscribe(t, s, "ada@example.com", member(ada))
		subscribe(t, s, "gated@example.com", func(u *store.Subscription) { u.Severities = []store.Status{store.StatusGated} })
		heard := func(e store.Endpoint) map[string]bool {
			t.Helper()
			record(t, s, checkAt(e, start, probe.Down))
			names := map[string]bool{}
			for _, d := range leaseAll(t, s, minutes(1)) {
				if d.Subscription == nil || d.Subscription.ID != d.Channel.ID || d.Notice.Kind != store.NoticeOpened || d.Entry == nil {
					t.Errorf("delivery %+v, want the opening, with whose it is", d)
				}
				names[d.Channel.Settings["to"]] = true
				settle(t, s, d, store.Settlement{At: minutes(1), Sent: true})
			}
			return names
		}
		if diff := cmp.Diff(heard(public), map[string]bool{"all@example.com": true, "tag@example.com": true, "ada@example.com": true}); diff != "" {
			t.Errorf("of the public one hear (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(heard(private), map[string]bool{"ada@example.com": true}); diff != "" {
			t.Errorf("of the private one hear (-got +want):\n%s", diff)
		}
	})

	t.Run("who heard that it began hears the rest once, who did not hears of the opening, and of the end nobody else", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Public = true })
		by := ruled(opens)
		early := subscribe(t, s, "early@example.com")
		recordBy(t, s, by, checkAt(e, start, probe.Down))
		take := func(at time.Time) map[string]store.NoticeKind {
			t.Helper()
			got := map[string]store.NoticeKind{}
			for _, d := range leaseAll(t, s, at) {
				if _, twice := got[d.Channel.Settings["to"]]; twice || len(d.Later) != 0 {
					t.Errorf("%s hears twice", d.Channel.Name)
				}
				got[d.Channel.Settings["to"]] = d.Notice.Kind
				settle(t, s, d, store.Settlement{At: at, Sent: true})
			}
			return got
		}
		steps := []struct {
			do   func()
			want map[string]store.NoticeKind
		}{
			{func() {}, map[string]store.NoticeKind{"early@example.com": "opened"}},
			{func() {
				subscribe(t, s, "late@example.com")
				recordBy(t, s, by, checkAt(e, minutes(2), probe.Degraded))
			}, map[string]store.NoticeKind{"early@example.com": "updated", "late@example.com": "opened"}},
			{func() {
				act(t, s, latest(t, s, e), store.Act{Kind: store.ActComment, At: minutes(4), Text: "quiet word"})
			}, map[string]store.NoticeKind{}},
			{func() {
				act(t, s, latest(t, s, e), store.Act{Kind: store.ActComment, At: minutes(6), Text: "We know.", Public: true})
			}, map[string]store.NoticeKind{"early@example.com": "updated", "late@example.com": "updated"}},
			{func() {
				subscribe(t, s, "never@example.com")
				_, err := s.UpdateSubscription(t.Context(), early.ID, func(u *store.Subscription) error {
					u.All, u.Tags = false, []string{"other"}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				recordBy(t, s, by, checkAt(e, minutes(8), probe.Up))
			}, map[string]store.NoticeKind{"early@example.com": "resolved", "late@example.com": "resolved"}},
		}
		for i, step := range steps {
			step.do()
			if diff := cmp.Diff(take(minutes(2*i+1)), step.want); diff != "" {
				t.Errorf("step %d (-got +want):\n%s", i+1, diff)
			}
		}
	})

	t.Run("what was untold is told to those alone who asked for it by name", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Public = true })
		subscribe(t, s, "any@example.com")
		named := subscribe(t, s, "named@example.com", func(u *store.Subscription) { u.Severities = []store.Status{store.StatusDown} })
		recordBy(t, s, ruled(func(s store.Situation) []store.Turn {
			turns := opens(s)
			turns[0].Told = false
			return turns
		}), checkAt(e, start, probe.Down))
		if d := wantLeased(t, s, minutes(1), 1)[0]; d.Channel.ID != named.ID {
			t.Errorf("told %s, want the one who named the severity", d.Channel.Name)
		}
	})

	t.Run("an end by hand, by a pause, and a reopening reach them", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Public = true })
		subscribe(t, s, "a@example.com")
		by := ruled(opens)
		next := func(at time.Time, want store.NoticeKind) {
			t.Helper()
			d := wantLeased(t, s, at, 1)[0]
			wantKinds(t, d, want)
			settle(t, s, d, store.Settlement{At: at, Sent: true})
		}
		id := recordBy(t, s, by, checkAt(e, start, probe.Down))[0].Opened
		next(minutes(1), store.NoticeOpened)
		act(t, s, id, store.Act{Kind: store.ActResolve, At: minutes(2)})
		next(minutes(3), store.NoticeResolved)
		recordBy(t, s, by, checkAt(e, minutes(4), probe.Down))
		next(minutes(5), store.NoticeOpened)
		pause(t, s, e)
		next(time.Now().Add(time.Hour), store.NoticeResolved)
	})

	t.Run("one that goes takes what waits for it along", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Public = true })
		u := subscribe(t, s, "a@example.com")
		record(t, s, checkAt(e, start, probe.Down))
		if err := s.DeleteSubscription(t.Context(), u.ID); err != nil {
			t.Fatal(err)
		}
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait, want none", n)
		}
	})
}

// breakChannel has the channel of a subscription to everything fail for good.
func breakChannel(t testing.TB, s store.Store, u store.Subscription) {
	t.Helper()
	e := newEndpoint(t, s, "Breaks", func(e *store.Endpoint) { e.Public = true })
	record(t, s, checkAt(e, start, probe.Down))
	for _, d := range leaseAll(t, s, minutes(1)) {
		if d.Channel.ID == u.ID {
			settle(t, s, d, store.Settlement{At: minutes(1), Permanent: true, Error: "mailbox is gone"})
		}
	}
}
