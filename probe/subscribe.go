package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// stepEvent is the wait for the first event of a subscription.
const stepEvent = "event"

// subscribe asks for news of heads and waits for the first. That calls are answered does not mean that subscriptions
// deliver: they fail apart from each other.
func (c *conversation) subscribe(ctx context.Context, p *preset) *Failure {
	s := p.Subscription
	c.readError = func(e *rpcError) *problem { return c.familyProblem(p, e) }
	defer func() { c.readError = nil }()
	if s.First {
		first := p.callsFor(c.url)[0]
		if failure := c.hear(p, first, c.askCall(ctx, p, first), &sighting{headStep: -1}); failure != nil {
			return c.stillStarting(p, failure)
		}
	}
	a := c.askSubscription(ctx, p)
	if a.problem != nil {
		return c.stillStarting(p, c.failure(a))
	}
	c.result.Kind = p.Kind
	return c.awaitEvent(ctx, p, a)
}

func (c *conversation) askSubscription(ctx context.Context, p *preset) answer {
	s := p.Subscription
	if p.Envelope != "" {
		return c.askDialect(ctx, p, s.Method, s.Method, s.Params)
	}
	q := question{step: s.Method, method: s.Method}
	if s.Params != nil {
		q.params = s.Params
	}
	return c.ask(ctx, q)
}

// awaitEvent waits for the first event for as long as the chain may take for three blocks, at least half a minute, and at
// most what is left of the check.
func (c *conversation) awaitEvent(ctx context.Context, p *preset, ack answer) *Failure {
	chain := c.target.Options.Chain.ID
	if before := c.target.Memory.Head; chain == "" && before != nil {
		chain = before.Chain
	}
	pace := limitsOf(p, p.canonical(chain), c.target.Options.Chain, c.target.Memory.Block).pace
	patience := max(3*pace, 30*time.Second)
	left := time.Until(c.deadline)
	id := c.ids.prefix + strconv.Itoa(c.ids.n)
	a := c.await(ctx, stepEvent, min(patience, left), func(message []byte) bool { return p.Subscription.delivers(message, id, ack.result) })
	if a.problem != nil {
		if a.problem.class == ClassTimeout && ctx.Err() == nil {
			c.failWith(&a, silence(p, patience, left, pace))
		}
		return c.failure(a)
	}
	height, err := newTree(a.body).height(p.Subscription.Height)
	if err != nil {
		c.fail(&a, ClassAssertionFailed, "the height of the event is %s", err)
		return c.failure(a)
	}
	c.result.Facts.Height = &height
	return nil
}

// silence says what it means that no event came. A wait that was shorter than three blocks proves nothing.
func silence(p *preset, patience, left, pace time.Duration) problem {
	switch {
	case left >= patience:
		return problem{class: ClassSubscriptionSilent, message: fmt.Sprintf("subscribed, but no event within %s", inWords(patience))}
	case pace > 0 && left >= 3*pace:
		return problem{class: ClassSubscriptionSilent, message: fmt.Sprintf("subscribed, but no event within %s, the time for more than three %ss", inWords(left), p.Unit)}
	default:
		return problem{class: ClassTimeout, message: fmt.Sprintf("no event in the %s that the timeout of the check left; give it %s to be sure", inWords(left), inWords(patience))}
	}
}

// delivers reports whether a message is an event of the subscription. Ids of subscriptions are compared as written, quotes
// aside: they may be numbers of 64 bits.
func (s *subscription) delivers(message []byte, request string, ack json.RawMessage) bool {
	body, err := readObject(message)
	if err != nil {
		return false
	}
	d := newTree(message)
	if _, hasHeight := d.find(s.Height); !hasHeight {
		return false
	}
	if s.Event == "" {
		id, _ := body.get("id")
		return strings.Trim(string(id), `"`) == request
	}
	if body.text("method") != s.Event && body.text("type") != s.Event {
		return false
	}
	if s.ID.isZero() {
		return true
	}
	id, _ := d.find(s.ID)
	return strings.Trim(string(id), `"`) == strings.Trim(string(ack), `"`)
}
