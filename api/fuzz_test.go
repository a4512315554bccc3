package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

// Whatever stands in a body, it is read without a panic, and nothing is read that is not exactly one JSON object.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"url": "https://a.example", "headers": [{"name": "a", "secret": true}], "request": {"params": [1], "expect": {}}}`,
		`{"confirm": {"failures": 1e9, "after": null}, "tags": [null, "a"], "channels": {}, "timeout": 5}`,
		`{"a": 1, "a": 2}{`, `[[[[`, `{"headers": [null, 1, {"value": null}]}`, "{\"\\u0000\": \"\\ud800\"}", `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := api.ReadBodyForTest(data)
		if err == nil && (!json.Valid(data) || !utf8.Valid(data)) {
			t.Errorf("%q was read", data)
		}
		if len(fields) > 60 {
			t.Errorf("%d mistakes named", len(fields))
		}
	})
}

// Whatever a label says, a badge stays a picture.
func FuzzBadge(f *testing.F) {
	f.Add("status", "up", uint8(0))
	f.Add(`"><script>`, "]]>", uint8(2))
	f.Fuzz(func(t *testing.T, label, message string, style uint8) {
		readSVG(t, string(api.DrawBadgeForTest(label, message, style)))
	})
}

// Whatever stands in a query, there is a picture of a reasonable size, and nothing in it but shapes and text.
func FuzzBadgeQuery(f *testing.F) {
	d := &published{}
	d.put("a", true, store.StatusUp)
	s := over(f, d)
	for _, seed := range []string{
		"style=for-the-badge&theme=auto&label=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "window=7d&quantile=p99", "label=%00%ff%e2%80%ae",
		"label=]]>&label=&theme=dark&&&=&%zz", "objective=a&window=%0d%0a", "style=" + strings.Repeat("flat", 5000), "a;b", "\xff",
	} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(7))
	}
	f.Fuzz(func(t *testing.T, query string, n uint8) {
		q := httptest.NewRequest(http.MethodGet, "/", nil)
		q.URL = &url.URL{Path: "/badge/a/" + badgeKinds[int(n)%len(badgeKinds)] + ".svg", RawQuery: query}
		for range 2 {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, q)
			if w.Code != http.StatusOK || w.Body.Len() > 4096 {
				t.Errorf("query %.200q: status %d, %d bytes", query, w.Code, w.Body.Len())
			}
			readSVG(t, w.Body.String())
			for name, values := range w.Header() {
				if strings.ContainsAny(strings.Join(values, ""), "\r\n\x00") {
					t.Errorf("query %.200q gets into %s: %q", query, name, values)
				}
			}
		}
	})
}

// Options that can be read are shown in a form that is read as the same options.
func FuzzOptions(f *testing.F) {
	for _, seed := range []string{
		`{"tls": {"ca": "x", "client_key": "y", "expiry_warning": "-1ns", "insecure": true}, "oauth": {"client_id": "", "scopes": []}}`,
		`{"request": {"expect": {"equals": {"a": "<&>"}, "min": "0x1", "max": 1e400}, "batch": [{"method": "a", "params": []}, {}], "notify": true}}`,
		`{"chain": {"lagging": -1, "max_age": "1h1ns"}, "canary": {"arguments": 7}, "lsp": {}, "subscribe": null, "framing": "x"}`,
		`{"request": null, "tls": null, "canary": {"expect": null, "tool": null}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, again, ok := api.OptionsForTest(data)
		if !ok {
			return
		}
		a, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(again); err != nil || string(a) != string(b) {
			t.Errorf("options %s are read again as %s, %v", a, b, err)
		}
	})
}
