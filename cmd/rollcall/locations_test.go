package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store/storetest"
)

// fickle is a JSON-RPC server that is broken for those whose User-Agent holds one of some words: what an endpoint looks like
// from a place depends on the place.
type fickle struct {
	mu     sync.Mutex
	broken []string // guarded by mu
}

func (f *fickle) breakFor(words ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = words
}

func (f *fickle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, word := range f.broken {
		if strings.Contains(r.UserAgent(), word) {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"pong"}`, request.ID)
}

func TestLocationsVote(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	target := &fickle{}
	server := httptest.NewServer(target)
	defer server.Close()
	in := func(location string) *instance {
		return serveInstance(t, []string{testKey}, "--database", database, "--location", location, "--allow-private", "127.0.0.0/8",
			"--public-url", "http://"+location+".example", "--spool", filepath.Join(t.TempDir(), "spool"))
	}
	ams, fra := in("ams"), in("fra")
	ams.call("POST", "/api/v1/endpoints", object{
		"name": "Fickle", "url": server.URL, "kind": "jsonrpc", "request": object{"method": "ping"}, "schedule": "@every 1s", "timeout": "1s",
		"confirm": object{"failures": 1, "successes": 1, "after": "1s"}, "locations": []string{"ams", "fra"},
	}, 201, nil)
	type endpoint struct {
		Status string
		Places []struct {
			Location, Status string
			Failure          *struct{ Message string }
		}
		LastCheck struct{ Location string } `json:"last_check"`
	}
	read := func() (e endpoint) {
		fra.call("GET", "/api/v1/endpoints/fickle", nil, 200, &e)
		return e
	}
	is := func(whole, inAms, inFra string) func() bool {
		return func() bool {
			e := read()
			return e.Status == whole && len(e.Places) == 2 && e.Places[0].Status == inAms && e.Places[1].Status == inFra
		}
	}
	ams.await("both places to find it up", is("up", "up", "up"))

	target.breakFor("fra.example")
	ams.await("one place alone to find it down", is("degraded", "up", "down"))
	alone := ams.incidents("fickle")
	if len(alone) != 1 || alone[0]["severity"] != "degraded" {
		t.Errorf("incidents %v although one place of two finds it up, want one of a degraded endpoint", alone)
	}

	target.breakFor("ams.example", "fra.example")
	ams.await("both places to find it down", is("down", "down", "down"))
	both := ams.incidents("fickle")
	if len(both) != 1 || len(alone) != 1 || both[0]["id"] != alone[0]["id"] || both[0]["severity"] != "down" {
		t.Errorf("incidents %v, want the one that there was, worse", both)
	}

	target.breakFor()
	ams.await("both places to find it up again", is("up", "up", "up"))
	incidents := ams.incidents("fickle")
	if len(incidents) != 1 || incidents[0]["status"] != "resolved" {
		t.Errorf("incidents %v, want one that is resolved", incidents)
	}

	// A place that is gone has no say once its word is stale.
	fra.stop()
	target.breakFor("ams.example")
	awaitWithin(t, 90*time.Second, "the place that is left to find it down", func() bool {
		return ams.status("fickle") == "down"
	})
}

func TestTheLimitOfALocationHoldsForOneInstanceOnSQLite(t *testing.T) {
	t.Parallel()
	i := serveInstance(t, nil, "--per-location", "7")
	if limit := i.metric("rollcall_probes_limit"); limit != 7 {
		t.Errorf("%v probes at once, want the 7 of its location", limit)
	}
}

// One instance alone schedules what there is within seconds, whether it was there at start or came later.
func TestALoneInstanceOnPostgresSchedulesAtOnce(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&fickle{})
	defer server.Close()
	i := serveInstance(t, []string{testKey}, "--database", storetest.Postgres(t), "--allow-private", "127.0.0.0/8")
	i.call("POST", "/api/v1/endpoints", object{
		"name": "Seldom", "url": server.URL, "kind": "jsonrpc", "request": object{"method": "ping"}, "schedule": "@every 1h",
	}, 201, nil)
	awaitWithin(t, 10*time.Second, "the first check of an endpoint that is due once an hour", func() bool { return i.status("seldom") == "up" })
	if held := i.metric("rollcall_leases_held"); held != 128 {
		t.Errorf("%v leases held, want all 128", held)
	}
}
