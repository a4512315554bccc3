package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// How much of the past the public status pages show.
const (
	statusDays     = 90
	recentForPages = 14 * 24 * time.Hour
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
	counts, err := s.publicCounts(ctx, p, store.Daily, firstDay(now))
	if err != nil {
		return err
	}
	var shown []store.Incident
	for _, i := range p.incidents {
		if i.ResolvedAt == nil || now.Sub(*i.ResolvedAt) < recentForPages {
			shown = append(shown, i)
		}
	}
	page := web.StatusPage{
		Frame: s.frame(c, "/status"), Overall: p.overall, Heading: p.description(), Plans: planRows(s.planned(p)),
		Feed: feedPath, JSONFeed: jsonFeedPath, Subscribe: s.subscribeForm(p.endpoints, store.Subscription{All: true}),
	}
	for _, o := range p.endpoints {
		row := publicRow(o, percentOf(counts[o.ID]))
		row.Maintained = p.maintained[o.ID]
		page.Endpoints = append(page.Endpoints, row)
	}
	for _, i := range shown {
		if i.ResolvedAt == nil {
			page.Open = append(page.Open, p.incidentRow(i))
		} else {
			page.Recent = append(page.Recent, p.incidentRow(i))
		}
	}
	return s.publicPage(c, page)
}

func publicRow(o store.Overview, uptime *float64) web.PublicRow {
	return web.PublicRow{Slug: o.Slug, Name: o.Name, Status: o.Status(), Since: o.State.Since, Uptime: uptime}
}

// incidentRow is what the public is shown of an incident.
func (p publicStatus) incidentRow(i store.Incident) web.PublicIncident {
	row := web.PublicIncident{
		ID: i.ID, Kind: i.Kind, Name: cmp.Or(i.Name, i.Title), Severity: i.Severity, StartedAt: i.StartedAt, ResolvedAt: i.ResolvedAt,
		Paused: i.Resolution == store.ResolutionPaused,
	}
	if i.Kind == store.IncidentManual {
		row.Name = i.Title
	}
	if i.Kind != store.IncidentEndpoint {
		row.Endpoints = publicLinks(p.about(i))
	}
	for _, e := range slices.Backward(p.updates[i.ID]) { // the latest is what people come for
		row.Updates = append(row.Updates, web.PublicUpdate{Kind: e.Kind, At: e.At, Text: e.Text})
	}
	return row
}

// publicLinks names endpoints and leads to their public pages.
func publicLinks(endpoints []store.Overview) []web.EndpointLink {
	links := make([]web.EndpointLink, 0, len(endpoints))
	for _, o := range endpoints {
		links = append(links, web.EndpointLink{Slug: o.Slug, Name: o.Name})
	}
	return links
}

func planRows(plans []publicPlan) []web.PublicPlan {
	rows := make([]web.PublicPlan, 0, len(plans))
	for _, p := range plans {
		rows = append(rows, web.PublicPlan{
			ID: p.ID, Title: p.Title, Text: p.Text, Begin: p.begin, End: p.end, Active: p.active, Recurs: p.Schedule != "",
			All: p.All, Endpoints: publicLinks(p.covers),
		})
	}
	return rows
}

// pageStatusEndpoint shows the public history of an endpoint. One that is not public is not there.
func (s *Server) pageStatusEndpoint(c echo.Context) error {
	return s.statusEndpoint(c, c.Param("slug"))
}

func (s *Server) statusEndpoint(c echo.Context, slug string) error {
	seen, err := keep(c.Request().Context(), s.kept, "endpoint "+slug, func(ctx context.Context) (publicEndpointPast, error) {
		return s.publicPast(ctx, slug)
	})
	if err != nil {
		return err
	}
	o, p := seen.Overview, seen.publicStatus
	page := web.StatusEndpointPage{
		Frame:    s.frame(c, "/status"),
		Endpoint: publicRow(o, nil),
		Windows:  seen.windows,
		Days:     seen.days,
		Places:   placeRows(o, publicPlaces(o)),
		Plans:    planRows(s.planned(p)),
		Feed:     feedPath,
	}
	page.Endpoint.Maintained = p.maintained[o.ID]
	if len(s.subscribable()) > 0 {
		page.Subscribe = subscribePath + "?" + url.Values{"endpoint": {o.Slug}}.Encode()
	}
	for i := range page.Places {
		page.Places[i].Failure = nil // that is for whoever runs it
	}
	for _, i := range p.incidents {
		page.Incidents = append(page.Incidents, p.incidentRow(i))
	}
	return s.publicPage(c, page)
}

// publicEndpointPast is what the public is told of one endpoint. Many requests share one: nothing in it changes.
type publicEndpointPast struct {
	store.Overview
	history
	publicStatus
}

// publicPast collects what the public is told of one endpoint; store.ErrNotFound when it is not public.
func (s *Server) publicPast(ctx context.Context, slug string) (seen publicEndpointPast, err error) {
	if seen.Overview, err = s.read.Endpoint(ctx, slug); err != nil {
		return seen, err
	}
	if !seen.Public {
		return seen, store.ErrNotFound
	}
	if seen.history, err = s.history(ctx, seen.Endpoint); err != nil {
		return seen, err
	}
	incidents, err := s.read.Incidents(ctx, store.IncidentFilter{
		EndpointID: seen.ID, PublicOnly: true, Kinds: publicKinds, Since: firstDay(time.Now()), Limit: maxIncidents,
	})
	if err != nil {
		return seen, err
	}
	seen.publicStatus, err = s.about(ctx, seen.Overview, incidents.Items)
	return seen, err
}

// about returns what the public is told of one endpoint: some of its incidents, and the maintenance that covers it.
func (s *Server) about(ctx context.Context, o store.Overview, incidents []store.Incident) (publicStatus, error) {
	p := publicStatus{endpoints: []store.Overview{o}, incidents: incidents, maintained: map[string]bool{}, now: time.Now()}
	if err := s.addPlans(ctx, &p); err != nil {
		return p, err
	}
	p.plans = slices.DeleteFunc(p.plans, func(m store.Maintenance) bool { return !m.Covers(o.Endpoint) })
	return p, s.addUpdates(ctx, &p)
}

// firstDay is the beginning, in UTC, of the first of the days that end with today.
func firstDay(now time.Time) time.Time { return store.DayOf(now).AddDate(0, 0, 1-statusDays) }
