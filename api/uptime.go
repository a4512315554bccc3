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

	"github.com/rollcallhq/rollcall/store"
)

// Uptime is what the checks of an endpoint in a window add up to, as it stands in JSON.
//
// Counts are kept by the hour, so a window begins at a full hour: the one in which "now minus the window" lies. It is up
// to an hour longer than its name, and nothing that belongs to it is left out. From and To say what was counted.
type Uptime struct {
	Window    string          `json:"window"`
	From      Time            `json:"from"`
	To        Time            `json:"to"`
	Uptime    *float64        `json:"uptime"`   // per cent; null when nothing was measured
	Coverage  float64         `json:"coverage"` // per cent of the checks that the schedule would have made
	Checks    store.Counts    `json:"checks"`
	LatencyMS *Quantiles      `json:"latency_ms"` // of good checks; null when there was none
	Steps     []StepQuantiles `json:"steps"`      // in the order of a conversation
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

// windows are the lengths that uptime is asked for, and windowNames the same in order.
var (
	windows = map[string]time.Duration{
		"1h":   time.Hour,
		"24h":  24 * time.Hour,
		"7d":   7 * 24 * time.Hour,
		"30d":  30 * 24 * time.Hour,
		"90d":  90 * 24 * time.Hour,
		"365d": 365 * 24 * time.Hour,
	}
	windowNames = []string{"1h", "24h", "7d", "30d", "90d", "365d"}
)

func (s *Server) getUptime(c echo.Context) error {
	q := queryOf(c)
	window := cmp.Or(choice(q, "window", windowNames), "24h")
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	u, err := s.uptime(ctx, o.Endpoint, window)
	if err != nil {
		return err
	}
	return ok(c, u)
}

// uptime adds up one of the windows for an endpoint.
func (s *Server) uptime(ctx context.Context, e store.Endpoint, window string) (Uptime, error) {
	length, known := windows[window]
	if !known {
		return Uptime{}, fault(http.StatusBadRequest, "Bad query", "window must be one of %s", strings.Join(windowNames, ", "))
	}
	now := time.Now()
	from := store.HourOf(now.Add(-length))
	hours, err := s.cfg.Store.Uptime(ctx, e.ID, from, now)
	if err != nil {
		return Uptime{}, err
	}
	sum, locations, err := addUp(hours)
	if err != nil {
		return Uptime{}, err
	}
	u := Uptime{
		Window:    window,
		From:      Time{from},
		To:        Time{now},
		Checks:    sum.Counts,
		LatencyMS: quantiles(sum.Latencies, ""),
		Steps:     stepQuantiles(sum.Latencies),
	}
	if percent, measured := sum.Counts.Uptime(); measured {
		u.Uptime = new(floor3(percent))
	}
	begin := from
	if e.CreatedAt.After(begin) {
		begin = e.CreatedAt
	}
	u.Coverage = s.coverage(e.Schedule, now.Sub(begin), sum.Counts.Total(), locations)
	return u, nil
}

// addUp merges hours of one endpoint, and counts the locations they were measured from.
func addUp(hours []store.Rollup) (sum store.Rollup, locations int, err error) {
	seen := map[string]bool{}
	for _, h := range hours {
		sum.Counts = sum.Counts.Plus(h.Counts)
		if err := sum.Latencies.Merge(h.Latencies); err != nil {
			return sum, 0, err
		}
		seen[h.Location] = true
	}
	return sum, len(seen), nil
}

// coverage is the share of the checks due in a stretch of time that were made, in per cent. Checks made out of turn, to
// confirm a failure or on demand, do not lift it over 100.
func (s *Server) coverage(schedule string, stretch time.Duration, made, locations int) float64 {
	period, err := s.cfg.Period(schedule)
	if err != nil || period <= 0 || made == 0 {
		return 0
	}
	due := float64(stretch/period) * float64(max(1, locations))
	return floor3(min(100, 100*float64(made)/max(1, due)))
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
