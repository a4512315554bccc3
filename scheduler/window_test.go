package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

func TestWindows(t *testing.T) {
	at := func(text string) time.Time {
		t.Helper()
		parsed, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	nightly := store.Maintenance{StartsAt: at("2026-11-20 12:00"), Schedule: "30 23 * * *", Duration: time.Hour}
	ended := nightly
	ended.EndsAt = at("2026-11-21 23:30")
	clocks := store.Maintenance{StartsAt: at("2026-10-01 00:00"), Schedule: "CRON_TZ=Europe/Berlin 0 4 * * *", Duration: 30 * time.Minute}
	for name, c := range map[string]struct {
		m           store.Maintenance
		from, until string
		want        [][2]string
	}{
		"once, under way": {
			store.Maintenance{StartsAt: at("2026-11-21 10:00"), EndsAt: at("2026-11-21 12:00")}, "2026-11-21 11:00", "2026-11-21 11:30",
			[][2]string{{"2026-11-21 10:00", "2026-11-21 12:00"}},
		},
		"once, over": {
			store.Maintenance{StartsAt: at("2026-11-21 10:00"), EndsAt: at("2026-11-21 12:00")}, "2026-11-21 12:00", "2026-11-21 13:00", nil,
		},
		"nightly, over midnight": {
			nightly, "2026-11-22 00:10", "2026-11-23 00:00",
			[][2]string{{"2026-11-21 23:30", "2026-11-22 00:30"}, {"2026-11-22 23:30", "2026-11-23 00:30"}},
		},
		"nightly, before the first":       {nightly, "2026-11-19 00:00", "2026-11-20 23:00", nil},
		"nightly, none begins at the end": {ended, "2026-11-21 00:00", "2026-11-25 00:00", [][2]string{{"2026-11-20 23:30", "2026-11-21 00:30"}}},
		"by the clock of its zone": {
			clocks, "2026-10-24 00:00", "2026-10-26 12:00",
			[][2]string{{"2026-10-24 02:00", "2026-10-24 02:30"}, {"2026-10-25 03:00", "2026-10-25 03:30"}, {"2026-10-26 03:00", "2026-10-26 03:30"}},
		},
		"a schedule that nobody can read": {store.Maintenance{Schedule: "often", Duration: time.Hour}, "2026-11-21 00:00", "2026-11-22 00:00", nil},
	} {
		var got [][2]string
		for _, w := range scheduler.Windows(c.m, at(c.from), at(c.until)) {
			got = append(got, [2]string{w.Begin.UTC().Format("2006-01-02 15:04"), w.End.UTC().Format("2006-01-02 15:04")})
			if !w.Holds(w.Begin) || w.Holds(w.End) {
				t.Errorf("%s: a window holds its begin, not its end", name)
			}
		}
		if diff := cmp.Diff(got, c.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}
