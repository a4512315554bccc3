package web

import "time"

// MaintenancePage lists what is planned.
type MaintenancePage struct {
	Frame
	UnderWay []MaintenanceRow
	Planned  []MaintenanceRow
	Over     []MaintenanceRow
}

func (MaintenancePage) template() string { return "maintenance" }

// MaintenanceRow is one maintenance in a list.
type MaintenanceRow struct {
	ID, Title string
	Begin     time.Time // of the stretch that is under way, or next, or was last; zero when it is not known
	End       time.Time // likewise
	Schedule  string    // of one that recurs
	Duration  time.Duration
	Covers    List // "everything", "2 endpoints, tag prod"
	Public    bool
	Author    string
}

// PlannedPage shows a maintenance to somebody who may not change it.
type PlannedPage struct {
	Frame
	Row          MaintenanceRow
	Text         string // what to expect
	Active, Over bool
	All          bool           // it covers every endpoint
	Endpoints    []EndpointLink // that it covers by name
	Tags         []string       // whose endpoints it covers
}

func (PlannedPage) template() string { return "planned" }

// MaintenanceFormPage plans a maintenance, or edits one.
type MaintenanceFormPage struct {
	Frame
	ID       string // of the one that is edited; empty for a new one
	Title    string // of the one that is edited, as kept
	Form     MaintenanceForm
	Picker   Picker
	Problems Problems
}

func (MaintenanceFormPage) template() string { return "maintenance_form" }

// Action is the address that the form is posted to.
func (p MaintenanceFormPage) Action() string {
	if p.ID == "" {
		return "/maintenance/new"
	}
	return "/maintenance/" + p.ID
}

// MaintenanceForm is a maintenance as somebody typed it. Times are in UTC, as datetime-local has them.
type MaintenanceForm struct {
	Title, Text        string
	Recurs             bool
	StartsAt, EndsAt   string
	Schedule, Duration string
	All                bool
	Tags               string // separated by commas
	Public             bool
}
