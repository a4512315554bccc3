package web_test

import (
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api/web"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	per := func(p float64) *float64 { return &p }
	for _, c := range []struct{ got, want string }{
		{web.Latency(0), "0 ms"},
		{web.Latency(40 * time.Microsecond), "<0.1 ms"},
		{web.Latency(1240 * time.Microsecond), "1.2 ms"},
		{web.Latency(84200 * time.Microsecond), "84 ms"},
		{web.Latency(999600 * time.Microsecond), "1.00 s"},
		{web.Latency(15 * time.Second), "15.0 s"},
		{web.Milliseconds(-1), "–"},
		{web.Percent(nil), "–"},
		{web.Percent(per(100)), "100 %"},
		{web.Percent(per(99.9999)), "99.99 %"}, // never rounded up to flawless
		{web.Percent(per(99.93)), "99.93 %"},
		{web.Percent(per(0)), "0 %"},
		{web.Coverage(0), "not measured yet"},
		{web.Coverage(0.2), "less than 1 % measured"},
		{web.Coverage(41.9), "41 % measured"},
		{web.Coverage(100), "fully measured"},
		{web.Size(999), "999 B"},
		{web.Size(18440), "18.4 kB"},
		{web.Size(2_500_000), "2.5 MB"},
		{web.Grouped(0), "0"},
		{web.Grouped(999), "999"},
		{web.Grouped(20831387), "20\u202f831\u202f387"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestDurationsAreWrittenInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                   "0 s",
		12 * time.Second:               "12 s",
		4*time.Minute + 10*time.Second: "4 min 10 s",
		5 * time.Minute:                "5 min",
		42*time.Minute + 9*time.Second: "42 min",
		3*time.Hour + 20*time.Minute:   "3 h 20 min",
		25 * time.Hour:                 "1 day 1 h",
		48 * time.Hour:                 "2 days",
		40 * 24 * time.Hour:            "40 days",
	} {
		if got := web.Lasting(d); got != want {
			t.Errorf("lasting(%s): got %q, want %q", d, got, want)
		}
	}
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{web.Ago(at, time.Time{}), "never"},
		{web.Ago(at, at.Add(time.Second)), "just now"},
		{web.Ago(at, at.Add(-time.Minute)), "1 min ago"},
		{web.Until(at, at.Add(9*24*time.Hour)), "in 9 days"},
		{web.Until(at, at.Add(-time.Hour)), "1 h ago"},
		{web.Stamp(time.Time{}), "never"},
		{web.Stamp(at), "21 Nov 2026, 03:00:00 UTC"},
		{web.Machine(at), "2026-11-21T03:00:00.000Z"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
