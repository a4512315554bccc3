//go:build unix

package alerts_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// ends are the places outside of transactions where a process is killed, and how many processes are at each, so that they end at
// its first, its last and others in between.
var ends = []struct {
	place string
	times int
}{
	{"recording", 2},
	{"recorded", 3},
	{"leasing", 2},
	{"leased", 2},
	{"worded", 3},
	{"asked", 3},    // the request is with the channel, which has not taken it
	{"accepted", 4}, // the channel has taken it and cannot say so
	{"sent", 3},
	{"settling", 3},
	{"settled", 3},
}

// databaseLost is no end for most processes: they go on when the database is back.
const databaseLost = "database lost"

// losses are how often the database is lost, each time somewhere else.
const losses = 8

// parts are what the way consists of at least, in the words of the places.
var parts = map[string][]string{
	"sqlite": {
		"Record: insertChecks", "Record: putPlaces", "Record: updateStates", "Record: putRollups", "Record: insertIncident",
		"Record: updateIncident", "Record: insertEntries", "Record: insertNotices", "Record: row of checks", "Record: row of places",
		"Record: row of endpoint_states", "Record: row of uptime_hours", "Record: row of uptime_days", "Record: row of incidents",
		"Record: row of incident_entries", "Record: row of notices", "Record: commit",
		"LeaseNotices: take", "LeaseNotices: row of notices", "LeaseNotices: commit",
		"SettleNotice: settle", "SettleNotice: logAttempts", "SettleNotice: row of notices", "SettleNotice: commit",
	},
	"postgres": {
		"after INSERT INTO checks", "after UPDATE places", "after UPDATE endpoint_states", "after INSERT INTO uptime_hours",
		"after INSERT INTO uptime_days", "after INSERT INTO incidents", "after UPDATE incidents", "after INSERT INTO incident_entries",
		"after INSERT INTO notices", "commit of INSERT INTO checks", "commit of INSERT INTO uptime_days", // of Record
		"after UPDATE notices", "commit of UPDATE places", // of LeaseNotices
		"after INSERT INTO notice_attempts", "commit of INSERT INTO notice_attempts", // of SettleNotice
	},
}

// TestKill has real processes record checks and deliver what follows from them, while channels answer with faults; ends each with
// SIGKILL somewhere on the way, and has another one go on. They end at every place that a process passes to which nothing happens:
// before, between and after the statements of the store, and at the steps of the dispatcher.
func TestKill(t *testing.T) {
	tolls := map[string]*toll{"sqlite": newToll(), "postgres": newToll()}
	for driver, own := range tolls {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			databases := newDatabases(t, driver)
			visits := visitsOf(t, driver, databases[0])
			inParallel(databases, plansFor(driver, visits), func(i int, p plan, database string) {
				t.Run(fmt.Sprintf("%d: %s, time %d", i, shortened(p.Death), p.Nth), func(t *testing.T) {
					random := rand.New(rand.NewPCG(5, uint64(i))) //nolint:gosec // chance, not a secret
					s := newStage(t, driver, database, random)
					own.add(p.Death, s.live(p), s.gates)
				})
			})
			for place, died := range own.deaths {
				if died == 0 && place != databaseLost && !raceEnabled {
					t.Errorf("nobody was killed at %q, which is passed %d times: the test does not test what it says", place, visits[place])
				}
			}
			for _, how := range faults {
				if own.faults[how] == 0 && !raceEnabled {
					t.Errorf("no channel answered with %q", how)
				}
			}
			t.Logf("%d outages; %d processes killed where they were to be, at %d places, %d when they had lived for long enough; %v",
				own.runs, own.killed, len(own.deaths), own.tooLate, own.faults)
		})
	}
	t.Cleanup(func() {
		killed := tolls["sqlite"].killed + tolls["postgres"].killed
		t.Logf("%d processes killed where they were to be", killed)
		if killed < 200 && !raceEnabled && !t.Failed() {
			t.Errorf("%d processes killed where they were to be, want 200 at least", killed)
		}
	})
}

// newDatabases returns as many as are worked on at once. Each outlives many outages, one after the other.
func newDatabases(t *testing.T, driver string) []string {
	fresh := func() string { return storetest.MigratedSQLite(t, sqlite.Migrate) }
	if driver == "postgres" {
		fresh = func() string { return storetest.Postgres(t) }
	}
	return []string{fresh(), fresh(), fresh(), fresh()} // processes mostly wait
}

// visitsOf returns how often a process comes by each place when nothing happens to it.
func visitsOf(t *testing.T, driver, database string) map[string]int {
	var visits map[string]int
	t.Run("none", func(t *testing.T) {
		s := newStage(t, driver, database, nil)
		first := s.start(plan{Patient: true})
		s.reaper.watch(first, "", 0)
		first.live(patience)
		visits = s.reaper.stop()
		if err := json.Unmarshal(first.last, &visits); err != nil {
			t.Fatalf("a child said %q: %v\n%s", first.last, err, &first.log)
		}
		s.check(false)
	})
	var places []string
	for place := range visits {
		places = append(places, shortened(place))
	}
	for _, part := range parts[driver] {
		if !slices.ContainsFunc(places, func(place string) bool { return strings.Contains(place, part) }) {
			t.Errorf("nobody comes by %q", part)
		}
	}
	return visits
}

// plansFor returns what processes are to live through: deaths at the ends, and at the first and the last visit to each other place.
func plansFor(driver string, visits map[string]int) []plan {
	var plans []plan
	at := func(place string, times int) {
		for i := range times {
			nth := 1 + i*max(visits[place]-1, 0)/max(times-1, 1)
			plans = append(plans, plan{Death: place, Nth: nth, Patient: i > 0 || len(plans)%2 == 0})
		}
		delete(visits, place)
	}
	visits = maps.Clone(visits)
	for _, end := range ends {
		at(end.place, end.times)
	}
	lost := losses
	if driver == "sqlite" {
		lost = 0
	}
	at(databaseLost, lost)
	for _, place := range slices.Sorted(maps.Keys(visits)) {
		if strings.HasPrefix(place, "before ") && !writes(place) {
			at(place, 1) // what is only read is the same each time
			continue
		}
		at(place, min(2, visits[place]))
	}
	if !raceEnabled { // ten times as slow; `make crash` does all of them
		return plans
	}
	var some []plan
	for i := 0; i < len(plans); i += 8 {
		some = append(some, plans[i])
	}
	return some
}

// inParallel calls do for all plans, one at a time on each database, and returns when all is done.
func inParallel(databases []string, plans []plan, do func(i int, p plan, database string)) {
	var next atomic.Int64
	var busy sync.WaitGroup
	for _, database := range databases {
		busy.Go(func() {
			for i := int(next.Add(1)); i <= len(plans); i = int(next.Add(1)) {
				do(i, plans[i-1], database)
			}
		})
	}
	busy.Wait()
}

// toll is how runs ended. It is safe for concurrent use.
type toll struct {
	mu                    sync.Mutex
	runs, killed, tooLate int
	deaths                map[string]int // by place, of those who were killed there
	faults                map[string]int // that channels answered with
}

func newToll() *toll { return &toll{deaths: map[string]int{}, faults: map[string]int{}} }

func (c *toll) add(place string, how death, gates map[string]*gate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	c.deaths[place] += 0
	switch how {
	case atPlace:
		c.killed++
		c.deaths[place]++
	case tooLate:
		c.tooLate++
	}
	for _, g := range gates {
		for _, fault := range g.met() {
			c.faults[fault]++
		}
	}
}

// death is how a process ended that was to be killed.
type death int

const (
	notAtAll death = iota
	atPlace
	tooLate // it was stuck, as is one whose lease nobody told it of, or it waited for a channel
)

// A process that is to be killed lives for longer than it takes to tell all, also on a machine that is busy. One that has lost its
// database may wait for leases that it does not know of.
const (
	patience     = 15 * time.Second
	patienceLost = 3 * time.Second
)

// stage is one outage, the database that it is recorded in and the channels that are to hear of it. Processes work on it, one
// after the other.
type stage struct {
	t                *testing.T
	driver, database string
	db               store.Store // nil while processes are at work, so that each finds the database as the one before left it
	reaper           *reaper
	line             *line // nil: there is none between a process and its file
	began            time.Time
	endpoint         store.Endpoint
	receiver         *alertstest.Receiver
	slack            *alertstest.Slack // with a webhook
	bots             *alertstest.Slack // with a bot
	gates            map[string]*gate  // by name of the channel: receiver, slack, bot
	patient          bool              // is the process that goes on
}

// newStage returns one on a database, with faults of its channels by chance; nil: without.
func newStage(t *testing.T, driver, database string, random *rand.Rand) *stage {
	s := &stage{
		t: t, driver: driver, database: database, reaper: &reaper{},
		began:    time.Now().Add(-15 * time.Minute).Truncate(time.Hour).Add(-confirmed * time.Minute),
		receiver: alertstest.NewReceiver(t), slack: alertstest.NewSlack(t), bots: alertstest.NewSlack(t), gates: map[string]*gate{},
		patient: random == nil || random.IntN(2) == 0,
	}
	s.open()
	t.Cleanup(s.clear)
	if driver == "postgres" {
		u, err := url.Parse(database)
		if err != nil {
			t.Fatal(err)
		}
		s.line = newLine(t, u.Host, s.reaper)
	}
	s.endpoint = weather()
	s.endpoint.ID, s.endpoint.Slug = "", ""
	for _, c := range []struct {
		name, address string
		store.Channel
	}{
		{"receiver", "webhook_url", hookChannel(s.receiver)},
		{"slack", "webhook_url", webhookChannel(s.slack)},
		{"bot", "api_url", botChannel(s.bots)},
	} {
		var faults []string
		if random != nil {
			faults = faultsBy(random)
		}
		at := c.Secrets
		if c.name == "bot" {
			at = c.Settings
		}
		s.gates[c.name] = newGate(t, at[c.address], s.reaper, faults)
		at[c.address] = s.gates[c.name].address(at[c.address])
		c.ID, c.Name = "", c.name
		c, err := s.db.CreateChannel(t.Context(), c.Channel)
		if err != nil {
			t.Fatal(err)
		}
		s.endpoint.Channels = append(s.endpoint.Channels, c.ID)
	}
	var err error
	if s.endpoint, err = s.db.CreateEndpoint(t.Context(), s.endpoint); err != nil {
		t.Fatal(err)
	}
	return s
}

// live has a process live through a plan, and another one go on from where it ended.
func (s *stage) live(p plan) (how death) {
	s.t.Helper()
	first := s.start(p)
	s.reaper.watch(first, p.Death, p.Nth)
	long := patience
	if p.Death == databaseLost {
		long = patienceLost
	}
	inTime := first.live(long)
	s.reaper.stop()
	s.settle()
	switch {
	case first.wasKilled() && inTime:
		how = atPlace
	case first.wasKilled():
		how = tooLate
	case first.err != nil:
		s.t.Errorf("a child ended by itself: %v\n%s", first.err, &first.log)
	}

	second := s.start(plan{Patient: s.patient})
	if !second.live(30*time.Second) || second.err != nil {
		s.t.Fatalf("what was left was not told: %v\n%s", second.err, &second.log)
	}
	s.settle()
	s.check(how != notAtAll)
	return how
}

func (s *stage) open() {
	s.t.Helper()
	if s.db != nil {
		return
	}
	db, err := openAny(context.WithoutCancel(s.t.Context()), s.driver, s.database)
	if err != nil {
		s.t.Fatal(err)
	}
	s.db = db
}

func (s *stage) close() {
	s.t.Helper()
	if s.db == nil {
		return
	}
	if err := s.db.Close(); err != nil {
		s.t.Error(err)
	}
	s.db = nil
}

// clear leaves the database to the next outage.
func (s *stage) clear() {
	s.open()
	defer s.close()
	ctx := context.WithoutCancel(s.t.Context())
	if s.endpoint.ID != "" {
		if err := s.db.DeleteEndpoint(ctx, s.endpoint.Slug); err != nil {
			s.t.Error(err)
		}
	}
	for _, id := range s.endpoint.Channels {
		if err := s.db.DeleteChannel(ctx, id); err != nil {
			s.t.Error(err)
		}
	}
}

// settle waits until nothing of a dead process is under way any more, and then lets so much time pass in the database that its
// leases have run out and what it put off is due.
func (s *stage) settle() {
	s.t.Helper()
	for _, g := range s.gates {
		g.wait()
	}
	const later = `
		UPDATE notices
		SET due_at = created_at, leased_until = CASE WHEN lease_id IS NULL THEN NULL ELSE created_at END
		WHERE status = 'waiting'`
	if s.driver == "sqlite" {
		db, err := sql.Open("sqlite", s.database+"?_busy_timeout=5000")
		if err == nil {
			defer db.Close() //nolint:errcheck // what was committed stays
			_, err = db.ExecContext(s.t.Context(), later)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.line.lose(0)
	conn, err := pgx.Connect(s.t.Context(), s.database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context()) //nolint:errcheck // as above
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for others := 1; others > 0; <-tick.C {
		const count = `
			SELECT count(*)
			FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
		if err := conn.QueryRow(s.t.Context(), count).Scan(&others); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := conn.Exec(s.t.Context(), later); err != nil {
		s.t.Fatal(err)
	}
}

// check compares what channels were told with what was so: the endpoint was down once and is not any more.
func (s *stage) check(killed bool) {
	s.t.Helper()
	s.open()
	page, err := s.db.Incidents(s.t.Context(), store.IncidentFilter{Limit: store.MaxLimit})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(page.Items) != 1 || page.Items[0].ResolvedAt == nil {
		s.t.Errorf("on record are %+v, want one outage that is over", page.Items)
	}
	if n, err := s.db.PendingNotices(s.t.Context()); n != 0 || err != nil {
		s.t.Errorf("%d notices wait in the end, %v", n, err)
	}
	s.hold("receiver", newsFor(s.receiver), 1)
	var posted []news
	for _, m := range s.slack.Messages() {
		posted = append(posted, newsOf(m.Text))
	}
	s.hold("slack", posted, s.gates["slack"].most(killed))
	s.checkBot(s.gates["bot"].most(killed))
}

// checkBot takes the message of an incident for what is told, once for each time that it is posted, and its change to what is over
// for the end, which comes as often as one likes but is said aloud once, in the thread.
func (s *stage) checkBot(most int) {
	s.t.Helper()
	var words []news
	var posts, replies int
	for _, m := range s.bots.Messages() {
		switch m.Kind {
		case alertstest.Thread:
			replies++
			continue
		case alertstest.Post:
			posts++
		}
		if w := newsOf(m.Text); len(words) == 0 || m.Kind == alertstest.Post || words[len(words)-1] != w {
			words = append(words, w)
		}
	}
	s.hold("bot", words, most)
	if posts > most || replies > most {
		s.t.Errorf("the bot posted %d messages and said %d words in threads, want at most %d of each", posts, replies, most)
	}
}

// news is what a message says.
type news int

const (
	down news = iota
	over
	both // at once
)

func newsOf(text string) news {
	title, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.Contains(title, "was down and has recovered"):
		return both
	case strings.Contains(title, "has recovered"):
		return over
	}
	return down
}

// newsFor returns what a receiver makes of its messages that leaves out those it has had.
func newsFor(r *alertstest.Receiver) []news {
	var words []news
	had := map[string]bool{}
	for _, m := range r.Messages() {
		if had[m.ID] {
			continue
		}
		had[m.ID] = true
		var in struct{ Data struct{ Title string } }
		if json.Unmarshal([]byte(m.Body), &in) != nil || !m.Verified {
			return nil
		}
		words = append(words, newsOf(in.Data.Title))
	}
	return words
}

// hold compares what a channel heard with what it is to hear: of the outage at least once and of its end last, and of neither more
// often than most.
func (s *stage) hold(channel string, words []news, most int) {
	s.t.Helper()
	n := map[news]int{}
	for _, w := range words {
		n[w]++
	}
	if n[down]+n[both] == 0 {
		s.t.Errorf("%s never heard of the outage: %v", channel, words)
	}
	if n[down] > most || n[over]+n[both] > most {
		s.t.Errorf("%s was told %d times of the outage and %d times of its end, want at most %d: %v", channel, n[down], n[over]+n[both], most, words)
	}
	if len(words) > 0 && words[len(words)-1] == down {
		s.t.Errorf("the last word to %s is that it is down: %v", channel, words)
	}
}

// child is a process of ours.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ready chan struct{}
	gone  chan struct{}

	// To be read once it is gone.
	log  bytes.Buffer
	last []byte // the last line that it printed
	err  error
}

// start starts a child, which waits, with its database open, until it is told to live.
func (s *stage) start(p plan) *child {
	s.t.Helper()
	s.close()
	p.Driver, p.Database, p.Slug, p.Began = s.driver, s.database, s.endpoint.Slug, s.began
	if s.line != nil {
		var err error
		if p.Database, err = s.line.url(s.database); err != nil {
			s.t.Fatal(err)
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &child{t: s.t, cmd: exec.CommandContext(s.t.Context(), os.Args[0]), ready: make(chan struct{}), gone: make(chan struct{})} //nolint:gosec // ourselves
	// A process that was built to find data races takes a second to end otherwise.
	c.cmd.Env = append(os.Environ(), childPlan+"="+string(text), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	c.cmd.Stderr = &c.log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go c.listen(out)
	select {
	case <-c.ready:
	case <-c.gone:
		s.t.Fatalf("a child did not begin: %v\n%s", c.err, &c.log)
	}
	return c
}

func (c *child) listen(out io.Reader) {
	defer close(c.gone)
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			close(c.ready)
			continue
		}
		c.last = bytes.Clone(lines.Bytes())
	}
	c.err = c.cmd.Wait()
}

// live has a child live until it ends, and reports whether it did within a time: else it is killed.
func (c *child) live(within time.Duration) bool {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, "\n"); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-c.gone:
		return true
	case <-time.After(within):
		c.kill()
		return false
	}
}

// kill returns when the child is dead.
func (c *child) kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL) // an error means that it has ended by itself
	<-c.gone
}

func (c *child) wasKilled() bool {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
