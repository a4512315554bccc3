package alerts

import (
	"context"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// DefaultPace returns the least time between two messages to one channel of a type; 0: none. Of the others, those that have a
// limit say so with a Retry-After, and it is far above what a person would read.
func DefaultPace(t store.ChannelType) time.Duration {
	switch t {
	case store.ChannelSlack: // https://docs.slack.dev/apis/web-api/rate-limits: one message a second for each channel
		return time.Second
	case store.ChannelMattermost: // speaks like Slack, and has a limit that its owner sets
		return time.Second
	case store.ChannelTelegram: // https://core.telegram.org/bots/faq: no more than one message a second in a chat
		return time.Second
	default:
		return 0
	}
}

// pace keeps apart the messages to one channel. It belongs to whoever serves the channel, and is not safe for concurrent use.
type pace struct {
	every time.Duration // from the end of one request to the begin of the next
	next  time.Time     // not before
}

// left returns how long the channel is to be left alone.
func (p *pace) left(now time.Time) time.Duration { return max(p.next.Sub(now), 0) }

// spend notes that a request has ended.
func (p *pace) spend(now time.Time) { p.leave(now.Add(p.every)) }

// leave has the channel left alone until then, or longer when it was to be left alone longer.
func (p *pace) leave(until time.Time) {
	if until.After(p.next) {
		p.next = until
	}
}

type paceKey struct{}

// withPace returns a context in which spaced keeps to the pace of a channel.
func withPace(ctx context.Context, p *pace) context.Context {
	return context.WithValue(ctx, paceKey{}, p)
}

// spaced waits for as long as the channel wants between two messages. A sender calls it between two requests that one message
// needs, such as the update of a message and the word in its thread. Its error is that of ctx.
func spaced(ctx context.Context) error {
	p, ok := ctx.Value(paceKey{}).(*pace)
	if !ok {
		return nil
	}
	now := time.Now()
	p.spend(now)
	if !rest(ctx, p.left(now)) {
		return context.Cause(ctx)
	}
	return nil
}

// rest waits and reports whether it did to the end: not when ctx ends before.
func rest(ctx context.Context, pause time.Duration) bool {
	if pause <= 0 {
		return true
	}
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
