package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/DataDog/sketches-go/ddsketch/mapping"

	"github.com/rollcallhq/rollcall/probe"
)

// Latencies are mergeable sketches (DDSketch) of the latencies of good checks: of whole checks under the empty name, and of
// each step under its own. Quantiles are right to sketchAccuracy. The zero value is empty and ready for use; a copy shares
// its memory with the original, so that only one of the two may be added to, see [Latencies.Clone].
type Latencies struct {
	sketches []sketch
	packed   []byte // what MarshalBinary wrote and nobody has read; sketches is nil then
}

// PackedLatencies returns what MarshalBinary wrote without reading it yet: of a year of roll-ups, all are merged and few are
// asked for anything. What cannot be read is an error of Merge, and empty elsewhere. It keeps data.
func PackedLatencies(data []byte) Latencies { return Latencies{packed: data} }

// read makes sketches of what is packed.
func (l *Latencies) read() error {
	if l.packed == nil {
		return nil
	}
	packed := l.packed
	l.packed = nil
	return l.MergeBinary(packed)
}

// unpacked returns l with everything in sketches.
func (l Latencies) unpacked() Latencies {
	if l.read() != nil {
		return Latencies{}
	}
	return l
}

const (
	// sketchAccuracy is the relative error of a quantile: 1 %.
	sketchAccuracy = 0.01
	// maxSketches bounds the steps of one roll-up, the whole check included: an endpoint may name them as it likes.
	maxSketches = 24
	// maxTotal bounds the latencies of one sketch: more than a million endpoints have in a year.
	maxTotal = 1 << 40
)

// sketchMapping is shared: a mapping never changes. It maps milliseconds to bins.
var sketchMapping = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(sketchAccuracy)
	if err != nil {
		panic(err) // sketchAccuracy is a constant between 0 and 1
	}
	return m
}()

// A time.Duration that is not 0 lies between the bins -691 and 1492. What is read may reach a little further: some stores of
// the library write empty neighbours as well.
const (
	minIndex = -1024
	maxIndex = 2047
)

// Add takes in the latencies of a check that found its endpoint up or degraded; others say nothing about speed.
func (l *Latencies) Add(r probe.Result) {
	if r.Verdict != probe.Up && r.Verdict != probe.Degraded {
		return
	}
	*l = l.unpacked()
	if l.sketches == nil {
		l.sketches = make([]sketch, 0, min(len(r.Steps)+1, maxSketches))
	}
	l.add(0, "", r.Duration)
	for i, s := range r.Steps {
		if s.Class == "" && s.Name != "" {
			l.add(i+1, s.Name, s.Latency)
		}
	}
}

// add takes in one latency; guess is where the sketch of the step is likely to be found.
func (l *Latencies) add(guess int, step string, d time.Duration) {
	s := l.sketch(guess, step)
	switch {
	case s == nil:
	case d <= 0:
		s.total++
		s.zeros++
	default:
		s.add(sketchMapping.Index(Milliseconds(d)))
	}
}

// sketch returns the sketch of a step, an empty one when there was none, and nil when there is no room for another.
func (l *Latencies) sketch(guess int, step string) *sketch {
	if guess < len(l.sketches) && l.sketches[guess].step == step {
		return &l.sketches[guess]
	}
	for i := range l.sketches {
		if l.sketches[i].step == step {
			return &l.sketches[i]
		}
	}
	if len(l.sketches) >= maxSketches {
		return nil
	}
	l.sketches = append(l.sketches, sketch{step: step})
	return &l.sketches[len(l.sketches)-1]
}

// Clone returns a copy that can be added to without a change to l.
func (l Latencies) Clone() Latencies {
	l = l.unpacked()
	l.sketches = slices.Clone(l.sketches)
	for i := range l.sketches {
		l.sketches[i] = l.sketches[i].clone()
	}
	return l
}

// Merge takes in all of m, which stays as it is. It fails, with l as it was or merged in part, when the sum is larger than
// checks can add up to.
func (l *Latencies) Merge(m Latencies) error {
	if m.packed != nil {
		return l.MergeBinary(m.packed)
	}
	if err := l.read(); err != nil {
		return err
	}
	for i := range m.sketches {
		from := &m.sketches[i]
		into := l.sketch(i, from.step)
		if into == nil {
			continue
		}
		if err := into.merge(from); err != nil {
			return fmt.Errorf("merge latencies of step %.60q: %w", from.step, err)
		}
	}
	return nil
}

// MergeStep takes in those of m that are of one step, or of whole checks when step is empty: of what is packed, the rest is not read.
func (l *Latencies) MergeStep(m Latencies, step string) error {
	if len(m.packed) == 0 || m.packed[0] != latenciesVersion {
		if err := m.read(); err != nil {
			return err
		}
		i := slices.IndexFunc(m.sketches, func(s sketch) bool { return s.step == step })
		if i < 0 {
			return nil
		}
		return l.Merge(Latencies{sketches: m.sketches[i : i+1]})
	}
	if err := l.read(); err != nil {
		return err
	}
	for rest := m.packed[1:]; len(rest) > 0; {
		name, encoded, after, ok := cutSketch(rest)
		if !ok {
			return fmt.Errorf("read latencies: %w", errSketch)
		}
		if string(name) == step {
			return l.mergeSketch(0, name, encoded)
		}
		rest = after
	}
	return nil
}

// Steps lists the steps there are latencies of, in no order.
func (l Latencies) Steps() []string {
	l = l.unpacked()
	var names []string
	for _, s := range l.sketches {
		if s.step != "" {
			names = append(names, s.step)
		}
	}
	return names
}

// Quantiles returns the latencies in milliseconds at each q of [0, 1] for a step, or for whole checks when step is
// empty; nil when nothing was measured. The quantile q of n latencies is the one of rank ⌈q·n⌉ (nearest rank), the
// first at least: the p99 of fewer than 100 latencies is the largest.
func (l Latencies) Quantiles(step string, qs ...float64) []float64 {
	l = l.unpacked()
	i := slices.IndexFunc(l.sketches, func(s sketch) bool { return s.step == step })
	if i < 0 {
		return nil
	}
	s := &l.sketches[i]
	if s.total == 0 {
		return nil
	}
	values := make([]float64, 0, len(qs))
	for _, q := range qs {
		values = append(values, s.atRank(nearestRank(q, s.total)))
	}
	return values
}

// nearestRank returns ⌈q·n⌉ within 1 and n. What q·n is off by when q has no exact form in binary does not count as a rank.
func nearestRank(q float64, n uint64) uint64 {
	rank := math.Ceil(q * float64(n) * (1 - 1e-12))
	if !(rank > 1) {
		return 1
	}
	return min(uint64(rank), n)
}

// sketch is the latencies of one step. It has bins while it is small, as that of an hour held in memory for each
// endpoint, and a span when it is a sum.
type sketch struct {
	step  string
	total uint64 // latencies
	zeros uint64 // those of them that are of no measurable length
	bins  []bin  // by index, none of them empty; nil when there is a span
	span  *span
}

type bin struct {
	index int16
	count uint16
}

// span is the counts of the bins from first on.
type span struct {
	first  int
	counts []uint64
}

// add counts one latency that is not 0.
func (s *sketch) add(index int) {
	s.total++
	if s.span == nil {
		i, found := s.find(index)
		switch {
		case !found:
			s.insert(i, bin{int16(index), 1})
			return
		case s.bins[i].count < math.MaxUint16:
			s.bins[i].count++
			return
		}
	}
	s.reach(index, index)[0]++
}

// find returns where the bin of index is, or would have to be.
func (s *sketch) find(index int) (int, bool) {
	low, high := 0, len(s.bins)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if int(s.bins[middle].index) < index {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(s.bins) && int(s.bins[low].index) == index
}

// insert grows by a quarter: there are tens of thousands of these in memory, and append would double them.
func (s *sketch) insert(i int, b bin) {
	n := len(s.bins)
	if n == cap(s.bins) {
		grown := make([]bin, n, n+n/4+4)
		copy(grown, s.bins)
		s.bins = grown
	}
	s.bins = s.bins[:n+1]
	copy(s.bins[i+1:], s.bins[i:])
	s.bins[i] = b
}

// reach returns the counts from low to high, which lie within minIndex and maxIndex, and turns bins into a span for it.
func (s *sketch) reach(low, high int) []uint64 {
	if s.span == nil {
		s.span = &span{}
		if n := len(s.bins); n > 0 {
			s.span.grow(int(s.bins[0].index), int(s.bins[n-1].index))
		}
		for _, b := range s.bins {
			s.span.counts[int(b.index)-s.span.first] = uint64(b.count)
		}
		s.bins = nil
	}
	if low < s.span.first || high > s.span.last() {
		s.span.grow(low, high)
	}
	return s.span.counts[low-s.span.first : high-s.span.first+1]
}

func (s *span) last() int { return s.first + len(s.counts) - 1 }

func (s *span) grow(low, high int) {
	const slack = 16 // what is merged next is likely to reach a little further
	old := *s
	if len(old.counts) > 0 {
		low, high = min(low, old.first), max(high, old.last())
	}
	s.first = max(low-slack, minIndex)
	s.counts = make([]uint64, min(high+slack, maxIndex)-s.first+1)
	if len(old.counts) > 0 {
		copy(s.counts[old.first-s.first:], old.counts)
	}
}

// all yields the bins that are not empty, by index.
func (s *sketch) all(yield func(index int, n uint64) bool) {
	if s.span == nil {
		for _, b := range s.bins {
			if !yield(int(b.index), uint64(b.count)) {
				return
			}
		}
		return
	}
	for i, n := range s.span.counts {
		if n > 0 && !yield(s.span.first+i, n) {
			return
		}
	}
}

// atRank returns the latency in milliseconds of rank 1 to total.
func (s *sketch) atRank(rank uint64) float64 {
	seen := s.zeros
	if rank <= seen {
		return 0
	}
	for index, n := range s.all {
		if seen += n; seen >= rank {
			return sketchMapping.Value(index)
		}
	}
	return 0
}

func (s *sketch) merge(m *sketch) error {
	if s.total+m.total > maxTotal {
		return errTooMany
	}
	if s.total == 0 {
		step := s.step
		*s = m.clone()
		s.step = step
		return nil
	}
	s.total += m.total
	s.zeros += m.zeros
	switch {
	case m.span != nil:
		counts := s.reach(m.span.first, m.span.last())
		for i, n := range m.span.counts {
			counts[i] += n
		}
	case len(m.bins) > 0:
		bins := m.bins // reach drops them where a sketch is merged with itself
		low := int(bins[0].index)
		counts := s.reach(low, int(bins[len(bins)-1].index))
		for _, b := range bins {
			counts[int(b.index)-low] += uint64(b.count)
		}
	}
	return nil
}

func (s sketch) clone() sketch {
	s.bins = slices.Clone(s.bins)
	if s.span != nil {
		s.span = &span{s.span.first, slices.Clone(s.span.counts)}
	}
	return s
}

// latenciesVersion is the first byte of encoded latencies. Those without it are the JSON object that was written before
// there were versions.
const latenciesVersion = 1

var (
	errTooMany = errors.New("more latencies than checks can add up to")
	errSketch  = errors.New("not a sketch")
)

// MarshalBinary encodes l for a database column: a byte with the version, then for each step the length of its name, its
// name, the length of its sketch, and its sketch in the encoding of the DDSketch libraries, without the mapping.
func (l Latencies) MarshalBinary() ([]byte, error) { return l.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns to data.
func (l Latencies) AppendBinary(data []byte) ([]byte, error) {
	if err := l.read(); err != nil {
		return nil, err
	}
	data = append(data, latenciesVersion)
	for i := range l.sketches {
		s := &l.sketches[i]
		data = appendText(data, s.step)
		data = s.appendSketch(data)
	}
	return data, nil
}

// UnmarshalBinary reads what MarshalBinary wrote; no bytes at all are an empty value.
func (l *Latencies) UnmarshalBinary(data []byte) error {
	*l = Latencies{}
	return l.MergeBinary(data)
}

// MergeBinary takes in what MarshalBinary wrote, which is faster than to read it and to call Merge; page after page of a
// year is read like this. After an error l holds a part of it.
func (l *Latencies) MergeBinary(data []byte) error {
	if err := l.read(); err != nil {
		return err
	}
	if len(data) == 0 {
		return nil
	}
	if data[0] == '{' {
		return l.mergeJSON(data)
	}
	if data[0] != latenciesVersion {
		return fmt.Errorf("read latencies: version %d is not known", data[0])
	}
	if l.sketches == nil {
		l.sketches = make([]sketch, 0, countSketches(data[1:]))
	}
	rest := data[1:]
	for i := 0; len(rest) > 0; i++ {
		step, encoded, after, ok := cutSketch(rest)
		if !ok {
			return fmt.Errorf("read latencies: %w", errSketch)
		}
		if err := l.mergeSketch(i, step, encoded); err != nil {
			return err
		}
		rest = after
	}
	return nil
}

func countSketches(data []byte) (n int) {
	for ok := true; ok && len(data) > 0 && n < maxSketches; n++ {
		_, _, data, ok = cutSketch(data)
	}
	return n
}

func cutSketch(data []byte) (step, encoded, rest []byte, ok bool) {
	if step, rest, ok = cutBytes(data); ok {
		encoded, rest, ok = cutBytes(rest)
	}
	return step, encoded, rest, ok
}

func (l *Latencies) mergeJSON(data []byte) error {
	var encoded map[string][]byte
	if err := json.Unmarshal(data, &encoded); err != nil {
		return fmt.Errorf("read latencies: %w", err)
	}
	for _, step := range slices.Sorted(maps.Keys(encoded)) {
		if err := l.mergeSketch(0, []byte(step), encoded[step]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Latencies) mergeSketch(guess int, step, encoded []byte) error {
	var s *sketch
	if guess < len(l.sketches) && l.sketches[guess].step == string(step) {
		s = &l.sketches[guess]
	} else {
		s = l.sketch(guess, string(step))
	}
	if s == nil {
		return nil
	}
	if err := s.mergeEncoded(encoded); err != nil {
		return fmt.Errorf("read latencies of step %.60q: %w", step, err)
	}
	return nil
}

// appendText appends the length of a text and the text.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cutBytes cuts off what appendText appended.
func cutBytes(b []byte) (text, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end], b[end:], true
}
