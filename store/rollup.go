package store

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Rollup is what the checks of one endpoint at one location in one hour add up to.
type Rollup struct {
	EndpointID string
	Location   string
	Begin      time.Time // of the hour, UTC
	Counts     Counts
	Latencies  Latencies
}

// Add counts one check.
func (h *Rollup) Add(r probe.Result) {
	h.Counts.Add(r.Verdict)
	h.Latencies.Add(r)
}

// Grain is how long the stretches are that are added up.
type Grain int

// The grains.
const (
	Hourly Grain = iota
	Daily
)

// Begin returns the beginning of the hour, or of the day in UTC, in which t lies.
func (g Grain) Begin(t time.Time) time.Time {
	if g == Daily {
		return DayOf(t)
	}
	return HourOf(t)
}

// HourOf returns the beginning of the hour in which t lies.
func HourOf(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }

// DayOf returns the beginning of the day in UTC in which t lies.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Counts are checks by verdict.
type Counts struct {
	Up       int `json:"up"`
	Degraded int `json:"degraded"`
	Down     int `json:"down"`
	Gated    int `json:"gated"`
	Unknown  int `json:"unknown"`
}

// Add counts one verdict.
func (c *Counts) Add(v probe.Verdict) {
	switch v {
	case probe.Up:
		c.Up++
	case probe.Degraded:
		c.Degraded++
	case probe.Down:
		c.Down++
	case probe.Gated:
		c.Gated++
	default:
		c.Unknown++
	}
}

// Plus returns the sum of two counts.
func (c Counts) Plus(d Counts) Counts {
	return Counts{c.Up + d.Up, c.Degraded + d.Degraded, c.Down + d.Down, c.Gated + d.Gated, c.Unknown + d.Unknown}
}

// Total is the number of checks counted.
func (c Counts) Total() int { return c.Up + c.Degraded + c.Down + c.Gated + c.Unknown }

// Uptime returns the share of checks that found the endpoint answering, in per cent, and whether there is one: gated
// and unknown checks count neither way.
func (c Counts) Uptime() (percent float64, ok bool) {
	good, all := c.Up+c.Degraded, c.Up+c.Degraded+c.Down
	if all == 0 {
		return 0, false
	}
	return 100 * float64(good) / float64(all), true
}
