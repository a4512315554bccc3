// Command conformance-client is package probe as a client that the official MCP conformance suite can drive. It is for
// tests only. The suite starts a server, runs this with the server's URL as last argument, and judges what was sent; it
// names the scenario and the protocol version in the environment.
//
// It does nothing that the probe does not do, with one exception that a scenario demands: see echoSchema.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// firstModern is the first protocol version without a handshake. Versions are dates: they compare as text.
const firstModern = "2026-07-28"

func main() {
	if err := run(context.Background(), os.Args[1:], os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "conformance-client:", err)
		os.Exit(1)
	}
}

// run probes once and prints what was seen. An endpoint that is not up is an error: every server of the suite is alive.
func run(ctx context.Context, args []string, env func(string) string) error {
	if len(args) == 0 {
		return fmt.Errorf("the last argument must be the URL of a server")
	}
	target := probe.Target{
		Kind:       probe.KindMCP,
		URL:        args[len(args)-1],
		Era:        probe.EraLegacy,
		Timeout:    10 * time.Second,
		Transcript: true,
	}
	if env("MCP_CONFORMANCE_PROTOCOL_VERSION") >= firstModern {
		target.Era = probe.EraModern
	}
	if env("MCP_CONFORMANCE_SCENARIO") == "sse-retry" {
		target.Options.Canary = &probe.Canary{Tool: "test_reconnection"} // whose answer comes on a stream that breaks off
	}
	prober := &probe.Prober{Version: "conformance", Egress: probe.Egress{Any: true}}
	result := prober.Probe(ctx, target)
	seen, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(seen))
	if env("MCP_CONFORMANCE_SCENARIO") == "json-schema-2020-12-preservation" {
		return echoSchema(ctx, target.URL, result.Transcript)
	}
	if result.Verdict != probe.Up {
		return fmt.Errorf("verdict %s: %+v", result.Verdict, result.Failure)
	}
	return nil
}
