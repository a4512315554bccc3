package sqlite

import (
	"context"
	"database/sql"

	"github.com/rollcallhq/rollcall/store"
)

// insertTranscripts keeps transcripts, and lets go of those that they replace.
func insertTranscripts(ctx context.Context, tx *sql.Tx, transcripts []store.KeptTranscript) error {
	for _, t := range transcripts {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO transcripts (check_id, endpoint_id, location, good, at, body)
			VALUES (?, ?, ?, ?, ?, ?)`, t.CheckID, t.EndpointID, t.Location, t.Good, t.At.UnixMicro(), []byte(t.Body))
		if err != nil {
			return err
		}
		keep := store.MaxBadTranscripts
		if t.Good {
			keep = 1
		}
		_, err = tx.ExecContext(ctx, `
			DELETE FROM transcripts
			WHERE check_id IN (
			    SELECT check_id
			    FROM transcripts
			    WHERE endpoint_id = ? AND location = ? AND good = ?
			    ORDER BY at DESC
			    LIMIT -1 OFFSET ?
			)`, t.EndpointID, t.Location, t.Good, keep)
		if err != nil {
			return err
		}
	}
	return nil
}
