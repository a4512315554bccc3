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

	"github.com/chromedp/chromedp"

	rollcall "github.com/rollcallhq/rollcall/cmd/rollcall"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
	"github.com/rollcallhq/rollcall/store"
)

// TestScreenshots writes a picture of every page of a service in use, light, dark and on a phone, into the folder that SCREENSHOTS
// names: for people to look at. `make screenshots` calls it.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		t.Fatal("SCREENSHOTS names no folder")
	}
	browser := startBrowser(t)
	t.Run("first", func(t *testing.T) {
		s := newTryout(browser, t, nil)
		c := camera{person: s.team, folder: folder}
		link := regexp.MustCompile(`/setup\?token=\S+`).FindString(s.instance.log.String())
		c.take(link, "setup")
		s.setUp()
		c.take("/", "overview-empty")
		for _, path := range []string{"/channels", "/incidents", "/maintenance", "/subscriptions", "/locations", "/status", "/pages"} {
			c.take(path, strings.Trim(path, "/")+"-empty")
		}
	})
	t.Run("in use", func(t *testing.T) {
		i := newGallery(t)
		p := newPerson(browser, t, i.url)
		c := camera{person: p, folder: folder}
		c.take("/login", "login")
		p.logIn()
		for name, path := range gallery {
			c.take(path, name)
		}
		c.visitors(p)
	})
}

// gallery are the pages that are looked at, by the name of their picture.
var gallery = map[string]string{
	"overview": "/", "overview-by-tag": "/?group=tag&sort=latency", "overview-down": "/?status=down", "overview-nothing": "/?q=zebra&kind=evm",
	"register": "/endpoints/new", "endpoint-up": "/endpoints/weather", "endpoint-down": "/endpoints/billing", "edit": "/endpoints/weather/edit",
	"incidents": "/incidents", "raise": "/incidents/new", "maintenance": "/maintenance", "plan": "/maintenance/new", "channels": "/channels",
	"channels-slack": "/channels?type=slack", "subscriptions": "/subscriptions", "locations": "/locations", "status": "/status",
	"status-endpoint": "/status/weather", "badges": "/endpoints/weather/badges", "nothing-here": "/nothing-here", "pages": "/pages",
	"members": "/members", "tokens": "/tokens", "audit": "/audit", "account": "/account",
}

// camera takes pictures in a tab.
type camera struct {
	*person
	folder string
}

func (c camera) visitors(p *person) {
	p.open("/endpoints/new")
	p.fill("URL", "http://127.0.0.1:9/mcp")
	p.do("press Test", chromedp.Click(chromedp.Search(`//main//div[@class="save"]/button[normalize-space()="Test"]`)))
	awaitWithin(p.t, toldWithin, "the end of the conversation", func() bool { return strings.Contains(p.page(), "save it all the same") })
	c.shoot("register-failed")
}

// take opens a page and takes its pictures.
func (c camera) take(path, name string) {
	c.t.Helper()
	c.do("open "+path, chromedp.Navigate(c.base+path))
	c.shoot(name)
}

func (c camera) shoot(name string) {
	c.t.Helper()
	for _, shot := range []struct {
		name, scheme  string
		width, height int64
	}{{"light", "light", 1280, 800}, {"dark", "dark", 1280, 800}, {"phone", "light", 360, 740}, {"phone-dark", "dark", 360, 740}} {
		c.prefer(shot.scheme)
		c.size(shot.width, shot.height)
		ctx, cancel := context.WithTimeout(c.ctx, personPatience)
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		cancel()
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(c.folder, name+"."+shot.name+".png"), picture, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	c.size(0, 0)
}

// newGallery starts a service that has been in use for a day.
func newGallery(t *testing.T) *instance {
	t.Helper()
	i := setUp(t, "--demo", "--allow-private", "127.0.0.0/8")
	i.call("POST", "/api/v1/channels", object{"name": "ops", "type": "slack", "webhook_url": "http://127.0.0.1:9/x"}, 201, nil)
	i.call("POST", "/api/v1/channels", object{"name": "on call", "type": "email", "to": "oncall@example.com"}, 201, nil)
	for _, e := range []object{
		{"name": "Weather", "slug": "weather", "url": probetest.MCP(t).URL, "tags": []string{"prod", "eu"}},
		{"name": "Search tools of the documentation team, with a name that is rather long", "slug": "search", "url": probetest.MCP(t, probetest.LegacyOnly()).URL, "tags": []string{"prod"}},
		{"name": "بوابة الدفع", "slug": "gateway", "url": probetest.MCP(t).URL, "tags": []string{"دفع"}},
		{"name": "Billing", "slug": "billing", "url": "http://127.0.0.1:9/mcp", "tags": []string{"prod", "payments"}},
		{"name": "Retired", "slug": "retired", "url": probetest.MCP(t).URL, "paused": true},
	} {
		e["public"], e["schedule"] = true, "@every 30s"
		i.call("POST", "/api/v1/endpoints", e, 201, nil)
	}
	i.call("POST", "/api/v1/maintenance", object{
		"title": "A newer database", "text": "Checkout may be slow.", "starts_at": time.Now().Add(time.Hour), "ends_at": time.Now().Add(2 * time.Hour), "endpoints": []string{"weather"}, "public": true,
	}, 201, nil)
	i.call("POST", "/api/v1/incidents", object{"title": "Payments are slow", "severity": "degraded", "text": "We are looking into it.", "endpoints": []string{"gateway"}}, 201, nil)
	i.stop()
	yesterday(t, i)
	i.start()
	i.await("the endpoints to be what they are", func() bool { return i.status("weather") == "up" && i.status("billing") == "down" })
	return i
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
