package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// punctuality says how checks, as a target saw them begin, agree with the schedule.
type punctuality struct {
	wanted  int // slots
	missed  int // slots without a check
	doubled int // checks beyond the first of a slot
	late    []time.Duration
}

// punctualityOf holds the arrivals at a target against the schedules of its endpoints, which lie on a period, between two times.
// The endpoints are keyed by their number at the target; checks of others are passed over. An arrival belongs to the slot
// that it is nearest to.
func punctualityOf(t testing.TB, endpoints map[int]store.Endpoint, arrivals []arrival, from, to time.Time) punctuality {
	t.Helper()
	seen := map[int][]time.Time{}
	for _, a := range arrivals {
		seen[a.Endpoint] = append(seen[a.Endpoint], time.UnixMicro(a.At))
	}
	var p punctuality
	for n, e := range endpoints {
		schedule, err := scheduler.ParseSchedule(e.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		first := schedule.Next(e.ID, from)
		period := schedule.Next(e.ID, first).Sub(first)
		for slot := first; slot.Before(to); slot = slot.Add(period) {
			p.wanted++
			hits := 0
			for _, at := range seen[n] {
				if late := at.Sub(slot); late >= -period/2 && late < period/2 {
					hits++
					p.late = append(p.late, late)
				}
			}
			p.missed += max(0, 1-hits)
			p.doubled += max(0, hits-1)
		}
	}
	return p
}

func (p punctuality) plus(q punctuality) punctuality {
	return punctuality{p.wanted + q.wanted, p.missed + q.missed, p.doubled + q.doubled, append(slices.Clip(p.late), q.late...)}
}

// percentile returns the deviation from the schedule, early or late, that so many percent of the checks do not exceed.
func (p punctuality) percentile(percent int) time.Duration {
	if len(p.late) == 0 {
		return 0
	}
	off := make([]time.Duration, len(p.late))
	for i, late := range p.late {
		off[i] = late.Abs()
	}
	slices.Sort(off)
	return off[min(len(off)-1, len(off)*percent/100)]
}

func (p punctuality) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d wanted, %d missed, %d doubled, deviation", p.wanted, p.missed, p.doubled)
	for _, percent := range []int{50, 99, 100} {
		fmt.Fprintf(&b, " p%d %.1f ms", percent, milliseconds(p.percentile(percent)))
	}
	return b.String()
}
