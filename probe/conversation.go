package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds on what a Result may hold, so that a hostile endpoint cannot fill a database.
const (
	maxWarnings = 20
	maxFact     = 200 // bytes of a name or version
)

// conversation is one check under way. It belongs to one goroutine.
type conversation struct {
	prober  *Prober
	limits  Limits
	target  Target
	secrets *Redactor
	started time.Time

	deadline time.Time // of the conversation itself: earlier than limit once there is a session to close
	limit    time.Time // of the whole check

	url       *url.URL // where requests go: the target's URL, or where a redirect has led
	redirects int
	line      line
	access    access   // by OAuth
	stream    stream   // where messages go both ways; nil before it is opened, and over plain HTTP
	triedSSE  *url.URL // where HTTP+SSE was looked for last; nil when it was not
	ids       idSource
	sessions  []peer // opened by the endpoint and not known to be gone

	onRequest func(method string, params json.RawMessage) (any, bool) // answers requests of the endpoint; nil knows none
	readError func(*rpcError) *problem                                // reads an error by the table of a family; nil, or a nil problem, means the general one

	result     Result
	transcript transcript
	soft       *Failure      // the first finding that degrades without ending the path in progress
	pathStart  time.Duration // when the path that decides the verdict began
	ended      time.Duration // when the last step that counts ended
	spokeRPC   bool          // some answer was a well-formed JSON-RPC response
	notedTLS   bool          // the certificate was judged: one warning of a kind is enough
	told       int           // how many steps Target.Watch was told the end of
}

func newConversation(ctx context.Context, p *Prober, t *Target) *conversation {
	c := &conversation{
		prober:  p,
		limits:  p.Limits.withDefaults(),
		target:  *t,
		secrets: NewRedactor(*t),
		started: time.Now(),
		ids:     newIDSource(),
	}
	c.limit = c.started.Add(t.timeout())
	if d, ok := ctx.Deadline(); ok && d.Before(c.limit) {
		c.limit = d
	}
	c.deadline = c.limit
	c.line.transport = p.dialer(t)
	c.transcript = transcript{on: t.Transcript, keep: c.limits.TranscriptBytes, secrets: c.secrets}
	c.result = Result{StartedAt: c.started, Kind: t.Kind, Era: t.Era, Memory: t.Memory}
	c.url, _ = url.Parse(t.URL) // run validates the target before anything is sent
	return c
}

// outOfTime is the cause of a context whose time, granted by us, is used up.
type outOfTime struct{ granted time.Duration }

func (e outOfTime) Error() string { return "not done within " + inWords(e.granted) }

// Unwrap makes the cause recognisable where net/http returns it in place of the context's own error.
func (e outOfTime) Unwrap() error { return context.DeadlineExceeded }

// withDeadline bounds ctx by the conversation's deadline.
func (c *conversation) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, c.deadline, outOfTime{c.deadline.Sub(c.started)})
}

// begin starts a path afresh: what an abandoned attempt found does not decide the verdict.
func (c *conversation) begin() {
	c.soft = nil
	c.pathStart = time.Since(c.started)
}

// flag records that step i shows something that degrades the endpoint without ending the conversation. The first such
// finding of a step becomes its class, others become warnings.
func (c *conversation) flag(i int, class Class, format string, args ...any) {
	step := &c.result.Steps[i]
	message := c.words(format, args...)
	if step.Class != "" {
		c.warn(step.Name, class, 0, "%s", message)
	} else {
		step.Class, step.Message = class, message
	}
	if c.soft == nil {
		c.soft = &Failure{Step: step.Name, Class: class, Message: message}
	}
}

// warn records something odd that decides nothing.
func (c *conversation) warn(step string, class Class, code int, format string, args ...any) {
	if len(c.result.Warnings) >= maxWarnings {
		return
	}
	c.result.Warnings = append(c.result.Warnings, Warning{step, class, code, c.words(format, args...)})
}

// words makes a message: without secrets, readable and bounded.
func (c *conversation) words(format string, args ...any) string {
	return c.text(fmt.Sprintf(format, args...), MaxMessage)
}

// text makes something a stranger wrote fit for a Result. Secrets are cut before cleaning, which may change their white
// space, and after it, which may join one that invisible characters had split.
func (c *conversation) text(s string, max int) string {
	return shorten(c.secrets.Cut(clean(c.secrets.Cut(s), max)), max)
}

// settle turns the outcome of the conversation into the verdict.
func (c *conversation) settle(ctx context.Context, hard *Failure) {
	r := &c.result
	r.Duration = c.ended
	switch took := c.ended - c.pathStart; {
	case ctx.Err() == context.Canceled:
		r.Failure = &Failure{Step: lastStep(r.Steps), Class: ClassProbeError, Message: "cancelled"}
	case hard != nil:
		r.Failure = hard
	case c.soft != nil:
		r.Failure = c.soft
	case c.target.DegradedOver > 0 && took > c.target.DegradedOver:
		r.Failure = c.slow(took)
	}
	r.Verdict = Up
	if r.Failure != nil {
		r.Verdict = r.Failure.Class.Verdict()
		r.Failure.Message = c.text(r.Failure.Message, MaxMessage)
	}
}

func lastStep(steps []Step) string {
	if len(steps) == 0 {
		return ""
	}
	return steps[len(steps)-1].Name
}

// slow blames the slowest step of the deciding path.
func (c *conversation) slow(took time.Duration) *Failure {
	var slowest Step
	for _, s := range c.result.Steps {
		if s.Start >= c.pathStart && s.Latency > slowest.Latency {
			slowest = s
		}
	}
	return &Failure{Step: slowest.Name, Class: ClassSlow, Message: fmt.Sprintf("took %s, more than %s: the slowest step was %s with %s",
		inWords(took), inWords(c.target.DegradedOver), slowest.Name, inWords(slowest.Latency))}
}

// idSource makes request ids: strings, because some servers change the type of a number, and unique over all checks,
// so that an answer to another check is never taken for ours.
type idSource struct {
	prefix string
	n      int
}

func newIDSource() idSource {
	var random [4]byte
	rand.Read(random[:])
	return idSource{prefix: "rollcall-" + hex.EncodeToString(random[:]) + "-"}
}

func (s *idSource) next() string {
	s.n++
	return s.prefix + strconv.Itoa(s.n)
}

// issued reports whether raw is an id of an earlier question of this check.
func (s *idSource) issued(raw json.RawMessage) bool {
	var id string
	if json.Unmarshal(raw, &id) != nil {
		return false
	}
	number, ok := strings.CutPrefix(id, s.prefix)
	n, err := strconv.Atoi(number)
	return ok && err == nil && n > 0 && n <= s.n
}
