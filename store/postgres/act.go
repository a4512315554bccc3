package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Act implements store.Store.
func (db *DB) Act(ctx context.Context, incidentID string, a store.Act) (store.Incident, error) {
	if err := a.Validate(); err != nil {
		return store.Incident{}, err
	}
	var after store.Incident
	err := db.write(ctx, "act on incident", func(tx pgx.Tx) error {
		before, err := lockIncident(ctx, tx, `i.id = $1`, incidentID)
		if err != nil {
			return err
		}
		acted, err := before.Take(a)
		if err != nil {
			return err
		}
		if a.Kind == store.ActReopen {
			if err := checkReopen(ctx, tx, before); err != nil {
				return err
			}
		}
		if err := writeActed(ctx, tx, acted); err != nil {
			return err
		}
		if err := hush(ctx, tx, a.Kind, acted.Incident); err != nil {
			return err
		}
		if err := tellActed(ctx, tx, acted); err != nil {
			return err
		}
		if after, err = readIncident(ctx, tx, incidentID); err != nil {
			return err
		}
		return audit(ctx, tx, string(a.Kind), nil, store.AuditAct{Incident: after, Act: a})
	})
	if err != nil {
		return store.Incident{}, err
	}
	return after, nil
}

// lockIncident keeps everybody else from an incident that a condition on i selects, and returns it with who was told of it. What is
// remembered of where its endpoints stand holds no longer. Endpoints and places come first, as in every transaction.
func lockIncident(ctx context.Context, tx pgx.Tx, condition string, arg string) (store.Incident, error) {
	var id, subject string
	var endpoints []string
	err := tx.QueryRow(ctx, `
		SELECT i.id, i.subject, ARRAY (
		    SELECT m.endpoint_id::text FROM incident_endpoints m WHERE m.incident_id = i.id
		    UNION
		    SELECT i.endpoint_id WHERE i.endpoint_id IS NOT NULL
		)
		FROM incidents i
		WHERE `+condition, arg).Scan(&id, &subject, &endpoints)
	if err != nil {
		return store.Incident{}, err
	}
	if err := overtake(ctx, tx, endpoints); err != nil {
		return store.Incident{}, err
	}
	if err := lockSubject(ctx, tx, subject); err != nil {
		return store.Incident{}, err
	}
	if _, err := tx.Exec(ctx, `SELECT 1 FROM incidents WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
		return store.Incident{}, err
	}
	// Once more under the lock: it may have ended meanwhile.
	return toldIncident(ctx, tx, `i.id = $2 AND `+condition, arg, id)
}

// overtake has whatever is remembered of endpoints and their places read anew.
func overtake(ctx context.Context, tx pgx.Tx, endpointIDs []string) error {
	if len(endpointIDs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `SELECT 1 FROM endpoints WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE`, endpointIDs)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `SELECT 1 FROM places WHERE endpoint_id = ANY ($1) ORDER BY num FOR NO KEY UPDATE`, endpointIDs)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE places SET version = version + 1 WHERE endpoint_id = ANY ($1)`, endpointIDs)
	return err
}

func checkReopen(ctx context.Context, tx pgx.Tx, i store.Incident) error {
	var open bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM incidents WHERE subject = $1 AND resolved_at IS NULL)`, i.Subject).Scan(&open)
	if err != nil || !open {
		return err
	}
	return store.Conflict{Field: "act", Message: "comes too late: another incident about the same is open"}
}

func writeActed(ctx context.Context, tx pgx.Tx, acted store.Acted) error {
	i := acted.Incident
	var batch pgx.Batch
	batch.Queue(`
		UPDATE incidents
		SET resolved_at = $2, resolution = NULLIF($3, ''), acknowledged_at = $4, acknowledged_by = $5, snoozed_until = $6
		WHERE id = $1`, i.ID, i.ResolvedAt, i.Resolution, i.AcknowledgedAt, i.AcknowledgedBy, i.SnoozedUntil)
	if err := insertEntries(&batch, []store.Entry{acted.Entry}); err != nil {
		return err
	}
	if acted.Withdraw {
		withdraw(&batch, i.ID)
	}
	if !acted.Defer.IsZero() {
		batch.Queue(`
			UPDATE notices
			SET due_at = GREATEST(due_at, $2)
			WHERE id IN (
			    SELECT id
			    FROM notices
			    WHERE incident_id = $1 AND kind IN ('reminder', 'escalation') AND status = 'waiting'
			    FOR UPDATE SKIP LOCKED
			)`, i.ID, acted.Defer)
	}
	return send(ctx, tx, &batch)
}

// hush has an endpoint that is not up open no incident because somebody declared the one that it had over, or no longer so.
func hush(ctx context.Context, tx pgx.Tx, kind store.ActKind, i store.Incident) error {
	if i.Kind != store.IncidentEndpoint {
		return nil
	}
	switch kind {
	case store.ActResolve:
		text, err := json.Marshal(store.Hushed{IncidentID: i.ID, Severity: i.Severity})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE endpoint_states
			SET version = version + 1, hushed = $2::text::json
			WHERE endpoint_id = $1 AND status <> 'up'`, i.EndpointID, string(text))
		return err
	case store.ActReopen:
		_, err := tx.Exec(ctx, `
			UPDATE endpoint_states
			SET version = version + 1, hushed = NULL
			WHERE endpoint_id = $1 AND hushed IS NOT NULL`, i.EndpointID)
		return err
	}
	return nil
}

// tellActed tells who was told of the opening, and those who have subscribed.
func tellActed(ctx context.Context, tx pgx.Tx, acted store.Acted) error {
	about, err := bareEndpoints(ctx, tx, endpointsOf(acted.Incident))
	if err != nil {
		return err
	}
	telling := acted.Telling(about)
	audience, err := readAudience(ctx, tx, telling.Kind != "", nil, []string{acted.Incident.ID})
	if err != nil {
		return err
	}
	var batch pgx.Batch
	insertNotices(&batch, slices.Concat(acted.Notices(about), audience.tell(telling)))
	return send(ctx, tx, &batch)
}

// endpointsOf returns the ids of the endpoints that an incident is about.
func endpointsOf(i store.Incident) []string {
	if i.EndpointID == "" {
		return i.Endpoints
	}
	return append([]string{i.EndpointID}, i.Endpoints...)
}

// Raise implements store.Store.
func (db *DB) Raise(
	ctx context.Context, i store.Incident, author, text string, channels []string,
) (raised store.Incident, opened bool, err error) {
	i, entry, err := store.EnrollIncident(i, author, text, time.Now())
	if err != nil {
		return store.Incident{}, false, err
	}
	err = db.write(ctx, "raise incident", func(tx pgx.Tx) error {
		if err := overtake(ctx, tx, endpointsOf(i)); err != nil {
			return err
		}
		if err := lockSubject(ctx, tx, i.Subject); err != nil {
			return err
		}
		id := i.ID
		err := tx.QueryRow(ctx, `SELECT id FROM incidents WHERE subject = $1 AND resolved_at IS NULL`, i.Subject).Scan(&id)
		if opened = errors.Is(err, pgx.ErrNoRows); opened {
			err = raise(ctx, tx, i, entry, channels)
		}
		if err != nil {
			return err
		}
		if raised, err = readIncident(ctx, tx, id); err != nil || !opened {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, raised)
	})
	if err != nil {
		return store.Incident{}, false, err
	}
	return raised, opened, nil
}

func raise(ctx context.Context, tx pgx.Tx, i store.Incident, entry store.Entry, channels []string) error {
	ids := endpointsOf(i)
	if err := checkAbout(ctx, tx, i); err != nil {
		return err
	}
	audience, err := readAudience(ctx, tx, i.Kind == store.IncidentManual, ids, []string{i.ID})
	if err != nil {
		return err
	}
	var batch pgx.Batch
	insertIncident(&batch, i)
	batch.Queue(`
		INSERT INTO incident_endpoints (incident_id, endpoint_id, joined_at)
		SELECT $1, v.id, $3
		FROM unnest($2::text[]) v (id)
		ON CONFLICT DO NOTHING`, i.ID, i.Endpoints, i.OpenedAt)
	if err := insertEntries(&batch, []store.Entry{entry}); err != nil {
		return err
	}
	notices := store.NoticesOf(i, store.NoticeOpened, channels, entry.At)
	for k := range notices {
		notices[k].EntryID = entry.ID
	}
	told := audience.tell(store.Telling{
		Incident: i, Endpoints: audience.about(ids...), Kind: store.NoticeOpened, Told: true, EntryID: entry.ID, At: entry.At,
	})
	insertNotices(&batch, slices.Concat(notices, told))
	return send(ctx, tx, &batch)
}

// checkAbout returns an Invalid unless all the endpoints of an incident are there.
func checkAbout(ctx context.Context, tx pgx.Tx, i store.Incident) error {
	found, err := query(ctx, tx, pgx.RowTo[string], `SELECT id FROM endpoints WHERE id = ANY ($1)`, endpointsOf(i))
	if err != nil {
		return err
	}
	there := setOf(found)
	var problems []probe.Problem
	if i.EndpointID != "" && !there[i.EndpointID] {
		problems = append(problems, probe.Problem{Field: "endpoint", Message: "is not there"})
	}
	for k, id := range i.Endpoints {
		if !there[id] {
			problems = append(problems, probe.Problem{Field: fmt.Sprintf("endpoints[%d]", k), Message: "is not there"})
		}
	}
	if len(problems) > 0 {
		return store.Invalid{Problems: problems}
	}
	return nil
}

// Clear implements store.Store.
func (db *DB) Clear(
	ctx context.Context, subject string, at time.Time, how store.Resolution, text string,
) (cleared store.Incident, err error) {
	err = db.write(ctx, "clear incident", func(tx pgx.Tx) error {
		open, err := lockIncident(ctx, tx, `i.subject = $1 AND i.resolved_at IS NULL`, store.CleanText(subject))
		if err != nil {
			return err
		}
		at := store.Stamp(at)
		acted := store.Acted{
			Incident: *store.Resolve(open, at, at, how),
			Entry: store.Entry{
				ID: store.NewID("ent"), IncidentID: open.ID, At: at, Kind: store.EntryResolved, Text: store.CleanText(text),
				Public: open.Kind == store.IncidentManual,
			},
			Kind: store.NoticeResolved, Withdraw: true,
		}
		if err := writeActed(ctx, tx, acted); err != nil {
			return err
		}
		if err := tellActed(ctx, tx, acted); err != nil {
			return err
		}
		if cleared, err = readIncident(ctx, tx, open.ID); err != nil {
			return err
		}
		return audit(ctx, tx, "clear", nil, cleared)
	})
	if err != nil {
		return store.Incident{}, err
	}
	return cleared, nil
}

// Timeline implements store.Store.
func (db *DB) Timeline(ctx context.Context, incidentID string) ([]store.Entry, error) {
	var all []store.Entry
	err := db.read(ctx, "read timeline", func(tx pgx.Tx) error {
		i, err := readIncident(ctx, tx, incidentID)
		if err != nil {
			return err
		}
		entries, err := query(ctx, tx, scanEntry, `
			SELECT `+entryColumns+`
			FROM incident_entries t
			WHERE t.incident_id = $1
			ORDER BY t.at, t.id`, i.ID)
		if err != nil {
			return err
		}
		contracts, err := contractEntries(ctx, tx, i)
		if err != nil {
			return err
		}
		deliveries, err := deliveryEntries(ctx, tx, i.ID)
		all = slices.Concat(entries, contracts, deliveries)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b store.Entry) int { return a.At.Compare(b.At) })
	return all, nil
}

// entryColumns are what entryRow scans, of incident_entries t.
const entryColumns = `t.id, t.incident_id, t.at, t.kind, t.author, t.text, t.public, t.severity, t.cause`

func scanEntry(row pgx.CollectableRow) (e store.Entry, err error) {
	var cause []byte
	if err := row.Scan(&e.ID, &e.IncidentID, &e.At, &e.Kind, &e.Author, &e.Text, &e.Public, &e.Severity, &cause); err != nil {
		return e, err
	}
	e.Cause, err = readFailure(cause)
	return e, err
}

// contractEntries returns the changes of the tool list of its endpoint while an incident is, or was, open.
func contractEntries(ctx context.Context, tx pgx.Tx, i store.Incident) ([]store.Entry, error) {
	scan := func(row pgx.CollectableRow) (store.Entry, error) {
		e := store.Entry{IncidentID: i.ID, Kind: store.EntryContract}
		err := row.Scan(&e.ID, &e.At, &e.Text)
		return e, err
	}
	return query(ctx, tx, scan, `
		SELECT v.id, v.at, v.title
		FROM events v
		WHERE v.endpoint_id = NULLIF($1, '') AND v.kind = $2 AND v.at >= $3 AND v.at <= COALESCE($4, 'infinity'::timestamptz)
		ORDER BY v.at, v.id
		LIMIT $5`, i.EndpointID, store.EventContractChanged, i.StartedAt, i.ResolvedAt, store.MaxEvents)
}

// deliveryEntries returns what was sent of an incident to the team's channels, and what could not be.
func deliveryEntries(ctx context.Context, tx pgx.Tx, incidentID string) ([]store.Entry, error) {
	scan := func(row pgx.CollectableRow) (store.Entry, error) {
		e := store.Entry{IncidentID: incidentID, Kind: store.EntryFailed}
		var number int
		var outcome string
		err := row.Scan(&e.NoticeID, &number, &e.At, &outcome, &e.Text, &e.NoticeKind, &e.ChannelID, &e.ChannelName)
		e.ID = fmt.Sprintf("%s/%d", e.NoticeID, number)
		if outcome == store.OutcomeSent {
			e.Kind = store.EntrySent
		}
		return e, err
	}
	return query(ctx, tx, scan, `
		SELECT a.notice_id, a.attempt, a.at, a.outcome, a.error, n.kind, c.id, c.name
		FROM notices n
		JOIN channels c ON c.id = n.channel_id
		JOIN notice_attempts a ON a.notice_id = n.id
		WHERE n.incident_id = $1 AND c.audience = 'team' AND a.outcome <> 'passed'
		ORDER BY a.at, n.seq, a.attempt`, incidentID)
}
