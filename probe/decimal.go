package probe

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number of any size as it was written in decimal: ±0.DIGITS × 10^exponent, digits without zeros at either
// end. Numbers are compared as text, because 1e999999999 takes a few bytes as text and a gigabyte as an integer.
type decimal struct {
	negative bool
	digits   string // empty for zero
	exponent int64
}

// maxNumber bounds a number in a string, in bytes: 256 bits are 78 digits.
const maxNumber = 1 << 10

// readDecimal reads a JSON number, or a JSON string that holds a decimal or 0x number.
func readDecimal(raw json.RawMessage) (decimal, bool) {
	text := strings.TrimSpace(string(raw[:min(len(raw), 2*maxNumber)]))
	if text == "" {
		return decimal{}, false
	}
	if text[0] != '"' {
		return parseDecimal(text)
	}
	var s string
	if len(raw) > maxNumber || json.Unmarshal(raw, &s) != nil {
		return decimal{}, false
	}
	hex, isHex := strings.CutPrefix(strings.ToLower(s), "0x")
	if !isHex {
		return parseDecimal(s)
	}
	n, ok := new(big.Int).SetString(hex, 16)
	if !ok || strings.ContainsAny(hex, "+-_") {
		return decimal{}, false
	}
	return parseDecimal(n.String())
}

// parseDecimal reads a number in the grammar of JSON, at most maxNumber bytes long.
func parseDecimal(s string) (decimal, bool) {
	if len(s) > maxNumber || !jsonNumber(s) {
		return decimal{}, false
	}
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	significant := strings.TrimLeft(digits, "0")
	d.digits = strings.TrimRight(significant, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	d.exponent = int64(len(whole)) - int64(len(digits)-len(significant))
	if exponent == "" {
		return d, true
	}
	n, err := strconv.ParseInt(exponent, 10, 62) // small enough to be added to
	d.exponent += n
	return d, err == nil
}

// jsonNumber reports whether s is a number in the grammar of JSON (RFC 8259 §6).
func jsonNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	last := s[len(s)-1]
	return last >= '0' && last <= '9' && json.Valid([]byte(s))
}

// compare returns -1, 0 or +1 as d is less than, equal to or greater than e.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() {
		return compareInts(d.sign(), e.sign())
	}
	magnitude := compareInts(d.exponent, e.exponent)
	if magnitude == 0 {
		magnitude = strings.Compare(d.digits, e.digits)
	}
	return magnitude * d.sign()
}

func compareInts[N int | int64](a, b N) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// integer reports whether d has no fraction.
func (d decimal) integer() bool { return d.exponent >= int64(len(d.digits)) }

// sameNumber reports whether two JSON numbers have the same value. Numbers that are too long to be read are the same only
// when they are written the same.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, ok1 := parseDecimal(a)
	y, ok2 := parseDecimal(b)
	return ok1 && ok2 && x == y
}
