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
	return t
}
