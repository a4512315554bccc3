package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/api/web"
)

// What the database said is kept for a while and given to everybody alike. What is made of it is in the language of each.
func TestPublicPagesThatAreKeptAreInTheLanguageOfEachReader(t *testing.T) {
	r := start(t, func(c *api.Config) { c.KeepPublic = 5 * time.Second })
	r.outage("Weather", true)
	r.page(`{"slug": "acme", "name": "ACME", "sections": [{"endpoints": ["weather"]}]}`)
	for _, path := range []string{"/status", "/status/weather", "/p/acme"} {
		for _, l := range web.Languages() {
			got := r.get(path, nobody, header("Accept-Language", l.Tag)).want(http.StatusOK)
			if !strings.Contains(got.body, `<html lang="`+l.Tag+`"`) {
				t.Errorf("%s in %s is in another language", path, l.Tag)
			}
			if vary := strings.Join(got.header.Values("Vary"), ", "); !strings.Contains(vary, "Accept-Language") || !strings.Contains(vary, "Cookie") {
				t.Errorf("%s varies by %q, want by the language that was asked for and the one that was chosen", path, vary)
			}
		}
	}
}
