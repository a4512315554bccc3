package probe_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// quiet is for servers whose opinion of broken connections is no news.
var quiet = log.New(io.Discard, "", 0)

// one answers every JSON-RPC request with 1 and hands on each request.
func one(seen func(*http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen(r)
		}
		var message struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&message)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":1}`, message.ID)
	})
}

func TestVersionOfHTTP(t *testing.T) {
	pair := probetest.SelfSigned(t, probetest.Certificate{})
	const no = "the server does not speak HTTP/2, which this endpoint is set to"
	for name, tc := range map[string]struct {
		secure bool
		offers []string // by ALPN; of a server without TLS: "h2c" for HTTP/2 alone
		asked  probe.HTTPVersion
		proto  string // that was spoken; empty when nothing was
		class  probe.Class
		want   string
	}{
		"both know both":               {true, []string{"h2", "http/1.1"}, "", "HTTP/2.0", "", ""},
		"pinned to 1.1":                {true, []string{"h2", "http/1.1"}, probe.HTTP1, "HTTP/1.1", "", ""},
		"pinned to 2":                  {true, []string{"h2", "http/1.1"}, probe.HTTP2, "HTTP/2.0", "", ""},
		"2 at a server of 1.1":         {true, []string{"http/1.1"}, probe.HTTP2, "", probe.ClassConnect, no},
		"2 at a server without ALPN":   {true, nil, probe.HTTP2, "", probe.ClassConnect, no},
		"1.1 at a server of 2":         {true, []string{"h2"}, probe.HTTP1, "HTTP/1.1", "", ""}, // net/http then offers nothing by ALPN
		"plain":                        {false, nil, "", "HTTP/1.1", "", ""},
		"plain, pinned to 1.1":         {false, nil, probe.HTTP1, "HTTP/1.1", "", ""},
		"plain 2 with prior knowledge": {false, []string{"h2c"}, probe.HTTP2, "HTTP/2.0", "", ""},
		"plain 2 at a server of 1.1":   {false, nil, probe.HTTP2, "", probe.ClassConnect, "speak HTTP/2"}, // it may hang up before it is heard
	} {
		t.Run(name, func(t *testing.T) {
			proto := make(chan string, 1)
			s := httptest.NewUnstartedServer(one(func(r *http.Request) { proto <- r.Proto }))
			s.Config.ErrorLog = quiet
			if tc.secure {
				s.Listener = tls.NewListener(s.Listener, &tls.Config{Certificates: []tls.Certificate{pair.TLS}, NextProtos: tc.offers})
			}
			if slices.Contains(tc.offers, "h2c") {
				s.Config.Protocols = new(http.Protocols)
				s.Config.Protocols.SetUnencryptedHTTP2(true)
			}
			s.Start()
			defer s.Close()
			where := s.URL
			if tc.secure {
				where = strings.Replace(where, "http:", "https:", 1)
			}
			r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: where, Transcript: true,
				Options: probe.Options{HTTP: tc.asked, TLS: probe.TLS{CA: pair.CertPEM}}})
			if tc.proto == "" {
				check(t, r, want{verdict: probe.Down, step: "m", class: tc.class, message: tc.want, steps: "m!" + string(tc.class)})
				return
			}
			if r.Verdict != probe.Up {
				t.Fatalf("%s %+v", r.Verdict, r.Failure)
			}
			if got := <-proto; got != tc.proto {
				t.Errorf("spoke %s, want %s", got, tc.proto)
			}
			for _, m := range r.Transcript {
				if line, _, _ := strings.Cut(m.Head, "\n"); !strings.Contains(line, tc.proto) {
					t.Errorf("the transcript says %q of %s", line, tc.proto)
				}
			}
		})
	}
}

func TestVersionOfIP(t *testing.T) {
	s := probetest.EVM(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	port = strings.TrimSuffix(port, "/")
	for name, tc := range map[string]struct {
		host    string
		addrs   []string
		version probe.IPVersion
		class   probe.Class
		want    string
	}{
		"4 of both":            {"node.example", []string{"::1", "127.0.0.1"}, probe.IPv4, "", ""},
		"4 written as 6":       {"node.example", []string{"::ffff:127.0.0.1"}, probe.IPv4, "", ""},
		"no 6":                 {"node.example", []string{"127.0.0.1"}, probe.IPv6, probe.ClassDNS, "node.example has no IPv6 address"},
		"no 4":                 {"node.example", []string{"::1"}, probe.IPv4, probe.ClassDNS, "node.example has no IPv4 address"},
		"an address of 4 as 6": {"127.0.0.1", nil, probe.IPv6, probe.ClassDNS, "127.0.0.1 has no IPv6 address"},
		"an address of 6 as 4": {"[::1]", nil, probe.IPv4, probe.ClassDNS, "::1 has no IPv4 address"},
	} {
		t.Run(name, func(t *testing.T) {
			p := probe.Prober{Egress: probe.Egress{Any: true, Resolver: &names{lists: [][]string{tc.addrs}}}}
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: "http://" + tc.host + ":" + port, Options: probe.Options{IP: tc.version}})
			if tc.class == "" {
				if r.Verdict != probe.Up || r.Facts.RemoteAddr != "127.0.0.1:"+port {
					t.Errorf("%s %+v at %s", r.Verdict, r.Failure, r.Facts.RemoteAddr)
				}
				return
			}
			check(t, r, want{verdict: probe.Down, step: "eth_blockNumber", class: tc.class, message: tc.want, steps: "eth_blockNumber!" + string(tc.class)})
		})
	}
}

func TestVersionsThatThereAreNot(t *testing.T) {
	target := probe.Target{Kind: probe.KindEVM, URL: "https://x.example", Options: probe.Options{IP: "5", HTTP: "3"}}
	var fields []string
	for _, p := range target.Validate() {
		fields = append(fields, p.Field)
	}
	if got := strings.Join(fields, " "); got != "ip_version http_version" {
		t.Errorf("problems with %s", got)
	}
}

// resolverFunc is a Resolver made of a function.
type resolverFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return f(ctx, network, host)
}

// A resolver that never answers uses up its own time and not that of the endpoint.
func TestSilentResolver(t *testing.T) {
	for timeout, took := range map[time.Duration]time.Duration{15 * time.Second: 5 * time.Second, 4 * time.Second: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			resolver := resolverFunc(func(ctx context.Context, network, _ string) ([]netip.Addr, error) {
				if network != "ip" {
					t.Errorf("asked for %s", network)
				}
				<-ctx.Done()
				return nil, ctx.Err()
			})
			p := probe.Prober{Egress: probe.Egress{Resolver: resolver}}
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Timeout: timeout})
			check(t, r, want{verdict: probe.Down, step: "eth_blockNumber", class: probe.ClassDNS, message: "no answer about the address of node.example",
				steps: "eth_blockNumber!dns"})
			if r.Duration != took {
				t.Errorf("took %v of %v, want %v", r.Duration, timeout, took)
			}
		})
	}
}

func TestProxy(t *testing.T) {
	pair := probetest.SelfSigned(t, probetest.Certificate{Names: []string{"node.example", "127.0.0.1"}})
	plain := probetest.EVM(t)
	secure := secured(t, pair)
	over := probetest.SelfSigned(t, probetest.Certificate{})
	for name, tc := range map[string]struct {
		server *probetest.Server
		host   string
		plan   probetest.ProxyPlan
	}{
		"to plain HTTP":        {plain, "127.0.0.1", probetest.ProxyPlan{}},
		"to plain HTTP, named": {plain, "node.example", probetest.ProxyPlan{}},
		"to HTTPS":             {secure, "127.0.0.1", probetest.ProxyPlan{}},
		"to HTTPS, named":      {secure, "node.example", probetest.ProxyPlan{}},
		"with a password":      {secure, "node.example", probetest.ProxyPlan{User: "probe", Password: "pr0xy-passw0rd"}},
		"over TLS":             {secure, "node.example", probetest.ProxyPlan{TLS: over}},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := probetest.NewProxy(t, tc.plan)
			p := probe.Prober{Egress: probe.Egress{Any: true, Resolver: &names{lists: [][]string{{"127.0.0.1"}}}}, RootCAs: over.Pool(), Proxy: proxy.Through}
			before := len(tc.server.Requests())
			target := strings.Replace(tc.server.URL, "127.0.0.1", tc.host, 1)
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: target, Options: probe.Options{TLS: probe.TLS{CA: pair.CertPEM}}})
			if r.Verdict != probe.Up {
				t.Fatalf("%s %+v", r.Verdict, r.Failure)
			}
			there, err := url.Parse(tc.server.URL)
			if err != nil {
				t.Fatal(err)
			}
			if got := proxy.Asked(); !slices.Equal(got, []string{"CONNECT " + there.Host}) {
				t.Errorf("the proxy was asked %q, want CONNECT %s", got, there.Host)
			}
			if r.Facts.RemoteAddr != there.Host || r.Steps[0].Phases.Connect <= 0 {
				t.Errorf("remote address %s, phases %+v", r.Facts.RemoteAddr, r.Steps[0].Phases)
			}
			if h := tc.server.Requests()[before].Header; h.Get("Proxy-Authorization") != "" {
				t.Errorf("the endpoint was sent %v", h)
			}
		})
	}
}

// A proxy in trouble says nothing about the endpoint, and its password is nobody's business.
func TestProxyInTrouble(t *testing.T) {
	s := probetest.EVM(t)
	const password = "pr0xy-passw0rd"
	gone := probetest.NewProxy(t, probetest.ProxyPlan{})
	nowhere := gone.URL()
	nowhere.Host, nowhere.User = "127.0.0.1:1", url.UserPassword("probe", password)
	through := func(plan probetest.ProxyPlan) func(*url.URL) (*url.URL, error) {
		proxy := probetest.NewProxy(t, plan)
		return func(*url.URL) (*url.URL, error) {
			u := proxy.URL()
			u.User = url.UserPassword("probe", password)
			return u, nil
		}
	}
	for name, tc := range map[string]struct {
		proxy func(*url.URL) (*url.URL, error)
		want  string
	}{
		"wants another password": {through(probetest.ProxyPlan{User: "probe", Password: "another"}), "407, it wants other credentials"},
		"cannot connect":         {through(probetest.ProxyPlan{Status: 502}), "502 Bad Gateway to CONNECT 127.0.0.1:"},
		"forbids it":             {through(probetest.ProxyPlan{Status: 403}), "403 Forbidden to CONNECT"},
		"is no proxy":            {through(probetest.ProxyPlan{Garbled: true}), "no answer to CONNECT"},
		"does not answer":        {through(probetest.ProxyPlan{Hangs: true}), "of this service: "},
		"is not there":           {func(*url.URL) (*url.URL, error) { return nowhere, nil }, "the proxy 127.0.0.1:1 of this service: connection refused"},
		"speaks something else":  {func(*url.URL) (*url.URL, error) { return &url.URL{Scheme: "socks5", Host: "127.0.0.1:1"}, nil }, "its scheme is not http or https"},
		"cannot be read": {func(*url.URL) (*url.URL, error) { return nil, errors.New("bad proxy http://probe:" + password + "@x") },
			"the proxy that this service is set to cannot be read as a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			p := probe.Prober{Egress: probe.Egress{Any: true}, Proxy: tc.proxy}
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: s.URL, Timeout: 500 * time.Millisecond, Transcript: true})
			check(t, r, want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassProbeError, message: tc.want, steps: "eth_blockNumber!probe_error"})
			shown, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(shown), password) || strings.Contains(string(shown), "cHJvYmU6") {
				t.Errorf("the password is shown: %s", shown)
			}
		})
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests reached the endpoint", n)
	}
}

// What may not be dialled may not be asked of a proxy either.
func TestProxyIsNoWayAroundEgress(t *testing.T) {
	proxy := probetest.NewProxy(t, probetest.ProxyPlan{})
	p := probe.Prober{Egress: probe.Egress{Resolver: &names{lists: [][]string{{"169.254.169.254", "10.0.0.7"}}}}, Proxy: proxy.Through}
	for _, where := range []string{"https://node.example", "http://169.254.169.254/latest", "ws://node.example/"} {
		r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: where})
		if r.Failure == nil || r.Failure.Class != probe.ClassEgressBlocked {
			t.Errorf("%s: %s %+v", where, r.Verdict, r.Failure)
		}
	}
	if got := proxy.Asked(); got != nil {
		t.Errorf("the proxy was asked %q", got)
	}
}
