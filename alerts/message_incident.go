package alerts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// NewMessage words a delivery for the team: all of its notices in one message. publicURL is where people reach this service;
// without it the message has no link. A delivery to somebody from the public is worded as NewPublicMessage does, so that no way
// leads around it.
func NewMessage(d store.Delivery, publicURL string) Message {
	switch {
	case d.Subscription != nil && d.Subscription.Public():
		return NewPublicMessage(d, publicURL)
	case d.Event != nil:
		m := newEventMessage(*d.Event, d.Endpoint, publicURL)
		m.ID = d.Notice.ID
		return m
	}
	t := newTopic(d)
	m := Message{
		Kind: t.kind(), ID: d.Notice.ID, Incident: t.ID, Severity: string(t.Severity), Open: t.open(), Acts: t.acts(),
		Symbol: t.symbol(), State: t.state(), About: t.about(),
		Endpoint: oneLine(d.Endpoint.Name, maxLine),
		URL:      oneLine(probe.RedactURL(d.Endpoint.URL), maxURL),
		Step:     oneLine(t.Cause.Step, maxLine),
		Class:    oneLine(string(t.Cause.Class), maxLine),
		Said:     oneLine(t.Cause.Message, probe.MaxMessage),
		SeenFrom: names(t.SeenFrom), Dependents: names(d.Dependents),
		Since: t.StartedAt.UTC(),
		Link:  link(publicURL, "incidents", t.ID),
	}
	if t.Cause.Code != 0 {
		m.Code = strconv.Itoa(t.Cause.Code)
	}
	if !m.Open {
		m.Until, m.Lasted = t.ResolvedAt.UTC(), t.lasted()
	}
	switch t.Kind {
	case store.IncidentObjective:
		m.Said = "" // what is said is ours: see update
	case store.IncidentExpiring:
		m.Step, m.Said = "", "" // nothing fails, and the title says it
	}
	return t.say(m)
}

// say fills in the sentences of a message.
func (t topic) say(m Message) Message {
	switch m.Kind {
	case KindResolved:
		return t.resolved(m)
	case KindFlapping:
		m.Title, m.Symbol = t.name()+" comes and goes", "🟠"
		m.Update = "It changed too often within an hour. Nothing more is said of each change until it has calmed."
	case KindCalmed:
		m.Title, m.Update = t.title("")+" and no longer comes and goes", "Nothing has changed for an hour."
	case KindReminder:
		m.Title = t.title(" still")
		m.Update = "Nobody has acknowledged it, and it has lasted for " + inWords(t.due().Sub(t.StartedAt)) + "."
	case KindEscalation:
		m.Title = t.title("")
		m.Update = "Nobody has acknowledged it within " + inWords(t.due().Sub(t.OpenedAt)) + "."
	default:
		m.Title, m.Calm = t.title(""), m.Kind == KindUpdated && t.calm()
		if t.otherwise() {
			m.Title = t.title(" still")
		}
		m.Update, m.Act = t.update()
		m.Acted = m.Kind == KindUpdated && slices.Contains([]string{"acknowledged", "snoozed", "commented"}, m.Act)
	}
	m.Meaning = t.meaning() // also with an act: where one message is changed, it is all that people see
	if !m.Open {
		// Delivery was held up for so long that the incident is over; a second message says how it ended.
		m.Title, m.Symbol, m.Outcome = t.past(), t.endSymbol(), "It ended after "+m.Lasted+"."
		if m.Kind == KindOpened {
			m.Outcome = "This message comes late: it ended after " + m.Lasted + "."
		}
	}
	return m
}

// resolved words the end of an incident, and where its opening waits as well, both.
func (t topic) resolved(m Message) Message {
	m.Symbol = t.endSymbol()
	switch {
	case t.Resolution == store.ResolutionPaused:
		m.Title = t.name() + " was paused while it " + t.pastPredicate()
		m.Outcome = "It had been so for " + m.Lasted + " and is not watched until somebody resumes it."
		if t.Severity == store.StatusDown && t.ofEndpoint() {
			m.Outcome = "It had been down for " + m.Lasted + " and is not watched until somebody resumes it."
		}
	case t.Resolution == store.ResolutionRemoved:
		removed := "it"
		if t.Kind.Shared() {
			removed = "its last endpoint"
		}
		m.Title = t.name() + " is not watched any more"
		m.Outcome = "It " + t.pastPredicate() + " for " + m.Lasted + " until somebody removed " + removed + "."
	case t.Resolution == store.ResolutionManual && t.Kind != store.IncidentManual:
		m.Title = t.subject() + ": " + t.closer() + " says that it is over"
		m.Outcome = t.closed("Declared over", m.Lasted) + " Checks go on, and it is opened again if it gets worse."
		return m
	case t.Kind == store.IncidentManual:
		m.Title = "Over: " + t.subject()
		m.Outcome = t.closed("Ended", m.Lasted)
		return m
	case t.Flapping:
		m.Title = t.name() + " has calmed and is well"
		m.Outcome = "It came and went for " + m.Lasted + " and has been well for an hour since."
	default:
		m.Title, m.Outcome = t.recovery(), t.recovered(m.Lasted)
	}
	if t.unheard() {
		m.Title = t.past() + ", and it is over"
		if t.ofEndpoint() && t.Resolution == store.ResolutionRecovered {
			m.Title = t.past() + " and has recovered"
		}
		m.Outcome += " Word of it could not be sent before: this one message tells both."
		m.Meaning = t.meaning()
	}
	return m
}

// closer returns the name of who declared an incident over.
func (t topic) closer() string {
	if e := t.entry; e != nil && e.Kind == store.EntryResolved && e.Author != "" {
		return oneLine(e.Author, maxLine)
	}
	return "somebody"
}

// closed says who ended an incident, after how long and with which words.
func (t topic) closed(how, lasted string) string {
	text := ""
	if e := t.entry; e != nil && e.Kind == store.EntryResolved {
		if e.Author != "" {
			how += " by " + oneLine(e.Author, maxLine)
		}
		text = oneLine(e.Text, maxSaid)
	}
	return sentence(how+" after "+lasted, text)
}

// topic is what a delivery is about.
type topic struct {
	store.Incident
	endpoint store.Endpoint
	entry    *store.Entry
	notices  []store.Notice // oldest first, at least one
	public   bool           // told to somebody from the public
}

func newTopic(d store.Delivery) topic {
	t := topic{Incident: d.Incident, endpoint: d.Endpoint, entry: d.Entry, notices: append([]store.Notice{d.Notice}, d.Later...)}
	if t.Kind == "" {
		t.Kind = store.IncidentEndpoint
	}
	return t
}

func (t topic) open() bool { return t.ResolvedAt == nil }

// acts reports whether there is something left to acknowledge.
func (t topic) acts() bool {
	return t.open() && t.AcknowledgedAt == nil && t.Kind != store.IncidentManual
}

func (t topic) ofEndpoint() bool { return t.Kind == store.IncidentEndpoint }

// tells reports whether one of the notices is of a kind.
func (t topic) tells(kind store.NoticeKind) bool {
	return slices.ContainsFunc(t.notices, func(n store.Notice) bool { return n.Kind == kind })
}

// unheard reports whether the opening waited together with the end.
func (t topic) unheard() bool { return t.tells(store.NoticeOpened) }

// due returns when the last of the notices was to be told.
func (t topic) due() time.Time {
	at := t.notices[0].DueAt
	for _, n := range t.notices {
		at = later(at, n.DueAt)
	}
	return at
}

// kind returns what a message about several notices is: what matters most of how it stands in the end. What was over and is open
// again is an opening.
func (t topic) kind() Kind {
	again := t.entry != nil && t.entry.Kind == store.EntryReopened || t.tells(store.NoticeResolved)
	switch {
	case t.tells(store.NoticeResolved) && !t.open():
		return KindResolved
	case t.tells(store.NoticeCalmed) && !t.Flapping:
		return KindCalmed
	case t.tells(store.NoticeFlapping) && t.open():
		return KindFlapping
	case t.tells(store.NoticeOpened), again && t.open():
		return KindOpened
	case t.tells(store.NoticeEscalation) && t.AcknowledgedAt == nil:
		return KindEscalation
	case t.tells(store.NoticeReminder) && len(t.notices) == 1:
		return KindReminder
	}
	return KindUpdated
}

// symbol says at a glance how serious it is.
func (t topic) symbol() string {
	if t.Kind == store.IncidentObjective {
		return "🟠"
	}
	switch t.Severity {
	case store.StatusDegraded:
		return "🟡"
	case store.StatusGated:
		return "🟠"
	case store.StatusUnknown:
		return "⚪"
	}
	return "🔴"
}

// endSymbol is green where it is well, and neither that nor red where nobody can tell.
func (t topic) endSymbol() string {
	if t.Resolution == store.ResolutionRecovered || t.Kind == store.IncidentManual {
		return "🟢"
	}
	return "⚪"
}

func (t topic) lasted() string { return inWords(t.ResolvedAt.Sub(t.StartedAt)) }

// calm reports whether the one notice there is tells of a change that is none for the worse.
func (t topic) calm() bool {
	if t.entry == nil || len(t.notices) > 1 {
		return false
	}
	return t.otherwise() || t.entry.Kind == store.EntrySeverity && t.Severity != t.Worst
}

// otherwise reports whether it is as bad as it was, and of another cause.
func (t topic) otherwise() bool {
	return t.entry != nil && t.entry.Kind == store.EntryCause && t.kind() == KindUpdated
}

// maxSaid bounds what somebody of the team wrote, in characters. The whole of it stands where the link leads.
const maxSaid = 500

// update says in a sentence what happened to an incident, and in a word what somebody did.
func (t topic) update() (sentenced, act string) {
	e := t.entry
	if t.Kind == store.IncidentObjective && (e == nil || e.Kind == store.EntryOpened) {
		return oneLine(t.Cause.Message, probe.MaxMessage), ""
	}
	if e == nil {
		return "", ""
	}
	by := ""
	if e.Author != "" {
		by = " by " + oneLine(e.Author, maxLine)
	}
	text := oneLine(e.Text, maxSaid)
	switch e.Kind {
	case store.EntryAcknowledged:
		return sentence("Acknowledged"+by, text), "acknowledged"
	case store.EntrySnoozed:
		until := ""
		if t.SnoozedUntil != nil {
			until = " until " + t.SnoozedUntil.UTC().Format("2006-01-02 15:04 MST")
		}
		if strings.HasPrefix(text, "until ") {
			text = ""
		}
		return sentence("Snoozed"+by+until, text), "snoozed"
	case store.EntryComment:
		return sentence("Comment"+by, text), "commented"
	case store.EntryReopened:
		return sentence("Opened again"+by, text), "reopened"
	case store.EntrySeverity:
		return t.turned(e.At), ""
	case store.EntryCause:
		return "It has failed in another way since " + e.At.UTC().Format("15:04 MST") + ".", ""
	case store.EntryJoined:
		if text != "" {
			return "It affects " + text + ".", ""
		}
	case store.EntryOpened:
		if t.Kind == store.IncidentManual {
			return text, ""
		}
	}
	return "", ""
}

// turned says that an incident got worse, or better without being over.
func (t topic) turned(at time.Time) string {
	when := at.UTC().Format("15:04 MST")
	if t.Severity == t.Worst {
		return "It got worse at " + when + "."
	}
	before := t
	before.Severity, before.Cause = t.Worst, probe.Failure{}
	return "It got better at " + when + " and is not over: it " + before.pastPredicate() + " before."
}

// sentence returns what happened, and what somebody said about it.
func sentence(what, said string) string {
	if said == "" {
		return what + "."
	}
	if r, _ := utf8.DecodeLastRuneInString(said); !unicode.In(r, unicode.Po) {
		said += "."
	}
	return what + ": " + said
}

func names(all []string) []string {
	const maxNames = 20
	if len(all) == 0 {
		return nil
	}
	clean := make([]string, 0, min(len(all), maxNames+1))
	for _, name := range all[:min(len(all), maxNames)] {
		clean = append(clean, oneLine(name, maxLine))
	}
	if more := len(all) - maxNames; more > 0 {
		clean = append(clean, fmt.Sprintf("%d more", more))
	}
	return clean
}
