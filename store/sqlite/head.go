package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Heads implements store.Store.
func (db *DB) Heads(ctx context.Context, chain string, since time.Time) ([]probe.Head, error) {
	scan := func(row scanner) (probe.Head, error) {
		var name, head string
		if err := row.Scan(&name, &head); err != nil {
			return probe.Head{}, err
		}
		return store.DecodeHead(name, []byte(head))
	}
	var heads []probe.Head
	err := db.read(ctx, "read heads", func(tx *sql.Tx) (err error) {
		heads, err = query(ctx, tx, scan, `
			SELECT e.name, s.head
			FROM endpoint_states s
			JOIN endpoints e ON e.id = s.endpoint_id
			WHERE s.chain = ? AND s.head_at >= ? AND NOT e.paused
			ORDER BY s.head_at DESC
			LIMIT ?`, chain, since.UnixMicro(), store.MaxHeads)
		return err
	})
	return heads, err
}
