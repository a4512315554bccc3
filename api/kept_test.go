package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// counted is a database that counts what public pages ask of it.
type counted struct {
	store.Store

	mu    sync.Mutex
	asked map[string]int // guarded by mu
}

func (d *counted) count(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[what]++
}

func (d *counted) Endpoints(ctx context.Context, f store.EndpointFilter) (store.Page[store.Overview], error) {
	d.count("endpoints")
	return d.Store.Endpoints(ctx, f)
}

func (d *counted) Index(ctx context.Context, f store.EndpointFilter, checks bool) ([]store.Line, error) {
	d.count("index")
	return d.Store.Index(ctx, f, checks)
}

func (d *counted) Endpoint(ctx context.Context, slug string) (store.Overview, error) {
	d.count("endpoint")
	return d.Store.Endpoint(ctx, slug)
}

func (d *counted) Incidents(ctx context.Context, f store.IncidentFilter) (store.Page[store.Incident], error) {
	d.count("incidents")
	return d.Store.Incidents(ctx, f)
}

func (d *counted) PublicEntries(ctx context.Context, ids []string) (map[string][]store.Entry, error) {
	d.count("entries")
	return d.Store.PublicEntries(ctx, ids)
}

func (d *counted) Timeline(ctx context.Context, id string) ([]store.Entry, error) {
	d.count("timeline")
	return d.Store.Timeline(ctx, id)
}

func (d *counted) Counts(ctx context.Context, ids []string, grain store.Grain, from time.Time) (map[string]store.Counts, error) {
	d.count("counts")
	return d.Store.Counts(ctx, ids, grain, from)
}

// sharedPaths show the same to everybody.
var sharedPaths = []string{
	"/status", "/status/weather", "/status/feed.atom", "/status/feed.json", "/api/v1/status",
	"/api/v2/summary.json", "/api/v2/status.json", "/api/v2/components.json", "/api/v2/incidents.json",
}

func TestManyVisitorsAreFewQuestions(t *testing.T) {
	d := &counted{asked: map[string]int{}}
	r := start(t, func(c *api.Config) { d.Store = c.Store; c.Store, c.KeepPublic = d, 5*time.Second })
	r.outage("Weather", true)
	for n := range 20 {
		r.raise(fmt.Sprintf(`{"title": "Disk %d", "severity": "down", "text": "We look into %d."}`, n, n))
	}
	const rounds = 20
	for _, keep := range []bool{true, false} {
		clear(d.asked)
		begun := time.Now()
		var visitors sync.WaitGroup
		for _, path := range sharedPaths {
			for range rounds {
				visitors.Go(func() {
					if got := r.get(path, nobody); got.status != http.StatusOK {
						t.Errorf("%s: status %d", path, got.status)
					}
				})
			}
			if !keep {
				visitors.Wait()
				r.ask("PATCH", "/api/v1/endpoints/weather", `{"tags": []}`).want(http.StatusOK) // has all of it forgotten
			}
		}
		visitors.Wait()
		spans := 1 + int(time.Since(begun)/(5*time.Second))
		if !keep {
			spans += 3 * len(sharedPaths) // each begins anew, and the change reads the endpoint itself
		}
		// The status page and one endpoint's each ask for incidents and their entries, hours and days are counted once each.
		for what, most := range map[string]int{"endpoints": 1, "endpoint": 1, "incidents": 2, "entries": 2, "counts": 2, "timeline": 0} {
			if d.asked[what] > most*spans {
				t.Errorf("asked for %s %d times, want %d at most", what, d.asked[what], most*spans)
			}
		}
		if d.asked["entries"] == 0 || d.asked["endpoints"] == 0 {
			t.Errorf("asked %v: the pages come from elsewhere", d.asked)
		}
	}
}

func TestWhatIsChangedHereIsShownToThePublicAtOnce(t *testing.T) {
	r := start(t, func(c *api.Config) { c.KeepPublic = 5 * time.Second })
	shows := func(text string, want bool) {
		t.Helper()
		for _, path := range []string{"/status", "/status/feed.atom", "/status/feed.json", "/api/v2/incidents.json"} {
			if got := strings.Contains(r.get(path, nobody).want(http.StatusOK).body, text); got != want {
				t.Errorf("%s shows %q: %t, want %t", path, text, got, want)
			}
		}
	}
	shows("Disk", false)
	id := r.raise(`{"title": "Disk", "severity": "down", "text": "We look into it."}`)
	shows("We look into it.", true)
	shows("A new one is on its way.", false)
	r.act(id, `{"act": "comment", "text": "A new one is on its way.", "public": true}`).want(http.StatusOK)
	shows("A new one is on its way.", true)
	r.act(id, `{"act": "comment", "text": "Somebody stepped on it."}`).want(http.StatusOK)
	shows("Somebody stepped on it.", false)

	r.register(`{"url": "https://a.example", "name": "Weather", "public": true}`)
	r.get("/status/weather", nobody).want(http.StatusOK)
	r.ask("PATCH", "/api/v1/endpoints/weather", `{"public": false}`).want(http.StatusOK)
	r.get("/status/weather", nobody).want(http.StatusNotFound)
	if strings.Contains(r.get("/status", nobody).body, "Weather") {
		t.Error("one that is hidden is shown")
	}
}

// slow is a database that takes a second for each answer, and fails on request.
type slow struct {
	rolled
	mu    sync.Mutex
	times int   // guarded by mu
	fails error // guarded by mu
	panic bool  // guarded by mu
}

func (d *slow) Endpoints(ctx context.Context, _ store.EndpointFilter) (store.Page[store.Overview], error) {
	d.mu.Lock()
	d.times++
	fails, panics := d.fails, d.panic
	d.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return store.Page[store.Overview]{}, context.Cause(ctx)
	}
	if panics {
		panic("a bug")
	}
	return store.Page[store.Overview]{}, fails
}

func TestWhatIsKeptGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slow{}
		s, err := api.New(api.Config{
			Store: d, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Location: "default",
			Probe:       func(context.Context, probe.Target) probe.Result { return healthy() },
			CheckNow:    func(context.Context, string) (store.Check, error) { return store.Check{}, nil },
			Changed:     func(context.Context, string, string) {},
			Period:      scheduler.Period,
			TestChannel: func(context.Context, store.Channel) error { return nil },
			Backlog:     func() int { return 0 },
			KeepPublic:  5 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(ctx context.Context) (status int) {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v2/status.json", nil))
			return w.Code
		}
		want := func(times int, statuses ...int) {
			t.Helper()
			var together sync.WaitGroup
			for _, want := range statuses {
				together.Go(func() {
					if got := ask(t.Context()); got != want {
						t.Errorf("status %d, want %d", got, want)
					}
				})
			}
			together.Wait()
			if d.times != times {
				t.Errorf("the database was asked %d times, want %d", d.times, times)
			}
		}
		want(1, 200, 200, 200)
		time.Sleep(3900 * time.Millisecond) // 4.9 s after it was asked
		want(1, 200)
		time.Sleep(100 * time.Millisecond)
		want(2, 200, 200)

		time.Sleep(5 * time.Second)
		left, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		go ask(left) // who asked first has left: the others are answered all the same
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		want(3, 200)

		time.Sleep(5 * time.Second)
		d.fails = errors.New("away")
		want(4, 503, 503)
		d.fails, d.panic = nil, true
		want(5, 500, 500)
		d.panic = false
		want(6, 200) // failures are not kept
	})
}

func TestTheDatabaseIsNotKeptFromForLong(t *testing.T) {
	_, err := api.New(api.Config{KeepPublic: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "KeepPublic") {
		t.Errorf("New with a minute: %v, want it refused", err)
	}
}

// raise opens an incident by hand and returns its id.
func (r *rollcall) raise(body string) (id string) {
	r.t.Helper()
	id, _ = r.ask("POST", "/api/v1/incidents", body).want(http.StatusCreated).object()["id"].(string)
	return id
}

// act does something about an incident.
func (r *rollcall) act(id, body string) reply {
	r.t.Helper()
	return r.ask("POST", "/api/v1/incidents/"+id+"/acts", body)
}
