package api

import (
	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Incident is an incident as it stands in JSON.
type Incident struct {
	ID         string               `json:"id"`
	Endpoint   string               `json:"endpoint"` // its slug
	Name       string               `json:"name"`     // of the endpoint
	Status     store.IncidentStatus `json:"status"`
	Severity   store.Status         `json:"severity"`
	StartedAt  Time                 `json:"started_at"`
	OpenedAt   Time                 `json:"opened_at"` // when it was confirmed
	ResolvedAt *Time                `json:"resolved_at"`
	Resolution store.Resolution     `json:"resolution,omitempty"`
	Cause      probe.Failure        `json:"cause"`
}

// IncidentJSON returns i as it stands in JSON.
func IncidentJSON(i store.Incident) Incident {
	return Incident{
		ID:         i.ID,
		Endpoint:   i.Slug,
		Name:       i.Name,
		Status:     incidentStatus(i),
		Severity:   i.Severity,
		StartedAt:  Time{i.StartedAt},
		OpenedAt:   Time{i.OpenedAt},
		ResolvedAt: timeOf(i.ResolvedAt),
		Resolution: i.Resolution,
		Cause:      i.Cause,
	}
}

func incidentStatus(i store.Incident) store.IncidentStatus {
	if i.ResolvedAt == nil {
		return store.IncidentOpen
	}
	return store.IncidentResolved
}

func (s *Server) listIncidents(c echo.Context) error {
	q := queryOf(c)
	slug := q.text("endpoint")
	f := store.IncidentFilter{
		Status: choice(q, "status", []store.IncidentStatus{store.IncidentOpen, store.IncidentResolved}),
		Since:  q.time("since"),
		Limit:  q.limit(),
		Cursor: q.text("cursor"),
	}
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if slug != "" {
		o, err := s.cfg.Store.Endpoint(ctx, slug)
		if err != nil {
			return err
		}
		f.EndpointID = o.ID
	}
	page, err := s.cfg.Store.Incidents(ctx, f)
	if err != nil {
		return err
	}
	return ok(c, listOf(page.Items, page.Next, IncidentJSON))
}

func (s *Server) getIncident(c echo.Context) error {
	i, err := s.cfg.Store.Incident(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return ok(c, IncidentJSON(i))
}
