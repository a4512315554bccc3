package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// keepSpilling moves what is in memory to the spool, until ctx ends.
func (r *Recorder) keepSpilling(ctx context.Context) {
	if r.cfg.Spool == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.spill:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.untilSpill()):
		}
		r.disk <- struct{}{}
		if r.moveToSpool() != nil {
			signal(r.spill)
		}
		<-r.disk
	}
}

// untilSpill returns how long to wait before the spool is written.
func (r *Recorder) untilSpill() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(spillEvery, time.Until(r.spillFrom))
}

// relieve makes room in memory, by moving checks to the spool or else by giving up the oldest, so that whoever brings more
// checks than can be kept pays for it.
func (r *Recorder) relieve() {
	if r.cfg.Spool == nil {
		return
	}
	r.mu.Lock()
	bytes := r.memory.bytes + len(r.moving.frames)
	wanted := bytes > r.cfg.Keep || bytes >= maxChunk && r.spoolInUse()
	full := bytes > 2*r.cfg.Keep
	resting := time.Now().Before(r.spillFrom)
	r.mu.Unlock()
	if wanted && !resting && r.takeDisk(full) {
		_ = r.moveToSpool() // it is logged, and what could not be moved is still in memory
		<-r.disk
	}
	if full {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.boundLocked(2 * r.cfg.Keep)
	}
}

// takeDisk reports whether it got hold of disk, for which it waits a while only when it must.
func (r *Recorder) takeDisk(must bool) bool {
	select {
	case r.disk <- struct{}{}:
		return true
	default:
	}
	if !must {
		return false // somebody else is moving checks already
	}
	select {
	case r.disk <- struct{}{}:
		return true
	case <-time.After(maxStall):
		return false
	}
}

func (r *Recorder) spoolInUse() bool {
	checks, _, _ := r.cfg.Spool.counts()
	return checks > 0
}

// moveToSpool moves all that is in memory to the spool, when the spool is in use or memory is over its bound. It is called
// with disk held.
func (r *Recorder) moveToSpool() error {
	if !r.spoolInUse() {
		if !r.overKeep() {
			return nil
		}
		if err := r.spoolHand(); err != nil {
			return r.noteSpill(err)
		}
	}
	return r.noteSpill(r.moveMemory())
}

func (r *Recorder) moveMemory() error {
	for {
		r.mu.Lock()
		r.moving = r.memory.take()
		r.mu.Unlock()
		if r.moving.checks == 0 { // only who holds disk writes it
			return nil
		}
		if err := r.moveChunk(); err != nil {
			return err
		}
	}
}

func (r *Recorder) moveChunk() error {
	err := r.cfg.Spool.push(r.moving.frames, r.moving.checks)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.memory.putBack(r.moving)
	}
	r.moving = chunk{}
	return err
}

func (r *Recorder) overKeep() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory.bytes > r.cfg.Keep
}

// spoolHand writes what is in hand, and in memory alone, to the spool, ahead of younger checks. It stays in hand, with all
// that it brought along: the spool has it for the next process.
func (r *Recorder) spoolHand() error {
	var moved []*record
	var hand backlog
	r.mu.Lock()
	for _, rec := range r.hand {
		if !rec.spooled && hand.push(rec.check) == nil {
			moved = append(moved, rec)
		}
	}
	r.holdLocked(len(moved) - held(moved))
	for _, rec := range moved {
		rec.held = true
	}
	r.mu.Unlock()
	if len(moved) == 0 {
		return nil
	}
	frames := make([]byte, 0, hand.bytes)
	for _, c := range hand.chunks {
		frames = append(frames, c.frames...)
	}
	if err := r.cfg.Spool.push(frames, len(moved)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.Spool.skip(int64(len(frames)), len(moved))
	for _, rec := range moved {
		rec.held, rec.spooled = false, true
	}
	return nil
}

// spoolRest leaves what waits to the next process.
func (r *Recorder) spoolRest() {
	r.disk <- struct{}{}
	defer func() { <-r.disk }()
	r.mu.Lock()
	r.putOffLiveLocked()
	r.mu.Unlock()
	var err error
	if r.spoolInUse() {
		r.putOffHand()
	} else {
		err = r.spoolHand()
	}
	if err == nil {
		err = r.moveMemory()
	}
	_ = r.noteSpill(err) // who counts what is left says how much that is
}

// putOffHand puts what is in hand, and in memory alone, behind all others: that are checks which the database refused, while
// younger ones went to the spool.
func (r *Recorder) putOffHand() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holdLocked(-held(r.hand)) // they are counted again with those in memory
	for _, rec := range r.hand {
		if !rec.spooled {
			rec.answer(recorded{err: cmp.Or(r.putOffLocked(rec.check), ErrWaiting)})
		}
	}
	r.hand = nil
}

// noteSpill notes whether the spool can be written.
func (r *Recorder) noteSpill(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		if !r.spillFrom.IsZero() {
			r.cfg.Log.Info("spool can be written again")
		}
		r.spillFrom = time.Time{}
		return nil
	}
	r.spillFrom = time.Now().Add(spillRetry)
	if time.Since(r.toldSpool) < warnEvery {
		return err
	}
	r.toldSpool = time.Now()
	if errors.Is(err, errSpoolFull) {
		err = fmt.Errorf("%w of %d bytes", err, r.cfg.Spool.limit)
	}
	r.cfg.Log.Error("spool takes no more: checks wait in memory", "error", err, "checks_waiting", r.waitingLocked())
	return err
}
