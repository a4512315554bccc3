package api_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

func TestAPasswordIsKeptAsArgon2id(t *testing.T) {
	hash := api.HashPassword(password)
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=47104,t=1,p=1$") {
		t.Errorf("hash %q", hash)
	}
	if !api.VerifyPassword(hash, password) {
		t.Error("the password does not fit its own hash")
	}
	for name, hash := range map[string]string{
		"another password":          api.HashPassword("another"),
		"nothing":                   "",
		"another scheme":            "$2a$10$abcdefghijklmnopqrstuv",
		"too much memory":           "$argon2id$v=19$m=4294967295,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"too many passes":           "$argon2id$v=19$m=64,t=4294967295,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"no threads, which panics":  "$argon2id$v=19$m=64,t=1,p=0$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"no passes, which panics":   "$argon2id$v=19$m=64,t=0,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"an empty key fits anybody": "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$",
		"not base64":                "$argon2id$v=19$m=64,t=1,p=1$!!$!!",
	} {
		if api.VerifyPassword(hash, password) {
			t.Errorf("%s: the password fits", name)
		}
	}
}

// form sends a form the way a browser does.
func (r *rollcall) form(path string, values url.Values, options ...option) reply {
	r.t.Helper()
	return r.ask("POST", path, values.Encode(), append([]option{
		nobody, header("Content-Type", "application/x-www-form-urlencoded"), header("Sec-Fetch-Site", "same-origin"),
	}, options...)...)
}

// cookie returns the session cookie that a reply sets.
func (a reply) cookie() *http.Cookie {
	a.t.Helper()
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		a.t.Fatalf("%s sets %d cookies, want 1: %v", a.what, len(cookies), a.header)
	}
	return cookies[0]
}

func withCookie(c *http.Cookie) option { return func(q *http.Request) { q.AddCookie(c) } }

func TestTheSetupLinkMakesTheFirstUserOnce(t *testing.T) {
	r := start(t)
	if got := r.get("/", nobody).want(http.StatusSeeOther).header.Get("Location"); got != "/setup" {
		t.Errorf("before the setup, a visitor is sent to %q", got)
	}
	secret, hash := store.NewSecret("")
	if err := r.store.PutSetupToken(t.Context(), hash, time.Now()); err != nil {
		t.Fatal(err)
	}
	page := r.get("/setup?token="+secret, nobody).want(http.StatusOK)
	if got := page.header.Get("Referrer-Policy"); got != "same-origin" {
		t.Errorf("a page whose address is a secret has the Referrer-Policy %q", got)
	}
	r.form("/setup", url.Values{"token": {"wrong"}, "name": {"ada"}, "password": {password}}).want(http.StatusForbidden)
	r.form("/setup", url.Values{"token": {secret}, "name": {" "}, "password": {"short"}}).want(http.StatusUnprocessableEntity)
	done := r.form("/setup", url.Values{"token": {secret}, "name": {"ada"}, "password": {password}}).want(http.StatusSeeOther)
	r.get("/", nobody, withCookie(done.cookie())).want(http.StatusOK)
	again := r.form("/setup", url.Values{"token": {secret}, "name": {"eve"}, "password": {password}})
	if again.status < 400 {
		t.Errorf("the link worked twice: %d", again.status)
	}
	if n, err := r.store.UserCount(t.Context()); n != 1 || err != nil {
		t.Errorf("%d users, %v", n, err)
	}
}

func TestALoginLastsUntilItIsEndedOnTheServer(t *testing.T) {
	r := start(t)
	r.login()
	if got := r.get("/endpoints/new?a=b", nobody).want(http.StatusSeeOther).header.Get("Location"); got != "/login?next=%2Fendpoints%2Fnew%3Fa%3Db" {
		t.Errorf("a visitor is sent to %q", got)
	}
	in := r.form("/login", url.Values{"name": {"Ada"}, "password": {password}, "next": {"/incidents"}}).want(http.StatusSeeOther)
	if got := in.header.Get("Location"); got != "/incidents" {
		t.Errorf("the login leads to %q", got)
	}
	cookie := in.cookie()
	if cookie.Name != "rollcall_session" || !cookie.HttpOnly || cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.MaxAge < 29*86400 {
		t.Errorf("cookie %+v", cookie)
	}
	r.get("/", nobody, withCookie(cookie)).want(http.StatusOK)
	r.get("/api/v1/endpoints", nobody, withCookie(cookie)).want(http.StatusOK)
	out := r.form("/logout", nil, withCookie(cookie)).want(http.StatusSeeOther)
	if gone := out.cookie(); gone.MaxAge >= 0 {
		t.Errorf("the browser keeps %+v", gone)
	}
	r.get("/", nobody, withCookie(cookie)).want(http.StatusSeeOther)
	r.get("/api/v1/endpoints", nobody, withCookie(cookie)).want(http.StatusUnauthorized)
}

func TestOverTLSTheCookieIsBoundToTheHost(t *testing.T) {
	r := start(t, func(c *api.Config) { c.PublicURL = "https://rollcall.example" })
	r.login()
	cookie := r.form("/login", url.Values{"name": {"ada"}, "password": {password}}).want(http.StatusSeeOther).cookie()
	if cookie.Name != "__Host-rollcall_session" || !cookie.Secure || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("cookie %+v", cookie)
	}
	r.get("/", nobody, withCookie(cookie)).want(http.StatusOK)
	planted := &http.Cookie{Name: "rollcall_session", Value: cookie.Value}
	r.get("/", nobody, withCookie(planted)).want(http.StatusSeeOther)
	r.form("/logout", nil, withCookie(cookie), header("Sec-Fetch-Site", ""), header("Origin", "https://rollcall.example")).want(http.StatusSeeOther)
}

func TestAWrongPasswordIsNotToldFromAWrongName(t *testing.T) {
	r := start(t)
	r.login()
	told := func(name, secret string) string {
		t.Helper()
		page := r.form("/login", url.Values{"name": {name}, "password": {secret}}).want(http.StatusUnauthorized).body
		_, form, _ := strings.Cut(page, "<main")
		form, _, _ = strings.Cut(form, "</main>")
		return strings.ReplaceAll(form, name, "…")
	}
	if diff := cmp.Diff(told("mallory", password), told("ada", "not-hers")); diff != "" {
		t.Errorf("what is told differs (-wrong name +wrong password):\n%s", diff)
	}
	if log := r.logged(); !strings.Contains(log, "login refused") || strings.Contains(log, "mallory") || strings.Contains(log, "not-hers") {
		t.Errorf("the log of refused logins:\n%s", log)
	}
}

// guessUntilRefused tries passwords, each time as another user, and fails the test if nobody minds. A budget fills up
// again while passwords are hashed, so how many tries it takes depends on the machine.
func (r *rollcall) guessUntilRefused(from func(i int) string) reply {
	r.t.Helper()
	for i := range 30 {
		form := url.Values{"name": {fmt.Sprintf("user%d", i)}, "password": {"guess"}}
		if got := r.form("/login", form, header("X-Forwarded-For", from(i))); got.status != http.StatusUnauthorized {
			return got.want(http.StatusTooManyRequests)
		}
	}
	r.t.Fatal("30 guesses, and nobody minds")
	return reply{}
}

func TestGuessingPasswordsIsSlow(t *testing.T) {
	r := start(t)
	r.login()
	// A header that anybody can write does not make somebody else of him.
	refused := r.guessUntilRefused(func(i int) string { return fmt.Sprintf("198.51.100.%d", i) })
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	r.form("/login", url.Values{"name": {"ada"}, "password": {password}}).want(http.StatusTooManyRequests)
}

func TestATrustedProxySaysWhoGuesses(t *testing.T) {
	r := start(t, func(c *api.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	})
	r.login()
	r.guessUntilRefused(func(int) string { return "203.0.113.7" })
	r.form("/login", url.Values{"name": {"ada"}, "password": {password}}, header("X-Forwarded-For", "203.0.113.8")).want(http.StatusSeeOther)
}

func TestLoginsAreBoundedPerAddressAndPerName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := api.NewLoginsForTest()
		free := func(n int, addr, name func(i int) string) (granted int) {
			for i := range n {
				if l.Wait(addr(i), name(i)) == 0 {
					granted++
				}
			}
			return granted
		}
		other := func(i int) string { return fmt.Sprintf("user%d", i) }
		if got := free(50, func(int) string { return "192.0.2.1" }, other); got != 10 {
			t.Errorf("one address tried %d names at once, want 10", got)
		}
		if got := free(50, func(i int) string { return fmt.Sprintf("2001:db8::%x", i) }, other); got != 10 {
			t.Errorf("one IPv6 network tried %d names at once, want 10", got)
		}
		ada := func(int) string { return "ada" }
		if got := free(200, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, ada); got != 50 {
			t.Errorf("many addresses tried one name %d times at once, want 50", got)
		}
		time.Sleep(time.Minute)
		if got := free(200, func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }, ada); got != 30 {
			t.Errorf("a minute later many addresses tried one name %d times, want 30", got)
		}
		if got := free(50, func(int) string { return "192.0.2.1" }, other); got != 10 {
			t.Errorf("a minute later one address tried %d times, want 10", got)
		}
		free(30_000, func(i int) string { return fmt.Sprintf("10.0.%d.%d", i/256, i%256) }, other)
		if got := l.Size(); got > 20_000 {
			t.Errorf("%d budgets are remembered, want a bound of 10000 addresses and names each", got)
		}
	})
}

func TestStrangersDoNotKeepAKnownUserOut(t *testing.T) {
	r := start(t, func(c *api.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	})
	r.login()
	login := func(from, secret string) reply {
		return r.form("/login", url.Values{"name": {"Ada"}, "password": {secret}}, header("X-Forwarded-For", from))
	}
	login("192.0.2.1", password).want(http.StatusSeeOther)
	login("2001:db8:0:1::1", password).want(http.StatusSeeOther)
	login("192.0.2.2", "a wrong password").want(http.StatusUnauthorized)
	for i := range 200 {
		r.api.LoginsForTest().Wait(fmt.Sprintf("198.51.100.%d", i), "ada")
	}

	login("192.0.2.2", password).want(http.StatusTooManyRequests)
	login("192.0.2.1", password).want(http.StatusSeeOther)
	login("2001:db8:0:1::2", password).want(http.StatusSeeOther)
	for i := 0; login("192.0.2.1", "a guess").status != http.StatusTooManyRequests; i++ {
		if i > 15 {
			t.Fatal("from where somebody has logged in, anybody may guess on")
		}
	}
}

func TestLoginsAreRememberedWithinABound(t *testing.T) {
	l := api.NewLoginsForTest()
	for i := range 3000 {
		l.Remember(fmt.Sprintf("10.0.%d.%d", i/256, i%256), "ada")
	}
	if got := l.Visits(); got != 1000 {
		t.Errorf("%d logins are remembered, want 1000", got)
	}
}

func TestStrangersDoNotSpendTheSetupLink(t *testing.T) {
	r := start(t)
	secret, hash := store.NewSecret("")
	if err := r.store.PutSetupToken(t.Context(), hash, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		r.form("/setup", url.Values{"token": {"a guess"}, "name": {"eve"}, "password": {password}}).want(http.StatusForbidden)
	}
	r.form("/setup", url.Values{"token": {secret}, "name": {"ada"}, "password": {password}}).want(http.StatusSeeOther)
}

func TestALoginLeadsOnlyToOurOwnPages(t *testing.T) {
	for raw, want := range map[string]string{
		"/endpoints/a?x=1#y":            "/endpoints/a?x=1#y",
		"/":                             "/",
		"":                              "/",
		"https://evil.example/":         "/",
		"//evil.example":                "/",
		"/\\evil.example":               "/",
		"\\\\evil.example":              "/",
		"/\t/evil.example":              "/",
		"javascript:alert(1)":           "/",
		"evil.example":                  "/",
		"/%0d%0aSet-Cookie:x":           "/%0d%0aSet-Cookie:x",
		"/" + strings.Repeat("a", 3000): "/",
	} {
		if got := api.SafeNextForTest(raw); got != want {
			t.Errorf("%.40q leads to %q, want %q", raw, got, want)
		}
	}
}
