package store

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Rollup is what the checks of one endpoint at one location in one hour or day add up to.
type Rollup struct {
	EndpointID string
	Location   string
	Begin      time.Time // of the hour or the day, UTC
	Counts     Counts
	Classes    map[probe.Class]int // how many checks failed, by class; nil when none did
	Latencies  Latencies
}

// Add counts one check.
func (h *Rollup) Add(r probe.Result) {
	h.Counts.Add(r.Verdict)
	h.Latencies.Add(r)
	if r.Failure != nil && r.Failure.Class != "" {
		h.addClass(r.Failure.Class, 1)
	}
}

func (h *Rollup) addClass(class probe.Class, n int) {
	if h.Classes == nil {
		h.Classes = map[probe.Class]int{}
	}
	h.Classes[class] += n
}

// Merge takes in all that o counts. It shares nothing with o afterwards.
func (h *Rollup) Merge(o Rollup) error {
	h.Counts = h.Counts.Plus(o.Counts)
	h.Classes = maps.Clone(h.Classes)
	for class, n := range o.Classes {
		h.addClass(class, n)
	}
	return h.Latencies.Merge(o.Latencies)
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

// sumsForm is the first byte of what MarshalBinary writes, so that another form can take its place some day.
const sumsForm = 1

// MarshalBinary packs what the roll-up counts, without whose and when it is: a byte for the form; then numbers as
// [binary.AppendUvarint] writes them and texts after their length, namely the counts, how many classes there are, each class
// with its number; then the latencies as they pack themselves.
func (h Rollup) MarshalBinary() ([]byte, error) {
	c := h.Counts
	b := []byte{sumsForm}
	for _, n := range []int{c.Up, c.Degraded, c.Down, c.Gated, c.Unknown, len(h.Classes)} {
		b = binary.AppendUvarint(b, uint64(max(0, n)))
	}
	for _, class := range slices.Sorted(maps.Keys(h.Classes)) {
		b = appendText(b, string(class))
		b = binary.AppendUvarint(b, uint64(max(0, h.Classes[class])))
	}
	latencies, err := h.Latencies.MarshalBinary()
	return append(b, latencies...), err
}

// UnmarshalBinary fills in what MarshalBinary wrote; of no bytes at all, nothing. It keeps data.
func (h *Rollup) UnmarshalBinary(data []byte) error {
	h.Counts, h.Classes, h.Latencies = Counts{}, nil, Latencies{}
	if len(data) == 0 {
		return nil
	}
	if data[0] != sumsForm {
		return fmt.Errorf("read sums: form %d is not known", data[0])
	}
	r := unpacker{rest: data[1:]}
	c := &h.Counts
	for _, n := range []*int{&c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown} {
		*n = r.number()
	}
	for n := r.number(); n > 0 && r.err == nil; n-- {
		class := probe.Class(r.text())
		h.addClass(class, r.number())
	}
	if r.err != nil {
		return fmt.Errorf("read sums: %w", r.err)
	}
	return h.Latencies.UnmarshalBinary(r.rest)
}

// appendText writes a text after its length.
func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// unpacker reads numbers and texts in turn. After the first error all that it reads is nothing.
type unpacker struct {
	rest []byte
	err  error
}

func (u *unpacker) number() int {
	n, size := binary.Uvarint(u.rest)
	if size <= 0 || n > math.MaxInt32 {
		u.rest, u.err = nil, errPacked
		return 0
	}
	u.rest = u.rest[size:]
	return int(n)
}

func (u *unpacker) text() []byte {
	n := u.number()
	if n > len(u.rest) {
		u.rest, u.err = nil, errPacked
		return nil
	}
	text := u.rest[:n:n]
	u.rest = u.rest[n:]
	return text
}

var errPacked = errors.New("it ends too early, or holds a number that is too large")

// EncodeClasses returns counts by class as databases keep them; nil when there are none.
func EncodeClasses(classes map[probe.Class]int) ([]byte, error) {
	if len(classes) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(classes)
	if err != nil {
		return nil, fmt.Errorf("write classes: %w", err)
	}
	return text, nil
}

// DecodeClasses reads what EncodeClasses wrote.
func DecodeClasses(text []byte) (map[probe.Class]int, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var classes map[probe.Class]int
	if err := json.Unmarshal(text, &classes); err != nil {
		return nil, fmt.Errorf("read classes: %w", err)
	}
	return classes, nil
}

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

// HourOf returns the beginning of the hour in which t lies.
func HourOf(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }

// DayOf returns the beginning of the day in UTC in which t lies.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Counts are checks by verdict.
type Counts struct {
	Up       int `json:"up"`
	Degraded int `json:"degraded"`
	Down     int `json:"down"`
	Gated    int `json:"gated"`
	Unknown  int `json:"unknown"`
}

// Add counts one verdict.
func (c *Counts) Add(v probe.Verdict) {
	switch v {
	case probe.Up:
		c.Up++
	case probe.Degraded:
		c.Degraded++
	case probe.Down:
		c.Down++
	case probe.Gated:
		c.Gated++
	default:
		c.Unknown++
	}
}

// Plus returns the sum of two counts.
func (c Counts) Plus(d Counts) Counts {
	return Counts{c.Up + d.Up, c.Degraded + d.Degraded, c.Down + d.Down, c.Gated + d.Gated, c.Unknown + d.Unknown}
}

// Total is the number of checks counted.
func (c Counts) Total() int { return c.Up + c.Degraded + c.Down + c.Gated + c.Unknown }

// Uptime returns the share of checks that found the endpoint answering, in per cent, and whether there is one: gated
// and unknown checks count neither way.
func (c Counts) Uptime() (percent float64, ok bool) {
	good, all := c.Up+c.Degraded, c.Up+c.Degraded+c.Down
	if all == 0 {
		return 0, false
	}
	return 100 * float64(good) / float64(all), true
}
