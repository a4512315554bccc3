package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rollcallhq/rollcall/store"
)

// Uptime implements store.Store.
func (db *DB) Uptime(ctx context.Context, endpointID string, grain store.Grain, from, to time.Time) ([]store.Rollup, error) {
	found, err := query(ctx, db.pool, scanRollup, `
		SELECT p.endpoint_id, p.location, u.begin, u.up, u.degraded, u.down, u.gated, u.unknown, u.maintenance, u.classes, u.latencies, NULL::bytea
		FROM places p
		JOIN (`+rollups(grain)+`) u ON u.place = p.num
		WHERE p.endpoint_id = $1 AND u.key >= $2 AND u.key < $3
		UNION ALL
		SELECT p.endpoint_id, p.location, p.hour, 0, 0, 0, 0, 0, 0, NULL, NULL, p.sums
		FROM places p
		WHERE p.endpoint_id = $1 AND p.hour >= $4 AND p.hour < $5`,
		store.CleanText(endpointID), keyOf(grain, from), keyOf(grain, to), firstOf(grain, from), firstOf(grain, to))
	if err != nil {
		return nil, explain("read uptime", err)
	}
	return store.MergeRollups(grain, found)
}

// Rollups implements store.Store.
func (db *DB) Rollups(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) ([]store.Rollup, error) {
	found, err := query(ctx, db.pool, scanRollup, rollupsSince(grain), cleanAll(endpointIDs), keyOf(grain, from), firstOf(grain, from))
	if err != nil {
		return nil, explain("read roll-ups", err)
	}
	return store.MergeRollups(grain, found)
}

// rollupsSince selects, for scanRollup, the hours or days of some endpoints ($1) from a key ($2) on, and the running ones that begin
// at a time ($3) or later.
func rollupsSince(g store.Grain) string {
	return `
		SELECT p.endpoint_id, p.location, u.begin, u.up, u.degraded, u.down, u.gated, u.unknown, u.maintenance, u.classes, u.latencies, NULL::bytea
		FROM places p
		JOIN LATERAL ( -- one place at a time, by its key
		    SELECT * FROM (` + rollups(g) + `) u WHERE u.place = p.num AND u.key >= $2 OFFSET 0
		) u ON true
		WHERE p.endpoint_id = ANY ($1)
		UNION ALL
		SELECT p.endpoint_id, p.location, p.hour, 0, 0, 0, 0, 0, 0, NULL, NULL, p.sums
		FROM places p
		WHERE p.endpoint_id = ANY ($1) AND p.hour >= $3`
}

// rollups selects the hours or days that are over. Days are dates, which key is; begin is a time in either case.
func rollups(g store.Grain) string {
	if g == store.Daily {
		return `
			SELECT place, day AS key, day::timestamp AT TIME ZONE 'UTC' AS begin,
			       up, degraded, down, gated, unknown, maintenance, classes, latencies
			FROM uptime_days`
	}
	return `SELECT place, hour AS key, hour AS begin, up, degraded, down, gated, unknown, maintenance, classes, latencies FROM uptime_hours`
}

// firstOf returns a bound of a stretch of time for the running hour, which counts in its day: that of the first day that
// begins at t or later.
func firstOf(g store.Grain, t time.Time) time.Time {
	if g == store.Hourly {
		return t
	}
	day := store.DayOf(t)
	if day.Before(t) {
		day = day.AddDate(0, 0, 1)
	}
	return day
}

// keyOf returns such a bound as the key of hours or days.
func keyOf(g store.Grain, t time.Time) any {
	if g == store.Hourly {
		return t
	}
	return pgDate(firstOf(g, t))
}

// scanRollup scans a row that has either counts or, of a running hour, sums.
func scanRollup(row pgx.CollectableRow) (store.Rollup, error) {
	var r store.Rollup
	var classes, latencies, sums []byte
	c := &r.Counts
	err := row.Scan(&r.EndpointID, &r.Location, &r.Begin, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &c.Maintenance, &classes, &latencies, &sums)
	if err != nil {
		return store.Rollup{}, err
	}
	if sums != nil {
		return r, r.UnmarshalBinary(sums)
	}
	r.Classes, err = store.DecodeClasses(classes)
	r.Latencies = store.PackedLatencies(latencies)
	return r, err
}

// Counts implements store.Store.
func (db *DB) Counts(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) (map[string]store.Counts, error) {
	rows, err := db.pool.Query(ctx, `
		SELECT p.endpoint_id, u.up, u.degraded, u.down, u.gated, u.unknown, u.maintenance, NULL::bytea
		FROM places p
		CROSS JOIN LATERAL ( -- one place at a time, by its key
		    SELECT SUM(u.up) AS up, SUM(u.degraded) AS degraded, SUM(u.down) AS down, SUM(u.gated) AS gated, SUM(u.unknown) AS unknown,
		           SUM(u.maintenance) AS maintenance
		    FROM (`+rollups(grain)+`) u
		    WHERE u.place = p.num AND u.key >= $2
		    HAVING COUNT(*) > 0
		) u
		WHERE p.endpoint_id = ANY ($1)
		UNION ALL
		SELECT p.endpoint_id, 0, 0, 0, 0, 0, 0, p.sums
		FROM places p
		WHERE p.endpoint_id = ANY ($1) AND p.hour >= $3`, cleanAll(endpointIDs), keyOf(grain, from), firstOf(grain, from))
	if err != nil {
		return nil, explain("count verdicts", err)
	}
	counts := map[string]store.Counts{}
	var id string
	var c store.Counts
	var sums []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &c.Maintenance, &sums}, func() error {
		if sums != nil {
			var err error
			if c, err = store.CountsOf(sums); err != nil {
				return err
			}
		}
		counts[id] = counts[id].Plus(c)
		return nil
	})
	if err != nil {
		return nil, explain("count verdicts", err)
	}
	return counts, nil
}

// Latencies implements store.Store.
func (db *DB) Latencies(ctx context.Context, endpointIDs []string, grain store.Grain, from time.Time) (map[string]store.Latencies, error) {
	rows, err := db.pool.Query(ctx, `
		SELECT p.endpoint_id, u.latencies, NULL::bytea
		FROM places p
		CROSS JOIN LATERAL ( -- one place at a time, by its key
		    SELECT u.latencies
		    FROM (`+rollups(grain)+`) u
		    WHERE u.place = p.num AND u.key >= $2
		    OFFSET 0
		) u
		WHERE p.endpoint_id = ANY ($1)
		UNION ALL
		SELECT p.endpoint_id, NULL, p.sums
		FROM places p
		WHERE p.endpoint_id = ANY ($1) AND p.hour >= $3`, cleanAll(endpointIDs), keyOf(grain, from), firstOf(grain, from))
	if err != nil {
		return nil, explain("merge latencies", err)
	}
	merged := map[string]store.Latencies{}
	var id string
	var latencies, sums []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &latencies, &sums}, func() error {
		part := store.PackedLatencies(latencies)
		if sums != nil {
			var r store.Rollup
			if err := r.UnmarshalBinary(sums); err != nil {
				return err
			}
			part = r.Latencies
		}
		sum := merged[id]
		err := sum.Merge(part)
		merged[id] = sum
		return err
	})
	if err != nil {
		return nil, explain("merge latencies", err)
	}
	return merged, nil
}

// sums are roll-ups to be written in place of those that they were merged with: hours and days.
type sums struct {
	hours, days map[sumKey]*store.Rollup
	needs       []need
}

type sumKey struct {
	place int32
	begin int64 // in seconds since 1970
}

func (k sumKey) at() time.Time { return time.Unix(k.begin, 0).UTC() }

// sumUp merges hours that are over with what is kept of them and of their days. Nobody else writes there before the places'
// versions have changed.
func (db *DB) sumUp(ctx context.Context, over []store.Rollup, group map[string]*known) (sums, error) {
	if len(over) == 0 {
		return sums{}, nil
	}
	s := sums{hours: map[sumKey]*store.Rollup{}, days: map[sumKey]*store.Rollup{}}
	months := map[string]bool{}
	for _, r := range over {
		num := group[r.EndpointID].rows[r.Location].num
		s.hours[sumKey{num, r.Begin.Unix()}] = &store.Rollup{}
		s.days[sumKey{num, store.DayOf(r.Begin).Unix()}] = &store.Rollup{}
		if n := (need{hourMonths, r.Begin}); !months[n.name()] {
			months[n.name()] = true
			s.needs = append(s.needs, n)
		}
	}
	var batch pgx.Batch
	readSums(&batch, store.Hourly, s.hours)
	readSums(&batch, store.Daily, s.days)
	if err := db.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return s, err
	}
	for _, r := range over {
		num := group[r.EndpointID].rows[r.Location].num
		for _, sum := range []*store.Rollup{s.hours[sumKey{num, r.Begin.Unix()}], s.days[sumKey{num, store.DayOf(r.Begin).Unix()}]} {
			if err := sum.Merge(r); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// readSums fills in what is kept of the roll-ups.
func readSums(batch *pgx.Batch, g store.Grain, into map[sumKey]*store.Rollup) {
	var places []int32
	var hours []time.Time
	var days []pgtype.Date // a time would be taken for a date where the server is
	for key := range into {
		places, hours, days = append(places, key.place), append(hours, key.at()), append(days, pgDate(key.at()))
	}
	keys, begins := `unnest($1::integer[], $2::timestamptz[]) v (place, key)`, any(hours)
	if g == store.Daily {
		keys, begins = `unnest($1::integer[], $2::date[]) v (place, key)`, any(days)
	}
	batch.Queue(`
		SELECT u.place, u.begin, u.up, u.degraded, u.down, u.gated, u.unknown, u.maintenance, u.classes, u.latencies
		FROM `+keys+`
		JOIN (`+rollups(g)+`) u ON u.place = v.place AND u.key = v.key`, places, begins).Query(func(rows pgx.Rows) error {
		var num int32
		var begin time.Time
		var r store.Rollup
		var classes, latencies []byte
		c := &r.Counts
		_, err := pgx.ForEachRow(rows, []any{&num, &begin, &c.Up, &c.Degraded, &c.Down, &c.Gated, &c.Unknown, &c.Maintenance, &classes, &latencies}, func() (err error) {
			kept := store.Rollup{Counts: r.Counts}
			if kept.Classes, err = store.DecodeClasses(classes); err != nil {
				return err
			}
			if err := kept.Latencies.UnmarshalBinary(latencies); err != nil {
				return err
			}
			*into[sumKey{num, begin.Unix()}] = kept
			return nil
		})
		return err
	})
}

func (s sums) queue(batch *pgx.Batch) error {
	return errors.Join(putRollups(batch, store.Hourly, s.hours), putRollups(batch, store.Daily, s.days))
}

// putRollups writes roll-ups in place of those that are kept of the same places and times.
func putRollups(batch *pgx.Batch, g store.Grain, rollups map[sumKey]*store.Rollup) error {
	if len(rollups) == 0 {
		return nil
	}
	var places, up, degraded, down, gated, unknown, maintenance []int32
	var hours []time.Time
	var days []pgtype.Date
	var allClasses []string
	var allLatencies [][]byte
	for key, r := range rollups {
		latencies, err := r.Latencies.MarshalBinary()
		if err != nil {
			return err
		}
		classes, err := store.EncodeClasses(r.Classes)
		if err != nil {
			return err
		}
		c := r.Counts
		places, hours, days = append(places, key.place), append(hours, key.at()), append(days, pgDate(key.at()))
		up, degraded, down = append(up, int32(c.Up)), append(degraded, int32(c.Degraded)), append(down, int32(c.Down)) //nolint:gosec // of a day at most
		gated, unknown = append(gated, int32(c.Gated)), append(unknown, int32(c.Unknown))                              //nolint:gosec // of a day at most
		maintenance = append(maintenance, int32(c.Maintenance))                                                        //nolint:gosec // of a day at most
		allClasses, allLatencies = append(allClasses, string(classes)), append(allLatencies, latencies)
	}
	table, key, kind, begins := "uptime_hours", "hour", "timestamptz", any(hours)
	if g == store.Daily {
		table, key, kind, begins = "uptime_days", "day", "date", any(days)
	}
	batch.Queue(`
		INSERT INTO `+table+` (place, `+key+`, up, degraded, down, gated, unknown, maintenance, classes, latencies)
		SELECT v.place, v.begin, v.up, v.degraded, v.down, v.gated, v.unknown, v.maintenance, NULLIF(v.classes, '')::json, v.latencies
		FROM unnest($1::integer[], $2::`+kind+`[], $3::integer[], $4::integer[], $5::integer[], $6::integer[], $7::integer[],
		            $8::integer[], $9::text[], $10::bytea[])
		     v (place, begin, up, degraded, down, gated, unknown, maintenance, classes, latencies)
		ON CONFLICT (place, `+key+`) DO UPDATE
		SET up = excluded.up, degraded = excluded.degraded, down = excluded.down, gated = excluded.gated,
		    unknown = excluded.unknown, maintenance = excluded.maintenance, classes = excluded.classes, latencies = excluded.latencies`,
		places, begins, up, degraded, down, gated, unknown, maintenance, allClasses, allLatencies)
	return nil
}

// addDays fills in the days of a database whose hours were kept before there were days.
func addDays(ctx context.Context, tx pgx.Tx) error {
	var missing bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT 1 FROM uptime_hours) AND NOT EXISTS (SELECT 1 FROM uptime_days)`).Scan(&missing)
	if err != nil || !missing {
		return err
	}
	nums, err := query(ctx, tx, pgx.RowTo[int32], `SELECT num FROM places ORDER BY num`)
	if err != nil {
		return err
	}
	for _, num := range nums {
		hours, err := query(ctx, tx, scanRollup, `
			SELECT p.endpoint_id, p.location, u.hour, u.up, u.degraded, u.down, u.gated, u.unknown, u.maintenance, u.classes, u.latencies, NULL::bytea
			FROM places p
			JOIN uptime_hours u ON u.place = p.num
			WHERE p.num = $1`, num)
		if err != nil {
			return err
		}
		days, err := store.MergeRollups(store.Daily, hours)
		if err != nil {
			return err
		}
		var batch pgx.Batch
		for _, d := range days {
			if err := putRollups(&batch, store.Daily, map[sumKey]*store.Rollup{{num, d.Begin.Unix()}: &d}); err != nil {
				return err
			}
		}
		if err := send(ctx, tx, &batch); err != nil {
			return err
		}
	}
	return nil
}
