package alertstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const discordHook = "/api/webhooks/1212121212121212121/aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789_-aBcDeFgHiJkLmNoPqRsTuVwXyZ012"

// DiscordMessage is one as it stands in the channel.
type DiscordMessage struct {
	ID      string
	Edits   int
	Content string
	Flags   int
	Embeds  []struct {
		Title, URL, Description, Timestamp string

		Color  int
		Fields []struct {
			Name, Value string
			Inline      bool
		}
	}
	Mentions *struct{ Parse []string } `json:"allowed_mentions"`
}

// Discord is a server like that of Discord's webhooks.
type Discord struct {
	*Service
	messages []*DiscordMessage
}

// NewDiscord starts a server that ends with the test.
func NewDiscord(t testing.TB) *Discord {
	d := &Discord{}
	d.Service = start(t, d.serve)
	return d
}

// WebhookURL is the address of its one webhook; a secret.
func (d *Discord) WebhookURL() string { return d.URL() + discordHook }

// Messages returns what stands in the channel, in order.
func (d *Discord) Messages() []DiscordMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	var messages []DiscordMessage
	for _, m := range d.messages {
		messages = append(messages, *m)
	}
	return messages
}

// Delete removes a message, as somebody in the channel might.
func (d *Discord) Delete(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.find(id); m != nil {
		m.ID = ""
	}
}

func (d *Discord) find(id string) *DiscordMessage {
	for _, m := range d.messages {
		if m.ID == id && id != "" {
			return m
		}
	}
	return nil
}

func (d *Discord) serve(r Request) Reply {
	rest, ok := strings.CutPrefix(r.Path, discordHook)
	if !ok {
		if strings.HasPrefix(r.Path, "/api/webhooks/1212121212121212121/") {
			return discordSays(http.StatusUnauthorized, "Invalid Webhook Token", 50027)
		}
		return discordSays(http.StatusNotFound, "Unknown Webhook", 10015)
	}
	var m DiscordMessage
	if json.Unmarshal(r.Body, &m) != nil {
		return discordSays(http.StatusBadRequest, "The request body contains invalid JSON.", 50109)
	}
	if wrong := discordProblem(m); wrong != nil {
		return *wrong
	}
	query, err := url.ParseQuery(r.Query)
	if err != nil || query.Get("wait") != "true" {
		return Reply{Status: http.StatusNoContent}
	}
	id, edits := strings.CutPrefix(rest, "/messages/")
	switch {
	case r.Method == http.MethodPost && rest == "":
		m.ID = fmt.Sprintf("13131313131313%05d", len(d.messages)+1)
		d.messages = append(d.messages, &m)
	case r.Method == http.MethodPatch && edits && d.find(id) != nil:
		old := d.find(id)
		m.ID, m.Edits = old.ID, old.Edits+1
		*old = m
	case r.Method == http.MethodPatch && edits:
		return discordSays(http.StatusNotFound, "Unknown Message", 10008)
	default:
		return discordSays(http.StatusMethodNotAllowed, "405: Method Not Allowed", 0)
	}
	return asJSON(http.StatusOK, map[string]any{"id": m.ID, "type": 0, "content": m.Content, "webhook_id": "1212121212121212121"})
}

func discordProblem(m DiscordMessage) *Reply {
	total := 0
	for _, e := range m.Embeds {
		total += length(e.Title) + length(e.Description)
		bad := length(e.Title) > 256 || length(e.Description) > 4096 || len(e.Fields) > 25
		for _, f := range e.Fields {
			total += length(f.Name) + length(f.Value)
			bad = bad || f.Name == "" || f.Value == "" || length(f.Name) > 256 || length(f.Value) > 1024
		}
		if bad {
			return ptr(discordSays(http.StatusBadRequest, "Invalid Form Body", 50035))
		}
	}
	switch {
	case total > 6000 || length(m.Content) > 2000 || len(m.Embeds) > 10:
		return ptr(discordSays(http.StatusBadRequest, "Invalid Form Body", 50035))
	case m.Content == "" && len(m.Embeds) == 0:
		return ptr(discordSays(http.StatusBadRequest, "Cannot send an empty message", 50006))
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

func discordSays(status int, message string, code int) Reply {
	return asJSON(status, map[string]any{"message": message, "code": code})
}
