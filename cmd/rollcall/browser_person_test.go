package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// personPatience bounds one thing that somebody does in a browser.
const personPatience = 20 * time.Second

// startBrowser starts a browser without a window, which ends with the test. It returns its context.
func startBrowser(t testing.TB) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-background-networking", true),
		chromedp.WSURLReadTimeout(time.Minute)) // beside other tests a start takes its time
	parent, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, _ := chromedp.NewContext(parent)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("the browser did not end well: %v", err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("the browser does not start (Debian's package is chromium): %v", err)
	}
	return ctx
}

// person is somebody with a tab of their own: they share no cookies with anybody else. They find things by the words that
// stand there.
type person struct {
	t       testing.TB
	ctx     context.Context
	base    string // URL of the instance
	fence   string // the last thing that is logged in the tab
	console chan []chromedp.ConsoleMessage
	touches bool // has a finger in place of a mouse
	refused int  // how often they were turned down
}

// newPerson opens a tab.
func newPerson(browser context.Context, t testing.TB, base string) *person {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &person{t: t, ctx: ctx, base: base, fence: "that was all", console: make(chan []chromedp.ConsoleMessage, 1)}
	p.do("open a tab")
	messages := chromedp.Console(ctx)
	go func() {
		var seen []chromedp.ConsoleMessage
		for m, err := range messages {
			if err != nil || m.Text == p.fence {
				break
			}
			seen = append(seen, m)
		}
		p.console <- seen
	}()
	return p
}

// withoutScripts has the person's browser run none.
func (p *person) withoutScripts() {
	p.t.Helper()
	p.do("turn scripts off", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

func (p *person) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, personPatience)
	defer cancel()
	if len(steps) == 0 {
		ctx = p.ctx // the tab lives as long as the context that opened it
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v\n%s", what, err, p.page())
	}
}

// leads does something that leads to another page, which has to be a good one.
func (p *person) leads(what string, step chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if status := p.answer(what, step); status >= 400 {
		p.t.Fatalf("%s: status %d\n%s", what, status, p.page())
	}
}

// answer does something that leads to another page, and returns the status of that.
func (p *person) answer(what string, step chromedp.Action[chromedp.Void]) int64 {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, personPatience)
	defer cancel()
	response, err := chromedp.RunResponse(ctx, step)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", what, err, p.page())
	}
	if response == nil {
		p.t.Fatalf("%s leads to no other page\n%s", what, p.page())
	}
	p.settles()
	return response.Status
}

// settles waits until the focus is where the page puts it, which is when a browser shows the page first. Nobody is quicker than that,
// save a test, and the browser tells its console of it.
func (p *person) settles() {
	p.t.Helper()
	awaitWithin(p.t, personPatience, "the focus to be where the page puts it", func() bool {
		return evaluate[bool](p, `!document.querySelector("[autofocus]") || document.activeElement !== document.body`)
	})
}

// open goes to a path of the instance, or to a URL from elsewhere.
func (p *person) open(address string) {
	p.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = p.base + address
	}
	p.leads("open "+address, chromedp.Navigate(address))
}

// press presses a button, or follows a link, that leads to another page.
func (p *person) press(words string) {
	p.t.Helper()
	p.leads("press "+words, p.hit(button(words)))
}

// pressHere presses a button that leads to no other page.
func (p *person) pressHere(words string) {
	p.t.Helper()
	p.do("press "+words, p.hit(button(words)))
}

// turnedDown presses the button of a form, which comes back with what is wrong with it and with a status that says so.
func (p *person) turnedDown(words string) {
	p.t.Helper()
	if status := p.answer("press "+words, p.hit(sender(words))); status < 400 || status >= 500 {
		p.t.Fatalf("%s: status %d, want it to be turned down\n%s", words, status, p.page())
	}
	p.refused++
}

// sends presses the button of a form that leads to another page.
func (p *person) sends(words string) {
	p.t.Helper()
	p.leads("press "+words, p.hit(sender(words)))
}

// sender finds the button of a form by its words: a link to the form may have the same.
func sender(words string) chromedp.Search {
	return chromedp.Search(fmt.Sprintf(`//main//form//button[normalize-space()=%q][not(@aria-hidden)]`, words))
}

// button finds what can be pressed by its words.
func button(words string) chromedp.Search {
	return chromedp.Search(fmt.Sprintf(`//main//*[self::button or self::a][normalize-space()=%q][not(@aria-hidden)]`, words))
}

// hit clicks on something, or taps on it.
func (p *person) hit(what chromedp.Search) chromedp.Action[chromedp.Void] {
	if p.touches {
		return chromedp.Tap(what)
	}
	return chromedp.Click(what)
}

// unfold opens what is folded under words.
func (p *person) unfold(words string) {
	p.t.Helper()
	p.do("unfold "+words, p.hit(chromedp.Search(fmt.Sprintf(`//summary[starts-with(normalize-space(),%q)]`, words))))
}

// fill pastes text into the field with a label, in place of what is there.
func (p *person) fill(label, text string) {
	p.t.Helper()
	at := chromedp.Search(field(label))
	p.do("fill in "+label, chromedp.Clear(at), chromedp.Focus(at),
		chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, input.InsertText, input.InsertTextParams{Text: text})
			return err
		}))
}

// field is the XPath of the field with a label. Where several have it, "section: label" says which: that under the heading.
func field(label string) string {
	within := "//main"
	if section, name, found := strings.Cut(label, ": "); found {
		within, label = fmt.Sprintf(`//main//section[h2[normalize-space()=%q]]`, section), name
	}
	return fmt.Sprintf(`%s//*[@id=//label[normalize-space(text())=%q]/@for]`, within, label)
}

// entry is what somebody enters into the field with a label.
type entry struct {
	label, text string
	wrong       string // what is written beside the field when the text is a mistake
}

// enters fills in many fields at once, whatever their kind: text is pasted into them, options of lists are chosen.
func (p *person) enters(entries ...entry) {
	p.t.Helper()
	var fields [][2]string
	for _, e := range entries {
		fields = append(fields, [2]string{field(e.label), e.text})
	}
	if failed := evaluate[[]string](p, fmt.Sprintf(`%s.filter(([path, text]) => {
		const field = document.evaluate(path, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue;
		if (!field) return true;
		field.focus();
		if (field.matches("select, [type=date], [type=time], [type=datetime-local]")) {
			field.value = text;
			field.dispatchEvent(new Event("input", { bubbles: true }));
			field.dispatchEvent(new Event("change", { bubbles: true }));
		} else if (field.value !== text) {
			field.select();
			document.execCommand(text ? "insertText" : "delete", false, text);
		}
		return field.value !== text;
	}).map(([path]) => path)`, scripted(fields))); len(failed) > 0 {
		p.t.Fatalf("these fields do not take what they are given: %q\n%s", failed, p.page())
	}
}

// typed returns what stands in the field with a label, and what is written beside it.
func (p *person) typed(label string) (value, beside string) {
	p.t.Helper()
	found := evaluate[[]string](p, fmt.Sprintf(`(() => {
		const field = document.evaluate(%s, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue;
		const beside = (field?.getAttribute("aria-describedby") ?? "").split(" ").map(id => document.getElementById(id)?.innerText ?? "");
		return field ? [field.value, beside.join(" ")] : [];
	})()`, scripted(field(label))))
	if len(found) != 2 {
		p.t.Fatalf("there is no field %q:\n%s", label, p.page())
	}
	return found[0], found[1]
}

// scripted returns texts as a script writes them.
func scripted(texts any) string {
	b, err := json.Marshal(texts)
	if err != nil {
		panic(err) // texts are always JSON
	}
	return string(b)
}

// tick changes what is ticked at a label.
func (p *person) tick(label string) {
	p.t.Helper()
	p.do("tick "+label, p.hit(chromedp.Search(fmt.Sprintf(
		`//label[contains(@class,"tick")][starts-with(normalize-space(),%q)]/input`, label))))
}

// page returns what can be read in the tab.
func (p *person) page() string {
	ctx, cancel := context.WithTimeout(p.ctx, personPatience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + "\n" + document.body.innerText`))
	if err != nil {
		return "the page cannot be read: " + err.Error()
	}
	return text
}

// sees fails the test unless all words can be read in the tab.
func (p *person) sees(words ...string) {
	p.t.Helper()
	page := p.page()
	for _, w := range words {
		if !strings.Contains(page, w) {
			p.t.Fatalf("%q is not to be read here:\n%s", w, page)
		}
	}
}

// becomes waits until all words can be read in the tab, which nobody loads again.
func (p *person) becomes(words ...string) {
	p.t.Helper()
	page, missing := "", ""
	defer func() {
		if missing != "" {
			p.t.Logf("%q is not to be read here:\n%s", missing, page)
		}
	}()
	awaitWithin(p.t, personPatience, fmt.Sprintf("%q to be read", words), func() bool {
		page, missing = p.page(), ""
		for _, w := range words {
			if !strings.Contains(page, w) {
				missing = w
			}
		}
		return missing == ""
	})
}

// marks leaves a mark in the page that is lost when the page is left or loaded again.
func (p *person) marks() {
	p.t.Helper()
	evaluate[bool](p, `window.marked = true`)
}

// stayed fails the test when the page was left, or loaded again, since it was marked.
func (p *person) stayed() {
	p.t.Helper()
	if !evaluate[bool](p, `window.marked === true`) {
		p.t.Fatalf("the page was loaded again:\n%s", p.page())
	}
}

// finds opens a page and loads it again until all words can be read there: opened anew, a page may come out of the browser's cache.
func (p *person) finds(path string, words ...string) {
	p.t.Helper()
	page, found := "", false
	defer func() {
		if !found {
			p.t.Logf("%s reads:\n%s", path, page)
		}
	}()
	p.open(path)
	awaitWithin(p.t, personPatience, fmt.Sprintf("%q on %s", words, path), func() bool {
		p.leads("load "+path+" again", chromedp.Reload())
		page = p.page()
		for _, w := range words {
			if !strings.Contains(page, w) {
				return false
			}
		}
		found = true
		return true
	})
}

// leaves ends the listening to the console, in which nothing may have gone wrong: no script failed, nothing was missing, and
// nothing was kept from loading by the page's own policy.
func (p *person) leaves() {
	p.t.Helper()
	p.do("look at the console", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := chromedp.Evaluate[any](fmt.Sprintf("console.info(%q)", p.fence))(ctx, tab)
		return err
	}))
	select {
	case messages := <-p.console:
		for _, m := range messages {
			if p.refused > 0 && strings.Contains(m.Text, "responded with a status of 4") {
				p.refused-- // which browsers say of each page that is not 200
				continue
			}
			if m.Type != chromedp.ConsoleDebug { // advice to those who make pages
				p.t.Errorf("the browser says at %s: %s", m.URL, m)
			}
		}
	case <-time.After(personPatience):
		p.t.Error("the console does not say what it was told to say")
	}
}
