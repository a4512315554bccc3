package alerts

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// An objective has an error budget: the share of checks that may be bad, 100 less its target. How fast it is spent is the burn
// rate: at 1 it lasts for exactly the window of the objective.
//
// Channels hear of a rate by two windows at once (Google, The Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate
// Alerts"): the long one says that the spending matters, the short one that it goes on.
const (
	fastLong, fastShort = time.Hour, 5 * time.Minute
	slowLong, slowShort = 6 * time.Hour, 30 * time.Minute
	fastRate, slowRate  = 14.4, 6.0
	// fewBad are as many bad checks as say nothing about a rate: of an endpoint that is checked once a minute, and may be bad for
	// one of a thousand checks, one in an hour would be a fast burn.
	fewBad = 2
)

// Spending is what the checks of a stretch of time mean for an objective. Gated and unknown checks count neither way, nor do those
// made under maintenance.
type Spending struct {
	Good, Bad int
	target    float64
}

// SpendingOf returns what a tally means. That of an objective with Under must have been made with it.
func SpendingOf(o store.Objective, t store.Tally) Spending {
	answered := t.Counts.Up + t.Counts.Degraded
	good := answered
	if o.Under > 0 {
		good = min(t.Under, answered)
	}
	return Spending{Good: good, Bad: answered - good + t.Counts.Down, target: o.Target}
}

// Budget returns what is left of an objective at a time, from roll-ups by the hour, or by the day, at all locations. Those that
// begin before its window are passed over. It fails when a roll-up cannot be read.
func Budget(o store.Objective, rollups []store.Rollup, now time.Time) (Spending, error) {
	since := now.Add(-time.Duration(o.Days) * 24 * time.Hour)
	var sum store.Rollup
	for _, r := range rollups {
		if r.Begin.Before(since) {
			continue
		}
		if err := sum.Merge(r); err != nil {
			return Spending{}, fmt.Errorf("add up the budget of %s: %w", o.Name, err)
		}
	}
	t := store.Tally{Counts: sum.Counts}
	if o.Under > 0 {
		t.Under = sum.Latencies.Under("", o.Under)
	}
	return SpendingOf(o, t), nil
}

// Attained returns the share of good checks, in per cent, and whether there is one.
func (s Spending) Attained() (percent float64, ok bool) {
	if s.Good+s.Bad == 0 {
		return 0, false
	}
	return 100 * float64(s.Good) / float64(s.Good+s.Bad), true
}

// Left returns how much of the budget is left, in per cent, below zero when it is overspent, and whether anything was measured.
func (s Spending) Left() (percent float64, ok bool) {
	if s.Good+s.Bad == 0 {
		return 0, false
	}
	return 100 * (1 - s.Rate()), true
}

// Rate returns the burn rate: the share of bad checks in relation to that which may be bad. 0 while nothing was measured.
func (s Spending) Rate() float64 {
	if s.Bad == 0 {
		return 0
	}
	return float64(s.Bad) / float64(s.Good+s.Bad) / s.allowed()
}

// allowed is the share of checks that may be bad.
func (s Spending) allowed() float64 { return 1 - s.target/100 }

// burns reports whether the budget is spent at a rate, or as fast as it can be where the target leaves so much room that the rate
// is never reached.
func (s Spending) burns(rate float64) bool {
	const rounding = 1e-9
	return s.Bad > 0 && s.Rate() >= min(rate, 1/s.allowed())*(1-rounding)
}

// Burning reports whether the budget of an objective is spent so fast that somebody should get up for it, or slower, but too fast
// to leave it be. tally adds up the checks of the time until the present that is this long.
func Burning(o store.Objective, tally func(time.Duration) store.Tally) (fast, slow bool) {
	burns := func(long, short time.Duration, rate float64) bool {
		over := SpendingOf(o, tally(long))
		return over.Bad > fewBad && over.burns(rate) && SpendingOf(o, tally(short)).burns(rate)
	}
	return burns(fastLong, fastShort, fastRate), burns(slowLong, slowShort, slowRate)
}

// ObjectiveIncident returns the incident about a budget that is spent at a rate, to be raised: fast says by which windows.
func ObjectiveIncident(e store.Endpoint, o store.Objective, rate float64, fast bool, at time.Time) store.Incident {
	windows := "the last 6 hours and the last 30 minutes"
	if fast {
		windows = "the last hour and the last 5 minutes"
	}
	i := store.Incident{
		Kind: store.IncidentObjective, Subject: store.SubjectOfObjective(e.ID, o.Name), EndpointID: e.ID, Title: o.Name,
		Severity: store.StatusDegraded, StartedAt: at, OpenedAt: at,
	}
	i.Cause.Message = fmt.Sprintf("It is spent %s times as fast as would last for %s, over %s.",
		strconv.FormatFloat(rate, 'f', 1, 64), counted(int64(o.Days), "day"), windows)
	return i
}
