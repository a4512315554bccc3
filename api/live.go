package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// Pages that stand open hear by server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) that
// something they show has changed, and ask for it.
//
//	viewer ─► every second: live.look ─► the database, at most once a second for all viewers together
//	       ├─ may it still listen? ─► the end
//	       └─ what it watches has changed? ─► one event
//
// There is no goroutine but those of the requests: whoever looks first looks for all. A login that ends through this instance ends
// its streams before whoever ended it is answered: see attentive. Through another one it is seen by the next look.

// Where the streams are. A slug has no dot.
const (
	eventsPath       = "/events"
	publicEventsPath = "/status/feed.events"
	siteEventsPath   = "/p/:slug/feed.events"
)

// Bounds of the streams. One ends by itself after liveFor, so that nobody is served for ever; the browser comes back by itself.
const (
	liveEvery    = time.Second
	liveFor      = 5 * time.Minute
	liveBreath   = 20 * time.Second // after so long without an event, something is sent that keeps proxies from hanging up
	livePatience = 5 * time.Second  // for a reader to take an event; a slower one is dropped, and comes back
	liveTimeout  = 3 * time.Second  // for the database
	maxViewers   = 10_000
	maxPerViewer = 100 // endpoints
	maxPerSource = 30  // public streams from one address

	maxWatchedSlug = 100 // bytes

	// liveSlack is how long a check takes as a rule: one that began so long before a page was made may have ended after.
	liveSlack = 2 * time.Second
)

// live is what all viewers look at.
type live struct {
	over   chan struct{} // closed when this service stops
	logins func(ctx context.Context, hashes [][]byte, now time.Time) ([]store.Login, error)

	mu       sync.Mutex
	stopped  bool
	guests   map[*guest]bool
	viewers  int
	sources  map[string]int // public viewers by address
	watched  map[string]int // viewers by slug
	looking  bool
	lookedAt time.Time
	turn     uint64            // raised with each look that found a change
	seen     map[string]signal // by slug
	entry    string
	entryAt  uint64 // the turn in which another entry was found
	newsAt   uint64 // the turn in which another entry or status was found
}

// signal is what was last seen of an endpoint, and in which turns it changed.
type signal struct {
	sighting          store.Sighting
	statusAt, checkAt uint64
	known             bool
}

// guest is a viewer who is served for a login, for as long as that is good.
type guest struct {
	login []byte        // hash of the session or token
	out   chan struct{} // closed when that is good no more
}

// newLive returns what asks a database, as store.Store.Logins does, which logins are good.
func newLive(logins func(ctx context.Context, hashes [][]byte, now time.Time) ([]store.Login, error)) *live {
	return &live{
		over: make(chan struct{}), logins: logins, guests: map[*guest]bool{}, sources: map[string]int{}, watched: map[string]int{},
		seen: map[string]signal{},
	}
}

// change is what an event says.
type change struct {
	Status    bool `json:"status"`    // the status of an endpoint that is watched is another
	Checks    bool `json:"checks"`    // one was checked
	Incidents bool `json:"incidents"` // some incident began, changed or ended
}

// EndStreams ends all streams of events: they would keep the server from shutting down. None begins afterwards.
func (s *Server) EndStreams() {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if !s.live.stopped {
		s.live.stopped = true
		close(s.live.over)
	}
}

// liveEvents tells whoever is logged in of the endpoints in the query, as ?e=slug&e=slug.
func (s *Server) liveEvents(c echo.Context) error {
	v := watcher{outlook: func(context.Context) (func(store.Endpoint) bool, bool) {
		return func(store.Endpoint) bool { return true }, true
	}}
	if hash := loginOf(c); hash != nil {
		g := s.live.admit(hash)
		defer s.live.dismiss(g)
		v.out = g.out
	}
	return s.stream(c, v, func(string) bool { return true })
}

// publicEvents tells anybody of the endpoints in the query that the status page shows which the request is about: their status,
// and what is told there of incidents.
func (s *Server) publicEvents(c echo.Context) error {
	p, _, err := s.shownOn(c)
	if err != nil {
		return err
	}
	v := watcher{public: true, outlook: s.outlookOf(c), heard: newsOf(p)}
	v.news = func() (news, error) {
		again(c)
		defer unhurried(c)
		p, _, err := s.shownOn(c)
		return newsOf(p), err
	}
	return s.stream(c, v, func(slug string) bool { // names that a stranger makes up take nobody's room
		return slices.ContainsFunc(p.endpoints, func(o store.Overview) bool { return o.Slug == slug })
	})
}

// news is what strangers are told of incidents at a time.
type news struct {
	sum    uint64    // another one: something else is told
	latest time.Time // when the latest of it happened
	read   time.Time
}

func newsOf(p publicStatus) news {
	n, h := news{read: p.now}, fnv.New64a()
	for _, i := range p.incidents {
		at := p.changed(i)
		fmt.Fprintf(h, "%s %s %q %d\n", i.ID, i.Severity, i.Title, at.UnixMicro())
		if at.After(n.latest) {
			n.latest = at
		}
	}
	n.sum = h.Sum64()
	return n
}

// outlook says at any time of which endpoints a viewer is told; false when the viewer may listen no more.
type outlook func(ctx context.Context) (shows func(store.Endpoint) bool, ok bool)

// outlookOf returns what strangers are told of on the status page that a request is about.
func (s *Server) outlookOf(c echo.Context) outlook {
	v := s.siteOf(c)
	if v.page == nil {
		return func(context.Context) (func(store.Endpoint) bool, bool) {
			return func(e store.Endpoint) bool { return e.Public }, true
		}
	}
	return func(ctx context.Context) (func(store.Endpoint) bool, bool) {
		all, err := s.sites.read(ctx, s.cfg.Store)
		if err != nil {
			return nil, false
		}
		page := all.bySlug[v.page.Slug]
		if page == nil || !page.Public() && !s.admitted(c, page) { // it is gone, or has another password
			return nil, false
		}
		v.page = page
		c.Set(keySite, v)
		return page.Shows, true
	}
}

// stream serves a viewer who is told of those endpoints in the query that are known.
func (s *Server) stream(c echo.Context, v watcher, known func(slug string) bool) error {
	slugs := slices.Compact(slices.Sorted(slices.Values(c.QueryParams()["e"])))
	slugs = slices.DeleteFunc(slugs, func(slug string) bool {
		return slug == "" || len(slug) > maxWatchedSlug || !isText(slug) || !known(slug)
	})
	if len(slugs) > maxPerViewer {
		slugs = slugs[:maxPerViewer]
	}
	source := ""
	if v.public {
		source = c.RealIP()
	}
	if err := s.live.enter(source, slugs); err != nil {
		return err
	}
	defer s.live.leave(source, slugs)
	unhurried(c)
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers answers would hold events back
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	v.control, v.w, v.slugs, v.shown = http.NewResponseController(c.Response()), c.Response(), slugs, shownAt(c.QueryParam("at"))
	return v.watch(c.Request().Context(), s.live, s.read)
}

// loginOf returns the hash of the token or the session by which somebody asks; nil for the token of the settings, which is good for
// as long as the service runs.
func loginOf(c echo.Context) []byte {
	if by, ok := c.Get(keyToken).(bearing); ok {
		return by.Hash
	}
	return currentSession(c)
}

// shownAt reads when the page that asks was made, in milliseconds since 1970: what was checked later is news to it.
func shownAt(text string) time.Time {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Now()
	}
	return time.UnixMilli(ms)
}

// enter counts a viewer in.
func (l *live) enter(source string, slugs []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped, l.viewers >= maxViewers:
		return fault(http.StatusServiceUnavailable, "Too many viewers", "Too many pages are open. Reload the page to see what is new.")
	case source != "" && l.sources[source] >= maxPerSource:
		return fault(http.StatusTooManyRequests, "Too many streams", "Too many pages are open at this address. Reload the page to see what is new.")
	case len(l.watched)+len(slugs) > store.MaxSightings:
		return fault(http.StatusServiceUnavailable, "Too many viewers", "Too many endpoints are being watched. Reload the page to see what is new.")
	}
	l.viewers++
	if source != "" {
		l.sources[source]++
	}
	for _, slug := range slugs {
		l.watched[slug]++
	}
	return nil
}

func (l *live) leave(source string, slugs []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.viewers--
	if source != "" {
		countDown(l.sources, source)
	}
	for _, slug := range slugs {
		if countDown(l.watched, slug) == 0 {
			delete(l.seen, slug)
		}
	}
}

func countDown(counts map[string]int, key string) int {
	counts[key]--
	n := counts[key]
	if n == 0 {
		delete(counts, key)
	}
	return n
}

// admit serves a viewer for a login.
func (l *live) admit(hash []byte) *guest {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := &guest{hash, make(chan struct{})}
	l.guests[g] = true
	return g
}

func (l *live) dismiss(g *guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.guests, g)
}

// expel ends the streams of whoever may listen no more. While the database is away, nobody is known not to.
func (l *live) expel(ctx context.Context) {
	guests := l.present()
	if len(guests) == 0 {
		return
	}
	var hashes [][]byte
	for _, g := range guests {
		hashes = append(hashes, g.login)
	}
	slices.SortFunc(hashes, bytes.Compare)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liveTimeout)
	defer cancel()
	found, err := l.logins(ctx, slices.CompactFunc(hashes, bytes.Equal), time.Now())
	if err != nil {
		return
	}
	may := map[string]bool{}
	for _, login := range found {
		may[string(login.Hash)] = login.Role.May(store.RoleViewer)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range guests {
		if l.guests[g] && !may[string(g.login)] {
			delete(l.guests, g)
			close(g.out)
		}
	}
}

// present returns all guests.
func (l *live) present() []*guest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.guests))
}

// look looks at everything that is watched, unless somebody has just done so or is about to.
func (l *live) look(ctx context.Context, r reader) {
	l.mu.Lock()
	if l.looking || time.Since(l.lookedAt) < liveEvery*9/10 {
		l.mu.Unlock()
		return
	}
	l.looking = true
	slugs := make([]string, 0, len(l.watched))
	for slug := range l.watched {
		slugs = append(slugs, slug)
	}
	l.mu.Unlock()

	// Others wait for what this viewer finds: that it leaves must not take it from them.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liveTimeout)
	defer cancel()
	sight, err := r.Sight(ctx, slugs)
	l.expel(ctx)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.looking, l.lookedAt = false, time.Now()
	if err == nil { // while the database is away, nothing is new
		l.note(sight)
	}
}

func (l *live) note(sight store.Sight) {
	l.turn++
	if sight.LastEntry != l.entry {
		l.entry, l.entryAt, l.newsAt = sight.LastEntry, l.turn, l.turn
	}
	for _, now := range sight.Sightings {
		if l.watched[now.Slug] == 0 {
			continue // nobody looks any more
		}
		before := l.seen[now.Slug]
		s := signal{now, before.statusAt, before.checkAt, true}
		if !before.known || before.sighting.Status != now.Status || !before.sighting.Since.Equal(now.Since) {
			s.statusAt, l.newsAt = l.turn, l.turn
		}
		if !before.known || !before.sighting.CheckedAt.Equal(now.CheckedAt) {
			s.checkAt = l.turn
		}
		l.seen[now.Slug] = s
	}
}

// news names the latest change that a viewer was told of.
func (l *live) news() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newsAt
}

// since returns what has changed of those endpoints after a turn that are shown, and of any incident, and the present turn. A
// stranger hears of their status only, and of incidents not before it is known that they are shown: see watcher.toldAnew.
func (l *live) since(turn uint64, slugs []string, public bool, shows func(store.Endpoint) bool) (change, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c change
	for _, slug := range slugs {
		s := l.seen[slug]
		if max(s.statusAt, s.checkAt) <= turn || !shows(s.sighting.Endpoint()) {
			continue
		}
		c.Status = c.Status || s.statusAt > turn
		c.Checks = c.Checks || s.checkAt > turn && !public
	}
	c.Incidents = l.entryAt > turn
	return c, l.turn
}

// after returns what may be news to a page that was made at some time: an endpoint that it shows and that was checked since.
func (l *live) after(shown time.Time, slugs []string, public bool, shows func(store.Endpoint) bool) change {
	l.mu.Lock()
	defer l.mu.Unlock()
	checked := slices.ContainsFunc(slugs, func(slug string) bool {
		s := l.seen[slug].sighting
		return s.CheckedAt.After(shown.Add(-liveSlack)) && shows(s.Endpoint())
	})
	return change{Status: checked, Checks: checked && !public}
}

// watcher is one stream.
type watcher struct {
	control *http.ResponseController
	w       http.ResponseWriter
	public  bool
	out     <-chan struct{} // closed when the login of the viewer is good no more; nil: there is none to end
	outlook outlook
	slugs   []string
	shown   time.Time
	// Of a stranger: what is told of incidents, what was told of them last, and since when that may be another thing; zero where
	// it is not.
	news  func() (news, error)
	heard news
	doubt time.Time
}

// watch sends events until the viewer leaves, may listen no more, is too slow, or has been served for long enough.
func (v *watcher) watch(ctx context.Context, l *live, r reader) error {
	if !v.send("retry: 3000\n\n") {
		return nil
	}
	var turn uint64
	first := true
	end, tick := time.NewTimer(liveFor), time.NewTicker(liveEvery)
	defer end.Stop()
	defer tick.Stop()
	quiet := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.over:
			return nil
		case <-v.out:
			return nil
		case <-end.C:
			return nil
		case <-tick.C:
		}
		l.look(ctx, r)
		shows, ok := v.outlook(ctx)
		if !ok || v.expelled() {
			return nil
		}
		var c change
		c, turn = l.since(turn, v.slugs, v.public, shows)
		told := v.public && v.toldAnew(c.Incidents)
		if first {
			c, first = l.after(v.shown, v.slugs, v.public, shows), false
			told = told || v.heard.latest.After(v.shown.Add(-liveSlack)) // the page is older than what was heard first
		}
		if v.public {
			c.Incidents = told
		}
		quiet += liveEvery
		switch {
		case c != change{}:
			if !v.event(c) {
				return nil
			}
			quiet = 0
		case quiet >= liveBreath:
			if !v.send(": still here\n\n") {
				return nil
			}
			quiet = 0
		}
	}
}

// toldAnew reports whether strangers are told something else of incidents than this one has heard, once some incident has changed:
// what is kept of the page may be older than that, and is looked at again then.
func (v *watcher) toldAnew(changed bool) bool {
	if changed {
		v.doubt = time.Now()
	}
	if v.doubt.IsZero() {
		return false
	}
	n, err := v.news()
	if err != nil || !n.read.After(v.doubt) {
		return false
	}
	anew := n.sum != v.heard.sum
	v.heard, v.doubt = n, time.Time{}
	return anew
}

func (v *watcher) expelled() bool {
	select {
	case <-v.out:
		return true
	default:
		return false
	}
}

func (v *watcher) event(c change) bool {
	data, err := json.Marshal(c)
	return err == nil && v.send(fmt.Sprintf("event: change\ndata: %s\n\n", data))
}

// send writes to the viewer, and reports whether it has taken what was written.
func (v *watcher) send(text string) bool {
	if err := v.control.SetWriteDeadline(time.Now().Add(livePatience)); err != nil {
		return false
	}
	if _, err := v.w.Write([]byte(text)); err != nil {
		return false
	}
	return v.control.Flush() == nil
}
