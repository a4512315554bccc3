package probe

import (
	"slices"
)

// unusedProblems returns the settings that no check of t would ever use. They are refused and not passed over: who gives a
// client certificate or a header believes that it is shown.
func (t Target) unusedProblems() []Problem {
	if t.Command == nil && t.URL == "" {
		return nil // which is said already
	}
	var problems []Problem
	o, from := t.Options, scheme(t.URL)
	refuse := func(set bool, field, message string) {
		if set {
			problems = append(problems, Problem{field, message})
		}
	}
	// A plain http:// may lead to https:// by a redirect or by an agent's card, so what is said of TLS is of use there.
	process, web := t.Command != nil, slices.Contains([]string{"http", "https", "ws", "wss"}, from)
	known := process || slices.Contains(schemes, from)
	if !known {
		return nil // nobody can say what goes with it
	}
	refuse(process && len(t.Headers) > 0, "headers", "go with a url, not with a command: a process finds its credentials in its environment")
	refuse(!process && !web && len(t.Headers) > 0, "headers", "go with http, https, ws and wss only: nothing else carries headers")
	refuse(web && framingKnown(o.Framing), "framing", "goes with tcp, tls, unix and a command only: HTTP and WebSocket tell messages apart themselves")
	refuse(o.HTTP.known() && (process || !t.overHTTP()), "http_version", "goes with http and https only")
	refuse(o.IP.known() && (process || from == "unix"), "ip_version", "goes with a host, which a command and a unix socket do not have")
	refuse(o.TLS != (TLS{}) && (process || slices.Contains([]string{"ws", "tcp", "unix"}, from)), "tls",
		"goes with https, wss and tls only: without them nothing is encrypted")
	refuse(o.Chain != (Chain{}) && t.Kind != KindAuto && !slices.Contains(families, t.Kind) && slices.Contains(Kinds(), t.Kind), "chain",
		"goes with the kinds of chains and auto only")
	refuse(o.LSP != (LSPOptions{}) && t.Kind != KindLSP && slices.Contains(Kinds(), t.Kind), "lsp", "goes with kind lsp only")
	return problems
}

// The choices that are none are told of elsewhere, once.
func framingKnown(f Framing) bool { return f == FramingLine || f == FramingHeader }
func (v IPVersion) known() bool   { return v == IPv4 || v == IPv6 }
func (v HTTPVersion) known() bool { return v == HTTP1 || v == HTTP2 }
