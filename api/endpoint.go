package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// endpointInput is what somebody wants an endpoint to be, read from a JSON body or a form. A nil member leaves a value
// as it is: at its default when registering, as it is kept when editing.
type endpointInput struct {
	Slug         *string // when registering only
	Name         *string // empty: named after the host
	Kind         *string
	URL          *string // the redacted form of the kept one means the kept one
	Schedule     *string
	Timeout      *string // durations as people write them: "15s"
	DegradedOver *string
	Confirm      confirmInput
	Headers      *[]headerInput
	Request      requestInput
	Options      optionsInput
	Command      *commandInput
	Public       *bool
	Paused       *bool
	Tags         *[]string
	Channels     *[]string

	ContractNotices *bool

	Locations *[]string
	Quorum    *int

	Alerting alertingInput

	// Mistakes are those already met while reading; whoever takes the input adds its own and tells all of them.
	Mistakes []probe.Problem
}

type confirmInput struct {
	Failures  *int
	Successes *int
	After     *string
}

// headerInput is one request header. A nil Value of a secret header means the value that is kept for that name, which
// goes to the address it was given for and to no other.
type headerInput struct {
	Name   string
	Value  *string
	Secret bool
}

// requestInput is what to ask. Params that are set and empty mean none.
type requestInput struct {
	Method *string
	Params *json.RawMessage
}

// register keeps a new endpoint and has it probed at once. Errors are store.Invalid with every mistake, store.Conflict,
// or the database's.
func (s *Server) register(ctx context.Context, in endpointInput) (store.Overview, error) {
	in, err := s.lookedUp(ctx, in)
	if err != nil {
		return store.Overview{}, err
	}
	e, mistakes := s.put(in, store.NewEndpoint())
	if in.Slug != nil {
		e.Slug = *in.Slug
	}
	if err := s.check(ctx, e, mistakes); err != nil {
		return store.Overview{}, err
	}
	e, err = s.cfg.Store.CreateEndpoint(ctx, e)
	if err != nil {
		return store.Overview{}, err
	}
	s.cfg.Changed(ctx, e.ID, e.Slug)
	return s.cfg.Store.Endpoint(ctx, e.Slug)
}

// edit changes what in names of an endpoint. Errors are those of register, and store.ErrNotFound.
func (s *Server) edit(ctx context.Context, slug string, in endpointInput) (store.Overview, error) {
	if in.Slug != nil {
		in.Mistakes = append(in.Mistakes, probe.Problem{Field: "slug", Message: "never changes: leave it out"})
	}
	// What it names is looked up before the transaction that changes the endpoint begins.
	in, err := s.lookedUp(ctx, in)
	if err != nil {
		return store.Overview{}, err
	}
	known, err := s.channelIDs(ctx, in.namedChannels())
	if err != nil {
		return store.Overview{}, err
	}
	taken, err := s.takenByEdit(ctx, slug, in)
	if err != nil {
		return store.Overview{}, err
	}
	e, err := s.cfg.Store.UpdateEndpoint(ctx, slug, func(e *store.Endpoint) error {
		changed, mistakes := s.put(in, *e)
		if changed.Name == "" {
			changed.Name = changed.DefaultName()
		}
		mistakes = s.endpointMistakes(changed, mistakes)
		if in.Channels != nil {
			mistakes = append(mistakes, missingChannels("channels", changed.Channels, known)...)
		}
		if in.Alerting.Escalation != nil {
			mistakes = append(mistakes, missingSteps(changed.Alerting.Escalation, known)...)
		}
		if err := refusal(mistakes, taken); err != nil {
			return err
		}
		*e = changed
		return nil
	})
	if err != nil {
		return store.Overview{}, err
	}
	s.cfg.Changed(ctx, e.ID, e.Slug)
	s.noticed() // one that was paused may have ended an incident
	return s.cfg.Store.Endpoint(ctx, e.Slug)
}

// noticed has notices that may have been left sent at once.
func (s *Server) noticed() {
	if s.cfg.Noticed != nil {
		s.cfg.Noticed()
	}
}

// try probes what in describes and keeps nothing. With a slug, in is taken as an edit of that endpoint, so that its
// kept secrets are used. Who watches is told of the steps as they happen; nil: nobody. Errors are those of edit.
func (s *Server) try(ctx context.Context, slug string, in endpointInput, watch func(at int, s probe.Step, ended bool)) (store.Check, error) {
	base := store.Overview{Endpoint: store.NewEndpoint()}
	if slug != "" {
		var err error
		if base, err = s.cfg.Store.Endpoint(ctx, slug); err != nil {
			return store.Check{}, err
		}
	}
	in, err := s.lookedUp(ctx, in)
	if err != nil {
		return store.Check{}, err
	}
	e, mistakes := s.put(in, base.Endpoint)
	if err := s.check(ctx, e, mistakes); err != nil {
		return store.Check{}, err
	}
	target := e.Target(store.State{})
	target.Watch = watch
	return s.probeOnce(ctx, target)
}

// probeOnce asks a target and keeps nothing: the check has no id.
func (s *Server) probeOnce(ctx context.Context, t probe.Target) (store.Check, error) {
	select {
	case s.trying <- struct{}{}:
		defer func() { <-s.trying }()
	default:
		p := fault(http.StatusTooManyRequests, "Busy", "%d other targets are being tried. Try again in a moment.", maxTrying)
		p.retryAfter = 5 * time.Second
		return store.Check{}, p
	}
	r := s.cfg.Probe(ctx, t)
	if err := ctx.Err(); err != nil {
		return store.Check{}, err // the visitor left: what was seen is not the endpoint's doing
	}
	c := store.NewCheck("", s.cfg.Location, r.StartedAt, r)
	c.ID = ""
	return c, nil
}

// put returns e with everything that in names, and every mistake met so far, that of reaching for what is not the caller's
// included.
func (s *Server) put(in endpointInput, e store.Endpoint) (store.Endpoint, []probe.Problem) {
	changed, mistakes := in.onto(e)
	return changed, append(mistakes, s.localMistakes(e, changed)...)
}

// onto returns e with everything that in names, and every mistake met so far.
func (in endpointInput) onto(e store.Endpoint) (store.Endpoint, []probe.Problem) {
	mistakes := slices.Clone(in.Mistakes)
	before := e.URL
	add := func(field, format string, args ...any) {
		mistakes = append(mistakes, probe.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	duration := func(to *time.Duration, from *string, field string) {
		if from == nil {
			return
		}
		d, err := time.ParseDuration(strings.TrimSpace(*from))
		if err != nil {
			add(field, `must be a duration like "15s" or "1m30s"`)
			return
		}
		*to = d
	}
	set(&e.Name, in.Name)
	set(&e.Schedule, in.Schedule)
	set(&e.ContractNotices, in.ContractNotices)
	set(&e.Locations, in.Locations)
	set(&e.Quorum, in.Quorum)
	set(&e.Public, in.Public)
	set(&e.Paused, in.Paused)
	set(&e.Tags, in.Tags)
	set(&e.Channels, in.Channels)
	set(&e.Confirm.Failures, in.Confirm.Failures)
	set(&e.Confirm.Successes, in.Confirm.Successes)
	duration(&e.Timeout, in.Timeout, "timeout")
	duration(&e.DegradedOver, in.DegradedOver, "degraded_over")
	duration(&e.Confirm.After, in.Confirm.After, "confirm.after")
	mistakes = append(mistakes, in.Alerting.onto(&e, duration)...)
	if in.Kind != nil {
		e.Kind = probe.Kind(*in.Kind)
	}
	switch {
	case in.URL == nil, e.URL != "" && *in.URL == probe.RedactURL(e.URL):
	case strings.Contains(*in.URL, "…"):
		add("url", "has a … where a key was cut out: write the whole URL")
	default:
		e.URL = *in.URL
	}
	set(&e.Request.Method, in.Request.Method)
	if p := in.Request.Params; p != nil {
		e.Request.Params = *p
		if len(*p) == 0 {
			e.Request.Params = nil
		}
	}
	command, problems := in.Command.onto(e.Command)
	e.Command, mistakes = command, append(mistakes, problems...)
	if e.ID == "" && e.Command != nil && in.Timeout == nil {
		e.Timeout = probe.DefaultCommandTimeout // a program takes longer to start than a server to answer
	}
	switch {
	case in.Command != nil && !in.Command.Removed && in.URL == nil:
		e.URL = ""
	case in.Command == nil && in.URL != nil && *in.URL != "":
		e.Command = nil
	}
	moved := !sameAddress(before, e.URL)
	e.Options, problems = in.Options.onto(e.Options, moved && e.ID != "")
	mistakes = append(mistakes, problems...)
	switch {
	case in.Headers != nil:
		var problems []probe.Problem
		e.Headers, problems = mergeHeaders("headers", e.Headers, *in.Headers, moved)
		mistakes = append(mistakes, problems...)
	case moved:
		for _, h := range e.Headers {
			if h.Secret {
				add("headers", "must name %s again, with its value, because the address changes", h.Name)
			}
		}
	}
	return e, mistakes
}

// set overwrites a value that was given.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// mergeHeaders returns the headers that in asks for, with kept values where a secret one came back without its own,
// which is a mistake when the endpoint has moved to another address. Several headers of one name are matched in their
// order. field is the name of the list.
func mergeHeaders(field string, kept []probe.Header, in []headerInput, moved bool) ([]probe.Header, []probe.Problem) {
	var mistakes []probe.Problem
	wrong := func(i int, message string) {
		mistakes = append(mistakes, probe.Problem{Field: indexed(field, i) + ".value", Message: message})
	}
	kept = slices.Clone(kept)
	headers := make([]probe.Header, 0, len(in))
	for i, h := range in {
		at := slices.IndexFunc(kept, func(k probe.Header) bool { return strings.EqualFold(k.Name, h.Name) })
		merged := probe.Header{Name: h.Name, Secret: h.Secret}
		switch {
		case h.Value != nil:
			merged.Value = *h.Value
		case at < 0 || !kept[at].Secret:
			wrong(i, "is required")
		case !h.Secret:
			wrong(i, "is required: a kept secret is not made readable")
		case moved:
			wrong(i, requiredAgain)
		default:
			merged.Value = kept[at].Value
		}
		if at >= 0 {
			kept = slices.Delete(kept, at, at+1)
		}
		headers = append(headers, merged)
	}
	return headers, mistakes
}

// check returns an error that names the mistakes already met and everything else that is wrong with e; nil when there is
// nothing. Other errors are the database's.
func (s *Server) check(ctx context.Context, e store.Endpoint, mistakes []probe.Problem) error {
	known, err := s.channelIDs(ctx, namedChannels(e))
	if err != nil {
		return err
	}
	taken, err := s.taken(ctx, e)
	if err != nil {
		return err
	}
	if e.Name == "" {
		e.Name = e.DefaultName()
	}
	mistakes = append(s.endpointMistakes(e, mistakes), missingChannels("channels", e.Channels, known)...)
	return refusal(append(mistakes, missingSteps(e.Alerting.Escalation, known)...), taken)
}

// endpointMistakes adds what is wrong with e in itself, as far as anybody is told of it. A field that could not be read
// is not complained of twice.
func (s *Server) endpointMistakes(e store.Endpoint, mistakes []probe.Problem) []probe.Problem {
	err := e.Validate(s.cfg.Period)
	if err == nil {
		return mistakes
	}
	unread := mistakes
	for _, p := range problemOf(err).Errors {
		if len(mistakes) >= maxMistakes {
			break
		}
		told := slices.ContainsFunc(unread, func(m probe.Problem) bool { return within(p.Field, m.Field) }) ||
			slices.ContainsFunc(mistakes, func(m probe.Problem) bool { return m.Field == p.Field })
		if !told {
			mistakes = append(mistakes, p)
		}
	}
	return mistakes
}

// within reports whether a field is another one or lies inside of it.
func within(field, outer string) bool {
	rest, found := strings.CutPrefix(field, outer)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// channelIDs returns the ids of the channels there are, if anybody named one.
func (s *Server) channelIDs(ctx context.Context, named []string) ([]string, error) {
	if len(named) == 0 {
		return nil, nil
	}
	channels, err := s.cfg.Store.Channels(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(channels))
	for _, c := range channels {
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// missingChannels says what is wrong with a list of channels, which stands in a field.
func missingChannels(list string, named, known []string) []probe.Problem {
	var mistakes []probe.Problem
	for i, id := range named {
		field := indexed(list, i)
		switch {
		case !slices.Contains(known, id):
			mistakes = append(mistakes, probe.Problem{Field: field, Message: fmt.Sprintf("there is no channel %.40q", id)})
		case slices.Contains(named[:i], id):
			mistakes = append(mistakes, probe.Problem{Field: field, Message: "stands there twice"})
		}
	}
	return mistakes
}
