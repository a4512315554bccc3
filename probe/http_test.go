package probe_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

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
	t.Parallel()
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

// What is compressed in a way that nobody asked for, or is not what it says it is, was not cut short.
func TestCompressedOtherwise(t *testing.T) {
	for encoding, body := range map[string]string{"br": "\x1b\x30\x00\xf8\x8d\x94", "deflate": "x\x9c\xabV\xca", "gzip": `{"jsonrpc":"2.0","id":1,"result":1}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}))
		defer s.Close()
		r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL})
		if f := r.Failure; r.Verdict != probe.Down || f == nil || f.Class != probe.ClassContentType || f.Code != 200 || !strings.Contains(f.Message, encoding) {
			t.Errorf("%s: %s %+v", encoding, r.Verdict, f)
		}
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
