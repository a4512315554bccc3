package api_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestAChannelIsMadeOfOneThingThatIsPasted(t *testing.T) {
	for name, test := range map[string]struct {
		paste, place string
		kind, shown  string // shown is how the list says that it is reached
	}{
		"a webhook of Slack":      {"https://hooks.slack.com/services/T0/B0/hushed", "", "Slack", "by webhook URL"},
		"a webhook like Slack's":  {"http://chat.example/services/T0/B0/hushed", "", "Slack", "by webhook URL"},
		"a bot token of Slack":    {"xoxb-1-hushed", "#alerts", "Slack", "channel #alerts"},
		"a webhook of Discord":    {"https://discord.com/api/webhooks/1/hushed", "", "Discord", "by webhook URL"},
		"a workflow of Teams":     {"https://prod-1.westeurope.logic.azure.com/workflows/hushed", "", "Microsoft Teams", "by workflow URL"},
		"a topic of ntfy.sh":      {"https://ntfy.sh/hushed", "", "ntfy", "by topic"},
		"the address of somebody": {"ops@example.com", "", "Email", "to ops@example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.setUp()
			form := url.Values{"action": {"paste"}, "paste": {test.paste}, "place": {test.place}}
			got := s.post("/channels", form)
			if location := got.header.Get("Location"); got.status != http.StatusSeeOther || !strings.HasSuffix(location, "?done=tried") {
				t.Fatalf("got %d to %q: %s", got.status, location, got.words())
			}
			s.testError = errors.New("no such channel")
			if got := s.post("/channels", form); !strings.HasSuffix(got.header.Get("Location"), "?done=untried") {
				t.Errorf("a test that fails: got %d to %q", got.status, got.header.Get("Location"))
			}
			list := s.get("/channels")
			for _, want := range []string{test.kind, test.kind + "-2", test.shown} {
				if !strings.Contains(list.words(), want) {
					t.Errorf("the list does not say %q: %s", want, list.words())
				}
			}
			if strings.Contains(list.body, "hushed") {
				t.Error("the list holds the hushed")
			}
		})
	}
}

func TestWhatIsPastedInVainIsNotRepeated(t *testing.T) {
	s := newSite(t)
	s.setUp()
	for paste, words := range map[string]string{
		"https://example.com/hooks/hushed": "It is not known whose that is",
		"http://hooks.slack.com/hushed":    "It is not known whose that is",
		"hushed":                           "It is not known whose that is",
		"":                                 "It is not known whose that is",
		"xoxb-1-hushed":                    "A bot has to know where to speak",
		"https://ntfy.sh/a/hushed":         "Topic must be a name of at most 64 letters",
	} {
		got := s.post("/channels", url.Values{"action": {"paste"}, "paste": {paste}})
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.words(), words) || strings.Contains(got.body, "1-hushed") || strings.Contains(got.body, "/hushed") {
			t.Errorf("%q: %d, want to hear %q: %s", paste, got.status, words, got.words())
		}
	}
}

// Whoever has just registered an endpoint is led to a channel for it, and to its badge.
func TestAnEndpointTellsTheChannelThatIsPastedForIt(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://mcp.example/mcp"), "name", "Weather"))
	fresh := s.get("/endpoints/weather?done=registered")
	if fresh.link("/channels?for=weather") == "" || fresh.link("/endpoints/weather/badges") == "" {
		t.Fatalf("the page does not lead on: %s", fresh.words())
	}
	form := s.get("/channels?for=weather")
	if got := form.field("for"); got != "weather" || !strings.Contains(form.words(), "Weather tells it of outages.") {
		t.Fatalf("the form is for %q: %s", got, form.words())
	}
	pasted := url.Values{"action": {"paste"}, "for": {"weather"}, "paste": {"hushed"}}
	if got := s.post("/channels", pasted); got.status != http.StatusUnprocessableEntity || got.field("for") != "weather" {
		t.Errorf("refused, the form is for %q: %d %s", got.field("for"), got.status, got.words())
	}
	pasted.Set("paste", "https://hooks.slack.com/services/T0/B0/hushed")
	if got := s.post("/channels", pasted).header.Get("Location"); got != "/endpoints/weather?done=told" {
		t.Errorf("led to %q", got)
	}
	o, err := s.store.Endpoint(t.Context(), "weather")
	if err != nil || len(o.Channels) != 1 {
		t.Fatalf("the endpoint tells %q: %v", o.Channels, err)
	}
	if again := s.get("/endpoints/weather?done=registered"); again.link("/channels?for=weather") != "" {
		t.Error("one that tells a channel is led to another")
	}
	pasted.Set("for", "nobody")
	if got := s.post("/channels", pasted); got.status != http.StatusNotFound {
		t.Errorf("for an endpoint that is not there: status %d", got.status)
	}
	if channels, err := s.store.Channels(t.Context()); err != nil || len(channels) != 1 {
		t.Errorf("channels are %v: %v", channels, err)
	}
}
