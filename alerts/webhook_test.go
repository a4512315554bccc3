package alerts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func newWebhook() *alerts.Webhook {
	return alerts.NewWebhook(alerts.NewClient(probe.Egress{Any: true}.DialContext))
}

func hookChannel(r *alertstest.Receiver) store.Channel {
	return store.Channel{
		ID: "ch_3", Name: "ops", Type: store.ChannelWebhook,
		Secrets: map[string]string{"webhook_url": r.URL(), "signing_secret": alertstest.ReceiverSecret},
	}
}

// everything returns a message with something in every field.
func everything(kind alerts.Kind) alerts.Message {
	at := time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)
	return alerts.Message{
		Kind: kind, ID: "ntc_1", Incident: "inc_1", Severity: "down", Open: true, Symbol: "🔴", Title: "Weather is down", Meaning: "It is gone.",
		State: "down", About: "Weather", Update: "Acknowledged by ada.", Act: "acknowledged", Endpoint: "Weather", URL: "https://weather.example/mcp", Step: "tools/list",
		Class: "rpc_error", Code: "-32603", Said: "<b>database</b> is locked & \u2028", Location: "fra", SeenFrom: []string{"fra", "iad"},
		Dependents: []string{"Travel"}, Since: at, Until: at.Add(724 * time.Second), Lasted: "12 minutes 4 seconds",
		Outcome: "Recovered after 12 minutes 4 seconds.", Changes: []string{"breaking: forecast: the tool is gone"},
		Items: []alerts.Item{{Symbol: "🔴", Title: "Maps is down", Said: "timeout", Link: "https://rollcall.example/endpoints/maps"}},
		Acts:  true, Link: "https://rollcall.example/endpoints/weather", Unsubscribe: "https://rollcall.example/unsubscribe/abc",
	}
}

// asWebhookGetsIt returns the body of a message as it came over the wire, indented.
func asWebhookGetsIt(t *testing.T, m alerts.Message) []byte {
	t.Helper()
	receiver := alertstest.NewReceiver(t)
	if _, err := newWebhook().Send(t.Context(), hookChannel(receiver), "", m); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(receiver.Messages()[0].Body), "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), '\n')
}

func TestAWebhookIsSignedAndCarriesTheNoticesID(t *testing.T) {
	receiver := alertstest.NewReceiver(t)
	m := everything(alerts.KindOpened)
	for range 2 { // the second as after a crash
		receipt, err := newWebhook().Send(t.Context(), hookChannel(receiver), "", m)
		if err != nil || receipt != (alerts.Receipt{}) {
			t.Fatalf("sending = %+v, %v; want an empty receipt", receipt, err)
		}
	}
	got := receiver.Messages()
	if len(got) != 2 || got[0].Body != got[1].Body {
		t.Fatalf("%d messages, want the same one twice: %+v", len(got), got)
	}
	for _, d := range got {
		if !d.Verified || d.ID != "ntc_1" || d.Header.Get("User-Agent") != "rollcall" || d.Header.Get("Content-Type") != "application/json" {
			t.Errorf("verified %t, id %q, headers %v", d.Verified, d.ID, d.Header)
		}
	}
}

func TestASignatureIsWrongForAnotherSecret(t *testing.T) {
	receiver := alertstest.NewReceiver(t)
	channel := hookChannel(receiver)
	channel.Secrets["signing_secret"] = "whsec_bm90LXRoZS1zZWNyZXQtb2YtdGhlLXJlY2VpdmVy"
	if _, err := newWebhook().Send(t.Context(), channel, "", opening()); err == nil || isPermanent(err) {
		t.Errorf("error = %v, want a passing one", err)
	}
	channel.Secrets["signing_secret"] = "whsec_!"
	if _, err := newWebhook().Send(t.Context(), channel, "", opening()); !isPermanent(err) {
		t.Errorf("error of a secret that is not base64 = %v, want a permanent one", err)
	}
	delete(channel.Secrets, "signing_secret")
	if _, err := newWebhook().Send(t.Context(), channel, "", opening()); err != nil || len(receiver.Messages()) != 1 {
		t.Errorf("without a secret: %v, messages %+v", err, receiver.Messages())
	}
	if got := receiver.Messages()[0]; got.ID == "" || got.Header.Get("Webhook-Signature") != "" {
		t.Errorf("without a secret and an id: id %q, signature %q", got.ID, got.Header.Get("Webhook-Signature"))
	}
}

func TestEveryMessageFitsThePublishedSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(alerts.WebhookSchema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("webhook.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("webhook.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kindsOfMessages {
		for _, m := range []alerts.Message{everything(kind), {Kind: kind, Title: "Only a title"}} {
			body := asWebhookGetsIt(t, m)
			instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(instance); err != nil {
				t.Errorf("%s: %v\n%s", kind, err, body)
			}
		}
	}
}

// TestTheSchemaNamesEveryMember keeps the two alike: a message with everything in it has the members of the schema, and
// each of them is described.
func TestTheSchemaNamesEveryMember(t *testing.T) {
	type node struct {
		Description string           `json:"description"`
		Properties  map[string]*node `json:"properties"`
		Items       *node            `json:"items"`
		Enum        []string         `json:"enum"`
	}
	var schema node
	if err := json.Unmarshal(alerts.WebhookSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(asWebhookGetsIt(t, everything(alerts.KindOpened)), &sent); err != nil {
		t.Fatal(err)
	}
	var items []map[string]any
	if err := json.Unmarshal(sent.Data["items"], &items); err != nil {
		t.Fatal(err)
	}
	data := schema.Properties["data"].Properties
	if diff := cmp.Diff(names(sent.Data), names(data)); diff != "" {
		t.Errorf("members of data (-sent +schema):\n%s", diff)
	}
	if diff := cmp.Diff(names(items[0]), names(data["items"].Items.Properties)); diff != "" {
		t.Errorf("members of an item (-sent +schema):\n%s", diff)
	}
	if got := len(schema.Properties["type"].Enum); got != len(kindsOfMessages) {
		t.Errorf("the schema has %d types, want %d", got, len(kindsOfMessages))
	}
	for name, member := range data {
		if !strings.HasSuffix(strings.TrimSuffix(member.Description, "”"), ".") {
			t.Errorf("description of %s = %q, want a sentence", name, member.Description)
		}
	}
}

func names[V any](m map[string]V) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestAWebhooksBodyIsWhatItsTemplateMakes(t *testing.T) {
	tests := []struct{ name, template, want, contentType string }{
		{"JSON", `{"text": {{json .Title}}}`, `{"text": "Weather is down"}`, "application/json"},
		{"text", `{{.Symbol}} {{.Title}}`, "🔴 Weather is down", "text/plain; charset=utf-8"},
	}
	for _, tt := range tests {
		receiver := alertstest.NewReceiver(t)
		channel := hookChannel(receiver)
		channel.Settings = map[string]string{"template": tt.template}
		if _, err := newWebhook().Send(t.Context(), channel, "", opening()); err != nil {
			t.Fatal(err)
		}
		if got := receiver.Messages()[0]; got.Body != tt.want || got.Header.Get("Content-Type") != tt.contentType || !got.Verified {
			t.Errorf("%s: %q as %q, verified %t; want %q as %q", tt.name, got.Body, got.Header.Get("Content-Type"), got.Verified, tt.want, tt.contentType)
		}
	}
	for _, useless := range []string{"{{index .Changes 99}}", "{{if eq .Kind \"test\"}}x{{end}}\n"} {
		receiver := alertstest.NewReceiver(t)
		channel := hookChannel(receiver)
		channel.Settings = map[string]string{"template": useless}
		if _, err := newWebhook().Send(t.Context(), channel, "", opening()); err != nil || !strings.Contains(receiver.Messages()[0].Body, `"incident.opened"`) {
			t.Errorf("with the template %s: error %v, body %q; want our own words", useless, err, receiver.Messages()[0].Body)
		}
	}
}

func TestAWebhooksRefusalsAreToldApart(t *testing.T) {
	tests := []struct {
		status     int
		retryAfter time.Duration
		body       string
		want       string
		permanent  bool
		after      time.Duration
	}{
		{status: 410, want: "the webhook answered HTTP 410 Gone: it wants no more messages", permanent: true},
		{status: 410, retryAfter: time.Minute, body: "gone_away", want: "the webhook answered HTTP 410 Gone: gone_away: it wants no more messages", permanent: true},
		{status: 400, body: "invalid_body", want: "the webhook answered HTTP 400 Bad Request: invalid_body"},
		{status: 401, want: "the webhook answered HTTP 401 Unauthorized"},
		{status: 404, body: "no such hook at /hooks/3f1c9a7e-very-secret", want: "the webhook answered HTTP 404 Not Found"},
		{status: 307, want: "the webhook answered HTTP 307 Temporary Redirect: redirects are not followed, give the address that it leads to"},
		{status: 429, retryAfter: 7 * time.Second, want: "the webhook answered HTTP 429 Too Many Requests (asks to wait for 7s)", after: 7 * time.Second},
		{status: 503, retryAfter: 9 * time.Hour, want: "the webhook answered HTTP 503 Service Unavailable (asks to wait for 1h0m0s)", after: time.Hour},
		{status: 500, want: "the webhook answered HTTP 500 Internal Server Error"},
	}
	for _, tt := range tests {
		receiver := alertstest.NewReceiver(t)
		receiver.SetFault(tt.status, tt.retryAfter, tt.body)
		_, err := newWebhook().Send(t.Context(), hookChannel(receiver), "", opening())
		if err == nil || err.Error() != tt.want || isPermanent(err) != tt.permanent {
			t.Errorf("HTTP %d: error %v, permanent %t; want %q, %t", tt.status, err, isPermanent(err), tt.want, tt.permanent)
		}
		var after time.Duration
		if e, ok := errors.AsType[*alerts.RetryError](err); ok {
			after = e.After
		}
		if after != tt.after {
			t.Errorf("HTTP %d: to wait for %s, want %s", tt.status, after, tt.after)
		}
	}
}

func isPermanent(err error) bool {
	_, ok := errors.AsType[*alerts.PermanentError](err)
	return ok
}

func TestAWebhookThatCannotBeReachedIsPassingTrouble(t *testing.T) {
	t.Run("when it hangs", func(t *testing.T) {
		receiver := alertstest.NewReceiver(t)
		receiver.Hang(true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := newWebhook().Send(ctx, hookChannel(receiver), "", opening())
		if err == nil || isPermanent(err) || strings.Contains(err.Error(), "secret") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want a passing one without the address", err)
		}
	})
	t.Run("when its address may not be dialled", func(t *testing.T) {
		receiver := alertstest.NewReceiver(t)
		sender := alerts.NewWebhook(alerts.NewClient(probe.Egress{}.DialContext))
		_, err := sender.Send(t.Context(), hookChannel(receiver), "", opening())
		if err == nil || isPermanent(err) || strings.Contains(err.Error(), "secret") || len(receiver.Requests()) != 0 {
			t.Errorf("error = %v, requests %d; want a passing one without the address, and none", err, len(receiver.Requests()))
		}
	})
	t.Run("but one without an address is broken", func(t *testing.T) {
		for _, address := range []string{"", "://", "hooks", "http://"} {
			_, err := newWebhook().Send(t.Context(), store.Channel{Secrets: map[string]string{"webhook_url": address}}, "", opening())
			if !isPermanent(err) {
				t.Errorf("%q: error = %v, want a permanent one", address, err)
			}
		}
	})
}

func TestAWebhookProvesThatItWantsMessages(t *testing.T) {
	const token = "tok_3Kx9"
	tests := []struct {
		name, answer string
		status       int
		ok           bool
	}{
		{name: "by the challenge as JSON", ok: true},
		{name: "by the challenge alone", answer: token + "\n", ok: true},
		{name: "not by another challenge", answer: `{"challenge": "tok_1"}`},
		{name: "not by a page that has it somewhere", answer: "<p>" + token + "</p>"},
		{name: "not by 200 alone", answer: "ok"},
		{name: "not by the question itself", answer: `{"challenge":"tok_3Kx9","manage":"https://status.example/x","type":"verification"}`},
		{name: "not by an error with the challenge", answer: token, status: http.StatusBadRequest},
	}
	for _, tt := range tests {
		receiver := alertstest.NewReceiver(t)
		receiver.SetChallengeAnswer(tt.answer)
		receiver.SetFault(tt.status, 0, tt.answer)
		err := newWebhook().Challenge(t.Context(), hookChannel(receiver), token, "https://status.example/x")
		if (err == nil) != tt.ok {
			t.Errorf("%s: error = %v, want ok: %t", tt.name, err, tt.ok)
		}
		if got := receiver.Requests()[0]; !got.Verified || got.Body != `{"challenge":"tok_3Kx9","manage":"https://status.example/x","type":"verification"}` {
			t.Errorf("%s: asked with %s, verified %t", tt.name, got.Body, got.Verified)
		}
	}
	if err := newWebhook().Challenge(t.Context(), hookChannel(alertstest.NewReceiver(t)), "", ""); err == nil {
		t.Error("a challenge without a token was met")
	}
}
