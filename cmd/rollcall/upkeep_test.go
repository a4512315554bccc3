package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// silent is a database behind a connection that nobody answers on, as after a failover.
type silent struct {
	store.Store
	asked int
}

func (s *silent) Roster(ctx context.Context) ([]store.Member, error) {
	s.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *silent) Tend(ctx context.Context, _ store.Retention) (int, error) {
	s.asked++
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestUpkeepGoesOnAfterAQuestionThatIsNeverAnswered(t *testing.T) {
	for name, upkeep := range map[string]func(*service) func(context.Context) error{
		"read endpoints": func(s *service) func(context.Context) error { return s.follow },
		"tend history":   func(s *service) func(context.Context) error { return s.tend },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, log := &silent{}, &strings.Builder{}
				s := &service{
					store: db,
					log:   slog.New(slog.NewTextHandler(log, nil)),
					scheduler: scheduler.New(scheduler.Config{
						Probe:  func(context.Context, probe.Target) probe.Result { return probe.Result{} },
						Record: func(context.Context, store.Check) (store.Outcome, error) { return store.Outcome{}, nil },
						Log:    slog.New(slog.DiscardHandler),
					}),
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := every(ctx, tendEvery, s.logged(name, upkeep(s))); err != nil {
					t.Fatal(err)
				}
				if got := strings.Count(log.String(), name); got != 5 || db.asked < 5 {
					t.Errorf("%d questions, %d lines in the log, want one more every ten minutes:\n%s", db.asked, got, log)
				}
			})
		})
	}
}

// keeping is a database that notes by what times history is let go of.
type keeping struct {
	store.Store
	asked []store.Retention
}

func (k *keeping) Tend(_ context.Context, r store.Retention) (int, error) {
	k.asked = append(k.asked, r)
	return 0, nil
}

func TestHistoryIsNotLetGoOfByAClockThatLeaptAhead(t *testing.T) {
	db := &keeping{}
	s := &service{store: db, log: slog.New(slog.DiscardHandler), cfg: config{retention: 30 * 24 * time.Hour}}
	now := time.Now()
	s.calendar.sure(now.Add(-30*365*24*time.Hour), time.Since(processBegan))
	if err := s.tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := db.asked[0]
	if got.Now.Before(now) || got.Checks.After(now.Add(-30*365*24*time.Hour)) || got.Hours.After(got.Checks) {
		t.Errorf("kept by %+v after a leap of thirty years, want room for today and nothing let go of by that", got)
	}
}

func TestALeapAheadIsBelievedAfterADay(t *testing.T) {
	const year = 365 * 24 * time.Hour
	type look struct{ wall, mono, want time.Duration } // since the beginning
	for name, looks := range map[string][]look{
		"a clock that is right":         {{0, 0, 0}, {time.Hour, time.Hour, time.Hour}, {year, year, year}},
		"a correction":                  {{0, 0, 0}, {time.Hour + time.Minute, time.Minute, time.Hour + time.Minute}},
		"years ahead for a moment":      {{0, 0, 0}, {year, time.Minute, time.Minute}, {time.Hour, time.Hour, time.Hour}},
		"ahead, and right after all":    {{0, 0, 0}, {year, time.Minute, time.Minute}, {year + 25*time.Hour, 25 * time.Hour, year + 25*time.Hour}},
		"ahead twice":                   {{0, 0, 0}, {year, 0, 0}, {2*year + 23*time.Hour, 23 * time.Hour, 23 * time.Hour}, {2*year + 46*time.Hour, 46 * time.Hour, 46 * time.Hour}},
		"set back":                      {{0, 0, 0}, {-year, time.Minute, -year}},
		"ahead, and set back in halves": {{0, 0, 0}, {2 * year, 0, 0}, {year, 0, 0}, {time.Hour, time.Hour, time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			var c calendar
			begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
			for i, l := range looks {
				if got := c.sure(begin.Add(l.wall), l.mono); !got.Equal(begin.Add(l.want)) {
					t.Errorf("look %d: it is %s for sure, want %s", i, got.Sub(begin), l.want)
				}
			}
		})
	}
}
