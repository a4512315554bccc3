package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// Badges are asked for far more often than what they say changes, so they are served from memory. Nobody reads ahead: while
// nobody asks, nothing is read.
//
//	request ─ picture drawn, and what it shows fresh? ─► answered (badge_pictures.go)
//	             │ no
//	          facts: younger than badgeFresh ─────────► drawn anew
//	             │   younger than badgeStale ─────────► drawn anew; one such request reads first, the others do not wait for it
//	             │   older, or never read ────────────► waits for a reading
//	             ▼
//	          read: everything that was asked for lately and is not fresh, in as many queries as there are kinds of facts and
//	                windows, however many badges there are
//
// So what a badge shows is at most badgeStale old while the database answers. That holds for what turns private as well; what is
// changed or checked by way of this server is forgotten at once. While the database is away, what was last read is shown for
// badgeKept, which is no longer than caches may show a badge anyway (see badgeCache); then badges say "unknown".
const (
	badgeFresh = 5 * time.Second
	badgeStale = 15 * time.Second
	badgeKept  = 5 * time.Minute
)

// How the memory reads: what nobody asked for in the last badgeWanted is forgotten, a reading takes badgePatience at most, and
// after one that failed the database is left alone for badgeRest.
const (
	badgeWanted   = 2 * time.Minute
	badgePatience = 5 * time.Second
	badgeRest     = 2 * time.Second
	badgeScan     = time.Second // everything is looked through no more often, however many strange slugs are asked for
)

// Bounds of what is remembered: strangers may ask for badges of whatever they like. Slugs are shorter than maxBadgeSlug.
const (
	maxKnown     = 10_000
	maxBadgeSlug = 80
)

// matter is what kind of facts a badge shows.
type matter int

const (
	matterState matter = iota // status, and what the latest check said
	matterUptime
	matterLatency
	matterObjective
)

// badgeAsk is what has to be known for a badge.
type badgeAsk struct {
	slug   string
	matter matter
	which  string // the window; of latencies, the window and the quantile; the name of the objective, empty for the first
}

// badgeFacts are the answer. The zero value is that of an endpoint that is not public, or not there: of these nothing at all is
// remembered.
type badgeFacts struct {
	public bool

	status    store.Status
	protocol  string
	tools     int // below zero: it has none to count
	height    uint64
	hasHeight bool

	measured bool // whether there is a value
	value    float64

	objective *ObjectiveState
	untold    bool // it could not be told this time
}

// badgeMemo is what is remembered for one ask. Times are in nanoseconds of the memory's clock.
type badgeMemo struct {
	ask     badgeAsk
	facts   atomic.Pointer[badgeFacts] // nil: never read
	edition atomic.Uint64              // grows when facts change, before they do
	freshTo atomic.Int64               // until when pictures of it are shown without a question
	askedAt atomic.Int64

	// Guarded by the memory's mu.
	readAt int64 // when the reading began that facts are of
	forgot int64 // when the endpoint was last changed: what was read before is not the truth
}

// badgeMemory remembers what badges show of those public endpoints that somebody has badges of.
type badgeMemory struct {
	read       reader
	objectives func(context.Context, store.Endpoint) ([]ObjectiveState, error)
	log        *slog.Logger
	started    time.Time
	reading    chan struct{} // holds one while somebody reads

	mu        sync.Mutex
	known     map[badgeAsk]*badgeMemo // guarded by mu
	unread    []*badgeMemo            // guarded by mu: never read, or forgotten since
	scannedAt int64                   // guarded by mu: when all of known was last looked through
	restUntil int64                   // guarded by mu
}

func newBadgeMemory(read reader, objectives func(context.Context, store.Endpoint) ([]ObjectiveState, error), log *slog.Logger) *badgeMemory {
	return &badgeMemory{
		read: read, objectives: objectives, log: log, started: time.Now(),
		reading: make(chan struct{}, 1), known: map[badgeAsk]*badgeMemo{},
	}
}

// rememberBadges starts the memory of badges, and has it forget what this server changes or checks.
func (s *Server) rememberBadges() {
	s.badges, s.pictures = newBadgeMemory(s.read, s.objectives, s.cfg.Log), newPictures()
	changed, checkNow := s.cfg.Changed, s.cfg.CheckNow
	s.cfg.Changed = func(ctx context.Context, id, slug string) {
		s.badges.forget(slug)
		changed(ctx, id, slug)
	}
	s.cfg.CheckNow = func(ctx context.Context, slug string) (store.Check, error) {
		check, err := checkNow(ctx, slug)
		s.badges.forget(slug)
		return check, err
	}
}

// at is the time on the memory's clock, which never stands at zero and is not set back.
func (m *badgeMemory) at(t time.Time) int64 { return int64(t.Sub(m.started)) + 1 }

func (m *badgeMemory) now() int64 { return m.at(time.Now()) }

var errBadgeAway = errors.New("what badges show could not be read")

// facts returns the facts that are asked for, and what they are remembered as, with the edition that they are at least of; nil
// where there cannot be an endpoint. An error means that they could not be read for longer than they are shown.
func (m *badgeMemory) facts(ctx context.Context, ask badgeAsk) (badgeFacts, *badgeMemo, uint64, error) {
	if !isSlug(ask.slug) {
		return badgeFacts{}, nil, 0, nil
	}
	k := m.remember(ask)
	switch age := m.age(k); {
	case age < badgeFresh:
	case age < badgeStale:
		select {
		case m.reading <- struct{}{}:
			m.refresh(ctx, k)
			<-m.reading
		default: // somebody reads already
		}
	default:
		select {
		case m.reading <- struct{}{}:
			// Whoever read before may have read this as well, and what was changed meanwhile is read once more.
			for range 2 {
				if m.age(k) >= badgeFresh {
					m.refresh(ctx, k)
				}
			}
			<-m.reading
		case <-ctx.Done():
		}
	}
	edition, f := k.edition.Load(), k.facts.Load()
	if f == nil || m.age(k) >= badgeKept {
		return badgeFacts{}, nil, 0, errBadgeAway
	}
	return *f, k, edition, nil
}

// isSlug reports whether an endpoint could have this slug.
func isSlug(slug string) bool {
	return slug != "" && len(slug) <= maxBadgeSlug && strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// age is how long ago the reading began that k is of; longer than anything when there was none.
func (m *badgeMemory) age(k *badgeMemo) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ageLocked(k, m.now())
}

func (m *badgeMemory) ageLocked(k *badgeMemo, now int64) time.Duration {
	if k.facts.Load() == nil || k.readAt <= k.forgot {
		return badgeKept + badgeStale
	}
	return time.Duration(now - k.readAt)
}

// remember returns what is remembered for an ask, and notes that it was asked for.
func (m *badgeMemory) remember(ask badgeAsk) *badgeMemo {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.known[ask]
	if k == nil {
		if len(m.known) >= maxKnown {
			m.makeRoomLocked()
		}
		k = &badgeMemo{ask: ask}
		m.known[ask] = k
		m.unread = append(m.unread, k)
	}
	k.askedAt.Store(m.now())
	return k
}

// makeRoomLocked forgets half of everything: first what is not public, then what nobody has asked for the longest.
func (m *badgeMemory) makeRoomLocked() {
	shown := func(k *badgeMemo) int {
		if f := k.facts.Load(); f != nil && f.public {
			return 1
		}
		return 0
	}
	all := slices.SortedFunc(maps.Values(m.known), func(a, b *badgeMemo) int {
		return cmp.Or(cmp.Compare(shown(a), shown(b)), cmp.Compare(a.askedAt.Load(), b.askedAt.Load()))
	})
	for _, k := range all[:len(all)/2] {
		m.dropLocked(k)
	}
	m.unread = slices.DeleteFunc(m.unread, func(k *badgeMemo) bool { return m.known[k.ask] != k })
}

// dropLocked forgets k. A picture of it that is kept is not shown any longer.
func (m *badgeMemory) dropLocked(k *badgeMemo) {
	k.freshTo.Store(0)
	k.edition.Add(1)
	delete(m.known, k.ask)
}

// forget has everything about an endpoint read again before it is shown, because it was just changed or checked.
func (m *badgeMemory) forget(slug string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, k := range m.known {
		if k.ask.slug == slug {
			k.forgot = now
			k.freshTo.Store(0)
			k.edition.Add(1)
			if !slices.Contains(m.unread, k) {
				m.unread = append(m.unread, k)
			}
		}
	}
}

// refresh reads what is due, wanted among it. One goroutine at a time calls it. Others hang on its answer, so it does not end
// with the request that it is part of.
func (m *badgeMemory) refresh(ctx context.Context, wanted *badgeMemo) {
	now := m.now()
	due := m.due(now, wanted)
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), badgePatience)
	defer cancel()
	r := badgeReading{memory: m, at: now, facts: map[badgeAsk]badgeFacts{}}
	err := r.run(ctx, due)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range due {
		if f, read := r.facts[k.ask]; read && k.forgot < now {
			k.set(f, now)
		}
	}
	if err != nil {
		m.restUntil = m.now() + int64(badgeRest)
		m.log.WarnContext(ctx, "badges cannot be read", "error", err)
	}
}

// due returns what was asked for lately and is not fresh, nothing while the database is left alone.
func (m *badgeMemory) due(now int64, wanted *badgeMemo) []*badgeMemo {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now < m.restUntil {
		return nil
	}
	due := m.unread
	m.unread = nil
	if now-m.scannedAt >= int64(badgeScan) || m.scannedAt == 0 {
		m.scannedAt = now
		due = m.scanLocked(now)
	}
	if !slices.Contains(due, wanted) {
		due = append(due, wanted)
	}
	return due
}

// scanLocked looks through everything for what is due, and forgets what nobody wants. Pictures of what is due are shown while it
// is read, for as long as they may be.
func (m *badgeMemory) scanLocked(now int64) (due []*badgeMemo) {
	for _, k := range m.known {
		age := m.ageLocked(k, now)
		switch {
		case now-k.askedAt.Load() > int64(badgeWanted):
			m.dropLocked(k)
		case age >= badgeFresh:
			due = append(due, k)
			if age < badgeStale {
				k.freshTo.Store(min(k.readAt+int64(badgeStale), now+int64(badgePatience)))
			}
		}
	}
	return due
}

// set remembers what was read at a time.
func (k *badgeMemo) set(f badgeFacts, at int64) {
	old := k.facts.Load()
	if f.untold && old != nil && old.public {
		f = *old
	}
	if old == nil || !reflect.DeepEqual(*old, f) {
		k.edition.Add(1)
		k.facts.Store(&f)
	}
	k.readAt = at
	k.freshTo.Store(at + int64(badgeFresh))
}

// badgeReading reads the facts of many badges together. What could not be read is missing in facts.
type badgeReading struct {
	memory *badgeMemory
	at     int64
	facts  map[badgeAsk]badgeFacts
}

func (r *badgeReading) run(ctx context.Context, due []*badgeMemo) error {
	slugs := map[string]bool{}
	for _, k := range due {
		slugs[k.ask.slug] = true
	}
	page, err := r.memory.read.Endpoints(ctx, store.EndpointFilter{
		PublicOnly: true, Slugs: slices.Collect(maps.Keys(slugs)), Limit: -1,
	})
	if err != nil {
		return err
	}
	overviews := make(map[string]store.Overview, len(page.Items))
	for _, o := range page.Items {
		overviews[o.Slug] = o
	}
	parts := map[badgePart][]badgeMember{}
	for _, k := range due {
		o, found := overviews[k.ask.slug]
		if !found || !o.Public {
			r.facts[k.ask] = badgeFacts{}
			continue
		}
		name, quantile, _ := strings.Cut(k.ask.which, " ")
		part := badgePart{k.ask.matter, ""}
		if part.matter == matterUptime || part.matter == matterLatency {
			part.window = name
		}
		parts[part] = append(parts[part], badgeMember{k.ask, o, quantile})
	}
	var errs []error
	for part, members := range parts {
		errs = append(errs, r.part(ctx, part, members))
	}
	return errors.Join(errs...)
}

// badgePart is what can be read together.
type badgePart struct {
	matter matter
	window string
}

// badgeMember is one ask of a part, about a public endpoint.
type badgeMember struct {
	ask      badgeAsk
	overview store.Overview
	quantile string
}

func (r *badgeReading) part(ctx context.Context, p badgePart, members []badgeMember) error {
	var ids []string
	for _, m := range members {
		ids = append(ids, m.overview.ID)
	}
	w, _ := windowOf(p.window)
	switch p.matter {
	case matterUptime:
		counts, err := r.memory.read.Counts(ctx, ids, w.grain, w.from(time.Now()))
		if err != nil {
			return err
		}
		for _, m := range members {
			percent, measured := counts[m.overview.ID].Uptime()
			r.facts[m.ask] = badgeFacts{public: true, measured: measured, value: floor3(percent)}
		}
	case matterLatency:
		latencies, err := r.memory.read.Latencies(ctx, ids, w.grain, w.from(time.Now()))
		if err != nil {
			return err
		}
		for _, m := range members {
			q := quantiles(latencies[m.overview.ID], "")
			f := badgeFacts{public: true, measured: q != nil}
			if q != nil {
				f.value = q.named(m.quantile)
			}
			r.facts[m.ask] = f
		}
	case matterObjective:
		r.fares(ctx, members)
	default:
		for _, m := range members {
			r.facts[m.ask] = stateFacts(m.overview)
		}
	}
	return nil
}

// fares asks how endpoints fare against their objectives. One that cannot be told says what it said before, if anything, and is
// no matter of the others.
func (r *badgeReading) fares(ctx context.Context, members []badgeMember) {
	for _, m := range members {
		name, o := m.ask.which, m.overview
		at := slices.IndexFunc(o.Objectives, func(o store.Objective) bool { return name == "" || o.Name == name })
		if at < 0 {
			r.facts[m.ask] = badgeFacts{} // as one that is hidden
			continue
		}
		e := o.Endpoint
		e.Objectives = o.Objectives[at : at+1] // the others need not be worked out
		states, err := r.memory.objectives(ctx, e)
		if err != nil {
			r.memory.log.WarnContext(ctx, "objective of a badge cannot be told", "endpoint", e.Slug, "error", err)
		}
		f := badgeFacts{public: true, untold: err != nil}
		if len(states) > 0 {
			f.objective = &states[0]
		}
		r.facts[m.ask] = f
	}
}

// stateFacts returns what is remembered of how a public endpoint stands: nothing that says where it is, how it is asked, or why
// it failed.
func stateFacts(o store.Overview) badgeFacts {
	f := badgeFacts{public: true, status: o.Status(), tools: -1}
	if o.State.Height != nil {
		f.height, f.hasHeight = *o.State.Height, true
	}
	if o.LastCheck == nil {
		return f
	}
	seen := o.LastCheck.Result
	f.protocol = protocolText(o.Target(o.State).Kind, seen.Facts, seen.Verdict)
	if seen.Facts.Tools != nil {
		f.tools = *seen.Facts.Tools
	}
	return f
}

// quantileNames are the quantiles that are told of latencies, the usual one first.
var quantileNames = []string{"p50", "p90", "p95", "p99"}

// named returns the quantile of a name, the first of quantileNames for any other.
func (q Quantiles) named(name string) float64 {
	switch name {
	case "p90":
		return q.P90
	case "p95":
		return q.P95
	case "p99":
		return q.P99
	}
	return q.P50
}
