package alerts_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
)

// The tests in this file go the whole way: checks are recorded in a SQLite file with the judge of this package, and what
// follows from them arrives at a server that speaks like Slack.

func TestAnOutageIsToldThoughSlackIsAwayAndTheServiceRestarts(t *testing.T) {
	s := newService(t)
	webhook, bot := s.channel("webhook", webhookChannel(s.slack)), s.channel("bot", botChannel(s.slack))
	s.endpoint(webhook, bot)

	s.slack.SetFault(503, 0, "<html>")
	stop := s.start()
	s.record(probe.Up, probe.Down, probe.Down)
	s.slack.WaitForRequests(4, 10*time.Second) // each channel more than once, or one of them often
	stop()
	s.record(probe.Up)
	if got := s.pending(); got != 4 {
		t.Errorf("%d notices wait while Slack is away, want 4: two of each channel", got)
	}

	s.reopen()
	s.slack.SetFault(0, 0, "")
	stop = s.start()
	messages := s.slack.WaitFor(2, 10*time.Second)
	stop()

	var byWebhook, byBot []string
	for _, m := range messages {
		title, _, _ := strings.Cut(m.Text, "\n")
		if m.Kind == alertstest.Webhook {
			byWebhook = append(byWebhook, title)
		} else {
			byBot = append(byBot, string(m.Kind)+": "+title)
		}
	}
	if want := []string{"🟢 Weather was down and has recovered"}; !slices.Equal(byWebhook, want) {
		t.Errorf("the webhook got %q, want %q", byWebhook, want)
	}
	want := []string{"post: 🟢 Weather was down and has recovered"} // what waited together is told in one
	if !slices.Equal(byBot, want) {
		t.Errorf("the bot said %q, want %q", byBot, want)
	}
	if got := s.pending(); got != 0 {
		t.Errorf("%d notices wait in the end, want none", got)
	}
}

func TestAChannelThatIsBrokenSaysWhyAndIsServedOnceItIsMended(t *testing.T) {
	s := newService(t)
	bot := s.channel("bot", botChannel(s.slack))
	s.endpoint(bot)

	s.slack.SetFault(200, 0, `{"ok":false,"error":"is_archived"}`)
	stop := s.start()
	s.record(probe.Up, probe.Down, probe.Down)
	s.slack.WaitForRequests(1, 10*time.Second)
	stop()

	c, err := s.db.Channel(t.Context(), bot)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Broken, "Slack answered is_archived: the channel is archived"; got != want || c.BrokenAt == nil {
		t.Errorf("broken = %q at %v, want %q", got, c.BrokenAt, want)
	}

	s.record(probe.Up)
	s.slack.SetFault(0, 0, "")
	if _, err := s.db.UpdateChannel(t.Context(), bot, func(c *store.Channel) error { c.Name = "mended"; return nil }); err != nil {
		t.Fatal(err)
	}
	stop = s.start()
	messages := s.slack.WaitFor(1, 10*time.Second)
	stop()
	if got, want := kinds(s.slack), "post"; got != want || !strings.Contains(messages[0].Text, "has recovered") {
		t.Errorf("messages = %s: %q, want one post of the resolution", got, messages[0].Text)
	}
}

func TestWhatADeadProcessHadInHandIsSentByTheNextOne(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		s := &service{t: t, path: filepath.Join(dir, "rollcall.db")}
		s.open()
		defer s.close()
		id := s.channel("ops", store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": hook}})
		s.endpoint(id)
		s.record(probe.Up, probe.Down, probe.Down)

		due, err := s.db.LeaseNotices(t.Context(), "another", time.Now(), 2*time.Minute, 10) // a process leases it, and dies
		if err != nil || len(due) != 1 {
			t.Fatalf("leased %+v, %v; want one notice", due, err)
		}
		s.close()
		s.open()
		s.record(probe.Up)

		f.config.Store = s.db
		f.run(110 * time.Second)
		f.wantSent()
		f.run(time.Minute)
		f.wantSent(id + " Weather resolved") // which tells both
	})
}

func TestALostNetworkOfOursIsToldOnceInEachChannelThatAnEndpointNames(t *testing.T) {
	s := newService(t)
	named := s.channel("named", webhookChannel(s.slack))
	s.channel("idle", webhookChannel(s.slack))
	s.endpoint(named)
	for _, ev := range []store.Event{
		{Kind: store.EventLocationOffline, Data: []byte(`{"location": "fra", "since": "2026-11-21T12:03:20Z", "until": null, "endpoints": 1}`)},
		{Kind: store.EventLocationOnline, Data: []byte(`{"location": "fra", "since": "2026-11-21T12:03:20Z", "until": "2026-11-21T12:05:20Z", "endpoints": 1}`)},
	} {
		ev.At, ev.Severity, ev.Title = time.Now(), "warning", "A location"
		if n, err := s.db.Announce(t.Context(), ev); n != 1 || err != nil {
			t.Fatalf("announced to %d channels, %v; want one", n, err)
		}
	}
	stop := s.start()
	messages := s.slack.WaitFor(2, 10*time.Second)
	stop()
	var titles []string
	for _, m := range messages {
		title, _, _ := strings.Cut(m.Text, "\n")
		titles = append(titles, title)
	}
	slices.Sort(titles)
	want := []string{"🔵 Location fra has its network back", "🟡 Location fra lost its network at 12:03 UTC"}
	if slices.Sort(want); !slices.Equal(titles, want) {
		t.Errorf("told %q, want %q", titles, want)
	}
	if got := s.pending(); got != 0 {
		t.Errorf("%d notices wait in the end, want none", got)
	}
}

// service is a database and the dispatcher on it.
type service struct {
	t     *testing.T
	path  string
	db    *sqlite.DB
	slack *alertstest.Slack
	id    string // of its endpoint
	at    time.Time
}

func newService(t *testing.T) *service {
	s := &service{t: t, path: filepath.Join(t.TempDir(), "rollcall.db"), slack: alertstest.NewSlack(t)}
	s.open()
	t.Cleanup(s.close)
	return s
}

func (s *service) open() {
	s.t.Helper()
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		s.t.Fatal(err)
	}
	s.db, err = sqlite.Open(s.t.Context(), s.path, sealer)
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) close() {
	if err := s.db.Close(); err != nil {
		s.t.Error(err)
	}
}

func (s *service) reopen() {
	s.close()
	s.open()
}

// start runs a dispatcher that is in a hurry; stop ends it and waits for that.
func (s *service) start() (stop func()) {
	d := alerts.New(alerts.Config{
		Store:      s.db,
		Senders:    map[store.ChannelType]alerts.Sender{store.ChannelSlack: newSlack()},
		Log:        slog.New(slog.DiscardHandler),
		Poll:       10 * time.Millisecond,
		Backoff:    20 * time.Millisecond,
		MaxBackoff: 50 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	}
}

func (s *service) channel(name string, c store.Channel) (id string) {
	s.t.Helper()
	c.Name = name
	c, err := s.db.CreateChannel(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	return c.ID
}

func (s *service) endpoint(channels ...string) {
	s.t.Helper()
	e := weather()
	e.Channels = channels
	e, err := s.db.CreateEndpoint(s.t.Context(), e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.id = e.ID
}

// record keeps checks that are a minute apart, the first of all a quarter of an hour ago.
func (s *service) record(verdicts ...probe.Verdict) {
	s.t.Helper()
	if s.at.IsZero() {
		s.at = time.Now().Add(-15 * time.Minute)
	}
	for _, v := range verdicts {
		c := checkAt(s.at, v, probe.ClassConnect)
		c.EndpointID = s.id
		if _, err := s.db.Record(s.t.Context(), []store.Check{c}, rules); err != nil {
			s.t.Fatal(err)
		}
		s.at = s.at.Add(time.Minute)
	}
}

func (s *service) pending() int {
	s.t.Helper()
	n, err := s.db.PendingNotices(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
