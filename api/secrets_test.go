package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// Everything that can hold a secret is filled with one, everything that can be asked is asked, and no answer and no
// line of the log holds any of them.
func TestNoAnswerHoldsASecret(t *testing.T) {
	r := start(t)
	channel, _ := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "https://hooks.slack.example/services/HUSHwebhook"}`).
		want(http.StatusCreated).object()["id"].(string)
	r.ask("POST", "/api/v1/channels", `{"name": "bot", "type": "slack", "bot_token": "xoxb-HUSHbot", "channel": "#a"}`).want(http.StatusCreated)
	slug := r.register(`{"name": "Weather", "url": "https://a.example/v1/0f1e2d3c4b5a69788796a5b4c3d2e1f0?api_key=HUSHquery", "public": true, "channels": ["` + channel + `"],
		"headers": [{"name": "Authorization", "value": "Bearer HUSHheader", "secret": true}]}`)
	r.see(broken())
	for range 2 {
		r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	}
	incidents := r.get("/api/v1/incidents").want(http.StatusOK)
	incident, _ := incidents.object()["items"].([]any)[0].(map[string]any)["id"].(string)

	asked := 0
	look := func(reply reply) {
		asked++
		for _, secret := range []string{"HUSH", "0f1e2d3c4b5a69788796a5b4c3d2e1f0", adminToken, r.session} {
			if strings.Contains(reply.body, secret) {
				t.Errorf("%s answers with the secret %q", reply.what, secret)
			}
			for name, values := range reply.header {
				if strings.Contains(strings.Join(values, " "), secret) {
					t.Errorf("%s answers with the secret %q in %s", reply.what, secret, name)
				}
			}
		}
	}
	r.login()
	for _, route := range r.api.RoutesForTest() {
		if route.Method != http.MethodGet {
			continue
		}
		for _, id := range []string{channel, incident} {
			path := strings.NewReplacer(":slug", slug, ":id", id, "*", "app.css").Replace(route.Path)
			look(r.get(path))
			look(r.get(path, r.loggedIn()))
		}
	}
	bad := `{"name": "Weather", "url": "ftp://a.example/?api_key=HUSHquery", "headers": [{"name": "a b", "value": "HUSH\r\n"}], "HUSH": "HUSH", "confirm": "HUSH"}`
	bad = strings.Replace(bad, `"HUSH": "HUSH", `, "", 1)
	look(r.ask("POST", "/api/v1/endpoints", bad).want(http.StatusUnprocessableEntity))
	look(r.ask("PATCH", "/api/v1/endpoints/"+slug, bad).want(http.StatusUnprocessableEntity))
	look(r.ask("POST", "/api/v1/check", `{"url": "https://HUSH@a.example/"}`).want(http.StatusUnprocessableEntity))
	look(r.ask("PATCH", "/api/v1/channels/"+channel, `{"webhook_url": "ftp://HUSH"}`).want(http.StatusUnprocessableEntity))
	look(r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"name": "Weather 2"}`).want(http.StatusOK))
	look(r.ask("PATCH", "/api/v1/channels/"+channel, `{"name": "ops 2"}`).want(http.StatusOK))
	if asked < 60 {
		t.Errorf("only %d answers were looked at", asked)
	}
	if log := r.logged(); strings.Contains(log, "HUSH") || strings.Contains(log, r.session) {
		t.Errorf("the log holds a secret")
	}
}

// What the public is told of an endpoint is its name, its slug, its status and times.
func TestThePublicLearnsNoReasons(t *testing.T) {
	r := start(t)
	slug := r.outage("Weather", true)
	r.outage("Hidden", false)
	paths := []string{
		"/api/v1/status", "/api/v2/summary.json", "/api/v2/status.json", "/api/v2/components.json", "/api/v2/incidents.json",
		"/status/feed.atom", "/status", "/status/" + slug, "/badge/" + slug + "/status.svg", "/badge/" + slug + "/uptime.json", "/metrics",
	}
	for _, path := range paths {
		body := r.get(path, nobody).want(http.StatusOK).body
		for _, private := range []string{"rpc_error", "32603", "Internal error", "db-7", "internal-host", "tools/list", "Hidden", "hidden\"", "2025-11-25"} {
			if strings.Contains(body, private) {
				t.Errorf("%s tells the public %q:\n%s", path, private, body)
			}
		}
	}
	r.get("/status/hidden", nobody).want(http.StatusNotFound)
}
