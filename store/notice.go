package store

import (
	"strconv"
	"strings"
	"time"
)

// NoticeKind says what a notice tells.
type NoticeKind string

// The kinds of notices.
const (
	NoticeOpened     NoticeKind = "opened"
	NoticeUpdated    NoticeKind = "updated"    // an incident changed, or somebody acted on it: EntryID says how
	NoticeReminder   NoticeKind = "reminder"   // it is still open: kept ahead, due when it is to be said
	NoticeEscalation NoticeKind = "escalation" // likewise, for the channels of a later step
	NoticeFlapping   NoticeKind = "flapping"
	NoticeCalmed     NoticeKind = "calmed"
	NoticeResolved   NoticeKind = "resolved"
	NoticeContract   NoticeKind = "contract" // the tool list of an MCP server changed
	NoticeService    NoticeKind = "service"  // something about this service itself
)

// Ahead reports whether notices of this kind are kept before they are due, and taken back when there is no need of them.
func (k NoticeKind) Ahead() bool { return k == NoticeReminder || k == NoticeEscalation }

// Notice is word of a change that one channel still has to hear.
type Notice struct {
	ID         string
	IncidentID string // empty when it tells of an event
	EventID    string // empty when it tells of an incident
	EntryID    string // the line of the timeline that it tells of; may be empty
	ChannelID  string
	Kind       NoticeKind
	CreatedAt  time.Time
	DueAt      time.Time
	Attempts   int // so far, the one under way not counted
}

// Delivery is a leased notice with everything needed to word and send it.
type Delivery struct {
	Notice Notice
	// Later are the other notices about the same incident that wait for the same channel and are due, oldest first. They are
	// leased and settled along with Notice: one message tells all of them.
	Later    []Notice
	LeaseID  string   // to be handed back with the settlement
	Incident Incident // as it is at present; zero when the notice tells of an event
	Entry    *Entry   // that the last of the notices tells of; nil when none names one
	Event    *Event   // nil when the notice tells of an incident
	Endpoint Endpoint // zero when it is about none, or about several
	// Dependents are the names of endpoints that stand behind Endpoint and whose own opening waits for it.
	Dependents []string
	// BehindUntil is when the last of the endpoints that Endpoint stands behind was up again, of those that were down (an incident
	// about the endpoint itself, severity or worst down, that openings wait for: see Store.LeaseNotices) when Incident opened or
	// within a minute after; the time of the lease while one still is. Zero: none was. One that is no longer down, but not up either, counts from when its incident changed.
	BehindUntil  time.Time
	Channel      Channel
	Subscription *Subscription // nil when Channel is one of the team's
	Page         *StatusPage   // that Subscription is of, without its logo; nil where that is the built-in one
	// Ref is what the channel answered to the opening notice of the same incident, empty when there was none: with a
	// Slack bot, the message to update.
	Ref string
}

// Knows reports whether whoever it is for may know of an endpoint: the team of all, others of what is on their status page.
func (d Delivery) Knows(e Endpoint) bool {
	if d.Subscription == nil || !d.Subscription.Public() {
		return true
	}
	return Listener{Subscription: *d.Subscription, Page: d.Page}.shown(e)
}

// Settlement says how a delivery ended. Exactly one of Sent, Passed, Permanent and RetryAt says what is next.
type Settlement struct {
	NoticeID  string
	Later     []string // ids of Delivery.Later, and of other deliveries of the same lease and channel; settled likewise
	LeaseID   string
	At        time.Time
	Sent      bool
	Passed    bool      // nothing was sent: the channel has no place for it, or nobody has to hear it any more; Error may say why
	Permanent bool      // it will never work: the channel is broken
	RetryAt   time.Time // try again then
	Deferred  bool      // with RetryAt: nothing was tried, it is not an attempt
	Ref       string    // with Sent: what the channel gave to find the message again
	Error     string    // with Permanent and RetryAt, without secrets
	Took      time.Duration
	// Next is when the next reminder of the incident is due, after one was sent to a channel; zero: none.
	Next time.Time
}

// Attempt is one line of the log of deliveries.
type Attempt struct {
	NoticeID   string
	ChannelID  string
	Kind       NoticeKind
	IncidentID string // empty where there is none, as the next
	Slug       string // of the endpoint
	Name       string
	Title      string // of the incident, where it has one; see [Incident]
	Number     int    // of the attempt, from 1
	At         time.Time
	Outcome    string // OutcomeSent and its kin
	Error      string
	Took       time.Duration
}

// AttemptFilter selects attempts. Zero members do not select.
type AttemptFilter struct {
	ChannelID  string
	IncidentID string
	Limit      int
	Cursor     string
}

// Key names an attempt in cursors.
func (a Attempt) Key() string { return a.NoticeID + "/" + strconv.Itoa(a.Number) }

// ReadAttemptKey reads what [Attempt.Key] returned, or returns ErrBadCursor.
func ReadAttemptKey(key string) (noticeID string, number int, err error) {
	noticeID, text, ok := strings.Cut(key, "/")
	number, err = strconv.Atoi(text)
	if !ok || err != nil {
		return "", 0, ErrBadCursor
	}
	return noticeID, number, nil
}
