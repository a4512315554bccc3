package web

import (
	"slices"
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

// tagOf returns how a status or verdict is shown in the language.
func (l Language) tagOf(status any) Tag {
	t := tagOf(status)
	return Tag{t.Tone, l.say(t.Word)}
}

// kindWords names a kind for people.
func kindWords(k probe.Kind) string {
	if words, ok := kinds[k]; ok {
		return words
	}
	return string(k)
}

// kinds are the names that kinds go by among people.
var kinds = map[probe.Kind]string{
	"auto": "Auto", "mcp": "MCP", "jsonrpc": "JSON-RPC", "a2a": "A2A agent", "acp": "ACP", "lsp": "Language server",
	"evm": "EVM node", "bitcoin": "Bitcoin-like node", "solana": "Solana node", "cometbft": "CometBFT node (Cosmos)",
	"substrate": "Substrate node (Polkadot)", "starknet": "Starknet node", "near": "NEAR node", "sui": "Sui node",
	"aptos": "Aptos node", "tron": "TRON node", "xrpl": "XRP Ledger node", "stellar-rpc": "Stellar RPC", "ton-v2": "TON node",
	"filecoin": "Filecoin node", "hedera-relay": "Hedera relay", "cln": "Core Lightning", "electrum": "Electrum server",
	"ogmios": "Ogmios (Cardano)", "beacon": "Ethereum beacon node",
}

// KindGroup is a part of the list of kinds that can be chosen.
type KindGroup struct {
	Label string // empty for what belongs to no group
	Kinds []probe.Kind
}

// GroupKinds sorts kinds into groups, in the order in which they come. What is in no other group is a family of chains.
func GroupKinds(all []probe.Kind) []KindGroup {
	groups := []KindGroup{{Label: ""}, {Label: "MCP"}, {Label: "JSON-RPC"}, {Label: "Agents & editors"}, {Label: "Chains"}}
	for _, k := range all {
		i := 4
		switch k {
		case "auto":
			i = 0
		case "mcp":
			i = 1
		case "jsonrpc":
			i = 2
		case "a2a", "acp", "lsp":
			i = 3
		}
		groups[i].Kinds = append(groups[i].Kinds, k)
	}
	return slices.DeleteFunc(groups, func(g KindGroup) bool { return len(g.Kinds) == 0 })
}

// meaning is what a class means to somebody who reads it for the first time at night, and what to look at.
type meaning struct{ says, advice string }

var meanings = map[probe.Class]meaning{
	probe.ClassProbeError:         {"the request could not be made", "Look at the endpoint's settings: the probe could not turn them into a request."},
	probe.ClassEgressBlocked:      {"the address may not be dialled", "The host resolves to an address outside of what this service may reach. An operator can allow it with --allow-private."},
	probe.ClassProbeRejected:      {"the server refused the form of our request", "The server is alive. The mistake may be on the side of the probe; please report it."},
	probe.ClassLocationOffline:    {"the location lost its own network", "Nothing is known of the endpoint: the location that asked could reach nobody. Look at the network there."},
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

	probe.ClassTLSExpiring:   {"the certificate ends soon", "Renew it. If it renews itself, find out why it has not."},
	probe.ClassTLSUnverified: {"the certificate was not verified", "The endpoint is set to accept any certificate. Give it the CA that signed the certificate instead."},
	probe.ClassFraming:       {"messages cannot be told apart", "Look at the endpoint's framing setting, and at what else the server writes to the connection."},

	probe.ClassAuthServer:         {"no access token could be had", "The endpoint was not asked. Look at the authorization server and at the token URL."},
	probe.ClassCredentialExpiring: {"the credential ends soon", "Renew it in the endpoint's settings before it does."},
	probe.ClassSSEEndpointMissing: {"the stream does not say where to post", "An HTTP+SSE stream begins with an endpoint event. A proxy that buffers may hold it back."},
	probe.ClassSSEEndpointInvalid: {"the stream names a place to post to that cannot be right", "The endpoint event must lead to the same origin. Behind a proxy, servers often name their inner address."},

	probe.ClassSpawn:           {"the command could not be started", "Check that the program is installed where this service runs, and that it may run it."},
	probe.ClassExitEarly:       {"the process ended before it had answered", "Run the command by hand: it often says why. It may lack a variable or an argument."},
	probe.ClassStdoutPollution: {"writes other things than messages to its output", "Logs belong on standard error: some clients give up at the first stray line."},
	probe.ClassNoShutdown:      {"did not end when its input did", "A server over standard streams must end when its input is closed."},

	probe.ClassToolError:    {"the canary tool says that it failed", "The server answers, the tool does not work. Look at what the tool depends on."},
	probe.ClassCanaryFailed: {"the canary tool does not do what is expected", "Check that the tool is still there, takes these arguments, and what its answer should hold."},

	probe.ClassWrongChain:         {"serves another chain than expected", "Check the node's network setting, or the chain in the endpoint's settings."},
	probe.ClassStarting:           {"is starting", "The node is warming up. If that takes long, its log says what it is doing."},
	probe.ClassSyncing:            {"is catching up", "The node says itself that it is behind. Wait, and watch whether the distance shrinks."},
	probe.ClassHeadLagging:        {"is a little behind", "Its newest block is older or lower than those of other nodes. Look at its peers and its load."},
	probe.ClassHeadBehind:         {"is far behind", "Its newest block is very old or far below those of other nodes. Look at its peers, its disk and its log."},
	probe.ClassHeadStalled:        {"no block comes any more", "The node answers and stands still. Look at its peers, and restart it if it has enough of them."},
	probe.ClassChainHalted:        {"the whole chain stands still", "Every endpoint of this chain is at the same height. Nothing is wrong with this node alone."},
	probe.ClassHeadRegressed:      {"the height went down", "Behind a load balancer, nodes differ. Otherwise the chain was rolled back."},
	probe.ClassChainFork:          {"has another block than its peers at the same height", "It may follow a fork that loses, or have been forked off by an upgrade that it missed."},
	probe.ClassFinality:           {"finality does not follow", "Blocks come but are not made final. Look at the consensus client and at the chain's own status."},
	probe.ClassClockSkew:          {"a block from the future", "Either the clock of this service or that of the chain's block makers is wrong."},
	probe.ClassSubscriptionSilent: {"a subscription that delivers nothing", "Calls may work all the same. Look at proxies between, and at the node's limit of subscriptions."},

	probe.ClassCardInvalid:     {"the agent card lacks what it must hold", "Clients find the agent by its card. Hold it against the specification of its version."},
	probe.ClassDialectMismatch: {"speaks another version than it says", "The card and the agent disagree about the protocol's version. Update one of them."},
	probe.ClassSlow:            {"slower than allowed", "The answer was right but took longer than the endpoint's own limit."},
}

// means says in a few words what a class means; a class that is not in the list stands for itself.
func (l Language) means(c probe.Class) string {
	if m, ok := meanings[c]; ok {
		return l.say(m.says)
	}
	return strings.ReplaceAll(string(c), "_", " ")
}

// advice says where to look, empty when there is nothing to say.
func (l Language) advice(c probe.Class) string {
	m, ok := meanings[c]
	if !ok {
		return ""
	}
	return l.say(m.advice)
}
