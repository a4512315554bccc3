package main_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestAStretchIsChosenWhileThePageChanges draws over a chart while the endpoint goes down and comes back: the page waits until that
// is over, and then shows what has happened, or the stretch.
func TestAStretchIsChosenWhileThePageChanges(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	i := setUp(t, "--allow-private", "127.0.0.0/8")
	mcp := probetest.MCP(t)
	i.call("POST", "/api/v1/endpoints", object{
		"name": "Weather", "slug": "weather", "url": mcp.URL, "kind": "mcp", "schedule": "@every 1s", "timeout": "900ms",
		"confirm": object{"failures": 1, "successes": 1, "after": "1s"},
	}, 201, nil)
	i.await("the first check", func() bool { return i.status("weather") == "up" })
	draws := view{person: newPerson(browser, t, i.url), path: "/endpoints/weather", shows: "main h1 .status"}
	watches := view{person: newPerson(browser, t, i.url), path: draws.path, shows: draws.shows}
	for _, v := range []view{draws, watches} {
		v.logIn()
		v.open(v.path)
		v.says("Up")
	}
	draws.marks()

	draws.presses(0.3)
	draws.moves(0.6)
	before := draws.chosen()
	if before < 2 {
		t.Fatalf("%d bars are chosen", before)
	}
	mcp.Stop()
	watches.says("Down") // what it was told of, the other one was too
	if after := draws.chosen(); after != before {
		t.Errorf("%d bars are still chosen of %d", after, before)
	}
	draws.says("Up")
	draws.do("give it up", chromedp.KeyEvent(kb.Escape))
	draws.says("Down")
	draws.stayed()
	draws.releases(0.6)

	draws.presses(0.3)
	draws.moves(0.6)
	mcp.Start()
	watches.says("Up")
	draws.leads("let go", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		return draws.mouse(ctx, tab, input.DispatchMouseEventTypeMouseReleased, 0.6)
	}))
	if at := evaluate[string](draws.person, `location.search`); !strings.Contains(at, "from=") || !strings.Contains(at, "to=") {
		t.Errorf("what was chosen leads to %q", at)
	}
	draws.leaves()
	watches.leaves()
}

func (v view) presses(along float64) {
	v.t.Helper()
	evaluate[bool](v.person, `(document.querySelector("main .plot .hits").scrollIntoView({block: "center"}), true)`)
	v.does(input.DispatchMouseEventTypeMouseMoved, along)
	v.does(input.DispatchMouseEventTypeMousePressed, along)
}

func (v view) moves(along float64) { v.does(input.DispatchMouseEventTypeMouseMoved, along) }

func (v view) releases(along float64) { v.does(input.DispatchMouseEventTypeMouseReleased, along) }

// chosen returns how many bars are marked as chosen.
func (v view) chosen() int {
	v.t.Helper()
	return evaluate[int](v.person, `document.querySelectorAll(".hits .chosen").length`)
}

// does something with the mouse at a share of the first chart's width.
func (v view) does(what input.DispatchMouseEventType, along float64) {
	v.t.Helper()
	v.do(string(what), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error { return v.mouse(ctx, tab, what, along) }))
}

func (v view) mouse(ctx context.Context, tab *chromedp.Target, what input.DispatchMouseEventType, along float64) error {
	box, err := chromedp.Evaluate[[]float64](`(r => [r.left, r.top, r.width, r.height])(document.querySelector("main .plot .hits").getBoundingClientRect())`)(ctx, tab)
	if err != nil {
		return err
	}
	_, err = cdp.Call(ctx, tab, input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: what, X: box[0] + along*box[2], Y: box[1] + box[3]/2, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1,
	})
	return err
}
