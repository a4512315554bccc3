package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// auto finds out what an endpoint speaks: the method or batch it was given, MCP in either era, A2A, or the language of one of the
// families of chains. The attempts that came to nothing stay in the steps; the last one decides.
//
//	a method or batch is named ─► method
//	HTTP, a command ─► MCP, either era ─► answers a handshake ─► that was it
//	                       └ a server of plain JSON-RPC that knows no MCP ─┐
//	WebSocket, a socket ───────────────────────────────────────────────────┴─► hunt
//	hunt: one method after the other ─► an answer that only one family gives ─► the conversation of that family
//	          └ none of them is known, or there is no JSON-RPC at all ─► an agent's card ─► the conversation of A2A
//	                 └ none ─► name a kind or a method
func (c *conversation) auto(ctx context.Context) *Failure {
	if c.target.Method != "" || len(c.target.Options.Batch) > 0 {
		return c.method(ctx)
	}
	if c.overStream() && c.target.Command == nil {
		return c.unheard(c.hunt(ctx, 0))
	}
	failure := c.mcp(ctx)
	if failure == nil || c.result.Kind == KindMCP || c.target.Era != "" {
		return failure
	}
	switch {
	case c.plainRPC(failure):
		c.begin()
		handshake := failure
		failure = c.hunt(ctx, failure.Code)
		if failure != nil && handshake.Class.Verdict() == Gated && failure.Class == handshake.Class && failure.Code == handshake.Code {
			return handshake // nothing is known of it but that it wants credentials
		}
		if failure == nil || failure.Class != ClassCapabilityMissing {
			return failure
		}
	case !nothingHere(failure):
		return failure
	}
	if c.target.Command == nil {
		if failure, ok := c.maybeAgent(ctx); ok {
			return failure
		}
	}
	return failure
}

// unheard adds to the silence of an endpoint over a stream that it may wait for other words: a language server, a tool
// server.
func (c *conversation) unheard(f *Failure) *Failure {
	if f != nil && f.Class == ClassTimeout && c.result.Kind == KindAuto && strings.HasPrefix(f.Message, waiting[stageFirstByte]) {
		f.Message += "; without a kind only chain nodes are looked for over " + c.url.Scheme + ": name one if it is something else"
	}
	return f
}

// nothingHere reports whether a failed handshake looks like that of a web server which has nothing for JSON-RPC at this
// address.
func nothingHere(f *Failure) bool {
	switch f.Class {
	case ClassHTTPStatus:
		return f.Code == http.StatusNotFound || f.Code == http.StatusMethodNotAllowed || f.Code == http.StatusNotImplemented
	case ClassContentType:
		return true
	default:
		return false
	}
}

// plainRPC reports whether a failed handshake looks like that of a JSON-RPC server which does not know the method.
func (c *conversation) plainRPC(f *Failure) bool {
	if f.Step != stepInitialize {
		return false
	}
	switch f.Class {
	case ClassRPCError:
		status := c.result.Steps[len(c.result.Steps)-1].HTTPStatus
		broken := f.Code > 0 && (status >= http.StatusInternalServerError || status == http.StatusRequestTimeout) && !unknownWords.MatchString(f.Message)
		refused := strings.Contains(strings.ToLower(f.Message), "method") && unknownWords.MatchString(f.Message)
		return slices.Contains(foreignCodes, f.Code) || refused || f.Code > 0 && !broken
	case ClassInvalidEnvelope:
		return true // a node that leaves out jsonrpc
	case ClassInvalidJSON:
		return c.saidNothing(len(c.result.Steps) - 1) // a node that says nothing to what it does not know
	case ClassHTTPStatus:
		return c.spokeRPC || strings.Contains(f.Message, rippledWords) // a node of JSON-RPC 1.0; of the XRP Ledger
	case ClassAuthRequired, ClassAuthForbidden:
		return c.spokeRPC // a gateway with a list of methods
	default:
		return false
	}
}

// saidNothing reports whether a step was answered with 200 and an empty body.
func (c *conversation) saidNothing(step int) bool {
	s := c.result.Steps[step]
	return s.HTTPStatus == http.StatusOK && s.BytesIn == 0 && s.Class == ClassInvalidJSON
}

// foreignCodes are what servers answer to a method they do not know.
var foreignCodes = []int{codeMethodNotFound, codeInvalidRequest, codeInvalidParams, codeParse, codeGeneric, codeWarmingUp}

// codeWarmingUp is what Bitcoin Core and its relatives answer to any method until they are ready.
const codeWarmingUp = -28

// rippledWords are what rippled answers, in plain text with 400, to params that are an object.
const rippledWords = "params unparseable"

// trails are the methods by which families are found, the most common ones first, by the transport. Several families may
// know one method; what they answer tells them apart. REST families cannot be found: they do not answer a POST.
var trails = map[string][]struct {
	method   string
	params   string
	families []Kind
}{
	"http": {
		{"eth_blockNumber", `[]`, []Kind{KindEVM}},
		{"status", `[]`, []Kind{KindCometBFT, KindNEAR}},
		{"getHealth", ``, []Kind{KindSolana, KindStellarRPC}},
		{"getblockcount", `[]`, []Kind{KindBitcoin}},
		{"system_health", `[]`, []Kind{KindSubstrate}},
		{"starknet_blockNumber", `[]`, []Kind{KindStarknet}},
	},
	"ws": {
		{"eth_blockNumber", `[]`, []Kind{KindEVM}},
		{"status", `[]`, []Kind{KindCometBFT}},
		{"system_health", `[]`, []Kind{KindSubstrate}},
		{"starknet_blockNumber", `[]`, []Kind{KindStarknet}},
		{"queryNetwork/blockHeight", ``, []Kind{KindOgmios}},
	},
	"tcp":  {{"server.version", `["rollcall","1.4"]`, []Kind{KindElectrum}}},
	"unix": {{"eth_blockNumber", `[]`, []Kind{KindEVM}}, {"getinfo", `{}`, []Kind{KindCLN}}},
}

// hunt asks for methods until the answer is that of a family. Refusal is the code by which the endpoint has refused methods
// it does not know; zero when it has refused none yet.
func (c *conversation) hunt(ctx context.Context, refusal int) *Failure {
	trail := trails[transportOf(c.url)]
	warned := len(c.result.Warnings)
	var a answer
	for i, t := range trail {
		q := question{step: t.method, method: t.method}
		if t.params != "" {
			q.params = json.RawMessage(t.params)
		}
		a = c.ask(ctx, q)
		if rippled(a) {
			c.forgetTrail(warned, "")
			return c.chainFrom(ctx, presetOf(KindXRPL), nil)
		}
		for _, kind := range t.families {
			if p := presetOf(kind); p.speaks(t.method, a) {
				c.forgetTrail(warned, t.method)
				return c.pursue(ctx, p, t.method, a)
			}
		}
		refused := a.rpc != nil && a.problem != nil && a.problem.class == ClassRPCError && (a.rpc.Code == refusal || a.rpc.Code == codeWarmingUp || unknownMethod(a)) ||
			c.saidNothing(a.step)
		if !refused && i == 0 && len(t.families) == 1 {
			return c.pursue(ctx, presetOf(t.families[0]), t.method, a) // which says what is wrong with the answer
		}
		if !refused && (a.problem != nil || i == len(trail)-1) {
			return c.lost(a)
		}
	}
	return c.lost(a)
}

// forgetTrail drops the warnings about how methods were refused that nobody had to know, except those of the step keep.
func (c *conversation) forgetTrail(from int, keep string) {
	trail := slices.DeleteFunc(slices.Clone(c.result.Warnings[from:]), func(w Warning) bool {
		return w.Step != keep && (w.Class == ClassInvalidEnvelope || w.Class == ClassIDMismatch)
	})
	c.result.Warnings = append(c.result.Warnings[:from], trail...)
}

// lost ends a hunt that came to nothing.
func (c *conversation) lost(a answer) *Failure {
	if a.problem != nil && a.rpc == nil {
		return c.failure(a)
	}
	if a.problem != nil && a.problem.class != ClassRPCError {
		return c.failure(a)
	}
	c.result.Kind = KindJSONRPC
	code, said := 0, ""
	if a.rpc != nil {
		code = a.rpc.Code
	}
	if a.problem != nil && !unknownMethod(a) {
		said = "; it answers " + clip(a.problem.message, 200) // which may be the reason
	}
	c.failWith(&a, problem{ClassCapabilityMissing, code, "speaks JSON-RPC, but neither MCP nor the methods of a chain that can be told by them: name a kind, or a method to ask for" + said})
	return c.failure(a)
}

// pursue goes on with a family whose trail was found. The answer counts as its liveness when that is what was asked.
func (c *conversation) pursue(ctx context.Context, p *preset, method string, a answer) *Failure {
	if p.Calls[0].Method == method {
		return c.chainFrom(ctx, p, &a)
	}
	return c.chainFrom(ctx, p, nil)
}

// speaks reports whether an answer to a method is one that the family gives, and hardly anybody else.
func (p *preset) speaks(method string, a answer) bool {
	if a.rpc != nil {
		rule := p.errorRule(a.rpc)
		return rule != nil && rule.telling(a.rpc)
	}
	if a.problem != nil || a.result == nil {
		return false
	}
	d := newTree(a.result)
	for i := range p.Calls {
		call := &p.Calls[i]
		if call.Method != method || call.Need != needMust {
			continue
		}
		if call.check(d) != nil {
			return false
		}
		if call.Read.Height.isZero() {
			return true
		}
		_, err := d.height(call.Read.Height)
		return err == nil
	}
	return false
}

// telling reports whether an error gives a family away: it says how many blocks are missing, or that the node is starting
// or stale in the words, or under the number, of this family.
func (r errorRule) telling(e *rpcError) bool {
	if !r.Data.isZero() && len(r.Words) == 0 {
		_, ok := newTree(e.raw).find(r.Data)
		return ok
	}
	return r.Class == ClassStarting || r.Class == ClassHeadLagging
}

// rippled reports whether an answer has the shape in which the XRP Ledger refuses a method, or a message without a command.
func rippled(a answer) bool {
	result, err := readObject(a.result)
	if err == nil && result.text("status") == "error" && result.text("error") != "" {
		return true
	}
	return a.problem != nil && strings.Contains(a.problem.message, "missingCommand")
}
