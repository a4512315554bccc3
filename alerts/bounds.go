package alerts

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// fit returns text cut to n UTF-16 code units, on a rune boundary and with an ellipsis where something is missing. Services
// that count characters count runes or UTF-16 code units, mostly without saying which: of these the latter are never fewer.
func fit(text string, n int) string { return cut(text, n, utf16.RuneLen, 1) }

// fitBytes does the same for services that count bytes.
func fitBytes(text string, n int) string { return cut(text, n, utf8.RuneLen, len("…")) }

func cut(text string, n int, size func(rune) int, ellipsis int) string {
	var used, keep int // keep: bytes of text that leave room for an ellipsis
	for i, r := range text {
		width := max(size(r), 1) // invalid UTF-8 counts as one
		if used+width > n {
			return text[:keep] + "…"
		}
		used += width
		if used+ellipsis <= n {
			keep = i + utf8.RuneLen(r)
		}
	}
	return text
}

// width is how many UTF-16 code units a text has.
func width(text string) int {
	n := 0
	for _, r := range text {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// fitLines returns as many of lines, from the first, as have at most n UTF-16 code units with a line break behind each.
// An ellipsis stands for the others.
func fitLines(lines []string, n int) []string {
	used := 0
	for i, line := range lines {
		used += width(line) + 1
		if used > n-len("…\n") {
			return append(lines[:i:i], "…")
		}
	}
	return lines
}

// plain makes text of a template fit for a message, line by line as the texts of a Message are: nothing in it hides or
// turns the direction of writing.
func plain(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = oneLine(line, maxPlain)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

const maxPlain = 16 << 10 // characters of a line: no service takes more

// defuse takes the effect away from what a service turns into something by itself: names that would be notified and
// addresses that would become links. The word joiner cannot be seen and forbids a line break only.
func defuse(text string) string { return defuser.Replace(text) }

var defuser = strings.NewReplacer("@", "@\u2060", "://", ":\u2060//", "www.", "www\u2060.")
