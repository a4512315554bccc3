package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == goSDKMark {
		fmt.Fprintln(os.Stderr, serveGoSDK(os.Args[2:]))
		os.Exit(1)
	}
	code := m.Run()
	if bin, err := buildOnce(); err == nil {
		_ = os.RemoveAll(filepath.Dir(bin)) // a directory left in /tmp fails no test
	}
	os.Exit(code)
}

// TestScripts runs the command line as a person would type it. Each script finds endpoints to probe in its environment.
func TestScripts(t *testing.T) {
	mcp := probetest.MCP(t)
	failing := probetest.MCP(t, probetest.LegacyOnly(), probetest.RPCErrorAt("tools/list", 200, -32603, "Internal error"))
	gated := probetest.MCP(t, probetest.Unauthorized(`Bearer realm="tools"`))
	evm := probetest.EVM(t)
	rpc := probetest.JSONRPC(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary(t))+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("MCP", mcp.URL)
			env.Setenv("FAILING", failing.URL)
			env.Setenv("GATED", gated.URL)
			env.Setenv("EVM", evm.URL)
			env.Setenv("RPC", rpc.URL)
			env.Setenv("NOBODY", "http://127.0.0.1:9/mcp") // the discard port, where nobody listens
			return nil
		},
	})
}
