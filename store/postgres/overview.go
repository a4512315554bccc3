package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Briefs implements store.Store.
func (db *DB) Briefs(ctx context.Context, endpointIDs []string, from time.Time) ([]store.Brief, error) {
	ids := cleanAll(endpointIDs)
	var briefs []store.Brief
	var hours []store.Rollup
	var batch pgx.Batch
	batch.Queue(`
		SELECT e.id, e.slug, e.name, e.kind, e.url, e.schedule, e.timeout_ms, e.paused, e.tags, e.locations, e.created_at, e.updated_at,
		       CASE WHEN e.url = '' THEN e.options END, s.status, s.since, s.failure,
		       p.last_check_at, COALESCE(p.evidence ->> 'kind', ''), COALESCE((p.evidence ->> 'last_ms')::float8, 0)
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		LEFT JOIN places p ON p.endpoint_id = e.id
		WHERE e.id = ANY ($1)
		ORDER BY e.id, p.location`, ids).Query(func(rows pgx.Rows) (err error) {
		briefs, err = db.readBriefs(rows)
		return err
	})
	batch.Queue(rollupsSince(store.Hourly), ids, keyOf(store.Hourly, from), firstOf(store.Hourly, from)).Query(func(rows pgx.Rows) (err error) {
		hours, err = collect(rows, scanRollup)
		return err
	})
	if err := db.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, explain("read briefs", err)
	}
	return store.WithHours(briefs, hours)
}

// readBriefs reads a row for each place, or one for an endpoint that has none.
func (db *DB) readBriefs(rows pgx.Rows) ([]store.Brief, error) {
	var briefs []store.Brief
	var e endpointRow
	var s stateRow
	var kind probe.Kind
	var checkedAt *time.Time
	var latency float64
	dest := []any{
		&e.e.ID, &e.e.Slug, &e.e.Name, &e.e.Kind, &e.e.URL, &e.e.Schedule, &e.timeout, &e.e.Paused, &e.e.Tags, &e.e.Locations,
		&e.e.CreatedAt, &e.e.UpdatedAt, &e.options, &s.status, &s.since, &s.failure, &checkedAt, &kind, &latency,
	}
	_, err := pgx.ForEachRow(rows, dest, func() error {
		if n := len(briefs); n == 0 || briefs[n-1].ID != e.e.ID {
			endpoint, err := e.endpoint(db.sealer)
			if err != nil {
				return err
			}
			state, err := s.state()
			if err != nil {
				return err
			}
			briefs = append(briefs, store.Brief{Overview: store.Overview{Endpoint: endpoint, State: state}})
		}
		e.e.Tags, e.e.Locations = nil, nil // the next row has its own
		briefs[len(briefs)-1].AddPlace(store.State{Kind: kind, LastCheckAt: orZero(checkedAt), LastDuration: store.FromMilliseconds(latency)})
		return nil
	})
	return briefs, err
}
