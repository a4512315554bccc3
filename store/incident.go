package store

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
)

// Incident is something that is wrong, or that somebody says is: from its first sign to its end. At most one of a Subject is
// open.
type Incident struct {
	ID         string
	Kind       IncidentKind
	Subject    string // see SubjectOf and its kin
	EndpointID string // empty for those of a chain or a location, and for manual ones
	Slug       string // of the endpoint, filled in by reads, as are Name and Public
	Name       string
	Public     bool // of the endpoint; of a chain or a manual incident, of any that is in it, and of one that names none, always
	// Endpoints are the ids of those in it, where it may have several; of one that is over, of all that ever were. Filled in by
	// reads, in order, and given to Store.Raise.
	Endpoints []string
	// NamesEndpoints says of a manual incident that it was announced of endpoints, which may all be gone. Store.Raise fills it in.
	NamesEndpoints bool
	Title          string // of a manual incident, and of a chain or a location what it is called; else empty
	// Severity is how serious it is, or was when it ended: StatusDown, StatusDegraded, StatusGated or StatusUnknown. Worst is the
	// most serious that it was.
	Severity   Status
	Worst      Status
	StartedAt  time.Time
	OpenedAt   time.Time  // when it was confirmed
	ResolvedAt *time.Time // nil while open
	Resolution Resolution // empty while open
	Cause      probe.Failure
	CheckID    string   // of the check that opened it; empty where there is none
	SeenFrom   []string // the locations that see it
	// Flapping means that it comes and goes: it stays open until that has calmed.
	Flapping bool
	// What people did about it. An acknowledged incident reminds nobody, a snoozed one not before SnoozedUntil.
	AcknowledgedAt *time.Time
	AcknowledgedBy string
	SnoozedUntil   *time.Time
	// Told are the ids of the team's channels that the opening was, or is to be, told to, or an escalation was; filled in only
	// where it is to be judged.
	Told []string
}

// IncidentKind says what an incident is about. Kinds are stored as they are and never renamed.
type IncidentKind string

// The kinds of incidents.
const (
	IncidentEndpoint  IncidentKind = "endpoint"  // an endpoint is not up
	IncidentExpiring  IncidentKind = "expiring"  // its certificate or credential ends soon
	IncidentObjective IncidentKind = "objective" // its error budget burns too fast
	IncidentChain     IncidentKind = "chain"     // a chain stands still: one incident for all of its endpoints
	IncidentLocation  IncidentKind = "location"  // a location of ours has lost its network
	IncidentManual    IncidentKind = "manual"    // somebody says so
)

// SubjectOf returns the subject of what is wrong with an endpoint itself.
func SubjectOf(endpointID string) string { return endpointID }

// SubjectOfExpiry returns that of what it has that ends soon.
func SubjectOfExpiry(endpointID string) string { return endpointID + "/expiring" }

// SubjectOfObjective returns that of one of its objectives, by name, which is unique within an endpoint.
func SubjectOfObjective(endpointID, objective string) string {
	return endpointID + "/objective/" + objective
}

// SubjectOfChain returns that of a chain, by a key as ChainKey makes it.
func SubjectOfChain(key string) string { return "chain/" + key }

// SubjectOfLocation returns that of a location of ours, by name.
func SubjectOfLocation(name string) string { return "location/" + name }

// Shared reports whether several endpoints may be in an incident of this kind: each joins and leaves, and with the last it ends.
func (k IncidentKind) Shared() bool { return k == IncidentChain }

// EndsByItself reports whether an incident of this kind is opened again by the next look at what it is about, for as long as that
// is so: then nobody can declare it over. That of a location is not: whoever takes the location away for good has to end it.
func (k IncidentKind) EndsByItself() bool {
	switch k {
	case IncidentExpiring, IncidentObjective, IncidentChain:
		return true
	}
	return false
}

// Snoozed reports whether nobody is to be reminded at a time.
func (i Incident) Snoozed(at time.Time) bool {
	return i.SnoozedUntil != nil && at.Before(*i.SnoozedUntil)
}

// Resolution says how an incident ended.
type Resolution string

// The ways in which an incident ends.
const (
	ResolutionRecovered Resolution = "recovered"
	ResolutionPaused    Resolution = "paused" // somebody paused the endpoint
	ResolutionManual    Resolution = "manual" // somebody said that it is over
	// ResolutionRemoved: somebody removed the endpoint. What is kept of its incident names it as the title.
	ResolutionRemoved Resolution = "removed"
)

// IncidentStatus selects open or resolved incidents.
type IncidentStatus string

// The values of IncidentFilter.Status.
const (
	IncidentOpen     IncidentStatus = "open"
	IncidentResolved IncidentStatus = "resolved"
)

// IncidentFilter selects incidents. Zero members do not select.
type IncidentFilter struct {
	EndpointID string // also shared ones that it is, or was, in
	// EndpointIDs selects those about any of several endpoints, as EndpointID does about one; nil does not select.
	EndpointIDs []string
	Status      IncidentStatus
	Kinds       []IncidentKind
	Subject     string
	PublicOnly  bool      // those that Incident.Public holds of
	Since       time.Time // open then, or started since
	Limit       int
	Cursor      string
}

// EnrollIncident returns an incident that somebody, or something of ours, raises, with what a database is to keep it under, and
// the first line of its timeline. Of a manual one, everything is public.
func EnrollIncident(i Incident, author, text string, at time.Time) (Incident, Entry, error) {
	var problems []probe.Problem
	if !slices.Contains(Severities(), i.Severity) {
		problems = append(problems, problem("severity", "must be one of down, gated, unknown and degraded"))
	}
	if i.Kind == IncidentManual {
		problems = append(problems, nameProblems("title", i.Title)...)
	} else if i.Subject == "" {
		problems = append(problems, problem("subject", "is required"))
	}
	if utf8.RuneCountInString(text) > maxComment {
		problems = append(problems, problem("text", "is longer than %d characters", maxComment))
	}
	i.ID, i.Worst = NewID("inc"), i.Severity
	if i.Kind == IncidentManual {
		i.Subject, i.NamesEndpoints = "manual/"+i.ID, len(i.Endpoints) > 0
	}
	if i.StartedAt.IsZero() {
		i.StartedAt = at
	}
	if i.OpenedAt.IsZero() {
		i.OpenedAt = i.StartedAt
	}
	i.StartedAt, i.OpenedAt, i.ResolvedAt, i.Resolution = Stamp(i.StartedAt), Stamp(i.OpenedAt), nil, ""
	i.AcknowledgedAt, i.AcknowledgedBy, i.SnoozedUntil = nil, "", nil
	i.Subject, i.Title = CleanText(i.Subject), CleanText(i.Title)
	i.Cause.Step, i.Cause.Message = CleanText(i.Cause.Step), CleanText(i.Cause.Message)
	i.Endpoints, i.SeenFrom = cleanTexts(i.Endpoints), cleanTexts(i.SeenFrom)
	entry := Entry{
		ID: NewID("ent"), IncidentID: i.ID, At: i.OpenedAt, Kind: EntryOpened, Author: CleanText(author), Text: CleanText(text),
		Public: i.Kind == IncidentManual, Severity: i.Severity,
	}
	return i, entry, invalid(problems)
}

// Severities lists what an incident may be of, worst first.
func Severities() []Status { return []Status{StatusDown, StatusGated, StatusUnknown, StatusDegraded} }

// Graver reports whether one severity is more serious than another. What is no severity is the least serious.
func Graver(a, b Status) bool { return gravity(a) > gravity(b) }

func gravity(s Status) int {
	i := slices.Index(Severities(), s)
	if i < 0 {
		return -1
	}
	return len(Severities()) - i
}

// Entry is a line of an incident's timeline.
type Entry struct {
	ID         string
	IncidentID string
	At         time.Time
	Kind       EntryKind
	Author     string         // who did it; empty: Rollcall itself
	Text       string         // in words: a comment, a reason, where it was seen
	Public     bool           // shown on status pages
	Severity   Status         // from then on, where it changed; else empty
	Cause      *probe.Failure // from then on, where it changed; else nil
	// Of EntrySent and EntryFailed, which reads put in from the log of deliveries: the notice, its kind and its channel.
	NoticeID, NoticeKind, ChannelID, ChannelName string
}

// EntryKind says what a line of a timeline tells. Kinds are stored as they are and never renamed.
type EntryKind string

// The kinds of entries.
const (
	EntryOpened       EntryKind = "opened"
	EntrySeverity     EntryKind = "severity" // it got worse, or better without being over
	EntryCause        EntryKind = "cause"    // another class or code
	EntrySeen         EntryKind = "seen"     // other locations see it
	EntryJoined       EntryKind = "joined"   // an endpoint came into a shared incident
	EntryLeft         EntryKind = "left"
	EntryFlapping     EntryKind = "flapping"
	EntryCalmed       EntryKind = "calmed"
	EntryContract     EntryKind = "contract" // the tool list changed meanwhile
	EntryAcknowledged EntryKind = "acknowledged"
	EntrySnoozed      EntryKind = "snoozed"
	EntryComment      EntryKind = "comment"
	EntryResolved     EntryKind = "resolved"
	EntryReopened     EntryKind = "reopened"
	EntrySent         EntryKind = "sent"   // a notice; made by reads
	EntryFailed       EntryKind = "failed" // an attempt to send one; made by reads
)
