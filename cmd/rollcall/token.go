package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// token manages the tokens of the REST API, straight in the database.
func token(ctx context.Context, args []string, std stdio) error {
	var database, name string
	fs := newFlags("token", "token create [--name NAME] | list | revoke ID", std)
	databaseFlag(fs, &database)
	fs.StringVar(&name, "name", "", "`name` that says what the token is for")
	rest, err := fs.parse(args)
	if err != nil {
		return err
	}
	do, err := tokenCommand(rest, name)
	if err != nil {
		return err
	}
	db, err := openKnownStore(ctx, database, std)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, db, std), db.Close())
}

// tokenCommand returns what the words after `rollcall token` ask for.
func tokenCommand(words []string, name string) (func(context.Context, store.Store, stdio) error, error) {
	usage := usageError{errors.New("say what to do: create [--name NAME], list, or revoke ID")}
	if len(words) == 0 {
		return nil, usage
	}
	switch verb := words[0]; {
	case verb == "create" && len(words) == 1:
		return func(ctx context.Context, db store.Store, std stdio) error { return createToken(ctx, db, name, std) }, nil
	case verb == "list" && len(words) == 1:
		return listTokens, nil
	case verb == "revoke" && len(words) == 2:
		return func(ctx context.Context, db store.Store, std stdio) error { return revokeToken(ctx, db, words[1], std) }, nil
	}
	return nil, usage
}

// createToken prints the token alone on standard output, so that a script can take it.
func createToken(ctx context.Context, db store.Store, name string, std stdio) error {
	if name == "" {
		name = "made on " + time.Now().UTC().Format(time.DateOnly)
	}
	secret, hash := store.NewSecret("rct_")
	t, err := db.CreateToken(ctx, store.Token{Name: name, Hash: hash, Role: store.RoleAdmin})
	if err != nil {
		return err
	}
	fmt.Fprintln(std.out, secret)
	fmt.Fprintf(std.err, "Token %s (%s) is shown this once. Send it as: Authorization: Bearer …\n", t.ID, t.Name)
	return nil
}

func listTokens(ctx context.Context, db store.Store, std stdio) error {
	tokens, err := db.Tokens(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tROLE\tCREATED\tLAST USED\tREVOKED")
	for _, t := range tokens {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, printable(t.Name), t.Role, minute(&t.CreatedAt), minute(t.LastUsedAt), minute(t.RevokedAt))
	}
	return w.Flush()
}

func minute(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

func revokeToken(ctx context.Context, db store.Store, id string, std stdio) error {
	err := db.RevokeToken(ctx, id, time.Now())
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no token %q: see `rollcall token list`", id)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "token %s is revoked\n", id)
	return nil
}
