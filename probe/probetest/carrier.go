package probetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Carrier carries the messages of a [Server] over something else than HTTP: see [WebSocket], [Socket], [UnixSocket] and
// [Process]. The server's own faults hold there, too: what it would send as a body is sent as a message, what it would
// send as an event stream as one message per event, and a connection that it would drop is dropped. A session is over
// when its connection is.
type Carrier struct {
	URL string // "ws://127.0.0.1:34567/mcp"; of a process: where it gets its messages from

	t       testing.TB
	backend *Server
	plan    carriage
	cert    *Pair // nil without TLS
	l       net.Listener
	running sync.WaitGroup
	ctx     context.Context // until Stop
	cancel  context.CancelFunc

	mu    sync.Mutex // guards what follows
	conns map[net.Conn]bool
	over  bool
	ends  []string
}

// CarrierFault is one way for a carrier to be different from a healthy one. Steps are those of [Fault].
type CarrierFault func(*carriage)

// carriage is what all faults of a carrier add up to.
type carriage struct {
	header     bool // Content-Length framing
	bare       bool // its lines end with a line feed alone
	headers    map[string]string
	binary     bool
	glued      bool
	pieces     bool
	fragments  bool
	greeting   string
	before     map[string]string
	after      map[string]push
	closeCodes map[string]closing
	badFrame   string
	rude       bool

	certificate *Certificate // nil without TLS
}

// push is what follows an answer.
type push struct {
	pause    time.Duration
	messages []string
}

// HeaderFraming puts a Content-Length header before each message, and expects one, in place of a line feed behind it.
func HeaderFraming() CarrierFault { return func(p *carriage) { p.header = true } }

// BareLineFeeds ends the lines of such headers without a carriage return.
func BareLineFeeds() CarrierFault { return func(p *carriage) { p.header, p.bare = true, true } }

// HeaderTextAt puts a text before the answer in place of its header.
func HeaderTextAt(step, text string) CarrierFault {
	return func(p *carriage) { p.header, p.headers = true, with(p.headers, step, text) }
}

// Binary sends binary frames.
func Binary() CarrierFault { return func(p *carriage) { p.binary = true } }

// Fragmented sends every message in several frames, with a ping between them.
func Fragmented() CarrierFault { return func(p *carriage) { p.fragments = true } }

// Glued sends a notification and the answer right behind each other, without a line feed, or in one frame.
func Glued() CarrierFault { return func(p *carriage) { p.glued = true } }

// Pieces sends one byte at a time.
func Pieces() CarrierFault { return func(p *carriage) { p.pieces = true } }

// Greeting sends a text as soon as a client is there.
func Greeting(text string) CarrierFault { return func(p *carriage) { p.greeting = text } }

// Before sends a text as it is, or in a frame of its own, before the answer.
func Before(step, text string) CarrierFault {
	return func(p *carriage) { p.before = with(p.before, step, text) }
}

// PushAfter sends messages after the answer, with a pause before each. The last one repeats itself for ever.
func PushAfter(step string, pause time.Duration, messages ...string) CarrierFault {
	return func(p *carriage) { p.after = with(p.after, step, push{pause, messages}) }
}

// closing is a close frame.
type closing struct {
	code   int
	reason string
}

// CloseFrameAt closes a WebSocket in place of an answer.
func CloseFrameAt(step string, code int, reason string) CarrierFault {
	return func(p *carriage) { p.closeCodes = with(p.closeCodes, step, closing{code, reason}) }
}

// BadFrameAt sends a frame that WebSockets do not know in place of an answer.
func BadFrameAt(step string) CarrierFault { return func(p *carriage) { p.badFrame = step } }

// Rude never answers a close frame.
func Rude() CarrierFault { return func(p *carriage) { p.rude = true } }

// OverTLS makes a carrier speak TLS with a certificate that [Carrier.CertPool] trusts.
func OverTLS() CarrierFault { return func(p *carriage) { p.certificate = &Certificate{} } }

// OverBadTLS makes a carrier speak TLS with a self-signed certificate that expired yesterday.
func OverBadTLS() CarrierFault {
	return func(p *carriage) { p.certificate = &Certificate{NotAfter: time.Now().Add(-aDay)} }
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// Socket carries the messages of backend over TCP, one per line, at tcp://…, or tls://… with [OverTLS].
func Socket(t testing.TB, backend *Server, faults ...CarrierFault) *Carrier {
	t.Helper()
	c := newCarrier(t, backend, "tcp", "127.0.0.1:0", (*carried).serveSocket, faults)
	c.URL = "tcp://" + c.l.Addr().String()
	if c.cert != nil {
		c.URL = "tls://" + c.l.Addr().String()
	}
	return c
}

// UnixSocket carries the messages of backend over a unix socket, one per line, at unix://….
func UnixSocket(t testing.TB, backend *Server, faults ...CarrierFault) *Carrier {
	t.Helper()
	dir, err := os.MkdirTemp("", "probetest") //nolint:usetesting // the name of a test would be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := newCarrier(t, backend, "unix", filepath.Join(dir, "socket"), (*carried).serveSocket, faults)
	c.URL = "unix://" + c.l.Addr().String()
	return c
}

func newCarrier(t testing.TB, backend *Server, network, address string, serve func(*carried), faults []CarrierFault) *Carrier {
	t.Helper()
	c := &Carrier{t: t, backend: backend, conns: map[net.Conn]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, f := range faults {
		f(&c.plan)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatalf("probetest: listen on %s: %v", address, err)
	}
	c.l = l
	if c.plan.certificate != nil {
		c.cert = SelfSigned(t, *c.plan.certificate)
	}
	c.running.Go(func() { c.accept(serve) })
	t.Cleanup(c.Stop)
	return c
}

// CertPool returns the pool that a client must trust to accept the certificate of a carrier made with [OverTLS].
func (c *Carrier) CertPool() *x509.CertPool { return c.cert.Pool() }

// HasHeaders reports whether messages have a header before them.
func (c *Carrier) HasHeaders() bool { return c.plan.header }

// Stop stops listening and drops every connection. It returns when nothing runs any more.
func (c *Carrier) Stop() {
	c.l.Close()
	c.cancel()
	c.mu.Lock()
	c.over = true
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Open returns the number of connections that are open.
func (c *Carrier) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// Ends returns how clients ended their WebSockets: the code of each close frame, "dropped" without one.
func (c *Carrier) Ends() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends
}

func (c *Carrier) ended(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, how)
}

func (c *Carrier) accept(serve func(*carried)) {
	for {
		conn, err := c.l.Accept()
		if err != nil {
			return // stopped
		}
		if !c.enter(conn) {
			conn.Close()
			return
		}
		c.running.Go(func() {
			defer c.leave(conn)
			inner := conn
			if c.cert != nil {
				inner = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{c.cert.TLS}})
			}
			ctx, cancel := context.WithCancel(c.ctx)
			defer cancel()
			p := &carried{c: c, conn: inner, in: bufio.NewReader(inner), ctx: ctx, cancel: cancel}
			defer p.pushing.Wait()
			defer cancel()
			defer p.endSession()
			serve(p)
		})
	}
}

func (c *Carrier) enter(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.conns[conn] = true
	return true
}

func (c *Carrier) leave(conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// carried is one connection of a carrier.
type carried struct {
	c       *Carrier
	conn    net.Conn
	in      *bufio.Reader
	ctx     context.Context // of the connection
	cancel  context.CancelFunc
	session string
	ws      bool

	pushing sync.WaitGroup
	writing sync.Mutex
}

var errDropped = errors.New("dropped")

// serveSocket reads messages until the client leaves. It answers one at a time, and notices a client that leaves
// meanwhile.
func (p *carried) serveSocket() {
	if p.c.plan.greeting != "" {
		_ = p.write([]byte(p.c.plan.greeting))
	}
	p.answerAll(p.readMessage)
}

// answerAll answers what read returns, until it fails or an answer is to drop the connection.
func (p *carried) answerAll(read func() ([]byte, error)) {
	messages := make(chan []byte)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(messages)
		defer p.cancel()
		for {
			message, err := read()
			if err != nil {
				return
			}
			select {
			case messages <- message:
			case <-p.ctx.Done():
				return
			}
		}
	})
	defer reading.Wait()
	defer p.conn.Close()
	for message := range messages {
		if p.answer(message) != nil {
			return
		}
	}
}

// readMessage reads one message from a socket.
func (p *carried) readMessage() ([]byte, error) {
	if !p.c.plan.header {
		return p.in.ReadBytes('\n')
	}
	length := 0
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return nil, err
			}
		}
	}
	message := make([]byte, length)
	for n := 0; n < length; {
		m, err := p.in.Read(message[n:])
		if err != nil {
			return nil, err
		}
		n += m
	}
	return message, nil
}

const notification = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"busy"}}`

// answer sends what the backend answers to a message.
func (p *carried) answer(message []byte) error {
	request, recorder, err := p.ask(http.MethodPost, message)
	if err != nil {
		return err
	}
	plan := p.c.plan
	step := request.Step
	if text, ok := plan.before[step]; ok {
		if p.ws {
			err = p.writeFrame(opText, []byte(text))
		} else {
			err = p.write([]byte(text))
		}
		if err != nil {
			return err
		}
	}
	if end, ok := plan.closeCodes[step]; ok && p.ws {
		return p.sendClose(end)
	}
	if plan.badFrame == step && p.ws && step != "" {
		_ = p.write([]byte{0xF0 | opText, 0})
		return errDropped
	}
	messages := recorder.messages()
	for i, m := range messages {
		if i == len(messages)-1 && recorder.cut() {
			p.sendPart(m, recorder.announced())
			return errDropped
		}
		if plan.glued {
			m = append([]byte(notification), m...)
		}
		if err := p.send(step, m); err != nil {
			return err
		}
	}
	if recorder.aborted {
		return errDropped
	}
	if after, ok := plan.after[step]; ok {
		p.pushing.Go(func() { p.push(after) })
	}
	return nil
}

func (p *carried) push(after push) {
	for i := 0; ; i++ {
		timer := time.NewTimer(after.pause)
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			timer.Stop()
			return
		}
		if p.send("", []byte(after.messages[min(i, len(after.messages)-1)])) != nil {
			return
		}
	}
}

// send sends one message.
func (p *carried) send(step string, message []byte) error {
	plan := p.c.plan
	switch {
	case p.ws && plan.binary:
		return p.writeFrame(opBinary, message)
	case p.ws:
		return p.writeFrame(opText, message)
	case plan.header:
		end := "\r\n"
		if plan.bare {
			end = "\n"
		}
		head := "Content-Length: " + strconv.Itoa(len(message)) + end + end
		if text, ok := plan.headers[step]; ok {
			head = text
		}
		return p.write(append([]byte(head), message...))
	case plan.glued:
		return p.write(message)
	default:
		return p.write(append(message, '\n'))
	}
}

// sendPart sends the beginning of a message that was to have a length.
func (p *carried) sendPart(part []byte, length int) {
	switch {
	case p.ws:
		_ = p.write(append(frameHead(0x80|opText, length), part...))
	case p.c.plan.header:
		_ = p.write(append([]byte("Content-Length: "+strconv.Itoa(length)+"\r\n\r\n"), part...))
	default:
		_ = p.write(part)
	}
}

func (p *carried) write(b []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if !p.c.plan.pieces {
		_, err := p.conn.Write(b)
		return err
	}
	for i := range b {
		if _, err := p.conn.Write(b[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// ask hands a message to the backend and records what it answers.
func (p *carried) ask(method string, message []byte) (Request, *recorder, error) {
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	if p.session != "" {
		header.Set("Mcp-Session-Id", p.session)
	}
	r, err := http.NewRequestWithContext(p.ctx, method, p.c.backend.URL, nil)
	if err != nil {
		return Request{}, nil, err
	}
	r.Header, r.RemoteAddr = header, p.conn.RemoteAddr().String()
	request := readRequest(r, message)
	request.mirrorMeta()
	w := &recorder{header: http.Header{}, conn: p.conn}
	if err := p.c.backend.answerCarried(r, request, w, func(x *exchange) { x.s.answer(x) }); err != nil {
		return request, w, err
	}
	if session := w.header.Get("Mcp-Session-Id"); session != "" {
		p.session = session
	}
	return request, w, nil
}

// mirrorMeta sets the headers that MCP wants over HTTP and that other transports do without.
func (r *Request) mirrorMeta() {
	var params struct {
		Meta map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &params) // params that are no object have no _meta
	if version, ok := params.Meta[metaVersion].(string); ok {
		r.Header.Set("Mcp-Protocol-Version", version)
		r.Header.Set("Mcp-Method", r.RPCMethod)
	}
}

// endSession ends the session of a connection.
func (p *carried) endSession() {
	s := p.c.backend
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, p.session)
}

// answerCarried answers a request that did not come over HTTP, faults included.
func (s *Server) answerCarried(r *http.Request, request Request, w *recorder, answer func(*exchange)) error {
	s.mu.Lock()
	run := s.running
	if run == nil {
		s.mu.Unlock()
		return errDropped
	}
	run.handlers.Add(1)
	s.requests = append(s.requests, request)
	x := &exchange{s: s, run: run, w: w, r: r, status: http.StatusOK, header: http.Header{}, Request: request, b: s.behave}
	s.mu.Unlock()
	defer run.handlers.Done()
	defer func() {
		switch caught := recover(); caught {
		case nil:
		case http.ErrAbortHandler:
			w.aborted = true
		default:
			panic(caught)
		}
	}()
	answer(x)
	x.applyFaults()
	return nil
}

// recorder keeps an answer in place of sending it.
type recorder struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	conn    net.Conn
	aborted bool // the connection is to be dropped
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }
func (w *recorder) Flush()                      {}

// Hijack hands out the connection of the carrier.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.aborted = true
	conn := w.conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}

// messages returns the messages in the answer: the data of the events of a stream, or the body as it is.
func (w *recorder) messages() [][]byte {
	var found [][]byte
	if w.header.Get("Content-Type") != "text/event-stream" {
		if w.body.Len() > 0 {
			found = append(found, w.body.Bytes())
		}
		return found
	}
	for line := range strings.Lines(w.body.String()) {
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "data: "); ok && data != "" {
			found = append(found, []byte(data))
		}
	}
	return found
}

// announced is the length that the body was to have.
func (w *recorder) announced() int {
	length, _ := strconv.Atoi(w.header.Get("Content-Length")) // absent: nothing was announced
	return length
}

// cut reports whether the body ended before its announced end.
func (w *recorder) cut() bool { return w.aborted && w.announced() > w.body.Len() }
