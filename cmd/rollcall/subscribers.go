package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// unconfirmedFor is how long a subscription that nobody has confirmed is kept.
const unconfirmedFor = 48 * time.Hour

// pruneSubscriptions lets go of subscriptions that nobody has confirmed.
func (s *service) pruneSubscriptions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	_, err := s.store.PruneSubscriptions(ctx, time.Now().Add(-unconfirmedFor))
	return err
}

// askSubscriber asks an address whether it wants a subscription on a page, nil for the built-in one; nil from a webhook means that
// it does. confirmURL is empty for one that is subscribed already. What an address is asked holds one link: to confirm, or to manage.
func (s *service) askSubscriber(ctx context.Context, sub store.Subscription, page *store.StatusPage, confirmURL, manageURL string) error {
	if sub.Channel.Type == store.ChannelWebhook {
		return s.webhooks.Challenge(ctx, sub.Channel, store.NewID("challenge"), manageURL)
	}
	name := ""
	if page != nil {
		name = page.Name
	}
	return s.dispatcher.Ask(ctx, sub.Channel, alerts.NewQuestion(name, confirmURL, manageURL))
}

// subscribable are the types of channels by which the public may subscribe: mail only where there is a server for it.
func subscribable(c config) []store.ChannelType {
	types := []store.ChannelType{store.ChannelWebhook, store.ChannelSlack}
	if c.mail != nil {
		types = append([]store.ChannelType{store.ChannelEmail}, types...)
	}
	return types
}

// unsubscribeURL returns where the recipient of a delivery ends it with one click; empty where there is no such place.
func (s *service) unsubscribeURL(d store.Delivery) string {
	if d.Subscription == nil || s.cfg.publicURL == "" {
		return ""
	}
	return api.UnsubscribeURL(s.linkKey, s.cfg.publicURL, d.Page, d.Subscription.ID)
}

// unsubscribe ends the subscription of an address that refuses messages for good.
func (s *service) unsubscribe(ctx context.Context, subscriptionID, reason string) error {
	s.log.Info("subscription ended: its address refuses messages", "subscription", subscriptionID, "reason", reason)
	return s.store.DeleteSubscription(ctx, subscriptionID)
}

// channelBroken tells the other channels of one that is broken. Its own notice waits until it is mended.
func (s *service) channelBroken(ctx context.Context, c store.Channel, reason string) error {
	data, err := json.Marshal(map[string]string{"channel": c.ID, "name": c.Name, "type": string(c.Type), "reason": reason})
	if err != nil {
		return err
	}
	n, err := s.store.Announce(ctx, store.Event{
		At:       time.Now(),
		Kind:     store.EventChannelBroken,
		Severity: string(probe.RankWarning),
		Title:    fmt.Sprintf("Channel %s is broken", c.Name),
		Data:     data,
	})
	wake(s.noticed)(n > 0)
	return err
}
