// Command rollcall watches MCP servers and other JSON-RPC endpoints: it probes them on schedule with the whole protocol
// conversation, keeps what it saw, and tells those who asked when something breaks. This package ties the others
// together: it alone reads flags and the environment, and opens and closes every part.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/rollcallhq/rollcall/store"
)

// Exit codes. Those of `rollcall check` say what was seen.
const (
	exitOK      = 0
	exitFailed  = 1 // check: down or degraded; elsewhere: we failed
	exitUsage   = 2
	exitUnknown = 3 // check: gated or unknown
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	std := stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	code := run(ctx, os.Args[1:], std)
	stop()
	os.Exit(code)
}

// stdio is what a command reads and writes besides the network.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	env      func(name string) (value string, set bool)
}

// command is one subcommand. run gets what stands behind its name; its error is printed with the name in front.
type command struct {
	name    string
	args    string
	summary string
	run     func(ctx context.Context, args []string, std stdio) error
}

// commands lists the subcommands in the order in which help shows them.
func commands() []command {
	return []command{
		{"serve", "", "run the service: probe on schedule, keep history, alert, show", serve},
		{"check", "URL", "probe an endpoint once and print every step", check},
		{"endpoints", "list|add|remove|apply|export", "manage the endpoints in the database", endpoints},
		{"token", "create|list|revoke", "manage tokens for the REST API", token},
		{"migrate", "", "bring the database's schema up to date, or move everything to Postgres", migrate},
		{"backup", "TARGET", "save a SQLite database while the service runs", backup},
		{"restore", "SOURCE", "put a saved SQLite database in place", restore},
		{"healthcheck", "", "ask a running service whether it is alive", healthcheck},
		{"version", "", "print the version", printVersion},
	}
}

// run does what args say and returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
	if len(args) == 0 {
		printUsage(std.err)
		return exitUsage
	}
	name := args[0]
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, name) {
		printUsage(std.out)
		return exitOK
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		fmt.Fprintf(std.err, "rollcall: unknown command %q\n\n", name)
		printUsage(std.err)
		return exitUsage
	}
	if name != "serve" { // what the service changes by itself is nobody's; those who ask it to change something have names
		ctx = store.WithActor(ctx, store.Actor{Name: "command line", Kind: store.ActorCommand})
	}
	return exitCode(all[i].run(ctx, args[1:], std), all[i], std)
}

// exitCode prints err, when there is something to print, and says how to exit.
func exitCode(err error, c command, std stdio) int {
	if err == nil {
		return exitOK
	}
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	if usage, ok := errors.AsType[usageError](err); ok {
		for _, line := range strings.Split(usage.Error(), "\n") {
			fmt.Fprintf(std.err, "rollcall %s: %s\n", c.name, line)
		}
		fmt.Fprintf(std.err, "See `rollcall %s --help`.\n", c.name)
		return exitUsage
	}
	fmt.Fprintf(std.err, "rollcall %s: %v\n", c.name, err)
	return exitFailed
}

// exit ends a command that has said all it had to say.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// usageError is a mistake in how the command was called, one per line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func printUsage(w io.Writer) {
	fmt.Fprint(w, "Rollcall: is every MCP server and JSON-RPC node answering?\n\nUsage: rollcall COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-42s %s\n", strings.TrimSpace(c.name+" "+c.args), c.summary)
	}
	fmt.Fprint(w, "\nEvery flag --some-flag of a command is also the environment variable ROLLCALL_SOME_FLAG.\n"+
		"`rollcall COMMAND --help` lists them. To look around: rollcall serve --demo\n")
}
