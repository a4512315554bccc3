package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Sender delivers messages to one type of channel. It is safe for concurrent use.
type Sender interface {
	// Send delivers m to c. ref is what the channel answered to the opening of the same incident, empty when there is
	// none. The same message may come again after a crash: a sender makes that harmless where its channel allows.
	//
	// A *PermanentError means that sending will never work until somebody mends the channel. Any other error is
	// passing; a *RetryError says when to come back. Errors hold no secrets and are fit for a user to read.
	Send(ctx context.Context, c store.Channel, ref string, m Message) (Receipt, error)
}

// Receipt is what a channel gave for a message.
type Receipt struct {
	Ref string // to find the message again; empty where a channel has no such thing
	// Passed means that nothing was sent: the channel has no place for a message of this kind, such as word of an
	// acknowledgement in a channel whose messages cannot be changed.
	Passed bool
}

// PermanentError means that a channel will never accept a message as it is.
type PermanentError struct {
	Reason string // in the channel's own words, with what to do about it where that is known
}

func (e *PermanentError) Error() string { return e.Reason }

// RetryError is a passing error of a channel that says how long it wants to be left alone.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return fmt.Sprintf("%s (asks to wait for %s)", e.Err, e.After) }

func (e *RetryError) Unwrap() error { return e.Err }
