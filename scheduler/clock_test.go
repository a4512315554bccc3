package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// uuids are ids as they are made when many endpoints are registered one after the other: UUIDs of version 7 (RFC 9562
// §5.7), the same ones each time.
func uuids(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	ids := make([]string, n)
	for i := range ids {
		ms := 1_795_000_000_000 + uint64(i)/40
		ids[i] = fmt.Sprintf("ep_%012x7%03x%016x", ms, 25*(i%40), random.Uint64()>>2|1<<63)
	}
	return ids
}

// counting are ids that differ in their last digits alone, as UUIDs of version 7 do at the worst.
func counting(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("ep_01932f6e5a7c7000800000000%07x", i)
	}
	return ids
}

// TestPhasesAreSpreadEvenly holds the phases of ids against a uniform distribution by Pearson's chi-squared test: the sum
// lies within five standard deviations, sqrt(2·(bins−1)), of bins−1.
func TestPhasesAreSpreadEvenly(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	const n = 60_000
	for kind, ids := range map[string][]string{"made in a row": uuids(n), "that count": counting(n)} {
		for _, spec := range []string{"@every 1s", "@every 16s", "@every 60s", "@every 64s", "@every 5m", "@every 1h"} {
			schedule, err := scheduler.ParseSchedule(spec)
			if err != nil {
				t.Fatal(err)
			}
			period, err := scheduler.Period(spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, bins := range []int{7, 60, 500} {
				counts, within := make([]float64, bins), map[time.Duration]bool{}
				for _, id := range ids {
					phase := time.Duration(schedule.Next(id, start).UnixNano() % int64(period))
					if phase%time.Millisecond != 0 {
						t.Fatalf("%s is due at %s, which is not a whole millisecond", id, phase)
					}
					counts[int(int64(phase)*int64(bins)/int64(period))]++
					within[phase%time.Second] = true
				}
				sum, want := 0.0, float64(n)/float64(bins)
				for _, count := range counts {
					sum += (count - want) * (count - want) / want
				}
				if free := float64(bins - 1); math.Abs(sum-free) > 5*math.Sqrt(2*free) {
					t.Errorf("ids %s, %s, %d bins: chi-squared is %.0f, want about %.0f", kind, spec, bins, sum, free)
				}
				if len(within) != 1000 {
					t.Errorf("ids %s, %s: due at %d different milliseconds of a second, want all 1000", kind, spec, len(within))
				}
			}
		}
	}
}

// starts are when probes began.
type starts struct {
	mu    sync.Mutex
	times []time.Time
	byURL map[string][]time.Time
}

func (s *starts) note(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byURL == nil {
		s.byURL = map[string][]time.Time{}
	}
	s.times = append(s.times, time.Now())
	s.byURL[url] = append(s.byURL[url], time.Now())
}

// of returns when a URL was asked.
func (s *starts) of(url string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.byURL[url])
}

// all returns when each URL was asked.
func (s *starts) all() map[string][]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]time.Time{}
	for url, times := range s.byURL {
		all[url] = slices.Clone(times)
	}
	return all
}

// perSecond counts the starts in each second of a period.
func (s *starts) perSecond(began time.Time, period time.Duration) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make([]int, int(period/time.Second))
	for _, at := range s.times {
		if since := at.Sub(began); since >= 0 && since < period {
			counts[int(since/time.Second)]++
		}
	}
	return counts
}

// silentRecord keeps nothing, for tests with many endpoints.
func silentRecord(context.Context, store.Check) (store.Outcome, error) { return store.Outcome{}, nil }

// run runs a scheduler until the function it returns is called.
func run(t *testing.T, cfg scheduler.Config) (s *scheduler.Scheduler, stop func()) {
	t.Helper()
	cfg.Location, cfg.Log = "here", slog.New(slog.DiscardHandler)
	s = scheduler.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func TestTheFirstPeriodIsLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &starts{}
		s, stop := run(t, scheduler.Config{
			Concurrency: 100, Record: silentRecord,
			Probe: func(ctx context.Context, target probe.Target) probe.Result {
				seen.note(target.URL)
				return up(ctx, target)
			},
		})
		time.Sleep(500 * time.Microsecond) // nothing is due right when the period begins
		began := time.Now()
		for _, id := range uuids(10_000) {
			if err := s.Set(endpoint(id), store.State{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2*time.Minute - time.Nanosecond)
		stop()
		first, second := seen.perSecond(began, time.Minute), seen.perSecond(began.Add(time.Minute), time.Minute)
		all := 0
		for i := range first {
			all += first[i]
			if first[i] != second[i] {
				t.Errorf("%d starts in second %d of the first period, %d of the second", first[i], i, second[i])
			}
			if first[i] < 110 || first[i] > 230 {
				t.Errorf("%d starts in second %d, want about 167", first[i], i)
			}
		}
		if all != 10_000 {
			t.Errorf("%d starts in the first period, want 10,000", all)
		}
	})
}

func TestARestartNeitherBunchesNorSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &starts{}
		cfg := scheduler.Config{
			Concurrency: 100, Record: silentRecord,
			Probe: func(ctx context.Context, target probe.Target) probe.Result {
				seen.note(target.URL)
				return up(ctx, target)
			},
		}
		ids := uuids(1000)
		begin := func() (stop func()) {
			s, stop := run(t, cfg)
			for _, id := range ids {
				if err := s.Set(endpoint(id), store.State{}); err != nil {
					t.Fatal(err)
				}
			}
			return stop
		}
		stop := begin()
		time.Sleep(10*time.Minute + 17*time.Second + 300*time.Microsecond)
		stop()
		stop = begin()
		time.Sleep(10 * time.Minute)
		stop()
		if got := len(seen.all()); got != len(ids) {
			t.Fatalf("%d endpoints were probed, want %d", got, len(ids))
		}
		for url, times := range seen.all() {
			for i := 1; i < len(times); i++ {
				if gap := times[i].Sub(times[i-1]); gap != time.Minute {
					t.Fatalf("%s was probed %s after the time before, want a minute, the restart notwithstanding", url, gap)
				}
			}
			if len(times) < 20 {
				t.Errorf("%s was probed %d times in 20 minutes", url, len(times))
			}
		}
	})
}

func TestAChangeKeepsThePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, up)
		e := endpoint("a")
		w.know(t, e)
		time.Sleep(5 * time.Minute)
		for i := range 50 {
			e.URL, e.UpdatedAt = fmt.Sprintf("https://a.example/%d", i), time.Now()
			w.know(t, e)
			time.Sleep(7 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		checks := w.of("a")
		if len(checks) < 15 || len(checks) > 16 {
			t.Errorf("%d checks in 15:50 minutes, want one a minute", len(checks))
		}
		for i := 1; i < len(checks); i++ {
			if gap := checks[i].ScheduledAt.Sub(checks[i-1].ScheduledAt); gap != time.Minute {
				t.Errorf("check %d is %s after the one before", i, gap)
			}
		}
	})
}

func TestCalendarSchedulesMeanWhatTheySay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 50, func(ctx context.Context, target probe.Target) probe.Result {
			time.Sleep(time.Second)
			return up(ctx, target)
		})
		for i := range 1000 {
			e := endpoint(fmt.Sprintf("e%d", i))
			e.Schedule = "*/5 * * * *"
			w.know(t, e)
		}
		time.Sleep(time.Hour)
		if got := w.mostAtOnce(); got != 50 {
			t.Errorf("%d probes at once, want exactly the 50 allowed", got)
		}
		for i := range 1000 {
			checks := w.of(fmt.Sprintf("e%d", i))
			if len(checks) < 11 || len(checks) > 12 {
				t.Fatalf("%d checks in an hour, want twelve", len(checks))
			}
			for _, c := range checks {
				if at := c.ScheduledAt; at.Minute()%5 != 0 || at.Second() != 0 {
					t.Fatalf("scheduled at %s", at)
				}
				if late := c.Result.StartedAt.Sub(c.ScheduledAt); late > 20*time.Second {
					t.Fatalf("started %s late, want it within the 20s that 1000 checks take", late)
				}
			}
		}
	})
}

// jumping is a wall clock that can be set.
type jumping struct {
	ahead atomic.Int64
	stand atomic.Int64 // how long the next one who looks stands still
}

func (j *jumping) now() time.Time {
	if stand := time.Duration(j.stand.Swap(0)); stand > 0 {
		time.Sleep(stand)
	}
	return time.Now().Add(time.Duration(j.ahead.Load()))
}

func (j *jumping) jump(by time.Duration) { j.ahead.Add(int64(by)) }

func TestAClockThatJumps(t *testing.T) {
	for name, tc := range map[string]struct {
		by    time.Duration
		stand time.Duration
		jumps float64
	}{
		"an hour ahead":              {by: time.Hour, jumps: 1},
		"an hour back":               {by: -time.Hour, jumps: 1},
		"decades ahead":              {by: 30 * 365 * 24 * time.Hour, jumps: 1},
		"not a whole period":         {by: 17*time.Second + 345*time.Microsecond, jumps: 1},
		"back within the period":     {by: -17 * time.Second, jumps: 1},
		"a second, which is no jump": {by: time.Second, jumps: 0},
		"a process that was stopped": {stand: 10 * time.Minute, jumps: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall, seen, registry, log := &jumping{}, &starts{}, prometheus.NewRegistry(), &bytes.Buffer{}
				ids := map[string]bool{}
				w := startWith(t, scheduler.Config{
					Concurrency: 1000, Now: wall.now, Registerer: registry, Log: slog.New(slog.NewTextHandler(log, nil)),
				}, func(ctx context.Context, target probe.Target) probe.Result {
					seen.note(target.URL)
					return up(ctx, target)
				})
				for _, id := range uuids(600) {
					w.know(t, endpoint(id))
					ids[id] = true
				}
				time.Sleep(5*time.Minute + 30*time.Second + 500*time.Millisecond)
				wall.jump(tc.by)
				wall.stand.Store(int64(tc.stand))
				time.Sleep(tc.stand)
				began := time.Now()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				for second, n := range seen.perSecond(began, 5*time.Minute) {
					if n > 60 {
						t.Errorf("%d starts in second %d after the jump, want about 10 as ever", n, second)
					}
				}
				for url, times := range seen.all() {
					last := times[len(times)-1]
					if wait := began.Add(5 * time.Minute).Sub(last); wait > time.Minute {
						t.Fatalf("%s was last probed %s ago", url, wait)
					}
					for i := 1; i < len(times); i++ {
						if gap := times[i].Sub(times[i-1]); gap > 2*time.Minute+time.Second+tc.stand {
							t.Fatalf("%s waited %s for its next check", url, gap)
						}
					}
				}
				for id := range ids {
					kept := map[time.Time]bool{}
					for _, c := range w.of(id) {
						if kept[c.ScheduledAt] {
							t.Fatalf("%s was checked twice for %s", id, c.ScheduledAt)
						}
						kept[c.ScheduledAt] = true
					}
				}
				if got := gathered(t, registry, "rollcall_clock_jumps_total"); got != tc.jumps {
					t.Errorf("%v jumps counted, want %v", got, tc.jumps)
				}
				if got := strings.Count(log.String(), "clock jumped"); got != int(tc.jumps) {
					t.Errorf("the log tells of %d jumps, want %v:\n%s", got, tc.jumps, log)
				}
			})
		})
	}
}

func TestAClockThatGoesBackAgainAndAgainRepeatsNoScheduledTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := &jumping{}
		w := startWith(t, scheduler.Config{Concurrency: 10, Now: wall.now}, up)
		w.know(t, endpoint("a"))
		for range 20 {
			time.Sleep(5 * time.Minute)
			wall.jump(-5 * time.Minute)
		}
		seen := map[string]bool{}
		for _, c := range w.of("a") {
			if seen[c.ID] {
				t.Fatalf("two checks are %s", c.ID)
			}
			seen[c.ID] = true
		}
		if len(seen) < 80 {
			t.Errorf("%d checks in 100 minutes", len(seen))
		}
	})
}

func TestAJumpLeavesConfirmationsAndPausesAsLongAsTheyWere(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": 5 * time.Hour, "back": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall, seen := &jumping{}, &starts{}
				w := startWith(t, scheduler.Config{Concurrency: 10, Now: wall.now}, func(_ context.Context, target probe.Target) probe.Result {
					seen.note(target.URL)
					if target.URL == "https://down.example/mcp" {
						return probe.Result{Verdict: probe.Down, Failure: &probe.Failure{Class: probe.ClassHTTPStatus, Code: 500}}
					}
					return probe.Result{Verdict: probe.Unknown, RetryAfter: 10 * time.Minute}
				})
				for _, id := range []string{"down", "away"} {
					e := endpoint(id)
					e.Schedule = "@every 120s"
					w.set(t, e)
				}
				synctest.Wait()
				time.Sleep(2 * time.Second)
				wall.jump(by)
				time.Sleep(7 * time.Second)
				if times := seen.of("https://down.example/mcp"); len(times) != 2 || times[1].Sub(times[0]) < 5*time.Second {
					t.Errorf("probed at %v, want the first check confirmed 5s after the jump", times)
				}
				time.Sleep(9 * time.Minute)
				if times := seen.of("https://away.example/mcp"); len(times) != 1 {
					t.Errorf("probed at %v, want it left alone for the ten minutes it asked for", times)
				}
				time.Sleep(4 * time.Minute)
				if times := seen.of("https://away.example/mcp"); len(times) != 2 {
					t.Errorf("probed at %v, want it probed again after ten minutes", times)
				}
			})
		})
	}
}

func TestAPauseOfOurOwnIsNotTheirOutage(t *testing.T) {
	for name, timeout := range map[string]time.Duration{
		"the probe ends before we notice": 15 * time.Second, "the probe ends after we noticed": 50 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall, registry := &jumping{}, prometheus.NewRegistry()
				w := startWith(t, scheduler.Config{Concurrency: 10, Now: wall.now, Registerer: registry}, hang)
				e := daily("a", "https://a.example/mcp")
				e.Timeout = timeout
				w.set(t, e)
				synctest.Wait()
				wall.stand.Store(int64(40 * time.Second))
				time.Sleep(time.Minute)
				if got := w.of("a"); len(got) != 0 {
					t.Errorf("recorded %+v, want nothing of a probe during which this process stood still", got)
				}
				if got := gathered(t, registry, "rollcall_checks_discarded_total"); got != 1 {
					t.Errorf("%v checks discarded, want 1", got)
				}
				w.Soon("a")
				time.Sleep(e.Timeout + time.Second)
				if got := w.of("a"); len(got) != 1 || got[0].Result.Verdict != probe.Down {
					t.Errorf("recorded %+v, want the check after it", got)
				}
			})
		})
	}
}
