package probe

import (
	"encoding/json"
	"unicode/utf8"
)

// maxDepth is how deeply JSON may nest: where encoding/json stops, so that what is scanned here can be decoded there.
const maxDepth = 10_000

// validJSON reports whether raw is one JSON value (RFC 8259) in UTF-8, with white space around it or not.
func validJSON(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	end, ok := scanValue(raw, skipSpace(raw, 0), 0)
	return ok && skipSpace(raw, end) == len(raw)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// trimSpace cuts what JSON calls white space from both ends.
func trimSpace(b []byte) []byte {
	b = b[skipSpace(b, 0):]
	for len(b) > 0 {
		switch b[len(b)-1] {
		case ' ', '\n', '\r', '\t':
			b = b[:len(b)-1]
		default:
			return b
		}
	}
	return b
}

// scanValue returns where the JSON value that begins at i ends, and whether it is one. The value stands inside of so many
// others. UTF-8 is not looked at.
func scanValue(b []byte, i, depth int) (end int, ok bool) {
	if i < len(b) && (b[i] == '{' || b[i] == '[') {
		return scanContainer(b, i, depth)
	}
	return scanScalar(b, i)
}

// scanContainer scans an object or array without calling itself: how deep a stranger's JSON nests must not decide how
// much memory a goroutine takes.
func scanContainer(b []byte, i, outside int) (end int, ok bool) {
	var objects [(maxDepth + 63) / 64]uint64 // a bit for each level that is an object
	depth := 0
	for {
		// At i stands a value.
		if i < len(b) && (b[i] == '{' || b[i] == '[') {
			if outside+depth == maxDepth {
				return i, false
			}
			object := b[i] == '{'
			word, bit := depth/64, uint64(1)<<(depth%64)
			if object {
				objects[word] |= bit
			} else {
				objects[word] &^= bit
			}
			depth++
			i = skipSpace(b, i+1)
			if i == len(b) || b[i] != '}' && b[i] != ']' {
				if object {
					if i, ok = scanName(b, i); !ok {
						return i, false
					}
				}
				continue
			}
			// An empty container is closed below.
		} else if i, ok = scanScalar(b, i); !ok {
			return i, false
		}
		for {
			i = skipSpace(b, i)
			if i == len(b) {
				return i, false
			}
			object := objects[(depth-1)/64]&(1<<((depth-1)%64)) != 0
			if b[i] == ',' {
				i = skipSpace(b, i+1)
				if object {
					if i, ok = scanName(b, i); !ok {
						return i, false
					}
				}
				break
			}
			if object && b[i] != '}' || !object && b[i] != ']' {
				return i, false
			}
			i++
			if depth--; depth == 0 {
				return i, true
			}
		}
	}
}

// scanName scans the name of a member and the colon behind it, up to the value.
func scanName(b []byte, i int) (end int, ok bool) {
	if i == len(b) || b[i] != '"' {
		return i, false
	}
	if i, ok = scanString(b, i); !ok {
		return i, false
	}
	i = skipSpace(b, i)
	if i == len(b) || b[i] != ':' {
		return i, false
	}
	return skipSpace(b, i+1), true
}

func scanScalar(b []byte, i int) (end int, ok bool) {
	if i == len(b) {
		return i, false
	}
	switch c := b[i]; {
	case c == '"':
		return scanString(b, i)
	case c == '-' || c >= '0' && c <= '9':
		return scanNumber(b, i)
	case c == 't':
		return scanWord(b, i, "true")
	case c == 'f':
		return scanWord(b, i, "false")
	case c == 'n':
		return scanWord(b, i, "null")
	default:
		return i, false
	}
}

func scanWord(b []byte, i int, word string) (end int, ok bool) {
	end = i + len(word)
	if end > len(b) || string(b[i:end]) != word {
		return i, false
	}
	return end, true
}

func scanString(b []byte, i int) (end int, ok bool) {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, true
		case c < 0x20:
			return i, false
		case c == '\\':
			if i, ok = scanEscape(b, i+1); !ok {
				return i, false
			}
		}
	}
	return i, false
}

// scanEscape returns where the last character of an escape is whose first, after the backslash, is at i.
func scanEscape(b []byte, i int) (last int, ok bool) {
	if i == len(b) {
		return i, false
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i, true
	case 'u':
	default:
		return i, false
	}
	if i+4 >= len(b) {
		return i, false
	}
	for _, c := range b[i+1 : i+5] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return i, false
		}
	}
	return i + 4, true
}

func scanNumber(b []byte, i int) (end int, ok bool) {
	if b[i] == '-' {
		i++
	}
	whole := i
	if i = skipDigits(b, i); i == whole || b[whole] == '0' && i > whole+1 {
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		if i = skipDigits(b, fraction); i == fraction {
			return i, false
		}
	}
	if i == len(b) || b[i] != 'e' && b[i] != 'E' {
		return i, true
	}
	if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	exponent := i
	i = skipDigits(b, exponent)
	return i, i > exponent
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// memberReader reads the members of an object one after the other. What it returns is part of the bytes it was given.
type memberReader struct {
	raw  []byte
	i    int
	more bool // another member begins at i
	bad  bool // raw breaks the grammar of JSON
}

// readMembers begins to read raw as an object; ok reports whether it looks like one.
func readMembers(raw []byte) (r memberReader, ok bool) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return r, false
	}
	r = memberReader{raw: raw, i: skipSpace(raw, i+1)}
	r.more = r.i == len(raw) || raw[r.i] != '}'
	return r, true
}

// next returns the next member, its name decoded. At the end of the object, and of what can be read, ok is false.
func (r *memberReader) next() (name string, value json.RawMessage, ok bool) {
	if !r.more || r.bad {
		return "", nil, false
	}
	begin := r.i
	i, ok := scanName(r.raw, begin)
	if !ok {
		r.bad = true
		return "", nil, false
	}
	end, ok := scanValue(r.raw, i, 1)
	if !ok {
		r.bad = true
		return "", nil, false
	}
	r.more, r.i, r.bad = afterItem(r.raw, end, '}')
	return memberName(r.raw[begin:i]), r.raw[i:end:end], !r.bad
}

// whole reports whether the object was read to its end and nothing but white space follows.
func (r *memberReader) whole() bool {
	return !r.more && !r.bad && r.i < len(r.raw) && skipSpace(r.raw, r.i+1) == len(r.raw)
}

// afterItem goes from the end of an item to the next one, or to the closing bracket.
func afterItem(raw []byte, end int, closing byte) (more bool, next int, bad bool) {
	next = skipSpace(raw, end)
	switch {
	case next == len(raw):
		return false, next, true
	case raw[next] == ',':
		return true, skipSpace(raw, next+1), false
	default:
		return false, next, raw[next] != closing
	}
}

// memberName decodes the name at the beginning of raw, without a copy for the names that every message has.
func memberName(raw []byte) string {
	end := 1
	for raw[end] != '"' {
		if raw[end] == '\\' {
			return decodedName(raw)
		}
		end++
	}
	switch name := raw[1:end]; string(name) {
	case "jsonrpc":
		return "jsonrpc"
	case "id":
		return "id"
	case "result":
		return "result"
	case "error":
		return "error"
	case "method":
		return "method"
	case "code":
		return "code"
	case "message":
		return "message"
	case "data":
		return "data"
	case "name":
		return "name"
	case "description":
		return "description"
	case "inputSchema":
		return "inputSchema"
	default:
		return string(name)
	}
}

func decodedName(raw []byte) string {
	end, _ := scanString(raw, 0)
	var name string
	_ = json.Unmarshal(raw[:end], &name) // it was scanned
	return name
}

// arrayReader reads the items of an array one after the other. What it returns is part of the bytes it was given.
type arrayReader struct {
	raw  []byte
	i    int
	more bool // another item begins at i
	bad  bool // raw breaks the grammar of JSON
}

// readItems begins to read raw as an array; ok reports whether it looks like one.
func readItems(raw []byte) (r arrayReader, ok bool) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '[' {
		return r, false
	}
	r = arrayReader{raw: raw, i: skipSpace(raw, i+1)}
	r.more = r.i == len(raw) || raw[r.i] != ']'
	return r, true
}

// next returns the next item. At the end of the array, and of what can be read, ok is false.
func (r *arrayReader) next() (item json.RawMessage, ok bool) {
	if !r.more || r.bad {
		return nil, false
	}
	begin := r.i
	end, ok := scanValue(r.raw, begin, 1)
	if !ok {
		r.bad = true
		return nil, false
	}
	r.more, r.i, r.bad = afterItem(r.raw, end, ']')
	return r.raw[begin:end:end], !r.bad
}
