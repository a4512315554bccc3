package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// What the test of several instances asks for: the period of its endpoints, and how much longer than that one of them may go
// unprobed whatever happens to the instance that probed it.
const (
	watchPeriod  = 2 * time.Second
	takeoverTime = 20 * time.Second
	watched      = 60
)

func TestSeveralInstancesOnOnePostgres(t *testing.T) {
	t.Parallel()
	database, slack, target := storetest.Postgres(t), alertstest.NewSlack(t), newRoll(t)
	add := func() *instance {
		return serveInstance(t, []string{testKey}, "--database", database, "--allow-private", "127.0.0.0/8", "--location", "here",
			"--spool", filepath.Join(t.TempDir(), "spool"))
	}
	a := add()
	a.register(target, slack)
	b, c := add(), add()
	awaitDivided(t, a, b, c)
	target.awaitAll(t, time.Minute)

	a.kill()
	broken := []string{"e03", "e17", "e31", "e45"} // one of them was a's, as chance will mostly have it
	target.breakDown(broken...)
	awaitDivided(t, b, c)
	slack.WaitFor(len(broken), time.Minute)

	b.stop()
	awaitDivided(t, c)
	d := add()
	awaitDivided(t, c, d)

	target.slow(300 * time.Millisecond) // so that c is asking something when it is frozen
	time.Sleep(2 * watchPeriod)
	c.freeze()
	target.slow(0)
	time.Sleep(time.Second)
	target.repair(broken...) // which c, who asked last, does not see
	d.await("the leases of who is frozen to be taken over", func() bool { return d.metric("rollcall_leases_held") == 128 })
	time.Sleep(watchPeriod)
	c.thaw()
	c.await("who was frozen to notice", func() bool { return c.metric("rollcall_leases_lost_total") >= 64 })
	awaitDivided(t, c, d)
	slack.WaitFor(2*len(broken), time.Minute)
	c.stop() // d takes back what it has just handed over
	awaitDivided(t, d)
	target.awaitAll(t, takeoverTime)

	target.wantNoGap(t, watchPeriod+takeoverTime)
	d.wantEachSlotOnce(t)
	d.wantOneOutage(t, broken, slack)
}

// register adds a channel and all endpoints of a roll.
func (i *instance) register(r *roll, slack *alertstest.Slack) {
	i.t.Helper()
	var channel struct{ ID string }
	i.call("POST", "/api/v1/channels", object{"name": "ops", "type": "slack", "webhook_url": slack.WebhookURL()}, 201, &channel)
	for _, slug := range slugs() {
		i.call("POST", "/api/v1/endpoints", object{
			"name": slug, "slug": slug, "kind": "jsonrpc", "url": r.url(slug), "request": object{"method": "ping"},
			"schedule": "@every 2s", "timeout": "2s", "channels": []string{channel.ID},
			"confirm": object{"failures": 3, "successes": 1, "after": "500ms"},
		}, 201, nil)
	}
}

func slugs() []string {
	all := make([]string, watched)
	for n := range all {
		all[n] = fmt.Sprintf("e%02d", n)
	}
	return all
}

// awaitDivided waits until each instance has its fair share of the shards.
func awaitDivided(t *testing.T, instances ...*instance) {
	t.Helper()
	awaitWithin(t, time.Minute, fmt.Sprintf("%d instances to divide the endpoints", len(instances)), func() bool {
		fair, held := 128/len(instances), 0
		for _, i := range instances {
			n := int(i.metric("rollcall_leases_held"))
			if n != fair && n != fair+1 {
				return false
			}
			held += n
		}
		return held == 128
	})
}

// freeze has the service stand still in the middle of whatever it does, as on a machine that is out of memory or on one
// that is being moved.
func (i *instance) freeze() { i.signal(syscall.SIGSTOP) }

func (i *instance) thaw() { i.signal(syscall.SIGCONT) }

func (i *instance) signal(s syscall.Signal) {
	i.t.Helper()
	if err := i.cmd.Process.Signal(s); err != nil {
		i.t.Fatal(err)
	}
}

// wantEachSlotOnce makes sure that no endpoint has two checks for one time, and that the roll-ups count each check once.
func (i *instance) wantEachSlotOnce(t *testing.T) {
	t.Helper()
	for _, slug := range slugs() {
		var uptime struct{ Checks map[string]int }
		i.call("GET", "/api/v1/endpoints/"+slug+"/uptime?window=24h", nil, 200, &uptime)
		counted := 0
		for _, n := range uptime.Checks {
			counted += n
		}
		// Read afterwards: there may be more of them, but not fewer.
		slots := i.slots(slug)
		for at, n := range slots {
			if n > 1 {
				t.Errorf("%s has %d checks scheduled at %s", slug, n, at)
			}
		}
		if len(slots) < counted || len(slots) > counted+3 {
			t.Errorf("%s has %d checks, its roll-ups count %d", slug, len(slots), counted)
		}
	}
}

// slots counts the checks of an endpoint by the time that they were scheduled at. None has taken longer than its timeout
// allows by far.
func (i *instance) slots(slug string) map[string]int {
	i.t.Helper()
	slots := map[string]int{}
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				ScheduledAt string  `json:"scheduled_at"`
				DurationMS  float64 `json:"duration_ms"`
			}
			NextCursor string `json:"next_cursor"`
		}
		i.call("GET", "/api/v1/endpoints/"+slug+"/checks?limit=500&cursor="+url.QueryEscape(cursor), nil, 200, &page)
		for _, c := range page.Items {
			slots[c.ScheduledAt]++
			if c.DurationMS > 6_000 {
				i.t.Errorf("%s has a check that took %vms, which was the time that an instance was frozen", slug, c.DurationMS)
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return slots
		}
	}
}

// wantOneOutage makes sure that each of the endpoints that broke has one incident, of which Slack heard twice, and that the
// others have none: nothing of what happened to the instances looked like an outage.
func (i *instance) wantOneOutage(t *testing.T, broken []string, slack *alertstest.Slack) {
	t.Helper()
	outages := strings.Join(broken, " ")
	for _, slug := range slugs() {
		incidents := i.incidents(slug)
		if !strings.Contains(outages, slug) {
			if len(incidents) > 0 {
				t.Errorf("%s was well all the time and has incidents %v", slug, incidents)
			}
			continue
		}
		if len(incidents) != 1 || incidents[0]["status"] != "resolved" {
			t.Errorf("%s broke once and has incidents %v", slug, incidents)
		}
		heard := 0
		for _, m := range slack.Messages() {
			if strings.Contains(m.Text, slug) {
				heard++
			}
		}
		if heard != 2 {
			t.Errorf("Slack heard %d times of %s, want an alert and a resolution", heard, slug)
		}
	}
	if got := len(slack.Messages()); got != 2*len(broken) {
		t.Errorf("Slack has %d messages, want %d: %+v", got, 2*len(broken), slack.Messages())
	}
}

// roll is a server of many endpoints that notes when each was called.
type roll struct {
	server *httptest.Server

	mu     sync.Mutex
	calls  map[string][]time.Time
	broken map[string]bool
	delay  time.Duration
}

func newRoll(t *testing.T) *roll {
	r := &roll{calls: map[string][]time.Time{}, broken: map[string]bool{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *roll) url(slug string) string { return r.server.URL + "/" + slug }

func (r *roll) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var call struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.NewDecoder(req.Body).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slug := strings.TrimPrefix(req.URL.Path, "/")
	r.mu.Lock()
	r.calls[slug] = append(r.calls[slug], time.Now())
	broken, delay := r.broken[slug], r.delay
	r.mu.Unlock()
	if broken {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	time.Sleep(delay)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"pong"}`, call.ID)
}

func (r *roll) slow(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
}

func (r *roll) breakDown(slugs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, slug := range slugs {
		r.broken[slug] = true
	}
}

func (r *roll) repair(slugs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, slug := range slugs {
		delete(r.broken, slug)
	}
}

// awaitAll waits until each endpoint is called from now on.
func (r *roll) awaitAll(t *testing.T, limit time.Duration) {
	t.Helper()
	now := time.Now()
	awaitWithin(t, limit, "each endpoint to be probed", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, slug := range slugs() {
			calls := r.calls[slug]
			if len(calls) == 0 || calls[len(calls)-1].Before(now) {
				return false
			}
		}
		return true
	})
}

// wantNoGap makes sure that no endpoint went uncalled for longer than limit, from its first call on.
func (r *roll) wantNoGap(t *testing.T, limit time.Duration) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	end, longest := time.Now(), time.Duration(0)
	for slug, calls := range r.calls {
		for n, at := range calls {
			next := end
			if n+1 < len(calls) {
				next = calls[n+1]
			}
			gap := next.Sub(at)
			longest = max(longest, gap)
			if gap > limit {
				t.Errorf("%s was not probed for %s after %s, want %s at most", slug, gap, at.Format(time.TimeOnly), limit)
			}
		}
	}
	t.Logf("longest time that an endpoint went unprobed: %s", longest.Round(time.Millisecond))
}
