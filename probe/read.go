package probe

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// grace is how long a server may take to end its stream after the answer, before that is called leaving it open. The
// wait is not part of any latency; it saves a new connection for the next step.
const grace = 100 * time.Millisecond

// reading is a body as far as it was read.
type reading struct {
	media    string   // of the Content-Type, lower case, without parameters
	body     []byte   // of a body that is not an event stream
	envelope envelope // the answer, when found is true
	found    bool
	bad      error // why there is no answer: a *badMessage, *problem or the error of the body
	size     int64
	finish   func() // lets go of the body; takes up to grace

	greeted bool          // the event stream began as one of HTTP+SSE
	lastID  string        // of the last event; where an event stream may be resumed
	retry   time.Duration // when it may be; zero when the server did not say
}

var errBodyTooLarge = errors.New("body larger than the limit")

// read reads the answer to q: an event stream until its first response, any other body to its end.
func (c *conversation) read(cancel context.CancelFunc, q question, resp *http.Response, watch *stopwatch) *reading {
	watch.enterBody()
	counted := &capture{Reader: resp.Body, room: c.transcript.room()}
	r := &reading{media: mediaType(resp.Header)}
	complete := false
	at := time.Since(c.started)
	r.finish = func() {
		if !complete && r.found {
			complete = drain(resp.Body, cancel)
			if !complete {
				c.warn(q.step, ClassStreamNotClosed, 0, "the event stream stayed open after the answer")
			}
		}
		cancel()
		c.line.done(resp, complete)
	}
	stream := r.media == "text/event-stream" && !q.notify && !q.bare && !q.plain
	var in io.Reader = counted
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		c.warn(q.step, ClassContentType, resp.StatusCode, "compressed with gzip although only identity was offered")
		in = &lazyGzip{in: io.LimitReader(counted, c.limits.ResponseBytes)}
	}
	switch {
	case (q.notify || q.bare) && !q.plain:
		complete = readAside(in, r, resp.StatusCode, cancel)
	case stream:
		c.readStream(in, r, q.mcp)
	default:
		r.body, r.bad = readBounded(in, c.limits.ResponseBytes)
		complete = r.bad == nil
	}
	r.size = counted.size
	watch.freeze()
	c.transcript.received(q.step, at, resp, counted.kept.Bytes(), counted.more())
	return r
}

// readAside reads a body that decides nothing, unless to tell why a status is bad, without waiting for one that does not
// end. It reports whether it came to its end.
func readAside(in io.Reader, r *reading, status int, cancel context.CancelFunc) bool {
	patience := grace
	if status >= 300 {
		patience = time.Second
	}
	stop := time.AfterFunc(patience, cancel)
	defer stop.Stop()
	body, err := readBounded(in, 64<<10)
	r.body = body
	return err == nil
}

// maxEvents bounds how many events are passed over in search of the answer.
const maxEvents = 10_000

// readStream reads events until the first response: only one request is under way, so that a response with another id is
// a mistake and not worth waiting any longer. What is not a response (notifications, requests of the server) and events
// without data are passed over; so is what is not JSON, unless nothing better comes.
func (c *conversation) readStream(in io.Reader, r *reading, strict bool) {
	limited := &io.LimitedReader{R: in, N: c.limits.ResponseBytes}
	events := newEventReader(limited, c.limits.EventBytes)
	var garbage error
	defer func() { r.lastID, r.retry = events.lastID, events.retry }()
	for passed := 0; ; passed++ {
		if passed == maxEvents {
			r.bad = &problem{class: ClassSSEFraming, message: fmt.Sprintf("no answer within %d events", maxEvents)}
			return
		}
		e, err := events.next()
		if err != nil {
			r.bad = streamEnd(err, garbage, limited.N <= 0, events.unfinished())
			return
		}
		if strict && e.name == "endpoint" {
			r.greeted = true
			r.bad = &problem{class: ClassSSENoResponse, message: "a POST was answered with an endpoint event, as HTTP+SSE answers a GET"}
			return
		}
		if len(e.data) == 0 || e.name != "" && e.name != "message" {
			continue
		}
		envelope, err := readEnvelope(e.data, strict)
		if bad, ok := errors.AsType[*badMessage](err); ok {
			if bad.class == ClassInvalidEnvelope {
				r.bad = bad
				return
			}
			garbage = bad
			continue
		}
		if envelope.call {
			continue
		}
		r.envelope, r.found = envelope, true
		return
	}
}

// streamEnd says why a stream ended without an answer.
func streamEnd(err, garbage error, full, unfinished bool) error {
	switch {
	case errors.Is(err, errEventTooLarge):
		return &problem{class: ClassSSEFraming, message: "an event is larger than a probe is willing to read"}
	case full:
		return errBodyTooLarge
	case !errors.Is(err, io.EOF):
		return err
	case garbage != nil:
		return garbage
	case unfinished:
		return &problem{class: ClassSSEFraming, message: "the event stream ended in the middle of an event"}
	default:
		return &problem{class: ClassSSENoResponse, message: "the event stream ended without an answer"}
	}
}

// drain reads what is left of a body, for as long as grace, and reports whether it came to its end.
func drain(body io.Reader, cancel context.CancelFunc) bool {
	stop := time.AfterFunc(grace, cancel)
	defer stop.Stop()
	n, err := io.Copy(io.Discard, io.LimitReader(body, 256<<10))
	return err == nil && n < 256<<10
}

// readBounded reads all of r, at most limit bytes. What was read comes also with an error.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return body, err
	}
	if int64(len(body)) > limit {
		return body[:limit], errBodyTooLarge
	}
	return body, nil
}

// lazyGzip decompresses; it reads nothing before it is read.
type lazyGzip struct {
	in  io.Reader
	out *gzip.Reader
}

func (z *lazyGzip) Read(p []byte) (int, error) {
	if z.out == nil {
		out, err := gzip.NewReader(z.in)
		if err != nil {
			return 0, err
		}
		z.out = out
	}
	return z.out.Read(p)
}

func mediaType(h http.Header) string {
	value := h.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(value); err == nil {
		return media
	}
	media, _, _ := strings.Cut(value, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
