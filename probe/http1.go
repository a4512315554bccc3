package probe

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// carrier is a connection that carries one request after the other: http1, or an *http.ClientConn.
type carrier interface {
	RoundTrip(req *http.Request) (*http.Response, error)
	Err() error // why it carries no further request; nil as long as it does
	Close() error
}

// http1 is a connection of HTTP/1.1 without TLS. A check asks one question after the other, so the goroutine that asks also
// writes and reads; the two further ones that net/http keeps for each connection cost as much again as all of a short
// check. How bytes are written and read is left to net/http. Its hooks (httptrace) and its errors are those of an
// *http.ClientConn.
type http1 struct {
	conn   net.Conn
	in     *bufio.Reader
	out    *bufio.Writer
	header int64       // bytes that the header of an answer may have
	left   int64       // how many of them may still be read
	idle   atomic.Bool // the last answer was read to its end
	closed atomic.Bool
}

// Buffers live as long as a connection, which is as long as a check.
var (
	http1In  = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}
	http1Out = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 4<<10) }}
)

// newHTTP1 returns a connection over conn on which the header of an answer may have so many bytes.
func newHTTP1(conn net.Conn, header int64) *http1 {
	h := &http1{conn: conn, in: http1In.Get().(*bufio.Reader), out: http1Out.Get().(*bufio.Writer), header: header}
	h.in.Reset(headerBound{h})
	h.out.Reset(conn)
	h.idle.Store(true)
	return h
}

var (
	errHeaderTooLarge = errors.New("the header of the answer is too large")
	errNotIdle        = errors.New("the connection carries no further request")
)

// headerBound reads from the connection, not more than is left for a header.
type headerBound struct{ *http1 }

func (h headerBound) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, errHeaderTooLarge
	}
	n, err := h.conn.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

// RoundTrip sends req and returns its answer as soon as the header is there. An answer may come before the request is
// sent, and stands even when the rest of it is not taken any more.
func (h *http1) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	h.idle.Store(false)
	stop := context.AfterFunc(ctx, h.interrupt)
	err := h.send(req)
	var resp *http.Response
	if err == nil {
		resp, err = h.receive(req)
	}
	if err != nil {
		stop()
		return nil, causeOf(ctx, err)
	}
	body := &http1Body{from: resp.Body, conn: h, ctx: ctx, stop: stop}
	if resp.Body == http.NoBody {
		body.end()
	} else {
		resp.Body = body
	}
	return resp, nil
}

// send writes req before anything is read: what a check sends (maxParams and a header) fits into the buffers between two
// machines, so that a server which answers without reading holds nobody up. That it takes no more is no error, for it may have
// answered.
func (h *http1) send(req *http.Request) error {
	err := req.Write(h.out)
	if err == nil {
		err = h.out.Flush()
	}
	if _, lost := errors.AsType[*net.OpError](err); lost {
		return nil
	}
	return err
}

// receive reads the header of the answer. Interim answers (RFC 9110 §15.2) are passed over; all of them together must not
// be larger than one header.
func (h *http1) receive(req *http.Request) (*http.Response, error) {
	h.left = h.header
	if _, err := h.in.Peek(1); err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	for {
		resp, err := http.ReadResponse(h.in, req) //nolint:bodyclose // an interim answer has none, the last one is returned
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			h.left = math.MaxInt64
			return resp, nil
		}
	}
}

// interrupt ends what is being written and read, now and later.
func (h *http1) interrupt() { _ = h.conn.SetDeadline(time.Unix(1, 0)) } // one that is closed has no need of it

// causeOf returns why ctx has ended, if it has, in place of an error that came of it.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Err returns why the connection carries no further request: it carries one, or its server has hung up or sent what
// nobody asked for.
func (h *http1) Err() error {
	if !h.idle.Load() || h.in.Buffered() > 0 || !quiet(h.conn) {
		return errNotIdle
	}
	return nil
}

// Close ends the connection and what is being read from it.
func (h *http1) Close() error {
	if h.closed.Swap(true) {
		return nil
	}
	if h.idle.Load() { // nobody reads
		h.in.Reset(nil)
		h.out.Reset(nil)
		http1In.Put(h.in)
		http1Out.Put(h.out)
	}
	return h.conn.Close()
}

// http1Body is the body of an answer. Closing it before its end closes the connection: who knows how much is left.
type http1Body struct {
	from  io.ReadCloser
	conn  *http1
	ctx   context.Context
	stop  func() bool // has the connection not care about ctx any more; false when that comes too late
	ended bool
}

func (b *http1Body) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.from.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.end()
		return n, err
	default:
		return n, causeOf(b.ctx, err)
	}
}

// end gives the connection free for the next request.
func (b *http1Body) end() {
	b.ended = true
	if b.stop() {
		b.conn.idle.Store(true)
	}
}

func (b *http1Body) Close() error {
	if b.ended {
		return nil
	}
	b.stop()
	return b.conn.Close()
}
