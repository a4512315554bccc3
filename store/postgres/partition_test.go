package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func openStore(t testing.TB, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // it never fails
	return db
}

// partitionsOf lists the partitions of a table in the database at url.
func partitionsOf(t testing.TB, url, table string) (names []string) {
	t.Helper()
	rows, err := openSQL(t, url).QueryContext(t.Context(), `
		SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = $1::text::regclass ORDER BY 1`, table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

func execSQL(t testing.TB, url, statement string) {
	t.Helper()
	if _, err := openSQL(t, url).ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%v in %s", err, statement)
	}
}

func TestPartitionsAreMadeAhead(t *testing.T) {
	url := storetest.Postgres(t)
	before := store.DayOf(time.Now())
	db := openStore(t, url)
	if store.DayOf(time.Now()).After(before) {
		before = before.AddDate(0, 0, 1) // it was midnight
	}
	var want []string
	for day := -1; day <= 7; day++ {
		want = append(want, "checks_"+before.AddDate(0, 0, day).Format("20060102"))
	}
	got := partitionsOf(t, url, "checks")
	if diff := cmp.Diff(got[len(got)-len(want):], want); diff != "" {
		t.Errorf("partitions of checks when the database was opened (-got +want):\n%s", diff)
	}
	months := partitionsOf(t, url, "uptime_hours")
	for _, at := range []time.Time{before, before.AddDate(0, 0, 7)} {
		if name := "uptime_hours_" + at.Format("200601"); !slices.Contains(months, name) {
			t.Errorf("partitions of uptime_hours: %v, want %s among them", months, name)
		}
	}
	// Tomorrow there is room for another day.
	if _, err := db.Tend(t.Context(), store.Retention{Now: before.AddDate(0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"checks", "check_shapes"} {
		if name := table + "_" + before.AddDate(0, 0, 8).Format("20060102"); !slices.Contains(partitionsOf(t, url, table), name) {
			t.Errorf("no partition %s a day later", name)
		}
	}
}

func TestAPartitionIsMadeForACheckOfAnyDay(t *testing.T) {
	url := storetest.Postgres(t)
	db := openStore(t, url)
	e := makeEndpoints(t, db, 1)[0]
	for _, at := range []time.Time{
		time.Date(2031, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC),
	} {
		c := usual(e, "default", at)
		if err := keepAll(t.Context(), db, c, usual(e, "default", at.Add(time.Second))); err != nil {
			t.Errorf("Record of a check of %v: %v", at, err)
			continue
		}
		if got, err := db.Check(t.Context(), c.ID); err != nil || !got.ScheduledAt.Equal(at) || len(got.Result.Steps) != 4 {
			t.Errorf("Check of %v = %+v, %v, want it as it was", at, got, err)
		}
	}
}

func TestPartitionsAreDroppedWhole(t *testing.T) {
	url := storetest.Postgres(t)
	db := openStore(t, url)
	e := makeEndpoints(t, db, 1)[0]
	for day := range 4 {
		if err := keepAll(t.Context(), db, usual(e, "default", someDay.AddDate(0, 0, day))); err != nil {
			t.Fatal(err)
		}
	}
	execSQL(t, url, `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'rows are deleted one by one'; END $$;
		CREATE TRIGGER refuse BEFORE DELETE ON checks FOR EACH ROW EXECUTE FUNCTION refuse();
		CREATE TRIGGER refuse BEFORE DELETE ON check_shapes FOR EACH ROW EXECUTE FUNCTION refuse()`)
	dropped, err := db.Tend(t.Context(), store.Retention{Now: time.Now(), Checks: someDay.AddDate(0, 0, 2).Add(time.Hour)})
	if err != nil || dropped != 4 {
		t.Errorf("Tend = %d, %v, want two days of checks and of shapes dropped", dropped, err)
	}
	for table, want := range map[string]string{"checks": "checks_20260517", "check_shapes": "check_shapes_20260517"} {
		if got := partitionsOf(t, url, table); got[0] != want {
			t.Errorf("the oldest partition is %s, want %s", got[0], want)
		}
	}
}

func TestTwoInstancesTendAtOnce(t *testing.T) {
	url := storetest.Postgres(t)
	instances := []*postgres.DB{openStore(t, url), openStore(t, url)}
	e := makeEndpoints(t, instances[0], 1)[0]
	for day := range 5 {
		if err := keepAll(t.Context(), instances[0], usual(e, "default", someDay.AddDate(0, 0, day))); err != nil {
			t.Fatal(err)
		}
	}
	retention := store.Retention{Now: time.Now().AddDate(0, 0, 3), Checks: someDay.AddDate(0, 0, 4)}
	var wg sync.WaitGroup
	for _, db := range instances {
		wg.Go(func() {
			if _, err := db.Tend(t.Context(), retention); err != nil {
				t.Errorf("Tend: %v", err)
			}
		})
	}
	wg.Wait()
	if got := partitionsOf(t, url, "checks"); got[0] != "checks_20260519" {
		t.Errorf("the oldest partition is %s, want that of the fifth day", got[0])
	}
}

func TestAPartitionThatSomebodyDroppedIsMadeAgain(t *testing.T) {
	for name, statement := range map[string]string{
		"checks":  `DROP TABLE checks_20260515`,
		"both":    `DROP TABLE checks_20260515, check_shapes_20260515`,
		"months":  `DROP TABLE uptime_hours_202605`,
		"nothing": `SELECT 1`,
	} {
		t.Run(name, func(t *testing.T) {
			url := storetest.Postgres(t)
			db := openStore(t, url)
			e := makeEndpoints(t, db, 1)[0]
			// The second check ends the hour of the first, so that the month is known as well.
			if err := keepAll(t.Context(), db, usual(e, "default", someDay), usual(e, "default", someDay.Add(time.Hour))); err != nil {
				t.Fatal(err)
			}
			execSQL(t, url, statement)
			c := usual(e, "default", someDay.Add(2*time.Hour))
			if err := keepAll(t.Context(), db, c); err != nil {
				t.Fatalf("Record: %v", err)
			}
			got, err := db.Check(t.Context(), c.ID)
			if err != nil || len(got.Result.Steps) != 4 || got.Result.Steps[3].Name != "tools/list" {
				t.Errorf("Check = %+v, %v, want it whole", got, err)
			}
		})
	}
}

// Late checks, out of a spool, may be of a day that was let go of: by this instance or by another.
func TestWhatADayHadInCommonIsKeptAgainAfterItWasLetGoOf(t *testing.T) {
	for name, others := range map[string]bool{"by this instance": false, "by another": true} {
		t.Run(name, func(t *testing.T) {
			url := storetest.Postgres(t)
			db := openStore(t, url)
			endpoints := makeEndpoints(t, db, 3)
			tends := db
			if others {
				tends = openStore(t, url)
			}
			for _, e := range endpoints {
				if err := keepAll(t.Context(), db, usual(e, "default", someDay)); err != nil {
					t.Fatal(err)
				}
			}
			n, err := tends.Tend(t.Context(), store.Retention{Now: time.Now(), Checks: someDay.AddDate(0, 0, 1)})
			if err != nil || n != 2 {
				t.Fatalf("Tend = %d, %v, want a day of checks and of shapes dropped", n, err)
			}
			for _, e := range endpoints { // the first finds no room, those after it do
				c := usual(e, "default", someDay.Add(time.Minute))
				if err := keepAll(t.Context(), db, c); err != nil {
					t.Fatalf("Record: %v", err)
				}
				got, err := db.Check(t.Context(), c.ID)
				if err != nil || len(got.Result.Steps) != 4 || got.Result.Steps[3].Name != "tools/list" {
					t.Errorf("Check = %+v, %v, want it whole", got, err)
				}
			}
		})
	}
}

func TestAListOfChecksWhoseShapesAreGoneIsStillAList(t *testing.T) {
	url := storetest.Postgres(t)
	db := openStore(t, url)
	e := makeEndpoints(t, db, 1)[0]
	if err := keepAll(t.Context(), db, bad(e, "default", someDay), usual(e, "default", someDay.AddDate(0, 0, 1))); err != nil {
		t.Fatal(err)
	}
	execSQL(t, url, `DROP TABLE check_shapes_20260515`)
	page, err := db.Checks(t.Context(), store.CheckFilter{EndpointID: e.ID})
	if err != nil || len(page.Items) != 2 || page.Items[1].Result.Verdict != probe.Down || len(page.Items[0].Result.Steps) != 4 {
		t.Errorf("Checks = %+v, %v, want both, the older one with its verdict", page.Items, err)
	}
}

func TestALongReaderHoldsUpADropForAWhileAndNobodyElseAfterwards(t *testing.T) {
	url := storetest.Postgres(t)
	db := openStore(t, url)
	e := makeEndpoints(t, db, 1)[0]
	if err := keepAll(t.Context(), db, usual(e, "default", someDay), usual(e, "default", someDay.AddDate(0, 0, 1))); err != nil {
		t.Fatal(err)
	}
	reader, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(t.Context()) //nolint:errcheck // nothing depends on how the connection ends
	tx, err := reader.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM checks_20260515`); err != nil {
		t.Fatal(err)
	}
	retention := store.Retention{Now: time.Now(), Checks: someDay.AddDate(0, 0, 1)}
	begin := time.Now()
	_, err = db.Tend(t.Context(), retention)
	if took := time.Since(begin); !store.IsFailure(err) || took > postgres.DropPatience+5*time.Second {
		t.Errorf("Tend while somebody reads: %v after %v, want a failure after %v", err, took, postgres.DropPatience)
	}
	if err := keepAll(t.Context(), db, usual(e, "default", someDay.AddDate(0, 0, 1).Add(time.Minute))); err != nil {
		t.Errorf("Record while somebody still reads: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Tend(t.Context(), retention); err != nil || n == 0 {
		t.Errorf("Tend afterwards = %d, %v, want the day dropped", n, err)
	}
	if got := partitionsOf(t, url, "checks"); strings.HasSuffix(got[0], "20260515") {
		t.Errorf("%s is still there", got[0])
	}
}

func TestRecordGoesOnWhilePartitionsComeAndGo(t *testing.T) {
	url := storetest.Postgres(t)
	db, other := openStore(t, url), openStore(t, url)
	endpoints := makeEndpoints(t, db, 10)
	const days = 12
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for day := range days {
			for minute := range 10 {
				var group []store.Check
				for _, e := range endpoints {
					group = append(group, usual(e, "default", someDay.AddDate(0, 0, day).Add(time.Duration(minute)*time.Minute)))
				}
				if err := keepAll(t.Context(), db, group...); err != nil {
					t.Errorf("Record on day %d: %v", day, err)
					return
				}
			}
		}
	})
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			// Room ahead of the checks, and no more behind them: what is dropped here may be needed again at once.
			day := someDay.AddDate(0, 0, n%days)
			_, err := other.Tend(t.Context(), store.Retention{Now: day, Checks: day.AddDate(0, 0, -2)})
			if err != nil && !strings.Contains(err.Error(), "lock timeout") { // its patience may end on a busy machine
				t.Errorf("Tend: %v", err)
			}
		}
	})
	wg.Wait()
	counts, err := db.Counts(t.Context(), []string{endpoints[0].ID}, store.Daily, someDay)
	if err != nil || counts[endpoints[0].ID].Up != 10*days {
		t.Errorf("Counts = %+v, %v, want all %d checks counted", counts, err, 10*days)
	}
}
