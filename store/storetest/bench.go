package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// crowd is how many endpoints a store is measured with.
const crowd = 10_000

// Bench measures how fast a store of many endpoints records checks, alone and in groups, and how fast it is read, each held
// against what the database itself needs for the same rows in the same run: "x-floor" is how many times as long the store
// takes. fresh makes an empty database.
func Bench(b *testing.B, fresh func(t testing.TB) Database) {
	db := fresh(b)
	s := db.open(b)
	endpoints := newCrowd(b, s)
	rounds := &rounds{of: endpoints}
	for range crowd / 1000 { // each has been checked once
		rounds.record(b, s, 1000)
	}
	b.Run("Record/group=1", func(b *testing.B) { benchAlone(b, db, s, rounds) })
	b.Run("Record/group=1000", func(b *testing.B) {
		benchRecord(b, s, rounds, 1000, median(b, func() time.Duration { return bare(b, db.BareChecks, 1000) }))
	})
	year := endpoints[crowd/2]
	recordYear(b, s, year)
	b.Run("Uptime/days=365", func(b *testing.B) {
		floor := median(b, func() time.Duration { return bare(b, db.BareDays, year.ID) })
		benchRead(b, floor, func() error {
			got, err := s.Uptime(b.Context(), year.ID, store.Daily, start.AddDate(0, 0, -365), start)
			if err == nil && len(got) != 365 {
				err = fmt.Errorf("%d days, want 365", len(got))
			}
			return err
		})
	})
	for _, limit := range []int{store.DefaultLimit, store.MaxLimit} {
		b.Run(fmt.Sprintf("Overview/page=%d", limit), func(b *testing.B) {
			floor := median(b, func() time.Duration { return bare(b, db.BareEndpoints, limit) })
			benchRead(b, floor, func() error {
				page, err := s.Endpoints(b.Context(), store.EndpointFilter{Limit: limit})
				if err == nil && (len(page.Items) != limit || page.Items[0].LastCheck == nil) {
					err = fmt.Errorf("%d endpoints, want %d with their checks", len(page.Items), limit)
				}
				return err
			})
		})
	}
}

// newCrowd keeps many endpoints.
func newCrowd(b *testing.B, s store.Store) []store.Endpoint {
	b.Helper()
	endpoints := make([]store.Endpoint, crowd)
	var wg sync.WaitGroup
	const writers = 4
	for w := range writers {
		wg.Go(func() {
			for i := w; i < crowd; i += writers {
				e := store.NewEndpoint()
				e.Name, e.URL, e.Confirm.Failures = fmt.Sprintf("endpoint %d", i), fmt.Sprintf("https://e%d.example/mcp", i), 1
				kept, err := s.CreateEndpoint(context.WithoutCancel(b.Context()), e)
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
	return endpoints
}

// rounds checks endpoints one after the other, once a minute.
type rounds struct {
	of   []store.Endpoint
	made int
}

// record keeps the next so many checks as one group.
func (r *rounds) record(b *testing.B, s store.Store, n int) {
	b.Helper()
	recordAll(b, s, r.next(n))
}

// next returns the checks that come next.
func (r *rounds) next(n int) []store.Check {
	group := make([]store.Check, n)
	for i := range group {
		at := start.Add(time.Duration(r.made/len(r.of)) * time.Minute)
		group[i] = benchCheck(r.of[r.made%len(r.of)], at, at, r.made)
		r.made++
	}
	return group
}

func recordAll(b *testing.B, s store.Store, group []store.Check) {
	b.Helper()
	if _, err := s.Record(b.Context(), group, judge); err != nil {
		b.Fatal(err)
	}
}

func benchRecord(b *testing.B, s store.Store, r *rounds, size int, floor time.Duration) {
	for b.Loop() {
		r.record(b, s, size)
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "checks/s")
	reportFloor(b, floor)
}

// benchAlone records checks one by one. Bare commits take turns with them, because a disk is not equally fast all the time.
func benchAlone(b *testing.B, db Database, s store.Store, r *rounds) {
	const turn = 250
	var floor time.Duration
	var checks []store.Check
	for b.Loop() {
		if len(checks) == 0 {
			b.StopTimer()
			floor += bare(b, db.BareCommits, turn)
			checks = r.next(turn)
			b.StartTimer()
		}
		recordAll(b, s, checks[:1:1])
		checks = checks[1:]
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "checks/s")
	turns := (b.N + turn - 1) / turn
	reportFloor(b, floor/time.Duration(turns*turn))
}

func benchRead(b *testing.B, floor time.Duration, read func() error) {
	for b.Loop() {
		if err := read(); err != nil {
			b.Fatal(err)
		}
	}
	reportFloor(b, floor)
}

// reportFloor says how many times as long as the floor a turn took; nothing where there is no floor.
func reportFloor(b *testing.B, floor time.Duration) {
	if floor > 0 {
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(floor), "x-floor")
	}
}

// bare measures once what a driver offers, 0 when it does not.
func bare[T any](b *testing.B, measure func(testing.TB, T) time.Duration, what T) time.Duration {
	if measure == nil {
		return 0
	}
	return measure(b, what)
}

// median measures some times.
func median(b *testing.B, measure func() time.Duration) time.Duration {
	b.Helper()
	times := make([]time.Duration, 0, 9)
	for range cap(times) {
		times = append(times, measure())
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// recordYear has an endpoint checked for a year, often enough that its days hold latencies of all sorts. All of it is
// scheduled for one day, lest databases that part checks by the day make room for a year of them.
func recordYear(b *testing.B, s store.Store, e store.Endpoint) {
	b.Helper()
	const perDay = 40
	group := make([]store.Check, 0, 365*perDay)
	for n := range cap(group) {
		scheduled := start.AddDate(0, 0, -1).Add(time.Duration(n) * time.Second)
		started := start.AddDate(0, 0, n/perDay-365).Add(time.Duration(n%perDay) * time.Second)
		group = append(group, benchCheck(e, scheduled, started, n))
	}
	for chunk := range slices.Chunk(group, 1000) {
		if _, err := s.Record(b.Context(), chunk, judge); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchChecks returns checks such as a store is measured with, of endpoints that are not kept, for the floor of a driver.
func BenchChecks(n int) []store.Check {
	checks := make([]store.Check, n)
	for i := range checks {
		e := store.Endpoint{ID: fmt.Sprintf("ep_%032x", i)}
		checks[i] = benchCheck(e, start, start, i)
	}
	return checks
}

// benchCheck is the n-th good check, of a usual MCP conversation.
func benchCheck(e store.Endpoint, scheduled, started time.Time, n int) store.Check {
	r := checkAt(e, started, probe.Up).Result
	latency := 18*time.Millisecond + time.Duration(n*7919%20_000)*time.Microsecond
	for i, name := range []string{"server/discover", "initialize", "initialized", "tools/list"} {
		r.Steps = append(r.Steps, probe.Step{
			Name: name, Method: name, Start: time.Duration(i) * latency, Latency: latency,
			Phases: probe.Phases{FirstByte: latency - time.Millisecond}, HTTPStatus: 200, BytesIn: 512, BytesOut: 128,
		})
	}
	r.Duration = 4 * latency
	return store.NewCheck(e.ID, "default", scheduled, r)
}
