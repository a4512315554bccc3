package probe

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Prober asks endpoints. Its zero value is ready and refuses private addresses. It is safe for concurrent use, must not
// be copied after its first probe, and its exported members must not change after it.
type Prober struct {
	Version   string // goes out as User-Agent: rollcall/<Version>; empty means "dev"
	PublicURL string // where to read about these probes; added to the User-Agent when set
	Egress    Egress
	Limits    Limits
	RootCAs   *x509.CertPool // who may vouch for a server; nil means the system's
	Local     bool           // commands may be started and unix sockets be used: both belong to who runs this program

	// Proxy returns the HTTP proxy that leads to a URL, nil for none, as httpproxy.Config.ProxyFunc makes it from an
	// environment. Only scheme and host of the URL are set. A nil Proxy means that nothing goes through one. Egress holds
	// all the same: a name is looked up and checked here, and the proxy is asked for the address that was checked.
	Proxy func(*url.URL) (*url.URL, error)

	once      sync.Once
	transport *http.Transport
	grants    grants
}

// Limits bound what a probe is willing to take from one endpoint. A zero member means its default.
type Limits struct {
	ResponseBytes   int64 // of the body of one answer; 8 MiB
	HeaderBytes     int64 // of the header of one answer; 64 KiB
	EventBytes      int   // of one event of an event stream; 4 MiB
	Pages           int   // of one tools/list; 50
	Redirects       int   // of one check; 3
	TranscriptBytes int   // kept of each body in a transcript; 64 KiB
}

// withDefaults returns l with its zero members filled in.
func (l Limits) withDefaults() Limits {
	return Limits{
		ResponseBytes:   orDefault(l.ResponseBytes, 8<<20),
		HeaderBytes:     orDefault(l.HeaderBytes, 64<<10),
		EventBytes:      orDefault(l.EventBytes, 4<<20),
		Pages:           orDefault(l.Pages, 50),
		Redirects:       orDefault(l.Redirects, 3),
		TranscriptBytes: orDefault(l.TranscriptBytes, 64<<10),
	}
}

func orDefault[N int | int64](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

// Probe asks t once and reports what it saw. It never fails: a broken endpoint, an invalid target and a cancelled ctx
// are all Results. The Result of a probe that was cut short by the caller (ctx cancelled, not its deadline passed) says
// nothing about the endpoint: its verdict is unknown and its class probe_error.
//
// The check ends after t.Timeout or at the deadline of ctx, whichever is earlier. A session that the endpoint opened is
// closed even when ctx has ended, which may take up to a second more.
//
//	Probe
//	├─ discover → modern | initialize → initialized → tools/list      mcp.go
//	├─ what the preset of a chain's family says                        chain.go, presets/
//	├─ any method                                                      method.go
//	├─ an agent's card and a task; ACP; a language server              a2a.go, acp.go, lsp.go
//	└─ each request: ask → line (one connection) → read → judge        ask.go, line.go, http1.go, reply.go
func (p *Prober) Probe(ctx context.Context, t Target) Result {
	c := newConversation(ctx, p, &t)
	defer c.line.close()
	defer c.dropStream() // a panic leaves no process behind
	c.settle(ctx, c.run(ctx))
	c.noteCredentials(ctx)
	c.closeSessions(ctx)
	c.dropStream()
	c.tellEnded()
	if t.TranscriptOf == nil || t.TranscriptOf(c.result) {
		c.result.Transcript = c.transcript.all()
	}
	return c.result
}

// run holds the conversation that the target's kind asks for; nil means that all went well.
func (c *conversation) run(ctx context.Context) *Failure {
	if problems := c.target.Validate(); problems != nil {
		return &Failure{Class: ClassProbeError, Message: "the target cannot be probed: " + joinProblems(problems)}
	}
	if f := c.authorize(ctx); f != nil {
		return f
	}
	switch c.target.Kind {
	case KindMCP:
		return c.mcp(ctx)
	case KindJSONRPC:
		return c.method(ctx)
	case KindA2A:
		return c.a2a(ctx)
	case KindACP:
		return c.acp(ctx)
	case KindLSP:
		return c.lsp(ctx)
	case KindAuto:
		return c.auto(ctx)
	default:
		return c.chain(ctx, presetOf(c.target.Kind))
	}
}

func joinProblems(problems []Problem) string {
	words := make([]string, 0, len(problems))
	for _, p := range problems {
		words = append(words, p.Field+" "+p.Message)
	}
	return strings.Join(words, "; ")
}

// userAgent names this service and, when it has a public page, where to read about it.
func (p *Prober) userAgent() string {
	agent := "rollcall/" + p.version()
	if p.PublicURL != "" {
		agent += " (+" + p.PublicURL + ")"
	}
	return agent
}

func (p *Prober) version() string {
	if p.Version == "" {
		return "dev"
	}
	return p.Version
}

// timeout returns how long a check of t may take.
func (t *Target) timeout() time.Duration {
	switch {
	case t.Timeout > 0:
		return t.Timeout
	case t.Command != nil:
		return DefaultCommandTimeout
	default:
		return DefaultTimeout
	}
}
