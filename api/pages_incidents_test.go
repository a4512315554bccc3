package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// hostileWords are what somebody may put into a title, a comment or a name.
const hostileWords = `</textarea><script>alert("x")</script><img src=x onerror=alert(1)> {{.}} ` + "\u202eevil"

// down registers Weather, which is down, and returns the address of its incident.
func (s *site) down() string {
	s.t.Helper()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather", "public", "yes"))
	r := failing()
	r.Transcript = []probe.Message{{Step: "tools/list", Sent: true, Head: "POST /mcp HTTP/1.1", Body: `{"method":"tools/list"}`}}
	s.answer(r)
	s.post("/endpoints/weather", url.Values{"action": {"check"}})
	link := s.get("/incidents").link("/incidents/inc_")
	if link == "" {
		s.t.Fatal("there is no incident")
	}
	return link
}

// buttons are the acts that a page offers.
func (p shown) buttons() []string {
	var acts []string
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "button" && attribute(n, "name") == "action" && !slices.Contains(acts, attribute(n, "value")) {
			acts = append(acts, attribute(n, "value"))
		}
	}
	return acts
}

// clean reports whether nothing of hostileWords has become a part of the page's structure.
func (p shown) clean() bool {
	return p.find(func(n *html.Node) bool {
		return n.Data == "img" && attribute(n, "src") == "x" || n.Data == "script" && n.FirstChild != nil
	}) == nil
}

func TestAnIncidentIsActedOnFromItsPage(t *testing.T) {
	s := newSite(t)
	s.setUp()
	path := s.down()

	page := s.get(path)
	if diff := cmp.Diff([]string{"acknowledge", "snooze", "resolve", "comment"}, page.buttons()); diff != "" {
		t.Errorf("an open incident offers (-want +got):\n%s", diff)
	}
	for _, want := range []string{"Weather has been down for", "tools/list", "-32603", "upstream <gone>", "The conversation: 1 message", "POST /mcp", "Confirmed", "Still going on", "Checks around it"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page does not say %q: %s", want, page.text)
		}
	}

	act := func(form url.Values, says ...string) shown {
		t.Helper()
		action := form.Get("action")
		got := s.post(path, form)
		if want := path + "?done=" + action; got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Fatalf("%s: got %d to %q: %s", action, got.status, got.header.Get("Location"), got.text)
		}
		page := s.get(path)
		for _, want := range says {
			if !strings.Contains(page.text, want) {
				t.Errorf("after %s the page does not say %q: %s", action, want, page.text)
			}
		}
		return page
	}
	page = act(url.Values{"action": {"acknowledge"}}, "Acknowledged by ada")
	if slices.Contains(page.buttons(), "acknowledge") {
		t.Error("what is acknowledged is offered to be acknowledged")
	}
	act(url.Values{"action": {"snooze"}, "for": {"4h"}}, "Snoozed until")
	act(url.Values{"action": {"snooze"}, "for": {"morning"}}, "Snoozed until")
	morning := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond) // of the reader, as a browser says it
	act(url.Values{"action": {"snooze"}, "for": {morning.Format("2006-01-02T15:04:05.000Z")}}, "Snoozed until "+morning.Format("2 Jan 2006, 15:04:05 UTC"))
	if list := s.get("/incidents").text; !strings.Contains(list, "acknowledged by ada") || !strings.Contains(list, "snoozed until") {
		t.Errorf("the list does not say what was done: %s", list)
	}
	page = act(url.Values{"action": {"comment"}, "text": {hostileWords}, "public": {"yes"}}, hostileWords, "on the status page")
	if !page.clean() {
		t.Error("a comment became a part of the page")
	}
	act(url.Values{"action": {"resolve"}, "text": {"It was the disk."}}, "Resolved by ada", "It was the disk.", "Resolved by hand")

	id := strings.TrimPrefix(path, "/incidents/")
	i, err := s.store.Incident(t.Context(), id)
	if err != nil || i.ResolvedAt == nil || i.Resolution != store.ResolutionManual {
		t.Errorf("kept %+v, %v", i, err)
	}
	page = s.get(path)
	if diff := cmp.Diff([]string{"reopen", "comment"}, page.buttons()); diff != "" {
		t.Errorf("an incident that is over offers (-want +got):\n%s", diff)
	}
	late := s.post(path, url.Values{"action": {"acknowledge"}, "text": {hostileWords}})
	if late.status != http.StatusConflict || !strings.Contains(late.text, "comes too late") || late.field("text") != hostileWords || !late.clean() {
		t.Errorf("too late: got %d with %q: %s", late.status, late.field("text"), late.text)
	}
	act(url.Values{"action": {"reopen"}}, "Opened again by ada", "Still going on")
}

func TestAnActThatCannotBeIsRefusedBesideItsField(t *testing.T) {
	s := newSite(t)
	s.setUp()
	path := s.down()
	for name, test := range map[string]struct {
		form   url.Values
		status int
		field  string
	}{
		"a comment without words":  {url.Values{"action": {"comment"}, "text": {" "}}, 422, "f-text"},
		"a comment that is a book": {url.Values{"action": {"comment"}, "text": {strings.Repeat("ä", 4001)}}, 422, "f-text"},
		"a snooze for no time":     {url.Values{"action": {"snooze"}, "for": {"soon"}}, 422, "f-for"},
		"a snooze for ever":        {url.Values{"action": {"snooze"}, "for": {"9000h"}}, 422, "f-for"},
		"a snooze until long ago":  {url.Values{"action": {"snooze"}, "for": {"2001-01-01T08:00:00.000Z"}}, 422, "f-for"},
		"a snooze until far ahead": {url.Values{"action": {"snooze"}, "for": {"9999-12-31T23:59:59+14:00"}}, 422, "f-for"},
		"nothing":                  {url.Values{}, 422, "f-act"},
	} {
		got := s.post(path, test.form)
		if got.status != test.status || !strings.Contains(got.body, `href="#`+test.field+`"`) || !strings.Contains(got.body, `id="`+test.field+`"`) {
			t.Errorf("%s: got %d: %s", name, got.status, got.text)
		}
		if text := strings.TrimSpace(test.form.Get("text")); got.field("text") != text {
			t.Errorf("%s: %d bytes of what was typed are left of %d", name, len(got.field("text")), len(text))
		}
	}
	if got := s.post("/incidents/inc_none", url.Values{"action": {"acknowledge"}}); got.status != http.StatusNotFound {
		t.Errorf("an incident that is not there: got %d", got.status)
	}
}

// What ends by itself would be opened again by the next look at it.
func TestNobodyIsOfferedToResolveWhatEndsByItself(t *testing.T) {
	s := newSite(t)
	s.setUp()
	halted := store.Incident{Kind: store.IncidentChain, Subject: store.SubjectOfChain("evm 1"), Title: "Ethereum", Severity: store.StatusDegraded}
	i, _, err := s.store.Raise(t.Context(), halted, "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	path := "/incidents/" + i.ID
	if diff := cmp.Diff([]string{"acknowledge", "snooze", "comment"}, s.get(path).buttons()); diff != "" {
		t.Errorf("while it is open (-want +got):\n%s", diff)
	}
	if got := s.post(path, url.Values{"action": {"resolve"}}); !strings.Contains(got.text, "ends by itself") {
		t.Errorf("resolve: got %d: %s, want that it ends by itself", got.status, got.text)
	}
	if _, err := s.store.Clear(t.Context(), i.Subject, time.Now(), store.ResolutionRecovered, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"comment"}, s.get(path).buttons()); diff != "" {
		t.Errorf("when it is over (-want +got):\n%s", diff)
	}
}

func TestAnIncidentIsOpenedByHand(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://a.example/mcp"), "name", `A <b>"&'`))
	s.mustRegister(with(endpointForm("save", "https://b.example/mcp"), "name", "Other"))

	bad := s.post("/incidents/new", url.Values{
		"title": {""}, "severity": {"down"}, "text": {hostileWords}, "endpoints": {"other"}, "endpoints_typed": {"gone, other"},
		"started_at": {time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04")},
	})
	if bad.status != http.StatusUnprocessableEntity || bad.field("text") != hostileWords || bad.field("severity") != "down" || !bad.clean() ||
		!strings.Contains(bad.field("endpoints_typed"), "gone") {
		t.Errorf("mistakes: got %d, text %q, slugs %q", bad.status, bad.field("text"), bad.field("endpoints_typed"))
	}
	for _, id := range []string{"f-title", "f-started-at", "f-endpoints"} {
		if !strings.Contains(bad.body, `href="#`+id+`"`) {
			t.Errorf("the summary does not lead to #%s", id)
		}
	}

	got := s.post("/incidents/new", url.Values{"title": {hostileWords}, "severity": {"degraded"}, "text": {"We look into it."}, "endpoints": {"other"}, "endpoints_typed": {"a-b"}})
	if got.status == http.StatusUnprocessableEntity {
		o, err := s.store.Endpoints(t.Context(), store.EndpointFilter{})
		t.Fatalf("refused: %s; slugs %v, %v", got.text, o.Items, err)
	}
	path, _, _ := strings.Cut(got.header.Get("Location"), "?")
	page := s.get(path)
	for _, want := range []string{hostileWords, `A <b>"&'`, "Other", "We look into it.", "Opened by ada", "Degraded"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("its page does not say %q: %s", want, page.text)
		}
	}
	list := s.get("/incidents")
	if !page.clean() || !list.clean() || !strings.Contains(list.text, hostileWords) {
		t.Errorf("the list says: %s", list.text)
	}
	if got := s.post(path, url.Values{"action": {"resolve"}, "text": {"Over."}, "public": {"yes"}}); got.status != http.StatusSeeOther {
		t.Errorf("resolve: got %d: %s", got.status, got.text)
	}
}

func TestAnIncidentNamesThoseThatStandBehindItsEndpoint(t *testing.T) {
	s := newSite(t)
	s.setUp()
	path := s.down()
	s.mustRegister(with(endpointForm("save", "https://b.example/mcp"), "name", "Behind <it>", "alerts", "yes", "notify", "down", "depends_on", "weather"))
	if page := s.get(path); !strings.Contains(page.text, "Stand behind it") || page.link("/endpoints/behind-it") == "" {
		t.Errorf("the page says: %s", page.text)
	}
}
