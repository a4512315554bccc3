package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// PutFactor implements store.Store.
func (db *DB) PutFactor(ctx context.Context, f store.Factor) (store.Factor, error) {
	f = store.EnrollFactor(f, time.Now())
	err := db.write(ctx, "put second factor", func(tx pgx.Tx) error {
		if _, err := lockUser(ctx, tx, f.UserID); err != nil {
			return err
		}
		before, err := db.factor(ctx, tx, f.UserID, `FOR UPDATE`)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if before.ConfirmedAt != nil {
			return store.ErrHasFactor
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
func (db *DB) Factor(ctx context.Context, userID string) (store.Factor, error) {
	f, err := db.factor(ctx, db.pool, userID, ``)
	return f, explain("read second factor", err)
}

// UpdateFactor implements store.Store. change may be called again when the transaction got in another's way.
func (db *DB) UpdateFactor(ctx context.Context, userID string, change func(*store.Factor) error) (f store.Factor, err error) {
	err = db.write(ctx, "update second factor", func(tx pgx.Tx) error {
		before, err := db.factor(ctx, tx, userID, `FOR UPDATE`)
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
	return db.write(ctx, "delete second factor", func(tx pgx.Tx) error {
		if err := execOne(ctx, tx, `DELETE FROM second_factors WHERE user_id = $1`, userID); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, store.Factor{UserID: userID}, nil)
	})
}

// factor returns a second factor as it is kept; pgx.ErrNoRows when there is none.
func (db *DB) factor(ctx context.Context, q querier, userID, locking string) (store.Factor, error) {
	f := store.Factor{UserID: userID}
	var sealed []byte
	err := q.QueryRow(ctx, `
		SELECT secret, confirmed_at, last_step, recovery, created_at
		FROM second_factors
		WHERE user_id = $1
		`+locking, userID).Scan(&sealed, &f.ConfirmedAt, &f.LastStep, &f.Recovery, &f.CreatedAt)
	if err != nil {
		return store.Factor{}, err
	}
	if len(f.Recovery) == 0 {
		f.Recovery = nil
	}
	f.Secret, err = db.sealer.OpenFactor(userID, sealed)
	return f, err
}

func (db *DB) putFactor(ctx context.Context, tx pgx.Tx, f store.Factor) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO second_factors (user_id, secret, confirmed_at, last_step, recovery, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (user_id) DO UPDATE
		SET secret = excluded.secret, confirmed_at = excluded.confirmed_at, last_step = excluded.last_step,
		    recovery = excluded.recovery, created_at = excluded.created_at`,
		f.UserID, db.sealer.SealFactor(f), f.ConfirmedAt, f.LastStep, notNil(f.Recovery), f.CreatedAt)
	return err
}
