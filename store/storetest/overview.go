package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testBriefs(t *testing.T, fresh func(t testing.TB) Database) {
	s := fresh(t).open(t)
	full := newEndpoint(t, s, "full", func(e *store.Endpoint) {
		e.Tags, e.Locations, e.Paused = []string{"prod", "eu"}, []string{"ams", "fra"}, false
		e.Headers = []probe.Header{{Name: "Authorization", Value: "Bearer brief", Secret: true}}
	})
	local := newEndpoint(t, s, "local", func(e *store.Endpoint) {
		e.URL, e.Kind, e.Command = "", probe.KindMCP, &probe.Command{Args: []string{"serve-mcp"}}
	})
	waiting := newEndpoint(t, s, "waiting", func(e *store.Endpoint) { e.Paused = true })
	other := newEndpoint(t, s, "other")
	for hour := range 3 {
		at := start.Add(time.Duration(hour) * time.Hour)
		fast := checkFrom("fra", full, at.Add(time.Minute), probe.Up)
		fast.Result.Duration = time.Duration(hour+1) * 1500 * time.Microsecond
		record(t, s, checkFrom("ams", full, at, probe.Down), fast, checkAt(local, at, probe.Down), checkAt(other, at, probe.Up))
	}
	from := start.Add(time.Hour)
	got, err := s.Briefs(t.Context(), []string{waiting.ID, full.ID, local.ID, full.ID, "ep_none\x00"}, from)
	if err != nil {
		t.Fatalf("Briefs: %v", err)
	}
	slices.SortFunc(got, func(a, b store.Brief) int { return strings.Compare(a.Name, b.Name) })
	if len(got) != 3 {
		t.Fatalf("Briefs = %+v, want three", got)
	}
	for i, e := range []store.Endpoint{full, local, waiting} {
		o, err := s.Endpoint(t.Context(), e.Slug)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got[i].Overview, briefly(o)); diff != "" {
			t.Errorf("the brief of %s differs from what Endpoint says (-got +want):\n%s", e.Name, diff)
		}
		want := uptime(t, s, e, store.Hourly, from, from.AddDate(0, 0, 1))
		if diff := cmp.Diff(sumsOf(got[i].Hours), sumsOf(want)); diff != "" || (len(want) == 0) != (e.ID == waiting.ID) {
			t.Errorf("the hours of %s differ from what Uptime says (-got +want):\n%s", e.Name, diff)
		}
		for n := range want {
			if got, want := got[i].Hours[n].Latencies.Quantiles("", 0.5), want[n].Latencies.Quantiles("", 0.5); !slices.Equal(got, want) {
				t.Errorf("%s: latencies %v, want %v", e.Name, got, want)
			}
		}
	}
	if got, err := s.Briefs(t.Context(), nil, time.Time{}); err != nil || len(got) != 0 {
		t.Errorf("of no endpoints: %v, %v", got, err)
	}
}

// briefly returns what a brief holds of an overview.
func briefly(o store.Overview) store.Overview {
	e, s := o.Endpoint, o.State
	return store.Overview{
		Endpoint: store.Endpoint{
			ID: e.ID, Slug: e.Slug, Name: e.Name, Kind: e.Kind, URL: e.URL, Command: e.Command, Schedule: e.Schedule, Timeout: e.Timeout,
			Paused: e.Paused, Tags: e.Tags, Locations: e.Locations, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
		}.Tidy(),
		State: store.State{
			Status: s.Status, Since: s.Since, Failure: s.Failure, Kind: s.Kind, LastCheckAt: s.LastCheckAt, LastDuration: s.LastDuration,
		},
	}
}
