package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
)

const root = "../.."

func TestTheReadmeListsEveryClassWithItsVerdict(t *testing.T) {
	readme := readFile(t, "README.md")
	classes := declaredClasses(t)
	for _, class := range classes {
		if row := fmt.Sprintf("| `%s` | %s |", class, class.Verdict()); !strings.Contains(readme, row) {
			t.Errorf("README.md has no row that begins %s", row)
		}
	}
	if len(classes) == 0 {
		t.Error("probe/class.go declares no class")
	}
}

func TestTheReadmeNamesEveryMetric(t *testing.T) {
	readme := readFile(t, "README.md")
	named := 0
	for _, room := range []string{"scheduler", "alerts", "api", "cmd/rollcall", "store"} {
		files, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, name := range metricNames(t, file) {
				named++
				if !strings.Contains(readme, "`"+name+"`") && !strings.Contains(readme, "`"+name+"{") {
					t.Errorf("README.md does not name the metric %s of %s", name, file)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no metric was found")
	}
}

func TestTheReadmeNamesEveryFlagOfServe(t *testing.T) {
	readme := readFile(t, "README.md")
	help, err := exec.CommandContext(t.Context(), binary(t), "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^  (--[a-z-]+)`).FindAllStringSubmatch(string(help), -1)
	for _, f := range flags {
		if !strings.Contains(readme, "| `"+f[1]+"` |") {
			t.Errorf("README.md has no row for %s", f[1])
		}
	}
	if len(flags) == 0 {
		t.Errorf("no flag was found in\n%s", help)
	}
}

func TestTheImageIsBuiltWithTheGoOfTheModule(t *testing.T) {
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)(\.\d+)?$`).FindStringSubmatch(readFile(t, "go.mod"))
	if version == nil {
		t.Fatal("go.mod names no Go version")
	}
	if image := "golang:" + version[1] + "."; !strings.Contains(readFile(t, "deploy/Dockerfile"), image) {
		t.Errorf("deploy/Dockerfile does not build from %s…", image)
	}
	if words := "With Go " + version[1] + " or newer"; !strings.Contains(readFile(t, "README.md"), words) {
		t.Errorf("README.md does not say %q", words)
	}
}

// declaredClasses reads the constants of type Class from the source, because the closed list is the source.
func declaredClasses(t *testing.T) []probe.Class {
	t.Helper()
	var classes []probe.Class
	ast.Inspect(parseFile(t, filepath.Join(root, "probe", "class.go")), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Class" {
			return true
		}
		for _, value := range spec.Values {
			classes = append(classes, probe.Class(literal(value)))
		}
		return true
	})
	return classes
}

// metricNames are the values of members called Name that begin as all our metrics do.
func metricNames(t *testing.T, file string) []string {
	t.Helper()
	var names []string
	ast.Inspect(parseFile(t, file), func(n ast.Node) bool {
		member, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := member.Key.(*ast.Ident); ok && key.Name == "Name" && strings.HasPrefix(literal(member.Value), "rollcall_") {
			names = append(names, literal(member.Value))
		}
		return true
	})
	return names
}

func parseFile(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// literal returns the text of a string literal, empty for any other expression.
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
