package store

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Audit is one line of the log of who changed what. It is written in the transaction of the change, so there is neither a change
// without its line nor a line without its change.
type Audit struct {
	ID         string
	At         time.Time
	Author     string
	AuthorKind ActorKind
	Address    string   // from where; empty where there is none, as of a command
	Action     string   // noun and verb, such as "endpoint.update"
	Target     string   // id of what was changed; of an endpoint its slug
	Name       string   // what people call it
	Changes    []Change // by field, without secrets
}

// Noun returns what kind of thing was changed: the first half of the action.
func (a Audit) Noun() string {
	noun, _, _ := strings.Cut(a.Action, ".")
	return noun
}

// Change is the difference in one field. Of a secret it says only "set", "changed" or "removed", in After.
type Change struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// AuditFilter selects from the log.
type AuditFilter struct {
	Author string // empty: anybody
	Noun   string // empty: anything
	Limit  int
	Cursor string
}

// AuditKept is how long the log is kept.
const AuditKept = 400 * 24 * time.Hour

// Actor is who asks for a change.
type Actor struct {
	Name    string
	Kind    ActorKind
	Address string // empty where there is none
}

// ActorKind says in what way somebody asked.
type ActorKind string

// The kinds of actors.
const (
	ActorMember  ActorKind = "member"
	ActorToken   ActorKind = "token"
	ActorCommand ActorKind = "command" // of the program itself, by who holds the database
	ActorSlack   ActorKind = "slack"   // who clicked there
)

type actorKey struct{}

// WithActor returns a context in which changes are somebody's: databases log them. What the service does by itself has no actor
// and leaves no line.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns whose changes those made with ctx are; false when they are nobody's.
func ActorOf(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// Audited is a thing whose changes are logged.
type Audited interface {
	// audited says what it is, by which id it goes, and what people call it.
	audited() (noun, target, name string)
	// auditForm returns its fields as far as the log compares them.
	auditForm() auditForm
}

// NewAudit returns the line about a change by the actor of ctx: before and after are nil for what was not there, or is no more.
// False when there is no actor, and when an update changed nothing.
func NewAudit(ctx context.Context, verb string, before, after Audited, at time.Time) (Audit, bool) {
	actor, ok := ActorOf(ctx)
	if !ok {
		return Audit{}, false
	}
	var was, is auditForm
	about := before
	if before != nil {
		was = before.auditForm()
	}
	if after != nil {
		about, is = after, after.auditForm()
	}
	changes := was.changes(is)
	if verb == AuditUpdate && len(changes) == 0 {
		return Audit{}, false
	}
	noun, target, name := about.audited()
	return Audit{
		ID: NewID("aud"), At: Stamp(at), Author: auditText(actor.Name), AuthorKind: actor.Kind, Address: auditText(actor.Address),
		Action: noun + "." + verb, Target: auditText(target), Name: auditText(name), Changes: changes,
	}, true
}

// The verbs that most nouns share.
const (
	AuditCreate = "create"
	AuditUpdate = "update"
	AuditDelete = "delete"
)

// Bounds of a line.
const (
	maxAuditText    = 500 // bytes
	maxAuditChanges = 60
)

func auditText(text string) string { return clipText(CleanText(text), maxAuditText) }

// clipText cuts a text to so many bytes, at the end of a character.
func clipText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

// auditForm is a thing as the log compares it: fields by name, as JSON names them.
type auditForm map[string]auditField

type auditField struct {
	text   string // empty: there is none
	secret bool
}

// show adds a field that may be shown, unless it is empty.
func (f auditForm) show(name string, value any) {
	if text := auditValue(value); text != "" {
		f[name] = auditField{text: text}
	}
}

// hide adds a field of which the log says only whether it changed, unless it is empty.
func (f auditForm) hide(name string, value any) {
	if text := auditValue(value); text != "" {
		f[name] = auditField{text: text, secret: true}
	}
}

// auditValue returns a text as it is, anything else as JSON, and nothing for what is empty.
func auditValue(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case time.Duration:
		if v == 0 {
			return ""
		}
		return v.String()
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339)
	case *time.Time:
		if v == nil {
			return ""
		}
		return auditValue(*v)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?" // nothing that is audited holds what has no JSON form
	}
	switch string(text) {
	case `null`, `""`, `[]`, `{}`, `false`, `0`:
		return ""
	}
	return strings.Trim(string(text), `"`)
}

// changes returns in what the form after differs from f, by field.
func (f auditForm) changes(after auditForm) []Change {
	names := map[string]bool{}
	for _, form := range []auditForm{f, after} {
		for name := range form {
			names[name] = true
		}
	}
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := f[name], after[name]
		if was.text == is.text {
			continue
		}
		c := Change{Field: auditText(name), Before: auditText(was.text), After: auditText(is.text)}
		if was.secret || is.secret {
			c.Before, c.After = "", secretChange(was.text, is.text)
		}
		if changes = append(changes, c); len(changes) == maxAuditChanges {
			break
		}
	}
	return changes
}

func secretChange(was, is string) string {
	switch "" {
	case was:
		return "set"
	case is:
		return "removed"
	}
	return "changed"
}

// AuditNotice is a notice that somebody has sent once more.
type AuditNotice string

func (n AuditNotice) audited() (noun, target, name string) { return "notice", string(n), "" }
func (AuditNotice) auditForm() auditForm                   { return nil }

// AuditAct is what somebody did about an incident.
type AuditAct struct {
	Incident Incident
	Act      Act
}

func (a AuditAct) audited() (noun, target, name string) { return a.Incident.audited() }

func (a AuditAct) auditForm() auditForm {
	f := auditForm{}
	f.show("text", a.Act.Text)
	f.show("public", a.Act.Public)
	f.show("until", a.Act.Until)
	return f
}

func (i Incident) audited() (noun, target, name string) {
	return "incident", i.ID, cmp.Or(i.Title, i.Name, i.Subject)
}

func (i Incident) auditForm() auditForm {
	f := auditForm{}
	f.show("kind", string(i.Kind))
	f.show("severity", string(i.Severity))
	f.show("endpoints", i.Endpoints)
	f.show("started_at", i.StartedAt)
	return f
}

func (e Endpoint) audited() (noun, target, name string) { return "endpoint", e.Slug, e.Name }

// auditForm leaves out what may be a secret: of headers, options, the command and what is asked, it says only that they changed. Of
// the URL it shows what every page shows.
func (e Endpoint) auditForm() auditForm {
	f := auditForm{}
	f.show("name", e.Name)
	f.show("kind", string(e.Kind))
	if shown := probe.RedactURL(e.URL); shown == e.URL {
		f.show("url", e.URL)
	} else {
		f.show("url", shown)
		f.hide("url (secret part)", e.URL)
	}
	f.hide("headers", e.Headers)
	f.show("request.method", e.Request.Method)
	f.hide("request.params", string(e.Request.Params))
	f.hide("options", e.Options)
	f.hide("command", e.Command)
	f.show("schedule", e.Schedule)
	f.show("timeout", e.Timeout)
	f.show("degraded_over", e.DegradedOver)
	f.show("confirm.failures", e.Confirm.Failures)
	f.show("confirm.successes", e.Confirm.Successes)
	f.show("confirm.after", e.Confirm.After)
	f.show("public", e.Public)
	f.show("paused", e.Paused)
	f.show("tags", e.Tags)
	f.show("channels", e.Channels)
	f.show("contract_notices", e.ContractNotices)
	f.show("locations", e.Locations)
	f.show("quorum", e.Quorum)
	f.show("alerting", e.Alerting)
	f.show("depends_on", e.DependsOn)
	f.show("objectives", e.Objectives)
	return f
}

func (c Channel) audited() (noun, target, name string) { return "channel", c.ID, c.Name }

func (c Channel) auditForm() auditForm {
	f := auditForm{}
	f.show("name", c.Name)
	f.show("type", string(c.Type))
	for name, value := range c.Settings {
		f.show(name, value)
	}
	for name, value := range c.Secrets {
		f.hide(name, value)
	}
	return f
}

func (m Maintenance) audited() (noun, target, name string) { return "maintenance", m.ID, m.Title }

func (m Maintenance) auditForm() auditForm {
	f := auditForm{}
	f.show("title", m.Title)
	f.show("text", m.Text)
	f.show("starts_at", m.StartsAt)
	f.show("ends_at", m.EndsAt)
	f.show("schedule", m.Schedule)
	f.show("duration", m.Duration)
	f.show("all", m.All)
	f.show("endpoints", m.Endpoints)
	f.show("tags", m.Tags)
	f.show("public", m.Public)
	return f
}

func (p StatusPage) audited() (noun, target, name string) { return "status_page", p.Slug, p.Name }

func (p StatusPage) auditForm() auditForm {
	f := auditForm{}
	f.show("name", p.Name)
	f.show("text", p.Text)
	f.hide("logo", p.Logo)
	f.show("accent", p.Accent)
	f.show("sections", p.Sections)
	f.show("domain", p.Domain)
	f.show("domain_proven_at", p.DomainProvenAt)
	f.hide("password", p.PasswordHash)
	f.show("hide_from_search", p.HideFromSearch)
	return f
}

func (s Subscription) audited() (noun, target, name string) { return "subscription", s.ID, "" }

// auditForm leaves out the address, which is somebody's own.
func (s Subscription) auditForm() auditForm {
	f := auditForm{}
	f.show("type", string(s.Channel.Type))
	f.hide("address", s.Address())
	f.show("all", s.All)
	f.show("endpoints", s.Endpoints)
	f.show("tags", s.Tags)
	f.show("severities", s.Severities)
	f.show("quiet", s.Quiet)
	f.show("confirmed_at", s.ConfirmedAt)
	return f
}

func (u User) audited() (noun, target, name string) { return "member", u.ID, u.Name }

func (u User) auditForm() auditForm {
	f := auditForm{}
	f.show("name", u.Name)
	f.show("role", string(u.Role))
	f.hide("password", u.PasswordHash)
	f.show("disabled_at", u.DisabledAt)
	f.show("identity", strings.TrimSpace(u.Issuer+" "+u.Subject))
	return f
}

func (s Session) audited() (noun, target, name string) { return "session", s.ID(), s.UserAgent }

func (s Session) auditForm() auditForm {
	f := auditForm{}
	f.show("address", s.Address)
	f.show("created_at", s.CreatedAt)
	return f
}

func (i Invitation) audited() (noun, target, name string) { return "invitation", i.ID, i.Name }

func (i Invitation) auditForm() auditForm {
	f := auditForm{}
	f.show("role", string(i.Role))
	f.show("resets", i.UserID)
	f.show("expires_at", i.ExpiresAt)
	return f
}

func (t Token) audited() (noun, target, name string) { return "token", t.ID, t.Name }

func (t Token) auditForm() auditForm {
	f := auditForm{}
	f.show("role", string(t.Role))
	f.show("scopes", t.Scopes)
	f.show("expires_at", t.ExpiresAt)
	f.show("revoked_at", t.RevokedAt)
	return f
}

func (f Factor) audited() (noun, target, name string) { return "second_factor", f.UserID, "" }

func (f Factor) auditForm() auditForm {
	form := auditForm{}
	form.show("confirmed_at", f.ConfirmedAt)
	form.show("recovery_codes", len(f.Recovery))
	return form
}
