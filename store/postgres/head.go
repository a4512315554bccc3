package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Heads implements store.Store.
func (db *DB) Heads(ctx context.Context, chain string, since time.Time) ([]probe.Head, error) {
	scan := func(row pgx.CollectableRow) (probe.Head, error) {
		var name string
		var head []byte
		if err := row.Scan(&name, &head); err != nil {
			return probe.Head{}, err
		}
		return store.DecodeHead(name, head)
	}
	heads, err := query(ctx, db.pool, scan, `
		SELECT h.name, h.head
		FROM (
		    SELECT DISTINCT ON (p.endpoint_id) e.name, p.evidence -> 'memory' -> 'head' AS head, p.head_at
		    FROM places p
		    JOIN endpoints e ON e.id = p.endpoint_id
		    WHERE p.chain = $1 AND p.head_at >= $2 AND NOT e.paused
		    ORDER BY p.endpoint_id, p.head_at DESC
		) h
		ORDER BY h.head_at DESC
		LIMIT $3`, store.CleanText(chain), since, store.MaxHeads)
	return heads, explain("read heads", err)
}
