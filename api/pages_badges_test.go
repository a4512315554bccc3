package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/api"
)

// maker is a page that makes badges, as a reader finds it.
type maker struct {
	pictures []string          // their addresses
	snippets map[string]string // by id
	chosen   map[string]string // by the name of the field
	text     string
}

func (r *rollcall) maker(slug, query string) maker {
	r.t.Helper()
	page := r.get("/endpoints/"+slug+"/badges?"+query, r.loggedIn()).want(http.StatusOK)
	root, err := html.Parse(strings.NewReader(page.body))
	if err != nil {
		r.t.Fatal(err)
	}
	m := maker{snippets: map[string]string{}, chosen: map[string]string{}, text: page.body}
	attr := func(n *html.Node, name string) (value string, there bool) {
		for _, a := range n.Attr {
			if a.Key == name {
				return a.Val, true
			}
		}
		return "", false
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch id, _ := attr(n, "id"); n.Data {
		case "img":
			if src, _ := attr(n, "src"); strings.HasPrefix(src, "/badge/") {
				m.pictures = append(m.pictures, src)
			}
		case "textarea":
			if n.FirstChild != nil {
				m.snippets[id] = n.FirstChild.Data
			}
		case "option":
			if _, on := attr(n, "selected"); on {
				field, _ := attr(n.Parent, "name")
				value, given := attr(n, "value")
				if !given {
					value = n.FirstChild.Data
				}
				m.chosen[field] = value
			}
		}
	}
	return m
}

func TestABadgeIsMadeOfWhatIsChosen(t *testing.T) {
	r := start(t, func(c *api.Config) { c.PublicURL = "http://up.example" })
	r.register(`{"url": "https://a.example", "name": "a", "public": true, "objectives": [{"name": "fast", "target": 99}, {"name": "steady", "target": 95}]}`)
	for query, want := range map[string]string{
		"":                       "/badge/a/status.svg",
		"kind=uptime":            "/badge/a/uptime.svg",
		"kind=uptime&window=30d": "/badge/a/uptime.svg",
		"kind=latency":           "/badge/a/latency.svg",
		"kind=latency&quantile=p99&window=1h&style=for-the-badge&theme=dark&label=a%26b+c_d": "/badge/a/latency.svg?label=a%26b%20c%5Fd&quantile=p99&style=for-the-badge&theme=dark&window=1h",
		"kind=slo":                           "/badge/a/slo.svg?objective=fast",
		"kind=slo&objective=steady":          "/badge/a/slo.svg?objective=steady",
		"kind=tools&window=1h&quantile=p99":  "/badge/a/tools.svg",
		"kind=nope&style=nope&theme=%00":     "/badge/a/status.svg",
		"label=%22%3E%3Cscript%3E%0d%0a%00x": "/badge/a/status.svg?label=%22%3E%3Cscript%3Ex",
	} {
		m := r.maker("a", query)
		if len(m.pictures) != 2 || m.pictures[0] != want || m.pictures[1] != want {
			t.Errorf("%s: shows %q, want %q", query, m.pictures, want)
		}
		if got := m.snippets["badge-url"]; got != "http://up.example"+want {
			t.Errorf("%s: URL %q", query, got)
		}
		if title := readSVG(t, r.get(want, nobody).want(http.StatusOK).body); strings.Contains(title, "unknown style") || strings.Contains(title, "unknown theme") {
			t.Errorf("%s: the badge says %q", query, title)
		}
		asked, _ := url.ParseQuery(query)
		if kind := asked.Get("kind"); kind != "" && kind != "nope" && m.chosen["kind"] != kind {
			t.Errorf("%s: the form stands at %v", query, m.chosen)
		}
	}
	r.get("/endpoints/absent/badges", r.loggedIn()).want(http.StatusNotFound)
	r.get("/endpoints/a/badges", nobody).want(http.StatusSeeOther)
}

func TestTheMakerSaysThatABadgeStaysGrey(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://a.example", "name": "a"}`)
	const note = `href="/endpoints/a/edit#f-public"`
	if m := r.maker("a", ""); !strings.Contains(m.text, note) || len(m.snippets) != 5 {
		t.Errorf("no word on what is not public, or not every snippet: %v", m.snippets)
	}
	r.ask("PATCH", "/api/v1/endpoints/a", `{"public": true}`).want(http.StatusOK)
	if m := r.maker("a", ""); strings.Contains(m.text, note) {
		t.Error("a public endpoint is said not to be")
	}
}

// A name is anybody's. In no document may it become more than words.
func TestNoNameGetsOutOfItsSnippet(t *testing.T) {
	r := start(t, func(c *api.Config) { c.PublicURL = "http://up.example" })
	for slug, name := range map[string]string{
		"one":   `](javascript:alert(1)) <script>alert(1)</script> [x`,
		"two":   "\"><img src=x onerror=alert(1)> `code` *bold* _it_ \\",
		"three": `a"] link:http://evil.example[x] {include} +++<b>+++ |substitution| $$x$$`,
	} {
		body := `{"url": "https://` + slug + `.example", "slug": "` + slug + `", "public": true, "name": ` + jsonText(name) + `}`
		r.register(body)
		m := r.maker(slug, "kind=uptime&window=7d&label=x")
		picture, link := "http://up.example/badge/"+slug+"/uptime.svg?label=x&window=7d", "http://up.example/status/"+slug

		markdown := m.snippets["badge-markdown"]
		alt, found := strings.CutSuffix(strings.TrimPrefix(markdown, "[!["), "]("+picture+")]("+link+")")
		if plain := strings.NewReplacer(`\\`, "", `\]`, "", `\[`, "", `\<`, "", "\\`", "", `\(`, "").Replace(alt); !found || strings.ContainsAny(plain, "[]<`") {
			t.Errorf("Markdown: %s", markdown)
		}
		root, err := html.Parse(strings.NewReader(m.snippets["badge-html"]))
		if err != nil {
			t.Fatal(err)
		}
		var elements []string
		for n := range root.Descendants() {
			if n.Type == html.ElementNode {
				elements = append(elements, n.Data)
			}
			for _, a := range n.Attr {
				if want := map[string]string{"href": link, "src": picture, "alt": name}[a.Key]; a.Val != want {
					t.Errorf("HTML: %s is %q, want %q", a.Key, a.Val, want)
				}
			}
		}
		if got := strings.Join(elements, " "); got != "html head body a img" {
			t.Errorf("HTML: elements %s of %s", got, m.snippets["badge-html"])
		}
		asciidoc := m.snippets["badge-asciidoc"]
		alt, found = strings.CutSuffix(strings.TrimPrefix(asciidoc, "image:"+picture+`["`), `",link="`+link+`"]`)
		if !found || strings.ContainsAny(alt, "\"[]{}\\+`<>*_|$") {
			t.Errorf("AsciiDoc: %s", asciidoc)
		}
		if want := ".. image:: " + picture + "\n   :alt: " + name + "\n   :target: " + link; m.snippets["badge-rst"] != want {
			t.Errorf("reStructuredText: %s", m.snippets["badge-rst"])
		}
	}
}

func jsonText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
