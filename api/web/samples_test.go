package web_test

import (
	"math"
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
		"overview":            overview(),
		"overview-calm":       calm(),
		"overview-empty":      web.OverviewPage{Frame: frame("/"), None: true},
		"overview-grouped":    grouped(),
		"bulk":                web.BulkPage{Frame: frame("/"), Slugs: []string{"weather", "search"}, Names: []string{"Weather", "Search tools"}, Back: "/?tag=prod"},
		"locations":           locations(),
		"locations-none":      web.LocationsPage{Frame: frame("/locations")},
		"overview-search":     web.OverviewPage{Frame: frame("/"), Filter: web.OverviewFilter{Query: "zebra", Status: "down", Tag: "prod"}},
		"endpoint-down":       endpointDown(),
		"endpoint-up":         endpointUp(),
		"endpoint-new":        endpointNew(),
		"endpoint-phases":     phases(),
		"contracts":           web.ContractsPage{Frame: frame("/"), Slug: "weather", Name: "Weather", Contracts: contracts(), Older: "/endpoints/weather/contracts?cursor=x"},
		"contract":            contract(),
		"contract-forgotten":  web.ContractPage{Frame: frame("/"), Slug: "weather", Name: "Weather", Contract: contracts()[2], Against: new(contracts()[1])},
		"badges":              badges(true, "latency"),
		"badges-private":      badges(false, "slo"),
		"confirm":             web.ConfirmPage{Frame: frame("/"), Question: "Delete Weather?", Detail: "Its checks, incidents and uptime go with it. This cannot be undone.", Verb: "Delete Weather", Action: "/endpoints/weather", Back: "/endpoints/weather"},
		"check":               web.CheckPage{Frame: frame("/"), Slug: "weather", Name: "Weather", URL: "https://mcp.weather.example/mcp", Location: "default", Scheduled: before(40 * time.Second), Check: badCheck("chk_1", 40*time.Second), Said: said()},
		"check-good":          web.CheckPage{Frame: frame("/"), Slug: "weather", Name: "Weather", URL: "https://mcp.weather.example/mcp", Location: "default", Scheduled: before(40 * time.Second), Check: goodCheck("chk_1", 40*time.Second), Kept: &web.CheckLink{Path: "/endpoints/weather/checks/chk_0", At: before(4 * time.Minute)}},
		"form":                form(),
		"form-mistakes":       formMistakes(),
		"form-test":           formTest(),
		"form-good":           formGood(),
		"form-edit":           formEdit(),
		"form-command":        formCommand(),
		"incidents":           incidents(),
		"incidents-none":      web.IncidentsPage{Frame: frame("/incidents")},
		"incident":            incidentOver(),
		"incident-open":       incidentOpen(),
		"incident-manual":     incidentManual(),
		"incident-late":       incidentLate(),
		"raise":               raise(),
		"maintenance":         maintenance(),
		"plan":                web.MaintenanceFormPage{Frame: frame("/maintenance"), Form: web.MaintenanceForm{StartsAt: "2026-11-21T04:00", EndsAt: "2026-11-21T05:00", Public: true}, Picker: picker("endpoints", "Endpoints")},
		"plan-mistakes":       planMistakes(),
		"planned":             planned(),
		"planned-all":         web.PlannedPage{Frame: reader("/maintenance"), Row: maintained(), All: true, Active: true},
		"status-page-facts":   statusPageFacts(),
		"plan-none":           web.MaintenancePage{Frame: frame("/maintenance")},
		"subscriptions":       subscriptions(),
		"subscribe":           subscribe(),
		"channels":            channels(),
		"channels-none":       web.ChannelsPage{Frame: frame("/channels"), Types: channelTypes(), Form: channelForm(store.ChannelSlack, nil)},
		"channels-email":      channelsEmail(),
		"channel":             channel(),
		"channel-broken":      channelBroken(),
		"code":                web.CodePage{Frame: web.Frame{Now: now}, Problem: "This code is not right, or was used already. Wait for the next one, and see whether the clock of your phone is right."},
		"join":                web.JoinPage{Frame: web.Frame{Now: now}, Token: "x", Name: "bob", Usable: true, Problems: web.Problems{{Field: "password", Message: "must have at least 12 characters"}}},
		"join-reset":          web.JoinPage{Frame: web.Frame{Now: now}, Token: "x", Name: "bob", Usable: true, Resets: true},
		"join-spent":          web.JoinPage{Frame: web.Frame{Now: now}, Title: "This link does not work", Trouble: "It was used already, was taken back, or is too old. An admin can make another one, on the page Members."},
		"members":             members(),
		"account":             account(),
		"account-enrol":       accountEnrol(),
		"account-links":       accountLinks(),
		"account-goes-on":     accountGoesOn(),
		"account-factor":      web.AccountPage{Frame: frame("/account"), HasPassword: true, Sessions: sessions(), FactorSince: new(before(time.Hour)), CodesLeft: 9, Codes: []string{"aaaa-bbbb-cccc-dddd"}},
		"tokens":              tokensMade(),
		"tokens-none":         web.TokensPage{Frame: frame("/tokens"), Roles: store.Roles, Form: web.TokenForm{Role: store.RoleViewer}},
		"audit":               audit(),
		"settings":            started(),
		"audit-none":          web.AuditPage{Frame: frame("/audit"), Author: "nobody"},
		"login-provider":      web.LoginPage{Frame: web.Frame{Now: now}, Provider: "id.example", ProviderPath: "/login/oidc?next=%2F"},
		"login":               web.LoginPage{Frame: web.Frame{Now: now, Version: "0.1.0"}},
		"login-failed":        web.LoginPage{Frame: web.Frame{Now: now}, Name: "ada", Next: "/incidents", Problem: "The name or the password is wrong.", Setup: "Nobody has an account here yet. With an admin token, the service prints no setup link: start it once without ROLLCALL_ADMIN_TOKEN to get one."},
		"setup":               web.SetupPage{Frame: web.Frame{Now: now}, Token: "setup_x", Name: "ada", Usable: true, Problems: web.Problems{{Field: "password", Message: "must have at least 12 characters"}}},
		"setup-used":          web.SetupPage{Frame: web.Frame{Now: now}, Title: "Rollcall is set up", Trouble: "Somebody has used the setup link already. Log in with the name and password chosen then."},
		"error":               web.ErrorPage{Frame: frame(""), Status: 404, Title: "There is nothing here", Detail: "The page you asked for does not exist, or not any more."},
		"status":              status(),
		"status-calm":         statusCalm(),
		"status-empty":        web.StatusPage{Frame: web.Frame{Now: now}, Overall: store.StatusPending, Heading: "Nothing is published", Feed: "/status/feed.atom"},
		"status-endpoint":     statusEndpoint(),
		"status-site":         site(),
		"status-site-locked":  web.SitePasswordPage{Frame: web.Frame{Now: now, Site: &web.Site{Home: "/p/acme", Locked: true}}, Action: "/p/acme/password", Problem: "The password is wrong."},
		"status-pages":        statusPages(),
		"status-page-new":     web.StatusPageFormPage{Frame: frame("/pages"), Sections: []web.SectionForm{{First: true, Last: true, Picker: picker("sections[0].endpoints", "Endpoints")}}},
		"status-page":         statusPageForm(),
		"status-announced":    statusAnnounced(),
		"subscribe-shut":      web.SubscribeManagePage{Frame: web.Frame{Now: now, Site: &web.Site{Home: "/p/acme", Locked: true}}, Action: "/p/acme/subscription", Token: "a-token", Type: "Email", Where: "ada@example.com", Shut: true},
		"subscribe-public":    web.SubscribePage{Frame: visitor(), Form: subscribeForm()},
		"subscribe-mistakes":  subscribeMistakes(),
		"subscribe-asked":     web.SubscribeSaidPage{Frame: visitor(), Title: "Look at your mail", Text: "A mail is on its way to you. Open the link in it within two days and confirm: nothing else is sent before. If it does not come, look among unwanted mail."},
		"subscribe-confirm":   web.SubscribeActPage{Frame: visitor(), Title: "Do you want to be told of incidents?", Where: "ada@example.com", Action: "/status/confirm", Token: "a-token", Button: "Yes, subscribe", Text: "If you did not ask for it, close this page: nothing is sent to you."},
		"subscribe-confirmed": web.SubscribeSaidPage{Frame: visitor(), Private: true, Title: "Subscribed", Text: "You are told when something happens. Every message says how to end it.", Manage: "/status/subscription?token=x"},
		"subscribe-manage":    subscribeManage(),
	}
}

// reader is the frame of somebody who may look and change nothing.
func reader(section string) web.Frame {
	f := frame(section)
	f.Role = store.RoleViewer
	return f
}

func frame(section string) web.Frame {
	return web.Frame{User: "ada", Role: store.RoleAdmin, Section: section, Now: now, Version: "0.1.0"}
}

func rpcFailure() *probe.Failure {
	return &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error: upstream database timed out"}
}

// lately fills in the last 24 hours of an endpoint, each with so many per cent of its checks up; less than zero: none was made.
func lately(page web.EndpointRow, ups ...float64) web.EndpointRow {
	begin := store.HourOf(now).Add(-23 * time.Hour)
	for i := range 24 {
		up, s := 100.0, web.Slot{Begin: begin.Add(time.Duration(i) * time.Hour), Hour: true}
		if i < len(ups) {
			up = ups[i]
		}
		median := 80 + float64(i*i%17)
		if s.Missed = up < 0; s.Missed {
			median = math.NaN()
		} else {
			s.Uptime, s.Counts = per(up), store.Counts{Up: 60}
		}
		page.Hours, page.Medians = append(page.Hours, s), append(page.Medians, median)
	}
	return page
}

func grouped() web.OverviewPage {
	page := calm()
	page.Filter = web.OverviewFilter{Group: web.GroupTag, Order: web.OrderUptime, Kind: "mcp"}
	page.Page, page.Pages, page.Problems, page.Lost = 2, 3, web.Problems{{Message: "Tick the endpoints first."}}, []string{"ci"}
	page.Groups = []web.RowGroup{
		{Name: "prod", Rows: page.Rest[:1], Tallies: map[store.Status]int{store.StatusUp: 12, store.StatusPaused: 1}},
		{Rows: page.Rest[1:], Tallies: page.Tallies},
	}
	return page
}

func locations() web.LocationsPage {
	state := func(id string, shards int, live bool) store.InstanceState {
		return store.InstanceState{ID: id, Shards: shards, Since: before(time.Hour), ExpiresAt: now, Live: live}
	}
	at := func(name string, recent int, lag time.Duration, instances ...store.InstanceState) store.Location {
		return store.Location{Name: name, Endpoints: 12, Recent: recent, CheckedAt: before(time.Minute), Lag: lag, Instances: instances}
	}
	return web.LocationsPage{Frame: frame("/locations"), Shards: store.Shards, Locations: []web.LocationRow{
		{Location: at("ams", 12, 40*time.Millisecond, state("ams-1", 64, true), state("ams-2", 64, true), state("ams-0", 0, false)), Own: true},
		{Location: at("fra", 12, 9*time.Second, state("fra-1", 128, true))},
		{Location: at("nyc", 3, 0, state("nyc-1", 128, true)), Offline: "inc_1"},
		{Location: at("old", 0, 0)},
	}}
}

func overview() web.OverviewPage {
	rows := restRows()
	return web.OverviewPage{
		Frame:   frame("/"),
		Tallies: map[store.Status]int{store.StatusDown: 2, store.StatusDegraded: 1, store.StatusGated: 1, store.StatusUp: 103, store.StatusPending: 1, store.StatusPaused: 1},
		Choices: web.OverviewChoices{Tags: []string{"eu", "prod"}, Locations: []string{"ams", "fra"}},
		Groups:  []web.RowGroup{{Rows: rows}}, Unshown: 3, Page: 1, Pages: 2,
		Attention: []web.EndpointRow{
			lately(web.EndpointRow{Slug: "weather", Name: "Weather", Host: "mcp.weather.example", Kind: probe.KindMCP, Status: store.StatusDown, Since: before(12 * time.Minute), Failure: rpcFailure(), Maintained: true, Latency: 214 * time.Millisecond, Checked: before(9 * time.Second), Uptime: per(99.16), Tags: []string{"prod"}}, 100, 99.5, 92, 80, -1, -1, 0),
			{Slug: "anvil", Name: "Base archive node", Host: "rpc.base.internal:8545", Kind: probe.KindEVM, Status: store.StatusDown, Since: before(3 * time.Hour), Failure: &probe.Failure{Step: "eth_blockNumber", Class: probe.ClassTimeout, Message: "no first byte after 15s"}, Latency: 15 * time.Second, Checked: before(31 * time.Second), Uptime: per(87.5)},
			{Slug: "search", Name: "Search tools", Host: "search.example", Kind: probe.KindMCP, Status: store.StatusDegraded, Since: before(26 * time.Hour), Failure: &probe.Failure{Step: "tools/list", Class: probe.ClassSlow, Message: "6.2s, more than the 5s allowed"}, Latency: 6200 * time.Millisecond, Checked: before(50 * time.Second), Uptime: per(100), Tags: []string{"prod", "eu"}},
			{Slug: "billing", Name: "Billing", Host: "billing.example", Kind: probe.KindMCP, Status: store.StatusGated, Since: before(48 * time.Hour), Failure: &probe.Failure{Step: "initialize", Class: probe.ClassCredentialRejected, Code: 401, Message: "token expired"}, Latency: 88 * time.Millisecond, Checked: before(20 * time.Second)},
		},
		Rest: rows,
	}
}

func restRows() []web.EndpointRow {
	return []web.EndpointRow{
		lately(web.EndpointRow{Slug: "ci", Name: "CI tools", Host: "ci.example", Kind: probe.KindMCP, Status: store.StatusUp, Latency: 84 * time.Millisecond, Checked: before(12 * time.Second), Uptime: per(100), Tags: []string{"prod"}}),
		{Slug: "docs", Name: "Docs search", Host: "docs.example", Kind: probe.KindMCP, Status: store.StatusUp, Latency: 1240 * time.Millisecond, Checked: before(44 * time.Second), Uptime: per(99.996)},
		{Slug: "eth", Name: "Ethereum mainnet", Host: "eth.rpc.example", Kind: probe.KindEVM, Status: store.StatusUp, Latency: 6400 * time.Microsecond, Checked: before(3 * time.Second), Uptime: per(99.93)},
		{Slug: "fresh", Name: "Fresh", Host: "fresh.example", Kind: probe.KindAuto, Status: store.StatusPending},
		{Slug: "old", Name: "Old gateway", Host: "old.example", Kind: probe.KindJSONRPC, Status: store.StatusPaused, Latency: 31 * time.Millisecond, Checked: before(80 * time.Hour)},
	}
}

func calm() web.OverviewPage {
	rows := restRows()
	return web.OverviewPage{
		Frame: frame("/"), Rest: rows, Groups: []web.RowGroup{{Rows: rows}}, Page: 1, Pages: 1,
		Tallies: map[store.Status]int{store.StatusUp: 3, store.StatusPending: 1, store.StatusPaused: 1},
	}
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

func endpointDown() web.EndpointPage {
	last := badCheck("chk_9", 9*time.Second)
	incident := openIncident()
	return web.EndpointPage{
		Frame: frame("/"), Slug: "weather", Name: "Weather", URL: "https://mcp.weather.example/mcp?key=…", Kind: probe.KindAuto, Tags: []string{"prod"},
		Status: store.StatusDown, Since: before(12 * time.Minute), Failure: rpcFailure(), Open: &incident,
		Confirming: 1, Pointing: store.StatusGated, Unsettled: &probe.Failure{Step: "initialize", Class: probe.ClassAuthRequired, Code: 401},
		Last: &last, Checked: last.StartedAt, Took: last.Duration,
		Places:    places(),
		Windows:   append(windows(), web.Window{Label: "365 days", Uptime: per(99.97), Coverage: 100}),
		History:   past90(),
		Range:     ranges(),
		Latency:   latencyChart(),
		Latencies: latencies(),
		Checks:    []web.Check{from("fra", last), from("fra", badCheck("chk_8", 69*time.Second)), from("ams", goodCheck("chk_7", 129*time.Second)), from("ams", goodCheck("chk_6", 189*time.Second))},
		Verdict:   probe.Down, Older: "/endpoints/weather?cursor=x", Newest: "/endpoints/weather",
		Chips:     []web.RangeLink{{Label: web.Say("All"), Link: "/endpoints/weather#checks"}, {Label: web.Say("Down"), Link: "/endpoints/weather?verdict=down#checks", Chosen: true}},
		Incidents: []web.IncidentRow{openIncident(), resolvedIncident()},
		Contracts: contracts()[:2], Chain: chainView(),
		Objectives: objectives(), Maintenance: new(maintained()),
		Events:   []web.Event{{At: before(30 * time.Hour), Severity: "breaking", Title: "The tool list changed (1 breaking, 1 harmless)"}},
		Settings: settings(),
	}
}

func settings() web.Settings {
	return web.Settings{
		Schedule: "@every 60s", Timeout: 15 * time.Second, DegradedOver: 5 * time.Second, Failures: 2, Successes: 1, After: 5 * time.Second,
		Locations: []string{"ams", "fra"}, Quorum: 2, Channels: channelRows(), DependsOn: []web.EndpointLink{{Slug: "gate", Name: "Gateway", Status: store.StatusUp}},
	}
}

func chainView() *web.ChainView {
	height := uint64(20831387)
	return &web.ChainView{ID: "1", Named: "ethereum", Height: &height, HeightSince: before(42 * time.Second), Pace: 12100 * time.Millisecond, Top: 20831390, Heads: []web.HeadRow{
		{Name: "Ethereum mainnet", Height: 20831390, Hash: "0xa1b2c3d4e5f60718293a4b5c6d7e8f90", Made: before(9 * time.Second), Seen: before(3 * time.Second)},
		{Name: "Weather", Own: true, Height: 20831387, Behind: 3, Hash: "0xffb2c3d4e5f60718293a4b5c6d7e8f90", Forked: true, Seen: before(4 * time.Second)},
	}}
}

func ranges() web.RangeView {
	return web.RangeView{
		From: before(24 * time.Hour), To: now, Hours: true, Zoomed: true, Steps: "/endpoints/weather#latency", Chart: "/endpoints/weather?by=phase#latency",
		Links: []web.RangeLink{{Name: "24h", Label: web.Say("24 hours"), Link: "/endpoints/weather#latency", Chosen: true}, {Name: "7d", Label: web.Say("%d days", 7), Link: "/endpoints/weather?range=7d#latency"}},
	}
}

func past90() web.History {
	h := web.History{Hours: hours(), Day: before(72 * time.Hour).Truncate(24 * time.Hour), Earlier: "/endpoints/weather?day=2026-11-17#hours", Later: "/endpoints/weather?day=2026-11-19#hours", Close: "/endpoints/weather#hours"}
	for i := range 90 {
		day := now.Truncate(24*time.Hour).AddDate(0, 0, i-89)
		slot := web.Slot{Begin: day, Uptime: per(100), Counts: store.Counts{Up: 1440}, Link: "/endpoints/weather?day=" + day.Format("2006-01-02") + "#hours"}
		switch {
		case i < 20:
			slot = web.Slot{Begin: day, Before: true}
		case i == 41:
			slot.Uptime, slot.Counts, slot.Incidents = per(93.2), store.Counts{Up: 1340, Down: 100, Degraded: 4}, 2
		case i == 60:
			slot.Uptime, slot.Counts, slot.Missed = nil, store.Counts{}, true
		case i == 86:
			slot.Chosen = true
		}
		h.Days = append(h.Days, slot)
	}
	h.Hours[20].Link = "/endpoints/weather?hour=2026-11-20T23#checks"
	return h
}

func latencyChart() web.LatencyChart {
	c := web.LatencyChart{Hourly: true, Steps: []string{"initialize", "initialized", "tools/list"}, Base: "/endpoints/weather#latency"}
	for i := range 25 {
		b := web.Bucket{Begin: now.Truncate(time.Hour).Add(time.Duration(i-24) * time.Hour), Counts: store.Counts{Up: 60}}
		wave := float64(i % 7)
		b.Whole = &web.Percentiles{P50: 84 + wave, P90: 120 + 3*wave, P95: 160 + 4*wave, P99: 300 + 20*wave}
		b.Steps = []float64{52 + wave, 9, 19}
		switch i {
		case 3:
			b.Whole, b.Steps, b.Counts, b.Missed = nil, nil, store.Counts{}, true
		case 11:
			b.Whole.P99 = 12400
		case 17:
			b.Whole, b.Steps, b.Counts = nil, nil, store.Counts{Down: 60}
		}
		c.Buckets = append(c.Buckets, b)
	}
	c.Marks = []web.Mark{
		{Kind: "incident", Begin: before(8 * time.Hour), End: before(6 * time.Hour), Said: web.Say("%s %s", "Weather", web.Say("was down for %s", web.Duration(2*time.Hour))), Link: "/incidents/inc_1", Tone: "down"},
		{Kind: "maintenance", Begin: before(20 * time.Hour), End: before(19 * time.Hour), Title: "Bigger disks", Link: "/maintenance/mnt_1"},
		{Kind: "contract", Begin: before(14 * time.Hour), End: before(14 * time.Hour), Title: "The tool list changed", Link: "/endpoints/weather/contracts", Tone: "breaking"},
	}
	return c
}

func phases() web.EndpointPage {
	p := endpointUp()
	p.Range.Phases = true
	chart := web.PhaseChart{Slug: "weather"}
	for i := range 40 {
		check := goodCheck("chk_1", time.Duration(40-i)*time.Minute)
		if i%17 == 16 {
			check = badCheck("chk_1", time.Duration(40-i)*time.Minute)
		}
		chart.Checks = append(chart.Checks, check)
	}
	p.Phases = &chart
	return p
}

func toolList() []byte {
	return []byte(`[{"annotations":{"readOnlyHint":true,"openWorldHint":true},"description":"Tells the weather of the days to come.\nOf one place at a time.","inputSchema":{"$defs":{"Place":{"properties":{"lat":{"type":"number","minimum":-90,"maximum":90},"lon":{"type":"number"}},"required":["lat","lon"],"type":"object"}},"properties":{"days":{"default":3,"description":"How many days.","maximum":14,"minimum":1,"type":"integer"},"place":{"$ref":"#/$defs/Place"},"units":{"enum":["metric","imperial"],"type":"string"},"tags":{"items":{"type":"string"},"type":"array"}},"required":["place"],"type":"object"},"name":"forecast","outputSchema":{"properties":{"days":{"items":{"properties":{"high":{"type":["number","null"]}},"type":"object"},"type":"array"}},"type":"object"},"title":"Forecast"},{"inputSchema":{"type":"object"},"name":"alerts"}]`)
}

func contract() web.ContractPage {
	tools, _, _ := web.ToolsOf(toolList())
	c := contracts()
	return web.ContractPage{
		Frame: frame("/"), Slug: "weather", Name: "Weather", Contract: c[0], Shown: tools, Others: c[2:], Against: &c[2], Compared: true, Differences: c[0].Changes,
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
			ID: "con_3", Link: "/endpoints/weather/contracts/con_3", Key: "legacy", Hash: "sha256:0f343b0931126a20f133d67c2b018a3b", Present: true, Since: before(30 * time.Hour), Until: before(9 * time.Second),
			Known: true, Count: 3, Tools: []string{"alerts", "forecast"},
			Changes: []probe.Change{
				{Rank: probe.RankBreaking, Kind: probe.ToolRemoved, Tool: "radar", Message: "the tool is gone"},
				{Rank: probe.RankInfo, Kind: probe.OptionalAdded, Tool: "alerts", Path: "/inputSchema/properties/region", Message: "an argument that may be given"},
			},
		},
		{ID: "con_2", Link: "/endpoints/weather/contracts/con_2", Key: "modern", Hash: "sha256:9c", Present: true, Since: before(40 * time.Hour), Until: before(30 * time.Hour)},
		{ID: "con_1", Link: "/endpoints/weather/contracts/con_1", Key: "legacy", Hash: "sha256:4bf5122f344554c53bde2ebb8cd2b7e3", Since: before(50 * time.Hour), Until: before(30 * time.Hour)},
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
		Frame: frame("/"), Fresh: true, Slug: "fresh", Name: "Fresh", URL: "https://fresh.example/mcp", Kind: probe.KindAuto,
		History: web.History{Days: []web.Slot{{Begin: now.Truncate(24 * time.Hour)}}, Hours: hours()[:1]}, Latency: web.LatencyChart{Hourly: true, Buckets: []web.Bucket{{Begin: now.Truncate(time.Hour)}}}, Settings: web.Settings{Schedule: "@hourly", Timeout: 15 * time.Second, Failures: 1, Successes: 1}, Status: store.StatusPending, Windows: []web.Window{{Label: "24 hours"}, {Label: "7 days"}, {Label: "30 days"}, {Label: "90 days"}},
	}
}

func formValues() web.EndpointForm {
	return web.EndpointForm{
		Kind: "auto", Schedule: "@every 60s", Timeout: "15s", DegradedOver: "5s", Failures: "2", Successes: "1", After: "5s", Notify: []string{"down", "gated", "unknown"},
	}
}

func form() web.FormPage {
	return web.FormPage{Frame: frame("/"), Parents: web.Picker{Field: "depends_on", Label: "Other endpoints"}, Form: formValues(), Kinds: web.GroupKinds(probe.Kinds()), Channels: []web.ChannelOption{{ID: "ch_1", Name: "ops", Type: "slack"}, {ID: "ch_2", Name: "oncall", Type: "slack", Broken: true}}}
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
	p.Form.UnknownAfter, p.Form.RemindEvery, p.Form.FlapChanges, p.Form.Notify = "long", "1s", "1", nil
	p.Form.Steps = []web.StepRow{{After: "10m", Channels: []string{"ch_2"}}, {After: "5m"}}
	p.Form.Objectives = []web.ObjectiveRow{{Name: "Fast!", Target: "101", Days: "0", Under: "1h", Notify: true}}
	p.Parents = picker("depends_on", "Other endpoints")
	p.Parents.Problems = []string{"stands there twice"}
	p.Problems = web.Problems{
		{Field: "notify[0]", Message: "must be one of down, gated, unknown and degraded, each once"},
		{Field: "unknown_after", Message: "must be a duration"},
		{Field: "remind_every", Message: "must be 0s, for never, or between 5m0s and 168h0m0s"},
		{Field: "flap_changes", Message: "must be 0, for 6, or between 2 and 20"},
		{Field: "escalation", Message: "has more than 10 steps"},
		{Field: "escalation[1].after", Message: "must be later than the step before"},
		{Field: "escalation[1].channels", Message: "must name between 1 and 20 channels"},
		{Field: "escalation[0].channels[0]", Message: "there is no channel"},
		{Field: "depends_on[1]", Message: "stands there twice"},
		{Field: "objectives", Message: "are more than 5"},
		{Field: "objectives[0].name", Message: "must be lower-case letters"},
		{Field: "objectives[0].target", Message: "must be between 50 and 99.999 per cent"},
		{Field: "objectives[0].days", Message: "must be between 1 and 90"},
		{Field: "objectives[0].under", Message: "must be between 0s and 5m0s"},
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

func picker(field, label string) web.Picker {
	return web.Picker{Field: field, Label: label, Options: []web.PickOption{
		{Slug: "ci", Name: "CI tools"}, {Slug: "docs", Name: "Docs search"}, {Slug: "eth", Name: "Ethereum mainnet", Chosen: true},
		{Slug: "anvil", Name: "Base archive node"}, {Slug: "search", Name: "Search tools"},
	}}
}

func incidentOpen() web.IncidentPage {
	ack := before(7 * time.Minute)
	i := openIncident()
	i.Acknowledged, i.SnoozedUntil, i.Flapping = "ada", new(now.Add(time.Hour)), true
	row := func(kind store.EntryKind, ago time.Duration) web.TimelineRow {
		return web.TimelineRow{Kind: kind, At: before(ago), Incident: store.IncidentEndpoint}
	}
	told, failed, worse, seen := row(store.EntrySent, 11*time.Minute), row(store.EntryFailed, 11*time.Minute), row(store.EntrySeverity, 8*time.Minute), row(store.EntrySeen, 10*time.Minute)
	told.Message, told.ChannelID, told.Channel = "opening", "ch_1", "ops"
	failed.Message, failed.ChannelID, failed.Channel, failed.Text = "opening", "ch_2", "oncall", "channel_is_archived"
	worse.Severity, worse.Cause = store.StatusDown, rpcFailure()
	seen.Text = "ams, fra"
	began, opened := row(web.EntryBegan, 12*time.Minute), row(store.EntryOpened, 12*time.Minute-5*time.Second)
	began.Severity, began.Sub = store.StatusDegraded, web.Say("the first check that failed")
	opened.Severity, opened.Sub, opened.Cause = store.StatusDegraded, web.Say("%s later, by enough failed checks in a row", web.Duration(5*time.Second)), rpcFailure()
	acked, remark, snoozed := row(store.EntryAcknowledged, 7*time.Minute), row(store.EntryComment, 6*time.Minute), row(store.EntrySnoozed, 5*time.Minute)
	acked.Author, remark.Author, snoozed.Author = "ada", "token deploys", "ada"
	remark.Text, remark.Public = "The database behind it is being restarted.\nBack in ten minutes.", true
	snoozed.Text = "until 2026-11-21 04:12 UTC"
	page := web.IncidentPage{
		Frame: frame("/incidents"), Incident: i, Worst: store.StatusDown, Public: true, SeenFrom: []string{"ams", "fra"}, Ack: &ack,
		Dependents: []web.EndpointLink{{Slug: "ci", Name: "CI tools", Status: store.StatusUp}, {Slug: "docs", Name: "Docs search", Status: store.StatusDown}},
		Timeline:   []web.TimelineRow{began, opened, told, failed, seen, worse, row(store.EntryFlapping, 7*time.Minute), acked, remark, snoozed, row(store.EntryCause, 4*time.Minute), row(store.EntryContract, 3*time.Minute), row(store.EntryCalmed, time.Minute)},
		Opening:    &web.Opening{Check: from("fra", badCheck("chk_1", 12*time.Minute)), Said: said()},
		Checks:     []web.Check{badCheck("chk_2", 2*time.Minute), badCheck("chk_0", 13*time.Minute)},
		Form:       web.ActForm{For: "4h"},
	}
	return page
}

func incidentOver() web.IncidentPage {
	i := resolvedIncident()
	return web.IncidentPage{
		Frame: frame("/incidents"), Incident: i, Worst: store.StatusDown,
		Timeline: []web.TimelineRow{
			{Kind: store.EntryOpened, At: i.OpenedAt, Severity: store.StatusDegraded},
			{Kind: store.EntryResolved, At: *i.ResolvedAt, How: i.Resolution, Sub: web.Say("after %s", web.Duration(80*time.Minute))},
			{Kind: store.EntryReopened, At: *i.ResolvedAt, Author: "ada"},
		},
		Checks: []web.Check{goodCheck("chk_3", time.Hour), badCheck("chk_2", 2*time.Hour), badCheck("chk_1", 3*time.Hour)},
	}
}

func incidentManual() web.IncidentPage {
	i := web.IncidentRow{ID: "inc_3", Kind: store.IncidentManual, Title: "Payments are slow", Severity: store.StatusDegraded, StartedAt: before(3 * time.Hour), OpenedAt: before(3 * time.Hour)}
	return web.IncidentPage{
		Frame: frame("/incidents"), Incident: i, Worst: store.StatusDegraded, Public: true,
		Endpoints: []web.EndpointLink{{Slug: "ci", Name: "CI tools", Status: store.StatusUp}, {Slug: "docs", Name: "Docs search", Status: store.StatusDegraded}},
		Timeline: []web.TimelineRow{
			{Kind: store.EntryOpened, At: i.OpenedAt, Incident: i.Kind, Severity: i.Severity, Author: "ada", Text: "Our bank answers slowly. We are in touch with them.", Public: true},
			{Kind: store.EntryJoined, At: i.OpenedAt, Incident: i.Kind, Text: "Docs search"},
			{Kind: store.EntryLeft, At: i.OpenedAt, Incident: i.Kind, Text: "Docs search"},
		},
		Form: web.ActForm{Text: " ", Public: true}, Problems: web.Problems{{Field: "text", Message: "is required"}},
	}
}

// incidentLate is the page after somebody was faster.
func incidentLate() web.IncidentPage {
	p := incidentOver()
	p.Form.Text, p.Problems = "It was the disk.", web.Problems{{Field: "act", Message: "comes too late: the incident is over; reopen it first"}}
	return p
}

func raise() web.RaisePage {
	p := web.RaisePage{Frame: frame("/incidents"), Form: web.RaiseForm{Title: "Payments", Severity: "gated", Text: "Soon.", StartedAt: "2026-12-21T04:00"}, Picker: picker("endpoints", "Endpoints")}
	p.Problems = web.Problems{{Field: "title", Message: "holds control characters"}, {Field: "started_at", Message: "must lie in the last 30 days"}, {Field: "text", Message: "is longer than 4000 characters"}, {Field: "severity", Message: "must be one of down, gated, unknown and degraded"}, {Field: "endpoints[1]", Message: "there is no endpoint \"nope\""}}
	p.Picker.Typed, p.Picker.More, p.Picker.Problems = "nope, gone", true, p.Problems.For("endpoints")
	return p
}

func maintenance() web.MaintenancePage {
	return web.MaintenancePage{
		Frame:    frame("/maintenance"),
		UnderWay: []web.MaintenanceRow{maintained()},
		Planned: []web.MaintenanceRow{
			{ID: "mnt_2", Title: "Weekly restart", Begin: now.Add(26 * time.Hour), End: now.Add(27 * time.Hour), Schedule: "0 5 * * 0", Duration: time.Hour, Covers: web.List{web.Say("%d endpoints", 2), web.Say("tags %s and %s", "prod", "eu")}, Author: "ada"},
			{ID: "mnt_3", Title: "Never again", Schedule: "0 5 29 2 *", Duration: time.Hour, Covers: web.List{web.Say("tag %s", "prod")}},
		},
		Over: []web.MaintenanceRow{{ID: "mnt_0", Title: "Move to another region", Begin: before(30 * time.Hour), End: before(26 * time.Hour), Covers: web.List{web.Say("everything")}, Public: true, Author: "token deploys"}},
	}
}

func planned() web.PlannedPage {
	return web.PlannedPage{
		Frame: reader("/maintenance"), Row: maintenance().Planned[0], Text: "Checkout may be slow.",
		Endpoints: []web.EndpointLink{{Slug: "weather", Name: "Weather", Status: store.StatusDown}}, Tags: []string{"prod", "eu"},
	}
}

func maintained() web.MaintenanceRow {
	return web.MaintenanceRow{ID: "mnt_1", Title: "Database upgrade", Begin: before(20 * time.Minute), End: now.Add(40 * time.Minute), Covers: web.List{web.Say("everything")}, Public: true, Author: "ada"}
}

func planMistakes() web.MaintenanceFormPage {
	p := web.MaintenanceFormPage{Frame: frame("/maintenance"), ID: "mnt_2", Title: "Weekly restart", Picker: picker("endpoints", "Endpoints")}
	p.Form = web.MaintenanceForm{Title: "Weekly restart", Text: "Short.", Recurs: true, StartsAt: "2026-11-21T04:00", EndsAt: "2026-11-20T04:00", Schedule: "@every 1h", Duration: "soon", All: true, Tags: "prod"}
	p.Problems = web.Problems{
		{Field: "title", Message: "is required"}, {Field: "text", Message: "is longer than 4000 characters"}, {Field: "starts_at", Message: "is required"},
		{Field: "ends_at", Message: "must be later than the start"}, {Field: "schedule", Message: "must name times of day, not @every"},
		{Field: "duration", Message: `must be a duration like "2h" or "30m"`}, {Field: "all", Message: "cannot be used together with endpoints or tags"},
		{Field: "tags[0]", Message: "is empty, or begins or ends with white space"}, {Field: "endpoints", Message: "are required, or tags, or all"},
	}
	p.Picker.Problems = p.Problems.For("endpoints")
	return p
}

func subscriptionForm() web.SubscriptionForm {
	return web.SubscriptionForm{Type: "email", All: true, Severities: web.SeverityTicks(func(s store.Status) bool { return s == store.StatusDown })}
}

func subscriptions() web.SubscriptionsPage {
	broken := before(5 * time.Hour)
	return web.SubscriptionsPage{
		Frame: frame("/subscriptions"), Form: subscriptionForm(), Picker: picker("endpoints", "Endpoints"), Next: "/subscriptions?cursor=x",
		Subscriptions: []web.SubscriptionRow{
			{ID: "sub_1", Type: "Email", Address: web.Say("%s", "ada@example.com"), About: web.List{web.Say("everything")}, When: web.Say("when %s", web.List{web.Words("down")}), Quiet: "22:00–07:00 Europe/Berlin"},
			{ID: "sub_2", Type: "Webhook", Address: web.Say("by webhook URL"), About: web.List{web.Say("%d endpoints", 1), web.Say("tag %s", "prod")}, When: web.Say("whatever the endpoints tell"), Broken: "410 Gone", BrokenAt: &broken},
		},
	}
}

func subscribe() web.SubscriptionsPage {
	p := web.SubscriptionsPage{Frame: frame("/subscriptions"), Form: subscriptionForm(), Picker: picker("endpoints", "Endpoints")}
	p.Form.Type, p.Form.Address, p.Form.Secret, p.Form.All, p.Form.Tags = "webhook", "ada@example.com", "s3cret", false, "prod"
	p.Form.QuietFrom, p.Form.QuietTo, p.Form.QuietZone = "22:00", "22:00", "Mars/Base"
	p.Problems = web.Problems{
		{Field: "type", Message: "must be email, webhook or slack"}, {Field: "address", Message: "must be an http or https URL with a host and without a user name"},
		{Field: "signing_secret", Message: "must be whsec_ and 24 to 64 bytes in base64"}, {Field: "severities[0]", Message: "must be one of down, gated, unknown and degraded"},
		{Field: "quiet", Message: "must be from and to another time of day, like 22:00"}, {Field: "quiet.zone", Message: "must be a time zone like Europe/Berlin"},
		{Field: "endpoints[0]", Message: "there is no endpoint \"nope\""}, {Field: "tags[1]", Message: "is no tag"}, {Field: "all", Message: "cannot be used together with endpoints or tags"},
	}
	p.Picker.Problems = p.Problems.For("endpoints")
	return p
}

func objectives() []web.ObjectiveView {
	return []web.ObjectiveView{
		{Name: "availability", Target: 99.9, Days: 30, Attained: per(99.96), Left: 61.4, Budget: web.BudgetChart{{Day: before(48 * time.Hour), Left: 100}, {Day: before(24 * time.Hour), Left: 61.4}, {Day: now, Left: 61.4}}, Burns: []web.Burn{{Over: "1h", Rate: 0.4, Limit: 14.4}, {Over: "5m", Rate: 31, Limit: 14.4}}},
		{Name: "fast", Target: 95, Days: 7, Under: 800 * time.Millisecond, Attained: per(94.2), Left: -16, Burning: "fast"},
		{Name: "slow", Target: 99, Days: 1, Attained: per(99.9), Left: 90, Burning: "slow"},
		{Name: "fresh", Target: 99, Days: 90},
	}
}

func openIncident() web.IncidentRow {
	return web.IncidentRow{ID: "inc_2", Kind: store.IncidentEndpoint, Severity: store.StatusDown, Slug: "weather", Name: "Weather", StartedAt: before(12 * time.Minute), OpenedAt: before(12*time.Minute - 5*time.Second), Cause: *rpcFailure()}
}

func resolvedIncident() web.IncidentRow {
	end := before(26 * time.Hour)
	return web.IncidentRow{ID: "inc_1", Kind: store.IncidentEndpoint, Severity: store.StatusDown, Slug: "weather", Name: "Weather", StartedAt: before(27*time.Hour + 20*time.Minute), OpenedAt: before(27*time.Hour + 19*time.Minute), ResolvedAt: &end, Resolution: store.ResolutionRecovered, Cause: probe.Failure{Class: probe.ClassConnect, Message: "connection refused"}}
}

func incidents() web.IncidentsPage {
	return web.IncidentsPage{Frame: frame("/incidents"), Open: []web.IncidentRow{incidentOpen().Incident, incidentManual().Incident, {
		ID: "inc_5", Kind: store.IncidentExpiring, Slug: "ci", Name: "CI tools", Severity: store.StatusGated, StartedAt: before(30 * time.Hour), Cause: probe.Failure{Class: probe.ClassTLSExpiring, Message: "in 6 days"},
	}, {
		ID: "inc_6", Kind: store.IncidentChain, Title: "Ethereum (evm 1)", Severity: store.StatusDown, StartedAt: before(20 * time.Minute),
	}, {
		ID: "inc_7", Kind: store.IncidentLocation, Title: "fra", Severity: store.StatusUnknown, StartedAt: before(2 * time.Minute),
	}, {
		ID: "inc_8", Kind: store.IncidentObjective, Slug: "ci", Name: "CI tools", Objective: "availability", Severity: store.StatusDegraded, StartedAt: before(2 * time.Minute), Acknowledged: "grace",
	}}, Resolved: []web.IncidentRow{resolvedIncident(), resolvedIncident()}, Next: "/incidents?cursor=x"}
}

func channelRows() []web.ChannelRow {
	broken := before(5 * time.Hour)
	return []web.ChannelRow{
		{ID: "ch_1", Name: "ops", Type: "Slack", How: web.Say("channel %s", "#alerts")},
		{ID: "ch_2", Name: "oncall", Type: "Mattermost", How: web.Say("by webhook URL"), Broken: "channel_is_archived", BrokenAt: &broken},
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
	rows := []web.PublicRow{
		{Slug: "weather", Path: "/status/weather", Name: "Weather", Status: store.StatusDown, Uptime: per(99.91), Days: days90()},
		{Slug: "ci", Path: "/status/ci", Name: "CI tools", Status: store.StatusUp, Uptime: per(100)},
		{Slug: "docs", Path: "/status/docs", Name: "Docs search", Status: store.StatusUp, Uptime: per(99.996)},
		{Slug: "search", Path: "/status/search", Name: "Search tools", Status: store.StatusDegraded, Uptime: per(98.2)},
		{Slug: "fresh", Path: "/status/fresh", Name: "Fresh", Status: store.StatusPending},
	}
	return web.StatusPage{
		Frame: web.Frame{Now: now, Version: "0.1.0", Section: "/status"}, Overall: store.StatusDown, Heading: "Partial outage",
		Meta: web.Meta{Title: "Partial outage", Description: web.Say("%d of %d services are up.", 2, 5), Name: "Rollcall", URL: "https://rollcall.example/status"},
		Feed: "/status/feed.atom", JSONFeed: "/status/feed.json", LLMs: "/llms.txt",
		Endpoints: rows, Sections: []web.PublicSection{{Rows: rows}},
		Open:   []web.PublicIncident{{ID: "inc_2", Kind: store.IncidentEndpoint, Severity: store.StatusDown, Name: "Weather", StartedAt: before(12 * time.Minute)}},
		Recent: []web.PublicIncident{{ID: "inc_1", Kind: store.IncidentEndpoint, Severity: store.StatusDown, Name: "Weather", StartedAt: before(27 * time.Hour), ResolvedAt: &end}},
	}
}

// site is one of several status pages.
func site() web.StatusPage {
	p := status()
	p.Site = &web.Site{Name: "ACME", Home: "/p/acme", Logo: "/p/acme/logo?v=1", Accent: "/p/acme/accent.css?v=1"}
	p.Text, p.Meta.Hidden = "How our services are.", true
	p.Sections = []web.PublicSection{{Title: "Tools", Rows: p.Endpoints[:2]}, {Title: "Rest", Rows: p.Endpoints[2:]}, {Title: "Nothing"}}
	return p
}

func statusPages() web.StatusPagesPage {
	return web.StatusPagesPage{Frame: frame("/pages"), Pages: []web.StatusPageRow{
		{Slug: "acme", Name: "ACME", Domain: "status.acme.example", Proven: true, Sections: 2, Updated: before(3 * time.Hour)},
		{Slug: "beta", Name: "Beta", Domain: "beta.example", Locked: true, Hidden: true, Updated: before(72 * time.Hour)},
	}}
}

func statusPageFacts() web.StatusPageFactsPage {
	return web.StatusPageFactsPage{
		Frame: reader("/pages"), Text: "How we are.", Accent: "#17604f",
		Row: web.StatusPageRow{Slug: "acme", Name: "ACME", Domain: "status.acme.example", Locked: true, Hidden: true, Updated: before(time.Hour)},
		Parts: []web.SectionFacts{
			{Title: "Tools", Endpoints: []web.EndpointLink{{Slug: "weather", Name: "Weather", Status: store.StatusUp}}, Tags: []string{"prod"}},
			{},
		},
	}
}

func statusPageForm() web.StatusPageFormPage {
	seen := before(2 * time.Hour)
	return web.StatusPageFormPage{
		Frame: frame("/pages"), Slug: "acme", Name: "ACME", Locked: true, HasLogo: true, Domains: true,
		Form: web.StatusPageForm{Name: "ACME", Text: "How we are.", Accent: "#17604f", Domain: "status.acme.example", Locked: true, Password: "s3cret"},
		Sections: []web.SectionForm{
			{Title: "Tools", Tags: "prod", First: true, Picker: picker("sections[0].endpoints", "Endpoints")},
			{N: 1, Last: true, Picker: picker("sections[1].endpoints", "Endpoints")},
		},
		Domain:   &web.DomainCheck{Domain: "status.acme.example", Record: "_rollcall.status.acme.example", Text: "rollcall=token", ProvenAt: &seen},
		Problems: web.Problems{{Field: "name", Message: "is required"}, {Field: "sections[0].title", Message: "holds control characters"}, {Field: "domain", Message: "is taken already"}},
	}
}

func visitor() web.Frame { return web.Frame{Now: now, Version: "0.1.0", Section: "/status"} }

func subscribeForm() web.SubscribeForm {
	return web.SubscribeForm{
		Action: "/status/subscribe",
		Types:  []web.Tick{{Value: "email", Label: "Email", On: true}, {Value: "webhook", Label: "Webhook"}, {Value: "slack", Label: "Slack webhook"}},
		About: web.SubscribeAbout{
			All:       true,
			Endpoints: []web.PickOption{{Slug: "weather", Name: "Weather"}, {Slug: "ci", Name: "CI tools"}, {Slug: "docs", Name: "Docs search"}},
			Tags:      []web.Tick{{Value: "prod", Label: "prod"}, {Value: "eu", Label: "eu"}},
		},
	}
}

func subscribeMistakes() web.SubscribePage {
	f := subscribeForm()
	f.Address, f.Secret, f.About.All, f.Types[0].On, f.Types[1].On = "not an address", "s3cret", false, false, true
	f.Problems = web.Problems{{Field: "address", Message: "must be an http or https URL with a host and without a user name"}, {Field: "signing_secret", Message: "must be whsec_ and 24 to 64 bytes in base64"}, {Field: "endpoints", Message: "are required, or tags, unless it is everything"}, {Field: "type", Message: "is not available here: choose another"}}
	return web.SubscribePage{Frame: visitor(), Form: f}
}

func subscribeManage() web.SubscribeManagePage {
	about := subscribeForm().About
	about.All, about.Endpoints[0].Chosen, about.Tags[1].On = false, true, true
	broken := before(3 * time.Hour)
	return web.SubscribeManagePage{Frame: visitor(), Action: "/status/subscription", Token: "a-token", Type: "Email", Where: "ada@example.com", Waiting: true, Broken: &broken, About: about}
}

func statusAnnounced() web.StatusPage {
	p, form, end := status(), subscribeForm(), before(4*time.Hour)
	p.JSONFeed, p.Subscribe = "/status/feed.json", &form
	p.Endpoints[1].Maintained = true
	p.Open = append(p.Open, web.PublicIncident{
		ID: "inc_8", Kind: store.IncidentManual, Name: "Payments are slow", Severity: store.StatusGated, StartedAt: before(3 * time.Hour),
		Endpoints: []web.PublicLink{{Path: "/status/ci", Name: "CI tools"}, {Path: "/status/docs", Name: "Docs search"}},
		Updates: []web.PublicUpdate{
			{Kind: store.EntryComment, At: before(time.Hour), Text: "We have found it: a queue that nobody empties.\nIt is being emptied."},
			{Kind: store.EntryOpened, At: before(3 * time.Hour), Text: "Some payments take minutes."},
		},
	})
	p.Recent = append(p.Recent, web.PublicIncident{ID: "inc_9", Kind: store.IncidentEndpoint, Name: "Old gateway", Severity: store.StatusUnknown, StartedAt: before(5 * time.Hour), ResolvedAt: &end, Paused: true})
	p.Plans = []web.PublicPlan{
		{ID: "mnt_1", Title: "Bigger disks", Text: "Short breaks are possible.", Begin: before(10 * time.Minute), End: now.Add(50 * time.Minute), Active: true, Endpoints: []web.PublicLink{{Path: "/status/ci", Name: "CI tools"}}},
		{ID: "mnt_2", Title: "Sunday's updates", Begin: now.Add(30 * time.Hour), End: now.Add(31 * time.Hour), Recurs: true, All: true},
	}
	return p
}

func statusCalm() web.StatusPage {
	p := status()
	p.Overall, p.Heading, p.Open, p.Recent, p.Endpoints = store.StatusUp, "All systems operational", nil, nil, p.Endpoints[1:3]
	return p
}

// days90 are the days of an endpoint of every level.
func days90() []web.Slot {
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
	return days
}

func statusEndpoint() web.StatusEndpointPage {
	days := days90()
	return web.StatusEndpointPage{
		Frame: web.Frame{Now: now, Version: "0.1.0"}, Endpoint: web.PublicRow{Slug: "weather", Name: "Weather", Status: store.StatusDown, Since: before(12 * time.Minute)},
		Places:  []web.PlaceRow{{Location: "ams", Status: store.StatusUp, Since: before(300 * time.Hour)}, {Location: "fra", Status: store.StatusDown, Since: before(12 * time.Minute)}, {Location: "lon", Status: store.StatusPending}},
		Windows: windows(), Days: days, Incidents: statusAnnounced().Open, Plans: statusAnnounced().Plans[:1],
		Subscribe: "/status/subscribe?endpoint=weather", Feed: "/status/feed.atom",
	}
}

func badges(public bool, kind string) web.BadgesPage {
	p := web.BadgesPage{
		Frame: frame("/"), Slug: "weather", Name: "Weather", Public: public,
		Form:    web.BadgeForm{Kind: kind, Window: "24h", Quantile: "p95", Style: "flat", Theme: "auto", Label: "Weather"},
		Picture: "/badge/weather/latency.svg?theme=auto", Height: 20,
		Kinds:   []string{"status", "uptime", "latency", "slo", "protocol", "tools", "height"},
		Windows: []string{"1h", "24h", "7d", "30d", "90d", "365d"}, Quantiles: []string{"p50", "p90", "p95", "p99"},
		Styles: []string{"flat", "flat-square", "for-the-badge"}, Themes: []string{"light", "dark", "auto"},
		Snippets: []web.BadgeSnippet{
			{ID: "badge-markdown", Label: "Markdown", Rows: 2, Text: "[![Weather](https://up.example/badge/weather/latency.svg?theme=auto)](https://up.example/status/weather)"},
			{ID: "badge-url", Label: "URL", Rows: 1, Text: "https://up.example/badge/weather/latency.svg?theme=auto"},
		},
	}
	if public {
		p.Objectives = []string{"availability"}
	}
	return p
}
