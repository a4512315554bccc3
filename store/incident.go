package store

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Incident is a stretch in which an endpoint was not up. At most one is open per endpoint.
type Incident struct {
	ID         string
	EndpointID string
	Slug       string // of the endpoint, filled in by reads, as are Name and Public
	Name       string
	Public     bool
	Severity   Status // StatusDown
	StartedAt  time.Time
	OpenedAt   time.Time  // when it was confirmed
	ResolvedAt *time.Time // nil while open
	Resolution Resolution // empty while open
	Cause      probe.Failure
	Told       []string // ids of the channels that the opening was, or is to be, told to; filled in only where it is to be judged
}

// Resolution says how an incident ended.
type Resolution string

// The ways in which an incident ends.
const (
	ResolutionRecovered Resolution = "recovered"
	ResolutionPaused    Resolution = "paused" // somebody paused the endpoint
)

// IncidentStatus selects open or resolved incidents.
type IncidentStatus string

// The values of IncidentFilter.Status.
const (
	IncidentOpen     IncidentStatus = "open"
	IncidentResolved IncidentStatus = "resolved"
)

// IncidentFilter selects incidents. Zero members do not select.
type IncidentFilter struct {
	EndpointID string
	Status     IncidentStatus
	PublicOnly bool
	Since      time.Time // open then, or started since
	Limit      int
	Cursor     string
}
