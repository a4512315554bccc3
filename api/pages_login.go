package api

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pageLogin(c echo.Context) error {
	next := safeNext(c.QueryParam("next"))
	if _, loggedIn := s.user(c); loggedIn {
		return seeOther(c, next, "")
	}
	return s.loginPage(c, http.StatusOK, web.LoginPage{Next: next})
}

func (s *Server) loginPage(c echo.Context, status int, page web.LoginPage) error {
	ready, err := s.isSetUp(c.Request().Context())
	if err != nil {
		return err
	}
	page.Frame = s.frame(c, "")
	if !ready {
		_, page.Setup = s.wayIn()
	}
	if s.provider != nil && ready {
		page.Provider, page.ProviderPath = hostOf(s.cfg.OIDC.Issuer), oidcPath+"?"+url.Values{"next": {page.Next}}.Encode()
	}
	return s.render(c, status, page)
}

// wayIn says how to get an account where nobody has one. A start with an admin token prints no setup link.
func (s *Server) wayIn() (title, advice string) {
	const nobody = "Nobody has an account here yet. "
	if s.cfg.AdminToken != "" {
		return "Get a setup link", nobody + "With an admin token, the service prints no setup link: " +
			"start it once without ROLLCALL_ADMIN_TOKEN to get one."
	}
	return "Open the setup link", nobody + "The service printed a link when it started, in its terminal or its log: " +
		"open it to choose your name and password. Restarting the service prints a fresh one."
}

func (s *Server) doLogin(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	name, next := f.text("name"), safeNext(f.text("next"))
	u, err := s.authenticate(c.Request().Context(), name, f.raw("password"), c.RealIP())
	if err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		setRetryAfter(c, p)
		return s.loginPage(c, p.Status, web.LoginPage{Name: name, Next: next, Problem: p.Detail})
	}
	return s.letIn(c, u, next)
}

func (s *Server) doLogout(c echo.Context) error {
	if err := s.endSession(c); err != nil {
		return err
	}
	return seeOther(c, "/login", "")
}

// pageSetup tells apart a good link, a spent or replaced one, and none at all.
func (s *Server) pageSetup(c echo.Context) error {
	ctx := c.Request().Context()
	ready, err := s.isSetUp(ctx)
	if err != nil {
		return err
	}
	page := web.SetupPage{Frame: s.frame(c, ""), Token: c.QueryParam("token")}
	switch {
	case ready:
		page.Title = "Rollcall is set up"
		page.Trouble = "Somebody has used the setup link already. Log in with the name and password chosen then."
		return s.render(c, http.StatusForbidden, page)
	case page.Token == "":
		page.Title, page.Trouble = s.wayIn()
		return s.render(c, http.StatusForbidden, page)
	}
	page.Usable, err = s.cfg.Store.HasSetupToken(ctx, store.HashSecret(page.Token))
	if err != nil {
		return err
	}
	if !page.Usable {
		page.Title, page.Trouble = "This setup link does not work", s.setupSpent().Detail
		return s.render(c, http.StatusForbidden, page)
	}
	return s.render(c, http.StatusOK, page)
}

func (s *Server) doSetup(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	token, name := f.raw("token"), f.text("name")
	u, err := s.finishSetup(c, token, name, f.raw("password"))
	if err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		page := web.SetupPage{Frame: s.frame(c, ""), Token: token, Name: name, Usable: p.Status != http.StatusForbidden, Problems: problemsOf(p)}
		if !page.Usable {
			page.Title, page.Trouble = "This setup link does not work", p.Detail
		}
		return s.render(c, p.Status, page)
	}
	if err := s.startSession(c, u); err != nil {
		return err
	}
	return seeOther(c, "/", "")
}
