package web

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Heard is the message of a failure: what Rollcall makes of an answer, in the reader's words, and what the endpoint said itself, as it
// came. Either may be empty.
type Heard struct {
	Concluded string
	Said      string
}

// failures is what a language knows of the messages of package probe: their English formats as forms, and what it says for each.
type failures struct {
	forms     func() []form
	sentences map[string]string

	mu    sync.Mutex // guards what follows
	known map[messageOf]Heard
}

type messageOf struct {
	class probe.Class
	text  string
}

// maxKnown bounds the messages whose reading is kept: rows that are shown again and again have the same ones. Together they are a few MB.
const maxKnown = 4096

// failuresOf returns what a language says for the formats of failures, which all catalogues have but that of English: there, a format
// stands for itself.
func failuresOf(c catalogue, all []catalogue) *failures {
	sentences := c.Failures
	if sentences == nil {
		sentences = map[string]string{}
		for _, other := range all {
			for key := range other.Failures {
				sentences[key] = key
			}
		}
	}
	return &failures{
		sentences: sentences,
		known:     map[messageOf]Heard{},
		forms: sync.OnceValue(func() []form {
			plain := catalogue{Sentences: map[string]sentence{}}
			for key := range sentences {
				plain.Sentences[key] = sentence{}
			}
			return formsOf(plain, catalogue{})
		}),
	}
}

// Begins reports whether it begins with a code, as a status does: saying it once is enough.
func (h Heard) Begins(code int) bool { return strings.HasPrefix(h.Concluded, strconv.Itoa(code)+" ") }

// heard tells apart what of a failure's message is ours and what is the endpoint's. A message that was not made from a format of ours
// is the endpoint's, as is one of its own errors.
func (l Language) heard(class probe.Class, text string) Heard {
	if text == "" || len(text) > maxRecognised {
		return Heard{Said: text}
	}
	m := messageOf{class, text}
	l.failures.mu.Lock()
	h, ok := l.failures.known[m]
	l.failures.mu.Unlock()
	if ok {
		return h
	}
	h = l.read(class, text)
	l.failures.mu.Lock()
	defer l.failures.mu.Unlock()
	if len(l.failures.known) >= maxKnown {
		clear(l.failures.known)
	}
	l.failures.known[m] = h
	return h
}

func (l Language) read(class probe.Class, text string) Heard {
	h, ok := l.concluded(text, surely(class), 0)
	if ok {
		return h
	}
	if status, rest, ok := statusLine(text); ok {
		return Heard{status, rest}
	}
	return Heard{Said: text}
}

// inTheirWords are the classes whose message is, mostly, one of the endpoint's own.
var inTheirWords = []probe.Class{
	probe.ClassRPCError, probe.ClassToolError, probe.ClassRateLimited, probe.ClassBlocked, probe.ClassHostRejected, probe.ClassAuthRequired,
	probe.ClassAuthForbidden, probe.ClassCredentialRejected, probe.ClassStarting, probe.ClassSessionLost, probe.ClassProbeRejected,
}

// surely returns how many bytes of a format must be words for it to be taken for ours. An endpoint may well say by chance that
// "x is y, expected z"; it hardly says a long sentence of ours.
func surely(class probe.Class) int {
	if slices.Contains(inTheirWords, class) {
		return 20
	}
	return 0
}

// maxNested bounds how many messages are looked for within each other: "seen from fra only (1 of 3 locations): no first byte after 2 s".
const maxNested = 4

// minNested is the length from which a piece may be a message with pieces of its own; most are numbers and names.
const minNested = 12

// concluded puts a message of ours into the language; false when it is none. Only formats of at least so many bytes of words count.
func (l Language) concluded(text string, words, depth int) (Heard, bool) {
	if said, ok := l.failures.sentences[text]; ok && !strings.Contains(text, "%") {
		return Heard{Concluded: said}, true
	}
	if depth >= maxNested || depth > 0 && len(text) < minNested {
		return Heard{}, false
	}
	for _, f := range l.failures.forms() {
		if f.literal < words {
			break // the surest are the first
		}
		if args, ok := f.pieces(text); ok {
			return l.filled(f, args, depth), true
		}
	}
	return Heard{}, false
}

// filled says a form with its pieces, each of which may be a length of time or a message of ours as well. Where the last of them is
// what the endpoint said, it is left out.
func (l Language) filled(f form, args []any, depth int) Heard {
	var h Heard
	for i, arg := range args {
		text := fmt.Sprint(arg)
		last := i == len(args)-1
		if behind, ok := strings.CutPrefix(text, ": "); ok && last {
			args[i], h.Said = piece(""), behind
			continue
		}
		if inner, ok := l.part(text, depth); ok {
			args[i] = piece(inner)
			continue
		}
		if before, ok := strings.CutSuffix(l.failures.sentences[f.key], ": %s"); ok && last && slices.Contains(quoting, f.key) {
			return Heard{fmt.Sprintf(before, args[:i]...), text}
		}
	}
	h.Concluded = fmt.Sprintf(l.failures.sentences[f.key], args...)
	return h
}

// quoting are the formats that end with words of the endpoint.
var quoting = []string{
	"a bot wall answered: %s", "no answer after %s; on its standard error: %s", "exit code %d: %s", "killed by %s: %s",
	"%d lines that are no messages on standard output, the first: %s", "the batch was refused: %s", "the canary was not answered: %s",
	"still starting after %s: %s", "neither result nor error: %s", "no answer in the modern era, in which it did answer before: %s",
	"the message was not taken: %s", "what came is no message: %s", "what came is no JSON-RPC: %s", "the session was lost and begun again: %s",
	"the session could not be closed: %s", "declares tools and does not know tools/list: %s", "a handshake has been made before: %s",
}

// part puts a piece of a message into the language.
func (l Language) part(text string, depth int) (string, bool) {
	if said, ok := l.span(text); ok {
		return said, true
	}
	h, ok := l.concluded(text, minPart, depth+1)
	if !ok {
		h.Concluded, h.Said, ok = statusLine(text)
	}
	switch {
	case !ok:
		return "", false
	case h.Said == "":
		return h.Concluded, true
	}
	return h.Concluded + ": " + l.say("“%s”", h.Said), true
}

// minPart is how many bytes of words a format has that a piece may be made from: pieces are mostly a stranger's.
const minPart = 8

var (
	spans = regexp.MustCompile(`\A[0-9]+(?:\.[0-9]+)? (?:ms|s|min|h|(?:day|hour|minute)s?)(?: [0-9]+ (?:h|min|s)){0,3}\z`)
	units = map[string]string{"s": "%d s", "min": "%d min", "minute": "%d min", "h": "%d h", "hour": "%d h", "day": "%d days as a length"}
)

// span says a length of time as package probe writes it, and as it did in the notation of Go: "2.7 s", "1 h 20 min", "9 days", "1h0m1s".
func (l Language) span(text string) (string, bool) {
	if len(text) > 40 {
		return "", false
	}
	if !strings.Contains(text, " ") {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || text == "0" {
			return "", false
		}
		if d < 10*time.Second {
			return l.decimal(strconv.FormatFloat(float64(d.Round(time.Millisecond))/float64(time.Second), 'f', -1, 64)) + " s", true
		}
		return l.lasting(d), true
	}
	if !spans.MatchString(text) {
		return "", false
	}
	var said []string
	words := strings.Fields(text)
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.Atoi(words[i])
		key := units[strings.TrimSuffix(words[i+1], "s")]
		if words[i+1] == "s" {
			key = units["s"]
		}
		if err != nil || key == "" { // 2.7 s, 84 ms
			said = append(said, l.decimal(words[i])+" "+words[i+1])
			continue
		}
		said = append(said, l.say(key, n))
	}
	return strings.Join(said, " "), true
}

// statusLine takes a message apart that is the status of an answer and, behind it, what the body said.
func statusLine(text string) (status, said string, ok bool) {
	code, _, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(code)
	name := http.StatusText(n)
	if err != nil || name == "" {
		return "", "", false
	}
	status = code + " " + name
	rest, ok := strings.CutPrefix(text, status)
	if rest == "" {
		return status, "", ok
	}
	said, found := strings.CutPrefix(rest, ": ")
	return status, said, ok && found
}
