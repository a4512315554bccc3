package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// Expect is what an answer must hold. The zero Expect is content with anything well formed. All members that are set must
// hold. Where Path selects several values, each of them must; where it selects none, the expectation fails.
//
// An answer that is a JSON-RPC error fails by itself, unless CEL speaks of error and is true: that is how to say that an
// error is the healthy answer.
type Expect struct {
	Path   string          `json:"path,omitempty"`   // JSONPath (RFC 9535): what the members below look at; empty means the whole result
	Type   string          `json:"type,omitempty"`   // null, boolean, integer, number, string, array or object
	Equals json.RawMessage `json:"equals,omitempty"` // the same JSON value, whatever its spelling
	Regex  string          `json:"regex,omitempty"`  // RE2, found anywhere in a string, or in the JSON of anything else
	Min    json.RawMessage `json:"min,omitempty"`    // a number, or a string that holds one (decimal or 0x…)
	Max    json.RawMessage `json:"max,omitempty"`
	CEL    string          `json:"cel,omitempty"` // an expression over result, error, latency and status that must be true
}

// Bounds on what an Expect may hold, in bytes.
const (
	maxRegex  = 1 << 10
	maxPath   = 1 << 10
	maxCEL    = 4 << 10
	maxEquals = 64 << 10
)

// Bounds on what an expectation is compared with, so that an answer cannot use up our time.
const (
	// maxLookedInto is the largest result that is taken apart for a path, an equals or a CEL expression: taken apart, JSON
	// takes up to fifty times its size.
	maxLookedInto = 1 << 20
	// maxRegexWork bounds the product of the size of a compiled regex and of the text it searches: about a second.
	maxRegexWork = 100_000_000
)

// expectTypes are the types an Expect may name: those of JSON Schema.
var expectTypes = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// seen is what an expectation is held against: either a result or an error.
type seen struct {
	result  json.RawMessage
	rpc     *rpcError // nil for a result
	latency time.Duration
	status  int // of HTTP; 0 over other transports
}

// zero reports whether e expects nothing.
func (e Expect) zero() bool {
	return e.Path == "" && e.Type == "" && len(e.Equals) == 0 && e.Regex == "" && len(e.Min) == 0 && len(e.Max) == 0 && e.CEL == ""
}

// takesErrors reports whether e can be content with a JSON-RPC error.
func (e Expect) takesErrors() bool {
	if e.CEL == "" {
		return false
	}
	p, err := celPrograms.get(e.CEL, compileCEL)
	return err == nil && p.ofError
}

// problems returns everything that is wrong with e, whose name in JSON is field.
func (e Expect) problems(field string) []Problem {
	var problems []Problem
	add := func(name, format string, args ...any) {
		problems = append(problems, Problem{field + "." + name, fmt.Sprintf(format, args...)})
	}
	fits := func(name string, size, limit int) bool {
		if size > limit {
			add(name, "is larger than %d bytes", limit)
		}
		return size > 0 && size <= limit
	}
	if fits("path", len(e.Path), maxPath) {
		if _, err := paths.get(e.Path, compilePath); err != nil {
			add("path", "is not a JSONPath (RFC 9535) that can be used: %s", err)
		}
	}
	if e.Type != "" && !slices.Contains(expectTypes, e.Type) {
		add("type", "unknown type %q: use one of %s", clip(e.Type, 40), strings.Join(expectTypes, ", "))
	}
	if fits("equals", len(e.Equals), maxEquals) && !json.Valid(e.Equals) {
		add("equals", "is not JSON")
	}
	if fits("regex", len(e.Regex), maxRegex) {
		if _, err := regexes.get(e.Regex, compileRegex); err != nil {
			add("regex", "cannot be read as RE2: %s", regexWords(err))
		}
	}
	problems = append(problems, e.rangeProblems(field)...)
	if fits("cel", len(e.CEL), maxCEL) {
		if _, err := celPrograms.get(e.CEL, compileCEL); err != nil {
			add("cel", "%s", err)
		}
	}
	return problems
}

func (e Expect) rangeProblems(field string) []Problem {
	var problems []Problem
	read := func(name string, raw json.RawMessage) (decimal, bool) {
		if len(raw) == 0 {
			return decimal{}, false
		}
		n, ok := readDecimal(raw)
		if !ok {
			problems = append(problems, Problem{field + "." + name, `must be a number, or a string that holds one like "0x1f" or "12"`})
		}
		return n, ok
	}
	least, haveMin := read("min", e.Min)
	most, haveMax := read("max", e.Max)
	if haveMin && haveMax && least.compare(most) > 0 {
		problems = append(problems, Problem{field + ".max", "is less than min"})
	}
	return problems
}

// check returns nil when a holds all that e expects, else what was expected and what came, in words that fit a message.
func (e Expect) check(a seen) error {
	if e.CEL != "" {
		if err := e.checkCEL(a); err != nil {
			return err
		}
	}
	if e.CEL != "" && e.onlyCEL() {
		return nil
	}
	if a.rpc != nil {
		return errors.New("an error came in place of a result")
	}
	values, err := e.selected(a.result)
	if err != nil {
		return err
	}
	for i, raw := range values {
		if err := e.checkValue(raw); err != nil {
			return fmt.Errorf("%s %w", e.what(i, len(values)), err)
		}
	}
	return nil
}

func (e Expect) onlyCEL() bool {
	e.CEL = ""
	return e.zero()
}

// what names the value that is being looked at.
func (e Expect) what(i, of int) string {
	switch {
	case e.Path == "":
		return "the result"
	case of == 1:
		return clip(e.Path, 100)
	default:
		return fmt.Sprintf("%s (value %d of %d)", clip(e.Path, 100), i+1, of)
	}
}

// selected returns the values that the members of e look at, as JSON.
func (e Expect) selected(result json.RawMessage) ([]json.RawMessage, error) {
	if e.Path == "" {
		return []json.RawMessage{result}, nil
	}
	path, err := paths.get(e.Path, compilePath)
	if err != nil {
		return nil, fmt.Errorf("the path cannot be used: %w", err)
	}
	document, err := takeApart(result)
	if err != nil {
		return nil, err
	}
	found, err := path.find(document)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("nothing at %s in %s", clip(e.Path, 100), shownJSON(result))
	}
	values := make([]json.RawMessage, len(found))
	for i, value := range found {
		if values[i], err = putTogether(value); err != nil {
			return nil, fmt.Errorf("what is at %s cannot be read", clip(e.Path, 100))
		}
	}
	return values, nil
}

// checkValue holds one value against all members but Path and CEL; the error begins with a verb.
func (e Expect) checkValue(raw json.RawMessage) error {
	if e.Type != "" && !hasType(raw, e.Type) {
		return fmt.Errorf("is %s: %s, expected %s", withArticle(typeOf(raw)), shownJSON(raw), withArticle(e.Type))
	}
	if len(e.Equals) > 0 {
		if err := checkEquals(raw, e.Equals); err != nil {
			return err
		}
	}
	if e.Regex != "" {
		if err := checkRegex(raw, e.Regex); err != nil {
			return err
		}
	}
	if len(e.Min) > 0 || len(e.Max) > 0 {
		return e.checkRange(raw)
	}
	return nil
}

func checkEquals(raw, want json.RawMessage) error {
	if len(raw) > maxLookedInto {
		return fmt.Errorf("is too large to be compared: %d bytes", len(raw))
	}
	got, err := decodeJSON(raw)
	if err != nil {
		return errors.New("is not JSON")
	}
	expected, err := decodeJSON(want)
	if err != nil {
		return errors.New("cannot be compared: what is expected is not JSON")
	}
	if !sameJSON(got, expected) {
		return fmt.Errorf("is %s, expected %s", shownJSON(raw), shownJSON(want))
	}
	return nil
}

func checkRegex(raw json.RawMessage, expr string) error {
	regex, err := regexes.get(expr, compileRegex)
	if err != nil {
		return fmt.Errorf("cannot be searched: %w", err)
	}
	text := []byte(raw)
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		text = []byte(s)
	}
	if len(text) > maxRegexWork/regex.size {
		return fmt.Errorf("is too large to be searched with this regex: %d bytes", len(text))
	}
	if !regex.Match(text) {
		return fmt.Errorf("is %s, which does not match %s", shownJSON(raw), clip(expr, 100))
	}
	return nil
}

func (e Expect) checkRange(raw json.RawMessage) error {
	n, ok := readDecimal(raw)
	if !ok {
		return fmt.Errorf("is %s, expected a number", shownJSON(raw))
	}
	if least, ok := readDecimal(e.Min); ok && n.compare(least) < 0 {
		return fmt.Errorf("is %s, expected at least %s", shownJSON(raw), shownJSON(e.Min))
	}
	if most, ok := readDecimal(e.Max); ok && n.compare(most) > 0 {
		return fmt.Errorf("is %s, expected at most %s", shownJSON(raw), shownJSON(e.Max))
	}
	return nil
}

// shownJSON is so much of a JSON value as a message has room for.
func shownJSON(raw json.RawMessage) string { return clip(string(bytes.TrimSpace(raw)), 120) }

func withArticle(noun string) string {
	switch noun[0] {
	case 'a', 'e', 'i', 'o', 'u':
		return "an " + noun
	case 'n':
		if noun == "null" {
			return noun
		}
	}
	return "a " + noun
}

// typeOf returns the JSON type of valid JSON.
func typeOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

// hasType reports whether raw is of a type that JSON Schema 2020-12 (§6.1.1) names: 1.0 is an integer.
func hasType(raw json.RawMessage, want string) bool {
	got := typeOf(raw)
	if want == "integer" && got == "number" {
		n, ok := readDecimal(raw)
		return ok && n.integer()
	}
	return got == want
}

// takeApart decodes a result that a path or an expression looks into.
func takeApart(result json.RawMessage) (any, error) {
	if len(result) > maxLookedInto {
		return nil, fmt.Errorf("the result is too large to be looked into: %d bytes, more than %d", len(result), maxLookedInto)
	}
	document, err := decodeJSON(result)
	if err != nil {
		return nil, errors.New("the result is not JSON")
	}
	return document, nil
}

// decodeJSON decodes a value, numbers as they are written.
func decodeJSON(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// putTogether writes a value that decodeJSON made.
func putTogether(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// sameJSON reports whether two values that decodeJSON made mean the same: numbers by value, objects whatever the order of
// their members.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameJSON)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, ok := b[name]
			if !ok || !sameJSON(value, other) {
				return false
			}
		}
		return true
	default: // null, a boolean or a string
		switch b.(type) {
		case []any, map[string]any, json.Number:
			return false
		}
		return a == b
	}
}

// compiledRegex is a regex and the number of its instructions.
type compiledRegex struct {
	*regexp.Regexp
	size int
}

var regexes memo[compiledRegex]

func compileRegex(expr string) (compiledRegex, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return compiledRegex{}, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return compiledRegex{}, err
	}
	compiled, err := regexp.Compile(expr)
	return compiledRegex{compiled, max(len(program.Inst), 1)}, err
}

// regexWords says what is wrong with a regex, and where.
func regexWords(err error) string {
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Sprintf("%s: `%s`", bad.Code, clip(bad.Expr, 100))
	}
	return err.Error()
}
