package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Registrar registers and changes endpoints as the REST API does, for a program that holds the database itself. Several that
// depend on one another go through Expect, Plan, Circles, Do and Relate, all of them at each step.
type Registrar struct {
	server   *Server
	expected map[string]bool // slugs that will be there
}

// NewRegistrar returns a Registrar for db. Period is that of Config.
func NewRegistrar(db store.Store, period func(schedule string) (time.Duration, error)) *Registrar {
	return &Registrar{
		server:   &Server{local: true, cfg: Config{Store: db, Period: period, Changed: func(context.Context, string, string) {}}},
		expected: map[string]bool{},
	}
}

// Planned is what is to be done with one endpoint, found to be in order.
type Planned struct {
	Slug string // of the endpoint to change; empty when it is to be registered
	in   endpointInput
	// What it is to depend on comes last, when all that it may name is there; nil leaves it as it is.
	dependsOn *[]string
	will      string // the slug that it has or most likely will have
}

// Expect notes that the endpoint of an object will be there, so that others may depend on it before it is. It says nothing of
// mistakes: those are for Plan to find.
func (r *Registrar) Expect(ctx context.Context, doc []byte) error {
	m, err := readObject(doc)
	if err != nil {
		return nil //nolint:nilerr // Plan says so
	}
	in := readEndpoint(m)
	in.Slug = m.text("slug", "")
	base, err := r.find(ctx, in)
	if err != nil {
		return err
	}
	r.expected[willBe(in, base)] = true
	return nil
}

// willBe returns the slug that the endpoint has or most likely will have.
func willBe(in endpointInput, base store.Endpoint) string {
	if base.Slug != "" {
		return base.Slug
	}
	if in.Slug != nil {
		return *in.Slug
	}
	e, _ := in.onto(base)
	return e.SlugBase()
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
	p := Planned{base.Slug, in, in.Alerting.DependsOn, willBe(in, base)}
	p.in.Alerting.DependsOn = nil
	e, mistakes := p.in.onto(base)
	if base.Slug == "" && in.Slug != nil {
		e.Slug = *in.Slug
	}
	unknown, err := r.unknown(ctx, p)
	if err != nil {
		return Planned{}, err
	}
	if err := r.server.check(ctx, e, append(mistakes, unknown...)); err != nil {
		return Planned{}, err
	}
	return p, nil
}

// unknown says which of the endpoints that one is to depend on are not there and will not be, and what else is wrong with them.
func (r *Registrar) unknown(ctx context.Context, p Planned) ([]probe.Problem, error) {
	if p.dependsOn == nil {
		return nil, nil
	}
	if len(*p.dependsOn) > store.MaxParents {
		return []probe.Problem{{Field: "depends_on", Message: fmt.Sprintf("names more than %d endpoints", store.MaxParents)}}, nil
	}
	_, mistakes, err := r.server.idsOf(ctx, "depends_on", *p.dependsOn, store.MaxParents)
	if err != nil {
		return nil, err
	}
	for i, slug := range *p.dependsOn {
		if r.expected[slug] && !slices.Contains((*p.dependsOn)[:i], slug) {
			mistakes = slices.DeleteFunc(mistakes, func(m probe.Problem) bool { return m.Field == indexed("depends_on", i) })
		}
	}
	return mistakes, nil
}

// Circles returns, for each of the plans by which endpoints would depend on themselves, that this is so; by their places.
func (r *Registrar) Circles(ctx context.Context, plans []Planned) (map[int]error, error) {
	page, err := r.server.cfg.Store.Endpoints(ctx, store.EndpointFilter{Limit: -1})
	if err != nil {
		return nil, err
	}
	slugs, parents := Slugs(page.Items), map[string][]string{}
	for _, o := range page.Items {
		parents[o.Slug] = slugsOf(o.DependsOn, slugs)
	}
	for _, p := range plans {
		if p.dependsOn != nil {
			parents[p.will] = *p.dependsOn
		}
	}
	circles := map[int]error{}
	for i, p := range plans {
		if p.dependsOn != nil && reaches(parents, p.will, p.will, map[string]bool{}) {
			circles[i] = store.Invalid{Problems: []probe.Problem{{Field: "depends_on", Message: "leads back to the endpoint itself"}}}
		}
	}
	return circles, nil
}

// reaches reports whether one can come from an endpoint to another by way of what it depends on.
func reaches(parents map[string][]string, from, to string, seen map[string]bool) bool {
	for _, slug := range parents[from] {
		if slug == to {
			return true
		}
		if !seen[slug] {
			seen[slug] = true
			if reaches(parents, slug, to, seen) {
				return true
			}
		}
	}
	return false
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

// Do registers or changes what was planned and returns the endpoint as it is kept. What it depends on is left to Relate.
func (r *Registrar) Do(ctx context.Context, p Planned) (store.Overview, error) {
	if p.Slug == "" {
		return r.server.register(ctx, p.in)
	}
	p.in.Slug = nil // the same as that of the endpoint
	return r.server.edit(ctx, p.Slug, p.in)
}

// Relate has the endpoints depend on what was planned, once all of them are there; slugs are theirs, in the order of the plans.
// It returns the place of the one that an error is about.
func (r *Registrar) Relate(ctx context.Context, plans []Planned, slugs []string) (int, error) {
	var waiting []int
	for i, p := range plans {
		if p.dependsOn != nil && (p.Slug != "" || len(*p.dependsOn) > 0) {
			waiting = append(waiting, i)
		}
	}
	// While one still stands behind what it is to leave, another may seem to close a circle: it has its turn again.
	for len(waiting) > 0 {
		var again []int
		var failed error
		for _, i := range waiting {
			_, err := r.server.edit(ctx, slugs[i], endpointInput{Alerting: alertingInput{DependsOn: plans[i].dependsOn}})
			if err == nil {
				continue
			}
			if store.IsFailure(err) {
				return i, err
			}
			again = append(again, i)
			if failed == nil {
				failed = err
			}
		}
		if len(again) == len(waiting) {
			return again[0], failed
		}
		waiting = again
	}
	return 0, nil
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
