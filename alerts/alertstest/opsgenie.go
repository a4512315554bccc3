package alertstest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// OpsgenieKey is the API key that an Opsgenie accepts.
const OpsgenieKey = "eb243592-faa2-4ba2-a551-1afdf565c889"

// OpsgenieAlert is one that was created.
type OpsgenieAlert struct {
	Message, Alias, Description, Entity, Source, Priority string

	Tags    []string
	Details map[string]string

	Count  int // how often it was created while it was open
	Closed bool
	Acked  bool
	Notes  []string
}

// Opsgenie is a server like that of Opsgenie's Alert API. Unlike that one it does at once what it was asked to.
type Opsgenie struct {
	*Service
	alerts map[string]*OpsgenieAlert
}

// NewOpsgenie starts a server that ends with the test.
func NewOpsgenie(t testing.TB) *Opsgenie {
	o := &Opsgenie{alerts: map[string]*OpsgenieAlert{}}
	o.Service = start(t, o.serve)
	return o
}

// Alert returns an alert by its alias, the zero one when there is none.
func (o *Opsgenie) Alert(alias string) OpsgenieAlert {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.alerts[alias]; a != nil {
		return *a
	}
	return OpsgenieAlert{}
}

func (o *Opsgenie) serve(r Request) Reply {
	rest, ok := strings.CutPrefix(r.Path, "/v2/alerts")
	switch {
	case !ok || r.Method != http.MethodPost && r.Method != http.MethodPut:
		return Reply{Status: http.StatusNotFound, Body: "<html>no such page</html>"}
	case r.Header.Get("Authorization") != "GenieKey "+OpsgenieKey:
		return opsgenieSays(http.StatusUnauthorized, "message", "Could not authenticate")
	case rest == "":
		return o.create(r)
	}
	alias, what, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	var note struct{ Note, Source, Priority string }
	alert := o.alerts[alias]
	switch {
	case json.Unmarshal(r.Body, &note) != nil:
		return opsgenieSays(http.StatusBadRequest, "message", "Request body is not processable. Please check the errors.")
	case r.Query != "identifierType=alias" || alert == nil:
		return opsgenieSays(http.StatusNotFound, "message", "Alert does not exist")
	case note.Note != "":
		alert.Notes = append(alert.Notes, note.Note)
	}
	switch r.Method + " " + what {
	case "POST close":
		alert.Closed = true
	case "POST acknowledge":
		alert.Acked = true
	case "POST notes":
	case "PUT priority":
		alert.Priority = note.Priority
	default:
		return opsgenieSays(http.StatusNotFound, "message", "No handler found")
	}
	return opsgenieSays(http.StatusAccepted, "result", "Request will be processed")
}

func (o *Opsgenie) create(r Request) Reply {
	var alert OpsgenieAlert
	if json.Unmarshal(r.Body, &alert) != nil {
		return opsgenieSays(http.StatusBadRequest, "message", "Request body is not processable. Please check the errors.")
	}
	if wrong := opsgenieProblem(alert); wrong != "" {
		return opsgenieSays(http.StatusUnprocessableEntity, "message", wrong)
	}
	known := o.alerts[alert.Alias]
	if known == nil || known.Closed {
		alert.Count = 1
		o.alerts[alert.Alias] = &alert
	} else {
		known.Count++
	}
	return opsgenieSays(http.StatusAccepted, "result", "Request will be processed")
}

// opsgenieProblem returns what is wrong with an alert by the limits that Opsgenie documents. The real one cuts instead.
func opsgenieProblem(a OpsgenieAlert) string {
	details := 0
	for name, value := range a.Details {
		details += length(name) + length(value)
	}
	switch {
	case a.Message == "" || length(a.Message) > 130:
		return "Message can not be empty or longer than 130 characters."
	case a.Alias == "" || length(a.Alias) > 512:
		return "Alias can not be longer than 512 characters."
	case length(a.Description) > 15000:
		return "Description can not be longer than 15000 characters."
	case len(a.Tags) > 20 || details > 8000 || length(a.Entity) > 512 || length(a.Source) > 100:
		return "A property is too long."
	case len(a.Priority) != 2 || a.Priority < "P1" || a.Priority > "P5":
		return "Priority should be one of [ P1, P2, P3, P4, P5 ]"
	}
	return ""
}

func opsgenieSays(status int, name, words string) Reply {
	return asJSON(status, map[string]any{name: words, "took": 0.012, "requestId": "43a29c5c-3dbf-4fa4-9c26-f4f71023e120"})
}
