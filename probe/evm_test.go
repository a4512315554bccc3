package probe_test

import (
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// evmSteps are those of a node that knows heights and its chain, and nothing more.
const evmSteps = "eth_blockNumber eth_chainId eth_getBlockByNumber eth_syncing"

func TestEVM(t *testing.T) {
	down := probe.Down
	assertion := probe.ClassAssertionFailed
	for name, tc := range map[string]struct {
		fault  probetest.Fault
		height uint64
		want   want
	}{
		"healthy":     {nil, 0x13df1ab, want{verdict: probe.Up, kind: probe.KindEVM, steps: evmSteps}},
		"height zero": {probetest.ResultAt("eth_blockNumber", `"0x0"`), 0, want{verdict: probe.Up, steps: evmSteps}},
		"no height": {probetest.ResultAt("eth_blockNumber", `null`), 0,
			want{verdict: down, step: "eth_blockNumber", class: assertion, message: "null", steps: "eth_blockNumber!assertion_failed"}},
		"a number": {probetest.ResultAt("eth_blockNumber", `7`), 0, want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"a leading zero": {probetest.ResultAt("eth_blockNumber", `"0x07"`), 0,
			want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"no prefix": {probetest.ResultAt("eth_blockNumber", `"7"`), 0, want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"no digits": {probetest.ResultAt("eth_blockNumber", `"0x"`), 0, want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"65 bits": {probetest.ResultAt("eth_blockNumber", `"0x10000000000000000"`), 0,
			want{verdict: down, step: "eth_blockNumber", class: assertion, steps: "eth_blockNumber!assertion_failed"}},
		"an object for a chain": {probetest.ResultAt("eth_chainId", `{}`), 0,
			want{verdict: down, step: "eth_chainId", class: assertion, steps: "eth_blockNumber eth_chainId!assertion_failed"}},
		"quota in words": {probetest.RPCErrorAt("eth_blockNumber", 200, -32005, "daily request count exceeded, request rate limited"), 0,
			want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassRateLimited, code: -32005, steps: "eth_blockNumber!rate_limited"}},
		"an error": {probetest.RPCErrorAt("eth_blockNumber", 500, -32000, "header not found"), 0,
			want{verdict: down, step: "eth_blockNumber", class: probe.ClassRPCError, code: -32000, message: "header not found", steps: "eth_blockNumber!rpc_error"}},
		"an old envelope": {probetest.EnvelopeAt("eth_chainId", `{"id":$id,"result":"0x1","error":null}`), 0,
			want{verdict: probe.Up, steps: evmSteps, warnings: []string{"eth_chainId invalid_envelope", "eth_chainId invalid_envelope"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.EVM(t)
			s.SetHeight(tc.height)
			if tc.fault != nil {
				s.SetFaults(tc.fault)
			}
			r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL})
			check(t, r, tc.want)
			if tc.height != 0 && (r.Facts.Height == nil || *r.Facts.Height != tc.height || r.Facts.ChainID == "") {
				t.Errorf("facts %+v", r.Facts)
			}
		})
	}
}

func TestBigChainID(t *testing.T) {
	s := probetest.EVM(t, probetest.ResultAt("eth_chainId", `"0xc72dd9d5e883ec72dd9d5e883e"`))
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	if r.Facts.ChainID != "15780594512836631659283444828222" || r.Verdict != probe.Up {
		t.Errorf("chain id %s, %+v", r.Facts.ChainID, r.Failure)
	}
}
