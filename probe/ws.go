package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// closePatience is how long a server may take to agree to the end of a WebSocket. Some just drop the connection.
const closePatience = 500 * time.Millisecond

// webSocket carries one message per frame (RFC 6455). Pings are answered while a message is waited for.
type webSocket struct {
	c       *conversation
	conn    *websocket.Conn
	carrier io.Closer // the connection below conn
	cancel  context.CancelFunc
	pump    *pump
	queue   [][]byte // messages that came in one frame
	binary  bool     // a binary frame was seen
	closed  bool
}

// openWebSocket dials the target's WebSocket.
func (c *conversation) openWebSocket(ctx context.Context, watch *stopwatch) (stream, error) {
	conn, err := c.dialHTTP1(ctx, watch)
	if err != nil {
		return nil, err
	}
	u := *c.url
	u.Scheme = httpScheme(u.Scheme)
	upgrade := &upgrade{c: c, conn: conn, watch: watch}
	ws, _, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient:      &http.Client{Transport: upgrade},
		HTTPHeader:      c.upgradeHeader(),
		Subprotocols:    c.subprotocols(),
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		conn.Close()
		return nil, upgrade.explain(ctx, err)
	}
	ws.SetReadLimit(c.limits.ResponseBytes)
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &webSocket{c: c, conn: ws, carrier: upgrade.carrier, cancel: cancel}
	w.pump = newPump(func() ([]byte, string, error) {
		kind, message, err := ws.Read(reading)
		if kind == websocket.MessageBinary {
			return message, oddBinary, err
		}
		return message, "", err
	})
	return w, nil
}

const oddBinary = "messages come in binary frames"

// dialHTTP1 connects to where the target's URL leads, for one request of HTTP/1.1: only that can become a WebSocket.
func (c *conversation) dialHTTP1(ctx context.Context, watch *stopwatch) (*http.ClientConn, error) {
	u := *c.url
	u.Scheme = httpScheme(u.Scheme)
	address, err := dialAddress(&u)
	if err != nil {
		return nil, err
	}
	t := c.target
	t.Options.HTTP = HTTP1
	return c.prober.newTransport(t).NewClientConn(httptrace.WithClientTrace(ctx, watch.dialTrace()), u.Scheme, address)
}

// httpScheme returns the scheme of HTTP that a WebSocket's begins with.
func httpScheme(scheme string) string {
	return map[string]string{"ws": "http", "wss": "https"}[scheme]
}

const subprotocolHeader = "Sec-Websocket-Protocol"

// upgradeHeader returns the header lines of the handshake beside those of the WebSocket protocol itself.
func (c *conversation) upgradeHeader() http.Header {
	header := http.Header{"User-Agent": {c.prober.userAgent()}}
	for _, h := range c.target.Headers {
		switch name := http.CanonicalHeaderKey(h.Name); {
		case name == "User-Agent":
			header.Set(name, h.Value)
		case !strings.HasPrefix(name, "Sec-Websocket-"):
			header.Add(name, h.Value)
		}
	}
	if bearer := c.bearer(c.url); bearer != "" {
		header.Set("Authorization", bearer)
	}
	return header
}

// subprotocols returns what the target's own header asks for. None is offered by itself: chain nodes never select one,
// and a client must then give up (RFC 6455 §4.1).
func (c *conversation) subprotocols() []string {
	var names []string
	for _, h := range c.target.Headers {
		if http.CanonicalHeaderKey(h.Name) != subprotocolHeader {
			continue
		}
		for name := range strings.SplitSeq(h.Value, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// upgrade sends the handshake over the connection that was dialled for it, and keeps what came of it.
type upgrade struct {
	c       *conversation
	conn    *http.ClientConn
	watch   *stopwatch
	status  int
	refused *problem  // the server answered, but not with a WebSocket
	carrier io.Closer // the connection, once the server has switched protocols
}

var errRefused = errors.New("no WebSocket")

// RoundTrip sends req. An answer that does not switch protocols becomes the problem that it means.
func (u *upgrade) RoundTrip(req *http.Request) (*http.Response, error) {
	step, at := lastStep(u.c.result.Steps), time.Since(u.c.started)
	u.c.transcript.sent(step, at, req, nil)
	u.watch.enter(stageFirstByte)
	resp, err := u.conn.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	u.status = resp.StatusCode
	if n := len(u.c.result.Steps); n > 0 {
		u.c.result.Steps[n-1].HTTPStatus = resp.StatusCode
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		u.c.transcript.received(step, time.Since(u.c.started), resp, nil, false)
		u.carrier = resp.Body
		return resp, nil
	}
	counted := &capture{Reader: resp.Body, room: u.c.transcript.room()}
	r := &reading{media: mediaType(resp.Header)}
	readAside(counted, r, http.StatusBadRequest, func() { resp.Body.Close() })
	resp.Body.Close()
	u.c.transcript.received(step, time.Since(u.c.started), resp, counted.kept.Bytes(), counted.more())
	u.refused = u.c.refusedUpgrade(resp, r)
	return nil, errRefused
}

// explain says why there is no WebSocket.
func (u *upgrade) explain(ctx context.Context, err error) error {
	if u.refused != nil {
		return u.refused
	}
	if p := u.c.outOfTime(ctx, err, u.watch); p != nil {
		if p.class == ClassTimeout {
			p.message = strings.Replace(p.message, waiting[stageFirstByte], "WebSocket handshake not answered", 1)
		}
		return p
	}
	if u.status != http.StatusSwitchingProtocols {
		return u.c.explainRequest(err)
	}
	_, words, _ := strings.Cut(err.Error(), "WebSocket protocol violation: ") // none for an extension nobody asked for
	return &problem{class: ClassHTTPStatus, code: u.status, message: "switched protocols, but not to a WebSocket" + after(tidy(words, 200))}
}

// refusedUpgrade reads an answer that does not switch protocols, by the rules for answers over HTTP.
func (c *conversation) refusedUpgrade(resp *http.Response, r *reading) *problem {
	if isRedirect(resp) {
		return c.redirectedUpgrade(resp)
	}
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if envelope, err := readEnvelope(r.body, false); err == nil && envelope.err != nil {
		a.rpc = envelope.err
	}
	a.words = bodyWords(r.body)
	// Not the question in hand: its own rules for statuses are about answers to it.
	q := question{step: lastStep(c.result.Steps)}
	if p := c.judgeStatus(q, a, r); p != nil {
		return p
	}
	if len(r.body) > 0 && !jsonMedia(r.media) {
		return &problem{class: ClassContentType, code: a.status, message: fmt.Sprintf("answered with %s in place of a WebSocket%s", orNone(r.media), after(a.words))}
	}
	return &problem{class: ClassHTTPStatus, code: a.status, message: fmt.Sprintf("%s in place of a WebSocket: this may be the address of plain HTTP, %s://", statusWords(a.status), httpScheme(c.url.Scheme))}
}

// redirectedUpgrade says where a handshake was sent instead: clients of WebSockets do not follow.
func (c *conversation) redirectedUpgrade(resp *http.Response) *problem {
	where := "a place that cannot be read as a URL"
	if next, err := c.url.Parse(resp.Header.Get("Location")); err == nil && next.Hostname() != "" {
		where = redirectWords(next)
	}
	return &problem{class: ClassRedirect, code: resp.StatusCode, message: "redirected to " + where + ", which WebSocket clients do not follow: register that address instead"}
}

// redirectWords returns a location as it may be shown.
func redirectWords(u *url.URL) string {
	shown := *u
	shown.Fragment = ""
	return RedactURL(shown.String())
}

func (w *webSocket) send(ctx context.Context, message []byte) error {
	err := w.conn.Write(ctx, websocket.MessageText, message)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	if w.pump.end == nil { // what the server said at last tells more than that nothing can be written
		late, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		for {
			d, readErr := w.pump.receive(late)
			if d.err != nil {
				return w.explain(readErr)
			}
			if readErr != nil {
				break
			}
		}
	}
	return w.explain(err)
}

func (w *webSocket) receive(ctx context.Context) ([]byte, error) {
	for len(w.queue) == 0 {
		d, err := w.pump.receive(ctx)
		if err != nil {
			return nil, w.explain(err)
		}
		if d.odd != "" && !w.binary {
			w.binary = true
			w.c.warnHere(ClassFraming, "%s", d.odd)
		}
		w.queue = unpack(d.message, w.c.limits.ResponseBytes)
		if len(w.queue) > 1 {
			w.c.warnHere(ClassFraming, "%d messages in one frame", len(w.queue))
		}
	}
	message := w.queue[0]
	w.queue = w.queue[1:]
	return message, nil
}

// maxUnpacked bounds how many messages one frame is taken for: those of two bytes each would need fifty times its size.
const maxUnpacked = 1000

// unpack returns the messages in a frame: one as a rule, none in a blank frame, several where a server batches what it
// writes. A frame that is anything else is one message, for its reader to say what is wrong.
func unpack(frame []byte, limit int64) [][]byte {
	var found [][]byte
	messages := newFramer(bytes.NewReader(frame), FramingLine, limit, nil)
	for {
		message, err := messages.next()
		switch {
		case errors.Is(err, io.EOF) && len(found) != 1:
			return found
		case err != nil, len(found) == maxUnpacked:
			return [][]byte{frame}
		}
		found = append(found, message)
	}
}

// explain puts an end of the WebSocket into words.
func (w *webSocket) explain(err error) error {
	if errors.Is(err, websocket.ErrMessageTooBig) {
		return errBodyTooLarge
	}
	if ended, ok := errors.AsType[websocket.CloseError](err); ok {
		return w.c.closeProblem(int(ended.Code), closeWords(ended.Code), ended.Reason)
	}
	_, network := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return &problem{class: ClassConnect, message: "the connection was dropped, without a close frame, before an answer"}
	case network:
		return err
	default:
		return framingProblem("what came is no WebSocket frame: %s", tidy(deepest(err).Error(), 100))
	}
}

// deepest returns the error at the bottom of a chain.
func deepest(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// Close codes that say what HTTP says by status: those registered with IANA, and the habit of adding 4000 to it.
const (
	closeUnauthorized = 3000
	closeForbidden    = 3003
	closeHTTP         = 4000
)

// closeProblem reads a close frame that came before the answer.
func (c *conversation) closeProblem(code int, words, reason string) *problem {
	message := fmt.Sprintf("the server closed the WebSocket before an answer: %d %s", code, words)
	message = strings.TrimSpace(message) + after(tidy(reason, 125))
	p := &problem{class: ClassConnect, code: code, message: message}
	switch credentials := c.target.hasCredentials(); {
	case code == closeHTTP+http.StatusTooManyRequests, quotaWords(reason):
		p.class = ClassRateLimited
	case (code == closeUnauthorized || code == closeHTTP+http.StatusUnauthorized) && credentials:
		p.class = ClassCredentialRejected
	case (code == closeForbidden || code == closeHTTP+http.StatusForbidden) && credentials:
		p.class = ClassAuthForbidden
	case code == closeUnauthorized, code == closeForbidden,
		code == closeHTTP+http.StatusUnauthorized, code == closeHTTP+http.StatusForbidden:
		p.class = ClassAuthRequired
	}
	return p
}

// closeWords says what a close code means (RFC 6455 §7.4.1); empty for one that it does not know.
func closeWords(code websocket.StatusCode) string {
	return map[websocket.StatusCode]string{
		websocket.StatusNormalClosure:           "normal closure",
		websocket.StatusGoingAway:               "going away",
		websocket.StatusProtocolError:           "protocol error",
		websocket.StatusUnsupportedData:         "unsupported data",
		websocket.StatusNoStatusRcvd:            "no reason given",
		websocket.StatusInvalidFramePayloadData: "invalid data",
		websocket.StatusPolicyViolation:         "policy violation",
		websocket.StatusMessageTooBig:           "message too big",
		websocket.StatusMandatoryExtension:      "mandatory extension",
		websocket.StatusInternalError:           "internal error",
		websocket.StatusServiceRestart:          "service restart",
		websocket.StatusTryAgainLater:           "try again later",
		websocket.StatusBadGateway:              "bad gateway",
		closeUnauthorized:                       "unauthorized",
		closeForbidden:                          "forbidden",
	}[code]
}

// close says goodbye. That a server drops the connection in place of answering to that is common and not worth a word.
func (w *webSocket) close() *problem {
	if w.closed {
		return nil
	}
	w.closed = true
	drop := time.AfterFunc(closePatience, func() { _ = w.carrier.Close() })
	defer drop.Stop()
	_ = w.conn.Close(websocket.StatusNormalClosure, "")
	w.cancel()
	_ = w.carrier.Close() // what was to be read has been read
	w.pump.stop()
	return nil
}
