package api_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

// alertForm is what a browser sends of the form's fields about alerts.
func alertForm(form url.Values, channel string) url.Values {
	for name, values := range map[string][]string{
		"alerts": {"yes"}, "notify": {"down", "degraded"}, "unknown_after": {"1h"}, "remind_every": {"2h"}, "flap_changes": {"4"},
		"step_after_0": {"10m"}, "step_channels_0": {channel}, "step_after_1": {""},
		"objective_name_0": {"availability"}, "objective_target_0": {"99,9"}, "objective_days_0": {""}, "objective_notify_0": {"yes"},
		"objective_name_1": {"fast"}, "objective_target_1": {"95"}, "objective_days_1": {"7"}, "objective_under_1": {"800ms"},
		"objective_name_2": {""}, "objective_notify_2": {"yes"},
	} {
		form[name] = values
	}
	return form
}

func TestTheFormSaysWhoHearsWhatAndWhen(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.post("/channels", url.Values{"type": {"slack"}, "name": {"ops"}, "webhook_url": {webhook}})
	channel := s.channelNamed("ops").ID
	s.mustRegister(with(endpointForm("save", "https://db.example/mcp"), "name", "Database"))
	form := alertForm(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"), channel)
	form.Set("depends_on", "database")
	s.mustRegister(form)

	o, err := s.store.Endpoint(t.Context(), "weather")
	if err != nil {
		t.Fatal(err)
	}
	parent, err := s.store.Endpoint(t.Context(), "database")
	if err != nil {
		t.Fatal(err)
	}
	want := store.Alerting{
		Notify: []store.Status{store.StatusDown, store.StatusDegraded}, UnknownAfter: time.Hour, RemindEvery: 2 * time.Hour, FlapChanges: 4,
		Escalation: []store.EscalationStep{{After: 10 * time.Minute, Channels: []string{channel}}},
	}
	if diff := cmp.Diff(want, o.Alerting); diff != "" {
		t.Errorf("alerting (-want +got):\n%s", diff)
	}
	objectives := []store.Objective{
		{Name: "availability", Target: 99.9, Days: 30, Notify: true},
		{Name: "fast", Target: 95, Days: 7, Under: 800 * time.Millisecond},
	}
	if diff := cmp.Diff(objectives, o.Objectives); diff != "" {
		t.Errorf("objectives (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{parent.ID}, o.DependsOn); diff != "" {
		t.Errorf("parents (-want +got):\n%s", diff)
	}

	// What the form shows, sent back, is what there is: nothing changes, and no probe in hand is thrown away.
	page := s.get("/endpoints/weather/edit")
	form.Set("url", page.field("url"))
	for _, name := range []string{"unknown_after", "remind_every", "flap_changes", "step_after_0", "objective_target_0", "objective_days_0", "objective_under_0", "objective_under_1"} {
		form.Set(name, page.field(name))
	}
	if got := s.post("/endpoints/weather/edit", form); got.status != http.StatusSeeOther {
		t.Fatalf("save: got %d: %s", got.status, got.text)
	}
	after, err := s.store.Endpoint(t.Context(), "weather")
	if err != nil || !after.UpdatedAt.Equal(o.UpdatedAt) {
		t.Errorf("saving what was shown changed the endpoint: %v", err)
	}

	// A form without those fields leaves them alone; with all of them empty, each goes back to its default.
	s.post("/endpoints/weather/edit", with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	if after, err = s.store.Endpoint(t.Context(), "weather"); err != nil || !after.UpdatedAt.Equal(o.UpdatedAt) {
		t.Errorf("a form without those fields changed them: %v", err)
	}
	bare := with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather", "alerts", "yes")
	bare["notify"] = []string{"unknown", "down", "gated"}
	s.post("/endpoints/weather/edit", bare)
	if after, err = s.store.Endpoint(t.Context(), "weather"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.Alerting{}, after.Alerting); diff != "" || len(after.Objectives)+len(after.DependsOn) != 0 {
		t.Errorf("with everything empty, kept %v, %v and (-want +got):\n%s", after.Objectives, after.DependsOn, diff)
	}
}

func TestMistakesAboutAlertsStandBesideTheirFields(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.post("/channels", url.Values{"type": {"slack"}, "name": {"ops"}, "webhook_url": {webhook}})
	channel := s.channelNamed("ops").ID
	s.mustRegister(with(endpointForm("save", "https://db.example/mcp"), "name", "Database"))
	typed := with(endpointForm("save", "https://weather.example/mcp"),
		"alerts", "yes", "notify", "loud", "unknown_after", "long", "remind_every", "1s", "flap_changes", "many",
		"step_after_0", "soon", "step_channels_0", channel, "step_after_1", "5m",
		"objective_name_0", hostileWords, "objective_target_0", "most", "objective_days_0", "x", "objective_under_0", "y",
		"depends_on", "database", "depends_on_typed", "gone")
	got := s.post("/endpoints/new", typed)
	if got.status != http.StatusUnprocessableEntity || !got.clean() {
		t.Fatalf("got %d: %s", got.status, got.text)
	}
	for _, id := range []string{
		"f-notify", "f-unknown-after", "f-remind-every", "f-flap-changes", "f-escalation-0-after", "f-escalation-1-channels",
		"f-objectives-0-name", "f-objectives-0-target", "f-objectives-0-days", "f-objectives-0-under", "f-depends-on",
	} {
		if !strings.Contains(got.body, `href="#`+id+`"`) || !strings.Contains(got.body, `id="`+id+`"`) {
			t.Errorf("the summary does not lead to #%s", id)
		}
	}
	for name := range typed {
		switch name {
		case "action", "alerts", "notify", "header_secret_0", "step_channels_0", "depends_on":
			continue
		}
		if value := got.field(name); value != typed.Get(name) {
			t.Errorf("field %s holds %q, want %q", name, value, typed.Get(name))
		}
	}
	if !got.checked("step_channels_0") || !got.checked("depends_on") {
		t.Error("what was ticked is not ticked any more")
	}
}

func TestThePageOfAnEndpointShowsItsObjectives(t *testing.T) {
	attained, left := 99.5, -400.0
	s := newSite(t, func(c *api.Config) {
		c.Objectives = func(_ context.Context, e store.Endpoint) ([]api.ObjectiveState, error) {
			return []api.ObjectiveState{
				{Objective: e.Objectives[0], Attained: &attained, BudgetLeft: &left, Burning: api.BurningFast}, {Objective: e.Objectives[1]},
			}, nil
		}
	})
	s.setUp()
	form := with(alertForm(endpointForm("save", "https://weather.example/mcp"), ""), "name", "Weather", "step_after_0", "")
	form.Del("step_channels_0")
	s.mustRegister(form)
	page := s.get("/endpoints/weather")
	for _, want := range []string{"99.9 % of checks good in 30 days", "99.50 %", "overspent by 400 %", "14 times too fast", "95 % of checks under 800 ms in 7 days", "nothing measured yet"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page does not say %q: %s", want, page.text)
		}
	}
}
