package alerts_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func newSlack() *alerts.Slack {
	return alerts.NewSlack(alerts.NewClient(probe.Egress{Any: true}.DialContext))
}

func webhookChannel(s *alertstest.Slack) store.Channel {
	return store.Channel{ID: "ch_1", Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": s.WebhookURL()}}
}

func botChannel(s *alertstest.Slack) store.Channel {
	return store.Channel{
		ID: "ch_2", Name: "ops", Type: store.ChannelSlack,
		Settings: map[string]string{"channel": alertstest.Channel, "api_url": s.APIURL()},
		Secrets:  map[string]string{"bot_token": alertstest.Token},
	}
}

func opening() alerts.Message {
	return alerts.NewMessage(delivery(outage(), weather(), store.NoticeOpened), publicURL)
}

func resolution() alerts.Message {
	return alerts.NewMessage(delivery(recovered(), weather(), store.NoticeResolved), publicURL)
}

func TestAWebhookGetsOneMessageForEachNotice(t *testing.T) {
	slack, sender := alertstest.NewSlack(t), newSlack()
	for _, m := range []alerts.Message{opening(), resolution()} {
		receipt, err := sender.Send(t.Context(), webhookChannel(slack), "", m)
		if err != nil || receipt.Ref != "" {
			t.Fatalf("sending %s = %+v, %v; want an empty receipt", m.Kind, receipt, err)
		}
	}
	got := slack.Messages()
	if len(got) != 2 || !strings.Contains(got[0].Text, "Weather is down") || !strings.Contains(got[1].Text, "Weather has recovered") {
		t.Errorf("messages = %+v, want an opening and a resolution", got)
	}
}

func TestABotUpdatesItsMessageAndRepliesWithTheLength(t *testing.T) {
	slack, sender := alertstest.NewSlack(t), newSlack()
	channel := botChannel(slack)

	opened, err := sender.Send(t.Context(), channel, "", opening())
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := sender.Send(t.Context(), channel, opened.Ref, resolution())
	if err != nil {
		t.Fatal(err)
	}
	if resolved.Ref != opened.Ref || opened.Ref == "" {
		t.Errorf("refs = %q and %q, want the same one", opened.Ref, resolved.Ref)
	}
	got := slack.Messages()
	id, ts := alertstest.ChannelID, got[0].TS
	want := []alertstest.Message{
		{Kind: alertstest.Post, Channel: id, TS: ts},
		{Kind: alertstest.Update, Channel: id, TS: ts},
		{Kind: alertstest.Thread, Channel: id, TS: got[len(got)-1].TS, ThreadTS: ts},
	}
	if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(alertstest.Message{}, "Text", "Blocks", "Form")); diff != "" {
		t.Fatalf("messages (-got +want):\n%s", diff)
	}
	if got, want := got[2].Text, "*🟢 Weather has recovered*\nRecovered after 12 minutes 4 seconds."; got != want {
		t.Errorf("reply = %q, want %q", got, want)
	}
	for _, m := range got {
		for name, want := range map[string]string{"unfurl_links": "false", "unfurl_media": "false", "parse": "none", "link_names": "false"} {
			if got := m.Form.Get(name); got != want {
				t.Errorf("%s of %s = %q, want %q", name, m.Kind, got, want)
			}
		}
	}
}

func TestAResolutionRepeatedAfterACrashUpdatesTheSameMessage(t *testing.T) {
	slack, sender := alertstest.NewSlack(t), newSlack()
	opened, err := sender.Send(t.Context(), botChannel(slack), "", opening())
	if err != nil {
		t.Fatal(err)
	}
	slack.SetFaultOn(alertstest.Thread, 503, 0, "")
	if _, err := sender.Send(t.Context(), botChannel(slack), opened.Ref, resolution()); err == nil {
		t.Fatal("a reply that failed was taken for one that arrived")
	}
	slack.SetFaultOn(alertstest.Thread, 0, 0, "")
	if _, err := sender.Send(t.Context(), botChannel(slack), opened.Ref, resolution()); err != nil {
		t.Fatal(err)
	}
	if got, want := kinds(slack), "post update update thread"; got != want {
		t.Errorf("messages = %s, want %s", got, want)
	}
}

func TestAResolutionThatFindsNoMessageIsPostedAfresh(t *testing.T) {
	t.Run("when the opening never got through", func(t *testing.T) {
		slack := alertstest.NewSlack(t)
		receipt, err := newSlack().Send(t.Context(), botChannel(slack), "", resolution())
		if err != nil || receipt.Ref == "" || kinds(slack) != "post" {
			t.Errorf("receipt %+v, error %v, messages %s; want one post", receipt, err, kinds(slack))
		}
	})
	t.Run("when somebody deleted it", func(t *testing.T) {
		slack, sender := alertstest.NewSlack(t), newSlack()
		opened, err := sender.Send(t.Context(), botChannel(slack), "", opening())
		if err != nil {
			t.Fatal(err)
		}
		slack.Delete(slack.Messages()[0].TS)
		if _, err := sender.Send(t.Context(), botChannel(slack), opened.Ref, resolution()); err != nil {
			t.Fatal(err)
		}
		if got, want := kinds(slack), "post post"; got != want {
			t.Errorf("messages = %s, want %s", got, want)
		}
	})
	t.Run("when it is in a channel that the bot has left", func(t *testing.T) {
		slack := alertstest.NewSlack(t)
		_, err := newSlack().Send(t.Context(), botChannel(slack), "C0000000000:1.2", resolution())
		if err != nil || kinds(slack) != "post" {
			t.Errorf("error %v, messages %s; want one post", err, kinds(slack))
		}
	})
	t.Run("when Slack refuses the update with a word nobody knows", func(t *testing.T) {
		slack, sender := alertstest.NewSlack(t), newSlack()
		opened, err := sender.Send(t.Context(), botChannel(slack), "", opening())
		if err != nil {
			t.Fatal(err)
		}
		slack.SetFaultOn(alertstest.Update, 200, 0, `{"ok":false,"error":"brand_new_reason"}`)
		if _, err := sender.Send(t.Context(), botChannel(slack), opened.Ref, resolution()); err != nil || kinds(slack) != "post post" {
			t.Errorf("error %v, messages %s; want two posts", err, kinds(slack))
		}
	})
}

func TestAThreadThatTakesNoRepliesIsNoFailure(t *testing.T) {
	slack, sender := alertstest.NewSlack(t), newSlack()
	opened, err := sender.Send(t.Context(), botChannel(slack), "", opening())
	if err != nil {
		t.Fatal(err)
	}
	slack.SetFaultOn(alertstest.Thread, 200, 0, `{"ok":false,"error":"restricted_action_thread_locked"}`)
	if _, err := sender.Send(t.Context(), botChannel(slack), opened.Ref, resolution()); err != nil {
		t.Error(err)
	}
}

func TestBlocksThatAreRefusedAreSentAsText(t *testing.T) {
	for name, slack := range map[string]*alertstest.Slack{"webhook": alertstest.NewSlack(t), "bot": alertstest.NewSlack(t)} {
		t.Run(name, func(t *testing.T) {
			channel, refusal := webhookChannel(slack), func() { slack.SetFault(400, 0, "invalid_blocks") }
			if name == "bot" {
				channel, refusal = botChannel(slack), func() { slack.SetFault(200, 0, `{"ok":false,"error":"invalid_blocks"}`) }
			}
			refusal()
			_, err := newSlack().Send(t.Context(), channel, "", opening())
			if _, ok := errors.AsType[*alerts.PermanentError](err); !ok || slack.Requests() != 2 {
				t.Errorf("error %v after %d requests, want a permanent one after 2", err, slack.Requests())
			}
		})
	}
}

func TestErrorsOfSlack(t *testing.T) {
	const passing, permanent = false, true
	tests := []struct {
		name       string
		status     int
		retryAfter time.Duration
		body       string
		bot        bool
		permanent  bool
		want       string // part of the error
	}{
		{"a webhook that was removed", 404, 0, "no_service", false, permanent, "no_service"},
		{"a webhook that was switched off", 404, 0, "no_active_hooks", false, permanent, "no_active_hooks"},
		{"a webhook that may not post", 403, 0, "action_prohibited", false, permanent, "action_prohibited"},
		{"a webhook with a wrong token", 403, 0, "invalid_token", false, permanent, "invalid_token"},
		{"a webhook into an archived channel", 410, 0, "channel_is_archived", false, permanent, "channel_is_archived"},
		{"a webhook whose channel is gone", 404, 0, "channel_not_found", false, permanent, "channel_not_found"},
		{"a webhook that cannot read us", 400, 0, "invalid_payload", false, permanent, "invalid_payload"},
		{"an address that is not a webhook", 404, 0, "Cannot POST /services/T0123456789/B0123456789/secret", false, permanent, "404 Not Found"},
		{"an address that leads to a page", 200, 0, "<!doctype html><title>Hello</title>", false, permanent, "web page"},
		{"an address that leads elsewhere", 302, 0, "", false, permanent, "302"},
		{"a webhook called too often", 429, 30 * time.Second, "rate_limited", false, passing, "wait for 30s"},
		{"a webhook called too often, without a word when to return", 429, 0, "", false, passing, "429"},
		{"a webhook in trouble", 500, 0, "rollup_error", false, passing, "rollup_error"},
		{"a webhook under maintenance", 503, time.Minute, "<html>", false, passing, "wait for 1m0s"},

		{"a token that is wrong", 200, 0, `{"ok":false,"error":"invalid_auth"}`, true, permanent, "invalid_auth: the bot token is not valid"},
		{"an app that was removed", 200, 0, `{"ok":false,"error":"account_inactive"}`, true, permanent, "account_inactive"},
		{"a token that was revoked", 200, 0, `{"ok":false,"error":"token_revoked"}`, true, permanent, "token_revoked"},
		{"no token", 200, 0, `{"ok":false,"error":"not_authed"}`, true, permanent, "not_authed"},
		{"no such channel", 200, 0, `{"ok":false,"error":"channel_not_found"}`, true, permanent, "invite it"},
		{"a bot outside the channel", 200, 0, `{"ok":false,"error":"not_in_channel"}`, true, permanent, "invite it"},
		{"an archived channel", 200, 0, `{"ok":false,"error":"is_archived"}`, true, permanent, "is_archived"},
		{"no permission", 200, 0, `{"ok":false,"error":"no_permission"}`, true, permanent, "no_permission"},
		{"a missing scope", 200, 0, `{"ok":false,"error":"missing_scope","needed":"chat:write"}`, true, permanent, "chat:write"},
		{"too many messages", 429, 7 * time.Second, `{"ok":false,"error":"ratelimited"}`, true, passing, "wait for 7s"},
		{"too many messages, said in the body alone", 200, 0, `{"ok":false,"error":"ratelimited"}`, true, passing, "ratelimited"},
		{"trouble of Slack's", 200, 0, `{"ok":false,"error":"internal_error"}`, true, passing, "internal_error"},
		{"a word nobody knows", 200, 0, `{"ok":false,"error":"brand_new_reason"}`, true, passing, "brand_new_reason"},
		{"a word that is none", 200, 0, `{"ok":false,"error":"<b>xoxb-123</b>"}`, true, passing, "not one of Slack's"},
		{"a refusal without a word", 200, 0, `{"ok":false}`, true, passing, "not one that Slack gives"},
		{"an answer without a message", 200, 0, `{"ok":true}`, true, passing, "not one that Slack gives"},
		{"an answer that is not JSON", 200, 0, `<html>`, true, passing, "not one that Slack gives"},
		{"an empty answer", 200, 0, ``, true, passing, "not one that Slack gives"},
		{"an answer cut short", 200, 0, `{"ok":tr`, true, passing, "not one that Slack gives"},
		{"a gateway in trouble", 502, 0, `<html>`, true, passing, "502 Bad Gateway"},
		{"an API that is not there", 404, 0, `<html>`, true, permanent, "404 Not Found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			slack := alertstest.NewSlack(t)
			slack.SetFault(tt.status, tt.retryAfter, tt.body)
			channel := webhookChannel(slack)
			if tt.bot {
				channel = botChannel(slack)
			}
			_, err := newSlack().Send(t.Context(), channel, "", opening())
			if err == nil {
				t.Fatal("sent")
			}
			if _, got := errors.AsType[*alerts.PermanentError](err); got != tt.permanent {
				t.Errorf("permanent = %t, want %t: %v", got, tt.permanent, err)
			}
			if e, ok := errors.AsType[*alerts.RetryError](err); ok != (tt.retryAfter > 0) || ok && e.After != tt.retryAfter {
				t.Errorf("error %v does not say to wait for %s", err, tt.retryAfter)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %q, want %q in it", err, tt.want)
			}
			checkNoSecrets(t, err.Error(), channel)
		})
	}
}

func TestASlackThatCannotBeReachedIsPassingAndKeepsTheAddressSecret(t *testing.T) {
	slack := alertstest.NewSlack(t)
	sender := alerts.NewSlack(alerts.NewClient(probe.Egress{}.DialContext)) // which dials nothing on loopback
	for _, channel := range []store.Channel{webhookChannel(slack), botChannel(slack)} {
		_, err := sender.Send(t.Context(), channel, "", opening())
		if _, permanent := errors.AsType[*alerts.PermanentError](err); permanent || !strings.Contains(fmt.Sprint(err), "Slack cannot be reached: the address 127.0.0.1 lies in") {
			t.Errorf("error = %v, want a passing one that says why", err)
		}
		checkNoSecrets(t, fmt.Sprint(err), channel)
	}
}

func TestTheClientFollowsNoRedirectAndReadsNoMoreThanItMust(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	big := strings.Repeat("x", 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/api/chat.postMessage":
			fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":"1.1","text":%q}`, big)
		}
	}))
	defer server.Close()

	channel := store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": server.URL + "/redirect"}}
	if _, err := newSlack().Send(t.Context(), channel, "", opening()); err == nil || elsewhere != 0 {
		t.Errorf("error %v, %d requests elsewhere; want an error and none", err, elsewhere)
	}
	channel = store.Channel{
		Type: store.ChannelSlack, Settings: map[string]string{"channel": "C1", "api_url": server.URL + "/api"},
		Secrets: map[string]string{"bot_token": alertstest.Token},
	}
	if _, err := newSlack().Send(t.Context(), channel, "", opening()); err == nil {
		t.Error("an answer of a megabyte was read")
	}
}

// checkNoSecrets also looks for the parts of a secret by which it could be used.
func checkNoSecrets(t *testing.T, text string, c store.Channel) {
	t.Helper()
	for name, secret := range c.Secrets {
		if strings.Contains(text, secret) || strings.Contains(text, "/services/") {
			t.Errorf("%q holds the %s", text, name)
		}
	}
}

func kinds(s *alertstest.Slack) string {
	var kinds []string
	for _, m := range s.Messages() {
		kinds = append(kinds, string(m.Kind))
	}
	return strings.Join(kinds, " ")
}

func TestAServerThatCannotReadBlocksGetsText(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(body), `"blocks"`) {
			http.Error(w, "invalid_payload", http.StatusBadRequest)
			return
		}
		got = append(got, string(body))
	}))
	defer server.Close()
	channel := store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": server.URL}}
	if _, err := newSlack().Send(t.Context(), channel, "", opening()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !strings.Contains(got[0], "Weather is down") {
		t.Errorf("accepted %q, want one message as text", got)
	}
}

func TestRetryAfterIsReadAsSecondsOrADateAndNeverAsForever(t *testing.T) {
	tests := []struct {
		header   string
		min, max time.Duration
	}{
		{"7", 7 * time.Second, 7 * time.Second},
		{" 7 ", 7 * time.Second, 7 * time.Second},
		{time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat), 9 * time.Minute, 10 * time.Minute},
		{"2000000000", time.Hour, time.Hour},
		{"0", 0, 0},
		{"-5", 0, 0},
		{"soon", 0, 0},
		{"Mon, 01 Jan 2001 00:00:00 GMT", 0, 0},
	}
	for _, tt := range tests {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tt.header)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		channel := store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": server.URL}}
		_, err := newSlack().Send(t.Context(), channel, "", opening())
		server.Close()
		var after time.Duration
		if e, ok := errors.AsType[*alerts.RetryError](err); ok {
			after = e.After
		}
		if err == nil || after < tt.min || after > tt.max {
			t.Errorf("Retry-After %q means %s, want between %s and %s (%v)", tt.header, after, tt.min, tt.max, err)
		}
	}
}
