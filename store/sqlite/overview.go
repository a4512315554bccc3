package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Briefs implements store.Store.
func (db *DB) Briefs(ctx context.Context, endpointIDs []string, from time.Time) ([]store.Brief, error) {
	list, err := jsonText(slices.Compact(slices.Sorted(slices.Values(endpointIDs))))
	if err != nil {
		return nil, err
	}
	var briefs []store.Brief
	var hours []store.Rollup
	err = db.read(ctx, "read briefs", func(tx *sql.Tx) error {
		if briefs, err = db.briefs(ctx, tx, list); err != nil {
			return err
		}
		hours, err = rollupsSince(ctx, tx, list, store.Hourly, from)
		return err
	})
	if err != nil {
		return nil, err
	}
	return store.WithHours(briefs, hours)
}

// briefs returns briefs without their hours. list are the ids of the endpoints as JSON.
func (db *DB) briefs(ctx context.Context, tx *sql.Tx, list string) ([]store.Brief, error) {
	var briefs []store.Brief
	scan := func(row scanner) (struct{}, error) { // a row for each place, or one for an endpoint that has none
		var e endpointRow
		var s stateRow
		var kind probe.Kind
		var checkedAt time.Time
		var latency float64
		err := row.Scan(&e.e.ID, &e.e.Slug, &e.e.Name, &e.e.Kind, &e.e.URL, &e.e.Schedule, &e.timeout, &e.e.Paused, jsonInto{&e.e.Tags},
			jsonInto{&e.e.Locations}, timeInto{&e.e.CreatedAt}, timeInto{&e.e.UpdatedAt}, &e.options, &s.s.Status, timeInto{&s.s.Since},
			&s.failure, timeInto{&checkedAt}, &kind, &latency)
		if err != nil {
			return struct{}{}, err
		}
		if n := len(briefs); n == 0 || briefs[n-1].ID != e.e.ID {
			endpoint, err := e.endpoint(db.sealer)
			if err != nil {
				return struct{}{}, err
			}
			state, err := s.state()
			if err != nil {
				return struct{}{}, err
			}
			briefs = append(briefs, store.Brief{Overview: store.Overview{Endpoint: endpoint, State: state}})
		}
		briefs[len(briefs)-1].AddPlace(store.State{Kind: kind, LastCheckAt: checkedAt, LastDuration: store.FromMilliseconds(latency)})
		return struct{}{}, nil
	}
	// CROSS JOIN keeps the order: the rows of one endpoint come in a row.
	_, err := query(ctx, tx, scan, `
		SELECT e.id, e.slug, e.name, e.kind, e.url, e.schedule, e.timeout_ms, e.paused, e.tags, e.locations, e.created_at, e.updated_at,
		       CASE WHEN e.url = '' THEN e.options END, s.status, s.since, s.failure,
		       p.last_check_at, COALESCE(p.evidence ->> '$.kind', ''), COALESCE(p.evidence ->> '$.last_ms', 0.0)
		FROM json_each(?) id
		CROSS JOIN endpoints e ON e.id = id.value
		CROSS JOIN endpoint_states s ON s.endpoint_id = e.id
		LEFT JOIN places p ON p.endpoint_id = e.id`, list)
	return briefs, err
}
