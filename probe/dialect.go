package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// askDocument asks a REST call. In a family with an envelope of its own the document comes in that envelope.
func (c *conversation) askDocument(ctx context.Context, p *preset, call *call) answer {
	a := c.document(ctx, call.name(), call.Get, nil)
	if a.problem != nil {
		return a
	}
	_, spoken := call.Statuses[a.status]
	switch {
	case p.Envelope != "":
		c.openEnvelope(p.Envelope, &a)
	case a.status != http.StatusOK && !spoken:
		c.failWith(&a, problem{ClassHTTPStatus, a.status, statusMessage(a.status, a.words)})
	case call.wantsBody():
		c.openDocument(&a)
	}
	return a
}

// wantsBody reports whether anything is read from the body of a call's answer.
func (c *call) wantsBody() bool {
	r := c.Read
	return len(c.Must)+len(c.Equal)+len(c.Distance)+len(c.Findings) > 0 || !r.Height.isZero() || !r.Chain.isZero() ||
		!r.Finalized.isZero() || !r.Safe.isZero() || !r.Software.isZero() || !r.Peers.isZero()
}

// openDocument takes the body of an answer as its result.
func (c *conversation) openDocument(a *answer) {
	if !json.Valid(a.body) {
		c.failWith(a, c.notDocument(a))
		return
	}
	a.result = a.body
}

// notDocument explains a body that is not JSON.
func (c *conversation) notDocument(a *answer) problem {
	switch {
	case a.status != 0 && a.status != http.StatusOK:
		return problem{ClassHTTPStatus, a.status, statusMessage(a.status, bodyWords(a.body))}
	case len(a.body) == 0:
		return problem{ClassInvalidJSON, a.status, "an empty body"}
	case a.header != nil && !jsonMedia(mediaType(a.header)):
		return problem{ClassContentType, a.status, "answered with " + orNone(mediaType(a.header)) + " in place of JSON" + after(bodyWords(a.body))}
	default:
		return problem{ClassInvalidJSON, a.status, "not JSON" + after(bodyWords(a.body))}
	}
}

// askDialect asks a method of a family that does not speak JSON-RPC 2.0.
func (c *conversation) askDialect(ctx context.Context, p *preset, step, method string, params json.RawMessage) answer {
	message, err := dialectMessage(p.Envelope, transportOf(c.url), c.ids.next(), method, params)
	if err != nil {
		a := c.begun(question{step: step, method: method}, newStopwatch())
		c.failWith(&a, problem{ClassProbeError, 0, "the request cannot be written as JSON: " + err.Error()})
		return a
	}
	a := c.ask(ctx, question{step: step, method: method, raw: message, plain: true})
	if a.problem == nil {
		c.openEnvelope(p.Envelope, &a)
	}
	return a
}

// dialectMessage writes a request the way a dialect wants it. Over WebSocket rippled takes commands, whose members stand
// beside their name.
func dialectMessage(d dialect, transport, id, method string, params json.RawMessage) ([]byte, error) {
	switch {
	case d == dialectRippled && transport == "ws":
		message := map[string]any{}
		if len(params) > 0 && params[0] == '{' {
			if err := json.Unmarshal(params, &message); err != nil {
				return nil, err
			}
		}
		message["id"], message["command"] = id, method
		return json.Marshal(message)
	case d == dialectRippled:
		return json.Marshal(struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}{method, params})
	default:
		return json.Marshal(request{Version: "2.0", ID: id, Method: method, Params: params})
	}
}

// openEnvelope takes result or error out of the envelope of a dialect.
func (c *conversation) openEnvelope(d dialect, a *answer) {
	body, err := readObject(a.body)
	if err != nil {
		if json.Valid(a.body) && a.status <= http.StatusOK {
			c.failWith(a, problem{ClassInvalidEnvelope, a.status, "not an object: " + clip(string(a.body), 100)})
			return
		}
		c.failWith(a, c.notDocument(a))
		return
	}
	if d == dialectRippled {
		a.result, a.rpc = openRippled(body)
	} else {
		a.result, a.rpc = openTON(body, a.body)
	}
	switch {
	case a.rpc != nil:
		c.spokeRPC = true
		p := *c.rpcProblem(a.rpc)
		c.failWith(a, p)
	case a.status >= http.StatusBadRequest:
		c.failWith(a, problem{ClassHTTPStatus, a.status, statusMessage(a.status, a.words)})
	case a.result == nil:
		c.failWith(a, problem{ClassInvalidEnvelope, a.status, "neither a result nor an error"})
	default:
		c.spokeRPC = true
	}
	if d == dialectRippled && loaded(body) {
		c.warn(c.result.Steps[a.step].Name, ClassRateLimited, 0, "it warns that this client puts too much load on it, and may soon be cut off")
	}
}

// loaded reports whether rippled warns that it is about to refuse more of this client's requests.
func loaded(body object) bool {
	result, _ := body.object("result")
	return body.text("warning") == "load" || result.text("warning") == "load"
}

// openRippled reads {result: {status, …}}, or with status beside result as over WebSocket. Errors have a name, mostly a
// number and a sentence.
func openRippled(body object) (json.RawMessage, *rpcError) {
	result, _ := body.get("result")
	inner, err := readObject(result)
	told := body // where status and error stand
	if body.text("status") == "" && err == nil {
		told = inner
	}
	name := told.text("error")
	if told.text("status") != "error" && name == "" {
		if err != nil {
			return nil, nil
		}
		return result, nil
	}
	e := &rpcError{Message: name}
	if code, ok := told.get("error_code"); ok {
		e.Code, _ = strconv.Atoi(string(code)) // zero, as of an error without a number
	}
	if words := told.text("error_message"); words != "" {
		e.Message = name + ": " + words
	}
	e.Message = clip(e.Message, maxErrorText)
	return nil, e
}

// openTON reads {ok, result} or {ok, error, code}; version 3 of the API sends the document itself, or {error}.
func openTON(body object, whole json.RawMessage) (json.RawMessage, *rpcError) {
	ok, enveloped := body.get("ok")
	words := body.text("error")
	switch {
	case enveloped && string(ok) == "true":
		result, _ := body.get("result")
		return result, nil
	case enveloped || words != "":
		e := &rpcError{Message: clip(words, maxErrorText)}
		if code, ok := body.get("code"); ok {
			e.Code, _ = strconv.Atoi(string(code)) // zero, as of an error without a number
		}
		return nil, e
	default:
		return whole, nil
	}
}
