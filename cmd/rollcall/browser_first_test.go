package main_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestTheFirstFiveMinutes is what somebody does who has just started the service: from an empty database, with nothing but a URL and
// a webhook to paste, and without a look into the documentation.
func TestTheFirstFiveMinutes(t *testing.T) {
	t.Parallel()
	b := newBeginner(startBrowser(t), t)
	b.setUp()
	b.paste()
	b.save()
	b.addSlack()
	b.copyBadges()
	b.leaves()
}

// beginner is somebody with a service that knows nothing yet.
type beginner struct {
	*person
	instance *instance
	target   *gate
	slack    *alertstest.Slack
}

func newBeginner(browser context.Context, t *testing.T) *beginner {
	t.Helper()
	i := serveInstance(t, []string{testKey, "ROLLCALL_ADMIN_TOKEN="}, "--allow-private", "127.0.0.0/8")
	return &beginner{person: newPerson(browser, t, i.url), instance: i, target: newGate(t, probetest.MCP(t, probetest.LegacyOnly())), slack: alertstest.NewSlack(t)}
}

// setupLink returns the link that is printed at the first start. What a process prints may be read after it answers requests.
func (i *instance) setupLink() string {
	i.t.Helper()
	pattern := regexp.MustCompile(`http://\S+/setup\?token=\S+\n`)
	i.await("the link to be printed", func() bool { return pattern.MatchString(i.log.String()) })
	return strings.TrimSpace(pattern.FindString(i.log.String()))
}

// setUp opens the link that is printed at the first start, and chooses a password.
func (b *beginner) setUp() {
	b.t.Helper()
	b.open(b.instance.setupLink())
	b.fill("Name", "ada")
	b.fill("Password", "short")
	b.pressHere("Set up")
	if !evaluate[bool](b.person, `document.activeElement.validity.tooShort`) {
		b.t.Error("the browser does not hold a password back that is too short")
	}
	b.fill("Password", showcasePassword)
	b.press("Set up")
	b.sees("Nothing is watched yet", "Paste the URL of one")
}

// paste gives the URL, and looks at each step of the conversation while the server lets it wait.
func (b *beginner) paste() {
	b.t.Helper()
	b.fill("Paste the URL of one", b.target.url)
	b.marks()
	b.pressHere("Find out what it is")
	var told []string
	over := func() bool { return strings.Contains(b.page(), "Proposed") }
	for b.target.holds(b.t, over) {
		var rows []string
		awaitWithin(b.t, toldWithin, "the step that is waited for", func() bool {
			rows = evaluate[[]string](b.person, `[...document.querySelectorAll("#talk ol li")].map(row => row.innerText)`)
			return len(rows) > len(told) && strings.Contains(rows[len(rows)-1], "asking…")
		})
		if page := b.page(); strings.Contains(page, "broke off") {
			b.t.Errorf("while all goes well, it says that the conversation broke off:\n%s", page)
		}
		for _, row := range rows[:len(rows)-1] {
			if strings.Contains(row, "asking…") || !strings.Contains(row, "ms") {
				b.t.Errorf("a step that is over reads %q", row)
			}
		}
		told = rows
		b.target.passes()
	}
	for _, step := range []string{"initialize", "initialized", "tools/list"} {
		if !slices.ContainsFunc(told, func(row string) bool { return strings.HasPrefix(row, step) }) {
			b.t.Errorf("the step %s was not seen while it happened: %q", step, told)
		}
	}
	b.becomes("It answers as it should", "MCP", "Proposed", "It calls itself", "counts as degraded")
	b.stayed()
	if name, _ := b.typed("Name"); name == "" {
		b.t.Error("no name is proposed")
	}
	want := map[string]string{
		"URL": b.target.url, "Schedule": "@every 60s", "Timeout": "15s", "Down after": "2",
		"Degraded over": find(b.t, `more than (\S+) counts as degraded`, b.page()), // by how long it took, with all the waiting
	}
	if strings.Contains(b.page(), "It takes its time") {
		want["Schedule"], want["Timeout"] = "@every 5m", "30s"
	}
	for label, want := range want {
		if got, _ := b.typed(label); got != want {
			b.t.Errorf("%s is proposed as %q, want %q", label, got, want)
		}
	}
}

// save keeps what is proposed. The first result comes within a second, and by itself.
func (b *beginner) save() {
	b.t.Helper()
	b.target.opens()
	b.press("Save it like this")
	b.marks()
	b.becomes("Answers as it should", "tools/list")
	b.stayed()
	times := evaluate[[]string](b.person, `(async () => {
		const read = async (path) => (await fetch("/api/v1" + path)).json();
		const endpoint = (await read("/endpoints")).items[0];
		const checks = (await read("/endpoints/" + endpoint.slug + "/checks")).items;
		return [endpoint.created_at, checks.at(-1).started_at];
	})()`)
	registered, began := parseTime(b.t, times[0]), parseTime(b.t, times[1])
	if wait := began.Sub(registered); wait < 0 || wait >= time.Second {
		b.t.Errorf("the first check began %s after the registration, want it within a second", wait)
	}
}

func parseTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// addSlack pastes the address of a webhook, and nothing else.
func (b *beginner) addSlack() {
	b.t.Helper()
	b.open("/channels")
	b.fill("Webhook URL, bot token or email address", b.slack.WebhookURL())
	b.press("Add it and send a test")
	b.sees("Slack", "the test message was accepted")
	if sent := b.slack.WaitFor(1, toldWithin)[0]; sent.Kind != alertstest.Webhook || !strings.Contains(sent.Text, "test") {
		b.t.Errorf("the test came as %+v", sent)
	}
}

// copyBadges makes the endpoint public, as the page of badges advises, and copies a badge in each of its forms.
func (b *beginner) copyBadges() {
	b.t.Helper()
	b.open("/")
	b.press(evaluate[string](b.person, `document.querySelector(".roll a.name").innerText`))
	b.press("Make a badge")
	b.sees("not public")
	b.press("Make it public")
	b.tick("Public")
	b.press("Save changes")
	b.press("Make a badge")
	b.do("let the page read the clipboard", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: "clipboard-read"}, Setting: browser.PermissionSettingGranted,
			Origin: b.base, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
		})
		return err
	}))
	for form, around := range map[string][2]string{
		"Markdown": {"[![", "]("}, "HTML": {"<a href=", "<img src="}, "AsciiDoc": {"image:", "link="},
	} {
		b.do("copy "+form, b.hit(chromedp.Search(`//label[normalize-space()="`+form+`"]/following-sibling::button`)))
		b.becomes("Copied")
		text := evaluate[string](b.person, `navigator.clipboard.readText()`)
		shown, _ := b.typed(form)
		if text != shown || !strings.Contains(text, around[0]) || !strings.Contains(text, around[1]) {
			b.t.Errorf("as %s, %q is copied of %q", form, text, shown)
		}
		b.wantPicture(find(b.t, `https?://[^\s)"\[]+\.svg[^\s)"\[]*`, text))
	}
	if widths := evaluate[[]int](b.person, `[...document.querySelectorAll("#made img")].map(i => i.naturalWidth)`); len(widths) != 2 || slices.Min(widths) < 40 {
		b.t.Errorf("the badges on the page are %d wide", widths)
	}
}

// wantPicture fails the test unless everybody is shown a badge at an address, which says that the endpoint is up.
func (b *beginner) wantPicture(address string) {
	b.t.Helper()
	answer, err := http.Get(strings.ReplaceAll(address, "&amp;", "&"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if got := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || !strings.HasPrefix(got, "image/svg+xml") || !strings.Contains(string(body), "up") {
		b.t.Errorf("%s is answered with %d, %s: %.300s", address, answer.StatusCode, got, body)
	}
}

// gate stands in front of an MCP server and holds each request back until the test lets it pass.
type gate struct {
	url    string
	waits  chan chan struct{} // requests: each passes when its channel is closed
	next   chan struct{}      // the one that is held back
	open   chan struct{}      // closed for all to pass
	opened sync.Once
}

func newGate(t testing.TB, behind *probetest.Server) *gate {
	t.Helper()
	to, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{waits: make(chan chan struct{}), open: make(chan struct{})}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // whoever asked has left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		g.hold(r.Context())
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(g.opens)
	g.url = s.URL + to.Path
	return g
}

func (g *gate) hold(ctx context.Context) {
	pass := make(chan struct{})
	select {
	case g.waits <- pass:
	case <-g.open:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-pass:
	case <-g.open:
	case <-ctx.Done():
	}
}

// holds waits until a request is held back, and reports false when all is over without another.
func (g *gate) holds(t testing.TB, over func() bool) bool {
	t.Helper()
	g.next = nil
	awaitWithin(t, toldWithin, "the next request, or the end", func() bool {
		select {
		case g.next = <-g.waits:
			return true
		default:
			return over()
		}
	})
	return g.next != nil
}

// passes lets the request pass that is held back.
func (g *gate) passes() { close(g.next) }

// opens lets all requests pass.
func (g *gate) opens() { g.opened.Do(func() { close(g.open) }) }
