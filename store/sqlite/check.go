package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Record implements store.Store. The judge sees endpoints without their headers and options.
//
//	Record
//	├─ readLedger    where the endpoints stand, what is kept already
//	├─ Ledger.Enter  pure: what the checks change
//	└─ writeEntries
func (db *DB) Record(ctx context.Context, checks []store.Check, judge store.Judge) ([]store.Outcome, error) {
	if len(checks) == 0 {
		return nil, nil
	}
	checks, err := store.TidyChecks(checks)
	if err != nil {
		return nil, err
	}
	var entries store.Entries
	err = db.write(ctx, "record checks", func(tx *sql.Tx) error {
		ledger, err := readLedger(ctx, tx, checks)
		if err != nil {
			return err
		}
		entries = ledger.Enter(checks, judge)
		return writeEntries(ctx, tx, entries)
	})
	if err != nil {
		return nil, err
	}
	return entries.Outcomes, nil
}

func readLedger(ctx context.Context, tx *sql.Tx, checks []store.Check) (*store.Ledger, error) {
	standings, err := standings(ctx, tx, endpointIDs(checks))
	if err != nil {
		return nil, err
	}
	kept, err := keptSlots(ctx, tx, checks)
	if err != nil {
		return nil, err
	}
	// Nobody shares a file by leases: none is ever lost.
	return &store.Ledger{Standings: standings, Kept: kept, Now: time.Now()}, nil
}

// standings returns where endpoints stand, by id.
func standings(ctx context.Context, tx *sql.Tx, ids []string) (map[string]*store.Standing, error) {
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (*store.Standing, error) {
		var e endpointRow
		var s stateRow
		if err := row.Scan(slices.Concat(e.dest(), s.dest())...); err != nil {
			return nil, err
		}
		state, err := s.state()
		return &store.Standing{Endpoint: e.bare(), State: state}, err
	}
	found, err := query(ctx, tx, scan, `
		SELECT `+endpointColumns+`, `+stateColumns+`
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		WHERE e.id IN (SELECT value FROM json_each(?))`, list)
	if err != nil {
		return nil, err
	}
	places, err := placesOf(ctx, tx, ids, true)
	if err != nil {
		return nil, err
	}
	open, err := openIncidents(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*store.Standing, len(found))
	for _, standing := range found {
		id := standing.Endpoint.ID
		standing.Places = places[id]
		stand(standing, open[id])
		byID[id] = standing
	}
	return byID, nil
}

func endpointIDs(checks []store.Check) []string {
	ids := make([]string, 0, len(checks))
	for _, c := range checks {
		ids = append(ids, c.EndpointID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// atSlots joins the checks c that are kept for slots, which are given as JSON. CROSS JOIN keeps the order: a look into the
// unique index for each slot.
const atSlots = `
	FROM json_each(?) slot
	CROSS JOIN checks c
	    ON c.endpoint_id = slot.value ->> 'EndpointID'
	    AND c.location = slot.value ->> 'Location'
	    AND c.scheduled_at = slot.value ->> 'ScheduledAt'`

// keptSlots returns which of the checks are kept already.
func keptSlots(ctx context.Context, tx *sql.Tx, checks []store.Check) (map[store.Slot]bool, error) {
	slots := make([]store.Slot, 0, len(checks))
	for _, c := range checks {
		slots = append(slots, c.Slot())
	}
	list, err := jsonText(slots)
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (s store.Slot, err error) {
		err = row.Scan(&s.EndpointID, &s.Location, &s.ScheduledAt)
		return s, err
	}
	found, err := query(ctx, tx, scan, `SELECT c.endpoint_id, c.location, c.scheduled_at`+atSlots, list)
	if err != nil {
		return nil, err
	}
	kept := make(map[store.Slot]bool, len(found))
	for _, slot := range found {
		kept[slot] = true
	}
	return kept, nil
}

func writeEntries(ctx context.Context, tx *sql.Tx, e store.Entries) error {
	if err := writeTurns(ctx, tx, e.Turns); err != nil {
		return err
	}
	if err := insertContracts(ctx, tx, e.Contracts); err != nil {
		return err
	}
	if err := insertNotices(ctx, tx, e.Notices); err != nil {
		return err
	}
	if err := insertChecks(ctx, tx, e.Checks); err != nil {
		return err
	}
	if err := insertTranscripts(ctx, tx, e.Transcripts); err != nil {
		return err
	}
	if err := putPlaces(ctx, tx, e.Places); err != nil {
		return err
	}
	if err := updateStates(ctx, tx, e.States); err != nil {
		return err
	}
	return addRollups(ctx, tx, e.Hours)
}

func insertChecks(ctx context.Context, tx *sql.Tx, checks []store.Check) error {
	var args [][]any
	for _, c := range checks {
		r := c.Result
		steps, warnings, facts, err := store.EncodeResult(r)
		if err != nil {
			return err
		}
		row := []any{
			c.ID, c.EndpointID, c.Location, c.ScheduledAt.UnixMicro(), r.StartedAt.UnixMicro(), store.Milliseconds(r.Duration),
			r.Kind, r.Era, r.Verdict, nil, nil, nil, nil, store.Milliseconds(r.RetryAfter),
			string(steps), string(warnings), string(facts), c.Maintenance,
		}
		if f := r.Failure; f != nil {
			row[9], row[10], row[11], row[12] = f.Step, f.Class, f.Code, f.Message
		}
		args = append(args, row)
	}
	return execEach(ctx, tx, `
		INSERT INTO checks (
		    id, endpoint_id, location, scheduled_at, started_at, duration_ms,
		    kind, era, verdict, failed_step, class, code, message, retry_after_ms, steps, warnings, facts,
		    maintenance
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args)
}

// checkList is the name of the list of checks in its cursors.
const checkList = "checks"

// Checks implements store.Store.
func (db *DB) Checks(ctx context.Context, f store.CheckFilter) (store.Page[store.Check], error) {
	w, err := whereChecks(f)
	if err != nil {
		return store.Page[store.Check]{}, err
	}
	limit := store.PageLimit(f.Limit)
	var found []store.Check
	err = db.read(ctx, "list checks", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanCheck, `
			SELECT `+checkColumns+`
			FROM checks c
			JOIN endpoints e ON e.id = c.endpoint_id
			`+w.String()+`
			ORDER BY c.scheduled_at DESC, c.id DESC
			LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Check]{}, err
	}
	return store.PageOf(found, limit, func(c store.Check) string {
		return store.TimeCursor(checkList, c.ScheduledAt, c.ID)
	}), nil
}

func whereChecks(f store.CheckFilter) (where, error) {
	var w where
	w.and(`c.endpoint_id = ?`, f.EndpointID)
	if !f.Since.IsZero() {
		w.and(`c.scheduled_at >= ?`, f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		w.and(`c.scheduled_at < ?`, f.Until.UnixMicro())
	}
	if f.Verdict != "" {
		w.and(`c.verdict = ?`, f.Verdict)
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(checkList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		w.and(`(c.scheduled_at, c.id) < (?, ?)`, at.UnixMicro(), id)
	}
	return w, nil
}

// Check implements store.Store.
func (db *DB) Check(ctx context.Context, id string) (store.Check, error) {
	var c store.Check
	err := db.read(ctx, "read check", func(tx *sql.Tx) (err error) {
		if c, err = findCheck(ctx, tx, id); err != nil {
			return notFound(err)
		}
		err = tx.QueryRowContext(ctx, `SELECT body FROM transcripts WHERE check_id = ?`, c.ID).Scan((*[]byte)(&c.Transcript))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return c, err
}

// findCheck looks a check up by its id, and then by what the id says: checks that were made before ids followed from slots
// are known by either.
func findCheck(ctx context.Context, tx *sql.Tx, id string) (store.Check, error) {
	c, err := scanCheck(tx.QueryRowContext(ctx, `
		SELECT `+checkColumns+`
		FROM checks c
		JOIN endpoints e ON e.id = c.endpoint_id
		WHERE c.id = ?`, id))
	key, ok := store.ParseCheckID(id)
	if !errors.Is(err, sql.ErrNoRows) || !ok {
		return c, err
	}
	found, err := query(ctx, tx, scanCheck, `
		SELECT `+checkColumns+`
		FROM checks c
		JOIN endpoints e ON e.id = c.endpoint_id
		WHERE c.endpoint_id = ? AND c.scheduled_at = ?`, key.EndpointID, key.ScheduledAt.UnixMicro())
	if err != nil {
		return store.Check{}, err
	}
	i := slices.IndexFunc(found, func(c store.Check) bool { return key.At(c.Location) })
	if i < 0 {
		return store.Check{}, sql.ErrNoRows
	}
	return found[i], nil
}

// checkColumns are what scanCheck scans, of checks c and endpoints e.
const checkColumns = `
	c.id, c.endpoint_id, e.slug, c.location, c.scheduled_at, c.started_at, c.duration_ms, c.kind, c.era, c.verdict,
	c.failed_step, c.class, c.code, c.message, c.retry_after_ms, c.steps, c.warnings, c.facts,
	c.maintenance`

func scanCheck(row scanner) (store.Check, error) {
	var (
		c                      store.Check
		r                      = &c.Result
		duration, retryAfter   float64
		step, class, message   sql.NullString
		code                   sql.NullInt64
		steps, warnings, facts string
	)
	err := row.Scan(&c.ID, &c.EndpointID, &c.Slug, &c.Location, timeInto{&c.ScheduledAt}, timeInto{&r.StartedAt}, &duration,
		&r.Kind, &r.Era, &r.Verdict, &step, &class, &code, &message, &retryAfter, &steps, &warnings, &facts, &c.Maintenance)
	if err != nil {
		return store.Check{}, err
	}
	r.Duration, r.RetryAfter = store.FromMilliseconds(duration), store.FromMilliseconds(retryAfter)
	if step.Valid {
		r.Failure = &probe.Failure{
			Step: step.String, Class: probe.Class(class.String), Code: int(code.Int64), Message: message.String,
		}
	}
	err = store.DecodeResult(r, []byte(steps), []byte(warnings), []byte(facts))
	return c, err
}
