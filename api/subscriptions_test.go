package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// stranger keeps a subscription of somebody else: from the public, or of another member.
func (r *rollcall) stranger(address, userID string) store.Subscription {
	r.t.Helper()
	s, err := r.store.CreateSubscription(r.t.Context(), store.Subscription{
		UserID: userID, All: true, ConfirmedAt: new(time.Now()),
		Channel: store.Channel{Name: "somebody", Type: store.ChannelEmail, Settings: map[string]string{"to": address}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func TestAMemberSubscribes(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://b.example", "name": "B"}`)
	r.register(`{"url": "https://a.example", "name": "A"}`)
	const path = "/api/v1/subscriptions"
	got := r.ask("POST", path, `{"type": "email", "to": "Ada@example.com", "endpoints": ["b", "a"], "tags": ["prod"], "severities": ["down", "gated"],
		"quiet": {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}}`, r.loggedIn()).want(http.StatusCreated).object()
	id, _ := got["id"].(string)
	for _, name := range []string{"confirmed_at", "created_at"} {
		if got[name] == nil {
			t.Errorf("%s is null", name)
		}
		delete(got, name)
	}
	want := map[string]any{
		"id": id, "type": "email", "to": "Ada@example.com", "public": false, "page": nil, "all": false, "endpoints": []any{"a", "b"}, "tags": []any{"prod"},
		"severities": []any{"down", "gated"}, "quiet": map[string]any{"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a fresh subscription (-want +got):\n%s", diff)
	}
	hook := r.ask("POST", path, `{"type": "webhook", "webhook_url": "https://a.example/HUSH", "all": true, "severities": null, "quiet": null}`, r.loggedIn()).want(http.StatusCreated)
	if got := hook.object(); got["has_webhook_url"] != true || got["severities"] != nil || got["quiet"] != nil || strings.Contains(hook.body, "HUSH") {
		t.Errorf("a webhook: %s", hook.body)
	}
	r.ask("POST", path, `{"type": "email", "to": "ada@EXAMPLE.com", "all": true}`, r.loggedIn()).want(http.StatusConflict).mistakes()
	if got := r.get("/api/v1/channels").object()["items"].([]any); len(got) != 0 {
		t.Errorf("a subscription shows among the channels: %v", got)
	}
	refused := r.ask("POST", path, `{"type": "email", "to": "ada@example.com", "all": true}`).want(http.StatusForbidden)
	if got, _ := refused.object()["detail"].(string); !strings.Contains(got, "token") {
		t.Errorf("a token is told %q", got)
	}
	r.ask("DELETE", path+"/"+id, "", r.loggedIn()).want(http.StatusNoContent)
	r.ask("DELETE", path+"/"+id, "", r.loggedIn()).want(http.StatusNotFound)
}

func TestASubscriptionWithMistakesIsRefused(t *testing.T) {
	r := start(t)
	for body, want := range map[string][]string{
		`{}`: {"endpoints", "type"},
		`{"type": "email", "to": "nobody", "endpoints": ["nope"], "tags": ["", 1], "severities": ["up"], "quiet": {"from": "25:00", "to": "x", "zone": "Moon", "why": 1}, "user": "bob", "public": true}`: {
			"endpoints[0]", "public", "quiet", "quiet.why", "quiet.zone", "severities[0]", "tags[0]", "tags[1]", "to", "user",
		},
		`{"type": "webhook", "webhook_url": "ftp://HUSH", "to": "a@example.com", "all": true}`:    {"to", "webhook_url"},
		`{"type": "discord", "webhook_url": "https://HUSH.example", "all": true}`:                 {"type"},
		`{"type": "slack", "all": true, "template": "x"}`:                                         {"template", "webhook_url"},
		`{"type": "email", "to": "a@example.com", "all": true, "quiet": 7, "severities": "down"}`: {"quiet", "severities"},
	} {
		reply := r.ask("POST", "/api/v1/subscriptions", body, r.loggedIn()).want(422)
		got := reply.mistakes()
		slices.Sort(got)
		if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
			t.Errorf("%s: mistakes named (-want +got):\n%s", body, diff)
		}
		if strings.Contains(reply.body, "HUSH") {
			t.Errorf("the answer repeats a secret: %s", reply.body)
		}
	}
}

func TestSubscriptionsOfOthersAreNotReached(t *testing.T) {
	r := start(t)
	const path = "/api/v1/subscriptions"
	own, _ := r.ask("POST", path, `{"type": "email", "to": "ada@example.com", "all": true}`, r.loggedIn()).want(http.StatusCreated).object()["id"].(string)
	public := r.stranger("grace.hopper@navy.example", "")
	listed := func(query string, options ...option) (ids []string, body string) {
		t.Helper()
		reply := r.get(path+query, options...).want(http.StatusOK)
		for _, item := range reply.object()["items"].([]any) {
			ids = append(ids, item.(map[string]any)["id"].(string))
		}
		slices.Sort(ids)
		return ids, reply.body
	}
	if ids, _ := listed("", r.loggedIn()); !slices.Equal(ids, []string{own}) {
		t.Errorf("a member sees %v, want their own %s", ids, own)
	}
	both := []string{own, public.ID}
	slices.Sort(both)
	ids, body := listed("?all=true", r.loggedIn())
	if !slices.Equal(ids, both) || strings.Contains(body, "grace.hopper") || !strings.Contains(body, "g…@navy.example") || !strings.Contains(body, "ada@example.com") {
		t.Errorf("all of them: %s", body)
	}
	ids, body = listed("")
	if !slices.Equal(ids, both) || strings.Contains(body, "ada@") || strings.Contains(body, "grace.hopper") {
		t.Errorf("a token sees %s", body)
	}
	if ids, _ := listed("?limit=1"); len(ids) != 1 {
		t.Errorf("a page of 1 has %v", ids)
	}
	r.ask("DELETE", path+"/"+public.ID, "", r.loggedIn()).want(http.StatusNotFound)
	r.get(path, nobody).want(http.StatusUnauthorized)
	// A token is nobody, also in the browser of somebody.
	cookie := func(q *http.Request) { q.AddCookie(&http.Cookie{Name: "rollcall_session", Value: r.login()}) }
	r.ask("POST", path, `{"type": "email", "to": "b@example.com", "all": true}`, cookie).want(http.StatusForbidden)
	r.ask("DELETE", path+"/"+public.ID, "").want(http.StatusNoContent)
	r.ask("DELETE", path+"/"+own, "").want(http.StatusNoContent)
}
