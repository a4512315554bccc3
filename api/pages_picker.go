package api

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
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

// showPlaces puts those that are chosen first, with their places, in the order in which they are.
func showPlaces(p *web.Picker, chosen []string) {
	p.Ordered = true
	slices.SortStableFunc(p.Options, func(a, b web.PickOption) int { return cmp.Compare(placeIn(chosen, a.Slug), placeIn(chosen, b.Slug)) })
	for i, o := range p.Options {
		if o.Chosen {
			p.Options[i].Place = strconv.Itoa(placeIn(chosen, o.Slug) + 1)
		}
	}
}

// placeIn returns where a slug stands among others; behind them all when it is not there.
func placeIn(slugs []string, slug string) int {
	if at := slices.Index(slugs, slug); at >= 0 {
		return at
	}
	return len(slugs)
}

// pickedInOrder reads what was chosen, in the order of the places that were typed. What has none stands behind what has one.
func (f form) pickedInOrder(field string) ([]string, []probe.Problem) {
	slugs := f.picked(field)
	places := make(map[string]float64, len(slugs))
	var mistakes []probe.Problem
	for _, slug := range slugs {
		typed := f.text(field + "_at." + slug)
		at, err := strconv.ParseFloat(typed, 64)
		switch {
		case typed == "":
			at = math.Inf(1)
		case err != nil || math.IsNaN(at):
			mistakes = append(mistakes, probe.Problem{Field: field, Message: "have places that are numbers, like 1 and 2"})
		}
		places[slug] = at
	}
	slices.SortStableFunc(slugs, func(a, b string) int { return cmp.Compare(places[a], places[b]) })
	return slugs, mistakes[:min(len(mistakes), 1)]
}

// picked reads what was chosen: ticks, then what was typed.
func (f form) picked(field string) []string {
	return slices.Concat(f.texts(field), namesOf(f.text(field+"_typed")))
}

// linksTo returns links to endpoints, in the order of their names.
func (s *Server) linksTo(ctx context.Context, ids []string) ([]web.EndpointLink, error) {
	found, err := s.named(ctx, ids)
	return endpointLinks(found), err
}

// linksInOrder returns links to endpoints, in the order of the ids.
func (s *Server) linksInOrder(ctx context.Context, ids []string) ([]web.EndpointLink, error) {
	found, err := s.named(ctx, ids)
	slices.SortFunc(found, func(a, b store.Overview) int { return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID)) })
	return endpointLinks(found), err
}

// named returns those of some endpoints that are there, in the order of their names.
func (s *Server) named(ctx context.Context, ids []string) ([]store.Overview, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	page, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{IDs: ids, Limit: -1})
	return page.Items, err
}

// slugList returns the slugs of endpoints, in the order of the ids.
func (s *Server) slugList(ctx context.Context, ids []string) ([]string, error) {
	links, err := s.linksInOrder(ctx, ids)
	if err != nil {
		return nil, err
	}
	slugs := make([]string, 0, len(links))
	for _, l := range links {
		slugs = append(slugs, l.Slug)
	}
	return slugs, nil
}
