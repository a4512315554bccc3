package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func TestAlertingIsCheckedAsAWhole(t *testing.T) {
	step := func(after time.Duration, channels ...string) store.EscalationStep {
		return store.EscalationStep{After: after, Channels: channels}
	}
	for name, test := range map[string]struct {
		edit   func(*store.Endpoint)
		fields []string
	}{
		"everything": {func(e *store.Endpoint) {
			e.Alerting = store.Alerting{
				Notify: store.Severities(), UnknownAfter: time.Hour, RemindEvery: time.Hour, FlapChanges: 2,
				Escalation: []store.EscalationStep{step(time.Minute, "ch_a"), step(time.Hour, "ch_a", "ch_b")},
			}
			e.DependsOn = []string{"ep_b"}
			e.Objectives = []store.Objective{{Name: "up", Target: 99.9, Days: 30, Under: time.Second, Notify: true}}
		}, nil},
		"nobody is told":    {func(e *store.Endpoint) { e.Alerting.Notify = []store.Status{} }, nil},
		"odd severities":    {func(e *store.Endpoint) { e.Alerting.Notify = []store.Status{"down", "up", "down"} }, []string{"notify[1]", "notify[2]"}},
		"unknown for ever":  {func(e *store.Endpoint) { e.Alerting.UnknownAfter = 8 * 24 * time.Hour }, []string{"unknown_after"}},
		"reminded too much": {func(e *store.Endpoint) { e.Alerting.RemindEvery = time.Minute }, []string{"remind_every"}},
		"one change":        {func(e *store.Endpoint) { e.Alerting.FlapChanges = 1 }, []string{"flap_changes"}},
		"many changes":      {func(e *store.Endpoint) { e.Alerting.FlapChanges = 21 }, []string{"flap_changes"}},
		"negative": {func(e *store.Endpoint) {
			e.Alerting = store.Alerting{UnknownAfter: -1, RemindEvery: -1, FlapChanges: -1}
		}, []string{"unknown_after", "remind_every", "flap_changes"}},
		"steps out of order": {func(e *store.Endpoint) {
			e.Alerting.Escalation = []store.EscalationStep{step(time.Hour, "ch_a"), step(time.Minute, "ch_a"), step(0, "ch_a"), step(2 * time.Hour)}
		}, []string{"escalation[1].after", "escalation[2].after", "escalation[3].channels"}},
		"many steps": {func(e *store.Endpoint) {
			for i := range 11 {
				e.Alerting.Escalation = append(e.Alerting.Escalation, step(time.Duration(i+1)*time.Minute, "ch_a"))
			}
		}, []string{"escalation"}},
		"many parents": {func(e *store.Endpoint) { e.DependsOn = numbers(0, store.MaxParents+1) }, []string{"depends_on"}},
		"odd objectives": {func(e *store.Endpoint) {
			e.Objectives = []store.Objective{{Name: "up", Target: 100, Days: 30}, {Name: "up", Target: 99, Days: 91}, {Name: "A b", Target: 99, Days: 1, Under: -1}}
		}, []string{"objectives[0].target", "objectives[1].name", "objectives[1].days", "objectives[2].name", "objectives[2].under"}},
		"many objectives": {func(e *store.Endpoint) {
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				e.Objectives = append(e.Objectives, store.Objective{Name: name, Target: 99, Days: 1})
			}
		}, []string{"objectives"}},
	} {
		e := store.NewEndpoint()
		e.Name, e.URL = "Weather", "https://weather.example/mcp"
		test.edit(&e)
		err := e.Validate(everyMinute)
		if diff := cmp.Diff(fields(err), test.fields); diff != "" {
			t.Errorf("%s: fields of %v (-got +want):\n%s", name, err, diff)
		}
	}
}

func TestWhichSeveritiesAreTold(t *testing.T) {
	none, some := store.Alerting{Notify: []store.Status{}}, store.Alerting{Notify: []store.Status{store.StatusDegraded}}
	for severity, told := range map[store.Status][3]bool{
		store.StatusDown: {true, false, false}, store.StatusGated: {true, false, false}, store.StatusUnknown: {true, false, false},
		store.StatusDegraded: {false, false, true},
	} {
		for i, a := range []store.Alerting{{}, none, some} {
			if got := a.Tells(severity); got != told[i] {
				t.Errorf("%+v tells %s: %v, want %v", a, severity, got, told[i])
			}
		}
	}
	// To tell nothing is not the same as to say nothing about it, also in a database.
	for _, a := range []store.Alerting{{}, none, some} {
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var again store.Alerting
		if err := json.Unmarshal(text, &again); err != nil || !cmp.Equal(again, a) {
			t.Errorf("%s came back as %+v, %v", text, again, err)
		}
	}
}

func TestNothingStandsBehindItself(t *testing.T) {
	// d → c → b → a, and two that stand behind each other, which nobody could have kept.
	behind := map[string][]string{"ep_b": {"ep_a"}, "ep_c": {"ep_b"}, "ep_d": {"ep_c"}, "ep_x": {"ep_y"}, "ep_y": {"ep_x"}}
	exists := map[string]bool{"ep_a": true, "ep_b": true, "ep_c": true, "ep_d": true, "ep_x": true}
	for name, test := range map[string]struct {
		id      string
		parents []string
		fields  []string
	}{
		"none":             {"ep_a", nil, nil},
		"one above":        {"ep_d", []string{"ep_a", "ep_b"}, nil},
		"itself":           {"ep_a", []string{"ep_a"}, []string{"depends_on[0]"}},
		"far below":        {"ep_a", []string{"ep_x", "ep_d"}, []string{"depends_on[1]"}},
		"not there, twice": {"ep_d", []string{"ep_none", "ep_a", "ep_a"}, []string{"depends_on[0]", "depends_on[2]"}},
	} {
		err := store.ParentProblems(store.Endpoint{ID: test.id, DependsOn: test.parents}, exists, behind)
		if diff := cmp.Diff(fields(err), test.fields); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestAnEditDoesNotReachIntoWhatItCopies(t *testing.T) {
	e := store.Endpoint{
		Name: "Weather", URL: "https://a.example", DependsOn: []string{"ep_b"}, Objectives: []store.Objective{{Name: "up"}},
		Alerting: store.Alerting{Notify: []store.Status{"down"}, Escalation: []store.EscalationStep{{After: 1, Channels: []string{"ch_a"}}}},
	}
	edited, err := store.EditEndpoint(e, func(e *store.Endpoint) error {
		e.DependsOn[0], e.Objectives[0].Name, e.Alerting.Notify[0], e.Alerting.Escalation[0].Channels[0] = "x", "x", "x", "x"
		return nil
	}, start)
	if err != nil || !e.Edited(edited) || e.DependsOn[0] != "ep_b" || e.Objectives[0].Name != "up" || e.Alerting.Notify[0] != "down" ||
		e.Alerting.Escalation[0].Channels[0] != "ch_a" {
		t.Errorf("%+v, %v: the endpoint before is %+v, want it untouched", edited, err, e)
	}
}
