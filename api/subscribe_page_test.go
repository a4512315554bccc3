package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/api"
)

// relative returns the path and query of a link to a page, which has to begin with its address.
func relative(t *testing.T, page, link string) string {
	t.Helper()
	path, theirs := strings.CutPrefix(link, page)
	if !theirs {
		t.Fatalf("link %q does not lead to %s", link, page)
	}
	return path
}

func TestASubscriptionOnAPageIsOfThatPageAndLivesThere(t *testing.T) {
	r, post := secretPagePost(t)
	at := host("open.example")
	ask := func(path string, options ...option) question {
		t.Helper()
		r.form(path, url.Values{"type": {"email"}, "address": {"ada@a.example"}, "all": {"yes"}}, options...).want(http.StatusOK)
		return post.next(t)
	}
	builtin, q := ask("/status/subscribe"), ask("/subscribe", at)
	if builtin.page != nil || builtin.sub.PageID != "" || q.page == nil || q.page.Slug != "open" || q.sub.PageID != q.page.ID || !q.sub.All {
		t.Fatalf("asked of %+v and %+v, want one subscription on each page", builtin, q)
	}
	confirm, manage := relative(t, "http://open.example", q.confirm), relative(t, "http://open.example", q.manage)
	if page := r.get(confirm, nobody, at).want(http.StatusOK); !strings.Contains(page.body, `action="/confirm"`) || !strings.Contains(page.body, "Open name") {
		t.Errorf("the page behind the link:\n%s", page.body)
	}
	token := "token=" + tokenOf(t, q.confirm)
	for _, elsewhere := range []string{"/status/confirm", "/p/locked/confirm"} {
		r.submit(elsewhere, token).want(http.StatusNotFound)
	}
	confirmed := r.submit("/confirm", token, at).want(http.StatusOK)
	if !strings.Contains(confirmed.body, `href="/subscription?token=`) || strings.Contains(confirmed.body, "/status") || strings.Contains(confirmed.body, "/p/open") {
		t.Errorf("the answer leads elsewhere:\n%s", confirmed.body)
	}

	page := r.get(manage, nobody, at).want(http.StatusOK)
	if !strings.Contains(page.body, `action="/subscription"`) || !strings.Contains(page.body, "Weather") || strings.Contains(page.body, "Hush Hush") {
		t.Errorf("the page to manage it:\n%s", page.body)
	}
	for _, elsewhere := range []string{"/status", "/p/locked"} {
		r.get(elsewhere+manage, nobody).want(http.StatusNotFound)
	}
	r.get("/p/open"+manage, nobody).want(http.StatusOK) // the page has two addresses
	saved := r.submit("/subscription", "action=save&endpoints=weather&token="+tokenOf(t, q.manage), at).want(http.StatusSeeOther)
	if again := r.get(saved.header.Get("Location"), nobody, at).want(http.StatusOK); !strings.Contains(again.body, "Saved.") {
		t.Errorf("after saving:\n%s", again.body)
	}
	r.submit("/subscription", "action=save&endpoints=hush-hush&token="+tokenOf(t, q.manage), at).want(http.StatusUnprocessableEntity)
	for _, sub := range r.subscriptions() {
		if want := map[bool]int{true: 1}[sub.ID == q.sub.ID]; len(sub.Endpoints) != want {
			t.Errorf("subscription %+v, want %d endpoints", sub, want)
		}
	}
	listed := r.get("/api/v1/subscriptions").want(http.StatusOK)
	if !strings.Contains(listed.body, `"page":"open"`) || !strings.Contains(listed.body, `"page":null`) {
		t.Errorf("listed: %s", listed.body)
	}
	end := relative(t, "http://open.example", api.UnsubscribeURL(linkKey, "http://rollcall.example", q.page, q.sub.ID))
	r.submit(end, "List-Unsubscribe=One-Click", at).want(http.StatusOK)
	if subs := r.subscriptions(); len(subs) != 1 || subs[0].ID != builtin.sub.ID {
		t.Errorf("after the end of one: %+v, want the other", subs)
	}
}

func TestTheLinksOfSubscribersTellNothingOfAPageWithAPassword(t *testing.T) {
	r, post := secretPagePost(t)
	admitted := r.form("/p/locked/password", url.Values{"password": {"correct horse"}}).want(http.StatusSeeOther)
	cookie, err := http.ParseSetCookie(admitted.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	let := withCookie(cookie)
	wish := url.Values{"type": {"email"}, "address": {"ada@a.example"}, "endpoints": {"hush-hush"}}
	r.form("/p/locked/subscribe", wish).want(http.StatusNotFound)
	r.form("/p/locked/subscribe", wish, let).want(http.StatusOK)
	q := post.next(t)
	confirm, manage := relative(t, "http://rollcall.example", q.confirm), relative(t, "http://rollcall.example", q.manage)
	token := "token=" + tokenOf(t, q.manage)

	shut := []reply{
		r.get(confirm, nobody).want(http.StatusOK),
		r.submit("/p/locked/confirm", "token="+tokenOf(t, q.confirm)).want(http.StatusOK),
		r.get(manage, nobody).want(http.StatusOK),
		r.submit("/p/locked/subscription", "action=save&all=yes&"+token).want(http.StatusForbidden),
		r.get("/p/locked/subscription", nobody).want(http.StatusNotFound),
	}
	for _, page := range shut {
		for _, secret := range []string{"Hush Hush", "hush-hush", "Locked name", "Zzz corner"} {
			if strings.Contains(page.body, secret) {
				t.Errorf("%s holds %q:\n%s", page.what, secret, page.body)
			}
		}
		if got := page.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", page.what, got)
		}
	}
	if sub := r.subscriptions()[0]; sub.ConfirmedAt == nil || sub.All || len(sub.Endpoints) != 1 {
		t.Errorf("subscription %+v, want it confirmed, about what it was", sub)
	}
	if page := r.get(manage, nobody, let).want(http.StatusOK); !strings.Contains(page.body, "Hush Hush") || !strings.Contains(page.body, "Locked name") {
		t.Errorf("with the password:\n%s", page.body)
	}
	r.submit("/p/locked/subscription", "action=save&all=yes&"+token, let).want(http.StatusSeeOther)
	if sub := r.subscriptions()[0]; !sub.All {
		t.Errorf("subscription %+v, want it about everything", sub)
	}
	r.submit("/p/locked/subscription", "action=end&"+token).want(http.StatusOK)
	if subs := r.subscriptions(); len(subs) != 0 {
		t.Errorf("after the end: %+v", subs)
	}
}
