package probe

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFormDepth bounds how deep JSON may be nested that is written canonically: schemas of real tools have ten levels.
const maxFormDepth = 100

var errTooDeep = errors.New("nested too deep")

// canonical is JSON in the form of RFC 8785 (JCS): no white space, members sorted, one spelling for each string and
// number, so that what means the same is the same bytes. Where the RFC gives up, this form goes on in a way that keeps
// what was written apart: a member that comes twice stays twice, in the order of writing, and half of a surrogate pair
// stays an escape.
type canonical struct {
	json     []byte
	values   int    // how many values there are in it
	repeated string // the first name that some object has twice; empty when there is none
}

// canonicalJSON writes raw canonically. Every string, names of members included, goes through text first, unless that is
// nil. The error is errTooDeep for JSON of more than maxFormDepth levels, and another one for what is no JSON in UTF-8.
//
// It takes time in proportion to the length of raw, once more for each level whose members are out of order.
func canonicalJSON(raw []byte, text func(string) string) (canonical, error) {
	if !validJSON(raw) {
		return canonical{}, errors.New("not JSON in UTF-8")
	}
	w := canonicalWriter{in: raw, text: text}
	w.out = make([]byte, 0, len(raw))
	if err := w.value(0); err != nil {
		return canonical{}, err
	}
	return canonical{w.out, w.values, w.repeated}, nil
}

// canonicalWriter reads valid JSON from in and writes it to out.
type canonicalWriter struct {
	in       []byte
	at       int // how far in was read
	out      []byte
	text     func(string) string
	scratch  []byte
	values   int
	repeated string
}

func (w *canonicalWriter) value(depth int) error {
	if depth > maxFormDepth {
		return errTooDeep
	}
	w.values++
	switch w.peek() {
	case '{':
		return w.object(depth)
	case '[':
		return w.array(depth)
	case '"':
		w.string()
	case 't', 'f', 'n':
		w.out = append(w.out, w.word()...)
	default:
		w.out = append(w.out, canonicalNumber(string(w.word()))...)
	}
	return nil
}

// peek skips white space and returns the next byte without taking it.
func (w *canonicalWriter) peek() byte {
	if w.at = skipSpace(w.in, w.at); w.at < len(w.in) {
		return w.in[w.at]
	}
	return 0
}

// word takes a number, true, false or null.
func (w *canonicalWriter) word() []byte {
	begin := w.at
	w.at, _ = scanScalar(w.in, begin) // valid, as all of in
	return w.in[begin:w.at]
}

// string takes a string, writes it and returns what it says.
func (w *canonicalWriter) string() []byte {
	begin := w.at
	w.at, _ = scanString(w.in, begin)
	quoted := w.in[begin+1 : w.at-1]
	if w.text == nil && bytes.IndexByte(quoted, '\\') < 0 {
		w.out = append(w.out, w.in[begin:w.at]...) // its own canonical form
		return quoted
	}
	s := unquote(quoted)
	if w.text != nil {
		s = []byte(w.text(string(s)))
	}
	w.out = appendString(w.out, s)
	return s
}

func (w *canonicalWriter) array(depth int) error {
	w.at++
	w.out = append(w.out, '[')
	for n := 0; w.peek() != ']'; n++ {
		if n > 0 {
			w.at++ // a comma
			w.out = append(w.out, ',')
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	w.at++
	w.out = append(w.out, ']')
	return nil
}

// canonicalMember is a member as it was written to out, quoted name and all, from start to end.
type canonicalMember struct {
	name       []byte
	start, end int
}

func (w *canonicalWriter) object(depth int) error {
	w.at++
	w.out = append(w.out, '{')
	begin := len(w.out)
	var few [16]canonicalMember // most objects have no more
	members := few[:0]
	for w.peek() != '}' {
		if len(members) > 0 {
			w.at++ // a comma
			w.out = append(w.out, ',')
			w.peek()
		}
		start := len(w.out)
		name := w.string()
		w.out = append(w.out, ':')
		w.peek()
		w.at++ // the colon
		if err := w.value(depth + 1); err != nil {
			return err
		}
		members = append(members, canonicalMember{name, start, len(w.out)})
	}
	w.at++
	w.sort(begin, members)
	w.out = append(w.out, '}')
	return nil
}

// sort brings the members that were written from begin on into order, and notices those that come twice.
func (w *canonicalWriter) sort(begin int, members []canonicalMember) {
	byName := func(a, b canonicalMember) int { return compareUTF16(a.name, b.name) }
	if !slices.IsSortedFunc(members, byName) {
		slices.SortStableFunc(members, byName)
		w.scratch = append(w.scratch[:0], w.out[begin:]...)
		w.out = w.out[:begin]
		for i, m := range members {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			w.out = append(w.out, w.scratch[m.start-begin:m.end-begin]...)
		}
	}
	for i := 1; i < len(members) && w.repeated == ""; i++ {
		if bytes.Equal(members[i].name, members[i-1].name) {
			w.repeated = strconv.Quote(clip(string(members[i].name), 40))
		}
	}
}

// beyondDouble stands for all numbers that are larger than a double can be. The RFC knows no spelling for them.
const beyondDouble = "1e+9999"

// canonicalNumber spells a number as ECMAScript does (RFC 8785 §3.2.2.3): the shortest digits that give the same double,
// with an exponent from 1e21 on and below 1e-6.
func canonicalNumber(literal string) string {
	f, err := strconv.ParseFloat(literal, 64)
	switch size := math.Abs(f); {
	case err != nil && f < 0:
		return "-" + beyondDouble
	case err != nil:
		return beyondDouble
	case f == 0:
		return "0" // also for -0
	case size < 1e21 && size >= 1e-6:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return digits + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

// unquote returns what stands between the quotes of a valid JSON string. Half of a surrogate pair becomes the three
// bytes that UTF-8 would have for it; they cannot come from anywhere else, for the input is valid.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted
	}
	s := make([]byte, 0, len(quoted))
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			s = append(s, quoted[i])
			continue
		}
		i++
		switch c := quoted[i]; c {
		case 'b':
			s = append(s, '\b')
		case 'f':
			s = append(s, '\f')
		case 'n':
			s = append(s, '\n')
		case 'r':
			s = append(s, '\r')
		case 't':
			s = append(s, '\t')
		case 'u':
			unit := hex4(quoted[i+1:])
			i += 4
			if low, ok := lowSurrogate(quoted[i+1:]); ok && unit >= 0xD800 && unit < 0xDC00 {
				s = utf8.AppendRune(s, 0x10000+(unit-0xD800)<<10+(low-0xDC00))
				i += 6
				continue
			}
			s = appendUnit(s, unit)
		default:
			s = append(s, c) // a quote, a slash or a backslash
		}
	}
	return s
}

// lowSurrogate returns the second half of a pair when rest begins with its escape.
func lowSurrogate(rest []byte) (rune, bool) {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return 0, false
	}
	unit := hex4(rest[2:])
	return unit, unit >= 0xDC00 && unit < 0xE000
}

func hex4(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // hexadecimal, for the JSON is valid
	return rune(n)
}

// appendUnit appends a code unit of UTF-16, also half of a pair.
func appendUnit(s []byte, unit rune) []byte {
	if unit < 0xD800 || unit >= 0xE000 {
		return utf8.AppendRune(s, unit)
	}
	return append(s, 0xED, byte(0x80|unit>>6&0x3F), byte(0x80|unit&0x3F))
}

// halfPair returns the half of a surrogate pair that s begins with, as appendUnit writes it.
func halfPair(s []byte) (rune, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2] < 0x80 || s[2] > 0xBF {
		return 0, false
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), true
}

const lowerHex = "0123456789abcdef"

// appendString appends s in quotes, with no more escapes than RFC 8785 §3.2.2.2 wants.
func appendString(out, s []byte) []byte {
	out = append(out, '"')
	for len(s) > 0 {
		c := s[0]
		if c < utf8.RuneSelf {
			out = appendASCII(out, c)
			s = s[1:]
			continue
		}
		if unit, ok := halfPair(s); ok {
			out = append(out, '\\', 'u', lowerHex[unit>>12], lowerHex[unit>>8&15], lowerHex[unit>>4&15], lowerHex[unit&15])
			s = s[3:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		out = utf8.AppendRune(out, r)
		s = s[size:]
	}
	return append(out, '"')
}

func appendASCII(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\b':
		return append(out, '\\', 'b')
	case '\t':
		return append(out, '\\', 't')
	case '\n':
		return append(out, '\\', 'n')
	case '\f':
		return append(out, '\\', 'f')
	case '\r':
		return append(out, '\\', 'r')
	}
	if c < 0x20 {
		return append(out, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
	}
	return append(out, c)
}

// compareUTF16 compares two strings by their code units in UTF-16, as RFC 8785 §3.2.3 sorts names. That differs from
// comparing bytes only where a character beyond U+FFFF, which begins with a surrogate there, meets one from U+E000 on.
func compareUTF16(a, b []byte) int {
	if !beyondSurrogates(a) && !beyondSurrogates(b) {
		return bytes.Compare(a, b)
	}
	return slices.Compare(unitsOf(a), unitsOf(b))
}

func beyondSurrogates(s []byte) bool {
	return slices.ContainsFunc(s, func(c byte) bool { return c >= 0xED })
}

func unitsOf(s []byte) []uint16 {
	units := make([]uint16, 0, len(s))
	for len(s) > 0 {
		if unit, ok := halfPair(s); ok {
			units = append(units, uint16(unit))
			s = s[3:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		if r >= 0x10000 {
			r -= 0x10000
			units = append(units, uint16(0xD800+r>>10), uint16(0xDC00+r&0x3FF))
		} else {
			units = append(units, uint16(r))
		}
		s = s[size:]
	}
	return units
}
