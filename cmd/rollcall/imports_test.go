package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rollcallhq/rollcall"

// mayImport is who may import whom among our own packages, in code that ships: the table of the README's chapter on the
// parts. A package that is not in it fails the test, so that a room is added on purpose.
var mayImport = map[string][]string{
	"probe":      {},
	"migrations": {},
	"store":      {"probe"},

	"scheduler":      {"store", "probe"},
	"alerts":         {"store", "probe"},
	"api/web":        {"store", "probe"},
	"api":            {"api/web", "store", "probe"},
	"store/sqlite":   {"migrations", "store", "probe"},
	"store/postgres": {"migrations", "store", "probe"},

	"cmd/rollcall": {
		"api", "api/web", "scheduler", "alerts", "store/sqlite", "store/postgres", "store", "probe",
	},

	// For tests only: see forTests.
	"probe/probetest":        {"probe"},
	"store/storetest":        {"store", "probe"},
	"alerts/alertstest":      {"alerts", "store", "probe"},
	"cmd/conformance-client": {"probe"},
}

// forTests reports whether a room holds helpers that only tests, and each other, may import. Their names say so.
func forTests(room string) bool { return strings.HasSuffix(room, "test") }

// owners are the only packages whose own code may import a library, by the prefix of its import path.
var owners = map[string][]string{
	"github.com/labstack/echo":        {"api"},
	"html/template":                   {"alerts", "api", "api/web"}, // alerts: the HTML of mails
	"github.com/robfig/cron":          {"scheduler"},
	"github.com/slack-go/slack":       {"alerts"},
	"github.com/wneessen/go-mail":     {"alerts"},
	"github.com/emersion/go-smtp":     {"alerts/alertstest"},
	"github.com/jackc/pgx":            {"store/postgres", "store/storetest"},
	"modernc.org/sqlite":              {"store/sqlite"},
	"github.com/chromedp":             {}, // tests only: the browser that looks at the dashboard
	"github.com/modelcontextprotocol": {}, // tests only: a client that hides its evidence cannot probe
}

func TestPackagesImportOnlyTheirNeighbours(t *testing.T) {
	there := map[string]bool{}
	for _, p := range packages(t) {
		there[p.room()] = true
		allowed, ok := mayImport[p.room()]
		if !ok {
			t.Errorf("%s is not in the import table", p.room())
		}
		for _, path := range p.Imports {
			if room, ours := strings.CutPrefix(path, module+"/"); ours && !slices.Contains(allowed, room) {
				t.Errorf("%s imports %s: it may import %q only", p.room(), room, allowed)
			}
		}
	}
	for room := range mayImport {
		if !there[room] {
			t.Errorf("the import table names %s, which is not there", room)
		}
	}
}

func TestTestPackagesAreImportedByTestsOnly(t *testing.T) {
	for _, p := range packages(t) {
		if forTests(p.room()) {
			continue
		}
		for _, dep := range p.Deps {
			if room, ours := strings.CutPrefix(dep, module+"/"); ours && forTests(room) {
				t.Errorf("%s is built with %s, which is for tests", p.room(), room)
			}
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	for _, p := range packages(t) {
		for _, path := range p.Imports {
			for library, rooms := range owners {
				if strings.HasPrefix(path, library) && !slices.Contains(rooms, p.room()) {
					t.Errorf("%s imports %s: that library belongs to %q", p.room(), path, rooms)
				}
			}
		}
	}
}

func TestProbeAndStoreStayFreeOfWebCronAndSlack(t *testing.T) {
	foreign := []string{
		"github.com/labstack/", "html/template", "github.com/robfig/", "github.com/slack-go/",
		"github.com/jackc/", "modernc.org/", "github.com/prometheus/",
	}
	for _, p := range packages(t) {
		if p.room() != "probe" && p.room() != "store" {
			continue
		}
		for _, dep := range p.Deps { // whatever they are built with, at any remove
			for _, prefix := range foreign {
				if strings.HasPrefix(dep, prefix) {
					t.Errorf("%s is built with %s", p.room(), dep)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.room())
		}
	}
}

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string
	Doc        string
	Imports    []string // by code that ships
	Deps       []string // the same, and what those import, and so on
}

// room is the package's path within the module.
func (p goPackage) room() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// packages lists every package of the module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Imports,Deps", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		list = append(list, p)
	}
	return list
}
