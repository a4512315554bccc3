package storetest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestPostgresGivesEachCallerAnEmptyDatabase(t *testing.T) {
	a, b := storetest.Postgres(t), storetest.Postgres(t)
	if a == b {
		t.Fatalf("both callers got %s", a)
	}
	exec(t, a, "CREATE TABLE things (id int)")
	exec(t, b, "CREATE TABLE things (id int)")
}

func TestPostgresServerKeepsWhatWasCommittedOverAStop(t *testing.T) {
	s := storetest.PostgresServer(t)
	exec(t, s.URL(), "CREATE TABLE things (id int)")
	s.Stop(t)
	if conn, err := pgx.Connect(t.Context(), s.URL()); err == nil {
		_ = conn.Close(t.Context())
		t.Fatal("a stopped server still answers")
	}
	s.Start(t)
	exec(t, s.URL(), "INSERT INTO things VALUES (1)")
}

func exec(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // nothing depends on how the connection ends
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
