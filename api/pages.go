package api

import (
	"bytes"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
)

// Handlers of pages read their input, ask the server for what the page shows, and render it: pages.go holds what they
// share, and each pages_….go the pages of one noun.

// render answers with a page.
func (s *Server) render(c echo.Context, status int, page web.Page) error {
	var b bytes.Buffer
	if err := web.Render(&b, page); err != nil {
		return internal(err)
	}
	c.Response().Header().Add(echo.HeaderVary, "Accept-Language, Cookie")
	return blob(c, status, echo.MIMETextHTMLCharsetUTF8, web.Compressed(c.Response(), c.Request(), b.Bytes()))
}

// frame is what stands around a page. Section is the navigation entry that is current.
func (s *Server) frame(c echo.Context, section string) web.Frame {
	if around := s.siteFrame(c); around != nil {
		return web.Frame{
			Site:     around,
			Done:     doneWords[c.QueryParam("done")],
			Now:      time.Now(),
			Language: chosenLanguage(c.Request()),
			Theme:    chosenTheme(c.Request()),
			Here:     s.siteHere(c),
		}
	}
	u, _ := s.user(c)
	return web.Frame{
		User:     u.Name,
		Role:     u.Role,
		Section:  section,
		Done:     doneWords[c.QueryParam("done")],
		Now:      time.Now(),
		Version:  s.cfg.Version,
		Language: chosenLanguage(c.Request()),
		Theme:    chosenTheme(c.Request()),
		Here:     here(c.Request()),
	}
}

// cookieLanguage holds the language that somebody has chosen, who need not be logged in.
const cookieLanguage = "language"

// chosenLanguage returns the language that a page is to be in.
func chosenLanguage(r *http.Request) string {
	chosen := ""
	if cookie, err := r.Cookie(cookieLanguage); err == nil {
		chosen = cookie.Value
	}
	return web.ChooseLanguage(chosen, r.Header.Get("Accept-Language"))
}

// doneWords says what was done before a page is shown, by the word that the redirect to it carried. The list is closed:
// nobody else's text gets into a page by way of a link.
var doneWords = map[string]string{
	"registered": "Registered. Its first check is under way.",
	"saved":      "Saved.",
	"checked":    "Checked.",
	"paused":     "Paused.",
	"resumed":    "Resumed. It is checked again.",
	"deleted":    "Deleted.",
	"resent":     "It is sent again at once.",
	"planned":    "Planned.",
	"subscribed": "Subscribed.",
	"proven":     "The record is there: the domain is in use.",
	"opened":     "Opened. Those who are to hear of it are told.",

	"ended":   "Logged out there.",
	"revoked": "Revoked.",

	"acknowledge": "Acknowledged. Nobody is reminded.",
	"snooze":      "Snoozed. Nobody is reminded before that is over.",
	"comment":     "Said.",
	"resolve":     "Resolved.",
	"reopen":      "Opened again.",

	"tried":   "Added, and the test message was accepted. Choose it in the settings of your endpoints.",
	"told":    "Added, and the test message was accepted. This endpoint tells it of outages.",
	"untried": "Added, but the test message did not arrive. Send another to see why.",

	"added": "Added. Send a test to see whether it arrives, and choose it in the settings of your endpoints.",
}

// seeOther leads on after something was done, so that reloading the page does not do it again.
func seeOther(c echo.Context, path, done string) error {
	if done != "" {
		path += "?" + url.Values{"done": {done}}.Encode()
	}
	return c.Redirect(http.StatusSeeOther, path)
}

// pageEnd returns the mistakes in what was read of a page's query. Parameters that no page knows are passed over: links
// collect them on their way through other people's programs.
func pageEnd(q *query) error {
	clear(q.values)
	return q.end()
}

// pageError answers with a page that says what went wrong.
func (s *Server) pageError(c echo.Context, p *problem) error {
	return s.render(c, p.Status, web.ErrorPage{Frame: s.frame(c, ""), Status: p.Status, Title: p.Title, Detail: p.Detail, Mistakes: p.Errors})
}

// faviconPath is where browsers look for an icon of what names none, such as a feed, plain text or a picture.
const faviconPath = "/favicon.ico"

// favicon answers with the icon that every page has.
func (s *Server) favicon(c echo.Context) error {
	web.ServeStatic(c.Response(), c.Request(), "favicon.ico")
	return nil
}

// static answers with a file that belongs to the pages.
func (s *Server) static(c echo.Context) error {
	if !web.ServeStatic(c.Response(), c.Request(), c.Param("*")) {
		return echo.ErrNotFound
	}
	return nil
}
