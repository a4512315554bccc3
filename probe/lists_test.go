package probe_test

import (
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestServersWithoutTools(t *testing.T) {
	up, degraded, down := probe.Up, probe.Degraded, probe.Down
	modern, legacy := probe.EraModern, probe.EraLegacy
	type faults = []probetest.Fault
	const unknown = -32601
	prompts := probetest.PromptList(`{"name":"a"}`, `{"name":"b"}`)
	resources := probetest.ResourceList(`{"uri":"file:///a","name":"a"}`)
	for name, tc := range map[string]struct {
		faults             []probetest.Fault
		era                probe.Era
		prompts, resources int // -1 for none
		want               want
	}{
		"prompts only": {faults{probetest.NoTools()}, "", 1, -1, want{verdict: up, era: modern, steps: "server/discover prompts/list", tools: -1}},
		"prompts only, legacy": {faults{probetest.NoTools(), probetest.LegacyOnly()}, legacy, 1, -1,
			want{verdict: up, era: legacy, steps: "initialize initialized prompts/list close", tools: -1}},
		"prompts before resources": {faults{probetest.Declares(`{"prompts":{},"resources":{}}`), prompts, resources}, "", 2, -1,
			want{verdict: up, era: modern, steps: "server/discover prompts/list", tools: -1}},
		"resources only": {faults{probetest.Declares(`{"resources":{}}`), resources}, "", -1, 1,
			want{verdict: up, era: modern, steps: "server/discover resources/list", tools: -1}},
		"an empty list": {faults{probetest.Declares(`{"resources":{}}`), probetest.ResourceList()}, "", -1, 0,
			want{verdict: up, era: modern, steps: "server/discover resources/list", tools: -1}},
		"nothing at all": {faults{probetest.Declares(`{}`)}, "", -1, -1, want{verdict: up, era: modern, steps: "server/discover", tools: -1}},
		"nothing at all, legacy": {faults{probetest.LegacyOnly(), probetest.Declares(`{"logging":{}}`)}, legacy, -1, -1,
			want{verdict: up, era: legacy, steps: "initialize initialized close", tools: -1}},
		"prompts without names": {faults{probetest.Declares(`{"prompts":{}}`), probetest.PromptList(`{}`, `7`, `{"name":"a"}`)}, "", 3, -1,
			want{verdict: degraded, step: "prompts/list", class: probe.ClassSchemaInvalid, message: "2 of 3 prompts are invalid: one has no name", era: modern, steps: "server/discover prompts/list!schema_invalid", tools: -1}},
		"no list": {faults{probetest.Declares(`{"prompts":{}}`), probetest.ResultAt("prompts/list", `{"resultType":"complete","ttlMs":0,"cacheScope":"public"}`)}, "", -1, -1,
			want{verdict: degraded, step: "prompts/list", class: probe.ClassSchemaInvalid, message: "no list of prompts", era: modern, steps: "server/discover prompts/list!schema_invalid", tools: -1}},
		"modern by half": {faults{probetest.Declares(`{"prompts":{}}`), probetest.ResultAt("prompts/list", `{"prompts":[]}`)}, "", 0, -1,
			want{verdict: degraded, step: "prompts/list", class: probe.ClassSchemaInvalid, message: "resultType", era: modern,
				steps: "server/discover prompts/list!schema_invalid initialize close", warnings: []string{"initialize schema_invalid"}, tools: -1}},
		"a list that cannot be had": {faults{probetest.Declares(`{"prompts":{}}`), probetest.RPCErrorAt("prompts/list", 200, -32603, "Internal error")}, "", -1, -1,
			want{verdict: down, step: "prompts/list", class: probe.ClassRPCError, code: -32603, era: modern, steps: "server/discover prompts/list!rpc_error", tools: -1}},

		"declares tools by mistake": {faults{probetest.Declares(`{"tools":{},"prompts":{}}`), probetest.RPCErrorAt("tools/list", 404, unknown, "Method not found"), prompts}, "", 2, -1,
			want{verdict: degraded, step: "tools/list", class: probe.ClassCapabilityMissing, code: unknown, message: "declares tools and does not know tools/list", era: modern,
				steps: "server/discover tools/list!capability_missing prompts/list", tools: -1}},
		"declares tools by mistake, legacy": {faults{probetest.LegacyOnly(), probetest.Declares(`{"tools":{},"resources":{}}`), probetest.RPCErrorAt("tools/list", 200, unknown, "Method not found"), resources}, legacy, -1, 1,
			want{verdict: degraded, step: "tools/list", class: probe.ClassCapabilityMissing, code: unknown, era: legacy,
				steps: "initialize initialized tools/list!capability_missing resources/list close", tools: -1}},
		"declares tools and knows nothing": {faults{probetest.RPCErrorAt("tools/list", 404, unknown, "Method not found")}, "", -1, -1,
			want{verdict: down, step: "tools/list", class: probe.ClassRPCError, code: unknown, era: modern, steps: "server/discover tools/list!rpc_error", tools: -1}},
		"declares all and knows nothing": {faults{probetest.Declares(`{"tools":{},"prompts":{}}`), probetest.RPCErrorAt("tools/list", 404, unknown, "Method not found")}, "", -1, -1,
			want{verdict: down, step: "tools/list", class: probe.ClassRPCError, code: unknown, era: modern, steps: "server/discover tools/list!rpc_error prompts/list!rpc_error", tools: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, tc.faults...)
			got := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: tc.era})
			check(t, got, tc.want)
			if p, r := count(got.Facts.Prompts), count(got.Facts.Resources); p != tc.prompts || r != tc.resources {
				t.Errorf("%d prompts and %d resources, want %d and %d", p, r, tc.prompts, tc.resources)
			}
			if s.Sessions() != 0 {
				t.Errorf("%d sessions left open", s.Sessions())
			}
		})
	}
}

func count(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}
