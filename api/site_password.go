package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// keptOut answers somebody who has not given the password.
func (s *Server) keptOut(c echo.Context, v site) error {
	if page := s.pages[c.Path()]; !page || !safe(c.Request().Method) {
		return store.ErrNotFound
	}
	return s.passwordPage(c, http.StatusOK, v, "")
}

func (s *Server) passwordPage(c echo.Context, status int, v site, trouble string) error {
	c.Set(keySite, nil)
	return s.render(c, status, web.SitePasswordPage{
		Frame: web.Frame{
			Site: &web.Site{Home: v.home(), Locked: true}, Now: time.Now(), Language: chosenLanguage(c.Request()),
			Theme: chosenTheme(c.Request()), Here: v.home(),
		},
		Action:  v.path("/password"),
		Problem: trouble,
	})
}

// doSitePassword lets in who knows the password of a page. It is not behind sited, which would keep them out.
func (s *Server) doSitePassword(c echo.Context) error {
	ctx := c.Request().Context()
	all, err := s.sites.read(ctx, s.cfg.Store)
	if err != nil {
		return err
	}
	page := all.bySlug[c.Param("slug")]
	if page == nil || page.Public() {
		return store.ErrNotFound
	}
	v := site{page: page, root: "/p/" + page.Slug}
	if c.Get(keyDomain) != nil {
		v.root = ""
	}
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if err := s.tryPassword(c, page, f.raw("password")); err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		setRetryAfter(c, p)
		return s.passwordPage(c, p.Status, v, p.Detail)
	}
	s.admit(c, page, v)
	return c.Redirect(http.StatusSeeOther, v.home())
}

var errWrongSitePassword = fault(http.StatusForbidden, "Wrong password", "The password is wrong.")

func (s *Server) tryPassword(c echo.Context, page *store.StatusPage, password string) error {
	addr := c.RealIP()
	if password == "" || len(password) > maxPassword {
		return errWrongSitePassword
	}
	if wait := s.sitePasswords.wait(addr, page.ID); wait > 0 {
		return tooManyLogins(wait)
	}
	ctx, matches := c.Request().Context(), false
	if err := s.whenThereIsRoom(ctx, func() { matches = VerifyPassword(page.PasswordHash, password) }); err != nil {
		return err
	}
	if !matches {
		s.cfg.Log.WarnContext(ctx, "password of status page refused", "page", page.Slug, "addr", addr)
		return errWrongSitePassword
	}
	s.sitePasswords.remember(addr, page.ID)
	return nil
}

// admittedFor is how long somebody who gave the password of a page need not give it again.
const admittedFor = 7 * 24 * time.Hour

// siteCookie is the name of the cookie that lets somebody see a page.
func siteCookie(page *store.StatusPage) string { return "rollcall_" + page.ID }

// admission returns what that cookie holds: until when it is good, and proof of the page and the password that it is good for.
func (s *Server) admission(page *store.StatusPage, until int64) string {
	mac := hmac.New(sha256.New, s.siteKey)
	fmt.Fprintf(mac, "page:%s:%d:%s", page.ID, until, page.PasswordHash)
	return strconv.FormatInt(until, 10) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s *Server) admit(c echo.Context, page *store.StatusPage, v site) {
	c.SetCookie(&http.Cookie{
		Name:     siteCookie(page),
		Value:    s.admission(page, time.Now().Add(admittedFor).Unix()),
		Path:     v.home(),
		MaxAge:   int(admittedFor / time.Second),
		HttpOnly: true,
		Secure:   s.https(c),
		SameSite: http.SameSiteLaxMode,
	})
}

func (s *Server) admitted(c echo.Context, page *store.StatusPage) bool {
	cookie, err := c.Cookie(siteCookie(page))
	if err != nil {
		return false
	}
	text, _, _ := strings.Cut(cookie.Value, ".")
	until, err := strconv.ParseInt(text, 10, 64)
	if err != nil || time.Unix(until, 0).Before(time.Now()) {
		return false
	}
	return hmac.Equal([]byte(cookie.Value), []byte(s.admission(page, until)))
}

// newSiteKey returns what admissions are signed with: the key of links where there is one, so that every instance knows them.
func newSiteKey(linkKey []byte) []byte {
	if len(linkKey) >= minLinkKey {
		return linkKey
	}
	key := make([]byte, sha256.Size)
	rand.Read(key) //nolint:errcheck // crypto/rand.Read never returns an error
	return key
}
