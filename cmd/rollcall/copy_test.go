package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// storyKey is the key of the databases that these tests make, as it stands in a key file.
var storyKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, store.KeySize))

// storyBegin is a while ago, so that its days lie outside of those that there is room for anyhow.
var storyBegin = time.Date(2025, 12, 30, 22, 40, 0, 123456000, time.UTC)

// rules believe each check, and take the place that comes first for all.
var rules = store.Judge{
	Check: func(_ store.Endpoint, s store.State, c store.Check) store.State {
		if s.Status != store.Status(c.Result.Verdict) {
			s.Status, s.Since, s.Failure = store.Status(c.Result.Verdict), c.Result.StartedAt, c.Result.Failure
		}
		return s
	},
	Vote: func(_ store.Endpoint, s store.State, places []store.Place, _ time.Time) store.State {
		if first := places[0].State; s.Status != first.Status {
			s.Status, s.Since, s.Failure = first.Status, first.Since, first.Failure
		}
		return s
	},
}

// story is a SQLite file with something of everything in it.
type story struct {
	path      string
	db        *sqlite.DB
	endpoints []store.Endpoint
	channel   store.Channel
	session   []byte
	token     []byte
}

// tellStory makes the file, with its key file beside it. Each of four endpoints has so many checks from each of two
// locations, one a minute.
func tellStory(t testing.TB, checks int) *story {
	t.Helper()
	s := &story{path: storetest.SQLite(t)}
	if err := os.WriteFile(s.path+".key", []byte(storyKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.db, err = sqlite.Open(t.Context(), s.path, storetest.Sealer(t, 1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	s.people(t)
	s.channel, err = s.db.CreateChannel(t.Context(), store.Channel{
		Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://hooks.example/ops"},
	})
	s.must(t, err)
	for i, kind := range []probe.Kind{probe.KindMCP, "evm", probe.KindMCP, probe.KindJSONRPC} {
		e := store.NewEndpoint()
		e.Name, e.URL, e.Kind = fmt.Sprintf("Größe %d", i), fmt.Sprintf("https://e%d.example/mcp", i), kind
		e.Channels, e.Tags, e.ContractNotices = []string{s.channel.ID}, []string{"prod", "ä\"b"}, true
		e.Headers = []probe.Header{{Name: "Authorization", Value: "s3cret", Secret: true}}
		e.Locations, e.Public = []string{"default", "tokyo"}, i == 1
		e, err = s.db.CreateEndpoint(t.Context(), e)
		s.must(t, err)
		s.endpoints = append(s.endpoints, e)
	}
	s.record(t, 0, checks)
	_, err = s.db.UpdateEndpoint(t.Context(), s.endpoints[3].Slug, func(e *store.Endpoint) error { e.Paused = true; return nil })
	s.must(t, err)
	_, err = s.db.Announce(t.Context(), store.Event{
		At: storyBegin, Kind: store.EventLocationOffline, Severity: "warning", Title: "tokyo is offline", Data: []byte(`{"location":"tokyo"}`),
	})
	s.must(t, err)
	s.deliver(t)
	return s
}

func (s *story) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *story) people(t testing.TB) {
	t.Helper()
	s.must(t, s.db.PutSetupToken(t.Context(), []byte("setup"), storyBegin))
	u, err := s.db.CreateFirstUser(t.Context(), []byte("setup"), store.User{Name: "Ömer", PasswordHash: "$argon2id$…", Role: store.RoleAdmin})
	s.must(t, err)
	s.session, s.token = []byte{0, 1, 255}, []byte{9, 0, 9}
	s.must(t, s.db.CreateSession(t.Context(), store.Session{
		TokenHash: s.session, UserID: u.ID, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
	}))
	_, err = s.db.CreateToken(t.Context(), store.Token{Name: "ci", Hash: s.token, Role: store.RoleAdmin})
	s.must(t, err)
}

// record records the checks of the minutes from until to.
func (s *story) record(t testing.TB, from, to int) {
	t.Helper()
	var group []store.Check
	for n := from; n < to; n++ {
		for i, e := range s.endpoints {
			for _, location := range []string{"default", "tokyo"} {
				group = append(group, storyCheck(e, i, location, n))
			}
		}
		if len(group) >= 1000 || n == to-1 {
			_, err := s.db.Record(t.Context(), group, rules)
			s.must(t, err)
			group = nil
		}
	}
}

// storyCheck is the n-th check of an endpoint at a location: mostly good, now and then not.
func storyCheck(e store.Endpoint, i int, location string, n int) store.Check {
	at := storyBegin.Add(time.Duration(n)*time.Minute + time.Duration(i)*time.Second)
	r := probe.Result{
		StartedAt: at.Add(1234 * time.Microsecond), Duration: time.Duration(80_123_456 + n), Kind: e.Kind, Era: "modern", Verdict: probe.Up,
	}
	for step, name := range []string{"server/discover", "initialize", "tools/list"} {
		r.Steps = append(r.Steps, probe.Step{
			Name: name, Method: name, Start: time.Duration(step) * 20 * time.Millisecond, Latency: time.Duration(18_000_499 + n*1000*(step+1)),
			Phases: probe.Phases{Connect: time.Millisecond, FirstByte: 17 * time.Millisecond}, HTTPStatus: 200, BytesIn: int64(512 + n%7), BytesOut: 128,
		})
	}
	switch {
	case n%50 >= 40 && n%50 < 44 && i != 1:
		r.Verdict, r.Failure = probe.Down, &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal \x00 error ü"}
		r.Steps[2].Class, r.Steps[2].Code, r.Steps[2].Message = probe.ClassRPCError, -32603, "Internal error"
		r.RetryAfter = 1500 * time.Millisecond
		r.Transcript = []probe.Message{{Step: "initialize", Sent: true, Head: "POST / HTTP/1.1", Body: fmt.Sprint("hello ", n)}}
	case n%50 == 20:
		r.Verdict = probe.Degraded
		r.Warnings = []probe.Warning{{Step: "initialize", Class: probe.ClassTimeout, Code: 7, Message: "slow"}}
		r.Steps = r.Steps[:1]
	case n%50 == 21:
		r.Verdict, r.Steps = probe.Unknown, nil
	}
	if i == 1 {
		height := uint64(20_000_000 + n)
		head := at.Add(-3 * time.Second)
		r.Facts = probe.Facts{Height: &height, ChainID: "1", HeadHash: fmt.Sprintf("0x%064x", n), HeadTime: &head}
		r.Memory.Head = &probe.Head{Origin: "e1.example:443", Chain: "1", Height: height, Time: head, Asked: at, Seen: at}
	} else if r.Verdict == probe.Up && location == "default" {
		list := []byte(fmt.Sprintf(`[{"inputSchema":{"type":"object"},"name":"tool %d"}]`, n/60))
		r.Contract = &probe.Contract{Key: "modern", Hash: fmt.Sprintf("sha256:%x", sha256.Sum256(list)), Tools: list}
		r.Transcript = []probe.Message{{Step: "initialize", Sent: true, Head: "POST / HTTP/1.1", Body: "fine"}}
	}
	return store.NewCheck(e.ID, location, at, r)
}

// deliver settles some notices in each way and leaves the rest waiting, one of them leased.
func (s *story) deliver(t testing.TB) {
	t.Helper()
	now := time.Now()
	deliveries, err := s.db.LeaseNotices(t.Context(), "copy", now, time.Second, 3)
	s.must(t, err)
	for i, d := range deliveries {
		settled := store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: now}
		switch i {
		case 0:
			settled.Sent, settled.Ref = true, "1234.5678"
		case 1:
			settled.RetryAt, settled.Error = now.Add(time.Minute), "Slack answered 503"
		default:
			continue
		}
		s.must(t, s.db.SettleNotice(t.Context(), settled))
	}
}

func (s *story) close(t testing.TB) {
	t.Helper()
	s.must(t, s.db.Close())
}

// remembered is everything that a store tells about a story.
type remembered struct {
	Overviews []store.Overview
	Checks    map[string][]store.Check
	Single    []store.Check
	Uptime    []string
	Incidents []store.Incident
	Contracts []store.Contract
	Events    []store.Event
	Heads     []probe.Head
	Channels  []store.Channel
	Pending   int
	User      store.User
	Session   store.Session
	Tokens    []store.Token
}

// remember asks a store for everything, by the page and one by one. Results are rounded as Postgres rounds them.
func (s *story) remember(t testing.TB, db store.Store) (r remembered) {
	t.Helper()
	page, err := db.Endpoints(t.Context(), store.EndpointFilter{})
	s.must(t, err)
	for i := range page.Items {
		if last := page.Items[i].LastCheck; last != nil {
			last.Result = store.Rounded(last.Result)
		}
	}
	r.Overviews = page.Items
	r.Checks = map[string][]store.Check{}
	for _, e := range s.endpoints {
		s.rememberChecks(t, db, e, &r)
		for _, grain := range []store.Grain{store.Hourly, store.Daily} {
			sums, err := db.Uptime(t.Context(), e.ID, grain, storyBegin.Add(-24*time.Hour), storyBegin.Add(400*24*time.Hour))
			s.must(t, err)
			for _, u := range sums {
				r.Uptime = append(r.Uptime, fmt.Sprint(u.EndpointID, u.Location, u.Begin, u.Counts, u.Classes, u.Latencies.Quantiles("", 0.5, 0.99)))
			}
		}
		contracts, err := db.Contracts(t.Context(), store.ContractFilter{EndpointID: e.ID, Limit: store.MaxLimit})
		s.must(t, err)
		for _, c := range contracts.Items {
			c, err := db.Contract(t.Context(), c.ID)
			s.must(t, err)
			r.Contracts = append(r.Contracts, c)
		}
		events, err := db.Events(t.Context(), store.EventFilter{EndpointID: e.ID, Limit: store.MaxLimit})
		s.must(t, err)
		for _, event := range events.Items {
			event.Data = []byte(strings.ReplaceAll(string(event.Data), " ", "")) // jsonb sets it in its own way
			event.Data = sorted(event.Data)
			r.Events = append(r.Events, event)
		}
	}
	incidents, err := db.Incidents(t.Context(), store.IncidentFilter{Limit: store.MaxLimit})
	s.must(t, err)
	r.Incidents = incidents.Items
	r.Heads, err = db.Heads(t.Context(), r.chain(), storyBegin)
	s.must(t, err)
	r.Channels, err = db.Channels(t.Context())
	s.must(t, err)
	r.Pending, err = db.PendingNotices(t.Context())
	s.must(t, err)
	r.Session, r.User, err = db.Session(t.Context(), s.session, time.Now())
	s.must(t, err)
	r.Tokens, err = db.Tokens(t.Context())
	s.must(t, err)
	return r
}

func (r remembered) chain() string {
	for _, o := range r.Overviews {
		if name := store.HeadChain(o.State); name != "" {
			return name
		}
	}
	return ""
}

// sorted returns the letters of a text in order: whatever the order of its members, it is the same.
func sorted(text []byte) []byte {
	text = slices.Clone(text)
	slices.Sort(text)
	return text
}

func (s *story) rememberChecks(t testing.TB, db store.Store, e store.Endpoint, r *remembered) {
	t.Helper()
	for cursor, more := "", true; more; {
		page, err := db.Checks(t.Context(), store.CheckFilter{EndpointID: e.ID, Limit: store.MaxLimit, Cursor: cursor})
		s.must(t, err)
		for _, c := range page.Items {
			c.Result = store.Rounded(c.Result)
			r.Checks[e.ID+c.Location] = append(r.Checks[e.ID+c.Location], c)
			if c.Result.Verdict == probe.Down {
				single, err := db.Check(t.Context(), c.ID)
				s.must(t, err)
				single.Result = store.Rounded(single.Result)
				r.Single = append(r.Single, single)
			}
		}
		cursor, more = page.Next, page.Next != ""
	}
	slices.SortFunc(r.Single, func(a, b store.Check) int { return strings.Compare(a.ID, b.ID) })
}

func openPostgres(t testing.TB, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// copyStory runs the real command.
func copyStory(t testing.TB, s *story, url string) (code int, output string) {
	t.Helper()
	return runBinary(t, nil, "migrate", "--from", "sqlite:"+s.path, "--to", url)
}

func TestCopyKeepsEverything(t *testing.T) {
	t.Parallel()
	s := tellStory(t, 400) // over a new year
	want := s.remember(t, s.db)
	s.close(t)
	if err := os.WriteFile(s.path+".spool", make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	url := storetest.Postgres(t)
	code, output := copyStory(t, s, url)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	for _, words := range []string{
		"the schema is up to date", "everything was copied", "ROLLCALL_SECRET_KEY set to the content of the key file",
		"checks              3200  3200", "same", "--spool " + s.path + ".spool",
	} {
		if !strings.Contains(output, words) {
			t.Errorf("output does not say %q:\n%s", words, output)
		}
	}
	if strings.Contains(output, storyKey) || strings.Contains(output, "rollcall:rollcall") {
		t.Errorf("output holds a secret:\n%s", output)
	}
	db := openPostgres(t, url)
	got := s.remember(t, db)
	if diff := cmp.Diff(got, want, cmp.Comparer(func(a, b store.Latencies) bool { return true })); diff != "" {
		t.Errorf("memories (-postgres +sqlite):\n%s", diff)
	}
	if len(want.Incidents) == 0 || len(want.Contracts) == 0 || len(want.Events) == 0 || len(want.Heads) == 0 || want.Pending == 0 || len(want.Single) == 0 {
		t.Errorf("the story has too little in it: %d incidents, %d contracts, %d events, %d heads, %d notices",
			len(want.Incidents), len(want.Contracts), len(want.Events), len(want.Heads), want.Pending)
	}
	if want.Single[0].Transcript == nil && want.Single[len(want.Single)-1].Transcript == nil {
		t.Error("the story has no transcripts")
	}

	// Life goes on: numbers of places and notices do not clash with those that were copied.
	group := []store.Check{storyCheck(s.endpoints[0], 0, "default", 1000), storyCheck(s.endpoints[0], 0, "oslo", 1000), storyCheck(s.endpoints[0], 0, "tokyo", 399)}
	outcomes, err := db.Record(t.Context(), group, rules)
	if err != nil || !outcomes[0].Kept || !outcomes[1].Kept || outcomes[2].Kept {
		t.Errorf("Record after the copy = %+v, %v, want the first two kept and the third known", outcomes, err)
	}
	if n, err := db.Announce(t.Context(), store.Event{At: time.Now(), Kind: store.EventLocationOnline, Title: "back"}); err != nil || n != 1 {
		t.Errorf("Announce after the copy = %d, %v, want one notice", n, err)
	}

	// A second copy finds a database that is not empty.
	if code, output := copyStory(t, s, url); code != 1 || !strings.Contains(output, "of its own") {
		t.Errorf("a second copy: exit code %d, %s; want it refused", code, output)
	}
}

func TestCopyNoticesWhatWasTamperedWith(t *testing.T) {
	t.Parallel()
	s := tellStory(t, 60)
	s.close(t)
	for _, tamper := range []struct{ name, statement, want string }{
		{"a latency", `UPDATE checks SET latencies = set_byte(latencies, 3, get_byte(latencies, 3) # 1) WHERE ctid = (SELECT min(ctid) FROM checks WHERE latencies <> '')`, "latencies by step add up"},
		{"a check is gone", `DELETE FROM checks WHERE (place, scheduled_at) = (SELECT place, scheduled_at FROM checks LIMIT 1)`, "480 rows in the source, 479 in the copy"},
		{"a time", `UPDATE checks SET numbers = set_byte(numbers, 1, get_byte(numbers, 1) # 1) WHERE (place, scheduled_at) = (SELECT place, scheduled_at FROM checks LIMIT 1)`, "they do not say the same"},
		{"a verdict", `UPDATE checks SET verdict = 'x' WHERE (place, scheduled_at) = (SELECT place, scheduled_at FROM checks WHERE verdict = 'u' LIMIT 1)`, "checks by verdict"},
		{"a shape", `UPDATE check_shapes SET shape = jsonb_set(shape, '{era}', '"other"') WHERE (place, day, id) = (SELECT place, day, id FROM check_shapes LIMIT 1)`, "checks: endpoint"},
		{"a header", `UPDATE endpoints SET headers = set_byte(headers, 0, get_byte(headers, 0) # 1)`, "endpoints: as many rows (4)"},
		{"a count", `UPDATE uptime_hours SET up = up + 1`, "uptime_hours: as many rows"},
		{"evidence", `UPDATE places SET evidence = '{}' WHERE num = 1`, "places: as many rows"},
		{"an attempt", `DELETE FROM notice_attempts`, "notice_attempts: 2 rows in the source, 0 in the copy"},
	} {
		t.Run(tamper.name, func(t *testing.T) {
			url := storetest.Postgres(t)
			db := openSQL(t, "pgx", url)
			copyUntil(t, s, url, func(string, int64) bool { return false })
			if result, err := db.ExecContext(t.Context(), tamper.statement); err != nil {
				t.Fatal(err)
			} else if n, _ := result.RowsAffected(); n == 0 {
				t.Fatal("nothing was tampered with")
			}
			code, output := copyStory(t, s, url)
			if code != 1 || !strings.Contains(output, tamper.want) || !strings.Contains(output, "DIFFERS") || !strings.Contains(output, "empty the Postgres database") {
				t.Errorf("exit code %d, want 1 and %q:\n%s", code, tamper.want, output)
			}
		})
	}
}

// copyUntil copies as the command does, without the comparison at the end, until stop says so after a batch of a table.
func copyUntil(t testing.TB, s *story, url string, stop func(table string, rows int64) bool) {
	t.Helper()
	_, _, err := postgres.Migrate(t.Context(), url)
	s.must(t, err)
	source, err := sqlite.Open(t.Context(), s.path, storetest.Sealer(t, 1))
	s.must(t, err)
	defer source.Close() //nolint:errcheck // it was only read
	state, err := source.Export(t.Context())
	s.must(t, err)
	defer state.Close() //nolint:errcheck // it was only read
	target, err := postgres.NewImport(t.Context(), url)
	s.must(t, err)
	defer target.Close()
	fingerprint, err := state.Fingerprint(t.Context())
	s.must(t, err)
	_, err = target.Begin(t.Context(), fingerprint)
	s.must(t, err)
	for _, table := range store.CopyTables {
		after, rows, _, err := target.Progress(t.Context(), table)
		s.must(t, err)
		for batch, err := range state.Batches(t.Context(), table, after) {
			s.must(t, err)
			s.must(t, target.Put(t.Context(), table, batch))
			if rows += int64(batch.Len()); stop(table.Name, rows) {
				return
			}
		}
		s.must(t, target.Complete(t.Context(), table))
	}
}

func TestCopyGoesOnWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	s := tellStory(t, 1100) // more than two batches of checks
	s.close(t)
	for name, stop := range map[string]func(table string, rows int64) bool{
		"after the places":               func(table string, _ int64) bool { return table == "places" },
		"in the middle of the checks":    func(table string, rows int64) bool { return table == "checks" && rows < 8800 },
		"after the last batch of checks": func(table string, rows int64) bool { return table == "checks" && rows == 8800 },
		"after the notices":              func(table string, _ int64) bool { return table == "notices" },
		"when everything was there":      func(string, int64) bool { return false },
		"in the transcripts":             func(table string, _ int64) bool { return table == "transcripts" },
	} {
		t.Run(name, func(t *testing.T) {
			url := storetest.Postgres(t)
			copyUntil(t, s, url, stop)
			code, output := copyStory(t, s, url)
			if code != 0 || !strings.Contains(output, "going on with a copy that was interrupted") {
				t.Errorf("exit code %d: %s", code, output)
			}
			if n := countChecks(t, openSQL(t, "pgx", url)); n != 8800 {
				t.Errorf("%d checks, want 8800", n)
			}
		})
	}

	t.Run("but not when the source has changed since", func(t *testing.T) {
		url := storetest.Postgres(t)
		copyUntil(t, s, url, func(table string, _ int64) bool { return table == "checks" })
		db, err := sqlite.Open(t.Context(), s.path, storetest.Sealer(t, 1))
		s.must(t, err)
		_, err = db.Record(t.Context(), []store.Check{storyCheck(s.endpoints[0], 0, "default", 5000)}, rules)
		s.must(t, err)
		s.must(t, db.Close())
		if code, output := copyStory(t, s, url); code != 1 || !strings.Contains(output, "the source has changed since the copy began") {
			t.Errorf("exit code %d: %s", code, output)
		}
	})
}

func TestCopyThatIsKilled(t *testing.T) {
	t.Parallel()
	s := tellStory(t, 2000)
	s.close(t)
	url := storetest.Postgres(t)
	db := openSQL(t, "pgx", url)
	for _, rows := range []int{1, 4001, 8001} {
		cmd := exec.Command(binary(t), "migrate", "--from", s.path, "--to", url)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		s.must(t, cmd.Start())
		awaitWithin(t, time.Minute, fmt.Sprint(rows, " checks to be copied"), func() bool {
			n := 0
			err := db.QueryRowContext(t.Context(), `SELECT copied FROM copy_progress WHERE name = 'checks'`).Scan(&n)
			return err == nil && n >= rows
		})
		s.must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed: the error says only that
	}
	code, output := copyStory(t, s, url)
	if code != 0 || !strings.Contains(output, "going on with a copy that was interrupted") {
		t.Errorf("exit code %d: %s", code, output)
	}
	if n := countChecks(t, db); n != 16_000 {
		t.Errorf("%d checks, want 16000", n)
	}
}

func TestCopyIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("while a service runs on the source", func(t *testing.T) {
		path := storetest.SQLite(t)
		serveInstance(t, nil, "--database", path)
		code, output := runBinary(t, nil, "migrate", "--from", path, "--to", storetest.Postgres(t))
		if code != 1 || !strings.Contains(output, "another `rollcall serve` runs on") || !strings.Contains(output, "stop it first") {
			t.Errorf("exit code %d: %s", code, output)
		}
	})

	t.Run("while a service runs on the target", func(t *testing.T) {
		s := tellStory(t, 1)
		s.close(t)
		url := storetest.Postgres(t)
		serveInstance(t, []string{testKey}, "--database", url)
		if code, output := copyStory(t, s, url); code != 1 || !strings.Contains(output, "a service runs on it") {
			t.Errorf("exit code %d: %s", code, output)
		}
	})

	t.Run("into a database that was opened and is empty it is not", func(t *testing.T) {
		s := tellStory(t, 1)
		s.close(t)
		url := storetest.Postgres(t)
		if code, output := runBinary(t, []string{testKey}, "migrate", "--database", url); code != 0 {
			t.Fatalf("exit code %d: %s", code, output)
		}
		if code, output := copyStory(t, s, url); code != 0 {
			t.Errorf("exit code %d: %s", code, output)
		}
		openPostgres(t, url) // with the key of the source
	})
}

// Ids of checks that were made before ids followed from slots do not come along: transcripts follow the slot.
func TestCopyOfChecksWithIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := tellStory(t, 60)
	s.close(t)
	file := openSQL(t, "sqlite", s.path)
	for _, statement := range []string{
		`UPDATE transcripts SET check_id = 'chk_0' || check_id WHERE NOT good`,
		`UPDATE checks SET id = 'chk_0' || id WHERE id IN (SELECT substr(check_id, 6) FROM transcripts WHERE NOT good)`,
	} {
		if _, err := file.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s.must(t, file.Close())
	url := storetest.Postgres(t)
	if code, output := copyStory(t, s, url); code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	bad := storyCheck(s.endpoints[0], 0, "tokyo", 41)
	c, err := openPostgres(t, url).Check(t.Context(), bad.ID)
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.Transcript.Messages()
	if err != nil || len(said) != 1 || said[0].Body != "hello 41" {
		t.Errorf("transcript %v, %v, want what was said in that check", said, err)
	}
}

func TestCopyThatIsInterruptedSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	s := tellStory(t, 1500)
	s.close(t)
	url := storetest.Postgres(t)
	db := openSQL(t, "pgx", url)
	cmd := exec.Command(binary(t), "migrate", "--from", s.path, "--to", url)
	var output lockedBuffer
	cmd.Stdout, cmd.Stderr = &output, &output
	s.must(t, cmd.Start())
	awaitWithin(t, time.Minute, "the copy to begin", func() bool {
		n := 0
		err := db.QueryRowContext(t.Context(), `SELECT copied FROM copy_progress WHERE name = 'checks'`).Scan(&n)
		return err == nil && n > 0
	})
	s.must(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // the exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(output.String(), "interrupted: call the same again") {
		t.Errorf("exit code %d: %s", code, &output)
	}
}

// Whoever adds a table or a column has to say what becomes of it in a copy.
func TestCopyKnowsTheWholeSchema(t *testing.T) {
	t.Parallel()
	notCopied := map[string]bool{ // what holds nothing to be remembered, or follows from what is copied
		"schema_migrations": true, "sqlite_sequence": true, "copy_progress": true, "instances": true, "leases": true,
		"check_shapes": true,
	}
	known := map[string]bool{}
	for _, table := range store.CopyTables {
		for _, c := range table.Columns {
			known[table.Name+"."+c.Name] = true
		}
	}
	for _, column := range strings.Fields(`
		id endpoint_id location scheduled_at started_at duration_ms kind era verdict failed_step class code message retry_after_ms
		steps warnings facts maintenance place shape latencies numbers`) {
		known["checks."+column] = true // as store.Check and store.Packed hold them
	}
	for _, table := range []string{"transcripts", "uptime_hours", "uptime_days"} {
		known[table+".place"] = true
	}
	known["transcripts.check_id"] = true // follows from the place and the time

	path, url := storetest.SQLite(t), storetest.Postgres(t)
	if _, _, err := sqlite.Migrate(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	for _, database := range []struct{ driver, name, columns string }{
		{"sqlite", path, `
			SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'`},
		{"pgx", url, `
			SELECT t.relname || '.' || c.attname
			FROM pg_class t
			JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
			WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition`},
	} {
		rows, err := openSQL(t, database.driver, database.name).QueryContext(t.Context(), database.columns)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		n := 0
		for rows.Next() {
			var column string
			if err := rows.Scan(&column); err != nil {
				t.Fatal(err)
			}
			table, _, _ := strings.Cut(column, ".")
			if n++; !known[column] && !notCopied[table] {
				t.Errorf("%s: a copy does not know %s", database.driver, column)
			}
		}
		if err := rows.Err(); err != nil || n < 100 {
			t.Errorf("%s: %d columns, %v", database.driver, n, err)
		}
	}
}
