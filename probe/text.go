package probe

import (
	"strings"
	"unicode"
)

// tidy makes text that a stranger wrote fit to be kept and shown: valid UTF-8 on one line, without control characters
// and without the invisible ones that reorder what stands beside them, at most max bytes long.
func tidy(s string, max int) string {
	// More than enough to fill max after cleaning, for the body of an error may be megabytes.
	if bound := 16 * (max + 16); len(s) > bound {
		s = s[:bound]
	}
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "�") {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			space = b.Len() > 0
			continue
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	if b.Len() <= max {
		return b.String()
	}
	const mark = "…"
	return clip(b.String(), max-len(mark))
}
