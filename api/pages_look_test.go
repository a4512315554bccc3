package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// event is one of a stream.
type event struct{ name, data string }

// follow posts a form as a browser does that can follow a conversation.
func (s *site) follow(path string, form url.Values) (status int, contentType string, events []event) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/event-stream, text/html")
	reply, err := s.browser.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
			events = append(events, event{name: name})
		}
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			events[len(events)-1].data = data
		}
	}
	if err := lines.Err(); err != nil {
		s.t.Fatal(err)
	}
	return reply.StatusCode, reply.Header.Get("Content-Type"), events
}

func TestAConversationIsToldAsItHappensAndThenThePage(t *testing.T) {
	s := newTalkingSite(t)
	s.setUp()
	status, kind, events := s.follow("/endpoints/new", url.Values{"action": {"test"}, "short": {"yes"}, "url": {"https://mcp.example/mcp"}})
	if status != http.StatusOK || kind != "text/event-stream" || len(events) != 5 {
		t.Fatalf("got %d, %s and %d events, want two steps that begin and end, and a page", status, kind, len(events))
	}
	var told []map[string]any
	for _, e := range events[:4] {
		var step map[string]any
		if err := json.Unmarshal([]byte(e.data), &step); err != nil || e.name != "step" {
			t.Fatalf("%s %s: %v", e.name, e.data, err)
		}
		told = append(told, step)
	}
	want := []map[string]any{
		{"at": 0.0, "name": "initialize", "done": false},
		{"at": 0.0, "name": "initialize", "done": true, "tone": "up", "latency": "52 ms"},
		{"at": 1.0, "name": "tools/list", "done": false},
		{"at": 1.0, "name": "tools/list", "done": true, "tone": "pending", "latency": "6.00 s", "class": "rpc_error", "code": -32603.0, "message": "<b>no</b>"},
	}
	if diff := cmp.Diff(told, want); diff != "" {
		t.Errorf("the steps (-got +want):\n%s", diff)
	}
	var page string
	if err := json.Unmarshal([]byte(events[4].data), &page); err != nil || events[4].name != "page" || !strings.Contains(page, "<main") {
		t.Errorf("the last event is %s, %v", events[4].name, err)
	}
}

func TestWhoCannotFollowGetsThePageAlone(t *testing.T) {
	s := newTalkingSite(t)
	s.setUp()
	got := s.post("/endpoints/new", url.Values{"action": {"test"}, "short": {"yes"}, "url": {"https://mcp.example/mcp"}})
	if got.status != http.StatusOK || got.field("url") != "https://mcp.example/mcp" || got.field("schedule") != "@every 60s" {
		t.Errorf("got %d with URL %q and schedule %q", got.status, got.field("url"), got.field("schedule"))
	}
	status, kind, _ := s.follow("/endpoints/new", url.Values{"action": {"test"}, "short": {"yes"}, "url": {"no url"}})
	if status != http.StatusUnprocessableEntity || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("a mistake: got %d, %s, want the page with it", status, kind)
	}
}

// newTalkingSite is a site whose probes tell of their steps, as real ones do.
func newTalkingSite(t *testing.T) *site {
	return newSite(t, func(c *api.Config) {
		c.Probe = func(_ context.Context, target probe.Target) probe.Result {
			r := probe.Result{StartedAt: time.Now(), Duration: 7 * time.Second, Kind: probe.KindMCP, Verdict: probe.Down, Steps: []probe.Step{
				{Name: "initialize", Latency: 52 * time.Millisecond, HTTPStatus: 200},
				{Name: "tools/list", Latency: 6 * time.Second, Class: probe.ClassRPCError, Code: -32603, Message: "<b>no</b>"},
			}}
			r.Failure = &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "<b>no</b>"}
			if target.Watch != nil {
				for i, step := range r.Steps {
					target.Watch(i, probe.Step{Name: step.Name}, false)
					target.Watch(i, step, true)
				}
			}
			return r
		}
	})
}

func TestWhatATryShowsIsProposedWhereNobodyTypedAnything(t *testing.T) {
	expires := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	quick := good()
	quick.Duration, quick.Facts.ServerName, quick.Facts.TLSExpiresAt = 300*time.Millisecond, "Weather <b>service</b>", &expires
	slow := good()
	slow.Duration, slow.Facts.ServerName = 8*time.Second, ""
	slow.Verdict, slow.Failure = probe.Degraded, &probe.Failure{Step: "initialize", Class: probe.ClassSlow, Message: "took 8s, more than 5s"}
	for name, test := range map[string]struct {
		saw  probe.Result
		form url.Values
		want map[string]string
		says []string
	}{
		"a quick one": {quick, url.Values{"short": {"yes"}, "url": {"https://mcp.example/mcp"}},
			map[string]string{"name": "Weather <b>service</b>", "schedule": "@every 60s", "timeout": "15s", "degraded_over": "2s"},
			[]string{"It calls itself Weather <b>service</b>.", "It took 300 ms: more than 2s counts as degraded.", "good until 31 Jan 2027"}},
		"a slow one": {slow, url.Values{"short": {"yes"}, "url": {"https://mcp.example/mcp"}},
			map[string]string{"name": "", "schedule": "@every 5m", "timeout": "30s", "degraded_over": "20s"},
			[]string{"It takes its time", "It took 8.00 s: more than 20s counts as degraded."}},
		"what was typed stays": {quick, with(endpointForm("test", "https://mcp.example/mcp"), "name", "Mine", "schedule", "@every 30s", "degraded_over", "7s"),
			map[string]string{"name": "Mine", "schedule": "@every 30s", "timeout": "15s", "degraded_over": "7s"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.setUp()
			s.answer(test.saw)
			test.form.Set("action", "test")
			got := s.post("/endpoints/new", test.form)
			for field, want := range test.want {
				if got.field(field) != want {
					t.Errorf("%s is %q, want %q", field, got.field(field), want)
				}
			}
			for _, words := range test.says {
				if !strings.Contains(got.text, words) {
					t.Errorf("the page does not say %q", words)
				}
			}
		})
	}
}

func TestANameThatIsTakenIsNotProposed(t *testing.T) {
	s := newSite(t)
	s.setUp()
	saw := good()
	saw.Facts.ServerName = "weather"
	s.answer(saw)
	e := store.NewEndpoint()
	e.Name, e.URL = "Weather", "https://weather.example/mcp"
	if _, err := s.store.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	got := s.post("/endpoints/new", url.Values{"action": {"test"}, "short": {"yes"}, "url": {"https://mcp.example/mcp"}})
	if got.field("name") != "" {
		t.Errorf("the name is %q, want none", got.field("name"))
	}
}

// tardy is a database in which a check is kept when an endpoint is read for the third time.
type tardy struct {
	store.Store

	reads atomic.Int32
	check func()
}

func (d *tardy) Endpoint(ctx context.Context, slug string) (store.Overview, error) {
	if d.reads.Add(1) == 3 {
		d.check()
	}
	return d.Store.Endpoint(ctx, slug)
}

func TestTheFirstResultIsOnThePageThatFollows(t *testing.T) {
	d := &tardy{}
	s := newSite(t, func(c *api.Config) { d.Store, c.Store = c.Store, d })
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://mcp.example/mcp"), "name", "Weather"))
	d.check = func() {
		if _, err := s.checkNow(t.Context(), "weather"); err != nil {
			t.Errorf("checkNow: %v", err)
		}
	}
	d.reads.Store(0)
	page := s.get("/endpoints/weather?done=registered")
	if got := page.done(); !strings.Contains(page.words(), "Answers as it should") || got != "Registered and checked." {
		t.Errorf("after %q, the page says: %s", got, page.words())
	}
}

func TestWhatIsRegisteredPausedIsNotSaidToBeChecked(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://mcp.example/mcp"), "name", "Weather"))
	if got := s.get("/endpoints/weather?done=registered").done(); got != "Registered. Its first check is under way." {
		t.Errorf("before the first check, the page says %q", got)
	}
	s.post("/endpoints/weather", url.Values{"action": {"pause"}})
	if got := s.get("/endpoints/weather?done=registered").done(); got != "Registered. It is paused: nothing is checked." {
		t.Errorf("of an endpoint that is paused, the page says %q", got)
	}
}

// done returns what a page says was done before it.
func (p shown) done() string {
	said := p.find(func(n *html.Node) bool { return n.Data == "p" && attribute(n, "class") == "done" })
	if said == nil {
		return ""
	}
	return strings.TrimSpace(textOf(said))
}
