package alerts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func discordChannel(d *alertstest.Discord) store.Channel {
	return store.Channel{
		ID: "ch_1", Name: "ops", Type: store.ChannelDiscord, Settings: map[string]string{},
		Secrets: map[string]string{"webhook_url": d.WebhookURL()},
	}
}

func TestAnIncidentIsOneMessageInDiscordWithItsEndBehindIt(t *testing.T) {
	d, sender := alertstest.NewDiscord(t), alerts.NewDiscord(client())
	opened, err := sender.Send(t.Context(), discordChannel(d), "", incident())
	if err != nil || opened.Ref == "" {
		t.Fatalf("receipt %+v, error %v", opened, err)
	}
	for _, m := range []alerts.Message{acknowledgement(), word(alerts.KindReminder, "Weather is still down", ""), recovery()} {
		receipt, err := sender.Send(t.Context(), discordChannel(d), opened.Ref, m)
		if err != nil || receipt.Ref != opened.Ref {
			t.Fatalf("%s: receipt %+v, error %v", m.Kind, receipt, err)
		}
	}
	got := d.Messages()
	if len(got) != 3 || got[0].Edits != 2 {
		t.Fatalf("messages = %+v, want one that was edited twice, a reminder and an end", got)
	}
	if embed := got[0].Embeds[0]; embed.Title != "🟢 Weather has recovered" || embed.Color != 0x12B76A || embed.URL == "" {
		t.Errorf("embed = %+v", embed)
	}
	if !strings.HasPrefix(got[1].Content, "🔴 Weather is still down") || !strings.HasPrefix(got[2].Content, "🟢 Weather has recovered — Recovered after 12 minutes 4 seconds.") {
		t.Errorf("words = %q and %q", got[1].Content, got[2].Content)
	}
	for _, m := range got {
		if m.Mentions == nil || m.Mentions.Parse == nil || len(m.Mentions.Parse) != 0 {
			t.Errorf("%+v may mention people", m)
		}
	}
}

func TestADiscordMessageThatIsGoneIsPostedAfresh(t *testing.T) {
	d, sender := alertstest.NewDiscord(t), alerts.NewDiscord(client())
	opened, err := sender.Send(t.Context(), discordChannel(d), "", incident())
	if err != nil {
		t.Fatal(err)
	}
	d.Delete(opened.Ref)
	if receipt, err := sender.Send(t.Context(), discordChannel(d), opened.Ref, acknowledgement()); err != nil || !receipt.Passed {
		t.Errorf("receipt %+v, error %v; want the act passed over", receipt, err)
	}
	for _, ref := range []string{opened.Ref, "../../../1", "not digits"} {
		receipt, err := sender.Send(t.Context(), discordChannel(d), ref, recovery())
		if err != nil || receipt.Ref == ref || receipt.Ref == "" {
			t.Errorf("ref %q: receipt %+v, error %v; want another message", ref, receipt, err)
		}
	}
}

func TestAThreadOfDiscordStaysInTheAddress(t *testing.T) {
	d := alertstest.NewDiscord(t)
	c := discordChannel(d)
	c.Secrets["webhook_url"] += "?thread_id=42"
	opened, err := alerts.NewDiscord(client()).Send(t.Context(), c, "", incident())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alerts.NewDiscord(client()).Send(t.Context(), c, opened.Ref, recovery()); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Requests() {
		if r.Query != "thread_id=42&wait=true" {
			t.Errorf("%s %s has the parameters %q", r.Method, r.Path, r.Query)
		}
	}
}

func TestDiscordShowsRudeWordsAsTheyAre(t *testing.T) {
	d := alertstest.NewDiscord(t)
	m := incident()
	m.Title, m.Said, m.Meaning = rudeness, rudeness, rudeness
	opened, err := alerts.NewDiscord(client()).Send(t.Context(), discordChannel(d), "", m)
	if err != nil {
		t.Fatal(err)
	}
	m.Kind, m.Open = alerts.KindResolved, false
	if _, err := alerts.NewDiscord(client()).Send(t.Context(), discordChannel(d), opened.Ref, m); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Requests() {
		for _, effect := range []string{"@everyone", "@here", " <@", " [click", " **bold", " ~~", " `", "://evil", "www.evil"} {
			if strings.Contains(string(r.Body), effect) {
				t.Errorf("%q is in %s", effect, r.Body)
			}
		}
	}
}

func TestWhatDiscordRefuses(t *testing.T) {
	d := alertstest.NewDiscord(t)
	refusals{
		{"a webhook that was deleted", alertstest.Reply{Status: 404, Body: `{"message": "Unknown Webhook", "code": 10015}`}, true, 0, "Unknown Webhook: the webhook was deleted"},
		{"a token that is not the webhook's", alertstest.Reply{Status: 401, Body: `{"message": "Invalid Webhook Token", "code": 50027}`}, true, 0, "copy it again"},
		{"a thread that was deleted", alertstest.Reply{Status: 404, Body: `{"message": "Unknown Channel", "code": 10003}`}, true, 0, "thread was deleted"},
		{"a message that is not valid", alertstest.Reply{Status: 400, Body: `{"message": "Invalid Form Body", "code": 50035, "errors": {"embeds": {}}}`}, true, 0, "Invalid Form Body"},
		{"too many messages", alertstest.Reply{
			Status: 429, Header: map[string]string{"Retry-After": "2", "X-RateLimit-Reset-After": "1.337", "X-RateLimit-Scope": "shared"},
			Body: `{"message": "You are being rate limited.", "retry_after": 1.337, "global": false}`,
		}, false, 1337 * time.Millisecond, "rate limited"},
		{"too many messages for the page in front", alertstest.Reply{Status: 429, Header: map[string]string{"Retry-After": "60"}, Body: `error code: 1015`}, false, time.Minute, "429"},
		{"too long a wait", alertstest.Reply{Status: 429, Body: `{"message": "You are being rate limited.", "retry_after": 1e300}`}, false, time.Hour, "429"},
		{"its own trouble", alertstest.Reply{Status: 502, Body: `<html>`}, false, 0, "502 Bad Gateway"},
	}.run(t, alerts.NewDiscord(client()), d.Service, discordChannel(d))
}
