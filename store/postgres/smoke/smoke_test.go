package smoke

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
)

func TestSmoke(t *testing.T) {
	db, err := postgres.Open(t.Context(), os.Getenv("PGURL"), sealer(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var es []store.Endpoint
	for i := range 1000 {
		e := store.NewEndpoint()
		e.Name, e.URL = fmt.Sprintf("e%d-%d", time.Now().UnixNano(), i), "https://x.example/"
		e, err = db.CreateEndpoint(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, e)
	}
	j := store.Judge{Check: func(e store.Endpoint, s store.State, c store.Check) store.State {
		if s.Status != store.Status(c.Result.Verdict) {
			s.Status, s.Since = store.Status(c.Result.Verdict), c.Result.StartedAt
		}
		return s
	}}
	start := time.Now().Add(-3 * time.Hour)
	var spent time.Duration
	for n := range 100 {
		var g []store.Check
		for _, e := range es {
			at := start.Add(time.Duration(n) * time.Minute)
			r := probe.Result{StartedAt: at, Verdict: probe.Up, Kind: probe.KindMCP, Duration: 80 * time.Millisecond}
			for i, name := range []string{"initialize", "initialized", "tools/list", "close"} {
				r.Steps = append(r.Steps, probe.Step{Name: name, HTTPStatus: 200, Latency: time.Duration(10+i*(n%7)) * time.Millisecond})
			}
			g = append(g, store.NewCheck(e.ID, "default", at, r))
		}
		b := time.Now()
		out, err := db.Record(t.Context(), g, j)
		spent += time.Since(b)
		if err != nil || !out[0].Kept {
			t.Fatal(n, err, out[0])
		}
		if n == 0 { spent = 0 }
	}
	t.Logf("%.0f checks/s", 99000/spent.Seconds())
	u, err := db.Uptime(t.Context(), es[0].ID, store.Hourly, start.Add(-time.Hour), time.Now())
	t.Log(u, err)
	u, err = db.Uptime(t.Context(), es[0].ID, store.Daily, store.DayOf(start), time.Now())
	t.Log(u, err)
	p, err := db.Checks(t.Context(), store.CheckFilter{EndpointID: es[0].ID, Limit: 2})
	t.Log(p, err)
	c, err := db.Check(t.Context(), p.Items[0].ID)
	t.Log(c, err)
	o, err := db.Endpoint(t.Context(), es[0].Slug)
	t.Log(o.State, o.LastCheck, err)
}

func sealer(t *testing.T) *store.Sealer {
	s, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
