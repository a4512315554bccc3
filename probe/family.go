package probe

import "slices"

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
