package api

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// logins bounds how often somebody may try a password: per address, so that one machine cannot guess, and per name, so
// that many machines together cannot guess one user's. Whoever uses up the budget of a name keeps its owner out only
// where the owner never was before.
type logins struct {
	addrs *buckets
	names *buckets
	codes *buckets // of second factors, by user
	links *buckets // that somebody was sent, by address
	known *visits
	// hashing has one place for each password that is hashed at once: each costs 46 MiB and a core.
	hashing chan struct{}
}

func newLogins() *logins {
	return &logins{
		addrs:   newBuckets(rate.Every(6*time.Second), 10),
		names:   newBuckets(rate.Every(2*time.Second), 50),
		codes:   newBuckets(rate.Every(2*time.Minute), 10),
		links:   newBuckets(rate.Every(6*time.Second), 20),
		known:   &visits{seen: map[login]bool{}},
		hashing: make(chan struct{}, 2),
	}
}

// wait takes an attempt from both budgets and returns zero, or how long to wait before the next. From where a name has
// logged in before, only the budget of the address counts.
func (l *logins) wait(addr, name string) time.Duration {
	if d := l.addrs.take(neighbourhood(addr)); d > 0 {
		return d
	}
	if l.known.has(addr, name) {
		return 0
	}
	return l.names.take(name)
}

// waitForCode takes an attempt at the second factor of a user. Who tries knows the password already, and of a million codes three
// are good at any time: at this pace somebody finds one after more than a year.
func (l *logins) waitForCode(userID string) time.Duration { return l.codes.take(userID) }

// waitForLink takes an attempt at an invitation. Nobody guesses one; a hash of a password is made for each that is good.
func (l *logins) waitForLink(addr string) time.Duration { return l.links.take(neighbourhood(addr)) }

// remember notes that name logged in from addr.
func (l *logins) remember(addr, name string) { l.known.add(addr, name) }

// neighbourhood is what one visitor can choose addresses from: an IPv6 subscriber has a /64 at least.
func neighbourhood(addr string) string {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return addr
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return addr
	}
	return p.String()
}

// visits are from where which names have logged in, at most maxVisits of them. They last until the next start.
type visits struct {
	mu   sync.Mutex
	seen map[login]bool // guarded by mu
}

// login is a name at a neighbourhood of addresses.
type login struct{ from, name string }

// maxVisits is more than one team's people and networks make; only who knows a password makes any.
const maxVisits = 1000

func (v *visits) has(addr, name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[login{neighbourhood(addr), name}]
}

// add notes a login. Where there is no room, another one at random makes some: it is noted again when it comes back.
func (v *visits) add(addr, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := login{neighbourhood(addr), name}
	if len(v.seen) >= maxVisits && !v.seen[l] {
		for other := range v.seen {
			delete(v.seen, other)
			break
		}
	}
	v.seen[l] = true
}

// buckets are token buckets by key, at most maxBuckets of them.
type buckets struct {
	every rate.Limit
	burst int

	mu    sync.Mutex
	byKey map[string]*rate.Limiter // guarded by mu
}

// maxBuckets bounds the memory that strangers can make us spend, at about 1 MiB.
const maxBuckets = 10_000

func newBuckets(every rate.Limit, burst int) *buckets {
	return &buckets{every: every, burst: burst, byKey: map[string]*rate.Limiter{}}
}

// take takes one token and returns zero, or the time until there is one.
func (b *buckets) take(key string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	l := b.byKey[key]
	if l == nil {
		b.makeRoomLocked(now)
		l = rate.NewLimiter(b.every, b.burst)
		b.byKey[key] = l
	}
	r := l.ReserveN(now, 1)
	d := r.DelayFrom(now)
	if d > 0 {
		r.CancelAt(now) // a refused attempt costs nothing more
	}
	return d
}

// makeRoomLocked forgets buckets that have filled up again, and others at random where those are too few: forgetting
// gives somebody a fresh budget, growing without bound gives everybody an outage. It makes room for many at once, so
// that a flood of strangers does not walk through all of them for each.
func (b *buckets) makeRoomLocked(now time.Time) {
	if len(b.byKey) < maxBuckets {
		return
	}
	for key, l := range b.byKey {
		if l.TokensAt(now) >= float64(b.burst) {
			delete(b.byKey, key)
		}
	}
	for key := range b.byKey {
		if len(b.byKey) <= maxBuckets*9/10 {
			return
		}
		delete(b.byKey, key)
	}
}
