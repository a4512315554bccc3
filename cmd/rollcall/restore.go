package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
)

// restore puts a saved SQLite file in the place of a database.
func restore(ctx context.Context, args []string, std stdio) error {
	var database string
	var force bool
	flags := newFlags("restore", "restore [flags] SOURCE", std)
	databaseFlag(flags, &database)
	flags.BoolVar(&force, "force", false, "replace the database when it is there; it is kept beside the restored one")
	source, err := flags.parseFile(args, "SOURCE", "the file to restore from")
	if err != nil {
		return err
	}
	if isPostgres(database) {
		return errPostgresTools
	}
	if err := checkDatabase(database); err != nil {
		return err
	}
	replaces, err := checkRestore(source, database, force)
	if err != nil {
		return err
	}
	unlock, err := claimDatabase(database)
	if err != nil {
		return fmt.Errorf("%w: stop it first", err)
	}
	defer unlock()

	aside := database + ".before-restore-" + time.Now().UTC().Format("20060102T150405Z")
	p := newProgress(std)
	saved, err := sqlite.Restore(ctx, source, database, aside, p.units("copying "+source, "bytes"))
	if err != nil {
		return err
	}
	p.end()
	fmt.Fprintf(std.out, "restored %s from %s: %d endpoints, %d checks\n", database, source, saved.Endpoints, saved.Checks)
	if replaces {
		fmt.Fprintf(std.out, "What was there is kept as %s\n", aside)
	}
	fmt.Fprintln(std.out, keyWords(database, saved, std))
	return nil
}

// checkRestore says why source cannot be put in the place of database, and whether there is one to be replaced.
func checkRestore(source, database string, force bool) (replaces bool, err error) {
	from, err := os.Stat(source)
	if err != nil {
		return false, fmt.Errorf("there is no file %s", source)
	}
	if from.IsDir() {
		return false, fmt.Errorf("%s is a directory: name the file that was saved", source)
	}
	to, err := os.Stat(database)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if os.SameFile(from, to) {
		return true, fmt.Errorf("%s is the database itself: name what was saved of it", source)
	}
	if !force {
		return true, fmt.Errorf("%s is there already: replace it with --force, which keeps it beside the restored one, or name another file with --database", database)
	}
	return true, nil
}

// keyWords says whether the key that the service will find is that of a restored database.
func keyWords(database string, saved sqlite.Saved, std stdio) string {
	path := database + ".key"
	where := "The key file " + path
	var key []byte
	var err error
	if text, _ := std.env(keyVariable); text != "" {
		where = "The key in " + keyVariable
		key, err = store.ParseKey(text)
	} else {
		key, err = readKeyFile(path)
	}
	const lost = "; if it is lost, run `rollcall migrate --forget-secrets`"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return where + " is not there: put back the one that belongs to what was saved, with mode 600" + lost
	case err != nil:
		return "The key cannot be read: " + err.Error()
	case len(saved.Proof) == 0:
		return where + " will do: nothing is sealed yet"
	}
	sealer, err := store.NewSealer(key)
	if err != nil || !saved.KeyFits(sealer) {
		return where + " is not that of what was saved: give the one that it was made with" + lost
	}
	return where + " is that of what was saved"
}
