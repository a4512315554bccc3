package store

import (
	"strconv"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
)

// Fold returns the form in which names are compared, sorted and searched: without regard to case. It is worked out here
// and kept beside the name, because databases disagree on the case of anything but ASCII.
func Fold(name string) string { return strings.ToLower(name) }

// CleanText returns s as every database can keep it: valid UTF-8 without NUL, which Postgres refuses. What cannot be kept
// becomes U+FFFD. Texts of a monitored endpoint go through it: one odd byte must not keep a whole group from being kept.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// SearchText is what EndpointFilter.Query is looked for in: what is shown of e, and no key that is cut out of its URL,
// which could otherwise be guessed letter by letter.
func (e Endpoint) SearchText() string {
	return Fold(e.Name + "\n" + e.Slug + "\n" + probe.RedactURL(e.URL) + CleanText(e.programText()))
}

// FirstFree returns the first variant of base, as Numbered makes them, that is not taken.
func FirstFree(base string, taken func(string) bool) string {
	for n := 1; ; n++ {
		if candidate := Numbered(base, n); !taken(candidate) {
			return candidate
		}
	}
}

// ChannelProblems returns what is wrong with the channels that an endpoint names as an Invalid, nil when each of them is
// among the existing ones and stands there once.
func ChannelProblems(channels []string, exists map[string]bool) error {
	var invalid Invalid
	seen := map[string]bool{}
	for i, id := range channels {
		field := "channels[" + strconv.Itoa(i) + "]"
		switch {
		case !exists[id]:
			invalid.Problems = append(invalid.Problems, problem(field, "there is no channel %.60q", id))
		case seen[id]:
			invalid.Problems = append(invalid.Problems, problem(field, "stands there twice"))
		}
		seen[id] = true
	}
	if len(invalid.Problems) == 0 {
		return nil
	}
	return invalid
}
