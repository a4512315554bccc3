package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// token manages the tokens of the REST API, straight in the database.
func token(ctx context.Context, args []string, std stdio) error {
	var database string
	var wanted tokenFlags
	fs := newFlags("token", "token create [--name NAME] [--role ROLE] [--scope SCOPES] [--expires WHEN] | list | revoke ID", std)
	databaseFlag(fs, &database)
	fs.StringVar(&wanted.name, "name", "", "`name` that says what the token is for")
	fs.StringVar(&wanted.role, "role", string(store.RoleAdmin), "`role` of the token: viewer, editor or admin")
	fs.StringVar(&wanted.scope, "scope", "", "`scopes` that it is bound to, separated by commas, like endpoints,checks (default all that the role may)")
	fs.StringVar(&wanted.expires, "expires", "", "`day` until which it is good, like 2027-01-31, or how long from now, like 90d or 12h (default for ever)")
	rest, err := fs.parse(args)
	if err != nil {
		return err
	}
	do, err := tokenCommand(rest, wanted)
	if err != nil {
		return err
	}
	db, err := openKnownStore(ctx, database, std)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, db, std), db.Close())
}

// tokenFlags describe a token that is to be made.
type tokenFlags struct{ name, role, scope, expires string }

// tokenCommand returns what the words after `rollcall token` ask for.
func tokenCommand(words []string, wanted tokenFlags) (func(context.Context, store.Store, stdio) error, error) {
	usage := usageError{errors.New("say what to do: create [--name NAME], list, or revoke ID")}
	if len(words) == 0 {
		return nil, usage
	}
	switch verb := words[0]; {
	case verb == "create" && len(words) == 1:
		t, err := wanted.token(time.Now())
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, db store.Store, std stdio) error { return createToken(ctx, db, t, std) }, nil
	case verb == "list" && len(words) == 1:
		return listTokens, nil
	case verb == "revoke" && len(words) == 2:
		return func(ctx context.Context, db store.Store, std stdio) error { return revokeToken(ctx, db, words[1], std) }, nil
	}
	return nil, usage
}

// token returns what is wanted, or a usageError with every mistake.
func (f tokenFlags) token(now time.Time) (store.Token, error) {
	t := store.Token{Name: f.name, Role: store.Role(f.role)}
	if t.Name == "" {
		t.Name = "made on " + now.UTC().Format(time.DateOnly)
	}
	for scope := range strings.SplitSeq(f.scope, ",") {
		if scope = strings.TrimSpace(scope); scope != "" {
			t.Scopes = append(t.Scopes, store.Scope(scope))
		}
	}
	if f.expires != "" {
		at, err := readExpiry(f.expires, now)
		if err != nil {
			return t, usageError{err}
		}
		t.ExpiresAt = &at
	}
	if invalid, ok := errors.AsType[store.Invalid](t.Validate(now)); ok {
		var mistakes []error
		for _, p := range invalid.Problems {
			mistakes = append(mistakes, errors.New(tokenFlag(p.Field)+" "+p.Message))
		}
		return t, usageError{errors.Join(mistakes...)}
	}
	return t, nil
}

// tokenFlag is the flag by which a field of a token is given.
func tokenFlag(field string) string {
	switch {
	case strings.HasPrefix(field, "scopes"):
		return "--scope"
	case field == "expires_at":
		return "--expires"
	}
	return "--" + field
}

// readExpiry reads a day, of which the whole is still good, or a stretch of days or hours.
func readExpiry(text string, now time.Time) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return now.AddDate(0, 0, n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	return time.Time{}, errors.New("--expires must be a day like 2027-01-31, or how long from now, like 90d or 12h")
}

// createToken prints the token alone on standard output, so that a script can take it.
func createToken(ctx context.Context, db store.Store, t store.Token, std stdio) error {
	var secret string
	secret, t.Hash = store.NewSecret("rct_")
	t, err := db.CreateToken(ctx, t)
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
	fmt.Fprintln(w, "ID\tNAME\tROLE\tSCOPES\tCREATED\tLAST USED\tEXPIRES\tREVOKED")
	for _, t := range tokens {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, printable(t.Name), t.Role, scopesOf(t), minute(&t.CreatedAt),
			minute(t.LastUsedAt), minute(t.ExpiresAt), minute(t.RevokedAt))
	}
	return w.Flush()
}

func scopesOf(t store.Token) string {
	if len(t.Scopes) == 0 {
		return "-"
	}
	words := make([]string, 0, len(t.Scopes))
	for _, s := range t.Scopes {
		words = append(words, string(s))
	}
	return strings.Join(words, ",")
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
