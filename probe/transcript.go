package probe

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// transcript keeps every message of a check when the target asks for it.
type transcript struct {
	on       bool
	keep     int // bytes of a body
	secrets  *Redactor
	messages []Message
	size     int // bytes of messages
}

// Bounds on one transcript: a server may send what nobody asked for as fast as it can until the time is up.
const (
	maxTranscript = 4 << 20 // bytes, after which no further message is kept
	maxMessages   = 1000
)

// full reports whether no further message is kept.
func (t *transcript) full() bool { return t.size >= maxTranscript || len(t.messages) >= maxMessages }

// sent keeps a request with its body.
func (t *transcript) sent(step string, at time.Duration, req *http.Request, body []byte) {
	if !t.on || t.full() {
		return
	}
	path, _, _ := strings.Cut(RedactURL(req.URL.String()), "#")
	if _, rest, ok := strings.Cut(path, "://"); ok {
		_, path = splitBefore(rest, "/?")
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s %s\nHost: %s\n", req.Method, t.secrets.Cut(path), req.Proto, req.URL.Host)
	t.writeHeader(&head, req.Header)
	if req.ContentLength > 0 {
		fmt.Fprintf(&head, "Content-Length: %d\n", req.ContentLength)
	}
	t.add(step, true, at, head.String(), body, false)
}

// received keeps a response with as much of its body as was captured; more says that there was more of it.
func (t *transcript) received(step string, at time.Duration, resp *http.Response, body []byte, more bool) {
	if !t.on || t.full() {
		return
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s\n", resp.Proto, t.secrets.Cut(visible(resp.Status)))
	t.writeHeader(&head, resp.Header)
	t.add(step, false, at, head.String(), body, more)
}

// message keeps one message of a stream, which has no header lines.
func (t *transcript) message(step string, sent bool, at time.Duration, body []byte) {
	if !t.on || t.full() {
		return
	}
	kept := body[:min(len(body), t.room())]
	t.add(step, sent, at, "", kept, len(kept) < len(body))
}

func (t *transcript) add(step string, sent bool, at time.Duration, head string, body []byte, more bool) {
	text := t.secrets.Cut(visible(strings.ToValidUTF8(string(body), "�")))
	if len(text) > t.keep {
		text, more = strings.ToValidUTF8(text[:t.keep], ""), true
	}
	t.messages = append(t.messages, Message{
		Step: step, Sent: sent, At: at, Head: printable(strings.TrimSuffix(head, "\n")), Body: printable(text), Clipped: more,
	})
	t.size += len(head) + len(text)
}

// writeHeader writes header lines in the order of their names.
func (t *transcript) writeHeader(b *strings.Builder, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fmt.Fprintf(b, "%s: %s\n", t.secrets.headerName(name), t.header(name, value))
		}
	}
}

func (t *transcript) header(name, value string) string {
	value = visible(value)
	if name == "Location" {
		value = RedactURL(value)
	}
	return t.secrets.header(name, value)
}

// visible takes the invisible characters out of text: a secret may be split by them.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, s)
}

// printable replaces the control characters that a terminal would obey, keeping line breaks and tabs.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7F && r < 0xA0 {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

// room returns how much of a body is worth capturing: what is shown, and the longest secret that may begin in it.
func (t *transcript) room() int {
	if !t.on {
		return 0
	}
	return t.keep + t.secrets.longest
}

// capture passes a body on and keeps the beginning of what went through.
type capture struct {
	io.Reader
	room int // bytes still to be kept
	kept bytes.Buffer
	size int64 // bytes seen
}

func (c *capture) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.size += int64(n)
	part := p[:min(n, c.room)]
	c.kept.Write(part)
	c.room -= len(part)
	return n, err
}

// more reports whether something went through that was not kept.
func (c *capture) more() bool { return c.size > int64(c.kept.Len()) }
