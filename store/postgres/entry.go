package postgres

import (
	"context"

	"github.com/rollcallhq/rollcall/store"
)

// PublicEntries implements store.Store.
func (db *DB) PublicEntries(ctx context.Context, incidentIDs []string) (map[string][]store.Entry, error) {
	if len(incidentIDs) == 0 {
		return nil, nil
	}
	// The latest of each by its own look into the index.
	found, err := query(ctx, db.pool, scanEntry, `
		SELECT `+entryColumns+`
		FROM unnest($1::text[]) i (id)
		CROSS JOIN LATERAL (
		    SELECT *
		    FROM incident_entries l
		    WHERE l.incident_id = i.id AND l.public AND l.text <> ''
		    ORDER BY l.at DESC, l.id DESC
		    LIMIT $2
		) t
		ORDER BY t.incident_id, t.at, t.id`, incidentIDs, store.MaxPublicEntries)
	if err != nil {
		return nil, explain("read public entries", err)
	}
	return store.EntriesByIncident(found), nil
}
