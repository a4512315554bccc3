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

// Rules returns the rules by which checks become a status, and statuses incidents. period says how long a schedule leaves between two checks at
// least; an error of it means a minute.
func Rules(period func(schedule string) (time.Duration, error)) store.Judge {
	e := electorate{period: period}
	return store.Judge{Check: Judge, Vote: e.vote, Course: Course}
}

// electorate knows which places have a say.
type electorate struct {
	period  func(schedule string) (time.Duration, error)
	periods sync.Map // time.Duration by schedule: working one out takes longer than judging a check
}

// vote is the rule that turns what an endpoint looks like from each of its locations into one status.
//
//   - A place has a say while its latest check is fresh (see patience) and it could tell: unknown places abstain.
//   - Down needs a quorum of down places: endpoint.quorum, though never more than there are places, whether or not they have a
//     say; where none is given, the majority of those that have one, so that a location that is gone keeps no outage silent.
//   - A pending place is still being asked: where it might keep the others from being a quorum, nothing changes before it
//     has decided.
//   - Down at fewer places than the quorum is degraded, and the failure says where it was seen.
//   - What is down stays down while all who have a say find it so, however few are left of the quorum.
//   - Otherwise the same holds for gated; then any place that is degraded makes the endpoint degraded.
//   - Without anybody who has a say the status stays as it was, except that it becomes unknown when a fresh place says so and
//     the endpoint was not down.
//   - A status begins when the last of those came to it whom it needed, and not before those left who stood against it.
func (el *electorate) vote(e store.Endpoint, s store.State, places []store.Place, at time.Time) store.State {
	p := el.poll(e, places, at)
	if len(p.voters) == 0 {
		if len(p.unsure) > 0 && s.Status != store.StatusDown {
			return elect(s, store.StatusUnknown, p.unsure, lastOf(p.unsure), at)
		}
		return s
	}
	quorum := quorumOf(e, len(p.voters), len(places))
	down, gated, degraded := with(p.voters, store.StatusDown), with(p.voters, store.StatusGated), with(p.voters, store.StatusDegraded)
	changed := later(lastOf(p.voters), p.left)
	switch {
	case s.Status == store.StatusDown && len(down) == len(p.voters) && len(down) < quorum:
		return s // who no longer has a say has not recovered
	case len(down) >= quorum && len(down) < quorumOf(e, len(p.voters)+p.waiting, len(places)):
		return s
	case len(down) >= quorum:
		return elect(s, store.StatusDown, down, later(byTime(down)[quorum-1].State.Since, p.left), at)
	case len(down) > 0:
		return elect(s, store.StatusDegraded, partly(down, p.voters), changed, at)
	case len(gated) >= quorum:
		return elect(s, store.StatusGated, gated, changed, at)
	case len(gated) > 0:
		return elect(s, store.StatusDegraded, partly(gated, p.voters), changed, at)
	case len(degraded) > 0:
		return elect(s, store.StatusDegraded, partly(degraded, p.voters), changed, at)
	}
	return elect(s, store.StatusUp, p.voters, changed, at)
}

// quorumOf returns how many places must agree, of as many voters and of all places.
func quorumOf(e store.Endpoint, voters, places int) int {
	if e.Quorum > 0 {
		return min(e.Quorum, places)
	}
	return voters/2 + 1
}

// poll is what the places of an endpoint have to say.
type poll struct {
	voters  []store.Place
	unsure  []store.Place // asked lately, and could not tell
	waiting int           // asked, and not decided yet
	left    time.Time     // when the latest of those went who had a say before
}

func (el *electorate) poll(e store.Endpoint, places []store.Place, at time.Time) poll {
	var p poll
	patience := el.patience(e)
	for _, place := range places {
		state := place.State
		pending := state.Status == store.StatusPending || state.Status == ""
		switch fresh := at.Sub(state.LastCheckAt) <= patience; {
		case pending && (fresh || at.Sub(state.Since) <= patience):
			p.waiting++
		case pending: // never had a say
		case !fresh:
			p.left = later(p.left, state.LastCheckAt)
		case state.Status == store.StatusUnknown:
			p.unsure = append(p.unsure, place)
			p.left = later(p.left, state.Since)
		default:
			p.voters = append(p.voters, place)
		}
	}
	return p
}

// patience is how long ago the latest check from a place may be for it to count: two were due since, at most, and had the
// time that a check may take.
func (el *electorate) patience(e store.Endpoint) time.Duration {
	const slack = 30 * time.Second
	return 2*el.every(e.Schedule) + e.Timeout + slack
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

// maxNamed is how many locations a failure names that was not seen from all of them.
const maxNamed = 3

// partly returns places whose failures say that others see it differently, if any do.
func partly(some, voters []store.Place) []store.Place {
	if len(some) == len(voters) && len(some) > 1 {
		return some
	}
	names := make([]string, 0, maxNamed)
	for _, p := range some[:min(len(some), maxNamed)] {
		names = append(names, p.Location)
	}
	seen := strings.Join(names, ", ")
	if more := len(some) - len(names); more > 0 {
		seen = fmt.Sprintf("%s and %d more", seen, more)
	}
	said := slices.Clone(some)
	for i := range said {
		if f := said[i].State.Failure; f != nil {
			told := *f
			told.Message = fmt.Sprintf("seen from %s only (%d of %d locations)", seen, len(some), len(voters))
			if f.Message != "" {
				told.Message += ": " + f.Message
			}
			said[i].State.Failure = &told
		}
	}
	return said
}

// elect returns s with a status that began at since and that the places in by bear out. Its cause is what the first of them
// saw.
func elect(s store.State, status store.Status, by []store.Place, since, at time.Time) store.State {
	if s.Status != status {
		// No status begins before the one whose place it takes, unless that was dated by a clock that was wrong.
		if since = later(since, s.Since); since.After(at) {
			since = at
		}
		s.Status, s.Since = status, since
	}
	s.Failure = byTime(by)[0].State.Failure
	return s
}

// byTime returns places in the order in which they came to their status.
func byTime(places []store.Place) []store.Place {
	return slices.SortedFunc(slices.Values(places), func(a, b store.Place) int {
		return cmp.Or(a.State.Since.Compare(b.State.Since), cmp.Compare(a.Location, b.Location))
	})
}

// lastOf returns when the last of the places came to its status.
func lastOf(places []store.Place) time.Time {
	var last time.Time
	for _, p := range places {
		last = later(last, p.State.Since)
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
