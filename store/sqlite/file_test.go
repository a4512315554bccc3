package sqlite_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/migrations"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestAnyNameOfAFileWillDo(t *testing.T) {
	for _, name := range []string{"plain.db", "with space.db", "a?b#c%20d&e=f.db", "größe.db", "'quoted\".db"} {
		path := filepath.Join(t.TempDir(), name)
		db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
		if err != nil {
			t.Errorf("Open(%q): %v", name, err)
			continue
		}
		if err := db.Close(); err != nil {
			t.Errorf("Close of %q: %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the file is not where it should be: %v", err)
		}
	}
}

func TestAFileNobodyElseCanRead(t *testing.T) {
	path := storetest.SQLite(t)
	db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was written
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(file), mode)
		}
	}
}

func TestWhatIsNoDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a text":         text,
		"a folder":       dir,
		"no such folder": filepath.Join(dir, "none", "rollcall.db"),
		"memory":         ":memory:",
		"nothing":        "",
	} {
		if db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1)); err == nil {
			_ = db.Close()
			t.Errorf("%s was opened as a database", name)
		}
	}
	if content, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(content), "not a database\n") {
		t.Errorf("the text is %.20q, %v, want it untouched", content, err)
	}
}

func TestMigrateSaysWhatItDid(t *testing.T) {
	path := storetest.SQLite(t)
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][2]int{{0, len(all)}, {len(all), len(all)}} {
		from, to, err := sqlite.Migrate(t.Context(), path)
		if err != nil || from != want[0] || to != want[1] {
			t.Errorf("Migrate = from %d to %d, %v, want from %d to %d", from, to, err, want[0], want[1])
		}
	}
}

// Every version that was ever in use must lead to the newest.
func TestMigrateFromEveryVersion(t *testing.T) {
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for old := range len(all) {
		path := storetest.SQLite(t)
		raw := openSQL(t, path)
		statements := []string{`
			CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`}
		for _, m := range all[:old] {
			statements = append(statements, m.SQL,
				`INSERT INTO schema_migrations VALUES (`+strconv.Itoa(m.Version)+`, '`+m.Name+`', 0)`)
		}
		for _, statement := range statements {
			if _, err := raw.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		from, to, err := sqlite.Migrate(t.Context(), path)
		if err != nil || from != old || to != len(all) {
			t.Errorf("Migrate = from %d to %d, %v, want from %d to %d", from, to, err, old, len(all))
		}
		db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
		if err != nil {
			t.Errorf("Open after version %d: %v", old, err)
			continue
		}
		if err := db.Ping(t.Context()); err != nil {
			t.Errorf("Ping after version %d: %v", old, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAskingForNoticesTakesNoWriteLockWhenNothingIsDue(t *testing.T) {
	path := storetest.SQLite(t)
	db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was written
	writer, err := openSQL(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close() //nolint:errcheck // it only holds a lock
	if _, err := writer.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // less than a writer would wait
	defer cancel()
	if got, err := db.LeaseNotices(ctx, "me", time.Now(), time.Minute, 10); err != nil || len(got) != 0 {
		t.Errorf("LeaseNotices beside a writer = %v, %v, want nothing at once", got, err)
	}
}

// killed, when set, makes the test binary a process that records checks until it is killed.
const killed = "ROLLCALL_TEST_RECORD_UNTIL_KILLED"

func TestNoAcknowledgedCheckIsLostByKill9(t *testing.T) {
	path := storetest.SQLite(t)
	if file := os.Getenv(killed); file != "" {
		recordUntilKilled(t, file)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), killed+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged, rest := 0, make([]byte, 4096)
	for acknowledged < 50 {
		n, err := out.Read(rest)
		if err != nil {
			t.Fatalf("after %d checks: %v", acknowledged, err)
		}
		acknowledged += strings.Count(string(rest[:n]), "kept\n")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed

	db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was written
	o, err := db.Endpoint(t.Context(), "weather")
	if err != nil {
		t.Fatal(err)
	}
	page, err := db.Checks(t.Context(), store.CheckFilter{EndpointID: o.ID, Limit: store.MaxLimit})
	if err != nil || len(page.Items) < acknowledged {
		t.Errorf("%d checks are there, %v, want at least the %d that were acknowledged", len(page.Items), err, acknowledged)
	}
}

func recordUntilKilled(t *testing.T, path string) {
	db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	e := store.NewEndpoint()
	e.Name, e.URL = "Weather", "https://weather.example"
	if e, err = db.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	believe := store.Judge{Check: func(_ store.Endpoint, s store.State, _ store.Check) store.State { return s }}
	begin := time.Now()
	for i := range store.MaxLimit {
		at := begin.Add(time.Duration(i) * time.Second)
		c := store.NewCheck(e.ID, "default", at, probe.Result{StartedAt: at, Verdict: probe.Up})
		if _, err := db.Record(t.Context(), []store.Check{c}, believe); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("kept\n")
	}
	select {} // until it is killed
}

// A database with notices and the log of their delivery goes through the step that rebuilds their tables.
func TestNoticesAndTheirLogSurviveTheStepThatMovesThem(t *testing.T) {
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	path := storetest.SQLite(t)
	raw := openSQL(t, path)
	statements := []string{`CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`}
	for _, m := range all[:4] {
		statements = append(statements, m.SQL, `INSERT INTO schema_migrations VALUES (`+strconv.Itoa(m.Version)+`, '`+m.Name+`', 0)`)
	}
	statements = append(statements,
		`INSERT INTO channels (id, name, name_key, type, settings, created_at, updated_at) VALUES ('ch_1', 'ops', 'ops', 'slack', '{}', 0, 0)`,
		`INSERT INTO endpoints VALUES ('ep_1', 'a', 'a', 'a', 'a', 'mcp', 'https://a.example', NULL, '', NULL, '@every 60s', 1, 1, 1, 1, 1, 0, 0, '[]', 0, 0)`,
		`INSERT INTO endpoint_states (endpoint_id, status, evidence) VALUES ('ep_1', 'down', '{}')`,
		`INSERT INTO incidents VALUES ('inc_1', 'ep_1', 'down', 0, 0, NULL, NULL, '', 'dns', 0, '')`,
		`INSERT INTO notices (id, incident_id, channel_id, kind, status, created_at, due_at, attempts, ref) VALUES ('ntc_1', 'inc_1', 'ch_1', 'opened', 'sent', 1, 2, 2, 'C1:7')`,
		`INSERT INTO notices (id, incident_id, channel_id, kind, created_at, due_at) VALUES ('ntc_2', 'inc_1', 'ch_1', 'resolved', 3, 4)`,
		`INSERT INTO notice_attempts VALUES ('ntc_1', 1, 1, 'retry', 'away'), ('ntc_1', 2, 2, 'sent', '')`,
	)
	for _, statement := range statements {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing depends on it
	var attempts int
	err = raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM notice_attempts a JOIN notices n ON n.id = a.notice_id`).Scan(&attempts)
	if err != nil || attempts != 2 {
		t.Errorf("%d attempts are in the log, %v, want 2", attempts, err)
	}
	due, err := db.LeaseNotices(t.Context(), "me", time.Now(), time.Minute, 10)
	if err != nil || len(due) != 1 || due[0].Notice.ID != "ntc_2" || due[0].Ref != "C1:7" {
		t.Fatalf("due %+v, %v, want the second notice with the ref of the first", due, err)
	}
	var broken int
	if err := raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pragma_foreign_key_check`).Scan(&broken); err != nil || broken != 0 {
		t.Errorf("%d references lead nowhere, %v", broken, err)
	}
	if err := db.DeleteChannel(t.Context(), "ch_1"); err != nil {
		t.Fatal(err)
	}
	if err := raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM notice_attempts`).Scan(&attempts); err != nil || attempts != 0 {
		t.Errorf("%d attempts are left after their channel went, %v", attempts, err)
	}
}
