package main

import (
	"context"
	"errors"
	"time"

	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// How often the service looks after itself.
const (
	// followEvery bounds how long a change made by another process (`rollcall endpoints add`) goes unseen. Changes made
	// through this process are seen at once.
	followEvery = 10 * time.Second
	pruneEvery  = 10 * time.Minute
	// pruneGroup keeps the transactions of pruning short, so that checks can be recorded in between.
	pruneGroup = 2000
	// upkeepPatience bounds each question to the database: on a connection that has gone silent, as after a failover, a
	// question without a bound would be the last of its kind.
	upkeepPatience = 30 * time.Second
)

// every calls do each period until ctx ends.
func every(ctx context.Context, period time.Duration, do func(context.Context)) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			do(ctx)
		}
	}
}

// logged turns an error into a line of the log: the next round tries again.
func (s *service) logged(what string, do func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("upkeep not done", "what", what, "error", err)
		}
	}
}

// follow makes the scheduler know exactly the endpoints that the store knows.
func (s *service) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	scheduled := s.scheduler.IDs() // before reading: one registered meanwhile must stay
	page, err := s.store.Endpoints(ctx, store.EndpointFilter{Limit: -1})
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(page.Items))
	for _, o := range page.Items {
		known[o.ID] = true
		s.schedule(o)
	}
	for _, id := range scheduled {
		if !known[id] {
			s.scheduler.Remove(id)
		}
	}
	return nil
}

func (s *service) schedule(o store.Overview) {
	if err := s.scheduler.Set(o.Endpoint, o.State); err != nil {
		s.log.Error("endpoint not scheduled", "endpoint", o.Slug, "error", err)
	}
}

// changed has the schedule follow a change of one endpoint at once. What goes wrong here is made good by follow.
func (s *service) changed(ctx context.Context, endpointID, slug string) {
	o, err := s.store.Endpoint(ctx, slug)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.scheduler.Remove(endpointID)
	case err != nil:
		s.log.Warn("read changed endpoint", "endpoint", slug, "error", err)
	default:
		s.schedule(o)
	}
}

// checkNow probes an endpoint at once and records the check.
func (s *service) checkNow(ctx context.Context, slug string) (store.Check, error) {
	o, err := s.store.Endpoint(ctx, slug)
	if err != nil {
		return store.Check{}, err
	}
	s.schedule(o)
	check, err := s.scheduler.CheckNow(ctx, o.ID)
	if errors.Is(err, scheduler.ErrUnknownEndpoint) {
		err = store.ErrNotFound
	}
	check.Slug = slug
	return check, err
}

// prune deletes checks that are older than they have to be kept.
func (s *service) prune(ctx context.Context) error {
	before := time.Now().Add(-s.cfg.retention)
	for {
		n, err := s.pruneGroup(ctx, before)
		if err != nil {
			return err
		}
		if n < pruneGroup {
			return nil
		}
	}
}

func (s *service) pruneGroup(ctx context.Context, before time.Time) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	return s.store.Prune(ctx, before, pruneGroup)
}

// registerDemo puts the demo's endpoints into the database, or points those of an earlier run at this one's servers.
func (s *service) registerDemo(ctx context.Context) error {
	for _, e := range s.demo.endpoints() {
		_, err := s.store.UpdateEndpoint(ctx, e.Slug, func(known *store.Endpoint) error {
			known.URL, known.Paused = e.URL, false
			return nil
		})
		if errors.Is(err, store.ErrNotFound) {
			_, err = s.store.CreateEndpoint(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pauseDemo pauses the demo's endpoints that an earlier run with --demo left in the database: their servers are gone.
func (s *service) pauseDemo(ctx context.Context) error {
	for _, place := range demoPlaces {
		o, err := s.store.Endpoint(ctx, place.slug)
		if errors.Is(err, store.ErrNotFound) || err == nil && o.Paused {
			continue
		}
		if err == nil {
			_, err = s.store.UpdateEndpoint(ctx, place.slug, func(e *store.Endpoint) error {
				e.Paused = true
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
