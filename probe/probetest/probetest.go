// Package probetest provides endpoints that misbehave on request: real HTTP servers on loopback that speak MCP, an
// Ethereum-like chain node's JSON-RPC, or plain JSON-RPC 2.0, and go wrong in the way a test asks for. It is to probes
// what httptest is to HTTP clients.
//
// Without faults a server is healthy and strict: it refuses what the protocol tells it to refuse, so that a client's
// own mistakes are seen too. Faults are composable. Those that only colour an answer ([SlowAt], [DripAt], [HeaderAt],
// [WrongIDAt], …) are all applied; of those that replace it ([StatusAt], [HangAt], [ResetAt], …) the first one wins.
//
//	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.RPCErrorAt("tools/list", 200, -32603, "Internal error"))
//	… probe s.URL …
//	s.SetFaults() // healthy again
//
// The package uses nothing but the standard library, and nothing of the packages it helps to test.
package probetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// Server is a server on loopback. It is stopped when its test ends. All methods are safe for concurrent use.
type Server struct {
	URL string // of the endpoint: "http://127.0.0.1:34567/mcp"

	t      testing.TB
	addr   string
	answer func(*exchange) // how the server answers when nothing is wrong
	cert   *certificate    // nil for plain HTTP, and with TLSWith
	secure *tls.Config     // nil for plain HTTP

	mu       sync.Mutex // guards everything below
	behave   behaviour
	requests []Request
	sessions map[string]bool   // sessions opened and not deleted
	opened   int               // sessions opened ever
	feeds    map[string]*feed  // event streams of HTTP+SSE that are open
	fed      int               // such streams opened ever
	held     map[string]broken // streams that ended early, by the id of their last event
	height   uint64
	running  *run // nil while stopped
}

// run is the time between a Start and a Stop.
type run struct {
	http     *http.Server
	over     chan struct{} // closed by Stop, so that hanging handlers end
	handlers sync.WaitGroup
}

// Request is one request as the server received it.
type Request struct {
	Step       string // the name a probe gives to it: the RPC method, "initialized", "close" for a DELETE, "sse" for a GET
	RPCMethod  string // "tools/list"; empty when the body held none
	HTTPMethod string
	URI        string // path and query
	RemoteAddr string // one per connection
	Header     http.Header
	Body       []byte
	ID         json.RawMessage // as sent; nil for notifications
	Params     json.RawMessage
}

// newServer starts a server whose endpoint lies at path.
func newServer(t testing.TB, path string, answer func(*exchange), faults []Fault) *Server {
	t.Helper()
	s := &Server{
		t: t, addr: "127.0.0.1:0", answer: answer,
		sessions: map[string]bool{}, feeds: map[string]*feed{}, held: map[string]broken{}, height: firstHeight,
	}
	s.SetFaults(faults...)
	scheme := "http"
	if s.behave.tls != tlsNone {
		s.secure = s.behave.tlsConfig
		if s.secure == nil {
			s.cert = newCertificate(t, s.behave.tls)
			s.secure = &tls.Config{Certificates: []tls.Certificate{s.cert.pair}}
		}
		scheme = "https"
	}
	s.Start()
	t.Cleanup(s.Stop)
	s.URL = scheme + "://" + s.addr + path
	return s
}

// Start listens again after a Stop, on the same address. It does nothing while the server runs.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatalf("probetest: listen on %s: %v", s.addr, err)
	}
	s.addr = l.Addr().String()
	if s.secure != nil {
		l = tls.NewListener(l, s.secure)
	}
	r := &run{over: make(chan struct{})}
	// What the server thinks of broken connections is the point of a test, not news.
	r.http = &http.Server{ErrorLog: log.New(io.Discard, "", 0)}
	r.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { s.serve(r, w, req) })
	r.handlers.Go(func() {
		if err := r.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.t.Errorf("probetest: serve on %s: %v", s.addr, err)
		}
	})
	s.running = r
}

// Stop stops listening and drops every connection: clients see "connection refused". Sessions are forgotten, as by a
// process that ends. Stop returns when every handler has ended.
func (s *Server) Stop() {
	s.mu.Lock()
	r := s.running
	s.running = nil
	clear(s.sessions)
	s.mu.Unlock()
	if r == nil {
		return
	}
	close(r.over)
	r.http.Close()
	r.handlers.Wait()
}

// SetFaults replaces all faults of the server while it runs; with none it is healthy. Requests that are being answered
// keep the faults they began with. Whether a server speaks TLS is settled when it is made.
func (s *Server) SetFaults(faults ...Fault) {
	b := newBehaviour(faults)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = b
}

// Requests returns what was received so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Steps returns the step names of what was received so far, in order.
func (s *Server) Steps() []string {
	var steps []string
	for _, r := range s.Requests() {
		steps = append(steps, r.Step)
	}
	return steps
}

// Sessions returns the number of MCP sessions that were opened and not deleted.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// SetHeight sets the height that a chain node answers next.
func (s *Server) SetHeight(height uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.height = height
}

// CertPool returns the pool that a client must trust to accept the certificate of a server made with [TLS]; nil for a
// server without TLS.
func (s *Server) CertPool() *x509.CertPool {
	if s.cert == nil {
		return nil
	}
	return s.cert.pool
}

// Certificate returns the certificate that the server presents; nil for a server without TLS.
func (s *Server) Certificate() *x509.Certificate {
	if s.cert == nil {
		return nil
	}
	return s.cert.pair.Leaf
}
