// Command conformance-client is package probe as a client that the official MCP conformance suite can drive. It is for
// tests only. The suite starts a server, runs this with the server's URL as last argument, and judges what was sent; it
// names the scenario and the protocol version in the environment.
//
// It does nothing that the probe does not do, with one exception that a scenario demands: see echoSchema. A scenario that
// wants a tool called, or a token had, gets the canary or the credentials that an endpoint would be set up with.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
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
	scenario := env("MCP_CONFORMANCE_SCENARIO")
	target := probe.Target{
		Kind:       probe.KindMCP,
		URL:        args[len(args)-1],
		Era:        probe.EraLegacy,
		Timeout:    10 * time.Second,
		Transcript: true,
		Options:    probe.Options{Canary: canaries[scenario]},
	}
	if strings.HasPrefix(scenario, "auth/") {
		client, err := credentials(env("MCP_CONFORMANCE_CONTEXT"))
		if err != nil {
			return err
		}
		target.Options.OAuth = &client
	}
	if env("MCP_CONFORMANCE_PROTOCOL_VERSION") >= firstModern {
		target.Era = probe.EraModern
	}
	prober := &probe.Prober{Version: "conformance", Egress: probe.Egress{Any: true}}
	result := prober.Probe(ctx, target)
	seen, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(seen))
	if scenario == "json-schema-2020-12-preservation" {
		return echoSchema(ctx, target.URL, result.Transcript)
	}
	if result.Verdict != probe.Up {
		return fmt.Errorf("verdict %s: %+v", result.Verdict, result.Failure)
	}
	return nil
}

// canaries are the calls that scenarios want to see.
var canaries = map[string]*probe.Canary{
	"tools_call":                {Tool: "add_numbers", Arguments: json.RawMessage(`{"a": 5, "b": 3}`)},
	"sse-retry":                 {Tool: "test_reconnection"}, // whose answer comes on a stream that breaks off
	"http-invalid-tool-headers": {Tool: "valid_tool", Arguments: json.RawMessage(`{"region": "eu"}`)},
}

// credentials reads the client that the suite registered from the context of a scenario. Some scenarios expect a client
// to register itself; a monitor is registered by whoever sets it up, so that one with made-up credentials asks there.
func credentials(context string) (probe.OAuth, error) {
	registered := struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}{"conformance", "made-up-password"}
	if context != "" {
		if err := json.Unmarshal([]byte(context), &registered); err != nil {
			return probe.OAuth{}, fmt.Errorf("read MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	return probe.OAuth{ClientID: registered.ID, ClientSecret: registered.Secret}, nil
}
