package probe

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"golang.org/x/net/http/httpguts"
)

// line is the one connection of a check. It is dialled on first use, and again when the server has closed it or a
// redirect leads to another port.
type line struct {
	transport *http.Transport
	conn      carrier
	origin    string // scheme and address that conn leads to
	used      bool   // conn has carried an answer
	http2     bool   // spoken on conn
}

// dialError is an error from before there was a connection.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// roundTrip sends the request that build makes and returns the answer to it, as soon as its header is there. It dials,
// where it has to, under dialCtx, calls connected, and asks under ctx. A server may close an idle connection just when a request is on
// its way: such a request is sent once more on a fresh connection.
func (l *line) roundTrip(dialCtx, ctx context.Context, build func(context.Context) (*http.Request, error), watch *stopwatch, connected func(*http.Request)) (*http.Response, error) {
	for {
		req, err := build(httptrace.WithClientTrace(ctx, watch.requestTrace()))
		if err != nil {
			return nil, dialError{err}
		}
		if err := l.connect(dialCtx, req.URL, watch); err != nil {
			return nil, dialError{err}
		}
		if l.http2 {
			req.Proto = "HTTP/2.0" // for the transcript: net/http does not look at it
		}
		connected(req)
		reused := l.used
		watch.enter(stageWrite)
		resp, err := l.conn.RoundTrip(req)
		if err == nil {
			l.used = true
			l.refuseUpgrade(resp)
			return resp, nil
		}
		l.close()
		if !reused || ctx.Err() != nil || watch.at() == stageBody {
			return nil, err
		}
	}
}

// refuseUpgrade ends the connection of an answer that switches protocols. Nobody asked for that, and its body would be
// the bare connection, which no deadline ends.
func (l *line) refuseUpgrade(resp *http.Response) {
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return
	}
	resp.Body.Close()
	resp.Body = http.NoBody
	l.close()
}

// connect makes sure that there is a connection to u which the server has not closed.
func (l *line) connect(ctx context.Context, u *url.URL, watch *stopwatch) error {
	address, err := dialAddress(u)
	if err != nil {
		return err
	}
	origin := u.Scheme + "://" + address
	if l.conn != nil && l.origin == origin && l.conn.Err() == nil {
		return nil
	}
	l.close()
	watch.enter(stageConnect)
	conn, err := l.dial(httptrace.WithClientTrace(ctx, watch.dialTrace()), u.Scheme, address)
	if err != nil {
		return err
	}
	l.conn, l.origin = conn, origin
	_, secured := watch.learnt()
	l.http2 = secured != nil && secured.protocol == "h2" || secured == nil && l.unencryptedHTTP2()
	return nil
}

// dial connects to address. TLS and HTTP/2 are left to net/http: a handshake costs more than all that comes after it.
func (l *line) dial(ctx context.Context, scheme, address string) (carrier, error) {
	if scheme != "http" || l.unencryptedHTTP2() {
		return l.transport.NewClientConn(ctx, scheme, address)
	}
	conn, err := l.transport.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return newHTTP1(conn, l.transport.MaxResponseHeaderBytes), nil
}

func (l *line) unencryptedHTTP2() bool {
	return l.transport.Protocols != nil && l.transport.Protocols.UnencryptedHTTP2()
}

// done ends the use of an answer. A connection whose answer was not read to its end, or that the server means to close,
// cannot carry another request; HTTP/2 ends the one stream instead.
func (l *line) done(resp *http.Response, complete bool) {
	resp.Body.Close()
	if !l.http2 && (!complete || resp.Close) {
		l.close()
	}
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close() // nothing is left to be sent
	}
	l.conn, l.origin, l.used, l.http2 = nil, "", false, false
}

// dialAddress returns the host and port that u leads to, the host as DNS knows it.
func dialAddress(u *url.URL) (string, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return httpguts.PunycodeHostPort(net.JoinHostPort(u.Hostname(), port))
}
