package web

import (
	"fmt"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// OverviewPage lists the endpoints, those with something wrong first.
type OverviewPage struct {
	Frame
	Filter    OverviewFilter
	Attention []EndpointRow // not up, worst first; empty while filtering by status
	Rest      []EndpointRow
	Next      string // address of the next page, empty on the last
	First     string // address of the first page, empty on it
	None      bool   // no endpoint is registered at all
}

func (OverviewPage) template() string { return "overview" }

// OverviewFilter is what the visitor searched for, as typed.
type OverviewFilter struct {
	Query, Status, Tag string
}

// Active reports whether anything was searched for.
func (f OverviewFilter) Active() bool { return f != OverviewFilter{} }

// EndpointRow is one endpoint at a glance.
type EndpointRow struct {
	Slug, Name string
	Host       string // of its URL
	Kind       probe.Kind
	Status     store.Status
	Since      time.Time
	Failure    *probe.Failure // why Status is not up
	Latency    time.Duration  // of the last check; zero when there was none
	Checked    time.Time      // zero when never
	Uptime     *float64       // over 24 hours, in per cent; nil when nothing was measured
	Tags       []string
	Maintained bool // under maintenance
}

// Troubled reports whether the endpoint's status asks for somebody's attention.
func (r EndpointRow) Troubled() bool {
	switch r.Status {
	case store.StatusDown, store.StatusDegraded, store.StatusGated, store.StatusUnknown:
		return true
	}
	return false
}

// Heading is the state of things in one line.
func (p OverviewPage) Heading() string {
	down := 0
	for _, r := range p.Attention {
		if r.Status == store.StatusDown {
			down++
		}
	}
	switch n := len(p.Attention); {
	case p.None:
		return "Nothing is watched yet"
	case p.Filter.Active():
		return "Endpoints"
	case p.First != "":
		return "More endpoints"
	case down > 0 && down == n:
		return fmt.Sprintf("%d %s down", down, plural(down, "endpoint is", "endpoints are"))
	case down > 0:
		return fmt.Sprintf("%d down, %d more %s attention", down, n-down, plural(n-down, "needs", "need"))
	case n > 0:
		return fmt.Sprintf("Nothing is down, %d %s attention", n, plural(n, "needs", "need"))
	}
	return p.calm()
}

// calm says how things stand when nothing is wrong that is known.
func (p OverviewPage) calm() string {
	up, pending := 0, 0
	for _, r := range p.Rest {
		switch r.Status {
		case store.StatusUp:
			up++
		case store.StatusPending:
			pending++
		}
	}
	switch {
	case pending > 0 && up == 0:
		return "Waiting for the first checks"
	case pending > 0:
		return "Everything answers so far"
	case up == 0:
		return "Everything is paused"
	}
	return "Everything answers"
}
