package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"golang.org/x/net/http/httpguts"
)

// framer takes messages apart on a connection that only carries bytes. What it returns does not depend on the pieces in
// which the bytes come.
type framer interface {
	// next returns the next message as it came. Its errors are io.EOF between two messages, io.ErrUnexpectedEOF in the
	// middle of one, errBodyTooLarge, *garbage, a *problem, or what reading failed with.
	next() ([]byte, error)
	// oddity returns what was wrong around the message before in a way that leaves it readable; empty for nothing.
	oddity() string
}

// newFramer reads what in carries under framing f, each message at most limit bytes. A pollution makes it pass over what
// is no message, as on the standard output of a process; nil takes that for an error.
func newFramer(in io.Reader, f Framing, limit int64, p *pollution) framer {
	if f == FramingHeader {
		return &headerFramer{in: bufio.NewReaderSize(in, maxMessageHeader), limit: limit, pollution: p}
	}
	return &splitter{in: bufio.NewReader(in), limit: limit, pollution: p}
}

// frame returns message as f sends it.
func (f Framing) frame(message []byte) []byte {
	if f == FramingHeader {
		return fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(message), message)
	}
	return append(bytes.Clone(message), '\n')
}

// framing returns how the messages of this check are told apart.
func (c *conversation) framing() Framing {
	switch {
	case c.target.Options.Framing != "":
		return c.target.Options.Framing
	case c.target.Kind == "lsp":
		return FramingHeader
	default:
		return FramingLine
	}
}

// garbage is what came where a message should begin, as far as it is there already.
type garbage struct{ text []byte }

func (g *garbage) Error() string { return "what came is no message: " + tidy(string(g.text), 100) }

// maxGarbage bounds how much of what is no message is kept to be shown.
const maxGarbage = 120

// Bounds on what a process may write besides messages: a build log is far below them, a process that never stops is not.
const maxPollution = 1 << 20

// pollution is what came between messages.
type pollution struct {
	lines int
	size  int64
	first []byte // line, as much as is worth showing
}

// line counts a line that is no message, and fails when there are too many.
func (p *pollution) line(text []byte, size int64) error {
	text = bytes.TrimSpace(text)
	if len(text) > 0 {
		p.lines++
		if p.first == nil {
			p.first = bytes.Clone(text[:min(len(text), maxGarbage)])
		}
	}
	p.size += size
	if p.size > maxPollution {
		return &problem{class: ClassFraming, message: fmt.Sprintf("more than %d bytes that are no messages, beginning with: %s", maxPollution, p.first)}
	}
	return nil
}

// splitter reads objects, and arrays of them, one per line or right behind each other. It looks at their structure only:
// whether what is between the brackets makes sense is for the reader of the message to say.
type splitter struct {
	in        *bufio.Reader
	limit     int64
	pollution *pollution
	again     []byte // to be read before in: what a false beginning had swallowed
	odd       string
}

func (s *splitter) oddity() string {
	odd := s.odd
	s.odd = ""
	return odd
}

func (s *splitter) next() ([]byte, error) {
	for {
		first, err := s.skipBlank()
		if err != nil {
			return nil, err
		}
		message, err := s.value(first)
		bad, wrong := errors.AsType[*garbage](err)
		switch {
		case wrong && s.pollution == nil:
			return nil, s.complete(bad)
		case wrong:
			err = s.skip(bad.text)
		case err != nil:
			return nil, err
		case s.pollution != nil && !speaksRPC(message):
			err = s.pollution.line(message, int64(len(message)))
		default:
			if s.pollution != nil && bytes.IndexByte(message, '\n') >= 0 {
				s.odd = "a message spans several lines"
			}
			return message, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// readByte is ReadByte of what is to be read again and then of in.
func (s *splitter) readByte() (byte, error) {
	if len(s.again) == 0 {
		return s.in.ReadByte()
	}
	b := s.again[0]
	s.again = s.again[1:]
	return b, nil
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// skipBlank returns the first byte that may mean something. White space is free, in any amount: it ends with the time of
// the check.
func (s *splitter) skipBlank() (byte, error) {
	for {
		b, err := s.readByte()
		if err != nil {
			return 0, err
		}
		switch {
		case b == ' ' || b == '\n' || b == '\r' || b == '\t':
		case b == byteOrderMark[0] && s.skipMark():
			s.odd = "a byte order mark before a message"
		default:
			return b, nil
		}
	}
}

// skipMark passes over the rest of a byte order mark, some of which other programs write before all else.
func (s *splitter) skipMark() bool {
	if len(s.again) > 0 {
		return false
	}
	rest, _ := s.in.Peek(len(byteOrderMark) - 1) // what is not there is no mark
	if !bytes.Equal(rest, byteOrderMark[1:]) {
		return false
	}
	_, _ = s.in.Discard(len(rest)) // cannot fail: they were peeked at
	return true
}

// value reads one object or array, of which the first byte is there. What turns out to be none comes back as *garbage.
func (s *splitter) value(first byte) ([]byte, error) {
	message := []byte{first}
	var shape shape
	state := shape.step(first)
	for {
		switch {
		case state == shapeWrong:
			return nil, &garbage{message}
		case state == shapeDone:
			return message, nil
		case int64(len(message)) >= s.limit:
			return nil, errBodyTooLarge
		}
		b, err := s.readByte()
		if err != nil {
			return nil, unexpected(err)
		}
		message = append(message, b)
		state = shape.step(b)
	}
}

// skip passes over the line on which something began that is no message. What has been read of the lines behind it is
// read again: a message may begin there.
func (s *splitter) skip(text []byte) error {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		s.again = slices.Concat(text[i+1:], s.again)
		return s.pollution.line(text[:i], int64(len(text))) // the whole counts, so that nobody makes us read in circles
	}
	size := int64(len(text))
	for {
		b, err := s.readByte()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || b == '\n' {
			return s.pollution.line(text, size)
		}
		size++
		if len(text) < maxGarbage {
			text = append(text, b)
		}
		if size > maxPollution {
			return s.pollution.line(text, size)
		}
	}
}

// complete adds to garbage what has come behind it. It waits for nothing but the few bytes that
// tell an HTTP server.
func (s *splitter) complete(g *garbage) error {
	const http = "HTTP/"
	wanted := len(http) - len(g.text)
	if len(g.text) < len(http) && http[:len(g.text)] == string(g.text) {
		if more, _ := s.in.Peek(wanted); len(more) == wanted {
			g.text = append(g.text, more...)
			_, _ = s.in.Discard(wanted) // cannot fail: they were peeked at
		}
	}
	more, _ := s.in.Peek(min(s.in.Buffered(), maxGarbage))
	g.text = append(g.text, more...)
	return g
}

// speaksRPC reports whether an object has a member of JSON-RPC, or is an array: loggers write JSON, too.
func speaksRPC(message []byte) bool {
	if bytes.HasPrefix(message, []byte("[")) {
		return true
	}
	object, err := readObject(message)
	if err != nil {
		return true // for the reader to say what is wrong
	}
	for _, name := range []string{"jsonrpc", "result", "error", "method"} {
		if _, ok := object.get(name); ok {
			return true
		}
	}
	return false
}

// maxNesting is the nesting that encoding/json reads.
const maxNesting = 10_000

// shape follows the brackets, strings and separators of one JSON object or array, byte by byte.
type shape struct {
	open  []byte // the brackets that are open
	state shapeState
	key   bool // the string in hand is a member's name
}

type shapeState byte

const (
	shapeStart  shapeState = iota // nothing seen: an opening bracket is due
	shapeMember                   // a member's name or the end of the object
	shapeName                     // a member's name
	shapeColon
	shapeItem  // a value or the end of the array
	shapeValue // a value
	shapeString
	shapeEscape
	shapeScalar // in a number, true, false or null
	shapeComma  // a comma or the end of what is open
	shapeDone
	shapeWrong
)

// step takes one byte and returns the state after it.
func (s *shape) step(b byte) shapeState {
	s.state = s.after(b)
	return s.state
}

func (s *shape) after(b byte) shapeState {
	switch s.state {
	case shapeString:
		return s.inString(b)
	case shapeEscape:
		return shapeString
	case shapeScalar:
		if scalarByte(b) {
			return shapeScalar
		}
		s.state = shapeComma
	}
	if b == ' ' || b == '\n' || b == '\r' || b == '\t' {
		return s.state
	}
	switch {
	case s.state == shapeComma:
		return s.separator(b)
	case s.state == shapeColon && b == ':':
		return shapeValue
	case (s.state == shapeMember || s.state == shapeName) && b == '"':
		s.key = true
		return shapeString
	case s.state == shapeMember && b == '}', s.state == shapeItem && b == ']':
		return s.end()
	case s.state == shapeStart, s.state == shapeItem, s.state == shapeValue:
		return s.value(b)
	default:
		return shapeWrong
	}
}

// value begins a value. A message is an object, or an array of objects.
func (s *shape) value(b byte) shapeState {
	switch {
	case b != '{' && (s.state == shapeItem && len(s.open) == 1 || len(s.open) == 0 && b != '['):
		return shapeWrong
	case b == '{' || b == '[':
		if len(s.open) == maxNesting {
			return shapeWrong
		}
		s.open = append(s.open, b)
		if b == '{' {
			return shapeMember
		}
		return shapeItem
	case b == '"':
		s.key = false
		return shapeString
	case scalarByte(b):
		return shapeScalar
	default:
		return shapeWrong
	}
}

func (s *shape) inString(b byte) shapeState {
	switch {
	case b == '\\':
		return shapeEscape
	case b == '"' && s.key:
		return shapeColon
	case b == '"':
		return shapeComma
	case b < ' ':
		return shapeWrong
	default:
		return shapeString
	}
}

func (s *shape) separator(b byte) shapeState {
	inner := s.open[len(s.open)-1]
	switch {
	case b == ',' && inner == '{':
		return shapeName
	case b == ',':
		return shapeValue
	case b == '}' && inner == '{', b == ']' && inner == '[':
		return s.end()
	default:
		return shapeWrong
	}
}

// end closes the innermost bracket.
func (s *shape) end() shapeState {
	s.open = s.open[:len(s.open)-1]
	if len(s.open) == 0 {
		return shapeDone
	}
	return shapeComma
}

func scalarByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' || b == '-' || b == '.'
}

// maxMessageHeader bounds the header before a message: LSP knows two fields of some fifty bytes together.
const maxMessageHeader = 8 << 10

// headerFramer reads messages with a header before each, as in LSP ("Base Protocol"): fields in any order and case, of
// which only Content-Length counts, an empty line, and the message.
type headerFramer struct {
	in        *bufio.Reader
	limit     int64
	pollution *pollution
	odd       string
}

func (h *headerFramer) oddity() string {
	odd := h.odd
	h.odd = ""
	return odd
}

func (h *headerFramer) next() ([]byte, error) {
	length, err := h.header()
	if err != nil {
		return nil, err
	}
	if length > h.limit {
		return nil, errBodyTooLarge
	}
	var message bytes.Buffer // grows with what comes, not with what is announced
	if _, err := io.CopyN(&message, h.in, length); err != nil {
		return nil, unexpected(err)
	}
	return message.Bytes(), nil
}

// unexpected turns an end of the stream into one in the middle of a message.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// header reads up to the empty line and returns the length of the message.
func (h *headerFramer) header() (int64, error) {
	length, fields, size := int64(-1), 0, 0
	for {
		line, bare, err := h.line(fields == 0)
		if err != nil {
			return 0, err
		}
		size += len(line)
		name, value, ok := bytes.Cut(line, []byte(":"))
		switch {
		case size > maxMessageHeader:
			return 0, framingProblem("a header of more than %d bytes", maxMessageHeader)
		case len(line) == 0 && length >= 0:
			return length, nil
		case len(line) == 0 && fields == 0:
			h.odd = "an empty line before a header"
		case len(line) == 0 && h.pollution == nil:
			return 0, framingProblem("a header without Content-Length")
		case len(line) == 0: // lines of a log that looked like a header
			err = h.pollution.line([]byte("an empty line behind what is no header"), int64(size))
			fields, size = 0, 0
		case !ok || !httpguts.ValidHeaderFieldName(string(name)):
			err = h.strange(line)
			if fields == 0 {
				size = 0
			}
		case bytes.EqualFold(name, []byte("Content-Length")):
			fields++
			if bare {
				h.odd = "header lines end with a line feed alone"
			}
			length, err = contentLength(bytes.TrimSpace(value), length)
		default:
			fields++
		}
		if err != nil {
			return 0, err
		}
	}
}

// strange deals with a line that is no header field.
func (h *headerFramer) strange(line []byte) error {
	if h.pollution == nil {
		return &garbage{bytes.Clone(line)}
	}
	return h.pollution.line(line, int64(len(line))+1)
}

// line reads one line without its end, and reports whether that was a bare line feed. The first one of a header may be
// missing altogether.
func (h *headerFramer) line(first bool) (line []byte, bare bool, err error) {
	if b, err := h.in.Peek(1); first && err == nil && b[0] == '{' && h.pollution == nil {
		return nil, false, framingProblem(`a message without a header: its framing may be "%s"`, FramingLine)
	}
	line, err = h.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) && h.pollution != nil:
		return line, false, nil // the beginning of a long line of a log
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, false, framingProblem("a header of more than %d bytes", maxMessageHeader)
	case errors.Is(err, io.EOF) && first && h.pollution != nil:
		return nil, false, cmp.Or(h.pollution.line(line, int64(len(line))), io.EOF)
	case errors.Is(err, io.EOF) && first && len(line) > 0:
		return nil, false, &garbage{bytes.Clone(line)}
	case errors.Is(err, io.EOF) && first:
		return nil, false, io.EOF
	case err != nil:
		return nil, false, unexpected(err)
	}
	line = line[:len(line)-1]
	line, crlf := bytes.CutSuffix(line, []byte("\r"))
	return line, !crlf, nil
}

// contentLength reads a length; before is the one that the header gave already, negative for none.
func contentLength(value []byte, before int64) (int64, error) {
	n, err := strconv.ParseUint(string(value), 10, 63)
	if err != nil {
		return 0, framingProblem("Content-Length is no length: %s", tidy(string(value), 40))
	}
	if before >= 0 && int64(n) != before {
		return 0, framingProblem("a header with two lengths, %d and %d", before, n)
	}
	return int64(n), nil
}

func framingProblem(format string, args ...any) *problem {
	return &problem{class: ClassFraming, message: fmt.Sprintf(format, args...)}
}
