package web

import (
	"testing"
	"time"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	per := func(p float64) *float64 { return &p }
	for _, c := range []struct{ got, want string }{
		{english.latency(0), "0 ms"},
		{english.latency(40 * time.Microsecond), "<0.1 ms"},
		{english.latency(1240 * time.Microsecond), "1.2 ms"},
		{english.latency(84200 * time.Microsecond), "84 ms"},
		{english.latency(999600 * time.Microsecond), "1.00 s"},
		{english.latency(15 * time.Second), "15.0 s"},
		{english.milliseconds(-1), "–"},
		{english.percent(nil), "–"},
		{english.percent(per(100)), "100 %"},
		{english.percent(per(99.9999)), "99.99 %"}, // never rounded up to flawless
		{english.percent(per(99.93)), "99.93 %"},
		{english.percent(per(0)), "0 %"},
		{english.coverage(0), "not measured yet"},
		{english.coverage(0.2), "less than 1 % measured"},
		{english.coverage(41.9), "41 % measured"},
		{english.coverage(100), "fully measured"},
		{english.size(999), "999 B"},
		{english.size(18440), "18.4 kB"},
		{english.size(2_500_000), "2.5 MB"},
		{grouped(0), "0"},
		{grouped(999), "999"},
		{grouped(20831387), "20\u202f831\u202f387"},
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
		if got := english.lasting(d); got != want {
			t.Errorf("lasting(%s): got %q, want %q", d, got, want)
		}
	}
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{english.ago(at, time.Time{}), "never"},
		{english.ago(at, at.Add(time.Second)), "just now"},
		{english.ago(at, at.Add(-time.Minute)), "1 min ago"},
		{english.until(at, at.Add(9*24*time.Hour)), "in 9 days"},
		{english.until(at, at.Add(-time.Hour)), "1 h ago"},
		{english.stamp(time.Time{}), "never"},
		{english.stamp(at), "21 Nov 2026, 03:00:00 UTC"},
		{machine(at), "2026-11-21T03:00:00.000Z"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
