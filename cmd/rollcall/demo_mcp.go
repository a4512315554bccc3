package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// demoRequest is a JSON-RPC request or, without an ID, a notification.
type demoRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// readDemoRequest reads a request, or answers that it is none and returns false.
func readDemoRequest(w http.ResponseWriter, r *http.Request) (demoRequest, bool) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "this is a JSON-RPC endpoint: use POST", http.StatusMethodNotAllowed)
		return demoRequest{}, false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
		return demoRequest{}, false
	}
	var request demoRequest
	if err := json.Unmarshal(body, &request); err != nil || request.Method == "" {
		demoRequest{}.refuse(w, http.StatusBadRequest, -32600, "Invalid Request", nil)
		return demoRequest{}, false
	}
	return request, true
}

// version is the protocol version that a modern MCP request names, empty when it names none.
func (q demoRequest) version() string {
	var params struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	if json.Unmarshal(q.Params, &params) != nil {
		return ""
	}
	return params.Meta.Version
}

// answer sends a result as JSON.
func (q demoRequest) answer(w http.ResponseWriter, result any) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(q.message("result", result))
}

// refuse sends an error as JSON. Data may be nil.
func (q demoRequest) refuse(w http.ResponseWriter, status, code int, text string, data map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := map[string]any{"code": code, "message": text}
	if data != nil {
		e["data"] = data
	}
	w.Write(q.message("error", e))
}

// stream sends a reply as an event stream, after an event of empty data as servers with sessions do.
func (q demoRequest) stream(w http.ResponseWriter, member string, value any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	fmt.Fprintf(w, "id: 0\ndata: \n\nevent: message\nid: 1\ndata: %s\n\n", q.message(member, value))
}

func (q demoRequest) message(member string, value any) []byte {
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": q.ID, member: value})
	if err != nil {
		panic(err) // strings and numbers, and an id that was read as JSON
	}
	return message
}

// demoTools is what the healthy servers offer.
func demoTools() []map[string]any {
	return []map[string]any{
		demoTool("forecast", "Says what the weather will be like.", "place"),
		demoTool("sunrise", "Says when the sun rises.", "place"),
		demoTool("tides", "Says when the water is high.", "harbour"),
	}
}

// demoTool is a tool that takes texts.
func demoTool(name, description string, arguments ...string) map[string]any {
	properties := map[string]any{}
	for _, argument := range arguments {
		properties[argument] = map[string]any{"type": "string"}
	}
	return map[string]any{"name": name, "description": description, "inputSchema": map[string]any{
		"type": "object", "properties": properties, "required": arguments,
	}}
}

const demoModernVersion = "2026-07-28"

// modernDemo is an MCP server of 2026-07-28: every request stands alone.
func modernDemo(tools func() []map[string]any) http.Handler {
	result := func(members map[string]any) map[string]any {
		members["resultType"], members["ttlMs"], members["cacheScope"] = "complete", 0, "public"
		members["_meta"] = map[string]any{
			"io.modelcontextprotocol/serverInfo": map[string]any{"name": "rollcall-demo", "version": "1.0.0"},
		}
		return members
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, ok := readDemoRequest(w, r)
		if !ok {
			return
		}
		switch version := request.version(); {
		case version != demoModernVersion || r.Header.Get("Mcp-Protocol-Version") != demoModernVersion:
			request.refuse(w, http.StatusBadRequest, -32022, "Unsupported protocol version",
				map[string]any{"supported": []string{demoModernVersion}, "requested": version})
		case request.Method == "server/discover":
			request.answer(w, result(map[string]any{
				"supportedVersions": []string{demoModernVersion},
				"capabilities":      map[string]any{"tools": map[string]any{}},
			}))
		case request.Method == "tools/list":
			request.answer(w, result(map[string]any{"tools": tools()}))
		default:
			request.refuse(w, http.StatusNotFound, -32601, "Method not found", nil)
		}
	})
}

const demoLegacyVersion = "2025-11-25"

// legacyDemo is an MCP server of 2025-11-25: a handshake, a session, replies in event streams. Without tools it has lost
// its database, or so it says, with HTTP status 200.
type legacyDemo struct {
	tools []map[string]any

	mu       sync.Mutex // guards what follows
	sessions map[string]bool
}

// maxDemoSessions bounds what clients that never say goodbye can make a demo remember.
const maxDemoSessions = 1000

func newLegacyDemo(tools []map[string]any) *legacyDemo {
	return &legacyDemo{tools: tools, sessions: map[string]bool{}}
}

func (d *legacyDemo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get("Mcp-Session-Id")
	if r.Method == http.MethodDelete {
		d.close(session)
		return
	}
	request, ok := readDemoRequest(w, r)
	if !ok {
		return
	}
	switch {
	case request.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", d.open())
		request.stream(w, "result", map[string]any{
			"protocolVersion": demoLegacyVersion,
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": "rollcall-demo", "version": "1.0.0"},
		})
	case session == "":
		request.refuse(w, http.StatusBadRequest, -32000, "Bad Request: Server not initialized", nil)
	case !d.knows(session):
		request.refuse(w, http.StatusNotFound, -32001, "Session not found", nil)
	case request.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case request.Method == "tools/list" && d.tools == nil:
		request.stream(w, "error", map[string]any{"code": -32603, "message": "Internal error: the tool database is away"})
	case request.Method == "tools/list":
		request.stream(w, "result", map[string]any{"tools": d.tools})
	default:
		request.stream(w, "error", map[string]any{"code": -32601, "message": "Method not found"})
	}
}

func (d *legacyDemo) open() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sessions) >= maxDemoSessions {
		clear(d.sessions)
	}
	id := strings.ToLower(rand.Text())
	d.sessions[id] = true
	return id
}

func (d *legacyDemo) knows(session string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[session]
}

func (d *legacyDemo) close(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session)
}

// hang never answers. It reads the request first: net/http notices that a client left only once the body is consumed.
func hang(_ http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	<-r.Context().Done()
}
