package api

import (
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// picture is a badge as it was answered, kept to be answered again.
type picture struct {
	contentType string
	body        []byte
	known       *badgeMemo // what it shows, in which edition; nil when it must not be kept
	edition     uint64

	header  []headerLine // of an answer with the body
	without []headerLine // of a 304
	length  []string
	etag    string
	watch   *badgeWatch // of its route
}

type headerLine struct {
	name   string
	values []string
}

// badgeWatch counts the answers of a route that are given by a picture: with a body and 304, to GET and HEAD. Counters are made with
// the first answer, so that none is shown for what never happened.
type badgeWatch struct {
	route     string
	observers [4]atomic.Pointer[prometheus.Observer]
}

// pictureKey is what a picture was asked for by: its path and its whole query.
type pictureKey struct{ path, query string }

const requestIDHeader = "X-Request-Id"

// countedBody is how long a body net/http counts before it sends the headers, in bytes.
const countedBody = 2048

// Bounds of what is kept: two generations of maxPictures each, a query and a body of at most so many bytes. A picture takes
// about 2 KiB.
const (
	maxPictures     = 2000
	maxPictureQuery = 256
)

// pictures keeps the badges that were asked for last. When the newer generation is full it becomes the older one, and what
// nobody asks for while a generation fills goes with that: as good as a list by last use, without a lock for writing on the way
// of those who read.
type pictures struct {
	mu           sync.RWMutex
	newer, older map[pictureKey]*picture // guarded by mu
	watches      map[string]*badgeWatch  // guarded by mu: by route
}

func newPictures() *pictures {
	return &pictures{newer: map[pictureKey]*picture{}, older: map[pictureKey]*picture{}, watches: map[string]*badgeWatch{}}
}

// find returns the picture that was asked for in the same words, and shows what is still fresh; nil when there is none.
func (p *pictures) find(key pictureKey, now int64) *picture {
	p.mu.RLock()
	found, old := p.newer[key], false
	if found == nil {
		found = p.older[key]
		old = found != nil
	}
	p.mu.RUnlock()
	if found == nil || found.known.edition.Load() != found.edition || now >= found.known.freshTo.Load() {
		return nil
	}
	if old {
		p.put(key, found)
	}
	return found
}

func (p *pictures) put(key pictureKey, one *picture) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.newer) >= maxPictures {
		p.newer, p.older = make(map[pictureKey]*picture, maxPictures), p.newer
	}
	p.newer[key] = one
	delete(p.older, key)
}

// watchOf returns what counts the answers of a route.
func (p *pictures) watchOf(route string) *badgeWatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[route]
	if w == nil {
		w = &badgeWatch{route: route}
		p.watches[route] = w
	}
	return w
}

// keep keeps the answer that was just given, with its headers.
func (p *pictures) keep(c echo.Context, one picture) {
	u := c.Request().URL
	if one.known == nil || u.RawPath != "" || len(u.Path) > maxPictureQuery || len(u.RawQuery) > maxPictureQuery {
		return
	}
	h := c.Response().Header()
	one.etag = h.Get("ETag")
	for name, values := range h {
		if name == requestIDHeader || name == "Content-Type" || name == "Content-Length" {
			continue
		}
		one.without = append(one.without, headerLine{name, slices.Clip(slices.Clone(values))})
	}
	one.header = append(slices.Clone(one.without), headerLine{"Content-Type", []string{one.contentType}})
	one.length = []string{strconv.Itoa(len(one.body))}
	one.watch = p.watchOf(c.Path())
	p.put(pictureKey{u.Path, u.RawQuery}, &one)
}

// serve answers what is asked. A badge that is drawn already, and fresh, goes out in front of everything else, with the same
// headers and counted in the same way: what stands around handlers costs several times what this does, and badges are what
// strangers ask for most. Whatever is out of the ordinary takes the long way: other methods, bodies, escaped paths, and all of
// it while requests are logged.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/badge/") && r.URL.RawPath == "" && r.ContentLength == 0 &&
		(r.Method == http.MethodGet || r.Method == http.MethodHead) {
		start := time.Now()
		p := s.pictures.find(pictureKey{r.URL.Path, r.URL.RawQuery}, s.badges.at(start))
		if p != nil && !s.cfg.Log.Enabled(r.Context(), slog.LevelDebug) {
			s.show(w, r, p, start)
			return
		}
	}
	s.echo.ServeHTTP(w, r)
}

// show answers with a picture.
func (s *Server) show(w http.ResponseWriter, r *http.Request, p *picture, start time.Time) {
	if now := s.badges.at(start); now-p.known.askedAt.Load() > int64(time.Second) {
		p.known.askedAt.Store(now)
	}
	h := w.Header()
	h[requestIDHeader] = []string{newRequestID()}
	status, lines, counted := http.StatusOK, p.header, 0
	if known := r.Header["If-None-Match"]; len(known) > 0 && knows(known, p.etag) {
		status, lines, counted = http.StatusNotModified, p.without, 1
	}
	for _, line := range lines {
		h[line.name] = line.values
	}
	// net/http counts small bodies by itself, and a map of more than eight headers costs as much as all the rest.
	if status == http.StatusOK && (len(p.body) > countedBody || r.Method == http.MethodHead) {
		h["Content-Length"] = p.length
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		counted += 2
	} else if status == http.StatusOK {
		_, _ = w.Write(p.body) // the reader has gone: nobody is left to tell
	}
	p.watch.observe(s.metrics, r.Method, status, counted, time.Since(start))
}

// observe counts an answer, the n-th of the four sorts there are.
func (w *badgeWatch) observe(m *metrics, method string, status, n int, took time.Duration) {
	o := w.observers[n].Load()
	if o == nil {
		o = new(m.requests.WithLabelValues(w.route, method, strconv.Itoa(status)))
		w.observers[n].Store(o)
	}
	(*o).Observe(took.Seconds())
}
