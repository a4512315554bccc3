package alerts

import (
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// lane is what waits for one channel, and what is to be remembered of that channel while it is busy. All of it is guarded by
// Dispatcher.mu, but for pace, which belongs to the goroutine that serves the lane while there is one.
type lane struct {
	more    chan struct{} // something was added
	public  bool          // of a subscription from the public; never changes
	serving bool          // it has a goroutine
	waiting []leased      // oldest first
	storm   storm
	pace    pace
}

// leased is a delivery, since when it waits here, and the time until which it is ours.
type leased struct {
	store.Delivery
	since time.Time
	until time.Time
}

// Bounds of what waits here, in deliveries of a few kilobytes each. A lane takes a storm, so that it is one digest; when all
// lanes together hold too much, each still takes its share.
const (
	maxLane    = 5000
	maxWaiting = 20_000
	fairLane   = 100
)

// enqueue adds deliveries to the lanes of their channels. It returns the lanes that need a goroutine. What a full lane cannot
// take falls due again: one channel's flood does not fill the memory.
func (d *Dispatcher) enqueue(due []store.Delivery, now, until time.Time) (idle []*lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting := 0
	for _, l := range d.lanes {
		waiting += len(l.waiting)
	}
	for _, delivery := range due {
		l := d.laneLocked(delivery)
		if n := len(l.waiting); n >= maxLane || waiting >= maxWaiting && n >= fairLane {
			continue
		}
		l.waiting = append(l.waiting, leased{delivery, now, until})
		waiting++
		signal(l.more)
		if !l.serving {
			l.serving = true
			idle = append(idle, l)
		}
	}
	return idle
}

func (d *Dispatcher) laneLocked(delivery store.Delivery) *lane {
	c, s := delivery.Channel, delivery.Subscription
	l, ok := d.lanes[c.ID]
	if !ok {
		l = &lane{more: make(chan struct{}, 1), public: s != nil && s.Public(), pace: pace{every: d.config.Pace(c.Type)}}
		d.lanes[c.ID] = l
	}
	return l
}

// forget lets go of lanes of which nothing is to be remembered.
func (d *Dispatcher) forget(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, l := range d.lanes {
		if !l.serving && l.pace.left(now) == 0 && l.storm.over(now) {
			delete(d.lanes, id)
		}
	}
}

// wait returns how long a lane is to be left alone. When nothing waits in it, the lane is idle, and the caller's goroutine is no
// longer needed.
func (d *Dispatcher) wait(l *lane) (pause time.Duration, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	l.waiting = slices.DeleteFunc(l.waiting, func(w leased) bool { return d.isLate(w, now) })
	if len(l.waiting) == 0 {
		l.serving = false
		return 0, true
	}
	pause = l.pace.left(now)
	if digest, single := l.storm.split(l.waiting, now); len(single) == 0 {
		pause = max(pause, l.storm.due(digest).Sub(now))
	}
	return pause, false
}

// isLate reports whether a delivery is not ours for long enough to send and settle it: it falls due again.
func (d *Dispatcher) isLate(l leased, now time.Time) bool {
	return l.until.Sub(now) <= d.config.SendTimeout+settleFor
}

// take takes what is to be told next: several make a digest. None when it has become too late for all, or is too early.
func (d *Dispatcher) take(l *lane) []leased {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	l.waiting = slices.DeleteFunc(l.waiting, func(w leased) bool { return d.isLate(w, now) })
	if len(l.waiting) == 0 {
		return nil
	}
	digest, single := l.storm.split(l.waiting, now)
	if len(digest) > 0 && !now.Before(l.storm.due(digest)) {
		l.waiting = single
		return digest
	}
	if len(single) == 0 {
		return nil
	}
	first := single[0]
	l.waiting = slices.DeleteFunc(l.waiting, func(w leased) bool { return w.Notice.ID == first.Notice.ID })
	return []leased{first}
}

// hushed is what is settled without a word, and how.
type hushed struct {
	leased
	how store.Settlement
}

// takeUnsaid takes what is to be settled without a word.
func (d *Dispatcher) takeUnsaid(l *lane) []hushed {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	now := time.Now()
	quiet := quietUntil(l.waiting[0].Subscription, now)
	var taken []hushed
	l.waiting = slices.DeleteFunc(l.waiting, func(w leased) bool {
		how, ok := unsaid(w.Delivery, now, quiet)
		if !ok && isAhead(w.Delivery) && d.config.Maintained(w.Endpoint.ID, now) {
			how, ok = store.Settlement{RetryAt: now.Add(time.Minute), Deferred: true, Error: "the endpoint is under maintenance"}, true
		}
		if ok {
			taken = append(taken, hushed{w, how})
		}
		return ok
	})
	return taken
}

// empty takes all that waits in a lane.
func (d *Dispatcher) empty(l *lane) []leased {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := l.waiting
	l.waiting = nil
	return all
}

// told notes what a channel has heard.
func (d *Dispatcher) told(l *lane, items []leased) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.storm.tell(items, time.Now())
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
