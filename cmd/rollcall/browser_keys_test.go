package main_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestEverythingCanBeDoneWithAKeyboard logs in, registers an endpoint, opens it, and acknowledges an incident, with keys alone. What
// has the focus is seen all the way, and nothing holds it.
func TestEverythingCanBeDoneWithAKeyboard(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	i := setUp(t, "--allow-private", "127.0.0.0/8")
	i.call("POST", "/api/v1/endpoints", object{"name": "Billing", "url": "http://127.0.0.1:9/mcp", "confirm": object{"failures": 1}}, 201, nil)
	i.await("the incident", func() bool { return len(i.incidents("billing")) == 1 })
	p := newPerson(browser, t, i.url)
	p.prefer("light") // and nothing that moves
	p.open("/login")
	p.types("ada", kb.Tab, showcasePassword)
	p.leads("press Enter", chromedp.KeyEvent(kb.Enter))

	p.skips()
	p.tabsTo("Register an endpoint")
	p.leads("press Enter", chromedp.KeyEvent(kb.Enter))
	p.types(probetest.MCP(t).URL, kb.Tab, kb.Tab, "Weather", kb.Enter) // past the button beside the field
	p.becomes("It answers as it should")
	p.tabsTo("Save it like this")
	p.leads("press the space bar", chromedp.KeyEvent(" "))
	p.sees("Registered", "Weather")

	p.tabsTo("Endpoints")
	p.leads("press Enter", chromedp.KeyEvent(kb.Enter))
	p.tabsTo("Weather")
	p.tabsTo("Weather") // past the box to tick, of the same name
	p.leads("press Enter", chromedp.KeyEvent(kb.Enter))
	p.sees("Answers as it should")

	p.tabsTo("Incidents")
	p.leads("press Enter", chromedp.KeyEvent(kb.Enter))
	p.tabsTo("Billing")
	p.leads("press Enter", chromedp.KeyEvent(kb.Enter))
	p.tabsTo("Acknowledge")
	p.leads("press the space bar", chromedp.KeyEvent(" "))
	p.sees("Acknowledged by ada")

	for _, path := range []string{"/", "/?group=tag", "/endpoints/new", "/endpoints/weather", "/endpoints/weather/edit", "/channels", "/members", "/status", "/account"} {
		p.open(path)
		p.roundTrip(path)
	}
	p.leaves()
}

// types presses keys, one after the other.
func (p *person) types(keys ...string) {
	p.t.Helper()
	p.do("type", chromedp.KeyEvent(strings.Join(keys, "")))
}

// focus is what has the focus: what it is called, and whether that is seen.
type focus struct {
	Name    string // empty: nothing has it
	Marked  bool   // by an outline, or the like
	In      bool   // the window
	Covered bool   // by something else
	Above   string // what covers it
	Tag     string
}

// focused returns what has the focus.
func (p *person) focused() focus {
	p.t.Helper()
	return evaluate[focus](p, `(() => {
		const at = document.activeElement;
		if (!at || at === document.body || at === document.documentElement) return { Name: "" };
		const label = at.labels?.[0]?.innerText;
		const name = (at.getAttribute("aria-label") || label || at.innerText || at.name || at.localName).trim();
		const style = getComputedStyle(at), box = at.getBoundingClientRect();
		const marked = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
		const above = [...at.getClientRects()].map(line => document.elementFromPoint( // a link may be of several lines
			Math.min(Math.max(line.left + line.width / 2, 0), innerWidth - 1), Math.min(Math.max(line.top + line.height / 2, 0), innerHeight - 1)));
		const own = top => top && (at.contains(top) || top.contains(at) || [...at.labels ?? []].some(l => l.contains(top)));
		return {
			Name: name || at.localName, Marked: marked, Tag: at.outerHTML.slice(0, 200),
			In: box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth && box.width > 0 && box.height > 0,
			Covered: !above.some(own),
			Above: above.map(e => e?.outerHTML.slice(0, 100)).join(" "),
		};
	})()`)
}

// seen fails the test unless what has the focus can be seen to have it.
func (p *person) seen(f focus) {
	p.t.Helper()
	if !f.Marked || !f.In || f.Covered {
		p.t.Errorf("the focus is not seen: marked %t, in the window %t, covered %t by %s: %s", f.Marked, f.In, f.Covered, f.Above, f.Tag)
	}
}

// maxStops is more than any page has that takes the focus.
const maxStops = 300

// tabsTo presses Tab until something has the focus whose name begins with words.
func (p *person) tabsTo(words string) {
	p.t.Helper()
	for range maxStops {
		p.types(kb.Tab)
		f := p.focused()
		if f.Name == "" {
			continue // the browser's own, from which it goes on at the beginning
		}
		p.seen(f)
		if strings.HasPrefix(f.Name, words) {
			return
		}
	}
	p.t.Fatalf("Tab does not lead to %q:\n%s", words, p.page())
}

// skips takes the link that leads past what stands on every page.
func (p *person) skips() {
	p.t.Helper()
	p.types(kb.Tab)
	f := p.focused()
	if p.seen(f); f.Name != "Skip to the content" {
		p.t.Fatalf("the first stop is %q", f.Name)
	}
	p.types(kb.Enter)
	awaitWithin(p.t, personPatience, "the link to be followed", func() bool { return evaluate[string](p, `location.hash`) == "#main" })
	p.types(kb.Tab)
	if inside := evaluate[bool](p, `document.querySelector("main").contains(document.activeElement)`); !inside {
		p.t.Errorf("past the skip link comes %s", p.focused().Tag)
	}
}

// roundTrip presses Tab until the page is left at its end, and then goes back by some stops.
func (p *person) roundTrip(path string) {
	p.t.Helper()
	evaluate[bool](p, `(() => { document.activeElement?.blur(); getSelection().removeAllRanges(); return true; })()`)
	var stops []focus
	for len(stops) < maxStops {
		p.types(kb.Tab)
		f := p.focused()
		if f.Name == "" {
			break
		}
		p.seen(f)
		stops = append(stops, f)
	}
	if len(stops) < 3 || len(stops) == maxStops {
		p.t.Errorf("%s: Tab stops at %d things, and then holds at %+v", path, len(stops), stops[len(stops)-1])
		return
	}
	back := chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift))
	p.do("press Shift and Tab", back)
	if f := p.focused(); f.Tag != stops[len(stops)-1].Tag {
		p.t.Errorf("%s: Shift and Tab leads back to %s, want %s", path, f.Tag, stops[len(stops)-1].Tag)
	}
}
