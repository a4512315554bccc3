package alerts

import "github.com/rollcallhq/rollcall/probe"

// meanings says in one plain sentence what a class most likely means to whoever has to mend the endpoint. Every class
// that can decide a down verdict is here.
var meanings = map[probe.Class]string{
	probe.ClassDNS:     "The host name has no address: the DNS record is missing, or its name server does not answer.",
	probe.ClassConnect: "No connection came about: the process is not running, or a firewall or load balancer turns us away.",
	probe.ClassTLS:     "The TLS handshake failed: most often the certificate has expired or is for another name.",
	probe.ClassTimeout: "The endpoint did not answer in time: it hangs, is overloaded, or waits for something behind it.",

	probe.ClassHTTPStatus:    "Something in front of the server answered in its place, such as a gateway that cannot reach it.",
	probe.ClassRedirect:      "The endpoint redirects to where a probe must not follow: its address has probably changed.",
	probe.ClassContentType:   "The answer was not JSON: most often an error page or login page stands where the endpoint was.",
	probe.ClassTruncatedBody: "The answer broke off: the server or a proxy closed the connection half-way.",
	probe.ClassBodyTooLarge:  "The answer was larger than any reasonable one: the server is sending something else.",

	probe.ClassSSEFraming:    "The event stream was malformed: the server or a proxy in front of it garbles events.",
	probe.ClassSSENoResponse: "The event stream ended without an answer: the server dropped the request, or a proxy cut the stream.",

	probe.ClassInvalidJSON:     "The answer was not valid JSON: the server probably crashed half-way through writing it.",
	probe.ClassInvalidEnvelope: "The answer was JSON, but not JSON-RPC 2.0: another service may be answering at this address.",
	probe.ClassIDMismatch:      "The answer belonged to another request: the server or a cache in front of it mixes up answers.",
	probe.ClassRPCError:        "The server is reachable and refused the request with an error of its own.",

	probe.ClassFraming:            "Messages on the connection cannot be told apart: something else than the expected protocol is spoken there.",
	probe.ClassSSEEndpointMissing: "The event stream did not say where to post: a proxy holds it back, or it is no MCP server.",
	probe.ClassSSEEndpointInvalid: "The event stream names a place to post to that cannot be reached: often the server's inner address.",

	probe.ClassSpawn:     "The command could not be started: the program is missing, or may not be run.",
	probe.ClassExitEarly: "The process ended before it had answered: it most likely lacks an argument, a variable or a service.",

	probe.ClassWrongChain:         "The node serves another chain than the one expected: its network setting is wrong, or the address leads elsewhere.",
	probe.ClassHeadBehind:         "The node is far behind the others of its chain: it has lost its peers, or cannot keep up.",
	probe.ClassHeadStalled:        "The node answers, but no block has come for much longer than its chain takes to make one.",
	probe.ClassSubscriptionSilent: "The node accepts a subscription and delivers nothing, though its calls may be answered.",

	probe.ClassVersionUnsupported: "The server is alive but speaks no protocol version that we share with it.",
	probe.ClassAssertionFailed:    "The server answered, but not with what an endpoint of this kind must answer.",
}

// meaning returns the likely meaning of a class, empty for a class that is not in the list.
func meaning(c probe.Class) string { return meanings[c] }
