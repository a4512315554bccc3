package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// answer writes v as JSON. HTML in strings is left as it is: the content type and nosniff keep browsers from reading
// it as a page.
func answer(c echo.Context, status int, contentType string, v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	return blob(c, status, contentType, text)
}

// blob writes a body with its length, so that it is whole once it is sent, even while its handler goes on (see drain).
func blob(c echo.Context, status int, contentType string, body []byte) error {
	c.Response().Header().Set("Content-Length", strconv.Itoa(len(body)))
	return c.Blob(status, contentType, body)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, internal(err)
	}
	return b.Bytes(), nil
}

// ok answers with v.
func ok(c echo.Context, v any) error { return answer(c, http.StatusOK, "application/json", v) }

// list is the shape of every list.
type list[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"` // absent at the end
}

// listOf converts a page of the store into a list to be sent.
func listOf[From, To any](items []From, next string, convert func(From) To) list[To] {
	l := list[To]{Items: make([]To, 0, len(items)), NextCursor: next}
	for _, item := range items {
		l.Items = append(l.Items, convert(item))
	}
	return l
}

// Time is an instant as it stands in JSON: RFC 3339, UTC, milliseconds.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes t.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads any RFC 3339 time.
func (t *Time) UnmarshalJSON(data []byte) error { return t.Time.UnmarshalJSON(data) }

// String returns t as it stands in JSON, without the quotes.
func (t Time) String() string { return t.UTC().Format(timeLayout) }

// timeOf returns nil for the zero time and for nil.
func timeOf(t *time.Time) *Time {
	if t == nil || t.IsZero() {
		return nil
	}
	return &Time{*t}
}

// ms is a duration in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return math.Round(float64(d)/float64(time.Microsecond)) / 1000 }
