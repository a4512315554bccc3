package probe

import (
	"slices"
)

// unusedProblems returns the settings that no check of t would ever use. They are refused and not passed over: who gives a
// client certificate or a header believes that it is shown.
func (t *Target) unusedProblems() []Problem {
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
	refuse(o.Chain != (Chain{}) && t.Kind != KindAuto && !slices.Contains(families, t.Kind) && slices.Contains(Kinds(), t.Kind), "chain",
		"goes with the kinds of chains and auto only")
	refuse(o.LSP != (LSPOptions{}) && t.Kind != KindLSP && slices.Contains(Kinds(), t.Kind), "lsp", "goes with kind lsp only")
	command, web := t.Command != nil, slices.Contains([]string{"http", "https", "ws", "wss"}, from)
	if !command && !slices.Contains(schemes, from) {
		return problems // nobody can say what goes with it
	}
	refuse(command && len(t.Headers) > 0, "headers", "of no use to a command: a process finds its credentials in its environment")
	refuse(!command && !web && len(t.Headers) > 0, "headers", "of no use without http, https, ws or wss: nothing else carries headers")
	refuse(web && framingKnown(o.Framing), "framing", "goes with tcp, tls, unix and a command only: HTTP and WebSocket tell messages apart themselves")
	refuse(o.HTTP.known() && (command || !t.overHTTP()), "http_version", "goes with http and https only")
	refuse(o.IP.known() && (command || from == "unix"), "ip_version", "goes with a host, which a command and a unix socket do not have")
	// A plain http:// may lead to https:// by a redirect or by an agent's card, and a token may be had over TLS: what is said
	// of TLS is of use there.
	refuse(o.OAuth == nil && o.TLS != (TLS{}) && (command || slices.Contains([]string{"ws", "tcp", "unix"}, from)), "tls",
		"goes with https, wss and tls only: without them nothing is encrypted")
	return problems
}

// The choices that are none are told of elsewhere, once.
func framingKnown(f Framing) bool { return f == FramingLine || f == FramingHeader }
func (v IPVersion) known() bool   { return v == IPv4 || v == IPv6 }
func (v HTTPVersion) known() bool { return v == HTTP1 || v == HTTP2 }
