package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// Sight implements store.Store.
func (db *DB) Sight(ctx context.Context, slugs []string) (store.Sight, error) {
	var sight store.Sight
	if len(slugs) > store.MaxSightings {
		return sight, fmt.Errorf("look at endpoints: %d at once, at most %d are allowed", len(slugs), store.MaxSightings)
	}
	var batch pgx.Batch
	batch.Queue(`
		SELECT e.id, e.slug, e.tags, e.public, CASE WHEN e.paused THEN 'paused' ELSE s.status END, s.since, (
		    SELECT MAX(p.last_check_at)
		    FROM places p
		    WHERE p.endpoint_id = e.id
		)
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		WHERE e.slug = ANY ($1)`, slugs).Query(func(rows pgx.Rows) (err error) {
		sight.Sightings, err = collect(rows, scanSighting)
		return err
	})
	batch.Queue(`SELECT COALESCE(MAX(id), '') FROM incident_entries`).QueryRow(func(row pgx.Row) error {
		return row.Scan(&sight.LastEntry)
	})
	return sight, explain("look at endpoints", db.pool.SendBatch(ctx, &batch).Close())
}

func scanSighting(row pgx.CollectableRow) (store.Sighting, error) {
	var g store.Sighting
	var since, checkedAt *time.Time
	err := row.Scan(&g.ID, &g.Slug, &g.Tags, &g.Public, &g.Status, &since, &checkedAt)
	g.Since, g.CheckedAt = orZero(since), orZero(checkedAt)
	if len(g.Tags) == 0 {
		g.Tags = nil
	}
	return g, err
}
