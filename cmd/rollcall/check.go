package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// check probes one endpoint once, from wherever this command runs: it may dial any address and start any program.
func check(ctx context.Context, args []string, std stdio) error {
	c, err := readCheck(args, std)
	if err != nil {
		return err
	}
	prober := &probe.Prober{Version: versionString(), Egress: probe.Egress{Any: true}, Local: true, Proxy: proxyFrom(std)}
	c.target.Peers = heads(ctx, prober, c.target, c.peers, std.err)
	result := prober.Probe(ctx, c.target)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if c.json {
		form := api.CheckJSON(store.Check{ScheduledAt: result.StartedAt, Result: result})
		err = writeJSON(std.out, form)
	} else {
		err = newReport(std).print(c.target, result, c.target.Transcript)
	}
	if err != nil {
		return err
	}
	return exitFor(result.Verdict)
}

// heads asks other nodes of the same chain for their newest blocks, all at once. One that has none to tell is left out,
// which out is told: the check is not held against it.
func heads(ctx context.Context, prober *probe.Prober, t probe.Target, urls []string, out io.Writer) []probe.Head {
	found := make([]probe.Result, len(urls))
	var asking sync.WaitGroup
	for i, url := range urls {
		asking.Go(func() {
			peer := peerTarget(t, url)
			found[i] = prober.Probe(ctx, peer)
			if head := found[i].Memory.Head; head != nil {
				other := *head
				other.Origin = ""
				peer.Kind, peer.Peers = found[i].Kind, []probe.Head{other} // one that knows of others also tells of an older block
				if again := prober.Probe(ctx, peer); again.Memory.Head != nil {
					found[i] = again
				}
			}
		})
	}
	asking.Wait()
	var heads []probe.Head
	for i, r := range found {
		if r.Memory.Head != nil {
			heads = append(heads, *r.Memory.Head)
			continue
		}
		why := "it names no block"
		if r.Failure != nil {
			why = fmt.Sprintf("%s: %s: %s", r.Failure.Step, r.Failure.Class, r.Failure.Message)
		}
		fmt.Fprintf(out, "rollcall check: nothing is compared with --peer %s: %s\n", probe.RedactURL(urls[i]), printable(why))
	}
	return heads
}

// peerTarget is another node of the chain that t is of.
func peerTarget(t probe.Target, url string) probe.Target {
	return probe.Target{Kind: t.Kind, URL: url, Timeout: t.Timeout}
}

// peerMistakes returns what keeps t from being compared with the nodes at urls.
func peerMistakes(t probe.Target, urls []string) (mistakes []error) {
	if len(urls) > 0 && t.Kind != probe.KindAuto && !slices.Contains(probe.Families(), t.Kind) {
		return []error{errors.New("--peer: goes with the kinds of chains and auto only")}
	}
	for _, url := range urls {
		for _, p := range peerTarget(t, url).Validate() {
			if p.Field == "url" {
				mistakes = append(mistakes, errors.New("--peer: "+p.Message))
			}
		}
	}
	return mistakes
}

// checkCommand is how `rollcall check` was called.
type checkCommand struct {
	target probe.Target
	peers  []string // URLs of other nodes of the same chain
	json   bool
}

func readCheck(args []string, std stdio) (checkCommand, error) {
	var c checkCommand
	var headers headerFlag
	var env envFlag
	var peers listFlag
	var options optionFlags
	var kind, params, command, dir string
	t := &c.target
	fs := newFlags("check", "check URL [flags] | check --command 'PROGRAM ARGUMENT…' [flags]", std)
	fs.StringVar(&kind, "kind", string(probe.KindAuto), "`kind` of endpoint: "+kindList())
	fs.StringVar(&t.Method, "method", "", "`method` to call, for kind jsonrpc")
	fs.StringVar(&params, "params", "", "`JSON` array or object of parameters, for kind jsonrpc")
	fs.Var(&headers, "header", "`'Name: value'` to send with every request; may be given several times")
	fs.DurationVar(&t.Timeout, "timeout", 0, "`duration` the whole check may take (default 15s, with --command 30s)")
	fs.DurationVar(&t.DegradedOver, "degraded-over", 0, "`duration` above which a good answer is degraded (default never)")
	fs.BoolVar(&c.json, "json", false, "print the check as JSON")
	fs.BoolVar(&t.Transcript, "transcript", false, "print every message as sent and received, secrets cut out")
	fs.StringVar(&command, "command", "", "`program` with arguments to talk to over its standard input and output")
	fs.Var(&env, "env", "`NAME=value` for --command; may be given several times")
	fs.StringVar(&dir, "dir", "", "`directory` that --command runs in")
	fs.Var(&peers, "peer", "`URL` of another node of the same chain to compare with; may be given several times")
	options.register(fs)
	rest, err := fs.parse(args)
	if _, ok := errors.AsType[usageError](err); err != nil && !ok {
		return c, err
	}
	mistakes := joined(err)
	given := len(rest) == 1 && command == "" || len(rest) == 0 && command != ""
	switch {
	case command != "" && len(rest) > 0:
		mistakes = append(mistakes, errors.New("a URL or a --command, not both"))
	case command != "":
		words, err := splitCommand(command)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("--command: %w", err))
			given = false
		}
		t.Command = &probe.Command{Args: words, Dir: dir}
	case len(rest) == 1:
		t.URL = rest[0]
	case len(rest) == 0:
		mistakes = append(mistakes, errors.New("which URL? write it like rollcall check https://mcp.example.com/mcp"))
	default:
		mistakes = append(mistakes, errors.New("one URL at a time"))
	}
	if command == "" && (len(env) > 0 || dir != "") {
		mistakes = append(mistakes, errors.New("--env and --dir go with --command only"))
	}
	if isSet(fs, "timeout") && t.Timeout == 0 {
		mistakes = append(mistakes, errors.New("--timeout must be longer than zero"))
	}
	var more []error
	t.Options, more = options.read()
	mistakes = append(mistakes, more...)
	c.peers = peers
	t.Kind = probe.Kind(kind)
	if t.Kind == probe.KindAuto && (t.Method != "" || len(t.Options.Batch) > 0) {
		t.Kind = probe.KindJSONRPC
	}
	if params != "" && t.Method == "" {
		mistakes = append(mistakes, errors.New("--params: need a --method"))
	} else if params != "" {
		t.Params = json.RawMessage(params)
	}
	t.Headers, more = headers.headers()
	mistakes = append(mistakes, more...)
	if t.Command != nil {
		t.Command.Env, more = env.variables()
		mistakes = append(mistakes, more...)
	}
	mistakes = append(mistakes, peerMistakes(*t, peers)...)
	if given {
		mistakes = append(mistakes, problemErrors(t.Validate())...)
	}
	if len(mistakes) > 0 {
		return c, usageError{errors.Join(mistakes...)}
	}
	return c, nil
}

// isSet reports whether a flag was given.
func isSet(fs *flagSet, name string) (set bool) {
	fs.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func kindList() string {
	var names []string
	for _, k := range probe.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// problemErrors words problems of a target as mistakes of a command line.
func problemErrors(problems []probe.Problem) []error {
	var errs []error
	for _, p := range problems {
		name := flagFor(p.Field)
		errs = append(errs, fmt.Errorf("%s: %s", name, strings.ReplaceAll(p.Message, "request.method", "--method")))
	}
	return errs
}

// flagFor returns how a member of a target is given on the command line, by the longest beginning of its name that is
// known.
func flagFor(field string) string {
	best, name := "", field
	for beginning, flag := range flagOf {
		if strings.HasPrefix(field, beginning) && len(beginning) > len(best) {
			best, name = beginning, flag
		}
	}
	return name
}

var flagOf = map[string]string{
	"url": "URL", "kind": "--kind", "timeout": "--timeout", "degraded_over": "--degraded-over", "headers": "--header",
	"request": "--method", "request.params": "--params", "request.expect": "--expect", "request.batch": "--batch", "request.notify": "--notify",
	"command": "--command", "command.env": "--env", "command.dir": "--dir",
	"subscribe": "--subscribe", "framing": "--framing", "ip_version": "--ip-version", "http_version": "--http-version",
	"tls": "--ca, --cert, --key, --server-name, --insecure", "tls.ca": "--ca", "tls.client_cert": "--cert", "tls.client_key": "--key", "tls.server_name": "--server-name", "tls.insecure": "--insecure", "tls.expiry_warning": "--expiry-warning",
	"oauth": "--oauth-client-id", "oauth.client_secret": "--oauth-client-secret", "oauth.scopes": "--oauth-scope",
	"oauth.token_url": "--oauth-token-url", "oauth.resource": "--oauth-resource",
	"chain": "--chain", "chain.lagging": "--lagging", "chain.syncing": "--syncing", "chain.max_age": "--max-age", "canary": "--canary", "canary.arguments": "--canary-arguments", "canary.expect": "--canary-expect",
	"acp_variant": "--acp-variant", "lsp": "--allow-exit",
}

// headerFlag collects headers as they are typed. It never fails, so that no value ends up in a message of package flag.
type headerFlag []string

func (h *headerFlag) String() string { return "" }

func (h *headerFlag) Set(text string) error {
	*h = append(*h, text)
	return nil
}

// headers reads what was collected. Every value is treated as a secret: who types a header on a command line does not
// say which ones are.
func (h headerFlag) headers() (headers []probe.Header, mistakes []error) {
	for _, text := range h {
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			mistakes = append(mistakes, errors.New("--header must be written like 'Name: value'"))
			continue
		}
		headers = append(headers, probe.Header{Name: strings.TrimSpace(name), Value: strings.Trim(value, " \t"), Secret: true})
	}
	return headers, mistakes
}

func exitFor(v probe.Verdict) error {
	switch v {
	case probe.Up:
		return nil
	case probe.Down, probe.Degraded:
		return exit(exitFailed)
	default:
		return exit(exitUnknown)
	}
}

// milliseconds writes a latency as people read it: three figures are enough.
func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d == 0:
		return ""
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}
