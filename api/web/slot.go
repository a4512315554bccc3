package web

import (
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Slot is one hour or day of an endpoint's history: a bar of a chart and a row of the table beside it.
type Slot struct {
	Begin  time.Time
	Hour   bool     // otherwise a day in UTC
	Uptime *float64 // nil when nothing was measured, or could not be told
	Counts store.Counts
	Missed bool // checks were due and none was made
	Before bool // the endpoint was not registered yet
	// What only the page of an endpoint knows.
	Incidents int    // that were open at some time in it
	Link      string // address of what is in it; empty when nothing can be
	Chosen    bool   // that is what the page shows
}

// History is the past of an endpoint as its page shows it: days, the hours of one of them or the last 24, and the checks of one hour
// in the list of checks.
type History struct {
	Days  []Slot
	Hours []Slot
	Day   time.Time // whose hours Hours are; zero: the last 24
	// Addresses of the days around Day, and of the page without it; empty where there is none.
	Earlier, Later, Close string
}

// Slots are some hours or days in a row.
type Slots []Slot

// First is the oldest of slots, of which there is one at least.
func (s Slots) First() Slot { return s[0] }

// Last is the newest.
func (s Slots) Last() Slot { return s[len(s)-1] }

// DayBars and HourBars are what is drawn of each.
func (h History) DayBars() Slots { return h.Days }

// HourBars are the hours.
func (h History) HourBars() Slots { return h.Hours }

// Total is what the hours that are shown add up to.
func (h History) Total() Slot {
	sum := Slot{Begin: h.Day}
	for _, s := range h.Hours {
		sum.Counts = sum.Counts.Plus(s.Counts)
		sum.Missed = sum.Missed || s.Missed
	}
	sum.Missed = sum.Missed && sum.Counts.Total() == 0
	if percent, measured := sum.Counts.Uptime(); measured {
		sum.Uptime = &percent
	}
	return sum
}

// Level puts a slot into one of a few classes, told apart by height and pattern as well as by colour.
func (s Slot) Level() string {
	switch {
	case s.Missed:
		return "none"
	case s.Counts.Total() == 0:
		return "idle"
	case s.Uptime == nil:
		return "unsure"
	case *s.Uptime >= 100 && s.Counts.Degraded == 0:
		return "full"
	case *s.Uptime >= 99 && s.mostlyDegraded():
		return "degraded"
	case *s.Uptime >= 99:
		return "good"
	case *s.Uptime >= 90:
		return "poor"
	}
	return "bad"
}

// mostlyDegraded reports whether a tenth of the checks that tell something, or more, found an endpoint degraded.
func (s Slot) mostlyDegraded() bool {
	return s.Counts.Degraded*10 >= s.Counts.Up+s.Counts.Degraded+s.Counts.Down
}

// worse reports whether s was worse than another; both have an uptime.
func (s Slot) worse(other Slot) bool {
	return *s.Uptime < *other.Uptime || *s.Uptime == *other.Uptime && s.Counts.Degraded > other.Counts.Degraded
}

// When names a slot.
func (s Slot) When() Spoken {
	if s.Hour {
		return hour(s.Begin)
	}
	return Day(s.Begin)
}

// hour is one of a day in UTC whose year is clear.
type hour time.Time

func (h hour) in(l Language) string {
	return l.date(time.Time(h)) + time.Time(h).UTC().Format(", 15:04 UTC")
}

func (h hour) String() string { return h.in(english) }

// Parts say how a slot was, each of them in a few words.
func (s Slot) Parts() List {
	var parts List
	switch {
	case s.Missed:
		parts = append(parts, Say("not measured"))
	case s.Counts.Total() == 0 && s.Before:
		parts = append(parts, Say("not watched yet"))
	case s.Counts.Total() == 0:
		parts = append(parts, Say("nothing was due"))
	case s.Uptime == nil:
		parts = append(parts, Say("no check could tell"))
	default:
		parts = append(parts, Say("%s up", PercentOf(s.Uptime)))
	}
	if n := s.Counts.Degraded; n > 0 {
		parts = append(parts, Say("%d degraded checks", n))
	}
	if n := s.Incidents; n > 0 {
		parts = append(parts, Say("%d incidents", n))
	}
	return parts
}

// Words describe a slot for those who cannot see or hover.
func (s Slot) Words() Said { return Say("%s: %s", s.When(), s.Parts()) }

// Untold is how many checks count neither for nor against an endpoint.
func (s Slot) Untold() int { return s.Counts.Gated + s.Counts.Unknown }
