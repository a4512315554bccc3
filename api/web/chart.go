package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Charts are SVG. What is stretched to the width of the page (bars, lines, bands) lies in a plot with a coordinate system of its own;
// what must keep its shape (text, marks) lies in strips above and below it, whose coordinates are per cent of the same width. So
// one picture fits a phone and a wall, and nothing is positioned by inline styles.
const (
	plotHeight = 1000 // units of a plot, from top to bottom
	slotWidth  = 10   // units of one bucket, from left to right
)

// LatencyChart shows the latency of an endpoint over time: the median of each step stacked, percentiles of whole checks as lines.
type LatencyChart struct {
	Hourly  bool     // buckets are hours, otherwise days in UTC
	Steps   []string // in the order of a conversation, at most MaxSeries
	Buckets []Bucket // without gaps between them, oldest first
	Marks   []Mark
	Base    string // address of the same chart of no particular time: from and to are added to it
}

// MaxSeries is how many steps are told apart by colour; the rest are in the table of percentiles.
const MaxSeries = 8

// Bucket is one hour or day of a chart.
type Bucket struct {
	Begin   time.Time
	Whole   *Percentiles // of good checks; nil when there was none
	Steps   []float64    // median of each step of the chart, in milliseconds; 0 where it was not taken
	Counts  store.Counts
	Missed  bool // checks were due and none was made
	Settled bool // it is over
}

// Percentiles are latencies in milliseconds.
type Percentiles struct{ P50, P90, P95, P99 float64 }

// Mark is something that happened in the time of a chart.
type Mark struct {
	Kind  string // "incident", "maintenance" or "contract"
	Begin time.Time
	End   time.Time // the same as Begin for a moment
	Open  bool      // it is still going on
	Title string    // of what is no incident
	Said  Said      // of an incident
	Link  string
	Tone  string // of an incident
}

// Empty reports whether there is nothing to draw.
func (c LatencyChart) Empty() bool {
	return !slices.ContainsFunc(c.Buckets, func(b Bucket) bool { return b.Whole != nil })
}

// Begin and End are those of the time that the chart shows.
func (c LatencyChart) Begin() time.Time { return c.Buckets[0].Begin }

// End is where the last bucket ends.
func (c LatencyChart) End() time.Time { return c.Buckets[len(c.Buckets)-1].Begin.Add(c.step()) }

func (c LatencyChart) step() time.Duration {
	if c.Hourly {
		return time.Hour
	}
	return 24 * time.Hour
}

// Last is the newest bucket in which something was measured. There is one unless the chart is empty.
func (c LatencyChart) Last() Bucket {
	for _, b := range slices.Backward(c.Buckets) {
		if b.Whole != nil {
			return b
		}
	}
	return Bucket{}
}

// Peak is the bucket with the slowest check.
func (c LatencyChart) Peak() Bucket {
	var peak Bucket
	for _, b := range c.Buckets {
		if b.Whole != nil && (peak.Whole == nil || b.Whole.P99 > peak.Whole.P99) {
			peak = b
		}
	}
	return peak
}

// ViewBox is the coordinate system of the plot.
func (c LatencyChart) ViewBox() string {
	return fmt.Sprintf("0 0 %d %d", len(c.Buckets)*slotWidth, plotHeight)
}

// Top is the latency at the upper edge of the plot, in milliseconds. A few buckets that are far above all others do not press the
// rest flat: they are cut, see Cut.
func (c LatencyChart) Top() float64 {
	var tops []float64
	for _, b := range c.Buckets {
		if b.Whole != nil {
			tops = append(tops, b.Whole.P99)
		}
	}
	return topOf(tops)
}

// topOf returns the upper edge of a plot of values.
func topOf(values []float64) float64 {
	const (
		few  = 8   // values, below which none is an exception
		most = 0.9 // of the values are no exceptions
		far  = 4.0 // times above most is an exception
	)
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) || v < 0 })
	if len(values) == 0 {
		return niceTop(0)
	}
	slices.Sort(values)
	top := values[len(values)-1]
	usual := values[int(most*float64(len(values)-1))]
	if len(values) >= few && usual > 0 && top > far*usual {
		return niceTop(1.5 * usual)
	}
	return niceTop(top)
}

// niceTop returns the next number whose quarters are easy to read.
func niceTop(v float64) float64 {
	const least = 0.1 // milliseconds
	v = max(v, least)
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8} {
		if n*power >= v*(1-1e-9) {
			return n * power
		}
	}
	return 10 * power
}

// GridLine is a line of the grid with its label.
type GridLine struct {
	Y     int // in the plot
	At    string
	Label string
}

// Ticks are the lines of the grid, from the top.
func (c LatencyChart) Ticks() []GridLine { return ticksOf(c.Top()) }

func ticksOf(top float64) []GridLine {
	const parts = 4
	ticks := make([]GridLine, 0, parts+1)
	for i := range parts + 1 {
		ticks = append(ticks, GridLine{i * plotHeight / parts, per100(float64(i), parts), tickLabel(top*float64(parts-i)/parts, top)})
	}
	return ticks
}

// tickLabel writes a latency in the unit of the whole axis.
func tickLabel(ms, top float64) string {
	switch {
	case ms == 0:
		return "0"
	case top >= 1000:
		return strconv.FormatFloat(math.Round(ms)/1000, 'f', -1, 64) + " s"
	}
	return strconv.FormatFloat(math.Round(ms*1000)/1000, 'f', -1, 64) + " ms"
}

// Series is one colour of a stack.
type Series struct {
	Index int // names the CSS class
	Name  string
	Path  string
}

// Stacks are the steps as bars on top of each other, the first one lowest.
func (c LatencyChart) Stacks() []Series {
	rows := make([][]float64, len(c.Buckets))
	for i, b := range c.Buckets {
		if b.Whole != nil {
			rows[i] = b.Steps
		}
	}
	return stack(c.Steps, rows, c.Top())
}

// stack draws rows of values as bars that are divided into series.
func stack(names []string, rows [][]float64, top float64) []Series {
	paths := make([]strings.Builder, len(names))
	for i, row := range rows {
		sum, below := 0.0, plotHeight
		for n, v := range row[:min(len(row), len(names))] {
			if !(v > 0) {
				continue
			}
			sum += v
			if above := height(sum, top); above < below {
				fmt.Fprintf(&paths[n], "M%d %dV%dh%dV%dz", i*slotWidth+1, below, above, slotWidth-2, below)
				below = above
			}
		}
	}
	series := make([]Series, 0, len(names))
	for i, name := range names {
		series = append(series, Series{i, name, paths[i].String()})
	}
	return series
}

// height is where a value lies in a plot. What is above the top lies at the upper edge, and what is no number at the lower one.
func height(v, top float64) int {
	share := v / top
	if !(share > 0) {
		return plotHeight
	}
	return plotHeight - int(math.Round(plotHeight*min(1, share)))
}

// Line is one percentile of whole checks.
type Line struct {
	Name string // "p50": names the CSS class
	Path string
}

// Lines are the percentiles, interrupted where nothing was measured.
func (c LatencyChart) Lines() []Line {
	of := map[string]func(Percentiles) float64{
		"p50": func(p Percentiles) float64 { return p.P50 }, "p90": func(p Percentiles) float64 { return p.P90 },
		"p95": func(p Percentiles) float64 { return p.P95 }, "p99": func(p Percentiles) float64 { return p.P99 },
	}
	top, lines := c.Top(), []Line(nil)
	for _, name := range []string{"p50", "p90", "p95", "p99"} {
		lines = append(lines, Line{name, c.line(top, of[name])})
	}
	return lines
}

func (c LatencyChart) line(top float64, of func(Percentiles) float64) string {
	var b strings.Builder
	measured := func(i int) bool { return i >= 0 && i < len(c.Buckets) && c.Buckets[i].Whole != nil }
	for i := range c.Buckets {
		if !measured(i) {
			continue
		}
		y := height(of(*c.Buckets[i].Whole), top)
		switch {
		case !measured(i-1) && !measured(i+1): // alone: a line of its own width, or nobody would see it
			fmt.Fprintf(&b, "M%d %dh%d", i*slotWidth+1, y, slotWidth-2)
		case !measured(i - 1):
			fmt.Fprintf(&b, "M%d %d", i*slotWidth+slotWidth/2, y)
		default:
			fmt.Fprintf(&b, "L%d %d", i*slotWidth+slotWidth/2, y)
		}
	}
	return b.String()
}

// Area is a stretch of the plot.
type Area struct{ X, Width int }

// Gaps are the stretches in which nothing was measured although something was due.
func (c LatencyChart) Gaps() []Area { return c.areas(func(b Bucket) bool { return b.Missed }) }

// Failed are the stretches in which it was checked, and no check was good.
func (c LatencyChart) Failed() []Area {
	return c.areas(func(b Bucket) bool { return b.Whole == nil && b.Counts.Total() > 0 })
}

func (c LatencyChart) areas(in func(Bucket) bool) []Area {
	var areas []Area
	for i, b := range c.Buckets {
		switch last := len(areas) - 1; {
		case !in(b):
		case last >= 0 && areas[last].X+areas[last].Width == i*slotWidth:
			areas[last].Width += slotWidth
		default:
			areas = append(areas, Area{i * slotWidth, slotWidth})
		}
	}
	return areas
}

// Hit is what is told of a bucket under the pointer, and in the table.
type Hit struct {
	X int
	Bucket
	Of []Part // the steps that were taken
}

// Part is one series of one bar.
type Part struct {
	Index int
	Name  string
	MS    float64
}

// Width of a hit in the plot.
func (Hit) Width() int { return slotWidth }

// Hits are all buckets.
func (c LatencyChart) Hits() []Hit {
	hits := make([]Hit, 0, len(c.Buckets))
	for i, b := range c.Buckets {
		h := Hit{X: i * slotWidth, Bucket: b}
		for n, ms := range b.Steps[:min(len(b.Steps), len(c.Steps))] {
			if ms > 0 {
				h.Of = append(h.Of, Part{n, c.Steps[n], ms})
			}
		}
		hits = append(hits, h)
	}
	return hits
}

// Medians are those of all of the steps, in their order; 0 where one was not taken.
func (h Hit) Medians(steps []string) []float64 {
	medians := make([]float64, len(steps))
	copy(medians, h.Steps)
	return medians
}

// When names a bucket of the chart.
func (c LatencyChart) When(b Bucket) Spoken { return c.Slot(b).When() }

// Slot is the hour or day of a bucket.
func (c LatencyChart) Slot(b Bucket) Slot { return Slot{Begin: b.Begin, Hour: c.Hourly} }

// Spot is a place in a strip.
type Spot struct {
	X, Width string  // per cent
	MS       float64 // of what is cut
	Mark
}

// Cut are the buckets whose slowest checks lie above the plot.
func (c LatencyChart) Cut() []Spot {
	top := c.Top()
	var spots []Spot
	for i, b := range c.Buckets {
		if b.Whole != nil && b.Whole.P99 > top {
			spots = append(spots, Spot{X: per100(float64(i)+0.5, float64(len(c.Buckets))), MS: b.Whole.P99})
		}
	}
	return spots
}

// Stretches are the marks that last, and Moments those that do not.
func (c LatencyChart) Stretches(kind string) []Spot {
	begin, length := c.Begin(), c.End().Sub(c.Begin())
	var spots []Spot
	for _, m := range c.Marks {
		if m.Kind != kind || m.End.Before(begin) || !m.Begin.Before(c.End()) {
			continue
		}
		from, to := max(0, m.Begin.Sub(begin)), min(length, m.End.Sub(begin))
		const least = 0.004 // of the width, so that it can be seen and hit
		width := max(float64(to-from)/float64(length), least)
		from = min(from, time.Duration((1-width)*float64(length)))
		spots = append(spots, Spot{X: per100(float64(from), float64(length)), Width: per100(width, 1), Mark: m})
	}
	return spots
}

// Moments are the marks of a kind that are no more than a moment.
func (c LatencyChart) Moments(kind string) []Spot {
	begin, length := c.Begin(), c.End().Sub(c.Begin())
	var spots []Spot
	for _, m := range c.Marks {
		if m.Kind == kind && !m.Begin.Before(begin) && m.Begin.Before(c.End()) {
			spots = append(spots, Spot{X: per100(float64(m.Begin.Sub(begin)), float64(length)), Mark: m})
		}
	}
	return spots
}

// Marked reports whether there is a mark of a kind.
func (c LatencyChart) Marked(kind string) bool {
	return slices.ContainsFunc(c.Marks, func(m Mark) bool { return m.Kind == kind })
}

// TimeTick is a label below a plot.
type TimeTick struct {
	X      string // per cent
	Anchor string // how the text stands to X
	At     time.Time
	Clock  bool // the label is a time of day, in UTC; otherwise a date
}

// Text is the label where it is a time of day.
func (t TimeTick) Text() string { return t.At.UTC().Format("15:04") }

// Times are the labels of the time axis, few enough for a phone.
func (c LatencyChart) Times() []TimeTick {
	const most = 5
	n := len(c.Buckets)
	every := max(1, (n+most-1)/most)
	clock := c.Hourly && n <= 48
	if c.Hourly && !clock { // labels are dates then, and dates begin at midnight
		every = (every + 23) / 24 * 24
	}
	var ticks []TimeTick
	for i, b := range c.Buckets {
		since := i
		if c.Hourly && !clock {
			since = b.Begin.UTC().Hour() + 24*int(store.DayOf(b.Begin).Sub(store.DayOf(c.Begin()))/(24*time.Hour))
		}
		if since%every != 0 {
			continue
		}
		tick := TimeTick{X: per100(float64(i), float64(n)), Anchor: "middle", At: b.Begin, Clock: clock}
		switch {
		case i == 0:
			tick.Anchor = "start"
		case float64(i) > 0.94*float64(n):
			tick.Anchor = "end"
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// per100 writes a share of a whole for an attribute of a strip.
func per100(part, whole float64) string {
	if !(whole > 0) {
		return "0%"
	}
	return strconv.FormatFloat(math.Round(1e4*part/whole)/100, 'f', -1, 64) + "%"
}

// ToneOf is how a status looks at a glance.
func ToneOf(s store.Status) string { return tagOf(s).Tone }

// WordOf is the word for a status.
func WordOf(s store.Status) string { return tagOf(s).Word }
