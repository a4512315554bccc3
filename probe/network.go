package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// dialer returns the transport that a check of t dials through: the one that all checks share unless t, or a proxy, asks
// for something of its own. It pools nothing, every check owns its connection.
func (p *Prober) dialer(t *Target) *http.Transport {
	if p.Proxy == nil && t.Options.IP == "" && t.Options.HTTP == "" && !t.Options.TLS.set() {
		p.once.Do(func() { p.transport = p.newTransport(Target{}) })
		return p.transport
	}
	return p.newTransport(*t)
}

// newTransport returns a transport for checks of t.
func (p *Prober) newTransport(t Target) *http.Transport {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return p.dial(ctx, t, network, address)
		},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a compressed event stream is held back until a buffer is full
		ReadBufferSize:         2 << 10,
		WriteBufferSize:        1 << 10,
		MaxResponseHeaderBytes: p.Limits.withDefaults().HeaderBytes,
		Protocols:              t.Options.HTTP.protocols(),
	}
	config, err := p.tlsConfig(t, "") // the transport fills in the host
	if err != nil {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, err }
		return transport
	}
	if t.Options.HTTP == HTTP2 {
		config.VerifyConnection = wantHTTP2
	}
	transport.TLSClientConfig = config
	return transport
}

// protocols returns what net/http may speak; nil means the newest version that both sides know. HTTP/2 without TLS is
// spoken with prior knowledge (RFC 9113 §3.3).
func (v HTTPVersion) protocols() *http.Protocols {
	if v == "" {
		return nil
	}
	var p http.Protocols
	p.SetHTTP1(v == HTTP1)
	p.SetHTTP2(v == HTTP2)
	p.SetUnencryptedHTTP2(v == HTTP2)
	return &p
}

// noHTTP2 explains a server that does not speak the version of HTTP which the target asks for.
const noHTTP2 = "the server does not speak HTTP/2, which this endpoint is set to"

// wantHTTP2 refuses a server that ignores which protocols were offered to it: net/http would go on with HTTP/1.1.
func wantHTTP2(state tls.ConnectionState) error {
	if state.NegotiatedProtocol != "h2" {
		return &problem{class: ClassConnect, message: noHTTP2}
	}
	return nil
}

// versionProblems returns what is wrong with the versions of IP and HTTP that o asks for.
func (o Options) versionProblems() []Problem {
	var problems []Problem
	if !slices.Contains([]IPVersion{"", IPv4, IPv6}, o.IP) {
		problems = append(problems, Problem{"ip_version", "must be 4 or 6, or left out"})
	}
	if !slices.Contains([]HTTPVersion{"", HTTP1, HTTP2}, o.HTTP) {
		problems = append(problems, Problem{"http_version", "must be 1.1 or 2, or left out"})
	}
	return problems
}

// dial connects to address ("host:port") for a check of t: to an address that may be dialled, of the version of IP that t
// asks for, and through the proxy where there is one. Every connection of a check but those to a unix socket comes about
// here. A *problem in the error knows best what went wrong.
func (p *Prober) dial(ctx context.Context, t Target, network, address string) (net.Conn, error) {
	if t.Options.IP != "" {
		network = strings.TrimRight(network, "46") + string(t.Options.IP)
	}
	proxy, err := p.proxyTo(t, address)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return p.Egress.dial(ctx, &net.Dialer{KeepAlive: -1}, network, address) // a check is over before the first would be sent
	}
	return p.tunnel(ctx, proxy, network, address)
}

// proxyTo returns the proxy that leads to address; nil when it is dialled directly, as sockets without HTTP always are.
func (p *Prober) proxyTo(t Target, address string) (*url.URL, error) {
	scheme, ok := map[string]string{"http": "http", "https": "https", "ws": "http", "wss": "https"}[scheme(t.URL)]
	if p.Proxy == nil || !ok {
		return nil, nil
	}
	proxy, err := p.Proxy(&url.URL{Scheme: scheme, Host: address})
	if err != nil { // it may repeat the password of the proxy
		return nil, &problem{class: ClassProbeError, message: "the proxy that this service is set to cannot be read as a URL"}
	}
	return proxy, nil
}

// tunnel connects to address through proxy. The proxy is asked (CONNECT, RFC 9110 §9.3.6) for the address that was
// checked and never for a name, for plain HTTP too: a proxy that looked the name up again could be led elsewhere. The
// proxy itself may lie anywhere; who runs this service chose it.
func (p *Prober) tunnel(ctx context.Context, proxy *url.URL, network, address string) (net.Conn, error) {
	addrs, port, err := p.Egress.addresses(ctx, network, address)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, addr := range addrs {
		to := netip.AddrPortFrom(addr, port).String()
		conn, err := p.connectThrough(ctx, proxy, to)
		if err == nil {
			return conn, nil
		}
		if failed == nil {
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// connectThrough asks proxy for a connection to the address to.
func (p *Prober) connectThrough(ctx context.Context, proxy *url.URL, to string) (net.Conn, error) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.ConnectStart != nil {
		trace.ConnectStart("tcp", to)
	}
	conn, err := p.askProxy(untraced{ctx}, proxy, to)
	if trace != nil && trace.ConnectDone != nil {
		trace.ConnectDone("tcp", to, err)
	}
	if err == nil {
		return conn, nil
	}
	if refused, ok := errors.AsType[*problem](err); ok {
		return nil, refused
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil, err // the caller changed its mind
	}
	return nil, proxyProblem(proxy, "%s", netWords(err))
}

// untraced hides the hooks of a check: the way to the proxy is not the way to the endpoint.
type untraced struct{ context.Context }

func (untraced) Value(any) any { return nil }

// proxyProblem is a failure of the proxy, which tells nothing about the endpoint.
func proxyProblem(proxy *url.URL, format string, args ...any) *problem {
	return &problem{class: ClassProbeError, message: "the proxy " + proxy.Host + " of this service: " + fmt.Sprintf(format, args...)}
}

// maxProxyAnswer bounds what a proxy may answer to CONNECT.
const maxProxyAnswer = 16 << 10

// askProxy dials proxy and asks it for a connection to the address to.
func (p *Prober) askProxy(ctx context.Context, proxy *url.URL, to string) (net.Conn, error) {
	conn, err := p.dialProxy(ctx, proxy)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = negotiate(conn, proxy, to)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// dialProxy connects to the proxy itself.
func (p *Prober) dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	}
	address := net.JoinHostPort(proxy.Hostname(), port)
	switch proxy.Scheme {
	case "http":
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	case "https":
		d := tls.Dialer{Config: &tls.Config{RootCAs: p.RootCAs, MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", address)
	default:
		return nil, proxyProblem(proxy, "its scheme is not http or https")
	}
}

// negotiate sends the CONNECT request and reads the answer to it.
func negotiate(conn net.Conn, proxy *url.URL, to string) error {
	request := "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n"
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxProxyAnswer))
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // closing conn ends it
	if err != nil {
		return proxyProblem(proxy, "no answer to CONNECT: %s", netWords(err))
	}
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		return proxyProblem(proxy, "407, it wants other credentials than those it is set with")
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return proxyProblem(proxy, "%s to CONNECT %s", statusWords(resp.StatusCode), to)
	}
	if in.Buffered() > 0 { // a server of HTTP or TLS does not speak first
		return proxyProblem(proxy, "something behind its answer to CONNECT")
	}
	return nil
}
