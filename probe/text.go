package probe

import (
	"strings"
	"unicode"
)

// tidy makes text that a stranger wrote fit to be kept and shown: clean, and at most max bytes long.
func tidy(s string, max int) string { return shorten(clean(s, max), max) }

// clean makes text valid UTF-8 on one line, without control characters and without the invisible ones that reorder what
// stands beside them or split what is looked for. It reads more than enough of s to leave max bytes, not all of it: the
// body of an error may be megabytes.
func clean(s string, max int) string {
	end := ""
	if bound := 16 * (max + 16); len(s) > bound {
		s, end = s[:bound], cutMark
	}
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "�") {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			space = b.Len() > 0
			continue
		case invisible(r):
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + end
}

// invisible reports whether a character shows nothing of itself, so that text may be split by it, or turned around,
// without a reader noticing.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// shorten clips s so that it has at most max bytes with the mark of clipping.
func shorten(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return clip(s, max-len(cutMark))
}
