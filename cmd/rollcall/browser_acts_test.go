package main_test

import (
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// makesStatusPage fills in the form of a status page, with a logo that is too large at first, adds a section on the way, and looks
// at the page.
func (p *person) makesStatusPage(who string) {
	p.t.Helper()
	p.open("/pages/new")
	p.tick("Those who know the password")
	bad := form{path: "/pages/new", bad: []entry{
		{"Name", "", "is required"}, {"Address", "Not An Address", "must be lower-case letters"}, {"Colour", "green", "must be a colour like"},
		{"Domain", "not a domain", "must be a name like status.example.com"}, {"Title", "Basics", ""}, {"Text", "What we run.", ""},
	}}
	p.enters(append(bad.bad, entry{"Password", "short", ""})...)
	p.uploads("Logo", writePNG(p.t, 400))
	p.turnedDown("Add it")
	p.holds(bad)
	p.followsMistake()
	if value, beside := p.typed("Password"); value != "" || !strings.Contains(beside, "must have at least 8 characters") {
		p.t.Errorf("of a password that is too short %q comes back, and beside it %q", value, beside)
	}
	if _, beside := p.typed("Logo"); !strings.Contains(beside, "is larger than 100 KiB") {
		p.t.Errorf("beside a logo that is too large stands %q", beside)
	}
	p.press("Add a section")
	p.sees("Section 2")
	p.press("Remove Section 2")
	p.enters(entry{"Name", "Acme of " + who, ""}, entry{"Address", "acme-" + who, ""}, entry{"Colour", "#123456", ""}, entry{"Domain", "", ""},
		entry{"Password", "a horse that staples", ""})
	p.tick("Weather")
	p.uploads("Logo", writePNG(p.t, 40))
	p.press("Add it")
	p.open("/p/acme-" + who)
	p.fill("Password", "another one")
	p.turnedDown("Show the page")
	p.fill("Password", "a horse that staples")
	p.press("Show the page")
	p.sees("Acme of "+who, "What we run.", "Basics", "Weather")
	if width := evaluate[int](p, `document.querySelector("img.sitelogo").naturalWidth`); width != 40 {
		p.t.Errorf("the logo is %d wide, want the one that was chosen last", width)
	}
}

// followsMistake follows the first link in the list of mistakes, which leads to a field of the page as it stands.
func (p *person) followsMistake() {
	p.t.Helper()
	p.marks()
	p.do("follow a mistake to its field", p.hit(`//*[contains(@class,"problems")]//a`))
	awaitWithin(p.t, personPatience, "the field of the mistake to be the target", func() bool {
		return evaluate[bool](p, `document.querySelector(".problems a").hash === location.hash && document.querySelector(":target").matches("[aria-invalid=true]")`)
	})
	p.stayed()
}

// raisesAndActs opens an incident, and does with it what there is to do.
func (p *person) raisesAndActs(who string) {
	p.t.Helper()
	p.open("/incidents/new")
	p.enters(entry{"Title", "Slow for " + who, ""}, entry{"Severity", "degraded", ""})
	p.press("Open incident")
	p.turnedDown("Comment")
	p.problemsLead("a comment without words")
	p.enters(entry{"Say something about it", "Looking into it.", ""})
	p.tick("Show it on the status page")
	p.press("Comment")
	p.sees("Looking into it.", "on the status page")
	p.press("Acknowledge")
	p.sees("Acknowledged by ada")
	p.enters(entry{"Snooze for", "1h", ""})
	p.press("Snooze")
	p.sees("Snoozed until")
	p.press("Resolve")
	p.sees("Resolved by hand")
	p.press("Reopen")
	p.sees("Still going on")
}

// changesMany ticks endpoints in the list, and does with them what there is to do.
func (p *person) changesMany(who string) {
	p.t.Helper()
	const list = "/?q=Many"
	pick := func() {
		for _, name := range []string{"Many one ", "Many two "} {
			p.do("tick "+name+who, p.hit(chromedp.Search(`//td[contains(@class,"c-pick")]//label[normalize-space()="`+name+who+`"]/input`)))
		}
	}
	p.open(list)
	if page := p.page(); strings.Contains(page, "With those that are ticked") {
		p.t.Errorf("there is something to do with nothing:\n%s", page)
	}
	pick()
	p.turnedDown("Tag")
	p.sees("Write the tag into the field beside the button first.")
	p.open(list)
	pick()
	p.fill("Tag", "batch-"+who)
	p.press("Tag")
	p.sees("batch-" + who)
	for _, turn := range []struct{ button, status string }{{"Pause", "Paused"}, {"Resume", "Down"}} {
		pick()
		p.press(turn.button)
		p.finds(list, "Many one "+who, turn.status)
	}
	pick()
	p.press("Delete…")
	p.sees("Delete 2 endpoints?", "This cannot be undone")
	p.press("Keep them")
	pick()
	p.press("Delete…")
	p.press("Delete for good")
	if page := p.page(); strings.Contains(page, "Many one "+who) {
		p.t.Errorf("what was deleted is in the list:\n%s", page)
	}
}

// subscribesAsAnybody asks for mails on the status page, at an address that is none at first.
func (p *person) subscribesAsAnybody(who string) {
	p.t.Helper()
	p.open("/status")
	p.unfold("Subscribe")
	p.tick("Everything on the status page")
	p.enters(entry{"Address", "nobody", ""})
	p.turnedDown("Subscribe")
	p.mistaken("Address", "nobody", "must be one email address")
	p.problemsLead("/status/subscribe")
	p.enters(entry{"Address", who + "@example.net", ""})
	p.tick("Everything on the status page")
	p.press("Subscribe")
	p.sees("Look at your mail")
}

// uploads chooses a file for the field with a label.
func (p *person) uploads(label, path string) {
	p.t.Helper()
	p.do("choose a file for "+label, chromedp.SetUploadFiles(chromedp.Search(field(label)), []string{path}))
}

// writePNG writes a picture of noise, which no compression makes small, that is so many pixels wide and high.
func writePNG(t testing.TB, size int) string {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, size, size))
	for x := range size {
		for y := range size {
			picture.Set(x, y, color.RGBA{R: uint8(rand.Uint32()), G: uint8(rand.Uint32()), B: uint8(rand.Uint32()), A: 255})
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "logo.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := png.Encode(file, picture); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
