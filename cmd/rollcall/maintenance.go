package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// planner knows which endpoints are under maintenance and when, so that the judge need not ask. It reads the plans again every
// planEvery, and when this process changes one.
type planner struct {
	store interface {
		Maintenances(ctx context.Context, after time.Time) ([]store.Maintenance, error)
		Endpoints(ctx context.Context, f store.EndpointFilter) (store.Page[store.Overview], error)
	}
	reading sync.Mutex // one refresh at a time
	plans   atomic.Pointer[[]plan]
}

const (
	planEvery = 10 * time.Second
	// A check may be recorded a day after it was made, when it waited out an outage of the database. Ahead is more than a plan
	// that cannot be read again is believed for.
	planBehind = 26 * time.Hour
	planAhead  = 2 * time.Hour
)

// plan is one maintenance with what it covers and when it is under way.
type plan struct {
	all     bool
	covered map[string]bool // by endpoint id
	windows []scheduler.Window
}

// refresh reads the plans again.
func (p *planner) refresh(ctx context.Context) error {
	p.reading.Lock()
	defer p.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	now := time.Now()
	kept, err := p.store.Maintenances(ctx, now.Add(-planBehind))
	if err != nil {
		return err
	}
	var plans []plan
	for _, m := range kept {
		next := plan{all: m.All, covered: map[string]bool{}, windows: scheduler.Windows(m, now.Add(-planBehind), now.Add(planAhead))}
		if len(next.windows) == 0 {
			continue
		}
		for _, id := range m.Endpoints {
			next.covered[id] = true
		}
		for _, tag := range m.Tags {
			page, err := p.store.Endpoints(ctx, store.EndpointFilter{Tag: tag, Limit: -1})
			if err != nil {
				return err
			}
			for _, o := range page.Items {
				next.covered[o.ID] = true
			}
		}
		plans = append(plans, next)
	}
	p.plans.Store(&plans)
	return nil
}

// maintained reports whether an endpoint is under maintenance at a time.
func (p *planner) maintained(endpointID string, at time.Time) bool {
	plans := p.plans.Load()
	if plans == nil {
		return false
	}
	return slices.ContainsFunc(*plans, func(one plan) bool {
		return (one.all || one.covered[endpointID]) &&
			slices.ContainsFunc(one.windows, func(w scheduler.Window) bool { return w.Holds(at) })
	})
}

// windows returns when a maintenance is under way, for those who may not ask the scheduler.
func windows(m store.Maintenance, from, until time.Time) [][2]time.Time {
	var spans [][2]time.Time
	for _, w := range scheduler.Windows(m, from, until) {
		spans = append(spans, [2]time.Time{w.Begin, w.End})
	}
	return spans
}
