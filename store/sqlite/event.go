package sqlite

import (
	"context"
	"database/sql"

	"github.com/rollcallhq/rollcall/store"
)

func insertEvent(ctx context.Context, tx *sql.Tx, ev store.Event) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO events (id, endpoint_id, at, kind, severity, title, data)
		VALUES (?, NULLIF(?, ''), ?, ?, ?, ?, ?)`,
		ev.ID, ev.EndpointID, ev.At.UnixMicro(), ev.Kind, ev.Severity, ev.Title, string(ev.Data))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		DELETE FROM events
		WHERE id IN (
		    SELECT id FROM events WHERE endpoint_id IS NULLIF(?, '') AND kind = ? ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?
		)`, ev.EndpointID, ev.Kind, store.MaxEvents)
	return err
}

// Announce implements store.Store.
func (db *DB) Announce(ctx context.Context, ev store.Event) (int, error) {
	ev, err := store.EnrollEvent(ev)
	if err != nil {
		return 0, err
	}
	told := 0
	err = db.write(ctx, "announce", func(tx *sql.Tx) error {
		var said bool
		err := tx.QueryRowContext(ctx, `
			SELECT EXISTS (SELECT 1 FROM events WHERE endpoint_id IS NULL AND kind = ? AND title = ? AND at > ?)`,
			ev.Kind, ev.Title, ev.At.Add(-store.AnnouncedOnce).UnixMicro()).Scan(&said)
		if err != nil || said {
			return err
		}
		if err := insertEvent(ctx, tx, ev); err != nil {
			return err
		}
		channels, err := query(ctx, tx, scanString, `SELECT DISTINCT channel_id FROM endpoint_channels`)
		if err != nil {
			return err
		}
		told = len(channels)
		return insertNotices(ctx, tx, store.ServiceNotices(ev, channels))
	})
	if err != nil {
		return 0, err
	}
	return told, nil
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
		w.and(`(v.at, v.id) < (?, ?)`, at.UnixMicro(), id)
	}
	limit := store.PageLimit(f.Limit)
	scan := func(row scanner) (ev store.Event, err error) {
		var e eventRow
		err = row.Scan(e.dest()...)
		return e.event(), err
	}
	var found []store.Event
	err := db.read(ctx, "list events", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scan, `
			SELECT `+eventColumns+`
			FROM events v
			`+w.String()+`
			ORDER BY v.at DESC, v.id DESC
			LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Event]{}, err
	}
	return store.PageOf(found, limit, func(ev store.Event) string { return store.TimeCursor(eventList, ev.At, ev.ID) }), nil
}

// eventColumns are what eventRow scans, of events v.
const eventColumns = `v.id, COALESCE(v.endpoint_id, ''), v.at, v.kind, v.severity, v.title, v.data`

// eventRow is an event being scanned.
type eventRow struct {
	ev   store.Event
	data string
}

func (r *eventRow) dest() []any {
	ev := &r.ev
	return []any{&ev.ID, &ev.EndpointID, timeInto{&ev.At}, &ev.Kind, &ev.Severity, &ev.Title, &r.data}
}

func (r *eventRow) event() store.Event {
	ev := r.ev
	ev.Data = []byte(r.data)
	return ev
}
