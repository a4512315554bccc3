package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buildOnce builds the real binary, race detector included when the tests have it, once for all tests of the package.
var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rollcall-e2e-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "rollcall")
	args := []string{"build", "-o", bin}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// binary returns the path of the real binary.
func binary(t testing.TB) string {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// adminToken is what the instances of these tests accept as a bearer token.
const adminToken = "e2e-admin-token-0123456789"

// instance is a running `rollcall serve`.
type instance struct {
	t       testing.TB
	url     string
	args    []string
	env     []string
	cmd     *exec.Cmd
	log     *lockedBuffer
	running bool
}

// serveInstance starts the service on a free port and waits until it is ready. It is stopped with the test. More
// arguments and KEY=value environment may be given; without --database it gets a SQLite file of its own.
func serveInstance(t testing.TB, env []string, args ...string) *instance {
	t.Helper()
	return serveInstanceAt(t, freeAddress(t), env, args...)
}

// serveInstanceAt does the same at an address, for those who have to know it beforehand.
func serveInstanceAt(t testing.TB, addr string, env []string, args ...string) *instance {
	t.Helper()
	if !strings.Contains(strings.Join(args, " "), "--database") {
		args = append(args, "--database", filepath.Join(t.TempDir(), "rollcall.db"))
	} else if !strings.Contains(strings.Join(args, " "), "--spool") {
		args = append(args, "--spool", filepath.Join(t.TempDir(), "rollcall.spool"))
	}
	i := &instance{t: t, url: "http://" + addr, log: &lockedBuffer{},
		args: append([]string{"serve", "--listen", addr}, args...),
		env:  append([]string{"ROLLCALL_ADMIN_TOKEN=" + adminToken}, env...),
	}
	t.Cleanup(func() {
		i.stop()
		if t.Failed() {
			t.Logf("log of %s:\n%s", strings.Join(i.args, " "), i.log)
		}
	})
	i.start()
	return i
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (i *instance) start() {
	i.t.Helper()
	i.cmd = exec.Command(binary(i.t), i.args...)
	i.cmd.Env = append(os.Environ(), i.env...)
	i.cmd.Stdout, i.cmd.Stderr = i.log, i.log
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := i.cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.running = true
	i.await("the service to be ready", func() bool {
		resp, err := http.Get(i.url + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// stop ends the service as an operator would and fails the test when it does not end well.
func (i *instance) stop() {
	if !i.running {
		return
	}
	i.running = false
	if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		i.t.Errorf("stop: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- i.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			i.t.Errorf("service ended badly: %v", err)
		}
	case <-time.After(40 * time.Second):
		_ = i.cmd.Process.Kill()
		i.t.Errorf("service did not stop within 40s and was killed: %v", <-ended)
	}
}

// kill ends the service as a crash or an out-of-memory killer would.
func (i *instance) kill() {
	i.t.Helper()
	i.running = false
	if err := i.cmd.Process.Kill(); err != nil {
		i.t.Fatal(err)
	}
	_ = i.cmd.Wait() // it was killed: the error says only that
}

// await polls until a condition holds; the tests here watch other processes, which no bubble can hold.
func (i *instance) await(what string, holds func() bool) {
	i.t.Helper()
	awaitWithin(i.t, 60*time.Second, what, holds)
}

func awaitWithin(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %s for %s", limit, what)
		}
	}
}

// call sends a request with the admin token and decodes the JSON answer into out, unless it is nil. It fails the test
// when the status is not the one wanted.
func (i *instance) call(method, path string, body any, wantStatus int, out any) {
	i.t.Helper()
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			i.t.Fatal(err)
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, i.url+path, reader)
	if err != nil {
		i.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		i.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	if resp.StatusCode != wantStatus {
		i.t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, wantStatus, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			i.t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
}

// get returns the status with which a public path answers, 0 when it does not.
func (i *instance) get(path string) int {
	resp, err := http.Get(i.url + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// metric returns the value of a series of /metrics, 0 when there is none.
func (i *instance) metric(series string) float64 {
	i.t.Helper()
	resp, err := http.Get(i.url + "/metrics")
	if err != nil {
		i.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				i.t.Fatal(err)
			}
			return f
		}
	}
	return 0
}

// runBinary runs a command to its end and returns its exit code and everything it printed.
func runBinary(t testing.TB, env []string, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// object is a JSON object that a test looks into.
type object = map[string]any

// status returns the status of an endpoint.
func (i *instance) status(slug string) string {
	i.t.Helper()
	var e struct{ Status string }
	i.call("GET", "/api/v1/endpoints/"+slug, nil, 200, &e)
	return e.Status
}

// incidents returns the incidents of an endpoint, newest first.
func (i *instance) incidents(slug string) []object {
	i.t.Helper()
	var list struct{ Items []object }
	i.call("GET", "/api/v1/incidents?endpoint="+slug, nil, 200, &list)
	return list.Items
}

// lockedBuffer is a log that is written and read at once.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
