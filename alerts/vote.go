package alerts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Rules returns the rules by which checks become a status. period says how long a schedule leaves between two checks at
// least; an error of it means a minute.
func Rules(period func(schedule string) (time.Duration, error)) store.Judge {
	e := electorate{period: period}
	return store.Judge{Check: Judge, Vote: e.vote}
}

// electorate knows which places have a say.
type electorate struct {
	period  func(schedule string) (time.Duration, error)
	periods sync.Map // time.Duration by schedule: working one out takes longer than judging a check
}

// vote is the rule that turns what an endpoint looks like from each of its locations into one status.
//
//   - A place has a say while its latest check is fresh (see fresh) and it could tell: pending and unknown places abstain.
//   - Down needs a quorum of down places: endpoint.quorum, though never more than the endpoint has places, or the
//     majority of those with a say.
//   - Down at fewer places than that is degraded: seen from one place alone, as the failure says.
//   - Otherwise the same holds for gated; then any place that is degraded makes the endpoint degraded.
//   - Without anybody who has a say the status stays as it was, except that it becomes unknown when a fresh place says so and
//     the endpoint was not down.
func (el *electorate) vote(e store.Endpoint, s store.State, places []store.Place, at time.Time) store.State {
	var voters, unsure []store.Place
	for _, p := range places {
		switch {
		case !el.fresh(e, p, at):
		case p.State.Status == store.StatusUnknown:
			unsure = append(unsure, p)
		case p.State.Status != store.StatusPending && p.State.Status != "":
			voters = append(voters, p)
		}
	}
	if len(voters) == 0 {
		if len(unsure) > 0 && s.Status != store.StatusDown {
			return elect(s, store.StatusUnknown, unsure, 1)
		}
		return s
	}
	quorum := len(voters)/2 + 1
	if e.Quorum > 0 {
		quorum = min(e.Quorum, len(places))
	}
	down, gated, degraded := with(voters, store.StatusDown), with(voters, store.StatusGated), with(voters, store.StatusDegraded)
	switch {
	case len(down) >= quorum:
		return elect(s, store.StatusDown, down, quorum)
	case len(down) > 0:
		return elect(s, store.StatusDegraded, partly(down, voters), 1)
	case len(gated) >= quorum:
		return elect(s, store.StatusGated, gated, quorum)
	case len(gated) > 0:
		return elect(s, store.StatusDegraded, partly(gated, voters), 1)
	case len(degraded) > 0:
		return elect(s, store.StatusDegraded, degraded, 1)
	}
	return elect(s, store.StatusUp, with(voters, store.StatusUp), 1)
}

// fresh reports whether the latest check from a place is recent enough to count: two were due since, at most, and had the
// time that a check may take.
func (el *electorate) fresh(e store.Endpoint, p store.Place, at time.Time) bool {
	const slack = 30 * time.Second
	return at.Sub(p.State.LastCheckAt) <= 2*el.every(e.Schedule)+e.Timeout+slack
}

func (el *electorate) every(schedule string) time.Duration {
	if known, ok := el.periods.Load(schedule); ok {
		return known.(time.Duration) //nolint:forcetypeassert // nothing else is put in
	}
	every, err := el.period(schedule)
	if err != nil {
		every = time.Minute
	}
	el.periods.Store(schedule, every)
	return every
}

func with(places []store.Place, status store.Status) []store.Place {
	return slices.DeleteFunc(slices.Clone(places), func(p store.Place) bool { return p.State.Status != status })
}

// partly returns places whose failures say that others see it differently.
func partly(some, voters []store.Place) []store.Place {
	names := make([]string, 0, len(some))
	for _, p := range some {
		names = append(names, p.Location)
	}
	said := slices.Clone(some)
	for i := range said {
		if f := said[i].State.Failure; f != nil {
			told := *f
			told.Message = fmt.Sprintf("seen from %s only (%d of %d locations): %s", strings.Join(names, ", "), len(some), len(voters), f.Message)
			said[i].State.Failure = &told
		}
	}
	return said
}

// elect returns s with a status that these places bear out. It began when the last of the quorum came to it, and its cause is
// what the first of them saw.
func elect(s store.State, status store.Status, by []store.Place, quorum int) store.State {
	byTime := slices.SortedFunc(slices.Values(by), func(a, b store.Place) int {
		return cmp.Or(a.State.Since.Compare(b.State.Since), cmp.Compare(a.Location, b.Location))
	})
	if s.Status != status {
		s.Status, s.Since = status, byTime[quorum-1].State.Since
	}
	s.Failure = byTime[0].State.Failure
	return s
}
