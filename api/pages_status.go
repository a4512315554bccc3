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
	v := s.siteOf(c)
	if v.page != nil {
		if v.page.Public() { // it names nobody who is logged in
			c.Response().Header().Set("Cache-Control", s.siteLinksCache(v))
		}
		return s.render(c, http.StatusOK, page)
	}
	if _, loggedIn := s.user(c); !loggedIn {
		c.Response().Header().Set("Cache-Control", publicCache)
	}
	return s.render(c, http.StatusOK, page)
}

func (s *Server) pageStatus(c echo.Context) error {
	ctx := c.Request().Context()
	p, v, err := s.shownOn(c)
	if err != nil {
		return err
	}
	var shown []store.Incident
	for _, i := range p.incidents {
		if i.ResolvedAt == nil || p.now.Sub(*i.ResolvedAt) < recentForPages {
			shown = append(shown, i)
		}
	}
	page := web.StatusPage{
		Frame: s.frame(c, "/status"), Overall: p.overall, Heading: p.description(), Plans: planRows(v, s.planned(p)),
		Meta: p.meta(v), Feed: v.path("/feed.atom"), JSONFeed: v.path("/feed.json"), LLMs: v.api("/llms.txt"),
		Subscribe: s.subscribeForm(v, p.endpoints, store.Subscription{All: true}),
	}
	if v.page != nil {
		page.Text = v.page.Text
	}
	if page.Sections, err = s.publicSections(ctx, v, p); err != nil {
		return err
	}
	for _, section := range page.Sections {
		page.Endpoints = append(page.Endpoints, section.Rows...)
	}
	for _, i := range shown {
		if i.ResolvedAt == nil {
			page.Open = append(page.Open, p.incidentRow(v, i))
		} else {
			page.Recent = append(page.Recent, p.incidentRow(v, i))
		}
	}
	return s.publicPage(c, page)
}

// maxBars is up to how many endpoints a page draws a bar for each day of: more would be neither quick nor read.
const maxBars = 100

// publicSections returns the endpoints of a page in their sections, of which the built-in page has one.
func (s *Server) publicSections(ctx context.Context, v site, p publicStatus) ([]web.PublicSection, error) {
	past, err := keep(ctx, s.kept, "days "+v.keptAs(), func(ctx context.Context) (publicDays, error) { return s.daysOf(ctx, p) })
	if err != nil {
		return nil, err
	}
	parts := p.sections
	if v.page == nil {
		parts = []siteSection{{endpoints: p.endpoints}}
	}
	sections := make([]web.PublicSection, 0, len(parts))
	for _, part := range parts {
		section := web.PublicSection{Title: part.title}
		for _, o := range part.endpoints {
			row := publicRow(v, o, percentOf(past.counts[o.ID]))
			row.Maintained, row.Days = p.maintained[o.ID], past.days[o.ID]
			section.Rows = append(section.Rows, row)
		}
		sections = append(sections, section)
	}
	return sections, nil
}

// publicDays are the last days of endpoints and what each endpoint's come to, by their ids. Many requests share one: nothing in it
// changes.
type publicDays struct {
	days   map[string][]web.Slot
	counts map[string]store.Counts
}

// daysOf returns the last days of the endpoints of a page: only what they come to, where they are too many to be drawn.
func (s *Server) daysOf(ctx context.Context, p publicStatus) (publicDays, error) {
	first := firstDay(p.now)
	if len(p.endpoints) == 0 || len(p.endpoints) > maxBars {
		counts, err := s.countsOf(ctx, store.Daily, first, p.endpoints)
		return publicDays{nil, counts}, err
	}
	ids := make([]string, 0, len(p.endpoints))
	for _, o := range p.endpoints {
		ids = append(ids, o.ID)
	}
	rollups, err := s.read.Rollups(ctx, ids, store.Daily, first)
	if err != nil {
		return publicDays{}, err
	}
	type day struct {
		id    string
		begin int64
	}
	byDay, counts := map[day]store.Counts{}, map[string]store.Counts{}
	for _, r := range rollups {
		at := day{r.EndpointID, r.Begin.Unix()}
		byDay[at], counts[r.EndpointID] = byDay[at].Plus(r.Counts), counts[r.EndpointID].Plus(r.Counts)
	}
	days := map[string][]web.Slot{}
	for _, o := range p.endpoints {
		for at := first; at.Before(p.now); at = at.AddDate(0, 0, 1) {
			slot := web.Slot{Begin: at, Counts: byDay[day{o.ID, at.Unix()}]}
			slot.Uptime = percentOf(slot.Counts)
			slot.Before = slot.Counts.Total() == 0 && !at.AddDate(0, 0, 1).After(o.CreatedAt)
			slot.Missed = slot.Counts.Total() == 0 && !slot.Before
			days[o.ID] = append(days[o.ID], slot)
		}
	}
	return publicDays{days, counts}, nil
}

// meta is what a page says of itself to programs that show links to it.
func (p publicStatus) meta(v site) web.Meta {
	return web.Meta{
		Title: p.description(), Description: p.inShort(), Name: v.name(), URL: v.canonical(v.home()), Hidden: v.hidden(),
	}
}

// inShort says in a sentence or two how things stand.
func (p publicStatus) inShort() web.Said {
	up := 0
	for _, o := range p.endpoints {
		if o.Status() == store.StatusUp {
			up++
		}
	}
	open := len(p.open())
	switch {
	case len(p.endpoints) == 0:
		return web.Say("The status of our services.")
	case open > 0:
		return web.Say("%d of %d services are up; incidents that are not over: %d.", up, len(p.endpoints), open)
	}
	return web.Say("%d of %d services are up.", up, len(p.endpoints))
}

func publicRow(v site, o store.Overview, uptime *float64) web.PublicRow {
	return web.PublicRow{
		Slug: o.Slug, Path: v.endpoint(o.Slug), Name: o.Name, Status: o.Status(), Since: o.State.Since, Uptime: uptime,
	}
}

// incidentRow is what the public is shown of an incident.
func (p publicStatus) incidentRow(v site, i store.Incident) web.PublicIncident {
	row := web.PublicIncident{
		ID: i.ID, Kind: i.Kind, Name: cmp.Or(i.Name, i.Title), Severity: i.Severity, StartedAt: i.StartedAt, ResolvedAt: i.ResolvedAt,
		Paused: i.Resolution == store.ResolutionPaused,
	}
	if i.Kind == store.IncidentManual {
		row.Name = i.Title
	}
	if i.Kind != store.IncidentEndpoint {
		row.Endpoints = publicLinks(v, p.about(i))
	}
	for _, e := range slices.Backward(p.updates[i.ID]) { // the latest is what people come for
		row.Updates = append(row.Updates, web.PublicUpdate{Kind: e.Kind, At: e.At, Text: e.Text})
	}
	return row
}

// publicLinks names endpoints and leads to their public pages.
func publicLinks(v site, endpoints []store.Overview) []web.PublicLink {
	links := make([]web.PublicLink, 0, len(endpoints))
	for _, o := range endpoints {
		links = append(links, web.PublicLink{Path: v.endpoint(o.Slug), Name: o.Name})
	}
	return links
}

func planRows(v site, plans []publicPlan) []web.PublicPlan {
	rows := make([]web.PublicPlan, 0, len(plans))
	for _, p := range plans {
		rows = append(rows, web.PublicPlan{
			ID: p.ID, Title: p.Title, Text: p.Text, Begin: p.begin, End: p.end, Active: p.active, Recurs: p.Schedule != "",
			All: p.All, Endpoints: publicLinks(v, p.covers),
		})
	}
	return rows
}

// pageSiteEndpoint shows the history of an endpoint that is on a page.
func (s *Server) pageSiteEndpoint(c echo.Context) error { return s.statusEndpoint(c, c.Param("id")) }

// pageStatusEndpoint shows the public history of an endpoint. One that is not public is not there.
func (s *Server) pageStatusEndpoint(c echo.Context) error {
	return s.statusEndpoint(c, c.Param("slug"))
}

func (s *Server) statusEndpoint(c echo.Context, slug string) error {
	v := s.siteOf(c)
	seen, err := keep(c.Request().Context(), s.kept, s.asOf("endpoint "+v.keptAs()+" "+slug), func(ctx context.Context) (publicEndpointPast, error) {
		return s.publicPast(ctx, v, slug)
	})
	if err != nil {
		return err
	}
	o, p := seen.Overview, seen.publicStatus
	page := web.StatusEndpointPage{
		Frame:    s.frame(c, "/status"),
		Meta:     p.meta(v),
		Endpoint: publicRow(v, o, nil),
		Windows:  seen.windows,
		Days:     seen.days,
		Places:   placeRows(o, publicPlaces(o)),
		Plans:    planRows(v, s.planned(p)),
		Feed:     v.path("/feed.atom"),
	}
	page.Endpoint.Maintained = p.maintained[o.ID]
	page.Meta.Service, page.Meta.URL = o.Name, v.canonical(v.endpoint(o.Slug))
	if len(s.subscribable()) > 0 {
		page.Subscribe = v.path(subscribePart) + "?" + url.Values{"endpoint": {o.Slug}}.Encode()
	}
	for i := range page.Places {
		page.Places[i].Failure = nil // that is for whoever runs it
	}
	for _, i := range p.incidents {
		page.Incidents = append(page.Incidents, p.incidentRow(v, i))
	}
	return s.publicPage(c, page)
}

// publicEndpointPast is what the public is told of one endpoint. Many requests share one: nothing in it changes.
type publicEndpointPast struct {
	store.Overview
	history
	publicStatus
}

// publicPast collects what is told of one endpoint on a status page; store.ErrNotFound when it is not there.
func (s *Server) publicPast(ctx context.Context, v site, slug string) (seen publicEndpointPast, err error) {
	if seen.Overview, err = s.onSite(ctx, v, slug); err != nil {
		return seen, err
	}
	if seen.history, err = s.history(ctx, seen.Endpoint); err != nil {
		return seen, err
	}
	incidents, err := s.read.Incidents(ctx, store.IncidentFilter{
		EndpointID: seen.ID, PublicOnly: v.page == nil, Kinds: publicKinds, Since: firstDay(time.Now()), Limit: maxIncidents,
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
