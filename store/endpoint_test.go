package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// everyMinute reads every schedule but "never".
func everyMinute(schedule string) (time.Duration, error) {
	if schedule == "never" {
		return 0, errors.New("never comes")
	}
	return time.Minute, nil
}

func TestAnEndpointIsCheckedAsAWhole(t *testing.T) {
	for name, test := range map[string]struct {
		edit   func(*store.Endpoint)
		fields []string
	}{
		"just a name and a URL":  {func(*store.Endpoint) {}, nil},
		"nothing":                {func(e *store.Endpoint) { *e = store.Endpoint{} }, []string{"name", "kind", "url", "timeout", "confirm.failures", "confirm.successes", "confirm.after"}},
		"no schedule":            {func(e *store.Endpoint) { e.Schedule = "never" }, []string{"schedule"}},
		"longer than its period": {func(e *store.Endpoint) { e.Timeout = 61 * time.Second }, []string{"timeout"}},
		"far too long":           {func(e *store.Endpoint) { e.Timeout = time.Hour }, []string{"timeout", "timeout"}},
		"negative":               {func(e *store.Endpoint) { e.Timeout, e.DegradedOver, e.Confirm.After = -1, -1, -1 }, []string{"timeout", "degraded_over", "confirm.after"}},
		"odd slug":               {func(e *store.Endpoint) { e.Slug = "Not a slug" }, []string{"slug"}},
		"odd names":              {func(e *store.Endpoint) { e.Name = "a\nb" }, []string{"name"}},
		"long name":              {func(e *store.Endpoint) { e.Name = strings.Repeat("ä", 101) }, []string{"name"}},
		"odd tags":               {func(e *store.Endpoint) { e.Tags = []string{"a", "a", "", "b,c", strings.Repeat("x", 51)} }, []string{"tags[1]", "tags[2]", "tags[3]", "tags[4]"}},
		"too much of everything": {func(e *store.Endpoint) { e.Tags, e.Channels = numbers(0, 21), numbers(0, 21) }, []string{"tags", "channels"}},
		"odd headers": {func(e *store.Endpoint) {
			e.Headers = []probe.Header{{Name: "a b"}, {Name: "X", Value: "s3cret\r\n"}, {Name: "Host", Value: "x"}}
		}, []string{"headers[0].name", "headers[1].value", "headers[2].name"}},
		"odd request": {func(e *store.Endpoint) {
			e.Kind, e.Request.Params = probe.KindJSONRPC, json.RawMessage(`"s3cret"`)
		}, []string{"request.method", "request.params", "request.params"}},
	} {
		e := store.NewEndpoint()
		e.Name, e.URL = "Weather", "https://weather.example/mcp"
		test.edit(&e)
		err := e.Validate(everyMinute)
		if diff := cmp.Diff(fields(err), test.fields); diff != "" {
			t.Errorf("%s: fields of %v (-got +want):\n%s", name, err, diff)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %q repeats a secret", name, err)
		}
	}
}

func TestATargetKnowsWhatEarlierProbesFoundOut(t *testing.T) {
	e := store.NewEndpoint()
	e.URL = "https://a.example"
	target := e.Target(store.State{Kind: probe.KindMCP, Era: probe.EraLegacy})
	if target.Kind != probe.KindMCP || target.Era != probe.EraLegacy || target.Timeout != store.DefaultTimeout {
		t.Errorf("Target = %+v, want the kind and era found out", target)
	}
	e.Kind = probe.KindEVM
	if target := e.Target(store.State{Kind: probe.KindMCP}); target.Kind != probe.KindEVM {
		t.Errorf("Target = %+v, want the kind that was asked for", target)
	}
}

func TestAnEditIsLaterThanTheOneBeforeWhateverTheClockSays(t *testing.T) {
	e := store.Endpoint{Name: "Weather", URL: "https://weather.example/mcp", UpdatedAt: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)}
	for name, test := range map[string]struct{ at, want time.Time }{
		"later":                     {e.UpdatedAt.Add(time.Hour), e.UpdatedAt.Add(time.Hour)},
		"at once":                   {e.UpdatedAt, e.UpdatedAt.Add(time.Microsecond)},
		"after a clock went back":   {e.UpdatedAt.Add(-time.Hour), e.UpdatedAt.Add(time.Microsecond)},
		"within one that is stored": {e.UpdatedAt.Add(time.Nanosecond), e.UpdatedAt.Add(time.Microsecond)},
	} {
		t.Run(name, func(t *testing.T) {
			edited, err := store.EditEndpoint(e, func(e *store.Endpoint) error {
				e.Name = "Rain"
				return nil
			}, test.at)
			if err != nil {
				t.Fatal(err)
			}
			if !edited.UpdatedAt.Equal(test.want) {
				t.Errorf("updated at %s, want %s", edited.UpdatedAt, test.want)
			}
		})
	}
}
