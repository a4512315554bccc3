package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// form is a form as somebody fills it in who makes every mistake at first, and then corrects them. "§" in a text is replaced by
// the name of whoever fills it in, so that two can do so.
type form struct {
	path    string
	unfolds []string // what is folded in it
	ticks   []string // by the beginning of their labels
	bad     []entry
	button  string
	good    []entry
	then    []string // what is to be read afterwards
	alike   bool     // there is another like it: that it takes what is good need not be seen without scripts
}

// TestEachFormTakesWhatIsGoodAndSaysWhatIsBad fills in each form of the team, in a browser and in one that runs no scripts: with
// mistakes, each of which is named beside its field while nothing that was typed is lost, and then without.
func TestEachFormTakesWhatIsGoodAndSaysWhatIsBad(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	mail := alertstest.NewSMTP(t)
	addr := freeAddress(t)
	i := setUp(t, "--allow-private", "127.0.0.0/8", "--public-url", "http://"+addr, "--smtp", mail.URL(), "--mail-from", "Rollcall <alerts@example.com>")
	mcp := probetest.MCP(t)
	i.call("POST", "/api/v1/endpoints", object{"name": "Weather", "slug": "weather", "url": mcp.URL, "public": true}, 201, nil)
	for _, who := range []string{"scripts", "plain"} {
		for _, name := range []string{"Many one ", "Many two "} {
			i.call("POST", "/api/v1/endpoints", object{"name": name + who, "url": "http://127.0.0.1:9/mcp", "confirm": object{"failures": 1}}, 201, nil)
		}
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			p := newPerson(browser, t, i.url)
			if who == "plain" {
				p.withoutScripts()
			}
			p.logIn()
			for _, f := range forms(mcp.URL) {
				p.fillsIn(f, who)
			}
			p.makesStatusPage(who)
			p.raisesAndActs(who)
			p.changesMany(who)
			p.subscribesAsAnybody(who)
			p.leaves()
		})
	}
}

// fillsIn fills in a form badly, and then well.
func (p *person) fillsIn(f form, who string) {
	p.t.Helper()
	named := func(text string) string { return strings.ReplaceAll(text, "§", who) }
	enter := func(entries []entry) {
		for i := range entries {
			entries[i].text = named(entries[i].text)
		}
		p.enters(entries...)
	}
	p.open(f.path)
	for _, words := range f.unfolds {
		p.unfold(words)
	}
	for _, label := range f.ticks {
		p.tick(label)
	}
	if len(f.bad) > 0 {
		enter(f.bad)
		p.turnedDown(f.button)
		p.holds(f)
	}
	if f.alike && who == "plain" {
		return
	}
	enter(f.good)
	p.sends(f.button)
	for _, words := range f.then {
		p.sees(named(words))
	}
}

// holds fails the test unless the form holds what was typed, and names the mistakes.
func (p *person) holds(f form) {
	p.t.Helper()
	for _, e := range f.bad {
		value, beside := p.typed(e.label)
		if value != e.text {
			p.t.Errorf("%s: of what was typed in %s, %q is left of %q", f.path, e.label, value, e.text)
		}
		if !strings.Contains(beside, e.wrong) {
			p.t.Errorf("%s: beside %s stands %q, want %q", f.path, e.label, beside, e.wrong)
		}
	}
	p.problemsLead(f.path)
}

// problemsLead fails the test unless each mistake in the list of them leads to a field, and each field that is marked says why.
func (p *person) problemsLead(where string) {
	p.t.Helper()
	if lost := evaluate[[]string](p, `[
		...[...document.querySelectorAll(".problems a")].filter(a => !document.getElementById(a.hash.slice(1))).map(a => a.outerHTML),
		...[...document.querySelectorAll("[aria-invalid=true]")].filter(e => !document.getElementById(e.getAttribute("aria-describedby"))?.querySelector(".wrong")).map(e => e.outerHTML),
		...(document.querySelector(".problems") ? [] : ["there is no list of problems"]),
	]`); len(lost) > 0 {
		p.t.Errorf("%s: %s", where, strings.Join(lost, "\n"))
	}
}

// forms are the forms of the team, for an MCP server at a URL. None depends on another.
func forms(url string) []form {
	const noDuration, noURL = "must be a duration like", "must be an http or https URL"
	return []form{{
		path: "/endpoints/new", button: "Save", unfolds: []string{"More settings", "More about alerts"},
		bad: []entry{
			{"URL", "ftp://example.com/mcp", "unsupported scheme"}, {"Name", strings.Repeat("n", 150), "longer than 100 characters"}, {"Kind", "jsonrpc", ""},
			{"Method", "", "is required for kind jsonrpc"}, {"Params", "{", "need a request.method"},
			{"Name of header 1", "Not A Header", "is not a header name"}, {"Value of header 1", "v", ""},
			{"Path", "$[", "is not a JSONPath"}, {"Equals", "{", "is not JSON"}, {"Matches", "(", "cannot be read as RE2"}, {"Expression", "1 +", "Syntax error"},
			{"Which chain it must be", "ethereum", ""}, {"Tool", "ping", ""}, {"Arguments", "[", "is not JSON"},
			{"CA certificates", "none", "holds no certificate"}, {"Client id", "us", ""}, {"Token URL", "token", "is not a URL like"},
			{"Locations", "fra", ""}, {"Quorum", "many", "must be a whole number"},
			{"Schedule", "every now and then", "cannot be read as a schedule"}, {"Timeout", "soon", noDuration}, {"Degraded over", "slowly", noDuration},
			{"Down after", "none", "must be a whole number"}, {"Up again after", "0", "must be between 1 and 100"}, {"Check again after", "later", noDuration},
			{"Remind every", "often", noDuration}, {"Unknown for", "long", noDuration}, {"Comes and goes after", "few", "must be a whole number"},
			{"Target, %", "all", "must be a number of per cent"}, {"In days", "soon", "must be a whole number"}, {"Under", "fast", noDuration},
			{"Tags", strings.Repeat("t", 80), "longer than 50 characters"},
		},
		good: []entry{
			{"URL", url, ""}, {"Name", "Search of §", ""}, {"Kind", "mcp", ""}, {"Params", "", ""},
			{"Name of header 1", "X-Team", ""}, {"Path", "", ""}, {"Equals", "", ""}, {"Matches", "", ""}, {"Expression", "", ""},
			{"Which chain it must be", "", ""}, {"Tool", "", ""}, {"Arguments", "", ""}, {"CA certificates", "", ""}, {"Client id", "", ""}, {"Token URL", "", ""},
			{"Locations", "", ""}, {"Quorum", "", ""}, {"Schedule", "@every 30s", ""}, {"Timeout", "10s", ""}, {"Degraded over", "2s", ""},
			{"Down after", "2", ""}, {"Up again after", "1", ""}, {"Check again after", "5s", ""}, {"Remind every", "1h", ""}, {"Unknown for", "30m", ""},
			{"Comes and goes after", "6", ""}, {"Name", "Search of §", ""}, {"Target, %", "", ""}, {"In days", "", ""}, {"Under", "", ""}, {"Tags", "prod, eu", ""},
		},
		then: []string{"Registered", "Search of §", "@every 30s"},
	}, {
		path: "/endpoints/weather/edit", button: "Save changes",
		bad:  []entry{{"Name", strings.Repeat("n", 150), "longer than 100 characters"}, {"Schedule", "", "cannot be read as a schedule"}, {"Timeout", "-1s", "must be longer than zero"}},
		good: []entry{{"Name", "Weather", ""}, {"Schedule", "@every 60s", ""}, {"Timeout", "15s", ""}},
		then: []string{"Saved", "Weather"},
	}, {
		path: "/maintenance/new", button: "Plan it",
		bad: []entry{
			{"Title", "", "is required"}, {"From", "2026-11-22T10:00", ""}, {"Until", "2026-11-22T09:00", "must be later than"}, {"Tags", strings.Repeat("t", 80), "longer than 50 characters"},
		},
		good: []entry{{"Title", "Upgrade for §", ""}, {"From", "2026-11-22T10:00", ""}, {"Until", "2026-11-23T10:00", ""}, {"Tags", "prod", ""}},
		then: []string{"Upgrade for §"},
	}, {
		path: "/maintenance/new", button: "Plan it", ticks: []string{"Again and again"},
		bad: []entry{
			{"Title", "Backups for §", ""}, {"Begins", "at night", "cannot be read as a schedule"}, {"Lasts", "long", noDuration},
		},
		good: []entry{{"Begins", "0 3 * * 0", ""}, {"Lasts", "2h", ""}, {"Tags", "prod", ""}},
		then: []string{"Backups for §"},
	}, {
		path: "/incidents/new", button: "Open incident",
		bad:  []entry{{"Title", "", "is required"}, {"Severity", "down", ""}, {"Began", "2099-01-01T00:00", "must lie in the last 30 days"}, {"First word on it", strings.Repeat("w", 4100), "is longer than 4000 characters"}},
		good: []entry{{"Title", "Payments fail for §", ""}, {"Began", "", ""}, {"First word on it", "We look into it.", ""}},
		then: []string{"Payments fail for §", "We look into it."},
	}, {
		path: "/subscriptions", button: "Subscribe", ticks: []string{"Everything"},
		bad: []entry{
			{"Address", "nobody", "is not a list of email addresses"}, {"From", "22:00", "must be from and to another time of day"}, {"Time zone", "Mars", "must be a time zone"}, {"Tags", strings.Repeat("t", 80), ""},
		},
		good: []entry{{"Address", "§@example.org", ""}, {"From", "22:00", ""}, {"Until", "06:00", ""}, {"Time zone", "Europe/Berlin", ""}, {"Tags", "prod", ""}},
		then: []string{"§@example.org"},
	}, {
		path: "/tokens", button: "Make a token",
		bad:  []entry{{"Name", "", "is required"}, {"Role", "viewer", ""}, {"Good until", "2020-01-01", "must lie ahead"}},
		good: []entry{{"Name", "For §", ""}, {"Good until", time.Now().AddDate(1, 0, 0).Format(time.DateOnly), ""}},
		then: []string{"The token For §", "It is shown this once"},
	}, {
		path: "/members", button: "Make a link",
		good: []entry{{"Name", "friend of §", ""}, {"Role", "editor", ""}},
		then: []string{"An invitation", "It is shown this once"},
	},
		channelForm("slack", []entry{{"Webhook URL", "hooks", noURL}, {"Channel", "#a", "goes with bot_token only"}, {"API URL", "slack", noURL}},
			entry{"Webhook URL", "http://127.0.0.1:9/x", ""}, entry{"Channel", "", ""}, entry{"API URL", "", ""}),
		channelForm("email", []entry{{"To", "nobody", "is not a list of email addresses"}}, entry{"To", "ops@example.com", ""}),
		channelForm("webhook", []entry{{"URL", "hooks", noURL}, {"Signing secret", "mine", "must be whsec_"}},
			entry{"URL", "http://127.0.0.1:9/x", ""}, entry{"Signing secret", "", ""}),
		channelForm("pagerduty", []entry{{"Integration key", "key", "must be the 32 letters and digits"}, {"API URL", "pagerduty", noURL}},
			entry{"Integration key", strings.Repeat("a", 32), ""}, entry{"API URL", "http://127.0.0.1:9", ""}),
		channelForm("opsgenie", []entry{{"API key", "k", ""}, {"API URL", "opsgenie", noURL}}, entry{"API URL", "http://127.0.0.1:9", ""}),
		channelForm("discord", []entry{{"Webhook URL", "discord", noURL}}, entry{"Webhook URL", "http://127.0.0.1:9/x", ""}),
		channelForm("teams", []entry{{"Workflow URL", "teams", noURL}}, entry{"Workflow URL", "http://127.0.0.1:9/x", ""}),
		channelForm("telegram", []entry{{"Bot token", "token", "must look like"}, {"Chat", "chat", "must be a number"}, {"Topic", "topic", "must be a number"}, {"API URL", "telegram", noURL}},
			entry{"Bot token", "123456789:AAabcdefghijklmnopqrstuvwxyz0123456", ""}, entry{"Chat", "@ops_of_ours", ""}, entry{"Topic", "", ""}, entry{"API URL", "http://127.0.0.1:9", ""}),
		channelForm("ntfy", []entry{{"Topic", "not a topic", "holds white space"}, {"Server", "ntfy", noURL}}, entry{"Topic", "alerts", ""}, entry{"Server", "http://127.0.0.1:9", ""}),
		channelForm("mattermost", []entry{{"Webhook URL", "mattermost", noURL}}, entry{"Webhook URL", "http://127.0.0.1:9/x", ""}),
	}
}

// channelForm is the form of a channel of some type.
func channelForm(kind string, bad []entry, good ...entry) form {
	return form{
		path: "/channels?type=" + kind, button: "Add channel", alike: kind != "slack",
		bad:  append(bad, entry{"Name", strings.Repeat("n", 200), "is longer than 100 characters"}, entry{"Template", "{{", "unclosed action"}),
		good: append(good, entry{"Name", kind + " for §", ""}, entry{"Template", "", ""}),
		then: []string{kind + " for §"},
	}
}
