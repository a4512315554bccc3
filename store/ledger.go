package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Ledger works out what a group of checks changes, without a database, so that every database does the same. A driver
// fills in what is kept about the endpoints of the group, calls Enter once and writes the Entries, all in one
// transaction in which nobody else can change those endpoints.
type Ledger struct {
	Standings map[string]*Standing // by endpoint id; endpoints that are gone are missing
	Kept      map[Slot]bool        // the checks of the group that are kept already
	Hours     map[Hour]Rollup      // the hours of the group that are kept already
}

// Standing is where an endpoint stands before a check. Headers need not be filled in.
type Standing struct {
	Endpoint Endpoint
	State    State
	Open     *Incident // nil when there is none
}

// Slot is what at most one check is kept for.
type Slot struct {
	EndpointID  string
	Location    string
	ScheduledAt int64 // microseconds since 1970, because time.Time does not compare well
}

// Slot returns the slot of c.
func (c Check) Slot() Slot { return Slot{c.EndpointID, c.Location, c.ScheduledAt.UnixMicro()} }

// Hour names an Rollup.
type Hour struct {
	EndpointID string
	Location   string
	Hour       int64 // its beginning in seconds since 1970
}

// Hour returns the hour that c counts in.
func (c Check) Hour() Hour {
	return Hour{c.EndpointID, c.Location, HourOf(c.Result.StartedAt).Unix()}
}

// Key returns the name of h.
func (h Rollup) Key() Hour { return Hour{h.EndpointID, h.Location, h.Begin.Unix()} }

// Entries are what a group of checks changes, each in the order in which it must be written.
type Entries struct {
	Outcomes []Outcome  // one for each check of the group
	Resolved []Incident // incidents open before the group, to be updated first
	Opened   []Incident // to be inserted; some may be resolved already
	// Contracts are to be compared with those whose place they take, and inserted with their events.
	Contracts   []NewContract
	Notices     []Notice         // to be inserted, where their channel still exists
	Checks      []Check          // to be inserted
	Transcripts []KeptTranscript // to be inserted
	States      []EndpointState  // to be updated, one for each endpoint
	Hours       []Rollup         // to be inserted or overwritten
}

// EndpointState is the state of one endpoint.
type EndpointState struct {
	EndpointID string
	State      State
}

// Enter judges the checks in the order given. It changes the ledger, which is of no use afterwards.
func (l *Ledger) Enter(checks []Check, judge Judge) Entries {
	g := group{Ledger: l, incidents: map[string]*Incident{}, changed: map[string]bool{}, hours: map[Hour]bool{}}
	for _, c := range checks {
		g.outcomes = append(g.outcomes, g.enter(c, judge))
	}
	return g.entries()
}

// group is a Ledger being written in.
type group struct {
	*Ledger
	outcomes  []Outcome
	checks    []Check
	notices   []Notice
	contracts []NewContract
	spoken    []KeptTranscript
	opened    []string // ids
	resolved  []string // ids of those not opened in this group
	incidents map[string]*Incident
	changed   map[string]bool // endpoint ids
	hours     map[Hour]bool
}

func (g *group) enter(c Check, judge Judge) Outcome {
	standing := g.Standings[c.EndpointID]
	if standing == nil {
		return Outcome{}
	}
	if g.Kept[c.Slot()] {
		return Outcome{Slug: standing.Endpoint.Slug, State: standing.State}
	}
	if g.Kept == nil {
		g.Kept = map[Slot]bool{}
	}
	g.Kept[c.Slot()] = true
	g.checks = append(g.checks, c)
	g.count(c)

	a := Advance(standing.Endpoint, standing.State, standing.Open, c, judge)
	standing.State = a.State
	g.changed[c.EndpointID] = true
	g.notices = append(g.notices, a.Notices...)
	out := Outcome{Kept: true, Slug: standing.Endpoint.Slug, State: a.State, Notices: len(a.Notices)}
	if a.Contract != nil {
		g.contracts = append(g.contracts, *a.Contract)
	}
	if a.Transcript != nil {
		g.spoken = append(g.spoken, *a.Transcript)
	}
	if a.Open != nil {
		out.Opened = a.Open.ID
		standing.Open = a.Open
		g.incidents[a.Open.ID] = a.Open
		g.opened = append(g.opened, a.Open.ID)
	}
	if a.Resolve != nil {
		out.Resolved = a.Resolve.ID
		standing.Open = nil
		if g.incidents[a.Resolve.ID] == nil {
			g.resolved = append(g.resolved, a.Resolve.ID)
		}
		g.incidents[a.Resolve.ID] = a.Resolve
	}
	return out
}

func (g *group) count(c Check) {
	key := c.Hour()
	if g.Hours == nil {
		g.Hours = map[Hour]Rollup{}
	}
	hour, ok := g.Hours[key]
	if !ok {
		hour = Rollup{EndpointID: c.EndpointID, Location: c.Location, Begin: HourOf(c.Result.StartedAt)}
	}
	hour.Add(c.Result)
	g.Hours[key] = hour
	g.hours[key] = true
}

func (g *group) entries() Entries {
	e := Entries{Outcomes: g.outcomes, Contracts: g.contracts, Notices: g.notices, Checks: g.checks, Transcripts: g.spoken}
	for _, id := range g.resolved {
		e.Resolved = append(e.Resolved, *g.incidents[id])
	}
	for _, id := range g.opened {
		e.Opened = append(e.Opened, *g.incidents[id])
	}
	for _, id := range slices.Sorted(maps.Keys(g.changed)) {
		e.States = append(e.States, EndpointState{id, g.Standings[id].State})
	}
	for key := range g.hours {
		e.Hours = append(e.Hours, g.Hours[key])
	}
	return e
}

// TidyChecks returns checks in the form in which every database gives them back: times in UTC and whole microseconds,
// texts as CleanText leaves them. A verdict that does not exist is our own mistake and an Invalid.
func TidyChecks(checks []Check) ([]Check, error) {
	var problems []probe.Problem
	tidy := make([]Check, 0, len(checks))
	for i, c := range checks {
		if !slices.Contains(probe.Verdicts(), c.Result.Verdict) {
			problems = append(problems, problem(fmt.Sprintf("checks[%d].verdict", i), "is not a verdict: %.40q", c.Result.Verdict))
		}
		c.ScheduledAt = Stamp(c.ScheduledAt)
		c.Result = tidyResult(c.Result)
		tidy = append(tidy, c)
	}
	return tidy, invalid(problems)
}

// Stamp returns t as every database keeps it: in UTC and whole microseconds.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func tidyResult(r probe.Result) probe.Result {
	r.StartedAt = Stamp(r.StartedAt)
	r.Transcript = nil
	r.Kind, r.Era = probe.Kind(CleanText(string(r.Kind))), probe.Era(CleanText(string(r.Era)))
	if r.Failure != nil {
		failure := *r.Failure
		failure.Step, failure.Message = CleanText(failure.Step), CleanText(failure.Message)
		r.Failure = &failure
	}
	r.Steps = slices.Clone(r.Steps)
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Name, s.Method, s.Message = CleanText(s.Name), CleanText(s.Method), CleanText(s.Message)
	}
	r.Warnings = slices.Clone(r.Warnings)
	for i := range r.Warnings {
		w := &r.Warnings[i]
		w.Step, w.Message = CleanText(w.Step), CleanText(w.Message)
	}
	r.Facts = tidyFacts(r.Facts)
	r.Memory, r.Contract = tidyMemory(r.Memory), tidyContract(r.Contract)
	return r
}

func tidyFacts(f probe.Facts) probe.Facts {
	f.SupportedVersions = slices.Clone(f.SupportedVersions)
	for i := range f.SupportedVersions {
		f.SupportedVersions[i] = CleanText(f.SupportedVersions[i])
	}
	for _, text := range []*string{&f.ProtocolVersion, &f.ServerName, &f.ServerVersion, &f.ChainID, &f.RemoteAddr, &f.Contract, &f.HeadHash} {
		*text = CleanText(*text)
	}
	if f.HeadTime != nil {
		f.HeadTime = tidyExpiry(*f.HeadTime)
	}
	if f.TLSExpiresAt != nil {
		f.TLSExpiresAt = tidyExpiry(*f.TLSExpiresAt)
	}
	return f
}

// tidyExpiry passes over a year that JSON cannot hold.
func tidyExpiry(t time.Time) *time.Time {
	t = Stamp(t)
	if t.Year() < 0 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// IsFailure reports whether err, returned by a Store, means that the database failed: that the same call may succeed
// when the database is back.
func IsFailure(err error) bool {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrBadCursor) || errors.Is(err, ErrWrongKey) ||
		errors.Is(err, ErrKeyFits) {
		return false
	}
	_, isInvalid := errors.AsType[Invalid](err)
	_, isConflict := errors.AsType[Conflict](err)
	return !isInvalid && !isConflict
}
