package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// How much of what a server promised is shown at once.
const (
	contractsPerPage = 20
	eventsPerPage    = 10
	toolsShown       = 200 // names, on the page of an endpoint
)

// promises returns what the page of an endpoint shows of its contracts that hold, and of its timeline.
func (s *Server) promises(ctx context.Context, e store.Endpoint) ([]web.Contract, []web.Event, error) {
	page, err := s.cfg.Store.Contracts(ctx, store.ContractFilter{EndpointID: e.ID, Limit: contractsPerPage})
	if err != nil {
		return nil, nil, err
	}
	var views []web.Contract
	for _, c := range page.Items {
		if !c.Present {
			continue
		}
		if c, err = s.cfg.Store.Contract(ctx, c.ID); err != nil {
			return nil, nil, err
		}
		views = append(views, contractView(e.Slug, c))
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

func contractView(slug string, c store.Contract) web.Contract {
	view := web.Contract{
		ID: c.ID, Key: c.Key, Hash: c.Hash, Present: c.Present, Since: c.FirstSeen, Until: c.LastSeen, Changes: c.Changes,
		Link: "/endpoints/" + slug + "/contracts/" + c.ID,
	}
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

// pageContracts lists the tool lists of an endpoint, the newest first.
func (s *Server) pageContracts(c echo.Context) error {
	q := queryOf(c)
	cursor := q.text("cursor")
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	listed, err := s.cfg.Store.Contracts(ctx, store.ContractFilter{EndpointID: o.ID, Limit: contractsPerPage, Cursor: cursor})
	if err != nil {
		return err
	}
	path := "/endpoints/" + o.Slug + "/contracts"
	page := web.ContractsPage{Frame: s.frame(c, "/"), Slug: o.Slug, Name: o.Name}
	for _, contract := range listed.Items {
		page.Contracts = append(page.Contracts, contractView(o.Slug, contract))
	}
	if cursor != "" {
		page.Newest = path
	}
	if listed.Next != "" {
		page.Older = listPath(path, map[string]string{"cursor": listed.Next})
	}
	return s.render(c, http.StatusOK, page)
}

// pageContract shows a tool list, and what changed from or to another one.
func (s *Server) pageContract(c echo.Context) error {
	q := queryOf(c)
	against := q.text("against")
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	kept, err := s.contractOf(ctx, o.Endpoint, c.Param("id"))
	if err != nil {
		return err
	}
	page := web.ContractPage{Frame: s.frame(c, "/"), Slug: o.Slug, Name: o.Name, Contract: contractView(o.Slug, kept)}
	page.Shown, _, _ = web.ToolsOf(kept.Tools)
	others, err := s.cfg.Store.Contracts(ctx, store.ContractFilter{EndpointID: o.ID, Limit: store.MaxLimit})
	if err != nil {
		return err
	}
	for _, other := range others.Items {
		if other.Key == kept.Key && other.ID != kept.ID {
			page.Others = append(page.Others, contractView(o.Slug, other))
		}
	}
	if against == "" {
		return s.render(c, http.StatusOK, page)
	}
	other, err := s.contractOf(ctx, o.Endpoint, against)
	if err != nil {
		return err
	}
	compare(&page, kept, other)
	return s.render(c, http.StatusOK, page)
}

// contractOf returns a contract of an endpoint with its tools.
func (s *Server) contractOf(ctx context.Context, e store.Endpoint, id string) (store.Contract, error) {
	contract, err := s.cfg.Store.Contract(ctx, id)
	if err == nil && contract.EndpointID != e.ID {
		return store.Contract{}, store.ErrNotFound
	}
	return contract, err
}

// compare fills in what changed from the older to the newer of two tool lists.
func compare(page *web.ContractPage, kept, other store.Contract) {
	page.Against, page.Reversed = new(contractView(page.Slug, other)), other.FirstSeen.After(kept.FirstSeen)
	before, after := other, kept
	if page.Reversed {
		before, after = kept, other
	}
	if len(before.Tools) == 0 || len(after.Tools) == 0 {
		return
	}
	changes, err := probe.DiffContracts(before.Tools, after.Tools)
	page.Differences, page.Compared = changes, err == nil
}
