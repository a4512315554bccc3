package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
)

// acted is a click that reached us.
type acted struct {
	Incident string
	Act      alerts.SlackAct
}

// newSlackApp returns an app that answers a local Slack, where it is served, and what it was asked to do.
func newSlackApp(t *testing.T, s *alertstest.Slack) (app *alerts.SlackApp, url string, acts *[]acted) {
	t.Helper()
	acts = new([]acted)
	app = &alerts.SlackApp{
		Secrets: func(context.Context) ([]string, error) {
			return []string{"of another app", alertstest.SigningSecret}, nil
		},
		Act: func(_ context.Context, incident string, act alerts.SlackAct) (string, error) {
			*acts = append(*acts, acted{incident, act})
			return "Done for <" + act.Author + ">.", nil
		},
		Status: func(_ context.Context, query string) (string, error) {
			return "Asked for “" + query + "”: <!channel> *fine* & well", nil
		},
		Client:  alerts.NewClient(probe.Egress{Any: true}.DialContext),
		Origins: func(context.Context) ([]string, error) { return []string{s.Origin()}, nil },
	}
	mux := http.NewServeMux()
	serve := func(answer func(context.Context, http.Header, []byte) (int, string, []byte)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			status, contentType, reply := answer(r.Context(), r.Header, body)
			if contentType != "" {
				w.Header().Set("Content-Type", contentType)
			}
			w.WriteHeader(status)
			_, _ = w.Write(reply)
		}
	}
	mux.Handle("POST /slack/actions", serve(app.Action))
	mux.Handle("POST /slack/command", serve(app.Command))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return app, server.URL, acts
}

func TestAClickDoesWhatTheButtonSaysAndTellsWhoClicked(t *testing.T) {
	slack, ref := openIncident(t)
	_, ts, _ := strings.Cut(ref, ":")
	_, url, acts := newSlackApp(t, slack)
	for _, button := range []string{"rollcall_acknowledge", "rollcall_snooze"} {
		if status := slack.Click(t, ts, button, url+"/slack/actions", alertstest.SigningSecret); status != http.StatusOK {
			t.Errorf("%s was answered with %d", button, status)
		}
	}
	want := []acted{
		{"inc_1", alerts.SlackAct{Kind: "acknowledge", Author: "ada (Slack)"}},
		{"inc_1", alerts.SlackAct{Kind: "snooze", For: time.Hour, Author: "ada (Slack)"}},
	}
	if diff := cmp.Diff(*acts, want); diff != "" {
		t.Errorf("acts (-got +want):\n%s", diff)
	}
	told := "Done for &lt;ada (Slack)&gt;."
	if diff := cmp.Diff(slack.Answers(), []string{told, told}); diff != "" {
		t.Errorf("answers (-got +want):\n%s", diff)
	}
}

func TestAFailureOfOursIsToldInASentenceThatKeepsItToItself(t *testing.T) {
	slack, ref := openIncident(t)
	_, ts, _ := strings.Cut(ref, ":")
	app, url, _ := newSlackApp(t, slack)
	secret := errors.New("password=hunter2")
	app.Act = func(context.Context, string, alerts.SlackAct) (string, error) { return "", secret }
	app.Status = func(context.Context, string) (string, error) { return "", secret }

	if status := slack.Click(t, ts, "rollcall_snooze", url+"/slack/actions", alertstest.SigningSecret); status != http.StatusOK {
		t.Errorf("the click was answered with %d", status)
	}
	_, answer := slack.Command(t, url+"/slack/command", alertstest.SigningSecret, "status")
	answers := append(slack.Answers(), answer)
	want := []string{"Rollcall could not do that at the moment. Try again in a minute.", "Rollcall cannot say at the moment. Try again in a minute."}
	if diff := cmp.Diff(answers, want); diff != "" {
		t.Errorf("answers (-got +want):\n%s", diff)
	}
}

func TestTheCommand(t *testing.T) {
	const help = "/rollcall status says what is wrong at present.\n" +
		"/rollcall status weather says how one endpoint is, by its name or its slug.\n/rollcall help says this."
	tests := []struct{ text, want string }{
		{"status", "Asked for “”: &lt;!channel&gt; ∗fine∗ &amp; well"},
		{" status   weather ", "Asked for “weather”: &lt;!channel&gt; ∗fine∗ &amp; well"},
		{"status My Weather", "Asked for “My Weather”: &lt;!channel&gt; ∗fine∗ &amp; well"},
		{"status <!here>", "Asked for “&lt;!here&gt;”: &lt;!channel&gt; ∗fine∗ &amp; well"},
		{"help", help},
		{"", help},
		{"help me", "Rollcall does not know this command.\n" + help},
		{"<!channel>", "Rollcall does not know this command.\n" + help},
	}
	slack := alertstest.NewSlack(t)
	_, url, _ := newSlackApp(t, slack)
	for _, tt := range tests {
		if status, got := slack.Command(t, url+"/slack/command", alertstest.SigningSecret, tt.text); status != http.StatusOK || got != tt.want {
			t.Errorf("/rollcall %s = %d %q, want %q", tt.text, status, got, tt.want)
		}
	}
}

func TestOnlyWhatSlackSignedLatelyIsHeard(t *testing.T) {
	slack, ref := openIncident(t)
	_, ts, _ := strings.Cut(ref, ":")
	at := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	body := slack.ClickBody(t, ts, "rollcall_acknowledge")
	signed := func(mend func(http.Header)) http.Header {
		header := alertstest.SignedHeader(alertstest.SigningSecret, at, body)
		mend(header)
		return header
	}
	asIs := func(http.Header) {}
	tests := []struct {
		name   string
		header http.Header
		body   []byte
		after  time.Duration
		want   int
	}{
		{"a request as it came", signed(asIs), body, 0, 200},
		{"one that took its time", signed(asIs), body, 5 * time.Minute, 200},
		{"one from a clock ahead of ours", signed(asIs), body, -5 * time.Minute, 200},
		{"an old one", signed(asIs), body, 5*time.Minute + time.Second, 401},
		{"one from the future", signed(asIs), body, -5*time.Minute - time.Second, 401},
		{"an old one with another time", signed(func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "1795262700") }), body, 5 * time.Minute, 401},
		{"another body", signed(asIs), append(body[:len(body):len(body)], '&'), 0, 401},
		{"no body", signed(asIs), nil, 0, 401},
		{"another secret", alertstest.SignedHeader("fedcba9876543210fedcba9876543210", at, body), body, 0, 401},
		{"an empty secret", alertstest.SignedHeader("", at, body), body, 0, 401},
		{"no signature", signed(func(h http.Header) { h.Del("X-Slack-Signature") }), body, 0, 401},
		{"a signature of another version", signed(func(h http.Header) {
			h.Set("X-Slack-Signature", strings.Replace(h.Get("X-Slack-Signature"), "v0=", "v1=", 1))
		}), body, 0, 401},
		{"a signature cut short", signed(func(h http.Header) { h.Set("X-Slack-Signature", h.Get("X-Slack-Signature")[:20]) }), body, 0, 401},
		{"a signature that is none", signed(func(h http.Header) { h.Set("X-Slack-Signature", "v0="+strings.Repeat("zz", 32)) }), body, 0, 401},
		{"no time", signed(func(h http.Header) { h.Del("X-Slack-Request-Timestamp") }), body, 0, 401},
		{"a time that is none", signed(func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "noon") }), body, 0, 401},
		{"a time out of all bounds", signed(func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "-9223372036854775808") }), body, 0, 401},
		{"no headers", nil, body, 0, 401},
		{"a body without end", alertstest.SignedHeader(alertstest.SigningSecret, at, make([]byte, alerts.MaxSlackBody+1)), make([]byte, alerts.MaxSlackBody+1), 0, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			app, _, acts := newSlackApp(t, slack)
			app.Now = func() time.Time { return at.Add(tt.after) }
			app.Secrets = func(context.Context) ([]string, error) { return []string{"", alertstest.SigningSecret}, nil }
			status, contentType, reply := app.Action(t.Context(), tt.header, tt.body)
			if status != tt.want || contentType != "" || len(reply) != 0 || len(*acts) != map[int]int{200: 1}[tt.want] {
				t.Errorf("Action = %d %q %q after %d acts, want a bare %d", status, contentType, reply, len(*acts), tt.want)
			}
			status, _, reply = app.Command(t.Context(), tt.header, tt.body)
			if status != tt.want || (len(reply) > 0) != (tt.want == 200) {
				t.Errorf("Command = %d %q, want %d", status, reply, tt.want)
			}
		})
	}
}

func TestSecretsThatCannotBeReadAreNoReasonToSayNo(t *testing.T) {
	slack := alertstest.NewSlack(t)
	app, _, acts := newSlackApp(t, slack)
	app.Secrets = func(context.Context) ([]string, error) { return nil, errors.New("the database is away") }
	body := slack.CommandBody("status")
	header := alertstest.SignedHeader(alertstest.SigningSecret, time.Now(), body)
	for name, answer := range map[string]func(context.Context, http.Header, []byte) (int, string, []byte){"Action": app.Action, "Command": app.Command} {
		if status, _, reply := answer(t.Context(), header, body); status != http.StatusServiceUnavailable || len(reply) != 0 || len(*acts) != 0 {
			t.Errorf("%s = %d %q, want a bare 503", name, status, reply)
		}
	}
}

func TestClicksThatAreNotOursAreTakenAndIgnored(t *testing.T) {
	slack := alertstest.NewSlack(t)
	app, _, acts := newSlackApp(t, slack)
	for _, body := range []string{
		"", "%zz", "payload=", "payload=%7B", "payload=null", "payload=[]", "other=1",
		payload(`{"type":"view_submission","actions":[{"action_id":"rollcall_acknowledge","value":"inc_1"}]}`),
		payload(`{"type":"block_actions","actions":[]}`),
		payload(`{"type":"block_actions","actions":[{"action_id":"other","value":"inc_1"}]}`),
		payload(`{"type":"block_actions","actions":[{"action_id":"rollcall_acknowledge","value":""}]}`),
		payload(`{"type":"block_actions","actions":[{"action_id":"rollcall_acknowledge","value":"../inc_1"}]}`),
		payload(`{"type":"block_actions","actions":[{"action_id":"rollcall_acknowledge","value":"inc_1"},{"action_id":"rollcall_snooze","value":"inc_1"}]}`),
	} {
		status, contentType, reply := app.Action(t.Context(), alertstest.SignedHeader(alertstest.SigningSecret, time.Now(), []byte(body)), []byte(body))
		if status != http.StatusOK || contentType != "" || len(reply) != 0 || len(*acts) != 0 {
			t.Errorf("%q was answered with %d %q after %d acts, want a bare 200 after none", body, status, reply, len(*acts))
		}
	}
}

func payload(json string) string { return url.Values{"payload": {json}}.Encode() }

func TestAnAuthorIsANameOfOneLine(t *testing.T) {
	slack := alertstest.NewSlack(t)
	app, _, acts := newSlackApp(t, slack)
	tests := []struct{ user, want string }{
		{`{"id":"U1","username":"ada","name":"a"}`, "ada (Slack)"},
		{`{"id":"U1","name":"grace"}`, "grace (Slack)"},
		{`{"id":"U1","username":"\u0000\u202e"}`, "U1 (Slack)"},
		{`{}`, "somebody (Slack)"},
		{`{"username":"a\nb\u202ec"}`, "a bc (Slack)"},
		{`{"username":"` + strings.Repeat("x", 500) + `"}`, strings.Repeat("x", 79) + "… (Slack)"},
	}
	for n, tt := range tests {
		body := []byte(payload(`{"type":"block_actions","user":` + tt.user + `,"actions":[{"action_id":"rollcall_acknowledge","value":"inc_1"}]}`))
		app.Action(t.Context(), alertstest.SignedHeader(alertstest.SigningSecret, time.Now(), body), body)
		if len(*acts) != n+1 || (*acts)[n].Act.Author != tt.want {
			t.Errorf("author of %s: %+v, want %q", tt.user, *acts, tt.want)
		}
	}
}

// Who knows a signing secret may click, and not make us call what they like.
func TestAnswersGoToSlackOnly(t *testing.T) {
	calls := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer other.Close()
	slack := alertstest.NewSlack(t)
	app, _, acts := newSlackApp(t, slack)
	dialled := ""
	app.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		dialled = r.URL.String()
		return nil, errors.New("no network")
	})}
	tests := []struct {
		address string
		want    bool
	}{
		{"https://hooks.slack.com/actions/T1/1/x", true},
		{slack.Origin() + "/actions/T1/1/x", true},
		{"http://hooks.slack.com/actions/T1/1/x", false},
		{"https://hooks.slack.com:8443/actions/T1/1/x", false},
		{"https://hooks.slack.com.evil.example/actions", false},
		{"https://hooks.slack.com@evil.example/actions", false},
		{"https://evil.example/?https://hooks.slack.com", false},
		{"http://169.254.169.254/latest/meta-data", false},
		{other.URL, false},
		{"file:///etc/passwd", false},
		{"://", false},
		{"", false},
	}
	for n, tt := range tests {
		dialled = ""
		quoted, err := json.Marshal(tt.address)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(payload(`{"type":"block_actions","response_url":` + string(quoted) + `,"actions":[{"action_id":"rollcall_acknowledge","value":"inc_1"}]}`))
		status, _, _ := app.Action(t.Context(), alertstest.SignedHeader(alertstest.SigningSecret, time.Now(), body), body)
		if got := dialled == tt.address && dialled != ""; got != tt.want || status != http.StatusOK || len(*acts) != n+1 {
			t.Errorf("an answer to %q went to %q, want it sent: %t (status %d, %d acts)", tt.address, dialled, tt.want, status, len(*acts))
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func FuzzSlackAction(f *testing.F) {
	f.Add(`{"type":"block_actions","user":{"username":"ada"},"response_url":"https://hooks.slack.com/x","actions":[{"action_id":"rollcall_snooze","value":"inc_1"}]}`, true)
	f.Add(`{"type":"block_actions","actions":[{"action_id":"rollcall_acknowledge","value":"<!channel>"}]}`, true)
	f.Add("payload=%7B%7D&payload=%zz", false)
	f.Fuzz(func(t *testing.T, text string, wrapped bool) {
		if wrapped {
			text = payload(text)
		}
		var got []acted
		app := fuzzedSlackApp()
		app.Act = func(_ context.Context, incident string, act alerts.SlackAct) (string, error) {
			got = append(got, acted{incident, act})
			return act.Author, nil
		}
		app.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme != "https" || r.URL.Host != "hooks.slack.com" {
				t.Errorf("an answer goes to %s", r.URL)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			checkEphemeral(t, body)
			return nil, errors.New("no network")
		})}
		status, _, reply := app.Action(t.Context(), alertstest.SignedHeader(alertstest.SigningSecret, time.Now(), []byte(text)), []byte(text))
		if len(text) <= alerts.MaxSlackBody && status != http.StatusOK || len(reply) != 0 || len(got) > 1 {
			t.Errorf("%d %q after %d acts", status, reply, len(got))
		}
		for _, a := range got {
			if a.Incident == "" || strings.ContainsAny(a.Incident, "/<> ") || !isOneLine(a.Act.Author) || utf8.RuneCountInString(a.Act.Author) > 100 {
				t.Errorf("acted %+v", a)
			}
		}
	})
}

func FuzzSlackCommand(f *testing.F) {
	for _, text := range []string{"status", "status weather", "help", "", "status <!channel> @here", "status \xff\u202e\n", strings.Repeat("&", 5000)} {
		f.Add(text, true)
	}
	f.Add("text=%zz&text=status", false)
	f.Fuzz(func(t *testing.T, text string, wrapped bool) {
		if wrapped {
			text = url.Values{"text": {text}}.Encode()
		}
		app := fuzzedSlackApp()
		app.Status = func(_ context.Context, query string) (string, error) {
			if !isOneLine(query) || utf8.RuneCountInString(query) > 200 {
				t.Errorf("asked for %q", query)
			}
			return query + " is fine", nil
		}
		status, _, reply := app.Command(t.Context(), alertstest.SignedHeader(alertstest.SigningSecret, time.Now(), []byte(text)), []byte(text))
		switch {
		case status == http.StatusOK:
			checkEphemeral(t, reply)
		case len(text) <= alerts.MaxSlackBody || len(reply) > 0:
			t.Errorf("%d %q", status, reply)
		}
	})
}

func fuzzedSlackApp() *alerts.SlackApp {
	return &alerts.SlackApp{Secrets: func(context.Context) ([]string, error) { return []string{alertstest.SigningSecret}, nil }}
}

// checkEphemeral checks that an answer is one for one person, in which nothing is a link or a mention.
func checkEphemeral(t *testing.T, body []byte) {
	t.Helper()
	var in struct {
		ResponseType string `json:"response_type"`
		Text         string `json:"text"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.ResponseType != "ephemeral" || in.Text == "" || utf8.RuneCountInString(in.Text) > 12000 {
		t.Errorf("answer %q: %v", body, err)
	}
	if strings.ContainsAny(in.Text, "<>`*~") || strings.Contains(strings.ReplaceAll(in.Text, "@\u2060", ""), "@") {
		t.Errorf("answer %q is not escaped", in.Text)
	}
}

func isOneLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
