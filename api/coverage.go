package api

import (
	"math"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// survey holds what was measured of an endpoint in a window against what was due.
type survey struct {
	endpoint store.Endpoint
	rollups  []store.Rollup // oldest first
	step     time.Duration  // an hour, or a day in UTC
	due      func(from, to time.Time) float64

	begin, end time.Time // what is looked at
	// settled is the end of the time of which every check is known: one that came due later may still be under way.
	settled time.Time
}

// recordedWithin is how long after its end a check is known.
const recordedWithin = 5 * time.Second

func (s *Server) survey(p past, w window) survey {
	return s.surveyOf(p, p.in(w), w.from(p.now), p.now, w.grain)
}

// surveyOf looks at the roll-ups of any stretch of whole hours or days, which ends at the latest at p.now.
func (s *Server) surveyOf(p past, rollups []store.Rollup, from, to time.Time, grain store.Grain) survey {
	v := survey{endpoint: p.endpoint, rollups: rollups, step: grainStep(grain), due: s.dueOf(p.endpoint)}
	v.begin, v.end = latest(from, p.endpoint.CreatedAt), to
	if p.endpoint.Paused { // for as long as nobody has touched it, at least
		v.end = earliest(v.end, p.endpoint.UpdatedAt)
	}
	v.end = latest(v.begin, v.end)
	v.settled = latest(v.begin, earliest(v.end, p.now.Add(-p.endpoint.Timeout-recordedWithin)))
	return v
}

// dueOf returns what counts the times at which e is due, from one location.
func (s *Server) dueOf(e store.Endpoint) func(from, to time.Time) float64 {
	if s.cfg.Due != nil {
		count := s.cfg.Due(e.Schedule, e.ID)
		return func(from, to time.Time) float64 {
			if !from.Before(to) {
				return 0
			}
			return float64(count(from, to))
		}
	}
	period, err := s.cfg.Period(e.Schedule)
	return func(from, to time.Time) float64 {
		if err != nil || period <= 0 || !from.Before(to) {
			return 0
		}
		return float64(to.Sub(from)) / float64(period)
	}
}

// coverage is the share of the checks due that were made, in per cent. Checks made out of turn, to confirm a failure or on
// demand, count only as far as something was due in the same hour or day: they do not make up for others.
func (v survey) coverage() float64 {
	if len(v.rollups) == 0 {
		return 0
	}
	expected, measured := 0.0, 0.0
	watched := v.watched()
	for _, s := range watched {
		expected += math.Floor(v.due(s.from, s.to))
	}
	for _, r := range v.rollups {
		s := watched[r.Location]
		due := v.due(latest(r.Begin, s.from), earliest(r.Begin.Add(v.step), s.to))
		measured += min(float64(r.Counts.Total()), math.Ceil(due))
	}
	if expected < 1 {
		return 100 // nothing was due yet, and there was a check
	}
	return floor3(min(100, 100*measured/expected))
}

// span is some time.
type span struct{ from, to time.Time }

// watched returns when checks were due at each location. When one joined or left is not kept: those that come first count
// from the beginning, and others from the hour or day after their first check; one that the endpoint no longer names counts
// until its last.
func (v survey) watched() map[string]span {
	checked := map[string]span{} // from the first hour or day with a check to the last
	for _, r := range v.rollups {
		s, seen := checked[r.Location]
		if !seen {
			s.from = r.Begin
		}
		s.to = r.Begin
		checked[r.Location] = s
	}
	spans := map[string]span{}
	for _, name := range v.endpoint.Locations {
		spans[name] = span{v.begin, v.settled}
	}
	for name, s := range checked {
		due := span{v.begin, v.settled}
		if s.from.After(v.rollups[0].Begin) {
			due.from = latest(v.begin, s.from.Add(v.step))
		}
		if !v.endpoint.ProbedFrom(name) {
			due.to = earliest(v.settled, s.to)
		}
		spans[name] = due
	}
	return spans
}

// maxGaps bounds the gaps that are told; of more, the latest are.
const maxGaps = 100

// gaps returns the hours or days, in a row as one, in which something was due and nothing was measured from anywhere.
func (v survey) gaps() []Stretch {
	gaps := []Stretch{}
	measured := map[int64]bool{}
	for _, r := range v.rollups {
		if r.Counts.Total() > 0 {
			measured[r.Begin.Unix()] = true
		}
	}
	end := func(from, to time.Time) {
		if from.Before(to) && v.due(from, earliest(to, v.settled)) >= 1 {
			gaps = append(gaps, Stretch{Time{from}, Time{to}})
		}
	}
	from := v.begin // of the stretch without a check that at lies in
	for at := v.begin.UTC().Truncate(v.step); at.Before(v.end); at = at.Add(v.step) {
		if measured[at.Unix()] {
			end(from, at)
			from = at.Add(v.step)
		}
	}
	end(from, v.end)
	return gaps[max(0, len(gaps)-maxGaps):]
}

// covers reports whether any of the gaps has a part in [from, to).
func covers(gaps []Stretch, from, to time.Time) bool {
	return slices.ContainsFunc(gaps, func(g Stretch) bool { return g.From.Before(to) && g.To.After(from) })
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
