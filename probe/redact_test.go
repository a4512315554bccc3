package probe_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
)

func TestRedactURL(t *testing.T) {
	for raw, want := range map[string]string{
		"":                            "",
		"https://mcp.example.com/mcp": "https://mcp.example.com/mcp",
		"http://127.0.0.1:8080/":      "http://127.0.0.1:8080/",
		"https://[::1]:8443/a/b":      "https://[::1]:8443/a/b",
		"https://bücher.example/mcp":  "https://bücher.example/mcp",
		"https://api.example/v1/streamable-http/2025-11-25/sse": "https://api.example/v1/streamable-http/2025-11-25/sse",
		"https://mcp.example/oauth/authorize":                   "https://mcp.example/oauth/authorize",
		"https://api.example/getBlockByNumber/web3":             "https://api.example/getBlockByNumber/web3",

		"https://eth-mainnet.g.example/v2/aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW":           "https://eth-mainnet.g.example/v2/…",
		"https://mainnet.example/v3/0123456789abcdef0123456789abcdef/x":               "https://mainnet.example/v3/…/x",
		"https://x.example/550e8400-e29b-41d4-a716-446655440000/mcp":                  "https://x.example/…/mcp",
		"https://hooks.example/services/T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx": "https://hooks.example/services/…/…/…",
		"https://x.example/bot123456789:AAF-abcdefghijklmnop_q/sendMessage":           "https://x.example/…/sendMessage",
		"https://x.example/key/hunter2/mcp":                                           "https://x.example/key/…/mcp",
		"https://x.example/%61B3dE5fG7hI9jK1lM3nO5pQ7r":                               "https://x.example/…",

		"https://user:pass@x.example/mcp":               "https://…@x.example/mcp",
		"https://token@x.example":                       "https://…@x.example",
		"https://x.example/mcp?version=2&chain=mainnet": "https://x.example/mcp?version=2&chain=mainnet",
		"https://x.example/mcp?apikey=short":            "https://x.example/mcp?apikey=…",
		"https://x.example/mcp?api_key=a&x=1":           "https://x.example/mcp?api_key=…&x=1",
		"https://x.example/mcp?access_token=a%20b":      "https://x.example/mcp?access_token=…",
		"https://x.example/mcp?q=some+long+words+here":  "https://x.example/mcp?q=…",
		"https://x.example/?0123456789abcdef0123":       "https://x.example/?…",
		"https://x.example/?0123456789abcdef0123=1":     "https://x.example/?…=…",
		"https://x.example/mcp#access_token=secret":     "https://x.example/mcp",
		"https://x.example?key=abc#f":                   "https://x.example?key=…",

		"mailto:a@b.example":       "…",
		"not a url":                "…",
		"https://a b/c":            "https://…/c",
		"https://x.example/\xff/a": "https://x.example/…/a",
	} {
		if got := probe.RedactURL(raw); got != want {
			t.Errorf("RedactURL(%q)\n got %q\nwant %q", raw, got, want)
		}
	}
}

func FuzzRedactURL(f *testing.F) {
	f.Add("https://user:pass@x.example/v3/0123456789abcdef0123456789abcdef?key=abc&x#y")
	f.Add("http://[::1]:80/%2F%61?&&=&a==b")
	f.Add("https://…@…/…?…=…")
	f.Fuzz(func(t *testing.T, raw string) {
		once := probe.RedactURL(raw)
		if twice := probe.RedactURL(once); twice != once {
			t.Errorf("%q: redacted once %q, twice %q", raw, once, twice)
		}
		if !utf8.ValidString(once) || strings.Contains(once, "#") {
			t.Errorf("%q: redacted to %q", raw, once)
		}
		const key = "sk0live1a2b3c4d5e6f7g8h"
		for _, with := range []string{"https://" + key + "@h/" + raw, "https://h/p?token=" + key + "&" + raw, "https://h/" + key + "/" + raw} {
			if got := probe.RedactURL(with); strings.Contains(got, key) && !strings.Contains(raw, key) {
				t.Errorf("%q: redacted to %q", with, got)
			}
		}
	})
}

func TestRedactor(t *testing.T) {
	target := probe.Target{
		URL: "https://x.example/v2/aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW/mcp?token=q%2Fuery-secret",
		Headers: []probe.Header{
			{Name: "Authorization", Value: "Bearer tok-12345/6789"},
			{Name: "authorization", Value: "Basic dXNlcjpodW50ZXIyMg=="}, // user:hunter22
			{Name: "Cookie", Value: "session=cookie-value; theme=dark-mode"},
			{Name: "X-Tenant", Value: "tenant \"seven\"", Secret: true},
			{Name: "X-Pin", Value: "42", Secret: true},
			{Name: "X-Api-Key", Value: "by-its-name"},
			{Name: "X-Team", Value: "not secret"},
		},
	}
	r := probe.NewRedactor(target)
	for text, want := range map[string]string{
		"bad token tok-12345/6789!":                    "bad token …!",
		"header was Bearer tok-12345/6789":             "header was …",
		`{"got":"tok-12345\/6789"}`:                    `{"got":"…"}`,
		"escaped tok-12345%2F6789":                     "escaped …",
		"user:hunter22 or hunter22 alone":              "… or … alone",
		"dXNlcjpodW50ZXIyMg==":                         "…",
		"your cookie-value is old":                     "your … is old",
		`tenant "seven" and "tenant \"seven\""`:        `… and "…"`,
		"pin 42, not 1420 or a42b; 42":                 "pin …, not 1420 or a42b; …",
		"key by-its-name of team not secret":           "key … of team not secret",
		"GET /v2/aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW/mcp": "GET /v2/…/mcp",
		"token=q%2Fuery-secret token=q/uery-secret":    "token=… token=…",
		"nothing to see":                               "nothing to see",
	} {
		if got := r.Cut(text); got != want {
			t.Errorf("Cut(%q)\n got %q\nwant %q", text, got, want)
		}
	}
	if got := (*probe.Redactor)(nil).Cut("a"); got != "a" {
		t.Errorf("the nil Redactor cuts %q", got)
	}
}

func TestTidy(t *testing.T) {
	for in, want := range map[string]string{
		" two\r\n\tlines ":           "two lines",
		"\x1b[31mred\x00":            "[31mred",
		"a\u202Eb\u200Bc":            "abc",
		"bad \xff byte":              "bad � byte",
		strings.Repeat("x", 100):     strings.Repeat("x", 17) + "…",
		strings.Repeat("é", 100):     strings.Repeat("é", 8) + "…",
		strings.Repeat("\x00", 5000): "",
	} {
		if got := probe.Tidy(in, 20); got != want {
			t.Errorf("Tidy(%.40q) is %q, want %q", in, got, want)
		}
	}
}
