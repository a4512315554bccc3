package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestPunctualityOfArrivals(t *testing.T) {
	e := store.Endpoint{ID: "ep_1", Schedule: "@every 60s"}
	schedule, err := scheduler.ParseSchedule(e.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	slot := func(n int, late time.Duration) arrival {
		return arrival{7, schedule.Next(e.ID, from).Add(time.Duration(n)*time.Minute + late).UnixMicro()}
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		arrivals []arrival
		want     punctuality
	}{
		"in time":             {[]arrival{slot(0, 0), slot(1, 2*ms), slot(2, ms)}, punctuality{wanted: 3, late: []time.Duration{0, 2 * ms, ms}}},
		"one is missing":      {[]arrival{slot(0, ms), slot(2, ms)}, punctuality{wanted: 3, missed: 1, late: []time.Duration{ms, ms}}},
		"one comes twice":     {[]arrival{slot(0, ms), slot(0, 9*ms), slot(1, ms), slot(2, ms)}, punctuality{wanted: 3, doubled: 1, late: []time.Duration{ms, 9 * ms, ms, ms}}},
		"one is early":        {[]arrival{slot(0, ms), slot(1, -3*ms), slot(2, ms)}, punctuality{wanted: 3, late: []time.Duration{ms, -3 * ms, ms}}},
		"others do not count": {[]arrival{slot(-1, 0), slot(3, 0), {8, slot(1, 0).At}}, punctuality{wanted: 3, missed: 3}},
	} {
		got := punctualityOf(t, map[int]store.Endpoint{7: e}, c.arrivals, from, from.Add(3*time.Minute))
		if diff := cmp.Diff(got, c.want, cmp.AllowUnexported(punctuality{})); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	p := punctuality{late: []time.Duration{3 * ms, -9 * ms, ms, 2 * ms}}
	if p50, p100 := p.percentile(50), p.percentile(100); p50 != 3*ms || p100 != 9*ms {
		t.Errorf("p50 %s, p100 %s of %v; want 3ms and 9ms", p50, p100, p.late)
	}
}
