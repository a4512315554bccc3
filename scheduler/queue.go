package scheduler

import (
	"container/heap"
	"time"
)

// reason says why an endpoint is due, which decides what becomes of that when it is busy then, or the clock jumps.
type reason uint8

const (
	onSchedule reason = iota // its schedule says so
	atOnce                   // somebody wants to see it: Soon, CheckNow
	toConfirm                // its latest check was surprising
	leftAlone                // it asked to be left alone until then
)

// turn is the wish to probe an endpoint at a time. It stands in one queue at most.
//
//	Scheduler.queue ─ due, a global slot free? ─► goOn ─┬─► begin
//	    ▲                                               ├─► host.waiting    until a slot of the host is free
//	    └── promote, finish ◄───────────────────────────┴─► entry.waiting   until the probe under way has ended
type turn struct {
	entry *entry
	call  *call // of CheckNow, who waits for it; nil for a turn of the schedule
	due   time.Time
	in    *queue // nil when in none
	index int    // in that queue
	full  *host  // whose slot it waits for; nil when it does not
	why   reason
}

// queue is a heap of turns by the time they are due.
type queue []*turn

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for container/heap; use add.
func (q *queue) Push(x any) {
	t := x.(*turn)
	t.in, t.index = q, len(*q)
	*q = append(*q, t)
}

// Pop is for container/heap; use remove.
func (q *queue) Pop() any {
	old := *q
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*q = old[:last]
	t.in = nil
	return t
}

func (q *queue) add(t *turn)    { heap.Push(q, t) }
func (q *queue) remove(t *turn) { heap.Remove(q, t.index) }

// due counts the turns that are due at a time. It looks at those alone and at their neighbours in the heap.
func (q queue) due(now time.Time) int { return q.dueBelow(0, now) }

func (q queue) dueBelow(i int, now time.Time) int {
	if i >= len(q) || q[i].due.After(now) {
		return 0
	}
	return 1 + q.dueBelow(2*i+1, now) + q.dueBelow(2*i+2, now)
}

// enqueueLocked makes a turn due at a time, instead of when it was due before.
func (s *Scheduler) enqueueLocked(t *turn, due time.Time, why reason) {
	s.leaveLocked(t)
	t.due, t.why = due, why
	s.queueLocked(t)
}

// queueLocked puts a turn into the queue, and wakes Run when that has something to do sooner than it thinks.
func (s *Scheduler) queueLocked(t *turn) {
	s.queue.add(t)
	if t.index == 0 {
		s.nudge()
	}
}

// leaveLocked takes a turn out of the queue it is in, if any.
func (s *Scheduler) leaveLocked(t *turn) {
	if t.in == nil {
		return
	}
	if t.full != nil {
		t.full = nil
		s.hostWaiting--
	}
	t.in.remove(t)
	s.promoteLocked(t.entry.host) // it may have been the one that was to take the host's free slot
}

func (s *Scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
