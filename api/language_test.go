package api_test

import (
	"net/http"
	"net/url"
	"regexp"
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

func TestALanguageIsChosenForABrowser(t *testing.T) {
	s := newSite(t)
	if got := s.get("/login"); !strings.Contains(got.body, `<html lang="en"`) || !strings.Contains(got.body, `lang="de" aria-pressed="false">Deutsch`) {
		t.Error("where nobody chose, the page is not in English, or German cannot be chosen")
	}
	if got := s.post("/preferences", url.Values{"language": {"de"}, "back": {"/login"}}); got.status != http.StatusSeeOther || got.header.Get("Location") != "/login" {
		t.Errorf("got %d to %q", got.status, got.header.Get("Location"))
	}
	if got := s.get("/login"); !strings.Contains(got.body, `<html lang="de"`) || !strings.Contains(got.words(), "Anmelden") {
		t.Error("German was chosen, and the page is in another language")
	}
	got := s.post("/login", url.Values{"name": {"nobody"}, "password": {"wrong"}})
	if !strings.Contains(got.words(), "Name oder Passwort ist falsch.") {
		t.Errorf("what went wrong is not said in German: %s", got.words())
	}
}

// What programs read is the same for every reader.
func TestProgramsAreAnsweredInEnglish(t *testing.T) {
	r := start(t)
	r.outage("Weather", true)
	for _, path := range []string{"/api/v1/endpoints/none", "/api/v1/endpoints?limit=x", "/badge/weather/status.svg", "/status/feed.atom", "/llms.txt", "/api/v1/status"} {
		want, got := r.get(path), r.get(path, header("Accept-Language", "de"))
		if want.body == "" || withoutIDs(got.body) != withoutIDs(want.body) {
			t.Errorf("%s for a German reader:\n%s\nwant:\n%s", path, got.body, want.body)
		}
	}
}

// withoutIDs cuts out what is another one in each answer.
func withoutIDs(body string) string {
	return regexp.MustCompile(`"request_id":"[^"]*"|[0-9]{2}:[0-9]{2}:[0-9.]+Z?|for [0-9]+ s`).ReplaceAllString(body, "")
}
