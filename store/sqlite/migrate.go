package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rollcallhq/rollcall/migrations"
)

// migrate takes the steps that are due in one transaction, whose lock other processes wait for.
func migrate(ctx context.Context, writer *sql.DB) (from, to int, err error) {
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		return 0, 0, err
	}
	err = inTx(ctx, writer, "migrate", func(tx *sql.Tx) error {
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
		return 0, 0, err
	}
	return from, migrations.Newest(all), nil
}

func apply(ctx context.Context, tx *sql.Tx, m migrations.Migration) error {
	if _, err := tx.ExecContext(ctx, m.SQL); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO schema_migrations (version, name, applied_at)
		VALUES (?, ?, ?)`, m.Version, m.Name, time.Now().UnixMicro())
	return err
}

// version returns the version of the schema, 0 for an empty file.
func version(ctx context.Context, tx *sql.Tx) (int, error) {
	_, err := tx.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS schema_migrations (
		    version    INTEGER PRIMARY KEY,
		    name       TEXT NOT NULL,
		    applied_at INTEGER NOT NULL -- microseconds since 1970-01-01 UTC
		) STRICT`)
	if err != nil {
		return 0, err
	}
	var v int
	err = tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_migrations`).Scan(&v)
	return v, err
}

// checkVersion returns an error unless the schema is the one this program knows.
func checkVersion(ctx context.Context, tx *sql.Tx) error {
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		return err
	}
	var v int
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_migrations`).Scan(&v); err != nil {
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
