package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const webhook = "https://hooks.slack.example/services/T000/B000/hush"

func TestAChannelTakesSecretsAndKeepsThemToItself(t *testing.T) {
	r := start(t)
	got := r.ask("POST", "/api/v1/channels", `{"name": "ops", "type": "slack", "webhook_url": "`+webhook+`"}`).want(http.StatusCreated).object()
	id, _ := got["id"].(string)
	delete(got, "created_at")
	delete(got, "updated_at")
	want := map[string]any{"id": id, "name": "ops", "type": "slack", "has_webhook_url": true, "has_bot_token": false}
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
		{`{"name": "x", "type": "slack", "bot_token": "xoxb hush"}`, 422, []string{"channel", "bot_token"}},
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
