package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/slack-go/slack"

	"github.com/rollcallhq/rollcall/store"
)

// Slack sends to Slack and to servers that speak like it.
//
// An incoming webhook ("webhook_url") gets one message for each notice, except for word of what somebody did: nothing can
// be changed there, and everybody need not hear it. Word of an incident that became worse, or has another cause, is posted.
// It has no buttons, because a webhook says nothing of the app that would have to answer for them.
//
// A bot ("bot_token", "channel", and "api_url" for another server) gets one message for each incident. It is updated in
// place and always shows how the incident stands, while its thread tells what happened, one reply for each notice; what is
// there to be noticed, such as that it got worse or is open again, is shown in the channel too. With the "signing_secret"
// of its app it has buttons for as long as there is something to acknowledge: see SlackApp.
//
// Slack has no way to post a message at most once. When this process dies between a post and the record of it, a
// webhook's message or an opening is posted twice, and of two openings the later one is updated. An update repeated is
// the same update; a thread reply may be there twice.
type Slack struct{ caller caller }

// NewSlack returns a sender that calls Slack through client: see NewClient.
func NewSlack(client *http.Client) *Slack { return &Slack{caller{client}} }

var _ Sender = (*Slack)(nil)

// Send implements Sender. A bot's Receipt has the Ref "channelID:ts".
func (s *Slack) Send(ctx context.Context, c store.Channel, ref string, m Message) (Receipt, error) {
	hook := c.Secrets["webhook_url"]
	if (hook != "" || ref == "") && m.isWordOfAnAct() {
		return Receipt{Passed: true}, nil // of use only beside the message that it changes
	}
	w := wordsForSlack(c, m)
	if hook != "" {
		return Receipt{}, slackError(s.postWebhook(ctx, hook, w))
	}
	receipt, err := s.bot(c).send(ctx, ref, m, w)
	return receipt, slackError(err)
}

// slackWords are what Slack is sent of a message.
type slackWords struct {
	text   string        // for notifications, and for servers that know no blocks
	blocks []slack.Block // nil: text is all there is
}

// wordsForSlack words m for c: in words of its owner's where it has a template, else in ours.
func wordsForSlack(c store.Channel, m Message) slackWords {
	buttons := slackButtons(c, m)
	if text, ok := ownWords(m, c); ok {
		return templatedWords(text, buttons)
	}
	return slackWords{slackText(m), slackBlocks(m, buttons...)}
}

// postWebhook posts by itself: slack.PostWebhook throws the body of a refusal away, which holds Slack's reason.
func (s *Slack) postWebhook(ctx context.Context, hook string, w slackWords) error {
	return plainIfNeedBe(func(blocks []slack.Block) error {
		off := false
		message := slack.WebhookMessage{Text: w.text, Parse: "none", UnfurlLinks: &off, UnfurlMedia: &off}
		if blocks != nil {
			message.Blocks = &slack.Blocks{BlockSet: blocks}
		}
		body, err := json.Marshal(message)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook, bytes.NewReader(body))
		if err != nil {
			return &PermanentError{"the webhook's address is not a URL"}
		}
		req.Header.Set("Content-Type", "application/json")
		return s.accept(req)
	}, w)
}

func (s *Slack) accept(req *http.Request) error {
	resp, err := s.caller.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return unreachable(err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(answer), []byte("<")) {
		return &PermanentError{"the webhook's address answers with a web page: it is not a webhook"}
	}
	return nil
}

// bot is a Slack app in one channel.
type bot struct {
	api     *slack.Client
	channel string // id, or name with its #
}

func (s *Slack) bot(c store.Channel) bot {
	options := []slack.Option{slack.OptionHTTPClient(s.caller)}
	if base := c.Settings["api_url"]; base != "" {
		options = append(options, slack.OptionAPIURL(strings.TrimRight(base, "/")+"/"))
	}
	return bot{slack.New(c.Secrets["bot_token"], options...), c.Settings["channel"]}
}

// send posts a message, or updates the one that ref leads to and says in its thread what happened.
func (b bot) send(ctx context.Context, ref string, m Message, w slackWords) (Receipt, error) {
	channel, ts, ok := strings.Cut(ref, ":")
	if !ok || !ofAnIncident[m.Kind] {
		return b.post(ctx, w)
	}
	switch err := b.update(ctx, channel, ts, w); {
	case cannotBeUpdated(err):
		return b.post(ctx, w) // deleted, too old to edit, or in a channel that the bot has left
	case err != nil:
		return Receipt{}, err
	}
	if err := spaced(ctx); err != nil {
		return Receipt{}, err
	}
	return Receipt{Ref: ref}, b.reply(ctx, channel, ts, m)
}

// ofAnIncident are the kinds of messages that tell of one incident and share its message. The others stand by themselves.
var ofAnIncident = map[Kind]bool{
	KindOpened: true, KindUpdated: true, KindReminder: true, KindEscalation: true, KindFlapping: true, KindCalmed: true, KindResolved: true,
}

// aloud reports whether the reply is shown in the channel too: what is there to be noticed, since an update in place makes no
// sound. An opening with a message to update is of an incident that opened again.
func aloud(m Message) bool {
	switch m.Kind {
	case KindOpened, KindReminder, KindEscalation:
		return true
	}
	return m.Kind == KindUpdated && m.Open && !m.Calm && !m.Acted
}

func (b bot) post(ctx context.Context, w slackWords) (Receipt, error) {
	var receipt Receipt
	err := plainIfNeedBe(func(blocks []slack.Block) error {
		options := textOptions(w.text)
		if blocks != nil {
			options = append(options, slack.MsgOptionBlocks(blocks...))
		}
		channel, ts, err := b.api.PostMessageContext(ctx, b.channel, options...)
		if err != nil {
			return err
		}
		if channel == "" || ts == "" {
			return errNotSlack
		}
		receipt.Ref = channel + ":" + ts
		return nil
	}, w)
	return receipt, err
}

func (b bot) update(ctx context.Context, channel, ts string, w slackWords) error {
	return plainIfNeedBe(func(blocks []slack.Block) error {
		// No blocks at all take away those that the message had.
		options := append(textOptions(w.text), slack.MsgOptionBlocks(blocks...))
		_, updated, _, err := b.api.UpdateMessageContext(ctx, channel, ts, options...)
		if err == nil && updated == "" {
			return errNotSlack
		}
		return err
	}, w)
}

// reply says in the thread what happened. That it cannot be said there at all is no failure: the update has said it.
func (b bot) reply(ctx context.Context, channel, ts string, m Message) error {
	options := append(textOptions(slackReply(m)), slack.MsgOptionTS(ts))
	if aloud(m) {
		options = append(options, slack.MsgOptionBroadcast())
	}
	_, _, err := b.api.PostMessageContext(ctx, channel, options...)
	if isPermanent(slackError(err)) {
		return nil
	}
	return err
}

// textOptions are those of a text in which Slack makes nothing of names and addresses by itself, and of whose links it
// shows no previews. chat.update would otherwise look for them, unlike chat.postMessage.
func textOptions(text string) []slack.MsgOption {
	return []slack.MsgOption{
		slack.MsgOptionText(text, false),
		slack.MsgOptionParse(false),
		slack.MsgOptionLinkNames(false),
		slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
	}
}

// plainIfNeedBe sends w with its blocks, and once more as text alone where the server cannot read them.
func plainIfNeedBe(send func(blocks []slack.Block) error, w slackWords) error {
	err := send(w.blocks)
	if isAboutContent(err) && w.blocks != nil {
		return send(nil)
	}
	return err
}

func isPermanent(err error) bool {
	_, ok := errors.AsType[*PermanentError](err)
	return ok
}
