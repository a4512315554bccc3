package alerts

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// Telegram sends through the Bot API (https://core.telegram.org/bots/api): fields "bot_token", "chat_id", "topic" for a topic
// of a group, and "api_url" for a Bot API server of one's own.
//
// An incident is one message there, edited in place as it goes on. A change or the end of an incident is a reply to it
// besides, because Telegram notifies nobody of an edit; it makes no sound where nothing got worse.
//
// Telegram has no way to post a message at most once: what this process did not live to record is posted twice.
type Telegram struct{ caller caller }

// NewTelegram returns a sender that calls Telegram through client: see NewClient.
func NewTelegram(client *http.Client) *Telegram { return &Telegram{caller{client}} }

var _ Sender = (*Telegram)(nil)

// Send implements Sender. The Ref of a Receipt is "chat:message", both in digits.
func (t *Telegram) Send(ctx context.Context, c store.Channel, ref string, m Message) (Receipt, error) {
	chat := telegramChat{caller: t.caller, c: c}
	if !isTelegramToken(c.Secrets["bot_token"]) {
		return Receipt{}, &PermanentError{"the bot token does not look like 123456789:AA…: copy it again"}
	}
	if topic := c.Settings["topic"]; topic != "" {
		id, err := strconv.ParseInt(topic, 10, 32)
		if err != nil {
			return Receipt{}, &PermanentError{"the topic is not a number: it stands at the end of a link to the topic"}
		}
		chat.topic = id
	}
	return deliver(ctx, chat, ref, m)
}

// isTelegramToken keeps anything else than a token out of a path.
var isTelegramToken = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{10,100}$`).MatchString

type telegramChat struct {
	caller caller
	c      store.Channel
	topic  int64 // zero for none
}

type telegramMessage struct {
	Chat      string         `json:"chat_id"`
	MessageID int64          `json:"message_id,omitempty"` // that is edited
	Topic     int64          `json:"message_thread_id,omitempty"`
	Text      string         `json:"text"`
	ParseMode string         `json:"parse_mode,omitempty"`
	Previews  map[string]any `json:"link_preview_options"`
	Silent    bool           `json:"disable_notification,omitempty"`
	Reply     map[string]any `json:"reply_parameters,omitempty"`
}

func (t telegramChat) post(ctx context.Context, m Message) (string, error) {
	return t.send(ctx, telegramMessage{Chat: t.c.Settings["chat_id"], Topic: t.topic}, m, t.text(m))
}

func (t telegramChat) edit(ctx context.Context, ref string, m Message) error {
	chat, id, ok := telegramRef(ref)
	if !ok {
		return errGone
	}
	a, err := t.ask(ctx, "editMessageText", telegramMessage{Chat: chat, MessageID: id}, m, t.text(m))
	if err != nil || a.ok() {
		return err
	}
	said := strings.ToLower(telegramSaid(a).Description)
	switch {
	case strings.Contains(said, "message is not modified"): // the same once more, after a crash
		return nil
	case a.status == http.StatusBadRequest:
		return errGone // deleted, too old, or in another chat: a new message finds out what else may be wrong
	}
	return telegramError(a, t.c)
}

// say replies, also where the message is gone.
func (t telegramChat) say(ctx context.Context, ref string, m Message) error {
	reply := telegramMessage{Chat: t.c.Settings["chat_id"], Topic: t.topic, Silent: m.Calm}
	if chat, id, ok := telegramRef(ref); ok {
		reply.Chat = chat
		reply.Reply = map[string]any{"message_id": id, "allow_sending_without_reply": true}
	}
	_, err := t.send(ctx, reply, m, telegramText(fit(m.short(), 1000))+telegramLink(m))
	return err
}

func (t telegramChat) send(ctx context.Context, message telegramMessage, m Message, text string) (ref string, err error) {
	a, err := t.ask(ctx, "sendMessage", message, m, text)
	if err != nil {
		return "", err
	}
	if !a.ok() {
		return "", telegramError(a, t.c)
	}
	said := telegramSaid(a)
	if !said.OK || said.Result.MessageID == 0 || said.Result.Chat.ID == 0 {
		return "", a.unexpected("Telegram")
	}
	return strconv.FormatInt(said.Result.Chat.ID, 10) + ":" + strconv.FormatInt(said.Result.MessageID, 10), nil
}

// ask calls a method with an HTML text, and once more with plain text where the server cannot read that: an alert without
// its bold type is better than none.
func (t telegramChat) ask(ctx context.Context, method string, message telegramMessage, m Message, text string) (answer, error) {
	address := base(t.c, "https://api.telegram.org") + "/bot" + t.c.Secrets["bot_token"] + "/" + method
	message.Text, message.ParseMode, message.Previews = text, "HTML", map[string]any{"is_disabled": true}
	a, err := t.caller.ask(ctx, "Telegram", http.MethodPost, address, "", message)
	if err != nil || a.status != http.StatusBadRequest || !isTelegramContent(telegramSaid(a).Description) {
		return a, err
	}
	message.Text, message.ParseMode = strings.Join(nonEmpty([]string{fit(defuse(m.short()), 2000), fit(m.Link, 1000)}), "\n"), ""
	return t.caller.ask(ctx, "Telegram", http.MethodPost, address, "", message)
}

func isTelegramContent(description string) bool {
	description = strings.ToLower(description)
	return strings.Contains(description, "can't parse entities") || strings.Contains(description, "message is too long")
}

func telegramRef(ref string) (chat string, id int64, ok bool) {
	chat, message, ok := strings.Cut(ref, ":")
	if _, err := strconv.ParseInt(chat, 10, 64); err != nil || !ok {
		return "", 0, false
	}
	id, err := strconv.ParseInt(message, 10, 64)
	return chat, id, err == nil
}

// telegramAnswer is what every method answers: https://core.telegram.org/bots/api#making-requests.
type telegramAnswer struct {
	OK     bool `json:"ok"`
	Result struct {
		MessageID int64 `json:"message_id"`
		Chat      struct {
			ID int64 `json:"id"`
		} `json:"chat"`
	} `json:"result"`
	Description string `json:"description"`
	Parameters  struct {
		RetryAfter float64 `json:"retry_after"` // seconds
		MigratedTo int64   `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

func telegramSaid(a answer) telegramAnswer {
	var said telegramAnswer
	if !a.read(&said) {
		return telegramAnswer{}
	}
	return said
}

// telegramError sorts an answer. The description is the only thing that tells apart what 400 and 403 may mean.
func telegramError(a answer, c store.Channel) error {
	said := telegramSaid(a)
	v := a.verdict("Telegram")
	v.said = said.Description
	if a.status == http.StatusTooManyRequests && said.Parameters.RetryAfter > 0 {
		v.wait = seconds(said.Parameters.RetryAfter)
	}
	v.todo = telegramTodo(a.status, said)
	return a.refusal(v, c)
}

func telegramTodo(status int, said telegramAnswer) string {
	if said.Parameters.MigratedTo != 0 {
		return "the group became a supergroup, whose chat id is " + strconv.FormatInt(said.Parameters.MigratedTo, 10)
	}
	description := strings.ToLower(said.Description)
	switch status {
	case http.StatusUnauthorized, http.StatusNotFound: // 404 is what a token of a wrong form gets
		return "the bot token is not valid: copy it again"
	case http.StatusForbidden:
		return "the bot must be let into the chat, or be unblocked"
	case http.StatusBadRequest:
		switch {
		case strings.Contains(description, "chat not found"):
			return "see that the chat id is right, and add the bot to the chat"
		case strings.Contains(description, "thread not found"), strings.Contains(description, "topic"):
			return "the topic was deleted or closed"
		case strings.Contains(description, "rights"), strings.Contains(description, "chat_write_forbidden"):
			return "the bot may not write here: make it an administrator, or allow members to write"
		}
	}
	return ""
}

// telegramLimit is what a text has at most once its markup is taken away: 4096 characters, of which some stay free for the
// link.
const telegramLimit = 4000

// text lays m out in HTML: names of ours in bold, words of strangers as code, which Telegram does not search for names and
// addresses.
func (t telegramChat) text(m Message) string {
	if own, ok := ownWords(m, t.c); ok {
		return telegramEscaper.Replace(fit(defuse(own), telegramLimit))
	}
	var sheet telegramSheet
	sheet.add("<b>", telegramText(fit(m.heading(), 300)), "</b>")
	for _, line := range m.story() {
		sheet.add("", telegramText(fit(line, 500)), "")
	}
	for _, line := range m.lists() {
		sheet.add("• <code>", telegramText(fit(line, 400)), "</code>")
	}
	for _, d := range m.details() {
		text := telegramText(fit(d.text, 600))
		if d.text == m.URL { // a tap copies it, and it has to lead somewhere; code is no link as it is
			text = telegramEscaper.Replace(fit(d.text, 600))
		}
		sheet.add(d.label+": <code>", text, "</code>")
	}
	return strings.Join(sheet.lines, "\n") + telegramLink(m)
}

// telegramSheet takes lines as long as there is room. Escaped text counts as it is sent, more than Telegram counts.
type telegramSheet struct {
	lines []string
	used  int
}

func (s *telegramSheet) add(before, text, after string) {
	line := before + text + after
	if s.used += width(line) + 1; s.used <= telegramLimit-200 {
		s.lines = append(s.lines, line)
	}
}

func telegramLink(m Message) string {
	if m.Link == "" || len(m.Link) > 1000 {
		return ""
	}
	return "\n<a href=\"" + html.EscapeString(m.Link) + "\">" + telegramText(m.linkText()) + "</a>"
}

// telegramText returns text in which Telegram finds no tags, no names and no addresses.
func telegramText(text string) string { return telegramEscaper.Replace(defuse(text)) }

var telegramEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
