package probe

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// pump reads messages in a goroutine of its own, so that waiting for one can end without losing half of it. It reads one
// message ahead.
type pump struct {
	deliveries chan delivery
	stopped    chan struct{}
	running    sync.WaitGroup
	end        error // the error that ended it, once it was received
}

// delivery is what reading once came to.
type delivery struct {
	message []byte
	odd     string // what is wrong around the message, if anything
	err     error
}

// newPump calls next until it fails or stop is called.
func newPump(next func() (message []byte, odd string, err error)) *pump {
	p := &pump{deliveries: make(chan delivery), stopped: make(chan struct{})}
	p.running.Go(func() {
		for {
			var d delivery
			d.message, d.odd, d.err = next()
			select {
			case p.deliveries <- d:
			case <-p.stopped:
				return
			}
			if d.err != nil {
				return
			}
		}
	})
	return p
}

// receive returns the next message, and the cause of ctx when that ends first. After an error it returns the same again.
func (p *pump) receive(ctx context.Context) (delivery, error) {
	if p.end != nil {
		return delivery{}, p.end
	}
	select {
	case d := <-p.deliveries:
		p.end = d.err
		return d, d.err
	case <-ctx.Done():
		return delivery{}, context.Cause(ctx)
	}
}

// halt makes the pump deliver nothing more. It may still be reading.
func (p *pump) halt() { close(p.stopped) }

// stop ends the pump, once what it reads from was closed.
func (p *pump) stop() {
	p.halt()
	p.running.Wait()
}

// writeWithin writes all of b, at the latest when ctx ends. The deadline of the writer is set through deadline; one that
// knows none, as the pipes of some systems, is waited for.
func writeWithin(ctx context.Context, w io.Writer, deadline func(time.Time) error, b []byte) error {
	if err := deadline(time.Time{}); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = deadline(time.Unix(1, 0)) // fails on what is closed, where nothing is written any more
	})
	_, err := w.Write(b)
	if !stop() {
		<-interrupted
	}
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}
