package probe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"
)

// stage is how far a request has come.
type stage int

const (
	stageStart stage = iota
	stageDNS
	stageConnect
	stageTLS
	stageWrite
	stageFirstByte
	stageBody
)

// waiting says what was missing when the time was used up in a stage.
var waiting = map[stage]string{
	stageStart:     "nothing could be sent",
	stageDNS:       "host name not resolved",
	stageConnect:   "no connection",
	stageTLS:       "TLS handshake not finished",
	stageWrite:     "request not taken",
	stageFirstByte: "no first byte",
	stageBody:      "answer not complete",
}

// stopwatch takes the times of one step. net/http calls its hooks from goroutines of its own.
type stopwatch struct {
	start time.Time

	mu        sync.Mutex // guards what follows
	stage     stage
	since     time.Time // when stage began
	resolving bool      // a name is being looked up: connections are those to name servers
	end       time.Time // of the step; zero while it lasts
	phases    Phases
	remote    string     // address of the connection dialled in this step, if any
	secured   *handshake // of that connection, if it speaks TLS
}

func newStopwatch() *stopwatch {
	now := time.Now()
	return &stopwatch{start: now, since: now}
}

// enter begins a stage.
func (w *stopwatch) enter(s stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage, w.since = s, time.Now()
}

// leave ends the present stage and adds its time to total. A step that dials twice (a redirect to another port, a
// connection that the server closed meanwhile) has spent the time of both.
func (w *stopwatch) leave(total *time.Duration, next stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	*total += now.Sub(w.since)
	w.stage, w.since = next, now
}

// dialTrace observes a connection coming about.
func (w *stopwatch) dialTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { w.resolve(true); w.enter(stageDNS) },
		DNSDone:  func(httptrace.DNSDoneInfo) { w.resolve(false); w.leave(&w.phases.DNS, stageConnect) },
		ConnectStart: func(string, string) {
			if !w.inResolver() {
				w.enter(stageConnect)
			}
		},
		ConnectDone: func(_, addr string, err error) {
			if w.inResolver() {
				return
			}
			w.leave(&w.phases.Connect, stageConnect)
			if err == nil {
				w.setRemote(addr)
			}
		},
		TLSHandshakeStart: func() { w.enter(stageTLS) },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			w.leave(&w.phases.TLS, stageTLS)
			w.shook(state, err)
		},
	}
}

func (w *stopwatch) resolve(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resolving = on
}

// inResolver reports whether a connection that comes about is one to a name server, which the resolver of package net
// dials under the same hooks.
func (w *stopwatch) inResolver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.resolving
}

// requestTrace observes a request and the beginning of its answer.
func (w *stopwatch) requestTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		WroteRequest:         func(httptrace.WroteRequestInfo) { w.wrote() },
		GotFirstResponseByte: func() { w.firstByte() },
	}
}

func (w *stopwatch) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage == stageWrite { // an answer may begin before the request has ended
		w.stage, w.since = stageFirstByte, time.Now()
	}
}

func (w *stopwatch) firstByte() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.stage == stageFirstByte {
		w.phases.FirstByte += now.Sub(w.since)
	}
	w.stage, w.since = stageBody, now
}

func (w *stopwatch) setRemote(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remote = addr
}

// handshake is what a server showed of itself, also when the handshake failed because of it.
type handshake struct {
	presented []*x509.Certificate   // the server's own first
	chains    [][]*x509.Certificate // to those who may vouch for it; nil when nobody verified it, or it failed
	protocol  string                // agreed on by ALPN; empty when nothing was
	failed    bool
}

// shook remembers how a handshake went.
func (w *stopwatch) shook(state tls.ConnectionState, err error) {
	h := &handshake{state.PeerCertificates, state.VerifiedChains, state.NegotiatedProtocol, err != nil}
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		h.presented = refused.UnverifiedCertificates
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secured = h
}

// at returns the stage the step is in.
func (w *stopwatch) at() stage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage
}

// enterBody notes that the header of the answer is there.
func (w *stopwatch) enterBody() {
	if w.at() != stageBody {
		w.firstByte()
	}
}

// freeze ends the step; what comes after it is not part of its times.
func (w *stopwatch) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.end.IsZero() {
		return
	}
	w.end = time.Now()
	if w.stage == stageBody {
		w.phases.Body = w.end.Sub(w.since)
	}
}

// thaw takes back freeze: the step goes on.
func (w *stopwatch) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = time.Time{}
}

// times returns the latency of the step and its parts, and ends it where that has not been done.
func (w *stopwatch) times() (latency time.Duration, phases Phases) {
	w.freeze()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end.Sub(w.start), w.phases
}

// learnt returns the address and the handshake of a connection dialled in this step, zero when there was none.
func (w *stopwatch) learnt() (remote string, secured *handshake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remote, w.secured
}
