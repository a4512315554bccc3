package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// seenFrom records a check of an endpoint from a location, as many times as it takes to be believed.
func (r *rollcall) seenFrom(slug, location string, result probe.Result) {
	r.t.Helper()
	o, err := r.store.Endpoint(r.t.Context(), slug)
	if err != nil {
		r.t.Fatal(err)
	}
	for range o.Confirm.Failures {
		result.StartedAt = time.Now()
		check := store.NewCheck(o.ID, location, result.StartedAt, result)
		if _, err := r.store.Record(r.t.Context(), []store.Check{check}, rules); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestAnEndpointTellsHowItLooksFromEachLocation(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "a", "public": true, "locations": ["fra", "ams", "lon"], "quorum": 2}`)
	r.seenFrom(slug, "ams", healthy())
	r.seenFrom(slug, "fra", broken())

	got := r.get("/api/v1/endpoints/" + slug).want(http.StatusOK).object()
	if fmt.Sprintf("%v %v %v", got["locations"], got["quorum"], got["status"]) != "[fra ams lon] 2 degraded" {
		t.Errorf("locations %v, quorum %v, status %v", got["locations"], got["quorum"], got["status"])
	}
	places, _ := got["places"].([]any)
	for _, p := range places {
		place, _ := p.(map[string]any)
		for _, name := range []string{"since", "last_check_at"} {
			if place["location"] == "lon" && place[name] != nil || place["location"] != "lon" && place[name] == nil {
				t.Errorf("%s of %s is %v", name, place["location"], place[name])
			}
			delete(place, name)
		}
	}
	want := []any{
		map[string]any{"location": "ams", "status": "up"},
		map[string]any{"location": "fra", "status": "down", "failure": map[string]any{
			"step": "tools/list", "class": "rpc_error", "code": -32603.0, "message": "Internal error at db-7.corp.example",
		}},
		map[string]any{"location": "lon", "status": "pending"},
	}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}

	reply := r.get("/api/v1/status", nobody).want(http.StatusOK)
	endpoints, _ := reply.object()["endpoints"].([]any)
	public, _ := endpoints[0].(map[string]any)
	var statuses []string
	for _, p := range public["places"].([]any) {
		place, _ := p.(map[string]any)
		statuses = append(statuses, fmt.Sprint(place["location"], " ", place["status"]))
	}
	if !slices.Equal(statuses, []string{"ams up", "fra down", "lon pending"}) {
		t.Errorf("the public is told %q", statuses)
	}
	page := r.get("/status/"+slug, nobody).want(http.StatusOK)
	for _, body := range []string{reply.body, page.body} {
		if !strings.Contains(body, "fra") || strings.Contains(body, "db-7") || strings.Contains(body, "rpc_error") {
			t.Errorf("the public is told more than names and statuses:\n%s", body)
		}
	}

	r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"locations": ["ams"], "quorum": null}`).want(http.StatusOK)
	r.seenFrom(slug, "ams", healthy())
	got = r.get("/api/v1/endpoints/" + slug).want(http.StatusOK).object()
	if fmt.Sprintf("%v %v %v", got["locations"], got["quorum"], got["status"]) != "[ams] 0 up" {
		t.Errorf("locations %v, quorum %v, status %v", got["locations"], got["quorum"], got["status"])
	}
	if page := r.get("/status/"+slug, nobody).want(http.StatusOK); strings.Contains(page.body, "fra") {
		t.Error("the public is told of a location that the endpoint is no longer probed from")
	}
	if page := r.get("/endpoints/"+slug, r.loggedIn()).want(http.StatusOK); !strings.Contains(page.body, "no longer probed from here") {
		t.Error("whoever runs it is not told that a location is left over")
	}
	got = r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"locations": null}`).want(http.StatusOK).object()
	if fmt.Sprint(got["locations"]) != "[]" {
		t.Errorf("null leaves locations %v", got["locations"])
	}
}

func TestMistakesInLocationsAndQuorumAreNamed(t *testing.T) {
	r := start(t)
	for body, want := range map[string][]string{
		`"locations": ["fra", "fra"]`:              {"locations[1]"},
		`"locations": [" ", "a,b", 1]`:             {"locations[2]", "locations[0]", "locations[1]"},
		`"locations": ["", "a,b"]`:                 {"locations[0]", "locations[1]"},
		`"locations": "fra"`:                       {"locations"},
		`"locations": ["fra", "ams"], "quorum": 3`: {"quorum"},
		`"quorum": -1`:                             {"quorum"},
		`"quorum": 51`:                             {"quorum"},
		`"quorum": "2"`:                            {"quorum"},
		`"places": []`:                             {"places"},
	} {
		reply := r.ask("POST", "/api/v1/endpoints", `{"url": "https://a.example", `+body+`}`).want(http.StatusUnprocessableEntity)
		var fields []string
		for _, e := range reply.object()["errors"].([]any) {
			mistake, _ := e.(map[string]any)
			fields = append(fields, fmt.Sprint(mistake["field"]))
		}
		if !slices.Equal(fields, want) {
			t.Errorf("%s: mistakes in %q, want %q", body, fields, want)
		}
	}
}

func TestThePageOfAnEndpointShowsItsPlaces(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "a"}`)
	r.seenFrom(slug, "ams", healthy())
	if page := r.get("/endpoints/"+slug, r.loggedIn()).want(http.StatusOK); strings.Contains(page.body, "By location") {
		t.Error("one location alone has a table of its own")
	}
	r.seenFrom(slug, "fra", broken())
	page := r.get("/endpoints/"+slug, r.loggedIn()).want(http.StatusOK)
	for _, text := range []string{"By location", "ams", "seen from fra only (1 of 2 locations): Internal error at db-7", "Last checked"} {
		if !strings.Contains(page.body, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
}

func TestLocationsAndQuorumAreSetInTheForm(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather", "locations", "fra, ams\n lon,", "quorum", "2"))
	kept, err := s.store.Endpoint(t.Context(), "weather")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(kept.Locations, []string{"fra", "ams", "lon"}) || kept.Quorum != 2 {
		t.Errorf("kept locations %q and quorum %d", kept.Locations, kept.Quorum)
	}
	edit := s.get("/endpoints/weather/edit")
	if edit.field("locations") != "fra, ams, lon" || edit.field("quorum") != "2" {
		t.Errorf("the form shows locations %q and quorum %q", edit.field("locations"), edit.field("quorum"))
	}
	wrong := s.post("/endpoints/weather/edit", with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather", "locations", "fra, fra", "quorum", "most"))
	if wrong.status != http.StatusUnprocessableEntity || !strings.Contains(wrong.text, "stands there twice") || !strings.Contains(wrong.text, "must be a whole number") {
		t.Errorf("mistakes are answered with %d:\n%s", wrong.status, wrong.text)
	}
	s.post("/endpoints/weather/edit", with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather", "locations", "", "quorum", ""))
	if kept, err = s.store.Endpoint(t.Context(), "weather"); err != nil || len(kept.Locations) != 0 || kept.Quorum != 0 {
		t.Errorf("kept locations %q and quorum %d, %v; want none", kept.Locations, kept.Quorum, err)
	}
}
