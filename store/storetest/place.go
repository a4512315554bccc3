package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testPlaces(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("an endpoint stands where its places together put it, and each place where its own checks do", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Quorum = 2 })
		if places := overview(t, s, e.Slug).Places; places != nil {
			t.Errorf("places of a fresh endpoint: %+v, want none", places)
		}
		down := checkFrom("nyc", e, minutes(1), probe.Down)
		last := checkFrom("fra", e, minutes(2), probe.Up)
		last.Result.Era = probe.EraModern
		out := record(t, s, checkFrom("nyc", e, start, probe.Up), checkFrom("fra", e, start, probe.Up), down, last)
		if out[2].State.Status != store.StatusDown || out[3].State.Status != store.StatusUp || out[2].Opened != "" {
			t.Errorf("outcomes %+v, want those of the places, and no incident", out)
		}
		o := overview(t, s, e.Slug)
		if o.Status() != store.StatusUp || o.State.LastCheckID != last.ID || o.State.Era != probe.EraModern || o.LastCheck == nil || o.LastCheck.ID != last.ID {
			t.Errorf("overview %+v, want it up, with what the last check said", o)
		}
		want := []store.Place{
			{EndpointID: e.ID, Location: "fra", State: out[3].State},
			{EndpointID: e.ID, Location: "nyc", State: out[2].State},
		}
		if diff := cmp.Diff(o.Places, want, sameLatencies); diff != "" {
			t.Errorf("places (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(overview(t, db.open(t), e.Slug), o, sameLatencies); diff != "" {
			t.Errorf("overview as another reader sees it (-got +want):\n%s", diff)
		}
	})

	t.Run("an incident opens when enough places are down, and ends when they no longer are", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")), func(e *store.Endpoint) { e.Quorum = 2 })
		record(t, s, checkFrom("a", e, start, probe.Up), checkFrom("b", e, start, probe.Up), checkFrom("c", e, start, probe.Up))
		first := checkFrom("a", e, minutes(1), probe.Down)
		first.Result.Failure.Message = "first"
		if out := record(t, s, first); out[0].Opened != "" || overview(t, s, e.Slug).Status() != store.StatusUp {
			t.Fatalf("one of three is down: %+v, want no incident", out[0])
		}
		opened := record(t, s, checkFrom("b", e, minutes(2), probe.Down))[0].Opened
		i := incident(t, s, opened)
		if !i.StartedAt.Equal(minutes(2)) || i.Cause.Message != "first" || overview(t, s, e.Slug).Status() != store.StatusDown {
			t.Errorf("incident %+v, want one that began with the second, caused by what the first saw", i)
		}
		if out := record(t, s, checkFrom("c", e, minutes(3), probe.Down)); out[0].Opened != "" {
			t.Errorf("the third opened another incident: %+v", out[0])
		}
		if out := record(t, s, checkFrom("c", e, minutes(4), probe.Up)); out[0].Resolved != "" {
			t.Errorf("two are down, and yet: %+v", out[0])
		}
		if out := record(t, s, checkFrom("a", e, minutes(5), probe.Up)); out[0].Resolved != opened {
			t.Errorf("resolved %q with one left, want %q", out[0].Resolved, opened)
		}
		if n := pending(t, s); n != 2 {
			t.Errorf("%d notices wait, want an opening and a resolution", n)
		}
	})

	t.Run("votes of one group are counted check by check", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Quorum = 2 })
		record(t, s, checkFrom("a", e, start, probe.Up), checkFrom("b", e, start, probe.Up))
		out := record(t, s,
			checkFrom("a", e, minutes(1), probe.Down), checkFrom("b", e, minutes(1), probe.Down), checkFrom("a", e, minutes(2), probe.Up))
		if out[0].Opened != "" || out[1].Opened == "" || out[2].Resolved != out[1].Opened {
			t.Errorf("outcomes %+v, want an incident that the second opened and the third resolved", out)
		}
	})

	t.Run("a place that the endpoint is no longer probed from has no say, and is still shown", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkFrom("left", e, start, probe.Down), checkFrom("stays", e, start, probe.Up))
		if status := overview(t, s, e.Slug).Status(); status != store.StatusDown {
			t.Fatalf("status %q, want down", status)
		}
		edit(t, s, e, func(e *store.Endpoint) { e.Locations = []string{"stays"} })
		out := record(t, s, checkFrom("stays", e, minutes(1), probe.Up))
		o := overview(t, s, e.Slug)
		if o.Status() != store.StatusUp || out[0].Resolved == "" || len(o.Places) != 2 || o.Places[0].State.Status != store.StatusDown {
			t.Errorf("overview %+v, want it up with both places", o)
		}
	})

	t.Run("the list goes by what the places add up to", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) { e.Quorum = 2 })
		record(t, s, checkFrom("a", e, start, probe.Down), checkFrom("b", e, start, probe.Up))
		for status, want := range map[store.Status]int{store.StatusUp: 1, store.StatusDown: 0} {
			page, err := s.Endpoints(t.Context(), store.EndpointFilter{Status: status})
			if err != nil || len(page.Items) != want {
				t.Errorf("%d endpoints are %s, %v, want %d", len(page.Items), status, err, want)
			}
			for _, o := range page.Items {
				if len(o.Places) != 2 || o.LastCheck == nil {
					t.Errorf("listed %+v, want its places and last check", o)
				}
			}
		}
	})

	t.Run("an endpoint that is resumed starts again in all its places", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkFrom("a", e, start, probe.Down), checkFrom("b", e, start, probe.Up))
		pause(t, s, e)
		record(t, s, checkFrom("b", e, minutes(1), probe.Down))
		edit(t, s, e, func(e *store.Endpoint) { e.Paused = false })
		o := overview(t, s, e.Slug)
		for _, p := range append(o.Places, store.Place{State: o.State}) {
			if p.State.Status != store.StatusPending || p.State.LastCheckID == "" {
				t.Errorf("%q is %s, last check %q, want it pending after a check", p.Location, p.State.Status, p.State.LastCheckID)
			}
		}
		if got := uptime(t, s, e, store.Hourly, store.HourOf(start), minutes(60)); len(got) != 2 || got[1].Counts.Total() != 2 {
			t.Errorf("uptime %+v, want the running hours as they were", sumsOf(got))
		}
	})

	t.Run("each place has a last good transcript and bad ones of its own", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		say := func(location string, minute int, verdict probe.Verdict) store.Check {
			return store.NewCheck(e.ID, location, minutes(minute), spoken(e, minutes(minute), verdict, location).Result)
		}
		withWords := func(c store.Check, words string) store.Check {
			r := c.Result
			r.Transcript = []probe.Message{{Body: words}}
			return store.NewCheck(c.EndpointID, c.Location, c.ScheduledAt, r)
		}
		here, there := withWords(say("here", 0, probe.Up), "here"), withWords(say("there", 1, probe.Up), "there")
		bad := withWords(say("there", 2, probe.Down), "bad")
		record(t, s, here, there, bad)
		flood := make([]store.Check, 0, store.MaxBadTranscripts)
		for i := range store.MaxBadTranscripts {
			flood = append(flood, withWords(say("here", 3+i, probe.Down), "flood"))
		}
		record(t, s, flood...)
		for _, c := range []store.Check{here, there, bad, flood[0]} {
			if said(t, s, c) == nil {
				t.Errorf("the transcript of the %s check from %s at %v is gone", c.Result.Verdict, c.Location, c.ScheduledAt)
			}
		}
	})

	t.Run("one place speaks for the tool list, and what it saw is present", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		seen := func(location string, minute int, list []byte) store.Check {
			return store.NewCheck(e.ID, location, minutes(minute), promise(e, minute, "modern", list).Result)
		}
		record(t, s, seen("a", 0, tools("x")), seen("b", 1, tools("y")), seen("b", 2, tools("y")), seen("a", 3, tools("x")))
		found := contracts(t, s, e)
		if len(found) != 1 || !found[0].Present || !found[0].LastSeen.Equal(minutes(3)) {
			t.Fatalf("contracts %+v, want the one that a saw, last just now", found)
		}
		if c, err := s.Contract(t.Context(), found[0].ID); err != nil || !c.Present || !c.LastSeen.Equal(minutes(3)) {
			t.Errorf("Contract = %+v, %v, want it present", c, err)
		}
	})

	t.Run("an endpoint tells of one head, the newest of its places", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Node")
		for i, location := range []string{"b", "c", "a"} {
			at := minutes([]int{1, 2, 0}[i])
			head := &probe.Head{Chain: "1", Height: uint64(i), Seen: at}
			record(t, s, store.NewCheck(e.ID, location, at, headCheck(e, at, probe.Memory{Head: head}).Result))
		}
		got := heads(t, s, store.ChainKey(probe.KindEVM, "1"), start)
		if len(got) != 1 || got[0].Height != 1 || got[0].Endpoint != "Node" {
			t.Errorf("heads %+v, want that of the latest check", got)
		}
	})

	t.Run("the names of locations are kept as they are", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		names := []string{"eu west 1", "Fra", "fra", "zürich 🗻"}
		var checks []store.Check
		for _, name := range names {
			checks = append(checks, checkFrom(name, e, start, probe.Up))
		}
		record(t, s, checks...)
		var got []string
		for _, p := range overview(t, s, e.Slug).Places {
			got = append(got, p.Location)
		}
		if diff := cmp.Diff(got, []string{"Fra", "eu west 1", "fra", "zürich 🗻"}); diff != "" {
			t.Errorf("locations, byte by byte (-got +want):\n%s", diff)
		}
	})
}

func testClock(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("checks go on counting and judging after the clock was set back", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		now := store.Stamp(time.Now())
		ahead := now.Add(time.Hour)
		record(t, s, checkAt(e, ahead, probe.Up))
		for i, verdict := range []probe.Verdict{probe.Down, probe.Up, probe.Down} {
			at := now.Add(time.Duration(i-3) * time.Second)
			c := checkAt(e, at, verdict)
			out := record(t, s, c)[0]
			o := overview(t, s, e.Slug)
			if out.State.Status != store.Status(verdict) || o.Status() != store.Status(verdict) || o.State.LastCheckID != c.ID {
				t.Errorf("check %d: %+v, want it judged %s and the last one", i+1, out, verdict)
			}
			if opens := verdict == probe.Down; (out.Opened != "") != opens || (out.Resolved != "") == opens && i > 0 {
				t.Errorf("check %d opened %q and resolved %q", i+1, out.Opened, out.Resolved)
			}
		}
		for _, grain := range []store.Grain{store.Hourly, store.Daily} {
			var sum store.Counts
			for _, r := range uptime(t, s, e, grain, now.Add(-48*time.Hour), now.Add(48*time.Hour)) {
				sum = sum.Plus(r.Counts)
			}
			if want := (store.Counts{Up: 2, Down: 2}); sum != want {
				t.Errorf("%+v add up, want %+v", sum, want)
			}
			wantCounts(t, s, []string{e.ID}, grain, now.Add(-48*time.Hour), map[string]store.Counts{e.ID: {Up: 2, Down: 2}})
		}
	})

	t.Run("when the clock comes to where it was, its hours are merged with those that were counted ahead", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		hour := store.HourOf(time.Now()).Add(2 * time.Hour)
		record(t, s, checkAt(e, hour, probe.Up))                   // ahead
		record(t, s, checkAt(e, hour.Add(-3*time.Hour), probe.Up)) // set back
		record(t, s, checkAt(e, hour.Add(time.Minute), probe.Down))
		record(t, s, checkAt(e, hour.Add(time.Hour), probe.Up))
		got := sumsOf(uptime(t, s, e, store.Hourly, hour.Add(-3*time.Hour), hour.Add(2*time.Hour)))
		want := []sum{
			{e.ID, "default", hour.Add(-3 * time.Hour), store.Counts{Up: 1}},
			{e.ID, "default", hour, store.Counts{Up: 1, Down: 1}},
			{e.ID, "default", hour.Add(time.Hour), store.Counts{Up: 1}},
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("hours (-got +want):\n%s", diff)
		}
	})
}
