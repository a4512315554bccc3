package alerts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/store"
)

// Config is what a Dispatcher needs. Store, Senders and Log are required; of the rest, zero means the default.
type Config struct {
	Store interface {
		LeaseNotices(ctx context.Context, holder string, now time.Time, lease time.Duration, limit int) ([]store.Delivery, error)
		SettleNotice(ctx context.Context, s store.Settlement) error
		Incident(ctx context.Context, id string) (store.Incident, error)
	}
	Senders map[store.ChannelType]Sender
	// PublicSenders are those for subscriptions from the public, who must not have us call what only the team may name; nil:
	// Senders.
	PublicSenders map[store.ChannelType]Sender
	Log           *slog.Logger
	Registerer    prometheus.Registerer // nil: nothing is counted
	PublicURL     string                // for links in messages; empty: no links
	Wake          <-chan struct{}       // something was recorded, look at once; never closed; nil: look every Poll
	Holder        string                // whose leases these are; one for each process; made when empty

	// UnsubscribeURL returns where the recipient of a delivery to a subscription ends it with one click; nil: no such links.
	UnsubscribeURL func(store.Delivery) string
	// Broken is told of a channel of the team that is broken for good, once it is on record, so that its owner hears of it by
	// another one; nil: nobody is told.
	Broken func(ctx context.Context, c store.Channel, reason string) error
	// Unsubscribe ends a subscription from the public whose address refuses messages for good; nil: its channel is left broken.
	Unsubscribe func(ctx context.Context, subscriptionID, reason string) error
	// Maintained reports whether an endpoint is under maintenance, during which nobody is reminded; nil: none is.
	Maintained func(endpointID string, at time.Time) bool
	// Pace returns the least time between two messages to one channel of a type; nil: DefaultPace.
	Pace func(store.ChannelType) time.Duration
	// Point is called at each named step of a delivery, by the goroutine that takes it, so that a test can end it there as a
	// kill would. Nil outside of tests. The names are "leased", "worded", "sent", "settling" and "settled".
	Point func(name string)

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
	if c.Holder == "" {
		c.Holder = store.NewID("dsp")
	}
	if c.PublicSenders == nil {
		c.PublicSenders = c.Senders
	}
	if c.Maintained == nil {
		c.Maintained = func(string, time.Time) bool { return false }
	}
	if c.Pace == nil {
		c.Pace = DefaultPace
	}
	if c.Point == nil {
		c.Point = func(string) {}
	}
	return c
}

// A passing error is retried for giveUpAfter and giveUpAttempts, whichever takes longer: the number keeps a machine that
// slept for a day from giving up on the first try after it woke. With the default backoff a day is about a hundred
// attempts. Then the channel counts as broken, as after a permanent error, because people should see that it has
// accepted nothing for a day; what waits for it is sent once somebody has mended it.
//
// What may have been kept long before it was due says nothing about a day by its age: of that, giveUpADay attempts must fail.
const (
	giveUpAfter    = 24 * time.Hour
	giveUpAttempts = 20
	giveUpADay     = 100
)

// Dispatcher delivers the notices that the store keeps: at least once, in order for each incident and channel, and
// however often the process is stopped or killed in between. A channel that is slow, broken or overwhelmed delays its
// own messages only.
//
//	Run ── look ──► lease what is due, hand it to the lane of its channel
//	lane ─ hush ──► settle what nothing is to be said about: it is over by then, or these are quiet hours
//	     ─ speak ─► word one, or many as a digest · send · settle: sent, passed, due again, or failed for good;
//	                of a reminder, look first whether somebody has done something since it was leased
//
// There is one lane for each busy channel, with one goroutine. Whatever was leased and not settled falls due again when its
// lease ends.
type Dispatcher struct {
	config  Config
	metrics metrics
	slots   chan struct{} // one for each message under way
	// publicSlots are those of messages to subscriptions from the public.
	publicSlots chan struct{}
	again       chan struct{} // a lane has settled something: what stood behind it may be due

	mu    sync.Mutex
	lanes map[string]*lane // by channel id
}

const (
	batch     = 500              // deliveries leased with one query
	settleFor = 5 * time.Second  // for one settlement
	tellFor   = 15 * time.Second // for telling an owner that a channel is broken
	// leaseFor tells a database that is slow from a connection that has gone silent, as after a failover: without a
	// bound the one query that waits on it would be the last.
	leaseFor = 15 * time.Second
	// maxRest is how long deliveries wait in a lane for their channel to want them. For longer they are given back.
	maxRest = time.Minute + gather
)

// lease is long enough for what a digest waits for, and for a hundred messages at the rate that Slack allows; and short enough
// that after a kill -9 what was in hand is not late by more than two minutes.
func (c Config) lease() time.Duration { return 100*time.Second + c.SendTimeout }

// New returns a dispatcher; it does nothing until Run.
func New(c Config) *Dispatcher {
	c = c.withDefaults()
	return &Dispatcher{
		config:  c,
		metrics: newMetrics(c.Registerer, c.Senders),
		slots:   make(chan struct{}, c.Workers),
		// Strangers' servers may hang as they like: they keep each other waiting, not the team.
		publicSlots: make(chan struct{}, max(1, c.Workers/4)),
		again:       make(chan struct{}, 1),
		lanes:       map[string]*lane{},
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

// look leases everything that is due and hands it to the lanes, all before any is sent: what belongs into one digest is together,
// and a channel which turns out to be broken loses one of them and not more.
func (d *Dispatcher) look(ctx, work context.Context, lanes *sync.WaitGroup) error {
	d.forget(time.Now())
	idle, err := d.fill(ctx)
	for _, l := range idle {
		lanes.Go(func() { d.serve(ctx, work, l) })
	}
	return err
}

// fill leases what is due. It returns the lanes that need a goroutine.
func (d *Dispatcher) fill(ctx context.Context) (idle []*lane, err error) {
	for {
		now := time.Now()
		due, err := d.leaseOnce(ctx, now)
		if err != nil {
			return idle, err
		}
		d.metrics.looked.SetToCurrentTime()
		idle = append(idle, d.enqueue(due, now, now.Add(d.config.lease()))...)
		if len(due) > 0 {
			d.config.Point("leased")
		}
		if len(due) < batch {
			return idle, nil
		}
	}
}

func (d *Dispatcher) leaseOnce(ctx context.Context, now time.Time) ([]store.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseFor)
	defer cancel()
	return d.config.Store.LeaseNotices(ctx, d.config.Holder, now, d.config.lease(), batch)
}

// serve delivers what waits in a lane, one after the other, until the lane is idle.
func (d *Dispatcher) serve(ctx, work context.Context, l *lane) {
	for {
		if work.Err() != nil {
			d.giveBack(work, d.empty(l), time.Now()) // the grace is over
		}
		d.hush(work, l)
		pause, idle := d.wait(l)
		switch {
		case idle:
			return
		case pause > maxRest:
			d.giveBack(work, d.empty(l), time.Now().Add(pause))
		case pause > 0 && !d.rest(ctx, work, l, pause):
			d.giveBack(work, d.empty(l), time.Now())
		case pause == 0:
			d.speak(work, l)
		}
	}
}

// rest leaves a lane alone for a while, or until something is added to it, and reports whether it is to be served after that: not
// when this service stops, unless all that it waited for is the pace of the channel.
func (d *Dispatcher) rest(ctx, work context.Context, l *lane, pause time.Duration) bool {
	stop := ctx
	if pause <= l.pace.every {
		stop = work
	}
	select {
	case <-time.After(pause):
	case <-l.more:
	case <-stop.Done():
		return false
	}
	return true
}

func (d *Dispatcher) nudge() { signal(d.again) }

// hush settles what nothing is to be said about, what ends alike at once.
func (d *Dispatcher) hush(work context.Context, l *lane) {
	taken := d.takeUnsaid(l)
	for len(taken) > 0 {
		how := taken[0].how
		var alike []leased
		taken = slices.DeleteFunc(taken, func(h hushed) bool {
			if h.how.Passed != how.Passed || h.how.Error != how.Error || !h.how.RetryAt.Equal(how.RetryAt) {
				return false
			}
			alike = append(alike, h.leased)
			return true
		})
		d.hushAlike(work, alike, how)
		d.nudge()
	}
}

func (d *Dispatcher) hushAlike(work context.Context, items []leased, how store.Settlement) {
	how.At = time.Now()
	outcome := outcomePassed
	if how.Deferred {
		outcome = outcomeDeferred
	}
	if !d.settle(work, items, how) {
		return
	}
	for _, l := range items {
		d.metrics.count(l.Channel.Type, outcome)
	}
}

// speak tells what is next in a lane. A channel that turns out to be broken loses what it refused; the rest waits until it is
// mended.
func (d *Dispatcher) speak(work context.Context, l *lane) {
	slots := d.slots
	if l.public {
		slots = d.publicSlots
	}
	slots <- struct{}{} // comes soon: every send has a deadline
	items := d.take(l)
	if len(items) == 0 {
		<-slots
		return
	}
	if how, ok := d.overtaken(work, &items[0]); ok {
		<-slots
		d.hushAlike(work, items, how)
		d.nudge()
		return
	}
	s := d.deliver(work, l, items)
	<-slots
	d.nudge()
	if s.Permanent {
		d.giveBack(work, d.empty(l), time.Now())
		d.tellOwner(work, items[0].Delivery, s.Error)
	}
}

// deliver sends one message and settles what it told.
func (d *Dispatcher) deliver(work context.Context, l *lane, items []leased) store.Settlement {
	began := time.Now()
	receipt, err := d.attempt(work, l, items)
	l.pace.spend(time.Now())
	if e, ok := errors.AsType[*RetryError](err); ok {
		l.pace.leave(time.Now().Add(e.After))
	}
	s, outcome := d.outcome(work, items, receipt, err)
	s.Took = time.Since(began)
	first, rest := items, []leased(nil)
	if s.Permanent {
		first, rest = items[:1], items[1:]
	}
	settled := d.settle(work, first, s)
	d.giveBack(work, rest, s.At)
	if s.Sent {
		d.told(l, items)
	}
	d.metrics.observe(items[0].Channel.Type, outcome, time.Since(began)) // once it is on record
	if len(items) > 1 && s.Sent {
		d.metrics.digest(items[0].Channel.Type)
	}
	s.Permanent = s.Permanent && settled // else whoever has it next will find out
	return s
}

// attempt words deliveries and sends the message. A panic on the way is a mistake of ours and fails this attempt only.
func (d *Dispatcher) attempt(work context.Context, l *lane, items []leased) (r Receipt, err error) {
	defer d.recovered(items[0].Channel, &err)
	m, ref := d.message(items)
	d.config.Point("worded")
	senders := d.config.Senders
	if s := items[0].Subscription; s != nil && s.Public() {
		senders = d.config.PublicSenders
	}
	r, err = d.send(withPace(work, &l.pace), senders, items[0].Channel, ref, m)
	d.config.Point("sent")
	return r, err
}

// message words deliveries to one channel, with the ref of what they follow: a digest follows nothing.
func (d *Dispatcher) message(items []leased) (m Message, ref string) {
	first := items[0].Delivery
	switch {
	case len(items) > 1:
		ds := make([]store.Delivery, 0, len(items))
		for _, l := range items {
			ds = append(ds, l.Delivery)
		}
		m = NewDigest(ds, d.config.PublicURL)
	case first.Subscription != nil && first.Subscription.Public():
		m, ref = NewPublicMessage(first, d.config.PublicURL), first.Ref
	default:
		m, ref = NewMessage(first, d.config.PublicURL), first.Ref
	}
	m.ID = messageID(items)
	if first.Subscription != nil && d.config.UnsubscribeURL != nil {
		m.Unsubscribe = d.config.UnsubscribeURL(first)
	}
	return m, ref
}

// messageID returns what a channel that can tell knows a message by which comes again: the id of the last notice that it tells, and
// of a digest one that follows from those of all. By the first notice, a message that tells of an end as well would pass for the
// opening that was sent before a crash.
func messageID(items []leased) string {
	if len(items) == 1 {
		return newest(items[0].Delivery).ID
	}
	all := sha256.New()
	for _, l := range items {
		all.Write([]byte(newest(l.Delivery).ID)) //nolint:errcheck // a hash takes everything
	}
	return "dig_" + hex.EncodeToString(all.Sum(nil)[:16])
}

// outcome says what follows from an attempt, and logs it.
func (d *Dispatcher) outcome(work context.Context, items []leased, receipt Receipt, err error) (store.Settlement, string) {
	now, l := time.Now(), items[0]
	s := store.Settlement{At: now}
	log := d.config.Log.With("notice", l.Notice.ID, "kind", l.Notice.Kind, "endpoint", l.Endpoint.Slug, "channel", l.Channel.ID,
		"channel_name", l.Channel.Name, "attempt", l.Notice.Attempts+1)
	if len(items) > 1 {
		log = log.With("digest_of", len(items))
	}
	switch {
	case err == nil && receipt.Passed:
		s.Passed, s.Ref = true, receipt.Ref
		return s, outcomePassed
	case err == nil:
		log.Info("alert delivered")
		s.Sent, s.Next = true, nextReminder(items, now)
		if len(items) == 1 { // a digest is no incident's message
			s.Ref = receipt.Ref
		}
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
	case isHopeless(l.Delivery, now):
		log.Error("alert given up, the channel has accepted nothing for a day", "error", err)
		s.Error = fmt.Sprintf("gave up after %d attempts, the last one: %s", l.Notice.Attempts+1, err)
		// Nobody mends the channel of a stranger, and whose fault it is nobody knows: that one message is given up, not the rest.
		s.Permanent = l.Subscription == nil || !l.Subscription.Public()
		s.Passed = !s.Permanent
		return s, outcomeFailed
	}
	s.RetryAt = now.Add(d.backoff(l.Notice.Attempts, err))
	log.Warn("alert not delivered, will be tried again", "error", err, "retry_at", s.RetryAt)
	return s, outcomeRetried
}

// isHopeless reports whether the attempt that failed was the last one.
func isHopeless(d store.Delivery, now time.Time) bool {
	enough := giveUpAttempts
	if d.Notice.Kind.Ahead() || d.Subscription != nil || !d.BehindUntil.IsZero() {
		enough = giveUpADay // it may have been kept long before it was due
	}
	since := later(d.Notice.CreatedAt, d.Channel.UpdatedAt) // a channel that somebody mended starts afresh
	return now.Sub(since) >= giveUpAfter && d.Notice.Attempts+1 >= enough
}

// nextReminder returns when the next reminder is due after deliveries were sent, zero when none is.
func nextReminder(items []leased, now time.Time) time.Time {
	d := items[0].Delivery
	every := d.Endpoint.Alerting.RemindEvery
	if len(items) > 1 || every == 0 || d.Incident.ResolvedAt != nil || d.Incident.AcknowledgedAt != nil {
		return time.Time{}
	}
	for _, n := range append([]store.Notice{d.Notice}, d.Later...) {
		if n.Kind == store.NoticeReminder {
			return now.Add(every)
		}
	}
	return time.Time{}
}

// tellOwner has those who can mend a channel hear that it is broken, or a subscription ended that nobody can mend. A channel of
// one's own shows that it is broken to its member.
func (d *Dispatcher) tellOwner(work context.Context, of store.Delivery, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), tellFor)
	defer cancel()
	var err error
	switch {
	case of.Subscription == nil && d.config.Broken != nil:
		err = d.config.Broken(ctx, of.Channel, reason)
	case of.Subscription != nil && of.Subscription.Public() && d.config.Unsubscribe != nil:
		err = d.config.Unsubscribe(ctx, of.Subscription.ID, reason)
	}
	if err != nil {
		d.config.Log.Error("nobody was told that a channel is broken", "channel", of.Channel.ID, "channel_name", of.Channel.Name, "error", err)
	}
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
