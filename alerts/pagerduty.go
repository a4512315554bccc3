package alerts

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// PagerDuty sends to an Events API v2 integration (https://developer.pagerduty.com/docs/events-api-v2-overview): fields
// "routing_key", and "api_url" for another region.
//
// An incident is one alert there, by its dedup_key. Its opening, reminders and escalations trigger the alert, which PagerDuty
// folds into one; an acknowledgement acknowledges it, and its end resolves it. Other acts of people have no place among events
// and are passed over. What belongs to no incident, such as a change of a tool list, triggers an alert of its own that
// somebody has to resolve in PagerDuty; the message of the test button is resolved at once, so that nobody stays paged for it.
//
// A message that comes again is the same event again: nothing is told twice.
type PagerDuty struct{ caller caller }

// NewPagerDuty returns a sender that calls PagerDuty through client: see NewClient.
func NewPagerDuty(client *http.Client) *PagerDuty { return &PagerDuty{caller{client}} }

var _ Sender = (*PagerDuty)(nil)

// Send implements Sender. The Ref of a Receipt is the dedup_key.
func (p *PagerDuty) Send(ctx context.Context, c store.Channel, _ string, m Message) (Receipt, error) {
	var actions []string
	switch {
	case m.isAcknowledgement():
		actions = []string{"acknowledge"}
	case m.isWordOfAnAct(), m.Kind == KindCalmed && m.Open:
		return Receipt{Passed: true}, nil
	case m.Kind == KindResolved, m.Kind == KindCalmed:
		actions = []string{"resolve"}
	case m.Kind == KindTest:
		actions = []string{"trigger", "resolve"}
	default:
		actions = []string{"trigger"}
	}
	for _, action := range actions {
		if err := p.enqueue(ctx, c, action, m); err != nil {
			return Receipt{}, err
		}
	}
	return Receipt{Ref: pagerDutyKey(m)}, nil
}

type pagerDutyEvent struct {
	RoutingKey string            `json:"routing_key"`
	Action     string            `json:"event_action"`
	DedupKey   string            `json:"dedup_key,omitempty"`
	Payload    *pagerDutyPayload `json:"payload,omitempty"` // of a trigger
	Links      []pagerDutyLink   `json:"links,omitempty"`
	Client     string            `json:"client,omitempty"`
	ClientURL  string            `json:"client_url,omitempty"`
}

type pagerDutyPayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp string         `json:"timestamp,omitempty"`
	Component string         `json:"component,omitempty"`
	Class     string         `json:"class,omitempty"`
	Details   map[string]any `json:"custom_details,omitempty"`
}

type pagerDutyLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

func (p *PagerDuty) enqueue(ctx context.Context, c store.Channel, action string, m Message) error {
	event := pagerDutyEvent{RoutingKey: c.Secrets["routing_key"], Action: action, DedupKey: pagerDutyKey(m)}
	if action == "trigger" {
		event.Payload, event.Client, event.ClientURL = pagerDutyAlert(m, c), "Rollcall", m.Link
		if m.Link != "" {
			event.Links = []pagerDutyLink{{m.Link, m.linkText()}}
		}
	}
	a, err := p.caller.ask(ctx, "PagerDuty", http.MethodPost, base(c, "https://events.pagerduty.com")+"/v2/enqueue", "", event)
	if err != nil {
		return err
	}
	return pagerDutyError(a, c)
}

// pagerDutyError sorts an answer as "API Response Codes & Retry Logic" says: 202 is accepted, 429 and 5xx pass, all else is
// wrong for good.
func pagerDutyError(a answer, c store.Channel) error {
	var said struct {
		Status  string   `json:"status"`
		Message string   `json:"message"`
		Errors  []string `json:"errors"`
	}
	readable := a.read(&said)
	switch {
	case a.ok() && readable && said.Status == "success":
		return nil
	case a.ok():
		return a.unexpected("PagerDuty")
	}
	v := a.verdict("PagerDuty")
	if readable {
		v.said = strings.Join(nonEmpty([]string{said.Message, strings.Join(said.Errors, ", ")}), ": ")
	}
	if a.status == http.StatusBadRequest && strings.Contains(strings.ToLower(v.said), "routing") {
		v.todo = "copy the integration key of an Events API v2 integration again"
	}
	return a.refusal(v, c)
}

// pagerDutyKey bounds the key as PagerDuty does: 255 characters.
func pagerDutyKey(m Message) string { return fit(m.key(), 255) }

// pagerDutyAlert is what an alert says. A summary holds 1024 characters.
func pagerDutyAlert(m Message, c store.Channel) *pagerDutyPayload {
	summary, details := titleAndFailure(m), pagerDutyDetails(m)
	if m.Outcome != "" {
		summary = m.Title + ". " + m.Outcome
	}
	if own, ok := ownWords(m, c); ok {
		summary = oneLine(own, 1024)
		details["Message"] = own
	}
	payload := &pagerDutyPayload{
		Summary: fit(summary, 1024), Source: fit(source(m), 255), Severity: pagerDutySeverity(m),
		Component: fit(cmp.Or(m.Endpoint, m.About), 255), Class: fit(m.Class, 255), Details: details,
	}
	if !m.Since.IsZero() {
		payload.Timestamp = m.Since.UTC().Format(time.RFC3339)
	}
	return payload
}

func pagerDutyDetails(m Message) map[string]any {
	details := map[string]any{}
	for _, d := range m.details() {
		details[d.label] = fit(d.text, 2000)
	}
	if m.Update != "" {
		details["Update"] = fit(m.Update, 2000)
	}
	if m.Meaning != "" {
		details["Meaning"] = fit(m.Meaning, 2000)
	}
	if lines := m.lists(); len(lines) > 0 {
		details["List"] = fitLines(lines, 16<<10)
	}
	return details
}

// titleAndFailure is what whoever is called reads or hears before anything else.
func titleAndFailure(m Message) string {
	return strings.Join(nonEmpty([]string{m.Title, m.failure()}), " — ")
}

// source is the system that a message is about, preferably a host name; this service where it is about none.
func source(m Message) string {
	if u, err := url.Parse(m.URL); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return cmp.Or(m.Endpoint, m.About, "Rollcall")
}

// pagerDutySeverity is one of critical, error, warning and info. Many incidents at once are as bad as the worst of them, and what
// is over is bad no more.
func pagerDutySeverity(m Message) string {
	if m.isOver() {
		return "info"
	}
	switch m.Severity {
	case "down":
		return "critical"
	case "gated":
		return "error"
	case "degraded", "unknown":
		return "warning"
	case "maintenance", "notice":
		return "info"
	}
	switch m.Kind {
	case KindOpened, KindReminder, KindEscalation, KindDigest:
		return "critical"
	case KindTest:
		return "info"
	case KindService, KindContract:
		if m.Symbol == symbols["info"] {
			return "info"
		}
	}
	return "warning"
}
