package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
)

func TestMessagesAreReadable(t *testing.T) {
	for name, tt := range map[string]struct {
		body, want string
		json       bool
	}{
		"JSON":            {`{"a":[1,2]}`, "{\n  \"a\": [\n    1,\n    2\n  ]\n}", true},
		"an event stream": {"event: message\ndata: {\"a\":1}\n", "event: message\ndata: {\n  \"a\": 1\n}\n", false},
		"text":            {"Bad Gateway", "Bad Gateway", false},
		"half of JSON":    {`{"a":`, `{"a":`, false},
		"nothing":         {"", "", false},
		"numbers as sent": {`[1e400,0.10]`, "[\n  1e400,\n  0.10\n]", true},
	} {
		if got, json := web.Indented(tt.body); got != tt.want || json != tt.json {
			t.Errorf("%s: got %q, %v", name, got, json)
		}
	}
}

// A few bytes of a server must not become megabytes of spaces.
func TestIndentingIsBounded(t *testing.T) {
	for name, body := range map[string]string{
		"deep":      strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"many":      "[" + strings.Repeat("0,", 400_000) + "0]",
		"many deep": strings.Repeat("[", 40) + strings.Repeat("0,", 100_000) + "0" + strings.Repeat("]", 40),
		"streamed":  strings.Repeat("data: "+strings.Repeat("[", 30)+strings.Repeat("]", 30)+"\n", 3000),
	} {
		if got, _ := web.Indented(body); len(got) > 12<<20 {
			t.Errorf("%s: %d bytes became %d", name, len(body), len(got))
		}
	}
}

func TestAConversationTellsTheTimeBetween(t *testing.T) {
	turns := web.Conversation([]probe.Message{
		{Step: "initialize", Sent: true, At: time.Millisecond, Head: "POST / HTTP/1.1\nHost: a\n\nno header\nX: a: b"},
		{Step: "initialize", At: 31 * time.Millisecond, Head: "HTTP/1.1 200 OK", Body: strings.Repeat("x\n", 100)},
	}, "")
	if turns[1].Gap != 30*time.Millisecond || !turns[1].Folded || turns[0].Folded {
		t.Errorf("got %+v", turns)
	}
	if h := turns[0].Headers; len(h) != 3 || h[1].Name != "" || h[1].Value != "no header" || h[2].Value != "a: b" {
		t.Errorf("headers are %+v", h)
	}
	if got := turns[1].Beginning(); !strings.HasPrefix(got, "x x x") || len(got) > 200 {
		t.Errorf("a folded body begins with %q", got)
	}
}
