package probe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// Nodes say in many ways that they do not know a method. None of them ends the search for what they do know.
func TestTheSearchGoesOnPastRefusals(t *testing.T) {
	bitcoin := map[string]string{
		"getblockcount":     `200 {"result":840000,"error":null,"id":ID}`,
		"getblockhash":      `200 {"result":"000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f","error":null,"id":ID}`,
		"getblockchaininfo": `200 {"result":{"blocks":840000,"headers":840000,"bestblockhash":"00","initialblockdownload":false},"error":null,"id":ID}`,
	}
	for _, c := range []struct {
		name    string
		unknown string // what every other method is answered
		knows   map[string]string
		kind    probe.Kind
	}{
		{"an error with a code", `500 {"result":null,"error":{"code":-32601,"message":"Method not found"},"id":ID}`, bitcoin, probe.KindBitcoin},
		{"nothing, as btcd does", "200 ", bitcoin, probe.KindBitcoin},
		{"that they warm up, as bitcoind does", `500 {"result":null,"error":{"code":-28,"message":"Verifying blocks…"},"id":ID}`, bitcoin, probe.KindBitcoin},
		{"-32004, as EIP-1474 has it", `200 {"jsonrpc":"2.0","id":ID,"error":{"code":-32004,"message":"Method not supported"}}`, bitcoin, probe.KindBitcoin},
		{"params of another form, as rippled wants them", "400 params unparseable", map[string]string{
			"eth_blockNumber": `200 {"result":{"status":"error","error":"unknownCmd","error_code":32}}`,
			"server_state":    `200 {"result":{"status":"success","state":{"server_state":"full","validated_ledger":{"seq":840000}}}}`,
		}, probe.KindXRPL},
		{"an error of its own, as aria2 does", `400 {"id":ID,"jsonrpc":"2.0","error":{"code":1,"message":"No such method: x"}}`, nil, probe.KindJSONRPC},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answers := map[string]string{"server/discover": c.unknown, "initialize": c.unknown, "eth_blockNumber": c.unknown, "status": c.unknown,
				"getHealth": c.unknown, "system_health": c.unknown, "starknet_blockNumber": c.unknown, "getblockcount": c.unknown}
			for method, text := range c.knows {
				answers[method] = text
			}
			r := ask(t, probe.Target{Kind: probe.KindAuto, URL: newAgent(t, answers).URL})
			if r.Kind != c.kind {
				t.Errorf("found %s, want %s: %s\n%+v", r.Kind, c.kind, stepLine(r.Steps), r.Failure)
			}
			for _, w := range r.Warnings {
				if c.knows != nil && c.knows[w.Step] == "" {
					t.Errorf("a warning about a method that is not known: %+v", w)
				}
			}
			if c.knows != nil && (r.Facts.Height == nil || *r.Facts.Height != 840_000) {
				t.Errorf("facts %+v", r.Facts)
			}
			if c.knows == nil && (r.Failure == nil || !strings.Contains(r.Failure.Message, "name a kind")) {
				t.Errorf("%s %+v", r.Verdict, r.Failure)
			}
		})
	}
}

// A language server, say, waits for its own first word. The silence alone would send people after the network.
func TestSilenceUnderAutoAsksForAKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[probe.Kind]bool{probe.KindAuto: true, probe.KindElectrum: false} {
		url := probetest.Socket(t, probetest.JSONRPC(t, probetest.HangAt("server.version"))).URL
		r := local().Probe(t.Context(), probe.Target{Kind: kind, URL: url, Timeout: 100 * time.Millisecond})
		if r.Verdict != probe.Down || r.Failure == nil || r.Failure.Class != probe.ClassTimeout {
			t.Fatalf("%s: %s %+v", kind, r.Verdict, r.Failure)
		}
		if got := strings.Contains(r.Failure.Message, "only chain nodes are looked for over tcp: name one"); got != want {
			t.Errorf("%s: %q", kind, r.Failure.Message)
		}
	}
}

// What is told of an endpoint that nobody knows any better is what it said itself.
func TestTheSearchTellsWhatWasSaid(t *testing.T) {
	for name, c := range map[string]struct {
		always  string
		verdict probe.Verdict
		step    string
		class   probe.Class
		code    int
		message string
	}{
		"a plan that does not cover it": {`400 {"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"Not in the free tier"}}`, probe.Degraded, "starknet_blockNumber", probe.ClassCapabilityMissing, -32600, "it answers Not in the free tier"},
		"a gateway in trouble":          {`500 {"jsonrpc":"2.0","id":ID,"error":{"code":19,"message":"Temporary internal error"}}`, probe.Down, "initialize", probe.ClassRPCError, 19, "Temporary internal error"},
		"a gateway that wants a key":    {`401 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No key"}}`, probe.Gated, "initialize", probe.ClassAuthRequired, 401, "401 Unauthorized: No key"},
		"a web server that wants a key": {`401 {"error":"invalid_token","error_description":"No token"}`, probe.Gated, "initialize", probe.ClassAuthRequired, 401, "401 Unauthorized: No token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := map[string]string{}
			for _, method := range []string{"server/discover", "initialize", "eth_blockNumber", "status", "getHealth", "getblockcount", "system_health", "starknet_blockNumber"} {
				answers[method] = c.always
			}
			r := ask(t, probe.Target{Kind: probe.KindAuto, URL: newAgent(t, answers).URL})
			if f := r.Failure; r.Verdict != c.verdict || f == nil || f.Step != c.step || f.Class != c.class || f.Code != c.code || !strings.Contains(f.Message, c.message) {
				t.Errorf("%s %+v after %s", r.Verdict, f, stepLine(r.Steps))
			}
		})
	}
}
