package web

import (
	"testing"

	"golang.org/x/text/language"
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
		{"xx-none-such", "", "en"},
		{"", "\xff\x00;q=9,,,", "en"},
		{"../../etc", "zh-Hant-TW, en;q=0.1", "en"},
	} {
		if got := ChooseLanguage(tt.chosen, tt.accepted); got != tt.want {
			t.Errorf("ChooseLanguage(%q, %q) = %q, want %q", tt.chosen, tt.accepted, got, tt.want)
		}
	}
}
