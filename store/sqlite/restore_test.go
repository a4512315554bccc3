package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// savedFile makes a file with so many checks and returns what was saved of it.
func savedFile(t testing.TB, checks int) string {
	t.Helper()
	db, err := sqlite.Open(t.Context(), storetest.SQLite(t), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // what matters was saved
	e := newWeather(t, db)
	for n := range checks {
		record(t, db, goodCheck(e, n))
	}
	path := filepath.Join(t.TempDir(), "saved.db")
	if err := db.Backup(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

func checksIn(t testing.TB, path string) (n int) {
	t.Helper()
	db := openSQL(t, path)
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM checks`).Scan(&n); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// crashed makes a file as a process leaves it that was killed: with a log of changes beside it.
func crashed(t testing.TB, checks int) string {
	t.Helper()
	path := storetest.SQLite(t)
	db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the copies are what matters
	e := newWeather(t, db)
	for n := range checks {
		record(t, db, goodCheck(e, n))
	}
	left := storetest.SQLite(t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil || len(content) == 0 {
			t.Fatalf("%s%s has %d bytes, %v", path, suffix, len(content), err)
		}
		if err := os.WriteFile(left+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return left
}

func TestRestoreKeepsWhatWasThereWithItsLog(t *testing.T) {
	from, to := savedFile(t, 3), crashed(t, 7)
	aside := to + ".before"
	var steps []int
	saved, err := sqlite.Restore(t.Context(), from, to, aside, func(done, total int) { steps = append(steps, total-done) })
	if err != nil {
		t.Fatal(err)
	}
	if saved.Endpoints != 1 || saved.Checks != 3 || saved.Version == 0 || !saved.KeyFits(storetest.Sealer(t, 1)) || saved.KeyFits(storetest.Sealer(t, 2)) {
		t.Errorf("Restore = %+v, want one endpoint, three checks, and the key that it was made with", saved)
	}
	if len(steps) == 0 || steps[len(steps)-1] != 0 {
		t.Errorf("left to do %v, want nothing at the end", steps)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(to), "*-*")); err != nil || len(left) != 0 {
		t.Errorf("files %v, %v, want no log", left, err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want 600", info.Mode(), err)
	}
	if got := [2]int{checksIn(t, to), checksIn(t, aside)}; got != [2]int{3, 7} {
		t.Errorf("%v checks in the restored file and in the one before it, want 3 and 7", got)
	}
	e, err := open(t, to).Endpoint(t.Context(), "weather")
	if err != nil || e.Headers[0].Value != "s3cret" {
		t.Errorf("endpoint %+v, %v, want it with its header", e, err)
	}
}

func TestRestoreOverADamagedFile(t *testing.T) {
	from, to := savedFile(t, 3), storetest.SQLite(t)
	for suffix, content := range map[string]string{"": strings.Repeat("damaged ", 2000), "-wal": "its log", "-shm": "its index"} {
		if err := os.WriteFile(to+suffix, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sqlite.Restore(t.Context(), from, to, to+".before", nil); err != nil {
		t.Fatal(err)
	}
	if n := checksIn(t, to); n != 3 {
		t.Errorf("%d checks, want 3", n)
	}
	if content, err := os.ReadFile(to + ".before"); err != nil || !strings.HasPrefix(string(content), "damaged ") {
		t.Errorf("what was there: %.20q, %v, want it as it was", content, err)
	}
}

func TestRestoreWhereNothingIsButALog(t *testing.T) {
	from, to := savedFile(t, 3), crashed(t, 7)
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Restore(t.Context(), from, to, to+".before", nil); err != nil {
		t.Fatal(err)
	}
	if n := checksIn(t, to); n != 3 {
		t.Errorf("%d checks, want the 3 that were saved, without the changes of another file", n)
	}
}

func TestRestoreThatFailsChangesNothing(t *testing.T) {
	from, to := savedFile(t, 3), storetest.SQLite(t)
	db := open(t, to)
	newWeather(t, db)
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		from string
		want string
	}{
		"a text":             {t.Context(), text, "not a database"},
		"nothing":            {t.Context(), filepath.Join(t.TempDir(), "none.db"), "no such file"},
		"it is open":         {t.Context(), from, "another program has"},
		"it was interrupted": {cancelled, from, "canceled"},
	} {
		if _, err := sqlite.Restore(test.ctx, test.from, to, to+".before", nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Restore: error %v, want one that says %q", name, err, test.want)
		}
	}
	if _, err := db.Endpoint(t.Context(), "weather"); err != nil {
		t.Errorf("Endpoint: %v, want it as it was", err)
	}
	left, err := os.ReadDir(filepath.Dir(to))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		if strings.HasPrefix(file.Name(), ".") || strings.Contains(file.Name(), "before") {
			t.Errorf("%s was left behind", file.Name())
		}
	}
}

func TestOpenToReadChangesNothing(t *testing.T) {
	path := savedFile(t, 3)
	db, err := sqlite.OpenToRead(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if _, err := db.CreateEndpoint(t.Context(), store.Endpoint{URL: "https://x.example", Name: "X"}); err == nil {
		t.Error("an endpoint was kept in a file that is open to be read")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	none, err := sqlite.OpenToRead(filepath.Join(t.TempDir(), "none.db"))
	if err == nil {
		err = errors.Join(none.Ping(t.Context()), none.Close())
	}
	if err == nil {
		t.Error("a file that is not there was opened")
	}
}
