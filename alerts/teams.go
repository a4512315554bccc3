package alerts

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/rollcallhq/rollcall/store"
)

// Teams sends to a workflow of Microsoft Teams, "Post to a channel when a webhook request is received": field "webhook_url".
//
// Each message is an Adaptive Card of its own. A workflow cannot change what it posted, and so acts of people are passed
// over, and a message that comes again after a crash is there twice. A workflow accepts a card before it posts it: that the
// posting failed is seen only in its run history.
type Teams struct{ caller caller }

// NewTeams returns a sender that calls Teams through client: see NewClient.
func NewTeams(client *http.Client) *Teams { return &Teams{caller{client}} }

var _ Sender = (*Teams)(nil)

// Send implements Sender. A Receipt is empty: a workflow says nothing by which a card could be found again.
func (t *Teams) Send(ctx context.Context, c store.Channel, _ string, m Message) (Receipt, error) {
	if m.isWordOfAnAct() {
		return Receipt{Passed: true}, nil
	}
	a, err := t.caller.ask(ctx, "Teams", http.MethodPost, c.Secrets["webhook_url"], "", teamsWords(m, c))
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{}, teamsError(a, c)
}

type teamsMessage struct {
	Type        string            `json:"type"`
	Summary     string            `json:"summary"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string    `json:"contentType"`
	ContentURL  *string   `json:"contentUrl"` // the connector's schema wants it, and null
	Content     teamsCard `json:"content"`
}

type teamsCard struct {
	Schema   string         `json:"$schema"`
	Type     string         `json:"type"`
	Version  string         `json:"version"`
	Fallback string         `json:"fallbackText"`
	Body     []teamsBlock   `json:"body"`
	Actions  []teamsAction  `json:"actions,omitempty"`
	Teams    map[string]any `json:"msteams"`
}

// teamsBlock is a RichTextBlock, the one kind of text in a card in which Markdown is not looked for: unlike those of a
// TextBlock or a Fact, its texts need no escapes, and nothing in them is a link, a list or a name.
type teamsBlock struct {
	Type    string     `json:"type"`
	Inlines []teamsRun `json:"inlines"`
	Spacing string     `json:"spacing,omitempty"`
}

type teamsRun struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Size   string `json:"size,omitempty"`
	Weight string `json:"weight,omitempty"`
	Colour string `json:"color,omitempty"`
	Subtle bool   `json:"isSubtle,omitempty"`
}

type teamsAction struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// Bounds of a card. Teams takes messages of 28 KB; we stay well below, because it counts what it makes of ours.
const (
	teamsMaxBytes = 24 << 10
	teamsMaxLine  = 1000
	teamsMaxLines = 60
)

func teamsWords(m Message, c store.Channel) teamsMessage {
	heading := fit(m.heading(), 300)
	card := teamsCard{
		Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4",
		Fallback: fit(m.short(), teamsMaxLine), Teams: map[string]any{"width": "Full"},
		Body: []teamsBlock{{Type: "RichTextBlock", Inlines: []teamsRun{
			{Type: "TextRun", Text: heading, Size: "Large", Weight: "Bolder", Colour: teamsColour(m)},
		}}},
	}
	if own, ok := ownWords(m, c); ok {
		card.Body = append(card.Body, teamsLine(fit(own, 8<<10)))
	} else {
		card.Body = append(card.Body, teamsLines(m)...)
	}
	if m.Link != "" && len(m.Link) <= teamsMaxLine {
		card.Actions = []teamsAction{{"Action.OpenUrl", m.linkText(), m.Link}}
	}
	message := teamsMessage{Type: "message", Summary: fit(m.short(), 300), Attachments: []teamsAttachment{
		{ContentType: "application/vnd.microsoft.card.adaptive", Content: card},
	}}
	for body := card.Body; size(message) > teamsMaxBytes && len(body) > 1; {
		body = body[:len(body)-1]
		message.Attachments[0].Content.Body = append(slices.Clone(body), teamsLine("…"))
	}
	return message
}

func size(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return 0 // not reached: these are strings
	}
	return len(data)
}

func teamsLines(m Message) []teamsBlock {
	var blocks []teamsBlock
	for _, line := range m.story() {
		blocks = append(blocks, teamsLine(fit(line, teamsMaxLine)))
	}
	for _, line := range m.lists() {
		blocks = append(blocks, teamsLine("• "+fit(line, teamsMaxLine)))
	}
	for _, d := range m.details() {
		blocks = append(blocks, teamsBlock{Type: "RichTextBlock", Spacing: "Small", Inlines: []teamsRun{
			{Type: "TextRun", Text: d.label + ": ", Subtle: true}, {Type: "TextRun", Text: fit(d.text, teamsMaxLine)},
		}})
	}
	if len(blocks) > teamsMaxLines {
		return append(blocks[:teamsMaxLines], teamsLine("…"))
	}
	return blocks
}

func teamsLine(text string) teamsBlock {
	return teamsBlock{Type: "RichTextBlock", Spacing: "Small", Inlines: []teamsRun{{Type: "TextRun", Text: text}}}
}

func teamsColour(m Message) string {
	switch m.colour() {
	case red:
		return "Attention"
	case orange, yellow:
		return "Warning"
	case green:
		return "Good"
	}
	return "Default"
}

// teamsTodo says what is to be done about the errors of the service that runs workflows, by their codes.
var teamsTodo = map[string]string{
	"WorkflowTriggerIsNotEnabled":         "the workflow was deleted or switched off: switch it on, or make another one",
	"WorkflowNotFound":                    "the workflow was deleted: make another one",
	"WorkflowDisabled":                    "the workflow is switched off: switch it on",
	"WorkflowTriggerNotFound":             "the workflow does not begin with a webhook request: make another one",
	"DirectApiAuthorizationRequired":      "the workflow's address is incomplete: copy it again, and let anyone trigger it",
	"DirectApiInvalidAuthorizationScheme": "the workflow must let anyone trigger it",
	"InvalidRequestAuthorization":         "the workflow's address is incomplete: copy it again",
	"AuthorizationFailed":                 "the workflow's address is incomplete: copy it again",
	"AuthenticationFailed":                "the workflow's address is incomplete: copy it again",
	"TriggerInputSchemaMismatch":          "the workflow expects another form of message: make one of “Post to a channel when a webhook request is received”",
}

// teamsError sorts an answer. A workflow accepts with 202; one that was made to answer does so with another 2xx. Which errors
// there are Microsoft documents nowhere in full; their codes say it better than their statuses.
func teamsError(a answer, c store.Channel) error {
	if a.ok() && a.isPage() {
		return a.unexpected("Teams")
	}
	if a.ok() {
		return nil
	}
	var said struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	v := a.verdict("Teams")
	if a.read(&said) {
		v.said, v.todo = said.Error.Message, teamsTodo[said.Error.Code]
	}
	switch {
	case v.todo != "":
		v.permanent = true
	case a.status == http.StatusNotFound, a.status == http.StatusGone:
		v.todo = "the workflow was deleted: make another one"
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		v.todo = "the workflow's address is incomplete: copy it again"
	}
	return a.refusal(v, c)
}
