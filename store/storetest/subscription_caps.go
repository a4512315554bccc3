package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// asked makes a subscription one that waits for its confirmation by a secret.
func asked(secret string) func(*store.Subscription) {
	return func(u *store.Subscription) { u.ConfirmedAt, u.ConfirmHash = nil, store.HashSecret(secret) }
}

// postedTo makes a subscription one that is posted to a URL.
func postedTo(kind store.ChannelType, url string) func(*store.Subscription) {
	return func(u *store.Subscription) {
		u.Channel = store.Channel{Name: "Subscriber", Type: kind, Secrets: map[string]string{"webhook_url": url}}
	}
}

func testSubscriptionCaps(t *testing.T, fresh func(t testing.TB) Database) {
	none := store.SubscriptionCaps{}
	room := store.DefaultSubscriptionCaps

	t.Run("a secret confirms one subscription, once", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		waits := subscribe(t, s, "a@example.com", asked("secret"))
		mine := subscribe(t, s, "a@example.com", asked("mine"), member(ada))
		for id, hash := range map[string][]byte{
			waits.ID: store.HashSecret("other"), mine.ID: store.HashSecret("mine"), "sub_none": store.HashSecret("secret"), "\x00": nil,
		} {
			_, err := s.ConfirmSubscription(t.Context(), id, hash, room)
			wantNotFound(t, "ConfirmSubscription", err)
		}
		_, err := s.ConfirmSubscription(t.Context(), waits.ID, nil, room)
		wantNotFound(t, "ConfirmSubscription by nothing", err)
		got, err := s.ConfirmSubscription(t.Context(), waits.ID, store.HashSecret("secret"), room)
		if err != nil || got.ConfirmedAt == nil || got.ConfirmHash != nil {
			t.Fatalf("ConfirmSubscription = %+v, %v, want it confirmed", got, err)
		}
		kept, err := s.Subscription(t.Context(), waits.ID)
		if diff := cmp.Diff(kept, got); diff != "" || err != nil {
			t.Errorf("Subscription (-got +returned):\n%s%v", diff, err)
		}
		_, err = s.ConfirmSubscription(t.Context(), waits.ID, store.HashSecret("secret"), room)
		wantNotFound(t, "ConfirmSubscription again", err)
	})

	t.Run("there is room for so many, of each kind and at each receiver", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		caps := store.SubscriptionCaps{Mailed: 2, Posted: 4, There: 2}
		const hook, slack = store.ChannelWebhook, store.ChannelSlack
		subscribe(t, s, "team@example.com", member(ada)) // the team's own count nowhere
		subscribe(t, s, "", member(ada), postedTo(hook, "https://a.example/team"))
		for i, step := range []struct {
			of   func(*store.Subscription)
			want error
		}{
			{nil, nil},
			{nil, nil},
			{nil, store.ErrFull},
			{postedTo(hook, "https://a.example/1"), nil},
			{postedTo(hook, "https://A.example.:8443/2"), nil},
			{postedTo(hook, "https://a.example/3"), store.ErrFullThere},
			{postedTo(slack, "https://hooks.slack.com/services/T1/B1/x"), nil},
			{postedTo(slack, "https://hooks.slack.com/services/T2/B1/x"), nil},
			{postedTo(slack, "https://hooks.slack.com/services/T3/B1/x"), store.ErrFull},
			{postedTo(hook, "https://b.example/"), store.ErrFull},
		} {
			secret := fmt.Sprint(i)
			edits := []func(*store.Subscription){asked(secret)}
			if step.of != nil {
				edits = append(edits, step.of)
			}
			u := subscribe(t, s, secret+"@example.com", edits...)
			crowd, err := s.Crowd(t.Context(), u)
			if got := caps.Refuse(u, crowd); err != nil || !errors.Is(got, step.want) {
				t.Errorf("step %d: Crowd = %+v, %v, which refuses with %v, want %v", i, crowd, err, got, step.want)
			}
			got, err := s.ConfirmSubscription(t.Context(), u.ID, store.HashSecret(secret), caps)
			if !errors.Is(err, step.want) || (err == nil) != (got.ConfirmedAt != nil) {
				t.Errorf("step %d: ConfirmSubscription = %+v, %v, want %v", i, got, err, step.want)
			}
		}
	})

	t.Run("one for which there was no room is confirmed once there is", func(t *testing.T) {
		s := fresh(t).open(t)
		u := subscribe(t, s, "a@example.com", asked("secret"))
		if _, err := s.ConfirmSubscription(t.Context(), u.ID, store.HashSecret("secret"), none); !errors.Is(err, store.ErrFull) {
			t.Fatalf("ConfirmSubscription without room: %v", err)
		}
		if kept, err := s.Subscription(t.Context(), u.ID); err != nil || !cmp.Equal(kept, u) {
			t.Errorf("Subscription = %+v, %v, want it as it was", kept, err)
		}
		if _, err := s.ConfirmSubscription(t.Context(), u.ID, store.HashSecret("secret"), room); err != nil {
			t.Errorf("ConfirmSubscription with room: %v", err)
		}
	})
}
