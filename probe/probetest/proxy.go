package probetest

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// ProxyPlan says how a proxy is different from one that connects everybody to everywhere.
type ProxyPlan struct {
	User, Password string // wanted of clients; empty wants none
	Status         int    // answered in place of 200
	Hangs          bool   // takes requests and never answers
	Garbled        bool   // answers something that is not HTTP
	TLS            *Pair  // speaks TLS itself
}

// Proxy is an HTTP proxy on loopback that knows CONNECT and nothing else. It is stopped when its test ends.
type Proxy struct {
	plan     ProxyPlan
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	asked []string
	conns []net.Conn
}

// NewProxy starts a proxy.
func NewProxy(t testing.TB, plan ProxyPlan) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("probetest: listen: %v", err)
	}
	if plan.TLS != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{plan.TLS.TLS}})
	}
	p := &Proxy{plan: plan, listener: l}
	p.running.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

// URL returns where the proxy is, with the user and password that it wants.
func (p *Proxy) URL() *url.URL {
	u := &url.URL{Scheme: "http", Host: p.listener.Addr().String()}
	if p.plan.TLS != nil {
		u.Scheme = "https"
	}
	if p.plan.User != "" {
		u.User = url.UserPassword(p.plan.User, p.plan.Password)
	}
	return u
}

// Through returns the proxy for every URL, as a Prober wants it.
func (p *Proxy) Through(*url.URL) (*url.URL, error) { return p.URL(), nil }

// Asked returns the method and place of every request so far: "CONNECT 192.0.2.1:443".
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *Proxy) stop() {
	p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // stopped
		}
		p.keep(conn)
		p.running.Go(func() {
			defer conn.Close()
			p.serve(conn)
		})
	}
}

func (p *Proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
}

func (p *Proxy) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, req.Method+" "+req.RequestURI)
	p.mu.Unlock()
	switch {
	case p.plan.Hangs:
		_, _ = io.Copy(io.Discard, conn) // until the client goes
		return
	case p.plan.Garbled:
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n")
		return
	case p.plan.Status != 0:
		p.answer(conn, p.plan.Status)
		return
	case !p.welcome(req):
		p.answer(conn, http.StatusProxyAuthRequired)
		return
	case req.Method != http.MethodConnect:
		p.answer(conn, http.StatusMethodNotAllowed)
		return
	}
	there, err := net.DialTimeout("tcp", req.RequestURI, 5*time.Second)
	if err != nil {
		p.answer(conn, http.StatusBadGateway)
		return
	}
	defer there.Close()
	p.keep(there)
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	p.running.Go(func() {
		defer there.Close()
		_, _ = io.Copy(there, in)
	})
	_, _ = io.Copy(conn, there)
}

// welcome reports whether a request carries the credentials that the proxy wants.
func (p *Proxy) welcome(req *http.Request) bool {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.plan.User+":"+p.plan.Password))
	return p.plan.User == "" || req.Header.Get("Proxy-Authorization") == want
}

func (p *Proxy) answer(conn net.Conn, status int) {
	const page = "<html><body>proxy page</body></html>"
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(page), page)
}
