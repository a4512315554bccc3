package sqlite_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, fresh) }

func BenchmarkStore(b *testing.B) { storetest.Bench(b, fresh) }

func fresh(t testing.TB) storetest.Database {
	path := storetest.MigratedSQLite(t, sqlite.Migrate)
	return storetest.Database{
		Open: func(t testing.TB, sealer *store.Sealer) (store.Store, error) {
			return sqlite.Open(t.Context(), path, sealer)
		},
		ForgetSecrets: func(t testing.TB, sealer *store.Sealer) (store.Forgotten, error) {
			return sqlite.ForgetSecrets(t.Context(), path, sealer)
		},
		SQL:        func(t testing.TB) *sql.DB { return openSQL(t, path) },
		BareChecks: func(t testing.TB, n int) time.Duration { return bareChecks(t, path, n) },
		BareDays: func(t testing.TB, endpointID string) time.Duration {
			return bareRead(t, path, `SELECT * FROM uptime_days WHERE endpoint_id = ? ORDER BY day`, endpointID)
		},
		BareEndpoints: func(t testing.TB, n int) time.Duration {
			return bareRead(t, path, `SELECT * FROM endpoints ORDER BY name_key LIMIT ?`, n)
		},
	}
}

// bareChecks returns how long it takes to insert the rows of checks in one transaction, with no index to keep.
func bareChecks(t testing.TB, path string, n int) time.Duration {
	t.Helper()
	db := openSQL(t, path)
	_, err := db.ExecContext(t.Context(), `CREATE TABLE IF NOT EXISTS bench_checks AS SELECT * FROM checks WHERE FALSE`)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]any
	for _, c := range storetest.BenchChecks(n) {
		steps, warnings, facts, err := store.EncodeResult(c.Result)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, []any{
			c.ID, c.EndpointID, c.Location, c.ScheduledAt.UnixMicro(), c.Result.StartedAt.UnixMicro(),
			store.Milliseconds(c.Result.Duration), c.Result.Kind, c.Result.Era, c.Result.Verdict, nil, nil, nil, nil, 0,
			string(steps), string(warnings), string(facts),
		})
	}
	begin := time.Now()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	insert, err := tx.PrepareContext(t.Context(), `INSERT INTO bench_checks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	defer insert.Close() //nolint:errcheck // it ends with the transaction in any case
	for _, row := range rows {
		if _, err := insert.ExecContext(t.Context(), row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// bareRead returns how long it takes to read the rows of a query into nothing.
func bareRead(t testing.TB, path, text string, args ...any) time.Duration {
	t.Helper()
	db := openSQL(t, path)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	rows, err := db.QueryContext(t.Context(), text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	dest := make([]any, len(names))
	for i := range dest {
		dest[i] = new(sql.RawBytes)
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// openSQL opens the file beside the store, with the same regard for the disk.
func openSQL(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_synchronous=NORMAL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
