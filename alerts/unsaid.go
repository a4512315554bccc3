package alerts

import (
	"context"
	"errors"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// recheck is how long an endpoint that stands behind another one has, once that one is up again, to be seen up itself before it
// is told of: one check of the usual schedule, with its confirmation.
const recheck = 90 * time.Second

// unsaid returns how a delivery is settled about which nothing is to be said, or nothing yet; false when it is to be sent. quiet
// is when the quiet hours of its channel end, zero outside of them.
func unsaid(d store.Delivery, now, quiet time.Time) (store.Settlement, bool) {
	if d.Event == nil {
		if s, ok := behind(d, now); ok {
			return s, true
		}
		if s, ok := needless(d, now); ok {
			return s, true
		}
	}
	return store.Settlement{RetryAt: quiet, Deferred: true, Error: "quiet hours"}, !quiet.IsZero()
}

// quietUntil returns when the quiet hours end in which somebody is, zero when they are in none.
func quietUntil(s *store.Subscription, now time.Time) time.Time {
	if s == nil || s.Quiet == nil {
		return time.Time{}
	}
	until, quiet := s.Quiet.Until(now)
	if !quiet {
		return time.Time{}
	}
	return until
}

// behind has nothing said of an endpoint that was down while one was that it stands behind, and got well along with it. Whoever
// waits for that cannot have said a word of its opening before: its resolution tells the difference.
func behind(d store.Delivery, now time.Time) (store.Settlement, bool) {
	if d.BehindUntil.IsZero() || d.Ref != "" || d.Notice.Attempts > 0 {
		return store.Settlement{}, false
	}
	settled := d.BehindUntil.Add(recheck)
	newest := newest(d)
	switch {
	case d.Notice.Kind == store.NoticeOpened && newest.Kind == store.NoticeResolved && newest.CreatedAt.Before(settled):
		return store.Settlement{Passed: true, Error: "it stood behind another endpoint that was down"}, true
	case (d.Notice.Kind == store.NoticeOpened || isAhead(d)) && d.Incident.ResolvedAt == nil && now.Before(settled):
		return store.Settlement{RetryAt: settled, Deferred: true, Error: "it stands behind another endpoint that was down a moment ago"}, true
	}
	return store.Settlement{}, false
}

// needless has nothing said that was to be said in case nobody had done anything by then, and puts it off while somebody wants it
// later.
func needless(d store.Delivery, now time.Time) (store.Settlement, bool) {
	i := d.Incident
	switch {
	case !isAhead(d):
		return store.Settlement{}, false
	case i.ResolvedAt != nil:
		return store.Settlement{Passed: true, Error: "the incident is over"}, true
	case i.AcknowledgedAt != nil:
		return store.Settlement{Passed: true, Error: "somebody has acknowledged it"}, true
	case i.Snoozed(now):
		return store.Settlement{RetryAt: *i.SnoozedUntil, Deferred: true, Error: "somebody has snoozed it"}, true
	}
	return store.Settlement{}, false
}

// overtaken reads the incident anew of a delivery that reminds or escalates, because somebody may have done something about it
// since it was leased, and returns how it is settled then. While the database cannot say, it is sent: rather one too many.
func (d *Dispatcher) overtaken(work context.Context, l *leased) (store.Settlement, bool) {
	if l.Event != nil || !isAhead(l.Delivery) {
		return store.Settlement{}, false
	}
	ctx, cancel := context.WithTimeout(work, settleFor)
	defer cancel()
	i, err := d.config.Store.Incident(ctx, l.Incident.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Settlement{Passed: true, Error: "the incident is gone"}, true
	case err != nil:
		return store.Settlement{}, false
	}
	l.Incident = i
	return needless(l.Delivery, time.Now())
}

// isAhead reports whether all that a delivery tells was written down before it was to be said.
func isAhead(d store.Delivery) bool {
	for _, n := range d.Later {
		if !n.Kind.Ahead() {
			return false
		}
	}
	return d.Notice.Kind.Ahead()
}

// newest returns the last notice of a delivery.
func newest(d store.Delivery) store.Notice {
	if len(d.Later) > 0 {
		return d.Later[len(d.Later)-1]
	}
	return d.Notice
}
