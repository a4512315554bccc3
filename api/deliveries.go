package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// Attempt is a line of the log of deliveries as it stands in JSON.
type Attempt struct {
	Notice   string           `json:"notice"`
	Kind     store.NoticeKind `json:"kind"`
	Incident *string          `json:"incident"` // null when it tells of something else, as the next
	Endpoint *string          `json:"endpoint"` // slug
	Title    *string          `json:"title"`    // of the incident; null when it has none, as that of an endpoint
	Number   int              `json:"number"`   // of the attempt, from 1
	At       Time             `json:"at"`
	Outcome  string           `json:"outcome"`
	Error    string           `json:"error"`
	TookMS   float64          `json:"took_ms"`
}

func attemptJSON(a store.Attempt) Attempt {
	return Attempt{
		a.NoticeID, a.Kind, textOrNull(a.IncidentID), textOrNull(a.Slug), textOrNull(a.Title), a.Number, Time{a.At}, a.Outcome, a.Error, ms(a.Took),
	}
}

func (s *Server) listDeliveries(c echo.Context) error {
	q := queryOf(c)
	f := store.AttemptFilter{ChannelID: c.Param("id"), Limit: q.limit(), Cursor: q.text("cursor")}
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.cfg.Store.Channel(ctx, f.ChannelID); err != nil {
		return err
	}
	page, err := s.cfg.Store.Attempts(ctx, f)
	if err != nil {
		return err
	}
	return ok(c, listOf(page.Items, page.Next, attemptJSON))
}

func (s *Server) resendNotice(c echo.Context) error {
	if err := s.cfg.Store.Resend(c.Request().Context(), c.Param("id"), time.Now()); err != nil {
		return err
	}
	s.noticed()
	return c.NoContent(http.StatusNoContent)
}
