package store

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// EnrollEndpoint returns a valid endpoint with the id and times that a database is to keep it under. Its Name and Slug may
// still be empty.
func EnrollEndpoint(e Endpoint, at time.Time) (Endpoint, error) {
	e.ID, e.CreatedAt, e.UpdatedAt = NewID("ep"), at, at
	if err := e.checkText(); err != nil {
		return e, err
	}
	return e.withOwnSettings()
}

// EditEndpoint lets change edit a copy of e, and holds on to what never changes. An edit that changes nothing leaves also
// UpdatedAt as it was, and there is nothing to write: see Edited. A probe in hand counts only while its endpoint is as it
// was, so an edit in name only would throw it away. Any other edit has a later UpdatedAt than the one before, also after the
// clock was set back or on another machine: whoever compares the two takes the later one for how things are.
func EditEndpoint(e Endpoint, change func(*Endpoint) error, at time.Time) (Endpoint, error) {
	edited := e
	edited.Headers = slices.Clone(e.Headers)
	edited.Request.Params = bytes.Clone(e.Request.Params)
	edited.Tags = slices.Clone(e.Tags)
	edited.Channels = slices.Clone(e.Channels)
	edited.Locations = slices.Clone(e.Locations)
	edited.Alerting = e.Alerting.clone()
	edited.DependsOn = slices.Clone(e.DependsOn)
	edited.Objectives = slices.Clone(e.Objectives)
	edited, err := edited.withOwnSettings()
	if err != nil {
		return Endpoint{}, err
	}
	if err := change(&edited); err != nil {
		return Endpoint{}, err
	}
	if edited, err = edited.withOwnSettings(); err != nil {
		return Endpoint{}, err
	}
	edited.ID, edited.Slug, edited.CreatedAt, edited.UpdatedAt = e.ID, e.Slug, e.CreatedAt, e.UpdatedAt
	if edited.Name == "" {
		return Endpoint{}, Invalid{[]probe.Problem{problem("name", "is required")}}
	}
	if e.Edited(edited) {
		edited.UpdatedAt = at
		if next := e.UpdatedAt.Add(time.Microsecond); at.Before(next) {
			edited.UpdatedAt = next
		}
	}
	return edited, edited.checkText()
}

// Edited reports whether after differs from e in anything that a database keeps.
func (e Endpoint) Edited(after Endpoint) bool {
	return !reflect.DeepEqual(e.Tidy(), after.Tidy())
}

// checkText returns an Invalid that names every text which a database would refuse or keep as something else.
func (e Endpoint) checkText() error {
	var problems []probe.Problem
	check := func(field, text string) {
		if CleanText(text) != text {
			problems = append(problems, problem(field, "is not valid text: it holds a NUL or bytes that are not UTF-8"))
		}
	}
	check("name", e.Name)
	check("slug", e.Slug)
	check("kind", string(e.Kind))
	check("url", e.URL)
	check("request.method", e.Request.Method)
	check("schedule", e.Schedule)
	for i, tag := range e.Tags {
		check(fmt.Sprintf("tags[%d]", i), tag)
	}
	for i, location := range e.Locations {
		check(fmt.Sprintf("locations[%d]", i), location)
	}
	for i, o := range e.Objectives {
		check(fmt.Sprintf("objectives[%d].name", i), o.Name)
	}
	texts := commandTexts(e.Command)
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		check(field, texts[field])
	}
	return invalid(problems)
}

// Tidy returns e as every database gives it back: times as Stamp leaves them, and nil for what is empty.
func (e Endpoint) Tidy() Endpoint {
	e.CreatedAt, e.UpdatedAt = Stamp(e.CreatedAt), Stamp(e.UpdatedAt)
	if len(e.Headers) == 0 {
		e.Headers = nil
	}
	if len(e.Request.Params) == 0 {
		e.Request.Params = nil
	}
	if len(e.Tags) == 0 {
		e.Tags = nil
	}
	if len(e.Channels) == 0 {
		e.Channels = nil
	}
	if len(e.Locations) == 0 {
		e.Locations = nil
	}
	if len(e.Alerting.Escalation) == 0 {
		e.Alerting.Escalation = nil
	}
	if len(e.DependsOn) == 0 {
		e.DependsOn = nil
	}
	if len(e.Objectives) == 0 {
		e.Objectives = nil
	}
	return e
}

// EnrollChannel returns c with the id and times that a database is to keep it under, or an Invalid.
func EnrollChannel(c Channel, at time.Time) (Channel, error) {
	c.ID, c.CreatedAt, c.UpdatedAt = NewID("ch"), Stamp(at), Stamp(at)
	c.Broken, c.BrokenAt = "", nil
	return c.tidy(), c.check()
}

// EditChannel lets change edit a copy of c, and holds on to what never changes. The result is valid and no longer broken.
func EditChannel(c Channel, change func(*Channel) error, at time.Time) (Channel, error) {
	edited := c
	edited.Settings, edited.Secrets = maps.Clone(c.Settings), maps.Clone(c.Secrets)
	if err := change(&edited); err != nil {
		return Channel{}, err
	}
	edited.ID, edited.CreatedAt, edited.UpdatedAt = c.ID, c.CreatedAt, Stamp(at)
	edited.Broken, edited.BrokenAt = "", nil
	return edited.tidy(), edited.check()
}

func (c Channel) check() error {
	if err := c.Validate(); err != nil {
		return err
	}
	var problems []probe.Problem
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		if CleanText(name) != name || CleanText(c.Settings[name]) != c.Settings[name] {
			problems = append(problems, problem(CleanText(name), "is not valid text: it holds a NUL or bytes that are not UTF-8"))
		}
	}
	return invalid(problems)
}

// tidy returns nil for what is empty.
func (c Channel) tidy() Channel {
	if len(c.Settings) == 0 {
		c.Settings = nil
	}
	if len(c.Secrets) == 0 {
		c.Secrets = nil
	}
	return c
}

// EnrollMaintenance returns m with the id and times that a database is to keep it under, as it will give it back.
func EnrollMaintenance(m Maintenance, at time.Time) Maintenance {
	m.ID, m.CreatedAt, m.UpdatedAt = NewID("mnt"), Stamp(at), Stamp(at)
	return m.tidy()
}

// EditMaintenance lets change edit a copy of m, and holds on to what never changes.
func EditMaintenance(m Maintenance, change func(*Maintenance) error, at time.Time) (Maintenance, error) {
	edited := m
	edited.Endpoints, edited.Tags = slices.Clone(m.Endpoints), slices.Clone(m.Tags)
	if err := change(&edited); err != nil {
		return Maintenance{}, err
	}
	edited.ID, edited.CreatedAt, edited.UpdatedAt = m.ID, m.CreatedAt, Stamp(at)
	return edited.tidy(), nil
}

// tidy returns m as every database gives it back.
func (m Maintenance) tidy() Maintenance {
	m.Title, m.Text, m.Schedule, m.Author = CleanText(m.Title), CleanText(m.Text), CleanText(m.Schedule), CleanText(m.Author)
	m.Duration = FromMilliseconds(Milliseconds(m.Duration))
	for _, at := range []*time.Time{&m.StartsAt, &m.EndsAt} {
		if !at.IsZero() {
			*at = Stamp(*at)
		}
	}
	m.Endpoints, m.Tags = cleanTexts(m.Endpoints), cleanTexts(m.Tags)
	return m
}

// EnrollSubscription returns s with the id and time that a database is to keep it under, which are those of its channel as well,
// or an Invalid.
func EnrollSubscription(s Subscription, at time.Time) (Subscription, error) {
	s.ID, s.CreatedAt = NewID("sub"), Stamp(at)
	s.Channel.ID, s.Channel.CreatedAt, s.Channel.UpdatedAt = s.ID, s.CreatedAt, s.CreatedAt
	s.Channel.Broken, s.Channel.BrokenAt = "", nil
	s.Channel = s.Channel.tidy()
	return s.tidy(), s.check(false)
}

// EditSubscription lets change edit a copy of s, and holds on to what never changes. A channel that was changed is no longer
// broken. One that covers nothing because its endpoints are gone may be edited in other respects.
func EditSubscription(s Subscription, change func(*Subscription) error, at time.Time) (Subscription, error) {
	edited := s
	edited.Endpoints, edited.Tags, edited.Severities = slices.Clone(s.Endpoints), slices.Clone(s.Tags), slices.Clone(s.Severities)
	edited.Channel.Settings, edited.Channel.Secrets = maps.Clone(s.Channel.Settings), maps.Clone(s.Channel.Secrets)
	if s.Quiet != nil {
		quiet := *s.Quiet
		edited.Quiet = &quiet
	}
	if err := change(&edited); err != nil {
		return Subscription{}, err
	}
	edited.ID, edited.PageID, edited.CreatedAt = s.ID, s.PageID, s.CreatedAt
	c, before := edited.Channel.tidy(), s.Channel
	c.ID, c.CreatedAt, c.UpdatedAt, c.Broken, c.BrokenAt = s.ID, before.CreatedAt, before.UpdatedAt, before.Broken, before.BrokenAt
	if !reflect.DeepEqual(c, before) {
		c.UpdatedAt, c.Broken, c.BrokenAt = Stamp(at), "", nil
	}
	edited.Channel = c
	return edited.tidy(), edited.check(s.coversNothing())
}

func (s Subscription) check(mayCoverNothing bool) error {
	if err := s.Channel.check(); err != nil {
		return err
	}
	return s.validate(mayCoverNothing)
}

// tidy returns s as every database gives it back.
func (s Subscription) tidy() Subscription {
	s.UserID, s.PageID = CleanText(s.UserID), CleanText(s.PageID)
	s.Endpoints, s.Tags = cleanTexts(s.Endpoints), cleanTexts(s.Tags)
	if s.ConfirmedAt != nil {
		at := Stamp(*s.ConfirmedAt)
		s.ConfirmedAt = &at
	}
	if len(s.ConfirmHash) == 0 {
		s.ConfirmHash = nil
	}
	if len(s.ManageHash) == 0 {
		s.ManageHash = nil
	}
	return s
}

// cleanTexts returns texts as every database gives them back, nil for none.
func cleanTexts(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	clean := make([]string, 0, len(texts))
	for _, text := range texts {
		clean = append(clean, CleanText(text))
	}
	return clean
}

// Validate returns an Invalid unless s says exactly one way in which the delivery ended.
func (s Settlement) Validate() error {
	ways := 0
	for _, way := range []bool{s.Sent, s.Passed, s.Permanent, !s.RetryAt.IsZero()} {
		if way {
			ways++
		}
	}
	if ways == 1 {
		return nil
	}
	return Invalid{[]probe.Problem{problem("settlement", "must say exactly one of sent, passed, permanent and retry, not %d", ways)}}
}

// How an attempt to deliver a notice ended, as the log of attempts keeps it.
const (
	OutcomeSent   = "sent"
	OutcomePassed = "passed" // nothing was sent, and nothing needs to be
	OutcomeRetry  = "retry"
	OutcomeFailed = "failed"
)

// Outcome names the way in which the delivery ended.
func (s Settlement) Outcome() string {
	switch {
	case s.Sent:
		return OutcomeSent
	case s.Passed:
		return OutcomePassed
	case s.Permanent:
		return OutcomeFailed
	default:
		return OutcomeRetry
	}
}

// Reason returns the error in words that can be kept; there are some whenever the delivery failed.
func (s Settlement) Reason() string {
	switch {
	case s.Sent:
		return ""
	case s.Passed:
		return CleanText(s.Error)
	case s.Error == "":
		return "no reason given"
	default:
		return CleanText(s.Error)
	}
}

// EnrollUser returns u with the id and time that a database is to keep it under.
func EnrollUser(u User, at time.Time) User {
	u.ID, u.Name, u.CreatedAt = NewID("usr"), CleanText(u.Name), Stamp(at)
	return u
}

// OnlyFirstUser returns a Conflict when there are users.
func OnlyFirstUser(users int) error {
	if users == 0 {
		return nil
	}
	return Conflict{Field: "user", Message: "is there already: setup is over"}
}

// EnrollToken returns t with the id and time that a database is to keep it under, unused and not revoked.
func EnrollToken(t Token, at time.Time) Token {
	t.ID, t.Name, t.CreatedAt = NewID("tok"), CleanText(t.Name), Stamp(at)
	t.LastUsedAt, t.RevokedAt = nil, nil
	if len(t.Scopes) == 0 {
		t.Scopes = nil
	}
	if t.ExpiresAt != nil {
		expires := Stamp(*t.ExpiresAt)
		t.ExpiresAt = &expires
	}
	return t
}
