// Package alerts says what checks mean and tells those who must hear of it: the judge turns a check into a status, the
// dispatcher delivers the notices that the store keeps, and each kind of channel has a sender in a file of its own. It
// opens no incident itself: the store does, inside the transaction that keeps the check.
package alerts

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Judge is the rule that turns the checks of an endpoint from one location into a status. It is pure.
//
//   - A status worse than the present one holds after confirm.failures checks in a row that are worse, a better one after
//     confirm.successes checks in a row that are better. Where such checks differ, the one closest to the present status
//     counts: it is what all of them bear out.
//   - Down holds after confirm.failures down checks in a row. Unknown checks in between prove nothing and are passed over.
//   - A status begins at the first check of the streak that proved it: an outage at its first bad check.
//   - An unknown check does not end an outage.
//   - The first check of a new endpoint is believed at once unless it is down: an outage always wants confirmation.
//   - While the endpoint is down, its failure is replaced by one of another class or code after confirm.failures such checks in a
//     row that took five minutes together.
//   - A streak does not bridge a time in which nobody looked: two bad checks with our own downtime between them are not
//     two in a row.
func Judge(e store.Endpoint, s store.State, c store.Check) store.State {
	if c.Result.StartedAt.Before(s.LastCheckAt) {
		return s // a late arrival: something newer has been judged already
	}
	if s.Status == "" {
		s.Status = store.StatusPending
	}
	if unwatched(e, s, c) {
		s.Streak, s.Down = store.Streak{}, store.Streak{}
	}
	verdict := c.Result.Verdict
	s.Down = countDown(s, c)
	switch {
	case s.Status == store.Status(verdict):
		s.Streak = store.Streak{}
		return reconsider(e, s, c)
	case s.Status == store.StatusDown && verdict == probe.Unknown:
		return s
	case s.Down.Count >= e.Confirm.Failures && verdict == probe.Down:
		return become(s, s.Down)
	}
	s.Streak = extend(s, c)
	if s.Streak.Count >= needed(e, s) {
		return become(s, s.Streak)
	}
	return s
}

// unwatchedAfter is how late the check that confirms a streak may come and still confirm it: later than an endpoint can
// keep us away by Retry-After, or a full queue can hold a probe up.
const unwatchedAfter = time.Hour

// unwatched reports whether too much time passed since the check before c for the two to be neighbours. While a streak
// lasts, whatever the schedule, the next check follows after confirm.after.
func unwatched(e store.Endpoint, s store.State, c store.Check) bool {
	return !s.LastCheckAt.IsZero() && c.Result.StartedAt.Sub(s.LastCheckAt) > e.Confirm.After+unwatchedAfter
}

// countDown adds c to the run of down checks of s, which only an answer from the endpoint ends. While the endpoint is down
// already, it is the run of those that are down for the same cause.
func countDown(s store.State, c store.Check) store.Streak {
	run := s.Down
	switch c.Result.Verdict {
	case probe.Down:
		if run.Count == 0 || s.Status == store.StatusDown && !sameCause(run.Failure, c.Result.Failure) {
			run = begin(c)
		}
		run.Count++
		return run
	case probe.Unknown:
		return run
	default:
		return store.Streak{}
	}
}

// reconsider makes the cause of the latest run of down checks that of an outage, when it is another one and has held for as
// many checks as prove an outage, and for long enough.
func reconsider(e store.Endpoint, s store.State, c store.Check) store.State {
	if s.Status == store.StatusDown && s.Down.Count >= e.Confirm.Failures && !sameCause(s.Failure, s.Down.Failure) &&
		c.Ended().Sub(s.Down.Since) >= settled {
		s.Failure = s.Down.Failure
	}
	return s
}

// sameCause reports whether two failures are of one class and code. Other words for the same are no other cause.
func sameCause(a, b *probe.Failure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Class == b.Class && a.Code == b.Code
}

// extend adds c to the streak of checks that disagree with the status in the same direction, or begins one.
func extend(s store.State, c store.Check) store.Streak {
	streak, verdict := s.Streak, c.Result.Verdict
	worsens := worse(verdict, s.Status)
	if streak.Count == 0 || worse(streak.Verdict, s.Status) != worsens {
		streak = begin(c)
	}
	streak.Count++
	if verdict != streak.Verdict && worse(streak.Verdict, store.Status(verdict)) == worsens {
		streak.Verdict, streak.Failure = verdict, c.Result.Failure // closer to the present status
	}
	return streak
}

func begin(c store.Check) store.Streak {
	return store.Streak{Verdict: c.Result.Verdict, Since: c.Result.StartedAt, Failure: c.Result.Failure}
}

// needed is the number of checks that make the streak of s a status.
func needed(e store.Endpoint, s store.State) int {
	switch {
	case s.Status == store.StatusPending && s.Streak.Verdict != probe.Down:
		return 1
	case worse(s.Streak.Verdict, s.Status):
		return e.Confirm.Failures
	default:
		return e.Confirm.Successes
	}
}

// become makes the verdict of a streak the status.
func become(s store.State, by store.Streak) store.State {
	s.Status, s.Since, s.Failure = store.Status(by.Verdict), by.Since, by.Failure
	s.Streak = store.Streak{}
	return s
}

// rank orders statuses from best to worst. Pending stands beside up: whatever is not up is worse than knowing nothing.
var rank = map[store.Status]int{
	store.StatusPending:  0,
	store.StatusUp:       0,
	store.StatusDegraded: 1,
	store.StatusGated:    2,
	store.StatusUnknown:  3,
	store.StatusDown:     4,
}

func worse(v probe.Verdict, than store.Status) bool { return rank[store.Status(v)] > rank[than] }
