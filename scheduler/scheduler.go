// Package scheduler decides when endpoints are probed: on their schedule, sooner when a surprising check wants
// confirmation, at once when somebody asks, never twice at a time, and at most so many together and of one host. It keeps
// nothing: what it starts from is handed in with Set, and every check goes out through Config.Record.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	PerHost     int // probes of one host at once; zero means DefaultPerHost, a negative number that there is no such bound
	Probe       func(ctx context.Context, t probe.Target) probe.Result
	// Peers returns the heads that other endpoints of the target's chain were seen at; self is the name of the endpoint.
	// Nil means that there are none.
	Peers func(ctx context.Context, self string, t probe.Target) []probe.Head
	// Record keeps a check and says what became of it. After an error the schedule simply goes on.
	Record func(ctx context.Context, c store.Check) (store.Outcome, error)
	Log    *slog.Logger
	// Registerer takes the scheduler's metrics; nil means that nobody looks at them.
	Registerer prometheus.Registerer
	// Now is the wall clock, by which schedules go; nil means time.Now. It may jump.
	Now func() time.Time

	// Lease reports whether an endpoint is ours to probe, and under which epoch. A check is made only while it is, and
	// recorded only when the epoch is still the same at its end. Nil means that everything is ours.
	Lease func(endpointID string) (epoch int64, ok bool)
	// LeaseSince reports whether Lease was ok of an endpoint all the time since a moment: a probe during which it was not has
	// perhaps measured that this process was frozen. Nil means that it was.
	LeaseSince func(endpointID string, since time.Time) bool

	// References are addresses, each "host:port", of which one at least accepts connections while this location has its
	// network. When most checks fail for reasons of the network and none of them answers, the location is offline and its
	// checks are unknown. None switches that off. See guard for the rules.
	References []string
	// DialReference connects to a reference; nil means a net.Dialer. Its ctx ends after 3 s.
	DialReference func(ctx context.Context, network, addr string) (net.Conn, error)
	// Offline is called once each time this location goes offline, and once each time it is back. since is when it went
	// offline, in both cases. Nil means that nobody wants to hear of it. Calls follow one another; ctx ends with Run.
	Offline func(ctx context.Context, offline bool, since time.Time)
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
	now     func() time.Time
	perHost int // negative: no bound
	metrics *metrics
	guard   *guard        // nil without references
	wake    chan struct{} // holds one element when Run has something to do sooner than it thinks
	quit    chan struct{} // closed when no probe is begun any more
	cut     chan struct{} // closed when probes under way have to end
	probes  sync.WaitGroup

	mu          sync.Mutex
	stopping    bool              // guarded by mu: no probe is begun any more
	entries     map[string]*entry // guarded by mu, as is everything in an entry
	hosts       map[string]*host  // guarded by mu, as is everything in a host
	queue       queue             // guarded by mu: turns that are due some time, soonest first
	scheduled   int               // guarded by mu: entries that are due some time
	hostWaiting int               // guarded by mu: turns that wait for a slot of their host
	limit       int               // guarded by mu: probes at once
	running     int               // guarded by mu: probes under way
	full        bool              // guarded by mu: something is due and finds no slot
	looked      time.Time         // guarded by mu: when Run looked last what is due
	resumed     time.Time         // guarded by mu: until when this process stood still, last
	repeats     int               // guarded by mu: how often the clock went back
	repeated    time.Time         // guarded by mu: until when times came before, because it did
}

// entry is what the scheduler knows of one endpoint.
type entry struct {
	turn     turn            // the next one of its schedule; in no queue while that probe is under way
	endpoint *store.Endpoint // is never written to
	state    *store.State    // is never written to
	schedule Schedule
	host     *host
	last     time.Time     // the scheduled time of its latest check
	waiting  queue         // turns that fell due while it was being probed
	idle     chan struct{} // of Drain; closed when it is not being probed any more
	limited  int           // checks in a row that were told to come less often
	busy     bool          // it is being probed, or the check is being recorded
	ticking  bool          // its schedule's turn is what it is being probed for
	soon     bool          // somebody wants to see it at once though it is ticking
	active   bool          // it is due some time: neither paused nor gone
	gone     bool          // it is known no longer, and stays only until it is not busy
	drained  bool          // it is gone, and the check under way is to be recorded all the same
}

// next returns when the endpoint is due by its schedule after a time.
func (en *entry) next(after time.Time) time.Time { return en.schedule.next(en.endpoint.ID, after) }

// New returns a Scheduler that knows no endpoints yet.
func New(cfg Config) *Scheduler {
	s := &Scheduler{
		cfg:     cfg,
		now:     cfg.Now,
		perHost: cfg.PerHost,
		limit:   max(1, cfg.Concurrency),
		wake:    make(chan struct{}, 1),
		quit:    make(chan struct{}),
		cut:     make(chan struct{}),
		entries: map[string]*entry{},
		hosts:   map[string]*host{},
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.perHost == 0 {
		s.perHost = DefaultPerHost
	}
	s.guard = newGuard(cfg, s.now)
	s.metrics = newMetrics(cfg.Registerer, s)
	return s
}

// Set makes an endpoint known, or known in its changed form. When it is due follows from its schedule and its id alone,
// so that a start with many endpoints is like any other moment; Soon has one checked sooner. The error says why its
// schedule cannot be read.
func (s *Scheduler) Set(e store.Endpoint, state store.State) error {
	if s.knows(e) {
		return nil
	}
	schedule, err := ParseSchedule(e.Schedule)
	if err != nil {
		return fmt.Errorf("schedule of endpoint %s %w", e.Slug, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.knowsLocked(e) {
		return nil
	}
	kept, known := e, state // copied here, so that a call that changes nothing costs nothing
	s.setLocked(&kept, &known, schedule)
	return nil
}

// knows reports whether an endpoint was seen already in this form, or e was read before a change that is known here.
func (s *Scheduler) knows(e store.Endpoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.knowsLocked(e)
}

func (s *Scheduler) knowsLocked(e store.Endpoint) bool {
	known := s.entries[e.ID]
	return known != nil && !known.gone && !e.UpdatedAt.After(known.endpoint.UpdatedAt)
}

func (s *Scheduler) setLocked(e *store.Endpoint, state *store.State, schedule Schedule) {
	en := s.entries[e.ID]
	if en == nil {
		en = &entry{}
		en.turn.entry = en
		s.entries[e.ID] = en
	}
	urgent := en.turn.in != nil && en.turn.why == atOnce
	s.leaveLocked(&en.turn)
	en.endpoint, en.state, en.schedule = e, state, schedule
	en.gone, en.drained = false, false
	s.settleLocked(en)
	s.activateLocked(en, !e.Paused)
	switch {
	case e.Paused:
		en.soon = false
	case en.ticking: // the end of the tick puts it into the queue
	case urgent: // and keeps its place among those who wait
		s.enqueueLocked(&en.turn, earlier(en.turn.due, s.now()), atOnce)
	default:
		s.enqueueLocked(&en.turn, en.next(s.now()), onSchedule)
	}
}

func (s *Scheduler) activateLocked(en *entry, active bool) {
	switch {
	case active && !en.active:
		s.scheduled++
	case !active && en.active:
		s.scheduled--
	}
	en.active = active
}

// Soon makes an endpoint due at once, or right after the probe of it that is under way: it was just registered or edited,
// and somebody waits to see how it does. Nothing happens when it is not known, or paused.
func (s *Scheduler) Soon(endpointID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	en, now := s.entries[endpointID], s.now()
	switch {
	case en == nil || !en.active:
	case en.ticking:
		en.soon = true
	case en.turn.in != nil && !en.turn.due.After(now): // it waits for a slot already, and keeps its place
	default:
		s.enqueueLocked(&en.turn, now, atOnce)
	}
}

// SetLimit changes how many probes may be under way at once. When more are, they go on.
func (s *Scheduler) SetLimit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = max(1, n)
	s.nudge()
}

// Remove forgets an endpoint. A probe under way ends by itself and is not recorded.
func (s *Scheduler) Remove(endpointID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if en := s.entries[endpointID]; en != nil {
		s.removeLocked(en)
	}
}

func (s *Scheduler) removeLocked(en *entry) {
	s.leaveLocked(&en.turn)
	s.activateLocked(en, false)
	en.gone, en.soon = true, false
	if !en.busy {
		s.forgetLocked(en)
	}
}

// forgetLocked drops an entry that is gone. Until it is not busy it stays, so that whoever sets it again does not have it
// probed twice at a time.
func (s *Scheduler) forgetLocked(en *entry) {
	delete(s.entries, en.endpoint.ID)
	en.host.entries--
	s.forgetHostLocked(en.host)
}

// Drain removes endpoints, to hand them over to somebody else, and returns when none of them is being probed, and no check of
// them being recorded, or when ctx ends, with its cause. Unlike with Remove, the checks that are under way are recorded.
func (s *Scheduler) Drain(ctx context.Context, endpointIDs []string) error {
	for _, idle := range s.removeAll(endpointIDs) {
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// removeAll removes endpoints and returns channels that are closed as those of them that are busy come to their end.
func (s *Scheduler) removeAll(endpointIDs []string) (busy []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range endpointIDs {
		en := s.entries[id]
		if en == nil {
			continue
		}
		if en.busy {
			if en.idle == nil {
				en.idle = make(chan struct{})
			}
			busy = append(busy, en.idle)
			en.drained = en.drained || !en.gone
		}
		s.removeLocked(en)
	}
	return busy
}

// IDs lists the endpoints known, in no order.
func (s *Scheduler) IDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.entries))
	for id, en := range s.entries {
		if !en.gone {
			ids = append(ids, id)
		}
	}
	return ids
}

// Run probes what is due until ctx ends. It returns when every probe has ended and is recorded, those of CheckNow
// included. It can be run once.
//
//	Run ─ due? ─ slots free? ─► go tick ─ check ─ Config.Probe
//	                                    │       └ guard.judge
//	                                    └ record ─ Config.Record ─► due again
func (s *Scheduler) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	defer s.guard.start(background)()
	probing, cancel := s.untilCut(background)
	defer cancel()
	s.dispatch(ctx, probing)
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	close(s.quit)
	patience := time.AfterFunc(shutdownGrace, func() { close(s.cut) })
	defer patience.Stop()
	s.probes.Wait()
	return nil
}

// dispatch begins probes with a context of their own until ctx ends.
func (s *Scheduler) dispatch(ctx, probing context.Context) {
	clock := newClock(s.now)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		s.minding(clock)
		timer.Reset(s.startDue(probing))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// startDue has everything that is due go on while there are slots, and returns how long there is nothing to do. What
// changes that wakes Run.
func (s *Scheduler) startDue(ctx context.Context) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = time.Now()
	for len(s.queue) > 0 {
		t := s.queue[0]
		if wait := t.due.Sub(s.now()); wait > 0 {
			return min(wait, maxSleep)
		}
		if s.running >= s.limit {
			s.full = true
			break
		}
		s.queue.remove(t)
		s.goOnLocked(ctx, t)
	}
	return maxSleep
}

// goOnLocked begins a probe whose turn it is, for which there is a slot, unless the endpoint or its host is busy.
func (s *Scheduler) goOnLocked(ctx context.Context, t *turn) {
	en := t.entry
	switch {
	case en.gone:
		t.call.fail(ErrUnknownEndpoint) // the schedule of an endpoint that is gone has no turn
	case en.busy && t.why == onSchedule:
		s.metrics.missed.Inc()
		s.enqueueLocked(t, en.next(s.now()), onSchedule)
	case en.busy:
		en.waiting.add(t)
	case !s.hasRoom(en.host):
		s.waitLocked(t, en.host)
		return
	default:
		s.beginLocked(ctx, t)
		return
	}
	s.promoteLocked(en.host) // t does not take the slot that it may have been given
}

// beginLocked takes the slots and begins a probe: in a goroutine of its own, or in that of CheckNow.
func (s *Scheduler) beginLocked(ctx context.Context, t *turn) {
	en := t.entry
	en.busy = true
	s.takeLocked(en.host)
	j := job{entry: en, endpoint: en.endpoint, schedule: en.schedule, state: en.state, host: en.host}
	if t.call != nil {
		j.due = s.slotLocked(en, s.now(), t.why)
		t.call.begin(j)
		return
	}
	en.ticking = true
	j.due = s.slotLocked(en, t.due, t.why)
	s.probes.Go(func() { s.tick(ctx, j) })
}

// slotLocked returns the scheduled time of a check that is due at a time, as it is kept. An endpoint has no two checks of
// the same scheduled time: when the clock goes back and times come again, those are set apart by microseconds, the least
// that is kept, and so is a check that the schedule does not ask for from one of the same moment.
func (s *Scheduler) slotLocked(en *entry, due time.Time, why reason) time.Time {
	due = store.Stamp(due)
	if !due.After(s.repeated) {
		due = due.Add(time.Duration(s.repeats) * time.Microsecond)
	}
	since := due.Sub(en.last)
	if since == 0 || why != onSchedule && since < 0 && since > -time.Second {
		due = en.last.Add(time.Microsecond)
	}
	en.last = due
	return due
}

// finishLocked ends the probing of an endpoint. What fell due meanwhile is due still.
func (s *Scheduler) finishLocked(en *entry) {
	en.busy = false
	if en.idle != nil {
		close(en.idle)
		en.idle = nil
	}
	for len(en.waiting) > 0 {
		t := en.waiting[0]
		en.waiting.remove(t)
		t.due = earlier(t.due, s.now()) // the clock may have gone back
		s.queueLocked(t)
	}
	if en.gone {
		s.forgetLocked(en)
	}
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
