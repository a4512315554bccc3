package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// password is what whoever sets up a server chooses.
const password = "correct horse battery"

func TestStrangersAreSentToTheLogin(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.logout()
	for _, path := range []string{"/", "/endpoints/new", "/endpoints/x", "/endpoints/x/edit", "/endpoints/x/checks/y", "/incidents", "/incidents/new", "/incidents/x", "/maintenance", "/maintenance/new", "/maintenance/x", "/subscriptions", "/channels", "/channels/x"} {
		got := s.get(path)
		if location := got.header.Get("Location"); got.status != http.StatusSeeOther || !strings.HasPrefix(location, "/login") {
			t.Errorf("GET %s: got %d to %q, want 303 to /login", path, got.status, location)
		}
	}
	for _, path := range []string{"/endpoints/new", "/endpoints/x", "/incidents/new", "/incidents/x", "/maintenance/new", "/subscriptions", "/channels"} {
		if got := s.post(path, url.Values{"action": {"save"}}); got.status != http.StatusSeeOther {
			t.Errorf("POST %s: got %d, want 303", path, got.status)
		}
	}
}

func TestSetupLinkWorksOnce(t *testing.T) {
	s := newSite(t)
	if got := s.get("/setup"); got.status != http.StatusForbidden || !strings.Contains(got.text, "The service printed a link") {
		t.Errorf("without a token: got %d and %q", got.status, got.text)
	}
	if got := s.get("/setup?token=wrong"); got.status != http.StatusForbidden || !strings.Contains(got.text, "does not work") {
		t.Errorf("with a wrong token: got %d and %q", got.status, got.text)
	}
	link := s.setupLink()
	if got := s.get(link); got.status != http.StatusOK || got.field("token") == "" {
		t.Fatalf("with the link: got %d and %q", got.status, got.text)
	}
	token := s.get(link).field("token")
	short := s.post("/setup", url.Values{"token": {token}, "name": {"ada"}, "password": {"short"}})
	if short.status != http.StatusUnprocessableEntity || short.field("name") != "ada" || !strings.Contains(short.text, "at least 12 characters") {
		t.Errorf("with a short password: got %d, name %q and %q", short.status, short.field("name"), short.text)
	}
	if strings.Contains(short.body, `"short"`) {
		t.Error("the page repeats the password")
	}
	done := s.post("/setup", url.Values{"token": {token}, "name": {"ada"}, "password": {password}})
	if done.status != http.StatusSeeOther || done.header.Get("Location") != "/" {
		t.Fatalf("setting up: got %d to %q", done.status, done.header.Get("Location"))
	}
	if got := s.get("/"); got.status != http.StatusOK {
		t.Errorf("whoever set it up is not logged in: got %d", got.status)
	}
	if got := s.get(link); got.status != http.StatusForbidden || !strings.Contains(got.text, "used the setup link already") {
		t.Errorf("the link again: got %d and %q", got.status, got.text)
	}
}

// With an admin token, a start prints no setup link: telling somebody to restart would send them in circles.
func TestTheWayInIsOneThatWorks(t *testing.T) {
	for name, test := range map[string]struct {
		token     string
		say, hush string
	}{
		"without an admin token": {"", "service prints a fresh one|service to get a fresh link", "ROLLCALL_ADMIN_TOKEN"},
		"with an admin token":    {adminToken, "once without ROLLCALL_ADMIN_TOKEN to get", "estart"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(c *api.Config) { c.AdminToken = test.token })
			say := regexp.MustCompile(test.say)
			for path, status := range map[string]int{"/setup": 403, "/setup?token=wrong": 403, "/login": 200} {
				got := r.get(path, nobody).want(status).body
				if !say.MatchString(got) || strings.Contains(got, test.hush) {
					t.Errorf("%s does not say %q, or says %q:\n%s", path, test.say, test.hush, got)
				}
			}
			form := "token=wrong&name=ada&password=" + url.QueryEscape(password)
			got := r.ask("POST", "/setup", form, nobody, header("Content-Type", "application/x-www-form-urlencoded")).want(403).body
			if !say.MatchString(got) || strings.Contains(got, test.hush) {
				t.Errorf("a form with a wrong token: %s", got)
			}
		})
	}
}

func TestLogin(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.logout()
	wrong := s.post("/login", url.Values{"name": {"ada"}, "password": {"wrong horse battery"}, "next": {"/incidents"}})
	if wrong.status != http.StatusUnauthorized || wrong.field("name") != "ada" || wrong.field("next") != "/incidents" {
		t.Errorf("wrong password: got %d, name %q, next %q", wrong.status, wrong.field("name"), wrong.field("next"))
	}
	right := s.post("/login", url.Values{"name": {"ada"}, "password": {password}, "next": {"/incidents"}})
	if right.status != http.StatusSeeOther || right.header.Get("Location") != "/incidents" {
		t.Errorf("right password: got %d to %q, want 303 to /incidents", right.status, right.header.Get("Location"))
	}
	if got := s.get("/incidents"); got.status != http.StatusOK {
		t.Errorf("after the login: got %d, want 200", got.status)
	}
	s.logout()
	if got := s.get("/incidents"); got.status != http.StatusSeeOther {
		t.Errorf("after the logout: got %d, want 303", got.status)
	}
}

func TestLoginLeadsNowhereElse(t *testing.T) {
	s := newSite(t)
	s.setUp()
	for _, next := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, "javascript:alert(1)"} {
		got := s.get("/login?" + url.Values{"next": {next}}.Encode())
		if location := got.header.Get("Location"); location != "/" {
			t.Errorf("next=%q leads to %q, want /", next, location)
		}
	}
}

// endpointForm is what a browser sends when only the URL was typed.
func endpointForm(action, target string) url.Values {
	return url.Values{
		"action": {action}, "url": {target}, "name": {""}, "kind": {"auto"}, "method": {""}, "params": {""},
		"header_name_0": {""}, "header_value_0": {""}, "header_secret_0": {"yes"},
		"schedule": {"@every 60s"}, "timeout": {"15s"}, "degraded_over": {"5s"},
		"failures": {"2"}, "successes": {"1"}, "after": {"5s"}, "tags": {""},
	}
}

func with(form url.Values, pairs ...string) url.Values {
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

func TestMistakesAreNamedAndNothingTypedIsLost(t *testing.T) {
	s := newSite(t)
	s.setUp()
	typed := with(endpointForm("save", "ftp://weather.example/x"),
		"name", "Weather “east”", "kind", "jsonrpc", "method", "", "params", "{oops",
		"header_name_0", "Bad Name", "header_value_0", "s3cret",
		"header_name_1", "X-Team", "header_value_1", "core",
		"schedule", "every minute", "timeout", "soon", "degraded_over", "-1s",
		"failures", "many", "successes", "0", "after", "0s", "tags", "prod,prod", "channels", "ch_none", "public", "yes")
	got := s.post("/endpoints/new", typed)
	if got.status != http.StatusUnprocessableEntity {
		t.Fatalf("got status %d, want 422: %s", got.status, got.text)
	}
	for name := range typed {
		switch name {
		case "action", "channels", "header_secret_0", "public":
			continue
		}
		if value := got.field(name); value != typed.Get(name) {
			t.Errorf("field %s holds %q, want %q", name, value, typed.Get(name))
		}
	}
	if !got.checked("public") || !got.checked("header_secret_0") || got.checked("header_secret_1") {
		t.Error("the boxes that were ticked are not those that are ticked")
	}
	for _, id := range []string{
		"f-url", "f-request-params", "f-headers-0-name", "f-schedule", "f-timeout", "f-degraded-over",
		"f-confirm-failures", "f-confirm-successes", "f-confirm-after", "f-tags", "f-channels",
	} {
		if !strings.Contains(got.body, `href="#`+id+`"`) {
			t.Errorf("the summary does not lead to #%s", id)
		}
	}
	if n := strings.Count(got.body, "s3cret"); n != 1 || got.kind("header_value_0") != "password" {
		t.Errorf("the secret stands %d times on the page, in a field of type %q: want once, password", n, got.kind("header_value_0"))
	}
	if page, err := s.store.Endpoints(t.Context(), store.EndpointFilter{}); err != nil || len(page.Items) != 0 {
		t.Errorf("%d endpoints were kept (%v), want none", len(page.Items), err)
	}
}

func TestFailingTestIsShownAndCanBeSavedAllTheSame(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.answer(failing())
	typed := with(endpointForm("test", "https://weather.example/mcp"),
		"name", "Weather", "header_name_0", "Authorization", "header_value_0", "Bearer s3cret", "tags", "prod, eu", "public", "yes")
	tested := s.post("/endpoints/new", typed)
	if tested.status != http.StatusOK {
		t.Fatalf("test: got status %d: %s", tested.status, tested.text)
	}
	for _, want := range []string{"tools/list", "-32603", "upstream <gone>", "rpc_error", "Down", "149 ms"} {
		if !strings.Contains(tested.text, want) {
			t.Errorf("the result of the test does not show %q", want)
		}
	}
	if got := s.lastTarget().Headers; len(got) != 1 || got[0].Value != "Bearer s3cret" {
		t.Errorf("probed with headers %v, want the one that was typed", got)
	}
	if page, err := s.store.Endpoints(t.Context(), store.EndpointFilter{}); err != nil || len(page.Items) != 0 {
		t.Fatalf("a test kept %d endpoints (%v)", len(page.Items), err)
	}
	for name := range typed {
		if name != "action" && !tested.checked(name) && tested.field(name) != typed.Get(name) {
			t.Errorf("after the test, field %s holds %q, want %q", name, tested.field(name), typed.Get(name))
		}
	}

	saved := s.post("/endpoints/new", with(typed, "action", "save"))
	if saved.status != http.StatusSeeOther || saved.header.Get("Location") != "/endpoints/weather?done=registered" {
		t.Fatalf("save: got %d to %q", saved.status, saved.header.Get("Location"))
	}
	o, err := s.store.Endpoint(t.Context(), "weather")
	if err != nil {
		t.Fatal(err)
	}
	if o.Name != "Weather" || !o.Public || strings.Join(o.Tags, "|") != "prod|eu" || o.Headers[0].Value != "Bearer s3cret" || !o.Headers[0].Secret {
		t.Errorf("kept %+v", o.Endpoint)
	}
	if page := s.get("/endpoints/weather"); page.status != http.StatusOK || strings.Contains(page.body, "s3cret") {
		t.Errorf("endpoint page: status %d, secret shown: %v", page.status, strings.Contains(page.body, "s3cret"))
	}
}

func TestEditKeepsWhatIsNotShown(t *testing.T) {
	s := newSite(t)
	s.setUp()
	const target = "https://node.example/v1/4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"
	s.mustRegister(with(endpointForm("save", target), "name", "Node", "header_name_0", "X-Key", "header_value_0", "s3cret"))

	page := s.get("/endpoints/node/edit")
	if strings.Contains(page.body, "s3cret") || strings.Contains(page.body, "4f9a8b7c") {
		t.Fatal("the form shows a secret")
	}
	if got := page.field("url"); !strings.HasPrefix(got, "https://node.example/v1/") {
		t.Fatalf("the form shows the URL as %q", got)
	}
	typed := with(endpointForm("save", page.field("url")), "name", "Archive node", "header_name_0", "X-Key", "timeout", "10s")
	if got := s.post("/endpoints/node/edit", typed); got.status != http.StatusSeeOther {
		t.Fatalf("save: got %d: %s", got.status, got.text)
	}
	o, err := s.store.Endpoint(t.Context(), "node")
	if err != nil {
		t.Fatal(err)
	}
	if o.URL != target || len(o.Headers) != 1 || o.Headers[0].Value != "s3cret" || o.Name != "Archive node" || o.Timeout != 10*time.Second {
		t.Errorf("kept %+v", o.Endpoint)
	}

	s.answer(good())
	if got := s.post("/endpoints/node/edit", with(typed, "action", "test")); got.status != http.StatusOK || !strings.Contains(got.text, "It answers as it should") {
		t.Errorf("test of the edit: got %d: %s", got.status, got.text)
	}
	if got := s.lastTarget(); got.URL != target || got.Headers[0].Value != "s3cret" {
		t.Error("the test did not use what is kept")
	}
	if got := s.post("/endpoints/node/edit", with(typed, "action", "save", "header_name_0", "")); got.status != http.StatusSeeOther {
		t.Fatalf("dropping the header: got %d", got.status)
	}
	if o, err = s.store.Endpoint(t.Context(), "node"); err != nil || len(o.Headers) != 0 {
		t.Errorf("the dropped header is still there: %v, %v", o.Headers, err)
	}
}

func TestASecretIsAskedForAgainBesideItsFieldWhenTheAddressChanges(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://node.example/v1"), "name", "Node", "header_name_0", "X-Key", "header_value_0", "s3cret"))
	s.answer(good())

	typed := with(endpointForm("save", "https://evil.example/v1"), "name", "Elsewhere",
		"header_name_0", "X-Team", "header_value_0", "core", "header_name_1", "X-Key", "header_secret_1", "yes")
	for _, action := range []string{"test", "save"} {
		got := s.post("/endpoints/node/edit", with(typed, "action", action))
		if got.status != http.StatusUnprocessableEntity {
			t.Fatalf("%s: got status %d, want 422: %s", action, got.status, got.text)
		}
		if !strings.Contains(got.body, `href="#f-headers-1-value"`) || attribute(got.control("header_value_1"), "aria-invalid") != "true" ||
			strings.Count(got.text, "is required again because the address changes") != 2 {
			t.Errorf("%s: the mistake does not stand beside the field and in the summary: %s", action, got.text)
		}
		for _, name := range []string{"url", "name", "header_name_0", "header_value_0", "header_name_1"} {
			if value := got.field(name); value != typed.Get(name) {
				t.Errorf("%s: field %s holds %q, want %q", action, name, value, typed.Get(name))
			}
		}
		if strings.Contains(got.body, "s3cret") {
			t.Errorf("%s: the page shows the secret", action)
		}
	}
	if got := s.lastTarget(); got.URL != "" {
		t.Errorf("%s was probed with what is kept", got.URL)
	}
	if got := s.post("/endpoints/node/edit", with(typed, "action", "save", "header_value_1", "another")); got.status != http.StatusSeeOther {
		t.Errorf("with the value typed again: got %d: %s", got.status, got.text)
	}

	if got := s.post("/channels", url.Values{"type": {"slack"}, "name": {"ops"}, "bot_token": {"xoxb-s3cret"}, "channel": {"#a"}}); got.status != http.StatusSeeOther {
		t.Fatalf("add a channel: got %d: %s", got.status, got.text)
	}
	path := s.get("/channels").link("/channels/ch_")
	got := s.post(path, url.Values{"action": {"save"}, "name": {"chat"}, "bot_token": {""}, "channel": {"#b"}, "api_url": {"https://evil.example/api/"}})
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `href="#f-bot-token"`) ||
		got.field("api_url") != "https://evil.example/api/" || got.field("name") != "chat" || got.field("channel") != "#b" {
		t.Errorf("a channel that moves: got %d: %s", got.status, got.text)
	}
}

func TestEndpointIsPausedResumedCheckedAndDeleted(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	press := func(action, done string) {
		t.Helper()
		got := s.post("/endpoints/weather", url.Values{"action": {action}})
		if want := "/endpoints/weather?done=" + done; got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Fatalf("%s: got %d to %q, want 303 to %q", action, got.status, got.header.Get("Location"), want)
		}
	}
	press("pause", "paused")
	if page := s.get("/endpoints/weather?done=paused"); !strings.Contains(page.text, "It is not checked") || !strings.Contains(page.text, "Resume") {
		t.Errorf("a paused endpoint's page says: %s", page.text)
	}
	press("resume", "resumed")
	s.answer(good())
	press("check", "checked")
	page := s.get("/endpoints/weather")
	for _, want := range []string{"weather-mcp", "2025-11-25", "Answers as it should", "84 ms", "initialize"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("after a check the page does not say %q", want)
		}
	}
	asked := s.post("/endpoints/weather", url.Values{"action": {"delete"}})
	if asked.status != http.StatusOK || !strings.Contains(asked.text, "Delete Weather?") || asked.field("confirmed") != "yes" {
		t.Fatalf("delete: got %d: %s", asked.status, asked.text)
	}
	if _, err := s.store.Endpoint(t.Context(), "weather"); err != nil {
		t.Fatalf("it was deleted without being confirmed: %v", err)
	}
	if got := s.post("/endpoints/weather", url.Values{"action": {"delete"}, "confirmed": {"yes"}}); got.status != http.StatusSeeOther {
		t.Fatalf("confirmed delete: got %d", got.status)
	}
	if got := s.get("/endpoints/weather"); got.status != http.StatusNotFound || !strings.Contains(got.body, "<!doctype html>") {
		t.Errorf("the page of a deleted endpoint: got %d", got.status)
	}
	if got := s.post("/endpoints/weather", url.Values{"action": {"explode"}}); got.status != http.StatusBadRequest {
		t.Errorf("an unknown action: got %d, want 400", got.status)
	}
}

func TestChecksAndIncidentsCanBeRead(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	s.answer(good())
	s.post("/endpoints/weather", url.Values{"action": {"check"}})
	s.answer(failing())
	s.post("/endpoints/weather", url.Values{"action": {"check"}})

	overview := s.get("/")
	if !strings.Contains(overview.text, "1 endpoint is down") || !strings.Contains(overview.text, "upstream <gone>") {
		t.Errorf("the overview says: %s", overview.text)
	}
	incidents := s.get("/incidents")
	link := incidents.link("/incidents/inc_")
	if link == "" || !strings.Contains(incidents.text, "Weather down for") {
		t.Fatalf("the incidents say: %s", incidents.text)
	}
	if incident := s.get(link); incident.status != http.StatusOK || !strings.Contains(incident.text, "Still going on") || !strings.Contains(incident.text, "Confirmed") {
		t.Errorf("the incident: got %d: %s", incident.status, incident.text)
	}
	checks := s.get("/endpoints/weather?verdict=down")
	link = checks.link("/endpoints/weather/checks/chk_")
	if link == "" {
		t.Fatalf("no check is listed: %s", checks.text)
	}
	check := s.get(link)
	for _, want := range []string{"tools/list", "-32603", "upstream <gone>", "200 where 202 is due", "first byte 148 ms"} {
		if !strings.Contains(check.text, want) {
			t.Errorf("the check's page does not say %q", want)
		}
	}
	other := strings.Replace(link, "weather", "elsewhere", 1)
	if got := s.get(other); got.status != http.StatusNotFound {
		t.Errorf("the check under another endpoint: got %d, want 404", got.status)
	}
	s.answer(good())
	s.post("/endpoints/weather", url.Values{"action": {"check"}})
	if incidents := s.get("/incidents"); !strings.Contains(incidents.text, "Nothing is down") || !strings.Contains(incidents.text, "Resolved") {
		t.Errorf("after the recovery the incidents say: %s", incidents.text)
	}
}

func TestOverviewIsSearchedAndPaged(t *testing.T) {
	s := newSite(t)
	s.setUp()
	if got := s.get("/"); !strings.Contains(got.text, "Nothing is watched yet") {
		t.Errorf("an empty overview says: %s", got.text)
	}
	for i := range store.DefaultLimit + 3 {
		s.mustRegister(with(endpointForm("save", fmt.Sprintf("https://n%02d.example/mcp", i)), "name", fmt.Sprintf("node %02d", i), "tags", []string{"odd", "even"}[i%2]))
	}
	first := s.get("/")
	next := first.link("/?page=")
	if next == "" || strings.Contains(first.text, "node 52") {
		t.Fatalf("the first page does not end before the last endpoint; next page %q", next)
	}
	if second := s.get(next); !strings.Contains(second.text, "node 52") || strings.Contains(second.text, "node 01") {
		t.Errorf("the second page says: %s", second.text)
	}
	found := s.get("/?q=NODE+07&status=pending&tag=even")
	if !strings.Contains(found.text, "node 07") || strings.Contains(found.text, "node 08") || found.field("q") != "NODE 07" {
		t.Errorf("searching says: %s", found.text)
	}
	if got := s.get("/?q=zebra"); !strings.Contains(got.text, "No endpoint matches") {
		t.Errorf("searching for nothing says: %s", got.text)
	}
	for _, path := range []string{"/?status=broken", "/?page=%00", "/?page=0", "/?sort=size", "/?group=x", "/?kind=x"} {
		if got := s.get(path); got.status != http.StatusBadRequest {
			t.Errorf("GET %s: got %d, want 400", path, got.status)
		}
	}
	if got := s.get("/?utm_source=mail"); got.status != http.StatusOK {
		t.Errorf("a stray parameter: got %d, want 200", got.status)
	}
}

func TestChannelsAreAddedTestedAndDeleted(t *testing.T) {
	s := newSite(t)
	s.setUp()
	const hook = "https://hooks.example/services/T0/B0/s3cret"
	bad := s.post("/channels", url.Values{"type": {"slack"}, "name": {""}, "bot_token": {"xoxb-s3cret"}})
	if bad.status != http.StatusUnprocessableEntity || bad.field("bot_token") != "xoxb-s3cret" || bad.kind("bot_token") != "password" {
		t.Errorf("mistakes: got %d, token %q", bad.status, bad.field("bot_token"))
	}
	for _, id := range []string{"f-name", "f-channel"} {
		if !strings.Contains(bad.body, `href="#`+id+`"`) {
			t.Errorf("the summary does not lead to #%s", id)
		}
	}
	if got := s.post("/channels", url.Values{"type": {"slack"}, "name": {"ops"}, "webhook_url": {hook}}); got.status != http.StatusSeeOther {
		t.Fatalf("add: got %d: %s", got.status, got.text)
	}
	list := s.get("/channels")
	path := list.link("/channels/ch_")
	if path == "" || strings.Contains(list.body, "s3cret") {
		t.Fatalf("the list has no link to the channel, or shows its secret")
	}
	s.testError = errors.New("slack answered: channel_is_archived")
	if got := s.post(path, url.Values{"action": {"test"}}); !strings.Contains(got.text, "did not arrive") || !strings.Contains(got.text, "channel_is_archived") {
		t.Errorf("a failing test says: %s", got.text)
	}
	s.testError = nil
	if got := s.post(path, url.Values{"action": {"test"}}); !strings.Contains(got.text, "was accepted") {
		t.Errorf("a good test says: %s", got.text)
	}
	if got := s.post(path, url.Values{"action": {"save"}, "name": {"oncall"}, "webhook_url": {""}}); got.status != http.StatusSeeOther {
		t.Fatalf("save: got %d: %s", got.status, got.text)
	}
	channel, err := s.store.Channel(t.Context(), strings.TrimPrefix(path, "/channels/"))
	if err != nil || channel.Name != "oncall" || channel.Secrets["webhook_url"] != hook {
		t.Errorf("kept %q with its secret unchanged: %v, %v", channel.Name, channel.Secrets["webhook_url"] == hook, err)
	}
	if got := s.post(path, url.Values{"action": {"delete"}}); !strings.Contains(got.text, "Delete oncall?") {
		t.Errorf("delete asks: %s", got.text)
	}
	if got := s.post(path, url.Values{"action": {"delete"}, "confirmed": {"yes"}}); got.status != http.StatusSeeOther {
		t.Errorf("confirmed delete: got %d", got.status)
	}
	if got := s.get(path); got.status != http.StatusNotFound {
		t.Errorf("the page of a deleted channel: got %d, want 404", got.status)
	}
}

func TestStatusPageShowsNothingPrivate(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://inner.host.example/mcp"), "name", "Weather", "public", "yes", "tags", "internal-tag"))
	s.mustRegister(with(endpointForm("save", "https://cellar.example/mcp"), "name", "Cellar"))
	s.answer(failing())
	for _, slug := range []string{"weather", "cellar"} {
		s.post("/endpoints/"+slug, url.Values{"action": {"check"}})
	}
	s.logout()
	for _, path := range []string{"/status", "/status/weather"} {
		got := s.get(path)
		if got.status != http.StatusOK || !strings.Contains(got.text, "Weather") || !strings.Contains(got.text, "Down") || !strings.Contains(got.text, "has been down for") {
			t.Errorf("GET %s: got %d: %s", path, got.status, got.text)
		}
		for _, private := range []string{"inner.host", "rpc_error", "-32603", "upstream", "JSON-RPC", "tools/list", "internal-tag", "Cellar", "cellar", ">ada<"} {
			if strings.Contains(got.body, private) {
				t.Errorf("GET %s shows %q", path, private)
			}
		}
	}
	hidden, missing := s.get("/status/cellar"), s.get("/status/missing")
	if hidden.status != http.StatusNotFound || hidden.text != missing.text {
		t.Errorf("a private endpoint and none at all can be told apart: %d %q, %d %q", hidden.status, hidden.text, missing.status, missing.text)
	}
}

func TestNothingHere(t *testing.T) {
	s := newSite(t)
	s.setUp()
	for _, path := range []string{"/static/nothing.js", "/static/..%2fweb.go", "/incidents/inc_x", "/maintenance/mnt_x", "/channels/ch_x", "/endpoints/x/edit"} {
		got := s.get(path)
		if got.status != http.StatusNotFound || !strings.Contains(got.body, "<!doctype html>") {
			t.Errorf("GET %s: got %d, want a page with 404", path, got.status)
		}
	}
	if got := s.get("/static/app.css"); got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/css") {
		t.Errorf("GET /static/app.css: got %d, %q", got.status, got.header.Get("Content-Type"))
	}
	s.logout() // browsers ask for it beside whatever they show
	if got := s.get("/favicon.ico"); got.status != http.StatusOK || got.header.Get("Content-Type") != "image/vnd.microsoft.icon" {
		t.Errorf("GET /favicon.ico: got %d, %q", got.status, got.header.Get("Content-Type"))
	}
}

func good() probe.Result {
	tools := 13
	return probe.Result{
		Duration: 84 * time.Millisecond, Kind: probe.KindMCP, Era: probe.EraLegacy, Verdict: probe.Up,
		Steps: []probe.Step{{Name: "initialize", Method: "initialize", Latency: 52 * time.Millisecond, HTTPStatus: 200}},
		Facts: probe.Facts{ServerName: "weather-mcp", ServerVersion: "2.4.1", ProtocolVersion: "2025-11-25", Tools: &tools},
	}
}

func failing() probe.Result {
	f := probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "upstream <gone>"}
	return probe.Result{
		Duration: 214 * time.Millisecond, Kind: probe.KindMCP, Era: probe.EraLegacy, Verdict: probe.Down, Failure: &f,
		Steps: []probe.Step{
			{Name: "initialize", Method: "initialize", Latency: 52 * time.Millisecond, HTTPStatus: 200},
			{Name: "tools/list", Method: "tools/list", Start: 65 * time.Millisecond, Latency: 149 * time.Millisecond, HTTPStatus: 200,
				Class: f.Class, Code: f.Code, Message: f.Message, Phases: probe.Phases{FirstByte: 148 * time.Millisecond}},
		},
		Warnings: []probe.Warning{{Step: "initialized", Class: probe.ClassHTTPStatus, Code: 200, Message: "200 where 202 is due"}},
	}
}

// site is a server on a real database with a browser in front of it that follows no redirects.
type site struct {
	t         *testing.T
	store     store.Store
	url       string
	browser   *http.Client
	testError error // what a test message comes back with

	mu     sync.Mutex
	result probe.Result // what every probe sees
	target probe.Target // what was probed last
}

func newSite(t *testing.T, change ...func(*api.Config)) *site {
	t.Helper()
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), storetest.MigratedSQLite(t, sqlite.Migrate), sealer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	s := &site{t: t, store: db, result: good()}
	config := api.Config{
		Store:       db,
		Log:         slog.New(slog.DiscardHandler),
		Registry:    prometheus.NewRegistry(),
		Location:    "default",
		Version:     "0.0.0",
		Probe:       s.probe,
		CheckNow:    s.checkNow,
		Changed:     func(context.Context, string, string) {},
		Period:      everyPeriod,
		TestChannel: func(context.Context, store.Channel) error { return s.testError },
		Backlog:     func() int { return 0 },

		PreviewTemplate: previewed,
	}
	for _, f := range change {
		f(&config)
	}
	server, err := api.New(config)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(server.Handler())
	t.Cleanup(h.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.browser = h.URL, h.Client()
	s.browser.Jar = jar
	s.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// everyPeriod reads schedules of one form.
func everyPeriod(schedule string) (time.Duration, error) {
	every, ok := strings.CutPrefix(schedule, "@every ")
	if !ok {
		return 0, errors.New("must be like @every 60s")
	}
	return time.ParseDuration(every)
}

func (s *site) answer(r probe.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result = r
}

func (s *site) lastTarget() probe.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target
}

func (s *site) probe(_ context.Context, target probe.Target) probe.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = target
	r := s.result
	r.StartedAt = time.Now()
	return r
}

// checkNow records a check, whose verdict is believed at once.
func (s *site) checkNow(ctx context.Context, slug string) (store.Check, error) {
	o, err := s.store.Endpoint(ctx, slug)
	if err != nil {
		return store.Check{}, err
	}
	c := store.NewCheck(o.ID, "default", time.Now(), s.probe(ctx, o.Target(o.State)))
	_, err = s.store.Record(ctx, []store.Check{c}, store.Judge{Check: func(_ store.Endpoint, state store.State, c store.Check) store.State {
		state.Status, state.Since, state.Failure = store.Status(c.Result.Verdict), c.Result.StartedAt, c.Result.Failure
		return state
	}})
	return c, err
}

func (s *site) setupLink() string {
	s.t.Helper()
	token, hash := store.NewSecret("setup_")
	if err := s.store.PutSetupToken(s.t.Context(), hash, time.Now()); err != nil {
		s.t.Fatal(err)
	}
	return "/setup?token=" + token
}

// setUp makes the user ada and logs her in.
func (s *site) setUp() {
	s.t.Helper()
	token := s.get(s.setupLink()).field("token")
	if got := s.post("/setup", url.Values{"token": {token}, "name": {"ada"}, "password": {password}}); got.status != http.StatusSeeOther {
		s.t.Fatalf("set up: got %d: %s", got.status, got.text)
	}
}

func (s *site) logout() {
	s.t.Helper()
	if got := s.post("/logout", nil); got.status != http.StatusSeeOther {
		s.t.Fatalf("log out: got %d", got.status)
	}
}

func (s *site) mustRegister(form url.Values) {
	s.t.Helper()
	if got := s.post("/endpoints/new", form); got.status != http.StatusSeeOther {
		s.t.Fatalf("register: got %d: %s", got.status, got.text)
	}
}

func (s *site) get(path string) shown {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(r)
}

func (s *site) post(path string, form url.Values) shown {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return s.do(r)
}

func (s *site) do(r *http.Request) shown {
	s.t.Helper()
	r.Header.Set("Accept", "text/html")
	response, err := s.browser.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(string(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	p := shown{status: response.StatusCode, header: response.Header, body: string(body), root: root}
	if main := p.find(func(n *html.Node) bool { return n.Data == "main" }); main != nil {
		p.text = textOf(main)
	}
	return p
}

// shown is a page as its reader meets it.
type shown struct {
	status int
	header http.Header
	body   string
	text   string // of its main part
	root   *html.Node
}

func (p shown) find(match func(*html.Node) bool) *html.Node {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && match(n) {
			return n
		}
	}
	return nil
}

func (p shown) control(name string) *html.Node {
	return p.find(func(n *html.Node) bool {
		return (n.Data == "input" || n.Data == "select" || n.Data == "textarea") && attribute(n, "name") == name
	})
}

// field returns what a control of a form holds.
func (p shown) field(name string) string {
	n := p.control(name)
	switch {
	case n == nil:
		return ""
	case n.Data == "textarea":
		return strings.TrimPrefix(textOf(n), "\n")
	case n.Data == "select":
		for o := range n.Descendants() {
			if _, ok := attributeOf(o, "selected"); ok {
				return attribute(o, "value")
			}
		}
		return ""
	}
	return attribute(n, "value")
}

func (p shown) kind(name string) string { return attribute(p.control(name), "type") }

func (p shown) checked(name string) bool {
	_, ok := attributeOf(p.control(name), "checked")
	return ok
}

// link returns the first address on the page that begins like that.
func (p shown) link(prefix string) string {
	n := p.find(func(n *html.Node) bool { return n.Data == "a" && strings.HasPrefix(attribute(n, "href"), prefix) })
	return attribute(n, "href")
}

func attribute(n *html.Node, key string) string {
	value, _ := attributeOf(n, key)
	return value
}

func attributeOf(n *html.Node, key string) (string, bool) {
	if n == nil {
		return "", false
	}
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
