package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// maxBytesPerCheck is what an up check with its four steps may cost on disk with its index, measured on a million of them.
const maxBytesPerCheck = 140

// lifelike makes the checks of endpoints that are up, with times as a probe measures them.
type lifelike struct {
	random *rand.Rand
	usual  []time.Duration // how far away each endpoint is
}

func newLifelike(endpoints int) *lifelike {
	l := &lifelike{random: rand.New(rand.NewPCG(1, 2))}
	for range endpoints {
		l.usual = append(l.usual, time.Duration(2+l.random.IntN(120))*time.Millisecond)
	}
	return l
}

// check is one of the i-th endpoint: the first request makes the connection, all of them wait for an answer, and the whole
// takes as long as its parts. A twentieth is slow.
func (l *lifelike) check(i int, e store.Endpoint, at time.Time) store.Check {
	some := func(typical time.Duration) time.Duration {
		d := time.Duration(float64(typical) * (0.8 + 0.5*l.random.Float64()))
		if l.random.IntN(20) == 0 {
			d *= 3
		}
		return d
	}
	started := at.Add(some(3 * time.Millisecond))
	r := probe.Result{StartedAt: started, Kind: probe.KindMCP, Era: probe.EraModern, Verdict: probe.Up}
	r.Facts = probe.Facts{ProtocolVersion: "2025-11-25", ServerName: "weather", ServerVersion: "1.4.2"}
	for n, name := range []string{"server/discover", "initialize", "initialized", "tools/list"} {
		s := probe.Step{
			Name: name, Method: name, Start: r.Duration, HTTPStatus: 200, BytesOut: int64(150 + 10*n), BytesIn: int64([]int{310, 620, 0, 4210}[n]),
		}
		if n == 0 {
			s.Phases.DNS, s.Phases.Connect, s.Phases.TLS = some(time.Millisecond), some(l.usual[i]), some(2*l.usual[i])
		}
		s.Phases.FirstByte, s.Phases.Body = some(l.usual[i]+4*time.Millisecond), some(90*time.Microsecond)
		s.Latency = s.Phases.DNS + s.Phases.Connect + s.Phases.TLS + s.Phases.FirstByte + s.Phases.Body
		r.Steps = append(r.Steps, s)
		r.Duration += s.Latency + some(60*time.Microsecond)
	}
	return store.NewCheck(e.ID, "default", at, r)
}

// someDay is long over, in the middle of a month.
var someDay = time.Date(2026, 5, 15, 0, 0, 0, 0, time.UTC)

func makeEndpoints(t testing.TB, db *postgres.DB, n int) []store.Endpoint {
	t.Helper()
	endpoints := make([]store.Endpoint, 0, n)
	for i := range n {
		e := store.NewEndpoint()
		e.Name, e.URL, e.Confirm.Failures = fmt.Sprintf("endpoint %d", i), fmt.Sprintf("https://e%d.example/mcp", i), 1
		e, err := db.CreateEndpoint(context.WithoutCancel(t.Context()), e)
		if err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	return endpoints
}

// recordDay records checks of a day, minute by minute, and returns how many there are. The minutes are recorded as whole
// groups, the endpoints of each a little after each other, as they are in life.
func recordDay(t testing.TB, db *postgres.DB, endpoints []store.Endpoint, check func(i int, e store.Endpoint, at time.Time) store.Check) int {
	t.Helper()
	for minute := range 24 * 60 {
		group := make([]store.Check, 0, len(endpoints))
		for i, e := range endpoints {
			phase := time.Duration(i) * time.Minute / time.Duration(len(endpoints))
			group = append(group, check(i, e, someDay.Add(time.Duration(minute)*time.Minute+phase)))
		}
		if err := keepAll(t.Context(), db, group...); err != nil {
			t.Fatal(err)
		}
	}
	return len(endpoints) * 24 * 60
}

// sizes returns what the rows of someDay take: its checks, and their shapes.
func sizes(t testing.TB, url string) (checks, shapes float64) {
	t.Helper()
	err := openSQL(t, url).QueryRowContext(t.Context(), `
		SELECT pg_table_size(c) + pg_indexes_size(c), pg_table_size(s) + pg_indexes_size(s)
		FROM (SELECT 'checks_20260515'::regclass AS c, 'check_shapes_20260515'::regclass AS s) names`).Scan(&checks, &shapes)
	if err != nil {
		t.Fatal(err)
	}
	return checks, shapes
}

// A tenth of the rows that BenchmarkCheckSize measures, as many of each endpoint, fill their pages as well: what a check costs
// does not hang on how many endpoints there are.
func TestACheckTakesLittleRoom(t *testing.T) {
	url := storetest.Postgres(t)
	db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it never fails
	endpoints := makeEndpoints(t, db, 70)
	l := newLifelike(len(endpoints))
	rows := float64(recordDay(t, db, endpoints, l.check))
	checks, shapes := sizes(t, url)
	if per := checks / rows; per > maxBytesPerCheck {
		t.Errorf("%.1f bytes per check, want at most %d", per, maxBytesPerCheck)
	}
	if per := shapes / rows; per > 2 {
		t.Errorf("%.1f bytes of shapes per check, want next to nothing", per)
	}
}

// An endpoint that is down for a day says the same each time: its message is kept once.
func TestACheckThatFailsLikeTheOneBeforeTakesNoMoreRoom(t *testing.T) {
	url := storetest.Postgres(t)
	db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it never fails
	endpoints := makeEndpoints(t, db, 20)
	l := newLifelike(len(endpoints))
	rows := recordDay(t, db, endpoints, func(i int, e store.Endpoint, at time.Time) store.Check {
		r := l.check(i, e, at).Result
		r.Verdict = probe.Down
		r.Steps[3].Class, r.Steps[3].Code, r.Steps[3].Message = probe.ClassRPCError, -32603, strings.Repeat("Internal error. ", 30)
		r.Failure = &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: r.Steps[3].Message}
		return store.NewCheck(e.ID, "default", at, r)
	})
	var shapes int
	if err := openSQL(t, url).QueryRowContext(t.Context(), `SELECT count(*) FROM check_shapes`).Scan(&shapes); err != nil {
		t.Fatal(err)
	}
	if shapes != len(endpoints) {
		t.Errorf("%d shapes of %d checks, want one for each of %d endpoints", shapes, rows, len(endpoints))
	}
	if checks, _ := sizes(t, url); checks/float64(rows) > 1.1*maxBytesPerCheck {
		t.Errorf("%.1f bytes per failed check, want about as few as for a good one", checks/float64(rows))
	}
}

// BenchmarkCheckSize measures what checks cost on disk and in the write-ahead log: a day of 694 endpoints is a million checks.
func BenchmarkCheckSize(b *testing.B) {
	server := storetest.PostgresServer(b, "full_page_writes=on")
	url := server.Database(b)
	db, err := postgres.Open(b.Context(), url, storetest.Sealer(b, 1))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it never fails
	endpoints := makeEndpoints(b, db, 694)
	raw := openSQL(b, url)
	var wal, walAfter float64
	if err := raw.QueryRowContext(b.Context(), `SELECT wal_bytes FROM pg_stat_wal`).Scan(&wal); err != nil {
		b.Fatal(err)
	}
	l, rows := newLifelike(len(endpoints)), 0
	for b.Loop() {
		if rows > 0 {
			b.Fatal("a day can be recorded once: run it with -benchtime 1x")
		}
		rows = recordDay(b, db, endpoints, l.check)
	}
	if err := raw.QueryRowContext(b.Context(), `SELECT wal_bytes FROM pg_stat_wal`).Scan(&walAfter); err != nil {
		b.Fatal(err)
	}
	checks, shapes := sizes(b, url)
	b.ReportMetric(checks/float64(rows), "bytes/check")
	b.ReportMetric(shapes/float64(rows), "shape-bytes/check")
	b.ReportMetric((walAfter-wal)/float64(rows), "wal-bytes/check")
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "checks/s")
	if per := checks / float64(rows); per > maxBytesPerCheck {
		b.Errorf("%.1f bytes per check, want at most %d", per, maxBytesPerCheck)
	}
	if _, err := raw.ExecContext(b.Context(), `VACUUM FULL uptime_days`); err != nil { // each is written anew with every hour
		b.Fatal(err)
	}
	for table, metric := range map[string]string{"uptime_hours_202605": "bytes/hour", "uptime_days": "bytes/day"} {
		var bytes float64
		err := raw.QueryRowContext(b.Context(), `
			SELECT (pg_table_size($1::regclass) + pg_indexes_size($1::regclass))::float / (SELECT count(*) FROM `+table+`)`, table).Scan(&bytes)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(bytes, metric)
	}
}
