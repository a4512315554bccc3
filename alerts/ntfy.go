package alerts

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// Ntfy publishes to a topic of an ntfy server (https://docs.ntfy.sh/publish): fields "topic", "access_token" where the server
// wants one, and "api_url" for another server than ntfy.sh.
//
// Each message is a notification of its own, which rings the louder the worse it stands, and not at all where nothing got worse.
// Servers cannot take one back or change it, and so acts of people are passed over, and a message that comes again after a
// crash is there twice.
type Ntfy struct{ caller caller }

// NewNtfy returns a sender that calls ntfy through client: see NewClient.
func NewNtfy(client *http.Client) *Ntfy { return &Ntfy{caller{client}} }

var _ Sender = (*Ntfy)(nil)

type ntfyMessage struct {
	Topic    string       `json:"topic"`
	Title    string       `json:"title"`
	Message  string       `json:"message"` // 4096 bytes: a longer one becomes an attachment
	Priority int          `json:"priority"`
	Tags     []string     `json:"tags,omitempty"`
	Click    string       `json:"click,omitempty"`
	Actions  []ntfyAction `json:"actions,omitempty"`
}

type ntfyAction struct {
	Action string `json:"action"`
	Label  string `json:"label"`
	URL    string `json:"url"`
}

// Bounds of a notification, in bytes. That of a message is documented; phones show far less of a title than this.
const (
	ntfyMaxMessage = 4096
	ntfyMaxTitle   = 250
	ntfyMaxLink    = 1000
)

// Send implements Sender. A Receipt is empty: there is nothing to be done with what was published.
func (n *Ntfy) Send(ctx context.Context, c store.Channel, _ string, m Message) (Receipt, error) {
	if m.isWordOfAnAct() {
		return Receipt{Passed: true}, nil
	}
	authorization := ""
	if token := c.Secrets["access_token"]; token != "" {
		authorization = "Bearer " + token
	}
	a, err := n.caller.ask(ctx, "ntfy", http.MethodPost, base(c, "https://ntfy.sh")+"/", authorization, ntfyWords(m, c))
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{}, ntfyError(a, c)
}

func ntfyWords(m Message, c store.Channel) ntfyMessage {
	words := ntfyMessage{
		Topic: c.Secrets["topic"], Title: fitBytes(defuse(m.heading()), ntfyMaxTitle),
		Message: ntfyText(m), Priority: ntfyPriority(m), Tags: ntfyTags(m),
	}
	if own, ok := ownWords(m, c); ok {
		words.Message = defuse(own)
	}
	words.Message = fitBytes(words.Message, ntfyMaxMessage)
	if m.Link != "" && len(m.Link) <= ntfyMaxLink {
		words.Click = m.Link
		words.Actions = []ntfyAction{{"view", m.linkText(), m.Link}}
	}
	return words
}

// ntfyText is plain text: without the flag for Markdown, phones make nothing of it but links.
func ntfyText(m Message) string {
	lines := slices.Concat(m.story(), m.lists(), m.facts())
	if len(lines) == 0 {
		return m.heading() // an empty message would read "triggered"
	}
	return defuse(strings.Join(lines, "\n"))
}

// ntfyTags are words below a notification. Those that name an emoji would be shown as one, before the title. "down" below a recovery
// reads as if it were not one, and below a change for no worse as if it were another outage.
func ntfyTags(m Message) []string {
	tags := []string{m.Severity, m.Class}
	switch {
	case m.isOver():
		return nil
	case m.Calm:
		tags = tags[1:]
	}
	return slices.DeleteFunc(tags, func(tag string) bool { return !isNtfyTag(tag) })
}

var isNtfyTag = regexp.MustCompile(`^[a-z0-9_]{2,64}$`).MatchString

// ntfyPriority is 5, which keeps on ringing, to 1, which is not even shown at once. 3 is the default, and 2 makes no sound.
func ntfyPriority(m Message) int {
	if m.Calm {
		return 2
	}
	switch m.Kind {
	case KindResolved, KindCalmed, KindService, KindContract, KindTest:
		return 3
	}
	switch pagerDutySeverity(m) {
	case "critical":
		return 5
	case "error":
		return 4
	}
	return 3
}

// Codes of ntfy's errors: server/errors.go of github.com/binwiederhier/ntfy.
const (
	ntfyTopicInvalid    = 40009
	ntfyTopicDisallowed = 40010
	ntfyBandwidth       = 41301 // the message became an attachment, of which there were too many bytes
)

func ntfyError(a answer, c store.Channel) error {
	var said struct {
		ID    string `json:"id"`
		Code  int    `json:"code"`
		Error string `json:"error"`
	}
	readable := a.read(&said)
	switch {
	case a.ok() && readable && said.ID != "":
		return nil
	case a.ok():
		return a.unexpected("ntfy")
	}
	v := a.verdict("ntfy")
	v.said = said.Error
	switch {
	case said.Code == ntfyTopicInvalid, said.Code == ntfyTopicDisallowed:
		v.todo = "choose another topic"
	case said.Code == ntfyBandwidth:
		v.permanent = false
	case a.status == http.StatusUnauthorized:
		v.todo = "the access token is not valid, or the server wants one"
	case a.status == http.StatusForbidden:
		v.todo = "the access token may not write to this topic, or the server wants one"
	case a.status == http.StatusNotFound:
		v.todo = "there is no ntfy server at this address"
	}
	return a.refusal(v, c)
}
