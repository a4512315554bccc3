// Package store says what Rollcall remembers and what a database must do: the nouns, their validation, and the Store
// contract that store/sqlite and store/postgres meet and store/storetest tests. It holds no SQL and judges nothing: the
// rule that turns checks into incidents is handed in as a [Judge].
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Store is everything a database must do. Each method is one transaction. All methods are safe for concurrent use.
//
// Methods that look one thing up return ErrNotFound when it is not there; those that write return Invalid when the
// value itself is wrong and Conflict when it clashes with what is there. Any other error means that the database
// failed, and that nothing was written.
type Store interface {
	// CreateEndpoint keeps a valid endpoint and a pending State for it; it fills in ID, Slug (unless given), CreatedAt
	// and UpdatedAt. An explicit name must be unique without regard to case; a name taken from the URL is made so.
	// Channels must exist.
	CreateEndpoint(ctx context.Context, e Endpoint) (Endpoint, error)
	// UpdateEndpoint loads the endpoint, lets change edit and validate it, and keeps it; an error of change ends it.
	// change must not call the store and may be called again. ID, Slug and CreatedAt never change, and UpdatedAt changes
	// only when something else does. Pausing resolves an open incident (ResolutionPaused) and tells its channels; a
	// resumed endpoint, and one that is asked something else or elsewhere, starts again as pending, with the open incident left
	// to the judge.
	UpdateEndpoint(ctx context.Context, slug string, change func(*Endpoint) error) (Endpoint, error)
	// DeleteEndpoint removes the endpoint and all its history. Maintenances and subscriptions do not name it any more: those that
	// named nothing else cover nothing from then on. Its open incidents end (ResolutionRemoved); those that somebody has
	// heard of and is to hear more of are kept, as about no endpoint and with its name as their title.
	DeleteEndpoint(ctx context.Context, slug string) error
	Endpoint(ctx context.Context, slug string) (Overview, error)
	// Endpoints lists by name, without regard to case, then id.
	Endpoints(ctx context.Context, f EndpointFilter) (Page[Overview], error)
	// Index lists all endpoints that f selects, by name, with checks also with what the latest one found; Limit and Cursor of f do
	// not matter.
	Index(ctx context.Context, f EndpointFilter, checks bool) ([]Line, error)
	// Briefs returns what a list shows of endpoints, with the hours that begin at from or later, in no order. Those that are not there
	// are left out. It reads no checks.
	Briefs(ctx context.Context, endpointIDs []string, from time.Time) ([]Brief, error)
	// Locations lists the locations that endpoints were probed from, or that instances are at, by name.
	Locations(ctx context.Context) ([]Location, error)

	// Roster lists all endpoints by no more than what tells whether one has to be read again, in no order.
	Roster(ctx context.Context) ([]Member, error)

	// Record keeps a group of checks in one transaction: the checks, the running hours, the states that judge makes of
	// each, and where the status changes, the incident and one notice per channel. Checks are taken in the order given. A
	// check of an endpoint that is gone, one already kept for (endpoint, location, scheduled time), or one whose lease is
	// another's by now, is passed over; its Outcome says so. A check of a paused endpoint is kept but not judged. The judge
	// sees endpoints without their headers and options.
	//
	// What becomes of incidents (Turn) is written along: incidents, entries of their timelines, notices of the channels that still
	// exist, and where Turn.Tells, one notice for each confirmed subscription that wants it (Subscription.Wants; from the public
	// only of public endpoints): NoticeOpened for one that has not heard of the incident, else Tells, of whatever severity. What is resolved is told to
	// those only who heard of the opening, and what is open again to all as another opening. See Telling. Reminders and
	// escalations of what is over are taken back.
	//
	// A tool list that is new, or holds after it was seen on two checks in a row, is kept as a contract, with what changed
	// and an event on the timeline; with ContractNotices also with one notice per channel. A transcript is kept of a check
	// that was not up, at most MaxBadTranscripts for each place, and of the last good one, replaced every ten minutes.
	Record(ctx context.Context, checks []Check, judge Judge) ([]Outcome, error)
	// Checks lists newest first, by the time they were scheduled for, without transcripts.
	Checks(ctx context.Context, f CheckFilter) (Page[Check], error)
	// Check returns a check with its transcript, where one is kept.
	Check(ctx context.Context, id string) (Check, error)
	// Uptime returns the hours or days of one endpoint that begin in [from, to), oldest first, then by location, the running
	// ones included. It reads no checks.
	Uptime(ctx context.Context, endpointID string, grain Grain, from, to time.Time) ([]Rollup, error)
	// Rollups returns the hours or days of several endpoints that begin at from or later, the running ones included, by Begin,
	// endpoint and location. It reads no checks.
	Rollups(ctx context.Context, endpointIDs []string, grain Grain, from time.Time) ([]Rollup, error)
	// Counts adds up the verdicts of endpoints in the hours or days that begin at from or later, keyed by endpoint id. It
	// reads no checks.
	Counts(ctx context.Context, endpointIDs []string, grain Grain, from time.Time) (map[string]Counts, error)
	// Latencies merges the latencies of endpoints in the hours or days that begin at from or later, keyed by endpoint id. It
	// reads no checks.
	Latencies(ctx context.Context, endpointIDs []string, grain Grain, from time.Time) (map[string]Latencies, error)
	// Tend makes room for the checks of the days ahead and lets go of what is older than has to be kept; it says how many
	// partitions (Postgres) or checks (SQLite) went. Days are kept for ever.
	Tend(ctx context.Context, r Retention) (int, error)

	// Heads returns the newest heads of a chain, as ChainKey names it, that were seen since a time: newest first, at most
	// MaxHeads, each with the name of the endpoint that told of it. Paused endpoints tell nothing.
	Heads(ctx context.Context, chain string, since time.Time) ([]probe.Head, error)

	// Contracts lists newest first, without tools.
	Contracts(ctx context.Context, f ContractFilter) (Page[Contract], error)
	Contract(ctx context.Context, id string) (Contract, error)
	// Events lists newest first.
	Events(ctx context.Context, f EventFilter) (Page[Event], error)
	// Announce keeps an event about this service itself, of no endpoint, with one notice for each channel that an endpoint
	// names, and says for how many. What another instance announced in the same words less than AnnouncedOnce before is not
	// said again.
	Announce(ctx context.Context, e Event) (int, error)

	// Incidents lists newest first.
	Incidents(ctx context.Context, f IncidentFilter) (Page[Incident], error)
	Incident(ctx context.Context, id string) (Incident, error)
	// Timeline returns what happened to an incident, oldest first: its entries, changes of the tool list meanwhile, and what was
	// sent of it to the team's channels or could not be.
	Timeline(ctx context.Context, incidentID string) ([]Entry, error)
	// PublicEntries returns what was said to everybody about incidents: public entries that have a text, oldest first, the latest
	// MaxPublicEntries of each, by the incident's id. It asks once for all of them.
	PublicEntries(ctx context.Context, incidentIDs []string) (map[string][]Entry, error)
	// Act does something about an incident (see Incident.Take) and tells the channels that were told of it, and with a public
	// text, or when it ends or is open again, the subscriptions (see Telling). What is open again reminds and escalates as what
	// opens. A reopened incident clashes with one of the same Subject that is open. Resolving one about an
	// endpoint that is not up hushes it (State.Hushed).
	Act(ctx context.Context, incidentID string, a Act) (Incident, error)
	// Raise opens an incident that no check tells of: about a location, an objective, or by hand. It fills in ID, and Subject
	// of a manual one, keeps an EntryOpened by the author with the text, and notices for the channels that exist (of a manual one
	// also for subscriptions), and says whether it did: one of the same Subject that is open already is returned as it is.
	// Endpoints must exist.
	Raise(ctx context.Context, i Incident, author, text string, channels []string) (Incident, bool, error)
	// Clear ends the open incident of a subject and tells those who were told of it; ErrNotFound when none is open.
	Clear(ctx context.Context, subject string, at time.Time, how Resolution, text string) (Incident, error)

	// CreateMaintenance keeps a valid stretch of maintenance; it fills in ID, CreatedAt and UpdatedAt. Endpoints are ids.
	CreateMaintenance(ctx context.Context, m Maintenance) (Maintenance, error)
	// UpdateMaintenance works as UpdateEndpoint.
	UpdateMaintenance(ctx context.Context, id string, change func(*Maintenance) error) (Maintenance, error)
	DeleteMaintenance(ctx context.Context, id string) error
	Maintenance(ctx context.Context, id string) (Maintenance, error)
	// Maintenances lists those that are not over at a time, the zero time: all, by StartsAt.
	Maintenances(ctx context.Context, after time.Time) ([]Maintenance, error)

	// CreateStatusPage keeps a valid page; it fills in ID, DomainToken, CreatedAt and UpdatedAt. Conflict when the slug or the domain
	// is taken, or there are MaxStatusPages already.
	CreateStatusPage(ctx context.Context, p StatusPage) (StatusPage, error)
	// UpdateStatusPage works as UpdateEndpoint. See EditStatusPage for what becomes of a proven domain.
	UpdateStatusPage(ctx context.Context, slug string, change func(*StatusPage) error) (StatusPage, error)
	DeleteStatusPage(ctx context.Context, slug string) error
	StatusPage(ctx context.Context, slug string) (StatusPage, error)
	// StatusPages lists all of them by slug, without logos.
	StatusPages(ctx context.Context) ([]StatusPage, error)

	// CreateChannel validates and keeps a channel; it fills in ID, CreatedAt and UpdatedAt. Names of channels are unique
	// without regard to case.
	CreateChannel(ctx context.Context, c Channel) (Channel, error)
	// UpdateChannel loads the channel, lets change edit it, validates and keeps it. A change clears Broken. change must
	// not call the store and may be called again.
	UpdateChannel(ctx context.Context, id string, change func(*Channel) error) (Channel, error)
	// DeleteChannel removes the channel from every endpoint that names it, with its waiting notices.
	DeleteChannel(ctx context.Context, id string) error
	Channel(ctx context.Context, id string) (Channel, error)
	Channels(ctx context.Context) ([]Channel, error) // by name

	// LeaseNotices hands out at most limit deliveries that are due at now and leases them until now+lease, so that no other
	// caller gets them meanwhile; expired leases fall due again. For each (incident, channel) all notices that are due are one
	// delivery: a resolution never overtakes its opening. One caller (holder) has the notices of a channel at a time, for a
	// channel is paced by whoever sends: those of a channel of which another one holds a lease wait. Notices of broken channels
	// wait. The opening of an endpoint that stands behind one that is down (an open incident of severity down, of whose opening a
	// channel of the team hears, and which does not come and go) waits. It takes
	// no write lock when nothing is due. What is not due yet, or waits, holds up what came after it, but reminders and escalations
	// hold up nothing. The endpoints of the deliveries come without headers and options. Quiet hours are for whoever sends.
	LeaseNotices(ctx context.Context, holder string, now time.Time, lease time.Duration, limit int) ([]Delivery, error)
	// SettleNotice ends a lease: it logs the attempt and marks the notice and those later ones that went along sent, passed,
	// failed for good, or due again. A permanent failure also marks the channel broken, with the reason. ErrNotFound when
	// somebody else has leased the notice since: a lease that merely ran out may still be settled, and so may later notices of one
	// that was taken back. The log has one line for all of them, and none for what was merely deferred. With Next, a reminder is
	// kept unless the incident is over or acknowledged, or one waits already; not before the end of a snooze.
	SettleNotice(ctx context.Context, s Settlement) error
	// Resend has a notice that was sent, passed or failed for good be sent once more, at now; Conflict when it waits. What the
	// channel answered the first time is forgotten, and it is as old as now: it is another message.
	Resend(ctx context.Context, noticeID string, now time.Time) error
	// Attempts lists the log of deliveries, newest first.
	Attempts(ctx context.Context, f AttemptFilter) (Page[Attempt], error)
	// PendingNotices counts notices that are neither sent nor failed for good.
	PendingNotices(ctx context.Context) (int, error)

	// CreateSubscription keeps a valid subscription with its channel; it fills in ID and CreatedAt. Conflict when the same
	// address is subscribed already by somebody of the same kind (public, or this member), as AddressHash compares them.
	CreateSubscription(ctx context.Context, s Subscription) (Subscription, error)
	// UpdateSubscription works as UpdateEndpoint. A change of Channel clears Broken.
	UpdateSubscription(ctx context.Context, id string, change func(*Subscription) error) (Subscription, error)
	// ConfirmSubscription confirms one of the public and spends its ConfirmHash. ErrNotFound when hash is not that, ErrFull or
	// ErrFullThere when caps leave no room for it: it may be confirmed later, by the same hash.
	ConfirmSubscription(ctx context.Context, id string, hash []byte, caps SubscriptionCaps) (Subscription, error)
	// Crowd counts the confirmed subscriptions of the public that share a cap with s.
	Crowd(ctx context.Context, s Subscription) (Crowd, error)
	DeleteSubscription(ctx context.Context, id string) error // with its waiting notices
	Subscription(ctx context.Context, id string) (Subscription, error)
	// SubscriptionByToken finds one by ConfirmHash or ManageHash.
	SubscriptionByToken(ctx context.Context, hash []byte) (Subscription, error)
	// Subscriptions lists newest first.
	Subscriptions(ctx context.Context, f SubscriptionFilter) (Page[Subscription], error)
	// PruneSubscriptions removes those never confirmed that were made before a time.
	PruneSubscriptions(ctx context.Context, before time.Time) (int, error)

	// Sight tells what those who look at some endpoints may want to look at anew: at most MaxSightings of them, by their slugs, of
	// which some may not be there.
	Sight(ctx context.Context, slugs []string) (Sight, error)
	// Tally adds up the checks of an endpoint that started at since or later, at all locations. Those made under maintenance do
	// not count.
	Tally(ctx context.Context, endpointID string, since time.Time, under time.Duration) (Tally, error)

	// CreateFirstUser keeps the first user and spends the setup token, atomically: ErrNotFound when the token is not
	// the current one, Conflict when there is a user already.
	CreateFirstUser(ctx context.Context, setupTokenHash []byte, u User) (User, error)
	// PutSetupToken replaces the setup token; Conflict when there is a user already.
	PutSetupToken(ctx context.Context, hash []byte, now time.Time) error
	// HasSetupToken reports whether hash is the current setup token.
	HasSetupToken(ctx context.Context, hash []byte) (bool, error)
	UserCount(ctx context.Context) (int, error)
	// Users lists by name, without regard to case.
	Users(ctx context.Context) ([]User, error)
	User(ctx context.Context, id string) (User, error)
	UserByName(ctx context.Context, name string) (User, error) // without regard to case
	// UserByIdentity finds whom a provider of identities knows by subject.
	UserByIdentity(ctx context.Context, issuer, subject string) (User, error)
	// CreateUser validates and keeps a member; it fills in ID and CreatedAt. Conflict when the name, or the identity, is taken.
	CreateUser(ctx context.Context, u User) (User, error)
	// UpdateUser works as UpdateEndpoint. ErrLastAdmin when nobody could administer any more. Another password, and being
	// disabled, end all sessions; being disabled also ends the subscriptions.
	UpdateUser(ctx context.Context, id string, change func(*User) error) (User, error)
	// DeleteUser removes a member with sessions and subscriptions; ErrLastAdmin as above.
	DeleteUser(ctx context.Context, id string) error

	CreateSession(ctx context.Context, s Session) error
	// Session returns a session that has not expired at now, and its user; ErrNotFound also when they are disabled.
	Session(ctx context.Context, tokenHash []byte, now time.Time) (Session, User, error)
	// SeeSession notes when a session was last seen; nil when there is none.
	SeeSession(ctx context.Context, tokenHash []byte, at time.Time) error
	// Sessions lists those of a user that have not expired at now, the one last seen first.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	DeleteSession(ctx context.Context, tokenHash []byte) error // nil when there is none
	// DeleteSessions ends all sessions of a user but the one with the hash keep, nil for none, and says how many.
	DeleteSessions(ctx context.Context, userID string, keep []byte) (int, error)

	// CreateInvitation keeps a link; it fills in ID and CreatedAt. ErrNotFound when UserID is nobody's. An earlier one that sets
	// the password of the same user is gone.
	CreateInvitation(ctx context.Context, i Invitation) (Invitation, error)
	// Invitations lists those that have not expired at now, newest first.
	Invitations(ctx context.Context, now time.Time) ([]Invitation, error)
	// Invitation finds one by its hash that has not expired at now.
	Invitation(ctx context.Context, hash []byte, now time.Time) (Invitation, error)
	DeleteInvitation(ctx context.Context, id string) error
	// AcceptInvitation spends one and returns the member it made, with the name and password of u, or whose password it set,
	// which ends their sessions. ErrNotFound when it is spent or has expired, Conflict when the name is taken, which spends
	// nothing.
	AcceptInvitation(ctx context.Context, hash []byte, now time.Time, u User) (User, error)

	// PutFactor keeps a second factor that waits for its first code, in place of one that waits already; Conflict when one is
	// confirmed.
	PutFactor(ctx context.Context, f Factor) (Factor, error)
	Factor(ctx context.Context, userID string) (Factor, error)
	// UpdateFactor works as UpdateEndpoint.
	UpdateFactor(ctx context.Context, userID string, change func(*Factor) error) (Factor, error)
	DeleteFactor(ctx context.Context, userID string) error

	CreateToken(ctx context.Context, t Token) (Token, error)
	// UseToken returns the token with this hash, unless it is revoked or has expired, and notes when it was last used (to the
	// minute).
	UseToken(ctx context.Context, hash []byte, now time.Time) (Token, error)
	Tokens(ctx context.Context) ([]Token, error) // newest first, revoked ones included
	RevokeToken(ctx context.Context, id string, now time.Time) error
	// Logins returns those sessions and tokens, of some by their hashes, that are good at now, in no order, as Session and UseToken
	// would find them. It notes nothing as used.
	Logins(ctx context.Context, hashes [][]byte, now time.Time) ([]Login, error)

	// Audits lists the log of changes, newest first. Its lines are written along with every change whose context has an actor:
	// see WithActor. Tend lets go of what is older than Retention.Audit.
	Audits(ctx context.Context, f AuditFilter) (Page[Audit], error)

	// Ping reports whether the database answers and its schema is the one this program knows.
	Ping(ctx context.Context) error
	Close() error
}

// Member is one line of the roster.
type Member struct {
	ID        string
	UpdatedAt time.Time
}

// Retention says how long history is kept: what began before these times may go. Checks go by whole days.
type Retention struct {
	Now    time.Time // the days ahead are counted from here
	Checks time.Time
	Hours  time.Time
	Audit  time.Time // lines of the log of changes
}

// AnnouncedOnce is how long several instances that notice the same thing say it once.
const AnnouncedOnce = 5 * time.Minute

// HoursKept is how long roll-ups by the hour are kept.
const HoursKept = 400 * 24 * time.Hour

// ErrNotFound means that there is nothing by that name.
var ErrNotFound = errors.New("not found")

// Invalid lists everything that is wrong with a value.
type Invalid struct{ Problems []probe.Problem }

func (e Invalid) Error() string {
	parts := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		parts = append(parts, p.Field+" "+p.Message)
	}
	return strings.Join(parts, "; ")
}

// Conflict means that a value clashes with what is already kept.
type Conflict struct {
	Field   string
	Message string
}

func (e Conflict) Error() string { return e.Field + " " + e.Message }

// invalid returns problems as an error, nil when there are none.
func invalid(problems []probe.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return Invalid{problems}
}

func problem(field, format string, args ...any) probe.Problem {
	return probe.Problem{Field: field, Message: fmt.Sprintf(format, args...)}
}

// Page is one page of a list. Next is the cursor of the page after it, empty at the end.
type Page[T any] struct {
	Items []T
	Next  string
}

// Bounds of a page. A filter's Limit of zero means DefaultLimit; larger ones are cut to MaxLimit.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// PageLimit returns the number of items a filter's limit stands for.
func PageLimit(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}

// ErrBadCursor means a cursor that this list never handed out.
var ErrBadCursor = errors.New("cursor was not handed out by this list")
