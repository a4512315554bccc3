// Package migrations holds the schemas of both databases as numbered steps that only go forward. Each number says the same
// thing in both tongues. It holds SQL and its order; the drivers in store/sqlite and store/postgres apply it.
package migrations

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// The steps of each database, as files named like 0001_endpoints.sql.
var (
	SQLite   = sub("sqlite")
	Postgres = sub("postgres")
)

func sub(dir string) fs.FS {
	f, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // dir is one of the two constants above
	}
	return f
}

// Migration is one step of a schema.
type Migration struct {
	Version int // 1, 2, 3, …
	Name    string
	SQL     string
}

// List returns the steps in fsys in order. They must be numbered from 1 without a gap.
func List(fsys fs.FS) ([]Migration, error) {
	names, err := fs.Glob(fsys, "*.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, name := range names {
		m, err := read(fsys, name)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	for i, m := range all {
		if m.Version != i+1 {
			return nil, fmt.Errorf("migration %s has number %d where %d is due", m.Name, m.Version, i+1)
		}
	}
	return all, nil
}

func read(fsys fs.FS, name string) (Migration, error) {
	number, _, _ := strings.Cut(name, "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return Migration{}, fmt.Errorf("migration %s does not begin with a number", name)
	}
	sql, err := fs.ReadFile(fsys, name)
	if err != nil {
		return Migration{}, err
	}
	return Migration{version, strings.TrimSuffix(path.Base(name), ".sql"), string(sql)}, nil
}

// Newest returns the version of the schema that this program knows.
func Newest(all []Migration) int { return len(all) }

// Pending returns the steps that lead from version current to the newest. A database that is ahead of this program is
// an error: what this program would write there, nobody can know.
func Pending(all []Migration, current int) ([]Migration, error) {
	if current > len(all) {
		return nil, fmt.Errorf("the database has schema version %d, this program knows up to %d: run a newer rollcall", current, len(all))
	}
	return all[current:], nil
}
