package store

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
)

// Act is something that somebody does about an incident.
type Act struct {
	Kind   ActKind
	Author string    // required: a user's name, a token's, or who clicked in Slack
	At     time.Time // required
	Text   string    // a comment, or a reason; required for ActComment
	Public bool      // the text is shown on status pages
	Until  time.Time // required for ActSnooze
}

// ActKind says what is done.
type ActKind string

// The kinds of acts.
const (
	ActAcknowledge ActKind = "acknowledge" // somebody looks after it: reminders and escalation stop
	ActSnooze      ActKind = "snooze"      // no reminder and no escalation before Until
	ActComment     ActKind = "comment"
	ActResolve     ActKind = "resolve" // it is over, whatever checks say; worse, and a new outage, open it again
	ActReopen      ActKind = "reopen"  // it is not
)

// Bounds of an act.
const (
	maxComment = 4000 // characters
	maxSnooze  = 30 * 24 * time.Hour
)

// Validate returns everything that is wrong with a as an Invalid.
func (a Act) Validate() error {
	var problems []probe.Problem
	switch a.Kind {
	case ActAcknowledge, ActResolve, ActReopen:
	case ActSnooze:
		if left := a.Until.Sub(a.At); left <= 0 || left > maxSnooze {
			problems = append(problems, problem("until", "must lie ahead, by at most 30 days"))
		}
	case ActComment:
		if strings.TrimSpace(a.Text) == "" {
			problems = append(problems, problem("text", "is required"))
		}
	default:
		problems = append(problems, problem("act", "must be acknowledge, snooze, comment, resolve or reopen"))
	}
	if utf8.RuneCountInString(a.Text) > maxComment {
		problems = append(problems, problem("text", "is longer than %d characters", maxComment))
	}
	if a.Author == "" {
		problems = append(problems, problem("author", "is required"))
	}
	return invalid(problems)
}

// Acted is what an act does to an incident, to be written in one transaction: see [Incident.Take].
type Acted struct {
	Incident Incident
	Entry    Entry
	Kind     NoticeKind // NoticeUpdated, or NoticeResolved: what those who were told of the opening hear
	// Withdraw has notices that remind or escalate taken back, Defer has them put off until then.
	Withdraw bool
	Defer    time.Time
}

// Take returns what an act makes of an incident, worked out without a database. Conflict when it makes no sense: what is over
// can only be commented on and reopened, what is open not be reopened, and what ends by itself neither: the next look at it would
// undo that.
func (i Incident) Take(a Act) (Acted, error) {
	open := i.ResolvedAt == nil
	if i.Kind.EndsByItself() && (a.Kind == ActReopen || a.Kind == ActResolve && open) {
		return Acted{}, Conflict{"act", "is of no use: an incident of this kind begins and ends by itself: acknowledge or snooze it"}
	}
	if !open && a.Kind != ActComment && a.Kind != ActReopen {
		return Acted{}, Conflict{"act", "comes too late: the incident is over; reopen it first"}
	}
	if open && a.Kind == ActReopen {
		return Acted{}, Conflict{"act", "is of no use: the incident is open"}
	}
	out := Acted{Incident: i, Kind: NoticeUpdated}
	out.Entry = Entry{
		ID: NewID("ent"), IncidentID: i.ID, At: Stamp(a.At), Author: CleanText(a.Author), Text: CleanText(a.Text), Public: a.Public,
	}
	at := Stamp(a.At)
	switch a.Kind {
	case ActAcknowledge:
		out.Entry.Kind, out.Withdraw = EntryAcknowledged, true
		out.Incident.AcknowledgedAt, out.Incident.AcknowledgedBy = &at, out.Entry.Author
	case ActSnooze:
		until := Stamp(a.Until)
		out.Entry.Kind, out.Defer, out.Incident.SnoozedUntil = EntrySnoozed, until, &until
		if out.Entry.Text == "" {
			out.Entry.Text = "until " + until.Format("2006-01-02 15:04 MST")
		}
	case ActComment:
		out.Entry.Kind = EntryComment
	case ActResolve:
		out.Entry.Kind, out.Kind, out.Withdraw = EntryResolved, NoticeResolved, true
		out.Incident = *Resolve(i, at, at, ResolutionManual)
	case ActReopen:
		out.Entry.Kind = EntryReopened
		out.Incident.ResolvedAt, out.Incident.Resolution = nil, ""
		out.Incident.AcknowledgedAt, out.Incident.AcknowledgedBy, out.Incident.SnoozedUntil = nil, "", nil
	}
	return out, nil
}

// Notices returns what the team's channels are told of an act. about are the endpoints that the incident is about.
func (a Acted) Notices(about []Endpoint) []Notice {
	i, at := a.Incident, a.Entry.At
	notices := NoticesOf(i, a.Kind, nil, at)
	for k := range notices {
		notices[k].EntryID = a.Entry.ID
	}
	if a.Entry.Kind != EntryReopened || i.Kind != IncidentEndpoint {
		return notices
	}
	for _, e := range about {
		for _, n := range e.ahead(i, at) {
			n.ID, n.IncidentID = NewID("ntc"), i.ID
			notices = append(notices, n)
		}
	}
	return notices
}

// ahead returns what reminds of an incident that is open again, or escalates it. What nobody was told of is told by the next
// check, if at all, unless there are only the channels of later steps: see Course of package alerts.
func (e Endpoint) ahead(i Incident, at time.Time) []Notice {
	if len(i.Told) == 0 && (len(e.Channels) > 0 || !e.Alerting.Tells(i.Severity)) {
		return nil
	}
	first := slices.DeleteFunc(slices.Clone(i.Told), func(id string) bool { return !slices.Contains(e.Channels, id) })
	return e.Alerting.Ahead(first, at)
}

// Telling returns what those who have subscribed hear of an act: the end, that it is open again, and what is said in public.
func (a Acted) Telling(about []Endpoint) Telling {
	t := Telling{
		Incident: a.Incident, Endpoints: about, Told: a.Incident.Tells(about), Anew: a.Entry.Kind == EntryReopened,
		EntryID: a.Entry.ID, At: a.Entry.At,
	}
	if a.Kind == NoticeResolved || t.Anew || a.Entry.Public && a.Entry.Text != "" {
		t.Kind = a.Kind
	}
	return t
}
