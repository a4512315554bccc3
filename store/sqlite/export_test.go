package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func copyTable(t testing.TB, name string) store.CopyTable {
	t.Helper()
	for _, table := range store.CopyTables {
		if table.Name == name {
			return table
		}
	}
	t.Fatalf("there is no table %s", name)
	return store.CopyTable{}
}

func export(t testing.TB, db *sqlite.DB) *sqlite.Export {
	t.Helper()
	e, err := db.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// fillSessions keeps more sessions, whose keys are bytes, and tokens than one batch holds.
func fillSessions(t testing.TB, db *sqlite.DB) int {
	t.Helper()
	if err := db.PutSetupToken(t.Context(), []byte("setup"), begin); err != nil {
		t.Fatal(err)
	}
	u, err := db.CreateFirstUser(t.Context(), []byte("setup"), store.User{Name: "ops", Role: store.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	const n = 2100
	for i := range n {
		session := store.Session{TokenHash: []byte{byte(i >> 8), 0, byte(i)}, UserID: u.ID, CreatedAt: begin, ExpiresAt: time.Now().Add(time.Hour)}
		if err := db.CreateSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestExportGoesOnWhereItWasLeft(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	wanted := map[string]int{"sessions": fillSessions(t, db), "checks": 9000}
	e := newWeather(t, db)
	var group []store.Check
	for n := range wanted["checks"] {
		group = append(group, goodCheck(e, n))
	}
	record(t, db, group...)
	for name, want := range wanted {
		table, after := copyTable(t, name), ""
		seen := map[string]bool{}
		for batches := 0; ; batches++ {
			state, err := db.Export(t.Context()) // each batch by an export of its own
			if err != nil {
				t.Fatal(err)
			}
			before := after
			for batch, err := range state.Batches(t.Context(), table, after) {
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range batch.Rows {
					seen[fmt.Sprint(row[0])] = true
				}
				for _, c := range batch.Checks {
					seen[c.ID] = true
				}
				after = batch.After
				break
			}
			if err := state.Close(); err != nil {
				t.Fatal(err)
			}
			if after == before {
				if batches < 2 {
					t.Errorf("%s came in %d batches, want several", name, batches)
				}
				break
			}
		}
		if len(seen) != want {
			t.Errorf("%d of %s were seen, want %d", len(seen), name, want)
		}
	}
}

func TestExportSeesOneState(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	e := newWeather(t, db)
	record(t, db, goodCheck(e, 0))
	state := export(t, db)
	before, err := state.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	record(t, db, goodCheck(e, 1))
	again, err := state.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, err := state.Count(t.Context(), copyTable(t, "checks"))
	if err != nil || n != 1 || again != before {
		t.Errorf("%d checks, %v, fingerprints %s and %s, want what was there at the beginning", n, err, before, again)
	}
	after, err := export(t, db).Fingerprint(t.Context())
	if err != nil || after == before {
		t.Errorf("fingerprint after a check %s, %v, want another one than %s", after, err, before)
	}
}

func TestExportRefusesAPlaceThatItDidNotName(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	state := export(t, db)
	for _, after := range []string{"?", "[]", `["ix"]`, `["bx"]`, `[""]`, `["i1","t1","t1"]`, "null", "{}"} {
		for _, name := range []string{"checks", "sessions", "notices"} {
			var found error
			for _, err := range state.Batches(t.Context(), copyTable(t, name), after) {
				found = err
			}
			if found == nil || !strings.Contains(found.Error(), "not a place to go on from") {
				t.Errorf("%s after %s: error %v, want that there is no such place", name, after, found)
			}
		}
	}
}

// History may name a location that nothing was heard from since there are places.
func TestExportMakesThePlacesThatHistoryNames(t *testing.T) {
	path := storetest.SQLite(t)
	db := open(t, path)
	e := newWeather(t, db)
	record(t, db, goodCheck(e, 0))
	if _, err := openSQL(t, path).ExecContext(t.Context(), `UPDATE uptime_days SET location = 'mars'; UPDATE checks SET location = 'moon'`); err != nil {
		t.Fatal(err)
	}
	var places []string
	for batch, err := range export(t, db).Batches(t.Context(), copyTable(t, "places"), "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range batch.Rows {
			places = append(places, fmt.Sprint(row[2], " ", row[4]))
		}
	}
	if diff := cmp.Diff(places, []string{"default up", "moon pending"}); diff != "" {
		t.Errorf("places (-got +want):\n%s", diff)
	}
}
