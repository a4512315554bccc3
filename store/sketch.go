package store

import (
	"math"

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

// encode appends the sketch in the form that takes the least room.
func (s *sketch) encode(data []byte) []byte {
	if s.zeros > 0 {
		encoding.EncodeFlag(&data, zerosFlag)
		encoding.EncodeVarfloat64(&data, float64(s.zeros))
	}
	var n, sparse, counts int // bins, and the bytes of their indexes and their counts
	low, high := 0, 0
	single := true
	for index, count := range s.all {
		if n == 0 {
			low = index
		} else {
			sparse += encoding.Varint64Size(int64(index - high))
		}
		n, high = n+1, index
		counts += encoding.Varfloat64Size(float64(count))
		single = single && count == 1
	}
	if n == 0 {
		return data
	}
	holes := high - low + 1 - n // each takes a byte where bins are contiguous
	switch {
	case single && sparse <= counts+holes:
		encoding.EncodeFlag(&data, deltasFlag)
		return s.encodeBins(data, n, false)
	case sparse+counts < counts+holes:
		encoding.EncodeFlag(&data, countsFlag)
		return s.encodeBins(data, n, true)
	}
	encoding.EncodeFlag(&data, contiguousFlag)
	return s.encodeRange(data, low, high)
}

func (s *sketch) encodeBins(data []byte, n int, counted bool) []byte {
	encoding.EncodeUvarint64(&data, uint64(n))
	last := 0
	for index, count := range s.all {
		encoding.EncodeVarint64(&data, int64(index-last))
		if counted {
			data = appendCount(data, count)
		}
		last = index
	}
	return data
}

func (s *sketch) encodeRange(data []byte, low, high int) []byte {
	encoding.EncodeUvarint64(&data, uint64(high-low+1))
	encoding.EncodeVarint64(&data, int64(low))
	encoding.EncodeVarint64(&data, 1)
	next := low
	for index, count := range s.all {
		for ; next < index; next++ {
			data = append(data, 0)
		}
		data = appendCount(data, count)
		next++
	}
	return data
}

func appendCount(data []byte, n uint64) []byte {
	encoding.EncodeVarfloat64(&data, float64(n))
	return data
}

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
	var room [256]uint64
	if s.total > s.zeros || s.span != nil || n > uint64(len(room)) {
		total, size := addCounts(s.reach(int(low), int(low)+int(n)-1), data[at:])
		if size == 0 {
			return 0
		}
		s.total += total
		return at + size
	}
	counts := room[:n]
	total, size := addCounts(counts, data[at:])
	if size == 0 {
		return 0
	}
	s.total += total
	s.hold(int(low), counts)
	return at + size
}

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

// hold makes bins of counts where there are none.
func (s *sketch) hold(low int, counts []uint64) {
	filled := 0
	for _, n := range counts {
		if n > math.MaxUint16 {
			copy(s.reach(low, low+len(counts)-1), counts)
			return
		}
		if n > 0 {
			filled++
		}
	}
	s.bins = make([]bin, 0, filled)
	for i, n := range counts {
		if n > 0 {
			s.bins = append(s.bins, bin{int16(low + i), uint16(n)})
		}
	}
}

// addCounts adds to each of counts what is written for it, and returns their sum and how many bytes they took. It is the
// innermost loop of reading a year: a count of one or two bytes, as nearly all are, takes no branch that could be guessed
// wrong. Such a count is six bits of exponent and eight of mantissa, of the number plus one.
func addCounts(counts []uint64, data []byte) (total uint64, size int) {
	at := 0
	for i := range counts {
		if at+1 < len(data) {
			first, second := uint64(data[at]), uint64(data[at+1])
			two := first >> 7
			bits := first&0x7f<<7 | second&-two
			scaled := (256 | bits&255) << (bits >> 8 & 31)
			if two&(second>>7) == 0 && scaled&255 == 0 && bits>>8 < 32 {
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
