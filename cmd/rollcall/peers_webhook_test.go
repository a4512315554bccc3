package main_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// webhook answers like an incoming webhook of Slack and keeps what it was sent.
type webhook struct {
	url string

	mu       sync.Mutex // guards messages
	messages [][]byte
}

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	w := &webhook{}
	s := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(s.Close)
	w.url = s.URL + "/services/T000/B000/secret"
	return w
}

func (w *webhook) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !json.Valid(body) {
		http.Error(rw, "invalid_payload", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.messages = append(w.messages, body)
	w.mu.Unlock()
	io.WriteString(rw, "ok")
}

// heard returns how many messages hold a text.
func (w *webhook) heard(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, m := range w.messages {
		if bytes.Contains(m, []byte(text)) {
			n++
		}
	}
	return n
}

func (w *webhook) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.Join(w.messages, []byte("\n")))
}
