package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// Member is somebody who may log in, as they stand in JSON.
type Member struct {
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	Role         store.Role `json:"role"`
	Disabled     bool       `json:"disabled"`
	HasPassword  bool       `json:"has_password"`
	SecondFactor bool       `json:"second_factor"`
	Issuer       string     `json:"issuer"` // of the provider of identities that knows them; empty for none
	CreatedAt    Time       `json:"created_at"`
}

func memberJSON(u store.User) Member {
	return Member{u.ID, u.Name, u.Role, u.DisabledAt != nil, u.PasswordHash != "", u.HasFactor, u.Issuer, Time{u.CreatedAt}}
}

func (s *Server) listMembers(c echo.Context) error {
	if err := queryOf(c).end(); err != nil {
		return err
	}
	users, err := s.cfg.Store.Users(c.Request().Context())
	if err != nil {
		return err
	}
	items := make([]Member, 0, len(users))
	for _, u := range users {
		items = append(items, memberJSON(u))
	}
	return ok(c, list[Member]{Items: items})
}

// patchMember changes the role of a member, or whether they may log in.
func (s *Server) patchMember(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	role, disabled := m.text("role", ""), m.flag("disabled", false)
	m.readOnly("id", "name", "has_password", "second_factor", "issuer", "created_at")
	m.rest()
	if role != nil && isBound(c) {
		return errBoundToken
	}
	if len(*m.mistakes) > 0 {
		return store.Invalid{Problems: *m.mistakes}
	}
	now := time.Now()
	u, err := s.cfg.Store.UpdateUser(c.Request().Context(), c.Param("id"), func(u *store.User) error {
		if role != nil {
			u.Role = store.Role(*role)
		}
		switch {
		case disabled == nil:
		case !*disabled:
			u.DisabledAt = nil
		case u.DisabledAt == nil:
			u.DisabledAt = &now
		}
		return nil
	})
	if err != nil {
		return err
	}
	return ok(c, memberJSON(u))
}

func (s *Server) deleteMember(c echo.Context) error {
	if err := s.cfg.Store.DeleteUser(c.Request().Context(), c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
