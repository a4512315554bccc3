package alerts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func opsgenieChannel(o *alertstest.Opsgenie) store.Channel {
	return store.Channel{
		ID: "ch_1", Name: "on call", Type: store.ChannelOpsgenie,
		Settings: map[string]string{"api_url": o.URL()}, Secrets: map[string]string{"api_key": alertstest.OpsgenieKey},
	}
}

func TestAnIncidentIsOneAlertInOpsgenie(t *testing.T) {
	o, sender := alertstest.NewOpsgenie(t), alerts.NewOpsgenie(client())
	for _, m := range []alerts.Message{incident(), word(alerts.KindReminder, "Weather is still down", ""), acknowledgement(), recovery()} {
		receipt, err := sender.Send(t.Context(), opsgenieChannel(o), "", m)
		if err != nil || receipt.Ref != "inc_1" || receipt.Passed {
			t.Fatalf("%s: receipt %+v, error %v", m.Kind, receipt, err)
		}
	}
	got := o.Alert("inc_1")
	if got.Message != "Weather is down — tools/list: Internal error: database is locked" || got.Priority != "P1" || got.Entity != "Weather" || got.Source != "Rollcall" ||
		got.Count != 2 || !got.Acked || !got.Closed || got.Details["Error"] != "Internal error: database is locked" || !slices.Contains(got.Tags, "rpc_error") {
		t.Errorf("alert = %+v", got)
	}
	want := []string{"🔴 Weather is down — Acknowledged by ada.", "🟢 Weather has recovered — Recovered after 12 minutes 4 seconds."}
	if diff := cmp.Diff(got.Notes, want); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
}

func TestAnIncidentThatGetsWorseGetsAnotherPriority(t *testing.T) {
	o, sender := alertstest.NewOpsgenie(t), alerts.NewOpsgenie(client())
	degraded := incident()
	degraded.Severity = "degraded"
	for _, m := range []alerts.Message{degraded, word(alerts.KindUpdated, "Weather is down", "It was degraded until here.")} {
		if _, err := sender.Send(t.Context(), opsgenieChannel(o), "", m); err != nil {
			t.Fatal(err)
		}
	}
	if got := o.Alert("inc_1"); got.Priority != "P1" || got.Acked || len(got.Notes) != 1 {
		t.Errorf("alert = %+v, want P1 and a note", got)
	}
}

func TestAnAlertThatIsNotThereNeedsNoClosing(t *testing.T) {
	o := alertstest.NewOpsgenie(t)
	receipt, err := alerts.NewOpsgenie(client()).Send(t.Context(), opsgenieChannel(o), "", recovery())
	if err != nil || receipt.Passed {
		t.Errorf("receipt %+v, error %v; want it done", receipt, err)
	}
	if got := o.Requests()[0].Status; got != 404 {
		t.Errorf("Opsgenie answered %d, want 404", got)
	}
	o.Fail(1, alertstest.Reply{Status: 404, Body: "<html>"})
	_, err = alerts.NewOpsgenie(client()).Send(t.Context(), opsgenieChannel(o), "", recovery())
	checkRefusal(t, err, true, 0, "leads to another server")
}

func TestATestLeavesNoOpenAlert(t *testing.T) {
	o := alertstest.NewOpsgenie(t)
	if _, err := alerts.NewOpsgenie(client()).Send(t.Context(), opsgenieChannel(o), "", trial()); err != nil {
		t.Fatal(err)
	}
	if got := o.Alert("ntc_5"); !got.Closed || got.Priority != "P5" {
		t.Errorf("alert = %+v, want a closed one of P5", got)
	}
}

func TestWhatOpsgenieRefuses(t *testing.T) {
	o := alertstest.NewOpsgenie(t)
	refusals{
		{"a wrong key", alertstest.Reply{Status: 401, Body: `{"message":"Could not authenticate","took":0.001,"requestId":"r"}`}, true, 0, "Could not authenticate: copy the API key"},
		{"a key without rights", alertstest.Reply{Status: 403, Body: `{"message":"You are not authorized to access to this api.","took":0.001,"requestId":"r"}`}, true, 0, "may create and update alerts"},
		{"a plan without alerts", alertstest.Reply{Status: 402, Body: `{"message":"Payment required"}`}, true, 0, "plan"},
		{"an alert that is not valid", alertstest.Reply{Status: 422, Body: `{"message":"Request body is not processable. Please check the errors.","errors":{"message":"Message can not be empty."},"took":0.001,"requestId":"r"}`}, true, 0, "not processable"},
		{"another server", alertstest.Reply{Status: 404, Body: `<html>`}, true, 0, "leads to another server"},
		{"too many requests", alertstest.Reply{Status: 429, Body: `{"message":"You are making too many requests!","took":0.0,"requestId":"r"}`}, false, 0, "too many requests"},
		{"too many requests, and for how long", alertstest.Reply{
			Status: 429, Header: map[string]string{"X-RateLimit-State": "THROTTLED", "X-RateLimit-Reason": "INTEGRATION", "X-RateLimit-Period-In-Sec": "60"},
			Body: `{"message":"You are making too many requests!"}`,
		}, false, time.Minute, "too many requests"},
		{"its own trouble", alertstest.Reply{Status: 503, Header: map[string]string{"Retry-After": "5"}}, false, 5 * time.Second, "503"},
	}.run(t, alerts.NewOpsgenie(client()), o.Service, opsgenieChannel(o))
}
