package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/rollcallhq/rollcall/store"
)

// Sight implements store.Store.
func (db *DB) Sight(ctx context.Context, slugs []string) (store.Sight, error) {
	var sight store.Sight
	if len(slugs) > store.MaxSightings {
		return sight, fmt.Errorf("look at endpoints: %d at once, at most %d are allowed", len(slugs), store.MaxSightings)
	}
	wanted, err := json.Marshal(slugs)
	if err != nil {
		return sight, fmt.Errorf("look at endpoints: %w", err)
	}
	err = db.read(ctx, "look at endpoints", func(tx *sql.Tx) error {
		sight.Sightings, err = query(ctx, tx, scanSighting, `
			SELECT e.id, e.slug, e.tags, e.public, CASE WHEN e.paused THEN 'paused' ELSE s.status END, s.since, (
			    SELECT MAX(p.last_check_at)
			    FROM places p
			    WHERE p.endpoint_id = e.id
			)
			FROM json_each(?) w
			JOIN endpoints e ON e.slug = w.value
			JOIN endpoint_states s ON s.endpoint_id = e.id`, string(wanted))
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), '') FROM incident_entries`).Scan(&sight.LastEntry)
	})
	return sight, err
}

func scanSighting(row scanner) (store.Sighting, error) {
	var g store.Sighting
	err := row.Scan(&g.ID, &g.Slug, textsInto{&g.Tags}, &g.Public, &g.Status, timeInto{&g.Since}, timeInto{&g.CheckedAt})
	return g, err
}
