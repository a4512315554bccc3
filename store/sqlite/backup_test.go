package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/migrations"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

var begin = time.Date(2025, 11, 21, 8, 20, 0, 0, time.UTC)

// believe takes each check for what it says.
var believe = store.Judge{Check: func(_ store.Endpoint, s store.State, c store.Check) store.State {
	s.Status, s.Since = store.Status(c.Result.Verdict), c.Result.StartedAt
	return s
}}

// goodCheck returns a good check of the n-th second.
func goodCheck(e store.Endpoint, n int) store.Check {
	at := begin.Add(time.Duration(n) * time.Second)
	return store.NewCheck(e.ID, "default", at, probe.Result{StartedAt: at, Verdict: probe.Up, Facts: probe.Facts{ServerName: strings.Repeat("x", 500)}})
}

func open(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newWeather(t testing.TB, db *sqlite.DB) store.Endpoint {
	t.Helper()
	e := store.NewEndpoint()
	e.Name, e.URL, e.Public = "Weather", "https://weather.example", true
	e.Headers = []probe.Header{{Name: "Authorization", Value: "s3cret", Secret: true}}
	e, err := db.CreateEndpoint(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func record(t testing.TB, db *sqlite.DB, checks ...store.Check) {
	t.Helper()
	if _, err := db.Record(t.Context(), checks, believe); err != nil {
		t.Fatal(err)
	}
}

// A backup is one state of the database, made while checks come in all the time.
func TestBackupBesideAWriter(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	e := newWeather(t, db)
	group := make([]store.Check, 0, 600)
	for n := range cap(group) {
		c := goodCheck(e, n)
		c.Result.Facts.ServerName = strings.Repeat("x", 10_000) // more pages than one step copies
		group = append(group, c)
	}
	record(t, db, group...)

	written, stop := make(chan int), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(written)
		for n := len(group); ; n++ {
			if _, err := db.Record(t.Context(), []store.Check{goodCheck(e, n)}, believe); err != nil {
				t.Errorf("Record during a backup: %v", err)
				return
			}
			select {
			case written <- n:
			case <-stop:
				return
			}
		}
	})
	path := filepath.Join(t.TempDir(), "copy größe%41 #1.db")
	var steps []int
	total := 0
	err := db.Backup(t.Context(), path, func(done, all int) {
		steps, total = append(steps, done), all
		<-written // checks do come in between
		<-written
	})
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 2 || steps[len(steps)-1] != total || total == 0 {
		t.Errorf("progress %v of %d, want several steps up to all", steps, total)
	}
	for i := 1; i < len(steps); i++ {
		if steps[i] <= steps[i-1] {
			t.Errorf("progress %v, want it never to begin anew", steps)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
		t.Errorf("files %v, %v, want the backup alone", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) != 0 {
		t.Errorf("hidden files %v, %v, want none", left, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v, want 600", info.Mode(), err)
	}
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := sqlite.Verify(t.Context(), path); err != nil || version != len(all) {
		t.Errorf("Verify = %d, %v, want %d", version, err, len(all))
	}

	restored := open(t, path)
	o, err := restored.Endpoint(t.Context(), e.Slug)
	if err != nil || o.Headers[0].Value != "s3cret" {
		t.Fatalf("endpoint of the backup %+v, %v, want it with its header", o, err)
	}
	counts, err := restored.Counts(t.Context(), []string{e.ID}, store.Daily, begin.Add(-24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := openSQL(t, path).QueryRowContext(t.Context(), `SELECT COUNT(*) FROM checks`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if counts[e.ID].Up != rows || rows < len(group) || o.LastCheck == nil || o.LastCheck.ID != goodCheck(e, rows-1).ID {
		t.Errorf("%d checks are counted, %d are there, last %+v: want one state", counts[e.ID].Up, rows, o.LastCheck)
	}
}

func TestBackupOverwritesNothing(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	dir := t.TempDir()
	path := filepath.Join(dir, "there.db")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "nowhere.db")
	if err := os.Symlink(filepath.Join(dir, "none"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, link, dir} {
		if err := db.Backup(t.Context(), path, nil); !errors.Is(err, sqlite.ErrFileExists) {
			t.Errorf("Backup to %s: error %v, want ErrFileExists", path, err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q, %v, want it as it was", text, err)
	}
	// One that comes while the copy is made is not overwritten either.
	late := filepath.Join(dir, "late.db")
	err := db.Backup(t.Context(), late, func(int, int) {
		if err := os.WriteFile(late, []byte("mine"), 0o600); err != nil {
			t.Error(err)
		}
	})
	if text, _ := os.ReadFile(late); !errors.Is(err, sqlite.ErrFileExists) || string(text) != "mine" {
		t.Errorf("Backup: error %v, and the file is %.10q, want ErrFileExists and the file as it was", err, text)
	}
}

func TestABackupThatFailsLeavesNothingBehind(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Backup(ctx, filepath.Join(dir, "a.db"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup: error %v, want that it was cancelled", err)
	}
	if err := db.Backup(t.Context(), filepath.Join(dir, "none", "a.db"), nil); err == nil {
		t.Error("Backup to a folder that is not there succeeded")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("files %v, %v, want none", left, err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func TestVerifyTellsWhatIsNoBackup(t *testing.T) {
	dir := t.TempDir()
	db := open(t, storetest.SQLite(t))
	e := newWeather(t, db)
	for n := range 200 {
		record(t, db, goodCheck(e, n))
	}
	whole := filepath.Join(dir, "whole.db")
	if err := db.Backup(t.Context(), whole, nil); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	spoilt := append([]byte{}, content...)
	for i := 4096 * 20; i < 4096*40 && i < len(spoilt); i++ {
		spoilt[i] = 0xA5
	}
	future := put("future.db", content)
	other := put("other.db", nil)
	for path, statement := range map[string]string{
		future: `INSERT INTO schema_migrations VALUES (9999, 'future', 0)`,
		other:  `CREATE TABLE things (id INTEGER)`,
	} {
		if _, err := openSQL(t, path).ExecContext(t.Context(), `PRAGMA journal_mode = DELETE`); err != nil {
			t.Fatal(err)
		}
		if _, err := openSQL(t, path).ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	busy := put("busy.db", content)
	put("busy.db-wal", []byte("log"))
	for name, test := range map[string]struct{ path, want string }{
		"cut off":        {put("cut.db", content[:len(content)/2]), "damaged"},
		"spoilt":         {put("spoilt.db", spoilt), "damaged"},
		"a text":         {put("text.db", []byte(strings.Repeat("text ", 1000))), "not a database"},
		"nothing":        {put("empty.db", nil), "no database of rollcall"},
		"another's":      {other, "no database of rollcall"},
		"newer":          {future, "newer rollcall"},
		"in use":         {busy, "in use"},
		"a folder":       {dir, ""},
		"a missing file": {filepath.Join(dir, "none.db"), "no such file"},
	} {
		if version, err := sqlite.Verify(t.Context(), test.path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Verify = %d, %v, want an error that says %q", name, version, err, test.want)
		}
	}
	if version, err := sqlite.Verify(t.Context(), whole); err != nil || version == 0 {
		t.Errorf("the whole one: Verify = %d, %v", version, err)
	}
	if after, err := os.ReadFile(whole); err != nil || string(after) != string(content) {
		t.Errorf("Verify changed the file: %v", err)
	}
	if beside, err := filepath.Glob(whole + "?*"); err != nil || len(beside) != 0 {
		t.Errorf("Verify left %v, %v", beside, err)
	}
}

func TestTendDeletesMoreThanOneTransactionTakes(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	e := newWeather(t, db)
	var group []store.Check
	for n := range 2500 {
		group = append(group, goodCheck(e, n))
	}
	record(t, db, append(group, goodCheck(e, 86400), goodCheck(e, 2*86400))...)
	tomorrow := begin.Add(24 * time.Hour)
	n, err := db.Tend(t.Context(), store.Retention{Now: begin, Checks: tomorrow, Hours: tomorrow})
	if err != nil || n != 2500 {
		t.Errorf("Tend = %d, %v, want 2500", n, err)
	}
	hours, err := db.Uptime(t.Context(), e.ID, store.Hourly, begin.Add(-time.Hour), begin.Add(72*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hours {
		got = append(got, fmt.Sprint(h.Begin.Format("02 15h "), h.Counts.Up))
	}
	if diff := cmp.Diff(got, []string{"23 08h 1"}); diff != "" {
		t.Errorf("hours (-got +want):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Tend(ctx, store.Retention{Now: begin}); !store.IsFailure(err) {
		t.Errorf("Tend that is cancelled: error %v, want a failure", err)
	}
}
