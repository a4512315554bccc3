package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

const typedMoment = "2006-01-02T15:04"

func TestMaintenanceIsPlannedEditedAndDeleted(t *testing.T) {
	changes := 0
	s := newSite(t, func(c *api.Config) { c.PlansChanged = func(context.Context) { changes++ } })
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	if got := s.get("/maintenance"); !strings.Contains(got.text, "Nothing is planned") {
		t.Errorf("with none it says: %s", got.text)
	}
	begin := time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)
	form := url.Values{
		"action": {"save"}, "title": {hostileWords}, "text": {"Short."}, "starts_at": {begin.Format(typedMoment)},
		"ends_at": {begin.Add(3 * time.Hour).Format(typedMoment)}, "endpoints": {"weather"}, "tags": {"prod"}, "public": {"yes"},
		"schedule": {"left over"}, "duration": {"from another choice"},
	}
	if got := s.post("/maintenance/new", form); got.status != http.StatusSeeOther {
		t.Fatalf("plan: got %d: %s", got.status, got.text)
	}
	list := s.get("/maintenance")
	path := list.link("/maintenance/mnt_")
	if path == "" || !list.clean() || !strings.Contains(list.text, "Under way") || !strings.Contains(list.text, "1 endpoint, tag prod") || !strings.Contains(list.text, "planned by ada") {
		t.Fatalf("the list says: %s", list.text)
	}
	if page := s.get("/endpoints/weather"); !strings.Contains(page.text, "Under maintenance until") || !page.clean() {
		t.Errorf("the endpoint's page says: %s", page.text)
	}
	if page := s.get("/"); !strings.Contains(page.text, "under maintenance") {
		t.Errorf("the overview says: %s", page.text)
	}

	page := s.get(path)
	if page.field("starts_at") != form.Get("starts_at") || page.field("title") != hostileWords || !page.checked("endpoints") || page.field("tags") != "prod" || !page.checked("public") {
		t.Errorf("the form shows %q, %q", page.field("starts_at"), page.field("title"))
	}
	if got := s.post(path, with(form, "title", "Upgrade", "all", "yes", "starts_at", begin.Add(2*time.Hour).Format(typedMoment))); got.status != http.StatusSeeOther {
		t.Fatalf("edit: got %d: %s", got.status, got.text)
	}
	if list = s.get("/maintenance"); !strings.Contains(list.text, "Planned") || !strings.Contains(list.text, "everything") || strings.Contains(list.text, "Under way") {
		t.Errorf("after the edit the list says: %s", list.text)
	}
	if page := s.get("/endpoints/weather"); strings.Contains(page.text, "Under maintenance") {
		t.Errorf("before it begins the endpoint's page says: %s", page.text)
	}
	if got := s.post(path, url.Values{"action": {"delete"}}); !strings.Contains(got.text, "Delete Upgrade?") {
		t.Errorf("delete asks: %s", got.text)
	}
	if got := s.post(path, url.Values{"action": {"delete"}, "confirmed": {"yes"}}); got.status != http.StatusSeeOther {
		t.Errorf("delete: got %d", got.status)
	}
	if got := s.get(path); got.status != http.StatusNotFound {
		t.Errorf("the page of a deleted one: got %d", got.status)
	}
	if changes != 3 {
		t.Errorf("the judge was told of %d changes, want 3", changes)
	}
}

func TestMaintenanceThatRecursAndMistakesInIt(t *testing.T) {
	begin := time.Now().UTC().Add(30 * time.Hour).Truncate(time.Minute)
	s := newSite(t, func(c *api.Config) {
		c.Period = func(schedule string) (time.Duration, error) {
			if schedule == "0 3 * * 0" {
				return 7 * 24 * time.Hour, nil
			}
			if strings.HasPrefix(schedule, "@every ") {
				return everyPeriod(schedule)
			}
			return 0, errors.New("expected 5 fields")
		}
		c.Windows = func(m store.Maintenance, _, until time.Time) [][2]time.Time {
			if until.Before(begin) {
				return nil
			}
			return [][2]time.Time{{begin, begin.Add(m.Duration)}}
		}
	})
	s.setUp()
	typed := url.Values{
		"action": {"save"}, "title": {""}, "text": {"Every\nweek"}, "recurs": {"yes"}, "starts_at": {"soon"}, "ends_at": {"2020-01-01T10:00"},
		"schedule": {"sometimes"}, "duration": {"long"}, "tags": {"a,a"}, "endpoints_typed": {"gone"},
	}
	bad := s.post("/maintenance/new", typed)
	if bad.status != http.StatusUnprocessableEntity {
		t.Fatalf("got %d: %s", bad.status, bad.text)
	}
	for _, id := range []string{"f-title", "f-starts-at", "f-schedule", "f-duration", "f-tags", "f-endpoints"} {
		if !strings.Contains(bad.body, `href="#`+id+`"`) || !strings.Contains(bad.body, `id="`+id+`"`) {
			t.Errorf("the summary does not lead to #%s", id)
		}
	}
	for _, name := range []string{"title", "text", "starts_at", "ends_at", "schedule", "duration", "tags", "endpoints_typed"} {
		if bad.field(name) != typed.Get(name) {
			t.Errorf("field %s holds %q, want %q", name, bad.field(name), typed.Get(name))
		}
	}
	good := with(typed, "title", "Weekly", "starts_at", begin.Format(typedMoment), "ends_at", "", "schedule", "0 3 * * 0", "duration", "2h", "tags", "a", "endpoints_typed", "")
	if got := s.post("/maintenance/new", good); got.status != http.StatusSeeOther {
		t.Fatalf("got %d: %s", got.status, got.text)
	}
	list := s.get("/maintenance")
	for _, want := range []string{"Planned", "Weekly", "0 3 * * 0, 2 h each", "tag a"} {
		if !strings.Contains(list.text, want) {
			t.Errorf("the list does not say %q: %s", want, list.text)
		}
	}
}
