package probe

import (
	"context"
	"encoding/json"
	"net/http"
)

// The steps of ACP that are not named by a JSON-RPC method.
const (
	stepPing   = "ping"
	stepAgents = "agents"
)

// acp asks an agent that speaks one of the protocols that go by the name ACP. None of what it sends starts a run.
//
//	communication  GET /ping ─► GET /agents                    Agent Communication Protocol 0.2, REST
//	client         initialize ─► DELETE of the connection      Agent Client Protocol 1, over HTTP, a socket or a process
//	runs           runs/create without a run                   JSON-RPC by method names of the first
//
// Which one it is can be pinned (Options.ACP); else they are tried in this order.
func (c *conversation) acp(ctx context.Context) *Failure {
	switch c.target.Options.ACP {
	case ACPCommunication:
		return c.acpCommunication(ctx)
	case ACPClient:
		return c.acpClient(ctx)
	case ACPRuns:
		return c.acpRuns(ctx)
	}
	if c.overStream() {
		return c.acpClient(ctx)
	}
	return c.acpAuto(ctx)
}

// acpAuto finds out which protocol it is.
func (c *conversation) acpAuto(ctx context.Context) *Failure {
	ping := c.acpPing(ctx)
	switch {
	case ping == nil:
		c.result.Kind = KindACP
		return c.acpAgents(ctx)
	case !otherProtocol(ping):
		return ping
	}
	c.begin()
	client := c.acpClient(ctx)
	if client == nil || !c.spokeRPC || !otherProtocol(client) {
		return clearer(client, ping)
	}
	c.begin()
	return c.acpRuns(ctx)
}

// otherProtocol reports whether a failure may mean that the server is well and speaks something else.
func otherProtocol(f *Failure) bool {
	switch f.Class {
	case ClassHTTPStatus, ClassContentType, ClassInvalidJSON, ClassInvalidEnvelope, ClassRPCError, ClassHandshakeInvalid, ClassAssertionFailed:
		return true
	default:
		return false
	}
}

// clearer returns the failure of two attempts that tells more: that of the second, unless it met no JSON-RPC at all where
// the first met a server in trouble.
func clearer(second, first *Failure) *Failure {
	if second != nil && second.Class == ClassHTTPStatus && first.Class == ClassHTTPStatus && first.Code >= http.StatusInternalServerError {
		return first
	}
	return second
}

// acpCommunication asks a server of the Agent Communication Protocol.
func (c *conversation) acpCommunication(ctx context.Context) *Failure {
	if failure := c.acpPing(ctx); failure != nil {
		return failure
	}
	c.result.Kind = KindACP
	return c.acpAgents(ctx)
}

// acpPing asks for the one thing that every server of the protocol answers: an empty object.
func (c *conversation) acpPing(ctx context.Context) *Failure {
	a := c.document(ctx, stepPing, "ping", nil)
	if a.problem != nil {
		return c.failure(a)
	}
	_, err := readObject(a.body)
	switch {
	case a.status != http.StatusOK:
		c.failPlain(&a, ClassHTTPStatus, "%s", statusMessage(a.status, a.words))
	case err != nil:
		c.failPlain(&a, ClassContentType, "answered with %s in place of a JSON object%s", orNone(mediaType(a.header)), after(bodyWords(a.body)))
	}
	return c.failure(a)
}

// acpAgents asks which agents there are: a server without any is of no use.
func (c *conversation) acpAgents(ctx context.Context) *Failure {
	a := c.document(ctx, stepAgents, "agents", nil)
	if a.problem != nil {
		return c.failure(a)
	}
	list, _ := readObject(a.body)
	raw, listed := list.get("agents")
	agents, _ := items(raw, 1)
	switch {
	case a.status != http.StatusOK:
		c.failPlain(&a, ClassHTTPStatus, "%s", statusMessage(a.status, a.words))
	case !listed:
		c.failPlain(&a, ClassSchemaInvalid, "the answer has no list of agents")
	case len(agents) == 0:
		c.flag(a.step, ClassCapabilityMissing, "the server has no agents")
	default:
		first, _ := readObject(agents[0])
		c.result.Facts.ServerName = c.text(first.text("name"), maxFact)
	}
	return c.failure(a)
}

// acpInitialize are the parameters of the Agent Client Protocol's handshake.
type acpInitialize struct {
	ProtocolVersion    int            `json:"protocolVersion"`
	ClientCapabilities struct{}       `json:"clientCapabilities"`
	ClientInfo         implementation `json:"clientInfo"`
}

// acpClient asks a server of the Agent Client Protocol to shake hands and ends the connection that this opened.
func (c *conversation) acpClient(ctx context.Context) *Failure {
	const connection = "Acp-Connection-Id"
	params := acpInitialize{ProtocolVersion: 1, ClientInfo: c.prober.clientInfo()}
	accept := http.Header{"Accept": {"application/json, text/event-stream"}}
	a := c.ask(ctx, question{step: stepInitialize, method: "initialize", params: params, header: accept})
	if a.problem != nil {
		return c.failure(a)
	}
	result, _ := readObject(a.result)
	raw, _ := result.get("protocolVersion")
	var version int
	if json.Unmarshal(raw, &version) != nil || len(raw) == 0 || isNull(raw) {
		c.fail(&a, ClassHandshakeInvalid, "the answer to initialize has no number as protocolVersion: this is not the Agent Client Protocol")
		return c.failure(a)
	}
	c.result.Kind = KindACP
	c.result.Facts.ProtocolVersion = string(raw)
	info, _ := result.object("agentInfo")
	c.learnServer(info)
	if id := a.header.Get(connection); id != "" {
		c.ask(ctx, question{step: stepClose, method: http.MethodDelete, bare: true, plain: true, aside: true, header: http.Header{connection: {id}}})
	} else if !c.overStream() {
		c.flag(a.step, ClassHandshakeInvalid, "the answer to initialize has no %s header: clients cannot go on", connection)
	}
	return nil
}

// acpRuns asks for a run without saying which, so that none is started: a refusal of the parameters is the healthy answer.
func (c *conversation) acpRuns(ctx context.Context) *Failure {
	accept := http.Header{"Accept": {"application/json, text/event-stream"}}
	a := c.ask(ctx, question{step: "runs/create", method: "runs/create", params: struct{}{}, header: accept})
	if a.rpc != nil && a.problem.class == ClassRPCError {
		switch a.rpc.Code {
		case codeInvalidParams:
			c.clear(&a)
		case codeMethodNotFound:
			c.clear(&a)
			c.flag(a.step, ClassCapabilityMissing, "speaks JSON-RPC, but knows none of the protocols that go by the name ACP")
		}
	}
	if a.problem == nil {
		c.result.Kind = KindACP
	}
	return c.failure(a)
}
