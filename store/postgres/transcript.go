package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// insertTranscripts keeps transcripts, and lets go of those that they replace.
func insertTranscripts(batch *pgx.Batch, transcripts []store.KeptTranscript) {
	for _, t := range transcripts {
		batch.Queue(`
			INSERT INTO transcripts (check_id, endpoint_id, good, at, body)
			VALUES ($1, $2, $3, $4, $5)`, t.CheckID, t.EndpointID, t.Good, t.At, []byte(t.Body))
		keep := store.MaxBadTranscripts
		if t.Good {
			keep = 1
		}
		batch.Queue(`
			DELETE FROM transcripts
			WHERE check_id IN (
			    SELECT check_id FROM transcripts WHERE endpoint_id = $1 AND good = $2 ORDER BY at DESC OFFSET $3
			)`, t.EndpointID, t.Good, keep)
	}
}
