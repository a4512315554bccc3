package api

import (
	"context"
	"slices"
	"strings"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// maxPicks is how many endpoints a form lists to be ticked. Others are chosen by their slugs.
const maxPicks = 200

// picker lists endpoints to choose from, with those of chosen, slugs, chosen. except is one that cannot be.
func (s *Server) picker(ctx context.Context, field, label string, chosen []string, except string, problems web.Problems) (web.Picker, error) {
	page, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{Limit: maxPicks})
	if err != nil {
		return web.Picker{}, err
	}
	p := web.Picker{Field: field, Label: label, More: page.Next != "", Problems: problems.For(field)}
	left := slices.Clone(chosen)
	for _, o := range page.Items {
		if o.Slug == except {
			continue
		}
		at := slices.Index(left, o.Slug)
		if at >= 0 {
			left = slices.Delete(left, at, at+1)
		}
		p.Options = append(p.Options, web.PickOption{Slug: o.Slug, Name: o.Name, Chosen: at >= 0})
	}
	p.Typed = strings.Join(left, ", ")
	return p, nil
}

// picked reads what was chosen: ticks, then what was typed.
func (f form) picked(field string) []string {
	return slices.Concat(f.texts(field), namesOf(f.text(field+"_typed")))
}

// linksTo returns links to endpoints, in the order of their names.
func (s *Server) linksTo(ctx context.Context, ids []string) ([]web.EndpointLink, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	page, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{IDs: ids, Limit: -1})
	if err != nil {
		return nil, err
	}
	return endpointLinks(page.Items), nil
}

// slugList returns the slugs of endpoints, in the order of their names.
func (s *Server) slugList(ctx context.Context, ids []string) ([]string, error) {
	links, err := s.linksTo(ctx, ids)
	if err != nil {
		return nil, err
	}
	slugs := make([]string, 0, len(links))
	for _, l := range links {
		slugs = append(slugs, l.Slug)
	}
	return slugs, nil
}
