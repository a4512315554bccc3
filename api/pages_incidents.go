package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pageIncidents(c echo.Context) error {
	q := queryOf(c)
	cursor := q.text("cursor")
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	page := web.IncidentsPage{Frame: s.frame(c, "/incidents")}
	if cursor == "" {
		open, err := s.cfg.Store.Incidents(ctx, store.IncidentFilter{Status: store.IncidentOpen, Limit: store.MaxLimit})
		if err != nil {
			return err
		}
		page.Open = incidentRows(open.Items)
	} else {
		page.First = "/incidents"
	}
	resolved, err := s.cfg.Store.Incidents(ctx, store.IncidentFilter{Status: store.IncidentResolved, Cursor: cursor})
	if err != nil {
		return err
	}
	page.Resolved = incidentRows(resolved.Items)
	if resolved.Next != "" {
		page.Next = listPath("/incidents", map[string]string{"cursor": resolved.Next})
	}
	return s.render(c, http.StatusOK, page)
}

func incidentRows(incidents []store.Incident) []web.IncidentRow {
	rows := make([]web.IncidentRow, 0, len(incidents))
	for _, i := range incidents {
		rows = append(rows, incidentRow(i))
	}
	return rows
}

func incidentRow(i store.Incident) web.IncidentRow {
	return web.IncidentRow{
		ID:         i.ID,
		Slug:       i.Slug,
		Name:       i.Name,
		StartedAt:  i.StartedAt,
		OpenedAt:   i.OpenedAt,
		ResolvedAt: i.ResolvedAt,
		Resolution: i.Resolution,
		Cause:      i.Cause,
	}
}

func (s *Server) pageIncident(c echo.Context) error {
	ctx := c.Request().Context()
	i, err := s.cfg.Store.Incident(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	checks, err := s.checksAround(ctx, i)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, web.IncidentPage{
		Frame:    s.frame(c, "/incidents"),
		Incident: incidentRow(i),
		Checks:   checkViews(checks),
	})
}

// checksAround returns the checks that tell the story of an incident, newest first: how it began, with what was before,
// and how it ended or stands.
func (s *Server) checksAround(ctx context.Context, i store.Incident) ([]store.Check, error) {
	beginning := store.CheckFilter{EndpointID: i.EndpointID, Until: i.OpenedAt.Add(time.Millisecond), Limit: 5}
	end := store.CheckFilter{EndpointID: i.EndpointID, Limit: 3}
	if i.ResolvedAt != nil {
		end.Until = i.ResolvedAt.Add(time.Millisecond)
	}
	var checks []store.Check
	for _, f := range []store.CheckFilter{end, beginning} {
		page, err := s.cfg.Store.Checks(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, c := range page.Items {
			if !slices.ContainsFunc(checks, func(seen store.Check) bool { return seen.ID == c.ID }) {
				checks = append(checks, c)
			}
		}
	}
	return checks, nil
}
