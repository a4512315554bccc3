package postgres_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// explained are settings with which a server logs how it carried out each statement: not how it would, were it asked.
var explained = []string{
	"session_preload_libraries=auto_explain", "auto_explain.log_min_duration=0", "auto_explain.log_format=json",
	"auto_explain.log_analyze=on", "auto_explain.log_timing=off", "auto_explain.log_nested_statements=on",
}

// A year of 200 endpoints, with three days of checks, is enough for Postgres to prefer an index wherever there is one that
// helps. Statements are planned in each of the ways that a prepared one may be, and at last as if reading a table from end to
// end were out of the question, which says the same about small tables.
func TestEveryQueryHasItsIndexAndEveryIndexItsQuery(t *testing.T) {
	server := storetest.PostgresServer(t, explained...)
	history := newHistory(t, server.URL())
	indexes := indexesOf(t, server.URL())
	used := map[string]bool{}
	for _, way := range []struct{ name, setting string }{
		{"planned for the arguments", "plan_cache_mode=force_custom_plan"},
		{"planned for any arguments", "plan_cache_mode=force_generic_plan"},
		{"without sequential scans", "enable_seqscan=off"},
	} {
		strict := strings.HasPrefix(way.setting, "enable_seqscan")
		db, err := postgres.Open(t.Context(), server.URL()+"&"+way.setting, storetest.Sealer(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range callsOf(history, db) {
			from := server.Logged(t)
			if err := c.do(t.Context()); err != nil {
				t.Fatalf("%s, %s: %v", way.name, c.name, err)
			}
			for _, s := range readPlans(t, server.Log(t, from)) {
				s.walk(func(p planNode) {
					if p.Loops == 0 {
						return
					}
					if p.Cond != "" || !strict {
						used[indexes.of(p.Index)] = true
					}
					table := indexes.table(p.Relation)
					big := slices.Contains([]string{
						"checks", "check_shapes", "uptime_hours", "uptime_days", "transcripts",
					}, table)
					if p.endToEnd() && (big || strict && p.Type == "Seq Scan" && !slices.Contains(c.whole, table)) {
						t.Errorf("%s, %s: %s of %s from end to end in\n%s", way.name, c.name, p.Type, p.Relation, s.Query)
					}
					if c.within != nil && p.isScan() && table != p.Relation && !slices.Contains(c.within, p.Relation) {
						t.Errorf("%s, %s: %s looks into %s, want into %v only, in\n%s", way.name, c.name, p.Type, p.Relation, c.within, s.Query)
					}
				})
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, index := range indexes {
		if index.parent == "" && !index.constraint && !used[name] {
			t.Errorf("index %s of %s serves no query", name, index.table)
		}
	}
}

// planNode is a node of a plan as EXPLAIN (ANALYZE, FORMAT json) writes it.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Cond     string     `json:"Index Cond"`
	Rows     float64    `json:"Actual Rows"`
	Passed   float64    `json:"Rows Removed by Filter"`
	Loops    float64    `json:"Actual Loops"`
	Plans    []planNode `json:"Plans"`
}

func (p planNode) isScan() bool { return strings.HasSuffix(p.Type, "Scan") && p.Relation != "" }

// few is what a table of tomorrow may hold: the calls make a row of the next hour each time.
const few = 4

// endToEnd reports whether the node read a table without knowing where to look. What is next to empty, like the days ahead, and
// what stops at the first row it meets, was not read.
func (p planNode) endToEnd() bool {
	switch p.Type {
	case "Seq Scan", "Parallel Seq Scan":
		return (p.Rows+p.Passed)*p.Loops > few
	case "Index Scan", "Index Only Scan":
		return p.Cond == "" && (p.Rows+p.Passed)*p.Loops > store.MaxLimit+1
	}
	return false
}

// planned is one statement and how it was carried out.
type planned struct {
	Query string   `json:"Query Text"`
	Plan  planNode `json:"Plan"`
}

func (s planned) walk(visit func(planNode)) {
	var into func(p planNode)
	into = func(p planNode) {
		visit(p)
		for _, below := range p.Plans {
			into(below)
		}
	}
	into(s.Plan)
}

// readPlans reads the plans out of a server's log, where the lines of an entry after the first begin with a tab.
func readPlans(t *testing.T, log string) []planned {
	t.Helper()
	var found []planned
	for entry := range strings.SplitSeq(strings.ReplaceAll(log, "\n\t", "\r"), "\n") {
		_, text, ok := strings.Cut(entry, "plan:\r")
		if !ok {
			continue
		}
		var s planned
		if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "\r", "\n")), &s); err != nil {
			t.Fatalf("read plan: %v\n%s", err, text)
		}
		found = append(found, s)
	}
	return found
}

// indexes are the indexes of a schema by name, and those of partitions.
type indexes map[string]index

type index struct {
	table, parent string // parent is the index of the whole table, empty for what is none of a partition
	constraint    bool
}

// of returns the name of an index of a whole table by that of one of its parts.
func (i indexes) of(name string) string {
	if parent := i[name].parent; parent != "" {
		return parent
	}
	return name
}

// table returns the name of a whole table by that of one of its partitions, which end in their day or month.
func (i indexes) table(name string) string {
	whole := strings.TrimRight(name, "0123456789")
	if whole == name {
		return name
	}
	return strings.TrimSuffix(whole, "_")
}

func indexesOf(t *testing.T, url string) indexes {
	t.Helper()
	rows, err := openSQL(t, url).QueryContext(t.Context(), `
		SELECT c.relname, i.indrelid::regclass::text, COALESCE(h.inhparent::regclass::text, ''),
		    i.indisunique OR EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)
		FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid
		LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid
		WHERE c.relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	found := indexes{}
	for rows.Next() {
		var name string
		var i index
		if err := rows.Scan(&name, &i.table, &i.parent, &i.constraint); err != nil {
			t.Fatal(err)
		}
		found[name] = i
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// history is a database with a past: endpoints that were checked all over three days, and hours and days of a year.
type history struct {
	turns     int       // how often everything was done
	base      time.Time // when the first of the three days begins
	endpoints []store.Endpoint
	channel   store.Channel
	user      string // the id of a member of the team
}

const (
	historyEndpoints = 200
	historyDays      = 3
)

func newHistory(t *testing.T, url string) *history {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it never fails
	h := &history{base: store.DayOf(time.Now()).AddDate(0, 0, 1-historyDays)}
	h.channel, err = db.CreateChannel(t.Context(), store.Channel{
		Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://hooks.example/1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range historyEndpoints {
		e := store.NewEndpoint()
		e.Name, e.URL, e.Tags = fmt.Sprintf("endpoint %d", i), fmt.Sprintf("https://e%d.example/mcp", i), []string{"prod"}
		e.Confirm.Failures, e.Channels, e.ContractNotices = 1, []string{h.channel.ID}, true
		if e, err = db.CreateEndpoint(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		h.endpoints = append(h.endpoints, e)
	}
	h.user = "usr_history"
	raw := openSQL(t, url)
	if _, err := raw.ExecContext(t.Context(), `
		INSERT INTO users (id, name, name_key, password_hash, role, created_at)
		VALUES ($1, 'admin', 'admin', 'x', 'admin', now())`, h.user); err != nil {
		t.Fatal(err)
	}
	h.keep(t, db)
	h.multiply(t, raw)
	return h
}

// keep records some checks of each day, so that there are partitions and shapes, and some that started in each month of the
// year before, so that there are hours and days.
func (h *history) keep(t *testing.T, db *postgres.DB) {
	t.Helper()
	for day := range historyDays {
		var group []store.Check
		for i, e := range h.endpoints {
			group = append(group, usual(e, "default", h.base.AddDate(0, 0, day).Add(time.Duration(i)*time.Millisecond)))
		}
		h.record(t, db, group...)
	}
	e := h.endpoints[0]
	for month := range 13 {
		c := usual(e, "default", h.base.Add(time.Duration(month+1)*time.Second))
		c.Result.StartedAt = h.base.AddDate(0, -month, 0)
		h.record(t, db, c)
	}
}

// multiply makes much of what is there: a check every five minutes, four hours of each day, every day.
func (h *history) multiply(t *testing.T, raw *sql.DB) {
	t.Helper()
	for _, statement := range []string{`
		INSERT INTO checks (place, shape, scheduled_at, verdict, latencies, numbers)
		SELECT place, shape, scheduled_at + n * interval '4 minutes', verdict, latencies, numbers
		FROM checks, generate_series(1, 300) n
		ON CONFLICT DO NOTHING`, `
		INSERT INTO check_shapes (place, day, id, shape)
		SELECT place, day, id + n, shape
		FROM check_shapes, generate_series(1, 30) n
		ON CONFLICT DO NOTHING`, `
		INSERT INTO incidents (
		    id, subject, endpoint_id, severity, worst, started_at, opened_at, resolved_at, resolution,
		    cause_step, cause_class, cause_code, cause_message
		)
		SELECT 'inc_' || e.id || n, e.id, e.id, 'down', 'down', s.at, s.at, s.at, 'recovered', '', 'timeout', 0, ''
		FROM endpoints e, generate_series(1, 50) n, LATERAL (SELECT now() - n * interval '1 day' AS at) s`, `
		INSERT INTO incident_endpoints (incident_id, endpoint_id, joined_at, left_at)
		SELECT 'inc_' || e.id || '1', o.id, now(), now()
		FROM endpoints e, (SELECT id FROM endpoints LIMIT 5) o`, `
		INSERT INTO incident_entries (id, incident_id, at, kind)
		SELECT 'ent_' || i.id || n, i.id, i.opened_at, 'opened'
		FROM incidents i, generate_series(1, 2) n`, `
		INSERT INTO notices (id, incident_id, channel_id, kind, status, created_at, due_at)
		SELECT 'ntc_' || i.id || n, i.id, c.id, CASE n WHEN 1 THEN 'opened' ELSE 'resolved' END, 'sent', i.opened_at, i.opened_at
		FROM incidents i, (SELECT id FROM channels LIMIT 1) c, generate_series(1, 2) n`, `
		INSERT INTO notice_attempts (notice_id, attempt, at, outcome, error)
		SELECT id, 1, due_at, 'sent', '' FROM notices`, `
		INSERT INTO channels (id, name, name_key, type, settings, created_at, updated_at, audience)
		SELECT 'sub_' || n, 'nobody', 'nobody', 'email', '{}', now(), now(), 'public'
		FROM generate_series(1, 2000) n`, `
		INSERT INTO subscriptions (id, everything, endpoints, tags, confirmed_at, manage_hash, address_hash, created_at)
		SELECT 'sub_' || n, false, '{}', '{none}', now(), sha256(n::text::bytea), sha256(n::text::bytea), now() - n * interval '1 hour'
		FROM generate_series(1, 2000) n`, `
		INSERT INTO uptime_hours (place, hour, up, degraded, down, gated, unknown, latencies)
		SELECT p.num, h, 12, 0, 0, 0, 0, u.latencies
		FROM places p, (SELECT latencies FROM uptime_hours LIMIT 1) u,
		     (SELECT max(hour) AS last FROM uptime_hours) v,
		     generate_series(v.last - interval '360 days', v.last, interval '6 hours') h
		ON CONFLICT DO NOTHING`, `
		INSERT INTO uptime_days (place, day, up, degraded, down, gated, unknown, latencies)
		SELECT place, (hour AT TIME ZONE 'UTC')::date, sum(up), 0, 0, 0, 0, (array_agg(latencies))[1]
		FROM (SELECT place, hour, up, latencies FROM uptime_hours) u
		GROUP BY 1, 2
		ON CONFLICT DO NOTHING`, `
		INSERT INTO transcripts (place, scheduled_at, good, at, body)
		SELECT place, scheduled_at, false, scheduled_at, '\x00'
		FROM (SELECT place, scheduled_at, row_number() OVER (PARTITION BY place) AS n FROM checks) c
		WHERE n <= 50
		ON CONFLICT DO NOTHING`,
		`ANALYZE`,
	} {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%v in %s", err, statement)
		}
	}
}

func (h *history) record(t *testing.T, db *postgres.DB, checks ...store.Check) {
	t.Helper()
	if err := keepAll(t.Context(), db, checks...); err != nil {
		t.Fatal(err)
	}
}
