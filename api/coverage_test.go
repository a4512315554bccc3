package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// rolled is a database of one endpoint and its roll-ups.
type rolled struct {
	store.Store
	endpoint store.Endpoint
	rollups  []store.Rollup
	asked    []string // what was read of it
	fails    error
}

func (d *rolled) Endpoint(context.Context, string) (store.Overview, error) {
	d.asked = append(d.asked, "endpoint")
	return store.Overview{Endpoint: d.endpoint}, d.fails
}

func (d *rolled) Uptime(_ context.Context, _ string, grain store.Grain, from, to time.Time) ([]store.Rollup, error) {
	d.asked = append(d.asked, fmt.Sprintf("%s of %s", map[store.Grain]string{store.Hourly: "hours", store.Daily: "days"}[grain], to.Sub(from)))
	parts := slices.DeleteFunc(slices.Clone(d.rollups), func(r store.Rollup) bool { return r.Begin.Before(from) || !r.Begin.Before(to) })
	return parts, d.fails
}

func (d *rolled) Endpoints(context.Context, store.EndpointFilter) (store.Page[store.Overview], error) {
	d.asked = append(d.asked, "endpoints")
	return store.Page[store.Overview]{Items: []store.Overview{{Endpoint: d.endpoint}}}, d.fails
}

func (d *rolled) Counts(_ context.Context, ids []string, grain store.Grain, from time.Time) (map[string]store.Counts, error) {
	d.asked = append(d.asked, fmt.Sprintf("counts of %s", time.Since(from)))
	counts := map[string]store.Counts{}
	for _, r := range d.rollups {
		counts[r.EndpointID] = counts[r.EndpointID].Plus(r.Counts)
	}
	return counts, d.fails
}

func (d *rolled) Latencies(_ context.Context, ids []string, grain store.Grain, from time.Time) (map[string]store.Latencies, error) {
	d.asked = append(d.asked, fmt.Sprintf("latencies of %s", time.Since(from)))
	return nil, d.fails
}

func (d *rolled) Incidents(context.Context, store.IncidentFilter) (store.Page[store.Incident], error) {
	return store.Page[store.Incident]{}, nil
}

func (d *rolled) PublicEntries(context.Context, []string) (map[string][]store.Entry, error) {
	return nil, nil
}

func (d *rolled) Maintenances(context.Context, time.Time) ([]store.Maintenance, error) {
	return nil, nil
}

// checks adds a roll-up of an hour or day.
func (d *rolled) checks(begin time.Time, location string, n int) {
	d.rollups = append(d.rollups, store.Rollup{EndpointID: "ep_1", Location: location, Begin: begin, Counts: store.Counts{Up: n}})
}

// due counts when an endpoint is due.
func due(schedule, id string) func(from, to time.Time) int {
	s, err := scheduler.ParseSchedule(schedule)
	return func(from, to time.Time) int {
		n := 0
		for at := s.Next(id, from.Add(-1)); err == nil && at.Before(to); at = s.Next(id, at) {
			n++
		}
		return n
	}
}

// shownBy returns what a server on two databases answers to somebody with a token.
func shownBy(t *testing.T, path string, edit func(*api.Config)) string {
	t.Helper()
	cfg := api.Config{
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Location: "default", AdminToken: adminToken,
		Probe:       func(context.Context, probe.Target) probe.Result { return healthy() },
		CheckNow:    func(context.Context, string) (store.Check, error) { return store.Check{}, nil },
		Changed:     func(context.Context, string, string) {},
		Period:      scheduler.Period,
		TestChannel: func(context.Context, store.Channel) error { return nil },
		Backlog:     func() int { return 0 },
	}
	edit(&cfg)
	s, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	q := httptest.NewRequest(http.MethodGet, path, nil)
	q.Header.Set("Authorization", "Bearer "+adminToken)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, q)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// TestCoverage goes by a clock that stands at noon of the 20th of January, with an endpoint registered at noon of the
// 10th and due once a minute. Hours and days are numbered from the beginning of the 19th and of the month.
func TestCoverage(t *testing.T) {
	hours := func(d *rolled, location string, n, from, to int) {
		for h := from; h < to; h++ {
			d.checks(jan(19).Add(time.Duration(h)*time.Hour), location, n)
		}
	}
	tests := []struct {
		name, window string
		fill         func(d *rolled)
		want         float64
		gaps         []string
	}{
		{"every check was made", "24h", func(d *rolled) { hours(d, "fra", 60, 12, 36) }, 100, nil},
		{"nothing was made", "24h", func(*rolled) {}, 0, []string{"19 12:00-20 12:00"}},
		{"half of the checks of each hour", "24h", func(d *rolled) { hours(d, "fra", 30, 12, 36) }, 50, nil},
		{"a quarter of the hours is missing", "24h", func(d *rolled) {
			hours(d, "fra", 60, 12, 18)
			hours(d, "fra", 60, 24, 36)
		}, 75, []string{"19 18:00-20 00:00"}},
		{"confirmations in one hour do not make up for another", "24h", func(d *rolled) {
			hours(d, "fra", 120, 12, 24)
			hours(d, "fra", 120, 30, 36)
		}, 75, []string{"20 00:00-20 06:00"}},
		{"an hour of unknown checks was measured", "24h", func(d *rolled) {
			hours(d, "fra", 60, 12, 36)
			d.rollups[3].Counts = store.Counts{Unknown: 60}
		}, 100, nil},
		{"two gaps", "24h", func(d *rolled) {
			hours(d, "fra", 60, 12, 14)
			hours(d, "fra", 60, 15, 35)
		}, 91.673, []string{"19 14:00-19 15:00", "20 11:00-20 12:00"}},
		{"whole days", "30d", func(d *rolled) {
			d.checks(jan(10), "fra", 720)
			for day := 11; day < 20; day++ {
				if day != 15 && day != 16 {
					d.checks(jan(day), "fra", 1440)
				}
			}
			d.checks(jan(20), "fra", 720)
		}, 80.001, []string{"15 00:00-17 00:00"}},
		{"nothing was due before the registration", "365d", func(d *rolled) {
			for day := 10; day <= 20; day++ {
				d.checks(jan(day), "fra", 1440)
			}
		}, 100, nil},

		{"two locations, one silent from some hour on", "24h", func(d *rolled) {
			for h := 12; h < 36; h++ {
				d.checks(jan(19).Add(time.Duration(h)*time.Hour), "ams", 60)
				if h < 24 {
					d.checks(jan(19).Add(time.Duration(h)*time.Hour), "fra", 60)
				}
			}
		}, 75.007, nil},
		{"a location that joined counts from then on", "24h", func(d *rolled) {
			for h := 12; h < 36; h++ {
				d.checks(jan(19).Add(time.Duration(h)*time.Hour), "ams", 60)
				if h >= 24 {
					d.checks(jan(19).Add(time.Duration(h)*time.Hour), "fra", 60)
				}
			}
		}, 100, nil},
		{"a location that the endpoint names and nobody probes from", "24h", func(d *rolled) {
			d.endpoint.Locations = []string{"ams", "fra"}
			hours(d, "ams", 60, 12, 36)
		}, 50, nil},
		{"a location that the endpoint no longer names counts until its last check", "24h", func(d *rolled) {
			d.endpoint.Locations = []string{"ams"}
			for h := 12; h < 36; h++ {
				d.checks(jan(19).Add(time.Duration(h)*time.Hour), "ams", 60)
				if h < 20 {
					d.checks(jan(19).Add(time.Duration(h)*time.Hour), "fra", 60)
				}
			}
		}, 100, nil},

		{"a calendar schedule is due when it says", "24h", func(d *rolled) {
			d.endpoint.Schedule = "0 9-17 * * *"
			for _, h := range []int{12, 13, 14, 15, 16, 17, 33, 34, 35} { // the one at noon today is still under way
				d.checks(jan(19).Add(time.Duration(h)*time.Hour), "fra", 1)
			}
		}, 100, nil},
		{"a calendar schedule that was missed", "24h", func(d *rolled) {
			d.endpoint.Schedule = "0 9-17 * * *"
			for _, h := range []int{12, 13, 17, 33, 34, 35} {
				d.checks(jan(19).Add(time.Duration(h)*time.Hour), "fra", 1)
			}
		}, 66.666, []string{"19 14:00-19 17:00"}},
		{"a schedule longer than an hour leaves no gaps", "24h", func(d *rolled) {
			d.endpoint.Schedule = "0 */6 * * *"
			for _, h := range []int{12, 18, 24, 30} {
				d.checks(jan(19).Add(time.Duration(h)*time.Hour), "fra", 1)
			}
		}, 100, nil},
		{"nothing is due while it is paused", "24h", func(d *rolled) {
			d.endpoint.Paused, d.endpoint.UpdatedAt = true, jan(20)
			hours(d, "fra", 60, 12, 24)
		}, 100, nil},
		{"the latest hundred gaps are told", "365d", func(d *rolled) {
			d.endpoint.CreatedAt = jan(1).AddDate(-2, 0, 0)
			for day := jan(20).AddDate(0, 0, -364); day.Before(jan(21)); day = day.AddDate(0, 0, 2) {
				d.checks(day, "fra", 1440)
			}
		}, 50.068, slices.Repeat([]string{"…"}, 100)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(jan(20).Add(12 * time.Hour)))
				e := store.NewEndpoint()
				e.ID, e.Slug, e.CreatedAt = "ep_1", "a", jan(10).Add(12*time.Hour)
				d := &rolled{endpoint: e}
				tt.fill(d)
				body := shownBy(t, "/api/v1/endpoints/a/uptime?window="+tt.window, func(c *api.Config) { c.Store, c.Due = d, due })
				var got struct {
					Coverage float64
					Gaps     []struct{ From, To time.Time }
				}
				if err := json.Unmarshal([]byte(body), &got); err != nil {
					t.Fatal(err)
				}
				// The id decides at which second of a minute the endpoint is due, which may make a check more or less.
				if got.Coverage < tt.want-0.05 || got.Coverage > tt.want+0.05 {
					t.Errorf("coverage %v, want %v", got.Coverage, tt.want)
				}
				var gaps []string
				for _, g := range got.Gaps {
					text := g.From.Format("2 15:04-") + g.To.Format("2 15:04")
					if len(got.Gaps) == 100 {
						text = "…"
					}
					gaps = append(gaps, text)
				}
				if diff := cmp.Diff(gaps, tt.gaps); diff != "" {
					t.Errorf("gaps (-got +want):\n%s", diff)
				}
			})
		})
	}
}

// jan is the beginning of a day of January 2000, when clocks in a bubble begin to run.
func jan(day int) time.Time { return time.Date(2000, 1, day, 0, 0, 0, 0, time.UTC) }

func TestWithoutASchedulerAtHandThePeriodSaysWhatWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jan(20).Add(12 * time.Hour)))
		e := store.NewEndpoint()
		e.ID, e.Slug, e.CreatedAt, e.Schedule = "ep_1", "a", jan(10), "@every 7m"
		d := &rolled{endpoint: e}
		for h := 12; h < 36; h++ {
			d.checks(jan(19).Add(time.Duration(h)*time.Hour), "fra", 8+h%2)
		}
		body := shownBy(t, "/api/v1/endpoints/a/uptime", func(c *api.Config) { c.Store = d })
		var got uptime
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if got.Coverage < 99 {
			t.Errorf("coverage %v, want about 100", got.Coverage)
		}
	})
}

func TestAYearIsOneQueryOfDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jan(20).Add(12 * time.Hour)))
		e := store.NewEndpoint()
		e.ID, e.Slug, e.CreatedAt, e.Public = "ep_1", "a", jan(1).AddDate(-3, 0, 0), true
		for path, want := range map[string][]string{
			"/api/v1/endpoints/a/uptime?window=365d": {"endpoint", "days of 8748h0m0s"}, // 364 days and 12 hours
			"/api/v1/endpoints/a/uptime?window=30d":  {"endpoint", "days of 708h0m0s"},
			"/api/v1/endpoints/a/uptime?window=7d":   {"endpoint", "hours of 168h0m0s"},
			"/badge/a/uptime.json":                   {"endpoints", "counts of 708h0m0s"},
			"/badge/a/latency.json":                  {"endpoints", "latencies of 24h0m0s"},
		} {
			d := &rolled{endpoint: e}
			shownBy(t, path, func(c *api.Config) { c.Store = d })
			if !slices.Equal(d.asked, want) {
				t.Errorf("%s reads %q, want %q", path, d.asked, want)
			}
		}
	})
}

func TestThePublicPageShowsWhatWasNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jan(20).Add(12 * time.Hour)))
		e := store.NewEndpoint()
		e.ID, e.Slug, e.Public, e.CreatedAt = "ep_1", "a", true, jan(10)
		d := &rolled{endpoint: e}
		for day := 10; day <= 20; day++ {
			if day != 15 {
				d.checks(jan(day), "fra", 1440)
			}
		}
		page := shownBy(t, "/status/a", func(c *api.Config) { c.Store, c.Due = d, due })
		for text, want := range map[string]int{
			"15 Jan 2000: not measured</span>":               1,
			": not measured</span>":                          1,
			": not watched yet</span>":                       79,
			"20 Jan 2000: 100 % up</span>":                   1,
			`<td class="none" colspan="5">not measured</td>`: 1,
		} {
			if got := strings.Count(page, text); got != want {
				t.Errorf("the page says %q %d times, want %d", text, got, want)
			}
		}
		if want := []string{"endpoint", "days of 2148h0m0s", "hours of 168h0m0s"}; !sameWords(d.asked, want) {
			t.Errorf("the page reads %q, want %q: one query for all hours and one for all days", d.asked, want)
		}
	})
}

// sameWords reports whether two lists hold the same in some order.
func sameWords(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestPagesAreReadFromTheReplicaWhileItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Minute)
		e := store.NewEndpoint()
		e.ID, e.Slug, e.Public = "ep_1", "a", true
		primary, replica := &rolled{endpoint: e}, &rolled{endpoint: e}
		primary.checks(store.HourOf(time.Now()), "default", 1)
		replica.checks(store.HourOf(time.Now()), "default", 1)
		var log strings.Builder
		both := func(c *api.Config) {
			c.Store, c.Pages, c.Log = primary, replica, slog.New(slog.NewTextHandler(&log, nil))
		}
		shownBy(t, "/badge/a/uptime.json", both)
		if len(primary.asked) != 0 || len(replica.asked) != 2 {
			t.Errorf("a badge read %q of the database and %q of the replica", primary.asked, replica.asked)
		}
		shownBy(t, "/api/v1/endpoints/a/uptime", both)
		if !slices.Equal(primary.asked, []string{"endpoint"}) || len(replica.asked) != 3 {
			t.Errorf("the REST API read %q of the database and %q of the replica, want the roll-ups from there only", primary.asked, replica.asked)
		}
		primary.asked, replica.asked, replica.fails = nil, nil, fmt.Errorf("replica is gone")
		if got := shownBy(t, "/badge/a/uptime.json", both); !strings.Contains(got, "100%") {
			t.Errorf("without the replica the badge says %s", got)
		}
		if len(primary.asked) != 2 || !slices.Equal(replica.asked, []string{"endpoints"}) || strings.Count(log.String(), "replica does not answer") != 1 {
			t.Errorf("read %q of the database and %q of the replica, which is to be left alone for a while; log: %s", primary.asked, replica.asked, &log)
		}
		primary.asked, replica.asked, replica.fails = nil, nil, store.ErrNotFound
		shownBy(t, "/badge/b/uptime.json", both)
		if len(primary.asked) != 0 {
			t.Errorf("read %q of the database though the replica answered that there is none", primary.asked)
		}
	})
}
