package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// keepChecks records checks of an endpoint at some times, each as see made it.
func keepChecks(t testing.TB, db store.Store, slug string, times []time.Time, see func(at time.Time) probe.Result) {
	t.Helper()
	o, err := db.Endpoint(t.Context(), slug)
	if err != nil {
		t.Fatal(err)
	}
	judge := store.Judge{Check: func(_ store.Endpoint, s store.State, c store.Check) store.State {
		s.Status, s.Failure = store.Status(c.Result.Verdict), c.Result.Failure
		return s
	}}
	var group []store.Check
	for i, at := range times {
		r := see(at)
		r.StartedAt = at
		group = append(group, store.NewCheck(o.ID, "default", at, r))
		if len(group) < 500 && i < len(times)-1 {
			continue
		}
		if _, err := db.Record(t.Context(), group, judge); err != nil {
			t.Fatal(err)
		}
		group = nil
	}
}

// weatherSite has one endpoint with checks of three days ago.
func weatherSite(t *testing.T, change ...func(*api.Config)) (s *site, begin time.Time) {
	t.Helper()
	s = newSite(t, change...)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	begin = store.DayOf(time.Now().AddDate(0, 0, -3)).Add(7 * time.Hour)
	var times []time.Time
	for i := range 120 {
		times = append(times, begin.Add(time.Duration(i)*time.Minute))
	}
	keepChecks(t, s.store, "weather", times, func(at time.Time) probe.Result {
		if at.Hour() == 8 && at.Minute() >= 30 && at.Minute() < 40 {
			return failing()
		}
		return good()
	})
	return s, begin
}

func TestADayLeadsToItsHoursAndAnHourToItsChecks(t *testing.T) {
	s, begin := weatherSite(t)
	page := s.get("/endpoints/weather")
	day := page.link("/endpoints/weather?day=" + begin.Format("2006-01-02"))
	if day == "" {
		t.Fatalf("no bar leads to the day: %s", page.text)
	}
	if want := begin.Format("2 Jan 2006") + ": 91.66 % up"; !strings.Contains(page.body, want) {
		t.Errorf("the bar of the day does not say %q", want)
	}
	hours := s.get(day)
	if want := "The hours of " + begin.Format("2 Jan 2006"); !strings.Contains(hours.text, want) || !strings.Contains(hours.text, "91.66 % up") || !hours.clean() {
		t.Errorf("the day's page does not say %q: %s", want, hours.text)
	}
	hour := hours.link("/endpoints/weather?day=" + begin.Format("2006-01-02") + "&hour=" + begin.Format("2006-01-02") + "T08")
	if hour == "" {
		t.Fatal("no bar leads to the hour")
	}
	checks := s.get(hour)
	if n := strings.Count(checks.body, `class="check"`); n != 20 || !strings.Contains(checks.text, "of the hour from") {
		t.Errorf("the first page of the hour has %d checks, want 20: %s", n, checks.text)
	}
	down := s.get(checks.link(strings.Split(hour, "#")[0] + "&verdict=down"))
	if n := strings.Count(down.body, `class="check"`); n != 10 {
		t.Errorf("%d checks of the hour were down, want 10", n)
	}
	older := s.get(checks.link("/endpoints/weather?day=" + begin.Format("2006-01-02") + "&hour=" + begin.Format("2006-01-02") + "T08&cursor="))
	if n := strings.Count(older.body, `class="check"`); n != 20 {
		t.Errorf("the second page of the hour has %d checks, want 20", n)
	}
	empty := s.get("/endpoints/weather?hour=" + begin.AddDate(0, 0, -9).Format("2006-01-02T15"))
	if !strings.Contains(empty.text, "No such check is kept of that hour") {
		t.Errorf("an hour without checks says: %s", empty.text)
	}
}

func TestTheChartShowsWhatIsChosen(t *testing.T) {
	s, begin := weatherSite(t)
	if page := s.get("/endpoints/weather"); !strings.Contains(page.text, "No good check in this time to measure") {
		t.Errorf("of the last 24 hours it says: %s", page.text)
	}
	for _, path := range []string{
		"?range=7d", "?range=30d", "?range=90d", "?range=365d",
		"?" + url.Values{"from": {begin.Add(-time.Hour).Format(time.RFC3339)}, "to": {begin.Add(3 * time.Hour).Format(time.RFC3339)}}.Encode(),
		"?from=" + begin.Format("2006-01-02T15:04"), "?by=phase",
	} {
		page := s.get("/endpoints/weather" + path)
		if page.status != http.StatusOK || !page.clean() || !strings.Contains(page.body, `class="plot"`) || !strings.Contains(page.text, "As a table") {
			t.Errorf("%s: status %d, without a chart: %s", path, page.status, page.text)
		}
		if !strings.Contains(page.body, "84 ms") && !strings.Contains(path, "phase") {
			t.Errorf("%s: the latency is not told", path)
		}
	}
	zoomed := s.get("/endpoints/weather?" + url.Values{"from": {begin.Format(time.RFC3339)}, "to": {begin.Add(2 * time.Hour).Format(time.RFC3339)}}.Encode())
	if !strings.Contains(zoomed.body, `viewBox="0 0 20 1000"`) {
		t.Error("two hours are not two buckets")
	}
	for path, field := range map[string]string{
		"?day=yesterday": "day", "?hour=2026-11-21": "hour", "?range=2d": "range", "?by=colour": "by", "?verdict=fine": "verdict",
		"?from=2026-11-21T08:00:00Z&to=2026-11-20T08:00:00Z": "from", "?from=1999-01-01T00:00:00Z": "from", "?day=9999999-01-01": "day",
		"?to=soon": "to", "?day=2026-11-20&day=2026-11-21": "day",
	} {
		if got := s.get("/endpoints/weather" + path); got.status != http.StatusBadRequest || !strings.Contains(got.text, field) {
			t.Errorf("%s: got %d and %s", path, got.status, got.text)
		}
	}
}

func TestIncidentsMaintenanceAndContractsAreMarked(t *testing.T) {
	s, begin := weatherSite(t)
	o, err := s.store.Endpoint(t.Context(), "weather")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.store.Raise(t.Context(), store.Incident{
		Kind: store.IncidentManual, Title: "Storm <b>", Severity: store.StatusDown, Worst: store.StatusDown, StartedAt: begin, OpenedAt: begin, Endpoints: []string{o.ID},
	}, "ada", "words", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.CreateMaintenance(t.Context(), store.Maintenance{
		Title: "Disks", StartsAt: begin.Add(time.Hour), EndsAt: begin.Add(2 * time.Hour), All: true,
	}); err != nil {
		t.Fatal(err)
	}
	page := s.get("/endpoints/weather?range=7d")
	for _, want := range []string{"Maintenance: Disks", `class="mark planned"`, `class="mark is-down"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the chart does not hold %q", want)
		}
	}
	if !page.clean() || strings.Contains(page.body, "Storm <b>") {
		t.Error("the title of an incident is not escaped")
	}
}

func TestContractsAreShownAndCompared(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	lists := []string{
		`[{"description":"Tells <b>weather</b>.","inputSchema":{"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"},"name":"forecast"},{"name":"radar"}]`,
		`[{"description":"Tells <b>weather</b>.","inputSchema":{"properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"type":"object"},"name":"forecast"}]`,
	}
	var times []time.Time
	for i := range 6 {
		times = append(times, time.Now().Add(time.Duration(i-6)*time.Minute))
	}
	n := 0
	keepChecks(t, s.store, "weather", times, func(time.Time) probe.Result {
		r := good()
		r.Contract = &probe.Contract{Key: "legacy/public", Hash: fmt.Sprintf("sha256:%d", n/3), Tools: []byte(lists[n/3])}
		n++
		return r
	})
	page := s.get("/endpoints/weather")
	if !strings.Contains(page.text, "1 tool since") || page.link("/endpoints/weather/contracts/con_") == "" {
		t.Fatalf("the contract is not on the page: %s", page.text)
	}
	history := s.get("/endpoints/weather/contracts")
	if history.status != http.StatusOK || strings.Count(history.body, "/contracts/con_") != 2 || !strings.Contains(history.text, "radar") {
		t.Errorf("the history: %d %s", history.status, history.text)
	}
	present := page.link("/endpoints/weather/contracts/con_")
	tools := s.get(present)
	for _, want := range []string{"1 tool", "forecast", "Tells <b>weather</b>.", "city", "required", "days", "integer", "Compare with"} {
		if !strings.Contains(tools.text, want) {
			t.Errorf("the contract's page does not say %q: %s", want, tools.text)
		}
	}
	_, before, _ := strings.Cut(history.body[strings.LastIndex(history.body, "/contracts/con_"):], "/contracts/")
	before, _, _ = strings.Cut(before, `"`)
	differences := s.get(present + "?against=" + before)
	for _, want := range []string{"Breaks who relies on it", "radar", "Harmless", "Tools only"} {
		if !strings.Contains(differences.text, want) {
			t.Errorf("the differences do not say %q: %s", want, differences.text)
		}
	}
	for _, path := range []string{present + "?against=con_none", "/endpoints/weather/contracts/con_none", "/endpoints/none/contracts"} {
		if got := s.get(path); got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
	}
	s.mustRegister(with(endpointForm("save", "https://other.example/mcp"), "name", "Other"))
	if got := s.get(strings.Replace(present, "weather", "other", 1)); got.status != http.StatusNotFound {
		t.Errorf("the contract of another endpoint: got %d, want 404", got.status)
	}
}

func TestAConversationCanBeReadAndRepeated(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	bad := failing()
	bad.Transcript = []probe.Message{
		{Step: "tools/list", Sent: true, At: time.Millisecond, Head: "POST /mcp HTTP/1.1\nHost: weather.example\nMcp-Session-Id: '$(reboot)'\nAuthorization: Bearer …", Body: `{"jsonrpc":"2.0"}`},
		{Step: "tools/list", At: 149 * time.Millisecond, Head: "HTTP/1.1 200 OK", Body: `{"error":{"message":"<script>alert(1)</script>"}}`},
	}
	keepChecks(t, s.store, "weather", []time.Time{time.Now().Add(-time.Minute)}, func(time.Time) probe.Result { return bad })
	page := s.get("/endpoints/weather")
	check := s.get(page.link("/endpoints/weather/checks/chk_"))
	for _, want := range []string{
		"We asked", "It answered", "+ 148 ms", "3 headers", `"jsonrpc": "2.0"`, `curl --globoff --url 'https://weather.example/mcp'`,
		`-H 'Mcp-Session-Id: '\''$(reboot)'\'''`, "-H 'Authorization: Bearer YOUR-SECRET'", `--data-raw '{"jsonrpc":"2.0"}'`,
	} {
		if !strings.Contains(check.text, want) {
			t.Errorf("the check's page does not say %q: %s", want, check.text)
		}
	}
	if !check.clean() {
		t.Error("the page holds what a server said as if it were its own")
	}
}

func TestAChainStandsBesideItsPeers(t *testing.T) {
	s := newSite(t)
	s.setUp()
	for _, name := range []string{"Alpha", "Beta", "Gamma"} {
		s.mustRegister(with(endpointForm("save", "https://"+strings.ToLower(name)+".example/"), "name", name, "kind", "evm"))
	}
	at := time.Now().Add(-10 * time.Second)
	for i, slug := range []string{"alpha", "beta", "gamma"} {
		height := uint64(100 + 7*i)
		keepChecks(t, s.store, slug, []time.Time{at}, func(time.Time) probe.Result {
			r := good()
			r.Kind, r.Facts = probe.KindEVM, probe.Facts{Height: &height, ChainID: "1"}
			r.Memory = probe.Memory{Head: &probe.Head{Chain: "1", Origin: slug, Height: height, Hash: "0xab", Asked: at, Seen: at, Since: at}}
			return r
		})
	}
	page := s.get("/endpoints/beta")
	for _, want := range []string{"Alpha", "Beta this one", "Gamma", "107", "114", "the highest of 3 endpoints here", "ethereum 1"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page does not say %q: %s", want, page.text)
		}
	}
}

func TestObjectivesShowHowTheyFare(t *testing.T) {
	s, _ := weatherSite(t, func(c *api.Config) {
		c.Objectives = func(_ context.Context, e store.Endpoint) ([]api.ObjectiveState, error) {
			var states []api.ObjectiveState
			for _, o := range e.Objectives {
				states = append(states, api.ObjectiveState{Objective: o, Attained: new(91.6), BudgetLeft: new(16.7), Burn: map[string]float64{"1h": 15, "6h": 2}, Burning: api.BurningFast})
			}
			return states, nil
		}
	})
	if _, err := s.store.UpdateEndpoint(t.Context(), "weather", func(e *store.Endpoint) error {
		e.Objectives = []store.Objective{{Name: "availability", Target: 90, Days: 30}, {Name: "fast", Target: 90, Days: 7, Under: 50 * time.Millisecond}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	keepChecks(t, s.store, "weather", []time.Time{time.Now().Add(-time.Minute)}, func(time.Time) probe.Result { return good() })
	page := s.get("/endpoints/weather")
	for _, want := range []string{"90 % of checks good in 30 days", "90 % of checks under 50 ms in 7 days", "16.7 % of the error budget left", "15.0×", "What was left of the budget, day by day"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page does not say %q: %s", want, page.text)
		}
	}
	if n := strings.Count(page.body, "budget-chart"); n != 2 {
		t.Errorf("%d objectives have a chart, want 2", n)
	}
}

// BenchmarkEndpointPage renders the page of an endpoint with a year of history.
func BenchmarkEndpointPage(b *testing.B) {
	db := openSQLite(b)
	e := store.NewEndpoint()
	e.Name, e.URL = "Weather", "https://weather.example/mcp"
	e, err := db.CreateEndpoint(b.Context(), e)
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Time
	for at := time.Now().AddDate(-1, 0, 0); at.Before(time.Now()); at = at.Add(3 * time.Hour) {
		times = append(times, at)
	}
	keepChecks(b, db, e.Slug, times, func(time.Time) probe.Result { return good() })
	handler, cookie := overviewOf(b, db)
	for _, view := range []string{"", "?range=7d", "?range=365d", "?by=phase"} {
		b.Run(view, func(b *testing.B) { benchView(b, handler, cookie, "/endpoints/"+e.Slug+view) })
	}
}
