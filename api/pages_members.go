package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pageMembers(c echo.Context) error {
	return s.membersPage(c, http.StatusOK, web.MembersPage{Form: web.InvitationForm{Role: store.RoleViewer}})
}

// membersPage shows who may come in, and who was asked to.
func (s *Server) membersPage(c echo.Context, status int, page web.MembersPage) error {
	ctx := c.Request().Context()
	users, err := s.cfg.Store.Users(ctx)
	if err != nil {
		return err
	}
	invitations, err := s.cfg.Store.Invitations(ctx, time.Now())
	if err != nil {
		return err
	}
	self, _ := s.user(c)
	page.Frame, page.Roles = s.frame(c, "/members"), store.Roles
	for _, u := range users {
		page.Members = append(page.Members, web.MemberRow{
			ID: u.ID, Name: u.Name, Role: u.Role, Disabled: u.DisabledAt, HasFactor: u.HasFactor,
			HasPassword: u.PasswordHash != "", Provider: hostOf(u.Issuer), Since: u.CreatedAt, Self: u.ID == self.ID,
		})
	}
	for _, i := range invitations {
		page.Invitations = append(page.Invitations, web.InvitationRow{
			ID: i.ID, Name: i.Name, Role: i.Role, Resets: !i.Invites(), Author: i.Author, Until: i.ExpiresAt,
		})
	}
	return s.render(c, status, page)
}

// doMembers changes a member, or makes or takes back a link.
func (s *Server) doMembers(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx, id := c.Request().Context(), f.text("id")
	done := "saved"
	switch f.text("action") {
	case "invite":
		return s.invite(c, store.Invitation{Name: f.text("name"), Role: store.Role(f.text("role"))})
	case "reset":
		return s.inviteToReset(c, id)
	case "role":
		_, err = s.cfg.Store.UpdateUser(ctx, id, func(u *store.User) error { u.Role = store.Role(f.text("role")); return nil })
	case "disable":
		now := time.Now()
		_, err = s.cfg.Store.UpdateUser(ctx, id, func(u *store.User) error { u.DisabledAt = &now; return nil })
	case "enable":
		_, err = s.cfg.Store.UpdateUser(ctx, id, func(u *store.User) error { u.DisabledAt = nil; return nil })
	case "factor":
		err = s.cfg.Store.DeleteFactor(ctx, id)
	case "remove":
		return s.removeMember(c, id, f.ticked("sure"))
	case "revoke":
		err, done = s.cfg.Store.DeleteInvitation(ctx, id), "deleted"
	default:
		return errNoAction
	}
	if err != nil {
		return s.membersProblem(c, err, web.InvitationForm{Role: store.RoleViewer})
	}
	return seeOther(c, "/members", done)
}

// membersProblem shows the page again with what is wrong.
func (s *Server) membersProblem(c echo.Context, err error, form web.InvitationForm) error {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		return err
	}
	return s.membersPage(c, p.Status, web.MembersPage{Form: form, Problems: problemsOf(p)})
}

// invite makes a link by which somebody becomes a member, and shows it this once.
func (s *Server) invite(c echo.Context, i store.Invitation) error {
	i.ExpiresAt = time.Now().Add(store.InvitationLife)
	return s.makeLink(c, i)
}

// inviteToReset makes a link by which a member chooses another password.
func (s *Server) inviteToReset(c echo.Context, id string) error {
	i, err := s.resetOf(c, id)
	if err != nil {
		return err
	}
	return s.makeLink(c, i)
}

func (s *Server) makeLink(c echo.Context, i store.Invitation) error {
	kept, link, err := s.keepInvitation(c, i)
	if err != nil {
		return s.membersProblem(c, err, web.InvitationForm{Name: i.Name, Role: i.Role})
	}
	return s.membersPage(c, http.StatusCreated, web.MembersPage{
		Form: web.InvitationForm{Role: store.RoleViewer},
		Link: &web.ShownLink{URL: link, Name: kept.Name, Resets: !kept.Invites(), Until: kept.ExpiresAt},
	})
}

// removeMember asks once more before a member goes.
func (s *Server) removeMember(c echo.Context, id string, sure bool) error {
	ctx := c.Request().Context()
	if sure {
		if err := s.cfg.Store.DeleteUser(ctx, id); err != nil {
			return s.membersProblem(c, err, web.InvitationForm{Role: store.RoleViewer})
		}
		return seeOther(c, "/members", "deleted")
	}
	u, err := s.cfg.Store.User(ctx, id)
	if err != nil {
		return err
	}
	return s.membersPage(c, http.StatusOK, web.MembersPage{
		Form: web.InvitationForm{Role: store.RoleViewer}, Removing: &web.MemberRow{ID: u.ID, Name: u.Name},
	})
}

// errLink is said of a link that leads nowhere.
var errLink = fault(http.StatusForbidden, "This link does not work",
	"It was used already, was taken back, or is too old. An admin can make another one, on the page Members.")

// link finds the invitation of a link.
func (s *Server) link(c echo.Context, secret string) (store.Invitation, error) {
	if wait := s.logins.waitForLink(c.RealIP()); wait > 0 {
		return store.Invitation{}, tooManyLogins(wait)
	}
	i, err := s.cfg.Store.Invitation(c.Request().Context(), store.HashSecret(secret), time.Now())
	if errors.Is(err, store.ErrNotFound) {
		return i, errLink
	}
	return i, err
}

// pageJoin asks whoever opens a link for a name and a password.
func (s *Server) pageJoin(c echo.Context) error {
	secret := c.QueryParam("token")
	i, err := s.link(c, secret)
	if err != nil {
		return s.joinProblem(c, err, web.JoinPage{})
	}
	return s.render(c, http.StatusOK, web.JoinPage{Frame: s.frame(c, ""), Token: secret, Name: i.Name, Resets: !i.Invites(), Usable: true})
}

func (s *Server) joinProblem(c echo.Context, err error, page web.JoinPage) error {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		return err
	}
	setRetryAfter(c, p)
	page.Frame, page.Title, page.Trouble = s.frame(c, ""), p.Title, p.Detail
	if page.Usable {
		page.Problems = problemsOf(p)
	}
	return s.render(c, p.Status, page)
}

// joinMistakes says all that is wrong with the name and the password that somebody chose. That a name is taken is refused by the
// database as well, but only once everything else is in order.
func (s *Server) joinMistakes(ctx context.Context, i store.Invitation, name, password string) ([]probe.Problem, error) {
	mistakes := userMistakes(name, password)
	if !i.Invites() || len(mistakes) == 0 || mistakes[0].Field == "name" {
		return mistakes, nil
	}
	_, err := s.cfg.Store.UserByName(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return mistakes, nil
	}
	return append([]probe.Problem{{Field: "name", Message: takenAlready}}, mistakes...), err
}

// doJoin spends a link.
func (s *Server) doJoin(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	secret, password := f.raw("token"), f.raw("password")
	i, err := s.link(c, secret)
	if err != nil {
		return s.joinProblem(c, err, web.JoinPage{})
	}
	page := web.JoinPage{Token: secret, Name: f.text("name"), Resets: !i.Invites(), Usable: true}
	if page.Resets {
		page.Name = i.Name
	}
	u := store.User{Name: page.Name}
	mistakes, err := s.joinMistakes(c.Request().Context(), i, u.Name, password)
	if err != nil {
		return err
	}
	if len(mistakes) > 0 {
		return s.joinProblem(c, store.Invalid{Problems: mistakes}, page)
	}
	if err := s.whenThereIsRoom(c.Request().Context(), func() { u.PasswordHash = HashPassword(password) }); err != nil {
		return err
	}
	actAs(c, u.Name, store.ActorMember)
	u, err = s.cfg.Store.AcceptInvitation(c.Request().Context(), store.HashSecret(secret), time.Now(), u)
	if errors.Is(err, store.ErrNotFound) {
		return s.joinProblem(c, errLink, web.JoinPage{})
	}
	if err != nil {
		return s.joinProblem(c, err, page)
	}
	if u.DisabledAt != nil {
		return s.joinProblem(c, errDisabled, web.JoinPage{})
	}
	return s.letIn(c, u, "/")
}
