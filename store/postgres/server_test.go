package postgres_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/migrations"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestNoErrorOfOpeningHoldsThePassword(t *testing.T) {
	const password = "s3cretpass"
	for name, url := range map[string]string{
		"nobody listens":    "postgres://rollcall:" + password + "@127.0.0.1:1/rollcall?connect_timeout=2",
		"no such host":      "postgres://rollcall:" + password + "@host.invalid/rollcall?connect_timeout=2",
		"port out of range": "postgres://rollcall:" + password + "@127.0.0.1:99999/rollcall",
		"not a port":        "postgres://rollcall:" + password + "@127.0.0.1:x/rollcall",
		"special character": "postgres://rollcall:%zz" + password + "@127.0.0.1/rollcall",
		"unknown setting":   "postgres://rollcall:" + password + "@127.0.0.1/rollcall?sslmode=perhaps",
		"in the query":      "postgres://127.0.0.1:1/rollcall?password=" + password + "&connect_timeout=2",
		"words":             "host=127.0.0.1 port=1 password=" + password,
	} {
		db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
		if err == nil {
			_ = db.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %q, want one line without the password", name, err)
		}
	}
}

func TestAServerThatIsAwayAtStartIsAnErrorInTime(t *testing.T) {
	server := storetest.PostgresServer(t)
	server.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := postgres.Open(ctx, server.URL(), storetest.Sealer(t, 1))
	if err == nil || !strings.Contains(err.Error(), "no connection to Postgres at 127.0.0.1:") || ctx.Err() != nil {
		t.Errorf("Open: error %v, want one that says where nobody answers, before the time is up", err)
	}
}

func TestAServerThatGoesAwayAndComesBack(t *testing.T) {
	server := storetest.PostgresServer(t)
	db, err := postgres.Open(t.Context(), server.URL(), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it never fails
	e := store.NewEndpoint()
	e.Name, e.URL = "Weather", "https://weather.example"
	if e, err = db.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	group := []store.Check{store.NewCheck(e.ID, "default", at, probe.Result{StartedAt: at, Verdict: probe.Up})}
	believe := store.Judge{Check: func(_ store.Endpoint, s store.State, _ store.Check) store.State { return s }}

	server.Stop(t)
	if _, err := db.Record(t.Context(), group, believe); !store.IsFailure(err) {
		t.Errorf("Record while the server is away: error %v, want a failure", err)
	}
	if err := db.Ping(t.Context()); !store.IsFailure(err) {
		t.Errorf("Ping while the server is away: error %v, want a failure", err)
	}
	if _, err := db.Endpoint(t.Context(), e.Slug); !store.IsFailure(err) {
		t.Errorf("Endpoint while the server is away: error %v, want a failure", err)
	}

	server.Start(t)
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("Ping when it is back: %v", err)
	}
	out, err := db.Record(t.Context(), group, believe)
	if err != nil || !out[0].Kept {
		t.Errorf("Record when it is back = %+v, %v, want the check kept", out, err)
	}
}

// A failover may leave a connection open on which nothing ever comes.
func TestAQueryThatIsNeverAnsweredEnds(t *testing.T) {
	config, err := pgx.ParseConfig(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Tracer = postgres.Patience(50 * time.Millisecond)
	for name, ask := range map[string]func(conn *pgx.Conn) error{
		"a statement": func(conn *pgx.Conn) error {
			_, err := conn.Exec(t.Context(), `SELECT pg_sleep(3600)`)
			return err
		},
		"a query": func(conn *pgx.Conn) error {
			rows, err := conn.Query(t.Context(), `SELECT pg_sleep(3600)`)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		},
		"a batch": func(conn *pgx.Conn) error {
			var batch pgx.Batch
			batch.Queue(`SELECT 1`)
			batch.Queue(`SELECT pg_sleep(3600)`)
			return conn.SendBatch(t.Context(), &batch).Close()
		},
	} {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(conn); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s that is never answered: error %v, want that the time is up", name, err)
		}
		_ = conn.Close(t.Context()) // closed already, by the deadline
	}
}

func TestACallersOwnDeadlineHolds(t *testing.T) {
	config, err := pgx.ParseConfig(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Tracer = postgres.Patience(time.Nanosecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing depends on how the connection ends
	if _, err := conn.Exec(ctx, `SELECT 1`); err != nil {
		t.Errorf("a query whose caller is more patient: %v", err)
	}
}

func TestMigrateSaysWhatItDid(t *testing.T) {
	url := storetest.Postgres(t)
	all, err := migrations.List(migrations.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][2]int{{0, len(all)}, {len(all), len(all)}} {
		from, to, err := postgres.Migrate(t.Context(), url)
		if err != nil || from != want[0] || to != want[1] {
			t.Errorf("Migrate = from %d to %d, %v, want from %d to %d", from, to, err, want[0], want[1])
		}
	}
}

// Every version that was ever in use must lead to the newest.
func TestMigrateFromEveryVersion(t *testing.T) {
	all, err := migrations.List(migrations.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	for old := range len(all) {
		url := storetest.Postgres(t)
		raw := openSQL(t, url)
		statements := []string{`
			CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL)`}
		for _, m := range all[:old] {
			statements = append(statements, m.SQL,
				`INSERT INTO schema_migrations VALUES (`+strconv.Itoa(m.Version)+`, '`+m.Name+`', now())`)
		}
		for _, statement := range statements {
			if _, err := raw.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		from, to, err := postgres.Migrate(t.Context(), url)
		if err != nil || from != old || to != len(all) {
			t.Errorf("Migrate = from %d to %d, %v, want from %d to %d", from, to, err, old, len(all))
		}
		db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
		if err != nil {
			t.Errorf("Open after version %d: %v", old, err)
			continue
		}
		if err := db.Ping(t.Context()); err != nil {
			t.Errorf("Ping after version %d: %v", old, err)
		}
		_ = db.Close()
	}
}

func TestWhatIsThereIsExplainedInTheSchema(t *testing.T) {
	url := storetest.Postgres(t)
	if _, _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	rows, err := openSQL(t, url).QueryContext(t.Context(), `
		SELECT relname
		FROM pg_class
		WHERE relnamespace = 'public'::regnamespace
		    AND relkind IN ('r', 'v')
		    AND relname <> 'schema_migrations'
		    AND obj_description(oid, 'pg_class') IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s has no comment", name)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

func TestADatabaseThatIsHalfCopiedIsNotOpened(t *testing.T) {
	url := storetest.Postgres(t)
	db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if _, err := openSQL(t, url).ExecContext(t.Context(), `CREATE TABLE copy_progress (name text)`); err != nil {
		t.Fatal(err)
	}
	if db, err = postgres.Open(t.Context(), url, storetest.Sealer(t, 1)); err == nil || !strings.Contains(err.Error(), "was interrupted") {
		t.Errorf("Open: error %v, want one that says that a copy was interrupted", err)
	}
	if err == nil {
		_ = db.Close()
	}
}

// The server bounds our statements and compiles none, unless the URL has it otherwise.
func TestConnectionsHaveSettings(t *testing.T) {
	url := storetest.Postgres(t)
	if _, _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]map[string]string{
		"":                              {"statement_timeout": "30s", "jit": "off", "application_name": "rollcall"},
		"statement_timeout=7000&jit=on": {"statement_timeout": "7s", "jit": "on"},
	} {
		db := openStore(t, joinQuery(url, query))
		for name, value := range want {
			if got, err := db.Setting(t.Context(), name); got != value || err != nil {
				t.Errorf("with %q, %s is %q, want %q; error %v", query, name, got, value, err)
			}
		}
	}
}

// joinQuery adds parameters to the query of a URL.
func joinQuery(url, query string) string {
	if strings.Contains(url, "?") {
		return url + "&" + query
	}
	return url + "?" + query
}
