package alerts

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Opsgenie sends to the Alert API of Opsgenie (https://docs.opsgenie.com/docs/alert-api) and to that of its successor, the
// integration API of Jira Service Management, which speaks the same below another "api_url". The field "api_key" is of an
// API integration.
//
// An incident is one alert there, by its alias. Its opening, reminders and escalations create the alert, which Opsgenie folds
// into one while it is open; updates are notes on it; its end closes it. What belongs to no incident is an alert of its own
// that somebody has to close; the message of the test button is closed at once.
//
// A message that comes again does the same again, and only a note may stand there twice.
type Opsgenie struct{ caller caller }

// NewOpsgenie returns a sender that calls Opsgenie through client: see NewClient.
func NewOpsgenie(client *http.Client) *Opsgenie { return &Opsgenie{caller{client}} }

var _ Sender = (*Opsgenie)(nil)

// Send implements Sender. The Ref of a Receipt is the alias.
func (o *Opsgenie) Send(ctx context.Context, c store.Channel, _ string, m Message) (Receipt, error) {
	alias := opsgenieAlias(m)
	done := Receipt{Ref: alias}
	switch {
	case m.Kind == KindResolved, m.Kind == KindCalmed && !m.Open:
		_, err := o.act(ctx, c, alias, "close", m)
		return done, err
	case m.isAcknowledgement():
		found, err := o.act(ctx, c, alias, "acknowledge", m)
		return Receipt{Ref: alias, Passed: err == nil && !found}, err
	case m.Kind == KindUpdated, m.Kind == KindCalmed:
		found, err := o.act(ctx, c, alias, "notes", m)
		if found && err == nil && !m.isWordOfAnAct() {
			err = o.prioritize(ctx, c, alias, m)
		}
		return Receipt{Ref: alias, Passed: err == nil && !found}, err
	}
	err := o.create(ctx, c, m)
	if err == nil && m.Kind == KindTest {
		_, err = o.act(ctx, c, alias, "close", m)
	}
	return done, err
}

// opsgenieSource says where an alert comes from.
const opsgenieSource = "Rollcall"

// opsgenieAlert is a request to create one, within the limits of its documentation.
type opsgenieAlert struct {
	Message     string            `json:"message"` // 130 characters
	Alias       string            `json:"alias"`   // 512
	Description string            `json:"description,omitempty"`
	Tags        []string          `json:"tags,omitempty"`    // 20 of 50
	Details     map[string]string `json:"details,omitempty"` // 8000 together
	Entity      string            `json:"entity,omitempty"`  // 512
	Source      string            `json:"source"`            // 100
	Priority    string            `json:"priority"`
}

func (o *Opsgenie) create(ctx context.Context, c store.Channel, m Message) error {
	alert := opsgenieAlert{
		Message: fit(titleAndFailure(m), 130), Alias: opsgenieAlias(m), Description: fit(opsgenieDescription(m), 15000),
		Tags: opsgenieTags(m), Details: opsgenieDetails(m), Entity: fit(cmp.Or(m.Endpoint, m.About), 512), Source: opsgenieSource,
		Priority: opsgeniePriority(m),
	}
	if own, ok := ownWords(m, c); ok {
		alert.Description = fit(own, 15000)
	}
	a, err := o.caller.ask(ctx, "Opsgenie", http.MethodPost, opsgenieURL(c, ""), opsgenieKey(c), alert)
	if err != nil {
		return err
	}
	return opsgenieError(a, c)
}

// act closes or acknowledges an alert or puts a note on it, and reports whether it is there. That it is not is no error: somebody deleted
// it, or its opening never arrived, and there is nothing left to close.
func (o *Opsgenie) act(ctx context.Context, c store.Channel, alias, what string, m Message) (found bool, err error) {
	note := map[string]string{"source": opsgenieSource, "note": fit(m.short(), 1000)}
	a, err := o.caller.ask(ctx, "Opsgenie", http.MethodPost, opsgenieActURL(c, alias, what), opsgenieKey(c), note)
	if err != nil {
		return false, err
	}
	var said struct{ Message, Result string }
	if a.status == http.StatusNotFound && a.read(&said) && said.Message != "" { // not the 404 of another server
		return false, nil
	}
	return true, opsgenieError(a, c)
}

// prioritize gives an alert the priority that its incident has by now. Where that cannot be done at all, the note has said it.
func (o *Opsgenie) prioritize(ctx context.Context, c store.Channel, alias string, m Message) error {
	priority := map[string]string{"priority": opsgeniePriority(m)}
	a, err := o.caller.ask(ctx, "Opsgenie", http.MethodPut, opsgenieActURL(c, alias, "priority"), opsgenieKey(c), priority)
	if err != nil || a.ok() || !passingStatus(a.status) {
		return err
	}
	return opsgenieError(a, c)
}

func opsgenieActURL(c store.Channel, alias, what string) string {
	return opsgenieURL(c, "/"+url.PathEscape(alias)+"/"+what+"?identifierType=alias")
}

func opsgenieURL(c store.Channel, rest string) string {
	return base(c, "https://api.opsgenie.com") + "/v2/alerts" + rest
}

func opsgenieKey(c store.Channel) string { return "GenieKey " + c.Secrets["api_key"] }

func opsgenieAlias(m Message) string { return fit(m.key(), 512) }

// opsgenieError sorts an answer as https://docs.opsgenie.com/docs/response says. Every request about alerts is accepted
// with 202 and done later: that it could not be done is never heard.
func opsgenieError(a answer, c store.Channel) error {
	var said struct {
		Message string            `json:"message"`
		Result  string            `json:"result"`
		Request string            `json:"requestId"`
		Errors  map[string]string `json:"errors"`
	}
	readable := a.read(&said)
	switch {
	case a.ok() && readable && said.Result+said.Request != "":
		return nil
	case a.ok():
		return a.unexpected("Opsgenie")
	}
	v := a.verdict("Opsgenie")
	v.said = said.Message
	if a.status == http.StatusTooManyRequests && v.wait == 0 {
		v.wait = opsgenieThrottled(a)
	}
	switch a.status {
	case http.StatusUnauthorized:
		v.todo = "copy the API key of an API integration again, and see that the integration is switched on"
	case http.StatusForbidden:
		v.todo = "the key must be that of an API integration that may create and update alerts"
	case http.StatusPaymentRequired:
		v.todo = "the account's plan does not allow this"
	case http.StatusNotFound:
		v.todo = "the API URL leads to another server"
	}
	return a.refusal(v, c)
}

// opsgenieThrottled reads how long a limit lasts from the header of Opsgenie's own.
func opsgenieThrottled(a answer) (wait time.Duration) {
	period, err := strconv.ParseFloat(strings.TrimSpace(a.header.Get("X-RateLimit-Period-In-Sec")), 64)
	if err != nil {
		return 0
	}
	return seconds(period)
}

func opsgenieDescription(m Message) string {
	return strings.Join(nonEmpty(slices.Concat(m.story(), m.lists(), m.facts(), []string{m.whereToLook()})), "\n")
}

func opsgenieTags(m Message) []string {
	tags := []string{"rollcall", string(m.Kind)}
	for _, tag := range []string{m.Severity, m.Class} {
		if tag != "" {
			tags = append(tags, fit(tag, 50))
		}
	}
	return tags
}

func opsgenieDetails(m Message) map[string]string {
	details := map[string]string{}
	for _, d := range m.details() {
		details[d.label] = fit(d.text, 600) // ten of them stay below 8000
	}
	if m.Link != "" {
		details["Link"] = fit(m.Link, 1000)
	}
	return details
}

// opsgeniePriority is P1, critical, to P5, informational.
func opsgeniePriority(m Message) string {
	switch pagerDutySeverity(m) {
	case "critical":
		return "P1"
	case "error":
		return "P2"
	case "warning":
		return "P3"
	}
	return "P5"
}
