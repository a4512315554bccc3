package api

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Uptime is what the checks of an endpoint in a window add up to, as it stands in JSON.
//
// Counts are kept by the hour and by the day, in UTC. A window of up to a week begins at a full hour: the one in which "now
// minus the window" lies. A longer one is whole days, the running one included. From and To say what was counted.
type Uptime struct {
	Window    string              `json:"window"`
	From      Time                `json:"from"`
	To        Time                `json:"to"`
	Uptime    *float64            `json:"uptime"`   // per cent; null when nothing was measured
	Coverage  float64             `json:"coverage"` // per cent of the checks that were due
	Gaps      []Stretch           `json:"gaps"`     // when checks were due and none was made, oldest first
	Checks    store.Counts        `json:"checks"`
	Classes   map[probe.Class]int `json:"classes"`    // of the checks that were not up
	LatencyMS *Quantiles          `json:"latency_ms"` // of good checks; null when there was none
	Steps     []StepQuantiles     `json:"steps"`      // in the order of a conversation
}

// Stretch is some time, of whole hours or days except at the ends of what is looked at.
type Stretch struct {
	From Time `json:"from"`
	To   Time `json:"to"`
}

// Quantiles are latencies in milliseconds, right to 1 %.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// StepQuantiles are those of one step.
type StepQuantiles struct {
	Name string `json:"name"`
	Quantiles
}

// window is a length of time that uptime is asked for.
type window struct {
	name   string
	grain  store.Grain
	length time.Duration
}

// windows are all of them, the shortest first.
var windows = []window{
	{"1h", store.Hourly, time.Hour},
	{"24h", store.Hourly, 24 * time.Hour},
	{"7d", store.Hourly, 7 * 24 * time.Hour},
	{"30d", store.Daily, 30 * 24 * time.Hour},
	{"90d", store.Daily, 90 * 24 * time.Hour},
	{"365d", store.Daily, 365 * 24 * time.Hour},
}

// windowNames are the names of the windows, in their order.
var windowNames = func() []string {
	names := make([]string, 0, len(windows))
	for _, w := range windows {
		names = append(names, w.name)
	}
	return names
}()

// windowOf returns the window of a name, and whether there is one.
func windowOf(name string) (window, bool) {
	i := slices.Index(windowNames, name)
	if i < 0 {
		return window{}, false
	}
	return windows[i], true
}

// from returns where a window that ends now begins.
func (w window) from(now time.Time) time.Time {
	if w.grain == store.Daily {
		return store.DayOf(now).Add(24*time.Hour - w.length)
	}
	return store.HourOf(now.Add(-w.length))
}

func (s *Server) getUptime(c echo.Context) error {
	q := queryOf(c)
	name := cmp.Or(choice(q, "window", windowNames), "24h")
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	u, err := s.uptime(ctx, o.Endpoint, name)
	if err != nil {
		return err
	}
	return ok(c, u)
}

// uptime adds up one of the windows for an endpoint.
func (s *Server) uptime(ctx context.Context, e store.Endpoint, name string) (Uptime, error) {
	w, known := windowOf(name)
	if !known {
		return Uptime{}, fault(http.StatusBadRequest, "Bad query", "window must be one of %s", strings.Join(windowNames, ", "))
	}
	p, err := s.pastOf(ctx, e, w)
	if err != nil {
		return Uptime{}, err
	}
	return s.sum(p, w)
}

// past is what was read of an endpoint's roll-ups.
type past struct {
	endpoint store.Endpoint
	now      time.Time
	rollups  map[store.Grain][]store.Rollup
	begins   map[store.Grain]time.Time // from which on they were read; zero: not at all
}

// pastOf reads the hours and the days of the windows, each with one query.
func (s *Server) pastOf(ctx context.Context, e store.Endpoint, ws ...window) (past, error) {
	p := past{e, time.Now(), map[store.Grain][]store.Rollup{}, map[store.Grain]time.Time{}}
	for _, w := range ws {
		if from := w.from(p.now); p.begins[w.grain].IsZero() || from.Before(p.begins[w.grain]) {
			p.begins[w.grain] = from
		}
	}
	for grain, from := range p.begins {
		var err error
		if p.rollups[grain], err = s.read.Uptime(ctx, e.ID, grain, from, p.now); err != nil {
			return p, err
		}
	}
	return p, nil
}

// in returns the roll-ups of a window.
func (p past) in(w window) []store.Rollup {
	from, all := w.from(p.now), p.rollups[w.grain]
	i, _ := slices.BinarySearchFunc(all, from, func(r store.Rollup, t time.Time) int { return r.Begin.Compare(t) })
	return all[i:]
}

// sum adds up a window of what was read.
func (s *Server) sum(p past, w window) (Uptime, error) {
	var sum store.Rollup
	for _, r := range p.in(w) {
		if err := sum.Merge(r); err != nil {
			return Uptime{}, err
		}
	}
	u := Uptime{
		Window:    w.name,
		From:      Time{w.from(p.now)},
		To:        Time{p.now},
		Checks:    sum.Counts,
		Classes:   sum.Classes,
		LatencyMS: quantiles(sum.Latencies, ""),
		Steps:     stepQuantiles(sum.Latencies),
	}
	if u.Classes == nil {
		u.Classes = map[probe.Class]int{}
	}
	if percent, measured := sum.Counts.Uptime(); measured {
		u.Uptime = new(floor3(percent))
	}
	v := s.survey(p, w)
	u.Coverage, u.Gaps = v.coverage(), v.gaps()
	return u, nil
}

// floor3 cuts a percentage to three digits. Cutting, not rounding: 99.9999 is not 100.
func floor3(percent float64) float64 { return math.Floor(percent*1000) / 1000 }

func quantiles(l store.Latencies, step string) *Quantiles {
	v := l.Quantiles(step, 0.50, 0.90, 0.95, 0.99)
	if v == nil {
		return nil
	}
	for i := range v {
		v[i] = math.Round(v[i]*1000) / 1000
	}
	return &Quantiles{v[0], v[1], v[2], v[3]}
}

// conversation is the order in which the steps of an MCP check are sent; other steps follow by name.
var conversation = []string{"server/discover", "sse", "initialize", "initialized", "tools/list", "close"}

func stepQuantiles(l store.Latencies) []StepQuantiles {
	names := l.Steps()
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
	steps := make([]StepQuantiles, 0, len(names))
	for _, name := range names {
		if q := quantiles(l, name); q != nil {
			steps = append(steps, StepQuantiles{name, *q})
		}
	}
	return steps
}

func place(step string) int {
	if i := slices.Index(conversation, step); i >= 0 {
		return i
	}
	return len(conversation)
}
