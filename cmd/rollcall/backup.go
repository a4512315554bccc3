package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rollcallhq/rollcall/store/sqlite"
)

// errPostgresTools is the answer to whoever asks to save or restore a Postgres database.
var errPostgresTools = fmt.Errorf("this is for SQLite: with Postgres use pg_dump or pg_basebackup, and keep the value of %s "+
	"apart from what they write; without it, the secrets in there cannot be read", keyVariable)

// backup saves a SQLite file, also while a service runs on it.
func backup(ctx context.Context, args []string, std stdio) error {
	var database string
	var force bool
	flags := newFlags("backup", "backup [flags] TARGET", std)
	databaseFlag(flags, &database)
	flags.BoolVar(&force, "force", false, "replace TARGET when it is there")
	target, err := flags.parseFile(args, "TARGET", "the file to save to")
	if err != nil {
		return err
	}
	if isPostgres(database) {
		return errPostgresTools
	}
	if err := checkThere(database); err != nil {
		return err
	}
	if err := checkTarget(database, target, force); err != nil {
		return err
	}
	if err := saveFile(ctx, database, target, std); err != nil {
		return err
	}
	saved, err := sqlite.Inspect(ctx, target)
	if err != nil {
		return fmt.Errorf("what was saved is of no use: %w", err)
	}
	fmt.Fprintf(std.out, "saved %s to %s: %d endpoints, %d checks\n", database, target, saved.Endpoints, saved.Checks)
	fmt.Fprintln(std.out, whereKeyIs(database, std))
	return nil
}

// saveFile saves a database, all of it or nothing. What is at target goes when the copy is there.
func saveFile(ctx context.Context, database, target string, std stdio) error {
	db, err := sqlite.OpenToRead(database)
	if err != nil {
		return err
	}
	p := newProgress(std)
	part := target + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a backup that was killed
		return errors.Join(err, db.Close())
	}
	if err := errors.Join(db.Backup(ctx, part, p.units("saving "+database, "pages")), db.Close()); err != nil {
		return err
	}
	p.end()
	return os.Rename(part, target)
}

// parseFile parses the flags of a command that takes one file beside them, and says every mistake at once.
func (f *flagSet) parseFile(args []string, name, what string) (file string, err error) {
	rest, err := f.parse(args)
	if _, ok := errors.AsType[usageError](err); err != nil && !ok {
		return "", err
	}
	mistakes := joined(err)
	switch {
	case len(rest) == 0 && err == nil:
		mistakes = append(mistakes, fmt.Errorf("say %s: %s", name, what))
	case len(rest) > 0 && rest[0] == "":
		mistakes = append(mistakes, fmt.Errorf("%s must not be empty", name))
	case len(rest) > 1:
		mistakes = append(mistakes, fmt.Errorf("unexpected argument %q", rest[1]))
	}
	if len(mistakes) > 0 {
		return "", usageError{errors.Join(mistakes...)}
	}
	return rest[0], nil
}

// checkTarget says why a backup cannot be written to target.
func checkTarget(database, target string, force bool) error {
	there, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(target)); err != nil {
			return fmt.Errorf("there is no folder %s", filepath.Dir(target))
		}
		return nil
	}
	if err != nil {
		return err
	}
	if there.IsDir() {
		return fmt.Errorf("%s is a directory: name a file in it, like %s", target, filepath.Join(target, filepath.Base(database)))
	}
	source, err := os.Stat(database)
	if err != nil {
		return err
	}
	if os.SameFile(there, source) {
		return fmt.Errorf("%s is the database itself: name another file", target)
	}
	if !force {
		return fmt.Errorf("%s is there already: name another file, or replace it with --force", target)
	}
	if _, err := os.Stat(target + "-wal"); err == nil {
		return fmt.Errorf("%s is a database in use: name another file", target)
	}
	return nil
}

// whereKeyIs says what a backup needs beside itself. The key is not saved with it on purpose: who finds the backup does not
// find the secrets.
func whereKeyIs(database string, std stdio) string {
	if text, _ := std.env(keyVariable); text != "" {
		return fmt.Sprintf("To restore its secrets takes the value of %s, which is not in it: keep that too, elsewhere.", keyVariable)
	}
	path, err := filepath.Abs(database + ".key")
	if err != nil {
		path = database + ".key"
	}
	return fmt.Sprintf("To restore its secrets takes the key file %s, which is not in it: keep that too, elsewhere.", path)
}

// units returns what shows how many units are done of something.
func (p *progress) units(label, unit string) func(done, total int) {
	started := false
	return func(done, total int) {
		if !started {
			started = true
			p.start(label, unit, 0, int64(total))
		}
		p.total = int64(total)
		p.set(int64(done))
	}
}
