package probe

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEscape is the length of the longest escape that is read: a pair of \u. A longer entity of HTML is read as text.
const maxEscape = 12

// escapeAt reads the escape that text begins with, as JSON and most languages (\u0041, \x41, \/), URLs (%41) and HTML
// (&#65;, &#x41;, &amp;) write one, and returns what it stands for and its length; zero when there is none.
func escapeAt(text string) (decoded string, length int) {
	if len(text) < 2 {
		return "", 0
	}
	switch text[0] {
	case '%':
		return hexByte(text, 1)
	case '&':
		return entityAt(text)
	case '\\':
		return backslashAt(text)
	default:
		return "", 0
	}
}

// escapes reports whether an escape may begin with c.
func escapes(c byte) bool { return c == '%' || c == '&' || c == '\\' }

// oneByte holds every byte as a string, so that decoding one takes no memory.
var oneByte = func() (table [256]string) {
	for i := range table {
		table[i] = string([]byte{byte(i)})
	}
	return table
}()

// hexByte reads two hexadecimal digits after a prefix.
func hexByte(text string, prefix int) (decoded string, length int) {
	if len(text) < prefix+2 {
		return "", 0
	}
	n, ok := hexNumber(text[prefix : prefix+2])
	if !ok {
		return "", 0
	}
	return oneByte[n], prefix + 2
}

// hexNumber reads hexadecimal digits, a few.
func hexNumber(s string) (n rune, ok bool) {
	for i := range len(s) {
		digit := strings.IndexByte("0123456789abcdef", s[i]|0x20)
		if digit < 0 || s[i] < '0' {
			return 0, false
		}
		n = n<<4 | rune(digit)
	}
	return n, len(s) > 0
}

func backslashAt(text string) (decoded string, length int) {
	switch c := text[1]; c {
	case '"', '\'', '\\', '/':
		return oneByte[c], 2
	case 'b', 'f', 'n', 'r', 't':
		return oneByte["\b\f\n\r\t"[strings.IndexByte("bfnrt", c)]], 2
	case 'x':
		return hexByte(text, 2)
	case 'u':
		return utf16At(text)
	default:
		return "", 0
	}
}

// utf16At reads \u0041, or a pair that stands for one character.
func utf16At(text string) (decoded string, length int) {
	first, ok := unitAt(text)
	if !ok {
		return "", 0
	}
	if first < utf8.RuneSelf {
		return oneByte[first], 6
	}
	if second, ok := unitAt(text[6:]); ok {
		if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
			return string(pair), 12
		}
	}
	return string(first), 6
}

func unitAt(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	return hexNumber(text[2:6])
}

// entityAt reads an entity of HTML: by number in either base, or by name.
func entityAt(text string) (decoded string, length int) {
	end := strings.IndexByte(text[:min(len(text), maxEscape)], ';')
	if end < 2 {
		return "", 0
	}
	switch text[1:end] { // what there is most of
	case "amp":
		return "&", end + 1
	case "quot":
		return `"`, end + 1
	}
	if text[1] != '#' {
		if plain := html.UnescapeString(text[:end+1]); plain != text[:end+1] && !strings.HasSuffix(plain, ";") {
			return plain, end + 1
		}
		return "", 0
	}
	digits, base := text[2:end], 10
	if hex := strings.TrimLeft(digits, "xX"); len(hex) == len(digits)-1 {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	if err != nil {
		return "", 0
	}
	if n < utf8.RuneSelf {
		return oneByte[n], end + 1
	}
	return string(rune(n)), end + 1
}

// unfinishedEscape reports whether text may be the beginning of an escape that was clipped.
func unfinishedEscape(text string) bool {
	return text != "" && len(text) < maxEscape && escapes(text[0]) && !strings.ContainsAny(text, " \n;")
}

// unescaped returns text with those of its escapes read once that begin with kind, and for every byte of that where in
// text it came from, with one more for the end.
func unescaped(text string, kind byte) (plain string, from []int) {
	var b strings.Builder
	b.Grow(len(text))
	from = make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		if text[i] == kind {
			if decoded, length := escapeAt(text[i:]); length > 0 {
				b.WriteString(decoded)
				for range len(decoded) {
					from = append(from, i)
				}
				i += length
				continue
			}
		}
		b.WriteByte(text[i])
		from = append(from, i)
		i++
	}
	return b.String(), append(from, len(text))
}
