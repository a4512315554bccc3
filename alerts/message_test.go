package alerts_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

const publicURL = "https://rollcall.example/monitor"

// TestWords holds every message against a golden file: as plain text, and as what Slack is sent.
func TestWords(t *testing.T) {
	var (
		endpoint = weather()
		open     = outage()
		over     = ended(open, 12*time.Minute+4*time.Second, store.ResolutionRecovered)
		paused   = ended(open, 50*time.Hour, store.ResolutionPaused)
		silent   = outage()
		hostile  = outage()
		rude     = weather()
	)
	silent.Cause = probe.Failure{Step: "initialize", Class: probe.ClassTimeout}
	hostile.Cause.Message = "<!channel> @channel @here <https://evil.example|click> ``` & *bold*\n\r\x00\u202Etxt.exe https://evil.example " +
		strings.Repeat("é<&>`", 100) + "\xff"
	rude.Name = "*<!here>* `a` ~b~ & @everyone"
	rude.URL = "https://example.com/a|b/`x`?token=hunter2"

	changed := event(t, "The tool list changed (1 breaking, 1 to look at, 1 harmless)", 0,
		probe.Change{Rank: probe.RankBreaking, Kind: "tool_removed", Tool: "forecast", Message: "the tool is gone"},
		probe.Change{Rank: probe.RankWarning, Kind: "annotations_changed", Tool: "alerts", Message: "it may do harm that said it would not"},
		probe.Change{Rank: probe.RankInfo, Kind: "optional_added", Tool: "alerts", Path: "/inputSchema/properties/region", Message: "an argument that may be given"})
	flood := make([]probe.Change, 20)
	for i := range flood {
		flood[i] = probe.Change{Rank: probe.RankBreaking, Tool: "<!channel> @here `x`\n\u202E", Path: strings.Repeat("&", 600), Message: hostile.Cause.Message}
	}
	overrun := event(t, "The tool list changed", 181, flood...)

	offline := locationEvent(store.EventLocationOffline, `{"location": "fra", "since": "2026-11-21T12:03:20Z", "until": null, "endpoints": 120}`)
	online := locationEvent(store.EventLocationOnline, `{"location": "fra", "since": "2026-11-21T12:03:20Z", "until": "2026-11-21T12:41:50Z", "endpoints": 1}`)
	strange := locationEvent(store.EventLocationOffline, `{"location": "<!channel> *fra* @here", "since": "2026-11-21T12:03:20Z", "until": null, "endpoints": 0}`)
	bare := locationEvent(store.EventLocationOffline, `[]`)

	tests := []struct {
		name    string
		message alerts.Message
	}{
		{"opened", alerts.NewMessage(open, endpoint, store.NoticeOpened, publicURL)},
		{"opened without words of the server and without links", alerts.NewMessage(silent, endpoint, store.NoticeOpened, "")},
		{"opened late", alerts.NewMessage(over, endpoint, store.NoticeOpened, publicURL)},
		{"opened by a hostile server", alerts.NewMessage(hostile, rude, store.NoticeOpened, publicURL)},
		{"resolved", alerts.NewMessage(over, endpoint, store.NoticeResolved, publicURL)},
		{"resolved by a pause", alerts.NewMessage(paused, endpoint, store.NoticeResolved, publicURL)},
		{"tools changed", alerts.NewEventMessage(changed, endpoint, publicURL)},
		{"tools changed by a hostile server", alerts.NewEventMessage(overrun, rude, "")},
		{"location offline", alerts.NewEventMessage(offline, store.Endpoint{}, publicURL)},
		{"location online again", alerts.NewEventMessage(online, store.Endpoint{}, publicURL)},
		{"location with a strange name offline", alerts.NewEventMessage(strange, store.Endpoint{}, "")},
		{"location event without data", alerts.NewEventMessage(bare, store.Endpoint{}, publicURL)},
		{"test", alerts.NewTestMessage(store.Channel{Name: "ops"}, publicURL)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join("testdata", strings.ReplaceAll(tt.name, " ", "_"))
			golden(t, name+".txt", []byte(tt.message.Text()+"\n"))
			golden(t, name+".slack.json", asSlackGetsIt(t, tt.message))
		})
	}
}

// locationEvent returns an event about one of our locations.
func locationEvent(kind store.EventKind, data string) store.Event {
	return store.Event{
		ID: "evt_1", At: time.Date(2026, time.November, 21, 12, 4, 0, 0, time.UTC), Kind: kind, Severity: "warning",
		Title: "A location lost its network", Data: json.RawMessage(data),
	}
}

// event returns a change of the tool list.
func event(t *testing.T, title string, more int, changes ...probe.Change) store.Event {
	t.Helper()
	data, err := json.Marshal(store.ContractChanged{ContractID: "con_1", Key: "modern", Hash: "sha256:1", Changes: changes, More: more})
	if err != nil {
		t.Fatal(err)
	}
	return store.Event{Kind: store.EventContractChanged, Severity: string(changes[0].Rank), Title: title, Data: data}
}

// asSlackGetsIt returns text and blocks of a message as they came over the wire.
func asSlackGetsIt(t *testing.T, m alerts.Message) []byte {
	t.Helper()
	slack := alertstest.NewSlack(t)
	channel := store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": slack.WebhookURL()}}
	if _, err := newSlack().Send(t.Context(), channel, "", m); err != nil {
		t.Fatal(err)
	}
	sent := slack.Messages()[0]
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{"text": sent.Text, "blocks": json.RawMessage(sent.Blocks)}); err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(b.String()))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("%s (-got +want):\n%s", name, diff)
	}
}

func TestHostileWordsStayWords(t *testing.T) {
	i := outage()
	for _, evil := range []string{
		"<!channel>", "<!here|here>", "<@U012345>", "<https://evil.example|log in>", "```\n*free*", "@channel", "@everyone",
		"line\nbreak\u2028\u2029\x1b[31m", "\u202Ereversed\u2066", "\xff\xfe", strings.Repeat("&", 5000), strings.Repeat("\u200b", 5000),
	} {
		i.Cause = probe.Failure{Step: evil, Class: probe.Class(evil), Code: 1, Message: evil}
		e := weather()
		e.Name, e.URL = evil, "https://example.com/"+evil

		m := alerts.NewMessage(i, e, store.NoticeOpened, publicURL)
		sent := asSlackGetsIt(t, m) // which refuses what breaks Slack's limits
		for _, bad := range []string{"<!channel", "<!here", "<@U", "<https://evil", "@channel", "@everyone", "````", "*free*\n", `\u2028`, `\u001b`, "\u202e", "\u2066"} {
			if bytes.Contains(sent, []byte(bad)) {
				t.Errorf("%.20q reached Slack as %q:\n%s", evil, bad, sent)
			}
		}
		if text := m.Text(); !utf8.ValidString(text) || len(text) > 20000 {
			t.Errorf("%.20q became a text of %d bytes, valid: %t", evil, len(text), utf8.ValidString(text))
		}
	}
}

func TestAnOutageLastsInWords(t *testing.T) {
	tests := []struct {
		lasted time.Duration
		want   string
	}{
		{0, "less than a second"},
		{400 * time.Millisecond, "less than a second"},
		{time.Second, "1 second"},
		{59*time.Second + 400*time.Millisecond, "59 seconds"},
		{59*time.Second + 600*time.Millisecond, "1 minute"},
		{12*time.Minute + 4*time.Second, "12 minutes 4 seconds"},
		{time.Hour + 3*time.Second, "1 hour"},
		{2*time.Hour + time.Minute + 59*time.Second, "2 hours 1 minute"},
		{25 * time.Hour, "1 day 1 hour"},
		{90 * 24 * time.Hour, "90 days"},
	}
	for _, tt := range tests {
		m := alerts.NewMessage(ended(outage(), tt.lasted, store.ResolutionRecovered), weather(), store.NoticeResolved, "")
		if m.Lasted != tt.want {
			t.Errorf("%s lasted %q, want %q", tt.lasted, m.Lasted, tt.want)
		}
	}
}

// TestEveryClassThatMeansDownHasAMeaning reads the closed list of classes from its source, so that one which is added
// there cannot be forgotten here.
func TestEveryClassThatMeansDownHasAMeaning(t *testing.T) {
	downs := 0
	for _, class := range classes(t) {
		if class.Verdict() != probe.Down {
			continue
		}
		downs++
		i := outage()
		i.Cause.Class = class
		got := alerts.NewMessage(i, weather(), store.NoticeOpened, "").Meaning
		if !strings.HasSuffix(got, ".") || strings.Count(got, ". ") > 0 {
			t.Errorf("meaning of %s = %q, want one sentence", class, got)
		}
	}
	if downs < 10 {
		t.Errorf("found %d classes that mean down in package probe, want at least 10", downs)
	}
}

func classes(t *testing.T) []probe.Class {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../probe/class.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []probe.Class
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || fmt.Sprint(spec.Type) != "Class" {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			found = append(found, probe.Class(strings.Trim(literal.Value, `"`)))
		}
		return true
	})
	return found
}

func weather() store.Endpoint {
	e := store.NewEndpoint()
	e.ID, e.Slug, e.Name, e.URL = "ep_1", "weather", "Weather", "https://weather.example/mcp?api_key=hunter2"
	return e
}

func outage() store.Incident {
	return store.Incident{
		ID: "inc_1", EndpointID: "ep_1", Slug: "weather", Severity: store.StatusDown,
		StartedAt: epoch, OpenedAt: epoch.Add(6 * time.Second),
		Cause: probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error: database is locked"},
	}
}

func ended(i store.Incident, after time.Duration, how store.Resolution) store.Incident {
	at := i.StartedAt.Add(after)
	i.ResolvedAt, i.Resolution = &at, how
	return i
}
