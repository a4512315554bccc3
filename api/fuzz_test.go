package api_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/api"
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
