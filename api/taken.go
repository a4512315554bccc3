package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// taken names what e would share with another endpoint: its name, and its slug while it is not kept yet. The database
// refuses that too, but only once everything else is in order: somebody with several mistakes should hear of all of
// them at once. Its error is the database's.
func (s *Server) taken(ctx context.Context, e store.Endpoint) ([]probe.Problem, error) {
	var taken []probe.Problem
	found, err := s.nameTaken(ctx, e)
	if err != nil {
		return nil, err
	}
	if found {
		taken = append(taken, probe.Problem{Field: "name", Message: takenAlready})
	}
	if e.ID != "" || e.Slug == "" || store.Slugify(e.Slug) != e.Slug {
		return taken, nil // the slug never changes, or is to be made up, or is no slug
	}
	_, err = s.cfg.Store.Endpoint(ctx, e.Slug)
	switch {
	case err == nil:
		taken = append(taken, probe.Problem{Field: "slug", Message: takenAlready})
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	return taken, nil
}

// takenByEdit is what an edit of the endpoint would take from another one.
func (s *Server) takenByEdit(ctx context.Context, slug string, in endpointInput) ([]probe.Problem, error) {
	if in.Name == nil {
		return nil, nil
	}
	o, err := s.cfg.Store.Endpoint(ctx, slug)
	if err != nil {
		return nil, err
	}
	changed, _ := in.onto(o.Endpoint)
	return s.taken(ctx, changed)
}

const takenAlready = "is taken already: choose another"

// nameTaken reports whether another endpoint has the name of e. One that is registered without a name gets a free one.
func (s *Server) nameTaken(ctx context.Context, e store.Endpoint) (bool, error) {
	name := e.Name
	switch {
	case name == "" && e.ID == "":
		return false, nil
	case name == "":
		name = e.DefaultName()
	}
	page, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{Name: name, Limit: -1})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(page.Items, func(o store.Overview) bool { return o.ID != e.ID }), nil
}

// refusal returns an error that names every mistake, nil when there is none. What is taken is a conflict when nothing
// else is wrong.
func refusal(mistakes, taken []probe.Problem) error {
	switch {
	case len(mistakes) > 0:
		return store.Invalid{Problems: slices.Concat(mistakes, taken)}
	case len(taken) == 1:
		return store.Conflict{Field: taken[0].Field, Message: taken[0].Message}
	case len(taken) > 1:
		return unacceptable(http.StatusConflict, "Conflict", taken)
	}
	return nil
}
