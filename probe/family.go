package probe

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The families of chains. What is known of each stands in presets, one file per family.
const (
	KindEVM        Kind = "evm"          // Ethereum and what speaks like it
	KindBitcoin    Kind = "bitcoin"      // Bitcoin Core and its relatives: Litecoin, Dogecoin, …
	KindSolana     Kind = "solana"       //
	KindCometBFT   Kind = "cometbft"     // Cosmos chains
	KindSubstrate  Kind = "substrate"    // Polkadot, Kusama and their parachains
	KindStarknet   Kind = "starknet"     //
	KindNEAR       Kind = "near"         //
	KindSui        Kind = "sui"          // its JSON-RPC, which its makers have retired
	KindAptos      Kind = "aptos"        // REST
	KindTron       Kind = "tron"         // its subset of Ethereum's JSON-RPC
	KindXRPL       Kind = "xrpl"         // XRP Ledger
	KindStellarRPC Kind = "stellar-rpc"  //
	KindTON        Kind = "ton-v2"       // version 2 of the HTTP API, as JSON-RPC or REST, and version 3
	KindFilecoin   Kind = "filecoin"     //
	KindHedera     Kind = "hedera-relay" // Ethereum's JSON-RPC in front of Hedera
	KindCLN        Kind = "cln"          // Core Lightning, over its unix socket
	KindElectrum   Kind = "electrum"     // Electrum servers: ElectrumX, Fulcrum, electrs
	KindOgmios     Kind = "ogmios"       // Cardano
	KindBeacon     Kind = "beacon"       // Ethereum's consensus layer, REST
)

// families are the kinds of chains in the order in which they are offered.
var families = []Kind{
	KindEVM, KindBitcoin, KindSolana, KindCometBFT, KindSubstrate, KindStarknet, KindNEAR, KindSui, KindAptos, KindTron, KindXRPL,
	KindStellarRPC, KindTON, KindFilecoin, KindHedera, KindCLN, KindElectrum, KindOgmios, KindBeacon,
}

// Families lists the kinds that are families of chains, in the order in which they are offered.
func Families() []Kind { return slices.Clone(families) }

// chainProblems returns what is wrong with what a target says of chains.
func (t *Target) chainProblems() []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	options := t.Options.Chain
	if len(options.ID) > maxFact {
		add("chain.id", "is longer than %d bytes", maxFact)
	}
	if options.Lagging < 0 || options.Syncing < 0 {
		add("chain", "lagging and syncing must not be negative: leave them out for what is known of the chain")
	} else if options.Syncing > 0 && options.Lagging > options.Syncing {
		add("chain.syncing", "is how many blocks behind are too many, and must not be less than lagging")
	}
	p := presetOf(t.Kind)
	if p != nil && options.ID != "" && len(options.ID) <= maxFact && p.onlyNumericChains() && !isDecimal(p.canonical(options.ID)) {
		add("chain.id", "%q is neither the name of a chain that is known nor a number", clip(options.ID, 60))
	}
	if p != nil && p.Calls[0].Get != "" && !slices.Contains(p.Transports, t.transport()) {
		add("url", "%s speaks REST: use %s", p.Title, strings.Join(p.Transports, " or "))
	}
	if !t.Options.Subscribe {
		return problems
	}
	switch {
	case p == nil || p.Subscription == nil:
		add("subscribe", "goes with kinds of chains that have a subscription: %s", strings.Join(subscribable(), ", "))
	case t.Command == nil && t.overHTTP():
		add("subscribe", "needs a connection that carries messages both ways: ws, wss, tcp, tls or unix")
	}
	return problems
}

// onlyNumericChains reports whether the ids of the family's chains are numbers in every way of asking for them.
func (p *preset) onlyNumericChains() bool {
	for _, calls := range p.everyCalls() {
		for _, c := range calls {
			if !c.Read.Chain.isZero() && !c.Read.Chain.encoding.isNumber() {
				return false
			}
		}
	}
	return p.numericChains()
}

func isDecimal(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// transport returns what the target is reached by, as presets name it; empty for a command.
func (t *Target) transport() string {
	u, err := url.Parse(t.URL)
	if err != nil || t.Command != nil {
		return ""
	}
	return transportOf(u)
}

// subscribable lists the kinds that have a subscription.
func subscribable() []string {
	var kinds []string
	for _, kind := range families {
		if presetOf(kind).Subscription != nil {
			kinds = append(kinds, string(kind))
		}
	}
	return kinds
}
