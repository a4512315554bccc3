package web

import (
	"math"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Waterfall shows the steps of a check on one time line, each divided into its phases.
type Waterfall struct {
	Check Check
	Total time.Duration
}

// Waterfall returns that of a check.
func (c Check) Waterfall() Waterfall { return Waterfall{c, c.Total()} }

// Rows are the steps in the order in which they were sent.
func (w Waterfall) Rows() []FallRow {
	rows := make([]FallRow, 0, len(w.Check.Steps))
	for _, s := range w.Check.Steps {
		row := FallRow{Step: s, X: w.at(s.Start), Width: w.at(s.Latency)}
		at, rest := s.Start, s.Latency
		for _, p := range PhasesOf(s) {
			d := min(p.Duration, rest)
			row.Parts = append(row.Parts, FallPart{p.Name, p.Words, w.at(at), w.at(d), d})
			at, rest = at+d, rest-d
		}
		if rest > 0 {
			row.Parts = append(row.Parts, FallPart{"other", "other", w.at(at), w.at(rest), rest})
		}
		rows = append(rows, row)
	}
	return rows
}

// at is a stretch of time as a share of the whole, in per cent.
func (w Waterfall) at(d time.Duration) string {
	return per100(float64(max(0, min(d, w.Total))), float64(w.Total))
}

// FallRow is one step of a waterfall.
type FallRow struct {
	Step     probe.Step
	X, Width string // per cent
	Parts    []FallPart
}

// FallPart is one phase of a step.
type FallPart struct {
	Phase    string // closed list; names the CSS class
	Words    string
	X, Width string // per cent
	Took     time.Duration
}

// FallTick is a line of the grid with its label.
type FallTick struct{ X, Anchor, Label string }

// Ticks divide the time line into a few even parts.
func (w Waterfall) Ticks() []FallTick {
	total := float64(w.Total) / float64(time.Millisecond)
	if !(total > 0) {
		return nil
	}
	step := niceTop(total / 4)
	var ticks []FallTick
	for v := 0.0; v <= total; v += step {
		t := FallTick{per100(v, total), "middle", tickLabel(math.Round(v*1000)/1000, total)}
		if v == 0 {
			t.Anchor = "start"
		} else if v > 0.94*total {
			t.Anchor = "end"
		}
		ticks = append(ticks, t)
	}
	return ticks
}
