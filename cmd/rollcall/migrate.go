package main

import (
	"context"
	"fmt"
)

// migrate brings the schema up to date without starting the service.
func migrate(ctx context.Context, args []string, std stdio) error {
	var database string
	fs := newFlags("migrate", "migrate [flags]", std)
	databaseFlag(fs, &database)
	if _, err := fs.parse(args); err != nil {
		return err
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
