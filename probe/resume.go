package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// maxResumes is how often an event stream that ended without the answer is taken up again.
const maxResumes = 5

// retryAfterEnd is how long to wait before that when the server does not say: long enough for one that is restarting, and
// short against the time of a check.
const retryAfterEnd = time.Second

// resumable reports whether an event stream came to an orderly end before the answer and may be taken up again where it
// ended: a server of the older era may close a stream to be called back (MCP 2025-11-25, transports, "Sending Messages to
// the Server"). In the modern era a stream without an answer is a request that is lost.
func (c *conversation) resumable(q question, r *reading) bool {
	ended, ok := errors.AsType[*problem](r.bad)
	return q.mcp && q.peer.era != EraModern && ok && ended.class == ClassSSENoResponse && !r.greeted && r.lastID != ""
}

// resume takes up an event stream after its last event, as often as the server closes it, and returns what was read in the
// end. It is part of the step whose answer is missing.
func (c *conversation) resume(ctx context.Context, q question, r *reading, watch *stopwatch) *reading {
	wait := retryAfterEnd
	for range maxResumes {
		r.finish()
		r.finish = func() {}
		if r.retry > 0 {
			wait = r.retry
		}
		watch.thaw()
		if !c.pause(ctx, wait) {
			r.bad = noResponse("and asked for %s more, which the check does not have", inWords(wait))
			break
		}
		next, status := c.readOn(ctx, q, r.lastID, watch)
		if next == nil {
			r.bad = noResponse("and could not be taken up again%s", after(status))
			break
		}
		next.size += r.size
		r = next
		if !c.resumable(q, r) {
			break
		}
	}
	watch.freeze()
	return r
}

func noResponse(format string, args ...any) *problem {
	return &problem{class: ClassSSENoResponse, message: "the event stream ended without an answer, " + fmt.Sprintf(format, args...)}
}

// inSession returns q as it is asked within the session that its answer has just opened, if any.
func (q question) inSession(opened http.Header) question {
	if id := opened.Get("Mcp-Session-Id"); q.peer.session == "" && sendable(id) {
		q.peer.session = id
	}
	return q
}

// pause waits, and reports false without having waited where the check would be over by then.
func (c *conversation) pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// readOn asks for the events after one, and reads as far as the answer. It returns nil when they are not to be had, with
// the status that said so, if any.
func (c *conversation) readOn(ctx context.Context, q question, lastID string, watch *stopwatch) (r *reading, status string) {
	get := question{
		step: q.step, method: http.MethodGet, bare: true, mcp: true, peer: q.peer,
		header: http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {lastID}},
	}
	ctx, cancel := context.WithCancel(ctx)
	build := func(ctx context.Context) (*http.Request, error) { return c.request(ctx, get, nil) }
	resp, err := c.line.roundTrip(ctx, ctx, build, watch, func(req *http.Request) { //nolint:bodyclose // finish closes it
		c.transcript.sent(q.step, time.Since(c.started), req, nil)
	})
	if err != nil {
		cancel()
		return nil, ""
	}
	if resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream" {
		return c.read(cancel, q, resp, watch), ""
	}
	c.read(cancel, get, resp, watch).finish()
	return nil, statusWords(resp.StatusCode)
}
