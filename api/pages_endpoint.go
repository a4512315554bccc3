package api

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// How much of an endpoint's history its page shows at once.
const (
	checksPerPage    = 20
	incidentsPerPage = 10
)

// shownWindows are the windows that pages show, with the words for them.
var shownWindows = []struct{ name, label string }{
	{"24h", "24 hours"}, {"7d", "7 days"}, {"30d", "30 days"}, {"90d", "90 days"},
}

func (s *Server) pageEndpoint(c echo.Context) error {
	q := queryOf(c)
	verdict, cursor := choice(q, "verdict", probe.Verdicts()), q.text("cursor")
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	page := endpointPage(o)
	page.Frame = s.frame(c, "/")
	page.Badges = badgeSnippets(o.Endpoint, s.baseURL(c))
	if page.Windows, page.Latencies, err = s.history(ctx, o.Endpoint); err != nil {
		return err
	}
	if page.Channels, err = s.channelsOf(ctx, o.Endpoint); err != nil {
		return err
	}
	checks, err := s.cfg.Store.Checks(ctx, store.CheckFilter{EndpointID: o.ID, Verdict: verdict, Limit: checksPerPage, Cursor: cursor})
	if err != nil {
		return err
	}
	path := "/endpoints/" + o.Slug
	page.Verdict, page.Checks = verdict, checkViews(checks.Items)
	if checks.Next != "" {
		page.Older = listPath(path, map[string]string{"verdict": string(verdict), "cursor": checks.Next}) + "#checks"
	}
	if cursor != "" {
		page.Newest = listPath(path, map[string]string{"verdict": string(verdict)}) + "#checks"
	}
	incidents, err := s.cfg.Store.Incidents(ctx, store.IncidentFilter{EndpointID: o.ID, Limit: incidentsPerPage})
	if err != nil {
		return err
	}
	page.Incidents = incidentRows(incidents.Items)
	if page.Contracts, page.Events, err = s.promises(ctx, o.Endpoint); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, page)
}

// endpointPage is what the page shows of an endpoint and its state.
func endpointPage(o store.Overview) web.EndpointPage {
	page := web.EndpointPage{
		Slug:        o.Slug,
		Name:        o.Name,
		URL:         AddressOf(o.Endpoint),
		Kind:        o.Kind,
		Schedule:    o.Schedule,
		Timeout:     o.Timeout,
		Paused:      o.Paused,
		Public:      o.Public,
		Tags:        o.Tags,
		Status:      o.Status(),
		Since:       o.State.Since,
		Failure:     o.State.Failure,
		Height:      o.State.Height,
		HeightSince: o.State.HeightSince,
	}
	if o.State.Unsettled() && !o.Paused {
		page.Confirming, page.Pointing, page.Unsettled = o.State.Streak.Count, store.Status(o.State.Streak.Verdict), o.State.Streak.Failure
	}
	if o.LastCheck != nil {
		last := web.CheckOf(o.LastCheck.ID, o.LastCheck.Result)
		page.Last = &last
	}
	return page
}

// history returns the uptime of an endpoint over every shown window, and its latencies over the first.
func (s *Server) history(ctx context.Context, e store.Endpoint) ([]web.Window, []web.LatencyRow, error) {
	shown := make([]web.Window, 0, len(shownWindows))
	var rows []web.LatencyRow
	for i, w := range shownWindows {
		u, err := s.uptime(ctx, e, w.name)
		if err != nil {
			return nil, nil, err
		}
		window := web.Window{Label: w.label, Uptime: u.Uptime, Coverage: u.Coverage, Counts: u.Checks}
		if e.CreatedAt.After(u.From.Time) {
			window.Since = e.CreatedAt
		}
		shown = append(shown, window)
		if i == 0 && u.LatencyMS != nil {
			rows = append(rows, latencyRow("", *u.LatencyMS))
			for _, step := range u.Steps {
				rows = append(rows, latencyRow(step.Name, step.Quantiles))
			}
		}
	}
	return shown, rows, nil
}

func latencyRow(step string, q Quantiles) web.LatencyRow {
	return web.LatencyRow{Step: step, P50: q.P50, P90: q.P90, P95: q.P95, P99: q.P99}
}

func checkViews(checks []store.Check) []web.Check {
	views := make([]web.Check, 0, len(checks))
	for _, c := range checks {
		views = append(views, web.CheckOf(c.ID, c.Result))
	}
	return views
}

// badgeSnippets is what somebody copies to show the badge of e elsewhere.
func badgeSnippets(e store.Endpoint, base string) []web.Snippet {
	image, link := base+"/badge/"+e.Slug+"/status.svg", base+"/status/"+e.Slug
	return []web.Snippet{
		{ID: "badge-markdown", Label: "Markdown", Text: fmt.Sprintf("[![%s](%s)](%s)", markdownText.Replace(e.Name), image, link)},
		{ID: "badge-html", Label: "HTML", Text: fmt.Sprintf(`<a href="%s"><img src="%s" alt="%s"></a>`,
			html.EscapeString(link), html.EscapeString(image), html.EscapeString(e.Name))},
	}
}

// markdownText keeps a name from ending the text of a link or beginning one of its own.
var markdownText = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `<`, `\<`, "`", "\\`")

func (s *Server) pageCheck(c echo.Context) error {
	o, check, err := s.checkOf(c)
	if err != nil {
		return err
	}
	said, err := check.Transcript.Messages()
	if err != nil {
		return internal(err)
	}
	return s.render(c, http.StatusOK, web.CheckPage{
		Frame:     s.frame(c, "/"),
		Slug:      o.Slug,
		Name:      o.Name,
		Location:  check.Location,
		Scheduled: check.ScheduledAt,
		Check:     web.CheckOf(check.ID, check.Result),
		Said:      said,
	})
}

// doEndpoint does what the buttons on an endpoint's page say.
func (s *Server) doEndpoint(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx, slug := c.Request().Context(), c.Param("slug")
	path := "/endpoints/" + slug
	switch f.text("action") {
	case "check":
		outlast(c, maxProbe)
		if _, err := s.cfg.CheckNow(c.Request().Context(), slug); err != nil {
			return err
		}
		return seeOther(c, path, "checked")
	case "pause":
		if _, err := s.edit(ctx, slug, endpointInput{Paused: new(true)}); err != nil {
			return err
		}
		return seeOther(c, path, "paused")
	case "resume":
		if _, err := s.edit(ctx, slug, endpointInput{Paused: new(false)}); err != nil {
			return err
		}
		return seeOther(c, path, "resumed")
	case "delete":
		if !f.ticked("confirmed") {
			return s.confirmRemoval(c, slug)
		}
		if err := s.remove(c, slug); err != nil {
			return err
		}
		return seeOther(c, "/", "deleted")
	}
	return errNoAction
}

var errNoAction = fault(http.StatusBadRequest, "Nothing to do", "The form did not say what to do. Go back and use one of its buttons.")

// confirmRemoval asks whether an endpoint is really to be deleted.
func (s *Server) confirmRemoval(c echo.Context, slug string) error {
	o, err := s.cfg.Store.Endpoint(c.Request().Context(), slug)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, web.ConfirmPage{
		Frame:    s.frame(c, "/"),
		Question: "Delete " + o.Name + "?",
		Detail:   "Its checks, incidents and uptime go with it, and its badges turn to “unknown”. This cannot be undone. To stop checking for a while, pause it instead.",
		Verb:     "Delete for good",
		Action:   "/endpoints/" + o.Slug,
		Back:     "/endpoints/" + o.Slug,
	})
}
