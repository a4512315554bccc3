package main

import (
	"context"
	"net/http"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/store"
)

// newSenders returns who delivers to each type of channel. What users name is reached through client, which decides what may be
// dialled; the mail server is ours.
func newSenders(client *http.Client, mail *alerts.EmailConfig) map[store.ChannelType]alerts.Sender {
	return map[store.ChannelType]alerts.Sender{
		store.ChannelSlack:      alerts.NewSlack(client),
		store.ChannelEmail:      newMailer(mail),
		store.ChannelWebhook:    alerts.NewWebhook(client),
		store.ChannelPagerDuty:  alerts.NewPagerDuty(client),
		store.ChannelOpsgenie:   alerts.NewOpsgenie(client),
		store.ChannelDiscord:    alerts.NewDiscord(client),
		store.ChannelTeams:      alerts.NewTeams(client),
		store.ChannelTelegram:   alerts.NewTelegram(client),
		store.ChannelNtfy:       alerts.NewNtfy(client),
		store.ChannelMattermost: alerts.NewMattermost(client),
	}
}

// newMailer returns who sends mail, or says that nobody does.
func newMailer(mail *alerts.EmailConfig) alerts.Sender {
	if mail == nil {
		return noMail{}
	}
	return alerts.NewEmail(*mail)
}

// noMail is the sender where no mail server is named.
type noMail struct{}

// Send implements alerts.Sender.
func (noMail) Send(context.Context, store.Channel, string, alerts.Message) (alerts.Receipt, error) {
	return alerts.Receipt{}, &alerts.PermanentError{Reason: "this service has no mail server: start it with --smtp and --mail-from"}
}
