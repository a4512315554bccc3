package web

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/store"
)

// Words that stand in other packages and are not handed to Say as they are there: of types of channels, of scopes, of where browsers
// run, and of the log of changes.
func TestEveryCatalogueHasTheWordsOfOtherPackages(t *testing.T) {
	var all []string
	for _, spec := range store.ChannelSpecs() {
		all = append(all, spec.Title)
		for _, f := range spec.Fields {
			all = append(all, f.Label, f.Hint)
			label := f.Label
			if label[1] >= 'a' && label[1] <= 'z' {
				label = strings.ToLower(label[:1]) + label[1:]
			}
			switch {
			case f.Kind == store.FieldLong:
			case f.Secret:
				all = append(all, "by "+label)
			case f.Kind != store.FieldURL:
				all = append(all, label+" %s")
			}
		}
	}
	for _, system := range listOf(t, "..", "systems") {
		if strings.Contains(system, "%s") { // the others are the signs by which they are known
			all = append(all, system)
		}
	}
	for _, scope := range store.Scopes {
		all = append(all, string(scope))
	}
	nouns, kinds, verbs := listOf(t, "..", "auditNouns"), listOf(t, "..", "previewKinds"), auditVerbs(t)
	if len(nouns) < 10 || len(kinds) < 10 || len(verbs) < 3 {
		t.Fatalf("read the nouns %q and verbs %q of the log of changes, and the kinds of messages %q", nouns, verbs, kinds)
	}
	for _, noun := range nouns {
		all = append(all, noun, strings.ReplaceAll(noun, "_", " "))
	}
	for _, verb := range slices.Concat(verbs, []string{
		store.AuditCreate, store.AuditUpdate, store.AuditDelete,
		string(store.ActAcknowledge), string(store.ActSnooze), string(store.ActComment), string(store.ActResolve), string(store.ActReopen),
	}) {
		if did[verb] == "" {
			t.Errorf("the log of changes has no word for what happened when somebody did %q", verb)
		}
		all = append(all, did[verb])
	}
	all = slices.Concat(all, kinds, []string{
		"set", "changed", "removed",
		string(store.ActorMember), string(store.ActorToken), string(store.ActorCommand), string(store.ActorSlack),
	})
	flags := usages(t)
	if len(flags) < 20 {
		t.Fatalf("read the flags %q", flags)
	}
	all = append(all, flags...)
	for _, c := range catalogues[1:] {
		for _, key := range all {
			if _, ok := c.Sentences[key]; !ok && key != "" {
				t.Errorf("%s: no sentence for %q", c.Tag, key)
			}
		}
	}
}

// usages returns what the flags of the service are for.
func usages(t *testing.T) (texts []string) {
	t.Helper()
	s := sourceOf(t, "../../cmd/rollcall")
	s.inspect(func(n ast.Node) {
		f, ok := n.(*ast.FuncDecl)
		if !ok || !slices.Contains([]string{"readConfig", "databaseFlag", "(o *oidcFlags) register"}, nameOf(f)) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) >= 3 {
				if method, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(method.Sel.Name, "Var") {
					if text, ok := s.text(call.Args[len(call.Args)-1]); ok {
						texts = append(texts, text)
					}
				}
			}
			return true
		})
	})
	return texts
}

// nameOf returns the name of a function, with its receiver.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	pointer, _ := f.Recv.List[0].Type.(*ast.StarExpr)
	if pointer == nil {
		return f.Name.Name
	}
	return fmt.Sprintf("(%s *%s) %s", f.Recv.List[0].Names[0], pointer.X, f.Name.Name)
}

// listOf returns the texts in a list that a package holds in a variable.
func listOf(t *testing.T, dir, name string) (texts []string) {
	t.Helper()
	s := sourceOf(t, dir)
	s.inspect(func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != name {
			return
		}
		ast.Inspect(spec.Values[0], func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				text, _ := s.text(lit)
				texts = append(texts, text)
			}
			return true
		})
	})
	return texts
}

// auditVerbs returns the verbs of the log of changes that one noun alone has.
func auditVerbs(t *testing.T) (verbs []string) {
	t.Helper()
	s := sourceOf(t, "../../store/sqlite")
	s.inspect(func(n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && calledName(call) == "audit" && len(call.Args) > 2 {
			if verb, ok := s.text(call.Args[2]); ok {
				verbs = append(verbs, verb)
			}
		}
	})
	return verbs
}
