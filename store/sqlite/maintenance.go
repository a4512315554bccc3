package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// CreateMaintenance implements store.Store.
func (db *DB) CreateMaintenance(ctx context.Context, m store.Maintenance) (store.Maintenance, error) {
	m = store.EnrollMaintenance(m, time.Now())
	err := db.write(ctx, "create maintenance", func(tx *sql.Tx) error {
		if err := putMaintenance(ctx, tx, m); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, m)
	})
	if err != nil {
		return store.Maintenance{}, err
	}
	return m, nil
}

// UpdateMaintenance implements store.Store. change must not call the store.
func (db *DB) UpdateMaintenance(
	ctx context.Context, id string, change func(*store.Maintenance) error,
) (m store.Maintenance, err error) {
	err = db.write(ctx, "update maintenance", func(tx *sql.Tx) error {
		before, err := maintenance(ctx, tx, id)
		if err != nil {
			return err
		}
		if m, err = store.EditMaintenance(before, change, time.Now()); err != nil {
			return err
		}
		if err := putMaintenance(ctx, tx, m); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditUpdate, before, m)
	})
	if err != nil {
		return store.Maintenance{}, err
	}
	return m, nil
}

// DeleteMaintenance implements store.Store.
func (db *DB) DeleteMaintenance(ctx context.Context, id string) error {
	return db.write(ctx, "delete maintenance", func(tx *sql.Tx) error {
		m, err := maintenance(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM maintenances WHERE id = ?`, id); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, m, nil)
	})
}

// Maintenance implements store.Store.
func (db *DB) Maintenance(ctx context.Context, id string) (m store.Maintenance, err error) {
	err = db.read(ctx, "read maintenance", func(tx *sql.Tx) (err error) {
		m, err = maintenance(ctx, tx, id)
		return err
	})
	return m, err
}

// Maintenances implements store.Store.
func (db *DB) Maintenances(ctx context.Context, after time.Time) (found []store.Maintenance, err error) {
	var w where
	if !after.IsZero() {
		w.and(`(m.ends_at IS NULL OR m.ends_at > ?)`, after.UnixMicro())
	}
	err = db.read(ctx, "list maintenances", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanMaintenance, `
			SELECT `+maintenanceColumns+`
			FROM maintenances m
			`+w.String()+`
			ORDER BY m.starts_at, m.id`, w.args...)
		return err
	})
	return found, err
}

func maintenance(ctx context.Context, tx *sql.Tx, id string) (store.Maintenance, error) {
	m, err := scanMaintenance(tx.QueryRowContext(ctx, `SELECT `+maintenanceColumns+` FROM maintenances m WHERE m.id = ?`, id))
	return m, notFound(err)
}

// maintenanceColumns are what scanMaintenance scans, of maintenances m.
const maintenanceColumns = `
	m.id, m.title, m.text, m.starts_at, m.ends_at, m.schedule, m.duration_ms, m.everything, m.endpoints, m.tags, m.public,
	m.author, m.created_at, m.updated_at`

func scanMaintenance(row scanner) (store.Maintenance, error) {
	var m store.Maintenance
	var duration float64
	err := row.Scan(&m.ID, &m.Title, &m.Text, timeInto{&m.StartsAt}, timeInto{&m.EndsAt}, &m.Schedule, &duration, &m.All,
		textsInto{&m.Endpoints}, textsInto{&m.Tags}, &m.Public, &m.Author, timeInto{&m.CreatedAt}, timeInto{&m.UpdatedAt})
	m.Duration = store.FromMilliseconds(duration)
	return m, err
}

func putMaintenance(ctx context.Context, tx *sql.Tx, m store.Maintenance) error {
	endpoints, err := jsonText(append([]string{}, m.Endpoints...))
	if err != nil {
		return err
	}
	tags, err := jsonText(append([]string{}, m.Tags...))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO maintenances (
		    id, title, text, starts_at, ends_at, schedule, duration_ms, everything, endpoints, tags, public, author, created_at, updated_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE
		SET title = excluded.title, text = excluded.text, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
		    schedule = excluded.schedule, duration_ms = excluded.duration_ms, everything = excluded.everything,
		    endpoints = excluded.endpoints, tags = excluded.tags, public = excluded.public, author = excluded.author,
		    updated_at = excluded.updated_at`,
		m.ID, m.Title, m.Text, m.StartsAt.UnixMicro(), micros(m.EndsAt), m.Schedule, store.Milliseconds(m.Duration), m.All,
		endpoints, tags, m.Public, m.Author, m.CreatedAt.UnixMicro(), m.UpdatedAt.UnixMicro())
	return err
}
