package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Record implements store.Store. The judge sees endpoints without their headers and options.
//
//	Record
//	├─ lockLedger    locks the endpoints; where they stand, what is kept already
//	├─ Ledger.Enter  pure: what the checks change
//	└─ writeEntries
//
// Reading and writing are one round trip each.
func (db *DB) Record(ctx context.Context, checks []store.Check, judge store.Judge) ([]store.Outcome, error) {
	if len(checks) == 0 {
		return nil, nil
	}
	checks, err := store.TidyChecks(checks)
	if err != nil {
		return nil, err
	}
	var entries store.Entries
	err = db.write(ctx, "record checks", func(tx pgx.Tx) error {
		ledger, err := lockLedger(ctx, tx, checks)
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

// lockLedger locks the endpoints of the checks, in the order of their ids so that two groups cannot wait for each other,
// and then reads what is kept. The reading is in statements of its own: the one that waits for a lock sees the database
// as it was before the wait.
func lockLedger(ctx context.Context, tx pgx.Tx, checks []store.Check) (*store.Ledger, error) {
	ledger := &store.Ledger{
		Standings: map[string]*store.Standing{},
		Kept:      map[store.Slot]bool{},
		Hours:     map[store.Hour]store.Rollup{},
	}
	var batch pgx.Batch
	ids := endpointIDs(checks)
	batch.Queue(`SELECT id FROM endpoints WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE`, ids)
	readStandings(&batch, ids, ledger.Standings)
	readKept(&batch, checks, ledger.Kept)
	readHours(&batch, checks, ledger.Hours)
	return ledger, send(ctx, tx, &batch)
}

func endpointIDs(checks []store.Check) []string {
	ids := make([]string, 0, len(checks))
	for _, c := range checks {
		ids = append(ids, c.EndpointID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// readStandings puts where the endpoints stand into standings.
func readStandings(batch *pgx.Batch, ids []string, standings map[string]*store.Standing) {
	batch.Queue(`
		SELECT `+endpointColumns+`, `+stateColumns+`
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		WHERE e.id = ANY ($1)`, ids).Query(func(rows pgx.Rows) error {
		found, err := collect(rows, scanStanding)
		for _, standing := range found {
			standings[standing.Endpoint.ID] = standing
		}
		return err
	})
	batch.Queue(openIncidents, ids).Query(func(rows pgx.Rows) error {
		found, err := collect(rows, scanOpenIncident)
		for _, incident := range found {
			standings[incident.EndpointID].Open = &incident
		}
		return err
	})
}

func scanStanding(row pgx.CollectableRow) (*store.Standing, error) {
	var e endpointRow
	var s stateRow
	if err := row.Scan(slices.Concat(e.dest(), s.dest())...); err != nil {
		return nil, err
	}
	state, err := s.state()
	return &store.Standing{Endpoint: e.bare(), State: state}, err
}

// readKept puts those of the checks that are kept already into kept.
func readKept(batch *pgx.Batch, checks []store.Check, kept map[store.Slot]bool) {
	var ids, locations []string
	var times []time.Time
	for _, c := range checks {
		ids, locations, times = append(ids, c.EndpointID), append(locations, c.Location), append(times, c.ScheduledAt)
	}
	scan := func(row pgx.CollectableRow) (c store.Check, err error) {
		err = row.Scan(&c.EndpointID, &c.Location, &c.ScheduledAt)
		return c, err
	}
	batch.Queue(`
		SELECT c.endpoint_id, c.location, c.scheduled_at
		FROM unnest($1::text[], $2::text[], $3::timestamptz[]) slot (endpoint_id, location, scheduled_at)
		JOIN checks c USING (endpoint_id, location, scheduled_at)`, ids, locations, times).Query(func(rows pgx.Rows) error {
		found, err := collect(rows, scan)
		for _, c := range found {
			kept[c.Slot()] = true
		}
		return err
	})
}

func writeEntries(ctx context.Context, tx pgx.Tx, e store.Entries) error {
	if err := insertContracts(ctx, tx, e.Contracts); err != nil {
		return err
	}
	var batch pgx.Batch
	resolveIncidents(&batch, e.Resolved)
	insertIncidents(&batch, e.Opened)
	insertNotices(&batch, e.Notices)
	if err := insertChecks(&batch, e.Checks); err != nil {
		return err
	}
	insertTranscripts(&batch, e.Transcripts)
	if err := updateStates(&batch, e.States); err != nil {
		return err
	}
	if err := putHours(&batch, e.Hours); err != nil {
		return err
	}
	return send(ctx, tx, &batch)
}

func insertChecks(batch *pgx.Batch, checks []store.Check) error {
	for _, c := range checks {
		r := c.Result
		steps, warnings, facts, err := store.EncodeResult(r)
		if err != nil {
			return err
		}
		row := []any{
			c.ID, c.EndpointID, c.Location, c.ScheduledAt, r.StartedAt, store.Milliseconds(r.Duration),
			r.Kind, r.Era, r.Verdict, nil, nil, nil, nil, store.Milliseconds(r.RetryAfter), steps, warnings, facts,
		}
		if f := r.Failure; f != nil {
			row[9], row[10], row[11], row[12] = f.Step, f.Class, f.Code, f.Message
		}
		batch.Queue(`
			INSERT INTO checks (
			    id, endpoint_id, location, scheduled_at, started_at, duration_ms,
			    kind, era, verdict, failed_step, class, code, message, retry_after_ms, steps, warnings, facts
			) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`, row...)
	}
	return nil
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
	text := `
		SELECT ` + checkColumns + `
		FROM checks c
		JOIN endpoints e ON e.id = c.endpoint_id
		` + w.String() + `
		ORDER BY c.started_at DESC, c.id DESC
		LIMIT ` + w.arg(limit+1)
	found, err := query(ctx, db.pool, scanCheck, text, w.args...)
	if err != nil {
		return store.Page[store.Check]{}, explain("list checks", err)
	}
	return store.PageOf(found, limit, func(c store.Check) string {
		return store.TimeCursor(checkList, c.Result.StartedAt, c.ID)
	}), nil
}

func whereChecks(f store.CheckFilter) (where, error) {
	var w where
	w.and(`c.endpoint_id = ?`, f.EndpointID)
	if !f.Since.IsZero() {
		w.and(`c.started_at >= ?`, f.Since)
	}
	if !f.Until.IsZero() {
		w.and(`c.started_at < ?`, f.Until)
	}
	if f.Verdict != "" {
		w.and(`c.verdict = ?`, string(f.Verdict))
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(checkList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		w.and(`(c.started_at, c.id) < (?, ?)`, at, id)
	}
	return w, nil
}

// Check implements store.Store.
func (db *DB) Check(ctx context.Context, id string) (store.Check, error) {
	c, err := queryOne(ctx, db.pool, scanCheck, `
		SELECT `+checkColumns+`
		FROM checks c
		JOIN endpoints e ON e.id = c.endpoint_id
		WHERE c.id = $1`, id)
	if err != nil {
		return c, explain("read check", err)
	}
	body, err := query(ctx, db.pool, pgx.RowTo[[]byte], `SELECT body FROM transcripts WHERE check_id = $1`, id)
	if len(body) > 0 {
		c.Transcript = body[0]
	}
	return c, explain("read transcript", err)
}

// Prune implements store.Store.
func (db *DB) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	pruned := 0
	err := db.write(ctx, "prune checks", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			DELETE FROM checks
			WHERE id IN (SELECT id FROM checks WHERE started_at < $1 ORDER BY started_at LIMIT $2)`, before, max(0, limit))
		pruned = int(tag.RowsAffected())
		return err
	})
	return pruned, err
}

// checkColumns are what scanCheck scans, of checks c and endpoints e.
const checkColumns = `
	c.id, c.endpoint_id, e.slug, c.location, c.scheduled_at, c.started_at, c.duration_ms, c.kind, c.era, c.verdict,
	c.failed_step, c.class, c.code, c.message, c.retry_after_ms, c.steps, c.warnings, c.facts`

func scanCheck(row pgx.CollectableRow) (store.Check, error) {
	var (
		c                      store.Check
		r                      = &c.Result
		duration, retryAfter   float64
		step, class, message   *string
		code                   *int
		steps, warnings, facts []byte
	)
	err := row.Scan(&c.ID, &c.EndpointID, &c.Slug, &c.Location, &c.ScheduledAt, &r.StartedAt, &duration, &r.Kind, &r.Era,
		&r.Verdict, &step, &class, &code, &message, &retryAfter, &steps, &warnings, &facts)
	if err != nil {
		return store.Check{}, err
	}
	r.Duration, r.RetryAfter = store.FromMilliseconds(duration), store.FromMilliseconds(retryAfter)
	if step != nil {
		r.Failure = &probe.Failure{Step: *step, Class: probe.Class(*class), Code: *code, Message: *message}
	}
	err = store.DecodeResult(r, steps, warnings, facts)
	return c, err
}
