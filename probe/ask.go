package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// question is one request to be sent.
type question struct {
	step   string        // its name in the Result
	method string        // JSON-RPC method, or the HTTP method of a question without a message
	params any           // nil leaves them out
	notify bool          // a notification: no answer is due beyond the status
	bare   bool          // no JSON-RPC message at all: DELETE of a session, GET of a document
	raw    []byte        // sent as it is in place of a message with method and params
	path   string        // where to ask, relative to the endpoint's URL; empty means there
	header http.Header   // set beside, or in place of, what every request carries
	plain  bool          // the answer is not JSON-RPC: it comes back as answer.body, and any status goes that does not speak for itself
	noID   bool          // an answer without an id will do
	mcp    bool          // MCP's headers and its strictness
	peer   peer          // what MCP's headers say; zero for the first request
	extra  http.Header   // more of MCP's headers: Mcp-Name and Mcp-Param-…
	within time.Duration // its own limit once there is a connection; zero means what is left of the check
	aside  bool          // does not count into Result.Duration
}

// answer is what came of a question.
type answer struct {
	step    int // index into Result.Steps
	status  int
	header  http.Header
	result  json.RawMessage // nil unless the endpoint answered with a result
	rpc     *rpcError       // nil unless the endpoint answered with a JSON-RPC error
	mine    bool            // the answer carries the id of the question
	words   string          // what a body that is not JSON-RPC says, in readable text
	body    []byte          // of the answer to a plain question
	greeted bool            // the answer to a POST was the beginning of an HTTP+SSE stream
	problem *problem        // nil when the step went well
	dialled bool            // a connection came about
}

// problem is why a step went wrong.
type problem struct {
	class   Class
	code    int
	message string
}

func (p *problem) Error() string { return string(p.class) + ": " + p.message }

// ask sends q, reads what it is answered and records the step.
func (c *conversation) ask(ctx context.Context, q question) answer {
	if c.overStream() && !q.bare {
		return c.askStream(ctx, q)
	}
	watch := newStopwatch()
	a, id, body := c.pose(q, watch)
	if a.problem != nil {
		return a
	}
	dialCtx, cancelDial := c.withDeadline(ctx)
	defer cancelDial()
	askCtx, cancel := context.WithCancelCause(dialCtx)
	defer cancel(nil)
	impatience := impatience{after: q.within, cancel: cancel}
	defer impatience.stop()

	resp, err := c.send(dialCtx, askCtx, q, body, watch, impatience.start) //nolint:bodyclose // finish, below, closes it
	if err != nil {
		a.problem, a.dialled = c.explain(askCtx, err, watch)
		c.record(q, &a, watch, int64(len(body)), 0)
		return a
	}
	a.dialled = true
	a.status, a.header = resp.StatusCode, resp.Header
	r := c.read(func() { cancel(nil) }, q, resp, watch)
	if c.resumable(q, r) {
		resumeCtx, cancelResume := context.WithCancel(dialCtx)
		defer cancelResume()
		askCtx, r = resumeCtx, c.resume(resumeCtx, q.inSession(a.header), r, watch)
	}
	a.greeted = r.greeted
	if q.plain {
		c.judgePlain(askCtx, q, &a, r, watch)
	} else {
		c.judge(askCtx, q, &a, r, id, watch)
	}
	c.record(q, &a, watch, int64(len(body)), r.size)
	r.finish()
	return c.withToken(ctx, a, func() answer { return c.ask(ctx, q) })
}

// begun adds the step of q to the result.
func (c *conversation) begun(q question, watch *stopwatch) answer {
	c.tellEnded()
	c.result.Steps = append(c.result.Steps, Step{Name: q.step, Method: q.method, Start: watch.start.Sub(c.started)})
	at := len(c.result.Steps) - 1
	if c.target.Watch != nil {
		c.target.Watch(at, c.result.Steps[at], false)
	}
	return answer{step: at}
}

// tellEnded tells whoever watches of the steps that have ended. What is found wrong with an answer is known by the time the
// next step begins, or the conversation is over.
func (c *conversation) tellEnded() {
	if c.target.Watch == nil {
		return
	}
	for ; c.told < len(c.result.Steps); c.told++ {
		c.target.Watch(c.told, c.result.Steps[c.told], true)
	}
}

// pose begins the step of q and writes its message. The answer has a problem when it cannot be written.
func (c *conversation) pose(q question, watch *stopwatch) (a answer, id string, body []byte) {
	a = c.begun(q, watch)
	if !q.notify && !q.bare && q.raw == nil {
		id = c.ids.next()
	}
	body, err := q.body(id)
	if err != nil {
		a.problem = &problem{ClassProbeError, 0, "the request cannot be written as JSON: " + err.Error()}
		c.record(q, &a, watch, 0, 0)
	}
	return a, id, body
}

// impatience ends a question that takes longer than its own limit, counted from when there is a connection.
type impatience struct {
	after  time.Duration // zero means never
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (i *impatience) start() {
	if i.after > 0 && i.timer == nil {
		i.timer = time.AfterFunc(i.after, func() { i.cancel(outOfTime{i.after}) })
	}
}

func (i *impatience) stop() {
	if i.timer != nil {
		i.timer.Stop()
	}
}

// body returns the bytes of the message.
func (q question) body(id string) ([]byte, error) {
	if q.bare || q.raw != nil {
		return q.raw, nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request{Version: "2.0", ID: id, Method: q.method, Params: q.params}); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// send sends the request and follows the redirects that may be followed. It calls connected for each time it is sent.
func (c *conversation) send(dialCtx, ctx context.Context, q question, body []byte, watch *stopwatch, connected func()) (*http.Response, error) {
	for {
		build := func(ctx context.Context) (*http.Request, error) { return c.request(ctx, q, body) }
		resp, err := c.line.roundTrip(dialCtx, ctx, build, watch, func(req *http.Request) {
			connected()
			c.transcript.sent(q.step, time.Since(c.started), req, body)
		})
		if err != nil {
			return nil, err
		}
		if !isRedirect(resp) {
			return resp, nil
		}
		c.transcript.received(q.step, time.Since(c.started), resp, nil, resp.ContentLength != 0)
		c.line.done(resp, resp.ContentLength == 0)
		next, err := c.redirect(resp)
		if err != nil {
			c.result.Steps[len(c.result.Steps)-1].HTTPStatus = resp.StatusCode
			return nil, err
		}
		c.warn(q.step, ClassRedirect, resp.StatusCode, "redirected to %s: register that address instead", RedactURL(next.String()))
		c.url = next
		c.redirects++
	}
}

// request makes the HTTP request of q to where the endpoint is.
func (c *conversation) request(ctx context.Context, q question, body []byte) (*http.Request, error) {
	where, err := c.at(q.path)
	if err != nil {
		return nil, err
	}
	return c.requestTo(ctx, where, q, body)
}

// requestTo makes the HTTP request of q to any place.
func (c *conversation) requestTo(ctx context.Context, where *url.URL, q question, body []byte) (*http.Request, error) {
	method, reader := http.MethodPost, io.Reader(bytes.NewReader(body)) // of known length: some servers refuse chunks
	if q.bare {
		method = q.method
	}
	if len(body) == 0 {
		reader = nil
	}
	req, err := http.NewRequestWithContext(ctx, method, where.String(), reader)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be made") // the error would repeat the URL
	}
	req.Header.Set("User-Agent", c.prober.userAgent())
	for _, h := range c.target.Headers {
		if http.CanonicalHeaderKey(h.Name) == "User-Agent" {
			req.Header.Set(h.Name, h.Value)
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	if bearer := c.bearer(where); bearer != "" {
		req.Header.Set("Authorization", bearer)
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.mcp {
		q.setMCPHeaders(req.Header)
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	return req, nil
}

// at returns where a question goes: a path that begins with "/" replaces that of the endpoint, any other is appended to
// it. The query of the endpoint, which may hold a key, goes along unless path brings one. A path never leads to another
// host.
func (c *conversation) at(path string) (*url.URL, error) {
	if path == "" {
		return c.url, nil
	}
	path, query, hasQuery := strings.Cut(path, "?")
	where := *c.url
	if rest, ok := strings.CutPrefix(path, "/"); ok {
		where.Path, where.RawPath = "/"+rest, ""
	} else {
		where = *c.url.JoinPath(path)
	}
	if hasQuery {
		where.RawQuery = query
	}
	return &where, nil
}

// isRedirect reports whether resp sends its client elsewhere.
func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return resp.Header.Get("Location") != ""
	default:
		return false
	}
}

// redirect returns where resp leads, or a *problem when a probe must not go there.
func (c *conversation) redirect(resp *http.Response) (*url.URL, error) {
	refuse := func(format string, args ...any) error {
		return &problem{ClassRedirect, resp.StatusCode, fmt.Sprintf(format, args...)}
	}
	next, err := c.url.Parse(resp.Header.Get("Location"))
	if err != nil || next.Hostname() == "" {
		return nil, refuse("redirected to a place that cannot be read as a URL")
	}
	next.Fragment = ""
	where := RedactURL(next.String())
	if host := c.text(next.Hostname(), 100); host != next.Hostname() {
		where = next.Scheme + "://" + host // a name that hides something
	}
	from, err1 := dialAddress(c.url)
	to, err2 := dialAddress(next)
	switch {
	case err1 != nil || err2 != nil || next.Scheme != "http" && next.Scheme != "https":
		return nil, refuse("redirected to %s, which is not a place for a probe", where)
	case resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect:
		return nil, refuse("redirected to %s with a status that turns the request into a GET", where)
	case c.redirects >= c.limits.Redirects:
		return nil, refuse("more than %d redirects, the last to %s", c.limits.Redirects, where)
	case c.url.Scheme == "https" && next.Scheme != "https":
		return nil, refuse("redirected from https down to %s", where)
	case !sameHost(c.url, next):
		return nil, refuse("redirected to another host: %s", where)
	case next.User != nil:
		return nil, refuse("redirected to an address with a user name: %s", where)
	case from != to && (c.target.hasCredentials() || c.target.Options.TLS.ClientCert != "" || len(c.sessions) > 0):
		return nil, refuse("redirected to another port, where the credentials must not go: %s", where)
	}
	return next, nil
}

func sameHost(a, b *url.URL) bool { return strings.EqualFold(a.Hostname(), b.Hostname()) }

// record completes the step of a.
func (c *conversation) record(q question, a *answer, watch *stopwatch, out, in int64) {
	step := &c.result.Steps[a.step]
	step.Latency, step.Phases = watch.times()
	step.BytesOut, step.BytesIn = out, in
	if a.status != 0 {
		step.HTTPStatus = a.status
	}
	remote, secured := watch.learnt()
	if remote != "" {
		c.result.Facts.RemoteAddr = remote
	}
	if secured != nil {
		c.noteTLS(step.Name, secured)
	}
	if a.problem != nil {
		a.problem.message = c.text(a.problem.message, MaxMessage)
		step.Class, step.Code, step.Message = a.problem.class, a.problem.code, a.problem.message
	}
	if !q.aside {
		c.ended = time.Since(c.started)
	}
}

// failure returns what a found, nil when the step went well.
func (c *conversation) failure(a answer) *Failure {
	if a.problem == nil {
		return nil
	}
	return &Failure{Step: c.result.Steps[a.step].Name, Class: a.problem.class, Code: a.problem.code, Message: a.problem.message}
}
