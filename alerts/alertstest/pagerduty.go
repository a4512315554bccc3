package alertstest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// PagerDutyKey is the routing key that a PagerDuty accepts.
const PagerDutyKey = "e93facc04764012d7bfb002500d5d1a6"

// PagerDutyEvent is one that was accepted.
type PagerDutyEvent struct {
	RoutingKey string `json:"routing_key"`
	Action     string `json:"event_action"`
	DedupKey   string `json:"dedup_key"`
	Client     string `json:"client"`
	ClientURL  string `json:"client_url"`
	Links      []struct{ Href, Text string }
	Payload    *struct {
		Summary, Source, Severity, Timestamp, Component, Class string

		Details map[string]any `json:"custom_details"`
	} `json:"payload"`
}

// PagerDuty is a server like that of PagerDuty's Events API v2.
type PagerDuty struct {
	*Service
	events []PagerDutyEvent
	open   map[string]bool
}

// NewPagerDuty starts a server that ends with the test.
func NewPagerDuty(t testing.TB) *PagerDuty {
	p := &PagerDuty{open: map[string]bool{}}
	p.Service = start(t, p.enqueue)
	return p
}

// Events returns everything that was accepted so far, in order.
func (p *PagerDuty) Events() []PagerDutyEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]PagerDutyEvent(nil), p.events...)
}

// Open returns how many alerts are triggered and not resolved.
func (p *PagerDuty) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

func (p *PagerDuty) enqueue(r Request) Reply {
	if r.Method != http.MethodPost || r.Path != "/v2/enqueue" {
		return Reply{Status: http.StatusNotFound, Body: "Not Found"}
	}
	var e PagerDutyEvent
	if json.Unmarshal(r.Body, &e) != nil {
		return asJSON(http.StatusBadRequest, map[string]any{
			"status": "Unrecognized object", "message": "Event object format is unrecognized", "errors": []string{"JSON parse error"},
		})
	}
	if wrong := pagerDutyProblems(e); len(wrong) > 0 {
		return asJSON(http.StatusBadRequest, map[string]any{"status": "invalid event", "message": "Event object is invalid", "errors": wrong})
	}
	p.events = append(p.events, e)
	switch e.Action {
	case "trigger":
		p.open[e.DedupKey] = true
	case "resolve":
		delete(p.open, e.DedupKey)
	}
	return asJSON(http.StatusAccepted, map[string]any{"status": "success", "message": "Event processed", "dedup_key": e.DedupKey})
}

func pagerDutyProblems(e PagerDutyEvent) []string {
	var wrong []string
	say := func(bad bool, what string) {
		if bad {
			wrong = append(wrong, what)
		}
	}
	say(len(e.RoutingKey) != 32, "Length of 'routing_key' is incorrect (should be 32 characters)")
	say(len(e.RoutingKey) == 32 && e.RoutingKey != PagerDutyKey, "Invalid routing key")
	say(e.Action != "trigger" && e.Action != "acknowledge" && e.Action != "resolve", "'event_action' is invalid")
	say(e.DedupKey == "" && e.Action != "trigger", "'dedup_key' is missing or blank")
	say(length(e.DedupKey) > 255, "Length of 'dedup_key' is too long")
	if e.Action != "trigger" {
		return wrong
	}
	if e.Payload == nil {
		return append(wrong, "'payload' is missing or blank")
	}
	severities := map[string]bool{"critical": true, "error": true, "warning": true, "info": true}
	say(e.Payload.Summary == "", "'payload.summary' is missing or blank")
	say(length(e.Payload.Summary) > 1024, "'payload.summary' is too long")
	say(e.Payload.Source == "", "'payload.source' is missing or blank")
	say(!severities[e.Payload.Severity], "'payload.severity' is invalid (must be one of the following: 'critical', 'warning', 'error' or 'info')")
	if e.Payload.Timestamp != "" {
		_, err := time.Parse(time.RFC3339, e.Payload.Timestamp)
		say(err != nil, "'payload.timestamp' is invalid")
	}
	for _, l := range e.Links {
		say(l.Href == "", "'links.href' is missing or blank")
	}
	return wrong
}
