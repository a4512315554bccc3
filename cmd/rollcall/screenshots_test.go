//go:build screenshots

package main_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/api/web"
	rollcall "github.com/rollcallhq/rollcall/cmd/rollcall"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
	"github.com/rollcallhq/rollcall/store"
)

// TestScreenshots writes a picture of every page of a service in use, light, dark and on a phone, into the folder that SCREENSHOTS
// names: for people to look at. `make screenshots` calls it. SHOTS, a regular expression, takes the pictures alone whose names it
// finds something in.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		t.Fatal("SCREENSHOTS names no folder")
	}
	only, err := regexp.Compile(os.Getenv("SHOTS"))
	if err != nil {
		t.Fatal(err)
	}
	browser := startBrowser(t)
	t.Run("first", func(t *testing.T) {
		s := newTryout(browser, t, nil)
		c := camera{person: s.team, folder: folder, only: only}
		link := regexp.MustCompile(`/setup\?token=\S+`).FindString(s.instance.log.String())
		c.take(link, "setup")
		s.setUp()
		c.take("/", "overview-empty")
		for _, path := range []string{"/channels", "/incidents", "/maintenance", "/subscriptions", "/locations", "/status", "/pages"} {
			c.take(path, strings.Trim(path, "/")+"-empty")
		}
	})
	t.Run("in use", func(t *testing.T) {
		i, mail := newGallery(t)
		p := newPerson(browser, t, i.url)
		p.livesIn("Europe/Berlin") // what is said in UTC all the same is seen
		c := camera{person: p, folder: folder, only: only}
		c.take("/login", "login")
		p.logIn()
		for name, path := range gallery {
			c.take(path, name)
		}
		for _, f := range followed {
			c.follow(f.from, f.link, f.name)
		}
		c.refused()
		c.ticked()
		c.kept()
		invitation := c.invited()
		viewer, coder := p.invitesAs("grace", "viewer"), p.invites("linus")
		c.languages("overview", "endpoint-down", "register", "status", "incidents", "members")
		c.person = newPerson(browser, t, i.url)
		for name, path := range visited {
			c.take(path, name)
		}
		c.take(invitation, "join")
		c.printed("/p/acme", "page-printed")
		c.subscribes(i, mail)
		c.person = newPerson(browser, t, i.url)
		c.looks(viewer)
		c.person = newPerson(browser, t, i.url)
		c.isAskedForACode(coder)
	})
}

// gallery are the pages that are looked at, by the name of their picture.
var gallery = map[string]string{
	"overview": "/", "overview-by-tag": "/?group=tag&sort=latency", "overview-down": "/?status=down", "overview-nothing": "/?q=zebra&kind=evm",
	"register": "/endpoints/new", "endpoint-up": "/endpoints/weather", "endpoint-down": "/endpoints/billing", "edit": "/endpoints/weather/edit",
	"incidents": "/incidents", "raise": "/incidents/new", "maintenance": "/maintenance", "plan": "/maintenance/new", "channels": "/channels",
	"channels-slack": "/channels?type=slack", "subscriptions": "/subscriptions", "locations": "/locations", "status": "/status",
	"status-endpoint": "/status/weather", "registered": "/endpoints/weather?done=registered", "badges": "/endpoints/weather/badges", "nothing-here": "/nothing-here", "pages": "/pages", "endpoint-chain": "/endpoints/node",
	"members": "/members", "tokens": "/tokens", "audit": "/audit", "account": "/account", "settings": "/settings", "page-edit": "/pages/acme", "page-new": "/pages/new",
}

// visited are the pages that are looked at by somebody who is not logged in.
var visited = map[string]string{
	"page": "/p/acme", "page-subscribe": "/p/acme/subscribe", "page-password": "/p/inner", "status-subscribe": "/status/subscribe",
}

// followed are pages whose addresses are known only to links on others.
var followed = []struct{ name, from, link string }{
	{"check", "/endpoints/weather", `main a[href*="/checks/"]`},
	{"check-failed", "/endpoints/billing", `main a[href*="/checks/"]`},
	{"endpoint-hours", "/endpoints/weather", `main a[href*="day="]`},
	{"contracts", "/endpoints/weather", `main a[href$="/contracts"]`},
	{"contract", "/endpoints/weather/contracts", `main a[href*="/contracts/"]`},
	{"incident", "/incidents", `main a[href*="/incidents/inc_"]`},
	{"channel", "/channels", `main a[href*="/channels/ch"]`},
	{"planned", "/maintenance", `main a[href*="/maintenance/m"]`},
}

// camera takes pictures in a tab.
type camera struct {
	*person
	folder string
	only   *regexp.Regexp // what the names of the pictures have in common
}

// refused takes the pictures of a form whose test failed.
func (c camera) refused() {
	if !c.only.MatchString("register-failed") {
		return
	}
	c.open("/endpoints/new")
	c.fill("URL", "http://127.0.0.1:9/mcp")
	c.do("press Test", chromedp.Click(chromedp.Search(`//main//div[@class="save"]/button[normalize-space()="Test"]`)))
	awaitWithin(c.t, toldWithin, "the end of the conversation", func() bool { return strings.Contains(c.page(), "save it all the same") })
	c.shoot("register-failed")
}

// follow takes the pictures of the page that the first link of a kind on another page leads to.
func (c camera) follow(from, link, name string) {
	c.t.Helper()
	if !c.only.MatchString(name) {
		return
	}
	c.do("open "+from, chromedp.Navigate(c.base+from))
	path := evaluate[string](c.person, fmt.Sprintf("document.querySelector(%q)?.getAttribute('href') ?? ''", link))
	if path == "" {
		c.t.Errorf("%s: no link like %s:\n%s", from, link, c.page())
		return
	}
	c.take(path, name)
}

// languages takes pictures of pages of the gallery in each language beside English, in light only.
func (c camera) languages(names ...string) {
	c.t.Helper()
	for _, l := range web.Languages()[1:] {
		c.do("speak "+l.Name, cookie(c.base, "language", l.Tag))
		for _, name := range names {
			c.take(gallery[name], name+"."+l.Tag)
		}
	}
	c.do("speak English", cookie(c.base, "language", "en"))
}

// cookie has the browser send one.
func cookie(base, name, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: base + "/"})
		return err
	})
}

// media has pages be shown as on a medium; empty: the screen.
func (c camera) media(name string) {
	c.t.Helper()
	c.do("show for "+name, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: name})
		return err
	}))
}

// printed takes a picture of a page as it is printed.
func (c camera) printed(path, name string) {
	c.t.Helper()
	if !c.only.MatchString(name) {
		return
	}
	c.do("open "+path, chromedp.Navigate(c.base+path))
	c.size(1000, 800)
	c.media("print")
	c.picture(name + ".print.png")
	c.media("") // what follows is for the screen
}

// invited takes the pictures of an invitation being made, and returns the path that it is opened by.
func (c camera) invited() string {
	c.t.Helper()
	c.open("/members")
	c.fill("Name", "Grace")
	c.press("Make a link")
	c.shoot("members-invited")
	return strings.TrimPrefix(evaluate[string](c.person, `document.getElementById("f-link").value`), c.base)
}

// take opens a page and takes its pictures.
func (c camera) take(path, name string) {
	c.t.Helper()
	if !c.only.MatchString(name) {
		return
	}
	c.do("open "+path, chromedp.Navigate(c.base+path))
	c.shoot(name)
}

// size is how a picture is taken.
type size struct {
	name, scheme  string
	width, height int64
}

var sizes = []size{{"light", "light", 1280, 800}, {"dark", "dark", 1280, 800}, {"phone", "light", 360, 740}, {"phone-dark", "dark", 360, 740}, {"tablet", "light", 768, 1024}}

// drawn waits until a tab has been drawn twice: what scrolls of its own is drawn later than the window that grew around it.
const drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"

func (c camera) shoot(name string) {
	c.t.Helper()
	if !c.only.MatchString(name) {
		return
	}
	for _, shot := range sizes {
		c.prefer(shot.scheme)
		c.size(shot.width, shot.height)
		whole := evaluate[int64](c.person, "document.documentElement.scrollHeight")
		c.size(shot.width, max(shot.height, whole)) // what sticks to the edge of a window hides nothing in a picture of everything
		evaluate[bool](c.person, drawn)
		c.picture(name + "." + shot.name + ".png")
	}
	c.size(0, 0)
}

// picture writes what the tab shows, to its end, into a file.
func (c camera) picture(file string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, personPatience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		c.t.Fatalf("%s: %v", file, err)
	}
	if err := os.WriteFile(filepath.Join(c.folder, file), picture, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// newGallery starts a service that has been in use for a day, and what takes its mail.
func newGallery(t *testing.T) (*instance, *alertstest.SMTP) {
	t.Helper()
	addr, mail := freeAddress(t), alertstest.NewSMTP(t)
	i := setUpAt(t, addr, "--demo", "--allow-private", "127.0.0.0/8,::1/128", "--public-url", "http://"+addr,
		"--smtp", mail.URL(), "--mail-from", "Rollcall <alerts@example.com>")
	i.call("POST", "/api/v1/channels", object{"name": "ops", "type": "slack", "webhook_url": "http://127.0.0.1:9/x"}, 201, nil)
	var told struct{ ID string }
	i.call("POST", "/api/v1/channels", object{"name": "on call", "type": "email", "to": "oncall@example.com"}, 201, &told)
	for _, e := range []object{
		{"name": "Weather", "slug": "weather", "url": probetest.MCP(t).URL, "tags": []string{"prod", "eu"}},
		{"name": "Search tools of the documentation team, with a name that is rather long", "slug": "search", "url": probetest.MCP(t, probetest.LegacyOnly()).URL, "tags": []string{"prod"}},
		{"name": "بوابة الدفع", "slug": "gateway", "url": probetest.MCP(t).URL, "tags": []string{"دفع"}, "channels": []string{told.ID}},
		{"name": "Billing", "slug": "billing", "url": "http://127.0.0.1:9/mcp", "tags": []string{"prod", "payments"}},
		{"name": "Retired", "slug": "retired", "url": probetest.MCP(t).URL, "paused": true},
	} {
		e["public"], e["schedule"] = true, "@every 30s"
		i.call("POST", "/api/v1/endpoints", e, 201, nil)
	}
	i.call("POST", "/api/v1/maintenance", object{
		"title": "A newer database", "text": "Checkout may be slow.", "starts_at": time.Now().Add(time.Hour), "ends_at": time.Now().Add(2 * time.Hour), "endpoints": []string{"weather"}, "public": true,
	}, 201, nil)
	i.call("POST", "/api/v1/pages", object{
		"name": "Acme status", "slug": "acme", "text": "How the services of Acme are doing.", "accent": "#7a1fa2",
		"sections": []object{{"title": "Tools", "endpoints": []string{"weather", "search"}}, {"title": "Payments", "endpoints": []string{"gateway", "billing"}}},
	}, 201, nil)
	i.call("POST", "/api/v1/pages", object{
		"name": "For partners", "slug": "inner", "password": "a long pass phrase", "sections": []object{{"title": "All", "endpoints": []string{"weather"}}},
	}, 201, nil)
	i.call("POST", "/api/v1/incidents", object{"title": "Payments are slow", "severity": "degraded", "text": "We are looking into it.", "endpoints": []string{"gateway"}}, 201, nil)
	i.stop()
	yesterday(t, i)
	i.start()
	for n, behind := range []uint64{1, 0, 14} {
		node := probetest.Chain(t, "evm")
		node.SetHeight(20_831_390 - behind)
		slug := []string{"node", "provider", "spare"}[n]
		i.call("POST", "/api/v1/endpoints", object{
			"name": "Ethereum, " + slug, "slug": slug, "url": node.URL, "kind": "evm", "chain": object{"id": "ethereum"}, "schedule": "@every 30s",
		}, 201, nil)
	}
	i.await("the endpoints to be what they are", func() bool {
		return i.status("weather") == "up" && i.status("billing") == "down" && i.status("node") == "up" && i.status("spare") != "pending"
	})
	return i, mail
}

// yesterday writes the checks of a day into the database of a service that is stopped.
func yesterday(t *testing.T, i *instance) {
	t.Helper()
	path := i.args[slices.Index(i.args, "--database")+1]
	db, err := rollcall.OpenStore(t.Context(), []string{testKey}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // what was written is seen by the next start
	lines, err := db.Index(t.Context(), store.EndpointFilter{}, false)
	if err != nil {
		t.Fatal(err)
	}
	keep := store.Judge{Check: func(_ store.Endpoint, s store.State, _ store.Check) store.State { return s }}
	for n, l := range lines {
		var checks []store.Check
		for at := time.Now().Add(-26 * time.Hour); at.Before(time.Now().Add(-time.Hour)); at = at.Add(2 * time.Minute) {
			hours := time.Since(at).Hours()
			took := time.Duration(60+40*math.Sin(hours/3+float64(n))+float64(n*12)) * time.Millisecond
			r := probe.Result{StartedAt: at, Duration: took, Kind: probe.KindMCP, Verdict: probe.Up}
			for k, step := range []string{"initialize", "initialized", "tools/list"} {
				r.Steps = append(r.Steps, probe.Step{Name: step, Method: step, Start: took * time.Duration(k) / 3, Latency: took / 3, HTTPStatus: 200})
			}
			if n%3 == 1 && hours > 5 && hours < 5.5 || n%4 == 2 && hours < 3 {
				r.Verdict, r.Failure = probe.Down, &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error"}
			}
			if n%5 == 3 && hours > 9 && hours < 13 {
				continue // a gap
			}
			checks = append(checks, store.NewCheck(l.ID, "default", at, r))
		}
		for group := range slices.Chunk(checks, 500) {
			if _, err := db.Record(t.Context(), group, keep); err != nil {
				t.Fatal(fmt.Errorf("record yesterday: %w", err))
			}
		}
	}
}
