package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
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
