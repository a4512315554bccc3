package web

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/rollcallhq/rollcall/store"
)

func TestSentencesAreSaidInTheirLanguage(t *testing.T) {
	spoken := speakAll([]catalogue{
		{Tag: language.English, Sentences: map[string]sentence{
			"%d checks": {forms: map[string]string{"one": "%d check", "other": "%d checks"}},
		}},
		{Tag: language.German, Sentences: map[string]sentence{
			"%d checks":     {forms: map[string]string{"one": "%d Prüfung", "other": "%d Prüfungen"}},
			"%s since %s":   {text: "seit %[2]s %[1]s"},
			"Nothing <b>&%": {text: "Nichts <b>&%"},
		}},
	})
	en, de := spoken[0], spoken[1]
	for _, tt := range []struct{ got, want string }{
		{en.say("%d checks", 1), "1 check"},
		{en.say("%d checks", 12345), "12,345 checks"},
		{en.say("%d checks", new(2)), "2 checks"},
		{de.say("%d checks", 1), "1 Prüfung"},
		{de.say("%d checks", 12345), "12.345 Prüfungen"},
		{de.say("%s since %s", "down", "noon"), "seit noon down"},
		{en.say("%s since %s", "down", "noon"), "down since noon"},
		{de.say("Not translated: %s", "100 %d"), "Not translated: 100 %d"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestALanguageIsChosenByTheReaderOrTheBrowser(t *testing.T) {
	for _, tt := range []struct{ chosen, accepted, want string }{
		{"", "", "en"},
		{"en", "de", "en"},
		{"de", "en", "de"},
		{"", "de", "de"},
		{"", "de-AT,de;q=0.9,en;q=0.8", "de"},
		{"", "fr, en;q=0.5, de;q=0.2", "en"},
		{"xx-none-such", "", "en"},
		{"", "\xff\x00;q=9,,,", "en"},
		{"../../etc", "zh-Hant-TW, en;q=0.1", "en"},
	} {
		if got := ChooseLanguage(tt.chosen, tt.accepted); got != tt.want {
			t.Errorf("ChooseLanguage(%q, %q) = %q, want %q", tt.chosen, tt.accepted, got, tt.want)
		}
	}
}

func TestTimesAndNumbersAreWrittenInTheLanguage(t *testing.T) {
	de := languageOf("de")
	at := time.Date(2026, 3, 2, 15, 4, 5, 0, time.UTC)
	uptime := 99.936
	for _, tt := range []struct{ got, want string }{
		{de.stamp(at), "2. März 2026, 15:04:05 UTC"},
		{de.stamp(time.Time{}), "nie"},
		{de.day(at), "2. März 2026"},
		{de.date(at), "2. März"},
		{de.ago(at, at), "gerade eben"},
		{de.ago(at, at.Add(-3*time.Minute)), "vor 3 Min."},
		{de.ago(at, at.Add(-100*time.Hour)), "vor 4 Tg. 4 Std."},
		{de.ago(at, at.Add(-9*24*time.Hour)), "vor 9 Tagen"},
		{de.until(at, at.Add(9*24*time.Hour)), "in 9 Tagen"},
		{de.lasting(4*time.Minute + 10*time.Second), "4 Min. 10 s"},
		{de.latency(1240 * time.Millisecond), "1,24 s"},
		{de.latency(40 * time.Microsecond), "<0,1 ms"},
		{de.percent(&uptime), "99,93 %"},
		{de.coverage(41.9), "zu 41 % gemessen"},
		{de.size(18440), "18,4 kB"},
		{de.yesNo(true), "ja"},
		{de.tagOf(store.StatusDown).Word, "Ausgefallen"},
		{Say("%s: %s", Slot{Begin: at, Hour: true}.When(), List{Say("%d incidents", 1), Latency(time.Second)}).In("de"), "2. März, 15:04 UTC: 1 Vorfall, 1,00 s"},
		{Say("%s ago", time.Minute).In("de"), "vor 1 Min."},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestASentenceMadeElsewhereIsRecognised(t *testing.T) {
	spoken := speakAll([]catalogue{
		{Tag: language.English, Sentences: map[string]sentence{
			"more than %d tags": {forms: map[string]string{"one": "more than %d tag", "other": "more than %d tags"}},
		}},
		{Tag: language.German, Sentences: map[string]sentence{
			"is required":                            {text: "fehlt"},
			"is longer than %d characters":           {text: "ist länger als %d Zeichen"},
			"is longer than %s":                      {text: "dauert länger als %s"},
			"unknown channel type %.40q: use %s":     {text: "nutzen Sie %[2]s: die Kanalart %[1]s ist unbekannt"},
			"more than %d tags":                      {forms: map[string]string{"one": "mehr als %d Tag", "other": "mehr als %d Tags"}},
			"%s is longer than the %s between two":   {text: "%s ist länger als die %s dazwischen"},
			"%s: %s":                                 {text: "%s – %s"},
			"Wait %s before you try again.":          {text: "Warten Sie %s."},
			"is slower than in %.1f %% of all cases": {text: "ist langsamer als in %.1f %% aller Fälle"},
			"cannot be read: %w":                     {text: "ist nicht lesbar: %s"},
			"must be one of %s":                      {text: "muss eines von %s sein"},
			"or":                                     {text: "oder"},
		}},
	})
	en, de := spoken[0], spoken[1]
	type named string
	long := "is longer than " + strings.Repeat("9", maxRecognised) + " characters"
	for _, tt := range []struct {
		sentence any
		want     string
	}{
		{"is required", "fehlt"},
		{named("is required"), "fehlt"},
		{Say("is required"), "fehlt"},
		{"is longer than 4000 characters", "ist länger als 4000 Zeichen"},
		{"is longer than many characters", "dauert länger als many characters"},
		{`unknown channel type "a \"%d\" b": use email, slack`, `nutzen Sie email, slack: die Kanalart "a \"%d\" b" ist unbekannt`},
		{"more than 1 tag", "mehr als 1 Tag"},
		{"more than 20 tags", "mehr als 20 Tags"},
		{"more than 99999999999999999999 tags", "more than 99999999999999999999 tags"},
		{"1m0s is longer than the 30s between two", "1m0s ist länger als die 30s dazwischen"},
		{"is slower than in 12.5 % of all cases", "ist langsamer als in 12.5 % aller Fälle"},
		{"cannot be read: is required\n%!s(x)", "ist nicht lesbar: is required\n%!s(x)"},
		{"must be one of ws, wss or tcp", "muss eines von ws, wss oder tcp sein"},
		{"must be one of this or that thing", "muss eines von this or that thing sein"},
		{"a: b", "a: b"},
		{"Wait 5m0s before you try again.", "Warten Sie 5m0s."},
		{"%s: %s", "%s: %s"},
		{"", ""},
		{long, long},
		{"what nobody knows", "what nobody knows"},
		{7, "7"},
	} {
		if got := de.words(tt.sentence); got != tt.want {
			t.Errorf("words(%q) = %q, want %q", tt.sentence, got, tt.want)
		}
		if english, ok := tt.sentence.(string); ok && en.words(english) != english {
			t.Errorf("in English, words(%q) = %q", english, en.words(english))
		}
	}
}
