package alertstest

import (
	"encoding/json"
	"net/http"
	"testing"
)

const (
	teamsPath  = "/workflows/7e2c2dc8cc4a4678b1113ede1d55d5a1/triggers/manual/paths/invoke"
	teamsQuery = "api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=c-3iiBjByin64STF8bVGeRrjAu6qhGR7QAs_wZ-aF4Q"
)

// TeamsCard is one that was accepted.
type TeamsCard struct {
	Type, Version, FallbackText string

	Body []struct {
		Type    string
		Inlines []struct{ Type, Text, Color string }
	}
	Actions []struct{ Type, Title, URL string }
}

// Text returns the lines of the card.
func (c TeamsCard) Text() (lines []string) {
	for _, block := range c.Body {
		line := ""
		for _, run := range block.Inlines {
			line += run.Text
		}
		lines = append(lines, line)
	}
	return lines
}

// Teams is a server like the one that runs the workflows of Microsoft Teams.
type Teams struct {
	*Service
	cards []TeamsCard
}

// NewTeams starts a server that ends with the test.
func NewTeams(t testing.TB) *Teams {
	s := &Teams{}
	s.Service = start(t, s.serve)
	return s
}

// WebhookURL is the address of its one workflow; a secret.
func (s *Teams) WebhookURL() string { return s.URL() + teamsPath + "?" + teamsQuery }

// Cards returns everything that was accepted so far, in order.
func (s *Teams) Cards() []TeamsCard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]TeamsCard(nil), s.cards...)
}

func (s *Teams) serve(r Request) Reply {
	var in struct {
		Type        string
		Attachments []struct {
			ContentType string
			ContentURL  any
			Content     TeamsCard
		}
	}
	switch {
	case r.Path != teamsPath:
		return teamsSays(http.StatusNotFound, "WorkflowNotFound", "The workflow '7e2c' could not be found.")
	case r.Query != teamsQuery:
		return teamsSays(http.StatusUnauthorized, "DirectApiAuthorizationRequired", "The request must be authenticated only by Shared Access scheme.")
	case len(r.Body) > 28<<10:
		return teamsSays(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The request is too large.")
	case json.Unmarshal(r.Body, &in) != nil || in.Type != "message" || len(in.Attachments) != 1 ||
		in.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" || in.Attachments[0].Content.Type != "AdaptiveCard":
		return teamsSays(http.StatusBadRequest, "TriggerInputSchemaMismatch", "The input body for trigger 'manual' of type 'Request' did not match its schema definition.")
	}
	s.cards = append(s.cards, in.Attachments[0].Content)
	return Reply{Status: http.StatusAccepted}
}

func teamsSays(status int, code, message string) Reply {
	return asJSON(status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}
