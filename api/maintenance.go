package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Maintenance is a stretch of maintenance as it stands in JSON.
type Maintenance struct {
	ID        string   `json:"id"`
	Title     string   `json:"title"`
	Text      string   `json:"text"`
	StartsAt  Time     `json:"starts_at"`
	EndsAt    *Time    `json:"ends_at"`  // null of one that recurs for ever
	Schedule  string   `json:"schedule"` // empty: once
	Duration  string   `json:"duration"` // of one that recurs, each time
	All       bool     `json:"all"`
	Endpoints []string `json:"endpoints"` // slugs
	Tags      []string `json:"tags"`
	Public    bool     `json:"public"`
	Author    string   `json:"author"`
	Active    bool     `json:"active"` // it is under way
	Next      *Stretch `json:"next"`   // the stretch that is under way, or else the next; null when there is none
	CreatedAt Time     `json:"created_at"`
	UpdatedAt Time     `json:"updated_at"`
}

// maintenancesJSON returns stretches of maintenance as they stand in JSON.
func (s *Server) maintenancesJSON(ctx context.Context, all ...store.Maintenance) ([]Maintenance, error) {
	ids := map[string]bool{}
	for _, m := range all {
		for _, id := range m.Endpoints {
			ids[id] = true
		}
	}
	slugs, err := s.slugs(ctx, ids)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	shown := make([]Maintenance, 0, len(all))
	for _, m := range all {
		active, next := s.underWay(m, now)
		shown = append(shown, Maintenance{
			m.ID, m.Title, m.Text, Time{m.StartsAt}, timeOf(&m.EndsAt), m.Schedule, durationText(m.Duration),
			m.All, slugsOf(m.Endpoints, slugs), append([]string{}, m.Tags...), m.Public, m.Author,
			active, next, Time{m.CreatedAt}, Time{m.UpdatedAt},
		})
	}
	return shown, nil
}

// foreseen is how far ahead the next stretch is looked for, a little first: of one that recurs every hour there are many.
// 29 February comes after eight years at most.
var foreseen = []time.Duration{25 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour, 9 * 366 * 24 * time.Hour}

// underWay reports whether a maintenance is under way, and returns that stretch or else the next; nil when there is none.
func (s *Server) underWay(m store.Maintenance, now time.Time) (bool, *Stretch) {
	for _, ahead := range foreseen {
		for _, w := range s.windows(m, now, now.Add(ahead)) {
			if w[1].After(now) {
				return !w[0].After(now), &Stretch{Time{w[0]}, Time{w[1]}}
			}
		}
	}
	return false, nil
}

// windows returns when a maintenance is under way between two times.
func (s *Server) windows(m store.Maintenance, from, until time.Time) [][2]time.Time {
	switch {
	case s.cfg.Windows != nil:
		return s.cfg.Windows(m, from, until)
	case m.Schedule == "" && m.StartsAt.Before(until) && m.EndsAt.After(from):
		return [][2]time.Time{{m.StartsAt, m.EndsAt}}
	}
	return nil
}

// maintenanceInput is what somebody wants a maintenance to be, read from a JSON body or a form. A nil member stays as it is.
type maintenanceInput struct {
	Title     *string
	Text      *string
	StartsAt  *time.Time
	EndsAt    *time.Time
	Schedule  *string
	Duration  *string
	All       *bool
	Endpoints *[]string // slugs
	Tags      *[]string
	Public    *bool

	// Mistakes are those already met while reading.
	Mistakes []probe.Problem

	ids *[]string // that Endpoints stands for, once they are looked up
}

// planMaintenance keeps a maintenance. Errors are store.Invalid with every mistake, or the database's.
func (s *Server) planMaintenance(ctx context.Context, in maintenanceInput, author string) (store.Maintenance, error) {
	in, err := s.coveredBy(ctx, in)
	if err != nil {
		return store.Maintenance{}, err
	}
	m := store.Maintenance{Author: author}
	if err := s.change(in, &m); err != nil {
		return store.Maintenance{}, err
	}
	m, err = s.cfg.Store.CreateMaintenance(ctx, m)
	if err != nil {
		return store.Maintenance{}, err
	}
	s.plansChanged(ctx)
	return m, nil
}

// editMaintenance changes what in names of a maintenance. Errors are those of planMaintenance, and store.ErrNotFound.
func (s *Server) editMaintenance(ctx context.Context, id string, in maintenanceInput) (store.Maintenance, error) {
	in, err := s.coveredBy(ctx, in) // before the transaction that changes it begins
	if err != nil {
		return store.Maintenance{}, err
	}
	m, err := s.cfg.Store.UpdateMaintenance(ctx, id, func(m *store.Maintenance) error { return s.change(in, m) })
	if err != nil {
		return store.Maintenance{}, err
	}
	s.plansChanged(ctx)
	return m, nil
}

// removeMaintenance takes a maintenance away; one that is under way is over with that.
func (s *Server) removeMaintenance(ctx context.Context, id string) error {
	if err := s.cfg.Store.DeleteMaintenance(ctx, id); err != nil {
		return err
	}
	s.plansChanged(ctx)
	return nil
}

func (s *Server) plansChanged(ctx context.Context) {
	if s.cfg.PlansChanged != nil {
		s.cfg.PlansChanged(ctx)
	}
}

// coveredBy returns in with the endpoints that it names looked up, and what is wrong with them among its mistakes.
func (s *Server) coveredBy(ctx context.Context, in maintenanceInput) (maintenanceInput, error) {
	if in.Endpoints == nil {
		return in, nil
	}
	ids, mistakes, err := s.idsOf(ctx, "endpoints", *in.Endpoints, store.MaxLimit)
	if err != nil {
		return in, err
	}
	in.ids, in.Mistakes = &ids, append(slices.Clone(in.Mistakes), mistakes...)
	return in, nil
}

// change edits m as in says. Its error names every mistake; m is left as it was then.
func (s *Server) change(in maintenanceInput, m *store.Maintenance) error {
	changed, mistakes := in.onto(*m)
	if err := changed.Validate(s.cfg.Period); err != nil {
		mistakes = besides(mistakes, problemOf(err).Errors)
	}
	if len(mistakes) > 0 {
		return store.Invalid{Problems: mistakes}
	}
	*m = changed
	return nil
}

// besides returns mistakes and those of more that they do not say already: what could not be read is not missing as well, nor
// are endpoints of which one is not there.
func besides(mistakes, more []probe.Problem) []probe.Problem {
	met := slices.Clone(mistakes)
	for _, p := range more {
		said := slices.ContainsFunc(met, func(m probe.Problem) bool {
			return within(p.Field, m.Field) || p.Field == "endpoints" && within(m.Field, p.Field)
		})
		if !said {
			mistakes = append(mistakes, p)
		}
	}
	return mistakes
}

// onto returns m with everything that in names, and every mistake met so far.
func (in maintenanceInput) onto(m store.Maintenance) (store.Maintenance, []probe.Problem) {
	mistakes := slices.Clone(in.Mistakes)
	for to, from := range map[*string]*string{&m.Title: in.Title, &m.Text: in.Text, &m.Schedule: in.Schedule} {
		if from != nil {
			*to = strings.TrimSpace(*from)
		}
	}
	set(&m.StartsAt, in.StartsAt)
	set(&m.EndsAt, in.EndsAt)
	set(&m.All, in.All)
	set(&m.Endpoints, in.ids)
	set(&m.Tags, in.Tags)
	set(&m.Public, in.Public)
	if in.Duration != nil {
		d, err := time.ParseDuration(cmp.Or(strings.TrimSpace(*in.Duration), "0s"))
		if err != nil {
			mistakes = append(mistakes, probe.Problem{Field: "duration", Message: `must be a duration like "2h" or "30m"`})
		}
		m.Duration = d
	}
	return m, mistakes
}

func readMaintenance(m *members) maintenanceInput {
	in := maintenanceInput{
		Title:     m.text("title", ""),
		Text:      m.text("text", ""),
		StartsAt:  m.time("starts_at"),
		EndsAt:    m.time("ends_at"),
		Schedule:  m.text("schedule", ""),
		Duration:  m.duration("duration", "0s"),
		All:       m.flag("all", false),
		Endpoints: m.texts("endpoints"),
		Tags:      m.texts("tags"),
		Public:    m.flag("public", false),
	}
	m.readOnly("id", "author", "active", "next", "created_at", "updated_at")
	m.rest()
	in.Mistakes = *m.mistakes
	return in
}

// listMaintenance lists what is not over, or with all=true everything.
func (s *Server) listMaintenance(c echo.Context) error {
	q := queryOf(c)
	all := q.flag("all")
	if err := q.end(); err != nil {
		return err
	}
	after := time.Now()
	if all {
		after = time.Time{}
	}
	ctx := c.Request().Context()
	kept, err := s.cfg.Store.Maintenances(ctx, after)
	if err != nil {
		return err
	}
	items, err := s.maintenancesJSON(ctx, kept...)
	if err != nil {
		return err
	}
	return ok(c, list[Maintenance]{Items: items})
}

func (s *Server) postMaintenance(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	kept, err := s.planMaintenance(c.Request().Context(), readMaintenance(m), s.caller(c))
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/api/v1/maintenance/"+kept.ID)
	return s.answerMaintenance(c, http.StatusCreated, kept)
}

func (s *Server) getMaintenance(c echo.Context) error {
	kept, err := s.cfg.Store.Maintenance(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return s.answerMaintenance(c, http.StatusOK, kept)
}

// patchMaintenance takes a JSON merge patch (RFC 7396).
func (s *Server) patchMaintenance(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	kept, err := s.editMaintenance(c.Request().Context(), c.Param("id"), readMaintenance(m))
	if err != nil {
		return err
	}
	return s.answerMaintenance(c, http.StatusOK, kept)
}

func (s *Server) deleteMaintenance(c echo.Context) error {
	if err := s.removeMaintenance(c.Request().Context(), c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) answerMaintenance(c echo.Context, status int, kept store.Maintenance) error {
	items, err := s.maintenancesJSON(c.Request().Context(), kept)
	if err != nil {
		return err
	}
	return answer(c, status, "application/json", items[0])
}
