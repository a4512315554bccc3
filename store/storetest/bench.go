package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Bench measures how fast a store records checks, alone and in groups, and how that compares with the least that any
// transaction costs in the same database: one bare row. fresh makes an empty database.
func Bench(b *testing.B, fresh func(t testing.TB) Database) {
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprintf("Record/group=%d", size), func(b *testing.B) {
			db := fresh(b)
			s := db.open(b)
			endpoints := make([]store.Endpoint, 100)
			for i := range endpoints {
				endpoints[i] = newEndpoint(b, s, fmt.Sprintf("endpoint %d", i))
			}
			floor := floor(b, db)
			recorded := 0
			for b.Loop() {
				group := make([]store.Check, size)
				for i := range group {
					at := start.Add(time.Duration(recorded/len(endpoints)) * time.Minute)
					group[i] = benchCheck(endpoints[recorded%len(endpoints)], at)
					recorded++
				}
				if _, err := s.Record(b.Context(), group, judge); err != nil {
					b.Fatal(err)
				}
			}
			perGroup := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(recorded)/b.Elapsed().Seconds(), "checks/s")
			b.ReportMetric(float64(perGroup)/float64(floor), "bare-commits")
		})
	}
}

// floor returns what a transaction of one bare row takes.
func floor(b *testing.B, db Database) time.Duration {
	b.Helper()
	conn, err := db.SQL(b).Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing depends on how the connection ends
	if _, err := conn.ExecContext(b.Context(), `CREATE TABLE bench_floor (n integer)`); err != nil {
		b.Fatal(err)
	}
	const commits = 500
	begin := time.Now()
	for range commits {
		if _, err := conn.ExecContext(b.Context(), `INSERT INTO bench_floor VALUES (1)`); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin) / commits
}

// benchCheck is a good check of a usual MCP conversation.
func benchCheck(e store.Endpoint, at time.Time) store.Check {
	c := checkAt(e, at, probe.Up)
	for i, name := range []string{"server/discover", "initialize", "initialized", "tools/list"} {
		c.Result.Steps = append(c.Result.Steps, probe.Step{
			Name: name, Method: name, Start: time.Duration(i) * 20 * time.Millisecond, Latency: 18 * time.Millisecond,
			Phases: probe.Phases{FirstByte: 17 * time.Millisecond}, HTTPStatus: 200, BytesIn: 512, BytesOut: 128,
		})
	}
	return c
}
