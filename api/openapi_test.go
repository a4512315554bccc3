package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"gopkg.in/yaml.v3"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// description is what openapi.yaml says, as far as tests look at it.
type description struct {
	OpenAPI    string
	Paths      map[string]map[string]any
	Components map[string]any
}

func readDescription(t *testing.T) description {
	t.Helper()
	data, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := yaml.Unmarshal(data, &d); err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	return d
}

func (d description) schemas() map[string]any {
	schemas, _ := d.Components["schemas"].(map[string]any)
	return schemas
}

func TestEveryRouteIsDescribedAndNothingElse(t *testing.T) {
	d := readDescription(t)
	described := map[string]bool{} // by method and path: whether everybody may call it
	ids := map[any]string{}
	for path, item := range d.Paths {
		for method, operation := range item {
			if method == "parameters" {
				continue
			}
			operation, _ := operation.(map[string]any)
			security, own := operation["security"].([]any)
			name := strings.ToUpper(method) + " " + path
			described[name] = own && len(security) == 0
			if other, twice := ids[operation["operationId"]]; twice || operation["operationId"] == nil {
				t.Errorf("%s has the operationId of %s, or none", name, other)
			}
			ids[operation["operationId"]] = name
			if operation["summary"] == nil || operation["responses"] == nil {
				t.Errorf("%s has no summary or no responses", name)
			}
		}
	}
	for _, route := range start(t).api.RoutesForTest() {
		if route.Page {
			continue
		}
		path := strings.NewReplacer(":slug", "{slug}", ":id", "{id}").Replace(route.Path)
		name := route.Method + " " + path
		everybody, there := described[name]
		if !there {
			t.Errorf("%s is not described", name)
		}
		if everybody != (route.Access == "") {
			t.Errorf("%s is described as open to everybody: %v, want %v", name, everybody, route.Access == "")
		}
		delete(described, name)
	}
	for name := range described {
		t.Errorf("%s is described and does not exist", name)
	}
}

func TestEveryReferenceLeadsSomewhere(t *testing.T) {
	data, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := yaml.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	found := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		case map[string]any:
			for key, inner := range v {
				if ref, ok := inner.(string); ok && key == "$ref" {
					found++
					var at any = whole
					for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
						object, _ := at.(map[string]any)
						at = object[name]
					}
					if at == nil {
						t.Errorf("%s leads nowhere", ref)
					}
				}
				walk(inner)
			}
		}
	}
	walk(whole)
	if found < 100 {
		t.Errorf("only %d references", found)
	}
}

func TestTheWordsOfTheDescriptionAreThoseOfTheProgram(t *testing.T) {
	schemas := readDescription(t).schemas()
	check := func(name string, got any, want []string) {
		t.Helper()
		var words []string
		for _, w := range got.([]any) {
			words = append(words, w.(string))
		}
		slices.Sort(words)
		slices.Sort(want)
		if !slices.Equal(words, want) {
			t.Errorf("%s: described as %v, want %v", name, words, want)
		}
	}
	enum := func(name string) any { return schemas[name].(map[string]any)["enum"] }
	check("Verdict", enum("Verdict"), texts(probe.Verdicts()))
	check("Status", enum("Status"), texts(store.Statuses()))
	check("Kind", enum("Kind"), texts(probe.Kinds()))
	check("Severity", enum("Severity"), texts(store.Severities()))
	check("IncidentKind", enum("IncidentKind"), texts(api.IncidentKindsForTest))
	attempt, _ := schemas["Attempt"].(map[string]any)["properties"].(map[string]any)["outcome"].(map[string]any)
	check("outcome", attempt["enum"], []string{store.OutcomeSent, store.OutcomePassed, store.OutcomeRetry, store.OutcomeFailed})
	var types []string
	for _, spec := range store.ChannelSpecs() {
		types = append(types, string(spec.Type))
	}
	check("ChannelType", enum("ChannelType"), types)
	for _, class := range enum("Class").([]any) {
		if class := probe.Class(class.(string)); class.Verdict() == probe.Unknown && !slices.Contains([]probe.Class{
			probe.ClassProbeError, probe.ClassEgressBlocked, probe.ClassProbeRejected, probe.ClassRateLimited, probe.ClassBlocked,
			probe.ClassAuthServer, probe.ClassLocationOffline,
		}, class) {
			t.Errorf("class %q is described and does not exist", class)
		}
	}
}

func texts[T ~string](words []T) []string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}

// validator checks answers against the schemas of the description.
type validator struct {
	t        *testing.T
	schemas  map[string]any
	resolved map[string]*jsonschema.Resolved // by their text: many answers are of one shape, and resolving takes longest
}

func (v validator) check(reply reply, schema map[string]any) {
	v.t.Helper()
	var instance any
	reply.json(&instance)
	if err := v.resolve(reply.what, schema).Validate(instance); err != nil {
		v.t.Errorf("%s does not answer as described: %v\n%s", reply.what, err, reply.body)
	}
}

func (v validator) resolve(what string, schema map[string]any) *jsonschema.Resolved {
	v.t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		v.t.Fatal(err)
	}
	if known := v.resolved[string(text)]; known != nil {
		return known
	}
	root := map[string]any{"$defs": v.schemas}
	maps.Copy(root, schema)
	data, err := json.Marshal(root)
	if err != nil {
		v.t.Fatal(err)
	}
	data = []byte(strings.ReplaceAll(string(data), "#/components/schemas/", "#/$defs/"))
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		v.t.Fatalf("schema for %s: %v", what, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		v.t.Fatalf("schema for %s: %v", what, err)
	}
	v.resolved[string(text)] = resolved
	return resolved
}

// A whole story is told over the API, and every answer is held against its description.
func TestAnswersAreAsDescribed(t *testing.T) {
	r := start(t, withObjectives, withDomains("acme.example"), func(c *api.Config) { c.PreviewTemplate = func(text, _ string) (string, error) { return text, nil } })
	d := readDescription(t)
	v := validator{t, d.schemas(), map[string]*jsonschema.Resolved{}}
	checked := map[string]bool{}
	ask := func(method, path, template, body string, status int, options ...option) reply {
		t.Helper()
		reply := r.ask(method, path, body, options...).want(status)
		operation, _ := d.Paths[template][strings.ToLower(method)].(map[string]any)
		schema := d.schemaOf(operation, status)
		if schema == nil {
			t.Fatalf("%s %s: no schema for status %d", method, template, status)
		}
		v.check(reply, schema)
		checked[method+" "+template] = true
		return reply
	}
	const endpoints, one = "/api/v1/endpoints", "/api/v1/endpoints/{slug}"
	channel := ask("POST", "/api/v1/channels", "/api/v1/channels", `{"name": "ops", "type": "slack", "bot_token": "xoxb-1", "channel": "#a", "api_url": "https://slack.example/api/"}`, 201)
	id, _ := channel.object()["id"].(string)
	ask("POST", endpoints, endpoints, `{"url": "https://a.example", "name": "A", "public": true, "tags": ["x"], "channels": ["`+id+`"],
		"kind": "jsonrpc", "request": {"method": "ping", "params": [1, {"a": null}]}, "headers": [{"name": "X-A", "value": "b", "secret": false}, {"name": "X-B", "value": "c"}],
		"tls": {"insecure": true, "expiry_warning": "24h"}, "oauth": {"client_id": "me", "client_secret": "x", "scopes": ["y"]},
		"ip_version": "4", "http_version": "1.1", "contract_notices": true, "locations": ["default", "fra"], "quorum": 2,
		"notify": ["degraded", "down"], "unknown_after": "1h", "remind_every": "30m", "flap_changes": 4,
		"escalation": [{"after": "10m", "channels": ["`+id+`"]}],
		"objectives": [{"name": "availability", "target": 99.9}, {"name": "fast", "target": 95, "days": 7, "under": "800ms", "notify": false}]}`, 201)
	ask("POST", endpoints, endpoints, `{"url": "https://behind.example", "name": "Behind", "depends_on": ["a"]}`, 201)
	ask("GET", endpoints+"/a/objectives", one+"/objectives", "", 200)
	ask("GET", endpoints+"/a", one, "", 200)
	ask("GET", endpoints+"/a/uptime", one+"/uptime", "", 200)
	ask("POST", "/api/v1/check", "/api/v1/check", `{"url": "https://a.example"}`, 200)
	ask("POST", endpoints+"/a/check", one+"/check", "", 200)
	r.see(broken())
	ask("POST", endpoints+"/a/check", one+"/check", "", 200)
	ask("POST", endpoints+"/a/check", one+"/check", "", 200)
	list := func(template string) map[string]any {
		operation, _ := d.Paths[template]["get"].(map[string]any)
		return d.schemaOf(operation, 200)
	}
	v.check(r.get("/api/v1/incidents"), list("/api/v1/incidents"))
	for _, template := range []string{"/api/v1/status", "/api/v2/summary.json", "/api/v2/status.json", "/api/v2/components.json", "/api/v2/incidents.json"} {
		ask("GET", template, template, "", 200)
	}
	r.see(healthy())
	ask("POST", endpoints+"/a/check", one+"/check", "", 200)
	for range 3 {
		result := healthy()
		result.Verdict = probe.Degraded
		result.Contract = &probe.Contract{Key: "modern", Hash: "sha256:1", Tools: []byte(`[{"name":"forecast"}]`)}
		result.Transcript = []probe.Message{{Step: "initialize", Sent: true, Head: "POST / HTTP/1.1", Body: "{}", Clipped: true}}
		if checked[one+"/check"] {
			result.Contract.Hash, result.Contract.Tools = "sha256:2", []byte(`[]`)
		}
		checked[one+"/check"] = true
		r.see(result)
		ask("POST", endpoints+"/a/check", one+"/check", "", 200)
	}
	listed := ask("GET", endpoints+"/a/checks?limit=1", one+"/checks", "", 200)
	ask("GET", endpoints+"/a/checks/"+listed.first("id"), one+"/checks/{id}", "", 200)
	kept := ask("GET", endpoints+"/a/contracts", one+"/contracts", "", 200)
	ask("GET", endpoints+"/a/contracts/"+kept.first("id"), one+"/contracts/{id}", "", 200)
	if events := ask("GET", endpoints+"/a/events", one+"/events", "", 200); events.first("kind") != "contract_changed" {
		t.Errorf("events: %s", events.body)
	}
	ask("PATCH", endpoints+"/a", one, `{"paused": true}`, 200)
	ask("GET", endpoints+"?limit=1", endpoints, "", 200)
	ask("GET", endpoints+"/a/checks?limit=1", one+"/checks", "", 200)
	ask("GET", endpoints+"/a/uptime?window=1h", one+"/uptime", "", 200)
	incidents := ask("GET", "/api/v1/incidents", "/api/v1/incidents", "", 200)
	incident, _ := incidents.object()["items"].([]any)[0].(map[string]any)["id"].(string)
	ask("GET", "/api/v1/incidents/"+incident, "/api/v1/incidents/{id}", "", 200)
	ask("PATCH", "/api/v1/channels/"+id, "/api/v1/channels/{id}", `{"name": "ops 2"}`, 200)
	ask("GET", "/api/v1/channels", "/api/v1/channels", "", 200)
	ask("POST", "/api/v1/channels/preview", "/api/v1/channels/preview", `{"type": "email", "kind": "resolved", "template": "x"}`, 200)
	announced := ask("POST", "/api/v1/incidents", "/api/v1/incidents", `{"title": "Slow", "text": "We look.", "endpoints": ["a"]}`, 201)
	const acts = "/api/v1/incidents/{id}/acts"
	about := strings.Replace(acts, "{id}", announced.object()["id"].(string), 1)
	ask("POST", about, acts, `{"act": "acknowledge"}`, 200)
	ask("POST", about, acts, `{"act": "snooze", "for": "1h"}`, 200)
	ask("POST", about, acts, `{"act": "comment", "text": "Soon.", "public": true}`, 200)
	ask("POST", about, acts, `{"act": "resolve"}`, 200)
	ask("POST", about, acts, `{"act": "resolve"}`, 409)
	const maintenance = "/api/v1/maintenance"
	planned := ask("POST", maintenance, maintenance, `{"title": "Upgrade", "starts_at": "2026-01-01T00:00:00Z", "schedule": "0 3 * * 0",
		"duration": "30m", "endpoints": ["a"], "tags": ["x"], "public": true}`, 201)
	plan := maintenance + "/" + planned.object()["id"].(string)
	ask("GET", plan, maintenance+"/{id}", "", 200)
	ask("PATCH", plan, maintenance+"/{id}", `{"schedule": null, "duration": null, "starts_at": "`+at(-time.Hour)+`", "ends_at": "`+at(time.Hour)+`"}`, 200)
	ask("GET", maintenance, maintenance, "", 200)
	ask("GET", "/api/v1/status", "/api/v1/status", "", 200)
	const subscriptions = "/api/v1/subscriptions"
	ask("POST", subscriptions, subscriptions, `{"type": "email", "to": "ada@example.com", "tags": ["x"], "severities": ["down"], "quiet": {"from": "22:00", "to": "07:00"}}`, 201, r.loggedIn())
	ask("POST", subscriptions, subscriptions, `{"type": "slack", "webhook_url": "https://hooks.slack.example/1", "all": true}`, 201, r.loggedIn())
	ask("GET", subscriptions, subscriptions, "", 200)
	ask("GET", subscriptions, subscriptions, "", 200, r.loggedIn())
	const members, tokens = "/api/v1/members", "/api/v1/tokens"
	ask("GET", members, members, "", 200)
	r.member("bob", store.RoleViewer)
	ask("PATCH", members+"/"+r.user("bob").ID, members+"/{id}", `{"role": "editor", "disabled": true}`, 200)
	const invitations = "/api/v1/invitations"
	ask("POST", invitations, invitations, `{"name": "Eve", "role": "editor"}`, 201)
	ask("POST", invitations, invitations, `{"member": "`+r.user("bob").ID+`"}`, 201)
	ask("GET", invitations, invitations, "", 200)
	ask("POST", tokens, tokens, `{"name": "ci", "role": "editor", "scopes": ["checks"], "expires_at": "`+at(time.Hour)+`"}`, 201)
	ask("GET", tokens, tokens, "", 200)
	ask("GET", "/api/v1/audit?noun=member", "/api/v1/audit", "", 200)
	ask("GET", "/api/v1/audit", "/api/v1/audit", "", 200)
	r.deliver(false)
	ask("GET", "/api/v1/channels/"+id+"/deliveries", "/api/v1/channels/{id}/deliveries", "", 200)
	for _, kind := range badgeKinds {
		ask("GET", "/badge/a/"+kind+".json", "/badge/{slug}/"+kind+".json", "", 200)
	}
	ask("GET", "/api/v2/incidents.json", "/api/v2/incidents.json", "", 200)
	const pages, page = "/api/v1/pages", "/api/v1/pages/{slug}"
	ask("POST", pages, pages, `{"slug": "acme", "name": "ACME", "sections": [{"title": "All", "endpoints": ["a"], "tags": ["prod"]}]}`, 201)
	ask("POST", pages, pages, `{"slug": "acme", "name": "ACME"}`, 409)
	ask("POST", pages, pages, `{"name": ""}`, 422)
	ask("PATCH", pages+"/acme", page, `{"accent": "#17604f", "text": null}`, 200)
	ask("POST", pages+"/acme/check", page+"/check", "", 409)
	ask("PATCH", pages+"/acme", page, `{"domain": "acme.example"}`, 200)
	ask("POST", pages+"/acme/check", page+"/check", "", 200)
	ask("GET", pages+"/acme", page, "", 200)
	ask("GET", pages, pages, "", 200)
	for _, part := range []string{"summary", "status", "components", "incidents"} {
		ask("GET", "/p/acme/api/v2/"+part+".json", "/p/{slug}/api/v2/"+part+".json", "", 200)
	}
	ask("GET", "/healthz", "/healthz", "", 200)
	ask("GET", "/readyz", "/readyz", "", 200)
	locked(r, func() any { r.backlog = 2; return nil })
	ask("GET", "/readyz", "/readyz", "", 503)

	ask("POST", endpoints, endpoints, `{"timeout": 1}`, 422)
	ask("POST", endpoints, endpoints, `{"url": "https://b.example", "name": "a"}`, 409)
	ask("GET", endpoints+"?limit=x", endpoints, "", 400)
	ask("GET", endpoints+"/b", one, "", 404)
	v.check(r.get("/api/v1/endpoints", nobody).want(http.StatusUnauthorized), map[string]any{"$ref": "#/components/schemas/Problem"})

	for _, route := range r.api.RoutesForTest() {
		path := strings.NewReplacer(":slug", "{slug}", ":id", "{id}").Replace(route.Path)
		operation, _ := d.Paths[path][strings.ToLower(route.Method)].(map[string]any)
		if d.schemaOf(operation, 200) != nil && !checked[route.Method+" "+path] {
			t.Errorf("no answer of %s %s was looked at", route.Method, path)
		}
	}
}

// first returns a text member of the first item of a list.
func (a reply) first(member string) string {
	a.t.Helper()
	items, _ := a.object()["items"].([]any)
	if len(items) == 0 {
		a.t.Fatalf("%s lists nothing", a.what)
	}
	item, _ := items[0].(map[string]any)
	text, _ := item[member].(string)
	return text
}

// schemaOf returns the schema of the JSON that an operation answers with; nil when it answers with something else.
func (d description) schemaOf(operation map[string]any, status int) map[string]any {
	responses, _ := operation["responses"].(map[string]any)
	response, _ := responses[strconv.Itoa(status)].(map[string]any)
	if ref, ok := response["$ref"].(string); ok {
		shared, _ := d.Components["responses"].(map[string]any)
		response, _ = shared[strings.TrimPrefix(ref, "#/components/responses/")].(map[string]any)
	}
	content, _ := response["content"].(map[string]any)
	for _, kind := range []string{"application/json", "application/problem+json"} {
		if media, ok := content[kind].(map[string]any); ok {
			schema, _ := media["schema"].(map[string]any)
			return schema
		}
	}
	return nil
}

func TestTheDescriptionIsServed(t *testing.T) {
	want, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := start(t).get("/api/v1/openapi.yaml", nobody).want(http.StatusOK).body; got != string(want) {
		t.Errorf("%d bytes served, want the %d of the file", len(got), len(want))
	}
}

func TestTheSchemaOfWebhooksIsPublished(t *testing.T) {
	schema := `{"$schema": "https://json-schema.org/draft/2020-12/schema"}`
	got := start(t, func(c *api.Config) { c.WebhookSchema = []byte(schema) }).get("/webhook.schema.json", nobody).want(http.StatusOK)
	if got.body != schema || got.header.Get("Content-Type") != "application/schema+json" || got.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("the schema comes as %v %s", got.header, got.body)
	}
	start(t).get("/webhook.schema.json", nobody).want(http.StatusNotFound)
}
