package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Incident is an incident as it stands in JSON.
type Incident struct {
	ID             string               `json:"id"`
	Kind           store.IncidentKind   `json:"kind"`
	Endpoint       *string              `json:"endpoint"`  // its slug; null when it is about none, or about several
	Name           string               `json:"name"`      // of the endpoint
	Endpoints      []string             `json:"endpoints"` // slugs of all that are in it
	Title          string               `json:"title"`     // of one that has a name of its own
	Status         store.IncidentStatus `json:"status"`
	Severity       store.Status         `json:"severity"`
	Worst          store.Status         `json:"worst"`
	StartedAt      Time                 `json:"started_at"`
	OpenedAt       Time                 `json:"opened_at"` // when it was confirmed
	ResolvedAt     *Time                `json:"resolved_at"`
	Resolution     store.Resolution     `json:"resolution,omitempty"`
	Cause          probe.Failure        `json:"cause"`
	Check          *string              `json:"check"` // id of the one that opened it
	SeenFrom       []string             `json:"seen_from"`
	Flapping       bool                 `json:"flapping"`
	AcknowledgedAt *Time                `json:"acknowledged_at"`
	AcknowledgedBy *string              `json:"acknowledged_by"`
	SnoozedUntil   *Time                `json:"snoozed_until"`
	Public         bool                 `json:"public"`            // strangers are shown it on the built-in status page
	Timeline       []Entry              `json:"timeline,omitzero"` // oldest first; not in lists
}

// Entry is a line of an incident's timeline as it stands in JSON.
type Entry struct {
	ID         string          `json:"id"`
	At         Time            `json:"at"`
	Kind       store.EntryKind `json:"kind"`
	Author     string          `json:"author"` // empty: Rollcall itself
	Text       string          `json:"text"`
	Public     bool            `json:"public"`
	Severity   store.Status    `json:"severity,omitempty"`
	Cause      *probe.Failure  `json:"cause,omitempty"`
	Notice     string          `json:"notice,omitempty"`
	NoticeKind string          `json:"notice_kind,omitempty"`
	Channel    string          `json:"channel,omitempty"` // id
}

// IncidentJSON returns i as it stands in JSON, without its timeline. slugs are those of the endpoints in it, by id.
func IncidentJSON(i store.Incident, slugs map[string]string) Incident {
	shown := Incident{
		ID:             i.ID,
		Kind:           i.Kind,
		Endpoint:       textOrNull(i.Slug),
		Name:           i.Name,
		Endpoints:      slugsOf(i.Endpoints, slugs),
		Title:          i.Title,
		Status:         incidentStatus(i),
		Severity:       i.Severity,
		Worst:          cmp.Or(i.Worst, i.Severity),
		StartedAt:      Time{i.StartedAt},
		OpenedAt:       Time{i.OpenedAt},
		ResolvedAt:     timeOf(i.ResolvedAt),
		Resolution:     i.Resolution,
		Cause:          i.Cause,
		Check:          textOrNull(i.CheckID),
		SeenFrom:       append([]string{}, i.SeenFrom...),
		Flapping:       i.Flapping,
		AcknowledgedAt: timeOf(i.AcknowledgedAt),
		AcknowledgedBy: textOrNull(i.AcknowledgedBy),
		SnoozedUntil:   timeOf(i.SnoozedUntil),
		Public:         isShown(i),
	}
	if len(i.Endpoints) == 0 && i.Slug != "" {
		shown.Endpoints = []string{i.Slug}
	}
	return shown
}

func entryJSON(e store.Entry) Entry {
	return Entry{
		e.ID, Time{e.At}, e.Kind, e.Author, e.Text, e.Public, e.Severity, e.Cause, e.NoticeID, e.NoticeKind, e.ChannelID,
	}
}

// textOrNull returns nil for an empty text.
func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func incidentStatus(i store.Incident) store.IncidentStatus {
	if i.ResolvedAt == nil {
		return store.IncidentOpen
	}
	return store.IncidentResolved
}

// incidentKinds are those that a list can be asked for.
var incidentKinds = []store.IncidentKind{
	store.IncidentEndpoint, store.IncidentExpiring, store.IncidentObjective, store.IncidentChain, store.IncidentLocation, store.IncidentManual,
}

func (s *Server) listIncidents(c echo.Context) error {
	q := queryOf(c)
	slug := q.text("endpoint")
	f := store.IncidentFilter{
		Status: choice(q, "status", []store.IncidentStatus{store.IncidentOpen, store.IncidentResolved}),
		Since:  q.time("since"),
		Limit:  q.limit(),
		Cursor: q.text("cursor"),
	}
	if kind := choice(q, "kind", incidentKinds); kind != "" {
		f.Kinds = []store.IncidentKind{kind}
	}
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if slug != "" {
		o, err := s.cfg.Store.Endpoint(ctx, slug)
		if err != nil {
			return err
		}
		f.EndpointID = o.ID
	}
	page, err := s.cfg.Store.Incidents(ctx, f)
	if err != nil {
		return err
	}
	items, err := s.incidentsJSON(ctx, page.Items...)
	if err != nil {
		return err
	}
	return ok(c, list[Incident]{items, page.Next})
}

// incidentsJSON returns incidents as they stand in JSON, without their timelines.
func (s *Server) incidentsJSON(ctx context.Context, incidents ...store.Incident) ([]Incident, error) {
	ids := map[string]bool{}
	for _, i := range incidents {
		for _, id := range i.Endpoints {
			ids[id] = true
		}
	}
	slugs, err := s.slugs(ctx, ids)
	if err != nil {
		return nil, err
	}
	all := make([]Incident, 0, len(incidents))
	for _, i := range incidents {
		all = append(all, IncidentJSON(i, slugs))
	}
	return all, nil
}

func (s *Server) getIncident(c echo.Context) error {
	i, err := s.cfg.Store.Incident(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return s.answerIncident(c, http.StatusOK, i)
}

// answerIncident answers with an incident and its timeline.
func (s *Server) answerIncident(c echo.Context, status int, i store.Incident) error {
	ctx := c.Request().Context()
	items, err := s.incidentsJSON(ctx, i)
	if err != nil {
		return err
	}
	entries, err := s.cfg.Store.Timeline(ctx, i.ID)
	if err != nil {
		return err
	}
	items[0].Timeline = make([]Entry, 0, len(entries))
	for _, e := range entries {
		items[0].Timeline = append(items[0].Timeline, entryJSON(e))
	}
	return answer(c, status, "application/json", items[0])
}

// announcement is what somebody wants an incident to be that no check tells of.
type announcement struct {
	Title     string
	Severity  store.Status // empty: degraded
	Text      string
	Endpoints []string  // slugs
	StartedAt time.Time // zero: at present

	// Mistakes are those already met while reading.
	Mistakes []probe.Problem
}

// Bounds of an announcement. One that began long ago is history, and not one to be announced.
const (
	maxTitle     = 100 // characters
	maxWords     = 4000
	maxAnnounced = 100 // endpoints
	maxStarted   = 30 * 24 * time.Hour
)

// announce opens an incident by hand and tells the channels of its endpoints. Errors are store.Invalid with every mistake, or
// the database's.
func (s *Server) announce(ctx context.Context, a announcement, author string) (store.Incident, error) {
	ids, unknown, err := s.idsOf(ctx, "endpoints", a.Endpoints, maxAnnounced)
	if err != nil {
		return store.Incident{}, err
	}
	now := time.Now()
	mistakes := further(append([]probe.Problem{}, a.Mistakes...), append(a.mistakes(now), unknown...))
	if len(mistakes) > 0 {
		return store.Incident{}, store.Invalid{Problems: mistakes}
	}
	i := store.Incident{
		Kind: store.IncidentManual, Endpoints: ids, Title: strings.TrimSpace(a.Title), Public: true,
		Severity: cmp.Or(a.Severity, store.StatusDegraded), StartedAt: a.StartedAt, OpenedAt: now,
	}
	i.Worst = i.Severity
	if i.StartedAt.IsZero() {
		i.StartedAt = now
	}
	channels, err := s.audienceOf(ctx, ids)
	if err != nil {
		return store.Incident{}, err
	}
	i, _, err = s.cfg.Store.Raise(ctx, i, author, strings.TrimSpace(a.Text), channels)
	if err != nil {
		return store.Incident{}, err
	}
	s.noticed()
	return s.cfg.Store.Incident(ctx, i.ID)
}

// mistakes says what is wrong with a in itself.
func (a announcement) mistakes(now time.Time) []probe.Problem {
	var mistakes []probe.Problem
	wrong := func(field, message string) {
		mistakes = append(mistakes, probe.Problem{Field: field, Message: message})
	}
	switch title := strings.TrimSpace(a.Title); {
	case title == "":
		wrong("title", "is required")
	case utf8.RuneCountInString(title) > maxTitle:
		wrong("title", "is longer than 100 characters")
	case !isText(title) || strings.ContainsFunc(title, unicode.IsControl):
		wrong("title", "holds control characters")
	}
	if a.Severity != "" && !isSeverity(a.Severity) {
		wrong("severity", "must be one of down, gated, unknown and degraded")
	}
	if utf8.RuneCountInString(a.Text) > maxWords {
		wrong("text", "is longer than 4000 characters")
	}
	if len(a.Endpoints) > maxAnnounced {
		wrong("endpoints", "are more than 100")
	}
	if !a.StartedAt.IsZero() && (a.StartedAt.After(now) || now.Sub(a.StartedAt) > maxStarted) {
		wrong("started_at", "must lie in the last 30 days")
	}
	return mistakes
}

func isSeverity(s store.Status) bool { return store.Graver(s, "") }

// audienceOf returns the ids of the channels that hear of any of some endpoints.
func (s *Server) audienceOf(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	page, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{IDs: ids, Limit: -1})
	if err != nil {
		return nil, err
	}
	var channels []string
	for _, o := range page.Items {
		channels = append(channels, o.Channels...)
	}
	slices.Sort(channels)
	return slices.Compact(channels), nil
}

func (s *Server) postIncident(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	var a announcement
	set(&a.Title, m.text("title", ""))
	if severity := m.text("severity", ""); severity != nil {
		a.Severity = store.Status(*severity)
	}
	set(&a.Text, m.text("text", ""))
	set(&a.Endpoints, m.texts("endpoints"))
	set(&a.StartedAt, m.time("started_at"))
	m.rest()
	a.Mistakes = *m.mistakes
	i, err := s.announce(c.Request().Context(), a, s.caller(c))
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/api/v1/incidents/"+i.ID)
	return s.answerIncident(c, http.StatusCreated, i)
}
