package main

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/sqlite"
)

// openTimeout bounds how long a command waits for a database at its start.
const openTimeout = 10 * time.Second

// openKnownStore opens a database that is to be there: a command that works beside the service must not make an empty one
// where it happens to be called.
func openKnownStore(ctx context.Context, database string, std stdio) (store.Store, error) {
	if err := checkThere(database); err != nil {
		return nil, err
	}
	return openStore(ctx, database, std)
}

// checkThere says what is wrong with the value of --database where it has to name a database that is there.
func checkThere(database string) error {
	if err := checkDatabase(database); err != nil || isPostgres(database) {
		return err
	}
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database %s: call this in the directory of the service, name its file with --database, "+
			"or make a new one with `rollcall migrate`", database)
	}
	return nil
}

// openStore opens the database that --database names and brings its schema up to date. A SQLite file is made when it is
// not there.
func openStore(ctx context.Context, database string, std stdio) (store.Store, error) {
	if err := checkDatabase(database); err != nil {
		return nil, err
	}
	key, err := secretKey(database, std)
	if err != nil {
		return nil, err
	}
	sealer, err := store.NewSealer(key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if isPostgres(database) {
		db, err := postgres.Open(ctx, database, sealer)
		if err != nil {
			return nil, fmt.Errorf("open Postgres: %w", err)
		}
		return db, nil
	}
	db, err := sqlite.Open(ctx, database, sealer)
	if err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", database, err)
	}
	return db, nil
}

// linkKey returns the key of the links in messages that let a stranger do something. All instances of a database have the same.
func linkKey(database string, std stdio) ([]byte, error) {
	key, err := secretKey(database, std)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, key, nil, "rollcall links in messages", sha256.Size)
}

// openReplica opens a copy of the Postgres database, to be read from. It need not be reachable yet: what it cannot answer, the
// database is asked.
func openReplica(ctx context.Context, database string, std stdio) (store.Store, error) {
	key, err := secretKey(database, std)
	if err != nil {
		return nil, err
	}
	sealer, err := store.NewSealer(key)
	if err != nil {
		return nil, err
	}
	db, err := postgres.OpenReplica(ctx, database, sealer)
	if err != nil {
		return nil, fmt.Errorf("open --read-database: %w", err)
	}
	return db, nil
}

// claimDatabase makes sure that no other service runs on a SQLite file: both would probe everything. The claim ends with
// the process, however that ends; commands such as `rollcall endpoints` do not need it. Postgres is claimed by nobody.
func claimDatabase(database string) (unlock func(), err error) {
	if isPostgres(database) {
		return func() {}, nil
	}
	if file, err := filepath.EvalSymlinks(database); err == nil {
		database = file // one file has one claim, by whatever name
	}
	f, err := os.OpenFile(database+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim SQLite file %s: %w", database, err)
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("another `rollcall serve` runs on %s: SQLite is for one at a time", database), f.Close())
	}
	return func() { f.Close() }, nil //nolint:errcheck // nothing was written; closing gives the claim up
}

// checkDatabase says what is wrong with the value of --database, without repeating a URL: it may hold a password.
func checkDatabase(database string) error {
	if isPostgres(database) {
		return nil
	}
	if database == "" {
		return errors.New("--database must name a SQLite file or be a postgres:// URL")
	}
	if scheme, _, ok := strings.Cut(database, "://"); ok {
		return fmt.Errorf("--database cannot be a %s:// URL: name a SQLite file, or a postgres:// URL", scheme)
	}
	if strings.HasPrefix(database, "postgres") && strings.Contains(database, ":") || strings.Contains(database, "password=") {
		return errors.New("--database is neither a SQLite file nor a postgres:// URL: write it like postgres://user:password@host:5432/database")
	}
	if info, err := os.Stat(database); err == nil && info.IsDir() {
		return fmt.Errorf("--database %s is a directory: name a file in it, like %s", database, filepath.Join(database, defaultDatabase))
	}
	return nil
}

func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// keyVariable holds the key with which secrets are encrypted at rest, as base64 of store.KeySize bytes.
const keyVariable = "ROLLCALL_SECRET_KEY"

// secretKey returns the key of a database: from the environment, else from the key file beside a SQLite file, which is
// made together with the database.
func secretKey(database string, std stdio) ([]byte, error) {
	if text, ok := std.env(keyVariable); ok && text != "" {
		key, err := store.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", keyVariable, err)
		}
		return key, nil
	}
	if isPostgres(database) {
		return nil, fmt.Errorf("with Postgres the environment variable %s must hold the key that encrypts secrets at rest: "+
			"make one with `openssl rand -base64 %d` and keep it with your backups", keyVariable, store.KeySize)
	}
	path := database + ".key"
	key, err := readKeyFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if _, err := os.Stat(database); err == nil {
		return nil, fmt.Errorf("%s is there but its key file %s is not: put it back, or set %s; if the key is lost, "+
			"`rollcall migrate --forget-secrets` makes another", database, path, keyVariable)
	}
	return writeKeyFile(path)
}

// otherKey returns a key in place of one that is lost: as secretKey, and beside a SQLite file whose key file is gone a
// fresh one.
func otherKey(database string, std stdio) ([]byte, error) {
	path := database + ".key"
	_, err := os.Stat(path)
	if text, _ := std.env(keyVariable); text == "" && !isPostgres(database) && errors.Is(err, fs.ErrNotExist) {
		return writeKeyFile(path)
	}
	return secretKey(database, std)
}

func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("key file %s can be read by others: run `chmod 600 %s`", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	key, err := store.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return key, nil
}

// writeKeyFile makes a key. It never overwrites one: O_EXCL.
func writeKeyFile(path string) ([]byte, error) {
	key := make([]byte, store.KeySize)
	rand.Read(key) //nolint:errcheck // crypto/rand.Read never returns an error
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make key file: %w", err)
	}
	_, err = fmt.Fprintln(f, base64.StdEncoding.EncodeToString(key))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("write key file: %w", err)
	}
	return key, nil
}
