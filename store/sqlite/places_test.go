package sqlite_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/migrations"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// sketchOf returns latencies in the form in which hours were kept before there were places.
func sketchOf(t *testing.T, ms float64) string {
	t.Helper()
	s, err := ddsketch.NewDefaultDDSketch(0.01)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(ms); err != nil {
		t.Fatal(err)
	}
	var b []byte
	s.Encode(&b, true)
	return `{"":"` + base64.StdEncoding.EncodeToString(b) + `"}`
}

// before returns a file with the schema of before there were places, and an endpoint with a history.
func before(t *testing.T) (path string, day time.Time) {
	t.Helper()
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	path = storetest.SQLite(t)
	raw := openSQL(t, path)
	statements := []string{`CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`}
	for _, m := range all[:7] {
		statements = append(statements, m.SQL, `INSERT INTO schema_migrations VALUES (`+strconv.Itoa(m.Version)+`, '`+m.Name+`', 0)`)
	}
	day = store.DayOf(begin)
	hour := func(n int) int64 { return day.Add(time.Duration(n) * time.Hour).UnixMicro() }
	evidence, err := json.Marshal(map[string]any{
		"failure": probe.Failure{Step: "initialize", Class: probe.ClassTimeout, Message: "it's late"}, "kind": "evm", "era": "legacy",
		"memory":    probe.Memory{Head: &probe.Head{Chain: "1", Height: 7, Seen: begin}},
		"contracts": []store.KnownContract{{ID: "con_1", Key: "modern", Hash: "sha256:1", Seen: begin}},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := begin.UnixMicro()
	quoted := strings.ReplaceAll(string(evidence), "'", "''")
	statements = append(statements,
		`INSERT INTO channels (id, name, name_key, type, settings, created_at, updated_at) VALUES ('ch_1', 'ops', 'ops', 'slack', '{}', 0, 0)`,
		`INSERT INTO endpoints VALUES
		    ('ep_1', 'a', 'a', 'a', 'a', 'mcp', 'https://a.example', NULL, '', NULL, '@every 60s', 1, 1, 1, 1, 1, 0, 0, '[]', 0, 0, NULL, 0),
		    ('ep_2', 'b', 'b', 'b', 'b', 'mcp', 'https://b.example', NULL, '', NULL, '@every 60s', 1, 1, 1, 1, 1, 0, 0, '[]', 0, 0, NULL, 0)`,
		`INSERT INTO endpoint_channels VALUES ('ep_1', 'ch_1', 0)`,
		fmt.Sprintf(`INSERT INTO checks VALUES
		    ('chk_old', 'ep_1', 'default', %[1]d, %[1]d, 80, 'evm', '', 'down', 'initialize', 'timeout', 0, '', 0, '[]', '[]', '{}'),
		    ('chk_older', 'ep_1', 'default', %[2]d, %[2]d, 80, 'evm', '', 'up', NULL, NULL, NULL, NULL, 0, '[]', '[]', '{}'),
		    ('chk_there', 'ep_1', 'elsewhere', %[2]d, %[2]d, 80, 'evm', '', 'up', NULL, NULL, NULL, NULL, 0, '[]', '[]', '{}')`, at, at-60_000_000),
		fmt.Sprintf(`INSERT INTO transcripts VALUES ('chk_old', 'ep_1', 0, %d, x'00'), ('chk_there', 'ep_1', 1, %d, x'00')`, at, at-60_000_000),
		fmt.Sprintf(`INSERT INTO uptime_hours VALUES
		    ('ep_1', 'default', %d, 1, 0, 0, 0, 0, CAST('%s' AS BLOB)), ('ep_1', 'default', %d, 2, 0, 0, 0, 0, CAST('%s' AS BLOB)), ('ep_1', 'default', %d, 3, 0, 1, 0, 0, x''),
		    ('ep_1', 'elsewhere', %d, 5, 0, 0, 0, 0, x'')`,
			hour(-1), sketchOf(t, 50), hour(0), sketchOf(t, 100), hour(8), hour(8)),
		fmt.Sprintf(`INSERT INTO endpoint_states VALUES ('ep_1', 'down', %[1]d, 'chk_old', %[1]d, '%[2]s', 'evm 1', '{}', %[1]d)`, at, quoted),
		`INSERT INTO endpoint_states (endpoint_id, status, evidence) VALUES ('ep_2', 'pending', '{}')`,
		fmt.Sprintf(`INSERT INTO incidents VALUES ('inc_1', 'ep_1', 'down', %[1]d, %[1]d, NULL, NULL, 'initialize', 'timeout', 0, '')`, at),
		`INSERT INTO contracts VALUES ('con_1', 'ep_1', 'modern', 'sha256:1', 1, NULL, NULL, '[]')`,
		`INSERT INTO events VALUES ('evt_1', 'ep_1', 1, 'contract_changed', 'warning', 'changed', '{}')`,
		`INSERT INTO notices (id, event_id, channel_id, kind, created_at, due_at) VALUES ('ntc_1', 'evt_1', 'ch_1', 'contract', 1, 2)`,
		`INSERT INTO notice_attempts VALUES ('ntc_1', 1, 1, 'retry', 'away')`,
	)
	for _, statement := range statements {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return path, day
}

func TestAFileFromBeforeThereWerePlacesLosesNothing(t *testing.T) {
	path, day := before(t)
	db := open(t, path)

	o, err := db.Endpoint(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	failure := &probe.Failure{Step: "initialize", Class: probe.ClassTimeout, Message: "it's late"}
	lastID := store.CheckID("ep_1", "default", begin)
	if s := o.State; s.Status != store.StatusDown || !s.Since.Equal(begin) || !cmp.Equal(s.Failure, failure) || s.LastCheckID != lastID ||
		s.Kind != probe.KindEVM || s.Era != probe.EraLegacy || s.Memory.Head == nil {
		t.Errorf("state %+v, want what was known", s)
	}
	if len(o.Places) != 2 || o.Places[0].Location != "default" || o.Places[1].Location != "elsewhere" || o.Locations != nil || o.Quorum != 0 {
		t.Errorf("overview %+v, want both places, probed from everywhere", o)
	}
	if o.LastCheck == nil || o.LastCheck.ID != "chk_old" {
		t.Errorf("last check %+v, want the one with its old id", o.LastCheck)
	}
	for _, id := range []string{"chk_old", lastID} {
		if c, err := db.Check(t.Context(), id); err != nil || c.ID != "chk_old" || len(c.Transcript) == 0 {
			t.Errorf("Check(%q) = %+v, %v, want the old one with its transcript", id, c, err)
		}
	}
	if p, err := db.Endpoint(t.Context(), "b"); err != nil || p.Status() != store.StatusPending || len(p.Places) != 0 || p.LastCheck != nil {
		t.Errorf("the other endpoint %+v, %v, want it pending, without places", p, err)
	}
	if heads, err := db.Heads(t.Context(), "evm 1", begin); err != nil || len(heads) != 1 || heads[0].Height != 7 {
		t.Errorf("heads %+v, %v, want the one that was kept", heads, err)
	}
	if c, err := db.Contract(t.Context(), "con_1"); err != nil || !c.Present {
		t.Errorf("contract %+v, %v, want it present", c, err)
	}
	due, err := db.LeaseNotices(t.Context(), "me", time.Now(), time.Minute, 10)
	if err != nil || len(due) != 1 || due[0].Event == nil || due[0].Event.ID != "evt_1" || due[0].Notice.ID != "ntc_1" {
		t.Errorf("due %+v, %v, want the notice of the event", due, err)
	}
	var attempts, broken int
	raw := openSQL(t, path)
	if err := raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM notice_attempts`).Scan(&attempts); err != nil || attempts != 1 {
		t.Errorf("%d attempts are in the log, %v, want 1", attempts, err)
	}
	if err := raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pragma_foreign_key_check`).Scan(&broken); err != nil || broken != 0 {
		t.Errorf("%d references lead nowhere, %v", broken, err)
	}

	type sum struct {
		Location string
		Begin    time.Time
		Up, Down int
	}
	sums := func(grain store.Grain) (sums []sum) {
		t.Helper()
		found, err := db.Uptime(t.Context(), "ep_1", grain, day.AddDate(0, 0, -2), day.AddDate(0, 0, 2))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			sums = append(sums, sum{r.Location, r.Begin, r.Counts.Up, r.Counts.Down})
		}
		return sums
	}
	yesterday := day.AddDate(0, 0, -1)
	days := []sum{{"default", yesterday, 1, 0}, {"default", day, 5, 1}, {"elsewhere", day, 5, 0}}
	if diff := cmp.Diff(sums(store.Daily), days); diff != "" {
		t.Errorf("days (-got +want):\n%s", diff)
	}
	found, err := db.Uptime(t.Context(), "ep_1", store.Daily, yesterday, day)
	if err != nil || len(found) != 1 || len(found[0].Latencies.Quantiles("", 0.5)) != 1 {
		t.Errorf("yesterday %+v, %v, want it with latencies", found, err)
	}

	// What comes next goes on from there, also in the hour that ran, and opening once more adds up nothing twice.
	c := store.NewCheck("ep_1", "default", begin.Add(time.Minute), probe.Result{StartedAt: begin.Add(time.Minute), Verdict: probe.Up})
	believeBoth := store.Judge{Check: believe.Check, Vote: func(_ store.Endpoint, s store.State, places []store.Place, _ time.Time) store.State {
		s.Status = places[0].State.Status
		return s
	}}
	twin := store.NewCheck("ep_1", "default", begin, probe.Result{StartedAt: begin, Verdict: probe.Up})
	out, err := db.Record(t.Context(), []store.Check{c, twin}, believeBoth)
	if err != nil || out[0].Resolved != "inc_1" || out[1].Kept {
		t.Fatalf("Record = %+v, %v, want the incident resolved, and the slot of an old check taken", out, err)
	}
	days[1].Up++
	hours := []sum{
		{"default", day.Add(-time.Hour), 1, 0}, {"default", day, 2, 0},
		{"default", day.Add(8 * time.Hour), 4, 1}, {"elsewhere", day.Add(8 * time.Hour), 5, 0},
	}
	again, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(sums(store.Daily), days); diff != "" {
		t.Errorf("days afterwards (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(sums(store.Hourly), hours); diff != "" {
		t.Errorf("hours afterwards (-got +want):\n%s", diff)
	}
	if err := db.DeleteEndpoint(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"checks", "transcripts", "places", "uptime_hours", "uptime_days", "events", "notices"} {
		var n int
		if err := raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows are left in %s, %v", n, table, err)
		}
	}
}

// A file belongs to one process: nobody takes anything from it by lease.
func TestNoCheckLosesALease(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	c := goodCheck(newWeather(t, db), 0)
	c.Epoch = 7
	out, err := db.Record(t.Context(), []store.Check{c}, believe)
	if err != nil || !out[0].Kept || out[0].Lost {
		t.Errorf("Record = %+v, %v, want the check kept whatever its epoch", out, err)
	}
	if _, ok := store.Store(db).(store.Leaser); ok {
		t.Error("a store in a file hands out leases")
	}
}
