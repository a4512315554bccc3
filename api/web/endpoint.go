package web

import (
	"math"
	"strconv"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// EndpointPage shows one endpoint: how it is and why, what it says of itself, and its history.
type EndpointPage struct {
	Frame
	Slug, Name string
	URL        string // redacted
	Kind       probe.Kind
	Schedule   string
	Timeout    time.Duration
	Paused     bool
	Public     bool
	Tags       []string
	Channels   []ChannelRow

	Status     store.Status
	Since      time.Time
	Failure    *probe.Failure
	Confirming int            // checks in a row that disagree with Status
	Pointing   store.Status   // where those checks point
	Unsettled  *probe.Failure // what they found

	Checked     time.Time     // when the latest check began; zero when there was none
	Took        time.Duration // how long that took
	Last        *Check        // the newest check that is kept; nil when there is none
	Height      *uint64
	HeightSince time.Time

	Places []PlaceRow // empty when there is one only

	Windows   []Window
	Hours     []Slot       // of the last 24 hours, oldest first
	Latencies []LatencyRow // of the last 24 hours; whole checks first

	Checks  []Check
	Verdict probe.Verdict // only checks with this verdict are listed; empty for all
	Older   string        // address of the page with older checks
	Newest  string        // address of the first page, empty on it

	Objectives  []ObjectiveView
	Maintenance *MaintenanceRow // that is under way; nil when none is

	Incidents []IncidentRow
	Contracts []Contract // those that hold first, then those before
	Events    []Event
	Badges    []Snippet
}

func (EndpointPage) template() string { return "endpoint" }

// Verdicts are those that the list of checks can be narrowed to.
func (EndpointPage) Verdicts() []probe.Verdict { return probe.Verdicts() }

// PlaceRow is an endpoint as seen from one location.
type PlaceRow struct {
	Location string
	Status   store.Status
	Since    time.Time
	Checked  time.Time // zero when never
	Took     time.Duration
	Failure  *probe.Failure // why Status is not up
	Dropped  bool           // the endpoint is no longer probed from there
}

// Window is an endpoint's uptime over some time.
type Window struct {
	Label    string // "24 hours"
	Uptime   *float64
	Coverage float64   // per cent of the checks that were due
	Since    time.Time // when measuring began, if that was within the window; otherwise zero
	Counts   store.Counts
}

// LatencyRow holds the percentiles of one step in milliseconds.
type LatencyRow struct {
	Step               string // empty for whole checks
	P50, P90, P95, P99 float64
}

// Snippet is text to copy.
type Snippet struct {
	ID, Label, Text string
}

// ExpiresSoon reports whether a certificate runs out within two weeks, which is when somebody should have renewed it.
func (p EndpointPage) ExpiresSoon() bool {
	return p.Last != nil && p.Last.Facts.TLSExpiresAt != nil && p.Last.Facts.TLSExpiresAt.Sub(p.Now) < 14*24*time.Hour
}

// ConfirmPage asks whether something that cannot be undone is meant.
type ConfirmPage struct {
	Frame
	Question string
	Detail   string
	Verb     string // on the button
	Action   string // address that the answer is posted to, as action=delete and confirmed=yes
	Back     string // address of where the visitor came from
}

func (ConfirmPage) template() string { return "confirm" }

// ObjectiveView is how an endpoint fares against an objective.
type ObjectiveView struct {
	Name     string
	Target   float64 // per cent
	Days     int
	Under    time.Duration // zero: however long it takes
	Attained *float64      // per cent; nil when nothing was measured
	Left     float64       // per cent of the error budget, below zero when it is overspent
	Burning  string        // "fast", "slow", or empty
}

// Goal says what is meant to be achieved: "99.9 % of checks good in 30 days".
func (o ObjectiveView) Goal() string {
	good := "good"
	if o.Under > 0 {
		good = "under " + latency(o.Under)
	}
	return strconv.FormatFloat(o.Target, 'f', -1, 64) + " % of checks " + good + " in " + strconv.Itoa(o.Days) + " " + plural(o.Days, "day", "days")
}

// Tone is how it stands at a glance.
func (o ObjectiveView) Tone() string {
	switch {
	case o.Attained == nil:
		return "pending"
	case o.Left <= 0 || o.Burning == "fast":
		return "down"
	case o.Left < 25 || o.Burning != "":
		return "degraded"
	}
	return "up"
}

// Width is how much of the bar is filled, in per cent of it.
func (o ObjectiveView) Width() float64 { return max(0, min(100, o.Left)) }

// Budget says what is left of the error budget.
func (o ObjectiveView) Budget() string {
	switch {
	case o.Attained == nil:
		return "nothing measured yet"
	case o.Left <= -0.5:
		return "overspent by " + strconv.FormatFloat(-o.Left, 'f', 0, 64) + " %"
	case o.Left <= 0:
		return "nothing left of the error budget"
	}
	return strconv.FormatFloat(math.Floor(o.Left*10)/10, 'f', -1, 64) + " % of the error budget left"
}

// Burns says how fast the budget goes, empty when it lasts: the thresholds are those of the alerts.
func (o ObjectiveView) Burns() string {
	switch o.Burning {
	case "":
		return ""
	case "fast":
		return "It burns more than 14 times too fast."
	}
	return "It burns more than 6 times too fast."
}
