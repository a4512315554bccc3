package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// A spool file is a head of spoolHeadSize bytes and then frames, one for each check, oldest first:
//
//	head   magic and version (8) · next (8) · checks (8) · memory (8) · CRC-32C of these (4) · zeros
//	frame  length of the body (4) · CRC-32C of the body (4) · CRC-32C of these (4) · body
//
// Numbers are big-endian. The length has a checksum of its own, so that a body that was damaged costs one check and not
// all behind it. A body is a list of fields in the order of their numbers, each a key and a value, as in
// https://protobuf.dev/programming-guides/encoding/ but with two kinds of values only. Fields that are zero are left out
// and unknown ones are passed over, so that a spool can be read by an older and by a newer program.
const (
	spoolHeadSize = 64
	spoolMagic    = "RCSPOOL"
	spoolVersion  = 1
	frameHeadSize = 12
	// maxParts bounds the steps, and the warnings, of a check.
	maxParts = 2048
	// maxFrame bounds the body of a frame. A check without its transcript and tool list has some hundred bytes; one with as
	// many parts as there may be, each with the longest message, has less than half of this.
	maxFrame = 8 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// spoolHead is what stands at the beginning of a spool file.
type spoolHead struct {
	next   int64 // where the oldest frame begins that is not yet recorded
	checks int64 // how many frames there are from next on; counted before they are written
	memory int64 // how many checks wait in memory alone
}

func (h spoolHead) encode() []byte {
	b := make([]byte, 0, spoolHeadSize)
	b = append(append(b, spoolMagic...), spoolVersion)
	for _, n := range []int64{h.next, h.checks, h.memory} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:spoolHeadSize]
}

var (
	errNoSpool       = errors.New("is not a spool file")
	errSpoolVersion  = errors.New("was written by another version of this program")
	errSpoolHeadLost = errors.New("its head is damaged")
)

// decodeSpoolHead reads the head of a file. errSpoolHeadLost says that it is a spool though its numbers are lost.
func decodeSpoolHead(b []byte) (spoolHead, error) {
	if len(b) <= len(spoolMagic) || string(b[:len(spoolMagic)]) != spoolMagic {
		return spoolHead{}, errNoSpool
	}
	if b[len(spoolMagic)] != spoolVersion {
		return spoolHead{}, errSpoolVersion
	}
	if len(b) < spoolHeadSize || binary.BigEndian.Uint32(b[32:]) != crc32.Checksum(b[:32], castagnoli) {
		return spoolHead{}, errSpoolHeadLost
	}
	var n [3]int64
	for i := range n {
		n[i] = int64(binary.BigEndian.Uint64(b[8+8*i:]))
		if n[i] < 0 || n[i] > 1<<50 {
			return spoolHead{}, errSpoolHeadLost
		}
	}
	h := spoolHead{n[0], n[1], n[2]}
	if h.next < spoolHeadSize {
		return spoolHead{}, errSpoolHeadLost
	}
	return h, nil
}

// appendFrame appends the frame of a check, without its transcript, its tool list and the lease under which it was made.
func appendFrame(b []byte, c Check) ([]byte, error) {
	begin := len(b)
	f := form{out: append(b, make([]byte, frameHeadSize)...)}
	if key, ok := ParseCheckID(c.ID); ok && key.EndpointID == c.EndpointID && key.At(c.Location) && key.ScheduledAt.Equal(c.ScheduledAt) {
		c.ID = "" // it follows from the rest
	}
	c.Result.Facts, c.Result.Memory = tidyFacts(c.Result.Facts), tidyMemory(c.Result.Memory) // whose times may be of any year
	f.check(&c)
	body := f.out[begin+frameHeadSize:]
	if f.err == nil && len(body) > maxFrame {
		f.err = fmt.Errorf("check has %d bytes, more than %d", len(body), maxFrame)
	}
	if f.err != nil {
		return b, f.err
	}
	head := f.out[begin:begin:cap(f.out)]
	head = binary.BigEndian.AppendUint32(head, uint32(len(body)))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(body, castagnoli))
	binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	return f.out, nil
}

// frameSize returns how long the body is that follows the head of a frame; false when that is no head of a frame.
func frameSize(head []byte) (int, bool) {
	if len(head) < frameHeadSize || binary.BigEndian.Uint32(head[8:]) != crc32.Checksum(head[:8], castagnoli) {
		return 0, false
	}
	size := binary.BigEndian.Uint32(head)
	return int(size), size <= maxFrame
}

// frameSum returns the checksum of the body that follows the head of a frame.
func frameSum(head []byte) uint32 { return binary.BigEndian.Uint32(head[4:]) }

// decodeFrame reads a whole frame.
func decodeFrame(frame []byte) (Check, error) {
	if frameSum(frame) != crc32.Checksum(frame[frameHeadSize:], castagnoli) {
		return Check{}, errDamaged
	}
	var c Check
	f := form{reading: true, in: string(frame[frameHeadSize:])} // one copy, which all texts of the check share
	f.check(&c)
	if f.err != nil {
		return Check{}, f.err
	}
	if c.ID == "" {
		c.ID = CheckID(c.EndpointID, c.Location, c.ScheduledAt)
	}
	return c, nil
}

var errDamaged = errors.New("frame is damaged")

// form writes values, or reads them: what a check looks like in a spool is said once for both.
type form struct {
	reading bool
	out     []byte
	in      string
	err     error
}

func (f *form) check(c *Check) {
	text(f, 1, &c.ID)
	text(f, 2, &c.EndpointID)
	text(f, 3, &c.Location)
	f.moment(4, &c.ScheduledAt)
	f.nested(5, func(f *form) { f.result(&c.Result) })
}

func (f *form) result(r *probe.Result) {
	f.moment(1, &r.StartedAt)
	number(f, 2, &r.Duration)
	text(f, 3, &r.Kind)
	text(f, 4, &r.Era)
	text(f, 5, &r.Verdict)
	optional(f, 6, &r.Failure, (*form).failure)
	list(f, 7, &r.Steps, (*form).step)
	list(f, 8, &r.Warnings, (*form).warning)
	f.nested(9, func(f *form) { f.facts(&r.Facts) })
	f.nested(10, func(f *form) { f.memory(&r.Memory) })
	number(f, 11, &r.RetryAfter)
}

func (f *form) facts(v *probe.Facts) {
	text(f, 1, &v.ProtocolVersion)
	list(f, 2, &v.SupportedVersions, aText)
	text(f, 3, &v.Era)
	text(f, 4, &v.ServerName)
	text(f, 5, &v.ServerVersion)
	optional(f, 6, &v.Tools, aNumber)
	optional(f, 7, &v.Prompts, aNumber)
	optional(f, 8, &v.Resources, aNumber)
	text(f, 9, &v.Contract)
	optional(f, 10, &v.Height, aNumber)
	text(f, 11, &v.HeadHash)
	optional(f, 12, &v.HeadTime, aMoment)
	optional(f, 13, &v.LagBlocks, aNumber)
	optional(f, 14, &v.Finalized, aNumber)
	optional(f, 15, &v.Syncing, aFlag)
	text(f, 16, &v.ChainID)
	optional(f, 17, &v.TLSExpiresAt, aMoment)
	text(f, 18, &v.RemoteAddr)
}

func (f *form) memory(v *probe.Memory) {
	optional(f, 1, &v.Head, (*form).chainHead)
	number(f, 2, &v.Block.Average)
	number(f, 3, &v.Block.Samples)
	optional(f, 4, &v.Finalized, aNumber)
	optional(f, 5, &v.Since, aMoment)
	number(f, 6, &v.Over)
	number(f, 7, &v.Far)
	f.flag(8, &v.Mute)
	text(f, 9, &v.SoundTools)
}

func (f *form) chainHead(v *probe.Head) {
	text(f, 1, &v.Endpoint)
	text(f, 2, &v.Origin)
	text(f, 3, &v.Chain)
	number(f, 4, &v.Height)
	text(f, 5, &v.Hash)
	text(f, 6, &v.Parent)
	optional(f, 7, &v.Mark, (*form).landmark)
	f.moment(8, &v.Time)
	f.moment(9, &v.Asked)
	f.moment(10, &v.Seen)
	f.moment(11, &v.Since)
	number(f, 12, &v.Every)
}

func (f *form) landmark(v *probe.Mark) {
	number(f, 1, &v.Height)
	text(f, 2, &v.Hash)
}

func (f *form) failure(v *probe.Failure) {
	text(f, 1, &v.Step)
	text(f, 2, &v.Class)
	number(f, 3, &v.Code)
	text(f, 4, &v.Message)
}

func (f *form) step(s *probe.Step) {
	text(f, 1, &s.Name)
	text(f, 2, &s.Method)
	number(f, 3, &s.Start)
	number(f, 4, &s.Latency)
	number(f, 5, &s.HTTPStatus)
	text(f, 6, &s.Class)
	number(f, 7, &s.Code)
	text(f, 8, &s.Message)
	number(f, 9, &s.BytesIn)
	number(f, 10, &s.BytesOut)
	number(f, 11, &s.Phases.DNS)
	number(f, 12, &s.Phases.Connect)
	number(f, 13, &s.Phases.TLS)
	number(f, 14, &s.Phases.FirstByte)
	number(f, 15, &s.Phases.Body)
}

func (f *form) warning(w *probe.Warning) {
	text(f, 1, &w.Step)
	text(f, 2, &w.Class)
	number(f, 3, &w.Code)
	text(f, 4, &w.Message)
}

// The kinds of values. A key is the number of the field, then one bit for the kind.
const (
	kindNumber = 0 // a varint, zigzag
	kindBytes  = 1 // a varint that says how many bytes follow
)

func number[T ~int | ~int64 | ~uint64](f *form, field int, v *T) {
	if f.reading {
		if f.find(field, kindNumber) {
			*v = T(f.varint())
		}
		return
	}
	if *v != 0 {
		f.out = binary.AppendVarint(f.key(field, kindNumber), int64(*v))
	}
}

func text[T ~string](f *form, field int, v *T) {
	if f.reading {
		if f.find(field, kindBytes) {
			*v = T(f.bytes())
		}
		return
	}
	if *v != "" {
		f.out = append(binary.AppendUvarint(f.key(field, kindBytes), uint64(len(*v))), *v...)
	}
}

// moment is a time in whole microseconds; see Stamp.
func (f *form) moment(field int, v *time.Time) {
	var micros int64
	if !f.reading && !v.IsZero() {
		micros = v.UnixMicro()
		f.out = binary.AppendVarint(f.key(field, kindNumber), micros) // also when it is 0: that is 1970, not the zero time
	}
	if f.reading && f.find(field, kindNumber) {
		*v = time.UnixMicro(f.varint()).UTC()
	}
}

func (f *form) flag(field int, v *bool) {
	n := 0
	if *v {
		n = 1
	}
	number(f, field, &n)
	*v = n != 0
}

// Values that may be there and be zero, and those of lists, have fields of their own of which they are the first.
func aNumber[T ~int | ~int64 | ~uint64](f *form, v *T) { number(f, 1, v) }
func aText(f *form, v *string)                         { text(f, 1, v) }
func aMoment(f *form, v *time.Time)                    { f.moment(1, v) }
func aFlag(f *form, v *bool)                           { f.flag(1, v) }

// nested is a value that has fields of its own.
func (f *form) nested(field int, fill func(*form)) (there bool) {
	if f.reading {
		if !f.find(field, kindBytes) {
			return false
		}
		inner := form{reading: true, in: f.bytes(), err: f.err}
		fill(&inner)
		f.err = inner.err
		return true
	}
	f.out = f.key(field, kindBytes)
	begin := len(f.out)
	fill(f)
	var size [binary.MaxVarintLen64]byte
	f.out = slices.Insert(f.out, begin, size[:binary.PutUvarint(size[:], uint64(len(f.out)-begin))]...)
	return true
}

func optional[T any](f *form, field int, v **T, fill func(*form, *T)) {
	if !f.reading && *v == nil {
		return
	}
	var read T
	if f.reading && f.nested(field, func(f *form) { fill(f, &read) }) {
		*v = &read
	}
	if !f.reading {
		f.nested(field, func(f *form) { fill(f, *v) })
	}
}

func list[T any](f *form, field int, v *[]T, fill func(*form, *T)) {
	if !f.reading {
		for i := range *v {
			f.nested(field, func(f *form) { fill(f, &(*v)[i]) })
		}
	}
	for f.reading && f.err == nil && len(*v) <= maxParts {
		var read T
		if !f.nested(field, func(f *form) { fill(f, &read) }) {
			return
		}
		if *v == nil {
			*v = make([]T, 0, 4) // as many steps as a usual check has
		}
		*v = append(*v, read)
	}
	if len(*v) > maxParts {
		f.fail(fmt.Errorf("check has more than %d parts of one kind", maxParts))
	}
}

func (f *form) key(field, kind int) []byte {
	return binary.AppendUvarint(f.out, uint64(field)<<1|uint64(kind))
}

// find moves to the value of a field and reports whether there is one. It passes over fields that nobody asked for.
func (f *form) find(field, kind int) bool {
	for f.err == nil && f.in != "" {
		before := f.in
		key := f.uvarint()
		switch {
		case f.err != nil:
			return false
		case key>>1 > uint64(field):
			f.in = before
			return false
		case key == uint64(field)<<1|uint64(kind):
			return true
		case key&1 == kindNumber:
			f.uvarint()
		default:
			f.bytes()
		}
	}
	return false
}

func (f *form) uvarint() uint64 {
	var v uint64
	for i := range min(len(f.in), binary.MaxVarintLen64) {
		b := f.in[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			f.in = f.in[i+1:]
			return v
		}
	}
	f.fail(errDamaged)
	return 0
}

func (f *form) varint() int64 {
	u := f.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (f *form) bytes() string {
	size := f.uvarint()
	if size > uint64(len(f.in)) {
		f.fail(errDamaged)
		return ""
	}
	v := f.in[:size]
	f.in = f.in[size:]
	return v
}

// fail notes the first error.
func (f *form) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}
