package web

import (
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// IncidentsPage lists incidents, open ones first.
type IncidentsPage struct {
	Frame
	Open     []IncidentRow // empty on later pages
	Resolved []IncidentRow
	Next     string // address of the next page, empty on the last
	First    string // address of the first page, empty on it
}

func (IncidentsPage) template() string { return "incidents" }

// IncidentRow is one incident in a list.
type IncidentRow struct {
	ID           string
	Kind         store.IncidentKind
	Slug, Name   string // of the endpoint; empty when it is about none, or about several
	Title        string // of one that is about no single endpoint
	Objective    string // name, of one about an objective
	Severity     store.Status
	StartedAt    time.Time
	OpenedAt     time.Time
	ResolvedAt   *time.Time // nil while open
	Resolution   store.Resolution
	Cause        probe.Failure
	Flapping     bool
	Acknowledged string     // by whom, empty while nobody has
	SnoozedUntil *time.Time // nil unless that lies ahead
}

// Lasted is how long the incident lasted, until now when it is open.
func (r IncidentRow) Lasted(now time.Time) time.Duration {
	if r.ResolvedAt != nil {
		return r.ResolvedAt.Sub(r.StartedAt)
	}
	return now.Sub(r.StartedAt)
}

// Subject is what the incident is about, or, of a manual one, what it is called.
func (r IncidentRow) Subject() Said {
	switch {
	case r.Name != "" && r.Kind != store.IncidentManual:
		return Say("%s", r.Name)
	case r.Kind == store.IncidentLocation && r.Title != "":
		return Say("Location %s", r.Title)
	case r.Title == "":
		return Say("Incident")
	}
	return Say("%s", r.Title)
}

// tale is what is said of an incident: each goes on where its subject ends, and takes how long it lasted.
type tale struct {
	short    string // in a list, whether it is over or not: "down for 12 min"
	is, was  string // in a heading: "has been down for 12 min"
	standing string // in the title of a window: "is down"
}

// tales are those of an incident that an endpoint is not up, by how serious it is.
var tales = map[store.Status]tale{
	store.StatusDown:     {"down for %s", "has been down for %s", "was down for %s", "is down"},
	store.StatusDegraded: {"degraded for %s", "has been degraded for %s", "was degraded for %s", "is degraded"},
	store.StatusGated:    {"gated for %s", "has been gated for %s", "was gated for %s", "is gated"},
	store.StatusUnknown:  {"unknown for %s", "has been unknown for %s", "was unknown for %s", "is unknown"},
}

func (r IncidentRow) tale() tale {
	if told, ok := tales[r.Severity]; ok {
		return told
	}
	return tales[store.StatusUnknown]
}

// How says in a few words what is wrong with the subject, in a list: "down for 12 min". A manual incident says it all in its title.
func (r IncidentRow) How(now time.Time) Said {
	lasted := Duration(r.Lasted(now))
	switch r.Kind {
	case store.IncidentManual:
		return Said{}
	case store.IncidentExpiring:
		return r.ending("has a certificate that ends soon", "has a credential that ends soon")
	case store.IncidentObjective:
		return r.burning()
	case store.IncidentChain:
		return Say("stands still for %s", lasted)
	case store.IncidentLocation:
		return Say("offline for %s", lasted)
	}
	return Say(r.tale().short, lasted)
}

// Story says the same as a whole sentence for a heading: "has been down for 12 min".
func (r IncidentRow) Story(now time.Time) Said {
	if r.ResolvedAt != nil {
		return r.past()
	}
	lasted := Duration(r.Lasted(now))
	switch r.Kind {
	case store.IncidentManual, store.IncidentExpiring, store.IncidentObjective:
		return r.How(now)
	case store.IncidentChain:
		return Say("has stood still for %s", lasted)
	case store.IncidentLocation:
		return Say("has been offline for %s", lasted)
	}
	return Say(r.tale().is, lasted)
}

// Said is the whole sentence: "Weather has been down for 12 min".
func (r IncidentRow) Said(now time.Time) Said {
	story := r.Story(now)
	if story.Empty() {
		return r.Subject()
	}
	return Say("%s %s", r.Subject(), story)
}

// past is the story of an incident that is over.
func (r IncidentRow) past() Said {
	lasted := Duration(r.Lasted(time.Time{}))
	switch r.Kind {
	case store.IncidentManual:
		return Said{}
	case store.IncidentExpiring:
		return r.ending("had a certificate that was about to end", "had a credential that was about to end")
	case store.IncidentObjective:
		if r.Objective == "" {
			return Say("burnt its error budget too fast for %s", lasted)
		}
		return Say("burnt its error budget for %s too fast for %s", r.Objective, lasted)
	case store.IncidentChain:
		return Say("stood still for %s", lasted)
	case store.IncidentLocation:
		return Say("was offline for %s", lasted)
	}
	return Say(r.tale().was, lasted)
}

// Now is the state in a word or two, for the title of the window.
func (r IncidentRow) Now() string {
	switch {
	case r.ResolvedAt != nil:
		return "resolved"
	case r.Kind == store.IncidentEndpoint || r.Kind == "":
		return r.tale().standing
	}
	return "open"
}

// ending chooses between what is said of a certificate and of a credential.
func (r IncidentRow) ending(certificate, credential string) Said {
	if r.Cause.Class == probe.ClassTLSExpiring {
		return Say(certificate)
	}
	return Say(credential)
}

func (r IncidentRow) burning() Said {
	if r.Objective == "" {
		return Say("burns its error budget too fast")
	}
	return Say("burns its error budget for %s too fast", r.Objective)
}

// IncidentPage shows one incident from its first sign to its end, and takes what people do about it.
type IncidentPage struct {
	Frame
	Incident   IncidentRow
	Worst      store.Status // the most serious that it was
	Public     bool         // status pages show it
	SeenFrom   []string
	Ack        *time.Time     // when it was acknowledged; nil while it is not
	Endpoints  []EndpointLink // those in it, where there may be several
	Dependents []EndpointLink // that stand behind its endpoint
	Opening    *Opening       // the check that opened it; nil when there is none, or it is not kept
	Timeline   []TimelineRow
	Checks     []Check // around its beginning and its end, newest first
	Form       ActForm
	Problems   Problems
}

func (IncidentPage) template() string { return "incident" }

// Open reports whether it is not over.
func (p IncidentPage) Open() bool { return p.Incident.ResolvedAt == nil }

// Tone is how it stands at a glance.
func (p IncidentPage) Tone() string {
	if !p.Open() {
		return "up"
	}
	return tagOf(p.Incident.Severity).Tone
}

// Worsened reports whether it was once more serious than it is, or than it was when it ended.
func (p IncidentPage) Worsened() bool {
	return p.Worst != "" && p.Incident.Severity != "" && store.Graver(p.Worst, p.Incident.Severity)
}

// EndpointLink names an endpoint.
type EndpointLink struct {
	Slug, Name string
	Status     store.Status // empty: not shown
}

// Opening is the check that opened an incident, with what was said, word for word.
type Opening struct {
	Check Check
	Said  []probe.Message // empty when it was not kept
}

// ActForm is what somebody is about to do, as typed.
type ActForm struct {
	Text   string
	Public bool
	For    string // of SnoozeFor
}

// SnoozeFor lists how long an incident can be snoozed for, as forms send it and as people say it.
func (IncidentPage) SnoozeFor() [][2]string {
	return [][2]string{{"1h", "1 hour"}, {"4h", "4 hours"}, {"morning", "until 9:00 UTC"}, {"24h", "a day"}, {"72h", "3 days"}, {"168h", "a week"}}
}

// Ended says how an incident that is over ended, and after how long.
func (p IncidentPage) Ended() string {
	switch p.Incident.Resolution {
	case store.ResolutionPaused:
		return "Ended by a pause after %s"
	case store.ResolutionManual:
		return "Resolved by hand after %s"
	}
	return "Over after %s"
}

// TimelineRow is one thing that happened to an incident.
type TimelineRow struct {
	Kind      store.EntryKind
	At        time.Time
	Author    string // empty: Rollcall itself
	Text      string
	Public    bool // status pages show the text
	Severity  store.Status
	Cause     *probe.Failure
	Incident  store.IncidentKind
	How       store.Resolution // of EntryResolved
	Message   string           // of what was sent: the kind of message
	ChannelID string           // of what was sent; empty for that of somebody who has subscribed
	Channel   string           // its name; empty for a subscription
	Sub       Said             // a remark of ours
}

// EntryBegan is the first sign of an incident, which the timeline shows beside what is kept.
const EntryBegan store.EntryKind = "began"

// Tone is the shape in which it is shown.
func (r TimelineRow) Tone() string {
	switch r.Kind {
	case EntryBegan, store.EntryOpened, store.EntryReopened:
		if r.Severity != "" {
			return tagOf(r.Severity).Tone
		}
		return "down"
	case store.EntrySeverity:
		return tagOf(r.Severity).Tone
	case store.EntryCause, store.EntrySeen, store.EntryJoined, store.EntryContract, store.EntryFlapping:
		return "degraded"
	case store.EntryCalmed, store.EntryLeft:
		return "pending"
	case store.EntryResolved:
		return "up"
	case store.EntryFailed:
		return "down"
	case store.EntrySnoozed:
		return "paused"
	case store.EntrySent:
		return "sent"
	}
	return "said"
}

// Words say what happened, without who and with what: one of a closed list.
func (r TimelineRow) Words() string {
	switch r.Kind {
	case EntryBegan:
		return "Began"
	case store.EntryOpened:
		if r.Incident == store.IncidentEndpoint || r.Incident == "" {
			return "Confirmed"
		}
		return "Opened"
	case store.EntrySeverity:
		return tagOf(r.Severity).Word
	case store.EntryCause:
		return "Another cause"
	case store.EntrySeen:
		return "Seen from"
	case store.EntryJoined:
		return "Joined by"
	case store.EntryLeft:
		return "No longer in it:"
	case store.EntryFlapping:
		return "Comes and goes"
	case store.EntryCalmed:
		return "No longer comes and goes"
	case store.EntryContract:
		return "The tool list changed"
	case store.EntryAcknowledged:
		return "Acknowledged"
	case store.EntrySnoozed:
		return "Snoozed"
	case store.EntryComment:
		return "Comment"
	case store.EntryReopened:
		return "Opened again"
	case store.EntrySent:
		return "Told"
	case store.EntryFailed:
		return "Could not tell"
	case store.EntryResolved:
		return r.ended()
	}
	return string(r.Kind)
}

func (r TimelineRow) ended() string {
	switch {
	case r.How == store.ResolutionPaused:
		return "Ended by a pause"
	case r.How == store.ResolutionRemoved:
		return "Ended"
	case r.Author != "" || r.How == store.ResolutionManual:
		return "Resolved"
	case r.Incident == store.IncidentEndpoint || r.Incident == "":
		return "Recovered"
	}
	return "It is over"
}

// Quiet reports whether it is a matter of delivery rather than of the incident.
func (r TimelineRow) Quiet() bool { return r.Kind == store.EntrySent }

// Ours reports whether the text is Rollcall's own words, and not what somebody said.
func (r TimelineRow) Ours() bool { return r.Author == "" || r.Kind == store.EntrySnoozed }

// Until returns when a snooze ends, where that is all that its text says; nil otherwise.
func (r TimelineRow) Until() *time.Time {
	text, ok := strings.CutPrefix(r.Text, "until ")
	at, err := time.Parse("2006-01-02 15:04 MST", text)
	if !ok || err != nil || r.Kind != store.EntrySnoozed {
		return nil
	}
	return new(at.UTC())
}

// InLine reports whether the text is a part of the words: names of locations and endpoints.
func (r TimelineRow) InLine() bool {
	return r.Kind == store.EntrySeen || r.Kind == store.EntryJoined || r.Kind == store.EntryLeft
}

// RaisePage opens an incident by hand.
type RaisePage struct {
	Frame
	Form     RaiseForm
	Picker   Picker
	Problems Problems
}

func (RaisePage) template() string { return "raise" }

// RaiseForm is a manual incident as somebody typed it.
type RaiseForm struct {
	Title, Severity, Text string
	StartedAt             string // in UTC, as datetime-local has it
}

// Severities are those that can be chosen, worst first.
func (RaisePage) Severities() []store.Status { return store.Severities() }
