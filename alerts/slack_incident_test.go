package alerts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// appChannel is a bot's whose buttons work.
func appChannel(s *alertstest.Slack) store.Channel {
	c := botChannel(s)
	c.Secrets["signing_secret"] = alertstest.SigningSecret
	return c
}

// told returns a message about an open incident that nobody has acknowledged.
func told(kind alerts.Kind, title, update string) alerts.Message {
	m := opening()
	m.Kind, m.Title, m.Update = kind, title, update
	m.ID, m.Incident, m.Severity, m.Open, m.Acts = "ntc_1", "inc_1", "down", true, true
	return m
}

func acknowledged() alerts.Message {
	m := told(alerts.KindUpdated, "Weather is down", "Acknowledged by ada.")
	m.Acts, m.Acted = false, true
	return m
}

func TestEveryKindFindsItsPlaceInSlack(t *testing.T) {
	announcement := acknowledged()
	announcement.Severity, announcement.Acted, announcement.Update = "notice", false, "We have found the cause."
	over := resolution()
	over.Incident = "inc_1"
	calm := told(alerts.KindUpdated, "Weather is degraded", "It was down before.")
	calm.Calm = true
	const why = "\ntools/list: Internal error: database is locked"

	tests := []struct {
		message alerts.Message
		bot     string // what a bot does that has a message of the incident
		lone    string // and one that has none
		webhook string // what a webhook does
		aloud   bool   // the reply is shown in the channel too
		reply   string
	}{
		{told(alerts.KindOpened, "Weather is down", ""), "update thread", "post", "webhook", true, "*🔴 Weather is down*" + why},
		{told(alerts.KindUpdated, "Weather is down", "It was degraded before."), "update thread", "post", "webhook", true, "*🔴 Weather is down*\nIt was degraded before." + why},
		{calm, "update thread", "post", "webhook", false, "*🔴 Weather is degraded*\nIt was down before." + why},
		{acknowledged(), "update thread", "", "", false, "*🔴 Weather is down*\nAcknowledged by ada."},
		{announcement, "update thread", "post", "webhook", true, "*🔴 Weather is down*\nWe have found the cause." + why},
		{told(alerts.KindReminder, "Weather is still down", "Down for 2 hours."), "update thread", "post", "webhook", true, "*🔴 Weather is still down*\nDown for 2 hours." + why},
		{told(alerts.KindEscalation, "Weather is down", "Nobody has acknowledged it."), "update thread", "post", "webhook", true, "*🔴 Weather is down*\nNobody has acknowledged it." + why},
		{told(alerts.KindFlapping, "Weather comes and goes", ""), "update thread", "post", "webhook", false, "*🔴 Weather comes and goes*" + why},
		{told(alerts.KindCalmed, "Weather has calmed", "No change for an hour."), "update thread", "post", "webhook", false, "*🔴 Weather has calmed*\nNo change for an hour." + why},
		{over, "update thread", "post", "webhook", false, "*🟢 Weather has recovered*\nRecovered after 12 minutes 4 seconds."},
		{alerts.Message{Kind: alerts.KindDigest, Symbol: "🔴", Title: "25 incidents"}, "post", "post", "webhook", false, ""},
		{alerts.Message{Kind: alerts.KindContract, Symbol: "🟠", Title: "Tools"}, "post", "post", "webhook", false, ""},
		{alerts.Message{Kind: alerts.KindBudget, Symbol: "🟠", Title: "Budget"}, "post", "post", "webhook", false, ""},
		{alerts.Message{Kind: alerts.KindService, Symbol: "🟡", Title: "Service"}, "post", "post", "webhook", false, ""},
		{alerts.NewTestMessage(store.Channel{Name: "ops"}, publicURL), "post", "post", "webhook", false, ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.message.Kind, " ", tt.message.Severity), func(t *testing.T) {
			opened, ref := openIncident(t)
			receipt, err := newSlack().Send(t.Context(), appChannel(opened), ref, tt.message)
			if err != nil || receipt.Passed || receipt.Ref == "" || strings.HasPrefix(tt.bot, "update") != (receipt.Ref == ref) {
				t.Errorf("a bot with a message of the incident: %+v, %v", receipt, err)
			}
			if got := strings.TrimPrefix(kinds(opened), "post "); got != tt.bot {
				t.Errorf("a bot with a message of the incident does %q, want %q", got, tt.bot)
			}
			if tt.reply != "" {
				reply := opened.Messages()[2]
				if reply.Text != tt.reply || reply.Form.Get("reply_broadcast") == "true" != tt.aloud {
					t.Errorf("reply = %q, in the channel: %q; want %q, %t", reply.Text, reply.Form.Get("reply_broadcast"), tt.reply, tt.aloud)
				}
			}

			for name, want := range map[string]string{"bot": tt.lone, "webhook": tt.webhook} {
				slack := alertstest.NewSlack(t)
				channel := appChannel(slack)
				if name == "webhook" {
					channel = webhookChannel(slack)
				}
				receipt, err := newSlack().Send(t.Context(), channel, "", tt.message)
				if got := kinds(slack); err != nil || got != want || receipt.Passed != (want == "") {
					t.Errorf("a %s without a message of the incident does %q: %+v, %v; want %q", name, got, receipt, err, want)
				}
			}
		})
	}
}

// openIncident returns a Slack in which a bot has posted an opening, and where.
func openIncident(t *testing.T) (*alertstest.Slack, string) {
	t.Helper()
	slack := alertstest.NewSlack(t)
	receipt, err := newSlack().Send(t.Context(), appChannel(slack), "", told(alerts.KindOpened, "Weather is down", ""))
	if err != nil {
		t.Fatal(err)
	}
	return slack, receipt.Ref
}

func TestTheMessageOfAnIncidentShowsHowItStands(t *testing.T) {
	slack, ref := openIncident(t)
	_, ts, _ := strings.Cut(ref, ":")
	steps := []struct {
		message alerts.Message
		want    []string
		gone    []string
	}{
		{
			told(alerts.KindReminder, "Weather is still down", "Down for 2 hours."),
			[]string{"🔴 *Weather is still down*", "Down for 2 hours.", "rollcall_acknowledge", "rollcall_snooze", `"inc_1"`}, nil,
		},
		{acknowledged(), []string{"Acknowledged by ada."}, []string{"rollcall_acknowledge", "Down for 2 hours."}},
		{resolution(), []string{"🟢 *Weather has recovered*", "Recovered after"}, []string{"🔴", "rollcall_acknowledge", "Acknowledged"}},
	}
	for _, step := range steps {
		if _, err := newSlack().Send(t.Context(), appChannel(slack), ref, step.message); err != nil {
			t.Fatal(err)
		}
		shown, _ := slack.Shown(ts)
		for _, want := range step.want {
			if !strings.Contains(shown.Blocks, want) {
				t.Errorf("after %s there is no %q in %s", step.message.Kind, want, shown.Blocks)
			}
		}
		for _, gone := range step.gone {
			if strings.Contains(shown.Blocks, gone) {
				t.Errorf("after %s there is still %q in %s", step.message.Kind, gone, shown.Blocks)
			}
		}
	}
	var thread []string
	for _, m := range slack.Thread(ts) {
		thread = append(thread, m.Text)
	}
	want := []string{
		"*🔴 Weather is still down*\nDown for 2 hours.\ntools/list: Internal error: database is locked",
		"*🔴 Weather is down*\nAcknowledged by ada.", "*🟢 Weather has recovered*\nRecovered after 12 minutes 4 seconds.",
	}
	if diff := cmp.Diff(thread, want); diff != "" {
		t.Errorf("thread (-got +want):\n%s", diff)
	}
}

func TestButtonsAreThereOnlyWhereAClickIsUnderstood(t *testing.T) {
	open := told(alerts.KindOpened, "Weather is down", "")
	over, taken, strange := open, open, open
	over.Open, taken.Acts, strange.Incident = false, false, "<!channel>\"&"
	tests := []struct {
		name    string
		channel func(*alertstest.Slack) store.Channel
		message alerts.Message
		want    bool
	}{
		{"an open incident", appChannel, open, true},
		{"an app whose signing secret is not known", botChannel, open, false},
		{"a webhook", webhookChannel, open, false},
		{"an incident that is over", appChannel, over, false},
		{"an incident that somebody has acknowledged", appChannel, taken, false},
		{"an id that is none", appChannel, strange, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			slack := alertstest.NewSlack(t)
			if _, err := newSlack().Send(t.Context(), tt.channel(slack), "", tt.message); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(slack.Messages()[0].Blocks, `"actions"`); got != tt.want {
				t.Errorf("has buttons: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAnUpdateThatFindsNoMessageIsPostedAfreshWithItsButtons(t *testing.T) {
	slack, ref := openIncident(t)
	_, ts, _ := strings.Cut(ref, ":")
	slack.Delete(ts)
	receipt, err := newSlack().Send(t.Context(), appChannel(slack), ref, told(alerts.KindReminder, "Weather is still down", ""))
	if err != nil || receipt.Ref == ref || kinds(slack) != "post post" || !strings.Contains(slack.Messages()[1].Blocks, "rollcall_snooze") {
		t.Errorf("%+v, %v, messages %s; want another post with buttons", receipt, err, kinds(slack))
	}
}

func TestAPassingErrorOfAnUpdateIsPassing(t *testing.T) {
	slack, ref := openIncident(t)
	slack.SetFaultOn(alertstest.Update, 429, 7*time.Second, `{"ok":false,"error":"ratelimited"}`)
	_, err := newSlack().Send(t.Context(), appChannel(slack), ref, acknowledged())
	if e, ok := errors.AsType[*alerts.RetryError](err); !ok || e.After != 7*time.Second || kinds(slack) != "post" {
		t.Errorf("error %v, messages %s; want to be asked to wait, and nothing posted", err, kinds(slack))
	}
}

func TestTheMostThatAMessageCanSayFitsIntoSlack(t *testing.T) {
	for name, evil := range map[string]string{
		"escapes":  strings.Repeat("&", 4000),
		"mentions": strings.Repeat("<!channel> @here `*~", 200),
		"wide":     strings.Repeat("警", 4000),
	} {
		t.Run(name, func(t *testing.T) {
			m := told(alerts.KindOpened, evil, evil)
			m.Meaning, m.Outcome, m.Said, m.URL, m.Step, m.Class, m.Code, m.Location = evil, evil, evil, evil, evil, evil, evil, evil
			m.SeenFrom, m.Dependents = slices.Repeat([]string{evil}, 100), slices.Repeat([]string{evil}, 100)
			m.Changes = slices.Repeat([]string{evil}, 100)
			m.Items = slices.Repeat([]alerts.Item{{Symbol: "🔴", Title: evil, Said: evil, Link: "https://rollcall.example/" + evil}}, 100)
			m.Link = "https://rollcall.example/" + evil

			slack := alertstest.NewSlack(t) // which refuses what breaks Slack's limits
			if _, err := newSlack().Send(t.Context(), appChannel(slack), "", m); err != nil || slack.Requests() != 1 {
				t.Fatalf("after %d requests: %v", slack.Requests(), err)
			}
			sent := slack.Messages()[0]
			if n := utf8.RuneCountInString(sent.Text); n > 12000 {
				t.Errorf("text of %d characters", n)
			}
			for _, bad := range []string{"<!channel", "@here", `\u003c!channel`} {
				if strings.Contains(sent.Text+sent.Blocks, bad) {
					t.Errorf("%q reached Slack", bad)
				}
			}
		})
	}
}

// Opened by a server that says as much as it may, in characters that take the most bytes on the way.
func TestAClickOnALongMessageFitsIntoARequest(t *testing.T) {
	wide := strings.Repeat("警", 4000)
	i, e := outage(), weather()
	e.Name, e.URL = wide, "https://example.com/"+wide
	i.Cause = probe.Failure{Step: wide, Class: probe.Class(wide), Code: 1, Message: wide[:probe.MaxMessage/3*3]}
	m := alerts.NewMessage(delivery(i, e, store.NoticeOpened), publicURL)
	m.Incident, m.Open, m.Acts = "inc_1", true, true
	for _, template := range []string{"", "{{.Text}}{{.Text}}{{.Text}}"} {
		slack := alertstest.NewSlack(t)
		channel := appChannel(slack)
		channel.Settings["template"] = template
		if _, err := newSlack().Send(t.Context(), channel, "", m); err != nil {
			t.Fatal(err)
		}
		if body := slack.ClickBody(t, slack.Messages()[0].TS, "rollcall_snooze"); len(body) > alerts.MaxSlackBody*3/4 {
			t.Errorf("a click on a message with the template %q takes %d bytes", template, len(body))
		}
	}
}

func TestADigestListsWhatPeopleReadAndCountsTheRest(t *testing.T) {
	m := alerts.Message{Kind: alerts.KindDigest, Symbol: "🔴", Title: "45 incidents in a minute", Link: publicURL}
	for n := range 45 {
		m.Items = append(m.Items, alerts.Item{
			Symbol: "🔴", Title: fmt.Sprintf("Weather %d is down", n), Said: "database <locked> *now*", Link: fmt.Sprintf("%s/incidents/inc_%d", publicURL, n),
		})
	}
	slack := alertstest.NewSlack(t)
	if _, err := newSlack().Send(t.Context(), appChannel(slack), "", m); err != nil {
		t.Fatal(err)
	}
	var blocks []struct{ Text struct{ Text string } }
	if err := json.Unmarshal([]byte(slack.Messages()[0].Blocks), &blocks); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, b := range blocks[1:] {
		lines = append(lines, strings.Split(b.Text.Text, "\n")...)
	}
	listed := lines[:31]
	first := "• 🔴 <https://rollcall.example/monitor/incidents/inc_0|Weather 0 is down>: database &lt;locked&gt; ∗now∗"
	if listed[0] != first || listed[30] != "… and 15 more" {
		t.Errorf("lines = %q and %q, want %q and 15 more", listed[0], listed[30], first)
	}
}

func TestATemplateReplacesTheWordsAndKeepsTheButtons(t *testing.T) {
	tests := []struct {
		name    string
		channel func(*alertstest.Slack) store.Channel
		blocks  bool
	}{
		{"a bot with buttons", appChannel, true},
		{"a bot without", botChannel, false},
		{"a webhook", webhookChannel, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			slack := alertstest.NewSlack(t)
			channel := tt.channel(slack)
			if channel.Settings == nil {
				channel.Settings = map[string]string{}
			}
			channel.Settings["template"] = "*{{.Title}}* says {{.Said}}"
			m := told(alerts.KindOpened, "Weather is down", "")
			m.Said = "<!channel> & @here"
			if _, err := newSlack().Send(t.Context(), channel, "", m); err != nil {
				t.Fatal(err)
			}
			got := slack.Messages()[0]
			if want := "*Weather is down* says &lt;!channel&gt; &amp; @\u2060here"; got.Text != want {
				t.Errorf("text = %q, want %q", got.Text, want)
			}
			if has := strings.Contains(got.Blocks, "rollcall_acknowledge"); has != tt.blocks || (got.Blocks != "") != tt.blocks {
				t.Errorf("blocks = %s, want buttons: %t", got.Blocks, tt.blocks)
			}
		})
	}
}

func TestATemplateThatFailsLeavesOurWords(t *testing.T) {
	slack := alertstest.NewSlack(t)
	channel := botChannel(slack)
	channel.Settings["template"] = "{{index .Changes 5}}"
	if _, err := newSlack().Send(t.Context(), channel, "", opening()); err != nil || !strings.Contains(slack.Messages()[0].Blocks, "Weather is down") {
		t.Errorf("error %v, messages %+v; want our own words", err, slack.Messages())
	}
}
