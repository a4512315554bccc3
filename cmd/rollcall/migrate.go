package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/sqlite"
)

// migrate brings the schema up to date without starting the service, or moves everything to another database.
func migrate(ctx context.Context, args []string, std stdio) error {
	var database, from, to string
	var forget bool
	flags := newFlags("migrate", "migrate [flags]", std)
	databaseFlag(flags, &database)
	flags.BoolVar(&forget, "forget-secrets", false, "the secret key is lost: remove headers, webhook URLs and bot tokens, and use another key")
	flags.StringVar(&from, "from", "", "SQLite `file` to copy everything from, like sqlite:rollcall.db; with --to")
	flags.StringVar(&to, "to", "", "postgres:// `URL` of an empty database to copy everything to; with --from")
	if err := flags.parseAlone(args); err != nil {
		return err
	}
	if from != "" || to != "" {
		if forget {
			_, mistakes := copyMistakes(from, to)
			return usageError{errors.Join(append(mistakes, errors.New("--forget-secrets goes without --from and --to"))...)}
		}
		return copyDatabase(ctx, from, to, std)
	}
	if forget {
		return forgetSecrets(ctx, database, std)
	}
	db, err := openStore(ctx, database, std)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	fmt.Fprintln(std.out, "the database's schema is up to date")
	return nil
}

// forgetSecrets makes a database usable whose secret key is lost, and says what has to be entered again.
func forgetSecrets(ctx context.Context, database string, std stdio) error {
	if err := checkThere(database); err != nil {
		return err
	}
	unlock, err := claimDatabase(database) // a service would go on sealing with the key it has
	if err != nil {
		return err
	}
	defer unlock()
	key, err := otherKey(database, std)
	if err != nil {
		return err
	}
	sealer, err := store.NewSealer(key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	forgotten, err := forgetIn(ctx, database, sealer)
	if err != nil {
		return err
	}
	fmt.Fprintln(std.out, "the database has another secret key: keep it with your backups")
	printForgotten(std.out, len(forgotten.Endpoints), "endpoints", "headers", forgotten.Endpoints)
	printForgotten(std.out, len(forgotten.Channels), "channels", "webhook URL or bot token", forgotten.Channels)
	printForgotten(std.out, len(forgotten.Members), "members", "second factor", forgotten.Members)
	return nil
}

func forgetIn(ctx context.Context, database string, sealer *store.Sealer) (store.Forgotten, error) {
	if isPostgres(database) {
		return postgres.ForgetSecrets(ctx, database, sealer)
	}
	return sqlite.ForgetSecrets(ctx, database, sealer)
}

func printForgotten(w io.Writer, n int, nouns, secrets string, names []string) {
	fmt.Fprintf(w, "%s that need their %s again: %d\n", nouns, secrets, n)
	for _, name := range names {
		fmt.Fprintf(w, "  %s\n", strings.TrimSpace(name))
	}
}
