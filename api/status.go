package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// What the public is told is made of names, slugs, statuses and times. No answer in this file, in statuspage.go, feed.go
// and badge.go holds a class, a code, a message, a host or a URL of an endpoint: those are for whoever runs it.

// publicStatus is what the public is told, before it is put into one of its shapes. Many requests share one: nothing in it changes.
type publicStatus struct {
	overall   store.Status
	endpoints []store.Overview // by name, or as the sections have them
	sections  []siteSection    // none on the built-in page
	incidents []store.Incident // newest first: the open ones, and those of the last 90 days
	// plans are the stretches of maintenance that the public is told of and that are not over, by their beginning, and
	// maintained the endpoints that are in one at present, by id.
	plans      []store.Maintenance
	maintained map[string]bool
	updates    map[string][]store.Entry // what the team has said to everybody about each incident, by its id, oldest first
	at         time.Time                // of the latest check of any of them
	now        time.Time
}

// recentIncidents is how far back incidents are told, and maxIncidents how many at most.
const (
	recentIncidents = 90 * 24 * time.Hour
	maxIncidents    = 100
)

// publicKinds are the kinds of incidents that the public is told of. That a credential will end, that a budget burns or that a
// location of ours is offline is for whoever runs the service.
var publicKinds = []store.IncidentKind{store.IncidentEndpoint, store.IncidentChain, store.IncidentManual}

// isShown reports whether an incident is one that the built-in status page shows.
func isShown(i store.Incident) bool { return i.Public && slices.Contains(publicKinds, i.Kind) }

// public returns what the public is told.
func (s *Server) public(ctx context.Context) (publicStatus, error) {
	return keep(ctx, s.kept, s.asOf("status"), s.readPublic)
}

// readPublic collects what the public is told.
func (s *Server) readPublic(ctx context.Context) (publicStatus, error) {
	now := time.Now()
	page, err := s.read.Endpoints(ctx, store.EndpointFilter{PublicOnly: true, Limit: -1})
	if err != nil {
		return publicStatus{}, err
	}
	incidents, err := s.read.Incidents(ctx, store.IncidentFilter{
		PublicOnly: true,
		Kinds:      publicKinds,
		Since:      now.Add(-recentIncidents),
		Limit:      maxIncidents,
	})
	if err != nil {
		return publicStatus{}, err
	}
	p := publicStatus{endpoints: page.Items, incidents: incidents.Items, maintained: map[string]bool{}, now: now}
	if err := s.addPlans(ctx, &p); err != nil {
		return publicStatus{}, err
	}
	if err := s.leaveToOthers(ctx, &p); err != nil {
		return publicStatus{}, err
	}
	p.sum()
	return p, s.addUpdates(ctx, &p)
}

// sum says what everything comes to.
func (p *publicStatus) sum() {
	p.overall = overall(p.attended())
	for _, i := range p.open() { // what somebody says is wrong is wrong, whatever the checks say
		if i.Kind == store.IncidentManual && severity[i.Severity] > severity[p.overall] {
			p.overall = i.Severity
		}
	}
	for _, o := range p.endpoints {
		if o.State.LastCheckAt.After(p.at) {
			p.at = o.State.LastCheckAt
		}
	}
}

// saidKinds are the kinds of entries in which the team says something to everybody. Others tell of causes and locations.
var saidKinds = []store.EntryKind{
	store.EntryOpened, store.EntryComment, store.EntryAcknowledged, store.EntrySnoozed, store.EntryResolved, store.EntryReopened,
}

// addUpdates adds what the team has said to everybody about the incidents.
func (s *Server) addUpdates(ctx context.Context, p *publicStatus) error {
	ids := make([]string, 0, len(p.incidents))
	for _, i := range p.incidents {
		ids = append(ids, i.ID)
	}
	updates, err := s.read.PublicEntries(ctx, ids)
	for id, entries := range updates {
		updates[id] = slices.DeleteFunc(entries, func(e store.Entry) bool { return !slices.Contains(saidKinds, e.Kind) })
	}
	p.updates = updates
	return err
}

// about returns the endpoints that the public may know an incident is about.
func (p publicStatus) about(i store.Incident) []store.Overview {
	return slices.DeleteFunc(slices.Clone(p.endpoints), func(o store.Overview) bool {
		return o.ID != i.EndpointID && !slices.Contains(i.Endpoints, o.ID)
	})
}

// changed is when the public last heard something else about an incident.
func (p publicStatus) changed(i store.Incident) time.Time {
	at := i.OpenedAt
	if i.ResolvedAt != nil {
		at = *i.ResolvedAt
	}
	if said := p.updates[i.ID]; len(said) > 0 && said[len(said)-1].At.After(at) {
		at = said[len(said)-1].At
	}
	return at
}

// publicPlan is a stretch of maintenance that the public is told of.
type publicPlan struct {
	store.Maintenance
	begin, end time.Time
	active     bool
	covers     []store.Overview // those that the public is shown; none when it covers everything
}

// maxPlans bounds how many stretches of maintenance the public is told of.
const maxPlans = 50

// planned returns the stretches of maintenance that are under way, or next, by their beginning.
func (s *Server) planned(p publicStatus) []publicPlan {
	var plans []publicPlan
	for _, m := range p.plans {
		active, next := s.underWay(m, p.now)
		if next == nil {
			continue
		}
		plan := publicPlan{Maintenance: m, begin: next.From.Time, end: next.To.Time, active: active}
		for _, o := range p.endpoints {
			if !m.All && m.Covers(o.Endpoint) {
				plan.covers = append(plan.covers, o)
			}
		}
		plans = append(plans, plan)
	}
	slices.SortStableFunc(plans, func(a, b publicPlan) int { return a.begin.Compare(b.begin) })
	return plans[:min(len(plans), maxPlans)]
}

// namesIn lists the names of endpoints in a sentence.
func namesIn(endpoints []store.Overview) string {
	names := make([]string, 0, len(endpoints))
	for _, o := range endpoints {
		names = append(names, o.Name)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// addPlans adds what the public is told of maintenance.
func (s *Server) addPlans(ctx context.Context, p *publicStatus) error {
	plans, err := s.read.Maintenances(ctx, p.now)
	if err != nil {
		return err
	}
	for _, m := range plans {
		if !m.Public {
			continue
		}
		p.plans = append(p.plans, m)
		if active, _ := s.underWay(m, p.now); !active {
			continue
		}
		for _, o := range p.endpoints {
			if m.Covers(o.Endpoint) {
				p.maintained[o.ID] = true
			}
		}
	}
	return nil
}

// attended returns the endpoints that are not under maintenance: what is announced is no outage. Where all are, it returns all.
func (p publicStatus) attended() []store.Overview {
	attended := slices.DeleteFunc(slices.Clone(p.endpoints), func(o store.Overview) bool { return p.maintained[o.ID] })
	if len(attended) == 0 {
		return p.endpoints
	}
	return attended
}

// publicCounts adds up the verdicts of the public endpoints in the hours or days since a time, by their ids.
func (s *Server) publicCounts(ctx context.Context, p publicStatus, grain store.Grain, from time.Time) (map[string]store.Counts, error) {
	return keep(ctx, s.kept, fmt.Sprint("counts ", grain), func(ctx context.Context) (map[string]store.Counts, error) {
		return s.countsOf(ctx, grain, from, p.endpoints)
	})
}

// countsOf adds up the verdicts of some endpoints since a time, by their ids.
func (s *Server) countsOf(ctx context.Context, grain store.Grain, from time.Time,
	endpoints ...[]store.Overview) (map[string]store.Counts, error) {
	var ids []string
	for _, list := range endpoints {
		for _, o := range list {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // a map that holds nothing
	}
	slices.Sort(ids)
	return s.read.Counts(ctx, slices.Compact(ids), grain, from)
}

// overall is what several endpoints together are: the worst of any. Those that are paused or pending say nothing,
// unless there is nobody else.
func overall(endpoints []store.Overview) store.Status {
	worst := store.StatusPending
	for _, o := range endpoints {
		if severity[o.Status()] > severity[worst] {
			worst = o.Status()
		}
	}
	return worst
}

// severity orders statuses by what they mean for somebody who looks at all of them together. One that could not be told
// keeps the rest from passing for all that there is. A gated endpoint is alive: it is worse than up and better than
// broken.
var severity = map[store.Status]int{
	store.StatusPending:  0,
	store.StatusPaused:   1,
	store.StatusUp:       2,
	store.StatusUnknown:  3,
	store.StatusGated:    4,
	store.StatusDegraded: 5,
	store.StatusDown:     6,
}

// description says in a sentence how things stand.
func (p publicStatus) description() string {
	number := map[store.Status]int{}
	attended := p.attended()
	for _, o := range attended {
		number[o.Status()]++
	}
	switch {
	case len(p.endpoints) == 0 && p.overall == store.StatusPending:
		return "Nothing is published"
	case len(p.endpoints) > 0 && len(p.maintained) == len(p.endpoints):
		return "Under maintenance"
	case len(attended) > 0 && number[store.StatusDown] == len(attended):
		return "Major outage"
	case p.overall == store.StatusDown:
		return "Partial outage"
	case p.overall == store.StatusDegraded, p.overall == store.StatusGated:
		return "Degraded service"
	case p.overall == store.StatusUnknown && number[store.StatusUp] > 0:
		return "Some statuses not known"
	case p.overall == store.StatusUp:
		return "All systems operational"
	}
	return "Status not known"
}

// open returns the incidents that are not over.
func (p publicStatus) open() []store.Incident {
	return slices.DeleteFunc(slices.Clone(p.incidents), func(i store.Incident) bool { return i.ResolvedAt != nil })
}

// PublicStatus is the answer of /api/v1/status.
type PublicStatus struct {
	Status      store.Status     `json:"status"` // the worst of any endpoint
	Description string           `json:"description"`
	CheckedAt   *Time            `json:"checked_at"` // of the latest check; null before the first
	Endpoints   []PublicEndpoint `json:"endpoints"`
	Incidents   []PublicIncident `json:"incidents"` // open ones
}

// PublicEndpoint is what the public is told of an endpoint.
type PublicEndpoint struct {
	Slug   string       `json:"slug"`
	Name   string       `json:"name"`
	Status store.Status `json:"status"`
	Since  *Time        `json:"since"`
	// Maintenance means that it is under maintenance that the public is told of.
	Maintenance bool     `json:"maintenance,omitempty"`
	Uptime24h   *float64 `json:"uptime_24h"` // per cent; null when nothing was measured
	// Places are how it looks from each location, where there is more than one.
	Places []PublicPlace `json:"places"`
}

// PublicPlace is what the public is told of an endpoint at one location.
type PublicPlace struct {
	Location string       `json:"location"`
	Status   store.Status `json:"status"`
	Since    *Time        `json:"since"`
}

// PublicIncident is what the public is told of an incident.
type PublicIncident struct {
	ID         string               `json:"id"`
	Endpoint   *string              `json:"endpoint"` // slug; null when it is about none, or about several
	Name       string               `json:"name"`     // of the endpoint, or the title
	Status     store.IncidentStatus `json:"status"`
	StartedAt  Time                 `json:"started_at"`
	ResolvedAt *Time                `json:"resolved_at"`
}

// publicCache lets others keep what the public is told. With the time that we keep it ourselves, Config.KeepPublic, nobody is told
// what is older than a quarter of a minute.
const publicCache = "public, max-age=10"

// maxKeepPublic is the rest of that.
const maxKeepPublic = 5 * time.Second

// linksCache is publicCache for answers that hold links. Without a public URL these follow the Host of the request, which
// its sender makes up: a cache that serves others must not keep them.
func (s *Server) linksCache() string {
	if s.cfg.PublicURL == "" {
		return "private, max-age=10"
	}
	return publicCache
}

func (s *Server) getStatus(c echo.Context) error {
	shared(c, publicCache)
	ctx := c.Request().Context()
	p, err := s.public(ctx)
	if err != nil {
		return err
	}
	counts, err := s.publicCounts(ctx, p, store.Hourly, store.HourOf(p.now.Add(-24*time.Hour)))
	if err != nil {
		return err
	}
	answer := PublicStatus{
		Status:      p.overall,
		Description: p.description(),
		CheckedAt:   timeOf(&p.at),
		Endpoints:   make([]PublicEndpoint, 0, len(p.endpoints)),
		Incidents:   []PublicIncident{},
	}
	for _, o := range p.endpoints {
		e := publicEndpoint(o, counts[o.ID])
		e.Maintenance = p.maintained[o.ID]
		answer.Endpoints = append(answer.Endpoints, e)
	}
	for _, i := range p.open() {
		answer.Incidents = append(answer.Incidents, publicIncident(i))
	}
	return ok(c, answer)
}

func publicEndpoint(o store.Overview, day store.Counts) PublicEndpoint {
	e := PublicEndpoint{Slug: o.Slug, Name: o.Name, Status: o.Status(), Since: timeOf(&o.State.Since), Places: []PublicPlace{}}
	for _, p := range publicPlaces(o) {
		e.Places = append(e.Places, PublicPlace{p.Location, placeStatus(o, p), timeOf(&p.State.Since)})
	}
	if percent, measured := day.Uptime(); measured {
		e.Uptime24h = new(floor3(percent))
	}
	return e
}

// placesOf returns the places of an endpoint by location, with those that it names and that nobody has checked it from yet.
func placesOf(o store.Overview) []store.Place {
	places := slices.Clone(o.Places)
	for _, name := range o.Locations {
		if !slices.ContainsFunc(o.Places, func(p store.Place) bool { return p.Location == name }) {
			places = append(places, store.Place{EndpointID: o.ID, Location: name, State: store.State{Status: store.StatusPending}})
		}
	}
	slices.SortFunc(places, func(a, b store.Place) int { return cmp.Compare(a.Location, b.Location) })
	return places
}

// publicPlaces returns the places that an endpoint is probed from when there are several: one alone says nothing that its
// endpoint does not.
func publicPlaces(o store.Overview) []store.Place {
	places := slices.DeleteFunc(placesOf(o), func(p store.Place) bool { return !o.ProbedFrom(p.Location) })
	if len(places) < 2 {
		return nil
	}
	return places
}

// placeStatus returns the status to show of a place.
func placeStatus(o store.Overview, p store.Place) store.Status {
	return store.Overview{Endpoint: o.Endpoint, State: p.State}.Status()
}

func publicIncident(i store.Incident) PublicIncident {
	return PublicIncident{
		ID:         i.ID,
		Endpoint:   textOrNull(i.Slug),
		Name:       cmp.Or(i.Name, i.Title),
		Status:     incidentStatus(i),
		StartedAt:  Time{i.StartedAt},
		ResolvedAt: timeOf(i.ResolvedAt),
	}
}

// headline names an incident for the public.
func headline(i store.Incident) string {
	name := cmp.Or(i.Name, i.Slug)
	switch {
	case i.Title != "":
		return i.Title
	case i.Severity == store.StatusDegraded, i.Severity == store.StatusGated:
		return name + " is degraded"
	case i.Severity == store.StatusUnknown:
		return "The status of " + name + " is not known"
	}
	return name + " is down"
}

// outcome says in a sentence, for the public, how an incident stands.
func outcome(i store.Incident) string {
	name := cmp.Or(i.Name, i.Slug)
	switch {
	case i.Title != "" && i.ResolvedAt == nil:
		return "It is not over yet."
	case i.Title != "":
		return "It is over, after " + lasted(i) + "."
	case i.ResolvedAt == nil:
		return name + " does not answer as it should."
	case i.Resolution == store.ResolutionPaused:
		return "Monitoring of " + name + " was paused."
	}
	return name + " answers again, after " + lasted(i) + "."
}

// lasted is the length of a resolved incident in words: to the second, to the minute when longer than an hour.
func lasted(i store.Incident) string {
	d := i.ResolvedAt.Sub(i.StartedAt)
	if d > time.Hour {
		d = d.Round(time.Minute)
	}
	return durationText(max(time.Second, d.Round(time.Second)))
}
