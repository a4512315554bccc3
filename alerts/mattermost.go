package alerts

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// Mattermost sends to an incoming webhook of Mattermost (https://developers.mattermost.com/integrate/webhooks/incoming):
// fields "webhook_url", and "channel" for another one than the webhook's own.
//
// Each message is a post of its own. A webhook cannot change what it posted, and so acts of people are passed over, and a
// message that comes again after a crash is there twice.
type Mattermost struct{ caller caller }

// NewMattermost returns a sender that calls Mattermost through client: see NewClient.
func NewMattermost(client *http.Client) *Mattermost { return &Mattermost{caller{client}} }

var _ Sender = (*Mattermost)(nil)

type mattermostPost struct {
	Channel     string                 `json:"channel,omitempty"`
	Text        string                 `json:"text"`
	Attachments []mattermostAttachment `json:"attachments,omitempty"`
}

type mattermostAttachment struct {
	Fallback string            `json:"fallback"`
	Colour   string            `json:"color"`
	Text     string            `json:"text,omitempty"`
	Fields   []mattermostField `json:"fields,omitempty"`
}

type mattermostField struct {
	Title string `json:"title"`
	Value string `json:"value"`
	Short bool   `json:"short"`
}

// Bounds of a post. Older servers hold 4000 characters of text, and split what is longer; attachments have 7600 together, as
// JSON (model.PostPropsMaxUserRunes of github.com/mattermost/mattermost), of which the server needs some itself.
const (
	mattermostMaxText  = 3500
	mattermostMaxProps = 6000
	mattermostMaxLists = 2000
	mattermostMaxField = 400
)

// Send implements Sender. A Receipt is empty: a webhook says nothing by which a post could be found again.
func (s *Mattermost) Send(ctx context.Context, c store.Channel, _ string, m Message) (Receipt, error) {
	if m.isWordOfAnAct() {
		return Receipt{Passed: true}, nil
	}
	a, err := s.caller.ask(ctx, "Mattermost", http.MethodPost, c.Secrets["webhook_url"], "", mattermostWords(m, c))
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{}, mattermostError(a, c)
}

func mattermostWords(m Message, c store.Channel) mattermostPost {
	post := mattermostPost{Channel: strings.TrimPrefix(c.Settings["channel"], "#")}
	if own, ok := ownWords(m, c); ok {
		post.Text = fit(mattermostText(own), mattermostMaxText)
		return post
	}
	heading := mattermostText(fit(m.heading(), 300))
	if m.Link != "" && !strings.ContainsAny(m.Link, "() \t\n<>") && len(m.Link) <= 1000 {
		heading = "[" + heading + "](" + m.Link + ")"
	}
	lines := []string{"**" + heading + "**"}
	for _, line := range m.story() {
		lines = append(lines, mattermostText(fit(line, 500)))
	}
	post.Text = strings.Join(fitLines(lines, mattermostMaxText), "\n")
	attachment := mattermostAttachment{
		Fallback: fit(defuse(m.short()), 300), Colour: fmt.Sprintf("#%06X", m.colour()), Fields: mattermostFields(m),
	}
	var lists []string
	for _, line := range m.lists() {
		lists = append(lists, "- "+mattermostText(fit(line, 300)))
	}
	lists = fitLines(lists, mattermostMaxLists)
	attachment.Text = strings.Join(lists, "\n")
	for size(attachment) > mattermostMaxProps && len(lists) > 0 {
		lists = lists[:len(lists)-1]
		attachment.Text = strings.Join(append(lists[:len(lists):len(lists)], "…"), "\n")
	}
	for size(attachment) > mattermostMaxProps && len(attachment.Fields) > 0 {
		attachment.Fields = attachment.Fields[:len(attachment.Fields)-1]
	}
	if attachment.Text != "" || len(attachment.Fields) > 0 {
		post.Attachments = []mattermostAttachment{attachment}
	}
	return post
}

func mattermostFields(m Message) []mattermostField {
	var fields []mattermostField
	for _, d := range m.details() {
		value := fit(mattermostText(d.text), mattermostMaxField)
		fields = append(fields, mattermostField{d.label, value, width(value) <= 40})
	}
	return fields
}

// mattermostText returns text that Mattermost shows as it is. Angle brackets become others: what a Slack server would make
// of <!channel> and <address|text> Mattermost does before it looks for Markdown, and no backslash keeps it from that.
func mattermostText(text string) string {
	text = mattermostEscaper.Replace(defuse(text))
	lines := strings.Split(text, "\n")
	for i, line := range lines { // lists begin a line
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
			lines[i] = `\` + line
		}
	}
	return strings.Join(lines, "\n")
}

var mattermostEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", "‹", ">", "›",
	"[", `\[`, "]", `\]`, "#", `\#`, "!", `\!`, "$", `\$`)

// mattermostTodo says what is to be done about the errors of an incoming webhook, by their ids: server/channels/app/webhook.go
// of github.com/mattermost/mattermost. All of them are permanent, whatever their status: "disabled" has 501.
var mattermostTodo = map[string]string{
	"web.incoming_webhook.disabled.app_error":       "the server has incoming webhooks switched off",
	"web.incoming_webhook.invalid.app_error":        "the webhook was removed, or its address is incomplete: copy it again, or make another one",
	"web.incoming_webhook.channel_locked.app_error": "the webhook is locked to its own channel: leave the channel empty, or unlock it",
	"web.incoming_webhook.permissions.app_error":    "who made the webhook may not post to the channel",
	"web.incoming_webhook.user.app_error":           "who made the webhook, or the person to write to, is not there",
	"app.channel.get.existing.app_error":            "the webhook's channel was deleted",
}

// mattermostNoChannel is the id for a channel that is not there, and also, with a status that passes, for one that could not
// be looked up.
const mattermostNoChannel = "web.incoming_webhook.channel.app_error"

var isMattermostID = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+){1,8}$`).MatchString

func mattermostError(a answer, c store.Channel) error {
	switch {
	case a.ok() && strings.TrimSpace(string(a.body)) == "ok":
		return nil
	case a.ok():
		return a.unexpected("Mattermost")
	}
	var said struct {
		ID      string `json:"id"`
		Message string `json:"message"`
	}
	v := a.verdict("Mattermost")
	if a.read(&said) && isMattermostID(said.ID) {
		v.said = said.Message
		if said.Message == "" {
			v.said = said.ID
		}
	}
	todo, known := mattermostTodo[said.ID]
	switch {
	case known:
		v.todo, v.permanent = todo, true
	case said.ID == mattermostNoChannel && v.permanent:
		v.todo = "there is no such channel in the webhook's team: give the name that stands in its address"
	}
	return a.refusal(v, c)
}
