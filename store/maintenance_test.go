package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func TestAMaintenanceIsCheckedAsAWhole(t *testing.T) {
	nightly := func(m *store.Maintenance) { m.EndsAt, m.Schedule, m.Duration = time.Time{}, "0 3 * * *", time.Hour }
	daily := func(schedule string) (time.Duration, error) {
		if schedule == "never" {
			return 0, errors.New("never comes")
		}
		return 24 * time.Hour, nil
	}
	for name, test := range map[string]struct {
		edit   func(*store.Maintenance)
		fields []string
	}{
		"once":              {func(*store.Maintenance) {}, nil},
		"again and again":   {nightly, nil},
		"until a day":       {func(m *store.Maintenance) { nightly(m); m.EndsAt = start.AddDate(0, 1, 0) }, nil},
		"nothing":           {func(m *store.Maintenance) { *m = store.Maintenance{} }, []string{"title", "starts_at", "ends_at", "endpoints"}},
		"ends too early":    {func(m *store.Maintenance) { m.EndsAt = start }, []string{"ends_at"}},
		"ends too late":     {func(m *store.Maintenance) { m.EndsAt = start.AddDate(2, 0, 0) }, []string{"ends_at"}},
		"once for so long":  {func(m *store.Maintenance) { m.Duration = time.Hour }, []string{"duration"}},
		"a long story":      {func(m *store.Maintenance) { m.Text = strings.Repeat("ä", 4001) }, []string{"text"}},
		"no such schedule":  {func(m *store.Maintenance) { nightly(m); m.Schedule = "never" }, []string{"schedule"}},
		"every so often":    {func(m *store.Maintenance) { nightly(m); m.Schedule = "@every 24h" }, []string{"schedule"}},
		"for no time":       {func(m *store.Maintenance) { nightly(m); m.Duration = 0 }, []string{"duration"}},
		"without a break":   {func(m *store.Maintenance) { nightly(m); m.Duration = 24 * time.Hour }, []string{"duration"}},
		"far too long":      {func(m *store.Maintenance) { nightly(m); m.Duration = 15 * 24 * time.Hour }, []string{"duration", "duration"}},
		"over before":       {func(m *store.Maintenance) { nightly(m); m.EndsAt = start.Add(-time.Hour) }, []string{"ends_at"}},
		"some and all":      {func(m *store.Maintenance) { m.Tags = []string{"prod"} }, []string{"all"}},
		"odd tags":          {func(m *store.Maintenance) { m.All, m.Tags = false, []string{"a", "a", ""} }, []string{"tags[1]", "tags[2]"}},
		"far too many":      {func(m *store.Maintenance) { m.All, m.Endpoints = false, numbers(0, 501) }, []string{"endpoints"}},
		"a title of spaces": {func(m *store.Maintenance) { m.Title = " " }, []string{"title"}},
	} {
		m := store.Maintenance{Title: "Move", StartsAt: start, EndsAt: minutes(60), All: true}
		test.edit(&m)
		err := m.Validate(daily)
		if diff := cmp.Diff(fields(err), test.fields); diff != "" {
			t.Errorf("%s: fields of %v (-got +want):\n%s", name, err, diff)
		}
	}
}

func TestWhatAMaintenanceCovers(t *testing.T) {
	e := store.Endpoint{ID: "ep_a", Tags: []string{"prod", "eu"}}
	for name, test := range map[string]struct {
		plan store.Maintenance
		want bool
	}{
		"everything":       {store.Maintenance{All: true}, true},
		"it":               {store.Maintenance{Endpoints: []string{"ep_b", "ep_a"}}, true},
		"its tag":          {store.Maintenance{Tags: []string{"eu"}}, true},
		"another one":      {store.Maintenance{Endpoints: []string{"ep_b"}}, false},
		"another tag":      {store.Maintenance{Tags: []string{"us"}}, false},
		"nothing, by then": {store.Maintenance{}, false},
	} {
		if got := test.plan.Covers(e); got != test.want {
			t.Errorf("%s: covered %v, want %v", name, got, test.want)
		}
	}
}
