package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func insertEntries(ctx context.Context, tx *sql.Tx, entries []store.Entry) error {
	var args [][]any
	for _, e := range entries {
		cause, err := failureText(e.Cause)
		if err != nil {
			return err
		}
		args = append(args, []any{e.ID, e.IncidentID, e.At.UnixMicro(), e.Kind, e.Author, e.Text, e.Public, e.Severity, cause})
	}
	return execEach(ctx, tx, `
		INSERT INTO incident_entries (id, incident_id, at, kind, author, text, public, severity, cause)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, args)
}

// Timeline implements store.Store.
func (db *DB) Timeline(ctx context.Context, incidentID string) ([]store.Entry, error) {
	var all []store.Entry
	err := db.read(ctx, "read timeline", func(tx *sql.Tx) error {
		i, err := incident(ctx, tx, incidentID)
		if err != nil {
			return err
		}
		entries, err := query(ctx, tx, scanEntry, `
			SELECT `+entryColumns+`
			FROM incident_entries t
			WHERE t.incident_id = ?
			ORDER BY t.at, t.id`, incidentID)
		if err != nil {
			return err
		}
		contracts, err := contractEntries(ctx, tx, i)
		if err != nil {
			return err
		}
		deliveries, err := deliveryEntries(ctx, tx, incidentID)
		all = slices.Concat(entries, contracts, deliveries)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b store.Entry) int { return a.At.Compare(b.At) })
	return all, nil
}

// PublicEntries implements store.Store.
func (db *DB) PublicEntries(ctx context.Context, incidentIDs []string) (map[string][]store.Entry, error) {
	if len(incidentIDs) == 0 {
		return nil, nil
	}
	list, err := jsonText(incidentIDs)
	if err != nil {
		return nil, err
	}
	var found []store.Entry
	err = db.read(ctx, "read public entries", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanEntry, `
			SELECT `+entryColumns+`
			FROM (
			    SELECT *, row_number() OVER (PARTITION BY incident_id ORDER BY at DESC, id DESC) AS back
			    FROM incident_entries
			    WHERE incident_id IN (SELECT value FROM json_each(?)) AND public AND text <> ''
			) t
			WHERE t.back <= ?
			ORDER BY t.incident_id, t.at, t.id`, list, store.MaxPublicEntries)
		return err
	})
	return store.EntriesByIncident(found), err
}

// contractEntries returns the changes of the tool list of its endpoint while an incident is, or was, open.
func contractEntries(ctx context.Context, tx *sql.Tx, i store.Incident) ([]store.Entry, error) {
	scan := func(row scanner) (store.Entry, error) {
		e := store.Entry{IncidentID: i.ID, Kind: store.EntryContract}
		err := row.Scan(&e.ID, timeInto{&e.At}, &e.Text)
		return e, err
	}
	return query(ctx, tx, scan, `
		SELECT v.id, v.at, v.title
		FROM events v
		WHERE v.endpoint_id = NULLIF(?, '') AND v.kind = ? AND v.at >= ? AND (?4 IS NULL OR v.at <= ?4)
		ORDER BY v.at, v.id
		LIMIT ?5`, i.EndpointID, store.EventContractChanged, i.StartedAt.UnixMicro(), microsOrNil(i.ResolvedAt), store.MaxEvents)
}

// deliveryEntries returns what was sent of an incident to the team's channels, and what could not be.
func deliveryEntries(ctx context.Context, tx *sql.Tx, incidentID string) ([]store.Entry, error) {
	scan := func(row scanner) (store.Entry, error) {
		e := store.Entry{IncidentID: incidentID, Kind: store.EntryFailed}
		var number int
		var outcome string
		err := row.Scan(&e.NoticeID, &number, timeInto{&e.At}, &outcome, &e.Text, &e.NoticeKind, &e.ChannelID, &e.ChannelName)
		e.ID = fmt.Sprintf("%s/%d", e.NoticeID, number)
		if outcome == store.OutcomeSent {
			e.Kind = store.EntrySent
		}
		return e, err
	}
	return query(ctx, tx, scan, `
		SELECT a.notice_id, a.attempt, a.at, a.outcome, a.error, n.kind, c.id, c.name
		FROM notices n
		JOIN channels c ON c.id = n.channel_id AND c.audience = 'team'
		JOIN notice_attempts a ON a.notice_id = n.id AND a.outcome <> 'passed'
		WHERE n.incident_id = ?
		ORDER BY a.at, n.seq, a.attempt`, incidentID)
}

// entryColumns are what scanEntry scans, of incident_entries t.
const entryColumns = `t.id, t.incident_id, t.at, t.kind, t.author, t.text, t.public, t.severity, t.cause`

func scanEntry(row scanner) (store.Entry, error) {
	var e store.Entry
	var cause []byte
	err := row.Scan(&e.ID, &e.IncidentID, timeInto{&e.At}, &e.Kind, &e.Author, &e.Text, &e.Public, &e.Severity, &cause)
	if err != nil || len(cause) == 0 {
		return e, err
	}
	e.Cause = new(probe.Failure)
	return e, json.Unmarshal(cause, e.Cause)
}
