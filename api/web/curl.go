package web

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// curlSecret stands where a secret was cut out of a transcript.
const curlSecret = "YOUR-SECRET"

// cutMark is what secrets are replaced by in transcripts.
const cutMark = "…"

// curlOf returns a command that sends a request of a transcript once more; empty when curl cannot: it was no request over HTTP, the
// stream of a WebSocket, or its body was not kept whole. base is the address of the endpoint without its secrets.
//
// Much of a request is chosen by the server that is monitored (a session id, an address to post to), so everything is quoted for a
// shell, and nothing in it reaches the terminal of whoever pastes it but characters that can be seen.
func curlOf(t Turn, base string) string {
	method, rest, _ := strings.Cut(t.Line, " ")
	path, _, http := strings.Cut(rest, " HTTP/")
	host := t.header("Host")
	if !t.Sent || t.Clipped || !http || !isToken(method) || !strings.HasPrefix(path, "/") || host == "" || t.header("Upgrade") != "" {
		return ""
	}
	address := schemeOf(base, host) + "://" + host + path
	var b strings.Builder
	b.WriteString("curl --globoff")
	switch {
	case method == "GET" && t.raw == "":
	case method != "POST" || t.raw == "":
		b.WriteString(" -X " + shellQuoted(method))
	}
	b.WriteString(" --url " + shellQuoted(strings.ReplaceAll(address, cutMark, curlSecret)))
	for _, h := range t.Headers {
		if !isToken(h.Name) || curlSets[strings.ToLower(h.Name)] {
			continue
		}
		b.WriteString(" \\\n  -H " + shellQuoted(h.Name+": "+strings.ReplaceAll(h.Value, cutMark, curlSecret)))
	}
	if t.raw != "" {
		b.WriteString(" \\\n  --data-raw " + shellQuoted(t.raw))
	}
	return b.String()
}

// curlSets are the headers that curl sets by itself.
var curlSets = map[string]bool{"host": true, "content-length": true, "connection": true, "transfer-encoding": true}

// schemeOf returns the scheme of the endpoint for its own host. Another host is one that the endpoint named, and https unless we know
// better.
func schemeOf(base, host string) string {
	if u, err := url.Parse(base); err == nil && strings.EqualFold(u.Host, host) && (u.Scheme == "http" || u.Scheme == "ws") {
		return "http"
	}
	return "https"
}

// isToken reports whether s may be a method or the name of a header (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for _, r := range s {
		if r >= utf8.RuneSelf || !strings.ContainsRune("!#$%&'*+-.^_`|~", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return s != ""
}

// shellQuoted returns s as one word of a POSIX shell, or, where it holds what cannot be seen, of bash, zsh and ksh. Within single
// quotes nothing means anything to a shell; but a terminal acts on control characters before the shell sees a quote, and direction
// marks show a command in another order than it has. So these are written as escapes.
func shellQuoted(s string) string {
	s = strings.ReplaceAll(s, "\x00", "") // no argument can hold it
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\'' || r == '!' || r == utf8.RuneError || !unicode.IsPrint(r):
			// History expansion of some shells does not know this kind of quotes: it must meet neither of the first two.
			for _, octet := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, `\%03o`, octet)
			}
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String() + "'"
}
