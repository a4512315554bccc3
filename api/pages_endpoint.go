package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
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
	v, cursor := readView(q, c.Param("slug"), time.Now()), q.text("cursor")
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	fresh := c.QueryParam("done") == "registered"
	if fresh {
		if o, err = s.awaitFirst(ctx, o); err != nil {
			return err
		}
	}
	page := endpointPage(o)
	page.Frame, page.Fresh = s.frame(c, "/"), fresh
	if fresh {
		page.Done = registeredWords(o)
	}
	if places := placesOf(o); len(places) > 1 {
		page.Places = placeRows(o, places)
	}
	for _, fill := range []func() error{
		func() error { return s.pastPage(ctx, o.Endpoint, v, &page) },
		func() error { return s.checksPage(ctx, o, v, cursor, &page) },
		func() error { return s.troublePage(ctx, o, &page) },
		func() error { return s.settingsPage(ctx, o.Endpoint, &page) },
	} {
		if err := fill(); err != nil {
			return err
		}
	}
	if page.Contracts, page.Events, err = s.promises(ctx, o.Endpoint); err != nil {
		return err
	}
	if page.Chain, err = s.chainView(ctx, o); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, page)
}

// How long the page of an endpoint that was just registered waits for its first check, and how often it looks.
const (
	firstPatience = 800 * time.Millisecond
	firstEvery    = 50 * time.Millisecond
)

// awaitFirst returns the endpoint with its first check, where that is kept soon: whoever registered it sees the result at once.
func (s *Server) awaitFirst(ctx context.Context, o store.Overview) (store.Overview, error) {
	for end := time.Now().Add(firstPatience); o.State.LastCheckAt.IsZero() && !o.Paused && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(firstEvery):
		}
		var err error
		if o, err = s.cfg.Store.Endpoint(ctx, o.Slug); err != nil {
			return o, err
		}
	}
	return o, nil
}

// registeredWords say of an endpoint that was just registered how far it is.
func registeredWords(o store.Overview) string {
	switch {
	case !o.State.LastCheckAt.IsZero():
		return "Registered and checked."
	case o.Paused:
		return "Registered. It is paused: nothing is checked."
	}
	return doneWords["registered"]
}

// endpointPage is what the page shows of an endpoint and its state.
func endpointPage(o store.Overview) web.EndpointPage {
	page := web.EndpointPage{
		Slug:    o.Slug,
		Name:    o.Name,
		URL:     AddressOf(o.Endpoint),
		Kind:    o.Kind,
		Paused:  o.Paused,
		Public:  o.Public,
		Tags:    o.Tags,
		Status:  o.Status(),
		Since:   o.State.Since,
		Failure: o.State.Failure,
		Checked: o.State.LastCheckAt,
		Took:    o.State.LastDuration,
	}
	if o.State.Unsettled() && !o.Paused {
		page.Confirming, page.Pointing, page.Unsettled = o.State.Streak.Count, store.Status(o.State.Streak.Verdict), o.State.Streak.Failure
	}
	return page
}

// checksPage fills in the list of checks.
func (s *Server) checksPage(ctx context.Context, o store.Overview, v view, cursor string, page *web.EndpointPage) error {
	filter := store.CheckFilter{EndpointID: o.ID, Verdict: v.verdict, Limit: checksPerPage, Cursor: cursor}
	if !v.hour.IsZero() {
		filter.Since, filter.Until = v.hour, v.hour.Add(time.Hour)
	}
	checks, err := s.cfg.Store.Checks(ctx, filter)
	if err != nil {
		return err
	}
	newest := v.verdict == "" && v.hour.IsZero() && cursor == ""
	if page.Last, err = s.newest(ctx, o.ID, newest, checks.Items); err != nil {
		return err
	}
	page.Verdict, page.Hour, page.Checks = v.verdict, v.hour, checkViews(checks.Items)
	if checks.Next != "" {
		page.Older = withCursor(v.link("checks", func(*view) {}), checks.Next)
	}
	if cursor != "" {
		page.Newest = v.link("checks", func(*view) {})
	}
	page.AnyHour = v.link("checks", func(v *view) { v.hour = time.Time{} })
	page.Chips = []web.RangeLink{{Label: web.Say("All"), Chosen: v.verdict == "", Link: v.link("checks", func(v *view) { v.verdict = "" })}}
	for _, verdict := range probe.Verdicts() {
		page.Chips = append(page.Chips, web.RangeLink{
			Label: web.Say(web.WordOf(store.Status(verdict))), Chosen: v.verdict == verdict,
			Link: v.link("checks", func(v *view) { v.verdict = verdict }),
		})
	}
	return nil
}

// withCursor adds the cursor of another page to an address that ends with a section.
func withCursor(address, cursor string) string {
	path, section, _ := strings.Cut(address, "#")
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	return path + join + url.Values{"cursor": {cursor}}.Encode() + "#" + section
}

// troublePage fills in what is or was wrong with an endpoint.
func (s *Server) troublePage(ctx context.Context, o store.Overview, page *web.EndpointPage) error {
	incidents, err := s.cfg.Store.Incidents(ctx, store.IncidentFilter{EndpointID: o.ID, Limit: incidentsPerPage})
	if err != nil {
		return err
	}
	page.Incidents = incidentRows(incidents.Items)
	open := slices.IndexFunc(incidents.Items, func(i store.Incident) bool {
		return i.ResolvedAt == nil && i.Kind == store.IncidentEndpoint
	})
	if open >= 0 {
		page.Open = &page.Incidents[open]
	}
	covered, err := s.maintained(ctx, o.Endpoint)
	page.Maintenance = covered[o.ID]
	return err
}

// settingsPage fills in how an endpoint is watched.
func (s *Server) settingsPage(ctx context.Context, e store.Endpoint, page *web.EndpointPage) error {
	channels, err := s.channelsOf(ctx, e)
	if err != nil {
		return err
	}
	page.Settings = web.Settings{
		Schedule: e.Schedule, Timeout: e.Timeout, DegradedOver: e.DegradedOver,
		Failures: e.Confirm.Failures, Successes: e.Confirm.Successes, After: e.Confirm.After,
		Locations: e.Locations, Quorum: e.Quorum, Channels: channels,
	}
	if len(e.DependsOn) == 0 {
		return nil
	}
	parents, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{IDs: e.DependsOn, Limit: -1})
	if err != nil {
		return err
	}
	for _, parent := range parents.Items {
		page.Settings.DependsOn = append(page.Settings.DependsOn, web.EndpointLink{Slug: parent.Slug, Name: parent.Name, Status: parent.Status()})
	}
	return nil
}

// peersAge is how old the newest block of a peer may be to be shown beside an endpoint's own, and shownPeers how many are.
const (
	peersAge   = 15 * time.Minute
	shownPeers = 25
)

// chainView is the chain of a node with its peers here; nil when it is none.
func (s *Server) chainView(ctx context.Context, o store.Overview) (*web.ChainView, error) {
	head := o.State.Memory.Head
	if o.State.Height == nil || head == nil {
		return nil, nil //nolint:nilnil // that it is no node is no failure
	}
	view := web.ChainView{ID: head.Chain, Named: probe.ChainName(o.State.Kind, head.Chain), Height: o.State.Height, HeightSince: o.State.HeightSince, Pace: o.State.Memory.Block.Average}
	var heads []probe.Head
	if key := store.HeadChain(o.State); key != "" {
		var err error
		if heads, err = s.cfg.Store.Heads(ctx, key, time.Now().Add(-peersAge)); err != nil {
			return nil, err
		}
	}
	own := slices.IndexFunc(heads, func(h probe.Head) bool { return h.Endpoint == o.Name && h.Origin == head.Origin })
	if own < 0 {
		mine := *head
		mine.Endpoint = o.Name
		heads, own = append(heads, mine), len(heads)
	}
	rows := make([]web.HeadRow, 0, len(heads))
	for i, h := range heads {
		view.Top = max(view.Top, h.Height)
		rows = append(rows, web.HeadRow{Name: h.Endpoint, Own: i == own, Height: h.Height, Hash: h.Hash, Made: h.Time, Seen: h.Seen})
	}
	slices.SortStableFunc(rows, func(a, b web.HeadRow) int {
		return cmp.Or(cmp.Compare(b.Height, a.Height), strings.Compare(a.Name, b.Name))
	})
	for i := range rows {
		rows[i].Behind = view.Top - rows[i].Height
		rows[i].Forked = slices.ContainsFunc(rows, func(other web.HeadRow) bool {
			return other.Height == rows[i].Height && other.Hash != "" && rows[i].Hash != "" && other.Hash != rows[i].Hash
		})
	}
	view.Heads = nearest(rows)
	return &view, nil
}

// nearest cuts a list of heads, but never the endpoint's own.
func nearest(rows []web.HeadRow) []web.HeadRow {
	if len(rows) <= shownPeers {
		return rows
	}
	own := slices.IndexFunc(rows, func(r web.HeadRow) bool { return r.Own })
	if own < shownPeers {
		return rows[:shownPeers]
	}
	return append(rows[:shownPeers-1:shownPeers-1], rows[own])
}

// objectiveViews is how an endpoint fares against its objectives; none when nobody has worked it out.
func (s *Server) objectiveViews(ctx context.Context, p past) ([]web.ObjectiveView, error) {
	if s.cfg.Objectives == nil || len(p.endpoint.Objectives) == 0 {
		return nil, nil
	}
	states, err := s.cfg.Objectives(ctx, p.endpoint)
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
		if view.Budget, err = budgetChart(p, o.Objective); err != nil {
			return nil, err
		}
		for _, over := range burnWindows {
			if rate, known := o.Burn[over]; known {
				view.Burns = append(view.Burns, web.Burn{Over: over, Rate: rate, Limit: burnLimits[over]})
			}
		}
		views = append(views, view)
	}
	return views, nil
}

// burnLimits are the rates above which an objective alerts: 2 % of the budget of 30 days in an hour, 5 % in six.
var burnLimits = map[string]float64{"1h": 14.4, "5m": 14.4, "6h": 6, "30m": 6}

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
	return slotsOf(p, p.in(w), w.from(p.now), p.now, w.grain, gaps)
}

// slotsOf returns the hours or days of any stretch.
func slotsOf(p past, rollups []store.Rollup, from, to time.Time, grain store.Grain, gaps []Stretch) []web.Slot {
	step := grainStep(grain)
	counts := map[int64]store.Counts{}
	for _, r := range rollups {
		counts[r.Begin.Unix()] = counts[r.Begin.Unix()].Plus(r.Counts)
	}
	var all []web.Slot
	for at := from; at.Before(to); at = at.Add(step) {
		slot := web.Slot{Begin: at, Hour: grain == store.Hourly, Counts: counts[at.Unix()]}
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

func (s *Server) pageCheck(c echo.Context) error {
	o, check, err := s.checkOf(c)
	if err != nil {
		return err
	}
	said, err := check.Transcript.Messages()
	if err != nil {
		return internal(err)
	}
	var kept *web.CheckLink
	if len(said) == 0 {
		if kept, err = s.keptGood(c.Request().Context(), o, check.Location); err != nil {
			return err
		}
	}
	return s.render(c, http.StatusOK, web.CheckPage{
		Frame:     s.frame(c, "/"),
		Slug:      o.Slug,
		Name:      o.Name,
		URL:       AddressOf(o.Endpoint),
		Location:  check.Location,
		Scheduled: check.ScheduledAt,
		Check:     web.CheckOf(check.ID, check.Result),
		Said:      said,
		Kept:      kept,
	})
}

// nearKept is how many good checks are looked at for the one whose conversation is kept. They may have been made at other places.
const nearKept = 50

// keptGood returns where the good check from a location is whose conversation is kept; nil when there is none.
func (s *Server) keptGood(ctx context.Context, o store.Overview, location string) (*web.CheckLink, error) {
	place := slices.IndexFunc(o.Places, func(p store.Place) bool { return p.Location == location })
	if place < 0 || o.Places[place].State.TranscriptAt.IsZero() {
		return nil, nil //nolint:nilnil // that there is none is no failure
	}
	// A check starts when it is due, or later.
	at := store.Stamp(o.Places[place].State.TranscriptAt)
	good, err := s.cfg.Store.Checks(ctx, store.CheckFilter{EndpointID: o.ID, Verdict: probe.Up, Until: at.Add(time.Microsecond), Limit: nearKept})
	if err != nil {
		return nil, err
	}
	for _, c := range good.Items {
		if c.Location == location && store.Stamp(c.Result.StartedAt).Equal(at) {
			return &web.CheckLink{Path: "/endpoints/" + o.Slug + "/checks/" + c.ID, At: c.Result.StartedAt}, nil
		}
	}
	return nil, nil //nolint:nilnil // its check is pruned, and so is what was said
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
