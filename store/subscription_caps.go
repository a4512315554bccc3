package store

import (
	"crypto/hmac"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// SubscriptionCaps bound how many confirmed subscriptions the public may have, so that strangers cannot make a tool for flooding
// of us: each outage is as many messages.
type SubscriptionCaps struct {
	Mailed int // by email
	Posted int // by webhook and Slack webhook together
	There  int // of those, at one Receiver
}

// DefaultSubscriptionCaps are more than the subscribers of a well-known service, and what a receiver hardly notices.
var DefaultSubscriptionCaps = SubscriptionCaps{Mailed: 50_000, Posted: 1000, There: 20}

// Crowd is how many confirmed subscriptions of the public share each cap with one of them, which is not counted.
type Crowd SubscriptionCaps

// What there is no room for.
var (
	ErrFull      = errors.New("there are as many subscriptions as there is room for")
	ErrFullThere = errors.New("there are as many subscriptions at this receiver as there is room for")
)

// Refuse returns ErrFull or ErrFullThere when there is no room for s beside those that are there.
func (c SubscriptionCaps) Refuse(s Subscription, there Crowd) error {
	switch mailed := s.Channel.Type == ChannelEmail; {
	case mailed && there.Mailed >= c.Mailed, !mailed && there.Posted >= c.Posted:
		return ErrFull
	case !mailed && there.There >= c.There:
		return ErrFullThere
	}
	return nil
}

// CrowdAt returns the Crowd of s among the channels of all confirmed subscriptions of the public that are posted to.
func CrowdAt(s Subscription, posted []Channel) Crowd {
	posted = slices.DeleteFunc(posted, func(c Channel) bool { return c.ID == s.ID })
	crowd := Crowd{Posted: len(posted)}
	for _, c := range posted {
		if (Subscription{Channel: c}).Receiver() == s.Receiver() {
			crowd.There++
		}
	}
	return crowd
}

// slackHosts have the workspace as the second part of each path: /services/T…/B…/….
var slackHosts = []string{"hooks.slack.com", "hooks.slack-gov.com"}

// Receiver names who stands behind the URL of a subscription: its host, or the workspace where that is Slack's. It is empty for
// what is not posted to a URL.
func (s Subscription) Receiver() string {
	u, err := url.Parse(s.Channel.Value("webhook_url"))
	if err != nil {
		return ""
	}
	host := strings.TrimSuffix(Fold(u.Hostname()), ".")
	isPart := func(r rune) bool { return r == '/' }
	if parts := strings.FieldsFunc(u.Path, isPart); slices.Contains(slackHosts, host) && len(parts) > 1 {
		return host + "/" + Fold(parts[1])
	}
	return host
}

// Confirms reports whether a hash is that of the secret which confirms s.
func (s Subscription) Confirms(hash []byte) bool {
	return s.Public() && s.ConfirmedAt == nil && len(s.ConfirmHash) > 0 && hmac.Equal(s.ConfirmHash, hash)
}

// Confirm returns s as it is once somebody has proved by a secret with this hash that they want it. Errors are those of
// Store.ConfirmSubscription.
func (s Subscription) Confirm(hash []byte, there Crowd, caps SubscriptionCaps, at time.Time) (Subscription, error) {
	if !s.Confirms(hash) {
		return Subscription{}, ErrNotFound
	}
	if err := caps.Refuse(s, there); err != nil {
		return Subscription{}, err
	}
	at = Stamp(at)
	s.ConfirmedAt, s.ConfirmHash = &at, nil
	return s, nil
}
