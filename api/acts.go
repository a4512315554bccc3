package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// actInput is what somebody wants to do about an incident, read from a JSON body or a form.
type actInput struct {
	Act    string
	Text   string
	Public bool
	// Of a snooze, one of the two: until when, or for how long.
	Until *time.Time
	For   *time.Duration
	// Chosen is set where a form has one field for both, called "for".
	Chosen bool

	// Mistakes are those already met while reading.
	Mistakes []probe.Problem
}

// act does something about an incident. Errors are store.Invalid with every mistake, store.Conflict when it makes no sense,
// store.ErrNotFound, or the database's.
func (s *Server) act(ctx context.Context, incidentID string, in actInput, author string) (store.Incident, error) {
	a, mistakes := in.at(time.Now(), author)
	if err := a.Validate(); err != nil {
		problems := problemOf(err).Errors
		for i := range problems {
			if problems[i].Field == "until" && (in.For != nil || in.Chosen) {
				problems[i].Field = "for" // which is what was said
			}
		}
		mistakes = further(mistakes, problems)
	}
	if len(mistakes) > 0 {
		return store.Incident{}, store.Invalid{Problems: mistakes}
	}
	if _, err := s.cfg.Store.Act(ctx, incidentID, a); err != nil {
		return store.Incident{}, err
	}
	s.noticed()
	return s.cfg.Store.Incident(ctx, incidentID)
}

// at returns the act that in describes, and every mistake met so far.
func (in actInput) at(now time.Time, author string) (store.Act, []probe.Problem) {
	mistakes := slices.Clone(in.Mistakes)
	wrong := func(field, message string) {
		mistakes = append(mistakes, probe.Problem{Field: field, Message: message})
	}
	a := store.Act{
		Kind: store.ActKind(strings.TrimSpace(in.Act)), Author: author, At: now, Text: strings.TrimSpace(in.Text),
	}
	a.Public = in.Public && a.Text != "" // what is shown in public is the text
	switch {
	case in.Until != nil && in.For != nil:
		wrong("for", "cannot be used together with until: choose one")
	case in.For != nil:
		a.Until = now.Add(*in.For)
	case in.Until != nil:
		a.Until = *in.Until
	}
	if a.Kind != store.ActSnooze && in.Until != nil {
		wrong("until", "goes with snooze only")
	}
	if a.Kind != store.ActSnooze && in.For != nil {
		wrong("for", "goes with snooze only")
	}
	return a, mistakes
}

func (s *Server) postAct(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	var in actInput
	set(&in.Act, m.text("act", ""))
	set(&in.Text, m.text("text", ""))
	set(&in.Public, m.flag("public", false))
	if until := m.time("until"); until != nil && !until.IsZero() {
		in.Until = until
	}
	if raw, there := m.values["for"]; there && !isNull(raw) {
		in.For = new(m.lasting("for"))
	}
	m.rest()
	in.Mistakes = *m.mistakes
	i, err := s.act(c.Request().Context(), c.Param("id"), in, s.caller(c))
	if err != nil {
		return err
	}
	return s.answerIncident(c, http.StatusOK, i)
}
