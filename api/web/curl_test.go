package web_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
)

// nasty are texts that mean something to a shell, a terminal, or curl.
var nasty = []string{
	"", "plain", "it's", `'; rm -rf / #`, "$(id)", "`id`", `a\b`, `\`, `\'`, "!!", "it's!!", "a\nb", "a\r\nb", "\x1b]0;x\x07", "\x03\x04\x15", "tab\there",
	"\u202egnp.exe\u202c", "\u200b", "ünïcödé", "日本", "@/etc/passwd", "-o/tmp/x", "\xff\xfe'", "\u2028", "%s%n", "{a,b}[1-9]", "\x7f", "\u0085", "~", "*", "\ufffd",
	strings.Repeat("'", 50),
}

func TestWhatIsQuotedIsOneWordOfTheShell(t *testing.T) {
	for _, text := range nasty {
		checkQuoted(t, text)
	}
}

func FuzzQuoted(f *testing.F) {
	for _, text := range nasty {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1000 {
			checkQuoted(t, text)
		}
	})
}

func checkQuoted(t *testing.T, text string) {
	t.Helper()
	quoted := web.ShellQuoted(text)
	if i := strings.IndexFunc(quoted, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%q: quoted as %q, which holds what cannot be seen", text, quoted)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf '[%s]' "+quoted).Output()
	if err != nil {
		t.Fatalf("%q: quoted as %q: %v", text, quoted, err)
	}
	if want := "[" + strings.ReplaceAll(text, "\x00", "") + "]"; string(out) != want {
		t.Errorf("%q: quoted as %q, which the shell reads as %q", text, quoted, out)
	}
}

func TestARequestCanBeCopiedAsCurl(t *testing.T) {
	head := "POST /mcp?key=… HTTP/1.1\nHost: mcp.weather.example\nAuthorization: Bearer …\nContent-Type: application/json\nMcp-Session-Id: it's $(id)\nBad Name: x\nContent-Length: 9"
	for name, tt := range map[string]struct {
		message probe.Message
		want    string
	}{
		"a request with secrets, and a session id that a server chose": {
			probe.Message{Sent: true, Head: head, Body: `{"id":"'"}`},
			"curl --globoff --url 'https://mcp.weather.example/mcp?key=YOUR-SECRET' \\\n  -H 'Authorization: Bearer YOUR-SECRET' \\\n" +
				"  -H 'Content-Type: application/json' \\\n  -H 'Mcp-Session-Id: it'\\''s $(id)' \\\n  --data-raw '{\"id\":\"'\\''\"}'",
		},
		"one without a body":           {probe.Message{Sent: true, Head: "DELETE /mcp HTTP/1.1\nHost: a.example"}, "curl --globoff -X 'DELETE' --url 'https://a.example/mcp'"},
		"a GET":                        {probe.Message{Sent: true, Head: "GET / HTTP/1.1\nHost: a.example"}, "curl --globoff --url 'https://a.example/'"},
		"over plain http":              {probe.Message{Sent: true, Head: "GET / HTTP/1.1\nHost: PLAIN.example:80"}, "curl --globoff --url 'http://PLAIN.example:80/'"},
		"an answer":                    {probe.Message{Head: "HTTP/1.1 200 OK\nHost: a.example"}, ""},
		"a body that was clipped":      {probe.Message{Sent: true, Head: head, Body: "{", Clipped: true}, ""},
		"a message of a stream":        {probe.Message{Sent: true, Body: "{}"}, ""},
		"a WebSocket":                  {probe.Message{Sent: true, Head: "GET / HTTP/1.1\nHost: a.example\nUpgrade: websocket"}, ""},
		"without a host":               {probe.Message{Sent: true, Head: "GET / HTTP/1.1"}, ""},
		"a method that is an option":   {probe.Message{Sent: true, Head: "-o/etc/x / HTTP/1.1\nHost: a.example"}, ""},
		"a path that is another place": {probe.Message{Sent: true, Head: "GET @evil.example/ HTTP/1.1\nHost: a.example"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := web.Conversation([]probe.Message{tt.message}, "http://plain.example:80/x")[0].Curl
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
