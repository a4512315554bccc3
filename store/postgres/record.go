package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// Record implements store.Store. The judge sees endpoints without their headers and options.
//
//	Record
//	├─ load          where the endpoints stand: from memory as a rule
//	├─ Ledger.Enter  pure: what the checks change
//	└─ write         all of it, in one round trip, unless somebody else changed any of it meanwhile
//
// It takes no lock before it writes. A group that was overtaken is read again and written anew.
func (db *DB) Record(ctx context.Context, checks []store.Check, judge store.Judge) ([]store.Outcome, error) {
	if len(checks) == 0 {
		return nil, nil
	}
	checks, err := store.TidyChecks(checks)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		try := db.recordKnown
		if attempt > 1 {
			try = db.recordLocked
		}
		outcomes, err := try(ctx, checks, judge)
		switch {
		case err == nil:
			return outcomes, nil
		case attempt == maxAttempts || !overtaken(err):
			return nil, explain("record checks", err)
		}
		if hasCode(err, checkViolation) {
			db.rooms.set(nil) // a partition was dropped by somebody else
		}
	}
}

// Codes that say that a group was written by what is no longer so: see placeUpdate.queue and queueFence.
const (
	divisionByZero  = "22012"
	uniqueViolation = "23505"
	checkViolation  = "23514"
)

func overtaken(err error) bool {
	return errors.Is(err, errStale) || inTheWay(err) || hasCode(err, divisionByZero, uniqueViolation, checkViolation)
}

// recordKnown writes the checks as if nobody else had written anything, no check were kept already and no lease lost: where
// one of these is not so, it fails and has changed nothing.
func (db *DB) recordKnown(ctx context.Context, checks []store.Check, judge store.Judge) ([]store.Outcome, error) {
	group := db.memory.take(endpointIDs(checks))
	if err := db.load(ctx, checks, group); err != nil {
		return nil, err
	}
	entries := newLedger(checks, group).Enter(checks, judge)
	if err := db.enter(ctx, db.pool, entries, group); err != nil {
		return nil, err
	}
	db.memory.put(group)
	return entries.Outcomes, nil
}

// recordLocked writes the checks while nobody else can, having looked for what recordKnown takes for granted.
func (db *DB) recordLocked(ctx context.Context, checks []store.Check, judge store.Judge) ([]store.Outcome, error) {
	ids := endpointIDs(checks)
	if err := db.load(ctx, checks, map[string]*known{}); err != nil { // makes the places that are missing
		return nil, err
	}
	// Made inside of the transaction, room would be waited for by whoever drops a partition and waits for the transaction.
	var needs []need
	for _, c := range checks {
		needs = append(needs, forDay(c.ScheduledAt)...)
	}
	if err := db.makeRoom(ctx, needs); err != nil {
		return nil, err
	}
	group := map[string]*known{}
	var entries store.Entries
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT 1 FROM places WHERE endpoint_id = ANY ($1) ORDER BY num FOR NO KEY UPDATE`, ids)
		if err != nil {
			return err
		}
		if err := readKnown(ctx, tx, ids, group); err != nil {
			return err
		}
		ledger := newLedger(checks, group)
		if err := lookOut(ctx, tx, checks, group, ledger); err != nil {
			return err
		}
		entries = ledger.Enter(checks, judge)
		return db.enter(ctx, tx, entries, group)
	})
	if err != nil {
		return nil, err
	}
	db.memory.put(group)
	return entries.Outcomes, nil
}

// newLedger returns a ledger of the endpoints that the checks are of and that are there.
func newLedger(checks []store.Check, group map[string]*known) *store.Ledger {
	ledger := &store.Ledger{Standings: make(map[string]*store.Standing, len(group)), Now: time.Now()}
	for _, c := range checks {
		if k := group[c.EndpointID]; k != nil && k.rows[c.Location] != nil {
			ledger.Standings[c.EndpointID] = k.standing
		}
	}
	return ledger
}

func endpointIDs(checks []store.Check) []string {
	ids := make([]string, 0, len(checks))
	for _, c := range checks {
		ids = append(ids, c.EndpointID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// lookOut fills in which checks are kept already and which leases are lost.
func lookOut(ctx context.Context, q sender, checks []store.Check, group map[string]*known, ledger *store.Ledger) error {
	ledger.Kept, ledger.Lost = map[store.Slot]bool{}, map[store.Fence]bool{}
	var nums []int32
	var times []time.Time
	places := map[int32]store.Check{}
	for _, c := range checks {
		if k := group[c.EndpointID]; k != nil {
			r := k.rows[c.Location]
			if r == nil {
				continue // it was made and is gone again, with its endpoint
			}
			num := r.num
			nums, times = append(nums, num), append(times, c.ScheduledAt)
			places[num] = c
		}
		if fence, fenced := c.Fence(); fenced {
			ledger.Lost[fence] = true
		}
	}
	var batch pgx.Batch
	batch.Queue(`
		SELECT c.place, c.scheduled_at
		FROM unnest($1::integer[], $2::timestamptz[]) slot (place, scheduled_at)
		JOIN checks c USING (place, scheduled_at)`, nums, times).Query(func(rows pgx.Rows) error {
		var num int32
		var at time.Time
		_, err := pgx.ForEachRow(rows, []any{&num, &at}, func() error {
			ledger.Kept[store.Slot{EndpointID: places[num].EndpointID, Location: places[num].Location, ScheduledAt: at.UnixMicro()}] = true
			return nil
		})
		return err
	})
	if len(ledger.Lost) > 0 {
		f := fencesOf(checks)
		batch.Queue(`
			SELECT l.location, l.shard, l.epoch
			FROM unnest($1::text[], $2::smallint[], $3::bigint[]) fence (location, shard, epoch)
			JOIN leases l USING (location, shard, epoch)`, f.locations, f.shards, f.epochs).Query(func(rows pgx.Rows) error {
			var held store.Fence
			_, err := pgx.ForEachRow(rows, []any{&held.Location, &held.Shard, &held.Epoch}, func() error {
				delete(ledger.Lost, held)
				return nil
			})
			return err
		})
	}
	return q.SendBatch(ctx, &batch).Close()
}

// enter writes what a group of checks changes, and notes it in group. Sent by the pool, the batch is a transaction of its own
// in one round trip: Postgres makes one of what is sent before it is asked to synchronise
// (https://www.postgresql.org/docs/15/protocol-flow.html#PROTOCOL-FLOW-PIPELINING).
func (db *DB) enter(ctx context.Context, q sender, e store.Entries, group map[string]*known) error {
	if len(e.Checks) == 0 {
		return nil
	}
	tools, err := db.toolsBefore(ctx, e.Contracts)
	if err != nil {
		return err
	}
	sums, err := db.sumUp(ctx, e.Hours, group)
	if err != nil {
		return err
	}
	plain, shared := splitTurns(e.Turns)
	tx, within := q.(pgx.Tx)
	if len(shared) > 0 && !within {
		return errStale // what others may write to as well is written under a lock
	}
	audience, err := audienceOf(ctx, q, plain)
	if err != nil {
		return err
	}
	written, err := db.packInRoom(ctx, e.Checks, group, sums.needs)
	if err != nil {
		return err
	}
	var places placeUpdate
	for _, p := range e.Places {
		r := group[p.EndpointID].rows[p.Location]
		if err := places.add(r.num, r.version, p); err != nil {
			return err
		}
	}
	if lone(e) && len(sums.hours) == 0 && len(written.shapeIDs) == 0 && len(group[e.Checks[0].EndpointID].rows) == 1 {
		if err := keepLone(ctx, q, &places, written, e.Checks[0]); err != nil {
			return err
		}
		group[e.Places[0].EndpointID].rows[e.Places[0].Location].version++
		return nil
	}
	var batch pgx.Batch
	places.queue(&batch)
	queueFence(&batch, e.Checks)
	queueShared(&batch, e, group)
	if err := updateStates(&batch, e.States); err != nil {
		return err
	}
	if err := queueTurns(&batch, plain, audience); err != nil {
		return err
	}
	if err := queueContracts(&batch, e.Contracts, tools); err != nil {
		return err
	}
	insertNotices(&batch, e.Notices)
	written.queueShapes(&batch)
	written.queueChecks(&batch)
	insertTranscripts(&batch, e.Transcripts, group)
	if err := sums.queue(&batch); err != nil {
		return err
	}
	if err := q.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for _, t := range shared {
		if err := writeShared(ctx, tx, t); err != nil {
			return err
		}
	}
	for _, p := range e.Places {
		group[p.EndpointID].rows[p.Location].version++
	}
	written.done()
	return nil
}

// lone reports whether a group is one check that changes nothing but its place, as one good check after the other does.
func lone(e store.Entries) bool {
	return len(e.Checks) == 1 && len(e.Places) == 1 && len(e.States)+len(e.Turns)+len(e.Contracts)+len(e.Notices)+
		len(e.Transcripts) == 0
}

// errStale means that the group has to be read anew: somebody else has changed the place or taken the lease of a lone check, or an
// incident is to be written that others may write to.
var errStale = errors.New("the place has changed")

// keepLone does for one check in one statement what enter does for many: it takes half the time.
func keepLone(ctx context.Context, q sender, u *placeUpdate, p *packedChecks, c store.Check) error {
	args := []any{
		u.nums[0], u.versions[0], u.statuses[0], u.sinces[0], u.slots[0], u.checkAts[0], u.chains[0], u.headAts[0], u.evidences[0],
		u.hours[0], u.sums[0], p.shapes[0], p.times[0], p.verdicts[0], p.latencies[0], p.numbers[0],
	}
	statement := loneCheck
	if fence, fenced := c.Fence(); fenced {
		statement, args = loneFencedCheck, append(args, fence.Location, fence.Shard, fence.Epoch)
	}
	tag, err := q.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return errStale
	}
	return err
}

// Two statements, because one that leaves out the lease when there is none would be planned anew each time: it is cheaper then
// than the plan that holds for both.
const (
	loneCheck       = lonePlace + loneRow
	loneFencedCheck = lonePlace + ` AND EXISTS (SELECT 1 FROM leases WHERE location = $17 AND shard = $18 AND epoch = $19)` + loneRow
	lonePlace       = `
		WITH changed AS (
		    UPDATE places
		    SET version = version + 1, status = $3::text, since = $4, last_scheduled_at = $5, last_check_at = $6, chain = $7,
		        head_at = $8, evidence = $9::text::json, hour = $10, sums = $11
		    WHERE num = $1 AND version = $2`
	loneRow = `
		    RETURNING num
		)
		INSERT INTO checks (place, shape, scheduled_at, verdict, latencies, numbers)
		SELECT num, $12, $13, $14::text::"char", $15, $16
		FROM changed`
)

// packInRoom packs checks and makes sure that there is room for them, and for what else is needed.
func (db *DB) packInRoom(ctx context.Context, checks []store.Check, group map[string]*known, others []need) (*packedChecks, error) {
	age := db.rooms.ageNow()
	written, err := packChecks(checks, group, age)
	if err != nil {
		return nil, err
	}
	if err := db.makeRoom(ctx, append(written.needs, others...)); err != nil {
		return nil, err
	}
	if now := db.rooms.ageNow(); now != age {
		return packChecks(checks, group, now)
	}
	return written, nil
}

// fences are the leases that a group needs, column by column.
type fences struct {
	locations []string
	shards    []int16
	epochs    []int64
}

func fencesOf(checks []store.Check) fences {
	var f fences
	seen := map[store.Fence]bool{}
	for _, c := range checks {
		fence, fenced := c.Fence()
		if !fenced || seen[fence] {
			continue
		}
		seen[fence] = true
		f.locations, f.shards = append(f.locations, fence.Location), append(f.shards, int16(fence.Shard)) //nolint:gosec // below store.Shards
		f.epochs = append(f.epochs, fence.Epoch)
	}
	return f
}

// queueFence has the batch fail when a lease under which a check was made is another's by now.
func queueFence(batch *pgx.Batch, checks []store.Check) {
	f := fencesOf(checks)
	if len(f.shards) == 0 {
		return
	}
	batch.Queue(`
		SELECT 1 / (COUNT(*) = $4::integer)::integer
		FROM unnest($1::text[], $2::smallint[], $3::bigint[]) fence (location, shard, epoch)
		JOIN leases l USING (location, shard, epoch)`, f.locations, f.shards, f.epochs, len(f.shards))
}

// queueShared has the batch fail when somebody else has recorded a check of an endpoint with several places since the votes of
// all were read: what they add up to must be worked out by one after the other.
func queueShared(batch *pgx.Batch, e store.Entries, group map[string]*known) {
	var ids []string
	var versions []int32
	seen := map[string]bool{}
	for _, p := range e.Places {
		if k := group[p.EndpointID]; len(k.rows) > 1 && !seen[p.EndpointID] {
			seen[p.EndpointID] = true
			ids, versions = append(ids, p.EndpointID), append(versions, k.version)
		}
	}
	if len(ids) == 0 {
		return
	}
	batch.Queue(`
		WITH changed AS (
		    UPDATE endpoint_states s
		    SET version = s.version + 1
		    FROM unnest($1::text[], $2::integer[]) v (endpoint_id, version)
		    WHERE s.endpoint_id = v.endpoint_id AND s.version = v.version
		    RETURNING 1
		)
		SELECT 1 / (COUNT(*) = $3::integer)::integer FROM changed`, ids, versions, len(ids))
}
