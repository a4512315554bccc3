package probe

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// cutMark stands where a secret was.
const cutMark = "…"

// Redactor cuts the secrets of one target out of text: the values of its secret headers and of the headers that are
// secret by nature (Authorization, Cookie and their like), the credentials inside such values, its OAuth client secret,
// and the keys in its URL; beside them the user information of any URL. It finds them wherever they stand, also when a
// server echoes them: as they are, in base64, and with any of their characters escaped as JSON, URLs or HTML do. The nil
// Redactor cuts nothing.
type Redactor struct {
	secrets []string
	first   *[256][]spelling // by the first byte; nil without secrets
	longest int              // length of the longest secret in any of its spellings
	any     bool             // there are secrets
}

// spelling is a way to write a secret, but for escapes.
type spelling struct {
	text   string
	enough int  // how many bytes of its beginning must not be seen
	word   bool // too short to be cut in the middle of a word
}

// shortSecret is the length below which a secret is cut only where it stands alone: a value of
// two letters would otherwise take half of a text with it.
const shortSecret = 6

// NewRedactor returns the Redactor of t.
func NewRedactor(t Target) *Redactor {
	r := &Redactor{}
	for _, h := range t.Headers {
		if h.Secret || secretName(h.Name) {
			r.add(credentialsIn(h)...)
		}
	}
	r.add(urlSecrets(t.URL)...)
	r.add(t.Command.secrets()...)
	if o := t.Options.OAuth; o != nil && o.ClientSecret != "" {
		r.add(o.ClientSecret, url.QueryEscape(o.ClientSecret), url.QueryEscape(o.ClientID)+":"+url.QueryEscape(o.ClientSecret))
		r.add(urlSecrets(o.TokenURL)...)
	}
	return r
}

// add makes r cut further secrets. It must not be called while another goroutine cuts.
func (r *Redactor) add(secrets ...string) {
	for _, s := range secrets {
		if s == "" || s == cutMark || slices.Contains(r.secrets, s) {
			continue
		}
		if r.first == nil {
			r.first = new([256][]spelling)
		}
		r.secrets, r.any = append(r.secrets, s), true
		for _, text := range spell(s) {
			r.longest = max(r.longest, len(text))
			r.first[text[0]] = append(r.first[text[0]], spelling{text, enough(text), len(text) < shortSecret})
		}
	}
}

// enough is how much of the beginning of a secret must not be seen: the larger part of it.
func enough(secret string) int {
	return min(len(secret), max(shortSecret+2, (len(secret)+1)/2))
}

// spell returns the ways in which a secret may turn up, but for escapes: as it is and in base64, alone or in the middle
// of something else.
func spell(secret string) []string {
	spellings := []string{secret}
	if len(secret) < shortSecret {
		return spellings
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		spellings = append(spellings, encoding.EncodeToString([]byte(secret)))
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			// Of characters that hold bits of what stands before or after the secret nothing is known.
			encoded := encoding.EncodeToString(append(make([]byte, before), secret...))
			spellings = append(spellings, encoded[(before*8+5)/6:(before+len(secret))*8/6])
		}
	}
	slices.Sort(spellings)
	return slices.Compact(spellings)
}

// Cut returns text with every secret replaced by "…", also one whose smaller part is missing at its end, and any
// beginning of one where text was clipped in its middle: at the end of text, or before a "…".
func (r *Redactor) Cut(text string) string {
	if r == nil {
		return text
	}
	hidden := userInfo(text)
	if r.any {
		effort := effortFor(text)
		hidden = r.find(hidden, text, &effort)
		hidden = r.findDeeper(hidden, text, &effort)
	}
	if len(hidden) == 0 {
		return text
	}
	slices.SortFunc(hidden, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var b strings.Builder
	done := 0
	for _, h := range hidden {
		if h.from >= done { // else it overlaps the one before, whose mark stands for both
			b.WriteString(text[done:h.from])
			b.WriteString(cutMark)
		}
		done = max(done, h.to)
	}
	b.WriteString(text[done:])
	return b.String()
}

// stretch is a part of a text.
type stretch struct{ from, to int }

// effortFor is how many bytes of secrets may be compared with text, far more than in any text that was not made for it.
// An authorization server chooses the token that is looked for, and may fill its answers with what begins like it.
func effortFor(text string) int { return 1<<20 + 4*len(text) }

// find appends where secrets stand in text, with any of their characters escaped. Every place is looked at, those inside
// an escape too: what looks like one may be text. Where effort is used up, the rest of text is hidden.
func (r *Redactor) find(hidden []stretch, text string, effort *int) []stretch {
	escapeEnd, last := 0, byte(' ') // where the escape before i ends, and what it stands for
	for i := range len(text) {
		c := text[i]
		if r.first[c] == nil && !escapes(c) {
			continue
		}
		if *effort < 0 {
			return append(hidden, stretch{i, len(text)})
		}
		before := byte(' ')
		switch {
		case i == escapeEnd:
			before = last
		case i > 0:
			before = text[i-1]
		}
		hidden = findAt(hidden, r.first[c], text, i, before, effort)
		if !escapes(c) {
			continue
		}
		decoded, length := escapeAt(text[i:])
		if length > 0 && decoded[0] != c {
			hidden = findAt(hidden, r.first[decoded[0]], text, i, before, effort)
		}
		if length > 0 && i >= escapeEnd {
			escapeEnd, last = i+length, decoded[len(decoded)-1]
		}
	}
	return hidden
}

// findAt appends the longest of the secrets that begins at i.
func findAt(hidden []stretch, secrets []spelling, text string, i int, before byte, effort *int) []stretch {
	end := i
	for _, s := range secrets {
		if i+1 < len(text) && len(s.text) > 1 && text[i+1] != s.text[1] && !escapes(text[i]) && !escapes(text[i+1]) && text[i+1] != '+' {
			continue // what nearly always is so
		}
		budget := maxReadings
		to, n := match(text, i, s.text, &budget, effort)
		switch {
		case s.word && (n < len(s.text) || wordRune(rune(before)) || wordRune(rune(byteAt(text, to)))):
		case n >= s.enough, n > shownBeginning && clippedAt(text[to:]):
			end = max(end, to)
		}
	}
	if end > i {
		hidden = append(hidden, stretch{i, end})
	}
	return hidden
}

// maxReadings bounds how often the match of one secret may go back to where an escape could be text as well.
const maxReadings = 32

// match reads secret at i, whose characters may be escaped, as far as it stands there. It returns where that ends, and
// how many bytes of the secret it is.
func match(text string, i int, secret string, budget, effort *int) (end, n int) {
	for n < len(secret) && i < len(text) {
		*effort--
		plain := text[i] == secret[n] || text[i] == '+' && secret[n] == ' '
		if escapes(text[i]) {
			decoded, length := escapeAt(text[i:])
			escaped := length > 0 && strings.HasPrefix(secret[n:], decoded)
			if escaped && plain && *budget > 0 {
				*budget--
				end1, n1 := match(text, i+length, secret[n+len(decoded):], budget, effort)
				end2, n2 := match(text, i+1, secret[n+1:], budget, effort)
				if n1 += len(decoded); n1 > n2 {
					return end1, n + n1
				}
				return end2, n + 1 + n2
			}
			if escaped {
				i, n = i+length, n+len(decoded)
				continue
			}
		}
		if !plain {
			break
		}
		i, n = i+1, n+1
	}
	return i, n
}

// byteAt returns the character at i as it is meant, a space at the end.
func byteAt(text string, i int) byte {
	if i >= len(text) {
		return ' '
	}
	if decoded, length := escapeAt(text[i:]); length > 0 {
		return decoded[0]
	}
	return text[i]
}

// shownBeginning is how much of a secret's beginning may be seen where a text was clipped.
const shownBeginning = 3

// clippedAt reports whether text was clipped where rest begins, or in the middle of an escape that begins there.
func clippedAt(rest string) bool {
	left, _, _ := strings.Cut(rest[:min(len(rest), maxEscape+len(cutMark))], cutMark)
	return left == "" || unfinishedEscape(left)
}

// twice is how an escape looks that was escaped in turn, by what it begins with. A server may quote an answer that quotes
// a request.
var twice = map[byte]string{'\\': `\\`, '%': "%25", '&': "&amp;"}

// maxQuotes is how often text is unescaped in search of secrets.
const maxQuotes = 3

// findDeeper appends where secrets stand in text that was escaped more than once.
func (r *Redactor) findDeeper(hidden []stretch, text string, effort *int) []stretch {
	for kind, mark := range twice {
		var from []int // where a byte of view came from in text
		view := text
		for range maxQuotes - 1 {
			if !strings.Contains(view, mark) {
				break
			}
			plain, origin := unescaped(view, kind)
			if from != nil {
				for i := range origin {
					origin[i] = from[origin[i]]
				}
			}
			view, from = plain, origin
			for _, h := range r.find(nil, view, effort) {
				for h.to < len(view) && from[h.to] == from[h.to-1] {
					h.to++ // what stands for several bytes is cut as a whole
				}
				hidden = append(hidden, stretch{from[h.from], from[h.to]})
			}
		}
	}
	return hidden
}

// maxUserInfo bounds the user information of a URL that is looked for in text.
const maxUserInfo = 1 << 10

// userInfo returns where user information stands in the URLs of text, also where JSON escaped their slashes.
func userInfo(text string) []stretch {
	var hidden []stretch
	for _, mark := range []string{"://", `:\/\/`} {
		for i := strings.Index(text, mark); i >= 0; {
			i += len(mark)
			authority, _ := splitBefore(text[i:min(len(text), i+maxUserInfo)], "/?#\\\"'<> \t\r\n")
			if at := strings.LastIndexByte(authority, '@'); at > 0 && authority[:at] != cutMark {
				hidden = append(hidden, stretch{i, i + at})
			}
			next := strings.Index(text[i:], mark)
			if next < 0 {
				break
			}
			i += next
		}
	}
	return hidden
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// header returns the value of a header as it may be shown.
func (r *Redactor) header(name, value string) string {
	if secretName(name) {
		return cutMark
	}
	return r.Cut(value)
}

// headerName returns the name of a header as it may be shown: net/http changes the case of names, so that a secret sent
// back as one is found without regard to case.
func (r *Redactor) headerName(name string) string {
	if r == nil {
		return name
	}
	lower := strings.ToLower(name)
	for _, s := range r.secrets {
		if len(s) >= shortSecret && strings.Contains(lower, strings.ToLower(s)) {
			return cutMark
		}
	}
	return name
}

// secretWords mark the name of a header or a query member that holds a secret.
var secretWords = []string{
	"auth", "token", "secret", "password", "passwd", "pwd", "cookie", "credential", "session-key", "signature", "jwt", "bearer",
}

// secretName reports whether what goes by this name is a secret by nature.
func secretName(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "www-authenticate", "author", "authority":
		return false
	case "key", "sig", "pass", "code", "k", "pat":
		return true
	}
	if strings.Contains(name, "apikey") || strings.HasSuffix(name, "key") {
		return true
	}
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// credentialsIn returns what must not be seen of a header: its value, and the parts that are secrets by themselves.
func credentialsIn(h Header) []string {
	secrets := []string{h.Value, strings.TrimSpace(h.Value)}
	scheme, token, ok := strings.Cut(strings.TrimSpace(h.Value), " ")
	if ok {
		token = strings.TrimSpace(token)
		secrets = append(secrets, token)
	}
	if ok && strings.EqualFold(scheme, "Basic") {
		if plain, err := base64.StdEncoding.DecodeString(token); err == nil {
			_, password, _ := strings.Cut(string(plain), ":")
			secrets = append(secrets, string(plain), password)
		}
	}
	if strings.EqualFold(h.Name, "Cookie") {
		for pair := range strings.SplitSeq(h.Value, ";") {
			_, value, _ := strings.Cut(pair, "=")
			secrets = append(secrets, strings.TrimSpace(value))
		}
	}
	return secrets
}

// hasCredentials reports whether a request to t carries anything that could be rejected.
func (t *Target) hasCredentials() bool {
	return t.Options.OAuth != nil || len(urlSecrets(t.URL)) > 0 || slices.ContainsFunc(t.Headers, func(h Header) bool { return h.Secret || secretName(h.Name) })
}
