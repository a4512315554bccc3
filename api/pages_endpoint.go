package api

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"time"

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
	h, err := s.history(ctx, o.Endpoint)
	if err != nil {
		return err
	}
	page.Windows, page.Latencies, page.Hours = h.windows, h.latencies, h.hours
	if places := placesOf(o); len(places) > 1 {
		page.Places = placeRows(o, places)
	}
	if page.Channels, err = s.channelsOf(ctx, o.Endpoint); err != nil {
		return err
	}
	checks, err := s.cfg.Store.Checks(ctx, store.CheckFilter{EndpointID: o.ID, Verdict: verdict, Limit: checksPerPage, Cursor: cursor})
	if err != nil {
		return err
	}
	if page.Last, err = s.newest(ctx, o.ID, verdict == "" && cursor == "", checks.Items); err != nil {
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
	if page.Objectives, err = s.objectiveViews(ctx, o.Endpoint); err != nil {
		return err
	}
	covered, err := s.maintained(ctx, o.Endpoint)
	if err != nil {
		return err
	}
	page.Maintenance = covered[o.ID]
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
		Checked:     o.State.LastCheckAt,
		Took:        o.State.LastDuration,
	}
	if o.State.Unsettled() && !o.Paused {
		page.Confirming, page.Pointing, page.Unsettled = o.State.Streak.Count, store.Status(o.State.Streak.Verdict), o.State.Streak.Failure
	}
	return page
}

// objectiveViews is how an endpoint fares against its objectives; none when nobody has worked it out.
func (s *Server) objectiveViews(ctx context.Context, e store.Endpoint) ([]web.ObjectiveView, error) {
	if s.cfg.Objectives == nil || len(e.Objectives) == 0 {
		return nil, nil
	}
	states, err := s.cfg.Objectives(ctx, e)
	if err != nil {
		return nil, err
	}
	views := make([]web.ObjectiveView, 0, len(states))
	for _, o := range states {
		view := web.ObjectiveView{
			Name: o.Objective.Name, Target: o.Objective.Target, Days: o.Objective.Days, Under: o.Objective.Under,
			Attained: o.Attained, Burning: o.Burning,
		}
		if o.BudgetLeft != nil {
			view.Left = *o.BudgetLeft
		}
		views = append(views, view)
	}
	return views, nil
}

// newest returns the newest check that is kept of an endpoint, nil when there is none. It is the first of those listed when
// they are all from the newest on.
func (s *Server) newest(ctx context.Context, id string, all bool, listed []store.Check) (*web.Check, error) {
	if !all {
		page, err := s.cfg.Store.Checks(ctx, store.CheckFilter{EndpointID: id, Limit: 1})
		if err != nil {
			return nil, err
		}
		listed = page.Items
	}
	if len(listed) == 0 {
		return nil, nil //nolint:nilnil // that there is none is no failure
	}
	return new(web.CheckOf(listed[0].ID, listed[0].Result)), nil
}

// placeRows is what a page shows of places of an endpoint.
func placeRows(o store.Overview, places []store.Place) []web.PlaceRow {
	rows := make([]web.PlaceRow, 0, len(places))
	for _, p := range places {
		rows = append(rows, web.PlaceRow{
			Location: p.Location,
			Status:   placeStatus(o, p),
			Since:    p.State.Since,
			Checked:  p.State.LastCheckAt,
			Took:     p.State.LastDuration,
			Failure:  p.State.Failure,
			Dropped:  !o.ProbedFrom(p.Location),
		})
	}
	return rows
}

// history is what pages show of an endpoint's past.
type history struct {
	windows   []web.Window
	latencies []web.LatencyRow // of the first window
	hours     []web.Slot       // of the last day, oldest first
	days      []web.Slot       // of the last statusDays days, oldest first
}

// history reads the roll-ups of an endpoint for every shown window, hours and days with one query each.
func (s *Server) history(ctx context.Context, e store.Endpoint) (history, error) {
	ws := make([]window, 0, len(shownWindows))
	for _, shown := range shownWindows {
		w, _ := windowOf(shown.name)
		ws = append(ws, w)
	}
	p, err := s.pastOf(ctx, e, ws...)
	if err != nil {
		return history{}, err
	}
	var h history
	for i, w := range ws {
		u, err := s.sum(p, w)
		if err != nil {
			return history{}, err
		}
		shown := web.Window{Label: shownWindows[i].label, Uptime: u.Uptime, Coverage: u.Coverage, Counts: u.Checks}
		if e.CreatedAt.After(u.From.Time) {
			shown.Since = e.CreatedAt
		}
		h.windows = append(h.windows, shown)
		switch w.name {
		case "24h":
			h.latencies, h.hours = latencyRows(u), slots(p, w, u.Gaps)
		case "90d":
			h.days = slots(p, w, u.Gaps)
		}
	}
	return h, nil
}

// slots returns the hours or days of a window, with those in which nothing was measured.
func slots(p past, w window, gaps []Stretch) []web.Slot {
	step := time.Hour
	if w.grain == store.Daily {
		step = 24 * time.Hour
	}
	counts := map[int64]store.Counts{}
	for _, r := range p.in(w) {
		counts[r.Begin.Unix()] = counts[r.Begin.Unix()].Plus(r.Counts)
	}
	var all []web.Slot
	for at := w.from(p.now); at.Before(p.now); at = at.Add(step) {
		slot := web.Slot{Begin: at, Hour: w.grain == store.Hourly, Counts: counts[at.Unix()]}
		slot.Uptime = percentOf(slot.Counts)
		if slot.Counts.Total() == 0 {
			slot.Missed = covers(gaps, at, at.Add(step))
			slot.Before = !at.Add(step).After(p.endpoint.CreatedAt)
		}
		all = append(all, slot)
	}
	return all
}

func latencyRows(u Uptime) []web.LatencyRow {
	if u.LatencyMS == nil {
		return nil
	}
	rows := []web.LatencyRow{latencyRow("", *u.LatencyMS)}
	for _, step := range u.Steps {
		rows = append(rows, latencyRow(step.Name, step.Quantiles))
	}
	return rows
}

func latencyRow(step string, q Quantiles) web.LatencyRow {
	return web.LatencyRow{Step: step, P50: q.P50, P90: q.P90, P95: q.P95, P99: q.P99}
}

// checkViews is what a page shows of checks: also where they were made, when that is not the same place for all of them.
func checkViews(checks []store.Check) []web.Check {
	several := slices.ContainsFunc(checks, func(c store.Check) bool { return c.Location != checks[0].Location })
	views := make([]web.Check, 0, len(checks))
	for _, c := range checks {
		view := web.CheckOf(c.ID, c.Result)
		if several {
			view.Location = c.Location
		}
		views = append(views, view)
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
