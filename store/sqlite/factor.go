package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// PutFactor implements store.Store.
func (db *DB) PutFactor(ctx context.Context, f store.Factor) (store.Factor, error) {
	f = store.EnrollFactor(f, time.Now())
	err := db.write(ctx, "put second factor", func(tx *sql.Tx) error {
		before, err := db.factor(ctx, tx, f.UserID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if before.ConfirmedAt != nil {
			return store.ErrHasFactor
		}
		if _, err := user(ctx, tx, `u.id = ?`, f.UserID); err != nil {
			return err
		}
		if err := db.putFactor(ctx, tx, f); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, f)
	})
	if err != nil {
		return store.Factor{}, err
	}
	return f, nil
}

// Factor implements store.Store.
func (db *DB) Factor(ctx context.Context, userID string) (f store.Factor, err error) {
	err = db.read(ctx, "read second factor", func(tx *sql.Tx) (err error) {
		f, err = db.factor(ctx, tx, userID)
		return err
	})
	return f, err
}

// UpdateFactor implements store.Store. change must not call the store.
func (db *DB) UpdateFactor(ctx context.Context, userID string, change func(*store.Factor) error) (f store.Factor, err error) {
	err = db.write(ctx, "update second factor", func(tx *sql.Tx) error {
		before, err := db.factor(ctx, tx, userID)
		if err != nil {
			return err
		}
		if f, err = store.EditFactor(before, change); err != nil {
			return err
		}
		if err := db.putFactor(ctx, tx, f); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditUpdate, before, f)
	})
	if err != nil {
		return store.Factor{}, err
	}
	return f, nil
}

// DeleteFactor implements store.Store.
func (db *DB) DeleteFactor(ctx context.Context, userID string) error {
	return db.write(ctx, "delete second factor", func(tx *sql.Tx) error {
		if err := execOne(ctx, tx, `DELETE FROM second_factors WHERE user_id = ?`, userID); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, store.Factor{UserID: userID}, nil)
	})
}

func (db *DB) factor(ctx context.Context, tx *sql.Tx, userID string) (store.Factor, error) {
	f := store.Factor{UserID: userID}
	var sealed []byte
	err := tx.QueryRowContext(ctx, `
		SELECT secret, confirmed_at, last_step, recovery, created_at
		FROM second_factors
		WHERE user_id = ?`, userID).
		Scan(&sealed, timeOrNil{&f.ConfirmedAt}, &f.LastStep, textsInto{&f.Recovery}, timeInto{&f.CreatedAt})
	if err != nil {
		return store.Factor{}, notFound(err)
	}
	f.Secret, err = db.sealer.OpenFactor(userID, sealed)
	return f, err
}

func (db *DB) putFactor(ctx context.Context, tx *sql.Tx, f store.Factor) error {
	recovery, err := jsonText(append([]string{}, f.Recovery...))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO second_factors (user_id, secret, confirmed_at, last_step, recovery, created_at)
		VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (user_id) DO UPDATE
		SET secret = excluded.secret, confirmed_at = excluded.confirmed_at, last_step = excluded.last_step,
		    recovery = excluded.recovery, created_at = excluded.created_at`,
		f.UserID, db.sealer.SealFactor(f), microsOrNil(f.ConfirmedAt), f.LastStep, recovery, f.CreatedAt.UnixMicro())
	return err
}
