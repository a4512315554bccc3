package alerts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// detail is one fact of a message: a label of ours and a stranger's text.
type detail struct{ label, text string }

// details returns the facts of m, those that help the most first. Of what is over, its class and its code help nobody any more.
func (m Message) details() []detail {
	all := []detail{{"Location", m.Location}, {m.stepLabel(), m.Step}, {m.errorLabel(), m.Said}}
	if !m.isOver() {
		all = append(all, detail{"Class", m.Class}, detail{"Code", m.Code})
	}
	all = append(all, detail{"Seen from", strings.Join(m.SeenFrom, ", ")}, detail{"Also affected", strings.Join(m.Dependents, ", ")})
	if !m.Since.IsZero() {
		all = append(all, detail{m.sinceLabel(), stamp(m.Since)})
	}
	if !m.Until.IsZero() {
		all = append(all, detail{"Until", stamp(m.Until) + " (" + m.Lasted + ")"})
	}
	all = append(all, detail{"URL", m.URL})
	return slices.DeleteFunc(all, func(d detail) bool { return d.text == "" })
}

// facts returns the details of m, a line each.
func (m Message) facts() []string {
	var facts []string
	for _, d := range m.details() {
		facts = append(facts, d.label+": "+d.text)
	}
	return facts
}

func (m Message) stepLabel() string {
	if m.isOver() {
		return "Failed at step"
	}
	return "Failing step"
}

func (m Message) errorLabel() string {
	if m.isOver() {
		return "Last error"
	}
	return "Error"
}

// sinceLabel says what began at Since.
func (m Message) sinceLabel() string {
	if m.Kind == KindService && m.State != "" {
		return "Offline since"
	}
	return "Since" // an incident may have begun with less than what it is
}

func nonEmpty(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return line == "" })
}

// heading is what m says at a glance.
func (m Message) heading() string { return strings.Join(nonEmpty([]string{m.Symbol, m.Title}), " ") }

// story returns the sentences of m in the order in which they are read, without what it lists.
func (m Message) story() []string { return nonEmpty([]string{m.Outcome, m.Update, m.Meaning}) }

// lists returns what m lists, a line each: changes of a tool list, or the incidents of a digest.
func (m Message) lists() []string {
	lines := append([]string(nil), m.Changes...)
	for _, item := range m.Items {
		lines = append(lines, item.line())
	}
	return lines
}

func (i Item) line() string {
	return strings.Join(nonEmpty([]string{strings.Join(nonEmpty([]string{i.Symbol, i.Title}), " "), i.Said}), ": ")
}

// short says in one line how an incident stands, for people who have the whole message before them already or see no more than
// this, as on a locked phone.
func (m Message) short() string {
	return strings.Join(nonEmpty([]string{m.heading(), m.latest(), m.failure()}), " — ")
}

// failure says in one line what fails while it does: the step, and what the server or the probe says of the error, or else its
// class. It is empty where the title says it, and in word of an act, which changes nothing about it.
func (m Message) failure() string {
	said := m.Said
	if m.Step != "" {
		said = cmp.Or(said, m.Class)
	}
	if !m.Open || m.isWordOfAnAct() || said == "" || strings.HasSuffix(m.Title, said) {
		return ""
	}
	return strings.Join(nonEmpty([]string{m.Step, said}), ": ")
}

// isOver reports whether m tells of nothing but what has ended: nobody is to be woken for that.
func (m Message) isOver() bool { return !m.Open && (m.Incident != "" || m.Kind == KindDigest) }

// latest is the sentence that m is for: how it ended, or what happened.
func (m Message) latest() string {
	if m.isWordOfAnAct() {
		return m.Update
	}
	return cmp.Or(m.Outcome, m.Update)
}

// ownWords returns the text of the channel's template in place of what m would say, fit for a message, and whether there is
// one. It is plain like the texts of a Message, which it repeats: senders escape it.
func ownWords(m Message, c store.Channel) (text string, ok bool) {
	text, ok = m.words(c)
	return plain(text), ok
}

// colours of how things stand, as 0xRRGGBB.
const (
	red    = 0xD92D20
	orange = 0xF79009
	yellow = 0xFDB022
	green  = 0x12B76A
	blue   = 0x2E90FA
	grey   = 0x98A2B3
)

// colour says at a glance how m stands, as its symbol does.
func (m Message) colour() int {
	switch m.Symbol {
	case "🔴":
		return red
	case "🟠":
		return orange
	case "🟡":
		return yellow
	case "🟢":
		return green
	case "⚪":
		return grey
	}
	return blue
}

// key is by which a service that knows incidents tells them apart: the incident's id, and for a message that belongs to
// none its own, which is the same when the message comes again. That of the test button has neither, and what is triggered
// for it has to be found again to be closed.
func (m Message) key() string {
	return cmp.Or(m.Incident, m.ID, "rollcall-"+string(m.Kind))
}

// isWordOfAnAct reports whether m only tells what somebody did, which a channel whose messages cannot be changed need not
// repeat to everybody.
func (m Message) isWordOfAnAct() bool { return m.Kind == KindUpdated && m.Acted }

// isAcknowledgement reports whether m tells that somebody looks after an incident, which services that page people want to
// know.
func (m Message) isAcknowledgement() bool { return m.Kind == KindUpdated && m.Act == "acknowledged" }
