package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const stepSSE = "sse"

// endpointPatience is the most that an HTTP+SSE server may take to say where to post, once there is a connection.
const endpointPatience = 5 * time.Second

// httpSSE is the transport of MCP 2024-11-05 as a stream: the first event of a GET names where messages are posted, the
// events after it carry the answers. The GET has a connection of its own, messages go over that of the conversation.
type httpSSE struct {
	c        *conversation
	line     line
	stop     func() // ends the GET
	endpoint *url.URL
	taken    bool   // the endpoint has accepted a message
	inBody   []byte // an answer that came as the body of its POST; nil when none did
	replies  int    // sent to what the endpoint asked

	incoming *metered
	events   chan arrival  // what pump has read
	pumped   chan struct{} // closed when pump has ended; nil before it began
	ended    error         // why there are no more events
}

// arrival is one event of a stream, or why there are no more.
type arrival struct {
	event event
	err   error
}

// metered is a body that ends in an error once more bytes came than were allowed.
type metered struct {
	io.Reader
	size atomic.Int64
	left atomic.Int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.size.Add(int64(n))
	if m.left.Add(-int64(n)) < 0 {
		return 0, errBodyTooLarge
	}
	return n, err
}

// maybeSSE reports whether an initialize that was answered like this may have met a server of HTTP+SSE: one that takes no
// POST there (MCP 2026-07-28, streamable-http, backward compatibility), or takes it for a GET. A status that explains
// itself and an error under our own id come from something else.
func (c *conversation) maybeSSE(a answer) bool {
	if a.problem == nil || c.overStream() || c.triedSSE == c.url {
		return false
	}
	switch {
	case a.greeted:
		return true
	case a.mine, a.problem.class != ClassHTTPStatus && a.problem.class != ClassRPCError:
		return false
	case a.status == http.StatusNotAcceptable, a.status == http.StatusProxyAuthRequired:
		return false
	default:
		return a.status >= 400 && a.status < 500
	}
}

// trySSE asks over HTTP+SSE what refused to answer by POST. When that comes to nothing, too, the refusal decides, unless
// the answer to the GET tells more.
func (c *conversation) trySSE(ctx context.Context, refused answer) *Failure {
	c.begin()
	opened := c.openSSE(ctx)
	switch {
	case opened.problem == nil:
		return c.legacy(ctx, legacyVersions[0])
	case tellsMore(opened, refused):
		return c.failure(opened)
	default:
		return c.failure(refused)
	}
}

// tellsMore reports whether a GET that failed says more about an endpoint than the POST that was refused before it.
func tellsMore(opened, refused answer) bool {
	switch opened.problem.class {
	case ClassAuthRequired, ClassAuthForbidden, ClassCredentialRejected, ClassAuthServer, ClassRateLimited, ClassBlocked,
		ClassHostRejected, ClassSSEEndpointInvalid:
		return true
	case ClassSSEEndpointMissing: // else a stream of Streamable HTTP, which has nothing to say
		return refused.greeted || refused.status == http.StatusNotFound || refused.status == http.StatusMethodNotAllowed
	default:
		return false
	}
}

// sseFirst asks an endpoint that was last seen to speak HTTP+SSE, and in the usual order when it does so no longer.
func (c *conversation) sseFirst(ctx context.Context) *Failure {
	opened := c.openSSE(ctx)
	if opened.problem == nil {
		return c.legacy(ctx, legacyVersions[0])
	}
	gone := c.failure(opened)
	if !changedFromSSE(opened) {
		return gone
	}
	c.begin()
	failure := c.modernFirst(ctx)
	if failure == nil || failure.Step != stepInitialize && failure.Step != stepDiscover {
		return failure
	}
	if failure.Class == ClassHTTPStatus || failure.Class == ClassTimeout {
		return gone // neither way leads anywhere: it is missed where it was
	}
	return failure
}

// changedFromSSE reports whether a GET that failed like this may have met a server of another transport.
func changedFromSSE(opened answer) bool {
	switch opened.problem.class {
	case ClassHTTPStatus:
		return opened.status >= 400 && opened.status < 500
	case ClassTimeout: // servers of Streamable HTTP were seen to leave a GET waiting
		return opened.dialled
	case ClassContentType, ClassRedirect, ClassSSEEndpointMissing:
		return true
	default:
		return false
	}
}

// openSSE sends the GET and waits for the event that names where to post. When that went well, questions go over the
// stream.
func (c *conversation) openSSE(ctx context.Context) answer {
	c.triedSSE = c.url
	q := question{
		step: stepSSE, method: http.MethodGet, bare: true, header: http.Header{"Accept": {"text/event-stream"}},
		within: min(endpointPatience, c.limit.Sub(c.started)/3),
	}
	watch := newStopwatch()
	a := c.begun(q, watch)
	dialCtx, cancelDial := c.withDeadline(ctx)
	streamCtx, cancel := context.WithCancelCause(dialCtx)
	s := &httpSSE{c: c, line: line{transport: c.line.transport}, incoming: &metered{}}
	s.stop = func() { cancel(nil); cancelDial() }
	impatience := impatience{after: q.within, cancel: cancel}
	defer impatience.stop()

	build := func(ctx context.Context) (*http.Request, error) { return c.request(ctx, q, nil) }
	resp, err := s.line.roundTrip(dialCtx, streamCtx, build, watch, func(req *http.Request) { //nolint:bodyclose // pump, or refusal, closes it
		impatience.start()
		c.transcript.sent(q.step, time.Since(c.started), req, nil)
	})
	if err != nil {
		a.problem, a.dialled = c.explain(streamCtx, err, watch)
	} else {
		a.dialled, a.status, a.header = true, resp.StatusCode, resp.Header
		a.problem = s.greeting(ctx, streamCtx, q, &a, resp, watch)
	}
	c.record(q, &a, watch, 0, s.incoming.size.Load())
	if a.problem != nil {
		_ = s.close() // never has anything to say
		return c.withToken(ctx, a, func() answer { return c.openSSE(ctx) })
	}
	c.result.Kind = KindMCP
	c.stream = s
	return a
}

// greeting reads the answer to the GET as far as the endpoint event.
func (s *httpSSE) greeting(ctx, streamCtx context.Context, q question, a *answer, resp *http.Response, watch *stopwatch) *problem {
	c := s.c
	watch.enterBody()
	at := time.Since(c.started)
	s.incoming.Reader = resp.Body
	s.incoming.left.Store(c.limits.ResponseBytes)
	if p := s.refusal(q, a, resp); p != nil {
		watch.freeze()
		return p
	}
	c.transcript.received(q.step, at, resp, nil, false)
	s.events, s.pumped = make(chan arrival, 1), make(chan struct{})
	go s.pump(streamCtx, resp.Body)
	first := s.next(streamCtx)
	watch.freeze()
	if first.err != nil {
		if ctx.Err() == context.Canceled {
			return &problem{class: ClassProbeError, message: "cancelled"}
		}
		return endpointMissing(first.err, q.within)
	}
	c.transcript.message(q.step, false, time.Since(c.started), fmt.Appendf(nil, "event: %s\ndata: %s", first.event.name, first.event.data))
	if first.event.name != "endpoint" {
		return &problem{ClassSSEEndpointMissing, a.status, "the event stream begins with a message, not with an endpoint event"}
	}
	endpoint, p := c.resolveEndpoint(string(first.event.data))
	s.endpoint = endpoint
	return p
}

// refusal explains an answer to the GET that is no event stream; nil when it is one.
func (s *httpSSE) refusal(q question, a *answer, resp *http.Response) *problem {
	r := &reading{media: mediaType(resp.Header)}
	if resp.StatusCode == http.StatusOK && r.media == "text/event-stream" {
		return nil
	}
	at := time.Since(s.c.started)
	complete := readAside(s.incoming, r, resp.StatusCode, s.stop)
	s.c.transcript.received(q.step, at, resp, r.body, !complete)
	resp.Body.Close()
	a.words = bodyWords(r.body)
	if isRedirect(resp) {
		return &problem{ClassRedirect, a.status, "redirected to " + RedactURL(resp.Header.Get("Location"))}
	}
	if p := s.c.judgeStatus(q, a, r); p != nil {
		return p
	}
	return &problem{ClassContentType, a.status, fmt.Sprintf("answered with %s in place of an event stream%s", orNone(r.media), after(a.words))}
}

func endpointMissing(err error, within time.Duration) *problem {
	p := &problem{class: ClassSSEEndpointMissing}
	switch bad, ok := errors.AsType[*problem](err); {
	case errors.Is(err, context.DeadlineExceeded):
		p.message = "no endpoint event within " + inWords(within)
	case errors.Is(err, io.EOF):
		p.message = "the event stream ended without an endpoint event"
	case ok:
		p.message = "no endpoint event: " + bad.message
	default:
		p.message = "the event stream broke off before an endpoint event: " + netWords(err)
	}
	return p
}

// resolveEndpoint returns where messages are to be posted. It must be of the same origin as the stream (RFC 6454 §4), else
// a stranger could have our credentials sent elsewhere.
func (c *conversation) resolveEndpoint(data string) (*url.URL, *problem) {
	invalid := func(format string, args ...any) *problem {
		return &problem{class: ClassSSEEndpointInvalid, message: "the endpoint event " + fmt.Sprintf(format, args...)}
	}
	data = strings.TrimSpace(data)
	if data == "" || len(data) > maxURL {
		return nil, invalid("holds %d bytes, which are no URL", len(data))
	}
	endpoint, err := c.url.Parse(data)
	if err != nil || endpoint.Hostname() == "" {
		return nil, invalid("holds what cannot be read as a URL")
	}
	endpoint.Fragment = ""
	where := endpoint.Scheme + "://" + c.text(endpoint.Host, 100)
	ours, err1 := dialAddress(c.url)
	theirs, err2 := dialAddress(endpoint)
	switch {
	case endpoint.User != nil:
		return nil, invalid("names an address with a user name at %s", where)
	case err1 != nil || err2 != nil || endpoint.Scheme != c.url.Scheme || !strings.EqualFold(ours, theirs):
		return nil, invalid("leads to another origin, %s: clients must not post there", where)
	}
	return endpoint, nil
}

// pump reads the stream, so that a server that writes an answer before it has answered the POST is not held up.
func (s *httpSSE) pump(ctx context.Context, body io.ReadCloser) {
	defer close(s.pumped)
	defer body.Close()
	events := newEventReader(s.incoming, s.c.limits.EventBytes)
	for {
		e, err := events.next()
		if err != nil {
			err = pumpEnd(err, events.unfinished())
		}
		select {
		case s.events <- arrival{e, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// pumpEnd says why a stream ended.
func pumpEnd(err error, unfinished bool) error {
	switch {
	case errors.Is(err, errEventTooLarge):
		return &problem{class: ClassSSEFraming, message: "an event is larger than a probe is willing to read"}
	case errors.Is(err, errBodyTooLarge):
		return &problem{class: ClassBodyTooLarge, message: "the event stream brings more than a probe is willing to read"}
	case errors.Is(err, io.EOF) && unfinished:
		return &problem{class: ClassSSEFraming, message: "the event stream ended in the middle of an event"}
	default:
		return err
	}
}

// next returns the next event that says something: an endpoint, or a message with data.
func (s *httpSSE) next(ctx context.Context) arrival {
	if s.ended != nil {
		return arrival{err: s.ended}
	}
	for passed := 0; ; passed++ {
		if passed == maxEvents {
			return arrival{err: &problem{class: ClassSSEFraming, message: fmt.Sprintf("nothing of use within %d events", maxEvents)}}
		}
		select {
		case a := <-s.events:
			s.ended = a.err
			known := a.event.name == "" || a.event.name == "message" || a.event.name == "endpoint"
			if a.err == nil && (!known || len(bytes.TrimSpace(a.event.data)) == 0 && a.event.name != "endpoint") {
				continue
			}
			return a
		case <-ctx.Done():
			return arrival{err: context.Cause(ctx)}
		}
	}
}

// post sends one message. What the endpoint thinks of it is in the status; the answer comes on the stream.
func (s *httpSSE) post(ctx context.Context, q question, message []byte, watch *stopwatch) error {
	c := s.c
	s.inBody = nil
	s.incoming.left.Store(c.limits.ResponseBytes)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	build := func(ctx context.Context) (*http.Request, error) { return c.requestTo(ctx, s.endpoint, q, message) }
	resp, err := c.line.roundTrip(ctx, ctx, build, watch, func(req *http.Request) { //nolint:bodyclose // readReceipt closes it
		c.transcript.sent(q.step, time.Since(c.started), req, message)
	})
	if err != nil {
		p, _ := c.explain(ctx, err, watch)
		p.message = "the message was not taken: " + p.message
		return p
	}
	c.result.Steps[len(c.result.Steps)-1].HTTPStatus = resp.StatusCode
	r := s.readReceipt(cancel, q, resp)
	watch.enter(stageFirstByte)
	return s.judgeReceipt(q, resp, r)
}

// readReceipt reads the body of the answer to a POST, which says something only when the message was refused, or when it
// is the answer that belongs on the stream.
func (s *httpSSE) readReceipt(cancel context.CancelFunc, q question, resp *http.Response) *reading {
	c := s.c
	r := &reading{media: mediaType(resp.Header)}
	at := time.Since(c.started)
	var complete bool
	if resp.StatusCode == http.StatusOK && jsonMedia(r.media) {
		r.body, r.bad = readBounded(resp.Body, c.limits.ResponseBytes)
		complete = r.bad == nil
	} else {
		complete = readAside(resp.Body, r, resp.StatusCode, cancel)
	}
	c.line.done(resp, complete)
	c.transcript.received(q.step, at, resp, r.body[:min(len(r.body), c.transcript.room())], len(r.body) > c.transcript.room())
	return r
}

func (s *httpSSE) judgeReceipt(q question, resp *http.Response, r *reading) error {
	if isRedirect(resp) {
		return &problem{ClassRedirect, resp.StatusCode, "the message was redirected to " + RedactURL(resp.Header.Get("Location"))}
	}
	a := answer{status: resp.StatusCode, header: resp.Header, words: bodyWords(r.body)}
	q.notify = true // any success will do
	if p := s.c.judgeStatus(q, &a, r); p != nil {
		if !s.taken && (a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed) {
			p.class = ClassSSEEndpointInvalid
			where := *s.endpoint
			where.RawQuery = ""
			p.message = fmt.Sprintf("the endpoint event names %s: %s", RedactURL(where.String()), p.message)
		}
		return p
	}
	s.taken = true
	if e, err := readEnvelope(r.body, false); err == nil && !e.call {
		s.inBody = r.body
	}
	return nil
}

// maxReplies bounds how many requests of the endpoint's own are answered, each by a POST.
const maxReplies = 100

// send answers a request of the endpoint's own; questions go by post.
func (s *httpSSE) send(ctx context.Context, message []byte) error {
	if s.replies++; s.replies > maxReplies {
		return nil
	}
	mine := s.inBody
	err := s.post(ctx, question{step: lastStep(s.c.result.Steps), mcp: true}, message, newStopwatch())
	s.inBody = mine
	return err
}

// receive returns the next message of the stream. An answer that came in the body of its POST counts when the stream has
// nothing to say.
func (s *httpSSE) receive(ctx context.Context) ([]byte, error) {
	waiting := ctx
	if s.inBody != nil {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, grace)
		defer cancel()
	}
	for {
		a := s.next(waiting)
		switch {
		case a.err != nil && s.inBody != nil && ctx.Err() == nil:
			message := s.inBody
			s.inBody = nil
			s.c.warn(lastStep(s.c.result.Steps), ClassSSENoResponse, http.StatusOK,
				"answered in the body of the POST and not on the event stream, where clients wait for it")
			return message, nil
		case errors.Is(a.err, io.EOF):
			return nil, &problem{class: ClassSSENoResponse, message: "the event stream ended without an answer"}
		case a.err != nil:
			return nil, a.err
		case a.event.name != "endpoint":
			return a.event.data, nil
		}
	}
}

func (s *httpSSE) close() *problem {
	s.stop()
	s.line.close()
	if s.pumped != nil {
		<-s.pumped
	}
	return nil
}
