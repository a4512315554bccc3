package alertstest

import (
	"encoding/json"
	"net/http"
	"testing"
)

const mattermostHook = "/hooks/4uzkw7ctn3b7mgi4gp1ydp4mze"

// MattermostPost is one that was accepted.
type MattermostPost struct {
	Channel, Text, Username string

	Attachments []struct {
		Fallback, Color, Text string

		Fields []struct {
			Title, Value string
			Short        bool
		}
	}
}

// Mattermost is a server like that of Mattermost's incoming webhooks, with the channels "alerts" and "ops".
type Mattermost struct {
	*Service
	posts []MattermostPost
}

// NewMattermost starts a server that ends with the test.
func NewMattermost(t testing.TB) *Mattermost {
	s := &Mattermost{}
	s.Service = start(t, s.serve)
	return s
}

// WebhookURL is the address of its one webhook; a secret.
func (s *Mattermost) WebhookURL() string { return s.URL() + mattermostHook }

// Posts returns everything that was accepted so far, in order.
func (s *Mattermost) Posts() []MattermostPost {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]MattermostPost(nil), s.posts...)
}

func (s *Mattermost) serve(r Request) Reply {
	var p MattermostPost
	if json.Unmarshal(r.Body, &p) != nil {
		return mattermostSays(http.StatusBadRequest, "web.incoming_webhook.decode.app_error", "Unable to parse incoming data.")
	}
	props, err := json.Marshal(p.Attachments)
	switch {
	case r.Path != mattermostHook:
		return mattermostSays(http.StatusBadRequest, "web.incoming_webhook.invalid.app_error", "Invalid webhook.")
	case p.Text == "" && p.Attachments == nil:
		return mattermostSays(http.StatusBadRequest, "web.incoming_webhook.text.app_error", "No text specified.")
	case p.Channel != "" && p.Channel != "alerts" && p.Channel != "ops":
		return mattermostSays(http.StatusNotFound, "web.incoming_webhook.channel.app_error", "Couldn't find the channel.")
	case err != nil || length(string(props)) > 8000-400:
		return mattermostSays(http.StatusBadRequest, "web.incoming_webhook.split_props_length.app_error", "Unable to split webhook props into 7600 characters.")
	case length(p.Text) > 4000:
		return mattermostSays(http.StatusBadRequest, "web.incoming_webhook.text.length.app_error", "Text is too long.")
	}
	s.posts = append(s.posts, p)
	return Reply{Status: http.StatusOK, Header: map[string]string{"Content-Type": "text/plain"}, Body: "ok"}
}

func mattermostSays(status int, id, message string) Reply {
	return asJSON(status, map[string]any{
		"id": id, "message": message, "detailed_error": "", "request_id": "3bxwn99zx7dfxdjy5xkoh5xnmo", "status_code": status,
	})
}
