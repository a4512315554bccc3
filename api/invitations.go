package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// Invitation is a link that works once, as it stands in JSON. Link is there once, in the answer to who made it.
type Invitation struct {
	ID        string     `json:"id"`
	Member    *string    `json:"member"` // id of whose password it sets; null of one that makes a member
	Name      string     `json:"name"`
	Role      store.Role `json:"role"`
	Author    string     `json:"author"`
	CreatedAt Time       `json:"created_at"`
	ExpiresAt Time       `json:"expires_at"`
	Link      string     `json:"link,omitempty"`
}

func invitationJSON(i store.Invitation) Invitation {
	return Invitation{
		ID: i.ID, Member: textOrNull(i.UserID), Name: i.Name, Role: i.Role, Author: i.Author, CreatedAt: Time{i.CreatedAt},
		ExpiresAt: Time{i.ExpiresAt},
	}
}

func (s *Server) listInvitations(c echo.Context) error {
	if err := queryOf(c).end(); err != nil {
		return err
	}
	all, err := s.cfg.Store.Invitations(c.Request().Context(), time.Now())
	if err != nil {
		return err
	}
	items := make([]Invitation, 0, len(all))
	for _, i := range all {
		items = append(items, invitationJSON(i))
	}
	return ok(c, list[Invitation]{Items: items})
}

// errBoundToken refuses to let somebody do more than the token that asks may.
var errBoundToken = fault(http.StatusForbidden, "Not allowed",
	"This token is bound to parts of the API, and a member is bound to none: use one without scopes.")

// isBound reports whether somebody asks by a token that is bound to parts of the API.
func isBound(c echo.Context) bool {
	by, isToken := c.Get(keyToken).(bearing)
	return isToken && len(by.Scopes) > 0
}

// postInvitation makes a link by which somebody becomes a member, or chooses another password.
func (s *Server) postInvitation(c echo.Context) error {
	if isBound(c) {
		return errBoundToken
	}
	m, err := readBody(c)
	if err != nil {
		return err
	}
	member, name, role := m.text("member", ""), m.text("name", ""), m.text("role", "")
	m.readOnly("id", "author", "created_at", "expires_at", "link")
	m.rest()
	if member != nil && *member != "" {
		for field, given := range map[string]*string{"name": name, "role": role} {
			if given != nil {
				m.mistake(field, "is that of the member: leave it out")
			}
		}
	}
	if len(*m.mistakes) > 0 {
		return store.Invalid{Problems: *m.mistakes}
	}
	i := store.Invitation{Role: store.RoleViewer, ExpiresAt: time.Now().Add(store.InvitationLife)}
	set(&i.Name, name)
	if role != nil && *role != "" {
		i.Role = store.Role(*role)
	}
	if member != nil && *member != "" {
		if i, err = s.resetOf(c, *member); err != nil {
			return err
		}
	}
	kept, link, err := s.keepInvitation(c, i)
	if err != nil {
		return err
	}
	shown := invitationJSON(kept)
	shown.Link = link
	return answer(c, http.StatusCreated, "application/json", shown)
}

// resetOf returns the invitation by which a member chooses another password.
func (s *Server) resetOf(c echo.Context, id string) (store.Invitation, error) {
	u, err := s.cfg.Store.User(c.Request().Context(), id)
	if err != nil {
		return store.Invitation{}, err
	}
	return store.Invitation{UserID: u.ID, Name: u.Name, Role: u.Role, ExpiresAt: time.Now().Add(store.ResetLife)}, nil
}

// keepInvitation keeps an invitation and returns its link, which nobody sees again.
func (s *Server) keepInvitation(c echo.Context, i store.Invitation) (store.Invitation, string, error) {
	var secret string
	secret, i.Hash = store.NewSecret("")
	i.Author = s.caller(c)
	kept, err := s.cfg.Store.CreateInvitation(c.Request().Context(), i)
	return kept, s.baseURL(c) + "/join?token=" + secret, err
}

func (s *Server) deleteInvitation(c echo.Context) error {
	if err := s.cfg.Store.DeleteInvitation(c.Request().Context(), c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
