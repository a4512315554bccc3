package api_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

const webhook = "https://hooks.slack.example/services/T000/B000/hush"

func TestAChannelTakesSecretsAndKeepsThemToItself(t *testing.T) {
	r := start(t)
	got := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "`+webhook+`"}`).want(http.StatusCreated).object()
	id, _ := got["id"].(string)
	delete(got, "created_at")
	delete(got, "updated_at")
	want := map[string]any{"id": id, "name": "ops", "type": "slack", "has_webhook_url": true, "has_bot_token": false, "has_signing_secret": false}
	if diff := cmp.Diff(want, got); diff != "" || !strings.HasPrefix(id, "ch") {
		t.Errorf("a fresh channel (-want +got):\n%s", diff)
	}
	r.ask("PATCH", "/api/v1/channels/"+id, `{"name": "on call"}`).want(http.StatusOK)
	kept, err := r.store.Channel(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Name != "on call" || kept.Secrets["webhook_url"] != webhook {
		t.Errorf("kept as %+v", kept)
	}
	bot := r.ask("PATCH", "/api/v1/channels/"+id, `{"webhook_url": null, "bot_token": "xoxb-hush", "channel": "#alerts"}`).want(http.StatusOK).object()
	if bot["has_webhook_url"] != false || bot["has_bot_token"] != true || bot["channel"] != "#alerts" {
		t.Errorf("after the change: %v", bot)
	}

	slug := r.register(`{"url": "https://a.example", "name": "a", "channels": ["` + id + `"]}`)
	r.ask("DELETE", "/api/v1/channels/"+id, "").want(http.StatusNoContent)
	if got := r.get("/api/v1/endpoints/" + slug).object()["channels"]; len(got.([]any)) != 0 {
		t.Errorf("the endpoint still names %v", got)
	}
	r.ask("DELETE", "/api/v1/channels/"+id, "").want(http.StatusNotFound)
	r.ask("PATCH", "/api/v1/channels/"+id, `{"name": "x"}`).want(http.StatusNotFound)
}

func TestAChannelWithMistakesIsRefused(t *testing.T) {
	r := start(t)
	r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "`+webhook+`"}`).want(http.StatusCreated)
	tests := []struct {
		body   string
		status int
		fields []string
	}{
		{`{}`, 422, []string{"name", "type"}},
		{`{"name": "x", "type": "pigeon"}`, 422, []string{"type"}},
		{`{"name": "x", "type": "slack"}`, 422, []string{"webhook_url"}},
		{`{"name": 1, "type": "slack", "webhook_url": "ftp://hush", "id": "ch_1", "color": "red"}`, 422, []string{"name", "id", "color", "webhook_url"}},
		{`{"name": "x", "type": "slack", "bot_token": "xoxb hush"}`, 422, []string{"bot_token", "channel"}},
		{`{"name": "OPS", "type": "slack", "webhook_url": "` + webhook + `"}`, 409, []string{"name"}},
		{`{"name": "OPS", "type": "slack", "webhook_url": "ftp://hush"}`, 422, []string{"webhook_url", "name"}},
	}
	for _, test := range tests {
		reply := r.ask("POST", "/api/v1/channels", test.body).want(test.status)
		if diff := cmp.Diff(test.fields, reply.mistakes()); diff != "" {
			t.Errorf("%s: mistakes named (-want +got):\n%s", test.body, diff)
		}
		if strings.Contains(reply.body, "hush") {
			t.Errorf("%s: the answer repeats a secret: %s", test.body, reply.body)
		}
	}
}

func TestATestMessageSaysWhyItDidNotArrive(t *testing.T) {
	r := start(t)
	id, _ := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "`+webhook+`"}`).object()["id"].(string)
	r.ask("POST", "/api/v1/channels/"+id+"/test", "").want(http.StatusNoContent)
	locked(r, func() any { r.tested = errors.New("slack: no_service"); return nil })
	reply := r.ask("POST", "/api/v1/channels/"+id+"/test", "").want(http.StatusBadGateway)
	reply.mistakes()
	if got := reply.object()["detail"]; got != "slack: no_service" {
		t.Errorf("detail is %q", got)
	}
	r.ask("POST", "/api/v1/channels/not-there/test", "").want(http.StatusNotFound)
}

// example is a channel of one type with every field set that can be set together.
type example struct {
	fields map[string]string
	rename map[string]string // one secret of it, changed
	bad    map[string]string // an address that cannot be one, and the only mistake
	lacks  []string          // what is missing of a channel of which only the name and the type are given
}

const signing = "whsec_aHVzaC1odXNoLWh1c2gtaHVzaC1odXNoLWh1c2g="

var examples = map[store.ChannelType]example{
	store.ChannelSlack: {
		fields: map[string]string{"bot_token": "xoxb-hush", "channel": "#alerts", "signing_secret": "hush-signing", "api_url": "https://chat.example/api/"},
		rename: map[string]string{"bot_token": "xoxb-hush-2"},
		bad:    map[string]string{"api_url": "ftp://chat.example"},
		lacks:  []string{"webhook_url"},
	},
	store.ChannelEmail: {
		fields: map[string]string{"to": "ops@example.com, Ada <ada@example.com>"},
		bad:    map[string]string{"to": "nobody"},
		lacks:  []string{"to"},
	},
	store.ChannelWebhook: {
		fields: map[string]string{"webhook_url": "https://a.example/hush", "signing_secret": signing},
		rename: map[string]string{"signing_secret": "whsec_aHVzaC1odXNoLWh1c2gtaHVzaC1odXNoLWh1c3M="},
		bad:    map[string]string{"webhook_url": "//a.example/hush"},
		lacks:  []string{"webhook_url"},
	},
	store.ChannelPagerDuty: {
		fields: map[string]string{"routing_key": "hush0000000000000000000000000000", "api_url": "https://events.eu.pagerduty.com"},
		rename: map[string]string{"routing_key": "hush0000000000000000000000000002"},
		bad:    map[string]string{"routing_key": "hush-key", "api_url": "https://me@events.example"},
		lacks:  []string{"routing_key"},
	},
	store.ChannelOpsgenie: {
		fields: map[string]string{"api_key": "hush-key", "api_url": "https://api.eu.opsgenie.com"},
		rename: map[string]string{"api_key": "hush-key-2"},
		bad:    map[string]string{"api_url": "api.eu.opsgenie.com"},
		lacks:  []string{"api_key"},
	},
	store.ChannelDiscord: {
		fields: map[string]string{"webhook_url": "https://discord.com/api/webhooks/1/hush"},
		rename: map[string]string{"webhook_url": "https://discord.com/api/webhooks/2/hush"},
		bad:    map[string]string{"webhook_url": "javascript:hush"},
		lacks:  []string{"webhook_url"},
	},
	store.ChannelTeams: {
		fields: map[string]string{"webhook_url": "https://teams.example/workflows/hush"},
		rename: map[string]string{"webhook_url": "https://teams.example/workflows/hush-2"},
		bad:    map[string]string{"webhook_url": "https://"},
		lacks:  []string{"webhook_url"},
	},
	store.ChannelTelegram: {
		fields: map[string]string{"bot_token": "1:hush-hush-hush", "chat_id": "-100", "topic": "42", "api_url": "https://bots.example"},
		rename: map[string]string{"bot_token": "2:hush-hush-hush"},
		bad:    map[string]string{"bot_token": "hush", "chat_id": "ops", "topic": "general", "api_url": "file:///etc"},
		lacks:  []string{"bot_token", "chat_id"},
	},
	store.ChannelNtfy: {
		fields: map[string]string{"topic": "hush-topic", "access_token": "tk_hush", "api_url": "https://ntfy.example"},
		rename: map[string]string{"access_token": "tk_hush_2"},
		bad:    map[string]string{"topic": "https://ntfy.sh/hush", "api_url": "mailto:a@example.com"},
		lacks:  []string{"topic"},
	},
	store.ChannelMattermost: {
		fields: map[string]string{"webhook_url": "https://chat.example/hooks/hush", "channel": "alerts"},
		rename: map[string]string{"webhook_url": "https://chat.example/hooks/hush-2"},
		bad:    map[string]string{"webhook_url": "chat.example/hooks/hush"},
		lacks:  []string{"webhook_url"},
	},
}

// body is a JSON object of members, with name and type.
func body(t *testing.T, name string, kind store.ChannelType, groups ...map[string]string) string {
	t.Helper()
	members := map[string]string{"name": name, "type": string(kind)}
	for _, group := range groups {
		maps.Copy(members, group)
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kept returns what the store has of a channel by the names of its fields.
func kept(t *testing.T, s store.Store, id string) map[string]string {
	t.Helper()
	c, err := s.Channel(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return mixed(c.Settings, c.Secrets)
}

func TestEveryTypeOfChannelGoesInAndComesOutWithoutItsSecrets(t *testing.T) {
	const words = "{{.Title}}\n<b>"
	for _, spec := range store.ChannelSpecs() {
		t.Run(string(spec.Type), func(t *testing.T) {
			example, there := examples[spec.Type]
			if !there {
				t.Fatal("there is no example of it")
			}
			r := start(t)
			fields := maps.Clone(example.fields)
			fields["template"] = words
			got := r.ask("POST", "/api/v1/channels", body(t, "ops", spec.Type, fields)).want(http.StatusCreated)
			if strings.Contains(got.body, "hush") {
				t.Errorf("the answer repeats a secret: %s", got.body)
			}
			shown := got.object()
			id, _ := shown["id"].(string)
			want := map[string]any{"id": id, "name": "ops", "type": string(spec.Type)}
			for _, f := range spec.Fields {
				switch value := fields[f.Name]; {
				case f.Secret:
					want["has_"+f.Name] = value != ""
				case value != "":
					want[f.Name] = value
				}
			}
			delete(shown, "created_at")
			delete(shown, "updated_at")
			if diff := cmp.Diff(want, shown); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(fields, kept(t, r.store, id)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}

			change, err := json.Marshal(example.rename)
			if err != nil {
				t.Fatal(err)
			}
			if example.rename != nil {
				got := r.ask("PATCH", "/api/v1/channels/"+id, string(change)).want(http.StatusOK)
				maps.Copy(fields, example.rename)
				if diff := cmp.Diff(fields, kept(t, r.store, id)); diff != "" || strings.Contains(got.body, "hush") {
					t.Errorf("kept after a change of one secret (-want +got):\n%s\nanswer: %s", diff, got.body)
				}
			}
			if list := r.get("/api/v1/channels").want(http.StatusOK); strings.Contains(list.body, "hush") {
				t.Errorf("the list shows a secret: %s", list.body)
			}
		})
	}
}

func TestEveryTypeOfChannelNamesItsMistakes(t *testing.T) {
	r := start(t)
	for _, spec := range store.ChannelSpecs() {
		t.Run(string(spec.Type), func(t *testing.T) {
			example := examples[spec.Type]
			foreign := "routing_key"
			if spec.Type == store.ChannelPagerDuty {
				foreign = "api_key"
			}
			for what, test := range map[string]struct {
				members map[string]string
				want    []string
			}{
				"nothing given":            {nil, example.lacks},
				"no address":               {mixed(example.fields, example.bad), slices.Sorted(maps.Keys(example.bad))},
				"a field of another type":  {mixed(example.fields, map[string]string{foreign: "hush-foreign"}), []string{foreign}},
				"a member of no type":      {mixed(example.fields, map[string]string{"color": "red"}), []string{"color"}},
				"a member that is ours":    {mixed(example.fields, map[string]string{"has_routing_key": "yes"}), []string{"has_routing_key"}},
				"a template without end":   {mixed(example.fields, map[string]string{"template": strings.Repeat("x", store.MaxTemplate+1)}), []string{"template"}},
				"an empty foreign field":   {mixed(example.fields, map[string]string{foreign: "", "name": ""}), []string{"name"}},
				"a type that is not there": {mixed(example.fields, map[string]string{"type": "pigeon"}), []string{"type"}},
			} {
				got := r.ask("POST", "/api/v1/channels", body(t, "x", spec.Type, test.members)).want(http.StatusUnprocessableEntity)
				if diff := cmp.Diff(test.want, got.mistakes()); diff != "" {
					t.Errorf("%s: mistakes named (-want +got):\n%s", what, diff)
				}
				if strings.Contains(got.body, "hush") {
					t.Errorf("%s: the answer repeats a secret: %s", what, got.body)
				}
			}
		})
	}
}

// mixed returns what a and b hold; b has the last word.
func mixed(a, b map[string]string) map[string]string {
	both := map[string]string{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// A secret is for the server that it was given for.
func TestKeptSecretsGoToNoOtherServer(t *testing.T) {
	for _, spec := range store.ChannelSpecs() {
		if f, ok := spec.Field("api_url"); !ok || f.Secret {
			continue
		}
		t.Run(string(spec.Type), func(t *testing.T) {
			r := start(t)
			fields := examples[spec.Type].fields
			id, _ := r.ask("POST", "/api/v1/channels", body(t, "ops", spec.Type, fields)).want(http.StatusCreated).object()["id"].(string)
			var secrets []string
			again := map[string]string{}
			for _, f := range spec.Fields {
				if f.Secret && fields[f.Name] != "" {
					secrets = append(secrets, f.Name)
					again[f.Name] = fields[f.Name][:len(fields[f.Name])-1] + "x" // of the same shape
				}
			}
			for _, server := range []string{`"https://evil.example"`, "null"} {
				refused := r.ask("PATCH", "/api/v1/channels/"+id, `{"api_url": `+server+`}`).want(http.StatusUnprocessableEntity)
				if diff := cmp.Diff(secrets, refused.mistakes()); diff != "" {
					t.Errorf("%s: mistakes named (-want +got):\n%s", server, diff)
				}
			}
			if diff := cmp.Diff(fields, kept(t, r.store, id)); diff != "" {
				t.Errorf("a refused change is kept (-want +got):\n%s", diff)
			}
			r.ask("PATCH", "/api/v1/channels/"+id, `{"api_url": "`+fields["api_url"]+`/elsewhere/on/it"}`).want(http.StatusOK)
			r.ask("PATCH", "/api/v1/channels/"+id, body(t, "ops", spec.Type, again, map[string]string{"api_url": "https://other.example"})).want(http.StatusOK)
		})
	}
}

func TestAChannelOfAnotherTypeStartsAfresh(t *testing.T) {
	r := start(t)
	id, _ := r.ask("POST", "/api/v1/channels", body(t, "ops", store.ChannelDiscord, map[string]string{"webhook_url": webhook, "template": "x"})).
		want(http.StatusCreated).object()["id"].(string)
	refused := r.ask("PATCH", "/api/v1/channels/"+id, `{"type": "mattermost", "channel": "alerts"}`).want(http.StatusUnprocessableEntity)
	if diff := cmp.Diff([]string{"webhook_url"}, refused.mistakes()); diff != "" {
		t.Errorf("a type that has a secret by the same name (-want +got):\n%s", diff)
	}
	r.ask("PATCH", "/api/v1/channels/"+id, `{"type": "email", "to": "ops@example.com"}`).want(http.StatusOK)
	if diff := cmp.Diff(map[string]string{"to": "ops@example.com"}, kept(t, r.store, id)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	r.ask("PATCH", "/api/v1/channels/"+id, `{"type": "email", "name": "mail"}`).want(http.StatusOK)
	if diff := cmp.Diff(map[string]string{"to": "ops@example.com"}, kept(t, r.store, id)); diff != "" {
		t.Errorf("the same type said again (-want +got):\n%s", diff)
	}
}

// templates makes a server that knows one good template.
func templates(c *api.Config) {
	c.CheckTemplate = func(text string) error {
		if text != "{{.Title}}" {
			return errors.New("line 1: unexpected <EOF>")
		}
		return nil
	}
	c.PreviewTemplate = func(text, kind string) (string, error) {
		if err := c.CheckTemplate(text); err != nil {
			return "", err
		}
		return "Weather & <b> " + kind, nil
	}
}

func TestATemplateIsCheckedBeforeItIsKept(t *testing.T) {
	r := start(t, templates)
	bad := `{"name": "ops", "type": "email", "to": "ops@example.com", "template": "{{"}`
	refused := r.ask("POST", "/api/v1/channels", bad).want(http.StatusUnprocessableEntity)
	if diff := cmp.Diff([]string{"template"}, refused.mistakes()); diff != "" || !strings.Contains(refused.body, "line 1: unexpected <EOF>") {
		t.Errorf("mistakes named (-want +got):\n%s\n%s", diff, refused.body)
	}
	id, _ := r.ask("POST", "/api/v1/channels", strings.Replace(bad, "{{", " {{.Title}}\\n", 1)).want(http.StatusCreated).object()["id"].(string)
	r.ask("PATCH", "/api/v1/channels/"+id, `{"template": "{{.Gone"}`).want(http.StatusUnprocessableEntity)
	r.ask("PATCH", "/api/v1/channels/"+id, `{"name": "ops 2"}`).want(http.StatusOK)
	if got := r.ask("PATCH", "/api/v1/channels/"+id, `{"template": null}`).want(http.StatusOK).object(); got["template"] != nil {
		t.Errorf("a template that was removed is shown: %v", got)
	}
}

func TestATemplateIsPreviewed(t *testing.T) {
	r := start(t, templates)
	for _, test := range []struct {
		body string
		want any // the words, or the fields with a mistake
	}{
		{`{"type": "slack", "template": "{{.Title}}", "kind": "resolved"}`, "Weather & <b> resolved"},
		{`{"template": " {{.Title}}\n"}`, "Weather & <b> opened"},
		{`{"template": "{{"}`, []string{"template"}},
		{`{"kind": "opened"}`, []string{"template"}},
		{`{"template": "` + strings.Repeat("x", store.MaxTemplate+1) + `"}`, []string{"template"}},
		{`{"type": "pigeon", "template": "{{.Title}}", "kind": "gossip", "to": "x"}`, []string{"type", "to", "kind"}},
		{`{"template": 1, "kind": null}`, []string{"template", "kind"}},
	} {
		reply := r.ask("POST", "/api/v1/channels/preview", test.body)
		if words, good := test.want.(string); good {
			if got := reply.want(http.StatusOK).object()["text"]; got != words {
				t.Errorf("%s: got %q, want %q", test.body, got, words)
			}
			continue
		}
		if diff := cmp.Diff(test.want, any(reply.want(http.StatusUnprocessableEntity).mistakes())); diff != "" {
			t.Errorf("%.80s: mistakes named (-want +got):\n%s", test.body, diff)
		}
	}
	without := start(t).ask("POST", "/api/v1/channels/preview", `{"template": "{{.Title}}"}`).want(http.StatusUnprocessableEntity)
	if diff := cmp.Diff([]string{"template"}, without.mistakes()); diff != "" {
		t.Errorf("where nothing previews: mistakes named (-want +got):\n%s", diff)
	}
}

// The description names exactly the members that channels have.
func TestTheMembersOfChannelsAreDescribed(t *testing.T) {
	input, shown := []string{"name", "type"}, []string{"id", "name", "type", "broken", "broken_at", "created_at", "updated_at"}
	for _, spec := range store.ChannelSpecs() {
		for _, f := range spec.Fields {
			input = append(input, f.Name)
			if f.Secret {
				shown = append(shown, "has_"+f.Name)
			} else {
				shown = append(shown, f.Name)
			}
		}
	}
	for name, want := range map[string][]string{"ChannelInput": input, "Channel": shown} {
		slices.Sort(want)
		schema, _ := readDescription(t).schemas()[name].(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		if diff := cmp.Diff(slices.Compact(want), slices.Sorted(maps.Keys(properties))); diff != "" {
			t.Errorf("members of %s (-want +described):\n%s", name, diff)
		}
	}
}
