package alerts

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

//go:embed email.html
var emailPage string

// emailHTML escapes every text by where it stands.
var emailHTML = template.Must(template.New("email").Parse(emailPage))

// emailView is what the HTML of a mail is made of.
type emailView struct {
	Heading     string
	Words       string // of the channel's template, in place of all but the heading and the end
	Story       []string
	Changes     []string
	Items       []Item
	Facts       []emailFact
	Link        string
	LinkText    string
	Unsubscribe string
	Colour      string // of the bar at the side, in CSS
}

type emailFact struct {
	Label, Text string
	Code        bool // shown as it is, break for break
}

// emailBodies returns the mail as text and as HTML.
func emailBodies(c store.Channel, m Message) (text, html string, err error) {
	v := emailView{
		Heading: m.heading(), Story: m.story(), Changes: m.Changes, Items: m.Items, Link: m.Link, LinkText: m.linkText(), Colour: fmt.Sprintf("#%06x", m.colour()),
	}
	for _, d := range m.details() {
		v.Facts = append(v.Facts, emailFact{Label: d.label, Text: d.text, Code: d.text == m.Said})
	}
	text = emailText(m)
	if words, ok := m.words(c); ok {
		text, v.Words = words, words
	}
	if isUnsubscribe(m.Unsubscribe) {
		v.Unsubscribe = m.Unsubscribe
		text += "\n\n--\nTo get no more of these mails: " + m.Unsubscribe
	}
	var b strings.Builder
	err = emailHTML.Execute(&b, v)
	return text + "\n", b.String(), err
}

// emailText returns the words of a mail for those who read it as text, in paragraphs.
func emailText(m Message) string {
	list := m.lists()
	for i := range list {
		list[i] = "- " + list[i]
	}
	var paragraphs []string
	for _, lines := range [][]string{{m.heading()}, m.story(), list, m.facts(), {m.whereToLook()}} {
		paragraphs = append(paragraphs, strings.Join(lines, "\n"))
	}
	return strings.Join(nonEmpty(paragraphs), "\n\n")
}
