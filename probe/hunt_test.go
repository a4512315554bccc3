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
