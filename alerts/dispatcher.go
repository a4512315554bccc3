package alerts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/store"
)

// Config is what a Dispatcher needs. Store, Senders and Log are required; of the rest, zero means the default.
type Config struct {
	Store interface {
		LeaseNotices(ctx context.Context, now time.Time, lease time.Duration, limit int) ([]store.Delivery, error)
		SettleNotice(ctx context.Context, s store.Settlement) error
	}
	Senders    map[store.ChannelType]Sender
	Log        *slog.Logger
	Registerer prometheus.Registerer // nil: nothing is counted
	PublicURL  string                // for links in messages; empty: no links
	Wake       <-chan struct{}       // something was recorded, look at once; never closed; nil: look every Poll

	Poll        time.Duration // between two looks at the store; one second
	Workers     int           // messages under way at once, one for each channel at most; 16
	SendTimeout time.Duration // for one message, with all its requests; 20 seconds
	Backoff     time.Duration // before the first retry, doubled for each further one; 5 seconds
	MaxBackoff  time.Duration // 15 minutes
	Grace       time.Duration // for what is in hand when Run is told to stop; 10 seconds
}

func (c Config) withDefaults() Config {
	orElse := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	orElse(&c.Poll, time.Second)
	orElse(&c.SendTimeout, 20*time.Second)
	orElse(&c.Backoff, 5*time.Second)
	orElse(&c.MaxBackoff, 15*time.Minute)
	orElse(&c.Grace, 10*time.Second)
	if c.Workers == 0 {
		c.Workers = 16
	}
	return c
}

// A passing error is retried for giveUpAfter and giveUpAttempts, whichever takes longer: the number keeps a machine that
// slept for a day from giving up on the first try after it woke. With the default backoff a day is about a hundred
// attempts. Then the channel counts as broken, as after a permanent error, because people should see that it has
// accepted nothing for a day; what waits for it is sent once somebody has mended it.
const (
	giveUpAfter    = 24 * time.Hour
	giveUpAttempts = 20
)

// Dispatcher delivers the notices that the store keeps: at least once, in order for each incident and channel, and
// however often the process is stopped or killed in between. A channel that is slow, broken or overwhelmed delays its
// own messages only.
//
//	Run ── look ──► lease what is due, hand it to the lane of its channel
//	lane ─ deliver ─► word · send · settle: sent, due again, or failed for good     (one lane per busy channel)
//
// Whatever was leased and not settled falls due again when its lease ends.
type Dispatcher struct {
	config  Config
	metrics metrics
	slots   chan struct{} // one for each message under way
	again   chan struct{} // a lane has settled something: what stood behind it may be due

	mu    sync.Mutex
	lanes map[string][]leased // waiting deliveries by channel id; a channel that is in here has a goroutine
}

// leased is a delivery and the time until which it is ours.
type leased struct {
	store.Delivery
	until time.Time
}

const (
	batch     = 100             // notices leased with one query
	maxLane   = 100             // deliveries that wait in a lane
	settleFor = 5 * time.Second // for one settlement
	// leaseFor tells a database that is slow from a connection that has gone silent, as after a failover: without a
	// bound the one query that waits on it would be the last.
	leaseFor = 15 * time.Second
)

// lease is long enough for a full lane at the rate that Slack allows, one message a second, and short enough that after
// a kill -9 what was in hand is not late by more than two minutes.
func (c Config) lease() time.Duration { return 100*time.Second + c.SendTimeout }

// New returns a dispatcher; it does nothing until Run.
func New(c Config) *Dispatcher {
	c = c.withDefaults()
	return &Dispatcher{
		config:  c,
		metrics: newMetrics(c.Registerer, c.Senders),
		slots:   make(chan struct{}, c.Workers),
		again:   make(chan struct{}, 1),
		lanes:   map[string][]leased{},
	}
}

// Run delivers until ctx ends. Then it leases nothing more, finishes what is in hand within Grace, and returns nil when
// everything that it started has ended.
func (d *Dispatcher) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx)) // outlives ctx by Grace
	defer stop(nil)
	var lanes sync.WaitGroup
	d.watch(ctx, work, &lanes)
	grace := time.AfterFunc(d.config.Grace, func() { stop(errStopped) })
	defer grace.Stop()
	lanes.Wait()
	return nil
}

var errStopped = fmt.Errorf("cut short because this service stops: %w", context.Canceled)

// watch looks for due notices until ctx ends.
func (d *Dispatcher) watch(ctx, work context.Context, lanes *sync.WaitGroup) {
	tick := time.NewTicker(d.config.Poll)
	defer tick.Stop()
	away := false // the database, so that its absence is logged once
	for {
		err := d.look(ctx, work, lanes)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !away:
			d.config.Log.Error("notices cannot be read", "error", err)
		case err == nil && away:
			d.config.Log.Info("notices can be read again")
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return
		case <-d.config.Wake:
		case <-d.again:
		case <-tick.C:
		}
	}
}

// Test sends a test message and reports, in words for a user and without secrets, why it did not arrive.
func (d *Dispatcher) Test(ctx context.Context, c store.Channel) (err error) {
	defer d.recovered(c, &err)
	_, err = d.send(ctx, c, "", NewTestMessage(c, d.config.PublicURL))
	return err
}

// look leases everything that is due and hands it to the lanes.
func (d *Dispatcher) look(ctx, work context.Context, lanes *sync.WaitGroup) error {
	for {
		now := time.Now()
		due, err := d.leaseOnce(ctx, now)
		if err != nil {
			return err
		}
		d.metrics.looked.SetToCurrentTime()
		for _, channelID := range d.enqueue(due, now.Add(d.config.lease())) {
			lanes.Go(func() { d.serve(ctx, work, channelID) })
		}
		if len(due) < batch {
			return nil
		}
	}
}

func (d *Dispatcher) leaseOnce(ctx context.Context, now time.Time) ([]store.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseFor)
	defer cancel()
	return d.config.Store.LeaseNotices(ctx, now, d.config.lease(), batch)
}

// enqueue adds deliveries to the lanes of their channels, all before any is sent, so that a channel which turns out to be
// broken loses one of them and not more. It returns the lanes that need a goroutine. What a full lane cannot take falls
// due again: one channel's flood does not fill the memory.
func (d *Dispatcher) enqueue(due []store.Delivery, until time.Time) (idle []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, delivery := range due {
		id := delivery.Channel.ID
		lane, busy := d.lanes[id]
		if !busy {
			idle = append(idle, id)
		}
		if len(lane) < maxLane {
			d.lanes[id] = append(lane, leased{delivery, until})
		}
	}
	return idle
}

// next takes the first waiting delivery of a lane that is ours for long enough to send it. When there is none the lane
// is idle, and the caller's goroutine is no longer needed.
func (d *Dispatcher) next(channelID string) (leased, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lane := d.lanes[channelID]
	for len(lane) > 0 {
		first := lane[0]
		lane = lane[1:]
		if time.Until(first.until) > d.config.SendTimeout+settleFor {
			d.lanes[channelID] = lane
			return first, true
		}
	}
	delete(d.lanes, channelID)
	return leased{}, false
}

// serve delivers what waits in a lane, one after the other.
func (d *Dispatcher) serve(ctx, work context.Context, channelID string) {
	for {
		l, ok := d.next(channelID)
		if !ok {
			return
		}
		d.slots <- struct{}{} // comes soon: every send has a deadline
		pause, broken := d.deliver(work, l)
		<-d.slots
		d.nudge()
		if broken || !rest(ctx, pause) || work.Err() != nil {
			d.abandon(channelID)
			return
		}
	}
}

// abandon leaves what waits in a lane to fall due again: for a broken channel, once it is mended.
func (d *Dispatcher) abandon(channelID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.lanes, channelID)
}

// rest waits and reports whether it did to the end: not when ctx ends before.
func rest(ctx context.Context, pause time.Duration) bool {
	if pause <= 0 {
		return true
	}
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *Dispatcher) nudge() {
	select {
	case d.again <- struct{}{}:
	default:
	}
}

// deliver sends one notice and settles it. It returns how long the channel wants to be left alone, and whether it is
// broken.
func (d *Dispatcher) deliver(work context.Context, l leased) (pause time.Duration, broken bool) {
	if work.Err() != nil {
		return 0, false // the grace is over: it falls due again
	}
	began := time.Now()
	receipt, err := d.attempt(work, l)
	settlement, outcome := d.outcome(work, l, receipt, err)
	took := time.Since(began)
	d.settle(work, l, settlement)
	d.metrics.observe(l.Channel.Type, outcome, took) // once it is on record
	if e, ok := errors.AsType[*RetryError](err); ok {
		pause = e.After
	}
	return pause, settlement.Permanent
}

// attempt words a notice and sends it. A panic on the way is a mistake of ours and fails this attempt only.
func (d *Dispatcher) attempt(work context.Context, l leased) (r Receipt, err error) {
	defer d.recovered(l.Channel, &err)
	return d.send(work, l.Channel, l.Ref, NewMessage(l.Delivery, d.config.PublicURL))
}

// outcome says what follows from an attempt, and logs it.
func (d *Dispatcher) outcome(work context.Context, l leased, receipt Receipt, err error) (store.Settlement, string) {
	now := time.Now()
	s := store.Settlement{NoticeID: l.Notice.ID, LeaseID: l.LeaseID, At: now}
	log := d.config.Log.With("notice", l.Notice.ID, "kind", l.Notice.Kind, "endpoint", l.Endpoint.Slug, "channel", l.Channel.ID,
		"channel_name", l.Channel.Name, "attempt", l.Notice.Attempts+1)
	if err == nil {
		log.Info("alert delivered")
		s.Sent, s.Ref = true, receipt.Ref
		return s, outcomeSent
	}
	s.Error = err.Error()
	switch {
	case isPermanent(err):
		log.Error("alert cannot be delivered, the channel is broken", "error", err)
		s.Permanent = true
		return s, outcomeFailed
	case work.Err() != nil:
		s.RetryAt = now // cut short by our own end
		return s, outcomeRetried
	case now.Sub(l.Notice.CreatedAt) >= giveUpAfter && l.Notice.Attempts+1 >= giveUpAttempts:
		log.Error("alert given up, the channel has accepted nothing for a day", "error", err)
		s.Permanent = true
		s.Error = fmt.Sprintf("gave up after %d attempts, the last one: %s", l.Notice.Attempts+1, err)
		return s, outcomeFailed
	}
	s.RetryAt = now.Add(d.backoff(l.Notice.Attempts, err))
	log.Warn("alert not delivered, will be tried again", "error", err, "retry_at", s.RetryAt)
	return s, outcomeRetried
}

// backoff returns the pause after a failed attempt: doubled each time, between half and the whole of it by chance so
// that channels which failed together do not return together, and never shorter than the channel asked for.
func (d *Dispatcher) backoff(attempts int, err error) time.Duration {
	pause := d.config.Backoff
	for i := 0; i < attempts && pause < d.config.MaxBackoff; i++ {
		pause *= 2
	}
	pause = min(pause, d.config.MaxBackoff)
	pause = pause/2 + rand.N(pause/2+1) //nolint:gosec // chance, not a secret
	if e, ok := errors.AsType[*RetryError](err); ok && pause < e.After {
		return e.After + rand.N(d.config.Backoff) //nolint:gosec // chance, not a secret
	}
	return pause
}

// settle records how a delivery ended. A database that is away is asked again for as long as the lease lasts: what was
// sent and cannot be settled is sent twice.
func (d *Dispatcher) settle(work context.Context, l leased, s store.Settlement) {
	for {
		err := d.settleOnce(work, s)
		if err == nil {
			return
		}
		log := d.config.Log.With("notice", s.NoticeID, "channel", l.Channel.ID, "channel_name", l.Channel.Name, "sent", s.Sent,
			"error", err)
		if !store.IsFailure(err) { // most likely our lease ran out and another one took the notice
			log.Warn("delivery was not ours to settle")
			return
		}
		if time.Until(l.until) < settleFor || work.Err() != nil {
			log.Error("delivery not settled, will be repeated")
			return
		}
		rest(work, d.config.Poll) // when cut short, one more try follows
	}
}

// settleOnce has a deadline of its own: what was sent is to be recorded also when the time for sending is over.
func (d *Dispatcher) settleOnce(work context.Context, s store.Settlement) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), settleFor)
	defer cancel()
	return d.config.Store.SettleNotice(ctx, s)
}

// send sends m once, within SendTimeout. Its errors hold none of the channel's secrets.
func (d *Dispatcher) send(ctx context.Context, c store.Channel, ref string, m Message) (Receipt, error) {
	sender, ok := d.config.Senders[c.Type]
	if !ok {
		return Receipt{}, &PermanentError{fmt.Sprintf("nothing here can send to a channel of type %q", c.Type)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.config.SendTimeout,
		fmt.Errorf("no answer within %s: %w", d.config.SendTimeout, context.DeadlineExceeded))
	defer cancel()
	receipt, err := sender.Send(ctx, c, ref, m)
	return receipt, cleaned(err, c)
}

// recovered turns a panic into a passing error. It is to be deferred.
func (d *Dispatcher) recovered(c store.Channel, err *error) {
	p := recover()
	if p == nil {
		return
	}
	d.metrics.panics.Inc()
	d.config.Log.Error("sender panicked", "type", c.Type, "channel", c.ID, "channel_name", c.Name,
		"panic", withoutSecrets(fmt.Sprint(p), c), "stack", string(debug.Stack()))
	*err = errPanic
}

var errPanic = errors.New("our own mistake: the sender panicked, the log says where")

// cleaned returns err as it is when it holds no secret of c, else one of the same type with the secrets cut out.
func cleaned(err error, c store.Channel) error {
	if err == nil || withoutSecrets(err.Error(), c) == err.Error() {
		return err
	}
	if e, ok := errors.AsType[*PermanentError](err); ok {
		return &PermanentError{withoutSecrets(e.Reason, c)}
	}
	if e, ok := errors.AsType[*RetryError](err); ok {
		return &RetryError{After: e.After, Err: errors.New(withoutSecrets(e.Err.Error(), c))}
	}
	return errors.New(withoutSecrets(err.Error(), c))
}

// withoutSecrets cuts the secrets of c out of a text: each as a whole, and of a URL also the path, by which servers
// repeat it. Senders take care of that themselves; this is for the one that forgets.
func withoutSecrets(text string, c store.Channel) string {
	for _, secret := range c.Secrets {
		parts := []string{secret}
		if u, err := url.Parse(secret); err == nil && u.Host != "" {
			parts = append(parts, u.RequestURI(), u.EscapedPath())
		}
		for _, part := range parts {
			if len(part) > 1 {
				text = strings.ReplaceAll(text, part, "…")
			}
		}
	}
	return text
}
