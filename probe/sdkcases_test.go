package probe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// The cases that two common clients were run against, with their controls. Where they got it wrong (an answer under
// another id that is waited for or taken, a cursor that is followed for ever, a status that is lost, event streams refused
// that are written by the grammar, a legacy server called broken for its answer to server/discover), the check must not.
func TestCasesThatClientsGetWrong(t *testing.T) {
	t.Parallel()
	const (
		modern, legacy                     = probe.EraModern, probe.EraLegacy
		up, degraded, down, gated, unknown = probe.Up, probe.Degraded, probe.Down, probe.Gated, probe.Unknown
	)
	list := func(class probe.Class) string { return "initialize initialized tools/list!" + string(class) + " close" }
	// inList is a failure of tools/list in the older era.
	inList := func(v probe.Verdict, class probe.Class, code int, f ...probetest.Fault) quirk {
		return quirk{faults: legacyWith(f...), era: legacy, want: bad(v, legacy, "tools/list", class, code, list(class))}
	}
	// tools is an answer to tools/list.
	tools := func(tools string) probetest.Fault {
		return probetest.ResultAt("tools/list", fmt.Sprintf(`{"tools":%s}`, tools))
	}
	// handshake is an answer to initialize.
	handshake := func(members string) probetest.Fault {
		return probetest.ResultAt("initialize", `{"protocolVersion":"2025-11-25"`+members+`}`)
	}
	envelope := func(text string) probetest.Fault { return probetest.EnvelopeAt("tools/list", text) }
	healthy := func(w want, f ...probetest.Fault) quirk { return quirk{faults: f, era: w.era, want: w} }
	fallback := func(discover string, warnings ...string) want {
		return want{verdict: up, era: legacy, tools: 3, steps: "server/discover!" + discover + " " + shortSteps, warnings: warnings}
	}
	for name, q := range map[string]quirk{
		"control: modern":                 healthy(wellModern),
		"control: legacy":                 healthy(wellRecalled, legacyWith()...),
		"control: legacy, JSON bodies":    healthy(wellRecalled, legacyWith(probetest.JSONBody())...),
		"control: legacy, no session":     healthy(wellOpen, legacyWith(probetest.NoSession())...),
		"control: modern, event streams":  healthy(wellModern, probetest.SSE()),
		"control: legacy, many pages":     healthy(want{verdict: up, era: legacy, tools: 5, steps: "initialize initialized tools/list tools/list tools/list close"}, legacyWith(probetest.Tools(5), probetest.PageSize(2))...),
		"control: modern, many pages":     healthy(want{verdict: up, era: modern, tools: 5, steps: modernSteps + " tools/list tools/list"}, probetest.Tools(5), probetest.PageSize(2)),
		"control: an empty list":          healthy(want{verdict: up, era: modern, steps: modernSteps}, probetest.Tools(0)),
		"control: legacy, not remembered": {faults: legacyWith(), want: wellLegacy},

		"an answer under another id":              inList(down, probe.ClassIDMismatch, 200, probetest.WrongIDAt("tools/list")),
		"a number for a string":                   inList(down, probe.ClassIDMismatch, 200, probetest.IDAt("tools/list", "3")),
		"an answer without an id":                 inList(down, probe.ClassIDMismatch, 200, envelope(`{"jsonrpc":"2.0","result":{"tools":[]}}`)),
		"a cursor that repeats":                   {faults: legacyWith(probetest.CursorLoop()), era: legacy, want: bad(degraded, legacy, "tools/list", probe.ClassCursorLoop, 0, "initialize initialized tools/list tools/list!cursor_loop close")},
		"the empty cursor, legacy":                healthy(wellRecalled, legacyWith(probetest.EmptyCursor())...),
		"the empty cursor, modern":                healthy(want{verdict: up, era: modern, tools: 3, steps: modernSteps + " tools/list"}, probetest.EmptyCursor(), probetest.PageSize(2)),
		"no jsonrpc member":                       inList(down, probe.ClassInvalidEnvelope, 200, envelope(`{"id":$id,"result":{"tools":[]}}`)),
		"jsonrpc 1.0":                             inList(down, probe.ClassInvalidEnvelope, 200, envelope(`{"jsonrpc":"1.0","id":$id,"result":{"tools":[]}}`)),
		"neither result nor error":                inList(down, probe.ClassInvalidEnvelope, 200, envelope(`{"jsonrpc":"2.0","id":$id}`)),
		"both result and error":                   inList(down, probe.ClassInvalidEnvelope, 200, envelope(`{"jsonrpc":"2.0","id":$id,"result":{"tools":[]},"error":{"code":1,"message":"x"}}`)),
		"a result that is null":                   inList(down, probe.ClassInvalidEnvelope, 200, envelope(`{"jsonrpc":"2.0","id":$id,"result":null}`)),
		"no tools member":                         inList(degraded, probe.ClassSchemaInvalid, 0, probetest.ResultAt("tools/list", `{}`)),
		"tools that are an object":                inList(degraded, probe.ClassSchemaInvalid, 0, tools(`{}`)),
		"an input schema of type string":          inList(degraded, probe.ClassSchemaInvalid, 0, tools(`[{"name":"a","inputSchema":{"type":"string"}}]`)),
		"a tool that is null":                     inList(degraded, probe.ClassSchemaInvalid, 0, tools(`[null]`)),
		"a tool without a name":                   inList(degraded, probe.ClassSchemaInvalid, 0, tools(`[{"inputSchema":{"type":"object"}}]`)),
		"the same tool twice":                     inList(degraded, probe.ClassSchemaInvalid, 0, tools(`[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]`)),
		"a handshake without a server":            {faults: legacyWith(handshake(`,"capabilities":{"tools":{}}`)), era: legacy, want: bad(degraded, legacy, "initialize", probe.ClassHandshakeInvalid, 0, "initialize!handshake_invalid initialized tools/list close")},
		"a handshake of a version and no more":    {faults: legacyWith(handshake(``)), era: legacy, want: bad(degraded, legacy, "initialize", probe.ClassHandshakeInvalid, 0, "initialize!handshake_invalid initialized close", "initialize handshake_invalid")},
		"a handshake without a version":           {faults: legacyWith(probetest.ResultAt("initialize", `{"capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}`)), era: legacy, want: bad(degraded, legacy, "initialize", probe.ClassHandshakeInvalid, 0, "initialize!handshake_invalid initialized tools/list close")},
		"a modern result without its members":     {faults: faults(probetest.ModernOnly(), tools(`[]`)), want: bad(degraded, modern, "tools/list", probe.ClassSchemaInvalid, 0, "server/discover tools/list!schema_invalid initialize!version_unsupported")},
		"something behind the JSON":               inList(down, probe.ClassInvalidJSON, 200, envelope(`{"jsonrpc":"2.0","id":$id,"result":{"tools":[]}} OK`), probetest.JSONBody()),
		"no JSON":                                 inList(down, probe.ClassInvalidJSON, 200, probetest.GarbageAt("tools/list")),
		"an empty body":                           inList(down, probe.ClassInvalidJSON, 200, probetest.StatusAt("tools/list", 200, "application/json", "")),
		"half a body":                             inList(down, probe.ClassTruncatedBody, 200, probetest.JSONBody(), probetest.HalfBodyAt("tools/list")),
		"a stream with a line without a colon":    healthy(wellRecalled, legacyWith(probetest.StreamTextAt("tools/list", "event\ndata: $message\n\n"))...),
		"a stream with a byte order mark":         healthy(wellRecalled, legacyWith(probetest.StreamTextAt("tools/list", "\uFEFFdata: $message\n\n"))...),
		"a stream of lines that end in CR":        healthy(wellRecalled, legacyWith(probetest.StreamTextAt("tools/list", ": hello\rdata: $message\r\r"))...),
		"a stream of lines that end in CRLF":      healthy(wellRecalled, legacyWith(probetest.StreamTextAt("tools/list", "event: message\r\ndata:$message\r\n\r\n"))...),
		"a stream with events of other names":     healthy(wellRecalled, legacyWith(probetest.StreamTextAt("tools/list", "event: ping\ndata: {}\n\ndata: $message\n\n"))...),
		"a stream that ends in the answer":        inList(down, probe.ClassSSEFraming, 200, probetest.StreamTextAt("tools/list", "data: $message\n")),
		"a stream without an answer":              inList(down, probe.ClassSSENoResponse, 200, probetest.StreamTextAt("tools/list", ": nothing\n\n")),
		"JSON without a content type":             healthy(odd(wellRecalled, "tools/list content_type"), legacyWith(probetest.JSONBody(), probetest.HeaderAt("tools/list", "Content-Type", ""))...),
		"JSON as plain text":                      healthy(odd(wellRecalled, "tools/list content_type"), legacyWith(probetest.JSONBody(), probetest.HeaderAt("tools/list", "Content-Type", "text/plain"))...),
		"500":                                     inList(down, probe.ClassHTTPStatus, 500, probetest.StatusAt("tools/list", 500, "text/plain", "boom")),
		"500 with an error":                       inList(down, probe.ClassRPCError, -32603, probetest.RPCErrorAt("tools/list", 500, -32603, "boom")),
		"503 with a time to come back":            inList(down, probe.ClassHTTPStatus, 503, probetest.HeaderAt("tools/list", "Retry-After", "17"), probetest.StatusAt("tools/list", 503, "text/plain", "deploying")),
		"429 with a time to come back":            inList(unknown, probe.ClassRateLimited, 429, probetest.HeaderAt("tools/list", "Retry-After", "17"), probetest.StatusAt("tools/list", 429, "text/plain", "slow down")),
		"401 with what it wants":                  {faults: faults(probetest.Unauthorized(`Bearer realm="mcp"`)), want: bad(gated, "", "server/discover", probe.ClassAuthRequired, 401, "server/discover!auth_required")},
		"404 with words about something else":     {faults: legacyWith(probetest.NoSession(), probetest.StatusAt("tools/list", 404, "text/plain", "no such page")), era: legacy, want: bad(down, legacy, "tools/list", probe.ClassHTTPStatus, 404, "initialize initialized tools/list!http_status")},
		"discover is empty":                       {faults: faults(probetest.DiscoverQuirk(probetest.DiscoverEmpty)), want: fallback("invalid_json")},
		"discover is a page":                      {faults: faults(probetest.DiscoverQuirk(probetest.DiscoverHTML)), want: fallback("content_type")},
		"discover hangs":                          {faults: faults(probetest.DiscoverQuirk(probetest.DiscoverHangs)), within: 3 * time.Second, want: fallback("timeout")},
		"discover is 401":                         {faults: faults(probetest.DiscoverQuirk(probetest.DiscoverUnauthorized)), want: fallback("auth_required", "server/discover auth_not_advertised")},
		"discover is 503":                         {faults: faults(probetest.DiscoverQuirk(probetest.DiscoverUnavailable)), want: fallback("http_status")},
		"discover has a foreign id":               {faults: faults(probetest.DiscoverQuirk(probetest.DiscoverForeignID)), want: fallback("rpc_error", "server/discover id_mismatch")},
		"307 to a slash":                          healthy(odd(wellModern, "server/discover redirect"), probetest.RedirectAt("", 307, "/mcp/")),
		"302 to a login page":                     {faults: faults(probetest.RedirectAt("", 302, "/login")), want: bad(down, "", "server/discover", probe.ClassRedirect, 302, "server/discover!redirect")},
		"initialized answered 400":                {faults: legacyWith(probetest.StatusAt("initialized", 400, "text/plain", "what?")), era: legacy, want: bad(down, legacy, "initialized", probe.ClassHTTPStatus, 400, "initialize initialized!http_status close")},
		"negotiates 2024-10-07":                   {faults: legacyWith(probetest.BadVersion("2024-10-07")), era: legacy, want: bad(degraded, legacy, "initialize", probe.ClassVersionUnofficial, 0, "initialize!version_unofficial initialized tools/list close")},
		"negotiates 2099-01-01":                   {faults: legacyWith(probetest.BadVersion("2099-01-01")), era: legacy, want: bad(degraded, legacy, "initialize", probe.ClassVersionUnofficial, 0, "initialize!version_unofficial initialized tools/list close")},
		"prompts only":                            healthy(want{verdict: up, era: legacy, tools: -1, steps: "initialize initialized prompts/list close"}, legacyWith(probetest.NoTools())...),
		"a session that is 404 in the middle":     {faults: legacyWith(probetest.Once(probetest.LoseSessionAt("tools/list", 404, -32001, "Session not found"))), era: legacy, want: odd(want{verdict: up, era: legacy, tools: 3, steps: "initialize initialized tools/list!session_lost initialize initialized tools/list close"}, "tools/list session_lost")},
		"a version to come, and no other":         {faults: faults(probetest.ModernOnly(), probetest.BadVersion("2027-01-01")), want: bad(down, "", "server/discover", probe.ClassVersionUnsupported, -32022, "server/discover!version_unsupported")},
		"an answer that never comes":              {faults: legacyWith(probetest.HangAt("tools/list")), era: legacy, within: 600 * time.Millisecond, want: bad(down, legacy, "tools/list", probe.ClassTimeout, 0, list(probe.ClassTimeout))},
		"a connection that is reset":              inList(down, probe.ClassConnect, 0, probetest.ResetAt("tools/list")),
		"an error that speaks of another session": inList(down, probe.ClassRPCError, -32603, probetest.RPCErrorAt("tools/list", 200, -32603, "cannot open a database session")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q.run(t)
		})
	}
}

// Retry-After is not lost, whichever status brings it.
func TestTheTimeToComeBackIsKept(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		s := probetest.MCP(t, probetest.HeaderAt("tools/list", "Retry-After", "17"), probetest.StatusAt("tools/list", status, "text/plain", "later"))
		if r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL}); r.RetryAfter != 17*time.Second {
			t.Errorf("status %d: come back after %s, want 17s", status, r.RetryAfter)
		}
	}
}
