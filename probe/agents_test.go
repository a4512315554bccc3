package probe_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
)

// agent is a server on loopback that answers by "METHOD /path" and, where that is not listed, JSON-RPC requests by
// method. In an answer, URL stands for its own address and ID for the id of the request.
type agent struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // guarded by mu: what was asked, with the A2A-Version header
}

func newAgent(t *testing.T, answers map[string]string) *agent {
	a := &agent{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &request) // a GET has none
		key := r.Method + " " + r.URL.Path
		if request.Method != "" {
			key = request.Method
		}
		a.mu.Lock()
		a.seen = append(a.seen, strings.TrimSpace(key+" "+r.Header.Get("A2A-Version")))
		a.mu.Unlock()
		text, ok := answers[strings.TrimSpace(key+" "+r.Header.Get("A2A-Version"))]
		if !ok {
			text, ok = answers[key]
		}
		switch {
		case !ok && request.Method != "":
			text = `200 {"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`
		case !ok:
			text = "404 not found"
		}
		status, text, _ := strings.Cut(text, " ")
		code, err := strconv.Atoi(status)
		if err != nil {
			t.Errorf("an answer without a status: %s", text)
		}
		if header, rest, ok := strings.Cut(text, " | "); ok {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
			text = rest
		}
		if strings.HasPrefix(text, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(code)
		text = strings.ReplaceAll(text, "URL", a.URL)
		io.WriteString(w, strings.ReplaceAll(text, "ID", string(request.ID)))
	}))
	t.Cleanup(a.Close)
	return a
}

const (
	newCard = `200 {"name":"Recipe Agent","description":"cooks","version":"2.1.0","capabilities":{},"skills":[],"defaultInputModes":["text"],
		"defaultOutputModes":["text"],"supportedInterfaces":[{"url":"URL/grpc","protocolBinding":"GRPC","protocolVersion":"1.0"},
		{"url":"URL/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`
	oldCard = `200 {"name":"Recipe Agent","description":"cooks","version":"2.1.0","capabilities":{},"skills":[],"defaultInputModes":["text"],
		"defaultOutputModes":["text"],"url":"URL/rpc","protocolVersion":"0.3.0"}`
	noTask   = `200 {"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Task not found"}}`
	cardPath = "GET /.well-known/agent-card.json"
)

func TestAgents(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    probe.Kind
		path    string
		answers map[string]string
		headers []probe.Header
		variant probe.ACPVariant
		want    want
		version string
	}{
		{name: "a task that is not found is the healthy answer", kind: probe.KindA2A,
			answers: map[string]string{cardPath: newCard, "GetTask 1.0": noTask},
			want:    want{verdict: probe.Up, steps: "agent-card GetTask"}, version: "1.0"},
		{name: "an agent of 0.3 is asked in its words", kind: probe.KindA2A,
			answers: map[string]string{cardPath: oldCard, "tasks/get": noTask},
			want:    want{verdict: probe.Up, steps: "agent-card tasks/get"}, version: "0.3.0"},
		{name: "a card below the path of the URL is found", kind: probe.KindA2A, path: "/agents/cook",
			answers: map[string]string{"GET /agents/cook/.well-known/agent-card.json": newCard, "GetTask": noTask},
			want:    want{verdict: probe.Up, steps: "agent-card GetTask"}, version: "1.0"},
		{name: "the card's own URL will do", kind: probe.KindA2A, path: "/cards/cook.json",
			answers: map[string]string{"GET /cards/cook.json": newCard, "GetTask": noTask},
			want:    want{verdict: probe.Up, steps: "agent-card GetTask"}, version: "1.0"},
		{name: "the card of 0.2 is found", kind: probe.KindA2A,
			answers: map[string]string{"GET /.well-known/agent.json": oldCard, "tasks/get": noTask},
			want:    want{verdict: probe.Up, steps: "agent-card!http_status agent-card tasks/get"}, version: "0.3.0"},
		{name: "a server that refuses the version header on its card is asked without", kind: probe.KindA2A,
			answers: map[string]string{cardPath + " 1.0": "400 unsupported version", cardPath: oldCard, "tasks/get": noTask},
			want:    want{verdict: probe.Up, steps: "agent-card agent-card tasks/get"}, version: "0.3.0"},
		{name: "a card says 1.0 and the agent speaks 0.3", kind: probe.KindA2A,
			answers: map[string]string{cardPath: newCard, "tasks/get": noTask},
			want: want{verdict: probe.Degraded, step: "tasks/get", class: probe.ClassDialectMismatch, message: "the card says A2A 1.0, the agent speaks 0.3",
				steps: "agent-card GetTask!rpc_error tasks/get!dialect_mismatch"}, version: "0.3"},
		{name: "an agent that knows neither dialect is down", kind: probe.KindA2A,
			answers: map[string]string{cardPath: newCard},
			want: want{verdict: probe.Down, step: "GetTask", class: probe.ClassRPCError, code: -32601,
				steps: "agent-card GetTask!rpc_error tasks/get!rpc_error"}, version: "1.0"},
		{name: "an agent without a card is degraded", kind: probe.KindA2A,
			answers: map[string]string{"GetTask": noTask},
			want: want{verdict: probe.Degraded, step: "GetTask", class: probe.ClassCardInvalid, message: "clients find no card",
				steps: "agent-card!http_status agent-card!http_status GetTask!card_invalid"}, version: "1.0"},
		{name: "a server that is no agent says what is missing", kind: probe.KindA2A,
			want: want{verdict: probe.Down, step: "agent-card", class: probe.ClassHTTPStatus, code: 404, message: "/.well-known/agent-card.json: 404 Not Found",
				steps: "agent-card!http_status agent-card!http_status GetTask!rpc_error tasks/get!rpc_error"}},
		{name: "a page in place of the card", kind: probe.KindA2A,
			answers: map[string]string{cardPath: "200 <title>Welcome</title>"},
			want:    want{verdict: probe.Down, step: "agent-card", class: probe.ClassContentType, code: 200, message: "Welcome", steps: "agent-card!content_type"}},
		{name: "a card without its required members is degraded", kind: probe.KindA2A,
			answers: map[string]string{cardPath: `200 {"name":"x","url":"URL/rpc"}`, "tasks/get": noTask},
			want: want{verdict: probe.Degraded, step: "agent-card", class: probe.ClassCardInvalid,
				message: "lacks description, version, capabilities, defaultInputModes, defaultOutputModes, skills, protocolVersion",
				steps:   "agent-card!card_invalid tasks/get"}},
		{name: "a card without a JSON-RPC interface is all there is to check", kind: probe.KindA2A,
			answers: map[string]string{cardPath: strings.Replace(newCard, `"JSONRPC"`, `"HTTP+JSON"`, 1)},
			want:    want{verdict: probe.Up, steps: "agent-card", warnings: []string{"agent-card capability_missing"}}},
		{name: "a card that is guarded", kind: probe.KindA2A,
			answers: map[string]string{cardPath: "401 WWW-Authenticate: Bearer | no"},
			want:    want{verdict: probe.Gated, step: "agent-card", class: probe.ClassAuthRequired, code: 401, steps: "agent-card!auth_required"}},
		{name: "an agent that wants credentials", kind: probe.KindA2A,
			answers: map[string]string{cardPath: newCard, "GetTask": "401 WWW-Authenticate: Bearer | no"},
			want:    want{verdict: probe.Gated, step: "GetTask", class: probe.ClassAuthRequired, code: 401, steps: "agent-card GetTask!auth_required"}, version: "1.0"},
		{name: "an agent that has no such version", kind: probe.KindA2A,
			answers: map[string]string{cardPath: newCard, "GetTask": `200 {"jsonrpc":"2.0","id":ID,"error":{"code":-32009,"message":"Version not supported"}}`},
			want: want{verdict: probe.Down, step: "GetTask", class: probe.ClassVersionUnsupported, code: -32009,
				steps: "agent-card GetTask!version_unsupported tasks/get!rpc_error"}, version: "1.0"},
		{name: "an interface that is no URL", kind: probe.KindA2A,
			answers: map[string]string{cardPath: strings.Replace(newCard, "URL/rpc", "ftp://x", 1)},
			want:    want{verdict: probe.Degraded, step: "agent-card", class: probe.ClassCardInvalid, message: "no URL that can be asked", steps: "agent-card!card_invalid"}, version: "1.0"},
		{name: "credentials stay with the origin they are for", kind: probe.KindA2A, headers: []probe.Header{{Name: "Authorization", Value: "Bearer s3cret-token", Secret: true}},
			answers: map[string]string{cardPath: strings.Replace(newCard, "URL/rpc", "http://127.0.0.1:1/rpc", 1)},
			want: want{verdict: probe.Down, step: "GetTask", class: probe.ClassConnect, steps: "agent-card GetTask!connect",
				warnings: []string{"agent-card card_invalid", "agent-card card_invalid"}}, version: "1.0"},

		{name: "an agent is found without being named", kind: probe.KindAuto,
			answers: map[string]string{cardPath: newCard, "GetTask": noTask},
			want: want{verdict: probe.Up, kind: probe.KindA2A,
				steps: "server/discover!rpc_error initialize!rpc_error eth_blockNumber!rpc_error status!rpc_error getHealth!rpc_error " +
					"getblockcount!rpc_error system_health!rpc_error starknet_blockNumber!capability_missing agent-card GetTask"}, version: "1.0"},
		{name: "one that takes JSON-RPC elsewhere, too", kind: probe.KindAuto,
			answers: map[string]string{cardPath: newCard, "GetTask": noTask, "server/discover": "405 no", "initialize": "405 no"},
			want: want{verdict: probe.Up, kind: probe.KindA2A,
				steps: "server/discover!http_status initialize!http_status sse!http_status agent-card GetTask"}, version: "1.0"},

		{name: "an Agent Communication server answers ping and has agents", kind: probe.KindACP,
			answers: map[string]string{"GET /ping": "200 {}", "GET /agents": `200 {"agents":[{"name":"chef"}]}`},
			want:    want{verdict: probe.Up, steps: "ping agents"}},
		{name: "one without agents is degraded", kind: probe.KindACP,
			answers: map[string]string{"GET /ping": "200 {}", "GET /agents": `200 {"agents":[]}`},
			want:    want{verdict: probe.Degraded, step: "agents", class: probe.ClassCapabilityMissing, steps: "ping agents!capability_missing"}},
		{name: "an Agent Client server shakes hands and is let go", kind: probe.KindACP,
			answers: map[string]string{"initialize": `200 Acp-Connection-Id: c1 | {"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":1,"agentCapabilities":{}}}`, "DELETE /": "202 "},
			want:    want{verdict: probe.Up, steps: "ping!http_status initialize close"}, version: "1"},
		{name: "one that hands out no connection is degraded", kind: probe.KindACP, variant: probe.ACPClient,
			answers: map[string]string{"initialize": `200 {"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":1}}`},
			want: want{verdict: probe.Degraded, step: "initialize", class: probe.ClassHandshakeInvalid, message: "Acp-Connection-Id",
				steps: "initialize!handshake_invalid"}, version: "1"},
		{name: "an MCP server is no ACP server", kind: probe.KindACP, variant: probe.ACPClient,
			answers: map[string]string{"initialize": `200 {"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25"}}`},
			want: want{verdict: probe.Degraded, step: "initialize", class: probe.ClassHandshakeInvalid, message: "not the Agent Client Protocol",
				steps: "initialize!handshake_invalid"}},
		{name: "a server of runs refuses the empty one", kind: probe.KindACP,
			answers: map[string]string{"runs/create": `200 {"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"agent_name is required"}}`},
			want:    want{verdict: probe.Up, steps: "ping!http_status initialize!rpc_error runs/create"}},
		{name: "a server of something else is told apart", kind: probe.KindACP,
			want: want{verdict: probe.Degraded, step: "runs/create", class: probe.ClassCapabilityMissing,
				steps: "ping!http_status initialize!rpc_error runs/create!capability_missing"}},
		{name: "a variant that is pinned is the only one asked", kind: probe.KindACP, variant: probe.ACPCommunication,
			want: want{verdict: probe.Down, step: "ping", class: probe.ClassHTTPStatus, code: 404, steps: "ping!http_status"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newAgent(t, c.answers)
			r := ask(t, probe.Target{Kind: c.kind, URL: s.URL + c.path, Headers: c.headers, Options: probe.Options{ACP: c.variant}})
			check(t, r, c.want)
			if r.Facts.ProtocolVersion != c.version {
				t.Errorf("protocol version %q, want %q", r.Facts.ProtocolVersion, c.version)
			}
			for _, seen := range s.seen {
				if strings.HasPrefix(seen, "POST /runs") || strings.Contains(seen, "Send") {
					t.Errorf("a run was started: %s", seen)
				}
			}
		})
	}
}

func TestTheCardOfAnAgentIsKnownByItsHash(t *testing.T) {
	s := newAgent(t, map[string]string{cardPath: newCard, "GetTask": noTask})
	r := ask(t, probe.Target{Kind: probe.KindA2A, URL: s.URL})
	if !strings.HasPrefix(r.Facts.Contract, "sha256:") || r.Facts.ServerName != "Recipe Agent" || r.Facts.ServerVersion != "2.1.0" {
		t.Errorf("facts %+v", r.Facts)
	}
}
