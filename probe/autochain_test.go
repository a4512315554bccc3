package probe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestAutoChains finds out the family of a node by what it answers.
func TestAutoChains(t *testing.T) {
	type carry = func(testing.TB, *probetest.Server, ...probetest.CarrierFault) *probetest.Carrier
	for name, tc := range map[string]struct {
		kind   probe.Kind
		over   carry
		faults []probetest.Fault
		found  string // the step by which it was found
	}{
		"evm":                      {probe.KindEVM, nil, nil, "eth_blockNumber"},
		"cometbft":                 {probe.KindCometBFT, nil, nil, "status"},
		"near":                     {probe.KindNEAR, nil, nil, "status"},
		"solana":                   {probe.KindSolana, nil, nil, "getHealth"},
		"stellar":                  {probe.KindStellarRPC, nil, nil, "getHealth"},
		"bitcoin":                  {probe.KindBitcoin, nil, nil, "getblockcount"},
		"substrate":                {probe.KindSubstrate, nil, nil, "system_health"},
		"starknet":                 {probe.KindStarknet, nil, nil, "starknet_blockNumber"},
		"xrpl":                     {probe.KindXRPL, nil, nil, "eth_blockNumber"},
		"evm over WebSocket":       {probe.KindEVM, probetest.WebSocket, nil, "eth_blockNumber"},
		"cometbft over WebSocket":  {probe.KindCometBFT, probetest.WebSocket, nil, "status"},
		"substrate over WebSocket": {probe.KindSubstrate, probetest.WebSocket, nil, "system_health"},
		"starknet over WebSocket":  {probe.KindStarknet, probetest.WebSocket, nil, "starknet_blockNumber"},
		"ogmios over WebSocket":    {probe.KindOgmios, probetest.WebSocket, nil, "queryNetwork/blockHeight"},
		"electrum over TCP":        {probe.KindElectrum, probetest.Socket, nil, "server.version"},
		"cln over a unix socket":   {probe.KindCLN, probetest.UnixSocket, nil, "getinfo"},
		"evm over a unix socket":   {probe.KindEVM, probetest.UnixSocket, nil, "eth_blockNumber"},
		"bitcoin without an envelope": {probe.KindBitcoin, nil, []probetest.Fault{
			probetest.EnvelopeAt("server/discover", `{"result":null,"error":{"code":-32601,"message":"Method not found"},"id":$id}`),
			probetest.EnvelopeAt("initialize", `{"result":null,"error":{"code":-32601,"message":"Method not found"},"id":$id}`),
		}, "getblockcount"},
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.Chain(t, string(tc.kind), tc.faults...)
			url := s.URL
			if tc.over != nil {
				url = tc.over(t, s).URL
			}
			r := askHere(t, probe.Target{Kind: probe.KindAuto, URL: url})
			if r.Kind != tc.kind || r.Verdict != probe.Up || r.Facts.Height == nil || *r.Facts.Height != 1000 {
				t.Fatalf("%s %s %+v after %s", r.Kind, r.Verdict, r.Failure, stepLine(r.Steps))
			}
			if !slices.ContainsFunc(r.Steps, func(s probe.Step) bool { return s.Name == tc.found }) {
				t.Errorf("found without %s: %s", tc.found, stepLine(r.Steps))
			}
			if tc.over != nil && strings.Contains(stepLine(r.Steps), "initialize") {
				t.Errorf("asked for MCP over a stream: %s", stepLine(r.Steps))
			}
		})
	}
}

// A node in trouble is still one of its family.
func TestAutoChainsInTrouble(t *testing.T) {
	behind := probetest.EnvelopeAt("getHealth", `{"jsonrpc":"2.0","id":$id,"error":{"code":-32005,"message":"Node is behind","data":{"numSlotsBehind":150}}}`)
	for name, tc := range map[string]struct {
		kind  probe.Kind
		fault probetest.Fault
		class probe.Class
	}{
		"a Solana node that is behind":    {probe.KindSolana, behind, probe.ClassHeadLagging},
		"a Solana node that is unhealthy": {probe.KindSolana, probetest.EnvelopeAt("getHealth", `{"jsonrpc":"2.0","id":$id,"error":{"code":-32005,"message":"Node is unhealthy","data":{"numSlotsBehind":null}}}`), probe.ClassHeadLagging},
		"a Bitcoin node that warms up":    {probe.KindBitcoin, probetest.RPCErrorAt("getblockcount", 500, -28, "Loading block index..."), probe.ClassStarting},
		"a Stellar server that warms up":  {probe.KindStellarRPC, probetest.RPCErrorAt("getHealth", 200, -32603, "data stores are not initialized"), probe.ClassStarting},
		"an EVM node over its quota":      {probe.KindEVM, probetest.RPCErrorAt("eth_blockNumber", 200, -32005, "no"), probe.ClassRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			r := askHere(t, probe.Target{Kind: probe.KindAuto, URL: probetest.Chain(t, string(tc.kind), tc.fault).URL})
			if r.Failure == nil || r.Failure.Class != tc.class {
				t.Errorf("%s %s %+v after %s", r.Kind, r.Verdict, r.Failure, stepLine(r.Steps))
			}
		})
	}
}

// What answers anything to everything is no chain node.
func TestAutoIsStrict(t *testing.T) {
	for _, result := range []string{`true`, `"ok"`, `{}`, `[]`, `7`, `"7"`, `null`, `{"status":"ok"}`} {
		r := askHere(t, probe.Target{Kind: probe.KindAuto, URL: rpcServer(t, `{"jsonrpc":"2.0","id":$id,"result":`+result+`}`)})
		if slices.Contains(probe.Families(), r.Kind) || r.Verdict == probe.Up {
			t.Errorf("%s to everything: %s %s %+v", result, r.Kind, r.Verdict, r.Failure)
		}
	}
}
