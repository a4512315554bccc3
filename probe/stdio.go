package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// How long a process may take to end once its input has ended, and once it was asked to. Both are part of the time that
// closing a stream may take, two seconds with what it takes to be killed.
const (
	inputEndPatience  = time.Second
	terminatePatience = 500 * time.Millisecond

	// lostPatience is the first of the two for a process that has just let a question go unanswered: what it takes is
	// missing for the next one, which is asked of another process.
	lostPatience = 100 * time.Millisecond
)

// lastWords is how long the output of a process that has ended is waited for. What it started may hold it open for ever.
const lastWords = 300 * time.Millisecond

// maxStderr is how much of the end of a process's standard error is kept: the error itself, below a stack trace.
const maxStderr = 4 << 10

// process carries messages over the standard streams of a command. The command runs in a process group of its own,
// which is killed whole at the end: package runners start what they run as children of theirs.
type process struct {
	c         *conversation
	cmd       *exec.Cmd
	in        *os.File // its standard input
	out       *os.File // its standard output
	errors    *stderr
	framing   Framing
	pump      *pump
	pollution pollution // of out; belongs to the pump until that was stopped
	polluted  string    // the step under way when the first message came
	ended     chan struct{}
	patience  time.Duration // that it has for ending by itself
	closed    bool
}

// openProcess starts the target's command.
func (c *conversation) openProcess(ctx context.Context) (stream, error) {
	if p := c.refuseLocal("commands"); p != nil {
		return nil, p
	}
	if len(c.target.Command.Args) == 0 {
		return nil, &problem{class: ClassProbeError, message: "the command is empty"}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd, err := c.command()
	if err != nil {
		return nil, c.spawnProblem(err)
	}
	p := &process{c: c, cmd: cmd, framing: c.framing(), ended: make(chan struct{}), patience: inputEndPatience, polluted: lastStep(c.result.Steps)}
	if err := p.start(); err != nil {
		return nil, c.spawnProblem(err)
	}
	f := newFramer(p.out, p.framing, c.limits.ResponseBytes, &p.pollution)
	p.pump = newPump(func() ([]byte, string, error) {
		message, err := f.next()
		return message, f.oddity(), err
	})
	return p, nil
}

// command returns the target's command, ready to start but for its streams.
func (c *conversation) command() (*exec.Cmd, error) {
	t := c.target.Command
	path, err := t.lookPath()
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: t.Args, Dir: t.Dir, Env: t.environment(), SysProcAttr: processAttributes()}, nil
}

// lookPath finds the program: in the command's own PATH when it sets one.
func (t *Command) lookPath() (string, error) {
	name := t.Args[0]
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		if t.Dir != "" && !filepath.IsAbs(name) {
			name = filepath.Join(t.Dir, name)
		}
		path, err := exec.LookPath(name)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	for _, v := range t.Env {
		if v.Name != "PATH" {
			continue
		}
		failed := exec.ErrNotFound
		for _, dir := range filepath.SplitList(v.Value) {
			path, err := exec.LookPath(filepath.Join(dir, name))
			if err == nil && filepath.IsAbs(path) {
				return path, nil
			}
			if errors.Is(err, fs.ErrPermission) {
				failed = err
			}
		}
		return "", failed
	}
	return exec.LookPath(name)
}

// environment returns what the process is told: what it needs to start at all, and the command's own variables.
func (t *Command) environment() []string {
	env := []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, v := range t.Env {
		env = append(env, v.Name+"="+v.Value) // of two with the same name the last one counts
	}
	return env
}

// start starts the process and what listens to it.
func (p *process) start() (err error) {
	var ours, theirs []*os.File
	defer func() { closeAll(theirs) }() // the process has copies
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	inRead, inWrite := pipe()
	outRead, outWrite := pipe()
	errRead, errWrite := pipe()
	ours, theirs = []*os.File{inWrite, outRead, errRead}, []*os.File{inRead, outWrite, errWrite}
	p.in, p.out = inWrite, outRead
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inRead, outWrite, errWrite
	if err == nil {
		err = p.run()
	}
	if err != nil {
		closeAll(ours)
		return err
	}
	p.errors = readStderr(errRead, maxStderr+p.c.secrets.longest)
	return nil
}

// closeAll closes those of the files that were opened.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a file that never was has nothing to close
	}
}

// run starts the process and sees to it that it is reaped. Linux kills a process that is to die with its parent when
// the thread ends that started it: that thread stays the one that waits for it. What the process has left behind in its
// output is still read, but what it started, and what holds that output open, is not waited for.
func (p *process) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // what it would say is in ProcessState
			close(p.ended)
			time.AfterFunc(lastWords, func() { _ = p.out.Close() })
		}
	}()
	return <-started
}

func (p *process) send(ctx context.Context, message []byte) error {
	err := writeWithin(ctx, p.in, p.in.SetWriteDeadline, p.framing.frame(message))
	if err == nil || ctx.Err() != nil {
		return p.late(ctx, err)
	}
	return p.gone() // nobody reads what it is told
}

func (p *process) receive(ctx context.Context) ([]byte, error) {
	d, err := p.pump.receive(ctx)
	if d.odd != "" {
		p.c.warnHere(ClassFraming, "%s", d.odd)
	}
	switch {
	case err == nil:
		return d.message, nil
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			p.patience = lostPatience
		}
		return nil, p.late(ctx, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrClosed):
		return nil, p.gone()
	default:
		return nil, err
	}
}

// late adds what the process has said of its trouble to an error that comes from ctx.
func (p *process) late(ctx context.Context, err error) error {
	limit, ok := errors.AsType[outOfTime](context.Cause(ctx))
	words := p.words()
	if err == nil || !ok || words == "" {
		return err
	}
	return &problem{class: ClassTimeout, message: fmt.Sprintf("no answer after %s; on its standard error: %s", inWords(limit.granted), words)}
}

// gone says how the process ended.
func (p *process) gone() *problem {
	select {
	case <-p.ended:
	case <-time.After(lastWords):
		return &problem{class: ClassExitEarly, message: "the process closed its standard streams before it had answered" + after(p.words())}
	}
	p.errors.wait(lastWords)
	how, code := exitWords(p.cmd.ProcessState)
	return &problem{class: ClassExitEarly, code: code, message: how + after(p.words())}
}

// exitWords says how a process ended. Its exit code is 0 when it was a signal that ended it.
func exitWords(state *os.ProcessState) (words string, code int) {
	if name := signalName(state); name != "" {
		return "killed by " + name, 0
	}
	code = state.ExitCode()
	return fmt.Sprintf("exit code %d", code), code
}

// words returns what the process said last on its standard error, fit to be shown.
func (p *process) words() string {
	text, clipped := p.errors.tail()
	text = p.c.secrets.Cut(text)
	if clipped { // its beginning may be the second half of a secret, which is not found
		text = text[min(len(text), p.c.secrets.longest):]
	}
	return p.c.text(errorLines(text), 400)
}

// close ends the process: by ending its input, else by asking it, else by force.
func (p *process) close() *problem {
	if p.closed {
		return nil
	}
	p.closed = true
	_ = p.in.Close() // what was written is read or not
	p.pump.halt()
	p.pump.running.Go(func() { _, _ = io.Copy(io.Discard, p.out) }) // so that it can say goodbye
	warning := p.end()
	killGroup(p.cmd.Process)
	_ = p.out.Close() // nobody reads it any more
	p.pump.running.Wait()
	p.errors.close()
	if n := p.pollution.lines; n > 0 {
		p.c.warn(p.polluted, ClassStdoutPollution, 0, "%s on standard output, the first: %s",
			count(n, "line that is no message", "lines that are no messages"), tidy(string(p.pollution.first), maxGarbage))
	}
	return warning
}

// end waits for the process to end, and sees to it that it does.
func (p *process) end() *problem {
	if p.endsWithin(p.patience) {
		return nil
	}
	terminateGroup(p.cmd.Process)
	if p.endsWithin(terminatePatience) {
		return &problem{class: ClassNoShutdown, message: fmt.Sprintf("did not end within %s of the end of its input, and had to be terminated", inWords(p.patience))}
	}
	killGroup(p.cmd.Process)
	<-p.ended
	return &problem{class: ClassNoShutdown, message: fmt.Sprintf("did not end within %s of the end of its input nor when terminated, and had to be killed", inWords(p.patience))}
}

func (p *process) endsWithin(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// count puts a number before the word that goes with it.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// spawnProblem says why a command does not start, without its arguments: they may hold secrets.
func (c *conversation) spawnProblem(err error) *problem {
	name := c.text(filepath.Base(c.target.Command.Args[0]), 100)
	for _, own := range append(ownFaults, syscall.EAGAIN, syscall.ENOMEM) {
		if errors.Is(err, own) {
			return &problem{class: ClassProbeError, message: "no process can be started on this machine: " + own.Error()}
		}
	}
	message := fmt.Sprintf("%s cannot be started: %s", name, spawnWords(err))
	switch dir := c.target.Command.Dir; {
	case dir != "" && !isDir(dir):
		message = "the working directory does not exist"
	case errors.Is(err, exec.ErrNotFound) && name == c.target.Command.Args[0]:
		message = fmt.Sprintf("no program %s in PATH: is it installed for the user that this service runs as?", name)
	case errors.Is(err, fs.ErrNotExist):
		message = fmt.Sprintf("no such file: %s, or what its first line names as interpreter", name)
	case errors.Is(err, fs.ErrPermission):
		message = fmt.Sprintf("%s may not be executed by the user that this service runs as", name)
	}
	return &problem{class: ClassSpawn, message: message}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// spawnWords says an error without the path that package os adds.
func spawnWords(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	if lookup, ok := errors.AsType[*exec.Error](err); ok {
		return lookup.Err.Error()
	}
	return "unknown reason"
}

// stderr keeps the end of what a process writes to its standard error, and reads on so that the process never waits.
type stderr struct {
	in   *os.File
	max  int
	done chan struct{}

	mu      sync.Mutex // guards what follows
	kept    []byte
	clipped bool
}

func readStderr(in *os.File, max int) *stderr {
	e := &stderr{in: in, max: max, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		buffer := make([]byte, 2<<10)
		for {
			n, err := in.Read(buffer)
			e.add(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	return e
}

func (e *stderr) add(b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(e.kept, b...)
	if over := len(e.kept) - e.max; over > 0 {
		e.kept = append(e.kept[:0], e.kept[over:]...)
		e.clipped = true
	}
}

// tail returns the end of what was written, and reports whether there was more before it.
func (e *stderr) tail() (text string, clipped bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.kept), e.clipped
}

// wait waits until everything was read, for as long as patience.
func (e *stderr) wait(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-e.done:
	case <-timer.C:
	}
}

func (e *stderr) close() {
	_ = e.in.Close() // nobody reads it any more
	<-e.done
}

var (
	colours    = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
	errorWord  = regexp.MustCompile(`(?i)error|exception|panic|fatal|denied|not found|no such|missing|invalid|cannot|failed|usage:`)
	stackFrame = regexp.MustCompile(`^\s+at |^\s+File "|^\s*\^+\s*$|^\s*~+\^*~*\s*$|^Traceback |^node:|^goroutine \d+`)
)

// maxErrorLines is how many lines of a process's standard error are shown.
const maxErrorLines = 4

// errorLines picks from the standard error of a process the lines that tell what went wrong: from the first that names an
// error, stack frames left out, else the last ones.
func errorLines(text string) string {
	var lines []string
	first := -1
	for line := range strings.SplitSeq(colours.ReplaceAllString(text, ""), "\n") {
		if strings.TrimSpace(line) == "" || stackFrame.MatchString(line) {
			continue
		}
		if first < 0 && errorWord.MatchString(line) {
			first = len(lines)
		}
		lines = append(lines, line)
	}
	if first < 0 {
		first = max(0, len(lines)-maxErrorLines)
	}
	return strings.Join(lines[first:min(len(lines), first+maxErrorLines)], "\n")
}

// secrets returns what must not be seen of a command: values of secret variables, of arguments that look like secrets by
// their names ("--api-key=…", "--token …", "Authorization: …") or by themselves, and credentials in URLs.
func (t *Command) secrets() []string {
	if t == nil {
		return nil
	}
	var secrets []string
	for _, v := range t.Env {
		if v.Secret || secretName(v.Name) {
			secrets = append(secrets, credentialsIn(v)...)
			continue
		}
		secrets = append(secrets, embeddedURL(v.Value)...)
	}
	announced := false
	for i, arg := range t.Args {
		if i == 0 {
			continue // the program
		}
		name, value, valued := cutOption(arg)
		switch {
		case announced && !strings.HasPrefix(arg, "-"):
			secrets = append(secrets, credentialsIn(Header{Value: arg})...)
		case valued && secretName(name):
			secrets = append(secrets, credentialsIn(Header{Name: name, Value: value})...)
		case strings.Contains(arg, "://"):
			secrets = append(secrets, embeddedURL(cmp.Or(value, arg))...)
		case !strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, `/\.@ `) && keyLike(arg):
			secrets = append(secrets, arg)
		}
		announced = !valued && strings.HasPrefix(arg, "-") && secretName(strings.TrimLeft(arg, "-"))
	}
	return secrets
}

// cutOption takes an argument of the shapes "--name=value", "NAME=value" and "Name: value" apart.
func cutOption(arg string) (name, value string, ok bool) {
	if i := strings.IndexAny(arg, "=:"); i > 0 && !strings.HasPrefix(arg[i:], "://") {
		return strings.TrimLeft(arg[:i], "-"), strings.TrimSpace(arg[i+1:]), true
	}
	return arg, "", false
}

// embeddedURL returns the secrets of a value that is a URL.
func embeddedURL(value string) []string {
	if !strings.Contains(value, "://") {
		return nil
	}
	return urlSecrets(value)
}
