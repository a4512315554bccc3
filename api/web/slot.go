package web

import (
	"fmt"
	"strings"
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
	case *s.Uptime >= 99:
		return "good"
	case *s.Uptime >= 90:
		return "poor"
	}
	return "bad"
}

// When names a slot.
func (s Slot) When() string {
	if s.Hour {
		return s.Begin.UTC().Format("2 Jan, 15:04 UTC")
	}
	return day(s.Begin)
}

// What says in words how a slot was.
func (s Slot) What() string {
	switch {
	case s.Missed:
		return "not measured"
	case s.Counts.Total() == 0 && s.Before:
		return "not watched yet"
	case s.Counts.Total() == 0:
		return "nothing was due"
	}
	words := []string{"no check could tell"}
	if s.Uptime != nil {
		words = []string{percent(s.Uptime) + " up"}
	}
	if n := s.Counts.Degraded; n > 0 {
		words = append(words, fmt.Sprintf("%d degraded %s", n, plural(n, "check", "checks")))
	}
	return strings.Join(words, ", ")
}

// Words describe a slot for those who cannot see or hover.
func (s Slot) Words() string { return s.When() + ": " + s.What() }

// Untold is how many checks count neither for nor against an endpoint.
func (s Slot) Untold() int { return s.Counts.Gated + s.Counts.Unknown }
