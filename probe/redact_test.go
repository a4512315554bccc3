package probe_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
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

// Spellings of a secret that servers use when they repeat it.
var spellings = map[string]func(s string, escape func(i int) bool) string{
	"as it is": func(s string, _ func(int) bool) string { return s },
	"JSON": func(s string, escape func(int) bool) string {
		return spellEach(s, escape, func(r rune) string {
			if r > 0xFFFF {
				a, b := utf16.EncodeRune(r)
				return fmt.Sprintf(`\u%04X\u%04x`, a, b)
			}
			return fmt.Sprintf(`\u%04x`, r)
		})
	},
	"percent signs": func(s string, escape func(int) bool) string {
		return spellEach(s, escape, func(r rune) string { return percent(string(r)) })
	},
	"HTML": func(s string, escape func(int) bool) string {
		return spellEach(s, escape, func(r rune) string { return fmt.Sprintf("&#%d;", r) })
	},
	"HTML with letters": func(s string, escape func(int) bool) string {
		return spellEach(s, escape, func(r rune) string { return fmt.Sprintf("&#x%X;", r) })
	},
	"HTML as Go writes it": func(s string, _ func(int) bool) string { return html.EscapeString(s) },
	"JSON as Go writes it": func(s string, _ func(int) bool) string {
		quoted, _ := json.Marshal(s)
		return string(quoted[1 : len(quoted)-1])
	},
	"JSON in JSON": func(s string, _ func(int) bool) string {
		once, _ := json.Marshal(s)
		twice, _ := json.Marshal(string(once))
		return string(twice[3 : len(twice)-3])
	},
	"a query":        func(s string, _ func(int) bool) string { return url.QueryEscape(s) },
	"a path":         func(s string, _ func(int) bool) string { return url.PathEscape(s) },
	"base64":         func(s string, _ func(int) bool) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 of URLs": func(s string, _ func(int) bool) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
}

// spellEach writes the characters of s that escape selects as write does.
func spellEach(s string, escape func(i int) bool, write func(rune) string) string {
	var b strings.Builder
	for i, r := range s {
		if escape(i) {
			b.WriteString(write(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func withSecret(secret string) *probe.Redactor {
	return probe.NewRedactor(probe.Target{URL: "https://x.example", Headers: []probe.Header{{Name: "X-Some", Value: secret, Secret: true}}})
}

func TestRedactorKnowsEverySpelling(t *testing.T) {
	for _, secret := range []string{`p&s/"w<r'd\1`, "plain-secret-1", "pässwörd-🔑-π", "with some spaces", "50%25off&amp;more"} {
		r := withSecret(secret)
		for name, spell := range spellings {
			for _, escape := range []func(int) bool{func(int) bool { return true }, func(i int) bool { return i%2 == 0 }, func(i int) bool { return i%3 == 1 }} {
				text := "before " + spell(secret, escape) + " after"
				if got := r.Cut(text); got != "before … after" {
					t.Errorf("%s: Cut(%q) is %q", name, text, got)
				}
			}
		}
		inside := base64.StdEncoding.EncodeToString([]byte("user:" + secret + ":more"))
		if got := r.Cut(inside); len(got) > len(inside)-len(secret) {
			t.Errorf("in the middle of base64: Cut(%q) is %q", inside, got)
		}
	}
}

// An authorization server can choose a token, and answer with text, that would take minutes to compare.
func TestRedactorHidesWhatTakesTooLong(t *testing.T) {
	const size = 1 << 18
	for name, tc := range map[string]struct{ secret, text string }{
		"itself again and again": {strings.Repeat("a", 16_000), strings.Repeat("a", size)},
		"but for its end":        {strings.Repeat("a", 16_000) + "b", strings.Repeat("a", size)},
		"in base64":              {strings.Repeat("a", 16_000), strings.Repeat("YWFh", size/4)},
		"escaped":                {strings.Repeat("%", 16_000), strings.Repeat("%25", size/3)},
		"escaped twice":          {strings.Repeat("a", 16_000), strings.Repeat("%2561", size/5)},
	} {
		if got := withSecret(tc.secret).Cut(tc.text); len(got) > 20 {
			t.Errorf("%s: %d bytes of %d are left: %.100s", name, len(got), size, got)
		}
	}
}

func TestRedactorCutsWhatIsClipped(t *testing.T) {
	r := withSecret("very-secret-value-0123456789")
	for text, want := range map[string]string{
		`x very-sec`:                                   "x …",
		`x very-sec… y`:                                "x …… y",
		`x \u0076\u0065\u0072\u0079-`:                  "x …",
		`x \u0076\u0065\u0072\u0079\u00`:               `x …\u00`,
		`x very-secret-value-01 y`:                     "x … y",
		`x %76ery-secret-value%2`:                      "x …%2",
		`x very and more`:                              "x very and more",
		`very-secret-value-0123456789…`:                "……",
		`a very-secret-very-secret-value-0123456789 b`: "a very-secret-… b",
	} {
		if got := r.Cut(text); got != want {
			t.Errorf("Cut(%q)\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestRedactorCutsUserInformation(t *testing.T) {
	r := probe.NewRedactor(probe.Target{URL: "https://x.example"})
	for text, want := range map[string]string{
		"dial postgres://app:hunter2@db.example:5432/x failed": "dial postgres://…@db.example:5432/x failed",
		`{"url":"https:\/\/u:p@x.example\/mcp"}`:               `{"url":"https:\/\/…@x.example\/mcp"}`,
		"https://a@b.example and http://c:d@e.example":         "https://…@b.example and http://…@e.example",
		"https://medium.example/@someone wrote to a@b.example": "https://medium.example/@someone wrote to a@b.example",
		"https://…@x.example":                                  "https://…@x.example",
	} {
		if got := r.Cut(text); got != want {
			t.Errorf("Cut(%q)\n got %q\nwant %q", text, got, want)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	names := slices.Sorted(maps.Keys(spellings))
	for i := range names {
		f.Add(`p&s/"w<r'd\1`, uint8(i), uint64(0xAAAA), "before ", " after")
		f.Add("plain-secret-1", uint8(i), ^uint64(0), `{"a":"%4`, `"} \`)
	}
	f.Fuzz(func(t *testing.T, secret string, which uint8, escape uint64, before, after string) {
		if !utf8.ValidString(secret) || len(secret) < 6 || len(secret) > 200 || strings.Contains(secret, "…") || strings.TrimSpace(secret) != secret {
			return // no secret that a header can hold
		}
		spelling := spellings[names[int(which)%len(names)]](secret, func(i int) bool { return escape>>(i%64)&1 == 1 })
		text := before + spelling + after
		got := withSecret(secret).Cut(text)
		if strings.Contains(got, spelling) && !strings.Contains(spelling, "…") {
			t.Errorf("Cut(%q) is %q and holds %q", text, got, spelling)
		}
		if strings.Contains(got, secret) {
			t.Errorf("Cut(%q) is %q and holds the secret", text, got)
		}
	})
}

// BenchmarkCut measures an answer of 64 KiB that is full of what looks like escapes.
func BenchmarkCut(b *testing.B) {
	r := probe.NewRedactor(probe.Target{
		URL:     "https://x.example/v2/aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW/mcp?token=q%2Fuery-secret",
		Headers: []probe.Header{{Name: "Authorization", Value: "Bearer tok-12345/6789"}, {Name: "X-Api-Key", Value: "another-secret"}},
	})
	for name, piece := range map[string]string{
		"plain":   `{"name": "tool", "description": "does this and that", "n": 12345}, `,
		"escaped": `{\"name\": \"t%20ool\", \"text\": \"a &amp; b \\n\"}, `,
	} {
		text := strings.Repeat(piece, 64<<10/len(piece))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Cut(text)
			}
		})
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
