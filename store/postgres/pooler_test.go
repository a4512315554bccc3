package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// transactions is what the URL of a database says when a pooler in transaction mode stands in front of it.
const transactions = "&default_query_exec_mode=exec"

// The server is west of Greenwich: without prepared statements it reads our arguments as it would read texts.
func TestEverythingWorksThroughAPoolerInTransactionMode(t *testing.T) {
	server := storetest.PostgresServer(t, "timezone=America/New_York")
	url := server.PgBouncer(t, 3).URL(t, server.URL()) + transactions
	history := newHistory(t, url)
	db := openStore(t, url+"&pool_max_conns=10")
	for _, c := range callsOf(history, db) {
		if err := c.do(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// Days are those of UTC wherever the server is.
	e := history.endpoints[11]
	day := store.DayOf(time.Now())
	if err := keepAll(t.Context(), db, usual(e, "default", day.AddDate(0, 0, 1)), usual(e, "default", day.AddDate(0, 0, 1).Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	var n int
	err := openSQL(t, server.URL()).QueryRowContext(t.Context(), `
		SELECT count(*) FROM uptime_days u JOIN places p ON p.num = u.place
		WHERE p.endpoint_id = $1 AND u.day = $2::text::date`, e.ID, day.AddDate(0, 0, 1).Format(time.DateOnly)).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("%d days of tomorrow, %v, want one", n, err)
	}
}

// Many more connections of ours than the pooler has of the server's: each transaction waits for one, and none keeps it.
func TestInstancesShareAPooler(t *testing.T) {
	server := storetest.PostgresServer(t)
	url := server.PgBouncer(t, 2).URL(t, server.URL()) + transactions + "&pool_max_conns=8"
	const instances, rounds = 4, 30
	stores := make([]*postgres.DB, instances)
	var wg sync.WaitGroup
	for i := range stores { // all of them at once, on an empty database
		wg.Go(func() {
			db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			stores[i] = db
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	endpoints := makeEndpoints(t, stores[0], 5)
	for _, db := range stores {
		defer db.Close() //nolint:errcheck // it never fails
		for range 2 {    // every instance records everything, twice at once: what another has kept is passed over
			wg.Go(func() {
				for n := range rounds {
					var group []store.Check
					for _, e := range endpoints {
						group = append(group, usual(e, "default", someDay.Add(time.Duration(n)*10*time.Minute)))
					}
					if _, err := db.Record(t.Context(), group, believe); err != nil {
						t.Errorf("Record: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, e := range endpoints {
		counts, err := stores[0].Counts(t.Context(), []string{e.ID}, store.Daily, someDay)
		if err != nil || counts[e.ID].Up != rounds {
			t.Errorf("Counts = %+v, %v, want %d, each check once", counts, err, rounds)
		}
	}
}

// Without a word about the pooler we ask for what belongs to a connection (statement_timeout, jit), which a pooler in
// transaction mode refuses at once, naming the first of these that it meets, and we add what to do: nobody runs for a while and fails later, on a statement that another connection has prepared.
func TestAPoolerThatWeWereNotToldOfIsNoticedAtStart(t *testing.T) {
	server := storetest.PostgresServer(t)
	db, err := postgres.Open(t.Context(), server.PgBouncer(t, 2).URL(t, server.URL()), storetest.Sealer(t, 1))
	if err == nil {
		_ = db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "unsupported startup parameter") ||
		!strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Errorf("Open: error %v, want one that names the pooler's complaint and what the URL has to say", err)
	}
}
