package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
)

// Everything that can hold a secret is filled with one, everything that can be asked is asked, and no answer and no
// line of the log holds any of them.
func TestNoAnswerHoldsASecret(t *testing.T) {
	r := start(t)
	channel, _ := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "https://hooks.slack.example/services/HUSHwebhook"}`).
		want(http.StatusCreated).object()["id"].(string)
	r.ask("POST", "/api/v1/channels", `{"name": "bot", "type": "slack", "bot_token": "xoxb-HUSHbot", "channel": "#a"}`).want(http.StatusCreated)
	for _, sub := range []string{`"type": "webhook", "webhook_url": "https://a.example/HUSHsub"`, `"type": "slack", "bot_token": "xoxb-HUSHsub", "channel": "#a"`} {
		r.ask("POST", "/api/v1/subscriptions", `{"all": true, `+sub+`}`, r.loggedIn()).want(http.StatusCreated)
	}
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
	r.api.EndStreams() // which answer for minutes
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
	r.outage("Concealed", false)
	paths := []string{
		"/api/v1/status", "/api/v2/summary.json", "/api/v2/status.json", "/api/v2/components.json", "/api/v2/incidents.json",
		"/status/feed.atom", "/status", "/status/" + slug, "/badge/" + slug + "/status.svg", "/badge/" + slug + "/uptime.json", "/metrics",
	}
	for _, path := range paths {
		body := r.get(path, nobody).want(http.StatusOK).body
		for _, private := range []string{"rpc_error", "32603", "Internal error", "db-7", "internal-host", "tools/list", "Concealed", "concealed", "2025-11-25"} {
			if strings.Contains(body, private) {
				t.Errorf("%s tells the public %q:\n%s", path, private, body)
			}
		}
	}
	r.get("/status/hidden", nobody).want(http.StatusNotFound)
}

// A token that leaked may change an endpoint. It must not thereby read the credentials that were stored before.
func TestAKeptSecretGoesToNoOtherAddress(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example/mcp", "name": "Weather",
		"headers": [{"name": "X-Team", "value": "ops", "secret": false}, {"name": "Authorization", "value": "Bearer HUSH"}]}`)
	const all = `[{"name": "X-Team", "value": "ops", "secret": false}, {"name": "Authorization"}]`
	for url, moves := range map[string]bool{
		"https://a.example/mcp":              false,
		"https://a.example/other?network=a":  false,
		"https://A.example:443/mcp":          false,
		"http://a.example/mcp":               true,
		"https://a.example:8443/mcp":         true,
		"https://evil.example/mcp":           true,
		"https://a.example.evil.example/mcp": true,
	} {
		for body, field := range map[string]string{
			fmt.Sprintf(`{"url": %q}`, url):                     "headers",
			fmt.Sprintf(`{"url": %q, "headers": %s}`, url, all): "headers[1].value",
		} {
			doc := strings.Replace(body, "{", `{"slug": "weather", `, 1)
			if _, err := api.NewRegistrar(r.store, scheduler.Period).Plan(t.Context(), []byte(doc)); (err != nil) != moves {
				t.Errorf("Plan of %s: %v", doc, err)
			}
			got := r.ask("PATCH", "/api/v1/endpoints/"+slug, body)
			if !moves {
				got.want(http.StatusOK)
				continue
			}
			if diff := cmp.Diff([]string{field}, got.want(http.StatusUnprocessableEntity).mistakes()); diff != "" {
				t.Errorf("%s: mistakes named (-want +got):\n%s", body, diff)
			}
			if !strings.Contains(got.body, "because the address changes") {
				t.Errorf("%s: the answer does not say why: %s", body, got.body)
			}
		}
		r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"url": "https://a.example/mcp"}`).want(http.StatusOK)
	}

	moved := `{"url": "https://b.example/mcp", "headers": [{"name": "Authorization", "value": "Bearer other"}]}`
	r.ask("PATCH", "/api/v1/endpoints/"+slug, moved).want(http.StatusOK)
	o, err := r.store.Endpoint(t.Context(), slug)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]probe.Header{{Name: "Authorization", Value: "Bearer other", Secret: true}}, o.Headers); diff != "" || o.URL != "https://b.example/mcp" {
		t.Errorf("moved to %s with headers (-want +got):\n%s", o.URL, diff)
	}
	r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"url": "https://c.example/mcp", "headers": null}`).want(http.StatusOK)
	r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"url": "https://d.example/mcp"}`).want(http.StatusOK)
}

func TestAKeptBotTokenGoesToNoOtherServer(t *testing.T) {
	r := start(t)
	id, _ := r.ask("POST", "/api/v1/channels", `{"name": "bot", "type": "slack", "bot_token": "xoxb-HUSH", "channel": "#a"}`).
		want(http.StatusCreated).object()["id"].(string)
	change := func(body string) reply { return r.ask("PATCH", "/api/v1/channels/"+id, body) }

	for _, server := range []string{"https://evil.example/api/", "http://slack.com/api/"} {
		refused := change(fmt.Sprintf(`{"api_url": %q}`, server)).want(http.StatusUnprocessableEntity)
		if diff := cmp.Diff([]string{"bot_token"}, refused.mistakes()); diff != "" {
			t.Errorf("mistakes named (-want +got):\n%s", diff)
		}
	}
	change(`{"api_url": "https://chat.example/api/", "bot_token": "xoxb-other"}`).want(http.StatusOK)
	change(`{"api_url": "https://chat.example/slack/api/", "channel": "#b"}`).want(http.StatusOK)
	change(`{"api_url": null}`).want(http.StatusUnprocessableEntity)
	change(`{"api_url": null, "bot_token": null, "channel": null, "webhook_url": "https://hooks.example/x"}`).want(http.StatusOK)
}
