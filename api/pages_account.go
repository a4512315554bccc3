package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pageAccount(c echo.Context) error {
	return s.accountPage(c, http.StatusOK, web.AccountPage{})
}

// accountPage shows somebody's own account: where they are logged in, and how they prove who they are.
func (s *Server) accountPage(c echo.Context, status int, page web.AccountPage) error {
	ctx := c.Request().Context()
	u, _ := s.user(c)
	sessions, err := s.cfg.Store.Sessions(ctx, u.ID, time.Now())
	if err != nil {
		return err
	}
	page.Frame, page.HasPassword, page.Provider = s.frame(c, "/account"), u.PasswordHash != "", hostOf(u.Issuer)
	if s.provider != nil && u.Issuer == "" && page.HasPassword {
		page.CanLink = hostOf(s.cfg.OIDC.Issuer)
	}
	current := currentSession(c)
	for _, one := range sessions {
		page.Sessions = append(page.Sessions, web.SessionRow{
			ID: one.ID(), Browser: browserWords(one.UserAgent), UserAgent: one.UserAgent, Address: one.Address,
			Since: one.CreatedAt, Seen: one.LastSeenAt, Current: bytes.Equal(one.TokenHash, current),
		})
	}
	f, err := s.cfg.Store.Factor(ctx, u.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	case f.ConfirmedAt != nil:
		page.FactorSince, page.CodesLeft = f.ConfirmedAt, len(f.Recovery)
	default:
		if page.Enrolment, err = s.enrolment(c, u, f); err != nil {
			return err
		}
	}
	return s.render(c, status, page)
}

// currentSession returns the hash of the session that asks.
func currentSession(c echo.Context) []byte {
	v, _ := c.Get(keyVisit).(visit)
	return v.session.TokenHash
}

// doAccount does something about somebody's own account.
func (s *Server) doAccount(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	u, _ := s.user(c)
	ctx := c.Request().Context()
	var codes []string
	done, part, linkTo := "saved", "", ""
	switch f.text("action") {
	case "password":
		part, err = "password", s.changePassword(c, u, f.raw("old"), f.raw("password"))
	case "end":
		done, err = "ended", s.endOne(ctx, u, f.text("id"))
	case "end-others":
		done = "ended"
		_, err = s.cfg.Store.DeleteSessions(ctx, u.ID, currentSession(c))
	case "factor":
		part, done, err = "factor", "", s.startFactor(c, u, f.raw("old"))
	case "confirm":
		part = "factor"
		codes, err = s.confirmFactor(c, u, f.raw("code"))
	case "codes":
		part = "factor"
		codes, err = s.renewCodes(c, u, f.raw("code"))
	case "link":
		part = "identity"
		linkTo, err = s.startLink(c, u, f.raw("old"))
	case "unlink":
		part, err = "identity", s.unlink(c, u, f.raw("old"))
	case "no-factor":
		part, err = "factor", s.endFactor(c, u, f.raw("old"))
	default:
		return errNoAction
	}
	if err != nil {
		return s.accountProblem(c, err, part)
	}
	if len(codes) > 0 || linkTo != "" { // browsers follow no form to another site: it is a link that leads there
		return s.accountPage(c, http.StatusOK, web.AccountPage{Codes: codes, LinkTo: linkTo})
	}
	return seeOther(c, "/account", done)
}

// accountProblem shows the page again with what is wrong in a part of it.
func (s *Server) accountProblem(c echo.Context, err error, part string) error {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError || part == "" {
		return err
	}
	setRetryAfter(c, p)
	problems := problemsOf(p)
	for i := range problems {
		if part != "factor" && problems[i].Field == "old" {
			problems[i].Field = part + "_old" // the page asks for it several times
		}
	}
	return s.accountPage(c, p.Status, web.AccountPage{Wrong: part, Problems: problems})
}

// knowsPassword asks somebody for the password that they have, if they have one: a session alone may be a borrowed browser.
func (s *Server) knowsPassword(c echo.Context, u store.User, old string) error {
	if u.PasswordHash == "" {
		return nil
	}
	if wait := s.logins.wait(c.RealIP(), store.Fold(u.Name)); wait > 0 {
		return tooManyLogins(wait)
	}
	matches := false
	if len(old) <= maxPassword {
		if err := s.whenThereIsRoom(c.Request().Context(), func() { matches = VerifyPassword(u.PasswordHash, old) }); err != nil {
			return err
		}
	}
	if !matches {
		return store.Invalid{Problems: []probe.Problem{{Field: "old", Message: "is not your password"}}}
	}
	return nil
}

// changePassword sets a password and ends all other sessions; this one goes on under another secret.
func (s *Server) changePassword(c echo.Context, u store.User, old, password string) error {
	ctx := c.Request().Context()
	if mistakes := userMistakes(u.Name, password); len(mistakes) > 0 {
		return store.Invalid{Problems: mistakes}
	}
	if err := s.knowsPassword(c, u, old); err != nil {
		return err
	}
	var hash string
	if err := s.whenThereIsRoom(ctx, func() { hash = HashPassword(password) }); err != nil {
		return err
	}
	changed, err := s.cfg.Store.UpdateUser(ctx, u.ID, func(u *store.User) error { u.PasswordHash = hash; return nil })
	if err != nil {
		return err
	}
	return s.startSession(c, changed)
}

// endOne ends one of somebody's sessions.
func (s *Server) endOne(ctx context.Context, u store.User, id string) error {
	sessions, err := s.cfg.Store.Sessions(ctx, u.ID, time.Now())
	if err != nil {
		return err
	}
	for _, one := range sessions {
		if one.ID() == id {
			return s.cfg.Store.DeleteSession(ctx, one.TokenHash)
		}
	}
	return nil // it has ended
}

func (s *Server) startFactor(c echo.Context, u store.User, old string) error {
	if err := s.knowsPassword(c, u, old); err != nil {
		return err
	}
	_, err := s.cfg.Store.PutFactor(c.Request().Context(), store.Factor{UserID: u.ID, Secret: newFactorSecret()})
	return err
}

// confirmFactor takes the first code of an app, from where on codes are asked for, and returns the recovery codes.
func (s *Server) confirmFactor(c echo.Context, u store.User, typed string) ([]string, error) {
	codes, hashes := newRecoveryCodes()
	return codes, s.withCode(c, u, typed, func(f *store.Factor) {
		if f.ConfirmedAt == nil {
			now := time.Now()
			f.ConfirmedAt = &now
		}
		f.Recovery = hashes
	})
}

// renewCodes replaces the recovery codes.
func (s *Server) renewCodes(c echo.Context, u store.User, typed string) ([]string, error) {
	codes, hashes := newRecoveryCodes()
	return codes, s.withCode(c, u, typed, func(f *store.Factor) { f.Recovery = hashes })
}

// withCode changes somebody's second factor for a good code.
func (s *Server) withCode(c echo.Context, u store.User, typed string, change func(*store.Factor)) error {
	if wait := s.logins.waitForCode(u.ID); wait > 0 {
		return tooManyLogins(wait)
	}
	_, err := s.cfg.Store.UpdateFactor(c.Request().Context(), u.ID, func(f *store.Factor) error {
		if len(typed) > maxCode || spendCode(f, typed, time.Now()) != nil {
			return store.Invalid{Problems: []probe.Problem{{Field: "code", Message: "is not right, or was used already: wait for the next one"}}}
		}
		change(f)
		return nil
	})
	return err
}

func (s *Server) endFactor(c echo.Context, u store.User, old string) error {
	if err := s.knowsPassword(c, u, old); err != nil {
		return err
	}
	err := s.cfg.Store.DeleteFactor(c.Request().Context(), u.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
