package web

import (
	"fmt"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// FormPage registers an endpoint or edits one.
type FormPage struct {
	Frame
	Slug     string // of the endpoint that is edited; empty when registering
	Name     string // of the endpoint that is edited, as kept
	Form     EndpointForm
	Kinds    []KindGroup
	Channels []ChannelOption
	Known    []string // locations there are
	Parents  Picker   // that it stands behind
	Problems Problems
	Test     *Check // what a test saw; nil when none was made
	Proposed []Said // what it made us propose
}

func (FormPage) template() string { return "form" }

// Action is the address that the form is posted to.
func (p FormPage) Action() string {
	if p.Slug == "" {
		return "/endpoints/new"
	}
	return "/endpoints/" + p.Slug + "/edit"
}

// EndpointForm is an endpoint as somebody typed it.
type EndpointForm struct {
	URL, Name, Kind                 string
	Method, Params                  string
	Headers                         []HeaderRow
	Schedule, Timeout, DegradedOver string
	Failures, Successes, After      string
	Tags                            string // separated by commas
	Channels                        []string
	Public                          bool

	// Command is what a local process is started with, as it is shown; empty for an endpoint with a URL. It is never typed.
	Command string

	ExpectPath, ExpectEquals, ExpectRegex, ExpectCEL string
	Chain                                            string
	Subscribe                                        bool
	CanaryTool, CanaryArguments                      string
	CA                                               string
	Insecure                                         bool
	OAuthID, OAuthSecret, OAuthTokenURL              string
	KeptOAuthSecret                                  bool // a client secret is kept while OAuthSecret is empty
	ContractNotices                                  bool

	Locations string // separated by commas or line breaks; empty for all
	Quorum    string // a number, or empty for the majority

	Notify       []string // severities
	UnknownAfter string   // a duration; empty for the default, as the next two
	RemindEvery  string
	FlapChanges  string
	Steps        []StepRow
	Objectives   []ObjectiveRow
}

// StepRow is a step of an escalation as typed.
type StepRow struct {
	After    string
	Channels []string
}

// Chosen reports whether a channel is chosen.
func (r StepRow) Chosen(id string) bool { return contains(r.Channels, id) }

// ObjectiveRow is an objective as typed.
type ObjectiveRow struct {
	Name, Target, Days, Under string
	Notify                    bool
}

// StepRows returns the typed steps and a blank one.
func (f EndpointForm) StepRows() []StepRow {
	return append(append([]StepRow(nil), f.Steps...), make([]StepRow, max(1, leastSteps-len(f.Steps)))...)
}

// ObjectiveRows returns the typed objectives and a blank one.
func (f EndpointForm) ObjectiveRows() []ObjectiveRow {
	rows := append([]ObjectiveRow(nil), f.Objectives...)
	for range max(1, leastObjectives-len(f.Objectives)) {
		rows = append(rows, ObjectiveRow{Notify: true})
	}
	return rows
}

// How many rows there are at least, without a script to add one.
const (
	leastSteps      = 2
	leastObjectives = 2
)

// Severities are the ticks for what is told, worst first.
func (f EndpointForm) Severities() []Tick {
	return SeverityTicks(func(s store.Status) bool { return contains(f.Notify, string(s)) })
}

// SeverityTicks returns one tick for each severity, worst first.
func SeverityTicks(on func(store.Status) bool) []Tick {
	var ticks []Tick
	for _, s := range store.Severities() {
		ticks = append(ticks, Tick{Value: string(s), Label: tagOf(s).Word, On: on(s)})
	}
	return ticks
}

// AlertsSet reports whether anything is set about alerts that most endpoints leave alone.
func (p FormPage) AlertsSet() bool {
	f := p.Form
	return f.UnknownAfter != "" || f.RemindEvery != "" || f.FlapChanges != "" || len(f.Steps)+len(f.Objectives) > 0 || p.Parents.Any() ||
		p.Problems.Alerts()
}

// Alerts reports whether something is wrong among those settings.
func (ps Problems) Alerts() bool {
	for _, field := range []string{"unknown_after", "remind_every", "flap_changes", "escalation", "depends_on", "objectives"} {
		if ps.Any(field) {
			return true
		}
	}
	return false
}

// MoreSet reports whether anything among the settings that most endpoints leave alone is set.
func (f EndpointForm) MoreSet() bool {
	return f.ExpectPath != "" || f.ExpectEquals != "" || f.ExpectRegex != "" || f.ExpectCEL != "" || f.Chain != "" || f.Subscribe ||
		f.CanaryTool != "" || f.CanaryArguments != "" || f.CA != "" || f.Insecure || f.OAuthID != "" || f.OAuthSecret != "" ||
		f.OAuthTokenURL != "" || f.ContractNotices || f.Locations != "" || f.Quorum != ""
}

// More reports whether something is wrong among those settings.
func (ps Problems) More() bool {
	for _, field := range []string{"request.expect", "chain", "subscribe", "canary", "tls", "oauth", "contract_notices", "locations", "quorum"} {
		if ps.Any(field) {
			return true
		}
	}
	return false
}

// HeaderRow is one header as typed.
type HeaderRow struct {
	Name, Value string
	Secret      bool
	Kept        bool // the endpoint holds a secret value that is kept while Value is empty
}

// blankHeaders is how many empty rows there are to type further headers into, without a script to add one.
const blankHeaders = 2

// HeaderRows returns the typed headers and some blank rows.
func (f EndpointForm) HeaderRows() []HeaderRow {
	rows := append([]HeaderRow(nil), f.Headers...)
	for range blankHeaders {
		rows = append(rows, HeaderRow{Secret: true})
	}
	return rows
}

// Chosen reports whether a channel is chosen.
func (f EndpointForm) Chosen(id string) bool {
	for _, c := range f.Channels {
		if c == id {
			return true
		}
	}
	return false
}

// ChannelOption is a channel that can be chosen.
type ChannelOption struct {
	ID, Name, Type string
	Broken         bool
}

// Problems are the mistakes in a form, in the order in which they were found.
type Problems []probe.Problem

// For returns what is wrong with a field. A problem of one item of a list, such as "tags[1]", belongs to the list when
// the form has one field for all of it.
func (ps Problems) For(field string) []string {
	var messages []string
	for _, p := range ps {
		if fieldOf(p.Field) == field {
			messages = append(messages, p.Message)
		}
	}
	return messages
}

// Any reports whether something is wrong with a field or with one below it.
func (ps Problems) Any(field string) bool {
	for _, p := range ps {
		f := fieldOf(p.Field)
		if f == field || strings.HasPrefix(f, field+".") || strings.HasPrefix(f, field+"[") {
			return true
		}
	}
	return false
}

// fieldOf returns the field of the form in which a problem's field was typed.
func fieldOf(field string) string {
	for _, list := range []string{"tags", "channels", "locations", "notify", "depends_on", "endpoints", "severities"} {
		if strings.HasPrefix(field, list+"[") {
			return list
		}
	}
	if strings.HasPrefix(field, "escalation[") {
		if before, _, found := strings.Cut(field, ".channels["); found {
			return before + ".channels"
		}
	}
	return field
}

// FieldID returns the id of the form control for a field: "f-headers-0-name" for "headers[0].name".
func FieldID(field string) string {
	return "f-" + strings.NewReplacer("[", "-", "].", "-", "]", "", ".", "-", "_", "-").Replace(fieldOf(field))
}

// labels are the words on the form for each field, for the list of mistakes.
var labels = map[string]string{
	"url": "URL", "name": "Name", "kind": "Kind", "request": "Request", "request.method": "Method",
	"request.params": "Params", "headers": "Headers", "schedule": "Schedule", "timeout": "Timeout",
	"degraded_over": "Degraded over", "confirm": "Confirmation", "confirm.failures": "Failures",
	"confirm.successes": "Successes", "confirm.after": "Check again after", "tags": "Tags", "channels": "Channels",
	"public": "Public", "type": "Type", "user": "Name", "password": "Password", "old": "Your password",
	"password_old": "Your password", "identity": "Your identity", "identity_old": "Your password", "role": "Role", "code": "Code", "scopes": "Scopes", "expires_at": "Good until",
	"request.expect": "Expectation", "request.expect.path": "Path", "request.expect.equals": "Equals",
	"request.expect.regex": "Matches", "request.expect.cel": "Expression", "chain": "Chain", "chain.id": "Chain",
	"subscribe": "Subscription", "canary": "Canary", "canary.tool": "Canary tool", "canary.arguments": "Arguments",
	"tls": "TLS", "tls.ca": "CA certificates", "tls.client_key": "Client key", "tls.insecure": "Accept any certificate",
	"oauth": "OAuth", "oauth.client_id": "Client id", "oauth.client_secret": "Client secret", "oauth.token_url": "Token URL",
	"contract_notices": "Changes of the tool list", "locations": "Locations", "quorum": "Quorum", "command": "Command",
	"notify": "Severities", "unknown_after": "Unknown for", "remind_every": "Remind every", "flap_changes": "Changes in an hour",
	"escalation": "Escalation", "depends_on": "Stands behind", "objectives": "Objectives",
	"title": "Title", "text": "Text", "severity": "Severity", "endpoints": "Endpoints", "started_at": "Began", "starts_at": "From",
	"ends_at": "Until", "duration": "Lasts", "all": "Everything", "act": "This act", "until": "Snooze", "for": "Snooze",
	"slug": "Address", "logo": "Logo", "accent": "Colour", "sections": "What it shows", "domain": "Domain",
	"address": "Address", "signing_secret": "Signing secret", "severities": "Severities", "quiet": "Quiet hours", "quiet.zone": "Time zone",
}

// rowLabels are the words for a row of the form that is an item of a list, and for the fields in one, by the number of the row.
var rowLabels = map[string]string{
	"headers[]": "Header %s", "headers[].name": "Header %s name", "headers[].value": "Header %s value",
	"escalation[]": "Escalation step %s", "escalation[].after": "Escalation step %s after", "escalation[].channels": "Escalation step %s channels",
	"objectives[]": "Objective %s", "objectives[].name": "Objective %s name", "objectives[].target": "Objective %s target",
	"objectives[].days": "Objective %s days", "objectives[].under": "Objective %s under",
	"sections[]": "Section %s", "sections[].title": "Section %s title", "sections[].endpoints": "Section %s endpoints",
	"sections[].tags": "Section %s tags",
}

// Label returns the words on the form for a field, in English.
func (ps Problems) Label(field string) string {
	field = fieldOf(field)
	if l, ok := labels[field]; ok {
		return l
	}
	if list, rest, found := strings.Cut(field, "["); found {
		n, part, _ := strings.Cut(rest, "]")
		if l, ok := rowLabels[list+"[]"+part]; ok {
			return fmt.Sprintf(l, ordinal(n))
		}
	}
	return field
}

// ordinal counts from one what code counts from zero.
func ordinal(n string) string {
	var i int
	for _, r := range n {
		if r < '0' || r > '9' || i > 1000 {
			return n
		}
		i = i*10 + int(r-'0')
	}
	return grouped(uint64(i) + 1)
}
