package store

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Channel is where notices go. Secrets holds what must be encrypted at rest and is never shown.
type Channel struct {
	ID       string
	Name     string
	Type     ChannelType
	Settings map[string]string // what may be shown: "channel", "api_url"
	Secrets  map[string]string // what may not: "webhook_url", "bot_token"
	// Broken is why nothing more is sent here, in the channel's own words; empty while it works.
	Broken    string
	BrokenAt  *time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
}

// ChannelType says who delivers.
type ChannelType string

// ChannelSlack is Slack by incoming webhook ("webhook_url") or bot ("bot_token", "channel", optional "api_url").
const ChannelSlack ChannelType = "slack"

// channelTypes says what each type is made of. A type is added here and by a sender of its own in alerts.
var channelTypes = map[ChannelType]func(Channel) []probe.Problem{
	ChannelSlack: slackProblems,
}

// ChannelTypes lists the types there are, by name.
func ChannelTypes() []ChannelType {
	types := make([]ChannelType, 0, len(channelTypes))
	for t := range channelTypes {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// Validate returns everything that is wrong with c as an Invalid, nil when it can be kept. No problem repeats a secret.
func (c Channel) Validate() error {
	var problems []probe.Problem
	problems = append(problems, nameProblems("name", c.Name)...)
	check, ok := channelTypes[c.Type]
	if !ok {
		problems = append(problems, problem("type", "unknown channel type %.40q: use slack", c.Type))
		return invalid(problems)
	}
	return invalid(append(problems, check(c)...))
}

func slackProblems(c Channel) []probe.Problem {
	webhook, token := c.Secrets["webhook_url"], c.Secrets["bot_token"]
	var problems []probe.Problem
	switch {
	case webhook == "" && token == "":
		problems = append(problems, problem("webhook_url", "is required, or a bot_token with a channel"))
	case webhook != "" && token != "":
		problems = append(problems, problem("bot_token", "cannot be used together with webhook_url: choose one"))
	case webhook != "":
		problems = append(problems, webURLProblems("webhook_url", webhook)...)
		if c.Settings["channel"] != "" {
			problems = append(problems, problem("channel", "goes with bot_token only: a webhook has its own channel"))
		}
		if c.Settings["api_url"] != "" {
			problems = append(problems, problem("api_url", "goes with bot_token only"))
		}
	default:
		if c.Settings["channel"] == "" {
			problems = append(problems, problem("channel", "is required with a bot_token, like #alerts or C0123456789"))
		}
		if strings.ContainsAny(token, " \t\r\n") {
			problems = append(problems, problem("bot_token", "holds white space: copy it again"))
		}
		if u := c.Settings["api_url"]; u != "" {
			problems = append(problems, webURLProblems("api_url", u)...)
		}
	}
	return problems
}

// webURLProblems checks the address of a service that we send to. It may hold a secret and is not repeated.
func webURLProblems(field, raw string) []probe.Problem {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || len(raw) > 2048 {
		return []probe.Problem{problem(field, "must be an http or https URL with a host and without a user name")}
	}
	return nil
}
