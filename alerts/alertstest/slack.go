// Package alertstest provides what tests of alerts need: a Slack that runs on loopback, gives the answers of the real
// one, and keeps what it was told.
package alertstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// What the server accepts.
const (
	Token     = "xoxb-123456789012-123456789012-abcdefABCDEF" // of its one bot
	Channel   = "#alerts"                                     // its one channel, by name
	ChannelID = "C0123456789"                                 // and by id
	hookPath  = "/services/T0123456789/B0123456789/aBcDeFgHiJkLmNoPqRsTuVwX"

	// SigningSecret is of its one app. Click and Command take any, so that a test can forge them.
	SigningSecret = "0123456789abcdef0123456789abcdef"
)

// Kind says how a message came.
type Kind string

// The kinds of messages.
const (
	Webhook Kind = "webhook"
	Post    Kind = "post"   // chat.postMessage
	Thread  Kind = "thread" // chat.postMessage with thread_ts
	Update  Kind = "update" // chat.update
)

// Message is one that was accepted.
type Message struct {
	Kind     Kind
	Channel  string // id; empty for a webhook
	TS       string // of the message itself, for an update of the one that it updates
	ThreadTS string
	Text     string
	Blocks   string // JSON as it was sent; empty when there were none
	Form     url.Values
}

// Slack is a server like Slack. It is safe for concurrent use.
type Slack struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	messages []Message
	answers  []string // to those who clicked
	requests int
	faults   map[Kind]fault // by kind; the empty kind goes for all
	posted   map[string]bool
	more     chan struct{} // closed and made again with every request and message
}

type fault struct {
	status     int
	retryAfter time.Duration
	body       string
}

// NewSlack starts a server that ends with the test.
func NewSlack(t testing.TB) *Slack {
	s := &Slack{t: t, faults: map[Kind]fault{}, posted: map[string]bool{}, more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /services/", s.webhook)
	mux.HandleFunc("POST /api/chat.postMessage", s.postMessage)
	mux.HandleFunc("POST /api/chat.update", s.update)
	mux.HandleFunc("POST "+responsePath, s.answer)
	s.server = httptest.NewServer(mux)
	t.Cleanup(s.server.Close)
	return s
}

// WebhookURL is the address of the incoming webhook; a secret.
func (s *Slack) WebhookURL() string { return s.server.URL + hookPath }

// APIURL is what goes into a channel's api_url.
func (s *Slack) APIURL() string { return s.server.URL + "/api/" }

// Messages returns everything that was accepted so far, in order.
func (s *Slack) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...)
}

// Shown returns a message as people see it: as it was posted or, if it was, updated last. False when there is none.
func (s *Slack) Shown(ts string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(s.messages) {
		if m.TS == ts && s.posted[ts] {
			return m, true
		}
	}
	return Message{}, false
}

// Thread returns the replies to a message, in order.
func (s *Slack) Thread(ts string) []Message {
	var replies []Message
	for _, m := range s.Messages() {
		if m.ThreadTS == ts {
			replies = append(replies, m)
		}
	}
	return replies
}

// Requests counts everything that came, refused or not.
func (s *Slack) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// WaitFor returns all messages as soon as there are n of them, and fails the test when there are not within timeout.
func (s *Slack) WaitFor(n int, timeout time.Duration) []Message {
	s.t.Helper()
	s.wait(timeout, func() bool { return len(s.messages) >= n })
	messages := s.Messages()
	if len(messages) < n {
		s.t.Fatalf("Slack has %d messages after %s, want %d: %+v", len(messages), timeout, n, messages)
	}
	return messages
}

// WaitForRequests returns as soon as n requests came, refused or not, and fails the test when they did not within
// timeout.
func (s *Slack) WaitForRequests(n int, timeout time.Duration) {
	s.t.Helper()
	s.wait(timeout, func() bool { return s.requests >= n })
	if got := s.Requests(); got < n {
		s.t.Fatalf("Slack had %d requests after %s, want %d", got, timeout, n)
	}
}

// wait returns when enough, which is called under the lock, or when the time is up.
func (s *Slack) wait(timeout time.Duration, enough func() bool) {
	deadline := time.After(timeout)
	for {
		s.mu.Lock()
		done, more := enough(), s.more
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-more:
		case <-deadline:
			return
		}
	}
}

// changedLocked wakes those who wait.
func (s *Slack) changedLocked() {
	close(s.more)
	s.more = make(chan struct{})
}

// SetFault makes every request fail with an HTTP status, a Retry-After header unless it is zero, and a body, until the
// next SetFault. Status zero ends it. Status 200 with a body like {"ok":false,"error":"is_archived"} is how Slack's API
// refuses.
func (s *Slack) SetFault(status int, retryAfter time.Duration, body string) {
	s.SetFaultOn("", status, retryAfter, body)
}

// SetFaultOn does the same for one kind of request.
func (s *Slack) SetFaultOn(kind Kind, status int, retryAfter time.Duration, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status == 0 {
		delete(s.faults, kind)
		return
	}
	s.faults[kind] = fault{status, retryAfter, body}
}

// Delete removes a message, as somebody in the channel might.
func (s *Slack) Delete(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.posted, ts)
}

func (s *Slack) webhook(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Text   string          `json:"text"`
		Blocks json.RawMessage `json:"blocks"`
	}
	body, err := io.ReadAll(r.Body)
	if s.failed(w, Webhook) {
		return
	}
	switch {
	case r.URL.Path != hookPath:
		http.Error(w, "no_service", http.StatusNotFound)
	case err != nil || json.Unmarshal(body, &in) != nil:
		http.Error(w, "invalid_payload", http.StatusBadRequest)
	case in.Text == "" && in.Blocks == nil:
		http.Error(w, "no_text", http.StatusBadRequest)
	case blocksProblem(string(in.Blocks)) != "":
		http.Error(w, "invalid_blocks", http.StatusBadRequest)
	default:
		s.keep(Message{Kind: Webhook, Text: in.Text, Blocks: string(in.Blocks)})
		fmt.Fprint(w, "ok")
	}
}

func (s *Slack) postMessage(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_form_data")
		return
	}
	m := message(r.PostForm)
	m.Kind = Post
	if m.ThreadTS != "" {
		m.Kind = Thread
	}
	if s.failed(w, m.Kind) {
		return
	}
	if word := problem(r.PostForm, m); word != "" {
		refuse(w, word)
		return
	}
	m.Channel = ChannelID
	m = s.keep(m)
	accept(w, m)
}

func (s *Slack) update(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_form_data")
		return
	}
	m := message(r.PostForm)
	m.Kind, m.TS = Update, r.PostForm.Get("ts")
	if s.failed(w, Update) {
		return
	}
	word := problem(r.PostForm, m)
	switch {
	case word != "":
	case m.Channel != ChannelID:
		word = "channel_not_found" // chat.update takes no names
	case !s.has(m.TS):
		word = "message_not_found"
	}
	if word != "" {
		refuse(w, word)
		return
	}
	accept(w, s.keep(m))
}

func message(form url.Values) Message {
	m := Message{Channel: form.Get("channel"), ThreadTS: form.Get("thread_ts"), Text: form.Get("text"), Form: form}
	if blocks := form.Get("blocks"); blocks != "[]" {
		m.Blocks = blocks
	}
	return m
}

// problem returns Slack's word for what is wrong with a call, empty when nothing is.
func problem(form url.Values, m Message) string {
	switch {
	case form.Get("token") == "":
		return "not_authed"
	case form.Get("token") != Token:
		return "invalid_auth"
	case m.Channel != Channel && m.Channel != ChannelID:
		return "channel_not_found"
	case m.Text == "" && m.Blocks == "":
		return "no_text"
	case utf8.RuneCountInString(m.Text) > 40000:
		return "msg_too_long"
	}
	return blocksProblem(m.Blocks)
}

// blocksProblem holds blocks against the limits that Slack documents.
func blocksProblem(text string) string {
	if text == "" {
		return ""
	}
	blocks, err := parseBlocks(text)
	if err != nil || len(blocks) == 0 || len(blocks) > 50 {
		return "invalid_blocks"
	}
	for _, b := range blocks {
		if !b.valid() {
			return "invalid_blocks"
		}
	}
	return ""
}

// block is one of Block Kit, of the types that are known here.
type block struct {
	Type     string
	BlockID  string `json:"block_id"`
	Text     *textObject
	Fields   []textObject
	Elements []json.RawMessage // texts of a context, buttons of actions
}

type textObject struct {
	Type, Text string
}

func (o textObject) valid(limit int) bool {
	n := utf8.RuneCountInString(o.Text)
	return n > 0 && n <= limit && (o.Type == "mrkdwn" || o.Type == "plain_text")
}

// button is what a click tells of one.
type button struct {
	Type     string
	ActionID string `json:"action_id"`
	Text     textObject
	Value    string
}

func (b button) valid() bool {
	return b.Type == "button" && b.Text.Type == "plain_text" && b.Text.valid(75) && b.ActionID != "" && len(b.ActionID) <= 255 &&
		utf8.RuneCountInString(b.Value) <= 2000
}

func parseBlocks(text string) ([]block, error) {
	var blocks []block
	err := json.Unmarshal([]byte(text), &blocks)
	return blocks, err
}

func (b block) valid() bool {
	switch b.Type {
	case "section":
		return (b.Text != nil || len(b.Fields) > 0) && (b.Text == nil || b.Text.valid(3000)) && len(b.Fields) <= 10 &&
			!slices.ContainsFunc(b.Fields, func(o textObject) bool { return !o.valid(2000) })
	case "context":
		return allValid(b.Elements, 10, func(o textObject) bool { return o.valid(2000) })
	case "actions":
		return allValid(b.Elements, 25, button.valid)
	}
	return false
}

// allValid reports whether there are elements, not too many, and each is valid.
func allValid[T any](elements []json.RawMessage, most int, valid func(T) bool) bool {
	return len(elements) > 0 && len(elements) <= most && !slices.ContainsFunc(elements, func(raw json.RawMessage) bool {
		var element T
		return json.Unmarshal(raw, &element) != nil || !valid(element)
	})
}

func (s *Slack) has(ts string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posted[ts]
}

func (s *Slack) keep(m Message) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.TS == "" {
		m.TS = fmt.Sprintf("1763712000.%06d", len(s.messages)+1)
		s.posted[m.TS] = true
	}
	s.messages = append(s.messages, m)
	s.changedLocked()
	return m
}

// failed answers with the fault that is set, and reports whether there is one.
func (s *Slack) failed(w http.ResponseWriter, kind Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.changedLocked()
	f, ok := s.faults[kind]
	if !ok {
		f, ok = s.faults[""]
	}
	if !ok {
		return false
	}
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(f.retryAfter.Seconds())))
	}
	if strings.HasPrefix(f.body, "{") {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(f.status)
	fmt.Fprint(w, f.body)
	return true
}

func accept(w http.ResponseWriter, m Message) {
	respond(w, map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS, "text": m.Text})
}

func refuse(w http.ResponseWriter, word string) {
	respond(w, map[string]any{"ok": false, "error": word})
}

func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}
