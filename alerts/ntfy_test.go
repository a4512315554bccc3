package alerts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func ntfyChannel(n *alertstest.Ntfy) store.Channel {
	return store.Channel{
		ID: "ch_1", Name: "phone", Type: store.ChannelNtfy, Settings: map[string]string{"api_url": n.URL()},
		Secrets: map[string]string{"topic": alertstest.NtfyTopic, "access_token": alertstest.NtfyToken},
	}
}

func TestNtfyGetsANotificationForEachMessage(t *testing.T) {
	n, sender := alertstest.NewNtfy(t), alerts.NewNtfy(client())
	for _, m := range []alerts.Message{incident(), recovery()} {
		receipt, err := sender.Send(t.Context(), ntfyChannel(n), "", m)
		if err != nil || receipt != (alerts.Receipt{}) {
			t.Fatalf("%s: receipt %+v, error %v", m.Kind, receipt, err)
		}
	}
	got := n.Messages()
	opened, resolved := got[0], got[1]
	if opened.Title != "🔴 Weather is down" || opened.Priority != 5 || opened.Click == "" || len(opened.Actions) != 1 || opened.Actions[0].Action != "view" {
		t.Errorf("opening = %+v", opened)
	}
	if diff := cmp.Diff(opened.Tags, []string{"down", "rpc_error"}); diff != "" {
		t.Errorf("tags (-got +want):\n%s", diff)
	}
	if !strings.Contains(opened.Message, "Error: Internal error: database is locked\n") {
		t.Errorf("message = %q", opened.Message)
	}
	if resolved.Priority != 3 || !strings.HasPrefix(resolved.Message, "Recovered after 12 minutes 4 seconds.") {
		t.Errorf("end = %+v", resolved)
	}
}

func TestALongMessageStaysAMessageOfNtfy(t *testing.T) {
	n := alertstest.NewNtfy(t)
	if _, err := alerts.NewNtfy(client()).Send(t.Context(), ntfyChannel(n), "", rude()); err != nil {
		t.Fatal(err)
	}
	got := n.Messages()[0]
	if len(got.Message) > 4096 || len(got.Message) < 4000 || !strings.HasSuffix(got.Message, "…") || len(got.Title) > 250 {
		t.Errorf("a message of %d and a title of %d bytes", len(got.Message), len(got.Title))
	}
	if strings.Contains(got.Message, "://evil") {
		t.Errorf("the message has an address to press: %.300q", got.Message)
	}
}

func TestWhatNtfyRefuses(t *testing.T) {
	n := alertstest.NewNtfy(t)
	refusals{
		{"a wrong token", alertstest.Reply{Status: 401, Body: `{"code":40101,"http":401,"error":"unauthorized","link":"https://ntfy.sh/docs/publish/#authentication"}`}, true, 0, "the access token is not valid"},
		{"a topic of somebody else", alertstest.Reply{Status: 403, Body: `{"code":40301,"http":403,"error":"forbidden","link":"https://ntfy.sh/docs/publish/#authentication"}`}, true, 0, "may not write to this topic"},
		{"a topic that cannot be", alertstest.Reply{Status: 400, Body: `{"code":40009,"http":400,"error":"invalid request: topic invalid"}`}, true, 0, "choose another topic"},
		{"no ntfy", alertstest.Reply{Status: 404, Body: `{"code":40401,"http":404,"error":"page not found"}`}, true, 0, "no ntfy server at this address"},
		{"too many requests", alertstest.Reply{Status: 429, Body: `{"code":42901,"http":429,"error":"limit reached: too many requests, please be nice","link":"https://ntfy.sh/docs/publish/#limitations"}`}, false, 0, "please be nice"},
		{"too many messages in a day", alertstest.Reply{Status: 429, Header: map[string]string{"Retry-After": "600"}, Body: `{"code":42908,"http":429,"error":"limit reached: too many messages"}`}, false, 10 * time.Minute, "too many messages"},
		{"too many bytes in a day", alertstest.Reply{Status: 413, Body: `{"code":41301,"http":413,"error":"attachment too large, or bandwidth limit reached"}`}, false, 0, "bandwidth"},
		{"its own trouble", alertstest.Reply{Status: 500, Body: `{"code":50001,"http":500,"error":"internal server error"}`}, false, 0, "internal server error"},
	}.run(t, alerts.NewNtfy(client()), n.Service, ntfyChannel(n))
}

func TestATopicWithoutATokenIsRefusedWhereTheServerWantsOne(t *testing.T) {
	n := alertstest.NewNtfy(t)
	c := ntfyChannel(n)
	delete(c.Secrets, "access_token")
	_, err := alerts.NewNtfy(client()).Send(t.Context(), c, "", incident())
	checkRefusal(t, err, true, 0, "forbidden: the access token may not write to this topic, or the server wants one")
}

func TestWhatIsOverRingsNoPhoneInNtfy(t *testing.T) {
	n, sender := alertstest.NewNtfy(t), alerts.NewNtfy(client())
	late := incident()
	late.Open = false
	digest := alerts.NewDigest(storm(30)[27:], publicURL)
	for _, m := range []alerts.Message{late, digest, recovery()} {
		if _, err := sender.Send(t.Context(), ntfyChannel(n), "", m); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range n.Messages() {
		if m.Priority != 3 || len(m.Tags) != 0 {
			t.Errorf("%s has priority %d and the tags %q", m.Title, m.Priority, m.Tags)
		}
	}
}
