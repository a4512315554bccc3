package probetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// chainPlan is what a chain node shows besides its height.
type chainPlan struct {
	age time.Duration // of its newest block
	id  string        // in place of the usual chain id, as JSON
}

// HeadAge makes the newest block of a chain node so old; below zero it lies in the future.
func HeadAge(age time.Duration) Fault { return func(b *behaviour) { b.chain.age = age } }

// ChainID makes a node of [Chain] say another id of its chain, given as JSON.
func ChainID(id string) Fault { return func(b *behaviour) { b.chain.id = id } }

// Chain starts a node of a family of chains: "evm", "bitcoin", … It serves the family's main network, stands at height
// 1000 until [Server.SetHeight], and its newest block is a second old. [WebSocket], [Socket] and [UnixSocket] carry it
// over what else the family speaks. The steps of a GET are "GET /path"; where a family asks a method twice, the second
// time has its own name, as in "eth_getBlockByNumber finalized".
func Chain(t testing.TB, family string, faults ...Fault) *Server {
	t.Helper()
	answers, ok := chainAnswers[family]
	if !ok {
		t.Fatalf("probetest: no chain family %q", family)
	}
	path := chainPaths[family]
	if path == "" {
		path = "/"
	}
	return newServer(t, path, func(x *exchange) { x.answerChain(family, answers) }, faults)
}

// chainPaths are where the endpoints of some families lie.
var chainPaths = map[string]string{"aptos": "/v1", "ton-v2": "/api/v2/jsonRPC", "filecoin": "/rpc/v1", "tron": "/jsonrpc"}

// answerChain answers from the table of a family. Capitals in the answers stand for what changes.
func (x *exchange) answerChain(family string, answers map[string]string) {
	x.Step = x.chainStep()
	answer, known := answers[x.Step]
	if strings.HasPrefix(x.Step, "GET ") {
		if !known {
			x.document(http.StatusNotFound, `{"message":"not found"}`)
			return
		}
		x.document(http.StatusOK, x.fill(answer))
		return
	}
	switch {
	case family == "xrpl":
		x.answerRippled(answer, known)
	case family == "ton-v2" && known:
		x.document(http.StatusOK, `{"ok":true,"result":`+x.fill(answer)+`,"@extra":"1:0:x"}`)
	case family == "ton-v2":
		x.document(http.StatusNotFound, `{"ok":false,"error":"unknown method","code":404}`)
	case !x.accepted():
	case known:
		x.result(json.RawMessage(x.fill(answer)))
	default:
		x.rpcError(http.StatusOK, -32601, "Method not found", nil)
	}
}

// document answers with JSON that stands in no envelope.
func (x *exchange) document(status int, body string) { x.status, x.raw = status, []byte(body) }

// answerRippled answers in the two shapes of the XRP Ledger: without an id over HTTP, with status beside the result over
// WebSocket.
func (x *exchange) answerRippled(answer string, known bool) {
	var command struct {
		ID      json.RawMessage `json:"id"`
		Command string          `json:"command"`
	}
	_ = json.Unmarshal(x.Body, &command) // what is no JSON has no command
	switch {
	case !known && command.Command != "":
		x.document(http.StatusOK, fmt.Sprintf(`{"id":%s,"status":"error","type":"response","error":"unknownCmd","error_code":32}`, command.ID))
	case !known:
		x.document(http.StatusOK, `{"result":{"status":"error","error":"unknownCmd","error_code":32,"error_message":"Unknown method."}}`)
	case command.Command != "":
		x.document(http.StatusOK, fmt.Sprintf(`{"id":%s,"status":"success","type":"response","result":%s}`, command.ID, x.fill(answer)))
	default:
		x.document(http.StatusOK, `{"result":`+strings.TrimSuffix(x.fill(answer), "}")+`,"status":"success"}}`)
	}
}

// chainStep names a request the way a probe does.
func (x *exchange) chainStep() string {
	if x.HTTPMethod == http.MethodGet {
		return "GET " + x.r.URL.Path
	}
	var message struct{ Command string }
	if json.Unmarshal(x.Body, &message) == nil && message.Command != "" {
		return message.Command
	}
	if x.RPCMethod == "chain_getBlockHash" && string(x.Params) != "[0]" {
		return "chain_getBlockHash head"
	}
	for _, tag := range []string{"finalized", "safe", "final"} {
		if strings.Contains(string(x.Params), `"`+tag+`"`) {
			return x.RPCMethod + " " + tag
		}
	}
	return x.RPCMethod
}

// fill replaces the capitals of an answer.
func (x *exchange) fill(answer string) string {
	x.s.mu.Lock()
	height := x.s.height
	x.s.mu.Unlock()
	age := x.b.chain.age
	if age == 0 {
		age = time.Second
	}
	at := time.Now().Add(-age)
	if x.b.chain.id != "" {
		answer = replaceID(answer, x.b.chain.id)
	}
	seconds := at.Unix()
	return strings.NewReplacer(
		"«", "", "»", "",
		"HEIGHT", strconv.FormatUint(height, 10), "HEX", "0x"+strconv.FormatUint(height, 16),
		"FINAL", strconv.FormatUint(height-min(height, 10), 10), "FHEX", "0x"+strconv.FormatUint(height-min(height, 10), 16),
		"SECONDS", strconv.FormatInt(seconds, 10), "XTIME", "0x"+strconv.FormatInt(seconds, 16),
		"MICROS", strconv.FormatInt(at.UnixMicro(), 10), "RFC3339", at.UTC().Format(time.RFC3339Nano),
		"RIPPLE", strconv.FormatInt(seconds-946684800, 10),
		"HASH", fmt.Sprintf("0x%064x", height), "PARENT", fmt.Sprintf("0x%064x", height-min(height, 1)),
		"HEADER", blockHeader(height, seconds),
	).Replace(answer)
}

// replaceID puts another chain id between the marks of an answer.
func replaceID(answer, id string) string {
	before, rest, ok := strings.Cut(answer, "«")
	if !ok {
		return answer
	}
	_, after, _ := strings.Cut(rest, "»")
	return before + id + after
}

// blockHeader is a Bitcoin block header of a height, in hex.
func blockHeader(height uint64, seconds int64) string {
	return fmt.Sprintf("00000020%064x%064x%02x%02x%02x%02xffff001d%08x", height-min(height, 1), height,
		byte(seconds), byte(seconds>>8), byte(seconds>>16), byte(seconds>>24), height)
}

// evmAnswers are those of Ethereum and what speaks like it.
func evmAnswers(chain string) map[string]string {
	return map[string]string{
		"eth_blockNumber":                `"HEX"`,
		"eth_chainId":                    `«"` + chain + `"»`,
		"eth_getBlockByNumber":           `{"number":"HEX","hash":"HASH","parentHash":"PARENT","timestamp":"XTIME"}`,
		"eth_getBlockByNumber finalized": `{"number":"FHEX","timestamp":"XTIME"}`,
		"eth_getBlockByNumber safe":      `{"number":"FHEX","timestamp":"XTIME"}`,
		"eth_syncing":                    `false`,
		"eth_subscribe":                  `"0xcd0c3e8af590364c09d0fa6a1210faf5"`,
	}
}

const tonInfo = `{"@type":"blocks.masterchainInfo","last":{"workchain":-1,"seqno":HEIGHT,"root_hash":"HASH"},` +
	`"init":{"root_hash":«"F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk="»}}`

// chainAnswers are the healthy answers of every family, by step. The chain id stands between «».
var chainAnswers = map[string]map[string]string{
	"evm":          evmAnswers("0x1"),
	"tron":         evmAnswers("0x2b6653dc"),
	"hedera-relay": evmAnswers("0x127"),
	"bitcoin": {
		"getblockcount": `HEIGHT`,
		"getblockhash":  `«"000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"»`,
		"getblockchaininfo": `{"chain":"main","blocks":HEIGHT,"headers":HEIGHT,"bestblockhash":"HASH","time":SECONDS,"mediantime":1,` +
			`"initialblockdownload":false}`,
	},
	"solana": {
		"getHealth":             `"ok"`,
		"getGenesisHash":        `«"5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"»`,
		"getSlot":               `HEIGHT`,
		"getSlot finalized":     `FINAL`,
		"getMaxShredInsertSlot": `HEIGHT`,
		"slotSubscribe":         `12153704810663065403`,
	},
	"cometbft": {
		"health": `{}`,
		"status": `{"node_info":{"network":«"cosmoshub-4"»,"version":"1.0.1"},"sync_info":{"latest_block_hash":"HASH",` +
			`"latest_block_height":"HEIGHT","latest_block_time":"RFC3339","catching_up":false}}`,
		"subscribe": `{}`,
	},
	"substrate": {
		"system_health":      `{"peers":12,"isSyncing":false,"shouldHavePeers":true}`,
		"chain_getBlockHash": `«"0x91b171bb158e2d3848fa23a9f1c25182fb8e20313b2c1eb49219da7a70ce90c3"»`,
		"chain_getHeader":    `{"parentHash":"PARENT","number":"HEX"}`,

		"chain_getBlockHash head":   `"HASH"`,
		"chain_getFinalizedHead":    `"finalized"`,
		"chain_getHeader finalized": `{"parentHash":"PARENT","number":"FHEX"}`,

		"system_syncState":        `{"startingBlock":1,"currentBlock":HEIGHT,"highestBlock":HEIGHT}`,
		"chain_subscribeNewHeads": `"aBcD"`,
	},
	"starknet": {
		"starknet_blockNumber":          `HEIGHT`,
		"starknet_chainId":              `«"0x534e5f4d41494e"»`,
		"starknet_getBlockWithTxHashes": `{"block_number":HEIGHT,"block_hash":"HASH","parent_hash":"PARENT","timestamp":SECONDS}`,
		"starknet_syncing":              `false`,
		"starknet_subscribeNewHeads":    `6178305545967232212`,
	},
	"near": {
		"status": `{"version":{"version":"2.9.0"},"chain_id":«"mainnet"»,"sync_info":{"latest_block_hash":"HASH","latest_block_height":HEIGHT,` +
			`"latest_block_time":"RFC3339","syncing":false}}`,
		"block final": `{"header":{"height":FINAL}}`,
	},
	"sui": {
		"sui_getLatestCheckpointSequenceNumber": `"HEIGHT"`,
		"sui_getChainIdentifier":                `«"35834a8a"»`,
	},
	"aptos": {
		"GET /v1":           `{"chain_id":«1»,"block_height":"HEIGHT","ledger_timestamp":"MICROS"}`,
		"GET /v1/-/healthy": `{"message":"aptos-node:ok"}`,
	},
	"xrpl": {
		"server_state": `{"state":{"server_state":"full","build_version":"2.5.0","network_id":«0»,` +
			`"validated_ledger":{"seq":HEIGHT,"hash":"HASH","close_time":RIPPLE}}}`,
		"subscribe": `{}`,
	},
	"stellar-rpc": {
		"getHealth":  `{"status":"healthy","latestLedger":HEIGHT,"oldestLedger":1,"latestLedgerCloseTime":"SECONDS"}`,
		"getNetwork": `{"passphrase":«"Public Global Stellar Network ; September 2015"»}`,
	},
	"ton-v2": {
		"getMasterchainInfo":             tonInfo,
		"GET /api/v2/getMasterchainInfo": `{"ok":true,"result":` + tonInfo + `}`,
		"GET /api/v3/masterchainInfo":    `{"last":{"seqno":HEIGHT,"root_hash":"HASH","gen_utime":"SECONDS","global_id":«-239»}}`,
	},
	"filecoin": {
		"Filecoin.ChainHead":        `{"Cids":[{"/":"HASH"}],"Blocks":[{"Timestamp":SECONDS}],"Height":HEIGHT}`,
		"Filecoin.StateNetworkName": `«"mainnet"»`,
		"Filecoin.NodeStatus":       `{"SyncStatus":{"Epoch":HEIGHT,"Behind":0}}`,
	},
	"cln": {
		"getinfo": `{"version":"v25.09","network":«"bitcoin"»,"blockheight":HEIGHT}`,
	},
	"electrum": {
		"server.version":               `["Fulcrum 1.11","1.4"]`,
		"server.features":              `{"genesis_hash":«"000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"»}`,
		"blockchain.headers.subscribe": `{"height":HEIGHT,"hex":"HEADER"}`,
	},
	"ogmios": {
		"queryNetwork/blockHeight":          `HEIGHT`,
		"queryNetwork/genesisConfiguration": `{"networkMagic":«764824073»}`,
		"GET /health": `{"connectionStatus":"connected","networkSynchronization":0.99998,"network":«"mainnet"»,"version":"v6.13",` +
			`"lastTipUpdate":"RFC3339","lastKnownTip":{"slot":1,"id":"HASH","height":HEIGHT}}`,
	},
	"beacon": {
		"GET /eth/v1/node/health":              ``,
		"GET /eth/v1/node/syncing":             `{"data":{"is_syncing":false,"el_offline":false,"is_optimistic":false,"sync_distance":"0","head_slot":"HEIGHT"}}`,
		"GET /eth/v1/beacon/genesis":           `{"data":{"genesis_validators_root":«"0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95"»}}`,
		"GET /eth/v1/beacon/headers/head":      `{"data":{"root":"HASH","header":{"message":{"slot":"HEIGHT","parent_root":"PARENT"}}}}`,
		"GET /eth/v1/beacon/headers/finalized": `{"data":{"header":{"message":{"slot":"FINAL"}}}}`,
	},
}
