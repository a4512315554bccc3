package postgres

import (
	"context"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// lateStart is how much later than it was due a check may have started.
const lateStart = time.Hour

// Tally implements store.Store. When a check started stands in its numbers: the rows of the key are those that may count.
func (db *DB) Tally(ctx context.Context, endpointID string, since time.Time, under time.Duration) (store.Tally, error) {
	rows, err := db.pool.Query(ctx, `
		SELECT `+checkColumns+`
		FROM places p
		JOIN endpoints e ON e.id = p.endpoint_id
		JOIN checks c ON c.place = p.num
		WHERE p.endpoint_id = $1 AND c.scheduled_at >= $2`, store.CleanText(endpointID), since.Add(-lateStart))
	if err != nil {
		return store.Tally{}, explain("tally checks", err)
	}
	defer rows.Close()
	since = store.Rounded(probe.Result{StartedAt: since}).StartedAt // as checks are kept
	var t store.Tally
	for rows.Next() {
		c, err := scanCheck(rows)
		if err != nil {
			return store.Tally{}, explain("tally checks", err)
		}
		if c.Maintenance || c.Result.StartedAt.Before(since) {
			continue
		}
		t.Counts.Add(c.Result.Verdict)
		if good := c.Result.Verdict == probe.Up || c.Result.Verdict == probe.Degraded; good && c.Result.Duration < under {
			t.Under++
		}
	}
	return t, explain("tally checks", rows.Err())
}
