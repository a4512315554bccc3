package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestEveryPage goes to every page that a link leads to, of a service that is full of texts from people who mean harm, and holds
// each against what all must be: nothing of level A or AA of WCAG 2.2 is found in it, in light and in dark; it fits a phone; no
// text of a stranger becomes an element or runs; and the console stays silent, so that the policy keeps nothing of ours away.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	axe := readFile(t, filepath.Join(".ci", "pages", "node_modules", "axe-core", "axe.min.js"))
	browser := startBrowser(t)
	s := newShowcase(t)
	t.Run("of the team", func(t *testing.T) {
		p := newPerson(browser, t, s.url)
		p.logIn()
		w := walk{person: p, axe: axe}
		w.from("/", "/status")
		w.passed("/endpoints/:slug", "/incidents/:id", "/channels/:id", "/maintenance", "/subscriptions")
		p.leaves()
	})
	t.Run("of those who may only look", func(t *testing.T) {
		admin, p := newPerson(browser, t, s.url), newPerson(browser, t, s.url)
		admin.logIn()
		p.joins(admin.invitesAs("grace", "viewer"), "grace")
		w := walk{person: p, axe: axe}
		for _, path := range slices.Concat([]string{"/", "/pages/acme"}, w.look("/maintenance")) {
			if slices.Contains([]string{"/", "/pages/:slug", "/maintenance/:id"}, shapeOf(strings.Replace(path, "acme", ":slug", 1))) {
				w.look(path) // which are not as others see them
			}
		}
		p.leaves()
	})
	t.Run("of the public", func(t *testing.T) {
		p := newPerson(browser, t, s.url)
		w := walk{person: p, axe: axe}
		w.from("/status", "/login", "/nothing-here")
		w.passed("/status", "/status/:slug", "/login")
	})
}

// newShowcase starts a service with something on each of its pages.
func newShowcase(t *testing.T) *instance {
	t.Helper()
	i := setUp(t, "--allow-private", "127.0.0.0/8")
	var channel struct{ ID string }
	i.call("POST", "/api/v1/channels", object{"name": clip(hostile(1)), "type": "slack", "webhook_url": "http://127.0.0.1:9/x"}, 201, &channel)
	urls := []string{newHostileMCP(t), probetest.MCP(t).URL, "http://127.0.0.1:9/mcp"}
	for n, url := range urls {
		i.call("POST", "/api/v1/endpoints", object{
			"name": clip(fmt.Sprint(n, hostile(n))), "slug": fmt.Sprint("e", n), "url": url, "kind": "mcp", "schedule": "@every 1s", "timeout": "900ms",
			"public": true, "tags": []string{clip(hostile(n)), "prod"}, "channels": []string{channel.ID},
			"confirm":    object{"failures": 1, "successes": 1, "after": "1s"},
			"objectives": []object{{"name": "availability", "target": 99.9, "days": 30}},
		}, 201, nil)
	}
	i.call("POST", "/api/v1/maintenance", object{
		"title": clip(hostile(2)), "text": hostile(3), "starts_at": time.Now().Add(time.Hour), "ends_at": time.Now().Add(2 * time.Hour), "endpoints": []string{"e1"}, "public": true,
	}, 201, nil)
	i.call("POST", "/api/v1/pages", object{
		"name": clip(hostile(6)), "slug": "acme", "text": hostile(7), "accent": "#7a1fa2", "sections": []object{{"title": clip(hostile(8)), "endpoints": []string{"e1"}, "tags": []string{"prod"}}},
	}, 201, nil)
	i.call("POST", "/api/v1/incidents", object{
		"title": clip(hostile(4)), "severity": "degraded", "text": hostile(5), "endpoints": []string{"e0", "e1"},
	}, 201, nil)
	i.await("the endpoints to be what they are", func() bool {
		return i.status("e1") == "up" && i.status("e2") == "down" && len(i.incidents("e2")) > 0 && len(i.incidents("e0")) > 0
	})
	return i
}

// clip shortens a text to what a name may have.
func clip(text string) string { return text[:min(len(text), 60)] }

const showcasePassword = "a horse that staples batteries"

// logIn logs in as who set the service up.
func (p *person) logIn() {
	p.t.Helper()
	p.open("/login")
	p.fill("Name", "ada")
	p.fill("Password", showcasePassword)
	p.press("Log in")
}

// setUp makes the first user of a service that has none, and has it started again so that it knows the admin token.
func setUp(t *testing.T, args ...string) *instance {
	t.Helper()
	return setUpAt(t, freeAddress(t), args...)
}

// setUpAt does the same at an address, for a service that has to know it.
func setUpAt(t *testing.T, addr string, args ...string) *instance {
	t.Helper()
	i := serveInstanceAt(t, addr, []string{testKey, "ROLLCALL_ADMIN_TOKEN="}, args...)
	link, err := url.Parse(i.setupLink())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.PostForm(i.url+"/setup", url.Values{
		"token": link.Query()["token"], "name": {"ada"}, "password": {showcasePassword}, "again": {showcasePassword},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	i.stop()
	i.env = []string{testKey, "ROLLCALL_ADMIN_TOKEN=" + adminToken}
	i.start()
	return i
}

// walk goes from page to page.
type walk struct {
	*person
	axe  string
	seen map[string]int // pages by shape
	done []string       // shapes
}

// maxAlike is how many pages of one shape are looked at, such as those of two incidents, or of one incident in two ways.
const maxAlike = 2

func (w *walk) from(paths ...string) {
	w.t.Helper()
	w.seen = map[string]int{}
	for queue := paths; len(queue) > 0; {
		path := queue[0]
		queue = queue[1:]
		shape := shapeOf(path)
		if w.seen[shape]++; w.seen[shape] > maxAlike {
			continue
		}
		w.t.Log("look at", path)
		for _, next := range w.look(path) {
			if !slices.Contains(queue, next) {
				queue = append(queue, next)
			}
		}
		w.done = append(w.done, shape)
	}
}

// passed fails the test unless pages of these shapes were looked at.
func (w *walk) passed(shapes ...string) {
	w.t.Helper()
	for _, shape := range shapes {
		if w.seen[shape] == 0 {
			w.t.Errorf("no page like %s was found; there were %q", shape, w.done)
		}
	}
}

var (
	oneOfMany = regexp.MustCompile(`^/(endpoints|status)/e\d`)
	ids       = regexp.MustCompile(`/[a-z]{2,3}(_[0-9a-f]+)+|/[0-9]+`)
)

// shapeOf returns a path without what names one thing of many, and whether it is asked in some way of many.
func shapeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	path := ids.ReplaceAllString(u.Path, "/:id")
	path = oneOfMany.ReplaceAllString(path, "/$1/:slug")
	if len(u.Query()) > 0 {
		path += "?…"
	}
	return path
}

// noPages are for programs, though links lead there.
var noPages = []string{"/healthz", "/readyz", "/metrics"}

// wide is how wide a page is looked at in light. In dark it is as wide as the browser makes it, where tables have no room for
// columns: what lies close together differs. Colours do not, and take no second look.
const wide = 1280

// look opens a page, holds it against what all pages must be, and returns where its links lead.
func (w *walk) look(path string) (links []string) {
	w.t.Helper()
	w.do("open "+path, chromedp.Navigate(w.base+path))
	w.do("load axe-core", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := chromedp.Evaluate[any](w.axe+";0")(ctx, tab)
		return err
	}))
	for _, as := range []struct {
		scheme string
		width  int64
	}{{"light", wide}, {"dark", 0}} {
		w.prefer(as.scheme)
		w.size(as.width, as.width/2)
		for _, found := range w.violations(path) {
			w.t.Errorf("%s in %s, %d wide: %s", path, as.scheme, as.width, found)
		}
	}
	w.onPhone(path)
	if owned := evaluate[string](w.person, `[
		window.owned ? "a script of a stranger ran" : "",
		...[...document.querySelectorAll("[onerror],[onload],[onclick],[onmouseover],iframe,object,embed,base,x,main script")].map(e => e.outerHTML),
		...[...document.querySelectorAll("a[href],form[action]")].map(e => new URL(e.getAttribute("href") ?? e.getAttribute("action"), location).href).filter(h => /^(javascript|data|vbscript):/i.test(h)),
	].filter(Boolean).join("\n")`); owned != "" {
		w.t.Errorf("%s: a text of a stranger is more than text: %s", path, owned)
	}
	for _, link := range evaluate[[]string](w.person, `[...document.querySelectorAll("a[href]")].map(a => new URL(a.getAttribute("href"), location).href)`) {
		u, err := url.Parse(link)
		if err != nil || !strings.HasPrefix(link, w.base+"/") || strings.Contains(filepath.Base(u.Path), ".") || slices.Contains(noPages, u.Path) {
			continue // elsewhere, or no page
		}
		u.Fragment = ""
		links = append(links, u.RequestURI())
	}
	return links
}

// evaluate returns what an expression is in the page.
func evaluate[T any](p *person, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, personPatience*3)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %.200s: %v\n%s", expression, err, p.page())
	}
	return v
}

// prefer has the browser prefer a colour scheme.
func (p *person) prefer(scheme string) {
	p.t.Helper()
	p.do("prefer "+scheme, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			// Colours that are on their way from one scheme to the other are nobody's.
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}

// violations returns what axe-core finds, in words.
func (w *walk) violations(path string) []string {
	w.t.Helper()
	found := evaluate[string](w.person, `axe.run(document, {
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"],
	}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 3).map(n => "  " + n.target + ": " + n.html.slice(0, 200) + " " + n.failureSummary).join("\n"))))`)
	var words []string
	if err := json.Unmarshal([]byte(found), &words); err != nil {
		w.t.Fatalf("%s: axe-core says %q: %v", path, found, err)
	}
	return words
}

// onPhone fails the test when a page has to be scrolled sideways on a phone.
func (w *walk) onPhone(path string) {
	w.t.Helper()
	w.size(360, 740)
	defer w.size(0, 0)
	if wide := evaluate[string](w.person, `document.scrollingElement.scrollWidth <= innerWidth ? "" :
		[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 200)).join("\n")`); wide != "" {
		w.t.Errorf("%s is wider than a phone: %s", path, wide)
	}
}

// size makes the window of the browser as large as a phone, say; zero is as it was.
func (p *person) size(width, height int64) {
	p.t.Helper()
	p.do("resize", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height})
		return err
	}))
}
