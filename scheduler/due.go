package scheduler

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// Due reads a schedule and returns what counts the times at which an endpoint with it is due in [from, to). One that cannot
// be read is never due.
func Due(schedule, endpointID string) (count func(from, to time.Time) int) {
	s, err := ParseSchedule(schedule)
	if err != nil {
		return func(time.Time, time.Time) int { return 0 }
	}
	return func(from, to time.Time) int { return s.due(endpointID, from, to) }
}

func (s Schedule) due(endpointID string, from, to time.Time) int {
	first := s.Next(endpointID, from.Add(-1))
	if first.IsZero() || !first.Before(to) {
		return 0
	}
	if s.every > 0 {
		return 1 + int((to.Add(-1).Sub(first))/s.every)
	}
	spec, ok := s.cron.(*cron.SpecSchedule)
	if !ok {
		return s.dueOneByOne(first, to)
	}
	return dueByCalendar(spec, first, to)
}

// dueOneByOne counts from one to the next.
func (s Schedule) dueOneByOne(first, to time.Time) int {
	n := 0
	for at := first; !at.IsZero() && at.Before(to); at = s.cron.Next(at) {
		n++
	}
	return n
}

// dueByCalendar counts whole hours and days at once, where their clock is not set in between: a year has half a million
// minutes.
func dueByCalendar(spec *cron.SpecSchedule, first, to time.Time) int {
	minutes, hours := bits.OnesCount64(spec.Minute&(1<<60-1)), bits.OnesCount64(spec.Hour&(1<<24-1))
	n := 0
	for at := first; !at.IsZero() && at.Before(to); {
		local := at.In(spec.Location)
		day := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, spec.Location)
		tomorrow := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, spec.Location)
		switch hour := at.Truncate(time.Hour); {
		case tomorrow.Sub(day) != 24*time.Hour || local.Truncate(time.Hour).Minute() != 0:
			n, at = n+1, spec.Next(at)
		case !tomorrow.After(to) && !spec.Next(day.Add(-1)).Before(at):
			n, at = n+minutes*hours, spec.Next(tomorrow.Add(-1))
		case !hour.Add(time.Hour).After(to) && !spec.Next(hour.Add(-1)).Before(at):
			n, at = n+minutes, spec.Next(hour.Add(time.Hour-1))
		default:
			n, at = n+1, spec.Next(at)
		}
	}
	return n
}
