package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

func TestMaintenanceIsPlannedOverREST(t *testing.T) {
	changes := 0
	r := start(t, func(c *api.Config) { c.PlansChanged = func(context.Context) { changes++ } })
	r.register(`{"url": "https://b.example", "name": "B"}`)
	r.register(`{"url": "https://a.example", "name": "A"}`)
	begin, end := time.Now().Add(-time.Hour).UTC().Truncate(time.Second), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	shown := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
	reply := r.ask("POST", "/api/v1/maintenance", `{"title": "Upgrade", "text": "Line 1\nLine 2", "starts_at": "`+begin.Format(time.RFC3339)+`",
		"ends_at": "`+end.Format(time.RFC3339)+`", "endpoints": ["b", "a"], "tags": ["prod"], "public": true}`, r.loggedIn()).want(http.StatusCreated)
	got := reply.object()
	id, _ := got["id"].(string)
	path := "/api/v1/maintenance/" + id
	if reply.header.Get("Location") != path {
		t.Errorf("Location is %q", reply.header.Get("Location"))
	}
	delete(got, "created_at")
	delete(got, "updated_at")
	want := map[string]any{
		"id": id, "title": "Upgrade", "text": "Line 1\nLine 2", "starts_at": shown(begin), "ends_at": shown(end), "schedule": "", "duration": "0s",
		"all": false, "endpoints": []any{"a", "b"}, "tags": []any{"prod"}, "public": true, "author": "ada", "active": true,
		"next": map[string]any{"from": shown(begin), "to": shown(end)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a fresh maintenance (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(reply.object(), r.get(path).want(http.StatusOK).object()); diff != "" {
		t.Errorf("read again:\n%s", diff)
	}
	got = r.ask("PATCH", path, `{"title": "Later", "starts_at": "`+at(30*time.Minute)+`", "endpoints": null}`).want(http.StatusOK).object()
	if got["title"] != "Later" || got["active"] != false || got["next"] == nil || len(got["endpoints"].([]any)) != 0 || got["author"] != "ada" {
		t.Errorf("after the change: %v", got)
	}
	over := r.ask("POST", "/api/v1/maintenance", `{"title": "Past", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2020-01-02T00:00:00+02:00", "all": true}`).want(http.StatusCreated).object()
	if over["active"] != false || over["next"] != nil || over["author"] != "the admin token" {
		t.Errorf("one that is over: %v", over)
	}
	list := func(query string) int {
		items, _ := r.get("/api/v1/maintenance" + query).want(http.StatusOK).object()["items"].([]any)
		return len(items)
	}
	if a, b := list(""), list("?all=true"); a != 1 || b != 2 {
		t.Errorf("%d are listed, of all %d; want 1 and 2", a, b)
	}
	r.get("/api/v1/maintenance?all=perhaps").want(http.StatusBadRequest).mistakes()
	r.ask("DELETE", path, "").want(http.StatusNoContent)
	r.get(path).want(http.StatusNotFound)
	r.ask("DELETE", path, "").want(http.StatusNotFound)
	r.ask("PATCH", path, `{"title": "x"}`).want(http.StatusNotFound)
	if changes != 4 {
		t.Errorf("the judge heard of %d changes, want 4", changes)
	}
}

func TestMaintenanceThatRecursSaysWhenItIsNext(t *testing.T) {
	r := start(t)
	for schedule, within := range map[string]time.Duration{
		"* * * * *": time.Minute, "0 3 * * *": 24 * time.Hour, "0 3 1 * *": 31 * 24 * time.Hour,
		"CRON_TZ=Europe/Berlin 0 3 2 1 *": 366 * 24 * time.Hour, "0 0 29 2 *": 8 * 366 * 24 * time.Hour,
	} {
		got := r.ask("POST", "/api/v1/maintenance", `{"title": "Again", "starts_at": "2026-01-01T00:00:00Z", "schedule": "`+schedule+`", "duration": "10s", "all": true}`).
			want(http.StatusCreated).object()
		next, _ := got["next"].(map[string]any)
		from, err := time.Parse(time.RFC3339, next["from"].(string))
		if err != nil || time.Until(from) > within || time.Until(from) < -10*time.Second || got["ends_at"] != nil || got["duration"] != "10s" {
			t.Errorf("%s: next is %v", schedule, got)
		}
	}
}

func TestMaintenanceWithMistakesIsRefused(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://a.example", "name": "A"}`)
	const begin = `"title": "x", "starts_at": "2026-01-01T00:00:00Z"`
	for body, want := range map[string][]string{
		`{}`:              {"title", "starts_at", "ends_at", "endpoints"},
		`{` + begin + `}`: {"ends_at", "endpoints"},
		`{"title": "a\u0007", "starts_at": "soon", "ends_at": 7, "schedule": "@every 5m", "duration": "soon", "all": 1, "endpoints": ["nope", "a"], "tags": ["a,b"], "author": "x", "until": 1}`: {
			"starts_at", "ends_at", "all", "author", "until", "endpoints[0]", "duration", "title", "schedule", "tags[0]",
		},
		`{` + begin + `, "schedule": "0 3 * * *", "duration": "24h", "all": true}`:                                     {"duration"},
		`{` + begin + `, "schedule": "0 3 * * *", "all": true}`:                                                        {"duration"},
		`{` + begin + `, "schedule": "now and then", "duration": "1h", "all": true}`:                                   {"schedule"},
		`{` + begin + `, "ends_at": "2025-01-01T00:00:00Z", "duration": "1h", "all": true, "tags": ["a"]}`:             {"ends_at", "all"},
		`{` + begin + `, "ends_at": "2026-01-02T00:00:00Z", "endpoints": ["` + strings.Repeat("a\", \"", 501) + `a"]}`: nil,
	} {
		got := r.ask("POST", "/api/v1/maintenance", body).want(422).mistakes()
		if diff := cmp.Diff(want, got); diff != "" && want != nil {
			t.Errorf("%s: mistakes named (-want +got):\n%s", body, diff)
		}
		if len(got) > 50 {
			t.Errorf("%d mistakes are named", len(got))
		}
	}
}

func TestThePublicIsToldOfMaintenanceThatIsForThem(t *testing.T) {
	r := start(t)
	r.outage("Weather", true)
	r.register(`{"url": "https://a.example", "name": "A", "public": true, "tags": ["prod"]}`)
	r.see(healthy())
	r.ask("POST", "/api/v1/endpoints/a/check", "").want(http.StatusOK)
	maintained := func() (slugs []string, status, description any) {
		t.Helper()
		got := r.get("/api/v1/status", nobody).want(http.StatusOK).object()
		for _, item := range got["endpoints"].([]any) {
			if e, _ := item.(map[string]any); e["maintenance"] == true {
				slugs = append(slugs, e["slug"].(string))
			}
		}
		return slugs, got["status"], got["description"]
	}
	expect := func(wantSlugs []string, wantStatus, wantDescription string) {
		t.Helper()
		slugs, status, description := maintained()
		if diff := cmp.Diff(wantSlugs, slugs); diff != "" || status != wantStatus || description != wantDescription {
			t.Errorf("%v, %v, %v; want %v, %s, %s", slugs, status, description, wantSlugs, wantStatus, wantDescription)
		}
	}
	expect(nil, "down", "Partial outage")
	plan := func(more string) string {
		t.Helper()
		id, _ := r.ask("POST", "/api/v1/maintenance", `{"title": "Secret plan", "starts_at": "`+at(-time.Hour)+`", "ends_at": "`+at(time.Hour)+`", `+more+`}`).
			want(http.StatusCreated).object()["id"].(string)
		return id
	}
	hidden := plan(`"all": true`)
	expect(nil, "down", "Partial outage")
	if got := r.get("/api/v1/status", nobody).body; strings.Contains(got, "Secret") {
		t.Errorf("the public is told of a maintenance that is not for them: %s", got)
	}
	weather := plan(`"endpoints": ["weather"], "public": true`)
	expect([]string{"weather"}, "up", "All systems operational")
	plan(`"tags": ["prod"], "public": true`)
	expect([]string{"a", "weather"}, "down", "Under maintenance")
	r.ask("DELETE", "/api/v1/maintenance/"+weather, "").want(http.StatusNoContent)
	r.ask("DELETE", "/api/v1/maintenance/"+hidden, "").want(http.StatusNoContent)
	expect([]string{"a"}, "down", "Major outage")
}

func TestChecksUnderMaintenanceAreCountedApart(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "A", "public": true}`)
	r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	counts := func() map[string]any {
		t.Helper()
		return r.get("/api/v1/endpoints/" + slug + "/uptime?window=1h").want(http.StatusOK).object()
	}
	if got, _ := counts()["checks"].(map[string]any); got["maintenance"] != nil {
		t.Errorf("without maintenance: %v", got)
	}
	judge := rules
	judge.Maintained = func(string, time.Time) bool { return true }
	o, err := r.store.Endpoint(t.Context(), slug)
	if err != nil {
		t.Fatal(err)
	}
	result := broken()
	result.StartedAt = time.Now()
	if _, err := r.store.Record(t.Context(), []store.Check{store.NewCheck(o.ID, "default", result.StartedAt, result)}, judge); err != nil {
		t.Fatal(err)
	}
	got := counts()
	want := map[string]any{"up": 1.0, "degraded": 0.0, "down": 0.0, "gated": 0.0, "unknown": 0.0, "maintenance": 1.0}
	if diff := cmp.Diff(want, got["checks"]); diff != "" || got["uptime"] != 100.0 {
		t.Errorf("uptime %v, counts (-want +got):\n%s", got["uptime"], diff)
	}
}
