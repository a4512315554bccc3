package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

// objectivesEvery is how often budgets are looked at: often enough for their shortest window, which is five minutes.
const objectivesEvery = time.Minute

// watched are the endpoints of this instance whose objectives somebody wants to hear of.
type watched struct {
	mu        sync.Mutex
	endpoints map[string]store.Endpoint // guarded by mu: by id
}

func (w *watched) set(e store.Endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tells := func(o store.Objective) bool { return o.Notify }
	if e.Paused || !slices.ContainsFunc(e.Objectives, tells) {
		delete(w.endpoints, e.ID)
		return
	}
	if w.endpoints == nil {
		w.endpoints = map[string]store.Endpoint{}
	}
	w.endpoints[e.ID] = e
}

func (w *watched) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.endpoints, id)
}

func (w *watched) all() []store.Endpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.endpoints))
}

// judgeObjectives opens an incident where a budget burns too fast, and ends it where it no longer does. It asks the database for
// the checks of the last hours, of the endpoints that have objectives only.
func (s *service) judgeObjectives(ctx context.Context) error {
	endpoints := s.watched.all()
	open, err := s.openObjectives(ctx)
	if err != nil {
		return err
	}
	var errs []error
	wanted := map[string]bool{}
	for _, e := range endpoints {
		for _, o := range e.Objectives {
			if !o.Notify {
				continue
			}
			wanted[store.SubjectOfObjective(e.ID, o.Name)] = true
			errs = append(errs, s.judgeObjective(ctx, e, o, open[store.SubjectOfObjective(e.ID, o.Name)]))
		}
	}
	for subject, i := range open { // of objectives that are no more
		if !wanted[subject] && s.holds(i.EndpointID) {
			errs = append(errs, s.clear(ctx, subject, store.ResolutionManual, "the objective is gone"))
		}
	}
	return errors.Join(errs...)
}

// openObjectives returns the open incidents about objectives by subject.
func (s *service) openObjectives(ctx context.Context) (map[string]store.Incident, error) {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	open := map[string]store.Incident{}
	f := store.IncidentFilter{Status: store.IncidentOpen, Kinds: []store.IncidentKind{store.IncidentObjective}, Limit: store.MaxLimit}
	for {
		page, err := s.store.Incidents(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			open[i.Subject] = i
		}
		if page.Next == "" {
			return open, nil
		}
		f.Cursor = page.Next
	}
}

func (s *service) judgeObjective(ctx context.Context, e store.Endpoint, o store.Objective, open store.Incident) error {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	now := time.Now()
	tally, failed := s.tallies(ctx, e, o, now)
	fast, slow := alerts.Burning(o, tally)
	if err := failed(); err != nil {
		return err
	}
	switch {
	case open.ID == "" && (fast || slow) && !s.planner.maintained(e.ID, now):
		window := 6 * time.Hour
		if fast {
			window = time.Hour
		}
		i := alerts.ObjectiveIncident(e, o, alerts.SpendingOf(o, tally(window)).Rate(), fast, now)
		_, opened, err := s.store.Raise(ctx, i, "", i.Cause.Message, e.Channels)
		wake(s.noticed)(opened)
		return err
	case open.ID != "" && !fast && !slow:
		return s.clear(ctx, open.Subject, store.ResolutionRecovered, "")
	}
	return nil
}

// tallies returns what adds up the checks of an endpoint until now, each stretch once, and the error met meanwhile.
func (s *service) tallies(ctx context.Context, e store.Endpoint, o store.Objective, now time.Time) (tally func(time.Duration) store.Tally, failed func() error) {
	var err error
	known := map[time.Duration]store.Tally{}
	tally = func(over time.Duration) store.Tally {
		t, ok := known[over]
		if !ok && err == nil {
			t, err = s.store.Tally(ctx, e.ID, now.Add(-over), o.Under)
			known[over] = t
		}
		return t
	}
	return tally, func() error { return err }
}

// clear ends the incident of a subject; that somebody else did is fine.
func (s *service) clear(ctx context.Context, subject string, how store.Resolution, text string) error {
	_, err := s.store.Clear(ctx, subject, time.Now(), how, text)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	wake(s.noticed)(err == nil)
	return err
}

// fares remembers for a minute how endpoints fare against their objectives: badges, which anybody asks for, show it.
type fares struct {
	mu    sync.Mutex
	known map[string]fare // guarded by mu: by endpoint and objective
}

type fare struct {
	state api.ObjectiveState
	at    time.Time
}

// Bounds of what is remembered.
const (
	fareFor  = time.Minute
	maxFares = 10_000
)

func (f *fares) get(e store.Endpoint, o store.Objective, now time.Time) (api.ObjectiveState, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[store.SubjectOfObjective(e.ID, o.Name)]
	return known.state, ok && now.Sub(known.at) < fareFor && known.state.Objective == o
}

func (f *fares) put(e store.Endpoint, state api.ObjectiveState, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxFares {
		f.known = map[string]fare{}
	}
	f.known[store.SubjectOfObjective(e.ID, state.Objective.Name)] = fare{state, now}
}

// objectives says how an endpoint fares against each of its objectives, as of a minute ago at most.
func (s *service) objectives(ctx context.Context, e store.Endpoint) ([]api.ObjectiveState, error) {
	now := time.Now()
	states := make([]api.ObjectiveState, 0, len(e.Objectives))
	for _, o := range e.Objectives {
		state, known := s.fares.get(e, o, now)
		if !known {
			var err error
			if state, err = s.fareOf(ctx, e, o, now); err != nil {
				return nil, err
			}
			s.fares.put(e, state, now)
		}
		states = append(states, state)
	}
	return states, nil
}

func (s *service) fareOf(ctx context.Context, e store.Endpoint, o store.Objective, now time.Time) (api.ObjectiveState, error) {
	grain := store.Daily
	if o.Days <= 7 {
		grain = store.Hourly
	}
	state := api.ObjectiveState{Objective: o, Burn: map[string]float64{}}
	rollups, err := s.store.Uptime(ctx, e.ID, grain, now.AddDate(0, 0, -o.Days), now)
	if err != nil {
		return state, err
	}
	spent, err := alerts.Budget(o, rollups, now)
	if err != nil {
		return state, err
	}
	if attained, ok := spent.Attained(); ok {
		left, _ := spent.Left()
		state.Attained, state.BudgetLeft = &attained, &left
	}
	tally, failed := s.tallies(ctx, e, o, now)
	for name, over := range burnWindows {
		state.Burn[name] = alerts.SpendingOf(o, tally(over)).Rate()
	}
	switch fast, slow := alerts.Burning(o, tally); {
	case fast:
		state.Burning = api.BurningFast
	case slow:
		state.Burning = api.BurningSlow
	}
	return state, failed()
}

// burnWindows are those of which the API tells how fast a budget burns.
var burnWindows = map[string]time.Duration{"1h": time.Hour, "5m": 5 * time.Minute, "6h": 6 * time.Hour, "30m": 30 * time.Minute}
