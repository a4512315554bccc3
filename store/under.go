package store

import (
	"slices"
	"time"
)

// Under returns how many of the latencies of a step, or of whole checks when step is empty, were shorter than d. A latency within
// sketchAccuracy of d may be taken for either.
func (l Latencies) Under(step string, d time.Duration) int {
	l = l.unpacked()
	i := slices.IndexFunc(l.sketches, func(s sketch) bool { return s.step == step })
	if i < 0 || d <= 0 {
		return 0
	}
	s, limit := &l.sketches[i], Milliseconds(d)
	n := s.zeros
	for _, b := range s.bins {
		if sketchMapping.Value(int(b.index)) < limit {
			n += uint64(b.count)
		}
	}
	if s.span != nil {
		for k, count := range s.span.counts {
			if sketchMapping.Value(s.span.first+k) < limit {
				n += count
			}
		}
	}
	return int(n)
}
