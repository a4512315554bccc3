package store

import (
	"math"
	"math/bits"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch/encoding"
)

// This file reads and writes the standard encoding of DDSketch, which package ddsketch/encoding describes: blocks with a
// flag each. The library's own sketches are left out on the way: a year of roll-ups is several hundred thousand bins, which
// go from bytes straight into a sum.

// The forms in which bins are written.
var (
	zerosFlag      = encoding.FlagZeroCountVarFloat
	deltasFlag     = encoding.NewFlag(encoding.FlagTypePositiveStore, encoding.BinEncodingIndexDeltas)
	countsFlag     = encoding.NewFlag(encoding.FlagTypePositiveStore, encoding.BinEncodingIndexDeltasAndCounts)
	contiguousFlag = encoding.NewFlag(encoding.FlagTypePositiveStore, encoding.BinEncodingContiguousCounts)
)

// appendSketch appends the length of the encoded sketch, as a varint of two bytes, and the sketch. It fits: there are no
// more than 3,072 bins, and with maxTotal latencies in them the counts take 5 bytes each.
func (s *sketch) appendSketch(data []byte) []byte {
	begin := len(data)
	data = s.encode(append(data, 0, 0))
	n := len(data) - begin - 2
	data[begin], data[begin+1] = byte(n)|0x80, byte(n>>7)
	return data
}

// countedBin is a bin on its way into the encoding.
type countedBin struct {
	index int
	n     uint64
}

// encode appends the sketch in the form that takes the least room.
func (s *sketch) encode(data []byte) []byte {
	if s.zeros > 0 {
		encoding.EncodeFlag(&data, zerosFlag)
		encoding.EncodeVarfloat64(&data, float64(s.zeros))
	}
	var room [96]countedBin // the running hour of an endpoint is written with each check
	bins := room[:0]
	for _, b := range s.bins {
		bins = append(bins, countedBin{int(b.index), uint64(b.count)})
	}
	if s.span != nil {
		bins = s.span.appendBins(bins)
	}
	if len(bins) == 0 {
		return data
	}
	var deltas, counts int // bytes of the indexes behind the first, and of the counts
	single := true
	for i, b := range bins {
		if i > 0 {
			deltas += encoding.Varint64Size(int64(b.index - bins[i-1].index))
		}
		counts += countSize(b.n)
		single = single && b.n == 1
	}
	holes := bins[len(bins)-1].index - bins[0].index + 1 - len(bins) // each takes a byte where bins are contiguous
	switch {
	case single && deltas <= counts+holes:
		encoding.EncodeFlag(&data, deltasFlag)
		return encodeDeltas(data, bins, false)
	case deltas < holes:
		encoding.EncodeFlag(&data, countsFlag)
		return encodeDeltas(data, bins, true)
	}
	encoding.EncodeFlag(&data, contiguousFlag)
	return encodeRange(data, bins)
}

func (s *span) appendBins(bins []countedBin) []countedBin {
	bins = slices.Grow(bins, len(s.counts))
	for i, n := range s.counts {
		if n > 0 {
			bins = append(bins, countedBin{s.first + i, n})
		}
	}
	return bins
}

func encodeDeltas(data []byte, bins []countedBin, counted bool) []byte {
	encoding.EncodeUvarint64(&data, uint64(len(bins)))
	last := 0
	for _, b := range bins {
		data = appendDelta(data, b.index-last)
		if counted {
			data = appendCount(data, b.n)
		}
		last = b.index
	}
	return data
}

func encodeRange(data []byte, bins []countedBin) []byte {
	low, high := bins[0].index, bins[len(bins)-1].index
	encoding.EncodeUvarint64(&data, uint64(high-low+1))
	encoding.EncodeVarint64(&data, int64(low))
	encoding.EncodeVarint64(&data, 1)
	next := low
	for _, b := range bins {
		for ; next < b.index; next++ {
			data = append(data, 0)
		}
		data = appendCount(data, b.n)
		next++
	}
	return data
}

// appendDelta is encoding.EncodeVarint64, with a short way for what is small.
func appendDelta(data []byte, delta int) []byte {
	if 0 <= delta && delta < 64 {
		return append(data, byte(delta<<1))
	}
	encoding.EncodeVarint64(&data, int64(delta))
	return data
}

// appendCount is encoding.EncodeVarfloat64, with a short way for what is small.
func appendCount(data []byte, n uint64) []byte {
	if n >= uint64(len(shortCounts)) {
		encoding.EncodeVarfloat64(&data, float64(n))
		return data
	}
	code := shortCounts[n]
	if code&0x7f == 0 {
		return append(data, byte(code>>7))
	}
	return append(data, byte(code>>7)|0x80, byte(code)&0x7f)
}

func countSize(n uint64) int {
	if n >= uint64(len(shortCounts)) {
		return encoding.Varfloat64Size(float64(n))
	}
	if shortCounts[n]&0x7f == 0 {
		return 1
	}
	return 2
}

// shortCounts is each count that encoding.EncodeVarfloat64 writes in two bytes, seven bits in each: six bits of exponent and
// eight of mantissa, of the number plus one. Where the last seven are 0 the first byte does.
var shortCounts = func() (codes [511]uint16) {
	for n := range codes {
		exponent := bits.Len(uint(n+1)) - 1
		codes[n] = uint16(exponent<<8 | (n+1)<<(8-exponent)&255)
	}
	return codes
}()

// mergeEncoded takes in an encoded sketch.
func (s *sketch) mergeEncoded(data []byte) error {
	if len(s.bins) > 0 { // a sum begins
		s.reach(int(s.bins[0].index), int(s.bins[0].index))
	}
	for len(data) > 0 {
		flag, err := encoding.DecodeFlag(&data)
		if err != nil {
			return err
		}
		size := 0
		switch flag {
		case zerosFlag:
			var n uint64
			n, size = decodeCount(data)
			s.zeros += n
			s.total += n
		case deltasFlag:
			size = s.mergeDeltas(data, false)
		case countsFlag:
			size = s.mergeDeltas(data, true)
		case contiguousFlag:
			size = s.mergeRange(data)
		default: // latencies below zero, or a mapping, which is known
		}
		if size == 0 {
			return errSketch
		}
		if s.total > maxTotal {
			return errTooMany
		}
		data = data[size:]
	}
	return nil
}

// mergeDeltas takes in bins that are written one by one and returns how many bytes they took; 0 when they are none.
func (s *sketch) mergeDeltas(data []byte, counted bool) int {
	n, at := decodeUvarint(data)
	if at == 0 || n > uint64(len(data)-at) {
		return 0
	}
	if s.total == s.zeros && s.span == nil {
		s.bins = make([]bin, 0, min(n, maxIndex-minIndex+1))
	}
	index := int64(0)
	for range n {
		delta, size := decodeVarint(data[at:])
		if size == 0 {
			return 0
		}
		at += size
		if index += delta; index < minIndex || index > maxIndex {
			return 0
		}
		count := uint64(1)
		if counted {
			if count, size = decodeCount(data[at:]); size == 0 {
				return 0
			}
			at += size
		}
		s.addCount(int(index), count)
	}
	return at
}

// mergeRange takes in bins that are written as the counts of neighbours and returns how many bytes they took; 0 when they
// are none. Nobody is known to write another step than 1 from one to the next.
func (s *sketch) mergeRange(data []byte) int {
	n, at := decodeUvarint(data)
	if at == 0 {
		return 0
	}
	low, size := decodeVarint(data[at:])
	if size == 0 {
		return 0
	}
	at += size
	step, size := decodeVarint(data[at:])
	if size == 0 || step != 1 {
		return 0
	}
	at += size
	if n == 0 {
		return at
	}
	if low < minIndex || low > maxIndex || n > uint64(maxIndex+1-low) || n > uint64(len(data)-at) {
		return 0
	}
	if s.total == s.zeros && s.span == nil && n <= holdable {
		size = s.holdRange(int(low), int(n), data[at:])
	} else {
		var total uint64
		total, size = addCounts(s.reach(int(low), int(low)+int(n)-1), data[at:])
		s.total += total
	}
	if size == 0 {
		return 0
	}
	return at + size
}

// addCount takes in one bin.
func (s *sketch) addCount(index int, n uint64) {
	if n == 0 {
		return
	}
	s.total += n
	if s.span == nil && n <= math.MaxUint16 {
		if i, found := s.find(index); !found {
			s.insert(i, bin{int16(index), uint16(n)})
			return
		}
	}
	s.reach(index, index)[0] += n
}

// holdable is the range of bins up to which a sketch that is read is held as bins.
const holdable = 256

// holdRange makes bins of n counts, from the bin low on, where there is nothing yet.
func (s *sketch) holdRange(low, n int, data []byte) (size int) {
	var room [holdable]uint64
	counts := room[:n]
	s.total, size = addCounts(counts, data)
	s.total += s.zeros
	var filled, all uint64
	for _, n := range counts {
		filled += (n | -n) >> 63 // 1 unless n is 0, without a branch
		all |= n
	}
	if all > math.MaxUint16 {
		copy(s.reach(low, low+n-1), counts)
		return size
	}
	bins, next := make([]bin, filled+1), uint64(0) // the last one takes what is written and not kept
	for i, n := range counts {
		bins[next] = bin{int16(low + i), uint16(n)}
		next += (n | -n) >> 63
	}
	s.bins = bins[:filled:filled]
	return size
}

// addCounts adds to each of counts what is written for it, and returns their sum and how many bytes they took. It is the
// innermost loop of reading a year: a count of one or two bytes, as nearly all are, takes no branch that could be guessed
// wrong; see shortCounts.
func addCounts(counts []uint64, data []byte) (total uint64, size int) {
	at := 0
	for i := range counts {
		if at+1 < len(data) {
			first, second := uint64(data[at]), uint64(data[at+1])
			two := first >> 7
			code := first&0x7f<<7 | second&-two
			scaled := (256 | code&255) << (code >> 8 & 31)
			if two&(second>>7) == 0 && scaled&255 == 0 && code>>8 < 32 {
				n := scaled>>8 - 1
				counts[i] += n
				total += n
				at += 1 + int(two)
				continue
			}
		}
		n, size := decodeCount(data[at:])
		if size == 0 {
			return 0, 0
		}
		counts[i] += n
		total += n
		at += size
	}
	return total, at
}

// decodeUvarint reads what encoding.EncodeUvarint64 wrote; size is 0 when that is nothing.
func decodeUvarint(data []byte) (v uint64, size int) {
	if len(data) > 0 && data[0] < 0x80 {
		return uint64(data[0]), 1
	}
	rest := data
	v, err := encoding.DecodeUvarint64(&rest)
	if err != nil {
		return 0, 0
	}
	return v, len(data) - len(rest)
}

// decodeVarint reads what encoding.EncodeVarint64 wrote.
func decodeVarint(data []byte) (v int64, size int) {
	u, size := decodeUvarint(data)
	return int64(u>>1) ^ -int64(u&1), size
}

// decodeCount reads a whole number of at most maxTotal that encoding.EncodeVarfloat64 wrote; size is 0 when it is none.
func decodeCount(data []byte) (n uint64, size int) {
	rest := data
	v, err := encoding.DecodeVarfloat64(&rest)
	if err != nil || !(v >= 0 && v <= maxTotal) || v != math.Trunc(v) {
		return 0, 0
	}
	return uint64(v), len(data) - len(rest)
}
