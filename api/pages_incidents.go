package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pageIncidents(c echo.Context) error {
	q := queryOf(c)
	cursor := q.text("cursor")
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	page := web.IncidentsPage{Frame: s.frame(c, "/incidents")}
	if cursor == "" {
		open, err := s.cfg.Store.Incidents(ctx, store.IncidentFilter{Status: store.IncidentOpen, Limit: store.MaxLimit})
		if err != nil {
			return err
		}
		slices.SortStableFunc(open.Items, worstFirst)
		page.Open = incidentRows(open.Items)
	} else {
		page.First = "/incidents"
	}
	resolved, err := s.cfg.Store.Incidents(ctx, store.IncidentFilter{Status: store.IncidentResolved, Cursor: cursor})
	if err != nil {
		return err
	}
	page.Resolved = incidentRows(resolved.Items)
	if resolved.Next != "" {
		page.Next = listPath("/incidents", map[string]string{"cursor": resolved.Next})
	}
	return s.render(c, http.StatusOK, page)
}

func worstFirst(a, b store.Incident) int {
	switch {
	case store.Graver(a.Severity, b.Severity):
		return -1
	case store.Graver(b.Severity, a.Severity):
		return 1
	}
	return 0
}

func incidentRows(incidents []store.Incident) []web.IncidentRow {
	rows := make([]web.IncidentRow, 0, len(incidents))
	for _, i := range incidents {
		rows = append(rows, incidentRow(i))
	}
	return rows
}

func incidentRow(i store.Incident) web.IncidentRow {
	row := web.IncidentRow{
		ID:         i.ID,
		Kind:       i.Kind,
		Slug:       i.Slug,
		Name:       i.Name,
		Title:      i.Title,
		Severity:   i.Severity,
		StartedAt:  i.StartedAt,
		OpenedAt:   i.OpenedAt,
		ResolvedAt: i.ResolvedAt,
		Resolution: i.Resolution,
		Cause:      i.Cause,
		Flapping:   i.Flapping,
	}
	if i.Kind == store.IncidentObjective {
		_, row.Objective, _ = strings.Cut(i.Subject, "/objective/")
	}
	if i.AcknowledgedAt != nil {
		row.Acknowledged = i.AcknowledgedBy
	}
	if i.Snoozed(time.Now()) {
		row.SnoozedUntil = i.SnoozedUntil
	}
	return row
}

func (s *Server) pageIncident(c echo.Context) error {
	return s.incidentPage(c, http.StatusOK, web.IncidentPage{})
}

// incidentPage shows an incident, with what somebody was about to do on page.
func (s *Server) incidentPage(c echo.Context, status int, page web.IncidentPage) error {
	ctx := c.Request().Context()
	i, err := s.cfg.Store.Incident(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	page.Frame, page.Incident = s.frame(c, "/incidents"), incidentRow(i)
	page.Worst, page.Public, page.SeenFrom, page.Ack = i.Worst, isShown(i), i.SeenFrom, i.AcknowledgedAt
	if page.Timeline, err = s.timeline(ctx, i); err != nil {
		return err
	}
	if page.Endpoints, err = s.endpointsIn(ctx, i); err != nil {
		return err
	}
	if page.Opening, err = s.opening(ctx, i); err != nil {
		return err
	}
	if i.EndpointID == "" {
		return s.render(c, status, page)
	}
	if page.Dependents, err = s.dependents(ctx, i); err != nil {
		return err
	}
	checks, err := s.checksAround(ctx, i)
	if err != nil {
		return err
	}
	page.Checks = checkViews(checks)
	return s.render(c, status, page)
}

// endpointsIn names the endpoints in an incident that may be about several.
func (s *Server) endpointsIn(ctx context.Context, i store.Incident) ([]web.EndpointLink, error) {
	if len(i.Endpoints) == 0 || i.EndpointID != "" && i.Kind != store.IncidentManual {
		return nil, nil
	}
	return s.linksTo(ctx, i.Endpoints)
}

func endpointLinks(endpoints []store.Overview) []web.EndpointLink {
	links := make([]web.EndpointLink, 0, len(endpoints))
	for _, o := range endpoints {
		links = append(links, web.EndpointLink{Slug: o.Slug, Name: o.Name, Status: o.Status()})
	}
	return links
}

// dependents names the endpoints whose own alerts wait while the one of an open incident is down, and not just now and then.
func (s *Server) dependents(ctx context.Context, i store.Incident) ([]web.EndpointLink, error) {
	if i.ResolvedAt != nil || i.Kind != store.IncidentEndpoint || i.Severity != store.StatusDown || i.Flapping {
		return nil, nil
	}
	page, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{Behind: i.EndpointID, Limit: store.MaxLimit})
	return endpointLinks(page.Items), err
}

// opening is the check that opened an incident, with what was said; nil when it is not kept any more.
func (s *Server) opening(ctx context.Context, i store.Incident) (*web.Opening, error) {
	if i.CheckID == "" || i.EndpointID == "" {
		return nil, nil //nolint:nilnil // that there is none is no failure
	}
	check, err := s.cfg.Store.Check(ctx, i.CheckID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // likewise
	}
	if err != nil {
		return nil, err
	}
	said, err := check.Transcript.Messages()
	if err != nil {
		return nil, internal(err)
	}
	view := web.CheckOf(check.ID, check.Result)
	view.Location = check.Location
	return &web.Opening{Check: view, Said: said}, nil
}

// timeline is what happened to an incident, oldest first. How it began and ended is told also where nobody noted it down.
func (s *Server) timeline(ctx context.Context, i store.Incident) ([]web.TimelineRow, error) {
	entries, err := s.cfg.Store.Timeline(ctx, i.ID)
	if err != nil {
		return nil, err
	}
	noted := func(kind store.EntryKind) bool {
		return slices.ContainsFunc(entries, func(e store.Entry) bool { return e.Kind == kind })
	}
	if !noted(store.EntryOpened) {
		entries = slices.Insert(entries, 0, store.Entry{At: i.OpenedAt, Kind: store.EntryOpened, Severity: i.Severity})
	}
	if i.ResolvedAt != nil && !noted(store.EntryResolved) {
		entries = append(entries, store.Entry{At: *i.ResolvedAt, Kind: store.EntryResolved})
	}
	var rows []web.TimelineRow
	if i.CheckID != "" && i.StartedAt.Before(i.OpenedAt) && i.Kind == store.IncidentEndpoint {
		rows = append(rows, web.TimelineRow{Kind: web.EntryBegan, At: i.StartedAt, Severity: i.Worst, Sub: web.Say("the first check that failed")})
	}
	for _, e := range entries {
		row := entryRow(e)
		row.Incident = i.Kind
		switch {
		case e.Kind == store.EntryOpened && len(rows) == 1 && rows[0].Kind == web.EntryBegan:
			row.Sub = web.Say("%s later, by enough failed checks in a row", web.Duration(i.OpenedAt.Sub(i.StartedAt)))
		case e.Kind == store.EntryResolved && i.ResolvedAt != nil:
			row.How, row.Sub = i.Resolution, web.Say("after %s", web.Duration(i.ResolvedAt.Sub(i.StartedAt)))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func entryRow(e store.Entry) web.TimelineRow {
	row := web.TimelineRow{
		Kind: e.Kind, At: e.At, Author: e.Author, Text: e.Text, Public: e.Public, Severity: e.Severity, Cause: e.Cause,
	}
	if e.Kind == store.EntrySent || e.Kind == store.EntryFailed {
		row.Message, row.Channel = noticeWords(store.NoticeKind(e.NoticeKind)), e.ChannelName
		if strings.HasPrefix(e.ChannelID, "ch_") {
			row.ChannelID = e.ChannelID
		}
	}
	return row
}

// noticeWords says what a notice tells, in a word or two of a closed list.
func noticeWords(k store.NoticeKind) string {
	switch k {
	case store.NoticeOpened:
		return "opening"
	case store.NoticeUpdated:
		return "update"
	case store.NoticeReminder:
		return "reminder"
	case store.NoticeEscalation:
		return "escalation"
	case store.NoticeFlapping:
		return "it comes and goes"
	case store.NoticeCalmed:
		return "it has calmed"
	case store.NoticeResolved:
		return "resolution"
	case store.NoticeContract:
		return "change of the tool list"
	case store.NoticeService:
		return "word about Rollcall itself"
	}
	return string(k)
}

// How much of what was around an incident its page shows.
const (
	checksBefore = 5 // up to the one that confirmed it
	checksAfter  = 3 // once it was over, or the latest
)

// checksAround returns the checks that tell the story of an incident, newest first: how it began, with what was before,
// and how it ended or stands.
func (s *Server) checksAround(ctx context.Context, i store.Incident) ([]store.Check, error) {
	beginning := store.CheckFilter{EndpointID: i.EndpointID, Until: i.OpenedAt.Add(time.Millisecond), Limit: checksBefore}
	end := store.CheckFilter{EndpointID: i.EndpointID, Limit: checksAfter}
	if i.ResolvedAt != nil {
		end.Until = i.ResolvedAt.Add(time.Millisecond)
	}
	filters := []store.CheckFilter{end, beginning}
	if i.ResolvedAt != nil {
		after, err := s.afterwards(ctx, i)
		if err != nil {
			return nil, err
		}
		filters = slices.Insert(filters, 0, after)
	}
	var checks []store.Check
	for n, f := range filters {
		page, err := s.cfg.Store.Checks(ctx, f)
		if err != nil {
			return nil, err
		}
		if n == 0 && len(filters) == 3 { // those right after the end, and not the latest
			page.Items = page.Items[max(0, len(page.Items)-checksAfter):]
		}
		for _, c := range page.Items {
			if !slices.ContainsFunc(checks, func(seen store.Check) bool { return seen.ID == c.ID }) {
				checks = append(checks, c)
			}
		}
	}
	return checks, nil
}

// afterwards selects the checks that followed on the end of an incident: of a few times the schedule's period.
func (s *Server) afterwards(ctx context.Context, i store.Incident) (store.CheckFilter, error) {
	every := time.Hour
	o, err := s.cfg.Store.Endpoint(ctx, i.Slug)
	if err != nil {
		return store.CheckFilter{}, err
	}
	if period, err := s.cfg.Period(o.Schedule); err == nil {
		every = period
	}
	since := i.ResolvedAt.Add(time.Millisecond)
	return store.CheckFilter{EndpointID: i.EndpointID, Since: since, Until: since.Add(checksAfter * every), Limit: 50}, nil
}

// doIncident does what somebody pressed on the page of an incident.
func (s *Server) doIncident(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	typed := web.ActForm{Text: strings.ReplaceAll(f.text("text"), "\r\n", "\n"), Public: f.ticked("public"), For: f.text("for")}
	in := actInput{Act: f.text("action"), Text: typed.Text, Public: typed.Public && typed.Text != ""}
	if in.Act == string(store.ActSnooze) {
		in.choose(typed.For, time.Now())
		if in.Until != nil {
			typed.For = "morning" // which stays chosen
		}
	}
	i, err := s.act(c.Request().Context(), c.Param("id"), in, s.caller(c))
	if err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError || p.Status == http.StatusNotFound {
			return err
		}
		return s.incidentPage(c, p.Status, web.IncidentPage{Form: typed, Problems: problemsOf(p)})
	}
	return seeOther(c, "/incidents/"+i.ID, in.Act)
}

// choose reads what was chosen of web.IncidentPage.SnoozeFor. In place of the morning there may be the moment of the reader's own, which
// a browser that runs scripts works out.
func (in *actInput) choose(choice string, now time.Time) {
	in.Chosen = true
	at, err := time.Parse(time.RFC3339, choice)
	if choice == "morning" {
		at, err = nextMorning(now), nil
	}
	if err == nil {
		in.Until = &at
		return
	}
	d, err := time.ParseDuration(choice)
	if err != nil {
		in.Mistakes = append(in.Mistakes, probe.Problem{Field: "for", Message: "must be one of those that can be chosen"})
		return
	}
	in.For = &d
}

// nextMorning is the next nine o'clock in UTC.
func nextMorning(now time.Time) time.Time {
	now = now.UTC()
	nine := time.Date(now.Year(), now.Month(), now.Day(), 9, 0, 0, 0, time.UTC)
	if !nine.After(now) {
		nine = nine.AddDate(0, 0, 1)
	}
	return nine
}

func (s *Server) pageRaise(c echo.Context) error {
	return s.raisePage(c, http.StatusOK, web.RaisePage{Form: web.RaiseForm{Severity: string(store.StatusDegraded)}}, nil)
}

func (s *Server) raisePage(c echo.Context, status int, page web.RaisePage, chosen []string) error {
	var err error
	page.Frame = s.frame(c, "/incidents")
	page.Picker, err = s.picker(c.Request().Context(), "endpoints", "Endpoints", chosen, "", page.Problems)
	if err != nil {
		return err
	}
	return s.render(c, status, page)
}

// doRaise opens an incident by hand.
func (s *Server) doRaise(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	page := web.RaisePage{Form: web.RaiseForm{
		Title: f.text("title"), Severity: f.text("severity"), Text: strings.ReplaceAll(f.text("text"), "\r\n", "\n"), StartedAt: f.text("started_at"),
	}}
	chosen := f.picked("endpoints")
	a := announcement{Title: page.Form.Title, Severity: store.Status(page.Form.Severity), Text: page.Form.Text, Endpoints: chosen}
	a.StartedAt, a.Mistakes = momentOf("started_at", page.Form.StartedAt, a.Mistakes)
	i, err := s.announce(c.Request().Context(), a, s.caller(c))
	if err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		page.Problems = problemsOf(p)
		return s.raisePage(c, p.Status, page, chosen)
	}
	return seeOther(c, "/incidents/"+i.ID, "opened")
}

// momentForm is how a datetime-local control writes a moment. All of ours are in UTC, and say so.
const momentForm = "2006-01-02T15:04"

// momentOf reads what was typed into such a control; the zero time for nothing.
func momentOf(field, text string, mistakes []probe.Problem) (time.Time, []probe.Problem) {
	if text == "" {
		return time.Time{}, mistakes
	}
	for _, form := range []string{momentForm, momentForm + ":05", "2006-01-02 15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			return t, mistakes
		}
	}
	return time.Time{}, append(mistakes, probe.Problem{Field: field, Message: "must be a date and a time like 2026-11-21 09:30"})
}

// momentText writes a moment as momentOf reads it; empty for the zero time.
func momentText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(momentForm)
}
