package api

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Channel is a channel as it stands in JSON: id, name, type, then what its type is made of, then how it fares. Of its
// secrets it says only whether they are there.
type Channel []channelMember

type channelMember struct {
	name  string
	value any
}

// MarshalJSON writes the members of c in their order.
func (c Channel) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range c {
		value, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", m.name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// ChannelJSON returns c as it stands in JSON. Members without a value are left out, but for has_….
func ChannelJSON(c store.Channel) Channel {
	shown := Channel{{"id", c.ID}, {"name", c.Name}, {"type", c.Type}}
	spec, _ := c.Type.Spec()
	for _, f := range spec.Fields {
		switch {
		case f.Secret:
			shown = append(shown, channelMember{"has_" + f.Name, c.Secrets[f.Name] != ""})
		case c.Settings[f.Name] != "":
			shown = append(shown, channelMember{f.Name, c.Settings[f.Name]})
		}
	}
	if c.Broken != "" {
		shown = append(shown, channelMember{"broken", c.Broken}) // why nothing more is sent here
	}
	if at := timeOf(c.BrokenAt); at != nil {
		shown = append(shown, channelMember{"broken_at", at})
	}
	return append(shown, channelMember{"created_at", Time{c.CreatedAt}}, channelMember{"updated_at", Time{c.UpdatedAt}})
}

// channelInput is what somebody wants a channel to be, read from a JSON body or a form. A nil member stays as it is;
// an empty one is removed.
type channelInput struct {
	Name   *string
	Type   *string
	Fields map[string]*string // by the names of the fields of any type

	// Mistakes are those already met while reading.
	Mistakes []probe.Problem
}

// eachChannelField returns one field for each name that a field of any type has, in the order of the types.
func eachChannelField() []store.ChannelField {
	var all []store.ChannelField
	for _, spec := range store.ChannelSpecs() {
		for _, f := range spec.Fields {
			if !slices.ContainsFunc(all, func(o store.ChannelField) bool { return o.Name == f.Name && o.Secret == f.Secret }) {
				all = append(all, f)
			}
		}
	}
	return all
}

// createChannel keeps a channel. Errors are store.Invalid with every mistake, store.Conflict, or the database's.
func (s *Server) createChannel(ctx context.Context, in channelInput) (store.Channel, error) {
	others, err := s.cfg.Store.Channels(ctx)
	if err != nil {
		return store.Channel{}, err
	}
	in = s.checkedTemplate(in)
	c, mistakes := in.onto(store.Channel{})
	if err := channelMistakes(c, mistakes, others); err != nil {
		return store.Channel{}, err
	}
	return s.cfg.Store.CreateChannel(ctx, c)
}

// editChannel changes what in names of a channel. Errors are those of createChannel, and store.ErrNotFound.
func (s *Server) editChannel(ctx context.Context, id string, in channelInput) (store.Channel, error) {
	others, err := s.cfg.Store.Channels(ctx) // before the transaction that changes the channel begins
	if err != nil {
		return store.Channel{}, err
	}
	in = s.checkedTemplate(in)
	return s.cfg.Store.UpdateChannel(ctx, id, func(c *store.Channel) error {
		changed, mistakes := in.onto(*c)
		if err := channelMistakes(changed, mistakes, others); err != nil {
			return err
		}
		*c = changed
		return nil
	})
}

// checkedTemplate returns in with what is wrong with its template, if it has one, among the mistakes.
func (s *Server) checkedTemplate(in channelInput) channelInput {
	text := strings.TrimSpace(orEmpty(in.Fields["template"]))
	if text == "" || len(text) > store.MaxTemplate || s.cfg.CheckTemplate == nil {
		return in
	}
	if err := s.cfg.CheckTemplate(text); err != nil {
		in.Mistakes = append(slices.Clone(in.Mistakes), probe.Problem{Field: "template", Message: err.Error()})
	}
	return in
}

// onto returns c with everything that in names, and every mistake met so far. The maps of c are left alone. A channel of
// another type starts afresh: nothing that was given for one service goes to another.
func (in channelInput) onto(c store.Channel) (store.Channel, []probe.Problem) {
	before := c.Settings
	set(&c.Name, in.Name)
	c.Settings, c.Secrets = copied(c.Settings), copied(c.Secrets)
	if in.Type != nil && store.ChannelType(*in.Type) != c.Type {
		c.Type = store.ChannelType(*in.Type)
		c.Settings, c.Secrets = map[string]string{}, map[string]string{}
	}
	spec, _ := c.Type.Spec()
	for name, value := range in.Fields {
		group := c.Secrets // where Validate finds what is no field of this type; a secret of another type stays one
		if f, ok := spec.Field(name); ok && !f.Secret {
			group = c.Settings
		}
		put(group, name, value)
	}
	return c, append(slices.Clone(in.Mistakes), in.keptElsewhere(spec, before, c)...)
}

// keptElsewhere names the secrets that c keeps although one of its addresses changes from what it was before: a secret is
// for the server that it was given for.
func (in channelInput) keptElsewhere(spec store.ChannelSpec, before map[string]string, c store.Channel) []probe.Problem {
	moved := slices.ContainsFunc(spec.Fields, func(f store.ChannelField) bool {
		return f.Kind == store.FieldURL && !f.Secret && !sameAddress(before[f.Name], c.Settings[f.Name])
	})
	if !moved {
		return nil
	}
	var mistakes []probe.Problem
	for _, f := range spec.Fields {
		if f.Secret && c.Secrets[f.Name] != "" && in.Fields[f.Name] == nil {
			mistakes = append(mistakes, probe.Problem{Field: f.Name, Message: requiredAgain})
		}
	}
	return mistakes
}

func copied(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// put keeps a value that was given under its name; an empty one removes what was there.
func put(m map[string]string, name string, value *string) {
	switch {
	case value == nil:
	case strings.TrimSpace(*value) == "":
		delete(m, name)
	default:
		m[name] = strings.TrimSpace(*value)
	}
}

// channelMistakes returns those already met, everything that is wrong with c in itself and a name that one of the others
// has, nil when there are none.
func channelMistakes(c store.Channel, mistakes []probe.Problem, others []store.Channel) error {
	if err := c.Validate(); err != nil {
		mistakes = further(mistakes, problemOf(err).Errors)
	}
	var taken []probe.Problem
	if slices.ContainsFunc(others, func(o store.Channel) bool { return o.ID != c.ID && store.Fold(o.Name) == store.Fold(c.Name) }) {
		taken = append(taken, probe.Problem{Field: "name", Message: takenAlready})
	}
	return refusal(mistakes, taken)
}

// further returns mistakes and those of more that are about other fields: one word on a field is enough.
func further(mistakes, more []probe.Problem) []probe.Problem {
	for _, p := range more {
		if !slices.ContainsFunc(mistakes, func(m probe.Problem) bool { return m.Field == p.Field }) {
			mistakes = append(mistakes, p)
		}
	}
	return mistakes
}

func readChannel(m *members) channelInput {
	in := channelInput{Name: m.text("name", ""), Type: m.text("type", ""), Fields: map[string]*string{}}
	readOnly := []string{"id"}
	for _, f := range eachChannelField() {
		if value := m.text(f.Name, ""); value != nil {
			in.Fields[f.Name] = value
		}
		if f.Secret {
			readOnly = append(readOnly, "has_"+f.Name)
		}
	}
	m.readOnly(append(readOnly, "broken", "broken_at", "created_at", "updated_at")...)
	m.rest()
	in.Mistakes = *m.mistakes
	return in
}

func (s *Server) listChannels(c echo.Context) error {
	if err := queryOf(c).end(); err != nil {
		return err
	}
	channels, err := s.cfg.Store.Channels(c.Request().Context())
	if err != nil {
		return err
	}
	return ok(c, listOf(channels, "", ChannelJSON))
}

func (s *Server) postChannel(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	channel, err := s.createChannel(c.Request().Context(), readChannel(m))
	if err != nil {
		return err
	}
	return answer(c, http.StatusCreated, "application/json", ChannelJSON(channel))
}

func (s *Server) patchChannel(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	channel, err := s.editChannel(c.Request().Context(), c.Param("id"), readChannel(m))
	if err != nil {
		return err
	}
	return ok(c, ChannelJSON(channel))
}

func (s *Server) deleteChannel(c echo.Context) error {
	if err := s.cfg.Store.DeleteChannel(c.Request().Context(), c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// testChannel sends a test message. That it did not arrive is the answer of somebody behind us: 502.
func (s *Server) testChannel(c echo.Context) error {
	ctx := c.Request().Context()
	channel, err := s.cfg.Store.Channel(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	outlast(c, maxProbe)
	if err := s.cfg.TestChannel(c.Request().Context(), channel); err != nil {
		return fault(http.StatusBadGateway, "Test message not delivered", "%s", err)
	}
	return c.NoContent(http.StatusNoContent)
}

// previewKinds are the kinds of messages that a template can be previewed with, the most usual first.
var previewKinds = []string{
	"opened", "updated", "reminder", "escalation", "flapping", "calmed", "resolved", "digest", "contract", "budget", "service", "test",
}

// PreviewKinds returns the kinds of messages that a template can be previewed with, which are those of package alerts.
func PreviewKinds() []string { return slices.Clone(previewKinds) }

// previewTemplate answers with what a template makes of a message that is made up. Nothing is kept and nothing is sent.
func (s *Server) previewTemplate(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	given, kind, text := m.text("type", ""), m.text("kind", ""), m.text("template", "")
	if given != nil {
		if _, known := store.ChannelType(*given).Spec(); !known {
			m.mistake("type", "unknown channel type %.40q", *given)
		}
	}
	if kind == nil {
		kind = &previewKinds[0]
	}
	m.rest()
	words, mistakes := s.preview(orEmpty(text), *kind)
	if mistakes = further(*m.mistakes, mistakes); len(mistakes) > 0 {
		return store.Invalid{Problems: mistakes}
	}
	return ok(c, struct {
		Text string `json:"text"`
	}{words})
}

// preview returns what a template makes of a message of some kind, or everything that is wrong with the two.
func (s *Server) preview(text, kind string) (string, []probe.Problem) {
	var mistakes []probe.Problem
	wrong := func(field, format string, args ...any) {
		mistakes = append(mistakes, probe.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if !slices.Contains(previewKinds, kind) {
		wrong("kind", "must be one of %s", strings.Join(previewKinds, ", "))
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		wrong("template", "is required")
	case len(text) > store.MaxTemplate:
		wrong("template", "is longer than %d bytes", store.MaxTemplate)
	case s.cfg.PreviewTemplate == nil:
		wrong("template", "cannot be previewed here")
	}
	if len(mistakes) > 0 {
		return "", mistakes
	}
	words, err := s.cfg.PreviewTemplate(text, kind)
	if err != nil {
		wrong("template", "%s", err)
	}
	return words, mistakes
}
