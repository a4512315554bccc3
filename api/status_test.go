package api_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func TestThePublicStatusIsTheWorstThatIsKnown(t *testing.T) {
	r := start(t)
	status := func() map[string]any {
		t.Helper()
		return r.get("/api/v1/status", nobody).want(http.StatusOK).object()
	}
	if got := status(); got["status"] != "pending" || got["description"] != "Nothing is published" {
		t.Errorf("with no endpoint: %v", got)
	}
	r.register(`{"url": "https://a.example", "name": "A", "public": true}`)
	if got := status(); got["status"] != "pending" || got["checked_at"] != nil {
		t.Errorf("before the first check: %v", got)
	}
	r.ask("POST", "/api/v1/endpoints/a/check", "").want(http.StatusOK)
	if got := status(); got["status"] != "up" || got["description"] != "All systems operational" {
		t.Errorf("with a healthy endpoint: %v", got)
	}
	r.outage("Hidden", false)
	if got := status(); got["status"] != "up" {
		t.Errorf("a hidden outage shows: %v", got)
	}
	r.outage("B", true)
	got := status()
	if got["status"] != "down" || got["description"] != "Partial outage" {
		t.Errorf("with one of two down: %v", got)
	}
	endpoints, _ := got["endpoints"].([]any)
	incidents, _ := got["incidents"].([]any)
	if len(endpoints) != 2 || len(incidents) != 1 {
		t.Fatalf("%d endpoints and %d incidents, want 2 and 1", len(endpoints), len(incidents))
	}
	b, _ := endpoints[1].(map[string]any)
	delete(b, "since")
	if diff := cmp.Diff(map[string]any{"slug": "b", "name": "B", "status": "down", "uptime_24h": 0.0, "places": []any{}}, b); diff != "" {
		t.Errorf("an endpoint for the public (-want +got):\n%s", diff)
	}
}

func TestAggregatorsFindTheShapeTheyRead(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://a.example", "name": "A", "public": true}`)
	r.ask("POST", "/api/v1/endpoints/a/check", "").want(http.StatusOK)
	r.outage("B", true)
	summary := r.get("/api/v2/summary.json", nobody).want(http.StatusOK).object()
	for _, member := range []string{"page", "status", "components", "incidents", "scheduled_maintenances"} {
		if _, there := summary[member]; !there {
			t.Errorf("summary.json lacks %s", member)
		}
	}
	if diff := cmp.Diff(map[string]any{"indicator": "major", "description": "Partial outage"}, summary["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	statuses := map[any]any{}
	for _, c := range summary["components"].([]any) {
		c, _ := c.(map[string]any)
		statuses[c["name"]] = c["status"]
	}
	if diff := cmp.Diff(map[any]any{"A": "operational", "B": "major_outage"}, statuses); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	r.see(healthy())
	r.ask("POST", "/api/v1/endpoints/b/check", "").want(http.StatusOK)
	if open := r.get("/api/v2/summary.json", nobody).object()["incidents"].([]any); len(open) != 0 {
		t.Errorf("open incidents after the end: %v", open)
	}
	all, _ := r.get("/api/v2/incidents.json", nobody).want(http.StatusOK).object()["incidents"].([]any)
	if len(all) != 1 {
		t.Fatalf("%d incidents, want 1", len(all))
	}
	incident, _ := all[0].(map[string]any)
	if incident["status"] != "resolved" || incident["name"] != "B is down" || len(incident["incident_updates"].([]any)) != 2 {
		t.Errorf("incident %v", incident)
	}
	for path, only := range map[string]string{"status": "status", "components": "components"} {
		if got := r.get("/api/v2/"+path+".json", nobody).want(http.StatusOK).object(); len(got) != 2 || got[only] == nil || got["page"] == nil {
			t.Errorf("%s.json holds %v", path, got)
		}
	}
}

// Every set of statuses is published once. Whatever is read, it says the same, and never that all is well when that is
// not known of all.
func TestEveryCombinationOfStatusesIsToldAlikeEverywhere(t *testing.T) {
	r := start(t)
	slugs := r.oneOfEach()
	for set := range 1 << len(slugs) {
		var published []store.Status
		for i, status := range store.Statuses() {
			r.publish(slugs[status], set&(1<<i) != 0)
			if set&(1<<i) != 0 {
				published = append(published, status)
			}
		}
		has := func(s store.Status) bool { return slices.Contains(published, s) }
		type told struct{ Status, Description, Indicator string }
		var want told
		switch {
		case len(published) == 0:
			want = told{"pending", "Nothing is published", "none"}
		case has(store.StatusDown) && len(published) == 1:
			want = told{"down", "Major outage", "critical"}
		case has(store.StatusDown):
			want = told{"down", "Partial outage", "major"}
		case has(store.StatusDegraded):
			want = told{"degraded", "Degraded service", "minor"}
		case has(store.StatusGated):
			want = told{"gated", "Degraded service", "minor"}
		case has(store.StatusUnknown) && has(store.StatusUp):
			want = told{"unknown", "Some statuses not known", "minor"}
		case has(store.StatusUnknown):
			want = told{"unknown", "Status not known", "minor"}
		case has(store.StatusUp):
			want = told{"up", "All systems operational", "none"}
		case has(store.StatusPaused):
			want = told{"paused", "Status not known", "minor"}
		default:
			want = told{"pending", "Status not known", "minor"}
		}
		var own told
		r.get("/api/v1/status", nobody).want(http.StatusOK).json(&own)
		own.Indicator = want.Indicator // a word of the other shape
		if own != want {
			t.Errorf("%v: status %+v, want %+v", published, own, want)
		}
		var other struct {
			Status     told
			Components []struct{ Status string }
		}
		r.get("/api/v2/summary.json", nobody).want(http.StatusOK).json(&other)
		other.Status.Status = want.Status
		if other.Status != want {
			t.Errorf("%v: summary %+v, want %+v", published, other.Status, want)
		}
		for _, c := range other.Components {
			if c.Status == "degraded_performance" && want.Indicator == "none" {
				t.Errorf("%v: a component is %s and the indicator none", published, c.Status)
			}
		}
		page := r.get("/status", nobody).want(http.StatusOK).body
		if !strings.Contains(page, "<h1>"+want.Description+"</h1>") || !strings.Contains(page, "banner is-"+want.Status) {
			t.Errorf("%v: the page does not say %q in the colour of %s", published, want.Description, want.Status)
		}
	}
}

// oneOfEach registers an endpoint of every status and returns their slugs.
func (r *rollcall) oneOfEach() map[store.Status]string {
	r.t.Helper()
	slugs := map[store.Status]string{}
	for _, status := range store.Statuses() {
		slug := r.register(fmt.Sprintf(`{"url": "https://a.example", "name": "is %s", "paused": %v}`, status, status == store.StatusPaused))
		result := healthy()
		if result.Verdict = probe.Verdict(status); result.Verdict != probe.Up {
			result.Failure = &probe.Failure{Step: "initialize", Class: probe.ClassTimeout}
		}
		if slices.Contains(probe.Verdicts(), result.Verdict) {
			r.see(result)
			for range 2 * store.DefaultConfirm.Failures {
				r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
			}
		}
		if got := r.get("/api/v1/endpoints/" + slug).object()["status"]; got != string(status) {
			r.t.Fatalf("an endpoint that should be %s is %v", status, got)
		}
		slugs[status] = slug
	}
	return slugs
}

// publish makes an endpoint public, or no longer so.
func (r *rollcall) publish(slug string, public bool) {
	r.t.Helper()
	_, err := r.store.UpdateEndpoint(r.t.Context(), slug, func(e *store.Endpoint) error {
		e.Public = public
		return nil
	})
	if err != nil {
		r.t.Fatalf("publish %s: %v", slug, err)
	}
}

type atom struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Author  string   `xml:"author>name"`
	Entries []struct {
		ID        string `xml:"id"`
		Title     string `xml:"title"`
		Updated   string `xml:"updated"`
		Published string `xml:"published"`
		Content   string `xml:"content"`
	} `xml:"entry"`
}

func TestTheFeedTellsAnIncidentOnceAndItsEnd(t *testing.T) {
	r := start(t, func(c *api.Config) { c.PublicURL = "http://status.example" })
	const hostile = "<script>alert(1)</script> & \"quotes\" ]]>"
	name, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	r.register(`{"url": "https://a.example", "public": true, "name": ` + string(name) + `}`)
	read := func() (feed atom) {
		t.Helper()
		body := r.get("/status/feed.atom", nobody).want(http.StatusOK).body
		if err := xml.Unmarshal([]byte(body), &feed); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if _, err := time.Parse(time.RFC3339, feed.Updated); err != nil || feed.ID != "http://status.example/status/feed.atom" || feed.Title == "" || feed.Author == "" {
			t.Errorf("the feed lacks what RFC 4287 wants: %+v", feed)
		}
		return feed
	}
	if feed := read(); len(feed.Entries) != 0 {
		t.Errorf("entries before an incident: %v", feed.Entries)
	}
	if at, err := time.Parse(time.RFC3339, read().Updated); err != nil || time.Since(at) > time.Minute {
		t.Errorf("before the first check the feed is of %s (%v), want the start of the server", at, err)
	}
	var list struct{ Items []slugged }
	r.get("/api/v1/endpoints").json(&list)
	r.see(broken())
	for range 2 {
		r.ask("POST", "/api/v1/endpoints/"+list.Items[0].Slug+"/check", "").want(http.StatusOK)
	}
	open := read()
	if len(open.Entries) != 1 || open.Entries[0].Title != hostile+" is down" || !strings.HasPrefix(open.Entries[0].ID, "urn:uuid:") {
		t.Fatalf("entries %+v", open.Entries)
	}
	r.see(healthy())
	r.ask("POST", "/api/v1/endpoints/"+list.Items[0].Slug+"/check", "").want(http.StatusOK)
	over := read()
	if len(over.Entries) != 1 || over.Entries[0].ID != open.Entries[0].ID || over.Entries[0].Title != "Resolved: "+hostile+" is down" {
		t.Errorf("after the end: %+v", over.Entries)
	}
	etag := r.get("/status/feed.atom", nobody).header.Get("ETag")
	r.get("/status/feed.atom", nobody, header("If-None-Match", etag)).want(http.StatusNotModified)
}

// Links of public answers follow the Host of a request where nobody said what to call us. One visitor's Host must not
// reach another by way of a cache between.
func TestLinksThatFollowTheHostAreNotShared(t *testing.T) {
	linking := []string{"/status/feed.atom", "/api/v2/summary.json", "/api/v2/status.json", "/api/v2/components.json", "/api/v2/incidents.json"}
	evil := func(q *http.Request) { nobody(q); q.Host = "evil.example" }

	unnamed := start(t)
	slug := unnamed.outage("Weather", true)
	for _, path := range linking {
		got := unnamed.get(path, evil).want(http.StatusOK)
		if cache := got.header.Get("Cache-Control"); cache != "private, max-age=10" || !strings.Contains(got.body, "evil.example") {
			t.Errorf("%s: Cache-Control %q with links like %s", path, cache, got.body)
		}
	}
	for _, path := range []string{"/status", "/status/" + slug, "/api/v1/status", "/badge/" + slug + "/status.svg", "/badge/" + slug + "/uptime.json"} {
		got := unnamed.get(path, evil).want(http.StatusOK)
		if cache := got.header.Get("Cache-Control"); !strings.HasPrefix(cache, "public, ") || strings.Contains(got.body, "evil.example") {
			t.Errorf("%s: Cache-Control %q of an answer without links: %s", path, cache, got.body)
		}
	}

	named := start(t, func(c *api.Config) { c.PublicURL = "https://status.example" })
	named.outage("Weather", true)
	for _, path := range linking {
		got := named.get(path, evil).want(http.StatusOK)
		if cache := got.header.Get("Cache-Control"); cache != "public, max-age=10" || strings.Contains(got.body, "evil.example") {
			t.Errorf("%s with a public URL: Cache-Control %q, links like %s", path, cache, got.body)
		}
	}
}
