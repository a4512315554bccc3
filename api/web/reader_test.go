package web_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func TestTextsOfOthersAreKnownForTheMomentsThatTheyAre(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 23, 51, 0, time.UTC)
	for text, want := range map[string]bool{"2026-11-22T10:23:51Z": true, `"2026-11-22T11:23:51+01:00"`: true, "2026-11-22": false, "": false, "soon": false} {
		if got := (web.AuditRow{}).Moment(text); (got != nil) != want || want && !got.Equal(at) {
			t.Errorf("%q in the log of changes is the moment %v", text, got)
		}
	}
	minute := at.Truncate(time.Minute)
	for _, test := range []struct {
		kind store.EntryKind
		text string
		want bool
	}{
		{store.EntrySnoozed, "until 2026-11-22 10:23 UTC", true},
		{store.EntryComment, "until 2026-11-22 10:23 UTC", false}, // somebody's own words
		{store.EntrySnoozed, "until they are back", false},
	} {
		row := web.TimelineRow{Kind: test.kind, Text: test.text}
		if got := row.Until(); (got != nil) != test.want || test.want && !got.Equal(minute) {
			t.Errorf("%q of %s is until %v", row.Text, row.Kind, got)
		}
	}
}

func TestSnoozeAndChangesAreShownAsTimes(t *testing.T) {
	samples := samples()
	incident, audit := samples["incident"].(web.IncidentPage), samples["audit"].(web.AuditPage)
	incident.Timeline = []web.TimelineRow{{Kind: store.EntrySnoozed, Author: "ada", Text: "until 2026-11-22 10:23 UTC"}}
	audit.Rows = []web.AuditRow{{Noun: "maintenance", Verb: "update", Changes: []store.Change{{Field: "starts_at", Before: "2026-11-22T10:23:51Z", After: "2026-11-22T11:00:00Z"}}}}
	for name, want := range map[string]string{
		render(t, incident): `until <time datetime="2026-11-22T10:23:00.000Z" data-at>`,
		render(t, audit):    `<time datetime="2026-11-22T10:23:51.000Z" data-at>22 Nov 2026, 10:23:51 UTC</time>`,
	} {
		if !strings.Contains(name, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

// Quotation marks are for what the endpoint said; what Rollcall makes of it is plain text in the reader's language.
func TestOnlyWordsOfTheEndpointAreQuoted(t *testing.T) {
	page := samples()["incident"].(web.IncidentPage)
	for _, test := range []struct {
		failure  probe.Failure
		language string
		want     string
	}{
		{probe.Failure{Class: probe.ClassTimeout, Message: "no first byte after 2.7 s"}, "", "no answer in time: <bdi>no first byte after 2.7 s</bdi></span>"},
		{probe.Failure{Class: probe.ClassTimeout, Message: "no first byte after 2.7 s"}, "de", "keine rechtzeitige Antwort: <bdi>nach 2,7 s kein erstes Byte</bdi></span>"},
		{probe.Failure{Class: probe.ClassRPCError, Message: "no <b>first</b> byte"}, "de", `<q dir="auto">no &lt;b&gt;first&lt;/b&gt; byte</q></span>`},
		{probe.Failure{Class: probe.ClassContentType, Message: "answered with text/html in place of JSON-RPC: Log <in>"}, "", `<bdi>answered with text/html in place of JSON-RPC</bdi>: <q dir="auto">Log &lt;in&gt;</q></span>`},
	} {
		page.Incident.Cause, page.Language = test.failure, test.language
		if got := render(t, page); !strings.Contains(got, test.want) {
			t.Errorf("%q in %q: the page does not hold %q", test.failure.Message, test.language, test.want)
		}
	}
}

// The script says a moment by the reader's clock where it finds the server's words for it: they have to stand there as they are told.
func TestMomentsInWordsAreFoundByTheScript(t *testing.T) {
	german := overview()
	german.Language = "de"
	samples := samples()
	marked := regexp.MustCompile(`(?s)<(?:svg|title|desc|option|p)\b[^>]* data-hour="[^"]+" data-said="([^"]+)"[^>]*>[^<]*`)
	for name, page := range map[string]web.Page{
		"the overview": overview(), "the overview in German": german, "an endpoint": endpointDown(), "a contract": samples["contract"], "members": samples["members"],
	} {
		found := marked.FindAllStringSubmatch(render(t, page), -1)
		if len(found) == 0 {
			t.Errorf("%s tells of no moment", name)
		}
		for _, f := range found {
			for said := range strings.SplitSeq(f[1], "|") {
				if strings.Count(f[0], said) < 2 {
					t.Errorf("%s: %q is not in the words of %s", name, said, f[0])
				}
			}
		}
	}
}
