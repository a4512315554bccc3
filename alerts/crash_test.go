package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
)

// deaths are where a process is killed on the way from a check to a settled notice.
var deaths = []string{
	"none",
	"recording", // before a group of checks is written
	"in the transaction of Record",
	"recorded", // after its commit
	"in the transaction of LeaseNotices",
	"leased",
	"worded",
	"sending",  // before the channel has the message
	"accepted", // after it has, before it can say so
	"sent",
	"settling",
	"in the transaction of SettleNotice",
	"settled",
}

// TestCrash has a process record checks and deliver what follows from them while its channels answer with faults and its database
// comes and goes, kills it somewhere on the way, and has another one take over. Each run is another story, told by its number.
func TestCrash(t *testing.T) {
	template := filepath.Join(t.TempDir(), "empty.db")
	openSQLite(t, template).Close() //nolint:errcheck // a test that cannot open it below says so
	runs := 4 * len(deaths)
	c := &casualties{lived: map[string]int{}, killed: map[string]int{}}
	t.Run("runs", func(t *testing.T) {
		for i := range runs {
			t.Run(fmt.Sprintf("%d: %s", i, deaths[i%len(deaths)]), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "rollcall.db")
				copyFile(t, template, path)
				synctest.Test(t, func(t *testing.T) {
					db := openSQLite(t, path)
					defer db.Close() //nolint:errcheck // it is a test's
					newWorld(t, db, uint64(i)).live(deaths[i%len(deaths)], c)
				})
			})
		}
	})
	t.Logf("%d runs, killed %v; %d outages, %d words of them, %d of these twice", c.runs, c.killed, c.outages, c.words, c.twice)
	for _, death := range deaths[1:] {
		if !raceEnabled && c.killed[death] < c.lived[death]/2 {
			t.Errorf("killed %d times at %q: the test does not test what it says", c.killed[death], death)
		}
	}
}

// casualties adds up what happened in all runs.
type casualties struct {
	mu                    sync.Mutex
	runs                  int
	lived, killed         map[string]int // how many were to end in a death, and did
	outages, words, twice int
}

func openSQLite(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path, sealer)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// world is what outlives a process: the database, the endpoints, the channels and what they were told.
type world struct {
	t         *testing.T
	db        store.Store
	began     time.Time
	endpoints []store.Endpoint
	outages   map[string][]span // by id of the endpoint
	away      []span            // of the database
	refusals  map[string][]refusal
	random    *rand.Rand // of whoever makes the world; guarded by mu after that

	mu sync.Mutex
	// doubts are, by channel, how often a message was taken that nobody could note: once at most.
	doubts map[string]int
	said   map[string][]heard
	seen   map[string]bool // by channel and id of the message, of the channel that can tell
}

// span is a stretch of time since the world began.
type span struct{ from, to time.Duration }

func within(spans []span, at time.Duration) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from <= at && at < s.to })
}

// refusal is how a channel answers for a while.
type refusal struct {
	span
	how string // "500", "429", "hangs", "closes early"
}

// heard is a message that a channel took.
type heard struct {
	outage string // which
	over   bool   // says that it is over
	kind   alerts.Kind
	id     string
}

const (
	checkEvery = 20 * time.Second
	storyFor   = 16 * time.Minute
	calmFor    = 10 * time.Minute // after which all is told: longer than a lease and the longest backoff together
)

// The channels of the world. One can tell a message that comes again, the others cannot.
var worldChannels = []string{"plain", "slack", "telling"}

func newWorld(t *testing.T, db store.Store, seed uint64) *world {
	w := &world{
		t: t, db: db, began: time.Now(), random: rand.New(rand.NewPCG(seed, 5)), //nolint:gosec // chance, not a secret
		outages: map[string][]span{}, refusals: map[string][]refusal{}, said: map[string][]heard{}, seen: map[string]bool{}, doubts: map[string]int{},
	}
	var channels []string
	for _, name := range worldChannels {
		c := store.Channel{Name: name, Type: store.ChannelWebhook, Secrets: map[string]string{"webhook_url": hook}}
		if name == "slack" {
			c.Type = store.ChannelSlack
		}
		c, err := db.CreateChannel(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		channels = append(channels, c.ID)
		for range w.random.IntN(4) {
			how := []string{"500", "429", "hangs", "closes early"}[w.random.IntN(4)]
			w.refusals[name] = append(w.refusals[name], refusal{w.span(3 * time.Minute), how})
		}
	}
	for i := range 1 + w.random.IntN(3) {
		e := weather()
		e.ID, e.Slug, e.Name, e.Channels = "", "", fmt.Sprint("endpoint ", i), channels
		e, err := db.CreateEndpoint(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		w.endpoints = append(w.endpoints, e)
		from := w.between(time.Minute, 3*time.Minute)
		to := from + w.between(90*time.Second, 4*time.Minute)
		w.outages[e.ID] = []span{{from, to}}
		if w.random.IntN(2) == 0 { // another one, that may last
			from = to + w.between(3*time.Minute, 4*time.Minute)
			to = from + w.between(2*time.Minute, 5*time.Minute) + time.Duration(w.random.IntN(2))*24*time.Hour
			w.outages[e.ID] = append(w.outages[e.ID], span{from, to})
		}
	}
	for range w.random.IntN(4) {
		w.away = append(w.away, w.span(time.Minute))
	}
	return w
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.random.Int64N(int64(most-least)))
}

// span returns one that lies within the story.
func (w *world) span(longest time.Duration) span {
	from := w.between(0, storyFor-longest)
	return span{from, from + w.between(time.Second, longest)}
}

func (w *world) now() time.Duration { return time.Since(w.began) }

func (w *world) chance(percent int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(100) < percent
}

// live runs the story with one process, and with another one once that was killed.
func (w *world) live(death string, c *casualties) {
	first := w.process(death)
	select {
	case <-first.killed:
		first.end()
		time.Sleep(w.between(time.Second, 30*time.Second)) // until somebody starts it again
		second := w.process("none")
		time.Sleep(storyFor + calmFor - w.now())
		second.end()
	case <-time.After(storyFor + calmFor):
		first.end()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	c.lived[death]++
	if first.isDead() {
		c.killed[death]++
	}
	w.check(c)
}

// check compares what channels were told with what is on record, and that with what was so.
func (w *world) check(c *casualties) {
	page, err := w.db.Incidents(w.t.Context(), store.IncidentFilter{Limit: store.MaxLimit})
	if err != nil {
		w.t.Fatal(err)
	}
	want := 0
	for _, e := range w.endpoints {
		want += len(w.outages[e.ID])
	}
	if len(page.Items) != want {
		w.t.Errorf("%d incidents, want one for each of %d outages", len(page.Items), want)
	}
	for _, i := range page.Items {
		c.outages++
		at := w.now()
		if over := !within(w.outages[i.EndpointID], at); i.ResolvedAt == nil && over {
			w.t.Errorf("incident %s is open though the outage is over", i.ID)
		}
		for _, channel := range worldChannels {
			words := slices.DeleteFunc(slices.Clone(w.said[channel]), func(h heard) bool { return h.outage != outageOf(i.Name, i.StartedAt) })
			c.words += len(words)
			if len(words) == 0 {
				w.t.Errorf("%s never heard of the outage of %s at %s", channel, i.Name, i.StartedAt.Sub(w.began))
				continue
			}
			if last := words[len(words)-1]; last.over != (i.ResolvedAt != nil) {
				w.t.Errorf("the last word to %s about %s is over=%v, which it is not: %v", channel, i.Name, last.over, words)
			}
			openings, ends := count(words)
			if most := 1 + w.doubts[channel]; openings > most || ends > most {
				w.t.Errorf("%s was told %d times of the outage of %s and %d times of its end, want at most %d: %v", channel, openings, i.Name, ends, most, words)
			}
			if openings > 1 || ends > 1 {
				c.twice++
			}
		}
	}
	if n, err := w.db.PendingNotices(w.t.Context()); n != 0 || err != nil {
		w.t.Errorf("%d notices wait in the end, %v", n, err)
	}
}

// count returns how often an outage was told, and how often its end. A message that tells both counts as the end.
func count(words []heard) (openings, ends int) {
	for _, h := range words {
		switch {
		case h.over:
			ends++
		case h.kind == alerts.KindOpened:
			openings++
		}
	}
	return openings, ends
}

func outageOf(endpoint string, since time.Time) string {
	return endpoint + since.UTC().Format(" 15:04:05.000")
}

// process is a service that records and delivers, until it is killed.
type process struct {
	*world
	death  string
	left   int // times that it comes by the place where it is killed
	cancel context.CancelFunc
	wake   chan struct{}
	parts  sync.WaitGroup
	killed chan struct{}

	dying     sync.Mutex
	dead      bool
	unsettled map[string]bool   // channels that took a message which is not on record
	ofNotice  map[string]string // the names of their channels
}

func (w *world) process(death string) *process {
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &process{world: w, death: death, left: 1 + w.random.IntN(3), cancel: cancel, wake: make(chan struct{}, 1), killed: make(chan struct{}), unsettled: map[string]bool{}, ofNotice: map[string]string{}}
	if death == "recording" || death == "recorded" || death == "in the transaction of Record" {
		p.left = 8 + w.random.IntN(30) // checks are many
	}
	d := alerts.New(alerts.Config{
		Store:   p,
		Senders: map[store.ChannelType]alerts.Sender{store.ChannelSlack: p, store.ChannelWebhook: p},
		Log:     slog.New(slog.DiscardHandler),
		Wake:    p.wake,
		Poll:    15 * time.Second, MaxBackoff: time.Minute,
		Point: p.comeBy,
	})
	p.parts.Go(func() { p.watch(ctx) })
	p.parts.Go(func() { _ = d.Run(ctx) })
	return p
}

func (p *process) end() {
	p.cancel()
	p.parts.Wait()
}

func (p *process) isDead() bool {
	p.dying.Lock()
	defer p.dying.Unlock()
	return p.dead
}

// die ends everything that the process does, at once and for ever. Its goroutines end with their next step.
func (p *process) die() {
	p.dying.Lock()
	defer p.dying.Unlock()
	if !p.dead {
		p.dead = true
		close(p.killed)
		p.mu.Lock()
		for channel := range p.unsettled {
			p.doubts[channel]++
		}
		p.mu.Unlock()
	}
}

// live ends the goroutine of a process that is dead.
func (p *process) live() {
	if p.isDead() {
		runtime.Goexit()
	}
}

// comeBy is called at each named place.
func (p *process) comeBy(place string) {
	p.live()
	if p.isTime(place) {
		p.die()
		p.live()
	}
}

func (p *process) isTime(place string) bool {
	p.dying.Lock()
	defer p.dying.Unlock()
	if place != p.death {
		return false
	}
	p.left--
	return p.left == 0
}

// watch records what the endpoints are like. What cannot be written waits in memory.
func (p *process) watch(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	var waiting []store.Check
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, e := range p.endpoints {
			verdict := probe.Up
			if within(p.outages[e.ID], p.now()) {
				verdict = probe.Down
			}
			c := checkAt(time.Now().Add(-time.Second), verdict, probe.ClassConnect)
			waiting = append(waiting, store.NewCheck(e.ID, "default", c.ScheduledAt, c.Result))
		}
		p.comeBy("recording")
		if err := p.transaction(ctx, "Record", func(ctx context.Context) error {
			_, err := p.db.Record(ctx, waiting, rules)
			return err
		}); err != nil {
			if !errors.Is(err, errAway) && ctx.Err() == nil {
				p.t.Errorf("record %d checks: %v", len(waiting), err)
			}
			continue
		}
		p.comeBy("recorded")
		waiting = nil
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// errAway is what a database says that is not there.
var errAway = errors.New("the database is away")

// transaction calls the store, unless that is away: then nothing is written, or it is and nobody hears of it.
func (p *process) transaction(ctx context.Context, name string, do func(context.Context) error) error {
	p.live()
	away := within(p.away, p.now())
	if away && !p.chance(20) {
		return errAway
	}
	if p.isTime("in the transaction of " + name) {
		ctx = newShortLife(ctx, 1+int(p.now().Milliseconds()%40))
		_ = do(ctx)
		p.die()
		p.live()
	}
	err := do(ctx)
	p.live()
	if away && err == nil {
		return errAway
	}
	return err
}

// LeaseNotices is that of the database, for as long as there is a process to hear of it.
func (p *process) LeaseNotices(ctx context.Context, holder string, now time.Time, lease time.Duration, limit int) (due []store.Delivery, err error) {
	p.live()
	if n, err := p.db.PendingNotices(ctx); n == 0 || err != nil {
		return nil, err // which is quicker, and a kill would prove nothing
	}
	if err := p.transaction(ctx, "LeaseNotices", func(ctx context.Context) (err error) {
		due, err = p.db.LeaseNotices(ctx, holder, now, lease, limit)
		return err
	}); err != nil {
		return nil, err
	}
	p.dying.Lock()
	defer p.dying.Unlock()
	for _, d := range due {
		p.ofNotice[d.Notice.ID] = d.Channel.Name
	}
	return due, nil
}

// Incident is that of the database.
func (p *process) Incident(ctx context.Context, id string) (store.Incident, error) {
	p.live()
	return p.db.Incident(ctx, id)
}

// SettleNotice is that of the database as well.
func (p *process) SettleNotice(ctx context.Context, s store.Settlement) error {
	return p.transaction(ctx, "SettleNotice", func(ctx context.Context) error {
		if err := p.db.SettleNotice(ctx, s); err != nil || !s.Sent {
			return err
		}
		p.dying.Lock()
		defer p.dying.Unlock()
		delete(p.unsettled, p.ofNotice[s.NoticeID])
		return nil
	})
}

// Send is a channel that takes a message or does not.
func (p *process) Send(ctx context.Context, c store.Channel, _ string, m alerts.Message) (alerts.Receipt, error) {
	time.Sleep(50 * time.Millisecond)
	p.comeBy("sending")
	if i := slices.IndexFunc(p.refusals[c.Name], func(r refusal) bool { return within([]span{r.span}, p.now()) }); i >= 0 {
		switch p.refusals[c.Name][i].how {
		case "500":
			return alerts.Receipt{}, errors.New("answered HTTP 500")
		case "429":
			return alerts.Receipt{}, &alerts.RetryError{After: time.Duration(5+p.now().Milliseconds()%60) * time.Second, Err: errors.New("answered HTTP 429")}
		case "hangs":
			<-ctx.Done()
			p.live()
			return alerts.Receipt{}, context.Cause(ctx)
		default:
			return alerts.Receipt{}, io.ErrUnexpectedEOF
		}
	}
	p.dying.Lock()
	p.unsettled[c.Name] = true
	p.dying.Unlock()
	p.take(c.Name, m)
	p.comeBy("accepted")
	if p.death == "none" && p.doubt(c.Name) {
		return alerts.Receipt{}, io.ErrUnexpectedEOF // taken all the same
	}
	return alerts.Receipt{}, nil
}

// take has a channel hear a message.
func (w *world) take(channel string, m alerts.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := channel + m.ID; channel == "telling" && m.ID != "" {
		if w.seen[key] {
			return
		}
		w.seen[key] = true
	}
	w.said[channel] = append(w.said[channel], heard{outageOf(m.Endpoint, m.Since), !m.Until.IsZero(), m.Kind, m.ID})
}

// doubt reports whether a channel takes this message and does not say so, once in some worlds.
func (w *world) doubt(channel string) bool {
	if !w.chance(3) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doubts[channel] > 0 {
		return false
	}
	w.doubts[channel]++
	return true
}

// shortLife is a context that ends when it was asked a number of times whether it has: somewhere in a transaction.
type shortLife struct {
	context.Context
	end  context.CancelFunc
	mu   sync.Mutex
	left int
}

func newShortLife(ctx context.Context, asks int) context.Context {
	ctx, end := context.WithCancel(ctx)
	return &shortLife{Context: ctx, end: end, left: asks}
}

func (s *shortLife) ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left == 0 {
		s.end()
	}
}

// Done implements context.Context.
func (s *shortLife) Done() <-chan struct{} {
	s.ask()
	return s.Context.Done()
}

// Err implements context.Context.
func (s *shortLife) Err() error {
	s.ask()
	return s.Context.Err()
}
