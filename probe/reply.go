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
//	the status speaks           bot wall, 401, 403, 402, 429, 421, 451: even a JSON-RPC error in the body is its explanation
//	a JSON-RPC error            rpc_error with its code, whatever the status
//	another 3xx, 4xx, 5xx       http_status
//	the body                    cut short, too large, no JSON, no envelope, an answer to something else
func (c *conversation) judge(ctx context.Context, q question, a *answer, r *reading, id string, watch *stopwatch) {
	if q.notify || q.bare {
		c.judgeAside(q, a, r)
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

// judgeAside judges what needs no answer: a notification, the end of a session. MCP has servers that answer a
// notification with anything; elsewhere an error in JSON-RPC means that it was refused.
func (c *conversation) judgeAside(q question, a *answer, r *reading) {
	a.words = bodyWords(r.body)
	if !q.notify || q.mcp || len(trimSpace(r.body)) == 0 {
		a.problem = c.judgeStatus(q, a, r)
		return
	}
	message := trimSpace(r.body)
	if list, _ := items(message, 1); len(list) > 0 {
		message = list[0] // to a batch of nothing but notifications
	}
	envelope, err := readEnvelope(message, false)
	if err == nil && !envelope.call {
		c.spokeRPC, r.found, a.rpc = true, true, envelope.err
	}
	if p := c.statusSpeaks(q, a, r); p != nil {
		a.problem = p
		return
	}
	if a.rpc != nil {
		a.problem = c.rpcProblem(a.rpc)
		return
	}
	if a.problem = c.judgeStatus(q, a, r); a.problem == nil && r.found {
		c.warn(q.step, ClassInvalidEnvelope, 0, "a notification was answered with a result")
	}
}

// readAnswer takes the JSON-RPC response out of what was read.
func (c *conversation) readAnswer(q question, a *answer, r *reading, id string) {
	if !r.found && r.bad == nil {
		envelope, err := readEnvelope(r.body, q.mcp)
		r.envelope, r.bad, r.found = envelope, err, err == nil
	}
	if !r.found {
		if loose, err := readEnvelope(r.body, false); q.mcp && err == nil && !loose.call && !loose.plain {
			c.spokeRPC = true // JSON-RPC of a kind that MCP does not allow
		}
		return
	}
	if r.envelope.call {
		r.bad, r.found = notRPC("a request of the server's own in place of a response"), false
		return
	}
	if r.envelope.plain && a.status >= http.StatusBadRequest {
		r.bad, r.found = notRPC("an error that is not one of JSON-RPC"), false // it explains the status
		return
	}
	c.spokeRPC = true
	// With one request on a connection of HTTP, an answer that names none can be to no other. One that names another may
	// come from a cache, and null is for those that could not read the request.
	nameless := r.envelope.id == nil && (q.noID || a.status != 0 && !q.mcp && r.envelope.result != nil)
	a.mine = nameless || r.envelope.answers(id)
	a.result, a.rpc = r.envelope.result, r.envelope.err
	if !a.mine {
		r.bad = &problem{class: ClassIDMismatch, message: fmt.Sprintf("asked with id %q, answered with %s", id, idWords(r.envelope)) + errorWords(a.rpc)}
	}
	if a.result != nil && q.mcp && r.bad == nil && typeOf(a.result) != "object" {
		a.result, r.bad = nil, notRPC("the result is not an object but %s", withArticle(typeOf(a.result)))
	}
}

// errorWords says which error came instead; nothing when none did.
func errorWords(e *rpcError) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(" and error %d%s", e.Code, after(tidy(e.Message, 200)))
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
	switch {
	case !a.mine && !r.envelope.anonymous():
		c.warn(q.step, ClassIDMismatch, 0, "an error with %s", idWords(r.envelope))
	case a.result != nil && r.envelope.id == nil && !q.noID:
		c.warn(q.step, ClassIDMismatch, 0, "a result without an id")
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

// problemOf reads an error that no family has a table for. The code is told as it came; what it means is taken from codes
// that are HTTP statuses in disguise, and from words that servers use for refusals.
func (c *conversation) problemOf(e *rpcError) *problem {
	message := e.Message
	if message == "" {
		message = "an error without a message"
	}
	words := tidy(dataWords(e.Data), 200)
	if words != "" && words != "{}" && !strings.Contains(message, words) {
		message = strings.TrimRight(message, ". ") + ": " + words // many say the same in each message, and what is wrong here
	}
	class := ClassRPCError
	switch {
	case e.Code == http.StatusTooManyRequests, e.Code == http.StatusPaymentRequired, quotaWords(e.Message):
		class = ClassRateLimited
	case e.Code == http.StatusForbidden && c.target.hasCredentials():
		class = ClassAuthForbidden
	case e.Code == http.StatusUnauthorized, e.Code == http.StatusForbidden, e.Code == codeA2AUnauthorized, authWords(e.Message), authWords(words):
		class = ClassAuthRequired
		if c.target.hasCredentials() {
			class = ClassCredentialRejected
		}
	}
	return &problem{class, e.Code, message}
}

// codeA2AUnauthorized is what the Go SDK of A2A answers without credentials.
const codeA2AUnauthorized = -31401

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
	packed := tidy(a.header.Get("Content-Encoding"), 40)
	switch body := trimSpace(r.body); {
	case bad.class == ClassInvalidJSON && len(body) > 0 && packed != "" && !strings.EqualFold(packed, "identity") && !strings.EqualFold(packed, "gzip"):
		return &problem{ClassContentType, a.status, "compressed with " + packed + " although only identity was offered"}
	case bad.class == ClassInvalidJSON && len(body) == 0 && r.media != "text/event-stream":
		return &problem{bad.class, a.status, statusWords(a.status) + " with an empty body in place of an answer: is JSON-RPC spoken at this path?"}
	case bad.class == ClassInvalidJSON && !jsonMedia(r.media) && r.media != "text/event-stream":
		return &problem{ClassContentType, a.status, fmt.Sprintf("answered with %s in place of JSON-RPC%s", orNone(r.media), after(a.words))}
	case bad.class == ClassInvalidJSON && a.words != "" && body[0] != '{' && body[0] != '[':
		return &problem{bad.class, a.status, bad.message + after(clip(a.words, 80))}
	case strings.HasPrefix(bad.message, neither) && (quotaWords(a.words) || authWords(a.words)):
		return c.problemOf(&rpcError{Code: a.status, Message: a.words})
	case strings.HasPrefix(bad.message, neither) && a.words != "":
		return &problem{bad.class, a.status, bad.message + after(clip(a.words, 200))}
	default:
		return &problem{bad.class, a.status, bad.message}
	}
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
	text := string(body[:min(len(body), maxPage)])
	if _, rest := cutFold(text, "<title"); rest != "" {
		_, rest, _ = strings.Cut(rest, ">")
		title, _ := cutFold(rest, "</title")
		return tidy(title, 200)
	}
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return ""
	}
	return tidy(text, 200)
}

// maxPage bounds how much of a page is searched for its title, in bytes.
const maxPage = 64 << 10

func objectWords(o object) string {
	if inner, ok := o.object("error"); ok {
		if words := objectWords(inner); words != "" {
			return words
		}
	}
	for _, name := range []string{"message", "error_description", "detail", "error", "title", "Error", "msg"} {
		if words := o.text(name); words != "" {
			return tidy(words, 200)
		}
	}
	for _, name := range []string{"errors", "detail"} {
		list, _ := o.get(name)
		if first, _ := items(list, 1); len(first) > 0 {
			if inner, err := readObject(first[0]); err == nil {
				return objectWords(inner)
			}
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
