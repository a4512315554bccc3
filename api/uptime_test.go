package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// past records checks of an endpoint as if they had been made every minute up to now.
func (r *rollcall) past(slug string, results ...probe.Result) {
	r.t.Helper()
	o, err := r.store.Endpoint(r.t.Context(), slug)
	if err != nil {
		r.t.Fatal(err)
	}
	at := time.Now().Add(-time.Duration(len(results)) * time.Minute)
	checks := make([]store.Check, 0, len(results))
	for _, result := range results {
		at = at.Add(time.Minute)
		result.StartedAt = at
		checks = append(checks, store.NewCheck(o.ID, "default", at, result))
	}
	if _, err := r.store.Record(r.t.Context(), checks, rules); err != nil {
		r.t.Fatal(err)
	}
}

type uptime struct {
	Window   string
	From, To time.Time
	Uptime   *float64
	Coverage float64
	Checks   store.Counts
	Latency  *struct{ P50, P90, P95, P99 float64 } `json:"latency_ms"`
	Steps    []struct {
		Name string
		P50  float64
	}
}

func TestUptimeAddsUpWhatWasSeen(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "a"}`)
	gated, unknown := broken(), broken()
	gated.Verdict, unknown.Verdict = probe.Gated, probe.Unknown
	fast := healthy()
	fast.Duration = 20 * time.Millisecond
	r.past(slug, healthy(), healthy(), broken(), gated, unknown, fast, healthy(), healthy(), healthy())

	for _, window := range []string{"1h", "24h", "7d", "30d", "90d", "365d"} {
		var got uptime
		r.get("/api/v1/endpoints/" + slug + "/uptime?window=" + window).want(http.StatusOK).json(&got)
		if want := (store.Counts{Up: 6, Down: 1, Gated: 1, Unknown: 1}); got.Checks != want || got.Window != window {
			t.Errorf("%s: counts %+v, want %+v", got.Window, got.Checks, want)
		}
		if got.Uptime == nil || *got.Uptime != 85.714 {
			t.Errorf("%s: uptime %v, want 85.714: gated and unknown count neither way", window, got.Uptime)
		}
		if got.From != got.From.Truncate(time.Hour) || got.To.Sub(got.From) < time.Hour {
			t.Errorf("%s: from %s to %s, want whole hours that hold the window", window, got.From, got.To)
		}
		if got.Coverage != 100 {
			t.Errorf("%s: coverage %v, want 100 at most, and all of it since the registration", window, got.Coverage)
		}
		if got.Latency == nil || got.Latency.P50 < 83 || got.Latency.P50 > 86 {
			t.Errorf("%s: latency %+v, want a median of 84.2 ms to 1 %%", window, got.Latency)
		}
		var steps []string
		for _, step := range got.Steps {
			steps = append(steps, step.Name)
		}
		if !slices.Equal(steps, []string{"initialize", "tools/list"}) {
			t.Errorf("%s: steps %v", window, steps)
		}
	}
}

func TestUptimeOfNothingIsNotANumber(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "a"}`)
	got := r.get("/api/v1/endpoints/" + slug + "/uptime").want(http.StatusOK).object()
	if got["uptime"] != nil || got["latency_ms"] != nil || got["coverage"] != 0.0 || got["window"] != "24h" || fmt.Sprint(got["steps"]) != "[]" {
		t.Errorf("nothing measured gives %v", got)
	}
}

func TestUptimeIsNeverRoundedUpToAHundred(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
	results := slices.Repeat([]probe.Result{healthy()}, 150)
	results[3].Verdict = probe.Down
	for range 10 {
		r.past(slug, results...)
		results = slices.Repeat([]probe.Result{healthy()}, 150)
	}
	var got uptime
	r.get("/api/v1/endpoints/" + slug + "/uptime?window=30d").want(http.StatusOK).json(&got)
	if got.Uptime == nil || *got.Uptime >= 100 || *got.Uptime < 99 {
		t.Errorf("uptime %v with one bad check", got.Uptime)
	}
	badge := r.get("/badge/"+slug+"/uptime.json", nobody).want(http.StatusOK).object()
	if badge["message"] == "100%" {
		t.Errorf("the badge says %v with one bad check", badge["message"])
	}
}
