package web

import "time"

// ChannelsPage lists the channels and adds one.
type ChannelsPage struct {
	Frame
	Channels []ChannelRow
	Form     ChannelForm
	Problems Problems
}

func (ChannelsPage) template() string { return "channels" }

// ChannelRow is one channel in a list.
type ChannelRow struct {
	ID, Name, Type string
	How            string // "incoming webhook", "bot in #alerts"
	Broken         string // why nothing more is sent, empty while it works
	BrokenAt       *time.Time
}

// ChannelForm is a Slack channel as somebody typed it.
type ChannelForm struct {
	Name       string
	How        string // "webhook" or "bot"
	WebhookURL string
	BotToken   string
	Channel    string
	APIURL     string
	// KeptWebhook and KeptToken say that the channel holds a secret that is kept while the field is empty.
	KeptWebhook, KeptToken bool
}

// ChannelPage edits, tests and removes one channel.
type ChannelPage struct {
	Frame
	Channel  ChannelRow
	Form     ChannelForm
	Problems Problems
	Tested   bool   // a test message was sent
	Failure  string // why it did not arrive, without secrets; empty when it did
}

func (ChannelPage) template() string { return "channel" }
