package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// watchful counts what is under way and says when a bound is broken.
type watchful struct {
	t       *testing.T
	perHost int

	mu      sync.Mutex
	random  *rand.Rand
	host    map[string]int
	id      map[string]int
	kept    map[string]bool
	lastFor map[string]time.Time
}

func (w *watchful) probe(ctx context.Context, target probe.Target) probe.Result {
	u, err := url.Parse(target.URL)
	if err != nil {
		w.t.Error(err)
		return probe.Result{}
	}
	id := u.Query().Get("id")
	w.mu.Lock()
	w.host[u.Host]++
	w.id[id]++
	if w.host[u.Host] > w.perHost {
		w.t.Errorf("%d probes of %s at once, want %d at most", w.host[u.Host], u.Host, w.perHost)
	}
	if w.id[id] > 1 {
		w.t.Errorf("%d probes of %s at once", w.id[id], id)
	}
	takes := time.Duration(1+w.random.IntN(1500)) * time.Millisecond
	w.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.host[u.Host]--
	w.id[id]--
	if takes%7 == 0 {
		return probe.Result{Verdict: probe.Down, Failure: &probe.Failure{Class: probe.ClassHTTPStatus}}
	}
	return probe.Result{Verdict: probe.Up}
}

func (w *watchful) record(_ context.Context, c store.Check) (store.Outcome, error) {
	w.mu.Lock()
	takes := time.Duration(w.random.IntN(50)) * time.Millisecond
	if w.kept[c.ID] {
		w.t.Errorf("check %s was recorded twice", c.ID)
	}
	w.kept[c.ID] = true
	w.lastFor[c.EndpointID] = time.Now()
	w.mu.Unlock()
	time.Sleep(takes)
	out := store.Outcome{Kept: true}
	if c.Result.Verdict == probe.Down {
		out.State.Streak.Count = 1
	}
	return out, nil
}

// TestWhateverHappensNobodyIsForgotten has endpoints come, go, change, move, pause and be asked for in every order, while
// limits change and the clock jumps: no bound is broken meanwhile, and everybody has his turn when it is over.
func TestWhateverHappensNobodyIsForgotten(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { everything(t, seed) })
		})
	}
}

func everything(t *testing.T, seed uint64) {
	const endpoints = 30
	random, wall, registry := rand.New(rand.NewPCG(seed, 1)), &jumping{}, prometheus.NewRegistry()
	w := &watchful{
		t: t, perHost: 1 + int(seed%3), random: rand.New(rand.NewPCG(seed, 2)),
		host: map[string]int{}, id: map[string]int{}, kept: map[string]bool{}, lastFor: map[string]time.Time{},
	}
	s := scheduler.New(scheduler.Config{
		Location: "here", Concurrency: 3, PerHost: w.perHost, Probe: w.probe, Record: w.record, Now: wall.now,
		Log: slog.New(slog.DiscardHandler), Registerer: registry,
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	version := time.Now()
	set := func(id string, paused bool) {
		version = version.Add(time.Second)
		e := at(id, fmt.Sprintf("https://host-%d.example/?id=%s", random.IntN(4), id))
		e.Schedule, e.Paused, e.UpdatedAt = "@every 30s", paused, version
		if err := s.Set(e, store.State{}); err != nil {
			t.Error(err)
		}
	}
	var others sync.WaitGroup
	for range 1500 {
		id := fmt.Sprintf("e%d", random.IntN(endpoints))
		switch random.IntN(12) {
		case 0, 1, 2:
			set(id, false)
		case 3:
			set(id, true)
		case 4, 5:
			s.Soon(id)
		case 6:
			s.Remove(id)
		case 7:
			others.Go(func() { _ = s.Drain(ctx, []string{id, "e1"}) }) // ends with the test at the latest
		case 8, 9:
			patience, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Millisecond)
			others.Go(func() {
				defer cancel()
				_, _ = s.CheckNow(patience, id) // what comes of it is seen by what is recorded
			})
		case 10:
			s.SetLimit(1 + random.IntN(5))
		case 11:
			if random.IntN(10) == 0 {
				wall.jump(time.Duration(random.IntN(7200)-3600) * time.Second)
			}
		}
		if random.IntN(3) > 0 {
			time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
		}
	}
	s.SetLimit(3)
	for i := range endpoints {
		set(fmt.Sprintf("e%d", i), false)
	}
	time.Sleep(5 * time.Minute)
	w.mu.Lock()
	for i := range endpoints {
		id := fmt.Sprintf("e%d", i)
		if ago := time.Since(w.lastFor[id]); ago > 90*time.Second {
			t.Errorf("%s was last checked %s ago", id, ago)
		}
	}
	w.mu.Unlock()
	for _, id := range s.IDs() {
		s.Remove(id)
	}
	time.Sleep(time.Minute)
	for _, gauge := range []string{
		"rollcall_endpoints_scheduled", "rollcall_scheduler_queue", "rollcall_scheduler_waiting_for_host", "rollcall_probes_running",
	} {
		if got := gathered(t, registry, gauge); got != 0 {
			t.Errorf("%s is %v after everything was removed", gauge, got)
		}
	}
	if hosts := s.Hosts(); hosts != 0 {
		t.Errorf("%d hosts are known after everything was removed", hosts)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	others.Wait()
}
