package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Endpoint is an endpoint as it stands in JSON. Secrets are not part of it.
type Endpoint struct {
	Slug         string     `json:"slug"`
	Name         string     `json:"name"`
	Kind         probe.Kind `json:"kind"`
	URL          string     `json:"url"` // with what may be a key cut out
	Schedule     string     `json:"schedule"`
	Timeout      string     `json:"timeout"`
	DegradedOver string     `json:"degraded_over"`
	Confirm      Confirm    `json:"confirm"`
	Headers      []Header   `json:"headers"`
	Request      Request    `json:"request"`
	Command      *Command   `json:"command,omitempty"` // of an endpoint without a URL
	Options
	Public   bool     `json:"public"`
	Paused   bool     `json:"paused"`
	Tags     []string `json:"tags"`
	Channels []string `json:"channels"`

	ContractNotices bool `json:"contract_notices"`

	Locations []string `json:"locations"` // none: all that there are
	Quorum    int      `json:"quorum"`    // 0: the majority

	Alerting

	Status    store.Status `json:"status"`
	Since     *Time        `json:"since"`      // null while nothing is known
	LastCheck *Check       `json:"last_check"` // null when there is none
	Places    []Place      `json:"places"`     // by location
	CreatedAt Time         `json:"created_at"`
	UpdatedAt Time         `json:"updated_at"`
}

// Place is an endpoint as seen from one location.
type Place struct {
	Location    string        `json:"location"`
	Status      store.Status  `json:"status"`
	Since       *Time         `json:"since"`         // null while nothing is known
	LastCheckAt *Time         `json:"last_check_at"` // null before the first
	Failure     *PlaceFailure `json:"failure,omitempty"`
}

// PlaceFailure is why the status of a place is not up.
type PlaceFailure struct {
	Step    string      `json:"step"`
	Class   probe.Class `json:"class"`
	Code    int         `json:"code"`
	Message string      `json:"message"`
}

// Confirm says how many checks change a status.
type Confirm struct {
	Failures  int    `json:"failures"`
	Successes int    `json:"successes"`
	After     string `json:"after"`
}

// Header is a request header; Value is absent when it is secret.
type Header struct {
	Name   string  `json:"name"`
	Value  *string `json:"value,omitempty"`
	Secret bool    `json:"secret"`
}

// Request is what an endpoint is asked, where its kind leaves that open, and what it must answer.
type Request struct {
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Expect *probe.Expect   `json:"expect,omitempty"`
	Batch  []probe.Call    `json:"batch,omitempty"`
	Notify bool            `json:"notify,omitempty"`
}

// EndpointJSON returns o as it stands in JSON. slugs are those of the endpoints that it depends on, by id.
func EndpointJSON(o store.Overview, slugs map[string]string) Endpoint {
	e := Endpoint{
		Slug:            o.Slug,
		Name:            o.Name,
		Kind:            o.Kind,
		URL:             probe.RedactURL(o.URL),
		Schedule:        o.Schedule,
		Timeout:         durationText(o.Timeout),
		DegradedOver:    durationText(o.DegradedOver),
		Confirm:         Confirm{o.Confirm.Failures, o.Confirm.Successes, durationText(o.Confirm.After)},
		Headers:         make([]Header, 0, len(o.Headers)),
		Request:         requestJSON(o.Endpoint),
		Command:         CommandJSON(o.Command),
		Options:         optionsJSON(o.Options),
		Public:          o.Public,
		Paused:          o.Paused,
		Tags:            append([]string{}, o.Tags...),
		Channels:        append([]string{}, o.Channels...),
		ContractNotices: o.ContractNotices,
		Locations:       append([]string{}, o.Locations...),
		Quorum:          o.Quorum,
		Alerting:        alertingJSON(o.Endpoint, slugs),
		Places:          []Place{},
		Status:          o.Status(),
		Since:           timeOf(&o.State.Since),
		CreatedAt:       Time{o.CreatedAt},
		UpdatedAt:       Time{o.UpdatedAt},
	}
	for _, h := range o.Headers {
		e.Headers = append(e.Headers, headerJSON(h))
	}
	for _, p := range placesOf(o) {
		e.Places = append(e.Places, placeJSON(o, p))
	}
	if o.LastCheck != nil {
		c := CheckJSON(*o.LastCheck)
		c.Endpoint = o.Slug
		e.LastCheck = &c
	}
	return e
}

func placeJSON(o store.Overview, p store.Place) Place {
	place := Place{
		Location:    p.Location,
		Status:      placeStatus(o, p),
		Since:       timeOf(&p.State.Since),
		LastCheckAt: timeOf(&p.State.LastCheckAt),
	}
	if f := p.State.Failure; f != nil {
		place.Failure = &PlaceFailure{f.Step, f.Class, f.Code, f.Message}
	}
	return place
}

func headerJSON(h probe.Header) Header {
	if h.Secret {
		return Header{Name: h.Name, Secret: true}
	}
	return Header{Name: h.Name, Value: &h.Value}
}

// durationText writes d the way people do: "15s" and "5m", not "5m0s".
func durationText(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0 && d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

func (s *Server) listEndpoints(c echo.Context) error {
	q := queryOf(c)
	f := store.EndpointFilter{
		Status: choice(q, "status", store.Statuses()),
		Tag:    q.text("tag"),
		Query:  q.text("q"),
		Limit:  q.limit(),
		Cursor: q.text("cursor"),
	}
	if err := q.end(); err != nil {
		return err
	}
	page, err := s.cfg.Store.Endpoints(c.Request().Context(), f)
	if err != nil {
		return err
	}
	items, err := s.endpointsJSON(c.Request().Context(), page.Items...)
	if err != nil {
		return err
	}
	return ok(c, list[Endpoint]{items, page.Next})
}

func (s *Server) createEndpoint(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	in := readEndpoint(m)
	in.Slug = m.text("slug", "")
	m.rest()
	in.Mistakes = *m.mistakes
	o, err := s.register(c.Request().Context(), in)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/api/v1/endpoints/"+o.Slug)
	return s.answerEndpoint(c, http.StatusCreated, o)
}

func (s *Server) getEndpoint(c echo.Context) error {
	o, err := s.cfg.Store.Endpoint(c.Request().Context(), c.Param("slug"))
	if err != nil {
		return err
	}
	return s.answerEndpoint(c, http.StatusOK, o)
}

func (s *Server) answerEndpoint(c echo.Context, status int, o store.Overview) error {
	items, err := s.endpointsJSON(c.Request().Context(), o)
	if err != nil {
		return err
	}
	return answer(c, status, "application/json", items[0])
}

// patchEndpoint takes a JSON merge patch (RFC 7396): what is absent stays, what is null goes back to its default.
func (s *Server) patchEndpoint(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	in := readEndpoint(m)
	if m.take("slug") != nil {
		m.mistake("slug", "never changes: leave it out")
	}
	m.rest()
	in.Mistakes = *m.mistakes
	o, err := s.edit(c.Request().Context(), c.Param("slug"), in)
	if err != nil {
		return err
	}
	return s.answerEndpoint(c, http.StatusOK, o)
}

func (s *Server) deleteEndpoint(c echo.Context) error {
	if err := s.remove(c, c.Param("slug")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// remove deletes an endpoint with all its history and takes it off the schedule.
func (s *Server) remove(c echo.Context, slug string) error {
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, slug)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.DeleteEndpoint(ctx, slug); err != nil {
		return err
	}
	s.cfg.Changed(ctx, o.ID, o.Slug)
	return nil
}

// readEndpoint takes the members of an endpoint, other than its slug, out of a body.
func readEndpoint(m *members) endpointInput {
	in := readTarget(m)
	in.Name = m.text("name", "")
	in.Schedule = m.text("schedule", store.DefaultSchedule)
	in.Confirm = readConfirm(m)
	in.Public = m.flag("public", false)
	in.Paused = m.flag("paused", false)
	in.Tags = m.texts("tags")
	in.Channels = m.texts("channels")
	in.ContractNotices = m.flag("contract_notices", false)
	in.Locations = m.texts("locations")
	in.Quorum = m.number("quorum", 0)
	in.Alerting = readAlerting(m)
	m.readOnly("status", "since", "last_check", "places", "created_at", "updated_at")
	return in
}

// readTarget takes the members that say what to ask, which is all that a single probe needs.
func readTarget(m *members) endpointInput {
	in := endpointInput{
		Kind:         m.text("kind", string(probe.KindAuto)),
		URL:          m.text("url", ""),
		Timeout:      m.duration("timeout", store.DefaultTimeout.String()),
		DegradedOver: m.duration("degraded_over", store.DefaultDegradedOver.String()),
		Headers:      readHeaders(m, "headers"),
		Options:      takeOptions(m, optionMembers, nil),
		Command:      readCommand(m),
	}
	in.Request, in.Options = readRequest(m, in.Options)
	return in
}

func readConfirm(m *members) confirmInput {
	d := store.DefaultConfirm
	inner, removed := m.object("confirm")
	if inner == nil {
		return confirmInput{}
	}
	if removed {
		return confirmInput{new(d.Failures), new(d.Successes), new(d.After.String())}
	}
	in := confirmInput{
		Failures:  inner.number("failures", d.Failures),
		Successes: inner.number("successes", d.Successes),
		After:     inner.duration("after", d.After.String()),
	}
	inner.rest()
	return in
}

// readHeaders takes the headers. One that does not say whether it is secret is: whoever forgets to say so should not
// find a credential in an answer.
func readHeaders(m *members, name string) *[]headerInput {
	items := m.list(name)
	if items == nil {
		return nil
	}
	headers := make([]headerInput, 0, len(*items))
	for i, raw := range *items {
		path := m.path + indexed(name, i)
		inner := m.inside(raw, path)
		if inner == nil {
			continue
		}
		h := headerInput{Secret: true}
		set(&h.Name, inner.text("name", ""))
		set(&h.Secret, inner.flag("secret", true))
		if _, sent := inner.values["value"]; sent {
			if h.Value = inner.text("value", ""); h.Value == nil {
				h.Value = new("") // the mistake is noted; the value is not missing as well
			}
		}
		inner.rest()
		headers = append(headers, h)
	}
	return &headers
}

// readRequest takes the member request: what to ask, and those of the options that stand there.
func readRequest(m *members, options optionsInput) (requestInput, optionsInput) {
	inner, removed := m.object("request")
	if inner == nil {
		return requestInput{}, options
	}
	if removed {
		inner.values = map[string]json.RawMessage{"expect": null, "batch": null, "notify": null}
		return requestInput{new(""), new(json.RawMessage)}, takeOptions(inner, requestMembers, options)
	}
	options = takeOptions(inner, requestMembers, options)
	in := requestInput{Method: inner.text("method", "")}
	if raw := inner.take("params"); raw != nil {
		if isNull(raw) {
			raw = json.RawMessage{}
		}
		in.Params = &raw
	}
	inner.rest()
	return in, options
}

var null = json.RawMessage("null")
