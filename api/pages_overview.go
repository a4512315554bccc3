package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// The overview is made of three questions, however many endpoints there are:
//
//	Index ─► tallies, order, groups, which ones this page shows ─┬─► Endpoints, of those
//	                                                             └─► Rollups, of those: bars, sparklines, uptime

// Bounds of a page. Somebody with more endpoints in trouble than maxTroubled narrows the list by their status.
const (
	maxTroubled = 25
	perPage     = store.DefaultLimit
	maxPage     = 1_000_000
	shownHours  = 24
	maxTags     = 100 // that are offered to filter by
)

func (s *Server) pageOverview(c echo.Context) error {
	filter, page, err := readOverview(c)
	if err != nil {
		return err
	}
	return s.overview(c, http.StatusOK, web.OverviewPage{Filter: filter, Page: page})
}

// readOverview reads what the overview is to show.
func readOverview(c echo.Context) (web.OverviewFilter, int, error) {
	q := queryOf(c)
	f := web.OverviewFilter{
		Query:    q.text("q"),
		Status:   string(choice(q, "status", store.Statuses())),
		Tag:      q.text("tag"),
		Kind:     string(choice(q, "kind", probe.Kinds())),
		Location: q.text("location"),
		Order:    choice(q, "sort", web.Orders()),
		Group:    choice(q, "group", []string{web.GroupTag, web.GroupKind}),
	}
	page := 1
	if text := q.text("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			q.mistake("page", "must be a whole number from 1 on")
		}
		page = n
	}
	return f, page, pageEnd(q)
}

// overview shows the list. Of page, Filter and Page say which part of it.
func (s *Server) overview(c echo.Context, status int, page web.OverviewPage) error {
	ctx, f := c.Request().Context(), page.Filter
	checks := f.Order == web.OrderLatency || f.Order == web.OrderChecked || f.Group == web.GroupKind
	lines, err := s.index(ctx, store.EndpointFilter{
		Status: store.Status(f.Status), Tag: f.Tag, Query: f.Query, Kind: probe.Kind(f.Kind), Location: f.Location,
	}, checks)
	if err != nil {
		return err
	}
	page.Frame, page.None = s.frame(c, "/"), len(lines) == 0 && !f.Active()
	page.Tallies = talliesOf(lines)
	if page.Choices, err = s.choices.of(ctx, s.cfg.Store, lines, !f.Active()); err != nil {
		return err
	}
	troubled, rest := apart(lines, f)
	if err := s.order(ctx, rest, f); err != nil {
		return err
	}
	page.Pages = max(1, (len(rest)+perPage-1)/perPage)
	page.Page = min(page.Page, page.Pages)
	page.Unshown = max(0, len(troubled)-maxTroubled)
	troubled = troubled[:min(len(troubled), maxTroubled)]
	if page.Page > 1 {
		troubled, page.Unshown = nil, 0
	}
	groups := tallyGroups(rest, f)
	rest = rest[min(len(rest), (page.Page-1)*perPage):min(len(rest), page.Page*perPage)]
	rows, err := s.rows(ctx, slices.Concat(troubled, rest))
	if err != nil {
		return err
	}
	page.Attention, page.Rest = rowsOf(troubled, rows), rowsOf(rest, rows)
	page.Groups = groupRows(rest, rows, groups, f)
	return s.render(c, status, page)
}

// keepLines is for how long the index is kept, at most.
const keepLines = time.Second

// index returns what store.Store.Index does, a moment old at most, and no older than what a viewer was last told of. Callers change
// nothing in it.
func (s *Server) index(ctx context.Context, f store.EndpointFilter, checks bool) ([]store.Line, error) {
	return keep(ctx, s.lines, s.asOf(fmt.Sprintf("%t %+v", checks, f)), func(ctx context.Context) ([]store.Line, error) {
		return s.cfg.Store.Index(ctx, f, checks)
	})
}

func talliesOf(lines []store.Line) map[store.Status]int {
	tallies := make(map[store.Status]int, len(store.Statuses()))
	for _, l := range lines {
		tallies[l.Status]++
	}
	return tallies
}

// choices are what there is to filter by. They are found out anew by whoever asks for everything, for whom it costs little, and by
// others when they are older than choicesFor.
type choices struct {
	mu    sync.Mutex
	at    time.Time
	known web.OverviewChoices
}

const choicesFor = time.Minute

// of returns the choices. lines are all endpoints, when told so.
func (k *choices) of(ctx context.Context, db store.Store, lines []store.Line, all bool) (web.OverviewChoices, error) {
	k.mu.Lock() // whoever comes meanwhile waits for the same answer
	defer k.mu.Unlock()
	fresh := time.Since(k.at) < choicesFor
	if fresh && !all {
		return k.known, nil
	}
	if !all {
		var err error
		if lines, err = db.Index(ctx, store.EndpointFilter{}, false); err != nil {
			return k.known, err
		}
	}
	k.known.Tags = frequentTags(lines)
	if fresh {
		return k.known, nil
	}
	locations, err := db.Locations(ctx)
	if err != nil {
		return k.known, err
	}
	k.at, k.known.Locations = time.Now(), nil
	for _, l := range locations {
		k.known.Locations = append(k.known.Locations, l.Name)
	}
	return k.known, nil
}

// frequentTags returns the most frequent tags, by name.
func frequentTags(lines []store.Line) []string {
	count := map[string]int{}
	for _, l := range lines {
		for _, tag := range l.Tags {
			count[tag]++
		}
	}
	tags := slices.Collect(maps.Keys(count))
	slices.SortFunc(tags, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	tags = tags[:min(len(tags), maxTags)]
	slices.Sort(tags)
	return tags
}

// apart splits what asks for attention, the worst and latest first, from the rest. A list of one status is not split.
func apart(lines []store.Line, f web.OverviewFilter) (troubled, rest []store.Line) {
	if f.Status != "" {
		return nil, slices.Clone(lines)
	}
	for _, l := range lines {
		if web.Troubling(l.Status) {
			troubled = append(troubled, l)
		} else {
			rest = append(rest, l)
		}
	}
	slices.SortStableFunc(troubled, func(a, b store.Line) int {
		return cmp.Or(cmp.Compare(ranks[a.Status], ranks[b.Status]), b.Since.Compare(a.Since))
	})
	return troubled, rest
}

// ranks orders statuses, worst first.
var ranks = func() map[store.Status]int {
	ranks := map[store.Status]int{}
	for i, s := range store.Statuses() {
		ranks[s] = i
	}
	return ranks
}()

// order sorts lines, which come by name, by what was asked for: within each group, where there are groups. What is worst comes
// first, and what was never measured last.
func (s *Server) order(ctx context.Context, lines []store.Line, f web.OverviewFilter) error {
	by := func(store.Line, store.Line) int { return 0 }
	switch f.Order {
	case web.OrderStatus:
		by = func(a, b store.Line) int { return cmp.Compare(ranks[a.Status], ranks[b.Status]) }
	case web.OrderLatency:
		by = func(a, b store.Line) int { return cmp.Compare(b.Latency, a.Latency) }
	case web.OrderChecked:
		by = func(a, b store.Line) int { return b.CheckedAt.Compare(a.CheckedAt) }
	case web.OrderUptime:
		uptimes, err := s.uptimes.of(ctx, s.cfg.Store)
		if err != nil {
			return err
		}
		by = func(a, b store.Line) int { return cmp.Compare(uptimes(a.ID), uptimes(b.ID)) }
	}
	slices.SortStableFunc(lines, func(a, b store.Line) int { return cmp.Or(compareGroups(groupOf(a, f), groupOf(b, f)), by(a, b)) })
	return nil
}

// groupOf returns the group that a line belongs to: that of its first tag, or of its kind.
func groupOf(l store.Line, f web.OverviewFilter) string {
	switch {
	case f.Group == web.GroupKind:
		return string(l.Kind)
	case f.Group == web.GroupTag && len(l.Tags) > 0:
		return l.Tags[0]
	}
	return ""
}

// compareGroups puts what belongs to none last.
func compareGroups(a, b string) int {
	if (a == "") != (b == "") {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// tallyGroups counts the statuses of each group; nil where nothing is grouped.
func tallyGroups(lines []store.Line, f web.OverviewFilter) map[string]map[store.Status]int {
	if f.Group == "" {
		return nil
	}
	groups := map[string]map[store.Status]int{}
	for _, l := range lines {
		name := groupOf(l, f)
		if groups[name] == nil {
			groups[name] = map[store.Status]int{}
		}
		groups[name][l.Status]++
	}
	return groups
}

// groupRows puts the rows of lines into their groups.
func groupRows(lines []store.Line, rows map[string]web.EndpointRow, tallies map[string]map[store.Status]int, f web.OverviewFilter) []web.RowGroup {
	var groups []web.RowGroup
	for _, l := range lines {
		row, there := rows[l.ID]
		if !there {
			continue
		}
		name := groupOf(l, f)
		if n := len(groups); n == 0 || groups[n-1].Name != name {
			groups = append(groups, web.RowGroup{Name: name, Kind: f.Group == web.GroupKind, Tallies: tallies[name]})
		}
		last := &groups[len(groups)-1]
		last.Rows = append(last.Rows, row)
	}
	return groups
}

// rowsOf returns the rows of lines, without those that have gone meanwhile.
func rowsOf(lines []store.Line, rows map[string]web.EndpointRow) []web.EndpointRow {
	found := make([]web.EndpointRow, 0, len(lines))
	for _, l := range lines {
		if row, there := rows[l.ID]; there {
			found = append(found, row)
		}
	}
	return found
}

// rows returns the rows of the endpoints of lines, by their ids.
func (s *Server) rows(ctx context.Context, lines []store.Line) (map[string]web.EndpointRow, error) {
	if len(lines) == 0 {
		return nil, nil //nolint:nilnil // a map that holds nothing
	}
	ids := make([]string, 0, len(lines))
	for _, l := range lines {
		ids = append(ids, l.ID)
	}
	found, err := s.cfg.Store.Endpoints(ctx, store.EndpointFilter{IDs: ids, Limit: -1})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	first := firstHour(now)
	rollups, err := s.cfg.Store.Rollups(ctx, ids, store.Hourly, first)
	if err != nil {
		return nil, err
	}
	hours := map[string][]store.Rollup{}
	for _, r := range rollups {
		hours[r.EndpointID] = append(hours[r.EndpointID], r)
	}
	listed := make([]store.Endpoint, 0, len(found.Items))
	for _, o := range found.Items {
		listed = append(listed, o.Endpoint)
	}
	covered, err := s.maintained(ctx, listed...)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]web.EndpointRow, len(found.Items))
	for _, o := range found.Items {
		row := endpointRow(o)
		row.Maintained = covered[o.ID] != nil
		if err := s.fillHours(&row, o.Endpoint, hours[o.ID], first, now); err != nil {
			return nil, err
		}
		rows[o.ID] = row
	}
	return rows, nil
}

func endpointRow(o store.Overview) web.EndpointRow {
	return web.EndpointRow{
		Slug:    o.Slug,
		Name:    o.Name,
		Host:    placeOf(o.Endpoint),
		Kind:    o.Target(o.State).Kind,
		Status:  o.Status(),
		Since:   o.State.Since,
		Failure: o.State.Failure,
		Checked: o.State.LastCheckAt,
		Latency: o.State.LastDuration,
		Tags:    o.Tags,
	}
}

// fillHours fills in what roll-ups by the hour, from first on, say of an endpoint.
func (s *Server) fillHours(row *web.EndpointRow, e store.Endpoint, rollups []store.Rollup, first, now time.Time) error {
	p := past{endpoint: e, now: now}
	row.Hours = slotsOf(p, rollups, first, now, store.Hourly, s.surveyOf(p, rollups, first, now, store.Hourly).gaps())
	var sum store.Counts
	latencies := make([]store.Latencies, len(row.Hours))
	for _, r := range rollups {
		sum = sum.Plus(r.Counts)
		if at := int(r.Begin.Sub(first) / time.Hour); at >= 0 && at < len(latencies) {
			if err := latencies[at].Merge(r.Latencies); err != nil {
				return err
			}
		}
	}
	row.Uptime = percentOf(sum)
	row.Medians = make([]float64, 0, len(latencies))
	for _, l := range latencies {
		median := math.NaN()
		if q := l.Quantiles("", 0.5); len(q) > 0 {
			median = q[0]
		}
		row.Medians = append(row.Medians, median)
	}
	return nil
}

// uptimes are the uptimes of all endpoints over the hours that are shown, for sorting by them. They are added up anew when
// somebody asks and they are older than uptimesFor: over so many hours, a minute changes little.
type uptimes struct {
	mu     sync.Mutex
	at     time.Time
	counts map[string]store.Counts
}

const uptimesFor = time.Minute

// of returns what tells the uptime of an endpoint: more than 100 where nothing was measured.
func (u *uptimes) of(ctx context.Context, db store.Store) (func(id string) float64, error) {
	u.mu.Lock() // whoever comes meanwhile waits for the same answer
	defer u.mu.Unlock()
	if time.Since(u.at) > uptimesFor {
		roster, err := db.Roster(ctx)
		if err != nil {
			return nil, err
		}
		ids := make([]string, 0, len(roster))
		for _, m := range roster {
			ids = append(ids, m.ID)
		}
		counts, err := db.Counts(ctx, ids, store.Hourly, firstHour(time.Now()))
		if err != nil {
			return nil, err
		}
		u.at, u.counts = time.Now(), counts
	}
	counts := u.counts
	return func(id string) float64 {
		if percent, measured := counts[id].Uptime(); measured {
			return percent
		}
		return math.MaxFloat64
	}, nil
}

// firstHour is the beginning of the first of the hours that are shown.
func firstHour(now time.Time) time.Time { return store.HourOf(now).Add(-(shownHours - 1) * time.Hour) }

// maxBulk bounds how many endpoints are changed at once: more than a page shows.
const maxBulk = 500

// doBulk does something to the endpoints that were ticked. What cannot be done to one is done to the others all the same.
func (s *Server) doBulk(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	slugs, back := f.texts("e"), safeNext(f.text("back"))
	if len(slugs) > maxBulk {
		return fault(http.StatusUnprocessableEntity, "Too many", "At most %d endpoints are changed at once.", maxBulk)
	}
	if len(slugs) == 0 {
		return s.bulkRefused(c, back, "Tick the endpoints first that this is to be done to.", nil)
	}
	action := f.text("action")
	if action == "delete" && !f.ticked("confirmed") {
		return s.confirmBulk(c, slugs, back)
	}
	act, err := s.bulkAct(c, action, f.text("tag"))
	if err != nil {
		if p, is := errors.AsType[*problem](err); is {
			return s.bulkRefused(c, back, p.Detail, nil)
		}
		return err
	}
	var lost []string
	refusal := ""
	for _, slug := range slugs {
		err := act(slug)
		switch p := problemOf(err); {
		case err == nil, errors.Is(err, store.ErrNotFound):
		case p.Status >= http.StatusInternalServerError:
			return err
		default:
			lost, refusal = append(lost, slug), p.Detail
		}
	}
	if len(lost) > 0 {
		return s.bulkRefused(c, back, refusal, lost)
	}
	return c.Redirect(http.StatusSeeOther, withDone(back, bulkDone[action]))
}

// bulkDone are the words that doneWords knows for what was done to several endpoints.
var bulkDone = map[string]string{"pause": "paused", "resume": "resumed", "tag": "saved", "untag": "saved", "delete": "deleted"}

// withDone adds the word for what was done to the address of a page of ours.
func withDone(path, done string) string {
	u, err := url.Parse(path)
	if err != nil {
		return "/"
	}
	q := u.Query()
	q.Set("done", done)
	u.RawQuery = q.Encode()
	return u.String()
}

// bulkAct returns what an action does to one endpoint. Its errors are those of edit and remove.
func (s *Server) bulkAct(c echo.Context, action, tag string) (func(slug string) error, error) {
	ctx := c.Request().Context()
	edit := func(in endpointInput) func(string) error {
		return func(slug string) error {
			_, err := s.edit(ctx, slug, in)
			return err
		}
	}
	retag := func(change func(tags []string) []string) (func(string) error, error) {
		if tag == "" {
			return nil, fault(http.StatusUnprocessableEntity, "No tag", "Write the tag into the field beside the button first.")
		}
		return func(slug string) error {
			o, err := s.cfg.Store.Endpoint(ctx, slug)
			if err != nil {
				return err
			}
			_, err = s.edit(ctx, slug, endpointInput{Tags: new(change(slices.Clone(o.Tags)))})
			return err
		}, nil
	}
	switch action {
	case "pause":
		return edit(endpointInput{Paused: new(true)}), nil
	case "resume":
		return edit(endpointInput{Paused: new(false)}), nil
	case "tag":
		return retag(func(tags []string) []string {
			if slices.Contains(tags, tag) {
				return tags
			}
			return append(tags, tag)
		})
	case "untag":
		return retag(func(tags []string) []string {
			return slices.DeleteFunc(tags, func(t string) bool { return t == tag })
		})
	case "delete":
		return func(slug string) error { return s.remove(c, slug) }, nil
	}
	return nil, errNoAction
}

// bulkRefused shows the list again with what is wrong, and with those that an act did not reach.
func (s *Server) bulkRefused(c echo.Context, back, words string, lost []string) error {
	page := web.OverviewPage{Page: 1, Problems: web.Problems{{Message: words}}, Lost: lost}
	if u, err := url.Parse(back); err == nil && u.Path == "/" {
		c.Request().URL.RawQuery = u.RawQuery
		if f, n, err := readOverview(c); err == nil {
			page.Filter, page.Page = f, n
		}
	}
	return s.overview(c, http.StatusUnprocessableEntity, page)
}

func (s *Server) confirmBulk(c echo.Context, slugs []string, back string) error {
	page := web.BulkPage{Frame: s.frame(c, "/"), Back: back}
	for _, slug := range slugs {
		o, err := s.cfg.Store.Endpoint(c.Request().Context(), slug)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		page.Slugs, page.Names = append(page.Slugs, o.Slug), append(page.Names, o.Name)
	}
	return s.render(c, http.StatusOK, page)
}

// placeOf is where an endpoint is, in a word: the host of its URL, or the program of its command.
func placeOf(e store.Endpoint) string {
	if e.Command != nil {
		return e.DefaultName()
	}
	return hostOf(e.URL)
}

// hostOf returns the part of an endpoint's URL that tells endpoints apart and holds no key.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}

// percentOf returns the uptime that counts stand for, nil when nothing was measured.
func percentOf(counts store.Counts) *float64 {
	percent, measured := counts.Uptime()
	if !measured {
		return nil
	}
	return &percent
}

// listPath is the address of a page of a list, without the parameters that are empty.
func listPath(path string, parameters map[string]string) string {
	values := url.Values{}
	for name, value := range parameters {
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
