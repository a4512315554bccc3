package postgres

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

var _ store.Leaser = (*DB)(nil)

// Shift implements store.Leaser.
func (db *DB) Shift(ctx context.Context, me store.Instance, ttl time.Duration) (store.Shift, error) {
	var shift store.Shift
	err := db.atOnce(ctx, "renew leases", me.Location, func(batch *pgx.Batch) {
		shift = store.Shift{TTL: ttl}
		seconds := ttl.Seconds()
		batch.Queue(`
			DELETE FROM instances
			WHERE location = $1
			    AND expires_at <= now()`, me.Location)
		batch.Queue(`
			INSERT INTO instances (location, id, expires_at, steady_since)
			VALUES ($1, $2, now() + make_interval(secs => $3), now())
			ON CONFLICT (location, id) DO UPDATE
			SET expires_at = excluded.expires_at,
			    steady_since = CASE
			        WHEN instances.expires_at > now() + make_interval(secs => $3) / 2 THEN instances.steady_since
			        ELSE now()
			    END`, me.Location, me.ID, seconds)
		batch.Queue(`
			INSERT INTO leases (location, shard, owner, epoch, expires_at)
			SELECT $1, shard, '', 0, '-infinity'
			FROM generate_series(0, $2 - 1) shard
			WHERE NOT EXISTS (SELECT 1 FROM leases WHERE location = $1)`, me.Location, store.Shards)
		batch.Queue(`
			UPDATE leases
			SET expires_at = now() + make_interval(secs => $3)
			WHERE location = $1
			    AND owner = $2
			    AND expires_at > '-infinity'`, me.Location, me.ID, seconds)
		batch.Queue(takeShare, me.Location, me.ID, store.Shards, seconds)
		batch.Queue(fairShare+` SELECT size, live FROM share`, me.Location, me.ID, store.Shards).QueryRow(func(row pgx.Row) error {
			return row.Scan(&shift.Share, &shift.Live)
		})
		batch.Queue(`
			SELECT shard, epoch
			FROM leases
			WHERE location = $1
			    AND owner = $2
			    AND expires_at > '-infinity'
			ORDER BY shard`, me.Location, me.ID).Query(func(rows pgx.Rows) (err error) {
			shift.Held, err = collect(rows, pgx.RowToStructByPos[store.Lease])
			return err
		})
	})
	if err != nil {
		return store.Shift{}, err
	}
	for i := shift.Share; i < len(shift.Held); i++ {
		shift.Surplus = append(shift.Surplus, shift.Held[i].Shard)
	}
	return shift, nil
}

// fairShare is how many of $3 shards of location $1 are for instance $2, and how many instances are alive. A query follows.
const fairShare = `
	WITH ranked AS (
	    SELECT id, steady_since, row_number() OVER (ORDER BY id) AS rank, count(*) OVER () AS live
	    FROM instances
	    WHERE location = $1
	        AND expires_at > now()
	), share AS (
	    SELECT $3 / live + CASE WHEN rank <= $3 % live THEN 1 ELSE 0 END AS size, live, steady_since
	    FROM ranked
	    WHERE id = $2
	)`

// takeShare takes free shards up to the fair share, for $4 seconds. It stands after the statement that renews: what has run
// out by then belongs to others.
const takeShare = fairShare + `, held AS (
	    SELECT count(*) AS size
	    FROM leases
	    WHERE location = $1
	        AND owner = $2
	        AND expires_at > '-infinity'
	)
	UPDATE leases
	SET owner = $2,
	    epoch = epoch + CASE WHEN owner = $2 THEN 0 ELSE 1 END,
	    expires_at = now() + make_interval(secs => $4)
	WHERE location = $1
	    AND shard IN (
	        SELECT shard
	        FROM leases
	        WHERE location = $1
	            AND (
	                expires_at = '-infinity'
	                OR expires_at <= now() AND (SELECT steady_since FROM share) <= now() - make_interval(secs => $4) / 2
	            )
	        ORDER BY shard
	        LIMIT (SELECT greatest(0, share.size - held.size) FROM share, held)
	    )`

// Glance implements store.Leaser.
func (db *DB) Glance(ctx context.Context, me store.Instance) (store.Glance, error) {
	var g store.Glance
	err := db.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE owner = $2 AND expires_at > now()),
		    $3 - count(*) FILTER (WHERE expires_at > now()),
		    (SELECT count(*) FROM instances WHERE location = $1 AND expires_at > now())
		FROM leases
		WHERE location = $1`, me.Location, me.ID, store.Shards).Scan(&g.Held, &g.Free, &g.Live)
	return g, explain("look at leases", err)
}

// Release implements store.Leaser.
func (db *DB) Release(ctx context.Context, me store.Instance, shards []int) error {
	if len(shards) == 0 {
		return nil
	}
	return db.atOnce(ctx, "release leases", me.Location, func(batch *pgx.Batch) {
		batch.Queue(`
			UPDATE leases
			SET expires_at = '-infinity'
			WHERE location = $1
			    AND owner = $2
			    AND shard = ANY ($3)`, me.Location, me.ID, shards)
	})
}

// Leave implements store.Leaser.
func (db *DB) Leave(ctx context.Context, me store.Instance) error {
	return db.atOnce(ctx, "leave", me.Location, func(batch *pgx.Batch) {
		batch.Queue(`
			DELETE FROM instances
			WHERE location = $1
			    AND id = $2`, me.Location, me.ID)
		batch.Queue(`
			UPDATE leases
			SET expires_at = '-infinity'
			WHERE location = $1
			    AND owner = $2`, me.Location, me.ID)
	})
}

// lockLeases is the first half of the advisory lock on the leases of a location; the second is a hash of its name.
const lockLeases = 0x726f6c6c

// atOnce does what is one transaction over the leases of a location, which others wait for. Everything goes to the server in
// one piece, so that it commits without hearing of us again: an instance that is frozen in the middle holds up nobody.
// queue may be called again when the transaction got in another's way.
func (db *DB) atOnce(ctx context.Context, what, location string, queue func(batch *pgx.Batch)) error {
	h := fnv.New32a()
	h.Write([]byte(location))
	for attempt := 1; ; attempt++ {
		var batch pgx.Batch
		batch.Queue(`SELECT pg_advisory_xact_lock($1::integer, $2::integer)`, int32(lockLeases), int32(h.Sum32()))
		queue(&batch)
		err := db.pool.SendBatch(ctx, &batch).Close()
		if attempt == maxAttempts || !inTheWay(err) {
			return explain(what, err)
		}
	}
}
