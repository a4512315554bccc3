package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// crowd is how many endpoints the overview is measured with, and withHistory how many of them have a day behind them: all that a
// page shows. Of the others, one check is kept.
const (
	crowd       = 10_000
	withHistory = 300
)

// BenchmarkOverview measures a page of the overview of ten thousand endpoints, from the request to the last byte. p95-ms is what
// nineteen of twenty pages stay under while they are looked at all the time, as with many viewers, and first-p95-ms the same of pages
// that nobody has looked at in the last second: each of them reads the index.
func BenchmarkOverview(b *testing.B) {
	for name, open := range map[string]func(*testing.B) store.Store{
		"SQLite":   openSQLite,
		"Postgres": openPostgres,
	} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			fillCrowd(b, db)
			server, cookie := overviewOf(b, db)
			for _, view := range []string{
				"/", "/?page=120", "/?q=endpoint+7", "/?status=up", "/?tag=prod", "/?kind=mcp", "/?location=fra",
				"/?sort=latency", "/?sort=uptime", "/?sort=checked", "/?group=tag",
			} {
				b.Run(view, func(b *testing.B) { benchView(b, server, cookie, view) })
			}
		})
	}
}

func benchView(b *testing.B, server *api.Server, cookie *http.Cookie, view string) {
	handler, size := server.Handler(), 0
	visit := func() time.Duration {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, view, nil)
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		begin := time.Now()
		handler.ServeHTTP(w, r)
		took := time.Since(begin)
		if size = w.Body.Len(); w.Code != http.StatusOK {
			b.Fatalf("%s: %d %s", view, w.Code, w.Body)
		}
		return took
	}
	var took, first []time.Duration
	for b.Loop() {
		took = append(took, visit())
	}
	for range took {
		server.ForgetForTest()
		first = append(first, visit())
	}
	b.ReportMetric(p95(took), "p95-ms")
	b.ReportMetric(p95(first), "first-p95-ms")
	b.ReportMetric(float64(size)/1024, "KiB")
}

// p95 returns what nineteen of twenty times stay under, in milliseconds.
func p95(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)*95/100]) / float64(time.Millisecond)
}

func openSQLite(b *testing.B) store.Store {
	db, err := sqlite.Open(b.Context(), storetest.MigratedSQLite(b, sqlite.Migrate), storetest.Sealer(b, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func openPostgres(b *testing.B) store.Store {
	url := storetest.Postgres(b)
	if _, _, err := postgres.Migrate(b.Context(), url); err != nil {
		b.Fatal(err)
	}
	db, err := postgres.Open(b.Context(), url, storetest.Sealer(b, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

// fillCrowd keeps the endpoints and their checks. One in fifty is down.
func fillCrowd(b *testing.B, db store.Store) {
	b.Helper()
	endpoints := make([]store.Endpoint, crowd)
	var wg sync.WaitGroup
	const writers = 4
	for w := range writers {
		wg.Go(func() {
			for i := w; i < crowd; i += writers {
				e := store.NewEndpoint()
				e.Name, e.URL, e.Confirm.Failures = fmt.Sprintf("endpoint %05d", i), fmt.Sprintf("https://e%d.example/mcp", i), 1
				e.Tags = []string{[]string{"prod", "staging", "dev"}[i%3], fmt.Sprintf("team-%02d", i%40)}
				kept, err := db.CreateEndpoint(context.WithoutCancel(b.Context()), e)
				if err != nil {
					b.Errorf("CreateEndpoint: %v", err)
					return
				}
				endpoints[i] = kept
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	judge := store.Judge{Check: func(_ store.Endpoint, s store.State, c store.Check) store.State {
		s.Status, s.Since, s.Failure = store.Status(c.Result.Verdict), c.Result.StartedAt, c.Result.Failure
		return s
	}}
	now := store.Stamp(time.Now())
	for hour := 23; hour >= 0; hour-- {
		var checks []store.Check
		for i, e := range endpoints {
			if hour > 0 && i >= withHistory {
				break
			}
			checks = append(checks, crowdCheck(e, i, now.Add(-time.Duration(hour)*time.Hour)))
		}
		for group := range slices.Chunk(checks, 1000) {
			if _, err := db.Record(b.Context(), group, judge); err != nil {
				b.Fatalf("Record: %v", err)
			}
		}
	}
}

func crowdCheck(e store.Endpoint, i int, at time.Time) store.Check {
	r := probe.Result{StartedAt: at, Duration: time.Duration(20+i%300) * time.Millisecond, Kind: probe.KindMCP, Verdict: probe.Up}
	for _, step := range []string{"initialize", "initialized", "tools/list"} {
		r.Steps = append(r.Steps, probe.Step{Name: step, Method: step, Latency: r.Duration / 3, HTTPStatus: 200})
	}
	if i%50 == 0 {
		r.Verdict = probe.Down
		r.Failure = &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error"}
	}
	return store.NewCheck(e.ID, "fra", at, r)
}

// overviewOf returns a server of db and the cookie of somebody who is logged in to it.
func overviewOf(b *testing.B, db store.Store) (*api.Server, *http.Cookie) {
	b.Helper()
	server, err := api.New(api.Config{
		Store: db, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Location: "fra", Version: "bench",
		Probe:       func(context.Context, probe.Target) probe.Result { return probe.Result{} },
		CheckNow:    func(context.Context, string) (store.Check, error) { return store.Check{}, nil },
		Changed:     func(context.Context, string, string) {},
		Period:      everyPeriod,
		TestChannel: func(context.Context, store.Channel) error { return nil },
		Backlog:     func() int { return 0 },
		KeepPublic:  5 * time.Second, // as the service does
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, hash := b.Context(), store.HashSecret("setup")
	if err := db.PutSetupToken(ctx, hash, time.Now()); err != nil {
		b.Fatal(err)
	}
	u, err := db.CreateFirstUser(ctx, hash, store.User{Name: "ada", PasswordHash: "x", Role: store.RoleAdmin})
	if err != nil {
		b.Fatal(err)
	}
	session := store.Session{TokenHash: store.HashSecret("secret"), UserID: u.ID, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}
	if err := db.CreateSession(ctx, session); err != nil {
		b.Fatal(err)
	}
	return server, &http.Cookie{Name: "rollcall_session", Value: "secret"}
}
