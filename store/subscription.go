package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Subscription is somebody who wants to hear of outages: from the public status page, or a member of the team for themselves.
// It is delivered through a channel of its own, which no list of channels shows.
type Subscription struct {
	ID      string  // of its channel as well
	Channel Channel // email, webhook or slack
	// UserID is the member of the team; empty for one from the public, who hears public words about what a status page shows.
	UserID string
	// PageID is the status page that one from the public is of: it is about what that page shows, whenever that is, and hears nothing
	// else. Empty: the built-in page, which shows what is public. It never changes, and a page takes its subscriptions with it.
	PageID string
	// What it is about: all endpoints, or some by id or tag, and severities; nil means those that each endpoint tells.
	All        bool
	Endpoints  []string
	Tags       []string
	Severities []Status
	// Quiet hours put notices off until they are over; nil: none. Of members only.
	Quiet *Quiet
	// ConfirmedAt is when the address proved to want this; nil: nothing is sent but the question. Members' are confirmed.
	ConfirmedAt *time.Time
	// ConfirmHash and ManageHash are the SHA-256 of tokens: the one confirms, once; the other shows, changes and ends it.
	ConfirmHash []byte
	ManageHash  []byte
	CreatedAt   time.Time
}

// Public reports whether it is from the public.
func (s Subscription) Public() bool { return s.UserID == "" }

// Wants reports whether word of an incident of an endpoint is for this subscription. Manual incidents without endpoints are
// for those about everything.
func (s Subscription) Wants(e Endpoint, severity Status) bool {
	return (s.Severities == nil || slices.Contains(s.Severities, severity)) && s.about(e)
}

// about reports whether the subscription is about an endpoint; the zero one stands for what is about none.
func (s Subscription) about(e Endpoint) bool {
	return s.All || slices.Contains(s.Endpoints, e.ID) ||
		slices.ContainsFunc(e.Tags, func(tag string) bool { return slices.Contains(s.Tags, tag) })
}

// Quiet is a part of the day in which somebody does not want to hear anything.
type Quiet struct {
	From string `json:"from"` // "22:00"
	To   string `json:"to"`   // "07:00"; before From: of the next day
	Zone string `json:"zone"` // of the IANA time zone database
}

// Until returns when the quiet hours end that at lies in; false when it lies in none.
func (q Quiet) Until(at time.Time) (time.Time, bool) {
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		return time.Time{}, false
	}
	local := at.In(zone)
	from, to := clock(q.From), clock(q.To)
	if from < 0 || to < 0 || from == to {
		return time.Time{}, false
	}
	minute := local.Hour()*60 + local.Minute()
	end := func(days int) time.Time {
		return time.Date(local.Year(), local.Month(), local.Day()+days, to/60, to%60, 0, 0, zone)
	}
	var until time.Time
	switch {
	case from < to && minute >= from && minute < to, from > to && minute < to:
		until = end(0)
	case from > to && minute >= from:
		until = end(1)
	}
	return until, until.After(at) // not so where the clock is set in between
}

// clock returns the minute of the day that "22:00" is, -1 when it is none.
func clock(text string) int {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return -1
	}
	return t.Hour()*60 + t.Minute()
}

// MaxSubscribed bounds the endpoints and the tags that one subscription may name.
const MaxSubscribed = 100

// Validate returns everything that is wrong with s as an Invalid.
func (s Subscription) Validate() error { return s.validate(false) }

// coversNothing reports whether s is about nothing at all, as when all the endpoints that it named are gone.
func (s Subscription) coversNothing() bool { return !s.All && len(s.Endpoints)+len(s.Tags) == 0 }

func (s Subscription) validate(mayCoverNothing bool) error {
	var problems []probe.Problem
	add := func(field, format string, args ...any) { problems = append(problems, problem(field, format, args...)) }
	if err := s.Channel.Validate(); err != nil {
		if bad, ok := err.(Invalid); ok { //nolint:errorlint // Validate returns nothing else
			problems = append(problems, bad.Problems...)
		}
	}
	if !slices.Contains([]ChannelType{ChannelEmail, ChannelWebhook, ChannelSlack}, s.Channel.Type) {
		add("type", "must be email, webhook or slack")
	}
	if s.PageID != "" && !s.Public() {
		add("page", "is of those who subscribe on it, not of members")
	}
	if s.coversNothing() && !mayCoverNothing {
		add("endpoints", "are required, or tags, or all")
	}
	if len(s.Endpoints) > MaxSubscribed || len(s.Tags) > MaxSubscribed {
		add("endpoints", "and tags are at most %d each", MaxSubscribed)
	}
	for i, severity := range s.Severities {
		if !slices.Contains(Severities(), severity) {
			add(fmt.Sprintf("severities[%d]", i), "must be one of down, gated, unknown and degraded")
		}
	}
	if q := s.Quiet; q != nil {
		if clock(q.From) < 0 || clock(q.To) < 0 || q.From == q.To {
			add("quiet", "must be from and to another time of day, like 22:00")
		}
		if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == "" {
			add("quiet.zone", "must be a time zone like Europe/Berlin")
		}
	}
	return invalid(problems)
}

// SubscriptionFilter selects subscriptions. Zero members do not select.
type SubscriptionFilter struct {
	UserID     string
	PublicOnly bool
	PageID     *string // of the public on that page; "" is the built-in one
	Address    string  // an email address or a URL, as AddressHash compares them
	Since      time.Time
	Limit      int
	Cursor     string
}
