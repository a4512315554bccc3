package alertstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Receiver is somebody's own server behind a webhook. It checks signatures as the specification of Standard Webhooks
// tells receivers to, answers challenges, and keeps what it was sent. It is safe for concurrent use.
type Receiver struct {
	t      testing.TB
	server *httptest.Server

	mu        sync.Mutex
	requests  []Delivered
	fault     fault
	hang      bool
	challenge string // answered to a challenge in place of what it holds
	more      chan struct{}
}

// Delivered is one request that a Receiver got, refused or not.
type Delivered struct {
	ID       string // the header webhook-id
	Header   http.Header
	Body     string
	Verified bool // signed with ReceiverSecret, within the last five minutes
	Accepted bool
}

// ReceiverSecret is what a Receiver's requests have to be signed with.
const ReceiverSecret = "whsec_cm9sbGNhbGwtdGVzdHMtc2lnbi13aXRoLXRoaXM=" //nolint:gosec // of tests only

const receiverPath = "/hooks/3f1c9a7e-very-secret"

// NewReceiver starts a receiver that ends with the test.
func NewReceiver(t testing.TB) *Receiver {
	r := &Receiver{t: t, more: make(chan struct{})}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// URL is where it takes messages; a secret.
func (r *Receiver) URL() string { return r.server.URL + receiverPath }

// SetFault makes every request fail with an HTTP status, a Retry-After header unless it is zero, and a body, until the
// next SetFault. Status zero ends it.
func (r *Receiver) SetFault(status int, retryAfter time.Duration, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault{status, retryAfter, body}
}

// Hang makes it answer nothing, until the caller gives up.
func (r *Receiver) Hang(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hang = on
}

// SetChallengeAnswer makes body the answer to a challenge, in place of the right one.
func (r *Receiver) SetChallengeAnswer(body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.challenge = body
}

// Requests returns everything that came, in order.
func (r *Receiver) Requests() []Delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Delivered(nil), r.requests...)
}

// Messages returns what was accepted, in order, without challenges.
func (r *Receiver) Messages() []Delivered {
	var messages []Delivered
	for _, d := range r.Requests() {
		if d.Accepted && challengeOf(d.Body) == "" {
			messages = append(messages, d)
		}
	}
	return messages
}

// WaitFor returns all messages as soon as there are n of them, and fails the test when there are not within timeout.
func (r *Receiver) WaitFor(n int, timeout time.Duration) []Delivered {
	r.t.Helper()
	deadline := time.After(timeout)
	for {
		r.mu.Lock()
		more := r.more
		r.mu.Unlock()
		messages := r.Messages()
		if len(messages) >= n {
			return messages
		}
		select {
		case <-more:
		case <-deadline:
			r.t.Fatalf("the receiver has %d messages after %s, want %d: %+v", len(messages), timeout, n, messages)
		}
	}
}

func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err != nil || req.Method != http.MethodPost || req.URL.Path != receiverPath {
		http.NotFound(w, req)
		return
	}
	d := Delivered{ID: req.Header.Get("Webhook-Id"), Header: req.Header.Clone(), Body: string(body), Verified: verified(req.Header, body)}
	r.mu.Lock()
	f, hang, answer := r.fault, r.hang, r.challenge
	signed := req.Header.Get("Webhook-Signature") != ""
	d.Accepted = f.status == 0 && !hang && (d.Verified || !signed)
	r.requests = append(r.requests, d)
	close(r.more)
	r.more = make(chan struct{})
	r.mu.Unlock()

	switch token := challengeOf(d.Body); {
	case hang:
		<-req.Context().Done()
	case f.status != 0:
		if f.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(f.retryAfter.Seconds())))
		}
		w.WriteHeader(f.status)
		fmt.Fprint(w, f.body)
	case !d.Accepted:
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
	case token != "" && answer != "":
		fmt.Fprint(w, answer)
	case token != "":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"challenge": token})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// challengeOf returns the challenge that a body is, empty for any other.
func challengeOf(body string) string {
	var c struct{ Type, Challenge string }
	if json.Unmarshal([]byte(body), &c) != nil || c.Type != "verification" {
		return ""
	}
	return c.Challenge
}

// verified does what the specification's chapter "Verifying webhooks" asks of a receiver.
func verified(h http.Header, body []byte) bool {
	seconds, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(ReceiverSecret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "."))
	mac.Write(body)
	want := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(h.Get("Webhook-Signature")) { // one for each secret while they are exchanged
		if version, got, _ := strings.Cut(signature, ","); version == "v1" && hmac.Equal([]byte(got), []byte(want)) {
			return true
		}
	}
	return false
}
