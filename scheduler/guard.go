package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// offlineMessage is what a check says that knows nothing of its endpoint because this location has no network.
const offlineMessage = "this location is offline: none of its reference addresses answers"

// Bounds of the guard.
const (
	// dialPatience is how long a reference has to accept a connection.
	dialPatience = 3 * time.Second
	// answerGood is how long it is believed what the references showed.
	answerGood = 3 * time.Second
	// decisionWindow is for how long other checks are watched when the references are silent.
	decisionWindow = 3 * time.Second
	// retryReferences is how often the references are tried while the location is offline.
	retryReferences = 5 * time.Second
	// maxHold is more than a decision takes, unless whoever hears of the last one takes his time.
	maxHold = 2 * (dialPatience + decisionWindow)
	// maxHeld bounds how many checks wait for a decision.
	maxHeld = 10_000
)

// ErrUndecided means that too many checks wait to hear whether this location is offline, or that one waited for too long.
// It is not recorded, because it would be an outage or none by chance.
var ErrUndecided = errors.New("it is not known whether this location is offline")

// guard tells outages of endpoints from those of our own network.
//
// A check that failed for a reason of the network (see broken) has the references dialled, all at once and once for all who
// ask. When one of them accepts, the check stands. When none does, the check is held while others end, for a bounded time
// and without a slot. When more than half of those that ended since failed for reasons of the network, itself included, this
// location is offline: what was held becomes unknown, and so does each such failure until it is back, and those whose probe
// began before it was. An installation with one endpoint goes offline by that one alone.
//
// The location is back with the first reference that accepts, or with a check that succeeded, unless most checks that ended
// around it failed all the same: one endpoint that can be reached where a hundred cannot does not make a network.
//
// Only endpoints that are as far away as the nearest of the references take part. While the Internet is gone, an endpoint on
// loopback or on a private network is judged as ever, and proves nothing when it succeeds; name a reference on the private
// network to have its endpoints take part. An endpoint is where its probe got a connection, or else where its URL points; a
// name that led nowhere counts as public.
type guard struct {
	references []string
	reach      reach
	dial       func(ctx context.Context, network, addr string) (net.Conn, error)
	tell       func(ctx context.Context, offline bool, since time.Time)
	now        func() time.Time // the wall clock
	log        *slog.Logger
	asked      chan struct{} // holds one element when run has something to look at

	mu       sync.Mutex
	round    *round    // guarded by mu: of those who wait for a decision; nil when nobody does
	recent   tally     // guarded by mu: of the checks that ended lately
	answered time.Time // guarded by mu: when a reference was last seen to answer
	silent   time.Time // guarded by mu: when none of them was
	offline  bool      // guarded by mu
	since    time.Time // guarded by mu: when it went offline last
	back     time.Time // guarded by mu: when it came back last
}

// round is one decision and those who wait for it.
type round struct {
	opened  time.Time     // by the wall clock
	tally   tally         // of the checks that ended since, that of who opened it included; guarded by guard.mu
	held    int           // guarded by guard.mu
	done    chan struct{} // closed when it is decided
	offline bool          // to be read when done is closed
}

// tally counts checks that ended, and those among them that failed for a reason of the network.
type tally struct {
	began         time.Time
	ended, failed int
}

func (t *tally) add(failed bool) {
	t.ended++
	if failed {
		t.failed++
	}
}

func (t *tally) mostFailed() bool { return 2*t.failed > t.ended }

// newGuard returns nil when there are no references: a nil guard lets every check stand.
func newGuard(cfg Config, now func() time.Time) *guard {
	if len(cfg.References) == 0 {
		return nil
	}
	g := &guard{
		references: cfg.References, reach: reachPublic,
		dial: cfg.DialReference, tell: cfg.Offline, now: now, log: cfg.Log,
		asked: make(chan struct{}, 1),
	}
	if g.dial == nil {
		g.dial = new(net.Dialer).DialContext
	}
	if g.tell == nil {
		g.tell = func(context.Context, bool, time.Time) {}
	}
	for _, reference := range g.references {
		if host, _, err := net.SplitHostPort(reference); err == nil {
			g.reach = min(g.reach, reachOf(host))
		}
	}
	return g
}

// judge returns the result of a check that stands: r, or one that says that this location is offline. started is when its
// probe began. It may wait for a decision; the error says why there is none.
func (g *guard) judge(ctx context.Context, t probe.Target, started time.Time, r probe.Result) (probe.Result, error) {
	if g == nil || whereabouts(t, r) < g.reach {
		return r, nil
	}
	waitFor, excused, err := g.hear(started, r)
	if err != nil {
		return r, err
	}
	if waitFor != nil {
		select {
		case <-waitFor.done:
			excused = waitFor.offline
		case <-time.After(maxHold):
			return r, ErrUndecided
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
	if excused {
		return excuse(r), nil
	}
	return r, nil
}

// hear takes note of a check. It returns the round to wait for, if any, or whether the check is excused at once.
func (g *guard) hear(started time.Time, r probe.Result) (waitFor *round, excused bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	failed := broken(r)
	g.count(failed)
	switch {
	case !failed:
		if g.offline && succeeded(r) && !g.recent.mostFailed() {
			g.comeBackLocked()
		}
		return nil, false, nil
	case g.offline || started.Before(g.back):
		return nil, true, nil
	case g.round == nil && !g.answered.IsZero() && time.Since(g.answered) < answerGood:
		return nil, false, nil
	case g.round == nil:
		g.round = &round{opened: g.now(), done: make(chan struct{})}
		g.round.tally.add(true)
		g.ask()
	case g.round.held >= maxHeld:
		return nil, false, ErrUndecided
	}
	g.round.held++
	return g.round, false, nil
}

// count adds a check to the tallies that are kept.
func (g *guard) count(failed bool) {
	if time.Since(g.recent.began) > decisionWindow {
		g.recent = tally{began: time.Now()}
	}
	g.recent.add(failed)
	if g.round != nil {
		g.round.tally.add(failed)
	}
}

func (g *guard) comeBackLocked() {
	g.offline, g.back = false, time.Now()
	g.ask()
}

func (g *guard) ask() {
	select {
	case g.asked <- struct{}{}:
	default:
	}
}

// start has decisions made until the function it returns is called, which waits for their end.
func (g *guard) start(ctx context.Context) (stop func()) {
	if g == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (g *guard) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.asked:
		}
		for g.decide(ctx) {
			g.sitOut(ctx) // which may hear what was meant for decide
		}
	}
}

// decide ends the round that is open, if any, and reports whether the location went offline by that.
func (g *guard) decide(ctx context.Context) (offline bool) {
	g.mu.Lock()
	r := g.round
	known := !g.silent.IsZero() && time.Since(g.silent) < answerGood
	g.mu.Unlock()
	if r == nil {
		return false
	}
	answers := !known && g.anyAnswers(ctx)
	if !answers {
		sleep(ctx, decisionWindow)
	}
	g.mu.Lock()
	r.offline = !answers && r.tally.mostFailed() && ctx.Err() == nil
	if r.offline {
		g.offline, g.since = true, r.opened
	}
	g.round = nil
	g.mu.Unlock()
	close(r.done)
	if r.offline {
		g.log.Error("this location is offline: checks are unknown until it is back", "since", r.opened)
		g.tell(ctx, true, r.opened)
	}
	return r.offline
}

// sitOut tries the references until one of them answers, or a check succeeded.
func (g *guard) sitOut(ctx context.Context) {
	again := time.NewTicker(retryReferences)
	defer again.Stop()
	for g.isOffline() {
		select {
		case <-ctx.Done():
			return
		case <-g.asked:
			continue
		case <-again.C:
		}
		if g.anyAnswers(ctx) {
			g.comeBack()
		}
	}
	g.mu.Lock()
	since := g.since
	g.mu.Unlock()
	g.log.Info("this location is back", "offline_for", g.now().Sub(since).Round(time.Second))
	g.tell(ctx, false, since)
}

func (g *guard) comeBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.offline {
		g.comeBackLocked()
	}
}

func (g *guard) isOffline() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.offline
}

// anyAnswers reports whether a reference accepts a connection. It dials all of them at once and hangs up.
func (g *guard) anyAnswers(ctx context.Context) bool {
	var dials sync.WaitGroup
	defer dials.Wait()
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	accepted := make(chan bool, len(g.references))
	for _, reference := range g.references {
		dials.Go(func() {
			conn, err := g.dial(ctx, "tcp", reference)
			if err == nil {
				_ = conn.Close() // nothing was said on it
			}
			accepted <- err == nil
		})
	}
	for range g.references {
		if <-accepted {
			g.saw(&g.answered)
			return true
		}
	}
	g.saw(&g.silent)
	return false
}

func (g *guard) saw(when *time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*when = time.Now()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// excuse returns r as a check that says nothing of its endpoint. Its steps stay; a transcript of our own failure is not
// worth keeping.
func excuse(r probe.Result) probe.Result {
	r.Verdict = probe.Unknown
	r.Failure = &probe.Failure{Step: r.Failure.Step, Class: probe.ClassLocationOffline, Message: offlineMessage}
	r.Transcript, r.RetryAfter = nil, 0
	return r
}

// succeeded reports whether a check shows that there is a network. One that is down does not: what answers in place of an
// endpoint may stand between it and us.
func succeeded(r probe.Result) bool {
	return r.Verdict == probe.Up || r.Verdict == probe.Degraded || r.Verdict == probe.Gated
}

// brokenHandshake is what package probe says of a TLS handshake that ended without a word of TLS.
const brokenHandshake = "the server closed the connection during the handshake"

// broken reports whether a check failed in a way that our own network could be the cause of: the name has no address, there
// was no connection, or no byte came over it. Of the failures of TLS it is the handshake that breaks off: a certificate was
// sent by somebody. Of those that are our own already it is those of a request, as without a route or a resolver.
func broken(r probe.Result) bool {
	switch classOf(r) {
	case probe.ClassDNS:
		return true
	case probe.ClassConnect, probe.ClassTimeout:
		return !answeredAtAll(r)
	case probe.ClassTLS:
		return r.Failure.Message == brokenHandshake
	case probe.ClassProbeError:
		return r.Failure.Step != ""
	default:
		return false
	}
}

// answeredAtAll reports whether a byte of an answer came in the step that decided a check.
func answeredAtAll(r probe.Result) bool {
	for _, step := range r.Steps {
		if step.Name == r.Failure.Step && step.Class == r.Failure.Class {
			return step.HTTPStatus != 0 || step.BytesIn > 0 || step.Phases.FirstByte > 0
		}
	}
	return false
}

// reach says how much of a network has to work for an address to be reached.
type reach int

const (
	reachMachine reach = iota // loopback, a unix socket, a command: none
	reachPrivate              // the network around this machine
	reachPublic
)

// sharedSpace is what carriers number their customers from (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// reachOf returns the reach of a host: a name counts as public, as nobody has looked it up.
func reachOf(host string) reach {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	addr, err := netip.ParseAddr(host)
	addr = addr.Unmap()
	switch {
	case err != nil && (host == "localhost" || strings.HasSuffix(host, ".localhost")): // RFC 6761 §6.3
		return reachMachine
	case err != nil:
		return reachPublic
	case addr.IsLoopback() || addr.IsUnspecified():
		return reachMachine
	case addr.IsPrivate() || addr.IsLinkLocalUnicast() || sharedSpace.Contains(addr):
		return reachPrivate
	default:
		return reachPublic
	}
}

// whereabouts returns the reach of an endpoint: of the address that was connected to, or else of its URL.
func whereabouts(t probe.Target, r probe.Result) reach {
	if t.Command != nil {
		return reachMachine
	}
	if host, _, err := net.SplitHostPort(r.Facts.RemoteAddr); err == nil {
		return reachOf(host)
	}
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme == "unix" {
		return reachMachine
	}
	return reachOf(u.Hostname())
}
