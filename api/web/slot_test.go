package web_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

func TestASlotSaysHowItWas(t *testing.T) {
	begin := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		slot         web.Slot
		level, words string
	}{
		{web.Slot{Uptime: per(100), Counts: store.Counts{Up: 60}}, "full", "21 Nov 2026: 100 % up"},
		{web.Slot{Uptime: per(100), Counts: store.Counts{Up: 58, Degraded: 2}}, "good", "21 Nov 2026: 100 % up, 2 degraded checks"},
		{web.Slot{Uptime: per(99.5), Counts: store.Counts{Up: 199, Down: 1}}, "good", "21 Nov 2026: 99.50 % up"},
		{web.Slot{Uptime: per(95), Counts: store.Counts{Up: 18, Degraded: 1, Down: 1}}, "poor", "21 Nov 2026: 95.00 % up, 1 degraded check"},
		{web.Slot{Uptime: per(100), Counts: store.Counts{Degraded: 60}}, "degraded", "21 Nov 2026: 100 % up, 60 degraded checks"},
		{web.Slot{Uptime: per(100), Counts: store.Counts{Up: 54, Degraded: 6, Unknown: 60}}, "degraded", "21 Nov 2026: 100 % up, 6 degraded checks"},
		{web.Slot{Uptime: per(98), Counts: store.Counts{Degraded: 49, Down: 1}}, "poor", "21 Nov 2026: 98.00 % up, 49 degraded checks"},
		{web.Slot{Uptime: per(0), Counts: store.Counts{Down: 9}}, "bad", "21 Nov 2026: 0 % up"},
		{web.Slot{Counts: store.Counts{Gated: 3, Unknown: 2}}, "unsure", "21 Nov 2026: no check could tell"},
		{web.Slot{Missed: true}, "none", "21 Nov 2026: not measured"},
		{web.Slot{Missed: true, Hour: true}, "none", "21 Nov, 03:00 UTC: not measured"},
		{web.Slot{Before: true}, "idle", "21 Nov 2026: not watched yet"},
		{web.Slot{Hour: true}, "idle", "21 Nov, 03:00 UTC: nothing was due"},
	} {
		tt.slot.Begin = begin
		if got := tt.slot.Level(); got != tt.level {
			t.Errorf("%+v: level %q, want %q", tt.slot, got, tt.level)
		}
		if got := tt.slot.Words().String(); got != tt.words {
			t.Errorf("%+v: %q, want %q", tt.slot, got, tt.words)
		}
	}
}

// Whoever cannot see the bars reads the same in their words, and in the table.
func TestAChartSaysInWordsAndInATableWhatWasNotMeasured(t *testing.T) {
	bars, cells := 0, 0
	for n := range elements(t, render(t, samples()["endpoint-down"])) {
		switch {
		case n.Data == "i" && attr(n, "class") == "d-none" && (n.Parent.Data == "a" || n.Parent.Data == "span"):
			bars++
			if words := textOf(n.Parent); !strings.HasSuffix(words, ": not measured") || attr(n.Parent, "title") != words {
				t.Errorf("a bar says %q, its title %q", words, attr(n.Parent, "title"))
			}
		case n.Data == "td" && textOf(n) == "not measured":
			cells++
		}
	}
	if bars != 2 || cells != 3 { // a day and an hour, which the table of latencies has as well
		t.Errorf("%d bars and %d rows say what was not measured, want 2 and 3", bars, cells)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// What is degraded differs from what is good and from what failed by shape, where colours are not seen: it stands in stripes.
func TestADegradedSlotIsDrawnInAShapeOfItsOwn(t *testing.T) {
	slots := []web.Slot{
		{Uptime: per(99.5), Counts: store.Counts{Up: 199, Down: 1}},
		{Uptime: per(100), Counts: store.Counts{Degraded: 60}},
		{Uptime: per(95), Counts: store.Counts{Up: 19, Down: 1}},
	}
	want := map[string]int{"good": 1, "degraded": 5, "poor": 1}
	row := web.EndpointRow{Hours: slots}
	for _, bar := range row.Bars() {
		if got := strings.Count(bar.Path, "M"); got != want[bar.Level] {
			t.Errorf("an hour that is %s is drawn in %d pieces: %s", bar.Level, got, bar.Path)
		}
	}
	days := web.DayBars(slots)
	for _, bar := range days.Paths() {
		if got := strings.Count(bar.Outline, "M"); got != want[bar.Level] {
			t.Errorf("a day that is %s is drawn in %d pieces: %s", bar.Level, got, bar.Outline)
		}
	}
	if days.Poor() != 1 || days.Degraded() != 1 || len(days.Paths()) != len(want) || len(row.Bars()) != len(want) {
		t.Errorf("%d days are poor and %d degraded, in %d levels", days.Poor(), days.Degraded(), len(days.Paths()))
	}
	if got, _ := row.HoursWords(); !strings.Contains(got.String(), "not flawless in 3") {
		t.Errorf("the hours are %q", got)
	}
}
