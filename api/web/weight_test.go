package web_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// maxWeight is what a first visit to the overview may bring along, compressed.
const maxWeight = 60 << 10

// A full page of the overview, each of its endpoints as eventful as can be, with all that it loads.
func TestTheOverviewIsLight(t *testing.T) {
	page := overview()
	page.Attention, page.Rest = nil, nil
	for i := range 75 {
		row := lately(web.EndpointRow{
			Slug: fmt.Sprintf("endpoint-%04d", i*7919%10000), Name: fmt.Sprintf("Endpoint %d of team %d", i*7919%10000, i%7), Host: fmt.Sprintf("mcp-%d.example.com", i*31),
			Kind: probe.KindMCP, Status: store.StatusUp, Latency: time.Duration(i*i*977%500) * time.Millisecond, Checked: before(time.Duration(i) * time.Second),
			Uptime: per(100 - float64(i*13%7)/3), Tags: []string{"prod", fmt.Sprintf("team-%02d", i%20)},
		}, 100, float64(90+i%10), -1, float64(i%100))
		for n := range row.Medians {
			row.Medians[n] *= 1 + float64((i*n)%13)/10
		}
		if i < 25 {
			row.Status, row.Failure, row.Since = store.StatusDown, rpcFailure(), before(time.Duration(i)*time.Minute)
			page.Attention = append(page.Attention, row)
			continue
		}
		page.Rest = append(page.Rest, row)
	}
	page.Groups = []web.RowGroup{{Rows: page.Rest}}
	weights := map[string]int{"html": compressed(t, []byte(render(t, page)))}
	files, err := filepath.Glob("static/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		weights[strings.TrimPrefix(filepath.Ext(name), ".")] += compressed(t, data)
	}
	total := 0
	for _, w := range weights {
		total += w
	}
	t.Logf("compressed: %v, %d in all", weights, total)
	if total > maxWeight {
		t.Errorf("the overview and all that it loads weigh %d bytes compressed, %v; want %d at most", total, weights, maxWeight)
	}
}

func compressed(t *testing.T, data []byte) int {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

func TestStaticFilesAreSentCompressedToWhoeverTakesThat(t *testing.T) {
	for accepts, want := range map[string]string{"": "", "br": "", "gzip, deflate, br": "gzip", "gzip;q=0": ""} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/static/app.css", nil)
		r.Header.Set("Accept-Encoding", accepts)
		w := httptest.NewRecorder()
		if !web.ServeStatic(w, r, "app.css") {
			t.Fatal("there is no style sheet")
		}
		if got := w.Header().Get("Content-Encoding"); got != want || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("accepting %q: sent as %q, Vary %q; want %q", accepts, got, w.Header().Get("Vary"), want)
		}
		if got := w.Body.Len(); (got > 15<<10) != (want == "") {
			t.Errorf("accepting %q: %d bytes", accepts, got)
		}
	}
}
