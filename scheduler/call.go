package scheduler

import (
	"context"

	"github.com/rollcallhq/rollcall/store"
)

// call is somebody who waits in CheckNow for a turn.
type call struct {
	turn  turn
	ready chan struct{} // closed when the turn has come, or never will
	job   job           // to be read when ready is closed
	err   error         // to be read when ready is closed: why the turn never comes
}

func (c *call) begin(j job) {
	c.job = j
	close(c.ready)
}

func (c *call) fail(err error) {
	c.err = err
	close(c.ready)
}

// CheckNow probes an endpoint as soon as there are slots and no other probe of it is under way, records the check and
// returns it. Its transcript is kept however it goes: somebody wants to look at it. The schedule stays as it is. Run must be running.
// ErrChanged when the endpoint was changed meanwhile, ErrLeaseLost when it is not ours, ErrStopping when Run is to end.
func (s *Scheduler) CheckNow(ctx context.Context, endpointID string) (store.Check, error) {
	c, err := s.call(endpointID)
	if err != nil {
		return store.Check{}, err
	}
	defer s.probes.Done()
	ctx, cancel := s.untilCut(ctx)
	defer cancel()
	select {
	case <-c.ready:
	case <-s.quit:
	case <-ctx.Done():
	}
	j, err := s.takeUp(ctx, c)
	if err != nil {
		return store.Check{}, err
	}
	defer s.finish(j.entry)
	j.asked = true
	check, err := s.check(ctx, j)
	if err != nil {
		return store.Check{}, err
	}
	_, err = s.record(context.WithoutCancel(ctx), j, check)
	return check, err
}

// call asks for a turn, and for Run to wait until it is over.
func (s *Scheduler) call(endpointID string) (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, ErrStopping
	}
	en := s.entries[endpointID]
	if en == nil || en.gone {
		return nil, ErrUnknownEndpoint
	}
	s.probes.Add(1)
	c := &call{ready: make(chan struct{})}
	c.turn.entry, c.turn.call = en, c
	s.enqueueLocked(&c.turn, s.now(), atOnce)
	return c, nil
}

// takeUp returns the job of a call whose turn has come. One that waits in vain is taken back.
func (s *Scheduler) takeUp(ctx context.Context, c *call) (job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c.ready:
		return c.job, c.err
	default:
	}
	s.leaveLocked(&c.turn)
	if err := context.Cause(ctx); err != nil {
		return job{}, err
	}
	return job{}, ErrStopping
}

// finish ends the probing of an endpoint for CheckNow.
func (s *Scheduler) finish(en *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked(en)
}
