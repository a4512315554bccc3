package web

import (
	"strings"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Tag is how a status or verdict is shown: always a word and a shape, with a colour to help.
type Tag struct {
	Tone string // closed list; names the CSS class and the shape
	Word string
}

var tags = map[string]Tag{
	string(store.StatusUp):       {"up", "Up"},
	string(store.StatusDegraded): {"degraded", "Degraded"},
	string(store.StatusDown):     {"down", "Down"},
	string(store.StatusGated):    {"gated", "Gated"},
	string(store.StatusUnknown):  {"unknown", "Unknown"},
	string(store.StatusPending):  {"pending", "Pending"},
	string(store.StatusPaused):   {"paused", "Paused"},
}

// tagOf takes a store.Status or a probe.Verdict; anything it does not know is shown as unknown.
func tagOf(status any) Tag {
	var name string
	switch s := status.(type) {
	case store.Status:
		name = string(s)
	case probe.Verdict:
		name = string(s)
	case string:
		name = s
	}
	if t, ok := tags[name]; ok {
		return t
	}
	return tags[string(store.StatusUnknown)]
}

// kindWords names a kind for people.
func kindWords(k probe.Kind) string {
	switch k {
	case probe.KindAuto:
		return "Auto"
	case probe.KindMCP:
		return "MCP"
	case probe.KindJSONRPC:
		return "JSON-RPC"
	case probe.KindEVM:
		return "EVM node"
	}
	return string(k)
}

// meaning is what a class means to somebody who reads it for the first time at night, and what to look at.
type meaning struct{ says, advice string }

var meanings = map[probe.Class]meaning{
	probe.ClassProbeError:         {"the request could not be made", "Look at the endpoint's settings: the probe could not turn them into a request."},
	probe.ClassEgressBlocked:      {"the address may not be dialled", "The host resolves to an address outside of what this service may reach. An operator can allow it with --allow-private."},
	probe.ClassProbeRejected:      {"the server refused the form of our request", "The server is alive. The mistake may be on the side of the probe; please report it."},
	probe.ClassDNS:                {"the host name has no address", "Check the name's DNS records and whether the domain has expired."},
	probe.ClassConnect:            {"no connection", "Nothing accepts connections there, or something between drops them. Check that the process runs, its port, and firewalls."},
	probe.ClassTLS:                {"the TLS handshake failed", "Check the certificate: its expiry, its names, and that the whole chain is sent."},
	probe.ClassTimeout:            {"no answer in time", "The server took the request and did not finish. Look at its load and at what it waits for."},
	probe.ClassHTTPStatus:         {"an HTTP error that is not JSON-RPC", "A proxy or gateway often answers in place of a server that is gone. Check what stands behind it, and the path."},
	probe.ClassRedirect:           {"a redirect that must not be followed", "Register the address that it leads to."},
	probe.ClassRateLimited:        {"asked to come less often", "The endpoint may be healthy. Check it less often, or with credentials of its own."},
	probe.ClassBlocked:            {"a bot wall answered", "Let the probe through by its User-Agent or address."},
	probe.ClassHostRejected:       {"the server does not accept this host name", "Add the host name to the server's list of allowed hosts."},
	probe.ClassAuthRequired:       {"wants credentials", "Add an Authorization header to the endpoint, marked as secret."},
	probe.ClassAuthForbidden:      {"the credentials do not suffice", "Give the credentials the scope that the server asks for."},
	probe.ClassCredentialRejected: {"the credentials are not accepted", "They may have expired or been revoked. Renew them in the endpoint's headers."},
	probe.ClassAuthNotAdvertised:  {"does not say how to authenticate", "A 401 must carry a WWW-Authenticate header (RFC 9110 §11.6.1)."},
	probe.ClassContentType:        {"answered with something that is not JSON-RPC", "An HTML page is often a login or an error of a proxy. Check the path."},
	probe.ClassTruncatedBody:      {"the answer broke off", "The connection was closed in the middle of the body. Look for crashes and proxy limits."},
	probe.ClassBodyTooLarge:       {"the answer is too large", "The probe reads only so much of an answer."},
	probe.ClassSSEFraming:         {"a malformed event stream", "The stream breaks the grammar of server-sent events."},
	probe.ClassSSENoResponse:      {"the stream ended without an answer", "The server opened an event stream and closed it before the response was sent."},
	probe.ClassStreamNotClosed:    {"left its stream open after the answer", "A stream should end once its response was sent."},
	probe.ClassInvalidJSON:        {"the answer is not JSON", "It may be empty, cut short, or have something behind it."},
	probe.ClassInvalidEnvelope:    {"the answer is not JSON-RPC 2.0", "A response has an id, jsonrpc \"2.0\" and exactly one of result and error."},
	probe.ClassIDMismatch:         {"the answer belongs to another request", "The id must come back exactly as it was sent, of the same type."},
	probe.ClassRPCError:           {"answered with a JSON-RPC error", "The server is reachable and says itself that the call failed. Its own log has the rest."},
	probe.ClassVersionUnsupported: {"no protocol version in common", "The server is alive, but speaks versions of MCP that this probe does not know."},
	probe.ClassVersionUnofficial:  {"a protocol version that no specification knows", "Look at which version the server should announce."},
	probe.ClassHandshakeInvalid:   {"the handshake lacks what it must hold", "The result of the first call misses a required member."},
	probe.ClassCapabilityMissing:  {"does not offer what was expected", "Check the capabilities that the server announces."},
	probe.ClassSessionLost:        {"forgot the session in the middle of the check", "With several instances behind a balancer, sessions must stick to one of them or be shared."},
	probe.ClassSchemaInvalid:      {"a result does not have the shape it must have", "A tool, perhaps, without a name or with a schema that is not an object."},
	probe.ClassCursorLoop:         {"the pages of a list go round in circles", "Each cursor must lead on."},
	probe.ClassPageLimit:          {"a list with too many pages", "The probe reads only so many pages."},
	probe.ClassAssertionFailed:    {"a result that this kind of endpoint must not give", "Look at what the node answers: it may be starting or broken."},
	probe.ClassSlow:               {"slower than allowed", "The answer was right but took longer than the endpoint's own limit."},
}

// means says in a few words what a class means; a class that is not in the list stands for itself.
func means(c probe.Class) string {
	if m, ok := meanings[c]; ok {
		return m.says
	}
	return strings.ReplaceAll(string(c), "_", " ")
}

// advice says where to look, empty when there is nothing to say.
func advice(c probe.Class) string { return meanings[c].advice }
