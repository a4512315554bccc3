package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Alerting are the members of an endpoint that say who hears what of it, and when, and what it is meant to achieve. What was
// left to its default is filled in.
type Alerting struct {
	Notify       []store.Status   `json:"notify"` // the severities that are told
	UnknownAfter string           `json:"unknown_after"`
	RemindEvery  string           `json:"remind_every"` // 0s: never
	FlapChanges  int              `json:"flap_changes"`
	Escalation   []EscalationStep `json:"escalation"`
	DependsOn    []string         `json:"depends_on"` // slugs
	Objectives   []Objective      `json:"objectives"`
}

// EscalationStep is who else hears of an incident that nobody has acknowledged.
type EscalationStep struct {
	After    string   `json:"after"`
	Channels []string `json:"channels"`
}

// Objective is what an endpoint is meant to achieve.
type Objective struct {
	Name   string  `json:"name"`
	Target float64 `json:"target"` // per cent
	Days   int     `json:"days"`
	Under  string  `json:"under"` // 0s: however long it takes
	Notify bool    `json:"notify"`
}

// defaultDays is the window of an objective that does not say: a month, as most agreements have it.
const defaultDays = 30

// alertingJSON returns those members of e. slugs are those of other endpoints, by id.
func alertingJSON(e store.Endpoint, slugs map[string]string) Alerting {
	a := Alerting{
		Notify:       append([]store.Status{}, e.Alerting.Notify...),
		UnknownAfter: durationText(cmp.Or(e.Alerting.UnknownAfter, store.DefaultUnknownAfter)),
		RemindEvery:  durationText(e.Alerting.RemindEvery),
		FlapChanges:  cmp.Or(e.Alerting.FlapChanges, store.DefaultFlapChanges),
		Escalation:   make([]EscalationStep, 0, len(e.Alerting.Escalation)),
		DependsOn:    slugsOf(e.DependsOn, slugs),
		Objectives:   make([]Objective, 0, len(e.Objectives)),
	}
	if e.Alerting.Notify == nil {
		a.Notify = store.DefaultNotify()
	}
	for _, step := range e.Alerting.Escalation {
		a.Escalation = append(a.Escalation, EscalationStep{durationText(step.After), append([]string{}, step.Channels...)})
	}
	for _, o := range e.Objectives {
		a.Objectives = append(a.Objectives, objectiveJSON(o))
	}
	return a
}

func objectiveJSON(o store.Objective) Objective {
	return Objective{o.Name, o.Target, o.Days, durationText(o.Under), o.Notify}
}

// slugsOf returns the slugs of endpoints by their ids, in order, without those that are gone.
func slugsOf(ids []string, slugs map[string]string) []string {
	named := slugsInOrder(ids, slugs)
	slices.Sort(named)
	return named
}

// slugsInOrder returns the slugs of those of some endpoints that are there, in the order of the ids.
func slugsInOrder(ids []string, slugs map[string]string) []string {
	named := make([]string, 0, len(ids))
	for _, id := range ids {
		if slug := slugs[id]; slug != "" {
			named = append(named, slug)
		}
	}
	return named
}

// Slugs returns the slugs of some endpoints, by id.
func Slugs(endpoints []store.Overview) map[string]string {
	slugs := make(map[string]string, len(endpoints))
	for _, o := range endpoints {
		slugs[o.ID] = o.Slug
	}
	return slugs
}

// slugs reads the slugs of endpoints, by id.
func (s *Server) slugs(ctx context.Context, ids map[string]bool) (map[string]string, error) {
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // a map that holds nothing
	}
	page, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{IDs: slices.Sorted(maps.Keys(ids)), Limit: -1})
	if err != nil {
		return nil, err
	}
	return Slugs(page.Items), nil
}

// endpointsJSON returns endpoints as they stand in JSON.
func (s *Server) endpointsJSON(ctx context.Context, endpoints ...store.Overview) ([]Endpoint, error) {
	ids := map[string]bool{}
	for _, o := range endpoints {
		for _, id := range o.DependsOn {
			ids[id] = true
		}
	}
	slugs, err := s.slugs(ctx, ids)
	if err != nil {
		return nil, err
	}
	all := make([]Endpoint, 0, len(endpoints))
	for _, o := range endpoints {
		all = append(all, EndpointJSON(o, slugs))
	}
	return all, nil
}

// idsOf returns the ids of the endpoints that have some slugs, and a mistake for each that nobody has or that stands there
// twice. most bounds how many are looked up: of more, the rest stand for themselves, for whoever checks their number.
func (s *Server) idsOf(ctx context.Context, field string, slugs []string, most int) ([]string, []probe.Problem, error) {
	ids := make([]string, 0, len(slugs))
	var mistakes []probe.Problem
	wrong := func(i int, format string, args ...any) {
		mistakes = append(mistakes, probe.Problem{Field: indexed(field, i), Message: fmt.Sprintf(format, args...)})
	}
	for i, slug := range slugs {
		if i >= most {
			return append(ids, slugs[i:]...), mistakes, nil
		}
		if slices.Contains(slugs[:i], slug) {
			wrong(i, "stands there twice")
			continue
		}
		o, err := store.Overview{}, store.ErrNotFound
		if isText(slug) {
			o, err = s.cfg.Store.Endpoint(ctx, slug)
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			wrong(i, "there is no endpoint %.40q", slug)
		case err != nil:
			return nil, nil, err
		default:
			ids = append(ids, o.ID)
		}
	}
	return ids, mistakes, nil
}

// alertingInput is what somebody wants the members of Alerting to be. A nil member leaves a value as it is.
type alertingInput struct {
	Notify       *[]store.Status // a nil list is the default
	UnknownAfter *string
	RemindEvery  *string
	FlapChanges  *int
	Escalation   *[]store.EscalationStep
	DependsOn    *[]string // slugs
	Objectives   *[]store.Objective

	parents *[]string // the ids that DependsOn stands for, once they are looked up
}

// lookedUp returns in with the endpoints that it names looked up, and what is wrong with them among its mistakes.
func (s *Server) lookedUp(ctx context.Context, in endpointInput) (endpointInput, error) {
	if in.Alerting.DependsOn == nil {
		return in, nil
	}
	ids, mistakes, err := s.idsOf(ctx, "depends_on", *in.Alerting.DependsOn, store.MaxParents)
	if err != nil {
		return in, err
	}
	in.Alerting.parents = &ids
	in.Mistakes = append(slices.Clone(in.Mistakes), mistakes...)
	return in, nil
}

// onto changes e as far as in says so. duration reads a duration, and notes a mistake where there is none.
func (in alertingInput) onto(e *store.Endpoint, duration func(to *time.Duration, from *string, field string)) []probe.Problem {
	set(&e.Alerting.Notify, in.Notify)
	duration(&e.Alerting.UnknownAfter, in.UnknownAfter, "unknown_after")
	duration(&e.Alerting.RemindEvery, in.RemindEvery, "remind_every")
	set(&e.Alerting.FlapChanges, in.FlapChanges)
	set(&e.Alerting.Escalation, in.Escalation)
	set(&e.DependsOn, in.parents)
	set(&e.Objectives, in.Objectives)
	e.Alerting = undefaulted(e.Alerting)
	if in.parents != nil && e.ID != "" && slices.Contains(*in.parents, e.ID) {
		return []probe.Problem{{Field: "depends_on", Message: "names the endpoint itself"}}
	}
	return nil
}

// undefaulted returns a with the zero value for what is the default anyway: an answer that is sent back changes nothing.
func undefaulted(a store.Alerting) store.Alerting {
	if slices.Equal(a.Notify, store.DefaultNotify()) {
		a.Notify = nil
	}
	if a.UnknownAfter == store.DefaultUnknownAfter {
		a.UnknownAfter = 0
	}
	if a.FlapChanges == store.DefaultFlapChanges {
		a.FlapChanges = 0
	}
	return a
}

func readAlerting(m *members) alertingInput {
	in := alertingInput{
		Notify:       readNotify(m),
		UnknownAfter: m.duration("unknown_after", "0s"),
		RemindEvery:  m.duration("remind_every", "0s"),
		FlapChanges:  m.number("flap_changes", 0),
		DependsOn:    m.texts("depends_on"),
	}
	if items := m.list("escalation"); items != nil {
		in.Escalation = new(readEscalation(m, *items))
	}
	if items := m.list("objectives"); items != nil {
		in.Objectives = new(readObjectives(m, *items))
	}
	return in
}

// readNotify tells null, the default, from an empty list, which is nothing at all.
func readNotify(m *members) *[]store.Status {
	if raw, there := m.values["notify"]; there && isNull(raw) {
		m.take("notify")
		return new([]store.Status)
	}
	return readStatuses(m, "notify")
}

func readStatuses(m *members, name string) *[]store.Status {
	words := m.texts(name)
	if words == nil {
		return nil
	}
	statuses := make([]store.Status, 0, len(*words))
	for _, word := range *words {
		statuses = append(statuses, store.Status(word))
	}
	return &statuses
}

func readEscalation(m *members, items []json.RawMessage) []store.EscalationStep {
	steps := make([]store.EscalationStep, 0, len(items))
	for i, raw := range items {
		var step store.EscalationStep
		if inner := m.inside(raw, m.path+indexed("escalation", i)); inner != nil {
			step.After = inner.lasting("after")
			set(&step.Channels, inner.texts("channels"))
			inner.rest()
		}
		steps = append(steps, step) // also one that could not be read: the next ones keep their place
	}
	return steps
}

func readObjectives(m *members, items []json.RawMessage) []store.Objective {
	objectives := make([]store.Objective, 0, len(items))
	for i, raw := range items {
		o := store.Objective{Days: defaultDays, Notify: true}
		if inner := m.inside(raw, m.path+indexed("objectives", i)); inner != nil {
			set(&o.Name, inner.text("name", ""))
			set(&o.Target, member[float64](inner, "target", 0, "a number"))
			set(&o.Days, inner.number("days", defaultDays))
			o.Under = inner.lasting("under")
			set(&o.Notify, inner.flag("notify", true))
			inner.rest()
		}
		objectives = append(objectives, o)
	}
	return objectives
}

// missingSteps says what is wrong with the channels of an escalation.
func missingSteps(steps []store.EscalationStep, known []string) []probe.Problem {
	var mistakes []probe.Problem
	for i, step := range steps {
		mistakes = append(mistakes, missingChannels(indexed("escalation", i)+".channels", step.Channels, known)...)
	}
	return mistakes
}

// namedChannels returns every channel that e has hear of it.
func namedChannels(e store.Endpoint) []string {
	named := slices.Clone(e.Channels)
	for _, step := range e.Alerting.Escalation {
		named = append(named, step.Channels...)
	}
	return named
}

// namedChannels returns every channel that in names.
func (in endpointInput) namedChannels() []string {
	var e store.Endpoint
	set(&e.Channels, in.Channels)
	set(&e.Alerting.Escalation, in.Alerting.Escalation)
	return namedChannels(e)
}
