package postgres_test

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestStore(t *testing.T) {
	url := storetest.Postgres(t)
	storetest.Run(t, func(t testing.TB) storetest.Database { return fresh(t, url) })
}

// The server of a benchmark cares for its disk as that of an operator does.
func BenchmarkStore(b *testing.B) {
	server := storetest.PostgresServer(b, "fsync=on", "full_page_writes=on", "shared_buffers=256MB")
	storetest.Bench(b, func(t testing.TB) storetest.Database { return fresh(t, server.Database(t)) })
}

var schemas atomic.Int64

// fresh makes an empty schema in the database at url: as good as a database of its own, and ten times as fast.
func fresh(t testing.TB, url string) storetest.Database {
	schema := fmt.Sprintf("schema_%d", schemas.Add(1))
	if _, err := openSQL(t, url).ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	url += "&search_path=" + schema
	return storetest.Database{
		Open: func(t testing.TB, sealer *store.Sealer) (store.Store, error) {
			return postgres.Open(t.Context(), url, sealer)
		},
		ForgetSecrets: func(t testing.TB, sealer *store.Sealer) (store.Forgotten, error) {
			return postgres.ForgetSecrets(t.Context(), url, sealer)
		},
		SQL:         func(t testing.TB) *sql.DB { return openSQL(t, url) },
		BareCommits: func(t testing.TB, n int) time.Duration { return bareCommits(t, url, n) },
		BareChecks:  func(t testing.TB, n int) time.Duration { return bareChecks(t, url, n) },
		BareDays: func(t testing.TB, endpointID string) time.Duration {
			return bareRead(t, url, `
				SELECT u.* FROM places p JOIN uptime_days u ON u.place = p.num WHERE p.endpoint_id = $1`, endpointID)
		},
		BareEndpoints: func(t testing.TB, n int) time.Duration {
			return bareRead(t, url, `
				SELECT e.*, s.*, p.*, c.*
				FROM (SELECT * FROM endpoints ORDER BY name_key LIMIT $1) e
				JOIN endpoint_states s ON s.endpoint_id = e.id
				JOIN places p ON p.endpoint_id = e.id
				JOIN checks c ON c.place = p.num AND c.scheduled_at = p.last_scheduled_at`, n)
		},
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
