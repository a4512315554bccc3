package alerts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

// wordsRead are the sayings that are read in every channel, in the order in which they stand in its golden file.
var wordsRead = []string{
	"opened", "opened with others behind it", "opened late", "opened degraded", "opened unknown", "got worse", "got better", "another cause",
	"acknowledged", "snoozed", "comment", "reopened", "reopened because it got worse", "reminder", "escalation", "flapping", "calmed", "resolved",
	"resolved by a pause", "resolved by hand", "resolved with its opening", "digest of the end", "digest", "digest of several kinds", "tools changed",
	"certificate expiring", "certificate renewed", "credential expiring", "credential rejected", "chain lag", "chain halted",
	"chain halted for one more", "chain moves again", "location without network", "objective burning", "objective no longer burning",
	"channel broken", "manual opened", "manual over", "test", "public opened", "public comment", "public resolved", "public digest",
	"question", "question of who is subscribed",
}

// TestWordsInEveryChannel holds what every type of channel is sent for a message against one golden file for the type: the requests as
// they came over the wire, without the channel's secrets. What follows an opening is sent with the opening's ref, as the
// dispatcher does.
func TestWordsInEveryChannel(t *testing.T) {
	said := map[string]alerts.Message{}
	for _, s := range sayings(t) {
		said[s.name] = s.message
	}
	for _, spec := range store.ChannelSpecs() {
		t.Run(string(spec.Type), func(t *testing.T) {
			var file strings.Builder
			for _, name := range wordsRead {
				m, ok := said[name]
				public := strings.HasPrefix(name, "public ") || strings.HasPrefix(name, "question")
				switch {
				case !ok:
					t.Fatalf("there is no saying %q", name)
				case public && !ofThePublic(spec.Type), m.Kind == alerts.KindDigest && pages(spec.Type):
					continue
				case public:
					if m.Incident != "" {
						m.Unsubscribe = publicURL + "/status/unsubscribe?token=t"
					}
				}
				opening := alerts.Message{}
				switch {
				case !follows(name, m):
				case public:
					opening = said["public opened"]
				default:
					opening = said["opened"]
				}
				fmt.Fprintf(&file, "-- %s --\n%s", name, asItGetsThere(t, spec.Type, opening, m))
			}
			golden(t, filepath.Join("testdata", "words", string(spec.Type)+".txtar"), []byte(file.String()))
		})
	}
}

// TestWordsSayInEveryChannelWhatHelps looks for what somebody needs who is woken: in an opening what it is, since when, who sees it, which step
// fails, the error in the server's own words, what it likely means, and where to look; in what follows of what it is, what happened, and the
// error while it lasts.
func TestWordsSayInEveryChannelWhatHelps(t *testing.T) {
	said := map[string]alerts.Message{}
	for _, s := range sayings(t) {
		said[s.name] = s.message
	}
	for _, spec := range store.ChannelSpecs() {
		holds := func(name string, opening alerts.Message, words ...string) {
			t.Helper()
			sent := unescaped(asItGetsThere(t, spec.Type, opening, said[name]))
			for _, word := range append(words, said[name].Endpoint) {
				if !strings.Contains(sent, unescaped(word)) {
					t.Errorf("%s: %s does not say %q:\n%s", spec.Type, name, word, sent)
				}
			}
		}
		for _, name := range []string{"opened", "credential rejected", "chain lag", "chain halted", "certificate expiring"} {
			m := said[name]
			holds(name, alerts.Message{}, m.Title, since(spec.Type), m.SeenFrom[0], m.Step, m.Said, m.Meaning, m.Link)
		}
		for _, name := range []string{"got worse", "another cause", "reminder", "escalation", "flapping", "reopened", "reopened because it got worse"} {
			holds(name, said["opened"], said[name].Update, said[name].Said)
		}
		holds("tools changed", alerts.Message{}, append(said["tools changed"].Changes, said["tools changed"].Title, said["tools changed"].Link)...)
		if spec.Type != store.ChannelPagerDuty { // whose events of an end hold nothing but the key
			holds("resolved", said["opened"], said["resolved"].Lasted)
		}
		if !pages(spec.Type) {
			holds("digest", alerts.Message{}, said["digest"].Title, said["digest"].Items[19].Title, said["digest"].Update, said["digest"].Link)
		}
	}
}

// since is when the sayings began, as a type of channel writes it.
func since(of store.ChannelType) string {
	switch of {
	case store.ChannelSlack, store.ChannelDiscord: // which show it in the reader's own zone
		return fmt.Sprint(epoch.Unix())
	case store.ChannelWebhook:
		return "2026-11-21T08:00:00.000Z"
	}
	return "2026-11-21 08:00:00 UTC"
}

// unescaped takes away what channels put in front of the marks in a text.
func unescaped(text string) string { return strings.NewReplacer(`\`, "", "\u2060", "").Replace(text) }

// ofThePublic reports whether somebody from the public can subscribe with a channel of a type.
func ofThePublic(t store.ChannelType) bool {
	return slices.Contains([]store.ChannelType{store.ChannelEmail, store.ChannelWebhook, store.ChannelSlack}, t)
}

// pages reports whether a type of channel is a service that knows incidents by a key, which never gets a digest.
func pages(t store.ChannelType) bool {
	return t == store.ChannelPagerDuty || t == store.ChannelOpsgenie
}

// follows reports whether a channel that gets m has heard of the incident before.
func follows(name string, m alerts.Message) bool {
	switch {
	case m.Incident == "", m.Kind == alerts.KindEscalation, name == "resolved with its opening":
		return false
	case m.Act == "reopened":
		return true
	}
	return m.Kind != alerts.KindOpened
}

// asItGetsThere returns what a channel of a type is sent for m, after the opening if there is one.
func asItGetsThere(t *testing.T, of store.ChannelType, opening, m alerts.Message) string {
	t.Helper()
	w := newWire(t, of)
	ref := ""
	if opening.Kind != "" {
		opened, err := w.sender.Send(t.Context(), w.channel, "", opening)
		if err != nil {
			t.Fatal(err)
		}
		ref, m.ID = opened.Ref, "ntc_1"
	}
	before := len(w.sent())
	receipt, err := w.sender.Send(t.Context(), w.channel, ref, m)
	if err != nil {
		t.Fatal(err)
	}
	sent := w.sent()[before:]
	if receipt.Passed != (len(sent) == 0) {
		t.Errorf("%q: passed over is %t, with %d requests", m.Title, receipt.Passed, len(sent))
	}
	if len(sent) == 0 {
		return "(nothing is sent)\n"
	}
	return randomID.ReplaceAllString(w.withoutSecrets(strings.Join(sent, "\n")), "msg_…")
}

// randomID matches what a sender calls a message that has no id of its own.
var randomID = regexp.MustCompile(`msg_[A-Z2-7]{26}`)

// wire is a channel with its sender, and what has gone over the wire between that and a local server.
type wire struct {
	sender  alerts.Sender
	channel store.Channel
	sent    func() []string
}

// newWire returns a channel of a type with a server of its own.
func newWire(t *testing.T, of store.ChannelType) wire {
	t.Helper()
	c := client()
	tap := &tap{next: c.Transport}
	c.Transport = tap
	w := wire{sent: func() []string { return tap.requests }}
	switch of {
	case store.ChannelSlack:
		w.sender, w.channel = alerts.NewSlack(c), appChannel(alertstest.NewSlack(t))
	case store.ChannelWebhook:
		w.sender, w.channel = alerts.NewWebhook(c), hookChannel(alertstest.NewReceiver(t))
	case store.ChannelPagerDuty:
		w.sender, w.channel = alerts.NewPagerDuty(c), pagerDutyChannel(alertstest.NewPagerDuty(t))
	case store.ChannelOpsgenie:
		w.sender, w.channel = alerts.NewOpsgenie(c), opsgenieChannel(alertstest.NewOpsgenie(t))
	case store.ChannelDiscord:
		w.sender, w.channel = alerts.NewDiscord(c), discordChannel(alertstest.NewDiscord(t))
	case store.ChannelTeams:
		w.sender, w.channel = alerts.NewTeams(c), teamsChannel(alertstest.NewTeams(t))
	case store.ChannelTelegram:
		w.sender, w.channel = alerts.NewTelegram(c), telegramChannel(alertstest.NewTelegram(t))
	case store.ChannelNtfy:
		w.sender, w.channel = alerts.NewNtfy(c), ntfyChannel(alertstest.NewNtfy(t))
	case store.ChannelMattermost:
		w.sender, w.channel = alerts.NewMattermost(c), mattermostChannel(alertstest.NewMattermost(t))
	case store.ChannelEmail:
		server := alertstest.NewSMTP(t)
		w.sender, w.channel = alerts.NewEmail(mailConfig(server)), mailChannel("ops@example.com")
		w.sent = func() []string { return mails(server) }
	default:
		t.Fatalf("nobody reads what a channel of type %s says", of)
	}
	return w
}

// withoutSecrets puts the name of a secret where the secret stands, and that of an address also where its path does.
func (w wire) withoutSecrets(text string) string {
	for _, name := range slices.Sorted(maps.Keys(w.channel.Secrets)) {
		secret := w.channel.Secrets[name]
		text = strings.ReplaceAll(text, secret, "{"+name+"}")
		if u, err := url.Parse(secret); err == nil && u.Host != "" {
			text = strings.ReplaceAll(text, u.RequestURI(), "/{"+name+"}")
		}
	}
	return text
}

func mails(server *alertstest.SMTP) []string {
	var sent []string
	for _, m := range server.Messages() {
		head := "Subject: " + m.Subject + "\n"
		for _, name := range []string{"Message-Id", "In-Reply-To", "References", "List-Unsubscribe"} {
			if value := m.Header.Get(name); value != "" {
				head += name + ": " + value + "\n"
			}
		}
		parts := head + "\ntext/plain:\n" + m.Text + "\ntext/html:\n" + m.HTML
		sent = append(sent, strings.ReplaceAll(parts, "\r\n", "\n"))
	}
	return sent
}

// tap keeps what is asked through it, as text.
type tap struct {
	next     http.RoundTripper
	requests []string
}

func (p *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	text := r.Method + " " + r.URL.RequestURI() + "\n"
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		text += "Authorization: " + authorization + "\n"
	}
	p.requests = append(p.requests, text+legible(r.Header.Get("Content-Type"), body))
	return p.next.RoundTrip(r)
}

// legible returns a body as a person reads it: indented JSON, and the members of a form one below the other.
func legible(contentType string, body []byte) string {
	if !strings.HasPrefix(contentType, "application/x-www-form-urlencoded") {
		return indented(body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return string(body) + "\n"
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(form)) {
		text.WriteString(name + ": " + indented([]byte(form.Get(name))))
	}
	return text.String()
}

// indented returns JSON with what was escaped for HTML written out, and any other text as it is.
func indented(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text) + "\n"
	}
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(b.String()) + "\n"
}
