package probe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestSubscriptions(t *testing.T) {
	const evmEvent = `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0xcd0c3e8af590364c09d0fa6a1210faf5","result":{"number":"0x3e9"}}}`
	type carry = func(testing.TB, *probetest.Server, ...probetest.CarrierFault) *probetest.Carrier
	for name, tc := range map[string]struct {
		kind   probe.Kind
		over   carry
		step   string
		events []string
		fault  probetest.Fault
		chain  string
		within time.Duration
		want   want
	}{
		"evm": {kind: probe.KindEVM, step: "eth_subscribe", events: []string{evmEvent},
			want: want{verdict: probe.Up, kind: probe.KindEVM, steps: "eth_subscribe event"}},
		"evm over a unix socket": {kind: probe.KindEVM, over: probetest.UnixSocket, step: "eth_subscribe", events: []string{evmEvent},
			want: want{verdict: probe.Up, steps: "eth_subscribe event"}},
		"evm: events of others are passed over": {kind: probe.KindEVM, step: "eth_subscribe",
			events: []string{`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":{"number":"0x1"}}}`, `{"jsonrpc":"2.0","method":"x"}`, evmEvent},
			want:   want{verdict: probe.Up, steps: "eth_subscribe event"}},
		"evm: silence": {kind: probe.KindEVM, step: "eth_subscribe", chain: "bsc", within: 2 * time.Second,
			want: want{verdict: probe.Down, step: "event", class: probe.ClassSubscriptionSilent, message: "more than three blocks", steps: "eth_subscribe event!subscription_silent"}},
		"evm: too little time to tell": {kind: probe.KindEVM, step: "eth_subscribe", chain: "ethereum", within: time.Second,
			want: want{verdict: probe.Down, step: "event", class: probe.ClassTimeout, message: "give it 36 s", steps: "eth_subscribe event!timeout"}},
		"evm: only calls": {kind: probe.KindEVM, fault: probetest.RPCErrorAt("eth_subscribe", 200, -32601, "notifications not supported"),
			want: want{verdict: probe.Down, step: "eth_subscribe", class: probe.ClassRPCError, code: -32601, steps: "eth_subscribe!rpc_error"}},
		"evm: an event with a bad height": {kind: probe.KindEVM, step: "eth_subscribe",
			events: []string{`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0xcd0c3e8af590364c09d0fa6a1210faf5","result":{"number":7}}}`},
			want:   want{verdict: probe.Down, step: "event", class: probe.ClassAssertionFailed, steps: "eth_subscribe event!assertion_failed"}},
		"solana": {kind: probe.KindSolana, step: "slotSubscribe", events: []string{`{"jsonrpc":"2.0","method":"slotNotification","params":{"subscription":12153704810663065403,"result":{"slot":1001}}}`},
			want: want{verdict: probe.Up, steps: "slotSubscribe event"}},
		"substrate": {kind: probe.KindSubstrate, step: "chain_subscribeNewHeads", events: []string{`{"jsonrpc":"2.0","method":"chain_newHead","params":{"subscription":"aBcD","result":{"number":"0x3e9"}}}`},
			want: want{verdict: probe.Up, steps: "chain_subscribeNewHeads event"}},
		"starknet": {kind: probe.KindStarknet, step: "starknet_subscribeNewHeads", events: []string{`{"jsonrpc":"2.0","method":"starknet_subscriptionNewHeads","params":{"subscription_id":"6178305545967232212","result":{"block_number":1001}}}`},
			want: want{verdict: probe.Up, steps: "starknet_subscribeNewHeads event"}},
		"xrpl": {kind: probe.KindXRPL, step: "", events: []string{`{"type":"ledgerClosed","ledger_index":1001}`},
			want: want{verdict: probe.Up, steps: "subscribe event"}},
		"electrum": {kind: probe.KindElectrum, over: probetest.Socket, step: "blockchain.headers.subscribe", events: []string{`{"jsonrpc":"2.0","method":"blockchain.headers.subscribe","params":[{"height":1001,"hex":"00"}]}`},
			want: want{verdict: probe.Up, steps: "server.version blockchain.headers.subscribe event"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var faults []probetest.Fault
			if tc.fault != nil {
				faults = append(faults, tc.fault)
			}
			s := probetest.Chain(t, string(tc.kind), faults...)
			over := probetest.WebSocket
			if tc.over != nil {
				over = tc.over
			}
			var pushes []probetest.CarrierFault
			if tc.events != nil {
				pushes = append(pushes, probetest.PushAfter(tc.step, 20*time.Millisecond, tc.events...))
			}
			c := over(t, s, pushes...)
			r := askHere(t, probe.Target{Kind: tc.kind, URL: c.URL, Timeout: tc.within, Options: probe.Options{Subscribe: true, Chain: probe.Chain{ID: tc.chain}}})
			check(t, r, tc.want)
			if r.Verdict == probe.Up && (r.Facts.Height == nil || *r.Facts.Height != 1001) {
				t.Errorf("height %v", r.Facts.Height)
			}
		})
	}
}

func TestChainTargets(t *testing.T) {
	subscribe := probe.Options{Subscribe: true}
	chain := func(c probe.Chain) probe.Options { return probe.Options{Chain: c} }
	for name, tc := range map[string]struct {
		target probe.Target
		want   string // the field of the one problem; empty for none
	}{
		"a subscription":                  {probe.Target{Kind: probe.KindEVM, URL: "wss://node.example", Options: subscribe}, ""},
		"a subscription over HTTP":        {probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Options: subscribe}, "subscribe"},
		"a family without a subscription": {probe.Target{Kind: probe.KindNEAR, URL: "wss://node.example", Options: subscribe}, "subscribe"},
		"no family":                       {probe.Target{Kind: probe.KindMCP, URL: "https://node.example", Options: subscribe}, "subscribe"},
		"REST":                            {probe.Target{Kind: probe.KindBeacon, URL: "https://node.example"}, ""},
		"REST over WebSocket":             {probe.Target{Kind: probe.KindBeacon, URL: "wss://node.example"}, "url"},
		"limits":                          {probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Options: chain(probe.Chain{Lagging: 5, Syncing: 10, MaxAge: -1})}, ""},
		"limits the wrong way round":      {probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Options: chain(probe.Chain{Lagging: 10, Syncing: 5})}, "chain.syncing"},
		"limits below zero":               {probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Options: chain(probe.Chain{Lagging: -1})}, "chain"},
		"a very long chain":               {probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Options: chain(probe.Chain{ID: strings.Repeat("x", 300)})}, "chain.id"},
		"a chain that nobody knows":       {probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Options: chain(probe.Chain{ID: "ethereumm"})}, "chain.id"},
		"a chain that is not numbered":    {probe.Target{Kind: probe.KindCometBFT, URL: "https://node.example", Options: chain(probe.Chain{ID: "ours-1"})}, ""},
		"a chain by its number":           {probe.Target{Kind: probe.KindEVM, URL: "https://node.example", Options: chain(probe.Chain{ID: "0xC72dd9d5e883e"})}, ""},
	} {
		var fields []string
		for _, p := range tc.target.Validate() {
			fields = append(fields, p.Field)
		}
		if got := strings.Join(fields, " "); got != tc.want {
			t.Errorf("%s: problems with %q, want %q", name, got, tc.want)
		}
	}
}

// Events of CometBFT are answers that repeat the id of the subscription.
func TestEventsThatAreAnswers(t *testing.T) {
	for message, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":"a-1","result":{"query":"tm.event='NewBlockHeader'","data":{"value":{"header":{"height":"1001"}}}}}`: true,
		`{"jsonrpc":"2.0","id":"a-2","result":{"query":"tm.event='NewBlockHeader'","data":{"value":{"header":{"height":"1001"}}}}}`: false,
		`{"jsonrpc":"2.0","id":"a-1","result":{}}`: false,
		`{"jsonrpc":"2.0","id":"a-1","error":{"code":-32000,"message":"client is not pulling messages fast enough"}}`: false,
		`7`: false,
	} {
		if got := probe.Delivers(probe.KindCometBFT, message, "a-1", `{}`); got != want {
			t.Errorf("%s is an event: %v, want %v", message, got, want)
		}
	}
}
