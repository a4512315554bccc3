package alerts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// slackBlocks lays m out in Block Kit. The bounds of a Message keep every text far below Slack's 3000 characters, also
// when each of them has to be escaped.
func slackBlocks(m Message) []slack.Block {
	m.Changes = slices.Clone(m.Changes)
	blocks := []slack.Block{section(strings.Join(nonEmpty([]string{
		m.Symbol + " *" + unformatted(m.Title) + "*",
		unformatted(m.Outcome),
		unformatted(m.Meaning),
	}), "\n"))}
	if fields := slackFields(m); len(fields) > 0 {
		blocks = append(blocks, slack.NewSectionBlock(nil, fields, nil))
	}
	for lines := range slices.Chunk(m.Changes, 3) { // three of them fit into a block, also when all is escaped
		for i := range lines {
			lines[i] = "• " + unformatted(lines[i])
		}
		blocks = append(blocks, section(strings.Join(lines, "\n")))
	}
	if m.Said != "" {
		blocks = append(blocks, section("*Error*\n```"+code(m.Said)+"```"))
	}
	if footer := slackFooter(m); footer != "" {
		blocks = append(blocks, slack.NewContextBlock("", mrkdwn(footer)))
	}
	return blocks
}

func slackFields(m Message) []*slack.TextBlockObject {
	var fields []*slack.TextBlockObject
	add := func(label, text string) {
		if text != "" {
			fields = append(fields, mrkdwn("*"+label+"*\n"+text))
		}
	}
	add("Location", inlineCode(m.Location))
	add("Failing step", inlineCode(m.Step))
	add(m.sinceWhat(), slackTime(m.Since))
	add("Class", inlineCode(m.Class))
	add("Until", slackTime(m.Until))
	add("Code", inlineCode(m.Code))
	return fields
}

func slackFooter(m Message) string {
	parts := []string{inlineCode(m.URL)}
	if m.Link != "" {
		parts = append(parts, slackLink(m.Link, "Open in Rollcall"))
	}
	return strings.Join(nonEmpty(parts), " · ")
}

// slackText returns what notifications show, and what servers show that know no blocks.
func slackText(m Message) string {
	address := m.Link
	m.Link = ""
	text := unformatted(m.Text())
	if address != "" {
		text += "\n" + slackLink(address, address)
	}
	return text
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
	return "`" + code(text) + "`"
}

func slackLink(address, label string) string {
	return "<" + addressEscaper.Replace(address) + "|" + escaped(label) + ">"
}

var addressEscaper = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C")

// slackTime shows a time in the reader's own zone, or in UTC where that cannot be done.
func slackTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("<!date^%d^{date_short_pretty}, {time_secs}|%s>", t.Unix(), stamp(t))
}
