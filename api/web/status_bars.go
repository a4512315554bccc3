package web

import (
	"fmt"
	"strings"
)

// DayBars are days, oldest first, drawn as one bar each.
type DayBars []Slot

// How wide a bar is with the gap behind it, and how high the highest, in units of the drawing.
const (
	barStep   = 4
	barWidth  = 3
	barHeight = 100
)

// barHeights are how high a bar of each level is: colour is not all that tells them apart.
var barHeights = map[string]int{"full": 100, "good": 84, "poor": 62, "bad": 40, "unsure": 24, "idle": 12, "none": 12}

// ViewBox is that of the drawing.
func (b DayBars) ViewBox() string {
	return fmt.Sprintf("0 0 %d %d", max(1, len(b)*barStep-1), barHeight)
}

// BarPath is the outline of all bars of one level.
type BarPath struct{ Level, Outline string }

// Paths returns the bars: a path for each level that occurs, so that a page of many endpoints stays small.
func (b DayBars) Paths() []BarPath {
	var paths []BarPath
	for _, level := range []string{"full", "good", "poor", "bad", "unsure", "idle", "none"} {
		var d strings.Builder
		for i, slot := range b {
			if slot.Level() == level {
				high := barHeights[level]
				fmt.Fprintf(&d, "M%d %dh%dv%dh-%dz", i*barStep, barHeight-high, barWidth, high, barWidth)
			}
		}
		if d.Len() > 0 {
			paths = append(paths, BarPath{level, d.String()})
		}
	}
	return paths
}

// Poor is how many days were worse than 99 %.
func (b DayBars) Poor() int {
	n := 0
	for _, slot := range b {
		if level := slot.Level(); level == "poor" || level == "bad" {
			n++
		}
	}
	return n
}
