package sqlite_test

import (
	"database/sql"
	"testing"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, fresh) }

func BenchmarkStore(b *testing.B) { storetest.Bench(b, fresh) }

func fresh(t testing.TB) storetest.Database {
	path := storetest.SQLite(t)
	return storetest.Database{
		Open: func(t testing.TB, sealer *store.Sealer) (store.Store, error) {
			return sqlite.Open(t.Context(), path, sealer)
		},
		ForgetSecrets: func(t testing.TB, sealer *store.Sealer) (store.Forgotten, error) {
			return sqlite.ForgetSecrets(t.Context(), path, sealer)
		},
		SQL: func(t testing.TB) *sql.DB { return openSQL(t, path) },
	}
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
