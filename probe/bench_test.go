package probe_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// BenchmarkLegacyMCP measures a whole check of a legacy MCP server: initialize, initialized, tools/list and DELETE on a
// connection of its own. ×cpu is how much more processor time it takes than the same requests sent by net/http alone,
// which reads the answers without looking at them; the server runs in a process of its own and counts for neither.
func BenchmarkLegacyMCP(b *testing.B) {
	benchmark(b, "mcp", probe.Target{Kind: probe.KindMCP, Era: probe.EraLegacy})
}

// BenchmarkMethod measures the check of a chain node by one method, eth_blockNumber.
func BenchmarkMethod(b *testing.B) {
	benchmark(b, "evm", probe.Target{Kind: probe.KindJSONRPC, Method: "eth_blockNumber", Params: json.RawMessage("[]")})
}

// BenchmarkEVM measures a whole check of a chain node.
func BenchmarkEVM(b *testing.B) {
	benchmark(b, "evm", probe.Target{Kind: probe.KindEVM})
}

func benchmark(b *testing.B, server string, target probe.Target) {
	s := startPeer(b, server)
	target.URL = s.url
	p := prober()
	for range 2 { // the second check knows what the first has learnt, as every one does but the first
		r := p.Probe(b.Context(), target)
		if r.Verdict != probe.Up {
			b.Fatalf("%s %+v", r.Verdict, r.Failure)
		}
		target.Memory = r.Memory
	}
	conversation := s.conversation(b)
	var bare, checks usage
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		begin := used()
		replay(b, s.url, conversation)
		middle := used()
		if r := p.Probe(b.Context(), target); r.Verdict != probe.Up {
			b.Fatalf("%s %+v", r.Verdict, r.Failure)
		}
		bare = bare.plus(middle.minus(begin))
		checks = checks.plus(used().minus(middle))
		n++
	}
	b.ReportMetric(float64(checks.cpu)/float64(bare.cpu), "×cpu")
	b.ReportMetric(float64(checks.wall)/float64(bare.wall), "×time")
	b.ReportMetric(float64(checks.allocs)/float64(n), "allocs/check")
	b.ReportMetric(float64(bare.allocs)/float64(n), "allocs/bare")
	b.ReportMetric(float64(n)/checks.wall.Seconds(), "checks/s")
}

// usage is what this process has used up.
type usage struct {
	wall, cpu time.Duration
	allocs    uint64
}

var epoch = time.Now()

func used() usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)                // fails for no argument that is given here
	allocs := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}} // runtime.ReadMemStats would stop the world for it
	metrics.Read(allocs)
	return usage{time.Since(epoch), time.Duration(r.Utime.Nano() + r.Stime.Nano()), allocs[0].Value.Uint64()}
}

func (u usage) minus(v usage) usage {
	return usage{u.wall - v.wall, u.cpu - v.cpu, u.allocs - v.allocs}
}
func (u usage) plus(v usage) usage { return usage{u.wall + v.wall, u.cpu + v.cpu, u.allocs + v.allocs} }

// peerVariable tells this test program to be a server of the kind that it names, for as long as its input lasts. It
// prints its address; a line of input makes it print what was asked so far, and forget it.
const peerVariable = "ROLLCALL_TEST_PEER"

func init() {
	var s *probetest.Server
	switch os.Getenv(peerVariable) {
	case "mcp":
		s = probetest.MCP(standalone{}, probetest.LegacyOnly())
	case "evm":
		s = probetest.EVM(standalone{})
	default:
		return
	}
	fmt.Println(s.URL)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		conversation, _ := json.Marshal(s.Requests())
		fmt.Println(string(conversation))
	}
	os.Exit(0)
}

// standalone stands for a test where there is none.
type standalone struct{ testing.TB }

func (standalone) Helper()        {}
func (standalone) Cleanup(func()) {}
func (standalone) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (standalone) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// peer is a server in a process of its own.
type peer struct {
	url string
	in  io.WriteCloser
	out *bufio.Reader
}

func startPeer(b *testing.B, kind string) *peer {
	b.Helper()
	cmd := exec.Command(os.Args[0]) // a context of the benchmark would kill it before it is waited for
	cmd.Env = append(os.Environ(), peerVariable+"="+kind)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("the server ended with %v", err)
		}
	})
	p := &peer{in: in, out: bufio.NewReader(out)}
	p.url = p.line(b)
	return p
}

func (p *peer) line(b *testing.B) string {
	b.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return line[:len(line)-1]
}

// conversation returns the requests of the last connection: those of one check.
func (p *peer) conversation(b *testing.B) []probetest.Request {
	b.Helper()
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		b.Fatal(err)
	}
	var all, last []probetest.Request
	if err := json.Unmarshal([]byte(p.line(b)), &all); err != nil {
		b.Fatal(err)
	}
	for _, r := range all {
		if r.RemoteAddr == all[len(all)-1].RemoteAddr {
			last = append(last, r)
		}
	}
	return last
}

// replay sends a conversation as it was once received, on a connection of its own.
func replay(b *testing.B, url string, conversation []probetest.Request) {
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	session := ""
	for _, r := range conversation {
		req, err := http.NewRequestWithContext(b.Context(), r.HTTPMethod, url, bytes.NewReader(r.Body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header = r.Header.Clone()
		if req.Header.Get("Mcp-Session-Id") != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
}

// A thousand probes at once, half of them hanging: the others are not affected, and a probe that waits holds little
// memory beyond what net/http holds for a request that waits.
func TestAThousandProbesAtOnce(t *testing.T) {
	const half, most = 500, 64 << 10
	healthy, hanging := probetest.EVM(t), probetest.EVM(t, probetest.HangAt("eth_blockNumber"))

	bare := hold(t, half, hanging, func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hanging.URL,
			bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":"1","method":"eth_blockNumber","params":[]}`)))
		if err != nil {
			t.Error(err)
			return
		}
		transport := &http.Transport{DisableCompression: true}
		defer transport.CloseIdleConnections()
		resp, err := transport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
	}, nil)

	p := prober()
	probes := hold(t, half, hanging, func() {
		r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: hanging.URL, Timeout: time.Minute})
		if r.Verdict == probe.Up {
			t.Errorf("a hanging node is %s", r.Verdict)
		}
	}, func() {
		var asking sync.WaitGroup
		for range half {
			asking.Go(func() {
				r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: healthy.URL, Timeout: time.Minute})
				if r.Verdict != probe.Up {
					t.Errorf("a healthy node is %s beside hanging ones: %+v", r.Verdict, r.Failure)
				}
			})
		}
		asking.Wait()
	})
	if beyond := int64(probes-bare) / half; beyond > most {
		t.Errorf("a waiting probe holds %d bytes more than a bare request, at most %d are wanted", beyond, int64(most))
	} else {
		t.Logf("a waiting probe holds %d bytes more than the %d of a bare request with its server", beyond, bare/half)
	}
}

// hold starts n callers of a server that hangs, waits until all of them wait, does what is to be done beside them, and
// returns how much memory they hold; then it lets them go.
func hold(t *testing.T, n int, server *probetest.Server, call, beside func()) uint64 {
	t.Helper()
	before, asked := memory(), len(server.Requests())
	var callers sync.WaitGroup
	for range n {
		callers.Go(call)
	}
	for len(server.Requests()) < asked+n {
		if t.Failed() {
			break
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond) // for real sockets, which no bubble holds
	}
	if beside != nil {
		beside()
	}
	held := memory() - before
	server.Stop() // ends every call
	callers.Wait()
	server.Start()
	return held
}

// memory is what the heap and the stacks hold after a collection.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
