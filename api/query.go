package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// query are the parameters of a request's URL. Reading one takes it out; end names every mistake, unknown and repeated
// parameters included: a misspelt filter must not pass for none.
type query struct {
	values   url.Values
	mistakes []probe.Problem
}

func queryOf(c echo.Context) *query {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.mistake("query", "is not well-formed")
	}
	return q
}

func (q *query) mistake(field, format string, args ...any) {
	if len(q.mistakes) < maxMistakes {
		q.mistakes = append(q.mistakes, probe.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// text reads a parameter; empty when it is absent.
func (q *query) text(name string) string {
	values := q.values[name]
	delete(q.values, name)
	if len(values) == 0 {
		return ""
	}
	if len(values) > 1 {
		q.mistake(name, "stands there twice")
	}
	if len(values[0]) > maxParameter || !isText(values[0]) {
		q.mistake(name, "is longer than %d bytes or not text", maxParameter)
		return ""
	}
	return values[0]
}

// maxParameter bounds a parameter, generously: the longest is a cursor.
const maxParameter = 1024

// choice reads a parameter that must be one of a few words.
func choice[T ~string](q *query, name string, allowed []T) T {
	text := T(q.text(name))
	if text != "" && !slices.Contains(allowed, text) {
		words := make([]string, 0, len(allowed))
		for _, a := range allowed {
			words = append(words, string(a))
		}
		q.mistake(name, "must be one of %s", strings.Join(words, ", "))
		return ""
	}
	return text
}

// flag reads true or false, the latter when it is absent.
func (q *query) flag(name string) bool {
	return choice(q, name, []string{"true", "false"}) == "true"
}

// time reads an instant.
func (q *query) time(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 {
		q.mistake(name, "must be a time like 2026-11-21T08:00:00Z")
		return time.Time{}
	}
	return t.UTC()
}

func (q *query) limit() int {
	text := q.text("limit")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > store.MaxLimit {
		q.mistake("limit", "must be a whole number between 1 and %d", store.MaxLimit)
		return 0
	}
	return n
}

// end returns every mistake, nil when there was none.
func (q *query) end() error {
	unknown := make([]string, 0, len(q.values))
	for name := range q.values {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		q.mistake(clip(name, maxShown), "is not a parameter known here")
	}
	if len(q.mistakes) == 0 {
		return nil
	}
	return unacceptable(http.StatusBadRequest, "Bad query", q.mistakes)
}
