package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

// may says who may call each route, by hand: one that is added, or opened to others, has to be added or changed here as well.
const may = `
viewer GET /api/v1/endpoints
editor POST /api/v1/endpoints
viewer GET /api/v1/endpoints/:slug
editor PATCH /api/v1/endpoints/:slug
editor DELETE /api/v1/endpoints/:slug
editor POST /api/v1/endpoints/:slug/check
viewer GET /api/v1/endpoints/:slug/checks
viewer GET /api/v1/endpoints/:slug/checks/:id
viewer GET /api/v1/endpoints/:slug/contracts
viewer GET /api/v1/endpoints/:slug/contracts/:id
viewer GET /api/v1/endpoints/:slug/events
viewer GET /api/v1/endpoints/:slug/uptime
viewer GET /api/v1/endpoints/:slug/objectives
editor POST /api/v1/check
viewer GET /api/v1/incidents
editor POST /api/v1/incidents
viewer GET /api/v1/incidents/:id
editor POST /api/v1/incidents/:id/acts
viewer GET /api/v1/maintenance
editor POST /api/v1/maintenance
viewer GET /api/v1/maintenance/:id
editor PATCH /api/v1/maintenance/:id
editor DELETE /api/v1/maintenance/:id
viewer GET /api/v1/pages
editor POST /api/v1/pages
viewer GET /api/v1/pages/:slug
editor PATCH /api/v1/pages/:slug
editor DELETE /api/v1/pages/:slug
editor POST /api/v1/pages/:slug/check
viewer GET /api/v1/channels
editor POST /api/v1/channels
editor POST /api/v1/channels/preview
editor PATCH /api/v1/channels/:id
editor DELETE /api/v1/channels/:id
editor POST /api/v1/channels/:id/test
viewer GET /api/v1/channels/:id/deliveries
editor POST /api/v1/notices/:id/resend
viewer GET /api/v1/subscriptions
viewer POST /api/v1/subscriptions
viewer DELETE /api/v1/subscriptions/:id
admin GET /api/v1/members
admin PATCH /api/v1/members/:id
admin DELETE /api/v1/members/:id
admin GET /api/v1/invitations
admin POST /api/v1/invitations
admin DELETE /api/v1/invitations/:id
admin GET /api/v1/tokens
admin POST /api/v1/tokens
admin DELETE /api/v1/tokens/:id
admin GET /api/v1/audit
public GET /api/v1/status
public GET /webhook.schema.json
public GET /api/v1/openapi.yaml
public GET /api/v2/summary.json
public GET /api/v2/status.json
public GET /api/v2/components.json
public GET /api/v2/incidents.json
public GET /status/feed.atom
public GET /llms.txt
public GET /robots.txt
public GET /p/:slug/feed.atom
public GET /p/:slug/feed.json
public GET /p/:slug/api/v2/summary.json
public GET /p/:slug/api/v2/status.json
public GET /p/:slug/api/v2/components.json
public GET /p/:slug/api/v2/incidents.json
public GET /p/:slug/llms.txt
public GET /p/:slug/robots.txt
public GET /p/:slug/logo
public GET /p/:slug/accent.css
public GET /status/feed.events
public GET /p/:slug/feed.events
viewer GET /events
public GET /status/feed.json
public GET /badge/:slug/status.svg
public GET /badge/:slug/status.json
public GET /badge/:slug/uptime.svg
public GET /badge/:slug/uptime.json
public GET /badge/:slug/latency.svg
public GET /badge/:slug/latency.json
public GET /badge/:slug/slo.svg
public GET /badge/:slug/slo.json
public GET /badge/:slug/protocol.svg
public GET /badge/:slug/protocol.json
public GET /badge/:slug/tools.svg
public GET /badge/:slug/tools.json
public GET /badge/:slug/height.svg
public GET /badge/:slug/height.json
public POST /slack/actions
public POST /slack/command
public GET /healthz
public GET /readyz
public GET /metrics
public GET /status
public GET /status/:slug
public GET /p/:slug
public GET /p/:slug/service/:id
public GET /p/:slug/subscribe
public POST /p/:slug/subscribe
public GET /p/:slug/confirm
public POST /p/:slug/confirm
public GET /p/:slug/subscription
public POST /p/:slug/subscription
public GET /p/:slug/unsubscribe
public POST /p/:slug/unsubscribe
public POST /p/:slug/password
public POST /p/:slug/preferences
public GET /status/subscribe
public POST /status/subscribe
public GET /status/confirm
public POST /status/confirm
public GET /status/subscription
public POST /status/subscription
public GET /status/unsubscribe
public POST /status/unsubscribe
public GET /static/*
public GET /favicon.ico
public GET /setup
public POST /setup
public GET /login
public POST /login
public GET /login/code
public POST /login/code
public GET /login/oidc
public GET /login/oidc/callback
public GET /join
public POST /join
public POST /preferences
viewer POST /logout
viewer GET /
viewer GET /endpoints
editor POST /endpoints
viewer GET /locations
editor GET /endpoints/new
editor POST /endpoints/new
viewer GET /endpoints/:slug
editor POST /endpoints/:slug
editor GET /endpoints/:slug/edit
editor POST /endpoints/:slug/edit
viewer GET /endpoints/:slug/checks/:id
viewer GET /endpoints/:slug/badges
viewer GET /endpoints/:slug/contracts
viewer GET /endpoints/:slug/contracts/:id
viewer GET /incidents
editor GET /incidents/new
editor POST /incidents/new
viewer GET /incidents/:id
editor POST /incidents/:id
viewer GET /maintenance
editor GET /maintenance/new
editor POST /maintenance/new
viewer GET /maintenance/:id
editor POST /maintenance/:id
viewer GET /pages
editor GET /pages/new
editor POST /pages/new
viewer GET /pages/:slug
editor POST /pages/:slug
viewer GET /subscriptions
viewer POST /subscriptions
viewer GET /channels
editor POST /channels
viewer GET /channels/:id
editor POST /channels/:id
viewer GET /account
viewer POST /account
admin GET /members
admin POST /members
admin GET /tokens
admin POST /tokens
admin GET /audit
admin GET /settings
`

// who is one of those who ask.
type who struct {
	role  store.Role // empty: nobody
	token bool       // with a token, else with a session
	how   option
}

func (w who) String() string {
	switch {
	case w.role == "":
		return "nobody"
	case w.token:
		return "a token of an " + string(w.role)
	}
	return "an " + string(w.role)
}

// Every route is asked by nobody, and by viewers, editors and admins with a session and with a token: whom it is not for is refused
// in the way that fits, and whom it is for is not.
func TestEveryRouteAnswersOnlyThoseItIsFor(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://weather.example/mcp", "public": true}`)
	r.login()
	everybody := []who{{how: nobody}}
	for _, role := range store.Roles {
		everybody = append(everybody, who{role, false, r.member("a "+string(role), role)}, who{role, true, r.tokenOf(role)})
	}
	wanted := map[string]store.Role{}
	for line := range strings.Lines(strings.TrimSpace(may)) {
		role, route, _ := strings.Cut(strings.TrimSpace(line), " ")
		wanted[strings.TrimSpace(route)] = store.Role(strings.Replace(role, "public", "", 1))
	}
	for _, route := range r.api.RoutesForTest() {
		name := route.Method + " " + route.Path
		needed, there := wanted[name]
		if !there || needed != route.Access {
			t.Errorf("%s is for %q: the table of this test says %q, %v", name, route.Access, needed, there)
			continue
		}
		delete(wanted, name)
		path := strings.NewReplacer(":slug", slug, ":id", "not-there", "*", "not-there").Replace(route.Path)
		if route.Method == http.MethodDelete || name == "POST /endpoints/:slug" {
			path = strings.Replace(path, slug, "not-there", 1) // the others still need it
		}
		for _, w := range everybody {
			if name == "POST /logout" && !w.token && w.role != "" {
				w.how = r.member("another "+string(w.role), w.role) // the first one is still needed
			}
			t.Run(name+" by "+w.String(), func(t *testing.T) { r.wantAccess(t, route, path, w) })
		}
	}
	for name := range wanted {
		t.Errorf("%s is not there", name)
	}
}

// wantAccess asks, and fails unless w is let through or refused as the route says.
func (r *rollcall) wantAccess(t *testing.T, route api.RouteForTest, path string, w who) {
	t.Helper()
	got := r.glance(t, route.Method, path, w.how)
	unknown := route.Page && w.token || w.role == "" // pages know sessions alone
	refused := got.status == http.StatusForbidden && strings.Contains(got.body, "Not allowed")
	location := got.header.Get("Location")
	switch {
	case route.Access == "":
		if got.status == http.StatusUnauthorized && route.Path != "/login" || strings.HasPrefix(location, "/login?") || refused {
			t.Errorf("refused: %d", got.status)
		}
	case unknown && route.Page:
		if got.status != http.StatusSeeOther || !strings.HasPrefix(location, "/login") {
			t.Errorf("status %d, led to %q, want /login", got.status, location)
		}
	case unknown:
		if got.status != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("status %d, want 401 and to be asked for a Bearer token", got.status)
		}
	case !w.role.May(route.Access), w.token && w.role == store.RoleViewer && route.Path == "/api/v1/subscriptions/:id": // which are nobody's own
		if !refused {
			t.Errorf("status %d, want to be refused\n%s", got.status, got.body)
		}
		if page := strings.HasPrefix(got.header.Get("Content-Type"), "text/html"); page != route.Page {
			t.Errorf("refused with %s", got.header.Get("Content-Type"))
		}
	default:
		if got.status == http.StatusUnauthorized || refused || strings.HasPrefix(location, "/login?") {
			t.Errorf("refused: %d\n%s", got.status, got.body)
		}
	}
	if got := got.header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
		t.Errorf("Content-Security-Policy is %q", got)
	}
	if got := got.header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options is %q", got)
	}
}

// glance asks and reads no more than the beginning of the answer: some have no end.
func (r *rollcall) glance(t *testing.T, method, path string, how option) reply {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, r.http.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	how(q)
	resp, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // not read to its end
	var body []byte
	if resp.StatusCode == http.StatusForbidden {
		if body, err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	return reply{t, method + " " + path, resp.StatusCode, resp.Header, string(body)}
}

// A token that is bound to a part of the API reaches that part alone, and every route belongs to one.
func TestATokenReachesItsScopesAlone(t *testing.T) {
	r := start(t)
	for _, scope := range store.Scopes {
		how := r.tokenOf(store.RoleAdmin, scope)
		for _, route := range r.api.RoutesForTest() {
			if route.Page || route.Access == "" || !strings.HasPrefix(route.Path, "/api/v1/") {
				continue
			}
			part := api.ScopeOfForTest(route.Path)
			if part == "" {
				t.Errorf("%s belongs to no scope", route.Path)
			}
			path := strings.NewReplacer(":slug", "not-there", ":id", "not-there").Replace(route.Path)
			got := r.glance(t, route.Method, path, how)
			if refused := got.status == http.StatusForbidden && strings.Contains(got.body, "does not reach"); refused != (part != scope) {
				t.Errorf("%s %s, of %s, with a token for %s: status %d", route.Method, route.Path, part, scope, got.status)
			}
		}
	}
}

func TestASessionActsOnlyForOurOwnPages(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://weather.example/mcp"}`)
	reply := r.ask("DELETE", "/api/v1/endpoints/"+slug, "", r.loggedIn(), header("Sec-Fetch-Site", "cross-site"))
	reply.want(http.StatusForbidden)
	reply.mistakes()
	r.ask("DELETE", "/api/v1/endpoints/"+slug, "", r.loggedIn(), header("Origin", "https://evil.example")).want(http.StatusForbidden)
	r.ask("POST", "/logout", "", r.loggedIn(), header("Sec-Fetch-Site", "same-site")).want(http.StatusForbidden)
	r.ask("DELETE", "/api/v1/endpoints/"+slug, "", r.loggedIn(), header("Sec-Fetch-Site", "same-origin")).want(http.StatusNoContent)
}

func TestATokenOfTheDatabaseWorksUntilItIsRevoked(t *testing.T) {
	r := start(t)
	secret, token := r.token("ci")
	r.get("/api/v1/endpoints", header("Authorization", "bearer "+secret)).want(http.StatusOK)
	if err := r.store.RevokeToken(t.Context(), token.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.get("/api/v1/endpoints", header("Authorization", "Bearer "+secret)).want(http.StatusUnauthorized)
}

func TestAnotherSchemeIsLeftToTheProxyInFront(t *testing.T) {
	r := start(t)
	basic := header("Authorization", "Basic YTpi")
	r.get("/api/v1/endpoints", r.loggedIn(), basic).want(http.StatusOK)
	r.get("/api/v1/endpoints", nobody, basic).want(http.StatusUnauthorized)
}

func TestWhatIsNotThere(t *testing.T) {
	r := start(t)
	r.get("/api/v1/nothing").want(http.StatusNotFound).mistakes()
	r.get("/api/v1/nothing", header("Accept", "text/html")).want(http.StatusNotFound).mistakes()
	reply := r.ask("PUT", "/api/v1/endpoints", "{}").want(http.StatusMethodNotAllowed)
	reply.mistakes()
	for _, method := range []string{"GET", "POST"} {
		if got := reply.header.Get("Allow"); !strings.Contains(got, method) {
			t.Errorf("Allow is %q, want %s in it", got, method)
		}
	}
	page := r.get("/nothing", header("Accept", "text/html,*/*")).want(http.StatusNotFound)
	if got := page.header.Get("Content-Type"); !strings.HasPrefix(got, "text/html") {
		t.Errorf("somebody who looks gets %s, want a page", got)
	}
	r.get("/api/v1/endpoints/not-there").want(http.StatusNotFound).mistakes()
	r.get("/api/v1/incidents/inc_not_there").want(http.StatusNotFound).mistakes()
	for _, strange := range []string{"%00", "%ff", "a%2Fb", "%2e%2e", strings.Repeat("a", 5000)} {
		r.get("/api/v1/endpoints/" + strange).want(http.StatusNotFound).mistakes()
		r.get("/api/v1/incidents/" + strange).want(http.StatusNotFound).mistakes()
		r.get("/status/"+strange, nobody).want(http.StatusNotFound)
		r.get("/badge/"+strange+"/status.svg", nobody).want(http.StatusOK)
	}
}

func TestADatabaseThatIsAwayIsSaidToBe(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://weather.example/mcp", "public": true, "name": "w"}`)
	r.get("/readyz", nobody).want(http.StatusOK)
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/endpoints", "/api/v1/status", "/api/v2/summary.json", "/status/feed.atom"} {
		reply := r.get(path).want(http.StatusServiceUnavailable)
		reply.mistakes()
		if title := reply.object()["title"]; title != "Database unavailable" {
			t.Errorf("%s: title %q", path, title)
		}
		if reply.header.Get("Retry-After") == "" || reply.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", path, reply.header)
		}
		if strings.Contains(reply.body, "sql") {
			t.Errorf("%s tells strangers about the database: %s", path, reply.body)
		}
	}
	badge := r.get("/badge/w/status.svg", nobody).want(http.StatusOK)
	if !strings.Contains(badge.body, "unknown") || badge.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("badge without a database: %v\n%s", badge.header, badge.body)
	}
	r.get("/healthz", nobody).want(http.StatusOK)
	if got := r.get("/readyz", nobody).want(http.StatusServiceUnavailable).object()["database"]; got != "unavailable" {
		t.Errorf("readyz says the database is %v", got)
	}
}

func TestReadySaysHowManyChecksWait(t *testing.T) {
	r := start(t)
	locked(r, func() any { r.backlog = 7; return nil })
	got := r.get("/readyz", nobody).want(http.StatusServiceUnavailable).object()
	if got["waiting_checks"] != 7.0 || !strings.Contains(got["detail"].(string), "7 checks wait") {
		t.Errorf("readyz says %v, want 7 waiting", got)
	}
}

func TestMetricsNameRoutesAndNoEndpoint(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://weather.example/mcp", "name": "Secret project"}`)
	r.get("/api/v1/endpoints/" + slug).want(http.StatusOK)
	r.ask("BREW", "/api/v1/endpoints/"+slug, "")
	body := r.get("/metrics", nobody).want(http.StatusOK).body
	if !strings.Contains(body, `rollcall_http_request_duration_seconds_count{method="GET",route="/api/v1/endpoints/:slug",status="200"} 1`) {
		t.Errorf("the request is not counted by its route:\n%s", body)
	}
	for _, private := range []string{slug, "BREW", "weather"} {
		if strings.Contains(body, private) {
			t.Errorf("metrics hold %q", private)
		}
	}
}

func TestThePublicFaceCanBeReadByEverySite(t *testing.T) {
	r := start(t)
	for _, path := range []string{"/api/v1/status", "/api/v2/summary.json", "/badge/x/status.svg", "/badge/x/uptime.json", "/status/feed.atom"} {
		h := r.get(path, nobody).want(http.StatusOK).header
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
			t.Errorf("%s cannot be read by other sites: %v", path, h)
		}
	}
	if h := r.get("/api/v1/endpoints").want(http.StatusOK).header; h.Get("Access-Control-Allow-Origin") != "" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("what needs a token is open to other sites or caches: %v", h)
	}
}

func TestTheLogHoldsNoQueryAndNoPath(t *testing.T) {
	r := start(t)
	r.get("/setup?token=hush-hush", nobody)
	r.get("/api/v1/endpoints/secret-project?q=hush-hush")
	log := r.logged()
	for _, private := range []string{"hush-hush", "secret-project", adminToken} {
		if strings.Contains(log, private) {
			t.Errorf("the log holds %q:\n%s", private, log)
		}
	}
	if !strings.Contains(log, `"route":"/api/v1/endpoints/:slug"`) {
		t.Errorf("the log does not name the route:\n%s", log)
	}
}
