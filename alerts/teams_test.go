package alerts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func teamsChannel(s *alertstest.Teams) store.Channel {
	return store.Channel{
		ID: "ch_1", Name: "ops", Type: store.ChannelTeams, Settings: map[string]string{},
		Secrets: map[string]string{"webhook_url": s.WebhookURL()},
	}
}

func TestTeamsGetsACardForEachMessage(t *testing.T) {
	s, sender := alertstest.NewTeams(t), alerts.NewTeams(client())
	for _, m := range []alerts.Message{incident(), recovery(), contractChange()} {
		receipt, err := sender.Send(t.Context(), teamsChannel(s), "", m)
		if err != nil || receipt != (alerts.Receipt{}) {
			t.Fatalf("%s: receipt %+v, error %v", m.Kind, receipt, err)
		}
	}
	cards := s.Cards()
	lines := cards[0].Text()
	if lines[0] != "🔴 Weather is down" || !slices.Contains(lines, "Error: Internal error: database is locked") || cards[0].Body[0].Inlines[0].Color != "Attention" {
		t.Errorf("card = %q", lines)
	}
	if len(cards[0].Actions) != 1 || cards[0].Actions[0].Type != "Action.OpenUrl" {
		t.Errorf("actions = %+v, want a link", cards[0].Actions)
	}
	if lines := cards[1].Text(); lines[1] != "Recovered after 12 minutes 4 seconds." {
		t.Errorf("card = %q", lines)
	}
	if lines := cards[2].Text(); !slices.Contains(lines, "• breaking: forecast: the tool is gone") {
		t.Errorf("card = %q", lines)
	}
}

func TestNoTextOfACardIsReadAsMarkdown(t *testing.T) {
	s := alertstest.NewTeams(t)
	if _, err := alerts.NewTeams(client()).Send(t.Context(), teamsChannel(s), "", rude()); err != nil {
		t.Fatal(err)
	}
	for _, block := range s.Cards()[0].Body {
		if block.Type != "RichTextBlock" || len(block.Inlines) == 0 {
			t.Errorf("block %+v is not rich text", block)
		}
		for _, run := range block.Inlines {
			if run.Type != "TextRun" || run.Text == "" {
				t.Errorf("%+v is not a run of text", run)
			}
		}
	}
	if last := s.Cards()[0].Text(); last[len(last)-1] != "…" || len(s.Accepted()[0].Body) > 26<<10 {
		t.Errorf("a card of %d bytes ends with %q", len(s.Accepted()[0].Body), last[len(last)-1])
	}
}

func TestWhatTeamsRefuses(t *testing.T) {
	s := alertstest.NewTeams(t)
	refusals{
		{"a workflow that is off or gone", alertstest.Reply{Status: 400, Body: `{"error":{"code":"WorkflowTriggerIsNotEnabled","message":"Could not execute workflow '7e2c' trigger 'manual' with state 'Deleted': trigger is not enabled."}}`}, true, 0, "switch it on, or make another one"},
		{"a workflow that is gone", alertstest.Reply{Status: 404, Body: `{"error":{"code":"WorkflowNotFound","message":"The workflow '7e2c' could not be found."}}`}, true, 0, "make another one"},
		{"nothing at this address", alertstest.Reply{Status: 410}, true, 0, "the workflow was deleted"},
		{"half an address", alertstest.Reply{Status: 401, Body: `{"error":{"code":"DirectApiAuthorizationRequired","message":"The request must be authenticated only by Shared Access scheme."}}`}, true, 0, "copy it again"},
		{"a wrong signature", alertstest.Reply{Status: 403, Body: ``}, true, 0, "copy it again"},
		{"another kind of workflow", alertstest.Reply{Status: 400, Body: `{"error":{"code":"TriggerInputSchemaMismatch","message":"Required properties are missing from object: contentUrl."}}`}, true, 0, "another form of message"},
		{"too many messages", alertstest.Reply{Status: 429, Header: map[string]string{"Retry-After": "12"}, Body: `{"error":{"code":"WorkflowTriggerRequestsThrottled","message":"Rate limit is exceeded."}}`}, false, 12 * time.Second, "Rate limit is exceeded"},
		{"its own trouble", alertstest.Reply{Status: 504, Body: `{"error":{"code":"NoResponse","message":"The server did not receive a response from an upstream server."}}`}, false, 0, "504"},
	}.run(t, alerts.NewTeams(client()), s.Service, teamsChannel(s))
}

func TestAnIncompleteAddressOfAWorkflowIsSaid(t *testing.T) {
	s := alertstest.NewTeams(t)
	c := teamsChannel(s)
	c.Secrets["webhook_url"], _, _ = strings.Cut(c.Secrets["webhook_url"], "&sp=")
	_, err := alerts.NewTeams(client()).Send(t.Context(), c, "", incident())
	checkRefusal(t, err, true, 0, "the workflow's address is incomplete")
}
