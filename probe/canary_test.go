package probe_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

const readOnlyTool = `{"name":"weather","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`

func TestCanary(t *testing.T) {
	up, degraded := probe.Up, probe.Degraded
	modern, legacy := probe.EraModern, probe.EraLegacy
	faults := func(f ...probetest.Fault) []probetest.Fault {
		return append([]probetest.Fault{probetest.ToolList(readOnlyTool)}, f...)
	}
	offers := func(tools ...string) []probetest.Fault {
		return []probetest.Fault{probetest.ToolList(tools...), probetest.ToolResult(`{"content":[]}`)}
	}
	fine := probetest.ToolResult(`{"content":[{"type":"text","text":"sunny"}],"structuredContent":{"temperature":21}}`)
	const called = modernSteps + " tools/call"
	for name, tc := range map[string]struct {
		faults []probetest.Fault
		era    probe.Era
		expect probe.Expect
		want   want
	}{
		"answers, modern": {faults(fine), "", probe.Expect{}, want{verdict: up, era: modern, steps: called}},
		"answers, legacy": {faults(fine, probetest.LegacyOnly()), legacy, probe.Expect{}, want{verdict: up, era: legacy, steps: "initialize initialized tools/list tools/call close"}},
		"answers as expected": {faults(fine), "", probe.Expect{Path: "$.structuredContent.temperature", Min: json.RawMessage(`-50`), Max: json.RawMessage(`50`)},
			want{verdict: up, era: modern, steps: called}},
		"answers something else": {faults(fine), "", probe.Expect{Path: "$.structuredContent.temperature", Max: json.RawMessage(`20`)},
			want{verdict: degraded, step: "tools/call", class: probe.ClassCanaryFailed, message: "21", era: modern, steps: called + "!canary_failed"}},
		"fails in its own words": {faults(probetest.ToolResult(`{"isError":true,"content":[{"type":"image","data":"x"},{"type":"text","text":"station"},{"type":"text","text":"unreachable"}]}`)), "", probe.Expect{},
			want{verdict: degraded, step: "tools/call", class: probe.ClassToolError, message: "station unreachable", era: modern, steps: called + "!tool_error"}},
		"fails without a word": {faults(probetest.ToolResult(`{"isError":true}`)), "", probe.Expect{},
			want{verdict: degraded, step: "tools/call", class: probe.ClassToolError, message: "without a word", era: modern, steps: called + "!tool_error"}},
		"asks for input": {faults(probetest.ToolResult(`{"resultType":"input_required","inputRequests":{}}`)), "", probe.Expect{Type: "null"},
			want{verdict: up, era: modern, steps: called, warnings: []string{"tools/call canary_failed"}}},
		"answers with something that nobody knows": {faults(probetest.ToolResult(`{"resultType":"later"}`)), "", probe.Expect{},
			want{verdict: degraded, step: "tools/call", class: probe.ClassCanaryFailed, message: `the unknown type "later"`, era: modern, steps: called + "!canary_failed"}},
		"an error": {faults(probetest.RPCErrorAt("tools/call", 200, -32602, "no such city")), "", probe.Expect{},
			want{verdict: degraded, step: "tools/call", class: probe.ClassCanaryFailed, code: -32602, message: "no such city", era: modern, steps: called + "!canary_failed"}},
		"an error that speaks of sessions is no lost session": {faults(probetest.LegacyOnly(), probetest.RPCErrorAt("tools/call", 200, -32000, "unknown session argument")), legacy, probe.Expect{},
			want{verdict: degraded, step: "tools/call", class: probe.ClassCanaryFailed, code: -32000, era: legacy, steps: "initialize initialized tools/list tools/call!canary_failed close"}},
		"a session lost is begun again": {faults(fine, probetest.LegacyOnly(), probetest.Once(probetest.RPCErrorAt("tools/call", 404, -32001, "Session not found"))), legacy, probe.Expect{},
			want{verdict: up, era: legacy, steps: "initialize initialized tools/list tools/call!session_lost initialize initialized tools/list tools/call close", warnings: []string{"tools/call session_lost"}, sessions: 1}},
		"a gateway in trouble": {faults(probetest.StatusAt("tools/call", 502, "text/plain", "bad gateway")), "", probe.Expect{},
			want{verdict: degraded, step: "tools/call", class: probe.ClassCanaryFailed, code: 502, message: "bad gateway", era: modern, steps: called + "!canary_failed"}},
		"no answer in time": {faults(probetest.HangAt("tools/call")), "", probe.Expect{},
			want{verdict: degraded, step: "tools/call", class: probe.ClassCanaryFailed, message: "no first byte", era: modern, steps: called + "!canary_failed"}},
		"wants credentials for calls only": {faults(probetest.StatusAt("tools/call", 401, "application/json", `{"error":"sign in"}`), probetest.HeaderAt("tools/call", "WWW-Authenticate", "Bearer")), "", probe.Expect{},
			want{verdict: probe.Gated, step: "tools/call", class: probe.ClassAuthRequired, code: 401, message: "sign in", era: modern, steps: called + "!auth_required"}},
		"is rate limited": {faults(probetest.StatusAt("tools/call", 429, "text/plain", "slow down")), "", probe.Expect{},
			want{verdict: up, era: modern, steps: called + "!rate_limited", warnings: []string{"tools/call rate_limited"}}},

		"no such tool": {offers(`{"name":"other","inputSchema":{"type":"object"}}`), "", probe.Expect{},
			want{verdict: degraded, step: "tools/list", class: probe.ClassCanaryFailed, message: "the canary weather was not called: there is no tool of that name", era: modern, steps: modernSteps + "!canary_failed"}},
		"not in what was read of the list": {[]probetest.Fault{probetest.CursorLoop()}, "", probe.Expect{},
			want{verdict: degraded, step: "tools/list", class: probe.ClassCursorLoop, era: modern, steps: modernSteps + " tools/list!cursor_loop", warnings: []string{"tools/list canary_failed"}}},
		"no tools at all": {[]probetest.Fault{probetest.NoTools()}, "", probe.Expect{},
			want{verdict: degraded, step: "server/discover", class: probe.ClassCanaryFailed, message: "declares no tools", era: modern, steps: "server/discover!canary_failed prompts/list", tools: -1}},
		"does more than read": {offers(`{"name":"weather","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}}`), "", probe.Expect{},
			want{verdict: degraded, step: "tools/list", class: probe.ClassCanaryFailed, message: "readOnlyHint false", era: modern, steps: modernSteps + "!canary_failed"}},
		"may destroy": {offers(`{"name":"weather","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`), "", probe.Expect{},
			want{verdict: degraded, step: "tools/list", class: probe.ClassCanaryFailed, message: "destructiveHint true", era: modern, steps: modernSteps + "!canary_failed"}},
		"says nothing of what it does": {offers(`{"name":"weather","inputSchema":{"type":"object"}}`), "", probe.Expect{}, want{verdict: up, era: modern, steps: called}},
		"cannot be called by clients": {offers(`{"name":"weather","inputSchema":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":""}}}}`), "", probe.Expect{},
			want{verdict: degraded, step: "tools/list", class: probe.ClassSchemaInvalid, message: "weather has an invalid x-mcp-header", era: modern, steps: modernSteps + "!schema_invalid", warnings: []string{"tools/list canary_failed"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, tc.faults...)
			got := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: tc.era, Timeout: 2 * time.Second, Options: probe.Options{
				Canary: &probe.Canary{Tool: "weather", Arguments: json.RawMessage(`{"city":"Oslo"}`), Expect: tc.expect},
			}})
			check(t, got, tc.want)
			if n := s.Sessions(); n != tc.want.sessions {
				t.Errorf("%d sessions left open, want %d", n, tc.want.sessions)
			}
		})
	}
}

func TestCanaryIsCalledAsTheEraWantsIt(t *testing.T) {
	const tool = `{"name":"wetter für alle","inputSchema":{"type":"object","properties":{
		"city":{"type":"string","x-mcp-header":"City"},"unit":{"type":"string","x-mcp-header":"Unit"}}}}`
	for era, headers := range map[probe.Era]string{
		probe.EraModern: "Mcp-Method=tools/call Mcp-Name==?base64?d2V0dGVyIGbDvHIgYWxsZQ==?= Mcp-Param-City==?base64?VHJvbXPDuA==?=",
		probe.EraLegacy: "",
	} {
		s := probetest.MCP(t, probetest.ToolList(tool), probetest.ToolResult(`{"content":[]}`))
		if era == probe.EraLegacy {
			s.SetFaults(probetest.LegacyOnly(), probetest.ToolList(tool), probetest.ToolResult(`{"content":[]}`))
		}
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Options: probe.Options{
			Canary: &probe.Canary{Tool: "wetter für alle", Arguments: json.RawMessage(` {"city":"Tromsø"} `)},
		}})
		if r.Verdict != probe.Up || r.Era != era {
			t.Fatalf("%s: %s %+v", era, r.Verdict, r.Failure)
		}
		for _, request := range s.Requests() {
			if request.Step != "tools/call" {
				continue
			}
			var params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
				Meta      map[string]any  `json:"_meta"`
			}
			if err := json.Unmarshal(request.Params, &params); err != nil || params.Name != "wetter für alle" || string(params.Arguments) != `{"city":"Tromsø"}` {
				t.Errorf("%s: params %s", era, request.Params)
			}
			if (len(params.Meta) > 0) != (era == probe.EraModern) {
				t.Errorf("%s: _meta %v", era, params.Meta)
			}
			if got := mirrored(request.Header); got != headers {
				t.Errorf("%s: headers %s, want %s", era, got, headers)
			}
		}
	}
}

func mirrored(h http.Header) string {
	var lines []string
	for _, name := range []string{"Mcp-Method", "Mcp-Name", "Mcp-Param-City", "Mcp-Param-Unit"} {
		if values, ok := h[name]; ok {
			lines = append(lines, name+"="+strings.Join(values, ","))
		}
	}
	return strings.Join(lines, " ")
}

// The examples are those of the specification, Streamable HTTP of 2026-07-28, "Value Encoding".
func TestArgumentsInHeaders(t *testing.T) {
	const schema = `{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"i"},
		"b":{"type":"boolean","x-mcp-header":"B"},"o":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Deep"}}}}}`
	for arguments, want := range map[string]map[string][]string{
		`{"s":"us-west1"}`:            {"Mcp-Param-S": {"us-west1"}},
		`{"s":"Hello, 世界"}`:           {"Mcp-Param-S": {"=?base64?SGVsbG8sIOS4lueVjA==?="}},
		`{"s":" padded "}`:            {"Mcp-Param-S": {"=?base64?IHBhZGRlZCA=?="}},
		`{"s":"line1\nline2"}`:        {"Mcp-Param-S": {"=?base64?bGluZTEKbGluZTI=?="}},
		`{"s":"=?base64?literal?="}`:  {"Mcp-Param-S": {"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
		`{"s":"us west 1"}`:           {"Mcp-Param-S": {"us west 1"}},
		`{"s":""}`:                    {"Mcp-Param-S": {""}},
		`{"s":null}`:                  {},
		`{}`:                          {},
		`{"i":42.0}`:                  {"Mcp-Param-I": {"42"}},
		`{"i":-7}`:                    {"Mcp-Param-I": {"-7"}},
		`{"b":true}`:                  {"Mcp-Param-B": {"true"}},
		`{"o":{"s":"x"},"s":{"y":1}}`: {"Mcp-Param-Deep": {"x"}},
		`{"o":7}`:                     {},
	} {
		got, refusal := probe.ParamHeaders(schema, arguments)
		if diff := cmp.Diff(want, got); diff != "" || refusal != "" {
			t.Errorf("%s: %s (-want +got):\n%s", arguments, refusal, diff)
		}
	}
}

func TestCanaryProblems(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	for name, tc := range map[string]struct {
		canary *probe.Canary
		want   []string
	}{
		"none":                {nil, nil},
		"a tool will do":      {&probe.Canary{Tool: "weather"}, nil},
		"with arguments":      {&probe.Canary{Tool: "weather", Arguments: json.RawMessage(` {"a":1} `)}, nil},
		"no tool":             {&probe.Canary{}, []string{"canary.tool"}},
		"a long name":         {&probe.Canary{Tool: long}, []string{"canary.tool"}},
		"a list of arguments": {&probe.Canary{Tool: "a", Arguments: json.RawMessage(`[1]`)}, []string{"canary.arguments"}},
		"broken arguments":    {&probe.Canary{Tool: "a", Arguments: json.RawMessage(`{`)}, []string{"canary.arguments"}},
		"too much to ask":     {&probe.Canary{Tool: "a", Arguments: json.RawMessage(`{"a":"` + long + `"}`)}, []string{"canary.arguments"}},
		"a bad expectation":   {&probe.Canary{Tool: "a", Expect: probe.Expect{Regex: "("}}, []string{"canary.expect.regex"}},
	} {
		var fields []string
		for _, p := range tc.canary.Problems() {
			fields = append(fields, p.Field)
		}
		if diff := cmp.Diff(tc.want, fields); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	target := probe.Target{Kind: probe.KindMCP, URL: "https://mcp.example.com/mcp", Options: probe.Options{Canary: &probe.Canary{}}}
	if problems := target.Validate(); len(problems) != 1 || problems[0].Field != "canary.tool" {
		t.Errorf("the problems of a target: %+v", problems)
	}
}
