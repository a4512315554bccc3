package api

import (
	"encoding/json"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Contract is a tool list of an MCP server as it stands in JSON.
type Contract struct {
	ID          string         `json:"id"`
	Endpoint    string         `json:"endpoint"` // its slug
	Key         string         `json:"key"`
	Hash        string         `json:"hash"`
	FirstSeenAt Time           `json:"first_seen_at"`
	LastSeenAt  Time           `json:"last_seen_at"`
	Present     bool           `json:"present"`
	Changes     []probe.Change `json:"changes"`

	Tools json.RawMessage `json:"tools,omitempty"` // absent in lists, and where they are not kept
}

func contractJSON(c store.Contract, slug string) Contract {
	shown := Contract{
		ID:          c.ID,
		Endpoint:    slug,
		Key:         c.Key,
		Hash:        c.Hash,
		FirstSeenAt: Time{c.FirstSeen},
		LastSeenAt:  Time{c.LastSeen},
		Present:     c.Present,
		Changes:     append([]probe.Change{}, c.Changes...),
	}
	if json.Valid(c.Tools) {
		shown.Tools = c.Tools
	}
	return shown
}

func (s *Server) listContracts(c echo.Context) error {
	q := queryOf(c)
	f := store.ContractFilter{Limit: q.limit(), Cursor: q.text("cursor")}
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	f.EndpointID = o.ID
	page, err := s.cfg.Store.Contracts(ctx, f)
	if err != nil {
		return err
	}
	return ok(c, listOf(page.Items, page.Next, func(contract store.Contract) Contract { return contractJSON(contract, o.Slug) }))
}

func (s *Server) getContract(c echo.Context) error {
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	contract, err := s.cfg.Store.Contract(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	if contract.EndpointID != o.ID {
		return store.ErrNotFound
	}
	return ok(c, contractJSON(contract, o.Slug))
}

// Event is a line of an endpoint's timeline as it stands in JSON.
type Event struct {
	ID       string          `json:"id"`
	Endpoint string          `json:"endpoint"` // its slug
	At       Time            `json:"at"`
	Kind     store.EventKind `json:"kind"`
	Severity string          `json:"severity"`
	Title    string          `json:"title"`
	Data     json.RawMessage `json:"data"`
}

func (s *Server) listEvents(c echo.Context) error {
	q := queryOf(c)
	f := store.EventFilter{Limit: q.limit(), Cursor: q.text("cursor")}
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	f.EndpointID = o.ID
	page, err := s.cfg.Store.Events(ctx, f)
	if err != nil {
		return err
	}
	return ok(c, listOf(page.Items, page.Next, func(ev store.Event) Event {
		return Event{ev.ID, o.Slug, Time{ev.At}, ev.Kind, ev.Severity, ev.Title, ev.Data}
	}))
}
