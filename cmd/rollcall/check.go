package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// check probes one endpoint once, from wherever this command runs: it may dial any address.
func check(ctx context.Context, args []string, std stdio) error {
	target, show, err := readCheck(args, std)
	if err != nil {
		return err
	}
	prober := &probe.Prober{Version: versionString(), Egress: probe.Egress{Any: true}}
	result := prober.Probe(ctx, target)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if show.json {
		err = writeJSON(std.out, api.CheckJSON(store.Check{ScheduledAt: result.StartedAt, Result: result}))
	} else {
		err = newReport(std).print(target, result, show.transcript)
	}
	if err != nil {
		return err
	}
	return exitFor(result.Verdict)
}

// shown is what of a check is printed, and how.
type shown struct{ json, transcript bool }

func readCheck(args []string, std stdio) (probe.Target, shown, error) {
	var show shown
	var headers headerFlag
	var kind, params string
	t := probe.Target{}
	fs := newFlags("check", "check URL [flags]", std)
	fs.StringVar(&kind, "kind", string(probe.KindAuto), "`kind` of endpoint: "+kindList())
	fs.StringVar(&t.Method, "method", "", "`method` to call, for kind jsonrpc")
	fs.StringVar(&params, "params", "", "`JSON` array or object of parameters, for kind jsonrpc")
	fs.Var(&headers, "header", "`'Name: value'` to send with every request; may be given several times")
	fs.DurationVar(&t.Timeout, "timeout", probe.DefaultTimeout, "`duration` the whole check may take")
	fs.BoolVar(&show.json, "json", false, "print the check as JSON")
	fs.BoolVar(&show.transcript, "transcript", false, "print every message as sent and received, secrets cut out")
	rest, err := fs.parse(args)
	if _, ok := errors.AsType[usageError](err); err != nil && !ok {
		return t, show, err
	}
	mistakes := joined(err)
	switch {
	case len(rest) == 1:
		t.URL = rest[0]
	case len(rest) == 0:
		mistakes = append(mistakes, errors.New("which URL? write it like rollcall check https://mcp.example.com/mcp"))
	default:
		mistakes = append(mistakes, errors.New("one URL at a time"))
	}
	if t.Timeout == 0 {
		mistakes = append(mistakes, errors.New("--timeout must be longer than zero"))
	}
	t.Kind, t.Transcript = probe.Kind(kind), show.transcript
	if t.Kind == probe.KindAuto && t.Method != "" {
		t.Kind = probe.KindJSONRPC
	}
	if params != "" && t.Method == "" {
		mistakes = append(mistakes, errors.New("--params: need a --method"))
	} else if params != "" {
		t.Params = json.RawMessage(params)
	}
	var headerMistakes []error
	t.Headers, headerMistakes = headers.headers()
	mistakes = append(mistakes, headerMistakes...)
	if len(rest) == 1 {
		mistakes = append(mistakes, problemErrors(t.Validate())...)
	}
	if len(mistakes) > 0 {
		return t, show, usageError{errors.Join(mistakes...)}
	}
	return t, show, nil
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
		name, ok := flagOf[p.Field]
		switch {
		case ok:
		case strings.HasPrefix(p.Field, "headers"):
			name = "--header"
		default:
			name = p.Field
		}
		errs = append(errs, fmt.Errorf("%s: %s", name, strings.ReplaceAll(p.Message, "request.method", "--method")))
	}
	return errs
}

// flagOf is how a member of a target is given on the command line.
var flagOf = map[string]string{
	"url": "URL", "kind": "--kind", "timeout": "--timeout", "request": "--method", "request.method": "--method", "request.params": "--params",
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
