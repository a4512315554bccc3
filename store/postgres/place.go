package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// placeColumns are what placeRow scans, of places p; hourColumns follow where the running hour is wanted.
const (
	placeColumns = `p.num, p.version, p.endpoint_id, p.location, p.status, p.since, p.last_scheduled_at, p.last_check_at, p.evidence`
	sumColumns   = `p.hour, p.sums`
)

// placeRow is a place being scanned, with what names it in the database.
type placeRow struct {
	place   store.Place
	num     int32
	version int32

	since, lastScheduledAt, lastCheckAt, hour *time.Time
	evidence, sums                            []byte
}

func (r *placeRow) dest() []any {
	p := &r.place
	return []any{
		&r.num, &r.version, &p.EndpointID, &p.Location, &p.State.Status, &r.since, &r.lastScheduledAt, &r.lastCheckAt, &r.evidence,
	}
}

func (r *placeRow) sumDest() []any { return []any{&r.hour, &r.sums} }

// read returns the place that was scanned.
func (r *placeRow) read() (store.Place, error) {
	p := r.place
	p.State.Since, p.State.LastCheckAt = orZero(r.since), orZero(r.lastCheckAt)
	if r.lastScheduledAt != nil {
		p.State.LastCheckID = store.CheckID(p.EndpointID, p.Location, *r.lastScheduledAt)
	}
	if err := store.DecodeEvidence(&p.State, r.evidence); err != nil {
		return p, err
	}
	if r.hour == nil {
		return p, nil
	}
	p.Hour = store.Rollup{EndpointID: p.EndpointID, Location: p.Location, Begin: *r.hour}
	err := p.Hour.UnmarshalBinary(r.sums)
	return p, err
}

// scanPlace scans placeColumns.
func scanPlace(row pgx.CollectableRow) (store.Place, error) {
	var r placeRow
	if err := row.Scan(r.dest()...); err != nil {
		return store.Place{}, err
	}
	return r.read()
}

// placeUpdate gathers changes of places for one statement.
type placeUpdate struct {
	nums, versions          []int32
	statuses                []string
	sinces, slots, checkAts []*time.Time
	chains                  []*string
	headAts                 []*time.Time
	evidences               []string
	hours                   []*time.Time
	sums                    [][]byte
}

func (u *placeUpdate) add(num, version int32, p store.Place) error {
	s := p.State
	if s.Status == "" {
		s.Status = store.StatusPending
	}
	evidence, err := store.EncodeEvidence(s)
	if err != nil {
		return err
	}
	u.nums, u.versions = append(u.nums, num), append(u.versions, version)
	u.statuses, u.sinces = append(u.statuses, string(s.Status)), append(u.sinces, orNil(s.Since))
	var slot, headAt *time.Time
	if key, ok := store.ParseCheckID(s.LastCheckID); ok {
		slot = &key.ScheduledAt
	}
	var chain *string
	if name := store.HeadChain(s); name != "" {
		chain, headAt = &name, orNil(store.Stamp(s.Memory.Head.Seen))
	}
	u.slots, u.checkAts = append(u.slots, slot), append(u.checkAts, orNil(s.LastCheckAt))
	u.chains, u.headAts = append(u.chains, chain), append(u.headAts, headAt)
	u.evidences = append(u.evidences, string(evidence))
	var sums []byte
	if !p.Hour.Begin.IsZero() {
		if sums, err = p.Hour.MarshalBinary(); err != nil {
			return err
		}
	}
	u.hours, u.sums = append(u.hours, orNil(p.Hour.Begin)), append(u.sums, sums)
	return nil
}

// queue has the places changed, all of them or the batch fails: see stale.
func (u *placeUpdate) queue(batch *pgx.Batch) {
	if len(u.nums) == 0 {
		return
	}
	batch.Queue(`
		WITH changed AS (
		    UPDATE places p
		    SET version = p.version + 1, status = v.status, since = v.since, last_scheduled_at = v.slot,
		        last_check_at = v.check_at, chain = v.chain, head_at = v.head_at, evidence = v.evidence::json,
		        hour = v.hour, sums = v.sums
		    FROM unnest($1::integer[], $2::integer[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[],
		                $7::text[], $8::timestamptz[], $9::text[], $10::timestamptz[], $11::bytea[])
		         v (num, version, status, since, slot, check_at, chain, head_at, evidence, hour, sums)
		    WHERE p.num = v.num AND p.version = v.version
		    RETURNING 1
		)
		SELECT 1 / (COUNT(*) = $12::integer)::integer FROM changed`,
		u.nums, u.versions, u.statuses, u.sinces, u.slots, u.checkAts, u.chains, u.headAts, u.evidences, u.hours, u.sums,
		len(u.nums))
}
