package probetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The protocol versions that an MCP server here speaks.
const modernVersion = "2026-07-28"

var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// The _meta members of a modern message.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
)

// JSON-RPC error codes of MCP servers.
const (
	codeUnknownMethod      = -32601
	codeInvalidParams      = -32602
	codeServerError        = -32000 // what the TypeScript SDK says of everything a request lacks
	codeSessionNotFound    = -32001
	codeHeaderMismatch     = -32020
	codeUnsupportedVersion = -32022
)

// MCP starts an MCP server over Streamable HTTP at /mcp, with three tools. It speaks 2026-07-28 without sessions,
// answering in JSON, and 2025-11-25 and older with sessions, answering in event streams.
func MCP(t testing.TB, faults ...Fault) *Server {
	t.Helper()
	return newServer(t, "/mcp", (*exchange).answerMCP, faults)
}

// LegacyOnly makes an MCP server speak 2025-11-25 and older only.
func LegacyOnly() Fault { return func(b *behaviour) { b.legacyOnly = true } }

// ModernOnly makes an MCP server speak 2026-07-28 only.
func ModernOnly() Fault { return func(b *behaviour) { b.modernOnly = true } }

// Tools sets the number of tools.
func Tools(n int) Fault { return func(b *behaviour) { b.tools = n } }

// NoTools makes a server offer one prompt only: it declares no tools and does not know tools/list.
func NoTools() Fault { return func(b *behaviour) { b.noTools = true } }

// PageSize cuts the list of tools into pages of n.
func PageSize(n int) Fault { return func(b *behaviour) { b.pageSize = n } }

// CursorLoop makes every page of tools point to the same next page.
func CursorLoop() Fault { return func(b *behaviour) { b.cursorLoop = true } }

// EmptyCursor uses the empty string as a cursor: of the second page in a modern answer, where only an absent cursor ends
// the list, and of the last page in a legacy one, where it means the end.
func EmptyCursor() Fault { return func(b *behaviour) { b.emptyCursor = true } }

// SSE makes every answer an event stream, with an event of empty data, a comment and a notification before the reply.
func SSE() Fault { return func(b *behaviour) { b.framing = framingSSE } }

// JSONBody makes every answer plain JSON.
func JSONBody() Fault { return func(b *behaviour) { b.framing = framingJSON } }

// BadVersion makes a server insist on a protocol version that it was not asked for: initialize answers it, and modern
// requests are refused with it as the only version supported.
func BadVersion(version string) Fault { return func(b *behaviour) { b.version = version } }

// StrictVersion makes a legacy server refuse to initialize with any other version, where it should answer its own.
func StrictVersion(version string) Fault {
	return all(LegacyOnly(), BadVersion(version), func(b *behaviour) { b.strictVersion = true })
}

// NoSession makes a legacy server hand out no sessions.
func NoSession() Fault { return func(b *behaviour) { b.noSession = true } }

// LoseSession makes a server forget every session right after its initialize.
func LoseSession() Fault {
	return LoseSessionAt("", http.StatusNotFound, codeSessionNotFound, "Session not found")
}

// LoseSessionAt makes a server forget a session when it comes to a step, and say so in words and numbers of its own.
func LoseSessionAt(step string, status, code int, message string) Fault {
	return func(b *behaviour) {
		b.twists = append(b.twists, twist{
			match: func(x *exchange) bool {
				return x.session() != "" && x.Step != "initialize" && x.Step != "close" && at(step)(x)
			},
			replace: func(x *exchange) {
				x.s.mu.Lock()
				delete(x.s.sessions, x.session())
				x.s.mu.Unlock()
				x.stream = false
				x.rpcError(status, code, message, nil)
				x.send()
			},
		})
	}
}

// KeepSessions makes a server say that it has closed a session, and keep it.
func KeepSessions() Fault { return func(b *behaviour) { b.keepSessions = true } }

// EchoVersion makes a server negotiate any version that it is asked for.
func EchoVersion() Fault { return func(b *behaviour) { b.echoVersion = true } }

// NoVersionHeader makes a server refuse an initialize that carries the header by which later requests name the version
// that was negotiated.
func NoVersionHeader() Fault {
	return func(b *behaviour) {
		b.twists = append(b.twists, twist{
			match: func(x *exchange) bool { return x.Step == "initialize" && x.Header.Get("Mcp-Protocol-Version") != "" },
			replace: func(x *exchange) {
				x.rpcError(http.StatusBadRequest, codeServerError, "Bad Request: Unsupported protocol version", nil)
				x.send()
			},
		})
	}
}

// Padding makes the description of each tool n bytes long.
func Padding(n int) Fault { return func(b *behaviour) { b.padding = n } }

// Quirk is a way in which servers that only know initialize answer server/discover.
type Quirk string

// What has been seen of legacy servers that were asked to server/discover.
const (
	DiscoverHangs          Quirk = "hangs"
	DiscoverUnauthorized   Quirk = "401 though initialize needs no credentials"
	DiscoverUnavailable    Quirk = "503"
	DiscoverEmpty          Quirk = "200 without a body"
	DiscoverHTML           Quirk = "200 with a web page"
	DiscoverForeignID      Quirk = "an error under the id server-error"
	DiscoverNullID         Quirk = "an error under a null id"
	DiscoverUnknownMethod  Quirk = "200 with -32601"
	DiscoverWrappedUnknown Quirk = "401 with -32601 in its body"
	DiscoverLegacyVersions Quirk = "200 with legacy versions only"
)

// Quirks lists every Quirk.
func Quirks() []Quirk {
	return []Quirk{
		DiscoverHangs, DiscoverUnauthorized, DiscoverUnavailable, DiscoverEmpty, DiscoverHTML, DiscoverForeignID,
		DiscoverNullID, DiscoverUnknownMethod, DiscoverWrappedUnknown, DiscoverLegacyVersions,
	}
}

// DiscoverQuirk makes an MCP server a legacy one that answers server/discover in an odd way.
func DiscoverQuirk(q Quirk) Fault {
	const step = "server/discover"
	answers := map[Quirk]Fault{
		DiscoverHangs:          HangAt(step),
		DiscoverUnauthorized:   StatusAt(step, http.StatusUnauthorized, "application/json", `{"error":"unauthorized"}`),
		DiscoverUnavailable:    StatusAt(step, http.StatusServiceUnavailable, "text/plain", "upstream unavailable"),
		DiscoverEmpty:          StatusAt(step, http.StatusOK, "", ""),
		DiscoverHTML:           HTMLAt(step),
		DiscoverForeignID:      all(RPCErrorAt(step, http.StatusBadRequest, -32600, "Bad Request: Missing session ID"), IDAt(step, `"server-error"`)),
		DiscoverNullID:         all(RPCErrorAt(step, http.StatusBadRequest, codeServerError, "Bad Request: Server not initialized"), IDAt(step, "null")),
		DiscoverUnknownMethod:  RPCErrorAt(step, http.StatusOK, codeUnknownMethod, "Method not found"),
		DiscoverWrappedUnknown: RPCErrorAt(step, http.StatusUnauthorized, codeUnknownMethod, "Method not found"),
		DiscoverLegacyVersions: ResultAt(step, `{"supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"public"}`),
	}
	answer, ok := answers[q]
	if !ok {
		panic(fmt.Sprintf("probetest: unknown quirk %q", q))
	}
	return all(LegacyOnly(), answer)
}

func (x *exchange) answerMCP() {
	switch {
	case x.HTTPMethod == http.MethodDelete && !x.b.modernOnly:
		x.deleteSession()
	case x.HTTPMethod == http.MethodGet && x.Header.Get("Last-Event-Id") != "":
		x.takeUp()
	case x.HTTPMethod != http.MethodPost:
		x.header.Set("Allow", "POST")
		x.plain(http.StatusMethodNotAllowed, "text/plain", "Method Not Allowed")
	case !x.acceptsBoth():
		x.rpcError(http.StatusNotAcceptable, codeServerError,
			"Not Acceptable: Client must accept both application/json and text/event-stream", nil)
	case !x.accepted():
	case x.speaksModern():
		x.stream = x.b.framing == framingSSE
		x.chatty = x.stream
		x.answerModern()
	default:
		x.answerLegacy()
		x.stream = x.b.framing != framingJSON && x.status == http.StatusOK && x.payload != nil
		x.chatty = x.b.framing == framingSSE
		x.priming = x.stream
	}
}

// acceptsBoth reports whether the client names both media types literally: */* is not enough for common servers.
func (x *exchange) acceptsBoth() bool {
	accept := strings.Join(x.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// speaksModern reports whether the request is to be answered as a modern one.
func (x *exchange) speaksModern() bool {
	if x.b.legacyOnly || x.b.modernOnly {
		return x.b.modernOnly
	}
	_, ok := x.meta()[metaVersion]
	return ok || x.Header.Get("Mcp-Method") != "" || x.RPCMethod == "server/discover" ||
		x.Header.Get("Mcp-Protocol-Version") == modernVersion
}

func (x *exchange) meta() map[string]any {
	var params struct {
		Meta map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(x.Params, &params) // params that are no object have no _meta
	return params.Meta
}

func (x *exchange) answerModern() {
	supported := modernVersion
	if x.b.version != "" {
		supported = x.b.version
	}
	meta := x.meta()
	version, _ := meta[metaVersion].(string)
	_, capable := meta[metaCapabilities].(map[string]any)
	switch header := x.Header.Get("Mcp-Protocol-Version"); {
	case x.RPCMethod == "initialize":
		x.rpcError(http.StatusBadRequest, codeUnsupportedVersion, "Unsupported protocol version",
			map[string]any{"supported": []string{supported}, "requested": "initialize"})
	case version == "":
		x.rpcError(http.StatusBadRequest, codeInvalidParams, "Invalid params: missing _meta "+metaVersion, nil)
	case !capable:
		x.rpcError(http.StatusBadRequest, codeInvalidParams, "Invalid params: missing _meta "+metaCapabilities, nil)
	case header != version:
		x.rpcError(http.StatusBadRequest, codeHeaderMismatch, "MCP-Protocol-Version does not match _meta", nil)
	case x.Header.Get("Mcp-Method") != x.RPCMethod:
		x.rpcError(http.StatusBadRequest, codeHeaderMismatch, "Mcp-Method does not match the method", nil)
	case version != supported:
		x.rpcError(http.StatusBadRequest, codeUnsupportedVersion, "Unsupported protocol version",
			map[string]any{"supported": []string{supported}, "requested": version})
	case x.RPCMethod == "server/discover":
		x.modernResult(map[string]any{"supportedVersions": []string{supported}, "capabilities": x.capabilities()})
	case x.RPCMethod == "tools/list" && !x.b.noTools:
		x.listTools()
	case x.RPCMethod == "prompts/list" && x.b.noTools:
		x.answerList("prompts", prompts)
	default:
		x.rpcError(http.StatusNotFound, codeUnknownMethod, "Method not found: "+x.RPCMethod, nil)
	}
}

func (x *exchange) modernResult(result map[string]any) {
	result["resultType"], result["ttlMs"], result["cacheScope"] = "complete", 0, "public"
	result["_meta"] = map[string]any{metaServerInfo: serverInfo}
	x.result(result)
}

var prompts = []map[string]any{{"name": "greet", "description": "Says hello."}}

var serverInfo = map[string]any{"name": "probetest", "version": "1.0.0"}

func (x *exchange) capabilities() map[string]any {
	if x.b.noTools {
		return map[string]any{"prompts": map[string]any{}}
	}
	return map[string]any{"tools": map[string]any{}}
}

func (x *exchange) answerLegacy() {
	version := x.Header.Get("Mcp-Protocol-Version")
	switch {
	case x.RPCMethod == "initialize":
		x.initialize()
	case !x.b.noSession && x.session() == "":
		x.nullID = true
		x.rpcError(http.StatusBadRequest, codeServerError, "Bad Request: Server not initialized", nil)
	case !x.b.noSession && !x.knowsSession():
		x.rpcError(http.StatusNotFound, codeSessionNotFound, "Session not found", nil)
	case version != "" && !slices.Contains(x.legacyVersions(), version):
		x.nullID = true
		x.rpcError(http.StatusBadRequest, codeServerError, "Bad Request: Unsupported protocol version: "+version+
			" (supported versions: "+strings.Join(x.legacyVersions(), ", ")+")", nil)
	case x.ID == nil:
		x.status = http.StatusAccepted
	case x.RPCMethod == "tools/list" && !x.b.noTools:
		x.listTools()
	case x.RPCMethod == "prompts/list" && x.b.noTools:
		x.answerList("prompts", prompts)
	default:
		x.rpcError(http.StatusOK, codeUnknownMethod, "Method not found", nil)
	}
}

func (x *exchange) legacyVersions() []string {
	if x.b.version != "" {
		return []string{x.b.version}
	}
	return legacyVersions
}

func (x *exchange) initialize() {
	var asked struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
	}
	err := json.Unmarshal(x.Params, &asked)
	if err != nil || asked.ProtocolVersion == "" || asked.Capabilities == nil || asked.ClientInfo.Name == "" || asked.ClientInfo.Version == "" {
		x.rpcError(http.StatusBadRequest, codeInvalidParams, "Invalid params: protocolVersion, capabilities and clientInfo are required", nil)
		return
	}
	supported := x.legacyVersions()
	known := slices.Contains(supported, asked.ProtocolVersion) || x.b.echoVersion
	if x.b.strictVersion && !known {
		x.rpcError(http.StatusBadRequest, codeInvalidParams, "Unsupported protocol version",
			map[string]any{"supported": supported, "requested": asked.ProtocolVersion})
		return
	}
	version := supported[0]
	if known {
		version = asked.ProtocolVersion
	}
	if !x.b.noSession {
		x.header.Set("Mcp-Session-Id", x.openSession())
	}
	x.result(map[string]any{"protocolVersion": version, "capabilities": x.capabilities(), "serverInfo": serverInfo})
}

func (x *exchange) session() string { return x.Header.Get("Mcp-Session-Id") }

func (x *exchange) openSession() string {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.opened++
	id := fmt.Sprintf("session-%d", x.s.opened)
	x.s.sessions[id] = true
	return id
}

func (x *exchange) knowsSession() bool {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.sessions[x.session()]
}

func (x *exchange) deleteSession() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if !x.s.sessions[x.session()] {
		x.rpcError(http.StatusNotFound, codeSessionNotFound, "Session not found", nil)
		return
	}
	if !x.b.keepSessions {
		delete(x.s.sessions, x.session())
	}
}

// listTools answers one page. Cursors are page numbers, the first page has none.
func (x *exchange) listTools() {
	size := x.b.pageSize
	if size < 1 {
		size = max(x.b.tools, 1)
	}
	page, ok := x.page()
	first := page * size
	if !ok || page > 0 && first >= x.b.tools {
		x.rpcError(http.StatusBadRequest, codeInvalidParams, "Invalid cursor", nil)
		return
	}
	tools := []map[string]any{}
	for i := first; i < min(first+size, x.b.tools); i++ {
		tools = append(tools, tool(i, x.b.padding))
	}
	result := map[string]any{"tools": tools}
	modern := x.speaksModern()
	switch more := first+size < x.b.tools; {
	case x.b.cursorLoop:
		result["nextCursor"] = "again"
	case more && modern && x.b.emptyCursor && page == 0, !more && !modern && x.b.emptyCursor:
		result["nextCursor"] = ""
	case more:
		result["nextCursor"] = strconv.Itoa(page + 1)
	}
	if modern {
		x.modernResult(result)
		return
	}
	x.result(result)
}

// page returns the number of the page that is asked for, and false for a cursor that was never handed out.
func (x *exchange) page() (int, bool) {
	cursor := x.cursor()
	switch {
	case cursor == nil || x.b.cursorLoop:
		return 0, true
	case *cursor == "" && x.b.emptyCursor:
		return 1, x.speaksModern()
	}
	page, err := strconv.Atoi(*cursor)
	return page, err == nil && page > 0
}

func (x *exchange) cursor() *string {
	var params struct {
		Cursor *string `json:"cursor"`
	}
	_ = json.Unmarshal(x.Params, &params) // no params: the first page
	return params.Cursor
}

func tool(i, padding int) map[string]any {
	return map[string]any{
		"name":        fmt.Sprintf("tool-%d", i+1),
		"description": "Answers what it was asked." + strings.Repeat(" x", padding/2),
		"inputSchema": map[string]any{
			"type":       "object",
			"properties": map[string]any{"question": map[string]any{"type": "string"}},
		},
	}
}
