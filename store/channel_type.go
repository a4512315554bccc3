package store

import (
	"encoding/base64"
	"errors"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
)

// ChannelType says who delivers.
type ChannelType string

// The types of channels. Types are stored as they are and never renamed.
const (
	ChannelSlack      ChannelType = "slack"
	ChannelEmail      ChannelType = "email"
	ChannelWebhook    ChannelType = "webhook"
	ChannelPagerDuty  ChannelType = "pagerduty"
	ChannelOpsgenie   ChannelType = "opsgenie"
	ChannelDiscord    ChannelType = "discord"
	ChannelTeams      ChannelType = "teams"
	ChannelTelegram   ChannelType = "telegram"
	ChannelNtfy       ChannelType = "ntfy"
	ChannelMattermost ChannelType = "mattermost"
)

// ChannelSpec says what a type of channel is made of. What is shown, read, checked and kept of a channel follows from it.
type ChannelSpec struct {
	Type   ChannelType
	Title  string // as its makers write it
	Fields []ChannelField
	check  func(Channel) []probe.Problem // what is wrong beyond the single fields; nil: nothing
}

// ChannelField is one setting of a channel: a member of its JSON and a field of its form.
type ChannelField struct {
	Name        string // as in JSON
	Label       string
	Hint        string // a sentence; may be empty
	Placeholder string
	Kind        FieldKind
	Secret      bool // encrypted at rest and never given out
	Required    bool
	Choices     []string // of FieldChoice
	shape       *shape   // that a value has; nil: any
}

// shape is what a value of a field looks like, and what a problem says of one that does not.
type shape struct {
	pattern *regexp.Regexp
	problem string
}

// Shapes of what services give out to be copied. A value that lost a part on the way, or is another one, would never bring anything.
var (
	pagerDutyKey   = &shape{regexp.MustCompile(`^[A-Za-z0-9]{32}$`), "must be the 32 letters and digits of an Events API v2 integration's key: copy it again"}
	telegramToken  = &shape{regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{10,100}$`), "must look like 123456789:AA…: copy it again"}
	telegramChatID = &shape{regexp.MustCompile(`^(-?[0-9]{1,18}|@[A-Za-z][A-Za-z0-9_]{3,31})$`), "must be a number like -1001234567890, or the name of a public chat like @channel"}
	telegramTopic  = &shape{regexp.MustCompile(`^[0-9]{1,9}$`), "must be a number: it stands at the end of a link to the topic"}
	ntfyTopic      = &shape{regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`), "must be a name of at most 64 letters, digits, - and _, without the server's address"}
)

// FieldKind says what a field holds.
type FieldKind int

// The kinds of fields.
const (
	FieldText   FieldKind = iota // one line
	FieldURL                     // an http or https URL
	FieldLong                    // several lines
	FieldChoice                  // one of ChannelField.Choices
)

func (f ChannelField) limit() int {
	if f.Kind == FieldLong {
		return MaxTemplate
	}
	return 2048
}

// MaxTemplate bounds the template of a channel, in bytes.
const MaxTemplate = 16 << 10

// ChannelSpecs returns what every type is made of, the most used first.
func ChannelSpecs() []ChannelSpec { return slices.Clone(channelSpecs) }

// Spec returns what the type is made of, false for an unknown one.
func (t ChannelType) Spec() (ChannelSpec, bool) {
	i := slices.IndexFunc(channelSpecs, func(s ChannelSpec) bool { return s.Type == t })
	if i < 0 {
		return ChannelSpec{}, false
	}
	return channelSpecs[i], true
}

// Field returns a field by its name, false when the type has none of that name.
func (s ChannelSpec) Field(name string) (ChannelField, bool) {
	i := slices.IndexFunc(s.Fields, func(f ChannelField) bool { return f.Name == name })
	if i < 0 {
		return ChannelField{}, false
	}
	return s.Fields[i], true
}

// template is the field that every type has: the words of its messages.
var template = ChannelField{
	Name: "template", Label: "Template", Kind: FieldLong,
	Hint: "Words of your own in place of ours, as a Go text/template. Leave it empty to keep ours.",
}

var channelSpecs = []ChannelSpec{
	{Type: ChannelSlack, Title: "Slack", check: slackProblems, Fields: []ChannelField{
		{Name: "webhook_url", Label: "Webhook URL", Kind: FieldURL, Secret: true, Placeholder: "https://hooks.slack.com/services/…",
			Hint: "Of an incoming webhook. Or leave it empty and give a bot token."},
		{Name: "bot_token", Label: "Bot token", Secret: true, Placeholder: "xoxb-…",
			Hint: "Of an app with the scope chat:write: one message per incident, updated in place, with buttons."},
		{Name: "channel", Label: "Channel", Placeholder: "#alerts", Hint: "With a bot token: name or id of the channel. Invite the bot to it."},
		{Name: "signing_secret", Label: "Signing secret", Secret: true,
			Hint: "Of the app, for its buttons and /rollcall. Its request URL is this service's address with /slack/actions and /slack/command."},
		{Name: "api_url", Label: "API URL", Kind: FieldURL, Placeholder: "https://slack.com/api/", Hint: "With a bot token: of a server that speaks like Slack."},
		template,
	}},
	{Type: ChannelEmail, Title: "Email", check: emailProblems, Fields: []ChannelField{
		{Name: "to", Label: "To", Required: true, Placeholder: "ops@example.com, oncall@example.com", Hint: "Addresses, with commas between them."},
		template,
	}},
	{Type: ChannelWebhook, Title: "Webhook", check: webhookProblems, Fields: []ChannelField{
		{Name: "webhook_url", Label: "URL", Kind: FieldURL, Secret: true, Required: true, Placeholder: "https://example.com/hooks/rollcall"},
		{Name: "signing_secret", Label: "Signing secret", Secret: true, Placeholder: "whsec_…",
			Hint: "Requests are signed with it as Standard Webhooks says. whsec_ and 24 to 64 bytes in base64."},
		template,
	}},
	{Type: ChannelPagerDuty, Title: "PagerDuty", Fields: []ChannelField{
		{Name: "routing_key", Label: "Integration key", Secret: true, Required: true, shape: pagerDutyKey, Hint: "Of an Events API v2 integration."},
		{Name: "api_url", Label: "API URL", Kind: FieldURL, Placeholder: "https://events.pagerduty.com", Hint: "https://events.eu.pagerduty.com in the EU."},
		template,
	}},
	{Type: ChannelOpsgenie, Title: "Opsgenie", Fields: []ChannelField{
		{Name: "api_key", Label: "API key", Secret: true, Required: true, Hint: "Of an API integration, in Opsgenie or in Jira Service Management."},
		{Name: "api_url", Label: "API URL", Kind: FieldURL, Placeholder: "https://api.opsgenie.com",
			Hint: "https://api.eu.opsgenie.com in the EU, https://api.atlassian.com/jsm/ops/integration for Jira Service Management."},
		template,
	}},
	{Type: ChannelDiscord, Title: "Discord", Fields: []ChannelField{
		{Name: "webhook_url", Label: "Webhook URL", Kind: FieldURL, Secret: true, Required: true, Placeholder: "https://discord.com/api/webhooks/…"},
		template,
	}},
	{Type: ChannelTeams, Title: "Microsoft Teams", Fields: []ChannelField{
		{Name: "webhook_url", Label: "Workflow URL", Kind: FieldURL, Secret: true, Required: true,
			Hint: "Of the workflow “Post to a channel when a webhook request is received”."},
		template,
	}},
	{Type: ChannelTelegram, Title: "Telegram", Fields: []ChannelField{
		{Name: "bot_token", Label: "Bot token", Secret: true, Required: true, shape: telegramToken, Placeholder: "123456789:AA…"},
		{Name: "chat_id", Label: "Chat", Required: true, shape: telegramChatID, Placeholder: "-1001234567890 or @channel"},
		{Name: "topic", Label: "Topic", shape: telegramTopic, Placeholder: "42", Hint: "The id of a topic of the group; empty for none."},
		{Name: "api_url", Label: "API URL", Kind: FieldURL, Placeholder: "https://api.telegram.org", Hint: "Of a Bot API server of your own."},
		template,
	}},
	{Type: ChannelNtfy, Title: "ntfy", Fields: []ChannelField{
		{Name: "topic", Label: "Topic", Secret: true, Required: true, shape: ntfyTopic, Hint: "Who knows it can read along: it is kept like a password."},
		{Name: "access_token", Label: "Access token", Secret: true, Placeholder: "tk_…", Hint: "Where the server wants one."},
		{Name: "api_url", Label: "Server", Kind: FieldURL, Placeholder: "https://ntfy.sh"},
		template,
	}},
	{Type: ChannelMattermost, Title: "Mattermost", Fields: []ChannelField{
		{Name: "webhook_url", Label: "Webhook URL", Kind: FieldURL, Secret: true, Required: true, Placeholder: "https://mattermost.example.com/hooks/…"},
		{Name: "channel", Label: "Channel", Placeholder: "alerts", Hint: "Another one than the webhook's own."},
		template,
	}},
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
		for _, field := range []string{"channel", "api_url", "signing_secret"} {
			if c.Value(field) != "" {
				problems = append(problems, problem(field, "goes with bot_token only"))
			}
		}
	case c.Settings["channel"] == "":
		problems = append(problems, problem("channel", "is required with a bot_token, like #alerts or C0123456789"))
	}
	return problems
}

// MaxRecipients bounds the addresses of one email channel.
const MaxRecipients = 20

var errOddAddress = errors.New("an address holds what addresses rarely do: quotes, blanks, brackets or commas")

// Recipients returns the addresses of a list with commas, without names; an error says what is wrong with it.
func Recipients(list string) ([]string, error) {
	parsed, err := mail.ParseAddressList(list)
	if err != nil {
		return nil, err
	}
	addresses := make([]string, 0, len(parsed))
	for _, a := range parsed {
		// What only stands in quotes, or names a machine by number, could be read as several addresses, or as more than one.
		if strings.ContainsAny(a.Address, "<>\"(),:;[]\\ \t") || strings.Count(a.Address, "@") != 1 {
			return nil, errOddAddress
		}
		if !slices.Contains(addresses, a.Address) {
			addresses = append(addresses, a.Address)
		}
	}
	return addresses, nil
}

func emailProblems(c Channel) []probe.Problem {
	list := c.Settings["to"]
	if list == "" {
		return nil // said already
	}
	addresses, err := Recipients(list)
	switch {
	case err != nil:
		return []probe.Problem{problem("to", "is not a list of email addresses with commas between them")}
	case len(addresses) > MaxRecipients:
		return []probe.Problem{problem("to", "names more than %d addresses: use a mailing list", MaxRecipients)}
	}
	return nil
}

// webhookProblems checks the form of a signing secret: https://github.com/standard-webhooks/standard-webhooks, "Signature scheme".
func webhookProblems(c Channel) []probe.Problem {
	secret := c.Secrets["signing_secret"]
	if secret == "" {
		return nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || !strings.HasPrefix(secret, "whsec_") || len(key) < 24 || len(key) > 64 {
		return []probe.Problem{problem("signing_secret", "must be whsec_ and 24 to 64 bytes in base64")}
	}
	return nil
}

// webURLProblems checks the address of a service that we send to. It may hold a secret and is not repeated.
func webURLProblems(field, raw string) []probe.Problem {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || len(raw) > 2048 {
		return []probe.Problem{problem(field, "must be an http or https URL with a host and without a user name")}
	}
	return nil
}
