package probe_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestMain lets this binary be the process that a command starts.
func TestMain(m *testing.M) {
	probetest.RunProcess()
	m.Run()
}

// prompt makes a process end when it is to: one that was built to find data races takes a second otherwise.
var prompt = []probe.Header{{Name: "GORACE", Value: "atexit_sleep_ms=0"}}

func TestProcess(t *testing.T) {
	t.Parallel()
	up, down := probe.Up, probe.Down
	type faults = []probetest.Fault
	type process = []any
	stack := "Error: missing API key\n    at start (/srv/index.js:3:9)\n    at node:internal/main:1:1\n\nNode.js v22.1.0\n"
	for name, tc := range map[string]struct {
		faults  faults
		process process
		within  time.Duration
		want    want
	}{
		"healthy":                {nil, nil, 0, want{verdict: up}},
		"headers":                {nil, process{probetest.HeaderFraming()}, 0, want{verdict: up}},
		"byte by byte":           {nil, process{probetest.Pieces()}, 0, want{verdict: up}},
		"concatenated":           {nil, process{probetest.Glued()}, 0, want{verdict: up}},
		"slow to start":          {nil, process{probetest.StartsSlowly(300 * time.Millisecond)}, 0, want{verdict: up}},
		"talks to stderr":        {nil, process{probetest.PrintsError(strings.Repeat("listening on stdio\n", 5_000))}, 0, want{verdict: up}},
		"talks to stdout":        {nil, process{probetest.Prints("Server running on stdio\n[INFO] ready\n{\"level\":30}\n")}, 0, want{verdict: up, warnings: []string{"m stdout_pollution"}}},
		"a wall of text":         {nil, process{probetest.PrintsWall(500_000)}, 0, want{verdict: up, warnings: []string{"m stdout_pollution"}}},
		"never stops talking":    {nil, process{probetest.PrintsWall(10 << 20)}, 0, want{verdict: down, class: probe.ClassFraming, message: "that are no messages", warnings: []string{"m stdout_pollution"}}},
		"an answer over lines":   {faults{probetest.EnvelopeAt("m", "{\n \"jsonrpc\": \"2.0\",\n \"id\": $id,\n \"result\": 1\n}")}, nil, 0, want{verdict: up, warnings: []string{"m framing"}}},
		"an error":               {faults{probetest.RPCErrorAt("m", 200, -32603, "Internal error")}, nil, 0, want{verdict: down, class: probe.ClassRPCError, code: -32603}},
		"another id":             {faults{probetest.WrongIDAt("m")}, nil, 0, want{verdict: down, class: probe.ClassIDMismatch}},
		"too large":              {faults{probetest.HugeBodyAt("m", 2<<20)}, nil, 0, want{verdict: down, class: probe.ClassBodyTooLarge}},
		"never answers":          {faults{probetest.HangAt("m")}, nil, 500 * time.Millisecond, want{verdict: down, class: probe.ClassTimeout, message: "no first byte after"}},
		"never answers, says":    {faults{probetest.HangAt("m")}, process{probetest.PrintsError("waiting for the database\n")}, time.Second, want{verdict: down, class: probe.ClassTimeout, message: "no answer after 1 s; on its standard error: waiting for the database"}},
		"exits at once":          {nil, process{probetest.PrintsError(stack), probetest.ExitsAfter(0, 1)}, 0, want{verdict: down, class: probe.ClassExitEarly, code: 1, message: "exit code 1: Error: missing API key Node.js v22.1.0"}},
		"exits in place of":      {nil, process{probetest.ExitsAfter(1, 3)}, 0, want{verdict: down, class: probe.ClassExitEarly, code: 3, message: "exit code 3"}},
		"exits well":             {nil, process{probetest.ExitsAfter(1, 0)}, 0, want{verdict: down, class: probe.ClassExitEarly, message: "exit code 0"}},
		"exits amid its answer":  {faults{probetest.HalfBodyAt("m")}, nil, 0, want{verdict: down, class: probe.ClassExitEarly, message: "exit code 0"}},
		"killed":                 {nil, process{probetest.KilledAfter(1)}, 0, want{verdict: down, class: probe.ClassExitEarly, message: "killed by signal: killed"}},
		"outlives its input":     {nil, process{probetest.OutlivesInput()}, 0, want{verdict: up, warnings: []string{"close no_shutdown"}}},
		"cannot be ended":        {nil, process{probetest.Stubborn()}, 0, want{verdict: up, warnings: []string{"close no_shutdown"}}},
		"leaves a child":         {nil, process{probetest.LeavesChild()}, 0, want{verdict: up}},
		"exits, leaving a child": {nil, process{probetest.LeavesChild(), probetest.ExitsAfter(1, 4)}, 0, want{verdict: down, class: probe.ClassExitEarly, code: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := probetest.Process(t, probetest.JSONRPC(t, tc.faults...), tc.process...)
			target := probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &probe.Command{Args: peer.Args, Env: prompt}, Timeout: tc.within}
			if peer.HasHeaders() {
				target.Options.Framing = probe.FramingHeader
			}
			tc.want.steps = "m"
			if tc.want.class != "" {
				tc.want.step, tc.want.steps = "m", "m!"+string(tc.want.class)
			}
			p := local()
			p.Limits.ResponseBytes = 1 << 20
			check(t, p.Probe(t.Context(), target), tc.want)
			gone(t, peer.PIDs())
		})
	}
}

// gone fails the test unless the processes have ended, and were reaped where they were ours to reap.
func gone(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) == 0 {
		t.Error("no process was started")
	}
	for _, pid := range pids {
		deadline := time.Now().Add(5 * time.Second)
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// alive reports whether a process runs. One that has ended and was not reaped counts only when we are its parent.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	var state string
	var parent int
	_, _ = fmt.Sscanf(rest, "%s %d", &state, &parent)
	return state != "Z" || parent == os.Getpid()
}

func TestProcessesLeaveNothingBehind(t *testing.T) {
	s := probetest.JSONRPC(t)
	peers := []*probetest.Command{
		probetest.Process(t, s), probetest.Process(t, s, probetest.LeavesChild()), probetest.Process(t, s, probetest.ExitsAfter(1, 1)),
		probetest.Process(t, s, probetest.Prints("hello\n")), probetest.Process(t, s, probetest.LeavesChild(), probetest.ExitsAfter(0, 1)),
	}
	before := runtime.NumGoroutine()
	var running sync.WaitGroup
	limit := make(chan struct{}, 4)
	for i := range 50 {
		running.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &probe.Command{Args: peers[i%len(peers)].Args, Env: prompt}})
		})
	}
	running.Wait()
	started := 0
	for _, peer := range peers {
		started += len(peer.PIDs())
		gone(t, peer.PIDs())
		peer.Stop()
	}
	if started < 50 {
		t.Errorf("%d processes were started", started)
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

func TestProcessIsCancelled(t *testing.T) {
	t.Parallel()
	backend := probetest.JSONRPC(t, probetest.HangAt("m"))
	peer := probetest.Process(t, backend)
	ctx, cancel := context.WithCancel(t.Context())
	var canceller sync.WaitGroup
	canceller.Go(func() {
		for len(backend.Requests()) == 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
		cancel()
	})
	defer canceller.Wait()
	defer cancel()
	r := local().Probe(ctx, probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &probe.Command{Args: peer.Args, Env: prompt}})
	check(t, r, want{verdict: probe.Unknown, step: "m", class: probe.ClassProbeError, message: "cancelled", steps: "m!probe_error"})
	gone(t, peer.PIDs())
}

// A process that neither reads nor ends is not waited for.
func TestProcessThatReadsNothing(t *testing.T) {
	t.Parallel()
	peer := probetest.Process(t, probetest.JSONRPC(t), probetest.StartsSlowly(time.Minute))
	params := `["` + strings.Repeat("x", 64<<10-4) + `"]` // with what is around them more than a pipe holds
	began := time.Now()
	r := local().Probe(t.Context(), probe.Target{
		Kind: probe.KindJSONRPC, Method: "m", Params: []byte(params), Timeout: 500 * time.Millisecond, Command: &probe.Command{Args: peer.Args, Env: prompt},
	})
	check(t, r, want{verdict: probe.Down, step: "m", class: probe.ClassTimeout, steps: "m!timeout", warnings: []string{"close no_shutdown"}})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	gone(t, peer.PIDs())
}

func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		faults  []probetest.Fault
		process []any
		want    want
	}{
		"modern":             {nil, nil, want{verdict: probe.Up, era: probe.EraModern, steps: "server/discover tools/list", tools: 3}},
		"legacy":             {[]probetest.Fault{probetest.LegacyOnly()}, nil, want{verdict: probe.Up, era: probe.EraLegacy, steps: "server/discover!rpc_error initialize initialized tools/list", tools: 3}},
		"legacy, busy, loud": {[]probetest.Fault{probetest.LegacyOnly(), probetest.SSE()}, []any{probetest.Prints("MCP server ready\n")}, want{verdict: probe.Up, era: probe.EraLegacy, steps: "server/discover!rpc_error initialize initialized tools/list", tools: 3, warnings: []string{"server/discover stdout_pollution", "initialize stdout_pollution"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, tc.faults...)
			peer := probetest.Process(t, s, tc.process...)
			r := local().Probe(t.Context(), probe.Target{Kind: probe.KindMCP, Command: &probe.Command{Args: peer.Args, Env: prompt}})
			check(t, r, tc.want)
			gone(t, peer.PIDs())
			peer.Stop()
			if n := s.Sessions(); n != 0 {
				t.Errorf("%d sessions left open", n)
			}
		})
	}
}

func TestCommandsThatDoNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"data": "{}", "script": "#!/no/such/interpreter\n", "binary": "\x7fELFnot really"} {
		mode := os.FileMode(0o755)
		if name == "data" {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		command probe.Command
		message string
	}{
		"not installed":      {probe.Command{Args: []string{"no-such-program-7"}}, "no program no-such-program-7 in PATH"},
		"no such file":       {probe.Command{Args: []string{"/no/such/dir/server"}}, "no such file: server"},
		"may not be run":     {probe.Command{Args: []string{dir + "/data"}}, "data may not be executed"},
		"no interpreter":     {probe.Command{Args: []string{dir + "/script"}}, "no such file: script, or what its first line names"},
		"of another machine": {probe.Command{Args: []string{dir + "/binary"}}, "binary cannot be started: exec format error"},
		"no such directory":  {probe.Command{Args: []string{"sh"}, Dir: "/no/such/dir"}, "the working directory does not exist"},
		"not in its PATH":    {probe.Command{Args: []string{"sh"}, Env: []probe.Header{{Name: "PATH", Value: dir}}}, "no program sh in PATH"},
		"with a secret":      {probe.Command{Args: []string{"no-such-program-7", "--api-key=hunter2hunter2"}}, "no program"},
	} {
		t.Run(name, func(t *testing.T) {
			r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &tc.command})
			check(t, r, want{verdict: probe.Down, step: "m", class: probe.ClassSpawn, message: tc.message, steps: "m!spawn"})
			if strings.Contains(fmt.Sprintf("%+v", r), "hunter2") {
				t.Errorf("the secret shows in %+v", r)
			}
		})
	}
	check(t, (&probe.Prober{}).Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &probe.Command{Args: []string{"sh"}}}),
		want{verdict: probe.Unknown, step: "m", class: probe.ClassEgressBlocked, message: "commands are for whoever runs this service", steps: "m!ssrf_blocked"})
}

// A command is found and started as its own settings say, and learns nothing else of the environment.
func TestCommandEnvironment(t *testing.T) {
	t.Setenv("ROLLCALL_ADMIN_TOKEN", "hunter2hunter2")
	s := probetest.JSONRPC(t)
	for name, tc := range map[string]struct {
		variable string
		env      []probe.Header
		want     string
	}{
		"ours is kept from it": {"ROLLCALL_ADMIN_TOKEN", nil, "ROLLCALL_ADMIN_TOKEN=unset"},
		"its own":              {"MODE", []probe.Header{{Name: "MODE", Value: "test"}}, "MODE=test"},
		"a secret":             {"MODE", []probe.Header{{Name: "MODE", Value: "hunter2hunter2", Secret: true}}, "MODE=…"},
		"a secret by name":     {"API_KEY", []probe.Header{{Name: "API_KEY", Value: "hunter2hunter2"}}, "API_KEY=…"},
		"credentials in a URL": {"DB", []probe.Header{{Name: "DB", Value: "postgres://u:hunter2hunter2@db/x"}}, "DB=postgres://…@db/x"},
		"needed to start":      {"PATH", nil, "PATH=" + os.Getenv("PATH")},
	} {
		t.Run(name, func(t *testing.T) {
			peer := probetest.Process(t, s, probetest.PrintsEnv(tc.variable), probetest.ExitsAfter(0, 1))
			r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", Transcript: true, Command: &probe.Command{Args: peer.Args, Env: tc.env}})
			check(t, r, want{verdict: probe.Down, step: "m", class: probe.ClassExitEarly, code: 1, message: tc.want, steps: "m!exit_early"})
		})
	}
}

func TestSecretArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--api-key=hunter2hunter2"}, {"--token", "hunter2hunter2"}, {"--token", "Bearer hunter2hunter2"}, {"API_KEY=hunter2hunter2"},
		{"--header", "Authorization: Bearer hunter2hunter2"}, {"https://u:hunter2hunter2@db.example/x"}, {"--url=https://h.example/?key=hunter2hunter2"},
	} {
		command := probe.Command{Args: append([]string{"sh", "-c", `echo "I was told: $*" >&2; exit 1`, "sh"}, args...)}
		r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &command})
		check(t, r, want{verdict: probe.Down, step: "m", class: probe.ClassExitEarly, code: 1, message: "I was told: ", steps: "m!exit_early"})
		if strings.Contains(fmt.Sprintf("%+v", r), "hunter2") {
			t.Errorf("%q shows in %+v", args, r.Failure)
		}
	}
}

// The end of a long standard error may begin in the middle of a secret.
func TestHalfASecretOnStandardError(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter3-hunter4-hunter5"
	for skip := range 40 {
		text := strings.Repeat("x", skip) + secret + strings.Repeat(" y", 2048)
		peer := probetest.Process(t, probetest.JSONRPC(t), probetest.PrintsError(text), probetest.ExitsAfter(0, 1))
		r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &probe.Command{
			Args: peer.Args, Env: []probe.Header{{Name: "API_KEY", Value: secret}},
		}})
		if r.Failure == nil || strings.Contains(r.Failure.Message, "hunter") {
			t.Fatalf("%d: %+v", skip, r.Failure)
		}
	}
}

func TestErrorLines(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":  {"\n\n", ""},
		"plain":    {"starting\nlistening\n", "starting\nlistening"},
		"Node":     {"starting\n/srv/index.js:3\n    throw new Error('missing API key');\n    ^\n\nError: missing API key\n    at Object.<anonymous> (/srv/index.js:3:9)\n\nNode.js v22\n", "    throw new Error('missing API key');\nError: missing API key\nNode.js v22"},
		"Python":   {"Traceback (most recent call last):\n  File \"s.py\", line 1, in <module>\n    import mcp\nModuleNotFoundError: No module named 'mcp'\n", "ModuleNotFoundError: No module named 'mcp'"},
		"npm":      {"npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x\nnpm error 404\nnpm error A\nnpm error B\n", "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x\nnpm error 404\nnpm error A"},
		"coloured": {"\x1b[31mError\x1b[0m: no\n", "Error: no"},
		"Go":       {"panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: runtime error: index out of range\nmain.main()"},
	} {
		if got := probe.ErrorLines(tc.in); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A command does not outlive a service that is killed.
func TestCommandDiesWithUs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("only Linux sees to that; elsewhere a command notices the end of its input")
		return
	}
	peer := probetest.Process(t, probetest.JSONRPC(t, probetest.HangAt("m")), probetest.Stubborn())
	service := exec.Command(os.Args[0], "-test.run=^TestServiceToBeKilled$")
	service.Env = append(os.Environ(), "PROBE_TEST_COMMAND="+strings.Join(peer.Args, "\n"))
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	for len(peer.PIDs()) == 0 {
		runtime.Gosched()
	}
	if err := service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = service.Wait() // it was killed, which is an error
	gone(t, peer.PIDs())
}

// TestServiceToBeKilled is the service of TestCommandDiesWithUs, and nothing by itself.
func TestServiceToBeKilled(t *testing.T) {
	if args := os.Getenv("PROBE_TEST_COMMAND"); args != "" {
		r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", Command: &probe.Command{Args: strings.Split(args, "\n")}})
		t.Errorf("not killed: %+v", r)
	}
}
