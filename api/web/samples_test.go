package web_test

import (
	"time"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var now = time.Date(2026, 11, 21, 3, 12, 40, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

func per(p float64) *float64 { return &p }

// samples are all pages in the states worth looking at, by name.
func samples() map[string]web.Page {
	return map[string]web.Page{
		"overview":        overview(),
		"overview-calm":   calm(),
		"overview-empty":  web.OverviewPage{Frame: frame("/"), None: true},
		"overview-search": web.OverviewPage{Frame: frame("/"), Filter: web.OverviewFilter{Query: "zebra", Status: "down", Tag: "prod"}},
		"endpoint-down":   endpointDown(),
		"endpoint-up":     endpointUp(),
		"endpoint-new":    endpointNew(),
		"confirm":         web.ConfirmPage{Frame: frame("/"), Question: "Delete Weather?", Detail: "Its checks, incidents and uptime go with it. This cannot be undone.", Verb: "Delete Weather", Action: "/endpoints/weather", Back: "/endpoints/weather"},
		"check":           web.CheckPage{Frame: frame("/"), Slug: "weather", Name: "Weather", Location: "default", Scheduled: before(40 * time.Second), Check: badCheck("chk_1", 40*time.Second), Said: said()},
		"check-good":      web.CheckPage{Frame: frame("/"), Slug: "weather", Name: "Weather", Location: "default", Scheduled: before(40 * time.Second), Check: goodCheck("chk_1", 40*time.Second)},
		"form":            form(),
		"form-mistakes":   formMistakes(),
		"form-test":       formTest(),
		"form-good":       formGood(),
		"form-edit":       formEdit(),
		"form-command":    formCommand(),
		"incidents":       incidents(),
		"incidents-none":  web.IncidentsPage{Frame: frame("/incidents")},
		"incident":        web.IncidentPage{Frame: frame("/incidents"), Incident: resolvedIncident(), Checks: []web.Check{goodCheck("chk_3", time.Hour), badCheck("chk_2", 2*time.Hour), badCheck("chk_1", 3*time.Hour)}},
		"incident-open":   web.IncidentPage{Frame: frame("/incidents"), Incident: openIncident(), Checks: []web.Check{badCheck("chk_2", 2*time.Minute)}},
		"channels":        channels(),
		"channels-none":   web.ChannelsPage{Frame: frame("/channels"), Types: channelTypes(), Form: channelForm(store.ChannelSlack, nil)},
		"channels-email":  channelsEmail(),
		"channel":         channel(),
		"channel-broken":  channelBroken(),
		"login":           web.LoginPage{Frame: web.Frame{Now: now, Version: "0.1.0"}},
		"login-failed":    web.LoginPage{Frame: web.Frame{Now: now}, Name: "ada", Next: "/incidents", Problem: "That name and password do not go together.", Setup: "Nobody has an account here yet. Open the setup link."},
		"setup":           web.SetupPage{Frame: web.Frame{Now: now}, Token: "setup_x", Name: "ada", Usable: true, Problems: web.Problems{{Field: "password", Message: "is shorter than 12 characters"}}},
		"setup-used":      web.SetupPage{Frame: web.Frame{Now: now}, Title: "Rollcall is set up", Trouble: "It has been used already. Log in with the name and password chosen then."},
		"error":           web.ErrorPage{Frame: frame(""), Status: 404, Title: "There is nothing here", Detail: "The page you asked for does not exist, or not any more."},
		"status":          status(),
		"status-calm":     statusCalm(),
		"status-empty":    web.StatusPage{Frame: web.Frame{Now: now}, Overall: store.StatusPending, Heading: "Nothing is published", Feed: "/status/feed.atom"},
		"status-endpoint": statusEndpoint(),
	}
}

func frame(section string) web.Frame {
	return web.Frame{User: "ada", Section: section, Now: now, Version: "0.1.0"}
}

func rpcFailure() *probe.Failure {
	return &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error: upstream database timed out"}
}

func overview() web.OverviewPage {
	rows := restRows()
	return web.OverviewPage{
		Frame: frame("/"),
		Attention: []web.EndpointRow{
			{Slug: "weather", Name: "Weather", Host: "mcp.weather.example", Kind: probe.KindMCP, Status: store.StatusDown, Since: before(12 * time.Minute), Failure: rpcFailure(), Latency: 214 * time.Millisecond, Checked: before(9 * time.Second), Uptime: per(99.16), Tags: []string{"prod"}},
			{Slug: "anvil", Name: "Base archive node", Host: "rpc.base.internal:8545", Kind: probe.KindEVM, Status: store.StatusDown, Since: before(3 * time.Hour), Failure: &probe.Failure{Step: "eth_blockNumber", Class: probe.ClassTimeout, Message: "no first byte after 15s"}, Latency: 15 * time.Second, Checked: before(31 * time.Second), Uptime: per(87.5)},
			{Slug: "search", Name: "Search tools", Host: "search.example", Kind: probe.KindMCP, Status: store.StatusDegraded, Since: before(26 * time.Hour), Failure: &probe.Failure{Step: "tools/list", Class: probe.ClassSlow, Message: "6.2s, more than the 5s allowed"}, Latency: 6200 * time.Millisecond, Checked: before(50 * time.Second), Uptime: per(100), Tags: []string{"prod", "eu"}},
			{Slug: "billing", Name: "Billing", Host: "billing.example", Kind: probe.KindMCP, Status: store.StatusGated, Since: before(48 * time.Hour), Failure: &probe.Failure{Step: "initialize", Class: probe.ClassCredentialRejected, Code: 401, Message: "token expired"}, Latency: 88 * time.Millisecond, Checked: before(20 * time.Second)},
		},
		Rest: rows,
		Next: "/?cursor=abc",
	}
}

func restRows() []web.EndpointRow {
	return []web.EndpointRow{
		{Slug: "ci", Name: "CI tools", Host: "ci.example", Kind: probe.KindMCP, Status: store.StatusUp, Latency: 84 * time.Millisecond, Checked: before(12 * time.Second), Uptime: per(100), Tags: []string{"prod"}},
		{Slug: "docs", Name: "Docs search", Host: "docs.example", Kind: probe.KindMCP, Status: store.StatusUp, Latency: 1240 * time.Millisecond, Checked: before(44 * time.Second), Uptime: per(99.996)},
		{Slug: "eth", Name: "Ethereum mainnet", Host: "eth.rpc.example", Kind: probe.KindEVM, Status: store.StatusUp, Latency: 6400 * time.Microsecond, Checked: before(3 * time.Second), Uptime: per(99.93)},
		{Slug: "fresh", Name: "Fresh", Host: "fresh.example", Kind: probe.KindAuto, Status: store.StatusPending},
		{Slug: "old", Name: "Old gateway", Host: "old.example", Kind: probe.KindJSONRPC, Status: store.StatusPaused, Latency: 31 * time.Millisecond, Checked: before(80 * time.Hour)},
	}
}

func calm() web.OverviewPage {
	return web.OverviewPage{Frame: frame("/"), Rest: restRows()}
}

func goodCheck(id string, ago time.Duration) web.Check {
	expires := now.Add(9 * 24 * time.Hour)
	tools := 13
	return web.CheckOf(id, probe.Result{
		StartedAt: before(ago), Duration: 84200 * time.Microsecond, Kind: probe.KindMCP, Era: probe.EraLegacy, Verdict: probe.Up,
		Steps: []probe.Step{
			{Name: "initialize", Method: "initialize", Latency: 52 * time.Millisecond, HTTPStatus: 200, BytesIn: 512, BytesOut: 200, Phases: probe.Phases{DNS: 1200 * time.Microsecond, Connect: 8 * time.Millisecond, TLS: 15 * time.Millisecond, FirstByte: 26 * time.Millisecond, Body: 900 * time.Microsecond}},
			{Name: "initialized", Method: "notifications/initialized", Start: 53 * time.Millisecond, Latency: 11 * time.Millisecond, HTTPStatus: 202, Phases: probe.Phases{FirstByte: 10 * time.Millisecond}},
			{Name: "tools/list", Method: "tools/list", Start: 65 * time.Millisecond, Latency: 19 * time.Millisecond, HTTPStatus: 200, BytesIn: 18440, Phases: probe.Phases{FirstByte: 14 * time.Millisecond, Body: 4 * time.Millisecond}},
			{Name: "close", Method: "DELETE", Start: 85 * time.Millisecond, Latency: 8 * time.Millisecond, HTTPStatus: 204, Phases: probe.Phases{FirstByte: 7 * time.Millisecond}},
		},
		Warnings: []probe.Warning{{Step: "initialized", Class: probe.ClassHTTPStatus, Code: 200, Message: "200 where 202 is due"}},
		Facts:    probe.Facts{ProtocolVersion: "2025-11-25", SupportedVersions: []string{"2025-11-25", "2025-06-18"}, Era: probe.EraLegacy, ServerName: "weather-mcp", ServerVersion: "2.4.1", Tools: &tools, TLSExpiresAt: &expires, RemoteAddr: "203.0.113.7:443", ChainID: "1", Syncing: new(false), LagBlocks: new(int64(3)), Finalized: new(uint64(7)), HeadTime: &expires, HeadHash: "0xabc"},
	})
}

func badCheck(id string, ago time.Duration) web.Check {
	c := goodCheck(id, ago)
	c.Verdict, c.Failure = probe.Down, rpcFailure()
	c.Steps = append([]probe.Step(nil), c.Steps[:3]...)
	c.Steps[2].Class, c.Steps[2].Code, c.Steps[2].Message, c.Steps[2].Latency = probe.ClassRPCError, -32603, rpcFailure().Message, 149*time.Millisecond
	c.Steps[2].Phases.FirstByte = 148 * time.Millisecond
	c.Duration = 214 * time.Millisecond
	c.Steps[1].Class, c.Steps[1].Code, c.Steps[1].Message = probe.ClassHTTPStatus, 404, "not the step that decided"
	c.RetryAfter = 30 * time.Second
	return c
}

func windows() []web.Window {
	return []web.Window{
		{Label: "24 hours", Uptime: per(99.16), Coverage: 100, Counts: store.Counts{Up: 1428, Down: 12}},
		{Label: "7 days", Uptime: per(99.88), Coverage: 100, Counts: store.Counts{Up: 10068, Down: 12}},
		{Label: "30 days", Uptime: per(99.961), Coverage: 41.3, Since: before(13 * 24 * time.Hour), Counts: store.Counts{Up: 17000, Down: 12}},
		{Label: "90 days", Coverage: 0},
	}
}

func badges() []web.Snippet {
	return []web.Snippet{
		{ID: "badge-markdown", Label: "Markdown", Text: "[![Weather](https://up.example/badge/weather/status.svg)](https://up.example/status/weather)"},
		{ID: "badge-html", Label: "HTML", Text: `<a href="https://up.example/status/weather"><img src="https://up.example/badge/weather/status.svg" alt="Weather"></a>`},
	}
}

func endpointDown() web.EndpointPage {
	last := badCheck("chk_9", 9*time.Second)
	height := uint64(20831387)
	return web.EndpointPage{
		Frame: frame("/"), Slug: "weather", Name: "Weather", URL: "https://mcp.weather.example/mcp?key=…", Kind: probe.KindAuto,
		Schedule: "@every 60s", Timeout: 15 * time.Second, Tags: []string{"prod"}, Channels: channelRows(),
		Status: store.StatusDown, Since: before(12 * time.Minute), Failure: rpcFailure(),
		Confirming: 1, Pointing: store.StatusGated, Unsettled: &probe.Failure{Step: "initialize", Class: probe.ClassAuthRequired, Code: 401},
		Last: &last, Checked: last.StartedAt, Took: last.Duration, Height: &height, HeightSince: before(42 * time.Second),
		Places:    places(),
		Windows:   windows(),
		Hours:     hours(),
		Latencies: latencies(),
		Checks:    []web.Check{from("fra", last), from("fra", badCheck("chk_8", 69*time.Second)), from("ams", goodCheck("chk_7", 129*time.Second)), from("ams", goodCheck("chk_6", 189*time.Second))},
		Verdict:   probe.Down, Older: "/endpoints/weather?cursor=x", Newest: "/endpoints/weather",
		Incidents: []web.IncidentRow{openIncident(), resolvedIncident()}, Badges: badges(),
		Contracts: contracts(),
		Events:    []web.Event{{At: before(30 * time.Hour), Severity: "breaking", Title: "The tool list changed (1 breaking, 1 harmless)"}},
	}
}

func from(location string, c web.Check) web.Check {
	c.Location = location
	return c
}

func places() []web.PlaceRow {
	return []web.PlaceRow{
		{Location: "ams", Status: store.StatusUp, Since: before(300 * time.Hour), Checked: before(20 * time.Second), Took: 84 * time.Millisecond},
		{Location: "fra", Status: store.StatusDown, Since: before(12 * time.Minute), Checked: before(9 * time.Second), Took: 2 * time.Second, Failure: rpcFailure()},
		{Location: "lon", Status: store.StatusPending},
		{Location: "nyc", Status: store.StatusUp, Since: before(3000 * time.Hour), Checked: before(1000 * time.Hour), Took: time.Second, Dropped: true},
	}
}

func hours() []web.Slot {
	hours := make([]web.Slot, 25)
	for i := range hours {
		hours[i] = web.Slot{Begin: now.Truncate(time.Hour).Add(time.Duration(i-24) * time.Hour), Hour: true, Uptime: per(100), Counts: store.Counts{Up: 60}}
	}
	hours[3].Uptime, hours[3].Counts, hours[3].Missed = nil, store.Counts{}, true
	hours[24].Uptime, hours[24].Counts = per(40), store.Counts{Up: 2, Down: 3, Unknown: 1}
	return hours
}

func contracts() []web.Contract {
	return []web.Contract{
		{
			Key: "legacy", Hash: "sha256:0f343b0931126a20f133d67c2b018a3b", Present: true, Since: before(30 * time.Hour), Until: before(9 * time.Second),
			Known: true, Count: 3, Tools: []string{"alerts", "forecast"},
			Changes: []probe.Change{
				{Rank: probe.RankBreaking, Kind: probe.ToolRemoved, Tool: "radar", Message: "the tool is gone"},
				{Rank: probe.RankInfo, Kind: probe.OptionalAdded, Tool: "alerts", Path: "/inputSchema/properties/region", Message: "an argument that may be given"},
			},
		},
		{Key: "modern", Hash: "sha256:9c", Present: true, Since: before(40 * time.Hour), Until: before(30 * time.Hour)},
		{Key: "legacy", Hash: "sha256:4bf5122f344554c53bde2ebb8cd2b7e3", Since: before(50 * time.Hour), Until: before(30 * time.Hour)},
	}
}

func said() []probe.Message {
	return []probe.Message{
		{Step: "initialize", Sent: true, Head: "POST /mcp HTTP/1.1\nHost: mcp.weather.example\nAuthorization: …", Body: `{"jsonrpc":"2.0","id":1,"method":"initialize"}`},
		{Step: "initialize", At: 52 * time.Millisecond, Head: "HTTP/1.1 200 OK\nContent-Type: application/json", Body: `{"jsonrpc":"2.0","id":1,"result":{}}`, Clipped: true},
	}
}

func latencies() []web.LatencyRow {
	return []web.LatencyRow{
		{P50: 84.1, P90: 121, P95: 160.4, P99: 1204},
		{Step: "initialize", P50: 51.9, P90: 80, P95: 101.3, P99: 900},
		{Step: "initialized", P50: 9.1, P90: 14, P95: 20.2, P99: 44},
		{Step: "tools/list", P50: 19, P90: 30.7, P95: 41, P99: 260},
	}
}

func endpointUp() web.EndpointPage {
	p := endpointDown()
	last := goodCheck("chk_9", 9*time.Second)
	p.Status, p.Since, p.Failure, p.Confirming, p.Unsettled, p.Verdict = store.StatusUp, before(9*24*time.Hour), nil, 0, nil, ""
	p.Last, p.Checks, p.Incidents, p.Public, p.Newest = &last, []web.Check{last, goodCheck("chk_8", 69*time.Second)}, nil, true, ""
	p.Done = "Saved."
	return p
}

func endpointNew() web.EndpointPage {
	return web.EndpointPage{
		Frame: frame("/"), Slug: "fresh", Name: "Fresh", URL: "https://fresh.example/mcp", Kind: probe.KindAuto, Schedule: "@hourly",
		Timeout: 15 * time.Second, Status: store.StatusPending, Windows: []web.Window{{Label: "24 hours"}, {Label: "7 days"}, {Label: "30 days"}, {Label: "90 days"}}, Badges: badges(),
	}
}

func formValues() web.EndpointForm {
	return web.EndpointForm{
		Kind: "auto", Schedule: "@every 60s", Timeout: "15s", DegradedOver: "5s", Failures: "2", Successes: "1", After: "5s",
	}
}

func form() web.FormPage {
	return web.FormPage{Frame: frame("/"), Form: formValues(), Kinds: web.GroupKinds(probe.Kinds()), Channels: []web.ChannelOption{{ID: "ch_1", Name: "ops", Type: "slack"}, {ID: "ch_2", Name: "oncall", Type: "slack", Broken: true}}}
}

func formMistakes() web.FormPage {
	p := form()
	p.Form.URL, p.Form.Name, p.Form.Kind = "ftp://weather.example", "Weather", "jsonrpc"
	p.Form.Method, p.Form.Params, p.Form.Schedule, p.Form.Timeout, p.Form.Tags = "", "{oops", "every minute", "10m", "prod,prod"
	p.Form.Headers = []web.HeaderRow{{Name: "Bad Name", Value: "s3cret", Secret: true}, {Name: "X-Team", Value: "core"}}
	p.Form.Channels = []string{"ch_1"}
	p.Form.OAuthID, p.Form.OAuthSecret, p.Form.CA, p.Form.ExpectEquals = "me", "s3cret", "-----BEGIN", `{"a": 1}`
	p.Form.CanaryTool, p.Form.CanaryArguments, p.Form.Insecure, p.Form.Subscribe, p.Form.ContractNotices = "ping", "{}", true, true, true
	p.Form.Locations, p.Form.Quorum, p.Known = "fra, fra", "3", []string{"ams", "fra"}
	p.Problems = web.Problems{
		{Field: "url", Message: `has the unsupported scheme "ftp": use http or https`},
		{Field: "name", Message: "is taken by another endpoint"},
		{Field: "kind", Message: "is unknown"},
		{Field: "request", Message: "goes with kind jsonrpc only"},
		{Field: "request.method", Message: "is required for kind jsonrpc"},
		{Field: "request.params", Message: "are not JSON"},
		{Field: "headers", Message: "together larger than 16384 bytes"},
		{Field: "headers[0].name", Message: "is not a header name: letters, digits and hyphens only"},
		{Field: "headers[1].value", Message: "holds a line break or another control character"},
		{Field: "schedule", Message: "expected 5 fields or a descriptor such as @every 60s"},
		{Field: "timeout", Message: "must be at most 5m0s"},
		{Field: "degraded_over", Message: "must not be negative"},
		{Field: "locations[1]", Message: "stands there twice"},
		{Field: "quorum", Message: "is larger than the 2 locations"},
		{Field: "confirm.failures", Message: "must be between 1 and 100"},
		{Field: "confirm.successes", Message: "must be between 1 and 100"},
		{Field: "confirm.after", Message: "must be longer than zero"},
		{Field: "channels", Message: "more than 20 channels"},
		{Field: "tags[1]", Message: "stands there twice"},
		{Field: "public", Message: "must be yes or nothing"},
		{Field: "request.expect", Message: "goes with a method"},
		{Field: "request.expect.path", Message: "is not a JSONPath"},
		{Field: "request.expect.equals", Message: "is not JSON"},
		{Field: "request.expect.regex", Message: "is not a regular expression"},
		{Field: "request.expect.cel", Message: "is not an expression"},
		{Field: "chain.id", Message: "is not a chain known here"},
		{Field: "subscribe", Message: "goes with WebSocket"},
		{Field: "canary.tool", Message: "is required"},
		{Field: "canary.arguments", Message: "must be an object"},
		{Field: "contract_notices", Message: "goes with MCP"},
		{Field: "tls.ca", Message: "holds no certificate"},
		{Field: "tls.insecure", Message: "goes with TLS"},
		{Field: "oauth.client_id", Message: "is required"},
		{Field: "oauth.client_secret", Message: "is required again because the address changes"},
		{Field: "oauth.token_url", Message: "must be https"},
	}
	return p
}

func formCommand() web.FormPage {
	p := form()
	p.Slug, p.Name = "npx", "npx"
	p.Form.Command, p.Form.Kind = "npx -y @scope/server --token …", "mcp"
	p.Problems = web.Problems{{Field: "command", Message: "only the person who runs the service can set a command"}}
	return p
}

func formTest() web.FormPage {
	p := form()
	c := badCheck("", time.Second)
	p.Form.URL, p.Form.Headers = "https://mcp.weather.example/mcp", []web.HeaderRow{{Name: "Authorization", Value: "Bearer s3cret", Secret: true}}
	p.Test = &c
	return p
}

func formGood() web.FormPage {
	p := formTest()
	c := goodCheck("", time.Second)
	p.Test = &c
	return p
}

func formEdit() web.FormPage {
	p := form()
	p.Slug, p.Name = "weather", "Weather"
	p.Form.URL, p.Form.Name, p.Form.Kind = "https://mcp.weather.example/…", "Weather", "mcp"
	p.Form.Headers = []web.HeaderRow{{Name: "Authorization", Secret: true, Kept: true}}
	p.Form.Public = true
	return p
}

func openIncident() web.IncidentRow {
	return web.IncidentRow{ID: "inc_2", Slug: "weather", Name: "Weather", StartedAt: before(12 * time.Minute), OpenedAt: before(12*time.Minute - 5*time.Second), Cause: *rpcFailure()}
}

func resolvedIncident() web.IncidentRow {
	end := before(26 * time.Hour)
	return web.IncidentRow{ID: "inc_1", Slug: "weather", Name: "Weather", StartedAt: before(27*time.Hour + 20*time.Minute), OpenedAt: before(27*time.Hour + 19*time.Minute), ResolvedAt: &end, Resolution: store.ResolutionRecovered, Cause: probe.Failure{Class: probe.ClassConnect, Message: "connection refused"}}
}

func incidents() web.IncidentsPage {
	return web.IncidentsPage{Frame: frame("/incidents"), Open: []web.IncidentRow{openIncident()}, Resolved: []web.IncidentRow{resolvedIncident(), resolvedIncident()}, Next: "/incidents?cursor=x"}
}

func channelRows() []web.ChannelRow {
	broken := before(5 * time.Hour)
	return []web.ChannelRow{
		{ID: "ch_1", Name: "ops", Type: "Slack", How: "channel #alerts"},
		{ID: "ch_2", Name: "oncall", Type: "Mattermost", How: "by webhook URL", Broken: "channel_is_archived", BrokenAt: &broken},
	}
}

func channelTypes() []web.ChannelType {
	var types []web.ChannelType
	for _, spec := range store.ChannelSpecs() {
		types = append(types, web.ChannelType{Name: string(spec.Type), Title: spec.Title})
	}
	return types
}

// channelForm is an empty form for a channel, with values put into its fields.
func channelForm(t store.ChannelType, values map[string]string) web.ChannelForm {
	spec, _ := t.Spec()
	f := web.ChannelForm{Type: string(t), TypeTitle: spec.Title, Kinds: []string{"opened", "resolved"}, Kind: "resolved"}
	for _, field := range spec.Fields {
		f.Fields = append(f.Fields, web.ChannelField{ChannelField: field, Value: values[field.Name], Optional: t != store.ChannelSlack && !field.Required})
	}
	return f
}

func channels() web.ChannelsPage {
	return web.ChannelsPage{
		Frame: frame("/channels"), Channels: channelRows(), Types: channelTypes(),
		Form:     channelForm(store.ChannelSlack, map[string]string{"bot_token": "xoxb-s3cret"}),
		Problems: web.Problems{{Field: "name", Message: "is required"}, {Field: "channel", Message: "is required with a bot_token, like #alerts or C0123456789"}},
	}
}

func channelsEmail() web.ChannelsPage {
	return web.ChannelsPage{Frame: frame("/channels"), Channels: channelRows(), Types: channelTypes(), Form: channelForm(store.ChannelEmail, nil)}
}

func channel() web.ChannelPage {
	form := channelForm(store.ChannelSlack, map[string]string{"channel": "#alerts", "template": "{{.Title}} since {{.Since}}"})
	form.Name = "ops"
	for i := range form.Fields {
		switch f := &form.Fields[i]; f.Name {
		case "bot_token", "signing_secret":
			f.Kept = true
		case "template":
			f.Preview = "Weather is down since 03:00 UTC\n<b>not markup</b>"
		}
	}
	return web.ChannelPage{Frame: frame("/channels"), Channel: channelRows()[0], Form: form, Tested: true, Log: deliveries()}
}

func channelBroken() web.ChannelPage {
	form := channelForm(store.ChannelMattermost, map[string]string{"webhook_url": "https://hooks.example/s3cret"})
	form.Name, form.Fields[0].Kept = "oncall", true
	return web.ChannelPage{
		Frame: frame("/channels"), Channel: channelRows()[1], Form: form, Tested: true, Failure: "channel_is_archived", Log: &web.DeliveryLog{},
		Problems: web.Problems{{Field: "webhook_url", Message: "must be an http or https URL with a host and without a user name"}},
	}
}

func deliveries() *web.DeliveryLog {
	return &web.DeliveryLog{
		Attempts: []web.AttemptRow{
			{At: before(time.Minute), Kind: "resolved", Subject: "Weather has recovered", Endpoint: "Weather", IncidentID: "inc_1", Outcome: "sent", NoticeID: "ntc_3", Took: 212 * time.Millisecond},
			{At: before(2 * time.Minute), Kind: "updated", Subject: "Weather is down: acknowledged by ada", Endpoint: "Weather", IncidentID: "inc_1", Outcome: "passed", NoticeID: "ntc_2"},
			{At: before(11 * time.Minute), Kind: "opened", Subject: "Weather is down", Endpoint: "Weather", IncidentID: "inc_1", Outcome: "sent", NoticeID: "ntc_1", Took: 340 * time.Millisecond},
			{At: before(12 * time.Minute), Kind: "opened", Subject: "Weather is down", Endpoint: "Weather", IncidentID: "inc_1", Outcome: "retried", Error: "rate_limited: come back after 30s", NoticeID: "ntc_1", Took: 15 * time.Second},
			{At: before(5 * time.Hour), Kind: "service", Subject: "Location fra is offline", Outcome: "failed", Error: "channel_is_archived", NoticeID: "ntc_0", Took: 96 * time.Millisecond},
		},
		Next: "/channels/ch_1?cursor=x#log",
	}
}

func status() web.StatusPage {
	end := before(26 * time.Hour)
	return web.StatusPage{
		Frame: web.Frame{Now: now, Version: "0.1.0", Section: "/status"}, Overall: store.StatusDown, Heading: "Partial outage", Feed: "/status/feed.atom",
		Endpoints: []web.PublicRow{
			{Slug: "weather", Name: "Weather", Status: store.StatusDown, Uptime: per(99.91)},
			{Slug: "ci", Name: "CI tools", Status: store.StatusUp, Uptime: per(100)},
			{Slug: "docs", Name: "Docs search", Status: store.StatusUp, Uptime: per(99.996)},
			{Slug: "search", Name: "Search tools", Status: store.StatusDegraded, Uptime: per(98.2)},
			{Slug: "fresh", Name: "Fresh", Status: store.StatusPending},
		},
		Open:   []web.PublicIncident{{Slug: "weather", Name: "Weather", StartedAt: before(12 * time.Minute)}},
		Recent: []web.PublicIncident{{Slug: "weather", Name: "Weather", StartedAt: before(27 * time.Hour), ResolvedAt: &end}},
	}
}

func statusCalm() web.StatusPage {
	p := status()
	p.Overall, p.Heading, p.Open, p.Recent, p.Endpoints = store.StatusUp, "All systems operational", nil, nil, p.Endpoints[1:3]
	return p
}

func statusEndpoint() web.StatusEndpointPage {
	var days []web.Slot
	for i := range 90 {
		d := web.Slot{Begin: before(time.Duration(89-i) * 24 * time.Hour), Uptime: per(100), Counts: store.Counts{Up: 1440}}
		switch {
		case i < 30:
			d.Uptime, d.Counts, d.Before = nil, store.Counts{}, true
		case i == 33, i == 34:
			d.Uptime, d.Counts, d.Missed = nil, store.Counts{}, true
		case i == 40:
			d.Uptime, d.Counts = nil, store.Counts{Unknown: 12}
		case i == 47:
			d.Uptime = per(99.4)
		case i == 61:
			d.Uptime, d.Counts.Degraded = per(96.2), 4
		case i == 89:
			d.Uptime = per(71)
		}
		days = append(days, d)
	}
	return web.StatusEndpointPage{
		Frame: web.Frame{Now: now, Version: "0.1.0"}, Endpoint: web.PublicRow{Slug: "weather", Name: "Weather", Status: store.StatusDown, Since: before(12 * time.Minute)},
		Places:  []web.PlaceRow{{Location: "ams", Status: store.StatusUp, Since: before(300 * time.Hour)}, {Location: "fra", Status: store.StatusDown, Since: before(12 * time.Minute)}, {Location: "lon", Status: store.StatusPending}},
		Windows: windows(), Days: days, Incidents: status().Open,
	}
}
