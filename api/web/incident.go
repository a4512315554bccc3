package web

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// IncidentsPage lists incidents, open ones first.
type IncidentsPage struct {
	Frame
	Open     []IncidentRow // empty on later pages
	Resolved []IncidentRow
	Next     string // address of the next page, empty on the last
	First    string // address of the first page, empty on it
}

func (IncidentsPage) template() string { return "incidents" }

// IncidentRow is one incident in a list.
type IncidentRow struct {
	ID, Slug, Name string
	StartedAt      time.Time
	OpenedAt       time.Time
	ResolvedAt     *time.Time // nil while open
	Resolution     store.Resolution
	Cause          probe.Failure
}

// Lasted is how long the incident lasted, until now when it is open.
func (r IncidentRow) Lasted(now time.Time) time.Duration {
	if r.ResolvedAt != nil {
		return r.ResolvedAt.Sub(r.StartedAt)
	}
	return now.Sub(r.StartedAt)
}

// IncidentPage shows one incident from its first bad check to its end.
type IncidentPage struct {
	Frame
	Incident IncidentRow
	Checks   []Check // around its beginning and its end, newest first
}

func (IncidentPage) template() string { return "incident" }
