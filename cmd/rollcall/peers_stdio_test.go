package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRealPeersOverStdio holds the real binary against servers that it starts itself, for one check each, and talks to
// over their standard input and output.
func TestRealPeersOverStdio(t *testing.T) {
	everything := strings.Join(everythingPeer(t, "stdio"), " ")
	goSDK := strings.Join(goSDKPeer(t, "stdio", ""), " ")
	typescript := strings.Join(typescriptPeer(t, "stdio"), " ")
	gopls := built(t, "gopls")
	const patient, hasty = "20s", "5s"
	for _, c := range []struct {
		name, command, timeout string
		args                   []string
		want                   sighting
	}{
		{"server-everything is up", everything, patient, nil, everythingSeen.legacy().up()},
		{"go-sdk is up", goSDK, patient, nil, goSDKSeen.modern().up()},
		{"TypeScript v2 is up", typescript, patient, nil, typescriptSeen.modern().up()},
		{"gopls is up", gopls, patient, []string{"--kind", "lsp"}, sighting{Kind: "lsp", ServerName: "gopls"}.up()},

		{"a server-everything that freezes has a timeout", frozen(t, everything), hasty, []string{"--kind", "mcp"},
			sighting{Verdict: "down", Class: "timeout", Kind: "mcp"}},
		{"a go-sdk that freezes has a timeout", frozen(t, goSDK), hasty, []string{"--kind", "mcp"},
			sighting{Verdict: "down", Class: "timeout", Kind: "mcp"}},
		{"a gopls that freezes has a timeout", frozen(t, gopls), hasty, []string{"--kind", "lsp"},
			sighting{Verdict: "down", Class: "timeout", Kind: "lsp"}},

		{"a server-everything without its transport ends early", strings.TrimSuffix(everything, "stdio") + "nonsense", patient, []string{"--kind", "mcp"},
			sighting{Verdict: "down", Class: "exit_early", Kind: "mcp"}},
		{"a gopls that is not installed cannot be started", gopls + "-of-another-machine", patient, []string{"--kind", "lsp"},
			sighting{Verdict: "down", Class: "spawn", Kind: "lsp"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := look(binary(t), append([]string{"--command", c.command, "--timeout", c.timeout}, c.args...)...)
			if got.err != nil {
				t.Fatal(got.err)
			}
			if diff := cmp.Diff(got.sighting, c.want); diff != "" {
				t.Errorf("got (-) and want (+):\n%s%s", diff, got.raw)
			}
		})
	}
}

// frozen returns a command that freezes before it becomes another one.
func frozen(t *testing.T, command string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "frozen")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nkill -STOP $$\nexec "+command+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}
