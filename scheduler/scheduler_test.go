package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// world is a scheduler with a world to probe: what an endpoint answers, how long it takes, and what was recorded.
type world struct {
	*scheduler.Scheduler
	answer func(ctx context.Context, t probe.Target) probe.Result

	mu      sync.Mutex
	checks  map[string][]store.Check
	states  map[string]store.State
	running int
	most    int
}

// start runs a scheduler in the bubble of the test and stops it at its end.
func start(t *testing.T, concurrency int, answer func(ctx context.Context, t probe.Target) probe.Result) *world {
	t.Helper()
	return startWith(t, scheduler.Config{Concurrency: concurrency}, answer)
}

// startWith is start with more to say.
func startWith(t *testing.T, cfg scheduler.Config, answer func(ctx context.Context, t probe.Target) probe.Result) *world {
	t.Helper()
	w := &world{answer: answer, checks: map[string][]store.Check{}, states: map[string]store.State{}}
	cfg.Location, cfg.Probe, cfg.Record = "here", w.probe, w.record
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	w.Scheduler = scheduler.New(cfg)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return w
}

func (w *world) probe(ctx context.Context, t probe.Target) probe.Result {
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	started := time.Now()
	r := w.answer(ctx, t)
	r.StartedAt, r.Duration = started, time.Since(started)
	w.mu.Lock()
	w.running--
	w.mu.Unlock()
	return r
}

func (w *world) record(_ context.Context, c store.Check) (store.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := store.Standing{Endpoint: store.NewEndpoint(), Places: []store.Place{{Location: c.Location, State: w.states[c.EndpointID]}}}
	store.Advance(&s, c, alerts.Rules(scheduler.Period), c.Result.StartedAt)
	w.states[c.EndpointID] = s.Places[0].State
	w.checks[c.EndpointID] = append(w.checks[c.EndpointID], c)
	return store.Outcome{Kept: true, State: s.Places[0].State}, nil
}

func (w *world) of(id string) []store.Check {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]store.Check(nil), w.checks[id]...)
}

// mostAtOnce returns how many probes were under way together at most.
func (w *world) mostAtOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// set registers an endpoint, or changes it, as somebody who wants to see it checked at once.
func (w *world) set(t *testing.T, e store.Endpoint) {
	t.Helper()
	w.know(t, e)
	w.Soon(e.ID)
}

// know tells of an endpoint without a wish to see it checked sooner than its schedule says.
func (w *world) know(t *testing.T, e store.Endpoint) {
	t.Helper()
	if err := w.Set(e, store.State{}); err != nil {
		t.Fatal(err)
	}
}

func endpoint(id string) store.Endpoint {
	e := store.NewEndpoint()
	e.ID, e.Slug, e.Name, e.URL, e.UpdatedAt = id, id, id, "https://"+id+".example/mcp", time.Now()
	return e
}

func up(context.Context, probe.Target) probe.Result {
	return probe.Result{Verdict: probe.Up, Kind: probe.KindMCP}
}

// hang takes all the time a target allows.
func hang(ctx context.Context, t probe.Target) probe.Result {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	<-ctx.Done()
	return probe.Result{Verdict: probe.Down, Failure: &probe.Failure{Class: probe.ClassTimeout}}
}

func TestEndpointSomebodyWaitsForIsProbedAtOnceAndThenOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, up)
		w.set(t, endpoint("a"))
		synctest.Wait()
		if got := len(w.of("a")); got != 1 {
			t.Fatalf("%d checks at once, want 1", got)
		}
		time.Sleep(72 * time.Hour)
		checks := w.of("a")
		if got, want := len(checks), 1+72*60; got != want {
			t.Errorf("%d checks in three days, want %d", got, want)
		}
		for i := 2; i < len(checks); i++ {
			if gap := checks[i].ScheduledAt.Sub(checks[i-1].ScheduledAt); gap != time.Minute {
				t.Fatalf("checks %d and %d are %s apart, want 1m", i-1, i, gap)
			}
		}
		if checks[0].Location != "here" {
			t.Errorf("location %q, want the one configured", checks[0].Location)
		}
	})
}

func TestKnownEndpointKeepsItsPhaseAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, up)
		if err := w.Set(endpoint("a"), store.State{Status: store.StatusUp, LastCheckAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := len(w.of("a")); got != 0 {
			t.Fatalf("%d checks at once of an endpoint that was checked before, want none", got)
		}
		time.Sleep(time.Minute)
		schedule, err := scheduler.ParseSchedule("@every 60s")
		if err != nil {
			t.Fatal(err)
		}
		checks := w.of("a")
		if len(checks) != 1 {
			t.Fatalf("%d checks in the first minute, want 1", len(checks))
		}
		if at := checks[0].ScheduledAt; !schedule.Next("a", at.Add(-time.Millisecond)).Equal(at) {
			t.Errorf("checked at %s, which is not the phase of its id", at)
		}
	})
}

func TestFailedCheckIsConfirmedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(context.Context, probe.Target) probe.Result {
			return probe.Result{Verdict: probe.Down, Failure: &probe.Failure{Class: probe.ClassConnect}}
		})
		w.set(t, endpoint("a"))
		time.Sleep(6 * time.Second)
		checks := w.of("a")
		if len(checks) < 2 {
			t.Fatalf("%d checks in six seconds of an endpoint that is down, want a second one to confirm the first", len(checks))
		}
		if gap := checks[1].ScheduledAt.Sub(checks[0].ScheduledAt); gap > 5*time.Second {
			t.Errorf("confirmed after %s, want confirm.after = 5s at most", gap)
		}
		time.Sleep(time.Hour)
		if got := len(w.of("a")); got > 2+61 {
			t.Errorf("%d checks in an hour of an endpoint known to be down, want one a minute", got)
		}
	})
}

func TestEndpointThatAsksForPeaceGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(context.Context, probe.Target) probe.Result {
			return probe.Result{Verdict: probe.Unknown, RetryAfter: 10 * time.Minute}
		})
		w.set(t, endpoint("a"))
		time.Sleep(time.Hour)
		if got := len(w.of("a")); got < 6 || got > 7 {
			t.Errorf("%d checks in an hour with Retry-After of ten minutes, want 6 or 7", got)
		}
	})
}

func TestRetryAfterCannotKeepUsAwayForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(context.Context, probe.Target) probe.Result {
			return probe.Result{Verdict: probe.Unknown, RetryAfter: 1000 * time.Hour}
		})
		w.set(t, endpoint("a"))
		time.Sleep(time.Hour)
		if got := len(w.of("a")); got < 4 {
			t.Errorf("%d checks in an hour, want one each quarter at least", got)
		}
	})
}

func TestOutageIsConfirmedSoonWhateverA503AsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(context.Context, probe.Target) probe.Result {
			return probe.Result{
				Verdict: probe.Down, RetryAfter: time.Hour, Failure: &probe.Failure{Class: probe.ClassHTTPStatus, Code: 503},
			}
		})
		w.set(t, endpoint("a"))
		time.Sleep(6 * time.Second)
		if got := len(w.of("a")); got < 2 {
			t.Errorf("%d checks in six seconds, want a second one to confirm the first", got)
		}
	})
}

func TestHangingEndpointsDelayNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 20, func(ctx context.Context, target probe.Target) probe.Result {
			if target.Method == "hang" {
				return hang(ctx, target)
			}
			return up(ctx, target)
		})
		for i := range 10 {
			e := endpoint(fmt.Sprintf("hang-%d", i))
			e.Kind, e.Request.Method = probe.KindJSONRPC, "hang"
			w.set(t, e)
		}
		for i := range 200 {
			w.set(t, endpoint(fmt.Sprintf("good-%d", i)))
		}
		time.Sleep(time.Hour)
		for i := range 200 {
			for _, c := range w.of(fmt.Sprintf("good-%d", i)) {
				if late := c.Result.StartedAt.Sub(c.ScheduledAt); late > 0 {
					t.Fatalf("a good endpoint was probed %s late", late)
				}
			}
			if got := len(w.of(fmt.Sprintf("good-%d", i))); got != 61 {
				t.Errorf("%d checks of a good endpoint in an hour, want 61", got)
			}
		}
	})
}

func TestNoMoreProbesAtOnceThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 3, hang)
		for i := range 20 {
			w.set(t, endpoint(fmt.Sprintf("e%d", i)))
		}
		time.Sleep(10 * time.Minute)
		if most := w.mostAtOnce(); most != 3 {
			t.Errorf("%d probes at once, want exactly the 3 allowed", most)
		}
		for i := range 20 {
			if len(w.of(fmt.Sprintf("e%d", i))) == 0 {
				t.Errorf("endpoint %d was never probed", i)
			}
		}
	})
}

func TestChangeTakesEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan string, 100)
		w := start(t, 10, func(_ context.Context, target probe.Target) probe.Result {
			seen <- target.URL
			return probe.Result{Verdict: probe.Up}
		})
		e := endpoint("a")
		w.set(t, e)
		synctest.Wait()
		<-seen
		time.Sleep(time.Second)
		e.URL, e.UpdatedAt = "https://elsewhere.example/mcp", time.Now()
		w.set(t, e)
		synctest.Wait()
		if got := <-seen; got != e.URL {
			t.Errorf("probed %s after the change, want %s", got, e.URL)
		}

		time.Sleep(time.Second)
		e.Paused, e.UpdatedAt = true, time.Now()
		w.set(t, e)
		before := len(w.of("a"))
		time.Sleep(time.Hour)
		if got := len(w.of("a")); got != before {
			t.Errorf("%d checks while paused", got-before)
		}

		e.Paused, e.UpdatedAt = false, time.Now()
		w.set(t, e)
		synctest.Wait()
		if got := len(w.of("a")); got != before+1 {
			t.Errorf("%d checks right after resuming, want 1", got-before)
		}

		w.Remove("a")
		time.Sleep(time.Hour)
		if got := len(w.of("a")); got != before+1 {
			t.Errorf("%d checks after removal", got-before-1)
		}
	})
}

func TestAnswerOfTheOldAddressIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(ctx context.Context, target probe.Target) probe.Result {
			if target.URL == "https://a.example/mcp" {
				return hang(ctx, target)
			}
			return probe.Result{Verdict: probe.Up}
		})
		e := endpoint("a")
		w.set(t, e)
		time.Sleep(time.Second)
		e.URL, e.UpdatedAt = "https://elsewhere.example/mcp", time.Now()
		w.set(t, e)
		time.Sleep(e.Timeout)
		checks := w.of("a")
		if len(checks) != 1 || checks[0].Result.Verdict != probe.Up {
			t.Errorf("checks %v; want one, of the address that is registered", checks)
		}
	})
}

func TestCheckNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, func(ctx context.Context, target probe.Target) probe.Result {
			time.Sleep(time.Second)
			return probe.Result{Verdict: probe.Up}
		})
		w.set(t, endpoint("a"))
		synctest.Wait() // the first probe is under way
		check, err := w.CheckNow(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if most := w.mostAtOnce(); most != 1 {
			t.Errorf("%d probes of one endpoint at once", most)
		}
		checks := w.of("a")
		if len(checks) != 2 || checks[1].ID != check.ID {
			t.Errorf("recorded %v, want the first check and then %s", checks, check.ID)
		}
		if _, err := w.CheckNow(t.Context(), "nobody"); !errors.Is(err, scheduler.ErrUnknownEndpoint) {
			t.Errorf("CheckNow of an unknown endpoint: %v", err)
		}
	})
}

func TestEraAndKindAreHandedToTheNextProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var targets []probe.Target
		w := start(t, 1, func(_ context.Context, target probe.Target) probe.Result {
			targets = append(targets, target)
			return probe.Result{Verdict: probe.Up, Kind: probe.KindMCP, Era: probe.EraLegacy}
		})
		w.set(t, endpoint("a"))
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if len(targets) < 2 {
			t.Fatalf("%d probes", len(targets))
		}
		if first := targets[0]; first.Kind != probe.KindAuto || first.Era != "" {
			t.Errorf("first probe with kind %q and era %q, want auto and none", first.Kind, first.Era)
		}
		if second := targets[1]; second.Kind != probe.KindMCP || second.Era != probe.EraLegacy {
			t.Errorf("second probe with kind %q and era %q, want what the first found", second.Kind, second.Era)
		}
	})
}

func TestPanicOfOursIsNotTheirOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := start(t, 1, func(context.Context, probe.Target) probe.Result {
			calls++
			if calls == 1 {
				panic("a bug")
			}
			return probe.Result{Verdict: probe.Up}
		})
		w.set(t, endpoint("a"))
		time.Sleep(61 * time.Second)
		synctest.Wait()
		checks := w.of("a")
		if calls < 2 || len(checks) != calls-1 {
			t.Errorf("%d probes, %d checks; want all recorded but the one that panicked", calls, len(checks))
		}
	})
}

func TestCheckNowIsFinishedBeforeRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{checks: map[string][]store.Check{}, states: map[string]store.State{}}
		w.answer = func(ctx context.Context, target probe.Target) probe.Result {
			if target.Method == "hang" {
				return hang(ctx, target)
			}
			time.Sleep(2 * time.Second)
			return probe.Result{Verdict: probe.Up}
		}
		w.Scheduler = scheduler.New(scheduler.Config{
			Location: "here", Concurrency: 10, Probe: w.probe, Record: w.record, Log: slog.New(slog.DiscardHandler),
		})
		known := store.State{Status: store.StatusUp, LastCheckAt: time.Now()}
		for _, id := range []string{"slow", "hanging"} {
			e := endpoint(id)
			e.Schedule = "@daily"
			if id == "hanging" {
				e.Kind, e.Request.Method = probe.KindJSONRPC, "hang"
			}
			if err := w.Set(e, known); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		answers := map[string]chan error{"slow": make(chan error, 1), "hanging": make(chan error, 1)}
		for id, answer := range answers {
			go func() {
				_, err := w.CheckNow(context.Background(), id) //nolint:usetesting // it is to outlive the stop
				answer <- err
			}()
		}
		time.Sleep(time.Second)
		stop()
		synctest.Wait()
		if _, err := w.CheckNow(t.Context(), "slow"); !errors.Is(err, scheduler.ErrStopping) {
			t.Errorf("CheckNow while stopping: %v, want ErrStopping", err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := <-answers["slow"]; err != nil || len(w.of("slow")) != 1 {
			t.Errorf("the check under way: %v, %d recorded; want it finished and recorded", err, len(w.of("slow")))
		}
		if err := <-answers["hanging"]; !errors.Is(err, scheduler.ErrStopping) || len(w.of("hanging")) != 0 {
			t.Errorf("the check that hangs: %v, %d recorded; want it cut short and not recorded", err, len(w.of("hanging")))
		}
	})
}

func TestShutdownRecordsWhatEndsInTimeAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{checks: map[string][]store.Check{}, states: map[string]store.State{}}
		w.answer = func(ctx context.Context, target probe.Target) probe.Result {
			if target.Method == "hang" {
				return hang(ctx, target)
			}
			time.Sleep(2 * time.Second)
			return probe.Result{Verdict: probe.Up}
		}
		w.Scheduler = scheduler.New(scheduler.Config{
			Location: "here", Concurrency: 10, Probe: w.probe, Record: w.record, Log: slog.New(slog.DiscardHandler),
		})
		hanging := endpoint("hanging")
		hanging.Kind, hanging.Request.Method = probe.KindJSONRPC, "hang"
		w.set(t, hanging)
		w.set(t, endpoint("slow"))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(time.Second)
		stopped := time.Now()
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(stopped); took > 6*time.Second {
			t.Errorf("Run ended %s after it was told to", took)
		}
		if got := len(w.of("slow")); got != 1 {
			t.Errorf("%d checks of the probe that ended in time, want 1", got)
		}
		if got := w.of("hanging"); len(got) != 0 {
			t.Errorf("a probe cut short by our shutdown was recorded: %v", got)
		}
	})
}

func TestAnEndpointThatIsRateLimitedIsAskedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		w := start(t, 10, func(context.Context, probe.Target) probe.Result {
			if open.Load() {
				return probe.Result{Verdict: probe.Up}
			}
			return probe.Result{Verdict: probe.Unknown, Failure: &probe.Failure{Class: probe.ClassRateLimited, Code: 429}}
		})
		w.set(t, endpoint("a"))
		time.Sleep(3 * time.Hour)
		checks := w.of("a")
		if len(checks) < 12 || len(checks) > 17 {
			t.Errorf("%d checks in three hours, want one each quarter after the first ones", len(checks))
		}
		if pause := checks[1].Result.StartedAt.Sub(checks[0].Result.StartedAt); pause < time.Minute {
			t.Errorf("second check after %s, want it no sooner than the schedule says", pause)
		}
		open.Store(true)
		time.Sleep(15 * time.Minute)
		before := len(w.of("a"))
		time.Sleep(time.Hour)
		if got := len(w.of("a")) - before; got < 59 {
			t.Errorf("%d checks in the hour after it let us in again, want one each minute", got)
		}
	})
}

func TestAProbeIsHandedItsPeersAndAskedForATranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{checks: map[string][]store.Check{}, states: map[string]store.State{}}
		var asked []probe.Target
		w.answer = func(_ context.Context, target probe.Target) probe.Result {
			asked = append(asked, target)
			return probe.Result{Verdict: probe.Up, Transcript: []probe.Message{{Step: "a", Body: "b"}}}
		}
		var selves []string
		w.Scheduler = scheduler.New(scheduler.Config{
			Location: "here", Concurrency: 1, Probe: w.probe, Record: w.record, Log: slog.New(slog.DiscardHandler),
			Peers: func(_ context.Context, self string, _ probe.Target) []probe.Head {
				selves = append(selves, self)
				return []probe.Head{{Endpoint: "b", Height: 7}}
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		e := endpoint("a")
		e.Schedule = "@every 30s"
		w.set(t, e)
		time.Sleep(15 * time.Minute)
		if c, err := w.CheckNow(t.Context(), "a"); err != nil || c.Transcript == nil || !c.Asked {
			t.Errorf("a good check that somebody asked for soon after another: %+v, %v; want it with its transcript", c, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if len(asked) < 30 || !asked[0].Transcript || len(asked[0].Peers) != 1 || selves[0] != "a" {
			t.Fatalf("%d targets, the first %+v, for %v: want a transcript asked for and peers", len(asked), asked[0], selves)
		}
		kept := 0
		for _, c := range w.of("a") {
			if c.Transcript != nil {
				kept++
			}
		}
		if kept != 3 {
			t.Errorf("%d of %d good checks have their transcript, want one every ten minutes and the one that was asked for", kept, len(asked))
		}
	})
}
