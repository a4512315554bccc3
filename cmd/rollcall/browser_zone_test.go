package main_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

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
