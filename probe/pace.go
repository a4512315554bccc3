package probe

import "time"

const (
	// paceSamples is how many samples a measured pace needs before it takes the place of the preset's.
	paceSamples = 3
	// paceWeight is what one more sample counts in the moving average.
	paceWeight = 0.1
	// A pace beyond these bounds is a mistake of a clock or of a height, not one of a chain.
	minPace = 10 * time.Millisecond
	maxPace = 2 * time.Minute
)

// measured returns the measured time between two blocks, and whether there were enough samples.
func (b BlockPace) measured() (time.Duration, bool) {
	return b.Average, b.Samples >= paceSamples && b.Average > 0
}

// next returns the pace after one more look at the chain. The chain's own clock is the better one where it tells the time:
// it does not see how often we look. Prior is what the preset expects, zero when it has no idea: chains slower than the
// usual bounds are measured all the same.
func (b BlockPace) next(before, head Head, prior time.Duration) BlockPace {
	if before.Chain != head.Chain || before.Height >= head.Height {
		return b
	}
	took := head.Seen.Sub(before.Since)
	if !before.Time.IsZero() && !head.Time.IsZero() {
		took = head.Time.Sub(before.Time)
	} else if before.Since.IsZero() {
		return b
	}
	each := time.Duration(float64(took) / float64(head.Height-before.Height))
	if each < minPace || each > max(maxPace, 10*prior) {
		return b
	}
	b.Samples = min(b.Samples+1, 1000) // more would say nothing more
	weight := max(paceWeight, 1/float64(b.Samples))
	b.Average += time.Duration(weight * float64(each-b.Average))
	return b
}
