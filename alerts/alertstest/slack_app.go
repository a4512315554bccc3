package alertstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// responsePath is where answers to clicks go, as the last part of a response_url.
const responsePath = "/actions/T0123456789/1234567890123/aBcDeFgHiJkLmNoPqRsTuVwX"

// Origin is where answers to clicks go, as "http://127.0.0.1:port".
func (s *Slack) Origin() string { return s.server.URL }

// Answers returns what those who clicked were told, in order.
func (s *Slack) Answers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.answers...)
}

// Click presses a button of a message as it is shown, the way Slack does: url gets a signed request about it. It returns
// the status of the answer, and fails the test when the message has no such button.
func (s *Slack) Click(t testing.TB, messageTS, actionID, url, signingSecret string) int {
	t.Helper()
	status, _ := send(t, url, signingSecret, s.ClickBody(t, messageTS, actionID))
	return status
}

// ClickBody returns the body of the request that Click sends.
func (s *Slack) ClickBody(t testing.TB, messageTS, actionID string) []byte {
	t.Helper()
	m, ok := s.Shown(messageTS)
	if !ok {
		t.Fatalf("there is no message %s to click on", messageTS)
	}
	blockID, b, ok := findButton(m.Blocks, actionID)
	if !ok {
		t.Fatalf("message %s has no button %s: %s", messageTS, actionID, m.Blocks)
	}
	payload, err := json.Marshal(map[string]any{
		"type":                  "block_actions",
		"user":                  map[string]any{"id": "U0123456789", "username": "ada", "name": "ada", "team_id": "T0123456789"},
		"api_app_id":            "A0123456789",
		"token":                 "ignored",
		"container":             map[string]any{"type": "message", "message_ts": m.TS, "channel_id": m.Channel, "is_ephemeral": false},
		"trigger_id":            "1234567890123.1234567890.0123456789abcdef0123456789abcdef",
		"team":                  map[string]any{"id": "T0123456789", "domain": "example"},
		"enterprise":            nil,
		"is_enterprise_install": false,
		"channel":               map[string]any{"id": m.Channel, "name": strings.TrimPrefix(Channel, "#")},
		"message": map[string]any{
			"type": "message", "subtype": "bot_message", "ts": m.TS, "text": m.Text, "bot_id": "B0123456789", "blocks": json.RawMessage(m.Blocks),
		},
		"state":        map[string]any{"values": map[string]any{}},
		"response_url": s.Origin() + responsePath,
		"actions": []any{map[string]any{
			"type": "button", "action_id": b.ActionID, "block_id": blockID, "value": b.Value, "action_ts": "1763712060.000001",
			"text": map[string]any{"type": b.Text.Type, "text": b.Text.Text, "emoji": true},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(url.Values{"payload": {string(payload)}}.Encode())
}

func findButton(text, actionID string) (blockID string, b button, ok bool) {
	if text == "" {
		return "", button{}, false
	}
	blocks, err := parseBlocks(text)
	if err != nil {
		return "", button{}, false
	}
	for _, block := range blocks {
		for _, raw := range block.Elements {
			if block.Type == "actions" && json.Unmarshal(raw, &b) == nil && b.ActionID == actionID {
				return block.BlockID, b, true
			}
		}
	}
	return "", button{}, false
}

// Command types "/rollcall " and text, the way Slack does: url gets a signed request about it. It returns the status of
// the answer and, where it is 200, the text that only the person sees who typed it.
func (s *Slack) Command(t testing.TB, url, signingSecret, text string) (status int, answer string) {
	t.Helper()
	status, body := send(t, url, signingSecret, s.CommandBody(text))
	if status != http.StatusOK {
		return status, ""
	}
	answer, err := parseAnswer(body)
	if err != nil {
		t.Fatalf("/rollcall %s was answered with %q: %v", text, body, err)
	}
	return status, answer
}

// CommandBody returns the body of the request that Command sends.
func (s *Slack) CommandBody(text string) []byte {
	return []byte(url.Values{
		"token": {"ignored"}, "team_id": {"T0123456789"}, "team_domain": {"example"}, "channel_id": {ChannelID},
		"channel_name": {strings.TrimPrefix(Channel, "#")}, "user_id": {"U0123456789"}, "user_name": {"ada"}, "command": {"/rollcall"}, "text": {text},
		"api_app_id": {"A0123456789"}, "is_enterprise_install": {"false"}, "response_url": {s.Origin() + responsePath},
		"trigger_id": {"1234567890123.1234567890.0123456789abcdef0123456789abcdef"},
	}.Encode())
}

// SignedHeader returns the header of a request that Slack signs with a secret at a time.
func SignedHeader(signingSecret string, at time.Time, body []byte) http.Header {
	stamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(signingSecret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	header := http.Header{}
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	header.Set("X-Slack-Request-Timestamp", stamp)
	header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return header
}

func send(t testing.TB, url, signingSecret string, body []byte) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = SignedHeader(signingSecret, time.Now(), body)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// answer takes what the person is to be told who clicked.
func (s *Slack) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	text, err := parseAnswer(body)
	if err != nil {
		s.t.Errorf("the answer to a click is %q: %v", body, err)
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, text)
	s.changedLocked()
	fmt.Fprint(w, "ok")
}

// parseAnswer returns the text of an answer that one person sees and that leaves the message alone.
func parseAnswer(body []byte) (string, error) {
	var in struct {
		ResponseType    string `json:"response_type"`
		ReplaceOriginal bool   `json:"replace_original"`
		DeleteOriginal  bool   `json:"delete_original"`
		Text            string `json:"text"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return "", err
	}
	if in.ResponseType != "ephemeral" || in.ReplaceOriginal || in.DeleteOriginal || in.Text == "" {
		return "", fmt.Errorf("it is not a text for one person beside the message")
	}
	return in.Text, nil
}
