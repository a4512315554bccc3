package probe_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

const (
	sseSteps    = "server/discover!http_status initialize!http_status sse initialize initialized tools/list"
	sseRecalled = "sse initialize initialized tools/list" // of an endpoint remembered as HTTP+SSE
)

func TestHTTPSSE(t *testing.T) {
	t.Parallel()
	up, down := probe.Up, probe.Down
	sse := probe.EraSSE
	faults := func(f ...probetest.Fault) []probetest.Fault { return f }
	for name, tc := range map[string]struct {
		faults []probetest.Fault
		era    probe.Era
		within time.Duration
		want   want
	}{
		"found by falling back":    {nil, "", 0, want{verdict: up, era: sse, kind: probe.KindMCP, tools: 3, steps: sseSteps}},
		"remembered":               {nil, sse, 0, want{verdict: up, era: sse, tools: 3, steps: sseRecalled}},
		"remembered as legacy":     {nil, probe.EraLegacy, 0, want{verdict: up, era: sse, steps: "initialize!http_status sse initialize initialized tools/list"}},
		"remembered as modern":     {nil, probe.EraModern, 0, want{verdict: up, era: sse, steps: sseSteps}},
		"many pages":               {faults(probetest.Tools(7), probetest.PageSize(3)), sse, 0, want{verdict: up, era: sse, tools: 7, steps: sseRecalled + " tools/list tools/list"}},
		"one byte at a time":       {faults(probetest.DripAt("sse", 0)), sse, 0, want{verdict: up, era: sse, tools: 3, steps: sseRecalled}},
		"a notification first":     {faults(probetest.ChangedFirst()), sse, 0, want{verdict: up, era: sse, tools: 3, steps: sseRecalled}},
		"without tools":            {faults(probetest.NoTools()), sse, 0, want{verdict: up, era: sse, tools: -1, steps: "sse initialize initialized prompts/list"}},
		"an old version is enough": {faults(probetest.StrictVersion("2024-11-05")), sse, 0, want{verdict: up, era: sse, steps: "sse initialize!version_unsupported initialize initialized tools/list"}},
		"a whole URL of the same origin": {faults(probetest.Endpoint("")), sse, 0,
			want{verdict: up, era: sse, steps: sseRecalled}},
		"answers in the body of the POST": {faults(probetest.InBodyAt("tools/list")), sse, 0,
			want{verdict: up, era: sse, tools: 3, steps: sseRecalled, warnings: []string{"tools/list sse_no_response"}}},
		"an error on the stream": {faults(probetest.RPCErrorAt("tools/list", 500, -32603, "Internal error")), sse, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassRPCError, code: -32603, message: "Internal error", era: sse, steps: "sse initialize initialized tools/list!rpc_error"}},
		"a wrong id": {faults(probetest.WrongIDAt("tools/list")), sse, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassIDMismatch, era: sse, steps: "sse initialize initialized tools/list!id_mismatch"}},
		"a POST that fails": {faults(probetest.StatusAt("tools/list", 502, "text/plain", "bad gateway")), sse, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassHTTPStatus, code: 502, message: "bad gateway", era: sse, steps: "sse initialize initialized tools/list!http_status"}},
		"a POST that is never answered": {faults(probetest.HangAt("tools/list")), sse, time.Second,
			want{verdict: down, step: "tools/list", class: probe.ClassTimeout, message: "the message was not taken: no first byte after", era: sse, steps: "sse initialize initialized tools/list!timeout"}},
		"a POST that is redirected": {faults(probetest.RedirectAt("tools/list", 307, "/elsewhere")), sse, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassRedirect, code: 307, era: sse, steps: "sse initialize initialized tools/list!redirect"}},
		"a stream that ends": {faults(probetest.StreamEndsAt("tools/list")), sse, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSENoResponse, era: sse, steps: "sse initialize initialized tools/list!sse_no_response"}},
		"a GET that hangs": {faults(probetest.HangAt("sse")), sse, 900 * time.Millisecond,
			want{verdict: down, step: "sse", class: probe.ClassTimeout, era: sse, steps: "sse!timeout server/discover!http_status initialize!http_status"}},
		"a GET that fails": {faults(probetest.StatusAt("sse", 503, "text/plain", "try later")), sse, 0,
			want{verdict: down, step: "sse", class: probe.ClassHTTPStatus, code: 503, message: "try later", era: sse, steps: "sse!http_status"}},
		"a GET that wants credentials": {faults(probetest.StatusAt("sse", 401, "application/json", `{"error":"unauthorized"}`)), "", 0,
			want{verdict: probe.Gated, step: "sse", class: probe.ClassAuthRequired, code: 401, steps: "server/discover!http_status initialize!http_status sse!auth_required"}},
		"gone": {faults(probetest.StatusAt("", 404, "text/plain", "no such page")), sse, 0,
			want{verdict: down, step: "sse", class: probe.ClassHTTPStatus, code: 404, era: sse, steps: "sse!http_status server/discover!http_status initialize!http_status"}},
		"nothing there": {faults(probetest.StatusAt("", 404, "text/plain", "no such page")), "", 0,
			want{verdict: down, step: "initialize", class: probe.ClassHTTPStatus, code: 404, steps: "server/discover!http_status initialize!http_status sse!http_status"}},
		"no endpoint event": {faults(probetest.FirstEvent(": hello\n\nevent: ping\ndata: 1\n\n")), "", 900 * time.Millisecond,
			want{verdict: down, step: "sse", class: probe.ClassSSEEndpointMissing, message: "no endpoint event within 300 ms",
				steps: "server/discover!http_status initialize!http_status sse!sse_endpoint_missing"}},
		"a stream that ends before the endpoint event": {faults(probetest.EmptyStreamAt("sse")), "", 0,
			want{verdict: down, step: "sse", class: probe.ClassSSEEndpointMissing, message: "ended without", steps: "server/discover!http_status initialize!http_status sse!sse_endpoint_missing"}},
		"another event first": {faults(probetest.FirstEvent("data: {\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n\n")), "", 0,
			want{verdict: down, step: "sse", class: probe.ClassSSEEndpointMissing, code: 200, message: "begins with a message", steps: "server/discover!http_status initialize!http_status sse!sse_endpoint_missing"}},
		"an endpoint on an internal host": {faults(probetest.Endpoint("http://10.0.0.7:8000/message?sessionId=$id")), "", 0,
			want{verdict: down, step: "sse", class: probe.ClassSSEEndpointInvalid, message: "http://10.0.0.7:8000", steps: "server/discover!http_status initialize!http_status sse!sse_endpoint_invalid"}},
		"an endpoint of another scheme": {faults(probetest.Endpoint("https://127.0.0.1/message")), "", 0,
			want{verdict: down, step: "sse", class: probe.ClassSSEEndpointInvalid, message: "another origin", steps: "server/discover!http_status initialize!http_status sse!sse_endpoint_invalid"}},
		"an endpoint that is no URL": {faults(probetest.Endpoint(`{"uri":"/message"}`)), "", 0,
			want{verdict: down, step: "sse", class: probe.ClassSSEEndpointInvalid, message: "cannot be read", steps: "server/discover!http_status initialize!http_status sse!sse_endpoint_invalid"}},
		"an endpoint behind another prefix": {faults(probetest.Endpoint("/wrong/message?sessionId=$id")), "", 0,
			want{verdict: down, step: "initialize", class: probe.ClassSSEEndpointInvalid, code: 404, message: "/wrong/message: 404 Not Found",
				steps: "server/discover!http_status initialize!http_status sse initialize!sse_endpoint_invalid"}},
		"a stream that the server does not know": {faults(probetest.Endpoint("/message?sessionId=other")), sse, 0,
			want{verdict: down, step: "initialize", class: probe.ClassSSEEndpointInvalid, code: 404, message: "Session not found", era: sse, steps: "sse initialize!sse_endpoint_invalid"}},
		"a POST answered like a GET": {faults(probetest.PostStreams()), "", 0,
			want{verdict: up, era: sse, steps: "server/discover!sse_no_response initialize!sse_no_response sse initialize initialized tools/list"}},
		"a stream of rubbish": {faults(probetest.EnvelopeAt("tools/list", "rubbish")), sse, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassInvalidJSON, era: sse, steps: "sse initialize initialized tools/list!invalid_json"}},
		"an answer that is too large": {faults(probetest.HugeBodyAt("tools/list", 200<<10)), sse, 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSEFraming, era: sse, steps: "sse initialize initialized tools/list!sse_framing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.HTTPSSE(t, tc.faults...)
			if strings.HasPrefix(name, "a whole URL") {
				s.SetFaults(probetest.Endpoint(s.URL[:len(s.URL)-len("/sse")] + "/message?sessionId=$id"))
			}
			p := prober()
			p.Limits = probe.Limits{ResponseBytes: 256 << 10, EventBytes: 128 << 10}
			got := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: tc.era, Timeout: tc.within})
			check(t, got, tc.want)
			if tc.within > 0 && got.Duration > tc.within+time.Second {
				t.Errorf("took %v of %v", got.Duration, tc.within)
			}
			awaitNoFeeds(t, s)
		})
	}
}

// awaitNoFeeds waits until the server has noticed that its event streams were left.
func awaitNoFeeds(t *testing.T, s *probetest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for s.Feeds() > 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("%d event streams left open", s.Feeds())
		case <-time.After(time.Millisecond):
		}
	}
}

// A server that changed its transport is found again, in either direction.
func TestHTTPSSEThatBecameSomethingElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		faults []probetest.Fault
		want   want
	}{
		"modern": {nil, want{verdict: probe.Up, era: probe.EraModern, steps: "sse!http_status " + modernSteps}},
		"legacy": {[]probetest.Fault{probetest.LegacyOnly()}, want{verdict: probe.Up, era: probe.EraLegacy, steps: "sse!http_status " + legacySteps}},
		"legacy that leaves a GET waiting": {[]probetest.Fault{probetest.LegacyOnly(), probetest.HangAt("sse")},
			want{verdict: probe.Up, era: probe.EraLegacy, steps: "sse!timeout " + legacySteps}},
		"down": {[]probetest.Fault{probetest.HangAt("")},
			want{verdict: probe.Down, step: "sse", class: probe.ClassTimeout, era: probe.EraSSE, steps: "sse!timeout server/discover!timeout initialize!timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, tc.faults...)
			check(t, ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraSSE, Timeout: 3 * time.Second}), tc.want)
		})
	}
}

// Every message, the GET and the event that names the endpoint are in the transcript, each once.
func TestTranscriptOfHTTPSSE(t *testing.T) {
	t.Parallel()
	s := probetest.HTTPSSE(t)
	r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraSSE, Transcript: true})
	var seen []string
	for _, m := range r.Transcript {
		line, _, _ := strings.Cut(m.Head, "\n")
		body, _, _ := strings.Cut(m.Body, `"jsonrpc"`)
		seen = append(seen, fmt.Sprintf("%s %v %s|%.15s", m.Step, m.Sent, line, body))
	}
	if len(seen) != 11 || !strings.Contains(seen[2], "event: endpoint") || !strings.HasPrefix(seen[3], "initialize true POST /message") {
		t.Errorf("got\n%s", strings.Join(seen, "\n"))
	}
	for i, step := range r.Steps {
		if want := []int{200, 202, 202, 202}[i]; step.HTTPStatus != want || step.Latency <= 0 {
			t.Errorf("step %s: status %d after %s, want %d", step.Name, step.HTTPStatus, step.Latency, want)
		}
	}
}

// A GET that is refused with an old access token is sent once more with a fresh one.
func TestHTTPSSEWithAnAccessToken(t *testing.T) {
	t.Parallel()
	var issued atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-number-%d","token_type":"Bearer","expires_in":3600}`, issued.Add(1))
	}))
	defer tokens.Close()
	s := probetest.HTTPSSE(t)
	p := prober()
	target := probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraSSE,
		Options: probe.Options{OAuth: &probe.OAuth{ClientID: "monitor", ClientSecret: "client-secret-1", TokenURL: tokens.URL}}}
	for i, step := range []string{"", "sse!credential_rejected "} {
		if step != "" {
			s.SetFaults(probetest.Once(probetest.StatusAt("sse", 401, "text/plain", "expired")))
		}
		r := p.Probe(t.Context(), target)
		if line := stepLine(r.Steps); r.Verdict != probe.Up || !strings.HasSuffix(line, sseRecalled) || !strings.Contains(line, step) {
			t.Errorf("check %d: %s, steps %s, %+v", i+1, r.Verdict, line, r.Failure)
		}
	}
	var seen []string
	for _, r := range s.Requests() {
		if seen == nil || seen[len(seen)-1] != r.Header.Get("Authorization") {
			seen = append(seen, r.Header.Get("Authorization"))
		}
	}
	if want := []string{"Bearer token-number-1", "Bearer token-number-2"}; !slices.Equal(seen, want) {
		t.Errorf("sent %q, want %q", seen, want)
	}
}

// The endpoint event comes from a stranger: credentials go where the stream is and nowhere else.
func TestCredentialsStayAtTheOriginOfTheStream(t *testing.T) {
	t.Parallel()
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the other origin was asked")
	}))
	defer thief.Close()
	s := probetest.HTTPSSE(t)
	for _, endpoint := range []string{
		thief.URL + "/message", strings.TrimPrefix(thief.URL, "http:") + "/message", "http://user@127.0.0.1/message",
		"//localhost" + s.URL[strings.LastIndex(s.URL, ":"):], "javascript:alert(1)", "file:///etc/passwd", "\\\\127.0.0.1\\message", " ",
	} {
		s.SetFaults(probetest.Endpoint(endpoint))
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraSSE, Headers: []probe.Header{{Name: "Authorization", Value: "Bearer secret-token", Secret: true}}})
		if r.Verdict != probe.Down || r.Failure.Class != probe.ClassSSEEndpointInvalid {
			t.Errorf("endpoint %q: %s, %+v; want down with sse_endpoint_invalid", endpoint, r.Verdict, r.Failure)
		}
	}
}

func TestWhereMessagesMayBePosted(t *testing.T) {
	t.Parallel()
	const stream = "https://mcp.example/team/sse?key=k1"
	for data, want := range map[string]string{
		"/message?sessionId=1":               "https://mcp.example/message?sessionId=1",
		"message?sessionId=1":                "https://mcp.example/team/message?sessionId=1",
		"?sessionId=1":                       "https://mcp.example/team/sse?sessionId=1",
		" /message ":                         "https://mcp.example/message",
		"https://mcp.example/m":              "https://mcp.example/m",
		"https://MCP.example:443/m":          "https://MCP.example:443/m",
		"//mcp.example/m":                    "https://mcp.example/m",
		"/m#part":                            "https://mcp.example/m",
		"/m%2Fn?a=%20b":                      "https://mcp.example/m%2Fn?a=%20b",
		"http://mcp.example/m":               "",
		"https://mcp.example:8443/m":         "",
		"https://mcp.example.evil/m":         "",
		"https://mcp.example@evil.example/m": "",
		"https://evil@mcp.example/m":         "",
		"//evil.example/m":                   "",
		"https:///m":                         "",
		"javascript:alert(1)":                "",
		"":                                   "",
		"/" + strings.Repeat("x", 3000):      "",
		"/m\r\nX-Evil: 1":                    "",
		"https://[::1/m":                     "",
		"wss://mcp.example/m":                "",
		"https://mcp.example\u200b/m":        "",
		"{\"uri\":\"/m\"}":                   "",
		"https://mcp.example:443:443/m":      "",
		"https://xn--mcp-9na.example/m":      "",
	} {
		got, class, message := probe.ResolveEndpoint(stream, data)
		if got != want || (want == "") != (class == probe.ClassSSEEndpointInvalid) {
			t.Errorf("%.60q leads to %q (%s: %s), want %q", data, got, class, message, want)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{"/message?sessionId=1", "https://mcp.example/m", "//x", "http://10.0.0.7:8000", "\\x", "[", "%zz", "?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		const origin = "https://mcp.example"
		got, class, message := probe.ResolveEndpoint(origin+"/sse", data)
		if class != "" {
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || !strings.EqualFold(u.Hostname(), "mcp.example") || u.Port() != "" && u.Port() != "443" || u.User != nil {
			t.Errorf("%q leads to %q (%s), which is of another origin than %s", data, got, message, origin)
		}
	})
}

// The two connections are held over TLS and over HTTP/2, where one stream must not end the other.
func TestHTTPSSEOverTLS(t *testing.T) {
	t.Parallel()
	pair := probetest.SelfSigned(t, probetest.Certificate{})
	for _, protocol := range []string{"http/1.1", "h2"} {
		s := probetest.HTTPSSE(t, probetest.TLSWith(&tls.Config{Certificates: []tls.Certificate{pair.TLS}, NextProtos: []string{protocol}}))
		p := prober()
		p.RootCAs = pair.Pool()
		r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: s.URL, Transcript: true})
		check(t, r, want{verdict: probe.Up, era: probe.EraSSE, tools: 3, steps: sseSteps})
		if overHTTP2 := strings.Contains(fmt.Sprint(r.Transcript), "HTTP/2.0 200"); overHTTP2 != (protocol == "h2") {
			t.Errorf("offered %s, spoken over HTTP/2: %v", protocol, overHTTP2)
		}
		awaitNoFeeds(t, s)
	}
}

// What never ends is left, after a bounded number of bytes, events and replies.
func TestEndlessEventStreamsAreLeft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, more string // before and after the endpoint event
		class       probe.Class
	}{
		"comments before the endpoint":       {": x\n", "", probe.ClassSSEEndpointMissing},
		"pings before the endpoint":          {"event: ping\ndata: x\n\n", "", probe.ClassSSEEndpointMissing},
		"an endpoint without end":            {"x", "", probe.ClassSSEEndpointMissing},
		"notifications after the endpoint":   {"", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n", probe.ClassBodyTooLarge},
		"requests after the endpoint":        {"", "data: {\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n\n", probe.ClassBodyTooLarge},
		"empty events after the endpoint":    {"", "data:\n\n", probe.ClassBodyTooLarge},
		"an event without end after it":      {"", "x", probe.ClassSSEFraming},
		"other endpoints after the endpoint": {"", "event: endpoint\ndata: /elsewhere\n\n", probe.ClassBodyTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					posts.Add(1)
					_, _ = io.Copy(io.Discard, r.Body)
					w.WriteHeader(http.StatusAccepted)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				text := tc.first
				if text == "" {
					_, _ = io.WriteString(w, "event: endpoint\ndata: /message\n\n")
					text = tc.more
				}
				for text = strings.Repeat(text, 1000); ; {
					if _, err := io.WriteString(w, text); err != nil {
						return
					}
				}
			}))
			defer server.Close()
			p := prober()
			p.Limits = probe.Limits{ResponseBytes: 64 << 10, EventBytes: 16 << 10}
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: server.URL, Era: probe.EraSSE, Timeout: 20 * time.Second})
			if r.Failure == nil || r.Failure.Class != tc.class {
				t.Errorf("%s, steps %s, %+v; want %s", r.Verdict, stepLine(r.Steps), r.Failure, tc.class)
			}
			if n := posts.Load(); n > 110 {
				t.Errorf("%d messages were posted", n)
			}
		})
	}
}

// A server that writes a long answer on the stream before it answers the POST must not be waited for the wrong way round.
func TestAnswersBeforeTheReceiptOfAPost(t *testing.T) {
	t.Parallel()
	const size = 1 << 20 // more than the buffers between the two hold unread
	messages := make(chan string)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /message\n\n")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case m := <-messages:
				_, _ = io.WriteString(w, "data: "+m+"\n\n")
				_ = http.NewResponseController(w).Flush()
				messages <- "" // written
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /message", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		_, id, _ := strings.Cut(string(body), `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		if id != "" {
			answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"},"tools":[],"x":"%s"}}`,
				id, strings.Repeat("x", size))
			for _, m := range []string{answer, ""} {
				select {
				case messages <- m:
				case <-messages:
				case <-r.Context().Done():
					return
				}
			}
		}
		w.WriteHeader(http.StatusAccepted)
	})
	server := httptest.NewUnstartedServer(mux)
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if tcp, ok := conn.(*net.TCPConn); ok && state == http.StateNew {
			_ = tcp.SetWriteBuffer(16 << 10)
		}
	}
	server.Start()
	defer server.Close()
	p := prober()
	p.Limits = probe.Limits{ResponseBytes: 2 * size, EventBytes: 2 * size}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: server.URL + "/sse", Era: probe.EraSSE, Timeout: 20 * time.Second})
	if r.Verdict != probe.Up {
		t.Errorf("%s, steps %s, %+v", r.Verdict, stepLine(r.Steps), r.Failure)
	}
}
