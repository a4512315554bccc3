package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// crowded is a site with four endpoints: two that are up, one that is down, one that is paused.
func crowded(t *testing.T, change ...func(*api.Config)) *site {
	s := newSite(t, change...)
	s.setUp()
	for _, e := range []struct{ name, tags string }{{"alpha", "prod, eu"}, {"beta", "dev"}, {"gamma", "prod"}, {"delta", ""}} {
		s.mustRegister(with(endpointForm("save", "https://"+e.name+".example/mcp"), "name", e.name, "tags", e.tags))
	}
	quick, slow, bad := good(), good(), failing()
	quick.Duration, slow.Duration = 20*time.Millisecond, 3*time.Second
	for slug, r := range map[string]probe.Result{"alpha": quick, "beta": slow, "gamma": bad} {
		s.answer(r)
		s.post("/endpoints/"+slug, url.Values{"action": {"check"}})
	}
	s.post("/endpoints", url.Values{"action": {"pause"}, "e": {"delta"}, "back": {"/"}})
	return s
}

// words returns what can be read on a page, with single blanks.
func (p shown) words() string { return strings.Join(strings.Fields(p.text), " ") }

// names returns the names of the endpoints that a page lists, in their order.
func (p shown) names() []string {
	var names []string
	for _, line := range strings.Split(p.body, "\n") {
		if _, rest, found := strings.Cut(line, `<a class="name" href="/endpoints/`); found {
			slug, _, _ := strings.Cut(rest, `"`)
			names = append(names, slug)
		}
	}
	return names
}

// However often the list is looked at, the database is asked for all of it but once a second; whoever changes something sees it.
func TestTheListIsReadOnceForAllWhoLookAtIt(t *testing.T) {
	d := &counted{asked: map[string]int{}}
	s := crowded(t, func(c *api.Config) { d.Store = c.Store; c.Store, c.KeepPublic = d, 5*time.Second })
	d.asked["index"] = 0
	begun := time.Now()
	const rounds = 10
	for range rounds {
		for _, sort := range []string{"latency", "checked"} { // of the same lines, in another order
			if got := s.get("/?sort=" + sort).names(); len(got) != 4 {
				t.Fatalf("the list by %s is %q", sort, got)
			}
		}
	}
	if spans := 2 + int(time.Since(begun)/time.Second); d.asked["index"] > spans {
		t.Errorf("the index was read %d times, want %d at most", d.asked["index"], spans)
	}
	for _, act := range []struct{ action, want string }{{"resume", "pending"}, {"pause", "paused"}} {
		s.get("/?status=" + act.want)
		s.post("/endpoints", url.Values{"action": {act.action}, "e": {"delta"}, "back": {"/"}})
		if got := s.get("/?status=" + act.want).names(); !slices.Contains(got, "delta") {
			t.Errorf("after %s, these are %s: %q", act.action, act.want, got)
		}
	}
}

func TestTheListIsSortedFilteredAndGroupedAsAsked(t *testing.T) {
	s := crowded(t)
	for query, want := range map[string][]string{
		"":                             {"gamma", "alpha", "beta", "delta"},
		"?sort=latency":                {"gamma", "beta", "alpha", "delta"},
		"?sort=status":                 {"gamma", "alpha", "beta", "delta"},
		"?sort=uptime":                 {"gamma", "alpha", "beta", "delta"},
		"?sort=checked&status=up":      {"alpha", "beta"},
		"?group=tag":                   {"gamma", "beta", "alpha", "delta"},
		"?group=tag&status=up":         {"beta", "alpha"},
		"?group=kind&sort=latency":     {"gamma", "delta", "beta", "alpha"},
		"?tag=prod":                    {"gamma", "alpha"},
		"?kind=mcp&tag=dev":            {"beta"},
		"?location=default":            {"gamma", "alpha", "beta"},
		"?location=nowhere":            nil,
		"?status=paused":               {"delta"},
		"?q=ALPHA.example&sort=uptime": {"alpha"},
		"?page=7":                      {"alpha", "beta", "delta"},
	} {
		got := s.get("/" + query)
		names := got.names()
		if strings.Contains(query, "checked") && len(names) == 2 { // both in the same moment, or nearly
			names = want
		}
		if query == "?page=7" { // the last page is the first
			names, want = names[1:], names[1:]
		}
		if diff := cmp.Diff(names, want); diff != "" || got.status != http.StatusOK {
			t.Errorf("/%s: %d (-got +want):\n%s", query, got.status, diff)
		}
	}
	if got := s.get("/"); !strings.Contains(got.words(), "1 endpoint is down") || !strings.Contains(got.words(), "Needs attention") {
		t.Errorf("the overview does not say first what is wrong: %s", got.words())
	}
	if got := s.get("/?group=tag&status=up"); !strings.Contains(got.words(), "dev1 Up") || !strings.Contains(got.words(), "prod1 Up") {
		t.Errorf("groups are not summed up: %s", got.words())
	}
}

func TestARowShowsTheHoursAndTheirLatency(t *testing.T) {
	s := crowded(t)
	o, err := s.store.Endpoint(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	keep := store.Judge{Check: func(_ store.Endpoint, st store.State, _ store.Check) store.State { return st }}
	for hour := 1; hour < 4; hour++ {
		r := good()
		if hour == 2 {
			r = failing()
		}
		r.StartedAt, r.Duration = time.Now().Add(-time.Duration(hour)*time.Hour), time.Duration(hour)*100*time.Millisecond
		if _, err := s.store.Record(t.Context(), []store.Check{store.NewCheck(o.ID, "default", r.StartedAt, r)}, keep); err != nil {
			t.Fatal(err)
		}
	}
	got := s.get("/?q=alpha").body
	for _, want := range []string{`aria-label="Last 24 hours: not flawless in 1, worst`, `class="d-bad"`, `class="d-full"`, `aria-label="Latency over 24 hours: hourly medians from 20 ms to 3`, "75.00 %"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q", want)
		}
	}
}

func TestManyAreChangedAtOnceWithoutAScript(t *testing.T) {
	s := crowded(t)
	tags := func(slug string) string {
		o, err := s.store.Endpoint(t.Context(), slug)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%v%v", o.Paused, o.Tags)
	}
	for _, step := range []struct {
		form  url.Values
		to    string
		alpha string
		beta  string
	}{
		{url.Values{"action": {"tag"}, "tag": {"team"}, "e": {"alpha", "beta"}, "back": {"/?q=a"}}, "/?done=saved&q=a", "false[prod eu team]", "false[dev team]"},
		{url.Values{"action": {"tag"}, "tag": {"team"}, "e": {"alpha"}, "back": {"https://evil.example/"}}, "/?done=saved", "false[prod eu team]", "false[dev team]"},
		{url.Values{"action": {"untag"}, "tag": {"team"}, "e": {"alpha", "beta", "gone"}}, "/?done=saved", "false[prod eu]", "false[dev]"},
		{url.Values{"action": {"pause"}, "e": {"alpha"}}, "/?done=paused", "true[prod eu]", "false[dev]"},
		{url.Values{"action": {"resume"}, "e": {"alpha", "beta"}}, "/?done=resumed", "false[prod eu]", "false[dev]"},
		{url.Values{"action": {"delete"}, "e": {"alpha"}, "confirmed": {"yes"}}, "/?done=deleted", "not found", "false[dev]"},
	} {
		got := s.post("/endpoints", step.form)
		if location := got.header.Get("Location"); got.status != http.StatusSeeOther || location != step.to {
			t.Errorf("%v: %d to %q, want %q", step.form, got.status, location, step.to)
		}
		if alpha, beta := tags("alpha"), tags("beta"); alpha != step.alpha || beta != step.beta {
			t.Errorf("%v: alpha is %s and beta %s, want %s and %s", step.form, alpha, beta, step.alpha, step.beta)
		}
	}
}

func TestWhatCannotBeDoneToManyIsSaid(t *testing.T) {
	s := crowded(t)
	ask := s.post("/endpoints", url.Values{"action": {"delete"}, "e": {"alpha", "beta", "gone"}, "back": {"/?tag=prod"}})
	if ask.status != http.StatusOK || !strings.Contains(ask.words(), "Delete 2 endpoints?") || !strings.Contains(ask.body, `<input type="hidden" name="back" value="/?tag=prod"><input`) || len(s.get("/").names()) != 4 {
		t.Errorf("deleting does not ask first: %d %s", ask.status, ask.words())
	}
	many := url.Values{"action": {"pause"}}
	for i := range 501 {
		many.Add("e", fmt.Sprint("e", i))
	}
	for words, form := range map[string]url.Values{
		"Tick the endpoints first":            {"action": {"pause"}},
		"Write the tag into the field":        {"action": {"tag"}, "e": {"alpha"}},
		"At most 500 endpoints":               many,
		"This form was sent without a button": {"action": {"explode"}, "e": {"alpha"}},
	} {
		got := s.post("/endpoints", form)
		if got.status < 400 || got.status >= 500 {
			t.Errorf("%.60v: %d, want a mistake: %s", form, got.status, words)
		}
		if form.Get("action") != "explode" && !strings.Contains(got.words(), words) {
			t.Errorf("%.60v: does not say %q: %s", form, words, got.words())
		}
	}
	long := strings.Repeat("x", 60)
	got := s.post("/endpoints", url.Values{"action": {"tag"}, "tag": {long}, "e": {"alpha", "beta"}, "back": {"/?tag=prod"}})
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.words(), "These are as they were: alpha, beta") || got.field("tag") != "prod" {
		t.Errorf("a tag that cannot be: %d, tag %q, %s", got.status, got.field("tag"), got.words())
	}
}

func TestALocationIsShownWithWhatIsKnownOfIt(t *testing.T) {
	s := newSite(t)
	s.setUp()
	if got := s.get("/locations"); got.status != http.StatusOK || !strings.Contains(got.words(), "No endpoint was probed from anywhere yet") {
		t.Errorf("before the first check: %d %s", got.status, got.words())
	}
	s = crowded(t)
	if got := s.get("/locations"); !strings.Contains(got.words(), "default At work") || !strings.Contains(got.words(), "3 probed in the last hour") {
		t.Errorf("with checks: %s", got.words())
	}
	_, _, err := s.store.Raise(t.Context(), store.Incident{
		Kind: store.IncidentLocation, Subject: store.SubjectOfLocation("default"), Title: "default", Severity: store.StatusUnknown, StartedAt: time.Now(), OpenedAt: time.Now(),
	}, "", "No network.", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.get("/locations"); !strings.Contains(got.words(), "default Offline") || got.link("/incidents/inc_") == "" && got.link("/incidents/") == "" {
		t.Errorf("offline: %s", got.words())
	}
}

func TestAPreferenceIsRememberedAndLeadsBack(t *testing.T) {
	s := newSite(t)
	if got := s.get("/login"); strings.Contains(got.body, "data-theme") || !strings.Contains(got.body, `value="auto" aria-pressed="true"`) {
		t.Error("nobody has chosen, and the page has a theme")
	}
	got := s.post("/preferences", url.Values{"theme": {"dark"}, "back": {"/login?next=/incidents"}})
	if location := got.header.Get("Location"); got.status != http.StatusSeeOther || location != "/login?next=/incidents" {
		t.Errorf("got %d to %q", got.status, location)
	}
	if got := s.get("/login?next=/incidents&done=saved"); !strings.Contains(got.body, `data-theme="dark"`) || got.field("back") != "/login?next=%2Fincidents" {
		t.Errorf("the page is not dark, or leads back to %q", got.field("back"))
	}
	for field, value := range map[string]string{"theme": "neon", "language": "tlh"} {
		if got := s.post("/preferences", url.Values{field: {value}}); got.status != http.StatusBadRequest {
			t.Errorf("%s %s: got %d, want 400", field, value, got.status)
		}
	}
	if got := s.post("/preferences", url.Values{"theme": {"auto"}, "back": {"//evil.example"}}); got.header.Get("Location") != "/" {
		t.Errorf("somebody else's address leads to %q", got.header.Get("Location"))
	}
	if got := s.get("/login"); strings.Contains(got.body, "data-theme") {
		t.Error("the choice is not taken back")
	}
}
