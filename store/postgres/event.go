package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

func insertEvent(batch *pgx.Batch, ev store.Event) {
	batch.Queue(`
		INSERT INTO events (id, endpoint_id, at, kind, severity, title, data)
		VALUES ($1, NULLIF($2, ''), $3, $4, $5, $6, $7::text::jsonb)`,
		ev.ID, ev.EndpointID, ev.At, ev.Kind, ev.Severity, ev.Title, string(ev.Data))
	// An index finds what is NULL only when it is asked for by that word.
	whose := `endpoint_id = $1`
	if ev.EndpointID == "" {
		whose = `endpoint_id IS NULL AND $1::text = ''`
	}
	batch.Queue(`
		DELETE FROM events
		WHERE id IN (SELECT id FROM events WHERE `+whose+` AND kind = $2 ORDER BY at DESC, id DESC OFFSET $3)`,
		ev.EndpointID, ev.Kind, store.MaxEvents)
}

// Announce implements store.Store.
func (db *DB) Announce(ctx context.Context, ev store.Event) (int, error) {
	ev, err := store.EnrollEvent(ev)
	if err != nil {
		return 0, err
	}
	told := 0
	err = db.write(ctx, "announce", func(tx pgx.Tx) error {
		if err := lock(ctx, tx, lockAnnounce); err != nil {
			return err
		}
		var said bool
		err := tx.QueryRow(ctx, `
			SELECT EXISTS (SELECT 1 FROM events WHERE endpoint_id IS NULL AND kind = $1 AND title = $2 AND at > $3)`,
			ev.Kind, ev.Title, ev.At.Add(-store.AnnouncedOnce)).Scan(&said)
		if err != nil || said {
			return err
		}
		channels, err := query(ctx, tx, pgx.RowTo[string], `SELECT DISTINCT channel_id FROM endpoint_channels ORDER BY channel_id`)
		if err != nil {
			return err
		}
		var batch pgx.Batch
		insertEvent(&batch, ev)
		notices := store.ServiceNotices(ev, channels)
		insertNotices(&batch, notices)
		told = len(notices)
		return send(ctx, tx, &batch)
	})
	return told, err
}

// eventList is the name of the list of events in its cursors.
const eventList = "events"

// Events implements store.Store.
func (db *DB) Events(ctx context.Context, f store.EventFilter) (store.Page[store.Event], error) {
	var w where
	w.and(`v.endpoint_id = ?`, f.EndpointID)
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(eventList, f.Cursor)
		if err != nil {
			return store.Page[store.Event]{}, err
		}
		w.and(`(v.at, v.id) < (?, ?)`, at, id)
	}
	limit := store.PageLimit(f.Limit)
	text := `
		SELECT ` + eventColumns + `
		FROM events v
		` + w.String() + `
		ORDER BY v.at DESC, v.id DESC
		LIMIT ` + w.arg(limit+1)
	found, err := query(ctx, db.pool, scanEvent, text, w.args...)
	if err != nil {
		return store.Page[store.Event]{}, explain("list events", err)
	}
	return store.PageOf(found, limit, func(ev store.Event) string { return store.TimeCursor(eventList, ev.At, ev.ID) }), nil
}

// eventColumns are what scanEvent scans, of events v.
const eventColumns = `v.id, COALESCE(v.endpoint_id, ''), v.at, v.kind, v.severity, v.title, v.data`

func scanEvent(row pgx.CollectableRow) (ev store.Event, err error) {
	err = row.Scan(&ev.ID, &ev.EndpointID, &ev.At, &ev.Kind, &ev.Severity, &ev.Title, (*[]byte)(&ev.Data))
	return ev, err
}
