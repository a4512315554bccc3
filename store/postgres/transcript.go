package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// insertTranscripts keeps transcripts, and lets go of those that they replace.
func insertTranscripts(batch *pgx.Batch, transcripts []store.KeptTranscript, group map[string]*known) {
	if len(transcripts) == 0 {
		return
	}
	type side struct {
		place int32
		good  bool
	}
	var (
		places, keeps []int32
		slots, ats    []time.Time
		goods         []bool
		bodies        [][]byte
		sides         = map[side]bool{}
		those         []int32
		which         []bool
	)
	for _, t := range transcripts {
		s := side{group[t.EndpointID].rows[t.Location].num, t.Good}
		places, slots, goods = append(places, s.place), append(slots, t.ScheduledAt), append(goods, t.Good)
		ats, bodies = append(ats, t.At), append(bodies, t.Body)
		if sides[s] {
			continue
		}
		sides[s] = true
		keep := int32(store.MaxBadTranscripts)
		if t.Good {
			keep = 1
		}
		those, which, keeps = append(those, s.place), append(which, s.good), append(keeps, keep)
	}
	batch.Queue(`
		INSERT INTO transcripts (place, scheduled_at, good, at, body)
		SELECT v.place, v.scheduled_at, v.good, v.at, v.body
		FROM unnest($1::integer[], $2::timestamptz[], $3::boolean[], $4::timestamptz[], $5::bytea[])
		     v (place, scheduled_at, good, at, body)`, places, slots, goods, ats, bodies)
	batch.Queue(`
		DELETE FROM transcripts
		WHERE ctid = ANY (ARRAY (
		    SELECT old.ctid
		    FROM unnest($1::integer[], $2::boolean[], $3::integer[]) v (place, good, keep)
		    CROSS JOIN LATERAL (
		        SELECT t.ctid FROM transcripts t WHERE t.place = v.place AND t.good = v.good ORDER BY t.at DESC OFFSET v.keep
		    ) old
		))`, those, which, keeps)
}
