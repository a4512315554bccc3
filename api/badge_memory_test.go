package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// published is a database of endpoints, as far as badges read it. It tells how often it was asked.
type published struct {
	store.Store
	mu        sync.Mutex
	endpoints map[string]store.Overview // guarded by mu: by slug
	asked     []string                  // guarded by mu: what was read
	fails     error                     // guarded by mu
	takes     time.Duration             // guarded by mu: how long it takes to answer about endpoints
}

func (d *published) put(slug string, public bool, status store.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := store.NewEndpoint()
	e.ID, e.Slug, e.Public = "ep_"+slug, slug, public
	if d.endpoints == nil {
		d.endpoints = map[string]store.Overview{}
	}
	d.endpoints[slug] = store.Overview{Endpoint: e, State: store.State{Status: status}}
}

func (d *published) Endpoints(ctx context.Context, f store.EndpointFilter) (store.Page[store.Overview], error) {
	d.mu.Lock()
	d.asked = append(d.asked, "endpoints")
	takes, err := d.takes, d.fails
	var found []store.Overview
	for _, slug := range f.Slugs {
		if o, there := d.endpoints[slug]; there && o.Public && f.PublicOnly {
			found = append(found, o)
		}
	}
	d.mu.Unlock()
	select {
	case <-time.After(takes):
		return store.Page[store.Overview]{Items: found}, err
	case <-ctx.Done():
		return store.Page[store.Overview]{}, context.Cause(ctx)
	}
}

func (d *published) Counts(_ context.Context, ids []string, _ store.Grain, _ time.Time) (map[string]store.Counts, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, "counts")
	counts := map[string]store.Counts{}
	for _, id := range ids {
		counts[id] = store.Counts{Up: 1}
	}
	return counts, d.fails
}

func (d *published) Latencies(_ context.Context, ids []string, _ store.Grain, _ time.Time) (map[string]store.Latencies, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, "latencies")
	var l store.Latencies
	l.Add(probe.Result{Verdict: probe.Up, Duration: 84 * time.Millisecond})
	latencies := map[string]store.Latencies{}
	for _, id := range ids {
		latencies[id] = l.Clone()
	}
	return latencies, d.fails
}

// reads returns what was read since it was asked last.
func (d *published) reads() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.asked
	d.asked = nil
	return asked
}

func (d *published) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = err
}

// over returns a server on a database, which logs no requests.
func over(t testing.TB, d store.Store, edits ...func(*api.Config)) *api.Server {
	t.Helper()
	cfg := api.Config{
		Store: d, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Location: "default", AdminToken: adminToken,
		Probe:       func(context.Context, probe.Target) probe.Result { return healthy() },
		CheckNow:    func(context.Context, string) (store.Check, error) { return store.Check{}, nil },
		Changed:     func(context.Context, string, string) {},
		Period:      scheduler.Period,
		TestChannel: func(context.Context, store.Channel) error { return nil },
		Backlog:     func() int { return 0 },
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	s, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asked asks a server for something, without a network.
func asked(t testing.TB, s *api.Server, method, path string, headers ...string) *http.Response {
	t.Helper()
	q := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, q)
	return w.Result() //nolint:bodyclose // of a recorder
}

// says returns the message of a badge.
func says(t testing.TB, s *api.Server, path string) string {
	t.Helper()
	answer := asked(t, s, "GET", "/badge/"+path)
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", path, answer.StatusCode, err)
	}
	_, message, _ := strings.Cut(string(body), "<title>")
	message, _, _ = strings.Cut(message, "</title>")
	_, message, _ = strings.Cut(message, ": ")
	return message
}

func TestManyBadgesAreFewQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &published{takes: time.Millisecond}
		s := over(t, d)
		for i := range 100 {
			d.put(fmt.Sprintf("e%d", i), i%2 == 0, store.StatusUp)
		}
		all := func() {
			for i := range 110 {
				for _, file := range []string{"status.svg", "tools.svg", "uptime.svg", "latency.svg", "latency.svg?quantile=p99", "status.svg?style=flat-square"} {
					asked(t, s, "GET", fmt.Sprintf("/badge/e%d/%s", i, file))
				}
			}
		}
		all()
		d.reads()
		all()
		if got := d.reads(); got != nil {
			t.Errorf("badges that were just read are read again: %q", got)
		}
		time.Sleep(api.BadgeFreshForTest + time.Second)
		all()
		got := d.reads()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"counts", "endpoints", "latencies"}, got); diff != "" {
			t.Errorf("660 badges of 110 endpoints (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
		if facts, _ := s.KnownBadgesForTest(); facts < 100 {
			t.Fatalf("%d facts are remembered", facts)
		}
		says(t, s, "e0/status.svg")
		if facts, _ := s.KnownBadgesForTest(); facts != 1 {
			t.Errorf("%d facts are remembered an hour later, want those of one badge", facts)
		}
	})
}

func TestThoseWhoWaitForBadgesAreReadForTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &published{takes: time.Second}
		s := over(t, d)
		var all sync.WaitGroup
		for i := range 100 {
			slug := fmt.Sprintf("e%d", i)
			d.put(slug, true, store.StatusUp)
			all.Go(func() {
				if got := says(t, s, slug+"/status.svg"); got != "up" {
					t.Errorf("%s says %q", slug, got)
				}
			})
		}
		start := time.Now()
		all.Wait()
		if got := d.reads(); len(got) > 2 || time.Since(start) > 2*time.Second {
			t.Errorf("100 badges at once took %d queries and %s", len(got), time.Since(start))
		}
	})
}

func TestABadgeIsNeverOlderThanItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &published{}
		s := over(t, d)
		d.put("a", true, store.StatusUp)
		for range 1000 { // somebody looks at every moment, so that it is never read for want of a question
			if got := says(t, s, "a/status.svg"); got != "up" {
				t.Fatalf("says %q", got)
			}
			time.Sleep(37 * time.Millisecond)
		}
		d.put("a", false, store.StatusUp) // by another instance
		turned := time.Now()
		for says(t, s, "a/status.svg") != "unknown" {
			time.Sleep(37 * time.Millisecond)
			if time.Since(turned) > api.BadgeStaleForTest {
				t.Fatal("what turned private is still shown")
			}
		}
		d.put("a", true, store.StatusDown)
		if got := says(t, s, "a/status.svg"); got != "unknown" {
			t.Fatalf("says %q: this test means nothing", got)
		}
		time.Sleep(api.BadgeStaleForTest) // nobody looks meanwhile
		if got := says(t, s, "a/status.svg"); got != "down" {
			t.Errorf("says %q after nobody looked for a while, want down", got)
		}
	})
}

// A slow database must not slow down those whose badge is known.
func TestOneReadsAndTheOthersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &published{}
		s := over(t, d)
		d.put("a", true, store.StatusUp)
		says(t, s, "a/status.svg")
		time.Sleep(api.BadgeFreshForTest)
		d.mu.Lock()
		d.takes = time.Second
		d.mu.Unlock()
		var reader sync.WaitGroup
		reader.Go(func() { says(t, s, "a/status.svg") })
		synctest.Wait()
		start := time.Now()
		for _, query := range []string{"", "?style=flat-square", "?label=x"} { // drawn before, and not
			if got := says(t, s, "a/status.svg"+query); got != "up" {
				t.Errorf("says %q", got)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("known badges waited %s for somebody who reads", took)
		}
		reader.Wait()
		if got := d.reads(); len(got) != 2 {
			t.Errorf("read %q", got)
		}
	})
}

func TestWithoutADatabaseTheLastKnownIsShownForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d := &published{}
		s := over(t, d, func(c *api.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		d.put("a", true, store.StatusUp)
		d.put("hidden", false, store.StatusUp)
		says(t, s, "a/status.svg")
		d.fail(errors.New("gone"))
		read := time.Now()
		for time.Since(read) < api.BadgeKeptForTest {
			if got := says(t, s, "a/status.svg"); got != "up" {
				t.Fatalf("says %q after %s", got, time.Since(read))
			}
			time.Sleep(time.Second)
		}
		for _, slug := range []string{"a", "hidden", "absent"} {
			answer := asked(t, s, "GET", "/badge/"+slug+"/status.svg")
			if got := says(t, s, slug+"/status.svg"); got != "unknown" || answer.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s says %q, headers %v", slug, got, answer.Header)
			}
		}
		if n := strings.Count(log.String(), "badges cannot be read"); n < 10 || n > 200 {
			t.Errorf("said %d times in the log within five minutes", n)
		}
		d.fail(nil)
		time.Sleep(5 * time.Second)
		if got := says(t, s, "a/status.svg"); got != "up" {
			t.Errorf("says %q with the database back", got)
		}
	})
}

// A database that hangs is asked by one at a time, and holds nobody for longer than the patience of the memory.
func TestADatabaseThatHangsHoldsNoBadgeForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &published{takes: time.Hour}
		s := over(t, d)
		start := time.Now()
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				if got := says(t, s, fmt.Sprintf("e%d/status.svg", i)); got != "unknown" {
					t.Errorf("says %q", got)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took > 6*time.Second || len(d.reads()) > 2 {
			t.Errorf("held for %s", took)
		}
	})
}

func TestWhatIsChangedHereIsShownAtOnce(t *testing.T) {
	r := start(t, quietly)
	r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
	message := func() string {
		t.Helper()
		title := readSVG(t, r.get("/badge/a/status.svg", nobody).want(http.StatusOK).body)
		return strings.TrimPrefix(title, "status: ")
	}
	for _, step := range []struct{ method, path, body, want string }{
		{"GET", "/api/v1/endpoints/a", "", "pending"},
		{"POST", "/api/v1/endpoints/a/check", "", "up"},
		{"PATCH", "/api/v1/endpoints/a", `{"paused": true}`, "paused"},
		{"PATCH", "/api/v1/endpoints/a", `{"public": false}`, "unknown"},
		{"PATCH", "/api/v1/endpoints/a", `{"public": true}`, "paused"},
	} {
		r.ask(step.method, step.path, step.body).want(http.StatusOK)
		for range 3 {
			if got := message(); got != step.want {
				t.Errorf("after %s %s %s the badge says %q, want %q", step.method, step.path, step.body, got, step.want)
			}
		}
	}
	r.ask("DELETE", "/api/v1/endpoints/a", "").want(http.StatusNoContent)
	if got := message(); got != "unknown" {
		t.Errorf("what was deleted says %q", got)
	}
}

// quietly has a server log no requests, as it does unless somebody looks for a mistake.
func quietly(c *api.Config) { c.Log = slog.New(slog.DiscardHandler) }

func TestAKeptPictureIsAnsweredAsADrawnOne(t *testing.T) {
	for name, edit := range map[string]func(*api.Config){"kept": quietly, "drawn each time": func(*api.Config) {}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, edit)
			r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
			for _, slug := range []string{"a", "absent"} {
				for _, file := range []string{"status.svg", "uptime.json?window=7d&label=x", "status.svg?style=nope"} {
					path := "/badge/" + slug + "/" + file
					first := r.get(path, nobody).want(http.StatusOK)
					tag := first.header.Get("ETag")
					for range 3 {
						again := r.get(path, nobody).want(http.StatusOK)
						if diff := cmp.Diff(own(first.header), own(again.header)); diff != "" || first.body != again.body {
							t.Errorf("%s is answered in another way the second time:\n%s", path, diff)
						}
						if a, b := first.header.Get("X-Request-Id"), again.header.Get("X-Request-Id"); len(b) != 16 || a == b {
							t.Errorf("%s: request ids %q and %q", path, a, b)
						}
						head := r.ask("HEAD", path, "", nobody).want(http.StatusOK)
						if diff := cmp.Diff(own(first.header), own(head.header)); diff != "" || head.body != "" {
							t.Errorf("HEAD of %s:\n%s", path, diff)
						}
						same := r.get(path, nobody, header("If-None-Match", tag)).want(http.StatusNotModified)
						want := own(first.header)
						want.Del("Content-Type")
						want.Del("Content-Length")
						if diff := cmp.Diff(want, own(same.header)); diff != "" || same.body != "" {
							t.Errorf("304 of %s:\n%s", path, diff)
						}
						r.get(path, nobody, header("If-None-Match", `"other"`)).want(http.StatusOK)
					}
				}
			}
			metrics := r.get("/metrics", nobody).body
			for series, want := range map[string]int{
				`method="GET",route="/badge/:slug/status.svg",status="200"`:   2 * (4 + 3) * 2,
				`method="HEAD",route="/badge/:slug/status.svg",status="200"`:  2 * 3 * 2,
				`method="GET",route="/badge/:slug/status.svg",status="304"`:   2 * 3 * 2,
				`method="GET",route="/badge/:slug/uptime.json",status="304"`:  2 * 3,
				`method="HEAD",route="/badge/:slug/uptime.json",status="200"`: 2 * 3,
			} {
				if line := fmt.Sprintf("rollcall_http_request_duration_seconds_count{%s} %d\n", series, want); !strings.Contains(metrics, line) {
					t.Errorf("metrics lack %s", line)
				}
			}
			r.ask("POST", "/badge/a/status.svg", "", nobody).want(http.StatusMethodNotAllowed)
			r.ask("GET", "/badge/a/status.svg", strings.Repeat("x", 2<<20), nobody).want(http.StatusRequestEntityTooLarge)
		})
	}
}

// own returns headers without what every answer has of its own.
func own(h http.Header) http.Header {
	h = maps.Clone(h)
	h.Del("Date")
	h.Del("X-Request-Id")
	return h
}

func TestStrangersDoNotFillTheMemory(t *testing.T) {
	d := &published{}
	s := over(t, d)
	d.put("a", true, store.StatusUp)
	for i := range 2 * api.MaxKnownForTest {
		asked(t, s, "GET", fmt.Sprintf("/badge/x%d/status.svg", i))
		if i%100 == 0 {
			says(t, s, "a/status.svg?label="+url.QueryEscape(strings.Repeat("é", i%40)))
		}
	}
	for i := range 3 * api.MaxDrawnForTest {
		asked(t, s, "GET", fmt.Sprintf("/badge/a/status.svg?label=%d", i))
	}
	asked(t, s, "GET", "/badge/"+strings.Repeat("a", 4000)+"/status.svg")
	for _, strange := range []string{"A", "a_b", "a%20b", "%ff", "..%2f", "é"} {
		d.reads()
		if got := says(t, s, strange+"/status.svg"); got != "unknown" {
			t.Errorf("%q says %q", strange, got)
		}
		if got := d.reads(); got != nil {
			t.Errorf("%q was looked for: %q", strange, got)
		}
	}
	facts, drawn := s.KnownBadgesForTest()
	if facts > api.MaxKnownForTest || drawn > api.MaxDrawnForTest {
		t.Errorf("%d facts and %d pictures are kept", facts, drawn)
	}
	if got := says(t, s, "a/status.svg"); got != "up" {
		t.Errorf("the badge says %q afterwards", got)
	}
}
