package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/scheduler"
)

func TestPeriod(t *testing.T) {
	for spec, want := range map[string]time.Duration{
		"@every 1s":                        time.Second,
		"@every 60s":                       time.Minute,
		"@every 1h30m":                     90 * time.Minute,
		"@hourly":                          time.Hour,
		"@daily":                           24 * time.Hour,
		"* * * * *":                        time.Minute,
		"*/5 * * * *":                      5 * time.Minute,
		"0,10,15 * * * *":                  5 * time.Minute,
		"0 8 * * *":                        24 * time.Hour,
		"0 8 * * 1-5":                      24 * time.Hour,
		"0 0 1 * *":                        28 * 24 * time.Hour,
		"CRON_TZ=Europe/Paris 0 8 * * 1":   7*24*time.Hour - time.Hour, // the week in which summer time begins
		"TZ=America/New_York */30 9 * * *": 30 * time.Minute,
	} {
		got, err := scheduler.Period(spec)
		if err != nil || got != want {
			t.Errorf("Period(%q) = %s, %v; want %s", spec, got, err, want)
		}
	}
}

func TestParseScheduleRefusesWhatItCannotKeep(t *testing.T) {
	for spec, want := range map[string]string{
		"":                    "cannot be read",
		"often":               "cannot be read",
		"61 * * * *":          "cannot be read",
		"* * * * * *":         "cannot be read",
		"*/0 * * * *":         "cannot be read",
		"@every 0s":           "longer than zero",
		"@every -5s":          "longer than zero",
		"@every 500ms":        "whole seconds",
		"@every 1500ms":       "whole seconds",
		"@every":              "cannot be read",
		"@every soon":         "no duration",
		"CRON_TZ=UTC":         "no schedule",
		"TZ=":                 "no schedule",
		"CRON_TZ=Nowhere/X @": "cannot be read",
		"0 0 30 2 *":          "never comes",
	} {
		_, err := scheduler.ParseSchedule(spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSchedule(%q) error = %v; want one that says %q", spec, err, want)
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, spec := range []string{"@every 60s", "*/5 * * * *", "CRON_TZ=UTC @hourly", "TZ=\t* * * * *", "1-2/3,4 * L * ?"} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := scheduler.ParseSchedule(spec)
		if err != nil {
			return
		}
		now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		if next := s.Next("ep_1", now); !next.IsZero() && !next.After(now) {
			t.Errorf("schedule %q: next after %s is %s", spec, now, next)
		}
		if period, err := scheduler.Period(spec); err != nil || period < 0 {
			t.Errorf("Period(%q) = %s, %v though it can be parsed", spec, period, err)
		}
	})
}

func TestEveryKeepsItsPhase(t *testing.T) {
	s, err := scheduler.ParseSchedule("@every 60s")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	first := s.Next("ep_1", start)
	for i, at := range []time.Time{first, first.Add(59 * time.Second), first.Add(time.Nanosecond)} {
		if got, want := s.Next("ep_1", at), first.Add(time.Minute); !got.Equal(want) {
			t.Errorf("case %d: due at %s, want %s", i, got, want)
		}
	}
	if got, want := s.Next("ep_1", first.Add(1000*time.Hour)), first.Add(1000*time.Hour+time.Minute); !got.Equal(want) {
		t.Errorf("after 1000 hours due at %s, want %s", got, want)
	}
}

func TestEveryIsSpreadOverThePeriod(t *testing.T) {
	s, err := scheduler.ParseSchedule("@every 60s")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	perSecond := map[int]int{}
	const endpoints = 6000
	for i := range endpoints {
		perSecond[int(s.Next("ep_"+strings.Repeat("x", i%7)+time.Duration(i).String(), start).Sub(start)/time.Second)]++
	}
	for second := range 60 {
		if n := perSecond[second]; n < 50 || n > 170 {
			t.Errorf("%d of %d endpoints fall due in second %d; want about 100", n, endpoints, second)
		}
	}
}
