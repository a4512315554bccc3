//go:build unix

package alerts_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// reaper kills the process that it watches at the places that lie outside of it: where its words reach a channel or the database.
// It is safe for concurrent use.
type reaper struct {
	mu    sync.Mutex
	child *child // nil: nobody is watched
	death string
	nth   int
	seen  map[string]int
}

// watch has it follow a child.
func (r *reaper) watch(c *child, death string, nth int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.child, r.death, r.nth, r.seen = c, death, nth, map[string]int{}
}

// stop has it follow nobody, and returns how often the child came by each place.
func (r *reaper) stop() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.child = nil
	return r.seen
}

// comeBy reports whether the time had come to end at a place. Then the child is dead.
func (r *reaper) comeBy(place string) bool {
	child, now := r.isTime(place)
	if now {
		child.kill()
	}
	return now
}

func (r *reaper) isTime(place string) (*child, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.child == nil {
		return nil, false
	}
	r.seen[place]++
	return r.child, place == r.death && r.seen[place] == r.nth
}

// gate stands before the server of a channel, answers in its place while that has trouble, and lets the rest pass.
type gate struct {
	origin string // of the gate
	to     string // of the server behind it
	reaper *reaper
	under  sync.RWMutex // read-locked by each request that is under way

	mu      sync.Mutex
	faults  []string // of all requests from the first on
	faulted int      // how many of them were met
	doubts  int      // answers that came too late for the process, alive as it was
}

// newGate returns a gate before the server of target, an address, with faults by chance.
func newGate(t *testing.T, target string, r *reaper, faults []string) *gate {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{to: u.Scheme + "://" + u.Host, reaper: r, faults: faults}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.origin = server.URL
	return g
}

// faults are what a channel in trouble answers with.
var faults = []string{"500", "429", "hangs", "closes early"}

// faultsBy returns what a channel answers at first, mostly nothing odd, and seldom what takes a second.
func faultsBy(random *rand.Rand) []string {
	var list []string
	for range max(0, random.IntN(5)-2) {
		list = append(list, []string{"500", "closes early", "500", "closes early", "500", "closes early", "429", "hangs"}[random.IntN(8)])
	}
	return list
}

// address returns where an address of the server leads through the gate.
func (g *gate) address(target string) string { return g.origin + strings.TrimPrefix(target, g.to) }

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.under.RLock()
	defer g.under.RUnlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || g.reaper.comeBy("asked") {
		panic(http.ErrAbortHandler)
	}
	switch g.fault() {
	case "500":
		http.Error(w, "rollup_error", http.StatusInternalServerError)
	case "429":
		w.Header().Set("Retry-After", "1")
		http.Error(w, "rate_limited", http.StatusTooManyRequests)
	case "hangs":
		<-r.Context().Done()
	case "closes early":
		panic(http.ErrAbortHandler)
	default:
		g.pass(w, r, body)
	}
}

// wait returns when no request is under way.
func (g *gate) wait() {
	g.under.Lock()
	defer g.under.Unlock()
}

func (g *gate) fault() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.faulted == len(g.faults) {
		return ""
	}
	g.faulted++
	return g.faults[g.faulted-1]
}

// met returns the faults that requests have met.
func (g *gate) met() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.faults[:g.faulted]
}

// pass takes a request to the server, whether or not its sender still lives, and brings the answer back.
func (g *gate) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	req, err := http.NewRequest(r.Method, g.to+r.URL.RequestURI(), bytes.NewReader(body)) //nolint:noctx // it outlives its sender
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || g.reaper.comeBy("accepted") {
		panic(http.ErrAbortHandler)
	}
	if r.Context().Err() != nil {
		g.mu.Lock()
		g.doubts++
		g.mu.Unlock()
	}
	if value := resp.Header.Get("Content-Type"); value != "" {
		w.Header().Set("Content-Type", value)
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer)
}

// most returns how often the channel may have heard one thing that it cannot tell from another.
func (g *gate) most(killed bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if killed {
		return 2 + g.doubts
	}
	return 1 + g.doubts
}
