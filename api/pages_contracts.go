package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// How much of what a server promised its endpoint's page shows.
const (
	contractsPerPage = 10
	eventsPerPage    = 10
	toolsShown       = 200
)

// promises returns what the page of an endpoint shows of its contracts and of its timeline.
func (s *Server) promises(ctx context.Context, e store.Endpoint) ([]web.Contract, []web.Event, error) {
	page, err := s.cfg.Store.Contracts(ctx, store.ContractFilter{EndpointID: e.ID, Limit: contractsPerPage})
	if err != nil {
		return nil, nil, err
	}
	// Those that hold come first; of these the tools are named.
	slices.SortStableFunc(page.Items, func(a, b store.Contract) int { return order(b.Present) - order(a.Present) })
	views := make([]web.Contract, 0, len(page.Items))
	for _, c := range page.Items {
		if c.Present {
			if c, err = s.cfg.Store.Contract(ctx, c.ID); err != nil {
				return nil, nil, err
			}
		}
		views = append(views, contractView(c))
	}
	timeline, err := s.cfg.Store.Events(ctx, store.EventFilter{EndpointID: e.ID, Limit: eventsPerPage})
	if err != nil {
		return nil, nil, err
	}
	var events []web.Event
	for _, ev := range timeline.Items {
		events = append(events, web.Event{At: ev.At, Severity: ev.Severity, Title: ev.Title})
	}
	return views, events, nil
}

func order(present bool) int {
	if present {
		return 1
	}
	return 0
}

func contractView(c store.Contract) web.Contract {
	view := web.Contract{Key: c.Key, Hash: c.Hash, Present: c.Present, Since: c.FirstSeen, Until: c.LastSeen, Changes: c.Changes}
	var tools []struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(c.Tools, &tools) != nil {
		return view
	}
	view.Known, view.Count = true, len(tools)
	for _, t := range tools[:min(len(tools), toolsShown)] {
		view.Tools = append(view.Tools, clip(strings.TrimSpace(t.Name), maxShown))
	}
	return view
}
