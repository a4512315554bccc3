package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testForgottenSecrets(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("with its key lost, a database loses its secrets and nothing else", func(t *testing.T) {
		db := fresh(t)
		old, err := db.Open(t, Sealer(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		ops, dev := newChannel(t, old, "ops"), newChannel(t, old, "dev")
		weather := newEndpoint(t, old, "Weather", to(ops, dev), func(e *store.Endpoint) {
			e.Headers = []probe.Header{{Name: "Authorization", Value: "s3cret", Secret: true}}
		})
		plain := newEndpoint(t, old, "Plain")
		out := record(t, old, checkAt(weather, start, probe.Down), checkAt(plain, start, probe.Up))
		wantWeather, wantPlain := overview(t, old, weather.Slug), overview(t, old, plain.Slug)
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}

		got, err := db.ForgetSecrets(t, Sealer(t, 2))
		want := store.Forgotten{Endpoints: []string{weather.Slug}, Channels: []string{"dev", "ops"}}
		if diff := cmp.Diff(got, want); diff != "" || err != nil {
			t.Fatalf("ForgetSecrets (-got +want):\n%s%v", diff, err)
		}
		s, err := db.Open(t, Sealer(t, 2))
		if err != nil {
			t.Fatalf("Open with the key it was given: %v", err)
		}
		defer s.Close() //nolint:errcheck // other tests look at it

		wantWeather.Headers, wantWeather.UpdatedAt = nil, overview(t, s, weather.Slug).UpdatedAt
		if diff := cmp.Diff(overview(t, s, weather.Slug), wantWeather, sameLatencies); diff != "" {
			t.Errorf("endpoint that had a header (-got +want):\n%s", diff)
		}
		if !wantWeather.UpdatedAt.After(weather.UpdatedAt) {
			t.Errorf("updated at %v, want after %v", wantWeather.UpdatedAt, weather.UpdatedAt)
		}
		if diff := cmp.Diff(overview(t, s, plain.Slug), wantPlain, sameLatencies); diff != "" {
			t.Errorf("endpoint without headers (-got +want):\n%s", diff)
		}
		if i := incident(t, s, out[0].Opened); i.ResolvedAt != nil {
			t.Errorf("incident = %+v, want it open", i)
		}
		wantBroken(t, s, ops.ID, store.WhyForgotten)
		wantBroken(t, s, dev.ID, store.WhyForgotten)
		if due, err := s.LeaseNotices(t.Context(), me, minutes(1), lease, 10); err != nil || len(due) != 0 {
			t.Errorf("LeaseNotices = %v, %v, want none while the channels lack their secrets", due, err)
		}

		// Entered again, everything goes on.
		_, err = s.UpdateChannel(t.Context(), ops.ID, func(c *store.Channel) error { c.Secrets = ops.Secrets; return nil })
		if err != nil {
			t.Fatalf("UpdateChannel: %v", err)
		}
		wantBroken(t, s, ops.ID, "")
		due, err := s.LeaseNotices(t.Context(), me, minutes(1), lease, 10)
		if err != nil || len(due) != 1 || due[0].Channel.Secrets["webhook_url"] != ops.Secrets["webhook_url"] {
			t.Errorf("LeaseNotices = %+v, %v, want the one of the channel that has its secrets again", due, err)
		}
		edit(t, s, weather, func(e *store.Endpoint) { e.Headers = weather.Headers })
		if diff := cmp.Diff(overview(t, s, weather.Slug).Headers, weather.Headers); diff != "" {
			t.Errorf("headers entered again (-got +want):\n%s", diff)
		}
	})

	t.Run("with a key that fits nothing is forgotten", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		ops := newChannel(t, s, "ops")
		got, err := db.ForgetSecrets(t, Sealer(t, 1))
		if !errors.Is(err, store.ErrKeyFits) || !cmp.Equal(got, store.Forgotten{}) {
			t.Errorf("ForgetSecrets = %+v, error %v, want ErrKeyFits", got, err)
		}
		if after, err := s.Channel(t.Context(), ops.ID); err != nil || !cmp.Equal(after, ops) {
			t.Errorf("Channel = %+v, %v, want it unchanged", after, err)
		}
	})

	t.Run("an empty database has nothing to forget, and a key afterwards", func(t *testing.T) {
		db := fresh(t)
		if got, err := db.ForgetSecrets(t, Sealer(t, 1)); err != nil || !cmp.Equal(got, store.Forgotten{}) {
			t.Errorf("ForgetSecrets = %+v, %v, want nothing", got, err)
		}
		db.open(t)
	})

	t.Run("no key is refused", func(t *testing.T) {
		if _, err := fresh(t).ForgetSecrets(t, nil); err == nil {
			t.Error("ForgetSecrets without a key succeeded")
		}
	})
}

func wantBroken(t testing.TB, s store.Store, id, why string) {
	t.Helper()
	c, err := s.Channel(t.Context(), id)
	if err != nil {
		t.Fatalf("Channel(%q): %v", id, err)
	}
	if c.Broken != why || (c.BrokenAt != nil) != (why != "") {
		t.Errorf("channel %s is broken because of %q since %v, want %q", c.Name, c.Broken, c.BrokenAt, why)
	}
}
