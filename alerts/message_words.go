package alerts

import (
	"cmp"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// subject returns what an incident is about, by name.
func (t topic) subject() string {
	name := oneLine(t.endpoint.Name, maxLine)
	if title := oneLine(t.Title, maxLine); title != "" && !t.ofEndpoint() || name == "" {
		name = title
	}
	switch t.Kind {
	case store.IncidentLocation:
		if name == "" {
			name = oneLine(strings.TrimPrefix(t.Subject, "location/"), maxLine)
		}
		return "Location " + strings.TrimPrefix(name, "Location ")
	case store.IncidentObjective:
		return t.named()
	}
	if name == "" {
		return "An endpoint"
	}
	return name
}

// name returns the subject where it is followed by what it does.
func (t topic) name() string {
	if t.Kind == store.IncidentExpiring {
		return t.named()
	}
	return t.subject()
}

// named returns the name of the endpoint.
func (t topic) named() string {
	if name := oneLine(t.endpoint.Name, maxLine); name != "" {
		return name
	}
	if name := oneLine(cmp.Or(t.Incident.Name, t.Title), maxLine); name != "" {
		return name // of one that is gone, the incident has it as its title
	}
	return "An endpoint"
}

// about returns the name of what a mail is about, which stays the same while what is said of it changes.
func (t topic) about() string {
	switch t.Kind {
	case store.IncidentExpiring:
		return t.named()
	case store.IncidentObjective:
		return t.named() + ": " + t.objective()
	}
	return t.subject()
}

// states says how a kind of incident stands while it is open, and once it has ended by itself. Those of other kinds are as severe as
// they are.
var states = map[store.IncidentKind]struct{ open, over string }{
	store.IncidentExpiring:  {"expiring", "renewed"},
	store.IncidentObjective: {"burning budget", "no longer burning budget"},
	store.IncidentChain:     {"halted", "moving again"},
	store.IncidentLocation:  {"offline", "online"},
	store.IncidentEndpoint:  {"", "recovered"},
}

// state says how it stands in a word or two.
func (t topic) state() string {
	switch {
	case t.open():
		if t.public && t.Severity == store.StatusGated {
			return "restricted" // as predicate says
		}
		return cmp.Or(states[t.Kind].open, string(t.Severity))
	case t.Resolution == store.ResolutionPaused, t.Resolution == store.ResolutionRemoved:
		return string(t.Resolution)
	case t.Resolution == store.ResolutionManual:
		return "over"
	}
	return cmp.Or(states[t.Kind].over, "over")
}

// title says what is the matter: "Weather is down". still is a word to be put in, with the space before it.
func (t topic) title(still string) string {
	switch t.Kind {
	case store.IncidentManual:
		return t.subject()
	case store.IncidentExpiring:
		if still == "" {
			return t.named() + ": " + t.ending()
		}
	}
	verb, rest, _ := strings.Cut(t.predicate(), " ")
	switch {
	case still != "" && verb == "has":
		verb = "is" // still halted
	case still != "" && verb != "is":
		return t.subject() + still + " " + verb + " " + rest
	}
	return t.subject() + " " + verb + still + " " + rest
}

// ending returns what ends soon: "the certificate ends in 9 days".
func (t topic) ending() string {
	if said := oneLine(t.Cause.Message, maxLine); said != "" {
		return said
	}
	return "its " + t.expires() + " ends soon"
}

func (t topic) expires() string {
	if t.Cause.Class == probe.ClassCredentialExpiring {
		return "credential"
	}
	return "certificate"
}

// predicate says how it stands at present, beginning with a verb.
func (t topic) predicate() string {
	switch t.Kind {
	case store.IncidentExpiring:
		return "is about to lose its " + t.expires()
	case store.IncidentObjective:
		return "burns the error budget of “" + t.objective() + "” too fast"
	case store.IncidentChain:
		return "has halted"
	case store.IncidentLocation:
		return "is without its network"
	}
	switch t.Cause.Class {
	case probe.ClassHeadBehind:
		return "is far behind its chain"
	case probe.ClassHeadLagging:
		return "is behind its chain"
	}
	switch t.Severity {
	case store.StatusDegraded:
		return "is degraded"
	case store.StatusUnknown:
		return "cannot be judged"
	case store.StatusGated:
		if t.public {
			return "is restricted" // whom it turns away is no matter of the public
		}
		switch t.Cause.Class {
		case probe.ClassCredentialRejected:
			return "rejects our credential"
		case probe.ClassAuthRequired:
			return "wants credentials"
		}
		return "is turning us away"
	}
	return "is down"
}

// pastPredicate says how it stood.
func (t topic) pastPredicate() string {
	verb, rest, _ := strings.Cut(t.predicate(), " ")
	past := map[string]string{"is": "was", "cannot": "could not", "rejects": "rejected", "wants": "wanted", "burns": "burned", "has": "had"}
	return past[verb] + " " + rest
}

// past says what was the matter: "Weather was down".
func (t topic) past() string {
	switch t.Kind {
	case store.IncidentManual:
		return "Over: " + t.subject()
	case store.IncidentExpiring:
		return t.named() + " was about to lose its " + t.expires()
	}
	return t.subject() + " " + t.pastPredicate()
}

// recovery says what is well again.
func (t topic) recovery() string {
	switch t.Kind {
	case store.IncidentExpiring:
		return t.named() + " has another " + t.expires()
	case store.IncidentObjective:
		return t.named() + " no longer burns the error budget of “" + t.objective() + "” too fast"
	case store.IncidentChain:
		return t.subject() + " moves again"
	case store.IncidentLocation:
		return t.subject() + " has its network back"
	}
	return t.subject() + " has recovered"
}

// recovered says how long it lasted.
func (t topic) recovered(lasted string) string {
	switch t.Kind {
	case store.IncidentExpiring:
		return "It was replaced " + lasted + " after the first warning."
	case store.IncidentObjective:
		return "It had burned too fast for " + lasted + "."
	case store.IncidentChain:
		return "It had stood still for " + lasted + "."
	case store.IncidentLocation:
		return "It had been without for " + lasted + "."
	}
	return "Recovered after " + lasted + "."
}

// objective returns the name of the objective that an incident is about.
func (t topic) objective() string {
	_, name, ok := strings.Cut(t.Subject, "/objective/")
	if !ok || name == "" {
		name = t.Title
	}
	return oneLine(name, maxLine)
}

// meaning says what it likely means, in one sentence.
func (t topic) meaning() string {
	switch t.Kind {
	case store.IncidentManual:
		return ""
	case store.IncidentObjective:
		return "At this rate, what may fail in the whole of its window is used up long before the window is over."
	case store.IncidentLocation:
		return "Its checks count as unknown until it is back: what fails there is most likely on our side."
	}
	return meaning(t.Cause.Class)
}
