package probe

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RedactURL returns raw fit to be shown: user information, path segments that look like keys, and query values that are
// not plainly harmless become "…", the fragment goes. Scheme, host and ordinary path words stay readable. Redacting
// twice changes nothing, and what cannot be read as a URL is "…" as a whole.
func RedactURL(raw string) string {
	redacted, _ := redactURL(raw)
	return redacted
}

// urlSecrets returns what RedactURL cuts out of raw, as written and as decoded.
func urlSecrets(raw string) []string {
	_, secrets := redactURL(raw)
	return secrets
}

// redactURL works on the text itself: a URL taken apart and put together again is not always what was written.
func redactURL(raw string) (redacted string, secrets []string) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !schemeWord(scheme) {
		if raw == "" {
			return "", nil
		}
		return cutMark, nil
	}
	authority, rest := splitBefore(rest, "/?#")
	path, rest := splitBefore(rest, "?#")
	query, _ := splitBefore(rest, "#")

	var b strings.Builder
	b.WriteString(scheme)
	b.WriteString("://")
	host := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user := authority[:at]
		host = authority[at+1:]
		b.WriteString(cutMark + "@")
		if _, password, ok := strings.Cut(user, ":"); ok {
			secrets = appendSecret(secrets, password)
		}
		secrets = appendSecret(secrets, user)
	}
	if !hostText(host) {
		host = cutMark
	}
	b.WriteString(host)
	secrets = redactPath(&b, path, secrets)
	secrets = redactQuery(&b, query, secrets)
	return b.String(), secrets
}

func redactPath(b *strings.Builder, path string, secrets []string) []string {
	before := ""
	for i, segment := range strings.Split(path, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		word := unescape(segment)
		if segment != "" && word != cutMark && (keyLike(word) || namesKey(before)) {
			secrets = appendSecret(secrets, segment)
			segment = cutMark
		}
		b.WriteString(segment)
		before = word
	}
	return secrets
}

// namesKey reports whether a path segment announces that a key follows.
func namesKey(word string) bool {
	switch strings.ToLower(word) {
	case "key", "apikey", "api-key", "api_key", "token", "secret":
		return true
	default:
		return false
	}
}

func redactQuery(b *strings.Builder, query string, secrets []string) []string {
	if query == "" {
		return secrets
	}
	b.WriteByte('?')
	for i, pair := range strings.Split(strings.TrimPrefix(query, "?"), "&") {
		if i > 0 {
			b.WriteByte('&')
		}
		name, value, hasValue := strings.Cut(pair, "=")
		plain := unescape(name)
		if !hasValue || keyLike(plain) { // "?<key>" alone is a way to write a key
			name, plain = redactWord(name, &secrets), ""
		}
		b.WriteString(name)
		if hasValue {
			b.WriteString("=" + redactValue(plain, value, &secrets))
		}
	}
	return secrets
}

// redactWord cuts a query member without a value unless it is a plain word.
func redactWord(word string, secrets *[]string) string {
	plain := unescape(word)
	if plain == cutMark || harmless(plain) {
		return word
	}
	*secrets = appendSecret(*secrets, word)
	return cutMark
}

// redactValue cuts the value of a query member unless name and value are both plainly harmless.
func redactValue(name, value string, secrets *[]string) string {
	plain := unescape(value)
	if plain == "" || plain == cutMark || name != "" && !secretName(name) && harmless(plain) {
		return value
	}
	*secrets = appendSecret(*secrets, value)
	return cutMark
}

// appendSecret adds a secret as written and as decoded.
func appendSecret(secrets []string, written string) []string {
	if written == "" || written == cutMark {
		return secrets
	}
	secrets = append(secrets, written)
	if plain := unescape(written); plain != written {
		secrets = append(secrets, plain)
	}
	return secrets
}

// splitBefore cuts s before the first of the characters.
func splitBefore(s, chars string) (before, rest string) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// unescape decodes percent signs where they make sense.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

func schemeWord(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// hostText reports whether s is made of what hosts and ports are written with.
func hostText(s string) bool {
	if s == cutMark || len(s) > 300 || !utf8.ValidString(s) {
		return s == cutMark
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:[]%", r)
	}) < 0
}

// harmless reports whether s is a short plain word or number, such as a version or the name of a network.
func harmless(s string) bool {
	return len(s) <= 16 && !keyLike(s) && strings.IndexFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	}) < 0
}

// keyLike reports whether a path segment looks like a key rather than a word. It errs on the side of keys.
func keyLike(s string) bool {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return true
	}
	length, digits := 0, 0
	for piece := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if keyPiece(piece) {
			return true
		}
		for _, r := range piece {
			length++
			if unicode.IsDigit(r) {
				digits++
			}
		}
	}
	// A key with separators, such as a UUID: pieces that are harmless one by one.
	return length >= 20 && digits*5 >= length || length > 64
}

// keyPiece judges a run of letters and digits. Words are letters of one case (or with a capital here and there) with at
// most a few digits at an end: "streamable", "getBlock", "v1", "rpc2", "20251125".
func keyPiece(s string) bool {
	var upper, lower, digits, switches int
	var before rune
	for _, r := range s {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsUpper(r):
			upper++
		default:
			lower++
		}
		if before != 0 && unicode.IsDigit(before) != unicode.IsDigit(r) {
			switches++
		}
		before = r
	}
	letters := upper + lower
	length := letters + digits
	switch {
	case length >= 24:
		return true
	case length <= 7:
		return false
	case letters == 0:
		return length > 8 // a date is no key
	case upper >= 3 && lower > 0 && upper*3 >= letters && length >= 10:
		return true // aXbQcTdZ…
	case digits == 0:
		return false
	case upper > 0 && lower == 0 && length >= 9:
		return true // T01234567
	default:
		return switches > 2 || digits >= 4 && length >= 12
	}
}
