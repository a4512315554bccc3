package store

import (
	"encoding/binary"
	"math"

	"github.com/DataDog/sketches-go/ddsketch/encoding"
)

// This file reads and writes the standard encoding of DDSketch, which package ddsketch/encoding describes: blocks with a
// flag each. The library's own sketches are left out on the way: a year of roll-ups is several hundred thousand bins, which
// go from bytes straight into a sum.

// countedBin is a bin on its way into or out of the encoding.
type countedBin struct {
	index int32
	count uint32
}

// The forms in which bins are written.
var (
	zerosFlag      = encoding.FlagZeroCountVarFloat
	deltasFlag     = encoding.NewFlag(encoding.FlagTypePositiveStore, encoding.BinEncodingIndexDeltas)
	countsFlag     = encoding.NewFlag(encoding.FlagTypePositiveStore, encoding.BinEncodingIndexDeltasAndCounts)
	contiguousFlag = encoding.NewFlag(encoding.FlagTypePositiveStore, encoding.BinEncodingContiguousCounts)
)

// appendSketch appends the length of the encoded sketch and the sketch.
func (s *sketch) appendSketch(data []byte) []byte {
	begin := len(data)
	data = append(data, 0, 0) // room for the length, which fits for all but a sum over years
	data = s.encode(data)
	n := len(data) - begin - 2
	if n < 1<<14 {
		data[begin], data[begin+1] = byte(n)|0x80, byte(n>>7) // a varint of two bytes
		return data
	}
	encoded := append([]byte(nil), data[begin+2:]...)
	data = binary.AppendUvarint(data[:begin], uint64(n))
	return append(data, encoded...)
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
	var room [256]countedBin
	bins := room[:0]
	for len(data) > 0 {
		flag, err := encoding.DecodeFlag(&data)
		if err != nil {
			return err
		}
		bins = bins[:0]
		switch flag {
		case zerosFlag:
			n, size := decodeCount(data)
			if size == 0 || s.zeros+n > maxTotal {
				return errSketch
			}
			s.zeros += n
			data = data[size:]
			continue
		case deltasFlag:
			bins, data, err = decodeDeltas(bins, data, false)
		case countsFlag:
			bins, data, err = decodeDeltas(bins, data, true)
		case contiguousFlag:
			bins, data, err = decodeRange(bins, data)
		default: // a latency below zero, or a mapping, which is known
			return errSketch
		}
		if err != nil {
			return err
		}
		if err := s.addBins(bins); err != nil {
			return err
		}
	}
	return nil
}

// addBins takes in bins in any order.
func (s *sketch) addBins(bins []countedBin) error {
	if len(bins) == 0 {
		return nil
	}
	var total, most uint64
	low, high, ascending := bins[0].index, bins[0].index, true
	for i, b := range bins {
		ascending = ascending && (i == 0 || b.index > bins[i-1].index)
		low, high = min(low, b.index), max(high, b.index)
		total += uint64(b.count)
		most = max(most, uint64(b.count))
	}
	if int(low) < minIndex || int(high) > maxIndex {
		return errSketch
	}
	if ascending && most <= math.MaxUint16 && s.bins == nil && s.counts == nil {
		s.bins = make([]bin, len(bins))
		for i, b := range bins {
			s.bins[i] = bin{int16(b.index), uint16(b.count)}
		}
		return nil
	}
	if s.total()+total > maxTotal {
		return errTooMany
	}
	s.reach(int(low), int(high))
	counts, first := s.counts, s.first
	for _, b := range bins {
		counts[int(b.index)-first] += uint64(b.count)
	}
	return nil
}

func decodeDeltas(bins []countedBin, data []byte, counted bool) ([]countedBin, []byte, error) {
	n, size := decodeUvarint(data)
	if size == 0 || n > uint64(len(data)-size) {
		return nil, nil, errSketch
	}
	data = data[size:]
	index := int64(0)
	for range n {
		delta, size := decodeVarint(data)
		if size == 0 || delta < -math.MaxInt16 || delta > math.MaxInt16 {
			return nil, nil, errSketch
		}
		data = data[size:]
		if index += delta; index < math.MinInt16 || index > math.MaxInt16 {
			return nil, nil, errSketch
		}
		count := uint64(1)
		if counted {
			if count, size = decodeCount(data); size == 0 {
				return nil, nil, errSketch
			}
			data = data[size:]
		}
		if count > 0 {
			bins = append(bins, countedBin{int32(index), uint32(count)})
		}
	}
	return bins, data, nil
}

func decodeRange(bins []countedBin, data []byte) ([]countedBin, []byte, error) {
	n, size := decodeUvarint(data)
	if size == 0 {
		return nil, nil, errSketch
	}
	data = data[size:]
	index, size := decodeVarint(data)
	if size == 0 || index < math.MinInt16 || index > math.MaxInt16 {
		return nil, nil, errSketch
	}
	data = data[size:]
	delta, size := decodeVarint(data)
	if size == 0 || delta < math.MinInt16 || delta > math.MaxInt16 || n > uint64(len(data)-size) {
		return nil, nil, errSketch
	}
	data = data[size:]
	for range n {
		count, size := decodeCount(data)
		if size == 0 {
			return nil, nil, errSketch
		}
		data = data[size:]
		if count > 0 {
			if index < math.MinInt16 || index > math.MaxInt16 {
				return nil, nil, errSketch
			}
			bins = append(bins, countedBin{int32(index), uint32(count)})
		}
		index += delta
	}
	return bins, data, nil
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

func decodeVarint(data []byte) (v int64, size int) {
	u, size := decodeUvarint(data)
	return int64(u>>1) ^ -int64(u&1), size
}

// decodeCount reads a whole number of at most maxCount that encoding.EncodeVarfloat64 wrote; size is 0 when it is none. One
// or two bytes are six bits of exponent and one or eight of mantissa of the number plus one.
func decodeCount(data []byte) (n uint64, size int) {
	if len(data) > 0 && data[0] < 0x80 && data[0] != 1 {
		if e := data[0] >> 1; e <= 31 {
			return uint64(2|data[0]&1)<<e>>1 - 1, 1
		}
	}
	rest := data
	v, err := encoding.DecodeVarfloat64(&rest)
	if err != nil || !(v >= 0 && v <= maxCount) || v != math.Trunc(v) {
		return 0, 0
	}
	return uint64(v), len(data) - len(rest)
}
