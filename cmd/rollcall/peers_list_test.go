package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// realPeers returns every peer, stopped. Those still running at the end of the test are stopped with it.
func realPeers(t *testing.T) []*peer {
	t.Helper()
	var peers []*peer
	for _, some := range [][]*peer{mcpPeers(t), gateways(t), chainPeers(t), otherPeers(t)} {
		peers = append(peers, some...)
	}
	for _, p := range peers {
		p.t, p.addr = t, freeAddress(t)
		for _, f := range p.faces {
			f.peer = p
		}
		t.Cleanup(p.stop)
	}
	return peers
}

// What the MCP servers say of themselves.
var (
	goSDKSeen      = sighting{Kind: "mcp", ServerName: "go-sdk-peer", Tools: 2}
	everythingSeen = sighting{Kind: "mcp", ServerName: "mcp-servers/everything", Tools: 13}
	typescriptSeen = sighting{Kind: "mcp", ServerName: "typescript-peer", Tools: 2}
)

// as returns what is seen of an MCP server in one of the protocol's eras.
func (s sighting) as(era, version string) sighting {
	s.Era, s.ProtocolVersion = era, version
	return s
}

func (s sighting) legacy() sighting { return s.as("legacy", "2025-11-25") }
func (s sighting) modern() sighting { return s.as("modern", "2026-07-28") }
func (s sighting) sse() sighting    { return s.as("sse", "2025-11-25") }

// mcpPeers are servers made with the official SDKs.
func mcpPeers(t *testing.T) []*peer {
	goSDK := func(mode string) func(string) *exec.Cmd {
		return func(addr string) *exec.Cmd {
			args := goSDKPeer(t, mode, addr)
			return exec.Command(args[0], args[1:]...)
		}
	}
	script := func(args []string) func(string) *exec.Cmd {
		return func(addr string) *exec.Cmd {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "PORT="+port(addr))
			return cmd
		}
	}
	return []*peer{
		{command: goSDK("stateful"), faces: []*face{{slug: "go-sdk-stateful", path: "/mcp", want: goSDKSeen.legacy()}}},
		{command: goSDK("stateless"), faces: []*face{{slug: "go-sdk-stateless", path: "/mcp", want: goSDKSeen.modern()}}},
		{command: goSDK("sse"), faces: []*face{{slug: "go-sdk-sse", path: "/sse", want: goSDKSeen.sse()}}},
		{command: script(everythingPeer(t, "streamableHttp")),
			faces: []*face{{slug: "everything", path: "/mcp", want: everythingSeen.legacy()}}},
		{command: script(everythingPeer(t, "sse")), faces: []*face{{slug: "everything-sse", path: "/sse", want: everythingSeen.sse()}}},
		{command: script(typescriptPeer(t, "reject")),
			faces: []*face{{slug: "typescript-modern-only", path: "/mcp", want: typescriptSeen.modern()}}},
		{command: script(typescriptPeer(t, "stateless")),
			faces: []*face{{slug: "typescript-dual-era", path: "/mcp", want: typescriptSeen.modern()}}},
	}
}

// everythingPeer returns the command of the reference server: mode is streamableHttp, sse or stdio.
func everythingPeer(t testing.TB, mode string) []string {
	return nodeJS(t, installed(t, "@modelcontextprotocol/server-everything/dist/index.js"), mode)
}

// typescriptPeer returns the command of a server made with the second TypeScript SDK: mode is reject, stateless or stdio.
func typescriptPeer(t testing.TB, mode string) []string {
	return nodeJS(t, existing(t, filepath.Join(peersDir, "mcp.mjs")), mode)
}

// gateways put a server that speaks over its standard input and output on the network. supergateway starts one for each
// request, or with HTTP+SSE a single one for all clients: a server made with the Go SDK refuses the second of those, as a
// duplicate initialize.
func gateways(t *testing.T) []*peer {
	goSDK, everything := goSDKPeer(t, "stdio", ""), everythingPeer(t, "stdio")
	supergateway := func(output string, behind []string) func(string) *exec.Cmd {
		return func(addr string) *exec.Cmd {
			args := nodeJS(t, installed(t, "supergateway/dist/index.js"), "--stdio", strings.Join(behind, " "),
				"--outputTransport", output, "--port", port(addr), "--logLevel", "none")
			return exec.Command(args[0], args[1:]...)
		}
	}
	proxy := func(addr string) *exec.Cmd {
		args := nodeJS(t, installed(t, "mcp-proxy/dist/bin/mcp-proxy.mjs"), "--host", "127.0.0.1", "--port", port(addr), "--")
		return exec.Command(args[0], append(args[1:], goSDK...)...)
	}
	return []*peer{
		{command: supergateway("streamableHttp", goSDK),
			faces: []*face{{slug: "supergateway", path: "/mcp", want: goSDKSeen.modern()}}},
		{command: supergateway("sse", everything),
			faces: []*face{{slug: "supergateway-sse", path: "/sse", want: everythingSeen.sse()}}},
		{command: proxy, faces: []*face{
			{slug: "mcp-proxy", path: "/mcp", want: goSDKSeen.modern()},
			{slug: "mcp-proxy-sse", path: "/sse", want: goSDKSeen.sse()},
		}},
	}
}

// The chain that btcd --regtest serves, and the one that CometBFT is given.
const (
	regtest   = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"
	cosmosHub = "rollcall-peer"
)

// chainPeers are nodes that make a chain of their own.
func chainPeers(t *testing.T) []*peer {
	anvil, geth, btcd := installed(t, "@foundry-rs/anvil-linux-amd64/bin/anvil"), built(t, "geth"), built(t, "btcd")
	cometbft, home := built(t, "cometbft"), newChain(t, built(t, "cometbft"))
	dir := t.TempDir()
	const user, password = "rollcall", "secret"
	basic := [2]string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
	return []*peer{
		{
			command: func(addr string) *exec.Cmd {
				return exec.Command(anvil, "--host", "127.0.0.1", "--port", port(addr), "--silent")
			},
			faces: []*face{{slug: "anvil", want: sighting{Kind: "evm", ChainID: "31337", Height: true}}},
		},
		{
			command: func(addr string) *exec.Cmd { // a block per second, kept in memory
				return exec.Command(geth, "--dev", "--dev.period", "1", "--ipcdisable", "--nodiscover", "--maxpeers", "0",
					"--port", "0", "--authrpc.port", "0", "--verbosity", "2",
					"--http", "--http.addr", "127.0.0.1", "--http.port", port(addr),
					"--ws", "--ws.addr", "127.0.0.1", "--ws.port", port(addr))
			},
			faces: []*face{
				{slug: "geth", want: sighting{Kind: "evm", ChainID: "1337", Height: true}},
				{slug: "geth-websocket", scheme: "ws", want: sighting{Kind: "evm", ChainID: "1337", Height: true}},
				{slug: "geth-new-heads", scheme: "ws", kind: "evm", subscribe: true, want: sighting{Kind: "evm", Height: true}},
			},
		},
		{
			command: func(addr string) *exec.Cmd {
				return exec.Command(btcd, "--regtest", "--nolisten", "--notls", "--rpcuser", user, "--rpcpass", password,
					"--rpclisten", addr, "--datadir", filepath.Join(dir, "btcd"), "--logdir", filepath.Join(dir, "btcd-logs"),
					"--configfile", filepath.Join(dir, "btcd.conf"))
			},
			faces: []*face{
				{slug: "btcd", kind: "bitcoin", header: basic, want: sighting{Kind: "bitcoin", ChainID: regtest, Height: true}},
			},
		},
		{
			command: func(addr string) *exec.Cmd {
				return exec.Command(cometbft, "node", "--home", home, "--proxy_app", "kvstore", "--rpc.laddr", "tcp://"+addr,
					"--p2p.laddr", "tcp://127.0.0.1:0", "--log_level", "error")
			},
			faces: []*face{
				{slug: "cometbft", want: sighting{Kind: "cometbft", ChainID: cosmosHub, Height: true}},
				{slug: "cometbft-new-blocks", scheme: "ws", path: "/websocket", kind: "cometbft", subscribe: true,
					want: sighting{Kind: "cometbft", Height: true}},
			},
		},
	}
}

// newChain returns the home directory of a CometBFT node that makes a chain alone.
func newChain(t *testing.T, cometbft string) (home string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "cometbft")
	if out, err := exec.Command(cometbft, "init", "--home", home).CombinedOutput(); err != nil {
		t.Fatalf("cometbft init: %v\n%s", err, out)
	}
	path := filepath.Join(home, "config", "genesis.json")
	genesis, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		ChainID string `json:"chain_id"`
	}
	if err := json.Unmarshal(genesis, &made); err != nil || made.ChainID == "" {
		t.Fatalf("read %s: chain %q, %v", genesis, made.ChainID, err)
	}
	genesis = bytes.ReplaceAll(genesis, []byte(made.ChainID), []byte(cosmosHub))
	if err := os.WriteFile(path, genesis, 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// otherPeers speak other protocols over JSON-RPC, or JSON-RPC alone.
func otherPeers(t *testing.T) []*peer {
	gopls, agent := built(t, "gopls"), built(t, "a2a")
	dir := t.TempDir()
	return []*peer{
		{
			command: func(addr string) *exec.Cmd { return exec.Command(agent, addr) },
			faces: []*face{{slug: "a2a-go",
				want: sighting{Kind: "a2a", ServerName: "go-agent-peer", ProtocolVersion: "1.0"}}},
		},
		{
			command: func(addr string) *exec.Cmd {
				args := nodeJS(t, existing(t, filepath.Join(peersDir, "agent.mjs")))
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Env = append(os.Environ(), "PORT="+port(addr))
				return cmd
			},
			faces: []*face{{slug: "a2a-js", kind: "a2a",
				want: sighting{Kind: "a2a", ServerName: "js-agent-peer", ProtocolVersion: "1.0"}}},
		},
		{
			command: func(addr string) *exec.Cmd {
				cmd := exec.Command(gopls, "-listen="+addr)
				cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+dir)
				return cmd
			},
			faces: []*face{{slug: "gopls", scheme: "tcp", kind: "lsp", want: sighting{Kind: "lsp", ServerName: "gopls"}}},
		},
		{
			command: func(addr string) *exec.Cmd {
				return exec.Command("aria2c", "--no-conf", "--enable-rpc", "--rpc-listen-port", port(addr), "--dir", dir,
					"--enable-dht=false", "--quiet")
			},
			faces: []*face{
				{slug: "aria2", path: "/jsonrpc", method: "aria2.getVersion", want: sighting{Kind: "jsonrpc"}},
				{slug: "aria2-websocket", scheme: "ws", path: "/jsonrpc", method: "aria2.getVersion", want: sighting{Kind: "jsonrpc"}},
			},
		},
	}
}
