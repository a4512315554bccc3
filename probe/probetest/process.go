package probetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processMark is the first argument by which a test binary knows that it is to be a process.
const processMark = "rollcall-probetest-process"

// Command is a process that speaks over its standard streams: this test binary, started once more. TestMain must call
// [RunProcess] for that.
type Command struct {
	*Carrier          // where the process gets its messages from
	Args     []string // to start it with

	pids string // file to which the process and its children write their numbers
}

// ProcessFault is one way for a process to be different from a healthy one.
type ProcessFault func(*processPlan)

// processPlan is what a process is told in its arguments.
type processPlan struct {
	Address   string
	PIDs      string
	Stdout    []string
	Stderr    []string
	Wall      int
	Exit      *int
	Killed    bool
	Messages  int // before Exit or Killed
	Deaf      bool
	Stubborn  bool
	Child     bool
	ChildOnly bool
	Delay     time.Duration
	Echo      string
}

// Prints writes text to standard output before anything else, as it is.
func Prints(text string) ProcessFault {
	return func(p *processPlan) { p.Stdout = append(p.Stdout, text) }
}

// PrintsError writes text to standard error before anything else.
func PrintsError(text string) ProcessFault {
	return func(p *processPlan) { p.Stderr = append(p.Stderr, text) }
}

// PrintsEnv writes a variable of the environment to standard error, "unset" without one.
func PrintsEnv(name string) ProcessFault { return func(p *processPlan) { p.Echo = name } }

// PrintsWall writes one line of n bytes to standard output.
func PrintsWall(n int) ProcessFault { return func(p *processPlan) { p.Wall = n } }

// ExitsAfter ends the process with a code once it has read so many messages, without answering the last.
func ExitsAfter(messages, code int) ProcessFault {
	return func(p *processPlan) { p.Messages, p.Exit = messages, &code }
}

// KilledAfter has the process killed by a signal once it has read so many messages.
func KilledAfter(messages int) ProcessFault {
	return func(p *processPlan) { p.Messages, p.Killed = messages, true }
}

// OutlivesInput makes a process that goes on when its input has ended; it ends when it is terminated.
func OutlivesInput() ProcessFault { return func(p *processPlan) { p.Deaf = true } }

// Stubborn makes a process that neither ends with its input nor when it is terminated.
func Stubborn() ProcessFault { return func(p *processPlan) { p.Deaf, p.Stubborn = true, true } }

// LeavesChild makes a process start another one, which holds its standard streams open and does nothing.
func LeavesChild() ProcessFault { return func(p *processPlan) { p.Child = true } }

// StartsSlowly makes a process wait before it reads anything.
func StartsSlowly(d time.Duration) ProcessFault { return func(p *processPlan) { p.Delay = d } }

// Process returns a command that speaks for backend. Faults may be those of carriers and of processes.
func Process(t testing.TB, backend *Server, faults ...any) *Command {
	t.Helper()
	c := &Command{pids: filepath.Join(t.TempDir(), "pids")}
	plan := processPlan{PIDs: c.pids}
	var carried []CarrierFault
	for _, f := range faults {
		switch f := f.(type) {
		case ProcessFault:
			f(&plan)
		case CarrierFault:
			carried = append(carried, f)
		default:
			t.Fatalf("probetest: %T is no fault of a process", f)
		}
	}
	c.Carrier = Socket(t, backend, carried...)
	plan.Address = c.l.Addr().String()
	c.Args = plan.args(t)
	return c
}

func (p processPlan) args(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arg, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, processMark, string(arg)}
}

// PIDs returns the numbers of the processes that were started so far, and those of their children.
func (c *Command) PIDs() []int {
	c.t.Helper()
	text, err := os.ReadFile(c.pids)
	if err != nil {
		return nil // none was
	}
	var pids []int
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			c.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// RunProcess returns at once, unless this program was started as a process by [Process]: then it is that process, and
// ends with it.
func RunProcess() {
	if len(os.Args) < 3 || os.Args[1] != processMark {
		return
	}
	var plan processPlan
	if err := json.Unmarshal([]byte(os.Args[2]), &plan); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	plan.run()
}

// run relays messages between the standard streams and the carrier.
func (p processPlan) run() {
	p.notePID()
	if p.ChildOnly {
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	if p.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	if p.Child {
		p.startChild()
	}
	for _, text := range p.Stderr {
		fmt.Fprint(os.Stderr, text)
	}
	if p.Echo != "" {
		value, ok := os.LookupEnv(p.Echo)
		if !ok {
			value = "unset"
		}
		fmt.Fprintf(os.Stderr, "%s=%s\n", p.Echo, value)
	}
	for _, text := range p.Stdout {
		fmt.Fprint(os.Stdout, text)
	}
	if p.Wall > 0 {
		fmt.Println(strings.Repeat("x", p.Wall))
	}
	p.mayEnd()
	time.Sleep(p.Delay)
	conn, err := net.Dial("tcp", p.Address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(124)
	}
	go p.answers(conn)
	p.messages(conn)
}

// answers copies what the carrier answers.
func (p processPlan) answers(conn net.Conn) {
	_, _ = io.Copy(os.Stdout, conn) // ends with either side
	if p.Deaf {
		return
	}
	os.Exit(0)
}

// messages copies what comes in, counting lines, and ends with it.
func (p processPlan) messages(conn net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := os.Stdin.Read(buffer)
		for _, b := range buffer[:n] {
			if b == '\n' {
				p.Messages--
			}
		}
		p.mayEnd()
		if n > 0 {
			if _, err := conn.Write(buffer[:n]); err != nil {
				os.Exit(0)
			}
		}
		if err != nil && p.Deaf {
			time.Sleep(time.Minute)
		}
		if err != nil {
			os.Exit(0)
		}
	}
}

// mayEnd ends the process when it has read as much as it is to read.
func (p processPlan) mayEnd() {
	if p.Messages > 0 {
		return
	}
	if p.Exit != nil {
		os.Exit(*p.Exit)
	}
	if p.Killed {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		fmt.Fprintln(os.Stderr, "still here:", err)
	}
}

// startChild starts a process of this one's group with the same streams.
func (p processPlan) startChild() {
	arg, err := json.Marshal(processPlan{PIDs: p.PIDs, ChildOnly: true})
	if err != nil {
		panic(err) // numbers and strings only
	}
	child := exec.Command(os.Args[0], processMark, string(arg)) //nolint:gosec // this program itself
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(123)
	}
}

func (p processPlan) notePID() {
	f, err := os.OpenFile(p.PIDs, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(122)
	}
	f.Close()
}
