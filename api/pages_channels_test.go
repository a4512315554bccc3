package api_test

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// previewed is what a template makes of a message on the pages of these tests.
func previewed(text, kind string) (string, error) {
	if text == "{{" {
		return "", errors.New("unexpected end")
	}
	return "<b>" + kind + "</b> by " + text, nil
}

// channelForm is what the form of a channel sends.
func channelForm(name string, groups ...map[string]string) url.Values {
	form := url.Values{"name": {name}}
	for _, group := range groups {
		for field, value := range group {
			form.Set(field, value)
		}
	}
	return form
}

func TestAChannelOfEveryTypeIsAddedAndEditedOnThePages(t *testing.T) {
	s := newSite(t)
	s.setUp()
	for _, spec := range store.ChannelSpecs() {
		t.Run(string(spec.Type), func(t *testing.T) {
			s.t = t
			add := s.get("/channels?type=" + string(spec.Type))
			if add.field("type") != string(spec.Type) || !strings.Contains(add.text, spec.Title) {
				t.Fatalf("the form to add one is of type %q: %s", add.field("type"), add.text)
			}
			for _, f := range spec.Fields {
				if (add.kind(f.Name) == "password") != f.Secret || add.control(f.Name) == nil {
					t.Errorf("%s: there is no field for it, or secrecy is %v where it is %v", f.Name, !f.Secret, f.Secret)
				}
			}

			fields := mixed(examples[spec.Type].fields, map[string]string{"template": "{{.Title}}\r\n{{.Said}}"})
			typed := channelForm("", fields, map[string]string{"type": string(spec.Type)})
			bad := s.post("/channels", typed)
			if bad.status != http.StatusUnprocessableEntity || !strings.Contains(bad.body, `href="#f-name"`) {
				t.Fatalf("without a name: got %d: %s", bad.status, bad.text)
			}
			fields["template"] = "{{.Title}}\n{{.Said}}"
			for name, value := range fields {
				if bad.field(name) != value {
					t.Errorf("%s: %q was typed and %q is left", name, value, bad.field(name))
				}
			}
			typed.Set("name", "on "+string(spec.Type))
			if got := s.post("/channels", typed); got.status != http.StatusSeeOther {
				t.Fatalf("add: got %d: %s", got.status, got.text)
			}

			id := s.channelNamed("on " + string(spec.Type)).ID
			if diff := cmp.Diff(fields, kept(t, s.store, id)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			page := s.get("/channels/" + id)
			saved := channelForm("renamed "+string(spec.Type), map[string]string{"action": "save"})
			for _, f := range spec.Fields {
				want := fields[f.Name]
				if f.Secret {
					want = ""
				}
				if page.field(f.Name) != want {
					t.Errorf("%s: the form shows %q, want %q", f.Name, page.field(f.Name), want)
				}
				saved.Set(f.Name, page.field(f.Name))
			}
			if list := s.get("/channels"); strings.Contains(list.body+page.body, "hush") {
				t.Error("a page shows a secret")
			}
			if got := s.post("/channels/"+id, saved); got.status != http.StatusSeeOther {
				t.Fatalf("save: got %d: %s", got.status, got.text)
			}
			if diff := cmp.Diff(fields, kept(t, s.store, id)); diff != "" {
				t.Errorf("kept with its secrets left empty (-want +got):\n%s", diff)
			}

			name, value := "", ""
			for name, value = range examples[spec.Type].bad {
				saved.Set(name, value)
			}
			wrong := s.post("/channels/"+id, saved)
			if wrong.status != http.StatusUnprocessableEntity || wrong.field(name) != value ||
				attribute(wrong.control(name), "aria-invalid") != "true" || !strings.Contains(wrong.body, `href="#`+web.FieldID(name)+`"`) {
				t.Errorf("%s that cannot be: got %d, %q left: %s", name, wrong.status, wrong.field(name), wrong.text)
			}
		})
	}
}

func (s *site) channelNamed(name string) store.Channel {
	s.t.Helper()
	channels, err := s.store.Channels(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range channels {
		if c.Name == name {
			return c
		}
	}
	s.t.Fatalf("there is no channel %q among %d", name, len(channels))
	return store.Channel{}
}

func TestAListSaysHowEachChannelIsReached(t *testing.T) {
	s := newSite(t)
	s.setUp()
	for t, words := range map[store.ChannelType]string{
		store.ChannelSlack:     "Slack · channel #alerts, at chat.example",
		store.ChannelEmail:     "Email · to ops@example.com, Ada <ada@example.com>",
		store.ChannelDiscord:   "Discord · by webhook URL",
		store.ChannelTelegram:  "Telegram · chat -100, topic 42, at bots.example",
		store.ChannelPagerDuty: "PagerDuty · at events.eu.pagerduty.com",
	} {
		s.post("/channels", channelForm(string(t), examples[t].fields, map[string]string{"type": string(t)}))
		if got := s.get("/channels").text; !strings.Contains(got, words) {
			s.t.Errorf("the list does not say %q: %s", words, got)
		}
	}
	s.post("/channels", channelForm("key", map[string]string{"type": "opsgenie", "api_key": "hush"}))
	if got := s.get("/channels").text; !strings.Contains(got, "Opsgenie · by API key") {
		t.Errorf("of a channel with nothing but a key it says: %s", got)
	}
}

func TestASlackChannelChangesFromItsWebhookToABot(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.post("/channels", channelForm("ops", map[string]string{"type": "slack", "webhook_url": webhook}))
	path := "/channels/" + s.channelNamed("ops").ID
	bot := channelForm("ops", map[string]string{"action": "save", "bot_token": "xoxb-hush", "channel": "#alerts"})
	if got := s.post(path, bot); got.status != http.StatusUnprocessableEntity || got.field("bot_token") != "xoxb-hush" || got.kind("bot_token") != "password" {
		t.Errorf("with both: got %d: %s", got.status, got.text)
	}
	if got := s.post(path, with(bot, "remove_webhook_url", "yes")); got.status != http.StatusSeeOther {
		t.Fatalf("with the webhook removed: got %d: %s", got.status, got.text)
	}
	want := map[string]string{"bot_token": "xoxb-hush", "channel": "#alerts"}
	if diff := cmp.Diff(want, kept(t, s.store, strings.TrimPrefix(path, "/channels/"))); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestATemplateIsPreviewedOnThePageAndNothingTypedIsLost(t *testing.T) {
	s := newSite(t)
	s.setUp()
	typed := channelForm("ops", examples[store.ChannelWebhook].fields, map[string]string{"type": "webhook"})
	s.post("/channels", typed)
	path := "/channels/" + s.channelNamed("ops").ID
	before := kept(t, s.store, strings.TrimPrefix(path, "/channels/"))
	for _, at := range []string{"/channels", path} {
		got := s.post(at, with(maps.Clone(typed), "action", "preview", "name", "other", "template", "{{.Title}}", "kind", "resolved"))
		if got.status != http.StatusOK || !strings.Contains(got.text, "<b>resolved</b> by {{.Title}}") || got.field("kind") != "resolved" ||
			got.field("webhook_url") != typed.Get("webhook_url") || got.field("name") != "other" || got.field("template") != "{{.Title}}" {
			t.Errorf("%s: got %d: %s", at, got.status, got.text)
		}
		for _, template := range []string{"{{", ""} {
			bad := s.post(at, with(maps.Clone(typed), "action", "preview", "template", template, "kind", "gossip"))
			if bad.status != http.StatusUnprocessableEntity || !strings.Contains(bad.body, `href="#f-template"`) || bad.field("kind") != "opened" {
				t.Errorf("%s with template %q: got %d: %s", at, template, bad.status, bad.text)
			}
		}
	}
	channels, err := s.store.Channels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, kept(t, s.store, channels[0].ID)); diff != "" || len(channels) != 1 {
		t.Errorf("a preview left %d channels and changed (-want +got):\n%s", len(channels), diff)
	}
}

func TestAFormOfNoTypeAddsNothing(t *testing.T) {
	s := newSite(t)
	s.setUp()
	for _, kind := range []string{"", "pigeon"} {
		if got := s.post("/channels", channelForm("ops", map[string]string{"type": kind, "to": "ops@example.com"})); got.status != http.StatusBadRequest {
			t.Errorf("type %q: got %d: %s", kind, got.status, got.text)
		}
		if got := s.get("/channels?type=" + kind); got.status != http.StatusOK || got.field("type") != "slack" {
			t.Errorf("the page for type %q: got %d with a form for %q", kind, got.status, got.field("type"))
		}
	}
}
