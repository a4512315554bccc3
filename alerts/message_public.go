package alerts

import (
	"strings"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// seeHowItStands is what a link of a message to the public is for: who follows it need not know this service by name.
const seeHowItStands = "See how it stands"

// NewPublicMessage words a delivery for somebody from the public who has subscribed: what it is about, how it stands, since when
// and for how long, and what the team says to everybody. There is nothing in it that a status page does not show: no class, host,
// step, location or word of a server, and no name of who did what.
func NewPublicMessage(d store.Delivery, publicURL string) Message {
	t := newTopic(d)
	t.Cause, t.SeenFrom, t.public = probe.Failure{}, nil, true
	m := Message{Kind: KindUpdated, ID: d.Notice.ID, Endpoint: oneLine(d.Endpoint.Name, maxLine), Link: statusLink(d, publicURL), LinkText: seeHowItStands}
	if d.Event != nil { // nobody from the public subscribes to these
		m.Title = strings.TrimSpace(m.Endpoint + " has changed")
		return m
	}
	m.Kind, m.Incident, m.Severity, m.Open = t.kind(), t.ID, string(t.Severity), t.open()
	m.State, m.About = t.state(), t.about()
	m.Symbol, m.Since, m.Update = t.symbol(), t.StartedAt.UTC(), t.publicUpdate()
	if m.Kind == KindEscalation || m.Kind == KindReminder {
		m.Kind = KindUpdated
	}
	m.Title = t.publicTitle(m.Kind)
	if !m.Open {
		m.Symbol, m.Until, m.Lasted = "🟢", t.ResolvedAt.UTC(), t.lasted()
		m.Outcome = "It lasted for " + m.Lasted + "."
		if t.Resolution == store.ResolutionPaused || t.Resolution == store.ResolutionRemoved {
			m.Symbol, m.Outcome = "⚪", "It "+t.pastPredicate()+" for "+m.Lasted+" until then."
		}
	}
	return m
}

// statusLink leads to where the status page that somebody subscribed on tells what a delivery is about.
func statusLink(d store.Delivery, publicURL string) string {
	page := pageLink(d, publicURL)
	switch {
	case d.Endpoint.Slug == "" || !d.Knows(d.Endpoint):
		return page
	case d.Page != nil:
		return link(page, "service", d.Endpoint.Slug)
	}
	return link(page, d.Endpoint.Slug)
}

// pageLink leads to the status page that somebody subscribed on.
func pageLink(d store.Delivery, publicURL string) string {
	if d.Page != nil {
		return link(d.Page.URL(publicURL))
	}
	return link(publicURL, "status")
}

// publicTitle says how it stands.
func (t topic) publicTitle(kind Kind) string {
	switch {
	case t.Kind == store.IncidentExpiring, t.Kind == store.IncidentObjective, t.Kind == store.IncidentLocation:
		return t.named() + " has an incident" // which nobody from the public is told of
	case kind == KindFlapping:
		return t.subject() + " comes and goes"
	case t.open():
		return t.title("")
	case t.Kind == store.IncidentManual:
		return t.past()
	case t.Resolution == store.ResolutionPaused, t.Resolution == store.ResolutionRemoved:
		return t.subject() + " is not watched any more"
	}
	return t.recovery()
}

// publicUpdate returns what the team says to everybody, or how it has changed.
func (t topic) publicUpdate() string {
	e := t.entry
	switch {
	case e == nil:
		return ""
	case e.Public && e.Text != "":
		return oneLine(e.Text, maxSaid)
	case e.Kind == store.EntrySeverity && t.ofEndpoint() && t.open():
		return t.turned(e.At)
	}
	return ""
}
