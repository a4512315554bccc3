package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// maxMethod bounds the name of a method, in bytes.
const maxMethod = 200

// method asks the one thing that the target names, or several at once. Any well-formed result with the right id that
// meets the target's expectation is a good answer.
func (c *conversation) method(ctx context.Context) *Failure {
	c.result.Kind = KindJSONRPC
	if len(c.target.Options.Batch) > 0 {
		return c.batch(ctx)
	}
	q := question{step: c.target.Method, method: c.target.Method, notify: c.target.Options.Notify}
	if c.target.Params != nil {
		q.params = c.target.Params
	}
	a := c.ask(ctx, q)
	c.meet(&a, c.target.Options.Expect)
	return c.failure(a)
}

// meet holds an answer against an expectation. One that speaks of errors can make a JSON-RPC error the good answer.
func (c *conversation) meet(a *answer, e Expect) {
	if e.zero() || a.problem != nil && (a.rpc == nil || a.problem.class == ClassIDMismatch || !e.takesErrors()) {
		return
	}
	step := &c.result.Steps[a.step]
	err := e.check(seen{result: a.result, rpc: a.rpc, latency: step.Latency, status: a.status})
	switch {
	case err == nil:
		a.problem = nil
		step.Class, step.Code, step.Message = "", 0, ""
	case a.problem == nil:
		c.fail(a, ClassAssertionFailed, "%s", err)
	}
}

// requestProblems returns what is wrong with what t is to ask.
func requestProblems(t *Target) []Problem {
	var problems []Problem
	add := func(field, message string) { problems = append(problems, Problem{field, message}) }
	o := t.Options
	if t.Kind == KindJSONRPC && t.Method == "" && len(o.Batch) == 0 {
		add("request.method", "is required for kind jsonrpc")
	}
	if t.Kind != KindJSONRPC && t.Kind != KindAuto && (t.Method != "" || t.Params != nil) {
		add("request", "goes with kind jsonrpc only: kind "+string(t.Kind)+" knows its own requests")
	}
	if len(t.Method) > maxMethod {
		add("request.method", fmt.Sprintf("is longer than %d bytes", maxMethod))
	}
	if t.Params != nil {
		if t.Method == "" {
			add("request.params", "need a request.method")
		}
		problems = append(problems, paramsProblems("request.params", t.Params)...)
	}
	if t.Method == "" && o.Notify {
		add("request.notify", "needs a request.method")
	}
	if !o.Expect.zero() {
		switch {
		case t.Method == "" && len(o.Batch) == 0:
			add("request.expect", "needs a request.method")
		case o.Notify:
			add("request.expect", "goes without request.notify: a notification has no answer")
		}
		problems = append(problems, o.Expect.problems("request.expect")...)
	}
	return append(problems, batchProblems(t)...)
}

// paramsProblems returns what is wrong with params, whose name in JSON is field.
func paramsProblems(field string, params json.RawMessage) []Problem {
	params = bytes.TrimSpace(params)
	switch {
	case len(params) > maxParams:
		return []Problem{{field, fmt.Sprintf("are larger than %d bytes", maxParams)}}
	case !json.Valid(params):
		return []Problem{{field, "are not JSON"}}
	case params[0] != '[' && params[0] != '{':
		return []Problem{{field, "must be an array or an object (JSON-RPC 2.0 §4.2)"}}
	}
	return nil
}
