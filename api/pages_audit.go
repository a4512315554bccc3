package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// auditNouns are the kinds of things whose changes are logged, as people choose from them.
var auditNouns = []string{
	"endpoint", "incident", "channel", "notice", "maintenance", "status_page", "subscription", "member", "invitation", "second_factor",
	"session", "token",
}

func (s *Server) pageAudit(c echo.Context) error {
	q := queryOf(c)
	f := store.AuditFilter{Author: q.text("author"), Noun: q.text("noun"), Cursor: q.text("cursor")}
	if err := pageEnd(q); err != nil {
		return err
	}
	found, err := s.cfg.Store.Audits(c.Request().Context(), f)
	if err != nil {
		return err
	}
	members, err := s.membersOf(c.Request().Context(), found.Items)
	if err != nil {
		return err
	}
	page := web.AuditPage{Frame: s.frame(c, "/audit"), Author: f.Author, Noun: f.Noun, Nouns: auditNouns}
	for _, a := range found.Items {
		noun, verb, _ := strings.Cut(a.Action, ".")
		row := web.AuditRow{
			At: a.At, Author: a.Author, Kind: string(a.AuthorKind), Address: a.Address, Noun: strings.ReplaceAll(noun, "_", " "), Verb: verb,
			Name: cmp.Or(a.Name, members[a.Target]), Target: a.Target, Path: auditPath(noun, verb, a.Target), Changes: a.Changes,
		}
		page.Rows = append(page.Rows, row)
	}
	filters := map[string]string{"author": f.Author, "noun": f.Noun}
	if f.Cursor != "" {
		page.First = listPath("/audit", filters)
	}
	if found.Next != "" {
		page.Next = listPath("/audit", map[string]string{"author": f.Author, "noun": f.Noun, "cursor": found.Next})
	}
	return s.render(c, http.StatusOK, page)
}

// membersOf returns the names of members by their ids, for lines about what a member has that has no name itself, such as a second
// factor; nil where there is no such line.
func (s *Server) membersOf(ctx context.Context, lines []store.Audit) (map[string]string, error) {
	if !slices.ContainsFunc(lines, func(a store.Audit) bool { return a.Name == "" }) {
		return nil, nil //nolint:nilnil // a nil map is empty
	}
	users, err := s.cfg.Store.Users(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(users))
	for _, u := range users {
		names[u.ID] = u.Name
	}
	return names, nil
}

// auditPath is where to look at what was changed; empty where there is no such page, or it is gone.
func auditPath(noun, verb, target string) string {
	folder, ok := map[string]string{
		"endpoint": "/endpoints/", "incident": "/incidents/", "channel": "/channels/", "maintenance": "/maintenance/", "status_page": "/pages/",
	}[noun]
	if !ok || verb == store.AuditDelete {
		return ""
	}
	return folder + url.PathEscape(target)
}
