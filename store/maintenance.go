package store

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Maintenance is a stretch of time, once or again and again, during which checks go on, nothing alerts, uptime does not count
// and pages say so.
type Maintenance struct {
	ID    string
	Title string
	Text  string // for people; may be empty
	// Of one that happens once: from StartsAt until EndsAt. Of one that recurs: between these two, where they are given, it
	// begins whenever Schedule says and lasts Duration.
	StartsAt time.Time
	EndsAt   time.Time // zero, of one that recurs: for ever
	Schedule string    // as Endpoint.Schedule, without @every; empty: once
	Duration time.Duration
	// What it covers: everything, or endpoints by id or tag.
	All       bool
	Endpoints []string
	Tags      []string
	Public    bool   // status pages say so
	Author    string // who planned it
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Covers reports whether the endpoint is meant. When is another question: scheduler.During.
func (m Maintenance) Covers(e Endpoint) bool {
	return m.All || slices.Contains(m.Endpoints, e.ID) ||
		slices.ContainsFunc(e.Tags, func(tag string) bool { return slices.Contains(m.Tags, tag) })
}

const (
	maxText     = 4000 // characters
	maxDuration = 14 * 24 * time.Hour
)

// Validate returns everything that is wrong with m as an Invalid. period reads a schedule, as for Endpoint.Validate.
func (m Maintenance) Validate(period func(schedule string) (time.Duration, error)) error {
	problems := nameProblems("title", m.Title)
	add := func(field, format string, args ...any) { problems = append(problems, problem(field, format, args...)) }
	if utf8.RuneCountInString(m.Text) > maxText {
		add("text", "is longer than %d characters", maxText)
	}
	if m.StartsAt.IsZero() {
		add("starts_at", "is required")
	}
	switch {
	case m.Schedule == "" && !m.EndsAt.After(m.StartsAt):
		add("ends_at", "must be later than the start")
	case m.Schedule == "" && m.EndsAt.Sub(m.StartsAt) > 365*24*time.Hour:
		add("ends_at", "is more than a year after the start: pause the endpoints")
	case m.Schedule == "" && m.Duration != 0:
		add("duration", "goes with a schedule: without one, ends_at says how long it lasts")
	case m.Schedule != "":
		if every, err := period(m.Schedule); err != nil {
			add("schedule", "%s", err)
		} else if strings.Contains(m.Schedule, "@every") {
			add("schedule", "must name times of day, not @every")
		} else if m.Duration > 0 && m.Duration >= every {
			add("duration", "is as long as the time between two: pause the endpoints")
		}
		if m.Duration <= 0 || m.Duration > maxDuration {
			add("duration", "must be longer than zero and at most %s", maxDuration)
		}
		if !m.EndsAt.IsZero() && !m.EndsAt.After(m.StartsAt) {
			add("ends_at", "must be later than the start")
		}
	}
	if !m.All && len(m.Endpoints)+len(m.Tags) == 0 {
		add("endpoints", "are required, or tags, or all")
	}
	if m.All && len(m.Endpoints)+len(m.Tags) > 0 {
		add("all", "cannot be used together with endpoints or tags")
	}
	if len(m.Endpoints) > MaxLimit {
		add("endpoints", "are more than %d: use a tag", MaxLimit)
	}
	problems = append(problems, tagProblems(m.Tags)...)
	return invalid(problems)
}
