package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// stream is a connection that carries messages both ways, in no particular order: a WebSocket, a socket, the standard
// streams of a process, or the two halves of HTTP+SSE. It belongs to one goroutine.
type stream interface {
	// send writes one message, at the latest when ctx ends.
	send(ctx context.Context, message []byte) error
	// receive returns the next message as it came, at the latest when ctx ends; the message is the caller's. The error at
	// an orderly end is io.EOF, and a *problem where the stream knows better than its error what went wrong.
	receive(ctx context.Context) ([]byte, error)
	// close lets go of everything the stream holds, within about two seconds. It returns what went wrong in doing so, which
	// becomes a warning; nil as a rule, and on every further call.
	close() *problem
}

// overStream reports whether questions go over a stream in place of single HTTP requests.
func (c *conversation) overStream() bool {
	return c.stream != nil || c.target.Command != nil || !c.target.overHTTP()
}

// overHTTP reports whether the target's URL is one of HTTP.
func (t *Target) overHTTP() bool {
	switch scheme(t.URL) {
	case "ws", "wss", "tcp", "tls", "unix":
		return false
	default:
		return true
	}
}

// open returns the stream of the check, dialled on first use and again when the one before was dropped.
func (c *conversation) open(ctx context.Context, watch *stopwatch) (stream, error) {
	if c.stream != nil {
		return c.stream, nil
	}
	var s stream
	var err error
	watch.enter(stageConnect)
	switch {
	case c.target.Command != nil:
		s, err = c.openProcess(ctx)
	case c.url.Scheme == "ws" || c.url.Scheme == "wss":
		s, err = c.openWebSocket(ctx, watch)
	default:
		s, err = c.openSocket(ctx, watch)
	}
	if err != nil {
		return nil, dialError{err}
	}
	c.stream = s
	return s, nil
}

// dropStream ends the stream, so that the next question opens another one.
func (c *conversation) dropStream() {
	if c.stream == nil {
		return
	}
	if p := c.stream.close(); p != nil {
		c.warn(stepClose, p.class, p.code, "%s", p.message)
	}
	c.stream = nil
}

// askStream sends q over the stream and reads what comes until the answer.
func (c *conversation) askStream(ctx context.Context, q question) answer {
	watch := newStopwatch()
	a, id, body := c.pose(q, watch)
	if a.problem != nil {
		return a
	}
	dialCtx, cancelDial := c.withDeadline(ctx)
	defer cancelDial()
	askCtx, cancel := context.WithCancelCause(dialCtx)
	defer cancel(nil)
	impatience := impatience{after: q.within, cancel: cancel}
	defer impatience.stop()

	s, err := c.open(dialCtx, watch)
	if err != nil {
		a.problem, _ = c.explain(askCtx, err, watch)
		c.record(q, &a, watch, 0, 0)
		return a
	}
	a.dialled = true
	impatience.start()
	if err := c.sendOver(askCtx, s, q, body, watch); err != nil {
		a.problem = c.explainStream(askCtx, err, watch)
		c.record(q, &a, watch, int64(len(body)), 0)
		c.dropStream()
		return a
	}
	r := &reading{media: "application/json"}
	if !q.notify {
		c.receiveAnswer(askCtx, s, q, r, id, watch)
		c.judgeStream(askCtx, q, &a, r, id, watch)
	}
	watch.freeze()
	c.record(q, &a, watch, int64(len(body)), r.size)
	if brokeOff(r.bad) {
		c.dropStream()
	}
	return a
}

// sendOver writes the message of q. Over HTTP+SSE that is a request of its own, with headers and times.
func (c *conversation) sendOver(ctx context.Context, s stream, q question, body []byte, watch *stopwatch) error {
	if posted, ok := s.(*httpSSE); ok {
		return posted.post(ctx, q, body, watch)
	}
	c.transcript.message(q.step, true, time.Since(c.started), body)
	watch.enter(stageWrite)
	defer watch.wrote()
	return s.send(ctx, body)
}

// receiveAnswer reads messages until the one that answers q: requests and notifications of the endpoint's own, and late
// answers to earlier questions, are passed over. A question that is plain takes the first message that is not a call.
func (c *conversation) receiveAnswer(ctx context.Context, s stream, q question, r *reading, id string, watch *stopwatch) {
	for range maxEvents {
		message, err := s.receive(ctx)
		if err != nil {
			r.bad = err
			return
		}
		watch.enterBody()
		c.transcript.message(q.step, false, time.Since(c.started), message)
		r.size += int64(len(message))
		if c.heard(ctx, s, message) {
			continue
		}
		if q.plain {
			r.body, r.found = message, true
			return
		}
		envelope, err := readEnvelope(message, q.mcp)
		if err == nil && c.ids.issued(envelope.id) && !envelope.answers(id) {
			continue // somebody gave up waiting for it
		}
		r.envelope, r.bad, r.found = envelope, err, err == nil
		return
	}
	r.bad = &problem{class: ClassFraming, message: fmt.Sprintf("no answer within %d messages", maxEvents)}
}

// heard reports whether a message is a request or notification of the endpoint's own, and answers a request.
func (c *conversation) heard(ctx context.Context, s stream, message []byte) bool {
	object, err := readObject(message)
	if err != nil {
		return false
	}
	method := object.text("method")
	_, isResult := object.get("result")
	_, isError := object.get("error")
	if method == "" || isResult || isError {
		return false
	}
	id, ok := object.get("id")
	if !ok || isNull(id) || len(id) > maxForeignID {
		return true
	}
	params, _ := object.get("params")
	reply := response{Version: "2.0", ID: id}
	if result, known := c.serve(method, params); known {
		reply.Result = result
	} else {
		reply.Error = &responseError{codeMethodNotFound, "a probe offers nothing"}
	}
	if body, err := json.Marshal(reply); err == nil {
		c.transcript.message(c.text(method, maxFact), true, time.Since(c.started), body) // the method is a stranger's word
		_ = s.send(ctx, body)                                                            // what goes wrong here shows when the answer is read
	}
	return true
}

// maxForeignID bounds the id of a request by the endpoint, which is sent back.
const maxForeignID = 1024

// response answers a request that the endpoint made of its own.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *responseError  `json:"error,omitempty"`
}

type responseError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// serve answers a request of the endpoint's own: ping, which MCP's older era knows, and what the protocol in hand adds.
func (c *conversation) serve(method string, params json.RawMessage) (result any, ok bool) {
	if c.onRequest != nil {
		if result, ok := c.onRequest(method, params); ok {
			return result, true
		}
	}
	return struct{}{}, method == "ping"
}

// judgeStream is judge for an answer that has no HTTP around it.
func (c *conversation) judgeStream(ctx context.Context, q question, a *answer, r *reading, id string, watch *stopwatch) {
	if q.plain && r.found {
		a.body = r.body
		return
	}
	if r.found || r.bad == nil {
		c.readAnswer(q, a, r, id)
	}
	switch bad, ok := errors.AsType[*badMessage](r.bad); {
	case a.result != nil && a.mine:
		c.noteOddities(q, a, r)
	case a.rpc != nil && (a.mine || r.envelope.anonymous()):
		c.noteOddities(q, a, r)
		a.problem = c.rpcProblem(a.rpc)
	case ok:
		a.problem = &problem{class: bad.class, message: bad.message}
	default:
		a.problem = c.explainStream(ctx, r.bad, watch)
	}
}

// rpcProblem reads an error by the table of the family in hand, where there is one.
func (c *conversation) rpcProblem(e *rpcError) *problem {
	if c.readError != nil {
		if p := c.readError(e); p != nil {
			return p
		}
	}
	return c.problemOf(e)
}

// explainStream turns an error of a stream into a problem.
func (c *conversation) explainStream(ctx context.Context, err error, watch *stopwatch) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if p := c.outOfTime(ctx, err, watch); p != nil {
		return p
	}
	switch {
	case errors.Is(err, errBodyTooLarge):
		return &problem{class: ClassBodyTooLarge, message: fmt.Sprintf("a message is larger than %d bytes", c.limits.ResponseBytes)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &problem{class: ClassTruncatedBody, message: "the connection was closed in the middle of a message"}
	case errors.Is(err, io.EOF):
		return &problem{class: ClassConnect, message: "the connection was closed before an answer"}
	default:
		return c.explainRequest(err)
	}
}

// brokeOff reports whether an error means that nothing more can be had from a stream.
func brokeOff(err error) bool {
	if err == nil {
		return false
	}
	_, readable := errors.AsType[*badMessage](err)
	p, ok := errors.AsType[*problem](err)
	return !readable && (!ok || p.class != ClassIDMismatch)
}

// await waits for a message that match accepts, for as long as within, and records the wait as a step of its own.
func (c *conversation) await(ctx context.Context, step string, within time.Duration, match func(message []byte) bool) answer {
	watch := newStopwatch()
	a := c.begun(question{step: step}, watch)
	a.dialled = c.stream != nil
	q := question{step: step}
	ctx, cancelDeadline := c.withDeadline(ctx)
	defer cancelDeadline()
	ctx, cancel := context.WithTimeoutCause(ctx, within, outOfTime{within})
	defer cancel()
	watch.enter(stageFirstByte)
	var size int64
	for passed := 0; ; passed++ {
		if c.stream == nil || passed == maxEvents {
			a.problem = &problem{class: ClassFraming, message: fmt.Sprintf("nothing of use within %d messages", passed)}
			break
		}
		message, err := c.stream.receive(ctx)
		if err != nil {
			a.problem = c.explainStream(ctx, err, watch)
			if a.problem.class != ClassTimeout {
				c.dropStream()
			}
			break
		}
		c.transcript.message(step, false, time.Since(c.started), message)
		size += int64(len(message))
		if match(message) {
			a.body = message
			break
		}
		c.heard(ctx, c.stream, message)
	}
	watch.freeze()
	c.record(q, &a, watch, 0, size)
	return a
}
