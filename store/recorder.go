package store

import (
	"context"
	"errors"
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
	// Keep is how many checks may wait in memory while the database is away. Beyond it the oldest are given up.
	Keep int
	// Recorded is called after a group was committed, and is told whether it left notices to be delivered.
	Recorded func(notices bool)
}

// What a Recorder does by default.
const (
	// DefaultKeep is about 100 MB of checks with four steps each.
	DefaultKeep = 50_000
	// maxGroup bounds a transaction, so that a long backlog is written in pieces that each make progress.
	maxGroup = 500
	// writeTimeout tells a database that is away from one that is slow.
	writeTimeout = 10 * time.Second
	// A database that is away is tried again after minRetry, then less often up to maxRetry.
	minRetry = 500 * time.Millisecond
	maxRetry = 10 * time.Second
	// maxAttempts is how often a check that fails while its neighbours succeed is tried before it is given up: it is
	// the check then, not the database.
	maxAttempts = 3
	// lastChance bounds the last attempt to write what waits when the service stops.
	lastChance = 15 * time.Second
)

// ErrWaiting means that a check is kept in memory because the database is away; it will be recorded when it returns.
var ErrWaiting = errors.New("database is away: the check waits in memory")

// ErrGivenUp means that a check could not be recorded: too many waited, or the database would not take this one.
var ErrGivenUp = errors.New("check was given up")

// Recorder records checks in groups: whatever waits while one transaction runs goes into the next. While the database
// is away it keeps checks in memory, in order, without transcripts and tool lists, and writes them when it returns. Run
// must be running.
type Recorder struct {
	cfg  RecorderConfig
	wake chan struct{}

	mu      sync.Mutex
	waiting []*record // guarded by mu, oldest first
	writing int       // guarded by mu: how many of waiting are in the transaction under way
	away    bool      // guarded by mu
	givenUp int       // guarded by mu
}

// record is a check on its way, with somebody who may wait for it.
type record struct {
	check    Check
	attempts int
	done     chan recorded // room for one; nil once answered, guarded by Recorder.mu
}

type recorded struct {
	outcome Outcome
	err     error
}

// NewRecorder returns a Recorder whose Run has to be started.
func NewRecorder(cfg RecorderConfig) *Recorder {
	if cfg.Keep <= 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Recorded == nil {
		cfg.Recorded = func(bool) {}
	}
	return &Recorder{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Record keeps a check and returns once it is committed, or with ErrWaiting at once while the database is away. When
// ctx ends first the check is still recorded.
func (r *Recorder) Record(ctx context.Context, c Check) (Outcome, error) {
	done := make(chan recorded, 1)
	if r.add(&record{check: c, done: done}) {
		return Outcome{}, ErrWaiting
	}
	select {
	case out := <-done:
		return out.outcome, out.err
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	}
}

// add puts rec at the end of what waits and reports whether the database is away.
func (r *Recorder) add(rec *record) (away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		rec.done = nil
		// What a check brings along beside what was seen may be a thousand times larger, and many checks may come to wait.
		rec.check.Transcript, rec.check.Result.Contract = nil, nil
	}
	r.waiting = append(r.waiting, rec)
	if over := len(r.waiting) - r.writing - r.cfg.Keep; over > 0 {
		for _, old := range r.waiting[r.writing : r.writing+over] {
			old.answer(recorded{err: ErrGivenUp})
		}
		r.waiting = append(r.waiting[:r.writing:r.writing], r.waiting[r.writing+over:]...)
		r.givenUp += over
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return r.away
}

func (rec *record) answer(out recorded) {
	if rec.done != nil {
		rec.done <- out
		rec.done = nil
	}
}

// Waiting returns how many checks are kept in memory because the database is away.
func (r *Recorder) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		return 0
	}
	return len(r.waiting)
}

// GivenUp returns how many checks were lost since the start.
func (r *Recorder) GivenUp() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.givenUp
}

// Run writes until ctx ends, then writes what still waits, for a bounded time. End ctx after whoever calls Record has
// ended.
func (r *Recorder) Run(ctx context.Context) error {
	retry := minRetry
	for ctx.Err() == nil {
		if !r.pending() {
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
			continue
		}
		if r.writeGroup(context.WithoutCancel(ctx)) {
			retry = minRetry
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, maxRetry)
	}
	r.writeRest(context.WithoutCancel(ctx))
	return nil
}

func (r *Recorder) pending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

func (r *Recorder) writeRest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastChance)
	defer cancel()
	for r.pending() && ctx.Err() == nil {
		if !r.writeGroup(ctx) {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) > 0 {
		r.givenUp += len(r.waiting)
		r.cfg.Log.Error("checks lost at shutdown: the database is away", "checks", len(r.waiting))
		for _, rec := range r.waiting {
			rec.answer(recorded{err: ErrGivenUp})
		}
		r.waiting = nil
	}
}

// writeGroup writes the oldest of what waits and reports whether the database took any of it.
func (r *Recorder) writeGroup(ctx context.Context) bool {
	group := r.takeGroup()
	err := r.write(ctx, group)
	if err == nil {
		r.settle(group, nil)
		return true
	}
	if ctx.Err() != nil {
		r.settle(nil, group)
		return false
	}
	taken, refused := r.writeSingly(ctx, group)
	if len(taken) == 0 {
		r.goAway(err)
		return false
	}
	r.settle(taken, r.giveUpOn(refused, err))
	return true
}

// takeGroup marks the oldest of what waits as being written.
func (r *Recorder) takeGroup() []*record {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = min(len(r.waiting), maxGroup)
	return append([]*record(nil), r.waiting[:r.writing]...)
}

// write records a group in one transaction and answers those who wait for it.
func (r *Recorder) write(ctx context.Context, group []*record) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
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
	notices := false
	for i, rec := range group {
		notices = notices || outcomes[i].Opened != "" || outcomes[i].Resolved != "" || outcomes[i].Notices > 0
		r.tell(rec.check, outcomes[i])
		rec.answer(recorded{outcome: outcomes[i]})
	}
	r.cfg.Recorded(notices)
	return nil
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
		r.givenUp++
		r.cfg.Log.Error("check given up: the database refuses it", "check", rec.check.ID, "endpoint", rec.check.EndpointID, "error", err)
		rec.answer(recorded{err: ErrGivenUp})
	}
	return rest
}

// settle ends a transaction: what was refused goes back to the front of what waits.
func (r *Recorder) settle(taken, refused []*record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(refused[:len(refused):len(refused)], r.waiting[r.writing:]...)
	r.writing = 0
	if r.away && len(taken) > 0 {
		r.away = false
		r.cfg.Log.Info("database is back", "checks_waiting", len(r.waiting))
	}
}

// goAway notes that the database is away, and lets nobody wait for it.
func (r *Recorder) goAway(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		r.cfg.Log.Error("database is away: checks wait in memory", "error", err, "checks_waiting", len(r.waiting))
	}
	r.away, r.writing = true, 0
	for _, rec := range r.waiting {
		rec.answer(recorded{err: ErrWaiting})
	}
}
