// Package scheduler decides when endpoints are probed: on their schedule, sooner when a surprising check wants
// confirmation, at once when they are new or somebody asks, never twice at a time, and at most so many together. It
// keeps nothing: what it starts from is handed in with Set, and every check goes out through Config.Record.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Config is what a Scheduler needs. Location, Concurrency, Probe and Record are required.
type Config struct {
	Location    string
	Concurrency int // probes at once
	Probe       func(ctx context.Context, t probe.Target) probe.Result
	// Peers returns the heads that other endpoints of the target's chain were seen at; self is the name of the endpoint.
	// Nil means that there are none.
	Peers func(ctx context.Context, self string, t probe.Target) []probe.Head
	// Record keeps a check and says what became of it. After an error the schedule simply goes on.
	Record func(ctx context.Context, c store.Check) (store.Outcome, error)
	Log    *slog.Logger
	// Registerer takes the scheduler's metrics; nil means that nobody looks at them.
	Registerer prometheus.Registerer
}

// Bounds of waiting.
const (
	// shutdownGrace is how long probes under way may go on after Run was told to stop. One that is cut short after that
	// says nothing about its endpoint and is not recorded.
	shutdownGrace = 5 * time.Second
	// maxRetryAfter bounds how long an endpoint can keep us away by asking for it.
	maxRetryAfter = 15 * time.Minute
	// minBackOff is how long an endpoint is left alone at least that says we come too often and does not say for how long.
	minBackOff = 30 * time.Second
)

// ErrStopping means that the service is about to end and begins no probe.
var ErrStopping = errors.New("the service is stopping")

// ErrUnknownEndpoint means that the scheduler was not told of this endpoint, or was told that it is gone.
var ErrUnknownEndpoint = errors.New("endpoint is not scheduled here")

// Scheduler probes endpoints when they are due. Its methods are safe for concurrent use.
type Scheduler struct {
	cfg     Config
	metrics *metrics
	slots   chan struct{} // one element per probe under way
	wake    chan struct{} // holds one element when the queue may have changed
	cut     chan struct{} // closed when probes under way have to end
	probes  sync.WaitGroup

	mu       sync.Mutex
	stopping bool              // guarded by mu: no probe is begun any more
	entries  map[string]*entry // guarded by mu, as is everything in an entry but busy
	queue    queue             // guarded by mu: entries that are due some time, soonest first
}

// entry is what the scheduler knows of one endpoint.
type entry struct {
	endpoint store.Endpoint
	schedule Schedule
	state    store.State
	due      time.Time // zero when not in the queue
	index    int       // in the queue
	limited  int       // checks in a row that were told to come less often
	gone     bool
	again    bool          // fell due while it was busy
	busy     chan struct{} // one element while the endpoint is being probed
}

// New returns a Scheduler that knows no endpoints yet.
func New(cfg Config) *Scheduler {
	s := &Scheduler{
		cfg:     cfg,
		slots:   make(chan struct{}, max(1, cfg.Concurrency)),
		wake:    make(chan struct{}, 1),
		cut:     make(chan struct{}),
		entries: map[string]*entry{},
	}
	s.metrics = newMetrics(cfg.Registerer, s)
	return s
}

// Set makes an endpoint known, or known in its changed form. One that was never checked, or whose definition changed,
// is due at once; otherwise it keeps its place in the schedule. The error says why its schedule cannot be read.
func (s *Scheduler) Set(e store.Endpoint, state store.State) error {
	schedule, err := ParseSchedule(e.Schedule)
	if err != nil {
		return fmt.Errorf("schedule of endpoint %s %w", e.Slug, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.entries[e.ID]
	if known != nil && !e.UpdatedAt.After(known.endpoint.UpdatedAt) {
		return nil // seen already, or read before a change that is known here
	}
	en := known
	if en == nil {
		en = &entry{busy: make(chan struct{}, 1)}
		s.entries[e.ID] = en
	}
	en.endpoint, en.schedule, en.state = e, schedule, state
	if e.Paused {
		s.unqueueLocked(en)
		return nil
	}
	due := time.Now()
	if known == nil && !state.LastCheckAt.IsZero() {
		due = schedule.Next(e.ID, due)
	}
	s.enqueueLocked(en, due)
	return nil
}

// Remove forgets an endpoint. A probe under way ends by itself.
func (s *Scheduler) Remove(endpointID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	en := s.entries[endpointID]
	if en == nil {
		return
	}
	en.gone = true
	s.unqueueLocked(en)
	delete(s.entries, endpointID)
}

// IDs lists the endpoints known, in no order.
func (s *Scheduler) IDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.entries))
	for id := range s.entries {
		ids = append(ids, id)
	}
	return ids
}

// CheckNow probes an endpoint at once, after the probe of it that may be under way, records the check and returns it.
// The schedule stays as it is. ErrChanged when the endpoint was changed meanwhile, ErrStopping when Run is to end.
func (s *Scheduler) CheckNow(ctx context.Context, endpointID string) (store.Check, error) {
	s.mu.Lock()
	en := s.entries[endpointID]
	if en == nil || s.stopping {
		defer s.mu.Unlock()
		if s.stopping {
			return store.Check{}, ErrStopping
		}
		return store.Check{}, ErrUnknownEndpoint
	}
	s.probes.Add(1)
	defer s.probes.Done()
	s.mu.Unlock()

	ctx, cancel := s.untilCut(ctx)
	defer cancel()
	if err := acquire(ctx, en.busy); err != nil {
		return store.Check{}, err
	}
	defer s.finish(en)
	if err := acquire(ctx, s.slots); err != nil {
		return store.Check{}, err
	}
	s.mu.Lock()
	j := en.jobLocked(time.Now())
	s.mu.Unlock()
	check, err := s.check(ctx, j)
	s.freeSlot()
	if err != nil {
		return store.Check{}, err
	}
	_, err = s.record(context.WithoutCancel(ctx), j, check)
	return check, err
}

// untilCut bounds ctx by the end of the time that probes under way are given when Run is to end.
func (s *Scheduler) untilCut(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.cut:
			cancel(ErrStopping)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Run probes what is due until ctx ends. It returns when every probe has ended and is recorded, those of CheckNow
// included. It can be run once.
//
//	Run ─ due? ─ slot free? ─► go tick ─ check ─ Config.Probe
//	                                   └ record ─ Config.Record ─► due again
func (s *Scheduler) Run(ctx context.Context) error {
	probing, cancel := s.untilCut(context.WithoutCancel(ctx))
	defer cancel()
	for ctx.Err() == nil {
		timer := time.NewTimer(s.startDue(probing))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	patience := time.AfterFunc(shutdownGrace, func() { close(s.cut) })
	defer patience.Stop()
	s.probes.Wait()
	return nil
}

// idle is how long Run sleeps when there is nothing to start; whatever changes that wakes it.
const idle = time.Hour

// startDue starts a probe of everything that is due while there are slots, and returns how long there is nothing to do.
func (s *Scheduler) startDue(ctx context.Context) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		en := s.queue[0]
		if wait := time.Until(en.due); wait > 0 {
			return wait
		}
		select {
		case en.busy <- struct{}{}:
		default:
			s.unqueueLocked(en)
			en.again = true // finish puts it back
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			<-en.busy
			return idle // freeSlot wakes Run
		}
		j := en.jobLocked(en.due)
		s.unqueueLocked(en)
		s.probes.Go(func() { s.tick(ctx, j) })
	}
	return idle
}

// job is one check to be done, with the endpoint as it was when it began.
type job struct {
	entry    *entry
	endpoint store.Endpoint
	schedule Schedule
	state    store.State
	due      time.Time
}

func (en *entry) jobLocked(due time.Time) job {
	return job{entry: en, endpoint: en.endpoint, schedule: en.schedule, state: en.state, due: due}
}

// tick does one scheduled check and puts its endpoint back into the queue.
func (s *Scheduler) tick(ctx context.Context, j job) {
	defer s.finish(j.entry)
	s.metrics.lag.Observe(max(0, time.Since(j.due).Seconds()))
	next := s.nextAfter(j, s.checkAndRecord(ctx, j))

	s.mu.Lock()
	defer s.mu.Unlock()
	en := j.entry
	if en.gone || en.endpoint.Paused || !en.due.IsZero() || en.again {
		return // gone, or due by a change that came meanwhile
	}
	s.enqueueLocked(en, next)
}

// afterwards says what one check asks of the schedule. The zero value asks for nothing.
type afterwards struct {
	confirm bool          // the check was surprising: look again soon
	away    time.Duration // the endpoint wants to be left alone for so long
}

// checkAndRecord gives the slot back before it records: a slow database must not hold up probes.
func (s *Scheduler) checkAndRecord(ctx context.Context, j job) afterwards {
	check, err := s.check(ctx, j)
	s.freeSlot()
	if err != nil {
		return afterwards{}
	}
	then := afterwards{}
	if check.Result.Verdict != probe.Down { // an outage is confirmed soon, whatever a 503 asks for
		then.away = min(max(check.Result.RetryAfter, s.backOff(j, check.Result)), maxRetryAfter)
	}
	if out, err := s.record(context.WithoutCancel(ctx), j, check); err == nil && out.Kept {
		then.confirm = out.State.Unsettled()
	}
	return then
}

// backOff returns how long an endpoint is to be left alone that says we come too often: its period, doubled with each check
// in a row that was told so. Zero when this one was not.
func (s *Scheduler) backOff(j job, r probe.Result) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if classOf(r) != probe.ClassRateLimited {
		j.entry.limited = 0
		return 0
	}
	pause := max(j.schedule.every, minBackOff)
	for range j.entry.limited {
		pause = min(2*pause, maxRetryAfter)
	}
	j.entry.limited++
	return pause
}

// nextAfter returns when the endpoint of j is due next.
func (s *Scheduler) nextAfter(j job, then afterwards) time.Time {
	now := time.Now()
	next := j.schedule.Next(j.endpoint.ID, now)
	if j.schedule.every > 0 {
		if missed := next.Sub(j.due)/j.schedule.every - 1; missed > 0 {
			s.metrics.missed.Add(float64(missed))
		}
	}
	if soon := now.Add(j.endpoint.Confirm.After); then.confirm && soon.Before(next) {
		next = soon
	}
	if back := now.Add(then.away); back.After(next) {
		next = back
	}
	return next
}

// ErrChanged means that an endpoint was changed or removed while it was being probed: what was seen is not kept, because
// it may be about another address.
var ErrChanged = errors.New("endpoint changed while it was being probed")

// check probes once. It returns an error when there is no result to speak of: the endpoint changed, the probe was cut
// short by us, or it panicked, and our bug must not become somebody's outage.
func (s *Scheduler) check(ctx context.Context, j job) (check store.Check, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.metrics.panics.Inc()
			s.cfg.Log.Error("probe panicked", "endpoint", j.endpoint.Slug, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("probe panicked")
		}
	}()
	result := s.cfg.Probe(ctx, s.target(ctx, j))
	if err := context.Cause(ctx); err != nil {
		return store.Check{}, err
	}
	if !j.state.WantsTranscript(result) {
		result.Transcript = nil // it would be compressed for nothing
	}
	s.mu.Lock()
	changed := j.entry.gone || !j.entry.endpoint.UpdatedAt.Equal(j.endpoint.UpdatedAt)
	s.mu.Unlock()
	if changed {
		return store.Check{}, ErrChanged
	}
	s.metrics.observe(result)
	return store.NewCheck(j.endpoint.ID, s.cfg.Location, j.due, result), nil
}

// target is what a probe of j needs. The transcript is asked for each time: whether a check fails is known afterwards.
func (s *Scheduler) target(ctx context.Context, j job) probe.Target {
	t := j.endpoint.Target(j.state)
	t.Transcript = true
	if s.cfg.Peers != nil {
		t.Peers = s.cfg.Peers(ctx, j.endpoint.Name, t)
	}
	return t
}

// record hands a check on and learns from what became of it.
func (s *Scheduler) record(ctx context.Context, j job, c store.Check) (store.Outcome, error) {
	out, err := s.cfg.Record(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && out.Kept && j.entry.endpoint.UpdatedAt.Equal(j.endpoint.UpdatedAt) {
		j.entry.state = out.State
	}
	return out, err
}

func classOf(r probe.Result) probe.Class {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Class
}

// acquire takes one element's room in a channel, waiting no longer than ctx allows.
func acquire(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freeSlot gives a slot back and has Run look who waits for it.
func (s *Scheduler) freeSlot() {
	<-s.slots
	s.nudge()
}

// finish ends the probing of an endpoint. One that fell due meanwhile is due now.
func (s *Scheduler) finish(en *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	<-en.busy
	if en.again && !en.gone && !en.endpoint.Paused {
		s.enqueueLocked(en, time.Now())
	}
	en.again = false
}

func (s *Scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
