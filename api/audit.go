package api

import (
	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// Audit is a line of the log of changes as it stands in JSON.
type Audit struct {
	ID         string          `json:"id"`
	At         Time            `json:"at"`
	Author     string          `json:"author"`
	AuthorKind store.ActorKind `json:"author_kind"`
	Address    string          `json:"address"`
	Action     string          `json:"action"`
	Target     string          `json:"target"`
	Name       string          `json:"name"`
	Changes    []store.Change  `json:"changes"`
}

func (s *Server) listAudit(c echo.Context) error {
	q := queryOf(c)
	f := store.AuditFilter{Author: q.text("author"), Noun: q.text("noun"), Limit: q.limit(), Cursor: q.text("cursor")}
	if err := q.end(); err != nil {
		return err
	}
	page, err := s.cfg.Store.Audits(c.Request().Context(), f)
	if err != nil {
		return err
	}
	items := make([]Audit, 0, len(page.Items))
	for _, a := range page.Items {
		items = append(items, Audit{
			a.ID, Time{a.At}, a.Author, a.AuthorKind, a.Address, a.Action, a.Target, a.Name, append([]store.Change{}, a.Changes...),
		})
	}
	return ok(c, list[Audit]{items, page.Next})
}
