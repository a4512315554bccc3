package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	raw     json.RawMessage // the whole object: some families say the most in members of their own
}

// envelope is one JSON-RPC message as it was received.
type envelope struct {
	id     json.RawMessage // as written; nil when absent
	result json.RawMessage // nil unless the message is a result
	err    *rpcError       // nil unless the message is an error
	call   bool            // a request or notification of the server's own, not a response
	plain  bool            // an error in words and nothing else of JSON-RPC, as web frameworks write it
	notes  []string        // deviations that leave the meaning clear
}

// answers reports whether e carries exactly this id: the same string, for a server that makes another type of it cannot
// be matched by a client with more than one request under way. The characters may be escaped in another way.
func (e envelope) answers(id string) bool {
	if len(e.id) == len(id)+2 && e.id[0] == '"' && string(e.id[1:len(e.id)-1]) == id {
		return true // ids need no escapes
	}
	if len(e.id) > 6*len(id)+2 {
		return false
	}
	s, ok := readString(e.id)
	return ok && s == id
}

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

// readEnvelope reads raw as one JSON-RPC message, members matched exactly and each allowed once, in one pass over the
// bytes, of which the envelope keeps parts. Strict readers insist on jsonrpc "2.0" and an error that is an object, as MCP
// does; chains have nodes that speak JSON-RPC 1.0. The error is a *badMessage.
func readEnvelope(raw []byte, strict bool) (envelope, error) {
	var e envelope
	raw, err := e.unwrap(raw)
	if err != nil {
		return e, err
	}
	m, err := readParts(raw)
	if err != nil {
		return e, err
	}
	e.id = m.id
	oldStyle := !strict && (m.version == nil || string(m.version) == `"1.0"`)
	if err := e.checkVersion(m.version, strict); err != nil {
		return e, err
	}
	if m.extra != "" && !strict && (m.result != nil || m.err != nil) {
		e.note(`a member that JSON-RPC does not know: "%s"`, clip(m.extra, 40))
	}
	failed := m.err != nil && !isNull(m.err)
	switch {
	case failed && m.result != nil && !isNull(m.result):
		return e, notRPC("both result and error")
	case failed:
		if m.result != nil {
			e.note("result null beside an error")
		}
		err := e.readError(m.err, oldStyle)
		e.plain = err == nil && e.err.Code == 0 && m.version == nil && m.id == nil && m.result == nil
		return e, err
	case m.result != nil:
		if m.err != nil {
			e.note("error null beside a result")
		}
		e.result = m.result
		return e, nil
	case m.method != nil && !isNull(m.method):
		e.call = true
		return e, nil
	default:
		return e, notRPC("%s%s", neither, membersWords(m.others))
	}
}

// neither begins what is said of an object that is no response.
const neither = "neither result nor error"

// note records a deviation that leaves the meaning clear.
func (e *envelope) note(format string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// envelopeParts are the members of a message that JSON-RPC knows; nil for those that are not there.
type envelopeParts struct {
	version, id, result, err, method json.RawMessage

	extra  string   // the first member of another name, or a method in a response
	others []string // names of the first few members that JSON-RPC does not know
}

// readParts reads raw as an object and returns the members that make an envelope. The error is a *badMessage.
func readParts(raw []byte) (envelopeParts, error) {
	var m envelopeParts
	members, ok := readMembers(raw)
	if !ok {
		if !validJSON(raw) {
			return m, notJSON("not JSON: %s", syntaxWords(raw))
		}
		return m, notRPC("not an object but %s", withArticle(typeOf(raw)))
	}
	twice := ""
	for {
		name, value, ok := members.next()
		if !ok {
			break
		}
		part := m.part(name)
		switch {
		case part == nil:
			if len(m.others) < 5 {
				m.others = append(m.others, name)
			}
		case *part != nil:
			twice = name
		default:
			*part = value
		}
	}
	if !members.whole() {
		return m, notJSON("not JSON: %s", syntaxWords(raw))
	}
	if twice != "" {
		return m, notRPC(`member "%s" comes twice`, twice)
	}
	switch {
	case len(m.others) > 0 && m.others[0] != "params":
		m.extra = m.others[0]
	case m.method != nil:
		m.extra = "method"
	}
	return m, nil
}

// part returns where the member of this name is kept, nil for a name that JSON-RPC does not know.
func (m *envelopeParts) part(name string) *json.RawMessage {
	switch name {
	case "jsonrpc":
		return &m.version
	case "id":
		return &m.id
	case "result":
		return &m.result
	case "error":
		return &m.err
	case "method":
		return &m.method
	default:
		return nil
	}
}

// membersWords names the members of an object that was expected to be something else.
func membersWords(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", but " + clip(strings.Join(names, ", "), 100)
}

// unwrap cuts what may stand around a message, and takes a lone one out of an array.
func (e *envelope) unwrap(raw []byte) ([]byte, error) {
	if trimmed, ok := bytes.CutPrefix(raw, []byte("\xEF\xBB\xBF")); ok {
		raw = trimmed
		e.note("a byte order mark before the JSON")
	}
	raw = trimSpace(raw)
	if len(raw) == 0 {
		return nil, notJSON("empty body")
	}
	if !utf8.Valid(raw) {
		return nil, notJSON("not UTF-8")
	}
	if raw[0] != '[' {
		return raw, nil
	}
	if !validJSON(raw) {
		return nil, notJSON("not JSON: %s", syntaxWords(raw))
	}
	batch, more := items(raw, 1)
	switch {
	case len(batch) == 0:
		return nil, notRPC("an empty array to a single request")
	case more:
		return nil, notRPC("an array of several to a single request")
	}
	e.note("the answer is wrapped in an array")
	return batch[0], nil
}

// items returns the first items of a JSON array, at most so many, and reports whether there are more. It returns none
// for what is no array. It takes memory for what it returns only: a stranger's array may have millions of items.
func items(raw json.RawMessage, most int) (found []json.RawMessage, more bool) {
	array, ok := readItems(raw)
	if !ok {
		return nil, false
	}
	for len(found) < most {
		item, ok := array.next()
		if !ok {
			break
		}
		found = append(found, item)
	}
	if array.bad {
		return nil, false
	}
	return found, array.more
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

// syntaxWords says what is wrong with bytes that are not JSON, and where.
func syntaxWords(raw []byte) string {
	var whole json.RawMessage
	err := json.Unmarshal(raw, &whole)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("%s at byte %d", syntax, syntax.Offset)
	}
	return "something behind the JSON"
}

func (e *envelope) checkVersion(version json.RawMessage, strict bool) error {
	if string(version) == `"2.0"` {
		return nil
	}
	words := "no jsonrpc member"
	if version != nil {
		words = "jsonrpc is " + clip(string(version), 40)
	}
	if strict {
		return notRPC(`%s, must be "2.0"`, words)
	}
	e.note("%s", words)
	return nil
}

// maxErrorText bounds the message of an error that is looked into, in bytes.
const maxErrorText = 8 << 10

// readError reads the error member. In the old style, that of JSON-RPC 1.0, an error may be a string, as Go's net/rpc
// writes it, and an object need not have a code.
func (e *envelope) readError(raw json.RawMessage, oldStyle bool) error {
	object, err := readObject(raw)
	if err != nil {
		if e.err = oldError(raw); oldStyle && e.err != nil {
			e.note("error is a string, as in JSON-RPC 1.0")
			return nil
		}
		e.err = nil
		return notRPC("error is not an object: %s", clip(string(raw), 200))
	}
	e.err = &rpcError{raw: raw}
	switch code, ok := object.get("code"); {
	case ok:
		n, err := strconv.ParseInt(string(code), 10, 64)
		if err != nil {
			e.err = nil
			return notRPC("error code is not an integer: %s", clip(string(raw), 200))
		}
		e.err.Code = int(n)
	case oldStyle && object.text("message") != "":
		e.note("error without a code")
	default:
		e.err = nil
		return notRPC("error without a code: %s", clip(string(raw), 200))
	}
	e.err.Data, _ = object.get("data")
	message, _ := object.get("message")
	text, ok := readString(message)
	if !ok {
		e.note("error without a message")
	}
	e.err.Message = clip(text, maxErrorText)
	return nil
}

// oldError reads an error that is a string; nil when it is not.
func oldError(raw json.RawMessage) *rpcError {
	message, ok := readString(raw)
	if !ok {
		return nil
	}
	return &rpcError{Message: clip(message, maxErrorText)}
}

// object is a JSON object with its members in order, names exactly as written and repetitions kept, which
// encoding/json's own reading of objects hides.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// maxMembers bounds the objects that are looked into: envelopes, results and tools have a dozen members.
const maxMembers = 10_000

// readObject reads raw as an object, whose values are parts of raw; the error is a *badMessage.
func readObject(raw []byte) (object, error) {
	members, ok := readMembers(raw)
	if !ok {
		return nil, notRPC("not an object")
	}
	o := make(object, 0, 8)
	for {
		name, value, ok := members.next()
		if !ok {
			break
		}
		if len(o) == maxMembers {
			return nil, notRPC("an object of more than %d members", maxMembers)
		}
		o = append(o, member{name, value})
	}
	if !members.whole() {
		return nil, notJSON("not JSON: %s", syntaxWords(raw))
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
	s, _ := readString(raw)
	return s
}

// readString decodes a JSON string, without encoding/json when it holds no escapes; ok is false for what is no string.
func readString(raw json.RawMessage) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	ok = json.Unmarshal(raw, &s) == nil
	return s, ok
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

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }
