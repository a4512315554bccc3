package api_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
)

func TestABadgeIsCached(t *testing.T) {
	for file, kind := range map[string]struct{ contentType, up, down string }{
		"status.svg":  {"image/svg+xml; charset=utf-8", `role="img" aria-label="status: up"><title>status: up</title>`, "status: down"},
		"status.json": {"application/json", `"message":"up"`, `"message":"down"`},
	} {
		t.Run(file, func(t *testing.T) {
			r := start(t)
			slug := r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
			r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
			path := "/badge/" + slug + "/" + file
			up := r.get(path, nobody).want(http.StatusOK)
			for name, want := range map[string]string{
				"Content-Type":                 kind.contentType,
				"Cache-Control":                "public, max-age=60, stale-while-revalidate=300",
				"Access-Control-Allow-Origin":  "*",
				"Cross-Origin-Resource-Policy": "cross-origin",
			} {
				if got := up.header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if !strings.Contains(up.body, kind.up) {
				t.Errorf("the badge lacks %s:\n%s", kind.up, up.body)
			}
			tag := up.header.Get("ETag")
			for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
				same := r.get(path, nobody, header("If-None-Match", known)).want(http.StatusNotModified)
				if same.body != "" || same.header.Get("ETag") != tag || same.header.Get("Cache-Control") == "" {
					t.Errorf("304 to %s with body %q, headers %v", known, same.body, same.header)
				}
			}
			head := r.ask("HEAD", path, "", nobody).want(http.StatusOK)
			if head.body != "" || head.header.Get("ETag") != tag || head.header.Get("Content-Length") != fmt.Sprint(len(up.body)) {
				t.Errorf("HEAD answers %v", head.header)
			}
			r.see(broken())
			for range 2 {
				r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
			}
			down := r.get(path, nobody, header("If-None-Match", tag)).want(http.StatusOK)
			if down.header.Get("ETag") == tag || !strings.Contains(down.body, kind.down) {
				t.Errorf("the badge did not follow the status:\n%s", down.body)
			}
		})
	}
}

// What is hidden and what is not there must look the same, whatever is asked.
func TestABadgeDoesNotTellHiddenFromAbsent(t *testing.T) {
	r := start(t)
	r.outage("Hidden", false)
	for _, kind := range []string{"status", "uptime", "latency"} {
		for _, query := range []string{"", "?style=for-the-badge", "?label=a%20b&window=7d", "?style=x&window=y&label=%00"} {
			for _, suffix := range []string{".svg", ".json"} {
				file := "/" + kind + suffix + query
				hidden := r.get("/badge/hidden"+file, nobody).want(http.StatusOK)
				absent := r.get("/badge/absent"+file, nobody).want(http.StatusOK)
				strange := r.get("/badge/%3Cscript%3E"+file, nobody).want(http.StatusOK)
				for _, other := range []reply{absent, strange} {
					if diff := cmp.Diff(hidden.body, other.body); diff != "" {
						t.Errorf("%s: bodies differ:\n%s", file, diff)
					}
					a, b := maps.Clone(hidden.header), maps.Clone(other.header)
					for _, own := range []string{"Date", "X-Request-Id"} { // of every answer
						a.Del(own)
						b.Del(own)
					}
					if diff := cmp.Diff(a, b); diff != "" {
						t.Errorf("%s: headers differ:\n%s", file, diff)
					}
				}
				if !strings.Contains(hidden.body, "unknown") && !strings.Contains(hidden.body, "UNKNOWN") {
					t.Errorf("%s: not unknown:\n%s", file, hidden.body)
				}
			}
		}
	}
}

func TestTheJSONBadgeIsWhatShieldsReads(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
	r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
	for file, want := range map[string]map[string]any{
		"status.json":            {"label": "status", "message": "up"},
		"status.json?label=mine": {"label": "mine", "message": "up"},
		"uptime.json":            {"label": "uptime 30d", "message": "100%"},
		"uptime.json?window=1h":  {"label": "uptime 1h", "message": "100%"},
		"latency.json":           {"label": "latency 24h", "message": "84 ms"},
	} {
		got := r.get("/badge/"+slug+"/"+file, nobody).want(http.StatusOK).object()
		if color, _ := got["color"].(string); len(color) != 6 {
			t.Errorf("%s: color %q", file, color)
		}
		delete(got, "color")
		want["schemaVersion"] = 1.0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestAHostileLabelIsDrawnAsText(t *testing.T) {
	r := start(t)
	labels := map[string]string{
		`"/><script>alert(1)</script>`: `"/><script>alert(1)</script>`,
		"a\x00b\u202ec\n":              "abc",
		strings.Repeat("é", 1000):      strings.Repeat("é", 39) + "…",
		"]]>&amp;":                     "]]>&amp;",
		"\xff\xfe":                     "status",
		"  ":                           "status",
		"監視":                           "監視",
	}
	for label, want := range labels {
		for _, style := range []string{"flat", "flat-square", "for-the-badge"} {
			body := r.get("/badge/x/status.svg?style="+style+"&label="+url.QueryEscape(label), nobody).want(http.StatusOK).body
			title := readSVG(t, body)
			if got := title; got != want+": unknown" {
				t.Errorf("label %.40q, style %s: title %q", label, style, got)
			}
		}
	}
}

// readSVG reads a picture as XML, fails the test if it holds anything but shapes and text, and returns its title.
func readSVG(t *testing.T, body string) (title string) {
	t.Helper()
	harmless := []string{"svg", "title", "linearGradient", "stop", "clipPath", "rect", "g", "text"}
	d, inTitle := xml.NewDecoder(strings.NewReader(body)), false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return title
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, body)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inTitle = token.Name.Local == "title"
			if !slices.Contains(harmless, token.Name.Local) {
				t.Errorf("the picture holds <%s>", token.Name.Local)
			}
		case xml.EndElement:
			inTitle = false
		case xml.CharData:
			if inTitle {
				title += string(token)
			}
		}
	}
}

func TestTextOnBadgesCanBeRead(t *testing.T) {
	for _, color := range api.BadgesForTest {
		if got := contrast("#ffffff", color); got < 4.5 {
			t.Errorf("white on %s has a contrast of %.2f : 1, want 4.5 at least", color, got)
		}
	}
}

// contrast is that of WCAG 2.2.
func contrast(a, b string) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func luminance(color string) float64 {
	var r, g, b uint8
	if _, err := fmt.Sscanf(color, "#%02x%02x%02x", &r, &g, &b); err != nil {
		panic(err)
	}
	part := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
}
