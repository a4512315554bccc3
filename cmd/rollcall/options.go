package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
)

// optionFlags are the flags of `rollcall check` that say more than whom to ask and what.
type optionFlags struct {
	probe.Options

	expect, batch           string
	tool, arguments, answer string
	ca, cert, key           string
	framing, ip, http, acp  string
	oauth                   probe.OAuth
	scopes                  listFlag
}

// register adds the flags to a command.
func (o *optionFlags) register(fs *flagSet) {
	fs.StringVar(&o.expect, "expect", "", "what the answer must hold: a CEL `expression` like 'result.height > 100', or the JSON of request.expect")
	fs.StringVar(&o.batch, "batch", "", "several requests in one array, as `JSON`: [{\"method\": …, \"params\": …}, …]")
	fs.BoolVar(&o.Notify, "notify", false, "send --method as a notification")
	fs.BoolVar(&o.Subscribe, "subscribe", false, "wait for an event of a chain's subscription, over ws, wss, tcp, tls or unix")
	fs.StringVar(&o.framing, "framing", "", "`framing` of messages on a bare connection: line or content-length")
	fs.StringVar(&o.Chain.ID, "chain", "", "`chain` that the node must serve: a name like ethereum, or an id")
	fs.Int64Var(&o.Chain.Lagging, "lagging", 0, "`blocks` behind other nodes that are degraded (default: what is known of the chain)")
	fs.Int64Var(&o.Chain.Syncing, "syncing", 0, "`blocks` behind other nodes that are down (default: what is known of the chain)")
	fs.DurationVar(&o.Chain.MaxAge, "max-age", 0, "`age` of the newest block that is degraded; negative for chains that make blocks on demand")
	fs.StringVar(&o.tool, "canary", "", "`tool` of an MCP server to call, a read-only one")
	fs.StringVar(&o.arguments, "canary-arguments", "", "`JSON` object of arguments for --canary")
	fs.StringVar(&o.answer, "canary-expect", "", "what its result must hold: an `expression` or JSON as for --expect")
	fs.StringVar(&o.ca, "ca", "", "`file` of PEM certificates that may vouch for the server")
	fs.StringVar(&o.cert, "cert", "", "`file` with a client certificate, PEM")
	fs.StringVar(&o.key, "key", "", "`file` with its key, PEM")
	fs.StringVar(&o.TLS.ServerName, "server-name", "", "`name` to ask for and to find in the certificate")
	fs.DurationVar(&o.TLS.ExpiryWarning, "expiry-warning", 0, "`duration` before the end of the certificate from which to warn (default 336h); negative for never")
	fs.BoolVar(&o.TLS.Insecure, "insecure", false, "accept any certificate, with a warning")
	fs.StringVar(&o.ip, "ip-version", "", "`version` of IP: 4 or 6")
	fs.StringVar(&o.http, "http-version", "", "`version` of HTTP: 1.1 or 2")
	fs.StringVar(&o.oauth.ClientID, "oauth-client-id", "", "`id` of a client that gets a token by client credentials")
	fs.StringVar(&o.oauth.ClientSecret, "oauth-client-secret", "", "its `secret`; better as "+envName("oauth-client-secret")+", which no list of processes shows")
	fs.StringVar(&o.oauth.TokenURL, "oauth-token-url", "", "`URL` of the token endpoint (default: discovered)")
	fs.StringVar(&o.oauth.Resource, "oauth-resource", "", "resource `indicator` of the token (default: the endpoint)")
	fs.Var(&o.scopes, "oauth-scope", "`scope` to ask for; may be given several times")
	fs.StringVar(&o.acp, "acp-variant", "", "`variant` of ACP: communication, client or runs")
	fs.BoolVar(&o.LSP.AllowExit, "allow-exit", false, "end a language server's session with shutdown and exit over a socket, too")
}

// read returns what was given; the mistakes are those of reading it, not of what it says.
func (o *optionFlags) read() (probe.Options, []error) {
	var mistakes []error
	note := func(name string, err error) {
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("--%s: %w", name, err))
		}
	}
	options := o.Options
	options.Framing, options.ACP = probe.Framing(o.framing), probe.ACPVariant(o.acp)
	options.IP, options.HTTP = probe.IPVersion(o.ip), probe.HTTPVersion(o.http)

	var err error
	options.Expect, err = readExpect(o.expect)
	note("expect", err)
	if o.batch != "" {
		note("batch", readJSON(o.batch, &options.Batch))
	}
	if o.tool != "" || o.arguments != "" || o.answer != "" {
		options.Canary = &probe.Canary{Tool: o.tool}
		switch {
		case o.arguments == "":
		case json.Valid([]byte(o.arguments)):
			options.Canary.Arguments = json.RawMessage(o.arguments)
		default:
			note("canary-arguments", errors.New("are not JSON"))
		}
		options.Canary.Expect, err = readExpect(o.answer)
		note("canary-expect", err)
	}
	for _, file := range []struct {
		flag, name string
		into       *string
	}{{"ca", o.ca, &options.TLS.CA}, {"cert", o.cert, &options.TLS.ClientCert}, {"key", o.key, &options.TLS.ClientKey}} {
		if file.name == "" {
			continue
		}
		content, err := os.ReadFile(file.name)
		note(file.flag, err)
		*file.into = string(content)
	}
	if o.oauth.ClientID != "" || o.oauth.ClientSecret != "" || o.oauth.TokenURL != "" || o.oauth.Resource != "" || len(o.scopes) > 0 {
		o.oauth.Scopes = o.scopes
		options.OAuth = &o.oauth
	}
	return options, mistakes
}

// readExpect reads an expectation: a JSON object is one in full, anything else is a CEL expression.
func readExpect(text string) (e probe.Expect, err error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return probe.Expect{CEL: text}, nil
	}
	return e, readJSON(text, &e)
}

// readJSON reads text, which must hold nothing but the members of into.
func readJSON(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("cannot be read as JSON: %w", err)
	}
	if decoder.More() {
		return errors.New("holds something behind the JSON")
	}
	return nil
}
