package alerts

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// settle records that deliveries ended as s says, and reports whether all of that is on record. A database that is away is asked
// again for as long as the lease lasts: what was sent and cannot be settled is sent twice.
func (d *Dispatcher) settle(work context.Context, items []leased, s store.Settlement) bool {
	settled := true
	for _, together := range byLease(items) {
		settled = d.settleLease(work, together, s) && settled
	}
	return settled
}

// maxSettled bounds the deliveries that are settled in one transaction.
const maxSettled = 500

// byLease groups deliveries that can be settled at once.
func byLease(items []leased) [][]leased {
	var groups [][]leased
	of := map[string]int{}
	for _, l := range items {
		i, ok := of[l.LeaseID]
		if !ok || len(groups[i]) == maxSettled {
			i = len(groups)
			of[l.LeaseID], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], l)
	}
	return groups
}

// settleLease records how deliveries of one lease ended.
func (d *Dispatcher) settleLease(work context.Context, items []leased, s store.Settlement) bool {
	l := items[0]
	s.NoticeID, s.LeaseID, s.Later = l.Notice.ID, l.LeaseID, beside(items)
	d.config.Point("settling")
	for {
		err := d.settleOnce(work, s)
		if err == nil {
			d.config.Point("settled")
			return true
		}
		log := d.config.Log.With("notice", s.NoticeID, "channel", l.Channel.ID, "channel_name", l.Channel.Name, "sent", s.Sent,
			"error", err)
		if errors.Is(err, store.ErrNotFound) && len(items) > 1 { // another one took one of them; the others are ours
			for _, alone := range items {
				d.settleLease(work, []leased{alone}, s)
			}
			return false
		}
		if !store.IsFailure(err) { // most likely our lease ran out and another one took the notice
			log.Warn("delivery was not ours to settle")
			return false
		}
		if time.Until(l.until) < settleFor || work.Err() != nil {
			log.Error("delivery not settled, will be repeated")
			return false
		}
		rest(work, d.config.Poll) // when cut short, one more try follows
	}
}

// beside returns the ids of all notices of deliveries but the first.
func beside(items []leased) []string {
	var ids []string
	for _, l := range items {
		ids = append(ids, l.Notice.ID)
		for _, n := range l.Later {
			ids = append(ids, n.ID)
		}
	}
	return slices.Clip(ids[1:])
}

// settleOnce has a deadline of its own: what was sent is to be recorded also when the time for sending is over.
func (d *Dispatcher) settleOnce(work context.Context, s store.Settlement) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), settleFor)
	defer cancel()
	return d.config.Store.SettleNotice(ctx, s)
}

// giveBack leaves deliveries to fall due again at a time, though nothing was tried: at once, when somebody else is to have them.
// What cannot be given back falls due when its lease ends.
func (d *Dispatcher) giveBack(work context.Context, items []leased, at time.Time) {
	for _, together := range byLease(items) {
		l := together[0]
		s := store.Settlement{
			NoticeID: l.Notice.ID, LeaseID: l.LeaseID, Later: beside(together), At: time.Now(), RetryAt: at, Deferred: true,
			Error: "it was not its turn yet",
		}
		if err := d.settleOnce(work, s); err != nil {
			d.config.Log.Warn("deliveries not given back, their lease has to end first", "channel", l.Channel.ID,
				"channel_name", l.Channel.Name, "deliveries", len(together), "error", err)
			return
		}
	}
}
