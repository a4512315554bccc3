package scheduler

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// ErrChanged means that an endpoint was changed or removed while it was being probed: what was seen is not kept, because
// it may be about another address.
var ErrChanged = errors.New("endpoint changed while it was being probed")

// ErrLeaseLost means that an endpoint is not, or no longer, ours to probe: what was seen is not kept, because somebody else
// may have probed it meanwhile.
var ErrLeaseLost = errors.New("endpoint is probed by another instance")

// ErrStoodStill means that this process was stopped while it probed: what it measured is its own pause.
var ErrStoodStill = errors.New("this process stood still while it probed")

// job is one check to be done, with the endpoint as it was when it began.
type job struct {
	entry    *entry
	endpoint *store.Endpoint
	state    *store.State
	schedule Schedule
	host     *host // whose slot it has
	due      time.Time
	asked    bool // for by somebody, who wants to see how it went
}

// tick does one scheduled check and puts its endpoint back into the queue.
func (s *Scheduler) tick(ctx context.Context, j job) {
	s.metrics.lag.Observe(max(0, s.now().Sub(j.due).Seconds()))
	due, why := s.nextAfter(j, s.checkAndRecord(ctx, j))

	s.mu.Lock()
	defer s.mu.Unlock()
	en := j.entry
	en.ticking = false
	s.finishLocked(en)
	switch {
	case !en.active:
	case en.soon:
		s.enqueueLocked(&en.turn, s.now(), atOnce)
	case en.endpoint != j.endpoint:
		s.enqueueLocked(&en.turn, en.next(s.now()), onSchedule)
	default:
		s.enqueueLocked(&en.turn, due, why)
	}
	en.soon = false
}

// afterwards says what one check asks of the schedule. The zero value asks for nothing.
type afterwards struct {
	confirm bool          // the check was surprising: look again soon
	away    time.Duration // the endpoint wants to be left alone for so long
}

func (s *Scheduler) checkAndRecord(ctx context.Context, j job) afterwards {
	check, err := s.check(ctx, j)
	if err != nil {
		return afterwards{}
	}
	then := afterwards{}
	if check.Result.Verdict != probe.Down { // an outage is confirmed soon, whatever a 503 asks for
		then.away = min(max(check.Result.RetryAfter, s.backOff(j, check.Result)), maxRetryAfter)
	}
	if out, err := s.record(context.WithoutCancel(ctx), j, check); err == nil && out.Kept {
		// A check that says nothing of the endpoint is not worth confirming.
		then.confirm = out.State.Unsettled() && classOf(check.Result) != probe.ClassLocationOffline
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

// nextAfter returns when the endpoint of j is due next. What fell due since j did is missed.
func (s *Scheduler) nextAfter(j job, then afterwards) (time.Time, reason) {
	now := s.now()
	s.metrics.missed.Add(float64(j.schedule.passed(j.endpoint.ID, j.due, now)))
	due, why := j.schedule.next(j.endpoint.ID, now), onSchedule
	if soon := now.Add(j.endpoint.Confirm.After); then.confirm && soon.Before(due) {
		due, why = soon, toConfirm
	}
	if back := now.Add(then.away); back.After(due) {
		due, why = back, leftAlone
	}
	return due, why
}

// check probes once and gives the slots back before anything else is waited for. It returns an error when there is no
// result to speak of: the endpoint changed or is not ours, the probe was cut short by us, we stood still, or it panicked, and
// our bug must not become somebody's outage.
func (s *Scheduler) check(ctx context.Context, j job) (store.Check, error) {
	epoch, ours := s.lease(j.endpoint.ID)
	if !ours {
		s.free(j)
		return store.Check{}, ErrLeaseLost
	}
	target, started := j.target(), time.Now()
	result, err := s.probe(ctx, j, target)
	s.free(j)
	if err != nil {
		return store.Check{}, err
	}
	result, err = s.guard.judge(ctx, target, started, result)
	if err != nil {
		s.metrics.discard(err)
		return store.Check{}, err
	}
	if s.changed(j) {
		return store.Check{}, ErrChanged
	}
	if s.stoodStill(started) {
		s.metrics.discard(ErrStoodStill)
		return store.Check{}, ErrStoodStill
	}
	if !s.stillOurs(j.endpoint.ID, epoch, started) {
		s.metrics.discard(ErrLeaseLost)
		return store.Check{}, ErrLeaseLost
	}
	if !j.wantsTranscript(result) {
		result.Transcript = nil // it would be compressed for nothing
	}
	s.metrics.observe(result)
	check := store.NewCheck(j.endpoint.ID, s.cfg.Location, j.due, result)
	check.Epoch, check.Asked = epoch, j.asked
	return check, nil
}

// lease reports whether an endpoint is ours to probe, and under which epoch.
func (s *Scheduler) lease(endpointID string) (epoch int64, ours bool) {
	if s.cfg.Lease == nil {
		return 0, true
	}
	return s.cfg.Lease(endpointID)
}

// stillOurs reports whether the lease is the one that there was at the beginning of a probe, and was ours all the time.
func (s *Scheduler) stillOurs(endpointID string, epoch int64, since time.Time) bool {
	now, ours := s.lease(endpointID)
	return ours && now == epoch && (s.cfg.LeaseSince == nil || s.cfg.LeaseSince(endpointID, since))
}

// probe asks the endpoint of j, with what its peers tell.
func (s *Scheduler) probe(ctx context.Context, j job, t probe.Target) (r probe.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.metrics.panics.Inc()
			s.cfg.Log.Error("probe panicked", "endpoint", j.endpoint.Slug, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("probe panicked")
		}
	}()
	if s.cfg.Peers != nil {
		t.Peers = s.cfg.Peers(ctx, j.endpoint.Name, t)
	}
	r = s.cfg.Probe(ctx, t)
	return r, context.Cause(ctx)
}

// target is what a probe of j needs. The transcript is asked for each time: whether a check fails is known afterwards.
func (j job) target() probe.Target {
	t := j.endpoint.Target(*j.state)
	t.Transcript, t.TranscriptOf = true, j.wantsTranscript
	return t
}

// wantsTranscript reports whether the transcript of a check with this result would be kept.
func (j job) wantsTranscript(r probe.Result) bool { return j.asked || j.state.WantsTranscript(r) }

// free gives the slots of j back and has those go on who wait for them.
func (s *Scheduler) free(j job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeLocked(j.host)
}

// changed reports whether the endpoint of j is not any more what it was when the probe began.
func (s *Scheduler) changed(j job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return j.entry.gone && !j.entry.drained || j.entry.endpoint != j.endpoint
}

// stoodStill reports whether this process did for a while since a moment.
func (s *Scheduler) stoodStill(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	unseen := !s.stopping && time.Since(s.looked) > maxSleep+jumpOver // Run has not woken yet
	return unseen || since.Before(s.resumed)
}

// record hands a check on and learns from what became of it.
func (s *Scheduler) record(ctx context.Context, j job, c store.Check) (store.Outcome, error) {
	out, err := s.cfg.Record(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && out.Kept && j.entry.endpoint == j.endpoint {
		state := out.State
		j.entry.state = &state
	}
	return out, err
}

func classOf(r probe.Result) probe.Class {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Class
}
