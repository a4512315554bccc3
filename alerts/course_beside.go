package alerts

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// of returns the open incident of a kind that the endpoint is in; nil when there is none.
func (c course) of(kind store.IncidentKind) *store.Incident {
	for i := range c.Standing.Others {
		if c.Standing.Others[i].Kind == kind {
			return &c.Standing.Others[i]
		}
	}
	return nil
}

// expiring returns what becomes of an incident about a certificate or a credential that ends soon. It is rare and, once it is
// over, a certain outage: channels hear of either as of gated, however the severities that they hear of are set otherwise.
// Locations may see different certificates, so it is over when each of those that saw one has seen another.
func (c course) expiring() []store.Turn {
	r := c.Check.Result
	if r.Verdict != probe.Up && r.Verdict != probe.Degraded && r.Verdict != probe.Gated {
		return nil // did not get as far as to see
	}
	warning, severity := endingSoon(r.Warnings)
	open := c.of(store.IncidentExpiring)
	switch {
	case open == nil && warning == nil:
		return nil
	case open == nil:
		return []store.Turn{c.expires(*warning, severity)}
	case warning == nil:
		return c.renewed(*open)
	}
	i := *open
	turn := store.Turn{Told: c.tells(store.StatusGated)}
	if !slices.Contains(i.SeenFrom, c.Check.Location) {
		i.SeenFrom = append(slices.Clone(i.SeenFrom), c.Check.Location)
		slices.Sort(i.SeenFrom)
		turn.Entries = append(turn.Entries, store.Entry{At: c.at, Kind: store.EntrySeen, Text: strings.Join(i.SeenFrom, ", ")})
	}
	// One location may see both end and another only the certificate.
	if store.Graver(severity, i.Severity) || warning.Class != i.Cause.Class && slices.Equal(i.SeenFrom, []string{c.Check.Location}) {
		i.Severity, i.Cause = severity, *warning
		if store.Graver(severity, i.Worst) {
			i.Worst = severity
		}
		turn.Entries = append(turn.Entries, store.Entry{At: c.at, Kind: store.EntrySeverity, Severity: severity, Cause: warning})
		turn.Notices, turn.Tells = c.notices(store.NoticeUpdated, i.Told, c.at), store.NoticeUpdated
	}
	if len(i.Told) == 0 && turn.Told && len(c.endpoint.Channels) > 0 {
		i.Told = slices.Compact(slices.Sorted(slices.Values(c.endpoint.Channels)))
		turn.Notices = c.notices(store.NoticeOpened, i.Told, c.at)
	}
	if len(turn.Entries)+len(turn.Notices) == 0 {
		return nil
	}
	turn.Incident = i
	return []store.Turn{turn}
}

// endingSoon returns the most serious warning of an end that is near, and how serious it is; nil when there is none.
func endingSoon(warnings []probe.Warning) (*probe.Failure, store.Status) {
	for _, soon := range []struct {
		class    probe.Class
		severity store.Status
	}{{probe.ClassCredentialExpiring, store.StatusGated}, {probe.ClassTLSExpiring, store.StatusDegraded}} {
		for _, w := range warnings {
			if w.Class == soon.class {
				return &probe.Failure{Step: w.Step, Class: w.Class, Code: w.Code, Message: w.Message}, soon.severity
			}
		}
	}
	return nil, ""
}

func (c course) expires(warning probe.Failure, severity store.Status) store.Turn {
	i := store.Incident{
		ID: store.NewID("inc"), Kind: store.IncidentExpiring, Subject: store.SubjectOfExpiry(c.endpoint.ID), EndpointID: c.endpoint.ID,
		Severity: severity, Worst: severity, StartedAt: c.at, OpenedAt: c.at, Cause: warning, CheckID: c.Check.ID,
		SeenFrom: []string{c.Check.Location},
	}
	turn := store.Turn{
		Opens:   true,
		Entries: []store.Entry{{At: c.at, Kind: store.EntryOpened, Severity: severity, Cause: &warning}},
		Tells:   store.NoticeOpened, Told: c.tells(store.StatusGated),
	}
	if turn.Told {
		i.Told = slices.Compact(slices.Sorted(slices.Values(c.endpoint.Channels)))
		turn.Notices = c.notices(store.NoticeOpened, i.Told, c.at)
	}
	turn.Incident = i
	return turn
}

// forgotten is how long a location that saw something may go without a check before it is no longer waited for.
const forgotten = 24 * time.Hour

// renewed notes that a location sees no end any more.
func (c course) renewed(i store.Incident) []store.Turn {
	seen := slices.DeleteFunc(slices.Clone(i.SeenFrom), func(location string) bool {
		return location == c.Check.Location || !c.watchedFrom(location)
	})
	switch {
	case len(seen) == len(i.SeenFrom):
		return nil
	case len(seen) > 0:
		i.SeenFrom = seen
		return []store.Turn{{Incident: i, Entries: []store.Entry{{At: c.at, Kind: store.EntrySeen, Text: strings.Join(seen, ", ")}}}}
	}
	told := i.Told
	return []store.Turn{{
		Incident: *store.Resolve(i, c.at, c.at, store.ResolutionRecovered), Withdraw: true,
		Entries: []store.Entry{{At: c.at, Kind: store.EntryResolved}},
		Notices: c.notices(store.NoticeResolved, told, c.at), Tells: store.NoticeResolved, Told: c.tells(store.StatusGated),
	}}
}

func (c course) watchedFrom(location string) bool {
	return c.endpoint.ProbedFrom(location) && slices.ContainsFunc(c.Standing.Places, func(p store.Place) bool {
		return p.Location == location && c.at.Sub(p.State.LastCheckAt) < forgotten
	})
}

// halted returns what becomes of the incident about the chain of the endpoint. All of its endpoints share it: each joins when it
// finds that the chain stands still, and leaves when it finds otherwise. It is always told.
func (c course) halted() []store.Turn {
	var turns []store.Turn
	key, open := c.haltedChain(), c.of(store.IncidentChain)
	if open != nil && c.proved() && open.Subject != store.SubjectOfChain(key) {
		i := *open
		told := i.Told
		turns = append(turns, store.Turn{
			Incident: *store.Resolve(i, c.at, c.whole.Since, store.ResolutionRecovered), Leaves: true, Withdraw: true,
			Entries: []store.Entry{{At: c.at, Kind: store.EntryLeft, Text: c.endpoint.Name}},
			Notices: c.notices(store.NoticeResolved, told, c.at), Tells: store.NoticeResolved, Told: true,
		})
		open = nil
	}
	if key == "" || open != nil {
		return turns
	}
	i := store.OpenIncident(c.Situation)
	i.Kind, i.Subject, i.EndpointID, i.Title = store.IncidentChain, store.SubjectOfChain(key), "", chainTitle(key)
	i.SeenFrom, i.Told = nil, slices.Compact(slices.Sorted(slices.Values(c.endpoint.Channels)))
	return append(turns, store.Turn{
		Incident: i, Opens: true,
		Entries: []store.Entry{{At: c.at, Kind: store.EntryOpened, Severity: i.Severity, Cause: c.whole.Failure, Text: c.endpoint.Name}},
		Notices: c.notices(store.NoticeOpened, i.Told, c.at), Tells: store.NoticeOpened, Told: true,
	})
}

// proved reports whether the status says something about the endpoint.
func (c course) proved() bool {
	switch c.whole.Status {
	case store.StatusUp, store.StatusDegraded, store.StatusGated, store.StatusDown:
		return true
	}
	return false
}

// haltedChain returns the key of the chain whose standstill is all that is wrong with the endpoint; empty when that is not so,
// or nobody knows which chain it is.
func (c course) haltedChain() string {
	if c.whole.Status != store.StatusDegraded || c.whole.Failure == nil || c.whole.Failure.Class != probe.ClassChainHalted {
		return ""
	}
	for _, p := range c.Standing.Places {
		if key := store.HeadChain(p.State); key != "" && c.endpoint.ProbedFrom(p.Location) {
			return key
		}
	}
	return ""
}

// chainTitle returns what a chain is called in words to people, from its key: "Ethereum (evm 1)".
func chainTitle(key string) string {
	kind, id, _ := strings.Cut(key, " ")
	name := probe.ChainName(probe.Kind(kind), id)
	if name == "" {
		return key
	}
	return upperFirst(name) + " (" + key + ")"
}

func upperFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}
