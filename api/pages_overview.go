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

// The overview is made of two questions, however many endpoints there are:
//
//	Index ─► roll: tallies, order, groups; once a second for all who look ─► which ones this page shows ─► Briefs, of those

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
	r, err := s.roll(ctx, f)
	if err != nil {
		return err
	}
	page.Frame, page.None, page.Tallies = s.frame(c, "/"), len(r.lines) == 0 && !f.Active(), r.tallies
	if page.Choices, err = s.choices.of(ctx, s.cfg.Store, r, !f.Active()); err != nil {
		return err
	}
	list, err := s.arrangement(ctx, r, f)
	if err != nil {
		return err
	}
	page.Pages = max(1, (len(list.rest)+perPage-1)/perPage)
	page.Page = min(page.Page, page.Pages)
	rest := list.rest[min(len(list.rest), (page.Page-1)*perPage):min(len(list.rest), page.Page*perPage)]
	var troubled []*store.Line
	if page.Page == 1 {
		troubled = list.troubled[:min(len(list.troubled), maxTroubled)]
		page.Unshown = len(list.troubled) - len(troubled)
	}
	rows, err := s.rows(ctx, slices.Concat(troubled, rest))
	if err != nil {
		return err
	}
	page.Attention, page.Rest = rowsOf(troubled, rows), rowsOf(rest, rows)
	page.Groups = groupRows(rest, rows, list.groups, f)
	return s.render(c, status, page)
}

// keepLines is for how long the index is kept, at most.
const keepLines = time.Second

// roll is what store.Store.Index returned, with what is made of it for whoever asks first and kept for the others. Nobody changes
// anything in it.
type roll struct {
	lines   []store.Line // by name
	tallies map[store.Status]int
	tags    func() []string // frequentTags

	mu       sync.Mutex
	arranged map[ordering]arrangement // guarded by mu
}

// ordering is what an arrangement depends on beside the lines.
type ordering struct {
	order, group string
	apart        bool // what asks for attention stands for itself
}

// arrangement is a whole list in its order.
type arrangement struct {
	troubled []*store.Line // that ask for attention, the worst and latest first
	rest     []*store.Line
	groups   map[string]map[store.Status]int // how many of rest have which status, by group; nil where nothing is grouped
}

// roll returns what a filter selects, a moment old at most, and no older than what a viewer was last told of.
func (s *Server) roll(ctx context.Context, f web.OverviewFilter) (*roll, error) {
	checks := f.Order == web.OrderLatency || f.Order == web.OrderChecked || f.Group == web.GroupKind
	selected := store.EndpointFilter{Status: store.Status(f.Status), Tag: f.Tag, Query: f.Query, Kind: probe.Kind(f.Kind), Location: f.Location}
	return keep(ctx, s.lines, s.asOf(fmt.Sprintf("%t %+v", checks, selected)), func(ctx context.Context) (*roll, error) {
		lines, err := s.cfg.Store.Index(ctx, selected, checks)
		return newRoll(lines), err
	})
}

func newRoll(lines []store.Line) *roll {
	r := &roll{lines: lines, tallies: make(map[store.Status]int, len(store.Statuses())), arranged: map[ordering]arrangement{}}
	for i := range lines {
		r.tallies[lines[i].Status]++
	}
	r.tags = sync.OnceValue(func() []string { return frequentTags(lines) })
	return r
}

// choices are what there is to filter by. They are found out anew by whoever asks for everything, for whom it costs little, and by
// others when they are older than choicesFor.
type choices struct {
	mu    sync.Mutex
	at    time.Time
	known web.OverviewChoices
}

const choicesFor = time.Minute

// of returns the choices. r is of all endpoints, when told so.
func (k *choices) of(ctx context.Context, db store.Store, r *roll, all bool) (web.OverviewChoices, error) {
	k.mu.Lock() // whoever comes meanwhile waits for the same answer
	defer k.mu.Unlock()
	fresh := time.Since(k.at) < choicesFor
	if fresh && !all {
		return k.known, nil
	}
	if !all {
		lines, err := db.Index(ctx, store.EndpointFilter{}, false)
		if err != nil {
			return k.known, err
		}
		r = newRoll(lines)
	}
	k.known.Tags = r.tags()
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

// arrangement returns the list of a roll in the order of a filter. A list of one status has nothing apart.
func (s *Server) arrangement(ctx context.Context, r *roll, f web.OverviewFilter) (arrangement, error) {
	by, err := s.keyOf(ctx, f.Order)
	if err != nil {
		return arrangement{}, err
	}
	r.mu.Lock() // whoever comes meanwhile waits for the same answer
	defer r.mu.Unlock()
	key := ordering{f.Order, f.Group, f.Status == ""}
	if known, there := r.arranged[key]; there {
		return known, nil
	}
	a := arrangement{rest: make([]*store.Line, 0, len(r.lines))}
	for i := range r.lines {
		if l := &r.lines[i]; key.apart && web.Troubling(l.Status) {
			a.troubled = append(a.troubled, l)
		} else {
			a.rest = append(a.rest, l)
		}
	}
	slices.SortStableFunc(a.troubled, func(a, b *store.Line) int {
		return cmp.Or(cmp.Compare(ranks[a.Status], ranks[b.Status]), b.Since.Compare(a.Since))
	})
	sortLines(a.rest, f, by)
	a.groups = tallyGroups(a.rest, f)
	r.arranged[key] = a
	return a, nil
}

// ranks orders statuses, worst first.
var ranks = func() map[store.Status]int {
	ranks := map[store.Status]int{}
	for i, s := range store.Statuses() {
		ranks[s] = i
	}
	return ranks
}()

// keyOf returns what lines are sorted by, the smallest first: what is worst comes first, and what was never measured last. It is nil
// for the order in which they come, that of names.
func (s *Server) keyOf(ctx context.Context, order string) (func(*store.Line) float64, error) {
	switch order {
	case web.OrderStatus:
		return func(l *store.Line) float64 { return float64(ranks[l.Status]) }, nil
	case web.OrderLatency:
		return func(l *store.Line) float64 { return -float64(l.Latency) }, nil
	case web.OrderChecked:
		return func(l *store.Line) float64 { return -float64(l.CheckedAt.UnixMicro()) }, nil
	case web.OrderUptime:
		uptimes, err := s.uptimes.of(ctx, s.cfg.Store)
		return func(l *store.Line) float64 { return uptimes(l.ID) }, err
	}
	return nil, nil //nolint:nilnil // there is nothing to sort by
}

// sortLines sorts lines by a key, within each group where there are groups.
func sortLines(lines []*store.Line, f web.OverviewFilter, by func(*store.Line) float64) {
	if by == nil && f.Group == "" {
		return
	}
	type keyed struct {
		line  *store.Line
		group string
		key   float64
		at    int // where it stood before: ties stay as they are
	}
	sorted := make([]keyed, 0, len(lines))
	for i, l := range lines {
		k := keyed{line: l, group: groupOf(l, f), at: i}
		if by != nil {
			k.key = by(l)
		}
		sorted = append(sorted, k)
	}
	slices.SortFunc(sorted, func(a, b keyed) int {
		return cmp.Or(compareGroups(a.group, b.group), cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at))
	})
	for i, k := range sorted {
		lines[i] = k.line
	}
}

// groupOf returns the group that a line belongs to: that of its first tag, or of its kind.
func groupOf(l *store.Line, f web.OverviewFilter) string {
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
func tallyGroups(lines []*store.Line, f web.OverviewFilter) map[string]map[store.Status]int {
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
func groupRows(lines []*store.Line, rows map[string]web.EndpointRow, tallies map[string]map[store.Status]int, f web.OverviewFilter) []web.RowGroup {
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
func rowsOf(lines []*store.Line, rows map[string]web.EndpointRow) []web.EndpointRow {
	found := make([]web.EndpointRow, 0, len(lines))
	for _, l := range lines {
		if row, there := rows[l.ID]; there {
			found = append(found, row)
		}
	}
	return found
}

// rows returns the rows of the endpoints of lines, by their ids.
func (s *Server) rows(ctx context.Context, lines []*store.Line) (map[string]web.EndpointRow, error) {
	if len(lines) == 0 {
		return nil, nil //nolint:nilnil // a map that holds nothing
	}
	ids := make([]string, 0, len(lines))
	for _, l := range lines {
		ids = append(ids, l.ID)
	}
	now := time.Now()
	first := firstHour(now)
	briefs, err := s.cfg.Store.Briefs(ctx, ids, first)
	if err != nil {
		return nil, err
	}
	listed := make([]store.Endpoint, 0, len(briefs))
	for i := range briefs {
		listed = append(listed, briefs[i].Endpoint)
	}
	covered, err := s.maintained(ctx, listed...)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]web.EndpointRow, len(briefs))
	for i := range briefs {
		b := &briefs[i]
		row := endpointRow(b.Overview)
		row.Maintained = covered[b.ID] != nil
		if err := s.fillHours(&row, b, first, now); err != nil {
			return nil, err
		}
		rows[b.ID] = row
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

// fillHours fills in what the hours of an endpoint say, from first on.
func (s *Server) fillHours(row *web.EndpointRow, b *store.Brief, first, now time.Time) error {
	p := past{endpoint: b.Endpoint, now: now}
	row.Hours = slotsOf(p, b.Hours, first, now, store.Hourly, s.surveyOf(p, b.Hours, first, now, store.Hourly).gaps())
	var sum store.Counts
	latencies := make([]store.Latencies, len(row.Hours))
	for i := range b.Hours {
		h := &b.Hours[i]
		sum = sum.Plus(h.Counts)
		if at := int(h.Begin.Sub(first) / time.Hour); at >= 0 && at < len(latencies) {
			if err := latencies[at].MergeStep(h.Latencies, ""); err != nil {
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
