package probe

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	stepInitialize  = "initialize"
	stepInitialized = "initialized"
	stepClose       = "close"
)

// maxLadder is how many other versions are tried when a server refuses one instead of negotiating.
const maxLadder = 3

// maxSession bounds a session id, which goes out again in a header.
const maxSession = 1024

// initializeParams are the parameters of the handshake.
type initializeParams struct {
	ProtocolVersion string         `json:"protocolVersion"`
	Capabilities    struct{}       `json:"capabilities"`
	ClientInfo      implementation `json:"clientInfo"`
}

// legacy holds the conversation of the older era. A session that is lost in the middle is begun once more.
func (c *conversation) legacy(ctx context.Context, version string) *Failure {
	for again := false; ; again = true {
		p, a := c.initialize(ctx, version, false)
		switch {
		case c.maybeSSE(a):
			return c.trySSE(ctx, a)
		case a.problem != nil:
			return c.failure(a)
		}
		c.learnEra()
		failure := c.initialized(ctx, p)
		if failure == nil {
			_, failure = c.tools(ctx, p)
		}
		if failure == nil || failure.Class != ClassSessionLost || again {
			return failure
		}
		c.warn(failure.Step, ClassSessionLost, failure.Code, "the session was lost and begun again: %s", failure.Message)
		c.forget(p.session)
		c.soft = nil
	}
}

// learnEra takes note that a handshake came about, and over which transport of HTTP.
func (c *conversation) learnEra() {
	era := EraLegacy
	if _, ok := c.stream.(*httpSSE); ok {
		era = EraSSE
	}
	c.result.Kind, c.result.Era, c.result.Facts.Era = KindMCP, era, era
}

// initialize asks for a handshake in version, and in older ones when the server refuses to negotiate. Of several refusals
// it returns the first, unless the last is about something else.
func (c *conversation) initialize(ctx context.Context, version string, aside bool) (peer, answer) {
	tried := []string{version}
	var refused *answer
	for {
		a := c.ask(ctx, question{
			step: stepInitialize, method: "initialize", mcp: true, aside: aside,
			params: initializeParams{ProtocolVersion: version, ClientInfo: c.prober.clientInfo()},
		})
		c.refine(&a)
		session := c.openSession(a)
		if a.problem == nil {
			p := c.readHandshake(&a, version)
			session.version = p.version
			p.session = session.session
			return p, a
		}
		again := c.refusesVersion(&a)
		if refused == nil || !again {
			refused = &a
		}
		version = nextVersion(a, tried)
		if !again || version == "" || len(tried) > maxLadder {
			return peer{}, *refused
		}
		tried = append(tried, version)
	}
}

// refusesVersion reports whether an initialize failed over its protocol version, or may have, and says so in the step
// where it is certain.
func (c *conversation) refusesVersion(a *answer) bool {
	var certain bool
	switch {
	case a.problem.class == ClassProbeRejected:
		return false
	case a.rpc == nil:
		certain = a.status == http.StatusBadRequest && versionWords(a.words)
	default:
		certain = len(a.rpc.supportedVersions()) > 0 || versionWords(a.rpc.Message)
	}
	if certain {
		a.problem.class = ClassVersionUnsupported
		c.result.Steps[a.step].Class = ClassVersionUnsupported
	}
	return certain || a.rpc != nil && a.rpc.Code == codeInvalidParams
}

func versionWords(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "protocol version") || strings.Contains(s, "protocolversion") ||
		strings.Contains(s, "protocol-version") || strings.Contains(s, "unsupported version")
}

// nextVersion returns the newest version not tried yet, those first that the refusal names; "" when there is none left,
// or when the server lists what it speaks and there is none that we could.
func nextVersion(a answer, tried []string) string {
	var offered []string
	if a.rpc != nil {
		if listed := a.rpc.supportedVersions(); len(listed) > 0 && highestLegacy(listed) == "" {
			return ""
		}
		offered = append(a.rpc.supportedVersions(), versionShape.FindAllString(a.rpc.Message, maxVersions)...)
	}
	offered = append(offered, versionShape.FindAllString(a.words, maxVersions)...)
	for _, named := range []bool{true, false} {
		for _, v := range legacyVersions {
			if !slices.Contains(tried, v) && (!named || slices.Contains(offered, v)) {
				return v
			}
		}
	}
	return ""
}

// openSession takes note of a session that an answer opened, also one that failed otherwise, and returns it; it has
// no id when none was opened.
func (c *conversation) openSession(a answer) *peer {
	id := a.header.Get("Mcp-Session-Id")
	if id == "" {
		return &peer{}
	}
	if !sendable(id) {
		c.flag(a.step, ClassHandshakeInvalid, "the session id cannot be sent back")
		return &peer{}
	}
	c.forget(id) // a server that hands out one id twice has one session
	c.sessions = append(c.sessions, peer{era: EraLegacy, session: id})
	c.deadline = c.limit.Add(-c.closeReserve())
	return &c.sessions[len(c.sessions)-1]
}

// sendable reports whether a session id can go out again in a header.
func sendable(id string) bool { return len(id) <= maxSession && httpguts.ValidHeaderFieldValue(id) }

// forget drops a session that the server no longer knows.
func (c *conversation) forget(session string) {
	c.sessions = slices.DeleteFunc(c.sessions, func(p peer) bool { return p.session == session })
}

// readHandshake reads the result of initialize; a version that we do not speak fails the step.
func (c *conversation) readHandshake(a *answer, asked string) peer {
	result, _ := readObject(a.result)
	p := peer{era: EraLegacy, version: result.text("protocolVersion")}
	switch {
	case p.version == "":
		p.version = asked
		c.flag(a.step, ClassHandshakeInvalid, "the answer to initialize has no protocolVersion")
	case slices.Contains(legacyVersions, p.version):
	case dateShape.MatchString(p.version):
		c.flag(a.step, ClassVersionUnofficial, "negotiated version %s, which no specification knows", p.version)
	default:
		c.fail(a, ClassVersionUnsupported, `offers version "%s", which is none that we speak`, clip(p.version, 40))
		return peer{}
	}
	c.result.Facts.ProtocolVersion = c.text(p.version, maxFact)
	capabilities, ok := result.object("capabilities")
	if !ok {
		c.flag(a.step, ClassHandshakeInvalid, "the answer to initialize has no capabilities")
	}
	p.declare(capabilities)
	info, ok := result.object("serverInfo")
	if !c.learnServer(info) || !ok {
		c.flag(a.step, ClassHandshakeInvalid, "the answer to initialize does not name server and version")
	}
	return p
}

// initialized tells the server that the handshake is over. Any success will do, 202 is what it should be.
func (c *conversation) initialized(ctx context.Context, p peer) *Failure {
	a := c.ask(ctx, question{step: stepInitialized, method: "notifications/initialized", notify: true, mcp: true, peer: p})
	c.noticeLoss(&a, p)
	if a.problem == nil && a.status != http.StatusAccepted && a.status != 0 {
		c.warn(stepInitialized, ClassHTTPStatus, a.status, "answered with %s where 202 Accepted is due", statusWords(a.status))
	}
	return c.failure(a)
}

// lostSession is how servers say in words that they do not know a session. That a session is spoken of is not enough: the
// one with a database may be meant.
var lostSession = regexp.MustCompile(`(?i)\bsession\b.{0,80}\b(not found|unknown|expired|invalid|required|missing|terminated|closed|does not exist)` +
	`|\b(no|invalid|unknown|missing|expired|no valid|no such|no active) (mcp[ -])?session` +
	`|\bnot initialized`)

// noticeLoss recognises an answer that means "I do not know your session": 404 by the book, 400 or 200 with words about
// it in the wild.
func (c *conversation) noticeLoss(a *answer, p peer) {
	if p.session == "" || a.problem == nil || a.rpc != nil && a.rpc.Code == codeMethodNotFound {
		return
	}
	switch {
	case a.status == http.StatusNotFound:
	case (a.status == http.StatusBadRequest || a.status == http.StatusOK) && lostSession.MatchString(c.answerWords(a)):
	default:
		return
	}
	a.problem.class = ClassSessionLost
	c.result.Steps[a.step].Class = ClassSessionLost
}

// closeReserve is the time set aside for closing a session, so that a check with one ends in time.
func (c *conversation) closeReserve() time.Duration {
	return min(time.Second, c.limit.Sub(c.started)/8)
}

// closeSessions ends every session that the endpoint opened, after a failed check and for a caller that has gone, too:
// a monitor that leaves sessions behind fills its servers. What goes wrong here is a warning.
func (c *conversation) closeSessions(ctx context.Context) {
	if len(c.sessions) == 0 {
		return
	}
	budget := max(c.closeReserve(), min(time.Until(c.limit), 2*time.Second))
	c.deadline = time.Now().Add(budget)
	ctx = context.WithoutCancel(ctx)
	for _, p := range c.sessions {
		a := c.ask(ctx, question{step: stepClose, method: http.MethodDelete, bare: true, mcp: true, peer: p, aside: true})
		if a.problem == nil {
			continue
		}
		step := &c.result.Steps[a.step]
		if a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotFound { // not for us to close, or gone already
			step.Class, step.Code, step.Message = "", 0, ""
			continue
		}
		c.warn(stepClose, a.problem.class, a.problem.code, "the session could not be closed: %s", a.problem.message)
	}
}
