package store

import (
	"slices"
	"strings"
	"time"
)

// Place is an endpoint as seen from one location.
type Place struct {
	EndpointID string
	Location   string
	State      State  // what the checks from here add up to
	Hour       Rollup // of the hour of the latest check; left out by reads that do not say otherwise
}

// Standing is where an endpoint stands before a check. Headers and options need not be filled in.
type Standing struct {
	Endpoint Endpoint
	// State is what its places add up to: of it only Status, Since, Failure, Flips and Hushed are kept. See [Overview] for the
	// rest.
	State State
	Open  *Incident // of kind endpoint; nil when there is none
	// Others are the open incidents of other kinds that the endpoint is in: expiring, chain, objective.
	Others []Incident
	Places []Place // by location; one that has no check yet may be missing
}

// place returns the place of a location, which it makes when it is missing.
func (s *Standing) place(location string) *Place {
	i, found := slices.BinarySearchFunc(s.Places, location, func(p Place, l string) int { return strings.Compare(p.Location, l) })
	if !found {
		p := Place{EndpointID: s.Endpoint.ID, Location: location}
		p.State.Status, p.State.Since = StatusPending, s.State.Since
		s.Places = slices.Insert(s.Places, i, p)
	}
	return &s.Places[i]
}

// take notes what became of an incident.
func (s *Standing) take(t Turn) {
	if t.Incident.Kind == IncidentEndpoint {
		s.Open = nil
		if t.Incident.ResolvedAt == nil {
			s.Open = &t.Incident
		}
		return
	}
	s.Others = slices.DeleteFunc(slices.Clone(s.Others), func(o Incident) bool { return o.Subject == t.Incident.Subject })
	if t.Incident.ResolvedAt == nil && !t.Leaves {
		s.Others = append(s.Others, t.Incident)
	}
}

// leads reports whether the place of a location is the one that speaks for all where one is enough: the first by name of
// those that were checked in the last hour.
func (s *Standing) leads(location string, at time.Time) bool {
	const lately = time.Hour
	for _, p := range s.Places {
		if p.Location == location {
			return true
		}
		if at.Sub(p.State.LastCheckAt) < lately {
			return false
		}
	}
	return true
}

// contracts returns the tool lists that the place which speaks for all knows, own being those that it saw itself: another
// place may have spoken before, and seen them later.
func (s *Standing) contracts(own []KnownContract) []KnownContract {
	if len(s.Places) < 2 {
		return own
	}
	var all []KnownContract
	for _, p := range s.Places {
		all = append(all, p.State.Contracts...)
	}
	slices.SortStableFunc(all, func(a, b KnownContract) int { return b.Seen.Compare(a.Seen) })
	var newest []KnownContract // of each key
	for _, k := range all {
		if !slices.ContainsFunc(newest, func(n KnownContract) bool { return n.Key == k.Key }) {
			newest = append(newest, k)
		}
	}
	slices.Reverse(newest) // the latest seen last
	return newest[max(0, len(newest)-maxKeys):]
}

// Judge is the rule that turns checks into a status. Both functions must be pure: the store may call them again for the same
// check when a transaction is retried.
type Judge struct {
	// Check says what a check does to the state of its place. It must not touch LastCheckID, LastCheckAt or what stands
	// behind them, which follow from the check alone.
	Check func(e Endpoint, s State, c Check) State
	// Vote says what the places of an endpoint add up to, s being what they added up to before: Status, Since and Failure.
	// It is asked only where there is more than one place; a lone one is believed. Nil will do where there never is.
	Vote func(e Endpoint, s State, places []Place, at time.Time) State
	// Course says what becomes of the incidents of an endpoint. Nil will do where only down is told, without anything more: see
	// plainCourse.
	Course func(Situation) []Turn
	// Maintained reports whether an endpoint is under maintenance at a time; nil: never.
	Maintained func(endpointID string, at time.Time) bool
}

// whole returns what the places of a standing add up to. Places that the endpoint is no longer probed from have no say.
func (j Judge) whole(s *Standing, at time.Time) State {
	places := slices.DeleteFunc(slices.Clone(s.Places), func(p Place) bool { return !s.Endpoint.ProbedFrom(p.Location) })
	w := s.State
	switch {
	case len(places) == 1:
		w = places[0].State
	case len(places) > 1:
		w = j.Vote(s.Endpoint, s.State, places, at)
	}
	return State{Status: w.Status, Since: w.Since, Failure: w.Failure, Flips: s.State.Flips, Hushed: s.State.Hushed}
}

// Merged returns what there is to say about an endpoint as one state: Status, Since and Failure of all its places
// together, the rest from the place that was checked last.
func Merged(whole State, places []Place) State {
	if len(places) == 0 {
		return whole
	}
	latest := places[0].State
	for _, p := range places[1:] {
		if p.State.LastCheckAt.After(latest.LastCheckAt) {
			latest = p.State
		}
	}
	latest.Status, latest.Since, latest.Failure = whole.Status, whole.Since, whole.Failure
	return latest
}
