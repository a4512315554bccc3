package alerts

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Discord sends to a webhook of a Discord channel (https://discord.com/developers/docs/resources/webhook): field
// "webhook_url", with thread_id among its parameters for a thread.
//
// An incident is one message there, edited in place as it goes on. A change or the end of an incident is a short message
// besides, because Discord notifies nobody of an edit; it makes no sound where nothing got worse. No message mentions anybody.
//
// Discord has no way to post a message through a webhook at most once: what this process did not live to record is posted
// twice.
type Discord struct{ caller caller }

// NewDiscord returns a sender that calls Discord through client: see NewClient.
func NewDiscord(client *http.Client) *Discord { return &Discord{caller{client}} }

var _ Sender = (*Discord)(nil)

// Send implements Sender. The Ref of a Receipt is the id of a message.
func (d *Discord) Send(ctx context.Context, c store.Channel, ref string, m Message) (Receipt, error) {
	return deliver(ctx, discordChannel{d.caller, c}, ref, m)
}

type discordChannel struct {
	caller caller
	c      store.Channel
}

type discordMessage struct {
	Content  string         `json:"content"`
	Embeds   []discordEmbed `json:"embeds"`
	Mentions struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
	Flags int `json:"flags,omitempty"`
}

type discordEmbed struct {
	Title       string         `json:"title,omitempty"` // 256 characters
	URL         string         `json:"url,omitempty"`
	Description string         `json:"description,omitempty"` // 4096
	Colour      int            `json:"color"`
	Fields      []discordField `json:"fields,omitempty"` // 25
	Timestamp   string         `json:"timestamp,omitempty"`
}

type discordField struct {
	Name   string `json:"name"`  // 256
	Value  string `json:"value"` // 1024
	Inline bool   `json:"inline"`
}

// Flags of a message: SUPPRESS_EMBEDS, by which no address in the text gets a preview, and SUPPRESS_NOTIFICATIONS, by which it makes
// no sound.
const (
	discordNoPreviews = 1 << 2
	discordSilent     = 1 << 12
)

func (d discordChannel) post(ctx context.Context, m Message) (string, error) {
	a, err := d.ask(ctx, http.MethodPost, "", d.message(m))
	if err != nil {
		return "", err
	}
	var posted struct {
		ID string `json:"id"`
	}
	if !a.ok() {
		return "", discordError(a, d.c)
	}
	if !a.read(&posted) || !isDiscordID(posted.ID) {
		return "", a.unexpected("Discord")
	}
	return posted.ID, nil
}

// Codes of Discord's errors, which say more than its statuses.
const (
	discordUnknownChannel = 10003
	discordUnknownMessage = 10008
	discordUnknownWebhook = 10015
	discordBadToken       = 50027
	discordArchived       = 50083
)

func (d discordChannel) edit(ctx context.Context, ref string, m Message) error {
	if !isDiscordID(ref) {
		return errGone
	}
	a, err := d.ask(ctx, http.MethodPatch, "/messages/"+ref, d.message(m))
	switch {
	case err != nil:
		return err
	case a.ok():
		return nil
	case discordCode(a) == discordUnknownMessage:
		return errGone
	}
	return discordError(a, d.c)
}

// say posts a message of its own: a webhook cannot reply.
func (d discordChannel) say(ctx context.Context, _ string, m Message) error {
	text := fit(discordText(m.short()), 1900)
	if m.Link != "" && len(m.Link) < 90 {
		text += "\n<" + m.Link + ">"
	}
	flags := discordNoPreviews
	if m.Calm {
		flags |= discordSilent
	}
	a, err := d.ask(ctx, http.MethodPost, "", discordMessage{Content: text, Embeds: []discordEmbed{}, Flags: flags})
	if err != nil || a.ok() {
		return err
	}
	return discordError(a, d.c)
}

// ask calls the webhook with its own parameters and rest behind its path. With wait, Discord answers with the message, and
// only once it is there.
func (d discordChannel) ask(ctx context.Context, method, rest string, message discordMessage) (answer, error) {
	message.Mentions.Parse = []string{}
	u, err := url.Parse(d.c.Secrets["webhook_url"])
	if err != nil {
		return answer{}, &PermanentError{"the webhook's address is not a URL"}
	}
	u = u.JoinPath(rest)
	query := u.Query()
	query.Set("wait", "true")
	u.RawQuery = query.Encode()
	return d.caller.ask(ctx, "Discord", method, u.String(), "", message)
}

var isDiscordID = regexp.MustCompile(`^[0-9]{1,20}$`).MatchString

type discordRefusal struct {
	Message    string  `json:"message"`
	Code       int     `json:"code"`
	RetryAfter float64 `json:"retry_after"` // seconds
}

func discordCode(a answer) int {
	var said discordRefusal
	a.read(&said)
	return said.Code
}

// discordError sorts an answer as https://discord.com/developers/docs/topics/opcodes-and-status-codes says. How long a
// limit lasts is told more exactly in the body than in the header.
func discordError(a answer, c store.Channel) error {
	var said discordRefusal
	readable := a.read(&said)
	v := a.verdict("Discord")
	v.said = said.Message
	if readable && a.status == http.StatusTooManyRequests && said.RetryAfter > 0 {
		v.wait = seconds(said.RetryAfter)
	}
	switch {
	case !readable:
	case said.Code == discordUnknownWebhook:
		v.todo = "the webhook was deleted: make another one"
	case said.Code == discordBadToken:
		v.todo = "the webhook's address is incomplete: copy it again"
	case said.Code == discordUnknownChannel:
		v.todo = "the channel or the thread was deleted"
	case said.Code == discordArchived:
		v.todo = "the thread is archived and locked"
	}
	return a.refusal(v, c)
}

// Bounds of a message: what all texts of its embed have together, and what we take of it for the facts.
const (
	discordTotal = 6000
	discordFacts = 2500
)

func (d discordChannel) message(m Message) discordMessage {
	embed := discordEmbed{Title: fit(discordText(m.heading()), 256), URL: m.Link, Colour: m.colour()}
	if !m.Since.IsZero() {
		embed.Timestamp = m.Since.UTC().Format(time.RFC3339)
	}
	left := discordTotal - 256
	if own, ok := ownWords(m, d.c); ok {
		embed.Description = fit(discordText(own), 4096)
		return discordMessage{Embeds: []discordEmbed{embed}}
	}
	var used int
	embed.Fields, used = discordFields(m, discordFacts)
	var lines []string
	for _, line := range append(m.story(), m.lists()...) {
		lines = append(lines, fit(discordText(line), 1000))
	}
	embed.Description = strings.Join(fitLines(lines, min(4096, left-used)), "\n")
	return discordMessage{Embeds: []discordEmbed{embed}}
}

// discordFields returns the facts of m with at most n UTF-16 code units, and how many they have.
func discordFields(m Message, n int) (fields []discordField, used int) {
	for _, detail := range m.details() {
		value := fit(discordText(detail.text), 1024)
		switch detail.label { // in the reader's own zone
		case m.sinceLabel():
			value = fmt.Sprintf("<t:%d:f>", m.Since.Unix())
		case "Until":
			value = fmt.Sprintf("<t:%d:f>", m.Until.Unix())
		}
		if used += width(detail.label) + width(value); used > n || len(fields) == 25 {
			return fields, used - width(detail.label) - width(value)
		}
		fields = append(fields, discordField{detail.label, value, width(value) <= 40})
	}
	return fields, used
}

// discordText returns text in which Discord formats, links and mentions nothing.
func discordText(text string) string {
	text = discordEscaper.Replace(defuse(text))
	lines := strings.Split(text, "\n")
	for i, line := range lines { // lists and small print begin a line
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
			lines[i] = `\` + line
		}
	}
	return strings.Join(lines, "\n")
}

var discordEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`, ">", `\>`,
	"[", `\[`, "]", `\]`, "#", `\#`)
