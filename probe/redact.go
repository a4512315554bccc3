package probe

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// cutMark stands where a secret was.
const cutMark = "…"

// Redactor cuts the secrets of one target out of text: the values of its secret headers and of the headers that are
// secret by nature (Authorization, Cookie and their like), the credentials inside such values, and the keys in its URL.
// It finds them wherever they stand, also when a server echoes them. The nil Redactor cuts nothing.
type Redactor struct {
	replacer  *strings.Replacer
	spellings []string // what replacer looks for
	short     []string // too short to be cut in the middle of a word
	longest   int      // length of the longest secret in any of its spellings
	any       bool
}

// shortSecret is the length below which a secret is cut only where it stands alone: a value of
// two letters would otherwise take half of a text with it.
const shortSecret = 6

// NewRedactor returns the Redactor of t.
func NewRedactor(t Target) *Redactor {
	var secrets []string
	for _, h := range t.Headers {
		if h.Secret || secretName(h.Name) {
			secrets = append(secrets, credentialsIn(h)...)
		}
	}
	secrets = append(secrets, urlSecrets(t.URL)...)
	secrets = append(secrets, t.Command.secrets()...)
	return newRedactor(secrets)
}

func newRedactor(secrets []string) *Redactor {
	r := &Redactor{}
	var spellings []string
	for _, s := range secrets {
		for _, spelling := range spell(s) {
			switch {
			case spelling == "" || spelling == cutMark:
			case len(spelling) < shortSecret:
				r.short = append(r.short, spelling)
			default:
				spellings = append(spellings, spelling)
			}
			r.longest = max(r.longest, len(spelling))
		}
	}
	// A secret may hold another one: the longest has to be found first.
	slices.SortFunc(spellings, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	r.spellings = slices.Compact(spellings)
	pairs := make([]string, 0, 2*len(r.spellings))
	for _, s := range r.spellings {
		pairs = append(pairs, s, cutMark)
	}
	r.replacer = strings.NewReplacer(pairs...)
	r.any = len(pairs) > 0 || len(r.short) > 0
	return r
}

// Cut returns text with every secret replaced by "…", also one whose smaller part is missing at its end, and any
// beginning of one where text was clipped in its middle: at the end of text, or before a "…".
func (r *Redactor) Cut(text string) string {
	if r == nil || !r.any {
		return text
	}
	text = r.replacer.Replace(text)
	for _, s := range r.short {
		text = cutWord(text, s)
	}
	if len(r.spellings) == 0 {
		return text
	}
	for _, s := range r.spellings {
		text = cutBeginnings(text, s)
	}
	parts := strings.Split(text, cutMark)
	for i, part := range parts {
		parts[i] = r.withoutBeginning(part)
	}
	return strings.Join(parts, cutMark)
}

// cutBeginnings replaces what stands in text of a secret whose end is missing, where that is the larger part of it.
func cutBeginnings(text, secret string) string {
	half := max(shortSecret+2, (len(secret)+1)/2)
	if len(secret) <= half {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret[:half])
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := half
		for end < len(secret) && i+end < len(text) && text[i+end] == secret[end] {
			end++
		}
		b.WriteString(text[:i])
		b.WriteString(cutMark)
		text = text[i+end:]
	}
}

// shownBeginning is how much of a secret's beginning may be seen where a text was clipped.
const shownBeginning = 3

// withoutBeginning takes from the end of text what may be the first part of a secret.
func (r *Redactor) withoutBeginning(text string) string {
	cut := 0
	for _, s := range r.spellings {
		for n := min(len(s)-1, len(text)); n > max(cut, shownBeginning); n-- {
			if text[len(text)-n] == s[0] && strings.HasSuffix(text, s[:n]) {
				cut = n
				break
			}
		}
	}
	return text[:len(text)-cut]
}

// cutWord replaces word where it stands alone.
func cutWord(text, word string) string {
	var b strings.Builder
	rest := text
	before := ' '
	for {
		i := strings.Index(rest, word)
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		if i > 0 {
			before = rune(rest[i-1])
		}
		after := ' '
		if end := i + len(word); end < len(rest) {
			after = rune(rest[end])
		}
		b.WriteString(rest[:i])
		if wordRune(before) || wordRune(after) {
			b.WriteString(word)
		} else {
			b.WriteString(cutMark)
		}
		before = rune(word[len(word)-1])
		rest = rest[i+len(word):]
	}
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
	for _, s := range r.spellings {
		if strings.Contains(lower, strings.ToLower(s)) {
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

// spell returns the ways in which a secret may turn up: as it is, and as JSON and URLs write it.
func spell(secret string) []string {
	spellings := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	if quoted, err := json.Marshal(secret); err == nil {
		spellings = append(spellings, string(quoted[1:len(quoted)-1])) // with <, > and & escaped
	}
	slashes := strings.ReplaceAll(secret, "/", `\/`)
	return append(spellings, strings.ReplaceAll(secret, `"`, `\"`), slashes)
}

// hasCredentials reports whether a request to t carries anything that could be rejected.
func (t Target) hasCredentials() bool {
	return len(urlSecrets(t.URL)) > 0 || slices.ContainsFunc(t.Headers, func(h Header) bool { return h.Secret || secretName(h.Name) })
}
