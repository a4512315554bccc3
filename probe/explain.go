package probe

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// explain turns an error from before the header of an answer into a problem, and reports whether there was a connection.
func (c *conversation) explain(ctx context.Context, err error, watch *stopwatch) (*problem, bool) {
	_, dialling := errors.AsType[dialError](err)
	if p, ok := errors.AsType[*problem](err); ok {
		return p, !dialling // a redirect that must not be followed, a proxy in trouble
	}
	if p := c.outOfTime(ctx, err, watch); p != nil {
		return p, !dialling
	}
	if dialling {
		return c.explainDial(err, watch.at()), false
	}
	return c.explainRequest(err), true
}

// outOfTime explains an error that comes from our own clock or from the caller's change of mind; nil when it does not.
func (c *conversation) outOfTime(ctx context.Context, err error, watch *stopwatch) *problem {
	cause := context.Cause(ctx) // HTTP/2 returns the context's error, HTTP/1.1 its cause
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) || ctx.Err() == context.DeadlineExceeded {
		took, _ := watch.times()
		return &problem{class: ClassTimeout, message: fmt.Sprintf("%s after %s", waiting[watch.at()], inWords(took))}
	}
	if cause != nil {
		return &problem{class: ClassProbeError, message: "cancelled"}
	}
	return nil
}

func (c *conversation) explainDial(err error, at stage) *problem {
	if refused, ok := errors.AsType[*EgressError](err); ok {
		return &problem{class: ClassEgressBlocked, message: refused.Error()}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return explainDNS(dns)
	}
	if at == stageTLS {
		return c.explainTLS(err)
	}
	for _, own := range ownFaults {
		if errors.Is(err, own) {
			return &problem{class: ClassProbeError, message: "no connection from this machine: " + own.Error()}
		}
	}
	return &problem{class: ClassConnect, message: netWords(err)}
}

// ownFaults are errors of a dial that tell about this machine and not about the endpoint: it has no route or no socket
// left.
var ownFaults = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.EADDRNOTAVAIL, syscall.ENETDOWN, syscall.ENETUNREACH,
}

// explainDNS blames the endpoint for a name without an address, and us when our own resolver could not be reached.
func explainDNS(err *net.DNSError) *problem {
	unreachable := !err.IsNotFound && (strings.Contains(err.Err, "connection refused") ||
		strings.Contains(err.Err, "network is unreachable") || strings.Contains(err.Err, "no route to host"))
	switch {
	case unreachable:
		return &problem{class: ClassProbeError, message: "the resolver of this machine cannot be reached"}
	case err.IsNotFound && strings.HasPrefix(err.Err, "no IPv"):
		return &problem{class: ClassDNS, message: fmt.Sprintf("%s has %s", err.Name, err.Err)}
	case err.IsNotFound:
		return &problem{class: ClassDNS, message: fmt.Sprintf("%s has no address", err.Name)}
	case err.IsTimeout:
		return &problem{class: ClassDNS, message: fmt.Sprintf("no answer about the address of %s", err.Name)}
	default:
		return &problem{class: ClassDNS, message: fmt.Sprintf("%s cannot be resolved: %s", err.Name, err.Err)}
	}
}

func (c *conversation) explainRequest(err error) *problem {
	text := err.Error()
	connect := func(message string) *problem { return &problem{class: ClassConnect, message: message} }
	switch {
	case strings.Contains(text, "remote error: tls"):
		return c.explainTLS(err) // with TLS 1.3 the server may object after the handshake
	case errors.Is(err, errHeaderTooLarge) || strings.Contains(text, "headers exceeded") || strings.Contains(text, "header list larger"):
		return &problem{class: ClassBodyTooLarge, message: "the header of the answer is larger than a probe is willing to read"}
	case strings.Contains(text, "looked like an HTTP/1.1 header"):
		return connect(noHTTP2)
	case strings.Contains(text, "malformed HTTP") && strings.Contains(text, tlsRecord):
		return connect("the server speaks TLS on this port: use " + securedScheme(c.url) + "://")
	case strings.Contains(text, "malformed"):
		return connect("the answer is not HTTP")
	case c.target.Options.HTTP == HTTP2 && (hungUp(err) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)):
		return connect("the connection was closed before an answer: the server may not speak HTTP/2")
	case hungUp(err):
		return connect("the connection was closed before an answer")
	default:
		return connect(netWords(err))
	}
}

// hungUp reports whether err says that a connection was closed.
func hungUp(err error) bool {
	return strings.Contains(err.Error(), "closed") || strings.Contains(err.Error(), "client conn could not be established") || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// tlsRecord is how net/http quotes the beginning of an alert of TLS, which is what a server answers to plain HTTP.
const tlsRecord = `"\x15\x03`

// securedScheme returns the scheme that adds TLS to that of u.
func securedScheme(u *url.URL) string {
	switch u.Scheme {
	case "ws":
		return "wss"
	case "tcp":
		return "tls"
	default:
		return "https"
	}
}

// explainBody turns an error in the middle of an answer into a problem.
func (c *conversation) explainBody(ctx context.Context, err error, watch *stopwatch) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if p := c.outOfTime(ctx, err, watch); p != nil {
		return p
	}
	switch {
	case errors.Is(err, errBodyTooLarge):
		return &problem{class: ClassBodyTooLarge, message: fmt.Sprintf("the answer is larger than %d bytes", c.limits.ResponseBytes)}
	case errors.Is(err, gzip.ErrHeader):
		return &problem{class: ClassContentType, message: "its Content-Encoding is gzip, its body is not"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &problem{class: ClassTruncatedBody, message: "the body ended before its announced end"}
	default:
		return &problem{class: ClassTruncatedBody, message: "the body broke off: " + netWords(err)}
	}
}

// netWords says an error of the network shortly: "connection refused by 192.0.2.7:443".
func netWords(err error) string {
	where := ""
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "dial" && op.Addr != nil {
		where = " by " + op.Addr.String()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error() + where
	}
	if ok && op.Err != nil {
		return op.Err.Error() + where
	}
	return err.Error()
}
