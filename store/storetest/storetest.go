// Package storetest says what every store must do, as tests that each driver runs against a real database. It also gives
// tests of other packages real databases to work on. Programs do not import it.
package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// SQLite returns the path of a SQLite file that is not there yet, in a folder that goes when t ends.
func SQLite(t testing.TB) (path string) {
	t.Helper()
	return filepath.Join(t.TempDir(), "rollcall.db")
}

// migrated is a SQLite file with the newest schema and nothing in it, made once.
var migrated struct {
	once    sync.Once
	content []byte
	err     error
}

// MigratedSQLite returns the path of a SQLite file with the newest schema and nothing in it, in a folder that goes when t ends.
// migrate is sqlite.Migrate, which is called once: bringing a file up to date takes longer than most tests do.
func MigratedSQLite(t testing.TB, migrate func(ctx context.Context, path string) (from, to int, err error)) (path string) {
	t.Helper()
	migrated.once.Do(func() {
		template := SQLite(t)
		if _, _, migrated.err = migrate(t.Context(), template); migrated.err == nil {
			migrated.content, migrated.err = os.ReadFile(template)
		}
	})
	if migrated.err != nil {
		t.Fatal(migrated.err)
	}
	path = SQLite(t)
	if err := os.WriteFile(path, migrated.content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Database is one database, empty at first.
type Database struct {
	// Open opens it as a store; each call opens the same database once more.
	Open func(t testing.TB, sealer *store.Sealer) (store.Store, error)
	// ForgetSecrets is the driver's function of that name.
	ForgetSecrets func(t testing.TB, sealer *store.Sealer) (store.Forgotten, error)
	// SQL opens it beside the store, as an operator would.
	SQL func(t testing.TB) *sql.DB

	// How long the database itself takes at its fastest, for Bench to hold the store against; nil where a driver does not say.
	// BareChecks writes so many checks (see BenchChecks) as bare rows in one transaction, BareCommits each in a transaction
	// of its own, BareDays reads the rows of the days of an endpoint, and BareEndpoints those of the first so many endpoints
	// by name.
	BareCommits   func(t testing.TB, n int) time.Duration
	BareChecks    func(t testing.TB, n int) time.Duration
	BareDays      func(t testing.TB, endpointID string) time.Duration
	BareEndpoints func(t testing.TB, n int) time.Duration
}

// Run tests that a driver does what store.Store says. fresh makes an empty database.
func Run(t *testing.T, fresh func(t testing.TB) Database) {
	for _, chapter := range []struct {
		name string
		run  func(t *testing.T, fresh func(t testing.TB) Database)
	}{
		{"database", testDatabase},
		{"endpoints", testEndpoints},
		{"endpoint list", testEndpointList},
		{"index", testIndex},
		{"briefs", testBriefs},
		{"locations", testLocations},
		{"edits", testEdits},
		{"record", testRecord},
		{"parallel record", testParallelRecord},
		{"checks", testChecks},
		{"places", testPlaces},
		{"clock", testClock},
		{"uptime", testUptime},
		{"roll-ups", testRollups},
		{"roll-ups of many", testManyRollups},
		{"tend", testTend},
		{"heads", testHeads},
		{"contracts", testContracts},
		{"transcripts", testTranscripts},
		{"announcements", testAnnouncements},
		{"incidents", testIncidents},
		{"turns", testTurns},
		{"acts", testActs},
		{"timeline", testTimeline},
		{"raise", testRaise},
		{"shared incidents", testShared},
		{"maintenance", testMaintenance},
		{"status pages", testStatusPages},
		{"tally", testTally},
		{"sight", testSight},
		{"alerting", testAlerting},
		{"channels", testChannels},
		{"notices", testNotices},
		{"delivery", testDelivery},
		{"subscriptions", testSubscriptions},
		{"subscription caps", testSubscriptionCaps},
		{"page subscriptions", testPageSubscriptions},
		{"departed endpoints", testDepartedEndpoints},
		{"public entries", testPublicEntries},
		{"users", testUsers},
		{"members", testMembers},
		{"audit", testAudit},
		{"forgotten secrets", testForgottenSecrets},
	} {
		t.Run(chapter.name, func(t *testing.T) {
			t.Parallel() // chapters share nothing: each of their cases has a database of its own
			chapter.run(t, fresh)
		})
	}
}

// Sealer returns a sealer whose key is a repeated byte.
func Sealer(t testing.TB, b byte) *store.Sealer {
	t.Helper()
	sealer, err := store.NewSealer(bytes.Repeat([]byte{b}, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

// open opens db with the usual key and closes it when t ends.
func (db Database) open(t testing.TB) store.Store {
	t.Helper()
	s, err := db.Open(t, Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// start is when everything in these tests begins: in the middle of an hour, not on a whole second, and long ago by any clock,
// because what lies ahead of it is not believed.
var start = time.Date(2025, 11, 21, 8, 20, 0, 123456000, time.UTC)

func minutes(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// judge believes everything at once except down, which takes confirm.failures checks in a row, and finds an endpoint down
// when at least endpoint.quorum of its places are.
var judge = store.Judge{Check: judgeCheck, Vote: vote}

func judgeCheck(e store.Endpoint, s store.State, c store.Check) store.State {
	r := c.Result
	if s.Status == store.Status(r.Verdict) {
		s.Streak = store.Streak{}
		return s
	}
	if s.Streak.Verdict != r.Verdict {
		s.Streak = store.Streak{Verdict: r.Verdict, Since: r.StartedAt, Failure: r.Failure}
	}
	s.Streak.Count++
	if r.Verdict != probe.Down || s.Streak.Count >= e.Confirm.Failures {
		s.Status, s.Since, s.Failure, s.Streak = store.Status(r.Verdict), s.Streak.Since, s.Streak.Failure, store.Streak{}
	}
	return s
}

// vote takes the worst status, except that down counts only where enough places are down. It is that of the place that came
// to it first, or, where several are needed, of the one with which they were enough.
func vote(e store.Endpoint, s store.State, places []store.Place, _ time.Time) store.State {
	quorum := max(1, e.Quorum)
	for _, status := range store.Statuses() {
		var those []store.Place
		for _, p := range places {
			if p.State.Status == status {
				those = append(those, p)
			}
		}
		if status != store.StatusDown {
			quorum = 1
		}
		if len(those) < quorum {
			continue
		}
		slices.SortFunc(those, func(a, b store.Place) int { return a.State.Since.Compare(b.State.Since) })
		if s.Status != status {
			s.Status, s.Since, s.Failure = status, those[quorum-1].State.Since, those[0].State.Failure
		}
		return s
	}
	return s
}

// newEndpoint keeps an endpoint that one bad check proves down, as edited.
func newEndpoint(t testing.TB, s store.Store, name string, edits ...func(*store.Endpoint)) store.Endpoint {
	t.Helper()
	e := store.NewEndpoint()
	e.Name, e.URL, e.Confirm.Failures = name, "https://"+store.Slugify(name)+".example/mcp", 1
	for _, edit := range edits {
		edit(&e)
	}
	kept, err := s.CreateEndpoint(t.Context(), e)
	if err != nil {
		t.Fatalf("CreateEndpoint(%q): %v", name, err)
	}
	return kept
}

func newChannel(t testing.TB, s store.Store, name string) store.Channel {
	t.Helper()
	c, err := s.CreateChannel(t.Context(), store.Channel{
		Name:    name,
		Type:    store.ChannelSlack,
		Secrets: map[string]string{"webhook_url": "https://hooks.example/" + name},
	})
	if err != nil {
		t.Fatalf("CreateChannel(%q): %v", name, err)
	}
	return c
}

// to adds channels to an endpoint.
func to(channels ...store.Channel) func(*store.Endpoint) {
	return func(e *store.Endpoint) {
		for _, c := range channels {
			e.Channels = append(e.Channels, c.ID)
		}
	}
}

// checkAt returns a check of e with a verdict, as plain as can be.
func checkAt(e store.Endpoint, at time.Time, verdict probe.Verdict) store.Check {
	return checkFrom("default", e, at, verdict)
}

// checkFrom returns a check of e from a location.
func checkFrom(location string, e store.Endpoint, at time.Time, verdict probe.Verdict) store.Check {
	r := probe.Result{StartedAt: at, Duration: 80 * time.Millisecond, Kind: probe.KindMCP, Verdict: verdict}
	if verdict != probe.Up {
		r.Failure = &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error"}
	}
	return store.NewCheck(e.ID, location, at, r)
}

// record keeps checks as one group, all of which must be kept.
func record(t testing.TB, s store.Store, checks ...store.Check) []store.Outcome {
	t.Helper()
	outcomes, err := s.Record(t.Context(), checks, judge)
	if err != nil {
		t.Fatalf("Record: %v", err)
	}
	for i, o := range outcomes {
		if !o.Kept {
			t.Fatalf("Record did not keep check %d of %d", i+1, len(checks))
		}
	}
	return outcomes
}

func overview(t testing.TB, s store.Store, slug string) store.Overview {
	t.Helper()
	o, err := s.Endpoint(t.Context(), slug)
	if err != nil {
		t.Fatalf("Endpoint(%q): %v", slug, err)
	}
	return o
}

func incident(t testing.TB, s store.Store, id string) store.Incident {
	t.Helper()
	i, err := s.Incident(t.Context(), id)
	if err != nil {
		t.Fatalf("Incident(%q): %v", id, err)
	}
	return i
}

func allChecks(t testing.TB, s store.Store, e store.Endpoint) []store.Check {
	t.Helper()
	page, err := s.Checks(t.Context(), store.CheckFilter{EndpointID: e.ID, Limit: store.MaxLimit})
	if err != nil {
		t.Fatalf("Checks: %v", err)
	}
	return page.Items
}

func pending(t testing.TB, s store.Store) int {
	t.Helper()
	n, err := s.PendingNotices(t.Context())
	if err != nil {
		t.Fatalf("PendingNotices: %v", err)
	}
	return n
}

// walk reads a list page by page and returns the names of its items in order.
func walk[T any](t testing.TB, name func(T) string, page func(cursor string) (store.Page[T], error)) []string {
	t.Helper()
	var names []string
	for cursor, pages := "", 0; ; pages++ {
		p, err := page(cursor)
		if err != nil {
			t.Fatalf("page %d: %v", pages+1, err)
		}
		for _, item := range p.Items {
			names = append(names, name(item))
		}
		if p.Next == "" {
			return names
		}
		if pages > 1000 {
			t.Fatal("the pages never end")
		}
		cursor = p.Next
	}
}

// badCursors are texts that no list handed out.
func badCursors() []string {
	return []string{
		"?", "AAAA", "bnVsbA", "e30", "W10",
		store.NameCursor("elsewhere", "x"), store.TimeCursor("elsewhere", start, "x"),
		store.NameCursor("endpoints", "a\x00b"),
		store.TimeCursor("checks", time.UnixMicro(1<<62), "x"), store.TimeCursor("incidents", time.UnixMicro(-1<<62), "x"),
	}
}
