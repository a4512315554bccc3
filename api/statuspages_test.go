package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// withDomains lets pages have domains, of which those in proven show whose they are.
func withDomains(proven ...string) func(*api.Config) {
	return func(c *api.Config) {
		c.PublicURL = "http://rollcall.example"
		c.ProveDomain = func(_ context.Context, p store.StatusPage) error {
			if slices.Contains(proven, p.Domain) {
				return nil
			}
			return errors.New("has no record: there is no TXT record")
		}
	}
}

// host is the name that somebody reaches us by.
func host(name string) option { return func(q *http.Request) { q.Host = name } }

// page makes a status page from a JSON object.
func (r *rollcall) page(body string) {
	r.t.Helper()
	r.ask("POST", "/api/v1/pages", body).want(http.StatusCreated)
}

// prove presses the button that looks for the record of a domain.
func (r *rollcall) prove(slug string) reply {
	r.t.Helper()
	reply := r.form("/pages/"+slug, url.Values{"action": {"check"}}, r.loggedIn())
	if strings.HasPrefix(reply.header.Get("Location"), "/login") {
		r.t.Fatal("nobody is logged in")
	}
	return reply
}

func TestAPageIsMadeChangedAndRemoved(t *testing.T) {
	r := start(t, withDomains())
	weather := r.register(`{"url": "https://weather.example/mcp", "name": "Weather"}`)
	body := fmt.Sprintf(`{"slug": "acme", "name": " ACME ", "text": "Hi", "accent": "#17604F", "sections": [{"title": "Tools", "endpoints": [%q], "tags": ["prod"]}],
		"domain": "STÄTUS.acme.example", "password": "correct horse", "hide_from_search": true, "logo": %q}`,
		weather, base64.StdEncoding.EncodeToString(storetest.Logo(t)))
	made := r.ask("POST", "/api/v1/pages", body).want(http.StatusCreated)
	if got := made.header.Get("Location"); got != "/api/v1/pages/acme" {
		t.Errorf("Location is %q", got)
	}
	got := r.get("/api/v1/pages/acme").want(http.StatusOK).object()
	record, _ := got["domain_record"].(map[string]any)
	if record["name"] != "_rollcall.xn--sttus-hra.acme.example" || !strings.HasPrefix(record["text"].(string), "rollcall=") {
		t.Errorf("the record is %v", record)
	}
	for _, changing := range []string{"id", "domain_record", "created_at", "updated_at"} {
		delete(got, changing)
	}
	want := map[string]any{
		"slug": "acme", "name": "ACME", "text": "Hi", "has_logo": true, "accent": "#17604f", "public": false, "hide_from_search": true,
		"sections": []any{map[string]any{"title": "Tools", "endpoints": []any{"weather"}, "tags": []any{"prod"}}},
		"domain":   "xn--sttus-hra.acme.example", "domain_proven_at": nil, "url": "http://rollcall.example/p/acme",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("the page (-got +want):\n%s", diff)
	}
	if strings.Contains(made.body, "correct") || strings.Contains(made.body, "argon2") {
		t.Error("the answer holds the password")
	}
	changed := r.ask("PATCH", "/api/v1/pages/acme", `{"name": "Acme", "logo": null, "password": null, "domain": null}`).want(http.StatusOK).object()
	if changed["name"] != "Acme" || changed["has_logo"] != false || changed["public"] != true || changed["domain_record"] != nil || changed["accent"] != "#17604f" {
		t.Errorf("after the change: %v", changed)
	}
	if items := r.get("/api/v1/pages").want(http.StatusOK).object()["items"].([]any); len(items) != 1 {
		t.Errorf("%d pages are listed", len(items))
	}
	r.ask("DELETE", "/api/v1/pages/acme", "").want(http.StatusNoContent)
	r.get("/api/v1/pages/acme").want(http.StatusNotFound)
	r.get("/p/acme", nobody).want(http.StatusNotFound)
}

func TestWhatAPageCannotBe(t *testing.T) {
	r := start(t, withDomains())
	r.page(`{"slug": "taken", "name": "Taken", "domain": "taken.example"}`)
	for name, test := range map[string]struct {
		body   string
		status int
		want   []string
	}{
		"empty":               {`{}`, 422, []string{"name", "slug"}},
		"a reserved slug":     {`{"slug": "new", "name": "x"}`, 422, []string{"slug"}},
		"a taken slug":        {`{"slug": "taken", "name": "x"}`, 409, []string{"slug"}},
		"a taken domain":      {`{"slug": "a", "name": "x", "domain": "Taken.example."}`, 409, []string{"domain"}},
		"our own domain":      {`{"slug": "a", "name": "x", "domain": "ROLLCALL.example"}`, 422, []string{"domain"}},
		"an address":          {`{"slug": "a", "name": "x", "domain": "127.0.0.1"}`, 422, []string{"domain"}},
		"a URL":               {`{"slug": "a", "name": "x", "domain": "https://a.example/"}`, 422, []string{"domain"}},
		"a port":              {`{"slug": "a", "name": "x", "domain": "a.example:443"}`, 422, []string{"domain"}},
		"a short password":    {`{"slug": "a", "name": "x", "password": "short"}`, 422, []string{"password"}},
		"a drawing with code": {`{"slug": "a", "name": "x", "logo": "` + base64.StdEncoding.EncodeToString([]byte("<svg/>")) + `"}`, 422, []string{"logo"}},
		"no base64":           {`{"slug": "a", "name": "x", "logo": "%"}`, 422, []string{"logo"}},
		"nothing there":       {`{"slug": "a", "name": "x", "sections": [{"endpoints": ["none"]}]}`, 422, []string{"sections[0].endpoints[0]"}},
		"an empty section":    {`{"slug": "a", "name": "x", "sections": [{"title": "y", "who": 1}]}`, 422, []string{"sections[0].who", "sections[0].endpoints"}},
		"10,000 characters":   {`{"slug": "a", "name": "` + strings.Repeat("x", 10_000) + `", "text": "` + strings.Repeat("y", 10_000) + `"}`, 422, []string{"name", "text"}},
		"read-only":           {`{"slug": "a", "name": "x", "public": true, "url": "x"}`, 422, []string{"public", "url"}},
	} {
		reply := r.ask("POST", "/api/v1/pages", test.body).want(test.status)
		if diff := cmp.Diff(reply.mistakes(), test.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	without := start(t)
	reply := without.ask("POST", "/api/v1/pages", `{"slug": "a", "name": "x", "domain": "a.example"}`).want(http.StatusUnprocessableEntity)
	if !strings.Contains(reply.body, "--public-url") {
		t.Errorf("without a public URL: %s", reply.body)
	}
}

// secretPage is a rollcall with a private endpoint that is down and stands on a page with a password, and a public one on another.
func secretPage(t *testing.T) *rollcall {
	t.Helper()
	r, _ := secretPagePost(t)
	return r
}

// secretPagePost is secretPage, with what its subscribers are sent.
func secretPagePost(t *testing.T) (*rollcall, *post) {
	t.Helper()
	p := &post{sent: make(chan question, 1000)}
	r := start(t, withDomains("open.example"), func(c *api.Config) { c.LinkKey, c.AskSubscriber = linkKey, p.ask })
	r.outage("Hush Hush", false)
	r.register(`{"url": "https://weather.example/mcp", "name": "Weather", "public": true}`)
	r.ask("POST", "/api/v1/incidents", `{"title": "Secret trouble", "text": "Between us", "endpoints": ["hush-hush"]}`).want(http.StatusCreated)
	r.ask("POST", "/api/v1/incidents", `{"title": "Shared trouble", "endpoints": ["hush-hush", "weather"]}`).want(http.StatusCreated)
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	later := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	r.ask("POST", "/api/v1/maintenance", fmt.Sprintf(`{"title": "Secret works", "starts_at": %q, "ends_at": %q, "endpoints": ["hush-hush"], "public": true}`, soon, later)).want(http.StatusCreated)
	r.page(`{"slug": "locked", "name": "Locked name", "password": "correct horse", "sections": [{"title": "Zzz corner", "endpoints": ["hush-hush"]}]}`)
	r.page(`{"slug": "open", "name": "Open name", "domain": "open.example", "sections": [{"endpoints": ["weather"]}]}`)
	r.prove("open").want(http.StatusSeeOther)
	return r, p
}

// Everything that anybody may ask for is asked for, by every name that there is.
func TestWhatIsOnAPageWithAPasswordIsSeenNowhereElse(t *testing.T) {
	r := secretPage(t)
	secrets := []string{"Hush Hush", "Secret trouble", "Between us", "Secret works", "Locked name", "Zzz corner"}
	asked, shown := 0, 0
	for _, route := range r.api.RoutesForTest() {
		if route.Access != "" && route.Access != "public" || route.Method != http.MethodGet || strings.HasSuffix(route.Path, ".events") {
			continue // streams never end, and have tests of their own
		}
		for _, slug := range []string{"hush-hush", "locked", "open", "weather"} {
			for _, id := range []string{"hush-hush", "weather", "not-there"} {
				path := strings.NewReplacer(":slug", slug, ":id", id, "*", "app.css").Replace(route.Path)
				for _, at := range []option{host("rollcall.example"), host("open.example")} {
					reply := r.get(path, nobody, at)
					asked++
					if reply.status == http.StatusOK {
						shown++
					}
					for _, secret := range secrets {
						if strings.Contains(reply.body, secret) {
							t.Fatalf("%s: %d, holds %q\n%s", reply.what, reply.status, secret, reply.body)
						}
					}
				}
			}
		}
	}
	if asked < 200 || shown < 40 {
		t.Errorf("%d answers were looked at, of which %d showed something", asked, shown)
	}
	for _, path := range []string{"/p/locked/feed.atom", "/p/locked/feed.json", "/p/locked/api/v2/summary.json", "/p/locked/llms.txt", "/p/locked/logo", "/p/locked/accent.css"} {
		r.get(path, nobody).want(http.StatusNotFound)
	}
	r.form("/p/locked/subscribe", url.Values{"type": {"email"}, "address": {"a@b.example"}, "all": {"yes"}}).want(http.StatusNotFound)
}

func TestThePasswordOfAPageOpensThatPage(t *testing.T) {
	r := secretPage(t)
	asks := r.get("/p/locked", nobody).want(http.StatusOK)
	if !strings.Contains(asks.body, `action="/p/locked/password"`) || asks.header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("who has no password sees %v\n%s", asks.header, asks.body)
	}
	password := func(text string, options ...option) reply {
		return r.form("/p/locked/password", url.Values{"password": {text}}, options...)
	}
	for _, wrong := range []string{"", "wrong", "Correct horse", strings.Repeat("x", 2000)} {
		if got := password(wrong).want(http.StatusForbidden); got.header.Get("Set-Cookie") != "" {
			t.Errorf("%.20q sets a cookie", wrong)
		}
	}
	r.form("/p/open/password", url.Values{"password": {"x"}}).want(http.StatusNotFound)
	let := password("correct horse").want(http.StatusSeeOther)
	cookie := let.cookie()
	if let.header.Get("Location") != "/p/locked" || cookie.Path != "/p/locked" || !cookie.HttpOnly {
		t.Errorf("let in with %v", let.header)
	}
	for path, want := range map[string][]string{
		"/p/locked":                       {"Hush Hush", "Secret trouble", "Between us", "Secret works", "Zzz corner"},
		"/p/locked/service/hush-hush":     {"Hush Hush", "Secret trouble"},
		"/p/locked/feed.atom":             {"Hush Hush is down", "Secret trouble", "/p/locked/service/hush-hush"},
		"/p/locked/feed.json":             {"Secret works"},
		"/p/locked/api/v2/summary.json":   {`"name":"Locked name"`, "Secret trouble"},
		"/p/locked/api/v2/incidents.json": {"Secret trouble"},
		"/p/locked/llms.txt":              {"# Locked name", "[Hush Hush](", "Secret trouble"},
	} {
		reply := r.get(path, nobody, withCookie(cookie)).want(http.StatusOK)
		for _, text := range want {
			if !strings.Contains(reply.body, text) {
				t.Errorf("%s does not hold %q:\n%s", path, text, reply.body)
			}
		}
		if strings.Contains(reply.body, "Weather") {
			t.Errorf("%s names an endpoint that is not on the page", path)
		}
		if reply.header.Get("Cache-Control") != "private, no-store" || reply.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may be kept or read by others: %v", path, reply.header)
		}
	}
	r.get("/p/locked/service/weather", nobody, withCookie(cookie)).want(http.StatusNotFound)
	forged := *cookie
	forged.Value = "9" + cookie.Value
	r.get("/p/locked/llms.txt", nobody, withCookie(&forged)).want(http.StatusNotFound)
	r.ask("PATCH", "/api/v1/pages/locked", `{"password": "another horse"}`).want(http.StatusOK)
	r.get("/p/locked/llms.txt", nobody, withCookie(cookie)).want(http.StatusNotFound)
	for i := 0; ; i++ {
		if i > 50 {
			t.Fatal("50 guesses, and nobody minds")
		}
		if got := password("a guess"); got.status == http.StatusTooManyRequests {
			if got.header.Get("Retry-After") == "" {
				t.Error("no word on when to try again")
			}
			break
		}
	}
}

func TestAPageShowsWhatIsOnItAndNothingElse(t *testing.T) {
	r := secretPage(t)
	page := r.get("/p/open", nobody).want(http.StatusOK)
	for _, want := range []string{"Open name", "Weather", "Shared trouble", `href="/p/open/service/weather"`, `<link rel="canonical" href="http://open.example/">`,
		`property="og:title"`, `name="twitter:card"`, `href="/p/open/feed.atom"`, `action="/p/open/subscribe"`, "daybars"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if strings.Contains(page.body, "Log in") || strings.Contains(page.body, `href="/status`) {
		t.Error("the page leads to the dashboard or to the built-in page")
	}
	r.get("/p/open/service/weather", nobody).want(http.StatusOK)
	r.get("/p/open/service/hush-hush", nobody).want(http.StatusNotFound)
	var summary struct {
		Page       struct{ ID, Name, URL string }
		Components []struct {
			ID     string
			PageID string `json:"page_id"`
		}
		Incidents []struct{ Name, Shortlink string }
	}
	if err := json.Unmarshal([]byte(r.get("/p/open/api/v2/summary.json", nobody).want(http.StatusOK).body), &summary); err != nil {
		t.Fatal(err)
	}
	if len(summary.Components) != 1 || summary.Components[0].ID != "weather" || summary.Components[0].PageID != summary.Page.ID ||
		len(summary.Incidents) != 1 || summary.Incidents[0].Name != "Shared trouble" || summary.Page.URL != "http://rollcall.example/p/open" {
		t.Errorf("summary %+v", summary)
	}
	asked := r.form("/p/open/subscribe", url.Values{"type": {"email"}, "address": {"a@b.example"}, "all": {"yes"}}).want(http.StatusOK)
	if !strings.Contains(asked.body, "Look at your mail") || !strings.Contains(asked.body, `href="/p/open"`) {
		t.Errorf("asked: %s", asked.body)
	}
	subs := r.subscriptions()
	if len(subs) != 1 || !subs[0].All || subs[0].PageID != summary.Page.ID {
		t.Errorf("subscribed to %+v, want all of the page", subs)
	}
	builtin := r.get("/status", nobody).want(http.StatusOK).body
	if !strings.Contains(builtin, "Shared trouble") || !strings.Contains(builtin, `<link rel="canonical" href="http://rollcall.example/status">`) {
		t.Error("the built-in page lacks an incident or its own address")
	}
}

func TestADomainLeadsToItsPageAndNowhereElse(t *testing.T) {
	r := secretPage(t)
	at := host("OPEN.example:8443")
	page := r.get("/", nobody, at).want(http.StatusOK)
	for _, want := range []string{"Open name", `href="/service/weather"`, `href="/feed.atom"`, `<link rel="canonical" href="http://open.example/">`, `action="/subscribe"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page at its domain does not hold %q:\n%s", want, page.body)
		}
	}
	if strings.Contains(page.body, "/p/open") || strings.Contains(page.body, "Log in") {
		t.Error("the page at its domain leads elsewhere")
	}
	for _, path := range []string{"/service/weather", "/feed.atom", "/feed.json", "/api/v2/summary.json", "/llms.txt", "/robots.txt", "/static/app.css", "/favicon.ico"} {
		r.get(path, nobody, at).want(http.StatusOK)
	}
	if feed := r.get("/feed.atom", nobody, at).body; !strings.Contains(feed, "http://open.example/") || strings.Contains(feed, "/p/open") {
		t.Errorf("feed at the domain:\n%s", feed)
	}
	for _, path := range []string{"/login", "/setup", "/pages", "/endpoints/new", "/status", "/p/open", "/p/locked", "/api/v1/endpoints", "/api/v1/status", "/healthz", "/metrics", "/badge/weather/status.svg"} {
		reply := r.get(path, at, r.loggedIn())
		if reply.status != http.StatusNotFound || reply.header.Get("Set-Cookie") != "" || strings.Contains(reply.body, "Log in") {
			t.Errorf("%s at the domain of a page: %d, %v", path, reply.status, reply.header)
		}
	}
	if got := r.form("/login", url.Values{"name": {"ada"}, "password": {"x"}}, at).want(http.StatusNotFound); got.header.Get("Set-Cookie") != "" {
		t.Error("a cookie was set")
	}
	r.get("/", nobody, host("other.example")).want(http.StatusSeeOther)
	r.ask("PATCH", "/api/v1/pages/open", `{"domain": "elsewhere.example"}`).want(http.StatusOK)
	r.get("/", nobody, at).want(http.StatusSeeOther)
	r.get("/", nobody, host("elsewhere.example")).want(http.StatusSeeOther)
	reply := r.prove("open").want(http.StatusConflict)
	if !strings.Contains(reply.body, "there is no TXT record") || !strings.Contains(reply.body, "_rollcall.elsewhere.example") {
		t.Errorf("a domain that is not ours: %s", reply.body)
	}
}

func TestADomainIsLookedAtByREST(t *testing.T) {
	r := start(t, withDomains("mine.example"))
	r.page(`{"slug": "mine", "name": "Mine", "domain": "mine.example"}`)
	r.page(`{"slug": "theirs", "name": "Theirs", "domain": "theirs.example"}`)
	r.page(`{"slug": "bare", "name": "Bare"}`)
	r.get("/", nobody, host("mine.example")).want(http.StatusSeeOther)
	got := r.ask("POST", "/api/v1/pages/mine/check", "").want(http.StatusOK).object()
	if got["slug"] != "mine" || got["domain_proven_at"] == nil {
		t.Errorf("the page is %v", got)
	}
	r.get("/", nobody, host("mine.example")).want(http.StatusOK)
	for slug, words := range map[string]string{"theirs": "there is no TXT record", "bare": "there is nothing to check"} {
		reply := r.ask("POST", "/api/v1/pages/"+slug+"/check", "").want(http.StatusConflict)
		if diff := cmp.Diff(reply.mistakes(), []string{"domain"}); diff != "" || !strings.Contains(reply.body, words) {
			t.Errorf("%s: %s", slug, reply.body)
		}
	}
	r.get("/", nobody, host("theirs.example")).want(http.StatusSeeOther)
	r.ask("POST", "/api/v1/pages/none/check", "").want(http.StatusNotFound)
}

func TestSearchEnginesAreToldWhereToLook(t *testing.T) {
	r := secretPage(t)
	r.page(`{"slug": "hidden", "name": "Hidden", "hide_from_search": true}`)
	want := "User-agent: *\nAllow: /llms.txt\nAllow: /p/open$\nAllow: /p/open/\nAllow: /static/\nAllow: /status\nDisallow: /\n"
	if diff := cmp.Diff(r.get("/robots.txt", nobody).want(http.StatusOK).body, want); diff != "" {
		t.Errorf("robots.txt (-got +want):\n%s", diff)
	}
	if got := r.get("/robots.txt", nobody, host("open.example")).body; got != "User-agent: *\nAllow: /\n" {
		t.Errorf("robots.txt at the domain of a page: %q", got)
	}
	r.get("/p/open/robots.txt", nobody).want(http.StatusNotFound)
	hidden := r.get("/p/hidden", nobody).want(http.StatusOK)
	if hidden.header.Get("X-Robots-Tag") != "noindex, nofollow" || !strings.Contains(hidden.body, `name="robots" content="noindex, nofollow"`) {
		t.Error("a hidden page does not ask to be passed over")
	}
	text := r.get("/llms.txt", nobody).want(http.StatusOK)
	if !strings.Contains(text.body, "- [Weather](http://rollcall.example/status/weather): pending") || !strings.Contains(text.body, "/api/v2/summary.json") {
		t.Errorf("llms.txt:\n%s", text.body)
	}
}

func TestAHostilePageStaysText(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://weather.example/mcp", "name": "](javascript:alert(1)) <b>", "tags": ["x"]}`)
	name, err := json.Marshal("\u202e<script>alert(1)</script>](x)")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(strings.Repeat("<img src=x onerror=alert(1)>\n# ", 100))
	if err != nil {
		t.Fatal(err)
	}
	r.page(fmt.Sprintf(`{"slug": "a", "name": %s, "text": %s, "accent": "#ffffff", "sections": [{"title": %s, "tags": ["x"]}]}`, name, text, name))
	for _, path := range []string{"/p/a", "/p/a/subscribe", "/pages", "/pages/a"} {
		body := r.get(path, r.loggedIn()).body
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") {
			t.Errorf("%s holds markup that somebody typed", path)
		}
	}
	if got := r.get("/p/a/llms.txt", nobody).want(http.StatusOK).body; !strings.Contains(got, `- [\](javascript:alert(1)) \<b>](http`) || !strings.Contains(got, `\<script>alert(1)\</script>\](x)`) {
		t.Errorf("llms.txt holds markup that somebody typed:\n%s", got)
	}
	css := r.get("/p/a/accent.css", nobody).want(http.StatusOK)
	if !strings.HasPrefix(css.body, ":root { --accent: light-dark(#") || css.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("accent.css: %v %s", css.header, css.body)
	}
}

func TestTheFormOfAPageWorksWithoutAScript(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://weather.example/mcp", "name": "Weather"}`)
	login := r.loggedIn()
	typed := url.Values{
		"name": {"ACME"}, "sections": {"2"}, "sections[0].title": {"First"}, "sections[0].endpoints": {"weather"}, "sections[1].title": {"Second"},
		"sections[1].tags": {"prod"}, "locked": {"yes"}, "password": {"correct horse"},
	}
	act := func(action string) string {
		typed.Set("action", action)
		return r.form("/pages/new", typed, login).want(http.StatusOK).body
	}
	if body := act("down-0"); strings.Index(body, `value="Second"`) > strings.Index(body, `value="First"`) {
		t.Error("the sections have not changed places")
	}
	if body := act("add"); !strings.Contains(body, `name="sections[2].title"`) {
		t.Error("no section was added")
	}
	if body := act("remove-1"); strings.Contains(body, `value="Second"`) {
		t.Error("no section was removed")
	}
	typed.Set("action", "save")
	if got := r.form("/pages/new", typed, login).want(http.StatusSeeOther).header.Get("Location"); got != "/pages/acme?done=saved" {
		t.Errorf("saved, and on to %q", got)
	}

	var body strings.Builder
	w := multipart.NewWriter(&body)
	for name, value := range map[string]string{"name": "Acme", "sections": "1", "sections[0].tags": "prod", "locked": "yes", "action": "save"} {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	file, err := w.CreateFormFile("logo", "logo.png")
	if err != nil {
		t.Fatal(err)
	}
	file.Write(storetest.Logo(t)) //nolint:errcheck // into memory
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r.ask("POST", "/pages/acme", body.String(), nobody, login, header("Content-Type", w.FormDataContentType()), header("Sec-Fetch-Site", "same-origin")).want(http.StatusSeeOther)
	kept, err := r.store.StatusPage(t.Context(), "acme")
	if err != nil || kept.Name != "Acme" || kept.LogoType != "image/png" || kept.Public() || len(kept.Sections) != 1 {
		t.Errorf("kept %+v, %v", kept, err)
	}
	bad := r.form("/pages/acme", url.Values{"name": {""}, "accent": {"red"}, "action": {"save"}}, login).want(http.StatusUnprocessableEntity)
	if !strings.Contains(bad.body, `href="#f-name"`) || !strings.Contains(bad.body, `href="#f-accent"`) || strings.Contains(bad.body, "correct horse") {
		t.Errorf("mistakes: %s", bad.body)
	}
	if ask := r.form("/pages/acme", url.Values{"action": {"delete"}}, login).want(http.StatusOK); !strings.Contains(ask.body, "Delete Acme?") {
		t.Error("nobody asks whether it is meant")
	}
	r.form("/pages/acme", url.Values{"action": {"delete"}, "confirmed": {"yes"}}, login).want(http.StatusSeeOther)
	r.get("/pages/acme", login, nobody).want(http.StatusNotFound)
	r.form("/pages/new", url.Values{}, login).want(http.StatusBadRequest)
}

// What matters most to those who read a page stands first.
func TestASectionKeepsItsOrder(t *testing.T) {
	r := start(t)
	for _, name := range []string{"Apple", "Banana", "Cherry", "Date"} {
		r.register(`{"url": "https://` + strings.ToLower(name) + `.example/mcp", "name": "` + name + `", "tags": ["fruit"]}`)
	}
	r.page(`{"slug": "shop", "name": "Shop", "sections": [{"endpoints": ["cherry", "apple"], "tags": ["fruit"]}]}`)
	if got := fmt.Sprint(r.get("/api/v1/pages/shop").object()["sections"]); !strings.Contains(got, "[cherry apple]") {
		t.Errorf("the answer has %s", got)
	}
	order := func() string {
		t.Helper()
		var names []string
		for _, found := range regexp.MustCompile(`href="/p/shop/service/(\w+)"`).FindAllStringSubmatch(r.get("/p/shop", nobody).want(http.StatusOK).body, -1) {
			if !slices.Contains(names, found[1]) {
				names = append(names, found[1])
			}
		}
		return strings.Join(names, " ")
	}
	if got := order(); got != "cherry apple banana date" {
		t.Errorf("the page shows %s", got)
	}

	login := r.loggedIn()
	shown := r.get("/pages/shop", login, nobody).want(http.StatusOK).body
	for place, slug := range []string{"cherry", "apple"} {
		if want := fmt.Sprintf(`name="sections[0].endpoints_at.%s" value="%d"`, slug, place+1); !strings.Contains(shown, want) {
			t.Errorf("the form lacks %s", want)
		}
	}
	typed := url.Values{
		"name": {"Shop"}, "sections": {"1"}, "action": {"save"}, "sections[0].endpoints": {"cherry", "apple", "date"},
		"sections[0].endpoints_at.cherry": {"2"}, "sections[0].endpoints_at.apple": {"1.5"},
	}
	r.form("/pages/shop", typed, login).want(http.StatusSeeOther)
	if got := order(); got != "apple cherry date" {
		t.Errorf("once it is saved the page shows %s", got)
	}
	for _, bad := range []string{"first", "NaN"} {
		typed.Set("sections[0].endpoints_at.apple", bad)
		if again := r.form("/pages/shop", typed, login).want(http.StatusUnprocessableEntity); !strings.Contains(again.body, "have places that are numbers") {
			t.Errorf("place %q: %s", bad, again.body)
		}
	}
}

func TestWhoeverReadsAPageChoosesHowItLooks(t *testing.T) {
	r := secretPage(t)
	for path, at := range map[string]struct {
		host         option
		action, back string
	}{
		"/p/open":                 {host("rollcall.example"), "/p/open/preferences", "/p/open"},
		"/p/open/service/weather": {host("rollcall.example"), "/p/open/preferences", "/p/open/service/weather"},
		"/":                       {host("open.example"), "/preferences", "/"},
		"/service/weather":        {host("open.example"), "/preferences", "/service/weather"},
		"/p/locked":               {host("rollcall.example"), "/p/locked/preferences", "/p/locked"},
	} {
		page := r.get(path, nobody, at.host).want(http.StatusOK).body
		if !strings.Contains(page, `action="`+at.action+`"`) || !strings.Contains(page, `name="back" value="`+at.back+`"`) {
			t.Errorf("%s has no choice that leads back to it:\n%s", path, page)
		}
		chosen := r.form(at.action, url.Values{"theme": {"dark"}, "language": {"de"}, "back": {at.back}}, at.host).want(http.StatusSeeOther)
		if got := chosen.header.Get("Location"); got != at.back {
			t.Errorf("%s: a choice leads to %s", path, got)
		}
		with := []option{nobody, at.host}
		for _, text := range chosen.header.Values("Set-Cookie") {
			cookie, err := http.ParseSetCookie(text)
			if err != nil {
				t.Fatal(err)
			}
			with = append(with, withCookie(cookie))
		}
		if page := r.get(path, with...).want(http.StatusOK).body; !strings.Contains(page, `<html lang="de"`) || !strings.Contains(page, `data-theme="dark"`) {
			t.Errorf("%s does not look as chosen:\n%s", path, page[:200])
		}
	}
}
