package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// RecorderConfig is what a Recorder needs. Store, Judge and Log are required; zero numbers mean the defaults.
type RecorderConfig struct {
	Store interface {
		Record(ctx context.Context, checks []Check, judge Judge) ([]Outcome, error)
	}
	Judge Judge
	Log   *slog.Logger
	// Keep is how many bytes of checks may wait in memory while the database is away. Beyond it they go to the Spool.
	Keep int
	// Spool is where checks wait beyond Keep; nil for nowhere: then the oldest are given up.
	Spool *Spool
	// Recorded is called after a group was committed, and is told whether it left notices to be delivered.
	Recorded func(notices bool)
}

// What a Recorder does by default.
const (
	// DefaultKeep has room for some 60,000 checks with four steps each. Twice as much is kept while a spool cannot be written.
	DefaultKeep = 32 << 20
	// maxGroup bounds a transaction, so that a long backlog is written in pieces that each make progress.
	maxGroup = 1000
	// writeTimeout tells a database that is away from one that is slow.
	writeTimeout = 10 * time.Second
	// maxWait is how long anybody waits for a write that takes long: a database that does not say no, behind a lock or on a
	// connection that went silent, must not hold up the schedule until writeTimeout.
	maxWait = 3 * time.Second
	// A database that is away is tried again after minRetry, then less often up to maxRetry.
	minRetry = 500 * time.Millisecond
	maxRetry = 10 * time.Second
	// maxAttempts is how often a check that fails while its neighbours succeed is tried before it is given up: it is
	// the check then, not the database.
	maxAttempts = 3
	// lastChance bounds the last attempt to write what waits when the service stops.
	lastChance = 15 * time.Second
	// spillEvery is how long a check waits in memory at most once the spool is in use: what a kill may lose.
	spillEvery = 100 * time.Millisecond
	// spillRetry is how long a spool that could not be written is left alone.
	spillRetry = time.Second
	// maxStall is how long a check waits for a slow disk, when memory is full, before others are given up in its stead.
	maxStall = time.Second
)

// ErrWaiting means that a check is kept because the database is away, or takes long; it will be recorded when it answers.
var ErrWaiting = errors.New("database is away: the check waits to be recorded")

// ErrGivenUp means that a check could not be recorded: too many waited, or the database would not take this one.
var ErrGivenUp = errors.New("check was given up")

// Recorder records checks in groups: whatever waits while one transaction runs goes into the next. While the database
// is away it keeps checks, in order, without transcripts and tool lists, and writes them when it returns. Run must be
// running.
//
//	Record ─► live ────────────────────────► hand ─► Store.Record
//	   └ away ► memory ─────────────────────►┘
//	               └ over Keep ► Spool ─────►┘
//
// Checks wait in memory up to Keep. Beyond it all that is in memory goes to the spool, and so does what follows, every 100 ms,
// until the spool is empty again: what is in memory is always younger than what is in the spool. When the spool can take no
// more (its limit, a full disk), twice Keep is kept in memory, and beyond that the oldest there is given up: how an outage
// began is in the spool, how things stand at its end in memory, and what is missing lies between.
type Recorder struct {
	cfg   RecorderConfig
	wake  chan struct{}
	spill chan struct{} // there is something for the spool
	// disk holds an element while checks are moved between memory, the spool and hand, which takes time that nobody who
	// records a check has. It is taken before mu.
	disk chan struct{}

	mu     sync.Mutex
	live   []*record // guarded by mu: those that somebody waits for, oldest first; empty while memory or the spool is not
	weight int       // guarded by mu: of live, in bytes, about
	hand   []*record // guarded by mu: the group that is written or tried again, older than all others; changed by Run alone
	memory backlog   // guarded by mu
	moving chunk     // guarded by mu: on its way from memory to the spool
	away   time.Time // guarded by mu: since when the database is; zero when it is not
	began  time.Time // guarded by mu: when the write that is under way did; zero when none is
	hangs  bool      // guarded by mu: that write takes longer than anybody waits

	givenUp    int       // guarded by mu
	groups     int       // guarded by mu
	unreadable int       // how often in a row the spool could not be read; Run's alone
	spillFrom  time.Time // guarded by mu: when a spool that could not be written is tried again; zero when it could
	toldLost   time.Time // guarded by mu: when the log was told of checks given up
	toldSpool  time.Time // guarded by mu: when the log was told of a spool that cannot be written
}

// record is a check on its way, with somebody who may wait for it.
type record struct {
	check    Check
	attempts int
	done     chan recorded // room for one; nil once answered, guarded by Recorder.mu
	held     bool          // guarded by Recorder.mu: it waits because the database is away, and is in no spool
	spooled  bool          // guarded by Recorder.mu: it is in the spool
}

type recorded struct {
	outcome Outcome
	err     error
}

// RecorderStats is how a Recorder stands.
type RecorderStats struct {
	Waiting     int       // checks in memory because the database is away
	Bytes       int       // that they take
	Spooled     int       // checks in the spool
	SpoolBytes  int64     // size of the spool file
	SpoolFails  bool      // checks wait that the spool could not take: it has reached its limit, or cannot be written
	GivenUp     int       // checks lost since the start
	LostAtStart int       // checks that were lost when the process before was killed
	Groups      int       // transactions since the start
	AwaySince   time.Time // zero while the database is not away
}

// NewRecorder returns a Recorder whose Run has to be started.
func NewRecorder(cfg RecorderConfig) *Recorder {
	if cfg.Keep <= 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Recorded == nil {
		cfg.Recorded = func(bool) {}
	}
	return &Recorder{cfg: cfg, wake: make(chan struct{}, 1), spill: make(chan struct{}, 1), disk: make(chan struct{}, 1)}
}

// Record keeps a check and returns once it is committed, or with ErrWaiting: at once while the database is away or older
// checks still wait for it, and after maxWait when it does not answer. When ctx ends first the check is still recorded.
func (r *Recorder) Record(ctx context.Context, c Check) (Outcome, error) {
	done, err := r.add(c)
	if err != nil {
		r.relieve()
		return Outcome{}, err
	}
	select {
	case out := <-done:
		return out.outcome, out.err
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	}
}

// add puts a check at the end of what waits. It returns where its outcome will be, or why nobody need wait for it.
func (r *Recorder) add(c Check) (done chan recorded, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer signal(r.wake)
	if weight := weigh(c); !r.behindLocked() && (len(r.live) == 0 || r.weight+weight <= r.cfg.Keep) {
		done = make(chan recorded, 1)
		r.live = append(r.live, &record{check: c, done: done})
		r.weight += weight
		return done, nil
	}
	r.putOffLiveLocked()
	if err := r.putOffLocked(c); err != nil {
		return nil, err
	}
	return nil, ErrWaiting
}

// weigh returns about how many bytes a check takes in memory.
func weigh(c Check) int {
	n := 1024 + 256*len(c.Result.Steps) + len(c.Transcript)
	if c.Result.Contract != nil {
		n += len(c.Result.Contract.Tools)
	}
	return n
}

// signal puts an element into ch, unless there is one already.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// behindLocked reports whether checks wait that nobody waits for.
func (r *Recorder) behindLocked() bool {
	return !r.away.IsZero() || r.hangs || r.memory.checks+r.moving.checks > 0 || r.unreadLocked() > 0
}

func (r *Recorder) unreadLocked() int {
	if r.cfg.Spool == nil {
		return 0
	}
	_, unread, _ := r.cfg.Spool.counts()
	return unread
}

// putOffLiveLocked puts those that somebody waits for where nobody does.
func (r *Recorder) putOffLiveLocked() {
	for _, rec := range r.takeLiveLocked(len(r.live)) {
		err := r.putOffLocked(rec.check)
		rec.answer(recorded{err: cmp.Or(err, ErrWaiting)})
	}
}

// putOffLocked puts a check at the end of those in memory. ErrGivenUp when it is one that cannot be kept there.
func (r *Recorder) putOffLocked(c Check) error {
	if err := r.memory.push(c); err != nil {
		r.refuseLocked(c, err)
		return ErrGivenUp
	}
	r.holdLocked(1)
	if r.cfg.Spool == nil {
		r.boundLocked(r.cfg.Keep)
	} else if r.memory.bytes > r.cfg.Keep || r.spoolInUse() {
		signal(r.spill)
	}
	return nil
}

// refuseLocked gives a check up.
func (r *Recorder) refuseLocked(c Check, err error) {
	r.givenUp++
	r.cfg.Log.Error("check given up", "check", c.ID, "endpoint", c.EndpointID, "error", err)
}

func (r *Recorder) holdLocked(delta int) {
	if r.cfg.Spool != nil {
		r.cfg.Spool.hold(delta)
	}
}

// boundLocked gives up the oldest of what is in memory while that has more than limit bytes.
func (r *Recorder) boundLocked(limit int) {
	before := r.memory.checks
	for r.memory.checks > 0 && r.memory.bytes+len(r.moving.frames) > limit {
		r.memory.drop()
	}
	over := before - r.memory.checks
	r.givenUp += over
	r.holdLocked(-over)
	if over > 0 && time.Since(r.toldLost) >= warnEvery {
		r.toldLost = time.Now()
		r.cfg.Log.Error("checks given up: too many wait for the database", "checks", r.givenUp)
	}
}

func (rec *record) answer(out recorded) {
	if rec.done != nil {
		rec.done <- out
		rec.done = nil
	}
}

// Waiting returns how many checks wait, in memory and in the spool, because the database is or was away.
func (r *Recorder) Waiting() int {
	s := r.Stats()
	return s.Waiting + s.Spooled
}

// GivenUp returns how many checks were lost since the start.
func (r *Recorder) GivenUp() int { return r.Stats().GivenUp }

// Stats returns how the recorder stands.
func (r *Recorder) Stats() RecorderStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := RecorderStats{
		Waiting:   held(r.hand) + r.memory.checks + r.moving.checks,
		Bytes:     r.memory.bytes + len(r.moving.frames),
		GivenUp:   r.givenUp,
		Groups:    r.groups,
		AwaySince: r.away,
	}
	if r.cfg.Spool != nil {
		s.Spooled, _, s.SpoolBytes = r.cfg.Spool.counts()
		s.SpoolFails = !r.spillFrom.IsZero() && r.behindLocked()
		s.LostAtStart = r.cfg.Spool.recovered.Lost
	}
	return s
}

// held counts the checks that wait in memory alone because the database is away.
func held(recs []*record) (n int) {
	for _, rec := range recs {
		if rec.held {
			n++
		}
	}
	return n
}

// Run writes until ctx ends, then writes what still waits, for a bounded time; what is left then goes to the spool. End ctx
// after whoever calls Record has ended.
func (r *Recorder) Run(ctx context.Context) error {
	var spilling sync.WaitGroup
	spilling.Go(func() { r.keepSpilling(ctx) })
	retry, cut := minRetry, false
	for ctx.Err() == nil {
		if !r.fill() {
			r.await(ctx)
			continue
		}
		writing, cancel := r.untilCut(ctx)
		written := r.writeGroup(writing)
		cut = writing.Err() != nil
		cancel()
		if written {
			retry = minRetry
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, maxRetry)
	}
	spilling.Wait()
	if !cut {
		r.writeRest(context.WithoutCancel(ctx))
	}
	r.leaveRest()
	return nil
}

// untilCut bounds a write by the end of ctx and then maxWait, where what is not written can go to the spool: whoever stops
// this process may kill it ten seconds later, and what is in memory alone is lost then.
func (r *Recorder) untilCut(ctx context.Context) (context.Context, context.CancelFunc) {
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if r.cfg.Spool == nil {
		return writing, cancel
	}
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(maxWait, cancel) })
	return writing, func() {
		stop()
		cancel()
	}
}

// await returns when there is something to write, or a spool that could not be read is to be tried again.
func (r *Recorder) await(ctx context.Context) {
	if r.unreadable == 0 {
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(maxRetry):
	}
}

// fill tops up hand with the oldest of what waits and reports whether there is anything in it.
func (r *Recorder) fill() bool {
	r.disk <- struct{}{}
	defer func() { <-r.disk }()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.unreadLocked() > 0 && len(r.hand) < maxGroup && r.fillFromSpoolLocked(maxGroup-len(r.hand)) {
		if len(r.hand) > 0 {
			return true
		}
	}
	room := maxGroup - len(r.hand)
	switch {
	case r.unreadLocked() > 0: // and cannot be read as yet
	case r.memory.checks > 0:
		r.fillFromMemoryLocked(room)
	default:
		r.hand = append(r.hand, r.takeLiveLocked(room)...)
	}
	return len(r.hand) > 0
}

// fillFromSpoolLocked reports whether the spool can be read. It gives mu away while it reads.
func (r *Recorder) fillFromSpoolLocked(room int) bool {
	r.mu.Unlock()
	checks, lost, err := r.readSpool(room)
	r.mu.Lock()
	for i := range checks {
		r.hand = append(r.hand, &record{check: checks[i], spooled: true})
	}
	r.givenUp += lost
	if len(r.hand) == 0 {
		r.cfg.Spool.settle(r.cfg.Spool.where(), 0)
	}
	if err != nil {
		r.unreadable++
		return false
	}
	r.unreadable = 0
	return true
}

// readSpool reads at most limit checks and says how many were lost to damage. What cannot be read, or not any more after some
// attempts, is put aside.
func (r *Recorder) readSpool(limit int) (checks []Check, lost int, err error) {
	checks, lost, err = r.cfg.Spool.next(limit)
	if lost > 0 {
		r.cfg.Log.Error("spool has damaged checks: they were put aside", "checks", lost, "aside", r.cfg.Spool.asidePath())
	}
	if err == nil || len(checks) > 0 {
		return checks, lost, nil // the error comes again
	}
	if !errors.Is(err, errFramingLost) && r.unreadable < maxAttempts {
		r.cfg.Log.Error("spool cannot be read", "error", err)
		return nil, lost, err
	}
	rest := r.cfg.Spool.giveUpRest()
	r.cfg.Log.Error("spool cannot be read: the rest was put aside", "checks", rest, "aside", r.cfg.Spool.asidePath(), "error", err)
	return nil, lost + rest, nil
}

func (r *Recorder) fillFromMemoryLocked(room int) {
	for range min(room, r.memory.checks) {
		c, err := r.memory.pop()
		if err != nil {
			r.holdLocked(-1)
			r.refuseLocked(c, err)
			continue
		}
		r.hand = append(r.hand, &record{check: c, held: true})
	}
}

// takeLiveLocked takes the oldest of those that somebody waits for.
func (r *Recorder) takeLiveLocked(limit int) []*record {
	n := min(limit, len(r.live))
	taken := append([]*record(nil), r.live[:n]...)
	clear(r.live[:n])
	r.live = r.live[n:]
	for _, rec := range taken {
		r.weight -= weigh(rec.check)
	}
	return taken
}

// writeRest writes what waits for as long as the database takes it. A spool that is being read is left to the next process.
func (r *Recorder) writeRest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastChance)
	defer cancel()
	for ctx.Err() == nil && !r.reading() && r.fill() {
		if !r.writeLast(ctx) {
			return
		}
	}
}

// writeLast is writeGroup for as long as a stop has patience.
func (r *Recorder) writeLast(ctx context.Context) bool {
	if r.cfg.Spool != nil {
		bounded, cancel := context.WithTimeout(ctx, maxWait)
		defer cancel()
		ctx = bounded
	}
	return r.writeGroup(ctx)
}

// leaveRest leaves what was not written to the spool, and counts what cannot go there.
func (r *Recorder) leaveRest() {
	if r.cfg.Spool != nil {
		r.spoolRest()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := r.takeLiveLocked(len(r.live))
	for _, rec := range r.hand {
		if !rec.spooled {
			rest = append(rest, rec)
		}
	}
	if lost := len(rest) + r.memory.checks; lost > 0 {
		r.givenUp += lost
		r.holdLocked(-held(rest) - r.memory.checks)
		r.cfg.Log.Error("checks lost at shutdown: the database is away", "checks", lost)
	}
	for _, rec := range rest {
		rec.answer(recorded{err: ErrGivenUp})
	}
	r.hand, r.memory = nil, backlog{}
}

func (r *Recorder) reading() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unreadLocked() > 0
}

// writeGroup writes what is in hand and reports whether the database took any of it.
func (r *Recorder) writeGroup(ctx context.Context) bool {
	group, began := r.hand, time.Now()
	err := r.write(ctx, group)
	if err == nil {
		r.settle(group, nil)
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	taken, refused := r.writeSingly(ctx, group)
	if len(taken) == 0 {
		r.goAway(err, time.Since(began) > 4*writeTimeout)
		r.relieve()
		return false
	}
	r.settle(taken, r.giveUpOn(refused, err))
	return true
}

// write records a group in one transaction and answers those who wait for it.
func (r *Recorder) write(ctx context.Context, group []*record) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	defer r.boundWait()()
	checks := make([]Check, len(group))
	for i, rec := range group {
		checks[i] = rec.check
	}
	outcomes, err := r.cfg.Store.Record(ctx, checks, r.cfg.Judge)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups++
	notices := false
	for i, rec := range group {
		notices = notices || outcomes[i].Opened != "" || outcomes[i].Resolved != "" || outcomes[i].Notices > 0
		r.tell(rec.check, outcomes[i])
		rec.answer(recorded{outcome: outcomes[i]})
	}
	r.cfg.Recorded(notices)
	return nil
}

// boundWait bounds how long anybody waits for the write that begins here. The write goes on.
func (r *Recorder) boundWait() (ended func()) {
	began := time.Now()
	r.mu.Lock()
	r.began = began
	r.mu.Unlock()
	timer := time.AfterFunc(maxWait, func() { r.waitNoLonger(began) })
	return func() {
		timer.Stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.began, r.hangs = time.Time{}, false
	}
}

// waitNoLonger lets nobody wait for a write any more, unless that has ended, or this process stood still meanwhile: then what
// waits may be no longer ours to record, and its lease has to go with it.
func (r *Recorder) waitNoLonger(began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.began.Equal(began) || time.Since(began) > maxWait+maxStall {
		return
	}
	r.hangs = true
	r.holdHandLocked()
	r.putOffLiveLocked()
}

// holdHandLocked lets nobody wait for what is in hand.
func (r *Recorder) holdHandLocked() {
	before := held(r.hand)
	for _, rec := range r.hand {
		rec.held = !rec.spooled
	}
	r.holdLocked(held(r.hand) - before) // before anybody is told that a check waits
	for _, rec := range r.hand {
		rec.answer(recorded{err: ErrWaiting})
	}
}

// tell logs what a check proved. It stands here, and not with whoever brought the check, because after an outage of the
// database nobody waits for the outcome any more.
func (r *Recorder) tell(c Check, out Outcome) {
	if out.Resolved != "" {
		r.cfg.Log.Info("incident resolved", "endpoint", out.Slug, "incident", out.Resolved)
	}
	if out.Opened != "" {
		r.cfg.Log.Warn("incident opened", "endpoint", out.Slug, "incident", out.Opened, "class", classOf(c.Result))
	}
}

func classOf(r probe.Result) probe.Class {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Class
}

// writeSingly finds out whether it is the database that fails or one check of the group. It stops when the first and
// the last check fail: then it is the database.
func (r *Recorder) writeSingly(ctx context.Context, group []*record) (taken, refused []*record) {
	if len(group) < 2 {
		return nil, group
	}
	last := len(group) - 1
	order := append([]*record{group[0], group[last]}, group[1:last]...)
	for i, rec := range order {
		if err := r.write(ctx, []*record{rec}); err != nil {
			refused = append(refused, rec)
		} else {
			taken = append(taken, rec)
		}
		if i == 1 && len(taken) == 0 {
			return nil, group
		}
	}
	return taken, refused
}

// giveUpOn lets go of checks that were refused too often while others were taken, and returns the rest.
func (r *Recorder) giveUpOn(refused []*record, err error) (rest []*record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range refused {
		rec.attempts++
		if rec.attempts < maxAttempts {
			rest = append(rest, rec)
			continue
		}
		r.refuseLocked(rec.check, fmt.Errorf("the database refuses it: %w", err))
		rec.answer(recorded{err: ErrGivenUp})
	}
	return rest
}

// settle ends a transaction: what was refused stays in hand, in memory alone.
func (r *Recorder) settle(taken, refused []*record) {
	r.disk <- struct{}{}
	defer func() { <-r.disk }()
	r.mu.Lock()
	defer r.mu.Unlock()
	before := held(r.hand)
	for _, rec := range refused {
		rec.held, rec.spooled = rec.held || rec.spooled, false
	}
	r.hand = refused
	if r.cfg.Spool != nil {
		r.cfg.Spool.settle(r.cfg.Spool.where(), before-held(refused))
	}
	if !r.away.IsZero() && len(taken) > 0 {
		r.away = time.Time{}
		r.cfg.Log.Info("database is back", "checks_waiting", r.waitingLocked())
	}
}

// waitingLocked counts everything that is yet to be written.
func (r *Recorder) waitingLocked() int {
	n := len(r.live) + len(r.hand) + r.memory.checks + r.moving.checks
	return n + r.unreadLocked()
}

// goAway notes that the database is away, and lets nobody wait for it. A write that took much longer than it may tells of no
// database but of ourselves: this process stood still, and others may have taken its leases.
func (r *Recorder) goAway(err error, stoodStill bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away.IsZero() {
		r.cfg.Log.Error("database is away: checks wait", "error", err, "checks_waiting", r.waitingLocked())
		r.away = time.Now()
	}
	room := r.cfg.Keep / 4 // for what these bring along beside what was seen, which may be a thousand times larger
	for _, rec := range r.hand {
		if !stoodStill {
			rec.check.Epoch = 0 // the lease may be another's when the database is back; the slot is still unique
		}
		if room -= weigh(rec.check); room < 0 {
			rec.check.Transcript, rec.check.Result.Contract = nil, nil
		}
	}
	r.holdHandLocked()
	r.putOffLiveLocked()
}
