package web

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// PhaseChart shows of the latest checks how long each phase of the network took, over all of their steps. Roll-ups know steps, but
// no phases: this is what is left of single checks.
type PhaseChart struct {
	Slug   string
	Checks []Check // oldest first
}

// phaseNames are the phases in the order in which they come, and the CSS classes by index.
var phaseNames = []string{"DNS", "connect", "TLS", "first byte", "body", "other"}

// phaseSums returns how long each phase took in a check, in milliseconds, in the order of phaseNames. What no phase accounts for is
// "other".
func phaseSums(c Check) []float64 {
	sums := make([]time.Duration, len(phaseNames))
	for _, s := range c.Steps {
		rest := s.Latency
		for i, d := range []time.Duration{s.Phases.DNS, s.Phases.Connect, s.Phases.TLS, s.Phases.FirstByte, s.Phases.Body} {
			d = max(0, min(d, rest))
			sums[i] += d
			rest -= d
		}
		sums[len(sums)-1] += max(0, rest)
	}
	in := make([]float64, 0, len(sums))
	for _, d := range sums {
		in = append(in, float64(d)/float64(time.Millisecond))
	}
	return in
}

// Empty reports whether there is nothing to draw.
func (c PhaseChart) Empty() bool { return len(c.Checks) == 0 }

// First is the oldest check, of which there is one at least.
func (c PhaseChart) First() Check { return c.Checks[0] }

// Last is the newest.
func (c PhaseChart) Last() Check { return c.Checks[len(c.Checks)-1] }

// ViewBox is the coordinate system of the plot.
func (c PhaseChart) ViewBox() string {
	return LatencyChart{Buckets: make([]Bucket, len(c.Checks))}.ViewBox()
}

// Top is the latency at the upper edge of the plot, in milliseconds.
func (c PhaseChart) Top() float64 {
	var tops []float64
	for _, check := range c.Checks {
		sum := 0.0
		for _, v := range phaseSums(check) {
			sum += v
		}
		tops = append(tops, sum)
	}
	return topOf(tops)
}

// Ticks are the lines of the grid, from the top.
func (c PhaseChart) Ticks() []GridLine { return ticksOf(c.Top()) }

// Stacks are the phases as bars on top of each other, the first one lowest.
func (c PhaseChart) Stacks() []Series {
	rows := make([][]float64, 0, len(c.Checks))
	for _, check := range c.Checks {
		rows = append(rows, phaseSums(check))
	}
	return stack(phaseNames, rows, c.Top())
}

// PhaseHit is what is told of a check under the pointer, and in the table.
type PhaseHit struct {
	X, Width int
	Check    Check
	Of       []Part
}

// Hits are all checks.
func (c PhaseChart) Hits() []PhaseHit {
	hits := make([]PhaseHit, 0, len(c.Checks))
	for i, check := range c.Checks {
		h := PhaseHit{X: i * slotWidth, Width: slotWidth, Check: check}
		for n, ms := range phaseSums(check) {
			h.Of = append(h.Of, Part{n, phaseNames[n], ms})
		}
		hits = append(hits, h)
	}
	return hits
}

// Troubled are the checks that were not up, as marks above their bars.
func (c PhaseChart) Troubled() []Spot {
	var spots []Spot
	for i, check := range c.Checks {
		if check.Verdict != probe.Up {
			at := per100(float64(i)+0.5, float64(len(c.Checks)))
			spots = append(spots, Spot{X: at, Mark: Mark{Tone: tagOf(check.Verdict).Tone, Title: tagOf(check.Verdict).Word}})
		}
	}
	return spots
}
