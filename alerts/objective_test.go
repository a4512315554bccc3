package alerts_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func TestObjectiveSpending(t *testing.T) {
	tests := []struct {
		name           string
		target         float64
		under          time.Duration
		tally          store.Tally
		attained, left float64
		rate           float64
	}{
		{"all good", 99.9, 0, store.Tally{Counts: store.Counts{Up: 1000}}, 100, 100, 0},
		{"exactly spent", 99.9, 0, store.Tally{Counts: store.Counts{Up: 998, Degraded: 1, Down: 1}}, 99.9, 0, 1},
		{"half is left", 99, 0, store.Tally{Counts: store.Counts{Up: 995, Down: 5}}, 99.5, 50, 0.5},
		{"overspent", 99.9, 0, store.Tally{Counts: store.Counts{Up: 980, Down: 20}}, 98, -1900, 20},
		{"gated, unknown and maintained count neither way", 99, 0,
			store.Tally{Counts: store.Counts{Up: 995, Down: 5, Gated: 400, Unknown: 300, Maintenance: 200}}, 99.5, 50, 0.5},
		{"what is slow is bad where speed is asked for", 95, time.Second,
			store.Tally{Counts: store.Counts{Up: 90, Degraded: 5, Down: 5}, Under: 80}, 80, -300, 4},
		{"all bad", 99.9, 0, store.Tally{Counts: store.Counts{Down: 3}}, 0, -99900, 1000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := alerts.SpendingOf(store.Objective{Target: tt.target, Under: tt.under, Days: 30}, tt.tally)
			attained, measured := s.Attained()
			left, ok := s.Left()
			if !measured || !ok || !near(attained, tt.attained) || !near(left, tt.left) || !near(s.Rate(), tt.rate) {
				t.Errorf("attained %v, left %v, rate %v; want %v, %v, %v", attained, left, s.Rate(), tt.attained, tt.left, tt.rate)
			}
		})
	}
	s := alerts.SpendingOf(store.Objective{Target: 99}, store.Tally{Counts: store.Counts{Gated: 5}})
	_, attained := s.Attained()
	_, left := s.Left()
	if attained || left || s.Rate() != 0 {
		t.Errorf("nothing measured: attained %t, left %t, rate %v", attained, left, s.Rate())
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*max(1, math.Abs(b)) }

// TestObjectiveBudget adds up forty days of hours, of which thirty count: each with 60 checks, of which one is down and ten are slow.
func TestObjectiveBudget(t *testing.T) {
	now := epoch
	var hours []store.Rollup
	for h := 1; h <= 40*24; h++ {
		r := store.Rollup{Begin: now.Add(-time.Duration(h) * time.Hour)}
		for k := range 60 {
			result := probe.Result{Verdict: probe.Up, Duration: 300 * time.Millisecond}
			switch {
			case k == 0:
				result.Verdict = probe.Down
			case k <= 10:
				result.Duration = 2 * time.Second
			}
			r.Add(result)
		}
		hours = append(hours, r)
	}
	for under, want := range map[time.Duration]alerts.Spending{0: {Good: 59 * 720, Bad: 720}, time.Second: {Good: 49 * 720, Bad: 11 * 720}} {
		got, err := alerts.Budget(store.Objective{Name: "o", Target: 99, Days: 30, Under: under}, hours, now)
		if err != nil {
			t.Fatal(err)
		}
		if got.Good != want.Good || got.Bad != want.Bad {
			t.Errorf("under %s: %d good and %d bad, want %d and %d", under, got.Good, got.Bad, want.Good, want.Bad)
		}
	}
	broken := store.Rollup{Begin: now, Latencies: store.PackedLatencies([]byte("no sketch"))}
	if _, err := alerts.Budget(store.Objective{Name: "o", Target: 99, Days: 1}, []store.Rollup{broken}, now); err == nil {
		t.Error("a roll-up that cannot be read is no error")
	}
}

// TestObjectiveBurning tallies an endpoint that is checked once a minute. bad are how many checks were bad in the last 5 minutes, half
// hour, hour and six hours.
func TestObjectiveBurning(t *testing.T) {
	tests := []struct {
		name       string
		target     float64
		bad        [4]int
		fast, slow bool
	}{
		{"nothing bad", 99.9, [4]int{0, 0, 0, 0}, false, false},
		{"one bad check", 99.9, [4]int{1, 1, 1, 1}, false, false},
		{"two are an outage, and not yet a rate", 99.9, [4]int{2, 2, 2, 2}, false, false},
		{"three within minutes", 99.9, [4]int{3, 3, 3, 3}, true, true},
		{"what is over is not told", 99.9, [4]int{0, 0, 20, 20}, false, false},
		{"what is over for a while is told as slow until it is long over", 99.9, [4]int{0, 5, 20, 20}, false, true},
		{"exactly at the rate", 99, [4]int{1, 5, 9, 22}, true, true}, // 15 and 6.1
		{"just below it", 99, [4]int{1, 5, 8, 21}, false, false},     // 13.3 and 5.8
		{"slowly", 99, [4]int{0, 2, 4, 24}, false, true},             // 6.7
		{"a target that leaves so much room that no rate is ever reached", 80, [4]int{5, 30, 60, 360}, true, true},
		{"and is not all bad", 80, [4]int{5, 29, 59, 300}, false, false},
	}
	windows := []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fast, slow := alerts.Burning(store.Objective{Target: tt.target, Days: 30}, func(window time.Duration) store.Tally {
				for i, w := range windows {
					if w == window {
						checks := int(w / time.Minute)
						return store.Tally{Counts: store.Counts{Up: checks - tt.bad[i], Down: tt.bad[i]}}
					}
				}
				t.Fatalf("asked for %s", window)
				return store.Tally{}
			})
			if fast != tt.fast || slow != tt.slow {
				t.Errorf("fast %t, slow %t; want %t, %t", fast, slow, tt.fast, tt.slow)
			}
		})
	}
}

func TestObjectiveIncidentSaysHowFast(t *testing.T) {
	o := store.Objective{Name: "availability", Target: 99.9, Days: 30}
	i := alerts.ObjectiveIncident(weather(), o, 14.93, true, epoch)
	i.ID = "inc_1"
	m := team(i, nil, store.NoticeOpened)
	if want := "It is spent 14.9 times as fast as would last for 30 days, over the last hour and the last 5 minutes."; m.Update != want {
		t.Errorf("update %q, want %q", m.Update, want)
	}
	if !strings.Contains(m.Title, "“availability”") || !m.Acts || i.Subject != "ep_1/objective/availability" {
		t.Errorf("title %q, acts %t, subject %q", m.Title, m.Acts, i.Subject)
	}
}
