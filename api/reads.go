package api

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// reader is what public pages, badges, feeds and charts ask of a database.
type reader interface {
	Endpoint(ctx context.Context, slug string) (store.Overview, error)
	Endpoints(ctx context.Context, f store.EndpointFilter) (store.Page[store.Overview], error)
	Incidents(ctx context.Context, f store.IncidentFilter) (store.Page[store.Incident], error)
	PublicEntries(ctx context.Context, incidentIDs []string) (map[string][]store.Entry, error)
	Maintenances(ctx context.Context, after time.Time) ([]store.Maintenance, error)
	Uptime(ctx context.Context, endpointID string, grain store.Grain, from, to time.Time) ([]store.Rollup, error)
	Sight(ctx context.Context, slugs []string) (store.Sight, error)
	Rollups(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) ([]store.Rollup, error)
	Counts(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) (map[string]store.Counts, error)
	Latencies(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) (map[string]store.Latencies, error)
}

// readerOf returns what those who only look are answered from: the replica, where there is one and it answers, or the
// store itself.
func readerOf(c Config) reader {
	if c.Pages == nil {
		return c.Store
	}
	return &replicated{replica: c.Pages, store: c.Store, log: c.Log}
}

// replicated asks a replica first, and the store when that fails.
type replicated struct {
	replica, store reader
	log            *slog.Logger
	restsUntil     atomic.Int64 // when the replica is asked again, in nanoseconds since 1970
}

// replicaPatience is how long a replica may take: a visitor waits for the store after that. replicaRest is how long one that
// failed is left alone, so that not every page waits for it.
const (
	replicaPatience = 2 * time.Second
	replicaRest     = 10 * time.Second
)

// either reads from the replica, or from the store when the replica fails.
func either[T any](ctx context.Context, r *replicated, read func(context.Context, reader) (T, error)) (T, error) {
	if time.Now().UnixNano() < r.restsUntil.Load() {
		return read(ctx, r.store)
	}
	patient, cancel := context.WithTimeout(ctx, replicaPatience)
	defer cancel()
	answer, err := read(patient, r.replica)
	if !store.IsFailure(err) || ctx.Err() != nil {
		return answer, err
	}
	r.restsUntil.Store(time.Now().Add(replicaRest).UnixNano())
	r.log.WarnContext(ctx, "replica does not answer, asking the database itself", "error", err)
	return read(ctx, r.store)
}

func (r *replicated) Endpoint(ctx context.Context, slug string) (store.Overview, error) {
	return either(ctx, r, func(ctx context.Context, from reader) (store.Overview, error) { return from.Endpoint(ctx, slug) })
}

func (r *replicated) Endpoints(ctx context.Context, f store.EndpointFilter) (store.Page[store.Overview], error) {
	return either(ctx, r, func(ctx context.Context, from reader) (store.Page[store.Overview], error) {
		return from.Endpoints(ctx, f)
	})
}

func (r *replicated) Incidents(ctx context.Context, f store.IncidentFilter) (store.Page[store.Incident], error) {
	return either(ctx, r, func(ctx context.Context, from reader) (store.Page[store.Incident], error) {
		return from.Incidents(ctx, f)
	})
}

func (r *replicated) PublicEntries(ctx context.Context, ids []string) (map[string][]store.Entry, error) {
	return either(ctx, r, func(ctx context.Context, from reader) (map[string][]store.Entry, error) {
		return from.PublicEntries(ctx, ids)
	})
}

func (r *replicated) Maintenances(ctx context.Context, after time.Time) ([]store.Maintenance, error) {
	return either(ctx, r, func(ctx context.Context, from reader) ([]store.Maintenance, error) {
		return from.Maintenances(ctx, after)
	})
}

func (r *replicated) Uptime(ctx context.Context, endpointID string, grain store.Grain, from, to time.Time) ([]store.Rollup, error) {
	return either(ctx, r, func(ctx context.Context, source reader) ([]store.Rollup, error) {
		return source.Uptime(ctx, endpointID, grain, from, to)
	})
}

func (r *replicated) Counts(ctx context.Context, ids []string, grain store.Grain, from time.Time) (map[string]store.Counts, error) {
	return either(ctx, r, func(ctx context.Context, source reader) (map[string]store.Counts, error) {
		return source.Counts(ctx, ids, grain, from)
	})
}

func (r *replicated) Latencies(ctx context.Context, ids []string, grain store.Grain, from time.Time) (map[string]store.Latencies, error) {
	return either(ctx, r, func(ctx context.Context, source reader) (map[string]store.Latencies, error) {
		return source.Latencies(ctx, ids, grain, from)
	})
}

func (r *replicated) Sight(ctx context.Context, slugs []string) (store.Sight, error) {
	return either(ctx, r, func(ctx context.Context, from reader) (store.Sight, error) { return from.Sight(ctx, slugs) })
}

func (r *replicated) Rollups(ctx context.Context, ids []string, grain store.Grain, from time.Time) ([]store.Rollup, error) {
	return either(ctx, r, func(ctx context.Context, source reader) ([]store.Rollup, error) {
		return source.Rollups(ctx, ids, grain, from)
	})
}
