package sqlite

import (
	"context"
	"database/sql"

	"github.com/rollcallhq/rollcall/store"
)

// placeColumns are what placeRow scans, of places p; hourColumns follow where the running hour is wanted.
const (
	placeColumns = `p.endpoint_id, p.location, p.status, p.since, p.last_scheduled_at, p.last_check_at, p.evidence`
	hourColumns  = `p.hour, p.sums`
)

// placeRow is a place being scanned.
type placeRow struct {
	place    store.Place
	slot     sql.NullInt64
	evidence []byte
	sums     []byte
}

func (r *placeRow) dest() []any {
	p := &r.place
	return []any{
		&p.EndpointID, &p.Location, &p.State.Status, timeInto{&p.State.Since}, &r.slot, timeInto{&p.State.LastCheckAt},
		&r.evidence,
	}
}

func (r *placeRow) hourDest() []any { return []any{timeInto{&r.place.Hour.Begin}, &r.sums} }

// read returns the place that was scanned.
func (r *placeRow) read() (store.Place, error) {
	p := r.place
	if r.slot.Valid {
		p.State.LastCheckID = store.CheckID(p.EndpointID, p.Location, fromMicros(r.slot.Int64))
	}
	if err := store.DecodeEvidence(&p.State, r.evidence); err != nil {
		return p, err
	}
	if p.Hour.Begin.IsZero() {
		return p, nil
	}
	p.Hour.EndpointID, p.Hour.Location = p.EndpointID, p.Location
	err := p.Hour.UnmarshalBinary(r.sums)
	return p, err
}

func scanPlace(row scanner) (store.Place, error) {
	var r placeRow
	if err := row.Scan(r.dest()...); err != nil {
		return store.Place{}, err
	}
	return r.read()
}

func scanPlaceWithHour(row scanner) (store.Place, error) {
	var r placeRow
	if err := row.Scan(append(r.dest(), r.hourDest()...)...); err != nil {
		return store.Place{}, err
	}
	return r.read()
}

// placesOf returns the places of endpoints, by endpoint id and then by location; with their running hours when told so.
func placesOf(ctx context.Context, tx *sql.Tx, endpointIDs []string, withHours bool) (map[string][]store.Place, error) {
	list, err := jsonText(endpointIDs)
	if err != nil {
		return nil, err
	}
	columns, scan := placeColumns, scanPlace
	if withHours {
		columns, scan = placeColumns+`, `+hourColumns, scanPlaceWithHour
	}
	// CROSS JOIN keeps the order: a look into the unique index for each endpoint.
	found, err := query(ctx, tx, scan, `
		SELECT `+columns+`
		FROM json_each(?) id
		CROSS JOIN places p ON p.endpoint_id = id.value
		ORDER BY p.location`, list)
	if err != nil {
		return nil, err
	}
	places := make(map[string][]store.Place, len(endpointIDs))
	for _, p := range found {
		places[p.EndpointID] = append(places[p.EndpointID], p)
	}
	return places, nil
}

func putPlaces(ctx context.Context, tx *sql.Tx, places []store.Place) error {
	args := make([][]any, 0, len(places))
	for _, p := range places {
		row, err := placeArgs(p)
		if err != nil {
			return err
		}
		args = append(args, row)
	}
	return execEach(ctx, tx, `
		INSERT INTO places (
		    endpoint_id, location, status, since, last_scheduled_at, last_check_at, chain, head_at, evidence, hour, sums
		) VALUES (?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, ?, ?)
		ON CONFLICT (endpoint_id, location) DO UPDATE
		SET version = version + 1, status = excluded.status, since = excluded.since,
		    last_scheduled_at = excluded.last_scheduled_at, last_check_at = excluded.last_check_at,
		    chain = excluded.chain, head_at = excluded.head_at, evidence = excluded.evidence,
		    hour = excluded.hour, sums = excluded.sums`, args)
}

func placeArgs(p store.Place) ([]any, error) {
	s := p.State
	if s.Status == "" {
		s.Status = store.StatusPending
	}
	evidence, err := store.EncodeEvidence(s)
	if err != nil {
		return nil, err
	}
	var slot, headAt any
	if key, ok := store.ParseCheckID(s.LastCheckID); ok {
		slot = key.ScheduledAt.UnixMicro()
	}
	chain := store.HeadChain(s)
	if chain != "" {
		headAt = micros(store.Stamp(s.Memory.Head.Seen))
	}
	var sums any
	if !p.Hour.Begin.IsZero() {
		if sums, err = p.Hour.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	return []any{
		p.EndpointID, p.Location, s.Status, micros(s.Since), slot, micros(s.LastCheckAt), chain, headAt, string(evidence),
		micros(p.Hour.Begin), sums,
	}, nil
}
