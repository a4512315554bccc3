package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func TestQuietHoursEnd(t *testing.T) {
	night := store.Quiet{From: "22:00", To: "07:00", Zone: "Europe/Berlin"}
	noon := store.Quiet{From: "12:00", To: "13:30", Zone: "UTC"}
	lost := store.Quiet{From: "01:00", To: "02:30", Zone: "Europe/Berlin"} // 02:30 does not exist on 29 March 2026
	for name, test := range map[string]struct {
		quiet    store.Quiet
		at, want string
	}{
		"before midnight":              {night, "2026-01-10T21:30:00Z", "2026-01-11T06:00:00Z"},
		"after midnight":               {night, "2026-01-11T03:00:00Z", "2026-01-11T06:00:00Z"},
		"to the minute":                {night, "2026-01-11T06:00:00Z", ""},
		"the minute before":            {night, "2026-01-11T05:59:59Z", "2026-01-11T06:00:00Z"},
		"from the first minute":        {night, "2026-01-10T21:00:00Z", "2026-01-11T06:00:00Z"},
		"by day":                       {night, "2026-01-10T12:00:00Z", ""},
		"the clock goes forward":       {night, "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"}, // a short night
		"the clock goes back":          {night, "2026-10-24T21:00:00Z", "2026-10-25T06:00:00Z"}, // a long one
		"in the hour that comes twice": {night, "2026-10-25T01:30:00Z", "2026-10-25T06:00:00Z"},
		"to an hour that is left out":  {lost, "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"},
		"within a day":                 {noon, "2026-01-10T12:00:00Z", "2026-01-10T13:30:00Z"},
		"after it":                     {noon, "2026-01-10T13:30:00Z", ""},
		"the last day of a month":      {night, "2026-01-31T23:30:00Z", "2026-02-01T06:00:00Z"},
		"no such zone":                 {store.Quiet{From: "00:00", To: "23:59", Zone: "Nowhere/Else"}, "2026-01-10T12:00:00Z", ""},
		"no time of day":               {store.Quiet{From: "25:00", To: "07:00", Zone: "UTC"}, "2026-01-10T02:00:00Z", ""},
		"always and never":             {store.Quiet{From: "07:00", To: "07:00", Zone: "UTC"}, "2026-01-10T07:00:00Z", ""},
	} {
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		until, quiet := test.quiet.Until(at)
		got := ""
		if quiet {
			got = until.UTC().Format(time.RFC3339)
		}
		if got != test.want {
			t.Errorf("%s: quiet until %q, want %q", name, got, test.want)
		}
		if quiet && !until.After(at) {
			t.Errorf("%s: quiet hours end at %v, before %v", name, until, at)
		}
	}
}

func subscription(edits ...func(*store.Subscription)) store.Subscription {
	confirmed := start
	s := store.Subscription{
		ID: "sub_a", All: true, ConfirmedAt: &confirmed,
		Channel: store.Channel{Name: "a", Type: store.ChannelEmail, Settings: map[string]string{"to": "A@Example.com"}},
	}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

func TestASubscriptionIsCheckedAsAWhole(t *testing.T) {
	many := numbers(0, store.MaxSubscribed+1)
	for name, test := range map[string]struct {
		edit   func(*store.Subscription)
		fields []string
	}{
		"everything by email": {func(*store.Subscription) {}, nil},
		"a webhook": {func(s *store.Subscription) {
			s.Channel = store.Channel{Name: "a", Type: store.ChannelWebhook, Secrets: map[string]string{"webhook_url": "https://a.example"}}
		}, nil},
		"a channel of another type": {func(s *store.Subscription) {
			s.Channel = store.Channel{Name: "a", Type: store.ChannelPagerDuty, Secrets: map[string]string{"routing_key": "R015OVDRGSBYGUPK8LX9D3GSQCP5M4TT"}}
		}, []string{"type"}},
		"no channel":      {func(s *store.Subscription) { s.Channel = store.Channel{} }, []string{"name", "type", "type"}},
		"about nothing":   {func(s *store.Subscription) { s.All = false }, []string{"endpoints"}},
		"about a tag":     {func(s *store.Subscription) { s.All, s.Tags = false, []string{"prod"} }, nil},
		"about too much":  {func(s *store.Subscription) { s.Endpoints = many }, []string{"endpoints"}},
		"odd severities":  {func(s *store.Subscription) { s.Severities = []store.Status{store.StatusDown, store.StatusUp} }, []string{"severities[1]"}},
		"quiet hours":     {func(s *store.Subscription) { s.Quiet = &store.Quiet{From: "22:00", To: "07:00", Zone: "Asia/Tokyo"} }, nil},
		"odd quiet hours": {func(s *store.Subscription) { s.Quiet = &store.Quiet{From: "22:00", To: "22:00"} }, []string{"quiet", "quiet.zone"}},
	} {
		if diff := cmp.Diff(fields(subscription(test.edit).Validate()), test.fields); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestAnAddressIsKnownAgain(t *testing.T) {
	email := subscription()
	if email.Address() != "A@Example.com" || string(store.AddressHash(email.Address())) != string(store.AddressHash("a@example.COM")) {
		t.Errorf("address %q, want the one given, known in any case", email.Address())
	}
	const secret = "https://hooks.example/services/T1/SeCret?Key=A"
	for other, same := range map[string]bool{
		"HTTPS://Hooks.Example/services/T1/SeCret?Key=A":      true,
		"https://hooks.example/services/T1/SeCret?Key=A#":     true,
		"https://hooks.example/services/T1/SeCret?Key=A#part": true,
		"https://hooks.example/services/T1/secret?Key=A":      false,
		"https://hooks.example/services/T1/SeCret?Key=a":      false,
		"https://hooks.example/services/t1/SeCret?Key=A":      false,
		"http://hooks.example/services/T1/SeCret?Key=A":       false,
	} {
		if got := string(store.AddressHash(other)) == string(store.AddressHash(secret)); got != same {
			t.Errorf("%s is %s: %t, want %t", other, secret, got, same)
		}
	}
	hook := subscription(func(s *store.Subscription) {
		s.Channel = store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://a.example"}}
	})
	bot := subscription(func(s *store.Subscription) {
		s.Channel = store.Channel{Type: store.ChannelSlack, Settings: map[string]string{"channel": "#a"}, Secrets: map[string]string{"bot_token": "x"}}
	})
	if hook.Address() != "https://a.example" || bot.Address() != "#a" {
		t.Errorf("addresses %q and %q", hook.Address(), bot.Address())
	}
	if email.Audience() != store.AudiencePublic || subscription(func(s *store.Subscription) { s.UserID = "usr_a" }).Audience() != store.AudienceMember {
		t.Error("a subscription of a user is a member's, any other the public's")
	}
}

func TestWhoOfThoseSubscribedHears(t *testing.T) {
	public := store.Endpoint{ID: "ep_public", Public: true, Tags: []string{"prod"}}
	private := store.Endpoint{ID: "ep_private", Tags: []string{"prod"}}
	over := minutes(5)
	member := func(s *store.Subscription) { s.UserID = "usr_a" }
	pages := map[string]*store.StatusPage{"page_a": {ID: "page_a", Sections: []store.PageSection{{Endpoints: []string{private.ID}}}}}
	onPage := func(s *store.Subscription) { s.PageID = "page_a" }
	some := func(edit func(*store.Subscription)) func(*store.Subscription) {
		return func(s *store.Subscription) { s.All = false; edit(s) }
	}
	down := store.Telling{
		Incident: store.Incident{ID: "inc_a", Kind: store.IncidentEndpoint, Severity: store.StatusDown}, Endpoints: []store.Endpoint{public},
		Kind: store.NoticeUpdated, Told: true, EntryID: "ent_a", At: start,
	}
	with := func(edit func(*store.Telling)) store.Telling { w := down; edit(&w); return w }
	hidden := with(func(w *store.Telling) { w.Endpoints = []store.Endpoint{private} })
	manual := with(func(w *store.Telling) { w.Incident.Kind, w.Endpoints = store.IncidentManual, nil })
	ended := with(func(w *store.Telling) { w.Incident.ResolvedAt, w.Kind = &over, store.NoticeResolved })
	for name, test := range map[string]struct {
		telling store.Telling
		who     store.Subscription
		fresh   store.NoticeKind // what one hears who has not heard of it before
		heard   store.NoticeKind // and one who has
	}{
		"everything":              {down, subscription(), "opened", "updated"},
		"the opening":             {with(func(w *store.Telling) { w.Kind = store.NoticeOpened }), subscription(), "opened", ""},
		"open again":              {with(func(w *store.Telling) { w.Kind, w.Anew = store.NoticeOpened, true }), subscription(), "opened", "opened"},
		"nothing is told":         {with(func(w *store.Telling) { w.Kind = "" }), subscription(), "", ""},
		"not confirmed":           {down, subscription(func(s *store.Subscription) { s.ConfirmedAt = nil }), "", ""},
		"by tag":                  {down, subscription(some(func(s *store.Subscription) { s.Tags = []string{"prod"} })), "opened", "updated"},
		"another tag":             {down, subscription(some(func(s *store.Subscription) { s.Tags = []string{"dev"} })), "", ""},
		"its severity":            {down, subscription(func(s *store.Subscription) { s.Severities = []store.Status{"down"} }), "opened", "updated"},
		"another severity":        {down, subscription(func(s *store.Subscription) { s.Severities = []store.Status{"gated"} }), "", "updated"},
		"no severity":             {down, subscription(func(s *store.Subscription) { s.Severities = []store.Status{} }), "", "updated"},
		"untold":                  {with(func(w *store.Telling) { w.Told = false }), subscription(), "", "updated"},
		"untold, asked by name":   {with(func(w *store.Telling) { w.Told = false }), subscription(func(s *store.Subscription) { s.Severities = []store.Status{"down"} }), "opened", "updated"},
		"not public":              {hidden, subscription(), "", ""},
		"not public, to a member": {hidden, subscription(member), "opened", "updated"},
		"by hand, about nothing":  {manual, subscription(), "opened", "updated"},
		"by hand, to some":        {manual, subscription(some(func(s *store.Subscription) { s.Tags = []string{"prod"} })), "", ""},
		"one of several": {
			with(func(w *store.Telling) { w.Endpoints = []store.Endpoint{private, public} }),
			subscription(some(func(s *store.Subscription) { s.Endpoints = []string{"ep_public"} })), "opened", "updated",
		},
		"the hidden one of several": {
			with(func(w *store.Telling) { w.Endpoints = []store.Endpoint{private, public} }),
			subscription(some(func(s *store.Subscription) { s.Endpoints = []string{"ep_private"} })), "", "",
		},
		"the end":                    {ended, subscription(), "", "resolved"},
		"the end, no longer wanted":  {ended, subscription(some(func(s *store.Subscription) { s.Tags = []string{"dev"} })), "", "resolved"},
		"the end, no longer public":  {with(func(w *store.Telling) { *w = ended; w.Endpoints = hidden.Endpoints }), subscription(), "", ""},
		"a word on what is over":     {with(func(w *store.Telling) { w.Incident.ResolvedAt = &over }), subscription(), "", "updated"},
		"a location, to the public":  {with(func(w *store.Telling) { w.Incident.Kind, w.Endpoints = store.IncidentLocation, nil }), subscription(), "", ""},
		"a location, to a member":    {with(func(w *store.Telling) { w.Incident.Kind, w.Endpoints = store.IncidentLocation, nil }), subscription(member), "opened", "updated"},
		"everything, to one in case": {down, subscription(member), "opened", "updated"},
		"on the page":                {hidden, subscription(onPage), "opened", "updated"},
		"public, not on the page":    {down, subscription(onPage), "", ""},
		"a part of the page":         {hidden, subscription(onPage, some(func(s *store.Subscription) { s.Endpoints = []string{"ep_private"} })), "opened", "updated"},
		"by hand, on no page":        {manual, subscription(onPage), "", ""},
		"on a page that is gone":     {hidden, subscription(func(s *store.Subscription) { s.PageID = "page_gone" }), "", ""},
	} {
		for i, want := range []store.NoticeKind{test.fresh, test.heard} {
			notices := test.telling.Notices([]store.Listener{{Subscription: test.who, Page: pages[test.who.PageID], Heard: i == 1}})
			var got store.NoticeKind
			if len(notices) == 1 {
				n := notices[0]
				got = n.Kind
				if n.ID == "" || n.IncidentID != "inc_a" || n.ChannelID != "sub_a" || n.EntryID != "ent_a" || !n.DueAt.Equal(start) {
					t.Errorf("%s: notice %+v", name, n)
				}
			}
			if got != want {
				t.Errorf("%s, heard before: %v: told %q, want %q", name, i == 1, got, want)
			}
		}
	}
}

func TestAReceiverIsAHostOrAWorkspace(t *testing.T) {
	for address, want := range map[string]string{
		"https://a.example/x":                            "a.example",
		"https://A.Example.:8443/y?z":                    "a.example",
		"http://[2001:DB8::1]:80/":                       "2001:db8::1",
		"https://hooks.slack.com/services/T1/B1/secret":  "hooks.slack.com/t1",
		"https://HOOKS.slack.com./services/T1/B2/other":  "hooks.slack.com/t1",
		"https://hooks.slack.com//services/T1/B2/other":  "hooks.slack.com/t1",
		"https://hooks.slack.com/triggers/T2/1/secret":   "hooks.slack.com/t2",
		"https://hooks.slack-gov.com/services/T1/B1/abc": "hooks.slack-gov.com/t1",
		"https://hooks.slack.com/":                       "hooks.slack.com",
		"https://hooks.slack.com.evil.example/a/b":       "hooks.slack.com.evil.example",
		"": "",
	} {
		got := subscription(func(s *store.Subscription) {
			s.Channel = store.Channel{Type: store.ChannelWebhook, Secrets: map[string]string{"webhook_url": address}}
		}).Receiver()
		if got != want {
			t.Errorf("Receiver of %q = %q, want %q", address, got, want)
		}
	}
	if got := subscription().Receiver(); got != "" {
		t.Errorf("Receiver of an email address = %q, want none", got)
	}
}
