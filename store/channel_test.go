package store_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// filledChannel returns a channel of a type with something valid in every field that it needs.
func filledChannel(spec store.ChannelSpec) store.Channel {
	c := store.Channel{Name: "ops", Type: spec.Type, Settings: map[string]string{}, Secrets: map[string]string{}}
	for _, f := range spec.Fields {
		if f.Required || spec.Type == store.ChannelSlack && f.Name == "webhook_url" {
			set(c, f, valueFor(f))
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

func valueFor(f store.ChannelField) string {
	switch {
	case f.Kind == store.FieldURL:
		return "https://hooks.example/x"
	case f.Name == "to":
		return "ops@example.com"
	case f.Kind == store.FieldChoice:
		return f.Choices[0]
	case f.Name == "signing_secret":
		return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))
	}
	return "value"
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
			set(c, f, valueFor(f))
			if err := c.Validate(); !slices.Contains(fields(err), f.Name) {
				t.Errorf("%s with %s kept as what it is not: %v", spec.Type, f.Name, err)
			}
		}
		c := base
		c.Settings = map[string]string{"other": "x"}
		maps.Copy(c.Settings, base.Settings)
		if diff := cmp.Diff(fields(c.Validate()), []string{"other"}); diff != "" {
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
		if diff := cmp.Diff(fields(test.channel.Validate()), test.fields); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
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
