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
	Paused     bool
	Public     bool
	Tags       []string

	Status     store.Status
	Since      time.Time
	Failure    *probe.Failure
	Confirming int            // checks in a row that disagree with Status
	Pointing   store.Status   // where those checks point
	Unsettled  *probe.Failure // what they found
	Fresh      bool           // it was just registered
	Open       *IncidentRow   // the incident about it that is open; nil when there is none

	Checked time.Time // when the latest check began; zero when there was none
	Took    time.Duration
	Last    *Check // the newest check that is kept; nil when there is none

	Places []PlaceRow // empty when there is one only

	Windows   []Window
	History   History
	Range     RangeView
	Latency   LatencyChart
	Phases    *PhaseChart  // in place of Latency, where that is asked for
	Latencies []LatencyRow // of what the chart shows; whole checks first

	Checks  []Check
	Verdict probe.Verdict // only checks with this verdict are listed; empty for all
	Hour    time.Time     // only checks of this hour are listed; zero for the newest
	Chips   []RangeLink   // which verdicts can be chosen
	AnyHour string        // address of the list without Hour
	Older   string        // address of the page with older checks
	Newest  string        // address of the first page, empty on it

	Objectives  []ObjectiveView
	Maintenance *MaintenanceRow // that is under way; nil when none is

	Chain     *ChainView // of a chain node; nil when it is none
	Incidents []IncidentRow
	Contracts []Contract // that hold; the rest are on a page of their own
	Events    []Event
	Settings  Settings
}

func (EndpointPage) template() string { return "endpoint" }

// RangeView says what the chart shows, and leads to what else it can.
type RangeView struct {
	From, To time.Time
	Hours    bool // in buckets of an hour; otherwise of a day in UTC
	Phases   bool // by phase; otherwise by step
	Zoomed   bool // it is none of Links
	Links    []RangeLink
	Steps    string // address of the same by step
	Chart    string // and by phase
}

// RangeLink is one thing that can be chosen.
type RangeLink struct {
	Name   string
	Label  Said
	Link   string
	Chosen bool
}

// FromText and ToText are the ends as fields of a form hold them.
func (r RangeView) FromText() string { return r.From.UTC().Format("2006-01-02T15:04") }

// ToText is the end.
func (r RangeView) ToText() string { return r.To.UTC().Format("2006-01-02T15:04") }

// ChainView is the chain that a node serves, as it and its peers here see it.
type ChainView struct {
	ID          string
	Named       string // what a chain of that id is called; empty when nobody has said
	Height      *uint64
	HeightSince time.Time
	Pace        time.Duration // between two blocks, as measured; zero when that is not known yet
	Top         uint64        // the highest that any of Heads told of
	Heads       []HeadRow     // the highest first; this endpoint's own among them
}

// HeadRow is the newest block of a chain as one endpoint told of it.
type HeadRow struct {
	Name   string
	Own    bool // of the endpoint whose page it is
	Height uint64
	Behind uint64 // blocks behind the highest
	Hash   string
	Made   time.Time // by the chain's clock; zero when it does not tell
	Seen   time.Time
	Forked bool // another one told of another block at the same height
}

// Short is the beginning of the hash, enough to tell two apart.
func (r HeadRow) Short() string {
	const most = 14
	if runes := []rune(r.Hash); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return r.Hash
}

// Settings is how an endpoint is watched.
type Settings struct {
	Schedule     string
	Timeout      time.Duration
	DegradedOver time.Duration // zero: however slow
	Failures     int           // checks in a row that make an outage
	Successes    int
	After        time.Duration
	Locations    []string // none: all
	Quorum       int      // zero: the majority
	Channels     []ChannelRow
	DependsOn    []EndpointLink
}

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

// Told reports whether there is a failure that tells why the endpoint is as it is.
func (p EndpointPage) Told() bool {
	switch p.Status {
	case store.StatusDown, store.StatusDegraded, store.StatusGated, store.StatusUnknown:
		return p.Failure != nil
	}
	return false
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
	Budget   BudgetChart   // empty where a day is all there is
	Burns    []Burn        // empty while it is not known
}

// Goal says what is meant to be achieved: "99.9 % of checks good in 30 days".
func (o ObjectiveView) Goal() Said {
	target := figure(o.Target)
	if o.Under > 0 {
		return Say("%s %% of checks under %s in %d days", target, Latency(o.Under), o.Days)
	}
	return Say("%s %% of checks good in %d days", target, o.Days)
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

// Said says what is left of the error budget.
func (o ObjectiveView) Said() Said {
	switch {
	case o.Attained == nil:
		return Say("nothing measured yet")
	case o.Left <= -0.5:
		return Say("overspent by %s %%", strconv.FormatFloat(-o.Left, 'f', 0, 64))
	case o.Left <= 0:
		return Say("nothing left of the error budget")
	}
	return Say("%s %% of the error budget left", figure(math.Floor(o.Left*10)/10))
}

// figure is a number with as many decimals as it has.
type figure float64

func (f figure) in(l Language) string { return l.decimal(strconv.FormatFloat(float64(f), 'f', -1, 64)) }
func (f figure) String() string       { return f.in(english) }

// Alarm says how fast the budget goes, empty when it lasts: the thresholds are those of the alerts.
func (o ObjectiveView) Alarm() Said {
	switch o.Burning {
	case "":
		return Said{}
	case "fast":
		return Say("It burns more than 14 times too fast.")
	}
	return Say("It burns more than 6 times too fast.")
}
