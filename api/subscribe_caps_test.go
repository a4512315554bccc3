package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

func capped(caps store.SubscriptionCaps) func(*api.Config) {
	return func(c *api.Config) { c.SubscriptionCaps = caps }
}

func (r *rollcall) wish(kind, address string) reply {
	r.t.Helper()
	return r.submit("/status/subscribe", url.Values{"type": {kind}, "address": {address}, "all": {"yes"}}.Encode())
}

func confirmed(subs []store.Subscription) (n int) {
	for _, sub := range subs {
		if sub.ConfirmedAt != nil {
			n++
		}
	}
	return n
}

func TestThereIsRoomForSoManySubscribers(t *testing.T) {
	t.Run("by mail", func(t *testing.T) {
		r, post := subscribing(t, capped(store.SubscriptionCaps{Mailed: 1}))
		r.wish("email", "ada@example.com").want(http.StatusOK)
		r.wish("email", "bo@example.com").want(http.StatusOK)
		first, second := post.next(t), post.next(t)
		r.submit("/status/confirm", "token="+tokenOf(t, first.confirm)).want(http.StatusOK)
		late := r.submit("/status/confirm", "token="+tokenOf(t, second.confirm)).want(http.StatusConflict)
		if !strings.Contains(late.body, "No room for another subscription") || confirmed(r.subscriptions()) != 1 {
			t.Errorf("%d are confirmed; the second is told:\n%s", confirmed(r.subscriptions()), late.body)
		}
		refused := r.wish("email", "cy@example.com").want(http.StatusConflict)
		if !strings.Contains(refused.body, "as many have subscribed") && !strings.Contains(refused.body, "As many have subscribed") {
			t.Errorf("the third is told:\n%s", refused.body)
		}
		if len(post.sent) != 0 || len(r.subscriptions()) != 2 {
			t.Error("one for which there is no room was asked")
		}
		// Who is there already makes room by leaving.
		r.submit("/status/unsubscribe", "token="+tokenOf(t, api.UnsubscribeURL(linkKey, "", nil, first.sub.ID))).want(http.StatusOK)
		r.submit("/status/confirm", "token="+tokenOf(t, second.confirm)).want(http.StatusOK)
	})

	t.Run("by webhook, at one receiver and in all", func(t *testing.T) {
		r, post := subscribing(t, capped(store.SubscriptionCaps{Posted: 3, There: 2}))
		for _, step := range []struct {
			address string
			want    int
			says    string
		}{
			{"https://a.example/1", http.StatusOK, "Subscribed"},
			{"https://a.example/A", http.StatusOK, "Subscribed"},
			{"https://A.example:444/a", http.StatusConflict, "That server, or Slack workspace"},
			{"https://b.example/1", http.StatusOK, "Subscribed"},
			{"https://c.example/1", http.StatusConflict, "as there is room for"},
		} {
			if got := r.wish("webhook", step.address).want(step.want); !strings.Contains(got.body, step.says) {
				t.Errorf("%s is told:\n%s", step.address, got.body)
			}
		}
		if len(post.sent) != 3 || confirmed(r.subscriptions()) != 3 {
			t.Errorf("%d were challenged and %d are confirmed, want 3", len(post.sent), confirmed(r.subscriptions()))
		}
		for range 3 {
			if q := post.next(t); q.confirm != "" || !strings.HasPrefix(q.manage, "https://status.example/status/subscription?token=") {
				t.Errorf("a webhook is sent %q and %q, want where to manage it alone", q.confirm, q.manage)
			}
		}
	})
}

func TestWhereNobodyCanSubscribeThePageSaysSo(t *testing.T) {
	for name, edit := range map[string]func(*api.Config){
		"without a public URL":   func(c *api.Config) { c.PublicURL = "" },
		"without anybody to ask": func(c *api.Config) { c.AskSubscriber = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r, post := subscribing(t, edit)
			for _, got := range []reply{r.get("/status/subscribe", nobody), r.wish("email", "ada@example.com")} {
				if got.want(http.StatusNotFound); !strings.Contains(got.body, "Subscribing is not available here") {
					t.Errorf("the page says:\n%s", got.body)
				}
			}
			if page := r.get("/status", nobody).want(http.StatusOK).body; strings.Contains(page, `action="/status/subscribe"`) {
				t.Error("the status page has a form for it")
			}
			if len(post.sent) != 0 || len(r.subscriptions()) != 0 {
				t.Error("somebody was asked")
			}
		})
	}
	r, _ := subscribing(t, func(c *api.Config) { c.SubscribeBy = []store.ChannelType{store.ChannelWebhook} })
	if got := r.wish("email", "ada@example.com").want(http.StatusUnprocessableEntity); !strings.Contains(got.body, "is not available here") {
		t.Errorf("by mail, without a mail server:\n%s", got.body)
	}
}

func TestTheDashboardSaysThatLinksAreMissing(t *testing.T) {
	for publicURL, want := range map[string]bool{"": true, "https://status.example": false} {
		r := start(t, func(c *api.Config) { c.PublicURL = publicURL })
		cookie := r.loggedIn()
		if publicURL != "" {
			cookie = header("Cookie", "__Host-rollcall_session="+r.login())
		}
		for _, path := range []string{"/channels", "/subscriptions"} {
			if got := strings.Contains(r.get(path, nobody, cookie).want(http.StatusOK).body, "--public-url"); got != want {
				t.Errorf("%s with %q hints at --public-url: %t, want %t", path, publicURL, got, want)
			}
		}
	}
}

// What a subscription was about can be gone: it is about nothing then, and says so.
func TestWhatCoversNothingIsNotShownAsAll(t *testing.T) {
	r, post := subscribing(t)
	r.submit("/status/subscribe", "type=email&address=ada@example.com&endpoints=search").want(http.StatusOK)
	q := post.next(t)
	plan := r.ask("POST", "/api/v1/maintenance", `{"title": "Move", "endpoints": ["search"], "starts_at": "2040-01-01T00:00:00Z", "ends_at": "2040-01-01T01:00:00Z"}`).
		want(http.StatusCreated).object()
	r.ask("DELETE", "/api/v1/endpoints/search", "").want(http.StatusNoContent)

	r.submit("/status/confirm", "token="+tokenOf(t, q.confirm)).want(http.StatusOK)
	if sub := r.subscriptions()[0]; sub.ConfirmedAt == nil || sub.All || len(sub.Endpoints)+len(sub.Tags) != 0 {
		t.Errorf("the subscription is %+v, want it confirmed and about nothing", sub)
	}
	if page := r.get(pathOf(t, q.manage), nobody).want(http.StatusOK).body; strings.Contains(page, `name="all" value="yes" checked`) {
		t.Errorf("the page to manage it takes it for everything:\n%s", page)
	}
	r.submit("/status/subscription", "action=save&token="+tokenOf(t, q.manage)).want(http.StatusUnprocessableEntity)
	id, _ := plan["id"].(string)
	got := r.get("/api/v1/maintenance/" + id).object()
	if endpoints, _ := got["endpoints"].([]any); got["all"] != false || len(endpoints) != 0 {
		t.Errorf("the maintenance is %v, want it about nothing", got)
	}
	if page := r.get("/maintenance", nobody, header("Cookie", "__Host-rollcall_session="+r.login())).want(http.StatusOK).body; !strings.Contains(page, "nothing any more") || strings.Contains(page, "everything") {
		t.Errorf("the list of maintenance says:\n%s", page)
	}
	r.ask("PATCH", "/api/v1/maintenance/"+id, `{"endpoints": [], "tags": []}`).want(http.StatusUnprocessableEntity)
	r.get("/api/v2/summary.json", nobody).want(http.StatusOK)
}

// Two clicks on the button are one subscription, and neither is told of the other.
func TestTwoAtOnceAreOneSubscription(t *testing.T) {
	r, post := subscribing(t)
	var clicks sync.WaitGroup
	for range 3 {
		clicks.Go(func() {
			if got := r.ask("POST", "/status/subscribe", "type=email&address=ada@example.com&all=yes", nobody,
				header("Content-Type", "application/x-www-form-urlencoded")); got.status != http.StatusOK {
				t.Errorf("status %d: %s", got.status, got.body)
			}
		})
	}
	clicks.Wait()
	if subs := r.subscriptions(); len(subs) != 1 {
		t.Errorf("%d subscriptions, want 1", len(subs))
	}
	works := 0
	for range 3 {
		if r.get(pathOf(t, post.next(t).confirm), nobody).status == http.StatusOK {
			works++
		}
	}
	if works != 1 {
		t.Errorf("%d links work, want that of the last question", works)
	}
}
