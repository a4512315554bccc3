package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// judge decides what an answer means, from the lowest layer that is wrong:
//
//	a result with our id        the step went well, whatever status or type it came with (they become warnings)
//	the status speaks           bot wall, 401, 403, 402, 429, 421: even a JSON-RPC error in the body is its explanation
//	a JSON-RPC error            rpc_error with its code, whatever the status
//	another 3xx, 4xx, 5xx       http_status
//	the body                    cut short, too large, no JSON, no envelope, an answer to something else
func (c *conversation) judge(ctx context.Context, q question, a *answer, r *reading, id string, watch *stopwatch) {
	if q.notify || q.bare {
		a.words = bodyWords(r.body)
		a.problem = c.judgeStatus(q, a, r)
		return
	}
	c.readAnswer(q, a, r, id)
	if a.result != nil && a.mine {
		c.noteOddities(q, a, r)
		return
	}
	a.words = bodyWords(r.body)
	if p := c.statusSpeaks(q, a, r); p != nil {
		a.problem = p
		return
	}
	if a.rpc != nil && (a.mine || r.envelope.anonymous() || a.status >= 400) {
		c.noteOddities(q, a, r)
		a.problem = c.rpcProblem(a.rpc)
		return
	}
	if p := c.judgeStatus(q, a, r); p != nil {
		a.problem = p
		return
	}
	a.problem = c.judgeBody(ctx, a, r, watch)
}

// readAnswer takes the JSON-RPC response out of what was read.
func (c *conversation) readAnswer(q question, a *answer, r *reading, id string) {
	if !r.found && r.bad == nil {
		envelope, err := readEnvelope(r.body, q.mcp)
		r.envelope, r.bad, r.found = envelope, err, err == nil
	}
	if !r.found {
		return
	}
	if r.envelope.call {
		r.bad, r.found = notRPC("a request of the server's own in place of a response"), false
		return
	}
	c.spokeRPC = true
	a.mine = r.envelope.answers(id) || q.noID && r.envelope.id == nil
	a.result, a.rpc = r.envelope.result, r.envelope.err
	if !a.mine {
		r.bad = &problem{class: ClassIDMismatch, message: fmt.Sprintf("asked with id %q, answered with %s", id, idWords(r.envelope))}
	}
	if a.result != nil && q.mcp && r.bad == nil {
		if _, err := readObject(a.result); err != nil {
			a.result, r.bad = nil, notRPC("the result is not an object")
		}
	}
}

func idWords(e envelope) string {
	if e.id == nil {
		return "none"
	}
	return "id " + clip(string(e.id), 80)
}

// noteOddities records what is wrong around an answer that can be understood all the same.
func (c *conversation) noteOddities(q question, a *answer, r *reading) {
	for _, note := range r.envelope.notes {
		c.warn(q.step, ClassInvalidEnvelope, 0, "%s", note)
	}
	if !a.mine && !r.envelope.anonymous() {
		c.warn(q.step, ClassIDMismatch, 0, "an error with %s", idWords(r.envelope))
	}
	if !jsonMedia(r.media) && r.media != "text/event-stream" {
		c.warn(q.step, ClassContentType, 0, "JSON-RPC sent as %s", orNone(r.media))
	}
	if a.result != nil && a.status != http.StatusOK && a.status != 0 {
		c.warn(q.step, ClassHTTPStatus, a.status, "a result with status %s", statusWords(a.status))
	}
}

func jsonMedia(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json") || media == "application/json-rpc"
}

func orNone(media string) string {
	if media == "" {
		return "no Content-Type"
	}
	return media
}

func rpcProblem(e *rpcError) *problem {
	class := ClassRPCError
	if e.Code == http.StatusTooManyRequests || quotaWords(e.Message) {
		class = ClassRateLimited
	}
	message := e.Message
	if message == "" {
		message = "an error without a message"
	}
	return &problem{class, e.Code, message}
}

// judgeBody explains an answer with a good status that holds no response to our request.
func (c *conversation) judgeBody(ctx context.Context, a *answer, r *reading, watch *stopwatch) *problem {
	bad, ok := errors.AsType[*badMessage](r.bad)
	if !ok {
		p := c.explainBody(ctx, r.bad, watch)
		if p.code == 0 && p.class != ClassTimeout && p.class != ClassProbeError {
			p.code = a.status
		}
		return p
	}
	if bad.class == ClassInvalidJSON && len(r.body) > 0 && !jsonMedia(r.media) && r.media != "text/event-stream" {
		return &problem{ClassContentType, a.status, fmt.Sprintf("answered with %s in place of JSON-RPC%s", orNone(r.media), after(a.words))}
	}
	return &problem{bad.class, a.status, bad.message}
}

// after puts words behind a colon when there are any.
func after(words string) string {
	if words == "" {
		return ""
	}
	return ": " + words
}

// bodyWords returns what a body that is not JSON-RPC has to say: the usual members of a JSON error, or its plain text.
// Of a page it returns the title.
func bodyWords(body []byte) string {
	if object, err := readObject(body); err == nil {
		return objectWords(object)
	}
	text := string(body)
	if strings.Contains(text, "<") {
		_, rest := cutFold(text, "<title")
		_, rest, _ = strings.Cut(rest, ">")
		title, _ := cutFold(rest, "</title")
		return tidy(title, 200)
	}
	return tidy(text, 200)
}

func objectWords(o object) string {
	if inner, ok := o.object("error"); ok {
		if words := objectWords(inner); words != "" {
			return words
		}
	}
	for _, name := range []string{"message", "error_description", "detail", "error", "title"} {
		if words := o.text(name); words != "" {
			return tidy(words, 200)
		}
	}
	return ""
}

// cutFold is strings.Cut for ASCII separators of either case.
func cutFold(s, sep string) (before, after string) {
	for i := 0; i+len(sep) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(sep)], sep) {
			return s[:i], s[i+len(sep):]
		}
	}
	return s, ""
}

// supportedVersions returns the versions that an error lists in its data.
func (e *rpcError) supportedVersions() []string {
	data, err := readObject(e.Data)
	if err != nil {
		return nil
	}
	raw, _ := data.get("supported")
	return versionsIn(raw)
}
