package alerts

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/rollcallhq/rollcall/store"
)

// Bounds on what Slack is sent. It documents 3000 characters for the text of a section, 2000 for a field and for a
// context, 50 blocks, 75 characters for a button; all texts are measured here as they are once they are escaped.
const (
	maxSection = 2900
	maxText    = 12000 // of the text of a message; Slack cuts at 40,000, which nobody reads
	maxLines   = 10000 // of all lines of a list together: about four screens
	maxItems   = 30    // lines of a list
	maxNames   = 20    // in an enumeration
)

// slackBlocks lays m out in Block Kit, with buttons if there are any.
func slackBlocks(m Message, buttons ...slack.BlockElement) []slack.Block {
	blocks := []slack.Block{section(strings.Join(nonEmpty([]string{
		m.Symbol + " *" + unformatted(fitted(m.Title, 700)) + "*",
		unformatted(fitted(m.Outcome, 700)),
		unformatted(fitted(m.Update, 700)),
		unformatted(fitted(m.Meaning, 700)),
	}), "\n"))}
	if fields := slackFields(m); len(fields) > 0 {
		blocks = append(blocks, slack.NewSectionBlock(nil, fields, nil))
	}
	if len(m.Dependents) > 0 {
		blocks = append(blocks, section("*Stands behind it and is not well either*\n"+enumerated(m.Dependents, unformatted)))
	}
	blocks = append(blocks, listed(m.Changes, func(change string) string { return unformatted(fitted(change, 900)) })...)
	blocks = append(blocks, listed(m.Items, slackItem)...)
	if m.Said != "" {
		blocks = append(blocks, section("*"+m.errorLabel()+"*\n```"+code(fitted(m.Said, maxSection-100))+"```"))
	}
	if len(buttons) > 0 {
		blocks = append(blocks, slack.NewActionBlock("rollcall", buttons...))
	}
	var footer []slack.MixedElement
	for _, text := range nonEmpty([]string{slackFooter(m), slackLink(m.Unsubscribe, unsubscribeLabel)}) {
		footer = append(footer, mrkdwn(text))
	}
	if len(footer) > 0 {
		blocks = append(blocks, slack.NewContextBlock("", footer...))
	}
	return blocks
}

// templatedWords are words of the channel's owner. What fills a template is a stranger's all the same, so it gives no
// links and no mentions; marks such as *bold* are the owner's and stay. Buttons need a block, and a block holds less.
func templatedWords(text string, buttons []slack.BlockElement) slackWords {
	if len(buttons) == 0 {
		return slackWords{text: escaped(fitted(text, maxText))}
	}
	text = escaped(fitted(text, maxSection))
	return slackWords{text, []slack.Block{section(text), slack.NewActionBlock("rollcall", buttons...)}}
}

// What buttons are called in the payload of a click.
const (
	slackAcknowledge = "rollcall_acknowledge"
	slackSnooze      = "rollcall_snooze"
	slackSnoozeFor   = time.Hour
)

// slackButtons returns the buttons that m has in c: none where a click would not be understood, because the channel does
// not know the signing secret of the app.
func slackButtons(c store.Channel, m Message) []slack.BlockElement {
	if c.Secrets["webhook_url"] != "" || c.Secrets["signing_secret"] == "" || !m.Acts || !m.Open || !isIncidentID(m.Incident) {
		return nil
	}
	button := func(action, label string) slack.BlockElement {
		return slack.NewButtonBlockElement(action, m.Incident, slack.NewTextBlockObject(slack.PlainTextType, label, false, false))
	}
	return []slack.BlockElement{button(slackAcknowledge, "Acknowledge"), button(slackSnooze, "Snooze 1 h")}
}

// isIncidentID reports whether text looks like an id of ours, which is all that a button carries.
var isIncidentID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString

func slackFields(m Message) []*slack.TextBlockObject {
	var fields []*slack.TextBlockObject
	add := func(label, text string) {
		if text != "" {
			fields = append(fields, mrkdwn("*"+label+"*\n"+text))
		}
	}
	add("Location", inlineCode(m.Location))
	add(m.stepLabel(), inlineCode(m.Step))
	add(m.sinceLabel(), slackTime(m.Since))
	add("Until", slackTime(m.Until))
	if !m.isOver() { // as in details
		add("Class", inlineCode(m.Class))
		add("Code", inlineCode(m.Code))
	}
	add("Seen from", enumerated(m.SeenFrom, inlineCode))
	return fields
}

// unsubscribeLabel is what the link says that ends a subscription.
const unsubscribeLabel = "End this subscription"

func slackFooter(m Message) string {
	return strings.Join(nonEmpty([]string{inlineCode(m.URL), slackLink(m.Link, m.linkText())}), " · ")
}

func slackItem(i Item) string {
	title := unformatted(fitted(i.Title, 400))
	if link := slackLink(i.Link, fitted(i.Title, 400)); link != "" {
		title = link
	}
	line := strings.Join(nonEmpty([]string{i.Symbol, title}), " ")
	if i.Said != "" {
		line += ": " + unformatted(fitted(i.Said, 300))
	}
	return line
}

// listed returns sections with one line for each item, as many as people read, and how many there are besides.
func listed[T any](items []T, line func(T) string) []slack.Block {
	var blocks []slack.Block
	var lines []string
	size, all := 0, 0
	flush := func() {
		if len(lines) > 0 {
			blocks = append(blocks, section(strings.Join(lines, "\n")))
		}
		lines, size = nil, 0
	}
	for n, item := range items {
		text := "• " + line(item)
		length := utf8.RuneCountInString(text) + 1
		if size+length > maxSection {
			flush()
		}
		if n == maxItems || all+length > maxLines {
			lines = append(lines, fmt.Sprintf("… and %d more", len(items)-n))
			break
		}
		lines = append(lines, text)
		size, all = size+length, all+length
	}
	flush()
	return blocks
}

// enumerated returns names in one line, each marked up by markup.
func enumerated(names []string, markup func(string) string) string {
	shown := names[:min(len(names), maxNames)]
	words := make([]string, 0, len(shown)+1)
	for _, name := range shown {
		words = append(words, markup(fitted(name, 80)))
	}
	text := strings.Join(words, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// slackText returns what notifications show, and what servers show that know no blocks.
func slackText(m Message) string {
	address := m.Link
	m.Link = ""
	text := unformatted(fitted(m.Text(), maxText))
	for _, link := range nonEmpty([]string{slackLink(address, cmp.Or(m.LinkText, address)), slackLink(m.Unsubscribe, unsubscribeLabel)}) {
		text += "\n" + link
	}
	return text
}

// slackReply returns what happened, for the thread of the incident's message. A notification shows it without that message, and so
// does the channel: it says of what.
func slackReply(m Message) string {
	lines := []string{"*" + unformatted(fitted(m.heading(), 700)) + "*", unformatted(fitted(m.latest(), 700)), unformatted(fitted(m.failure(), 700))}
	return strings.Join(nonEmpty(lines), "\n")
}

func section(text string) slack.Block { return slack.NewSectionBlock(mrkdwn(text), nil, nil) }

// mrkdwn returns a text in which Slack formats what is marked up, and makes nothing of bare addresses and names.
func mrkdwn(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, text, false, true)
}

// escaped returns text with Slack's three control characters escaped, so that nothing in it is a link or a mention. The
// word joiner behind an @ does the same for servers that look for @channel in plain text.
func escaped(text string) string { return escaper.Replace(text) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u2060")

// unformatted returns escaped text in which nothing turns bold, struck out or code.
func unformatted(text string) string { return lookalikes.Replace(escaped(text)) }

var lookalikes = strings.NewReplacer("*", "∗", "~", "∼", "`", "ˋ")

// code returns text that stays inside the backticks put around it.
func code(text string) string { return strings.ReplaceAll(escaped(text), "`", "ˋ") }

func inlineCode(text string) string {
	if text == "" {
		return ""
	}
	return "`" + code(fitted(text, 1500)) + "`"
}

// fitted returns text cut to at most n characters as they are counted once it is escaped, so that no escape is cut.
func fitted(text string, n int) string {
	return cut(text, n, func(r rune) int { return utf8.RuneCountInString(escaped(string(r))) }, 1)
}

// slackLink returns a link, empty when there is no address or one that no block would hold.
func slackLink(address, label string) string {
	if address == "" || len(address) > 400 {
		return ""
	}
	return "<" + addressEscaper.Replace(address) + "|" + unformatted(label) + ">"
}

var addressEscaper = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C")

// slackTime shows a time in the reader's own zone, or in UTC where that cannot be done.
func slackTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("<!date^%d^{date_short_pretty}, {time_secs}|%s>", t.Unix(), stamp(t))
}
