package probe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// want is what a case expects of a Result.
type want struct {
	verdict  probe.Verdict
	step     string
	class    probe.Class
	code     int
	message  string // part of it
	era      probe.Era
	kind     probe.Kind
	steps    string   // names, with the class of those that went wrong: "initialize initialized tools/list!rpc_error close"
	warnings []string // "step class"
	tools    int      // -1 for none
	sessions int      // left open
}

func check(t *testing.T, got probe.Result, w want) {
	t.Helper()
	var f probe.Failure
	if got.Failure != nil {
		f = *got.Failure
	}
	type outcome struct {
		Verdict  probe.Verdict
		Step     string
		Class    probe.Class
		Code     int
		Era      probe.Era
		Steps    string
		Warnings string
	}
	g := outcome{got.Verdict, f.Step, f.Class, f.Code, got.Era, stepLine(got.Steps), warningLine(got.Warnings)}
	x := outcome{w.verdict, w.step, w.class, w.code, w.era, w.steps, strings.Join(w.warnings, ", ")}
	if diff := cmp.Diff(x, g); diff != "" {
		t.Errorf("result (-want +got):\n%s\nfailure: %+v\nwarnings: %+v", diff, f, got.Warnings)
	}
	if !strings.Contains(f.Message, w.message) {
		t.Errorf("message %q does not say %q", f.Message, w.message)
	}
	if w.kind != "" && got.Kind != w.kind {
		t.Errorf("kind %q, want %q", got.Kind, w.kind)
	}
	tools := -1
	if got.Facts.Tools != nil {
		tools = *got.Facts.Tools
	}
	if w.tools != 0 && tools != w.tools {
		t.Errorf("%d tools, want %d", tools, w.tools)
	}
}

func stepLine(steps []probe.Step) string {
	var names []string
	for _, s := range steps {
		name := s.Name
		if s.Class != "" {
			name += "!" + string(s.Class)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func warningLine(warnings []probe.Warning) string {
	var lines []string
	for _, w := range warnings {
		lines = append(lines, w.Step+" "+string(w.Class))
	}
	return strings.Join(lines, ", ")
}

// prober may dial loopback, where the servers of the tests are.
func prober() *probe.Prober {
	return &probe.Prober{Version: "1.2.3", PublicURL: "https://status.example", Egress: probe.Egress{Any: true}}
}

func ask(t *testing.T, target probe.Target) probe.Result {
	t.Helper()
	if target.Timeout == 0 {
		target.Timeout = 10 * time.Second
	}
	return prober().Probe(t.Context(), target)
}

const (
	modernSteps = "server/discover tools/list"
	legacySteps = "server/discover!rpc_error initialize initialized tools/list close"
	shortSteps  = "initialize initialized tools/list close" // of an endpoint remembered as legacy
)

func TestMCP(t *testing.T) {
	up, degraded, down := probe.Up, probe.Degraded, probe.Down
	modern, legacy := probe.EraModern, probe.EraLegacy
	faults := func(f ...probetest.Fault) []probetest.Fault { return f }
	for name, tc := range map[string]struct {
		faults []probetest.Fault
		era    probe.Era
		within time.Duration
		want   want
	}{
		"modern":              {nil, "", 0, want{verdict: up, era: modern, steps: modernSteps, kind: probe.KindMCP, tools: 3}},
		"modern, remembered":  {nil, modern, 0, want{verdict: up, era: modern, steps: modernSteps}},
		"modern, stream":      {faults(probetest.SSE()), "", 0, want{verdict: up, era: modern, steps: modernSteps}},
		"legacy":              {faults(probetest.LegacyOnly()), "", 0, want{verdict: up, era: legacy, steps: legacySteps, kind: probe.KindMCP}},
		"legacy, remembered":  {faults(probetest.LegacyOnly()), legacy, 0, want{verdict: up, era: legacy, steps: shortSteps}},
		"legacy, JSON bodies": {faults(probetest.LegacyOnly(), probetest.JSONBody()), legacy, 0, want{verdict: up, era: legacy, steps: shortSteps}},
		"legacy remembered as modern is found again": {faults(probetest.LegacyOnly()), modern, 0,
			want{verdict: up, era: legacy, steps: legacySteps}},
		"modern remembered as legacy is found again": {faults(probetest.ModernOnly()), legacy, 0,
			want{verdict: up, era: modern, steps: "initialize!version_unsupported server/discover tools/list"}},
		"no session, no DELETE": {faults(probetest.LegacyOnly(), probetest.NoSession()), legacy, 0,
			want{verdict: up, era: legacy, steps: "initialize initialized tools/list"}},
		"without tools": {faults(probetest.NoTools()), "", 0, want{verdict: up, era: modern, steps: "server/discover prompts/list", tools: -1}},
		"many pages": {faults(probetest.LegacyOnly(), probetest.Tools(7), probetest.PageSize(3)), legacy, 0,
			want{verdict: up, era: legacy, steps: "initialize initialized tools/list tools/list tools/list close", tools: 7}},
		"one byte at a time": {faults(probetest.LegacyOnly(), probetest.SSE(), probetest.Tools(2), probetest.DripAt("tools/list", 0)), legacy, 0,
			want{verdict: up, era: legacy, steps: shortSteps, tools: 2}},
		"the empty cursor ends a legacy list": {faults(probetest.LegacyOnly(), probetest.EmptyCursor(), probetest.Tools(4), probetest.PageSize(2)), legacy, 0,
			want{verdict: up, era: legacy, steps: "initialize initialized tools/list tools/list close", tools: 4}},
		"the empty cursor is a cursor in the modern era": {faults(probetest.EmptyCursor(), probetest.Tools(4), probetest.PageSize(2)), "", 0,
			want{verdict: up, era: modern, steps: "server/discover tools/list tools/list", tools: 4}},
		"too many pages": {faults(probetest.Tools(60), probetest.PageSize(1)), "", 0,
			want{verdict: degraded, step: "tools/list", class: probe.ClassPageLimit, message: "more than 50 pages", era: modern,
				steps: "server/discover" + strings.Repeat(" tools/list", 50) + "!page_limit", tools: 50}},
		"tools declared as an empty list": {faults(probetest.LegacyOnly(),
			probetest.ResultAt("initialize", `{"protocolVersion":"2025-06-18","capabilities":{"tools":[]},"serverInfo":{"name":"php","version":"8"}}`)), legacy, 0,
			want{verdict: up, era: legacy, steps: shortSteps}},
		"modern, speaks only what is to come": {faults(probetest.ResultAt("server/discover", `{"supportedVersions":["2027-01-01"],"capabilities":{}}`)), "", 0,
			want{verdict: down, step: "server/discover", class: probe.ClassVersionUnsupported, message: "2027-01-01", steps: "server/discover!version_unsupported"}},
		"modern, refuses the form of the request": {faults(probetest.RPCErrorAt("server/discover", 400, -32020, "HeaderMismatch")), "", 0,
			want{verdict: probe.Unknown, step: "server/discover", class: probe.ClassProbeRejected, code: -32020, steps: "server/discover!probe_rejected"}},
		"an answer to anything is no discovery": {faults(probetest.LegacyOnly(), probetest.ResultAt("server/discover", `{}`)), "", 0,
			want{verdict: up, era: legacy, steps: "server/discover initialize initialized tools/list close"}},
		"-32022 with old versions only asks for a handshake in the newest of them": {faults(probetest.LegacyOnly(), probetest.StrictVersion("2025-03-26"), probetest.EnvelopeAt("server/discover",
			`{"jsonrpc":"2.0","id":$id,"error":{"code":-32022,"message":"no","data":{"supported":["2024-11-05","2025-03-26"],"requested":"2026-07-28"}}}`)), "", 0,
			want{verdict: up, era: legacy, steps: "server/discover!version_unsupported initialize initialized tools/list close"}},
		"-32022 with versions to come": {faults(probetest.EnvelopeAt("server/discover",
			`{"jsonrpc":"2.0","id":$id,"error":{"code":-32022,"message":"not this one","data":{"supported":["2027-01-01"]}}}`)), "", 0,
			want{verdict: down, step: "server/discover", class: probe.ClassVersionUnsupported, code: -32022, message: "not this one; it offers 2027-01-01", steps: "server/discover!version_unsupported"}},
		"-32022 with the very version is asked again": {faults(probetest.Once(probetest.EnvelopeAt("server/discover",
			`{"jsonrpc":"2.0","id":$id,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}`))), "", 0,
			want{verdict: up, era: modern, steps: "server/discover!version_unsupported server/discover tools/list"}},
		"an event stream of rubbish": {faults(stream("tools/list", "data: rubbish\n\ndata: more\n\n")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassInvalidJSON, code: 200, era: modern, steps: "server/discover tools/list!invalid_json"}},
		"an event stream that ends in an event": {faults(stream("tools/list", "id: 1\ndata:\n\ndata: {}\n")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSEFraming, code: 200, message: "middle of an event", era: modern, steps: "server/discover tools/list!sse_framing"}},
		"an event stream of something else": {faults(stream("tools/list", "data: {}\n\n")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassInvalidEnvelope, code: 200, era: modern, steps: "server/discover tools/list!invalid_envelope"}},
		"an event without end": {faults(stream("tools/list", "data: "+strings.Repeat("x", 200<<10))), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSEFraming, code: 200, message: "larger", era: modern, steps: "server/discover tools/list!sse_framing"}},
		"an event stream without end": {faults(stream("tools/list", strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", 8000))), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassBodyTooLarge, code: 200, era: modern, steps: "server/discover tools/list!body_too_large"}},
		"a body without end": {faults(probetest.HugeBodyAt("tools/list", 300<<10)), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassBodyTooLarge, code: 200, message: "262144 bytes", era: modern, steps: "server/discover tools/list!body_too_large"}},
		"cursor loop": {faults(probetest.CursorLoop()), "", 0,
			want{verdict: degraded, step: "tools/list", class: probe.ClassCursorLoop, era: modern, steps: "server/discover tools/list tools/list!cursor_loop"}},
		"an unofficial version degrades": {faults(probetest.LegacyOnly(), probetest.BadVersion("2024-10-07")), legacy, 0,
			want{verdict: degraded, step: "initialize", class: probe.ClassVersionUnofficial, era: legacy, steps: "initialize!version_unofficial initialized tools/list close"}},
		"a version that is none": {faults(probetest.LegacyOnly(), probetest.BadVersion("banana")), legacy, 0,
			want{verdict: down, step: "initialize", class: probe.ClassVersionUnsupported, message: "banana", era: legacy,
				steps: "initialize!version_unsupported server/discover!rpc_error close"}},
		"a server that wants an old version": {faults(probetest.LegacyOnly(), probetest.StrictVersion("2025-03-26")), legacy, 0,
			want{verdict: up, era: legacy, steps: "initialize!version_unsupported initialize initialized tools/list close"}},
		"session lost once": {faults(probetest.LegacyOnly(), probetest.Once(probetest.LoseSession())), legacy, 0,
			want{verdict: up, era: legacy, steps: "initialize initialized!session_lost initialize initialized tools/list close",
				warnings: []string{"initialized session_lost"}}},
		"session lost again and again": {faults(probetest.LegacyOnly(), probetest.LoseSession()), legacy, 0,
			want{verdict: degraded, step: "initialized", class: probe.ClassSessionLost, code: 404, era: legacy,
				steps: "initialize initialized!session_lost initialize initialized!session_lost close", warnings: []string{"initialized session_lost"}}},
		"error in HTTP 200": {faults(probetest.RPCErrorAt("tools/list", 200, -32603, "Internal error")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassRPCError, code: -32603, message: "Internal error", era: modern,
				steps: "server/discover tools/list!rpc_error"}},
		"error in HTTP 500 keeps its code": {faults(probetest.RPCErrorAt("tools/list", 500, -32603, "Internal error")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassRPCError, code: -32603, era: modern, steps: "server/discover tools/list!rpc_error"}},
		"code 0 is a code": {faults(probetest.LegacyOnly(), probetest.RPCErrorAt("tools/list", 200, 0, "nope")), legacy, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassRPCError, era: legacy, steps: "initialize initialized tools/list!rpc_error close"}},
		"wrong id": {faults(probetest.WrongIDAt("tools/list")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassIDMismatch, code: 200, era: modern, steps: "server/discover tools/list!id_mismatch"}},
		"wrong id on a stream": {faults(probetest.LegacyOnly(), probetest.SSE(), probetest.WrongIDAt("tools/list")), legacy, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassIDMismatch, code: 200, era: legacy, steps: "initialize initialized tools/list!id_mismatch close"}},
		"no JSON": {faults(probetest.GarbageAt("tools/list")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassInvalidJSON, code: 200, era: modern, steps: "server/discover tools/list!invalid_json"}},
		"a page of HTML": {faults(probetest.HTMLAt("tools/list")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassContentType, code: 200, era: modern, steps: "server/discover tools/list!content_type"}},
		"half a body": {faults(probetest.HalfBodyAt("tools/list")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassTruncatedBody, code: 200, era: modern, steps: "server/discover tools/list!truncated_body"}},
		"reset": {faults(probetest.ResetAt("tools/list")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassConnect, era: modern, steps: "server/discover tools/list!connect"}},
		"reset of discover only": {faults(probetest.ResetAt("server/discover")), "", 0,
			want{verdict: up, era: legacy, steps: "server/discover!connect initialize initialized tools/list close"}},
		"connection closed": {faults(probetest.LegacyOnly(), probetest.CloseAt("initialize")), legacy, 0,
			want{verdict: down, step: "initialize", class: probe.ClassConnect, era: legacy, steps: "initialize!connect", sessions: 1}},
		"hang at tools/list": {faults(probetest.HangAt("tools/list")), "", time.Second,
			want{verdict: down, step: "tools/list", class: probe.ClassTimeout, message: "no first byte after", era: modern, steps: "server/discover tools/list!timeout"}},
		"hang in the body": {faults(probetest.HangBodyAt("tools/list")), "", time.Second,
			want{verdict: down, step: "tools/list", class: probe.ClassTimeout, message: "answer not complete after", era: modern, steps: "server/discover tools/list!timeout"}},
		"hang with a session open": {faults(probetest.LegacyOnly(), probetest.HangAt("tools/list")), legacy, time.Second,
			want{verdict: down, step: "tools/list", class: probe.ClassTimeout, era: legacy, steps: "initialize initialized tools/list!timeout close"}},
		"hang at discover leaves time for the handshake": {faults(probetest.HangAt("server/discover")), "", 3 * time.Second,
			want{verdict: up, era: legacy, steps: "server/discover!timeout initialize initialized tools/list close"}},
		"stalled stream": {faults(probetest.StalledStreamAt("tools/list")), "", time.Second,
			want{verdict: down, step: "tools/list", class: probe.ClassTimeout, era: modern, steps: "server/discover tools/list!timeout"}},
		"stream left open": {faults(probetest.LegacyOnly(), probetest.StreamOpenAt("tools/list")), legacy, 0,
			want{verdict: up, era: legacy, steps: shortSteps, warnings: []string{"tools/list stream_not_closed"}}},
		"stream without an answer": {faults(probetest.EmptyStreamAt("tools/list")), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSENoResponse, code: 200, era: modern, steps: "server/discover tools/list!sse_no_response"}},
		"503": {faults(probetest.LegacyOnly(), probetest.StatusAt("initialize", 503, "text/plain", "try later")), legacy, 0,
			want{verdict: down, step: "initialize", class: probe.ClassHTTPStatus, code: 503, message: "try later", era: legacy,
				steps: "initialize!http_status server/discover!rpc_error close"}},
		"wants credentials": {faults(probetest.Unauthorized(`Bearer resource_metadata="https://example.com"`)), "", 0,
			want{verdict: probe.Gated, step: "server/discover", class: probe.ClassAuthRequired, code: 401, steps: "server/discover!auth_required"}},
		"does not say which credentials": {faults(probetest.Unauthorized("")), "", 0,
			want{verdict: probe.Gated, step: "initialize", class: probe.ClassAuthRequired, code: 401, steps: "server/discover!auth_required initialize!auth_required close!auth_required",
				warnings: []string{"server/discover auth_not_advertised", "initialize auth_not_advertised", "close auth_required"}}},
		"rate limited": {faults(probetest.RateLimited("7")), "", 0,
			want{verdict: probe.Unknown, step: "server/discover", class: probe.ClassRateLimited, code: 429, steps: "server/discover!rate_limited"}},
		"bot wall": {faults(probetest.BotWall()), "", 0,
			want{verdict: probe.Unknown, step: "server/discover", class: probe.ClassBlocked, code: 403, steps: "server/discover!blocked"}},
		"a redirect that loses the body": {faults(probetest.RedirectAt("server/discover", 302, "/login")), "", 0,
			want{verdict: down, step: "server/discover", class: probe.ClassRedirect, code: 302, message: "/login", steps: "server/discover!redirect"}},
		"a redirect to another host": {faults(probetest.RedirectAt("server/discover", 307, "http://localhost:1/mcp")), "", 0,
			want{verdict: down, step: "server/discover", class: probe.ClassRedirect, code: 307, message: "another host", steps: "server/discover!redirect"}},
		"a redirect in circles": {faults(probetest.RedirectLoopAt("server/discover")), "", 0,
			want{verdict: down, step: "server/discover", class: probe.ClassRedirect, code: 307, message: "more than 3 redirects", steps: "server/discover!redirect",
				warnings: []string{"server/discover redirect", "server/discover redirect", "server/discover redirect"}}},
		"initialized answered 200": {faults(probetest.LegacyOnly(), probetest.StatusAt("initialized", 200, "text/plain", "ok")), legacy, 0,
			want{verdict: up, era: legacy, steps: shortSteps, warnings: []string{"initialized http_status"}}},
		"initialized answered 204": {faults(probetest.LegacyOnly(), probetest.StatusAt("initialized", 204, "", "")), legacy, 0,
			want{verdict: up, era: legacy, steps: shortSteps, warnings: []string{"initialized http_status"}}},
		"initialized answered 400": {faults(probetest.LegacyOnly(), probetest.StatusAt("initialized", 400, "text/plain", "what?")), legacy, 0,
			want{verdict: down, step: "initialized", class: probe.ClassHTTPStatus, code: 400, era: legacy, steps: "initialize initialized!http_status close"}},
		"DELETE not allowed": {faults(probetest.LegacyOnly(), probetest.StatusAt("close", 405, "text/plain", "no")), legacy, 0,
			want{verdict: up, era: legacy, steps: shortSteps}},
		"DELETE fails": {faults(probetest.LegacyOnly(), probetest.StatusAt("close", 500, "text/plain", "no")), legacy, 0,
			want{verdict: up, era: legacy, steps: "initialize initialized tools/list close!http_status", warnings: []string{"close http_status"}}},
		"JSON sent as plain text": {faults(probetest.HeaderAt("tools/list", "Content-Type", "text/plain")), "", 0,
			want{verdict: up, era: modern, steps: modernSteps, warnings: []string{"tools/list content_type"}}},
		"a header without end": {faults(probetest.HeaderAt("tools/list", "X-Big", strings.Repeat("x", 70<<10))), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassBodyTooLarge, message: "header", era: modern, steps: "server/discover tools/list!body_too_large"}},
		"one bad tool": {faults(probetest.ResultAt("tools/list", `{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{}},null]}`)), "", 0,
			want{verdict: degraded, step: "tools/list", class: probe.ClassSchemaInvalid, message: `2 of 3 tools are invalid: b has no inputSchema of type "object"; a tool is not an object`,
				era: modern, steps: "server/discover tools/list!schema_invalid", tools: 3}},
		"modern by half": {faults(probetest.ResultAt("tools/list", `{"tools":[]}`)), "", 0,
			want{verdict: degraded, step: "tools/list", class: probe.ClassSchemaInvalid, message: "resultType, ttlMs, cacheScope", era: modern,
				steps: "server/discover tools/list!schema_invalid initialize close", warnings: []string{"initialize schema_invalid"}}},
		"no serverInfo": {faults(probetest.LegacyOnly(), probetest.ResultAt("initialize", `{"protocolVersion":"2025-06-18","capabilities":{}}`)), legacy, 0,
			want{verdict: degraded, step: "initialize", class: probe.ClassHandshakeInvalid, era: legacy, steps: "initialize!handshake_invalid initialized close"}},
		"both result and error": {faults(probetest.EnvelopeAt("tools/list", `{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":1,"message":"x"}}`)), "", 0,
			want{verdict: down, step: "tools/list", class: probe.ClassInvalidEnvelope, code: 200, message: "both", era: modern, steps: "server/discover tools/list!invalid_envelope"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, tc.faults...)
			p := prober()
			p.Limits = probe.Limits{ResponseBytes: 256 << 10, EventBytes: 128 << 10}
			got := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: tc.era, Timeout: tc.within})
			check(t, got, tc.want)
			if n := s.Sessions(); n != tc.want.sessions && !strings.Contains(tc.want.steps, "close!") && !strings.Contains(name, "DELETE") {
				t.Errorf("%d sessions left open, want %d", n, tc.want.sessions)
			}
			if tc.within > 0 && got.Duration > tc.within+2*time.Second {
				t.Errorf("took %v of %v", got.Duration, tc.within)
			}
		})
	}
}

func stream(step, events string) probetest.Fault {
	return probetest.StatusAt(step, 200, "text/event-stream", events)
}

// What legacy servers were seen to answer to server/discover: each is up all the same.
func TestDiscoverQuirks(t *testing.T) {
	t.Parallel()
	for _, quirk := range probetest.Quirks() {
		t.Run(string(quirk), func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, probetest.DiscoverQuirk(quirk))
			for _, era := range []probe.Era{"", probe.EraModern, probe.EraLegacy} {
				r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: era, Timeout: 3 * time.Second})
				if r.Verdict != probe.Up || r.Facts.Era != probe.EraLegacy || s.Sessions() != 0 {
					t.Errorf("remembered as %q: %s, era %q, steps %s, %d sessions, %+v", era, r.Verdict, r.Facts.Era, stepLine(r.Steps), s.Sessions(), r.Failure)
				}
			}
		})
	}
}
