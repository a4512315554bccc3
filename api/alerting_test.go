package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

func TestWhoHearsWhatIsPartOfAnEndpoint(t *testing.T) {
	r := start(t)
	channel, _ := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "`+webhook+`"}`).object()["id"].(string)
	r.register(`{"url": "https://db.example", "name": "DB"}`)
	r.register(`{"url": "https://net.example", "name": "Net"}`)
	slug := r.register(`{"url": "https://a.example", "name": "A", "notify": ["degraded", "down"], "unknown_after": "1h", "remind_every": "30m",
		"flap_changes": 4, "escalation": [{"after": "10m", "channels": ["` + channel + `"]}], "depends_on": ["net", "db"],
		"objectives": [{"name": "availability", "target": 99.9}, {"name": "fast", "target": 95, "days": 7, "under": "800ms", "notify": false}]}`)
	path := "/api/v1/endpoints/" + slug
	members := func() map[string]any {
		t.Helper()
		got := map[string]any{}
		all := r.get(path).want(http.StatusOK).object()
		for _, name := range []string{"notify", "unknown_after", "remind_every", "flap_changes", "escalation", "depends_on", "objectives"} {
			got[name] = all[name]
		}
		return got
	}
	want := map[string]any{
		"notify": []any{"degraded", "down"}, "unknown_after": "1h", "remind_every": "30m", "flap_changes": 4.0,
		"escalation": []any{map[string]any{"after": "10m", "channels": []any{channel}}},
		"depends_on": []any{"db", "net"},
		"objectives": []any{
			map[string]any{"name": "availability", "target": 99.9, "days": 30.0, "under": "0s", "notify": true},
			map[string]any{"name": "fast", "target": 95.0, "days": 7.0, "under": "800ms", "notify": false},
		},
	}
	if diff := cmp.Diff(want, members()); diff != "" {
		t.Errorf("as registered (-want +got):\n%s", diff)
	}
	edit := func(body string, change map[string]any) {
		t.Helper()
		r.ask("PATCH", path, body).want(http.StatusOK)
		for name, value := range change {
			want[name] = value
		}
		if diff := cmp.Diff(want, members()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", body, diff)
		}
	}
	edit(`{"name": "A 2"}`, nil)
	edit(`{"notify": []}`, map[string]any{"notify": []any{}})
	edit(`{"depends_on": ["db"]}`, map[string]any{"depends_on": []any{"db"}})
	edit(`{"notify": null, "unknown_after": null, "remind_every": null, "flap_changes": null, "escalation": null, "depends_on": null, "objectives": null}`,
		map[string]any{
			"notify": []any{"down", "gated", "unknown"}, "unknown_after": "30m", "remind_every": "0s", "flap_changes": 6.0,
			"escalation": []any{}, "depends_on": []any{}, "objectives": []any{},
		})
}

func TestAnEndpointDoesNotDependOnItself(t *testing.T) {
	r := start(t)
	for _, body := range []string{
		`{"url": "https://a.example", "name": "A"}`, `{"url": "https://b.example", "name": "B", "depends_on": ["a"]}`,
		`{"url": "https://c.example", "name": "C", "depends_on": ["b"]}`,
	} {
		r.register(body)
	}
	if got := r.ask("PATCH", "/api/v1/endpoints/a", `{"depends_on": ["a"], "timeout": "0s"}`).want(422).mistakes(); len(got) != 2 {
		t.Errorf("mistakes: %v", got)
	}
	reply := r.ask("PATCH", "/api/v1/endpoints/a", `{"depends_on": ["c"]}`)
	if reply.status != http.StatusConflict && reply.status != http.StatusUnprocessableEntity {
		t.Fatalf("a circle: status %d\n%s", reply.status, reply.body)
	}
	if got := reply.mistakes(); len(got) != 1 || !strings.HasPrefix(got[0], "depends_on") {
		t.Errorf("a circle: mistakes %v", got)
	}
	r.ask("DELETE", "/api/v1/endpoints/a", "").want(http.StatusNoContent)
	if got := r.get("/api/v1/endpoints/b").object()["depends_on"].([]any); len(got) != 0 {
		t.Errorf("depends on %v, which is gone", got)
	}
}

// What one database holds is put into another, whichever comes first in the file.
func TestEndpointsThatDependOnOneAnotherAreAppliedInAnyOrder(t *testing.T) {
	r := start(t)
	apply := func(docs ...string) (map[int][]string, error) {
		t.Helper()
		ctx := t.Context()
		registrar := api.NewRegistrar(r.store, scheduler.Period)
		mistakes := map[int][]string{}
		for _, doc := range docs {
			if err := registrar.Expect(ctx, []byte(doc)); err != nil {
				t.Fatal(err)
			}
		}
		var plans []api.Planned
		for i, doc := range docs {
			p, err := registrar.Plan(ctx, []byte(doc))
			if err != nil {
				mistakes[i] = api.Mistakes(err)
			}
			plans = append(plans, p)
		}
		circles, err := registrar.Circles(ctx, plans)
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range circles {
			mistakes[i] = append(mistakes[i], api.Mistakes(err)...)
		}
		if len(mistakes) > 0 {
			return mistakes, nil
		}
		slugs := make([]string, len(plans))
		for i, p := range plans {
			o, err := registrar.Do(ctx, p)
			if err != nil {
				return nil, err
			}
			slugs[i] = o.Slug
		}
		_, err = registrar.Relate(ctx, plans, slugs)
		return nil, err
	}
	parents := func() map[string]any {
		t.Helper()
		all := map[string]any{}
		for _, item := range r.get("/api/v1/endpoints").object()["items"].([]any) {
			e, _ := item.(map[string]any)
			all[e["slug"].(string)] = e["depends_on"]
		}
		return all
	}
	a, b, c := `{"url": "https://a.example", "name": "A"`, `{"url": "https://b.example", "slug": "b"`, `{"url": "https://c.example", "name": "C"`
	if mistakes, err := apply(a+`, "depends_on": ["b", "c"]}`, b+`}`, c+`, "depends_on": ["b"]}`); err != nil || mistakes != nil {
		t.Fatalf("apply: %v, %v", mistakes, err)
	}
	if diff := cmp.Diff(map[string]any{"a": []any{"b", "c"}, "b": []any{}, "c": []any{"b"}}, parents()); diff != "" {
		t.Errorf("depends_on (-want +got):\n%s", diff)
	}
	if mistakes, err := apply(`{"slug": "b", "depends_on": ["c", "a"]}`, `{"slug": "c", "depends_on": ["a"]}`, a+`, "depends_on": []}`); err != nil || mistakes != nil {
		t.Fatalf("apply the other way round: %v, %v", mistakes, err)
	}
	want := map[string]any{"a": []any{}, "b": []any{"a", "c"}, "c": []any{"a"}}
	if diff := cmp.Diff(want, parents()); diff != "" {
		t.Errorf("the other way round (-want +got):\n%s", diff)
	}
	mistakes, err := apply(a+`, "depends_on": ["d"]}`, `{"slug": "c", "depends_on": ["nope", "b"]}`, `{"url": "https://d.example", "name": "D", "depends_on": ["b"]}`)
	if err != nil || len(mistakes) == 0 {
		t.Fatalf("a circle and somebody who is not there: %v, %v", mistakes, err)
	}
	for i, words := range map[int]string{0: "leads back", 1: "there is no endpoint", 2: "leads back"} {
		if got := strings.Join(mistakes[i], " "); !strings.Contains(got, words) {
			t.Errorf("mistakes of %d are %q, want %q among them", i, got, words)
		}
	}
	if diff := cmp.Diff(want, parents()); diff != "" {
		t.Errorf("after a file with mistakes (-want +got):\n%s", diff)
	}
}

// withObjectives has every first objective be well and every other one overspent.
func withObjectives(c *api.Config) {
	c.Objectives = func(_ context.Context, e store.Endpoint) ([]api.ObjectiveState, error) {
		var states []api.ObjectiveState
		for _, o := range e.Objectives {
			s := api.ObjectiveState{
				Objective: o, Attained: new(99.98765), BudgetLeft: new(87.6543219), Burn: map[string]float64{"1h": 1.23456, "5m": 0.5, "6h": 2, "30m": 0},
			}
			switch o.Name {
			case "spent":
				s.Attained, s.BudgetLeft, s.Burning = new(98.0), new(-1900.0), api.BurningFast
			case "young":
				s = api.ObjectiveState{Objective: o}
			case "broken":
				return nil, errors.New("database lost")
			}
			states = append(states, s)
		}
		return states, nil
	}
}

func TestObjectivesSayHowTheyFare(t *testing.T) {
	r := start(t, withObjectives)
	slug := r.register(`{"url": "https://a.example", "name": "a", "public": true, "objectives": [{"name": "availability", "target": 99.9},
		{"name": "spent", "target": 99.9, "days": 7}, {"name": "young", "target": 95, "under": "800ms"}]}`)
	got := r.get("/api/v1/endpoints/" + slug + "/objectives").want(http.StatusOK).object()
	objective := func(name string, days float64, more map[string]any) map[string]any {
		o := map[string]any{
			"name": name, "target": 99.9, "days": days, "under": "0s", "notify": true, "attained": nil, "budget_left": nil, "burning": "",
			"burn": map[string]any{"1h": 1.235, "5m": 0.5, "6h": 2.0, "30m": 0.0},
		}
		for member, value := range more {
			o[member] = value
		}
		return o
	}
	want := map[string]any{"items": []any{
		objective("availability", 30, map[string]any{"attained": 99.987, "budget_left": 87.654}),
		objective("spent", 7, map[string]any{"attained": 98.0, "budget_left": -1900.0, "burning": "fast"}),
		objective("young", 30, map[string]any{"target": 95.0, "under": "800ms", "burn": map[string]any{"1h": 0.0, "5m": 0.0, "6h": 0.0, "30m": 0.0}}),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objectives (-want +got):\n%s", diff)
	}
	r.get("/api/v1/endpoints/not-there/objectives").want(http.StatusNotFound)
	r.get("/api/v1/endpoints/" + slug + "/objectives?days=3").want(http.StatusBadRequest)
}

func TestAnObjectiveHasABadge(t *testing.T) {
	r := start(t, withObjectives)
	objectives := `"objectives": [{"name": "availability", "target": 99.9}, {"name": "spent", "target": 99}, {"name": "young", "target": 95}]`
	r.register(`{"url": "https://a.example", "name": "a", "public": true, ` + objectives + `}`)
	r.register(`{"url": "https://b.example", "name": "b", ` + objectives + `}`)
	r.register(`{"url": "https://c.example", "name": "c", "public": true}`)
	r.register(`{"url": "https://d.example", "name": "d", "public": true, "objectives": [{"name": "broken", "target": 99}]}`)
	type badge struct{ Label, Message, Color string }
	read := func(path string) badge {
		t.Helper()
		var got badge
		r.get("/badge/"+path, nobody).want(http.StatusOK).json(&got)
		return got
	}
	grey := badge{"slo", "unknown", read("not-there/slo.json").Color}
	for path, want := range map[string]badge{
		"a/slo.json":                        {"slo", "99.988%", ""},
		"a/slo.json?objective=availability": {"availability", "99.988%", ""},
		"a/slo.json?objective=spent":        {"spent", "98%", ""},
		"a/slo.json?label=mine":             {"mine", "99.988%", ""},
		"a/slo.json?objective=young":        {"young", "unknown", grey.Color},
		"a/slo.json?objective=nope":         {"nope", "unknown", grey.Color},
		"a/slo.json?objective=%3Cscript%3E": grey,
		"b/slo.json":                        grey,
		"c/slo.json":                        grey,
		"d/slo.json":                        grey,
		"not-there/slo.json":                grey,
	} {
		ignore := cmpopts.IgnoreFields(badge{}, "Color")
		if want.Color != "" {
			ignore = cmp.Options{}
		}
		if diff := cmp.Diff(want, read(path), ignore); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if good, bad := read("a/slo.json").Color, read("a/slo.json?objective=spent").Color; good == bad || good == grey.Color || bad == grey.Color {
		t.Errorf("a budget that is left is %s, one that is spent %s", good, bad)
	}
	picture := r.get("/badge/a/slo.svg", nobody).want(http.StatusOK)
	if !strings.Contains(picture.body, "slo: 99.988%") || picture.header.Get("ETag") == "" {
		t.Errorf("picture: %s", picture.body)
	}
	r.get("/badge/a/slo.svg", nobody, header("If-None-Match", picture.header.Get("ETag"))).want(http.StatusNotModified)
	if hidden, absent := r.get("/badge/b/slo.svg", nobody), r.get("/badge/x/slo.svg", nobody); hidden.body != absent.body || hidden.header.Get("Cache-Control") != absent.header.Get("Cache-Control") {
		t.Error("a hidden endpoint and one that is not there can be told apart")
	}
}

func TestSlackIsAnsweredAsItAsks(t *testing.T) {
	r := start(t)
	for _, path := range []string{"/slack/actions", "/slack/command"} {
		r.ask("POST", path, "payload=x", nobody).want(http.StatusNotFound)
	}
	var got string
	answer := func(words string) func(context.Context, http.Header, []byte) (int, string, []byte) {
		return func(ctx context.Context, h http.Header, body []byte) (int, string, []byte) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("no deadline")
			}
			got = h.Get("X-Slack-Signature") + " " + string(body)
			return http.StatusTeapot, "application/json", []byte(words)
		}
	}
	r = start(t, func(c *api.Config) { c.SlackAction, c.SlackCommand = answer(`{"a":1}`), answer(`{"c":1}`) })
	for path, want := range map[string]string{"/slack/actions": `{"a":1}`, "/slack/command": `{"c":1}`} {
		reply := r.ask("POST", path, "payload=%7B%7D&x=ä", nobody, header("Content-Type", "application/x-www-form-urlencoded"),
			header("X-Slack-Signature", "v0=1"), header("Origin", "https://slack.example")).want(http.StatusTeapot)
		if reply.body != want || reply.header.Get("Content-Type") != "application/json" || got != "v0=1 payload=%7B%7D&x=ä" {
			t.Errorf("%s: %s as %s to %q", path, reply.body, reply.header.Get("Content-Type"), got)
		}
	}
	r.ask("POST", "/slack/actions", strings.Repeat("x", 100<<10), nobody).want(http.StatusTeapot)
	if len(got) != len(" ")+api.MaxSlackBody+1 {
		t.Errorf("%d bytes were handed on", len(got))
	}
	r.ask("POST", "/api/v1/incidents", "{}", r.loggedIn(), header("Origin", "https://slack.example")).want(http.StatusForbidden)
}
