package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Rollup is what the checks of one endpoint at one location in one hour, or in one day in UTC, add up to.
type Rollup struct {
	EndpointID string
	Location   string
	Begin      time.Time // of the hour or day, UTC
	Counts     Counts
	Classes    map[probe.Class]int // why checks were not up; nil when all were
	Latencies  Latencies
}

// maxClasses bounds the classes of one roll-up. An endpoint fails in a few ways; what is beyond is in Counts alone.
const maxClasses = 32

// AddMaintained counts one check that was made while the endpoint was under maintenance.
func (h *Rollup) AddMaintained() { h.Counts.Maintenance++ }

// Add counts one check.
func (h *Rollup) Add(r probe.Result) {
	h.Counts.Add(r.Verdict)
	if r.Verdict != probe.Up && r.Failure != nil && r.Failure.Class != "" {
		h.addClass(r.Failure.Class, 1)
	}
	h.Latencies.Add(r)
}

func (h *Rollup) addClass(c probe.Class, n int) {
	if _, ok := h.Classes[c]; !ok && len(h.Classes) >= maxClasses {
		return
	}
	if h.Classes == nil {
		h.Classes = map[probe.Class]int{}
	}
	h.Classes[c] += n
}

// Merge takes in all that m counted, which stays as it is; whose and of when m is does not matter. It fails as
// [Latencies.Merge] does.
func (h *Rollup) Merge(m Rollup) error {
	if err := h.Latencies.Merge(m.Latencies); err != nil {
		return err
	}
	h.Counts = h.Counts.Plus(m.Counts)
	for _, c := range slices.Sorted(maps.Keys(m.Classes)) { // in order, so that the bound always leaves out the same
		h.addClass(c, m.Classes[c])
	}
	return nil
}

// Clone returns a copy that can be added to without a change to h.
func (h Rollup) Clone() Rollup {
	h.Classes, h.Latencies = maps.Clone(h.Classes), h.Latencies.Clone()
	return h
}

// HourOf returns the beginning of the hour in which t lies.
func HourOf(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }

// DayOf returns the beginning of the day, in UTC, in which t lies.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// The first byte of an encoded roll-up: of five counts, or of six where there are any under maintenance.
const (
	rollupVersion    = 1
	rollupMaintained = 2
)

var errRollup = errors.New("read roll-up: not a roll-up")

// MarshalBinary encodes what h counted, but neither whose nor of when it is: a byte with the version, the counts, the
// classes with how many there are first, the latencies as Latencies.MarshalBinary returns them.
func (h Rollup) MarshalBinary() ([]byte, error) {
	counts := h.Counts.all()
	version, written := byte(rollupVersion), counts[:5]
	if h.Counts.Maintenance > 0 {
		version, written = rollupMaintained, counts[:]
	}
	data := append(make([]byte, 0, 512), version)
	for _, n := range written {
		data = binary.AppendUvarint(data, uint64(n))
	}
	data = binary.AppendUvarint(data, uint64(len(h.Classes)))
	if len(h.Classes) > 0 {
		for _, c := range slices.Sorted(maps.Keys(h.Classes)) {
			data = binary.AppendUvarint(appendText(data, string(c)), uint64(h.Classes[c]))
		}
	}
	return h.Latencies.AppendBinary(data)
}

// UnmarshalBinary fills in what MarshalBinary wrote and leaves the other members alone; no bytes at all are a roll-up of
// no checks.
func (h *Rollup) UnmarshalBinary(data []byte) error {
	h.Counts, h.Classes, h.Latencies = Counts{}, nil, Latencies{}
	if len(data) == 0 {
		return nil
	}
	var counts [6]int
	known := 5
	switch data[0] {
	case rollupVersion:
	case rollupMaintained:
		known = len(counts)
	default:
		return fmt.Errorf("read roll-up: version %d is not known", data[0])
	}
	rest := data[1:]
	for i := range known {
		n, after, ok := cutCount(rest)
		if !ok {
			return errRollup
		}
		counts[i], rest = n, after
	}
	h.Counts = Counts{counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]}
	classes, rest, ok := cutCount(rest)
	if !ok || classes > maxClasses {
		return errRollup
	}
	for range classes {
		name, after, ok := cutBytes(rest)
		if !ok {
			return errRollup
		}
		n, after, ok := cutCount(after)
		if !ok {
			return errRollup
		}
		h.addClass(probe.Class(name), n)
		rest = after
	}
	return h.Latencies.UnmarshalBinary(rest)
}

// cutCount cuts off a number of checks.
func cutCount(b []byte) (n int, rest []byte, ok bool) {
	v, size := binary.Uvarint(b)
	if size <= 0 || v > maxTotal {
		return 0, nil, false
	}
	return int(v), b[size:], true
}

// EncodeClasses returns classes as a JSON object for a database column; nil when there are none.
func EncodeClasses(classes map[probe.Class]int) ([]byte, error) {
	if len(classes) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(classes)
	if err != nil {
		return nil, fmt.Errorf("write classes: %w", err)
	}
	return data, nil
}

// DecodeClasses reads what EncodeClasses returned.
func DecodeClasses(data []byte) (map[probe.Class]int, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var classes map[probe.Class]int
	if err := json.Unmarshal(data, &classes); err != nil {
		return nil, fmt.Errorf("read classes: %w", err)
	}
	return classes, nil
}

// Counts are checks by verdict.
type Counts struct {
	Up       int `json:"up"`
	Degraded int `json:"degraded"`
	Down     int `json:"down"`
	Gated    int `json:"gated"`
	Unknown  int `json:"unknown"`
	// Maintenance are those made while the endpoint was under maintenance, whatever they found: they count neither way.
	Maintenance int `json:"maintenance,omitempty"`
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
	return Counts{
		c.Up + d.Up, c.Degraded + d.Degraded, c.Down + d.Down, c.Gated + d.Gated, c.Unknown + d.Unknown, c.Maintenance + d.Maintenance,
	}
}

// all are the counts in the order of the members.
func (c Counts) all() [6]int {
	return [6]int{c.Up, c.Degraded, c.Down, c.Gated, c.Unknown, c.Maintenance}
}

// Total is the number of checks counted.
func (c Counts) Total() int { return c.Up + c.Degraded + c.Down + c.Gated + c.Unknown + c.Maintenance }

// Uptime returns the share of checks that found the endpoint answering, in per cent, and whether there is one: gated
// and unknown checks count neither way.
func (c Counts) Uptime() (percent float64, ok bool) {
	good, all := c.Up+c.Degraded, c.Up+c.Degraded+c.Down
	if all == 0 {
		return 0, false
	}
	return 100 * float64(good) / float64(all), true
}
