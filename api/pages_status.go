package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// How much of the past the public status pages show.
const (
	statusDays     = 90
	recentForPages = 14 * 24 * time.Hour
	feedPath       = "/status/feed.atom"
)

// publicPage names the visitor only to themselves: a page for nobody in particular may be kept by whoever stands between.
func (s *Server) publicPage(c echo.Context, page web.Page) error {
	c.Response().Header().Add("Vary", "Cookie")
	if _, loggedIn := s.user(c); !loggedIn {
		c.Response().Header().Set("Cache-Control", publicCache)
	}
	return s.render(c, http.StatusOK, page)
}

func (s *Server) pageStatus(c echo.Context) error {
	ctx := c.Request().Context()
	p, err := s.public(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	counts, err := s.countsOf(ctx, store.Daily, firstDay(now), p.endpoints)
	if err != nil {
		return err
	}
	page := web.StatusPage{Frame: s.frame(c, "/status"), Overall: p.overall, Heading: p.description(), Feed: feedPath}
	for _, o := range p.endpoints {
		page.Endpoints = append(page.Endpoints, publicRow(o, percentOf(counts[o.ID])))
	}
	for _, i := range p.incidents {
		switch {
		case i.ResolvedAt == nil:
			page.Open = append(page.Open, publicIncidentRow(i))
		case now.Sub(*i.ResolvedAt) < recentForPages:
			page.Recent = append(page.Recent, publicIncidentRow(i))
		}
	}
	return s.publicPage(c, page)
}

func publicRow(o store.Overview, uptime *float64) web.PublicRow {
	return web.PublicRow{Slug: o.Slug, Name: o.Name, Status: o.Status(), Since: o.State.Since, Uptime: uptime}
}

func publicIncidentRow(i store.Incident) web.PublicIncident {
	return web.PublicIncident{Slug: i.Slug, Name: i.Name, StartedAt: i.StartedAt, ResolvedAt: i.ResolvedAt}
}

// pageStatusEndpoint shows the public history of an endpoint. One that is not public is not there.
func (s *Server) pageStatusEndpoint(c echo.Context) error {
	ctx := c.Request().Context()
	o, err := s.read.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	if !o.Public {
		return store.ErrNotFound
	}
	h, err := s.history(ctx, o.Endpoint)
	if err != nil {
		return err
	}
	incidents, err := s.read.Incidents(ctx, store.IncidentFilter{
		EndpointID: o.ID, PublicOnly: true, Since: firstDay(time.Now()), Limit: maxIncidents,
	})
	if err != nil {
		return err
	}
	page := web.StatusEndpointPage{
		Frame:    s.frame(c, "/status"),
		Endpoint: publicRow(o, nil),
		Windows:  h.windows,
		Days:     h.days,
		Places:   placeRows(o, publicPlaces(o)),
	}
	for i := range page.Places {
		page.Places[i].Failure = nil // that is for whoever runs it
	}
	for _, i := range incidents.Items {
		page.Incidents = append(page.Incidents, publicIncidentRow(i))
	}
	return s.publicPage(c, page)
}

// firstDay is the beginning, in UTC, of the first of the days that end with today.
func firstDay(now time.Time) time.Time { return store.DayOf(now).AddDate(0, 0, 1-statusDays) }
