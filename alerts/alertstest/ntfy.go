package alertstest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"
)

// What an Ntfy accepts.
const (
	NtfyTopic = "rollcall-f3b9c2d1"
	NtfyToken = "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2"
)

// NtfyMessage is one that was published.
type NtfyMessage struct {
	Topic, Title, Message, Click string

	Priority int
	Tags     []string
	Actions  []struct{ Action, Label, URL string }
}

// Ntfy is a server like ntfy, with one topic that wants a token.
type Ntfy struct {
	*Service
	messages []NtfyMessage
}

// NewNtfy starts a server that ends with the test.
func NewNtfy(t testing.TB) *Ntfy {
	n := &Ntfy{}
	n.Service = start(t, n.serve)
	return n
}

// Messages returns everything that was published so far, in order.
func (n *Ntfy) Messages() []NtfyMessage {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]NtfyMessage(nil), n.messages...)
}

var isNtfyTopic = regexp.MustCompile(`^[-_A-Za-z0-9]{1,64}$`).MatchString

func (n *Ntfy) serve(r Request) Reply {
	var m NtfyMessage
	switch {
	case r.Path != "/" || r.Method != http.MethodPost && r.Method != http.MethodPut:
		return ntfySays(http.StatusNotFound, 40401, "page not found")
	case json.Unmarshal(r.Body, &m) != nil:
		return ntfySays(http.StatusBadRequest, 40017, "invalid request: request body must be message JSON")
	case !isNtfyTopic(m.Topic):
		return ntfySays(http.StatusBadRequest, 40009, "invalid request: topic invalid")
	case m.Priority < 1 || m.Priority > 5:
		return ntfySays(http.StatusBadRequest, 40007, "invalid priority parameter")
	case r.Header.Get("Authorization") != "" && r.Header.Get("Authorization") != "Bearer "+NtfyToken:
		return ntfySays(http.StatusUnauthorized, 40101, "unauthorized")
	case r.Header.Get("Authorization") == "":
		return ntfySays(http.StatusForbidden, 40301, "forbidden")
	case len(m.Message) > 4096:
		return ntfySays(http.StatusRequestEntityTooLarge, 41301, "attachment too large, or bandwidth limit reached")
	}
	n.messages = append(n.messages, m)
	return asJSON(http.StatusOK, map[string]any{
		"id": "Xsb1H5RbZ8Wq", "time": 1763712000, "expires": 1763755200, "event": "message", "topic": m.Topic,
		"title": m.Title, "message": m.Message, "priority": m.Priority,
	})
}

func ntfySays(status, code int, words string) Reply {
	return asJSON(status, map[string]any{"code": code, "http": status, "error": words, "link": "https://ntfy.sh/docs/publish/"})
}
