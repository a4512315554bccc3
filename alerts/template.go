package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
	"unicode"

	"github.com/rollcallhq/rollcall/store"
)

// Bounds on what the template of a channel may cost. Who writes a template is trusted with a channel, not with the memory
// and the time of the process that sends everybody's alerts.
const (
	maxTemplateText  = 8 << 10               // bytes of output, and of every text made on the way to it
	maxTemplateTime  = 50 * time.Millisecond // a common template takes 50 microseconds
	maxTemplateSteps = 2000                  // rounds of loops and calls of functions
)

// Templated returns the message in the words of the channel's own template; ok is false when it has none. A sender to
// which it gives an error, or only blanks, sends our words: an alert in words that nobody chose is better than none.
//
// A template cannot reach beyond its message. Text/template has no way to be interrupted, so its tree is changed before
// it runs: every round of a loop and every call of a function that makes a text takes a step, and one step too many, or
// one taken too late, is an error that ends it. Between two steps lies no more work than the template is long.
func (m Message) Templated(c store.Channel) (text string, ok bool, err error) {
	source := c.Settings["template"]
	if source == "" {
		return "", false, nil
	}
	text, err = rendered(source, m)
	return text, true, err
}

// words returns the text of the channel's template, false when it has none or none that works for m.
func (m Message) words(c store.Channel) (string, bool) {
	text, ok, err := m.Templated(c)
	return text, ok && err == nil && strings.TrimSpace(text) != ""
}

// CheckTemplate reports what is wrong with a template, in words and with its line: it is read, and tried on a message of
// every kind.
func CheckTemplate(text string) error {
	for _, kind := range kinds {
		if _, err := rendered(text, sample(kind)); err != nil {
			return err
		}
	}
	return nil
}

// PreviewTemplate returns what a template makes of an example of a message.
func PreviewTemplate(text string, kind Kind) (string, error) {
	if !slices.Contains(kinds, kind) {
		return "", fmt.Errorf("there is no message of the kind %q", kind)
	}
	return rendered(text, sample(kind))
}

var kinds = []Kind{
	KindOpened, KindUpdated, KindReminder, KindEscalation, KindFlapping, KindCalmed, KindResolved, KindDigest, KindContract,
	KindBudget, KindService, KindTest,
}

// templateView is what a template sees of a message: texts and lists of texts, nothing that could be called.
type templateView struct {
	Kind, ID, Incident, Severity string

	Open bool

	Symbol, Title, Meaning, Update, Act, Endpoint, URL, Step, Class, Code, Said, Location string

	SeenFrom   []string
	Dependents []string
	Since      string // RFC 3339 in UTC, empty when there is none
	Until      string
	Lasted     string
	Outcome    string
	Changes    []string
	Items      []templateItem
	Link       string
	Text       string // the whole message in our own words
}

type templateItem struct{ Symbol, Title, Said, Link string }

func (m Message) templateView() templateView {
	v := templateView{
		Kind: string(m.Kind), ID: m.ID, Incident: m.Incident, Severity: m.Severity, Open: m.Open,
		Symbol: m.Symbol, Title: m.Title, Meaning: m.Meaning, Update: m.Update, Act: m.Act, Endpoint: m.Endpoint, URL: m.URL, Step: m.Step,
		Class: m.Class, Code: m.Code, Said: m.Said, Location: m.Location,
		SeenFrom: m.SeenFrom, Dependents: m.Dependents, Since: timestamp(m.Since), Until: timestamp(m.Until),
		Lasted: m.Lasted, Outcome: m.Outcome, Changes: m.Changes, Link: m.Link, Text: m.Text(),
	}
	for _, item := range m.Items {
		v.Items = append(v.Items, templateItem(item))
	}
	return v
}

// timestamp returns a time as our REST interface writes it, empty for none.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// rendered returns what a template makes of m. Its errors are fit for whoever wrote the template to read.
func rendered(source string, m Message) (string, error) {
	if len(source) > store.MaxTemplate {
		return "", fmt.Errorf("the template is longer than %d bytes", store.MaxTemplate)
	}
	run := &templateRun{deadline: time.Now().Add(maxTemplateTime)}
	tree, err := templateTree(source)
	if err != nil {
		return "", templateError(err)
	}
	t, err := template.New(templateName).Funcs(run.functions()).AddParseTree(templateName, tree)
	if err != nil {
		return "", templateError(err)
	}
	var out boundedText
	if err := t.Execute(&out, m.templateView()); err != nil {
		return "", templateError(err)
	}
	return printable(string(out)), nil
}

const templateName = "template"

// templateTree reads a template and makes every loop in it take steps.
func templateTree(source string) (*parse.Tree, error) {
	trees, err := parse.Parse(templateName, source, "", "", templateNames)
	if err != nil {
		return nil, err
	}
	if len(trees) > 1 {
		return nil, errTemplateParts
	}
	tree := trees[templateName]
	if tree == nil { // nothing but definitions, or nothing at all
		return nil, errTemplateEmpty
	}
	if parse.IsEmptyTree(tree.Root) {
		return nil, errTemplateEmpty
	}
	step, err := stepNode()
	if err != nil {
		return nil, err
	}
	return tree, paced(tree.Root, step)
}

var (
	errTemplateEmpty = errors.New("the template is empty")
	errTemplateParts = errors.New("define, block and template cannot be used here")
	errTemplateSteps = errors.New("the template takes too long: it loops too often or calls too many functions")
	errTemplateLong  = fmt.Errorf("the text gets longer than %d bytes", maxTemplateText)
)

// stepNode returns the action that a loop begins each round with. It prints nothing.
func stepNode() (parse.Node, error) {
	trees, err := parse.Parse(templateName, "{{"+stepName+"}}", "", "", map[string]any{stepName: true})
	if err != nil {
		return nil, err
	}
	return trees[templateName].Root.Nodes[0], nil
}

const stepName = "rollcallStep" // templates cannot name it: it is not in templateNames

// paced puts step at the beginning of every loop in list, and refuses what could repeat itself in another way.
func paced(list *parse.ListNode, step parse.Node) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		var branch *parse.BranchNode
		switch n := node.(type) {
		case *parse.TemplateNode:
			return errTemplateParts
		case *parse.IfNode:
			branch = &n.BranchNode
		case *parse.WithNode:
			branch = &n.BranchNode
		case *parse.RangeNode:
			branch = &n.BranchNode
		default:
			continue
		}
		if err := errors.Join(paced(branch.List, step), paced(branch.ElseList, step)); err != nil {
			return err
		}
		if branch.NodeType == parse.NodeRange {
			branch.List.Nodes = slices.Insert(branch.List.Nodes, 0, step)
		}
	}
	return nil
}

// templateNames are the functions that a template may name: those of text/template except call, and json.
var templateNames = func() map[string]any {
	names := map[string]any{}
	for _, name := range []string{"and", "or", "not", "len", "index", "slice", "eq", "ne", "lt", "le", "gt", "ge"} {
		names[name] = true // text/template's own: they make no text that is longer than what they are given
	}
	for name := range (&templateRun{}).functions() {
		if name != stepName {
			names[name] = true
		}
	}
	return names
}()

// templateRun counts what one execution of a template costs.
type templateRun struct {
	deadline time.Time
	steps    int
}

func (r *templateRun) step() (string, error) {
	if r.steps++; r.steps > maxTemplateSteps || time.Now().After(r.deadline) {
		return "", errTemplateSteps
	}
	return "", nil
}

// functions returns those that make a text, each bounded by what it is given and by what it makes. Without that, a text
// that a loop doubles would fill the memory within a few rounds.
func (r *templateRun) functions() template.FuncMap {
	bounded := func(f func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) { return r.text(f, args) }
	}
	return template.FuncMap{
		stepName:   r.step,
		"print":    bounded(fmt.Sprint),
		"println":  bounded(fmt.Sprintln),
		"html":     bounded(template.HTMLEscaper),
		"js":       bounded(template.JSEscaper),
		"urlquery": bounded(template.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			if err := checkFormat(format); err != nil {
				return "", err
			}
			return r.text(func(args ...any) string { return fmt.Sprintf(format, args...) }, args)
		},
		"json": func(v any) (string, error) {
			return r.text(func(args ...any) string { return inJSON(args[0]) }, []any{v})
		},
	}
}

func (r *templateRun) text(f func(...any) string, args []any) (string, error) {
	if _, err := r.step(); err != nil {
		return "", err
	}
	size := 0
	for _, arg := range args {
		n, err := textSize(arg)
		if err != nil {
			return "", err
		}
		if size += n; size > maxTemplateText {
			return "", errTemplateLong
		}
	}
	text := f(args...)
	if len(text) > maxTemplateText {
		return "", errTemplateLong
	}
	return text, nil
}

// textSize returns about how many bytes a value takes in print; only texts, lists of them, numbers and booleans have a size.
func textSize(v any) (int, error) {
	switch v := v.(type) {
	case nil, bool, int, byte, rune, float64, complex128:
		return 16, nil
	case string:
		return len(v), nil
	case []string:
		size := 0
		for _, s := range v {
			size += len(s) + 1
		}
		return size, nil
	}
	return 0, errors.New("functions take texts, lists of texts and numbers here, not the whole message or its items")
}

// checkFormat refuses a format that makes a long text of a short one: by width or precision of more than two digits, or
// by naming an argument many times over.
func checkFormat(format string) error {
	if len(format) > maxTemplateText {
		return errTemplateLong
	}
	if longFormat.MatchString(format) {
		return errors.New("printf takes no *, no [ and no number of more than two digits in a format here")
	}
	return nil
}

// longFormat goes by every %, also by one that another % escapes: that refuses too much rather than too little.
var longFormat = regexp.MustCompile(`%[-+# 0-9.]*(?:[*\[]|[0-9]{3})`)

// inJSON returns a value as JSON, quotes and all.
func inJSON(v any) string {
	if list, ok := v.([]string); ok && list == nil {
		return "[]"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "null" // not reached: textSize has let no such value pass
	}
	return string(b)
}

// boundedText takes what a template writes, until it is too long.
type boundedText []byte

var _ io.Writer = (*boundedText)(nil)

func (t *boundedText) Write(p []byte) (int, error) {
	if len(*t)+len(p) > maxTemplateText {
		return 0, errTemplateLong
	}
	*t = append(*t, p...)
	return len(p), nil
}

// printable returns text that every channel can carry: valid UTF-8 without control characters other than breaks and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\r\n", "\n"))
}

// templateError words an error of text/template for whoever wrote the template.
func templateError(err error) error {
	for _, ours := range []error{errTemplateEmpty, errTemplateParts, errTemplateSteps, errTemplateLong} {
		if errors.Is(err, ours) {
			return ours
		}
	}
	parts := templateErrorParts.FindStringSubmatch(err.Error())
	if parts == nil {
		return errors.New(oneLine(err.Error(), maxTemplateError))
	}
	line, where, what := parts[1], parts[2], parts[3]
	if field := noSuchField.FindStringSubmatch(what); field != nil {
		what = "there is no field " + field[1]
	}
	if where != "" {
		where = " at " + oneLine(where, maxTemplateError/3)
	}
	return fmt.Errorf("line %s%s: %s", line, where, oneLine(what, maxTemplateError))
}

const maxTemplateError = 200 // characters

var (
	// "template: NAME:LINE:COLUMN: executing "NAME" at <WHERE>: WHAT" of the execution, without the middle of the parser.
	templateErrorParts = regexp.MustCompile(`(?s)^template: ` + templateName + `:(\d+)(?::\d+)?: (?:executing "[^"]*" at <(.*?)>: )?(.*)$`)
	noSuchField        = regexp.MustCompile(`^can't evaluate field (\S+) in type `)
)

// sample returns a message of a kind to try templates on. Every field that such a message can have has something in it.
func sample(kind Kind) Message {
	since := time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)
	m := Message{Kind: kind, ID: "ntc_0123456789", Link: "https://rollcall.example/endpoints/weather"}
	switch kind {
	case KindDigest:
		m.Symbol, m.Title = "🔴", "3 endpoints down"
		for _, name := range []string{"Weather", "Maps", "Search"} {
			m.Items = append(m.Items, Item{Symbol: "🔴", Title: name + " is down", Said: "Internal error: database is locked", Link: m.Link})
		}
		return m
	case KindService:
		m.Symbol, m.Title, m.Since, m.Location = "🟡", "Location fra lost its network at 08:00 UTC", since, "fra"
		m.Meaning = "Its checks of 12 endpoints count as unknown until it is back: what fails is most likely on our side."
		return m
	case KindTest:
		return NewTestMessage(store.Channel{Name: "ops"}, "https://rollcall.example")
	}
	m.Endpoint, m.URL, m.Severity = "Weather", "https://weather.example/mcp", "down"
	if kind == KindContract {
		m.Symbol, m.Title, m.Severity = "🟠", "Weather: the tool list changed (1 breaking)", "notice"
		m.Meaning = "Clients that use these tools as they were may fail. The server itself answers."
		m.Changes = []string{"breaking: forecast: the tool is gone", "info: alerts: an argument that may be given"}
		return m
	}
	if kind == KindBudget {
		m.Symbol, m.Title, m.Severity = "🟠", "Weather burns its error budget 14 times too fast", "notice"
		m.Meaning = "At this rate the budget of 30 days is gone in two days."
		return m
	}
	m.Incident, m.Symbol, m.Title, m.Open, m.Acts = "inc_0123456789", "🔴", "Weather is down", true, true
	m.Step, m.Class, m.Code, m.Said = "tools/list", "rpc_error", "-32603", "Internal error: database is locked"
	m.Meaning = "The server is reachable and refused the request with an error of its own."
	m.SeenFrom, m.Dependents, m.Since = []string{"fra", "iad"}, []string{"Travel"}, since
	switch kind {
	case KindUpdated:
		m.Update, m.Act, m.Acted = "Acknowledged by ada.", "acknowledged", true
	case KindReminder, KindEscalation:
		m.Title = "Weather is still down"
	case KindFlapping:
		m.Symbol, m.Title = "🟠", "Weather comes and goes"
	case KindCalmed:
		m.Symbol, m.Title = "🔵", "Weather no longer comes and goes"
	case KindResolved:
		m.Symbol, m.Title, m.Open, m.Acts = "🟢", "Weather has recovered", false, false
		m.Until, m.Lasted, m.Outcome = since.Add(724*time.Second), "12 minutes 4 seconds", "Recovered after 12 minutes 4 seconds."
	}
	return m
}
