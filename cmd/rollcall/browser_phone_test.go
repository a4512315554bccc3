package main_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A small phone.
const phoneWidth, phoneHeight = 360, 740

// TestTheFirstFiveMinutesOnAPhone does with a thumb what somebody does first. No page has to be scrolled sideways, and what is to be
// tapped is large enough, or has room around it (WCAG 2.2, 2.5.8 Target Size).
func TestTheFirstFiveMinutesOnAPhone(t *testing.T) {
	t.Parallel()
	b := newBeginner(startBrowser(t), t)
	b.holdsPhone()
	b.open(b.instance.setupLink())
	b.fits()
	b.setUp()
	b.fits()
	b.paste()
	b.fits()
	b.save()
	b.fits()
	b.addSlack()
	b.fits()
	b.copyBadges()
	b.fits()
	b.open("/")
	b.do("open the menu", b.hit(`//details[@id="menu"]/summary`))
	b.fits()
	for _, path := range []string{"/", "/incidents", "/maintenance/new", "/channels", "/pages/new", "/subscriptions", "/members", "/tokens", "/account", "/status", "/endpoints/new"} {
		b.open(path)
		b.fits()
	}
	b.leaves()
}

// holdsPhone has the tab be that of a phone.
func (p *person) holdsPhone() {
	p.t.Helper()
	p.touches = true
	p.do("take a phone", chromedp.EmulateViewport(phoneWidth, phoneHeight, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait))
}

// fits fails the test when a page is wider than the screen, or something on it is hard to hit. A target smaller than 24 by 24 pixels
// will do within a sentence, or when a circle as wide around it meets no other target.
func (p *person) fits() {
	p.t.Helper()
	if wrong := evaluate[[]string](p, `(() => {
		const wrong = [];
		if (document.scrollingElement.scrollWidth > innerWidth) {
			wrong.push("the page is " + document.scrollingElement.scrollWidth + " wide");
			for (const e of document.querySelectorAll("body *")) if (e.getBoundingClientRect().right > innerWidth + 1) wrong.push("too far to the right: " + e.outerHTML.slice(0, 150));
		}
		const least = 24;
		const hit = (e, x, y) => { // whether a finger there meets it, and not what lies above it
			if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return true;
			const top = document.elementFromPoint(x, y), whole = e.closest("label") ?? e;
			return whole.contains(top) || top?.contains(whole);
		};
		const middle = box => [box.left + box.width / 2, box.top + box.height / 2];
		const areas = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
			.filter(e => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && !e.disabled && !e.closest("[aria-hidden=true], .unseen, .skip"))
			.map(e => ({ e, box: (e.closest("label") ?? e).getBoundingClientRect() }))
			.filter(({ e, box }) => box.width > 1 && box.height > 1 && hit(e, ...middle(box)));
		const small = box => box.width < least - 0.5 || box.height < least - 0.5;
		const inSentence = e => e.localName === "a" && getComputedStyle(e).display === "inline" &&
			[...e.parentElement.childNodes].some(n => n !== e && n.textContent.trim().length > 1);
		for (const { e, box } of areas) {
			if (!small(box) || inSentence(e)) continue;
			const [x, y] = middle(box);
			const other = areas.find(o => {
				if (o.e === e || o.e.contains(e) || e.contains(o.e)) return false;
				const nearX = Math.min(Math.max(x, o.box.left), o.box.right), nearY = Math.min(Math.max(y, o.box.top), o.box.bottom);
				const [ox, oy] = middle(o.box);
				return small(o.box) && Math.hypot(ox - x, oy - y) < least || Math.hypot(nearX - x, nearY - y) < least / 2 && hit(o.e, nearX, nearY);
			});
			if (other) wrong.push(Math.round(box.width) + " × " + Math.round(box.height) + ": " + e.outerHTML.slice(0, 150) + " beside " + other.e.outerHTML.slice(0, 100));
		}
		return wrong.slice(0, 10);
	})()`); len(wrong) > 0 {
		p.t.Errorf("%s on a phone:\n%s", strings.SplitN(p.page(), "\n", 2)[0], strings.Join(wrong, "\n"))
	}
}
