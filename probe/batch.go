package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// maxBatch bounds the members of a batch: servers have been seen to refuse more than a hundred, some more than twenty.
const maxBatch = 50

// batch sends several requests in one array and judges each by itself (JSON-RPC 2.0 §6). Each member is a step of its
// own, named after its method and, from the second of the same method on, a number. The one exchange they share is
// measured in the first step; its latency is that of every member. The worst member decides the verdict, of several
// equally bad ones the first.
func (c *conversation) batch(ctx context.Context) *Failure {
	b := c.newBatch()
	onlyNotes := b.asked == 0
	a := c.ask(ctx, question{step: b.members[0].step, method: b.members[0].Method, raw: b.body, plain: !onlyNotes, notify: onlyNotes})
	b.addSteps(c, a)
	return c.judgeBatch(ctx, b, &a)
}

// judgeBatch decides what became of each member.
func (c *conversation) judgeBatch(ctx context.Context, b *batch, a *answer) *Failure {
	b.problem = a.problem
	if b.asked > 0 {
		if b.problem = c.readBatch(ctx, b, a); b.problem == nil {
			c.noteBatch(b, a)
		}
	}
	for i := range b.members {
		c.judgeMember(b, &b.members[i], *a)
	}
	return c.worst(b)
}

// batch is a batch under way.
type batch struct {
	body    []byte
	members []batchMember
	asked   int       // members that are answered
	problem *problem  // what is wrong with the answer as a whole
	refusal *rpcError // an error that names no member: it stands for those without an answer
	refused string    // what the refusal was of
	notes   []Warning // what is odd about the answer as a whole
	found   int       // members that an answer was found for
}

// batchMember is one request of a batch.
type batchMember struct {
	Call
	step     string
	id       string // empty for a notification
	answer   answer
	envelope envelope // the answer as it came
	found    bool
	bad      error // why the answer cannot be read; a *badMessage
}

func (c *conversation) newBatch() *batch {
	b := &batch{}
	count := map[string]int{}
	var messages []request
	for _, call := range c.target.Options.Batch {
		m := batchMember{Call: call, step: call.Method}
		if count[call.Method]++; count[call.Method] > 1 {
			m.step = fmt.Sprintf("%s #%d", call.Method, count[call.Method])
		}
		if !call.Notify {
			m.id = c.ids.next()
			b.asked++
		}
		message := request{Version: "2.0", ID: m.id, Method: call.Method}
		if call.Params != nil {
			message.Params = call.Params
		}
		messages = append(messages, message)
		b.members = append(b.members, m)
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(messages) //nolint:errchkjson // the params are JSON: Validate looked
	b.body = bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	return b
}

// addSteps adds the steps of all members but the first, which ask has made.
func (b *batch) addSteps(c *conversation, a answer) {
	first := c.result.Steps[a.step]
	b.members[0].answer = answer{step: a.step, status: a.status}
	for i := 1; i < len(b.members); i++ {
		m := &b.members[i]
		c.result.Steps = append(c.result.Steps, Step{
			Name: m.step, Method: m.Method, Start: first.Start, Latency: first.Latency, HTTPStatus: first.HTTPStatus,
		})
		m.answer = answer{step: len(c.result.Steps) - 1, status: a.status}
	}
}

// readBatch finds the answers of the members in a, and returns what is wrong with all of it at once.
func (c *conversation) readBatch(ctx context.Context, b *batch, a *answer) *problem {
	if a.problem != nil && len(trimSpace(a.body)) == 0 {
		return a.problem
	}
	r := &reading{body: a.body, media: mediaType(a.header), size: int64(len(a.body))}
	r.bad = b.read(a.body)
	for i := range b.members {
		if b.members[i].envelope.result != nil {
			return nil // whatever the status
		}
	}
	if a.problem != nil {
		return a.problem // the status speaks
	}
	q := question{step: b.members[0].step}
	if r.bad == nil {
		c.spokeRPC, r.found = true, true
		return nil
	}
	if a.status == 0 {
		bad, _ := errors.AsType[*badMessage](r.bad)
		return &problem{class: bad.class, message: bad.message}
	}
	a.words = bodyWords(a.body)
	if p := c.judgeStatus(q, a, r); p != nil {
		return p
	}
	return c.judgeBody(ctx, a, r, nil)
}

// read matches answers with members. The error, a *badMessage, tells why body is no answer to a batch.
func (b *batch) read(body []byte) error {
	body = trimSpace(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")))
	if len(body) == 0 {
		return notJSON("empty body")
	}
	if !validJSON(body) {
		return notJSON("not JSON: %s", syntaxWords(body))
	}
	if body[0] != '[' {
		return b.readSingle(body)
	}
	answers, more := items(body, maxBatch+len(b.members))
	if len(answers) == 0 {
		return notRPC("an empty array to a batch of %d", b.asked)
	}
	for _, raw := range answers {
		b.take(raw)
	}
	if more {
		b.note(ClassInvalidEnvelope, "more answers than requests")
	}
	return nil
}

// readSingle reads an object in place of an array: an error refuses the whole batch.
func (b *batch) readSingle(body []byte) error {
	e, err := readEnvelope(body, false)
	if err != nil {
		return err
	}
	if e.call {
		return notRPC("a request of the server's own in place of a response")
	}
	b.note(ClassInvalidEnvelope, "a single object to a batch")
	if e.err != nil {
		b.refuse(e.err, "the batch was refused")
		if b.member(e.id) == nil {
			return nil
		}
	}
	b.take(body)
	return nil
}

// take keeps one answer with the member that it names.
func (b *batch) take(raw []byte) {
	e, err := readEnvelope(raw, false)
	if err != nil {
		b.takeBad(raw, err)
		return
	}
	m := b.member(e.id)
	switch {
	case e.call:
		b.note(ClassInvalidEnvelope, "a request of the server's own among the answers")
	case m == nil && e.err != nil && e.anonymous():
		b.refuse(e.err, "no answer to this member, but an error that names none")
	case m == nil && e.id == nil:
		b.note(ClassIDMismatch, "an answer without an id")
	case m == nil:
		b.note(ClassIDMismatch, "an answer with "+idWords(e)+", with which nothing was asked")
	case m.found || m.bad != nil:
		b.note(ClassIDMismatch, "two answers with "+idWords(e))
	default:
		m.envelope, m.found = e, true
		b.found++
	}
}

// takeBad keeps why an answer cannot be read with the member whose id it carries all the same.
func (b *batch) takeBad(raw []byte, err error) {
	object, _ := readObject(raw)
	id, _ := object.get("id")
	if m := b.member(id); m != nil && !m.found && m.bad == nil {
		m.bad = err
		return
	}
	b.note(ClassInvalidEnvelope, "an answer that is none: "+err.Error())
}

// member returns the member that was asked with an id; nil when none was.
func (b *batch) member(id json.RawMessage) *batchMember {
	for i := range b.members {
		if m := &b.members[i]; m.id != "" && (envelope{id: id}).answers(m.id) {
			return m
		}
	}
	return nil
}

// refuse keeps the first error that names no member.
func (b *batch) refuse(e *rpcError, what string) {
	if b.refusal == nil {
		b.refusal, b.refused = e, what
	}
}

// note records what is odd about the answer as a whole, the first few of it.
func (b *batch) note(class Class, words string) {
	if len(b.notes) < 5 {
		b.notes = append(b.notes, Warning{Class: class, Message: words})
	}
}

// noteBatch warns of what is odd about an answer that can be understood all the same.
func (c *conversation) noteBatch(b *batch, a *answer) {
	step := b.members[0].step
	for _, note := range b.notes {
		c.warn(step, note.Class, 0, "%s", note.Message)
	}
	if a.status == 0 {
		return
	}
	if media := mediaType(a.header); !jsonMedia(media) {
		c.warn(step, ClassContentType, 0, "JSON-RPC sent as %s", orNone(media))
	}
	if a.status != http.StatusOK && b.found > 0 {
		c.warn(step, ClassHTTPStatus, a.status, "answers with status %s", statusWords(a.status))
	}
}

// judgeMember decides what became of one member and completes its step.
func (c *conversation) judgeMember(b *batch, m *batchMember, exchange answer) {
	a := &m.answer
	switch bad, unreadable := errors.AsType[*badMessage](m.bad); {
	case b.problem != nil:
		p := *b.problem
		a.problem = &p
	case m.id == "":
		return // nothing is answered
	case unreadable:
		a.problem = &problem{bad.class, exchange.status, bad.message}
	case m.found:
		a.mine, a.result, a.rpc = true, m.envelope.result, m.envelope.err
		for _, note := range m.envelope.notes {
			c.warn(m.step, ClassInvalidEnvelope, 0, "%s", note)
		}
		if a.rpc != nil {
			a.problem = c.rpcProblem(a.rpc)
		}
	case b.refusal != nil:
		a.problem = c.rpcProblem(b.refusal)
		a.problem.message = b.refused + ": " + a.problem.message
	default:
		a.problem = &problem{ClassInvalidEnvelope, exchange.status, fmt.Sprintf("no answer to this member: %d of %d were answered", b.found, b.asked)}
	}
	step := &c.result.Steps[a.step]
	step.Class, step.Code, step.Message = "", 0, ""
	if a.problem != nil {
		a.problem.message = c.text(a.problem.message, MaxMessage)
		step.Class, step.Code, step.Message = a.problem.class, a.problem.code, a.problem.message
	}
	c.meet(a, m.Expect)
}

// worst returns what decides the verdict of a batch; nil when all is well.
func (c *conversation) worst(b *batch) *Failure {
	var worst *Failure
	rank := func(f *Failure) int { return slices.Index(Verdicts(), f.Class.Verdict()) }
	for _, m := range b.members {
		if f := c.failure(m.answer); f != nil && (worst == nil || rank(f) > rank(worst)) {
			worst = f
		}
	}
	return worst
}

// batchProblems returns what is wrong with the batch of t.
func batchProblems(t *Target) []Problem {
	members := t.Options.Batch
	if len(members) == 0 {
		return nil
	}
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	if t.Kind != KindJSONRPC && t.Kind != KindAuto {
		add("request.batch", "goes with kind jsonrpc only")
	}
	if t.Method != "" {
		add("request.batch", "goes without request.method: an endpoint is asked one or the other")
	}
	if t.Method == "" && !t.Options.Expect.zero() {
		add("request.expect", "goes with request.method: each member of a batch has an expect of its own")
	}
	if len(members) > maxBatch {
		add("request.batch", "has more than %d members", maxBatch)
		members = members[:maxBatch]
	}
	size := 0
	for i, m := range members {
		field := fmt.Sprintf("request.batch[%d]", i)
		size += len(m.Params)
		switch {
		case m.Method == "":
			add(field+".method", "is required")
		case len(m.Method) > maxMethod:
			add(field+".method", "is longer than %d bytes", maxMethod)
		}
		if m.Params != nil {
			problems = append(problems, paramsProblems(field+".params", m.Params)...)
		}
		if m.Notify && !m.Expect.zero() {
			add(field+".expect", "goes without notify: a notification has no answer")
		}
		problems = append(problems, m.Expect.problems(field+".expect")...)
	}
	if size > maxParams {
		add("request.batch", "has params of more than %d bytes together", maxParams)
	}
	return problems
}
