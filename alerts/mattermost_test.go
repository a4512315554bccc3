package alerts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func mattermostChannel(s *alertstest.Mattermost) store.Channel {
	return store.Channel{
		ID: "ch_1", Name: "ops", Type: store.ChannelMattermost, Settings: map[string]string{"channel": "#ops"},
		Secrets: map[string]string{"webhook_url": s.WebhookURL()},
	}
}

func TestMattermostGetsAPostForEachMessage(t *testing.T) {
	s, sender := alertstest.NewMattermost(t), alerts.NewMattermost(client())
	for _, m := range []alerts.Message{incident(), recovery(), contractChange()} {
		receipt, err := sender.Send(t.Context(), mattermostChannel(s), "", m)
		if err != nil || receipt != (alerts.Receipt{}) {
			t.Fatalf("%s: receipt %+v, error %v", m.Kind, receipt, err)
		}
	}
	posts := s.Posts()
	opened := posts[0]
	if !strings.HasPrefix(opened.Text, "**[🔴 Weather is down]("+publicURL) || opened.Channel != "ops" || opened.Attachments[0].Color != "#D92D20" {
		t.Errorf("opening = %+v", opened)
	}
	if got := opened.Attachments[0].Fallback; got != "🔴 Weather is down — tools/list: Internal error: database is locked" {
		t.Errorf("fallback = %q", got)
	}
	if !strings.Contains(posts[1].Text, "\nRecovered after 12 minutes 4 seconds.") || posts[1].Attachments[0].Color != "#12B76A" {
		t.Errorf("end = %+v", posts[1])
	}
	if got, want := posts[2].Attachments[0].Text, "- breaking: forecast: the tool is gone"; got != want {
		t.Errorf("changes = %q, want %q", got, want)
	}
}

func TestMattermostShowsRudeWordsAsTheyAre(t *testing.T) {
	s := alertstest.NewMattermost(t)
	m := incident()
	m.Title, m.Said, m.Meaning, m.Changes, m.Link = rudeness, rudeness, rudeness, []string{rudeness}, ""
	if _, err := alerts.NewMattermost(client()).Send(t.Context(), mattermostChannel(s), "", m); err != nil {
		t.Fatal(err)
	}
	post := s.Posts()[0]
	texts := post.Text + post.Attachments[0].Text + post.Attachments[0].Fallback
	for _, f := range post.Attachments[0].Fields {
		texts += f.Value
	}
	for _, effect := range []string{"@channel", "@here", "@everyone", "@ada", "://evil", "www.evil"} {
		if strings.Contains(texts, effect) {
			t.Errorf("%q is in %s", effect, texts)
		}
	}
	marked := post.Text + post.Attachments[0].Text
	for _, effect := range []string{"<!channel>", "<https", "|click>", " [click", " _it", " ~~", " `", " #tag", " ![", " $x"} {
		if strings.Contains(marked, effect) {
			t.Errorf("%q is in %s", effect, marked)
		}
	}
}

func TestWhatMattermostRefuses(t *testing.T) {
	s := alertstest.NewMattermost(t)
	says := func(status int, id, message string) alertstest.Reply {
		return alertstest.Reply{Status: status, Body: `{"id":"` + id + `","message":"` + message + `","detailed_error":"","request_id":"3bxwn99zx7dfxdjy5xkoh5xnmo","status_code":400}`}
	}
	refusals{
		{"a webhook that was removed", says(400, "web.incoming_webhook.invalid.app_error", "Invalid webhook."), true, 0, "Invalid webhook.: the webhook was removed"},
		{"webhooks switched off", says(501, "web.incoming_webhook.disabled.app_error", "Incoming webhooks have been disabled by the system admin."), true, 0, "switched off"},
		{"a locked webhook", says(403, "web.incoming_webhook.channel_locked.app_error", "This webhook is not permitted to post to the requested channel."), true, 0, "locked to its own channel"},
		{"no right to post", says(403, "web.incoming_webhook.permissions.app_error", "Inappropriate channel permissions."), true, 0, "may not post"},
		{"no such channel", says(404, "web.incoming_webhook.channel.app_error", "Couldn't find the channel."), true, 0, "no such channel"},
		{"a channel that could not be looked up", says(500, "web.incoming_webhook.channel.app_error", "Couldn't find the channel."), false, 0, "500"},
		{"a channel that was deleted", says(404, "app.channel.get.existing.app_error", "Unable to find the existing channel."), true, 0, "the webhook's channel was deleted"},
		{"another server", alertstest.Reply{Status: 404, Body: `{"id":"hooks/4uzkw7ctn3b7mgi4gp1ydp4mze","message":"/hooks/4uzkw7ctn3b7mgi4gp1ydp4mze is not here"}`}, true, 0, "404 Not Found"},
		{"too many requests", alertstest.Reply{
			Status: 429, Header: map[string]string{"X-Ratelimit-Limit": "11", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1", "Retry-After": "1"}, Body: "limit exceeded",
		}, false, time.Second, "429"},
		{"its own trouble", alertstest.Reply{Status: 502, Body: `<html>`}, false, 0, "502"},
	}.run(t, alerts.NewMattermost(client()), s.Service, mattermostChannel(s))
}
