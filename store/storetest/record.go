package storetest

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testRecord(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("a check comes back as it was seen", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		given := fullCheck(e)
		out := record(t, s, given)
		want := given
		want.Slug = e.Slug
		got, err := s.Check(t.Context(), given.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rounded(got), rounded(want)); diff != "" {
			t.Errorf("Check (-got +want):\n%s", diff)
		}
		o := overview(t, s, e.Slug)
		if o.LastCheck == nil {
			t.Fatal("the endpoint has no last check")
		}
		if diff := cmp.Diff(rounded(*o.LastCheck), rounded(want)); diff != "" {
			t.Errorf("last check (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(out[0].State, o.State); diff != "" {
			t.Errorf("state of the outcome (-outcome +kept):\n%s", diff)
		}
		if out[0].Slug != e.Slug {
			t.Errorf("slug of the outcome = %q, want that of the endpoint", out[0].Slug)
		}
		wantState := store.State{
			Status: store.StatusDown, Since: given.Result.StartedAt, Failure: given.Result.Failure,
			LastCheckID: given.ID, LastCheckAt: given.Result.StartedAt,
			LastVerdict: probe.Down, LastDuration: given.Result.Duration, Kind: probe.KindMCP, Era: probe.EraModern,
			Height: given.Result.Facts.Height, HeightSince: given.Result.StartedAt,
		}
		if diff := cmp.Diff(o.State, wantState); diff != "" {
			t.Errorf("state (-got +want):\n%s", diff)
		}
	})

	t.Run("words that nobody compressed are not kept, and times are kept to the microsecond", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		c := checkAt(e, start.Add(789), probe.Up)
		c.ScheduledAt = start.Add(999).In(time.FixedZone("east", 3600))
		c.Result.Transcript = []probe.Message{{Body: "hello"}}
		out := record(t, s, c)
		got := allChecks(t, s, e)[0]
		want := c
		want.Slug, want.ScheduledAt, want.Result.StartedAt, want.Result.Transcript = e.Slug, start, start, nil
		if diff := cmp.Diff(rounded(got), rounded(want)); diff != "" {
			t.Errorf("check (-got +want):\n%s", diff)
		}
		if !out[0].State.Since.Equal(start) {
			t.Errorf("since %v, want %v", out[0].State.Since, start)
		}
	})

	t.Run("hostile text is kept as far as text goes", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		for i, text := range []string{
			"a\x00b", "\xff\xfe", "'; DROP TABLE checks; --", `"\u0000"`, "\u2028<script>", strings.Repeat("💥", 10_000), "\xed\xa0\xbd",
		} {
			c := checkAt(e, minutes(i), probe.Down)
			r := &c.Result
			r.Failure = &probe.Failure{Step: text, Class: probe.ClassRPCError, Code: math.MinInt64, Message: text}
			r.Steps = []probe.Step{{Name: text, Method: text, Class: probe.ClassRPCError, Code: math.MaxInt64, Message: text}}
			r.Warnings = []probe.Warning{{Step: text, Message: text}}
			r.Facts = probe.Facts{ProtocolVersion: text, SupportedVersions: []string{text}, ServerName: text, ServerVersion: text, ChainID: text}
			far := time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)
			r.Facts.TLSExpiresAt = &far
			record(t, s, c)
			got, err := s.Check(t.Context(), c.ID)
			if err != nil {
				t.Fatalf("%.20q: %v", text, err)
			}
			want := store.CleanText(text)
			if got.Result.Steps[0].Name != want || got.Result.Failure.Message != want || got.Result.Facts.ServerName != want ||
				got.Result.Warnings[0].Message != want || got.Result.Steps[0].Code != math.MaxInt64 {
				t.Errorf("%.20q came back as %.200v", text, got.Result)
			}
			if c.Result.Steps[0].Name != text {
				t.Errorf("Record changed the caller's check")
			}
		}
	})

	t.Run("a change of status opens and resolves an incident, and tells each channel", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		e := newEndpoint(t, s, "Weather", to(ops, dev), func(e *store.Endpoint) { e.Confirm.Failures, e.Public = 2, true })
		first := checkAt(e, start, probe.Down)
		first.Result.Failure.Message = "first"
		if out := record(t, s, first); out[0].Opened != "" || out[0].State.Streak.Count != 1 {
			t.Fatalf("one bad check: %+v, want no incident and a streak of one", out[0])
		}
		opened := record(t, s, checkAt(e, minutes(1), probe.Down))[0]
		want := store.Incident{
			ID: opened.Opened, Kind: store.IncidentEndpoint, Subject: store.SubjectOf(e.ID), EndpointID: e.ID, Slug: e.Slug, Name: e.Name,
			Public: true, Severity: store.StatusDown, Worst: store.StatusDown,
			CheckID: checkAt(e, minutes(1), probe.Down).ID, SeenFrom: []string{"default"}, StartedAt: start, OpenedAt: minutes(1).Add(80 * time.Millisecond), Cause: *first.Result.Failure,
		}
		if diff := cmp.Diff(incident(t, s, opened.Opened), want); diff != "" {
			t.Errorf("open incident (-got +want):\n%s", diff)
		}
		if n := pending(t, s); n != 2 {
			t.Errorf("%d notices wait, want one per channel", n)
		}
		resolved := record(t, s, checkAt(e, minutes(2), probe.Up))[0]
		if resolved.Resolved != opened.Opened {
			t.Errorf("resolved %q, want %q", resolved.Resolved, opened.Opened)
		}
		end := minutes(2)
		want.ResolvedAt, want.Resolution = &end, store.ResolutionRecovered
		if diff := cmp.Diff(incident(t, s, opened.Opened), want); diff != "" {
			t.Errorf("resolved incident (-got +want):\n%s", diff)
		}
		if n := pending(t, s); n != 4 {
			t.Errorf("%d notices wait, want two per channel", n)
		}
	})

	t.Run("checks of a group are judged in the order given", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		other := newEndpoint(t, s, "Other")
		out := record(t, s,
			checkAt(e, start, probe.Down), checkAt(other, start, probe.Up),
			checkAt(e, minutes(1), probe.Up), checkAt(e, minutes(2), probe.Down))
		if out[0].Opened == "" || out[2].Resolved != out[0].Opened || out[3].Opened == "" || out[3].Opened == out[0].Opened {
			t.Fatalf("outcomes %+v, want an incident opened and resolved, and another one opened", out)
		}
		if out[1].Opened != "" || out[1].State.Status != store.StatusUp {
			t.Errorf("outcome of the other endpoint %+v, want it up", out[1])
		}
		if i := incident(t, s, out[0].Opened); i.ResolvedAt == nil || !i.ResolvedAt.Equal(minutes(1)) {
			t.Errorf("first incident %+v, want it resolved by the second check", i)
		}
		if i := incident(t, s, out[3].Opened); i.ResolvedAt != nil {
			t.Errorf("second incident %+v, want it open", i)
		}
		if n := pending(t, s); n != 3 {
			t.Errorf("%d notices wait, want 3", n)
		}
		if diff := cmp.Diff(overview(t, s, e.Slug).State, out[3].State); diff != "" {
			t.Errorf("state (-kept +last outcome):\n%s", diff)
		}
	})

	t.Run("an incident from before is resolved in a group that opens another", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		before := record(t, s, checkAt(e, start, probe.Down))[0].Opened
		out := record(t, s, checkAt(e, minutes(1), probe.Up), checkAt(e, minutes(2), probe.Down))
		if out[0].Resolved != before || out[1].Opened == "" {
			t.Errorf("outcomes %+v, want %s resolved and another one opened", out, before)
		}
	})

	t.Run("a slot is filled once", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		down := checkAt(e, start, probe.Down)
		elsewhere := checkFrom("elsewhere", e, start, probe.Up)
		twin := checkAt(e, start, probe.Up)
		out, err := s.Record(t.Context(), []store.Check{down, twin}, judge)
		if err != nil || !out[0].Kept || out[1].Kept {
			t.Fatalf("Record of twins = %+v, %v, want the first kept only", out, err)
		}
		out, err = s.Record(t.Context(), []store.Check{down, twin, elsewhere}, judge)
		if err != nil || out[0].Kept || out[1].Kept || !out[2].Kept {
			t.Fatalf("Record once more = %+v, %v, want the one from elsewhere kept only", out, err)
		}
		if n := len(allChecks(t, s, e)); n != 2 {
			t.Errorf("%d checks are kept, want 2", n)
		}
		counts, err := s.Counts(t.Context(), []string{e.ID}, store.Hourly, start.Add(-time.Hour))
		if want := (store.Counts{Up: 1, Down: 1}); err != nil || counts[e.ID] != want {
			t.Errorf("counts %+v, %v, want %+v", counts[e.ID], err, want)
		}
	})

	t.Run("a check of an endpoint that is gone is passed over", func(t *testing.T) {
		s := fresh(t).open(t)
		gone, here := newEndpoint(t, s, "Gone"), newEndpoint(t, s, "Here")
		if err := s.DeleteEndpoint(t.Context(), gone.Slug); err != nil {
			t.Fatal(err)
		}
		out, err := s.Record(t.Context(), []store.Check{checkAt(gone, start, probe.Down), checkAt(here, start, probe.Up)}, judge)
		if err != nil || len(out) != 2 || out[0].Kept || !out[1].Kept {
			t.Errorf("Record = %+v, %v, want the second kept only", out, err)
		}
	})

	t.Run("a late check is kept, and the last one stays the last", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		last := checkAt(e, minutes(5), probe.Up)
		record(t, s, last)
		record(t, s, checkAt(e, start, probe.Up))
		if o := overview(t, s, e.Slug); o.State.LastCheckID != last.ID || len(allChecks(t, s, e)) != 2 {
			t.Errorf("last check %s, want %s", o.State.LastCheckID, last.ID)
		}
	})

	t.Run("an empty group is nothing", func(t *testing.T) {
		s := fresh(t).open(t)
		if out, err := s.Record(t.Context(), nil, judge); err != nil || len(out) != 0 {
			t.Errorf("Record of nothing = %v, %v", out, err)
		}
	})

	t.Run("a verdict that does not exist is refused with the whole group", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		_, err := s.Record(t.Context(), []store.Check{checkAt(e, start, probe.Up), checkAt(e, minutes(1), "sideways")}, judge)
		wantInvalid(t, err, "checks[1].verdict")
		if n := len(allChecks(t, s, e)); n != 0 {
			t.Errorf("%d checks are kept, want none", n)
		}
	})

	t.Run("a judge that panics leaves nothing behind and nothing locked", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not come through")
				}
			}()
			_, _ = s.Record(t.Context(), []store.Check{checkAt(e, start, probe.Up)},
				store.Judge{Check: func(store.Endpoint, store.State, store.Check) store.State { panic("a mistake of ours") }})
		}()
		record(t, s, checkAt(e, start, probe.Up))
		if n := len(allChecks(t, s, e)); n != 1 {
			t.Errorf("%d checks are kept, want 1", n)
		}
	})
}

func testParallelRecord(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("groups at once, over the same endpoints in any order", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		endpoints := []store.Endpoint{newEndpoint(t, s, "a", to(ops)), newEndpoint(t, s, "b", to(ops)), newEndpoint(t, s, "c", to(ops))}
		const writers, groups = 6, 8
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for g := range groups {
					var checks []store.Check
					for i := range endpoints {
						e := endpoints[(i*(1+w%2)+w)%len(endpoints)]
						checks = append(checks, checkAt(e, start.Add(time.Duration(w*groups+g)*time.Second), probe.Down))
					}
					if _, err := s.Record(t.Context(), checks, judge); err != nil {
						t.Errorf("Record: %v", err)
					}
				}
			})
		}
		wg.Wait()
		ids := []string{endpoints[0].ID, endpoints[1].ID, endpoints[2].ID}
		counts, err := s.Counts(t.Context(), ids, store.Hourly, start.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range endpoints {
			if counts[e.ID].Down != writers*groups {
				t.Errorf("%s: %d down checks are counted, want %d", e.Name, counts[e.ID].Down, writers*groups)
			}
			page, err := s.Incidents(t.Context(), store.IncidentFilter{EndpointID: e.ID})
			if err != nil || len(page.Items) != 1 {
				t.Errorf("%s: %d incidents, %v, want one", e.Name, len(page.Items), err)
			}
		}
		if n := pending(t, s); n != len(endpoints) {
			t.Errorf("%d notices wait, want one per endpoint", n)
		}
	})

	t.Run("the same check brought by many is kept once", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		var kept sync.Map
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				out, err := s.Record(t.Context(), []store.Check{checkAt(e, start, probe.Up)}, judge)
				if err != nil {
					t.Errorf("Record: %v", err)
					return
				}
				if out[0].Kept {
					kept.Store(w, true)
				}
			})
		}
		wg.Wait()
		n := 0
		kept.Range(func(any, any) bool { n++; return true })
		if n != 1 || len(allChecks(t, s, e)) != 1 {
			t.Errorf("%d of 8 were kept and %d are there, want one", n, len(allChecks(t, s, e)))
		}
	})

	t.Run("checks are recorded while endpoints and channels come, change and go", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		var wg sync.WaitGroup
		for w := range 3 {
			wg.Go(func() {
				for i := range 10 {
					verdict := []probe.Verdict{probe.Down, probe.Up}[i%2]
					at := start.Add(time.Duration(i*3+w) * time.Second)
					if _, err := s.Record(t.Context(), []store.Check{checkAt(e, at, verdict)}, judge); err != nil {
						t.Errorf("Record: %v", err)
					}
				}
			})
		}
		wg.Go(func() {
			for i := range 10 {
				c, err := s.CreateChannel(t.Context(), store.Channel{
					Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://hooks.example/x"},
				})
				if err != nil {
					t.Errorf("CreateChannel: %v", err)
					return
				}
				_, err = s.UpdateEndpoint(t.Context(), e.Slug, func(e *store.Endpoint) error {
					e.Channels, e.Paused = []string{c.ID}, i%3 == 0
					return nil
				})
				if err != nil {
					t.Errorf("UpdateEndpoint: %v", err)
				}
				if err := s.DeleteChannel(t.Context(), c.ID); err != nil {
					t.Errorf("DeleteChannel: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				got, err := s.LeaseNotices(t.Context(), me, minutes(60), lease, 2)
				if err != nil {
					t.Errorf("LeaseNotices: %v", err)
				}
				for _, d := range got {
					end := store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: start, Permanent: true, Error: "x"}
					if err := s.SettleNotice(t.Context(), end); store.IsFailure(err) {
						t.Errorf("SettleNotice: %v", err)
					}
				}
			}
		})
		wg.Wait()
		if n := len(allChecks(t, s, e)); n != 30 {
			t.Errorf("%d checks are kept, want 30", n)
		}
		if n := pending(t, s); n != 0 {
			t.Errorf("%d notices wait for channels that are gone", n)
		}
	})
}

// fullCheck returns a check of e with every member filled in.
func fullCheck(e store.Endpoint) store.Check {
	tools, height := 13, uint64(math.MaxUint64)
	expires := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	c := checkAt(e, start.Add(-250*time.Millisecond), probe.Down)
	c.Result = probe.Result{
		StartedAt: start,
		Duration:  84*time.Millisecond + 201*time.Microsecond,
		Kind:      probe.KindMCP,
		Era:       probe.EraModern,
		Verdict:   probe.Down,
		Failure:   &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error"},
		Steps: []probe.Step{
			{
				Name: "initialize", Method: "initialize", Start: time.Microsecond, Latency: 31*time.Millisecond + time.Microsecond,
				Phases: probe.Phases{
					DNS: time.Microsecond, Connect: 2 * time.Millisecond, TLS: 3 * time.Microsecond, FirstByte: 4 * time.Microsecond,
					Body: 5 * time.Second,
				},
				HTTPStatus: 200, BytesIn: 512, BytesOut: 1 << 40,
			},
			{
				Name: "tools/list", Method: "tools/list", Start: 40 * time.Millisecond, Latency: 50 * time.Millisecond,
				HTTPStatus: 200, Class: probe.ClassRPCError, Code: -32603, Message: "Internal error",
			},
		},
		Warnings: []probe.Warning{{Step: "initialized", Class: probe.ClassHTTPStatus, Code: 200, Message: "200 where 202 is due"}},
		Facts: probe.Facts{
			ProtocolVersion: "2025-11-25", SupportedVersions: []string{"2026-07-28", "2025-11-25"}, Era: probe.EraModern,
			ServerName: "weather", ServerVersion: "1.2", Tools: &tools, Height: &height, ChainID: "1",
			TLSExpiresAt: &expires, RemoteAddr: "192.0.2.1:443",
		},
		RetryAfter: 30 * time.Second,
	}
	return c
}

// rounded returns c with its times as exact as every database keeps them at least.
func rounded(c store.Check) store.Check {
	c.Result = store.Rounded(c.Result)
	return c
}
