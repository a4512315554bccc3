package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// flaky is a database that can be away, slow, or unwilling to take single checks.
type flaky struct {
	mu      sync.Mutex
	away    bool
	takes   time.Duration
	refuses map[string]bool
	kept    []string
	heavy   int // kept ones that brought a transcript or a tool list
	groups  []int
	proves  map[string]store.Outcome // by id of the check
}

var errAway = errors.New("connection refused")

func (f *flaky) Record(ctx context.Context, checks []store.Check, _ store.Judge) ([]store.Outcome, error) {
	f.mu.Lock()
	takes := f.takes
	f.mu.Unlock()
	time.Sleep(takes)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return nil, errAway
	}
	for _, c := range checks {
		if f.refuses[c.ID] {
			return nil, fmt.Errorf("check %s cannot be encoded", c.ID)
		}
	}
	outcomes := make([]store.Outcome, len(checks))
	for i, c := range checks {
		f.kept = append(f.kept, c.ID)
		if c.Transcript != nil || c.Result.Contract != nil {
			f.heavy++
		}
		outcomes[i] = f.proves[c.ID]
		outcomes[i].Kept = true
	}
	f.groups = append(f.groups, len(checks))
	return outcomes, ctx.Err()
}

func (f *flaky) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *flaky) ids() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.kept)
}

func runRecorder(t *testing.T, db *flaky, keep int) (r *store.Recorder, stop func()) {
	t.Helper()
	return runRecorderWithLog(t, db, keep, slog.New(slog.DiscardHandler))
}

func runRecorderWithLog(t *testing.T, db *flaky, keep int, log *slog.Logger) (r *store.Recorder, stop func()) {
	t.Helper()
	r = store.NewRecorder(store.RecorderConfig{
		Store: db, Keep: keep, Log: log,
		Judge: store.Judge{Check: func(_ store.Endpoint, s store.State, _ store.Check) store.State { return s }},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return r, stop
}

func numbered(i int) store.Check {
	return store.Check{ID: fmt.Sprintf("chk_%04d", i), EndpointID: "ep_1", Result: probe.Result{Verdict: probe.Up}}
}

func numbers(from, to int) []string {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, numbered(i).ID)
	}
	return ids
}

func TestRecorderGroupsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{takes: 100 * time.Millisecond}
		r, _ := runRecorder(t, db, 0)
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				if out, err := r.Record(t.Context(), numbered(i)); err != nil || !out.Kept {
					t.Errorf("Record: %+v, %v", out, err)
				}
			})
		}
		all.Wait()
		if got := len(db.ids()); got != 300 {
			t.Errorf("%d checks kept, want 300", got)
		}
		if len(db.groups) > 3 {
			t.Errorf("%d transactions %v, want what waits to go together", len(db.groups), db.groups)
		}
	})
}

func TestALoneCheckWaitsForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := runRecorder(t, &flaky{takes: 5 * time.Millisecond}, 0)
		begin := time.Now()
		if _, err := r.Record(t.Context(), numbered(0)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 5*time.Millisecond {
			t.Errorf("recorded after %s, want no more than the database takes", took)
		}
	})
}

func TestRecorderKeepsChecksWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{away: true}
		r, _ := runRecorder(t, db, 0)
		for i := range 1000 {
			if _, err := r.Record(t.Context(), numbered(i)); !errors.Is(err, store.ErrWaiting) {
				t.Fatalf("Record while away: %v, want ErrWaiting", err)
			}
			time.Sleep(time.Second)
		}
		if got := r.Waiting(); got != 1000 {
			t.Errorf("%d wait, want 1000", got)
		}
		db.set(func() { db.away = false })
		time.Sleep(11 * time.Second)
		if r.Waiting() != 0 || !slices.Equal(db.ids(), numbers(0, 1000)) {
			t.Errorf("%d wait and %d are kept, want all kept in order", r.Waiting(), len(db.ids()))
		}
		if _, err := r.Record(t.Context(), numbered(1000)); err != nil {
			t.Errorf("Record after the return: %v", err)
		}
		if r.GivenUp() != 0 {
			t.Errorf("%d given up, want none", r.GivenUp())
		}
	})
}

func TestWhatWaitsIsLight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{away: true}
		r, _ := runRecorder(t, db, 0)
		heavy := func(i int) store.Check {
			c := numbered(i)
			c.Transcript, c.Result.Contract = store.Transcript{1}, &probe.Contract{Hash: "sha256:1"}
			return c
		}
		for i := range 3 {
			_, _ = r.Record(t.Context(), heavy(i)) // the first one is how the recorder learns that the database is away
		}
		db.set(func() { db.away = false })
		time.Sleep(11 * time.Second)
		if _, err := r.Record(t.Context(), heavy(3)); err != nil {
			t.Fatal(err)
		}
		if got := len(db.ids()); got != 4 || db.heavy != 2 {
			t.Errorf("%d kept, %d of them with all they had, want 4 and the 2 that did not wait for long", got, db.heavy)
		}
	})
}

func TestRecorderGivesUpTheOldestBeyondItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{away: true}
		r, _ := runRecorder(t, db, 10*store.FrameBytes(t, numbered(0)))
		for i := range 25 {
			_, _ = r.Record(t.Context(), numbered(i))
			synctest.Wait()
		}
		// The first one is in hand: it is how the recorder learns that the database is away.
		if r.Waiting() != 11 || r.GivenUp() != 14 {
			t.Errorf("%d wait, %d given up; want 11 and 14", r.Waiting(), r.GivenUp())
		}
		db.set(func() { db.away = false })
		time.Sleep(11 * time.Second)
		if got, want := db.ids(), append(numbers(0, 1), numbers(15, 25)...); !slices.Equal(got, want) {
			t.Errorf("kept %v, want the latest %v", got, want)
		}
	})
}

func TestOneCheckTheDatabaseRefusesHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{takes: time.Millisecond, refuses: map[string]bool{numbered(3).ID: true}}
		r, _ := runRecorder(t, db, 0)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { _, _ = r.Record(t.Context(), numbered(i)) })
		}
		all.Wait()
		// Alone, a refused check looks like a database that is away; its next neighbours prove that it is not.
		for i := 10; i < 13; i++ {
			_, _ = r.Record(t.Context(), numbered(i))
			time.Sleep(11 * time.Second)
		}
		if _, err := r.Record(t.Context(), numbered(13)); err != nil {
			t.Errorf("Record after the refused check was given up: %v", err)
		}
		if got := len(db.ids()); got != 13 {
			t.Errorf("%d kept, want the 13 good ones", got)
		}
		if r.GivenUp() != 1 {
			t.Errorf("%d given up, want the one that is refused", r.GivenUp())
		}
	})
}

func TestRecorderWritesWhatWaitsWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{away: true}
		r, stop := runRecorder(t, db, 0)
		for i := range 5 {
			_, _ = r.Record(t.Context(), numbered(i))
		}
		db.set(func() { db.away = false })
		stop()
		if got, want := db.ids(), numbers(0, 5); !slices.Equal(got, want) {
			t.Errorf("kept %v after the stop, want %v", got, want)
		}
	})
}

func TestRecorderCountsWhatItLosesWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{away: true}
		r, stop := runRecorder(t, db, 0)
		_, _ = r.Record(t.Context(), numbered(0))
		stop()
		if r.GivenUp() != 1 {
			t.Errorf("%d given up, want 1", r.GivenUp())
		}
	})
}

// An outage that began while the database was away is proved when the backlog is written, and nobody waits for that.
func TestIncidentsProvedFromTheBacklogAreInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		db := &flaky{away: true, proves: map[string]store.Outcome{
			numbered(1).ID: {Slug: "weather", Opened: "inc_1"},
			numbered(2).ID: {Slug: "weather", Resolved: "inc_1"},
		}}
		r, stop := runRecorderWithLog(t, db, 0, slog.New(slog.NewTextHandler(&text, nil)))
		for i := range 3 {
			c := numbered(i)
			c.Result.Failure = &probe.Failure{Class: probe.ClassTimeout}
			if _, err := r.Record(t.Context(), c); !errors.Is(err, store.ErrWaiting) {
				t.Errorf("Record while away: %v, want ErrWaiting", err)
			}
		}
		db.set(func() { db.away = false })
		time.Sleep(11 * time.Second)
		stop()
		for _, line := range []string{
			`level=WARN msg="incident opened" endpoint=weather incident=inc_1 class=timeout`,
			`level=INFO msg="incident resolved" endpoint=weather incident=inc_1`,
		} {
			if got := strings.Count(text.String(), line); got != 1 {
				t.Errorf("%d times %q in the log, want once:\n%s", got, line, text.String())
			}
		}
	})
}

func TestNobodyWaitsLongForADatabaseThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{takes: 9 * time.Second}
		r, stop := runRecorder(t, db, 0)
		var all sync.WaitGroup
		began := time.Now()
		for i := range 10 {
			time.Sleep(time.Millisecond)
			all.Go(func() {
				if _, err := r.Record(t.Context(), numbered(i)); !errors.Is(err, store.ErrWaiting) {
					t.Errorf("check %d: %v, want that it waits", i, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("somebody waited %s", took)
		}
		asked := time.Now()
		if _, err := r.Record(t.Context(), numbered(10)); !errors.Is(err, store.ErrWaiting) || time.Since(asked) > 0 {
			t.Errorf("one that came later was told %v after %s, want at once that it waits", err, time.Since(asked))
		}
		if got := r.Stats(); got.Waiting != 11 || !got.AwaySince.IsZero() {
			t.Errorf("%+v, want 11 that wait for a database that is not away", got)
		}
		db.set(func() { db.takes = 0 })
		time.Sleep(10 * time.Second)
		if _, err := r.Record(t.Context(), numbered(11)); err != nil {
			t.Errorf("once it answers: %v", err)
		}
		stop()
		if diff := cmp.Diff(db.ids(), numbers(0, 12)); diff != "" {
			t.Errorf("kept (-got +want):\n%s", diff)
		}
		if got := r.Stats(); got.Waiting != 0 || got.GivenUp != 0 {
			t.Errorf("%+v, want nothing that waits", got)
		}
	})
}
