//go:build unix

package alerts_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/sqlite"
)

// A child is this test program again, as a service that watches one endpoint and delivers what follows, until it is killed. What
// it is to do stands in this variable, as the JSON of a plan.
const childPlan = "ROLLCALL_TEST_KILL"

// plan is what a child is to live through.
type plan struct {
	Driver, Database string // "sqlite" and a path, or "postgres" and a URL
	Slug             string
	Began            time.Time // of the first check
	Patient          bool      // waits until all channels have heard of the outage before the next check finds it over
	Death            string    // the place at which it kills itself; empty: it does not
	Nth              int       // when it comes there so often
}

// story is what the checks find, a minute after the other. With the confirmed one an hour begins, so that the one before is added
// up in the same transaction.
var story = []probe.Verdict{probe.Up, probe.Down, probe.Down, probe.Up}

const confirmed = 2 // the check of the story that opens the incident

func init() {
	text := os.Getenv(childPlan)
	if text == "" {
		return
	}
	var p plan
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.live()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// live says "ready", waits for a line, and goes on with the story from where the database has it. In the end, when nothing waits to
// be told, it prints how often it came by each place.
func (p plan) live() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // should nobody be left who waits for it
	defer cancel()
	s := &mortal{plan: p, seen: map[string]int{}, news: make(chan struct{}, 1)}
	if p.Driver == "sqlite" {
		hookSQLite(s.comeBy)
	}
	db, err := openAny(ctx, p.Driver, p.Database)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // what was committed stays
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	s.Store = db
	wake := make(chan struct{}, 1)
	d := alerts.New(alerts.Config{
		Store:       s,
		Senders:     map[store.ChannelType]alerts.Sender{store.ChannelSlack: newSlack(), store.ChannelWebhook: newWebhook()},
		Log:         slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Wake:        wake,
		Point:       s.comeBy,
		Pace:        func(store.ChannelType) time.Duration { return 0 },
		Poll:        50 * time.Millisecond,
		SendTimeout: time.Second,
		Backoff:     20 * time.Millisecond,
		MaxBackoff:  50 * time.Millisecond,
	})
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- d.Run(running) }()
	err = s.watch(ctx, wake)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.NewEncoder(os.Stdout).Encode(s.seen)
}

func openAny(ctx context.Context, driver, database string) (store.Store, error) {
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		return nil, err
	}
	if driver == "postgres" {
		return postgres.Open(ctx, database, sealer)
	}
	return sqlite.Open(ctx, database, sealer)
}

// mortal is the store of a process that is to be killed.
type mortal struct {
	store.Store
	plan plan
	news chan struct{} // something was settled

	mu   sync.Mutex
	seen map[string]int // by place
}

// comeBy is called at each place, and is the last thing that the process does at the one that its plan names.
func (s *mortal) comeBy(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[place]++
	if place == s.plan.Death && s.seen[place] == s.plan.Nth {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// watch records the rest of the story and returns when all of it was told.
func (s *mortal) watch(ctx context.Context, wake chan<- struct{}) error {
	o, err := s.Endpoint(ctx, s.plan.Slug)
	for ; err != nil; o, err = s.Endpoint(ctx, s.plan.Slug) {
		if err := s.pause(ctx, err); err != nil {
			return err
		}
	}
	for i, verdict := range story {
		at := s.plan.Began.Add(time.Duration(i) * time.Minute)
		if len(o.Places) > 0 && !at.After(o.Places[0].State.LastCheckAt) {
			continue
		}
		c := checkAt(at, verdict, probe.ClassConnect)
		if err := s.record(ctx, store.NewCheck(o.ID, "default", at, c.Result)); err != nil {
			return err
		}
		select {
		case wake <- struct{}{}:
		default:
		}
		if i == confirmed && s.plan.Patient {
			if err := s.allTold(ctx); err != nil {
				return err
			}
		}
	}
	return s.allTold(ctx)
}

// record writes a check, again for as long as the database is away.
func (s *mortal) record(ctx context.Context, c store.Check) error {
	for {
		s.comeBy("recording")
		_, err := s.Record(s.asked(ctx), []store.Check{c}, rules)
		if err == nil {
			s.comeBy("recorded")
			return nil
		}
		if err := s.pause(ctx, err); err != nil {
			return err
		}
	}
}

func (s *mortal) allTold(ctx context.Context) error {
	for {
		n, err := s.PendingNotices(ctx)
		if n == 0 && err == nil {
			return nil
		}
		if err := s.pause(ctx, err); err != nil {
			return err
		}
	}
}

// pause returns when it is worth another look, or err, the reason for it, when there is no point in one.
func (s *mortal) pause(ctx context.Context, err error) error {
	if err != nil && !store.IsFailure(err) {
		return err
	}
	select {
	case <-s.news:
	case <-time.After(30 * time.Millisecond):
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return nil
}

// LeaseNotices comes by a place when there is something to lease.
func (s *mortal) LeaseNotices(ctx context.Context, holder string, now time.Time, lease time.Duration, limit int) ([]store.Delivery, error) {
	if n, err := s.PendingNotices(ctx); n == 0 || err != nil {
		return nil, err
	}
	s.comeBy("leasing")
	return s.Store.LeaseNotices(s.asked(ctx), holder, now, lease, limit)
}

// SettleNotice implements store.Store. The dispatcher comes by on both sides of it.
func (s *mortal) SettleNotice(ctx context.Context, how store.Settlement) error {
	err := s.Store.SettleNotice(s.asked(ctx), how)
	select {
	case s.news <- struct{}{}:
	default:
	}
	return err
}

// asked returns a context with which SQLite comes by a place at each step. Statements to Postgres are seen by the line.
func (s *mortal) asked(ctx context.Context) context.Context {
	if s.plan.Driver != "sqlite" {
		return ctx
	}
	return askedContext{ctx, func() {
		if station, step, ok := whereInSQLite(); ok {
			s.comeBy(station + ": " + step)
		}
	}}
}
