package api

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
)

// cookieTheme holds whether somebody wants the pages light or dark. What the system says holds without it.
const cookieTheme = "theme"

// preferencesFor is how long a choice is remembered, in seconds: as long as browsers allow.
const preferencesFor = 400 * 24 * 3600

// chosenTheme returns the theme that a page is to have; empty: the system's.
func chosenTheme(r *http.Request) string {
	cookie, err := r.Cookie(cookieTheme)
	if err != nil || !slices.Contains([]string{web.ThemeLight, web.ThemeDark}, cookie.Value) {
		return ""
	}
	return cookie.Value
}

// here is the address of the page that a request asked for, without the word for what was done before.
func here(r *http.Request) string {
	u := url.URL{Path: r.URL.Path}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		q := r.URL.Query()
		q.Del("done")
		u.RawQuery = q.Encode()
	}
	return safeNext(u.String())
}

// doPreferences remembers how somebody wants the pages, who need not be logged in: in that browser alone.
func (s *Server) doPreferences(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	switch theme := f.text("theme"); theme {
	case web.ThemeLight, web.ThemeDark:
		s.prefer(c, cookieTheme, theme)
	case "auto":
		s.prefer(c, cookieTheme, "")
	case "":
	default:
		return fault(http.StatusBadRequest, "Unknown theme", "Choose light, dark or auto.")
	}
	if language := f.text("language"); language != "" {
		if !slices.ContainsFunc(web.Languages(), func(l web.Language) bool { return l.Tag == language }) {
			return fault(http.StatusBadRequest, "Unknown language", "The pages cannot be read in that language.")
		}
		s.prefer(c, cookieLanguage, language)
	}
	return seeOther(c, safeNext(f.text("back")), "")
}

// prefer sets a cookie, which is nobody's secret; an empty value removes it.
func (s *Server) prefer(c echo.Context, name, value string) {
	age := preferencesFor
	if value == "" {
		age = -1
	}
	c.SetCookie(&http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, SameSite: http.SameSiteLaxMode, Secure: s.https(c), HttpOnly: true})
}
