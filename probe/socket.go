package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http/httptrace"
)

// socket carries messages over TCP, TLS or a unix socket.
type socket struct {
	c       *conversation
	conn    net.Conn
	framing Framing
	pump    *pump
	closed  bool
}

// openSocket dials the target's TCP, TLS or unix socket.
func (c *conversation) openSocket(ctx context.Context, watch *stopwatch) (stream, error) {
	conn, err := c.dialSocket(ctx, watch)
	if err != nil {
		return nil, err
	}
	f := newFramer(conn, c.framing(), c.limits.ResponseBytes, nil)
	return &socket{c: c, conn: conn, framing: c.framing(), pump: newPump(func() ([]byte, string, error) {
		message, err := f.next()
		return message, f.oddity(), err
	})}, nil
}

// dialSocket connects to where the target's URL leads.
func (c *conversation) dialSocket(ctx context.Context, watch *stopwatch) (net.Conn, error) {
	trace := watch.dialTrace()
	ctx = httptrace.WithClientTrace(ctx, trace)
	if c.url.Scheme == "unix" {
		return c.dialUnix(ctx)
	}
	address, err := dialAddress(c.url)
	if err != nil {
		return nil, err
	}
	conn, err := c.prober.dial(ctx, c.target, "tcp", address)
	if err != nil || c.url.Scheme != "tls" {
		return conn, err
	}
	config, err := c.prober.tlsConfig(c.target, c.url.Hostname())
	if err != nil {
		conn.Close()
		return nil, err
	}
	secured := tls.Client(conn, config)
	trace.TLSHandshakeStart()
	err = secured.HandshakeContext(ctx)
	trace.TLSHandshakeDone(secured.ConnectionState(), err)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

// dialUnix connects to a socket of this machine.
func (c *conversation) dialUnix(ctx context.Context) (net.Conn, error) {
	if p := c.refuseLocal("unix sockets"); p != nil {
		return nil, p
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", c.url.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &problem{class: ClassConnect, message: "there is no socket at this path"}
	case errors.Is(err, fs.ErrPermission):
		return nil, &problem{class: ClassProbeError, message: "this process may not open the socket"}
	default:
		return conn, err
	}
}

// refuseLocal returns why things of this machine must not be used; nil where they may.
func (c *conversation) refuseLocal(what string) *problem {
	if c.prober.Local {
		return nil
	}
	return &problem{class: ClassEgressBlocked, message: what + " are for whoever runs this service to set up: they are refused here"}
}

func (s *socket) send(ctx context.Context, message []byte) error {
	return writeWithin(ctx, s.conn, s.conn.SetWriteDeadline, s.framing.frame(message))
}

func (s *socket) receive(ctx context.Context) ([]byte, error) {
	d, err := s.pump.receive(ctx)
	if d.odd != "" {
		s.c.warnHere(ClassFraming, "%s", d.odd)
	}
	if bad, ok := errors.AsType[*garbage](err); ok {
		return nil, s.c.strangePeer(bad)
	}
	return d.message, err
}

func (s *socket) close() *problem {
	if s.closed {
		return nil
	}
	s.closed = true
	s.conn.Close()
	s.pump.stop()
	return nil
}

// strangePeer says what answers at a socket in place of JSON-RPC.
func (c *conversation) strangePeer(g *garbage) *problem {
	secure := c.url.Scheme == "tls"
	switch text := g.text; {
	case bytes.HasPrefix(text, []byte("HTTP/")) && secure:
		return framingProblem("an HTTP server answers here: use https://")
	case bytes.HasPrefix(text, []byte("HTTP/")):
		return framingProblem("an HTTP server answers here: use http://")
	case len(text) > 1 && text[0] >= 0x14 && text[0] <= 0x17 && text[1] == 3 && !secure: // a record of TLS
		return framingProblem("the server speaks TLS here: use tls://")
	case len(text) >= 8 && bytes.EqualFold(text[:8], []byte("Content-")):
		return framingProblem(`messages have a header before them: their framing is "%s"`, FramingHeader)
	default:
		return framingProblem("what came is no JSON-RPC: %s", tidy(string(text), 100))
	}
}

// warnHere records something odd in the step under way.
func (c *conversation) warnHere(class Class, format string, args ...any) {
	c.warn(lastStep(c.result.Steps), class, 0, "%s", fmt.Sprintf(format, args...))
}
