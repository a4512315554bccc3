package probetest

import (
	"bytes"
	"mime"
	"net/http"
	"strconv"
	"testing"
)

// JSONRPC starts a server that answers every JSON-RPC method with the result {"ok": true}, at /rpc.
func JSONRPC(t testing.TB, faults ...Fault) *Server {
	t.Helper()
	return newServer(t, "/rpc", func(x *exchange) {
		if x.accepted() {
			x.result(map[string]any{"ok": true})
		}
	}, faults)
}

// firstHeight is the height that a chain node answers first.
const firstHeight = 1000

// EVM starts a chain node with chain id 1 at the root path. It answers eth_blockNumber, one block higher each time and
// first with 1000, and eth_chainId.
func EVM(t testing.TB, faults ...Fault) *Server {
	t.Helper()
	return newServer(t, "/", (*exchange).answerEVM, faults)
}

// Frozen makes a chain node answer the same height for ever.
func Frozen(height uint64) Fault { return func(b *behaviour) { b.frozen = &height } }

func (x *exchange) answerEVM() {
	if !x.accepted() {
		return
	}
	switch x.RPCMethod {
	case "eth_blockNumber":
		x.result("0x" + strconv.FormatUint(x.nextHeight(), 16))
	case "eth_chainId":
		x.result("0x1")
	default:
		x.rpcError(http.StatusOK, -32601, "the method "+x.RPCMethod+" does not exist/is not available", nil)
	}
}

func (x *exchange) nextHeight() uint64 {
	if x.b.frozen != nil {
		return *x.b.frozen
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	height := x.s.height
	x.s.height++
	return height
}

// accepted refuses what is no JSON-RPC request over HTTP and reports whether x is one.
func (x *exchange) accepted() bool {
	switch {
	case x.HTTPMethod != http.MethodPost:
		x.header.Set("Allow", "POST")
		x.plain(http.StatusMethodNotAllowed, "text/plain", "Method Not Allowed")
	case !x.hasType("application/json"):
		x.plain(http.StatusUnsupportedMediaType, "text/plain", "invalid content type, only application/json is supported")
	case x.RPCMethod == "" && x.ID != nil && (bytes.Contains(x.Body, []byte(`"result"`)) || bytes.Contains(x.Body, []byte(`"error"`))):
		x.status = http.StatusAccepted // an answer to what the server asked
	case x.RPCMethod == "" && bytes.HasPrefix(bytes.TrimSpace(x.Body), []byte("{")):
		x.rpcError(http.StatusBadRequest, -32600, "Invalid Request", nil)
	case x.RPCMethod == "":
		x.rpcError(http.StatusBadRequest, -32700, "Parse error", nil)
	default:
		return true
	}
	return false
}

// hasType reports whether the body of the request has a media type.
func (x *exchange) hasType(want string) bool {
	got, _, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	return err == nil && got == want
}
