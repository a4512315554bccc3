package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// problem is an answer that says what went wrong (RFC 9457), and an error on its way to become one. What it shows is
// fit for strangers; cause is for the log alone.
type problem struct {
	Type      string          `json:"type"`
	Title     string          `json:"title"`
	Status    int             `json:"status"`
	Detail    string          `json:"detail,omitempty"`
	Errors    []probe.Problem `json:"errors"`
	RequestID string          `json:"request_id,omitempty"` // finds the line in the log

	retryAfter time.Duration
	cause      error
}

func (p *problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if p.cause != nil {
		text += ": " + p.cause.Error()
	}
	return text
}

func (p *problem) Unwrap() error { return p.cause }

// fault returns a problem without members of its own.
func fault(status int, title, format string, args ...any) *problem {
	return &problem{Status: status, Title: title, Detail: fmt.Sprintf(format, args...)}
}

// unacceptable returns a problem that names every mistake, up to maxMistakes.
func unacceptable(status int, title string, mistakes []probe.Problem) *problem {
	mistakes = mistakes[:min(len(mistakes), maxMistakes)]
	parts := make([]string, 0, len(mistakes))
	for _, m := range mistakes {
		parts = append(parts, strings.TrimSpace(m.Field+" "+m.Message))
	}
	return &problem{Status: status, Title: title, Detail: strings.Join(parts, "; "), Errors: mistakes}
}

// internal marks an error as a mistake of our own program, such as a template that cannot be rendered.
func internal(err error) error {
	if err == nil {
		return nil
	}
	return &problem{Status: http.StatusInternalServerError, Title: "Internal error", cause: err}
}

// problemOf turns any error of a handler into the answer for it. An error that nobody gave a meaning is one of the
// database: that is what the contract of store.Store says.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if invalid, ok := errors.AsType[store.Invalid](err); ok {
		return unacceptable(http.StatusUnprocessableEntity, "Invalid input", invalid.Problems)
	}
	if conflict, ok := errors.AsType[store.Conflict](err); ok {
		return unacceptable(http.StatusConflict, "Conflict", []probe.Problem{{Field: conflict.Field, Message: conflict.Message}})
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault(http.StatusRequestEntityTooLarge, "Body too large", "A request body may have at most %d bytes.", large.Limit)
	}
	if he, ok := errors.AsType[*echo.HTTPError](err); ok {
		return &problem{Status: he.Code, Title: http.StatusText(he.Code), Detail: routing[he.Code], cause: he.Internal}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fault(http.StatusNotFound, "Not found", "There is nothing by that name.")
	case errors.Is(err, store.ErrBadCursor):
		return unacceptable(http.StatusBadRequest, "Bad query", []probe.Problem{{Field: "cursor", Message: "was not handed out by this list"}})
	case errors.Is(err, store.ErrWaiting):
		return &problem{
			Status: http.StatusServiceUnavailable,
			Title:  "Database unavailable",
			Detail: "The check was made and waits; it is recorded as soon as the database is back.",
			cause:  err, retryAfter: databaseRetry,
		}
	}
	return &problem{
		Status: http.StatusServiceUnavailable,
		Title:  "Database unavailable",
		Detail: "The database does not answer as it should. Try again in a moment; /readyz says when it is back.",
		cause:  err, retryAfter: databaseRetry,
	}
}

// databaseRetry is the patience we ask for while the database is away: about as long as one takes to restart.
const databaseRetry = 5 * time.Second

// routing says in words what the router found wrong.
var routing = map[int]string{
	http.StatusNotFound:         "There is nothing at this address.",
	http.StatusMethodNotAllowed: "This address does not take that method; the Allow header lists those it takes.",
}

// fail answers with an error: the one place where errors become HTTP. Strangers learn the category, the log the rest.
func (s *Server) fail(err error, c echo.Context) {
	if gone(c) {
		return // nobody is left to hear it
	}
	p := *problemOf(err)
	p.Type, p.RequestID = "about:blank", requestID(c)
	if p.Errors == nil {
		p.Errors = []probe.Problem{}
	}
	if p.Status >= http.StatusInternalServerError && p.cause != nil {
		s.cfg.Log.ErrorContext(c.Request().Context(), "request failed",
			"method", c.Request().Method, "route", c.Path(), "request_id", p.RequestID, "error", p.cause)
	}
	if c.Response().Committed {
		return // too late to say so
	}
	if err := s.answerProblem(c, &p); err != nil {
		s.cfg.Log.DebugContext(c.Request().Context(), "answer not delivered", "route", c.Path(), "error", err)
	}
}

func (s *Server) answerProblem(c echo.Context, p *problem) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(max(1, p.retryAfter.Round(time.Second)/time.Second))))
	}
	if s.wantsPage(c) {
		return s.pageError(c, p)
	}
	return answer(c, p.Status, "application/problem+json", p)
}

// wantsPage reports whether somebody is looking at the answer, rather than a program reading it.
func (s *Server) wantsPage(c echo.Context) bool {
	if page, known := s.pages[c.Path()]; known {
		return page
	}
	r := c.Request()
	accepts := slices.ContainsFunc(r.Header.Values("Accept"), func(v string) bool { return strings.Contains(v, "text/html") })
	return accepts && !strings.HasPrefix(r.URL.Path, "/api/")
}
