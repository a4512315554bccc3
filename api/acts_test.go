package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// at returns a time that lies so far from the present, as it stands in JSON.
func at(away time.Duration) string { return time.Now().Add(away).UTC().Format(time.RFC3339) }

// openIncident returns the id of the only open incident of an endpoint.
func (r *rollcall) openIncident(slug string) string {
	r.t.Helper()
	return r.get("/api/v1/incidents?status=open&endpoint=" + slug).want(http.StatusOK).first("id")
}

// timeline returns the lines of an incident as "kind author: text".
func (a reply) timeline() []string {
	a.t.Helper()
	var i struct {
		Timeline []struct{ Kind, Author, Text string }
	}
	a.json(&i)
	lines := []string{}
	for _, e := range i.Timeline {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s: %s", e.Kind, e.Author, e.Text)))
	}
	return lines
}

func TestEveryActHasItsAuthor(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "Weather"}`)
	result := broken()
	result.Duration = 0 // it opened before somebody acted, as it does with probes that take their time
	r.see(result)
	for range store.DefaultConfirm.Failures {
		r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	}
	id := r.openIncident(slug)
	path := "/api/v1/incidents/" + id + "/acts"
	secret, _ := r.token("ci")
	byToken := header("Authorization", "Bearer "+secret)
	woken := locked(r, func() int { return r.woken })

	got := r.ask("POST", path, `{"act": "acknowledge"}`, r.loggedIn()).want(http.StatusOK).object()
	if got["acknowledged_by"] != "ada" || got["acknowledged_at"] == nil {
		t.Errorf("acknowledged: %v", got)
	}
	got = r.ask("POST", path, `{"act": "snooze", "for": "90m"}`, byToken).want(http.StatusOK).object()
	until, err := time.Parse(time.RFC3339, fmt.Sprint(got["snoozed_until"]))
	if left := time.Until(until); err != nil || left < 89*time.Minute || left > 90*time.Minute {
		t.Errorf("snoozed until %v", got["snoozed_until"])
	}
	r.ask("POST", path, `{"act": "snooze", "until": "`+at(time.Hour)+`"}`, byToken).want(http.StatusOK)
	hostile := `<script>alert(1)</script> *bold* @everyone`
	r.ask("POST", path, `{"act": "comment", "text": "`+hostile+`", "public": true}`).want(http.StatusOK)
	reply := r.ask("POST", path, `{"act": "resolve", "text": " over "}`, byToken).want(http.StatusOK)
	if got := reply.object(); got["status"] != "resolved" || got["resolution"] != "manual" {
		t.Errorf("resolved: %v", got)
	}
	reply = r.ask("POST", path, `{"act": "reopen"}`, r.loggedIn()).want(http.StatusOK)
	var lines []string
	for _, line := range reply.timeline() {
		if !strings.HasPrefix(line, "snoozed") {
			lines = append(lines, line)
		}
	}
	want := []string{
		"opened :", "acknowledged ada:", "comment the admin token: " + hostile, "resolved token ci: over", "reopened ada:",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	if got := locked(r, func() int { return r.woken }) - woken; got != 6 {
		t.Errorf("the dispatcher was woken %d times, want once for each act", got)
	}
}

// wantPublic fails unless these announcements, by their titles in order, are what strangers are shown and what the team is told that
// they are.
func (r *rollcall) wantPublic(titles ...string) {
	r.t.Helper()
	type named struct {
		Title, Name string
		Public      bool
	}
	var shown struct{ Incidents []named }
	var all struct{ Items []named }
	r.get("/api/v1/status", nobody).want(http.StatusOK).json(&shown)
	r.get("/api/v1/incidents?kind=manual").want(http.StatusOK).json(&all)
	var strangers, team []string
	for _, i := range shown.Incidents {
		strangers = append(strangers, i.Name)
	}
	for _, i := range all.Items {
		if i.Public {
			team = append(team, i.Title)
		}
	}
	slices.Sort(strangers)
	slices.Sort(team)
	for who, got := range map[string][]string{"strangers": strangers, "the team": team} {
		if diff := cmp.Diff(got, titles); diff != "" {
			r.t.Errorf("public to %s (-got +want):\n%s", who, diff)
		}
	}
}

func TestAnActThatMakesNoSenseIsRefused(t *testing.T) {
	r := start(t)
	id := r.openIncident(r.outage("Weather", true))
	path := "/api/v1/incidents/" + id + "/acts"
	for body, want := range map[string]struct {
		status int
		fields []string
	}{
		`{}`:                                                 {422, []string{"act"}},
		`{"act": "shout"}`:                                   {422, []string{"act"}},
		`{"act": "comment"}`:                                 {422, []string{"text"}},
		`{"act": "comment", "text": " \n"}`:                  {422, []string{"text"}},
		`{"act": "comment", "text": "a\u0000b"}`:             {422, []string{"text"}},
		`{"act": "snooze"}`:                                  {422, []string{"until"}},
		`{"act": "snooze", "for": "-1h"}`:                    {422, []string{"for"}},
		`{"act": "snooze", "for": "9000h"}`:                  {422, []string{"for"}},
		`{"act": "snooze", "for": 3}`:                        {422, []string{"for"}},
		`{"act": "snooze", "until": "tomorrow"}`:             {422, []string{"until"}},
		`{"act": "snooze", "until": "2020-01-01T00:00:00Z"}`: {422, []string{"until"}},
		`{"act": "snooze", "for": "1h", "until": "` + at(time.Hour) + `"}`:           {422, []string{"for"}},
		`{"act": "acknowledge", "for": "1h", "public": 1, "author": "somebody"}`:     {422, []string{"author", "for", "public"}},
		`{"act": "comment", "text": "` + strings.Repeat("x", 4001) + `", "why": ""}`: {422, []string{"text", "why"}},
		`{"act": "reopen"}`: {409, []string{"act"}},
	} {
		reply := r.ask("POST", path, body).want(want.status)
		got := reply.mistakes()
		slices.Sort(got)
		if diff := cmp.Diff(want.fields, slices.Compact(got)); diff != "" {
			t.Errorf("%.100s: mistakes named (-want +got):\n%s", body, diff)
		}
	}
	r.ask("POST", path, `{"act": "resolve"}`).want(http.StatusOK)
	for _, act := range []string{`"acknowledge"`, `"resolve"`, `"snooze", "for": "1h"`} {
		r.ask("POST", path, `{"act": `+act+`}`).want(http.StatusConflict).mistakes()
	}
	r.ask("POST", path, `{"act": "comment", "text": "It was the cable."}`).want(http.StatusOK)
	r.ask("POST", "/api/v1/incidents/inc_not_there/acts", `{"act": "acknowledge"}`).want(http.StatusNotFound)
}

func TestAnAnnouncementIsAnIncidentOfItsOwn(t *testing.T) {
	r := start(t)
	channel, _ := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "`+webhook+`"}`).object()["id"].(string)
	r.register(`{"url": "https://a.example", "name": "A", "public": true, "channels": ["` + channel + `"]}`)
	reply := r.ask("POST", "/api/v1/incidents", `{"title": "Our provider is slow", "severity": "degraded", "text": "We look into it.",
		"endpoints": ["a"], "started_at": "`+at(-time.Hour)+`"}`, r.loggedIn()).want(http.StatusCreated)
	got := reply.object()
	id, _ := got["id"].(string)
	if reply.header.Get("Location") != "/api/v1/incidents/"+id {
		t.Errorf("Location is %q", reply.header.Get("Location"))
	}
	for member, want := range map[string]any{
		"kind": "manual", "endpoint": nil, "name": "", "title": "Our provider is slow", "status": "open", "severity": "degraded", "worst": "degraded",
		"check": nil, "flapping": false, "acknowledged_by": nil,
	} {
		if got[member] != want {
			t.Errorf("%s is %v, want %v", member, got[member], want)
		}
	}
	if diff := cmp.Diff([]any{"a"}, got["endpoints"]); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"opened ada: We look into it."}, reply.timeline()); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	if n, err := r.store.PendingNotices(t.Context()); err != nil || n != 1 {
		t.Errorf("%d notices wait (%v), want one for the channel of the endpoint", n, err)
	}
	for query, want := range map[string]int{"kind=manual": 1, "kind=endpoint": 0, "kind=manual&endpoint=a": 1, "": 1} {
		items, _ := r.get("/api/v1/incidents?" + query).want(http.StatusOK).object()["items"].([]any)
		if len(items) != want {
			t.Errorf("%s lists %d incidents, want %d", query, len(items), want)
		}
	}
	r.get("/api/v1/incidents?kind=odd").want(http.StatusBadRequest).mistakes()
	shown, _ := r.get("/api/v1/status", nobody).object()["incidents"].([]any)
	if len(shown) != 1 || shown[0].(map[string]any)["name"] != "Our provider is slow" || shown[0].(map[string]any)["endpoint"] != nil {
		t.Errorf("the public is told %v", shown)
	}
	// What is said of endpoints that are not public is not for the public.
	r.register(`{"url": "https://b.example", "name": "B"}`)
	r.ask("POST", "/api/v1/incidents", `{"title": "Inside", "severity": "down", "text": "Ours.", "endpoints": ["b"]}`).want(http.StatusCreated)
	for _, path := range []string{"/api/v1/status", "/status", "/status/feed.atom", "/status/feed.json", "/api/v2/incidents.json", "/llms.txt"} {
		if body := r.get(path, nobody).want(http.StatusOK).body; strings.Contains(body, "Inside") || !strings.Contains(body, "Our provider is slow") {
			t.Errorf("%s tells of the wrong announcement:\n%s", path, body)
		}
	}
	r.ask("POST", "/api/v1/incidents", `{"title": "Both", "endpoints": ["a", "b"]}`).want(http.StatusCreated)
	r.ask("POST", "/api/v1/incidents", `{"title": "All in all"}`).want(http.StatusCreated)
	r.wantPublic("All in all", "Both", "Our provider is slow")
	r.ask("PATCH", "/api/v1/endpoints/b", `{"public": true}`).want(http.StatusOK)
	r.wantPublic("All in all", "Both", "Inside", "Our provider is slow")
	for _, slug := range []string{"a", "b"} {
		r.ask("DELETE", "/api/v1/endpoints/"+slug, "").want(http.StatusNoContent)
	}
	r.wantPublic("All in all")
	// Two announcements at once are two incidents.
	r.ask("POST", "/api/v1/incidents", `{"title": "Our provider is slow"}`).want(http.StatusCreated)
}

func TestAnAnnouncementWithMistakesIsRefused(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://a.example", "name": "A"}`)
	for body, want := range map[string][]string{
		`{}`: {"title"},
		`{"title": "a\nb", "severity": "up", "text": 1, "endpoints": ["a", "b", "a"], "started_at": "` + at(time.Hour) + `", "public": true}`: {
			"text", "public", "title", "severity", "started_at", "endpoints[1]", "endpoints[2]",
		},
		`{"title": "` + strings.Repeat("x", 101) + `", "started_at": "2020-01-01T00:00:00Z", "text": "` + strings.Repeat("x", 4001) + `"}`: {
			"title", "text", "started_at",
		},
	} {
		if diff := cmp.Diff(want, r.ask("POST", "/api/v1/incidents", body).want(422).mistakes()); diff != "" {
			t.Errorf("%.60s: mistakes named (-want +got):\n%s", body, diff)
		}
	}
}

// deliver settles everything that is due, as sent or as failed for good.
func (r *rollcall) deliver(fails bool) (notices []string) {
	r.t.Helper()
	now := time.Now().Add(time.Second)
	due, err := r.store.LeaseNotices(r.t.Context(), "test", now, time.Minute, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range due {
		s := store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: now, Took: 12 * time.Millisecond, Sent: !fails, Permanent: fails}
		if fails {
			s.Error = "channel_not_found"
		}
		for _, later := range d.Later {
			s.Later = append(s.Later, later.ID)
		}
		if err := r.store.SettleNotice(r.t.Context(), s); err != nil {
			r.t.Fatal(err)
		}
		notices = append(notices, d.Notice.ID)
	}
	return notices
}

func TestWhatWasSentIsLoggedAndSentAgain(t *testing.T) {
	r := start(t)
	channel, _ := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "`+webhook+`"}`).object()["id"].(string)
	slug := r.outage("Weather", true)
	r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"channels": ["`+channel+`"]}`).want(http.StatusOK)
	id := r.openIncident(slug)
	r.see(healthy())
	r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	r.see(broken())
	for range 2 {
		r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	}
	notices := r.deliver(true)
	if len(notices) == 0 {
		t.Fatal("nothing was due")
	}
	path := "/api/v1/channels/" + channel + "/deliveries"
	reply := r.get(path + "?limit=1").want(http.StatusOK)
	items, _ := reply.object()["items"].([]any)
	if len(items) != 1 {
		t.Fatalf("deliveries: %s", reply.body)
	}
	got, _ := items[0].(map[string]any)
	for member, want := range map[string]any{
		"notice": notices[len(notices)-1], "endpoint": slug, "number": 1.0, "outcome": "failed", "error": "channel_not_found", "took_ms": 12.0,
	} {
		if got[member] != want {
			t.Errorf("%s is %v, want %v", member, got[member], want)
		}
	}
	if title, there := got["title"]; title != nil || !there {
		t.Errorf("the incident of an endpoint has the title %v", title)
	}
	again := "/api/v1/notices/" + fmt.Sprint(got["notice"]) + "/resend"
	woken := locked(r, func() int { return r.woken })
	r.ask("POST", again, "").want(http.StatusNoContent)
	if locked(r, func() int { return r.woken }) != woken+1 {
		t.Error("the dispatcher was not woken")
	}
	r.ask("POST", again, "").want(http.StatusConflict).mistakes()
	r.ask("POST", "/api/v1/notices/ntc_not_there/resend", "").want(http.StatusNotFound)
	r.get("/api/v1/channels/ch_not_there/deliveries").want(http.StatusNotFound)
	r.get(path + "?limit=0").want(http.StatusBadRequest).mistakes()
	r.get(path + "?cursor=made+up").want(http.StatusBadRequest).mistakes()
	if id == "" || strings.Contains(r.get(path).body, "hush") {
		t.Error("the log repeats a secret")
	}
}
