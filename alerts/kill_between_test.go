//go:build unix

package alerts_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// reaper kills the process that is watched at present at the places that lie outside of it: where its words reach a channel or the
// database. It is safe for concurrent use.
type reaper struct {
	mu    sync.Mutex
	child *child // nil: nobody is
	death string
	nth   int
	seen  map[string]int
}

// watch has it follow a child; with nil, nobody.
func (r *reaper) watch(c *child, death string, nth int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.child, r.death, r.nth, r.seen = c, death, nth, map[string]int{}
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

func (r *reaper) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// gate stands before the server of a channel, answers in its place while that has trouble, and lets the rest pass.
type gate struct {
	origin string // of the gate
	to     string // of the server behind it
	reaper *reaper
	under  sync.RWMutex // read-locked by each request that is under way

	mu     sync.Mutex
	faults []string // of the next requests: "500", "429", "hangs", "closes early"
	doubts int      // answers that came too late for the process, alive as it was
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

// faultsBy returns what a channel answers at first, mostly nothing odd, and seldom what takes a second.
func faultsBy(random *rand.Rand) []string {
	var faults []string
	for range max(0, random.IntN(5)-2) {
		faults = append(faults, []string{"500", "closes early", "500", "closes early", "500", "closes early", "429", "hangs"}[random.IntN(8)])
	}
	return faults
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
	if len(g.faults) == 0 {
		return ""
	}
	next := g.faults[0]
	g.faults = g.faults[1:]
	return next
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

// line stands between a child and its database and counts what the child says there: one statement at a time, for the most part.
type line struct {
	listener net.Listener
	to       string
	reaper   *reaper

	mu   sync.Mutex
	away time.Time // the database, until then
	open map[net.Conn]bool
}

func newLine(t *testing.T, to string, r *reaper) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed with the test
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, to: to, reaper: r, open: map[net.Conn]bool{}}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() { l.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		served.Wait()
	})
	return l
}

func (l *line) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // whoever speaks here may be dead
	if !l.begin(conn) {
		return
	}
	defer l.end(conn)
	server, err := net.Dial("tcp", l.to) //nolint:noctx // on loopback
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // as above
	go func() {
		_, _ = io.Copy(conn, server)
		_ = conn.Close()
	}()
	said := make([]byte, 1<<16)
	for {
		n, err := conn.Read(said)
		if err != nil || !l.pass(server, said[:n]) {
			return
		}
	}
}

// begin reports whether the database is there to talk to.
func (l *line) begin(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.away) {
		return false
	}
	l.open[conn] = true
	return true
}

func (l *line) end(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
}

// lose has all connections end and no other one begin for a while.
func (l *line) lose(long time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = time.Now().Add(long)
	for conn := range l.open {
		_ = conn.Close()
	}
}

// pass hands a statement on and reports whether the connection is to go on.
func (l *line) pass(server net.Conn, statement []byte) bool {
	if l.reaper.comeBy("before a statement") {
		return false
	}
	if _, lost := l.reaper.isTime(databaseLost); lost {
		l.lose(150 * time.Millisecond)
		return false
	}
	if _, err := server.Write(statement); err != nil {
		return false
	}
	return !l.reaper.comeBy("after a statement")
}

// url returns the address of a database by way of the line.
func (l *line) url(database string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("address of the database: %w", err)
	}
	u.Host = l.listener.Addr().String()
	return u.String(), nil
}
