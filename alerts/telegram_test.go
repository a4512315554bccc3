package alerts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func telegramChannel(s *alertstest.Telegram) store.Channel {
	return store.Channel{
		ID: "ch_1", Name: "ops", Type: store.ChannelTelegram,
		Settings: map[string]string{"api_url": s.URL(), "chat_id": alertstest.TelegramChat, "topic": "42"},
		Secrets:  map[string]string{"bot_token": alertstest.TelegramToken},
	}
}

func TestAnIncidentIsOneMessageInTelegramWithItsEndAsAReply(t *testing.T) {
	s, sender := alertstest.NewTelegram(t), alerts.NewTelegram(client())
	opened, err := sender.Send(t.Context(), telegramChannel(s), "", incident())
	if err != nil || opened.Ref != "-1001234567890:1" {
		t.Fatalf("receipt %+v, error %v", opened, err)
	}
	// The last comes again after a crash: what it edits is as it wants it.
	for _, m := range []alerts.Message{acknowledgement(), word(alerts.KindReminder, "Weather is still down", ""), recovery(), recovery()} {
		receipt, err := sender.Send(t.Context(), telegramChannel(s), opened.Ref, m)
		if err != nil || receipt.Ref != opened.Ref {
			t.Fatalf("%s: receipt %+v, error %v", m.Kind, receipt, err)
		}
	}
	got := s.Messages()
	if len(got) != 4 || got[0].Edits != 2 || got[0].Topic != 42 {
		t.Fatalf("messages = %+v, want one that was edited twice, a reminder and an end that is there twice", got)
	}
	if !strings.HasPrefix(got[0].Text, "<b>🟢 Weather has recovered</b>\nRecovered after 12 minutes 4 seconds.") {
		t.Errorf("text = %q", got[0].Text)
	}
	if got[2].Reply == nil || got[2].Reply.To != 1 || !strings.HasPrefix(got[2].Text, "🟢 Weather has recovered — Recovered after") {
		t.Errorf("end = %+v, want a reply", got[2])
	}
	for _, m := range got {
		if m.Preview == nil || !m.Preview.Disabled || m.Mode != "HTML" {
			t.Errorf("%+v may show previews", m)
		}
	}
}

func TestATelegramMessageThatIsGoneIsPostedAfresh(t *testing.T) {
	s, sender := alertstest.NewTelegram(t), alerts.NewTelegram(client())
	opened, err := sender.Send(t.Context(), telegramChannel(s), "", incident())
	if err != nil {
		t.Fatal(err)
	}
	s.Delete(1)
	for _, ref := range []string{opened.Ref, "1", "x:y", ":"} {
		receipt, err := sender.Send(t.Context(), telegramChannel(s), ref, recovery())
		if err != nil || receipt.Ref == ref || receipt.Ref == "" {
			t.Errorf("ref %q: receipt %+v, error %v; want another message", ref, receipt, err)
		}
	}
}

func TestTelegramShowsRudeWordsAsTheyAre(t *testing.T) {
	s := alertstest.NewTelegram(t)
	m := incident()
	m.Title, m.Said, m.Meaning = rudeness, rudeness, rudeness
	if _, err := alerts.NewTelegram(client()).Send(t.Context(), telegramChannel(s), "", m); err != nil {
		t.Fatal(err)
	}
	got := s.Messages()[0].Text
	for _, effect := range []string{"@everyone", "@ada", "<b>b", "<at>", "://evil", "www.evil"} {
		if strings.Contains(got, effect) {
			t.Errorf("%q is in %s", effect, got)
		}
	}
	if shown := strings.ReplaceAll(alertstest.TelegramPlain(got), "\u2060", ""); !strings.Contains(shown, strings.TrimSpace(rudeness)) {
		t.Errorf("Telegram shows %q, want the words as they are", shown)
	}
}

func TestATelegramThatCannotReadMarkupGetsPlainText(t *testing.T) {
	s := alertstest.NewTelegram(t)
	s.Fail(1, alertstest.TelegramRefusal(400, "Bad Request: can't parse entities: Unsupported start tag \"x\" at byte offset 3", nil))
	if _, err := alerts.NewTelegram(client()).Send(t.Context(), telegramChannel(s), "", incident()); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages()[0]; got.Mode != "" || !strings.HasPrefix(got.Text, "🔴 Weather is down — tools/list: Internal error: database is locked\n"+publicURL) {
		t.Errorf("message = %+v, want plain text", got)
	}
}

func TestWhatTelegramRefuses(t *testing.T) {
	s := alertstest.NewTelegram(t)
	wait := func(seconds any) map[string]any { return map[string]any{"retry_after": seconds} }
	refusals{
		{"a token that was revoked", alertstest.TelegramRefusal(401, "Unauthorized", nil), true, 0, "the bot token is not valid"},
		{"a token that is none", alertstest.TelegramRefusal(404, "Not Found", nil), true, 0, "the bot token is not valid"},
		{"a bot that was kicked", alertstest.TelegramRefusal(403, "Forbidden: bot was kicked from the supergroup chat", nil), true, 0, "bot was kicked from the supergroup chat: the bot must be let into the chat"},
		{"a bot that was blocked", alertstest.TelegramRefusal(403, "Forbidden: bot was blocked by the user", nil), true, 0, "unblocked"},
		{"no such chat", alertstest.TelegramRefusal(400, "Bad Request: chat not found", nil), true, 0, "see that the chat id is right"},
		{"no such topic", alertstest.TelegramRefusal(400, "Bad Request: message thread not found", nil), true, 0, "the topic was deleted"},
		{"no right to write", alertstest.TelegramRefusal(400, "Bad Request: not enough rights to send text messages to the chat", nil), true, 0, "may not write here"},
		{"a group that moved", alertstest.TelegramRefusal(400, "Bad Request: group chat was upgraded to a supergroup chat", map[string]any{"migrate_to_chat_id": int64(-1009876543210)}), true, 0, "chat id is -1009876543210"},
		{"too many messages", alertstest.TelegramRefusal(429, "Too Many Requests: retry after 34", wait(34)), false, 34 * time.Second, "retry after 34"},
		{"far too many messages", alertstest.TelegramRefusal(429, "Too Many Requests", wait(1e9)), false, time.Hour, "429"},
		{"a wait that is no number", alertstest.TelegramRefusal(429, "Too Many Requests", wait("soon")), false, 0, "429"},
		{"its own trouble", alertstest.TelegramRefusal(500, "Internal Server Error: sent message was immediately deleted", nil), false, 0, "500"},
	}.run(t, alerts.NewTelegram(client()), s.Service, telegramChannel(s))
}

func TestATelegramChannelThatCannotBeRightIsNotTried(t *testing.T) {
	s := alertstest.NewTelegram(t)
	for _, token := range []string{"", "hello", "123:../../setWebhook?x=", "123456789:AA/../BB"} {
		c := telegramChannel(s)
		c.Secrets["bot_token"] = token
		_, err := alerts.NewTelegram(client()).Send(t.Context(), c, "", incident())
		checkRefusal(t, err, true, 0, "bot token")
	}
	c := telegramChannel(s)
	c.Settings["topic"] = "general"
	_, err := alerts.NewTelegram(client()).Send(t.Context(), c, "", incident())
	checkRefusal(t, err, true, 0, "topic is not a number")
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}
