package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Alerting says who hears what of an endpoint, and when. The zero value is the default in each member.
type Alerting struct {
	// Notify are the severities that are told; nil means DefaultNotify. Incidents of other severities are kept and shown only.
	Notify []Status `json:"notify,omitzero"` // an empty list tells nothing
	// UnknownAfter is how long an endpoint must be unknown for that to be an incident; 0 means DefaultUnknownAfter.
	UnknownAfter time.Duration `json:"unknown_after,omitempty"` // in nanoseconds as JSON, as the next
	// RemindEvery is how often its channels are told that an incident is still open; 0: never.
	RemindEvery time.Duration `json:"remind_every,omitempty"`
	// FlapChanges is how many changes between well and not well within an hour make an incident a flapping one; 0 means
	// DefaultFlapChanges.
	FlapChanges int `json:"flap_changes,omitempty"`
	// Escalation are the channels that are told beside Endpoint.Channels when nobody has acknowledged in time.
	Escalation []EscalationStep `json:"escalation,omitempty"`
}

// EscalationStep is who else hears of an incident that nobody has acknowledged.
type EscalationStep struct {
	After    time.Duration `json:"after"`    // since it opened, in nanoseconds as JSON
	Channels []string      `json:"channels"` // ids
}

// The defaults of Alerting. Degraded is not told unless somebody asks for it: most who are merely slow get well by themselves.
const (
	DefaultUnknownAfter = 30 * time.Minute
	DefaultFlapChanges  = 6
)

// DefaultNotify are the severities that are told where an endpoint does not say otherwise.
func DefaultNotify() []Status { return []Status{StatusDown, StatusGated, StatusUnknown} }

// Tells reports whether an incident of a severity is told.
func (a Alerting) Tells(severity Status) bool {
	if a.Notify == nil {
		return slices.Contains(DefaultNotify(), severity)
	}
	return slices.Contains(a.Notify, severity)
}

// Ahead returns what is kept ahead when an incident opens, or is open again: what reminds the channels that hear of it first, and
// what tells those of later steps. Of the notices, ChannelID, Kind and times are filled in.
func (a Alerting) Ahead(first []string, at time.Time) []Notice {
	var notices []Notice
	keep := func(kind NoticeKind, id string, after time.Duration) {
		notices = append(notices, Notice{ChannelID: id, Kind: kind, CreatedAt: at, DueAt: at.Add(after)})
	}
	if a.RemindEvery > 0 {
		for _, id := range first {
			keep(NoticeReminder, id, a.RemindEvery)
		}
	}
	known := slices.Clone(first)
	for _, step := range a.Escalation {
		for _, id := range slices.Sorted(slices.Values(step.Channels)) {
			if !slices.Contains(known, id) {
				keep(NoticeEscalation, id, step.After)
				known = append(known, id)
			}
		}
	}
	return notices
}

// clone returns a copy that can be edited without a change to a.
func (a Alerting) clone() Alerting {
	a.Notify, a.Escalation = slices.Clone(a.Notify), slices.Clone(a.Escalation)
	for i := range a.Escalation {
		a.Escalation[i].Channels = slices.Clone(a.Escalation[i].Channels)
	}
	return a
}

// Without returns a without a channel that is no longer there, and without the steps that are left with none.
func (a Alerting) Without(channelID string) Alerting {
	var kept []EscalationStep
	for _, step := range a.Escalation {
		step.Channels = slices.DeleteFunc(slices.Clone(step.Channels), func(id string) bool { return id == channelID })
		if len(step.Channels) > 0 {
			kept = append(kept, step)
		}
	}
	a.Escalation = kept
	return a
}

// Escalates returns the channels that hear of an escalation, each once.
func (a Alerting) Escalates() []string {
	var all []string
	for _, step := range a.Escalation {
		all = append(all, step.Channels...)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// EscalationProblems returns what is wrong with the channels of an endpoint's escalation as an Invalid, nil when all of them are
// among the existing ones.
func EscalationProblems(a Alerting, exists map[string]bool) error {
	var problems []probe.Problem
	for i, step := range a.Escalation {
		for k, id := range step.Channels {
			if !exists[id] {
				problems = append(problems, problem(fmt.Sprintf("escalation[%d].channels[%d]", i, k), "there is no channel %.60q", id))
			}
		}
	}
	return invalid(problems)
}

// ParentProblems returns what is wrong with the endpoints that one stands behind as an Invalid, nil when each of them exists,
// stands there once and does not itself stand behind this one. behind are the parents of every endpoint that has any.
func ParentProblems(e Endpoint, exists map[string]bool, behind map[string][]string) error {
	var problems []probe.Problem
	seen := map[string]bool{}
	for i, id := range e.DependsOn {
		field := fmt.Sprintf("depends_on[%d]", i)
		switch {
		case !exists[id]:
			problems = append(problems, problem(field, "there is no endpoint %.60q", id))
		case seen[id]:
			problems = append(problems, problem(field, "stands there twice"))
		case standsBehind(id, e.ID, behind):
			problems = append(problems, problem(field, "is this endpoint, or stands behind it: one of them must come first"))
		}
		seen[id] = true
	}
	return invalid(problems)
}

// standsBehind reports whether an endpoint is another one, or stands behind it by any number of steps.
func standsBehind(id, other string, behind map[string][]string) bool {
	seen := map[string]bool{}
	for next := []string{id}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if at == other {
			return true
		}
		if !seen[at] {
			seen[at] = true
			next = append(next, behind[at]...)
		}
	}
	return false
}

// Bounds of an endpoint's alerting.
const (
	maxEscalation = 10
	maxAfter      = 7 * 24 * time.Hour
	minRemind     = 5 * time.Minute
	// MaxParents bounds Endpoint.DependsOn.
	MaxParents = 20
)

func (e Endpoint) alertingProblems() []probe.Problem {
	var problems []probe.Problem
	add := func(field, format string, args ...any) { problems = append(problems, problem(field, format, args...)) }
	a := e.Alerting
	for i, s := range a.Notify {
		if !slices.Contains(Severities(), s) || slices.Contains(a.Notify[:i], s) {
			add(fmt.Sprintf("notify[%d]", i), "must be one of down, gated, unknown and degraded, each once")
		}
	}
	if a.UnknownAfter < 0 || a.UnknownAfter > maxAfter {
		add("unknown_after", "must be between 0s and %s", maxAfter)
	}
	if a.RemindEvery != 0 && (a.RemindEvery < minRemind || a.RemindEvery > maxAfter) {
		add("remind_every", "must be 0s, for never, or between %s and %s", minRemind, maxAfter)
	}
	if a.FlapChanges < 0 || a.FlapChanges == 1 || a.FlapChanges > maxFlips {
		add("flap_changes", "must be 0, for %d, or between 2 and %d", DefaultFlapChanges, maxFlips)
	}
	if len(a.Escalation) > maxEscalation {
		add("escalation", "has more than %d steps", maxEscalation)
	}
	for i, step := range a.Escalation {
		field := fmt.Sprintf("escalation[%d]", i)
		if step.After <= 0 || step.After > maxAfter || i > 0 && step.After <= a.Escalation[i-1].After {
			add(field+".after", "must be later than the step before and at most %s", maxAfter)
		}
		if len(step.Channels) == 0 || len(step.Channels) > maxChannels {
			add(field+".channels", "must name between 1 and %d channels", maxChannels)
		}
	}
	if len(e.DependsOn) > MaxParents {
		add("depends_on", "names more than %d endpoints", MaxParents)
	}
	return append(problems, objectiveProblems(e.Objectives)...)
}
