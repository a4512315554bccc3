package postgres_test

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/migrations"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// beforePlaces is the version of the schema in which checks were rows of their own words.
const beforePlaces = 7

// oldBook is a database as it was before there were places, and what was written into it.
type oldBook struct {
	url       string
	raw       *sql.DB
	endpoints []store.Endpoint
	checks    map[string][]probe.Result // by endpoint, oldest first, a minute apart
	begin     time.Time
}

// Checks of all verdicts, transcripts, states with their evidence and hours of several months, with latencies as JSON, come out
// as they went in, but for the ids of checks, which follow from their slots by then.
func TestNothingIsLostOnTheWayToPlaces(t *testing.T) {
	b := newOldBook(t)
	db := openStore(t, b.url)
	if err := db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("checks and their transcripts", func(t *testing.T) {
		for _, e := range b.endpoints {
			page, err := db.Checks(t.Context(), store.CheckFilter{EndpointID: e.ID})
			want := b.checks[e.ID]
			if err != nil || len(page.Items) != len(want) {
				t.Fatalf("%s: %d checks, %v, want %d", e.Slug, len(page.Items), err, len(want))
			}
			for i, c := range page.Items {
				n := len(want) - 1 - i
				if diff := cmp.Diff(c.Result, want[n]); diff != "" {
					t.Errorf("%s: check %d (-got +want):\n%s", e.Slug, n, diff)
				}
				at := b.begin.Add(time.Duration(n) * time.Minute)
				if c.ID != store.CheckID(e.ID, "home", at) || c.Location != "home" || c.Slug != e.Slug || !c.ScheduledAt.Equal(at) {
					t.Errorf("%s: check %d = %+v, want that of its slot", e.Slug, n, c)
				}
				whole, err := db.Check(t.Context(), c.ID)
				if wordy := want[n].Verdict == probe.Down; err != nil || (whole.Transcript != nil) != wordy {
					t.Errorf("%s: check %d has a transcript of %d bytes, %v, want one: %v", e.Slug, n, len(whole.Transcript), err, wordy)
				}
			}
		}
	})
	t.Run("steps in SQL", func(t *testing.T) {
		var rows, codes int
		err := b.raw.QueryRowContext(t.Context(), `
			SELECT count(*), count(*) FILTER (WHERE class = 'rpc_error' AND code = -32603 AND abs(latency - 50) < 0.01)
			FROM check_steps`).Scan(&rows, &codes)
		if err != nil || rows != 20 || codes != 8 {
			t.Errorf("check_steps has %d rows, %d of them with the error, %v, want 20 and 8", rows, codes, err)
		}
	})
	t.Run("hours and days", func(t *testing.T) {
		for _, e := range b.endpoints {
			hours, err := db.Uptime(t.Context(), e.ID, store.Hourly, b.begin.AddDate(-1, 0, 0), b.begin.AddDate(0, 0, 1))
			if err != nil || len(hours) != oldHours {
				t.Fatalf("%s: %d hours, %v, want %d", e.Slug, len(hours), err, oldHours)
			}
			for i, h := range hours {
				n := oldHours - 1 - i
				want := store.Counts{Up: 50 + n, Degraded: 1, Down: n % 3, Gated: 2, Unknown: 3}
				q := h.Latencies.Quantiles("initialize", 0.5)
				if h.Counts != want || !h.Begin.Equal(oldHour(b.begin, n)) || h.Location != "home" ||
					len(q) != 1 || math.Abs(q[0]-float64(10+n)) > 0.02*float64(10+n) {
					t.Errorf("%s: hour %d = %+v of %v at %q, initialize %v ms, want %+v and %d ms",
						e.Slug, i, h.Counts, h.Begin, h.Location, q, want, 10+n)
				}
			}
			sum := store.Counts{}
			days, err := db.Uptime(t.Context(), e.ID, store.Daily, b.begin.AddDate(-1, 0, 0), b.begin.AddDate(0, 0, 1))
			for _, d := range days {
				sum = sum.Plus(d.Counts)
				if len(d.Latencies.Quantiles("initialize", 0.5)) != 1 {
					t.Errorf("%s: the day %v has no latencies", e.Slug, d.Begin)
				}
			}
			all := store.Counts{}
			for _, h := range hours {
				all = all.Plus(h.Counts)
			}
			if err != nil || sum != all || len(days) == 0 {
				t.Errorf("%s: %d days add up to %+v, %v, want %+v as the hours do", e.Slug, len(days), sum, err, all)
			}
		}
	})
	t.Run("where endpoints stand", func(t *testing.T) {
		for i, e := range b.endpoints {
			o, err := db.Endpoint(t.Context(), e.Slug)
			if err != nil {
				t.Fatal(err)
			}
			want := oldState(i, b.begin)
			want.LastCheckID = store.CheckID(e.ID, "home", b.begin.Add(4*time.Minute))
			if diff := cmp.Diff(o.State, want); diff != "" {
				t.Errorf("%s: state (-got +want):\n%s", e.Slug, diff)
			}
			if o.LastCheck == nil || o.LastCheck.ID != want.LastCheckID || len(o.Places) != 1 || o.Places[0].State.Streak.Count != 3 {
				t.Errorf("%s: last check %+v and places %+v, want one place with its streak", e.Slug, o.LastCheck, o.Places)
			}
		}
		o, err := db.Endpoint(t.Context(), "fresh")
		if err != nil || o.State.Status != store.StatusPending || o.Places != nil || o.LastCheck != nil {
			t.Errorf("an endpoint that was never checked: %+v, %v, want it pending", o, err)
		}
	})
	t.Run("it goes on from there", func(t *testing.T) {
		e := b.endpoints[0]
		next := usual(e, "home", b.begin.Add(5*time.Minute))
		if err := keepAll(t.Context(), db, next); err != nil {
			t.Fatal(err)
		}
		page, err := db.Checks(t.Context(), store.CheckFilter{EndpointID: e.ID})
		if err != nil || len(page.Items) != 6 || page.Items[0].ID != next.ID {
			t.Errorf("Checks = %d, %v, want the next one in front", len(page.Items), err)
		}
		out, err := db.Record(t.Context(), []store.Check{usual(e, "home", b.begin)}, believe)
		if err != nil || out[0].Kept {
			t.Errorf("Record of a slot that was kept before = %+v, %v, want it passed over", out, err)
		}
	})
}

// beforeKinds is the version of the schema in which incidents were outages of endpoints, without a course.
const beforeKinds = 11

// Incidents from before there were timelines have one, and what waited to be told is told, in order.
func TestNothingIsLostOnTheWayToTimelines(t *testing.T) {
	b := bookOf(t, beforeKinds)
	e := b.endpoint(t, "weather")
	b.exec(t, `INSERT INTO endpoint_states (endpoint_id, status, since) VALUES ($1, 'down', $2)`, e.ID, b.begin)
	b.exec(t, `
		INSERT INTO channels (id, name, name_key, type, settings, created_at, updated_at)
		VALUES ('ch_ops', 'Ops', 'ops', 'slack', '{}', $1, $1)`, b.begin)
	for id, resolved := range map[string]*time.Time{"inc_0198a": new(b.begin.Add(time.Minute)), "inc_0198b": nil} {
		var how *string
		if resolved != nil {
			how = new("recovered")
		}
		b.exec(t, `
			INSERT INTO incidents (
			    id, endpoint_id, severity, started_at, opened_at, resolved_at, resolution, cause_step, cause_class, cause_code, cause_message
			) VALUES ($1, $2, 'down', $3, $3, $4, $5, 'tools/list', 'rpc_error', -32603, 'Internal error')`, id, e.ID, b.begin, resolved, how)
	}
	for i, n := range [][2]string{{"inc_0198a", "opened"}, {"inc_0198a", "resolved"}, {"inc_0198b", "opened"}} {
		b.exec(t, `
			INSERT INTO notices (id, incident_id, channel_id, kind, created_at, due_at)
			VALUES ($1, $2, 'ch_ops', $3, $4, $4)`, fmt.Sprintf("ntc_%d", i), n[0], n[1], b.begin)
	}
	db := openStore(t, b.url)
	want := store.Incident{
		ID: "inc_0198a", Kind: store.IncidentEndpoint, Subject: store.SubjectOf(e.ID), EndpointID: e.ID, Slug: e.Slug, Name: e.Slug, Public: true,
		Severity: store.StatusDown, Worst: store.StatusDown, StartedAt: b.begin, OpenedAt: b.begin,
		ResolvedAt: new(b.begin.Add(time.Minute)), Resolution: store.ResolutionRecovered,
		Cause: probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error"},
	}
	got, err := db.Incident(t.Context(), want.ID)
	if diff := cmp.Diff(got, want); diff != "" || err != nil {
		t.Errorf("incident (-got +want):\n%s%v", diff, err)
	}
	entries, err := db.Timeline(t.Context(), want.ID)
	if err != nil || len(entries) != 2 || entries[0].Kind != store.EntryOpened || entries[1].Kind != store.EntryResolved {
		t.Fatalf("timeline %+v, %v, want its beginning and its end", entries, err)
	}
	if e := entries[0]; e.Cause == nil || *e.Cause != want.Cause || e.Severity != store.StatusDown || !e.At.Equal(b.begin) {
		t.Errorf("its beginning is %+v, want severity and cause", e)
	}
	told, err := db.LeaseNotices(t.Context(), "me", b.begin.Add(time.Hour), time.Minute, 10)
	if err != nil || len(told) != 2 {
		t.Fatalf("%d deliveries, %v, want one for each incident", len(told), err)
	}
	for _, d := range told {
		if along := d.Incident.ID == want.ID; (len(d.Later) == 1) != along || d.Notice.Kind != store.NoticeOpened {
			t.Errorf("delivery %+v, want the opening, with the end of what is over along", d)
		}
	}
	if _, err := db.Act(t.Context(), want.ID, store.Act{Kind: store.ActReopen, Author: "ops", At: time.Now()}); err == nil {
		t.Error("two incidents of one subject are open")
	}
}

// oldHours is how many hours there are of each endpoint, eleven days apart.
const oldHours = 20

func oldHour(begin time.Time, n int) time.Time { return store.HourOf(begin).AddDate(0, 0, -11*n) }

// oldState is where the i-th endpoint stood after its last check.
func oldState(i int, begin time.Time) store.State {
	head := probe.Head{Chain: "1", Height: uint64(100 + i), Hash: "0xabc", Seen: begin.Add(time.Minute)}
	return store.State{
		Status: store.StatusDown, Since: begin, LastCheckAt: begin.Add(4 * time.Minute),
		Streak:  store.Streak{Verdict: probe.Up, Count: 3, Since: begin},
		Failure: &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error"},
		Kind:    probe.KindEVM, Memory: probe.Memory{Head: &head, Over: 2},
	}
}

// bookOf makes a database with a schema of an earlier version.
func bookOf(t *testing.T, version int) *oldBook {
	t.Helper()
	b := &oldBook{
		url: storetest.Postgres(t), checks: map[string][]probe.Result{},
		begin: time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC),
	}
	b.raw = openSQL(t, b.url)
	all, err := migrations.List(migrations.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL)`)
	for _, m := range all[:version] {
		if _, err := b.raw.ExecContext(t.Context(), m.SQL); err != nil {
			t.Fatal(err)
		}
		b.exec(t, `INSERT INTO schema_migrations VALUES ($1, $2, now())`, m.Version, m.Name)
	}
	return b
}

func newOldBook(t *testing.T) *oldBook {
	t.Helper()
	b := bookOf(t, beforePlaces)
	for i, slug := range []string{"weather", "node"} {
		e := b.endpoint(t, slug)
		b.endpoints = append(b.endpoints, e)
		b.oldChecks(t, e)
		s := oldState(i, b.begin)
		evidence, err := store.EncodeEvidence(s)
		if err != nil {
			t.Fatal(err)
		}
		b.exec(t, `
			INSERT INTO endpoint_states (endpoint_id, status, since, last_check_id, last_check_at, evidence, chain, head, head_at)
			VALUES ($1, 'down', $2, $3, $4, $5::text::jsonb, 'evm 1', '{}', $2)`,
			e.ID, s.Since, "chk_"+e.ID+"4", s.LastCheckAt, string(evidence))
		b.oldUptime(t, e)
	}
	fresh := b.endpoint(t, "fresh")
	b.exec(t, `INSERT INTO endpoint_states (endpoint_id, status, evidence) VALUES ($1, 'pending', '{}')`, fresh.ID)
	return b
}

func (b *oldBook) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := b.raw.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%v in %s", err, statement)
	}
}

func (b *oldBook) endpoint(t *testing.T, slug string) store.Endpoint {
	t.Helper()
	e := store.Endpoint{ID: "ep_0198" + slug, Slug: slug}
	b.exec(t, `
		INSERT INTO endpoints (
		    id, slug, name, name_key, search, kind, url, request_method, schedule, timeout_ms, degraded_over_ms,
		    confirm_failures, confirm_successes, confirm_after_ms, public, paused, tags, created_at, updated_at
		) VALUES ($1, $2, $2, $2, $2, 'mcp', 'https://x.example/mcp', '', '@every 60s', 15000, 5000, 1, 1, 5000, true, false, '{}', $3, $3)`,
		e.ID, slug, b.begin)
	return e
}

// oldChecks keeps a check of each verdict, as the program of that time did; the one that is down with its transcript.
func (b *oldBook) oldChecks(t *testing.T, e store.Endpoint) {
	t.Helper()
	for i, verdict := range probe.Verdicts() {
		at := b.begin.Add(time.Duration(i) * time.Minute)
		c := bad(e, "home", at)
		r := &c.Result
		r.StartedAt, r.Verdict, r.Duration = at.Add(1234*time.Microsecond), verdict, 81234*time.Microsecond
		r.Steps = r.Steps[2:]
		r.Steps[1].Latency, r.RetryAfter = 50*time.Millisecond, time.Duration(i)*time.Second
		r.Warnings = []probe.Warning{{Step: "initialized", Class: probe.ClassHTTPStatus, Code: 200, Message: "übel"}}
		r.Facts = probe.Facts{ProtocolVersion: "2025-11-25", ServerName: "weather", Height: new(uint64(7))}
		if verdict == probe.Up {
			r.Failure = nil
			r.Steps[1].Class, r.Steps[1].Code, r.Steps[1].Message = "", 0, ""
		}
		b.checks[e.ID] = append(b.checks[e.ID], *r)
		steps, warnings, facts, err := store.EncodeResult(*r)
		if err != nil {
			t.Fatal(err)
		}
		var step, class, message *string
		var code *int
		if f := r.Failure; f != nil {
			step, class, code, message = &f.Step, new(string(f.Class)), &f.Code, &f.Message
		}
		id := fmt.Sprintf("chk_%s%d", e.ID, i)
		b.exec(t, `
			INSERT INTO checks (
			    id, endpoint_id, location, scheduled_at, started_at, duration_ms, kind, era, verdict,
			    failed_step, class, code, message, retry_after_ms, steps, warnings, facts
			) VALUES ($1, $2, 'home', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::text::jsonb, $15::text::jsonb, $16::text::jsonb)`,
			id, e.ID, at, r.StartedAt, store.Milliseconds(r.Duration), r.Kind, r.Era, r.Verdict, step, class, code, message,
			store.Milliseconds(r.RetryAfter), string(steps), string(warnings), string(facts))
		if verdict == probe.Down {
			b.exec(t, `INSERT INTO transcripts (check_id, endpoint_id, good, at, body) VALUES ($1, $2, false, $3, $4)`,
				id, e.ID, r.StartedAt, []byte(c.Transcript))
		}
	}
}

// oldUptime keeps hours of several months, the sketches of their steps as JSON.
func (b *oldBook) oldUptime(t *testing.T, e store.Endpoint) {
	t.Helper()
	for n := range oldHours {
		var l store.Latencies
		for range 50 {
			latency := time.Duration(10+n) * time.Millisecond
			l.Add(probe.Result{
				Verdict: probe.Up, Duration: 2 * latency, Steps: []probe.Step{{Name: "initialize", HTTPStatus: 200, Latency: latency}},
			})
		}
		b.exec(t, `
			INSERT INTO uptime_hours (endpoint_id, location, hour, up, degraded, down, gated, unknown, latencies)
			VALUES ($1, 'home', $2, $3, 1, $4, 2, 3, $5)`, e.ID, oldHour(b.begin, n), 50+n, n%3, asJSON(t, l))
	}
}

// asJSON returns latencies as they were kept at first: an object of sketches by step.
func asJSON(t *testing.T, l store.Latencies) []byte {
	t.Helper()
	packed, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	sketches := map[string][]byte{}
	for rest := packed[1:]; len(rest) > 0; {
		var parts [2][]byte // the step and its sketch
		for i := range parts {
			n, size := binary.Uvarint(rest)
			parts[i], rest = rest[size:size+int(n)], rest[size+int(n):] //nolint:gosec // it was written by MarshalBinary
		}
		sketches[string(parts[0])] = parts[1]
	}
	text, err := json.Marshal(sketches)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
