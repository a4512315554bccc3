package probe

// Class says why a step failed, or what a warning is about. The list is closed: classes are stored as they are, never
// renamed and never reused for something else. The taxonomy follows the layers of a check, from our own side of the
// wire up to the meaning of the answer; a step carries the class of the lowest layer that went wrong.
type Class string

// Ours: the probe could not, or would not, ask.
const (
	// ClassProbeError means that we failed before anything could be learnt: a target that cannot be turned into a
	// request, a machine without a route, a socket or a resolver, a check that its caller cancelled. Example: "the
	// resolver of this machine cannot be reached". Verdict unknown.
	ClassProbeError Class = "probe_error"
	// ClassEgressBlocked means that the endpoint's name leads to an address that this service is not allowed to dial.
	// Example: a host that resolves to 169.254.169.254. Verdict unknown.
	ClassEgressBlocked Class = "ssrf_blocked"
	// ClassProbeRejected means that a modern MCP server refused the form of our own request (-32020, -32021, or -32602
	// about _meta): it is alive, the mistake may be ours. Example: -32020 HeaderMismatch. Verdict unknown.
	ClassProbeRejected Class = "probe_rejected"
	// ClassLocationOffline means that the location we asked from has lost its own network: most of its endpoints fail at
	// once, and so do the reference addresses it was given. Example: no reference address answers. Verdict unknown.
	ClassLocationOffline Class = "location_offline"
)

// The network below HTTP.
const (
	// ClassDNS means that the host name has no address. Example: NXDOMAIN. Verdict down.
	ClassDNS Class = "dns"
	// ClassConnect means that no connection came about, that it broke before an answer began, or that what came is not
	// HTTP. Example: connection refused. Verdict down.
	ClassConnect Class = "connect"
	// ClassTLS means that the TLS handshake failed. Example: certificate expired. Verdict down.
	ClassTLS Class = "tls"
	// ClassTLSExpiring is a warning: the certificate ends soon. Example: "the certificate ends in 9 days".
	ClassTLSExpiring Class = "tls_expiring"
	// ClassTLSUnverified is a warning: the endpoint is set to accept any certificate. Example: "the certificate was not
	// verified: signed by an unknown authority".
	ClassTLSUnverified Class = "tls_unverified"
	// ClassTimeout means that the endpoint used up its time; the message says in which phase. Example: "no first byte
	// after 15s". Verdict down.
	ClassTimeout Class = "timeout"
	// ClassFraming means a connection on which messages cannot be told apart. Example: a Content-Length header that is no
	// number. As a warning: a deviation that leaves them readable. Verdict down.
	ClassFraming Class = "framing"
)

// HTTP.
const (
	// ClassHTTPStatus means an HTTP status that the protocol does not allow here, with a body that is not JSON-RPC.
	// Example: 502 from a gateway; as a warning: 200 where 202 is due. Verdict down.
	ClassHTTPStatus Class = "http_status"
	// ClassRedirect means a redirect that a probe must not follow: 301, 302 and 303 lose the body, another host or a step
	// down to http could leak credentials, and more than three hops are a loop. Example: 302 to /login. As a warning: a
	// redirect that was followed. Verdict down.
	ClassRedirect Class = "redirect"
	// ClassRateLimited means that the endpoint asks us to come less often or to pay: 429, 402, or a quota in its own
	// words. Example: -32005 "daily request limit exceeded". Verdict unknown.
	ClassRateLimited Class = "rate_limited"
	// ClassBlocked means that a bot wall answered in place of the endpoint. Example: a "Just a moment…" page. Verdict
	// unknown.
	ClassBlocked Class = "blocked"
	// ClassHostRejected means that the server does not accept the Host or Origin it was called by. Example: 421
	// "Invalid Host header". Verdict degraded.
	ClassHostRejected Class = "host_rejected"
	// ClassAuthRequired means that the endpoint wants credentials and we sent none. Example: 401 with a
	// WWW-Authenticate header, or a bare 403. Verdict gated.
	ClassAuthRequired Class = "auth_required"
	// ClassAuthForbidden means that the credentials sent are known but do not suffice. Example: 403
	// insufficient_scope. Verdict gated.
	ClassAuthForbidden Class = "auth_forbidden"
	// ClassCredentialRejected means that the credentials we were given are not accepted. Example: 401 to a request
	// with an Authorization header. Verdict gated.
	ClassCredentialRejected Class = "credential_rejected"
	// ClassAuthNotAdvertised is a warning beside the three above: a 401 that does not say how to authenticate (RFC 9110
	// §11.6.1 wants WWW-Authenticate). Example: 401 with {"error":"unauthorized"} alone.
	ClassAuthNotAdvertised Class = "auth_not_advertised"
	// ClassAuthServer means that no access token could be had for a reason that is not the endpoint's: the authorization
	// server cannot be found or is in trouble. Example: "the token endpoint answered 503". Verdict unknown.
	ClassAuthServer Class = "auth_server"
	// ClassCredentialExpiring is a warning: the credential in use ends soon. Example: "the token in the Authorization
	// header ends in 20 hours".
	ClassCredentialExpiring Class = "credential_expiring"
	// ClassContentType means a body of a type that cannot hold the answer. Example: an HTML page. As a warning: JSON-RPC
	// sent under a wrong or missing Content-Type. Verdict down.
	ClassContentType Class = "content_type"
	// ClassTruncatedBody means that the body ended before its announced end. Example: a proxy that gives up in the middle
	// of an answer. Verdict down.
	ClassTruncatedBody Class = "truncated_body"
	// ClassBodyTooLarge means that the answer, body or header, is larger than a probe is willing to read. Example: a body
	// of 9 MiB. Verdict down.
	ClassBodyTooLarge Class = "body_too_large"
)

// Event streams.
const (
	// ClassSSEFraming means an event stream that breaks its own grammar or bounds. Example: an event of 8 MiB. Verdict
	// down.
	ClassSSEFraming Class = "sse_framing"
	// ClassSSENoResponse means that the stream ended without the answer to our request. Example: an event that only tells
	// its id, then the end. Verdict down.
	ClassSSENoResponse Class = "sse_no_response"
	// ClassStreamNotClosed is a warning: the answer came but the server left its stream open. Example: a stream that keeps
	// sending comments.
	ClassStreamNotClosed Class = "stream_not_closed"
	// ClassSSEEndpointMissing means that an HTTP+SSE stream does not begin by naming where to post. Example: no endpoint
	// event within 5 s. Verdict down.
	ClassSSEEndpointMissing Class = "sse_endpoint_missing"
	// ClassSSEEndpointInvalid means that the endpoint event names a place that a probe must not, or cannot, post to.
	// Example: "http://10.0.0.7:8000/messages" on a stream of https://mcp.example.com. Verdict down.
	ClassSSEEndpointInvalid Class = "sse_endpoint_invalid"
)

// JSON and the JSON-RPC envelope.
const (
	// ClassInvalidJSON means a body that is not JSON: empty, cut short, or with something behind it. Example: 200 without
	// a body. Verdict down.
	ClassInvalidJSON Class = "invalid_json"
	// ClassInvalidEnvelope means JSON that is not a JSON-RPC 2.0 response. Example: neither result nor error. As a
	// warning: a deviation that leaves the meaning clear. Verdict down.
	ClassInvalidEnvelope Class = "invalid_envelope"
	// ClassIDMismatch means an answer to another request than ours. Example: "3" for 3. Verdict down.
	ClassIDMismatch Class = "id_mismatch"
	// ClassRPCError means that the server answered with a JSON-RPC error; Code is its code, whatever the HTTP status.
	// Example: 200 with -32603. Verdict down.
	ClassRPCError Class = "rpc_error"
)

// Processes spoken to over their standard streams.
const (
	// ClassSpawn means that the command could not be started. Example: "no such file: my-server". Verdict down.
	ClassSpawn Class = "spawn"
	// ClassExitEarly means that the process ended before it had answered. Example: exit code 1. Verdict down.
	ClassExitEarly Class = "exit_early"
	// ClassStdoutPollution is a warning: the process writes other things than messages to its standard output. Example: a
	// line "Server running on stdio".
	ClassStdoutPollution Class = "stdout_pollution"
	// ClassNoShutdown is a warning: the process did not end when its input did and had to be killed. Example: still there
	// after 2 s.
	ClassNoShutdown Class = "no_shutdown"
)

// MCP.
const (
	// ClassVersionUnsupported means that the server is alive but shares no protocol version with us. Example: -32022 with
	// supported ["2027-01-01"]. Verdict down.
	ClassVersionUnsupported Class = "version_unsupported"
	// ClassVersionUnofficial means a version that looks like a date but that no specification knows; the conversation
	// goes on with it. Example: 2024-10-07. Verdict degraded.
	ClassVersionUnofficial Class = "version_unofficial"
	// ClassHandshakeInvalid means that the handshake's result lacks what the specification requires. Example: no
	// serverInfo. Verdict degraded.
	ClassHandshakeInvalid Class = "handshake_invalid"
	// ClassCapabilityMissing means that the server does not offer what it was expected to. Example: a JSON-RPC server that
	// is neither MCP nor a chain node, probed with kind auto. Verdict degraded.
	ClassCapabilityMissing Class = "capability_missing"
	// ClassSessionLost means that the server forgot the session in the middle of the check, also after a second try.
	// Example: 404 "Session not found". As a warning: it was well after the second try. Verdict degraded.
	ClassSessionLost Class = "session_lost"
	// ClassSchemaInvalid means that a result does not have the shape its schema requires. Example: a tool without a name.
	// As a warning: more of the same, or that such a server works for clients of the older era. Verdict degraded.
	ClassSchemaInvalid Class = "schema_invalid"
	// ClassCursorLoop means that the pages of a list go round in circles. Example: nextCursor "a" on every page. Verdict
	// degraded.
	ClassCursorLoop Class = "cursor_loop"
	// ClassPageLimit means a list of more pages, or of more items, than a probe is willing to read. Example: a 51st page
	// of tools. Verdict degraded.
	ClassPageLimit Class = "page_limit"
)

// Canaries of MCP.
const (
	// ClassToolError means that the canary tool answered isError. Example: "weather service unreachable". Verdict degraded.
	ClassToolError Class = "tool_error"
	// ClassCanaryFailed means that the canary tool cannot be called, or answers something else than expected. Example: a
	// tool that is not in the list. Verdict degraded.
	ClassCanaryFailed Class = "canary_failed"
)

// Chains.
const (
	// ClassWrongChain means that the node serves another chain than the one expected. Example: chain id 5 in place of 1.
	// Verdict down.
	ClassWrongChain Class = "wrong_chain"
	// ClassStarting means that the node is alive and still warming up. Example: bitcoind's -28 "Loading block index".
	// Verdict degraded.
	ClassStarting Class = "starting"
	// ClassSyncing means that the node says itself that it is catching up. Example: eth_syncing with 5 blocks to go.
	// Verdict degraded.
	ClassSyncing Class = "syncing"
	// ClassHeadLagging means that the newest block is behind those of other nodes, or old, but not by much. Example: 4
	// blocks and 48s behind its peers. Verdict degraded.
	ClassHeadLagging Class = "head_lagging"
	// ClassHeadBehind means that the newest block is far behind those of other nodes, or very old. Example: 29,500 blocks
	// behind. Verdict down.
	ClassHeadBehind Class = "head_behind"
	// ClassHeadStalled means that no block has come for much longer than the chain takes to make one. Example: the same
	// height for 10 min on a chain of 12 s blocks. Verdict down.
	ClassHeadStalled Class = "head_stalled"
	// ClassChainHalted means that every endpoint of the chain stands still at the same height: the chain, not the node.
	// Example: 4 endpoints at 20,831,387 for 10 min. Verdict degraded.
	ClassChainHalted Class = "chain_halted"
	// ClassHeadRegressed is a warning: the height is lower than at the check before, as behind a load balancer or after a
	// rollback. Example: 3 blocks lower.
	ClassHeadRegressed Class = "head_regressed"
	// ClassChainFork means that the node has another block than most of its peers at the same height. Example: hash
	// 0xab… at 20,831,385 where 3 others have 0xcd…. As a warning: two endpoints that disagree. Verdict degraded.
	ClassChainFork Class = "chain_fork"
	// ClassFinality means that finality does not follow the head, or that the order finalized ≤ safe ≤ latest is broken.
	// Example: finalized 300 blocks behind. Verdict degraded.
	ClassFinality Class = "finality"
	// ClassClockSkew is a warning: a block from the future, so that either clock is wrong. Example: 40s ahead.
	ClassClockSkew Class = "clock_skew"
	// ClassSubscriptionSilent means that a subscription was accepted and delivers nothing. Example: no newHeads event
	// within 36s. Verdict down.
	ClassSubscriptionSilent Class = "subscription_silent"
)

// Agents.
const (
	// ClassCardInvalid means that an agent card lacks what its specification requires. Example: no interface. Verdict
	// degraded.
	ClassCardInvalid Class = "card_invalid"
	// ClassDialectMismatch means that an agent answers in another version of its protocol than it says. Example: a card
	// of A2A 1.0 and an agent that only knows tasks/get. Verdict degraded.
	ClassDialectMismatch Class = "dialect_mismatch"
)

// Meaning of a good envelope.
const (
	// ClassAssertionFailed means a result that is not what this kind of endpoint must answer. Example: eth_blockNumber
	// answering null. Verdict down.
	ClassAssertionFailed Class = "assertion_failed"
	// ClassSlow means a healthy answer that took longer than the endpoint's degraded_over. Example: 6s of an allowed 5s.
	// Verdict degraded.
	ClassSlow Class = "slow"
)

// verdicts is the verdict each class leads to when it decides a check. A class that only ever warns leads to up.
var verdicts = map[Class]Verdict{
	ClassProbeError:         Unknown,
	ClassEgressBlocked:      Unknown,
	ClassProbeRejected:      Unknown,
	ClassLocationOffline:    Unknown,
	ClassDNS:                Down,
	ClassConnect:            Down,
	ClassTLS:                Down,
	ClassTimeout:            Down,
	ClassHTTPStatus:         Down,
	ClassRedirect:           Down,
	ClassRateLimited:        Unknown,
	ClassBlocked:            Unknown,
	ClassHostRejected:       Degraded,
	ClassAuthRequired:       Gated,
	ClassAuthForbidden:      Gated,
	ClassCredentialRejected: Gated,
	ClassAuthNotAdvertised:  Up,
	ClassContentType:        Down,
	ClassTruncatedBody:      Down,
	ClassBodyTooLarge:       Down,
	ClassSSEFraming:         Down,
	ClassSSENoResponse:      Down,
	ClassStreamNotClosed:    Up,
	ClassInvalidJSON:        Down,
	ClassInvalidEnvelope:    Down,
	ClassIDMismatch:         Down,
	ClassRPCError:           Down,
	ClassVersionUnsupported: Down,
	ClassVersionUnofficial:  Degraded,
	ClassHandshakeInvalid:   Degraded,
	ClassCapabilityMissing:  Degraded,
	ClassSessionLost:        Degraded,
	ClassSchemaInvalid:      Degraded,
	ClassCursorLoop:         Degraded,
	ClassPageLimit:          Degraded,
	ClassAssertionFailed:    Down,
	ClassTLSExpiring:        Up,
	ClassTLSUnverified:      Up,
	ClassFraming:            Down,
	ClassAuthServer:         Unknown,
	ClassCredentialExpiring: Up,
	ClassSSEEndpointMissing: Down,
	ClassSSEEndpointInvalid: Down,
	ClassSpawn:              Down,
	ClassExitEarly:          Down,
	ClassStdoutPollution:    Up,
	ClassNoShutdown:         Up,
	ClassToolError:          Degraded,
	ClassCanaryFailed:       Degraded,
	ClassWrongChain:         Down,
	ClassStarting:           Degraded,
	ClassSyncing:            Degraded,
	ClassHeadLagging:        Degraded,
	ClassHeadBehind:         Down,
	ClassHeadStalled:        Down,
	ClassChainHalted:        Degraded,
	ClassHeadRegressed:      Up,
	ClassChainFork:          Degraded,
	ClassFinality:           Degraded,
	ClassClockSkew:          Up,
	ClassSubscriptionSilent: Down,
	ClassCardInvalid:        Degraded,
	ClassDialectMismatch:    Degraded,
	ClassSlow:               Degraded,
}

// Verdict returns the verdict that c leads to when it decides a check; Unknown for a class that is not in the list.
func (c Class) Verdict() Verdict {
	if c == "" {
		return Up
	}
	if v, ok := verdicts[c]; ok {
		return v
	}
	return Unknown
}
