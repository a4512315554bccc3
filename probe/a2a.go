package probe

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// The step in which an agent's card is fetched.
const stepCard = "agent-card"

// cardPaths are where an agent's card lies: below its URL, at the root of its host, and where A2A 0.2 had it.
var cardPaths = []string{".well-known/agent-card.json", "/.well-known/agent-card.json", ".well-known/agent.json"}

// a2aDialect is one generation of A2A as its JSON-RPC binding speaks it.
type a2aDialect struct {
	version string // as cards say it
	getTask string // the method that asks for a task
	header  http.Header
}

// The dialects, and the header that tells a server of several which one is meant: without it a server must assume 0.3
// (A2A 1.0 §3.6).
var (
	a2aNew = a2aDialect{"1.0", "GetTask", http.Header{"A2a-Version": {"1.0"}}}
	a2aOld = a2aDialect{"0.3", "tasks/get", nil}
)

// Error codes of A2A (1.0 §5.4).
const (
	codeTaskNotFound        = -32001
	codeVersionNotSupported = -32009
)

// a2a asks an agent for its card and then for a task that cannot exist. The error "task not found" is the healthy answer:
// it costs the agent nothing and changes nothing.
//
//	card ─► its JSON-RPC interface ─► GetTask, or tasks/get, of a random id ─► -32001
//	                                      └ knows no such method ─► the other dialect ─► -32001: dialect_mismatch
//	no card ─► the URL itself is asked in both dialects
func (c *conversation) a2a(ctx context.Context) *Failure {
	card, failure := c.card(ctx, c.cardPaths())
	if failure != nil && failure.Class != ClassHTTPStatus {
		return failure
	}
	if failure != nil {
		return c.cardless(ctx, failure)
	}
	return c.askAgent(ctx, card)
}

// askAgent goes on from the card.
func (c *conversation) askAgent(ctx context.Context, card answer) *Failure {
	c.result.Kind = KindA2A
	spoken := c.readCard(card)
	if spoken == nil {
		return nil
	}
	return c.askTask(ctx, *spoken)
}

// maybeAgent asks an endpoint that may be anything for an agent's card, where most agents have it. It reports whether
// there was one.
func (c *conversation) maybeAgent(ctx context.Context) (failure *Failure, agent bool) {
	before := c.pathStart
	c.begin()
	card, missing := c.card(ctx, cardPaths[1:2])
	if missing == nil && !cardLike(card.body) {
		c.failPlain(&card, ClassCardInvalid, "this is not the card of an agent")
	}
	if missing != nil || card.problem != nil {
		c.pathStart = before
		return nil, false
	}
	return c.askAgent(ctx, card), true
}

// cardLike reports whether a document is an agent's card and no other.
func cardLike(body []byte) bool {
	card, _ := readObject(body)
	_, skilled := card.get("skills")
	_, isNew := card.get("supportedInterfaces")
	return skilled && (isNew || card.text("url") != "")
}

// cardPaths returns where the card of the target may lie.
func (c *conversation) cardPaths() []string {
	switch {
	case strings.HasSuffix(c.url.Path, ".json"):
		return []string{""}
	case strings.Trim(c.url.Path, "/") == "":
		return cardPaths[1:]
	default:
		return cardPaths
	}
}

// card fetches the card from the first of paths that has one. A failure of class http_status means that there is none to
// be had.
func (c *conversation) card(ctx context.Context, paths []string) (answer, *Failure) {
	var first *Failure
	for _, path := range paths {
		a := c.document(ctx, stepCard, path, a2aNew.header)
		if a.problem == nil && a.status == http.StatusBadRequest {
			a = c.document(ctx, stepCard, path, nil) // some servers refuse a card in a version they do not list
		}
		if a.problem != nil {
			return a, c.failure(a)
		}
		if a.status == http.StatusOK {
			return a, c.cardBody(&a)
		}
		c.failPlain(&a, ClassHTTPStatus, "no agent card at %s: %s", c.whereIs(path), statusMessage(a.status, a.words))
		if first == nil {
			first = c.failure(a)
		}
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
			break
		}
	}
	return answer{}, first
}

// whereIs names a place below the target, for people. A place that cannot be asked has no name but its path.
func (c *conversation) whereIs(path string) string {
	u, err := c.at(path)
	if err != nil {
		return path
	}
	where := RedactURL(u.String())
	if u.Host == c.url.Host {
		where = strings.TrimPrefix(where, u.Scheme+"://"+u.Host)
	}
	return where
}

// cardBody fails a step whose body cannot be a card.
func (c *conversation) cardBody(a *answer) *Failure {
	if _, err := readObject(a.body); err != nil {
		c.failPlain(a, ClassContentType, "answered with %s in place of an agent card%s", orNone(mediaType(a.header)), after(bodyWords(a.body)))
	}
	return c.failure(*a)
}

// failPlain is fail for an answer to a plain question: the code is its status.
func (c *conversation) failPlain(a *answer, class Class, format string, args ...any) {
	c.fail(a, class, format, args...)
	a.problem.code = a.status
	c.result.Steps[a.step].Code = a.status
}

// cardless asks the URL itself: it may be that of the agent's interface.
func (c *conversation) cardless(ctx context.Context, missing *Failure) *Failure {
	for _, d := range []a2aDialect{a2aNew, a2aOld} {
		a := c.taskOf(ctx, d)
		if a.problem == nil {
			c.result.Kind = KindA2A
			c.result.Facts.ProtocolVersion = d.version
			c.flag(a.step, ClassCardInvalid, "the agent answers, but clients find no card: %s", missing.Message)
			return nil
		}
		if a.rpc == nil || a.rpc.Code != codeMethodNotFound {
			break
		}
	}
	return missing
}

// agentInterface is one way in which an agent can be asked, as its card tells.
type agentInterface struct {
	url     string
	binding string // JSONRPC, GRPC or HTTP+JSON
	version string
}

// readCard takes what the card tells into the facts, flags what it lacks and turns to the agent's JSON-RPC interface. It
// returns the dialect to speak there, nil when there is nowhere to turn to.
func (c *conversation) readCard(a answer) *a2aDialect {
	card, _ := readObject(a.body)
	facts := &c.result.Facts
	facts.ServerName, facts.ServerVersion = c.text(card.text("name"), maxFact), c.text(card.text("version"), maxFact)
	if form, err := canonicalJSON(a.body, c.withoutSecrets()); err == nil {
		facts.Contract = fmt.Sprintf("sha256:%x", sha256.Sum256(form.json))
	}
	interfaces := cardInterfaces(card)
	if missing := cardLacks(card, interfaces); len(missing) > 0 {
		c.flag(a.step, ClassCardInvalid, "the card lacks %s", strings.Join(missing, ", "))
	}
	i := slices.IndexFunc(interfaces, func(i agentInterface) bool { return strings.EqualFold(i.binding, "JSONRPC") })
	if i < 0 {
		c.warn(stepCard, ClassCapabilityMissing, 0, "the card offers no JSON-RPC interface: only the card was checked")
		return nil
	}
	spoken := a2aNew
	if version := interfaces[i].version; version == "" || strings.HasPrefix(version, "0.") {
		spoken = a2aOld
	}
	facts.ProtocolVersion = c.text(interfaces[i].version, maxFact)
	if !c.turnTo(a, interfaces[i].url) {
		return nil
	}
	return &spoken
}

// maxInterfaces bounds the interfaces of a card that are looked at.
const maxInterfaces = 50

// cardInterfaces returns the interfaces of a card of either generation.
func cardInterfaces(card object) []agentInterface {
	raw, isNew := card.get("supportedInterfaces")
	if !isNew {
		binding := card.text("preferredTransport")
		if binding == "" {
			binding = "JSONRPC" // the default of 0.3 (§5.5.5)
		}
		interfaces := []agentInterface{{card.text("url"), binding, card.text("protocolVersion")}}
		more, _ := card.get("additionalInterfaces")
		listed, _ := items(more, maxInterfaces)
		for _, item := range listed {
			o, _ := readObject(item)
			interfaces = append(interfaces, agentInterface{o.text("url"), o.text("transport"), card.text("protocolVersion")})
		}
		return interfaces
	}
	var interfaces []agentInterface
	listed, _ := items(raw, maxInterfaces)
	for _, item := range listed {
		o, _ := readObject(item)
		interfaces = append(interfaces, agentInterface{o.text("url"), o.text("protocolBinding"), o.text("protocolVersion")})
	}
	return interfaces
}

// cardLacks names the members that a card must have and has not (A2A 1.0 §4.4.1, 0.3 §5.5).
func cardLacks(card object, interfaces []agentInterface) []string {
	var missing []string
	for _, name := range []string{"name", "description", "version"} {
		if card.text(name) == "" {
			missing = append(missing, name)
		}
	}
	if _, ok := card.object("capabilities"); !ok {
		missing = append(missing, "capabilities")
	}
	for _, name := range []string{"defaultInputModes", "defaultOutputModes", "skills"} {
		if raw, ok := card.get(name); !ok || len(raw) == 0 || raw[0] != '[' {
			missing = append(missing, name)
		}
	}
	if _, isNew := card.get("supportedInterfaces"); !isNew {
		if card.text("url") == "" {
			missing = append(missing, "url")
		}
		if card.text("protocolVersion") == "" {
			missing = append(missing, "protocolVersion")
		}
		return missing
	}
	if len(interfaces) == 0 {
		missing = append(missing, "any interface")
	}
	for _, i := range interfaces {
		if i.url == "" || i.binding == "" || i.version == "" {
			return append(missing, "the url, protocolBinding or protocolVersion of an interface")
		}
	}
	return missing
}

// turnTo makes the URL of an interface the one that is asked, and reports whether it can be. Credentials go to the
// origin they were given for and nowhere else.
func (c *conversation) turnTo(a answer, raw string) bool {
	next, err := c.url.Parse(raw)
	if err != nil || raw == "" || next.Hostname() == "" || next.Scheme != "http" && next.Scheme != "https" {
		c.flag(a.step, ClassCardInvalid, "the JSON-RPC interface of the card is at no URL that can be asked")
		return false
	}
	next.User, next.Fragment = nil, ""
	if !sameOrigin(c.url, next) {
		c.warn(stepCard, ClassCardInvalid, 0, "the card leads to another origin: %s", RedactURL(next.String()))
		if c.target.hasCredentials() || c.target.Options.TLS.ClientCert != "" {
			c.target.Headers = nil
			c.target.Options.TLS.ClientCert, c.target.Options.TLS.ClientKey = "", ""
			c.line.transport = c.prober.dialer(&c.target)
			c.warn(stepCard, ClassCardInvalid, 0, "asked there without the credentials, which are for %s", c.url.Host)
		}
	}
	c.url = next
	return true
}

func sameOrigin(a, b *url.URL) bool {
	from, err1 := dialAddress(a)
	to, err2 := dialAddress(b)
	return err1 == nil && err2 == nil && a.Scheme == b.Scheme && strings.EqualFold(from, to)
}

// taskOf asks for a task that does not exist. The step went well when the agent says so.
func (c *conversation) taskOf(ctx context.Context, d a2aDialect) answer {
	params := map[string]string{"id": uuid.NewString()}
	a := c.ask(ctx, question{step: d.getTask, method: d.getTask, params: params, header: d.header})
	switch {
	case a.rpc != nil && a.rpc.Code == codeTaskNotFound:
		c.clear(&a)
	case a.rpc != nil && a.rpc.Code == codeVersionNotSupported:
		c.reclass(&a, ClassVersionUnsupported)
	case a.problem == nil && a.result != nil:
		c.warn(d.getTask, ClassAssertionFailed, 0, "answers a task that does not exist with a result")
	}
	return a
}

// clear makes a step that ended in an error a good one: the error was the answer to be had.
func (c *conversation) clear(a *answer) {
	a.problem = nil
	step := &c.result.Steps[a.step]
	step.Class, step.Code, step.Message = "", 0, ""
}

// reclass gives a failed step the class that the protocol in hand knows better.
func (c *conversation) reclass(a *answer, class Class) {
	a.problem.class = class
	c.result.Steps[a.step].Class = class
}

// askTask asks in the dialect of the card, and in the other one where the agent does not know it.
func (c *conversation) askTask(ctx context.Context, d a2aDialect) *Failure {
	a := c.taskOf(ctx, d)
	if a.rpc == nil || a.rpc.Code != codeMethodNotFound && a.rpc.Code != codeVersionNotSupported {
		return c.failure(a)
	}
	other := a2aOld
	if d.version == other.version {
		other = a2aNew
	}
	if b := c.taskOf(ctx, other); b.problem == nil {
		c.result.Facts.ProtocolVersion = other.version
		c.flag(b.step, ClassDialectMismatch, "the card says A2A %s, the agent speaks %s", d.version, other.version)
		return nil
	}
	return c.failure(a)
}
