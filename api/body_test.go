package api_test

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/api"
)

// A long name above many elements once cost its length for each of them: minutes for one body of 1 MiB.
func TestABodyCostsNoMoreThanItsLength(t *testing.T) {
	name := strings.Repeat("a", 40_000)
	for shape, body := range map[string]string{
		"a list":            `{"` + name + `": [1` + strings.Repeat(",1", 20_000) + `]}`,
		"a list of objects": `{"` + name + `": [{}` + strings.Repeat(`,{"b":1,"b":2}`, 3_000) + `]}`,
		"an object":         `{"` + name + `": {"b":1` + strings.Repeat(`,"b":1`, 7_000) + `}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fields, err := api.ReadBodyForTest([]byte(body))
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%s: %v", shape, err)
		}
		if len(fields) == 0 || slices.ContainsFunc(fields, func(f string) bool { return len(f) > 100 }) {
			t.Errorf("%s: %d mistakes named, want some, each cut short", shape, len(fields))
		}
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(300*len(body)); got > most {
			t.Errorf("%s: reading %d bytes took %d bytes of memory, want at most %d", shape, len(body), got, most)
		}
	}
}

// Each mistake was once compared with all before it, and all of them were told.
func TestABodyFullOfMistakesIsAnsweredWithSome(t *testing.T) {
	r := start(t)
	for _, member := range []string{`"tags": [""`, `"channels": [""`, `"tags": [1`, `"headers": [{}`} {
		_, item, _ := strings.Cut(member, "[")
		body := `{"url": "https://a.example", ` + member + strings.Repeat(","+item, 20_000) + `]}`
		got := r.ask("POST", "/api/v1/endpoints", body).want(http.StatusUnprocessableEntity)
		if n := len(got.mistakes()); n != 50 {
			t.Errorf("%s, …: %d mistakes named, want 50", member, n)
		}
	}
}
