package scheduler

import (
	"container/heap"
	"time"
)

const (
	// maxSleep bounds how long Run sleeps, and with it how long a clock that jumped goes unseen.
	maxSleep = time.Second
	// jumpOver is by how much a clock may be wrong without being said to have jumped: more than is corrected by a daemon
	// that slews, less than anybody would call on time.
	jumpOver = 2 * time.Second
)

// clock tells when the wall clock, by which schedules go, does not go as time does: it was set, or the machine or the
// process stood still.
type clock struct {
	now  func() time.Time
	wall time.Time // at the last look, as the wall clock said
	mono time.Time // at the last look, for its monotonic reading
}

func newClock(now func() time.Time) *clock {
	return &clock{now: now, wall: now().Round(0), mono: time.Now()}
}

// look compares the clocks since the last look, which is to be a moment more than maxSleep ago at most. jumped is by how
// much the wall clock went ahead of the time that passed, or fell behind. stood is how long the process did not look
// though it wanted to: it was stopped, or starved. Both are zero when they are small.
func (c *clock) look() (jumped, stood time.Duration) {
	wall, mono := c.now().Round(0), time.Now()
	passed := mono.Sub(c.mono)
	jumped, stood = wall.Sub(c.wall)-passed, passed-maxSleep
	c.wall, c.mono = wall, mono
	if jumped.Abs() <= jumpOver {
		jumped = 0
	}
	if stood <= jumpOver {
		stood = 0
	}
	return jumped, stood
}

// minding looks at the clock and plans anew when it jumped: what fell due meanwhile is missed, and not made up for all at
// once, and nobody waits for a time that is far off again.
func (s *Scheduler) minding(c *clock) {
	jumped, stood := c.look()
	if jumped == 0 && stood == 0 {
		return
	}
	s.metrics.jumps.Inc()
	s.cfg.Log.Warn("clock jumped: every endpoint is planned anew", "by", jumped, "stood_still", stood)
	s.replan(jumped, stood > 0)
}

// replan makes every turn due as if the schedule had just begun to be followed. jumped is by how much the wall clock did,
// and stood whether the process stood still.
func (s *Scheduler) replan(jumped time.Duration, stood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stood {
		s.resumed = time.Now()
	}
	now := s.now()
	if before := now.Add(-jumped); jumped < 0 {
		s.repeats++
		s.repeated = later(s.repeated, before)
	}
	for _, h := range s.hosts {
		s.queue = append(s.queue, h.waiting...)
		h.waiting = nil
	}
	s.hostWaiting = 0
	for i, t := range s.queue {
		t.in, t.index, t.full = &s.queue, i, nil
		t.due, t.why = s.replannedLocked(t, now, jumped)
	}
	heap.Init(&s.queue)
	s.nudge()
}

func (s *Scheduler) replannedLocked(t *turn, now time.Time, jumped time.Duration) (time.Time, reason) {
	en := t.entry
	next := en.next(now)
	switch t.why {
	case atOnce:
		return now, atOnce
	case toConfirm:
		if soon := now.Add(en.endpoint.Confirm.After); soon.Before(next) {
			return soon, toConfirm
		}
	case leftAlone:
		if due := t.due.Add(jumped); due.After(next) {
			return earlier(due, now.Add(maxRetryAfter)), leftAlone
		}
	case onSchedule:
		if !t.due.After(now) {
			s.metrics.missed.Add(1 + float64(en.schedule.passed(en.endpoint.ID, t.due, now)))
		}
	}
	return next, onSchedule
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
