package probe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
)

// Every class says what it means, by an example, and what verdict it leads to; the verdict it says is the one it has.
func TestClassesSayWhatTheyMean(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "class.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[probe.Class]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		class, name, doc := probe.Class(value), spec.Names[0].Name, strings.Join(strings.Fields(spec.Doc.Text()), " ")
		if seen[class] {
			t.Errorf("%s: %q is used twice", name, class)
		}
		seen[class] = true
		if !strings.HasPrefix(doc, name+" ") || !strings.Contains(doc, "Example: ") {
			t.Errorf("%s has no meaning or no example: %s", name, doc)
		}
		onlyWarns := strings.Contains(doc, " is a warning")
		if want := "Verdict " + string(class.Verdict()) + "."; !onlyWarns && !strings.HasSuffix(doc, want) || onlyWarns && class.Verdict() != probe.Up {
			t.Errorf("%s leads to %s and says: %s", name, class.Verdict(), doc)
		}
		return true
	})
	if len(seen) < 35 {
		t.Errorf("found %d classes only", len(seen))
	}
	if got := probe.Class("made up").Verdict(); got != probe.Unknown {
		t.Errorf("a class that is not in the list leads to %s", got)
	}
	if got := probe.Class("").Verdict(); got != probe.Up || !slices.Contains(probe.Verdicts(), got) {
		t.Errorf("no class leads to %s", got)
	}
}
