package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Every route is asked by nobody, by somebody logged in and by a program with a token: whom it is not for is refused in
// the way that fits, and whom it is for is not.
func TestEveryRouteAnswersOnlyThoseItIsFor(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://weather.example/mcp", "public": true}`)
	r.login()
	for _, route := range r.api.RoutesForTest() {
		path := strings.NewReplacer(":slug", slug, ":id", "not-there", "*", "not-there").Replace(route.Path)
		if route.Method == http.MethodDelete {
			path = strings.Replace(path, slug, "not-there", 1) // the others still need it
		}
		t.Run(route.Method+" "+route.Path, func(t *testing.T) {
			anonymous := r.ask(route.Method, path, "", nobody)
			switch {
			case route.Access == "":
				if anonymous.status == http.StatusUnauthorized && route.Path != "/login" || strings.HasPrefix(anonymous.header.Get("Location"), "/login?") {
					t.Errorf("nobody was refused: %d", anonymous.status)
				}
			case !route.Page:
				anonymous.want(http.StatusUnauthorized)
				if got := anonymous.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
					t.Errorf("WWW-Authenticate is %q, want it to ask for a Bearer token", got)
				}
				anonymous.mistakes()
				r.ask(route.Method, path, "", header("Authorization", "Bearer wrong")).want(http.StatusUnauthorized)
				for who, reply := range map[string]reply{"token": r.ask(route.Method, path, ""), "session": r.ask(route.Method, path, "", r.loggedIn())} {
					if reply.status == http.StatusUnauthorized || reply.status == http.StatusForbidden {
						t.Errorf("%s was refused: %d", who, reply.status)
					}
				}
			default:
				for who, reply := range map[string]reply{"nobody": anonymous, "token": r.ask(route.Method, path, "")} {
					if got := reply.want(http.StatusSeeOther).header.Get("Location"); !strings.HasPrefix(got, "/login") {
						t.Errorf("%s was sent to %q, want /login", who, got)
					}
				}
			}
			if got := anonymous.header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
				t.Errorf("Content-Security-Policy is %q", got)
			}
			if got := anonymous.header.Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("X-Content-Type-Options is %q", got)
			}
		})
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
