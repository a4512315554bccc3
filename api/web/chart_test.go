package web_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var updateCharts = flag.Bool("update-charts", false, "write the golden files of charts anew")

// charted is a chart of some hours, or days, each made by at; nil is one in which nothing was measured.
func charted(n int, hourly bool, at func(i int) *web.Percentiles) web.LatencyChart {
	step := 24 * time.Hour
	if hourly {
		step = time.Hour
	}
	c := web.LatencyChart{Hourly: hourly, Steps: []string{"initialize", "tools/list"}}
	for i := range n {
		b := web.Bucket{Begin: now.Truncate(step).Add(time.Duration(i-n+1) * step), Whole: at(i)}
		if b.Whole == nil {
			b.Missed = true
		} else {
			b.Counts, b.Steps = store.Counts{Up: 60}, []float64{b.Whole.P50 * 0.7, b.Whole.P50 * 0.3}
		}
		c.Buckets = append(c.Buckets, b)
	}
	return c
}

func calmly(i int) *web.Percentiles {
	v := 80 + 8*math.Sin(float64(i)/3)
	return &web.Percentiles{P50: v, P90: 1.3 * v, P95: 1.5 * v, P99: 2 * v}
}

func TestChartsAreDrawn(t *testing.T) {
	hostile := charted(3, true, calmly)
	hostile.Steps = []string{`"><script>alert(1)</script>`, "\u202eevil\u202c"}
	hostile.Marks = []web.Mark{{Kind: "incident", Begin: before(2 * time.Hour), End: now, Open: true, Said: web.Say("%s", `</title><script>`), Link: "/incidents/inc_1", Tone: "down"}}
	for name, draw := range map[string]func() string{
		"no-data": func() string {
			return web.RenderPart("latency", web.EndpointPage{Slug: "weather", Latency: charted(24, true, func(int) *web.Percentiles { return nil })})
		},
		"one-point": func() string {
			return web.RenderPart("latency-chart", charted(24, true, func(i int) *web.Percentiles {
				if i != 20 {
					return nil
				}
				return calmly(i)
			}))
		},
		"gaps": func() string {
			return web.RenderPart("latency-chart", charted(24, true, func(i int) *web.Percentiles {
				if i > 3 && i < 8 || i == 23 {
					return nil
				}
				return calmly(i)
			}))
		},
		"spike": func() string {
			return web.RenderPart("latency-chart", charted(24, true, func(i int) *web.Percentiles {
				p := calmly(i)
				if i == 11 {
					p.P99 = 4e6
				}
				return p
			}))
		},
		"year":    func() string { return web.RenderPart("latency-chart", charted(365, false, calmly)) },
		"marks":   func() string { return web.RenderPart("latency-chart", latencyChart()) },
		"hostile": func() string { return web.RenderPart("latency-chart", hostile) },
		"phases":  func() string { return web.RenderPart("phase-chart", *phases().Phases) },
		"budget":  func() string { return web.RenderPart("objectives", objectives()) },
		"slots":   func() string { return web.RenderPart("history", past90()) },
		"fall":    func() string { return web.RenderPart("waterfall", badCheck("chk_1", time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			got := draw()
			if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") || strings.Contains(got, "ZgotmplZ") || strings.Contains(got, "%!") {
				t.Errorf("it holds what is no number or no text:\n%s", got)
			}
			golden := filepath.Join("testdata", "charts", name+".html")
			if *updateCharts {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("golden file and drawing differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A single hour would be a line without a length.
func TestAnHourThatStandsAloneCanBeSeen(t *testing.T) {
	c := charted(5, true, func(i int) *web.Percentiles {
		if i != 2 {
			return nil
		}
		return calmly(i)
	})
	for _, line := range c.Lines() {
		if !regexp.MustCompile(`^M\d+ \d+h[1-9]\d*$`).MatchString(line.Path) {
			t.Errorf("%s is drawn as %q", line.Name, line.Path)
		}
	}
}

// Otherwise a check of an hour's length would press all others flat.
func TestASpikeIsCutAndSaysSo(t *testing.T) {
	c := charted(48, true, func(i int) *web.Percentiles {
		p := calmly(i)
		if i == 30 {
			p.P99 = 3.6e6
		}
		return p
	})
	if top := c.Top(); top > 1000 {
		t.Errorf("the plot reaches to %v ms", top)
	}
	cut := c.Cut()
	if len(cut) != 1 || cut[0].MS != 3.6e6 {
		t.Errorf("cut are %+v", cut)
	}
	if slow := charted(48, true, func(i int) *web.Percentiles { return &web.Percentiles{P50: 1, P90: 1, P95: 1, P99: float64(i)} }); len(slow.Cut()) > 0 {
		t.Errorf("what grows slowly is cut at %v ms", slow.Top())
	}
}

func TestEverythingLiesWithinThePlot(t *testing.T) {
	number := regexp.MustCompile(`-?\d+`)
	for _, huge := range []float64{0, 1e-9, 0.1, 1, 999, 1e12, math.MaxFloat64, math.Inf(1), math.NaN(), -5} {
		c := charted(6, true, func(i int) *web.Percentiles {
			return &web.Percentiles{P50: huge, P90: huge * float64(i), P95: huge, P99: huge}
		})
		var drawn []string
		for _, s := range c.Stacks() {
			drawn = append(drawn, s.Path)
		}
		for _, l := range c.Lines() {
			drawn = append(drawn, l.Path)
		}
		for _, path := range drawn {
			for _, n := range number.FindAllString(path, -1) {
				if v, err := strconv.Atoi(n); err != nil || v < -60 || v > 1000 {
					t.Errorf("%v: %s lies outside in %q", huge, n, path)
				}
			}
		}
	}
}

func TestTheAxisOfLatencyHasNumbersThatReadWell(t *testing.T) {
	for p99, want := range map[float64][]string{
		0: {"0.1 ms", "0.075 ms", "0.05 ms", "0.025 ms", "0"}, 7: {"8 ms", "6 ms", "4 ms", "2 ms", "0"},
		160: {"160 ms", "120 ms", "80 ms", "40 ms", "0"}, 1001: {"1.2 s", "0.9 s", "0.6 s", "0.3 s", "0"}, 9000: {"10 s", "7.5 s", "5 s", "2.5 s", "0"},
	} {
		var got []string
		for _, tick := range charted(2, true, func(int) *web.Percentiles { return &web.Percentiles{P99: p99} }).Ticks() {
			got = append(got, tick.Label)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v ms (-want +got):\n%s", p99, diff)
		}
	}
}

func TestTheAxisOfTimeFitsAPhone(t *testing.T) {
	for n := 1; n <= 400; n++ {
		for _, hourly := range []bool{true, false} {
			if ticks := charted(n, hourly, calmly).Times(); len(ticks) > 6 || n > 48 && len(ticks) < 2 {
				t.Errorf("%d buckets, by the hour %v: %d labels", n, hourly, len(ticks))
			}
		}
	}
}

// Phases that say more than their step took must not make a bar longer than the check.
func TestPhasesNeverExceedTheirStep(t *testing.T) {
	check := web.CheckOf("chk_1", probe.Result{Verdict: probe.Up, Steps: []probe.Step{
		{Name: "a", Latency: 10 * time.Millisecond, Phases: probe.Phases{DNS: 8 * time.Millisecond, Connect: 8 * time.Millisecond, Body: -time.Hour}},
		{Name: "b", Latency: -time.Second},
	}})
	var got []string
	for _, part := range (web.PhaseChart{Checks: []web.Check{check}}).Hits()[0].Of {
		got = append(got, fmt.Sprintf("%s %v", part.Name, part.MS))
	}
	want := []string{"DNS 8", "connect 2", "TLS 0", "first byte 0", "body 0", "other 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkDrawAYear(b *testing.B) {
	c := charted(365, false, calmly)
	for b.Loop() {
		web.RenderPart("latency-chart", c)
	}
}
