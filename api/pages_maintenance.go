package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// overShown is how many of those that are over the page lists.
const overShown = 20

func (s *Server) pageMaintenance(c echo.Context) error {
	all, err := s.cfg.Store.Maintenances(c.Request().Context(), time.Time{})
	if err != nil {
		return err
	}
	now := time.Now()
	page := web.MaintenancePage{Frame: s.frame(c, "/maintenance")}
	for _, m := range all {
		switch row, active, over := s.standing(m, now); {
		case active:
			page.UnderWay = append(page.UnderWay, row)
		case over:
			page.Over = append(page.Over, row)
		default:
			page.Planned = append(page.Planned, row)
		}
	}
	byBegin := func(a, b web.MaintenanceRow) int { return a.Begin.Compare(b.Begin) }
	slices.SortStableFunc(page.Planned, byBegin)
	slices.SortStableFunc(page.Over, func(a, b web.MaintenanceRow) int { return b.End.Compare(a.End) })
	page.Over = page.Over[:min(len(page.Over), overShown)]
	return s.render(c, http.StatusOK, page)
}

// standing reports whether a maintenance is under way or over at a moment. Its row has the stretch that is under way, or comes next,
// or was last.
func (s *Server) standing(m store.Maintenance, now time.Time) (row web.MaintenanceRow, active, over bool) {
	row = maintenanceRow(m)
	active, next := s.underWay(m, now)
	switch {
	case next != nil:
		row.Begin, row.End = next.From.Time, next.To.Time
	case m.Schedule == "" || !m.EndsAt.IsZero() && !m.EndsAt.After(now):
		row.Begin, row.End, over = m.StartsAt, m.EndsAt, true
	}
	return row, active, over
}

func maintenanceRow(m store.Maintenance) web.MaintenanceRow {
	return web.MaintenanceRow{
		ID: m.ID, Title: m.Title, Schedule: m.Schedule, Duration: m.Duration, Public: m.Public, Author: m.Author,
		Covers: aboutWords(m.All, len(m.Endpoints), m.Tags),
	}
}

// aboutWords says what something covers: "everything", "2 endpoints, tags prod and eu".
func aboutWords(all bool, endpoints int, tags []string) web.List {
	if all {
		return web.List{web.Say("everything")}
	}
	var words web.List
	if endpoints > 0 {
		words = append(words, web.Say("%d endpoints", endpoints))
	}
	switch last := len(tags) - 1; {
	case last == 0:
		words = append(words, web.Say("tag %s", tags[0]))
	case last > 0:
		words = append(words, web.Say("tags %s and %s", strings.Join(tags[:last], ", "), tags[last]))
	}
	if len(words) == 0 {
		return web.List{web.Say("nothing any more: what it was about is gone")}
	}
	return words
}

// maintained returns what covers each of some endpoints at present, by their ids.
func (s *Server) maintained(ctx context.Context, endpoints ...store.Endpoint) (map[string]*web.MaintenanceRow, error) {
	now := time.Now()
	planned, err := s.cfg.Store.Maintenances(ctx, now)
	if err != nil || len(planned) == 0 {
		return nil, err
	}
	covered := map[string]*web.MaintenanceRow{}
	for _, m := range planned {
		windows := s.windows(m, now, now.Add(time.Second))
		if len(windows) == 0 || windows[0][0].After(now) || !windows[0][1].After(now) {
			continue
		}
		row := maintenanceRow(m)
		row.Begin, row.End = windows[0][0], windows[0][1]
		for _, e := range endpoints {
			if m.Covers(e) && covered[e.ID] == nil {
				covered[e.ID] = &row
			}
		}
	}
	return covered, nil
}

func (s *Server) pagePlan(c echo.Context) error {
	// One that begins at the next full hour is the likeliest.
	next := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	form := web.MaintenanceForm{StartsAt: momentText(next), EndsAt: momentText(next.Add(time.Hour)), Public: true}
	return s.planPage(c, http.StatusOK, web.MaintenanceFormPage{Form: form}, nil)
}

func (s *Server) planPage(c echo.Context, status int, page web.MaintenanceFormPage, chosen []string) error {
	var err error
	page.Frame = s.frame(c, "/maintenance")
	if page.Picker, err = s.picker(c.Request().Context(), "endpoints", "Endpoints", chosen, "", page.Problems); err != nil {
		return err
	}
	return s.render(c, status, page)
}

func (s *Server) doPlan(c echo.Context) error {
	return s.submitPlan(c, web.MaintenanceFormPage{}, func(ctx context.Context, in maintenanceInput) error {
		_, err := s.planMaintenance(ctx, in, s.caller(c))
		return err
	})
}

func (s *Server) pagePlanned(c echo.Context) error {
	ctx := c.Request().Context()
	m, err := s.cfg.Store.Maintenance(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	if !s.frame(c, "").May(store.RoleEditor) {
		return s.plannedPage(c, m)
	}
	chosen, err := s.slugList(ctx, m.Endpoints)
	if err != nil {
		return err
	}
	return s.planPage(c, http.StatusOK, web.MaintenanceFormPage{ID: m.ID, Title: m.Title, Form: maintenanceForm(m)}, chosen)
}

// plannedPage shows a maintenance to somebody who may not change it.
func (s *Server) plannedPage(c echo.Context, m store.Maintenance) error {
	page := web.PlannedPage{Frame: s.frame(c, "/maintenance"), Text: m.Text, All: m.All, Tags: m.Tags}
	page.Row, page.Active, page.Over = s.standing(m, page.Now)
	var err error
	if page.Endpoints, err = s.linksTo(c.Request().Context(), m.Endpoints); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, page)
}

func maintenanceForm(m store.Maintenance) web.MaintenanceForm {
	f := web.MaintenanceForm{
		Title: m.Title, Text: m.Text, Recurs: m.Schedule != "", StartsAt: momentText(m.StartsAt), EndsAt: momentText(m.EndsAt),
		Schedule: m.Schedule, All: m.All, Tags: strings.Join(m.Tags, ", "), Public: m.Public,
	}
	if m.Duration > 0 {
		f.Duration = durationText(m.Duration)
	}
	return f
}

func (s *Server) doPlanned(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	m, err := s.cfg.Store.Maintenance(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	if f.text("action") != "delete" {
		page := web.MaintenanceFormPage{ID: m.ID, Title: m.Title}
		return s.submitPlan(c, page, func(ctx context.Context, in maintenanceInput) error {
			// Seconds cannot be typed: a moment that is left as it was stays what it was.
			in.StartsAt, in.EndsAt = sameMinute(in.StartsAt, m.StartsAt), sameMinute(in.EndsAt, m.EndsAt)
			_, err := s.editMaintenance(ctx, m.ID, in)
			return err
		})
	}
	if f.ticked("confirmed") {
		if err := s.removeMaintenance(ctx, m.ID); err != nil {
			return err
		}
		return seeOther(c, "/maintenance", "deleted")
	}
	return s.render(c, http.StatusOK, web.ConfirmPage{
		Frame:    s.frame(c, "/maintenance"),
		Question: "Delete " + m.Title + "?",
		Detail:   "If it is under way, it is over with that, and outages are told again. What was not counted stays uncounted.",
		Verb:     "Delete for good",
		Action:   "/maintenance/" + m.ID,
		Back:     "/maintenance/" + m.ID,
	})
}

func sameMinute(typed *time.Time, kept time.Time) *time.Time {
	if typed != nil && typed.Equal(kept.Truncate(time.Minute)) {
		return &kept
	}
	return typed
}

// submitPlan saves what was typed. Whatever goes wrong, the form comes back with all of it.
func (s *Server) submitPlan(c echo.Context, page web.MaintenanceFormPage, save func(context.Context, maintenanceInput) error) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	page.Form = web.MaintenanceForm{
		Title: f.text("title"), Text: strings.ReplaceAll(f.text("text"), "\r\n", "\n"), Recurs: f.ticked("recurs"),
		StartsAt: f.text("starts_at"), EndsAt: f.text("ends_at"), Schedule: f.text("schedule"), Duration: f.text("duration"),
		All: f.ticked("all"), Tags: f.text("tags"), Public: f.ticked("public"),
	}
	chosen := f.picked("endpoints")
	if err := save(c.Request().Context(), plannedBy(page.Form, chosen)); err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError || p.Status == http.StatusNotFound {
			return err
		}
		page.Problems = problemsOf(p)
		return s.planPage(c, p.Status, page, chosen)
	}
	return seeOther(c, "/maintenance", cmp.Or(map[bool]string{true: "saved"}[page.ID != ""], "planned"))
}

// plannedBy reads what was typed. What does not go with the choice that was made is left out, though the form keeps it.
func plannedBy(typed web.MaintenanceForm, endpoints []string) maintenanceInput {
	in := maintenanceInput{Title: &typed.Title, Text: &typed.Text, All: &typed.All, Public: &typed.Public, Schedule: new(""), Duration: new("")}
	var startsAt, endsAt time.Time
	startsAt, in.Mistakes = momentOf("starts_at", typed.StartsAt, in.Mistakes)
	endsAt, in.Mistakes = momentOf("ends_at", typed.EndsAt, in.Mistakes)
	in.StartsAt, in.EndsAt = &startsAt, &endsAt
	if typed.Recurs {
		in.Schedule, in.Duration = &typed.Schedule, &typed.Duration
		if typed.Schedule == "" {
			in.Mistakes = append(in.Mistakes, required("schedule"))
		}
	}
	in.Endpoints, in.Tags = &endpoints, new(namesOf(typed.Tags))
	if typed.All {
		in.Endpoints, in.Tags = &[]string{}, &[]string{}
	}
	return in
}
