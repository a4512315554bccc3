package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
)

// flagSet reads the flags of one command: from the environment first, then from arguments in which flags may stand
// before or after everything else. It collects every mistake.
type flagSet struct {
	*flag.FlagSet
	usage string
	std   stdio
}

func newFlags(name, usage string, std stdio) *flagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return &flagSet{FlagSet: fs, usage: usage, std: std}
}

// parse returns the arguments that are not flags. Its error is a usageError with every mistake, or exit when help was
// asked for and given.
func (f *flagSet) parse(args []string) ([]string, error) {
	mistakes := f.readEnvironment()
	var rest []string
	for len(args) > 0 {
		err := f.FlagSet.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			f.printHelp()
			return nil, exit(exitOK)
		}
		if err != nil {
			mistakes = append(mistakes, errors.New(twoDashes(err.Error())))
		}
		args = f.FlagSet.Args()
		if err == nil && len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	if len(mistakes) > 0 {
		return nil, usageError{errors.Join(mistakes...)}
	}
	return rest, nil
}

// parseAlone is parse for a command that takes flags only.
func (f *flagSet) parseAlone(args []string) error {
	rest, err := f.parse(args)
	if err == nil && len(rest) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", rest[0])}
	}
	return err
}

// twoDashes spells a flag in one of package flag's errors as it is spelled everywhere else.
func twoDashes(message string) string {
	for _, before := range []string{"defined: -", "flag -", "argument: -", "for -"} {
		message = strings.Replace(message, before, before+"-", 1)
	}
	return message
}

// readEnvironment sets every flag from its variable: --some-flag from ROLLCALL_SOME_FLAG. The variable's value is not
// repeated in an error: it may be a secret.
func (f *flagSet) readEnvironment() (mistakes []error) {
	f.VisitAll(func(fl *flag.Flag) {
		name := envName(fl.Name)
		value, ok := f.std.env(name)
		if !ok {
			return
		}
		if err := fl.Value.Set(value); err != nil {
			mistakes = append(mistakes, fmt.Errorf("environment variable %s cannot be read as %s", name, kindOf(fl)))
			_ = fl.Value.Set(fl.DefValue) // so that the value is not found wrong as well
		}
	})
	return mistakes
}

func envName(flagName string) string {
	return "ROLLCALL_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

func kindOf(fl *flag.Flag) string {
	kind, _ := flag.UnquoteUsage(fl)
	if kind == "" {
		return "true or false"
	}
	return "a " + kind
}

func (f *flagSet) printHelp() {
	fmt.Fprintf(f.std.out, "Usage: rollcall %s\n\n", f.usage)
	f.VisitAll(func(fl *flag.Flag) {
		kind, usage := flag.UnquoteUsage(fl)
		name := strings.TrimSpace("--" + fl.Name + " " + kind)
		if fl.DefValue != "" && fl.DefValue != "false" && fl.DefValue != "0" && fl.DefValue != "0s" {
			usage += " (default " + fl.DefValue + ")"
		}
		fmt.Fprintf(f.std.out, "  %-28s %s\n", name, usage)
	})
}

// prefixes is a flag of address ranges, separated by commas or given several times.
type prefixes []netip.Prefix

func (p *prefixes) String() string {
	texts := make([]string, len(*p))
	for i, prefix := range *p {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ",")
}

func (p *prefixes) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			addr, addrErr := netip.ParseAddr(part)
			if addrErr != nil {
				return errors.New("not an address range: write it like 10.0.0.0/8 or fd00::/8")
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		*p = append(*p, prefix.Masked())
	}
	return nil
}

// addresses is a flag of hosts with ports, separated by commas or given several times.
type addresses []string

func (a *addresses) String() string { return strings.Join(*a, ",") }

func (a *addresses) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		host, port, err := net.SplitHostPort(part)
		if err != nil || host == "" || port == "" {
			return errors.New("not a host with a port: write it like one.one.one.one:443 or 192.0.2.1:53")
		}
		*a = append(*a, part)
	}
	return nil
}
