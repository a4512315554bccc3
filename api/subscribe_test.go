package api_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

var linkKey = []byte("a key of thirty-two bytes, or so.")

// question is what a subscriber was sent.
type question struct {
	sub             store.Subscription
	page            *store.StatusPage
	confirm, manage string
}

// post is what plays the part of the mail server, and of whoever stands behind webhooks.
type post struct {
	sent chan question
	err  error
}

func (p *post) ask(_ context.Context, sub store.Subscription, page *store.StatusPage, confirmURL, manageURL string) error {
	p.sent <- question{sub, page, confirmURL, manageURL}
	return p.err
}

// next returns what was sent.
func (p *post) next(t *testing.T) question {
	t.Helper()
	select {
	case q := <-p.sent:
		return q
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was sent")
		return question{}
	}
}

func (p *post) config(c *api.Config) {
	c.PublicURL, c.AskSubscriber, c.LinkKey = "https://status.example", p.ask, linkKey
}

// subscribing starts a rollcall that the public can subscribe to, with public and hidden endpoints.
func subscribing(t *testing.T, edits ...func(*api.Config)) (*rollcall, *post) {
	t.Helper()
	p := &post{sent: make(chan question, 1000)}
	r := start(t, append([]func(*api.Config){p.config}, edits...)...)
	r.register(`{"url": "https://a.example", "name": "Weather", "public": true, "tags": ["prod"]}`)
	r.register(`{"url": "https://b.example", "name": "Search", "public": true}`)
	r.register(`{"url": "https://hidden-host.example", "name": "Hidden", "public": false, "tags": ["secret-tag"]}`)
	return r, p
}

// submit sends a form as a browser does that nobody is logged in with.
func (r *rollcall) submit(path, fields string, options ...option) reply {
	r.t.Helper()
	return r.ask("POST", path, fields, append([]option{nobody, header("Content-Type", "application/x-www-form-urlencoded")}, options...)...)
}

func pathOf(t *testing.T, link string) string {
	t.Helper()
	path, ours := strings.CutPrefix(link, "https://status.example")
	if !ours {
		t.Fatalf("link %q leads elsewhere", link)
	}
	return path
}

func tokenOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("token")
}

func (r *rollcall) subscriptions() []store.Subscription {
	r.t.Helper()
	page, err := r.store.Subscriptions(r.t.Context(), store.SubscriptionFilter{Limit: store.MaxLimit})
	if err != nil {
		r.t.Fatal(err)
	}
	return page.Items
}

func TestAnAddressIsSubscribedOnceItsOwnerSaysSo(t *testing.T) {
	r, post := subscribing(t)
	r.submit("/status/subscribe", "type=email&address=Ada+<ada@example.com>&endpoints=weather&tags=prod").want(http.StatusOK)
	q := post.next(t)
	if got := q.sub.Channel.Value("to"); got != "ada@example.com" {
		t.Errorf("asked %q, want the bare address", got)
	}
	if subs := r.subscriptions(); len(subs) != 1 || subs[0].ConfirmedAt != nil || !subs[0].Public() || len(subs[0].Endpoints) != 1 {
		t.Fatalf("before the answer: %+v", subs)
	}
	path := pathOf(t, q.confirm)
	page := r.get(path, nobody).want(http.StatusOK)
	if !strings.Contains(page.body, "<button") || page.header.Get("Referrer-Policy") != "no-referrer" || page.header.Get("Cache-Control") != "no-store" ||
		!strings.Contains(page.body, `name="referrer" content="no-referrer"`) {
		t.Errorf("the page behind the link: %v\n%s", page.header, page.body)
	}
	if r.subscriptions()[0].ConfirmedAt != nil {
		t.Error("opening the link confirmed it: programs that look at mails do that")
	}
	confirmed := r.submit("/status/confirm", "token="+tokenOf(t, q.confirm), header("Origin", "null")).want(http.StatusOK)
	if sub := r.subscriptions()[0]; sub.ConfirmedAt == nil || sub.ConfirmHash != nil {
		t.Errorf("after the answer: %+v", sub)
	}
	if !strings.Contains(confirmed.body, "/status/subscription?token=") {
		t.Error("the answer has no link to manage it")
	}
	r.submit("/status/confirm", "token="+tokenOf(t, q.confirm)).want(http.StatusNotFound)

	manage := pathOf(t, q.manage)
	if page := r.get(manage, nobody).want(http.StatusOK); !strings.Contains(page.body, "ada@example.com") || strings.Contains(page.body, "Hidden") {
		t.Errorf("the page to manage it:\n%s", page.body)
	}
	r.submit("/status/subscription", "action=save&all=yes&token="+tokenOf(t, q.manage)).want(http.StatusSeeOther)
	if sub := r.subscriptions()[0]; !sub.All || len(sub.Endpoints)+len(sub.Tags) != 0 {
		t.Errorf("after the change: %+v", sub)
	}
	r.submit("/status/subscription", "action=save&endpoints=hidden&token="+tokenOf(t, q.manage)).want(http.StatusUnprocessableEntity)
	r.submit("/status/subscription", "action=end&token="+tokenOf(t, q.manage)).want(http.StatusOK)
	if subs := r.subscriptions(); len(subs) != 0 {
		t.Errorf("after the end: %+v", subs)
	}
	r.get(manage, nobody).want(http.StatusNotFound)
	for _, secret := range []string{"ada@example.com", tokenOf(t, q.confirm), tokenOf(t, q.manage)} {
		if strings.Contains(r.logged(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func TestOneClickEndsASubscription(t *testing.T) {
	for name, body := range map[string]struct{ kind, text string }{
		"form":      {"application/x-www-form-urlencoded", "List-Unsubscribe=One-Click"},
		"multipart": {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, post := subscribing(t)
			r.submit("/status/subscribe", "type=email&address=ada@example.com&all=yes").want(http.StatusOK)
			path := pathOf(t, api.UnsubscribeURL(linkKey, "https://status.example", nil, post.next(t).sub.ID))
			if page := r.get(path, nobody).want(http.StatusOK); !strings.Contains(page.body, "<button") ||
				!strings.Contains(page.body, "ada@example.com") || len(r.subscriptions()) != 1 {
				t.Errorf("opening the link: %s", page.body)
			}
			for range 2 { // what is ended stays ended
				r.ask("POST", path, body.text, nobody, header("Content-Type", body.kind), header("Origin", "https://mail.example"),
					header("Sec-Fetch-Site", "cross-site")).want(http.StatusOK)
				if subs := r.subscriptions(); len(subs) != 0 {
					t.Errorf("after the click: %+v", subs)
				}
			}
		})
	}
}

// The links of members end their subscriptions, and show them to nobody.
func TestAMembersSubscriptionIsNotShownByALink(t *testing.T) {
	r, _ := subscribing(t)
	cookie := header("Cookie", "__Host-rollcall_session="+r.login())
	body := r.ask("POST", "/api/v1/subscriptions", `{"type": "email", "to": "bo@example.com", "all": true}`, nobody, cookie).want(http.StatusCreated).object()
	id, _ := body["id"].(string)
	r.get(pathOf(t, api.ManageURL(linkKey, "https://status.example", nil, id)), nobody).want(http.StatusNotFound)
	r.submit(pathOf(t, api.UnsubscribeURL(linkKey, "https://status.example", nil, id)), "List-Unsubscribe=One-Click").want(http.StatusOK)
	if subs := r.subscriptions(); len(subs) != 0 {
		t.Errorf("after the click: %+v", subs)
	}
}

func TestATokenIsGoodForOneThingOnly(t *testing.T) {
	r, post := subscribing(t)
	r.submit("/status/subscribe", "type=email&address=ada@example.com&all=yes").want(http.StatusOK)
	q := post.next(t)
	unsubscribe := tokenOf(t, api.UnsubscribeURL(linkKey, "", nil, q.sub.ID))
	tokens := map[string]string{"/status/confirm": tokenOf(t, q.confirm), "/status/subscription": tokenOf(t, q.manage), "/status/unsubscribe": unsubscribe}
	wrong := []string{
		"x", q.sub.ID, "." + q.sub.ID, strings.ToUpper(tokenOf(t, q.manage)), strings.Repeat("a", 5000), "\x00", "%ff",
		tokenOf(t, api.ManageURL([]byte("another key of thirty-two bytes..."), "", nil, q.sub.ID)),
		tokenOf(t, api.ManageURL(nil, "", nil, q.sub.ID)), string(q.sub.ConfirmHash),
	}
	dead := r.get("/status/confirm?token=nothing", nobody).want(http.StatusNotFound).body
	same := func(a, b string) bool { // but for the time in the foot
		cut := func(s string) string { s, _, _ = strings.Cut(s, "<footer"); return s }
		return cut(a) == cut(b)
	}
	for path := range tokens {
		candidates := slices.Clone(wrong)
		for of, token := range tokens {
			if of != path {
				candidates = append(candidates, token)
			}
		}
		for _, token := range candidates {
			values := url.Values{"token": {token}, "action": {"end"}}.Encode()
			if got := r.get(path+"?"+values, nobody).want(http.StatusNotFound); !same(got.body, dead) {
				t.Errorf("%s with %.40q says something else", path, token)
			}
			if got := r.submit(path, values).want(http.StatusNotFound); !same(got.body, dead) {
				t.Errorf("POST %s with %.40q says something else", path, token)
			}
		}
	}
	if subs := r.subscriptions(); len(subs) != 1 || subs[0].ConfirmedAt != nil {
		t.Errorf("after all the wrong ones: %+v", subs)
	}
}

func TestTheAnswerDoesNotSayWhoIsSubscribed(t *testing.T) {
	r, post := subscribing(t)
	const wish = "type=email&all=yes&address="
	answer := func(address string) string {
		t.Helper()
		body, _, _ := strings.Cut(r.submit("/status/subscribe", wish+address).want(http.StatusOK).body, "<footer")
		return body
	}
	first := answer("ada@example.com")
	q := post.next(t)
	if got := answer("ADA@example.com"); got != first {
		t.Error("the answer for one that waits is another")
	}
	again := post.next(t)
	r.submit("/status/confirm", "token="+tokenOf(t, q.confirm)).want(http.StatusNotFound) // replaced
	r.submit("/status/confirm", "token="+tokenOf(t, again.confirm)).want(http.StatusOK)
	if got := answer("ada@example.com"); got != first {
		t.Error("the answer for one that is subscribed is another")
	}
	if told := post.next(t); told.confirm != "" || told.manage == "" || told.sub.ConfirmedAt == nil {
		t.Errorf("one who is subscribed is told %+v", told)
	}
	if sub := r.subscriptions(); len(sub) != 1 || sub[0].ConfirmedAt == nil || !sub[0].All {
		t.Errorf("a stranger changed the subscription: %+v", sub)
	}
	for _, address := range []string{"ada@example.com", "ada%2Bx@example.com"} {
		limited := r.submit("/status/subscribe", wish+address).want(http.StatusTooManyRequests)
		if limited.header.Get("Retry-After") == "" || !strings.Contains(limited.body, "Nothing was sent") {
			t.Errorf("the fourth time: %v %s", limited.header, limited.body)
		}
	}
}

func TestOneWhoIsSubscribedIsToldSoOnceAnHour(t *testing.T) {
	r, post := subscribing(t)
	r.submit("/status/subscribe", "type=email&address=ada@example.com&all=yes").want(http.StatusOK)
	r.submit("/status/confirm", "token="+tokenOf(t, post.next(t).confirm)).want(http.StatusOK)
	for range 2 {
		r.submit("/status/subscribe", "type=email&address=ada@example.com&all=yes").want(http.StatusOK)
	}
	r.http.Close() // returns when what was under way has ended
	if n := len(post.sent); n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

func TestNobodyIsAskedMoreThanALittle(t *testing.T) {
	r, post := subscribing(t, func(c *api.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	refused := 0
	for i := range 7 {
		from := header("X-Forwarded-For", "203.0.113.9")
		if r.submit("/status/subscribe", fmt.Sprintf("type=email&address=a%d@example.com&all=yes", i), from).status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("from one address, %d of 7 were refused, want 2", refused)
	}
	refused = 0
	for i := range 160 {
		from := header("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", i/100, i%100))
		if r.submit("/status/subscribe", fmt.Sprintf("type=email&address=b%d@example.com&all=yes", i), from).status == http.StatusTooManyRequests {
			refused++
		}
	}
	r.http.Close()
	if n := len(post.sent); refused < 10 || n > 155 || n != len(r.subscriptions()) {
		t.Errorf("%d refused, %d sent", refused, n)
	}
}

// A question that was asked before a restart still counts: the one after it is sent, the next is not.
func TestARestartDoesNotAskAnew(t *testing.T) {
	r, post := subscribing(t)
	r.submit("/status/subscribe", "type=email&address=ada@example.com&all=yes").want(http.StatusOK)
	post.next(t)
	other := start(t, post.config, func(c *api.Config) { c.Store = r.store })
	for range 3 {
		other.submit("/status/subscribe", "type=email&address=ada@example.com&all=yes").want(http.StatusOK)
	}
	other.http.Close()
	if n := len(post.sent); n != 1 {
		t.Errorf("%d questions after the restart, want 1", n)
	}
}

func TestAWebhookIsSubscribedOnceItAnswers(t *testing.T) {
	r, post := subscribing(t)
	const wish = "type=webhook&all=yes&address=https://hooks.example/x%3Fkey=HUSH"
	post.err = errors.New("no answer from 192.0.2.1:443")
	failed := r.submit("/status/subscribe", wish).want(http.StatusUnprocessableEntity)
	if post.next(t); strings.Contains(failed.body, "192.0.2.1") || r.subscriptions()[0].ConfirmedAt != nil {
		t.Errorf("without an answer: %s", failed.body)
	}
	post.err = nil
	r.submit("/status/subscribe", wish).want(http.StatusOK)
	q := post.next(t)
	if q.confirm != "" || q.manage == "" || r.subscriptions()[0].ConfirmedAt == nil {
		t.Errorf("with an answer: %+v", q)
	}
	if page := r.get(pathOf(t, q.manage), nobody).want(http.StatusOK); strings.Contains(page.body, "HUSH") || !strings.Contains(page.body, "hooks.example") {
		t.Errorf("the page to manage it: %s", page.body)
	}
	if strings.Contains(r.logged(), "HUSH") {
		t.Error("the log holds the URL")
	}
}

func TestASlackWebhookConfirmsByItsMessage(t *testing.T) {
	r, post := subscribing(t)
	r.submit("/status/subscribe", "type=slack&all=yes&address=https://hooks.slack.example/services/T/B/x").want(http.StatusOK)
	r.submit("/status/confirm", "token="+tokenOf(t, post.next(t).confirm)).want(http.StatusOK)
	if sub := r.subscriptions()[0]; sub.ConfirmedAt == nil || sub.Channel.Type != store.ChannelSlack {
		t.Errorf("after the answer: %+v", sub)
	}
}

func TestAWishThatCannotBeIsSaidToBe(t *testing.T) {
	r, post := subscribing(t)
	for wish, field := range map[string]string{
		"type=email&all=yes":                                              "address",
		"type=email&all=yes&address=nobody":                               "address",
		"type=email&all=yes&address=root@localhost":                       "address",
		"type=email&all=yes&address=root@localhost.":                      "address",
		"type=email&all=yes&address=root@[10.0.0.1]":                      "address",
		"type=email&all=yes&address=a@example.com,b@example.com":          "address",
		"type=email&all=yes&address=a@example.com%0d%0aBcc:b@x.example":   "address",
		"type=email&all=yes&address=" + strings.Repeat("a", 300) + "@x.y": "address",
		"type=webhook&all=yes&address=ftp://x":                            "address",
		"type=webhook&all=yes&address=https://x.example&signing_secret=x": "signing-secret",
		"type=slack&all=yes&address=javascript:alert(1)":                  "address",
		"type=pagerduty&all=yes&address=a@example.com":                    "type",
		"all=yes&address=a@example.com":                                   "type",
		"type=email&address=a@example.com":                                "endpoints",
		"type=email&address=a@example.com&endpoints=hidden":               "endpoints",
		"type=email&address=a@example.com&endpoints=absent":               "endpoints",
		"type=email&address=a@example.com&tags=secret-tag":                "tags",
		"type=email&address=a@example.com&tags=absent":                    "tags",
	} {
		got := r.submit("/status/subscribe", wish).want(http.StatusUnprocessableEntity)
		if !strings.Contains(got.body, `href="#f-`+field) {
			t.Errorf("%s: no word about %s", wish, field)
		}
	}
	if len(post.sent) != 0 || len(r.subscriptions()) != 0 {
		t.Errorf("%d sent, kept %+v", len(post.sent), r.subscriptions())
	}
	r.submit("/status/subscribe", "type=email&all=yes&address=a@example.com", header("Origin", "https://evil.example")).want(http.StatusForbidden)
}

func TestWhereNobodyCanBeAskedNobodyCanSubscribe(t *testing.T) {
	post := &post{sent: make(chan question, 1)}
	for name, r := range map[string]*rollcall{
		"nobody to ask": start(t, func(c *api.Config) { c.PublicURL = "https://status.example" }),
		"no public URL": start(t, post.config, func(c *api.Config) { c.PublicURL = "" }),
	} {
		if page := r.get("/status", nobody).want(http.StatusOK); strings.Contains(page.body, "/status/subscribe") {
			t.Errorf("%s: there is a form", name)
		}
		r.submit("/status/subscribe", "type=email&all=yes&address=a@example.com").want(http.StatusNotFound)
		r.get("/status/subscribe", nobody).want(http.StatusNotFound)
	}
	r := start(t, post.config, func(c *api.Config) { c.SubscribeBy = []store.ChannelType{store.ChannelWebhook} })
	if page := r.get("/status", nobody).body; strings.Contains(page, `value="email"`) || !strings.Contains(page, `value="webhook"`) {
		t.Error("the form offers what cannot be had")
	}
	if _, err := api.New(api.Config{AskSubscriber: post.ask, LinkKey: []byte("short")}); err == nil || !strings.Contains(err.Error(), "LinkKey") {
		t.Errorf("a short key: %v", err)
	}
}

func TestEndpointsKeepTheirPagesBesideThoseOfSubscriptions(t *testing.T) {
	r, _ := subscribing(t)
	for _, name := range []string{"Subscribe", "Confirm", "Subscription", "Unsubscribe"} {
		path := "/status/" + r.register(`{"url": "https://x.example", "public": true, "name": "`+name+`"}`)
		if page := r.get(path, nobody).want(http.StatusOK); !strings.Contains(page.body, "<bdi>"+name+"</bdi>") {
			t.Errorf("%s is not the page of the endpoint", path)
		}
	}
}

// announced is a rollcall with everything that status pages tell.
func announced(t *testing.T, text string) *rollcall {
	t.Helper()
	r, _ := subscribing(t)
	shown := strings.Join(strings.FieldsFunc(text, unicode.IsControl), "") + "." // titles hold no control characters
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	ids := map[string]string{}
	for _, slug := range []string{"weather", "hidden", "search"} {
		o, err := r.store.Endpoint(ctx, slug)
		must(err)
		ids[slug] = o.ID
	}
	i, _, err := r.store.Raise(ctx, store.Incident{
		Kind: store.IncidentManual, Title: "Slow " + shown, Severity: store.StatusDegraded, Endpoints: []string{ids["weather"], ids["hidden"]},
	}, "ada-author", "It is slow "+text, nil)
	must(err)
	act := func(a store.Act) {
		t.Helper()
		a.Author, a.At = "ada-author", time.Now()
		_, err := r.store.Act(ctx, i.ID, a)
		must(err)
	}
	act(store.Act{Kind: store.ActComment, Text: "found " + text, Public: true})
	act(store.Act{Kind: store.ActComment, Text: "between-us"})
	for _, m := range []store.Maintenance{
		{Title: "Disks " + shown, Text: "Short breaks " + text, StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour), Endpoints: []string{ids["search"], ids["hidden"]}, Public: true},
		{Title: "Ahead", StartsAt: time.Now().Add(time.Hour), EndsAt: time.Now().Add(2 * time.Hour), Tags: []string{"secret-tag"}, Public: true},
		{Title: "in-silence", StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour), All: true},
	} {
		m.Author = "ada-author"
		_, err := r.store.CreateMaintenance(ctx, m)
		must(err)
	}
	_, _, err = r.store.Raise(ctx, store.Incident{
		Kind: store.IncidentExpiring, Subject: store.SubjectOfExpiry(ids["weather"]), EndpointID: ids["weather"], Severity: store.StatusGated,
	}, "", "expires-soon", nil)
	must(err)
	return r
}

var publicPaths = []string{
	"/status", "/status/weather", "/status/search", "/status/subscribe", "/status/feed.atom", "/status/feed.json", "/api/v1/status",
	"/api/v2/summary.json", "/api/v2/incidents.json", "/api/v2/components.json",
}

func TestThePublicReadsWhatIsMeantForItAndNothingElse(t *testing.T) {
	r := announced(t, "")
	for _, path := range publicPaths {
		body := r.get(path, nobody).want(http.StatusOK).body
		for _, private := range []string{"Hidden", "hidden-host", "/hidden", "secret-tag", "ada-author", "between-us", "in-silence", "expires-soon", "a.example", "default"} {
			if strings.Contains(body, private) {
				t.Errorf("%s tells the public %q:\n%s", path, private, body)
			}
		}
	}
	for path, all := range map[string][]string{
		"/status":              {"Slow", "It is slow", "found", "Disks", "Short breaks", "Ahead", "Degraded service", "under maintenance", `action="/status/subscribe"`, "/status/feed.json"},
		"/status/weather":      {"Slow", "It is slow", "found"},
		"/status/search":       {"Disks", "Short breaks", "under maintenance"},
		"/status/feed.atom":    {"Slow", "It is slow", "found", "About Weather.", "Under way: Disks", "Maintenance: Ahead"},
		"/status/feed.json":    {"Slow", "It is slow", "found", "Under way: Disks"},
		"/api/v2/summary.json": {`"identified"`, "It is slow", "found", `"in_progress"`, `"scheduled"`, `"under_maintenance"`, "Short breaks"},
	} {
		body := r.get(path, nobody).body
		for _, want := range all {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not say %q:\n%s", path, want, body)
			}
		}
	}
	if body := r.get("/status/search", nobody).body; strings.Contains(body, "It is slow") {
		t.Error("the page of an endpoint tells of an incident of others")
	}
}

func TestWhatIsAnnouncedStaysText(t *testing.T) {
	for _, text := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "]]></content>&#x0;", "{{.}}", "\u202e\x01\x1b[31m"} {
		r := announced(t, text)
		for _, path := range publicPaths {
			got := r.get(path, nobody).want(http.StatusOK)
			if kind := got.header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") && (strings.Contains(got.body, "<script>") || strings.Contains(got.body, "<img src=x")) {
				t.Errorf("%s with %q: %s", path, text, got.body)
			}
		}
		var feed atom
		if err := xml.Unmarshal([]byte(r.get("/status/feed.atom", nobody).body), &feed); err != nil || len(feed.Entries) != 3 {
			t.Errorf("the feed with %q: %v, %d entries", text, err, len(feed.Entries))
		}
	}
}

func TestTheJSONFeedIsOne(t *testing.T) {
	r := announced(t, "")
	got := r.get("/status/feed.json", nobody).want(http.StatusOK)
	if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/feed+json") || got.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("headers %v", got.header)
	}
	var feed struct {
		Version, Title string
		HomeURL        string `json:"home_page_url"`
		FeedURL        string `json:"feed_url"`
		Items          []map[string]string
	}
	if err := json.Unmarshal([]byte(got.body), &feed); err != nil {
		t.Fatal(err)
	}
	if feed.Version != "https://jsonfeed.org/version/1.1" || feed.HomeURL != "https://status.example/status" || feed.FeedURL != "https://status.example/status/feed.json" || len(feed.Items) != 3 {
		t.Errorf("feed %+v", feed)
	}
	for _, item := range feed.Items {
		for _, member := range []string{"id", "url", "title", "content_text"} {
			if item[member] == "" {
				t.Errorf("item without %s: %v", member, item)
			}
		}
		for _, member := range []string{"date_published", "date_modified"} {
			if _, err := time.Parse(time.RFC3339, item[member]); err != nil {
				t.Errorf("%s: %v", member, err)
			}
		}
	}
	r.get("/status/feed.json", nobody, header("If-None-Match", got.header.Get("ETag"))).want(http.StatusNotModified)
}

// What the team says is wrong shows at the top, though every check is good.
func TestAnAnnouncementDecidesHowThingsStand(t *testing.T) {
	for severity, want := range map[string]string{"down": "Partial outage", "degraded": "Degraded service"} {
		r, _ := subscribing(t)
		for _, slug := range []string{"weather", "search"} {
			r.ask("POST", "/api/v1/endpoints/"+slug+"/check", "").want(http.StatusOK)
		}
		body := r.ask("POST", "/api/v1/incidents", `{"title": "Payments fail", "text": "We look at it.", "severity": "`+severity+`"}`).want(http.StatusCreated).object()
		if page := r.get("/status", nobody).body; !strings.Contains(page, "<h1>"+want+"</h1>") {
			t.Errorf("%s: the page does not say %q", severity, want)
		}
		id, _ := body["id"].(string)
		r.ask("POST", "/api/v1/incidents/"+id+"/acts", `{"act": "resolve", "text": "Mended.", "public": true}`).want(http.StatusOK)
		page := r.get("/status", nobody).body
		if !strings.Contains(page, "<h1>All systems operational</h1>") || !strings.Contains(page, "Mended.") {
			t.Errorf("%s: after the end: %s", severity, page)
		}
		var answer struct {
			Incidents []struct {
				Status  string
				Updates []struct{ Status, Body string } `json:"incident_updates"`
			}
		}
		r.get("/api/v2/incidents.json", nobody).json(&answer)
		if i := answer.Incidents; len(i) != 1 || i[0].Status != "resolved" || len(i[0].Updates) != 2 || i[0].Updates[0].Body != "Mended." || i[0].Updates[1].Body != "We look at it." {
			t.Errorf("%s: for aggregators: %+v", severity, answer)
		}
	}
}
