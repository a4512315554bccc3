package postgres_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// A pooler in transaction mode may know no prepared statements: leases must work in each way of asking.
func TestLeases(t *testing.T) {
	url := storetest.Postgres(t)
	for _, mode := range []string{"cache_statement", "cache_describe", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			storetest.Leases(t, func(t testing.TB) storetest.Database {
				return fresh(t, url+"&default_query_exec_mode="+mode)
			})
		})
	}
}

// An instance may stand still, its connection open, after any of the pieces in which its question goes to the server.
func TestAnInstanceThatStandsStillHoldsUpNobody(t *testing.T) {
	direct := storetest.Postgres(t)
	line := newLine(t, direct)
	frozen, err := postgres.Open(t.Context(), line.url, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close() //nolint:errcheck // it never fails
	other, err := postgres.Open(t.Context(), direct, storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // it never fails

	a, b := store.Instance{ID: "a", Location: "here"}, store.Instance{ID: "b", Location: "here"}
	stood := 0
	for pieces := range 100 {
		line.allow(pieces)
		ctx, thaw := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := frozen.Shift(ctx, a, time.Minute)
			ended <- err
		}()
		select {
		case <-line.stands:
			stood++
			patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if _, err := other.Shift(patience, b, time.Minute); err != nil {
				t.Errorf("somebody stands still after %d pieces, and another gets no answer: %v", pieces, err)
			}
			cancel()
			line.cut()
			thaw()
			<-ended //nolint:errcheck // how a question ends that was cut off says nothing
		case err := <-ended:
			thaw()
			if err != nil || stood == 0 {
				t.Errorf("Shift that never stood still after %d that did: %v", stood, err)
			}
			return
		}
	}
	t.Error("a question has no end of pieces")
}

// line is a connection to a server on which the client's end can be frozen.
type line struct {
	url    string
	server string
	stands chan struct{} // gets an element when a piece comes after those that were allowed

	mu      sync.Mutex
	allowed int           // guarded by mu: pieces; negative when all are
	over    chan struct{} // guarded by mu: closed when what stands still is cut off
}

func newLine(t *testing.T, direct string) *line {
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{server: u.Host, stands: make(chan struct{}, 1), allowed: -1, over: make(chan struct{})}
	u.Host = listener.Addr().String()
	l.url = u.String()
	var carriers sync.WaitGroup
	carriers.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			carriers.Go(func() { l.carry(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut() // also what stands still since the test has ended, such as the farewell of a connection
		carriers.Wait()
	})
	return l
}

// allow lets so many more pieces pass, of all connections together.
func (l *line) allow(pieces int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.allowed = pieces
}

// cut ends the connections that stand still, and lets everything pass.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.over)
	l.allowed, l.over = -1, make(chan struct{})
}

// pass returns nil when one more piece may pass, else what is closed when its connection is to end.
func (l *line) pass() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.allowed == 0 {
		return l.over
	}
	if l.allowed > 0 {
		l.allowed--
	}
	return nil
}

// carry takes pieces from a client to the server, and back whatever comes. The server sees no end of a connection on which
// a piece was held back until it is cut off.
func (l *line) carry(client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing depends on it
	server, err := new(net.Dialer).Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // nothing depends on it
	var back sync.WaitGroup
	defer back.Wait()
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	defer server.Close() //nolint:errcheck // it ends the copying back
	piece := make([]byte, 64<<10)
	for {
		n, err := client.Read(piece)
		if err != nil {
			return
		}
		if over := l.pass(); over != nil {
			select {
			case l.stands <- struct{}{}:
			case <-over:
			}
			<-over
			return
		}
		if _, err := server.Write(piece[:n]); err != nil {
			return
		}
	}
}
