package probe

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value says where in an answer something stands and how it is written there, as presets write it:
//
//	"sync_info.latest_block_height:decimal"    members by their exact names, items of arrays by their number
//	"time|mediantime:s"                        the first of several places that holds anything
//	":hex"                                     the answer itself
type value struct {
	spec     string
	paths    [][]string
	encoding encoding
}

// encoding is how something is written.
type encoding string

// The encodings of numbers. All are exact at any size.
const (
	asHex     encoding = "hex"     // "0x1a": no leading zeros, at most 256 bits
	asHexish  encoding = "hexish"  // the same, leading zeros and a missing 0x allowed
	asInt     encoding = "int"     // 26
	asDecimal encoding = "decimal" // "26"
	asNumber  encoding = "number"  // any of hex, int and decimal
	asOrigin  encoding = "origin"  // 26, or "origin" for a chain without a block
)

// The encodings of points in time.
const (
	asHexSeconds encoding = "hex-s"       // "0x65f0…", seconds since 1970
	asSeconds    encoding = "s"           // 1710000000, or the same in a string; so the next three
	asMillis     encoding = "ms"          //
	asMicros     encoding = "us"          //
	asNanos      encoding = "ns"          //
	asRFC3339    encoding = "rfc3339"     // "2026-03-09T16:00:00.123456789Z"
	asRipple     encoding = "ripple"      // seconds since 2000
	asHeaderTime encoding = "header-time" // of a Bitcoin block header in hex
)

// The encodings of words and the rest.
const (
	asText         encoding = "text"          // a string
	asHeaderHash   encoding = "header-hash"   // the hash of a Bitcoin block header in hex
	asHeaderParent encoding = "header-parent" // the parent's hash in it
	asBool         encoding = "bool"
	asObject       encoding = "object"
	asArray        encoding = "array"
	asAny          encoding = "any"
)

var (
	numberEncodings = []encoding{asHex, asHexish, asInt, asDecimal, asNumber, asOrigin}
	timeEncodings   = []encoding{asHexSeconds, asSeconds, asMillis, asMicros, asNanos, asRFC3339, asRipple, asHeaderTime}
	textEncodings   = []encoding{asText, asHeaderHash, asHeaderParent}
	shapeEncodings  = []encoding{asBool, asObject, asArray, asAny}
)

func (e encoding) isNumber() bool { return slices.Contains(numberEncodings, e) }

func (e encoding) isTime() bool { return slices.Contains(timeEncodings, e) }

func (e encoding) isText() bool { return slices.Contains(textEncodings, e) }

// UnmarshalText reads a value as presets write it.
func (v *value) UnmarshalText(text []byte) error {
	places, encoded, ok := strings.Cut(string(text), ":")
	e := encoding(encoded)
	if !ok || !e.isNumber() && !e.isTime() && !e.isText() && !slices.Contains(shapeEncodings, e) {
		return fmt.Errorf("%q has no known encoding", text)
	}
	*v = value{spec: string(text), encoding: e}
	for place := range strings.SplitSeq(places, "|") {
		v.paths = append(v.paths, splitPath(place))
	}
	return nil
}

// splitPath reads a path as presets write it: names between dots, nothing for the whole answer.
func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// placeWords names a path for a message.
func placeWords(path []string) string {
	if path == nil {
		return "the answer"
	}
	return strings.Join(path, ".")
}

func (v value) isZero() bool { return v.encoding == "" }

// where names the place for a message.
func (v value) where() string {
	if v.isZero() {
		return "such thing"
	}
	return placeWords(v.paths[0])
}

// tree is an answer that several values are taken from.
type tree struct {
	raw     json.RawMessage
	objects map[string]object // what has been read of it, by path
}

func newTree(raw json.RawMessage) *tree {
	return &tree{bytes.TrimSpace(raw), map[string]object{}}
}

// maxIndex bounds the numbers of items that presets may name.
const maxIndex = 16

// at returns what stands at a path; false when nothing does. Null is nothing, except for the whole answer.
func (d *tree) at(path []string) (json.RawMessage, bool) {
	here, walked := d.raw, ""
	for _, name := range path {
		walked += "\x00" + name
		if index, err := strconv.Atoi(name); err == nil && len(here) > 0 && here[0] == '[' {
			found, _ := items(here, min(index, maxIndex)+1)
			if index < 0 || index >= len(found) {
				return nil, false
			}
			here = found[index]
			continue
		}
		members, ok := d.objects[walked]
		if !ok {
			members, _ = readObject(here) // what is no object has no members
			d.objects[walked] = members
		}
		if here, ok = members.get(name); !ok || isNull(here) {
			return nil, false
		}
	}
	return here, len(here) > 0
}

// find returns what v points to; false when nothing is there.
func (d *tree) find(v value) (json.RawMessage, bool) {
	for _, path := range v.paths {
		if raw, ok := d.at(path); ok {
			return raw, true
		}
	}
	return nil, false
}

// absent is the error of a value that an answer does not hold.
type absent struct{ where string }

func (e absent) Error() string { return "missing: no " + e.where }

// number reads v as a number; the error says what is there instead, an absent when nothing is.
func (d *tree) number(v value) (*big.Int, error) {
	raw, ok := d.find(v)
	if !ok {
		return nil, absent{v.where()}
	}
	return readNumber(raw, v.encoding)
}

// height reads v as a number that fits into 64 bits, as every chain's height does.
func (d *tree) height(v value) (uint64, error) {
	n, err := d.number(v)
	switch {
	case err != nil:
		return 0, err
	case n.Sign() < 0:
		return 0, fmt.Errorf("negative: %s", clip(n.String(), 80))
	case !n.IsUint64():
		return 0, fmt.Errorf("larger than 64 bits")
	default:
		return n.Uint64(), nil
	}
}

// text reads v as words: a string as it is, a number in decimal.
func (d *tree) text(v value) (string, error) {
	raw, ok := d.find(v)
	if !ok {
		return "", absent{v.where()}
	}
	if v.encoding.isNumber() {
		n, err := readNumber(raw, v.encoding)
		if err != nil {
			return "", err
		}
		return n.String(), nil
	}
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil || s == "" {
		return "", fmt.Errorf("not text: %s", clip(string(raw), 100))
	}
	if v.encoding == asText {
		return s, nil
	}
	header, err := readHeader(s)
	if err != nil {
		return "", err
	}
	if v.encoding == asHeaderParent {
		return displayHash(header[4:36]), nil
	}
	once := sha256.Sum256(header)
	twice := sha256.Sum256(once[:])
	return displayHash(twice[:]), nil
}

// time reads v as a point in time. Chains of tests keep a clock of their own that begins in 1970: what is older than the
// first block of Bitcoin is no time.
func (d *tree) time(v value) (time.Time, error) {
	raw, ok := d.find(v)
	if !ok {
		return time.Time{}, absent{v.where()}
	}
	t, err := readTime(raw, v.encoding)
	if err != nil || t.Before(firstBlock) {
		return time.Time{}, err
	}
	return t.UTC(), nil
}

var firstBlock = time.Date(2009, 1, 3, 0, 0, 0, 0, time.UTC)

// shaped reports whether v is there in its encoding.
func (d *tree) shaped(v value) error {
	switch {
	case v.encoding.isNumber():
		_, err := d.number(v)
		return err
	case v.encoding.isTime():
		_, err := d.time(v)
		return err
	case v.encoding.isText():
		_, err := d.text(v)
		return err
	}
	raw, ok := d.find(v)
	if !ok {
		return absent{v.where()}
	}
	if v.encoding == asAny {
		return nil
	}
	first := map[encoding]string{asBool: "tf", asObject: "{", asArray: "["}[v.encoding]
	if !strings.ContainsRune(first, rune(raw[0])) {
		return fmt.Errorf("not %s: %s", map[encoding]string{asBool: "true or false", asObject: "an object", asArray: "an array"}[v.encoding], clip(string(raw), 100))
	}
	return nil
}

var (
	// quantityShape is how the Ethereum JSON-RPC specification writes numbers: no leading zeros, at most 256 bits.
	quantityShape = regexp.MustCompile(`^0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})$`)
	hexishShape   = regexp.MustCompile(`^(0x)?[0-9a-fA-F]{1,64}$`)
	decimalShape  = regexp.MustCompile(`^(0|[1-9][0-9]{0,77})$`)
	integerShape  = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,77})$`)
)

// readNumber reads raw in an encoding of numbers; the error says what it is instead.
func readNumber(raw json.RawMessage, e encoding) (*big.Int, error) {
	var s string
	isText := len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	switch {
	case isText && (e == asHex || e == asNumber && strings.HasPrefix(s, "0x")):
		if !quantityShape.MatchString(s) {
			return nil, fmt.Errorf(`not a hex number without leading zeros: "%s"`, clip(s, 100))
		}
		return parseInt(s[2:], 16)
	case isText && e == asHexish && hexishShape.MatchString(s):
		return parseInt(strings.TrimPrefix(s, "0x"), 16)
	case isText && (e == asDecimal || e == asNumber) && decimalShape.MatchString(s):
		return parseInt(s, 10)
	case isText && e == asOrigin && s == "origin":
		return new(big.Int), nil
	case !isText && (e == asInt || e == asNumber || e == asOrigin) && integerShape.Match(raw):
		return parseInt(string(raw), 10)
	}
	return nil, fmt.Errorf("not %s: %s", encodingWords[e], clip(string(raw), 100))
}

var encodingWords = map[encoding]string{
	asHex: "a hex number", asHexish: "a hex number", asInt: "an integer", asDecimal: "a decimal number in a string",
	asNumber: "a number", asOrigin: `an integer or "origin"`,
}

func parseInt(digits string, base int) (*big.Int, error) {
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, fmt.Errorf("not a number: %s", clip(digits, 100))
	}
	return n, nil
}

const (
	rippleEpoch = 946684800    // the year 2000, where the XRP Ledger begins to count seconds
	maxSeconds  = 250000000000 // bounds a time in seconds: within the year 9999, the last that JSON can hold
)

// readTime reads raw in an encoding of times; the error says what it is instead.
func readTime(raw json.RawMessage, e encoding) (time.Time, error) {
	switch e {
	case asRFC3339:
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return time.Time{}, fmt.Errorf("not a time: %s", clip(string(raw), 100))
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return time.Time{}, fmt.Errorf(`not a time: "%s"`, clip(s, 100))
		}
		return t, nil
	case asHeaderTime:
		var s string
		_ = json.Unmarshal(raw, &s) // what is no string is no header either
		header, err := readHeader(s)
		if err != nil {
			return time.Time{}, err
		}
		return time.Unix(int64(binary.LittleEndian.Uint32(header[68:72])), 0), nil
	}
	written := asNumber
	if e == asHexSeconds {
		written = asHex
	}
	n, err := readNumber(raw, written)
	if err != nil {
		return time.Time{}, fmt.Errorf("not a time: %s", clip(string(raw), 100))
	}
	unit := map[encoding]int64{asMillis: 1e3, asMicros: 1e6, asNanos: 1e9}[e]
	if unit == 0 {
		unit = 1
	}
	seconds, rest := new(big.Int).DivMod(n, big.NewInt(unit), new(big.Int))
	if !seconds.IsInt64() || seconds.Int64() < 0 || seconds.Int64() > maxSeconds {
		return time.Time{}, fmt.Errorf("not a time: %s", clip(string(raw), 100))
	}
	if e == asRipple {
		return time.Unix(rippleEpoch+seconds.Int64(), 0), nil
	}
	return time.Unix(seconds.Int64(), rest.Int64()*(1e9/unit)), nil
}

// readHeader reads a Bitcoin block header: 80 bytes in hex, and in some forks more behind them.
func readHeader(s string) ([]byte, error) {
	const size = 80
	if len(s) > 4<<10 {
		return nil, fmt.Errorf("not a block header: %d digits", len(s))
	}
	header, err := hex.DecodeString(s)
	if err != nil || len(header) < size {
		return nil, fmt.Errorf(`not a block header: "%s"`, clip(s, 100))
	}
	return header[:size], nil
}

// displayHash writes a hash the way Bitcoin shows it: last byte first.
func displayHash(hash []byte) string {
	reversed := slices.Clone(hash)
	slices.Reverse(reversed)
	return hex.EncodeToString(reversed)
}
