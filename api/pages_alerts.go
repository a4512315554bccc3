package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// alertsForm fills in who hears what of e, and what it is meant to achieve. What is at its default is left empty.
func alertsForm(f *web.EndpointForm, e store.Endpoint) {
	a := e.Alerting
	told := a.Notify
	if told == nil {
		told = store.DefaultNotify()
	}
	for _, severity := range told {
		f.Notify = append(f.Notify, string(severity))
	}
	f.UnknownAfter, f.RemindEvery = durationOrNone(a.UnknownAfter), durationOrNone(a.RemindEvery)
	if a.FlapChanges != 0 {
		f.FlapChanges = strconv.Itoa(a.FlapChanges)
	}
	for _, step := range a.Escalation {
		f.Steps = append(f.Steps, web.StepRow{After: durationText(step.After), Channels: step.Channels})
	}
	for _, o := range e.Objectives {
		f.Objectives = append(f.Objectives, web.ObjectiveRow{
			Name: o.Name, Target: strconv.FormatFloat(o.Target, 'f', -1, 64), Days: strconv.Itoa(o.Days), Under: durationOrNone(o.Under), Notify: o.Notify,
		})
	}
}

// maxAlertRows is how many rows of steps and of objectives are read: some more than an endpoint may have, so that too many are
// named as a mistake rather than passed over.
const maxAlertRows = 20

// readAlertsForm takes what was typed into those fields. Rows in which nothing was typed are left out.
func readAlertsForm(typed *web.EndpointForm, f form) {
	typed.Notify = f.texts("notify")
	typed.UnknownAfter, typed.RemindEvery, typed.FlapChanges = f.text("unknown_after"), f.text("remind_every"), f.text("flap_changes")
	for i := range maxAlertRows {
		step := web.StepRow{After: f.text(fmt.Sprintf("step_after_%d", i)), Channels: f.texts(fmt.Sprintf("step_channels_%d", i))}
		if step.After != "" || len(step.Channels) > 0 {
			typed.Steps = append(typed.Steps, step)
		}
	}
	for i := range maxAlertRows {
		field := func(name string) string { return f.text(fmt.Sprintf("objective_%s_%d", name, i)) }
		o := web.ObjectiveRow{
			Name: field("name"), Target: field("target"), Days: field("days"), Under: field("under"), Notify: field("notify") != "",
		}
		if o.Name != "" || o.Target != "" {
			typed.Objectives = append(typed.Objectives, o)
		}
	}
}

// alertsOf reads what was typed. Fields that are empty go back to their defaults.
func alertsOf(typed web.EndpointForm, parents []string, mistakes *[]probe.Problem) alertingInput {
	wrong := func(message, field string, args ...any) {
		*mistakes = append(*mistakes, probe.Problem{Field: fmt.Sprintf(field, args...), Message: message})
	}
	orDefault := func(text string) *string {
		if text == "" {
			text = "0s"
		}
		return &text
	}
	in := alertingInput{
		Notify:       new(notifyOf(typed.Notify)),
		UnknownAfter: orDefault(typed.UnknownAfter),
		RemindEvery:  orDefault(typed.RemindEvery),
		FlapChanges:  new(int),
		Escalation:   new([]store.EscalationStep),
		DependsOn:    &parents,
		Objectives:   new([]store.Objective),
	}
	whole := func(text string, otherwise int, field string, args ...any) int {
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			wrong("must be a whole number", field, args...)
		}
		return n
	}
	lasting := func(text string, field string, args ...any) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil && text != "" {
			wrong(`must be a duration like "10m" or "800ms"`, field, args...)
		}
		return d
	}
	*in.FlapChanges = whole(typed.FlapChanges, 0, "flap_changes")
	for i, step := range typed.Steps {
		*in.Escalation = append(*in.Escalation, store.EscalationStep{
			After: lasting(step.After, "escalation[%d].after", i), Channels: step.Channels,
		})
	}
	for i, row := range typed.Objectives {
		target, err := strconv.ParseFloat(strings.Replace(strings.TrimSuffix(row.Target, "%"), ",", ".", 1), 64)
		if err != nil {
			wrong("must be a number of per cent, like 99.9", "objectives[%d].target", i)
		}
		*in.Objectives = append(*in.Objectives, store.Objective{
			Name: row.Name, Target: target, Notify: row.Notify,
			Days: whole(row.Days, defaultDays, "objectives[%d].days", i), Under: lasting(row.Under, "objectives[%d].under", i),
		})
	}
	return in
}

// notifyOf returns the severities that were ticked, nil when they are the default ones.
func notifyOf(ticked []string) []store.Status {
	told := make([]store.Status, 0, len(ticked))
	for _, severity := range ticked {
		told = append(told, store.Status(severity))
	}
	usual := store.DefaultNotify()
	if len(told) == len(usual) && !slices.ContainsFunc(usual, func(s store.Status) bool { return !slices.Contains(told, s) }) {
		return nil
	}
	return told
}
