package alerts

import "github.com/rollcallhq/rollcall/probe"

// meanings says in one plain sentence what a class most likely means to whoever has to mend the endpoint. Every class
// that can decide a verdict other than up is here, and those that warn of an end.
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

	probe.ClassProbeError:      "The probe could not ask: something is wrong where it runs, such as its resolver or its route.",
	probe.ClassEgressBlocked:   "The name leads to an address that this service must not dial: often a private one, or DNS that was changed.",
	probe.ClassProbeRejected:   "The server is alive and refuses the form of our request: the mistake may be ours.",
	probe.ClassLocationOffline: "The location that asked has lost its own network: nothing was learnt about the endpoint.",
	probe.ClassRateLimited:     "The endpoint asks us to come less often, or to pay: check it less often, or raise its quota.",
	probe.ClassBlocked:         "A wall against bots answered in place of the endpoint: let our addresses or User-Agent through.",
	probe.ClassAuthServer:      "No access token could be had: the authorization server is in trouble, or cannot be found.",

	probe.ClassHostRejected:       "The server does not accept the name that it was called by: its list of allowed hosts lacks this one.",
	probe.ClassAuthRequired:       "The endpoint is alive and wants credentials, of which it was given none: add them, or see who began to ask for them.",
	probe.ClassAuthForbidden:      "The endpoint knows our credentials and says that they do not suffice: a scope or a permission is missing.",
	probe.ClassCredentialRejected: "The endpoint no longer accepts our credential: it has expired, was revoked, or was replaced.",
	probe.ClassCredentialExpiring: "When the credential ends, the endpoint turns us away, and with us whoever uses the same: replace it before.",
	probe.ClassTLSExpiring:        "When the certificate ends, clients refuse to connect: whatever should have renewed it has not.",

	probe.ClassVersionUnofficial: "The server speaks a version of the protocol that no specification knows: it was most likely built on a draft.",
	probe.ClassHandshakeInvalid:  "The handshake lacks what the specification requires: strict clients will turn away.",
	probe.ClassCapabilityMissing: "The server does not offer what an endpoint of this kind should: it may be another server than meant.",
	probe.ClassSessionLost:       "The server forgot the session in the middle of a conversation: it restarts, or several of it share no sessions.",
	probe.ClassSchemaInvalid:     "An answer does not have the shape that its schema requires: strict clients will refuse it.",
	probe.ClassCursorLoop:        "The pages of a list go round in circles: clients that read all of them never come to an end.",
	probe.ClassPageLimit:         "A list is longer than anybody can use: its pages most likely never end.",
	probe.ClassToolError:         "The server is well and the tool that was called as a canary failed: most often something behind it is not well.",
	probe.ClassCanaryFailed:      "The tool that is called as a canary cannot be called, or answers something else than it should.",
	probe.ClassCardInvalid:       "The agent's card lacks what its specification requires: other agents may not find out how to talk to it.",
	probe.ClassDialectMismatch:   "The agent speaks another version of its protocol than its card says: clients that believe the card will fail.",
	probe.ClassSlow:              "The answers are right and take too long: the server is overloaded, or waits for something behind it.",

	probe.ClassStarting:    "The node is alive and still warming up: it was restarted, and is not ready to answer.",
	probe.ClassSyncing:     "The node says itself that it is catching up: what it answers is older than its chain.",
	probe.ClassHeadLagging: "The node is somewhat behind the others of its chain: it is slow, or has too few peers.",
	probe.ClassChainHalted: "Every endpoint of the chain stands still at the same height: it is the chain, not the node.",
	probe.ClassChainFork:   "The node follows another branch than most of its peers: what it says of recent blocks may be wrong.",
	probe.ClassFinality:    "Blocks come and are not made final: too few validators agree, or the node follows a branch of its own.",

	probe.ClassVersionUnsupported: "The server is alive but speaks no protocol version that we share with it.",
	probe.ClassAssertionFailed:    "The server answered, but not with what an endpoint of this kind must answer.",
}

// meaning returns the likely meaning of a class, empty for a class that is not in the list.
func meaning(c probe.Class) string { return meanings[c] }
