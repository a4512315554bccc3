package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Every page that a link leads to is opened by somebody of each role: no link, form or button on it leads where they are refused,
// and no field stands there for nothing.
func TestPagesOfferWhatWhoLooksMayDo(t *testing.T) {
	r := busy(t)
	routes := patterns(r.api.RoutesForTest())
	for _, role := range store.Roles {
		t.Run(string(role), func(t *testing.T) {
			w := stroll{t: t, r: r, routes: routes, role: role, as: r.member("a "+string(role), role), seen: map[string]int{}}
			w.from("/", "/nothing-here")
			w.passedAll()
		})
	}
}

// busy starts a service with something on each of its pages.
func busy(t *testing.T) *rollcall {
	t.Helper()
	r := start(t, withDomains("status.acme.example"))
	tools := healthy()
	tools.Contract = &probe.Contract{Key: "legacy/public", Hash: "sha256:1", Tools: []byte(`[{"name":"radar"}]`)}
	r.see(tools)
	weather := r.register(`{"url": "https://weather.example/mcp", "name": "Weather", "public": true, "tags": ["prod"], "objectives": [{"name": "availability", "target": 99.9, "days": 30}]}`)
	r.ask("POST", "/api/v1/endpoints/"+weather+"/check", "").want(http.StatusOK)
	tools.Contract = &probe.Contract{Key: "legacy/public", Hash: "sha256:2", Tools: []byte(`[{"name":"sonar"}]`)}
	r.see(tools)
	r.ask("POST", "/api/v1/endpoints/"+weather+"/check", "").want(http.StatusOK)
	var channel string
	for _, name := range []string{"ops", "broken"} {
		channel, _ = r.ask("POST", "/api/v1/channels", `{"name": "`+name+`", "type": "slack", "webhook_url": "`+webhook+`"}`).want(http.StatusCreated).object()["id"].(string)
	}
	down := r.outage("Billing", true)
	r.ask("PATCH", "/api/v1/endpoints/"+down, `{"channels": ["`+channel+`"]}`).want(http.StatusOK)
	r.ask("POST", "/api/v1/incidents", `{"title": "Payments are slow", "severity": "degraded", "endpoints": ["`+down+`"]}`).want(http.StatusCreated)
	r.deliver(true)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for _, plan := range []string{
		fmt.Sprintf(`{"title": "Upgrade", "starts_at": %q, "ends_at": %q, "endpoints": [%q], "public": true}`, at(-time.Hour), at(time.Hour), weather),
		fmt.Sprintf(`{"title": "Backups", "starts_at": %q, "schedule": "0 3 * * 0", "duration": "2h", "all": true}`, at(0)),
	} {
		r.ask("POST", "/api/v1/maintenance", plan).want(http.StatusCreated)
	}
	r.page(`{"slug": "acme", "name": "ACME", "sections": [{"title": "Tools", "endpoints": ["` + weather + `"], "tags": ["prod"]}], "domain": "status.acme.example"}`)
	r.page(`{"slug": "inner", "name": "Inner", "password": "correct horse", "sections": []}`)
	return r
}

// stroll is somebody who goes from page to page.
type stroll struct {
	t      *testing.T
	r      *rollcall
	routes []pattern
	role   store.Role
	as     option
	seen   map[string]int // pages by route
}

// pattern is a route and the paths that it answers to.
type pattern struct {
	api.RouteForTest
	paths *regexp.Regexp
}

// patterns returns routes in the order in which they are asked: those that name one path come first.
func patterns(routes []api.RouteForTest) (ps []pattern) {
	for _, route := range routes {
		paths := regexp.MustCompile(`:\w+`).ReplaceAllString(regexp.QuoteMeta(route.Path), `[^/]+`)
		ps = append(ps, pattern{route, regexp.MustCompile("^" + strings.ReplaceAll(paths, `\*`, ".*") + "$")})
	}
	slices.SortStableFunc(ps, func(a, b pattern) int { return strings.Count(a.Path, ":") - strings.Count(b.Path, ":") })
	return ps
}

// allows reports whether the role may call a route.
func (w stroll) allows(access store.Role) bool { return access == "" || w.role.May(access) }

// maxOfRoute is how many pages of one route are opened, such as those of two endpoints, or of one list in two orders.
const maxOfRoute = 4

func (w stroll) from(paths ...string) {
	w.t.Helper()
	for queue := paths; len(queue) > 0; queue = queue[1:] {
		route, _ := w.routeOf(http.MethodGet, queue[0])
		if w.seen[route]++; w.seen[route] > maxOfRoute {
			continue
		}
		for _, next := range w.look(queue[0]) {
			if !slices.Contains(queue, next) {
				queue = append(queue, next)
			}
		}
	}
}

// passedAll fails the test unless every page that the role may open was opened.
func (w stroll) passedAll() {
	w.t.Helper()
	// What no link on the pages of a member leads to: the ways in, files, and what only messages lead to.
	aside := regexp.MustCompile(`^/(setup|login.*|join|static/\*|favicon\.ico|endpoints)$|/(subscribe|confirm|subscription|unsubscribe)$`)
	for _, route := range w.routes {
		if route.Page && route.Method == http.MethodGet && w.allows(route.Access) && !aside.MatchString(route.Path) && w.seen[route.Path] == 0 {
			w.t.Errorf("no page %s was found", route.Path)
		}
	}
}

// routeOf returns the route that answers to a path, and whether the role may call it; an empty one where nothing answers.
func (w stroll) routeOf(method, address string) (route string, may bool) {
	path, _, _ := strings.Cut(address, "?")
	for _, p := range w.routes {
		if p.Method == method && p.paths.MatchString(path) {
			return p.Path, w.allows(p.Access)
		}
	}
	return "", false
}

// look opens a page, holds what it offers against what the role may do, and returns where its links lead.
func (w stroll) look(path string) (links []string) {
	w.t.Helper()
	reply := w.r.get(path, w.as)
	locked := reply.status == http.StatusUnauthorized && strings.HasPrefix(path, "/p/") // whatever the role: it takes its password
	if reply.status != http.StatusOK && path != "/nothing-here" && !locked {
		w.t.Errorf("%s: status %d", path, reply.status)
	}
	if !strings.HasPrefix(reply.header.Get("Content-Type"), "text/html") {
		return nil
	}
	root, err := html.Parse(strings.NewReader(reply.body))
	if err != nil {
		w.t.Fatal(err)
	}
	for n := range root.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "a":
			if to := within(path, attribute(n, "href")); to != "" {
				w.wantCallable(path, http.MethodGet, to, n)
				links = append(links, to)
			}
		case n.Data == "form":
			w.wantForm(path, n)
		case n.Data == "button":
			w.wantButton(path, n)
		case isField(n):
			w.wantPurpose(path, n)
		}
	}
	return links
}

// within returns where a link on a page leads in this service, without a fragment; empty: it leads elsewhere.
func within(page, link string) string {
	base, err := url.Parse(page)
	if err != nil || link == "" {
		return ""
	}
	to, err := base.Parse(link)
	if err != nil || to.Host != "" || to.Scheme != "" {
		return ""
	}
	to.Fragment = ""
	return to.String()
}

// wantCallable fails unless the role may do what an element leads to.
func (w stroll) wantCallable(page, method, to string, n *html.Node) {
	w.t.Helper()
	if route, may := w.routeOf(method, to); route == "" || !may {
		w.t.Errorf("%s: %q leads to %s %s, where somebody who is %s is refused", page, strings.Join(strings.Fields(textOf(n)), " "), method, to, w.role)
	}
}

func (w stroll) wantForm(page string, form *html.Node) {
	w.t.Helper()
	action, method := within(page, attribute(form, "action")), strings.ToUpper(attribute(form, "method"))
	if action == "" || method == "" {
		w.t.Errorf("%s: a form does not say where it goes: %s", page, clipped(form))
		return
	}
	w.wantCallable(page, method, action, form)
	for n := range form.Descendants() {
		if n.Data == "button" && attribute(n, "aria-hidden") == "" && attribute(n, "type") != "button" {
			return
		}
	}
	w.t.Errorf("%s: a form has no button: %s", page, clipped(form))
}

// wantButton fails unless a button sends a form, or is one that a script shows.
func (w stroll) wantButton(page string, button *html.Node) {
	w.t.Helper()
	_, hidden := attributeOf(button, "hidden")
	if !hidden && formOf(button) == nil {
		w.t.Errorf("%s: a button sends nothing: %s", page, clipped(button))
	}
}

func isField(n *html.Node) bool {
	return n.Data == "select" || n.Data == "textarea" || n.Data == "input" && attribute(n, "type") != "hidden"
}

// wantPurpose fails unless a field is part of a form, or is there to be copied from.
func (w stroll) wantPurpose(page string, field *html.Node) {
	w.t.Helper()
	_, copied := attributeOf(field, "readonly")
	if !copied && formOf(field) == nil {
		w.t.Errorf("%s: nobody is sent what stands in %s", page, clipped(field))
	}
}

// formOf returns the form that an element is in; nil for none.
func formOf(n *html.Node) *html.Node {
	for a := range n.Ancestors() {
		if a.Data == "form" {
			return a
		}
	}
	return nil
}

// clipped is the beginning of an element in words fit for a message.
func clipped(n *html.Node) string {
	var b strings.Builder
	if err := html.Render(&b, n); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.200s", b.String())
}
