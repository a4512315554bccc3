package alerts_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

const publicURL = "https://rollcall.example/monitor"

// saying is a message and what it is an example of.
type saying struct {
	name    string
	message alerts.Message
}

// TestMessages holds every message against a golden file, as plain text.
func TestMessages(t *testing.T) {
	for _, s := range sayings(t) {
		t.Run(s.name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", strings.ReplaceAll(s.name, " ", "_")+".txt"), []byte(s.message.Text()+"\n"))
		})
	}
}

// TestWordsInSlack holds what Slack is sent for each of them against a golden file.
func TestWordsInSlack(t *testing.T) {
	for _, s := range sayings(t) {
		t.Run(s.name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", strings.ReplaceAll(s.name, " ", "_")+".slack.json"), asSlackGetsIt(t, s.message))
		})
	}
}

func sayings(t *testing.T) []saying {
	t.Helper()
	return slices.Concat(openings(), updates(), endings(), otherKinds(), ofEvents(t), inPublic())
}

// team words a delivery of notices of these kinds, with an entry where there is one.
func team(i store.Incident, entry *store.Entry, kinds ...store.NoticeKind) alerts.Message {
	d := delivery(i, weather(), kinds...)
	d.Entry = entry
	return alerts.NewMessage(d, publicURL)
}

// after is a line of a timeline, minutes after the outage began.
func after(minutes int, kind store.EntryKind, author, text string) *store.Entry {
	return &store.Entry{ID: "ent_1", IncidentID: "inc_1", At: epoch.Add(time.Duration(minutes) * time.Minute), Kind: kind, Author: author, Text: text}
}

func openings() []saying {
	silent, seen, dull := outage(), outage(), weather()
	silent.Cause = probe.Failure{Step: "initialize", Class: probe.ClassTimeout}
	seen.SeenFrom = []string{"ams", "fra"}
	withDependents := delivery(seen, weather(), store.NoticeOpened)
	withDependents.Dependents = []string{"Forecast", "Radar"}
	noLink := delivery(silent, dull, store.NoticeOpened)
	return []saying{
		{"opened", team(outage(), nil, store.NoticeOpened)},
		{"opened with others behind it", alerts.NewMessage(withDependents, publicURL)},
		{"opened without words of the server and without links", alerts.NewMessage(noLink, "")},
		{"opened late", team(recovered(), nil, store.NoticeOpened)},
		{"opened degraded", team(failing(store.StatusDegraded, "tools/list", probe.ClassSlow, 0, "6.2s of an allowed 5s"), nil, store.NoticeOpened)},
		{"opened unknown", team(failing(store.StatusUnknown, "initialize", probe.ClassRateLimited, 429, "Too Many Requests"), nil, store.NoticeOpened)},
		{"opened wants credentials", team(failing(store.StatusGated, "initialize", probe.ClassAuthRequired, 401, "unauthorized"), nil, store.NoticeOpened)},
		{"opened turned away", team(failing(store.StatusGated, "tools/list", probe.ClassAuthForbidden, 403, "insufficient_scope"), nil, store.NoticeOpened)},
		{"credential rejected", team(failing(store.StatusGated, "initialize", probe.ClassCredentialRejected, 401, "invalid_token"), nil, store.NoticeOpened)},
		{"chain lag", ofNode(failing(store.StatusDown, "eth_getBlockByNumber", probe.ClassHeadBehind, 0, "29,500 blocks behind geth-1, geth-2 and 2 more"), store.NoticeOpened)},
		{"chain lag of a few blocks", ofNode(failing(store.StatusDegraded, "eth_getBlockByNumber", probe.ClassHeadLagging, 0, "12 blocks behind geth-1 and geth-2"), store.NoticeOpened)},
		{"opened by a hostile server", alerts.NewMessage(delivery(hostile(), mocking(), store.NoticeOpened), publicURL)},
		{"opened and worse by the time it is told", team(outage(), after(2, store.EntrySeverity, "", ""), store.NoticeOpened, store.NoticeUpdated)},
	}
}

// ofNode words a delivery about a node of a chain.
func ofNode(i store.Incident, kinds ...store.NoticeKind) alerts.Message {
	e := weather()
	e.ID, e.Slug, e.Name, e.URL = "ep_2", "geth-3", "geth-3", "https://geth-3.example/"
	i.EndpointID, i.Subject, i.Slug = e.ID, e.ID, e.Slug
	return alerts.NewMessage(delivery(i, e, kinds...), publicURL)
}

func updates() []saying {
	better := failing(store.StatusDegraded, "tools/list", probe.ClassSlow, 0, "6.2s of an allowed 5s")
	better.Worst = store.StatusDown
	acknowledged, snoozed := outage(), outage()
	acknowledged.AcknowledgedAt, acknowledged.AcknowledgedBy = new(epoch.Add(3*time.Minute)), "ada"
	snoozed.SnoozedUntil = new(epoch.Add(2 * time.Hour))
	reminder := delivery(outage(), weather(), store.NoticeReminder)
	reminder.Notice.DueAt = epoch.Add(90 * time.Minute)
	escalation := delivery(outage(), weather(), store.NoticeEscalation)
	escalation.Notice.DueAt = epoch.Add(10*time.Minute + 6*time.Second)
	flapping := outage()
	flapping.Flapping = true
	unjudged := delivery(failing(store.StatusUnknown, "initialize", probe.ClassRateLimited, 429, "Too Many Requests"), weather(), store.NoticeReminder)
	unjudged.Notice.DueAt = epoch.Add(3 * time.Hour)
	return []saying{
		{"got worse", team(outage(), after(8, store.EntrySeverity, "", ""), store.NoticeUpdated)},
		{"got better", team(better, after(8, store.EntrySeverity, "", ""), store.NoticeUpdated)},
		{"another cause", team(outage(), after(8, store.EntryCause, "", ""), store.NoticeUpdated)},
		{"acknowledged", team(acknowledged, after(3, store.EntryAcknowledged, "ada", "on it"), store.NoticeUpdated)},
		{"snoozed", team(snoozed, after(3, store.EntrySnoozed, "ada", "until 2026-11-21 10:00 UTC"), store.NoticeUpdated)},
		{"comment", team(outage(), after(5, store.EntryComment, "ada", "The database ran out of disk.\nWe are moving it."), store.NoticeUpdated)},
		{"comment after the end", team(recovered(), after(30, store.EntryComment, "ada", "It was the disk."), store.NoticeUpdated)},
		{"reopened", team(outage(), after(9, store.EntryReopened, "ada", "not yet"), store.NoticeUpdated)},
		{"reopened because it got worse", team(outage(), after(9, store.EntryReopened, "", "worse than when it was declared over"), store.NoticeOpened)},
		{"reminder", alerts.NewMessage(reminder, publicURL)},
		{"reminder of what cannot be judged", alerts.NewMessage(unjudged, publicURL)},
		{"escalation", alerts.NewMessage(escalation, publicURL)},
		{"flapping", team(flapping, after(40, store.EntryFlapping, "", ""), store.NoticeFlapping)},
		{"flapping as it opens", team(flapping, after(0, store.EntryFlapping, "", ""), store.NoticeOpened, store.NoticeFlapping)},
		{"calmed", team(outage(), after(140, store.EntryCalmed, "", ""), store.NoticeCalmed)},
	}
}

func endings() []saying {
	flapped := ended(outage(), 3*time.Hour+10*time.Minute, store.ResolutionRecovered)
	flapped.Flapping = true
	gated := failing(store.StatusGated, "initialize", probe.ClassCredentialRejected, 401, "invalid_token")
	return []saying{
		{"resolved", team(recovered(), after(12, store.EntryResolved, "", ""), store.NoticeResolved)},
		{"resolved by a pause", team(ended(outage(), 50*time.Hour, store.ResolutionPaused), nil, store.NoticeResolved)},
		{"resolved by a pause of what turned us away", team(ended(gated, time.Hour, store.ResolutionPaused), nil, store.NoticeResolved)},
		{"resolved by hand", team(ended(outage(), time.Hour, store.ResolutionManual), after(60, store.EntryResolved, "ada", "good enough"), store.NoticeResolved)},
		{"resolved with its opening", team(recovered(), after(12, store.EntryResolved, "", ""), store.NoticeOpened, store.NoticeUpdated, store.NoticeResolved)},
		{"resolved after it came and went", team(flapped, after(190, store.EntryResolved, "", ""), store.NoticeResolved)},
	}
}

func otherKinds() []saying {
	expiring := of(store.IncidentExpiring, failing(store.StatusDegraded, "initialize", probe.ClassTLSExpiring, 0, "the certificate ends in 9 days (2026-11-30)"))
	token := of(store.IncidentExpiring, failing(store.StatusGated, "initialize", probe.ClassCredentialExpiring, 0, "the token in the Authorization header ends in 20 hours (2026-11-22)"))
	chain := of(store.IncidentChain, failing(store.StatusDegraded, "eth_getBlockByNumber", probe.ClassChainHalted, 0, "all 4 endpoints of the chain stand still at 20831387"))
	chain.Title, chain.Subject, chain.EndpointID = "Ethereum (evm 1)", store.SubjectOfChain("evm 1"), ""
	location := of(store.IncidentLocation, failing(store.StatusUnknown, "", probe.ClassLocationOffline, 0, "no reference address answers"))
	location.Title, location.Subject, location.EndpointID = "fra", store.SubjectOfLocation("fra"), ""
	burning := alerts.ObjectiveIncident(weather(), store.Objective{Name: "availability", Target: 99.9, Days: 30}, 14.93, true, epoch)
	burning.ID = "inc_1"
	manual := of(store.IncidentManual, failing(store.StatusDegraded, "", "", 0, ""))
	manual.Title, manual.Subject, manual.EndpointID, manual.SeenFrom = "Slow answers in Europe", "manual/inc_1", "", nil
	removed := outage()
	removed.Title = "Weather"
	without := func(i store.Incident, entry *store.Entry, kind store.NoticeKind) alerts.Message {
		d := delivery(i, store.Endpoint{}, kind)
		d.Entry = entry
		return alerts.NewMessage(d, publicURL)
	}
	over := func(i store.Incident) store.Incident { return ended(i, 2*time.Hour, store.ResolutionRecovered) }
	return []saying{
		{"certificate expiring", team(expiring, nil, store.NoticeOpened)},
		{"certificate renewed", team(over(expiring), nil, store.NoticeResolved)},
		{"credential expiring", team(token, nil, store.NoticeOpened)},
		{"chain halted", without(chain, after(0, store.EntryOpened, "", "geth-1"), store.NoticeOpened)},
		{"chain still halted", without(chain, nil, store.NoticeReminder)},
		{"chain halted for one more", without(chain, after(4, store.EntryJoined, "", "geth-2"), store.NoticeOpened)},
		{"resolved by a removal", without(ended(removed, time.Hour, store.ResolutionRemoved), nil, store.NoticeResolved)},
		{"chain of which the last was removed", without(ended(chain, time.Hour, store.ResolutionRemoved), nil, store.NoticeResolved)},
		{"chain moves again", without(over(chain), nil, store.NoticeResolved)},
		{"location without network", without(location, nil, store.NoticeOpened)},
		{"location with network again", without(over(location), nil, store.NoticeResolved)},
		{"objective burning", team(burning, nil, store.NoticeOpened)},
		{"objective no longer burning", team(over(burning), nil, store.NoticeResolved)},
		{"manual opened", without(manual, after(0, store.EntryOpened, "ada", "A cable is cut."), store.NoticeOpened)},
		{"manual commented", without(manual, after(20, store.EntryComment, "ada", "It is being mended."), store.NoticeUpdated)},
		{"manual over", without(ended(manual, 2*time.Hour, store.ResolutionManual), after(120, store.EntryResolved, "ada", "The cable is whole."), store.NoticeResolved)},
		{"digest", alerts.NewDigest(storm(30), publicURL)},
		{"digest of the end", alerts.NewDigest(storm(30)[27:], publicURL)},
		{"digest of several kinds", alerts.NewDigest([]store.Delivery{
			delivery(outage(), weather(), store.NoticeOpened), delivery(chain, store.Endpoint{}, store.NoticeOpened),
			delivery(expiring, weather(), store.NoticeOpened), delivery(over(location), store.Endpoint{}, store.NoticeOpened),
		}, publicURL)},
	}
}

func ofEvents(t *testing.T) []saying {
	t.Helper()
	changed := event(t, "The tool list changed (1 breaking, 1 to look at, 1 harmless)", 0,
		probe.Change{Rank: probe.RankBreaking, Kind: "tool_removed", Tool: "forecast", Message: "the tool is gone"},
		probe.Change{Rank: probe.RankWarning, Kind: "annotations_changed", Tool: "alerts", Message: "it may do harm that said it would not"},
		probe.Change{Rank: probe.RankInfo, Kind: "optional_added", Tool: "alerts", Path: "/inputSchema/properties/region", Message: "an argument that may be given"})
	flood := make([]probe.Change, 20)
	for i := range flood {
		flood[i] = probe.Change{Rank: probe.RankBreaking, Tool: "<!channel> @here `x`\n\u202E", Path: strings.Repeat("&", 600), Message: hostile().Cause.Message}
	}
	overrun := event(t, "The tool list changed", 181, flood...)

	offline := locationEvent(store.EventLocationOffline, `{"location": "fra", "since": "2026-11-21T12:03:20Z", "until": null, "endpoints": 120}`)
	online := locationEvent(store.EventLocationOnline, `{"location": "fra", "since": "2026-11-21T12:03:20Z", "until": "2026-11-21T12:41:50Z", "endpoints": 1}`)
	strange := locationEvent(store.EventLocationOffline, `{"location": "<!channel> *fra* @here", "since": "2026-11-21T12:03:20Z", "until": null, "endpoints": 0}`)
	bare := locationEvent(store.EventLocationOffline, `[]`)
	words := func(ev store.Event, e store.Endpoint, publicURL string) alerts.Message {
		return alerts.NewMessage(store.Delivery{Notice: store.Notice{ID: "ntc_1", EventID: "evt_1"}, Event: &ev, Endpoint: e}, publicURL)
	}
	return []saying{
		{"tools changed", words(changed, weather(), publicURL)},
		{"tools changed by a hostile server", words(overrun, mocking(), "")},
		{"location offline", words(offline, store.Endpoint{}, publicURL)},
		{"location online again", words(online, store.Endpoint{}, publicURL)},
		{"location with a strange name offline", words(strange, store.Endpoint{}, "")},
		{"channel broken", words(store.Event{
			At: epoch, Kind: store.EventChannelBroken, Severity: "warning", Title: "Channel ops is broken",
			Data: []byte(`{"channel": "ch_1", "reason": "the webhook was removed or switched off: make another one (no_service)"}`),
		}, store.Endpoint{}, publicURL)},
		{"location event without data", words(bare, store.Endpoint{}, publicURL)},
		{"test", alerts.NewTestMessage(store.Channel{Name: "ops"}, publicURL)},
		{"question", question(publicURL + "/status/confirm?token=t")},
		{"question of who is subscribed", question("")},
		{"question of a page", pageQuestion()},
	}
}

// question is what somebody from the public is asked who subscribes.
func question(confirmURL string) alerts.Message {
	m := alerts.NewQuestion("", confirmURL, publicURL+"/status/subscription?token=t")
	m.ID = "ask_1"
	return m
}

// pageQuestion is what they are asked who subscribe on a page of its own.
func pageQuestion() alerts.Message {
	m := alerts.NewQuestion("AC\u202eME\n", "https://status.acme.example/confirm?token=t", "")
	m.ID = "ask_1"
	return m
}

func inPublic() []saying {
	said := after(10, store.EntryComment, "ada", "We are moving the database.")
	said.Public = true
	manual := of(store.IncidentManual, failing(store.StatusDegraded, "", "", 0, ""))
	manual.Title, manual.EndpointID = "Slow answers in Europe", ""
	announced := after(0, store.EntryOpened, "ada", "A cable is cut.")
	announced.Public = true
	ofAll := publicly(manual, announced, store.NoticeOpened)
	ofAll.Endpoint = store.Endpoint{}
	return []saying{
		{"public opened", alerts.NewMessage(publicly(outage(), nil, store.NoticeOpened), publicURL)},
		{"public opened turned away", alerts.NewMessage(publicly(
			failing(store.StatusGated, "initialize", probe.ClassCredentialRejected, 401, "invalid_token"), nil, store.NoticeOpened), publicURL)},
		{"public comment", alerts.NewMessage(publicly(outage(), said, store.NoticeUpdated), publicURL)},
		{"public manual opened", alerts.NewMessage(ofAll, publicURL)},
		{"public resolved", alerts.NewMessage(publicly(recovered(), nil, store.NoticeResolved), publicURL)},
		{"public resolved by a pause", alerts.NewMessage(publicly(ended(outage(), time.Hour, store.ResolutionPaused), nil, store.NoticeResolved), publicURL)},
		{"public digest", alerts.NewDigest([]store.Delivery{publicly(outage(), nil, store.NoticeOpened), ofAll}, publicURL)},
		{"page opened", alerts.NewMessage(onPage(acme, publicly(outage(), nil, store.NoticeOpened)), publicURL)},
		{"page opened without the endpoint", alerts.NewMessage(onPage(store.StatusPage{Slug: "acme"}, publicly(outage(), nil, store.NoticeOpened)), publicURL)},
		{"page digest", alerts.NewDigest([]store.Delivery{onPage(acme, publicly(outage(), nil, store.NoticeOpened)), onPage(acme, ofAll)}, publicURL)},
	}
}

// acme is a status page with a domain of its own.
var acme = store.StatusPage{
	ID: "page_1", Slug: "acme", Name: "ACME", Domain: "status.acme.example", DomainProvenAt: new(epoch), Sections: []store.PageSection{{Endpoints: []string{"ep_1"}}},
}

// onPage makes a delivery one to somebody who subscribed on a status page.
func onPage(p store.StatusPage, d store.Delivery) store.Delivery {
	d.Subscription, d.Page = &store.Subscription{ID: "sub_1", PageID: "page_1"}, &p
	d.Endpoint.Public = false
	return d
}

// publicly is a delivery to somebody from the public.
func publicly(i store.Incident, entry *store.Entry, kinds ...store.NoticeKind) store.Delivery {
	d := delivery(i, weather(), kinds...)
	d.Endpoint.Public = true
	d.Entry, d.Subscription, d.Dependents = entry, &store.Subscription{ID: "sub_1"}, []string{"Secret Radar"}
	return d
}

// storm is as many incidents at once, the last three of them over.
func storm(n int) []store.Delivery {
	ds := make([]store.Delivery, 0, n)
	for k := range n {
		i, e := outage(), weather()
		i.ID, e.Name = fmt.Sprintf("inc_%02d", k), fmt.Sprintf("Weather %02d", k)
		i.StartedAt = epoch.Add(time.Duration(n-k) * time.Second)
		if k%5 == 0 {
			i.Severity, i.Cause = store.StatusDegraded, probe.Failure{Class: probe.ClassSlow, Message: "6.2s of an allowed 5s"}
		}
		kind := store.NoticeOpened
		if k >= n-3 {
			i, kind = ended(i, 10*time.Minute, store.ResolutionRecovered), store.NoticeResolved
		}
		ds = append(ds, delivery(i, e, kind))
	}
	return ds
}

// TestMessagesToThePublicHoldNothingThatAStatusPageDoesNotShow fills everything that is ours with a word of its own.
func TestMessagesToThePublicHoldNothingThatAStatusPageDoesNotShow(t *testing.T) {
	i := outage()
	i.SeenFrom, i.AcknowledgedBy = []string{"secret-location"}, "secret-ada"
	i.Cause = probe.Failure{Step: "secret-step", Class: "secret-class", Code: 31337, Message: "secret-message"}
	e := weather()
	e.URL = "https://secret-host.example/secret-path"
	entry := after(3, store.EntryAcknowledged, "secret-ada", "secret-text")
	for _, kind := range []store.IncidentKind{
		store.IncidentEndpoint, store.IncidentExpiring, store.IncidentObjective, store.IncidentChain, store.IncidentLocation, store.IncidentManual,
	} {
		for _, notice := range []store.NoticeKind{
			store.NoticeOpened, store.NoticeUpdated, store.NoticeReminder, store.NoticeEscalation, store.NoticeFlapping, store.NoticeCalmed, store.NoticeResolved,
		} {
			for _, severity := range store.Severities() {
				i.Kind, i.Severity, i.Worst = kind, severity, store.StatusDown
				for _, stage := range []store.Incident{i, ended(i, time.Minute, store.ResolutionRecovered), ended(i, time.Minute, store.ResolutionManual)} {
					d := publicly(stage, entry, notice)
					d.Endpoint = e
					for _, m := range []alerts.Message{alerts.NewMessage(d, publicURL), alerts.NewPublicMessage(d, publicURL), alerts.NewDigest([]store.Delivery{d}, publicURL)} {
						text := fmt.Sprintf("%+v", m)
						for _, word := range []string{"secret", "Secret", "31337"} {
							if strings.Contains(text, word) {
								t.Fatalf("%s %s %s: %q in %s", kind, notice, severity, word, text)
							}
						}
						if m.Title == "" || m.Acts {
							t.Fatalf("%s %s %s: title %q, acts %t", kind, notice, severity, m.Title, m.Acts)
						}
					}
				}
			}
		}
	}
}

// TestMessagesOfSeveralNotices holds what one message is about that tells several, against how the incident stands.
func TestMessagesOfSeveralNotices(t *testing.T) {
	flapping := outage()
	flapping.Flapping = true
	const (
		opened, updated, reminder, escalation = store.NoticeOpened, store.NoticeUpdated, store.NoticeReminder, store.NoticeEscalation
		resolved, calmed, flaps               = store.NoticeResolved, store.NoticeCalmed, store.NoticeFlapping
	)
	tests := []struct {
		incident store.Incident
		kinds    []store.NoticeKind
		want     alerts.Kind
	}{
		{outage(), []store.NoticeKind{opened, updated, updated}, alerts.KindOpened},
		{recovered(), []store.NoticeKind{opened, resolved}, alerts.KindResolved},
		{recovered(), []store.NoticeKind{updated, updated, resolved}, alerts.KindResolved},
		{recovered(), []store.NoticeKind{escalation, resolved}, alerts.KindResolved},
		{outage(), []store.NoticeKind{resolved, updated}, alerts.KindOpened}, // somebody opened it again
		{flapping, []store.NoticeKind{opened, flaps}, alerts.KindFlapping},
		{outage(), []store.NoticeKind{flaps, calmed}, alerts.KindCalmed},
		{outage(), []store.NoticeKind{reminder}, alerts.KindReminder},
		{outage(), []store.NoticeKind{reminder, updated}, alerts.KindUpdated},
		{outage(), []store.NoticeKind{escalation, updated}, alerts.KindEscalation},
		{outage(), []store.NoticeKind{updated}, alerts.KindUpdated},
		{recovered(), []store.NoticeKind{opened}, alerts.KindOpened},
	}
	for _, tt := range tests {
		m := team(tt.incident, nil, tt.kinds...)
		if m.Kind != tt.want || m.Open != (tt.incident.ResolvedAt == nil) || m.ID != "ntc_0" || m.Incident != "inc_1" {
			t.Errorf("%v of an incident that is over: %t: got a %s, open: %t, of %s and %s; want a %s",
				tt.kinds, tt.incident.ResolvedAt != nil, m.Kind, m.Open, m.ID, m.Incident, tt.want)
		}
	}
}

// locationEvent returns an event about one of our locations.
func locationEvent(kind store.EventKind, data string) store.Event {
	return store.Event{
		ID: "evt_1", At: time.Date(2026, time.November, 21, 12, 4, 0, 0, time.UTC), Kind: kind, Severity: "warning",
		Title: "A location lost its network", Data: json.RawMessage(data),
	}
}

// event returns a change of the tool list.
func event(t *testing.T, title string, more int, changes ...probe.Change) store.Event {
	t.Helper()
	data, err := json.Marshal(store.ContractChanged{ContractID: "con_1", Key: "modern", Hash: "sha256:1", Changes: changes, More: more})
	if err != nil {
		t.Fatal(err)
	}
	return store.Event{At: epoch, Kind: store.EventContractChanged, Severity: string(changes[0].Rank), Title: title, Data: data}
}

// asSlackGetsIt returns text and blocks of a message as they came over the wire.
func asSlackGetsIt(t *testing.T, m alerts.Message) []byte {
	t.Helper()
	slack := alertstest.NewSlack(t)
	channel, ref := webhookChannel(slack), ""
	if m.Acted { // said only where a message can be changed
		channel = botChannel(slack)
		channel.Secrets["signing_secret"] = alertstest.SigningSecret
		opened, err := newSlack().Send(t.Context(), channel, "", alerts.Message{Kind: alerts.KindOpened, Title: "It is down"})
		if err != nil {
			t.Fatal(err)
		}
		ref = opened.Ref
	}
	if _, err := newSlack().Send(t.Context(), channel, ref, m); err != nil {
		t.Fatal(err)
	}
	sent := slack.Messages()[0]
	if _, ts, ok := strings.Cut(ref, ":"); ok {
		sent, _ = slack.Shown(ts)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{"text": sent.Text, "blocks": json.RawMessage(sent.Blocks)}); err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(b.String()))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("%s (-got +want):\n%s", name, diff)
	}
}

func TestMessagesWithHostileWordsStayWords(t *testing.T) {
	i := outage()
	for _, evil := range []string{
		"<!channel>", "<!here|here>", "<@U012345>", "<https://evil.example|log in>", "```\n*free*", "@channel", "@everyone",
		"line\nbreak\u2028\u2029\x1b[31m", "\u202Ereversed\u2066", "\xff\xfe", strings.Repeat("&", 5000), strings.Repeat("\u200b", 5000),
	} {
		i.Cause = probe.Failure{Step: evil, Class: probe.Class(evil), Code: 1, Message: evil}
		e := weather()
		e.Name, e.URL = evil, "https://example.com/"+evil

		m := alerts.NewMessage(delivery(i, e, store.NoticeOpened), publicURL)
		sent := asSlackGetsIt(t, m) // which refuses what breaks Slack's limits
		for _, bad := range []string{"<!channel", "<!here", "<@U", "<https://evil", "@channel", "@everyone", "````", "*free*\n", `\u2028`, `\u001b`, "\u202e", "\u2066"} {
			if bytes.Contains(sent, []byte(bad)) {
				t.Errorf("%.20q reached Slack as %q:\n%s", evil, bad, sent)
			}
		}
		if text := m.Text(); !utf8.ValidString(text) || len(text) > 20000 {
			t.Errorf("%.20q became a text of %d bytes, valid: %t", evil, len(text), utf8.ValidString(text))
		}
	}
}

func TestMessagesSayInWordsHowLongItLasted(t *testing.T) {
	tests := []struct {
		lasted time.Duration
		want   string
	}{
		{0, "less than a second"},
		{400 * time.Millisecond, "less than a second"},
		{time.Second, "1 second"},
		{59*time.Second + 400*time.Millisecond, "59 seconds"},
		{59*time.Second + 600*time.Millisecond, "1 minute"},
		{12*time.Minute + 4*time.Second, "12 minutes 4 seconds"},
		{time.Hour + 3*time.Second, "1 hour"},
		{2*time.Hour + time.Minute + 59*time.Second, "2 hours 1 minute"},
		{25 * time.Hour, "1 day 1 hour"},
		{90 * 24 * time.Hour, "90 days"},
	}
	for _, tt := range tests {
		m := team(ended(outage(), tt.lasted, store.ResolutionRecovered), nil, store.NoticeResolved)
		if m.Lasted != tt.want {
			t.Errorf("%s lasted %q, want %q", tt.lasted, m.Lasted, tt.want)
		}
	}
}

// TestMessagesHaveAMeaningForEveryClass reads the closed list of classes from its source, so that one which is added there cannot
// be forgotten here. Those that only warn decide nothing, but for the two that open an incident.
func TestMessagesHaveAMeaningForEveryClass(t *testing.T) {
	told := 0
	for _, class := range classes(t) {
		if class.Verdict() == probe.Up && class != probe.ClassTLSExpiring && class != probe.ClassCredentialExpiring {
			continue
		}
		told++
		i := outage()
		i.Severity, i.Cause.Class = store.Status(class.Verdict()), class
		got := team(i, nil, store.NoticeOpened).Meaning
		if !strings.HasSuffix(got, ".") || strings.Count(got, ". ") > 0 {
			t.Errorf("meaning of %s = %q, want one sentence", class, got)
		}
	}
	if told < 50 {
		t.Errorf("found %d classes in package probe that a message may be about, want at least 50", told)
	}
}

func classes(t *testing.T) []probe.Class {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../probe/class.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []probe.Class
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || fmt.Sprint(spec.Type) != "Class" {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			found = append(found, probe.Class(strings.Trim(literal.Value, `"`)))
		}
		return true
	})
	return found
}

func weather() store.Endpoint {
	e := store.NewEndpoint()
	e.ID, e.Slug, e.Name, e.URL = "ep_1", "weather", "Weather", "https://weather.example/mcp?api_key=hunter2"
	return e
}

// mocking is an endpoint whose owner tries things.
func mocking() store.Endpoint {
	e := weather()
	e.Name, e.URL = "*<!here>* `a` ~b~ & @everyone", "https://example.com/a|b/`x`?token=hunter2"
	return e
}

func outage() store.Incident {
	return failing(store.StatusDown, "tools/list", probe.ClassRPCError, -32603, "Internal error: database is locked")
}

// recovered is an outage that is over.
func recovered() store.Incident {
	return ended(outage(), 12*time.Minute+4*time.Second, store.ResolutionRecovered)
}

// hostile is an outage whose server says things.
func hostile() store.Incident {
	i := outage()
	i.Cause.Message = "<!channel> @channel @here <https://evil.example|click> ``` & *bold*\n\r\x00\u202Etxt.exe https://evil.example " +
		strings.Repeat("é<&>`", 100) + "\xff"
	return i
}

func failing(severity store.Status, step string, class probe.Class, code int, message string) store.Incident {
	return store.Incident{
		ID: "inc_1", Kind: store.IncidentEndpoint, Subject: "ep_1", EndpointID: "ep_1", Slug: "weather", Severity: severity, Worst: severity,
		StartedAt: epoch, OpenedAt: epoch.Add(6 * time.Second), SeenFrom: []string{"ams"},
		Cause: probe.Failure{Step: step, Class: class, Code: code, Message: message},
	}
}

func of(kind store.IncidentKind, i store.Incident) store.Incident {
	i.Kind = kind
	return i
}

// delivery is one of notices of these kinds, which the same channel hears of the same incident.
func delivery(i store.Incident, e store.Endpoint, kinds ...store.NoticeKind) store.Delivery {
	d := store.Delivery{Incident: i, Endpoint: e}
	for n, kind := range kinds {
		notice := store.Notice{ID: fmt.Sprintf("ntc_%d", n), IncidentID: i.ID, Kind: kind, CreatedAt: i.OpenedAt, DueAt: i.OpenedAt}
		if n == 0 {
			d.Notice = notice
			continue
		}
		d.Later = append(d.Later, notice)
	}
	return d
}

func ended(i store.Incident, after time.Duration, how store.Resolution) store.Incident {
	at := i.StartedAt.Add(after)
	i.ResolvedAt, i.Resolution = &at, how
	return i
}
