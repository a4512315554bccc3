package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// How often the service looks after itself.
const (
	// followEvery bounds how long a change made by another process (`rollcall endpoints add`) goes unseen. Changes made
	// through this process are seen at once.
	followEvery = 10 * time.Second
	// freshFor is how long an endpoint is new that another process registered, and maxFresh how many of them are probed at once.
	freshFor = time.Minute
	maxFresh = 50
	// followGroup is how many endpoints are read at once.
	followGroup = 500
	tendEvery   = 10 * time.Minute
	// tendPatience bounds the letting go of history, which is long only where it was put off.
	tendPatience = 5 * time.Minute
	// upkeepPatience bounds each question to the database: on a connection that has gone silent, as after a failover, a
	// question without a bound would be the last of its kind.
	upkeepPatience = 30 * time.Second
	// warnUpkeepEvery is how often the log is told of upkeep that goes on failing.
	warnUpkeepEvery = time.Minute
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

// logged turns an error into a line of the log, one each warnUpkeepEvery at most: the next round tries again.
func (s *service) logged(what string, do func(context.Context) error) func(context.Context) {
	var told time.Time
	return func(ctx context.Context) {
		err := do(ctx)
		if err == nil {
			told = time.Time{}
			return
		}
		if ctx.Err() == nil && time.Since(told) >= warnUpkeepEvery {
			told = time.Now()
			s.log.Warn("upkeep not done", "what", what, "error", err)
		}
	}
}

// follow makes the scheduler know exactly the endpoints that this instance has to probe, as the store knows them. It reads
// those that it has not seen in their present form.
func (s *service) follow(ctx context.Context) error {
	s.following.Lock()
	defer s.following.Unlock()
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	scheduled := s.scheduler.IDs() // before reading: one registered meanwhile must stay
	roster, err := s.store.Roster(ctx)
	if err != nil {
		return err
	}
	ours := make(map[string]bool, len(scheduled))
	var unseen []string
	for _, m := range roster {
		if !s.holds(m.ID) {
			continue
		}
		ours[m.ID] = true
		if at, seen := s.seen[m.ID]; !seen || !at.Equal(m.UpdatedAt) {
			unseen = append(unseen, m.ID)
		}
	}
	for _, id := range scheduled {
		if !ours[id] {
			s.scheduler.Remove(id)
			s.watched.remove(id)
		}
	}
	for id := range s.seen {
		if !ours[id] {
			delete(s.seen, id)
		}
	}
	var fresh []string
	for group := range slices.Chunk(unseen, followGroup) {
		page, err := s.store.Endpoints(ctx, store.EndpointFilter{IDs: group, Limit: -1})
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			s.schedule(o)
			s.seen[o.ID] = o.UpdatedAt
			if s.isFresh(o) {
				fresh = append(fresh, o.ID)
			}
		}
	}
	if len(fresh) <= maxFresh { // whoever registered a few wants to see them; many keep to the schedule
		for _, id := range fresh {
			s.scheduler.Soon(id)
		}
	}
	return nil
}

// isFresh reports whether an endpoint was just registered and nobody has probed it: the past of the demo's is invented.
func (s *service) isFresh(o store.Overview) bool {
	invented := s.demo != nil && slices.ContainsFunc(demoPlaces, func(p demoPlace) bool { return p.slug == o.Slug })
	return time.Since(o.CreatedAt) < freshFor && (len(o.Places) == 0 || invented)
}

// holds reports whether an endpoint is this instance's to probe.
func (s *service) holds(endpointID string) bool { return s.leases == nil || s.leases.Holds(endpointID) }

// drain ends the probing of the endpoints of shards, which another instance is to have.
func (s *service) drain(ctx context.Context, shards []int) {
	leaving := s.forget(shards)
	if err := s.scheduler.Drain(ctx, leaving); err != nil {
		s.log.Warn("endpoints handed over while they were being probed", "error", err)
	}
}

// forget returns the endpoints of shards that are scheduled, and has follow read them anew should they come back: another
// instance may be the last to have seen them.
func (s *service) forget(shards []int) (scheduled []string) {
	s.following.Lock()
	defer s.following.Unlock()
	for _, id := range s.scheduler.IDs() {
		if slices.Contains(shards, store.ShardOf(id)) {
			scheduled = append(scheduled, id)
			delete(s.seen, id)
		}
	}
	return scheduled
}

// schedule has an endpoint probed from here, or no longer.
func (s *service) schedule(o store.Overview) {
	if !o.ProbedFrom(s.cfg.location) {
		s.scheduler.Remove(o.ID)
		s.watched.remove(o.ID)
		return
	}
	s.watched.set(o.Endpoint)
	state := o.State
	for _, p := range o.Places {
		if p.Location == s.cfg.location {
			state = p.State
		}
	}
	if err := s.scheduler.Set(o.Endpoint, state); err != nil {
		s.log.Error("endpoint not scheduled", "endpoint", o.Slug, "error", err)
	}
}

// changed has the schedule follow a change of one endpoint at once. What goes wrong here is made good by follow.
func (s *service) changed(ctx context.Context, endpointID, slug string) {
	o, err := s.store.Endpoint(ctx, slug)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.scheduler.Remove(endpointID)
		s.watched.remove(endpointID)
	case err != nil:
		s.log.Warn("read changed endpoint", "endpoint", slug, "error", err)
	case s.holds(o.ID):
		s.schedule(o)
		s.scheduler.Soon(o.ID)
	}
}

// checkNow probes an endpoint at once and records the check. One that another instance has the lease of is probed beside it.
func (s *service) checkNow(ctx context.Context, slug string) (store.Check, error) {
	o, err := s.store.Endpoint(ctx, slug)
	if err != nil {
		return store.Check{}, err
	}
	if !o.ProbedFrom(s.cfg.location) {
		return store.Check{}, store.Conflict{Field: "locations", Message: "leave out " + s.cfg.location + ", where this instance is: ask one that is elsewhere"}
	}
	var check store.Check
	if s.holds(o.ID) {
		s.schedule(o)
		check, err = s.scheduler.CheckNow(ctx, o.ID)
	} else {
		check, err = s.checkBeside(ctx, o)
	}
	check.Slug = slug
	switch {
	case errors.Is(err, scheduler.ErrUnknownEndpoint):
		err = store.ErrNotFound
	case errors.Is(err, scheduler.ErrLeaseLost), errors.Is(err, scheduler.ErrChanged), errors.Is(err, scheduler.ErrStoodStill),
		errors.Is(err, scheduler.ErrUndecided):
		err = store.Conflict{Field: "endpoint", Message: "was changed, handed over or paused with us while it was probed, and nothing was recorded: ask again"}
	}
	return check, err
}

func (s *service) checkBeside(ctx context.Context, o store.Overview) (store.Check, error) {
	due := time.Now()
	t := o.Target(o.State)
	t.Transcript = true
	t.Peers = s.chains.peers(ctx, o.Name, t)
	check := store.NewCheck(o.ID, s.cfg.location, due, s.ask(ctx, t))
	if err := context.Cause(ctx); err != nil {
		return store.Check{}, err
	}
	_, err := s.recorder.Record(context.WithoutCancel(ctx), check)
	return check, err
}

// tend lets go of history that is older than it has to be kept, and makes room for what is to come.
func (s *service) tend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tendPatience)
	defer cancel()
	now := time.Now()
	sure := s.calendar.sure(now, time.Since(processBegan))
	gone, err := s.store.Tend(ctx, store.Retention{
		Now: now, Checks: sure.Add(-s.cfg.retention), Hours: sure.Add(-store.HoursKept), Audit: sure.Add(-store.AuditKept),
	})
	if gone > 0 {
		s.log.Info("history let go of", "partitions_or_checks", gone)
	}
	return err
}

// processBegan is when this process did, for its monotonic reading.
var processBegan = time.Now()

// calendar says what time it is for sure. What is let go of by a clock that is years ahead for a minute is gone for good, so a
// leap ahead is believed after a day in which the clock was not set back.
type calendar struct {
	wall  time.Time     // at the last look, by the clock on the wall; zero before the first
	mono  time.Duration // at the last look, since the process began
	ahead time.Duration // how much of what the clock says is not believed yet
	since time.Duration // when it went ahead last
}

const (
	// leapOver is by how much the clock may go ahead of the time that passed and be believed at once.
	leapOver = time.Hour
	// leapBelieved is when a clock that went ahead is right after all: the machine was asleep, or the clock wrong before.
	leapBelieved = 24 * time.Hour
)

// sure returns the time by which history may be let go of: wall is what the clock says, mono how long the process has run.
func (c *calendar) sure(wall time.Time, mono time.Duration) time.Time {
	wall = wall.Round(0)
	if !c.wall.IsZero() {
		c.leap(wall.Sub(c.wall)-(mono-c.mono), mono)
	}
	c.wall, c.mono = wall, mono
	if mono-c.since >= leapBelieved {
		c.ahead = 0
	}
	return wall.Add(-c.ahead)
}

// leap notes by how much the clock went ahead of the time that passed, or fell behind.
func (c *calendar) leap(by, mono time.Duration) {
	switch {
	case by > leapOver:
		c.ahead, c.since = c.ahead+by, mono
	case by < 0:
		c.ahead = max(0, c.ahead+by)
	}
}

// registerDemo puts the demo's endpoints into the database, or points those of an earlier run at this one's servers. Where there was no
// endpoint at all in a database of its own, they come with an invented past.
func (s *service) registerDemo(ctx context.Context) error {
	before, err := s.store.Roster(ctx)
	if err != nil {
		return err
	}
	if err := s.enrollDemo(ctx); err != nil {
		return err
	}
	if _, shared := s.store.(store.Leaser); shared || len(before) > 0 {
		return nil
	}
	told, err := s.store.Subscriptions(ctx, store.SubscriptionFilter{Limit: 1})
	if err != nil || len(told.Items) > 0 { // nobody is told of outages that never were
		return err
	}
	began := time.Now()
	checks, err := s.demo.invent(ctx, s.store, s.cfg.location, alerts.Rules(scheduler.Period), began)
	if err != nil {
		return err
	}
	s.log.Info("the demo's past is invented: none of its checks up to this moment was made", "days", int(demoPast/aDay), "checks", checks, "took", time.Since(began))
	return nil
}

func (s *service) enrollDemo(ctx context.Context) error {
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
