package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// CreateMaintenance implements store.Store.
func (db *DB) CreateMaintenance(ctx context.Context, m store.Maintenance) (store.Maintenance, error) {
	m = store.EnrollMaintenance(m, time.Now())
	err := db.write(ctx, "create maintenance", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO maintenances (
			    id, title, text, starts_at, ends_at, schedule, duration_ms, everything, endpoints, tags, public, author,
			    created_at, updated_at
			) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			m.ID, m.Title, m.Text, m.StartsAt, orNil(m.EndsAt), m.Schedule, store.Milliseconds(m.Duration), m.All,
			notNil(m.Endpoints), notNil(m.Tags), m.Public, m.Author, m.CreatedAt, m.UpdatedAt)
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, m)
	})
	if err != nil {
		return store.Maintenance{}, err
	}
	return m, nil
}

// UpdateMaintenance implements store.Store. change may be called again when the transaction got in another's way.
func (db *DB) UpdateMaintenance(
	ctx context.Context, id string, change func(*store.Maintenance) error,
) (m store.Maintenance, err error) {
	err = db.write(ctx, "update maintenance", func(tx pgx.Tx) error {
		before, err := queryOne(ctx, tx, scanMaintenance, `
			SELECT `+maintenanceColumns+`
			FROM maintenances m
			WHERE m.id = $1
			FOR NO KEY UPDATE`, id)
		if err != nil {
			return err
		}
		if m, err = store.EditMaintenance(before, change, time.Now()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE maintenances
			SET title = $2, text = $3, starts_at = $4, ends_at = $5, schedule = $6, duration_ms = $7, everything = $8,
			    endpoints = $9, tags = $10, public = $11, author = $12, updated_at = $13
			WHERE id = $1`,
			m.ID, m.Title, m.Text, m.StartsAt, orNil(m.EndsAt), m.Schedule, store.Milliseconds(m.Duration), m.All,
			notNil(m.Endpoints), notNil(m.Tags), m.Public, m.Author, m.UpdatedAt)
		if err != nil {
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
	return db.write(ctx, "delete maintenance", func(tx pgx.Tx) error {
		m, err := queryOne(ctx, tx, scanMaintenance, `DELETE FROM maintenances m WHERE m.id = $1 RETURNING `+maintenanceColumns, id)
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, m, nil)
	})
}

// Maintenance implements store.Store.
func (db *DB) Maintenance(ctx context.Context, id string) (store.Maintenance, error) {
	m, err := queryOne(ctx, db.pool, scanMaintenance, `SELECT `+maintenanceColumns+` FROM maintenances m WHERE m.id = $1`, id)
	return m, explain("read maintenance", err)
}

// Maintenances implements store.Store.
func (db *DB) Maintenances(ctx context.Context, after time.Time) ([]store.Maintenance, error) {
	found, err := query(ctx, db.pool, scanMaintenance, `
		SELECT `+maintenanceColumns+`
		FROM maintenances m
		WHERE $1::timestamptz IS NULL OR m.ends_at IS NULL OR m.ends_at > $1
		ORDER BY m.starts_at, m.id`, orNil(after))
	return found, explain("list maintenances", err)
}

// maintenanceColumns are what scanMaintenance scans, of maintenances m.
const maintenanceColumns = `
	m.id, m.title, m.text, m.starts_at, m.ends_at, m.schedule, m.duration_ms, m.everything, NULLIF(m.endpoints, '{}'),
	NULLIF(m.tags, '{}'), m.public, m.author, m.created_at, m.updated_at`

func scanMaintenance(row pgx.CollectableRow) (m store.Maintenance, err error) {
	var endsAt *time.Time
	var duration float64
	err = row.Scan(
		&m.ID, &m.Title, &m.Text, &m.StartsAt, &endsAt, &m.Schedule, &duration, &m.All, &m.Endpoints,
		&m.Tags, &m.Public, &m.Author, &m.CreatedAt, &m.UpdatedAt)
	m.EndsAt, m.Duration = orZero(endsAt), store.FromMilliseconds(duration)
	return m, err
}
