package scheduler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/scheduler"
)

// TestDueCountsWhatNextSays goes through stretches of every length, over days on which clocks are set.
func TestDueCountsWhatNextSays(t *testing.T) {
	begin := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC)
	for _, spec := range []string{
		"@every 60s", "@every 7m", "@every 25h", "* * * * *", "*/5 * * * *", "0 9-17 * * 1-5", "@hourly", "@daily", "0 0 29 2 *", "30 6 1,15 * 1",
		"CRON_TZ=Europe/Paris 30 2 * * *", "CRON_TZ=Asia/Kolkata */7 8-9 * * *", "CRON_TZ=America/Sao_Paulo 0 * * * *",
	} {
		s, err := scheduler.ParseSchedule(spec)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			from := begin.Add(time.Duration(rng.Int64N(int64(14 * 24 * time.Hour))))
			if rng.IntN(3) == 0 {
				from = from.Truncate(time.Hour)
			}
			to := from.Add(time.Duration(rng.Int64N(int64([]time.Duration{time.Hour, 30 * time.Hour, 12 * 24 * time.Hour}[rng.IntN(3)]))))
			if rng.IntN(3) == 0 {
				to = to.Truncate(time.Hour)
			}
			want := 0
			for at := s.Next("ep_1", from.Add(-1)); !at.IsZero() && at.Before(to); at = s.Next("ep_1", at) {
				want++
			}
			if got := scheduler.Due(spec, "ep_1")(from, to); got != want {
				t.Errorf("%s from %s to %s: %d, want %d", spec, from, to, got, want)
			}
		}
	}
	if got := scheduler.Due("every now and then", "ep_1")(begin, begin.Add(time.Hour)); got != 0 {
		t.Errorf("a schedule that cannot be read is due %d times", got)
	}
}

func BenchmarkDueInAYear(b *testing.B) {
	from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		scheduler.Due("* * * * *", "ep_1")(from, from.AddDate(1, 0, 0))
	}
}
