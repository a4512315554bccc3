package probe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

// What does not go together is said, all of it, before anything is sent.
func TestTargetsThatCannotBeProbed(t *testing.T) {
	const url = "https://mcp.example.com/mcp"
	header, insecure := []probe.Header{{Name: "Authorization", Value: "x"}}, probe.Options{TLS: probe.TLS{Insecure: true}}
	command := func(args ...string) *probe.Command { return &probe.Command{Args: args} }
	for _, c := range []struct {
		name   string
		target probe.Target
		want   string // fields, in order
	}{
		{"a good one", probe.Target{Kind: probe.KindMCP, URL: url}, ""},
		{"a command", probe.Target{Kind: probe.KindMCP, Command: command("server")}, ""},
		{"both", probe.Target{Kind: probe.KindMCP, URL: url, Command: command("server")}, "url"},
		{"neither", probe.Target{Kind: probe.KindMCP}, "url"},
		{"a command without a program", probe.Target{Kind: probe.KindMCP, Command: command()}, "command.args"},
		{"a command with a NUL byte", probe.Target{Kind: probe.KindMCP, Command: command("a", "b\x00c")}, "command.args"},
		{"a variable without a name", probe.Target{Kind: probe.KindMCP, Command: &probe.Command{Args: []string{"a"}, Env: []probe.Header{{Value: "x"}, {Name: "A=B"}}}},
			"command.env[0] command.env[1]"},
		{"a socket without a port", probe.Target{Kind: probe.KindElectrum, URL: "tcp://electrum.example.com"}, "url"},
		{"a socket with a path", probe.Target{Kind: probe.KindElectrum, URL: "tcp://electrum.example.com:50001/x"}, "url"},
		{"a unix socket with a host", probe.Target{Kind: probe.KindCLN, URL: "unix://host/run/x"}, "url"},
		{"a unix socket", probe.Target{Kind: probe.KindCLN, URL: "unix:///run/lightning-rpc"}, ""},
		{"another scheme", probe.Target{Kind: probe.KindMCP, URL: "ftp://example.com/"}, "url"},
		{"a language server over HTTP", probe.Target{Kind: probe.KindLSP, URL: url}, "url"},
		{"an agent over a socket", probe.Target{Kind: probe.KindA2A, URL: "tcp://agent.example.com:1"}, "url"},
		{"an agent that is a process", probe.Target{Kind: probe.KindA2A, Command: command("agent")}, "url"},
		{"REST over a WebSocket", probe.Target{Kind: probe.KindACP, URL: "wss://agent.example.com", Options: probe.Options{ACP: probe.ACPCommunication}}, "url"},
		{"choices that are none", probe.Target{Kind: probe.KindMCP, URL: url, Options: probe.Options{Framing: "lines", ACP: "zed", IP: "5", HTTP: "3"}},
			"ip_version http_version framing acp_variant acp_variant"},
		{"a header for a process", probe.Target{Kind: probe.KindMCP, Command: command("server"), Headers: header}, "headers"},
		{"a header for a bare socket", probe.Target{Kind: probe.KindElectrum, URL: "tls://electrum.example.com:50002", Headers: header}, "headers"},
		{"a header for a WebSocket", probe.Target{Kind: probe.KindEVM, URL: "wss://node.example.com", Headers: header}, ""},
		{"framing over HTTP", probe.Target{Kind: probe.KindMCP, URL: url, Options: probe.Options{Framing: probe.FramingLine}}, "framing"},
		{"a version of HTTP for a WebSocket", probe.Target{Kind: probe.KindEVM, URL: "wss://node.example.com", Options: probe.Options{HTTP: probe.HTTP1}}, "http_version"},
		{"a version of HTTP for a bare socket", probe.Target{Kind: probe.KindElectrum, URL: "tcp://electrum.example.com:50001", Options: probe.Options{HTTP: probe.HTTP2}}, "http_version"},
		{"a version of IP for a unix socket", probe.Target{Kind: probe.KindCLN, URL: "unix:///run/x", Options: probe.Options{IP: probe.IPv6}}, "ip_version"},
		{"a certificate for a bare socket in clear", probe.Target{Kind: probe.KindElectrum, URL: "tcp://electrum.example.com:50001", Options: insecure}, "tls"},
		{"a certificate for a process", probe.Target{Kind: probe.KindMCP, Command: command("server"), Options: insecure}, "tls"},
		{"a certificate for a place that may lead to TLS", probe.Target{Kind: probe.KindMCP, URL: "http://mcp.example.com/", Options: insecure}, ""},
		{"a chain for a tool server", probe.Target{Kind: probe.KindMCP, URL: url, Options: probe.Options{Chain: probe.Chain{ID: "ethereum"}}}, "chain"},
		{"a chain for what is to be found out", probe.Target{Kind: probe.KindAuto, URL: url, Options: probe.Options{Chain: probe.Chain{ID: "ethereum"}}}, ""},
		{"the end of a language server for a tool server", probe.Target{Kind: probe.KindMCP, URL: url, Options: probe.Options{LSP: probe.LSPOptions{AllowExit: true}}}, "lsp"},
		{"a batch for what is to be found out", probe.Target{Kind: probe.KindAuto, URL: url, Options: probe.Options{Batch: []probe.Call{{Method: "y"}}}}, ""},
		{"a canary for a chain node", probe.Target{Kind: probe.KindEVM, URL: url, Options: probe.Options{Canary: &probe.Canary{Tool: "x"}}}, "canary"},
		{"a batch beside a method", probe.Target{Kind: probe.KindJSONRPC, URL: url, Method: "x", Options: probe.Options{Batch: []probe.Call{{Method: "y"}}}}, "request.batch"},
		{"params that are neither array nor object", probe.Target{Kind: probe.KindJSONRPC, URL: url, Method: "x", Params: json.RawMessage("1")}, "request.params"},
		{"a subscription over HTTP", probe.Target{Kind: probe.KindEVM, URL: url, Options: probe.Options{Subscribe: true}}, "subscribe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var fields []string
			for _, p := range c.target.Validate() {
				fields = append(fields, p.Field)
				if p.Message == "" {
					t.Errorf("%s has no message", p.Field)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(fields, " ")); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%+v", diff, c.target.Validate())
			}
		})
	}
}
