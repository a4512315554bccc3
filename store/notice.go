package store

import "time"

// NoticeKind says what a notice tells.
type NoticeKind string

// The kinds of notices.
const (
	NoticeOpened   NoticeKind = "opened"
	NoticeResolved NoticeKind = "resolved"
	NoticeContract NoticeKind = "contract" // the tool list of an MCP server changed
	NoticeService  NoticeKind = "service"  // something about this service itself
)

// Notice is word of a change that one channel still has to hear.
type Notice struct {
	ID         string
	IncidentID string // empty when it tells of an event
	EventID    string // empty when it tells of an incident
	ChannelID  string
	Kind       NoticeKind
	CreatedAt  time.Time
	DueAt      time.Time
	Attempts   int // so far, the one under way not counted
}

// Delivery is a leased notice with everything needed to word and send it.
type Delivery struct {
	Notice   Notice
	LeaseID  string   // to be handed back with the settlement
	Incident Incident // zero when the notice tells of an event
	Event    *Event   // nil when the notice tells of an incident
	Endpoint Endpoint
	Channel  Channel
	// Ref is what the channel answered to the opening notice of the same incident, empty when there was none: with a
	// Slack bot, the message to update.
	Ref string
}

// Settlement says how a delivery ended. Exactly one of Sent, Permanent and RetryAt says what is next.
type Settlement struct {
	NoticeID  string
	LeaseID   string
	At        time.Time
	Sent      bool
	Permanent bool      // it will never work: the channel is broken
	RetryAt   time.Time // try again then
	Ref       string    // with Sent: what the channel gave to find the message again
	Error     string    // with Permanent and RetryAt, without secrets
}
