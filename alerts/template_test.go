package alerts_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/store"
)

// kindsOfMessages is what templates, mails and webhooks have to do with.
var kindsOfMessages = []alerts.Kind{
	alerts.KindOpened, alerts.KindUpdated, alerts.KindReminder, alerts.KindEscalation, alerts.KindFlapping, alerts.KindCalmed,
	alerts.KindResolved, alerts.KindDigest, alerts.KindContract, alerts.KindBudget, alerts.KindService, alerts.KindTest,
}

func TestATemplateSaysWhatTheMessageSays(t *testing.T) {
	tests := []struct {
		template string
		kind     alerts.Kind
		want     string
	}{
		{"{{.Symbol}} {{.Title}}", alerts.KindOpened, "🔴 Weather is down"},
		{"{{.Endpoint}} since {{.Since}}{{with .Until}} until {{.}}{{end}}", alerts.KindOpened, "Weather since 2026-11-21T08:00:00.000Z"},
		{"{{range $i, $l := .SeenFrom}}{{if $i}}, {{end}}{{$l}}{{end}}", alerts.KindOpened, "fra, iad"},
		{"{{range .Items}}{{.Title}}\n{{end}}", alerts.KindDigest, "Weather is down\nMaps is down\nSearch is down\n"},
		{`{{if eq .Kind "resolved"}}{{.Outcome}}{{else}}{{.Said}}{{end}}`, alerts.KindResolved, "Recovered after 12 minutes 4 seconds."},
		{`{{printf "%-10s|%3d|%5.1f%%" .Endpoint (len .SeenFrom) 99.5}}`, alerts.KindOpened, "Weather   |  2| 99.5%"},
		{`{"text": {{json .Title}}, "from": {{json .SeenFrom}}, "items": {{json .Changes}}}`, alerts.KindOpened,
			`{"text": "Weather is down", "from": ["fra","iad"], "items": []}`},
		{`{{range 3}}x{{end}}`, alerts.KindTest, "xxx"},
		{`{{range .SeenFrom}}{{if eq . "fra"}}{{continue}}{{end}}{{.}}{{break}}{{end}}`, alerts.KindOpened, "iad"},
		{`{{.Title | html | printf "<b>%s</b>"}}`, alerts.KindOpened, "<b>Weather is down</b>"},
		{"a\r\nb\tc{{printf \"%c%c\" 0 27}}", alerts.KindTest, "a\nb\tc"},
		{`{{slice "né" 0 2}}`, alerts.KindTest, "n?"},
	}
	for _, tt := range tests {
		got, err := alerts.PreviewTemplate(tt.template, tt.kind)
		if err != nil || got != tt.want {
			t.Errorf("%s of a message %q = %q, %v; want %q", tt.template, tt.kind, got, err, tt.want)
		}
	}
}

func TestATemplateGoesForItsChannelAlone(t *testing.T) {
	m := opening()
	if text, ok, err := m.Templated(store.Channel{}); text != "" || ok || err != nil {
		t.Errorf("without a template = %q, %t, %v; want nothing", text, ok, err)
	}
	text, ok, err := m.Templated(templated("{{.Title}}: {{.Said}}"))
	if text != "Weather is down: Internal error: database is locked" || !ok || err != nil {
		t.Errorf("with a template = %q, %t, %v", text, ok, err)
	}
	if text, ok, err := m.Templated(templated("{{index .SeenFrom 9}}")); text != "" || !ok || err == nil {
		t.Errorf("with a template that fails = %q, %t, %v; want an error", text, ok, err)
	}
}

func templated(text string) store.Channel {
	return store.Channel{Settings: map[string]string{"template": text}}
}

func TestATemplateThatDoesNotWorkIsRefusedWithItsLine(t *testing.T) {
	tests := []struct{ name, template, want string }{
		{"nothing", " \n", "the template is empty"},
		{"an action that does not end", "one\n{{.Title", "line 2: unclosed action"},
		{"a field that is not there", "one\ntwo {{.Nope}}", "line 2 at .Nope: there is no field Nope"},
		{"a field of an item", "{{range .Items}}{{.Class}}{{end}}", "line 1 at .Class: there is no field Class"},
		{"a method of the message", "{{.Templated}}", "there is no field Templated"},
		{"a call", "{{call .Title}}", `line 1: function "call" not defined`},
		{"our own step", "{{rollcallStep}}", `line 1: function "rollcallStep" not defined`},
		{"a list that is too short", "{{index .SeenFrom 9}}", "line 1 at index .SeenFrom 9: error calling index: index out of range: 9"},
		{"a definition", `{{define "x"}}{{end}}y`, "define, block and template cannot be used here"},
		{"recursion", `{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`, "define, block and template cannot be used here"},
		{"itself", `{{template "template"}}`, "define, block and template cannot be used here"},
		{"itself in a branch", `{{if .Open}}{{with .Title}}{{template "template"}}{{end}}{{end}}`, "define, block and template cannot be used here"},
		{"a block", `{{block "x" .}}{{end}}`, "define, block and template cannot be used here"},
		{"a loop without an end", `{{range 1000000000000}}{{end}}`, "loops too often"},
		{"loops in loops", `{{range 999}}{{range 999}}{{range 999}}{{end}}{{end}}{{end}}`, "loops too often"},
		{"a loop in an else", `{{range .Items}}{{else}}{{range 1000000000}}{{end}}{{end}}`, "loops too often"},
		{"a loop that goes on", `{{range 1000000000}}{{continue}}{{end}}`, "loops too often"},
		{"a loop that says much", `{{range 1500}}{{$.Title}}{{end}}`, "longer than 8192 bytes"},
		{"a text that doubles", `{{$x := "aa"}}{{range 64}}{{$x = print $x $x}}{{end}}{{len $x}}`, "longer than 8192 bytes"},
		{"a text that doubles by printf", `{{$x := "aa"}}{{range 64}}{{$x = printf "%s%s" $x $x}}{{end}}`, "longer than 8192 bytes"},
		{"a text that html makes longer", `{{$x := "&&&&&&&&"}}{{range 900}}{{$x = html $x}}{{end}}`, "longer than 8192 bytes"},
		{"a wide number", `{{printf "%999999999d" 1}}`, "printf takes no"},
		{"a wide number behind flags", `{{printf "%-+#0999999d" 1}}`, "printf takes no"},
		{"a precise number", `{{printf "%.999999f" 1.0}}`, "printf takes no"},
		{"a width from an argument", `{{printf "%*d" 999999999 1}}`, "printf takes no"},
		{"an argument many times", `{{printf "%[1]s%[1]s" .Text}}`, "printf takes no"},
		{"a format made on the way", `{{$f := print "%" "9999999" "d"}}{{printf $f 1}}`, "printf takes no"},
		{"the whole message as a text", `{{print . .}}`, "functions take texts"},
		{"too long a template", strings.Repeat("x", store.MaxTemplate+1), "longer than 16384 bytes"},
		{"too long a text", strings.Repeat("x", 9000), "longer than 8192 bytes"},
	}
	for _, tt := range tests {
		err := alerts.CheckTemplate(tt.template)
		for range 9 { // a machine that is busy with something else makes any template one that takes too long
			if err == nil || strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "too long: it loops") {
				break
			}
			err = alerts.CheckTemplate(tt.template)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error = %v, want %q in it", tt.name, err, tt.want)
		}
	}
}

func TestATemplateWorksForEveryKindBeforeItIsKept(t *testing.T) {
	if err := alerts.CheckTemplate("{{.Symbol}} {{.Title}}\n{{.Meaning}}\n{{.Link}}"); err != nil {
		t.Errorf("a plain template: %v", err)
	}
	if err := alerts.CheckTemplate(`{{if eq .Kind "digest"}}{{index .Changes 3}}{{end}}ok`); err == nil {
		t.Error("a template that fails on digests was accepted")
	}
	for _, kind := range kindsOfMessages {
		text, err := alerts.PreviewTemplate("{{.Kind}} {{.Title}}", kind)
		if err != nil || !strings.HasPrefix(text, string(kind)+" ") || len(text) < len(kind)+5 {
			t.Errorf("preview of %s = %q, %v", kind, text, err)
		}
	}
	if _, err := alerts.PreviewTemplate("x", "gossip"); err == nil {
		t.Error("a kind that is not there has a preview")
	}
}

// TestATemplateEndsInTime gives as much work as a template can ask for between two steps.
func TestATemplateEndsInTime(t *testing.T) {
	work := `{{$x := .Text}}{{range 2000}}` + strings.Repeat(`{{if eq $x $x $x $x $x $x $x $x}}{{end}}`, 300) + `{{end}}`
	began := time.Now()
	_, err := alerts.PreviewTemplate(work, alerts.KindOpened)
	if took := time.Since(began); err == nil || took > 2*time.Second { // 50 ms and a bit, on a machine that has nothing else to do
		t.Errorf("took %s, error %v; want an end after 50 ms", took, err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"{{.Title}}", `{{range $i, $x := .Items}}{{$i}}{{$x.Said}}{{else}}-{{end}}`, `{{printf "%5.2f %q" 1.5 .Said}}`, "{{range 9}}{{break}}{{end}}",
		`{{$x := ""}}{{range 9}}{{$x = print $x "a"}}{{end}}{{$x}}`, `{{with $x := .Since}}{{slice $x 0 4}}{{end}}`, `{{define "a"}}{{end}}`,
		"{{- /* x */ -}}", `{{json .SeenFrom}}{{js .Said}}{{urlquery .URL}}`, "{{((((1))))}}", "{{1i}}{{'a'}}{{0x1p-2}}", "{{.}}", "{{nil}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []alerts.Kind{alerts.KindOpened, alerts.KindDigest} {
			began := time.Now()
			got, err := alerts.PreviewTemplate(text, kind)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%q took %s", text, took)
			}
			if len(got) > 8<<10 || !utf8.ValidString(got) || err != nil && (got != "" || err.Error() == "" || !utf8.ValidString(err.Error())) {
				t.Errorf("%q = %q, %v", text, got, err)
			}
		}
	})
}
