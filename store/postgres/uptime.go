package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// Uptime implements store.Store.
func (db *DB) Uptime(ctx context.Context, endpointID string, from, to time.Time) ([]store.Rollup, error) {
	hours, err := query(ctx, db.pool, scanHour, `
		SELECT `+hourColumns+`
		FROM uptime_hours u
		WHERE u.endpoint_id = $1 AND u.hour >= $2 AND u.hour < $3
		ORDER BY u.hour, u.location`, store.CleanText(endpointID), from, to)
	return hours, explain("read uptime", err)
}

// Counts implements store.Store.
func (db *DB) Counts(ctx context.Context, from time.Time) (map[string]store.Counts, error) {
	rows, err := db.pool.Query(ctx, `
		SELECT endpoint_id, SUM(up), SUM(degraded), SUM(down), SUM(gated), SUM(unknown)
		FROM uptime_hours
		WHERE hour >= $1
		GROUP BY endpoint_id`, from)
	if err != nil {
		return nil, explain("count verdicts", err)
	}
	counts := map[string]store.Counts{}
	var id string
	var c store.Counts
	_, err = pgx.ForEachRow(rows, []any{&id, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown}, func() error {
		counts[id] = c
		return nil
	})
	if err != nil {
		return nil, explain("count verdicts", err)
	}
	return counts, nil
}

// readHours puts the hours that the checks count in, as far as they are kept, into hours.
func readHours(batch *pgx.Batch, checks []store.Check, hours map[store.Hour]store.Rollup) {
	var ids, locations []string
	var begins []time.Time
	seen := map[store.Hour]bool{}
	for _, c := range checks {
		key := c.Hour()
		if seen[key] {
			continue
		}
		seen[key] = true
		ids, locations, begins = append(ids, c.EndpointID), append(locations, c.Location), append(begins, store.HourOf(c.Result.StartedAt))
	}
	batch.Queue(`
		SELECT `+hourColumns+`
		FROM unnest($1::text[], $2::text[], $3::timestamptz[]) key (endpoint_id, location, hour)
		JOIN uptime_hours u USING (endpoint_id, location, hour)`, ids, locations, begins).Query(func(rows pgx.Rows) error {
		found, err := collect(rows, scanHour)
		for _, h := range found {
			hours[h.Key()] = h
		}
		return err
	})
}

func putHours(batch *pgx.Batch, hours []store.Rollup) error {
	for _, h := range hours {
		latencies, err := h.Latencies.MarshalBinary()
		if err != nil {
			return err
		}
		c := h.Counts
		batch.Queue(`
			INSERT INTO uptime_hours (endpoint_id, location, hour, up, degraded, down, gated, unknown, latencies)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (endpoint_id, hour, location) DO UPDATE
			SET up = excluded.up, degraded = excluded.degraded, down = excluded.down, gated = excluded.gated,
			    unknown = excluded.unknown, latencies = excluded.latencies`,
			h.EndpointID, h.Location, h.Begin, c.Up, c.Degraded, c.Down, c.Gated, c.Unknown, latencies)
	}
	return nil
}

// hourColumns are what scanHour scans, of uptime_hours u.
const hourColumns = `u.endpoint_id, u.location, u.hour, u.up, u.degraded, u.down, u.gated, u.unknown, u.latencies`

func scanHour(row pgx.CollectableRow) (store.Rollup, error) {
	var h store.Rollup
	var latencies []byte
	c := &h.Counts
	err := row.Scan(&h.EndpointID, &h.Location, &h.Begin, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &latencies)
	if err != nil {
		return store.Rollup{}, err
	}
	err = h.Latencies.UnmarshalBinary(latencies)
	return h, err
}
