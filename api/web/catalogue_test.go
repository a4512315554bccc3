package web

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	trees "text/template/parse"

	plurals "golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// Every sentence that a page can show has one in every catalogue: what templates say, what Go code says, and what is wrong with an
// input or with a request, which words recognises.
func TestEveryCatalogueIsComplete(t *testing.T) {
	for _, c := range catalogues[1:] {
		for key, at := range sentencesOf(t) {
			if _, ok := c.Sentences[key]; !ok && c.Failures[key] == "" {
				t.Errorf("%s: %s: no sentence for %q", c.Tag, at, key)
			}
		}
	}
}

// What nothing says any more goes out of the catalogues.
func TestNoCatalogueHasWhatNothingSays(t *testing.T) {
	said, literals := sentencesOf(t), literalsOf(t)
	for _, c := range catalogues {
		for key := range c.Sentences {
			if said[key] == "" && !madeOf(key, literals) {
				t.Errorf("%s: nothing says %q", c.Tag, key)
			}
		}
	}
}

// literalsOf returns all texts that are written in the code which speaks to people, one per line.
func literalsOf(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{".", "..", "../../store", "../../store/sqlite", "../../store/postgres", "../../probe", "../../alerts", "../../scheduler", "../../cmd/rollcall"} {
		s := sourceOf(t, dir)
		s.inspect(func(n ast.Node) {
			if e, ok := n.(ast.Expr); ok {
				if text, ok := s.text(e); ok {
					all.WriteString(text + "\n")
				}
			}
		})
	}
	for status := 400; status < 600; status++ {
		all.WriteString(http.StatusText(status) + "\n")
	}
	return strings.ToLower(all.String())
}

// madeOf reports whether a sentence is put together from literals.
func madeOf(key, literals string) bool {
	if key = strings.ToLower(key); strings.Contains(literals, key) {
		return true
	}
	for _, piece := range joint.Split(key, -1) {
		if !strings.Contains(literals, strings.Trim(piece, " .,:;()")) {
			return false
		}
	}
	return true
}

// joint is where sentences are put together.
var joint = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?(?:\[[0-9]+\])?[a-zA-Z]|: | \(|, |\. |^by |^has |must be |write it like |` +
	`^(?:slack|ntfy|discord|mattermost|teams|opsgenie|pagerduty|telegram|the webhook|the mail server) |^the objective |viewer|editor`)

// A sentence has the arguments of its English, whatever their order, and those that it shows as numbers are numbers.
func TestSentencesOfAllLanguagesTakeTheSameArguments(t *testing.T) {
	for _, c := range catalogues {
		for key, s := range c.Sentences {
			want := arguments(key)
			texts := []string{s.text}
			if s.forms != nil {
				texts = nil
				for _, form := range s.forms {
					texts = append(texts, form)
				}
			}
			for _, text := range texts {
				got := arguments(text)
				if text == "" || len(got) != len(want) {
					t.Errorf("%s: %q takes %d arguments, %q %d", c.Tag, text, len(got), key, len(want))
					continue
				}
				for i := range got {
					if !slices.Contains(interchangeable[want[i]], got[i]) {
						t.Errorf("%s: argument %d of %q is a %%%s, of %q a %%%s", c.Tag, i+1, text, got[i], key, want[i])
					}
				}
			}
		}
	}
}

// interchangeable are the verbs that may stand for one in English.
var interchangeable = map[string][]string{
	"d": {"d", "s", "v"}, "s": {"s", "v"}, "q": {"q", "s"}, "v": {"v", "s"}, "w": {"w", "s", "v"}, "f": {"f"}, "g": {"g", "s", "v"}, "x": {"x", "s"},
}

// arguments are the verbs of a format by the argument they take.
func arguments(format string) []string {
	var args []string
	next := 0
	for _, found := range verb.FindAllStringSubmatch(format, -1) {
		if found[2] == "%" {
			continue
		}
		if n, err := strconv.Atoi(found[1]); err == nil {
			next = n - 1
		}
		for len(args) <= next {
			args = append(args, "")
		}
		args[next] = found[2]
		next++
	}
	return args
}

// What has several forms in English has those of the other language there.
func TestPluralsHaveTheFormsOfTheirLanguage(t *testing.T) {
	for _, c := range catalogues {
		want := categories(c.Tag)
		for key, s := range c.Sentences {
			if len(catalogues[0].Sentences[key].forms) == 0 && s.forms == nil {
				continue
			}
			var got []string
			for name := range s.forms {
				got = append(got, name)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q has the forms %v, want %v", c.Tag, key, got, want)
			}
		}
	}
}

// categories are those of the plurals of whole numbers, by name.
func categories(tag language.Tag) []string {
	names := map[plurals.Form]string{plurals.Zero: "zero", plurals.One: "one", plurals.Two: "two", plurals.Few: "few", plurals.Many: "many", plurals.Other: "other"}
	var found []string
	for n := range 1000 {
		if name := names[plurals.Cardinal.MatchPlural(tag, n, 0, 0, 0, 0)]; !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// A language says how it writes days: with a layout for each of the two ways, and names for all of the months or none.
func TestEveryCatalogueWritesDays(t *testing.T) {
	for _, c := range catalogues[1:] {
		if c.Name == "" || !strings.Contains(c.Dates.Day, "2006") || !strings.Contains(c.Dates.Short, "2") || strings.Contains(c.Dates.Short, "2006") {
			t.Errorf("%s: has the name %q and writes days as %q and %q", c.Tag, c.Name, c.Dates.Day, c.Dates.Short)
		}
		if n := len(c.Dates.Months); n != 0 && n != 12 || slices.Contains(c.Dates.Months, "") {
			t.Errorf("%s: has the months %q", c.Tag, c.Dates.Months)
		}
	}
}

// sentencesOf returns every sentence that pages show, and where each is said.
func sentencesOf(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	templateSentences(t, all)
	for _, key := range scriptSentences {
		all[key] = "static"
	}
	for _, dir := range []string{"."} {
		sourceOf(t, dir).said(all)
		sourceOf(t, dir).prose(all)
	}
	api := sourceOf(t, "..")
	api.said(all)
	api.mistakes(all)
	for _, dir := range []string{"../../store", "../../store/sqlite", "../../store/postgres", "../../probe"} {
		sourceOf(t, dir).mistakes(all)
	}
	for _, c := range meanings {
		all[c.says], all[c.advice] = "words.go", "words.go"
	}
	for _, tag := range tags {
		all[tag.Word] = "words.go"
	}
	all["or"], all["and"] = "recognise.go", "recognise.go"
	for _, key := range []string{"must be %s", "a time like 2026-11-21T08:00:00Z"} {
		delete(all, key) // of JSON alone, and what it says is in the catalogues as a whole
	}
	return all
}

// templateSentences collects what templates hand to t as a literal.
func templateSentences(t *testing.T, all map[string]string) {
	t.Helper()
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := fs.Glob(files, "templates/shared/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, shared...) {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		tree := trees.New(name)
		tree.Mode = trees.SkipFuncCheck
		set := map[string]*trees.Tree{}
		if _, err := tree.Parse(string(data), "", "", set); err != nil {
			t.Fatal(err)
		}
		for _, one := range set {
			templateCalls(one.Root, func(key string) { all[key] = name })
		}
	}
}

func templateCalls(node trees.Node, say func(key string)) {
	var branch *trees.BranchNode
	switch n := node.(type) {
	case *trees.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				templateCalls(child, say)
			}
		}
	case *trees.ActionNode:
		templateCalls(n.Pipe, say)
	case *trees.TemplateNode:
		templateCalls(n.Pipe, say)
	case *trees.IfNode:
		branch = &n.BranchNode
	case *trees.RangeNode:
		branch = &n.BranchNode
	case *trees.WithNode:
		branch = &n.BranchNode
	case *trees.PipeNode:
		if n != nil {
			for _, c := range n.Cmds {
				templateCalls(c, say)
			}
		}
	case *trees.CommandNode:
		if name, ok := n.Args[0].(*trees.IdentifierNode); ok && (name.Ident == "t" || name.Ident == "words") && len(n.Args) > 1 {
			switch key := n.Args[1].(type) {
			case *trees.StringNode:
				say(key.Text)
			case *trees.PipeNode: // one of several
				for _, arg := range key.Cmds[0].Args {
					if one, ok := arg.(*trees.StringNode); ok {
						say(one.Text)
					}
				}
			}
		}
		for _, arg := range n.Args {
			templateCalls(arg, say)
		}
	}
	if branch != nil {
		templateCalls(branch.Pipe, say)
		templateCalls(branch.List, say)
		templateCalls(branch.ElseList, say)
	}
}

// source is the Go code of a directory, without its tests.
type source struct {
	dir       string
	files     []*ast.File
	constants map[string]string
}

var sources = map[string]source{}

func sourceOf(t *testing.T, dir string) source {
	t.Helper()
	if s, ok := sources[dir]; ok {
		return s
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	s := source{dir, nil, map[string]string{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "preset.go") { // presets are ours: what is wrong with one ends the build
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, file)
	}
	for range 2 { // a constant may be made of others
		s.inspect(func(n ast.Node) {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, value := range spec.Values {
					if text, ok := s.text(value); ok && i < len(spec.Names) {
						s.constants[spec.Names[i].Name] = text
					}
				}
			}
		})
	}
	sources[dir] = s
	return s
}

func (s source) inspect(visit func(ast.Node)) {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				visit(n)
			}
			return true
		})
	}
}

// text returns the format that an expression is, or is made from.
func (s source) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.Ident:
		text, ok := s.constants[e.Name]
		return text, ok
	case *ast.ParenExpr:
		return s.text(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		x, known := s.text(e.X)
		y, also := s.text(e.Y)
		switch {
		case !known && !also:
			return "", false
		case !known:
			x = "%s"
		case !also:
			y = "%s"
		}
		return x + y, true
	case *ast.CallExpr:
		if name := calledName(e); (name == "Sprintf" || name == "Errorf") && len(e.Args) > 0 {
			return s.text(e.Args[0])
		}
	}
	return "", false
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// said collects what is handed to Say, and to the function of a Language behind it.
func (s source) said(all map[string]string) {
	s.inspect(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || calledName(call) != "Say" && calledName(call) != "say" || len(call.Args) == 0 {
			return
		}
		if text, ok := s.text(call.Args[0]); ok {
			all[text] = s.dir
			return
		}
		ast.Inspect(call.Args[0], func(n ast.Node) bool { // one of several
			if lit, ok := n.(*ast.BasicLit); ok {
				if text, ok := s.text(lit); ok {
					all[text] = s.dir
				}
			}
			return true
		})
	})
}

// isProse tells a sentence from a name, an address and a layout of time.
var isProse = regexp.MustCompile(`^[A-Za-z%][^=<>|{}]*[a-z]{2}[^=<>|{}]* [^=<>|{}]+$`)

// prose collects the literals in package web that are sentences: constants of closed sets, which templates hand to t.
func (s source) prose(all map[string]string) {
	skip := map[ast.Node]bool{}
	s.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch calledName(n) {
			case "Errorf", "Fprintf", "Sprintf", "panic", "Format", "MustCompile", "New":
				for _, arg := range n.Args {
					skip[arg] = true
				}
			}
		case *ast.Field:
			skip[n.Tag] = true
		case *ast.BasicLit:
			if text, ok := s.text(n); ok && !skip[n] && isProse.MatchString(text) && !strings.HasPrefix(text, "curl ") {
				all[text] = s.dir
			}
		}
	})
}

// complaints are the functions that are handed a format of what is wrong with an input, by name; some are closures in many functions.
// What probe calls a problem, and what it refuses of an answer, are failures of an endpoint, which catalogues have apart.
func (s source) complaints() []string {
	if s.dir == "../../probe" {
		return []string{"add"}
	}
	return []string{"problem", "add", "fault", "mistake", "required", "refuse", "wrong", "unacceptable"}
}

// mistakes collects the formats of what is wrong with an input or a request.
func (s source) mistakes(all map[string]string) {
	s.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := calledName(n)
			if !slices.Contains(s.complaints(), name) {
				return
			}
			for i, arg := range n.Args {
				text, ok := s.text(arg)
				if ok && (strings.Contains(text, " ") || name == "fault" && i == 1) && text != "" && !strings.HasPrefix(text, "SELECT ") {
					all[text] = s.dir
				}
			}
		case *ast.CompositeLit:
			s.complaint(n, all)
		}
	})
}

// handed collects the sentences among the fields of a page.
func (s source) handed(lit *ast.CompositeLit, all map[string]string) {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if text, ok := s.text(kv.Value); ok && isProse.MatchString(text) {
				all[text] = s.dir
			}
		}
	}
}

// complaint collects the text of a problem that is written as a literal, and those that are handed to a page as they are.
func (s source) complaint(lit *ast.CompositeLit, all map[string]string) {
	typed := fmt.Sprint(lit.Type)
	if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
		typed = sel.Sel.Name
		if from, ok := sel.X.(*ast.Ident); ok && from.Name == "web" {
			s.handed(lit, all)
		}
	}
	if p, ok := lit.Type.(*ast.Ident); ok {
		typed = p.Name
	}
	for i, e := range lit.Elts {
		value, keyed := e, false
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			key, _ := kv.Key.(*ast.Ident)
			if key == nil || !slices.Contains([]string{"Message", "Detail", "Title"}, key.Name) {
				continue
			}
			if (key.Name == "Message") == (typed == "problem") || typed == "Failure" {
				continue
			}
			value, keyed = kv.Value, true
		}
		if !keyed && (typed != "Problem" || i != 1) {
			continue
		}
		if text, ok := s.text(value); ok && strings.Trim(text, "%s ") != "" {
			all[text] = s.dir
		}
	}
}
