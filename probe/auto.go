package probe

import (
	"context"
	"slices"
)

// auto finds out what an endpoint speaks: the method it was given, MCP in either era, or the language of EVM nodes. The
// attempts that came to nothing stay in the steps; the last one decides.
//
//	a method is named ─► method
//	MCP, either era ─► answers a handshake ─► that was it
//	    └ a server of plain JSON-RPC that knows no MCP ─► eth_blockNumber ─► eth_chainId
//	                                                           └ knows that neither ─► degraded, name a method
func (c *conversation) auto(ctx context.Context) *Failure {
	if c.target.Method != "" {
		return c.method(ctx)
	}
	failure := c.mcp(ctx)
	if failure == nil || c.result.Kind == KindMCP || c.target.Era != "" || !c.plainRPC(failure) {
		return failure
	}
	c.begin()
	evm := presetOf(KindEVM)
	height := c.askCall(ctx, evm, evm.Calls[0])
	if refused := height.rpc; refused != nil && height.problem.class == ClassRPCError && refused.Code == failure.Code {
		c.result.Kind = KindJSONRPC
		c.fail(&height, ClassCapabilityMissing, "speaks JSON-RPC, but neither MCP nor the methods of an EVM node: name a method to ask for")
		height.problem.code = refused.Code
		return c.failure(height)
	}
	return c.chainFrom(ctx, evm, &height)
}

// plainRPC reports whether a failed handshake looks like that of a JSON-RPC server which does not know the method.
func (c *conversation) plainRPC(f *Failure) bool {
	if f.Step != stepInitialize {
		return false
	}
	switch f.Class {
	case ClassRPCError:
		return slices.Contains(foreignCodes, f.Code) || f.Code > 0
	case ClassInvalidEnvelope:
		return true // a node that leaves out jsonrpc
	case ClassAuthRequired, ClassAuthForbidden:
		return c.spokeRPC // a gateway with a list of methods
	default:
		return false
	}
}

// foreignCodes are what servers answer to a method they do not know.
var foreignCodes = []int{codeMethodNotFound, codeInvalidRequest, codeInvalidParams, codeParse, codeGeneric}
