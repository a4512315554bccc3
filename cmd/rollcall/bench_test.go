package main_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	rollcall "github.com/rollcallhq/rollcall/cmd/rollcall"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// What the benchmarks of the whole chain ask for. A metric has its goal beside it, where there is one, by the same name
// with -goal behind it. Everything shares this machine: the service, the target in its process, and Postgres with the
// settings that it comes with.
const (
	// chainWindow is how long checks are counted.
	chainWindow = 8 * time.Second
	// chainLoop is how long the loop runs that the chain is compared with.
	chainLoop = 4 * time.Second
	// chainConcurrency is how many probes run at once, and how many conversations of the loop.
	chainConcurrency = 200
)

// BenchmarkWholeChain measures what the service makes of a schedule that asks for more than can be had: every endpoint
// each second. Checks are counted in the database. cpu-ms/check is the processor time of the service and of all of Postgres
// for one of them, rss-MB what the service holds at the end. x-loop compares with as many conversations of the same
// requests at once by net/http alone (see target.loop), right after, with the same target. others-%cpu is how much of the
// machine somebody else had meanwhile: figures are worth something when it is about nothing. CHAINPROFILE=file
// keeps a profile of the processor in that time alone, without the first checks and the loop, and file.heap one of the
// memory at its end: for one benchmark at a time.
func BenchmarkWholeChain(b *testing.B) {
	for _, c := range []struct {
		name, kind, protocol string
		endpoints            int // more than can be checked in a second
		checks, cpu          float64
	}{
		{"eth", "jsonrpc", "eth", 16_000, 6700, 0},
		{"evm", "evm", "eth", 2000, 0, 0},
		{"mcp", "mcp", "mcp", 6000, 2300, 0.5},
	} {
		b.Run(c.name+"/postgres", func(b *testing.B) {
			postgres := ownPostgres(b)
			benchmarkChain(b, c.kind, c.protocol, c.endpoints, "pgx", postgres.URL(), goals{c.checks, 0.4, c.cpu})
		})
		b.Run(c.name+"/sqlite", func(b *testing.B) {
			benchmarkChain(b, c.kind, c.protocol, c.endpoints, "sqlite", storetest.SQLite(b), goals{})
		})
	}
}

// ownPostgres starts a Postgres server with the settings that it comes with where they cost something.
func ownPostgres(t testing.TB) *storetest.Server {
	t.Helper()
	return storetest.PostgresServer(t, "fsync=on", "full_page_writes=on", "shared_buffers=128MB")
}

// goals are what a benchmark should reach; zero means that nothing is asked for.
type goals struct{ checks, loop, cpu float64 }

func benchmarkChain(b *testing.B, kind, protocol string, endpoints int, driver, database string, want goals) {
	target := startTarget(b, 0)
	register(b, database, endpoints, func(n int) store.Endpoint {
		e := store.NewEndpoint()
		e.Kind, e.URL = probe.Kind(kind), target.url(protocol, n)
		e.Schedule, e.Timeout = "@every 1s", time.Second
		if kind == "jsonrpc" {
			e.Request = store.Request{Method: "eth_blockNumber", Params: json.RawMessage("[]")}
		}
		return e
	})
	s := startService(b, "--database", database, "--concurrency", strconv.Itoa(chainConcurrency))
	awaitWithin(b, 5*time.Minute, "every endpoint to be checked about three times", func() bool { return target.count(b) > 3*endpoints })
	db := openSQL(b, driver, database)
	var checks int
	var took, cpu, ours, foreign time.Duration
	profiled := profile(b)
	for b.Loop() {
		began, before, used, own := time.Now(), countChecks(b, db), processorTime(b, db), ownProcessorTime()
		others := machineTime(b) - used - target.processorTime(b)
		time.Sleep(chainWindow) // real sockets, which no bubble holds
		took += time.Since(began)
		checks += countChecks(b, db) - before
		now := processorTime(b, db)
		cpu += now - used
		ours += ownProcessorTime() - own
		foreign += machineTime(b) - now - target.processorTime(b) - others
	}
	resident := residentMB(b, os.Getpid())
	profiled()
	s.wantUp()
	s.stop()
	loop, loopCPU := target.loop(b, protocol, endpoints, chainConcurrency, target.conversation(b), chainLoop)

	perSecond := float64(checks) / took.Seconds()
	report(b, "checks/s", perSecond, want.checks)
	report(b, "x-loop", perSecond/loop, want.loop)
	report(b, "loop/s", loop, 0)
	report(b, "loop-cpu-ms", milliseconds(loopCPU), 0)
	report(b, "cpu-ms/check", milliseconds(cpu)/float64(checks), want.cpu)
	report(b, "own-cpu-ms/check", milliseconds(ours)/float64(checks), 0)
	report(b, "rss-MB", resident, 0)
	report(b, "others-%cpu", 100*float64(foreign)/float64(took)/float64(runtime.NumCPU()), 0)
	b.ReportMetric(0, "ns/op") // an operation is a window
}

// profile begins the profile that CHAINPROFILE asks for and returns what ends it.
func profile(b *testing.B) (end func()) {
	b.Helper()
	path := os.Getenv("CHAINPROFILE")
	if path == "" {
		return func() {}
	}
	f, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
		heap, err := os.Create(path + ".heap")
		if err != nil {
			b.Fatal(err)
		}
		defer heap.Close()
		runtime.GC() // the profile is as of the latest collection
		if err := pprof.Lookup("heap").WriteTo(heap, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func report(b *testing.B, unit string, value, goal float64) {
	b.ReportMetric(value, unit)
	if goal != 0 {
		b.ReportMetric(goal, unit+"-goal")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// BenchmarkHanging measures how many of the wanted checks are made when 200 of 1,000 endpoints never answer and the others
// take 100 ms: %wanted of all. How late checks begin counts the endpoints that answer.
func BenchmarkHanging(b *testing.B) {
	benchmarkSchedule(b, 1000, 200, 30*time.Second, 0)
}

// BenchmarkTenThousand measures 10,000 endpoints every minute, all of which answer after 100 ms.
func BenchmarkTenThousand(b *testing.B) {
	benchmarkSchedule(b, 10_000, 0, time.Minute, 150)
}

// benchmarkSchedule measures what the real binary makes of a schedule that it can keep: %wanted, and deviation-ms from the
// schedule at the target, over a minute or two periods, and what it holds in memory at the end. Every other endpoint is an
// MCP server; the first of them hang.
func benchmarkSchedule(b *testing.B, endpoints, hanging int, period time.Duration, goalMB float64) {
	target := startTarget(b, 100*time.Millisecond)
	postgres := ownPostgres(b)
	all := register(b, postgres.URL(), endpoints, func(n int) store.Endpoint {
		e := store.NewEndpoint()
		e.Schedule, e.Timeout = "@every "+period.String(), 10*time.Second
		switch {
		case n < hanging:
			e.URL = target.url("hang", n)
		case n%2 == 0:
			e.Kind, e.URL = probe.KindMCP, target.url("mcp", n)
			return e
		default:
			e.URL = target.url("eth", n)
		}
		e.Kind, e.Request = probe.KindJSONRPC, store.Request{Method: "eth_blockNumber", Params: json.RawMessage("[]")}
		return e
	})
	answering := maps.Clone(all)
	for n := range hanging {
		delete(answering, n)
	}
	s := serveInstance(b, serviceEnvironment(b), "--database", postgres.URL(), "--allow-private", "127.0.0.0/8")
	time.Sleep(period + 15*time.Second) // in which the first checks and their confirmations are made
	var whole, good punctuality
	for b.Loop() {
		from := time.Now()
		time.Sleep(max(time.Minute, 2*period))
		to := time.Now().Add(-2 * time.Second) // what is due by then has begun
		arrivals := target.since(b, from.Add(-time.Second))
		whole = whole.plus(punctualityOf(b, all, arrivals, from, to))
		good = good.plus(punctualityOf(b, answering, arrivals, from, to))
	}
	report(b, "rss-MB", residentMB(b, s.cmd.Process.Pid), goalMB)
	s.stop()
	report(b, "%wanted", 100*float64(whole.wanted-whole.missed)/float64(whole.wanted), 100)
	report(b, "doubled", float64(good.doubled), 0) // one that hangs is confirmed between its slots
	report(b, "deviation-ms-p50", milliseconds(good.percentile(50)), 0)
	report(b, "deviation-ms-p99", milliseconds(good.percentile(99)), 10)
	b.ReportMetric(0, "ns/op")
}

// register keeps n endpoints in a database, straight, and returns them by their numbers.
func register(t testing.TB, database string, n int, endpoint func(n int) store.Endpoint) map[int]store.Endpoint {
	t.Helper()
	db, err := rollcall.OpenStore(t.Context(), []string{testKey}, database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const writers = 8 // a commit waits for the disk
	kept := make([]store.Endpoint, n)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < n && !t.Failed(); i += writers {
				e := endpoint(i)
				e.Name = fmt.Sprintf("Endpoint %d", i)
				e.Slug = fmt.Sprintf("endpoint-%d", i)
				made, err := db.CreateEndpoint(t.Context(), e)
				if err != nil {
					t.Error(err)
				}
				kept[i] = made
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return maps.Collect(slices.All(kept))
}

// chainService is `rollcall serve` in this process.
type chainService struct {
	t     testing.TB
	url   string
	log   *lockedBuffer
	stop  func() // ends it well
	ended chan int
}

func startService(t testing.TB, args ...string) *chainService {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	addr, env := freeAddress(t), serviceEnvironment(t)
	s := &chainService{t: t, url: "http://" + addr, log: &lockedBuffer{}, ended: make(chan int, 1)}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if code := <-s.ended; code != 0 {
			t.Errorf("the service ended with exit code %d:\n%s", code, s.log)
		}
	})
	t.Cleanup(s.stop)
	args = append([]string{"serve", "--listen", addr, "--allow-private", "127.0.0.0/8"}, args...)
	go func() { s.ended <- rollcall.Run(ctx, env, s.log, args...) }()
	return s
}

// serviceEnvironment is what a service on Postgres is given besides its flags: a key, and a place for what waits.
func serviceEnvironment(t testing.TB) []string {
	return []string{testKey, "ROLLCALL_SPOOL=" + filepath.Join(t.TempDir(), "rollcall.spool")}
}

// wantUp fails the benchmark when more than one in a hundred probes saw anything but a good answer.
func (s *chainService) wantUp() {
	s.t.Helper()
	resp, err := http.Get(s.url + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var all, up float64
	var others []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, text, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(series, "rollcall_probes_total{") {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		all += n
		if strings.Contains(series, `verdict="up"`) {
			up += n
		} else {
			others = append(others, lines.Text())
		}
	}
	if all == 0 || up < 0.99*all {
		s.t.Errorf("%v of %v probes were good: %q", up, all, others)
	}
}

func openSQL(t testing.TB, driver, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func countChecks(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM checks`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// processorTime is what this process has used, and all of Postgres where that is the database.
func processorTime(t testing.TB, db *sql.DB) time.Duration {
	t.Helper()
	own := ownProcessorTime()
	var pid string
	err := db.QueryRowContext(t.Context(), `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`).Scan(&pid)
	if err != nil {
		return own // SQLite works in our process
	}
	return own + familyTime(t, pid)
}

func ownProcessorTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // fails for no argument that is given here
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// tick is what the kernel counts processor time in: USER_HZ, the same on all architectures of Linux.
const tick = time.Second / 100

// familyTime is what a process, its children, and those of them that have ended have used: all of Postgres, whose
// processes are children of its first.
func familyTime(t testing.TB, pid string) time.Duration {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var used time.Duration
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name of the program, in brackets, may hold anything; behind it the fields go on with the third (proc(5)).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		switch pid {
		case filepath.Base(filepath.Dir(path)):
			used += ticks(t, fields[11:15]) // utime, stime, cutime and cstime
		case fields[1]:
			used += ticks(t, fields[11:13])
		}
	}
	return used
}

// machineTime is what all processes have used since the machine was started.
func machineTime(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	return ticks(t, strings.Fields(string(text))[1:4]) // user, nice and system
}

func ticks(t testing.TB, fields []string) (sum time.Duration) {
	t.Helper()
	for _, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// residentMB is how many megabytes a process holds in memory.
func residentMB(t testing.TB, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("process %d has ended", pid)
	}
	kB, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB * 1024 / 1e6
}
