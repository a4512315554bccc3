package scheduler

import (
	"container/heap"
	"time"
)

// enqueueLocked makes an endpoint due at a time, instead of when it was due before.
func (s *Scheduler) enqueueLocked(en *entry, due time.Time) {
	s.unqueueLocked(en)
	en.due = due
	heap.Push(&s.queue, en)
	s.nudge()
}

// unqueueLocked makes an endpoint due never.
func (s *Scheduler) unqueueLocked(en *entry) {
	if en.due.IsZero() {
		return
	}
	heap.Remove(&s.queue, en.index)
	en.due = time.Time{}
}

// queue is a heap of entries by the time they are due.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	en := x.(*entry)
	en.index = len(*q)
	*q = append(*q, en)
}

func (q *queue) Pop() any {
	old := *q
	en := old[len(old)-1]
	*q = old[:len(old)-1]
	return en
}
