package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// rollups are the tables of hours and of days that are over. Their columns are the same, but for the name of one.
type rollups struct{ table, begin string }

func rollupsOf(g store.Grain) rollups {
	if g == store.Daily {
		return rollups{"uptime_days", "day"}
	}
	return rollups{"uptime_hours", "hour"}
}

// columns are what scanRollup scans, of the table as u.
func (r rollups) columns() string {
	return `u.endpoint_id, u.location, u.` + r.begin + `, u.up, u.degraded, u.down, u.gated, u.unknown, u.maintenance, u.classes, u.latencies`
}

// Uptime implements store.Store.
func (db *DB) Uptime(ctx context.Context, endpointID string, grain store.Grain, from, to time.Time) ([]store.Rollup, error) {
	over := rollupsOf(grain)
	var found []store.Rollup
	err := db.read(ctx, "read uptime", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanRollup, `
			SELECT `+over.columns()+`
			FROM `+over.table+` u
			WHERE u.endpoint_id = ? AND u.`+over.begin+` >= ? AND u.`+over.begin+` < ?
			ORDER BY u.`+over.begin+`, u.location`, endpointID, from.UnixMicro(), to.UnixMicro())
		if err != nil {
			return err
		}
		running, err := runningHours(ctx, tx, endpointID)
		for _, hour := range running {
			if begin := grain.Begin(hour.Begin); !begin.Before(from) && begin.Before(to) {
				found = append(found, hour)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return store.MergeRollups(grain, found)
}

// Rollups implements store.Store.
func (db *DB) Rollups(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) ([]store.Rollup, error) {
	list, err := jsonText(slices.Compact(slices.Sorted(slices.Values(endpointIDs))))
	if err != nil {
		return nil, err
	}
	var found []store.Rollup
	err = db.read(ctx, "read roll-ups", func(tx *sql.Tx) error {
		found, err = rollupsSince(ctx, tx, list, grain, from)
		return err
	})
	if err != nil {
		return nil, err
	}
	return store.MergeRollups(grain, found)
}

// rollupsSince returns the hours or days that begin at from or later, the running ones included, in no order. list are the ids of the
// endpoints as JSON.
func rollupsSince(ctx context.Context, tx *sql.Tx, list string, grain store.Grain, from time.Time) ([]store.Rollup, error) {
	over := rollupsOf(grain)
	// CROSS JOIN keeps the order: a stretch of the primary key for each endpoint.
	found, err := query(ctx, tx, scanRollup, `
		SELECT `+over.columns()+`
		FROM json_each(?) id
		CROSS JOIN `+over.table+` u ON u.endpoint_id = id.value AND u.`+over.begin+` >= ?`, list, from.UnixMicro())
	if err != nil {
		return nil, err
	}
	running, err := query(ctx, tx, scanRunning, `
		SELECT p.endpoint_id, p.location, p.hour, p.sums
		FROM json_each(?) id
		CROSS JOIN places p ON p.endpoint_id = id.value
		WHERE p.hour IS NOT NULL`, list)
	for _, hour := range running {
		if !grain.Begin(hour.Begin).Before(from) {
			found = append(found, hour)
		}
	}
	return found, err
}

// scanRunning scans a running hour.
func scanRunning(row scanner) (h store.Rollup, err error) {
	var sums []byte
	if err := row.Scan(&h.EndpointID, &h.Location, timeInto{&h.Begin}, &sums); err != nil {
		return h, err
	}
	return h, h.UnmarshalBinary(sums)
}

// runningHours returns the hours of the latest checks of an endpoint.
func runningHours(ctx context.Context, tx *sql.Tx, endpointID string) ([]store.Rollup, error) {
	return query(ctx, tx, scanRunning, `
		SELECT p.endpoint_id, p.location, p.hour, p.sums
		FROM places p
		WHERE p.endpoint_id = ? AND p.hour IS NOT NULL`, endpointID)
}

// Counts implements store.Store.
func (db *DB) Counts(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) (map[string]store.Counts, error) {
	list, err := jsonText(slices.Compact(slices.Sorted(slices.Values(endpointIDs))))
	if err != nil {
		return nil, err
	}
	over := rollupsOf(grain)
	counts := map[string]store.Counts{}
	scanOver := func(row scanner) (struct{}, error) {
		var id string
		var c store.Counts
		err := row.Scan(&id, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &c.Maintenance)
		counts[id] = counts[id].Plus(c)
		return struct{}{}, err
	}
	scanSums := func(row scanner) (struct{}, error) {
		var id string
		var hour time.Time
		var sums []byte
		if err := row.Scan(&id, timeInto{&hour}, &sums); err != nil || grain.Begin(hour).Before(from) {
			return struct{}{}, err
		}
		c, err := store.CountsOf(sums)
		counts[id] = counts[id].Plus(c)
		return struct{}{}, err
	}
	err = db.read(ctx, "count verdicts", func(tx *sql.Tx) error {
		// CROSS JOIN keeps the order: a stretch of the primary key for each endpoint.
		_, err := query(ctx, tx, scanOver, `
			SELECT u.endpoint_id, SUM(u.up), SUM(u.degraded), SUM(u.down), SUM(u.gated), SUM(u.unknown),
			    SUM(u.maintenance)
			FROM json_each(?) id
			CROSS JOIN `+over.table+` u ON u.endpoint_id = id.value AND u.`+over.begin+` >= ?
			GROUP BY u.endpoint_id`, list, from.UnixMicro())
		if err != nil {
			return err
		}
		_, err = query(ctx, tx, scanSums, `
			SELECT p.endpoint_id, p.hour, p.sums
			FROM json_each(?) id
			CROSS JOIN places p ON p.endpoint_id = id.value
			WHERE p.hour IS NOT NULL`, list)
		return err
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// Latencies implements store.Store.
func (db *DB) Latencies(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) (map[string]store.Latencies, error) {
	list, err := jsonText(slices.Compact(slices.Sorted(slices.Values(endpointIDs))))
	if err != nil {
		return nil, err
	}
	over := rollupsOf(grain)
	merged := map[string]store.Latencies{}
	add := func(id string, l store.Latencies) error {
		sum := merged[id]
		err := sum.Merge(l)
		merged[id] = sum
		return err
	}
	scanOver := func(row scanner) (struct{}, error) {
		var id string
		var latencies []byte
		if err := row.Scan(&id, &latencies); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, add(id, store.PackedLatencies(latencies))
	}
	scanRunning := func(row scanner) (struct{}, error) {
		var r store.Rollup
		var sums []byte
		if err := row.Scan(&r.EndpointID, timeInto{&r.Begin}, &sums); err != nil || grain.Begin(r.Begin).Before(from) {
			return struct{}{}, err
		}
		if err := r.UnmarshalBinary(sums); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, add(r.EndpointID, r.Latencies)
	}
	err = db.read(ctx, "merge latencies", func(tx *sql.Tx) error {
		// CROSS JOIN keeps the order: a stretch of the primary key for each endpoint.
		_, err := query(ctx, tx, scanOver, `
			SELECT u.endpoint_id, u.latencies
			FROM json_each(?) id
			CROSS JOIN `+over.table+` u ON u.endpoint_id = id.value AND u.`+over.begin+` >= ?`, list, from.UnixMicro())
		if err != nil {
			return err
		}
		_, err = query(ctx, tx, scanRunning, `
			SELECT p.endpoint_id, p.hour, p.sums
			FROM json_each(?) id
			CROSS JOIN places p ON p.endpoint_id = id.value
			WHERE p.hour IS NOT NULL`, list)
		return err
	})
	if err != nil {
		return nil, err
	}
	return merged, nil
}

// Tally implements store.Store.
func (db *DB) Tally(ctx context.Context, endpointID string, since time.Time, under time.Duration) (store.Tally, error) {
	var t store.Tally
	c := &t.Counts
	err := db.read(ctx, "tally checks", func(tx *sql.Tx) error {
		// A check starts soon after it was due: the index knows when that was.
		return tx.QueryRowContext(ctx, `
			SELECT COUNT(*) FILTER (WHERE verdict = 'up'), COUNT(*) FILTER (WHERE verdict = 'degraded'),
			    COUNT(*) FILTER (WHERE verdict = 'down'), COUNT(*) FILTER (WHERE verdict = 'gated'),
			    COUNT(*) FILTER (WHERE verdict = 'unknown'),
			    COUNT(*) FILTER (WHERE verdict IN ('up', 'degraded') AND duration_ms < ?)
			FROM checks
			WHERE endpoint_id = ? AND scheduled_at >= ? AND started_at >= ? AND NOT maintenance`,
			store.Milliseconds(under), endpointID, since.Add(-startSlack).UnixMicro(), since.UnixMicro()).
			Scan(&c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &t.Under)
	})
	return t, err
}

// startSlack is how long after it was due a check may start that Tally still finds.
const startSlack = time.Hour

// addRollups merges hours that are over with what is kept of them and of their days.
func addRollups(ctx context.Context, tx *sql.Tx, over []store.Rollup) error {
	if len(over) == 0 {
		return nil
	}
	for _, grain := range []store.Grain{store.Hourly, store.Daily} {
		kept, err := keptRollups(ctx, tx, grain, over)
		if err != nil {
			return err
		}
		merged, err := store.MergeRollups(grain, append(kept, over...))
		if err != nil {
			return err
		}
		if err := putRollups(ctx, tx, grain, merged); err != nil {
			return err
		}
	}
	return nil
}

// keptRollups returns the hours or days in which those given lie, as far as they are kept.
func keptRollups(ctx context.Context, tx *sql.Tx, grain store.Grain, of []store.Rollup) ([]store.Rollup, error) {
	type key struct {
		EndpointID, Location string
		Begin                int64
	}
	seen := map[key]bool{}
	var keys []key
	for _, r := range of {
		k := key{r.EndpointID, r.Location, grain.Begin(r.Begin).UnixMicro()}
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	list, err := jsonText(keys)
	if err != nil {
		return nil, err
	}
	kept := rollupsOf(grain)
	// CROSS JOIN keeps the order: a look into the primary key for each.
	return query(ctx, tx, scanRollup, `
		SELECT `+kept.columns()+`
		FROM json_each(?) key
		CROSS JOIN `+kept.table+` u
		    ON u.endpoint_id = key.value ->> 'EndpointID'
		    AND u.`+kept.begin+` = key.value ->> 'Begin'
		    AND u.location = key.value ->> 'Location'`, list)
}

func putRollups(ctx context.Context, tx *sql.Tx, grain store.Grain, list []store.Rollup) error {
	into := rollupsOf(grain)
	var args [][]any
	for _, r := range list {
		latencies, err := r.Latencies.MarshalBinary()
		if err != nil {
			return err
		}
		classes, err := store.EncodeClasses(r.Classes)
		if err != nil {
			return err
		}
		c := r.Counts
		args = append(args, []any{
			r.EndpointID, r.Location, r.Begin.UnixMicro(), c.Up, c.Degraded, c.Down, c.Gated, c.Unknown, c.Maintenance,
			string(classes), append([]byte{}, latencies...),
		})
	}
	return execEach(ctx, tx, `
		INSERT INTO `+into.table+` (endpoint_id, location, `+into.begin+`, up, degraded, down, gated, unknown, maintenance, classes,
		    latencies)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?)
		ON CONFLICT (endpoint_id, `+into.begin+`, location) DO UPDATE
		SET up = excluded.up, degraded = excluded.degraded, down = excluded.down, gated = excluded.gated,
		    unknown = excluded.unknown, maintenance = excluded.maintenance, classes = excluded.classes, latencies = excluded.latencies`, args)
}

func scanRollup(row scanner) (store.Rollup, error) {
	var r store.Rollup
	var classes, latencies []byte
	c := &r.Counts
	err := row.Scan(&r.EndpointID, &r.Location, timeInto{&r.Begin}, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &c.Maintenance,
		&classes, &latencies)
	if err != nil {
		return store.Rollup{}, err
	}
	r.Classes, err = store.DecodeClasses(classes)
	r.Latencies = store.PackedLatencies(latencies)
	return r, err
}

// addDays fills in the days of a file whose hours were kept before there were days.
func addDays(ctx context.Context, tx *sql.Tx) error {
	var missing bool
	err := tx.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM uptime_hours) AND NOT EXISTS (SELECT 1 FROM uptime_days)`).Scan(&missing)
	if err != nil || !missing {
		return err
	}
	ids, err := query(ctx, tx, scanString, `SELECT id FROM endpoints ORDER BY id`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		hours, err := query(ctx, tx, scanRollup, `
			SELECT `+rollupsOf(store.Hourly).columns()+`
			FROM uptime_hours u
			WHERE u.endpoint_id = ?`, id)
		if err != nil {
			return err
		}
		days, err := store.MergeRollups(store.Daily, hours)
		if err != nil {
			return fmt.Errorf("add up the days of endpoint %s: %w", id, err)
		}
		if err := putRollups(ctx, tx, store.Daily, days); err != nil {
			return err
		}
	}
	return nil
}
