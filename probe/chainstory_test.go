package probe_test

import (
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// What one check leaves behind is what the next one judges by.
func TestChainRemembers(t *testing.T) {
	s := probetest.Chain(t, "evm")
	target := probe.Target{Kind: probe.KindEVM, URL: s.URL}
	first := ask(t, target)
	if first.Verdict != probe.Up || first.Memory.Head == nil || first.Memory.Finalized == nil {
		t.Fatalf("%s %+v, memory %+v", first.Verdict, first.Failure, first.Memory)
	}

	target.Memory = first.Memory
	standing := *first.Memory.Head
	standing.Since = standing.Since.Add(-3 * time.Minute)
	target.Memory.Head = &standing
	r := ask(t, target)
	if r.Failure == nil || r.Failure.Class != probe.ClassHeadStalled || !r.Memory.Head.Since.Equal(standing.Since) {
		t.Errorf("at the same height for three minutes: %+v, memory %+v", r.Failure, r.Memory.Head)
	}

	s.SetHeight(997)
	r = ask(t, target)
	if len(r.Warnings) != 1 || r.Warnings[0].Class != probe.ClassHeadRegressed || r.Memory.Head.Height != 1000 {
		t.Errorf("three blocks lower: %+v, memory %+v", r.Warnings, r.Memory.Head)
	}

	s.SetHeight(1010)
	target.Memory = first.Memory
	r = ask(t, target)
	if r.Verdict != probe.Up || r.Memory.Head.Height != 1010 || *r.Memory.Finalized != 1000 {
		t.Errorf("ten blocks higher: %+v, memory %+v", r.Failure, r.Memory)
	}

	s.Stop()
	if r = ask(t, target); r.Verdict != probe.Down || r.Memory.Head == nil || r.Memory.Head.Height != 1000 {
		t.Errorf("stopped: %s, memory %+v", r.Verdict, r.Memory.Head)
	}
}

// Without a word of what it must be, a change of chains is only remarked upon.
func TestChainChanges(t *testing.T) {
	s := probetest.Chain(t, "evm", probetest.ChainID(`"0xa"`))
	target := probe.Target{Kind: probe.KindEVM, URL: s.URL, Memory: probe.Memory{Head: &probe.Head{Chain: "1", Height: 9_000_000, Since: time.Now().Add(-time.Hour)}}}
	r := ask(t, target)
	if r.Verdict != probe.Up || len(r.Warnings) != 1 || r.Warnings[0].Class != probe.ClassWrongChain || r.Memory.Head.Chain != "10" {
		t.Errorf("%s %+v %+v, memory %+v", r.Verdict, r.Failure, r.Warnings, r.Memory.Head)
	}
	target.Options.Chain.ID = "ethereum"
	if r = ask(t, target); r.Verdict != probe.Down || r.Failure.Class != probe.ClassWrongChain || r.Memory.Head.Chain != "1" {
		t.Errorf("%s %+v, memory %+v", r.Verdict, r.Failure, r.Memory.Head)
	}
}

func TestPeersOfAChain(t *testing.T) {
	s := probetest.Chain(t, "evm")
	peer := func(name string, height uint64) probe.Head {
		return probe.Head{Endpoint: name, Chain: "1", Height: height, Asked: time.Now(), Seen: time.Now(), Since: time.Now()}
	}
	target := probe.Target{Kind: probe.KindEVM, URL: s.URL, Peers: []probe.Head{peer("alpha", 1100), peer("beta", 1100)}}
	r := ask(t, target)
	if r.Verdict != probe.Up || r.Facts.LagBlocks == nil || *r.Facts.LagBlocks != 100 || r.Memory.Over != 1 || r.Memory.Far != 1 {
		t.Errorf("at first: %s, lag %v, memory %+v", r.Verdict, r.Facts.LagBlocks, r.Memory)
	}
	target.Memory = r.Memory
	r = ask(t, target)
	if r.Verdict != probe.Down || r.Failure.Class != probe.ClassHeadBehind || r.Failure.Step != "eth_getBlockByNumber" || r.Memory.Far != 2 {
		t.Errorf("again: %s %+v, memory %+v", r.Verdict, r.Failure, r.Memory)
	}
	target.Peers = nil
	if r = ask(t, target); r.Verdict != probe.Up || r.Facts.LagBlocks != nil {
		t.Errorf("alone: %s %+v, lag %v", r.Verdict, r.Failure, r.Facts.LagBlocks)
	}
}

// A node may take its time to start, but not for ever.
func TestStartingEnds(t *testing.T) {
	s := probetest.Chain(t, "bitcoin", probetest.RPCErrorAt("getblockcount", 500, -28, "Loading block index..."))
	target := probe.Target{Kind: probe.KindBitcoin, URL: s.URL}
	r := ask(t, target)
	if r.Verdict != probe.Degraded || r.Memory.Since == nil || time.Since(*r.Memory.Since) > time.Minute {
		t.Fatalf("%s %+v, since %v", r.Verdict, r.Failure, r.Memory.Since)
	}
	long := time.Now().Add(-2 * time.Hour)
	target.Memory.Since = &long
	r = ask(t, target)
	check(t, r, want{verdict: probe.Down, step: "getblockcount", class: probe.ClassRPCError, code: -28, message: "still starting after 2 h", steps: "getblockcount!rpc_error"})
	if r.Memory.Since == nil || !r.Memory.Since.Equal(long) {
		t.Errorf("since %v, want %v", r.Memory.Since, long)
	}
	s.SetFaults()
	if r = ask(t, target); r.Verdict != probe.Up || r.Memory.Since != nil {
		t.Errorf("%s %+v, since %v", r.Verdict, r.Failure, r.Memory.Since)
	}
}

func TestQuotasOfChains(t *testing.T) {
	s := probetest.Chain(t, "evm", probetest.RateLimited("7"))
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	check(t, r, want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassRateLimited, code: 429, steps: "eth_blockNumber!rate_limited"})
	if r.RetryAfter != 7*time.Second {
		t.Errorf("retry after %v", r.RetryAfter)
	}
}

// A family's error table is its own: the same code means nothing to plain JSON-RPC.
func TestErrorTablesStayAtHome(t *testing.T) {
	s := probetest.JSONRPC(t, probetest.RPCErrorAt("m", 200, -32005, "no"))
	r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL})
	check(t, r, want{verdict: probe.Down, step: "m", class: probe.ClassRPCError, code: -32005, steps: "m!rpc_error"})
}
