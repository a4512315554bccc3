package probetest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// exchange is one request and the answer being made of it:
//
//	serve ─ read the request ─ note it ─ healthy answer ─ every colouring fault ─ the first replacing fault, or send
type exchange struct {
	Request
	s   *Server
	b   behaviour
	run *run
	w   http.ResponseWriter
	r   *http.Request

	// The answer. A status of 202 or 405 without payload has no body.
	status  int
	header  http.Header     // laid over the headers of the answer; an empty value removes one
	nullID  bool            // under a null id, as of a request whose id was not read
	id      json.RawMessage // under this id, if not nil
	payload map[string]any  // "result" or "error" of the envelope; nil for an empty body
	raw     []byte          // what stands in place of the envelope, if not nil
	stream  bool            // as an event stream
	chatty  bool            // with a comment and a notification in front of the answer
	priming bool            // with an event of empty data in front
	drip    *time.Duration  // pause between any two bytes
	feeds   bool            // an event stream of HTTP+SSE, in place of an answer
	to      *feed           // on this event stream, and 202 here; nil: here
	broken  *broken         // as a stream that ends before the answer, if not nil
}

// maxRequest bounds what a server reads; no probe sends more.
const maxRequest = 1 << 20

func (s *Server) serve(run *run, w http.ResponseWriter, r *http.Request) {
	if !s.enter(run) {
		panic(http.ErrAbortHandler)
	}
	defer run.handlers.Done()

	// The body is read before anything may hang: net/http notices that a client left only once the body is consumed.
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return
	}
	x := &exchange{s: s, run: run, w: w, r: r, status: http.StatusOK, header: http.Header{}}
	x.Request = readRequest(r, body)

	s.mu.Lock()
	s.requests = append(s.requests, x.Request)
	x.b = s.behave
	s.mu.Unlock()

	s.answer(x)
	x.applyFaults()
}

// enter counts a handler of run and reports whether run is still on. Under the lock, so that Stop waits for all of them.
func (s *Server) enter(run *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != run {
		return false
	}
	run.handlers.Add(1)
	return true
}

func readRequest(r *http.Request, body []byte) Request {
	req := Request{
		HTTPMethod: r.Method,
		URI:        r.URL.RequestURI(),
		RemoteAddr: r.RemoteAddr,
		Header:     r.Header.Clone(),
		Body:       body,
	}
	var envelope struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &envelope) == nil {
		req.ID, req.RPCMethod, req.Params = envelope.ID, envelope.Method, envelope.Params
	}
	switch {
	case r.Method == http.MethodDelete:
		req.Step = "close"
	case r.Method == http.MethodGet:
		req.Step = "sse"
	case req.RPCMethod == "notifications/initialized":
		req.Step = "initialized"
	default:
		req.Step = req.RPCMethod
	}
	return req
}

func (x *exchange) applyFaults() {
	send := (*exchange).send
	replaced := false
	for _, t := range x.b.twists {
		if !t.match(x) {
			continue
		}
		if t.colour != nil {
			t.colour(x)
		}
		if t.replace != nil && !replaced {
			send, replaced = t.replace, true
		}
	}
	send(x)
}

// result answers with a JSON-RPC result.
func (x *exchange) result(v any) { x.payload = map[string]any{"result": v} }

// rpcError answers with a JSON-RPC error under an HTTP status. Data may be nil.
func (x *exchange) rpcError(status, code int, message string, data any) {
	e := map[string]any{"code": code, "message": message}
	if data != nil {
		e["data"] = data
	}
	x.status, x.payload = status, map[string]any{"error": e}
}

// plain answers without JSON-RPC.
func (x *exchange) plain(status int, contentType, body string) {
	x.status, x.stream, x.payload, x.raw = status, false, nil, []byte(body)
	x.feeds, x.to, x.broken = false, nil, nil
	if x.header.Get("Content-Type") == "" {
		x.header.Set("Content-Type", contentType)
	}
}

// message is the JSON-RPC message of the answer.
func (x *exchange) message() []byte {
	if x.raw != nil {
		return x.raw
	}
	envelope := map[string]any{"jsonrpc": "2.0", "id": x.answerID()}
	maps.Copy(envelope, x.payload)
	b, err := json.Marshal(envelope)
	if err != nil {
		panic("probetest: " + err.Error()) // a test handed in JSON that is none
	}
	return b
}

func (x *exchange) answerID() json.RawMessage {
	switch {
	case x.id != nil:
		return x.id
	case x.nullID || x.ID == nil:
		return json.RawMessage("null")
	default:
		return x.ID
	}
}

// body is the answer as it goes over the wire, with its content type.
func (x *exchange) body() (contentType string, body []byte) {
	switch {
	case x.payload == nil && x.raw == nil:
		return "", nil
	case x.stream:
		return "text/event-stream", append(x.preamble(), event(x.message())...)
	default:
		return "application/json", x.message()
	}
}

// preamble is what a stream holds before the answer.
func (x *exchange) preamble() []byte {
	var b bytes.Buffer
	if x.priming {
		b.WriteString("id: 0\nretry: 1000\ndata: \n\n")
	}
	if x.chatty {
		b.WriteString(": keep-alive\n\n")
		b.Write(event([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"busy"}}`)))
	}
	return b.Bytes()
}

func event(message []byte) []byte {
	return []byte("event: message\nid: 1\ndata: " + string(message) + "\n\n")
}

// send sends the answer and ends it.
func (x *exchange) send() {
	switch {
	case x.feeds:
		x.sendFeed()
		return
	case x.to != nil:
		x.sendOver(x.to)
		return
	case x.broken != nil:
		x.breakOff(*x.broken)
		return
	}
	contentType, body := x.body()
	x.head(contentType, len(body))
	x.write(body)
}

// head sends status and headers. A length below zero, and that of a stream, is not announced.
func (x *exchange) head(contentType string, length int) {
	h := x.w.Header()
	h["Content-Type"] = nil // keeps net/http from guessing one
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	if length >= 0 && !x.stream {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	for k, v := range x.header {
		h[k] = v
		if len(v) == 1 && v[0] == "" {
			h[k] = nil
		}
	}
	x.w.WriteHeader(x.status)
}

// write sends b, byte by byte where the test wants it, and flushes. It stops when the client is gone.
func (x *exchange) write(b []byte) {
	if x.drip == nil {
		x.w.Write(b)
		x.flush()
		return
	}
	for i := range b {
		if _, err := x.w.Write(b[i : i+1]); err != nil {
			return
		}
		x.flush()
		if *x.drip > 0 && !x.wait(*x.drip) {
			return
		}
	}
}

func (x *exchange) flush() {
	// An error means that the client is gone, which the handler is about to notice by itself.
	_ = http.NewResponseController(x.w).Flush()
}

// hang returns when the client leaves or the server stops.
func (x *exchange) hang() {
	select {
	case <-x.r.Context().Done():
	case <-x.run.over:
	}
}

// wait waits for d and reports whether client and server are still there.
func (x *exchange) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
		return false
	case <-x.run.over:
		return false
	}
}
