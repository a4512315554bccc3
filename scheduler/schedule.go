package scheduler

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule says when an endpoint is due. Make one with ParseSchedule.
type Schedule struct {
	cron  cron.Schedule
	every time.Duration // of "@every"; zero for a calendar schedule
}

// minEvery is the shortest period: robfig/cron counts in whole seconds.
const minEvery = time.Second

// ParseSchedule reads what robfig/cron's standard parser reads: five fields, "@every 30s", "@hourly" and the like, and
// "CRON_TZ=Europe/Paris …" before any of them. Unlike that parser it refuses an "@every" that it would round. The error
// is fit for a user.
func ParseSchedule(spec string) (Schedule, error) {
	every, isEvery, err := parseEvery(spec)
	if err != nil {
		return Schedule{}, err
	}
	if zone, rest, ok := strings.Cut(spec, " "); strings.HasPrefix(zone, "TZ=") || strings.HasPrefix(zone, "CRON_TZ=") {
		// The parser panics on a zone with nothing behind it.
		if !ok || strings.TrimSpace(rest) == "" {
			return Schedule{}, errors.New("names a time zone but no schedule: write it like CRON_TZ=Europe/Paris 0 8 * * *")
		}
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return Schedule{}, fmt.Errorf("cannot be read as a schedule (%w): write it like @every 60s, @hourly or */5 * * * *", err)
	}
	s := Schedule{cron: parsed}
	if isEvery {
		s.every = every
	}
	if s.cron.Next(referenceTime).IsZero() {
		return Schedule{}, errors.New("never comes: no day fits it")
	}
	return s, nil
}

// parseEvery reads the duration of an "@every" schedule, with or without a time zone in front, which changes nothing.
func parseEvery(spec string) (every time.Duration, is bool, err error) {
	_, text, is := strings.Cut(spec, "@every ")
	if !is {
		return 0, false, nil
	}
	every, err = time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, true, errors.New("has no duration after @every: write it like @every 60s")
	case every <= 0:
		return 0, true, errors.New("must have a duration longer than zero after @every")
	case every < minEvery || every%time.Second != 0:
		return 0, true, errors.New("must be whole seconds after @every, 1s at least")
	}
	return every, true, nil
}

// referenceTime is where Period begins to count: the start of a common year, whose February is the shortest.
var referenceTime = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Period reads a schedule and says how long it leaves between two checks at least. The error is fit for a user.
func Period(spec string) (time.Duration, error) {
	s, err := ParseSchedule(spec)
	if err != nil {
		return 0, err
	}
	return s.period(), nil
}

// period looks at enough of a calendar schedule to see its shortest gap: all minutes of a day, or days of a year.
func (s Schedule) period() time.Duration {
	if s.every > 0 {
		return s.every
	}
	const occurrences = 24*60 + 1
	shortest := time.Duration(0)
	at := s.cron.Next(referenceTime)
	for range occurrences {
		next := s.cron.Next(at)
		if next.IsZero() {
			break
		}
		if gap := next.Sub(at); shortest == 0 || gap < shortest {
			shortest = gap
		}
		if shortest <= time.Minute || next.Sub(referenceTime) > 366*24*time.Hour {
			break
		}
		at = next
	}
	return shortest
}

// Next returns the first time after t at which an endpoint is due. "@every" schedules are spread over their period by a
// hash of the endpoint's id, and keep that phase across restarts: it follows from the id and the clock alone. Calendar
// schedules mean what they say.
func (s Schedule) Next(endpointID string, t time.Time) time.Time {
	if s.every == 0 {
		return s.cron.Next(t)
	}
	phase := phaseOf(endpointID, s.every)
	since := (t.UnixNano() - int64(phase)) % int64(s.every)
	return t.Round(0).Add(s.every - time.Duration(since))
}

// next is Next, with a day far off in place of none: a calendar schedule may ask for one that does not come for years.
func (s Schedule) next(endpointID string, after time.Time) time.Time {
	if next := s.Next(endpointID, after); !next.IsZero() {
		return next
	}
	return after.AddDate(1, 0, 0)
}

// maxPassed bounds how far passed counts a calendar schedule, one date at a time.
const maxPassed = 1000

// passed returns how many times an endpoint was due after one time and until another.
func (s Schedule) passed(endpointID string, after, until time.Time) int {
	first := s.Next(endpointID, after)
	if first.IsZero() || first.After(until) {
		return 0
	}
	if s.every > 0 {
		return 1 + int(until.Sub(first)/s.every)
	}
	n := 0
	for at := first; !at.IsZero() && !at.After(until) && n < maxPassed; at = s.cron.Next(at) {
		n++
	}
	return n
}

// phaseOf returns where in its period an endpoint is due, in whole milliseconds.
func phaseOf(endpointID string, every time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(endpointID))
	return time.Duration(mix(h.Sum64())%uint64(every.Milliseconds())) * time.Millisecond
}

// mix has every bit of a hash depend on all of its bits: the low ones of FNV-1a follow from the low bits of what was
// hashed, and ids that were made one after the other are alike. It is the finalizer of SplitMix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
