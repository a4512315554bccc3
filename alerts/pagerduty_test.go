package alerts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func pagerDutyChannel(p *alertstest.PagerDuty) store.Channel {
	return store.Channel{
		ID: "ch_1", Name: "on call", Type: store.ChannelPagerDuty,
		Settings: map[string]string{"api_url": p.URL() + "/"}, Secrets: map[string]string{"routing_key": alertstest.PagerDutyKey},
	}
}

func TestAnIncidentIsOneAlertInPagerDuty(t *testing.T) {
	p, sender := alertstest.NewPagerDuty(t), alerts.NewPagerDuty(client())
	messages := []alerts.Message{
		incident(), incident(), word(alerts.KindReminder, "Weather is still down", ""), word(alerts.KindEscalation, "Weather is still down", ""),
		word(alerts.KindFlapping, "Weather comes and goes", ""), word(alerts.KindCalmed, "Weather no longer comes and goes", ""),
	}
	for _, m := range messages {
		receipt, err := sender.Send(t.Context(), pagerDutyChannel(p), "", m)
		if err != nil || receipt.Ref != "inc_1" && !receipt.Passed {
			t.Fatalf("%s: receipt %+v, error %v", m.Kind, receipt, err)
		}
	}
	if _, err := sender.Send(t.Context(), pagerDutyChannel(p), "inc_1", acknowledgement()); err != nil {
		t.Fatal(err)
	}
	if events := p.Events(); events[len(events)-1].Action != "acknowledge" || events[len(events)-1].Payload != nil {
		t.Errorf("event = %+v, want an acknowledgement", events[len(events)-1])
	}
	if p.Open() != 1 {
		t.Errorf("%d alerts are open, want one", p.Open())
	}
	first := p.Events()[0]
	if first.DedupKey != "inc_1" || first.Client != "Rollcall" || len(first.Links) != 1 || first.ClientURL == "" {
		t.Errorf("event = %+v, want the incident's key and a link", first)
	}
	payload := first.Payload
	if payload.Summary != "Weather is down — tools/list: Internal error: database is locked" || payload.Severity != "critical" || payload.Source != "weather.example" ||
		payload.Component != "Weather" || payload.Class != "rpc_error" || payload.Timestamp == "" {
		t.Errorf("payload = %+v", payload)
	}
	if payload.Details["Error"] != "Internal error: database is locked" || payload.Details["Seen from"] != "fra, iad" {
		t.Errorf("details = %v", payload.Details)
	}
	for range 2 {
		if _, err := sender.Send(t.Context(), pagerDutyChannel(p), "inc_1", recovery()); err != nil {
			t.Fatal(err)
		}
	}
	if p.Open() != 0 {
		t.Errorf("%d alerts are open after the recovery, want none", p.Open())
	}
}

func TestATestLeavesNobodyPaged(t *testing.T) {
	p := alertstest.NewPagerDuty(t)
	if _, err := alerts.NewPagerDuty(client()).Send(t.Context(), pagerDutyChannel(p), "", trial()); err != nil {
		t.Fatal(err)
	}
	events := p.Events()
	if len(events) != 2 || events[0].Action != "trigger" || events[1].Action != "resolve" || p.Open() != 0 {
		t.Errorf("events = %+v, want a trigger and its end", events)
	}
}

func TestHowSevereAMessageIsForPagerDuty(t *testing.T) {
	tests := []struct {
		kind                   alerts.Kind
		severity, symbol, want string
	}{
		{alerts.KindOpened, "down", "🔴", "critical"},
		{alerts.KindOpened, "gated", "🔴", "error"},
		{alerts.KindOpened, "degraded", "🟡", "warning"},
		{alerts.KindOpened, "unknown", "🟡", "warning"},
		{alerts.KindOpened, "", "🔴", "critical"},
		{alerts.KindDigest, "", "🔴", "critical"},
		{alerts.KindContract, "", "🟠", "warning"},
		{alerts.KindContract, "", "🔵", "info"},
		{alerts.KindService, "", "🟡", "warning"},
		{alerts.KindService, "", "🔵", "info"},
		{alerts.KindBudget, "notice", "🟠", "info"},
		{alerts.KindTest, "", "🔔", "info"},
	}
	for _, tt := range tests {
		p := alertstest.NewPagerDuty(t)
		m := alerts.Message{Kind: tt.kind, ID: "ntc_1", Severity: tt.severity, Symbol: tt.symbol, Title: "Something", Open: true}
		if _, err := alerts.NewPagerDuty(client()).Send(t.Context(), pagerDutyChannel(p), "", m); err != nil {
			t.Fatal(err)
		}
		if got := p.Events()[0].Payload.Severity; got != tt.want {
			t.Errorf("%s of severity %q is %s, want %s", tt.kind, tt.severity, got, tt.want)
		}
	}
}

func TestWhatPagerDutyRefuses(t *testing.T) {
	p := alertstest.NewPagerDuty(t)
	refusals{
		{"an invalid event", alertstest.Reply{Status: 400, Body: `{"status":"invalid event","message":"Event object is invalid","errors":["Length of 'routing_key' is incorrect (should be 32 characters)"]}`}, true, 0, "integration key"},
		{"an unreadable event", alertstest.Reply{Status: 400, Body: `{"status":"Unrecognized object","message":"Event object format is unrecognized","errors":["JSON parse error"]}`}, true, 0, "format is unrecognized: JSON parse error"},
		{"another server", alertstest.Reply{Status: 404, Body: `Not Found`}, true, 0, "404 Not Found"},
		{"too many events", alertstest.Reply{Status: 429}, false, 0, "429"},
		{"too many events, and for how long", alertstest.Reply{Status: 429, Header: map[string]string{"Retry-After": "30"}}, false, 30 * time.Second, "429"},
		{"its own trouble", alertstest.Reply{Status: 500, Body: `{"status":"error","message":"Internal Server Error"}`}, false, 0, "Internal Server Error"},
		{"a success that is none", alertstest.Reply{Status: 202, Body: `{"status":"throttled"}`}, false, 0, "not one that PagerDuty gives"},
	}.run(t, alerts.NewPagerDuty(client()), p.Service, pagerDutyChannel(p))
}

func TestAWrongIntegrationKeyIsSaidByTheServiceItself(t *testing.T) {
	p := alertstest.NewPagerDuty(t)
	c := pagerDutyChannel(p)
	c.Secrets["routing_key"] = strings.Repeat("f", 32)
	_, err := alerts.NewPagerDuty(client()).Send(t.Context(), c, "", incident())
	checkRefusal(t, err, true, 0, "Invalid routing key: copy the integration key")
}
