package storetest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// TestBothDatabasesRememberTheSame tells both the same long story and asks them what they remember.
func TestBothDatabasesRememberTheSame(t *testing.T) {
	lite, err := sqlite.Open(t.Context(), storetest.SQLite(t), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer lite.Close() //nolint:errcheck // nothing depends on it
	pg, err := postgres.Open(t.Context(), storetest.Postgres(t), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close() //nolint:errcheck // nothing depends on it
	got, want := tell(t, lite), tell(t, pg)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("memories (-sqlite +postgres):\n%s", diff)
	}
	if len(want) < 100 {
		t.Errorf("the story left %d memories only", len(want))
	}
}

// tell records a story that chance made, the same each time, and returns what is remembered, without ids, which differ.
func tell(t *testing.T, s store.Store) (memories []string) {
	chance := rand.New(rand.NewPCG(1, 2))
	remember := func(format string, args ...any) { memories = append(memories, fmt.Sprintf(format, args...)) }
	begin := time.Date(2025, 11, 21, 8, 0, 0, 0, time.UTC)

	c, err := s.CreateChannel(t.Context(), store.Channel{
		Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://hooks.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var endpoints []store.Endpoint
	for i := range 5 {
		e := store.NewEndpoint()
		e.URL, e.Channels, e.Quorum = "https://same.example", []string{c.ID}, i%3
		if e, err = s.CreateEndpoint(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	for group := range 40 {
		var checks []store.Check
		for range 1 + chance.IntN(8) {
			e := endpoints[chance.IntN(len(endpoints))]
			at := begin.Add(time.Duration(group)*10*time.Minute + time.Duration(chance.IntN(40))*time.Second)
			verdict := probe.Verdicts()[chance.IntN(5)]
			r := probe.Result{StartedAt: at, Duration: time.Duration(chance.Int64N(1_000_000)) * time.Microsecond, Verdict: verdict}
			if verdict == probe.Down {
				r.Failure = &probe.Failure{Step: "initialize", Class: probe.ClassTimeout}
			}
			checks = append(checks, store.NewCheck(e.ID, []string{"fra", "nyc"}[chance.IntN(2)], at, r))
		}
		outcomes, err := s.Record(t.Context(), checks, believe)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes {
			remember("kept %v, %s since %s, opened %v, resolved %v", o.Kept, o.State.Status, o.State.Since, o.Opened != "", o.Resolved != "")
		}
		paused := group%7 == 6
		_, err = s.UpdateEndpoint(t.Context(), endpoints[group%5].Slug, func(e *store.Endpoint) error { e.Paused = paused; return nil })
		if err != nil {
			t.Fatal(err)
		}
	}

	overviews, err := s.Endpoints(t.Context(), store.EndpointFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range overviews.Items {
		remember("%s is %s, failure %v, last check %s", o.Name, o.Status(), o.State.Failure, o.LastCheck.Result.Verdict)
		for _, p := range o.Places {
			remember("from %s it is %s since %s, last check %s", p.Location, p.State.Status, p.State.LastCheckAt, p.State.LastVerdict)
		}
		page, err := s.Checks(t.Context(), store.CheckFilter{EndpointID: o.ID, Limit: store.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Items {
			remember("%s at %s from %s: %s in %s, %v", c.Slug, c.ScheduledAt, c.Location, c.Result.Verdict, c.Result.Duration, c.Result.Failure)
		}
		for _, grain := range []store.Grain{store.Hourly, store.Daily} {
			sums, err := s.Uptime(t.Context(), o.ID, grain, store.DayOf(begin), begin.Add(24*time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range sums {
				remember("%s from %s: %+v %v %v", h.Begin, h.Location, h.Counts, h.Classes, h.Latencies.Quantiles("", 0.5, 0.99))
			}
			counts, err := s.Counts(t.Context(), []string{o.ID}, grain, begin)
			if err != nil {
				t.Fatal(err)
			}
			remember("%+v", counts[o.ID])
		}
	}
	incidents, err := s.Incidents(t.Context(), store.IncidentFilter{Limit: store.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range incidents.Items {
		// When a pause ended it is told by the clock on the wall.
		recovered := i.Resolution == store.ResolutionRecovered
		remember("%s since %s confirmed %s, %s, %v", i.Slug, i.StartedAt, i.OpenedAt, i.Resolution, recovered && i.ResolvedAt != nil)
	}
	n, err := s.PendingNotices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remember("%d notices wait", n)
	return memories
}

// believe is a judge that believes each check at once, and late ones never.
var believe = store.Judge{Check: believeCheck, Vote: believeMost}

// believeMost finds an endpoint down when as many places are as its quorum says, one at least, and otherwise takes it for what
// the first of them does.
func believeMost(e store.Endpoint, s store.State, places []store.Place, _ time.Time) store.State {
	down, at := 0, time.Time{} // what is long past is voted on by the clock on the wall, which is another for each
	for _, p := range places {
		if p.State.LastCheckAt.After(at) {
			at = p.State.LastCheckAt
		}
		if p.State.Status == store.StatusDown {
			down++
		}
	}
	status := places[0].State.Status
	if down >= max(1, e.Quorum) {
		status = store.StatusDown
	}
	if s.Status != status {
		s.Status, s.Since, s.Failure = status, at, places[0].State.Failure
	}
	return s
}

func believeCheck(_ store.Endpoint, s store.State, c store.Check) store.State {
	if !c.Result.StartedAt.Before(s.LastCheckAt) && string(s.Status) != string(c.Result.Verdict) {
		s.Status, s.Since, s.Failure = store.Status(c.Result.Verdict), c.Result.StartedAt, c.Result.Failure
	}
	return s
}
