package probe_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
)

// languageServer speaks LSP over in and out until it is told to exit, or its input ends. What it does otherwise than a
// good server does is in faults, separated by commas.
func languageServer(in io.Reader, out io.Writer, faults string) {
	behaves := func(fault string) bool { return strings.Contains(","+faults+",", ","+fault+",") }
	reader := bufio.NewReader(in)
	send := func(message string) {
		fmt.Fprintf(out, "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length: %d\r\n\r\n%s", len(message), message)
	}
	for {
		header, err := textproto.NewReader(reader).ReadMIMEHeader()
		if err != nil {
			return
		}
		length, _ := strconv.Atoi(header.Get("Content-Length"))
		body := make([]byte, length)
		if _, err := io.ReadFull(reader, body); err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
		}
		_ = json.Unmarshal(body, &m) // the probe is trusted to write JSON
		answer := func(result string) { send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)) }
		switch {
		case m.Method == "initialize" && behaves("silent"):
		case m.Method == "initialize" && behaves("shared"):
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"already initialized"}}`, m.ID))
		case m.Method == "initialize" && behaves("no capabilities"):
			answer(`{"protocolVersion":"2025-11-25"}`)
		case m.Method == "initialize":
			send(`{"jsonrpc":"2.0","method":"window/logMessage","params":{"type":3,"message":"starting"}}`)
			send(`{"jsonrpc":"2.0","id":1,"method":"workspace/configuration","params":{"items":[{},{}]}}`)
			send(`{"jsonrpc":"2.0","id":"r","method":"client/registerCapability","params":{}}`)
			answer(`{"capabilities":{"hoverProvider":true},"serverInfo":{"name":"wordls","version":"{\"GoVersion\":\"go1.26\",\"Main\":{\"Path\":\"example.com/wordls\",\"Version\":\"0.3\"}}"}}`)
		case string(m.ID) == "1" && string(m.Result) != "[null,null]":
			send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"window/showMessage","params":{"message":"bad settings %s"}}`, body))
			return
		case m.Method == "shutdown" && behaves("no shutdown"):
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"cannot save"}}`, m.ID))
		case m.Method == "shutdown":
			answer("null")
		case m.Method == "exit":
			return
		}
	}
}

func init() {
	if faults, ok := strings.CutPrefix(os.Getenv(peerVariable), "lsp:"); ok {
		languageServer(os.Stdin, os.Stdout, faults)
		os.Exit(0)
	}
}

func TestLanguageServers(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  string
		process bool
		exit    bool
		want    want
	}{
		{name: "behind a socket, one is left as it was found", want: want{verdict: probe.Up, steps: "initialize initialized"}},
		{name: "behind a socket, one may be told to exit", exit: true, want: want{verdict: probe.Up, steps: "initialize initialized shutdown exit"}},
		{name: "a process of ours is told to exit", process: true, want: want{verdict: probe.Up, steps: "initialize initialized shutdown exit"}},
		{name: "one that is shared has shaken hands before", faults: "shared",
			want: want{verdict: probe.Up, steps: "initialize", warnings: []string{"initialize handshake_invalid"}}},
		{name: "a process of ours cannot have", faults: "shared", process: true,
			want: want{verdict: probe.Down, step: "initialize", class: probe.ClassRPCError, code: -32600, steps: "initialize!rpc_error"}},
		{name: "a server of something else", faults: "no capabilities",
			want: want{verdict: probe.Degraded, step: "initialize", class: probe.ClassHandshakeInvalid, message: "not a language server", steps: "initialize!handshake_invalid"}},
		{name: "one that cannot shut down", faults: "no shutdown", process: true,
			want: want{verdict: probe.Down, step: "shutdown", class: probe.ClassRPCError, code: -32603, steps: "initialize initialized shutdown!rpc_error"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target := probe.Target{Kind: probe.KindLSP, Options: probe.Options{LSP: probe.LSPOptions{AllowExit: c.exit}}}
			if c.process {
				target.Command = &probe.Command{Args: []string{os.Args[0]}, Env: []probe.Header{
					{Name: peerVariable, Value: "lsp:" + c.faults},
					{Name: "GORACE", Value: "atexit_sleep_ms=0"}, // else a program with the race detector takes a second to end
				}}
			} else {
				target.URL = serveLines(t, func(conn net.Conn) { languageServer(conn, conn, c.faults) })
			}
			r := localProber().Probe(t.Context(), target)
			check(t, r, c.want)
			if c.want.verdict == probe.Up && c.faults == "" && (r.Facts.ServerName != "wordls" || r.Facts.ServerVersion != "0.3") {
				t.Errorf("facts %+v", r.Facts)
			}
		})
	}
}

// serveLines serves every connection to a port of loopback and returns its URL.
func serveLines(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	return "tcp://" + l.Addr().String()
}

// localProber may also start processes.
func localProber() *probe.Prober {
	p := prober()
	p.Local = true
	return p
}
