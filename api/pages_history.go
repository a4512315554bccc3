package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// view is which part of an endpoint's past its page is asked for, as it stands in the page's address.
type view struct {
	path    string    // of the endpoint's page
	day     time.Time // whose hours are shown; zero: the last 24
	hour    time.Time // whose checks are listed; zero: the newest
	verdict probe.Verdict
	window  string    // that the chart shows; empty with from and to
	from    time.Time // or what was chosen in it
	to      time.Time
	phases  bool // the chart is divided by phase, not by step
}

// The texts of moments in the address of a page, in UTC.
const (
	dayText  = "2006-01-02"
	hourText = "2006-01-02T15"
)

// chartWindows are those that a chart can show.
var chartWindows = []string{"24h", "7d", "30d", "90d", "365d"}

// readView reads a view from the query of a page.
func readView(q *query, slug string, now time.Time) view {
	v := view{path: "/endpoints/" + slug, verdict: choice(q, "verdict", probe.Verdicts())}
	v.day, v.hour = q.moment("day", dayText), q.moment("hour", hourText)
	v.from, v.to = q.moment("from", time.RFC3339, "2006-01-02T15:04"), q.moment("to", time.RFC3339, "2006-01-02T15:04")
	v.window = choice(q, "range", chartWindows)
	v.phases = choice(q, "by", []string{"step", "phase"}) == "phase"
	switch {
	case v.window != "":
		v.from, v.to = time.Time{}, time.Time{}
	case v.from.IsZero() && v.to.IsZero():
		v.window = "24h"
	default:
		v.to = earliest(v.to, now)
		if v.to.IsZero() {
			v.to = now
		}
		if v.from.IsZero() || !v.from.Before(v.to) {
			q.mistake("from", "must be earlier than to")
		}
		if v.from.Before(now.Add(-store.HoursKept)) {
			q.mistake("from", "is longer ago than anything is charted")
		}
	}
	if !v.hour.IsZero() && v.day.IsZero() && v.hour.Before(now.Add(-24*time.Hour)) {
		v.day = store.DayOf(v.hour)
	}
	return v
}

// moment reads a moment of a page's address in one of some forms.
func (q *query) moment(name string, forms ...string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	for _, form := range forms {
		if t, err := time.Parse(form, text); err == nil && t.Year() >= 1970 && t.Year() < 3000 {
			return t.UTC()
		}
	}
	q.mistake(name, "must be a time like %s", time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC).Format(forms[0]))
	return time.Time{}
}

// link returns the address of the same page with something changed, at one of its sections.
func (v view) link(section string, change func(*view)) string {
	change(&v)
	parameters := map[string]string{"verdict": string(v.verdict), "range": v.window}
	if v.window == "24h" {
		delete(parameters, "range") // it is what is shown anyway
	}
	put := func(name string, t time.Time, form string) {
		if !t.IsZero() {
			parameters[name] = t.Format(form)
		}
	}
	put("day", v.day, dayText)
	put("hour", v.hour, hourText)
	if v.window == "" {
		put("from", v.from, time.RFC3339)
		put("to", v.to, time.RFC3339)
	}
	if v.phases {
		parameters["by"] = "phase"
	}
	return listPath(v.path, parameters) + "#" + section
}

// hourly is how long a stretch may be for a chart of hours; a longer one is charted by days.
const hourly = 14 * 24 * time.Hour

// stretch is what the chart shows: from the beginning of an hour or day to the end of another, or until now.
func (v view) stretch(now time.Time) (from, to time.Time, grain store.Grain) {
	if w, known := windowOf(v.window); known {
		return w.from(now), now, w.grain
	}
	grain = store.Hourly
	if v.to.Sub(v.from) > hourly {
		grain = store.Daily
	}
	step := grainStep(grain)
	return grain.Begin(v.from), earliest(now, grain.Begin(v.to.Add(step-1))), grain
}

func grainStep(grain store.Grain) time.Duration {
	if grain == store.Daily {
		return 24 * time.Hour
	}
	return time.Hour
}

// pageWindows are the windows whose uptime the page of an endpoint shows, with the words for them.
var pageWindows = append(slices.Clone(shownWindows), struct{ name, label string }{"365d", "365 days"})

// pastPage fills in what the page of an endpoint shows of its past. It reads no checks but for the chart of phases.
func (s *Server) pastPage(ctx context.Context, e store.Endpoint, v view, page *web.EndpointPage) error {
	ws := make([]window, 0, len(pageWindows))
	for _, shown := range pageWindows {
		w, _ := windowOf(shown.name)
		ws = append(ws, w)
	}
	p, err := s.pastOf(ctx, e, ws...)
	if err != nil {
		return err
	}
	for i, w := range ws {
		page.Windows = append(page.Windows, s.windowView(p, w, pageWindows[i].label))
	}
	from, to, grain := v.stretch(p.now)
	since := earliest(from, firstDay(p.now))
	happened, err := s.read.Incidents(ctx, store.IncidentFilter{EndpointID: e.ID, Since: since, Limit: store.MaxLimit})
	if err != nil {
		return err
	}
	if page.History, err = s.historyView(ctx, p, v, happened.Items); err != nil {
		return err
	}
	page.Range = rangeView(v, from, to, grain)
	if page.Latency, page.Latencies, err = s.latencyChart(ctx, p, from, to, grain); err != nil {
		return err
	}
	page.Latency.Base = v.link("latency", func(v *view) { v.window = "24h" })
	if page.Latency.Marks, err = s.marks(ctx, e, happened.Items, from, to); err != nil {
		return err
	}
	if page.Objectives, err = s.objectiveViews(ctx, p); err != nil || !v.phases {
		return err
	}
	page.Phases, err = s.phaseChart(ctx, e)
	return err
}

// windowView is the uptime of a window without its latencies, which take far longer to add up.
func (s *Server) windowView(p past, w window, label string) web.Window {
	shown := web.Window{Label: label}
	for _, r := range p.in(w) {
		shown.Counts = shown.Counts.Plus(r.Counts)
	}
	if percent, measured := shown.Counts.Uptime(); measured {
		shown.Uptime = new(floor3(percent))
	}
	shown.Coverage = s.survey(p, w).coverage()
	if p.endpoint.CreatedAt.After(w.from(p.now)) {
		shown.Since = p.endpoint.CreatedAt
	}
	return shown
}

// historyView is the days of an endpoint and the hours of one of them.
func (s *Server) historyView(ctx context.Context, p past, v view, incidents []store.Incident) (web.History, error) {
	w, _ := windowOf("90d")
	days := slots(p, w, s.survey(p, w).gaps())
	for i := range days {
		day := days[i].Begin
		days[i].Chosen = day.Equal(v.day)
		if !days[i].Before {
			days[i].Link = v.link("hours", func(v *view) { v.day, v.hour = day, time.Time{} })
		}
	}
	h := web.History{Days: countIncidents(days, incidents, p.now), Day: v.day}
	var err error
	if h.Hours, err = s.hoursOf(ctx, p, v); err != nil {
		return h, err
	}
	h.Hours = countIncidents(h.Hours, incidents, p.now)
	for i := range h.Hours {
		hour := h.Hours[i].Begin
		h.Hours[i].Chosen = hour.Equal(v.hour)
		if h.Hours[i].Counts.Total() > 0 {
			h.Hours[i].Link = v.link("checks", func(v *view) { v.hour = hour })
		}
	}
	if v.day.IsZero() {
		return h, nil
	}
	to := func(days int) string {
		return v.link("hours", func(v *view) { v.day, v.hour = v.day.AddDate(0, 0, days), time.Time{} })
	}
	if !v.day.Before(store.DayOf(p.endpoint.CreatedAt).AddDate(0, 0, 1)) {
		h.Earlier = to(-1)
	}
	if v.day.Before(store.DayOf(p.now)) {
		h.Later = to(1)
	}
	h.Close = v.link("hours", func(v *view) { v.day, v.hour = time.Time{}, time.Time{} })
	return h, nil
}

// hoursOf returns the hours of the day that was chosen, or the last 24.
func (s *Server) hoursOf(ctx context.Context, p past, v view) ([]web.Slot, error) {
	if v.day.IsZero() {
		w, _ := windowOf("24h")
		return slots(p, w, s.survey(p, w).gaps()), nil
	}
	end := earliest(p.now, v.day.Add(24*time.Hour))
	if !end.After(v.day) {
		return nil, nil
	}
	rollups, err := s.read.Uptime(ctx, p.endpoint.ID, store.Hourly, v.day, end)
	if err != nil {
		return nil, err
	}
	at := past{endpoint: p.endpoint, now: p.now}
	return slotsOf(at, rollups, v.day, end, store.Hourly, s.surveyOf(at, rollups, v.day, end, store.Hourly).gaps()), nil
}

// countIncidents notes in how many incidents an endpoint was in each slot.
func countIncidents(slots []web.Slot, incidents []store.Incident, now time.Time) []web.Slot {
	for i := range slots {
		begin, step := slots[i].Begin, 24*time.Hour
		if slots[i].Hour {
			step = time.Hour
		}
		for _, in := range incidents {
			if in.StartedAt.Before(begin.Add(step)) && endOf(in, now).After(begin) {
				slots[i].Incidents++
			}
		}
	}
	return slots
}

// endOf is when an incident ended, or now while it is open.
func endOf(i store.Incident, now time.Time) time.Time {
	if i.ResolvedAt != nil {
		return *i.ResolvedAt
	}
	return now
}

// rangeView says what the chart shows and leads to what else it can.
func rangeView(v view, from, to time.Time, grain store.Grain) web.RangeView {
	r := web.RangeView{
		From: from, To: to, Phases: v.phases, Zoomed: v.window == "",
		Steps: v.link("latency", func(v *view) { v.phases = false }),
		Chart: v.link("latency", func(v *view) { v.phases = true }),
		Hours: grain == store.Hourly,
	}
	for _, name := range chartWindows {
		w, _ := windowOf(name)
		r.Links = append(r.Links, web.RangeLink{
			Name: name, Label: rangeLabel(w), Chosen: v.window == name,
			Link: v.link("latency", func(v *view) { v.window = name }),
		})
	}
	return r
}

func rangeLabel(w window) web.Said {
	if w.length <= 24*time.Hour {
		return web.Say("24 hours")
	}
	return web.Say("%d days", int(w.length/(24*time.Hour)))
}

// latencyChart draws the latencies of a stretch, and adds them up.
func (s *Server) latencyChart(ctx context.Context, p past, from, to time.Time, grain store.Grain) (web.LatencyChart, []web.LatencyRow, error) {
	chart := web.LatencyChart{Hourly: grain == store.Hourly}
	rollups, err := s.stretchOf(ctx, p, from, to, grain)
	if err != nil {
		return chart, nil, err
	}
	sums, total := map[int64]*store.Rollup{}, store.Rollup{}
	for _, r := range rollups {
		at := r.Begin.Unix()
		if sums[at] == nil {
			sums[at] = &store.Rollup{}
		}
		if err := sums[at].Merge(r); err != nil {
			return chart, nil, err
		}
	}
	for _, sum := range sums {
		if err := total.Merge(*sum); err != nil {
			return chart, nil, err
		}
	}
	steps := stepQuantiles(total.Latencies)
	for _, step := range steps[:min(len(steps), web.MaxSeries)] {
		chart.Steps = append(chart.Steps, step.Name)
	}
	gaps := s.surveyOf(p, rollups, from, to, grain).gaps()
	for at := from; at.Before(to); at = at.Add(grainStep(grain)) {
		chart.Buckets = append(chart.Buckets, bucketOf(at, sums[at.Unix()], chart.Steps, covers(gaps, at, at.Add(grainStep(grain)))))
	}
	all := quantiles(total.Latencies, "")
	if all == nil {
		return chart, nil, nil
	}
	return chart, latencyRows(Uptime{LatencyMS: all, Steps: steps}), nil
}

// stretchOf reads the roll-ups of a stretch, unless they were read already.
func (s *Server) stretchOf(ctx context.Context, p past, from, to time.Time, grain store.Grain) ([]store.Rollup, error) {
	read := p.rollups[grain]
	if begin := p.begins[grain]; begin.IsZero() || from.Before(begin) {
		return s.read.Uptime(ctx, p.endpoint.ID, grain, from, to)
	}
	within := make([]store.Rollup, 0, len(read))
	for _, r := range read {
		if !r.Begin.Before(from) && r.Begin.Before(to) {
			within = append(within, r)
		}
	}
	return within, nil
}

func bucketOf(at time.Time, sum *store.Rollup, steps []string, missed bool) web.Bucket {
	b := web.Bucket{Begin: at}
	if sum == nil {
		b.Missed = missed
		return b
	}
	b.Counts = sum.Counts
	b.Missed = missed && sum.Counts.Total() == 0
	q := quantiles(sum.Latencies, "")
	if q == nil {
		return b
	}
	b.Whole = &web.Percentiles{P50: q.P50, P90: q.P90, P95: q.P95, P99: q.P99}
	for _, step := range steps {
		median := 0.0
		if m := sum.Latencies.Quantiles(step, 0.5); m != nil {
			median = m[0]
		}
		b.Steps = append(b.Steps, median)
	}
	return b
}

// maxMarks bounds the marks of each kind on a chart: the latest are shown.
const maxMarks = 100

// marks are what happened in the time of a chart: incidents, maintenance and changes of the tool list.
func (s *Server) marks(ctx context.Context, e store.Endpoint, incidents []store.Incident, from, to time.Time) ([]web.Mark, error) {
	var marks []web.Mark
	for _, i := range incidents[:min(len(incidents), maxMarks)] {
		row := incidentRow(i)
		end := endOf(i, to)
		if !i.StartedAt.Before(to) || end.Before(from) {
			continue
		}
		marks = append(marks, web.Mark{
			Kind: "incident", Begin: i.StartedAt, End: end, Open: i.ResolvedAt == nil, Link: "/incidents/" + i.ID,
			Said: row.Said(to), Tone: web.ToneOf(cmp.Or(i.Worst, i.Severity)),
		})
	}
	planned, err := s.read.Maintenances(ctx, from)
	if err != nil {
		return nil, err
	}
	stretches := 0
	for _, m := range planned {
		if !m.Covers(e) {
			continue
		}
		for _, w := range s.windows(m, from, to) {
			if stretches++; stretches <= maxMarks {
				marks = append(marks, web.Mark{Kind: "maintenance", Begin: w[0], End: w[1], Link: "/maintenance/" + m.ID, Title: m.Title})
			}
		}
	}
	events, err := s.cfg.Store.Events(ctx, store.EventFilter{EndpointID: e.ID, Limit: maxMarks})
	if err != nil {
		return nil, err
	}
	for _, ev := range events.Items {
		if ev.Kind == store.EventContractChanged && !ev.At.Before(from) && ev.At.Before(to) {
			marks = append(marks, web.Mark{
				Kind: "contract", Begin: ev.At, End: ev.At, Link: "/endpoints/" + e.Slug + "/contracts", Title: ev.Title, Tone: ev.Severity,
			})
		}
	}
	return marks, nil
}

// phaseChecks is how many checks the chart of phases shows.
const phaseChecks = 100

// phaseChart draws the newest checks by phase: roll-ups do not keep phases.
func (s *Server) phaseChart(ctx context.Context, e store.Endpoint) (*web.PhaseChart, error) {
	newest, err := s.cfg.Store.Checks(ctx, store.CheckFilter{EndpointID: e.ID, Limit: phaseChecks})
	if err != nil {
		return nil, err
	}
	slices.Reverse(newest.Items)
	return &web.PhaseChart{Slug: e.Slug, Checks: checkViews(newest.Items)}, nil
}

// budgetChart shows how the error budget of an objective went, day by day; nothing where that would be a single day.
func budgetChart(p past, o store.Objective) (web.BudgetChart, error) {
	w := window{grain: store.Daily, length: time.Duration(o.Days) * 24 * time.Hour}
	good, bad := map[int64]int{}, map[int64]int{}
	all := 0
	for _, r := range p.in(w) {
		answered, at := r.Counts.Up+r.Counts.Degraded, r.Begin.Unix()
		well := answered
		if o.Under > 0 {
			var read store.Rollup // what is packed is read once
			if err := read.Merge(r); err != nil {
				return nil, err
			}
			well = min(read.Latencies.Under("", o.Under), answered)
		}
		good[at] += well
		bad[at] += answered - well + r.Counts.Down
		all += answered + r.Counts.Down
	}
	allowed := float64(all) * (100 - o.Target) / 100
	if allowed <= 0 || len(good) < 2 {
		return nil, nil
	}
	var chart web.BudgetChart
	spent := 0
	for at := w.from(p.now); at.Before(p.now); at = at.AddDate(0, 0, 1) {
		spent += bad[at.Unix()]
		chart = append(chart, web.BudgetPoint{Day: at, Left: 100 * (1 - float64(spent)/allowed)})
	}
	return chart, nil
}
