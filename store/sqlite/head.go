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
		var name string
		var head []byte
		if err := row.Scan(&name, &head, new(any)); err != nil {
			return probe.Head{}, err
		}
		return store.DecodeHead(name, head)
	}
	var heads []probe.Head
	err := db.read(ctx, "read heads", func(tx *sql.Tx) (err error) {
		// Of an endpoint that is seen from several places the newest head is the one that counts: beside MAX, SQLite takes the
		// other columns from the row that it found the maximum in.
		heads, err = query(ctx, tx, scan, `
			SELECT e.name, p.evidence -> '$.memory.head', MAX(p.head_at)
			FROM places p
			JOIN endpoints e ON e.id = p.endpoint_id
			WHERE p.chain = ? AND p.head_at >= ? AND NOT e.paused
			GROUP BY e.id
			ORDER BY MAX(p.head_at) DESC
			LIMIT ?`, chain, since.UnixMicro(), store.MaxHeads)
		return err
	})
	return heads, err
}
