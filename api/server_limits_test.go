package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
)

func TestEveryMistakeOfAConfigurationIsNamed(t *testing.T) {
	_, err := api.New(api.Config{PublicURL: "https://rollcall.example/under/a/path", Registry: prometheus.NewRegistry()})
	if err == nil {
		t.Fatal("a server without anything was made")
	}
	for _, name := range []string{"Store", "Log", "Location", "Probe", "CheckNow", "Changed", "Period", "TestChannel", "Backlog", "PublicURL"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in %q", name, err)
		}
	}
	if strings.Contains(err.Error(), "Registry") {
		t.Errorf("what is there is named as well: %q", err)
	}
}

func TestAPanicIsOursAndStaysInside(t *testing.T) {
	r := start(t, func(c *api.Config) {
		c.Probe = func(context.Context, probe.Target) probe.Result { panic("HUSH in our own code") }
	})
	reply := r.ask("POST", "/api/v1/check", `{"url": "https://a.example"}`).want(http.StatusInternalServerError)
	reply.mistakes()
	if strings.Contains(reply.body, "HUSH") {
		t.Errorf("a stranger is told about the panic: %s", reply.body)
	}
	id, _ := reply.object()["request_id"].(string)
	if log := r.logged(); !strings.Contains(log, "HUSH in our own code") || !strings.Contains(log, "server_limits_test.go") || !strings.Contains(log, id) {
		t.Errorf("the log lacks the panic, its stack or its request %q:\n%s", id, log)
	}
	r.get("/healthz", nobody).want(http.StatusOK)
}

func TestAProbeOutlastsTheServersOwnTimeout(t *testing.T) {
	const timeout = 50 * time.Millisecond
	r := start(t, func(c *api.Config) {
		c.Probe = func(ctx context.Context, _ probe.Target) probe.Result {
			select {
			case <-ctx.Done():
			case <-time.After(4 * timeout):
			}
			return healthy()
		}
	})
	r.http.Close()
	r.http = httptest.NewUnstartedServer(r.api.Handler())
	r.http.Config.WriteTimeout, r.http.Config.ReadTimeout = timeout, timeout
	r.http.Start()
	t.Cleanup(r.http.Close)
	r.ask("POST", "/api/v1/check", `{"url": "https://a.example"}`).want(http.StatusOK)
}

func TestSingleChecksAreBounded(t *testing.T) {
	const places = 16
	begun, end := make(chan struct{}, places), make(chan struct{})
	r := start(t, func(c *api.Config) {
		c.Probe = func(context.Context, probe.Target) probe.Result {
			begun <- struct{}{}
			<-end
			return healthy()
		}
	})
	var asked sync.WaitGroup
	for range places {
		asked.Go(func() {
			if got := r.ask("POST", "/api/v1/check", `{"url": "https://a.example"}`).status; got != http.StatusOK {
				t.Errorf("a check that found a place ended with %d", got)
			}
		})
	}
	for range places {
		<-begun
	}
	busy := r.ask("POST", "/api/v1/check", `{"url": "https://a.example"}`)
	close(end)
	asked.Wait()
	if busy.want(http.StatusTooManyRequests).header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestWhoeverLeavesIsNotAnError(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	r := start(t, func(c *api.Config) {
		c.Probe = func(ctx context.Context, _ probe.Target) probe.Result {
			close(begun)
			<-ctx.Done()
			return broken()
		}
	})
	r.http.Close()
	handler := r.api.Handler()
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		defer close(ended)
		handler.ServeHTTP(w, q)
	}))
	t.Cleanup(r.http.Close)
	ctx, leave := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+"/api/v1/check", strings.NewReader(`{"url": "https://a.example"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+adminToken)
	q.Header.Set("Content-Type", "application/json")
	go func() {
		<-begun
		leave()
	}()
	resp, err := http.DefaultClient.Do(q)
	if err == nil {
		resp.Body.Close() //nolint:errcheck // nothing is read
		t.Fatal("an answer came to somebody who left")
	}
	<-ended
	if log := r.logged(); strings.Contains(log, "ERROR") || !strings.Contains(log, `"status":499`) {
		t.Errorf("the log of somebody who left:\n%s", log)
	}
}

// A client may send its whole body before it reads a byte. It must find the answer then, not a connection that was reset.
func TestWhoeverSendsTooMuchLearnsOfIt(t *testing.T) {
	r := start(t)
	large := strings.Repeat("x", 10<<20)
	for name, head := range map[string]string{
		"of known length":   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large),
		"of unknown length": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(large), large),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.http.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // read whole
			request := "POST /api/v1/endpoints HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\n" +
				"Authorization: Bearer " + adminToken + "\r\n" + head
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatalf("send the body: %v", err)
			}
			wantRefusal(t, conn)
		})
	}
	t.Run("by a client that does both at once", func(t *testing.T) {
		r.ask("POST", "/api/v1/endpoints", large).want(http.StatusRequestEntityTooLarge)
		r.ask("POST", "/login", large, nobody, header("Content-Type", "application/x-www-form-urlencoded")).want(http.StatusRequestEntityTooLarge)
	})
}

// wantRefusal fails the test unless the next answer on a connection is 413 and its end.
func wantRefusal(t *testing.T, conn io.Reader) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), "Body too large") || !resp.Close {
		t.Errorf("status %d, close %v, error %v: %s", resp.StatusCode, resp.Close, err, body)
	}
}

// Somebody who announces a large body and sends it never, or drop by drop, is answered at once and waited for a while.
func TestAnAnnouncedBodyIsNotWaitedForLong(t *testing.T) {
	handler := start(t).api.Handler()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		listener := &oneConn{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		listener.conns <- theirs
		server := &http.Server{Handler: handler}
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("serve: %v", err)
			}
		})
		begun := time.Now()
		if _, err := io.WriteString(ours, "POST /login HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000000000\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
		read := bufio.NewReader(ours)
		wantRefusal(t, read)
		if took := time.Since(begun); took != 0 {
			t.Errorf("the answer took %s", took)
		}
		if _, err := read.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("after the answer: %v, want the end", err)
		}
		if took := time.Since(begun); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("the connection was held for %s, want 5s", took)
		}
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		serving.Wait()
	})
}

// oneConn is a listener for one connection.
type oneConn struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
