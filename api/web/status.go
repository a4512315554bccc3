package web

import (
	"fmt"
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
	Windows   []Window
	Days      []Day // oldest first
	Incidents []PublicIncident
}

func (StatusEndpointPage) template() string { return "status_endpoint" }

// Day is one day of an endpoint's history.
type Day struct {
	Date   time.Time
	Uptime *float64 // nil when nothing was measured
	Counts store.Counts
}

// Level puts a day into one of five classes, told apart by height as well as by colour.
func (d Day) Level() string {
	switch {
	case d.Uptime == nil:
		return "none"
	case *d.Uptime >= 100 && d.Counts.Degraded == 0:
		return "full"
	case *d.Uptime >= 99:
		return "good"
	case *d.Uptime >= 90:
		return "poor"
	}
	return "bad"
}

// Words describe a day for those who cannot see or hover.
func (d Day) Words() string {
	if d.Uptime == nil {
		return day(d.Date) + ": not measured"
	}
	words := fmt.Sprintf("%s: %s up", day(d.Date), percent(d.Uptime))
	if d.Counts.Degraded > 0 {
		words += fmt.Sprintf(", %d degraded %s", d.Counts.Degraded, plural(d.Counts.Degraded, "check", "checks"))
	}
	return words
}
