package main_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestEverythingCanBeReadWithoutScripts opens each page to which the navigation leads, and those of one endpoint, in a browser that
// runs no scripts: what they are for stands there. A URL that is pasted is tried, and its conversation is seen when it is over.
func TestEverythingCanBeReadWithoutScripts(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	i := setUp(t, "--allow-private", "127.0.0.0/8")
	p := newPerson(browser, t, i.url)
	p.withoutScripts()
	p.logIn()
	p.fill("Paste the URL of one", probetest.MCP(t).URL)
	p.press("Find out what it is")
	p.sees("It answers as it should", "tools/list", "Proposed")
	p.fill("Name", "Weather")
	p.tick("Public")
	p.press("Save")
	slug := newPlace(i)
	read := map[string][]string{
		"/":              {"Needs attention", "Billing", "Down", "The rest", "Weather", "Up"},
		"/incidents":     {"Billing", "Payments are slow"},
		"/maintenance":   {"A newer database"},
		"/channels":      {"ops", "Webhook"},
		"/pages":         {"The built-in page", "Acme"},
		"/subscriptions": {"You have none.", "Subscribe"},
		"/locations":     {"default"},
		"/status":        {"Going on", "Payments are slow", "Weather", "Up", "A newer database", "Be told", "Atom"},
		"/members":       {"ada", "Invite somebody"},
		"/tokens":        {"For a program"},
		"/audit":         {"ada", "Endpoint created: Weather"},
		"/settings":      {"Settings"},
		"/account":       {"Where you are logged in", "Second factor"},
	}
	p.open("/")
	for _, link := range evaluate[[]string](p, `[...document.querySelectorAll("header a[href^='/']")].map(a => a.getAttribute("href"))`) {
		if _, known := read[link]; !known {
			t.Errorf("the navigation leads to %s, of which nobody knows what is to be read there", link)
		}
	}
	for path, words := range map[string][]string{
		"/endpoints/weather":                         {"Answers as it should", "Uptime", "Latency", "tools/list", "3 tools"},
		"/endpoints/weather/edit":                    {"Edit Weather", "Schedule"},
		"/endpoints/weather/badges":                  {"Make a badge", "Markdown"},
		"/endpoints/weather/contracts":               {"Weather"},
		"/endpoints/billing":                         {"Down", "connection refused", "Acknowledge the incident"},
		"/status/weather":                            {"Weather", "Up", "Last 90 days"},
		"/p/acme":                                    {"Acme", "Weather"},
		"/incidents/" + slug:                         {"Billing", "Timeline", "The check that opened it"},
		"/?status=down&q=" + url.QueryEscape("bill"): {"Found", "Billing"},
	} {
		read[path] = words
	}
	for path, words := range read {
		p.open(path)
		p.sees(words...)
	}
	p.leaves()
}

// newPlace puts something on each page, and returns the id of the incident of an endpoint that is down.
func newPlace(i *instance) string {
	i.t.Helper()
	i.call("POST", "/api/v1/endpoints", object{"name": "Billing", "url": "http://127.0.0.1:9/mcp", "confirm": object{"failures": 1}}, 201, nil)
	i.call("POST", "/api/v1/incidents", object{"title": "Payments are slow", "severity": "degraded", "endpoints": []string{"weather"}}, 201, nil)
	i.call("POST", "/api/v1/maintenance", object{
		"title": "A newer database", "starts_at": "2027-01-01T10:00:00Z", "ends_at": "2027-01-01T12:00:00Z", "endpoints": []string{"weather"}, "public": true,
	}, 201, nil)
	i.call("POST", "/api/v1/channels", object{"name": "ops", "type": "webhook", "webhook_url": "http://127.0.0.1:9/x"}, 201, nil)
	i.call("POST", "/api/v1/pages", object{"name": "Acme", "slug": "acme", "sections": []object{{"endpoints": []string{"weather"}}}}, 201, nil)
	i.call("POST", "/api/v1/tokens", object{"name": "For a program", "role": "viewer"}, 201, nil)
	i.await("the endpoints to be what they are", func() bool {
		return i.status("weather") == "up" && i.status("billing") == "down" && len(i.incidents("billing")) > 0
	})
	incidents := slices.DeleteFunc(i.incidents("billing"), func(in object) bool { return in["endpoint"] != "billing" })
	return incidents[0]["id"].(string)
}
