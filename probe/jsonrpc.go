package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// request is a JSON-RPC 2.0 request, or a notification when it has no ID. Params are left out when nil: servers differ
// in what else they accept for "none".
type request struct {
	Version string `json:"jsonrpc"`
	ID      string `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// RPC error codes that tell something about the endpoint. The numbers between -32000 and -32019 mean something else in
// every protocol and are not interpreted.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeGeneric        = -32000

	codeHeaderMismatch     = -32020 // MCP 2026-07-28, as the next two
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// rpcError is the error member of a response.
type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// envelope is one JSON-RPC message as it was received.
type envelope struct {
	id     json.RawMessage // as written; nil when absent
	result json.RawMessage // nil unless the message is a result
	err    *rpcError       // nil unless the message is an error
	call   bool            // a request or notification of the server's own, not a response
	notes  []string        // deviations that leave the meaning clear
}

// answers reports whether e carries exactly this id: equal as written, for a server that changes 3 to "3" or to 3.0
// cannot be matched by a client with more than one request under way.
func (e envelope) answers(id string) bool { return string(e.id) == strconv.Quote(id) }

// anonymous reports whether e carries no id, as an error may when the server could not read that of the request.
func (e envelope) anonymous() bool { return e.id == nil || string(e.id) == "null" }

// badMessage says why bytes are not a JSON-RPC response.
type badMessage struct {
	class   Class // ClassInvalidJSON or ClassInvalidEnvelope
	message string
}

func (e *badMessage) Error() string { return e.message }

func notJSON(format string, args ...any) *badMessage {
	return &badMessage{ClassInvalidJSON, fmt.Sprintf(format, args...)}
}

func notRPC(format string, args ...any) *badMessage {
	return &badMessage{ClassInvalidEnvelope, fmt.Sprintf(format, args...)}
}

// readEnvelope reads raw as one JSON-RPC message, members matched exactly and each allowed once. Strict readers insist
// on jsonrpc "2.0", as MCP does; chains have nodes that leave it out. The error is a *badMessage.
func readEnvelope(raw []byte, strict bool) (envelope, error) {
	var e envelope
	raw, err := e.unwrap(raw)
	if err != nil {
		return e, err
	}
	object, err := readObject(raw)
	if err != nil {
		return e, err
	}
	if name := object.repeated(); name != "" {
		return e, notRPC(`member "%s" comes twice`, clip(name, 40))
	}
	if err := e.checkVersion(object, strict); err != nil {
		return e, err
	}
	e.id, _ = object.get("id")
	result, hasResult := object.get("result")
	failure, hasError := object.get("error")
	switch {
	case hasError && !isNull(failure) && hasResult && !isNull(result):
		return e, notRPC("both result and error")
	case hasError && !isNull(failure):
		if hasResult {
			e.notes = append(e.notes, "result null beside an error")
		}
		return e, e.readError(failure)
	case hasResult:
		if hasError {
			e.notes = append(e.notes, "error null beside a result")
		}
		e.result = result
		return e, nil
	}
	if method, ok := object.get("method"); ok && !isNull(method) {
		e.call = true
		return e, nil
	}
	return e, notRPC("neither result nor error")
}

// unwrap checks that raw is JSON at all, and takes a lone message out of an array.
func (e *envelope) unwrap(raw []byte) ([]byte, error) {
	if trimmed, ok := bytes.CutPrefix(raw, []byte("\xEF\xBB\xBF")); ok {
		raw = trimmed
		e.notes = append(e.notes, "a byte order mark before the JSON")
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, notJSON("empty body")
	}
	if !utf8.Valid(raw) {
		return nil, notJSON("not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, notJSON("not JSON: %s", jsonProblem(err))
	}
	if raw[0] != '[' {
		return raw, nil
	}
	batch, more := items(raw, 1)
	switch {
	case len(batch) == 0:
		return nil, notRPC("an empty array to a single request")
	case more:
		return nil, notRPC("an array of several to a single request")
	}
	e.notes = append(e.notes, "the answer is wrapped in an array")
	return batch[0], nil
}

// items returns the first items of a JSON array, at most so many, and reports whether there are more. It returns none
// for what is no array. It takes memory for what it returns only: a stranger's array may have millions of items.
func items(raw json.RawMessage, most int) (found []json.RawMessage, more bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if first, err := decoder.Token(); err != nil || first != json.Delim('[') {
		return nil, false
	}
	for decoder.More() {
		if len(found) == most {
			return found, true
		}
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return nil, false
		}
		found = append(found, item)
	}
	return found, false
}

// maxVersions bounds a list of protocol versions that is read: there are five.
const maxVersions = 100

// versionsIn returns the strings of a JSON array, the first maxVersions of them; none for what is no such array.
func versionsIn(raw json.RawMessage) []string {
	found, _ := items(raw, maxVersions)
	versions := make([]string, len(found))
	for i, item := range found {
		if json.Unmarshal(item, &versions[i]) != nil {
			return nil
		}
	}
	return versions
}

func jsonProblem(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("%s at byte %d", syntax, syntax.Offset)
	}
	return err.Error()
}

func (e *envelope) checkVersion(object object, strict bool) error {
	version, ok := object.get("jsonrpc")
	if string(version) == `"2.0"` {
		return nil
	}
	note := "no jsonrpc member"
	if ok {
		note = "jsonrpc is " + clip(string(version), 40)
	}
	if strict {
		return notRPC(`%s, must be "2.0"`, note)
	}
	e.notes = append(e.notes, note)
	return nil
}

// maxErrorText bounds the message of an error that is looked into, in bytes.
const maxErrorText = 8 << 10

// readError reads the error member.
func (e *envelope) readError(raw json.RawMessage) error {
	object, err := readObject(raw)
	if err != nil {
		return notRPC("error is not an object: %s", clip(string(raw), 200))
	}
	code, ok := object.get("code")
	if !ok {
		return notRPC("error without a code: %s", clip(string(raw), 200))
	}
	n, err := strconv.ParseInt(string(code), 10, 64)
	if err != nil {
		return notRPC("error code is not an integer: %s", clip(string(raw), 200))
	}
	e.err = &rpcError{Code: int(n)}
	e.err.Data, _ = object.get("data")
	message, _ := object.get("message")
	if json.Unmarshal(message, &e.err.Message) != nil || len(message) == 0 {
		e.notes = append(e.notes, "error without a message")
	}
	e.err.Message = clip(e.err.Message, maxErrorText)
	return nil
}

// object is a JSON object with its members in order, names exactly as written and repetitions kept, which
// encoding/json's own reading of objects hides.
type object []struct {
	name  string
	value json.RawMessage
}

// maxMembers bounds the objects that are looked into: envelopes, results and tools have a dozen members.
const maxMembers = 10_000

// readObject reads raw as an object; the error is a *badMessage.
func readObject(raw []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, notRPC("not an object")
	}
	var o object
	for decoder.More() {
		if len(o) == maxMembers {
			return nil, notRPC("an object of more than %d members", maxMembers)
		}
		name, err := decoder.Token()
		if err != nil {
			return nil, notJSON("not JSON: %s", err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, notJSON("not JSON: %s", err)
		}
		o = append(o, struct {
			name  string
			value json.RawMessage
		}{name.(string), value})
	}
	if _, err := decoder.Token(); err != nil {
		return nil, notJSON("not JSON: %s", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, notJSON("something behind the JSON")
	}
	return o, nil
}

// get returns the member of this exact name.
func (o object) get(name string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// text returns the member of this name when it is a string, else "".
func (o object) text(name string) string {
	raw, _ := o.get(name)
	var s string
	_ = json.Unmarshal(raw, &s) // what is no string leaves s empty
	return s
}

// object returns the member of this name when it is an object.
func (o object) object(name string) (object, bool) {
	raw, ok := o.get(name)
	if !ok {
		return nil, false
	}
	inner, err := readObject(raw)
	return inner, err == nil
}

// offers reports whether the member of this name declares something. Some languages write an empty object as [].
func (o object) offers(name string) bool {
	raw, ok := o.get(name)
	return ok && !isNull(raw) && string(raw) != "false"
}

// repeated returns the name of an envelope member that comes more than once, or "".
func (o object) repeated() string {
	for _, name := range []string{"jsonrpc", "id", "result", "error", "method"} {
		seen := 0
		for _, m := range o {
			if m.name == name {
				seen++
			}
		}
		if seen > 1 {
			return name
		}
	}
	return ""
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }
