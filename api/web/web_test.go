package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

func TestEveryPageRenders(t *testing.T) {
	for name, page := range samples() {
		t.Run(name, func(t *testing.T) {
			body := render(t, page)
			if !strings.HasPrefix(body, "<!doctype html>") || !strings.Contains(body, "</html>") {
				t.Errorf("page is not a whole document:\n%s", body)
			}
			if strings.Contains(body, "ZgotmplZ") {
				t.Error("a value was refused by the template's escaping")
			}
			if n := strings.Count(body, "<h1"); n != 1 {
				t.Errorf("page has %d h1 elements, want one", n)
			}
		})
	}
}

// hostile are values a monitored server or a user may put into any text.
var hostile = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	`' onmouseover='alert(1)`,
	`</title></textarea></style><script>alert(1)</script>`,
	`javascript:alert(1)`,
	`{{.}} {{template "layout"}}`,
	"\u202eevil\u202c \u0000 \ufeff \xff\xfe",
	strings.Repeat("ǅ̈́", 600),
}

func TestHostileTextStaysText(t *testing.T) {
	for name, page := range samples() {
		want := skeleton(t, render(t, filled(page, "plain")))
		for i, text := range hostile {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				got := skeleton(t, render(t, filled(page, text)))
				if got != want {
					t.Errorf("text %q changed the structure of the page", clip(text))
				}
			})
		}
	}
}

func TestTheHeadingSaysHowThingsStand(t *testing.T) {
	const up, down, gated, pending, paused = store.StatusUp, store.StatusDown, store.StatusGated, store.StatusPending, store.StatusPaused
	type tallies = map[store.Status]int
	for want, page := range map[string]web.OverviewPage{
		"Nothing is watched yet":            {None: true},
		"Endpoints":                         {Filter: web.OverviewFilter{Tag: "prod"}, Tallies: tallies{down: 1}},
		"Endpoints, page 2":                 {Page: 2, Tallies: tallies{up: 1}},
		"1 endpoint is down":                {Tallies: tallies{down: 1}},
		"2 endpoints are down":              {Tallies: tallies{down: 2}},
		"1 down, 1 more needs attention":    {Tallies: tallies{down: 1, gated: 1}},
		"Nothing is down, 2 need attention": {Tallies: tallies{gated: 2, up: 1}},
		"Everything answers":                {Tallies: tallies{up: 1, paused: 1}},
		"Everything answers so far":         {Tallies: tallies{up: 1, pending: 1}},
		"Waiting for the first checks":      {Tallies: tallies{pending: 1}},
		"Everything is paused":              {Tallies: tallies{paused: 1}},
	} {
		if got := page.Heading().String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOnlyTheStepThatDecidedIsShownAsDown(t *testing.T) {
	tones := map[string]string{}
	for n := range elements(t, render(t, samples()["check"])) {
		if class, ok := strings.CutPrefix(attr(n, "class"), "class is-"); ok && n.LastChild.FirstChild != nil {
			tones[n.LastChild.FirstChild.Data] = class
		}
	}
	if tones["-32603"] != "down" || tones["404"] != "pending" {
		t.Errorf("the codes of the failed steps are shown in the tones %v", tones)
	}
}

func TestOneToolIsATool(t *testing.T) {
	for number, want := range map[int]string{0: ", 0 tools.", 1: ", 1 tool.", 13: ", 13 tools."} {
		page := formGood()
		page.Test.Facts.Tools = &number
		if got := render(t, page); !strings.Contains(got, want) {
			t.Errorf("%d: the test does not say %q", number, want)
		}
	}
}

// The name is public with the endpoint, and the name is the host unless somebody gives another.
func TestTheFormWarnsThatAHostMayBecomePublic(t *testing.T) {
	for name, page := range map[string]web.FormPage{"registering": form(), "editing": formEdit()} {
		if got := render(t, page); !strings.Contains(got, `aria-describedby="w-public"`) || !strings.Contains(got, "it is named after its host, which everybody sees then") {
			t.Errorf("%s: no word on what becomes public", name)
		}
	}
}

func TestTheFormOfACommandHasNothingThatGoesWithAURLOnly(t *testing.T) {
	got := render(t, formCommand())
	for _, text := range []string{`id="f-headers"`, `id="f-tls"`, `id="f-oauth"`, "its host", "its URL"} {
		if strings.Contains(got, text) {
			t.Errorf("the form has %s", text)
		}
	}
	if !strings.Contains(got, "it is named after its program") {
		t.Error("no word on what becomes public")
	}
}

func TestANameStandsWhereTheLanguagePutsIt(t *testing.T) {
	for tag, want := range map[string]string{
		"en": "<h1>Edit <bdi>Weather</bdi></h1>",
		"de": "<h1><bdi>Weather</bdi> bearbeiten</h1>",
	} {
		page := formEdit()
		page.Language = tag
		if got := render(t, page); !strings.Contains(got, want) {
			t.Errorf("%s: the form has no %q", tag, want)
		}
	}
}

func TestAMistakeNamesTheFieldAsTheFormDoes(t *testing.T) {
	for field, want := range map[string]string{
		"timeout":                   "Timeout",
		"tags[3]":                   "Tags",
		"headers[0]":                "Header 1",
		"headers[1].name":           "Header 2 name",
		"escalation[2].channels[1]": "Escalation step 3 channels",
		"objectives[0].target":      "Objective 1 target",
		"objectives[x].target":      "Objective x target",
		"headers[0].%d":             "headers[0].%d",
		"nobody.knows":              "nobody.knows",
	} {
		if got := web.Problems(nil).Label(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}

func TestAContractSaysUnderWhatItWasSeen(t *testing.T) {
	for key, want := range map[string]string{
		"":                    "",
		"modern/public":       "modern era, without credentials",
		"legacy/9f86d081884c": "legacy era, with credentials 9f86d081884c",
	} {
		if got := (web.Contract{Key: key}).Under().String(); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

func TestPagesKeepToThePolicy(t *testing.T) {
	for name, page := range samples() {
		t.Run(name, func(t *testing.T) {
			for n := range elements(t, render(t, page)) {
				for _, a := range n.Attr {
					if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
						t.Errorf("<%s %s=%q>: inline styles and handlers are refused by the policy", n.Data, a.Key, a.Val)
					}
					if (a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") {
						t.Errorf("<%s %s=%q>: leads out of the service", n.Data, a.Key, a.Val)
					}
				}
				if n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
					t.Errorf("<%s> with text: refused by the policy", n.Data)
				}
			}
		})
	}
}

func TestEveryPageHasAnIcon(t *testing.T) {
	for name, page := range samples() {
		var icons []string
		for n := range elements(t, render(t, page)) {
			if n.Data == "link" && attr(n, "rel") == "icon" && inside(n, "head") {
				icons = append(icons, attr(n, "href"))
			}
		}
		if len(icons) != 2 {
			t.Errorf("%s: the icons are %q, want one for every browser and one that is sharp at every size", name, icons)
		}
		for _, icon := range icons {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, icon, nil)
			if !web.ServeStatic(w, r, strings.TrimPrefix(r.URL.Path, "/static/")) || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %s is not there, or not the one of this version", name, icon)
			}
		}
	}
}

func TestEveryControlHasALabelAndEveryIDIsUnique(t *testing.T) {
	for name, page := range samples() {
		t.Run(name, func(t *testing.T) {
			ids, labelled := map[string]bool{}, map[string]bool{}
			var controls []*html.Node
			for n := range elements(t, render(t, page)) {
				if id := attr(n, "id"); id != "" {
					if ids[id] {
						t.Errorf("id %q stands there twice", id)
					}
					ids[id] = true
				}
				switch n.Data {
				case "label":
					labelled[attr(n, "for")] = true
				case "input", "select", "textarea":
					if attr(n, "type") != "hidden" && !inside(n, "label") {
						controls = append(controls, n)
					}
				}
			}
			for _, n := range controls {
				if !labelled[attr(n, "id")] {
					t.Errorf("<%s name=%q> has no label", n.Data, attr(n, "name"))
				}
			}
			for n := range elements(t, render(t, page)) {
				for _, key := range []string{"aria-describedby", "aria-labelledby", "for"} {
					if ref := attr(n, key); ref != "" && !ids[ref] {
						t.Errorf("<%s %s=%q> refers to nothing", n.Data, key, ref)
					}
				}
			}
		})
	}
}

func TestEveryMistakeLeadsToItsField(t *testing.T) {
	page := samples()["form-mistakes"]
	ids := map[string]bool{}
	var links []string
	for n := range elements(t, render(t, page)) {
		ids[attr(n, "id")] = true
		if href := attr(n, "href"); n.Data == "a" && strings.HasPrefix(href, "#f-") {
			links = append(links, strings.TrimPrefix(href, "#"))
		}
	}
	if want := len(page.(web.FormPage).Problems); len(links) != want {
		t.Errorf("%d mistakes are linked, want %d", len(links), want)
	}
	for _, id := range links {
		if !ids[id] {
			t.Errorf("link to #%s leads nowhere", id)
		}
	}
}

func TestSecretsAreShownInPasswordFieldsOnly(t *testing.T) {
	for name, page := range samples() {
		t.Run(name, func(t *testing.T) {
			for n := range elements(t, render(t, page)) {
				for _, a := range n.Attr {
					if strings.Contains(a.Val, "s3cret") && attr(n, "type") != "password" {
						t.Errorf("<%s %s=%q> shows a secret", n.Data, a.Key, a.Val)
					}
				}
				if c := n.FirstChild; c != nil && c.Type == html.TextNode && strings.Contains(c.Data, "s3cret") {
					t.Errorf("<%s> shows a secret", n.Data)
				}
			}
		})
	}
}

func TestRenderWritesNothingWhenItCannot(t *testing.T) {
	var w failing
	err := web.Render(&w, samples()["overview"])
	if !errors.Is(err, errGone) {
		t.Errorf("got error %v, want %v", err, errGone)
	}
}

func TestStaticFilesAreServed(t *testing.T) {
	for name, kind := range map[string]string{"app.css": "text/css", "app.js": "text/javascript", "logo.svg": "image/svg+xml"} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			if !web.ServeStatic(w, httptest.NewRequest(http.MethodGet, "/static/"+name, nil), name) {
				t.Fatalf("there is no static file %s", name)
			}
			if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, kind) {
				t.Errorf("got content type %q, want %q", got, kind)
			}
			if w.Body.Len() == 0 {
				t.Error("the file is empty")
			}
			r := httptest.NewRequest(http.MethodGet, "/static/"+name, nil)
			r.Header.Set("If-None-Match", w.Header().Get("Etag"))
			again := httptest.NewRecorder()
			web.ServeStatic(again, r, name)
			if again.Code != http.StatusNotModified {
				t.Errorf("asked again with its ETag: got status %d, want 304", again.Code)
			}
		})
	}
}

func TestUnknownStaticFileIsNotServed(t *testing.T) {
	for _, name := range []string{"", "nothing.js", "../web.go", "templates/layout.html"} {
		w := httptest.NewRecorder()
		if web.ServeStatic(w, httptest.NewRequest(http.MethodGet, "/static/x", nil), name) {
			t.Errorf("%q was served", name)
		}
	}
}

// TestStaticFilesHoldNoAddress keeps the pages free of other people's servers.
func TestStaticFilesHoldNoAddress(t *testing.T) {
	for _, name := range []string{"app.css", "app.js", "times.js", "words.js", "copy.js", "refresh.js"} {
		w := httptest.NewRecorder()
		web.ServeStatic(w, httptest.NewRequest(http.MethodGet, "/static/"+name, nil), name)
		if body := w.Body.String(); body == "" || strings.Contains(body, "://") {
			t.Errorf("%s is empty or names another server", name)
		}
	}
}

func render(t *testing.T, page web.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := web.Render(&b, page); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// filled returns a copy of page with text in place of every plain text in it.
func filled(page web.Page, text string) web.Page {
	v := reflect.New(reflect.TypeOf(page)).Elem()
	v.Set(deepCopy(reflect.ValueOf(page), text))
	return v.Interface().(web.Page)
}

// deepCopy keeps values of types with a closed list of values (statuses, verdicts), which pages choose shapes by.
func deepCopy(v reflect.Value, text string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		out.Set(v)
	case v.Kind() == reflect.String && closed[v.Type().Name()]:
		out.Set(v)
	case v.Kind() == reflect.String && v.String() != "":
		out.SetString(text)
	case v.Kind() == reflect.Struct:
		out.Set(v) // with what pages cannot see
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(deepCopy(v.Field(i), text))
			}
		}
	case v.Kind() == reflect.Slice && !v.IsNil():
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i), text))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(deepCopy(v.Elem(), text))
	default:
		out.Set(v)
	}
	return out
}

var closed = map[string]bool{"Status": true, "Verdict": true, "Kind": true, "Resolution": true,
	"IncidentKind": true, "EntryKind": true}

// skeleton is the structure of a page: its elements and the names of their attributes, without any text.
func skeleton(t *testing.T, body string) string {
	t.Helper()
	var b strings.Builder
	for n := range elements(t, body) {
		b.WriteString(n.Data)
		for _, a := range n.Attr {
			b.WriteString(" " + a.Key)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func elements(t *testing.T, body string) func(yield func(*html.Node) bool) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*html.Node) bool) {
		for n := range root.Descendants() {
			if n.Type == html.ElementNode && !yield(n) {
				return
			}
		}
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func inside(n *html.Node, name string) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Data == name {
			return true
		}
	}
	return false
}

func clip(s string) string { return s[:min(len(s), 40)] }

var errGone = errors.New("reader is gone")

type failing struct{}

func (*failing) Write([]byte) (int, error) { return 0, errGone }
