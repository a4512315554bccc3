package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const stepDiscover = "server/discover"

// modernMeta goes with every modern request.
type modernMeta struct {
	ProtocolVersion    string         `json:"io.modelcontextprotocol/protocolVersion"`
	ClientCapabilities struct{}       `json:"io.modelcontextprotocol/clientCapabilities"`
	ClientInfo         implementation `json:"io.modelcontextprotocol/clientInfo"`
}

// modernParams are the parameters of every modern request. A cursor may be the empty string.
type modernParams struct {
	Meta   modernMeta `json:"_meta"`
	Cursor *string    `json:"cursor,omitempty"`
}

func (c *conversation) modernParams(cursor *string) modernParams {
	return modernParams{Meta: modernMeta{ProtocolVersion: modernVersion, ClientInfo: c.prober.clientInfo()}, Cursor: cursor}
}

// discovery is what server/discover taught. Neither modern nor failed means: ask for a handshake.
type discovery struct {
	modern  bool
	failure *Failure // conclusive: asking for a handshake would teach nothing more
	version string   // to offer in the handshake
	mute    *Failure // it did not answer, which a modern server in trouble may do as well

	step    int
	peer    peer
	lacking bool // the result lacks what its schema requires
}

// discover asks whether the endpoint speaks the modern era.
func (c *conversation) discover(ctx context.Context) discovery {
	a := c.askDiscover(ctx)
	if a.rpc != nil && a.rpc.Code == codeUnsupportedVersion && slices.Contains(a.rpc.supportedVersions(), modernVersion) {
		a = c.askDiscover(ctx) // refuses the version that it lists: a second time is worth one request
	}
	d := discovery{step: a.step, version: legacyVersions[0]}
	failure := c.failure(a)
	switch {
	case failure == nil:
		return c.readDiscovery(a, d)
	case a.rpc != nil && a.rpc.Code == codeMethodNotFound:
		return d // whatever the status: a modern server must know the method
	case a.rpc != nil && a.rpc.Code == codeUnsupportedVersion:
		return c.unsupported(a, d)
	case failure.Class == ClassProbeRejected, !a.dialled:
		d.failure = failure
	case failure.Class == ClassAuthRequired && a.header.Get("WWW-Authenticate") != "":
		d.failure = failure // else a handshake is worth a try: gateways say 401 to what they do not know
	case failure.Class == ClassRateLimited, failure.Class == ClassBlocked, failure.Class == ClassRedirect,
		failure.Class == ClassTLS, failure.Class == ClassProbeError:
		d.failure = failure
	case failure.Class == ClassTimeout, failure.Class == ClassHTTPStatus && failure.Code >= http.StatusInternalServerError:
		d.mute = failure
	}
	return d
}

func (c *conversation) askDiscover(ctx context.Context) answer {
	a := c.ask(ctx, question{
		step: stepDiscover, method: "server/discover", params: c.modernParams(nil),
		mcp: true, peer: peer{era: EraModern, version: modernVersion},
		within: min(discoverPatience, c.limit.Sub(c.started)/3),
	})
	c.refine(&a)
	return a
}

// refine names the errors that only the modern era knows.
func (c *conversation) refine(a *answer) {
	if a.rpc == nil || a.problem == nil || a.problem.class != ClassRPCError {
		return
	}
	switch {
	case a.rpc.Code == codeHeaderMismatch, a.rpc.Code == codeMissingCapability,
		a.rpc.Code == codeInvalidParams && strings.Contains(a.rpc.Message, "_meta"):
		a.problem.class = ClassProbeRejected
	case a.rpc.Code == codeUnsupportedVersion:
		a.problem.class = ClassVersionUnsupported
	}
	c.result.Steps[a.step].Class = a.problem.class
}

// unsupported reads a refusal of our version: with old versions in its list the server wants a handshake, with none
// that we know it is alive and cannot be spoken to.
func (c *conversation) unsupported(a answer, d discovery) discovery {
	offered := a.rpc.supportedVersions()
	c.learnVersions(offered)
	if version := highestLegacy(offered); version != "" {
		d.version = version
		return d
	}
	if len(offered) == 0 {
		return d
	}
	p := *a.problem
	if !strings.Contains(p.message, offered[0]) {
		p.message += "; it offers " + strings.Join(c.result.Facts.SupportedVersions, ", ")
	}
	c.failWith(&a, p)
	d.failure = c.failure(a)
	return d
}

// readDiscovery reads the result of server/discover. One without versions comes from a server that answers anything.
func (c *conversation) readDiscovery(a answer, d discovery) discovery {
	result, _ := readObject(a.result)
	raw, _ := result.get("supportedVersions")
	offered := versionsIn(raw)
	if len(offered) == 0 {
		return d
	}
	c.learnVersions(offered)
	if !slices.Contains(offered, modernVersion) {
		if version := highestLegacy(offered); version != "" {
			d.version = version // a stateful server that answers discover and wants a handshake all the same
			return d
		}
		c.fail(&a, ClassVersionUnsupported, "speaks only %s", strings.Join(c.result.Facts.SupportedVersions, ", "))
		d.failure = c.failure(a)
		return d
	}
	d.modern = true
	d.peer = peer{era: EraModern, version: modernVersion}
	capabilities, ok := result.object("capabilities")
	if !ok {
		c.flag(a.step, ClassHandshakeInvalid, "the answer to server/discover has no capabilities")
	}
	d.peer.declare(capabilities)
	if meta, ok := result.object("_meta"); ok {
		info, _ := meta.object("io.modelcontextprotocol/serverInfo")
		c.learnServer(info)
	}
	d.lacking = c.checkCacheable(a.step, result)
	return d
}

// learnVersions keeps the versions that the endpoint lists.
func (c *conversation) learnVersions(offered []string) {
	const most = 20
	var versions []string
	for _, v := range offered[:min(len(offered), most)] {
		versions = append(versions, c.text(v, 40))
	}
	c.result.Facts.SupportedVersions = versions
}

// modern goes on with an endpoint that speaks the modern era.
func (c *conversation) modern(ctx context.Context, d discovery) *Failure {
	c.result.Kind, c.result.Era = KindMCP, EraModern
	c.result.Facts.Era, c.result.Facts.ProtocolVersion = EraModern, modernVersion
	lacking, failure := c.tools(ctx, d.peer)
	if failure == nil && (lacking || d.lacking) {
		c.tryHandshake(ctx)
	}
	return failure
}

// checkCacheable flags a modern result without the members that clients insist on, and reports whether it did.
func (c *conversation) checkCacheable(step int, result object) bool {
	var missing []string
	if result.text("resultType") == "" {
		missing = append(missing, "resultType")
	}
	ttl, _ := result.get("ttlMs")
	var ms float64
	if len(ttl) == 0 || isNull(ttl) || json.Unmarshal(ttl, &ms) != nil || ms < 0 {
		missing = append(missing, "ttlMs")
	}
	if scope := result.text("cacheScope"); scope != "public" && scope != "private" {
		missing = append(missing, "cacheScope")
	}
	if missing != nil {
		c.flag(step, ClassSchemaInvalid, "the result lacks a valid %s: clients of %s may ignore it", strings.Join(missing, ", "), modernVersion)
	}
	return missing != nil
}

// tryHandshake finds out whether clients of the older era can work with a server that is modern by half. It is a remark
// beside the verdict and changes nothing else.
func (c *conversation) tryHandshake(ctx context.Context) {
	soft, facts := c.soft, c.result.Facts
	c.dropStream()
	_, a := c.initialize(ctx, legacyVersions[0], true)
	c.soft, c.result.Facts = soft, facts
	if a.problem == nil {
		c.warn(stepInitialize, ClassSchemaInvalid, 0, "works for clients that ask for a handshake")
	}
}
