package alerts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// client reaches servers on loopback.
func client() *http.Client { return alerts.NewClient(probe.Egress{Any: true}.DialContext) }

// incident is the opening of one as the dispatcher words it.
func incident() alerts.Message {
	m := opening()
	m.ID, m.Incident, m.Severity, m.Open = "ntc_1", "inc_1", "down", true
	m.SeenFrom, m.Dependents = []string{"fra", "iad"}, []string{"Travel"}
	return m
}

func recovery() alerts.Message {
	m := resolution()
	m.ID, m.Incident, m.Severity = "ntc_2", "inc_1", "down"
	return m
}

// word returns a message of a kind about the open incident.
func word(kind alerts.Kind, title, update string) alerts.Message {
	m := incident()
	m.ID, m.Kind, m.Title, m.Update = "ntc_3", kind, title, update
	return m
}

func acknowledgement() alerts.Message {
	m := word(alerts.KindUpdated, "Weather is down", "Acknowledged by ada.")
	m.Acted, m.Act = true, "acknowledged"
	return m
}

func comment() alerts.Message {
	m := word(alerts.KindUpdated, "Weather is down", "ada says: on it.")
	m.Acted, m.Act = true, "commented"
	return m
}

func contractChange() alerts.Message {
	return alerts.Message{
		Kind: alerts.KindContract, ID: "ntc_4", Symbol: "🟠", Title: "Weather: the tool list changed", Endpoint: "Weather",
		URL: "https://weather.example/mcp", Changes: []string{"breaking: forecast: the tool is gone"}, Link: publicURL + "/endpoints/weather",
	}
}

func trial() alerts.Message {
	m := alerts.NewTestMessage(store.Channel{Name: "ops"}, publicURL)
	m.ID = "ntc_5"
	return m
}

// rudeness is everything that a text could try on one of the services.
const rudeness = "@everyone @channel @here @ada <!channel> <@123> <https://evil.example|click> [click](https://evil.example) " +
	"**bold** _it_ ~~no~~ `code` ``` # <b>b</b> & &amp; <at>ada</at> #tag $x$ ![i](https://evil.example/i.png) www.evil.example שלום "

// rude is an incident in which every text is hostile and as long as a text gets, with a digest's and a contract's lists.
func rude() alerts.Message { return filled(rudeness, "&<é🔥\\_*") }

// filled is such an incident, whose texts begin in one way and go on in another.
func filled(begin, filler string) alerts.Message {
	m := incident()
	long := func(n int) string { return string([]rune(begin + strings.Repeat(filler, n))[:n]) }
	m.Title, m.Endpoint, m.Step, m.Said, m.Class = long(400), long(200), long(200), long(500), long(200)
	m.Location, m.URL, m.Update, m.Meaning, m.Outcome = long(200), long(300), long(500), long(500), long(300)
	for range 50 {
		m.SeenFrom = append(m.SeenFrom, long(100))
		m.Dependents = append(m.Dependents, long(200))
		m.Changes = append(m.Changes, long(140))
		m.Items = append(m.Items, alerts.Item{Symbol: "🔴", Title: long(200), Said: long(200), Link: publicURL})
	}
	return m
}

// refusals is a table of what a service answers and what comes of it.
type refusals []struct {
	name      string
	reply     alertstest.Reply
	permanent bool
	wait      time.Duration
	want      string // in the error
}

// run has a sender meet each refusal.
func (table refusals) run(t *testing.T, sender alerts.Sender, service *alertstest.Service, c store.Channel) {
	t.Helper()
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			service.Fail(-1, tt.reply)
			_, err := sender.Send(t.Context(), c, "", incident())
			checkRefusal(t, err, tt.permanent, tt.wait, tt.want)
			checkHoldsNoSecret(t, err, c)
		})
	}
}

func checkRefusal(t *testing.T, err error, permanent bool, wait time.Duration, want string) {
	t.Helper()
	if err == nil {
		t.Fatal("sent")
	}
	if _, got := errors.AsType[*alerts.PermanentError](err); got != permanent {
		t.Errorf("permanent = %t, want %t: %v", got, permanent, err)
	}
	retry, ok := errors.AsType[*alerts.RetryError](err)
	if ok != (wait > 0) || ok && retry.After != wait {
		t.Errorf("error %v does not say to wait for %s", err, wait)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error = %q, want %q in it", err, want)
	}
	if utf8.RuneCountInString(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x00\u202e") {
		t.Errorf("error %q is not a line of a bounded length", err)
	}
}

// checkHoldsNoSecret also looks for the parts of a secret by which it could be used.
func checkHoldsNoSecret(t *testing.T, err error, c store.Channel) {
	t.Helper()
	for name, secret := range c.Secrets {
		parts := []string{secret}
		if _, path, ok := strings.Cut(secret, "//"); ok {
			parts = append(parts, path[strings.Index(path, "/")+1:], path[strings.LastIndexAny(path, "/=")+1:])
		}
		for _, part := range parts {
			if strings.Contains(fmt.Sprint(err), part) {
				t.Errorf("error %q holds %q of the %s", err, part, name)
			}
		}
	}
}

// FuzzAnswers has every sender read an answer that a stranger may give. Whatever it is, what comes of it is a short line
// without secrets, or a receipt.
func FuzzAnswers(f *testing.F) {
	f.Add(200, "", "ok")
	f.Add(202, "", `{"status":"success","result":"Request will be processed","requestId":"r"}`)
	f.Add(200, "", `{"ok":true,"id":"1","result":{"message_id":1,"chat":{"id":-1}}}`)
	f.Add(400, "", `{"ok":false,"description":"Bad Request: can't parse entities","parameters":{"migrate_to_chat_id":-1}}`)
	f.Add(404, "", `{"id":"web.incoming_webhook.channel.app_error","message":"x","code":10008,"error":{"code":"WorkflowNotFound"}}`)
	f.Add(429, "1e9", `{"retry_after":1e308,"parameters":{"retry_after":-1},"errors":["a"],"error":"\u202e"}`)
	f.Fuzz(func(t *testing.T, status int, retryAfter, body string) {
		answers := &http.Client{Transport: answering(func() *http.Response {
			return &http.Response{
				StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}, "X-Ratelimit-Period-In-Sec": {retryAfter}},
				Body: io.NopCloser(strings.NewReader(body)),
			}
		})}
		address := map[string]string{"webhook_url": "https://example.com/hooks/aBcDeFgHiJkLmNoP", "topic": "rollcall-topic"}
		address["bot_token"], address["api_key"], address["routing_key"] = alertstest.TelegramToken, alertstest.OpsgenieKey, alertstest.PagerDutyKey
		c := store.Channel{Settings: map[string]string{"chat_id": "1"}, Secrets: address}
		for name, sender := range map[string]alerts.Sender{
			"pagerduty": alerts.NewPagerDuty(answers), "opsgenie": alerts.NewOpsgenie(answers), "discord": alerts.NewDiscord(answers),
			"teams": alerts.NewTeams(answers), "telegram": alerts.NewTelegram(answers), "ntfy": alerts.NewNtfy(answers),
			"mattermost": alerts.NewMattermost(answers),
		} {
			for _, m := range []alerts.Message{incident(), recovery()} {
				_, err := sender.Send(t.Context(), c, "1:1", m)
				checkHoldsNoSecret(t, err, c)
				if text := fmt.Sprint(err); utf8.RuneCountInString(text) > 500 || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\u202e") {
					t.Errorf("%s: error %q is not a line of a bounded length", name, text)
				}
				if retry, ok := errors.AsType[*alerts.RetryError](err); ok && (retry.After <= 0 || retry.After > time.Hour) {
					t.Errorf("%s waits for %s", name, retry.After)
				}
			}
		}
	})
}

type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }

// channels are one of each type, with the server that it leads to.
func channels(t *testing.T) map[string]struct {
	sender  alerts.Sender
	service *alertstest.Service
	channel store.Channel
} {
	type row = struct {
		sender  alerts.Sender
		service *alertstest.Service
		channel store.Channel
	}
	pagerDuty, opsgenie, discord := alertstest.NewPagerDuty(t), alertstest.NewOpsgenie(t), alertstest.NewDiscord(t)
	teams, telegram, ntfy, mattermost := alertstest.NewTeams(t), alertstest.NewTelegram(t), alertstest.NewNtfy(t), alertstest.NewMattermost(t)
	return map[string]row{
		"PagerDuty":  {alerts.NewPagerDuty(client()), pagerDuty.Service, pagerDutyChannel(pagerDuty)},
		"Opsgenie":   {alerts.NewOpsgenie(client()), opsgenie.Service, opsgenieChannel(opsgenie)},
		"Discord":    {alerts.NewDiscord(client()), discord.Service, discordChannel(discord)},
		"Teams":      {alerts.NewTeams(client()), teams.Service, teamsChannel(teams)},
		"Telegram":   {alerts.NewTelegram(client()), telegram.Service, telegramChannel(telegram)},
		"ntfy":       {alerts.NewNtfy(client()), ntfy.Service, ntfyChannel(ntfy)},
		"Mattermost": {alerts.NewMattermost(client()), mattermost.Service, mattermostChannel(mattermost)},
	}
}

// TestEveryServiceTakesTheRudestMessageOfEveryKind sends what is as long as a text gets, in whatever counts the most, to servers that
// refuse what breaks the limits of the real ones.
func TestEveryServiceTakesTheRudestMessageOfEveryKind(t *testing.T) {
	kinds := []alerts.Kind{
		alerts.KindOpened, alerts.KindUpdated, alerts.KindReminder, alerts.KindEscalation, alerts.KindFlapping, alerts.KindCalmed,
		alerts.KindResolved, alerts.KindDigest, alerts.KindContract, alerts.KindBudget, alerts.KindService, alerts.KindTest,
	}
	for name, row := range channels(t) {
		t.Run(name, func(t *testing.T) {
			for filler, worst := range map[string]alerts.Message{
				"rude": rude(), "two code units": filled("", "🔥"), "three bytes": filled("", "警"), "escapes": filled("", "&"),
				"more escapes": filled("", `\_`), "quotes": filled("", `"`), "families": filled("", "👩‍👩‍👧‍👦"), "accents": filled("é", "\u0301"),
			} {
				ref := ""
				for _, kind := range kinds {
					m := worst
					m.Kind, m.Title = kind, string(kind)+m.Title
					receipt, err := row.sender.Send(t.Context(), row.channel, ref, m)
					if err != nil || receipt.Passed && kind != alerts.KindCalmed {
						t.Errorf("%s, %s: receipt %+v, error %v", filler, kind, receipt, err)
					}
					if kind == alerts.KindOpened {
						ref = receipt.Ref
					}
				}
			}
			for _, r := range row.service.Requests() {
				if r.Status > 299 || !utf8.Valid(r.Body) || strings.Contains(string(r.Body), `\ufffd`) {
					t.Errorf("%s %s answered %d: %.300s", r.Method, r.Path, r.Status, r.Body)
				}
			}
		})
	}
}

func TestAMessageWithNothingButATitleIsTaken(t *testing.T) {
	for name, row := range channels(t) {
		if _, err := row.sender.Send(t.Context(), row.channel, "", alerts.Message{Kind: alerts.KindService, ID: "ntc_9", Title: "Hello"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAServiceThatAnswersOddlyIsPassingAndItsWordsHoldNoSecret(t *testing.T) {
	for name, row := range channels(t) {
		var echo strings.Builder
		for _, secret := range row.channel.Secrets {
			echo.WriteString(secret + " ")
		}
		words := echo.String() + "\u202Etxt.exe\x00\n" + strings.Repeat("long ", 500)
		quotes := []any{
			map[string]any{"message": words, "error": words, "description": words, "id": "web.incoming_webhook.parse.app_error", "errors": []string{words}},
			map[string]any{"message": words, "error": map[string]string{"code": words, "message": words}, "errors": map[string]string{"x": words}},
			[]string{words}, words, 7, nil,
		}
		t.Run(name, func(t *testing.T) {
			for _, quote := range quotes {
				body := fmt.Sprint(quote)
				if data, err := jsonOf(quote); err == nil {
					body = data
				}
				for _, status := range []int{503, 429, 400, 302} {
					row.service.Fail(-1, alertstest.Reply{Status: status, Body: body})
					_, err := row.sender.Send(t.Context(), row.channel, "", incident())
					checkRefusal(t, err, status < 429, 0, fmt.Sprintf("HTTP %d", status))
					checkHoldsNoSecret(t, err, row.channel)
				}
			}
			row.service.Fail(-1, alertstest.Reply{Status: 200, Body: "<!doctype html><title>Sign in</title>"})
			_, err := row.sender.Send(t.Context(), row.channel, "", incident())
			checkRefusal(t, err, true, 0, "web page")
			row.service.Fail(-1, alertstest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}})
			_, err = row.sender.Send(t.Context(), row.channel, "", incident())
			checkRefusal(t, err, false, 7*time.Second, "429 Too Many Requests")
		})
	}
}

func TestAnAnswerOfSuccessThatIsNotTheServicesOwnIsPassing(t *testing.T) {
	for name, row := range channels(t) {
		if name == "Teams" {
			continue // a workflow may answer whatever its owner made it answer
		}
		for _, body := range []string{"", "{}", `{"ok":tr`, "[]", `{"ok":true,"id":7}`} {
			row.service.Fail(-1, alertstest.Reply{Status: 200, Body: body})
			_, err := row.sender.Send(t.Context(), row.channel, "", incident())
			checkRefusal(t, err, false, 0, "not one that "+name+" gives")
		}
	}
}

func TestAServiceThatCannotBeReachedIsPassingAndKeepsItsAddressSecret(t *testing.T) {
	nowhere := alerts.NewClient(probe.Egress{}.DialContext) // which dials nothing on loopback
	senders := map[string]alerts.Sender{
		"PagerDuty": alerts.NewPagerDuty(nowhere), "Opsgenie": alerts.NewOpsgenie(nowhere), "Discord": alerts.NewDiscord(nowhere),
		"Teams": alerts.NewTeams(nowhere), "Telegram": alerts.NewTelegram(nowhere), "ntfy": alerts.NewNtfy(nowhere),
		"Mattermost": alerts.NewMattermost(nowhere),
	}
	for name, row := range channels(t) {
		_, err := senders[name].Send(t.Context(), row.channel, "", incident())
		checkRefusal(t, err, false, 0, name+" cannot be reached: the address 127.0.0.1 lies in")
		checkHoldsNoSecret(t, err, row.channel)
	}
}

func TestATemplateReplacesTheWordsAndIsEscapedLikeThem(t *testing.T) {
	for name, row := range channels(t) {
		row.channel.Settings["template"] = "OWN {{.Title}}\n<b>{{.Said}}</b> @everyone"
		if _, err := row.sender.Send(t.Context(), row.channel, "", incident()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sent := string(row.service.Accepted()[0].Body)
		if !strings.Contains(sent, "OWN Weather is down") {
			t.Errorf("%s got %s, want the words of the template", name, sent)
		}
		row.channel.Settings["template"] = "{{.Nonsense}}"
		if _, err := row.sender.Send(t.Context(), row.channel, "", incident()); err != nil {
			t.Errorf("%s with a broken template: %v, want our words", name, err)
		}
	}
}

func TestWordOfAnActIsPassedOverWhereAMessageCannotBeChanged(t *testing.T) {
	for name, row := range channels(t) {
		receipt, err := row.sender.Send(t.Context(), row.channel, "", comment())
		wanted := 0
		if name == "Opsgenie" {
			wanted = 1 // asks whether there is an alert to put the note on
		}
		if err != nil || !receipt.Passed || len(row.service.Requests()) != wanted {
			t.Errorf("%s: receipt %+v, error %v, %d requests; want it passed over", name, receipt, err, len(row.service.Requests()))
		}
	}
}

// jsonOf returns v as JSON.
func jsonOf(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}

// TestAChangeForNoWorseMakesNoSound holds where a service has a way to be quiet that a change of the cause, or for the better, takes it, and
// that one for the worse does not.
func TestAChangeForNoWorseMakesNoSound(t *testing.T) {
	said := map[string]alerts.Message{}
	for _, s := range sayings(t) {
		said[s.name] = s.message
	}
	quiet := map[string]string{"Discord": `"flags":4100`, "Telegram": `"disable_notification":true`, "ntfy": `"priority":2`}
	rows := channels(t)
	for service, mark := range quiet {
		row := rows[service]
		opened, err := row.sender.Send(t.Context(), row.channel, "", said["opened"])
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"another cause": true, "got better": true, "got worse": false, "reopened": false, "reminder": false} {
			before := len(row.service.Requests())
			if _, err := row.sender.Send(t.Context(), row.channel, opened.Ref, said[name]); err != nil {
				t.Fatal(err)
			}
			sent := row.service.Requests()[before:]
			if got := strings.Contains(string(sent[len(sent)-1].Body), mark); got != want {
				t.Errorf("%s makes no sound in %s: %t, want %t: %s", name, service, got, want, sent[len(sent)-1].Body)
			}
		}
	}
}

// TestWhatOpensAgainTurnsRedWhereItIsAndIsSaid holds that chats tell one story of an incident: its message, edited, and a word behind it.
func TestWhatOpensAgainTurnsRedWhereItIsAndIsSaid(t *testing.T) {
	rows := channels(t)
	again := word(alerts.KindOpened, "Weather is down", "Opened again by ada: not yet.")
	again.Act = "reopened"
	for service, how := range map[string]string{"Discord": "PATCH POST", "Telegram": "POST POST"} {
		row, ref := rows[service], ""
		var sent []alertstest.Request
		for _, m := range []alerts.Message{incident(), recovery(), again} {
			before := len(row.service.Requests())
			receipt, err := row.sender.Send(t.Context(), row.channel, ref, m)
			if err != nil || ref != "" && receipt.Ref != ref {
				t.Fatalf("%s: receipt %+v, error %v", service, receipt, err)
			}
			ref, sent = receipt.Ref, row.service.Requests()[before:]
		}
		var methods []string
		for _, r := range sent {
			methods = append(methods, r.Method)
			if body := string(r.Body); !strings.Contains(body, "🔴 Weather is down") || !strings.Contains(body, "Opened again by ada: not yet.") {
				t.Errorf("%s is sent %s", service, body)
			}
		}
		if got := strings.Join(methods, " "); got != how {
			t.Errorf("%s is sent %s, want %s", service, got, how)
		}
	}
}
