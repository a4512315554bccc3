package alertstest

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// What a Telegram accepts.
const (
	TelegramToken = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw" // of its one bot
	TelegramChat  = "@alerts"                                      // its one chat, by name
	TelegramID    = -1001234567890                                 // and by id
)

// TelegramMessage is one as it stands in the chat.
type TelegramMessage struct {
	ID    int64
	Edits int

	Topic   int64 `json:"message_thread_id"`
	Text    string
	Mode    string `json:"parse_mode"`
	Preview *struct {
		Disabled bool `json:"is_disabled"`
	} `json:"link_preview_options"`
	Reply *struct {
		To int64 `json:"message_id"`
	} `json:"reply_parameters"`
}

// Telegram is a server like that of Telegram's Bot API.
type Telegram struct {
	*Service
	messages []*TelegramMessage
}

// NewTelegram starts a server that ends with the test.
func NewTelegram(t testing.TB) *Telegram {
	s := &Telegram{}
	s.Service = start(t, s.serve)
	return s
}

// Messages returns what stands in the chat, in order.
func (s *Telegram) Messages() []TelegramMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var messages []TelegramMessage
	for _, m := range s.messages {
		messages = append(messages, *m)
	}
	return messages
}

// Delete removes the message of an id, as somebody in the chat might.
func (s *Telegram) Delete(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.ID == id {
			m.ID = 0
		}
	}
}

func (s *Telegram) serve(r Request) Reply {
	method, ok := strings.CutPrefix(r.Path, "/bot"+TelegramToken+"/")
	if !ok {
		return TelegramRefusal(http.StatusUnauthorized, "Unauthorized", nil)
	}
	var in struct {
		TelegramMessage
		Chat string `json:"chat_id"`
		Edit int64  `json:"message_id"`
	}
	if json.Unmarshal(r.Body, &in) != nil {
		return TelegramRefusal(http.StatusBadRequest, "Bad Request: can't parse JSON", nil)
	}
	m := in.TelegramMessage
	switch {
	case in.Chat != TelegramChat && in.Chat != "-1001234567890":
		return TelegramRefusal(http.StatusBadRequest, "Bad Request: chat not found", nil)
	case m.Text == "":
		return TelegramRefusal(http.StatusBadRequest, "Bad Request: message text is empty", nil)
	case m.Mode == "HTML" && strings.ContainsAny(telegramTags.ReplaceAllString(m.Text, ""), "<>"):
		return TelegramRefusal(http.StatusBadRequest, "Bad Request: can't parse entities: Unsupported start tag", nil)
	case length(TelegramPlain(m.Text)) > 4096:
		return TelegramRefusal(http.StatusBadRequest, "Bad Request: message is too long", nil)
	case method == "sendMessage":
		m.ID = int64(len(s.messages) + 1)
		s.messages = append(s.messages, &m)
		return telegramAccepts(m.ID)
	case method == "editMessageText":
		return s.edit(in.Edit, m)
	}
	return TelegramRefusal(http.StatusNotFound, "Not Found", nil)
}

func (s *Telegram) edit(id int64, m TelegramMessage) Reply {
	for _, old := range s.messages {
		switch {
		case old.ID != id || id == 0:
		case old.Text == m.Text:
			return TelegramRefusal(http.StatusBadRequest, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message", nil)
		default:
			old.Text, old.Edits = m.Text, old.Edits+1
			return telegramAccepts(id)
		}
	}
	return TelegramRefusal(http.StatusBadRequest, "Bad Request: message to edit not found", nil)
}

var telegramTags = regexp.MustCompile(`</?(b|code)>|<a href="[^"<>]*">|</a>`)

// TelegramPlain returns what is left of an HTML text once Telegram has read its markup.
func TelegramPlain(text string) string {
	return html.UnescapeString(telegramTags.ReplaceAllString(text, ""))
}

func telegramAccepts(id int64) Reply {
	return asJSON(http.StatusOK, map[string]any{"ok": true, "result": map[string]any{
		"message_id": id, "date": 1763712000, "chat": map[string]any{"id": TelegramID, "type": "supergroup", "title": "alerts"},
	}})
}

// TelegramRefusal is how Telegram refuses; parameters may be nil.
func TelegramRefusal(status int, description string, parameters map[string]any) Reply {
	body := map[string]any{"ok": false, "error_code": status, "description": description}
	if parameters != nil {
		body["parameters"] = parameters
	}
	return asJSON(status, body)
}
