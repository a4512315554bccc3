package web

import (
	"fmt"
	"slices"
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
var barHeights = map[string]int{"full": 100, "good": 84, "degraded": 84, "poor": 62, "bad": 40, "unsure": 24, "idle": 12, "none": 12}

// column is the outline of a bar that stands on the ground of a drawing so high. A degraded one is cut into stripes, of which five
// and the gaps above them fill its height.
func column(level string, x, width, high, ground int) string {
	if level != "degraded" {
		return fmt.Sprintf("M%d %dh%dv%dh-%dz", x, ground-high, width, high, width)
	}
	const stripes = 5
	var d strings.Builder
	step := float64(high) / stripes
	for n := range stripes {
		fmt.Fprintf(&d, "M%d %.4gh%dv-%.4gh-%dz", x, float64(ground)-float64(n)*step, width, step*0.65, width)
	}
	return d.String()
}

// ViewBox is that of the drawing.
func (b DayBars) ViewBox() string {
	return fmt.Sprintf("0 0 %d %d", max(1, len(b)*barStep-1), barHeight)
}

// BarPath is the outline of all bars of one level.
type BarPath struct{ Level, Outline string }

// Paths returns the bars: a path for each level that occurs, so that a page of many endpoints stays small.
func (b DayBars) Paths() []BarPath {
	var paths []BarPath
	for _, level := range []string{"full", "good", "degraded", "poor", "bad", "unsure", "idle", "none"} {
		var d strings.Builder
		for i, slot := range b {
			if slot.Level() == level {
				d.WriteString(column(level, i*barStep, barWidth, barHeights[level], barHeight))
			}
		}
		if d.Len() > 0 {
			paths = append(paths, BarPath{level, d.String()})
		}
	}
	return paths
}

// Poor is how many days were worse than 99 %.
func (b DayBars) Poor() int { return b.count("poor", "bad") }

// Degraded is how many days were not, but degraded.
func (b DayBars) Degraded() int { return b.count("degraded") }

func (b DayBars) count(levels ...string) int {
	n := 0
	for _, slot := range b {
		if slices.Contains(levels, slot.Level()) {
			n++
		}
	}
	return n
}
