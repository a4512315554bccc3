package store

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Status is what the checks so far add up to: a verdict, or one of the two below. Statuses are stored as they are.
type Status string

// The statuses of an endpoint.
const (
	StatusPending  Status = "pending" // no check yet, or none that proves anything
	StatusUp       Status = Status(probe.Up)
	StatusDegraded Status = Status(probe.Degraded)
	StatusDown     Status = Status(probe.Down)
	StatusGated    Status = Status(probe.Gated)
	StatusUnknown  Status = Status(probe.Unknown)
	StatusPaused   Status = "paused" // never stored: it follows from Endpoint.Paused
)

// Statuses lists all statuses, worst first.
func Statuses() []Status {
	return []Status{StatusDown, StatusDegraded, StatusUnknown, StatusGated, StatusPending, StatusUp, StatusPaused}
}

// State is what checks so far add up to: those of an endpoint from one location, or from all. The zero State is that of
// an endpoint with no checks.
type State struct {
	Status Status    // empty means StatusPending
	Since  time.Time // when Status began: an outage begins at its first bad check

	// Streak is the run of checks that disagree with Status but do not suffice to change it; empty when the latest check
	// agrees. Down is the run of down checks up to the latest: while Status is down, of those with the same class and code.
	Streak Streak
	Down   Streak

	// Failure is why Status is not up: that of the first check with this verdict in the streak that made it so, and of an outage
	// that goes on in another way, that of the first check which found it so.
	Failure *probe.Failure

	// The latest check: its id, when it started, what it found and how long it took.
	LastCheckID  string
	LastCheckAt  time.Time
	LastVerdict  probe.Verdict
	LastDuration time.Duration

	// What is handed to the next probe.
	Kind probe.Kind // what an auto endpoint turned out to be; empty when not known
	Era  probe.Era
	// Memory is what the latest check left for the next one.
	Memory probe.Memory

	// Height is the highest head seen of a chain node and HeightSince when it was first seen.
	Height      *uint64
	HeightSince time.Time

	// Contracts are the present tool lists of an MCP server, the latest seen last, and Suspect is one that differs from
	// them and was seen once: the next check says whether it holds.
	Contracts []KnownContract
	Suspect   *KnownContract

	// ContractTold is how many changes of contracts channels were told of, and since when.
	ContractTold Told

	// Flips are when the whole of the places last turned from well to not well or back, the latest last: those of the last
	// hour, at most maxFlips. Empty for the state of a place.
	Flips []time.Time
	// Hushed is the incident about the endpoint that somebody declared over although it was not: nothing is opened until the
	// endpoint is up, or worse. Nil as a rule, and for the state of a place.
	Hushed *Hushed

	// TranscriptAt is when the check started whose transcript is kept as that of the last good one.
	TranscriptAt time.Time
}

// Unsettled reports whether the latest check disagrees with the status, so that another one should follow soon.
func (s State) Unsettled() bool { return s.Streak.Count > 0 }

// Streak is a run of checks that point the same way.
type Streak struct {
	Count   int            `json:"count"`
	Verdict probe.Verdict  `json:"verdict,omitempty"` // what all of its checks bear out
	Since   time.Time      `json:"since,omitzero"`    // when its first check started
	Failure *probe.Failure `json:"failure,omitempty"` // of its first check with that verdict
}

// Outcome is what became of a recorded check.
type Outcome struct {
	Kept  bool   // false: the endpoint is gone, the check was kept already, or its lease was lost
	Lost  bool   // another instance has taken the lease under which the check was made
	Slug  string // of the endpoint; empty when it is gone
	State State  // of the place: what the checks from this location add up to
	// Opened and Resolved name the incident that the check opened or resolved.
	Opened   string
	Resolved string
	Notices  int // that were left to be delivered
}

// Overview is an endpoint with what there is to say about it at a glance.
type Overview struct {
	Endpoint
	State     State   // see Merged
	Places    []Place // by location, without their hours; none before the first check
	LastCheck *Check  // nil when there is none, or it is pruned
}

// Status returns the status to show: paused endpoints are paused whatever their checks said.
func (o Overview) Status() Status {
	if o.Paused {
		return StatusPaused
	}
	if o.State.Status == "" {
		return StatusPending
	}
	return o.State.Status
}

// Hushed is an incident that somebody declared over.
type Hushed struct {
	IncidentID string `json:"incident"`
	Severity   Status `json:"severity"`
}

// maxFlips bounds State.Flips.
const maxFlips = 20
