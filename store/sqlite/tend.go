package sqlite

import (
	"context"
	"database/sql"

	"github.com/rollcallhq/rollcall/store"
)

// tendRows bounds a transaction of Tend: checks wait for it.
const tendRows = 2000

// Tend implements store.Store. It is many short transactions, between which others write. There is room for any day, so
// all it has to do is to let go.
func (db *DB) Tend(ctx context.Context, r store.Retention) (int, error) {
	// Transcripts go with their checks.
	checks, err := db.deleteOld(ctx, "delete old checks", `
		DELETE FROM checks
		WHERE rowid IN (SELECT rowid FROM checks WHERE scheduled_at < ? LIMIT ?)`, store.DayOf(r.Checks).UnixMicro())
	if err != nil {
		return checks, err
	}
	_, err = db.deleteOld(ctx, "delete old hours", `
		DELETE FROM uptime_hours
		WHERE rowid IN (SELECT rowid FROM uptime_hours WHERE hour < ? LIMIT ?)`, r.Hours.UnixMicro())
	if err != nil {
		return checks, err
	}
	_, err = db.deleteOld(ctx, "delete old changes", `
		DELETE FROM audits
		WHERE rowid IN (SELECT rowid FROM audits WHERE at < ? LIMIT ?)`, r.Audit.UnixMicro())
	return checks, err
}

// deleteOld runs a statement that deletes so many rows older than a bound until nothing is left of them, and says how many
// there were.
func (db *DB) deleteOld(ctx context.Context, what, statement string, bound int64) (int, error) {
	for deleted := 0; ; {
		n := int64(0)
		err := db.write(ctx, what, func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, statement, bound, tendRows)
			if err != nil {
				return err
			}
			n, err = result.RowsAffected()
			return err
		})
		deleted += int(n)
		if err != nil || n < tendRows {
			return deleted, err
		}
	}
}
