package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// members are the members of a JSON object that somebody sent. Reading one takes it out; every mistake met on the way
// is noted under the full name of the member, so that all of them can be told at once.
type members struct {
	path     string // of the object, with a dot at its end; empty for the body itself
	values   map[string]json.RawMessage
	mistakes *[]probe.Problem
}

// maxDepth bounds the nesting of a body: ours are three deep, params of a request may be deeper.
const maxDepth = 64

// readBody reads the body of a request as one JSON object, exactly: no member twice, nothing behind it.
func readBody(c echo.Context) (*members, error) {
	r := c.Request()
	if err := wantJSON(r); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, err
		}
		return nil, fault(http.StatusBadRequest, "Body cut short", "The request body ended before it was complete.")
	}
	again(c) // bodies take the time that their senders take
	return readObject(data)
}

func wantJSON(r *http.Request) error {
	allowed := []string{"application/json"}
	if r.Method == http.MethodPatch {
		allowed = append(allowed, "application/merge-patch+json")
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(allowed, kind) {
		return fault(http.StatusUnsupportedMediaType, "Unsupported media type", "Send the body as %s.", strings.Join(allowed, " or "))
	}
	return nil
}

func readObject(data []byte) (*members, error) {
	bad := func(format string, args ...any) (*members, error) {
		return nil, fault(http.StatusBadRequest, "Malformed JSON", format, args...)
	}
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) == 0:
		return bad("The body is empty: send a JSON object.")
	case !utf8.Valid(data):
		return bad("The body is not UTF-8.")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return bad("The body is not JSON from byte %d on: %s.", syntax.Offset, syntax)
		}
		return bad("The body is not JSON.")
	}
	if trimmed[0] != '{' {
		return bad("The body must be one JSON object.")
	}
	m := &members{mistakes: new([]probe.Problem)}
	if err := m.findTwins(data); err != nil {
		return bad("%s", err)
	}
	if err := json.Unmarshal(data, &m.values); err != nil {
		return bad("The body is not a JSON object.")
	}
	return m, nil
}

// findTwins notes members that stand in one object twice: readers differ in which of the two they take.
func (m *members) findTwins(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return m.walk(d, "", 0)
}

// walk clips the path before it goes further in: one is made for each element, and a stranger can put a great many of
// them below a long name.
func (m *members) walk(d *json.Decoder, path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("The body is nested more than %d deep.", maxDepth) //nolint:staticcheck // a sentence for the user
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			below := clip(strings.TrimPrefix(path+"."+name, "."), maxShown)
			if seen[name] {
				m.mistake(below, "stands there twice")
			}
			seen[name] = true
			if err := m.walk(d, below, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			if err := m.walk(d, clip(fmt.Sprintf("%s[%d]", path, i), maxShown), depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

// Bounds of what an error repeats of a body: enough to recognise it, not enough to flood whoever reads it.
const (
	maxShown    = 80
	maxMistakes = 50
)

// mistake notes one under the full name of a member.
func (m *members) mistake(field, format string, args ...any) {
	if len(*m.mistakes) < maxMistakes {
		*m.mistakes = append(*m.mistakes, probe.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// take removes a member and returns its value; nil when it is absent.
func (m *members) take(name string) json.RawMessage {
	raw := m.values[name]
	delete(m.values, name)
	return raw
}

// member reads one member: nil when it is absent, whenNull when it is null, which in a merge patch removes it.
func member[T any](m *members, name string, whenNull T, want string) *T {
	raw := m.take(name)
	if raw == nil {
		return nil
	}
	if isNull(raw) {
		return &whenNull
	}
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		m.mistake(m.path+name, "must be %s", want)
		return nil
	}
	return v
}

func (m *members) text(name, whenNull string) *string {
	text := member(m, name, whenNull, "a string")
	if text != nil && !isText(*text) {
		m.mistake(m.path+name, "holds a NUL character")
		return nil
	}
	return text
}

func (m *members) duration(name, whenNull string) *string {
	return member(m, name, whenNull, `a duration in quotes, like "15s"`)
}

func (m *members) flag(name string, whenNull bool) *bool {
	return member(m, name, whenNull, "true or false")
}

func (m *members) number(name string, whenNull int) *int {
	return member(m, name, whenNull, "a whole number")
}

// time reads an instant; null is the zero time.
func (m *members) time(name string) *time.Time {
	const want = "a time like 2026-11-21T08:00:00Z"
	text := member(m, name, "", want)
	switch {
	case text == nil:
		return nil
	case *text == "":
		return &time.Time{}
	}
	t, err := time.Parse(time.RFC3339, *text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		m.mistake(m.path+name, "must be %s", want)
		return nil
	}
	return new(store.Stamp(t))
}

// texts reads a list of strings.
func (m *members) texts(name string) *[]string {
	items := m.list(name)
	if items == nil {
		return nil
	}
	texts := make([]string, 0, len(*items))
	for i, raw := range *items {
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil || text == nil {
			m.mistake(fmt.Sprintf("%s%s[%d]", m.path, name, i), "must be a string")
			continue
		}
		texts = append(texts, *text)
	}
	return &texts
}

// list reads a list; null is an empty one.
func (m *members) list(name string) *[]json.RawMessage {
	return member(m, name, []json.RawMessage{}, "a list")
}

// object reads a member that is an object itself; absent reports that there is none, and null gives an empty one with
// removed set.
func (m *members) object(name string) (inner *members, removed bool) {
	raw := m.take(name)
	if raw == nil {
		return nil, false
	}
	return m.inside(raw, m.path+name), isNull(raw)
}

// inside reads raw as an object that stands at path; nil, and a mistake noted, when it is something else.
func (m *members) inside(raw json.RawMessage, path string) *members {
	inner := &members{path: path + ".", mistakes: m.mistakes}
	if err := json.Unmarshal(raw, &inner.values); err != nil {
		m.mistake(path, "must be an object")
		return nil
	}
	return inner
}

// readOnly notes members that are ours to fill in.
func (m *members) readOnly(names ...string) {
	for _, name := range names {
		if m.take(name) != nil {
			m.mistake(m.path+name, "is read-only: leave it out")
		}
	}
}

// rest notes every member that nobody took: a misspelt one must not pass for an absent one.
func (m *members) rest() {
	unknown := make([]string, 0, len(m.values))
	for name := range m.values {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		m.mistake(m.path+clip(name, maxShown), "is not a member known here")
	}
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// clip shortens s to at most n bytes without cutting a character in two.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
