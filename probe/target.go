package probe

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Problem is one thing wrong with a value somebody handed in. Field is the name the value goes by in JSON.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Bounds on what a target may hold, generous for any real endpoint.
const (
	maxURL         = 2048
	maxHeaders     = 50
	maxHeaderBytes = 16 << 10
	maxParams      = 64 << 10
)

// reservedHeaders are set by the protocol conversation itself; a target that set them too would break it.
var reservedHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "Mcp-Method", "Mcp-Name",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// Validate returns everything that is wrong with t, nil when it can be probed. No problem repeats a secret.
func (t Target) Validate() []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	if !slices.Contains(kinds, t.Kind) {
		add("kind", "unknown kind %q: use one of %s", clip(string(t.Kind), 40), joinKinds())
	}
	switch {
	case t.Command != nil && t.URL != "":
		add("url", "goes without a command: an endpoint is one or the other")
	case t.Command != nil:
		problems = append(problems, t.Command.problems()...)
	default:
		if msg := urlProblem(t.URL); msg != "" {
			add("url", "%s", msg)
		}
	}
	problems = append(problems, headerProblems(t.Headers)...)
	problems = append(problems, requestProblems(&t)...)
	problems = append(problems, t.Options.TLS.problems()...)
	problems = append(problems, t.Options.Canary.problems()...)
	problems = append(problems, t.Options.versionProblems()...)
	problems = append(problems, t.Options.OAuth.problems(&t)...)
	problems = append(problems, t.chainProblems()...)
	problems = append(problems, t.kindProblems()...)
	problems = append(problems, t.unusedProblems()...)
	if t.Timeout < 0 {
		add("timeout", "must be longer than zero")
	}
	if t.DegradedOver < 0 {
		add("degraded_over", "must not be negative: use 0s to switch it off")
	}
	return problems
}

// urlProblem says in words why raw is not the URL of an endpoint, without repeating it: it may hold a key.
func urlProblem(raw string) string {
	const example = "write it like https://mcp.example.com/mcp"
	if raw == "" {
		return "is required: " + example
	}
	if len(raw) > maxURL {
		return fmt.Sprintf("is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "cannot be read as a URL: " + example
	}
	if u.Scheme == "unix" {
		return unixProblem(u)
	}
	if !slices.Contains(schemes, u.Scheme) {
		if u.Scheme == "" || u.Host == "" {
			return "has no scheme and host: " + example
		}
		return fmt.Sprintf("has the unsupported scheme %q: use %s", clip(u.Scheme, 20), strings.Join(schemes, ", "))
	}
	if u.Hostname() == "" {
		return "has no host: " + example
	}
	if socketScheme(u.Scheme) && u.Port() == "" {
		return "has no port: write it like " + u.Scheme + "://node.example.com:50001"
	}
	if socketScheme(u.Scheme) && (strings.Trim(u.Path, "/") != "" || u.RawQuery != "") {
		return "has a path or a query, which a bare socket knows nothing of: leave it out"
	}
	if u.Fragment != "" {
		return "has a fragment (#…), which is never sent to a server: leave it out"
	}
	if u.User != nil {
		return "holds a user name or password: put them into a secret Authorization header"
	}
	return ""
}

// kindProblems returns what does not go with the kind of the target.
func (t *Target) kindProblems() []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	o := t.Options
	if o.Framing != "" && o.Framing != FramingLine && o.Framing != FramingHeader {
		add("framing", "must be %s or %s, or left out", FramingLine, FramingHeader)
	}
	if o.ACP != "" && !slices.Contains([]ACPVariant{ACPCommunication, ACPClient, ACPRuns}, o.ACP) {
		add("acp_variant", "must be %s, %s or %s, or left out", ACPCommunication, ACPClient, ACPRuns)
	}
	if o.ACP != "" && t.Kind != KindACP {
		add("acp_variant", "goes with kind acp only")
	}
	if o.Canary != nil && t.Kind != KindMCP && t.Kind != KindAuto {
		add("canary", "goes with kinds mcp and auto only")
	}
	if t.Command == nil && t.URL == "" {
		return problems // which is said already
	}
	switch {
	case t.Kind == KindLSP && t.Command == nil && t.overHTTP():
		add("url", "a language server is reached by tcp, tls, unix, ws or a command, not over HTTP")
	case t.Kind == KindA2A && (t.Command != nil || !t.overHTTP()):
		add("url", "an A2A agent is reached over http or https")
	case t.Kind == KindACP && o.ACP == ACPCommunication && (t.Command != nil || !t.overHTTP()):
		add("url", "the Agent Communication Protocol is REST: use http or https")
	}
	return problems
}

// Bounds on a command, generous for any real one.
const (
	maxArgs      = 200
	maxArgsBytes = 256 << 10
)

// problems returns everything that is wrong with a command, without repeating it: arguments may hold keys.
func (t *Command) problems() []Problem {
	var problems []Problem
	add := func(field, message string) { problems = append(problems, Problem{field, message}) }
	size := 0
	for _, arg := range t.Args {
		size += len(arg)
	}
	switch {
	case len(t.Args) == 0 || t.Args[0] == "":
		add("command.args", "names no program")
	case len(t.Args) > maxArgs || size > maxArgsBytes:
		add("command.args", fmt.Sprintf("are more than %d, or together larger than %d bytes", maxArgs, maxArgsBytes))
	case strings.Contains(strings.Join(t.Args, ""), "\x00"):
		add("command.args", "hold a NUL byte")
	}
	for i, v := range t.Env {
		size += len(v.Name) + len(v.Value)
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00") {
			add(fmt.Sprintf("command.env[%d]", i), "is not a variable: a name without = and a value, neither with a NUL byte")
		}
	}
	if len(t.Env) > maxArgs || size > 2*maxArgsBytes {
		add("command.env", "holds too many variables, or too large ones")
	}
	if strings.Contains(t.Dir, "\x00") {
		add("command.dir", "holds a NUL byte")
	}
	return problems
}

// schemes are how the URL of an endpoint may begin.
var schemes = []string{"http", "https", "ws", "wss", "tcp", "tls", "unix"}

// scheme returns the scheme of a URL, lower case; empty when it has none.
func scheme(raw string) string {
	before, _, ok := strings.Cut(raw, ":")
	if !ok {
		return ""
	}
	return strings.ToLower(before)
}

// socketScheme reports whether a scheme stands for a socket that carries nothing but messages.
func socketScheme(scheme string) bool { return scheme == "tcp" || scheme == "tls" }

func unixProblem(u *url.URL) string {
	if u.Host != "" || !strings.HasPrefix(u.Path, "/") || len(u.Path) < 2 {
		return "is not the path of a socket: write it like unix:///run/lightning/lightning-rpc"
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "has a query or fragment, which a socket knows nothing of: leave it out"
	}
	return ""
}

func headerProblems(headers []Header) []Problem {
	var problems []Problem
	if len(headers) > maxHeaders {
		problems = append(problems, Problem{"headers", fmt.Sprintf("more than %d headers", maxHeaders)})
	}
	size := 0
	for i, h := range headers {
		field := fmt.Sprintf("headers[%d]", i)
		size += len(h.Name) + len(h.Value)
		switch {
		case h.Name == "":
			problems = append(problems, Problem{field + ".name", "is required"})
		case !httpguts.ValidHeaderFieldName(h.Name):
			problems = append(problems, Problem{field + ".name", "is not a header name: letters, digits and hyphens only"})
		case slices.ContainsFunc(reservedHeaders, func(r string) bool { return strings.EqualFold(r, h.Name) }):
			problems = append(problems, Problem{field + ".name", h.Name + " is set by the probe itself: leave it out"})
		}
		if !httpguts.ValidHeaderFieldValue(h.Value) {
			problems = append(problems, Problem{field + ".value", "holds a line break or another control character"})
		}
	}
	if size > maxHeaderBytes {
		problems = append(problems, Problem{"headers", fmt.Sprintf("together larger than %d bytes", maxHeaderBytes)})
	}
	return problems
}

func joinKinds() string {
	names := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// clip shortens s to at most n bytes without cutting a character in two.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
