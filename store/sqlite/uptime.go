package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Uptime implements store.Store.
func (db *DB) Uptime(ctx context.Context, endpointID string, from, to time.Time) ([]store.Rollup, error) {
	var hours []store.Rollup
	err := db.read(ctx, "read uptime", func(tx *sql.Tx) (err error) {
		hours, err = query(ctx, tx, scanHour, `
			SELECT `+hourColumns+`
			FROM uptime_hours u
			WHERE u.endpoint_id = ? AND u.hour >= ? AND u.hour < ?
			ORDER BY u.hour, u.location`, endpointID, from.UnixMicro(), to.UnixMicro())
		return err
	})
	return hours, err
}

// Counts implements store.Store.
func (db *DB) Counts(ctx context.Context, from time.Time) (map[string]store.Counts, error) {
	counts := map[string]store.Counts{}
	scan := func(row scanner) (struct{}, error) {
		var id string
		var c store.Counts
		err := row.Scan(&id, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown)
		counts[id] = c
		return struct{}{}, err
	}
	err := db.read(ctx, "count verdicts", func(tx *sql.Tx) error {
		// The plus keeps SQLite from walking all of the primary key for the sake of the order.
		_, err := query(ctx, tx, scan, `
			SELECT endpoint_id, SUM(up), SUM(degraded), SUM(down), SUM(gated), SUM(unknown)
			FROM uptime_hours
			WHERE hour >= ?
			GROUP BY +endpoint_id`, from.UnixMicro())
		return err
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// hoursOf returns the hours that the checks count in, as far as they are kept.
func hoursOf(ctx context.Context, tx *sql.Tx, checks []store.Check) (map[store.Hour]store.Rollup, error) {
	keys := make([]store.Hour, 0, len(checks))
	seen := map[store.Hour]bool{}
	for _, c := range checks {
		if key := c.Hour(); !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	list, err := jsonText(keys)
	if err != nil {
		return nil, err
	}
	// CROSS JOIN keeps the order: a look into the primary key for each hour.
	found, err := query(ctx, tx, scanHour, `
		SELECT `+hourColumns+`
		FROM json_each(?) key
		CROSS JOIN uptime_hours u
		    ON u.endpoint_id = key.value ->> 'EndpointID'
		    AND u.hour = (key.value ->> 'Hour') * 1000000
		    AND u.location = key.value ->> 'Location'`, list)
	if err != nil {
		return nil, err
	}
	hours := make(map[store.Hour]store.Rollup, len(found))
	for _, h := range found {
		hours[h.Key()] = h
	}
	return hours, nil
}

func putHours(ctx context.Context, tx *sql.Tx, hours []store.Rollup) error {
	var args [][]any
	for _, h := range hours {
		latencies, err := h.Latencies.MarshalBinary()
		if err != nil {
			return err
		}
		c := h.Counts
		args = append(args, []any{
			h.EndpointID, h.Location, h.Begin.UnixMicro(), c.Up, c.Degraded, c.Down, c.Gated, c.Unknown, latencies,
		})
	}
	return execEach(ctx, tx, `
		INSERT INTO uptime_hours (endpoint_id, location, hour, up, degraded, down, gated, unknown, latencies)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (endpoint_id, hour, location) DO UPDATE
		SET up = excluded.up, degraded = excluded.degraded, down = excluded.down, gated = excluded.gated,
		    unknown = excluded.unknown, latencies = excluded.latencies`, args)
}

// hourColumns are what scanHour scans, of uptime_hours u.
const hourColumns = `u.endpoint_id, u.location, u.hour, u.up, u.degraded, u.down, u.gated, u.unknown, u.latencies`

func scanHour(row scanner) (store.Rollup, error) {
	var h store.Rollup
	var latencies []byte
	c := &h.Counts
	err := row.Scan(&h.EndpointID, &h.Location, timeInto{&h.Begin}, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &latencies)
	if err != nil {
		return store.Rollup{}, err
	}
	err = h.Latencies.UnmarshalBinary(latencies)
	return h, err
}
