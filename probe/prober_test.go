package probe_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestWhatIsSent(t *testing.T) {
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.Tools(4), probetest.PageSize(2))
	target := probe.Target{Kind: probe.KindMCP, URL: s.URL, Headers: []probe.Header{
		{Name: "Authorization", Value: "Bearer x", Secret: true}, {Name: "X-Team", Value: "a"}, {Name: "X-Team", Value: "b"},
	}}
	if r := ask(t, target); r.Verdict != probe.Up {
		t.Fatalf("%s %+v", r.Verdict, r.Failure)
	}
	type sent struct{ Step, Method, Version, Session, RPCMethod, Params string }
	var got []sent
	ids := map[string]bool{}
	conns := map[string]bool{}
	session := ""
	for _, r := range s.Requests() {
		h := r.Header
		if h.Get("User-Agent") != "rollcall/1.2.3 (+https://status.example)" || h.Get("Accept-Encoding") != "identity" || h.Get("Origin") != "" {
			t.Errorf("%s: header %v", r.Step, h)
		}
		if h.Get("Authorization") != "Bearer x" || gocmp.Diff(h["X-Team"], []string{"a", "b"}) != "" {
			t.Errorf("%s: the target's headers are missing from %v", r.Step, h)
		}
		if h.Get("Accept") != "application/json, text/event-stream" {
			t.Errorf("%s: Accept %q", r.Step, h.Get("Accept"))
		}
		if r.HTTPMethod == "POST" && (h.Get("Content-Type") != "application/json" || h.Get("Content-Length") != fmt.Sprint(len(r.Body))) {
			t.Errorf("%s: Content-Type %q, Content-Length %q of %d", r.Step, h.Get("Content-Type"), h.Get("Content-Length"), len(r.Body))
		}
		if id := string(r.ID); id != "" && (ids[id] || id[0] != '"') {
			t.Errorf("%s: id %s is not a string of its own", r.Step, id)
		}
		ids[string(r.ID)] = true
		conns[r.RemoteAddr] = true
		if s := h.Get("Mcp-Session-Id"); s != "" {
			session = s
		}
		got = append(got, sent{r.Step, r.HTTPMethod, h.Get("Mcp-Protocol-Version"), strings.Replace(h.Get("Mcp-Session-Id"), cmp.Or(session, "none"), "S", 1),
			h.Get("Mcp-Method"), string(r.Params)})
	}
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"rollcall","version":"1.2.3"}}}`
	handshake := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rollcall","version":"1.2.3"}}`
	expected := []sent{
		{"server/discover", "POST", "2026-07-28", "", "server/discover", meta},
		{"initialize", "POST", "", "", "", handshake},
		{"initialized", "POST", "2025-11-25", "S", "", ""},
		{"tools/list", "POST", "2025-11-25", "S", "", ""},
		{"tools/list", "POST", "2025-11-25", "S", "", got[min(4, len(got)-1)].Params},
		{"close", "DELETE", "2025-11-25", "S", "", ""},
	}
	if diff := gocmp.Diff(expected, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(expected[4].Params, `{"cursor":"`) {
		t.Errorf("the second page was asked for with %s", expected[4].Params)
	}
	if len(conns) != 1 {
		t.Errorf("%d connections, want one", len(conns))
	}
}

func TestSteps(t *testing.T) {
	s := probetest.EVM(t)
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	first, second := r.Steps[0], r.Steps[1]
	if first.Phases.Connect <= 0 || first.Phases.FirstByte <= 0 || first.Latency < first.Phases.Connect+first.Phases.FirstByte {
		t.Errorf("the first step: %+v", first)
	}
	if second.Phases.Connect != 0 || second.Phases.DNS != 0 || second.Start < first.Start+first.Latency {
		t.Errorf("the second step: %+v", second)
	}
	if first.Method != "eth_blockNumber" || first.HTTPStatus != 200 || first.BytesOut == 0 || first.BytesIn == 0 {
		t.Errorf("the first step: %+v", first)
	}
	if r.Duration < second.Start+second.Latency || r.StartedAt.IsZero() {
		t.Errorf("started %v, took %v", r.StartedAt, r.Duration)
	}
	if !strings.HasPrefix(r.Facts.RemoteAddr, "127.0.0.1:") {
		t.Errorf("remote address %q", r.Facts.RemoteAddr)
	}
}

func TestEVM(t *testing.T) {
	down := probe.Down
	assertion := probe.ClassAssertionFailed
	for name, tc := range map[string]struct {
		fault  probetest.Fault
		height uint64
		want   want
	}{
		"healthy":     {nil, 0x13df1ab, want{verdict: probe.Up, kind: probe.KindEVM, steps: "eth_blockNumber eth_chainId"}},
		"height zero": {probetest.ResultAt("eth_blockNumber", `"0x0"`), 0, want{verdict: probe.Up, steps: "eth_blockNumber eth_chainId"}},
		"no height": {probetest.ResultAt("eth_blockNumber", `null`), 0,
			want{verdict: down, step: "eth_blockNumber", class: assertion, message: "null", steps: "eth_blockNumber!assertion_failed"}},
		"a number": {probetest.ResultAt("eth_blockNumber", `7`), 0, want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"a leading zero": {probetest.ResultAt("eth_blockNumber", `"0x07"`), 0,
			want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"no prefix": {probetest.ResultAt("eth_blockNumber", `"7"`), 0, want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"no digits": {probetest.ResultAt("eth_blockNumber", `"0x"`), 0, want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"65 bits": {probetest.ResultAt("eth_blockNumber", `"0x10000000000000000"`), 0,
			want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"an object for a chain": {probetest.ResultAt("eth_chainId", `{}`), 0,
			want{verdict: down, step: "eth_chainId", class: assertion, steps: "eth_blockNumber eth_chainId!assertion_failed"}},
		"quota in words": {probetest.RPCErrorAt("eth_blockNumber", 200, -32005, "daily request count exceeded, request rate limited"), 0,
			want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassRateLimited, code: -32005, steps: "eth_blockNumber!rate_limited"}},
		"an error": {probetest.RPCErrorAt("eth_blockNumber", 500, -32000, "header not found"), 0,
			want{verdict: down, step: "eth_blockNumber", class: probe.ClassRPCError, code: -32000, message: "header not found", steps: "eth_blockNumber!rpc_error"}},
		"an old envelope": {probetest.EnvelopeAt("eth_chainId", `{"id":$id,"result":"0x1","error":null}`), 0,
			want{verdict: probe.Up, steps: "eth_blockNumber eth_chainId", warnings: []string{"eth_chainId invalid_envelope", "eth_chainId invalid_envelope"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.EVM(t)
			s.SetHeight(tc.height)
			if tc.fault != nil {
				s.SetFaults(tc.fault)
			}
			r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL})
			check(t, r, tc.want)
			if tc.height != 0 && (r.Facts.Height == nil || *r.Facts.Height != tc.height || r.Facts.ChainID == "") {
				t.Errorf("facts %+v", r.Facts)
			}
		})
	}
}

func TestBigChainID(t *testing.T) {
	s := probetest.EVM(t, probetest.ResultAt("eth_chainId", `"0xc72dd9d5e883ec72dd9d5e883e"`))
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	if r.Facts.ChainID != "15780932764103240019437218203710" && r.Verdict != probe.Up {
		t.Errorf("chain id %s, %+v", r.Facts.ChainID, r.Failure)
	}
}

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
			want{verdict: probe.Up, kind: probe.KindEVM, steps: "server/discover!rpc_error initialize!rpc_error eth_blockNumber eth_chainId"}},
		"another JSON-RPC server": {func(t *testing.T) string {
			return rpcServer(t, `{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"Method not found"}}`)
		}, "",
			want{verdict: probe.Degraded, kind: probe.KindJSONRPC, step: "eth_blockNumber", class: probe.ClassCapabilityMissing, code: -32601, message: "name a method",
				steps: "server/discover!rpc_error initialize!rpc_error eth_blockNumber!capability_missing"}},
		"a web page": {func(t *testing.T) string { return webServer(t, http.StatusOK, "text/html", "<html><title>Hi</title>") }, "",
			want{verdict: probe.Down, kind: probe.KindAuto, step: "initialize", class: probe.ClassContentType, code: 200, message: "Hi",
				steps: "server/discover!content_type initialize!content_type"}},
		"nothing there": {func(t *testing.T) string { return webServer(t, http.StatusNotFound, "text/plain", "no such page") }, "",
			want{verdict: probe.Down, kind: probe.KindAuto, step: "initialize", class: probe.ClassHTTPStatus, code: 404, message: "404 Not Found: no such page",
				steps: "server/discover!http_status initialize!http_status"}},
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

func TestCredentials(t *testing.T) {
	secret := []probe.Header{{Name: "X-Api-Key", Value: "opensesame-1", Secret: true}}
	for name, tc := range map[string]struct {
		headers []probe.Header
		status  int
		scope   string
		body    string
		want    want
	}{
		"none sent":                 {nil, 401, "Bearer", "", want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 401}},
		"none sent, forbidden":      {nil, 403, "", "", want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 403}},
		"sent and refused":          {secret, 401, "Bearer", "bad key opensesame-1", want{verdict: probe.Gated, class: probe.ClassCredentialRejected, code: 401, message: "bad key …"}},
		"sent and not enough":       {secret, 403, "", "", want{verdict: probe.Gated, class: probe.ClassAuthForbidden, code: 403}},
		"a scope is missing":        {nil, 403, `Bearer error="insufficient_scope"`, "", want{verdict: probe.Gated, class: probe.ClassAuthForbidden, code: 403}},
		"401 with a JSON-RPC error": {nil, 401, "Bearer", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"who are you?"}}`, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 401, message: "who are you?"}},
		"the Host is not known":     {nil, 421, "", "Invalid Host header", want{verdict: probe.Degraded, class: probe.ClassHostRejected, code: 421}},
		"the Host is not allowed":   {nil, 403, "", "invalid host specified", want{verdict: probe.Degraded, class: probe.ClassHostRejected, code: 403}},
		"to be paid for":            {nil, 402, "", "", want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: 402}},
		"a wall with 503":           {nil, 503, "", "<html><title>Just a moment...</title>", want{verdict: probe.Unknown, class: probe.ClassBlocked, code: 503}},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tc.scope != "" {
					w.Header().Set("WWW-Authenticate", tc.scope)
				}
				w.WriteHeader(tc.status)
				io.WriteString(w, tc.body)
			}))
			defer s.Close()
			r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL, Headers: tc.headers})
			tc.want.step, tc.want.steps = "m", "m!"+string(tc.want.class)
			check(t, r, tc.want)
		})
	}
}

// Gateways have been seen to answer 401 to server/discover only, with credentials that are good for initialize.
func TestCredentialsRefusedForDiscoverOnly(t *testing.T) {
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.HeaderAt("server/discover", "WWW-Authenticate", "Bearer"),
		probetest.StatusAt("server/discover", 401, "text/plain", "no"))
	target := probe.Target{Kind: probe.KindMCP, URL: s.URL, Headers: []probe.Header{{Name: "Authorization", Value: "Bearer good-token"}}}
	check(t, ask(t, target), want{verdict: probe.Up, era: probe.EraLegacy, steps: "server/discover!credential_rejected initialize initialized tools/list close"})
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "-3": 0, "soon": 0, "999999999": 24 * time.Hour, "": 0} {
		s := probetest.JSONRPC(t, probetest.RateLimited(value))
		if r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL}); r.RetryAfter != want {
			t.Errorf("Retry-After %q: %v, want %v", value, r.RetryAfter, want)
		}
	}
	s := probetest.JSONRPC(t, probetest.RateLimited(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)))
	if r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL}); r.RetryAfter < 59*time.Minute || r.RetryAfter > time.Hour {
		t.Errorf("Retry-After in an hour: %v", r.RetryAfter)
	}
}

func TestRedirects(t *testing.T) {
	s := probetest.MCP(t, probetest.RedirectAt("", http.StatusTemporaryRedirect, "/mcp/"))
	headers := []probe.Header{{Name: "Authorization", Value: "Bearer good-token"}}
	check(t, ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Headers: headers}),
		want{verdict: probe.Up, era: probe.EraModern, steps: modernSteps, warnings: []string{"server/discover redirect"}})
	requests := s.Requests()
	for i, uri := range []string{"/mcp", "/mcp/", "/mcp/"} {
		if requests[i].URI != uri || requests[i].Header.Get("Authorization") == "" || len(requests[i].Body) == 0 {
			t.Errorf("request %d went to %s with %d bytes and %v, want %s", i, requests[i].URI, len(requests[i].Body), requests[i].Header, uri)
		}
	}

	elsewhere := probetest.MCP(t)
	t.Run("another port without credentials", func(t *testing.T) {
		s := probetest.MCP(t, probetest.RedirectAt("", http.StatusPermanentRedirect, elsewhere.URL))
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL})
		check(t, r, want{verdict: probe.Up, era: probe.EraModern, steps: modernSteps, warnings: []string{"server/discover redirect"}})
		if !strings.Contains(elsewhere.URL, r.Facts.RemoteAddr) {
			t.Errorf("remote address %s, want that of %s", r.Facts.RemoteAddr, elsewhere.URL)
		}
	})
	t.Run("another port with credentials", func(t *testing.T) {
		before := len(elsewhere.Requests())
		s := probetest.MCP(t, probetest.RedirectAt("", http.StatusPermanentRedirect, elsewhere.URL))
		check(t, ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Headers: headers}),
			want{verdict: probe.Down, step: "server/discover", class: probe.ClassRedirect, code: 308, message: "credentials", steps: "server/discover!redirect"})
		if n := len(elsewhere.Requests()) - before; n != 0 {
			t.Errorf("%d requests went on", n)
		}
	})
	t.Run("a key in the location is not shown", func(t *testing.T) {
		s := probetest.MCP(t, probetest.RedirectAt("", http.StatusFound, "https://u:pw@login.example/?token=abcdef0123456789abcdef"))
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Transcript: true})
		if text := fmt.Sprintf("%+v", r); strings.Contains(text, "abcdef0123456789") || strings.Contains(text, "u:pw") {
			t.Errorf("%s", text)
		}
	})
}

func TestRedirectDownToHTTP(t *testing.T) {
	s := probetest.MCP(t, probetest.TLS(), probetest.RedirectAt("", http.StatusTemporaryRedirect, "http://127.0.0.1:1/mcp"))
	p := probe.Prober{Egress: probe.Egress{Any: true}, RootCAs: s.CertPool()}
	check(t, p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: s.URL}),
		want{verdict: probe.Down, step: "server/discover", class: probe.ClassRedirect, code: 307, message: "from https down", steps: "server/discover!redirect"})
}

func TestTLS(t *testing.T) {
	s := probetest.MCP(t, probetest.TLS())
	p := probe.Prober{Egress: probe.Egress{Any: true}, RootCAs: s.CertPool()}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: s.URL})
	if r.Verdict != probe.Up || r.Facts.TLSExpiresAt == nil || !r.Facts.TLSExpiresAt.Equal(s.Certificate().NotAfter) || r.Steps[0].Phases.TLS <= 0 {
		t.Errorf("%s %+v, certificate until %v, TLS in %v", r.Verdict, r.Failure, r.Facts.TLSExpiresAt, r.Steps[0].Phases.TLS)
	}

	bad := probetest.MCP(t, probetest.BadTLS())
	r = ask(t, probe.Target{Kind: probe.KindMCP, URL: bad.URL})
	check(t, r, want{verdict: probe.Down, step: "server/discover", class: probe.ClassTLS, steps: "server/discover!tls"})
	if r.Facts.TLSExpiresAt == nil || !r.Facts.TLSExpiresAt.Equal(bad.Certificate().NotAfter) {
		t.Errorf("certificate until %v, want %v", r.Facts.TLSExpiresAt, bad.Certificate().NotAfter)
	}

	plain := probetest.MCP(t)
	r = ask(t, probe.Target{Kind: probe.KindMCP, URL: strings.Replace(plain.URL, "http:", "https:", 1)})
	check(t, r, want{verdict: probe.Down, step: "server/discover", class: probe.ClassTLS, message: "does not speak TLS", steps: "server/discover!tls"})
}

func TestHTTP2(t *testing.T) {
	var mu sync.Mutex
	var protocols []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		protocols = append(protocols, r.Proto)
		first := len(protocols) == 1
		mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "hang") && first {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, rest, _ := strings.Cut(string(body), `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		io.WriteString(w, `{"jsonrpc":"2.0","id":"`+id+`","result":"0x1"}`)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	p := probe.Prober{Egress: probe.Egress{Any: true}, RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "hang", URL: s.URL, Timeout: 300 * time.Millisecond})
	check(t, r, want{verdict: probe.Down, step: "hang", class: probe.ClassTimeout, message: "answer not complete after", steps: "hang!timeout"})
	r = p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: s.URL})
	if r.Verdict != probe.Up || r.Steps[0].Phases.FirstByte <= 0 || r.Steps[1].Phases.Connect != 0 || protocols[1] != "HTTP/2.0" {
		t.Errorf("%s %+v over %v: %+v", r.Verdict, r.Failure, protocols, r.Steps)
	}
}

func TestConnectionRefused(t *testing.T) {
	s := probetest.MCP(t)
	s.Stop()
	r := ask(t, probe.Target{Kind: probe.KindAuto, URL: s.URL})
	check(t, r, want{verdict: probe.Down, step: "server/discover", class: probe.ClassConnect, message: "connection refused by 127.0.0.1:", steps: "server/discover!connect"})
	if r.Kind != probe.KindAuto {
		t.Errorf("kind %q", r.Kind)
	}
}

// A server that closes the connection after every answer is dialled again for every step, and the steps say so.
func TestReconnect(t *testing.T) {
	for name, fault := range map[string]probetest.Fault{
		"announced": probetest.HeaderAt("", "Connection", "close"),
		"streams":   probetest.StreamOpenAt("initialize"),
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.MCP(t, probetest.LegacyOnly(), fault)
			r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy})
			if r.Verdict != probe.Up || r.Steps[1].Phases.Connect <= 0 || s.Sessions() != 0 {
				t.Errorf("%s %+v, second step %+v, %d sessions", r.Verdict, r.Failure, r.Steps[1], s.Sessions())
			}
		})
	}
}

// A server that closes an idle connection without a word: the request that meets it is sent once more.
func TestConnectionClosedWhileIdle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { answerOnce(conn) })
		}
	})
	defer conns.Wait()
	defer l.Close()
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: "http://" + l.Addr().String()})
	if r.Verdict != probe.Up || r.Steps[1].Phases.Connect <= 0 {
		t.Errorf("%s %+v, steps %+v", r.Verdict, r.Failure, r.Steps)
	}
}

// answerOnce answers one request on a connection as if more were welcome, and closes it at the second.
func answerOnce(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, 4096)
	n, err := conn.Read(buffer)
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(buffer[:n]), `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	body := `{"jsonrpc":"2.0","id":"` + id + `","result":"0x1"}`
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	_, _ = conn.Read(buffer) // until the next request, or the end
}

func TestAnswersThatAreNotHTTP(t *testing.T) {
	for _, bytes := range []string{"SSH-2.0-OpenSSH_9.7\r\n", "HTTP/1.1 abc\r\n\r\n", "\x15\x03\x01\x00\x02\x02\x16", "HTTP/1.1 200 OK\r\nContent-Le"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, bytes)
		})
		r := ask(t, probe.Target{Kind: probe.KindEVM, URL: "http://" + l.Addr().String()})
		check(t, r, want{verdict: probe.Down, step: "eth_blockNumber", class: probe.ClassConnect, steps: "eth_blockNumber!connect"})
		l.Close()
		done.Wait()
	}
}

func TestCompressedAnyway(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, rest, _ := strings.Cut(string(body), `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"jsonrpc":"2.0","id":"`+id+`","result":1}`)
		if strings.Contains(string(body), "bomb") {
			_, _ = io.WriteString(z, strings.Repeat(" ", 2<<20))
		}
		z.Close()
	}))
	defer s.Close()
	check(t, ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL}),
		want{verdict: probe.Up, steps: "m", warnings: []string{"m content_type"}})
	p := prober()
	p.Limits.ResponseBytes = 1 << 20
	check(t, p.Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "bomb", URL: s.URL}),
		want{verdict: probe.Down, step: "bomb", class: probe.ClassBodyTooLarge, code: 200, steps: "bomb!body_too_large", warnings: []string{"bomb content_type"}})
}

func TestSlow(t *testing.T) {
	s := probetest.EVM(t, probetest.SlowAt("eth_chainId", 60*time.Millisecond))
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL, DegradedOver: 50 * time.Millisecond})
	check(t, r, want{verdict: probe.Degraded, step: "eth_chainId", class: probe.ClassSlow, message: "more than 50ms", steps: "eth_blockNumber eth_chainId"})
	if r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL, DegradedOver: 10 * time.Second}); r.Verdict != probe.Up {
		t.Errorf("%s %+v", r.Verdict, r.Failure)
	}

	// The time lost to finding out the era is not the endpoint's.
	mcp := probetest.MCP(t, probetest.DiscoverQuirk(probetest.DiscoverHangs))
	r = ask(t, probe.Target{Kind: probe.KindMCP, URL: mcp.URL, Timeout: 900 * time.Millisecond, DegradedOver: 250 * time.Millisecond})
	if r.Verdict != probe.Up || r.Duration < 250*time.Millisecond {
		t.Errorf("%s %+v in %v", r.Verdict, r.Failure, r.Duration)
	}
}

func TestCancelled(t *testing.T) {
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.HangAt("tools/list"))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("shutting down")) })
	defer stop.Stop()
	r := prober().Probe(ctx, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy})
	check(t, r, want{verdict: probe.Unknown, step: "tools/list", class: probe.ClassProbeError, message: "cancelled", era: probe.EraLegacy,
		steps: "initialize initialized tools/list!probe_error close"})
	if n := s.Sessions(); n != 0 {
		t.Errorf("%d sessions left open", n)
	}

	r = prober().Probe(ctx, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	check(t, r, want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassProbeError, message: "cancelled", steps: "eth_blockNumber!probe_error"})
}

func TestDeadlineOfTheCaller(t *testing.T) {
	s := probetest.EVM(t, probetest.HangAt("eth_chainId"))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("a bare cause"))
	defer cancel()
	r := prober().Probe(ctx, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	check(t, r, want{verdict: probe.Down, step: "eth_chainId", class: probe.ClassTimeout, message: "no first byte after", steps: "eth_blockNumber eth_chainId!timeout"})
}

func TestInvalidTargets(t *testing.T) {
	for name, target := range map[string]probe.Target{
		"nothing":      {},
		"kind":         {Kind: "gopher", URL: "https://x.example"},
		"scheme":       {Kind: probe.KindMCP, URL: "ftp://x.example"},
		"no host":      {Kind: probe.KindMCP, URL: "https://"},
		"control":      {Kind: probe.KindMCP, URL: "https://x.example/\x00"},
		"bad header":   {Kind: probe.KindMCP, URL: "https://x.example", Headers: []probe.Header{{Name: "A", Value: "b\nc"}}},
		"bad params":   {Kind: probe.KindJSONRPC, URL: "https://x.example", Method: "m", Params: []byte(`{`)},
		"empty params": {Kind: probe.KindJSONRPC, URL: "https://x.example", Method: "m", Params: []byte(" ")},
		"no method":    {Kind: probe.KindJSONRPC, URL: "https://x.example"},
	} {
		t.Run(name, func(t *testing.T) {
			r := prober().Probe(t.Context(), target)
			check(t, r, want{verdict: probe.Unknown, class: probe.ClassProbeError, message: "cannot be probed"})
		})
	}
}

func TestTextOfServersIsTame(t *testing.T) {
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.ResultAt("initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"\u001b[31m\u202Eevil\n`+strings.Repeat("x", 5000)+`","version":"1\u0000.0"}}`))
	r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy})
	if got := r.Facts.ServerName; !strings.HasPrefix(got, "[31mevil xxx") || len(got) > 200 {
		t.Errorf("name %q", got)
	}
	if got := r.Facts.ServerVersion; got != "1 .0" {
		t.Errorf("version %q", got)
	}
	s.SetFaults(probetest.LegacyOnly(), probetest.RPCErrorAt("initialize", 200, -32603, strings.Repeat("very bad\n", 1000)))
	r = ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy})
	if got := r.Failure.Message; len(got) > probe.MaxMessage || strings.Contains(got, "\n") || got != r.Steps[0].Message {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestTranscript(t *testing.T) {
	const token = "tok-SECRET-123456"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "sid=cookie-from-server")
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "you sent %s to %s with %s %s", r.Header.Get("Authorization"), r.URL, body, strings.Repeat("y", 100_000))
	}))
	defer s.Close()
	target := probe.Target{
		Kind: probe.KindJSONRPC, Method: "m", URL: s.URL + "/v3/0123456789abcdef0123456789abcdef?apikey=pa55word", Transcript: true,
		Headers: []probe.Header{{Name: "Authorization", Value: "Bearer " + token}},
	}
	r := ask(t, target)
	text := fmt.Sprintf("%+v %+v", r, *r.Failure)
	for _, secret := range []string{token, "0123456789abcdef", "pa55word", "cookie-from-server"} {
		if strings.Contains(text, secret) {
			t.Errorf("the result holds %q:\n%.2000s", secret, text)
		}
	}
	if len(r.Transcript) != 2 {
		t.Fatalf("%d messages, want 2", len(r.Transcript))
	}
	sent, received := r.Transcript[0], r.Transcript[1]
	if !sent.Sent || !strings.HasPrefix(sent.Head, "POST /v3/…?apikey=… HTTP/1.1\nHost: 127.0.0.1:") || !strings.Contains(sent.Head, "Authorization: …") ||
		!strings.Contains(sent.Body, `"method":"m"`) || sent.Step != "m" {
		t.Errorf("sent %+v", sent)
	}
	if received.Sent || !strings.HasPrefix(received.Head, "HTTP/1.1 500 Internal Server Error\n") || !strings.Contains(received.Head, "X-Echo: …") ||
		!strings.HasPrefix(received.Body, "you sent … to /v3/…?apikey=… with {") || !received.Clipped || len(received.Body) > 64<<10 {
		t.Errorf("received %.600s…, clipped %t", received.Head+received.Body, received.Clipped)
	}
	target.Transcript = false
	if r := ask(t, target); r.Transcript != nil {
		t.Errorf("a transcript that nobody asked for: %+v", r.Transcript)
	}
}
