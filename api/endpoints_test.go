package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

func TestOnlyAURLIsNeeded(t *testing.T) {
	r := start(t)
	reply := r.ask("POST", "/api/v1/endpoints", `{"url": "https://weather.example/mcp"}`).want(http.StatusCreated)
	if got := reply.header.Get("Location"); got != "/api/v1/endpoints/weather-example" {
		t.Errorf("Location is %q", got)
	}
	got := reply.object()
	for _, changing := range []string{"created_at", "updated_at", "since"} {
		if text, _ := got[changing].(string); len(text) != len("2026-11-21T08:00:00.000Z") || !strings.HasSuffix(text, "Z") {
			t.Errorf("%s is %v, want a time in UTC with milliseconds", changing, got[changing])
		}
		delete(got, changing)
	}
	want := map[string]any{
		"slug": "weather-example", "name": "weather.example", "kind": "auto", "url": "https://weather.example/mcp",
		"schedule": "@every 60s", "timeout": "15s", "degraded_over": "5s",
		"confirm": map[string]any{"failures": 2.0, "successes": 1.0, "after": "5s"},
		"headers": []any{}, "request": map[string]any{}, "public": false, "paused": false, "tags": []any{}, "channels": []any{},
		"status": "pending", "last_check": nil, "contract_notices": false, "locations": []any{}, "quorum": 0.0, "places": []any{},
		"notify": []any{"down", "gated", "unknown"}, "unknown_after": "30m", "remind_every": "0s", "flap_changes": 6.0,
		"escalation": []any{}, "depends_on": []any{}, "objectives": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a fresh endpoint (-want +got):\n%s", diff)
	}
	if got := locked(r, func() []string { return r.changed }); !slices.Equal(got, []string{"weather-example"}) {
		t.Errorf("the schedule heard of %v", got)
	}
	r.ask("POST", "/api/v1/endpoints", `{"url": "https://weather.example/sse"}`).want(http.StatusCreated)
}

func TestEveryMistakeIsNamedAtOnceAndNothingIsStored(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://taken.example", "name": "Taken"}`)
	large := `{"url": "https://a.example", "name": "` + strings.Repeat("x", 10<<20) + `"}`
	tests := []struct {
		name   string
		body   string
		status int
		fields []string
	}{
		{"no body", ` `, 400, []string{}},
		{"not JSON", `{"url": }`, 400, []string{}},
		{"cut short", `{"url": "https://a.example"`, 400, []string{}},
		{"something behind it", `{"url": "https://a.example"} {}`, 400, []string{}},
		{"not an object", `[1]`, 400, []string{}},
		{"null", `null`, 400, []string{}},
		{"not UTF-8", "{\"url\": \"https://a.example/\xff\"}", 400, []string{}},
		{"nested without end", strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), 400, []string{}},
		{"10 MB", large, 413, []string{}},
		{"no URL", `{}`, 422, []string{"url"}},
		{"unparseable URL", `{"url": "https://a b.example:x"}`, 422, []string{"url"}},
		{"unsupported scheme", `{"url": "ftp://a.example"}`, 422, []string{"url"}},
		{"a URL that was cut out", `{"url": "https://a.example/…"}`, 422, []string{"url"}},
		{"bad cron", `{"url": "https://a.example", "schedule": "every now and then"}`, 422, []string{"schedule"}},
		{"zero timeout", `{"url": "https://a.example", "timeout": "0s"}`, 422, []string{"timeout"}},
		{"negative timeout", `{"url": "https://a.example", "timeout": "-1s"}`, 422, []string{"timeout"}},
		{"timeout that is a number", `{"url": "https://a.example", "timeout": 15}`, 422, []string{"timeout"}},
		{"timeout without a unit", `{"url": "https://a.example", "timeout": "15"}`, 422, []string{"timeout"}},
		{"negative degraded_over", `{"url": "https://a.example", "degraded_over": "-1s"}`, 422, []string{"degraded_over"}},
		{"timeout longer than the period", `{"url": "https://a.example", "timeout": "30s", "schedule": "@every 20s"}`, 422, []string{"timeout"}},
		{"unknown kind", `{"url": "https://a.example", "kind": "gopher"}`, 422, []string{"kind"}},
		{"jsonrpc without a method", `{"url": "https://a.example", "kind": "jsonrpc"}`, 422, []string{"request.method"}},
		{"expectation", `{"url": "https://a.example", "kind": "jsonrpc", "request": {"method": "m", "expect": {"result": 1}}}`, 422, []string{"request.expect.result"}},
		{"header with a newline", `{"url": "https://a.example", "headers": [{"name": "X-A", "value": "b\r\nX-C: d"}]}`, 422, []string{"headers[0].value"}},
		{"header without a value", `{"url": "https://a.example", "headers": [{"name": "X-A"}]}`, 422, []string{"headers[0].value"}},
		{"unknown member", `{"url": "https://a.example", "urls": 1}`, 422, []string{"urls"}},
		{"unknown member further in", `{"url": "https://a.example", "confirm": {"failure": 1}, "headers": [{"name": "X-A", "value": "", "x": 1}]}`, 422,
			[]string{"headers[0].x", "confirm.failure"}},
		{"another case", `{"URL": "https://a.example", "url": "https://a.example"}`, 422, []string{"URL"}},
		{"a member twice", `{"url": "https://a.example", "url": "https://b.example"}`, 422, []string{"url"}},
		{"a member twice further in", `{"url": "https://a.example", "confirm": {"failures": 1, "failures": 2}}`, 422, []string{"confirm.failures"}},
		{"read-only members", `{"url": "https://a.example", "status": "up", "last_check": null}`, 422, []string{"status", "last_check"}},
		{"duplicate name", `{"url": "https://a.example", "name": "tAkEn"}`, 409, []string{"name"}},
		{"duplicate slug", `{"url": "https://a.example", "name": "free", "slug": "taken"}`, 409, []string{"slug"}},
		{"duplicate name and slug", `{"url": "https://a.example", "name": "TAKEN", "slug": "taken"}`, 409, []string{"name", "slug"}},
		{"duplicates among other mistakes", `{"url": "https://a.example", "name": "TAKEN", "slug": "taken", "timeout": "0s", "channels": ["nope"]}`, 422,
			[]string{"timeout", "channels[0]", "name", "slug"}},
		{"a part of a name that is taken", `{"url": "ftp://a.example", "name": "take"}`, 422, []string{"url"}},
		{"missing channel", `{"url": "https://a.example", "channels": ["ch_not_there"]}`, 422, []string{"channels[0]"}},
		{"NUL", `{"url": "https://a.example", "kind": "jsonrpc", "request": {"method": "a\u0000b"}}`, 422, []string{"request.method"}},
		{"half a number of failures", `{"url": "https://a.example", "confirm": {"failures": 1.5}}`, 422, []string{"confirm.failures"}},
		{"alerting", `{"url": "https://a.example", "notify": ["down", "up", "down"], "unknown_after": "soon", "remind_every": "1s", "flap_changes": 1,
			"escalation": [{"after": "0s", "channels": []}, {"after": 5, "channels": ["nope", 1], "x": 1}, 7]}`, 422,
			[]string{"notify[1]", "notify[2]", "unknown_after", "remind_every", "flap_changes", "escalation[0].after", "escalation[0].channels",
				"escalation[1].after", "escalation[1].channels[0]", "escalation[1].channels[1]", "escalation[1].x", "escalation[2]"}},
		{"dependencies", `{"url": "https://a.example", "depends_on": ["taken", "nope", "taken", "a\u0000b"]}`, 422,
			[]string{"depends_on[1]", "depends_on[2]", "depends_on[3]"}},
		{"objectives", `{"url": "https://a.example", "objectives": [{}, {"name": "A b", "target": 100, "days": 0, "under": "1h", "notify": "x"}, {"name": "a", "target": 99}, {"name": "a", "target": 99}]}`, 422,
			[]string{"objectives[0].name", "objectives[0].target", "objectives[1].name", "objectives[1].target", "objectives[1].days",
				"objectives[1].under", "objectives[1].notify", "objectives[3].name"}},
		{"everything at once",
			`{"url": "gopher://a", "kind": 7, "timeout": "soon", "schedule": "x", "confirm": {"failures": 0, "after": "0s"}, "public": "yes",
			  "tags": ["a", 1], "channels": ["nope"], "headers": [{"name": "Host", "value": "x"}, 3], "nonsense": true}`, 422,
			[]string{"kind", "timeout", "headers[1]", "public", "tags[1]", "nonsense", "url", "headers[0].name", "schedule",
				"confirm.failures", "confirm.after", "channels[0]"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reply := r.ask("POST", "/api/v1/endpoints", test.body, header("Content-Type", "application/json; charset=utf-8")).want(test.status)
			got, want := reply.mistakes(), slices.Clone(test.fields)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("mistakes named (-want +got):\n%s\n%s", diff, reply.body)
			}
			if len(reply.body) > 10_000 {
				t.Errorf("an error of %d bytes", len(reply.body))
			}
		})
	}
	r.ask("POST", "/api/v1/endpoints", large, func(q *http.Request) { q.ContentLength = -1 }).want(http.StatusRequestEntityTooLarge)
	r.ask("POST", "/api/v1/endpoints", `{"url": "https://a.example"}`, header("Content-Type", "text/plain")).want(http.StatusUnsupportedMediaType)
	r.ask("POST", "/api/v1/endpoints", `{"url": "https://a.example"}`, header("Content-Type", "")).want(http.StatusUnsupportedMediaType)

	var all struct{ Items []slugged }
	r.get("/api/v1/endpoints").want(http.StatusOK).json(&all)
	if len(all.Items) != 1 {
		t.Errorf("something was stored: %v", all.Items)
	}
	if got := locked(r, func() []string { return r.changed }); len(got) != 1 {
		t.Errorf("the schedule heard of %v", got)
	}
}

type slugged struct{ Slug string }

func TestAPatchChangesWhatItNames(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example/mcp", "name": "A", "timeout": "20s", "tags": ["x"], "confirm": {"failures": 5, "after": "7s"}}`)
	before := r.get("/api/v1/endpoints/" + slug).object()
	got := r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"name": "B", "confirm": {"failures": 3}, "timeout": null, "public": true}`,
		header("Content-Type", "application/merge-patch+json")).want(http.StatusOK).object()
	want := before
	want["name"], want["timeout"], want["public"] = "B", "15s", true
	want["confirm"] = map[string]any{"failures": 3.0, "successes": 1.0, "after": "7s"}
	want["updated_at"] = got["updated_at"]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after the patch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, r.get("/api/v1/endpoints/"+slug).object()); diff != "" {
		t.Errorf("what was answered is not what is kept (-answered +kept):\n%s", diff)
	}
	refused := r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"slug": "other", "timeout": "5m", "name": ""}`).want(http.StatusUnprocessableEntity)
	if diff := cmp.Diff([]string{"slug", "timeout"}, refused.mistakes()); diff != "" {
		t.Errorf("mistakes named (-want +got):\n%s", diff)
	}
	r.ask("PATCH", "/api/v1/endpoints/not-there", `{"name": "B"}`).want(http.StatusNotFound)
	r.ask("DELETE", "/api/v1/endpoints/"+slug, "").want(http.StatusNoContent)
	r.ask("DELETE", "/api/v1/endpoints/"+slug, "").want(http.StatusNotFound)
	if got := locked(r, func() []string { return r.changed }); !slices.Equal(got, []string{slug, slug, slug}) {
		t.Errorf("the schedule heard of %v, want a registration, a change and a removal", got)
	}
}

func TestAKeptSecretStaysWhereItsValueIsLeftOut(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example/v2/0123456789abcdef0123456789abcdef",
		"headers": [{"name": "Authorization", "value": "Bearer one", "secret": true}, {"name": "X-Team", "value": "ops", "secret": false}]}`)
	shown := r.get("/api/v1/endpoints/" + slug).object()
	wantHeaders := []any{
		map[string]any{"name": "Authorization", "secret": true},
		map[string]any{"name": "X-Team", "value": "ops", "secret": false},
	}
	if diff := cmp.Diff(wantHeaders, shown["headers"]); diff != "" {
		t.Errorf("headers shown (-want +got):\n%s", diff)
	}
	body := fmt.Sprintf(`{"url": %q, "headers": [{"name": "X-New", "value": "n"}, {"name": "authorization", "secret": true}]}`, shown["url"])
	r.ask("PATCH", "/api/v1/endpoints/"+slug, body).want(http.StatusOK)
	o, err := r.store.Endpoint(t.Context(), slug)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://a.example/v2/0123456789abcdef0123456789abcdef"; o.URL != want {
		t.Errorf("URL became %q", o.URL)
	}
	want := []probe.Header{{Name: "X-New", Value: "n", Secret: true}, {Name: "authorization", Value: "Bearer one", Secret: true}}
	if diff := cmp.Diff(want, o.Headers); diff != "" {
		t.Errorf("headers kept (-want +got):\n%s", diff)
	}
	exposed := r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"headers": [{"name": "Authorization", "secret": false}]}`).want(http.StatusUnprocessableEntity)
	if diff := cmp.Diff([]string{"headers[0].value"}, exposed.mistakes()); diff != "" {
		t.Errorf("mistakes named (-want +got):\n%s", diff)
	}
}

func TestListsComeInPagesAndSayNoToBadParameters(t *testing.T) {
	r := start(t)
	for i := range 5 {
		r.register(fmt.Sprintf(`{"url": "https://a.example/%d", "name": "N%d", "tags": ["t%d"]}`, i, i, i%2))
	}
	var names []string
	path := "/api/v1/endpoints?limit=2&tag=t0"
	for pages := 0; path != ""; pages++ {
		if pages > 3 {
			t.Fatal("the list does not end")
		}
		var page struct {
			Items      []struct{ Name string }
			NextCursor *string `json:"next_cursor"`
		}
		r.get(path).want(http.StatusOK).json(&page)
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		path = ""
		if page.NextCursor != nil {
			path = "/api/v1/endpoints?limit=2&tag=t0&cursor=" + *page.NextCursor
		}
	}
	if diff := cmp.Diff([]string{"N0", "N2", "N4"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := r.get("/api/v1/endpoints?status=down").want(http.StatusOK).body; got != "{\"items\":[]}\n" {
		t.Errorf("an empty list is %q", got)
	}
	for path, fields := range map[string][]string{
		"/api/v1/endpoints?limit=0&status=bad&stauts=up":                                    {"status", "limit", "stauts"},
		"/api/v1/endpoints?limit=501&tag=a&tag=b":                                           {"tag", "limit"},
		"/api/v1/endpoints?q=%00&tag=%ff":                                                   {"tag", "q"},
		"/api/v1/endpoints?cursor=zzz":                                                      {"cursor"},
		"/api/v1/endpoints/n0/checks?since=today&until=x&verdict=paused":                    {"since", "until", "verdict"},
		"/api/v1/endpoints/n0/checks?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": {"until"},
		"/api/v1/endpoints/n0/checks?cursor=zzz":                                            {"cursor"},
		"/api/v1/endpoints/n0/uptime?window=2d":                                             {"window"},
		"/api/v1/incidents?status=closed&limit=x&since=1":                                   {"status", "since", "limit"},
		"/api/v1/incidents?cursor=zzz":                                                      {"cursor"},
		"/api/v1/channels?limit=1":                                                          {"limit"},
		"/api/v1/endpoints?%zz=1":                                                           {"query"},
	} {
		if diff := cmp.Diff(fields, r.get(path).want(http.StatusBadRequest).mistakes()); diff != "" {
			t.Errorf("%s: mistakes named (-want +got):\n%s", path, diff)
		}
	}
	r.get("/api/v1/incidents?endpoint=not-there").want(http.StatusNotFound)
}

func TestASingleCheckIsAnsweredAndNotKept(t *testing.T) {
	r := start(t)
	got := r.ask("POST", "/api/v1/check", `{"url": "https://a.example/mcp", "kind": "mcp", "timeout": "4m",
		"headers": [{"name": "Authorization", "value": "Bearer x", "secret": true}]}`).want(http.StatusOK).object()
	for _, absent := range []string{"id", "endpoint"} {
		if v, there := got[absent]; there {
			t.Errorf("%s is %v, want it absent", absent, v)
		}
	}
	if got["verdict"] != "up" || got["duration_ms"] != 84.2 || got["location"] != "default" {
		t.Errorf("the check says %v", got)
	}
	target := locked(r, func() probe.Target { return r.probed[0] })
	if target.URL != "https://a.example/mcp" || target.Kind != probe.KindMCP || target.Headers[0].Value != "Bearer x" || target.Timeout.Minutes() != 4 {
		t.Errorf("probed %+v", target)
	}
	refused := r.ask("POST", "/api/v1/check", `{"url": "", "name": "x", "timeout": "6m"}`).want(http.StatusUnprocessableEntity)
	if diff := cmp.Diff([]string{"name", "url", "timeout"}, refused.mistakes()); diff != "" {
		t.Errorf("mistakes named (-want +got):\n%s", diff)
	}
	if got := r.get("/api/v1/endpoints").body; got != "{\"items\":[]}\n" {
		t.Errorf("something was stored: %s", got)
	}
}

func TestACheckHasTheShapeThatWasPromised(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example/mcp", "name": "Weather"}`)
	r.see(broken())
	got := r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK).object()
	var kept struct{ Items []map[string]any }
	r.get("/api/v1/endpoints/" + slug + "/checks?verdict=down").want(http.StatusOK).json(&kept)
	if len(kept.Items) != 1 {
		t.Fatalf("%d checks kept, want 1", len(kept.Items))
	}
	if diff := cmp.Diff(got, kept.Items[0]); diff != "" {
		t.Errorf("what was answered is not what is kept (-answered +kept):\n%s", diff)
	}
	for _, changing := range []string{"id", "scheduled_at", "started_at"} {
		if got[changing] == "" || got[changing] == nil {
			t.Errorf("%s is missing", changing)
		}
		delete(got, changing)
	}
	want := map[string]any{
		"endpoint": "weather", "location": "default", "duration_ms": 84.2, "kind": "mcp", "era": "legacy", "verdict": "down",
		"failed_step": "tools/list", "class": "rpc_error", "code": -32603.0, "message": "Internal error at db-7.corp.example",
		"steps": []any{
			map[string]any{
				"name": "initialize", "method": "initialize", "start_ms": 0.0, "latency_ms": 31.0, "http_status": 200.0,
				"class": "", "code": 0.0, "message": "", "bytes_in": 512.0, "bytes_out": 0.0,
				"phases": map[string]any{"dns_ms": 1.2, "connect_ms": 8.0, "first_byte_ms": 20.0},
			},
			map[string]any{
				"name": "tools/list", "method": "tools/list", "start_ms": 40.0, "latency_ms": 44.0, "http_status": 200.0,
				"class": "rpc_error", "code": -32603.0, "message": "Internal error at db-7.corp.example",
				"bytes_in": 0.0, "bytes_out": 0.0, "phases": map[string]any{},
			},
		},
		"warnings": []any{map[string]any{"step": "initialized", "class": "http_status", "code": 200.0, "message": "202 is due"}},
		"facts":    map[string]any{"protocol_version": "2025-11-25", "server_name": "weather", "tools": 13.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a check (-want +got):\n%s", diff)
	}
	r.ask("POST", "/api/v1/endpoints/not-there/check", "").want(http.StatusNotFound)
	r.get("/api/v1/endpoints/not-there/checks").want(http.StatusNotFound)
}

func TestAnIncidentIsTold(t *testing.T) {
	r := start(t)
	slug := r.outage("Weather", true)
	var open struct{ Items []map[string]any }
	r.get("/api/v1/incidents?status=open&endpoint=" + slug).want(http.StatusOK).json(&open)
	if len(open.Items) != 1 {
		t.Fatalf("%d open incidents, want 1", len(open.Items))
	}
	got := r.get("/api/v1/incidents/" + open.Items[0]["id"].(string)).want(http.StatusOK).object()
	delete(got, "timeline") // which lists leave out
	if diff := cmp.Diff(open.Items[0], got); diff != "" {
		t.Errorf("list and incident differ:\n%s", diff)
	}
	wantCause := map[string]any{"failed_step": "tools/list", "class": "rpc_error", "code": -32603.0, "message": "Internal error at db-7.corp.example"}
	if diff := cmp.Diff(wantCause, got["cause"]); diff != "" {
		t.Errorf("cause (-want +got):\n%s", diff)
	}
	if got["status"] != "open" || got["severity"] != "down" || got["endpoint"] != slug || got["resolved_at"] != nil {
		t.Errorf("the incident says %v", got)
	}
	r.see(healthy())
	r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	var resolved struct{ Items []map[string]any }
	r.get("/api/v1/incidents?status=resolved").want(http.StatusOK).json(&resolved)
	if len(resolved.Items) != 1 || resolved.Items[0]["resolved_at"] == nil || resolved.Items[0]["resolution"] != "recovered" {
		t.Errorf("resolved incidents: %v", resolved.Items)
	}
}

// An edit names what is taken with everything else, and does not take an endpoint for another one.
func TestAnEditNamesWhatIsTakenWithItsOtherMistakes(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://a.example", "name": "Weather"}`)
	r.register(`{"url": "https://b.example", "name": "Élan"}`)
	r.register(`{"url": "https://c.example"}`)
	for body, want := range map[string]struct {
		status int
		fields []string
	}{
		`{"name": "ÉLAN"}`:                                     {409, []string{"name"}},
		`{"name": "élan", "timeout": "0s"}`:                    {422, []string{"timeout", "name"}},
		`{"name": null, "url": "https://c.example"}`:           {409, []string{"name"}},
		`{"name": "", "url": "https://c.example", "kind": ""}`: {422, []string{"kind", "name"}},
	} {
		reply := r.ask("PATCH", "/api/v1/endpoints/weather", body).want(want.status)
		if diff := cmp.Diff(want.fields, reply.mistakes()); diff != "" {
			t.Errorf("%s: mistakes (-want +got):\n%s", body, diff)
		}
	}
	r.ask("PATCH", "/api/v1/endpoints/weather", `{"name": "wEATHER"}`).want(http.StatusOK)
	r.ask("PATCH", "/api/v1/endpoints/absent", `{"name": "Weather"}`).want(http.StatusNotFound)

	registrar := api.NewRegistrar(r.store, scheduler.Period)
	_, err := registrar.Plan(t.Context(), []byte(`{"slug": "other", "name": "WEATHER", "url": "https://d.example", "timeout": "0s"}`))
	if got := strings.Join(api.Mistakes(err), "; "); !strings.Contains(got, "name is taken") || !strings.Contains(got, "timeout must") {
		t.Errorf("a plan with two mistakes names %q", got)
	}
	if _, err := registrar.Plan(t.Context(), []byte(`{"name": "wEATHER", "url": "https://a.example"}`)); err != nil {
		t.Errorf("a plan for what is there: %v", err)
	}
}

// outage registers an endpoint and checks it until it is down.
func (r *rollcall) outage(name string, public bool) (slug string) {
	r.t.Helper()
	slug = r.register(fmt.Sprintf(`{"url": "https://internal-host.example/mcp", "name": %q, "public": %v}`, name, public))
	r.see(broken())
	for range store.DefaultConfirm.Failures {
		r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	}
	if got := r.get("/api/v1/endpoints/" + slug).object()["status"]; got != "down" {
		r.t.Fatalf("%s is %v after %d bad checks", slug, got, store.DefaultConfirm.Failures)
	}
	return slug
}
