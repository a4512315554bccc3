package web

import (
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// OverviewPage lists the endpoints, those with something wrong first.
type OverviewPage struct {
	Frame
	Filter    OverviewFilter
	Choices   OverviewChoices
	Tallies   map[store.Status]int // of all endpoints that the filter selects
	Attention []EndpointRow        // not up, worst first; empty while filtering by status
	Unshown   int                  // more of these, which are not listed here
	Rest      []EndpointRow        // in their order; those of one group stand together
	Groups    []RowGroup           // of Rest, in this order; one without a name where nothing is grouped
	Page      int                  // from 1
	Pages     int
	None      bool // no endpoint is registered at all
	Problems  Problems
	Lost      []string // names of endpoints that somebody's act did not reach
}

func (OverviewPage) template() string { return "overview" }

// Orders of the list.
const (
	OrderName    = "name"
	OrderStatus  = "status"
	OrderLatency = "latency"
	OrderUptime  = "uptime"
	OrderChecked = "checked"
)

// Orders returns what the list can be sorted by.
func Orders() []string {
	return []string{OrderName, OrderStatus, OrderLatency, OrderUptime, OrderChecked}
}

// What the list can be grouped by.
const (
	GroupTag  = "tag"
	GroupKind = "kind"
)

// OverviewFilter is what the visitor asked for, as typed.
type OverviewFilter struct {
	Query, Status, Tag, Kind, Location string
	Order                              string // of Orders; empty for by name
	Group                              string // GroupTag, GroupKind or empty
}

// Active reports whether anything was searched for.
func (f OverviewFilter) Active() bool {
	f.Order, f.Group = "", ""
	return f != OverviewFilter{}
}

// Folded reports whether what most people leave alone is set.
func (f OverviewFilter) Folded() bool { return f.Kind != "" || f.Location != "" }

// Path is the address of a page of the list, counted from 1.
func (f OverviewFilter) Path(page int) string {
	values := url.Values{}
	for _, p := range [][2]string{
		{"q", f.Query}, {"status", f.Status}, {"tag", f.Tag}, {"kind", f.Kind}, {"location", f.Location}, {"sort", f.Order}, {"group", f.Group},
	} {
		if p[1] != "" {
			values.Set(p[0], p[1])
		}
	}
	if page > 1 {
		values.Set("page", strconv.Itoa(page))
	}
	if len(values) == 0 {
		return "/"
	}
	return "/?" + values.Encode()
}

// By returns the filter with another order.
func (f OverviewFilter) By(order string) OverviewFilter {
	f.Order = order
	return f
}

// Only returns the filter for endpoints of a status.
func (f OverviewFilter) Only(status string) OverviewFilter {
	f.Status = status
	return f
}

// Ordered reports whether the list is sorted in this way.
func (f OverviewFilter) Ordered(order string) bool {
	return f.Order == order || f.Order == "" && order == OrderName
}

// Kinds are what can be filtered by: all that there are.
func (p OverviewPage) Kinds() []KindGroup { return GroupKinds(probe.Kinds()) }

// OverviewChoices is what there is to filter by.
type OverviewChoices struct {
	Tags      []string // the most frequent ones, by name
	Locations []string
}

// RowGroup is a stretch of the list whose endpoints have something in common.
type RowGroup struct {
	Name    string // a tag, or a kind; empty for what has none
	Kind    bool
	Rows    []EndpointRow
	Tallies map[store.Status]int // of all its endpoints, on other pages too
}

// Title names a group.
func (g RowGroup) Title() string {
	if g.Kind {
		return kindWords(probe.Kind(g.Name))
	}
	return g.Name
}

// Counted is how many endpoints have a status.
type Counted struct {
	Status store.Status
	N      int
}

// Standing returns how many endpoints of a group have each status, worst first, without those that none has.
func (g RowGroup) Standing() []Counted { return standing(g.Tallies) }

// Standing returns how many endpoints have each status, worst first, without those that none has.
func (p OverviewPage) Standing() []Counted { return standing(p.Tallies) }

func standing(tallies map[store.Status]int) []Counted {
	var counted []Counted
	for _, s := range store.Statuses() {
		if n := tallies[s]; n > 0 {
			counted = append(counted, Counted{s, n})
		}
	}
	return counted
}

// Total is how many endpoints the filter selects.
func (p OverviewPage) Total() int {
	n := 0
	for _, c := range p.Tallies {
		n += c
	}
	return n
}

// First is the address of the first page; empty near it, as that of any page that there is not.
func (p OverviewPage) First() string { return p.near(1, p.Page > 2) }

// Previous is the address of the page before this one.
func (p OverviewPage) Previous() string { return p.near(p.Page-1, p.Page > 1) }

// Next is the address of the page after this one.
func (p OverviewPage) Next() string { return p.near(p.Page+1, p.Page < p.Pages) }

// Here is the address of this page.
func (p OverviewPage) Here() string { return p.Filter.Path(p.Page) }

func (p OverviewPage) near(page int, there bool) string {
	if !there {
		return ""
	}
	return p.Filter.Path(page)
}

// EndpointRow is one endpoint at a glance.
type EndpointRow struct {
	Slug, Name string
	Host       string // of its URL
	Kind       probe.Kind
	Status     store.Status
	Since      time.Time
	Failure    *probe.Failure // why Status is not up
	Latency    time.Duration  // of the last check; zero when there was none
	Checked    time.Time      // zero when never
	Uptime     *float64       // over Hours, in per cent; nil when nothing was measured
	Tags       []string
	Maintained bool      // under maintenance
	Hours      []Slot    // the last 24, the running one last; empty where the page does not show them
	Medians    []float64 // of the latency in each of Hours, in milliseconds; NaN where none was measured
}

// Troubled reports whether the endpoint's status asks for somebody's attention.
func (r EndpointRow) Troubled() bool { return Troubling(r.Status) }

// Troubling reports whether a status asks for somebody's attention.
func Troubling(s store.Status) bool {
	switch s {
	case store.StatusDown, store.StatusDegraded, store.StatusGated, store.StatusUnknown:
		return true
	}
	return false
}

// The bar of hours: a column for each, as wide as hourStep with a gap, up to hourHeight high.
const (
	hourStep   = 4
	hourWidth  = 3
	hourHeight = 20
)

// hourHeights are how high a column is, by the level of its hour: what is worse stands lower, so that it is seen without colour.
var hourHeights = map[string]int{"full": 20, "good": 17, "degraded": 17, "poor": 13, "bad": 9, "unsure": 6, "none": 20, "idle": 3}

// HourBar is one level of a bar of hours: all of its columns as one path.
type HourBar struct{ Level, Path string }

// Bars draws Hours.
func (r EndpointRow) Bars() []HourBar {
	var bars []HourBar
	at := map[string]int{}
	for i, s := range r.Hours {
		level := s.Level()
		n, ok := at[level]
		if !ok {
			n = len(bars)
			at[level], bars = n, append(bars, HourBar{Level: level})
		}
		bars[n].Path += column(level, i*hourStep, hourWidth, hourHeights[level], hourHeight)
	}
	return bars
}

// hourBar draws Hours. A template would escape the drawing piece by piece.
func (l Language) hourBar(r EndpointRow) template.HTML {
	if len(r.Hours) == 0 {
		return ""
	}
	words, worst := r.HoursWords()
	var b strings.Builder
	b.WriteString(`<svg class="hours" viewBox="0 0 95 20" width="95" height="20" role="img" aria-label="` +
		template.HTMLEscapeString(words.in(l)) + `"`)
	if worst != nil { // the script adds what hour that is where the reader is
		b.WriteString(` data-hour="` + machine(worst.Begin) + `" data-said="` + template.HTMLEscapeString(worst.When().in(l)) + `"`)
	}
	b.WriteString(`>`)
	for _, bar := range r.Bars() {
		b.WriteString(`<path class="d-` + bar.Level + `" d="` + bar.Path + `"/>`)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, names of ours, and words that are escaped
}

// HoursWords says how the hours were, for those who cannot see the bar: all of them in a sentence, and the worst. It returns that as
// well, nil where the sentence names none.
func (r EndpointRow) HoursWords() (Said, *Slot) {
	bad, missed, measured := 0, 0, 0
	worst := -1
	for i, s := range r.Hours {
		switch s.Level() {
		case "none":
			missed++
			continue
		case "idle", "unsure":
			continue
		case "full":
		default:
			bad++
			if worst < 0 || s.worse(r.Hours[worst]) {
				worst = i
			}
		}
		measured++
	}
	switch {
	case measured == 0:
		return Say("Last 24 hours: nothing measured"), nil
	case bad == 0 && missed == 0:
		return Say("Last 24 hours: no failure"), nil
	case bad == 0:
		return Say("Last 24 hours: no failure, not measured in %d", missed), nil
	}
	return Say("Last 24 hours: not flawless in %d, worst %s", bad, r.Hours[worst].Words()), &r.Hours[worst]
}

// The sparkline: as wide as the bar, and its height.
const sparkHeight = 20

// sparkline draws Medians from the bottom up, with a gap where nothing was measured; empty when there is nothing to draw.
func (l Language) sparkline(r EndpointRow) template.HTML {
	low, high, n := r.spread()
	if n < 2 {
		return ""
	}
	// What hardly changes is a line in the middle rather than noise over the whole height.
	room := max(high-low, 0.2*high, 1)
	base := (low+high)/2 - room/2
	d := append([]byte(`<svg class="spark" viewBox="0 0 95 20" width="95" height="20" role="img" aria-label="`),
		template.HTMLEscapeString(r.SparkWords().in(l))+`"><path d="`...)
	move := true
	for i, v := range r.Medians {
		if math.IsNaN(v) {
			move = true
			continue
		}
		verb := byte('L')
		if move {
			verb = 'M'
		}
		y := float64(sparkHeight-2)*(1-(v-base)/room) + 1
		d = strconv.AppendInt(append(d, verb), int64(i*hourStep+1), 10)
		d = strconv.AppendFloat(append(d, ' '), y, 'f', 1, 64)
		if move && (i+1 == len(r.Medians) || math.IsNaN(r.Medians[i+1])) { // a lone point is a dash, which is seen
			d = append(d, "m-1 0h2"...)
		}
		move = false
	}
	return template.HTML(append(d, `"/></svg>`...)) //nolint:gosec // numbers, and words that are escaped
}

// SparkWords says what the sparkline shows.
func (r EndpointRow) SparkWords() Said {
	low, high, _ := r.spread()
	return Say("Latency over 24 hours: hourly medians from %s to %s", Milliseconds(low), Milliseconds(high))
}

// spread returns the smallest and largest of Medians, and how many there are.
func (r EndpointRow) spread() (low, high float64, n int) {
	for _, v := range r.Medians {
		if math.IsNaN(v) {
			continue
		}
		if n == 0 {
			low, high = v, v
		}
		low, high, n = min(low, v), max(high, v), n+1
	}
	return low, high, n
}

// Heading is the state of things in one line.
func (p OverviewPage) Heading() Said {
	down := p.Tallies[store.StatusDown]
	troubled := 0
	for s, n := range p.Tallies {
		if Troubling(s) {
			troubled += n
		}
	}
	switch more := troubled - down; {
	case p.None:
		return Say("Nothing is watched yet")
	case p.Filter.Active():
		return Say("Endpoints")
	case p.Page > 1:
		return Say("Endpoints, page %d", p.Page)
	case down > 0 && more == 0:
		return Say("%d endpoints are down", down)
	case down > 0:
		return Say("%[2]d down, %[1]d more need attention", more, down)
	case more > 0:
		return Say("Nothing is down, %d need attention", more)
	}
	return p.calm()
}

// calm says how things stand when nothing is wrong that is known.
func (p OverviewPage) calm() Said {
	up, pending := p.Tallies[store.StatusUp], p.Tallies[store.StatusPending]
	switch {
	case pending > 0 && up == 0:
		return Say("Waiting for the first checks")
	case pending > 0:
		return Say("Everything answers so far")
	case up == 0:
		return Say("Everything is paused")
	}
	return Say("Everything answers")
}

// BulkPage asks whether several endpoints are really to be removed.
type BulkPage struct {
	Frame
	Slugs, Names []string // of the endpoints, in the same order
	Back         string
}

func (BulkPage) template() string { return "bulk" }

// dict hands several things to a template of its own, by name: names and things in turn.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict: a name without a thing")
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}
