package api

import (
	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// The shapes of Atlassian Statuspage's public API, which aggregators read. They have no word for "not known": what
// could not be told is degraded, what is not being checked is under maintenance.

type statuspage struct {
	Page        statuspagePage        `json:"page"`
	Status      *statuspageIndicator  `json:"status,omitempty"`
	Components  []statuspageComponent `json:"components,omitzero"`
	Incidents   []statuspageIncident  `json:"incidents,omitzero"`
	Maintenance []struct{}            `json:"scheduled_maintenances,omitzero"`
}

type statuspagePage struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	URL       string `json:"url"`
	TimeZone  string `json:"time_zone"`
	UpdatedAt *Time  `json:"updated_at"`
}

type statuspageIndicator struct {
	Indicator   string `json:"indicator"` // none, minor, major, critical
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

type statuspageUpdate struct {
	ID         string `json:"id"`
	IncidentID string `json:"incident_id"`
	Status     string `json:"status"`
	Body       string `json:"body"`
	CreatedAt  Time   `json:"created_at"`
	DisplayAt  Time   `json:"display_at"`
	UpdatedAt  Time   `json:"updated_at"`
}

// pageID names the one page that there is.
const pageID = "rollcall"

func (s *Server) statuspageSummary(c echo.Context) error {
	return s.statuspage(c, func(p publicStatus, answer *statuspage) {
		answer.Status = indicator(p)
		answer.Components = components(p)
		answer.Incidents = s.statuspageIncidentsOf(c, p, p.open())
		answer.Maintenance = []struct{}{}
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
	shared(c, s.linksCache())
	p, err := s.public(c.Request().Context())
	if err != nil {
		return err
	}
	answer := statuspage{Page: statuspagePage{
		ID:        pageID,
		Name:      "Rollcall",
		URL:       s.baseURL(c) + "/status",
		TimeZone:  "Etc/UTC",
		UpdatedAt: timeOf(&p.at),
	}}
	fill(p, &answer)
	return ok(c, answer)
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
		all = append(all, component(o, i+1))
	}
	return all
}

func component(o store.Overview, position int) statuspageComponent {
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
	return c
}

func (s *Server) statuspageIncidentsOf(c echo.Context, p publicStatus, incidents []store.Incident) []statuspageIncident {
	all := make([]statuspageIncident, 0, len(incidents))
	for _, i := range incidents {
		incident := statuspageIncidentOf(i)
		incident.Shortlink = s.baseURL(c) + "/status/" + i.Slug
		incident.Components = []statuspageComponent{}
		for at, o := range p.endpoints {
			if o.ID == i.EndpointID {
				incident.Components = append(incident.Components, component(o, at+1))
			}
		}
		all = append(all, incident)
	}
	return all
}

func statuspageIncidentOf(i store.Incident) statuspageIncident {
	begun := i
	begun.ResolvedAt = nil
	incident := statuspageIncident{
		ID:         i.ID,
		Name:       headline(i),
		Status:     "investigating",
		Impact:     "major",
		PageID:     pageID,
		CreatedAt:  Time{i.OpenedAt},
		StartedAt:  Time{i.StartedAt},
		UpdatedAt:  Time{i.OpenedAt},
		ResolvedAt: timeOf(i.ResolvedAt),
		Updates:    []statuspageUpdate{update(begun, "investigating", Time{i.OpenedAt})},
	}
	if i.ResolvedAt != nil {
		end := Time{*i.ResolvedAt}
		incident.Status, incident.UpdatedAt = "resolved", end
		incident.Updates = append([]statuspageUpdate{update(i, "resolved", end)}, incident.Updates...) // newest first
	}
	return incident
}

func update(i store.Incident, status string, at Time) statuspageUpdate {
	return statuspageUpdate{
		ID:         i.ID + "-" + status,
		IncidentID: i.ID,
		Status:     status,
		Body:       outcome(i),
		CreatedAt:  at,
		DisplayAt:  at,
		UpdatedAt:  at,
	}
}
