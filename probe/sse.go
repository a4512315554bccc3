package probe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"
)

// event is one event of an event stream.
type event struct {
	name string // empty means "message"
	data []byte
}

// eventReader reads an event stream by the grammar of the WHATWG HTML standard, §9.2: lines end with CR, LF or CRLF, a
// byte order mark may come first, a line without a colon is a field without a value, a line that begins with a colon is
// a comment, and an event that no blank line ends is discarded. It never waits for more than the end of an event.
type eventReader struct {
	in    *bufio.Reader
	limit int // bytes of one event, its comments included

	started bool
	afterCR bool // a LF that follows belongs to the line end before
	line    []byte
	size    int // of the event so far
	id      string
	name    string
	data    []byte
	hasData bool

	lastID string        // of the last event that was complete; where reading may be resumed
	retry  time.Duration // how long to wait before that; zero when the server did not say
}

var errEventTooLarge = errors.New("event larger than the limit")

func newEventReader(r io.Reader, limit int) *eventReader {
	return &eventReader{in: bufio.NewReaderSize(r, 1024), limit: limit} // an answer is small, and a body is buffered below
}

// next returns the next event, one with empty data included: servers send it first to tell its id. At the end of the
// stream the error is that of the underlying reader, io.EOF as a rule.
func (r *eventReader) next() (event, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return event{}, err
		}
		if !r.started {
			r.started = true
			line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
		}
		if len(line) > 0 {
			r.field(line)
			continue
		}
		e := event{name: r.name, data: bytes.TrimSuffix(r.data, []byte("\n"))}
		dispatch := r.hasData
		r.lastID = r.id
		r.size, r.name, r.data, r.hasData = 0, "", nil, false
		if dispatch {
			return e, nil
		}
	}
}

// unfinished reports whether the stream ended in the middle of an event.
func (r *eventReader) unfinished() bool { return r.hasData || len(r.line) > 0 }

// maxEventID bounds the id of an event, which goes out again in a header.
const maxEventID = 1024

// maxRetry bounds the time that a server may ask to wait before it is called again.
const maxRetry = time.Hour

// field takes in one line that is not blank. An id that cannot be sent back counts as none.
func (r *eventReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		r.data = append(append(r.data, value...), '\n')
		r.hasData = true
	case "event":
		r.name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			return // as the standard has it
		}
		r.id = ""
		if len(value) <= maxEventID && httpguts.ValidHeaderFieldValue(string(value)) {
			r.id = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
		}
	}
}

// readLine returns the next line without its end. The line is valid until the next call.
func (r *eventReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return nil, err
		}
		if b == '\n' && r.afterCR {
			r.afterCR = false
			continue
		}
		r.afterCR = b == '\r'
		if b == '\n' || b == '\r' {
			line := r.line
			r.line = r.line[:0]
			return line, nil
		}
		if r.size++; r.size > r.limit {
			return nil, errEventTooLarge
		}
		r.line = append(r.line, b)
	}
}
