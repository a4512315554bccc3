package api_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func TestAMemberSubscribesAndUnsubscribes(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", "Weather"))
	page := s.get("/subscriptions")
	if !strings.Contains(page.text, "You have none.") || !page.checked("all") {
		t.Errorf("at first it says: %s", page.text)
	}
	email := url.Values{
		"action": {"add"}, "type": {"email"}, "address": {"ada@example.com"}, "all": {"yes"}, "endpoints": {"weather"},
		"severities": {"down", "gated"}, "quiet_from": {"22:00"}, "quiet_to": {"07:00"}, "quiet_zone": {""},
	}
	if got := s.post("/subscriptions", maps.Clone(email)); got.status != http.StatusSeeOther {
		t.Fatalf("by email: got %d: %s", got.status, got.text)
	}
	hook := url.Values{
		"action": {"add"}, "type": {"webhook"}, "address": {"https://hooks.example/T0/s3cret"}, "endpoints": {"weather"}, "tags": {"prod"},
	}
	if got := s.post("/subscriptions", hook); got.status != http.StatusSeeOther {
		t.Fatalf("by webhook: got %d: %s", got.status, got.text)
	}
	list := s.get("/subscriptions")
	for _, want := range []string{"ada@example.com", "everything", "when down, gated", "22:00–07:00 UTC", "hooks.example", "1 endpoint, tag prod", "whatever the endpoints tell"} {
		if !strings.Contains(list.text, want) {
			t.Errorf("the list does not say %q: %s", want, list.text)
		}
	}
	if strings.Contains(list.body, "s3cret") {
		t.Error("the list shows a secret")
	}
	again := s.post("/subscriptions", maps.Clone(email))
	if again.status != http.StatusConflict || !strings.Contains(again.body, `href="#f-address"`) || again.field("address") != "ada@example.com" {
		t.Errorf("the same address again: got %d: %s", again.status, again.text)
	}
	id := list.field("id")
	if got := s.post("/subscriptions", url.Values{"action": {"delete"}, "id": {id}}); got.status != http.StatusSeeOther {
		t.Errorf("delete: got %d: %s", got.status, got.text)
	}
	left, err := s.store.Subscriptions(t.Context(), store.SubscriptionFilter{})
	if err != nil || len(left.Items) != 1 || left.Items[0].ID == id || left.Items[0].UserID == "" {
		t.Errorf("left are %v, %v", left.Items, err)
	}
}

func TestSubscriptionsOfOthersAreNotThere(t *testing.T) {
	s := newSite(t)
	s.setUp()
	theirs, err := s.store.CreateSubscription(t.Context(), store.Subscription{
		Channel: store.Channel{Name: "x", Type: store.ChannelEmail, Settings: map[string]string{"to": "bob@example.com"}}, All: true,
		ConfirmedAt: new(time.Now()), ManageHash: store.HashSecret("m"), ConfirmHash: store.HashSecret("c"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.get("/subscriptions"); strings.Contains(got.text, "bob@example.com") {
		t.Error("somebody else's subscription is listed")
	}
	if got := s.post("/subscriptions", url.Values{"action": {"delete"}, "id": {theirs.ID}}); got.status != http.StatusNotFound {
		t.Errorf("deleting it: got %d", got.status)
	}
	if _, err := s.store.Subscription(t.Context(), theirs.ID); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

func TestMistakesInASubscriptionStandBesideTheirFields(t *testing.T) {
	s := newSite(t)
	s.setUp()
	typed := url.Values{
		"action": {"add"}, "type": {"webhook"}, "address": {hostileWords}, "signing_secret": {"s3cret"}, "tags": {"prod, " + hostileWords},
		"endpoints_typed": {"gone"}, "quiet_from": {"22:00"}, "quiet_to": {"22:00"}, "quiet_zone": {"Mars/Base"},
	}
	got := s.post("/subscriptions", typed)
	if got.status != http.StatusUnprocessableEntity || !got.clean() {
		t.Fatalf("got %d: %s", got.status, got.text)
	}
	for _, id := range []string{"f-address", "f-signing-secret", "f-endpoints", "f-quiet", "f-quiet-zone"} {
		if !strings.Contains(got.body, `href="#`+id+`"`) || !strings.Contains(got.body, `id="`+id+`"`) {
			t.Errorf("the summary does not lead to #%s", id)
		}
	}
	for name := range typed {
		if name != "action" && name != "type" && got.field(name) != typed.Get(name) {
			t.Errorf("field %s holds %q, want %q", name, got.field(name), typed.Get(name))
		}
	}
	if got.kind("signing_secret") != "password" {
		t.Error("the secret is shown")
	}
	for _, address := range []string{"", "not an address"} {
		got := s.post("/subscriptions", url.Values{"action": {"add"}, "type": {"email"}, "address": {address}, "all": {"yes"}})
		if n := strings.Count(got.body, `href="#f-address"`); got.status != http.StatusUnprocessableEntity || n != 1 {
			t.Errorf("address %q: got %d and is named %d times", address, got.status, n)
		}
	}
}

func TestAChannelShowsWhatWasSentAndSendsItAgain(t *testing.T) {
	s := newSite(t)
	s.setUp()
	s.post("/channels", url.Values{"type": {"slack"}, "name": {"ops"}, "webhook_url": {webhook}})
	id := s.channelNamed("ops").ID
	path := "/channels/" + id
	if got := s.get(path); !strings.Contains(got.text, "Nothing yet.") {
		t.Errorf("at first it says: %s", got.text)
	}
	s.mustRegister(with(endpointForm("save", "https://weather.example/mcp"), "name", `We<i>"er`, "channels", id))
	s.answer(failing())
	o, err := s.store.Endpoints(t.Context(), store.EndpointFilter{})
	if err != nil {
		t.Fatal(err)
	}
	s.post("/endpoints/"+o.Items[0].Slug, url.Values{"action": {"check"}})

	settle := func(how store.Settlement) string {
		t.Helper()
		due, err := s.store.LeaseNotices(t.Context(), "test", time.Now().Add(time.Minute), time.Minute, 1)
		if err != nil || len(due) != 1 {
			t.Fatalf("leased %d deliveries, %v", len(due), err)
		}
		how.NoticeID, how.LeaseID, how.At, how.Took = due[0].Notice.ID, due[0].LeaseID, time.Now(), 340*time.Millisecond
		if err := s.store.SettleNotice(t.Context(), how); err != nil {
			t.Fatal(err)
		}
		return how.NoticeID
	}
	settle(store.Settlement{RetryAt: time.Now().Add(-time.Second), Error: "rate_limited <b>"})
	page := s.get(path)
	if !strings.Contains(page.text, "To be tried again") || !strings.Contains(page.text, "rate_limited <b>") || !strings.Contains(page.text, `We<i>"er`) || page.control("notice") != nil {
		t.Errorf("while it is tried it says: %s", page.text)
	}
	notice := settle(store.Settlement{Sent: true, Ref: "x"})
	if page = s.get(path); page.field("notice") != notice || !strings.Contains(page.text, "opening") {
		t.Errorf("once it was sent, %q can be sent again: %s", page.field("notice"), page.text)
	}
	incident := s.get(s.get("/incidents").link("/incidents/inc_"))
	if !strings.Contains(incident.text, "Told ops: opening") || !strings.Contains(incident.text, "Could not tell ops: opening") || incident.link(path) == "" {
		t.Errorf("the incident's timeline says: %s", incident.text)
	}
	if got := s.post(path, url.Values{"action": {"resend"}, "notice": {notice}}); got.status != http.StatusSeeOther || got.header.Get("Location") != path+"?done=resent" {
		t.Errorf("again: got %d to %q", got.status, got.header.Get("Location"))
	}
	if got := s.post(path, url.Values{"action": {"resend"}, "notice": {notice}}); got.status != http.StatusConflict || !strings.Contains(got.text, "still waits") {
		t.Errorf("while it waits: got %d: %s", got.status, got.text)
	}
	if got := s.post(path, url.Values{"action": {"resend"}, "notice": {"ntc_none"}}); got.status != http.StatusNotFound {
		t.Errorf("one that is not there: got %d", got.status)
	}
	settle(store.Settlement{Passed: true, Error: "old news"})
	if diff := cmp.Diff(3, strings.Count(s.get(path).body, `<span class="mark">`)); diff != "" {
		t.Errorf("lines of the log (-want +got):\n%s", diff)
	}
}
