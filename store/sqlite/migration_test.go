package sqlite_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/migrations"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// past returns a file as a program of an earlier version left it, with incidents, notices and the log of their delivery.
func past(t *testing.T, version int) (path string) {
	t.Helper()
	all, err := migrations.List(migrations.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	path = storetest.SQLite(t)
	raw := openSQL(t, path)
	statements := []string{`CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`}
	for _, m := range all[:version] {
		statements = append(statements, m.SQL, `INSERT INTO schema_migrations VALUES (`+strconv.Itoa(m.Version)+`, '`+m.Name+`', 0)`)
	}
	state := `INSERT INTO endpoint_states (endpoint_id, status, evidence) VALUES ('ep_1', 'down', '{}')`
	if version >= 8 {
		state = `INSERT INTO endpoint_states (endpoint_id, status) VALUES ('ep_1', 'down')`
	}
	at := begin.UnixMicro()
	statements = append(statements,
		`INSERT INTO channels (id, name, name_key, type, settings, created_at, updated_at) VALUES ('ch_1', 'ops', 'ops', 'slack', '{}', 0, 0)`,
		`INSERT INTO endpoints (id, slug, name, name_key, search, kind, url, request_method, schedule, timeout_ms, degraded_over_ms,
		    confirm_failures, confirm_successes, confirm_after_ms, public, paused, tags, created_at, updated_at)
		VALUES ('ep_1', 'a', 'a', 'a', 'a', 'mcp', 'https://a.example', '', '@every 60s', 1000, 1000, 1, 1, 1000, 1, 0, '[]', 0, 0)`,
		`INSERT INTO endpoint_channels VALUES ('ep_1', 'ch_1', 0)`,
		state,
		`INSERT INTO checks VALUES ('chk_1', 'ep_1', 'default', `+strconv.FormatInt(at, 10)+`, `+strconv.FormatInt(at, 10)+`, 1, 'mcp', '', 'down', NULL, NULL, NULL, NULL, 0, '[]', '[]', '{}')`,
		`INSERT INTO incidents VALUES
		    ('inc_1', 'ep_1', 'down', 1000000, 2000000, 3000000, 'paused', 'initialize', 'dns', 7, 'no such host'),
		    ('inc_2', 'ep_1', 'down', 4000000, 5000000, NULL, NULL, '', '', 0, '')`,
		`INSERT INTO notices (id, incident_id, channel_id, kind, status, created_at, due_at, attempts, ref) VALUES
		    ('ntc_1', 'inc_1', 'ch_1', 'opened', 'sent', 1, 2, 2, 'C1:6'),
		    ('ntc_2', 'inc_1', 'ch_1', 'resolved', 'failed', 1, 2, 1, ''),
		    ('ntc_3', 'inc_2', 'ch_1', 'opened', 'sent', 1, 2, 1, 'C1:7')`,
		`INSERT INTO notices (id, incident_id, channel_id, kind, created_at, due_at, lease_id, leased_until) VALUES
		    ('ntc_4', 'inc_2', 'ch_1', 'resolved', 3, 4, 'lse_1', 5)`,
		`INSERT INTO notice_attempts (notice_id, attempt, at, outcome, error) VALUES
		    ('ntc_1', 1, 1000000, 'retry', 'away'), ('ntc_1', 2, 2000000, 'sent', ''), ('ntc_2', 1, 3000000, 'failed', 'gone'), ('ntc_3', 1, 4000000, 'sent', '')`,
	)
	for _, statement := range statements {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("version %d: %.200s: %v", version, statement, err)
		}
	}
	return path
}

func TestIncidentsAndTheirNoticesSurviveEveryStep(t *testing.T) {
	const timelines = 12 // with which incidents are kept in another way
	for version := 3; version < timelines; version++ {
		t.Run(fmt.Sprint("from version ", version), func(t *testing.T) {
			path := past(t, version)
			db, err := sqlite.Open(t.Context(), path, storetest.Sealer(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close() //nolint:errcheck // nothing depends on it
			page, err := db.Incidents(t.Context(), store.IncidentFilter{})
			if err != nil {
				t.Fatal(err)
			}
			at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0).UTC() }
			over := at(3)
			of := store.Incident{Kind: store.IncidentEndpoint, Subject: "ep_1", EndpointID: "ep_1", Slug: "a", Name: "a", Public: true, Severity: store.StatusDown, Worst: store.StatusDown}
			first, second := of, of
			first.ID, first.StartedAt, first.OpenedAt, first.ResolvedAt, first.Resolution = "inc_1", at(1), at(2), &over, store.ResolutionPaused
			first.Cause = probe.Failure{Step: "initialize", Class: "dns", Code: 7, Message: "no such host"}
			second.ID, second.StartedAt, second.OpenedAt = "inc_2", at(4), at(5)
			if diff := cmp.Diff(page.Items, []store.Incident{second, first}); diff != "" {
				t.Errorf("incidents (-got +want):\n%s", diff)
			}
			entries, err := db.Timeline(t.Context(), "inc_1")
			var lines []string
			for _, e := range entries {
				lines = append(lines, strings.TrimSpace(fmt.Sprint(e.At.Unix(), " ", e.Kind, " ", e.Text)))
			}
			want := []string{"1 failed away", "2 opened", "2 sent", "3 resolved the endpoint was paused", "3 failed gone"}
			if diff := cmp.Diff(lines, want); diff != "" || err != nil {
				t.Errorf("timeline (-got +want):\n%s%v", diff, err)
			}
			if i := slices.IndexFunc(entries, func(e store.Entry) bool { return e.Kind == store.EntryOpened }); i >= 0 {
				if diff := cmp.Diff(entries[i].Cause, &first.Cause); diff != "" {
					t.Errorf("cause (-got +want):\n%s", diff)
				}
			}
			due, err := db.LeaseNotices(t.Context(), "me", time.Now(), time.Minute, 10)
			if err != nil || len(due) != 1 || due[0].Notice.ID != "ntc_4" || due[0].Ref != "C1:7" {
				t.Errorf("due %+v, %v, want the one that waits, with the ref of its opening", due, err)
			}
			log, err := db.Attempts(t.Context(), store.AttemptFilter{})
			if err != nil || len(log.Items) != 4 || log.Items[0].NoticeID != "ntc_3" {
				t.Errorf("log %+v, %v, want all attempts", log.Items, err)
			}
			checks, err := db.Checks(t.Context(), store.CheckFilter{EndpointID: "ep_1"})
			if err != nil || len(checks.Items) != 1 || checks.Items[0].Maintenance {
				t.Errorf("checks %+v, %v, want one that was under no maintenance", checks.Items, err)
			}
			var broken int
			if err := openSQL(t, path).QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pragma_foreign_key_check`).Scan(&broken); err != nil || broken != 0 {
				t.Errorf("%d references lead nowhere, %v", broken, err)
			}
			if _, err := db.Act(t.Context(), "inc_2", store.Act{Kind: store.ActResolve, Author: "ops", At: time.Now()}); err != nil {
				t.Errorf("Act on an incident from before: %v", err)
			}
		})
	}
}

// What an export leaves out is lost.
func TestAnExportHasEveryTableAndColumn(t *testing.T) {
	path := storetest.SQLite(t)
	open(t, path)
	raw := openSQL(t, path)
	rows, err := raw.QueryContext(t.Context(), `
		SELECT m.name || '.' || c.name
		FROM sqlite_master m
		JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT IN ('schema_migrations', 'checks')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	var there []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if name != "transcripts.check_id" { // Postgres knows a check by its slot
			there = append(there, name)
		}
	}
	var copied []string
	for _, table := range store.CopyTables {
		for _, c := range table.Columns {
			if name := table.Name + "." + c.Name; name != "transcripts.scheduled_at" {
				copied = append(copied, name)
			}
		}
	}
	slices.Sort(there)
	slices.Sort(copied)
	if diff := cmp.Diff(copied, there); diff != "" || rows.Err() != nil {
		t.Errorf("columns (-copied +there):\n%s%v", diff, rows.Err())
	}
}

// All that an incident leaves behind can be read out.
func TestAnExportReadsWhatIncidentsLeave(t *testing.T) {
	db := open(t, storetest.SQLite(t))
	weather := newWeather(t, db)
	confirmed := begin
	_, err := db.CreateSubscription(t.Context(), store.Subscription{
		All: true, ConfirmedAt: &confirmed, Severities: []store.Status{store.StatusDown}, Quiet: &store.Quiet{From: "22:00", To: "07:00", Zone: "UTC"},
		Channel: store.Channel{Name: "a", Type: store.ChannelEmail, Settings: map[string]string{"to": "a@example.com"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	i, _, err := db.Raise(t.Context(), store.Incident{
		Kind: store.IncidentManual, Title: "Slow", Severity: store.StatusDown, Endpoints: []string{weather.ID}, SeenFrom: []string{"fra"},
	}, "Ada", "We know.", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Act(t.Context(), i.ID, store.Act{Kind: store.ActAcknowledge, Author: "Ada", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	_, err = db.CreateMaintenance(t.Context(), store.Maintenance{Title: "Move", StartsAt: begin, EndsAt: begin.Add(time.Hour), Tags: []string{"prod"}})
	if err != nil {
		t.Fatal(err)
	}
	state := export(t, db)
	counts := map[string]int{}
	for _, table := range store.CopyTables {
		for batch, err := range state.Batches(t.Context(), table, "") {
			if err != nil {
				t.Fatal(err)
			}
			counts[table.Name] += batch.Len()
		}
	}
	for table, want := range map[string]int{
		"incidents": 1, "incident_entries": 2, "incident_endpoints": 1, "notices": 1, "subscriptions": 1, "channels": 1, "maintenances": 1,
	} {
		if counts[table] != want {
			t.Errorf("%d rows of %s, want %d", counts[table], table, want)
		}
	}
}
