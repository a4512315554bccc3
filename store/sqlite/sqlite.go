// Package sqlite remembers in a SQLite file what store.Store says a database must. One process at a time serves from a
// file; others may read it, or change it for a moment, meanwhile.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/rollcallhq/rollcall/store"
)

var _ store.Store = (*DB)(nil)

// DB is a store in a SQLite file.
type DB struct {
	// SQLite has one writer at a time. Waiting for it in Go, at a handle of one connection, is fair and takes no lock;
	// waiting for it in SQLite is neither.
	writer  *sql.DB
	readers *sql.DB
	sealer  *store.Sealer
}

// Open opens the database in the file at path, makes it when it is not there, and brings its schema up to date. Secrets
// in it are sealed by sealer; store.ErrWrongKey when the file was made with another key. The caller closes the DB.
func Open(ctx context.Context, path string, sealer *store.Sealer) (*DB, error) {
	if sealer == nil {
		return nil, errNoKey
	}
	writer, dsn, err := openWriter(path)
	if err != nil {
		return nil, err
	}
	db := &DB{writer: writer, sealer: sealer}
	if err := db.prepare(ctx); err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	db.readers, err = sql.Open("sqlite", dsn+"&_query_only=1")
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	db.readers.SetMaxOpenConns(max(4, runtime.NumCPU()))
	db.readers.SetMaxIdleConns(max(4, runtime.NumCPU()))
	return db, nil
}

var errNoKey = errors.New("a database needs a key to seal secrets with")

// Migrate brings the schema of the file at path up to date and says which version it had and has.
func Migrate(ctx context.Context, path string) (from, to int, err error) {
	writer, _, err := openWriter(path)
	if err != nil {
		return 0, 0, err
	}
	from, to, err = migrate(ctx, writer)
	return from, to, errors.Join(err, writer.Close())
}

// openWriter returns the one handle that writes, and the name under which the driver knows the file.
func openWriter(path string) (writer *sql.DB, dsn string, err error) {
	if path == "" || path == ":memory:" {
		return nil, "", errors.New("a database needs a file: several connections cannot share one in memory")
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, "", err
	}
	if err := touch(path); err != nil {
		return nil, "", err
	}
	dsn = dataSource(path)
	writer, err = sql.Open("sqlite", dsn+"&_txlock=immediate")
	if err != nil {
		return nil, "", err
	}
	writer.SetMaxOpenConns(1)
	return writer, dsn, nil
}

// touch makes sure that the file is there and that nobody else can read it, also what SQLite puts beside it: those files
// take over its mode.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// dataSource names the file and how its connections behave.
func dataSource(path string) string {
	settings := url.Values{
		// Another process, such as a backup, may hold the file for a moment.
		"_busy_timeout": {"5000"},
		// Readers do not wait for the writer, nor the writer for them.
		"_journal_mode": {"WAL"},
		// A commit is in the operating system's hands before it returns, so a process that is killed loses nothing.
		// A machine that loses power may lose the last moments, but never what is older and never the file: probing
		// sees the same outage again. Waiting for the disk at every commit would cost far more than that is worth.
		"_synchronous":  {"NORMAL"},
		"_foreign_keys": {"1"},
		// A double-quoted typo is an error, not a string.
		"_dqs": {"0"},
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String() + "?" + settings.Encode()
}

// prepare brings the schema up to date and makes sure of the key.
func (db *DB) prepare(ctx context.Context) error {
	if _, _, err := migrate(ctx, db.writer); err != nil {
		return err
	}
	if err := db.write(ctx, "add up days", func(tx *sql.Tx) error { return addDays(ctx, tx) }); err != nil {
		return err
	}
	return db.write(ctx, "check the secret key", func(tx *sql.Tx) error {
		var proof []byte
		err := tx.QueryRowContext(ctx, `SELECT proof FROM secret_key`).Scan(&proof)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = tx.ExecContext(ctx, `INSERT INTO secret_key (id, proof) VALUES (1, ?)`, db.sealer.SealProof())
			return err
		}
		if err != nil {
			return err
		}
		return db.sealer.CheckProof(proof)
	})
}

// Ping implements store.Store.
func (db *DB) Ping(ctx context.Context) error {
	return db.read(ctx, "ping", func(tx *sql.Tx) error { return checkVersion(ctx, tx) })
}

// Close waits for transactions under way and closes the file.
func (db *DB) Close() error { return errors.Join(db.readers.Close(), db.writer.Close()) }

// write does what is one transaction that may change something. It holds the only writing connection: do must not call
// the store.
func (db *DB) write(ctx context.Context, what string, do func(tx *sql.Tx) error) error {
	return inTx(ctx, db.writer, what, do)
}

// read does what is one transaction that changes nothing: it sees one state of the database throughout.
func (db *DB) read(ctx context.Context, what string, do func(tx *sql.Tx) error) error {
	return inTx(ctx, db.readers, what, do)
}

func inTx(ctx context.Context, handle *sql.DB, what string, do func(tx *sql.Tx) error) error {
	tx, err := handle.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back; a panic passes through here
	if err := do(tx); err != nil {
		if store.IsFailure(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: commit: %w", what, err)
	}
	return nil
}
