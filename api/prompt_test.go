package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// frozen is a database whose lists never come, as behind a firewall that has forgotten the connection.
type frozen struct{ store.Store }

func (frozen) Endpoints(ctx context.Context, f store.EndpointFilter) (store.Page[store.Overview], error) {
	if f.Limit == api.MaxPicks { // what a form lists to choose from is there, as the channels are
		return store.Page[store.Overview]{}, nil
	}
	<-ctx.Done()
	return store.Page[store.Overview]{}, context.Cause(ctx)
}

func (frozen) Session(context.Context, []byte, time.Time) (store.Session, store.User, error) {
	return store.Session{}, store.User{Name: "ada", Role: store.RoleAdmin}, nil
}

func (frozen) Index(ctx context.Context, _ store.EndpointFilter, _ bool) ([]store.Line, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (frozen) Channels(context.Context) ([]store.Channel, error) { return nil, nil }

func (frozen) Channel(context.Context, string) (store.Channel, error) {
	return store.Channel{ID: "ch_1", Name: "ops", Type: store.ChannelSlack}, nil
}

// slowly sends a text after a while.
type slowly struct {
	after time.Duration
	io.Reader
}

func (s *slowly) Read(p []byte) (int, error) {
	time.Sleep(s.after)
	s.after = 0
	return s.Reader.Read(p)
}

func TestADatabaseThatHangsHoldsNobodyForLong(t *testing.T) {
	r := start(t, func(c *api.Config) {
		c.Store = frozen{c.Store}
		ask := func(ctx context.Context) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c.Probe = func(ctx context.Context, _ probe.Target) probe.Result {
			if ask(ctx) != nil {
				return broken()
			}
			return healthy()
		}
		c.CheckNow = func(ctx context.Context, _ string) (store.Check, error) {
			return store.NewCheck("end_1", "default", time.Now(), healthy()), ask(ctx)
		}
		c.TestChannel = func(ctx context.Context, _ store.Channel) error { return ask(ctx) }
	})
	handler := r.api.Handler()
	const anEndpoint = `{"url": "https://a.example", "name": "a"}`
	tests := []struct {
		name, method, path, body string
		sending                  time.Duration // how long the body takes
		status                   int
		took                     time.Duration
	}{
		{"a list", "GET", "/api/v1/endpoints", "", 0, 503, 15 * time.Second},
		{"the dashboard", "GET", "/", "", 0, 503, 15 * time.Second},
		{"the status page", "GET", "/status", "", 0, 503, 15 * time.Second},
		{"the feed", "GET", "/status/feed.atom", "", 0, 503, 15 * time.Second},
		{"a registration", "POST", "/api/v1/endpoints", anEndpoint, 0, 503, 15 * time.Second},
		{"a registration by a slow sender", "POST", "/api/v1/endpoints", anEndpoint, 20 * time.Second, 503, 35 * time.Second},
		{"a form of a slow sender", "POST", "/endpoints/new", with(endpointForm("save", "https://a.example"), "name", "a").Encode(), 20 * time.Second, 503, 35 * time.Second},
		{"a single probe", "POST", "/api/v1/check", `{"url": "https://a.example"}`, 0, 200, time.Minute},
		{"a check", "POST", "/api/v1/endpoints/a/check", "", 0, 200, time.Minute},
		{"a check by its button", "POST", "/endpoints/a", "action=check", 0, 303, time.Minute},
		{"a test in the form", "POST", "/endpoints/new", endpointForm("test", "https://a.example").Encode(), 0, 200, time.Minute + 2*time.Second}, // for a name to propose
		{"a test message", "POST", "/api/v1/channels/ch_1/test", "", 0, 204, time.Minute},
		{"a test message by its button", "POST", "/channels/ch_1", "action=test", 0, 200, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := httptest.NewRequest(test.method, test.path, &slowly{test.sending, strings.NewReader(test.body)})
				q.Header.Set("Content-Type", "application/json")
				if strings.HasPrefix(test.path, "/api/") {
					q.Header.Set("Authorization", "Bearer "+adminToken)
				} else {
					q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					q.AddCookie(&http.Cookie{Name: "rollcall_session", Value: "any"})
				}
				begun, w := time.Now(), httptest.NewRecorder()
				handler.ServeHTTP(w, q)
				if took := time.Since(begun); w.Code != test.status || took != test.took {
					t.Errorf("status %d after %s, want %d after %s\n%s", w.Code, took, test.status, test.took, w.Body)
				}
			})
		})
	}
}
