package probe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

const bitcoinGenesis = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"

// TestFamilies asks a healthy node of each family, over each transport that it has.
func TestFamilies(t *testing.T) {
	type facts struct {
		Chain               string
		Hash, Time, Syncing bool // told
		Finalized           uint64
		Software            string
	}
	const evm = "eth_blockNumber eth_chainId eth_getBlockByNumber"
	for name, tc := range map[string]struct {
		kind  probe.Kind
		path  string // of the URL, in place of the usual one
		over  func(testing.TB, *probetest.Server, ...probetest.CarrierFault) *probetest.Carrier
		facts facts
		steps string
	}{
		"evm": {kind: probe.KindEVM, facts: facts{"1", true, true, true, 990, ""},
			steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"},
		"evm over WebSocket": {kind: probe.KindEVM, over: probetest.WebSocket, facts: facts{"1", true, true, true, 990, ""},
			steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"},
		"evm over a unix socket": {kind: probe.KindEVM, over: probetest.UnixSocket, facts: facts{"1", true, true, true, 990, ""},
			steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"},
		"tron":         {kind: probe.KindTron, facts: facts{"728126428", true, true, true, 0, ""}, steps: evm + " eth_syncing"},
		"hedera-relay": {kind: probe.KindHedera, facts: facts{"295", true, true, false, 0, ""}, steps: evm},
		"bitcoin": {kind: probe.KindBitcoin, facts: facts{bitcoinGenesis, true, true, true, 0, ""},
			steps: "getblockcount getblockhash getblockchaininfo"},
		"solana": {kind: probe.KindSolana, facts: facts{"5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d", false, false, false, 990, ""},
			steps: "getHealth getGenesisHash getSlot getMaxShredInsertSlot getSlot finalized"},
		"cometbft":                {kind: probe.KindCometBFT, facts: facts{"cosmoshub-4", true, true, true, 0, "1.0.1"}, steps: "health status"},
		"cometbft over WebSocket": {kind: probe.KindCometBFT, over: probetest.WebSocket, facts: facts{"cosmoshub-4", true, true, true, 0, "1.0.1"}, steps: "health status"},
		"substrate": {kind: probe.KindSubstrate, facts: facts{"0x91b171bb158e2d3848fa23a9f1c25182fb8e20313b2c1eb49219da7a70ce90c3", true, false, true, 990, ""},
			steps: "system_health chain_getBlockHash chain_getHeader chain_getBlockHash head chain_getFinalizedHead chain_getHeader finalized system_syncState"},
		"starknet": {kind: probe.KindStarknet, facts: facts{"0x534e5f4d41494e", true, true, true, 0, ""},
			steps: "starknet_blockNumber starknet_chainId starknet_getBlockWithTxHashes starknet_syncing"},
		"near":        {kind: probe.KindNEAR, facts: facts{"mainnet", true, true, true, 990, "2.9.0"}, steps: "status block final"},
		"sui":         {kind: probe.KindSui, facts: facts{"35834a8a", false, false, false, 0, ""}, steps: "sui_getLatestCheckpointSequenceNumber sui_getChainIdentifier"},
		"aptos":       {kind: probe.KindAptos, facts: facts{"1", false, true, false, 0, ""}, steps: "GET /v1 GET /v1/-/healthy"},
		"aptos, host": {kind: probe.KindAptos, path: "/", facts: facts{"1", false, true, false, 0, ""}, steps: "GET /v1 GET /v1/-/healthy"},
		"xrpl":        {kind: probe.KindXRPL, facts: facts{"0", true, true, true, 0, "2.5.0"}, steps: "server_state"},
		"xrpl over WebSocket": {kind: probe.KindXRPL, over: probetest.WebSocket, facts: facts{"0", true, true, true, 0, "2.5.0"},
			steps: "server_state"},
		"stellar-rpc": {kind: probe.KindStellarRPC, facts: facts{"Public Global Stellar Network ; September 2015", false, true, false, 0, ""},
			steps: "getHealth getNetwork"},
		"ton-v2":       {kind: probe.KindTON, facts: facts{"F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk=", true, false, false, 0, ""}, steps: "getMasterchainInfo"},
		"ton-v2, REST": {kind: probe.KindTON, path: "/api/v2", facts: facts{"F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk=", true, false, false, 0, ""}, steps: "getMasterchainInfo"},
		"ton-v2, v3":   {kind: probe.KindTON, path: "/api/v3", facts: facts{"F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk=", true, true, false, 0, ""}, steps: "masterchainInfo"},
		"filecoin": {kind: probe.KindFilecoin, facts: facts{"mainnet", true, true, false, 0, ""},
			steps: "Filecoin.ChainHead Filecoin.StateNetworkName Filecoin.NodeStatus"},
		"cln":      {kind: probe.KindCLN, over: probetest.UnixSocket, facts: facts{"bitcoin", false, false, true, 0, "v25.09"}, steps: "getinfo"},
		"electrum": {kind: probe.KindElectrum, over: probetest.Socket, facts: facts{bitcoinGenesis, true, true, false, 0, "Fulcrum 1.11"}, steps: "server.version server.features blockchain.headers.subscribe"},
		"ogmios":   {kind: probe.KindOgmios, facts: facts{"mainnet", true, true, true, 0, "v6.13"}, steps: "queryNetwork/blockHeight GET /health"},
		"ogmios over WebSocket": {kind: probe.KindOgmios, over: probetest.WebSocket, facts: facts{"mainnet", false, false, false, 0, ""},
			steps: "queryNetwork/blockHeight queryNetwork/genesisConfiguration"},
		"beacon": {kind: probe.KindBeacon, facts: facts{"0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95", true, false, true, 990, ""},
			steps: "GET /eth/v1/node/health GET /eth/v1/beacon/genesis GET /eth/v1/beacon/headers/head GET /eth/v1/node/syncing GET /eth/v1/beacon/headers/finalized"},
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.Chain(t, string(tc.kind))
			url := s.URL
			if tc.path != "" {
				url = origin(s) + tc.path
			}
			if tc.over != nil {
				url = tc.over(t, s).URL
			}
			r := askHere(t, probe.Target{Kind: tc.kind, URL: url})
			check(t, r, want{verdict: probe.Up, kind: tc.kind, steps: tc.steps})
			f := r.Facts
			if f.Height == nil || *f.Height != 1000 {
				t.Fatalf("height %v", f.Height)
			}
			got := facts{f.ChainID, f.HeadHash != "", f.HeadTime != nil && time.Since(*f.HeadTime) < time.Minute, f.Syncing != nil && !*f.Syncing, 0, f.ServerVersion}
			if f.Finalized != nil {
				got.Finalized = *f.Finalized
			}
			if diff := cmp.Diff(tc.facts, got); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			head := r.Memory.Head
			if head == nil || head.Height != 1000 || head.Chain != f.ChainID || head.Hash != f.HeadHash || head.Seen.IsZero() || !head.Since.Equal(head.Seen) {
				t.Errorf("memory %+v", head)
			}
		})
	}
}

// origin is the URL of a server without a path.
func origin(s *probetest.Server) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), "/")
	return "http://" + host
}

// askHere asks with a prober that may use unix sockets.
func askHere(t *testing.T, target probe.Target) probe.Result {
	t.Helper()
	if target.Timeout == 0 {
		target.Timeout = 10 * time.Second
	}
	p := probe.Prober{Egress: probe.Egress{Any: true}, Local: true}
	return p.Probe(t.Context(), target)
}

// TestBadNodes shows what typical bad answers of each family come to.
func TestBadNodes(t *testing.T) {
	const evm = "eth_blockNumber eth_chainId eth_getBlockByNumber"
	faults := func(f ...probetest.Fault) []probetest.Fault { return f }
	rpcError := func(step string, code int, message string) []probetest.Fault {
		return faults(probetest.RPCErrorAt(step, 200, code, message))
	}
	for name, tc := range map[string]struct {
		kind    probe.Kind
		faults  []probetest.Fault
		options probe.Chain
		want    want
	}{
		"evm: another chain": {probe.KindEVM, faults(probetest.ChainID(`"0x5"`)), probe.Chain{ID: "ethereum"},
			want{verdict: probe.Down, step: "eth_chainId", class: probe.ClassWrongChain, message: "serves chain 5, not 1 (ethereum)", steps: "eth_blockNumber eth_chainId!wrong_chain"}},
		"evm: the chain by its hex id": {probe.KindEVM, nil, probe.Chain{ID: "0x1"},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: a quota by its code": {probe.KindEVM, rpcError("eth_blockNumber", -32005, "no"), probe.Chain{},
			want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassRateLimited, code: -32005, steps: "eth_blockNumber!rate_limited"}},
		"evm: a provider's own limit": {probe.KindEVM, rpcError("eth_chainId", -32022, "no"), probe.Chain{},
			want{verdict: probe.Unknown, step: "eth_chainId", class: probe.ClassRateLimited, code: -32022, steps: "eth_blockNumber eth_chainId!rate_limited"}},
		"evm: 401 by its code": {probe.KindEVM, rpcError("eth_blockNumber", 401, "no"), probe.Chain{},
			want{verdict: probe.Gated, step: "eth_blockNumber", class: probe.ClassAuthRequired, code: 401, steps: "eth_blockNumber!auth_required"}},
		"evm: no newest block": {probe.KindEVM, faults(probetest.ResultAt("eth_getBlockByNumber", `null`)), probe.Chain{},
			want{verdict: probe.Down, step: "eth_getBlockByNumber", class: probe.ClassAssertionFailed, message: "null", steps: evm + "!assertion_failed"}},
		"evm: far behind by its own account": {probe.KindEVM, faults(probetest.ResultAt("eth_syncing", `{"currentBlock":"0x3e8","highestBlock":"0x514"}`)), probe.Chain{},
			want{verdict: probe.Down, step: "eth_syncing", class: probe.ClassHeadBehind, message: "300 blocks behind", steps: evm + " eth_syncing!head_behind eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: behind by its own account": {probe.KindEVM, faults(probetest.ResultAt("eth_syncing", `{"currentBlock":"0x3e8","highestBlock":"0x3ed"}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "eth_syncing", class: probe.ClassSyncing, message: "5 blocks behind", steps: evm + " eth_syncing!syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: never says that it is done": {probe.KindEVM, faults(probetest.ResultAt("eth_syncing", `{"currentBlock":"0x3e8","highestBlock":"0x3e8"}`)), probe.Chain{},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: nothing but the first block": {probe.KindEVM, faults(probetest.ResultAt("eth_getBlockByNumber", `{"number":"0x0","hash":"0xd4","parentHash":"0x00","timestamp":"0x0"}`)), probe.Chain{},
			want{verdict: probe.Down, step: "eth_getBlockByNumber", class: probe.ClassHeadBehind, message: "still at block 0", steps: evm + "!head_behind eth_syncing eth_getBlockByNumber finalized!finality eth_getBlockByNumber safe"}},
		"evm: Hedera behind it is ill": {probe.KindEVM, rpcError("eth_blockNumber", -32020, "Mirror node upstream failure: statusCode=503"), probe.Chain{},
			want{verdict: probe.Down, step: "eth_blockNumber", class: probe.ClassRPCError, code: -32020, steps: "eth_blockNumber!rpc_error"}},
		"evm: syncing, no more": {probe.KindEVM, faults(probetest.ResultAt("eth_syncing", `true`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "eth_syncing", class: probe.ClassSyncing, steps: evm + " eth_syncing!syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: Nitro": {probe.KindEVM, faults(probetest.ResultAt("eth_syncing", `{"batchProcessed":1,"batchSeen":9,"syncTargetMsgCount":100}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "eth_syncing", class: probe.ClassSyncing, steps: evm + " eth_syncing!syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: Nitro, the later shape": {probe.KindEVM, faults(probetest.ChainID(`"0xa4b1"`), probetest.ResultAt("eth_syncing", `{"executionSyncTarget":5000,"messageOfLastBlock":1000}`)), probe.Chain{},
			want{verdict: probe.Down, step: "eth_syncing", class: probe.ClassHeadBehind, message: "4000 blocks", steps: evm + " eth_syncing!head_behind eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: a head of five minutes ago": {probe.KindEVM, faults(probetest.HeadAge(5 * time.Minute)), probe.Chain{},
			want{verdict: probe.Degraded, step: "eth_getBlockByNumber", class: probe.ClassHeadLagging, message: "old, more than 2 min", steps: evm + "!head_lagging eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: a head of two days ago": {probe.KindEVM, faults(probetest.HeadAge(41 * time.Hour)), probe.Chain{},
			want{verdict: probe.Down, step: "eth_getBlockByNumber", class: probe.ClassHeadBehind, message: "41 h old", steps: evm + "!head_behind eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: a head a few seconds beyond its limit": {probe.KindEVM, faults(probetest.HeadAge(10*time.Minute + 8*time.Second)), probe.Chain{},
			want{verdict: probe.Down, step: "eth_getBlockByNumber", class: probe.ClassHeadBehind, message: "s old, more than 10 min", steps: evm + "!head_behind eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: as old, but on demand": {probe.KindEVM, faults(probetest.HeadAge(41 * time.Hour)), probe.Chain{MaxAge: -1},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: as old, on a chain for trying things out": {probe.KindEVM, faults(probetest.HeadAge(41*time.Hour), probetest.ChainID(`"0x7a69"`)), probe.Chain{},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: as old, on a chain nobody knows": {probe.KindEVM, faults(probetest.HeadAge(41*time.Hour), probetest.ChainID(`"0x123456"`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "eth_getBlockByNumber", class: probe.ClassHeadLagging, message: "max_age below zero",
				steps: evm + "!head_lagging eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: a limit of its own": {probe.KindEVM, faults(probetest.HeadAge(30 * time.Second)), probe.Chain{MaxAge: 20 * time.Second},
			want{verdict: probe.Degraded, step: "eth_getBlockByNumber", class: probe.ClassHeadLagging, message: "old, more than 20 s", steps: evm + "!head_lagging eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: a clock that is ahead": {probe.KindEVM, faults(probetest.HeadAge(-40 * time.Second)), probe.Chain{},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe", warnings: []string{"eth_getBlockByNumber clock_skew"}}},
		"evm: more final than there is": {probe.KindEVM, faults(probetest.ResultAt("eth_getBlockByNumber finalized", `{"number":"0x500"}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "eth_getBlockByNumber finalized", class: probe.ClassFinality, steps: evm + " eth_syncing eth_getBlockByNumber finalized!finality eth_getBlockByNumber safe"}},
		"evm: no finality": {probe.KindEVM, faults(probetest.ResultAt("eth_getBlockByNumber finalized", `{"number":"0x2"}`), probetest.ResultAt("eth_getBlockByNumber safe", `null`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "eth_getBlockByNumber finalized", class: probe.ClassFinality, message: "998 behind", steps: evm + " eth_syncing eth_getBlockByNumber finalized!finality eth_getBlockByNumber safe"}},
		"evm: no tags": {probe.KindEVM, faults(probetest.RPCErrorAt("eth_getBlockByNumber finalized", 200, -39001, "Unknown block"), probetest.RPCErrorAt("eth_getBlockByNumber safe", 200, -32000, "safe block not found")), probe.Chain{},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},
		"evm: eth_syncing fails": {probe.KindEVM, rpcError("eth_syncing", -32603, "boom"), probe.Chain{},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe", warnings: []string{"eth_syncing rpc_error"}}},
		"evm: a gateway's list of methods": {probe.KindEVM, faults(probetest.StatusAt("eth_syncing", 403, "text/plain", "not allowed")), probe.Chain{},
			want{verdict: probe.Up, steps: evm + " eth_syncing eth_getBlockByNumber finalized eth_getBlockByNumber safe"}},

		"bitcoin: warming up": {probe.KindBitcoin, faults(probetest.RPCErrorAt("getblockcount", 500, -28, "Loading block index...")), probe.Chain{},
			want{verdict: probe.Degraded, step: "getblockcount", class: probe.ClassStarting, code: -28, message: "Loading", steps: "getblockcount!starting"}},
		"bitcoin: dogecoin": {probe.KindBitcoin, faults(probetest.ChainID(`"1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691"`)), probe.Chain{ID: "bitcoin"},
			want{verdict: probe.Down, step: "getblockhash", class: probe.ClassWrongChain, message: "(dogecoin)", steps: "getblockcount getblockhash!wrong_chain"}},
		"bitcoin: headers ahead of blocks": {probe.KindBitcoin, faults(probetest.ResultAt("getblockchaininfo", `{"blocks":1000,"headers":90000,"bestblockhash":"a","initialblockdownload":true}`)), probe.Chain{},
			want{verdict: probe.Down, step: "getblockchaininfo", class: probe.ClassHeadBehind, message: "89000 blocks behind", steps: "getblockcount getblockhash getblockchaininfo!head_behind"}},
		"bitcoin: a height as text": {probe.KindBitcoin, faults(probetest.ResultAt("getblockcount", `"1000"`)), probe.Chain{},
			want{verdict: probe.Down, step: "getblockcount", class: probe.ClassAssertionFailed, message: "not an integer", steps: "getblockcount!assertion_failed"}},
		"bitcoin: a height with a point": {probe.KindBitcoin, faults(probetest.ResultAt("getblockcount", `1000.0`)), probe.Chain{},
			want{verdict: probe.Down, step: "getblockcount", class: probe.ClassAssertionFailed, steps: "getblockcount!assertion_failed"}},
		"bitcoin: 65 bits": {probe.KindBitcoin, faults(probetest.ResultAt("getblockcount", `18446744073709551616`)), probe.Chain{},
			want{verdict: probe.Down, step: "getblockcount", class: probe.ClassAssertionFailed, message: "larger than 64 bits", steps: "getblockcount!assertion_failed"}},
		"bitcoin: below zero": {probe.KindBitcoin, faults(probetest.ResultAt("getblockcount", `-1`)), probe.Chain{},
			want{verdict: probe.Down, step: "getblockcount", class: probe.ClassAssertionFailed, message: "negative", steps: "getblockcount!assertion_failed"}},
		"bitcoin: an old envelope": {probe.KindBitcoin, faults(probetest.EnvelopeAt("getblockcount", `{"result":1000,"error":null,"id":$id}`)), probe.Chain{},
			want{verdict: probe.Up, steps: "getblockcount getblockhash getblockchaininfo", warnings: []string{"getblockcount invalid_envelope", "getblockcount invalid_envelope"}}},

		"solana: a little behind": {probe.KindSolana, faults(probetest.EnvelopeAt("getHealth", `{"jsonrpc":"2.0","id":$id,"error":{"code":-32005,"message":"Node is behind by 150 slots","data":{"numSlotsBehind":150}}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "getHealth", class: probe.ClassHeadLagging, code: -32005, message: "150 slots", steps: "getHealth!head_lagging getGenesisHash getSlot getMaxShredInsertSlot getSlot finalized"}},
		"solana: a plan that is used up": {probe.KindSolana, rpcError("getHealth", -32429, "credits used up"), probe.Chain{},
			want{verdict: probe.Unknown, step: "getHealth", class: probe.ClassRateLimited, code: -32429, steps: "getHealth!rate_limited"}},
		"near: what its data says": {probe.KindNEAR, faults(probetest.EnvelopeAt("status", `{"jsonrpc":"2.0","id":$id,"error":{"name":"HANDLER_ERROR","cause":{"name":"TIMEOUT_ERROR"},"code":-32000,"message":"Server error","data":"Timeout"}}`)), probe.Chain{},
			want{verdict: probe.Down, step: "status", class: probe.ClassRPCError, code: -32000, message: "Server error: Timeout", steps: "status!rpc_error"}},
		"filecoin: a token without rights": {probe.KindFilecoin, rpcError("Filecoin.ChainHead", 1, "missing permission to invoke 'ChainHead' (need 'read')"), probe.Chain{},
			want{verdict: probe.Gated, step: "Filecoin.ChainHead", class: probe.ClassAuthRequired, code: 1, steps: "Filecoin.ChainHead!auth_required"}},
		"solana: far behind": {probe.KindSolana, faults(probetest.EnvelopeAt("getHealth", `{"jsonrpc":"2.0","id":$id,"error":{"code":-32005,"message":"Node is behind by 15000 slots","data":{"numSlotsBehind":15000}}}`)), probe.Chain{},
			want{verdict: probe.Down, step: "getHealth", class: probe.ClassHeadBehind, code: -32005, steps: "getHealth!head_behind getGenesisHash getSlot getMaxShredInsertSlot getSlot finalized"}},
		"solana: behind by nobody knows how much": {probe.KindSolana, faults(probetest.EnvelopeAt("getHealth", `{"jsonrpc":"2.0","id":$id,"error":{"code":-32005,"message":"Node is unhealthy","data":{"numSlotsBehind":null}}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "getHealth", class: probe.ClassHeadLagging, code: -32005, steps: "getHealth!head_lagging getGenesisHash getSlot getMaxShredInsertSlot getSlot finalized"}},
		"solana: stale in silence": {probe.KindSolana, faults(probetest.ResultAt("getMaxShredInsertSlot", `1200`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "getMaxShredInsertSlot", class: probe.ClassHeadLagging, message: "200 slots behind", steps: "getHealth getGenesisHash getSlot getMaxShredInsertSlot!head_lagging getSlot finalized"}},
		"solana: a quota": {probe.KindSolana, rpcError("getSlot", 429, "slow down"), probe.Chain{},
			want{verdict: probe.Unknown, step: "getSlot", class: probe.ClassRateLimited, code: 429, steps: "getHealth getGenesisHash getSlot!rate_limited"}},
		"solana: not healthy": {probe.KindSolana, faults(probetest.ResultAt("getHealth", `"unknown"`)), probe.Chain{},
			want{verdict: probe.Down, step: "getHealth", class: probe.ClassAssertionFailed, message: `is "unknown", not "ok"`, steps: "getHealth!assertion_failed"}},

		"cometbft: catching up": {probe.KindCometBFT, faults(probetest.ResultAt("status", `{"node_info":{"network":"cosmoshub-4"},"sync_info":{"latest_block_height":"1000","catching_up":true}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "status", class: probe.ClassSyncing, steps: "health status!syncing"}},
		"cometbft: words in data": {probe.KindCometBFT, faults(probetest.EnvelopeAt("status", `{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"Internal error","data":"could not find results"}}`)), probe.Chain{},
			want{verdict: probe.Down, step: "status", class: probe.ClassRPCError, code: -32603, message: "Internal error: could not find results", steps: "health status!rpc_error"}},
		"cometbft: a height as a number": {probe.KindCometBFT, faults(probetest.ResultAt("status", `{"node_info":{"network":"cosmoshub-4"},"sync_info":{"latest_block_height":1000}}`)), probe.Chain{},
			want{verdict: probe.Down, step: "status", class: probe.ClassAssertionFailed, steps: "health status!assertion_failed"}},
		"substrate: catching up": {probe.KindSubstrate, faults(probetest.ResultAt("system_health", `{"peers":3,"isSyncing":true,"shouldHavePeers":true}`), probetest.RPCErrorAt("system_syncState", 200, -32601, "Method not found")), probe.Chain{},
			want{verdict: probe.Degraded, step: "system_health", class: probe.ClassSyncing, steps: "system_health!syncing chain_getBlockHash chain_getHeader chain_getBlockHash head chain_getFinalizedHead chain_getHeader finalized system_syncState"}},
		"substrate: alone": {probe.KindSubstrate, faults(probetest.ResultAt("system_health", `{"peers":0,"isSyncing":false,"shouldHavePeers":true}`)), probe.Chain{},
			want{verdict: probe.Up, steps: "system_health chain_getBlockHash chain_getHeader chain_getBlockHash head chain_getFinalizedHead chain_getHeader finalized system_syncState", warnings: []string{"system_health head_lagging"}}},
		"substrate: alone as it should be": {probe.KindSubstrate, faults(probetest.ResultAt("system_health", `{"peers":0,"isSyncing":false,"shouldHavePeers":false}`)), probe.Chain{},
			want{verdict: probe.Up, steps: "system_health chain_getBlockHash chain_getHeader chain_getBlockHash head chain_getFinalizedHead chain_getHeader finalized system_syncState"}},
		"starknet: catching up": {probe.KindStarknet, faults(probetest.ResultAt("starknet_syncing", `{"current_block_num":"0x3e8","highest_block_num":2000}`)), probe.Chain{},
			want{verdict: probe.Down, step: "starknet_syncing", class: probe.ClassHeadBehind, steps: "starknet_blockNumber starknet_chainId starknet_getBlockWithTxHashes starknet_syncing!head_behind"}},
		"starknet: no block yet": {probe.KindStarknet, rpcError("starknet_blockNumber", 32, "There are no blocks"), probe.Chain{},
			want{verdict: probe.Degraded, step: "starknet_blockNumber", class: probe.ClassStarting, code: 32, steps: "starknet_blockNumber!starting"}},
		"near: not in step": {probe.KindNEAR, faults(probetest.EnvelopeAt("status", `{"jsonrpc":"2.0","id":$id,"error":{"name":"HANDLER_ERROR","cause":{"info":{},"name":"NOT_SYNCED_YET"},"code":-32000,"message":"Server error"}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "status", class: probe.ClassStarting, code: -32000, steps: "status!starting"}},
		"sui: its JSON-RPC is gone": {probe.KindSui, rpcError("sui_getLatestCheckpointSequenceNumber", -32601, "Method not found"), probe.Chain{},
			want{verdict: probe.Down, step: "sui_getLatestCheckpointSequenceNumber", class: probe.ClassRPCError, code: -32601, steps: "sui_getLatestCheckpointSequenceNumber!rpc_error"}},
		"aptos: stale": {probe.KindAptos, faults(probetest.StatusAt("GET /v1/-/healthy", 503, "application/json", `{"message":"unhealthy"}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "GET /v1/-/healthy", class: probe.ClassHeadLagging, steps: "GET /v1 GET /v1/-/healthy!head_lagging"}},
		"aptos: nothing there": {probe.KindAptos, faults(probetest.StatusAt("GET /v1", 404, "text/plain", "no")), probe.Chain{},
			want{verdict: probe.Down, step: "GET /v1", class: probe.ClassHTTPStatus, code: 404, steps: "GET /v1!http_status"}},
		"aptos: a page": {probe.KindAptos, faults(probetest.HTMLAt("GET /v1")), probe.Chain{},
			want{verdict: probe.Down, step: "GET /v1", class: probe.ClassContentType, code: 200, steps: "GET /v1!content_type"}},
		"xrpl: an error in the result": {probe.KindXRPL, faults(probetest.StatusAt("server_state", 200, "application/json", `{"result":{"status":"error","error":"internal","error_code":73,"error_message":"Internal error."}}`)), probe.Chain{},
			want{verdict: probe.Down, step: "server_state", class: probe.ClassRPCError, code: 73, message: "internal: Internal error.", steps: "server_state!rpc_error"}},
		"xrpl: about to be cut off": {probe.KindXRPL, faults(probetest.StatusAt("server_state", 200, "application/json", `{"result":{"status":"success","warning":"load","state":{"server_state":"full","validated_ledger":{"seq":1000}}}}`)), probe.Chain{},
			want{verdict: probe.Up, steps: "server_state", warnings: []string{"server_state rate_limited"}}},
		"xrpl: too busy": {probe.KindXRPL, faults(probetest.StatusAt("server_state", 200, "application/json", `{"result":{"status":"error","error":"tooBusy","error_code":9}}`)), probe.Chain{},
			want{verdict: probe.Unknown, step: "server_state", class: probe.ClassRateLimited, code: 9, steps: "server_state!rate_limited"}},
		"xrpl: not in step": {probe.KindXRPL, faults(probetest.StatusAt("server_state", 200, "application/json", `{"result":{"status":"success","state":{"server_state":"connected"}}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "server_state", class: probe.ClassSyncing, steps: "server_state!syncing"}},
		"stellar: starting": {probe.KindStellarRPC, rpcError("getHealth", -32603, "data stores are not initialized"), probe.Chain{},
			want{verdict: probe.Degraded, step: "getHealth", class: probe.ClassStarting, code: -32603, steps: "getHealth!starting"}},
		"stellar: stale": {probe.KindStellarRPC, rpcError("getHealth", -32603, "latency (1m0s) since last known ledger closed is too high (>30s)"), probe.Chain{},
			want{verdict: probe.Degraded, step: "getHealth", class: probe.ClassHeadLagging, code: -32603, message: "latency", steps: "getHealth!head_lagging getNetwork"}},
		"ton: an error": {probe.KindTON, faults(probetest.StatusAt("getMasterchainInfo", 500, "application/json", `{"ok":false,"error":"LITE_SERVER_NOTREADY","code":500}`)), probe.Chain{},
			want{verdict: probe.Down, step: "getMasterchainInfo", class: probe.ClassRPCError, code: 500, message: "NOTREADY", steps: "getMasterchainInfo!rpc_error"}},
		"filecoin: epochs behind": {probe.KindFilecoin, faults(probetest.ResultAt("Filecoin.NodeStatus", `{"SyncStatus":{"Behind":15}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "Filecoin.NodeStatus", class: probe.ClassSyncing, message: "15 epochs", steps: "Filecoin.ChainHead Filecoin.StateNetworkName Filecoin.NodeStatus!syncing"}},
		"hedera: a quota": {probe.KindHedera, faults(probetest.RPCErrorAt("eth_blockNumber", 429, -32605, "IP Rate limit exceeded")), probe.Chain{},
			want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassRateLimited, code: 429, steps: "eth_blockNumber!rate_limited"}},
		"ogmios: without its node": {probe.KindOgmios, faults(probetest.StatusAt("GET /health", 500, "application/json", `{"connectionStatus":"disconnected","networkSynchronization":null,"network":"mainnet"}`)), probe.Chain{},
			want{verdict: probe.Down, step: "GET /health", class: probe.ClassHeadStalled, steps: "queryNetwork/blockHeight GET /health!head_stalled"}},
		"ogmios: catching up": {probe.KindOgmios, faults(probetest.StatusAt("GET /health", 202, "application/json", `{"connectionStatus":"connected","networkSynchronization":0.7,"network":"mainnet"}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "GET /health", class: probe.ClassSyncing, steps: "queryNetwork/blockHeight GET /health!syncing"}},
		"ogmios: a page for its health": {probe.KindOgmios, faults(probetest.HTMLAt("GET /health")), probe.Chain{},
			want{verdict: probe.Up, steps: "queryNetwork/blockHeight GET /health", warnings: []string{"GET /health content_type"}}},
		"ogmios: no block yet": {probe.KindOgmios, faults(probetest.ResultAt("queryNetwork/blockHeight", `"origin"`), probetest.StatusAt("GET /health", 404, "text/plain", "")), probe.Chain{},
			want{verdict: probe.Up, steps: "queryNetwork/blockHeight GET /health"}},
		"beacon: syncing": {probe.KindBeacon, faults(probetest.StatusAt("GET /eth/v1/node/health", 206, "", ""), probetest.StatusAt("GET /eth/v1/node/syncing", 200, "application/json", `{"data":{"is_syncing":true,"sync_distance":"20000"}}`)), probe.Chain{},
			want{verdict: probe.Down, step: "GET /eth/v1/node/syncing", class: probe.ClassHeadBehind, message: "20000 slots",
				steps: "GET /eth/v1/node/health GET /eth/v1/beacon/genesis GET /eth/v1/beacon/headers/head GET /eth/v1/node/syncing!head_behind GET /eth/v1/beacon/headers/finalized"}},
		"beacon: starting": {probe.KindBeacon, faults(probetest.StatusAt("GET /eth/v1/node/health", 503, "", "")), probe.Chain{},
			want{verdict: probe.Degraded, step: "GET /eth/v1/node/health", class: probe.ClassStarting, code: 503, steps: "GET /eth/v1/node/health!starting"}},
		"beacon: a head that nobody has verified": {probe.KindBeacon, faults(probetest.StatusAt("GET /eth/v1/node/syncing", 200, "application/json", `{"data":{"is_syncing":false,"is_optimistic":true,"sync_distance":"0"}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "GET /eth/v1/node/syncing", class: probe.ClassSyncing, message: "has not verified the head",
				steps: "GET /eth/v1/node/health GET /eth/v1/beacon/genesis GET /eth/v1/beacon/headers/head GET /eth/v1/node/syncing!syncing GET /eth/v1/beacon/headers/finalized"}},
		"beacon: without its execution client": {probe.KindBeacon, faults(probetest.StatusAt("GET /eth/v1/node/syncing", 200, "application/json", `{"data":{"is_syncing":false,"el_offline":true,"sync_distance":"0"}}`)), probe.Chain{},
			want{verdict: probe.Degraded, step: "GET /eth/v1/node/syncing", class: probe.ClassHeadLagging, message: "execution client",
				steps: "GET /eth/v1/node/health GET /eth/v1/beacon/genesis GET /eth/v1/beacon/headers/head GET /eth/v1/node/syncing!head_lagging GET /eth/v1/beacon/headers/finalized"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.Chain(t, string(tc.kind), tc.faults...)
			check(t, ask(t, probe.Target{Kind: tc.kind, URL: s.URL, Options: probe.Options{Chain: tc.options}}), tc.want)
		})
	}
}
