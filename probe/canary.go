package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

const stepCall = "tools/call"

// problems returns everything that is wrong with a canary; nothing with nil.
func (c *Canary) problems() []Problem {
	if c == nil {
		return nil
	}
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{"canary." + field, fmt.Sprintf(format, args...)})
	}
	switch {
	case c.Tool == "":
		add("tool", "is required: the name of the tool to be called")
	case len(c.Tool) > maxToolName:
		add("tool", "is longer than %d bytes", maxToolName)
	}
	arguments := bytes.TrimSpace(c.Arguments)
	switch {
	case len(arguments) == 0:
	case len(arguments) > maxParams:
		add("arguments", "are larger than %d bytes", maxParams)
	case !json.Valid(arguments):
		add("arguments", "are not JSON")
	case arguments[0] != '{':
		add("arguments", "must be an object")
	}
	return append(problems, c.Expect.problems("canary.expect")...)
}

// callParams are the parameters of tools/call.
type callParams struct {
	Meta      *modernMeta     `json:"_meta,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // servers differ in what they think of a call without
}

// callCanary calls the tool that the target names. What goes wrong with it degrades an endpoint whose list was well, and
// does not put it down; a session that was lost is the exception, so that it is begun again.
func (c *conversation) callCanary(ctx context.Context, p peer, list *toolList) *Failure {
	canary := c.target.Options.Canary
	if canary == nil {
		return nil
	}
	arguments := bytes.TrimSpace(canary.Arguments)
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	headers, refusal := c.prepareCanary(p, list, arguments)
	if refusal != "" {
		c.flag(len(c.result.Steps)-1, ClassCanaryFailed, "the canary %s was not called: %s", shortName(canary.Tool), refusal)
		return nil
	}
	params := callParams{Name: canary.Tool, Arguments: arguments}
	if p.era == EraModern {
		meta := c.modernParams(nil).Meta
		params.Meta = &meta
	}
	a := c.ask(ctx, question{step: stepCall, method: "tools/call", params: params, mcp: true, peer: p, extra: headers})
	if a.problem == nil {
		c.judgeCanary(&a, canary)
		return nil
	}
	if p.era != EraModern && a.status != http.StatusOK { // in a result, words about a session are the tool's own
		c.noticeLoss(&a, p)
	}
	return c.canaryProblem(&a)
}

// missCanary flags a canary on a server that has no tools at all.
func (c *conversation) missCanary() {
	if canary := c.target.Options.Canary; canary != nil {
		c.flag(len(c.result.Steps)-1, ClassCanaryFailed, "the canary %s was not called: the server declares no tools", shortName(canary.Tool))
	}
}

// prepareCanary returns the headers for the call, or why it must not be made: a check may not change anything, and clients
// of the modern era leave out tools whose arguments cannot be put into headers.
func (c *conversation) prepareCanary(p peer, list *toolList, arguments []byte) (http.Header, string) {
	tool := list.canary
	switch {
	case tool == nil && list.whole:
		return nil, "there is no tool of that name"
	case tool == nil:
		return nil, "it is not in the part of the tool list that could be read"
	}
	annotations, _ := tool.members.object("annotations")
	if readOnly, said := annotations.get("readOnlyHint"); said && string(readOnly) == "false" {
		return nil, "it says that it does more than read (readOnlyHint false)"
	}
	if destructive, said := annotations.get("destructiveHint"); said && string(destructive) == "true" {
		return nil, "it says that it may destroy something (destructiveHint true)"
	}
	if p.era != EraModern {
		return nil, ""
	}
	headers := http.Header{"Mcp-Name": {headerText(tool.name)}}
	if tool.form.json == nil || len(tool.form.json) > maxSchema {
		return headers, ""
	}
	return paramHeaders(headers, tool.members, arguments)
}

// paramHeaders adds the headers that mirror arguments, or says why there can be none.
func paramHeaders(headers http.Header, tool object, arguments []byte) (http.Header, string) {
	raw, _ := tool.get("inputSchema")
	var schema, given any
	if decodeNumbers(raw, &schema) != nil || decodeNumbers(arguments, &given) != nil {
		return headers, ""
	}
	mirrored, complaint := headerArguments(schema)
	if complaint != "" {
		return nil, "it " + complaint
	}
	for _, argument := range mirrored {
		if value, ok := argument.headerOf(given); ok {
			headers[argument.header] = []string{value}
		}
	}
	return headers, ""
}

// judgeCanary judges the result of the call.
func (c *conversation) judgeCanary(a *answer, canary *Canary) {
	result, _ := readObject(a.result)
	switch kind := result.text("resultType"); kind {
	case "", "complete":
	case "input_required":
		c.warn(stepCall, ClassCanaryFailed, 0, "the canary %s asks for input before it answers", shortName(canary.Tool))
		return
	default: // nothing that clients could take for an answer
		c.degrade(a, ClassCanaryFailed, 0, fmt.Sprintf("a result of the unknown type %q", clip(kind, 40)))
		return
	}
	if failed, _ := result.get("isError"); string(failed) == "true" {
		c.degrade(a, ClassToolError, 0, contentText(result))
		return
	}
	if err := canary.Expect.check(seen{result: a.result, latency: c.result.Steps[a.step].Latency, status: a.status}); err != nil {
		c.degrade(a, ClassCanaryFailed, 0, err.Error())
	}
}

// canaryProblem says what a call means that brought no result. The list was there a moment ago: the server is not down.
func (c *conversation) canaryProblem(a *answer) *Failure {
	switch p := a.problem; p.class {
	case ClassSessionLost, ClassProbeError:
		return c.failure(*a)
	case ClassRateLimited, ClassBlocked: // nothing is known of the tool, and enough of the server
		c.warn(stepCall, p.class, p.code, "the canary was not answered: %s", p.message)
	case ClassAuthRequired, ClassAuthForbidden, ClassCredentialRejected:
		c.degrade(a, p.class, p.code, p.message)
	default:
		c.degrade(a, ClassCanaryFailed, p.code, p.message)
	}
	return nil
}

// degrade makes a step a failed one that does not end the conversation.
func (c *conversation) degrade(a *answer, class Class, code int, message string) {
	step := &c.result.Steps[a.step]
	step.Class, step.Code, step.Message = class, code, c.text(message, MaxMessage)
	if c.soft == nil {
		c.soft = &Failure{Step: step.Name, Class: class, Code: code, Message: step.Message}
	}
}

// contentText is what the content of a tool's result says in text.
func contentText(result object) string {
	raw, _ := result.get("content")
	blocks, _ := items(raw, 20)
	var texts []string
	for _, block := range blocks {
		if o, err := readObject(block); err == nil && o.text("text") != "" {
			texts = append(texts, clip(o.text("text"), 2*MaxMessage))
		}
	}
	if texts == nil {
		return "the tool answered isError, without a word"
	}
	return strings.Join(texts, " ")
}
