package alerts

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Webhook posts messages as JSON to an address of the channel's own, as https://www.standardwebhooks.com says: the
// header webhook-id is the same when the same message comes again, webhook-timestamp is when this attempt was made, and
// webhook-signature is there where the channel has a secret. WebhookSchema describes the body, unless the channel has a
// template: then its text is the body.
//
// Every answer but 2xx is passing, since a server that is being mended gives any of them; 410 Gone alone is permanent.
type Webhook struct{ caller caller }

// NewWebhook returns a sender that posts through client: see NewClient.
func NewWebhook(client *http.Client) *Webhook { return &Webhook{caller{client}} }

var _ Sender = (*Webhook)(nil)

//go:embed webhook.schema.json
var webhookSchema []byte

// WebhookSchema returns the JSON Schema of what a webhook is sent.
func WebhookSchema() []byte { return bytes.Clone(webhookSchema) }

// Send implements Sender. There is no Ref: receivers tell messages of one incident by data.incident.
func (w *Webhook) Send(ctx context.Context, c store.Channel, _ string, m Message) (Receipt, error) {
	id := m.ID
	if !isWebhookID(id) {
		id = webhookID()
	}
	body, contentType, err := webhookBody(c, id, m)
	if err != nil {
		return Receipt{}, err
	}
	_, err = w.post(ctx, c, id, contentType, body)
	return Receipt{}, err
}

// Challenge asks the receiver of a channel to prove that it wants messages: it is posted {"type": "verification",
// "challenge": token, "manage": manageURL} and has to answer 2xx with the token, as {"challenge": token} or as nothing but it.
// One that answers everybody with what it was sent has proved nothing. manageURL is where to change the subscription and end it;
// it may be empty.
func (w *Webhook) Challenge(ctx context.Context, c store.Channel, token, manageURL string) error {
	question := map[string]string{"type": "verification", "challenge": token}
	if manageURL != "" {
		question["manage"] = manageURL
	}
	body, err := inWebhookJSON(question)
	if err != nil {
		return err
	}
	answer, err := w.post(ctx, c, webhookID(), "application/json", body)
	if err != nil {
		return err
	}
	var proof struct {
		Challenge string `json:"challenge"`
		Type      string `json:"type"` // there when the question itself comes back
	}
	bare := strings.TrimSpace(string(answer)) == token
	if token == "" || !bare && (json.Unmarshal(answer, &proof) != nil || proof.Challenge != token || proof.Type != "") {
		return errChallenge
	}
	return nil
}

var errChallenge = errors.New(`the webhook did not answer with the challenge: it has to answer {"challenge": "…"} with what it was sent`)

// isWebhookID reports whether an id can be signed: the signature is over parts with dots between them.
var isWebhookID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`).MatchString

func webhookID() string { return "msg_" + rand.Text() }

// webhookBody returns what is posted, and its type. A template may make JSON or anything else.
func webhookBody(c store.Channel, id string, m Message) (body []byte, contentType string, err error) {
	if text, ok := m.words(c); ok {
		if json.Valid([]byte(text)) {
			return []byte(text), "application/json", nil
		}
		return []byte(text), "text/plain; charset=utf-8", nil
	}
	body, err = inWebhookJSON(newWebhookMessage(id, m))
	return body, "application/json", err
}

func inWebhookJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // readers of JSON need no escapes for HTML, and people read these bodies
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// post sends one request and returns the answer's body, of bounded size.
func (w *Webhook) post(ctx context.Context, c store.Channel, id, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Secrets["webhook_url"], bytes.NewReader(body))
	if err != nil || req.URL.Host == "" {
		return nil, &PermanentError{"the webhook's address is not a URL"}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "rollcall")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", at)
	if secret := c.Secrets["signing_secret"]; secret != "" {
		signature, err := signature(secret, id, at, body)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Webhook-Signature", signature)
	}
	resp, err := w.caller.Do(req)
	if err != nil {
		return nil, webhookError(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, webhookError(unreachable(err))
	}
	return answer, nil
}

// signature returns that of the specification's chapter "Signature scheme", of version 1: HMAC-SHA256 over the id, the
// time and the body.
func signature(secret, id, at string, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return "", &PermanentError{"the signing secret is not whsec_ and bytes in base64"}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// webhookError sorts an error of a call. Nothing of what the receiver answered is in it but a status and an error code.
func webhookError(err error) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return fmt.Errorf("the webhook %w", err)
	}
	reason := "the webhook " + r.Error()
	if r.word != "" {
		reason += ": " + r.word
	}
	switch {
	case r.status == http.StatusGone:
		return &PermanentError{reason + ": it wants no more messages"}
	case r.status >= 300 && r.status <= 399:
		return errors.New(reason + ": redirects are not followed, give the address that it leads to")
	case r.retryAfter > 0:
		return &RetryError{After: r.retryAfter, Err: errors.New(reason)}
	}
	return errors.New(reason)
}

// webhookMessage is the body of a webhook. webhook.schema.json says what its members mean; the two change together, and
// members are added but never renamed.
type webhookMessage struct {
	Type string      `json:"type"`
	ID   string      `json:"id"`
	Data webhookData `json:"data"`
}

type webhookData struct {
	Title       string        `json:"title"`
	Symbol      string        `json:"symbol,omitempty"`
	Incident    string        `json:"incident,omitempty"`
	Severity    string        `json:"severity,omitempty"`
	Open        bool          `json:"open"`
	Meaning     string        `json:"meaning,omitempty"`
	Update      string        `json:"update,omitempty"`
	Act         string        `json:"act,omitempty"`
	Outcome     string        `json:"outcome,omitempty"`
	Endpoint    string        `json:"endpoint,omitempty"`
	URL         string        `json:"url,omitempty"`
	FailedStep  string        `json:"failed_step,omitempty"`
	Class       string        `json:"class,omitempty"`
	Code        int64         `json:"code,omitempty"`
	Message     string        `json:"message,omitempty"`
	Location    string        `json:"location,omitempty"`
	SeenFrom    []string      `json:"seen_from,omitempty"`
	Dependents  []string      `json:"dependents,omitempty"`
	Since       string        `json:"since,omitempty"`
	Until       string        `json:"until,omitempty"`
	Lasted      string        `json:"lasted,omitempty"`
	Changes     []string      `json:"changes,omitempty"`
	Items       []webhookItem `json:"items,omitempty"`
	Link        string        `json:"link,omitempty"`
	Unsubscribe string        `json:"unsubscribe,omitempty"`
}

type webhookItem struct {
	Title   string `json:"title"`
	Symbol  string `json:"symbol,omitempty"`
	Message string `json:"message,omitempty"`
	Link    string `json:"link,omitempty"`
}

// webhookTypes are the names of kinds for receivers, which the specification wants to be grouped by dots.
var webhookTypes = map[Kind]string{
	KindOpened:     "incident.opened",
	KindUpdated:    "incident.updated",
	KindReminder:   "incident.reminder",
	KindEscalation: "incident.escalated",
	KindFlapping:   "incident.flapping",
	KindCalmed:     "incident.calmed",
	KindResolved:   "incident.resolved",
	KindDigest:     "incident.digest",
	KindContract:   "contract.changed",
	KindBudget:     "objective.burning",
	KindService:    "service.notice",
	KindTest:       "test",
}

func newWebhookMessage(id string, m Message) webhookMessage {
	code, _ := strconv.ParseInt(m.Code, 10, 64) // zero, and so left out, where there is none
	d := webhookData{
		Title: m.Title, Symbol: m.Symbol, Incident: m.Incident, Severity: m.Severity, Open: m.Open, Meaning: m.Meaning,
		Update: m.Update, Act: m.Act, Outcome: m.Outcome, Endpoint: m.Endpoint, URL: m.URL, FailedStep: m.Step, Class: m.Class,
		Code: code, Message: m.Said, Location: m.Location, SeenFrom: m.SeenFrom, Dependents: m.Dependents,
		Since: timestamp(m.Since), Until: timestamp(m.Until), Lasted: m.Lasted, Changes: m.Changes, Link: m.Link,
		Unsubscribe: m.Unsubscribe,
	}
	for _, item := range m.Items {
		d.Items = append(d.Items, webhookItem{Title: item.Title, Symbol: item.Symbol, Message: item.Said, Link: item.Link})
	}
	return webhookMessage{Type: webhookTypes[m.Kind], ID: id, Data: d}
}
