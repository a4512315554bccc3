package probe

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// modernVersion is the version of MCP without a handshake that this package speaks.
const modernVersion = "2026-07-28"

// legacyVersions are the versions of MCP with a handshake, newest first.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// discoverPatience is the most that server/discover may take: servers from before its time may ignore it for ever.
const discoverPatience = 5 * time.Second

// peer is how an MCP endpoint wants to be spoken to.
type peer struct {
	era     Era
	version string // for the MCP-Protocol-Version header; empty before the handshake
	session string // for the MCP-Session-Id header; empty when the endpoint gave none
	tools   bool   // the endpoint declares tools

	prompts, resources bool // the endpoint declares them; asked for where there are no tools
}

// declare takes what the endpoint says that it offers.
func (p *peer) declare(capabilities object) {
	p.tools = capabilities.offers("tools")
	p.prompts = capabilities.offers("prompts")
	p.resources = capabilities.offers("resources")
}

// implementation names a client or server.
type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (p *Prober) clientInfo() implementation {
	return implementation{Name: "rollcall", Version: p.version()}
}

// mcp asks an MCP endpoint: in the era it is remembered for, else in the modern one first. An endpoint that does not
// answer in that era is asked in the other before any verdict.
//
//	discover ─ modern ──► tools/list                                     modern.go, tools.go
//	    └ anything else ─► initialize ─► initialized ─► tools/list       legacy.go
//	                           └ takes no POST ─► GET ─► endpoint event ─► initialize ─► …  httpsse.go
//	initialize, remembered as legacy, refused ─► discover
//	GET, remembered as HTTP+SSE, refused ─► discover
func (c *conversation) mcp(ctx context.Context) *Failure {
	switch {
	case c.target.Era == EraSSE && !c.overStream():
		return c.sseFirst(ctx)
	case c.target.Era == EraLegacy || c.target.Era == EraSSE:
		return c.legacyFirst(ctx)
	default:
		return c.modernFirst(ctx)
	}
}

// modernFirst asks an endpoint that was last seen to need no handshake, or of which nothing is known.
func (c *conversation) modernFirst(ctx context.Context) *Failure {
	d := c.discover(ctx)
	switch {
	case d.modern:
		c.result.Memory.Mute = false
		return c.modern(ctx, d)
	case d.failure != nil:
		return d.failure
	default:
		c.begin()
		c.dropStream() // a process that was asked in one era may refuse the other
		failure := c.legacy(ctx, d.version)
		c.doubt(d)
		return failure
	}
}

// doubt keeps an endpoint of both eras from being taken for one of handshakes only because it was slow once: that it does
// not answer in the modern era any more is believed the second time in a row.
func (c *conversation) doubt(d discovery) {
	before := c.result.Memory.Mute
	c.result.Memory.Mute = false
	if d.mute == nil || c.target.Era != EraModern || c.result.Era == EraModern || before {
		return
	}
	c.result.Memory.Mute, c.result.Era = true, EraModern
	c.warn(stepDiscover, d.mute.Class, d.mute.Code, "no answer in the modern era, in which it did answer before: %s", d.mute.Message)
}

// legacyFirst asks an endpoint that was last seen to want a handshake, and looks for the modern era when it refuses one.
func (c *conversation) legacyFirst(ctx context.Context) *Failure {
	failure := c.legacy(ctx, legacyVersions[0])
	if failure == nil || failure.Step != stepInitialize || !maybeModern(failure) {
		return failure
	}
	begun := time.Since(c.started)
	c.dropStream()
	d := c.discover(ctx)
	switch {
	case d.modern:
		c.begin()
		c.pathStart = begun
		return c.modern(ctx, d)
	case d.failure != nil && (d.failure.Class == ClassVersionUnsupported || d.failure.Class == ClassProbeRejected):
		return d.failure
	default:
		return failure
	}
}

// maybeModern reports whether an initialize that failed like this may have met a server that knows no handshake.
func maybeModern(f *Failure) bool {
	switch f.Class {
	case ClassRPCError, ClassVersionUnsupported, ClassProbeRejected, ClassHTTPStatus, ClassContentType, ClassInvalidJSON,
		ClassInvalidEnvelope, ClassIDMismatch, ClassSSENoResponse, ClassHandshakeInvalid, ClassCredentialRejected:
		return true
	default:
		return false
	}
}

// setMCPHeaders sets what MCP wants beside the message. Names are in their canonical form, which net/http sends in any case.
func (q question) setMCPHeaders(h http.Header) {
	h.Set("Accept", "application/json, text/event-stream") // both, literally: servers refuse */*
	if q.peer.version != "" {
		h.Set("Mcp-Protocol-Version", q.peer.version)
	}
	if q.peer.session != "" {
		h.Set("Mcp-Session-Id", q.peer.session)
	}
	if q.peer.era == EraModern {
		h.Set("Mcp-Method", q.method)
	}
	for name, values := range q.extra {
		h[name] = values
	}
}

var (
	dateShape    = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	versionShape = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)
)

// highestLegacy returns the newest of the versions that a handshake can negotiate, or "".
func highestLegacy(offered []string) string {
	for _, v := range legacyVersions {
		if slices.Contains(offered, v) {
			return v
		}
	}
	return ""
}

// learnServer takes name and version of the server into the facts and reports whether both are there.
func (c *conversation) learnServer(info object) bool {
	name, version := info.text("name"), info.text("version")
	c.result.Facts.ServerName = c.text(name, maxFact)
	c.result.Facts.ServerVersion = c.text(version, maxFact)
	return name != "" && version != ""
}
