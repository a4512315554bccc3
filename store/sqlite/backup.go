package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	driver "modernc.org/sqlite"

	"github.com/rollcallhq/rollcall/migrations"
)

// backupPages is how many pages are copied between two looks at the context: some megabytes.
const backupPages = 1000

// ErrFileExists means that a backup would overwrite a file.
var ErrFileExists = errors.New("there is a file already")

// Backup copies the database, as it is when the call begins, to a file at path; it never overwrites one: ErrFileExists. The
// service goes on reading and writing meanwhile, though what is written stays in the file's log until the copy is done. The
// copy comes to be under its name only when it is whole and on the disk. Nobody else can read it: secrets in it are sealed
// with the same key. progress, unless nil, is told now and then how many pages of how many are done.
func (db *DB) Backup(ctx context.Context, path string, progress func(done, total int)) (err error) {
	if err := absent(path); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up: %w", errors.Join(err, os.Remove(temp.Name())))
		}
	}()
	if progress == nil {
		progress = func(int, int) {}
	}
	if err := errors.Join(db.copyTo(ctx, temp.Name(), progress), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := absent(path); err != nil { // it may have come meanwhile
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// absent returns ErrFileExists when there is anything at path.
func absent(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", path, ErrFileExists)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// copyTo copies one state of the database to an empty file.
func (db *DB) copyTo(ctx context.Context, path string, progress func(done, total int)) error {
	conn, err := db.readers.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it only read
	// The copy of a database that others write to begins anew with each of their commits, unless it is made within a
	// transaction, which sees one state throughout.
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	if err := checkVersion(ctx, tx); err != nil {
		return err
	}
	return conn.Raw(func(c any) error {
		source, ok := c.(interface {
			NewBackup(dsn string) (*driver.Backup, error)
		})
		if !ok {
			return fmt.Errorf("a connection of type %T makes no backups", c)
		}
		// Whoever finds half a file that a crash left knows it by its name: it needs no journal.
		dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String() + "?_journal_mode=OFF&_synchronous=OFF"
		backup, err := source.NewBackup(dsn)
		if err != nil {
			return err
		}
		return errors.Join(step(ctx, backup, progress), backup.Finish())
	})
}

func step(ctx context.Context, backup *driver.Backup, progress func(done, total int)) error {
	for more := true; more; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		if more, err = backup.Step(backupPages); err != nil {
			return err
		}
		total := backup.PageCount()
		progress(total-backup.Remaining(), total)
	}
	return nil
}

// syncDir has a folder remember the names in it over a loss of power.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Verify reads a file from end to end, changes nothing, and returns the version of its schema. It is an error when the file
// is damaged, is no database of this program, belongs to a newer one, or is not all there because a service was writing when
// somebody copied it. Nobody may write to the file meanwhile.
func Verify(ctx context.Context, path string) (version int, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return 0, fmt.Errorf("%s is in use, or was copied while it was: there is a log of changes beside it", path)
	}
	file := (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()
	handle, err := sql.Open("sqlite", file+"?mode=ro&immutable=1") // nothing is put beside it
	if err != nil {
		return 0, err
	}
	err = inTx(ctx, handle, "verify "+path, func(tx *sql.Tx) error {
		version, err = verify(ctx, tx)
		return err
	})
	return version, errors.Join(err, handle.Close())
}

func verify(ctx context.Context, tx *sql.Tx) (version int, err error) {
	found, err := query(ctx, tx, scanString, `PRAGMA integrity_check(1)`)
	if err != nil {
		return 0, fmt.Errorf("the file is damaged, or is none of SQLite: %w", err)
	}
	if len(found) != 1 || found[0] != "ok" {
		return 0, fmt.Errorf("the file is damaged: %.200s", found)
	}
	err = tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_migrations`).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("it is no database of rollcall: %w", err)
	}
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		return 0, err
	}
	_, err = migrations.Pending(all, version)
	return version, err
}
