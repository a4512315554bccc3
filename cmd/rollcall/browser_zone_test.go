package main_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

// livesIn has the browser keep the time of a zone.
func (p *person) livesIn(zone string) {
	p.t.Helper()
	p.do("keep the time of "+zone, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		return err
	}))
}

// TestTimesAreThoseOfTheReader plans maintenance and reads hours and changes in a browser that keeps another time than UTC: what is
// typed there is kept as the moment it means, also when the form comes back with a mistake, in an hour that the clocks skip, and in
// one that they repeat.
func TestTimesAreThoseOfTheReader(t *testing.T) {
	t.Parallel()
	i := setUp(t, "--allow-private", "127.0.0.0/8")
	i.call("POST", "/api/v1/endpoints", object{"name": "Weather", "slug": "weather", "url": probetest.MCP(t).URL, "kind": "mcp"}, 201, nil)
	p := newPerson(startBrowser(t), t, i.url)
	p.livesIn("Europe/Berlin")
	p.logIn()

	p.open("/maintenance/new")
	p.sees("All times are in your zone, Europe/Berlin.")
	p.enters(entry{label: "From", text: "2027-07-01T10:00"}, entry{label: "Until", text: "2027-01-01T12:00"})
	p.tick("Everything")
	p.turnedDown("Plan it") // it has no title, and ends before it begins
	if begin, _ := p.typed("From"); begin != "2027-07-01T10:00" {
		t.Errorf("the form came back with %q, want what was typed", begin)
	}
	p.enters(entry{label: "Title", text: "Upgrade"}, entry{label: "Until", text: "2027-07-01T12:00"})
	p.sends("Plan it")
	kept := i.planned("Upgrade")
	if kept[0] != "2027-07-01T08:00:00Z" || kept[1] != "2027-07-01T10:00:00Z" {
		t.Errorf("kept %v, want two hours before what was typed", kept)
	}

	p.open("/maintenance")
	span := evaluate[[]string](p, `[...document.querySelectorAll("time[data-from]")].map(end => [end.previousElementSibling, end]).flat().map(t => t.textContent.replaceAll("\u202f", " "))`)
	if diff := cmp.Diff([]string{"Jul 1, 2027, 10:00 AM", "12:00 PM"}, span); diff != "" {
		t.Errorf("a span of one day says its day twice, or not at all (-want +got):\n%s", diff)
	}

	p.open("/maintenance/new")
	p.enters(entry{label: "Title", text: "Clocks"}, entry{label: "Until", text: "2027-10-31T12:00"})
	p.tick("Everything")
	if shown := evaluate[string](p, `(() => {
		const from = document.getElementById("f-starts-at");
		from.value = "2027-03-28T02:30";
		from.dispatchEvent(new Event("input", { bubbles: true }));
		from.dispatchEvent(new Event("change", { bubbles: true }));
		return from.value + " " + from.title;
	})()`); shown != "2027-03-28T03:30 2027-03-28 01:30 UTC" {
		t.Errorf("an hour that is skipped is shown as %q", shown)
	}
	p.sends("Plan it")
	var plan struct {
		ID string `json:"id"`
	}
	i.call("POST", "/api/v1/maintenance", object{
		"title": "Repeated", "starts_at": "2027-10-31T01:30:00Z", "ends_at": "2027-10-31T05:00:00Z", "all": true, // 2:30 for the second time
	}, 201, &plan)
	p.open("/maintenance/" + plan.ID)
	if begin, _ := p.typed("From"); begin != "2027-10-31T02:30" {
		t.Errorf("the hour that is repeated is shown as %q", begin)
	}
	p.enters(entry{label: "Title", text: "Repeated twice"})
	p.sends("Save changes")
	if kept := i.planned("Repeated twice"); kept[0] != "2027-10-31T01:30:00Z" {
		t.Errorf("kept %s of what was left alone, want 2027-10-31T01:30:00Z", kept[0])
	}

	p.open("/endpoints/weather")
	ends := evaluate[[]string](p, `[...document.querySelectorAll("#hours ~ .ends time")].map(t => t.textContent + "|" + t.title)`)
	if len(ends) != 2 || strings.Contains(strings.Split(ends[0], "|")[0], "UTC") || !strings.HasSuffix(ends[0], "UTC") {
		t.Errorf("the hours end with %q, want the reader's, with UTC in the title", ends)
	}
	bar := evaluate[string](p, `document.querySelector("#hours ~ .slots [title]").title`)
	if !strings.Contains(bar, "UTC)") {
		t.Errorf("the first hour is called %q, want it by the reader's clock and by UTC", bar)
	}
	p.open("/audit")
	if raw := evaluate[[]string](p, `[...document.querySelectorAll("dl.difference bdi")].map(b => b.textContent).filter(s => /\d{4}-\d\d-\d\dT/.test(s))`); len(raw) > 0 {
		t.Errorf("the log of changes shows moments as %q", raw)
	}
	p.leaves()
}

// planned returns when a maintenance begins and ends.
func (i *instance) planned(title string) [2]string {
	i.t.Helper()
	var list struct {
		Items []struct {
			Title  string    `json:"title"`
			Starts time.Time `json:"starts_at"`
			Ends   time.Time `json:"ends_at"`
		} `json:"items"`
	}
	i.call("GET", "/api/v1/maintenance", nil, 200, &list)
	for _, m := range list.Items {
		if m.Title == title {
			return [2]string{m.Starts.Format(time.RFC3339), m.Ends.Format(time.RFC3339)}
		}
	}
	i.t.Fatalf("there is no maintenance %q", title)
	return [2]string{}
}

// TestMomentsArePickedAndToldInTheZoneOfTheReader looks far from Greenwich at an endpoint that breaks and mends: a stretch of its chart
// is typed by the reader's clock on a page that goes on changing by itself, an outage is snoozed until nine in the reader's morning,
// and what only a bar or a sentence says of an hour says the reader's.
func TestMomentsArePickedAndToldInTheZoneOfTheReader(t *testing.T) {
	t.Parallel()
	const zone = "Australia/Darwin" // 9 h 30 min ahead, all year
	i := setUp(t, "--allow-private", "127.0.0.0/8")
	mcp := probetest.MCP(t)
	i.call("POST", "/api/v1/endpoints", object{
		"name": "Weather", "slug": "weather", "url": mcp.URL, "kind": "mcp", "schedule": "@every 1s", "timeout": "900ms",
		"confirm": object{"failures": 1, "successes": 1, "after": "1s"},
	}, 201, nil)
	i.await("the first check", func() bool { return i.status("weather") == "up" })
	v := view{person: newPerson(startBrowser(t), t, i.url), path: "/endpoints/weather", shows: "main h1 .status"}
	v.livesIn(zone)
	v.logIn()

	from := time.Now().UTC().Add(-3 * time.Hour).Truncate(time.Hour)
	to := from.Add(2 * time.Hour)
	v.open("/endpoints/weather?" + url.Values{"from": {from.Format(time.RFC3339)}, "to": {to.Format(time.RFC3339)}}.Encode())
	v.unfold("Another time")
	want := []string{clockOf(t, from, zone), clockOf(t, to, zone), "From " + zone, "Until " + zone}
	if diff := cmp.Diff(want, v.zoom()); diff != "" {
		t.Errorf("the form for another time shows (-want +got):\n%s", diff)
	}
	v.says("Up")
	v.marks()
	mcp.Stop()
	v.says("Down")
	v.stayed()
	if diff := cmp.Diff(want, v.zoom()); diff != "" {
		t.Errorf("after the page has changed the form shows (-want +got):\n%s", diff)
	}
	begin := func() string {
		return evaluate[string](v.person, `document.querySelector("#zoom input[type=hidden][name=from]").value`)
	}
	evaluate[bool](v.person, `(() => {
		const from = document.querySelector("#zoom input");
		from.value = "2026-01-01T00:00";
		return from.dispatchEvent(new Event("input", { bubbles: true }));
	})()`)
	if got := begin(); got != "2025-12-31T14:30" {
		t.Errorf("midnight in Darwin would be sent as %q", got)
	}
	evaluate[bool](v.person, `(document.querySelector("#zoom form").reset(), true)`)
	awaitWithin(t, personPatience, "the form to be as it came", func() bool { return begin() == from.Format("2006-01-02T15:04") })
	v.sends("Show")
	got := evaluate[[]string](v.person, `["from", "to"].map(name => new URL(location).searchParams.get(name))`)
	if diff := cmp.Diff([]string{from.Format("2006-01-02T15:04"), to.Format("2006-01-02T15:04")}, got); diff != "" {
		t.Errorf("the form leads to another stretch (-want +got):\n%s", diff)
	}

	v.open(v.path)
	for what, words := range map[string]string{
		"the chart":                   evaluate[string](v.person, `document.getElementById("latency-title").textContent`),
		"the slowest hour":            evaluate[string](v.person, `document.getElementById("latency-desc").textContent`),
		"an hour of the chart's rows": evaluate[string](v.person, `(t => t.textContent + " (" + t.title + ")")(document.querySelector("#latency-table tbody time"))`),
	} {
		if !strings.Contains(words, ":30 (") && !strings.Contains(words, ":30 AM (") && !strings.Contains(words, ":30 PM (") || !strings.Contains(words, " UTC)") {
			t.Errorf("%s is told with %q, want the reader's hour and UTC", what, words)
		}
	}

	id, _ := i.incidents("weather")[0]["id"].(string)
	v.open("/incidents/" + id)
	v.sees("until 9:00", "GMT+9:30")
	earliest := morningOf(t, zone)
	v.enters(entry{label: "Snooze for", text: "morning"})
	v.sends("Snooze")
	var kept struct {
		Until time.Time `json:"snoozed_until"`
	}
	i.call("GET", "/api/v1/incidents/"+id, nil, 200, &kept)
	if latest := morningOf(t, zone); !kept.Until.Equal(earliest) && !kept.Until.Equal(latest) {
		t.Errorf("snoozed until %s, want %s", kept.Until, earliest)
	}

	v.open("/")
	if bar := evaluate[string](v.person, `document.querySelector("svg.hours").getAttribute("aria-label")`); !strings.Contains(bar, ":30") || !strings.Contains(bar, ":00 UTC)") {
		t.Errorf("the bar of the overview says %q, want the worst hour by the reader's clock and by UTC", bar)
	}
	v.invites("bob")
	if link := evaluate[string](v.person, `document.querySelector("section.shown p").textContent`); !strings.Contains(link, " UTC)") {
		t.Errorf("the link works %q, want until when by the reader's clock and by UTC", link)
	}
	v.leaves()
}

// zoom returns what the form for another time holds, and what its fields are called.
func (p *person) zoom() []string {
	p.t.Helper()
	return evaluate[[]string](p, `(all => [...all.map(f => f.value), ...all.map(f => f.parentNode.innerText.trim().replace(/\s+/g, " "))])([...document.querySelectorAll("#zoom input:not([type=hidden])")])`)
}

// clockOf returns a moment as a field has it that keeps the time of a zone.
func clockOf(t *testing.T, at time.Time, zone string) string {
	t.Helper()
	return at.In(place(t, zone)).Format("2006-01-02T15:04")
}

// morningOf returns the next nine o'clock in a zone.
func morningOf(t *testing.T, zone string) time.Time {
	t.Helper()
	now := time.Now().In(place(t, zone))
	nine := time.Date(now.Year(), now.Month(), now.Day(), 9, 0, 0, 0, now.Location())
	if !nine.After(now) {
		nine = nine.AddDate(0, 0, 1)
	}
	return nine
}

func place(t *testing.T, zone string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return location
}
