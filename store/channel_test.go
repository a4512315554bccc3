package store_test

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// filledChannel returns a channel of a type with something valid in every field that it needs.
func filledChannel(spec store.ChannelSpec) store.Channel {
	c := store.Channel{Name: "ops", Type: spec.Type, Settings: map[string]string{}, Secrets: map[string]string{}}
	for _, f := range spec.Fields {
		if f.Required || spec.Type == store.ChannelSlack && f.Name == "webhook_url" {
			set(c, f, valueFor(spec, f))
		}
	}
	return c
}

func set(c store.Channel, f store.ChannelField, value string) {
	if f.Secret {
		c.Secrets[f.Name] = value
		return
	}
	c.Settings[f.Name] = value
}

func valueFor(spec store.ChannelSpec, f store.ChannelField) string {
	switch f.Kind {
	case store.FieldURL:
		return "https://hooks.example/x"
	case store.FieldChoice:
		return f.Choices[0]
	}
	return cmp.Or(map[string]string{
		"email to": "ops@example.com", "webhook signing_secret": "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24)),
		"pagerduty routing_key": strings.Repeat("R0", 16), "telegram bot_token": "123456789:AAHdqTcvCH1vGWJx", "telegram chat_id": "-1001234567890",
		"telegram topic": "42",
	}[string(spec.Type)+" "+f.Name], "value")
}

func TestChannelsOfEveryTypeAreChecked(t *testing.T) {
	for _, spec := range store.ChannelSpecs() {
		base := filledChannel(spec)
		if err := base.Validate(); err != nil {
			t.Errorf("%s with what it needs: %v", spec.Type, err)
		}
		for _, f := range spec.Fields {
			c := base
			c.Settings, c.Secrets = maps.Clone(base.Settings), maps.Clone(base.Secrets)
			set(c, f, strings.Repeat("s3cret", 4000))
			if err := c.Validate(); !slices.Contains(fields(err), f.Name) || strings.Contains(err.Error(), "s3crets3cret") {
				t.Errorf("%s with far too much in %s: %.200v, want a problem with it that does not repeat it", spec.Type, f.Name, err)
			}
			if f.Kind == store.FieldURL {
				set(c, f, "ftp://user:s3cret@host")
				if err := c.Validate(); !slices.Contains(fields(err), f.Name) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%s with an odd URL in %s: %v", spec.Type, f.Name, err)
				}
			}
			delete(c.Settings, f.Name)
			delete(c.Secrets, f.Name)
			if err := c.Validate(); f.Required != slices.Contains(fields(err), f.Name) && spec.Type != store.ChannelSlack {
				t.Errorf("%s without %s: %v, required: %v", spec.Type, f.Name, err, f.Required)
			}
			f.Secret = !f.Secret // in the wrong place
			set(c, f, valueFor(spec, f))
			if err := c.Validate(); !slices.Contains(fields(err), f.Name) {
				t.Errorf("%s with %s kept as what it is not: %v", spec.Type, f.Name, err)
			}
		}
		c := base
		c.Settings = map[string]string{"other": "x"}
		maps.Copy(c.Settings, base.Settings)
		if diff := gocmp.Diff(fields(c.Validate()), []string{"other"}); diff != "" {
			t.Errorf("%s with a field of another type (-got +want):\n%s", spec.Type, diff)
		}
	}
}

func TestWhatIsPeculiarToATypeOfChannel(t *testing.T) {
	long := strings.Repeat("a@example.com, ", store.MaxRecipients)
	for name, test := range map[string]struct {
		channel store.Channel
		fields  []string
	}{
		"two of one address": {store.Channel{Type: store.ChannelEmail, Settings: map[string]string{"to": "a@example.com, A <a@example.com>"}}, nil},
		"no addresses":       {store.Channel{Type: store.ChannelEmail, Settings: map[string]string{"to": "nobody"}}, []string{"to"}},
		"too many": {store.Channel{Type: store.ChannelEmail, Settings: map[string]string{
			"to": strings.Join(addresses(store.MaxRecipients+1), ", "),
		}}, []string{"to"}},
		"many of one":    {store.Channel{Type: store.ChannelEmail, Settings: map[string]string{"to": long + "a@example.com"}}, nil},
		"a short secret": {store.Channel{Type: store.ChannelWebhook, Secrets: map[string]string{"webhook_url": "https://a.example", "signing_secret": "whsec_AAAA"}}, []string{"signing_secret"}},
		"no prefix": {store.Channel{Type: store.ChannelWebhook, Secrets: map[string]string{
			"webhook_url": "https://a.example", "signing_secret": base64.StdEncoding.EncodeToString(make([]byte, 32)),
		}}, []string{"signing_secret"}},
		"a bot without a channel": {store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"bot_token": "x"}}, []string{"channel"}},
		"a webhook and more": {store.Channel{
			Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://a.example"}, Settings: map[string]string{"channel": "#a"},
		}, []string{"channel"}},
	} {
		test.channel.Name = "ops"
		if diff := gocmp.Diff(fields(test.channel.Validate()), test.fields); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestWhatServicesGiveOutHasAForm(t *testing.T) {
	telegram := func(field, value string) store.Channel {
		c := store.Channel{Type: store.ChannelTelegram, Secrets: map[string]string{"bot_token": "123456789:AAHdqTcvCH1vGWJx"},
			Settings: map[string]string{"chat_id": "-1001234567890"}}
		if field == "bot_token" {
			c.Secrets[field] = value
			return c
		}
		c.Settings[field] = value
		return c
	}
	ntfy := func(topic string) store.Channel {
		return store.Channel{Type: store.ChannelNtfy, Secrets: map[string]string{"topic": topic}}
	}
	pagerDuty := func(key string) store.Channel {
		return store.Channel{Type: store.ChannelPagerDuty, Secrets: map[string]string{"routing_key": key}}
	}
	for name, test := range map[string]struct {
		channel store.Channel
		want    string // in the problem; empty: it is good
	}{
		"a group":                  {telegram("chat_id", "-1001234567890"), ""},
		"a person":                 {telegram("chat_id", "42"), ""},
		"a public chat":            {telegram("chat_id", "@rollcall_alerts"), ""},
		"a chat without its @":     {telegram("chat_id", "rollcall_alerts"), "chat_id must be a number like -1001234567890, or the name"},
		"a link to a chat":         {telegram("chat_id", "https://t.me/rollcall"), "chat_id must be a number"},
		"a topic by name":          {telegram("topic", "general"), "topic must be a number: it stands at the end"},
		"half a token":             {telegram("bot_token", "AAHdqTcvCH1vGWJx"), "bot_token must look like 123456789:AA…"},
		"a token that leads away":  {telegram("bot_token", "1:AA/../../AAAAAAAA"), "bot_token must look like"},
		"a topic":                  {ntfy("rollcall-Xy_9"), ""},
		"the address of a topic":   {ntfy("https://ntfy.sh/rollcall"), "topic must be a name of at most 64 letters"},
		"a topic that is too long": {ntfy(strings.Repeat("a", 65)), "topic must be a name"},
		"a key":                    {pagerDuty("R015OVDRGSBYGUPK8LX9D3GSQCP5M4TT"), ""},
		"a key of the REST API":    {pagerDuty("u+wZ7yKbs3cret5SoB3y"), "routing_key must be the 32 letters and digits"},
	} {
		test.channel.Name = "ops"
		err := test.channel.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v repeats a secret", name, err)
		}
	}
}

func addresses(n int) []string {
	var all []string
	for i := range n {
		all = append(all, store.Numbered("a", i+1)+"@example.com")
	}
	return all
}
