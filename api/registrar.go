package api

import (
	"context"
	"errors"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Registrar registers and changes endpoints as the REST API does, for a program that holds the database itself.
type Registrar struct{ server *Server }

// NewRegistrar returns a Registrar for db. Period is that of Config.
func NewRegistrar(db store.Store, period func(schedule string) (time.Duration, error)) *Registrar {
	return &Registrar{&Server{local: true, cfg: Config{Store: db, Period: period, Changed: func(context.Context, string, string) {}}}}
}

// Planned is what is to be done with one endpoint, found to be in order.
type Planned struct {
	Slug string // of the endpoint to change; empty when it is to be registered
	in   endpointInput
}

// Plan reads the JSON object of an endpoint, shaped like the body of POST /api/v1/endpoints, and checks it. An object
// with the slug of an endpoint that is there, or without a slug and with its name (or, without a name, its host), is a
// change of that one: members that are absent stay as they are. Errors are those of the API: see Mistakes.
func (r *Registrar) Plan(ctx context.Context, doc []byte) (Planned, error) {
	m, err := readObject(doc)
	if err != nil {
		return Planned{}, err
	}
	in := readEndpoint(m)
	in.Slug = m.text("slug", "")
	m.rest()
	in.Mistakes = *m.mistakes
	base, err := r.find(ctx, in)
	if err != nil {
		return Planned{}, err
	}
	e, mistakes := in.onto(base)
	if base.Slug == "" && in.Slug != nil {
		e.Slug = *in.Slug
	}
	if err := r.server.check(ctx, e, mistakes); err != nil {
		return Planned{}, err
	}
	return Planned{base.Slug, in}, nil
}

// find returns the endpoint that in is a change of, or the defaults of a new one.
func (r *Registrar) find(ctx context.Context, in endpointInput) (store.Endpoint, error) {
	var name string
	switch {
	case in.Name != nil && *in.Name != "":
		name = *in.Name
	case in.URL != nil && *in.URL != "":
		name = store.NameFromURL(*in.URL)
	case in.Command != nil && in.Command.Args != nil:
		name = store.Endpoint{Command: &probe.Command{Args: *in.Command.Args}}.DefaultName()
	}
	slug := store.Endpoint{Name: name}.SlugBase()
	if in.Slug != nil {
		slug = *in.Slug
	}
	o, err := r.server.cfg.Store.Endpoint(ctx, slug)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && in.Slug == nil && o.Name != name:
		return store.NewEndpoint(), nil
	case err != nil:
		return store.Endpoint{}, err
	}
	return o.Endpoint, nil
}

// Do registers or changes what was planned and returns the endpoint as it is kept.
func (r *Registrar) Do(ctx context.Context, p Planned) (store.Overview, error) {
	if p.Slug == "" {
		return r.server.register(ctx, p.in)
	}
	p.in.Slug = nil // the same as that of the endpoint
	return r.server.edit(ctx, p.Slug, p.in)
}

// Mistakes returns what is wrong with somebody's input, one sentence each; nil when err is a failure of ours.
func Mistakes(err error) []string {
	p := problemOf(err)
	if p.Status >= 500 {
		return nil
	}
	if len(p.Errors) == 0 {
		return []string{p.Detail}
	}
	sentences := make([]string, 0, len(p.Errors))
	for _, e := range p.Errors {
		sentences = append(sentences, e.Field+" "+e.Message)
	}
	return sentences
}
