package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// spoken returns a check with a transcript.
func spoken(e store.Endpoint, at time.Time, verdict probe.Verdict, words string) store.Check {
	r := checkAt(e, at, verdict).Result
	r.Transcript = []probe.Message{
		{Step: "initialize", Sent: true, Head: "POST / HTTP/1.1", Body: words},
		{Step: "initialize", At: 20 * time.Millisecond, Head: "HTTP/1.1 200 OK", Body: "aye", Clipped: true},
	}
	return store.NewCheck(e.ID, "default", at, r)
}

func testTranscripts(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("the transcript of a failed check comes back with it, and not in lists", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		c := spoken(e, start, probe.Degraded, "hello \x00 world")
		record(t, s, c)
		want := []probe.Message{
			{Step: "initialize", Sent: true, Head: "POST / HTTP/1.1", Body: "hello \x00 world"},
			{Step: "initialize", At: 20 * time.Millisecond, Head: "HTTP/1.1 200 OK", Body: "aye", Clipped: true},
		}
		if diff := cmp.Diff(said(t, s, c), want); diff != "" {
			t.Errorf("transcript (-got +want):\n%s", diff)
		}
		if listed := allChecks(t, s, e)[0]; listed.Transcript != nil || overview(t, s, e.Slug).LastCheck.Transcript != nil {
			t.Error("a list holds a transcript")
		}
	})

	t.Run("of good checks the last one is kept, replaced every ten minutes", func(t *testing.T) {
		s := fresh(t).open(t)
		e, other := newEndpoint(t, s, "Weather"), newEndpoint(t, s, "Other")
		elsewhere := spoken(other, start, probe.Up, "elsewhere")
		first, soon := spoken(e, start, probe.Up, "first"), spoken(e, start.Add(10*time.Minute-time.Second), probe.Up, "soon")
		record(t, s, first, soon, elsewhere)
		if said(t, s, first) == nil || said(t, s, soon) != nil {
			t.Error("want the transcript of the first check, and none of one that comes soon after it")
		}
		later, bad := spoken(e, minutes(10), probe.Up, "later"), spoken(e, minutes(11), probe.Down, "bad")
		record(t, s, later, bad)
		if said(t, s, first) != nil || said(t, s, later) == nil || said(t, s, bad) == nil || said(t, s, elsewhere) == nil {
			t.Error("want the transcripts of the last good check of each endpoint and of the bad one")
		}
	})

	t.Run("that of a good check is kept as the last good one when somebody asked for the check", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		first, asked, soon := spoken(e, start, probe.Up, "first"), spoken(e, minutes(1), probe.Up, "asked"), spoken(e, minutes(10), probe.Up, "soon")
		asked.Asked = true
		record(t, s, first, asked, soon)
		if said(t, s, first) != nil || said(t, s, asked) == nil || said(t, s, soon) != nil {
			t.Error("want the transcript of the check that was asked for, and of none that comes soon after it")
		}
		if at := overview(t, s, e.Slug).State.TranscriptAt; !at.Equal(asked.Result.StartedAt) {
			t.Errorf("the last good transcript is of %s, want %s", at, asked.Result.StartedAt)
		}
	})

	t.Run("of bad checks the newest are kept", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather")
		var checks []store.Check
		for i := range store.MaxBadTranscripts + 2 {
			checks = append(checks, spoken(e, minutes(i), probe.Down, "bad"))
		}
		record(t, s, checks...)
		if said(t, s, checks[1]) != nil || said(t, s, checks[2]) == nil || count(t, db, "transcripts") != store.MaxBadTranscripts {
			t.Errorf("%d transcripts are kept, want the newest %d", count(t, db, "transcripts"), store.MaxBadTranscripts)
		}
	})

	t.Run("a transcript goes with its check", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, spoken(e, start, probe.Down, "bad"), spoken(e, start.Add(time.Second), probe.Up, "good"))
		tend(t, s, minutes(24*60), time.Time{})
		_, err := s.Check(t.Context(), store.CheckID(e.ID, "default", start))
		wantNotFound(t, "Check", err)
		if n := count(t, db, "transcripts"); n != 0 {
			t.Errorf("%d transcripts are left", n)
		}
	})

	t.Run("a check that was kept already brings no transcript", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkAt(e, start, probe.Up))
		if _, err := s.Record(t.Context(), []store.Check{spoken(e, start, probe.Down, "twin")}, judge); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, "transcripts"); n != 0 {
			t.Errorf("%d transcripts are kept, want none", n)
		}
	})

	t.Run("a flood of words is bounded and says so", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		c := spoken(e, start, probe.Down, strings.Repeat("flood ", 1<<20))
		record(t, s, c)
		got := said(t, s, c)
		if len(got) != 2 || !got[0].Clipped || len(got[0].Body) > 1<<20 || got[1].Body != "" {
			t.Errorf("%d messages, want two, the first cut", len(got))
		}
	})
}

func said(t testing.TB, s store.Store, c store.Check) []probe.Message {
	t.Helper()
	got, err := s.Check(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := got.Transcript.Messages()
	if err != nil {
		t.Fatal(err)
	}
	return messages
}
