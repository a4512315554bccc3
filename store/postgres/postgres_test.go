package postgres_test

import (
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, fresh) }

func fresh(t testing.TB) storetest.Database {
	url := storetest.Postgres(t)
	return storetest.Database{
		Open: func(t testing.TB, sealer *store.Sealer) (store.Store, error) { return postgres.Open(t.Context(), url, sealer) },
		SQL:  func(t testing.TB) *sql.DB { return openSQL(t, url) },
	}
}

// openSQL opens the database beside the store.
func openSQL(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
