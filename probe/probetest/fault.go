package probetest

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Fault is one way for a server to be different from a healthy one. Where a constructor takes a step, it is the name of
// the step that goes wrong ("server/discover", "initialize", "initialized", "tools/list", "close", "eth_blockNumber",
// …), or empty for all of them.
type Fault func(*behaviour)

// behaviour is what all faults of a server add up to. It is not changed once it is made.
type behaviour struct {
	legacyOnly, modernOnly bool
	tools, pageSize        int
	framing                framing
	version                string // the only one the server speaks
	strictVersion          bool
	noSession              bool
	noTools                bool
	cursorLoop             bool
	emptyCursor            bool
	echoVersion            bool
	keepSessions           bool
	padding                int    // bytes of each tool's description
	endpoint, firstEvent   string // of an HTTP+SSE stream
	postStreams            bool
	changedFirst           bool
	frozen                 *uint64
	chain                  chainPlan
	tls                    tlsMode
	tlsConfig              *tls.Config // by TLSWith
	twists                 []twist
}

type framing int

const (
	framingUsual framing = iota
	framingJSON
	framingSSE
)

// twist is a fault of single answers.
type twist struct {
	match   func(*exchange) bool
	colour  func(*exchange) // changes the answer
	replace func(*exchange) // is sent in its place
}

func newBehaviour(faults []Fault) behaviour {
	b := behaviour{tools: 3}
	for _, f := range faults {
		f(&b)
	}
	return b
}

func all(faults ...Fault) Fault {
	return func(b *behaviour) {
		for _, f := range faults {
			f(b)
		}
	}
}

func at(step string) func(*exchange) bool {
	return func(x *exchange) bool { return step == "" || x.Step == step }
}

func colour(step string, do func(*exchange)) Fault {
	return func(b *behaviour) { b.twists = append(b.twists, twist{match: at(step), colour: do}) }
}

func replace(step string, do func(*exchange)) Fault {
	return func(b *behaviour) { b.twists = append(b.twists, twist{match: at(step), replace: do}) }
}

// Once limits a fault of single answers to the first request that it meets.
func Once(f Fault) Fault { return Times(1, f) }

// Times limits a fault of single answers to the first n requests that it meets.
func Times(n int, f Fault) Fault {
	return func(b *behaviour) {
		before := len(b.twists)
		f(b)
		for i := range b.twists[before:] {
			t := &b.twists[before+i]
			match, left := t.match, new(atomic.Int64)
			left.Store(int64(n))
			t.match = func(x *exchange) bool { return match(x) && left.Add(-1) >= 0 }
		}
	}
}

// HangAt receives the request and never answers.
func HangAt(step string) Fault { return replace(step, (*exchange).hang) }

// HangBodyAt sends status and headers, and then nothing.
func HangBodyAt(step string) Fault {
	return replace(step, func(x *exchange) {
		contentType, body := x.body()
		x.head(contentType, len(body))
		x.flush()
		x.hang()
	})
}

// SlowAt answers after d.
func SlowAt(step string, d time.Duration) Fault { return colour(step, func(x *exchange) { x.wait(d) }) }

// DripAt sends the body one byte at a time, with a pause after each. With a pause of zero it only tears the body into
// pieces.
func DripAt(step string, pause time.Duration) Fault {
	return colour(step, func(x *exchange) { x.drip = &pause })
}

// HeaderAt sends a header with the answer, in place of the usual one of that name. An empty value removes it.
func HeaderAt(step, name, value string) Fault {
	return colour(step, func(x *exchange) { x.header.Set(name, value) })
}

// WrongIDAt answers under the id of another request.
func WrongIDAt(step string) Fault { return IDAt(step, `"of another request"`) }

// IDAt answers under an id, given as JSON: `null`, `7`, `"7"`.
func IDAt(step, id string) Fault {
	return colour(step, func(x *exchange) { x.id = json.RawMessage(id) })
}

// ResultAt answers with a result, given as JSON.
func ResultAt(step, result string) Fault {
	return colour(step, func(x *exchange) {
		x.status, x.raw, x.nullID = http.StatusOK, nil, false
		x.result(json.RawMessage(result))
	})
}

// EnvelopeAt answers with a text in place of the JSON-RPC message. Every $id in it becomes the id of the request.
func EnvelopeAt(step, text string) Fault {
	return colour(step, func(x *exchange) {
		x.status, x.raw = http.StatusOK, []byte(strings.ReplaceAll(text, "$id", string(x.ID)))
	})
}

// RPCErrorAt answers with a JSON-RPC error under an HTTP status, as JSON or an event stream, whichever is usual.
func RPCErrorAt(step string, status, code int, message string) Fault {
	return colour(step, func(x *exchange) {
		x.raw, x.nullID = nil, false
		x.rpcError(status, code, message, nil)
	})
}

// StatusAt answers with a status and a body that is sent as it is. An empty contentType sends no Content-Type.
func StatusAt(step string, status int, contentType, body string) Fault {
	return replace(step, func(x *exchange) {
		x.plain(status, contentType, body)
		x.send()
	})
}

// GarbageAt answers 200 application/json with bytes that are none.
func GarbageAt(step string) Fault {
	return StatusAt(step, http.StatusOK, "application/json", "\x00\xff\xfe{]not json\r\n\x1b[31m")
}

// HTMLAt answers 200 with a web page.
func HTMLAt(step string) Fault {
	return StatusAt(step, http.StatusOK, "text/html; charset=utf-8",
		"<!doctype html><html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>")
}

// HalfBodyAt announces the whole answer, sends half of it and drops the connection.
func HalfBodyAt(step string) Fault {
	return replace(step, func(x *exchange) {
		contentType, body := x.body()
		x.head(contentType, len(body))
		x.write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	})
}

// TooLongAt announces n bytes more than the answer has, sends all of it and drops the connection.
func TooLongAt(step string, n int) Fault {
	return replace(step, func(x *exchange) {
		contentType, body := x.body()
		x.stream = false
		x.head(contentType, len(body)+n)
		x.write(body)
		panic(http.ErrAbortHandler)
	})
}

// GzipAt compresses the answer although nobody offered to read that.
func GzipAt(step string) Fault {
	return replace(step, func(x *exchange) {
		contentType, body := x.body()
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // memory takes it all
		_ = w.Close()
		x.header.Set("Content-Encoding", "gzip")
		x.head(contentType, packed.Len())
		x.write(packed.Bytes())
	})
}

// StreamTextAt answers with an event stream as it is written in text. Every $message in it becomes the JSON-RPC message.
func StreamTextAt(step, text string) Fault {
	return replace(step, func(x *exchange) {
		x.stream = true
		x.head("text/event-stream", -1)
		x.write([]byte(strings.ReplaceAll(text, "$message", string(x.message()))))
	})
}

// ResumeAt ends the event stream before the answer, after an event that tells its id and how long to wait, and does so
// again to all but the last of n GETs that take it up there. A wait of zero is not told.
func ResumeAt(step string, wait time.Duration, n int) Fault {
	return colour(step, func(x *exchange) { x.broken = &broken{x.message(), wait, n} })
}

// broken is an event stream that ended before its answer.
type broken struct {
	message []byte
	wait    time.Duration
	left    int // GETs until the answer comes
}

func (x *exchange) breakOff(b broken) {
	x.s.mu.Lock()
	x.s.fed++
	id := fmt.Sprintf("event-%d", x.s.fed)
	x.s.held[id] = b
	x.s.mu.Unlock()
	text := "id: " + id + "\n"
	if b.wait > 0 {
		text += fmt.Sprintf("retry: %d\n", b.wait.Milliseconds())
	}
	x.stream = true
	x.head("text/event-stream", -1)
	x.write([]byte(text + "data: \n\n"))
}

// takeUp answers a GET that goes on where a stream ended.
func (x *exchange) takeUp() {
	id := x.Header.Get("Last-Event-Id")
	x.s.mu.Lock()
	b, ok := x.s.held[id]
	delete(x.s.held, id)
	x.s.mu.Unlock()
	switch {
	case !ok || !x.b.noSession && !x.knowsSession():
		x.plain(http.StatusNotFound, "text/plain", "no such stream")
	case b.left > 1:
		b.left--
		x.broken = &b
	default:
		x.stream, x.raw = true, b.message
	}
}

// HugeBodyAt answers well, in a message with n bytes of white space in it.
func HugeBodyAt(step string, n int) Fault {
	return colour(step, func(x *exchange) {
		message := x.message()
		x.raw = slices.Concat(message[:1], []byte(strings.Repeat(" ", n)), message[1:])
	})
}

// ResetAt receives the request and resets the connection (RST).
func ResetAt(step string) Fault {
	return replace(step, func(x *exchange) {
		conn, _, err := http.NewResponseController(x.w).Hijack()
		if err != nil {
			panic("probetest: " + err.Error()) // HTTP/1.1 connections can always be taken over
		}
		defer conn.Close()
		if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = wrapped.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
			tcp.Close()
		}
	})
}

// CloseAt receives the request and closes the connection without an answer.
func CloseAt(step string) Fault {
	return replace(step, func(*exchange) { panic(http.ErrAbortHandler) })
}

// StalledStreamAt opens an event stream and never sends the reply.
func StalledStreamAt(step string) Fault {
	return replace(step, func(x *exchange) {
		x.openStream()
		x.hang()
	})
}

// StreamOpenAt sends the reply in an event stream and leaves the stream open.
func StreamOpenAt(step string) Fault {
	return replace(step, func(x *exchange) {
		x.openStream()
		x.write(event(x.message()))
		x.hang()
	})
}

// EmptyStreamAt opens an event stream and ends it without the reply.
func EmptyStreamAt(step string) Fault { return replace(step, (*exchange).openStream) }

func (x *exchange) openStream() {
	x.stream, x.priming = true, true
	x.head("text/event-stream", -1)
	x.write(x.preamble())
}

// RedirectAt redirects to a location. Requests that have already come to that path and query are answered.
func RedirectAt(step string, status int, location string) Fault {
	return func(b *behaviour) {
		b.twists = append(b.twists, twist{
			match:   func(x *exchange) bool { return at(step)(x) && x.URI != location },
			replace: func(x *exchange) { x.redirect(status, location) },
		})
	}
}

// RedirectLoopAt redirects with 307 for ever, to another place of the same server each time.
func RedirectLoopAt(step string) Fault {
	return replace(step, func(x *exchange) {
		var hop int
		_, _ = fmt.Sscanf(x.r.URL.RawQuery, "hop=%d", &hop) // absent at first: zero
		x.redirect(http.StatusTemporaryRedirect, fmt.Sprintf("%s?hop=%d", x.r.URL.Path, hop+1))
	})
}

func (x *exchange) redirect(status int, location string) {
	x.header.Set("Location", location)
	x.plain(status, "text/plain", "")
	x.send()
}

// Unauthorized answers everything with 401 and, unless it is empty, a WWW-Authenticate header.
func Unauthorized(wwwAuthenticate string) Fault {
	return all(header("WWW-Authenticate", wwwAuthenticate),
		StatusAt("", http.StatusUnauthorized, "application/json", `{"error":"unauthorized"}`))
}

// RefuseAgents answers everything with 403 to clients that do not say who they are: an empty User-Agent, or that of a
// library.
func RefuseAgents() Fault {
	return func(b *behaviour) {
		b.twists = append(b.twists, twist{
			match: func(x *exchange) bool {
				agent := x.Header.Get("User-Agent")
				return agent == "" || strings.HasPrefix(agent, "Go-http-client")
			},
			replace: func(x *exchange) {
				x.plain(http.StatusForbidden, "text/html", "<html><title>Access denied</title>error code: 1010</html>")
				x.send()
			},
		})
	}
}

// RateLimited answers everything with 429 and, unless it is empty, a Retry-After header.
func RateLimited(retryAfter string) Fault {
	return all(header("Retry-After", retryAfter),
		StatusAt("", http.StatusTooManyRequests, "text/plain", "Too Many Requests"))
}

// BotWall answers everything with the challenge page of a bot filter.
func BotWall() Fault {
	return all(header("Cf-Mitigated", "challenge"),
		StatusAt("", http.StatusForbidden, "text/html; charset=UTF-8",
			"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Enable JavaScript to continue</body></html>"))
}

func header(name, value string) Fault {
	if value == "" {
		return all()
	}
	return HeaderAt("", name, value)
}

// TLS makes the server speak TLS with a certificate that [Server.CertPool] trusts.
func TLS() Fault { return func(b *behaviour) { b.tls = tlsGood } }

// BadTLS makes the server speak TLS with a self-signed certificate that expired yesterday.
func BadTLS() Fault { return func(b *behaviour) { b.tls = tlsExpired } }

// TLSWith makes the server speak TLS as config says, which must hold a certificate. It speaks HTTP/2 when config offers
// "h2". [Server.CertPool] and [Server.Certificate] tell nothing of it.
func TLSWith(config *tls.Config) Fault {
	return func(b *behaviour) { b.tls, b.tlsConfig = tlsGiven, config }
}
