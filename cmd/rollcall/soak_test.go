//go:build soak

package main_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// What TestSoak asks for. How long it takes is set by SOAK=10m; SOAK_OUTAGE=60s takes the database away for so long in the
// middle.
const (
	soakEndpoints = 10_000 // half of them MCP servers, half nodes
	soakHanging   = 200    // beside them
	soakPeriod    = time.Minute
	soakProgress  = 30 * time.Second
	// soakFirst is how long the first checks of all endpoints, and the confirmations of the hanging ones, may take.
	soakFirst = soakPeriod + 15*time.Second
	soakDelay = 100 * time.Millisecond // of every answer

	soakMaxMB        = 150
	soakMaxMBAfter   = 256  // when the database is back, what has waited is written while everything else goes on
	soakMaxGrowth    = 1.10 // of the memory, from the middle third to the last
	soakMaxDeviation = 250 * time.Millisecond
	soakGoal         = 10 * time.Millisecond
)

// TestSoak runs the real binary on a real Postgres for a while, watches ten thousand endpoints and some that hang, and
// holds what the target saw against the schedule and against the table: nothing missed, nothing doubled, in time, and in
// a memory that does not grow.
func TestSoak(t *testing.T) {
	duration, outage := soakSetting(t, "SOAK", 10*time.Minute), soakSetting(t, "SOAK_OUTAGE", 0)
	if duration < soakFirst+2*soakPeriod+outage {
		t.Fatalf("SOAK=%s is too short to see anything, %s at least", duration, soakFirst+2*soakPeriod+outage)
	}
	s := &soak{T: t, target: startTarget(t, soakDelay), postgres: ownPostgres(t)}
	s.register()
	s.service = serveInstance(t, serviceEnvironment(t), "--database", s.postgres.URL(), "--allow-private", "127.0.0.0/8")
	s.begin = time.Now()
	s.db = openSQL(t, "pgx", s.postgres.URL())
	s.endpoints = s.readEndpoints()

	s.watch(s.begin.Add((duration - outage) / 2))
	if outage > 0 {
		s.say("the database is away for %s", outage)
		s.postgres.Stop(t)
		s.away = true
		s.watch(time.Now().Add(outage))
		s.postgres.Start(t)
		s.db = openSQL(t, "pgx", s.postgres.URL()) // no connection survives
		s.away = false
		s.say("the database is back")
	}
	s.watch(s.begin.Add(duration))
	s.service.await("what waits to be written", func() bool {
		return s.service.metric("rollcall_recorder_waiting")+s.service.metric("rollcall_spool_checks") == 0
	})
	end := time.Now()
	s.service.stop()

	s.checkMemory(outage == 0)
	s.checkSchedule(end)
	s.checkTable()
}

func soakSetting(t *testing.T, name string, otherwise time.Duration) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

type soak struct {
	*testing.T
	target   *target
	postgres *storetest.Server
	service  *instance
	db       *sql.DB

	begin     time.Time
	endpoints map[int]store.Endpoint // by their number at the target
	memory    []float64              // MB, each second
	away      bool                   // the database
}

// say prints at once what a test would otherwise only say at its end.
func (s *soak) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%8s  %s\n", time.Since(s.begin).Round(time.Second), fmt.Sprintf(format, args...))
}

// register has the command line register every endpoint, from a file.
func (s *soak) register() {
	s.Helper()
	s.begin = time.Now()
	list := make([]object, soakEndpoints+soakHanging)
	for n := range list {
		e := object{"slug": fmt.Sprintf("soak-%d", n), "name": fmt.Sprintf("Soak %d", n), "schedule": "@every 60s", "timeout": "10s"}
		switch {
		case n >= soakEndpoints:
			e["url"], e["kind"], e["request"] = s.target.url("hang", n), "jsonrpc", object{"method": "eth_blockNumber", "params": []any{}}
		case n%2 == 0:
			e["url"], e["kind"] = s.target.url("mcp", n), "mcp"
		default:
			e["url"], e["kind"], e["request"] = s.target.url("eth", n), "jsonrpc", object{"method": "eth_blockNumber", "params": []any{}}
		}
		list[n] = e
	}
	text, err := json.Marshal(object{"endpoints": list})
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.TempDir(), "endpoints.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.Fatal(err)
	}
	cmd := exec.CommandContext(s.Context(), binary(s), "endpoints", "apply", file, "--database", s.postgres.URL())
	cmd.Env = append(os.Environ(), testKey)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	s.say("%d endpoints are registered", len(list))
}

func (s *soak) readEndpoints() map[int]store.Endpoint {
	s.Helper()
	endpoints := map[int]store.Endpoint{}
	s.query(`SELECT id, slug FROM endpoints`, func(rows *sql.Rows) error {
		e := store.Endpoint{Schedule: "@every 60s"}
		var n int
		if err := rows.Scan(&e.ID, &e.Slug); err != nil {
			return err
		}
		if _, err := fmt.Sscanf(e.Slug, "soak-%d", &n); err != nil {
			return err
		}
		endpoints[n] = e
		return nil
	})
	return endpoints
}

func (s *soak) query(query string, scan func(*sql.Rows) error) {
	s.Helper()
	rows, err := s.db.QueryContext(s.Context(), query)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			s.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
}

// watch notes the memory each second and prints how things stand, until a time.
func (s *soak) watch(until time.Time) {
	s.Helper()
	next := time.Now().Add(soakProgress)
	for time.Now().Before(until) {
		time.Sleep(time.Second) // other processes, which no bubble holds
		s.memory = append(s.memory, residentMB(s, s.service.cmd.Process.Pid))
		if time.Now().After(next) {
			s.progress(next.Add(-soakProgress), next)
			next = next.Add(soakProgress)
		}
	}
}

func (s *soak) progress(from, to time.Time) {
	s.Helper()
	to = to.Add(-time.Second) // what is due by then has begun
	p := punctualityOf(s, s.answering(), s.target.since(s, from.Add(-time.Second)), from, to)
	kept := "the database is away"
	if !s.away {
		kept = fmt.Sprintf("%d checks in the table", countChecks(s, s.db))
	}
	if from.Before(s.begin.Add(soakFirst)) {
		s.say("%.0f MB, %s, first checks", s.memory[len(s.memory)-1], kept)
		return
	}
	s.say("%.0f MB, %s, at the target %s", s.memory[len(s.memory)-1], kept, p)
}

// answering returns the endpoints that answer.
func (s *soak) answering() map[int]store.Endpoint {
	answering := map[int]store.Endpoint{}
	for n, e := range s.endpoints {
		if n < soakEndpoints {
			answering[n] = e
		}
	}
	return answering
}

// checkMemory holds the memory against the goal, and its last third against its middle one when it is to be flat: checks
// that wait for a database take some.
func (s *soak) checkMemory(flat bool) {
	s.Helper()
	third := len(s.memory) / 3
	middle, last := mean(s.memory[third:2*third]), mean(s.memory[2*third:])
	highest := 0.0
	for _, mb := range s.memory {
		highest = max(highest, mb)
	}
	most := float64(soakMaxMB)
	if !flat {
		most = soakMaxMBAfter
	}
	s.say("memory: %.0f MB in the middle third, %.0f MB in the last, %.0f MB at most; goal %.0f MB", middle, last, highest, most)
	if flat && last > soakMaxGrowth*middle {
		s.Errorf("memory grows: %.0f MB in the middle third, %.0f MB in the last", middle, last)
	}
	if highest > most {
		s.Errorf("%.0f MB of memory at most, want %.0f", highest, most)
	}
}

func mean(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// checkSchedule holds the arrivals at the target against the schedule, from when every endpoint was checked once.
func (s *soak) checkSchedule(end time.Time) {
	s.Helper()
	from, to := s.begin.Add(soakFirst), end.Add(-2*time.Second)
	p := punctualityOf(s, s.answering(), s.target.since(s, from.Add(-soakPeriod)), from, to)
	s.say("at the target: %s; goal p99 %s", p, soakGoal)
	if p.missed > 0 || p.doubled > 0 {
		s.Errorf("the target saw %d of %d checks missing and %d too many", p.missed, p.wanted, p.doubled)
	}
	if late := p.percentile(99); late > soakMaxDeviation {
		s.Errorf("deviation from the schedule p99 %s, want at most %s", late, soakMaxDeviation)
	}
}

// checkTable holds the checks that the target saw against those in the table, endpoint by endpoint. Probes that hang when
// the service stops are cut short and not recorded.
func (s *soak) checkTable() {
	s.Helper()
	seen, kept, down := map[int]int{}, map[int]int{}, map[int]int{}
	for _, a := range s.target.since(s, time.UnixMicro(0)) {
		seen[a.Endpoint]++
	}
	s.query(`SELECT endpoint, count(*), count(nullif(class, '')) FROM check_steps WHERE position = 1 GROUP BY endpoint`,
		func(rows *sql.Rows) error {
			var slug string
			var n, all, failed int
			err := rows.Scan(&slug, &all, &failed)
			if err == nil {
				_, err = fmt.Sscanf(slug, "soak-%d", &n)
			}
			kept[n], down[n] = all, failed
			return err
		})
	var wrong bytes.Buffer
	checks, lost, doubled := 0, 0, 0
	for n := range s.endpoints {
		cut := 0
		if n >= soakEndpoints {
			cut = 1
			if down[n] != kept[n] || down[n] == 0 {
				fmt.Fprintf(&wrong, "hanging endpoint %d: %d of %d checks failed at the first step\n", n, down[n], kept[n])
			}
		}
		checks += kept[n]
		lost += max(0, seen[n]-cut-kept[n])
		doubled += max(0, kept[n]-seen[n])
		if kept[n] > seen[n] || kept[n] < seen[n]-cut {
			fmt.Fprintf(&wrong, "endpoint %d: the target saw %d checks, the table holds %d\n", n, seen[n], kept[n])
		}
	}
	s.say("%d checks in the table, %d lost, %d that the target did not see", checks, lost, doubled)
	if text := wrong.String(); text != "" {
		s.Errorf("%d checks lost, %d that the target did not see:\n%.2000s", lost, doubled, text)
	}
}
