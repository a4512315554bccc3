package scheduler

import (
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Window is a stretch of time: from Begin on, until End.
type Window struct{ Begin, End time.Time }

// Holds reports whether t lies in w.
func (w Window) Holds(t time.Time) bool { return !t.Before(w.Begin) && t.Before(w.End) }

// maxWindows bounds what Windows returns: more than a maintenance every minute for half a day.
const maxWindows = 1000

// Windows returns when a maintenance is under way between two times, in order: whole windows, also those that begin before or
// end after. A schedule that cannot be read has none.
func Windows(m store.Maintenance, from, until time.Time) []Window {
	if m.Schedule == "" {
		w := Window{m.StartsAt, m.EndsAt}
		if w.Begin.Before(until) && w.End.After(from) {
			return []Window{w}
		}
		return nil
	}
	s, err := ParseSchedule(m.Schedule)
	if err != nil || m.Duration <= 0 {
		return nil
	}
	if m.StartsAt.After(from) {
		from = m.StartsAt
	}
	var windows []Window
	// The first that can still be under way at from began less than one duration before.
	for at := s.cron.Next(from.Add(-m.Duration)); !at.IsZero() && at.Before(until) && len(windows) < maxWindows; at = s.cron.Next(at) {
		if !m.EndsAt.IsZero() && !at.Before(m.EndsAt) {
			break
		}
		if !at.Before(m.StartsAt) {
			windows = append(windows, Window{at, at.Add(m.Duration)})
		}
	}
	return windows
}
