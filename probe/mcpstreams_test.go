package probe_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// carriers are the ways, other than HTTP, over which an MCP server is asked.
var carriers = map[string]func(t *testing.T, backend *probetest.Server, target probe.Target) probe.Target{
	"websocket": func(t *testing.T, backend *probetest.Server, target probe.Target) probe.Target {
		target.URL = probetest.WebSocket(t, backend).URL
		return target
	},
	"socket": func(t *testing.T, backend *probetest.Server, target probe.Target) probe.Target {
		target.URL = probetest.Socket(t, backend).URL
		return target
	},
	"unix socket": func(t *testing.T, backend *probetest.Server, target probe.Target) probe.Target {
		target.URL = probetest.UnixSocket(t, backend).URL
		return target
	},
	"process": func(t *testing.T, backend *probetest.Server, target probe.Target) probe.Target {
		target.Command = quickEnd(probetest.Process(t, backend))
		return target
	},
}

// quickEnd is command without the second that a program built with the race detector sleeps before it ends.
func quickEnd(command *probetest.Command) *probe.Command {
	return &probe.Command{Args: command.Args, Env: []probe.Header{{Name: "GORACE", Value: "atexit_sleep_ms=0"}}}
}

// streamProber may start processes and use the sockets of this machine.
func streamProber() *probe.Prober {
	p := prober()
	p.Local = true
	return p
}

// Over a stream there is no status, no session to close and no other transport to fall back to.
func TestMCPOverStreams(t *testing.T) {
	t.Parallel()
	const (
		modern, legacy = probe.EraModern, probe.EraLegacy
		fresh          = "server/discover!rpc_error " + openSteps
	)
	for name, tc := range map[string]struct {
		faults []probetest.Fault
		era    probe.Era
		within time.Duration
		want   want
	}{
		"modern":                 {nil, "", 0, wellModern},
		"modern, remembered":     {nil, modern, 0, wellModern},
		"legacy":                 {legacyWith(), "", 0, want{verdict: probe.Up, era: legacy, tools: 3, steps: fresh}},
		"legacy, remembered":     {legacyWith(), legacy, 0, wellOpen},
		"remembered as HTTP+SSE": {legacyWith(), probe.EraSSE, 0, wellOpen},
		"no longer modern":       {legacyWith(), modern, 0, want{verdict: probe.Up, era: legacy, tools: 3, steps: fresh}},
		"no longer legacy": {faults(probetest.ModernOnly()), legacy, 0,
			want{verdict: probe.Up, era: modern, tools: 3, steps: "initialize!version_unsupported " + modernSteps}},
		"discover is never answered": {legacyWith(probetest.HangAt("server/discover")), "", 6 * time.Second,
			want{verdict: probe.Up, era: legacy, tools: 3, steps: "server/discover!timeout " + openSteps}},
		"discover lists old versions only": {faults(probetest.DiscoverQuirk(probetest.DiscoverLegacyVersions)), "", 0,
			want{verdict: probe.Up, era: legacy, tools: 3, steps: "server/discover " + openSteps}},
		"modern by half": {faults(probetest.ResultAt("tools/list", `{"tools":[]}`)), "", 0,
			bad(probe.Degraded, modern, "tools/list", probe.ClassSchemaInvalid, 0, "server/discover tools/list!schema_invalid initialize", "initialize schema_invalid")},
		"a notification before the list": {legacyWith(probetest.SSE()), legacy, 0, wellOpen},
		"many pages": {legacyWith(probetest.Tools(5), probetest.PageSize(2)), legacy, 0,
			want{verdict: probe.Up, era: legacy, tools: 5, steps: openSteps + " tools/list tools/list"}},
		"an error": {legacyWith(probetest.RPCErrorAt("tools/list", 200, -32603, "Internal error")), legacy, 0,
			bad(probe.Down, legacy, "tools/list", probe.ClassRPCError, -32603, "initialize initialized tools/list!rpc_error")},
		"another id": {legacyWith(probetest.WrongIDAt("tools/list")), legacy, 0,
			bad(probe.Down, legacy, "tools/list", probe.ClassIDMismatch, 0, "initialize initialized tools/list!id_mismatch")},
		"no answer": {legacyWith(probetest.HangAt("tools/list")), legacy, 1500 * time.Millisecond,
			bad(probe.Down, legacy, "tools/list", probe.ClassTimeout, 0, "initialize initialized tools/list!timeout")},
		"an old version": {faults(probetest.StrictVersion("2024-11-05")), legacy, 0,
			want{verdict: probe.Up, era: legacy, tools: 3, steps: "initialize!version_unsupported " + openSteps}},
	} {
		for carrier, carry := range carriers {
			t.Run(name+" over a "+carrier, func(t *testing.T) {
				t.Parallel()
				backend := probetest.MCP(t, append([]probetest.Fault{probetest.NoSession()}, tc.faults...)...)
				r := streamProber().Probe(t.Context(), carry(t, backend, probe.Target{Kind: probe.KindMCP, Era: tc.era, Timeout: tc.within}))
				check(t, r, tc.want)
				for _, s := range r.Steps {
					if s.HTTPStatus != 0 && s.HTTPStatus != http.StatusSwitchingProtocols {
						t.Errorf("step %s has the HTTP status %d", s.Name, s.HTTPStatus)
					}
				}
			})
		}
	}
}

// A process that was asked in one era may refuse the other: each is asked of a process of its own, and one that is
// remembered needs no second.
func TestErasAreAskedOfProcessesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for era, want := range map[probe.Era]int{"": 2, probe.EraModern: 2, probe.EraLegacy: 1} {
		backend := probetest.MCP(t, probetest.LegacyOnly(), probetest.NoSession())
		command := probetest.Process(t, backend)
		r := streamProber().Probe(t.Context(), probe.Target{Kind: probe.KindMCP, Era: era, Command: quickEnd(command)})
		if got := len(command.PIDs()); r.Verdict != probe.Up || got != want {
			t.Errorf("remembered as %q: %s with %d processes, want up with %d: %+v", era, r.Verdict, got, want, r.Failure)
		}
	}
}

// What a server asks of its client is answered: ping with a result, and all that needs a capability we did not declare
// with -32601. A server may hold its own answer back until then.
func TestServersAreAnswered(t *testing.T) {
	t.Parallel()
	backend := probetest.MCP(t, probetest.LegacyOnly(), probetest.NoSession())
	front := probetest.WebSocket(t, backend,
		probetest.Before("initialize", `{"jsonrpc":"2.0","id":"s-1","method":"ping"}`),
		probetest.Before("tools/list", `{"jsonrpc":"2.0","id":2,"method":"roots/list"}`))
	r := streamProber().Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: front.URL, Era: probe.EraLegacy, Transcript: true})
	check(t, r, wellOpen)
	answers := map[string]string{}
	for _, m := range r.Transcript {
		var sent struct {
			ID     json.RawMessage `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if m.Sent && json.Unmarshal([]byte(m.Body), &sent) == nil && !strings.Contains(m.Body, `"method"`) {
			answers[string(sent.ID)] = string(sent.Result) + string(sent.Error)
		}
	}
	if answers[`"s-1"`] != `{}` || !strings.Contains(answers["2"], "-32601") || len(answers) != 2 {
		t.Errorf("answered %v, want {} to the ping and -32601 to roots/list", answers)
	}
}
