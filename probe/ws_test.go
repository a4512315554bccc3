package probe_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// local probes with everything allowed, private addresses and things of this machine included.
func local() *probe.Prober {
	return &probe.Prober{Version: "1.2.3", Egress: probe.Egress{Any: true}, Local: true}
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	up, down, gated, unknown := probe.Up, probe.Down, probe.Gated, probe.Unknown
	type faults = []probetest.Fault
	type carrier = []probetest.CarrierFault
	secret := []probe.Header{{Name: "X-Api-Key", Value: "opensesame-1", Secret: true}}
	const html = "<html><title>Welcome</title></html>"
	for name, tc := range map[string]struct {
		faults  faults
		carrier carrier
		headers []probe.Header
		want    want
	}{
		"healthy":               {nil, nil, nil, want{verdict: up}},
		"with a pause":          {faults{probetest.SlowAt("m", 20*time.Millisecond)}, nil, nil, want{verdict: up}},
		"byte by byte":          {nil, carrier{probetest.Pieces()}, nil, want{verdict: up}},
		"in fragments":          {nil, carrier{probetest.Fragmented()}, nil, want{verdict: up}},
		"no answer to a close":  {nil, carrier{probetest.Rude()}, nil, want{verdict: up}},
		"a notification before": {nil, carrier{probetest.Greeting(`{"jsonrpc":"2.0","method":"hello","params":{}}`)}, nil, want{verdict: up}},
		"an empty frame before": {nil, carrier{probetest.Greeting(" \n")}, nil, want{verdict: up}},
		"binary frames":         {nil, carrier{probetest.Binary()}, nil, want{verdict: up, warnings: []string{"m framing"}}},
		"two in one frame":      {nil, carrier{probetest.Glued()}, nil, want{verdict: up, warnings: []string{"m framing"}}},
		"an error":              {faults{probetest.RPCErrorAt("m", 200, -32603, "Internal error")}, nil, nil, want{verdict: down, class: probe.ClassRPCError, code: -32603, message: "Internal error"}},
		"another id":            {faults{probetest.WrongIDAt("m")}, nil, nil, want{verdict: down, class: probe.ClassIDMismatch}},
		"not JSON":              {faults{probetest.GarbageAt("m")}, nil, nil, want{verdict: down, class: probe.ClassInvalidJSON}},
		"a text before":         {nil, carrier{probetest.Greeting("welcome")}, nil, want{verdict: down, class: probe.ClassInvalidJSON}},
		"too large":             {faults{probetest.HugeBodyAt("m", 2<<20)}, nil, nil, want{verdict: down, class: probe.ClassBodyTooLarge, message: "larger than 1048576 bytes"}},
		"cut off":               {faults{probetest.HalfBodyAt("m")}, nil, nil, want{verdict: down, class: probe.ClassTruncatedBody, message: "in the middle of a message"}},
		"dropped":               {faults{probetest.CloseAt("m")}, nil, nil, want{verdict: down, class: probe.ClassConnect, message: "without a close frame"}},
		"reset":                 {faults{probetest.ResetAt("m")}, nil, nil, want{verdict: down, class: probe.ClassConnect, message: "connection reset"}},
		"a frame that is none":  {nil, carrier{probetest.BadFrameAt("m")}, nil, want{verdict: down, class: probe.ClassFraming, message: "no WebSocket frame"}},

		"closed as usual":            {nil, carrier{probetest.CloseFrameAt("m", 1000, "bye")}, nil, want{verdict: down, class: probe.ClassConnect, code: 1000, message: "before an answer: 1000 normal closure: bye"}},
		"closed in trouble":          {nil, carrier{probetest.CloseFrameAt("m", 1011, "")}, nil, want{verdict: down, class: probe.ClassConnect, code: 1011, message: "1011 internal error"}},
		"closed for a policy":        {nil, carrier{probetest.CloseFrameAt("m", 1008, "rate limit reached")}, nil, want{verdict: unknown, class: probe.ClassRateLimited, code: 1008, message: "rate limit reached"}},
		"closed with 4429":           {nil, carrier{probetest.CloseFrameAt("m", 4429, "")}, nil, want{verdict: unknown, class: probe.ClassRateLimited, code: 4429}},
		"closed with 4401":           {nil, carrier{probetest.CloseFrameAt("m", 4401, "")}, nil, want{verdict: gated, class: probe.ClassAuthRequired, code: 4401}},
		"closed with 3000, key sent": {nil, carrier{probetest.CloseFrameAt("m", 3000, "bad key opensesame-1")}, secret, want{verdict: gated, class: probe.ClassCredentialRejected, code: 3000, message: "bad key …"}},
		"closed with 3003, key sent": {nil, carrier{probetest.CloseFrameAt("m", 3003, "")}, secret, want{verdict: gated, class: probe.ClassAuthForbidden, code: 3003, message: "3003 forbidden"}},

		"refused with 401": {faults{probetest.Unauthorized("Bearer")}, nil, nil, want{verdict: gated, class: probe.ClassAuthRequired, code: 401}},
		"refused with 401, not advertised": {faults{probetest.Unauthorized("")}, nil, secret,
			want{verdict: gated, class: probe.ClassCredentialRejected, code: 401, warnings: []string{"m auth_not_advertised"}}},
		"refused with 403":          {faults{probetest.StatusAt("upgrade", 403, "text/plain", "no")}, nil, nil, want{verdict: gated, class: probe.ClassAuthRequired, code: 403}},
		"refused for its Host":      {faults{probetest.StatusAt("upgrade", 403, "text/plain", "invalid host specified")}, nil, nil, want{verdict: probe.Degraded, class: probe.ClassHostRejected, code: 403}},
		"refused with 404":          {faults{probetest.StatusAt("upgrade", 404, "text/plain", "nothing here")}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 404, message: "404 Not Found: nothing here"}},
		"refused with 405":          {faults{probetest.StatusAt("upgrade", 405, "text/plain", "no")}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 405, message: "405 Method Not Allowed: no (there may be no WebSocket at this path)"}},
		"refused with 429":          {faults{probetest.RateLimited("7")}, nil, nil, want{verdict: unknown, class: probe.ClassRateLimited, code: 429}},
		"refused with 426":          {faults{probetest.StatusAt("upgrade", 426, "text/plain", "")}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 426}},
		"refused with 502":          {faults{probetest.StatusAt("upgrade", 502, "text/html", html)}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 502, message: "502 Bad Gateway: Welcome"}},
		"a page":                    {faults{probetest.StatusAt("upgrade", 200, "text/html", html)}, nil, nil, want{verdict: down, class: probe.ClassContentType, code: 200, message: "text/html in place of a WebSocket: Welcome"}},
		"plain HTTP":                {faults{probetest.StatusAt("upgrade", 200, "", "")}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 200, message: "http://"}},
		"a bot wall":                {faults{probetest.BotWall()}, nil, nil, want{verdict: unknown, class: probe.ClassBlocked, code: 403}},
		"redirected":                {faults{probetest.RedirectAt("upgrade", 307, "/elsewhere?key=abcdef0123456789abcdef")}, nil, nil, want{verdict: down, class: probe.ClassRedirect, code: 307, message: "/elsewhere?key=…"}},
		"another accept key":        {faults{probetest.HeaderAt("upgrade", "Sec-Websocket-Accept", "x")}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 101, message: "not to a WebSocket"}},
		"a subprotocol of its own":  {faults{probetest.HeaderAt("upgrade", "Sec-Websocket-Protocol", "x")}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 101, message: "Sec-WebSocket-Protocol"}},
		"an extension of its own":   {faults{probetest.HeaderAt("upgrade", "Sec-Websocket-Extensions", "permessage-deflate")}, nil, nil, want{verdict: down, class: probe.ClassHTTPStatus, code: 101}},
		"dropped in the handshake":  {faults{probetest.CloseAt("upgrade")}, nil, nil, want{verdict: down, class: probe.ClassConnect, message: "closed before an answer"}},
		"the one it was asked for":  {nil, nil, []probe.Header{{Name: "Sec-WebSocket-Protocol", Value: "mcp, jsonrpc"}}, want{verdict: up}},
		"headers are for the start": {nil, nil, secret, want{verdict: up}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.JSONRPC(t, tc.faults...)
			front := probetest.WebSocket(t, s, tc.carrier...)
			p := local()
			p.Limits.ResponseBytes = 1 << 20
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL, Headers: tc.headers, Timeout: 10 * time.Second})
			tc.want.steps = "m"
			if tc.want.class != "" {
				tc.want.step, tc.want.steps = "m", "m!"+string(tc.want.class)
			}
			check(t, r, tc.want)
			front.Stop() // returns only when the connection is gone
		})
	}
}

func TestWebSocketInTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault   probetest.Fault
		message string
	}{
		"never answers":              {probetest.HangAt("m"), "no first byte after"},
		"never answers the upgrade":  {probetest.HangAt("upgrade"), "WebSocket handshake not answered after"},
		"never ends what it answers": {probetest.DripAt("m", time.Hour), "no first byte after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := probetest.WebSocket(t, probetest.JSONRPC(t, tc.fault))
			began := time.Now()
			r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL, Timeout: 300 * time.Millisecond})
			check(t, r, want{verdict: probe.Down, step: "m", class: probe.ClassTimeout, message: tc.message, steps: "m!timeout"})
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestWebSocketOverTLS(t *testing.T) {
	t.Parallel()
	front := probetest.WebSocket(t, probetest.JSONRPC(t), probetest.OverTLS())
	p := local()
	p.RootCAs = front.CertPool()
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL})
	check(t, r, want{verdict: probe.Up, steps: "m"})
	if r.Facts.TLSExpiresAt == nil || r.Steps[0].Phases.TLS <= 0 || r.Steps[0].Phases.Connect <= 0 || r.Steps[0].HTTPStatus != 101 || r.Facts.RemoteAddr == "" {
		t.Errorf("facts %+v, step %+v", r.Facts, r.Steps[0])
	}
	bad := probetest.WebSocket(t, probetest.JSONRPC(t), probetest.OverBadTLS())
	check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: bad.URL}),
		want{verdict: probe.Down, step: "m", class: probe.ClassTLS, steps: "m!tls"})
}

func TestWebSocketHandshakeAndEnd(t *testing.T) {
	t.Parallel()
	s := probetest.JSONRPC(t)
	front := probetest.WebSocket(t, s)
	r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL, Transcript: true, Headers: []probe.Header{
		{Name: "X-Api-Key", Value: "opensesame-1", Secret: true}, {Name: "User-Agent", Value: "mine"},
	}})
	check(t, r, want{verdict: probe.Up, steps: "m"})
	front.Stop()
	if diff := cmp.Diff([]string{"1000"}, front.Ends()); diff != "" {
		t.Errorf("ended: -want +got\n%s", diff)
	}
	requests := s.Requests()
	if len(requests) != 2 || requests[0].Step != "upgrade" {
		t.Fatalf("requests %+v", requests)
	}
	h := requests[0].Header
	for name, want := range map[string]string{"X-Api-Key": "opensesame-1", "User-Agent": "mine", "Sec-Websocket-Protocol": "", "Sec-Websocket-Extensions": "", "Origin": ""} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	var lines []string
	for _, m := range r.Transcript {
		head, _, _ := strings.Cut(m.Head, "\n")
		lines = append(lines, head)
	}
	if diff := cmp.Diff([]string{"GET /rpc HTTP/1.1", "HTTP/1.1 101 Switching Protocols", "", ""}, lines); diff != "" {
		t.Errorf("transcript: -want +got\n%s", diff)
	}
	for _, m := range r.Transcript {
		if strings.Contains(m.Head+m.Body, "opensesame") {
			t.Errorf("the secret shows in %+v", m)
		}
	}
}

func TestWebSocketEgress(t *testing.T) {
	t.Parallel()
	front := probetest.WebSocket(t, probetest.JSONRPC(t))
	var strict probe.Prober
	check(t, strict.Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL}),
		want{verdict: probe.Unknown, step: "m", class: probe.ClassEgressBlocked, steps: "m!ssrf_blocked"})
	front.Stop()
	check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL}),
		want{verdict: probe.Down, step: "m", class: probe.ClassConnect, message: "connection refused", steps: "m!connect"})
}

// A caller that has gone learns nothing, and leaves nothing behind.
func TestWebSocketCancelled(t *testing.T) {
	t.Parallel()
	front := probetest.WebSocket(t, probetest.JSONRPC(t, probetest.HangAt("m")))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	r := local().Probe(ctx, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL})
	check(t, r, want{verdict: probe.Unknown, step: "m", class: probe.ClassProbeError, message: "cancelled", steps: "m!probe_error"})
}

func TestMCPOverWebSocket(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		faults []probetest.Fault
		want   want
	}{
		"modern": {nil, want{verdict: probe.Up, era: probe.EraModern, steps: "server/discover tools/list", tools: 3}},
		"legacy": {[]probetest.Fault{probetest.LegacyOnly()}, want{verdict: probe.Up, era: probe.EraLegacy, steps: "server/discover!rpc_error initialize initialized tools/list", tools: 3}},
		"busy":   {[]probetest.Fault{probetest.LegacyOnly(), probetest.SSE()}, want{verdict: probe.Up, era: probe.EraLegacy, steps: "server/discover!rpc_error initialize initialized tools/list", tools: 3}},
		"no tools listed": {[]probetest.Fault{probetest.RPCErrorAt("tools/list", http.StatusOK, -32603, "Internal error")},
			want{verdict: probe.Down, era: probe.EraModern, step: "tools/list", class: probe.ClassRPCError, code: -32603, steps: "server/discover tools/list!rpc_error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, tc.faults...)
			front := probetest.WebSocket(t, s)
			check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: front.URL}), tc.want)
			front.Stop()
			if n := s.Sessions(); n != 0 {
				t.Errorf("%d sessions left open", n)
			}
		})
	}
}

// What a node sends of its own between two answers is passed over, whatever carries it.
func TestEventsBetweenAnswers(t *testing.T) {
	t.Parallel()
	events := probetest.PushAfter("eth_blockNumber", 2*time.Millisecond, `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":{}}}`)
	s := probetest.EVM(t, probetest.SlowAt("eth_chainId", 20*time.Millisecond))
	peer := probetest.Process(t, s, events)
	for name, target := range map[string]probe.Target{
		"WebSocket": {URL: probetest.WebSocket(t, s, events).URL},
		"socket":    {URL: probetest.Socket(t, s, events).URL},
		"process":   {Command: &probe.Command{Args: peer.Args, Env: prompt}},
	} {
		t.Run(name, func(t *testing.T) {
			target.Kind = probe.KindJSONRPC
			target.Method = "eth_blockNumber"
			check(t, local().Probe(t.Context(), target), want{verdict: probe.Up, steps: "eth_blockNumber"})
			target.Kind, target.Method = probe.KindEVM, ""
			r := local().Probe(t.Context(), target)
			if r.Verdict != probe.Up {
				t.Errorf("%s: %+v, warnings %+v", r.Verdict, r.Failure, r.Warnings)
			}
		})
	}
}
