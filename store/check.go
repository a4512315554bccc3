package store

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Check is one probe of an endpoint, kept.
type Check struct {
	ID          string
	EndpointID  string
	Slug        string // of the endpoint; filled in by reads, ignored by writes
	Location    string
	ScheduledAt time.Time
	Result      probe.Result // without a transcript
	Transcript  Transcript   // nil when none was kept, and in lists
}

// NewCheck turns what a probe saw into a check to be kept. The transcript is bounded and compressed here, where many checks
// are made at once, and not where they are written, one group at a time.
func NewCheck(endpointID, location string, scheduledAt time.Time, r probe.Result) Check {
	t := NewTranscript(r.Transcript)
	r.Transcript = nil
	return Check{
		ID: NewID("chk"), EndpointID: endpointID, Location: location, ScheduledAt: scheduledAt, Result: r, Transcript: t,
	}
}

// CheckFilter selects checks of one endpoint. Zero members do not select.
type CheckFilter struct {
	EndpointID string // required
	Since      time.Time
	Until      time.Time // exclusive
	Verdict    probe.Verdict
	Limit      int
	Cursor     string
}
