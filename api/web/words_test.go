package web_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func TestEveryClassHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../probe/class.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if class := probe.Class(name); web.Means(class) == strings.ReplaceAll(name, "_", " ") || web.Advice(class) == "" {
			t.Errorf("class %q has no words", name)
		}
		return true
	})
	if found == 0 || found != web.WordedClasses() {
		t.Errorf("%d classes are declared, %d have words", found, web.WordedClasses())
	}
}

func TestEveryStatusHasAShapeAndAWord(t *testing.T) {
	for _, s := range store.Statuses() {
		if tag := web.TagOf(s); tag.Tone != string(s) || tag.Word == "" {
			t.Errorf("status %q is shown as %+v", s, tag)
		}
	}
	for _, v := range probe.Verdicts() {
		if tag := web.TagOf(v); tag.Tone != string(v) {
			t.Errorf("verdict %q is shown as %+v", v, tag)
		}
	}
	if tag := web.TagOf(store.Status("made up")); tag.Tone != "unknown" {
		t.Errorf("a status that is not in the list is shown as %+v", tag)
	}
}
