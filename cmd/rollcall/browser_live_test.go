package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestPagesThatStandOpenChangeByThemselves breaks and mends a server while its overview, its page and the status page stand open:
// each says so, and none is loaded again.
func TestPagesThatStandOpenChangeByThemselves(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	i := setUp(t, "--allow-private", "127.0.0.0/8")
	mcp := probetest.MCP(t)
	i.call("POST", "/api/v1/endpoints", object{
		"name": "Weather", "slug": "weather", "url": mcp.URL, "kind": "mcp", "schedule": "@every 1s", "timeout": "900ms", "public": true,
		"confirm": object{"failures": 1, "successes": 1, "after": "1s"},
	}, 201, nil)
	i.await("the first check", func() bool { return i.status("weather") == "up" })
	views := []view{
		{path: "/", shows: "td.c-status"},
		{path: "/endpoints/weather", shows: "main h1 .status"},
		{path: "/status", shows: ".services .status"},
		{path: "/status/weather", shows: "main h1 .status"},
	}
	for n := range views {
		views[n].person = newPerson(browser, t, i.url)
		if !strings.HasPrefix(views[n].path, "/status") {
			views[n].logIn()
		}
		views[n].open(views[n].path)
		views[n].says("Up")
		views[n].marks()
	}
	for _, turn := range []struct {
		happens func()
		status  string
	}{{mcp.Stop, "Down"}, {mcp.Start, "Up"}} {
		turn.happens()
		for _, v := range views {
			v.says(turn.status)
			v.stayed()
		}
	}
	for _, v := range views {
		v.leaves()
	}
}

// view is somebody who looks at a page that shows a status.
type view struct {
	*person
	path  string
	shows string // selects where the status stands
}

// says waits until the page shows a status.
func (v view) says(status string) {
	v.t.Helper()
	awaitWithin(v.t, toldWithin, fmt.Sprintf("%s to say %q", v.path, status), func() bool {
		return strings.HasPrefix(evaluate[string](v.person, `document.querySelector(`+scripted(v.shows)+`)?.innerText.trim() ?? ""`), status)
	})
}
