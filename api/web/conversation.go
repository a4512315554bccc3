package web

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Turn is one message of a conversation as it is shown.
type Turn struct {
	Step    string
	Sent    bool          // by us; otherwise received
	At      time.Duration // since the check began
	Gap     time.Duration // since the message before
	Line    string        // the request line or status line; empty in a stream
	Headers []HeaderLine
	Body    string // indented where it is JSON
	Folded  bool   // Body is too long to stand open
	Size    int64  // of the body as it was sent, in bytes
	JSON    bool
	Clipped bool   // there was more of the body than was kept
	Curl    string // a command that sends it once more; empty where there is none

	raw string // the body as it was sent
}

// HeaderLine is one header of a message.
type HeaderLine struct{ Name, Value string }

// Bounds of what stands open on a page.
const (
	foldedLines = 24
	foldedBytes = 4000
)

// Conversation puts the messages of a check into the form in which they are shown. base is the address of the endpoint without its
// secrets.
func Conversation(said []probe.Message, base string) []Turn {
	turns := make([]Turn, 0, len(said))
	before := time.Duration(0)
	for _, m := range said {
		t := Turn{Step: m.Step, Sent: m.Sent, At: m.At, Gap: max(0, m.At-before), Size: int64(len(m.Body)), Clipped: m.Clipped, raw: m.Body}
		before = m.At
		t.Line, t.Headers = splitHead(m.Head)
		t.Body, t.JSON = indented(m.Body)
		t.Folded = len(t.Body) > foldedBytes || strings.Count(t.Body, "\n") >= foldedLines
		t.Curl = curlOf(t, base)
		turns = append(turns, t)
	}
	return turns
}

// splitHead cuts the head of a message into its first line and its headers. A line that is no header is one without a name.
func splitHead(head string) (line string, headers []HeaderLine) {
	line, rest, _ := strings.Cut(head, "\n")
	for text := range strings.SplitSeq(rest, "\n") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		name, value, found := strings.Cut(text, ":")
		if !found {
			name, value = "", text
		}
		headers = append(headers, HeaderLine{name, strings.TrimSpace(value)})
	}
	return strings.TrimSpace(line), headers
}

// header returns the value of the first header of a name.
func (t Turn) header(name string) string {
	for _, h := range t.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// Beginning is the first line of a body that is folded.
func (t Turn) Beginning() string {
	const most = 100 // runes
	text := strings.Join(strings.Fields(t.Body[:min(len(t.Body), 4*most)]), " ")
	if runes := []rune(strings.ToValidUTF8(text, "")); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return strings.ToValidUTF8(text, "") + "…"
}

// indented writes JSON with a line for each member, also in the data of an event stream, and reports whether body is JSON. What cannot be indented within
// reason stays as it is.
func indented(body string) (text string, isJSON bool) {
	if form, ok := indent(body); ok {
		return form, true
	}
	if !strings.HasPrefix(body, "data:") && !strings.Contains(body, "\ndata:") {
		return body, false
	}
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		data, found := strings.CutPrefix(line, "data:")
		if form, ok := indent(strings.TrimSpace(data)); found && ok {
			lines[i] = "data: " + form
		}
	}
	return strings.Join(lines, "\n"), false
}

// Bounds of JSON that is indented: every comma and bracket becomes a line with as many spaces as it lies deep, so that a small text
// can become a huge one.
const (
	maxIndented = 1 << 20
	maxDepth    = 40
)

// indent returns JSON with a line for each member; false when text is none, or would become too long or too deep.
func indent(text string) (string, bool) {
	if text == "" || !strings.ContainsRune("{[", rune(text[0])) {
		return "", false
	}
	depth, deepest, lines := 0, 0, 1
	for _, c := range []byte(text) {
		switch c {
		case '{', '[':
			depth++
			lines++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
			lines++
		case ',':
			lines++
		}
	}
	if deepest > maxDepth || len(text)+lines*(2*deepest+1) > maxIndented {
		return "", false
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		return "", false
	}
	return b.String(), true
}
