package store_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func TestSlugify(t *testing.T) {
	for text, want := range map[string]string{
		"Weather":                 "weather",
		"  Big  Sky -- API 2 ":    "big-sky-api-2",
		"mcp.example:8443":        "mcp-example-8443",
		"größe":                   "gr-e",
		"天気":                      "",
		"---":                     "",
		"":                        "",
		"a/../b":                  "a-b",
		"\x00<script>":            "script",
		strings.Repeat("ab ", 50): strings.Trim(strings.Repeat("ab-", 20), "-"),
	} {
		if got := store.Slugify(text); got != want {
			t.Errorf("Slugify(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzSlugify(f *testing.F) {
	for _, seed := range []string{"Weather", "a--b", "天気 7", "\xff\x00", strings.Repeat("a-", 60)} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^([a-z0-9]+(-[a-z0-9]+)*)?$`)
	f.Fuzz(func(t *testing.T, text string) {
		slug := store.Slugify(text)
		if !form.MatchString(slug) || len(slug) > 60 {
			t.Errorf("Slugify(%q) = %q, which is no slug", text, slug)
		}
		if again := store.Slugify(slug); again != slug {
			t.Errorf("Slugify(%q) = %q: a slug is its own slug", slug, again)
		}
	})
}

func TestSlugBaseAlwaysHasSomething(t *testing.T) {
	for _, test := range []struct{ name, url, want string }{
		{"Weather", "https://a.example", "weather"},
		{"天気", "https://a.example/mcp", "a-example"},
		{"天気", "https://天気", "endpoint"},
	} {
		if got := (store.Endpoint{Name: test.name, URL: test.url}).SlugBase(); got != test.want {
			t.Errorf("SlugBase of %q at %q = %q, want %q", test.name, test.url, got, test.want)
		}
	}
}

func TestNameFromURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://MCP.Example/path?key=s3cret": "mcp.example",
		"http://127.0.0.1:8080/":              "127.0.0.1:8080",
		"http://[::1]:1/":                     "[::1]:1",
		"::":                                  "endpoint",
		"":                                    "endpoint",
		"https://" + strings.Repeat("a", 200): strings.Repeat("a", 96),
	} {
		if got := store.NameFromURL(url); got != want {
			t.Errorf("NameFromURL(%q) = %q, want %q", url, got, want)
		}
	}
}

func TestFirstFree(t *testing.T) {
	taken := map[string]bool{"a": true, "a-2": true, "a-4": true}
	if got := store.FirstFree("a", func(s string) bool { return taken[s] }); got != "a-3" {
		t.Errorf("FirstFree = %q, want a-3", got)
	}
	if got := store.FirstFree("b", func(s string) bool { return taken[s] }); got != "b" {
		t.Errorf("FirstFree = %q, want b", got)
	}
}

func FuzzCleanText(f *testing.F) {
	for _, seed := range []string{"plain", "a\x00b", "\xff", "ä\xe2\x28"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := store.CleanText(text)
		if !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("CleanText(%q) = %q, which no database keeps", text, got)
		}
		if utf8.ValidString(text) && !strings.Contains(text, "\x00") && got != text {
			t.Errorf("CleanText(%q) = %q, want it untouched", text, got)
		}
	})
}

func TestChannelProblemsNameEachChannel(t *testing.T) {
	there := map[string]bool{"ch_a": true, "ch_b": true}
	if err := store.ChannelProblems([]string{"ch_b", "ch_a"}, there); err != nil {
		t.Errorf("ChannelProblems of good channels: %v", err)
	}
	err := store.ChannelProblems([]string{"ch_a", "ch_none", "ch_a"}, there)
	want := `channels[1] there is no channel "ch_none"; channels[2] stands there twice`
	if err == nil || err.Error() != want {
		t.Errorf("ChannelProblems = %v, want %s", err, want)
	}
}

func TestChannelsAreCheckedByType(t *testing.T) {
	webhook := map[string]string{"webhook_url": "https://hooks.example/s3cret"}
	for name, test := range map[string]struct {
		channel store.Channel
		fields  []string
	}{
		"a webhook":   {store.Channel{Name: "ops", Type: store.ChannelSlack, Secrets: webhook}, nil},
		"a bot":       {store.Channel{Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"bot_token": "xoxb"}, Settings: map[string]string{"channel": "#a"}}, nil},
		"neither":     {store.Channel{Name: "ops", Type: store.ChannelSlack}, []string{"webhook_url"}},
		"both":        {store.Channel{Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://a.example", "bot_token": "x"}}, []string{"bot_token"}},
		"odd webhook": {store.Channel{Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "ftp://s3cret"}}, []string{"webhook_url"}},
		"odd token":   {store.Channel{Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"bot_token": "s3cret x"}}, []string{"bot_token", "channel"}},
		"odd type":    {store.Channel{Name: " ", Type: "pigeon"}, []string{"name", "type"}},
	} {
		err := test.channel.Validate()
		if diff := cmp.Diff(fields(err), test.fields); diff != "" {
			t.Errorf("%s: fields of %v (-got +want):\n%s", name, err, diff)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %q repeats a secret", name, err)
		}
	}
}
