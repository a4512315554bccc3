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
