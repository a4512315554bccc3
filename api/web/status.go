package web

import (
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Site is a status page that is not the built-in one: what stands around its parts.
type Site struct {
	Name   string
	Home   string // address of the page itself
	Logo   string // address of the image; empty for none
	Accent string // address of the style sheet with its colours; empty where they are the usual ones
	Locked bool   // it takes a password
}

// Preferences is the address that a choice of how the pages look is posted to: where the page itself is.
func (f Frame) Preferences() string {
	if f.Site != nil {
		return strings.TrimSuffix(f.Site.Home, "/") + "/preferences"
	}
	return "/preferences"
}

// Home is the address of the status page that a page belongs to.
func (f Frame) Home() string {
	if f.Site != nil {
		return f.Site.Home
	}
	return "/status"
}

// Meta is what a status page tells programs that show links to it, and search engines.
type Meta struct {
	Title       string // how things stand, in words of a closed list
	Service     string // the name of the one that the page is about; empty where it is about all
	Description Said
	Name        string // of the whole page
	URL         string // its own address, whole
	Hidden      bool   // from search engines
}

// StatusPage is the public status page, or one of several. It holds nothing that is not public: no class, message, host or URL.
type StatusPage struct {
	Frame
	Meta      Meta
	Text      string // above everything else; may be empty
	Overall   store.Status
	Heading   string // the overall status in words of a closed list
	Endpoints []PublicRow
	Sections  []PublicSection // the same, in their sections
	Open      []PublicIncident
	Plans     []PublicPlan // under way, then ahead
	Recent    []PublicIncident
	Subscribe *SubscribeForm // nil where nobody can
	Feed      string         // address of the incident feed
	JSONFeed  string
	LLMs      string // address of the page as plain text
}

func (StatusPage) template() string { return "status" }

// PublicSection is a part of a status page.
type PublicSection struct {
	Title string // empty where the page has one part only
	Rows  []PublicRow
}

// PublicRow is what anybody may know of a public endpoint.
type PublicRow struct {
	Slug, Name string
	Path       string // address of its history
	Status     store.Status
	Maintained bool // it is under maintenance
	Since      time.Time
	Uptime     *float64 // over 90 days
	Days       []Slot   // oldest first; nil where there are too many endpoints for that
}

// Drawn reports whether the page has bars of days, and needs to say what they mean.
func (p StatusPage) Drawn() bool {
	return slices.ContainsFunc(p.Sections, func(s PublicSection) bool {
		return slices.ContainsFunc(s.Rows, func(r PublicRow) bool { return len(r.Days) > 0 })
	})
}

// Bars are the days of a row, drawn.
func (r PublicRow) Bars() DayBars { return DayBars(r.Days) }

// PublicLink leads to the history of an endpoint.
type PublicLink struct{ Path, Name string }

// PublicIncident is what anybody may know of an incident of a public endpoint, or of one that the team announces.
type PublicIncident struct {
	ID         string
	Kind       store.IncidentKind
	Name       string // of the endpoint, or what it is called
	Severity   store.Status
	StartedAt  time.Time
	ResolvedAt *time.Time
	Paused     bool           // it ended because nobody watches any more
	Endpoints  []PublicLink   // that it is about, where the name does not say so
	Updates    []PublicUpdate // latest first
}

// Lasted is how long the incident lasted, until now when it is open.
func (i PublicIncident) Lasted(now time.Time) time.Duration {
	if i.ResolvedAt != nil {
		return i.ResolvedAt.Sub(i.StartedAt)
	}
	return now.Sub(i.StartedAt)
}

// Story goes on where the name ends: "has been down for 12 min". What the team announces says it all in its name.
func (i PublicIncident) Story(now time.Time) Said {
	if i.Kind == store.IncidentManual {
		return Said{}
	}
	told := publicTale(i.Severity)
	if i.ResolvedAt != nil {
		return Say(told.was, Duration(i.Lasted(now)))
	}
	return Say(told.is, Duration(i.Lasted(now)))
}

// publicTale is what anybody is told of an incident, by how serious it is. That credentials are wanted is nobody's business.
func publicTale(severity store.Status) tale {
	switch severity {
	case store.StatusUnknown:
		return tale{is: "has been out of sight for %s", was: "was out of sight for %s"}
	case store.StatusDegraded, store.StatusGated:
		return tales[store.StatusDegraded]
	}
	return tales[store.StatusDown]
}

// Tone is the shape in which it is shown. That credentials are wanted is nobody's business: it is degraded.
func (i PublicIncident) Tone() string {
	switch {
	case i.ResolvedAt != nil:
		return "up"
	case i.Severity == store.StatusGated:
		return "degraded"
	}
	return tagOf(i.Severity).Tone
}

// PublicUpdate is something that the team said to everybody about an incident.
type PublicUpdate struct {
	Kind store.EntryKind
	At   time.Time
	Text string
}

// Words say what was done by it: one of a closed list.
func (u PublicUpdate) Words() string {
	switch u.Kind {
	case store.EntryOpened:
		return "Announced"
	case store.EntryAcknowledged:
		return "Being looked at"
	case store.EntryResolved:
		return "Resolved"
	case store.EntryReopened:
		return "Opened again"
	}
	return "Update"
}

// PublicPlan is a stretch of maintenance that anybody may know of.
type PublicPlan struct {
	ID, Title, Text string
	Begin, End      time.Time
	Active          bool // it is under way
	Recurs          bool
	All             bool         // everything is covered
	Endpoints       []PublicLink // that are covered
}

// StatusEndpointPage is the public history of one endpoint.
type StatusEndpointPage struct {
	Frame
	Meta      Meta
	Endpoint  PublicRow
	Places    []PlaceRow // empty when there is one only; without failures
	Windows   []Window
	Days      []Slot       // oldest first
	Plans     []PublicPlan // under way, then ahead
	Incidents []PublicIncident
	Subscribe string // address of the form, empty where nobody can
	Feed      string // address of the incident feed
}

func (StatusEndpointPage) template() string { return "status_endpoint" }

// SitePasswordPage asks for the password of a status page. It says nothing about the page.
type SitePasswordPage struct {
	Frame
	Action  string
	Problem string // what went wrong; may be empty
}

func (SitePasswordPage) template() string { return "status_password" }
