package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func TestMoreSettingsAreKeptShownAndTakenAway(t *testing.T) {
	s := newSite(t)
	s.setUp()
	certificate, _ := pair(t)
	typed := with(endpointForm("save", "https://rpc.example"), "name", "Node", "kind", "jsonrpc", "method", "health",
		"expect_path", "$.status", "expect_equals", `"ok"`, "expect_cel", "status == 200", "tls_ca", certificate, "tls_insecure", "yes",
		"oauth_id", "me", "oauth_secret", "s3cret", "oauth_token_url", "https://auth.example/token", "contract_notices", "yes")
	s.mustRegister(typed)
	kept := func() store.Endpoint {
		t.Helper()
		o, err := s.store.Endpoint(t.Context(), "node")
		if err != nil {
			t.Fatal(err)
		}
		return o.Endpoint
	}
	want := probe.Options{
		Expect: probe.Expect{Path: "$.status", Equals: json.RawMessage(`"ok"`), CEL: "status == 200"},
		TLS:    probe.TLS{CA: strings.TrimSpace(certificate), Insecure: true},
		OAuth:  &probe.OAuth{ClientID: "me", ClientSecret: "s3cret", TokenURL: "https://auth.example/token"},
	}
	if diff := cmp.Diff(want, kept().Options); diff != "" || !kept().ContractNotices {
		t.Fatalf("kept (-want +got), notices %v:\n%s", kept().ContractNotices, diff)
	}

	page := s.get("/endpoints/node/edit")
	if strings.Contains(page.body, "s3cret") || !strings.Contains(page.body, `id="f-more" open`) {
		t.Errorf("the form shows the client secret, or hides what is set")
	}
	for name, value := range map[string]string{
		"expect_path": "$.status", "expect_equals": `"ok"`, "expect_cel": "status == 200", "oauth_id": "me", "oauth_secret": "",
	} {
		if got := page.field(name); got != value {
			t.Errorf("field %s holds %q, want %q", name, got, value)
		}
	}
	if got := s.post("/endpoints/node/edit", with(typed, "oauth_secret", "", "tls_insecure", "")); got.status != http.StatusSeeOther {
		t.Fatalf("saved as it was: got %d: %s", got.status, got.text)
	}
	want.TLS.Insecure = false
	if diff := cmp.Diff(want, kept().Options); diff != "" {
		t.Errorf("after saving what is shown (-want +got):\n%s", diff)
	}
	bare := with(endpointForm("save", "https://rpc.example"), "name", "Node", "kind", "jsonrpc", "method", "health")
	if got := s.post("/endpoints/node/edit", bare); got.status != http.StatusSeeOther {
		t.Fatalf("with nothing of it: got %d: %s", got.status, got.text)
	}
	if got := kept(); !cmp.Equal(got.Options, probe.Options{}) || got.ContractNotices {
		t.Errorf("what was taken away is still there: %+v", got.Options)
	}
}

func TestMistakesInMoreSettingsStandBesideTheirFields(t *testing.T) {
	s := newSite(t)
	s.setUp()
	typed := with(endpointForm("save", "https://rpc.example"), "kind", "mcp", "expect_equals", "ok", "canary_arguments", "{",
		"canary_tool", "ping", "oauth_id", "me")
	got := s.post("/endpoints/new", typed)
	if got.status != http.StatusUnprocessableEntity {
		t.Fatalf("got %d: %s", got.status, got.text)
	}
	for _, id := range []string{"f-request-expect-equals", "f-canary-arguments"} {
		if !strings.Contains(got.body, `href="#`+id+`"`) || !strings.Contains(got.body, `id="`+id+`"`) {
			t.Errorf("no mistake leads to %s: %s", id, got.text)
		}
	}
	if got.field("canary_arguments") != "{" || got.field("expect_equals") != "ok" || !strings.Contains(got.body, `id="f-more" open`) {
		t.Error("what was typed is lost, or hidden")
	}
}

func TestACommandMayBeRenamedAndPausedByItsForm(t *testing.T) {
	s := newSite(t)
	s.setUp()
	e := store.NewEndpoint()
	e.Kind = probe.KindMCP
	weatherServer(&e)
	e.Options.Canary = &probe.Canary{Tool: "ping", Arguments: json.RawMessage(`{"a":"<&>"}`)}
	if _, err := s.store.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	page := s.get("/endpoints/npx/edit")
	if !strings.Contains(page.text, "Only the person who runs this service") {
		t.Errorf("the form does not say who may change the command: %s", page.text)
	}
	typed := with(endpointForm("save", ""), "name", "Local", "kind", "mcp", "canary_tool", page.field("canary_tool"),
		"canary_arguments", page.field("canary_arguments"), "schedule", "@every 120s")
	typed.Del("url")
	if got := s.post("/endpoints/npx/edit", typed); got.status != http.StatusSeeOther {
		t.Fatalf("renamed: got %d: %s", got.status, got.text)
	}
	o, err := s.store.Endpoint(t.Context(), "npx")
	if err != nil || o.Name != "Local" || !cmp.Equal(o.Command, e.Command) || !cmp.Equal(o.Options, e.Options) {
		t.Errorf("kept %+v, %v", o.Endpoint, err)
	}
	got := s.post("/endpoints/npx/edit", with(typed, "canary_tool", "shell"))
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text, "only the person who runs the service") {
		t.Errorf("another canary: got %d: %s", got.status, got.text)
	}
	if got := s.post("/endpoints/npx/edit", with(typed, "canary_tool", "shell", "action", "test")); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a test of another canary: got %d: %s", got.status, got.text)
	}
}

func TestThePagesOfAnEndpointShowItsContractEventsAndTranscripts(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather", "public", "yes"))
	see := func(tools string) {
		t.Helper()
		r := good()
		r.Verdict, r.Failure = probe.Degraded, &probe.Failure{Step: "tools/list", Class: probe.ClassSlow}
		r.Contract = &probe.Contract{Key: "legacy", Hash: "sha256:" + tools, Tools: []byte(tools)}
		r.Transcript = []probe.Message{{Step: "tools/list", At: time.Millisecond, Head: "HTTP/1.1 200 OK", Body: "<b>word for word</b>"}}
		s.answer(r)
		if got := s.post("/endpoints/weather", map[string][]string{"action": {"check"}}); got.status != http.StatusSeeOther {
			t.Fatalf("check: got %d: %s", got.status, got.text)
		}
	}
	see(`[{"inputSchema":{"type":"object"},"name":"forecast"},{"inputSchema":{"type":"object"},"name":"radar"}]`)
	see(`[{"inputSchema":{"type":"object"},"name":"forecast"}]`)
	see(`[{"inputSchema":{"type":"object"},"name":"forecast"}]`)

	page := s.get("/endpoints/weather")
	for _, words := range []string{"1 tool since", "What changed then:", "radar", "The tool list changed (1 breaking)", "forecast"} {
		if !strings.Contains(page.text, words) {
			t.Errorf("the page does not say %q: %s", words, page.text)
		}
	}
	check := s.get(page.link("/endpoints/weather/checks/"))
	if !strings.Contains(check.body, "&lt;b&gt;word for word&lt;/b&gt;") || !strings.Contains(check.text, "1 message, secrets cut out") {
		t.Errorf("the page of the check does not show what was said: %s", check.text)
	}
	for _, path := range []string{"/status", "/status/weather"} {
		if got := s.get(path); strings.Contains(got.body, "radar") || strings.Contains(got.body, "tool list") || strings.Contains(got.body, "word for word") {
			t.Errorf("%s shows what is not for everybody", path)
		}
	}
}
