package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Ledger works out what a group of checks changes, without a database, so that every database does the same. A driver
// fills in what is kept about the endpoints of the group, calls Enter once and writes the Entries, all in one
// transaction that fails when somebody else changes those endpoints meanwhile.
type Ledger struct {
	Standings map[string]*Standing // by endpoint id; endpoints that are gone are missing
	Kept      map[Slot]bool        // the checks of the group that are kept already
	Lost      map[Fence]bool       // the leases of the group that others hold
	Now       time.Time
}

// Slot is what at most one check is kept for.
type Slot struct {
	EndpointID  string
	Location    string
	ScheduledAt int64 // microseconds since 1970, because time.Time does not compare well
}

// Slot returns the slot of c.
func (c Check) Slot() Slot { return Slot{c.EndpointID, c.Location, c.ScheduledAt.UnixMicro()} }

// Fence is a lease that must be held for a check to be kept.
type Fence struct {
	Location string
	Shard    int
	Epoch    int64
}

// Fence returns the lease that c was made under, and whether it was made under one.
func (c Check) Fence() (Fence, bool) {
	return Fence{c.Location, ShardOf(c.EndpointID), c.Epoch}, c.Epoch != 0
}

// PlaceKey names a place.
type PlaceKey struct{ EndpointID, Location string }

// Entries are what a group of checks changes, each in the order in which it must be written.
type Entries struct {
	Outcomes []Outcome // one for each check of the group
	// Turns are what becomes of incidents, in order. The same incident may stand there more than once.
	Turns []Turn
	// Contracts are to be compared with those whose place they take, and inserted with their events.
	Contracts   []NewContract
	Notices     []Notice         // of events, to be inserted, where their channel still exists
	Checks      []Check          // to be inserted
	Transcripts []KeptTranscript // to be inserted
	Places      []Place          // to be updated, by endpoint and location
	States      []EndpointState  // to be updated: those that changed, by endpoint
	// Hours are over, or long past: each is to be merged into the hour and the day that are kept of its place.
	Hours []Rollup
}

// EndpointState is what the places of one endpoint add up to: Status, Since, Failure, Flips and Hushed.
type EndpointState struct {
	EndpointID string
	State      State
}

// Enter judges the checks in the order given. It changes the ledger, which is of no use afterwards.
func (l *Ledger) Enter(checks []Check, judge Judge) Entries {
	g := group{Ledger: l, before: map[string]State{}, places: map[PlaceKey]bool{}}
	if l.Kept == nil {
		l.Kept = map[Slot]bool{}
	}
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
	over      []Rollup
	turns     []Turn
	before    map[string]State // of the endpoints of the group
	places    map[PlaceKey]bool
}

func (g *group) enter(c Check, judge Judge) Outcome {
	standing := g.Standings[c.EndpointID]
	if standing == nil {
		return Outcome{}
	}
	out := Outcome{Slug: standing.Endpoint.Slug}
	if fence, fenced := c.Fence(); fenced && g.Lost[fence] {
		out.Lost, out.State = true, standing.place(c.Location).State
		return out
	}
	if g.Kept[c.Slot()] {
		out.State = standing.place(c.Location).State
		return out
	}
	g.Kept[c.Slot()] = true
	c.Maintenance = judge.Maintained != nil && judge.Maintained(c.EndpointID, c.Result.StartedAt)
	g.checks = append(g.checks, c)
	g.places[PlaceKey{c.EndpointID, c.Location}] = true
	if _, ok := g.before[c.EndpointID]; !ok {
		g.before[c.EndpointID] = standing.State
	}
	a := Advance(standing, c, judge, g.Now)
	place := standing.place(c.Location)
	g.count(place, c)
	g.notices = append(g.notices, a.Notices...)
	out.Kept, out.State, out.Notices = true, place.State, len(a.Notices)
	if a.Contract != nil {
		g.contracts = append(g.contracts, *a.Contract)
	}
	if a.Transcript != nil {
		g.spoken = append(g.spoken, *a.Transcript)
	}
	g.turns = append(g.turns, a.Turns...)
	for _, t := range a.Turns {
		out.Notices += len(t.Notices)
		standing.take(t)
		switch {
		case t.Incident.Kind != IncidentEndpoint:
		case t.Opens:
			out.Opened = t.Incident.ID
		case t.Incident.ResolvedAt != nil:
			out.Resolved = t.Incident.ID
		}
	}
	return out
}

// count adds c to the running hour of its place. The first check of another hour ends the one before; a check of an hour
// that is long over counts there.
func (g *group) count(p *Place, c Check) {
	add := func(r *Rollup) { r.Add(c.Result) }
	if c.Maintenance {
		add = (*Rollup).AddMaintained
	}
	hour := HourOf(c.Result.StartedAt)
	if running := p.Hour.Begin; hour.Before(running) && !running.After(g.Now.Add(clockSlack)) {
		past := Rollup{EndpointID: p.EndpointID, Location: p.Location, Begin: hour}
		add(&past)
		g.over = append(g.over, past)
		return
	}
	if !p.Hour.Begin.Equal(hour) {
		if p.Hour.Counts.Total() > 0 {
			g.over = append(g.over, p.Hour)
		}
		p.Hour = Rollup{EndpointID: p.EndpointID, Location: p.Location, Begin: hour}
	}
	add(&p.Hour)
}

func (g *group) entries() Entries {
	e := Entries{
		Outcomes: g.outcomes, Turns: g.turns, Contracts: g.contracts, Notices: g.notices, Checks: g.checks, Transcripts: g.spoken, Hours: g.over,
	}
	e.Places = make([]Place, 0, len(g.places))
	for _, key := range slices.SortedFunc(maps.Keys(g.places), PlaceKey.compare) {
		e.Places = append(e.Places, *g.Standings[key.EndpointID].place(key.Location))
	}
	for _, id := range slices.Sorted(maps.Keys(g.before)) {
		if state := g.Standings[id].State; !sameWhole(state, g.before[id]) {
			e.States = append(e.States, EndpointState{id, state})
		}
	}
	return e
}

// sameWhole reports whether two states are the same in what places add up to.
func sameWhole(a, b State) bool {
	return a.Status == b.Status && a.Since.Equal(b.Since) && slices.Equal(a.Flips, b.Flips) &&
		(a.Hushed == nil) == (b.Hushed == nil) &&
		(a.Failure == b.Failure || a.Failure != nil && b.Failure != nil && *a.Failure == *b.Failure)
}

func (k PlaceKey) compare(o PlaceKey) int {
	return cmp.Or(cmp.Compare(k.EndpointID, o.EndpointID), cmp.Compare(k.Location, o.Location))
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
