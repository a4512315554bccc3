package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func testChannels(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("a channel comes back as it was given", func(t *testing.T) {
		s := fresh(t).open(t)
		kept, err := s.CreateChannel(t.Context(), store.Channel{
			Name:     `Ops "süd"`,
			Type:     store.ChannelSlack,
			Settings: map[string]string{"channel": "#älerts", "api_url": "https://slack.example/api/"},
			Secrets:  map[string]string{"bot_token": "xoxb-s3cret"},
			Broken:   "not yet",
		})
		if err != nil {
			t.Fatal(err)
		}
		want := store.Channel{
			ID: kept.ID, Name: `Ops "süd"`, Type: store.ChannelSlack,
			Settings: map[string]string{"channel": "#älerts", "api_url": "https://slack.example/api/"},
			Secrets:  map[string]string{"bot_token": "xoxb-s3cret"}, CreatedAt: kept.CreatedAt, UpdatedAt: kept.CreatedAt,
		}
		if !strings.HasPrefix(kept.ID, "ch_") || kept.CreatedAt.IsZero() {
			t.Errorf("id %q, created %v: want both filled in", kept.ID, kept.CreatedAt)
		}
		if diff := cmp.Diff(kept, want); diff != "" {
			t.Errorf("CreateChannel (-got +want):\n%s", diff)
		}
		got, err := s.Channel(t.Context(), kept.ID)
		if diff := cmp.Diff(got, want); diff != "" || err != nil {
			t.Errorf("Channel (-got +want):\n%s%v", diff, err)
		}
	})

	t.Run("secrets are sealed", func(t *testing.T) {
		db := fresh(t)
		newChannel(t, db.open(t), "ops")
		var sealed []byte
		if err := db.SQL(t).QueryRowContext(t.Context(), `SELECT secrets FROM channels`).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		if len(sealed) == 0 || strings.Contains(string(sealed), "hooks.example") {
			t.Errorf("secrets are kept as %q", sealed)
		}
	})

	t.Run("by name, without regard to case", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, name := range []string{"b", "C", "a", "Ä"} {
			newChannel(t, s, name)
		}
		channels, err := s.Channels(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range channels {
			names = append(names, c.Name)
		}
		if diff := cmp.Diff(names, []string{"a", "b", "C", "Ä"}); diff != "" {
			t.Errorf("Channels (-got +want):\n%s", diff)
		}
	})

	t.Run("an edit changes what it may", func(t *testing.T) {
		s := fresh(t).open(t)
		c := newChannel(t, s, "ops")
		got, err := s.UpdateChannel(t.Context(), c.ID, func(c *store.Channel) error {
			c.ID, c.CreatedAt, c.Name = "ch_other", time.Time{}, "OPS"
			c.Secrets["webhook_url"] = "https://hooks.example/other"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := c
		want.Name, want.UpdatedAt = "OPS", got.UpdatedAt
		want.Secrets = map[string]string{"webhook_url": "https://hooks.example/other"}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("UpdateChannel (-got +want):\n%s", diff)
		}
		if got, err := s.Channel(t.Context(), c.ID); err != nil || !cmp.Equal(got, want) {
			t.Errorf("Channel after the edit = %+v, %v, want %+v", got, err, want)
		}
	})

	t.Run("what is wrong is refused, and nothing is changed", func(t *testing.T) {
		s := fresh(t).open(t)
		c := newChannel(t, s, "ops")
		newChannel(t, s, "dev")
		_, err := s.CreateChannel(t.Context(), store.Channel{Type: store.ChannelSlack})
		wantInvalid(t, err, "name", "webhook_url")
		_, err = s.CreateChannel(t.Context(), store.Channel{
			Name: "x", Type: store.ChannelSlack,
			Settings: map[string]string{"channel": "a\x00b"}, Secrets: map[string]string{"bot_token": "xoxb"},
		})
		wantInvalid(t, err, "channel")
		_, err = s.CreateChannel(t.Context(), store.Channel{Name: "OPS", Type: store.ChannelSlack, Secrets: c.Secrets})
		wantConflict(t, err, "name")
		_, err = s.UpdateChannel(t.Context(), c.ID, func(c *store.Channel) error { c.Name = "Dev"; return nil })
		wantConflict(t, err, "name")
		_, err = s.UpdateChannel(t.Context(), c.ID, func(c *store.Channel) error { delete(c.Secrets, "webhook_url"); return nil })
		wantInvalid(t, err, "webhook_url")
		if got, err := s.Channel(t.Context(), c.ID); err != nil || !cmp.Equal(got, c) {
			t.Errorf("Channel = %+v, %v, want it unchanged", got, err)
		}
		if all, err := s.Channels(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("%d channels, %v, want two", len(all), err)
		}
	})

	t.Run("what is not there is not found", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, id := range []string{"", "ch_none", "\x00"} {
			_, err := s.Channel(t.Context(), id)
			wantNotFound(t, "Channel", err)
			_, err = s.UpdateChannel(t.Context(), id, func(*store.Channel) error { return nil })
			wantNotFound(t, "UpdateChannel", err)
			wantNotFound(t, "DeleteChannel", s.DeleteChannel(t.Context(), id))
		}
	})
}
