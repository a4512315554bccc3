package probe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestJSONRPC(t *testing.T) {
	s := probetest.JSONRPC(t)
	for name, tc := range map[string]struct {
		target probe.Target
		params string
	}{
		"no params":      {probe.Target{Kind: probe.KindJSONRPC, Method: "ping"}, ""},
		"an array":       {probe.Target{Kind: probe.KindJSONRPC, Method: "ping", Params: []byte(`[1,"a"]`)}, `[1,"a"]`},
		"an object":      {probe.Target{Kind: probe.KindAuto, Method: "ping", Params: []byte(`{"a":1}`)}, `{"a":1}`},
		"an empty array": {probe.Target{Kind: probe.KindAuto, Method: "ping", Params: []byte(`[]`)}, `[]`},
	} {
		tc.target.URL = s.URL
		r := ask(t, tc.target)
		requests := s.Requests()
		last := requests[len(requests)-1]
		if r.Kind != probe.KindJSONRPC || string(last.Params) != tc.params || last.Header.Get("Accept") != "application/json" {
			t.Errorf("%s: kind %s, params %s, Accept %q", name, r.Kind, last.Params, last.Header.Get("Accept"))
		}
		if name == "no params" && strings.Contains(string(last.Body), "params") {
			t.Errorf("%s: sent %s", name, last.Body)
		}
	}
}

func TestAuto(t *testing.T) {
	for name, tc := range map[string]struct {
		url  func(t *testing.T) string
		era  probe.Era
		want want
	}{
		"modern MCP": {func(t *testing.T) string { return probetest.MCP(t).URL }, "",
			want{verdict: probe.Up, kind: probe.KindMCP, era: probe.EraModern, steps: modernSteps}},
		"legacy MCP": {func(t *testing.T) string { return probetest.MCP(t, probetest.LegacyOnly()).URL }, "",
			want{verdict: probe.Up, kind: probe.KindMCP, era: probe.EraLegacy, steps: legacySteps}},
		"a chain node": {func(t *testing.T) string { return probetest.EVM(t).URL }, "",
			want{verdict: probe.Up, kind: probe.KindEVM, steps: "server/discover!rpc_error initialize!rpc_error " + evmSteps}},
		"another JSON-RPC server": {func(t *testing.T) string {
			return rpcServer(t, `{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"Method not found"}}`)
		}, "",
			want{verdict: probe.Degraded, kind: probe.KindJSONRPC, step: "starknet_blockNumber", class: probe.ClassCapabilityMissing, code: -32601, message: "name a kind",
				steps: "server/discover!rpc_error initialize!rpc_error eth_blockNumber!rpc_error status!rpc_error getHealth!rpc_error getblockcount!rpc_error " +
					"system_health!rpc_error starknet_blockNumber!capability_missing agent-card!card_invalid"}},
		"a web page": {func(t *testing.T) string { return webServer(t, http.StatusOK, "text/html", "<html><title>Hi</title>") }, "",
			want{verdict: probe.Down, kind: probe.KindAuto, step: "initialize", class: probe.ClassContentType, code: 200, message: "Hi",
				steps: "server/discover!content_type initialize!content_type agent-card!content_type"}},
		"nothing there": {func(t *testing.T) string { return webServer(t, http.StatusNotFound, "text/plain", "no such page") }, "",
			want{verdict: probe.Down, kind: probe.KindAuto, step: "initialize", class: probe.ClassHTTPStatus, code: 404, message: "404 Not Found: no such page",
				steps: "server/discover!http_status initialize!http_status sse!http_status agent-card!http_status"}},
		"a known MCP server in trouble is no chain node": {func(t *testing.T) string {
			return rpcServer(t, `{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"x"}}`)
		}, probe.EraLegacy,
			want{verdict: probe.Down, kind: probe.KindAuto, era: probe.EraLegacy, step: "initialize", class: probe.ClassRPCError, code: -32601,
				steps: "initialize!rpc_error server/discover!rpc_error"}},
		"an MCP server in trouble": {func(t *testing.T) string {
			return probetest.MCP(t, probetest.LegacyOnly(), probetest.RPCErrorAt("initialize", 200, -32603, "Internal error")).URL
		}, "", want{verdict: probe.Down, kind: probe.KindAuto, step: "initialize", class: probe.ClassRPCError, code: -32603,
			steps: "server/discover!rpc_error initialize!rpc_error close"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(t, probe.Target{Kind: probe.KindAuto, URL: tc.url(t), Era: tc.era})
			check(t, r, tc.want)
		})
	}
}

// webServer answers everything alike.
func webServer(t *testing.T, status int, contentType, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// rpcServer answers every request with a JSON text, $id being the id of the request.
func rpcServer(t *testing.T, answer string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, rest, _ := strings.Cut(string(body), `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.ReplaceAll(answer, "$id", `"`+id+`"`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}
