package store

import (
	"cmp"
	"slices"
	"time"
)

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

// MergeRollups returns roll-ups by the hour or by the day: those of one endpoint and location that lie in the same one are
// merged. They come oldest first, then by endpoint and location.
func MergeRollups(grain Grain, parts []Rollup) ([]Rollup, error) {
	merged := slices.Clone(parts)
	for i := range merged {
		merged[i].Begin = grain.Begin(merged[i].Begin)
	}
	slices.SortStableFunc(merged, Rollup.compare)
	out := make([]Rollup, 0, len(merged))
	own := false // the last one shares nothing with what was given
	for _, part := range merged {
		last := len(out) - 1
		if last < 0 || out[last].compare(part) != 0 {
			out, own = append(out, part), false
			continue
		}
		if !own {
			given := out[last]
			out[last], own = Rollup{EndpointID: given.EndpointID, Location: given.Location, Begin: given.Begin}, true
			if err := out[last].Merge(given); err != nil {
				return nil, err
			}
		}
		if err := out[last].Merge(part); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (h Rollup) compare(o Rollup) int {
	return cmp.Or(h.Begin.Compare(o.Begin), cmp.Compare(h.EndpointID, o.EndpointID), cmp.Compare(h.Location, o.Location))
}

// CountsOf returns the counts of a roll-up that MarshalBinary wrote.
func CountsOf(data []byte) (Counts, error) {
	var r Rollup
	err := r.UnmarshalBinary(data)
	return r.Counts, err
}
