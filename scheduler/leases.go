package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/store"
)

// LeasesConfig is what Leases need. Leaser, Location and Log are required.
type LeasesConfig struct {
	Leaser   store.Leaser
	Location string
	// Changed is called after other shards are held than before, to have the endpoints of exactly those scheduled that
	// Holds speaks for: one call at a time, and once more a second after an error.
	Changed func(ctx context.Context) error
	// Drain takes the endpoints of shards that are to be handed over out of the schedule, and returns when those of their
	// probes that are under way have ended and are recorded, or when ctx has ended, after drainPatience at most.
	Drain func(ctx context.Context, shards []int)
	Log   *slog.Logger
	// Registerer takes the metrics; nil means that nobody looks at them.
	Registerer prometheus.Registerer
}

// The beat of the protocol. A shard of an instance that died is free after leaseTTL and seen to be so within glanceEvery; one
// that was handed over is seen within glanceEvery.
const (
	// leaseTTL leaves two heartbeats to fail before a lease is lost, and four seconds of the twenty that a takeover may
	// take for the takeover itself.
	leaseTTL = 12 * time.Second
	// shiftEvery is how often a heartbeat is written.
	shiftEvery = 4 * time.Second
	// glanceEvery is how often the database is asked at all, which costs a read.
	glanceEvery = time.Second
	// askPatience bounds each question to the database.
	askPatience = 3 * time.Second
	// unnoticed is the longest pause between two signs of our own life, failed questions included, that can pass for
	// one without a freeze: glanceEvery and askPatience, and as much again on a machine that is very busy.
	unnoticed = 8 * time.Second
	// drainPatience bounds how long a shard is held after others have a right to it.
	drainPatience = 10 * time.Second
	// leavePatience bounds the handing over of everything at the end: without it the leases run out by themselves.
	leavePatience = 5 * time.Second
)

// Leases are the shards that this instance may probe, kept up against a database that it shares with others. The methods are
// safe for concurrent use.
//
// A lease is trusted until leaseTTL after the question was sent that renewed it, by our own monotonic clock, so that a process
// that was frozen finds that it cannot know what it holds before it finds out what it lost. While the database is known to
// be away, because the last question failed, what was held stays held: its outage stops no probing, and what another
// instance took meanwhile is told by the epoch when the checks are written.
type Leases struct {
	cfg     LeasesConfig
	me      store.Instance
	metrics *leaseMetrics
	changed chan struct{} // holds one element when other shards are held than Changed was last told
	drained chan []int    // shards whose probes have ended

	mu      sync.Mutex
	held    map[int]holding // guarded by mu
	leaving map[int]bool    // guarded by mu: shards being drained
	shift   store.Shift     // guarded by mu: the last one
	asked   time.Time       // guarded by mu: when the last shift was asked for; zero when the next is due at once
	sure    time.Time       // guarded by mu: until when the leases hold
	spared  time.Time       // guarded by mu: until when they count as held because the database is away
	broken  time.Time       // guarded by mu: when they held again, the last time that they had not held
}

// holding is a shard that is held.
type holding struct {
	epoch  int64
	unsure bool // it was handed over, and the database did not say that it heard
}

// NewLeases returns leases of nothing, for an instance with an id of its own. Run has to be started.
func NewLeases(cfg LeasesConfig) *Leases {
	if cfg.Changed == nil {
		cfg.Changed = func(context.Context) error { return nil }
	}
	if cfg.Drain == nil {
		cfg.Drain = func(context.Context, []int) {}
	}
	l := &Leases{
		cfg:     cfg,
		me:      store.Instance{ID: store.NewID("ins"), Location: cfg.Location},
		changed: make(chan struct{}, 1),
		drained: make(chan []int),
		held:    map[int]holding{},
		leaving: map[int]bool{},
	}
	l.metrics = newLeaseMetrics(cfg.Registerer, l)
	return l
}

// Owns reports whether this instance may probe an endpoint and record what it sees, and returns the epoch of the lease for
// store.Check. It is not ok when the lease is lost, and also while that cannot be known.
func (l *Leases) Owns(endpointID string) (epoch int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[store.ShardOf(endpointID)]
	return h.epoch, ok && l.holdsLocked(h, time.Now())
}

func (l *Leases) holdsLocked(h holding, now time.Time) bool {
	return now.Before(l.sure) && !h.unsure || now.Before(l.spared)
}

// OwnsSince reports whether Owns was true of an endpoint all the time since a moment by the monotonic clock. A probe during
// which it was not has perhaps measured our own freeze.
func (l *Leases) OwnsSince(endpointID string, since time.Time) bool {
	_, ok := l.Owns(endpointID)
	l.mu.Lock()
	defer l.mu.Unlock()
	return ok && !since.Before(l.broken)
}

// Holds reports whether an endpoint is to be scheduled here. Unlike Owns it does not waver while the database is slow or
// away, and it is false of what is being handed over.
func (l *Leases) Holds(endpointID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	shard := store.ShardOf(endpointID)
	_, ok := l.held[shard]
	return ok && !l.leaving[shard]
}

// Live returns how many instances share the location, this one included, as far as is known.
func (l *Leases) Live() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shift.Live
}

// Run keeps the leases up until ctx ends, then hands all of them over: end ctx after everything that was probed is recorded.
// It can be run once.
//
//	Run ─ each second: glance ─ something to win or lose, or time for a heartbeat? ─► shift
//	        │                                                            └ surplus? ─► go Drain ─► release
//	        └ Changed, whenever other shards are held
func (l *Leases) Run(ctx context.Context) error {
	defer l.leave(context.WithoutCancel(ctx))
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { l.tellChanges(ctx) })
	tick := time.NewTicker(glanceEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if surplus := l.ask(context.WithoutCancel(ctx)); len(surplus) > 0 {
			others.Go(func() { l.drain(ctx, surplus) })
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case shards := <-l.drained:
			l.release(context.WithoutCancel(ctx), shards)
		}
	}
	return nil
}

// ask brings the leases up to date, with as little as will do, and returns what is to be drained.
func (l *Leases) ask(ctx context.Context) (surplus []int) {
	if !l.shiftIsDue() && !l.glance(ctx) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	asked := time.Now()
	shift, err := l.cfg.Leaser.Shift(ctx, l.me, leaseTTL)
	if err != nil {
		l.failed(asked, err)
		return nil
	}
	return l.follow(asked, shift)
}

// shiftIsDue reports whether it is time for a heartbeat, or what is held is in doubt.
func (l *Leases) shiftIsDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	return now.Sub(l.asked) >= shiftEvery || !now.Before(l.sure)
}

// glance reports whether a shift would change anything.
func (l *Leases) glance(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	asked := time.Now()
	g, err := l.cfg.Leaser.Glance(ctx, l.me)
	if err != nil {
		l.failed(asked, err)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return g.Live != l.shift.Live || g.Held != len(l.shift.Held) || g.Free > 0 && g.Held < l.shift.Share
}

// follow makes what the database said true, and returns the shards that are to be drained.
func (l *Leases) follow(asked time.Time, shift store.Shift) (surplus []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.awayLocked(now) {
		l.cfg.Log.Info("leases are renewed again", "shards", len(shift.Held))
	}
	l.noteBreakLocked(now)
	l.sure, l.spared = asked.Add(shift.TTL), time.Time{}
	l.asked, l.shift = asked, shift
	l.holdLocked(shift.Held)
	if len(l.leaving) > 0 {
		return nil // one hand-over at a time: the rest is still surplus when it is done
	}
	for _, shard := range shift.Surplus {
		l.leaving[shard] = true
	}
	return shift.Surplus
}

// noteBreakLocked remembers when leases that had run out begin to hold again.
func (l *Leases) noteBreakLocked(now time.Time) {
	if !now.Before(l.sure) && !now.Before(l.spared) {
		l.broken = now
	}
}

// holdLocked replaces what is held.
func (l *Leases) holdLocked(leases []store.Lease) {
	held := make(map[int]holding, len(leases))
	taken := 0
	for _, lease := range leases {
		held[lease.Shard] = holding{epoch: lease.Epoch}
		if old, ok := l.held[lease.Shard]; !ok || old.epoch != lease.Epoch {
			taken++
			if lease.Epoch > 1 {
				l.metrics.takeovers.Inc()
			}
		}
	}
	lost := 0
	for shard, old := range l.held {
		if h, ok := held[shard]; !ok || h.epoch != old.epoch {
			lost++
		}
	}
	l.held = held
	l.metrics.lost.Add(float64(lost))
	if lost > 0 {
		l.cfg.Log.Warn("leases lost to other instances", "shards", lost)
	}
	if taken > 0 {
		l.cfg.Log.Info("leases taken", "shards", taken, "held", len(held), "instances", l.shift.Live)
	}
	if taken > 0 || lost > 0 {
		l.nudge()
	}
}

// failed notes that a question was not answered: the database is away, unless it was we who slept.
func (l *Leases) failed(asked time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = time.Time{}
	now := time.Now()
	if now.Sub(asked) > unnoticed {
		return
	}
	if !l.awayLocked(now) {
		l.cfg.Log.Warn("leases cannot be renewed: what was held stays held until the database is back", "error", err)
	}
	l.noteBreakLocked(now)
	l.spared = now.Add(unnoticed)
}

// awayLocked reports whether the last question was not answered, not long ago.
func (l *Leases) awayLocked(now time.Time) bool { return now.Before(l.spared) }

// drain has the probes of shards end and tells Run to release them.
func (l *Leases) drain(ctx context.Context, shards []int) {
	patience, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	l.cfg.Drain(patience, shards)
	select {
	case l.drained <- shards:
	case <-ctx.Done():
	}
}

// release hands shards over. They are let go of before the database hears of it, because another instance may have them
// before we hear of that. When the database does not say that it heard they count as held only as long as it is away.
func (l *Leases) release(ctx context.Context, shards []int) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	given := l.letGo(shards)
	asked := time.Now()
	err := l.cfg.Leaser.Release(ctx, l.me, shards)
	if err != nil {
		l.failed(asked, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.leaving)
	if err == nil {
		l.cfg.Log.Info("leases handed over", "shards", len(given), "held", len(l.held), "instances", l.shift.Live)
		return
	}
	for shard, h := range given {
		l.held[shard] = holding{epoch: h.epoch, unsure: true}
	}
	l.nudge()
}

// letGo forgets shards and returns what was held of them.
func (l *Leases) letGo(shards []int) map[int]holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	given := make(map[int]holding, len(shards))
	for _, shard := range shards {
		if h, ok := l.held[shard]; ok {
			given[shard] = h
			delete(l.held, shard)
		}
	}
	return given
}

// tellChanges calls Changed whenever other shards are held, until ctx ends.
func (l *Leases) tellChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.changed:
		}
		err := l.cfg.Changed(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		l.cfg.Log.Warn("schedule does not follow the leases", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			l.nudge()
		}
	}
}

// nudge has Changed called.
func (l *Leases) nudge() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// leave hands everything over.
func (l *Leases) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	l.mu.Lock()
	clear(l.held)
	l.mu.Unlock()
	if err := l.cfg.Leaser.Leave(ctx, l.me); err != nil {
		l.cfg.Log.Warn("leases not handed over: other instances take them when they have run out", "error", err)
	}
}

// leaseMetrics are what /metrics shows of leases.
type leaseMetrics struct {
	lost      prometheus.Counter
	takeovers prometheus.Counter
}

func newLeaseMetrics(r prometheus.Registerer, l *Leases) *leaseMetrics {
	m := &leaseMetrics{
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_leases_lost_total",
			Help: "Shards that another instance took before they were handed over.",
		}),
		takeovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_lease_takeovers_total",
			Help: "Shards taken that another instance had: it stopped, died or handed them over.",
		}),
	}
	if r == nil {
		return m
	}
	r.MustRegister(m.lost, m.takeovers,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_leases_held",
			Help: "Shards of this location that this instance probes, of 128.",
		}, func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return float64(len(l.held))
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_instances_live",
			Help: "Instances alive at this location when the leases were renewed last, this one included.",
		}, func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return float64(l.shift.Live)
		}),
	)
	return m
}
