package postgres_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// bareRounds counts the groups of bare checks, each of which is of a time of its own.
var bareRounds atomic.Int64

// bareColumns are those of a row of checks, and bareRows so many of them, of places that are not there.
var bareColumns = []string{"place", "shape", "scheduled_at", "verdict", "latencies", "numbers"}

func bareRows(t testing.TB, n int) [][]any {
	t.Helper()
	rows := make([][]any, 0, n)
	round := time.Duration(bareRounds.Add(1)) * time.Microsecond
	for i, c := range storetest.BenchChecks(n) {
		packed, err := store.Pack(c.Result, c.ScheduledAt)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, []any{-1 - i, packed.ShapeID, c.ScheduledAt.Add(round), rune(packed.Verdict), packed.Latencies, packed.Numbers})
	}
	return rows
}

// bareChecks returns how long it takes to copy the rows of so many checks into the table of checks itself: what Postgres
// needs for them, and nothing else.
func bareChecks(t testing.TB, url string, n int) time.Duration {
	t.Helper()
	conn, rows := connect(t, url), bareRows(t, n)
	begin := time.Now()
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"checks"}, bareColumns, pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// bareCommits returns how long it takes to insert the rows of so many checks there, each in a transaction of its own.
func bareCommits(t testing.TB, url string, n int) time.Duration {
	t.Helper()
	conn, rows := connect(t, url), bareRows(t, n+1)
	var begin time.Time
	for i, row := range rows {
		if i == 1 { // with the first, the statement was prepared
			begin = time.Now()
		}
		if _, err := conn.Exec(t.Context(), `
			INSERT INTO checks (place, shape, scheduled_at, verdict, latencies, numbers)
			VALUES ($1, $2, $3, $4, $5, $6)`, row...); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begin)
}

// bareRead returns how long it takes to ask a query that is prepared and to read its rows into nothing.
func bareRead(t testing.TB, url, query string, args ...any) time.Duration {
	t.Helper()
	conn := connect(t, url)
	var took time.Duration
	for range 2 { // the first time it is prepared
		begin := time.Now()
		rows, err := conn.Query(t.Context(), query, args...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			_ = rows.RawValues()
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		took = time.Since(begin)
	}
	return took
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}
