package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/rollcallhq/rollcall/probe"
)

// report prints a probe's result for people.
type report struct {
	w      io.Writer
	colour bool
	err    error // the first one of writing
}

func newReport(std stdio) *report {
	_, plain := std.env("NO_COLOR")
	dumb, _ := std.env("TERM")
	f, isFile := std.out.(*os.File)
	return &report{w: std.out, colour: !plain && dumb != "dumb" && isFile && term.IsTerminal(int(f.Fd()))}
}

func (p *report) print(t probe.Target, r probe.Result, transcript bool) error {
	p.line("%s", p.paint(bold, printable(subject(t))))
	if about := describe(r); about != "" {
		p.line("%s", printable(about))
	}
	p.line("")
	p.steps(r)
	p.warnings(r.Warnings)
	if transcript {
		p.transcript(r.Transcript)
	}
	p.verdict(r)
	return p.err
}

// subject names what was checked, without its secrets.
func subject(t probe.Target) string {
	if t.Command != nil {
		return probe.NewRedactor(t).Cut("$ " + strings.Join(t.Command.Args, " "))
	}
	return probe.RedactURL(t.URL)
}

// describe says what the endpoint turned out to be, in one line.
func describe(r probe.Result) string {
	f := r.Facts
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if r.Kind != probe.KindAuto {
		add(string(r.Kind))
	}
	add(strings.TrimSpace(f.ProtocolVersion + " " + eraWord(r.Era)))
	add(strings.TrimSpace(f.ServerName + " " + f.ServerVersion))
	if f.Tools != nil {
		add(plural(*f.Tools, "tool"))
	}
	if f.Prompts != nil {
		add(plural(*f.Prompts, "prompt"))
	}
	if f.Resources != nil {
		add(plural(*f.Resources, "resource"))
	}
	if f.ChainID != "" {
		add("chain " + f.ChainID)
	}
	if f.Height != nil {
		add("height " + strconv.FormatUint(*f.Height, 10) + headWords(f, r.StartedAt))
	}
	if f.Finalized != nil {
		add("finalized " + strconv.FormatUint(*f.Finalized, 10))
	}
	if f.Syncing != nil && *f.Syncing {
		add("syncing")
	}
	if f.TLSExpiresAt != nil {
		add("certificate until " + f.TLSExpiresAt.UTC().Format(time.DateOnly))
	}
	return strings.Join(parts, " · ")
}

// headWords says how the newest block stands: its age, and how far it is behind those of other nodes.
func headWords(f probe.Facts, at time.Time) string {
	var words []string
	if f.HeadTime != nil {
		if age := at.Sub(*f.HeadTime).Round(time.Second); age >= 0 {
			words = append(words, age.String()+" old")
		}
	}
	if f.LagBlocks != nil && *f.LagBlocks > 0 {
		words = append(words, plural(int(*f.LagBlocks), "block")+" behind")
	}
	if words == nil {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func eraWord(e probe.Era) string {
	if e == "" {
		return ""
	}
	return "(" + string(e) + ")"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// stepColumns are the columns of the table; numbers stand to the right.
var stepColumns = []struct {
	title string
	right bool
}{
	{"STEP", false}, {"ms", true}, {"DNS", true}, {"CONNECT", true}, {"TLS", true}, {"1ST BYTE", true}, {"BODY", true},
	{"BYTES", true}, {"HTTP", true}, {"CODE", true}, {"CLASS", false}, {"", false},
}

func (p *report) steps(r probe.Result) {
	if len(r.Steps) == 0 {
		return
	}
	rows := make([][]string, 0, len(r.Steps)+1)
	titles := make([]string, len(stepColumns))
	for i, c := range stepColumns {
		titles[i] = c.title
	}
	rows = append(rows, titles)
	for _, s := range r.Steps {
		rows = append(rows, []string{
			printable(s.Name), cmp.Or(milliseconds(s.Latency), "0"), milliseconds(s.Phases.DNS), milliseconds(s.Phases.Connect),
			milliseconds(s.Phases.TLS), milliseconds(s.Phases.FirstByte), milliseconds(s.Phases.Body), number(int(s.BytesIn)),
			number(s.HTTPStatus), codeOf(s), string(s.Class), clipMessage(passedOver(r, s) + s.Message),
		})
	}
	widths := columnWidths(rows)
	for i, row := range rows {
		style := plainText
		switch {
		case i == 0:
			style = dim
		case r.Steps[i-1].Class == "":
		case decides(r, r.Steps[i-1]):
			style = verdictStyle(r.Verdict)
		default:
			style = dim // a step that went wrong without deciding anything
		}
		p.line("%s", p.paint(style, alignRow(row, widths)))
	}
	p.line("")
}

// decides reports whether a step is the one that the verdict is about.
func decides(r probe.Result, s probe.Step) bool {
	return r.Failure != nil && r.Failure.Step == s.Name && r.Failure.Class == s.Class
}

// passedOver marks what a step says when it went wrong without deciding anything: an era that the server does not speak, a
// method that this family does not have.
func passedOver(r probe.Result, s probe.Step) string {
	if s.Class == "" || decides(r, s) {
		return ""
	}
	return "(passed over) "
}

// codeOf leaves out the code that only repeats the HTTP status beside it.
func codeOf(s probe.Step) string {
	if s.Code == s.HTTPStatus {
		return ""
	}
	return number(s.Code)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// clipMessage keeps a row of the table to one line; the verdict says the deciding message in full.
func clipMessage(s string) string {
	const most = 60
	s = printable(s)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(stepColumns))
	for _, row := range rows[1:] {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i, title := range rows[0] {
		if widths[i] > 0 { // a column without a value is left out, with its title
			widths[i] = max(widths[i], utf8.RuneCountInString(title))
		}
	}
	return widths
}

func alignRow(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if widths[i] == 0 {
			continue
		}
		pad := strings.Repeat(" ", widths[i]-min(widths[i], utf8.RuneCountInString(cell)))
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		if stepColumns[i].right {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (p *report) warnings(warnings []probe.Warning) {
	for _, w := range warnings {
		text := strings.TrimSpace(fmt.Sprintf("%s %s", w.Class, number(w.Code)))
		p.line("%s", p.paint(yellow, printable(fmt.Sprintf("warning: %s: %s: %s", w.Step, text, w.Message))))
	}
	if len(warnings) > 0 {
		p.line("")
	}
}

func (p *report) transcript(messages []probe.Message) {
	for _, m := range messages {
		mark, style := "<", plainText
		if m.Sent {
			mark, style = ">", dim
		}
		p.line("%s", p.paint(bold, fmt.Sprintf("%s %s, %s ms", mark, printable(m.Step), cmp.Or(milliseconds(m.At), "0"))))
		for _, text := range []string{m.Head, m.Body} {
			for line := range strings.Lines(text) {
				p.line("%s", p.paint(style, mark+" "+printable(strings.TrimRight(line, "\r\n"))))
			}
		}
		if m.Clipped {
			p.line("%s", p.paint(dim, mark+" … (more was received than is kept)"))
		}
		p.line("")
	}
}

// verdict prints the one line that says it all.
func (p *report) verdict(r probe.Result) {
	text := fmt.Sprintf("%s %s", mark(r.Verdict), strings.ToUpper(string(r.Verdict)))
	line := p.paint(verdictStyle(r.Verdict), text) + " in " + cmp.Or(milliseconds(r.Duration), "0") + " ms"
	if f := r.Failure; f != nil {
		why := string(f.Class)
		if f.Code != 0 {
			why += " " + strconv.Itoa(f.Code)
		}
		if f.Step != "" {
			line += ": " + printable(f.Step)
		}
		line += ": " + why
		if f.Message != "" {
			line += ": " + printable(withoutCode(*f))
		}
	}
	if r.RetryAfter > 0 {
		line += " (it asks to be left alone for " + r.RetryAfter.Round(time.Second).String() + ")"
	}
	p.line("%s", line)
}

// withoutCode returns the message of f without the HTTP status that begins it where that stands before it already.
func withoutCode(f probe.Failure) string {
	text := http.StatusText(f.Code)
	rest, found := strings.CutPrefix(f.Message, strconv.Itoa(f.Code)+" "+text)
	if text == "" || !found {
		return f.Message
	}
	return text + rest
}

func (p *report) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); err != nil && p.err == nil {
		p.err = err
	}
}

// style is an ANSI colour or weight.
type style string

const (
	plainText style = ""
	bold      style = "1"
	dim       style = "2"
	red       style = "1;31"
	green     style = "1;32"
	yellow    style = "33"
	blue      style = "1;34"
)

func (p *report) paint(s style, text string) string {
	if !p.colour || s == plainText || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func verdictStyle(v probe.Verdict) style {
	switch v {
	case probe.Up:
		return green
	case probe.Down:
		return red
	case probe.Degraded:
		return yellow
	default:
		return blue
	}
}

// mark says a verdict without colour.
func mark(v probe.Verdict) string {
	switch v {
	case probe.Up:
		return "✓"
	case probe.Down:
		return "✗"
	case probe.Degraded:
		return "!"
	default:
		return "?"
	}
}

// printable makes a stranger's text safe for a terminal: no control characters, and nothing that turns the line around.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return '·'
		}
		return r
	}, s)
}
