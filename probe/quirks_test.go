package probe_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func join(steps []string) string { return strings.Join(steps, " ") }

// quirk is one way in which a real server was seen to differ, and what a check must say about it.
type quirk struct {
	name    string
	start   func(testing.TB, ...probetest.Fault) *probetest.Server // nil: probetest.MCP
	faults  []probetest.Fault
	era     probe.Era
	within  time.Duration
	headers []probe.Header
	want    want
}

func faults(f ...probetest.Fault) []probetest.Fault { return f }

func legacyWith(f ...probetest.Fault) []probetest.Fault {
	return append(faults(probetest.LegacyOnly()), f...)
}

const openSteps = "initialize initialized tools/list" // of an endpoint without sessions that is remembered as legacy

// What a healthy check looks like: modern, legacy, legacy as it is remembered, the same without a session, HTTP+SSE as it
// is remembered.
var (
	wellModern   = want{verdict: probe.Up, era: probe.EraModern, steps: modernSteps, tools: 3}
	wellLegacy   = want{verdict: probe.Up, era: probe.EraLegacy, steps: legacySteps, tools: 3}
	wellRecalled = want{verdict: probe.Up, era: probe.EraLegacy, steps: shortSteps, tools: 3}
	wellOpen     = want{verdict: probe.Up, era: probe.EraLegacy, steps: openSteps, tools: 3}
	wellSSE      = want{verdict: probe.Up, era: probe.EraSSE, steps: sseRecalled, tools: 3}
)

// odd is a healthy check with warnings.
func odd(w want, warnings ...string) want {
	w.warnings = warnings
	return w
}

// bad is a check that failed; steps say where.
func bad(v probe.Verdict, era probe.Era, step string, class probe.Class, code int, steps string, warnings ...string) want {
	return want{verdict: v, era: era, step: step, class: class, code: code, steps: steps, warnings: warnings}
}

// Every quirk of real servers that was reported or seen, by its number in the collection, with the only right answer to
// it. Servers that are odd but healthy stay up.
func TestQuirks(t *testing.T) {
	t.Parallel()
	const (
		modern, legacy, sse                = probe.EraModern, probe.EraLegacy, probe.EraSSE
		up, degraded, down, gated, unknown = probe.Up, probe.Degraded, probe.Down, probe.Gated, probe.Unknown
		token                              = `Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource"`
	)
	credentials := []probe.Header{{Name: "Authorization", Value: "Bearer secret-token-1", Secret: true}}
	rows := []quirk{
		{name: "F1 bare GETs are refused", faults: legacyWith(probetest.StatusAt("sse", 406, "application/json", `{"error":"Not Acceptable"}`)), want: wellLegacy},
		{name: "F2 both media types must be accepted literally", faults: legacyWith(probetest.NoSession()), era: legacy, want: wellOpen},

		{name: "F3a initialized answered 200", faults: legacyWith(probetest.StatusAt("initialized", 200, "", "")), era: legacy, want: odd(wellRecalled, "initialized http_status")},
		{name: "F3b initialized answered 200 null", faults: legacyWith(probetest.StatusAt("initialized", 200, "application/json", "null")), era: legacy, want: odd(wellRecalled, "initialized http_status")},
		{name: "F3c initialized answered 204", faults: legacyWith(probetest.StatusAt("initialized", 204, "", "")), era: legacy, want: odd(wellRecalled, "initialized http_status")},
		{name: "F3d initialized answered 200 in plain text", faults: legacyWith(probetest.StatusAt("initialized", 200, "text/plain", "Accepted")), era: legacy, want: odd(wellRecalled, "initialized http_status")},
		{name: "F3e initialized answered with a stream that stays open", faults: legacyWith(probetest.StalledStreamAt("initialized")), era: legacy, want: wellRecalled},

		{name: "F4 the optional GET stream hangs", faults: legacyWith(probetest.HangAt("sse")), want: wellLegacy},

		{name: "F5a an expired session is 404", faults: legacyWith(probetest.Once(probetest.LoseSessionAt("tools/list", 404, -32001, "Session not found"))), era: legacy,
			want: odd(want{verdict: up, era: legacy, tools: 3, steps: "initialize initialized tools/list!session_lost initialize initialized tools/list close"}, "tools/list session_lost")},
		{name: "F5b an expired session is 400", faults: legacyWith(probetest.Once(probetest.LoseSessionAt("tools/list", 400, -32000, "Bad Request: No valid session ID provided"))), era: legacy,
			want: odd(want{verdict: up, era: legacy, tools: 3, steps: "initialize initialized tools/list!session_lost initialize initialized tools/list close"}, "tools/list session_lost")},
		{name: "F5c an expired session is an error in 200", faults: legacyWith(probetest.Once(probetest.LoseSessionAt("tools/list", 200, -32600, "Invalid session"))), era: legacy,
			want: odd(want{verdict: up, era: legacy, tools: 3, steps: "initialize initialized tools/list!session_lost initialize initialized tools/list close"}, "tools/list session_lost")},
		{name: "F5d sessions expire at once, always", faults: legacyWith(probetest.LoseSessionAt("tools/list", 400, -32000, "Bad Request: Server not initialized")), era: legacy,
			want: bad(degraded, legacy, "tools/list", probe.ClassSessionLost, -32000, "initialize initialized tools/list!session_lost initialize initialized tools/list!session_lost close", "tools/list session_lost")},

		{name: "F6a refuses to negotiate and lists its version", faults: faults(probetest.StrictVersion("2025-03-26")), era: legacy,
			want: want{verdict: up, era: legacy, tools: 3, steps: "initialize!version_unsupported " + shortSteps}},
		{name: "F6b refuses to negotiate and lists nothing", faults: legacyWith(probetest.NoSession(), probetest.Times(3, probetest.StatusAt("initialize", 400, "text/plain", "Unsupported protocol version"))), era: legacy,
			want: want{verdict: up, era: legacy, tools: 3, steps: strings.Repeat("initialize!version_unsupported ", 3) + openSteps}},
		{name: "F6c echoes any version", faults: legacyWith(probetest.EchoVersion()), era: legacy, want: wellRecalled},
		{name: "F6d refuses the version header on initialize", faults: legacyWith(probetest.NoVersionHeader()), era: legacy, want: wellRecalled},
		{name: "F6e refuses every version", faults: legacyWith(probetest.NoSession(), probetest.RPCErrorAt("initialize", 200, -32602, "Unsupported protocol version")), era: legacy,
			want: bad(down, legacy, "initialize", probe.ClassVersionUnsupported, -32602, strings.Repeat("initialize!version_unsupported ", 4)+"server/discover!rpc_error")},
		{name: "F6f negotiates a version that no specification knows", faults: legacyWith(probetest.BadVersion("2025-11-05")), era: legacy,
			want: bad(degraded, legacy, "initialize", probe.ClassVersionUnofficial, 0, "initialize!version_unofficial initialized tools/list close")},

		{name: "F7a discover hangs", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverHangs)), within: 3 * time.Second, want: want{verdict: up, era: legacy, tools: 3, steps: "server/discover!timeout " + shortSteps}},
		{name: "F7b discover is 401", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverUnauthorized)),
			want: odd(want{verdict: up, era: legacy, tools: 3, steps: "server/discover!auth_required " + shortSteps}, "server/discover auth_not_advertised")},
		{name: "F7c discover is 503", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverUnavailable)), want: want{verdict: up, era: legacy, tools: 3, steps: "server/discover!http_status " + shortSteps}},
		{name: "F7d discover is 200 without a body", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverEmpty)), want: want{verdict: up, era: legacy, tools: 3, steps: "server/discover!invalid_json " + shortSteps}},
		{name: "F7e discover is a foreign id", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverForeignID)),
			want: odd(wellLegacy, "server/discover id_mismatch")},
		{name: "F7f discover is a null id", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverNullID)), want: wellLegacy},
		{name: "F7g discover is -32601 in 200", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverUnknownMethod)), want: wellLegacy},
		{name: "F7h discover is -32601 in 401", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverWrappedUnknown)),
			want: odd(want{verdict: up, era: legacy, tools: 3, steps: "server/discover!auth_required " + shortSteps}, "server/discover auth_not_advertised")},
		{name: "F7i discover is a web page", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverHTML)), want: want{verdict: up, era: legacy, tools: 3, steps: "server/discover!content_type " + shortSteps}},
		{name: "F7j discover lists old versions only", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverLegacyVersions)), want: want{verdict: up, era: legacy, tools: 3, steps: "server/discover " + shortSteps}},
		{name: "F7k discover is 401 though credentials were given, and initialize takes them", faults: faults(probetest.DiscoverQuirk(probetest.DiscoverUnauthorized)), headers: credentials,
			want: odd(want{verdict: up, era: legacy, tools: 3, steps: "server/discover!credential_rejected " + shortSteps}, "server/discover auth_not_advertised")},

		{name: "F8 modern by half", faults: faults(probetest.ResultAt("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`)),
			want: bad(degraded, modern, "tools/list", probe.ClassSchemaInvalid, 0, "server/discover tools/list!schema_invalid initialize close", "initialize schema_invalid")},
		{name: "F8b modern by half and nothing else", faults: faults(probetest.ModernOnly(), probetest.ResultAt("tools/list", `{"tools":[],"resultType":"complete","ttlMs":-1,"cacheScope":"shared"}`)),
			want: bad(degraded, modern, "tools/list", probe.ClassSchemaInvalid, 0, "server/discover tools/list!schema_invalid initialize!version_unsupported")},

		{name: "F9 priming events, comments and notifications", faults: legacyWith(probetest.SSE()), era: legacy, want: wellRecalled},
		{name: "F9b the same, modern", faults: faults(probetest.SSE()), want: wellModern},

		{name: "F10 a long list, one byte at a time", faults: legacyWith(probetest.Padding(35_000), probetest.DripAt("tools/list", 0)), era: legacy, want: wellRecalled},

		{name: "F11a the stream stays open after the answer", faults: legacyWith(probetest.StreamOpenAt("tools/list")), era: legacy, want: odd(wellRecalled, "tools/list stream_not_closed")},
		{name: "F11b the answer comes on the GET stream only", faults: legacyWith(probetest.StatusAt("tools/list", 202, "", "")), era: legacy,
			want: bad(down, legacy, "tools/list", probe.ClassHTTPStatus, 202, "initialize initialized tools/list!http_status close")},
		{name: "F11c the stream ends without an answer", faults: legacyWith(probetest.StreamTextAt("tools/list", ": bye\n\n")), era: legacy,
			want: bad(down, legacy, "tools/list", probe.ClassSSENoResponse, 200, "initialize initialized tools/list!sse_no_response close")},
		{name: "F11d the stream says nothing and stays open", faults: legacyWith(probetest.StalledStreamAt("tools/list")), era: legacy, within: time.Second,
			want: bad(down, legacy, "tools/list", probe.ClassTimeout, 0, "initialize initialized tools/list!timeout close")},

		{name: "F12a compressed though nobody asked", faults: legacyWith(probetest.GzipAt("tools/list")), era: legacy, want: odd(wellRecalled, "tools/list content_type")},
		{name: "F12b held back by a proxy", faults: legacyWith(probetest.HangBodyAt("tools/list")), era: legacy, within: time.Second,
			want: bad(down, legacy, "tools/list", probe.ClassTimeout, 0, "initialize initialized tools/list!timeout close")},

		{name: "F13a 307 to a slash", faults: legacyWith(probetest.NoSession(), probetest.RedirectAt("", 307, "/mcp/")), era: legacy, want: odd(wellOpen, "initialize redirect")},
		{name: "F13b 308 to a slash", faults: faults(probetest.RedirectAt("", 308, "/mcp/")), want: odd(wellModern, "server/discover redirect")},
		{name: "F13c 301 to a slash", faults: faults(probetest.RedirectAt("", 301, "/mcp/")), want: bad(down, "", "server/discover", probe.ClassRedirect, 301, "server/discover!redirect")},
		{name: "F13d down to http", faults: faults(probetest.TLS(), probetest.RedirectAt("", 307, "http://127.0.0.1/mcp/")), want: bad(down, "", "server/discover", probe.ClassRedirect, 307, "server/discover!redirect")},
		{name: "F13e to an internal port", faults: faults(probetest.RedirectAt("", 307, "http://127.0.0.1:1/mcp/")),
			want: bad(down, "", "server/discover", probe.ClassConnect, 0, "server/discover!connect", "server/discover redirect")},
		{name: "F13f to another port, with credentials", faults: faults(probetest.RedirectAt("", 307, "http://127.0.0.1:1/mcp/")), headers: credentials,
			want: bad(down, "", "server/discover", probe.ClassRedirect, 307, "server/discover!redirect")},
		{name: "F13g to a login page", faults: faults(probetest.RedirectAt("", 302, "/login?next=/mcp")), want: bad(down, "", "server/discover", probe.ClassRedirect, 302, "server/discover!redirect")},

		{name: "F14a 421 for the host", faults: faults(probetest.NoSession(), probetest.StatusAt("", 421, "text/plain", "Invalid Host header")),
			want: bad(degraded, "", "initialize", probe.ClassHostRejected, 421, "server/discover!host_rejected initialize!host_rejected")},
		{name: "F14b 403 for the host", faults: faults(probetest.NoSession(), probetest.StatusAt("", 403, "text/plain", "Invalid Host: mcp.example")),
			want: bad(degraded, "", "initialize", probe.ClassHostRejected, 403, "server/discover!host_rejected initialize!host_rejected")},
		{name: "F14c 403 for the origin", faults: faults(probetest.NoSession(), probetest.StatusAt("", 403, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid Origin header"}}`)),
			want: bad(degraded, "", "initialize", probe.ClassHostRejected, 403, "server/discover!host_rejected initialize!host_rejected")},

		{name: "F15a a challenge page", faults: faults(probetest.BotWall()), want: bad(unknown, "", "server/discover", probe.ClassBlocked, 403, "server/discover!blocked")},
		{name: "F15b a page of a wall without its header", faults: faults(probetest.StatusAt("", 403, "text/html", "<html><title>Access denied</title>error code: 1010</html>")),
			want: bad(unknown, "", "server/discover", probe.ClassBlocked, 403, "server/discover!blocked")},
		{name: "F15c clients without a name are refused", faults: faults(probetest.RefuseAgents()), want: wellModern},
		{name: "F15d 429", faults: faults(probetest.RateLimited("30")), want: bad(unknown, "", "server/discover", probe.ClassRateLimited, 429, "server/discover!rate_limited")},
		{name: "F15e 429 in the middle", faults: legacyWith(probetest.StatusAt("tools/list", 429, "text/plain", "slow down")), era: legacy,
			want: bad(unknown, legacy, "tools/list", probe.ClassRateLimited, 429, "initialize initialized tools/list!rate_limited close")},

		{name: "F16a 401 that does not say how", faults: faults(probetest.NoSession(), probetest.Unauthorized("")),
			want: bad(gated, "", "initialize", probe.ClassAuthRequired, 401, "server/discover!auth_required initialize!auth_required", "server/discover auth_not_advertised", "initialize auth_not_advertised")},
		{name: "F16b 401 that says where to get a token", faults: faults(probetest.Unauthorized(token)), want: bad(gated, "", "server/discover", probe.ClassAuthRequired, 401, "server/discover!auth_required")},
		{name: "F16c 401 only where there is something to get", faults: legacyWith(probetest.HeaderAt("tools/list", "WWW-Authenticate", token), probetest.StatusAt("tools/list", 401, "text/plain", "Unauthorized")), era: legacy,
			want: bad(gated, legacy, "tools/list", probe.ClassAuthRequired, 401, "initialize initialized tools/list!auth_required close")},
		{name: "F16d 401 with a code that is a word", faults: faults(probetest.NoSession(), probetest.StatusAt("", 401, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":"UNAUTHORIZED","message":"token missing"}}`)),
			want: bad(gated, "", "initialize", probe.ClassAuthRequired, 401, "server/discover!auth_required initialize!auth_required", "server/discover auth_not_advertised", "initialize auth_not_advertised")},
		{name: "F16e 403", faults: faults(probetest.NoSession(), probetest.StatusAt("", 403, "application/json", `{"error":"forbidden"}`)),
			want: bad(gated, "", "initialize", probe.ClassAuthRequired, 403, "server/discover!auth_required initialize!auth_required")},
		{name: "F16f credentials that are not taken", faults: faults(probetest.NoSession(), probetest.Unauthorized(token)), headers: credentials,
			want: bad(gated, "", "initialize", probe.ClassCredentialRejected, 401, "server/discover!credential_rejected initialize!credential_rejected")},
		{name: "F16g credentials that do not suffice", headers: credentials, era: legacy,
			faults: legacyWith(probetest.HeaderAt("tools/list", "WWW-Authenticate", `Bearer error="insufficient_scope", scope="tools:read"`), probetest.StatusAt("tools/list", 403, "text/plain", "Forbidden")),
			want:   bad(gated, legacy, "tools/list", probe.ClassAuthForbidden, 403, "initialize initialized tools/list!auth_forbidden close")},

		{name: "F17a the id as a number", faults: faults(probetest.IDAt("tools/list", "7")), want: bad(down, modern, "tools/list", probe.ClassIDMismatch, 200, "server/discover tools/list!id_mismatch")},
		{name: "F17b the id 0, always", faults: legacyWith(probetest.IDAt("", "0")), era: legacy, want: bad(down, legacy, "initialize", probe.ClassIDMismatch, 200, "initialize!id_mismatch server/discover!rpc_error close", "server/discover id_mismatch")},
		{name: "F17c the id null under a result", faults: legacyWith(probetest.IDAt("tools/list", "null")), era: legacy, want: bad(down, legacy, "tools/list", probe.ClassIDMismatch, 200, "initialize initialized tools/list!id_mismatch close")},

		{name: "F18a a tool without a type of its input", faults: legacyWith(probetest.ResultAt("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{}}]}`)), era: legacy,
			want: bad(degraded, legacy, "tools/list", probe.ClassSchemaInvalid, 0, "initialize initialized tools/list!schema_invalid close")},
		{name: "F18b a tool that is null", faults: legacyWith(probetest.ResultAt("tools/list", `{"tools":[null,{"name":"b","inputSchema":{"type":"object"}}]}`)), era: legacy,
			want: bad(degraded, legacy, "tools/list", probe.ClassSchemaInvalid, 0, "initialize initialized tools/list!schema_invalid close")},

		{name: "F19a a cursor that does not move", faults: legacyWith(probetest.CursorLoop()), era: legacy, want: bad(degraded, legacy, "tools/list", probe.ClassCursorLoop, 0, "initialize initialized tools/list tools/list!cursor_loop close")},
		{name: "F19b the empty cursor ends an older list", faults: legacyWith(probetest.EmptyCursor()), era: legacy, want: wellRecalled},
		{name: "F19c the empty cursor is a cursor of the modern era", faults: faults(probetest.EmptyCursor(), probetest.PageSize(2)), want: want{verdict: up, era: modern, steps: "server/discover tools/list tools/list", tools: 3}},
		{name: "F19d the empty cursor for ever", faults: faults(probetest.ResultAt("tools/list", `{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[],"nextCursor":""}`)),
			want: bad(degraded, modern, "tools/list", probe.ClassCursorLoop, 0, "server/discover tools/list tools/list!cursor_loop")},

		{name: "F20a prompts only", faults: legacyWith(probetest.NoTools()), era: legacy, want: want{verdict: up, era: legacy, tools: -1, steps: "initialize initialized prompts/list close"}},
		{name: "F20b no capability at all", faults: legacyWith(probetest.ResultAt("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}`)), era: legacy,
			want: want{verdict: up, era: legacy, tools: -1, steps: "initialize initialized close"}},
		{name: "F20c tools declared and not known", faults: legacyWith(probetest.RPCErrorAt("tools/list", 200, -32601, "Method not found")), era: legacy,
			want: bad(down, legacy, "tools/list", probe.ClassRPCError, -32601, "initialize initialized tools/list!rpc_error close")},

		{name: "F21a the transport of 2024", start: probetest.HTTPSSE, want: want{verdict: up, era: sse, tools: 3, steps: sseSteps}},
		{name: "F21b the stream names no endpoint", start: probetest.HTTPSSE, faults: faults(probetest.FirstEvent(": hello\n\n")), within: 900 * time.Millisecond,
			want: bad(down, "", "sse", probe.ClassSSEEndpointMissing, 0, "server/discover!http_status initialize!http_status sse!sse_endpoint_missing")},
		{name: "F21c a POST is answered with an endpoint event", start: probetest.HTTPSSE, faults: faults(probetest.PostStreams()),
			want: want{verdict: up, era: sse, tools: 3, steps: "server/discover!sse_no_response initialize!sse_no_response " + sseRecalled}},
		{name: "F21d the endpoint lies on an internal host", start: probetest.HTTPSSE, faults: faults(probetest.Endpoint("http://mcp-7f9c:8000/message?sessionId=$id")), era: sse,
			want: bad(down, sse, "sse", probe.ClassSSEEndpointInvalid, 0, "sse!sse_endpoint_invalid")},
		{name: "F21e the endpoint lacks the prefix of a proxy", start: probetest.HTTPSSE, faults: faults(probetest.Endpoint("/messages/?session_id=$id")), era: sse,
			want: bad(down, sse, "initialize", probe.ClassSSEEndpointInvalid, 404, "sse initialize!sse_endpoint_invalid")},
		{name: "F21f a POST to an unknown stream hangs", start: probetest.HTTPSSE, faults: faults(probetest.HangAt("initialize")), era: sse, within: 600 * time.Millisecond,
			want: bad(down, sse, "initialize", probe.ClassTimeout, 0, "sse initialize!timeout")},
		{name: "F21g the list is said to have changed first", start: probetest.HTTPSSE, faults: faults(probetest.ChangedFirst()), era: sse, want: wellSSE},

		{name: "further: a session outlives its DELETE", faults: legacyWith(probetest.KeepSessions()), era: legacy, want: func() want { w := wellRecalled; w.sessions = 1; return w }()},
		{name: "further: no content type", faults: faults(probetest.HeaderAt("tools/list", "Content-Type", "")), want: odd(wellModern, "tools/list content_type")},
		{name: "further: JSON as plain text", faults: faults(probetest.HeaderAt("", "Content-Type", "text/plain; charset=utf-8")), want: odd(wellModern, "server/discover content_type", "tools/list content_type")},
		{name: "further: plain text that is none", faults: faults(probetest.StatusAt("tools/list", 200, "text/plain", "OK")), want: bad(down, modern, "tools/list", probe.ClassContentType, 200, "server/discover tools/list!content_type")},
		{name: "further: a length that is too large by 2", faults: faults(probetest.TooLongAt("tools/list", 2)), want: bad(down, modern, "tools/list", probe.ClassTruncatedBody, 200, "server/discover tools/list!truncated_body")},
		{name: "further: a cold start", faults: legacyWith(probetest.Once(probetest.SlowAt("initialize", 300*time.Millisecond))), era: legacy, within: 5 * time.Second, want: wellRecalled},
		{name: "further: a child that dies after one request", faults: legacyWith(probetest.CloseAt("tools/list")), era: legacy,
			want: bad(down, legacy, "tools/list", probe.ClassConnect, 0, "initialize initialized tools/list!connect close")},
		{name: "further: an answer with a code of 0", faults: legacyWith(probetest.RPCErrorAt("tools/list", 200, 0, `method "tools/list" is invalid during session initialization`)), era: legacy,
			want: bad(down, legacy, "tools/list", probe.ClassRPCError, 0, "initialize initialized tools/list!rpc_error close")},
		{name: "further: older versions under -32022", want: want{verdict: up, era: legacy, tools: 3, steps: "server/discover!version_unsupported " + shortSteps},
			faults: legacyWith(probetest.EnvelopeAt("server/discover", `{"jsonrpc":"2.0","id":$id,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}`))},
	}
	for _, q := range rows {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel()
			q.run(t)
		})
	}
	assertNumbered(t, rows)
}

func (q quirk) run(t *testing.T) {
	t.Helper()
	start := q.start
	if start == nil {
		start = probetest.MCP
	}
	s := start(t, q.faults...)
	p := prober()
	if pool := s.CertPool(); pool != nil {
		p.RootCAs = pool.Clone()
	}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: q.era, Timeout: q.within, Headers: q.headers})
	check(t, r, q.want)
	requests := s.Requests()
	if r.Era != probe.EraSSE && slices.ContainsFunc(requests, func(r probetest.Request) bool {
		return r.HTTPMethod == http.MethodGet && !strings.HasPrefix(r.URI, "/.well-known/")
	}) && !strings.Contains(q.want.steps, "sse") {
		t.Errorf("sent a GET: the server was asked %q", join(s.Steps()))
	}
	if n := s.Sessions(); n != q.want.sessions && !strings.Contains(q.want.steps, "close!") {
		t.Errorf("%d sessions left open, want %d", n, q.want.sessions)
	}
	awaitNoFeeds(t, s)
}

// assertNumbered reports the quirks of the collection that have no row.
func assertNumbered(t *testing.T, rows []quirk) {
	t.Helper()
	for n := 1; n <= 21; n++ {
		prefix := "F" + strconv.Itoa(n)
		if !slices.ContainsFunc(rows, func(q quirk) bool {
			rest, ok := strings.CutPrefix(q.name, prefix)
			return ok && (rest[0] < '0' || rest[0] > '9')
		}) {
			t.Errorf("no row for quirk %s", prefix)
		}
	}
}
