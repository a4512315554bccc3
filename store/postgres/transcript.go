package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// insertTranscripts keeps transcripts, and lets go of those that they replace.
func insertTranscripts(batch *pgx.Batch, transcripts []store.KeptTranscript, group map[string]*known) {
	for _, t := range transcripts {
		num := group[t.EndpointID].rows[t.Location].num
		batch.Queue(`
			INSERT INTO transcripts (place, scheduled_at, good, at, body)
			VALUES ($1, $2, $3, $4, $5)`, num, t.ScheduledAt, t.Good, t.At, []byte(t.Body))
		keep := store.MaxBadTranscripts
		if t.Good {
			keep = 1
		}
		batch.Queue(`
			DELETE FROM transcripts
			WHERE place = $1 AND scheduled_at IN (
			    SELECT scheduled_at FROM transcripts WHERE place = $1 AND good = $2 ORDER BY at DESC OFFSET $3
			)`, num, t.Good, keep)
	}
}
