package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

func at(id, url string) store.Endpoint {
	e := endpoint(id)
	e.URL = url
	return e
}

func gathered(t *testing.T, r prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		sum := 0.0
		for _, m := range family.GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		return sum
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

func TestAHostHasSoManySlotsAndNoMore(t *testing.T) {
	unix := "unix:///run/node.sock"
	for name, tc := range map[string]struct {
		perHost int
		want    int
		place   func(i int) store.Endpoint
	}{
		"four unless told otherwise": {0, 4, func(i int) store.Endpoint { return at("", fmt.Sprintf("https://one.example/%d", i)) }},
		"one":                        {1, 1, func(i int) store.Endpoint { return at("", fmt.Sprintf("https://one.example/%d", i)) }},
		"without a bound":            {-1, 20, func(i int) store.Endpoint { return at("", fmt.Sprintf("https://one.example/%d", i)) }},
		"ports, schemes and case do not matter": {3, 3, func(i int) store.Endpoint {
			return at("", []string{"https://One.Example/a", "http://one.example:8080/b", "wss://ONE.example./c"}[i%3])
		}},
		"addresses of version 6": {2, 2, func(i int) store.Endpoint { return at("", fmt.Sprintf("http://[2001:db8::1]:%d/", 8000+i)) }},
		"a unix socket": {2, 2, func(int) store.Endpoint {
			e := at("", unix)
			e.Kind = probe.KindLSP
			return e
		}},
		"a command": {2, 2, func(i int) store.Endpoint {
			e := at("", "")
			e.Command = &probe.Command{Args: []string{"server", fmt.Sprint(i)}}
			return e
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWith(t, scheduler.Config{Concurrency: 100, PerHost: tc.perHost}, hang)
				for i := range 20 {
					e := tc.place(i)
					e.ID, e.Slug = fmt.Sprintf("e%d", i), fmt.Sprintf("e%d", i)
					w.set(t, e)
				}
				time.Sleep(10 * time.Minute)
				if got := w.mostAtOnce(); got != tc.want {
					t.Errorf("%d probes at once, want exactly %d", got, tc.want)
				}
				for i := range 20 {
					if len(w.of(fmt.Sprintf("e%d", i))) == 0 {
						t.Errorf("endpoint %d was never probed", i)
					}
				}
			})
		})
	}
}

func TestAFullHostHoldsUpNobodyElseAndTakesNoSlotOfTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := startWith(t, scheduler.Config{Concurrency: 6, Registerer: registry}, func(ctx context.Context, target probe.Target) probe.Result {
			if target.Method == "hang" {
				return hang(ctx, target)
			}
			return up(ctx, target)
		})
		for i := range 200 {
			e := at(fmt.Sprintf("hang-%d", i), fmt.Sprintf("https://hanging.example/%d", i))
			e.Kind, e.Request.Method = probe.KindJSONRPC, "hang"
			w.set(t, e)
		}
		for i := range 100 {
			w.set(t, endpoint(fmt.Sprintf("good-%d", i)))
		}
		synctest.Wait()
		if got := gathered(t, registry, "rollcall_scheduler_waiting_for_host"); got != 196 {
			t.Errorf("%v endpoints wait for their host, want all but the four that hang", got)
		}
		if got := gathered(t, registry, "rollcall_scheduler_queue"); got != 0 {
			t.Errorf("%v endpoints wait for a slot, want none", got)
		}
		time.Sleep(time.Hour)
		for i := range 100 {
			checks := w.of(fmt.Sprintf("good-%d", i))
			if len(checks) != 61 {
				t.Errorf("%d checks of a good endpoint in an hour, want 61", len(checks))
			}
			for _, c := range checks {
				if late := c.Result.StartedAt.Sub(c.ScheduledAt); late > 0 {
					t.Fatalf("a good endpoint was probed %s late", late)
				}
			}
		}
		if got := gathered(t, registry, "rollcall_endpoints_scheduled"); got != 300 {
			t.Errorf("%v endpoints scheduled, want 300", got)
		}
		for i := range 200 {
			w.Remove(fmt.Sprintf("hang-%d", i))
		}
		if got := gathered(t, registry, "rollcall_scheduler_waiting_for_host"); got != 0 {
			t.Errorf("%v endpoints wait for a host that nothing is known of any more", got)
		}
		if got := gathered(t, registry, "rollcall_endpoints_scheduled"); got != 100 {
			t.Errorf("%v endpoints scheduled after 200 were removed, want 100", got)
		}
	})
}

func TestTheOldestThatWaitsForAHostGoesOnFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWith(t, scheduler.Config{Concurrency: 10, PerHost: 1}, func(ctx context.Context, target probe.Target) probe.Result {
			time.Sleep(time.Second)
			return up(ctx, target)
		})
		began := time.Now()
		ids := []string{"c", "h", "a", "f", "e", "b", "g", "d"}
		for _, id := range ids {
			w.know(t, daily(id, "https://one.example/"+id))
			w.Soon(id)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		for i, id := range ids {
			checks := w.of(id)
			if len(checks) != 1 || !checks[0].Result.StartedAt.Equal(began.Add(time.Duration(i)*time.Second)) {
				t.Errorf("%s fell due as number %d: checks %+v, want one that began %ds after the first", id, i, checks, i)
			}
		}
	})
}

// takes returns a probe that takes a time for each path of a URL; none for others.
func takes(times map[string]time.Duration) func(context.Context, probe.Target) probe.Result {
	return func(ctx context.Context, target probe.Target) probe.Result {
		_, path, _ := strings.Cut(strings.TrimPrefix(target.URL, "https://"), "/")
		time.Sleep(times[path])
		return up(ctx, target)
	}
}

// daily returns an endpoint that is checked when somebody asks for it.
func daily(id, url string) store.Endpoint {
	e := at(id, url)
	e.Schedule = "@daily"
	return e
}

// TestTheSlotOfAHostIsNotLostWhenWhoWasToTakeItDoesNot has a and others share a host with one slot. When a ends, b is the next
// to go on, but something else has the only slot there is. Before b begins it does something else: then it is the turn of c.
func TestTheSlotOfAHostIsNotLostWhenWhoWasToTakeItDoesNot(t *testing.T) {
	edit := func(t *testing.T, w *world, change func(*store.Endpoint)) {
		e := daily("b", "https://one.example/b")
		e.UpdatedAt = time.Now()
		change(&e)
		w.know(t, e)
	}
	for name, tc := range map[string]struct {
		wait func(w *world) // for b
		act  func(t *testing.T, w *world)
	}{
		"it is removed": {
			func(w *world) { w.Soon("b") },
			func(_ *testing.T, w *world) { w.Remove("b") },
		},
		"it is paused": {
			func(w *world) { w.Soon("b") },
			func(t *testing.T, w *world) { edit(t, w, func(e *store.Endpoint) { e.Paused = true }) },
		},
		"it moves": {
			func(w *world) { w.Soon("b") },
			func(t *testing.T, w *world) {
				edit(t, w, func(e *store.Endpoint) { e.URL = "https://moved.example/b" })
			},
		},
		"it moves while somebody waits for it": {
			func(w *world) { go w.CheckNow(context.Background(), "b") }, //nolint:errcheck,usetesting // it comes back when it may
			func(t *testing.T, w *world) {
				edit(t, w, func(e *store.Endpoint) { e.URL = "https://moved.example/b" })
			},
		},
		"it moves while it is paused and somebody waits for it": {
			func(w *world) { go w.CheckNow(context.Background(), "paused") }, //nolint:errcheck,usetesting // as above
			func(t *testing.T, w *world) {
				e := daily("paused", "https://moved.example/paused")
				e.Paused, e.UpdatedAt = true, time.Now()
				w.know(t, e)
			},
		},
		"it is removed while somebody waits for it": {
			func(w *world) { go w.CheckNow(context.Background(), "b") }, //nolint:errcheck,usetesting // it comes back when it may
			func(_ *testing.T, w *world) { w.Remove("b") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWith(t, scheduler.Config{Concurrency: 3, PerHost: 1},
					takes(map[string]time.Duration{"a": 2 * time.Second, "long": 10 * time.Second}))
				for _, id := range []string{"a", "b", "c"} {
					w.know(t, daily(id, "https://one.example/"+id))
				}
				w.know(t, daily("long", "https://other.example/long"))
				paused := daily("paused", "https://one.example/paused")
				paused.Paused = true
				w.know(t, paused)
				w.Soon("a")
				w.Soon("long")
				synctest.Wait()
				tc.wait(w)
				synctest.Wait()
				time.Sleep(time.Second)
				w.Soon("c")
				synctest.Wait()
				w.SetLimit(1)
				time.Sleep(2 * time.Second) // a has ended
				synctest.Wait()
				if got := len(w.of("b")) + len(w.of("paused")) + len(w.of("c")); got != 0 {
					t.Fatalf("%d checks with no slot free", got)
				}
				tc.act(t, w)
				time.Sleep(10 * time.Second)
				if got := len(w.of("c")); got != 1 {
					t.Errorf("%d checks of the one that was next, want 1", got)
				}
			})
		})
	}
}

func TestASlotOfAHostPassesByWhoIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWith(t, scheduler.Config{Concurrency: 10, PerHost: 2}, takes(map[string]time.Duration{
			"short": 2 * time.Second, "long": 5 * time.Second, "b": 10 * time.Second,
		}))
		for _, id := range []string{"short", "long", "b", "c"} {
			w.know(t, daily(id, "https://one.example/"+id))
		}
		for _, ask := range []func(){
			func() { w.Soon("short") },
			func() { w.Soon("long") },
			func() { w.Soon("b") },
			func() { go w.CheckNow(context.Background(), "b") }, //nolint:errcheck,usetesting // it is looked at through what is recorded
			func() { w.Soon("c") },
		} {
			ask()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(6 * time.Second)
		if got := len(w.of("c")); got != 1 {
			t.Errorf("%d checks of c when long had ended, want 1: whoever asks for b has to wait for b", got)
		}
		time.Sleep(20 * time.Second)
		if got := len(w.of("b")); got != 2 {
			t.Errorf("%d checks of b, want both that were asked for", got)
		}
	})
}

func TestLimitIsChangedWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, func(ctx context.Context, target probe.Target) probe.Result {
			time.Sleep(time.Second)
			return up(ctx, target)
		})
		for i := range 100 {
			w.set(t, endpoint(fmt.Sprintf("e%d", i)))
		}
		running := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.running
		}
		for _, step := range []struct{ limit, want int }{{2, 2}, {9, 9}, {3, 3}, {0, 1}, {5, 5}} {
			w.SetLimit(step.limit)
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			if got := running(); got != step.want {
				t.Errorf("%d probes under way at a limit of %d, want %d", got, step.limit, step.want)
			}
		}
		w.SetLimit(100)
		synctest.Wait()
		ended := 0
		for i := range 100 {
			ended += len(w.of(fmt.Sprintf("e%d", i)))
		}
		if got := running(); got < 100-ended {
			t.Errorf("%d probes under way and %d ended right after the limit was raised, want all of the 100 that were due", got, ended)
		}
	})
}

func TestCheckNowTakesSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWith(t, scheduler.Config{Concurrency: 3, PerHost: 2}, func(ctx context.Context, target probe.Target) probe.Result {
			time.Sleep(time.Second)
			return up(ctx, target)
		})
		var ids []string
		for i := range 5 {
			id := fmt.Sprintf("e%d", i)
			e := at(id, "https://one.example/"+id)
			e.Schedule = "@daily"
			w.know(t, e)
			ids = append(ids, id)
		}
		var calls sync.WaitGroup
		began := time.Now()
		for _, id := range slices.Concat(ids, ids) {
			calls.Go(func() {
				if _, err := w.CheckNow(t.Context(), id); err != nil {
					t.Errorf("CheckNow: %v", err)
				}
			})
		}
		calls.Wait()
		if got := w.mostAtOnce(); got != 2 {
			t.Errorf("%d probes of one host at once, want 2", got)
		}
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second { // the last two may be of one endpoint
			t.Errorf("ten checks of a second each, two at a time, took %s", took)
		}
	})
}

func TestCheckNowThatIsGivenUpLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWith(t, scheduler.Config{Concurrency: 3, PerHost: 1}, hang)
		w.set(t, at("hanging", "https://one.example/a"))
		e := at("waiting", "https://one.example/b")
		e.Schedule = "@daily"
		w.know(t, e)
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, id := range []string{"waiting", "hanging"} { // one waits for its host, the other for itself
			if _, err := w.CheckNow(impatient, id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("CheckNow of %s: %v, want that of its context", id, err)
			}
		}
		answer := make(chan error, 1)
		go func() {
			_, err := w.CheckNow(t.Context(), "waiting")
			answer <- err
		}()
		synctest.Wait()
		w.Remove("waiting")
		if err := <-answer; !errors.Is(err, scheduler.ErrUnknownEndpoint) {
			t.Errorf("CheckNow of an endpoint that was removed meanwhile: %v", err)
		}
		time.Sleep(time.Minute)
		if got := len(w.of("waiting")); got != 0 {
			t.Errorf("%d checks for somebody who left", got)
		}
	})
}

func TestATickThatFindsItsEndpointBusyIsMissedAndNotMadeUpFor(t *testing.T) {
	for name, slow := range map[string]func(ctx context.Context, w *world){
		"by its own check": func(context.Context, *world) {},
		"by CheckNow": func(ctx context.Context, w *world) {
			_, _ = w.CheckNow(ctx, "a") // what it answers is told elsewhere
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				first := true
				w := startWith(t, scheduler.Config{Concurrency: 10, Registerer: registry}, func(ctx context.Context, target probe.Target) probe.Result {
					if first {
						first = false
						time.Sleep(4*time.Minute + 30*time.Second)
					}
					return up(ctx, target)
				})
				w.know(t, endpoint("a"))
				go slow(t.Context(), w)
				began := time.Now()
				time.Sleep(10 * time.Minute)
				var ended []time.Time
				for _, c := range w.of("a") {
					ended = append(ended, c.Result.StartedAt)
				}
				missed := int(gathered(t, registry, "rollcall_scheduler_missed_total"))
				scheduled := len(ended)
				if name == "by CheckNow" {
					scheduled--
				}
				if missed < 4 || scheduled+missed != 10 {
					t.Errorf("%d scheduled checks and %d missed in ten minutes, want ten together", scheduled, missed)
				}
				for i := 2; i < len(ended); i++ {
					if gap := ended[i].Sub(ended[i-1]); gap != time.Minute {
						t.Errorf("check %d began %s after the one before, %s after the start", i, gap, ended[i].Sub(began))
					}
				}
			})
		})
	}
}

func TestNoTwoChecksOfAnEndpointHaveTheSameScheduledTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, up)
		w.know(t, endpoint("a"))
		for range 300 {
			for range 3 {
				if _, err := w.CheckNow(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			w.Soon("a")
			time.Sleep(time.Second)
		}
		seen := map[string]bool{}
		for _, c := range w.of("a") {
			if seen[c.ID] {
				t.Fatalf("two checks are %s", c.ID)
			}
			seen[c.ID] = true
		}
		if len(seen) < 1200 {
			t.Errorf("%d checks, want 1200 at least", len(seen))
		}
	})
}

func TestDrainReturnsWhenNothingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(ctx context.Context, target probe.Target) probe.Result {
			if target.URL == "https://quick.example/mcp" {
				return up(ctx, target)
			}
			time.Sleep(3 * time.Second)
			return up(ctx, target)
		})
		for _, id := range []string{"slow", "quick", "stays"} {
			w.set(t, endpoint(id))
		}
		synctest.Wait()
		began := time.Now()
		if err := w.Drain(t.Context(), []string{"slow", "quick", "never known"}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("drained after %s, want it when the probe under way had ended", took)
		}
		if got := w.IDs(); !slices.Equal(got, []string{"stays"}) {
			t.Errorf("knows %v after the others were drained", got)
		}
		if got := len(w.of("slow")); got != 1 {
			t.Errorf("%d checks of the endpoint that was being probed, want that one", got)
		}
		time.Sleep(10 * time.Minute)
		if got := len(w.of("quick")) + len(w.of("slow")); got != 2 {
			t.Errorf("%d checks of drained endpoints, want the ones before", got)
		}
	})
}

func TestTheSlotOfAHostGoesToWhoAskedFirstHoweverOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWith(t, scheduler.Config{Concurrency: 10, PerHost: 1}, takes(map[string]time.Duration{
			"a": 2 * time.Second, "b": 2 * time.Second, "c": 2 * time.Second,
		}))
		for _, id := range []string{"a", "b", "c", "b", "b"} {
			w.know(t, daily(id, "https://one.example/"+id))
			w.Soon(id)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(4100 * time.Millisecond)
		if got := len(w.of("b")); got != 1 {
			t.Errorf("%d checks of b, want it to keep its place before c", got)
		}
	})
}

func TestDrainWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, hang)
		w.set(t, endpoint("a"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Drain(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain: %v, want that of its context", err)
		}
	})
}

func TestAnEndpointThatComesBackIsNotProbedTwiceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(ctx context.Context, target probe.Target) probe.Result {
			time.Sleep(10 * time.Second)
			return up(ctx, target)
		})
		e := endpoint("a")
		w.set(t, e)
		synctest.Wait()
		w.Remove("a")
		w.set(t, e)
		time.Sleep(19 * time.Second)
		if got := w.mostAtOnce(); got != 1 {
			t.Errorf("%d probes of one endpoint at once", got)
		}
		if got := len(w.of("a")); got != 0 {
			t.Errorf("%d checks, want none of the time before it came back", got)
		}
		time.Sleep(2 * time.Second)
		if got := len(w.of("a")); got != 1 {
			t.Errorf("%d checks, want one right after the probe that was under way", got)
		}
	})
}

func TestLeases(t *testing.T) {
	type lease struct {
		epoch int64
		ok    bool
	}
	for name, tc := range map[string]struct {
		before, after lease
		frozen        bool // the lease was not held all the time
		want          int
		epoch         int64
		discarded     float64
	}{
		"held":                        {lease{7, true}, lease{7, true}, false, 1, 7, 0},
		"not held":                    {lease{}, lease{}, false, 0, 0, 0},
		"lost meanwhile":              {lease{7, true}, lease{}, false, 0, 0, 1},
		"lost and taken back":         {lease{7, true}, lease{8, true}, false, 0, 0, 1},
		"taken while nobody asked it": {lease{}, lease{7, true}, false, 0, 0, 0},
		"out of hand for a while":     {lease{7, true}, lease{7, true}, true, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry, began, probed := prometheus.NewRegistry(), time.Now(), false
				w := startWith(t, scheduler.Config{
					Concurrency: 10, Registerer: registry,
					Lease: func(id string) (int64, bool) {
						if id != "a" {
							t.Errorf("asked for the lease of %q", id)
						}
						if probed {
							return tc.after.epoch, tc.after.ok
						}
						return tc.before.epoch, tc.before.ok
					},
					LeaseSince: func(id string, since time.Time) bool {
						if id != "a" || !since.Equal(began) {
							t.Errorf("asked for the lease of %q since %s", id, since)
						}
						return !tc.frozen
					},
				}, func(ctx context.Context, target probe.Target) probe.Result {
					probed = true
					return up(ctx, target)
				})
				e := endpoint("a")
				e.Schedule = "@daily"
				w.know(t, e)
				_, err := w.CheckNow(t.Context(), "a")
				if lost := errors.Is(err, scheduler.ErrLeaseLost); lost != (tc.want == 0) {
					t.Errorf("CheckNow: %v", err)
				}
				checks := w.of("a")
				if len(checks) != tc.want || len(checks) == 1 && checks[0].Epoch != tc.epoch {
					t.Errorf("recorded %+v, want %d of epoch %d", checks, tc.want, tc.epoch)
				}
				if probed != tc.before.ok {
					t.Errorf("probed: %t, want %t", probed, tc.before.ok)
				}
				if got := gathered(t, registry, "rollcall_checks_discarded_total"); got != tc.discarded {
					t.Errorf("%v checks discarded, want %v", got, tc.discarded)
				}
			})
		})
	}
}

func TestTheScheduleGoesOnWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, probes := time.Now(), 0
		w := startWith(t, scheduler.Config{
			Concurrency: 10,
			Lease:       func(string) (int64, bool) { return 1, time.Since(began) > 10*time.Minute },
		}, func(ctx context.Context, target probe.Target) probe.Result {
			probes++
			return up(ctx, target)
		})
		w.set(t, endpoint("a"))
		time.Sleep(20 * time.Minute)
		if got := len(w.of("a")); got != 10 || probes != 10 {
			t.Errorf("%d probes and %d checks, want one in each of the ten minutes with a lease", probes, got)
		}
	})
}
