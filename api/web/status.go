package web

import (
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// StatusPage is the public status page. It holds nothing that is not public: no class, message, host or URL.
type StatusPage struct {
	Frame
	Overall   store.Status
	Heading   string // the overall status in words
	Endpoints []PublicRow
	Open      []PublicIncident
	Recent    []PublicIncident
	Feed      string // address of the incident feed
}

func (StatusPage) template() string { return "status" }

// PublicRow is what anybody may know of a public endpoint.
type PublicRow struct {
	Slug, Name string
	Status     store.Status
	Since      time.Time
	Uptime     *float64 // over 90 days
}

// PublicIncident is what anybody may know of an incident of a public endpoint.
type PublicIncident struct {
	Slug, Name string
	StartedAt  time.Time
	ResolvedAt *time.Time
}

// Lasted is how long the incident lasted, until now when it is open.
func (i PublicIncident) Lasted(now time.Time) time.Duration {
	if i.ResolvedAt != nil {
		return i.ResolvedAt.Sub(i.StartedAt)
	}
	return now.Sub(i.StartedAt)
}

// StatusEndpointPage is the public history of one endpoint.
type StatusEndpointPage struct {
	Frame
	Endpoint  PublicRow
	Places    []PlaceRow // empty when there is one only; without failures
	Windows   []Window
	Days      []Slot // oldest first
	Incidents []PublicIncident
}

func (StatusEndpointPage) template() string { return "status_endpoint" }
