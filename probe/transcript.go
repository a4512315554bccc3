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
	"unicode/utf8"
)

// transcript keeps every message of a check when the target asks for it. Most are never looked at, so a message is put into
// words when the check is over and its transcript is wanted.
type transcript struct {
	on       bool
	keep     int // bytes of a body
	secrets  *Redactor
	messages []func() Message
	size     int // bytes that messages hold
}

// Bounds on one transcript: a server may send what nobody asked for as fast as it can until the time is up.
const (
	maxTranscript = 4 << 20 // bytes, after which no further message is kept
	maxMessages   = 1000
)

// full reports whether no further message is kept.
func (t *transcript) full() bool { return t.size >= maxTranscript || len(t.messages) >= maxMessages }

// sent keeps a request with its body. The caller must change neither afterwards.
func (t *transcript) sent(step string, at time.Duration, req *http.Request, body []byte) {
	t.add(req.Header, body, func() Message {
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
		return t.words(step, true, at, head.String(), body, false)
	})
}

// received keeps a response with as much of its body as was captured; more says that there was more of it. The caller must
// not change body afterwards.
func (t *transcript) received(step string, at time.Duration, resp *http.Response, body []byte, more bool) {
	header, proto, status := resp.Header, resp.Proto, resp.Status // the response holds its connection
	t.add(header, body, func() Message {
		var head strings.Builder
		fmt.Fprintf(&head, "%s %s\n", proto, t.secrets.Cut(visible(status)))
		t.writeHeader(&head, header)
		return t.words(step, false, at, head.String(), body, more)
	})
}

// message keeps one message of a stream, which has no header lines.
func (t *transcript) message(step string, sent bool, at time.Duration, body []byte) {
	if !t.on || t.full() {
		return
	}
	kept := bytes.Clone(body[:min(len(body), t.room())]) // the reader of a stream may use its memory again
	more := len(kept) < len(body)
	t.add(nil, kept, func() Message { return t.words(step, sent, at, "", kept, more) })
}

// add keeps a message that word puts into words.
func (t *transcript) add(header http.Header, body []byte, word func() Message) {
	if !t.on || t.full() {
		return
	}
	t.messages = append(t.messages, word)
	t.size += len(body)
	for name, values := range header {
		for _, value := range values {
			t.size += len(name) + len(value)
		}
	}
}

// all returns the messages in words.
func (t *transcript) all() []Message {
	var all []Message
	for _, word := range t.messages {
		all = append(all, word())
	}
	return all
}

func (t *transcript) words(step string, sent bool, at time.Duration, head string, body []byte, more bool) Message {
	text := t.secrets.Cut(visible(strings.ToValidUTF8(string(body), "�")))
	if len(text) > t.keep {
		text, more = strings.ToValidUTF8(text[:t.keep], ""), true
	}
	return Message{
		Step: step, Sent: sent, At: at, Head: printable(strings.TrimSuffix(head, "\n")), Body: printable(text), Clipped: more,
	}
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
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s // no ASCII character is invisible, and most text is ASCII
	}
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
