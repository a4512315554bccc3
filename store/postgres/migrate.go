package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rollcallhq/rollcall/migrations"
)

// Keys of advisory locks: any numbers that nobody else uses in this database.
const (
	lockSchema = 0x726f6c6c_00000001 // held while the schema changes
	lockNames  = 0x726f6c6c_00000002 // held from finding a name free until it is taken
	lockSetup  = 0x726f6c6c_00000003 // held from finding no user until there is one
	// held while partitions are made or dropped
	lockPartitions = 0x726f6c6c_00000004
	lockAnnounce   = 0x726f6c6c_00000005 // held from finding that nobody has said a thing until it is said
	// with the hash of a subject beside it: held while an incident of it is written that no place guards
	lockSubjects = 0x726f6c6c
)

// lock takes an advisory lock until the transaction ends.
func lock(ctx context.Context, tx pgx.Tx, key int64) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key)
	return err
}

// migrate takes the steps that are due in one transaction, under a lock that other instances wait for.
func migrate(ctx context.Context, pool *pgxpool.Pool) (from, to int, err error) {
	all, err := migrations.List(migrations.Postgres)
	if err != nil {
		return 0, 0, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, lockSchema); err != nil {
			return err
		}
		if from, err = version(ctx, tx); err != nil {
			return err
		}
		pending, err := migrations.Pending(all, from)
		if err != nil {
			return err
		}
		for _, m := range pending {
			if err := apply(ctx, tx, m); err != nil {
				return fmt.Errorf("step %s: %w", m.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("migrate: %w", err)
	}
	return from, migrations.Newest(all), nil
}

func apply(ctx context.Context, tx pgx.Tx, m migrations.Migration) error {
	if _, err := tx.Exec(ctx, m.SQL); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO schema_migrations (version, name, applied_at)
		VALUES ($1, $2, now())`, m.Version, m.Name)
	return err
}

// version returns the version of the schema, 0 for an empty database.
func version(ctx context.Context, tx pgx.Tx) (int, error) {
	_, err := tx.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS schema_migrations (
		    version    integer PRIMARY KEY,
		    name       text NOT NULL,
		    applied_at timestamptz NOT NULL
		)`)
	if err != nil {
		return 0, err
	}
	var v int
	err = tx.QueryRow(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_migrations`).Scan(&v)
	return v, err
}

// checkVersion returns an error unless the schema is the one this program knows.
func checkVersion(ctx context.Context, pool *pgxpool.Pool) error {
	all, err := migrations.List(migrations.Postgres)
	if err != nil {
		return err
	}
	var v int
	if err := pool.QueryRow(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_migrations`).Scan(&v); err != nil {
		return err
	}
	pending, err := migrations.Pending(all, v)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		return errors.New("the schema of the database is older than this program")
	}
	return nil
}
