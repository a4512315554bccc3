package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

func TestHeartbeatBeatsOnlyWhileAllIsWell(t *testing.T) {
	var beats int
	var redirected bool
	switchboard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/s3cret" {
			redirected = true
			return
		}
		beats++
		if !strings.HasPrefix(r.UserAgent(), "rollcall/") {
			t.Errorf("User-Agent %q, want our own", r.UserAgent())
		}
		if beats == 3 {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	}))
	var log strings.Builder
	var ill error
	h := &heartbeat{
		url: switchboard.URL + "/s3cret", client: newHeartbeatClient(), log: slog.New(slog.NewTextHandler(&log, nil)),
		healthy: func(context.Context) error { return ill },
	}
	h.beat(t.Context())
	ill = errors.New("the database is away")
	h.beat(t.Context())
	if beats != 1 || !strings.Contains(log.String(), "the database is away") {
		t.Errorf("%d beats, log %q, want one before it was ill, and the reason", beats, &log)
	}
	ill = nil
	h.beat(t.Context())
	h.beat(t.Context()) // answered with a redirect
	if beats != 3 || redirected {
		t.Errorf("%d beats, followed a redirect: %t, want 3 and none followed", beats, redirected)
	}
	switchboard.Close()
	h.beat(t.Context())
	h.beat(t.Context())
	if n := strings.Count(log.String(), "heartbeat not delivered"); n != 1 {
		t.Errorf("%d lines about calls that did not arrive, want one:\n%s", n, &log)
	}
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("the log holds the URL, which is a secret:\n%s", &log)
	}
}

// deaf takes no word for a while.
type deaf struct {
	store.Store
	until time.Time
	said  []string
}

func (d *deaf) Channels(context.Context) ([]store.Channel, error) {
	return []store.Channel{{ID: "ch_1"}}, nil
}

func (d *deaf) Raise(_ context.Context, i store.Incident, _, _ string, channels []string) (store.Incident, bool, error) {
	return i, true, d.hear("raise " + i.Subject + " to " + strings.Join(channels, ","))
}

func (d *deaf) Clear(_ context.Context, subject string, _ time.Time, _ store.Resolution, _ string) (store.Incident, error) {
	return store.Incident{}, d.hear("clear " + subject)
}

func (d *deaf) hear(what string) error {
	if time.Now().Before(d.until) {
		return errors.New("no route to host")
	}
	d.said = append(d.said, what)
	return nil
}

func TestWordOfOurOwnNetworkWaitsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &deaf{until: time.Now().Add(7 * time.Minute)}
		woken := 0
		a := newAnnouncer("fra", db, func(yes bool) {
			if yes {
				woken++
			}
		}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.run(ctx) }()
		since := time.Now()
		a.offline(ctx, true, since)
		if err := (&service{recorder: store.NewRecorder(store.RecorderConfig{}), store: db, announcer: a}).healthy(ctx); err == nil {
			t.Error("a location that is offline is healthy")
		}
		time.Sleep(5 * time.Minute)
		a.offline(ctx, false, since)
		time.Sleep(3 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := []string{"raise location/fra to ch_1", "clear location/fra"}; !slices.Equal(db.said, want) || woken != 2 {
			t.Errorf("announced %v, dispatcher woken %d times, want %v and twice", db.said, woken, want)
		}
	})
}
