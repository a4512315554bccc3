package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
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
	for _, kind := range badgeKinds {
		for _, query := range []string{"", "?style=for-the-badge", "?label=a%20b&window=7d", "?style=x&window=y&label=%00", "?theme=auto&objective=a"} {
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

// badgeKinds are those that there are addresses of.
var badgeKinds = []string{"status", "uptime", "latency", "slo", "protocol", "tools", "height"}

func TestBadgesSayWhatAnEndpointIs(t *testing.T) {
	r := start(t)
	mcp := r.register(`{"url": "https://a.example", "name": "a", "public": true, "kind": "mcp"}`)
	r.ask("POST", "/api/v1/endpoints/"+mcp+"/check", "").want(http.StatusOK)
	chain := healthy()
	chain.Kind, chain.Facts = probe.KindEVM, probe.Facts{ChainID: "1", Height: new(uint64(20831387))}
	r.see(chain)
	eth := r.register(`{"url": "https://b.example", "name": "b", "public": true, "kind": "evm"}`)
	r.ask("POST", "/api/v1/endpoints/"+eth+"/check", "").want(http.StatusOK)
	rude := healthy()
	rude.Facts = probe.Facts{ProtocolVersion: strings.Repeat("<script>", 100) + "\x00"}
	r.see(rude)
	rudely := r.register(`{"url": "https://c.example", "name": "c", "public": true, "kind": "a2a"}`)
	r.ask("POST", "/api/v1/endpoints/"+rudely+"/check", "").want(http.StatusOK)

	for path, want := range map[string]string{
		mcp + "/protocol":                        "protocol: MCP 2025-11-25",
		mcp + "/tools":                           "tools: 13",
		mcp + "/height":                          "height: unknown",
		mcp + "/latency":                         "latency 24h: 84 ms",
		mcp + "/latency?quantile=p50":            "latency 24h: 84 ms",
		mcp + "/latency?quantile=p99&window=1h":  "p99 latency 1h: 84 ms",
		mcp + "/uptime?window=365d":              "uptime 365d: 100%",
		mcp + "/uptime?window=1h&label=%20a%20b": "a b: 100%",
		eth + "/protocol":                        "protocol: chain 1",
		eth + "/tools":                           "tools: unknown",
		eth + "/height":                          "height: 20,831,387",
		rudely + "/protocol":                     "protocol: <script><script><script…",
	} {
		kind, query, _ := strings.Cut(path, "?")
		picture := r.get("/badge/"+kind+".svg?"+query, nobody).want(http.StatusOK).body
		if got := readSVG(t, picture); got != want {
			t.Errorf("%s says %q, want %q", path, got, want)
		}
		var said struct{ Label, Message string }
		r.get("/badge/"+kind+".json?"+query, nobody).want(http.StatusOK).json(&said)
		if got := said.Label + ": " + said.Message; got != want {
			t.Errorf("%s says %q as JSON, want %q", path, got, want)
		}
	}
}

func TestAWrongParameterIsStillAPicture(t *testing.T) {
	r := start(t)
	r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
	r.ask("POST", "/api/v1/endpoints/a/check", "").want(http.StatusOK)
	for path, want := range map[string]string{
		"status.svg?style=plastic":                  "status: unknown style",
		"status.svg?theme=blue&style=flat":          "status: unknown theme",
		"status.svg?theme=%22%3E%3Cscript%3E":       "status: unknown theme",
		"uptime.svg?window=2h":                      "uptime 30d: unknown window",
		"uptime.svg?window=30d%00":                  "uptime 30d: unknown window",
		"latency.svg?quantile=p42&label=speed":      "speed: unknown quantile",
		"latency.svg?window=1h&quantile=max":        "latency 1h: unknown quantile",
		"status.svg?x=" + strings.Repeat("a", 9000): "status: query too long",
		// What a kind does not look at, and what no badge looks at, is passed over; of what is said twice, the first holds.
		"status.svg?window=2h&quantile=p42&cache=7":            "status: up",
		"status.svg?%zz&label=l%zz":                            "status: up",
		"status.svg?label=one&label=two&style=flat&style=nope": "one: up",
	} {
		picture := r.get("/badge/a/"+path, nobody).want(http.StatusOK)
		if got := readSVG(t, picture.body); got != want {
			t.Errorf("%.60s says %q, want %q", path, got, want)
		}
		if absent := r.get("/badge/b/"+path, nobody).want(http.StatusOK); strings.Contains(want, ": unknown ") && absent.body != picture.body {
			t.Errorf("%.60s: what is wrong with a query looks different where there is no endpoint", path)
		}
	}
}

// A badge that somebody opens by itself is a document, and must be as harmless as a picture.
func TestAPictureMayDoNothing(t *testing.T) {
	r := start(t)
	picture := r.get("/badge/x/status.svg?theme=auto", nobody).want(http.StatusOK)
	policy := picture.header.Get("Content-Security-Policy")
	_, style, _ := strings.Cut(picture.body, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	if !strings.Contains(policy, "default-src 'none'; style-src "+hash+";") || !strings.HasSuffix(policy, "; sandbox") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q, want one with %s", policy, hash)
	}
	if got := picture.header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options is %q", got)
	}
	if !strings.Contains(style, "@media (prefers-color-scheme:dark)") || strings.ContainsAny(style, "<>&") {
		t.Errorf("style %q", style)
	}
}

// The golden files are what the lead of a project looks at before a change of style goes out: go test ./api -run Golden -update
func TestGoldenBadges(t *testing.T) {
	texts := map[string][2]string{
		"status":  {"status", "up"},
		"latency": {"p95 latency 24h", "1.2 s"},
		"escaped": {`<a href="x">&'`, "]]>"},
		"wide":    {"監視 ステータス", "稼働中"},
		"mixed":   {"naïve Zürich – №1 👍🏽", "e\u0301te\u0301"},
		"arabic":  {"حالة", "تعمل"},
	}
	for i, style := range []string{"flat", "flat-square", "for-the-badge"} {
		for j, theme := range []string{"light", "dark", "auto"} {
			for name, text := range texts {
				if theme != "light" && name != "status" {
					continue // the rest differs in nothing but colours
				}
				got := api.DrawBadgeForTest(text[0], text[1], uint8(3*j+i))
				file := filepath.Join("testdata", "badges", name+"-"+style+"-"+theme+".svg")
				if *update {
					if err := os.WriteFile(file, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", file, diff)
				}
			}
		}
	}
}

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestRoomIsMeasuredForEveryScript(t *testing.T) {
	width := func(text string) (w int) {
		if _, err := fmt.Sscanf(string(api.DrawBadgeForTest(strings.Repeat(text, 10), "x", 0)), `<svg xmlns="http://www.w3.org/2000/svg" width="%d"`, &w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for text, same := range map[string]string{
		"e\u0301":        "e",  // an accent stands on its letter
		"a\u200d\ufe0fb": "ab", // joiners and selectors are not seen
		"é":              "e",
		"Ж":              "Э",
		"監":              "視",
		"한":              "監",
	} {
		if width(text) != width(same) {
			t.Errorf("%q is %d wide and %q is %d", text, width(text), same, width(same))
		}
	}
	for _, order := range [][]string{{"i", "a", "m", "監", "👍"}, {"", "l", "ll", "lll"}} {
		for i := 1; i < len(order); i++ {
			if width(order[i-1]) >= width(order[i]) {
				t.Errorf("%q is %d wide and %q is %d", order[i-1], width(order[i-1]), order[i], width(order[i]))
			}
		}
	}
}

// readSVG reads a picture as XML, fails the test if it holds anything but shapes and text, and returns its title.
func readSVG(t *testing.T, body string) (title string) {
	t.Helper()
	harmless := []string{"svg", "title", "style", "linearGradient", "stop", "clipPath", "rect", "g", "text"}
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
	for _, pair := range api.BadgePairsForTest() {
		if got := contrast(pair[0], pair[1]); got < 4.5 {
			t.Errorf("%s on %s has a contrast of %.2f : 1, want 4.5 at least", pair[0], pair[1], got)
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
