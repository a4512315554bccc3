package api

import (
	"cmp"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// The shapes of Atlassian Statuspage's public API, which aggregators read. They have no word for "not known": what
// could not be told is degraded, what is not being checked is under maintenance.

type statuspage struct {
	Page        statuspagePage          `json:"page"`
	Status      *statuspageIndicator    `json:"status,omitempty"`
	Components  []statuspageComponent   `json:"components,omitzero"`
	Incidents   []statuspageIncident    `json:"incidents,omitzero"`
	Maintenance []statuspageMaintenance `json:"scheduled_maintenances,omitzero"`
}

type statuspagePage struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	URL       string `json:"url"`
	TimeZone  string `json:"time_zone"`
	UpdatedAt *Time  `json:"updated_at"`
}

type statuspageIndicator struct {
	Indicator   string `json:"indicator"` // none, minor, major, critical, maintenance
	Description string `json:"description"`
}

type statuspageComponent struct {
	ID                 string  `json:"id"`
	Name               string  `json:"name"`
	Status             string  `json:"status"`
	CreatedAt          Time    `json:"created_at"`
	UpdatedAt          Time    `json:"updated_at"`
	Position           int     `json:"position"`
	Description        *string `json:"description"`
	Showcase           bool    `json:"showcase"`
	StartDate          *string `json:"start_date"`
	GroupID            *string `json:"group_id"`
	PageID             string  `json:"page_id"`
	Group              bool    `json:"group"`
	OnlyShowIfDegraded bool    `json:"only_show_if_degraded"`
}

type statuspageIncident struct {
	ID           string                `json:"id"`
	Name         string                `json:"name"`
	Status       string                `json:"status"` // investigating, resolved
	Impact       string                `json:"impact"`
	Shortlink    string                `json:"shortlink"`
	PageID       string                `json:"page_id"`
	CreatedAt    Time                  `json:"created_at"`
	StartedAt    Time                  `json:"started_at"`
	UpdatedAt    Time                  `json:"updated_at"`
	MonitoringAt *Time                 `json:"monitoring_at"`
	ResolvedAt   *Time                 `json:"resolved_at"`
	Updates      []statuspageUpdate    `json:"incident_updates"`
	Components   []statuspageComponent `json:"components"`
}

// statuspageMaintenance is an incident that lies ahead: scheduled, in_progress.
type statuspageMaintenance struct {
	statuspageIncident
	From Time `json:"scheduled_for"`
	To   Time `json:"scheduled_until"`
}

type statuspageUpdate struct {
	ID         string `json:"id"`
	IncidentID string `json:"incident_id"`
	Status     string `json:"status"`
	Body       string `json:"body"`
	CreatedAt  Time   `json:"created_at"`
	DisplayAt  Time   `json:"display_at"`
	UpdatedAt  Time   `json:"updated_at"`
}

// pageID names the built-in page.
const pageID = "rollcall"

func (s *Server) statuspageSummary(c echo.Context) error {
	return s.statuspage(c, func(p publicStatus, answer *statuspage) {
		answer.Status = indicator(p)
		answer.Components = components(p)
		answer.Maintenance = s.statuspageMaintenances(c, p)
		answer.Incidents = s.statuspageIncidentsOf(c, p, p.open())
	})
}

func (s *Server) statuspageStatus(c echo.Context) error {
	return s.statuspage(c, func(p publicStatus, answer *statuspage) { answer.Status = indicator(p) })
}

func (s *Server) statuspageComponents(c echo.Context) error {
	return s.statuspage(c, func(p publicStatus, answer *statuspage) { answer.Components = components(p) })
}

func (s *Server) statuspageIncidents(c echo.Context) error {
	return s.statuspage(c, func(p publicStatus, answer *statuspage) {
		answer.Incidents = s.statuspageIncidentsOf(c, p, p.incidents)
	})
}

// statuspage answers with the members that fill adds to the page's own.
func (s *Server) statuspage(c echo.Context, fill func(publicStatus, *statuspage)) error {
	v := s.siteOf(c)
	s.sharedSite(c, v, s.siteLinksCache(v))
	p, _, err := s.shownOn(c)
	if err != nil {
		return err
	}
	answer := statuspage{Page: statuspagePage{
		ID:        v.id(),
		Name:      v.name(),
		URL:       v.base + v.home(),
		TimeZone:  "Etc/UTC",
		UpdatedAt: timeOf(&p.at),
	}}
	fill(p, &answer)
	answer.of(v.id())
	return ok(c, answer)
}

// of names the page in every part of the answer.
func (a *statuspage) of(id string) {
	name := func(components []statuspageComponent) {
		for i := range components {
			components[i].PageID = id
		}
	}
	name(a.Components)
	for i := range a.Incidents {
		a.Incidents[i].PageID = id
		name(a.Incidents[i].Components)
	}
	for i := range a.Maintenance {
		a.Maintenance[i].PageID = id
		name(a.Maintenance[i].Components)
	}
}

func indicator(p publicStatus) *statuspageIndicator {
	i := &statuspageIndicator{Indicator: "none", Description: p.description()}
	switch p.description() {
	case "Major outage":
		i.Indicator = "critical"
	case "Partial outage":
		i.Indicator = "major"
	case "Degraded service", "Some statuses not known", "Status not known":
		i.Indicator = "minor"
	case "Under maintenance":
		i.Indicator = "maintenance"
	}
	return i
}

// componentStatus is the word of Statuspage for each of our statuses.
var componentStatus = map[store.Status]string{
	store.StatusUp:       "operational",
	store.StatusDegraded: "degraded_performance",
	store.StatusGated:    "degraded_performance",
	store.StatusUnknown:  "degraded_performance",
	store.StatusDown:     "major_outage",
	store.StatusPending:  "under_maintenance",
	store.StatusPaused:   "under_maintenance",
}

func components(p publicStatus) []statuspageComponent {
	all := make([]statuspageComponent, 0, len(p.endpoints))
	for i, o := range p.endpoints {
		all = append(all, p.component(o, i+1))
	}
	return all
}

func (p publicStatus) component(o store.Overview, position int) statuspageComponent {
	c := statuspageComponent{
		ID:        o.Slug,
		Name:      o.Name,
		Status:    componentStatus[o.Status()],
		CreatedAt: Time{o.CreatedAt},
		UpdatedAt: Time{o.UpdatedAt},
		Position:  position,
		PageID:    pageID,
	}
	if o.State.Since.After(o.UpdatedAt) {
		c.UpdatedAt = Time{o.State.Since}
	}
	if p.maintained[o.ID] {
		c.Status = "under_maintenance"
	}
	return c
}

// componentsOf returns those of some endpoints, in the order of the page.
func (p publicStatus) componentsOf(some []store.Overview) []statuspageComponent {
	all := []statuspageComponent{}
	for at, o := range p.endpoints {
		if slices.ContainsFunc(some, func(other store.Overview) bool { return other.ID == o.ID }) {
			all = append(all, p.component(o, at+1))
		}
	}
	return all
}

func (s *Server) statuspageIncidentsOf(c echo.Context, p publicStatus, incidents []store.Incident) []statuspageIncident {
	all := make([]statuspageIncident, 0, len(incidents))
	for _, i := range incidents {
		incident := p.statuspageIncident(i)
		incident.Shortlink = s.siteOf(c).incident(i)
		incident.Components = p.componentsOf(p.about(i))
		all = append(all, incident)
	}
	return all
}

// impacts are the words of Statuspage for severities.
var impacts = map[store.Status]string{
	store.StatusDown: "major", store.StatusDegraded: "minor", store.StatusGated: "minor", store.StatusUnknown: "minor",
}

func (p publicStatus) statuspageIncident(i store.Incident) statuspageIncident {
	begun := i
	begun.ResolvedAt = nil
	incident := statuspageIncident{
		ID:         i.ID,
		Name:       headline(i),
		Status:     "investigating",
		Impact:     cmp.Or(impacts[i.Severity], "major"),
		PageID:     pageID,
		CreatedAt:  Time{i.OpenedAt},
		StartedAt:  Time{i.StartedAt},
		UpdatedAt:  Time{p.changed(i)},
		ResolvedAt: timeOf(i.ResolvedAt),
	}
	updates := []statuspageUpdate{updateOf(i.ID, "investigating", "investigating", outcome(begun), Time{i.OpenedAt})}
	for _, e := range p.updates[i.ID] {
		status := "identified" // somebody looks after it
		switch e.Kind {
		case store.EntryOpened: // what was said at once stands in place of our own words
			updates = nil
			status = "investigating"
		case store.EntryReopened:
			status = "investigating"
		case store.EntryResolved:
			status = "resolved"
		}
		updates = append(updates, updateOf(i.ID, e.ID, status, e.Text, Time{e.At}))
		incident.Status = status
	}
	if i.ResolvedAt != nil {
		incident.Status = "resolved"
		if last := updates[len(updates)-1]; last.Status != "resolved" {
			updates = append(updates, updateOf(i.ID, "resolved", "resolved", outcome(i), Time{*i.ResolvedAt}))
			slices.SortStableFunc(updates, func(a, b statuspageUpdate) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
		}
	} else if incident.Status == "resolved" { // it was, for a while
		incident.Status = "investigating"
	}
	slices.Reverse(updates) // newest first
	incident.Updates = updates
	return incident
}

// updateOf returns an update, under a name that is unique within its incident.
func updateOf(incident, name, status, body string, at Time) statuspageUpdate {
	return statuspageUpdate{
		ID:         incident + "-" + name,
		IncidentID: incident,
		Status:     status,
		Body:       body,
		CreatedAt:  at,
		DisplayAt:  at,
		UpdatedAt:  at,
	}
}

func (s *Server) statuspageMaintenances(c echo.Context, p publicStatus) []statuspageMaintenance {
	all, v := []statuspageMaintenance{}, s.siteOf(c)
	for _, plan := range s.planned(p) {
		covers := plan.covers
		if plan.All {
			covers = p.endpoints
		}
		status := "scheduled"
		if plan.active {
			status = "in_progress"
		}
		all = append(all, statuspageMaintenance{
			From: Time{plan.begin}, To: Time{plan.end},
			statuspageIncident: statuspageIncident{
				ID:         plan.ID,
				Name:       plan.Title,
				Status:     status,
				Impact:     "maintenance",
				Shortlink:  v.base + v.home() + "#" + plan.ID,
				PageID:     pageID,
				CreatedAt:  Time{plan.CreatedAt},
				StartedAt:  Time{plan.begin},
				UpdatedAt:  Time{plan.UpdatedAt},
				Updates:    []statuspageUpdate{updateOf(plan.ID, status, status, plan.Text, Time{plan.UpdatedAt})},
				Components: p.componentsOf(covers),
			},
		})
	}
	return all
}
