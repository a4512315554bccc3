package main_test

import (
	"runtime/debug"
	"testing"

	rollcall "github.com/rollcallhq/rollcall/cmd/rollcall"
)

func TestGarbageIsCollectedByWhatItCosts(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		percent int
		share   float64
		heap    uint64
		want    int
	}{
		"a service with little to do holds little":         {100, 0.001, 40 * mib, 50},
		"and no less than that":                            {50, 0.001, 40 * mib, 50},
		"one that spends time on it holds more":            {50, 0.10, 40 * mib, 100},
		"up to three times what is in use":                 {200, 0.10, 40 * mib, 200},
		"a share between the bounds changes nothing":       {100, 0.03, 40 * mib, 100},
		"a large service holds no three times of its own":  {100, 0.10, 100 * mib, 128},
		"a larger one as much as any program":              {100, 0.10, 2000 * mib, 100},
		"one that has grown goes back to that":             {200, 0.03, 2000 * mib, 100},
		"and lower where there is time, however large":     {100, 0.001, 2000 * mib, 50},
		"nothing in use is no reason to divide by nothing": {50, 0, 0, 50},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rollcall.PercentFor(tc.percent, tc.share, tc.heap); got != tc.want {
				t.Errorf("%d %% that took %.3f of the machine with %d MiB in use: %d, want %d", tc.percent, tc.share, tc.heap/mib, got, tc.want)
			}
		})
	}
}

func TestWhoRunsTheServiceSetsTheCollector(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	for name, tc := range map[string]struct {
		env  []string
		want int
	}{
		"nobody does":     {nil, 50},
		"by a percentage": {[]string{"GOGC=80"}, 100},
		"by a limit":      {[]string{"GOMEMLIMIT=1GiB"}, 100},
		"left empty":      {[]string{"GOGC="}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			set, restore := rollcall.SetCollector(tc.env...)
			if got := percent(); got != tc.want || set != (tc.want == 50) {
				t.Errorf("%d %%, set by us: %t, want %d %%", got, set, tc.want)
			}
			restore()
			if got := percent(); got != 100 {
				t.Errorf("%d %% afterwards, want what was set before", got)
			}
		})
	}
}
